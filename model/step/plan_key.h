// The plans that have one answer, by a key that they share.
#ifndef STEPCAST_MODEL_STEP_PLAN_KEY_H_
#define STEPCAST_MODEL_STEP_PLAN_KEY_H_

#include <vector>

#include "data/plan/key.h"
#include "data/record/machine.h"
#include "data/record/plan.h"

namespace stepcast {

// All that decides the step of one workload: plans of equal keys have equal answers. `links` and
// `slowdowns` are the caller's numbers of the links of the plan's hosts and of what slows their
// compute, each in an order of their own; `others`: whether some of them compute like most.
PlanKey FactsKey(const Cluster& cluster, const Plan& plan, const std::vector<int>& links,
                 const std::vector<int>& slowdowns, bool others);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_PLAN_KEY_H_
