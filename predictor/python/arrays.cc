#include "predictor/python/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>

#include "predictor/python/bindings.h"

namespace stepcast::python {
namespace {

bool IsArray(py::handle value) { return py::isinstance<py::array>(value); }

std::string ShapeText(const py::array& array) {
  return py::repr(array.attr("shape")).cast<std::string>();
}

// Reads a T, that is an int, a long or a double, from memory of any alignment.
template <class T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <class To, class From>
To Converted(From value) {
  if constexpr (std::is_same_v<To, int> && std::is_same_v<From, std::int64_t>) {
    return value >= INT_MIN && value <= INT_MAX ? static_cast<int>(value) : kNoInt;
  } else if constexpr (std::is_same_v<To, int> && std::is_same_v<From, double>) {
    return value >= INT_MIN && value <= INT_MAX && std::floor(value) == value
               ? static_cast<int>(value)
               : kNoInt;
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

py::ssize_t SizeOf(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), py::ssize_t{1}, std::multiplies<>());
}

Argument::Argument(py::handle value, const char* name, Kind kind) : name_(name) {
  if (value.is_none()) return;
  if (PyFloat_Check(value.ptr()) != 0) {
    real_ = PyFloat_AS_DOUBLE(value.ptr());
    if (kind == Kind::kWhole && std::floor(real_) != real_) {
      throw InputError(Keyword(name), ReprOf(value), "is not a whole number", "an int");
    }
    whole_ = Converted<int>(real_);
    type_ = Type::kFloat64;
    return;
  }
  if (PyLong_Check(value.ptr()) != 0 || (!IsArray(value) && PyIndex_Check(value.ptr()) != 0)) {
    if (kind == Kind::kReal) {
      real_ = RealOf(value, name);
      type_ = Type::kFloat64;
    } else {
      whole_ = IntOf(value, name);
      type_ = Type::kInt64;
    }
    return;
  }
  array_ = py::array::ensure(value);
  if (!array_) {
    PyErr_Clear();
    throw InputError(Keyword(name), ReprOf(value), "is neither a number nor an array of numbers",
                     "a number, a sequence or a NumPy array");
  }
  const bool is_real = array_.dtype().kind() == 'f' &&
                       // An empty list has no type of its own.
                       (array_.size() > 0 || kind == Kind::kReal);
  const bool is_whole = array_.dtype().kind() == 'i' || array_.dtype().kind() == 'u';
  if (!is_whole && !is_real && array_.size() > 0) {
    throw InputError(Keyword(name), "array of " + py::str(array_.dtype()).cast<std::string>(),
                     kind == Kind::kReal ? "has no numbers" : "has no whole numbers",
                     kind == Kind::kReal ? "float64, or what NumPy converts to it"
                                         : "int32 or int64, or a smaller integer type");
  }
  const bool as_real = is_real || kind == Kind::kReal;
  const auto convert = [&](const char* type) {
    array_ = py::array(py::object(array_.attr("astype")(type)));
  };
  if (as_real) {
    if (!py::isinstance<py::array_t<double>>(array_)) convert("float64");
    type_ = Type::kFloat64;
  } else if (py::isinstance<py::array_t<std::int32_t>>(array_)) {
    type_ = Type::kInt32;
  } else {
    if (!py::isinstance<py::array_t<std::int64_t>>(array_)) convert("int64");
    type_ = Type::kInt64;
  }
}

int Argument::whole() const { return Converted<int>(whole_); }

Shape BroadcastShape(const std::vector<const Argument*>& arguments) {
  Shape shape;
  for (const Argument* argument : arguments) {
    if (argument->scalar()) continue;
    const py::array& array = argument->array_;
    const auto axes = static_cast<std::size_t>(array.ndim());
    if (axes > shape.size()) shape.insert(shape.begin(), axes - shape.size(), 1);
    for (std::size_t i = 0; i < axes; ++i) {
      py::ssize_t& length = shape[shape.size() - 1 - i];
      const py::ssize_t own = array.shape(array.ndim() - 1 - static_cast<py::ssize_t>(i));
      if (own == length || own == 1) continue;
      if (length == 1) {
        length = own;
        continue;
      }
      std::string shapes;
      for (const Argument* other : arguments) {
        if (other->scalar()) continue;
        shapes += (shapes.empty() ? "" : ", ") + std::string(other->name()) + " " +
                  ShapeText(other->array_);
      }
      throw InputError(Keyword(argument->name()), ShapeText(array),
                       "does not broadcast with the other arguments: " + shapes,
                       "shapes that NumPy broadcasts");
    }
  }
  return shape;
}

Reader::Reader(const Argument& argument, const Shape& shape)
    : type_(argument.type_), whole_(argument.whole_), real_(argument.real_) {
  if (argument.scalar()) return;
  const py::array& array = argument.array_;
  data_ = static_cast<const char*>(array.data());
  const auto missing = static_cast<py::ssize_t>(shape.size()) - array.ndim();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const py::ssize_t axis = static_cast<py::ssize_t>(i) - missing;
    const bool repeated = axis < 0 || array.shape(axis) == 1;
    const Axis next{shape[i], repeated ? 0 : array.strides(axis)};
    if (next.length == 1) continue;
    if (!axes_.empty() && axes_.back().stride == next.stride * next.length) {
      axes_.back() = {axes_.back().length * next.length, next.stride};
    } else {
      axes_.push_back(next);
    }
  }
  if (axes_.empty()) axes_.push_back({1, 0});
}

template <class From, class To>
void Reader::CopyAs(py::ssize_t begin, py::ssize_t count, To* out) const {
  const Axis inner = axes_.back();
  while (count > 0) {
    // Where the run of the innermost axis begins that element `begin` is in.
    py::ssize_t outer = begin / inner.length;
    const py::ssize_t first = begin - outer * inner.length;
    const char* at = data_ + first * inner.stride;
    for (std::size_t i = axes_.size() - 1; i-- > 0;) {
      at += (outer % axes_[i].length) * axes_[i].stride;
      outer /= axes_[i].length;
    }
    const py::ssize_t run = std::min(count, inner.length - first);
    if (inner.stride == 0) {
      std::fill_n(out, run, Converted<To>(Load<From>(at)));
    } else if (inner.stride == static_cast<py::ssize_t>(sizeof(From))) {
      for (py::ssize_t i = 0; i < run; ++i) {
        out[i] = Converted<To>(Load<From>(at + i * static_cast<py::ssize_t>(sizeof(From))));
      }
    } else {
      for (py::ssize_t i = 0; i < run; ++i)
        out[i] = Converted<To>(Load<From>(at + i * inner.stride));
    }
    begin += run;
    out += run;
    count -= run;
  }
}

template <class To>
void Reader::Copy(py::ssize_t begin, py::ssize_t count, To* out) const {
  if (data_ == nullptr) {
    const To value = std::is_same_v<To, double> ? Converted<To>(real_) : Converted<To>(whole_);
    std::fill_n(out, count, value);
  } else if (type_ == Argument::Type::kInt32) {
    CopyAs<std::int32_t>(begin, count, out);
  } else if (type_ == Argument::Type::kInt64) {
    CopyAs<std::int64_t>(begin, count, out);
  } else {
    CopyAs<double>(begin, count, out);
  }
}

const int* Reader::Ints(py::ssize_t begin, py::ssize_t count, std::vector<int>* buffer) const {
  if (data_ != nullptr && type_ == Argument::Type::kInt32 && axes_.size() == 1 &&
      axes_.back().stride == sizeof(int) &&
      reinterpret_cast<std::uintptr_t>(data_) % alignof(int) == 0) {
    return reinterpret_cast<const int*>(data_) + begin;  // NOLINT(*-reinterpret-cast)
  }
  buffer->resize(static_cast<std::size_t>(count));
  Copy(begin, count, buffer->data());
  return buffer->data();
}

const double* Reader::Reals(py::ssize_t begin, py::ssize_t count,
                            std::vector<double>* buffer) const {
  if (data_ != nullptr && axes_.size() == 1 && axes_.back().stride == sizeof(double) &&
      reinterpret_cast<std::uintptr_t>(data_) % alignof(double) == 0) {
    return reinterpret_cast<const double*>(data_) + begin;  // NOLINT(*-reinterpret-cast)
  }
  buffer->resize(static_cast<std::size_t>(count));
  Copy(begin, count, buffer->data());
  return buffer->data();
}

int Reader::IntAt(py::ssize_t index) const {
  int value = kNoInt;
  Copy(index, 1, &value);
  return value;
}

std::string Reader::TextAt(py::ssize_t index) const {
  if (type_ == Argument::Type::kFloat64) return fmt::format("{}", RealAt(index));
  std::int64_t value = 0;
  Copy(index, 1, &value);
  return fmt::format("{}", value);
}

double Reader::RealAt(py::ssize_t index) const {
  double value = 0;
  Copy(index, 1, &value);
  return value;
}

py::array_t<double> Result(py::handle out, const Shape& shape, const char* name) {
  if (out.is_none()) return py::array_t<double>(shape);
  const auto refuse = [&](const std::string& value, const std::string& problem) {
    throw InputError(Keyword(name), value, problem,
                     "a writable float64 array in C order, of the shape of the answers");
  };
  if (!py::isinstance<py::array_t<double>>(out)) refuse(ReprOf(out.get_type()), "is no such array");
  auto array = py::reinterpret_borrow<py::array_t<double>>(out);
  if (!array.writeable() || (array.flags() & py::array::c_style) == 0) {
    refuse(ShapeText(array), "cannot be written in place");
  }
  if (!std::equal(shape.begin(), shape.end(), array.shape(), array.shape() + array.ndim())) {
    refuse(ShapeText(array),
           "is not the shape of the answers, " + ReprOf(py::tuple(py::cast(shape))));
  }
  return array;
}

}  // namespace stepcast::python
