// NumPy arrays in and out: arguments that broadcast against each other, read block by block where
// they lie, and results that are allocated once or given by the caller.
//
//   const Argument workers(object, "workers", Argument::Kind::kWhole);
//   const Shape shape = BroadcastShape({&workers, &batch});
//   Reader reader(workers, shape);
//   const int* ints = reader.Ints(begin, count, &buffer);   // elements [begin, begin + count)
//
// An int32 array that does not broadcast is read in place; everything else is copied block by
// block, int64 as int32. Readers touch no Python object, and may run without the GIL.
#ifndef STEPCAST_PREDICTOR_PYTHON_ARRAYS_H_
#define STEPCAST_PREDICTOR_PYTHON_ARRAYS_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace stepcast::python {

namespace py = pybind11;

using Shape = std::vector<py::ssize_t>;

py::ssize_t SizeOf(const Shape& shape);

// Elements that are read, computed and written at a time: few enough for the processor's cache, and
// enough that PredictMany meets each placement of a sweep several times.
inline constexpr py::ssize_t kBlock = 1 << 16;

// Stands for a number that is not whole or that an int cannot hold: no query has such a value.
inline constexpr int kNoInt = -1;

inline bool MayShareMemory(const py::array& one, const py::array& other) {
  return py::module_::import("numpy").attr("may_share_memory")(one, other).cast<bool>();
}

// One argument of an array call: a number, an array of any shape, a sequence, or None.
class Argument {
 public:
  enum class Kind {
    kWhole,  // int32, int64, or float64 that hold whole numbers; others are converted to int64
    kReal,   // float64; other numbers are converted to it
  };

  // Throws InputError for what is no number or of another kind.
  Argument(py::handle value, const char* name, Kind kind);

  bool given() const { return type_ != Type::kNone; }
  // Whether it is a plain number of Python, or None: no array to be broadcast.
  bool scalar() const { return !array_; }
  const char* name() const { return name_; }
  // Whether what is written to `out` may change an element before it is read. In place, where each
  // element is that of its own answer, is no harm.
  bool MayBeChangedBy(const py::array& out) const {
    return array_ && !LiesAs(out) && MayShareMemory(array_, out);
  }
  // Value of a scalar that is given.
  int whole() const;
  double real() const { return real_; }

 private:
  friend class Reader;
  friend Shape BroadcastShape(const std::vector<const Argument*>& arguments);

  enum class Type { kNone, kInt32, kInt64, kFloat64 };

  bool LiesAs(const py::array& out) const {
    const auto end = array_.ndim();
    return array_.data() == out.data() && end == out.ndim() &&
           std::equal(array_.shape(), array_.shape() + end, out.shape()) &&
           std::equal(array_.strides(), array_.strides() + end, out.strides());
  }

  const char* name_;
  Type type_ = Type::kNone;
  std::int64_t whole_ = 0;
  double real_ = 0;
  py::array array_ = py::reinterpret_steal<py::array>(py::handle());  // none for a scalar
};

// Throws InputError, naming the arguments, for shapes that do not go together.
Shape BroadcastShape(const std::vector<const Argument*>& arguments);

// Elements of an argument in the order of the broadcast shape.
class Reader {
 public:
  Reader(const Argument& argument, const Shape& shape);

  bool given() const { return type_ != Argument::Type::kNone; }
  // Returns the array's own memory, or `buffer` made large enough. One value needs no array.
  const int* Ints(py::ssize_t begin, py::ssize_t count, std::vector<int>* buffer) const;
  const double* Reals(py::ssize_t begin, py::ssize_t count, std::vector<double>* buffer) const;
  int IntAt(py::ssize_t index) const;
  // As it was given: a number that no int holds, too.
  std::string TextAt(py::ssize_t index) const;
  double RealAt(py::ssize_t index) const;

 private:
  template <class To>
  void Copy(py::ssize_t begin, py::ssize_t count, To* out) const;
  template <class From, class To>
  void CopyAs(py::ssize_t begin, py::ssize_t count, To* out) const;

  struct Axis {
    py::ssize_t length;
    py::ssize_t stride;  // bytes
  };
  Argument::Type type_;
  std::int64_t whole_;
  double real_;
  const char* data_ = nullptr;
  // Outermost first; axes that lie as one in memory are one.
  std::vector<Axis> axes_;
};

// A new array, or `out` where it is one of float64 of this shape that can be written in place.
// Throws InputError for another.
py::array_t<double> Result(py::handle out, const Shape& shape, const char* name);

}  // namespace stepcast::python

#endif  // STEPCAST_PREDICTOR_PYTHON_ARRAYS_H_
