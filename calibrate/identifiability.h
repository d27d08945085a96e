// What the runs cannot tell apart, and which single run would.
//
// Two parameters whose errors are correlated by at least 0.9 show as one number only: their ratio
// where the correlation is positive, their product where it is negative. Each alone is uncertain by
// sd_i, the two together by
//
//   sd_together = sqrt( C_ii + C_jj - 2 |C_ij| )
//
// The run that separates them is the candidate after which ln(value) of the less certain one has the
// least variance (calibrate/next_runs.h).
//
// Note that parameters of which the runs say nothing are not correlated, and no pair.
#ifndef STEPCAST_CALIBRATE_IDENTIFIABILITY_H_
#define STEPCAST_CALIBRATE_IDENTIFIABILITY_H_

#include <optional>
#include <string>
#include <vector>

#include "calibrate/believed_model.h"
#include "data/record/plan.h"

namespace stepcast {

struct Ambiguity {
  std::string first;     // "flow_bandwidth"
  std::string second;    // "sample_time of resnet50 on t4"
  bool product = false;  // known as their product, otherwise as their ratio
  double log_sd = 0;     // of the less certain one alone
  double together_log_sd = 0;
  // The run that separates them best, and what it would leave of log_sd; none where no candidate
  // lowers it by a tenth.
  std::optional<Plan> separating;
  double separated_log_sd = 0;
};

// The worst first, each parameter in one pair at most. `candidates` as for ChooseNextRuns.
std::vector<Ambiguity> FindAmbiguities(const BelievedModel& model,
                                       const std::vector<Plan>& candidates);

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_IDENTIFIABILITY_H_
