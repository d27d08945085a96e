// The p-norm of two limits: what joins two regimes of a time where one gives way to the other.
//
//   ||a, b||_q = (a^q + b^q)^(1/q)
//
//   a, b   positive, of one dimension
//   q      sharpness of the knee, 1 and more: the sum for q = 1, towards the larger for large q
//
// Note that it never falls with a or b, never rises with q, and is at least the larger of the two.
// Written on their ratio, so that no power overflows or underflows.
#ifndef STEPCAST_MODEL_NUMERIC_P_NORM_H_
#define STEPCAST_MODEL_NUMERIC_P_NORM_H_

#include <cmath>

namespace stepcast {

template <class Q>
Q PNorm(const Q& a, const Q& b, double q) {
  using std::pow;
  using std::sqrt;
  const Q& hi = a < b ? b : a;
  const Q& lo = a < b ? a : b;
  const auto ratio = lo / hi;
  if (q == 4.0) {  // the knee that the step model uses most, for a fifth of the time
    const auto square = ratio * ratio;
    return hi * sqrt(sqrt(1.0 + square * square));
  }
  return hi * pow(1.0 + pow(ratio, q), 1.0 / q);
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_NUMERIC_P_NORM_H_
