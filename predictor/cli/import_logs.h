// stepcast import of what programs print: benchmarks of collectives, tools of the network, and the
// logs of trainings.
#ifndef STEPCAST_PREDICTOR_CLI_IMPORT_LOGS_H_
#define STEPCAST_PREDICTOR_CLI_IMPORT_LOGS_H_

#include <string>
#include <vector>

#include "data/logs/step_log.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {

void AddLogOptions(po::options_description* options);
// What says which steps of a training's log are taken.
StepLogOptions ReadStepLogOptions(const Arguments& args);
StepChoice ReadStepChoice(const Arguments& args);
// What a number of the log has to be multiplied by to be a step's time.
double StepsTimeFactor(const Arguments& args, const StepForm& form, const Plan& plan);
void RefuseLogOptions(const Arguments& args, const std::string& kind);

// `kind` is nccl-tests or osu; iperf3, ping, ethtool or ss.
int ImportCollectives(const Arguments& args, const std::string& kind,
                      const std::vector<std::string>& files);
int ImportLink(const Arguments& args, const std::string& kind,
               const std::vector<std::string>& files);
int ImportSteps(const Arguments& args, const std::vector<std::string>& files);
// What a file is, and which command reads it.
int GuessKind(const Arguments& args, const std::string& file);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_IMPORT_LOGS_H_
