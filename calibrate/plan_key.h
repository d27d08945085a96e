// What tells two plans apart, as numbers: in one list, for all that groups runs by it.
#ifndef STEPCAST_CALIBRATE_PLAN_KEY_H_
#define STEPCAST_CALIBRATE_PLAN_KEY_H_

#include <cstddef>
#include <vector>

#include "data/record/plan.h"
#include "model/step/step.h"

namespace stepcast {

// Equal keys, equal plans.
using PlanKey = std::vector<double>;

// All that a plan states but where it runs and over which links: strategy, servers and their
// options, batch, accumulation, overlap, backup workers, the cap of its buckets (-1 for none).
PlanKey OptionsKey(const Plan& plan);

void AppendLink(const LinkFacts& link, PlanKey* key);

// What decides the step of one workload, but for named hosts: equal keys have equal answers. `facts`
// are those of `plan`, and `bucket_cap` the one that holds, stated or not.
PlanKey FactsKey(const Plan& plan, const StepFacts& facts, const DataSize<>& bucket_cap);

// 0 to n - 1 in an order that has nothing to do with what they stand for, and is always the same.
std::vector<std::size_t> ShuffledOrder(std::size_t n);

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_PLAN_KEY_H_
