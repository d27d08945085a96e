// Shared by the sources of the Python module. Each Bind function adds its classes and functions to
// the module; all of them together are stepcast._core, and the package stepcast shows them.
//
// Numbers cross this border as SI values with the unit in their name (rtt_s). Whatever a user can
// cause is raised as stepcast.InputError.
#ifndef STEPCAST_PREDICTOR_PYTHON_BINDINGS_H_
#define STEPCAST_PREDICTOR_PYTHON_BINDINGS_H_

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>

#include "data/record/input_error.h"
#include "data/record/machine.h"
#include "data/record/plan.h"
#include "data/record/workload.h"
#include "predictor/compiled_plan.h"
#include "predictor/predictor.h"

namespace stepcast::python {

namespace py = pybind11;

void BindErrors(py::module_* m);
void BindRecords(py::module_* m);
void BindPlan(py::module_* m);
void BindPredictor(py::module_* m);
void BindCompiledPlan(py::module_* m);
void BindOnlineCalibration(py::module_* m);
void BindGoodput(py::module_* m);

// An argument of a call, as errors name it.
inline InputPlace Keyword(const char* name) { return {"", 0, name}; }

inline std::string ReprOf(py::handle value) { return py::repr(value).cast<std::string>(); }

// A whole number of Python or NumPy. Throws InputError for all else, or what an int cannot hold.
int IntOf(py::handle value, const char* name);
// A number of Python or NumPy; throws InputError for all else.
double RealOf(py::handle value, const char* name);
std::string TextOf(py::handle value, const char* name);

// SI value, or None.
template <class D>
py::object SiOrNone(const std::optional<Quantity<D, double>>& value) {
  return value ? py::object(py::float_(value->si())) : py::none();
}
inline py::object OrNone(const std::optional<double>& value) {
  return value ? py::object(py::float_(*value)) : py::none();
}

// "Plan(placement=[4, 4], local_batch=32)".
std::string PlanRepr(const Plan& plan);

// Text in HTML.
std::string Escaped(const std::string& text);

// The data sheet of what a workload runs on. `device` is a name, a Device or None, which is the
// cluster's own; a name is looked up in the cluster and then among the shipped data sheets.
struct ChosenDevice {
  std::optional<Device> facts;
  std::string name;
};
ChosenDevice ChooseDevice(py::handle device, const Cluster& cluster);

// A predictor with what it was made of.
struct BoundPredictor {
  BoundPredictor(Cluster cluster, Workload of, ChosenDevice on);

  Predictor predictor;
  ChosenDevice device;
  // Without what a predictor adds to it.
  Workload workload;
};
using SharedPredictor = std::shared_ptr<BoundPredictor>;

// A compiled plan with what it was made of; `asked` is the plan before strategy auto was resolved.
struct BoundPlan {
  BoundPlan(SharedPredictor from, Plan plan, const CompileOptions& options);

  SharedPredictor predictor;
  Plan asked;
  CompiledPlan compiled;
};

// Devices on the fullest node of the most even layout; less than 1 where there is none.
inline int MostEven(int workers, int nodes) {
  return workers < 1 || nodes < 1 ? 0 : (workers - 1) / nodes + 1;
}

}  // namespace stepcast::python

#endif  // STEPCAST_PREDICTOR_PYTHON_BINDINGS_H_
