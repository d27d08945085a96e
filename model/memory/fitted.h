// What a batch that has run tells of memory: it fits, whatever was counted (model/memory/memory.h).
//
//   A <= (available - N_0) / b
//
//   A          activations that one sample leaves until its backward pass       [B]
//   N_0        need of no samples, of several workers that accumulate           [B]
//   b          samples of the largest micro-step that has run
//
// Counts are of layers that keep their outputs, at the precision that somebody has stated: half
// precision of which nobody says and checkpoints need less. Where N_0 alone is more than there is,
// nothing of the activations is told.
//
// Note that no plan is then short of memory that has at most that batch, and whose model is not
// larger than the one that ran: one worker that does not accumulate needs less.
#ifndef STEPCAST_MODEL_MEMORY_FITTED_H_
#define STEPCAST_MODEL_MEMORY_FITTED_H_

#include "data/record/plan.h"
#include "data/record/workload.h"
#include "model/memory/memory.h"

namespace stepcast {

// `counted` or less, where a micro-step of so many samples has run.
inline DataSize<> ActivationsThatFitted(const Workload& workload, DataSize<> counted, int batch,
                                        DataSize<> available) {
  constexpr double kRounding = 1e-9;
  Plan empty;
  empty.placement = {2};
  empty.accumulation_steps = 2;
  empty.local_batch = 0;
  const DataSize<> left = available - CountMemory(workload, {}, empty, available).total;
  if (left.si() < 0) return counted;
  return Min(counted, left * ((1 - kRounding) / static_cast<double>(batch)));
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_MEMORY_FITTED_H_
