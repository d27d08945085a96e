// Failures against jobs that are simulated failure by failure, and the intervals against the least
// wall time that a search finds.
#include "model/failures/failures.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>
#include <vector>

#include "tests/model/support.h"

namespace stepcast {
namespace {

class Failures {
 public:
  explicit Failures(double mtbf) : next_(1 / mtbf) {}
  double Next() { return next_(random_); }

 private:
  std::mt19937_64 random_{3};
  std::exponential_distribution<double> next_;
};

// Wall time over useful time of a job that saves after every `interval` of work; a failure takes it
// back to the last checkpoint, through a restart that may fail as well.
double SimulatedSlowdown(double interval, double checkpoint, double restart, double mtbf) {
  constexpr int kIntervals = 20000;
  Failures failures(mtbf);
  double wall = 0;
  for (int i = 0; i < kIntervals; ++i) {
    double need = interval + checkpoint;
    for (double failure = failures.Next(); failure < need; failure = failures.Next()) {
      wall += failure;
      need = restart + interval + checkpoint;
    }
    wall += need;
  }
  return wall / (kIntervals * interval);
}

struct Job {
  double interval;
  double checkpoint;
  double restart;
  double mtbf;
};

constexpr Job kJobs[] = {
    {600, 30, 60, 36000}, {3600, 120, 300, 36000}, {600, 300, 60, 3600}, {3600, 600, 1200, 3600}};

TEST(CheckpointSlowdown, AsSimulated) {
  double worst = 0;
  for (const Job& job : kJobs) {
    const double simulated = SimulatedSlowdown(job.interval, job.checkpoint, job.restart, job.mtbf);
    const double expected = CheckpointSlowdown(Seconds(job.interval), Seconds(job.checkpoint),
                                               Seconds(job.restart), Seconds(job.mtbf));
    EXPECT_NEAR(expected, simulated, 0.02 * simulated) << job.interval << " " << job.mtbf;
    worst = std::max(worst, std::abs(expected / simulated - 1));
  }
  std::cout << "checkpoint slowdown against simulated jobs, largest error: " << worst << "\n";
}

// The mean loss of one failure, where an interval hardly ever sees two.
TEST(ChiefLoss, IsTheFirstOrderOfTheSlowdown) {
  for (const Job& job : kJobs) {
    const Duration<> interval = Seconds(job.interval);
    const Duration<> checkpoint = Seconds(job.checkpoint);
    const Duration<> restart = Seconds(job.restart);
    const Duration<> rare = Seconds(1e8);
    const double saving = (interval + checkpoint) / interval;
    const double losing = CheckpointSlowdown(interval, checkpoint, restart, rare) - saving;
    // Failures for each second of useful work, times what each costs.
    const double first = saving * (ChiefLoss(interval, checkpoint, restart) / rare);
    EXPECT_NEAR(losing, first, 1e-3 * first);
  }
}

double SlowdownAt(double interval, double checkpoint, double mtbf) {
  return CheckpointSlowdown(Seconds(interval), Seconds(checkpoint), Seconds(60.0), Seconds(mtbf));
}

// The interval with the least wall time, by golden sections.
double BestInterval(double checkpoint, double mtbf) {
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double low = std::log(1e-4 * mtbf);
  double high = std::log(10 * mtbf);
  for (int i = 0; i < 80; ++i) {
    const double a = high - golden * (high - low);
    const double b = low + golden * (high - low);
    if (SlowdownAt(std::exp(a), checkpoint, mtbf) < SlowdownAt(std::exp(b), checkpoint, mtbf)) {
      high = b;
    } else {
      low = a;
    }
  }
  return std::exp((low + high) / 2);
}

TEST(DalyInterval, IsNearTheBest) {
  constexpr double kMtbf = 10000;
  double worst = 0;
  for (const double checkpoint : {1.0, 10.0, 100.0, 500.0, 1000.0, 2500.0, 5000.0}) {
    const double best = BestInterval(checkpoint, kMtbf);
    const double least = SlowdownAt(best, checkpoint, kMtbf);
    const double daly = DalyInterval(Seconds(checkpoint), Seconds(kMtbf)).si();
    const double young = YoungInterval(Seconds(checkpoint), Seconds(kMtbf)).si();
    const double more = SlowdownAt(daly, checkpoint, kMtbf) / least - 1;
    std::cout << "checkpoint " << checkpoint / kMtbf << " M: best interval " << best << ", Daly "
              << daly << " (" << more * 100 << " % more wall time), Young " << young << " ("
              << (SlowdownAt(young, checkpoint, kMtbf) / least - 1) * 100 << " %)\n";
    EXPECT_GE(more, -1e-9);
    worst = std::max(worst, more);
    EXPECT_NEAR(daly, best, (checkpoint <= 0.1 * kMtbf ? 1e-3 : 6e-3) * best);
    EXPECT_LE(SlowdownAt(daly, checkpoint, kMtbf),
              SlowdownAt(young, checkpoint, kMtbf) * (1 + 1e-9));
  }
  EXPECT_LT(worst, 2e-5);
}

TEST(DalyInterval, MeetsYoungsForShortCheckpointsAndStopsAtM) {
  EXPECT_NEAR(
      DalyInterval(Seconds(1e-6), Seconds(1e6)) / YoungInterval(Seconds(1e-6), Seconds(1e6)), 1,
      1e-5);
  EXPECT_EQ(DalyInterval(Seconds(2000.0), Seconds(1000.0)).si(), 1000);
  EXPECT_EQ(DalyInterval(Seconds(9000.0), Seconds(1000.0)).si(), 1000);
}

RC_GTEST_PROP(CheckpointSlowdownProperty, NeverUnderOneAndWorseWithMoreOfAnything, ()) {
  const Duration<> interval = Seconds(*LogUniform(10, 1e4));
  const Duration<> checkpoint = Seconds(*LogUniform(0.1, 1e3));
  const Duration<> restart = Seconds(*LogUniform(1, 1e3));
  const Duration<> mtbf = Seconds(*LogUniform(1e3, 1e8));
  const double slowdown = CheckpointSlowdown(interval, checkpoint, restart, mtbf);
  RC_ASSERT(slowdown >= (interval + checkpoint) / interval * (1 - 1e-12));
  RC_ASSERT(CheckpointSlowdown(interval, checkpoint * 1.1, restart, mtbf) > slowdown);
  RC_ASSERT(CheckpointSlowdown(interval, checkpoint, restart * 1.1, mtbf) > slowdown);
  RC_ASSERT(CheckpointSlowdown(interval, checkpoint, restart, mtbf * 1.1) < slowdown);
  const SampleRate<> throughput = Samples(1000.0) / Seconds(1.0);
  RC_ASSERT(EffectiveThroughput(throughput, slowdown) < throughput);
}

// ---- Workers.

TEST(JobTimeBetweenFailures, AsTheFirstOfMany) {
  constexpr int kTrials = 20000;
  Failures node(3e6);
  Failures device(1e6);
  double sum = 0;
  for (int i = 0; i < kTrials; ++i) {
    double first = node.Next();
    for (int n = 1; n < 4; ++n) first = std::min(first, node.Next());
    for (int w = 0; w < 16; ++w) first = std::min(first, device.Next());
    sum += first;
  }
  const double expected = JobTimeBetweenFailures(Seconds(3e6), 4, Seconds(1e6), 16).si();
  EXPECT_NEAR(expected, sum / kTrials, 0.03 * expected);
  EXPECT_NEAR(JobTimeBetweenFailures(Seconds(1e6), 1, Seconds(1e6), 1).si(), 5e5, 1e-6);
}

// All stand still from the loss to the replacement, and repeat the step that was under way.
TEST(SynchronousLoss, AsSimulated) {
  constexpr double kStep = 100;
  constexpr double kRecovery = 120;
  constexpr double kMtbf = 20000;
  Failures failures(kMtbf);
  double wall = 0;
  double steps = 0;
  for (int i = 0; i < 100000; ++i) {
    const double at_work = failures.Next();
    wall += at_work + kRecovery;
    steps += std::floor(at_work / kStep);
  }
  const double simulated = wall / (steps * kStep);
  const double expected =
      SynchronousLossSlowdown(Seconds(kStep), Seconds(kRecovery), Seconds(kMtbf));
  // To first order in step / M.
  EXPECT_NEAR(expected, simulated, 1e-4);
  std::cout << "synchronous loss " << expected << ", simulated " << simulated << "\n";
}

// Each of the workers comes and goes; the throughput is the mean number at work.
TEST(AsynchronousLoss, AsSimulated) {
  constexpr double kRecovery = 300;
  constexpr double kMtbf = 2000;
  constexpr int kWorkers = 8;
  Failures failures(kMtbf);
  double at_work = 0;
  double wall = 0;
  for (int worker = 0; worker < kWorkers; ++worker) {
    for (int i = 0; i < 20000; ++i) {
      const double up = failures.Next();
      at_work += up;
      wall += up + kRecovery;
    }
  }
  EXPECT_NEAR(AsynchronousLossSlowdown(Seconds(kRecovery), Seconds(kMtbf)), wall / at_work, 0.005);
}

RC_GTEST_PROP(WorkerLossProperty, SynchronousWorkersPayForEachOther, ()) {
  const int w = *Whole(1, 1000000);
  const Duration<> device = Seconds(*LogUniform(1e6, 1e9));
  const Duration<> recovery = Seconds(*LogUniform(1, 1e4));
  const Duration<> job = JobTimeBetweenFailures(Seconds(1e300), 1, device, w);
  const double synchronous = SynchronousLossSlowdown(Seconds(0.0), recovery, job) - 1;
  const double asynchronous = AsynchronousLossSlowdown(recovery, device) - 1;
  RC_ASSERT(std::abs(synchronous - w * asynchronous) <= 1e-9 * (1 + synchronous) * w);
  RC_ASSERT(SynchronousLossSlowdown(Seconds(1.0), recovery, job) >= 1);
  RC_ASSERT(Near(RemainingThroughput(w, 1), 1 - 1.0 / w));
  RC_ASSERT(RemainingThroughput(w, 0) == 1);
  RC_ASSERT(RemainingThroughput(w, w) == 0);
}

}  // namespace
}  // namespace stepcast
