// stepcast calibrate --fresh: from a described cluster to a calibrated one, by the commands that
// measure its compute, its network and its steps, fit what they found and judge the fit.
#ifndef STEPCAST_PREDICTOR_CLI_FRESH_H_
#define STEPCAST_PREDICTOR_CLI_FRESH_H_

#include "predictor/cli/command.h"

namespace stepcast::cli {

// Those that a fit has not: what to measure, between which hosts, and where it is kept.
void AddFreshOptions(po::options_description* options);
// The way on the host of rank 0; on the others their part in what is measured. What an earlier call
// with the same options has finished is taken over.
int CalibrateFresh(const Arguments& args);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_FRESH_H_
