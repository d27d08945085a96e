// The conditions that the option --shape of `stepcast probe` names.
#ifndef STEPCAST_PREDICTOR_CLI_SHAPES_H_
#define STEPCAST_PREDICTOR_CLI_SHAPES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "data/record/input_error.h"
#include "microbench/steps/shaping.h"

namespace stepcast::cli {

inline constexpr std::size_t kMostDesignedRuns = 100'000;

// Each combination of "bandwidth=100 Mbit/s,1 Gbit/s; rtt=0 ms,10 ms", of which the value that was
// named last changes first. Throws InputError, also for more than kMostDesignedRuns.
std::vector<steps::Conditions> ParseShapes(const std::vector<std::string>& texts,
                                           const InputPlace& place);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_SHAPES_H_
