// What steps tell of memory that have run, and those that did not fit (model/memory/memory.h).
//
//   (available - N) / b  <  A  <=  (available - N_0) / b_0
//
//   A          activations that one sample leaves until its backward pass       [B]
//   N, b       need of no samples, and samples of a micro-step that did not fit [B], [1]
//   N_0        need of no samples, of several workers that accumulate           [B]
//   b_0        samples of the largest micro-step that has run
//
// Counts are of layers trained as somebody has stated: half precision and recomputed activations of
// which nobody says need less, and what frameworks keep beside the outputs is more. Where N_0 alone
// is more than there is, nothing of the activations is told; nor where N is.
//
// Note that no plan is then short of memory that has at most b_0 samples, and whose model is not
// larger than the one that ran: one worker that does not accumulate needs less.
#ifndef STEPCAST_MODEL_MEMORY_FITTED_H_
#define STEPCAST_MODEL_MEMORY_FITTED_H_

#include <optional>

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

// The most that A can be, where a micro-step of so many samples has run.
inline std::optional<DataSize<>> ActivationsThatFitted(const Workload& workload, int batch,
                                                       DataSize<> available) {
  constexpr double kRounding = 1e-9;
  Plan ran;
  ran.placement = {2};
  ran.accumulation_steps = 2;
  ran.local_batch = batch;
  const std::optional<DataSize<>> room = RoomOfSample(workload, ran, available);
  return room ? std::optional(*room * (1 - kRounding)) : std::nullopt;
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
