// Records in Python: devices, clusters with what a calibration learnt, workloads, measured runs.
#include <fmt/format.h>

#include <vector>

#include "data/io/machines.h"
#include "data/io/runs.h"
#include "data/io/workload_file.h"
#include "data/values/suggest.h"
#include "data/values/training_facts.h"
#include "data/values/workload_scope.h"
#include "data/workloads/catalog.h"
#include "model/step/belief.h"
#include "predictor/python/bindings.h"

namespace stepcast::python {
namespace {

// ---- Devices.

// Every attribute, in the order in which a Device is pickled.
py::tuple DeviceState(const Device& d) {
  return py::make_tuple(d.name, d.title, d.source, d.aliases, SiOrNone(d.fp32), SiOrNone(d.tf32),
                        SiOrNone(d.fp16), SiOrNone(d.bf16), SiOrNone(d.memory),
                        SiOrNone(d.memory_bandwidth), OrNone(d.power_w), OrNone(d.multiprocessors),
                        SiOrNone(d.last_cache), OrNone(d.process_nm), SiOrNone(d.device_link),
                        SiOrNone(d.fp8), SiOrNone(d.host_link));
}

template <class Q>
std::optional<Q> FromSi(py::handle value) {
  if (value.is_none()) return std::nullopt;
  return Q::FromSi(value.cast<double>());
}

Device DeviceOf(const py::tuple& state) {
  Device d;
  d.name = state[0].cast<std::string>();
  d.title = state[1].cast<std::string>();
  d.source = state[2].cast<std::string>();
  d.aliases = state[3].cast<std::vector<std::string>>();
  d.fp32 = FromSi<WorkRate<>>(state[4]);
  d.tf32 = FromSi<WorkRate<>>(state[5]);
  d.fp16 = FromSi<WorkRate<>>(state[6]);
  d.bf16 = FromSi<WorkRate<>>(state[7]);
  d.memory = FromSi<DataSize<>>(state[8]);
  d.memory_bandwidth = FromSi<DataRate<>>(state[9]);
  if (!state[10].is_none()) d.power_w = state[10].cast<double>();
  if (!state[11].is_none()) d.multiprocessors = static_cast<int>(state[11].cast<double>());
  d.last_cache = FromSi<DataSize<>>(state[12]);
  if (!state[13].is_none()) d.process_nm = state[13].cast<double>();
  d.device_link = FromSi<DataRate<>>(state[14]);
  d.fp8 = FromSi<WorkRate<>>(state[15]);
  d.host_link = FromSi<DataRate<>>(state[16]);
  return d;
}

template <class Field>
auto SiProperty(Field Device::*field) {
  return [field](const Device& d) { return SiOrNone(d.*field); };
}

void BindDevice(py::module_* m) {
  py::class_<Device>(*m, "Device",
                     "One accelerator (or CPU) as its data sheet describes it; what is not known "
                     "is None.")
      .def_readonly("name", &Device::name, "str : key in files, like rtx_4090")
      .def_readonly("title", &Device::title, "str")
      .def_readonly("source", &Device::source, "str : where the figures stand")
      .def_readonly("aliases", &Device::aliases, "list of str")
      .def_property_readonly("fp32_flop_per_s", SiProperty(&Device::fp32), "float : dense peak")
      .def_property_readonly("tf32_flop_per_s", SiProperty(&Device::tf32), "float : dense peak")
      .def_property_readonly("fp16_flop_per_s", SiProperty(&Device::fp16), "float : dense peak")
      .def_property_readonly("bf16_flop_per_s", SiProperty(&Device::bf16), "float : dense peak")
      .def_property_readonly("fp8_flop_per_s", SiProperty(&Device::fp8), "float : dense peak")
      .def_property_readonly("memory_bytes", SiProperty(&Device::memory), "float")
      .def_property_readonly("memory_bandwidth_bytes_per_s", SiProperty(&Device::memory_bandwidth),
                             "float")
      .def_property_readonly(
          "power_w", [](const Device& d) { return OrNone(d.power_w); }, "float : of a busy device")
      .def("__repr__", [](const Device& d) { return fmt::format("<Device {}>", d.name); })
      .def(py::pickle(&DeviceState, &DeviceOf));
  m->def("read_devices", &ReadDevices, py::arg("path"));
  m->def("find_device", &FindDevice, py::arg("devices"), py::arg("name"));
}

// ---- Clusters.

// A row of a table in HTML.
std::string Row(const std::string& cells, const char* tag = "td") {
  return fmt::format("<tr><{0}>{1}</{0}></tr>", tag, cells);
}
std::string Cells(const std::vector<std::string>& cells, const char* tag = "td") {
  std::string text;
  for (const std::string& cell : cells) {
    text += (text.empty() ? "" : fmt::format("</{0}><{0}>", tag)) + Escaped(cell);
  }
  return text;
}

std::string ClusterHtml(const Cluster& c) {
  std::string html = fmt::format("<b>{}</b>: {} nodes with {} {}<br>", Escaped(c.title), c.nodes,
                                 c.devices_per_node, Escaped(c.device));
  if (!c.calibration) return html + "not calibrated";
  html += "<table>" +
          Row(Cells({"of", "parameter", "value", "95 % interval", "decided by"}, "th"), "th");
  for (const ParameterEstimate& p : c.calibration->parameters) {
    const std::string unit = p.unit.empty() ? "" : " " + p.unit;
    html += Row(Cells({p.scope, p.name, fmt::format("{:.3g}{}", p.value, unit),
                       p.low > 0 ? fmt::format("{:.3g} - {:.3g}", p.low, p.high) : std::string(),
                       kDecidedByNames[static_cast<int>(p.decided_by)]}));
  }
  return html + "</table>";
}

// What Python shows of an estimate, in the order in which it is pickled.
py::tuple ParameterState(const ParameterEstimate& p) {
  return py::make_tuple(p.scope, p.name, p.value, p.unit, p.log_sd, p.low, p.high,
                        static_cast<int>(p.decided_by));
}

ParameterEstimate ParameterOf(const py::tuple& state) {
  ParameterEstimate p;
  p.scope = state[0].cast<std::string>();
  p.name = state[1].cast<std::string>();
  p.value = state[2].cast<double>();
  p.unit = state[3].cast<std::string>();
  p.log_sd = state[4].cast<double>();
  p.low = state[5].cast<double>();
  p.high = state[6].cast<double>();
  p.decided_by = static_cast<DecidedBy>(state[7].cast<int>());
  return p;
}

void BindCluster(py::module_* m) {
  py::class_<ParameterEstimate>(*m, "Parameter", "One fitted parameter: ln(value) is normal.")
      .def_readonly("scope", &ParameterEstimate::scope,
                    "str : what it belongs to: \"cluster\", \"workload resnet50 on t4\"")
      .def_readonly("name", &ParameterEstimate::name, "str")
      .def_readonly("value", &ParameterEstimate::value, "float : in `unit`")
      .def_readonly("unit", &ParameterEstimate::unit, "str : empty for a plain number")
      .def_readonly("log_sd", &ParameterEstimate::log_sd, "float : standard error of ln(value)")
      .def_readonly("low", &ParameterEstimate::low, "float : of the 95 % interval; 0: not known")
      .def_readonly("high", &ParameterEstimate::high, "float : of the 95 % interval; 0: not known")
      .def_property_readonly(
          "decided_by",
          [](const ParameterEstimate& p) {
            return kDecidedByNames[static_cast<int>(p.decided_by)];
          },
          "str : data, both, prior, stated")
      .def("__repr__",
           [](const ParameterEstimate& p) {
             return fmt::format("<Parameter {} of {}: {:.4g}{}{}>", p.name, p.scope, p.value,
                                p.unit.empty() ? "" : " ", p.unit);
           })
      .def(py::pickle(&ParameterState, &ParameterOf));

  const auto parse = [](const std::string& text, const std::string& path) {
    return WithUsableCalibration(ParseCluster(text, path), path);
  };
  const auto read = [](const std::string& path) {
    return WithUsableCalibration(ReadCluster(path), path);
  };
  py::class_<Cluster>(*m, "Cluster",
                      "A cluster, with its calibration where it has one. Made by read_cluster, "
                      "cluster, parse_cluster,\ncalibrate and OnlineCalibration.")
      .def_readonly("name", &Cluster::name, "str")
      .def_readonly("title", &Cluster::title, "str")
      .def_readonly("source", &Cluster::source, "str")
      .def_readonly("device", &Cluster::device, "str : name of its device")
      .def_readonly("device_facts", &Cluster::device_facts,
                    "Device : where the cluster file itself describes it, else None")
      .def_readonly("nodes", &Cluster::nodes, "int")
      .def_readonly("devices_per_node", &Cluster::devices_per_node, "int")
      .def_readonly("nics_per_node", &Cluster::nics_per_node, "int : network links of a node")
      .def_property_readonly(
          "bandwidth_bytes_per_s", [](const Cluster& c) { return SiOrNone(c.link.bandwidth); },
          "float : as stated of a node's link, each way [bytes/s]")
      .def_property_readonly(
          "rtt_s", [](const Cluster& c) { return SiOrNone(c.link.rtt); },
          "float : as stated of the link [s]")
      .def_property_readonly(
          "loss_rate", [](const Cluster& c) { return OrNone(c.link.loss); },
          "float : as stated of the link, in [0, 1)")
      .def_property_readonly(
          "hosts",
          [](const Cluster& c) {
            std::vector<std::string> names;
            for (const Host& host : c.hosts) names.push_back(host.name);
            return names;
          },
          "list of str : named hosts")
      .def_property_readonly(
          "calibrated", [](const Cluster& c) { return c.calibration.has_value(); }, "bool")
      .def_property_readonly(
          "parameters",
          [](const Cluster& c) {
            return c.calibration ? c.calibration->parameters : std::vector<ParameterEstimate>();
          },
          "list of Parameter : as calibrated; empty without a calibration")
      .def("to_yaml", &FormatCluster, "The cluster file; parse_cluster gives the cluster back.")
      .def("__eq__",
           [](const Cluster& a, const py::object& b) {
             return py::isinstance<Cluster>(b) &&
                    FormatCluster(a) == FormatCluster(b.cast<const Cluster&>());
           })
      .def("__hash__", [](const Cluster& c) { return py::hash(py::str(FormatCluster(c))); })
      .def("__repr__",
           [](const Cluster& c) {
             return fmt::format("<Cluster {}: {} x {} {}, {}>", c.name, c.nodes, c.devices_per_node,
                                c.device, c.calibration ? "calibrated" : "not calibrated");
           })
      .def("_repr_html_", &ClusterHtml)
      .def(py::pickle(&FormatCluster,
                      [](const std::string& text) { return ParseCluster(text, "pickle"); }));
  m->def("read_cluster", read, py::arg("path"));
  m->def("parse_cluster", parse, py::arg("text"), py::arg("path") = "",
         "The cluster of a cluster file's text. `path` is what errors name.");
}

// ---- Workloads.

Workload TrainedOtherwise(Workload workload, const std::optional<std::string>& precision,
                          const std::optional<std::string>& optimizer,
                          const std::optional<std::string>& attention,
                          const std::optional<std::string>& recompute) {
  for (const auto& [key, word] : {std::pair("precision", &precision),
                                  {"optimizer", &optimizer},
                                  {"attention", &attention},
                                  {"recompute", &recompute}}) {
    if (*word) FindTrainingFact(key)->Read(**word, Keyword(key), &workload);
  }
  return workload;
}

void BindWorkload(py::module_* m) {
  py::class_<Workload>(*m, "Workload", "What is trained: a network, or its size alone.")
      .def_readonly("name", &Workload::name, "str")
      .def_readonly("title", &Workload::title, "str")
      .def_readonly("source", &Workload::source, "str")
      .def_readonly("parameters", &Workload::parameters, "int : all that are stored")
      .def_readonly("trainable_parameters", &Workload::trainable_parameters,
                    "int : those with a gradient")
      .def_property_readonly(
          "gradient_bytes", [](const Workload& w) { return w.gradient_bytes.in(kBytes); },
          "float : what one worker contributes to a synchronisation [bytes]")
      .def_property_readonly(
          "layers", [](const Workload& w) { return w.layers.size(); },
          "int : how many; 0 where only the totals are known")
      .def_property_readonly(
          "forward_flop", [](const Workload& w) { return w.forward_flop().si(); },
          "float : forward work for one sample [FLOP]; 0 without layers")
      .def_readonly("inputs_vary", &Workload::inputs_vary,
                    "bool or None : whether samples differ in size; None where nobody says")
      .def_property_readonly(
          "precision", [](const Workload& w) { return NameOf(w.precision); },
          "str : what it computes in: fp32, tf32, fp16, bf16 or fp8")
      .def_property_readonly(
          "optimizer", [](const Workload& w) { return NameOf(w.optimizer); },
          "str : what updates its parameters: sgd, momentum or adam")
      .def_property_readonly(
          "attention", [](const Workload& w) { return NameOf(w.attention); },
          "str : how its attention is computed: plain or fused")
      .def_property_readonly(
          "recompute", [](const Workload& w) { return NameOf(w.recompute); },
          "str : which of its activations are recomputed: none, selective or full")
      .def("replace", &TrainedOtherwise, py::kw_only(), py::arg("precision") = py::none(),
           py::arg("optimizer") = py::none(), py::arg("attention") = py::none(),
           py::arg("recompute") = py::none(),
           "The workload trained in another way; what is None stays as it is.")
      .def(
          "as_fitted",
          [](Workload workload, const Cluster& cluster) {
            if (cluster.calibration) TrainAsFitted(*cluster.calibration, "", {}, &workload);
            return workload;
          },
          py::arg("cluster"),
          "The workload trained as the cluster's calibrated runs of it were, in each fact on which "
          "all of them agree. Where it has none, as those of all other workloads were, in each "
          "fact on which these agree and of which the workload itself says nothing: forecasts "
          "then say so. Else as it is.")
      .def("to_yaml", &FormatWorkload, "The workload file; parse_workload gives the workload back.")
      .def("__eq__",
           [](const Workload& a, const py::object& b) {
             return py::isinstance<Workload>(b) &&
                    FormatWorkload(a) == FormatWorkload(b.cast<const Workload&>());
           })
      .def("__hash__", [](const Workload& w) { return py::hash(py::str(FormatWorkload(w))); })
      .def("__repr__",
           [](const Workload& w) {
             return fmt::format("<Workload {}: {} parameters, {} layers>", w.name, w.parameters,
                                w.layers.size());
           })
      .def(py::pickle(&FormatWorkload,
                      [](const std::string& text) { return ParseWorkload(text, "pickle"); }));
  m->def("find_workload", &FindWorkload, py::arg("name"));
  m->def(
      "did_you_mean",
      [](const std::string& text, const std::vector<std::string>& names) {
        return DidYouMean(text, names);
      },
      py::arg("text"), py::arg("names"));
  m->def(
      "did_you_mean_workload",
      [](const std::string& name) { return DidYouMeanWorkload(name, WorkloadNames()); },
      py::arg("name"));
  m->def("workload_names", &WorkloadNames, "Names of the catalogue.");
  m->def("read_workload", &ReadWorkload, py::arg("path"), "The workload of a workload file.");
  m->def("parse_workload", &ParseWorkload, py::arg("text"), py::arg("path") = "",
         "The workload of a workload file's text. `path` is what errors name.");
}

// ---- Runs.

// A run that was read keeps where it stands in its file.
py::tuple RunState(const Run& r) {
  return py::make_tuple(r.workload, r.device, r.plan, r.step_time.in(kSeconds),
                        SiOrNone(r.exposed_sync), r.source, r.place.file, r.place.line, r.stopped,
                        SiOrNone(r.spread.sd), SiOrNone(r.spread.p50), SiOrNone(r.spread.p95),
                        SiOrNone(r.spread.p99));
}

Run RunOf(const py::tuple& state) {
  constexpr std::size_t kParts = 13;
  if (state.size() != kParts) throw py::value_error("a Run of another version");
  Run run;
  run.workload = state[0].cast<std::string>();
  run.device = state[1].cast<std::string>();
  run.plan = state[2].cast<Plan>();
  run.step_time = Seconds(state[3].cast<double>());
  run.exposed_sync = FromSi<Duration<>>(state[4]);
  run.source = state[5].cast<std::string>();
  run.place = {state[6].cast<std::string>(), state[7].cast<int>(), ""};
  run.stopped = state[8].cast<bool>();
  run.spread = {FromSi<Duration<>>(state[9]), FromSi<Duration<>>(state[10]),
                FromSi<Duration<>>(state[11]), FromSi<Duration<>>(state[12])};
  return run;
}

void BindRun(py::module_* m) {
  py::class_<Run>(*m, "Run", "One measured run: a plan, and how long its step took.")
      .def(py::init(
               [](std::string workload, std::string device, const Plan& plan, double step_time_s,
                  const std::optional<double>& exposed_sync_s, std::string source, bool stopped,
                  const std::optional<double>& step_time_sd_s, const std::optional<double>& p50_s,
                  const std::optional<double>& p95_s, const std::optional<double>& p99_s) {
                 Run run;
                 run.workload = std::move(workload);
                 run.device = std::move(device);
                 run.plan = plan;
                 run.step_time = Seconds(step_time_s);
                 if (exposed_sync_s) run.exposed_sync = Seconds(*exposed_sync_s);
                 run.source = std::move(source);
                 run.stopped = stopped;
                 const auto time = [](const std::optional<double>& si) {
                   return si ? std::optional<Duration<>>(Seconds(*si)) : std::nullopt;
                 };
                 run.spread = {time(step_time_sd_s), time(p50_s), time(p95_s), time(p99_s)};
                 return run;
               }),
           py::arg("workload"), py::arg("device"), py::arg("plan"), py::arg("step_time_s"),
           py::arg("exposed_sync_s") = py::none(), py::arg("source") = "",
           py::arg("stopped") = false, py::arg("step_time_sd_s") = py::none(),
           py::arg("p50_s") = py::none(), py::arg("p95_s") = py::none(),
           py::arg("p99_s") = py::none(),
           "Parameters\n"
           "    workload : str : its name\n    device : str : what it ran on\n"
           "    plan : Plan\n"
           "    step_time_s : float : a worker's wall time from one optimizer step to its next\n"
           "    exposed_sync_s : float : the part of it that synchronisation shows, if measured\n"
           "    source : str : where it was measured; a calibration counts its runs by it\n"
           "    stopped : bool : whether it was stopped before a step ended; step_time_s is then a "
           "lower bound\n"
           "    step_time_sd_s : float : standard deviation of its steps, if measured\n"
           "    p50_s, p95_s, p99_s : float : so long took so many per cent of its steps, if "
           "measured")
      .def_readonly("workload", &Run::workload, "str")
      .def_readonly("device", &Run::device, "str")
      .def_readonly("plan", &Run::plan, "Plan")
      .def_readonly("source", &Run::source, "str : where it was measured")
      .def_property_readonly(
          "step_time_s", [](const Run& r) { return r.step_time.in(kSeconds); }, "float")
      .def_property_readonly(
          "exposed_sync_s", [](const Run& r) { return SiOrNone(r.exposed_sync); }, "float")
      .def_readonly("stopped", &Run::stopped, "bool")
      .def_property_readonly(
          "step_time_sd_s", [](const Run& r) { return SiOrNone(r.spread.sd); }, "float")
      .def_property_readonly(
          "p50_s", [](const Run& r) { return SiOrNone(r.spread.p50); }, "float")
      .def_property_readonly(
          "p95_s", [](const Run& r) { return SiOrNone(r.spread.p95); }, "float")
      .def_property_readonly(
          "p99_s", [](const Run& r) { return SiOrNone(r.spread.p99); }, "float")
      .def("__repr__",
           [](const Run& r) {
             return fmt::format("<Run of {} on {}: {:.4g} s, {}>", r.workload, r.device,
                                r.step_time.in(kSeconds), PlanRepr(r.plan));
           })
      .def(py::pickle(&RunState, &RunOf));
  m->def("read_runs", &ReadRuns, py::arg("path"),
         "The runs of a CSV file (docs/reference/formats.md), in its order.");
}

}  // namespace

void BindRecords(py::module_* m) {
  BindDevice(m);
  BindCluster(m);
  BindWorkload(m);
  BindRun(m);
}

}  // namespace stepcast::python
