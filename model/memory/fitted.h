// What steps tell of memory that have run, and those that did not fit (model/memory/memory.h).
//
//   (available - N) / b  <  A  <=  (available - N_0) / b_0
//
//   A          activations that one sample leaves until its backward pass       [B]
//   N, b       need of no samples, and samples of a micro-step that did not fit [B], [1]
//   N_0        need of no samples of a step that has run, with its model shared out as it was; of
//              a model that was not, with several workers                       [B]
//   b_0        samples of its largest micro-step
//
// of all steps that have run the lowest bound. Counts are of layers trained as somebody has stated:
// half precision and recomputed activations of which nobody says need less, and what frameworks
// keep beside the outputs is more. Where N_0 alone is more than there is, the count is of something
// else than ran (a state that is offloaded, gradients in 16 bits), and nothing is told of the
// activations; nor where N is. What has run has run all the same: at most b_0 samples beside at
// most N_0 fit.
//
// Note that no plan is then short of memory that has at most b_0 samples, and keeps no more of the
// model than the one that ran: one worker alone needs less than several.
#ifndef STEPCAST_MODEL_MEMORY_FITTED_H_
#define STEPCAST_MODEL_MEMORY_FITTED_H_

#include <algorithm>
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
  const DataSize<> left = available - CountMemory(workload, {}, plan, std::nullopt).total;
  if (left.si() < 0) return std::nullopt;
  return left / static_cast<double>(plan.largest_batch());
}

// N_0 and b_0.
inline RunNeed NeedOfRun(const Workload& workload, const CalibratedRange::Ran& ran) {
  Plan plan;
  plan.placement = {std::max(2, ran.sharers)};
  plan.shard = ran.sharers > 1 ? ran.shard : Shard::kNone;
  return {CountMemory(workload, {}, plan, std::nullopt).total, ran.local_batch};
}

inline void LearnFromRuns(const Workload& workload, const std::vector<CalibratedRange::Ran>& runs,
                          DataSize<> available, Activations* activations) {
  constexpr double kRounding = 1e-9;
  for (const CalibratedRange::Ran& ran : runs) {
    RunNeed step = NeedOfRun(workload, ran);
    const DataSize<> room = (available - step.rest) / (1.0 * step.samples) * (1 - kRounding);
    step.rest = step.rest * (1 + kRounding);
    activations->ran.push_back(step);
    if (room.si() < 0) continue;
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
