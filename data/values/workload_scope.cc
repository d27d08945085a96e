#include "data/values/workload_scope.h"

#include <algorithm>

namespace stepcast {
namespace {

constexpr const char* kOn = " on ";

// Calls take(workload) for each way of training, the rest of the workload as it is.
template <class Take>
void ForEachTraining(std::span<const TrainingFact> facts, Workload* workload, const Take& take) {
  if (facts.empty()) {
    take(*workload);
    return;
  }
  for (std::size_t word = 0; word < facts.front().words.names.size(); ++word) {
    facts.front().set(static_cast<int>(word), workload);
    ForEachTraining(facts.subspan(1), workload, take);
  }
}

}  // namespace

std::string WorkloadScope(const Workload& workload, const std::string& device) {
  return kWorkloadScopePrefix + DescribeWorkload(workload) + kOn + device;
}

std::string ScopeOf(const Run& run, const std::map<std::string, Workload>& workloads) {
  return WorkloadScope(workloads.at(run.workload), run.device);
}

bool IsOfWorkload(std::string_view scope, std::string_view name) {
  if (!scope.starts_with(kWorkloadScopePrefix)) return false;
  scope.remove_prefix(std::string_view(kWorkloadScopePrefix).size());
  if (!scope.starts_with(name)) return false;
  scope.remove_prefix(name.size());
  return scope.starts_with(kOn) || scope.starts_with(" (");
}

std::string WorkloadOfScope(std::string_view scope) {
  if (!scope.starts_with(kWorkloadScopePrefix)) return "";
  scope.remove_prefix(std::string_view(kWorkloadScopePrefix).size());
  return std::string(scope.substr(0, std::min(scope.find(kOn), scope.find(" ("))));
}

std::vector<Workload> FittedTrainings(const Calibration& calibration, const std::string& name,
                                      const std::string& device) {
  std::vector<std::string_view> scopes;
  for (const ParameterEstimate& e : calibration.parameters) {
    if (IsOfWorkload(e.scope, name)) scopes.push_back(e.scope);
  }
  std::vector<Workload> trainings;
  if (scopes.empty()) return trainings;
  Workload workload;
  workload.name = name;
  ForEachTraining(TrainingFacts(), &workload, [&](const Workload& trained) {
    const std::string of = WorkloadScope(trained, device);
    const bool fitted = std::any_of(scopes.begin(), scopes.end(), [&](std::string_view scope) {
      return device.empty() ? scope.starts_with(of) : scope == of;
    });
    if (fitted) trainings.push_back(trained);
  });
  return trainings;
}

void TrainAsFitted(const Calibration& calibration,
                   const std::function<bool(const TrainingFact& fact)>& is_stated,
                   Workload* workload) {
  const auto stated = [&](const TrainingFact& fact) { return is_stated && is_stated(fact); };
  std::vector<Workload> fitted = FittedTrainings(calibration, workload->name, "");
  if (fitted.size() > 1) {
    std::erase_if(fitted, [&](const Workload& trained) {
      return std::any_of(TrainingFacts().begin(), TrainingFacts().end(),
                         [&](const TrainingFact& fact) {
                           return stated(fact) && fact.get(trained) != fact.get(*workload);
                         });
    });
  }
  if (fitted.size() != 1) return;
  for (const TrainingFact& fact : TrainingFacts()) {
    if (!stated(fact)) fact.set(fact.get(fitted.front()), workload);
  }
}

}  // namespace stepcast
