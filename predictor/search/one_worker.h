// One worker, or one node, of a plan by itself: what the whole is held against.
#ifndef STEPCAST_PREDICTOR_SEARCH_ONE_WORKER_H_
#define STEPCAST_PREDICTOR_SEARCH_ONE_WORKER_H_

#include "data/plan/check.h"
#include "data/record/input_error.h"
#include "data/record/plan.h"
#include "data/record/workload.h"
#include "predictor/predictor.h"

namespace stepcast {

// One worker with nobody to exchange with, at the plan's batch and accumulation, on a host that
// nobody names.
inline Plan OneWorkerOf(const Plan& plan) {
  Plan one = WithStrategy(plan, Strategy::kNone);
  one.placement = {1};
  one.hosts.clear();
  return one;
}

// The fullest node of a plan by itself, on a host that nobody names.
inline Plan OneNodeOf(const Plan& plan) {
  Plan node = WithPlacement(plan, {DevicesOnFullestNode(plan.placement)});
  node.hosts.clear();
  node.backup_workers = 0;
  return node;
}

// What workers of a plan do by themselves, each at full speed with the samples that it takes in the
// plan, be they those of its slow nodes. Where each exchanges nothing, no plan of them all does
// more than they together.
class RatesAlone {
 public:
  // `one` is one worker of `plan`, at the local batch.
  RatesAlone(const Predictor& predictor, const Plan& plan, Plan one)
      : rate_(RateOf(predictor, one)) {
    if (!plan.slow_local_batch) return;
    one.local_batch = *plan.slow_local_batch;
    slow_batch_rate_ = RateOf(predictor, one);
  }

  SampleRate<> of_one() const { return rate_; }
  // The rate of as many workers as `plan` has, which may be the same on other nodes.
  SampleRate<> Of(const Plan& plan) const {
    if (!plan.slow_local_batch) return rate_ * static_cast<double>(plan.workers());
    const int slow = plan.slow_workers();
    return rate_ * static_cast<double>(plan.workers() - slow) +
           slow_batch_rate_ * static_cast<double>(slow);
  }

 private:
  static SampleRate<> RateOf(const Predictor& predictor, const Plan& plan) {
    return CountedSamples(plan) / predictor.PredictStep(plan).total();
  }

  SampleRate<> rate_;
  SampleRate<> slow_batch_rate_;
};

// Throws InputError for a bare message, of which one worker does nothing.
inline void RequireWorkOfOne(const Workload& workload) {
  if (!workload.communication_only) return;
  throw InputError({"", 0, "workload"}, workload.name,
                   "is a bare message, and one worker, which plans are compared with here, sends "
                   "nothing",
                   "a forecast of the message (predict, explain, sweep), or a workload that "
                   "computes");
}

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_SEARCH_ONE_WORKER_H_
