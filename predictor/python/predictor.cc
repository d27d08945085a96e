// stepcast.Predictor and what it answers.
#include "predictor/predictor.h"

#include <fmt/format.h>

#include "data/values/device_name.h"
#include "predictor/json/json.h"
#include "predictor/prediction_fields.h"
#include "predictor/python/bindings.h"
#include "predictor/report/terminal.h"
#include "predictor/search/unequal.h"

namespace stepcast::python {
namespace {

std::string TitleOf(const BoundPredictor& p) {
  return fmt::format("{} on {} ({})", p.workload.name, p.predictor.cluster().name,
                     p.predictor.device());
}

struct BoundPrediction {
  Prediction prediction;
  Plan plan;
  SharedPredictor predictor;

  const StepTime<double>& step() const { return prediction.breakdown; }
};

BoundPrediction Ask(const SharedPredictor& predictor, const Plan& plan) {
  return {predictor->predictor.Predict(plan), plan, predictor};
}

py::dict DictOf(const Json& json) {
  return py::module_::import("json").attr("loads")(JsonText(json));
}

// As the program's --json, to the key.
py::dict PredictionDict(const BoundPrediction& p) {
  return DictOf(PredictionJson(p.prediction, p.plan,
                               {p.predictor->predictor.cluster(), p.predictor->workload,
                                p.predictor->predictor.device(), p.predictor->device.facts}));
}

std::string Summary(const Prediction& p) {
  return fmt::format("{} (90 % interval {} to {})", FormatDuration(p.step_time),
                     FormatDuration(p.low), FormatDuration(p.high));
}

std::string PredictionHtml(const BoundPrediction& p) {
  std::string html = fmt::format(
      "<b>{}</b><br>{}<br>step {}<table><tr><th>part</th><th>time</th><th>share</th></tr>",
      Escaped(TitleOf(*p.predictor)), Escaped(PlanRepr(p.plan)), Summary(p.prediction));
  const auto row = [&](const char* name, Duration<> time) {
    html += fmt::format(
        "<tr><td>{}</td><td>{}</td><td><div style=\"background:#4878a8;height:0.8em;"
        "width:{:.0f}px\"></div></td></tr>",
        name, FormatDuration(time), 200 * (time / p.step().total()));
  };
  row("forward", p.step().forward);
  row("backward", p.step().backward);
  row("update", p.step().update);
  row("exposed transfer", p.step().exposed_transfer);
  row("exposed latency", p.step().exposed_latency);
  row("waiting for stragglers", p.step().straggler_wait);
  if (p.step().coding.si() > 0) row("coding", p.step().coding);
  if (p.step().input_wait.si() > 0) row("waiting for input", p.step().input_wait);
  html += "</table>";
  for (const std::string& flag : p.prediction.flags) {
    html += fmt::format("&#9888; {}<br>", Escaped(flag));
  }
  return html;
}

void BindPrediction(py::module_* m) {
  using P = BoundPrediction;
  const auto seconds = [](Duration<> Prediction::*time) {
    return [time](const P& p) { return (p.prediction.*time).in(kSeconds); };
  };
  const auto part = [](const char* name) {
    return [name](const P& p) -> py::object { return PredictionDict(p).attr("get")(name); };
  };
  py::class_<P>(*m, "Prediction", "The answer to one plan. Times are in seconds.")
      .def_property_readonly(
          "plan", [](const P& p) { return p.plan; }, "Plan : what was asked")
      .def_property_readonly("step_time_s", seconds(&Prediction::step_time), "float")
      .def_property_readonly("low_s", seconds(&Prediction::low),
                             "float : of the 90 % prediction interval of one measured step")
      .def_property_readonly("high_s", seconds(&Prediction::high),
                             "float : of the 90 % prediction interval of one measured step")
      .def_property_readonly("p50_s", seconds(&Prediction::p50), "float : median of the steps")
      .def_property_readonly("p95_s", seconds(&Prediction::p95),
                             "float : 95 in 100 steps take at most so long")
      .def_property_readonly("p99_s", seconds(&Prediction::p99),
                             "float : 99 in 100 steps take at most so long")
      .def_property_readonly(
          "log_sd", [](const P& p) { return p.prediction.log_sd; },
          "float : standard deviation of ln(measured / predicted)")
      .def_property_readonly(
          "throughput_samples_per_s",
          [](const P& p) { return p.prediction.throughput.in(kSamplesPerSecond); },
          "float : of all workers")
      .def_property_readonly(
          "work", part("work"),
          "dict : FLOP/s of each device, three times those of the forward pass, and their share of "
          "its peak (MFU), or None")
      .def_property_readonly("uncertainty", part("uncertainty"),
                             "dict : standard deviations of ln(measured / predicted), by cause")
      .def_property_readonly("quantiles", part("quantiles"),
                             "dict : so many in 100 steps take at most so long [s]")
      .def_property_readonly("breakdown", part("breakdown"),
                             "dict : parts of the step that add up to it [s]")
      .def_property_readonly(
          "synchronisation_s", [](const P& p) { return p.step().synchronisation.in(kSeconds); },
          "float : whole, hidden or not; with ps-async what shows")
      .def_property_readonly(
          "idle_ratio", [](const P& p) { return p.prediction.idle_ratio(); },
          "float : share of the step in which the device does no work of its own")
      .def_property_readonly("binding", part("binding"),
                             "dict : part of the step that binds, its share, and a sentence")
      .def_property_readonly("traffic", part("traffic"),
                             "dict : bytes of all buckets, transfers of each")
      .def_property_readonly("memory", part("memory"), "dict : need of one device, and a verdict")
      .def_property_readonly(
          "algorithm", [](const P& p) { return StrategyName(p.prediction.algorithm); },
          "str : what was evaluated: what a library takes for allreduce, what auto chose")
      .def_property_readonly("algorithm_reason", part("algorithm_reason"),
                             "str : why auto or the library chose it, or None")
      .def_property_readonly(
          "server_times", part("server_times"),
          "dict : push, update and pull of the whole model (ps-sync, ps-async), or None")
      .def_property_readonly("server_phases", part("server_phases"),
                             "dict : what the network's services save (ps-sync), or None")
      .def_property_readonly("async_servers", part("async_servers"),
                             "dict : queues of the servers (ps-async), or None")
      .def_property_readonly(
          "compute_source",
          [](const P& p) {
            return kComputeSourceNames[static_cast<int>(p.prediction.compute_source)];
          },
          "str : where the compute time comes from")
      .def_property_readonly(
          "flags", [](const P& p) { return p.prediction.flags; },
          "list of str : what to know before trusting the number")
      .def("to_dict", &PredictionDict, "All of it, with the keys of `stepcast predict --json`.")
      .def("__repr__",
           [](const P& p) {
             return fmt::format("<Prediction of {}: {}>", TitleOf(*p.predictor),
                                Summary(p.prediction));
           })
      .def("_repr_html_", &PredictionHtml)
      // Asked again, a predictor answers with the same bits.
      .def(py::pickle([](const P& p) { return py::make_tuple(p.predictor, p.plan); },
                      [](const py::tuple& state) {
                        return Ask(state[0].cast<SharedPredictor>(), state[1].cast<Plan>());
                      }));
}

}  // namespace

ChosenDevice ChooseDevice(py::handle device, const Cluster& cluster) {
  if (py::isinstance<Device>(device)) {
    const auto& facts = device.cast<const Device&>();
    return {facts, facts.name};
  }
  const std::string name = device.is_none() ? cluster.device : TextOf(device, "device");
  if (cluster.device_facts) {
    if (auto own = FindDevice({*cluster.device_facts}, name)) return {own, own->name};
  }
  const py::object shipped = py::module_::import("stepcast").attr("read_devices")();
  auto found = FindDevice(shipped.cast<std::vector<Device>>(), name);
  const std::string canonical = found ? found->name : name;
  return {std::move(found), canonical};
}

BoundPredictor::BoundPredictor(Cluster cluster, Workload of, ChosenDevice on)
    : predictor(std::move(cluster), of, on.facts, on.name),
      device(std::move(on)),
      workload(std::move(of)) {}

void BindPredictor(py::module_* m) {
  BindPrediction(m);
  py::class_<BoundPredictor, SharedPredictor>(
      *m, "Predictor",
      "A cluster, a workload and its device, asked about plans.\n\n"
      "Parameters come from the cluster's calibration where it has one, and from priors where it\n"
      "has none; intervals and flags of a prediction tell which. Many threads may ask one.")
      .def(py::init([](const Cluster& cluster, const Workload& workload, const py::object& device) {
             return std::make_shared<BoundPredictor>(cluster, workload,
                                                     ChooseDevice(device, cluster));
           }),
           py::arg("cluster"), py::arg("workload"), py::arg("device") = py::none(),
           "Parameters\n"
           "    cluster : Cluster\n    workload : Workload\n"
           "    device : str or Device : what the workload runs on; by default the cluster's\n\n"
           "Where nothing tells the compute time, it is a wide prior, and a flag says so.")
      .def_property_readonly(
          "cluster", [](const BoundPredictor& p) { return p.predictor.cluster(); }, "Cluster")
      .def_property_readonly(
          "workload", [](const BoundPredictor& p) { return p.workload; }, "Workload")
      .def_property_readonly(
          "device", [](const BoundPredictor& p) { return p.predictor.device(); }, "str : its name")
      .def(
          "predict",
          [](const SharedPredictor& p, const Plan& plan) {
            py::gil_scoped_release release;
            return Ask(p, plan);
          },
          py::arg("plan"),
          "One plan: step time with its interval, breakdown, traffic, memory, flags.\n\n"
          "Raises InputError for a plan that no model covers.")
      .def(
          "weigh_slow_nodes",
          [](const BoundPredictor& p, const Plan& plan) -> std::optional<py::dict> {
            std::optional<UnequalWorkers> unequal;
            {
              py::gil_scoped_release release;
              unequal = WeighSlowNodes(p.predictor, plan);
            }
            if (!unequal) return std::nullopt;
            return DictOf(UnequalJson(*unequal));
          },
          py::arg("plan"),
          "What it is worth to share a plan's samples out by speed, and whether its slow nodes "
          "help.\n\n"
          "Returns\n"
          "    dict or None : `equal` (the plan as it is), `by_speed` and `fast_only` (the slow\n"
          "        nodes rest), each with fast_local_batch and slow_local_batch [samples],\n"
          "        step_time_s and throughput_samples_per_s, or None where there is no such; and\n"
          "        `why_equal` where no shares by speed are better, and `worth`, the throughput "
          "with\n"
          "        the slow nodes over that of `fast_only`. None where no node is slow, where all\n"
          "        are, and where nobody waits for them (ps-async).\n\n"
          "Raises InputError for a plan that no model covers.")
      .def(
          "compile",
          [](SharedPredictor p, const Plan& plan, int most_servers) {
            py::gil_scoped_release release;
            return BoundPlan(std::move(p), plan, {most_servers});
          },
          py::arg("plan"), py::arg("most_servers") = CompileOptions().most_servers,
          "One kind of plan, to be asked many times: strategy, bucket, overlap, hosts and links\n"
          "are bound, and queries say the rest. They may ask for up to `most_servers` servers.")
      .def("__repr__",
           [](const BoundPredictor& p) { return fmt::format("<Predictor of {}>", TitleOf(p)); })
      .def(py::pickle(
          [](const BoundPredictor& p) {
            return py::make_tuple(p.predictor.cluster(), p.workload, p.device.facts, p.device.name);
          },
          [](const py::tuple& state) {
            return std::make_shared<BoundPredictor>(
                state[0].cast<Cluster>(), state[1].cast<Workload>(),
                ChosenDevice{state[2].cast<std::optional<Device>>(), state[3].cast<std::string>()});
          }));
}

}  // namespace stepcast::python
