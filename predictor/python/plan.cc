// stepcast.Plan: the question, by keywords.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "data/plan/check.h"
#include "data/plan/fields.h"
#include "data/plan/limits.h"
#include "data/values/names.h"
#include "data/values/placement.h"
#include "predictor/python/bindings.h"

namespace stepcast::python {
namespace {

// A part of a plan: keyword of the constructor and property.
struct PlanKeyword {
  const char* name;
  const char* flag;  // in data/plan/fields.h, whose check names it
  void (*set)(py::handle value, const char* name, Plan* plan);
  py::object (*get)(const Plan& plan);
  const char* doc;
};

template <auto Member>
void SetInt(py::handle value, const char* name, Plan* plan) {
  plan->*Member = IntOf(value, name);
}
template <auto Member>
py::object GetInt(const Plan& plan) {
  return py::int_(plan.*Member);
}

template <auto Part, auto Field>
void SetSi(py::handle value, const char* name, Plan* plan) {
  auto& field = plan->*Part.*Field;
  field = std::decay_t<decltype(*field)>::FromSi(RealOf(value, name));
}
template <auto Part, auto Field>
py::object GetSi(const Plan& plan) {
  return SiOrNone(plan.*Part.*Field);
}

template <auto Field>
void SetServerOption(py::handle value, const char* name, Plan* plan) {
  if (!py::isinstance<py::bool_>(value)) {
    throw InputError(Keyword(name), ReprOf(value), "is neither True nor False", "True, False");
  }
  plan->server.*Field = value.cast<bool>();
}
template <auto Field>
py::object GetServerOption(const Plan& plan) {
  return py::bool_(plan.server.*Field);
}

std::vector<std::string> TextsOf(py::handle value, const char* name) {
  std::vector<std::string> texts;
  for (const py::handle text : value) texts.push_back(TextOf(text, name));
  return texts;
}

const std::vector<PlanKeyword>& Keywords() {
  static const std::vector<PlanKeyword> keywords = {
      {"placement", "placement",
       [](py::handle value, const char* name, Plan* plan) {
         if (py::isinstance<py::str>(value)) {
           plan->placement = ParsePlacement(TextOf(value, name), Keyword(name));
           return;
         }
         plan->placement.clear();
         for (const py::handle devices : value) plan->placement.push_back(IntOf(devices, name));
       },
       [](const Plan& plan) -> py::object { return py::cast(plan.placement); },
       "list of int : devices used on each node, like [4, 4, 2] or \"4-4-2\""},
      {"hosts", "hosts",
       [](py::handle value, const char* name, Plan* plan) { plan->hosts = TextsOf(value, name); },
       [](const Plan& plan) -> py::object { return py::cast(plan.hosts); },
       "list of str : names of the nodes, in placement order"},
      {"strategy", "strategy",
       [](py::handle value, const char* name, Plan* plan) {
         plan->strategy = ParseStrategy(TextOf(value, name), Keyword(name));
       },
       [](const Plan& plan) -> py::object { return py::str(StrategyName(plan.strategy)); },
       "str : none, allreduce, ring, tree, halving-doubling, hierarchical, ps-sync, ps-async, "
       "byteps, auto"},
      {"servers", "servers", SetInt<&Plan::servers>, GetInt<&Plan::servers>,
       "int : parameter servers (ps-sync, ps-async), helpers (byteps)"},
      {"local_batch", "local-batch", SetInt<&Plan::local_batch>, GetInt<&Plan::local_batch>,
       "int : samples of one micro-step on one device"},
      {"accumulation_steps", "accumulation", SetInt<&Plan::accumulation_steps>,
       GetInt<&Plan::accumulation_steps>, "int : micro-steps between synchronisations"},
      {"bandwidth_bytes_per_s", "bandwidth", SetSi<&Plan::link, &LinkFacts::bandwidth>,
       GetSi<&Plan::link, &LinkFacts::bandwidth>,
       "float : line rate of a node's link, each way [bytes/s]"},
      {"rtt_s", "rtt", SetSi<&Plan::link, &LinkFacts::rtt>, GetSi<&Plan::link, &LinkFacts::rtt>,
       "float : round-trip time between nodes [s]"},
      {"loss_rate", "loss",
       [](py::handle value, const char* name, Plan* plan) {
         plan->link.loss = RealOf(value, name);
       },
       [](const Plan& plan) { return OrNone(plan.link.loss); },
       "float : probability that a packet is lost, in [0, 1)"},
      {"congestion_control", "congestion-control",
       [](py::handle value, const char* name, Plan* plan) {
         plan->link.congestion_control = ParseCongestionControl(TextOf(value, name), Keyword(name));
       },
       [](const Plan& plan) -> py::object {
         if (!plan.link.congestion_control) return py::none();
         return py::str(kCongestionControlNames[static_cast<int>(*plan.link.congestion_control)]);
       },
       "str : how TCP answers loss: reno, cubic, bbr"},
      {"loss_burst_s", "loss-burst", SetSi<&Plan::link, &LinkFacts::loss_burst>,
       GetSi<&Plan::link, &LinkFacts::loss_burst>,
       "float : packets within so long are lost together [s]"},
      {"server_bandwidth_bytes_per_s", "server-bandwidth",
       SetSi<&Plan::server_link, &LinkFacts::bandwidth>,
       GetSi<&Plan::server_link, &LinkFacts::bandwidth>,
       "float : line rate of a server's link [bytes/s]"},
      {"bucket_bytes", "bucket",
       [](py::handle value, const char* name, Plan* plan) {
         plan->bucket = Bytes(RealOf(value, name));
       },
       [](const Plan& plan) { return SiOrNone(plan.bucket); },
       "float : cap of a gradient bucket [bytes]"},
      {"overlap", "overlap",
       [](py::handle value, const char* name, Plan* plan) {
         plan->overlap = ParseOverlap(TextOf(value, name), Keyword(name));
       },
       [](const Plan& plan) -> py::object {
         return py::str(kOverlapNames[static_cast<int>(plan.overlap)]);
       },
       "str : how synchronisation hides behind the backward pass: buckets, none, p-norm"},
      {"backup_workers", "backup-workers", SetInt<&Plan::backup_workers>,
       GetInt<&Plan::backup_workers>, "int : slowest workers that a step does not wait for"},
      {"colocated_servers", "colocated-servers", SetServerOption<&ServerOptions::colocated>,
       GetServerOption<&ServerOptions::colocated>, "bool : servers run on the workers' nodes"},
      {"sharding", "sharding",
       [](py::handle value, const char* name, Plan* plan) {
         plan->server.sharding = ParseSharding(TextOf(value, name), Keyword(name));
       },
       [](const Plan& plan) -> py::object {
         return py::str(kShardingNames[static_cast<int>(plan.server.sharding)]);
       },
       "str : how the model is spread over servers: tensor, even, round-robin"},
      {"pipelined_servers", "pipelined-servers", SetServerOption<&ServerOptions::pipelined>,
       GetServerOption<&ServerOptions::pipelined>,
       "bool : a bucket is pulled as soon as it has been pushed (ps-sync)"},
      {"multicast", "multicast", SetServerOption<&ServerOptions::multicast>,
       GetServerOption<&ServerOptions::multicast>,
       "bool : the network copies what servers distribute (ps-sync)"},
      {"in_network_aggregation", "in-network-aggregation",
       SetServerOption<&ServerOptions::in_network_aggregation>,
       GetServerOption<&ServerOptions::in_network_aggregation>,
       "bool : the network adds up what workers push (ps-sync)"},
      {"staleness_bound", "staleness-bound",
       [](py::handle value, const char* name, Plan* plan) {
         plan->server.staleness_bound = IntOf(value, name);
       },
       [](const Plan& plan) -> py::object { return py::cast(plan.server.staleness_bound); },
       "int : ps-async: steps that a worker may be ahead of the slowest"},
  };
  return keywords;
}

// The layout that two or three of the numbers say; those not given are 0.
Placement LayOut(int workers, int nodes, int devices_per_node) {
  const auto refuse = [&](const char* name, int value, const std::string& problem,
                          const char* allowed) {
    throw InputError(Keyword(name), std::to_string(value), problem, allowed);
  };
  if (workers > 0 && nodes > 0) {
    if (nodes > workers) refuse("nodes", nodes, "are more than the workers", "at most workers");
    if (devices_per_node == 0) {
      Placement placement(static_cast<std::size_t>(nodes), workers / nodes);
      for (int i = 0; i < workers % nodes; ++i) ++placement[static_cast<std::size_t>(i)];
      return placement;
    }
    // The fullest node first; no node is empty.
    int left = workers - devices_per_node - (nodes - 1);
    if (left < 0 || workers > static_cast<long long>(nodes) * devices_per_node) {
      refuse("devices_per_node", devices_per_node,
             fmt::format("on the fullest of {} nodes does not make {} workers", nodes, workers),
             "workers / nodes, rounded up");
    }
    Placement placement(static_cast<std::size_t>(nodes), 1);
    placement.front() = devices_per_node;
    for (std::size_t i = 1; i < placement.size(); ++i) {
      const int more = std::min(left, devices_per_node - 1);
      placement[i] += more;
      left -= more;
    }
    return placement;
  }
  if (workers > 0 && devices_per_node > 0) return FillNodes(workers, devices_per_node);
  if (nodes > 0 && devices_per_node > 0) {
    return Placement(static_cast<std::size_t>(nodes), devices_per_node);
  }
  constexpr const char* kHow = "two of workers, nodes and devices_per_node, or placement";
  if (workers > 1) refuse("workers", workers, "do not say on how many nodes", kHow);
  if (nodes > 0) refuse("nodes", nodes, "do not say how many devices each", kHow);
  if (devices_per_node > 0) {
    refuse("devices_per_node", devices_per_node, "do not say on how many nodes", kHow);
  }
  return {1};
}

Plan MakePlan(const py::kwargs& kwargs) {
  Plan plan;
  int layout[] = {0, 0, 0};
  constexpr const char* kLayout[] = {"workers", "nodes", "devices_per_node"};
  bool has_layout = false;
  bool has_placement = false;
  for (const auto& [key, value] : kwargs) {
    const auto name = key.cast<std::string>();
    if (value.is_none()) continue;
    if (const auto* at = std::find(std::begin(kLayout), std::end(kLayout), name);
        at != std::end(kLayout)) {
      const int number = IntOf(value, *at);
      if (number < 1 || number > kMostCount) {
        throw InputError(Keyword(*at), std::to_string(number), "is out of range",
                         fmt::format("a whole number from 1 to {}", kMostCount));
      }
      layout[at - kLayout] = number;
      has_layout = true;
      continue;
    }
    const auto known = std::find_if(Keywords().begin(), Keywords().end(),
                                    [&](const PlanKeyword& k) { return name == k.name; });
    if (known == Keywords().end()) {
      std::string allowed = "workers, nodes, devices_per_node";
      for (const PlanKeyword& k : Keywords()) allowed += std::string(", ") + k.name;
      throw InputError(Keyword("Plan"), name, "is not a part of a plan", allowed);
    }
    if (name == "placement") has_placement = true;
    known->set(value, known->name, &plan);
  }
  if (has_layout && has_placement) {
    throw InputError(Keyword("placement"), FormatPlacement(plan.placement),
                     "says the same as workers, nodes and devices_per_node", "one of the two");
  }
  if (has_layout) plan.placement = LayOut(layout[0], layout[1], layout[2]);
  CheckPlan(plan, [](const PlanField& field) {
    for (const PlanKeyword& k : Keywords()) {
      if (std::string_view(k.flag) == field.flag) return Keyword(k.name);
    }
    return Keyword(field.column);
  });
  return plan;
}

// The keywords that make the plan, without those that say the default.
py::dict PlanDict(const Plan& plan) {
  static const Plan kDefault;
  py::dict dict;
  for (const PlanKeyword& k : Keywords()) {
    py::object value = k.get(plan);
    if (&k == &Keywords().front() || !value.equal(k.get(kDefault))) dict[k.name] = value;
  }
  return dict;
}

Plan Replace(const Plan& plan, const py::kwargs& changes) {
  py::kwargs all = py::reinterpret_borrow<py::kwargs>(PlanDict(plan));
  for (const char* name : {"workers", "nodes", "devices_per_node"}) {
    if (!changes.contains(name) || changes[name].is_none()) continue;
    for (const char* replaced : {"placement", "hosts"}) {
      if (all.contains(replaced)) all.attr("pop")(replaced);
    }
  }
  for (const auto& [key, value] : changes) all[key] = value;
  return MakePlan(all);
}

std::string Doc() {
  std::string doc =
      "How a workload is spread over a cluster: the question that a prediction answers.\n\n"
      "The layout is said by `placement`, or by two of `workers`, `nodes` and `devices_per_node`\n"
      "(with all three, devices_per_node is that of the fullest node). What is not given is the\n"
      "default: one worker, strategy allreduce, local batch 1, one micro-step; of the links, what "
      "the\ncluster says. None stands for not given.\n\nParameters\n"
      "    workers : int : devices in all\n    nodes : int : in use\n"
      "    devices_per_node : int : in use on the fullest node\n";
  for (const PlanKeyword& k : Keywords()) doc += fmt::format("    {} : {}\n", k.name, k.doc);
  return doc + "\nRaises InputError for a plan that no model covers.";
}

}  // namespace

std::string PlanRepr(const Plan& plan) {
  std::string text = "Plan(";
  for (const auto& [key, value] : PlanDict(plan)) {
    text += (text.back() == '(' ? "" : ", ") + key.cast<std::string>() + "=" + ReprOf(value);
  }
  return text + ")";
}

void BindPlan(py::module_* m) {
  static const std::string kDoc = Doc();
  py::class_<Plan> plan(*m, "Plan", kDoc.c_str());
  plan.def(py::init(&MakePlan))
      .def_property_readonly("workers", &Plan::workers, "int : devices in all")
      .def_property_readonly("nodes", &Plan::nodes, "int : nodes in use")
      .def_property_readonly(
          "devices_per_node", [](const Plan& p) { return DevicesOnFullestNode(p.placement); },
          "int : devices in use on the fullest node")
      .def_property_readonly("global_batch", &Plan::global_batch, "float : samples of one step")
      .def("to_dict", &PlanDict, "The keywords that make the plan; defaults are left out.")
      .def("replace", &Replace, "The plan with some keywords changed.")
      .def("__eq__",
           [](const Plan& a, const py::object& b) {
             return py::isinstance<Plan>(b) && PlanDict(a).equal(PlanDict(b.cast<Plan>()));
           })
      .def("__repr__", &PlanRepr)
      .def(py::pickle(&PlanDict, [](const py::dict& dict) {
        return MakePlan(py::reinterpret_borrow<py::kwargs>(dict));
      }));
  for (const PlanKeyword& k : Keywords()) {
    plan.def_property_readonly(k.name, py::cpp_function(k.get), k.doc);
  }
}

}  // namespace stepcast::python
