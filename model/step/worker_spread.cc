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
  log_factor_ = std::log(quantiles * internal::SpreadOfStep(facts) / facts.accumulation_steps);
}

double WorkerSpread::Log(const PlanAnswer& answer, double straggler_spread) const {
  return log_factor_ + std::log(straggler_spread * answer.step.compute().si()) - answer.log_step;
}

double WorkerSpread::Slope(const PlanAnswer& answer, int column) {
  const auto at = static_cast<std::size_t>(column);
  const double own = column == kWorkloadColumn + kStragglerSpread ? 1 : 0;
  return own + answer.log_compute_gradient[at] - answer.log_step_gradient[at];
}

}  // namespace stepcast
