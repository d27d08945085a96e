// Derivatives that are carried along, against those that are known.
#include "model/numeric/dual.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "model/numeric/p_norm.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

struct Function {
  const char* name;
  std::function<Dual(const Dual&)> f;
  std::function<double(double)> value;
  std::function<double(double)> derivative;
};

// Every function, and every operator with a constant on either side, for x > 0.
std::vector<Function> Functions() {
  return {
      {"-x", [](const Dual& x) { return -x; }, [](double x) { return -x; },
       [](double) { return -1.0; }},
      {"x + 3", [](const Dual& x) { return x + 3.0; }, [](double x) { return x + 3; },
       [](double) { return 1.0; }},
      {"3 + x", [](const Dual& x) { return 3.0 + x; }, [](double x) { return 3 + x; },
       [](double) { return 1.0; }},
      {"x - 3", [](const Dual& x) { return x - 3.0; }, [](double x) { return x - 3; },
       [](double) { return 1.0; }},
      {"3 - x", [](const Dual& x) { return 3.0 - x; }, [](double x) { return 3 - x; },
       [](double) { return -1.0; }},
      {"x 3", [](const Dual& x) { return x * 3.0; }, [](double x) { return x * 3; },
       [](double) { return 3.0; }},
      {"3 x", [](const Dual& x) { return 3.0 * x; }, [](double x) { return 3 * x; },
       [](double) { return 3.0; }},
      {"x / 3", [](const Dual& x) { return x / 3.0; }, [](double x) { return x / 3; },
       [](double) { return 1.0 / 3; }},
      {"3 / x", [](const Dual& x) { return 3.0 / x; }, [](double x) { return 3 / x; },
       [](double x) { return -3 / (x * x); }},
      {"sqrt", [](const Dual& x) { return sqrt(x); }, [](double x) { return std::sqrt(x); },
       [](double x) { return 0.5 / std::sqrt(x); }},
      {"exp", [](const Dual& x) { return exp(x); }, [](double x) { return std::exp(x); },
       [](double x) { return std::exp(x); }},
      {"log", [](const Dual& x) { return log(x); }, [](double x) { return std::log(x); },
       [](double x) { return 1 / x; }},
      {"expm1", [](const Dual& x) { return expm1(x); }, [](double x) { return std::expm1(x); },
       [](double x) { return std::exp(x); }},
      {"log1p", [](const Dual& x) { return log1p(x); }, [](double x) { return std::log1p(x); },
       [](double x) { return 1 / (1 + x); }},
      {"exp2", [](const Dual& x) { return exp2(x); }, [](double x) { return std::exp2(x); },
       [](double x) { return std::log(2.0) * std::exp2(x); }},
      {"log2", [](const Dual& x) { return log2(x); }, [](double x) { return std::log2(x); },
       [](double x) { return 1 / (std::log(2.0) * x); }},
      {"x^2.5", [](const Dual& x) { return pow(x, 2.5); },
       [](double x) { return std::pow(x, 2.5); }, [](double x) { return 2.5 * std::pow(x, 1.5); }},
      {"x^-0.25", [](const Dual& x) { return pow(x, -0.25); },
       [](double x) { return std::pow(x, -0.25); },
       [](double x) { return -0.25 * std::pow(x, -1.25); }}};
}

RC_GTEST_PROP(DualProperty, FunctionsHaveTheirDerivatives, ()) {
  const double x = *LogUniform(1e-3, 30);
  const double slope = *LogUniform(1e-3, 1e3) * (*rc::gen::arbitrary<bool>() ? 1 : -1);
  for (const Function& function : Functions()) {
    const Dual y = function.f(Dual(x, slope));
    RC_LOG() << function.name << " at " << x << "\n";
    RC_ASSERT(y.value == function.value(x));
    RC_ASSERT(Near(y.slope, function.derivative(x) * slope, 1e-14));
  }
}

RC_GTEST_PROP(DualProperty, OperatorsHaveTheirDerivatives, ()) {
  const auto draw = [] { return *LogUniform(1e-3, 1e3) * (*rc::gen::arbitrary<bool>() ? 1 : -1); };
  const double a = draw();
  const double b = draw();
  const double da = draw();
  const double db = draw();
  const Dual x(a, da);
  const Dual y(b, db);
  const auto is = [](const Dual& dual, double value, double slope, double scale) {
    return Near(dual.value, value, 1e-15) && std::abs(dual.slope - slope) <= 1e-14 * scale;
  };
  RC_ASSERT(is(x + y, a + b, da + db, std::abs(da) + std::abs(db)));
  RC_ASSERT(is(x - y, a - b, da - db, std::abs(da) + std::abs(db)));
  RC_ASSERT(is(x * y, a * b, da * b + a * db, std::abs(da * b) + std::abs(a * db)));
  RC_ASSERT(
      is(x / y, a / b, da / b - a * db / (b * b), std::abs(da / b) + std::abs(a * db / (b * b))));
  Dual sum = x;
  sum += y;
  RC_ASSERT(sum.value == (x + y).value && sum.slope == (x + y).slope);
  sum -= y;
  RC_ASSERT(is(sum, a + b - b, da, std::abs(da) + std::abs(db)));
  RC_ASSERT((x < y) == (a < b) && (x > y) == (a > b));
  RC_ASSERT((x <= y) == (a <= b) && (x >= y) == (a >= b));
}

TEST(Dual, ConstantsHaveNoDerivative) {
  EXPECT_EQ(Dual().value, 0);
  EXPECT_EQ(Dual(3.0).slope, 0);
  EXPECT_EQ((Dual(3.0) * Dual(4.0) + 1.0).slope, 0);
  EXPECT_EQ(ValueOf(Dual(3.0, 1.0)), 3);
  EXPECT_EQ(ValueOf(2.5), 2.5);
  EXPECT_EQ(ValueOf(Duration<Dual>::FromSi(Dual(3.0, 1.0))).si(), 3);
}

// Where a maximum is taken the derivative is that of the side taken.
TEST(Dual, TheValueDecides) {
  const auto time = [](double value, double slope) {
    return Duration<Dual>::FromSi(Dual(value, slope));
  };
  EXPECT_EQ(Max(time(2, 10), time(1, 20)).si().slope, 10);
  EXPECT_EQ(Max(time(1, 10), time(2, 20)).si().slope, 20);
  EXPECT_EQ(Min(time(2, 10), time(1, 20)).si().slope, 20);
  EXPECT_EQ(Max(time(1, 10), Seconds(2.0)).si().slope, 0);
}

// ---- Several at once.

template <int N>
void ExpectLanesAreSingles() {
  // f(x) = (3 x_0 / (1 + x_1 + ... ) - log(x_0)) sqrt(x_1)^1.7, by every variable.
  const auto f = [](const auto& x) {
    auto sum = x[0] * 0.0 + 1.0;
    for (std::size_t i = 1; i < x.size(); ++i) sum += x[i];
    return (3.0 * x[0] / sum - log(x[0])) * pow(sqrt(x[1]), 1.7);
  };
  std::vector<DualOf<N>> lanes;
  for (int i = 0; i < N; ++i) {
    lanes.emplace_back(0.3 + 0.1 * i);
    lanes.back().slope.Set(i, 1);
  }
  const DualOf<N> together = f(lanes);
  for (int i = 0; i < N; ++i) {
    std::vector<Dual> one;
    for (int j = 0; j < N; ++j) one.emplace_back(0.3 + 0.1 * j, i == j ? 1.0 : 0.0);
    const Dual alone = f(one);
    EXPECT_EQ(together.value, alone.value);
    EXPECT_PRED2([](double a, double b) { return Near(a, b, 1e-14); }, together.slope[i],
                 alone.slope)
        << i << " of " << N;
  }
}

TEST(Lanes, AreSinglesSideBySide) {
  ExpectLanesAreSingles<2>();
  ExpectLanesAreSingles<4>();
  ExpectLanesAreSingles<10>();
  ExpectLanesAreSingles<12>();
}

TEST(Lanes, BeginWithNothingAndAreSetOneByOne) {
  Lanes<6> lanes;
  for (int i = 0; i < 6; ++i) EXPECT_EQ(lanes[i], 0);
  for (int i = 0; i < 6; ++i) lanes.Set(i, i + 1.0);
  Lanes<6> other;
  other.Set(4, 100);
  const Lanes<6> sum = lanes * 2.0 + other - -lanes;
  lanes += other;
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(sum[i], 3 * (i + 1.0) + (i == 4 ? 100 : 0));
    EXPECT_EQ(lanes[i], i + 1.0 + (i == 4 ? 100 : 0));
  }
}

// ---- The p-norm, whose ends are the two that it joins.

RC_GTEST_PROP(DualProperty, PNormsHaveTheirDerivatives, ()) {
  const double a = *LogUniform(1e-6, 1e3);
  const double b = *rc::gen::oneOf(LogUniform(1e-6, 1e3), rc::gen::just(0.0), rc::gen::just(a));
  const double p = *rc::gen::element(1.0, 2.0, 3.0, 4.0);
  const auto time = [](double value, double slope) {
    return Duration<Dual>::FromSi(Dual(value, slope));
  };
  const Duration<Dual> by_a = PNorm(time(a, 1), time(b, 0), p);
  const Duration<Dual> by_b = PNorm(time(a, 0), time(b, 1), p);
  const double norm = std::pow(std::pow(a, p) + std::pow(b, p), 1 / p);
  RC_ASSERT(Near(ValueOf(by_a).si(), norm));
  RC_ASSERT(Near(ValueOf(by_a).si(), PNorm(Seconds(a), Seconds(b), p).si(), 1e-15));
  RC_ASSERT(Near(by_a.si().slope, std::pow(a / norm, p - 1), 1e-11));
  const double expected = b > 0 || p == 1.0 ? std::pow(b / norm, p - 1) : 0;
  RC_ASSERT(std::abs(by_b.si().slope - expected) <= 1e-11);
}

}  // namespace
}  // namespace stepcast
