// The parameters that the facade evaluates one plan with.
#ifndef STEPCAST_PREDICTOR_ACTIVE_H_
#define STEPCAST_PREDICTOR_ACTIVE_H_

#include "model/step/answer.h"
#include "model/step/belief.h"
#include "predictor/predictor.h"

namespace stepcast {

// The slowest of the plan's links has a column of its own, also where it is the cluster's, so that
// links to servers are told apart from it.
struct Predictor::Active {
  PlanParameters values;
  Belief::AtHosts hosts;    // positions in the belief
  double share_log_sd = 0;  // of the share that is reached of stated rates

  StepTime<double> Evaluate(const StepFacts& facts) const {
    return EvaluateStep(facts, values.cluster, values.workload);
  }
  // Standard deviation of what has this gradient, by what is not known of the parameters.
  double LogSd(const PlanGradient& gradient, const Belief& belief) const;
};

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_ACTIVE_H_
