#include "data/values/workload_scope.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "data/record/blocks.h"
#include "data/record/fused_attention.h"
#include "data/values/names.h"

namespace stepcast {
namespace {

constexpr std::string_view kOn = " on ";

// Reads one of "bf16", "adam", "full recompute"; false where it is no such word.
bool ReadWord(std::string_view text, Workload* workload) {
  for (const TrainingFact& fact : TrainingFacts()) {
    for (std::size_t word = 0; word < fact.words.names.size(); ++word) {
      Workload trained;
      fact.set(static_cast<int>(word), &trained);
      if (fact.Described(trained) != text) continue;
      fact.set(static_cast<int>(word), workload);
      return true;
    }
  }
  return false;
}

// The workload, without layers, that DescribeWorkload gives this text: what "gpt2 (bf16, adam)"
// ends with is how it is trained, what "gpt2 (v2)" ends with is of the name.
Workload WorkloadOfDescription(std::string_view text) {
  constexpr std::string_view kComma = ", ";
  Workload whole;
  whole.name = text;
  const std::size_t open = text.rfind(" (");
  if (open == std::string_view::npos || !text.ends_with(')')) return whole;
  Workload trained;
  trained.name = text.substr(0, open);
  std::string_view words = text.substr(open + 2, text.size() - open - 3);
  while (true) {
    const std::size_t comma = words.find(kComma);
    if (!ReadWord(words.substr(0, comma), &trained)) return whole;
    if (comma == std::string_view::npos) break;
    words.remove_prefix(comma + kComma.size());
  }
  return DescribeWorkload(trained) == text ? trained : whole;
}

// What a scope is of: a workload as it was trained, and a device. Names do not hold what parts them
// (CheckedWorkloadName). Empty for other scopes, and of a workload whose name does not begin so.
std::optional<std::pair<Workload, std::string>> TakenApart(std::string_view scope,
                                                           std::string_view name = "") {
  if (!scope.starts_with(kWorkloadScopePrefix)) return std::nullopt;
  scope.remove_prefix(std::string_view(kWorkloadScopePrefix).size());
  if (!scope.starts_with(name)) return std::nullopt;
  const std::size_t on = scope.find(kOn);
  if (on == std::string_view::npos) return std::nullopt;
  return std::pair(WorkloadOfDescription(scope.substr(0, on)),
                   std::string(scope.substr(on + kOn.size())));
}

using TrainingsByWords = std::map<std::vector<int>, Workload>;

void AddTraining(Workload trained, TrainingsByWords* by_words) {
  std::vector<int> words;
  for (const TrainingFact& fact : TrainingFacts()) words.push_back(fact.get(trained));
  by_words->emplace(std::move(words), std::move(trained));
}

std::vector<Workload> ListOf(const TrainingsByWords& by_words) {
  std::vector<Workload> trainings;
  trainings.reserve(by_words.size());
  for (const auto& [words, trained] : by_words) trainings.push_back(trained);
  return trainings;
}

// The ways of training of all runs on the device, on any where that is empty. Bare messages, which
// are not trained, are no runs of the range.
std::vector<Workload> TrainingsOfAll(const CalibratedRange& range, const std::string& device) {
  TrainingsByWords by_words;
  for (const auto& [scope, batches] : range.local_batch) {
    auto parts = TakenApart(scope);
    if (!parts || (!device.empty() && parts->second != device)) continue;
    AddTraining(std::move(parts->first), &by_words);
  }
  return ListOf(by_words);
}

}  // namespace

std::string CheckedWorkloadName(std::string_view text, const InputPlace& place) {
  std::string name = CheckedName(text, place);
  // At the end too, where the space comes behind it.
  if ((name + " ").find(kOn) != std::string::npos) {
    throw InputError(place, name, "has the word \"on\", behind which cluster files name the device",
                     "a name without it, like net-on-images");
  }
  const Workload read = WorkloadOfDescription(name);
  if (read.name != name) {
    throw InputError(place, name, "ends like " + read.name + " trained in a way of its own",
                     "a name without " + name.substr(read.name.size() + 1) +
                         "; how it is trained has keys and options of its own");
  }
  return name;
}

std::string WorkloadScope(const Workload& workload, const std::string& device) {
  return kWorkloadScopePrefix + DescribeWorkload(workload) + std::string(kOn) + device;
}

std::string ScopeOf(const Run& run, const std::map<std::string, Workload>& workloads) {
  return WorkloadScope(workloads.at(run.workload), run.device);
}

bool IsOfWorkload(std::string_view scope, std::string_view name) {
  const auto parts = TakenApart(scope, name);
  return parts && parts->first.name == name;
}

std::string WorkloadOfScope(std::string_view scope) {
  const auto parts = TakenApart(scope);
  return parts ? parts->first.name : "";
}

std::vector<Workload> FittedTrainings(const Calibration& calibration, const std::string& name,
                                      const std::string& device) {
  TrainingsByWords by_words;
  for (const ParameterEstimate& e : calibration.parameters) {
    auto parts = TakenApart(e.scope, name);
    if (!parts || parts->first.name != name) continue;
    if (!device.empty() && parts->second != device) continue;
    AddTraining(std::move(parts->first), &by_words);
  }
  return ListOf(by_words);
}

std::vector<TrainingThatRan> TrainingsThatRan(const CalibratedRange& range, const Workload& network,
                                              const std::string& device) {
  std::vector<TrainingThatRan> trainings;
  for (const auto& [scope, batches] : range.local_batch) {
    const auto parts = TakenApart(scope, network.name);
    if (!parts || parts->first.name != network.name || parts->second != device) continue;
    Workload trained = network;
    for (const TrainingFact& fact : TrainingFacts()) fact.set(fact.get(parts->first), &trained);
    trainings.push_back({std::move(trained), scope, batches});
  }
  return trainings;
}

Workload WithWhatDiffers(const Workload& network, Workload training) {
  const bool attends = CountAttentionLayers(network).fusable > 0;
  const bool has_blocks = HasBlocks(network);
  const auto done = [&](Recompute recompute) {
    const bool acts = recompute == Recompute::kFull ? has_blocks : attends;
    return acts ? recompute : Recompute::kNone;
  };
  if (!attends) training.attention = network.attention;
  if (done(training.recompute) == done(network.recompute)) training.recompute = network.recompute;
  return training;
}

std::string FittedScope(const Calibration& calibration, const Workload& workload,
                        const std::string& device) {
  const std::string own = WorkloadScope(workload, device);
  const std::vector<Workload> trainings = FittedTrainings(calibration, workload.name, device);
  const auto is_own = [&](const Workload& fitted) { return WorkloadScope(fitted, device) == own; };
  if (trainings.empty() || std::any_of(trainings.begin(), trainings.end(), is_own)) return own;
  const auto alike = std::find_if(trainings.begin(), trainings.end(), [&](const Workload& fitted) {
    return is_own(WithWhatDiffers(workload, fitted));
  });
  return alike == trainings.end() ? own : WorkloadScope(*alike, device);
}

void TrainAsFitted(const Calibration& calibration, const std::string& device,
                   const std::function<bool(const TrainingFact& fact)>& is_stated,
                   Workload* workload) {
  const auto stated = [&](const TrainingFact& fact) { return is_stated && is_stated(fact); };
  std::vector<Workload> fitted = FittedTrainings(calibration, workload->name, device);
  if (fitted.empty()) fitted = FittedTrainings(calibration, workload->name, "");
  const bool of_others = fitted.empty();
  if (of_others && !workload->communication_only) {
    fitted = TrainingsOfAll(calibration.range, device);
  }
  if (fitted.empty()) return;
  const auto as_stated = [&](const Workload& trained) {
    return std::all_of(TrainingFacts().begin(), TrainingFacts().end(),
                       [&](const TrainingFact& fact) {
                         return !stated(fact) || fact.get(trained) == fact.get(*workload);
                       });
  };
  if (std::any_of(fitted.begin(), fitted.end(), as_stated)) {
    std::erase_if(fitted, [&](const Workload& trained) { return !as_stated(trained); });
  }
  const Workload& first = fitted.front();
  const Workload taken = of_others ? WithWhatDiffers(*workload, first) : first;
  for (const TrainingFact& fact : TrainingFacts()) {
    const bool all_agree = std::all_of(fitted.begin(), fitted.end(), [&](const Workload& trained) {
      return fact.get(trained) == fact.get(first);
    });
    if (stated(fact) || !all_agree) continue;
    if (of_others) {
      if (!fact.IsDefault(*workload) || fact.IsDefault(taken)) continue;
      workload->as_others.insert(fact.key);
    } else {
      workload->as_others.erase(fact.key);
    }
    fact.set(fact.get(taken), workload);
  }
}

std::optional<std::string> AsOthersFlag(const Workload& workload, const std::string& cluster) {
  if (workload.as_others.empty()) return std::nullopt;
  std::vector<std::string> keys;
  std::vector<std::string> words;
  for (const TrainingFact& fact : TrainingFacts()) {
    if (!workload.as_others.contains(fact.key)) continue;
    keys.emplace_back(fact.key);
    words.push_back(fact.Described(workload));
  }
  return "nobody states " + JoinNames(keys) + " of " + workload.name + ", of which " + cluster +
         " has no run: taken as " + JoinNames(words) + ", as all its runs were";
}

}  // namespace stepcast
