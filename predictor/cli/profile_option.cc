#include "predictor/cli/profile_option.h"

#include <cmath>

#include "model/step/priors.h"

namespace stepcast::cli {

void AddProfileOption(po::options_description* options) {
  options->add_options()("profile", OptionValue("F"),
                         "the device's layers: a file of stepcast microbench, or a shipped one");
}

std::optional<ComputeProfile> ReadProfileOption(const Arguments& arguments) {
  if (!arguments.Has("profile")) return std::nullopt;
  ReadProfile read = Library().LoadProfile(arguments.Text("profile"));
  if (read.torn) {
    Tell(arguments.Text("profile") +
         ": the last line is torn and left out; stepcast microbench goes on from it");
  }
  return std::move(read.profile);
}

std::string JoinFacts(const std::map<std::string, std::string>& facts) {
  std::string text;
  for (const auto& [name, value] : facts) text += (text.empty() ? "" : ", ") + name + " " + value;
  return text;
}

std::vector<ParameterStatement> StatePriors(const ProfiledCompute& compute,
                                            const Workload& workload, const std::string& source) {
  const WorkloadPriors priors = MakeWorkloadPriors(workload, std::nullopt, &compute);
  std::vector<ParameterStatement> statements;
  for (const int parameter : {kFixedTime, kFloorTime, kSampleTime, kUpdateTime}) {
    const auto i = static_cast<std::size_t>(parameter);
    ParameterStatement statement;
    statement.name = kWorkloadParameterSpecs[i].name;
    statement.workload = workload.name;
    statement.si = priors[i].si;
    // A calibration has the curve alone, without what takes it to each batch.
    statement.factor = std::exp(std::hypot(priors[i].log_sd, compute.CurveMisfit()));
    statement.source = source;
    statements.push_back(std::move(statement));
  }
  return statements;
}

}  // namespace stepcast::cli
