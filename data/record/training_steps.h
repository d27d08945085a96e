// When the steps of a training ran, as each host's own clock told.
#ifndef STEPCAST_DATA_RECORD_TRAINING_STEPS_H_
#define STEPCAST_DATA_RECORD_TRAINING_STEPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepcast {

inline constexpr std::int64_t kNsPerS = 1'000'000'000;
// The latest time that is read: in the year 2255, and fits as nanoseconds.
inline constexpr std::int64_t kLatestS = 9'000'000'000;

struct TrainingStep {
  std::int64_t number = 0;
  std::int64_t begin_ns = 0;  // since 1970
  std::int64_t end_ns = 0;
  std::optional<std::int64_t> compute_end_ns;  // of the backward pass, where somebody told
};

// In the order of their times; none overlap.
struct HostSteps {
  std::string host;  // empty for steps of all hosts
  std::vector<TrainingStep> steps;
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_TRAINING_STEPS_H_
