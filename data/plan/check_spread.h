// How the steps of a measured run can differ, wherever they come from.
#ifndef STEPCAST_DATA_PLAN_CHECK_SPREAD_H_
#define STEPCAST_DATA_PLAN_CHECK_SPREAD_H_

#include "data/record/run.h"

namespace stepcast {

// Throws InputError, which names the column, for what no steps of a run can be: quantiles that fall
// or lack their median, a spread beyond what the mean step allows, times of steps beside a run that
// was stopped before one ended.
void CheckSpread(const Run& run);

}  // namespace stepcast

#endif  // STEPCAST_DATA_PLAN_CHECK_SPREAD_H_
