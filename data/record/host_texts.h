// Hosts in words, and what a calibration found of them.
#ifndef STEPCAST_DATA_RECORD_HOST_TEXTS_H_
#define STEPCAST_DATA_RECORD_HOST_TEXTS_H_

#include <string>
#include <vector>

#include "data/record/calibration.h"

namespace stepcast {

// "a", "a and b", "a, b and c"; with "or" for hosts of which one is meant, and nobody knows which.
std::string ListedHosts(const std::vector<std::string>& names, const char* word = "and");

// "n3 computes 1.30 times slower (2 of 2 runs)": of an estimate of compute_slowdown. Of hosts that
// no run tells apart one is enough to be slower, and all have to be faster.
std::string ComputeText(const ParameterEstimate& slowdown);

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_HOST_TEXTS_H_
