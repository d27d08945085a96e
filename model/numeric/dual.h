// A value and its derivatives by a few variables, carried through the formulas by the chain rule:
//
//   f(x + s e) = f(x) + f'(x) s e,   e^2 = 0
//
// S holds the derivatives: a double for one variable, Lanes for several. Where the formulas branch,
// the value decides, so that the derivative is that of the branch taken.
//
// Source: Clifford, Proc. London Math. Soc. 4 (1873) (dual numbers); as ceres::Jet, which the rooms
// that only predict do not know.
#ifndef STEPCAST_MODEL_NUMERIC_DUAL_H_
#define STEPCAST_MODEL_NUMERIC_DUAL_H_

#include <cmath>

#include "data/units/quantity.h"

namespace stepcast {

// N numbers, N even, that are added and multiplied one by one. As members, two in each register:
// g++ keeps an array in memory, which takes ten times as long.
template <int N>
struct Lanes {
  using Two = double __attribute__((vector_size(16)));
  Two two = {0.0, 0.0};
  Lanes<N - 2> rest;

  double operator[](int i) const { return i < 2 ? two[i] : rest[i - 2]; }
  void Set(int i, double value) {
    if (i < 2) {
      two[i] = value;
    } else {
      rest.Set(i - 2, value);
    }
  }
  // Writes all of them to an array.
  void Store(double* to) const {
    to[0] = two[0];
    to[1] = two[1];
    rest.Store(to + 2);
  }
  Lanes operator-() const { return {-two, -rest}; }
  Lanes& operator+=(const Lanes& o) { return *this = *this + o; }
  friend Lanes operator+(const Lanes& a, const Lanes& b) {
    return {a.two + b.two, a.rest + b.rest};
  }
  friend Lanes operator-(const Lanes& a, const Lanes& b) {
    return {a.two - b.two, a.rest - b.rest};
  }
  friend Lanes operator*(const Lanes& a, double b) { return {a.two * b, a.rest * b}; }
  friend Lanes operator*(double a, const Lanes& b) { return b * a; }
};
template <>
struct Lanes<0> {
  double operator[](int /*i*/) const { return 0; }
  void Set(int /*i*/, double /*value*/) {}
  void Store(double* /*to*/) const {}
  Lanes operator-() const { return {}; }
  friend Lanes operator+(const Lanes& /*a*/, const Lanes& /*b*/) { return {}; }
  friend Lanes operator-(const Lanes& /*a*/, const Lanes& /*b*/) { return {}; }
  friend Lanes operator*(const Lanes& /*a*/, double /*b*/) { return {}; }
};

template <class S>
struct DualNumber {
  double value = 0.0;
  S slope = {};

  DualNumber() = default;
  // A constant, which has no derivative, is one of them wherever it appears.
  DualNumber(double v) : value(v) {}  // NOLINT(google-explicit-constructor): see above
  DualNumber(double v, const S& s) : value(v), slope(s) {}

  DualNumber operator-() const { return {-value, -slope}; }
  DualNumber& operator+=(const DualNumber& o) { return *this = *this + o; }
  DualNumber& operator-=(const DualNumber& o) { return *this = *this - o; }

  friend DualNumber operator+(const DualNumber& a, const DualNumber& b) {
    return {a.value + b.value, a.slope + b.slope};
  }
  friend DualNumber operator+(const DualNumber& a, double b) { return {a.value + b, a.slope}; }
  friend DualNumber operator+(double a, const DualNumber& b) { return {a + b.value, b.slope}; }
  friend DualNumber operator-(const DualNumber& a, const DualNumber& b) {
    return {a.value - b.value, a.slope - b.slope};
  }
  friend DualNumber operator-(const DualNumber& a, double b) { return {a.value - b, a.slope}; }
  friend DualNumber operator-(double a, const DualNumber& b) { return {a - b.value, -b.slope}; }
  friend DualNumber operator*(const DualNumber& a, const DualNumber& b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
  }
  friend DualNumber operator*(const DualNumber& a, double b) { return {a.value * b, a.slope * b}; }
  friend DualNumber operator*(double a, const DualNumber& b) { return {a * b.value, a * b.slope}; }
  friend DualNumber operator/(const DualNumber& a, const DualNumber& b) {
    const double inverse = 1.0 / b.value;
    const double ratio = a.value / b.value;
    return {ratio, (a.slope - ratio * b.slope) * inverse};
  }
  friend DualNumber operator/(const DualNumber& a, double b) {
    return {a.value / b, a.slope * (1.0 / b)};
  }
  friend DualNumber operator/(double a, const DualNumber& b) {
    const double inverse = 1.0 / b.value;
    const double ratio = a / b.value;
    return {ratio, b.slope * (-ratio * inverse)};
  }
  friend bool operator<(const DualNumber& a, const DualNumber& b) { return a.value < b.value; }
  friend bool operator>(const DualNumber& a, const DualNumber& b) { return a.value > b.value; }
  friend bool operator<=(const DualNumber& a, const DualNumber& b) { return a.value <= b.value; }
  friend bool operator>=(const DualNumber& a, const DualNumber& b) { return a.value >= b.value; }

  friend DualNumber sqrt(const DualNumber& x) {
    const double root = std::sqrt(x.value);
    return {root, x.slope * (0.5 / root)};
  }
  friend DualNumber exp(const DualNumber& x) {
    const double e = std::exp(x.value);
    return {e, x.slope * e};
  }
  friend DualNumber log(const DualNumber& x) {
    return {std::log(x.value), x.slope * (1.0 / x.value)};
  }
  friend DualNumber expm1(const DualNumber& x) {
    return {std::expm1(x.value), x.slope * std::exp(x.value)};
  }
  friend DualNumber log1p(const DualNumber& x) {
    return {std::log1p(x.value), x.slope * (1.0 / (1.0 + x.value))};
  }
  friend DualNumber exp2(const DualNumber& x) {
    constexpr double kLn2 = 0.69314718055994530942;
    const double e = std::exp2(x.value);
    return {e, x.slope * (kLn2 * e)};
  }
  friend DualNumber log2(const DualNumber& x) {
    constexpr double kLn2 = 0.69314718055994530942;
    return {std::log2(x.value), x.slope * (1.0 / (kLn2 * x.value))};
  }
  friend DualNumber pow(const DualNumber& x, double p) {
    const double power = std::pow(x.value, p);
    return {power, x.slope * (p * std::pow(x.value, p - 1.0))};
  }
};

// Derivatives by one variable, and by N.
using Dual = DualNumber<double>;
template <int N>
using DualOf = DualNumber<Lanes<N>>;

// The value of a scalar, or of a quantity, that may carry derivatives; those of ceres::Jet as well.
inline double ValueOf(double x) { return x; }
template <class S>
double ValueOf(const DualNumber<S>& x) {
  return x.value;
}
template <class T>
double ValueOf(const T& x) {
  return x.a;
}
template <class D, class T>
Quantity<D> ValueOf(const Quantity<D, T>& x) {
  return Quantity<D>::FromSi(ValueOf(x.si()));
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_NUMERIC_DUAL_H_
