// What the measured times of a run may be.
#ifndef STEPCAST_DATA_PLAN_RUN_RANGES_H_
#define STEPCAST_DATA_PLAN_RUN_RANGES_H_

#include "data/values/numbers.h"

namespace stepcast {

// Of step_time_s and the quantiles of a step, of exposed_sync_s, and of step_time_sd_s [s].
inline constexpr NumberRange kStepTimes{kLeastTime, 1e7};
inline constexpr NumberRange kExposedTimes{0, 1e7};
// Of samples, or steps, in a second.
inline constexpr NumberRange kThroughputs{kLeastTime, 1e15};

}  // namespace stepcast

#endif  // STEPCAST_DATA_PLAN_RUN_RANGES_H_
