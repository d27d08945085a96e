// Finds times of steps in what a training prints, line by line.
#ifndef STEPCAST_MICROBENCH_SCRIPT_STEP_PATTERN_H_
#define STEPCAST_MICROBENCH_SCRIPT_STEP_PATTERN_H_

#include <optional>
#include <regex>
#include <string>

#include "data/record/input_error.h"

namespace stepcast::script {

// A regular expression (ECMAScript's) with one named group, whose name is the unit of the number
// that it holds: "step time: (?<ms>[0-9.]+)". Units: s, ms, us, and per_s for steps a second.
class StepPattern {
 public:
  // Throws InputError at `place` for any other text.
  StepPattern(const std::string& text, const InputPlace& place);

  // The time of a step [s] in a line without its end; none where it has none above 0. Of a longer
  // line only the first kLongestLine bytes are looked at. What the group holds goes into `held`, if
  // that is asked for, also where it is no such time.
  std::optional<double> Find(const std::string& line, std::string* held = nullptr) const;

  static constexpr std::size_t kLongestLine = 500;

 private:
  std::regex regex_;
  bool takes_any_start_ = false;  // it begins with .*
  std::size_t group_ = 0;
  double unit_s_ = 1;
  bool is_rate_ = false;
};

}  // namespace stepcast::script

#endif  // STEPCAST_MICROBENCH_SCRIPT_STEP_PATTERN_H_
