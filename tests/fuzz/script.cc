// What a training's runs are wanted by, and what it prints; and jobs that share links.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "data/io/csv.h"
#include "data/workloads/catalog.h"
#include "microbench/script/step_pattern.h"
#include "microbench/script/wanted_runs.h"
#include "predictor/shared_link.h"
#include "tests/fuzz/door.h"
#include "tests/fuzz/written.h"
#include "tests/support/devices.h"

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

// Jobs as `predict --beside` reads them, on the links of one cluster.
STEPCAST_DOOR(beside) {
  constexpr std::size_t kMostJobs = 8;
  constexpr int kMostJobNodes = 64;
  static const Predictor of_lab = [] {
    Cluster cluster;
    cluster.name = "lab";
    cluster.device = "t4";
    cluster.nodes = 64;
    cluster.devices_per_node = 4;
    cluster.link.bandwidth = GigabitsPerSecond(10.0);
    return Predictor(cluster, FindWorkload("mlp_mnist").value(), T4());
  }();
  std::vector<SharingJob> jobs;
  for (const Run& run : script::ReadPlannedRuns(FileOf(input, "jobs.csv"))) {
    const bool is_alone = !run.plan.link.others && !run.plan.server_link.others;
    if (jobs.size() == kMostJobs || !is_alone || run.plan.nodes() > kMostJobNodes) break;
    jobs.push_back({&of_lab, run.plan});
  }
  const std::vector<SharedJob> shared = ShareLink(jobs);
  Require(shared.size() == jobs.size(), "a job is lost");
  for (const SharedJob& job : shared) {
    Require(job.link_busy >= 0 && job.link_busy <= 1, "a link is busier than always");
    Require(job.others >= 0 && job.met >= 0 && job.met < std::ssize(jobs), "others are no number");
    RequireFinite(job.beside.si(), "beside");
    RequireFinite(job.together, "together");
    Require(job.beside.si() >= job.alone.si() * (1 - 1e-9), "a job is faster beside others");
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
