// What makes a plan fit the memory where none does.
#ifndef STEPCAST_PREDICTOR_CLI_WHAT_FITS_H_
#define STEPCAST_PREDICTOR_CLI_WHAT_FITS_H_

#include <string>

#include "predictor/cli/command.h"
#include "predictor/search/recommend.h"

namespace stepcast::cli {

// A line with the options that do, where a search has found no plan for want of memory: each that
// does by itself, else the fewest that do together. What is shared out is the least that does. The
// same search tells it, of the workload as it is or trained otherwise. Where nothing does because
// of what is stated beside which nothing is shared out, it names that too.
std::string WhatFitsText(const Target& target, const Plan& plan, const RecommendOptions& search);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_WHAT_FITS_H_
