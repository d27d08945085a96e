// What tells two plans apart, as numbers, for all that groups runs by it.
#ifndef STEPCAST_DATA_PLAN_KEY_H_
#define STEPCAST_DATA_PLAN_KEY_H_

#include <optional>
#include <vector>

#include "data/record/link.h"
#include "data/record/plan.h"
#include "data/units/quantity.h"

namespace stepcast {

using PlanKey = std::vector<double>;

// All that a plan states but where it runs and over which links; -1 for what it does not state. A
// plan that states no cap of its buckets has `default_bucket`, if that is given.
PlanKey OptionsKey(const Plan& plan, std::optional<DataSize<>> default_bucket = {});

// All that a plan states but its placement and hosts.
PlanKey StatedKey(const Plan& plan);

void AppendLink(const LinkFacts& link, PlanKey* key);

}  // namespace stepcast

#endif  // STEPCAST_DATA_PLAN_KEY_H_
