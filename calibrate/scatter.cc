#include "calibrate/scatter.h"

#include <cmath>
#include <utility>

#include "model/statistics/scatter.h"

namespace stepcast {
namespace {

std::vector<Deviation> Deviations(const std::vector<ScatterRow>& rows) {
  std::vector<Deviation> deviations;
  for (const ScatterRow& row : rows) deviations.push_back({std::abs(row.log_ratio)});
  return deviations;
}

}  // namespace

double TypicalScatter(const std::vector<ScatterRow>& rows, double before) {
  return ScatterOf(Deviations(rows), kTypicalShare, before);
}

double TotalScatter(const std::vector<ScatterRow>& rows, double before) {
  return ScatterOf(Deviations(rows), kIntervalShare, before);
}

Scatter EstimateScatter(const std::vector<ScatterRow>& rows, const Scatter& before) {
  constexpr int kRounds = 100;
  constexpr double kSettled = 1e-6;
  Scatter scatter = before;
  for (int round = 0; round < kRounds; ++round) {
    double compute = kScatterRuns * before.compute * before.compute;
    double sync = kScatterRuns * before.sync * before.sync;
    double compute_rows = kScatterRuns;
    double sync_rows = kScatterRuns;
    for (const ScatterRow& row : rows) {
      const double s = scatter.At(row.sync_share);
      const double z = row.log_ratio / s;
      const double weight = TailWeight(z * z);
      // The share of compute in the variance, and what the residual says of either part.
      const double c = scatter.compute * (1 - row.sync_share) / s;
      const double p = c * c;
      const double compute_part = weight * p * z * z + (1 - p);
      const double sync_part = weight * (1 - p) * z * z + p;
      // Rows say something of a part as far as they contain it.
      compute += p * compute_part * scatter.compute * scatter.compute;
      compute_rows += p;
      sync += (1 - p) * sync_part * scatter.sync * scatter.sync;
      sync_rows += 1 - p;
    }
    const Scatter next = {std::sqrt(compute / compute_rows), std::sqrt(sync / sync_rows)};
    const double change =
        std::abs(next.compute / scatter.compute - 1) + std::abs(next.sync / scatter.sync - 1);
    scatter = next;
    if (change < kSettled) break;
  }
  return scatter;
}

Scatter IntervalScatter(const std::vector<ScatterRow>& rows, const Scatter& core) {
  std::vector<Deviation> distances;
  for (const ScatterRow& row : rows) {
    distances.push_back({std::abs(row.log_ratio) / core.At(row.sync_share)});
  }
  const double factor = ScatterOf(std::move(distances), kIntervalShare, 1);
  return {core.compute * factor, core.sync * factor};
}

}  // namespace stepcast
