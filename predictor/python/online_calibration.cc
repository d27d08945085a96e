// stepcast.OnlineCalibration: parameters that follow a job while it runs.
#include "calibrate/online/online_calibration.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "data/io/online_record.h"
#include "data/record/input_error.h"
#include "predictor/python/bindings.h"

namespace stepcast::python {
namespace {

// With where it started, which pickling needs.
struct BoundCalibration {
  BoundCalibration(Cluster cluster, Workload of, ChosenDevice on)
      : start(std::move(cluster)),
        workload(std::move(of)),
        device(std::move(on)),
        job(start, workload, device.facts, device.name) {}

  Cluster start;
  Workload workload;
  ChosenDevice device;
  OnlineCalibration job;
};

}  // namespace

void BindOnlineCalibration(py::module_* m) {
  py::class_<Observation>(*m, "Observation", "The answer to one observed step.")
      .def_property_readonly(
          "predicted_s", [](const Observation& o) { return o.predicted.in(kSeconds); },
          "float : before the row was learnt")
      .def_readonly("log_ratio", &Observation::log_ratio, "float : ln(measured / predicted)")
      .def_readonly("surprise", &Observation::surprise,
                    "float : log_ratio in standard deviations of what was expected")
      .def_readonly("drifted", &Observation::drifted, "bool : as of the calibration")
      .def_property_readonly(
          "cause",
          [](const Observation& o) {
            return o.cause.empty() ? py::object(py::none()) : py::object(py::str(o.cause));
          },
          "str : what this step has shown to have changed: compute, network, node (the exchange\n"
          "within nodes), or several of them joined by \"or\"; None where it has shown nothing")
      .def("__repr__",
           [](const Observation& o) {
             return fmt::format("<Observation: predicted {:.4g} s, {:+.1f} standard deviations{}>",
                                o.predicted.in(kSeconds), o.surprise, o.drifted ? ", drifted" : "");
           })
      .def(py::pickle(
          [](const Observation& o) {
            return py::make_tuple(o.predicted.in(kSeconds), o.log_ratio, o.surprise, o.drifted,
                                  o.cause);
          },
          [](const py::tuple& state) {
            return Observation{Seconds(state[0].cast<double>()), state[1].cast<double>(),
                               state[2].cast<double>(), state[3].cast<bool>(),
                               state[4].cast<std::string>()};
          }));

  py::class_<BoundCalibration>(
      *m, "OnlineCalibration",
      "Parameters that follow a job while it runs: each measured step moves them at once.\n\n"
      "The start is what the cluster's calibration, or its priors, say. Not to be observed by two\n"
      "threads at once.")
      .def(py::init([](const Cluster& cluster, const Workload& workload, const py::object& device) {
             return std::make_unique<BoundCalibration>(cluster, workload,
                                                       ChooseDevice(device, cluster));
           }),
           py::arg("cluster"), py::arg("workload"), py::arg("device") = py::none(),
           "Parameters as of Predictor.")
      .def(
          "observe",
          [](BoundCalibration& c, const Plan& plan, double step_time_s) {
            return c.job.Observe(plan, Seconds(step_time_s));
          },
          py::arg("plan"), py::arg("step_time_s"),
          "Learns a measured step of a plan, whose strategy is not auto [s].\n\n"
          "Raises InputError for a plan that no model covers and for a time that is none; nothing\n"
          "is learnt then.")
      .def_property_readonly(
          "cluster", [](const BoundCalibration& c) { return c.job.cluster(); },
          "Cluster : with the parameters as learnt, for Predictor or to be written as a file")
      .def_property_readonly(
          "workload", [](const BoundCalibration& c) { return c.workload; }, "Workload")
      .def_property_readonly(
          "rows", [](const BoundCalibration& c) { return c.job.rows(); }, "int : observed so far")
      .def_property_readonly(
          "drifted", [](const BoundCalibration& c) { return c.job.drifted(); },
          "bool : some rows lay apart from the older ones by more than chance allows; what had\n"
          "changed is learnt anew since then")
      .def(
          "predictor",
          [](const BoundCalibration& c) {
            return std::make_shared<BoundPredictor>(c.job.cluster(), c.workload, c.device);
          },
          "A Predictor with what was learnt.")
      .def(
          "to_json", [](const BoundCalibration& c) { return FormatOnlineRecord(c.job.Export()); },
          "All that was learnt, as JSON text.")
      .def(
          "load_json",
          [](BoundCalibration& c, const std::string& text) {
            c.job.Import(ParseOnlineRecord(text));
          },
          py::arg("text"),
          "Goes on from what to_json told.\n\n"
          "Raises InputError for text of another version, cluster, workload or device.")
      .def("__repr__",
           [](const BoundCalibration& c) {
             return fmt::format("<OnlineCalibration of {} on {}: {} rows{}>", c.workload.name,
                                c.start.name, c.job.rows(), c.job.drifted() ? ", drifted" : "");
           })
      .def(py::pickle(
          [](const BoundCalibration& c) {
            return py::make_tuple(c.start, c.workload, c.device.facts, c.device.name,
                                  FormatOnlineRecord(c.job.Export()));
          },
          [](const py::tuple& state) {
            if (state.size() != 5) {
              throw InputError({"", 0, "state"}, std::to_string(state.size()),
                               "are not the parts of a saved calibration", "5");
            }
            auto c = std::make_unique<BoundCalibration>(
                state[0].cast<Cluster>(), state[1].cast<Workload>(),
                ChosenDevice{state[2].cast<std::optional<Device>>(), state[3].cast<std::string>()});
            c->job.Import(ParseOnlineRecord(state[4].cast<std::string>()));
            return c;
          }));
}

}  // namespace stepcast::python
