// stepcast.OnlineCalibration: parameters that follow a job while it runs; and stepcast.Fleet, which
// all jobs of a cluster share.
#include "calibrate/online/online_calibration.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "calibrate/online/fleet.h"
#include "data/io/fleet_record.h"
#include "data/io/online_record.h"
#include "data/record/input_error.h"
#include "data/values/names.h"
#include "predictor/python/bindings.h"

namespace stepcast::python {
namespace {

// One at a time asks or observes what it guards: a job, or all jobs of a fleet.
using Guard = std::shared_ptr<std::mutex>;

// Work that takes longer than others of Python should wait: they go on meanwhile. The lock of the
// interpreter is let go first, so that none waits for the guard with it.
template <class Work>
auto Alone(const Guard& guard, const Work& work) {
  const py::gil_scoped_release release;
  const std::lock_guard<std::mutex> lock(*guard);
  return work();
}

// With what pickling needs.
struct BoundCalibration {
  Workload workload;
  ChosenDevice device;
  std::shared_ptr<OnlineCalibration> job;
  Guard guard;

  int rows() const {
    return Alone(guard, [&] { return job->rows(); });
  }
  bool drifted() const {
    return Alone(guard, [&] { return job->drifted(); });
  }
  std::string text() const {
    return Alone(guard, [&] { return FormatOnlineRecord(job->Export()); });
  }
};

// With the jobs as Python has them.
struct BoundFleet {
  explicit BoundFleet(const Cluster& cluster) : fleet(cluster) {}

  Fleet fleet;
  std::map<std::string, std::shared_ptr<BoundCalibration>> jobs;
  Guard guard = std::make_shared<std::mutex>();

  std::string text() const {
    return Alone(guard, [&] { return FormatFleetRecord(fleet.Export()); });
  }
  auto running() const {
    return Alone(guard, [&] { return jobs; });
  }
  void Load(const std::string& from) {
    Alone(guard, [&] {
      const FleetRecord record = ParseFleetRecord(from);
      fleet.Import(record);
      std::map<std::string, std::shared_ptr<BoundCalibration>> loaded;
      for (const auto& [name, start, learnt] : record.jobs) {
        loaded[name] = std::make_shared<BoundCalibration>(BoundCalibration{
            learnt.workload, ChosenDevice{learnt.facts, learnt.device}, fleet.Job(name), guard});
      }
      jobs.swap(loaded);
    });
  }
};

void BindFleet(py::module_* m) {
  py::class_<BoundFleet>(*m, "Fleet",
                         "One calibration of a cluster that all its jobs share: what some learn, "
                         "the next begin with.\n\n"
                         "A job learns from the others when it is added, and goes on by its own "
                         "steps. Threads may\n"
                         "use one together, and observe its jobs: each waits for the others.")
      .def(py::init<const Cluster&>(), py::arg("cluster"),
           "The cluster, as a file or a calibration has it.")
      .def_property_readonly(
          "cluster", [](const BoundFleet& f) { return f.fleet.cluster(); },
          "Cluster : as it was given")
      .def_property_readonly("jobs", &BoundFleet::running,
                             "dict[str, OnlineCalibration] : those that are running, by name")
      .def(
          "add",
          [](BoundFleet& f, const std::string& job, const Workload& workload,
             const py::object& device) {
            CheckedName(job, {"", 0, "job"});
            ChosenDevice on = ChooseDevice(device, f.fleet.cluster());
            return Alone(f.guard, [&] {
              auto added = f.fleet.Add(job, workload, on.facts, on.name);
              return f.jobs[job] = std::make_shared<BoundCalibration>(
                         BoundCalibration{workload, std::move(on), std::move(added), f.guard});
            });
          },
          py::arg("job"), py::arg("workload"), py::arg("device") = py::none(),
          "Adds a job, which begins with what the others have learnt, and returns it.\n\n"
          "Raises InputError as Predictor does, for a name that is running, and for a workload\n"
          "that has the name of another job's, is trained as it is, and has other gradients.")
      .def(
          "end",
          [](BoundFleet& f, const std::string& job) {
            Alone(f.guard, [&] {
              f.fleet.End(job);
              f.jobs.erase(job);
            });
          },
          py::arg("job"),
          "The job is over: what it has taught is kept.\n\n"
          "Raises InputError for a job that is not running.")
      .def(
          "remove",
          [](BoundFleet& f, const std::string& job) {
            Alone(f.guard, [&] {
              f.fleet.Remove(job);
              f.jobs.erase(job);
            });
          },
          py::arg("job"),
          "What the job has taught is forgotten, but by those that began with it.\n\n"
          "Raises InputError for a job that is not running.")
      .def(
          "predictor",
          [](const BoundFleet& f, const Workload& workload, const py::object& device) {
            ChosenDevice on = ChooseDevice(device, f.fleet.cluster());
            return Alone(f.guard, [&] {
              Cluster start = f.fleet.ClusterFor(workload, on.facts, on.name);
              return std::make_shared<BoundPredictor>(std::move(start), workload, std::move(on));
            });
          },
          py::arg("workload"), py::arg("device") = py::none(),
          "A Predictor of a new job of this workload, before its first step.")
      .def("__repr__",
           [](const BoundFleet& f) {
             return fmt::format("<Fleet on {}: {} jobs are running>", f.fleet.cluster().name,
                                f.running().size());
           })
      .def(
          "to_json", &BoundFleet::text,
          "All that was learnt, as JSON text: of jobs that are over and of those that are running.")
      .def("load_json", &BoundFleet::Load, py::arg("text"),
           "Goes on from what to_json told. Jobs that were running are the text's, and those of\n"
           "before go on by themselves.\n\n"
           "Raises InputError for text of another version or cluster; nothing changes then.")
      .def(py::pickle(
          [](const BoundFleet& f) { return py::make_tuple(f.fleet.cluster(), f.text()); },
          [](const py::tuple& state) {
            if (state.size() != 2) {
              throw InputError({"", 0, "state"}, std::to_string(state.size()),
                               "are not the parts of a saved fleet", "2");
            }
            auto f = std::make_unique<BoundFleet>(state[0].cast<Cluster>());
            f->Load(state[1].cast<std::string>());
            return f;
          }));
}

void BindObservation(py::module_* m) {
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
}

void BindCalibration(py::module_* m) {
  py::class_<BoundCalibration, std::shared_ptr<BoundCalibration>>(
      *m, "OnlineCalibration",
      "Parameters that follow a job while it runs: each measured step moves them at once.\n\n"
      "The start is what the cluster's calibration, or its priors, say. Threads may observe and\n"
      "ask one together: each waits for the others, and rows are learnt in the order they come.")
      .def(py::init([](const Cluster& cluster, const Workload& workload, const py::object& device) {
             ChosenDevice on = ChooseDevice(device, cluster);
             auto job = std::make_shared<OnlineCalibration>(cluster, workload, on.facts, on.name);
             return BoundCalibration{workload, std::move(on), std::move(job),
                                     std::make_shared<std::mutex>()};
           }),
           py::arg("cluster"), py::arg("workload"), py::arg("device") = py::none(),
           "Parameters as of Predictor.")
      .def(
          "observe",
          [](BoundCalibration& c, const Plan& plan, double step_time_s) {
            return Alone(c.guard, [&] { return c.job->Observe(plan, Seconds(step_time_s)); });
          },
          py::arg("plan"), py::arg("step_time_s"),
          "Learns a measured step of a plan, whose strategy is not auto [s].\n\n"
          "Raises InputError for a plan that no model covers and for a time that is none; nothing\n"
          "is learnt then.")
      .def(
          "observe_out_of_memory",
          [](BoundCalibration& c, const Plan& plan) {
            Alone(c.guard, [&] { c.job->ObserveOutOfMemory(plan); });
          },
          py::arg("plan"),
          "A step of the plan did not fit in the device's memory.\n\n"
          "Plans that need no less are out of memory for predictors that are made from now on.\n"
          "Raises InputError for a plan that no model covers, and where nobody states the memory "
          "of\n"
          "the device.")
      .def_property_readonly(
          "cluster",
          [](const BoundCalibration& c) {
            return Alone(c.guard, [&] { return c.job->cluster(); });
          },
          "Cluster : with the parameters as learnt, for Predictor or to be written as a file")
      .def_property_readonly(
          "workload", [](const BoundCalibration& c) { return c.workload; }, "Workload")
      .def_property_readonly("rows", &BoundCalibration::rows, "int : observed so far")
      .def_property_readonly(
          "drifted", &BoundCalibration::drifted,
          "bool : some rows lay apart from the older ones by more than chance allows; what had\n"
          "changed is learnt anew since then")
      .def(
          "predictor",
          [](const BoundCalibration& c) {
            return Alone(c.guard, [&] {
              return std::make_shared<BoundPredictor>(c.job->cluster(), c.workload, c.device);
            });
          },
          "A Predictor with what was learnt.")
      .def("to_json", &BoundCalibration::text, "All that was learnt, as JSON text.")
      .def(
          "load_json",
          [](BoundCalibration& c, const std::string& text) {
            Alone(c.guard, [&] { c.job->Import(ParseOnlineRecord(text)); });
          },
          py::arg("text"),
          "Goes on from what to_json told.\n\n"
          "Raises InputError for text of another version, cluster, workload or device.")
      .def("__repr__",
           [](const BoundCalibration& c) {
             return fmt::format("<OnlineCalibration of {} on {}: {} rows{}>", c.workload.name,
                                c.job->start().name, c.rows(), c.drifted() ? ", drifted" : "");
           })
      .def(py::pickle(
          [](const BoundCalibration& c) {
            return py::make_tuple(c.job->start(), c.workload, c.device.facts, c.device.name,
                                  c.text());
          },
          [](const py::tuple& state) {
            if (state.size() != 5) {
              throw InputError({"", 0, "state"}, std::to_string(state.size()),
                               "are not the parts of a saved calibration", "5");
            }
            BoundCalibration c{
                state[1].cast<Workload>(),
                {state[2].cast<std::optional<Device>>(), state[3].cast<std::string>()},
                nullptr,
                std::make_shared<std::mutex>()};
            c.job = std::make_shared<OnlineCalibration>(state[0].cast<Cluster>(), c.workload,
                                                        c.device.facts, c.device.name);
            c.job->Import(ParseOnlineRecord(state[4].cast<std::string>()));
            return c;
          }));
}

}  // namespace

void BindOnlineCalibration(py::module_* m) {
  BindObservation(m);
  BindCalibration(m);
  BindFleet(m);
}

}  // namespace stepcast::python
