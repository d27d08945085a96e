// stepcast.CompiledPlan: one kind of plan, asked by numbers or by arrays.
#include "predictor/compiled_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "data/plan/limits.h"
#include "model/numeric/run_parts.h"
#include "predictor/compiled/query_parts.h"
#include "predictor/python/arrays.h"
#include "predictor/python/bindings.h"
#include "predictor/search/allocations.h"

namespace stepcast::python {
namespace {

constexpr const char* kPredictDoc = R"(Step times of many queries, or of one.

All arguments broadcast against each other as NumPy does; with plain numbers the answer is a
float. What is not given is the compiled plan's own, but devices_per_node follows workers and
nodes as evenly as can be where one of them is given, and workers follow nodes and
devices_per_node. A link value that is nan stands for not stated. int32 and float64 arrays in
C order are read in place. Threads run meanwhile: a call on arrays lets go of the GIL.

Parameters
    workers, nodes, devices_per_node : int : devices in all, nodes in use, devices in use on
        the fullest node
    servers : int : parameter servers
    local_batch : int : samples of one micro-step on one device
    accumulation_steps : int : micro-steps between synchronisations
    bandwidth_bytes_per_s, rtt_s, loss_rate : float : of the links between nodes
    slow_nodes : int : the last so many nodes compute at the plan's slow_speed; where it has a
        slow_local_batch their devices take that, local_batch is the others', and one node at
        least is not slow
    placement : str or list of int : devices on each node, of one layout, in place of the
        first three
    intervals : bool : also the 90 % prediction interval; twice the cost of one query, and some
        twenty times that of each in an array
    invalid : str : "raise" InputError for a query that makes no sense, or answer "nan"
    out : float64 array of the answers' shape, with intervals a tuple of three
    threads : int : among which some thousands of queries and more are shared out

Returns
    step times [s]; with intervals StepTimes(step_time_s, low_s, high_s))";

constexpr const char* kChooseDoc = R"(The best batch for every allocation that a job could get.

The best has the highest goodput = throughput x statistical efficiency. Without a noise scale it
is what `stepcast recommend` says: the smallest global batch within 5 % of the highest throughput,
unless the compiled plan's own batch is better.

Parameters (the first four and slow_nodes broadcast)
    workers, nodes, devices_per_node, servers, slow_nodes : int : as in predict
    placement : str or list of int : as in predict
    least_global_batch, most_global_batch : int : limits, in samples
    least_local_batch, most_local_batch : int : limits of a micro-step; 0: what memory holds;
        where nothing tells, and of the program's candidates, at most four times a calibrated batch
    accumulate : bool : whether micro-steps may be more than one
    candidates : int : global batches that are tried, evenly spaced by their logarithm; 0: those
        that the program tries
    noise_scale, initial_batch : float : gradient noise scale, and the batch that counts as
        fully worth [samples]; both or none
    invalid : str : "raise" InputError for an allocation that makes no sense, or answer it like
        one that no batch fits: "nan"

Returns BatchChoices(local_batch, accumulation_steps, step_time_s, throughput_samples_per_s,
statistical_efficiency, goodput): numbers, or arrays. Where no batch fits, local_batch and
goodput are 0.)";

constexpr const char* kMostLocalDoc =
    R"(The largest local batch that the device's memory holds: 0 where not even one sample fits,
100,000,000 where nothing tells.

Times are answered of plans that do not fit, too; this tells which. Parameters broadcast, and are
as in predict. Returns a number, or an array.)";

struct NamedArgument {
  const char* name;
  Argument::Kind kind;
};
enum {
  kWorkers,
  kNodes,
  kDevicesPerNode,
  kServers,
  kLocalBatch,
  kAccumulation,
  kSlowNodes,
  kIntCount,
  kBandwidth = kIntCount,
  kRtt,
  kLoss,
  kArgumentCount
};
constexpr std::array<NamedArgument, kArgumentCount> kArguments = {{
    {"workers", Argument::Kind::kWhole},
    {"nodes", Argument::Kind::kWhole},
    {"devices_per_node", Argument::Kind::kWhole},
    {"servers", Argument::Kind::kWhole},
    {"local_batch", Argument::Kind::kWhole},
    {"accumulation_steps", Argument::Kind::kWhole},
    {"slow_nodes", Argument::Kind::kWhole},
    {"bandwidth_bytes_per_s", Argument::Kind::kReal},
    {"rtt_s", Argument::Kind::kReal},
    {"loss_rate", Argument::Kind::kReal},
}};

// The arguments of a call as queries.
class Queries {
 public:
  // Room for what is not read in place.
  struct Buffers {
    std::array<std::vector<int>, kIntCount> ints;
    std::array<std::vector<double>, kArgumentCount - kIntCount> reals;
  };

  Queries(const std::array<py::handle, kArgumentCount>& values, const CompiledPlan& compiled)
      : Queries(values, compiled, std::make_index_sequence<kArgumentCount>()) {}

  bool scalar() const { return scalar_; }
  const Shape& shape() const { return shape_; }

  QueryArrays Block(py::ssize_t begin, py::ssize_t count, Buffers* buffers) const {
    return Arrays(
        static_cast<std::size_t>(count),
        [&](std::size_t i) { return readers_[i].Ints(begin, count, &buffers->ints[i]); },
        [&](std::size_t i) {
          return readers_[i].Reals(begin, count, &buffers->reals[i - kIntCount]);
        },
        [&](std::size_t i) {
          buffers->ints[i].resize(static_cast<std::size_t>(count));
          return buffers->ints[i].data();
        });
  }

  // The argument that writing to `out` may change before it is read; null where there is none.
  const char* ChangedBy(const py::array& out) const {
    for (const Argument& argument : arguments_) {
      if (argument.MayBeChangedBy(out)) return argument.name();
    }
    return nullptr;
  }

  // An element of the argument of that name as the caller gave it, which an int may not hold;
  // `otherwise` where it was not given.
  std::string ValueText(const std::string& name, py::ssize_t index,
                        const std::string& otherwise) const {
    for (std::size_t i = 0; i < kArgumentCount; ++i) {
      if (name == kArguments[i].name && Given(i)) return readers_[i].TextAt(index);
    }
    return otherwise;
  }

  PlanQuery At(py::ssize_t index) const {
    std::array<int, kIntCount> ints{};
    std::array<double, kArgumentCount - kIntCount> reals{};
    const QueryArrays one = Arrays(
        1, [&](std::size_t i) { return &(ints[i] = readers_[i].IntAt(index)); },
        [&](std::size_t i) { return &(reals[i - kIntCount] = readers_[i].RealAt(index)); },
        [&](std::size_t i) { return &ints[i]; });
    return QueryAt(one, 0, own_);
  }

 private:
  static int WorkersOf(int nodes, int devices_per_node) {
    const long long product = static_cast<long long>(nodes) * devices_per_node;
    return nodes > 0 && product <= kMostCount ? static_cast<int>(product) : kNoInt;
  }

  bool Given(std::size_t i) const { return readers_[i].given(); }
  bool WorkersFollow() const { return !Given(kWorkers) && Given(kNodes) && Given(kDevicesPerNode); }
  bool DevicesFollow() const {
    return !Given(kDevicesPerNode) && (Given(kWorkers) || Given(kNodes));
  }

  // What was given as arrays: `whole` and `real` tell where those of an argument are, `room` where
  // there is room for what follows from others.
  template <class Whole, class Real, class Room>
  QueryArrays Arrays(std::size_t size, const Whole& whole, const Real& real,
                     const Room& room) const {
    const auto ints = [&](std::size_t i) -> const int* { return Given(i) ? whole(i) : nullptr; };
    const auto reals = [&](std::size_t i) -> const double* { return Given(i) ? real(i) : nullptr; };
    QueryArrays q;
    q.size = size;
    q.workers = ints(kWorkers);
    q.nodes = ints(kNodes);
    q.devices_per_node = ints(kDevicesPerNode);
    q.servers = ints(kServers);
    q.local_batch = ints(kLocalBatch);
    q.accumulation_steps = ints(kAccumulation);
    q.slow_nodes = ints(kSlowNodes);
    q.bandwidth_bytes_per_s = reals(kBandwidth);
    q.rtt_s = reals(kRtt);
    q.loss_rate = reals(kLoss);
    const auto fill = [&](std::size_t which, auto value_at) {
      int* const values = room(which);
      for (std::size_t i = 0; i < size; ++i) values[i] = value_at(i);
      return values;
    };
    if (WorkersFollow()) {
      q.workers = fill(kWorkers,
                       [&](std::size_t i) { return WorkersOf(q.nodes[i], q.devices_per_node[i]); });
    } else if (DevicesFollow()) {
      q.devices_per_node = fill(kDevicesPerNode, [&](std::size_t i) {
        return MostEven(q.workers != nullptr ? q.workers[i] : own_.workers,
                        q.nodes != nullptr ? q.nodes[i] : own_.nodes);
      });
    }
    return q;
  }

  template <std::size_t... I>
  Queries(const std::array<py::handle, kArgumentCount>& values, const CompiledPlan& compiled,
          std::index_sequence<I...> sequence)
      : Queries({Argument(values[I], kArguments[I].name, kArguments[I].kind)...}, compiled,
                sequence) {}

  template <std::size_t... I>
  Queries(std::array<Argument, kArgumentCount> arguments, const CompiledPlan& compiled,
          std::index_sequence<I...> /*unused*/)
      : arguments_(std::move(arguments)),
        scalar_((arguments_[I].scalar() && ...)),
        shape_(scalar_ ? Shape() : BroadcastShape({&arguments_[I]...})),
        readers_{Reader(arguments_[I], shape_)...},
        own_(QueryOf(compiled.plan())) {}

  std::array<Argument, kArgumentCount> arguments_;  // what the readers read
  bool scalar_ = false;
  Shape shape_;
  std::array<Reader, kArgumentCount> readers_;
  PlanQuery own_;
};

// A named tuple of the package; it lives as long as the process.
py::handle TupleType(const char* name) {
  return py::object(py::module_::import("stepcast._types").attr(name)).release();
}
template <class... Parts>
py::object MakeStepTimes(Parts&&... parts) {
  static const py::handle type = TupleType("StepTimes");
  return type(std::forward<Parts>(parts)...);
}
template <class... Parts>
py::object MakeBatchChoices(Parts&&... parts) {
  static const py::handle type = TupleType("BatchChoices");
  return type(std::forward<Parts>(parts)...);
}

// Throws InputError for a query without an answer, which `key` names, with the argument that is
// wrong, its value and what is allowed.
void RequireAnswer(const CompiledPlan& compiled, const Queries& queries, py::ssize_t index,
                   const std::string& key) {
  const std::optional<QueryProblem> problem = compiled.ProblemOf(queries.At(index));
  if (!problem) return;
  throw InputError(Keyword(key.c_str()),
                   problem->field + " " + queries.ValueText(problem->field, index, problem->value),
                   problem->problem, problem->allowed + ", or invalid=\"nan\"");
}

// The first query from `first` to `last` without an answer; -1 where all have one. Knows no Python.
py::ssize_t PredictBlocks(const CompiledPlan& compiled, const Queries& queries, py::ssize_t first,
                          py::ssize_t last, internal::ExchangeCache* cache, double* step,
                          double* low, double* high) {
  py::ssize_t first_bad = -1;
  Queries::Buffers buffers;
  std::vector<double> log_sd;
  if (low != nullptr) log_sd.resize(static_cast<std::size_t>(std::min(kBlock, last - first)));
  for (py::ssize_t begin = first; begin < last; begin += kBlock) {
    const py::ssize_t count = std::min(kBlock, last - begin);
    ForecastArrays answers;
    answers.step_time_s = step + begin;
    if (low != nullptr) {
      answers.low_s = low + begin;
      answers.high_s = high + begin;
      answers.log_sd = log_sd.data();
    }
    const QueryArrays block = queries.Block(begin, count, &buffers);
    if (compiled.PredictPart(block, answers, cache) > 0 && first_bad < 0) {
      first_bad = std::find_if(step + begin, step + begin + count,
                               [](double time) { return std::isnan(time); }) -
                  step;
    }
  }
  return first_bad;
}

// The same of all queries, on so many threads.
py::ssize_t PredictOnThreads(const CompiledPlan& compiled, const Queries& queries, int threads,
                             double* step, double* low, double* high) {
  std::array<py::ssize_t, kMostThreads> bad{};
  bad.fill(-1);
  const auto size = static_cast<std::size_t>(SizeOf(queries.shape()));
  internal::ShareOutQueries(
      size, threads,
      [&](std::size_t part, std::size_t begin, std::size_t end, internal::ExchangeCache* cache) {
        bad[part] = PredictBlocks(compiled, queries, static_cast<py::ssize_t>(begin),
                                  static_cast<py::ssize_t>(end), cache, step, low, high);
      });
  const auto found = std::find_if(bad.begin(), bad.end(), [](py::ssize_t at) { return at >= 0; });
  return found == bad.end() ? -1 : *found;
}

py::object Predict(const BoundPlan& plan, const Queries& queries, bool intervals,
                   bool nan_for_invalid, const py::object& out, int threads) {
  if (threads < 1) {
    throw InputError(Keyword("threads"), std::to_string(threads), "is out of range", "at least 1");
  }
  const CompiledPlan& compiled = plan.compiled;
  if (queries.scalar() && out.is_none()) {
    const PlanQuery query = queries.At(0);
    if (!intervals) {
      const double step_time_s = compiled.StepTime(query).in(kSeconds);
      if (std::isnan(step_time_s) && !nan_for_invalid) {
        RequireAnswer(compiled, queries, 0, "query");
      }
      return py::float_(step_time_s);
    }
    const Forecast f = compiled.Predict(query);
    if (f.status != QueryStatus::kOk && !nan_for_invalid) {
      RequireAnswer(compiled, queries, 0, "query");
    }
    return MakeStepTimes(f.step_time.in(kSeconds), f.low.in(kSeconds), f.high.in(kSeconds));
  }
  std::array<py::object, 3> outs = {out, py::none(), py::none()};
  if (intervals && !out.is_none()) {
    if (!py::isinstance<py::tuple>(out) || py::len(out) != outs.size()) {
      throw InputError(Keyword("out"), ReprOf(py::type::of(out)), "does not hold intervals",
                       "a tuple of three float64 arrays");
    }
    for (std::size_t i = 0; i < outs.size(); ++i) outs[i] = py::tuple(out)[i];
  }
  py::array_t<double> step = Result(outs[0], queries.shape(), "out");
  double* const step_s = step.mutable_data();
  py::array_t<double> low(0);
  py::array_t<double> high(0);
  double* low_s = nullptr;
  double* high_s = nullptr;
  if (intervals) {
    low = Result(outs[1], queries.shape(), "out");
    high = Result(outs[2], queries.shape(), "out");
    low_s = low.mutable_data();
    high_s = high.mutable_data();
  }
  if (!out.is_none()) {
    const auto refuse = [](const std::string& what) {
      throw InputError(Keyword("out"), "", "shares memory with " + what, "arrays of their own");
    };
    if (intervals &&
        (MayShareMemory(step, low) || MayShareMemory(step, high) || MayShareMemory(low, high))) {
      refuse("itself");
    }
    for (const py::array* array : {&step, &low, &high}) {
      if (const char* name = queries.ChangedBy(*array)) refuse(name);
    }
  }
  py::ssize_t bad = -1;
  {
    py::gil_scoped_release release;
    bad = PredictOnThreads(compiled, queries, threads, step_s, low_s, high_s);
  }
  if (bad >= 0 && !nan_for_invalid) {
    RequireAnswer(compiled, queries, bad, fmt::format("element {}", bad));
  }
  if (intervals) return MakeStepTimes(step, low, high);
  return step;
}

// Answers of choose_batches, one array a member.
struct Choices {
  explicit Choices(const Shape& shape)
      : local_batch(shape),
        accumulation_steps(shape),
        step_time_s(shape),
        throughput(shape),
        statistical_efficiency(shape),
        goodput(shape) {}

  py::array_t<std::int64_t> local_batch;
  py::array_t<std::int64_t> accumulation_steps;
  py::array_t<double> step_time_s;
  py::array_t<double> throughput;
  py::array_t<double> statistical_efficiency;
  py::array_t<double> goodput;
};

py::object Choose(const BoundPlan& plan, const Queries& queries, const BatchSearch& search,
                  bool none_for_invalid) {
  if (queries.scalar()) {
    const PlanQuery q = queries.At(0);
    const Allocation allocation{q.workers, q.nodes, q.devices_per_node, q.servers, q.slow_nodes};
    BatchChoice c;
    ChooseBatches(plan.compiled, &allocation, 1, search, &c);
    if (c.local_batch == 0 && !none_for_invalid) {
      RequireAnswer(plan.compiled, queries, 0, "allocation");
    }
    return MakeBatchChoices(c.local_batch, c.accumulation_steps, c.step_time_s, c.throughput,
                            c.statistical_efficiency, c.goodput);
  }
  Choices answers(queries.shape());
  const auto local_batch = answers.local_batch.mutable_data();
  const auto accumulation_steps = answers.accumulation_steps.mutable_data();
  const auto step_time_s = answers.step_time_s.mutable_data();
  const auto throughput = answers.throughput.mutable_data();
  const auto efficiency = answers.statistical_efficiency.mutable_data();
  const auto goodput = answers.goodput.mutable_data();
  py::ssize_t bad = -1;
  {
    py::gil_scoped_release release;
    Queries::Buffers buffers;
    std::vector<Allocation> allocations;
    std::vector<BatchChoice> choices;
    const PlanQuery own = QueryOf(plan.compiled.plan());
    const py::ssize_t size = SizeOf(queries.shape());
    for (py::ssize_t begin = 0; begin < size; begin += kBlock) {
      const py::ssize_t count = std::min(kBlock, size - begin);
      const QueryArrays q = queries.Block(begin, count, &buffers);
      allocations.clear();
      for (std::size_t i = 0; i < q.size; ++i) {
        const PlanQuery asked = QueryAt(q, i, own);
        allocations.push_back(
            {asked.workers, asked.nodes, asked.devices_per_node, asked.servers, asked.slow_nodes});
      }
      choices.resize(q.size);
      ChooseBatches(plan.compiled, allocations.data(), q.size, search, choices.data());
      for (py::ssize_t i = 0; i < count; ++i) {
        const BatchChoice& c = choices[static_cast<std::size_t>(i)];
        local_batch[begin + i] = c.local_batch;
        accumulation_steps[begin + i] = c.accumulation_steps;
        step_time_s[begin + i] = c.step_time_s;
        throughput[begin + i] = c.throughput;
        efficiency[begin + i] = c.statistical_efficiency;
        goodput[begin + i] = c.goodput;
        if (c.local_batch > 0 || bad >= 0) continue;
        // No batch fits, or the allocation cannot be.
        const PlanQuery asked = QueryAt(q, static_cast<std::size_t>(i), own);
        if (plan.compiled.StatusOf(asked) != QueryStatus::kOk) bad = begin + i;
      }
    }
  }
  if (bad >= 0 && !none_for_invalid) {
    RequireAnswer(plan.compiled, queries, bad, fmt::format("element {}", bad));
  }
  return MakeBatchChoices(answers.local_batch, answers.accumulation_steps, answers.step_time_s,
                          answers.throughput, answers.statistical_efficiency, answers.goodput);
}

// The largest local batch of each query, 0 where it has no answer; returns the first of these, -1
// where all have one. Knows no Python.
py::ssize_t MostLocalBatches(const CompiledPlan& compiled, const Queries& queries,
                             std::int64_t* most) {
  py::ssize_t first_bad = -1;
  Queries::Buffers buffers;
  const PlanQuery own = QueryOf(compiled.plan());
  const py::ssize_t size = SizeOf(queries.shape());
  for (py::ssize_t begin = 0; begin < size; begin += kBlock) {
    const py::ssize_t count = std::min(kBlock, size - begin);
    const QueryArrays q = queries.Block(begin, count, &buffers);
    for (py::ssize_t i = 0; i < count; ++i) {
      const PlanQuery query = QueryAt(q, static_cast<std::size_t>(i), own);
      const bool answered = compiled.StatusOf(query) == QueryStatus::kOk;
      most[begin + i] = answered ? compiled.MostLocalBatch(query) : 0;
      if (!answered && first_bad < 0) first_bad = begin + i;
    }
  }
  return first_bad;
}

py::object MostLocalBatch(const BoundPlan& plan, const Queries& queries, bool nought_for_invalid) {
  if (queries.scalar()) {
    std::int64_t most = 0;
    if (MostLocalBatches(plan.compiled, queries, &most) >= 0 && !nought_for_invalid) {
      RequireAnswer(plan.compiled, queries, 0, "allocation");
    }
    return py::int_(most);
  }
  py::array_t<std::int64_t> answer(queries.shape());
  std::int64_t* const values = answer.mutable_data();
  py::ssize_t bad = -1;
  {
    py::gil_scoped_release release;
    bad = MostLocalBatches(plan.compiled, queries, values);
  }
  if (bad >= 0 && !nought_for_invalid) {
    RequireAnswer(plan.compiled, queries, bad, fmt::format("element {}", bad));
  }
  return answer;
}

// Who says a placement says the three numbers that a step depends on.
struct Layout {
  Layout(const py::object& workers_said, const py::object& nodes_said,
         const py::object& devices_said, const py::object& placement)
      : workers(workers_said), nodes(nodes_said), devices_per_node(devices_said) {
    if (placement.is_none()) return;
    if (!workers.is_none() || !nodes.is_none() || !devices_per_node.is_none()) {
      throw InputError(Keyword("placement"), ReprOf(placement),
                       "says the same as workers, nodes and devices_per_node", "one of the two");
    }
    const py::object plan = py::type::of<Plan>()(py::arg("placement") = placement);
    workers = plan.attr("workers");
    nodes = plan.attr("nodes");
    devices_per_node = plan.attr("devices_per_node");
  }

  py::object workers;
  py::object nodes;
  py::object devices_per_node;
};

bool NanForInvalid(const std::string& invalid) {
  if (invalid == "nan") return true;
  if (invalid == "raise") return false;
  throw InputError(Keyword("invalid"), invalid, "is neither of the two", "raise, nan");
}

// Throws InputError for limits that no batch meets.
BatchSearch MakeSearch(int least_global, int most_global, int least_local, int most_local,
                       bool accumulate, int candidates, std::optional<double> noise_scale,
                       std::optional<double> initial_batch) {
  const BatchSearch search{least_global, most_global, least_local,   most_local,  accumulate,
                           candidates,   noise_scale, initial_batch, kEqualScores};
  if (const std::optional<QueryProblem> problem = ProblemOf(search)) {
    throw InputError(Keyword(problem->field.c_str()), problem->value, problem->problem,
                     problem->allowed);
  }
  return search;
}

}  // namespace

BoundPlan::BoundPlan(SharedPredictor from, Plan plan, const CompileOptions& options)
    : predictor(std::move(from)),
      asked(std::move(plan)),
      compiled(predictor->predictor, asked, options) {}

void BindCompiledPlan(py::module_* m) {
  const py::object none = py::none();
  py::class_<BoundPlan>(*m, "CompiledPlan",
                        "One kind of plan, compiled to be asked many times: made by "
                        "Predictor.compile.\nMany threads may ask one.")
      .def_property_readonly(
          "plan", [](const BoundPlan& p) { return p.compiled.plan(); },
          "Plan : as compiled, with the algorithm that strategy auto became")
      .def_property_readonly(
          "predictor", [](const BoundPlan& p) { return p.predictor; }, "Predictor")
      .def(
          "predict",
          [](const BoundPlan& p, const py::object& workers, const py::object& nodes,
             const py::object& devices_per_node, const py::object& servers,
             const py::object& local_batch, const py::object& accumulation_steps,
             const py::object& bandwidth, const py::object& rtt, const py::object& loss,
             const py::object& slow_nodes, const py::object& placement, bool intervals,
             const std::string& invalid, const py::object& out, int threads) {
            const Layout layout(workers, nodes, devices_per_node, placement);
            return Predict(
                p,
                Queries({layout.workers, layout.nodes, layout.devices_per_node, servers,
                         local_batch, accumulation_steps, slow_nodes, bandwidth, rtt, loss},
                        p.compiled),
                intervals, NanForInvalid(invalid), out, threads);
          },
          py::arg("workers") = none, py::arg("nodes") = none, py::arg("devices_per_node") = none,
          py::arg("servers") = none, py::arg("local_batch") = none,
          py::arg("accumulation_steps") = none, py::arg("bandwidth_bytes_per_s") = none,
          py::arg("rtt_s") = none, py::arg("loss_rate") = none, py::kw_only(),
          py::arg("slow_nodes") = none, py::arg("placement") = none, py::arg("intervals") = false,
          py::arg("invalid") = "raise", py::arg("out") = none, py::arg("threads") = 1, kPredictDoc)
      .def(
          "choose_batches",
          [](const BoundPlan& p, const py::object& workers, const py::object& nodes,
             const py::object& devices_per_node, const py::object& servers,
             const py::object& slow_nodes, const py::object& placement, int least_global_batch,
             int most_global_batch, int least_local_batch, int most_local_batch, bool accumulate,
             int candidates, std::optional<double> noise_scale, std::optional<double> initial_batch,
             const std::string& invalid) {
            const Layout layout(workers, nodes, devices_per_node, placement);
            return Choose(
                p,
                Queries({layout.workers, layout.nodes, layout.devices_per_node, servers, py::none(),
                         py::none(), slow_nodes, py::none(), py::none(), py::none()},
                        p.compiled),
                MakeSearch(least_global_batch, most_global_batch, least_local_batch,
                           most_local_batch, accumulate, candidates, noise_scale, initial_batch),
                NanForInvalid(invalid));
          },
          py::arg("workers") = none, py::arg("nodes") = none, py::arg("devices_per_node") = none,
          py::arg("servers") = none, py::kw_only(), py::arg("slow_nodes") = none,
          py::arg("placement") = none, py::arg("least_global_batch") = 1,
          py::arg("most_global_batch") = kDefaultMostGlobalBatch, py::arg("least_local_batch") = 1,
          py::arg("most_local_batch") = 0, py::arg("accumulate") = true,
          py::arg("candidates") = BatchSearch().candidates, py::arg("noise_scale") = none,
          py::arg("initial_batch") = none, py::arg("invalid") = "raise", kChooseDoc)
      .def(
          "most_local_batch",
          [](const BoundPlan& p, const py::object& workers, const py::object& nodes,
             const py::object& devices_per_node, const py::object& accumulation_steps,
             const py::object& slow_nodes, const py::object& placement,
             const std::string& invalid) {
            const Layout layout(workers, nodes, devices_per_node, placement);
            return MostLocalBatch(p,
                                  Queries({layout.workers, layout.nodes, layout.devices_per_node,
                                           py::none(), py::none(), accumulation_steps, slow_nodes,
                                           py::none(), py::none(), py::none()},
                                          p.compiled),
                                  NanForInvalid(invalid));
          },
          py::arg("workers") = none, py::arg("nodes") = none, py::arg("devices_per_node") = none,
          py::arg("accumulation_steps") = none, py::kw_only(), py::arg("slow_nodes") = none,
          py::arg("placement") = none, py::arg("invalid") = "raise", kMostLocalDoc)
      .def("__repr__",
           [](const BoundPlan& p) {
             return fmt::format("<CompiledPlan of {} on {}: {}>", p.predictor->workload.name,
                                p.predictor->predictor.cluster().name, PlanRepr(p.asked));
           })
      .def(py::pickle(
          [](const BoundPlan& p) {
            return py::make_tuple(p.predictor, p.asked, p.compiled.options().most_servers);
          },
          [](const py::tuple& state) {
            return BoundPlan(state[0].cast<SharedPredictor>(), state[1].cast<Plan>(),
                             {state[2].cast<int>()});
          }));
}

}  // namespace stepcast::python
