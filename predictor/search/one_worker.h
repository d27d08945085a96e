// One worker, or one node, of a plan by itself: what the whole is held against.
#ifndef STEPCAST_PREDICTOR_SEARCH_ONE_WORKER_H_
#define STEPCAST_PREDICTOR_SEARCH_ONE_WORKER_H_

#include <optional>

#include "data/plan/check.h"
#include "data/record/input_error.h"
#include "data/record/plan.h"
#include "data/record/workload.h"
#include "model/step/step_facts.h"
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

// The step of one worker by itself, of which `one` is the whole, with the update of its own share
// where the plan shares the model out.
inline Duration<> StepAlone(const Predictor& predictor, const StepTime<double>& one,
                            const Plan& plan) {
  if (plan.shard == Shard::kNone) return one.total();
  return one.total() - one.update * (1 - internal::UpdateShare(predictor.Facts(plan)));
}

// What workers of a plan do by themselves, each at full speed with the samples that it takes in the
// plan, be they those of its slow nodes, and where the model is shared out with the update of its
// own share. Where each exchanges nothing, no plan of them all does more than they together.
class RatesAlone {
 public:
  // `one` is one worker of `plan`, at the local batch. The predictor outlives it.
  RatesAlone(const Predictor& predictor, const Plan& plan, Plan one)
      : predictor_(predictor), of_batch_(predictor, one) {
    if (!plan.slow_local_batch) return;
    one.local_batch = *plan.slow_local_batch;
    of_slow_batch_.emplace(predictor, one);
  }

  SampleRate<> of_one() const { return of_batch_.samples / of_batch_.step.total(); }
  // The rate of as many workers as `plan` has, which may be the same on other nodes.
  SampleRate<> Of(const Plan& plan) const {
    const SampleRate<> rate = RateIn(plan, of_batch_);
    if (!of_slow_batch_) return rate * static_cast<double>(plan.workers());
    const int slow = plan.slow_workers();
    return rate * static_cast<double>(plan.workers() - slow) +
           RateIn(plan, *of_slow_batch_) * static_cast<double>(slow);
  }

 private:
  struct Alone {
    Alone(const Predictor& predictor, const Plan& one)
        : samples(CountedSamples(one)), step(predictor.PredictStep(one)) {}
    SampleCount<> samples;
    StepTime<double> step;
  };

  SampleRate<> RateIn(const Plan& plan, const Alone& alone) const {
    return alone.samples / StepAlone(predictor_, alone.step, plan);
  }

  const Predictor& predictor_;
  Alone of_batch_;
  std::optional<Alone> of_slow_batch_;
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
