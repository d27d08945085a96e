// Where an option's value stands, for errors.
#ifndef STEPCAST_PREDICTOR_CLI_OPTION_PLACE_H_
#define STEPCAST_PREDICTOR_CLI_OPTION_PLACE_H_

#include <string>

#include "data/record/input_error.h"

namespace stepcast::cli {

inline InputPlace OptionPlace(const std::string& option) { return {"", 0, "--" + option}; }

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_OPTION_PLACE_H_
