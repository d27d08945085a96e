// Files of other tools.
#include <cmath>
#include <string>
#include <vector>

#include "data/io/import_adaptdl.h"
#include "data/io/training_steps_file.h"
#include "data/kineto/import_kineto.h"
#include "tests/fuzz/door.h"
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

STEPCAST_DOOR(training_steps) {
  const std::vector<HostSteps> hosts = ParseTrainingSteps(input, "steps.csv");
  for (const HostSteps& host : hosts) {
    for (std::size_t i = 0; i < host.steps.size(); ++i) {
      Require(host.steps[i].begin_ns < host.steps[i].end_ns, "a step ends before it begins");
      Require(i == 0 || host.steps[i - 1].end_ns <= host.steps[i].begin_ns, "steps overlap");
    }
  }
  const std::string text = FormatTrainingSteps(hosts);
  const std::vector<HostSteps> again =
      ReadAgain(text, [](const std::string& t) { return ParseTrainingSteps(t, "steps.csv"); });
  Require(FormatTrainingSteps(again) == text, "what was written is read as something else");
}

}  // namespace
}  // namespace stepcast::fuzz
