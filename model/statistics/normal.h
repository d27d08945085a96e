// The standard normal distribution.
//
// Source: Wichura, Applied Statistics 37 (1988), algorithm AS 241 in its 7-figure form.
#ifndef STEPCAST_MODEL_STATISTICS_NORMAL_H_
#define STEPCAST_MODEL_STATISTICS_NORMAL_H_

#include <cmath>

namespace stepcast {

// Half the width, in standard deviations, of the intervals that hold 90 and 95 % of a normal law.
inline constexpr double kNinetyPercent = 1.6448536269514722;
inline constexpr double kNinetyFivePercent = 1.959963984540054;

// The factor, up and down, within which nine of ten values lie whose logarithm is normal with this
// standard deviation: the ends of intervals, and what texts mean by "good to a factor of".
inline double NinetyPercentFactor(double log_sd) { return std::exp(kNinetyPercent * log_sd); }

// x with Phi(x) = p, 0 < p < 1, to seven figures. Note that it is odd around p = 1/2.
double NormalQuantile(double p);

// Phi(x) = erfc(-x / sqrt(2)) / 2: the probability of at most x.
template <class T>
T NormalDistribution(const T& x) {
  using std::erfc;
  return erfc(x * -0.70710678118654752440) * 0.5;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STATISTICS_NORMAL_H_
