// What steps tell of memory that have run, and those that did not fit (model/memory/memory.h).
//
//   (available - N) / b  <  A  <=  (available - N_0) / b_0
//
//   A          activations that one sample leaves until its backward pass       [B]
//   N, b       need of no samples, and samples of a micro-step that did not fit [B], [1]
//   N_0, A_0   what a step that has run needed of no samples, and of each sample, by the count:
//              with its workers, shares and gradients, and trained as it was    [B]
//   b_0        samples of its largest micro-step
//
// of all steps that have run the lowest bound. A step that was trained otherwise, as one without
// recomputation beside a plan with it, bounds A where by the count A <= A_0: what needs less than
// has run needs no more.
//
// Counts are of layers trained as somebody has stated: what frameworks keep beside the outputs is
// more. Where N_0 alone is more than there is, the count is of something else than ran (a state
// that is offloaded, a training in 16 bits), and nothing is told of the activations; nor where N
// is. What has run has run all the same, and the count tells what needs no more: a plan fits where
//
//   N <= N_0   and   A b <= A_0 b_0
//
// Where no layers are known A and A_0 are not either, and only steps that were trained alike tell,
// by b <= b_0.
//
// Note that a run proves no plan that needs more by the count in either part: one of a worker alone
// none of several, which keep copies for their exchange, and one with gradients of 2 bytes none
// with 4. Nor does it disprove them. Of a worker that ran alone it is known that it needed no more
// than there is, not that it needed all of that: a plan that adds copies C for an exchange to what
// has run is tight, not out of memory, where
//
//   available < N + A b <= 1.25 available   and   N - C + A b <= available
//
// by the bound above and as far as the count is uncertain (kCountedWithin), and where nothing that
// needs no more has not fitted.
#ifndef STEPCAST_MODEL_MEMORY_FITTED_H_
#define STEPCAST_MODEL_MEMORY_FITTED_H_

#include <cmath>
#include <optional>
#include <vector>

#include "data/record/calibration.h"
#include "data/record/plan.h"
#include "data/record/workload.h"
#include "model/memory/memory.h"

namespace stepcast {

// (available - N) / b of this plan; empty where that is none.
inline std::optional<DataSize<>> RoomOfSample(const Workload& workload, const Plan& plan,
                                              DataSize<> available) {
  const DataSize<> left =
      available - ModelMemory(workload, plan).NeedOf(MemoryQuestion::Of(plan)).total;
  if (left.si() < 0) return std::nullopt;
  return left / static_cast<double>(plan.largest_batch());
}

// N_0 of a step of that workload, trained as it was.
inline DataSize<> NeedOfRun(const Workload& trained, const CalibratedRange::Ran& ran) {
  Plan plan;
  plan.placement = {ran.sharers > 1 ? ran.sharers : ran.bytes_per_parameter > 0 ? 2 : 1};
  plan.shard = ran.sharers > 1 ? ran.shard : Shard::kNone;
  plan.bytes_per_parameter = ran.bytes_per_parameter;
  plan.compress = ran.compress;
  plan.bucket = ran.bucket;
  return ModelMemory(trained, plan).NeedOf(MemoryQuestion::Of(plan)).total;
}

// Steps of the workload `trained`, which is that of `activations` trained in the same way or in
// another.
inline void LearnFromRuns(const Workload& trained, bool in_the_same_way,
                          const std::vector<CalibratedRange::Ran>& runs, DataSize<> available,
                          Activations* activations) {
  constexpr double kRounding = 1e-9;
  const DataSize<> counted = activations->counted;
  const DataSize<> there = in_the_same_way ? counted : KeptActivations(trained);
  const bool is_counted = counted.si() > 0 && there.si() > 0;
  if (!in_the_same_way && !is_counted) return;
  for (const CalibratedRange::Ran& ran : runs) {
    const DataSize<> rest = NeedOfRun(trained, ran);
    const double of_these = in_the_same_way ? 1 : there / counted;
    const double samples = std::floor(ran.local_batch * of_these * (1 + kRounding));
    activations->ran.push_back({rest * (1 + kRounding), samples});
    const DataSize<> room = (available - rest) / (1.0 * ran.local_batch) * (1 - kRounding);
    if (room.si() < 0 || of_these < 1 - kRounding) continue;
    activations->most = activations->most ? Min(*activations->most, room) : room;
  }
}

// More than A can be without a micro-step of this plan, which did not fit, having room.
inline std::optional<DataSize<>> ActivationsThatDidNotFit(const Workload& workload,
                                                          const Plan& plan, DataSize<> available) {
  constexpr double kRounding = 1e-9;
  const std::optional<DataSize<>> room = RoomOfSample(workload, plan, available);
  return room ? std::optional(*room * (1 + kRounding)) : std::nullopt;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_MEMORY_FITTED_H_
