// The model's answer to one plan, with its derivatives: facts and parameter values in; the step,
// the part of it that synchronisation shows, and their gradients out.
//
// Everything that needs a derivative of a step asks here: the facade's intervals and elasticities,
// calibration, the choice of runs, drift, and online learning. The derivatives are exact: the step
// is evaluated on numbers that carry them (model/numeric/dual.h), as many as the plan has
// parameters. What several parameters enter by one number only, the compute curve and the rate of a
// path, is a part of its own: the step carries one derivative by the part, the part those by its
// parameters, and the chain rule joins them. Derivatives are by ln(SI value), because parameters
// are positive and their uncertainty is a factor.
//
// Note that an answer with derivatives is the same as one without, to rounding; that the gradient
// is 0 in each column that MattersTo denies; and that the gradient of a maximum is that of its
// larger side.
#ifndef STEPCAST_MODEL_STEP_ANSWER_H_
#define STEPCAST_MODEL_STEP_ANSWER_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <optional>
#include <vector>

#include "model/step/step.h"

namespace stepcast {

// Columns of a gradient: the cluster's parameters, the workload's, the link of the slowest of the
// hosts that the plan names, where they have links of their own, the factor of the one of them that
// computes slowest, where one does, and the share that is reached of the line rates that the plan
// states.
inline constexpr int kWorkloadColumn = kClusterParameterCount;
inline constexpr int kLinkColumn = kWorkloadColumn + int{kWorkloadParameterCount};
inline constexpr int kSlowdownColumn = kLinkColumn + 1;
inline constexpr int kShareColumn = kSlowdownColumn + 1;
inline constexpr int kPlanColumns = kShareColumn + 1;
using PlanGradient = std::array<double, kPlanColumns>;

// The columns of parameters that the step of a plan can depend on: those between nodes matter where
// a plan leaves its node, those of servers where there are some, and windows and timeouts where
// there are round trips or losses. `own_link` says whether each host that the plan names has a link
// of its own, which then takes the place of the cluster's link_bandwidth between nodes. A factor on
// compute matters to all that computes.
using ColumnSet = std::bitset<kPlanColumns>;
ColumnSet ColumnsThatMatter(const StepFacts& facts, bool own_link);
inline bool MattersTo(const StepFacts& facts, bool own_link, int column) {
  return ColumnsThatMatter(facts, own_link)[static_cast<std::size_t>(column)];
}

// The index of the slowest of `count` links, the first of equal ones: the one that sets the pace of
// a plan over all of them. `rate_of(index)` is its rate, or the logarithm of it; none for no links.
template <class RateOf>
std::optional<std::size_t> SlowestLink(std::size_t count, const RateOf& rate_of) {
  std::optional<std::size_t> slowest;
  for (std::size_t i = 0; i < count; ++i) {
    if (!slowest || rate_of(i) < rate_of(*slowest)) slowest = i;
  }
  return slowest;
}

// The index of the slowest of `count` factors on compute, the first of equal ones: a step waits for
// it. `log_slowdown_of(index)` is the logarithm of a factor. With `others` the plan has hosts
// without a factor, too, which compute as ever: none where no host is slower than these.
template <class LogSlowdownOf>
std::optional<std::size_t> SlowestCompute(std::size_t count, bool others,
                                          const LogSlowdownOf& log_slowdown_of) {
  std::optional<std::size_t> slowest;
  for (std::size_t i = 0; i < count; ++i) {
    const double least = slowest ? log_slowdown_of(*slowest) : 0;
    if ((!slowest && !others) || log_slowdown_of(i) > least) slowest = i;
  }
  return slowest;
}

struct PlanAnswer {
  StepTime<double> step;
  Duration<> micro;       // one micro-step
  double batch = 1;       // samples of it; both of the workers that the step waits for
  double log_step = 0;    // ln(s)
  double sync_share = 0;  // exposed synchronisation and wait for the slowest, of the step
  PlanGradient log_step_gradient{};
  PlanGradient log_compute_gradient{};  // of ln(forward + backward + update); 0 of a bare message
  PlanGradient sync_share_gradient{};
};

enum class Derivatives { kNone, kOfWorkload, kAll };

// A plan that is asked again and again: what is counted of it, and what depends on no parameter.
class PlanModel {
 public:
  PlanModel() = default;
  explicit PlanModel(StepFacts facts);

  const StepFacts& facts() const { return facts_; }
  PlanAnswer Answer(const PlanParameters& at, Derivatives derivatives) const;

 private:
  StepFacts facts_;
  ColumnSet columns_;                   // that matter
  ColumnSet own_link_columns_;          // where its hosts have links of their own
  std::vector<BucketLine> lines_;       // ps-sync
  std::vector<BucketLine> held_;        // ps-sync, those of the fullest server
  internal::OverlapLines async_lines_;  // ps-async
  double slowest_ = 0;                  // of the workers, in standard deviations
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_ANSWER_H_
