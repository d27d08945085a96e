// What a sample is worth, against gradient descent that really runs: a quadratic loss with noisy
// gradients, for which one step of the best rate and both estimates have known means.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <random>
#include <vector>

#include "model/statistics/f_distribution.h"
#include "model/statistics/noise_scale.h"
#include "model/statistics/normal.h"
#include "model/statistics/scatter.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

// ---- The normal distribution.

double NormalDensity(double x) { return std::exp(x * x * -0.5) * 0.39894228040143267794; }

TEST(NormalDistribution, IsTheIntegralOfItsDensity) {
  constexpr double kStep = 1e-3;
  double sum = 0;
  double x = -9;
  for (int i = 0; i < 18000; ++i) {
    // Simpson's rule.
    sum += kStep / 6 *
           (NormalDensity(x) + 4 * NormalDensity(x + kStep / 2) + NormalDensity(x + kStep));
    x += kStep;
    if (i % 500 == 0) {
      EXPECT_NEAR(NormalDistribution(x), sum, 1e-12) << x;
    }
  }
  EXPECT_NEAR(NormalDistribution(1.959963984540054), 0.975, 1e-15);
  EXPECT_NEAR(NormalDistribution(-3.0902323061678132), 0.001, 1e-17);
}

// Quantiles as tables print them (Snedecor and Cochran, Statistical Methods).
TEST(FDistribution, TailsAreThoseOfTheTables) {
  const struct {
    double n;
    double m;
    double f;
    double tail;
  } rows[] = {{5, 10, 3.3258, 0.05},  {10, 5, 4.7351, 0.05}, {2, 20, 3.4928, 0.05},
              {20, 4, 5.8025, 0.05},  {5, 10, 5.6363, 0.01}, {10, 5, 10.0510, 0.01},
              {10, 30, 2.9791, 0.01}, {30, 10, 4.2469, 0.01}};
  for (const auto& row : rows) {
    EXPECT_NEAR(TailOfF(row.f, row.n, row.m) / row.tail, 1, row.m < 6 ? 0.2 : 0.06)
        << row.n << ", " << row.m;
  }
}

// ---- Scatter.

// Of five distances the third is in the middle, 0.67449 standard deviations of a normal law away;
// what is known beforehand counts for ten rows.
TEST(ScatterOf, ByHand) {
  const double middle = 0.6744897501960817;
  EXPECT_NEAR(ScatterOf({{5}, {1}, {3}, {2}, {4}}, 0.5, 0), 3 / middle * std::sqrt(5.0 / 15), 1e-6);
  EXPECT_NEAR(ScatterOf({{9}, {2}, {1, 3}}, 0.5, 0), 1 / middle * std::sqrt(5.0 / 15), 1e-6);
  EXPECT_NEAR(ScatterOf({{5}, {1}, {3}, {2}, {4}}, 0.9, 0), 5 / 1.6448536269514722 / std::sqrt(3.0),
              1e-6);
  EXPECT_NEAR(ScatterOf({{0}, {0}}, 0.5, 0.6), 0.6 * std::sqrt(10.0 / 12), 1e-12);
  EXPECT_DOUBLE_EQ(ScatterOf({}, 0.5, 0.1), 0.1);
}

// 0.7 + 0.3 x 11 is 4.
TEST(RepeatFactor, ByHand) {
  EXPECT_DOUBLE_EQ(RepeatFactor(1), 1);
  EXPECT_DOUBLE_EQ(RepeatFactor(11), 2);
}

// ---- Gradient descent that runs.

// The loss is |theta|^2 / 2, so the gradient is theta; one sample's gradient has independent noise
// with standard deviation kNoise in each of kSize directions.
class NoisyQuadratic {
 public:
  static constexpr std::size_t kSize = 40;
  static constexpr double kNoise = 1.5;

  double squared_gradient() const { return kSize * 0.25; }
  double noise_scale() const { return kSize * kNoise * kNoise / squared_gradient(); }

  // The gradient of a batch at theta = (1/2, ..., 1/2).
  std::vector<double> Gradient(int batch) {
    std::vector<double> gradient(kSize);
    for (double& g : gradient) g = 0.5 + kNoise / std::sqrt(batch) * normal_(random_);
    return gradient;
  }

  static double SquaredNorm(const std::vector<double>& v) {
    double sum = 0;
    for (const double x : v) sum += x * x;
    return sum;
  }

  // How much one step with this rate takes off the loss.
  double Gain(int batch, double rate) {
    const std::vector<double> gradient = Gradient(batch);
    double after = 0;
    for (const double g : gradient) after += (0.5 - rate * g) * (0.5 - rate * g) / 2;
    return squared_gradient() / 2 - after;
  }

 private:
  std::mt19937_64 random_{11};
  std::normal_distribution<double> normal_;
};

// A step with the best rate takes 1 / (1 + B_noise/B) of what a noiseless one takes off; the target
// needs as many more steps.
TEST(StepsToTarget, AreThoseOfNoisyGradientDescent) {
  NoisyQuadratic descent;
  const SampleCount<> noise = Samples(descent.noise_scale());
  double worst = 0;
  for (const int batch : {2, 9, 32, 200}) {
    constexpr int kTrials = 20000;
    double best = 0;
    for (double rate = 0.05; rate <= 1.0; rate += 0.05) {
      double sum = 0;
      for (int i = 0; i < kTrials / 10; ++i) sum += descent.Gain(batch, rate);
      best = std::max(best, sum / (kTrials / 10));
    }
    const double more = descent.squared_gradient() / 2 / best;
    const double steps = StepsToTarget(1.0, noise, Samples(static_cast<double>(batch)));
    EXPECT_NEAR(steps, more, 0.06 * more) << batch;
    worst = std::max(worst, std::abs(steps / more - 1));
  }
  std::cout << "steps against simulated descent, largest error: " << worst << "\n";
}

TEST(EstimateGradientNoise, FindsTheScaleOfSimulatedGradients) {
  NoisyQuadratic descent;
  constexpr int kSteps = 20000;
  constexpr int kWorkers = 8;
  constexpr int kLocal = 4;
  double small = 0;
  double big = 0;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> mean(NoisyQuadratic::kSize);
    for (int worker = 0; worker < kWorkers; ++worker) {
      const std::vector<double> gradient = descent.Gradient(kLocal);
      small += NoisyQuadratic::SquaredNorm(gradient) / (kWorkers * kSteps);
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += gradient[i] / kWorkers;
    }
    big += NoisyQuadratic::SquaredNorm(mean) / kSteps;
  }
  const GradientNoise<double> noise =
      EstimateGradientNoise(small, Samples(kLocal), big, Samples(kLocal * kWorkers));
  ASSERT_TRUE(noise.IsUsable());
  EXPECT_NEAR(noise.squared_gradient, descent.squared_gradient(),
              0.02 * descent.squared_gradient());
  EXPECT_NEAR(noise.scale().si(), descent.noise_scale(), 0.03 * descent.noise_scale());
  std::cout << "noise scale " << noise.scale().si() << ", true " << descent.noise_scale() << "\n";
}

RC_GTEST_PROP(EstimateGradientNoiseProperty, UndoesTheMeans, ()) {
  const double squared = *LogUniform(1e-6, 1e6);
  const double scale = *LogUniform(1, 1e5);
  const SampleCount<> small = Samples(*LogUniform(1, 1e3));
  const SampleCount<> big = small * *LogUniform(2, 1e3);
  const auto norm = [&](SampleCount<> batch) { return squared * (1 + Samples(scale) / batch); };
  const GradientNoise<double> noise = EstimateGradientNoise(norm(small), small, norm(big), big);
  RC_ASSERT(noise.IsUsable());
  RC_ASSERT(Near(noise.covariance.si(), squared * scale, 1e-9));
  // The difference of two large products where a small batch's noise buries the signal.
  RC_ASSERT(Near(noise.scale().si(), scale, 1e-10 * (1 + scale)));
}

TEST(EstimateGradientNoise, NoiseThatDrownsTheSignalIsNotUsable) {
  // The big batch's norm is larger than the small one's, or falls as 1/B.
  EXPECT_FALSE(EstimateGradientNoise(1.0, Samples(8.0), 1.1, Samples(64.0)).IsUsable());
  EXPECT_FALSE(EstimateGradientNoise(8.1, Samples(8.0), 1.0, Samples(64.0)).IsUsable());
}

// ---- The formulas among themselves.

RC_GTEST_PROP(NoiseScaleProperty, StepsAndSamplesBelongTogether, ()) {
  const double least_steps = *LogUniform(10, 1e7);
  const SampleCount<> noise = Samples(*LogUniform(1, 1e6));
  const SampleCount<> batch = Samples(*LogUniform(1, 1e6));
  const SampleCount<> least = noise * least_steps;
  const double steps = StepsToTarget(least_steps, noise, batch);
  RC_ASSERT(Near((batch * steps).si(), SamplesToTarget(least, noise, batch).si()));
  RC_ASSERT(Near(CriticalBatch(least, least_steps).si(), noise.si()));
  RC_ASSERT(steps >= least_steps);
  RC_ASSERT(StepsToTarget(least_steps, noise, batch * 1.01) < steps);
  // McCandlish's hyperbola.
  const double samples = (batch * steps) / least;
  RC_ASSERT(Near((steps / least_steps - 1) * (samples - 1), 1, 1e-6));
}

// Pollux' efficiency is the ratio of the samples to the target, and AdaScale's gain that of the
// steps.
RC_GTEST_PROP(EfficiencyProperty, IsTheRatioOfTheSamples, ()) {
  const SampleCount<> noise = Samples(*LogUniform(1, 1e6));
  const SampleCount<> known = Samples(*LogUniform(1, 1e4));
  const SampleCount<> batch = known * *LogUniform(1, 1e3);
  const double efficiency = StatisticalEfficiency(noise, known, batch);
  RC_ASSERT(efficiency > 0 && efficiency <= 1);
  RC_ASSERT(Near(efficiency, SamplesToTarget(Samples(1e6), noise, known) /
                                 SamplesToTarget(Samples(1e6), noise, batch)));
  RC_ASSERT(Near(StepGain(noise, known, batch),
                 StepsToTarget(1e3, noise, known) / StepsToTarget(1e3, noise, batch)));
  RC_ASSERT(StepGain(noise, known, batch) <= batch / known * (1 + 1e-12));
  RC_ASSERT(StepGain(noise, known, batch) >= 1 - 1e-12);
  RC_ASSERT(StatisticalEfficiency(noise, batch, batch) == 1);
  const SampleRate<> throughput = batch / Seconds(0.5);
  RC_ASSERT(Near(Goodput(throughput, noise, known, batch).si(), throughput.si() * efficiency));
}

// ---- The best batch.

RC_GTEST_PROP(BestBatchProperty, NoBatchIsBetter, ()) {
  const SampleCount<> noise = Samples(*LogUniform(1, 1e5));
  const Duration<> fixed = Seconds(*LogUniform(1e-3, 10));
  const DurationPerSample<> per_sample = Seconds(*LogUniform(1e-5, 0.1)) / Samples(1.0);
  const auto step = [&](SampleCount<> batch) { return fixed + per_sample * batch; };
  const auto time = [&](SampleCount<> batch) {
    return TimeToTarget(step(batch), 1000.0, noise, batch).si();
  };
  const auto goodput = [&](SampleCount<> batch) {
    return Goodput(batch / step(batch), noise, Samples(1.0), batch).si();
  };
  const SampleCount<> best = BestBatch(noise, fixed, per_sample);
  for (double factor = 1.0 / 64; factor <= 64; factor *= 1.3) {
    RC_ASSERT(time(best) <= time(best * factor) * (1 + 1e-12));
    RC_ASSERT(goodput(best) >= goodput(best * factor) * (1 - 1e-12));
  }
  // (sqrt(c0) + sqrt(c1 B_noise))^2
  const double root = std::sqrt(fixed.si()) + std::sqrt((per_sample * noise).si());
  RC_ASSERT(Near(time(best), 1000 * root * root, 1e-10));
  // Within limits the nearest.
  const SampleCount<> least = Samples(*LogUniform(1, 1e5));
  const SampleCount<> most = least * *LogUniform(1, 100);
  const SampleCount<> within = BestBatch(noise, fixed, per_sample, least, most);
  RC_ASSERT(within >= least && within <= most);
  for (double share = 0; share <= 1; share += 0.05) {
    RC_ASSERT(time(within) <= time(least + (most - least) * share) * (1 + 1e-12));
  }
}

}  // namespace
}  // namespace stepcast
