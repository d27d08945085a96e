#include "predictor/search/allocations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

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
  static constexpr std::size_t kMost = 64;
  std::array<int, kMost> local_batches;
  std::array<int, kMost> accumulation_steps;
  std::array<double, kMost> step_times_s;
  std::array<double, kMost> batches;  // of all workers
  std::array<double, kMost> goodputs;
};

}  // namespace

std::size_t ChooseBatches(const CompiledPlan& compiled, const Allocation* allocations,
                          std::size_t count, const BatchSearch& search,
                          BatchChoice* choices) noexcept {
  const bool worth = search.noise_scale && search.initial_batch;
  const double noise = search.noise_scale.value_or(0);
  // 1 / efficiency = constant + batch by_batch, so that a goodput takes one division.
  const double all = worth ? noise + *search.initial_batch : 1.0;
  const double constant = worth ? noise / all : 1.0;
  const double by_batch = worth ? 1 / all : 0.0;
  std::size_t none = 0;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): set as far as it is read
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
    // Limits are those of int; shares are smaller, but for rounding.
    const auto whole = [](double share) {
      return static_cast<int>(std::min(share, 1.0 * std::numeric_limits<int>::max()));
    };
    const int least_share = whole(std::ceil(range.least / w));
    const int tried = range.empty(search) ? 0 : std::max(1, search.candidates);
    const double ratio =
        tried > 1 ? std::exp(std::log(range.most / range.least) / (tried - 1)) : 1.0;
    double wanted = range.least;
    BatchChoice best;
    int before = 0;
    for (int done = 0; done < tried;) {
      std::size_t now = 0;
      for (; now < Candidates::kMost && done < tried; ++done) {
        if (done > 0 && done + 1 == tried) wanted = range.most;
        const int share = std::max(whole(wanted / w), least_share);
        wanted *= ratio;
        if (share == before) continue;
        before = share;
        const bool accumulates = share > range.most_alone && range.most_accumulating > 0;
        const int steps = accumulates ? (share - 1) / range.most_accumulating + 1 : 1;
        candidates.accumulation_steps[now] = steps;
        candidates.local_batches[now] = accumulates ? share / steps : share;
        ++now;
      }
      if (compiled.StepTimes(query, candidates.local_batches.data(),
                             candidates.accumulation_steps.data(), now,
                             candidates.step_times_s.data()) != QueryStatus::kOk) {
        break;
      }
      for (std::size_t at = 0; at < now; ++at) {
        const double batch = w * candidates.local_batches[at] * candidates.accumulation_steps[at];
        candidates.batches[at] = batch;
        candidates.goodputs[at] =
            batch / (candidates.step_times_s[at] * (constant + batch * by_batch));
      }
      for (std::size_t at = 0; at < now; ++at) {
        if (!(candidates.goodputs[at] > best.goodput)) continue;
        const int local = candidates.local_batches[at];
        const int steps = candidates.accumulation_steps[at];
        const double batch = candidates.batches[at];
        const bool allowed = batch >= range.least && batch <= range.most &&
                             local >= search.least_local_batch &&
                             local <= (steps > 1 ? range.most_accumulating : range.most_alone);
        if (!allowed) continue;
        best = {local, steps, candidates.step_times_s[at], 0, 1, candidates.goodputs[at]};
      }
    }
    if (best.local_batch == 0) {
      ++none;
    } else {
      const double batch = w * best.local_batch * best.accumulation_steps;
      best.throughput = batch / best.step_time_s;
      if (worth) {
        best.efficiency =
            StatisticalEfficiency(Samples(noise), Samples(*search.initial_batch), Samples(batch));
      }
      best.goodput = best.throughput * best.efficiency;
    }
    choices[i] = best;
  }
  return none;
}

}  // namespace stepcast
