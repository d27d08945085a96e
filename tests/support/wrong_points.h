// A measured profile of which some points are wrong, each kind on another number of them.
#ifndef STEPCAST_TESTS_SUPPORT_WRONG_POINTS_H_
#define STEPCAST_TESTS_SUPPORT_WRONG_POINTS_H_

#include <cstddef>
#include <string>
#include <variant>

#include "data/io/compute_profile_file.h"

namespace stepcast {

// Of the shipped xeon-onednn-1: of the first ten points that are no allocation one was busy, two
// were throttled, three do not fit the memory and four are not supported.
inline ComputeProfile ProfileWithWrongPoints() {
  ComputeProfile profile = ReadComputeProfile(std::string(STEPCAST_SOURCE_DIR) +
                                              "/data/profiles/xeon-onednn-1.profile.jsonl")
                               .profile;
  std::size_t changed = 0;
  for (MeasuredSamples& samples : profile.samples) {
    if (std::holds_alternative<AllocateOp>(samples.point.operation)) continue;
    if (++changed > 10) break;
    samples.busy = changed <= 1;
    samples.throttled = 2 <= changed && changed <= 3;
    if (4 <= changed && changed <= 6) samples.status = PointStatus::kOutOfMemory;
    if (7 <= changed && changed <= 10) samples.status = PointStatus::kUnsupported;
    if (samples.status != PointStatus::kMeasured) samples.seconds.clear();
  }
  return profile;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_WRONG_POINTS_H_
