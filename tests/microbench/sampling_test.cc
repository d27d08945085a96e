#include "microbench/harness/sampling.h"

#include <gtest/gtest.h>

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
  const Samples samples = SampleUntilStable([&] { return clock(); }, rule);
  EXPECT_TRUE(samples.stable);
  EXPECT_EQ(static_cast<int>(samples.seconds.size()), rule.least);
  EXPECT_EQ(clock.calls(), rule.warm_up + rule.least);
  EXPECT_DOUBLE_EQ(samples.median, 0.002);
  EXPECT_DOUBLE_EQ(samples.relative_error, 0);
}

TEST(SamplingTest, WarmUpDoesNotCount) {
  RecordedClock clock(
      {1.0, 1.0, 1.0, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001});
  const Samples samples = SampleUntilStable([&] { return clock(); }, StoppingRule());
  EXPECT_DOUBLE_EQ(samples.median, 0.001);
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
  const Samples samples = SampleUntilStable([&] { return clock(); }, rule);
  ASSERT_TRUE(samples.stable);
  // A median's standard error is 1.2533 * 3 % / sqrt(n): 0.5 % needs about 57 samples.
  EXPECT_GT(samples.seconds.size(), 25U);
  EXPECT_LT(samples.seconds.size(), 150U);
  EXPECT_NEAR(samples.median, 0.001, 4 * samples.relative_error * 0.001);
}

TEST(SamplingTest, ASignalThatNeverSettlesStopsAtTheLimitAndSaysSo) {
  RecordedClock clock({0.001, 0.003});
  StoppingRule rule;
  rule.most = 40;
  rule.enough_seconds = 100;
  const Samples samples = SampleUntilStable([&] { return clock(); }, rule);
  EXPECT_FALSE(samples.stable);
  EXPECT_EQ(samples.seconds.size(), 40U);
  EXPECT_GT(samples.relative_error, rule.relative_error);
}

TEST(SamplingTest, EnoughMeasuredTimeStopsToo) {
  RecordedClock clock({0.1, 0.3});
  StoppingRule rule;
  rule.enough_seconds = 4;
  const Samples samples = SampleUntilStable([&] { return clock(); }, rule);
  // 0.2 s on average, give or take the rounding of the sum.
  EXPECT_NEAR(static_cast<double>(samples.seconds.size()), 20, 1);
}

TEST(SamplingTest, OneOutlierDoesNotMoveTheMedian) {
  Samples samples;
  samples.seconds = {1, 1, 1, 1, 50};
  Summarise(&samples);
  EXPECT_DOUBLE_EQ(samples.median, 1);
  samples.seconds = {1, 2, 3, 4};
  Summarise(&samples);
  EXPECT_DOUBLE_EQ(samples.median, 2.5);
}

}  // namespace
}  // namespace stepcast
