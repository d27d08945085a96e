// The compute curve and the p-norm that bends it.
#include "model/compute/fitted_curve.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/model/support.h"

namespace stepcast {
namespace {

double Norm(double a, double b, double q) { return PNorm(Seconds(a), Seconds(b), q).si(); }

TEST(PNorm, ByHand) {
  EXPECT_DOUBLE_EQ(Norm(3, 4, 2), 5);
  EXPECT_DOUBLE_EQ(Norm(4, 3, 2), 5);
  EXPECT_DOUBLE_EQ(Norm(3, 4, 1), 7);
  EXPECT_DOUBLE_EQ(Norm(2, 2, 4), 2 * std::pow(2, 0.25));
}

// The naive form would overflow to infinity or underflow to zero.
TEST(PNorm, NeitherOverflowsNorUnderflows) {
  EXPECT_DOUBLE_EQ(Norm(3e200, 4e200, 2), 5e200);
  EXPECT_DOUBLE_EQ(Norm(3e-200, 4e-200, 2), 5e-200);
  EXPECT_EQ(Norm(1e-300, 1e300, 4), 1e300);
}

RC_GTEST_PROP(PNormProperty, IsASymmetricNorm, ()) {
  const double a = *LogUniform(1e-9, 1e3);
  const double b = *LogUniform(1e-9, 1e3);
  const double q = *LogUniform(1, 20);
  const double norm = Norm(a, b, q);
  RC_ASSERT(norm == Norm(b, a, q));
  RC_ASSERT(norm >= std::max(a, b));
  RC_ASSERT(norm <= (a + b) * (1 + 1e-15));
  RC_ASSERT(Near(Norm(7 * a, 7 * b, q), 7 * norm));
  RC_ASSERT(Norm(a * 1.5, b, q) >= norm);
  RC_ASSERT(Norm(a, b, 2 * q) <= norm * (1 + 1e-15));
  // Tends to the larger of the two.
  RC_ASSERT(Near(Norm(a, b, 1e6), std::max(a, b), 1e-6));
}

// 1 ms fixed, a floor of 8 ms, 1 ms a sample.
FittedCurve<double> Curve() {
  return {Milliseconds(1.0), Milliseconds(8.0), Milliseconds(1.0) / Samples(1.0)};
}

double Milli(const FittedCurve<double>& curve, double batch) {
  return curve.Time(Samples(batch)).in(kMilliseconds);
}

TEST(FittedCurve, ByHand) {
  EXPECT_NEAR(Milli(Curve(), 8), 1 + 8 * std::pow(2, 0.25), 1e-12);
  // (8^4 + 16^4)^(1/4) = 8 x 17^(1/4)
  EXPECT_NEAR(Milli(Curve(), 16), 1 + 8 * std::pow(17, 0.25), 1e-12);
}

TEST(FittedCurve, TendsToTheFloorForSmallBatches) {
  EXPECT_DOUBLE_EQ(Milli(Curve(), 1e-9), 9);
  EXPECT_NEAR(Milli(Curve(), 1), 9, 1e-3);
}

TEST(FittedCurve, TendsToTheLineForLargeBatches) {
  EXPECT_NEAR(Milli(Curve(), 1e6), 1 + 1e6, 1e-6);
  EXPECT_NEAR(Milli(Curve(), 80), 81, 0.01);
  const double slope = Milli(Curve(), 1001) - Milli(Curve(), 1000);
  EXPECT_NEAR(slope, 1, 1e-6);
}

// 3 s and 7 s of 1 and 3 samples are a line of 1 s and 2 s a sample. One through 1 s and 4 s of 1
// and 2 samples would begin at -2 s: from nothing, 1.2 s a sample has the least squares of relative
// errors, 20 % more and 40 % less.
TEST(FittedCurve, ThroughTwoPointsByHand) {
  const Duration<> floor = Milliseconds(8.0);
  const FittedCurve<double> line = CurveThrough({1, 3}, {3, 7}, Milliseconds(5.0), floor);
  EXPECT_NEAR(line.fixed.si(), 1.005, 1e-12);
  EXPECT_EQ(line.floor, floor);
  EXPECT_NEAR(line.per_sample.si(), 2, 1e-12);
  const FittedCurve<double> steep = CurveThrough({1, 2}, {1, 4}, Milliseconds(5.0), floor);
  EXPECT_NEAR(steep.fixed.si(), 0.005, 1e-12);
  EXPECT_NEAR(steep.per_sample.si(), 1.2, 1e-12);
  // 4 s and 1 s of 1 and 2 samples fall, which no curve does: from nothing, 36/65 s a sample.
  const FittedCurve<double> falling = CurveThrough({1, 2}, {4, 1}, Milliseconds(5.0), floor);
  EXPECT_NEAR(falling.fixed.si(), 0.005, 1e-12);
  EXPECT_NEAR(falling.per_sample.si(), 36.0 / 65, 1e-12);
}

RC_GTEST_PROP(FittedCurveProperty, RisesWithTheBatchAndIsConvex, ()) {
  const FittedCurve<double> curve{Seconds(*LogUniform(1e-5, 1)), Seconds(*LogUniform(1e-5, 1)),
                                  Seconds(*LogUniform(1e-6, 1)) / Samples(1.0)};
  const double b = *Whole(1, 2000);
  const double before = curve.Time(Samples(b)).si();
  const double here = curve.Time(Samples(b + 1)).si();
  const double after = curve.Time(Samples(b + 2)).si();
  RC_ASSERT(here >= before);
  RC_ASSERT(after + before >= 2 * here * (1 - 1e-13));
  RC_ASSERT(here > (curve.fixed + curve.floor).si() * (1 - 1e-15));
  RC_ASSERT(here >= curve.fixed.si() + curve.per_sample.si() * (b + 1) * (1 - 1e-15));
  // A sample is never dearer in a larger batch.
  RC_ASSERT(here / (b + 1) <= before / b);
}

}  // namespace
}  // namespace stepcast
