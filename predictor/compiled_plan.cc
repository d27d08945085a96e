#include "predictor/compiled_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "predictor/compiled/compiled.h"

namespace stepcast {

PlanQuery QueryOf(const Plan& plan) {
  return {plan.workers(),
          plan.nodes(),
          DevicesOnFullestNode(plan.placement),
          plan.servers,
          plan.local_batch,
          plan.accumulation_steps,
          {},
          {}};
}

const char* QueryStatusText(QueryStatus status) {
  static constexpr const char* kTexts[kQueryStatusCount] = {
      "ok",
      "workers do not fit nodes and devices_per_node",
      "no such number of servers",
      "local_batch or accumulation_steps is out of range",
      "a bandwidth, round trip or loss is out of range",
      "nothing is exchanged"};
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

std::size_t CompiledPlan::PredictMany(const QueryArrays& queries,
                                      const ForecastArrays& answers) const noexcept {
  const internal::CompiledState& c = *compiled_;
  internal::ExchangeCache cache;
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
  PlanQuery q;
  for (std::size_t i = 0; i < queries.size; ++i) {
    if (links) q.link = {};
    q.workers = value(queries.workers, i, c.own.workers);
    q.nodes = value(queries.nodes, i, c.own.nodes);
    q.devices_per_node = value(queries.devices_per_node, i, c.own.devices_per_node);
    q.servers = value(queries.servers, i, c.own.servers);
    q.local_batch = value(queries.local_batch, i, c.own.local_batch);
    q.accumulation_steps = value(queries.accumulation_steps, i, c.own.accumulation_steps);
    if (stated(queries.bandwidth_bytes_per_s, i)) {
      q.link.bandwidth = BytesPerSecond(queries.bandwidth_bytes_per_s[i]);
    }
    if (stated(queries.rtt_s, i)) q.link.rtt = Seconds(queries.rtt_s[i]);
    if (stated(queries.loss_rate, i)) q.link.loss = queries.loss_rate[i];

    Forecast f;
    const internal::PlacementKey key{q.workers, q.nodes, q.devices_per_node, q.servers};
    const bool sweeps = q.link.empty() && q.workers > 0 &&
                        internal::CompiledState::IsBatch(q.local_batch, q.accumulation_steps);
    const internal::Exchange* exchange = nullptr;
    if (!intervals && sweeps) {
      exchange = cache.Find(key);
      if (exchange == nullptr && c.Check(q) == QueryStatus::kOk) {
        internal::Exchange* made = cache.Take(key);
        if (c.MakeExchange(q, made)) {
          exchange = made;
        } else {
          cache.Forget(key);
        }
      }
    }
    if (exchange != nullptr) {
      f.step_time = Seconds(c.StepTime(*exchange, q.local_batch, q.accumulation_steps));
    } else if (intervals) {
      f = Predict(q);
    } else {
      f.status = c.Check(q);
      f.step_time = f.status == QueryStatus::kOk
                        ? c.StepTime(q)
                        : Seconds(std::numeric_limits<double>::quiet_NaN());
    }
    if (f.status != QueryStatus::kOk) ++bad;
    if (answers.step_time_s != nullptr) answers.step_time_s[i] = f.step_time.si();
    if (answers.low_s != nullptr) answers.low_s[i] = f.low.si();
    if (answers.high_s != nullptr) answers.high_s[i] = f.high.si();
    if (answers.log_sd != nullptr) answers.log_sd[i] = f.log_sd;
    if (answers.status != nullptr) answers.status[i] = f.status;
    if (answers.memory != nullptr) {
      answers.memory[i] = f.status == QueryStatus::kOk ? c.Memory(q) : MemoryVerdict::kUnknown;
    }
  }
  return bad;
}

int CompiledPlan::MostLocalBatch(const PlanQuery& query) const noexcept {
  const internal::CompiledState& c = *compiled_;
  const std::optional<DataSize<>> left = c.MemoryLeft(query);
  if (!left) return c.most_batch;
  if (left->si() < 0) return 0;
  if (!(c.memory_per_sample.si() > 0)) return c.most_batch;
  return static_cast<int>(std::min(std::floor(*left / c.memory_per_sample), 1.0 * c.most_batch));
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
