// How much of a step the devices stand idle.
//
//   idleness = 1 - compute / step = (step - compute) / step
//
//   compute  time a worker computes in one step, all micro-steps and the update            [s]
//   step     from one optimizer step to the next, compute <= step                          [s]
//
// The rest of the step is exposed synchronisation and the wait for stragglers; communication that
// hides behind the backward pass is no idleness. This is the mean of one worker.
//
// Note that it lies in [0, 1), is 0 exactly where the step is all compute, grows with everything
// that lengthens the step without computing, and that compute / (1 - idleness) is the step again.
//
// Source: Jia, Saha, Bhimani, Mi, "Performance and Consistency Analysis for Distributed Deep
// Learning Applications": the share of an iteration in which a worker waits for new parameters.
#ifndef STEPCAST_MODEL_SYNC_IDLENESS_H_
#define STEPCAST_MODEL_SYNC_IDLENESS_H_

#include "data/units/quantity.h"

namespace stepcast {

template <class T>
T IdlenessRatio(const Duration<T>& compute, const Duration<T>& step) {
  return (step - compute) / step;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_SYNC_IDLENESS_H_
