#include "predictor/online/scatter.h"

#include <algorithm>
#include <cmath>

#include "model/statistics/normal.h"

namespace stepcast::internal {

double ScatterOf(std::vector<Deviation> deviations, double quantile, double before) {
  constexpr double kRowsBefore = 10;
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
  return std::sqrt((rows * seen * seen + kRowsBefore * before * before) / (rows + kRowsBefore));
}

}  // namespace stepcast::internal
