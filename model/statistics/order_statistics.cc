#include "model/statistics/order_statistics.h"

#include <algorithm>
#include <cmath>

#include "model/statistics/normal.h"

namespace stepcast {
namespace {

// From here inwards the binomial sum would have more terms than this.
constexpr int kMostTerms = 32;

// Wilson and Hilferty's quantile of a gamma variable of whole shape; exact for shape 1.
double GammaQuantile(double q, int shape) {
  if (shape == 1) return -std::log1p(-q);
  const double root = 3 * std::sqrt(static_cast<double>(shape));
  const double cube = 1 - 1 / (root * root) + NormalQuantile(q) / root;
  return shape * std::pow(std::max(cube, 1e-3), 3);
}

// The upper tail by Wise: N times -ln U is a gamma variable of shape k + 1, with N = n - k/2.
double WiseUpperTail(double q, int count, int larger) {
  const double x = GammaQuantile(1 - q, larger + 1) / (count - 0.5 * larger);
  return -std::expm1(-x);
}

// The upper tail of the largest but k where both ranks from the ends are large: Carter's expansion
// for the logarithm of a variance ratio, as Abramowitz and Stegun 26.5.22 give it for the beta
// distribution with a = k + 1 and b = n - k.
double InnerUpperTail(double q, int count, int larger) {
  const double a = larger + 1.0;
  const double b = count - larger;
  const double of_a = 1 / (2 * a - 1);
  const double of_b = 1 / (2 * b - 1);
  const double y = NormalQuantile(q);  // a large value has a small tail above it
  const double h = 2 / (of_a + of_b);
  const double lambda = (y * y - 3) / 6;
  const double w = y * std::sqrt(h + lambda) / h - (of_b - of_a) * (lambda + 5.0 / 6 - 2 / (3 * h));
  return a / (a + b * std::exp(2 * w));
}

// P(at most k of n values lie in an upper tail of probability p), and its derivative by ln p.
struct Binomial {
  double probability;
  double slope;
};

Binomial AtMost(int larger, int count, double p) {
  const double odds = p / (1 - p);
  double term = std::exp(count * std::log1p(-p));
  double sum = term;
  for (int j = 1; j <= larger; ++j) {
    term *= odds * (count - j + 1) / j;
    sum += term;
  }
  // d/dp of the sum is -(n - k) / (1 - p) times its last term.
  return {sum, -(count - larger) * odds * term};
}

// 1 - u for the upper half of the ranks, larger <= (count - 1) / 2.
double UpperHalfTail(double q, int count, int larger) {
  if (larger == 0) return -std::expm1(std::log(q) / count);
  if (larger > kMostTerms) return InnerUpperTail(q, count, larger);
  double p = WiseUpperTail(q, count, larger);
  constexpr int kSteps = 8;
  for (int i = 0; i < kSteps; ++i) {
    const Binomial at = AtMost(larger, count, p);
    // In ln p, and never by more than e: the sum is flat far from the answer.
    const double step = std::clamp((q - at.probability) / at.slope, -1.0, 1.0);
    p = std::min(p * std::exp(step), (1 + p) / 2);
  }
  return p;
}

}  // namespace

double HarmonicNumber(int n) {
  if (n <= 32) {
    double sum = 0;
    for (int i = n; i >= 1; --i) sum += 1.0 / i;
    return sum;
  }
  constexpr double kEulerGamma = 0.57721566490153286061;
  const double r = 1.0 / n;
  const double r2 = r * r;
  return std::log(static_cast<double>(n)) + kEulerGamma + r / 2 -
         r2 * (1.0 / 12 - r2 * (1.0 / 120 - r2 / 252));
}

double ExpectedNormalRank(double rank, double count) {
  return count <= 1 ? 0.0 : NormalQuantile((rank - 0.375) / (count + 0.25));
}

double ExpectedExponential(int count, int larger) {
  return HarmonicNumber(count) - HarmonicNumber(larger);
}

double NormalRankQuantile(double q, int count, int larger) {
  // From whichever tail is small, which keeps its figures.
  const int smaller = count - 1 - larger;
  return smaller < larger ? NormalQuantile(UpperHalfTail(1 - q, count, smaller))
                          : -NormalQuantile(UpperHalfTail(q, count, larger));
}

double ExponentialRankQuantile(double q, int count, int larger) {
  const int smaller = count - 1 - larger;
  return smaller < larger ? -std::log1p(-UpperHalfTail(1 - q, count, smaller))
                          : -std::log(UpperHalfTail(q, count, larger));
}

}  // namespace stepcast
