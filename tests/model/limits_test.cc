// The closed forms of where scaling ends, against a scan of the models that they are derived from.
#include "model/limits/limits.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "model/collective/allreduce.h"
#include "model/collective/parameter_server.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

constexpr double kBatch = 32;
constexpr int kAccumulation = 2;
constexpr int kServers = 2;
const DataSize<> kGradient = Megabytes(100.0);
const DataRate<> kServerLink = GigabitsPerSecond(10.0);

// Only the servers' links bind.
ServerPaths<double> Paths(int workers) {
  ServerPaths<double> paths;
  paths.workers = workers;
  paths.servers = kServers;
  paths.worker = {Duration<>(), GigabitsPerSecond(1e6)};
  paths.server_bandwidth = kServerLink;
  return paths;
}

// Samples per second with synchronous servers and `compute` for the a micro-steps of a step.
double SyncThroughput(int workers, Duration<> compute) {
  const Duration<> step = compute + ServerSynchronisation(Paths(workers)).Time(kGradient);
  return workers * kBatch * kAccumulation / step.in(kSeconds);
}

double Ceiling() {
  return ServerCeiling(Samples(kBatch * kAccumulation), kServers, kServerLink, kGradient)
      .in(kSamplesPerSecond);
}

// 64 samples x 2 servers x 1.25 GB/s / 200 MB.
TEST(Limits, ServerCeilingByHand) { EXPECT_DOUBLE_EQ(Ceiling(), 800); }

TEST(Limits, ServerCeilingIsReachedInTheLimitAndNeverPassed) {
  double before = 0;
  for (int workers = 1; workers <= 1 << 20; workers *= 2) {
    const double throughput = SyncThroughput(workers, Seconds(0.8));
    EXPECT_LT(throughput, Ceiling());
    EXPECT_GT(throughput, before);
    before = throughput;
  }
  EXPECT_GT(before, 0.9999 * Ceiling());
}

// Pushes and pulls of different workers pass a full-duplex link at once.
TEST(Limits, AsynchronousServersReachTwiceTheCeiling) {
  const auto throughput = [](int workers) {
    const Duration<> cycle = AsyncServerCycle(Paths(workers), Seconds(0.8), kGradient);
    return workers * kBatch * kAccumulation / cycle.in(kSeconds);
  };
  EXPECT_LT(throughput(1 << 15), 2 * Ceiling());
  EXPECT_GT(throughput(1 << 15), 2 * 0.999 * Ceiling());
}

// 0.8 s x 2 x 1.25 GB/s / 200 MB = 10 workers: half the ceiling, transfer as long as compute.
TEST(Limits, HalfTheCeilingIsWhereTransferEqualsCompute) {
  const double half = ServerHalfCeilingWorkers(Seconds(0.8), kServers, kServerLink, kGradient);
  ASSERT_DOUBLE_EQ(half, 10);
  EXPECT_NEAR(SyncThroughput(10, Seconds(0.8)), Ceiling() / 2, 1e-9);
  EXPECT_NEAR(ServerSynchronisation(Paths(10)).Time(kGradient).in(kSeconds), 0.8, 1e-12);
}

RC_GTEST_PROP(LimitsProperty, HalfTheCeilingIsReachedBetweenTheNeighbours, ()) {
  const Duration<> compute = Seconds(*LogUniform(0.16, 100));
  const double half = ServerHalfCeilingWorkers(compute, kServers, kServerLink, kGradient);
  RC_ASSERT(SyncThroughput(static_cast<int>(std::floor(half)), compute) <=
            Ceiling() / 2 * (1 + 1e-12));
  RC_ASSERT(SyncThroughput(static_cast<int>(std::ceil(half)), compute) >=
            Ceiling() / 2 * (1 - 1e-12));
}

// C = 20 s, alpha = 1 ms: sqrt(20 / 0.002) = 100.
TEST(Limits, RingBestWorkersByHand) {
  EXPECT_DOUBLE_EQ(RingBestWorkers(Seconds(20.0), Milliseconds(1.0)), 100);
}

RC_GTEST_PROP(LimitsProperty, RingBestWorkersIsTheScansBest, ()) {
  const Duration<> work = Seconds(*LogUniform(1e-2, 10));
  const Hop<double> hop{Seconds(*LogUniform(1e-4, 1e-2)), BytesPerSecond(1e30)};
  const auto step = [&](int w) {
    return (work / static_cast<double>(w) + RingAllreduce(w, hop).Time(kGradient)).si();
  };
  int best = 1;
  for (int w = 2; w < 1000; ++w) {
    if (step(w) < step(best)) best = w;
  }
  // The best whole number is next to the best real one.
  const double closed = RingBestWorkers(work, hop.alpha);
  RC_ASSERT(best >= std::fmax(1, std::floor(closed)));
  RC_ASSERT(best <= std::fmax(1, std::ceil(closed)));
}

// ---- Accumulation.

double Efficiency(double accumulation, double exposed_over_micro_step) {
  return accumulation / (accumulation + exposed_over_micro_step);
}

TEST(Limits, AccumulationByHand) {
  // Three quarters of the time with an exposed half: 0.75 / 0.25 x 0.5 = 1.5, so 2.
  EXPECT_EQ(AccumulationForEfficiency(0.75, Seconds(0.5), Seconds(1.0)), 2);
  // Whole numbers are kept, though 0.9 / (1 - 0.9) is 9.000000000000002.
  EXPECT_EQ(AccumulationForEfficiency(0.5, Seconds(3.0), Seconds(1.0)), 3);
  EXPECT_EQ(AccumulationForEfficiency(0.9, Seconds(1.0), Seconds(1.0)), 9);
  EXPECT_EQ(AccumulationForEfficiency(0.99, Seconds(1.0), Seconds(1.0)), 99);
  // There is no less than one.
  EXPECT_EQ(AccumulationForEfficiency(0.5, Seconds(0.0), Seconds(1.0)), 1);
  EXPECT_EQ(AccumulationForEfficiency(0.01, Seconds(1.0), Seconds(1.0)), 1);
}

RC_GTEST_PROP(LimitsProperty, AccumulationReachesTheEfficiencyAndOneLessDoesNot, ()) {
  const double efficiency = *LogUniform(0.05, 0.999);
  const double ratio = *LogUniform(1e-3, 1e3);
  const double a = AccumulationForEfficiency(efficiency, Seconds(ratio), Seconds(1.0));
  RC_ASSERT(a == std::floor(a));
  RC_ASSERT(a >= 1);
  RC_ASSERT(Efficiency(a, ratio) >= efficiency * (1 - 1e-12));
  if (a > 1) RC_ASSERT(Efficiency(a - 1, ratio) < efficiency);
}

}  // namespace
}  // namespace stepcast
