#include "microbench/harness/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace stepcast {
namespace {

// Plays back times as a stopwatch would give them.
class RecordedClock {
 public:
  explicit RecordedClock(std::vector<double> seconds) : seconds_(std::move(seconds)) {}
  double operator()() { return seconds_[static_cast<std::size_t>(calls_++) % seconds_.size()]; }
  int calls() const { return calls_; }

 private:
  std::vector<double> seconds_;
  int calls_ = 0;
};

TEST(SamplingTest, StopsAtOnceOnASteadySignal) {
  RecordedClock clock({0.002});
  const StoppingRule rule;
  const SampledTimes samples = SampleUntilStable([&] { return clock(); }, rule);
  EXPECT_TRUE(samples.stable);
  EXPECT_EQ(static_cast<int>(samples.seconds.size()), rule.least);
  EXPECT_EQ(clock.calls(), rule.warm_up + rule.least);
  EXPECT_DOUBLE_EQ(samples.summary.median, 0.002);
  EXPECT_DOUBLE_EQ(samples.summary.relative_error, 0);
}

TEST(SamplingTest, WarmUpDoesNotCount) {
  RecordedClock clock(
      {1.0, 1.0, 1.0, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001});
  const SampledTimes samples = SampleUntilStable([&] { return clock(); }, StoppingRule());
  EXPECT_DOUBLE_EQ(samples.summary.median, 0.001);
  for (const double s : samples.seconds) EXPECT_DOUBLE_EQ(s, 0.001);
}

TEST(SamplingTest, ANoisySignalTakesMoreSamplesAndSaysHowWellItIsKnown) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0.0, 0.03);
  std::vector<double> recorded;
  for (int i = 0; i < 5000; ++i) recorded.push_back(0.001 * std::exp(noise(random)));
  StoppingRule rule;
  rule.most = 5000;
  rule.enough_seconds = 100;
  RecordedClock clock(recorded);
  const SampledTimes samples = SampleUntilStable([&] { return clock(); }, rule);
  ASSERT_TRUE(samples.stable);
  // A median's standard error is 1.2533 * 3 % / sqrt(n): 0.5 % needs about 57 samples.
  EXPECT_GT(samples.seconds.size(), 25U);
  EXPECT_LT(samples.seconds.size(), 150U);
  EXPECT_NEAR(samples.summary.median, 0.001, 4 * samples.summary.relative_error * 0.001);
}

TEST(SamplingTest, ASignalThatNeverSettlesStopsAtTheLimitAndSaysSo) {
  RecordedClock clock({0.001, 0.003});
  StoppingRule rule;
  rule.most = 40;
  rule.enough_seconds = 100;
  const SampledTimes samples = SampleUntilStable([&] { return clock(); }, rule);
  EXPECT_FALSE(samples.stable);
  EXPECT_EQ(samples.seconds.size(), 40U);
  EXPECT_GT(samples.summary.relative_error, rule.relative_error);
}

TEST(SamplingTest, EnoughMeasuredTimeStopsToo) {
  RecordedClock clock({0.1, 0.3});
  StoppingRule rule;
  rule.enough_seconds = 4;
  const SampledTimes samples = SampleUntilStable([&] { return clock(); }, rule);
  // 0.2 s on average, give or take the rounding of the sum.
  EXPECT_NEAR(static_cast<double>(samples.seconds.size()), 20, 1);
}

TEST(SamplingTest, EverySampleIsSummarised) {
  RecordedClock clock({0.001, 0.003});
  StoppingRule rule;
  rule.most = 3;  // fewer than the least: the rule is never asked
  const SampledTimes samples = SampleUntilStable([&] { return clock(); }, rule);
  EXPECT_EQ(samples.summary.count, 3U);
  EXPECT_EQ(samples.seconds.size(), 3U);
  EXPECT_FALSE(samples.stable);
}

// ---- Summaries.

TEST(SummaryTest, OneOutlierDoesNotMoveTheMedian) {
  EXPECT_DOUBLE_EQ(Summarise({1, 1, 1, 1, 50}).median, 1);
  EXPECT_DOUBLE_EQ(Summarise({4, 2, 1, 3}).median, 2.5);
  EXPECT_DOUBLE_EQ(Summarise({7}).median, 7);
}

TEST(SummaryTest, FewerThanThreeValuesHaveNoError) {
  EXPECT_EQ(Summarise({}).count, 0U);
  for (const std::vector<double>& few : {std::vector<double>{}, {1}, {1, 1}}) {
    EXPECT_TRUE(std::isinf(Summarise(few).relative_error)) << few.size();
  }
  EXPECT_DOUBLE_EQ(Summarise({1, 1, 1}).relative_error, 0);
}

TEST(SummaryTest, TheOrderOfValuesAndTheirUnitDoNotMatter) {
  std::mt19937 random(3);
  std::vector<double> values = {3, 1, 4, 1.5, 9, 2.6, 5, 3.5, 8};
  const Summary first = Summarise(values);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(values.begin(), values.end(), random);
    EXPECT_DOUBLE_EQ(Summarise(values).median, first.median);
    EXPECT_DOUBLE_EQ(Summarise(values).relative_error, first.relative_error);
  }
  for (double& value : values) value *= 1e-6;
  EXPECT_DOUBLE_EQ(Summarise(values).median, 1e-6 * first.median);
  EXPECT_NEAR(Summarise(values).relative_error, first.relative_error, 1e-12);
  EXPECT_EQ(Summarise(values).outliers, first.outliers);
}

// The stated error is what medians of repeated draws scatter by.
TEST(SummaryTest, TheErrorIsThatOfMediansOfRepeatedDraws) {
  constexpr int kDraws = 4000;
  constexpr double kSd = 0.02;
  std::mt19937 random(11);
  std::normal_distribution<double> normal(1.0, kSd);
  for (const int n : {7, 10, 30, 100}) {
    double stated = 0;
    double squares = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      std::vector<double> values;
      for (int i = 0; i < n; ++i) values.push_back(normal(random));
      const Summary summary = Summarise(values);
      stated += summary.relative_error / kDraws;
      squares += std::pow(summary.median - 1, 2) / kDraws;
    }
    EXPECT_NEAR(stated / std::sqrt(squares), 1, 0.25) << n;
    // The limit for many values of a normal law.
    EXPECT_NEAR(stated, 1.2533 * kSd / std::sqrt(n), 0.25 * stated) << n;
  }
}

TEST(SummaryTest, OneMoreValueChangesTheErrorLittle) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal(1.0, 0.05);
  std::vector<double> values;
  for (int i = 0; i < 30; ++i) values.push_back(normal(random));
  for (int i = 0; i < 300; ++i) {
    const double before = Summarise(values).relative_error;
    values.push_back(normal(random));
    EXPECT_NEAR(Summarise(values).relative_error, before, 0.25 * before) << values.size();
  }
}

TEST(SummaryTest, InterruptsAreCountedAndStay) {
  std::mt19937 random(9);
  std::normal_distribution<double> normal(1.0, 0.01);
  std::vector<double> values;
  for (int i = 0; i < 200; ++i) values.push_back(normal(random));
  EXPECT_EQ(Summarise(values).outliers, 0U);
  for (int i = 0; i < 5; ++i) values.push_back(2.0 + i);
  const Summary summary = Summarise(values);
  EXPECT_EQ(summary.outliers, 5U);
  EXPECT_EQ(summary.count, 205U);
  EXPECT_NEAR(summary.median, 1, 4 * summary.relative_error);
}

}  // namespace
}  // namespace stepcast
