// Parameters that the runs cannot tell apart, and the single run that would.
//
// Two parameters cannot be told apart where either would be known nearly twice as well if the other
// were known:
//
//   sd_i sqrt(1 - r^2) <= 0.55 sd_i,   r the correlation of their errors, |r| >= 0.84
//
// A positive r leaves their ratio, a negative one their product.
//
// The run that separates them is the candidate after which ln(value) of the less certain one has
// the least variance (calibrate/next_runs.h).
//
// Note that parameters of which the runs say nothing are not correlated, and no pair.
#ifndef STEPCAST_CALIBRATE_IDENTIFIABILITY_H_
#define STEPCAST_CALIBRATE_IDENTIFIABILITY_H_

#include <optional>
#include <string>
#include <vector>

#include "data/record/plan.h"
#include "model/step/believed_model.h"

namespace stepcast {

struct Ambiguity {
  std::string first;              // "flow_bandwidth"
  std::string second;             // "sample_time of resnet50 on t4"
  bool product = false;           // what is left is their product, otherwise their ratio
  double log_sd = 0;              // of the less certain one
  double conditional_log_sd = 0;  // the same, if the other one were known
  // The run that separates them best, and what it would leave of log_sd; none where no candidate
  // lowers it by a tenth.
  std::optional<Plan> separating;
  double separated_log_sd = 0;
};

// Such pairs, the worst first; each parameter is in one at most. `candidates` as for
// ChooseNextRuns.
std::vector<Ambiguity> FindAmbiguities(const BelievedModel& model,
                                       const std::vector<Plan>& candidates);

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_IDENTIFIABILITY_H_
