// Files of other tools.
#include <cmath>
#include <string>
#include <vector>

#include "data/io/import_adaptdl.h"
#include "data/io/training_steps_file.h"
#include "data/kineto/import_kineto.h"
#include "data/kineto/import_ranks.h"
#include "tests/fuzz/door.h"
#include "tests/fuzz/parts.h"
#include "tests/fuzz/written.h"

namespace stepcast::fuzz {
namespace {

STEPCAST_DOOR(adaptdl) {
  RequireReadAgain(ImportAdaptdl(FileOf(input, "bert_placements.csv"), "", "t4"));
}

STEPCAST_DOOR(kineto) {
  const KinetoImport import = ImportKineto(FileOf(input, "trace.json"));
  RequireReadAgain(import.profile);
  const KinetoSummary& s = import.summary;
  const auto require = [](double value, const std::string& what) {
    Require(std::isfinite(value) && value >= 0, what + " is " + std::to_string(value));
  };
  require(s.step_time_s, "the step");
  require(s.device_busy_share, "the busy share");
  Require(s.device_busy_share <= 1, "a device is busier than always");
  for (const auto& [name, seconds] : s.unattributed_s) require(seconds, name);
  for (const KernelTime& kernel : s.kernels) {
    require(kernel.total_s, kernel.name);
    require(kernel.mean_s, kernel.name);
  }
}

void RequireTimes(const RankTimes& times, const std::string& whose) {
  const auto require = [&](double value, const char* what) {
    Require(std::isfinite(value) && value >= 0,
            whose + ": " + what + " is " + std::to_string(value));
  };
  require(times.step, "the step");
  require(times.computing, "computing");
  require(times.exposed, "exposed");
  require(times.hidden, "hidden");
  require(times.copying, "copying");
  require(times.idle + 1e-9 * times.step, "idle");
  require(times.waits, "waiting");
  require(times.waited_for, "being waited for");
  const double parts = times.computing + times.exposed + times.copying + times.idle;
  Require(std::abs(parts - times.step) <= 1e-9 * times.step, whose + ": parts are another step");
}

// Traces of ranks: see parts.h.
STEPCAST_DOOR(kineto_ranks) {
  const TrainingRanks training = ImportKinetoRanks(RankFiles(input));
  RequireTimes(training.mean, "the mean");
  for (const RankOfTraining& rank : training.ranks) {
    const std::string whose = "rank " + std::to_string(rank.rank);
    RequireTimes(rank.mean, whose);
    for (const RankTimes& step : rank.steps) RequireTimes(step, whose);
    Require(rank.came_last <= rank.compared && rank.compared <= rank.collectives,
            whose + " came last in more calls than it has");
  }
  for (const CollectiveClass& c : training.classes) {
    Require(c.calls > 0 && c.time_s >= 0 && c.exposed_s >= 0 &&
                c.exposed_s <= c.time_s * (1 + 1e-9) && std::isfinite(c.time_s),
            "a class of calls without time");
    Require(c.transfer_s.value_or(0) >= 0, "a transfer of less than no time");
    Require(std::isfinite(c.bus_bytes_per_s.value_or(0)), "a bandwidth that is no number");
  }
  Run run;
  run.workload = "resnet50";
  run.device = "v100";
  run.plan.placement = Placement(static_cast<std::size_t>(training.world_size), 1);
  run.plan.local_batch = 32;
  if (training.world_size <= 64 && Try([&] { MeasureRun(training, 1, &run); })) {
    RequireReadAgain(std::vector<Run>{run});
  }
}

STEPCAST_DOOR(training_steps) {
  const std::vector<HostSteps> hosts = ParseTrainingSteps(input, "steps.csv");
  for (const HostSteps& host : hosts) {
    for (std::size_t i = 0; i < host.steps.size(); ++i) {
      Require(host.steps[i].begin_ns < host.steps[i].end_ns, "a step ends before it begins");
      Require(i == 0 || host.steps[i - 1].end_ns <= host.steps[i].begin_ns, "steps overlap");
    }
  }
}

}  // namespace
}  // namespace stepcast::fuzz
