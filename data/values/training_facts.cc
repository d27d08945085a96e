#include "data/values/training_facts.h"

#include <string>
#include <vector>

namespace stepcast {
namespace {

template <auto kMember, class E>
constexpr TrainingFact FactAt(const char* key, const char* placeholder, const char* meaning, E kind,
                              const char* noun = "") {
  return {key,
          placeholder,
          meaning,
          noun,
          NamesOf(kind),
          [](const Workload& workload) { return static_cast<int>(workload.*kMember); },
          [](int word, Workload* workload) { workload->*kMember = static_cast<E>(word); }};
}

constexpr TrainingFact kTrainingFacts[kTrainingFactCount] = {
    FactAt<&Workload::precision>("precision", "P", "what the workload computes in", Precision()),
    FactAt<&Workload::optimizer>("optimizer", "O", "what updates the workload's parameters",
                                 Optimizer()),
    FactAt<&Workload::attention>("attention", "A", "how the workload's attention is computed",
                                 AttentionForm()),
    FactAt<&Workload::recompute>("recompute", "R",
                                 "which of the workload's activations are recomputed", Recompute(),
                                 "recompute"),
};

}  // namespace

std::string TrainingFact::more() const {
  return ": " + JoinNames(words.names) +
         " (as the cluster's runs of it were, else what the workload says, else as all other runs "
         "were, or " +
         WordOf(Workload()) + ")";
}

std::span<const TrainingFact> TrainingFacts() { return kTrainingFacts; }

const TrainingFact* FindTrainingFact(std::string_view key) {
  for (const TrainingFact& fact : kTrainingFacts) {
    if (fact.key == key) return &fact;
  }
  return nullptr;
}

std::string DescribeWorkload(const Workload& workload) {
  std::vector<std::string> words;
  for (const TrainingFact& fact : TrainingFacts()) {
    if (!fact.IsDefault(workload)) words.push_back(fact.Described(workload));
  }
  return workload.name + (words.empty() ? "" : " (" + JoinNames(words) + ")");
}

}  // namespace stepcast
