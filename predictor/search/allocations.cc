#include "predictor/search/allocations.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "data/io/plan_fields.h"
#include "model/statistics/noise_scale.h"

namespace stepcast {
namespace {

// The global batches that one allocation may have.
struct Range {
  double least = 1;
  double most = 1;
  int most_alone = 1;         // local batch, of a single micro-step
  int most_accumulating = 1;  // and of several, which keep a buffer

  bool empty(const BatchSearch& search) const {
    return most < least || most_alone < std::max(1, search.least_local_batch);
  }
};

Range RangeOf(const CompiledPlan& compiled, PlanQuery query, const BatchSearch& search) {
  const auto most_local = [&](int accumulation_steps) {
    query.accumulation_steps = accumulation_steps;
    const int most = compiled.MostLocalBatch(query);
    return search.most_local_batch > 0 ? std::min(most, search.most_local_batch) : most;
  };
  const double w = query.workers;
  Range range;
  range.most_alone = most_local(1);
  range.most_accumulating = search.accumulate ? most_local(2) : 0;
  range.least =
      std::max(1.0 * search.least_global_batch, w * std::max(1, search.least_local_batch));
  range.most = search.most_global_batch;
  if (range.most_accumulating < 1) range.most = std::min(range.most, w * range.most_alone);
  return range;
}

// Candidates of one allocation, as many as are answered at a time.
struct Candidates {
  static constexpr int kMost = 64;
  std::array<int, kMost> local_batches;
  std::array<int, kMost> accumulation_steps;
  std::array<double, kMost> step_times_s;
};

}  // namespace

std::size_t ChooseBatches(const CompiledPlan& compiled, const Allocation* allocations,
                          std::size_t count, const BatchSearch& search,
                          BatchChoice* choices) noexcept {
  const bool worth = search.noise_scale && search.initial_batch;
  const double noise = search.noise_scale.value_or(0);
  std::size_t none = 0;
  Candidates candidates;
  for (std::size_t i = 0; i < count; ++i) {
    PlanQuery query;
    query.workers = allocations[i].workers;
    query.nodes = allocations[i].nodes;
    query.devices_per_node = allocations[i].devices_per_node;
    query.servers = allocations[i].servers;
    if (query.workers < 1) {
      choices[i] = {};
      ++none;
      continue;
    }
    const Range range = RangeOf(compiled, query, search);
    const double w = query.workers;
    const auto least_share = static_cast<long long>(std::ceil(range.least / w));
    const int tried = range.empty(search) ? 0 : std::max(1, search.candidates);
    const double ratio =
        tried > 1 ? std::exp(std::log(range.most / range.least) / (tried - 1)) : 1.0;
    double wanted = range.least;
    BatchChoice best;
    for (int done = 0; done < tried; done += Candidates::kMost) {
      const int now = std::min(Candidates::kMost, tried - done);
      for (int j = 0; j < now; ++j) {
        const auto at = static_cast<std::size_t>(j);
        if (done + j > 0 && done + j + 1 == tried) wanted = range.most;
        // Limits are those of int, and shares are smaller.
        const long long share = std::max(static_cast<long long>(wanted / w), least_share);
        const bool accumulates = share > range.most_alone && range.most_accumulating > 0;
        const long long steps = accumulates ? (share - 1) / range.most_accumulating + 1 : 1;
        candidates.accumulation_steps[at] = static_cast<int>(steps);
        candidates.local_batches[at] = static_cast<int>(accumulates ? share / steps : share);
        wanted *= ratio;
      }
      if (compiled.StepTimes(query, candidates.local_batches.data(),
                             candidates.accumulation_steps.data(), static_cast<std::size_t>(now),
                             candidates.step_times_s.data()) != QueryStatus::kOk) {
        break;
      }
      for (int j = 0; j < now; ++j) {
        const auto at = static_cast<std::size_t>(j);
        const int local = candidates.local_batches[at];
        const int steps = candidates.accumulation_steps[at];
        const double batch = w * local * steps;
        const bool allowed = batch >= range.least && batch <= range.most &&
                             local >= search.least_local_batch &&
                             local <= (steps > 1 ? range.most_accumulating : range.most_alone);
        const double throughput = batch / candidates.step_times_s[at];
        const double efficiency = worth ? (noise + *search.initial_batch) / (noise + batch) : 1.0;
        if (allowed && throughput * efficiency > best.goodput) {
          best = {local,      steps,      candidates.step_times_s[at],
                  throughput, efficiency, throughput * efficiency};
        }
      }
    }
    if (best.local_batch == 0) ++none;
    choices[i] = best;
  }
  return none;
}

}  // namespace stepcast
