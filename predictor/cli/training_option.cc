#include "predictor/cli/training_option.h"

#include <string>

#include "data/values/names.h"
#include "data/values/training_facts.h"

namespace stepcast::cli {

void AddTrainingOptions(po::options_description* options) {
  for (const TrainingFact& fact : TrainingFacts()) {
    const std::string help = std::string(fact.meaning) + ": " + JoinNames(fact.words.names) +
                             " (what the workload says, or " + fact.WordOf(Workload()) + ")";
    options->add_options()(fact.key, po::value<std::string>()->value_name(fact.placeholder),
                           help.c_str());
  }
}

void ReadTrainingOptions(const Arguments& arguments, Workload* workload) {
  for (const TrainingFact& fact : TrainingFacts()) {
    if (!arguments.Has(fact.key)) continue;
    fact.Read(arguments.Text(fact.key), OptionPlace(fact.key), workload);
  }
}

}  // namespace stepcast::cli
