#include "model/statistics/scatter.h"

#include <algorithm>

#include "model/statistics/normal.h"

namespace stepcast {

double ScatterOf(std::vector<Deviation> deviations, double quantile, double before) {
  std::sort(deviations.begin(), deviations.end(),
            [](const Deviation& a, const Deviation& b) { return a.size < b.size; });
  double rows = 0;
  for (const Deviation& deviation : deviations) rows += deviation.rows;
  const double wanted = std::min(rows - 1, std::floor(quantile * rows));
  double passed = 0;
  double at = 0;
  for (const Deviation& deviation : deviations) {
    at = deviation.size;
    passed += deviation.rows;
    if (passed > wanted) break;
  }
  const double seen = at / NormalQuantile((1 + quantile) / 2);
  return std::sqrt((rows * seen * seen + kScatterRuns * before * before) / (rows + kScatterRuns));
}

}  // namespace stepcast
