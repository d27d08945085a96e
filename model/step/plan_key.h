// The plans that have one answer, by a key that they share.
#ifndef STEPCAST_MODEL_STEP_PLAN_KEY_H_
#define STEPCAST_MODEL_STEP_PLAN_KEY_H_

#include <vector>

#include "data/plan/key.h"
#include "data/record/machine.h"
#include "data/record/plan.h"
#include "model/step/step.h"

namespace stepcast {

// All that decides the step of one workload: plans of equal keys have equal answers. `links` are
// the caller's numbers of the links of the plan's hosts, in an order of their own.
PlanKey FactsKey(const Cluster& cluster, const Plan& plan, const std::vector<int>& links);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_PLAN_KEY_H_
