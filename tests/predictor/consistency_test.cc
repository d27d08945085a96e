// What one answer tells in several ways agrees with itself, for every strategy and plans at random.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "data/record/strategy.h"
#include "model/step/belief.h"
#include "predictor/predictor.h"
#include "tests/hot_path/random_plans.h"

namespace stepcast {
namespace {

constexpr std::uint64_t kCases = 150;  // of each strategy
constexpr double kRounding = 1e-9;

class Consistency : public ::testing::TestWithParam<int> {
 protected:
  static Strategy strategy() { return static_cast<Strategy>(GetParam()); }
};

TEST_P(Consistency, OfTimesRatesAndQuantiles) {
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    const RandomCase made = MakeRandomCase(strategy(), seed);
    SCOPED_TRACE(std::to_string(seed) + Describe(made.plan));
    const Prediction p = made.MakePredictor().Predict(made.plan);
    const double step = p.step_time.si();
    EXPECT_NEAR(p.breakdown.total().si() / step, 1, kRounding);
    // Backup workers compute, and are not counted.
    const double counted =
        made.plan.global_batch() * (1 - 1.0 * made.plan.backup_workers / made.plan.workers());
    EXPECT_NEAR(p.throughput.si() * step / counted, 1, kRounding);
    EXPECT_LE(p.p50, p.p95);
    EXPECT_LE(p.p95, p.p99);
    EXPECT_LE(p.low, p.p50);
    EXPECT_LE(p.p50, p.high);
    EXPECT_LE(p.low, p.step_time);
    EXPECT_LE(p.step_time, p.high);
    if (p.server_times) {
      const ServerTimes<double>& times = *p.server_times;
      for (const Duration<>& time : {times.push, times.update, times.pull}) {
        EXPECT_GE(time.si(), -kRounding * step);
      }
      // All that a worker shows of the servers is within what it exchanges.
      const double all = (times.push + times.update + times.pull).si();
      EXPECT_LE(p.breakdown.exposed().si(), all + p.breakdown.exposed_latency.si() +
                                                p.breakdown.coding.si() + kRounding * step);
      if (!p.async_servers) {
        EXPECT_LE(all, p.breakdown.synchronisation.si() + kRounding * step);
      }
    }
    if (!p.async_servers) continue;
    const AsyncServers<double>& servers = *p.async_servers;
    EXPECT_NEAR(servers.cycle.si() / step, 1, kRounding);
    EXPECT_NEAR(servers.updates.si() * step / made.plan.workers(), 1, kRounding);
    EXPECT_NEAR(servers.mean_staleness, servers.updates.si() * step - 1,
                kRounding * made.plan.workers());
    EXPECT_GE(servers.queueing().si(), -kRounding * step);
    EXPECT_EQ(servers.wait, p.breakdown.straggler_wait);
    for (const double busy : {servers.server_link, servers.server_processor, servers.server_update,
                              servers.worker_link}) {
      EXPECT_GE(busy, 0);
      EXPECT_LE(busy, 1 + kRounding);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, Consistency, ::testing::Range(0, kStrategyCount),
                         [](const auto& of) {
                           std::string name = StrategyName(static_cast<Strategy>(of.param));
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

// Without overlap a worker computes, pushes, waits for the update, pulls, and pays the framework's
// fixed cost, which a bare message has not;
// and an asynchronous step bound to no lead pushes as a synchronous one does.
TEST(ServerTimes, FillTheStepOfWhoHidesNothing) {
  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kPsAsync}) {
    for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
      RandomCase made = MakeRandomCase(strategy, seed);
      made.plan.overlap = Overlap::kNone;
      made.plan.server.pipelined = false;
      made.plan.server.staleness_bound.reset();
      SCOPED_TRACE(std::to_string(seed) + Describe(made.plan));
      const Predictor predictor = made.MakePredictor();
      const Prediction p = predictor.Predict(made.plan);
      ASSERT_EQ(p.server_times.has_value(), made.plan.workers() > 1 || !made.plan.server.colocated);
      if (!p.server_times) continue;
      const int overhead = internal::LeavesNode(predictor.Facts(made.plan)) ? kNodeSyncOverhead
                                                                            : kDeviceSyncOverhead;
      const double fixed =
          made.workload.communication_only ? 0 : std::exp(predictor.belief().log_value(overhead));
      const ServerTimes<double>& times = *p.server_times;
      const StepTime<double>& parts = p.breakdown;
      const double rest = p.step_time.si() - parts.compute().si() - parts.straggler_wait.si() -
                          parts.input_wait.si() - parts.coding.si() - fixed;
      EXPECT_NEAR((times.push + times.update + times.pull).si() / rest, 1, 1e-6);
    }
  }
}

// A tighter bound on staleness takes longer, between a synchronous step and one that never waits,
// and what a cycle sees of others goes from one to the other.
TEST(BoundedStaleness, LiesBetweenASynchronousStepAndNone) {
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    RandomCase made = MakeRandomCase(Strategy::kPsAsync, seed);
    SCOPED_TRACE(std::to_string(seed) + Describe(made.plan));
    const Predictor predictor = made.MakePredictor();
    std::optional<Prediction> before;
    for (const std::optional<int> bound : {std::optional<int>(0), std::optional<int>(1),
                                           std::optional<int>(20), std::optional<int>()}) {
      made.plan.server.staleness_bound = bound;
      Prediction p = predictor.Predict(made.plan);
      if (before) {
        EXPECT_LE(p.step_time.si(), before->step_time.si() * (1 + kRounding));
        EXPECT_LE(p.breakdown.straggler_wait, before->breakdown.straggler_wait);
        if (p.async_servers && made.plan.workers() > 1) {
          EXPECT_GE(p.async_servers->updates.si(),
                    before->async_servers->updates.si() * (1 - kRounding));
        }
      }
      before = std::move(p);
    }
  }
}

}  // namespace
}  // namespace stepcast
