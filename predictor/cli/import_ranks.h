// stepcast import kineto-ranks: what the ranks of a training communicate, hide and wait for.
#ifndef STEPCAST_PREDICTOR_CLI_IMPORT_RANKS_H_
#define STEPCAST_PREDICTOR_CLI_IMPORT_RANKS_H_

#include <string>
#include <vector>

#include "predictor/cli/command.h"

namespace stepcast::cli {

int ImportRanks(const Arguments& args, const std::vector<std::string>& files);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_IMPORT_RANKS_H_
