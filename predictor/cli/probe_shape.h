// The conditions that `stepcast probe` sets on the links while it measures steps: each combination
// of them in turn, in an order by chance.
#ifndef STEPCAST_PREDICTOR_CLI_PROBE_SHAPE_H_
#define STEPCAST_PREDICTOR_CLI_PROBE_SHAPE_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "microbench/script/wanted_runs.h"
#include "microbench/steps/shaping.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {

void AddShapeOptions(po::options_description* options);

// Which conditions, how often, and in which order.
struct Design {
  std::vector<steps::Conditions> cells;  // empty where the links are left as they are
  int replicates = 1;
  int seed = 0;
  std::string interface;
  bool counted = false;  // whether rows say which replicate they are of

  bool shapes() const { return !cells.empty(); }
  // All that any of the cells asks for.
  steps::Conditions hardest() const;
};
// Throws InputError, also where this host could not set what is asked for.
Design ReadDesign(const Arguments& args);
// The interface that another host lets rank 0 shape; empty for none.
std::string ReadShapedInterface(const Arguments& args);

// Runs in the order in which they are measured.
struct DesignedRuns {
  script::WantedRuns wanted;
  std::vector<std::optional<steps::Conditions>> conditions;  // of each run
};
// Each run in each cell, whose conditions are in its columns, cells by chance, and all of it once
// more for each replicate, which has a column of its own.
DesignedRuns Spread(const script::WantedRuns& wanted, const Design& design);

// What the runs cannot tell, a sentence each; some hosts may set a bandwidth on what they send
// alone.
std::vector<std::string> FlagsOf(const DesignedRuns& runs,
                                 const std::set<std::string>& sending_only);
Json DesignJson(const Design& design, const std::set<std::string>& sending_only);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_PROBE_SHAPE_H_
