// The options and the output of a job's outlook, and of what servers and automatic choices tell.
#ifndef STEPCAST_PREDICTOR_CLI_OUTLOOK_H_
#define STEPCAST_PREDICTOR_CLI_OUTLOOK_H_

#include <string>
#include <utility>
#include <vector>

#include "predictor/cli/command.h"
#include "predictor/outlook.h"

namespace stepcast::cli {

// --time-limit.
void AddLimitOption(po::options_description* options);
// --noise-scale, --known-batch.
void AddNoiseOptions(po::options_description* options);
// --data-set, --least-steps and those of failures.
void AddJobOptions(po::options_description* options);
// The given ones of all these options, checked.
OutlookOptions ReadOutlookOptions(const Arguments& arguments);

// Lines of text, each with its name.
using NamedLines = std::vector<std::pair<std::string, std::string>>;

// The algorithm that was chosen; what servers do with the step.
NamedLines StrategyLines(const Prediction& prediction, const Plan& plan, const Target& target);
// Money and energy of a step; and the job, as far as it was asked for.
NamedLines OutlookLines(const JobOutlook& job, const Plan& plan);

// "what local steps cost in samples is not counted: ...", of some that CostsInSamples() names.
std::string NotCountedText(const std::vector<std::string>& costs);

// "does not finish within 30 min", "finishes within 30 min: probability 62 %".
std::string LimitText(const LimitOutlook& limit);

// The keys of a limit that was given: time_limit_s, finishes_within_limit, finishes_probability.
void AddLimitJson(const JobOutlook& job, Json* json);
// The keys of a limit, and outlook: what was asked for of the job.
void AddJobJson(const JobOutlook& job, Json* json);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_OUTLOOK_H_
