// stepcast watch, as the list of commands has it.
#ifndef STEPCAST_PREDICTOR_CLI_WATCH_H_
#define STEPCAST_PREDICTOR_CLI_WATCH_H_

#include <string>
#include <vector>

namespace stepcast::cli {

int RunWatch(const std::vector<std::string>& arguments);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_WATCH_H_
