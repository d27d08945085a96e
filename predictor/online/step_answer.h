// A step of a plan with its derivatives, for those who search for the parameters: EvaluateStep on
// numbers with as many derivatives as the plan has parameters.
#ifndef STEPCAST_PREDICTOR_ONLINE_STEP_ANSWER_H_
#define STEPCAST_PREDICTOR_ONLINE_STEP_ANSWER_H_

#include <array>
#include <vector>

#include "model/step/belief.h"
#include "model/step/step.h"
#include "predictor/compiled/known_parts.h"

namespace stepcast::internal {

// Columns of a gradient: the belief's cluster and workload, and the link of the slowest named host.
inline constexpr int kLinkColumn = Belief::kHostOffset;
inline constexpr int kAnswerColumns = kLinkColumn + 1;

struct StepAnswer {
  double log_step = 0;    // ln(s)
  double sync_share = 0;  // exposed synchronisation and wait, as a share of the step
  std::array<double, kAnswerColumns> gradient{};  // of log_step, by ln(SI value)
};

// A plan as it is asked again and again: what is counted of it, and what does not depend on the
// parameters worked out once, as in a compiled plan.
class PlanModel {
 public:
  PlanModel() = default;
  explicit PlanModel(StepFacts facts);

  const StepFacts& facts() const { return facts_; }

  // `values` are SI values in the order of the columns; that of the link is 0 where the plan takes
  // the cluster's.
  StepAnswer Answer(const std::array<double, kAnswerColumns>& values) const;

 private:
  struct Parts : LineParts {
    double slowest = 0;
    double Slowest(const StepFacts& /*facts*/) const { return slowest; }
  };
  template <int kLanes>
  void Evaluate(const std::array<double, kAnswerColumns>& values, StepAnswer* answer) const;

  StepFacts facts_;
  std::vector<BucketLine> lines_;  // ps-sync
  std::vector<BucketLine> held_;
  OverlapLines async_lines_;  // ps-async
  double slowest_ = 0;
};

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_ONLINE_STEP_ANSWER_H_
