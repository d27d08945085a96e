// Files of other tools.
#include <cmath>
#include <string>

#include "data/io/import_adaptdl.h"
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

}  // namespace
}  // namespace stepcast::fuzz
