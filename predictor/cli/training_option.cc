#include "predictor/cli/training_option.h"

#include <string>

#include "data/values/training_facts.h"
#include "data/values/workload_scope.h"

namespace stepcast::cli {

void AddTrainingOptions(po::options_description* options) {
  for (const TrainingFact& fact : TrainingFacts()) {
    const std::string help = fact.meaning + fact.more();
    options->add_options()(fact.key, OptionValue(fact.placeholder), help.c_str());
  }
}

void ReadTrainingOptions(const Arguments& arguments, const std::optional<Calibration>& calibration,
                         const std::string& device, Workload* workload) {
  for (const TrainingFact& fact : TrainingFacts()) {
    if (!arguments.Has(fact.key)) continue;
    fact.Read(arguments.Text(fact.key), OptionPlace(fact.key), workload);
  }
  if (!calibration) return;
  TrainAsFitted(
      *calibration, device, [&](const TrainingFact& fact) { return arguments.Has(fact.key); },
      workload);
}

std::vector<const TrainingFact*> FactsToState(const Arguments& arguments,
                                              const Workload& workload) {
  std::vector<const TrainingFact*> facts;
  for (const TrainingFact& fact : TrainingFacts()) {
    if (arguments.Has(fact.key) || !fact.IsDefault(workload)) facts.push_back(&fact);
  }
  return facts;
}

}  // namespace stepcast::cli
