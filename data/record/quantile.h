// Quantiles of a list of values.
#ifndef STEPCAST_DATA_RECORD_QUANTILE_H_
#define STEPCAST_DATA_RECORD_QUANTILE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace stepcast {

// Linear interpolation between order statistics; `sorted` has the least first and is not empty,
// `place` is from 0 to size - 1.
inline double ValueAt(const std::vector<double>& sorted, double place) {
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}
// The same at `share` of the way from the least to the largest, from 0 to 1.
inline double Quantile(const std::vector<double>& sorted, double share) {
  return ValueAt(sorted, share * static_cast<double>(sorted.size() - 1));
}

// The value in the middle, or the mean of the two; there is one at least.
inline double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}
// The value in the middle, the upper one of two; there is one at least.
inline double MiddleOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_QUANTILE_H_
