// Every entry of the catalogue gives calibration (a Jet) what it gives prediction (a double), with
// the function's own derivatives: value equals value, gradient equals central difference.
#include <ceres/jet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "model/catalog/catalog_impl.h"
#include "tests/model/entries.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

constexpr int kWidth = 4;  // derivatives of one Jet
using Jet = ceres::Jet<double, kWidth>;
using Function = std::function<double(const std::vector<double>&)>;

enum class Verdict { kAgrees, kDiffers, kKink };

// Compares d f / d ln x_i with central differences at two distances. They must agree with each
// other first: where they do not, a maximum changes sides in between, and there is no derivative.
Verdict CheckDerivative(const Function& f, const std::vector<double>& x, std::size_t i,
                        double log_derivative) {
  constexpr double kDistance = 1e-4;
  constexpr double kConverged = 1e-6;  // of the value; a smooth function differs by about 1e-8
  const auto difference = [&](double h) {
    std::vector<double> above = x;
    std::vector<double> below = x;
    above[i] *= std::exp(h);
    below[i] *= std::exp(-h);
    return (f(above) - f(below)) / (2 * h);
  };
  const double value = std::abs(f(x));
  const double coarse = difference(kDistance);
  const double fine = difference(kDistance / 2);
  if (std::abs(coarse - fine) > kConverged * value) return Verdict::kKink;
  const double limit = (4 * fine - coarse) / 3;  // Richardson
  const double tolerance = 1e-6 * std::abs(limit) + 1e-9 * value;
  return std::abs(log_derivative - limit) <= tolerance ? Verdict::kAgrees : Verdict::kDiffers;
}

// A number in [0, 1) that is the same with every standard library.
double Uniform(std::mt19937_64* random) { return static_cast<double>((*random)() >> 11) * 0x1p-53; }

std::vector<double> RandomPoint(const std::vector<ModelInput>& inputs, std::mt19937_64* random) {
  std::vector<double> x;
  for (const ModelInput& input : inputs) {
    x.push_back(input.low * std::pow(input.high / input.low, Uniform(random)));
  }
  return x;
}

class GradientTest : public ::testing::TestWithParam<std::size_t> {};

TEST_P(GradientTest, ValueAndDerivativesAreThoseOfTheDouble) {
  constexpr int kPoints = 200;
  const Model<double> plain = Entries().at(GetParam());
  const Model<Jet> with_derivatives = Catalog<Jet>().at(GetParam());
  ASSERT_STREQ(plain.id, with_derivatives.id);
  const std::size_t count = plain.inputs.size();
  ASSERT_EQ(count, with_derivatives.inputs.size());
  std::mt19937_64 random(20240607);
  int checked = 0;
  int kinks = 0;
  for (int point = 0; point < kPoints; ++point) {
    const std::vector<double> x = RandomPoint(plain.inputs, &random);
    const double value = plain.evaluate(x);
    ASSERT_TRUE(std::isfinite(value));
    for (std::size_t first = 0; first < count; first += kWidth) {
      const std::size_t last = std::min(count, first + kWidth);
      std::vector<Jet> jets(x.begin(), x.end());
      for (std::size_t i = first; i < last; ++i) jets[i] = Jet(x[i], static_cast<int>(i - first));
      const Jet result = with_derivatives.evaluate(jets);
      // A Jet divides by multiplying with the reciprocal, which rounds twice.
      ASSERT_TRUE(Near(result.a, value, 1e-14)) << result.a << " is not " << value;
      for (std::size_t i = first; i < last; ++i) {
        const double log_derivative = x[i] * result.v[static_cast<int>(i - first)];
        const Verdict verdict = CheckDerivative(plain.evaluate, x, i, log_derivative);
        EXPECT_NE(verdict, Verdict::kDiffers)
            << "d/d ln " << plain.inputs[i].symbol << " at point " << point;
        ++(verdict == Verdict::kKink ? kinks : checked);
      }
    }
  }
  EXPECT_EQ(checked + kinks, kPoints * static_cast<int>(count));
  EXPECT_GE(checked, 0.95 * (checked + kinks)) << kinks << " of " << checked + kinks << " skipped";
  RecordProperty("checked", checked);
  RecordProperty("kinks", kinks);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, GradientTest,
                         ::testing::Range<std::size_t>(0, Entries().size()),
                         [](const ::testing::TestParamInfo<std::size_t>& entry) {
                           return TestName(Entries().at(entry.param).id);
                         });

TEST(GradientCatalogue, HasTheSameEntriesForEveryScalar) {
  const std::vector<Model<double>> plain = Catalog<double>();
  const std::vector<Model<Jet>> jets = Catalog<Jet>();
  ASSERT_EQ(plain.size(), jets.size());
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_STREQ(plain[i].id, jets[i].id);
}

// ---- The check itself, on functions whose derivatives are known.

double Square(const std::vector<double>& x) { return x[0] * x[0]; }

TEST(GradientCheck, AcceptsTheRightDerivativeAndNoOther) {
  const std::vector<double> x = {3.0};
  EXPECT_EQ(CheckDerivative(Square, x, 0, 18.0), Verdict::kAgrees);
  EXPECT_EQ(CheckDerivative(Square, x, 0, 18.0 * (1 + 1e-5)), Verdict::kDiffers);
  EXPECT_EQ(CheckDerivative(Square, x, 0, 0.0), Verdict::kDiffers);
  EXPECT_EQ(CheckDerivative(Square, x, 0, -18.0), Verdict::kDiffers);
  EXPECT_EQ(CheckDerivative(Square, x, 0, std::numeric_limits<double>::quiet_NaN()),
            Verdict::kDiffers);
}

// A steep function is smooth all the same, and a forgotten small term is found.
TEST(GradientCheck, SteepIsNoKinkAndSmallIsNotNothing) {
  const Function steep = [](const std::vector<double>& x) { return std::pow(x[0], 8.0); };
  EXPECT_EQ(CheckDerivative(steep, {2.0}, 0, 8 * 256.0), Verdict::kAgrees);
  const Function small = [](const std::vector<double>& x) { return 1 + 1e-6 * x[0]; };
  EXPECT_EQ(CheckDerivative(small, {1.0}, 0, 1e-6), Verdict::kAgrees);
  EXPECT_EQ(CheckDerivative(small, {1.0}, 0, 0.0), Verdict::kDiffers);
}

TEST(GradientCheck, SkipsKinksAndOnlyKinks) {
  const Function bent = [](const std::vector<double>& x) { return std::max(1.0, 5.0 * x[0]); };
  EXPECT_EQ(CheckDerivative(bent, {0.20001}, 0, 1.00005), Verdict::kKink);
  EXPECT_EQ(CheckDerivative(bent, {0.21}, 0, 1.05), Verdict::kAgrees);
  EXPECT_EQ(CheckDerivative(bent, {0.21}, 0, 0.0), Verdict::kDiffers);
  EXPECT_EQ(CheckDerivative(bent, {0.19}, 0, 0.0), Verdict::kAgrees);
}

}  // namespace
}  // namespace stepcast
