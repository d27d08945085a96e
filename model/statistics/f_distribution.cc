#include "model/statistics/f_distribution.h"

#include <cmath>

#include "model/statistics/normal.h"

namespace stepcast {

double TailOfF(double f, double n, double m) {
  const double a = 2 / (9 * n);
  const double b = 2 / (9 * m);
  const double root = std::cbrt(f);
  return NormalDistribution(-((1 - b) * root - (1 - a)) / std::sqrt(b * root * root + a));
}

}  // namespace stepcast
