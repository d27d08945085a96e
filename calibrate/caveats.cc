#include "calibrate/caveats.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "model/step/parameters.h"

namespace stepcast {
namespace {

// Beyond this the model does not describe the runs; public traces are met within 6 %.
constexpr double kUselessMape = 0.5;
constexpr double kAtBound = 1e-6;

std::string Rounded(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

void AddEdges(const Calibration& calibration, std::vector<std::string>* caveats) {
  for (const ParameterEstimate& p : calibration.parameters) {
    const ParameterSpec* spec = FindParameterSpec(p.name);
    if (spec == nullptr || p.decided_by == DecidedBy::kStated) continue;
    if (p.value >= spec->low * (1 + kAtBound) && p.value <= spec->high * (1 - kAtBound)) continue;
    caveats->push_back(p.name + " of " + p.scope + " stands at the edge of its range (" +
                       Rounded(p.value) + (p.unit.empty() ? "" : " " + p.unit) +
                       "): these runs do not fit the formula");
  }
}

// Caveats of a campaign that is one run short of telling the network.
void AddNetwork(const CalibrationProblem& problem, const Calibration& calibration,
                std::vector<std::string>* caveats) {
  const bool servers = std::any_of(problem.runs.begin(), problem.runs.end(),
                                   [](const Run& run) { return UsesServers(run.plan.strategy); });
  if (problem.cluster.nodes < 2 || servers) return;
  if (calibration.range.max_nodes < 2) {
    caveats->push_back("no run leaves its node: the network between nodes is a prior");
  } else if (calibration.range.max_nodes == 2 && problem.cluster.nodes > 2) {
    caveats->push_back(
        "no run has three nodes: all flows between two share one path, and what a node with two "
        "neighbours does is a prior");
  }
}

void AddBatches(const CalibrationProblem& problem, std::vector<std::string>* caveats) {
  struct Seen {
    int runs = 0;
    std::set<int> batches;
  };
  std::map<std::string, Seen> by_workload;
  for (const Run& run : problem.runs) {
    if (problem.workloads.at(run.workload).communication_only) continue;
    Seen& seen = by_workload[run.workload + " on " + run.device];
    ++seen.runs;
    seen.batches.insert(run.plan.local_batch);
  }
  for (const auto& [name, seen] : by_workload) {
    if (seen.batches.size() > 1) continue;
    caveats->push_back(name + " was measured at one batch only (" +
                       std::to_string(*seen.batches.begin()) +
                       "): how its time grows with the batch is a prior");
  }
}

}  // namespace

std::vector<std::string> Caveats(const CalibrationProblem& problem,
                                 const CalibrationOutcome& outcome) {
  std::vector<std::string> caveats;
  if (!outcome.IsUsable()) return caveats;
  const Calibration& calibration = *outcome.cluster.calibration;
  if (outcome.mape > kUselessMape) {
    caveats.push_back("the model does not describe these runs: it is " +
                      Rounded(100 * outcome.mape) +
                      " % off on average; look for a wrong unit, strategy, link or workload");
  }
  AddEdges(calibration, &caveats);
  const bool any = std::any_of(
      calibration.parameters.begin(), calibration.parameters.end(), [](const ParameterEstimate& p) {
        return p.decided_by == DecidedBy::kData || p.decided_by == DecidedBy::kBoth;
      });
  if (!any) {
    caveats.emplace_back("no parameter was decided by the runs: forecasts rest on priors alone");
  }
  AddNetwork(problem, calibration, &caveats);
  AddBatches(problem, &caveats);
  return caveats;
}

}  // namespace stepcast
