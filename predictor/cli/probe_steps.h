// stepcast probe steps: trainings between hosts whose compute is waited for, and whose gradients
// are really exchanged, timed in each run that is wanted. stepcast probe collectives: the same of
// messages alone.
#ifndef STEPCAST_PREDICTOR_CLI_PROBE_STEPS_H_
#define STEPCAST_PREDICTOR_CLI_PROBE_STEPS_H_

#include <string>
#include <vector>

#include "predictor/cli/command.h"

namespace stepcast::cli {

// Those of no other probe.
void AddStepsOptions(po::options_description* options);
// `words` are the file of wanted runs, which the host of rank 0 needs.
int ProbeSteps(const Arguments& args, const std::vector<std::string>& words);
int ProbeCollectives(const Arguments& args);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_PROBE_STEPS_H_
