// Rates that a device reaches at best, found out with the operations that its back end has.
#ifndef STEPCAST_MICROBENCH_HARNESS_CEILINGS_H_
#define STEPCAST_MICROBENCH_HARNESS_CEILINGS_H_

#include <vector>

#include "microbench/harness/backend.h"

namespace stepcast {

// FLOP/s of a large matrix product in each precision that the back end supports, under the
// precision's name, and bytes/s read and written by a large copy, "copy". The back end's own
// figures where it has some.
std::vector<MeasuredRate> MeasureCeilings(Backend* backend);

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_HARNESS_CEILINGS_H_
