// Repeated times of one thing in two robust numbers.
#ifndef STEPCAST_DATA_RECORD_SUMMARY_H_
#define STEPCAST_DATA_RECORD_SUMMARY_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "data/record/quantile.h"

namespace stepcast {

struct Summary {
  std::size_t count = 0;
  double median = 0;
  // Standard error of the median, as a share of it; infinite for fewer than three values.
  double relative_error = std::numeric_limits<double>::infinity();
  // Values further from the median than five standard deviations of a normal law with the same
  // median absolute deviation: interrupts, other users. They are counted, and stay.
  std::size_t outliers = 0;
};

// Median and its standard error, free of any assumption on how the times are distributed: the order
// statistics 0.98 sqrt(n) places to both sides of the middle enclose the median with 95 %
// confidence (Conover, Practical Nonparametric Statistics), which is 1.96 standard errors each way.
// Between the places the values are interpolated, so that one more value changes little; for fewer
// than six the places are the ends, which enclose it less often.
inline Summary Summarise(std::vector<double> values) {
  constexpr double kConfidence = 1.96;
  constexpr double kSdsPerMad = 1.4826;
  constexpr double kOutlierSds = 5;
  constexpr std::size_t kLeast = 3;
  Summary summary;
  summary.count = values.size();
  if (values.empty()) return summary;
  std::sort(values.begin(), values.end());
  summary.median = MedianOf(values);
  if (values.size() >= kLeast) {
    const double last = static_cast<double>(values.size()) - 1;
    const double reach = kConfidence / 2 * std::sqrt(last + 1);
    const auto at = [&](double place) { return ValueAt(values, std::clamp(place, 0.0, last)); };
    summary.relative_error =
        (at(last / 2 + reach) - at(last / 2 - reach)) / (2 * kConfidence * summary.median);
  }
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::abs(value - summary.median));
  const double sd = kSdsPerMad * MedianOf(deviations);
  for (const double deviation : deviations) {
    if (deviation > kOutlierSds * sd && sd > 0) ++summary.outliers;
  }
  return summary;
}

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_SUMMARY_H_
