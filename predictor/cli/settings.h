// What options of the program state in a language of their own.
#ifndef STEPCAST_PREDICTOR_CLI_SETTINGS_H_
#define STEPCAST_PREDICTOR_CLI_SETTINGS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "data/record/input_error.h"
#include "data/record/statement.h"

namespace stepcast::cli {

// What a sweep varies, and the values that it takes.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;
};
inline constexpr std::size_t kMostSweepPoints = 100'000;

// "workers=1..64", "workers=1..64..8", "loss=0,0.001,0.01", "bandwidth=1 Gbit/s,10 Gbit/s".
SweepAxis ParseSweepAxis(const std::string& text, const InputPlace& place);

// "flow_bandwidth=5 Gbit/s"; a prior: "resnet50/straggler_spread=0.02 x/ 1.5; inputs of one size".
ParameterStatement ParseStatement(const std::string& text, bool prior, const InputPlace& place);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_SETTINGS_H_
