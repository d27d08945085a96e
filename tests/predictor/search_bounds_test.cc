// What searches are made of: grids, bisections, bounds and defaults.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/workloads/catalog.h"
#include "predictor/search/allocations.h"
#include "predictor/search/batch_grid.h"
#include "predictor/search/bisect.h"
#include "predictor/search/limits.h"
#include "predictor/search/payoff.h"
#include "predictor/search/recommend.h"
#include "tests/calibrate/synthetic_runs.h"

namespace stepcast {
namespace {

using Numbers = std::vector<int>;

Predictor MakePredictor(const Cluster& cluster = CalibratedCluster(PlausibleTruth())) {
  return {cluster, *FindWorkload("resnet50"), std::nullopt};
}

// ---- Grids.

Numbers Intervals(int most, int own) {
  Numbers visited;
  ForEachInterval(most, own, [&](int a) { visited.push_back(a); });
  return visited;
}

TEST(BatchGrid, TriesPowersOfTwoAndHalfAsMuchAgain) {
  EXPECT_EQ(Intervals(100, 1), (Numbers{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 100}));
  EXPECT_EQ(Intervals(8, 5), (Numbers{1, 2, 3, 4, 5, 6, 8}));
  EXPECT_EQ(Intervals(7, 7), (Numbers{1, 2, 3, 4, 6, 7}));
  EXPECT_EQ(Intervals(7, 9), (Numbers{1, 2, 3, 4, 6, 7})) << "more than there may be";
  EXPECT_EQ(Intervals(1, 0), Numbers{1});
}

TEST(BatchGrid, TriesBatchesThatAreTrusted) {
  const auto batches = [](int least, int most_trusted, int most, int own) {
    Numbers visited;
    ForEachLocalBatch({least, most_trusted}, most, own, [&](int b) { visited.push_back(b); });
    return visited;
  };
  EXPECT_EQ(batches(3, 100, 1000, 0), (Numbers{4, 8, 16, 32, 64, 100}));
  EXPECT_EQ(batches(4, 64, 1000, 24), (Numbers{4, 8, 16, 24, 32, 64}));
  EXPECT_EQ(batches(4, 64, 1000, 200), (Numbers{4, 8, 16, 32, 64, 200}));
  EXPECT_EQ(batches(4, 64, 20, 24), (Numbers{4, 8, 16, 20})) << "more than there may be";
  EXPECT_EQ(batches(1, 1000, 15, 15), (Numbers{1, 2, 4, 8, 15})) << "the plan's is the last";
  EXPECT_EQ(batches(64, 256, 20, 0), (Numbers{16, 20})) << "the largest that there may be";
  EXPECT_EQ(batches(1, 8, 0, 1), Numbers());
}

// The higher score leads; of scores that differ by rounding, fewer micro-steps.
TEST(BatchGrid, LeadsByTheScore) {
  EXPECT_TRUE(LeadsAtItsBatch(1 + 2e-9, 9, 1, 1));
  EXPECT_FALSE(LeadsAtItsBatch(1 + 0.5e-9, 9, 1, 1));
  EXPECT_TRUE(LeadsAtItsBatch(1 + 0.5e-9, 1, 1, 2));
  EXPECT_TRUE(LeadsAtItsBatch(1 - 0.5e-9, 1, 1, 2));
  EXPECT_FALSE(LeadsAtItsBatch(1 - 0.5e-9, 2, 1, 2));
  EXPECT_FALSE(LeadsAtItsBatch(1 - 2e-9, 1, 1, 2));
}

// ---- Bisections.

TEST(Bisections, AreOnTheSideThatDoes) {
  for (const double turn : {0.012, 3.0, 790.0}) {
    const double up = Bisect(1e-3, 1e4, [&](double x) { return x >= turn; });
    EXPECT_GE(up, turn);
    EXPECT_LT(up, turn * 1.001);
    const double down = Bisect(1e4, 1e-3, [&](double x) { return x <= turn; });
    EXPECT_LE(down, turn);
    EXPECT_GT(down, turn / 1.001);
  }
  for (const int turn : {2, 3, 77, 100}) {
    EXPECT_EQ(BisectCount(1, 100, [&](int n) { return n >= turn; }), turn);
    EXPECT_EQ(BisectCount(101, 1, [&](int n) { return n <= turn; }), turn);
  }
}

// ---- What pays.

// Micro-steps that the global batch has no room for do not.
TEST(PayoffBounds, OfTheGlobalBatch) {
  const Predictor predictor = MakePredictor();
  Plan plan = AllreducePlan(Placement(8, 1), 32);
  plan.link.bandwidth = MegabitsPerSecond(50.0);
  const SampleRate<> wanted = predictor.Predict(plan).throughput * 3.0;
  const std::optional<int> steps = FindPayoff(predictor, plan, wanted, 1e9).accumulation_steps;
  ASSERT_TRUE(steps);
  ASSERT_GT(*steps, 2);
  const double samples = 8.0 * 32 * *steps;
  EXPECT_EQ(FindPayoff(predictor, plan, wanted, samples).accumulation_steps, steps);
  EXPECT_FALSE(FindPayoff(predictor, plan, wanted, samples - 1).accumulation_steps);
  // The plan's own are no part of what is asked of a step of one.
  plan.accumulation_steps = 2;
  EXPECT_EQ(FindPayoff(predictor, plan, wanted, samples).accumulation_steps, steps);
  EXPECT_FALSE(FindPayoff(predictor, plan, wanted, samples - 1).accumulation_steps);
}

TEST(PayoffBounds, OfPlansWithoutANetwork) {
  const Predictor predictor = MakePredictor();
  const Plan node = AllreducePlan({4}, 1);
  const Payoff of_node = FindPayoff(predictor, node, predictor.Predict(node).throughput * 0.5, 1e9);
  EXPECT_FALSE(of_node.bandwidth) << "no link between nodes is used";
  const Plan alone = AllreducePlan({1}, 1);
  const Payoff of_one =
      FindPayoff(predictor, alone, predictor.Predict(alone).throughput * 0.5, 1e9);
  EXPECT_FALSE(of_one.bandwidth);
  EXPECT_FALSE(of_one.accumulation_steps);
}

// ---- Limits.

// Of one worker the whole cluster is what is given, as far as it is looked at.
TEST(LimitsBounds, OfWhatIsGiven) {
  const auto given = [](int nodes, int most_workers) {
    Cluster cluster = CalibratedCluster(PlausibleTruth());
    cluster.nodes = nodes;
    cluster.devices_per_node = 2;
    Plan plan = AllreducePlan({1}, 32);
    plan.strategy = Strategy::kRing;
    const ScalingLimits limits =
        FindScalingLimits(MakePredictor(cluster), plan, 2, {.most_workers = most_workers});
    return std::pair(limits.given ? limits.given->point.workers : 0, limits.reference_workers);
  };
  EXPECT_EQ(given(3, 6), std::pair(6, 6));
  EXPECT_EQ(given(3, 5), std::pair(0, 5));
  EXPECT_EQ(given(1, 8), std::pair(2, 2));
}

TEST(LimitsBounds, OfOneBackupWorker) {
  Plan plan = AllreducePlan({4}, 32);
  plan.backup_workers = 1;
  const ScalingLimits limits = FindScalingLimits(MakePredictor(), plan, 4, {.most_workers = 8});
  EXPECT_EQ(limits.flags.back(),
            "one worker alone is no backup worker; a fixed step counts the samples that backup "
            "workers throw away");
}

// ---- What is done where nobody says otherwise (docs/reference/cli.md).

TEST(SearchDefaults, AreThoseThatAreDocumented) {
  EXPECT_EQ(LimitsOptions().most_workers, 256);
  EXPECT_EQ(LimitsOptions().target_efficiency, 0.9);
  EXPECT_EQ(LimitsOptions().strong_global_batch, 0);
  EXPECT_EQ(RecommendOptions().most_global_batch, 8192);
  EXPECT_EQ(RecommendOptions().tolerance, 0.05);
  EXPECT_EQ(RecommendOptions().objective, Objective::kThroughput);
}

}  // namespace
}  // namespace stepcast
