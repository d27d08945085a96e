// What a training's runs are wanted by, and what it prints.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "data/io/csv.h"
#include "microbench/script/step_pattern.h"
#include "microbench/script/wanted_runs.h"
#include "tests/fuzz/door.h"
#include "tests/fuzz/written.h"

namespace stepcast::fuzz {
namespace {

// What is measured of them is a runs file again: of enough steps for a spread or of fewer, or a
// bound.
void RequireRunsOfWhatIsMeasured(const script::WantedRuns& wanted) {
  script::Timed timed;
  timed.source = "a test, \"as it is\"";
  for (int i = 0; i < 12; ++i) timed.step_s.push_back(1.0 / 3 + i * i * 1e-4);
  script::Timed few = timed;
  few.step_s.resize(3);
  script::Timed stopped = few;
  stopped.bound_s = 2e3 / 3;
  std::string text = CsvLine(script::MeasuredHeader(wanted));
  std::size_t rows = 0;
  for (const script::WantedRun& run : wanted.runs) {
    for (const script::Timed& of : {timed, few, stopped}) {
      const std::vector<std::string> fields = script::MeasuredFields(wanted, run, of);
      Require(script::WantedKey(wanted, fields) == script::WantedKey(wanted, run.fields),
              "a measured run is not the one that was wanted");
      text += CsvLine(fields);
      ++rows;
    }
  }
  const auto runs = ReadAgain(text, [](const auto& t) { return ParseRuns(t, "runs.csv"); });
  Require(runs.size() == rows, "a row is lost");
  for (std::size_t i = 0; i < rows; ++i) {
    RequireSamePlan(runs[i].plan, wanted.runs[i / 3].run.plan);
    Require(runs[i].stopped == (i % 3 == 2) && runs[i].spread.p95.has_value() == (i % 3 == 0),
            "other times are read");
  }
}

STEPCAST_DOOR(wanted_runs) {
  const script::WantedRuns wanted = script::ParseWantedRuns(input, "wanted.csv");
  for (const script::WantedRun& run : wanted.runs) {
    Require(run.fields.size() == wanted.header.size(), "a row has other fields than the header");
    const auto values = script::ValuesOf(wanted, run);
    Require(script::FillIn("{workers}", values) == std::to_string(run.run.plan.workers()),
            "a command has other workers than its run");
  }
  RequireRunsOfWhatIsMeasured(wanted);
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
