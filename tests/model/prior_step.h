// The step of a plan on a cluster of which nothing is known but what the plan says.
#ifndef STEPCAST_TESTS_MODEL_PRIOR_STEP_H_
#define STEPCAST_TESTS_MODEL_PRIOR_STEP_H_

#include <memory>
#include <optional>
#include <vector>

#include "data/record/machine.h"
#include "data/record/plan.h"
#include "data/record/workload.h"
#include "model/overlap/buckets.h"
#include "model/step/step.h"
#include "tests/model/support.h"

namespace stepcast {

inline StepTime<double> PriorStep(const Plan& plan, const Workload& network) {
  const auto buckets = std::make_shared<const std::vector<Bucket>>(
      MakeBuckets(network, BucketCap(plan, network.gradient_bytes)));
  return EvaluateStep(MakeStepFacts({}, plan, network, buckets, std::nullopt), PriorCluster(),
                      PriorWorkload());
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_MODEL_PRIOR_STEP_H_
