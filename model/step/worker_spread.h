// What the workers of a plan differ by, as it shows in how its steps differ from each other.
//
//   D = (x_0.95 - x_0.5) sigma (a / l)^(1/2) t / T;   with l = 1 of one who exchanges nothing
//
//   D      how far 95 % of the steps stay above their median, as a share of the mean        [1]
//   x_q    q-quantile of the largest but k of w standard normal values; of one, where a worker
//          waits for nobody
//   sigma  straggler_spread                                                                 [1]
//   a, l   micro-steps of a step; steps from one synchronisation to the next
//   t, T   forward and backward passes of a micro-step, and the step                        [s]
//
// Where a worker exchanges nothing, D is all of what is measured. Elsewhere steps differ by what
// the network does, too, so that D is at most that.
//
// Source: model/sync/straggler.h, of which this is the part without a common scatter.
#ifndef STEPCAST_MODEL_STEP_WORKER_SPREAD_H_
#define STEPCAST_MODEL_STEP_WORKER_SPREAD_H_

#include "model/step/answer.h"
#include "model/step/step_facts.h"

namespace stepcast {

class WorkerSpread {
 public:
  explicit WorkerSpread(const StepFacts& facts);

  // Whether nothing but the workers makes steps differ.
  bool is_all() const { return is_all_; }
  // ln D, and its gradient by the plan's columns, of which the answer has some.
  double Log(const PlanAnswer& answer, double straggler_spread) const;
  static double Slope(const PlanAnswer& answer, int column);

 private:
  double log_factor_ = 0;  // of sigma a t / T
  bool is_all_ = false;
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_WORKER_SPREAD_H_
