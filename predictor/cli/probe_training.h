// What `stepcast probe steps` trains for a run that is wanted: its compute, as a forecast has it,
// what is exchanged behind it, and who takes part.
#ifndef STEPCAST_PREDICTOR_CLI_PROBE_TRAINING_H_
#define STEPCAST_PREDICTOR_CLI_PROBE_TRAINING_H_

#include <optional>
#include <string>
#include <vector>

#include "data/record/network_profile.h"
#include "microbench/script/wanted_runs.h"
#include "microbench/steps/coordinator.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {

struct PreparedRun {
  const script::WantedRun* wanted = nullptr;
  steps::Training training;  // but for how many steps it takes, and how long it may
  Prediction predicted;
};

// Throws InputError where the run is none that hosts with a worker each can measure.
PreparedRun PrepareRun(const Arguments& args, const script::WantedRun& wanted);

// How many servers have hosts of their own.
int ServersApart(const Plan& plan);

// Who takes part: workers on the hosts that the plan names, else on the first ones; servers beside
// them in turn, or on the first hosts that have no worker. Why there are not enough, else.
std::optional<steps::Cast> CastOf(const Plan& plan, const std::vector<NetworkHost>& hosts,
                                  std::string* why);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_PROBE_TRAINING_H_
