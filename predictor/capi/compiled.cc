// Compiled plans of the C interface: what is asked millions of times. Once a plan is compiled
// nothing here allocates but the threads that arrays ask for, and nothing but compiling throws.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "data/plan/limits.h"
#include "model/numeric/run_parts.h"
#include "predictor/capi/handles.h"
#include "predictor/compiled/query_parts.h"
#include "predictor/compiled_plan.h"
#include "predictor/search/allocations.h"

using stepcast::Allocation;
using stepcast::BatchChoice;
using stepcast::BatchSearch;
using stepcast::CompiledPlan;
using stepcast::CompileOptions;
using stepcast::Forecast;
using stepcast::PlanQuery;
using stepcast::QueryArrays;
using stepcast::QueryStatus;
using namespace stepcast::capi;  // NOLINT(google-build-using-namespace): these sources are its own

// Values that cross the border as they are.
static_assert(static_cast<int>(QueryStatus::kOk) == STEPCAST_QUERY_OK);
static_assert(static_cast<int>(QueryStatus::kBadPlacement) == STEPCAST_QUERY_BAD_PLACEMENT);
static_assert(static_cast<int>(QueryStatus::kBadServers) == STEPCAST_QUERY_BAD_SERVERS);
static_assert(static_cast<int>(QueryStatus::kBadBatch) == STEPCAST_QUERY_BAD_BATCH);
static_assert(static_cast<int>(QueryStatus::kBadLink) == STEPCAST_QUERY_BAD_LINK);
static_assert(static_cast<int>(QueryStatus::kNothingExchanged) == STEPCAST_QUERY_NOTHING_EXCHANGED);
static_assert(static_cast<int>(QueryStatus::kBadSlowNodes) == STEPCAST_QUERY_BAD_SLOW_NODES);
static_assert(stepcast::kQueryStatusCount == STEPCAST_QUERY_BAD_SLOW_NODES + 1);
static_assert(stepcast::kMostBatch == 100'000'000, "stepcast.h says so");

struct stepcast_compiled {
  CompiledPlan plan;
  PlanQuery own;  // of the plan itself
};

namespace stepcast::capi {

template <>
inline constexpr std::size_t kFirstSize<stepcast_query> = offsetof(stepcast_query, slow_nodes);
template <>
inline constexpr std::size_t kFirstSize<stepcast_query_arrays> = offsetof(stepcast_query_arrays,
                                                                          slow_nodes);
template <>
inline constexpr std::size_t kFirstSize<stepcast_allocation_arrays> =
    offsetof(stepcast_allocation_arrays, slow_nodes);

namespace {

// Elements that are worked on at once where their types differ from the caller's arrays: on the
// stack, and so many that what a call costs by itself does not show.
constexpr std::size_t kChunk = 256;
constexpr std::size_t kStatusChunk = 4096;

LinkFacts Link(double bandwidth, double rtt, double loss) {
  LinkFacts link;
  link.bandwidth = Stated<DataRate<>>(bandwidth);
  link.rtt = Stated<Duration<>>(rtt);
  if (!std::isnan(loss)) link.loss = loss;
  return link;
}

stepcast_query OwnQuery(const stepcast_compiled& compiled) {
  const PlanQuery& own = compiled.own;
  return {sizeof(stepcast_query),
          own.workers,
          own.nodes,
          own.devices_per_node,
          own.servers,
          own.local_batch,
          own.accumulation_steps,
          kNotKnown,
          kNotKnown,
          kNotKnown,
          kNotKnown,
          kNotKnown,
          kNotKnown,
          *own.slow_nodes};
}

// The query that a caller's struct asks; nothing for a struct that cannot be.
std::optional<PlanQuery> QueryOf(const stepcast_compiled* compiled, const stepcast_query* given) {
  if (compiled == nullptr) return std::nullopt;
  stepcast_query q = OwnQuery(*compiled);
  if (!TakeStruct(given, &q)) return std::nullopt;
  return PlanQuery{
      q.workers,
      q.nodes,
      q.devices_per_node,
      q.servers,
      q.local_batch,
      q.accumulation_steps,
      Link(q.link_bandwidth_bytes_per_s, q.link_rtt_s, q.link_loss_rate),
      Link(q.server_link_bandwidth_bytes_per_s, q.server_link_rtt_s, q.server_link_loss_rate),
      q.slow_nodes};
}

// The part of an array that begins at an index; of none there is none.
template <class T>
T* From(T* array, std::size_t begin) {
  return array != nullptr ? array + begin : nullptr;
}

// So many queries from `begin` on.
QueryArrays Part(const stepcast_query_arrays& q, std::size_t begin, std::size_t size) {
  return {size,
          From(q.workers, begin),
          From(q.nodes, begin),
          From(q.devices_per_node, begin),
          From(q.servers, begin),
          From(q.local_batch, begin),
          From(q.accumulation_steps, begin),
          From(q.link_bandwidth_bytes_per_s, begin),
          From(q.link_rtt_s, begin),
          From(q.link_loss_rate, begin),
          From(q.slow_nodes, begin)};
}

// The element, or what holds where there is no array.
int At(const int32_t* array, std::size_t i, int own) { return array != nullptr ? array[i] : own; }

template <class T>
void Put(T* array, std::size_t i, T value) {
  if (array != nullptr) array[i] = value;
}

stepcast_batch_search DefaultSearch() {
  const BatchSearch search;
  return {sizeof(stepcast_batch_search),
          search.least_global_batch,
          search.most_global_batch,
          search.least_local_batch,
          search.most_local_batch,
          search.accumulate ? 1 : 0,
          search.candidates,
          kNotKnown,
          kNotKnown};
}

[[noreturn]] void RefuseStruct(const char* name) {
  throw Refusal{STEPCAST_BAD_ARGUMENT,
                std::string("struct_size of ") + name +
                    " cannot be, or something is set behind the fields that this version has"};
}

// Throws Refusal for a query without an answer. `index` stands behind the field that is wrong.
void RequireAnswer(const CompiledPlan& plan, const PlanQuery& asked, const std::string& index) {
  const std::optional<stepcast::QueryProblem> problem = plan.ProblemOf(asked);
  if (!problem) return;
  // Its name in the structs of the interface.
  const std::string of_link[] = {"bandwidth_bytes_per_s", "rtt_s", "loss_rate"};
  std::string field = problem->field;
  for (const std::string& name : of_link) {
    if (field == name) field = "link_" + name;
    if (field == "server_" + name) field = "server_link_" + name;
  }
  throw Refusal{STEPCAST_NO_ANSWER, stepcast::InputError({"", 0, field + index}, problem->value,
                                                         problem->problem, problem->allowed)
                                        .what()};
}

stepcast_compile_options DefaultOptions() {
  return {sizeof(stepcast_compile_options), CompileOptions().most_servers};
}

}  // namespace
}  // namespace stepcast::capi

extern "C" {

stepcast_status stepcast_compile_options_init(stepcast_compile_options* options) {
  return GiveStruct(DefaultOptions(), options) ? STEPCAST_OK : STEPCAST_BAD_ARGUMENT;
}

stepcast_status stepcast_compiled_create(const stepcast_predictor* predictor,
                                         const stepcast_plan* plan,
                                         const stepcast_compile_options* options,
                                         stepcast_compiled** compiled, char** error) {
  return Made(compiled, {{predictor, "predictor"}, {plan, "plan"}}, error, [&] {
    stepcast_compile_options taken = DefaultOptions();
    if (options != nullptr && !TakeStruct(options, &taken)) RefuseStruct("options");
    CompileOptions ours;
    ours.most_servers = taken.most_servers;
    CompiledPlan made(predictor->predictor, plan->plan, ours);
    const PlanQuery own = stepcast::QueryOf(made.plan());
    return new stepcast_compiled{std::move(made), own};
  });
}

const char* stepcast_compiled_strategy(const stepcast_compiled* compiled) {
  return compiled != nullptr ? StrategyName(compiled->plan.plan().strategy) : nullptr;
}

void stepcast_compiled_free(stepcast_compiled* compiled) { delete compiled; }

const char* stepcast_query_status_text(int32_t status) {
  if (status < 0 || status >= stepcast::kQueryStatusCount) return "unknown status";
  return QueryStatusText(static_cast<QueryStatus>(status));
}

stepcast_status stepcast_compiled_get_query(const stepcast_compiled* compiled,
                                            stepcast_query* query) {
  if (compiled == nullptr) return STEPCAST_BAD_ARGUMENT;
  return GiveStruct(OwnQuery(*compiled), query) ? STEPCAST_OK : STEPCAST_BAD_ARGUMENT;
}

stepcast_status stepcast_query_set_placement(stepcast_query* query, const int32_t* devices,
                                             size_t nodes, char** error) {
  return Guarded({{query, "query"}, {devices, "devices"}}, error, [&] {
    RequireSize(query, "query");
    RequireNodes(nodes, "placement");
    const stepcast::InputPlace place{"", 0, "placement"};
    if (nodes == 0) {
      throw stepcast::InputError(place, "", "is empty", "devices used on each node");
    }
    int64_t workers = 0;
    int32_t most = 0;
    for (std::size_t i = 0; i < nodes; ++i) {
      if (devices[i] < 1 || devices[i] > stepcast::kMostCount) {
        throw stepcast::InputError({"", 0, "placement[" + std::to_string(i) + "]"},
                                   std::to_string(devices[i]), "is out of range",
                                   "1 to " + std::to_string(stepcast::kMostCount));
      }
      workers += devices[i];
      most = std::max(most, devices[i]);
    }
    if (workers > stepcast::kMostCount) {
      throw stepcast::InputError(place, std::to_string(workers), "workers are too many",
                                 "at most " + std::to_string(stepcast::kMostCount));
    }
    query->workers = static_cast<int32_t>(workers);
    query->nodes = static_cast<int32_t>(nodes);
    query->devices_per_node = most;
  });
}

stepcast_status stepcast_compiled_predict(const stepcast_compiled* compiled,
                                          const stepcast_query* query,
                                          stepcast_forecast* forecast) {
  const std::optional<PlanQuery> asked = QueryOf(compiled, query);
  if (!asked) return STEPCAST_BAD_ARGUMENT;
  if (!IsSizePossible(forecast)) return STEPCAST_BAD_ARGUMENT;
  const Forecast f = compiled->plan.Predict(*asked);
  GiveStruct({sizeof(stepcast_forecast), f.step_time.si(), f.low.si(), f.high.si(), f.log_sd,
              static_cast<int32_t>(f.limiter), static_cast<int32_t>(f.status)},
             forecast);
  return f.status == QueryStatus::kOk ? STEPCAST_OK : STEPCAST_NO_ANSWER;
}

stepcast_status stepcast_compiled_check(const stepcast_compiled* compiled,
                                        const stepcast_query* query, char** error) {
  return Guarded({{compiled, "compiled"}, {query, "query"}}, error, [&] {
    const std::optional<PlanQuery> asked = QueryOf(compiled, query);
    if (!asked) RefuseStruct("query");
    RequireAnswer(compiled->plan, *asked, "");
  });
}

stepcast_status stepcast_compiled_check_many(const stepcast_compiled* compiled,
                                             const stepcast_query_arrays* queries, char** error) {
  return Guarded({{compiled, "compiled"}, {queries, "queries"}}, error, [&] {
    stepcast_query_arrays q{};
    if (!TakeStruct(queries, &q)) RefuseStruct("queries");
    const QueryArrays asked_of = Part(q, 0, q.count);
    for (std::size_t i = 0; i < asked_of.size; ++i) {
      const PlanQuery asked = QueryAt(asked_of, i, compiled->own);
      if (compiled->plan.StatusOf(asked) != QueryStatus::kOk) {
        RequireAnswer(compiled->plan, asked, "[" + std::to_string(i) + "]");
      }
    }
  });
}

double stepcast_compiled_step_time_s(const stepcast_compiled* compiled,
                                     const stepcast_query* query) {
  const std::optional<PlanQuery> asked = QueryOf(compiled, query);
  return asked ? compiled->plan.StepTime(*asked).si() : kNotKnown;
}

int32_t stepcast_compiled_most_local_batch(const stepcast_compiled* compiled,
                                           const stepcast_query* query) {
  const std::optional<PlanQuery> asked = QueryOf(compiled, query);
  return asked ? compiled->plan.MostLocalBatch(*asked) : -1;
}

stepcast_status stepcast_compiled_predict_many(const stepcast_compiled* compiled,
                                               const stepcast_query_arrays* queries,
                                               const stepcast_forecast_arrays* answers,
                                               size_t* unanswered) {
  stepcast_query_arrays q{};
  stepcast_forecast_arrays a{};
  if (compiled == nullptr || !TakeStruct(queries, &q) || !TakeStruct(answers, &a)) {
    return STEPCAST_BAD_ARGUMENT;
  }
  std::array<std::size_t, stepcast::kMostThreads> bad{};
  const auto predict = [&](std::size_t part, std::size_t first, std::size_t last,
                           stepcast::internal::ExchangeCache* cache) {
    // Filled before it is read.
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
    std::array<QueryStatus, kStatusChunk> status;
    const std::size_t chunk = a.status != nullptr ? kStatusChunk : last - first;
    for (std::size_t begin = first; begin < last; begin += chunk) {
      const std::size_t size = std::min(chunk, last - begin);
      bad[part] += compiled->plan.PredictPart(
          Part(q, begin, size),
          {From(a.step_time_s, begin), From(a.low_s, begin), From(a.high_s, begin),
           From(a.log_sd, begin), a.status != nullptr ? status.data() : nullptr},
          cache);
      if (a.status == nullptr) continue;
      std::transform(status.begin(), status.begin() + size, a.status + begin,
                     [](QueryStatus one) { return static_cast<int32_t>(one); });
    }
  };
  const auto threads = static_cast<int>(std::min(q.threads, stepcast::kMostThreads));
  stepcast::internal::ShareOutQueries(q.count, threads, predict);
  if (unanswered != nullptr) *unanswered = std::accumulate(bad.begin(), bad.end(), std::size_t{0});
  return STEPCAST_OK;
}

stepcast_status stepcast_batch_search_init(stepcast_batch_search* search) {
  return GiveStruct(DefaultSearch(), search) ? STEPCAST_OK : STEPCAST_BAD_ARGUMENT;
}

stepcast_status stepcast_compiled_choose_batches(const stepcast_compiled* compiled,
                                                 const stepcast_allocation_arrays* allocations,
                                                 const stepcast_batch_search* search,
                                                 const stepcast_batch_choice_arrays* choices,
                                                 size_t* unanswered) {
  stepcast_allocation_arrays given{};
  stepcast_batch_search s = DefaultSearch();
  stepcast_batch_choice_arrays out{};
  if (compiled == nullptr || !TakeStruct(allocations, &given) || !TakeStruct(search, &s) ||
      !TakeStruct(choices, &out)) {
    return STEPCAST_BAD_ARGUMENT;
  }
  BatchSearch ours;
  ours.least_global_batch = s.least_global_batch;
  ours.most_global_batch = s.most_global_batch;
  ours.least_local_batch = s.least_local_batch;
  ours.most_local_batch = s.most_local_batch;
  ours.accumulate = s.accumulate != 0;
  ours.candidates = s.candidates;
  if (!std::isnan(s.noise_scale_samples)) ours.noise_scale = s.noise_scale_samples;
  if (!std::isnan(s.initial_batch_samples)) ours.initial_batch = s.initial_batch_samples;
  if (!IsSearch(ours)) return STEPCAST_BAD_INPUT;

  std::array<Allocation, kChunk> asked;
  std::array<BatchChoice, kChunk> chosen;
  const PlanQuery& own = compiled->own;
  std::size_t bad = 0;
  for (std::size_t begin = 0; begin < given.count; begin += kChunk) {
    const std::size_t size = std::min(kChunk, given.count - begin);
    for (std::size_t i = 0; i < size; ++i) {
      asked[i] = {At(given.workers, begin + i, own.workers), At(given.nodes, begin + i, own.nodes),
                  At(given.devices_per_node, begin + i, own.devices_per_node),
                  At(given.servers, begin + i, own.servers),
                  At(given.slow_nodes, begin + i, *own.slow_nodes)};
    }
    bad += ChooseBatches(compiled->plan, asked.data(), size, ours, chosen.data());
    for (std::size_t i = 0; i < size; ++i) {
      const BatchChoice& choice = chosen[i];
      Put(out.local_batch, begin + i, int32_t{choice.local_batch});
      Put(out.accumulation_steps, begin + i, int32_t{choice.accumulation_steps});
      Put(out.step_time_s, begin + i, choice.step_time_s);
      Put(out.throughput_samples_per_s, begin + i, choice.throughput);
      Put(out.statistical_efficiency, begin + i, choice.statistical_efficiency);
      Put(out.goodput_samples_per_s, begin + i, choice.goodput);
    }
  }
  if (unanswered != nullptr) *unanswered = bad;
  return STEPCAST_OK;
}

}  // extern "C"
