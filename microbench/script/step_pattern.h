// Finds times of steps in what a training prints, line by line.
#ifndef STEPCAST_MICROBENCH_SCRIPT_STEP_PATTERN_H_
#define STEPCAST_MICROBENCH_SCRIPT_STEP_PATTERN_H_

#include <memory>
#include <optional>
#include <string>

#include "data/record/input_error.h"

namespace re2 {
class RE2;
}  // namespace re2

namespace stepcast::script {

// A regular expression (RE2's) with one named group, whose name is the unit of the number that it
// holds: "step time: (?<ms>[0-9.]+)", or "(?P<ms>...)". Units: s, ms, us, and per_s for steps a
// second. Lines are bytes: "." is one of them. A search takes time in proportion to the line times
// the pattern, whatever they are, and what the pattern takes is bounded.
class StepPattern {
 public:
  // Throws InputError at `place` for any other text, and for one that is too large.
  StepPattern(const std::string& text, const InputPlace& place);

  // The time of a step [s] in a line without its end, at the leftmost place that matches; none
  // where it has none above 0. What the group holds goes into `held`, if that is asked for, also
  // where it is no such time.
  std::optional<double> Find(const std::string& line, std::string* held = nullptr) const;

 private:
  std::shared_ptr<const re2::RE2> regex_;  // whose only numbered group is the named one
  double unit_s_ = 1;
  bool is_rate_ = false;
};

}  // namespace stepcast::script

#endif  // STEPCAST_MICROBENCH_SCRIPT_STEP_PATTERN_H_
