// How a workload is trained, as commands take it.
#ifndef STEPCAST_PREDICTOR_CLI_TRAINING_OPTION_H_
#define STEPCAST_PREDICTOR_CLI_TRAINING_OPTION_H_

#include <optional>

#include "data/record/calibration.h"
#include "data/record/workload.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {

// --precision, --optimizer, --attention, --recompute.
void AddTrainingOptions(po::options_description* options);

// What they state takes the place of what the cluster's runs say of the workload, and that of what
// its file says.
void ReadTrainingOptions(const Arguments& arguments, const std::optional<Calibration>& calibration,
                         Workload* workload);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_TRAINING_OPTION_H_
