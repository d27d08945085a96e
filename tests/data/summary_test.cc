// Medians and their errors against samples of known laws, and which samples of a point speak.
#include "data/record/summary.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "data/record/point_samples.h"

namespace stepcast {
namespace {

TEST(Summary, OfNothing) {
  const Summary summary = Summarise({});
  EXPECT_EQ(summary.count, 0U);
  EXPECT_EQ(summary.median, 0);
  EXPECT_TRUE(std::isinf(summary.relative_error));
  EXPECT_EQ(summary.outliers, 0U);
}

TEST(Summary, OneAndTwoHaveNoError) {
  EXPECT_EQ(Summarise({3}).median, 3);
  EXPECT_TRUE(std::isinf(Summarise({3}).relative_error));
  EXPECT_EQ(Summarise({1, 4}).median, 2.5);
  EXPECT_TRUE(std::isinf(Summarise({1, 4}).relative_error));
  EXPECT_EQ(Summarise({1, 4}).outliers, 0U);
}

// Three values do not reach 0.98 sqrt(3) places: all of them are the interval.
TEST(Summary, ThreeByHand) {
  const Summary summary = Summarise({12, 8, 10});
  EXPECT_EQ(summary.count, 3U);
  EXPECT_EQ(summary.median, 10);
  EXPECT_DOUBLE_EQ(summary.relative_error, (12 - 8) / (2 * 1.96 * 10));
}

// 1 to 25: 4.9 places to both sides of 13, and one place is one.
TEST(Summary, TwentyFiveByHand) {
  std::vector<double> values;
  for (int i = 25; i >= 1; --i) values.push_back(i);
  const Summary summary = Summarise(values);
  EXPECT_EQ(summary.median, 13);
  EXPECT_NEAR(summary.relative_error, 2 * 4.9 / (2 * 1.96 * 13), 1e-12);
  EXPECT_EQ(summary.outliers, 0U);
}

TEST(Summary, EqualValuesAreCertain) {
  const Summary summary = Summarise(std::vector<double>(7, 0.25));
  EXPECT_EQ(summary.median, 0.25);
  EXPECT_EQ(summary.relative_error, 0);
  EXPECT_EQ(summary.outliers, 0U);
}

// The median deviation of the first eleven is 3: five standard deviations are 5 x 1.4826 x 3 = 22.
TEST(Summary, OutliersAreCountedAndStay) {
  std::vector<double> values = {95, 96, 97, 98, 99, 100, 101, 102, 103, 104};
  EXPECT_EQ(Summarise(values).outliers, 0U);
  values.push_back(117);
  EXPECT_EQ(Summarise(values).outliers, 0U) << "within five standard deviations";
  values.push_back(500);
  values.push_back(1);
  const Summary summary = Summarise(values);
  EXPECT_EQ(summary.outliers, 2U);
  EXPECT_EQ(summary.count, 13U);
  EXPECT_EQ(summary.median, 100);
}

// The interval of 1.96 errors each way holds the true median about 95 times in 100, whatever the
// law.
TEST(Summary, TheErrorCoversTheTrueMedian) {
  std::mt19937_64 engine(7);
  constexpr int kTrials = 4000;
  for (const int count : {10, 30, 101}) {
    int normal = 0;
    int skewed = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::normal_distribution<double> gauss(50, 2);
      std::exponential_distribution<double> exponential(1);
      std::vector<double> a;
      std::vector<double> b;
      for (int i = 0; i < count; ++i) {
        a.push_back(gauss(engine));
        b.push_back(10 + exponential(engine));
      }
      const Summary of_a = Summarise(a);
      const Summary of_b = Summarise(b);
      const double median_b = 10 + std::log(2.0);
      normal += std::abs(of_a.median - 50) <= 1.96 * of_a.relative_error * of_a.median ? 1 : 0;
      skewed +=
          std::abs(of_b.median - median_b) <= 1.96 * of_b.relative_error * of_b.median ? 1 : 0;
    }
    EXPECT_NEAR(1.0 * normal / kTrials, 0.95, 0.04) << count;
    EXPECT_NEAR(1.0 * skewed / kTrials, 0.95, 0.04) << count;
  }
}

// Standard error of a normal law's median: 1.2533 sd / sqrt(n).
TEST(Summary, TheErrorIsThatOfANormalLaw) {
  std::mt19937_64 engine(11);
  std::normal_distribution<double> gauss(100, 1);
  double sum = 0;
  constexpr int kTrials = 300;
  constexpr int kCount = 400;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> values(kCount);
    for (double& value : values) value = gauss(engine);
    sum += Summarise(values).relative_error;
  }
  EXPECT_NEAR(sum / kTrials, 1.2533 / std::sqrt(1.0 * kCount) / 100, 0.05 * 1.2533 / 20 / 100);
}

RC_GTEST_PROP(SummaryProperty, OrderDoesNotMatterAndUnitsNeither, ()) {
  const std::vector<int> drawn =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 1000)));
  std::vector<double> values(drawn.begin(), drawn.end());
  const Summary summary = Summarise(values);
  RC_ASSERT(summary.count == values.size());
  RC_ASSERT(summary.median >= *std::min_element(values.begin(), values.end()));
  RC_ASSERT(summary.median <= *std::max_element(values.begin(), values.end()));
  RC_ASSERT(summary.relative_error >= 0);
  RC_ASSERT(2 * summary.outliers <= summary.count);
  std::reverse(values.begin(), values.end());
  for (double& value : values) value *= 0.25;  // exact
  const Summary other = Summarise(values);
  RC_ASSERT(other.median == 0.25 * summary.median);
  RC_ASSERT(other.relative_error == summary.relative_error);
  RC_ASSERT(other.outliers == summary.outliers);
  const auto below = std::count_if(values.begin(), values.end(),
                                   [&](double value) { return value < other.median; });
  const auto above = std::count_if(values.begin(), values.end(),
                                   [&](double value) { return value > other.median; });
  RC_ASSERT(2 * below <= static_cast<long>(values.size()));
  RC_ASSERT(2 * above <= static_cast<long>(values.size()));
}

// ---- Samples of one point.

MeasuredSamples Samples(std::vector<double> seconds, const std::string& algorithm = "") {
  MeasuredSamples samples;
  samples.seconds = std::move(seconds);
  samples.algorithm = algorithm;
  return samples;
}

MeasuredSamples Busy(std::vector<double> seconds, const std::string& algorithm = "") {
  MeasuredSamples samples = Samples(std::move(seconds), algorithm);
  samples.busy = true;
  return samples;
}

MeasuredSamples Throttled(std::vector<double> seconds) {
  MeasuredSamples samples = Samples(std::move(seconds));
  samples.throttled = true;
  return samples;
}

MeasuredSamples Failed(PointStatus status, const std::string& reason) {
  MeasuredSamples samples;
  samples.status = status;
  samples.reason = reason;
  return samples;
}

TEST(PointSamples, NothingYet) {
  const PointSamples point;
  EXPECT_TRUE(point.empty());
  EXPECT_FALSE(point.measured());
  EXPECT_FALSE(point.busy());
  EXPECT_FALSE(point.throttled());
}

TEST(PointSamples, CleanOnesAddUp) {
  PointSamples point;
  point.Add(Samples({1, 9}, "winograd"));
  point.Add(Samples({2}, "winograd"));
  EXPECT_TRUE(point.measured());
  EXPECT_FALSE(point.empty());
  EXPECT_EQ(point.summary().count, 3U);
  EXPECT_EQ(point.summary().median, 2);
  EXPECT_EQ(point.algorithm(), "winograd");
  EXPECT_FALSE(point.busy());
  EXPECT_FALSE(point.throttled());
}

TEST(PointSamples, FlaggedOnesSpeakWhereThereAreNoOthers) {
  PointSamples point;
  point.Add(Busy({5, 6, 7}));
  EXPECT_TRUE(point.measured());
  EXPECT_TRUE(point.busy());
  EXPECT_FALSE(point.throttled());
  EXPECT_EQ(point.summary().median, 6);
  point.Add(Throttled({8, 9}));
  EXPECT_TRUE(point.throttled());
  EXPECT_EQ(point.summary().count, 5U);
  EXPECT_EQ(point.summary().median, 7);
}

TEST(PointSamples, FlaggedOnesYieldInEitherOrder) {
  PointSamples first;
  first.Add(Busy({50, 60, 70}));
  first.Add(Throttled({80}));
  first.Add(Samples({5}));
  PointSamples last;
  last.Add(Samples({5}));
  last.Add(Throttled({80}));
  last.Add(Busy({50, 60, 70}));
  for (const PointSamples& point : {first, last}) {
    EXPECT_EQ(point.summary().count, 1U);
    EXPECT_EQ(point.summary().median, 5);
    EXPECT_FALSE(point.busy());
    EXPECT_FALSE(point.throttled());
  }
}

// The algorithm is that of the samples that speak.
TEST(PointSamples, TheAlgorithmOfFlaggedOnesYieldsToo) {
  PointSamples point;
  point.Add(Busy({50}, "gemm"));
  EXPECT_EQ(point.algorithm(), "gemm");
  point.Add(Samples({5}, "winograd"));
  EXPECT_EQ(point.algorithm(), "winograd");
  point.Add(Busy({60}, "gemm"));
  EXPECT_EQ(point.summary().median, 5);
  EXPECT_EQ(point.algorithm(), "winograd");
}

TEST(PointSamples, AFailureHasAReasonAndNoTime) {
  for (const PointStatus status : {PointStatus::kOutOfMemory, PointStatus::kUnsupported}) {
    PointSamples point;
    point.Add(Failed(status, "needs 93 GiB"));
    EXPECT_EQ(point.status(), status);
    EXPECT_EQ(point.reason(), "needs 93 GiB");
    EXPECT_FALSE(point.measured());
    EXPECT_FALSE(point.empty()) << "it was tried";
    EXPECT_EQ(point.summary().count, 0U);
  }
}

// A later attempt, when others have left the memory, may succeed.
TEST(PointSamples, ASuccessAfterAFailureCounts) {
  PointSamples point;
  point.Add(Failed(PointStatus::kOutOfMemory, "needs 93 GiB"));
  point.Add(Samples({1, 2, 3}));
  EXPECT_TRUE(point.measured());
  EXPECT_EQ(point.status(), PointStatus::kMeasured);
  EXPECT_EQ(point.reason(), "");
  EXPECT_EQ(point.summary().median, 2);
}

// What was measured did fit: later others had the memory.
TEST(PointSamples, AFailureAfterASuccessTakesNothingAway) {
  PointSamples point;
  point.Add(Samples({1, 2, 3}));
  point.Add(Failed(PointStatus::kOutOfMemory, "needs 93 GiB"));
  EXPECT_TRUE(point.measured());
  EXPECT_EQ(point.status(), PointStatus::kMeasured);
  EXPECT_EQ(point.summary().median, 2);
}

}  // namespace
}  // namespace stepcast
