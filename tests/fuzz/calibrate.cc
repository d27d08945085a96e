// Fits, whose cluster goes into a file.
#include "calibrate/calibrate.h"

#include <string>

#include "data/workloads/catalog.h"
#include "tests/fuzz/door.h"
#include "tests/fuzz/written.h"
#include "tests/support/devices.h"

namespace stepcast::fuzz {
namespace {

Cluster Lab() {
  Cluster cluster;
  cluster.name = cluster.title = "lab";
  cluster.device = "t4";
  cluster.device_facts = T4();
  cluster.nodes = 16;
  cluster.devices_per_node = 4;
  cluster.link.bandwidth = GigabitsPerSecond(10.0);
  return cluster;
}

// Some runs of two workloads: a fit of more takes long, and tells no more.
STEPCAST_DOOR(calibrate) {
  constexpr std::size_t kMostRuns = 12;
  constexpr int kMostNodes = 64;
  CalibrationProblem problem;
  problem.cluster = Lab();
  for (const Run& run : ParseRuns(input, "runs.csv")) {
    if (problem.runs.size() == kMostRuns || run.plan.nodes() > kMostNodes) break;
    problem.runs.push_back(run);
    Run& own = problem.runs.back();
    own.device = "t4";
    own.workload = own.workload == "vgg16" ? "vgg16" : "mlp_mnist";
    problem.workloads.try_emplace(own.workload, FindWorkload(own.workload).value());
  }
  problem.devices["t4"] = T4();
  CalibrationOptions options;
  options.profiled_plans = 2;
  const CalibrationOutcome outcome = Calibrate(problem, options);
  Require(!outcome.message.empty(), "an outcome of which nothing is said");
  if (!outcome.IsUsable()) return;
  Require(outcome.residuals.size() == problem.runs.size(), "a run is lost");
  for (const RunResidual& residual : outcome.residuals) {
    RequireFinite(residual.predicted.si(), "predicted");
    RequireFinite(residual.log_ratio, "log_ratio");
  }
  RequireFinite(outcome.mape, "mape");
  RequireReadAgain(outcome.cluster);
  const Run& first = problem.runs.front();
  const Predictor predictor(outcome.cluster, problem.workloads.at(first.workload), T4());
  Plan plan = first.plan;
  plan.hosts.clear();
  RequireAnswer(predictor, plan);
}

}  // namespace
}  // namespace stepcast::fuzz
