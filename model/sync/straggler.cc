#include "model/sync/straggler.h"

#include <algorithm>
#include <cmath>

#include "model/statistics/normal.h"
#include "model/statistics/order_statistics.h"

namespace stepcast {

double ExpectedSlowest(int count, int backup) {
  return std::max(0.0, ExpectedNormalRank(count - backup, count));
}

double ExpectedSlowestExponential(int count, int backup) {
  return std::max(0.0, ExpectedExponential(count, backup) - 1);
}

double SlowestQuantile(const StepScatter& scatter, double q) {
  return scatter.spread == Spread::kNormal
             ? NormalRankQuantile(q, scatter.workers, scatter.backup_workers)
             : ExponentialRankQuantile(q, scatter.workers, scatter.backup_workers) - 1;
}

double ShareOfStepsBefore(Duration<> time, Duration<> without_wait, Duration<> worker_spread,
                          double log_sd) {
  const double share = worker_spread / without_wait;
  const double distance = std::log(time / without_wait);
  const double both = std::hypot(share, log_sd);
  if (both == 0) return distance > 0 ? 1 : 0;
  double z = distance / both;
  if (z <= 0) return NormalDistribution(z);
  // Above the median ln(1 + d z) is below d z, so that this z is too small; what is left of it
  // shrinks by more than half a round.
  constexpr int kRounds = 40;
  for (int round = 0; round < kRounds; ++round) {
    const double late = std::log1p(share * z);
    const double at = std::hypot(late, log_sd * z);
    const double slope = (late * share / (1 + share * z) + log_sd * log_sd * z) / at;
    const double next = z + (distance - at) / slope;
    if (std::abs(next - z) <= 1e-14 * z) break;
    z = next;
  }
  return NormalDistribution(z);
}

}  // namespace stepcast
