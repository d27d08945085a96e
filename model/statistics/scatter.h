// The scatter of measured steps around what is predicted of them: from a quantile of their
// distances, and what repeats of one plan have in common.
//
//   s = ( (n q^2 + n_0 s_0^2) / (n + n_0) )^(1/2),   q = quantile of |distance| over that of a
//                                                        standard normal law
//   s_n = s (1 - r + r n)^(1/2)
//
//   n, n_0  rows; those that what is known beforehand counts for
//   s_0     scatter known beforehand
//   s_n     of each of n repeats of a plan, so that they weigh as much together as they tell
//   r       share of the variance that repeats have in common: what is special about a plan, its
//           hosts or its hour. Other layouts of one shape differ by 3 to 6 % where single steps
//           scatter by 6 to 8 % (public traces)
#ifndef STEPCAST_MODEL_STATISTICS_SCATTER_H_
#define STEPCAST_MODEL_STATISTICS_SCATTER_H_

#include <cmath>
#include <vector>

namespace stepcast {

inline constexpr double kSharedByRepeats = 0.3;

inline double RepeatFactor(double rows) {
  return std::sqrt(1 - kSharedByRepeats + kSharedByRepeats * rows);
}

inline constexpr double kScatterRuns = 10;  // n_0
// s_0 of one measured step where no calibration has told: runs of public traces scatter by 6 %.
inline constexpr double kUncalibratedScatter = 0.06;
// A scatter of all but nothing is none that a row can be held to.
inline constexpr double kLeastStepScatter = 1e-3;

// Degrees of freedom of the t-distribution by which steps scatter, because their tails are heavier
// than a normal law's; and how much a row counts for there whose distance has that square.
inline constexpr double kTailDegrees = 4;
inline double TailWeight(double z2) { return (kTailDegrees + 1) / (kTailDegrees + z2); }

inline constexpr double kTypicalShare = 0.5;   // quantile of the scatter of most rows
inline constexpr double kIntervalShare = 0.9;  // of that which intervals are made of

// So many rows at one distance from what was predicted.
struct Deviation {
  double size = 0;  // not negative
  double rows = 1;
};

double ScatterOf(std::vector<Deviation> deviations, double quantile, double before);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STATISTICS_SCATTER_H_
