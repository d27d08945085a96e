// stepcast.Plan: the question, by keywords.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "data/plan/check.h"
#include "data/plan/fields.h"
#include "data/plan/limits.h"
#include "data/values/compression.h"
#include "data/values/names.h"
#include "data/values/placement.h"
#include "predictor/python/bindings.h"

namespace stepcast::python {
namespace {

// ---- Values of Python, by the type of the field.

void Set(py::handle value, const char* name, int* field) { *field = IntOf(value, name); }
void Set(py::handle value, const char* name, double* field) { *field = RealOf(value, name); }
void Set(py::handle value, const char* name, bool* field) {
  if (!py::isinstance<py::bool_>(value)) {
    throw InputError(Keyword(name), ReprOf(value), "is neither True nor False", "True, False");
  }
  *field = value.cast<bool>();
}
void RequireIterable(py::handle value, const char* name, const char* what) {
  if (py::isinstance<py::iterable>(value)) return;
  throw InputError(Keyword(name), ReprOf(value), "is no list", what);
}
void Set(py::handle value, const char* name, Placement* field) {
  if (py::isinstance<py::str>(value)) {
    *field = ParsePlacement(TextOf(value, name), Keyword(name));
    return;
  }
  RequireIterable(value, name, "the devices of each node");
  field->clear();
  for (const py::handle devices : value) field->push_back(IntOf(devices, name));
}
void Set(py::handle value, const char* name, std::vector<std::string>* field) {
  if (py::isinstance<py::str>(value)) {
    *field = ParseHosts(TextOf(value, name), Keyword(name));
    return;
  }
  RequireIterable(value, name, "the name of each host");
  std::vector<std::string> names;
  for (const py::handle text : value) names.push_back(TextOf(text, name));
  *field = CheckedHosts(names, Keyword(name));
}
template <class E>
requires std::is_enum_v<E>
void Set(py::handle value, const char* name, E* field) {
  *field = ParseEnum<E>(TextOf(value, name), Keyword(name));
}
void Set(py::handle value, const char* name, Compression* field) {
  *field = ParseCompression(TextOf(value, name), Keyword(name));
}
template <class D>
void Set(py::handle value, const char* name, Quantity<D>* field) {
  *field = Quantity<D>::FromSi(RealOf(value, name));
}
template <class T>
void Set(py::handle value, const char* name, std::optional<T>* field) {
  T known{};
  Set(value, name, &known);
  *field = known;
}

template <class T>
py::object Get(const T& field) {
  return py::cast(field);
}
py::object Get(const Compression& field) { return py::str(FormatCompression(field)); }
template <class E>
requires std::is_enum_v<E> py::object Get(const E& field) { return py::str(NameOf(field)); }
template <class D>
py::object Get(const Quantity<D>& field) {
  return py::float_(field.si());
}
template <class T>
py::object Get(const std::optional<T>& field) {
  return field ? Get(*field) : py::none();
}

// What a docstring says of the type, and after the meaning: a unit, or the names that there are.
struct TypeText {
  const char* name;
  std::string more;
  const char* unit = nullptr;  // of a number; empty for a plain one
  double si = 1;               // of the unit of the column
};
TypeText Describe(int /*kind*/) { return {"int", "", ""}; }
TypeText Describe(double /*kind*/) { return {"float", "", ""}; }
TypeText Describe(bool /*kind*/) { return {"bool", ""}; }
TypeText Describe(const Placement& /*kind*/) { return {"list of int", ""}; }
TypeText Describe(const std::vector<std::string>& /*kind*/) { return {"list of str", ""}; }
TypeText Describe(const DataRate<>& kind) {
  return {"float", " [bytes/s]", "bytes/s", ColumnUnit(kind).si};
}
TypeText Describe(const Duration<>& kind) { return {"float", " [s]", "s", ColumnUnit(kind).si}; }
TypeText Describe(const DataSize<>& kind) {
  return {"float", " [bytes]", "bytes", ColumnUnit(kind).si};
}
TypeText Describe(const Compression& /*kind*/) { return {"str", ": " + CompressionNames()}; }
TypeText Describe(const SampleRate<>& kind) {
  return {"float", " [samples/s]", "samples/s", ColumnUnit(kind).si};
}
template <class E>
requires std::is_enum_v<E> TypeText Describe(E kind) {
  return {"str", ": " + JoinNames(NamesOf(kind).names)};
}
template <class T>
TypeText Describe(const std::optional<T>& /*kind*/) {
  return Describe(T());
}

// A part of a plan: keyword of the constructor and property.
struct PlanKeyword {
  const char* name;
  void (*set)(py::handle value, const char* name, Plan* plan);
  py::object (*get)(const Plan& plan);
  std::string doc;
  const PlanField* field;
  TypeText type;
};

const std::vector<PlanKeyword>& Keywords() {
  static const std::vector<PlanKeyword> keywords = [] {
    std::vector<PlanKeyword> all;
    ForEachField([&](const FieldFacts& facts, auto field) {
      using Field = decltype(field);
      if (facts.flag == nullptr) return;
      const TypeText type = Describe(field.Of(DefaultPlan()));
      all.push_back({facts.keyword,
                     [](py::handle value, const char* name, Plan* plan) {
                       Set(value, name, &Field::Of(*plan));
                     },
                     [](const Plan& plan) { return Get(Field::Of(plan)); },
                     fmt::format("{} : {}{}", type.name, facts.meaning, type.more),
                     FindPlanField(facts.flag), type});
    });
    return all;
  }();
  return keywords;
}

// By keyword what each part of a plan may be.
py::dict FieldsDict() {
  static const py::handle make =
      py::object(py::module_::import("stepcast._types").attr("PlanField")).release();
  py::dict fields;
  for (const PlanKeyword& k : Keywords()) {
    const PlanField& field = *k.field;
    py::tuple words(field.words.size());
    for (std::size_t i = 0; i < field.words.size(); ++i) words[i] = py::str(field.words[i]);
    const auto end = [&](double value) {
      return field.has_range() ? py::object(py::float_(value * k.type.si)) : py::none();
    };
    fields[k.name] = make(
        py::arg("meaning") = field.meaning,
        py::arg("unit") = k.type.unit != nullptr ? py::object(py::str(k.type.unit)) : py::none(),
        py::arg("least") = end(field.range.least), py::arg("most") = end(field.range.most),
        py::arg("or_nought") = field.has_range() && field.range.or_nought,
        py::arg("below_most") = field.is_below_most(), py::arg("words") = words);
  }
  return fields;
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
  CheckPlan(plan, [](const FieldFacts& facts) { return Keyword(facts.keyword); });
  return plan;
}

// The keywords that make the plan, without those that say the default.
py::dict PlanDict(const Plan& plan) {
  py::dict dict;
  for (const PlanKeyword& k : Keywords()) {
    py::object value = k.get(plan);
    if (&k == &Keywords().front() || !value.equal(k.get(DefaultPlan()))) dict[k.name] = value;
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
      .def("__hash__", [](const Plan& p) { return py::hash(py::str(PlanRepr(p))); })
      .def("__repr__", &PlanRepr)
      .def(py::pickle(&PlanDict, [](const py::dict& dict) {
        return MakePlan(py::reinterpret_borrow<py::kwargs>(dict));
      }));
  for (const PlanKeyword& k : Keywords()) {
    plan.def_property_readonly(k.name, py::cpp_function(k.get), k.doc.c_str());
  }
  m->def("plan_fields", &FieldsDict,
         "What each part of a plan may be, by the keyword of Plan: a PlanField with its meaning, "
         "unit,\nrange in that unit, and the words that there are. workers, nodes and "
         "devices_per_node are not\namong them: they say a placement.");
}

}  // namespace stepcast::python
