// The exact derivatives of a step against differences of it.
#ifndef STEPCAST_TESTS_MODEL_STEP_DERIVATIVES_H_
#define STEPCAST_TESTS_MODEL_STEP_DERIVATIVES_H_

#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "model/step/answer.h"
#include "model/step/step.h"
#include "tests/model/support.h"

namespace stepcast {

// At some bandwidth of the link; what a property asks.
inline void RequireStepDerivatives(const StepFacts& facts,
                                   std::initializer_list<ClusterParameter> parameters) {
  PlanParameters at{PriorCluster(), PriorWorkload()};
  at.cluster.si[kLinkBandwidth] = *LogUniform(1e6, 1e11);
  const PlanAnswer answer = PlanModel(facts).Answer(at, Derivatives::kAll);
  RC_ASSERT(
      Near(answer.log_step, std::log(EvaluateStep(facts, at.cluster, at.workload).total().si())));
  for (const ClusterParameter parameter : parameters) {
    const auto moved = [&](double by) {
      ClusterParameters<double> cluster = at.cluster;
      cluster.si[parameter] *= std::exp(by);
      return std::log(EvaluateStep(facts, cluster, at.workload).total().si());
    };
    constexpr double kBy = 1e-6;
    const double slope = answer.log_step_gradient[parameter];
    const double up = (moved(kBy) - answer.log_step) / kBy;
    const double down = (answer.log_step - moved(-kBy)) / kBy;
    // A corner has two slopes.
    RC_ASSERT(std::min(up, down) - 1e-4 <= slope && slope <= std::max(up, down) + 1e-4);
  }
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_MODEL_STEP_DERIVATIVES_H_
