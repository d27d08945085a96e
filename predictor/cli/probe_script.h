// stepcast probe script: a training of the user's own, timed in each run that is wanted.
#ifndef STEPCAST_PREDICTOR_CLI_PROBE_SCRIPT_H_
#define STEPCAST_PREDICTOR_CLI_PROBE_SCRIPT_H_

#include <string>
#include <vector>

#include "predictor/cli/command.h"

namespace stepcast::cli {

void AddScriptOptions(po::options_description* options);
// `words` are the file of wanted runs, and the command.
int ProbeScript(const Arguments& args, const std::vector<std::string>& words);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_PROBE_SCRIPT_H_
