// A profile that stepcast microbench wrote, as commands take it.
#ifndef STEPCAST_PREDICTOR_CLI_PROFILE_OPTION_H_
#define STEPCAST_PREDICTOR_CLI_PROFILE_OPTION_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/record/statement.h"
#include "model/compute/profiled_compute.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {

// --profile.
void AddProfileOption(po::options_description* options);

// Empty without --profile.
std::optional<ComputeProfile> ReadProfileOption(const Arguments& arguments);

// Facts or settings as one line: "cores 2, l2_cache 2 MiB".
std::string JoinFacts(const std::map<std::string, std::string>& facts);

// The profile's figures of the workload as priors of a calibration, from which its runs may move
// them: fixed_time and floor_time hold a framework's overhead, sample_time what it fuses.
std::vector<ParameterStatement> StatePriors(const ProfiledCompute& compute,
                                            const Workload& workload, const std::string& source);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_PROFILE_OPTION_H_
