#include "model/step/worker_spread.h"

#include <cmath>

#include "model/statistics/order_statistics.h"

namespace stepcast {

WorkerSpread::WorkerSpread(const StepFacts& facts) : is_all_(internal::Alone(facts)) {
  const bool waits = !is_all_ && TraitsOf(facts.strategy).synchronous;
  const int workers = waits ? facts.workers : 1;
  const int backup = waits ? facts.backup_workers : 0;
  const double quantiles =
      NormalRankQuantile(0.95, workers, backup) - NormalRankQuantile(0.5, workers, backup);
  const double of_step =
      is_all_ ? std::sqrt(1.0 * facts.accumulation_steps) : internal::SpreadOfStep(facts);
  log_factor_ = std::log(quantiles * of_step / facts.accumulation_steps);
}

double WorkerSpread::Log(const PlanAnswer& answer, double straggler_spread) const {
  const Duration<> passes = answer.step.forward + answer.step.backward;
  return log_factor_ + std::log(straggler_spread * passes.si()) - answer.log_step;
}

double WorkerSpread::Slope(const PlanAnswer& answer, int column) {
  const auto at = static_cast<std::size_t>(column);
  const StepTime<double>& step = answer.step;
  // The update is in proportion to update_time, and to what slows the passes down; these have a
  // part that it does not slow down, where exchanges contend with them.
  const double of_compute = answer.log_compute_gradient[at];
  const double of_update = column == kWorkloadColumn + kUpdateTime ? 1
                           : column == kSlowdownColumn             ? (of_compute != 0 ? 1 : 0)
                                                                   : 0;
  const Duration<> passes = step.forward + step.backward;
  const double of_passes = (step.compute() * of_compute - step.update * of_update) / passes;
  const double own = column == kWorkloadColumn + kStragglerSpread ? 1 : 0;
  return own + of_passes - answer.log_step_gradient[at];
}

}  // namespace stepcast
