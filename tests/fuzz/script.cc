// What a training's runs are wanted by, and what it prints.
#include <algorithm>
#include <cmath>

#include "microbench/script/step_pattern.h"
#include "microbench/script/wanted_runs.h"
#include "tests/fuzz/door.h"

namespace stepcast::fuzz {
namespace {

STEPCAST_DOOR(wanted_runs) {
  const script::WantedRuns wanted = script::ParseWantedRuns(input, "wanted.csv");
  for (const script::WantedRun& run : wanted.runs) {
    Require(run.fields.size() == wanted.header.size(), "a row has other fields than the header");
    const auto values = script::ValuesOf(wanted, run);
    Require(script::FillIn("{workers}", values) == std::to_string(run.run.plan.workers()),
            "a command has other workers than its run");
  }
}

// A pattern, and below it a line that it looks at.
STEPCAST_DOOR(step_pattern) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  const script::StepPattern pattern(input.substr(0, end), {"", 0, "--pattern"});
  const auto time = pattern.Find(input.substr(std::min(end + 1, input.size())));
  Require(!time || (std::isfinite(*time) && *time > 0), "a step's time is none");
}

}  // namespace
}  // namespace stepcast::fuzz
