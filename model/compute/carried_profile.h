// A profile of one GPU as a forecast of another: each time by the ratio of what the curve
// (model/compute/operation_curve.h) expects of the two.
//
//   t(o, d) = t(o, x) curve(o, d) / curve(o, x)
//
// What the curve misses of an operation, a library's algorithm or a framework's habit, is mostly
// the same on both and cancels; what it misses of a device does not (kCarriedLogSd). Points that
// did not fit the memory there, and what the host allocates, say nothing of the other device.
#ifndef STEPCAST_MODEL_COMPUTE_CARRIED_PROFILE_H_
#define STEPCAST_MODEL_COMPUTE_CARRIED_PROFILE_H_

#include "data/record/compute_profile.h"
#include "data/record/machine.h"

namespace stepcast {

// Whether both data sheets say what the ratio needs: a peak, a bandwidth and multiprocessors. The
// curve knows no CPUs.
bool CanCarryOver(const ComputeProfile& profile, const Device& from, const Device& to);

// Requires CanCarryOver.
ComputeProfile CarryOver(const ComputeProfile& profile, const Device& from, const Device& to);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_COMPUTE_CARRIED_PROFILE_H_
