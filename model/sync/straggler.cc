#include "model/sync/straggler.h"

#include <algorithm>

#include "model/statistics/order_statistics.h"

namespace stepcast {

double ExpectedLargest(int count) { return ExpectedNormalRank(count, count); }

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

}  // namespace stepcast
