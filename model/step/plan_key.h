// What tells two plans apart, as numbers: in one list, for all that groups runs by it.
#ifndef STEPCAST_MODEL_STEP_PLAN_KEY_H_
#define STEPCAST_MODEL_STEP_PLAN_KEY_H_

#include <vector>

#include "data/record/machine.h"
#include "data/record/plan.h"
#include "model/step/step.h"

namespace stepcast {

using PlanKey = std::vector<double>;

// All that a plan states but where it runs and over which links: strategy, servers and their
// options, batch, accumulation, overlap, backup workers, the cap of its buckets (-1 for none).
PlanKey OptionsKey(const Plan& plan);

void AppendLink(const LinkFacts& link, PlanKey* key);

// What decides the step of one workload: plans of equal keys have equal answers. `links` are the
// caller's numbers of the links of the plan's hosts, in an order of their own.
PlanKey FactsKey(const Cluster& cluster, const Plan& plan, const std::vector<int>& links);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_PLAN_KEY_H_
