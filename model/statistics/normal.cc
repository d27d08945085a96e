#include "model/statistics/normal.h"

#include <cmath>

namespace stepcast {
namespace {

// A rational approximation in r with the given coefficients, highest power first.
template <int N, int M>
double Rational(const double (&numerator)[N], const double (&denominator)[M], double r) {
  double above = 0;
  for (const double c : numerator) above = above * r + c;
  double below = 0;
  for (const double c : denominator) below = below * r + c;
  return above / below;
}

// Wichura's AS 241 in its 7-figure form (PPND7).
constexpr double kCentralA[] = {5.9109374720e+01, 1.5929113202e+02, 5.0434271938e+01,
                                3.3871327179e+00};
constexpr double kCentralB[] = {6.7187563600e+01, 7.8757757664e+01, 1.7895169469e+01, 1.0};
constexpr double kMiddleC[] = {1.7023821103e-01, 1.3067284816e+00, 2.7568153900e+00,
                               1.4234372777e+00};
constexpr double kMiddleD[] = {1.2021132975e-01, 7.3700164250e-01, 1.0};
constexpr double kFarE[] = {1.7337203997e-02, 4.2868294337e-01, 3.0812263860e+00, 6.6579051150e+00};
constexpr double kFarF[] = {1.2258202635e-02, 2.4197894225e-01, 1.0};

}  // namespace

double NormalQuantile(double p) {
  constexpr double kCentralHalfWidth = 0.425;
  constexpr double kMiddleEnd = 5.0;
  const double q = p - 0.5;
  if (std::abs(q) <= kCentralHalfWidth) {
    return q * Rational(kCentralA, kCentralB, 0.180625 - q * q);
  }
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  const double x = r <= kMiddleEnd ? Rational(kMiddleC, kMiddleD, r - 1.6)
                                   : Rational(kFarE, kFarF, r - kMiddleEnd);
  return q < 0 ? -x : x;
}

}  // namespace stepcast
