// Where a question that is asked of larger and larger, or smaller and smaller, values turns from no
// to yes.
#ifndef STEPCAST_PREDICTOR_SEARCH_BISECT_H_
#define STEPCAST_PREDICTOR_SEARCH_BISECT_H_

#include <algorithm>
#include <cmath>

namespace stepcast {

// Rates, times and shares are found to so many parts of themselves.
inline constexpr double kBisectPrecision = 1e-3;

// The value nearest to `no`, to kBisectPrecision, for which `does`, which does for `yes`. Both are
// positive, and either may be the larger.
template <class Does>
double Bisect(double no, double yes, const Does& does) {
  while (std::max(yes / no, no / yes) > 1 + kBisectPrecision) {
    const double middle = std::sqrt(yes * no);
    (does(middle) ? yes : no) = middle;
  }
  return yes;
}

// The same of counts, exactly.
template <class Does>
int BisectCount(int no, int yes, const Does& does) {
  while (std::abs(yes - no) > 1) {
    const int middle = no + (yes - no) / 2;
    (does(middle) ? yes : no) = middle;
  }
  return yes;
}

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_SEARCH_BISECT_H_
