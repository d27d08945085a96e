// The extension module stepcast._calibrate: fitting, for builds that have Ceres. Its classes of
// data are those of stepcast._core, which must be imported before.
#include "calibrate/calibrate.h"

#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stepcast::python {
namespace {

namespace py = pybind11;

constexpr const char* kStatusNames[] = {"converged", "not converged", "no runs", "failed"};

template <class Of>
py::array_t<double> Collect(const CalibrationOutcome& outcome, Of of) {
  py::array_t<double> values(static_cast<py::ssize_t>(outcome.residuals.size()));
  double* next = values.mutable_data();
  for (const RunResidual& residual : outcome.residuals) *next++ = of(residual);
  return values;
}

py::array_t<double> PredictedSeconds(const CalibrationOutcome& o) {
  return Collect(o, [](const RunResidual& r) { return r.predicted.in(kSeconds); });
}

py::array_t<double> LogRatios(const CalibrationOutcome& o) {
  return Collect(o, [](const RunResidual& r) { return r.log_ratio; });
}

py::tuple OutcomeState(const CalibrationOutcome& o) {
  return py::make_tuple(static_cast<int>(o.status), o.message, o.cluster, PredictedSeconds(o),
                        LogRatios(o), o.mape, o.iterations);
}

CalibrationOutcome OutcomeOf(const py::tuple& state) {
  CalibrationOutcome o;
  o.status = static_cast<CalibrationOutcome::Status>(state[0].cast<int>());
  o.message = state[1].cast<std::string>();
  o.cluster = state[2].cast<Cluster>();
  const auto predicted = state[3].cast<std::vector<double>>();
  const auto log_ratios = state[4].cast<std::vector<double>>();
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    o.residuals.push_back({Seconds(predicted[i]), log_ratios[i]});
  }
  o.mape = state[5].cast<double>();
  o.iterations = state[6].cast<int>();
  return o;
}

// Gives a run the name of what it means by `name`, and keeps that under its own name.
template <class Described>
void CallByItsName(const std::map<std::string, Described>& meant, std::string* name,
                   std::map<std::string, Described>* known) {
  const auto it = meant.find(*name);
  if (it == meant.end()) return;
  *name = it->second.name;
  known->try_emplace(it->second.name, it->second);
}

// `workloads` and `devices` by what the runs call them.
CalibrationOutcome Fit(Cluster cluster, std::vector<Run> runs,
                       const std::map<std::string, Workload>& workloads,
                       const std::map<std::string, Device>& devices, double step_log_sd,
                       int max_iterations, std::size_t profiled_plans, int threads) {
  if (threads < 1) {
    throw InputError({"", 0, "threads"}, std::to_string(threads), "is out of range", "at least 1");
  }
  CalibrationProblem problem;
  problem.cluster = std::move(cluster);
  for (Run& run : runs) {
    CallByItsName(workloads, &run.workload, &problem.workloads);
    CallByItsName(devices, &run.device, &problem.devices);
  }
  problem.runs = std::move(runs);
  py::gil_scoped_release release;
  return Calibrate(problem, {step_log_sd, max_iterations, profiled_plans, threads});
}

}  // namespace
}  // namespace stepcast::python

PYBIND11_MODULE(_calibrate, m) {
  using namespace stepcast;          // NOLINT(google-build-using-namespace)
  using namespace stepcast::python;  // NOLINT(google-build-using-namespace)
  using Outcome = CalibrationOutcome;
  const CalibrationOptions defaults;
  py::class_<Outcome>(m, "CalibrationOutcome", "What a fit came to.")
      .def_property_readonly(
          "status", [](const Outcome& o) { return kStatusNames[static_cast<int>(o.status)]; },
          "str : converged, not converged, no runs, failed")
      .def_property_readonly("usable", &Outcome::IsUsable, "bool")
      .def_readonly("message", &Outcome::message, "str : one sentence")
      .def_property_readonly(
          "cluster",
          [](const Outcome& o) { return o.IsUsable() ? py::cast(o.cluster) : py::none(); },
          "Cluster : with its calibration; None where the fit is not usable")
      .def_readonly("mape", &Outcome::mape,
                    "float : mean |predicted / measured - 1| of the fitted runs")
      .def_readonly("iterations", &Outcome::iterations, "int")
      .def_property_readonly("predicted_s", &PredictedSeconds,
                             "array of float64 : of the runs, in their order [s]")
      .def_property_readonly("log_ratio", &LogRatios,
                             "array of float64 : ln(measured / predicted) of the runs")
      .def("__repr__",
           [](const Outcome& o) { return fmt::format("<CalibrationOutcome: {}>", o.message); })
      .def(py::pickle(&OutcomeState, &OutcomeOf));
  m.def("fit", &Fit, py::arg("cluster"), py::arg("runs"), py::arg("workloads"), py::arg("devices"),
        py::arg("step_log_sd") = defaults.step_log_sd,
        py::arg("max_iterations") = defaults.max_iterations,
        py::arg("profiled_plans") = defaults.profiled_plans, py::arg("threads") = defaults.threads);
}
