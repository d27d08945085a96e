#include "calibrate/group_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>

#include "data/plan/check.h"
#include "data/plan/fields.h"
#include "data/record/input_error.h"
#include "model/statistics/normal.h"
#include "model/step/parameters.h"
#include "model/step/plan_key.h"
#include "model/step/workload_counts.h"

namespace stepcast {
namespace {

// The exposed synchronisation of an all-reduce includes the wait for the slowest worker, because
// nobody's ends before everybody's began. What one device measures is the call alone.
std::optional<double> SyncShare(const Run& run) {
  if (!run.exposed_sync || run.plan.workers() == 1 || UsesServers(run.plan.strategy)) {
    return std::nullopt;
  }
  return *run.exposed_sync / run.step_time;
}

// ln D of plan_rows.h: by the quantiles where they were measured, else as a normal law has it.
std::optional<double> LogSpread(const Run& run, const Workload& workload) {
  const StepSpread& spread = run.spread;
  const bool exchanges = WorkersExchange(run.plan);
  // Where every so many steps holds an exchange, steps differ by that.
  if (workload.communication_only || (exchanges && run.plan.local_steps > 1)) return std::nullopt;
  const double q95 = NormalQuantile(0.95);
  std::optional<Duration<>> above;
  if (spread.p50 && spread.p95) {
    above = *spread.p95 - *spread.p50;
  } else if (spread.p50 && spread.p99) {
    above = (*spread.p99 - *spread.p50) * (q95 / NormalQuantile(0.99));
  } else if (spread.sd) {
    above = *spread.sd * q95;
  }
  // A clock may be too coarse to tell steps apart.
  const double least = q95 * kWorkloadParameterSpecs[kStragglerSpread].low;
  if (!above || *above / run.step_time < least) return std::nullopt;
  return std::log(*above / run.step_time);
}

struct KeyHash {
  std::size_t operator()(const PlanKey& key) const {
    std::size_t hash = key.size();
    for (const double part : key) hash = hash * 0x9E3779B97F4A7C15 ^ std::hash<double>()(part);
    return hash;
  }
};

}  // namespace

std::vector<PlanRows> GroupRows(const CalibrationProblem& problem, const ParameterLayout& layout) {
  std::map<std::string, BucketsOfPlans> buckets;  // by workload
  std::map<int, WorkloadCounts> counts;           // by workload and device, as offsets are
  std::unordered_map<PlanKey, std::size_t, KeyHash> index;
  std::deque<PlanRows> plans;
  for (std::size_t i = 0; i < problem.runs.size(); ++i) {
    const Run& run = problem.runs[i];
    const Workload& workload = problem.workloads.at(run.workload);
    const int workload_offset = layout.WorkloadOffset(run);
    std::vector<int> host_offsets = layout.HostOffsets(run);
    ParameterLayout::Slowdowns slowdowns = layout.SlowdownsOf(run);
    PlanKey key =
        FactsKey(problem.cluster, run.plan, host_offsets, slowdowns.offsets, slowdowns.others);
    key.insert(key.begin(), workload_offset);
    const auto [at, first] = index.try_emplace(std::move(key), plans.size());
    PlanRows& group = first ? plans.emplace_back() : plans[at->second];
    if (first) {
      try {
        const auto shared = buckets[run.workload].Of(workload, run.plan);
        const auto counted =
            counts.try_emplace(workload_offset, workload, DataSheetOf(problem.devices, run.device));
        group.model = PlanModel(MakeStepFacts(problem.cluster, run.plan, workload, shared,
                                              MemoryBandwidthOf(problem.devices, run.device),
                                              &counted.first->second));
      } catch (const InputError& e) {
        throw InRow(e, run.place);
      }
      group.workload_offset = workload_offset;
      group.host_offsets = std::move(host_offsets);
      group.slowdown_offsets = std::move(slowdowns.offsets);
      group.others = slowdowns.others;
    }
    const double log_step = std::log(run.step_time.in(kSeconds));
    if (run.stopped) {
      group.stopped.push_back({static_cast<int>(i), log_step});
      continue;
    }
    const MeasuredRow row{static_cast<int>(i), log_step, SyncShare(run), LogSpread(run, workload)};
    if (row.log_spread && !group.spread) group.spread.emplace(group.model.facts());
    group.rows.push_back(row);
  }
  std::vector<std::pair<PlanKey, std::size_t>> ordered(index.begin(), index.end());
  std::sort(ordered.begin(), ordered.end());
  std::vector<PlanRows> result;
  result.reserve(plans.size());
  for (const auto& [key, at] : ordered) result.push_back(std::move(plans[at]));
  return result;
}

std::vector<std::size_t> ShuffledOrder(std::size_t n) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random;
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

std::vector<const PlanRows*> Shuffled(const std::vector<PlanRows>& plans) {
  constexpr int kFewOfEach = 8;
  std::vector<const PlanRows*> pointers;
  for (const std::size_t i : ShuffledOrder(plans.size())) pointers.push_back(&plans[i]);
  std::map<int, int> seen;
  std::stable_partition(pointers.begin(), pointers.end(), [&](const PlanRows* plan) {
    return ++seen[plan->workload_offset] <= kFewOfEach;
  });
  return pointers;
}

std::optional<double> RepeatScatter(const std::vector<PlanRows>& plans) {
  double squares = 0;
  int degrees = 0;
  for (const PlanRows& plan : plans) {
    if (plan.rows.empty()) continue;
    double mean = 0;
    for (const MeasuredRow& row : plan.rows) mean += row.log_step;
    mean /= static_cast<double>(plan.rows.size());
    for (const MeasuredRow& row : plan.rows) squares += std::pow(row.log_step - mean, 2);
    degrees += static_cast<int>(plan.rows.size()) - 1;
  }
  if (degrees == 0) return std::nullopt;
  return std::sqrt(squares / degrees);
}

}  // namespace stepcast
