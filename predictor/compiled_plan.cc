#include "predictor/compiled_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>

#include "model/numeric/run_parts.h"
#include "predictor/compiled/compiled.h"
#include "predictor/compiled/query_parts.h"

namespace stepcast {

PlanQuery QueryOf(const Plan& plan) {
  return {plan.workers(),
          plan.nodes(),
          DevicesOnFullestNode(plan.placement),
          plan.servers,
          plan.local_batch,
          plan.accumulation_steps,
          {},
          {},
          plan.slow_nodes};
}

PlanQuery QueryAt(const QueryArrays& queries, std::size_t i, const PlanQuery& own) {
  const auto take = [i](const int* array, auto* value) {
    if (array != nullptr) *value = array[i];
  };
  const auto take_fact = [i](const double* array, auto of_si, auto* fact) {
    if (array != nullptr && !std::isnan(array[i])) *fact = of_si(array[i]);
  };
  PlanQuery query = own;
  take(queries.workers, &query.workers);
  take(queries.nodes, &query.nodes);
  take(queries.devices_per_node, &query.devices_per_node);
  take(queries.servers, &query.servers);
  take(queries.local_batch, &query.local_batch);
  take(queries.accumulation_steps, &query.accumulation_steps);
  take(queries.slow_nodes, &query.slow_nodes);
  take_fact(queries.bandwidth_bytes_per_s, DataRate<>::FromSi, &query.link.bandwidth);
  take_fact(queries.rtt_s, Duration<>::FromSi, &query.link.rtt);
  take_fact(
      queries.loss_rate, [](double rate) { return rate; }, &query.link.loss);
  return query;
}

const char* QueryStatusText(QueryStatus status) {
  static constexpr const char* kTexts[kQueryStatusCount] = {
      "ok",
      "workers do not fit nodes and devices_per_node, or nodes differ with shard hybrid",
      "no such number of servers",
      "local_batch or accumulation_steps is out of range",
      "a bandwidth, round trip or loss is out of range",
      "nothing is exchanged",
      "slow_nodes are too many, or all with slow_local_batch, or the plan says no slow_speed"};
  return kTexts[static_cast<int>(status)];
}

CompiledPlan::CompiledPlan(const Predictor& predictor, const Plan& plan,
                           const CompileOptions& options)
    : compiled_(std::make_shared<const internal::CompiledState>(predictor, plan, options)) {}

Forecast CompiledPlan::Predict(const PlanQuery& query) const noexcept {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  Forecast forecast{Seconds(kNone), Seconds(kNone),    Seconds(kNone),
                    kNone,          Limiter::kNothing, compiled_->Check(query)};
  if (forecast.status != QueryStatus::kOk) return forecast;
  const StepFacts facts = compiled_->FactsOf(query);
  internal::PredictInterval(*compiled_, query, facts, &forecast);
  return forecast;
}

QueryStatus CompiledPlan::StatusOf(const PlanQuery& query) const noexcept {
  return compiled_->Check(query);
}

std::optional<QueryProblem> CompiledPlan::ProblemOf(const PlanQuery& query) const {
  return compiled_->ProblemOf(query);
}

Duration<> CompiledPlan::StepTime(const PlanQuery& query) const noexcept {
  const internal::CompiledState& c = *compiled_;
  if (c.Check(query) != QueryStatus::kOk) {
    return Seconds(std::numeric_limits<double>::quiet_NaN());
  }
  return c.StepTime(query);
}

QueryStatus CompiledPlan::StepTimes(const PlanQuery& allocation, const int* local_batches,
                                    const int* accumulation_steps, std::size_t count,
                                    double* step_times_s) const noexcept {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const internal::CompiledState& c = *compiled_;
  PlanQuery query = allocation;
  query.local_batch = query.accumulation_steps = 1;
  const QueryStatus status = c.Check(query);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): MakeExchange sets it
  internal::Exchange exchange;
  const bool lines = status == QueryStatus::kOk && c.MakeExchange(query, &exchange);
  if (lines) {
    c.StepTimes(exchange, local_batches, accumulation_steps, count, step_times_s);
    return status;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (status != QueryStatus::kOk ||
        !internal::CompiledState::IsBatch(local_batches[i], accumulation_steps[i])) {
      step_times_s[i] = kNone;
    } else {
      query.local_batch = local_batches[i];
      query.accumulation_steps = accumulation_steps[i];
      step_times_s[i] = c.StepTime(query).si();
    }
  }
  return status;
}

std::size_t CompiledPlan::PredictMany(const QueryArrays& queries, const ForecastArrays& answers,
                                      int threads) const noexcept {
  std::array<std::size_t, kMostThreads> bad{};
  internal::ShareOutQueries(
      queries.size, threads,
      [&](std::size_t part, std::size_t begin, std::size_t end, internal::ExchangeCache* cache) {
        bad[part] = PredictRange(queries, answers, begin, end, cache);
      });
  return std::accumulate(bad.begin(), bad.end(), std::size_t{0});
}

std::size_t CompiledPlan::PredictPart(const QueryArrays& queries, const ForecastArrays& answers,
                                      internal::ExchangeCache* cache) const noexcept {
  return PredictRange(queries, answers, 0, queries.size, cache);
}

std::size_t CompiledPlan::PredictRange(const QueryArrays& queries, const ForecastArrays& answers,
                                       std::size_t begin, std::size_t end,
                                       internal::ExchangeCache* cache) const noexcept {
  const internal::CompiledState& c = *compiled_;
  const bool intervals =
      answers.low_s != nullptr || answers.high_s != nullptr || answers.log_sd != nullptr;
  const auto value = [](const int* array, std::size_t i, int own) {
    return array != nullptr ? array[i] : own;
  };
  const auto stated = [](const double* array, std::size_t i) {
    return array != nullptr && !std::isnan(array[i]);
  };
  const bool links = queries.bandwidth_bytes_per_s != nullptr || queries.rtt_s != nullptr ||
                     queries.loss_rate != nullptr;
  std::size_t bad = 0;
  // Steps of exchanges that are known are joined many at once.
  internal::Joints joints;
  std::array<std::size_t, internal::Joints::kAtOnce> places{};
  const auto join = [&] {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): JoinAll sets it
    std::array<double, internal::Joints::kAtOnce> step_times_s;
    c.JoinAll(joints, step_times_s.data());
    for (std::size_t k = 0; answers.step_time_s != nullptr && k < joints.size; ++k) {
      answers.step_time_s[places[k]] = step_times_s[k];
    }
    joints.size = 0;
  };
  for (std::size_t i = begin; i < end; ++i) {
    const internal::PlacementKey key{value(queries.workers, i, c.own.workers),
                                     value(queries.nodes, i, c.own.nodes),
                                     value(queries.devices_per_node, i, c.own.devices_per_node),
                                     value(queries.servers, i, c.own.servers)};
    const int batch = value(queries.local_batch, i, c.own.local_batch);
    const int steps = value(queries.accumulation_steps, i, c.own.accumulation_steps);
    const bool has_link = links && (stated(queries.bandwidth_bytes_per_s, i) ||
                                    stated(queries.rtt_s, i) || stated(queries.loss_rate, i));
    const int slow = value(queries.slow_nodes, i, c.plan.slow_nodes);
    const auto query = [&] { return QueryAt(queries, i, c.own); };

    const internal::Exchange* exchange = nullptr;
    // Exchanges that are kept are of as many slow nodes as the plan has.
    if (!intervals && !has_link && slow == c.plan.slow_nodes && key.workers > 0 &&
        internal::CompiledState::IsBatch(batch, steps)) {
      exchange = cache->Find(key);
      if (exchange == nullptr && c.Check(query()) == QueryStatus::kOk) {
        internal::Exchange* made = cache->Take(key);
        if (c.MakeExchange(query(), made)) {
          exchange = made;
        } else {
          cache->Forget(key);
        }
      }
    }
    QueryStatus status = QueryStatus::kOk;
    if (exchange != nullptr) {
      places[joints.size] = i;
      c.Put(*exchange, batch, steps, &joints);
      if (joints.full()) join();
    } else if (intervals) {
      const Forecast f = Predict(query());
      status = f.status;
      if (answers.step_time_s != nullptr) answers.step_time_s[i] = f.step_time.si();
      if (answers.low_s != nullptr) answers.low_s[i] = f.low.si();
      if (answers.high_s != nullptr) answers.high_s[i] = f.high.si();
      if (answers.log_sd != nullptr) answers.log_sd[i] = f.log_sd;
    } else {
      const PlanQuery q = query();
      status = c.Check(q);
      if (answers.step_time_s != nullptr) {
        answers.step_time_s[i] = status == QueryStatus::kOk
                                     ? c.StepTime(q).si()
                                     : std::numeric_limits<double>::quiet_NaN();
      }
    }
    if (status != QueryStatus::kOk) ++bad;
    if (answers.status != nullptr) answers.status[i] = status;
    if (answers.memory != nullptr) {
      answers.memory[i] = status == QueryStatus::kOk ? c.Memory(query()) : MemoryVerdict::kUnknown;
    }
  }
  join();
  return bad;
}

int CompiledPlan::MostLocalBatch(const PlanQuery& query) const noexcept {
  const internal::CompiledState& c = *compiled_;
  int most = c.most_batch;
  if (c.memory_available) {
    const MemoryNeed beside = c.MemoryBesideSamples(query);
    const DataSize<> rest = beside.total;
    const DataSize<> left = *c.memory_available - rest;
    const DataSize<> of_sample = c.activations.PerSample();
    double fitting = left.si() < 0 ? 0 : most;
    if (fitting > 0 && of_sample.si() > 0) fitting = std::floor(left / of_sample);
    const double ran =
        std::max(c.activations.SamplesThatRan(rest),
                 c.activations.SamplesBesideCopies(rest, beside.buckets, *c.memory_available));
    most = static_cast<int>(std::min(std::max(fitting, ran), 1.0 * most));
  }
  const std::optional<int> slow = c.SlowBatch(query);
  return slow && *slow > most ? 0 : most;
}

int CompiledPlan::WorkersOfSlowBatch(const PlanQuery& query) const noexcept {
  const internal::CompiledState& c = *compiled_;
  if (!c.SlowBatch(query) || c.Check(query) != QueryStatus::kOk) return 0;
  return c.SlowWorkers(query);
}

MemoryVerdict CompiledPlan::Memory(const PlanQuery& query) const noexcept {
  return compiled_->Check(query) == QueryStatus::kOk ? compiled_->Memory(query)
                                                     : MemoryVerdict::kUnknown;
}

const std::optional<CalibratedRange::BatchRange>& CompiledPlan::calibrated_batches() const {
  return compiled_->batches;
}

const Plan& CompiledPlan::plan() const { return compiled_->plan; }
const CompileOptions& CompiledPlan::options() const { return compiled_->options; }

}  // namespace stepcast
