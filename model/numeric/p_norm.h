// The p-norm of two limits: what joins two regimes of a time where one gives way to the other.
//
//   ||a, b||_q = (a^q + b^q)^(1/q)
//   1 / ||1/a, 1/b||_q                  the same of two rates
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

namespace internal {

// (1 + r^q)^(1/q).
template <class T>
T OverLarger(const T& ratio, double q) {
  using std::pow;
  using std::sqrt;
  if (q == 4.0) {  // the knee that the step model uses most, for a fifth of the time
    const T square = ratio * ratio;
    return sqrt(sqrt(1.0 + square * square));
  }
  return pow(1.0 + pow(ratio, q), 1.0 / q);
}

}  // namespace internal

template <class Q>
Q PNorm(const Q& a, const Q& b, double q) {
  const Q& hi = a < b ? b : a;
  const Q& lo = a < b ? a : b;
  return hi * internal::OverLarger(lo / hi, q);
}

// Of rates, without the divisions that their times would take.
template <class Q>
Q PNormOfRates(const Q& a, const Q& b, double q) {
  const Q& hi = a < b ? b : a;
  const Q& lo = a < b ? a : b;
  return lo / internal::OverLarger(lo / hi, q);
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_NUMERIC_P_NORM_H_
