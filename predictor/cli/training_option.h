// How a workload is trained, as commands take it.
#ifndef STEPCAST_PREDICTOR_CLI_TRAINING_OPTION_H_
#define STEPCAST_PREDICTOR_CLI_TRAINING_OPTION_H_

#include <optional>
#include <string>
#include <vector>

#include "data/record/calibration.h"
#include "data/record/workload.h"
#include "data/values/training_facts.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {

// --precision, --optimizer, --attention, --recompute.
void AddTrainingOptions(po::options_description* options);

// What they state takes the place of what the cluster's runs say of the workload, as it runs on the
// device (TrainAsFitted), and that of what its file says.
void ReadTrainingOptions(const Arguments& arguments, const std::optional<Calibration>& calibration,
                         const std::string& device, Workload* workload);

// What another command has to be told, so that the workload is trained there as it is here: what
// was stated, and what is not the default.
std::vector<const TrainingFact*> FactsToState(const Arguments& arguments, const Workload& workload);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_TRAINING_OPTION_H_
