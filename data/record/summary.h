// Repeated times of one thing in two robust numbers.
#ifndef STEPCAST_DATA_RECORD_SUMMARY_H_
#define STEPCAST_DATA_RECORD_SUMMARY_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

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
  const auto middle_of = [](std::vector<double>* v) {
    std::sort(v->begin(), v->end());
    return ((*v)[(v->size() - 1) / 2] + (*v)[v->size() / 2]) / 2;
  };
  summary.median = middle_of(&values);
  if (values.size() >= kLeast) {
    const double last = static_cast<double>(values.size()) - 1;
    const double reach = kConfidence / 2 * std::sqrt(last + 1);
    const auto at = [&](double place) {
      place = std::clamp(place, 0.0, last);
      const auto below = static_cast<std::size_t>(place);
      const std::size_t above = std::min(below + 1, values.size() - 1);
      return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
    };
    summary.relative_error =
        (at(last / 2 + reach) - at(last / 2 - reach)) / (2 * kConfidence * summary.median);
  }
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::abs(value - summary.median));
  const double sd = kSdsPerMad * middle_of(&deviations);
  for (const double deviation : deviations) {
    if (deviation > kOutlierSds * sd && sd > 0) ++summary.outliers;
  }
  return summary;
}

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_SUMMARY_H_
