// Plans in which some nodes compute more slowly: their steps, and their best shares against all.
#include "predictor/search/unequal.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/plan/check.h"
#include "data/workloads/catalog.h"
#include "predictor/compiled_plan.h"
#include "predictor/search/limits.h"
#include "predictor/search/recommend.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

Predictor MakePredictor(const char* workload = "resnet50",
                        std::optional<Device> device = std::nullopt) {
  return {CalibratedCluster(PlausibleTruth()), *FindWorkload(workload), std::move(device)};
}

Plan Slowed(Plan plan, int nodes, double speed) {
  plan.slow_nodes = nodes;
  plan.slow_speed = speed;
  return plan;
}

Plan RingOf(Placement placement, int local_batch) {
  Plan plan = AllreducePlan(std::move(placement), local_batch);
  plan.link.bandwidth = GigabitsPerSecond(10.0);
  return plan;
}

TEST(SlowNodes, SetThePaceOfTheComputeAndNotOfTheExchange) {
  const Predictor predictor = MakePredictor();
  const Plan plan = RingOf({1, 1, 1, 1}, 32);
  const Plan slow = Slowed(plan, 1, 0.5);
  EXPECT_NEAR(predictor.Terms(slow).micro / predictor.Terms(plan).micro, 2, 1e-12);
  EXPECT_NEAR(predictor.PredictStep(slow).update / predictor.PredictStep(plan).update, 2, 1e-12);
  EXPECT_NEAR(
      predictor.PredictStep(slow).synchronisation / predictor.PredictStep(plan).synchronisation, 1,
      1e-12);
  // However many they are.
  EXPECT_EQ(predictor.PredictStep(Slowed(plan, 3, 0.5)).total(),
            predictor.PredictStep(slow).total());
}

TEST(SlowNodes, OfTheSpeedOfTheOthersChangeNothing) {
  const Predictor predictor = MakePredictor();
  const Plan plan = RingOf({2, 2}, 16);
  const Prediction equal = predictor.Predict(plan);
  const Prediction stated = predictor.Predict(Slowed(plan, 1, 1));
  EXPECT_EQ(stated.step_time, equal.step_time);
  EXPECT_EQ(stated.low, equal.low);
  EXPECT_EQ(stated.high, equal.high);
}

TEST(SlowNodes, AreTheFirstToGo) {
  const Plan plan = Slowed(RingOf({1, 1, 1, 1}, 8), 2, 0.7);
  EXPECT_EQ(WithPlacement(plan, {1, 1, 1, 1, 1}).slow_nodes, 2);
  EXPECT_EQ(WithPlacement(plan, {1, 1, 1}).slow_nodes, 1);
  EXPECT_EQ(WithPlacement(plan, {1, 1, 1}).slow_speed, 0.7);
  EXPECT_EQ(WithPlacement(plan, {1, 1}).slow_nodes, 0);
  EXPECT_EQ(WithPlacement(plan, {2}).slow_speed, std::nullopt);
  // As many workers are the same devices, however they are packed.
  const Plan uneven = Slowed(RingOf({2, 1, 1}, 8), 1, 0.7);
  EXPECT_EQ(WithPlacement(uneven, {2, 2}).slow_nodes, 1);
  EXPECT_EQ(WithPlacement(uneven, {2, 1}).slow_nodes, 0);
}

// What is stated of a host stands instead of what was calibrated of it, and of no other; the
// slowest of all sets the pace.
TEST(SlowNodes, AreTheirHostsAlone) {
  const double calibrated = 1.6;
  Truth truth = PlausibleTruth();
  truth.host_slowdowns["d"] = calibrated;
  const Predictor predictor(CalibratedCluster(truth), *FindWorkload("resnet50"), std::nullopt);
  const auto micro = [&](const Plan& plan) { return predictor.Terms(plan).micro; };
  Plan plan = RingOf({1, 1, 1, 1}, 32);
  const Duration<> healthy = micro(plan);
  const auto on = [&](std::vector<std::string> hosts, double speed) {
    Plan named = speed > 0 ? Slowed(plan, 1, speed) : plan;
    named.hosts = std::move(hosts);
    return named;
  };
  EXPECT_NEAR(micro(on({"a", "b", "c", "d"}, 0)) / healthy, calibrated, 1e-12);
  EXPECT_NEAR(micro(on({"a", "b", "c", "d"}, 0.9)) / healthy, 1 / 0.9, 1e-12);
  EXPECT_NEAR(micro(on({"d", "a", "b", "c"}, 0.9)) / healthy, calibrated, 1e-12);
  EXPECT_NEAR(micro(on({"d", "a", "b", "c"}, 0.5)) / healthy, 2, 1e-12);
  for (const auto& [p, flagged] : {std::pair(on({"a", "b", "c", "d"}, 0.9), false),
                                   std::pair(on({"d", "a", "b", "c"}, 0.9), true)}) {
    const std::vector<std::string> flags = predictor.Predict(p).flags;
    EXPECT_EQ(std::any_of(flags.begin(), flags.end(),
                          [](const std::string& flag) {
                            return flag.find("d computes 1.60 times slower") != std::string::npos;
                          }),
              flagged);
    EXPECT_NEAR(
        CompiledPlan(predictor, p).Predict(QueryOf(p)).step_time / predictor.PredictStep(p).total(),
        1, 1e-12);
  }
  // Naming the hosts changes no advice.
  const auto named = WeighSlowNodes(predictor, on({"a", "b", "c", "d"}, 0.625));
  const auto unnamed = WeighSlowNodes(predictor, Slowed(plan, 1, 0.625));
  ASSERT_TRUE(named->by_speed && unnamed->by_speed);
  EXPECT_EQ(named->by_speed->fast_batch, unnamed->by_speed->fast_batch);
  EXPECT_EQ(named->fast_only->step_time, unnamed->fast_only->step_time);
}

TEST(SlowNodes, AreNotForgottenByAnotherStrategy) {
  const Predictor predictor = MakePredictor();
  RecommendOptions options;
  options.strategies = {Strategy::kRing, Strategy::kNone};
  const Plan plan = Slowed(RingOf({1, 1}, 8), 1, 0.5);
  EXPECT_TRUE(Says(ErrorOf([&] { Recommend(predictor, plan, 1, options); }),
                   "strategy: 'none' says nothing of slow nodes"));
  options.strategies = {Strategy::kRing, Strategy::kTree};
  EXPECT_NO_THROW(Recommend(predictor, plan, 1, options));
}

// No law of many workers knows of them.
TEST(SlowNodes, HaveNoClosedForms) {
  const Predictor predictor = MakePredictor();
  const ScalingLimits limits =
      FindScalingLimits(predictor, Slowed(RingOf({2, 1, 1}, 64), 1, 0.3), 2, {});
  EXPECT_FALSE(limits.closed.half_efficiency.has_value());
  EXPECT_FALSE(limits.closed.ceiling.has_value());
}

TEST(SlowNodes, AreRefusedWhereTheyCannotBe) {
  const Plan plan = RingOf({1, 1}, 8);
  const auto error = [](const Plan& wrong) { return ErrorOf([&] { CheckPlan(wrong); }); };
  EXPECT_FALSE(error(Slowed(plan, 1, 0.5)));
  EXPECT_TRUE(Says(error(Slowed(plan, 3, 0.5)), "slow-nodes"));
  Plan without_speed = plan;
  without_speed.slow_nodes = 1;
  EXPECT_TRUE(Says(error(without_speed), "slow-speed"));
  EXPECT_TRUE(Says(error(Slowed(plan, 0, 0.5)), "at least 1"));
  EXPECT_TRUE(Says(error(Slowed(plan, 1, 1.5)), "slow-speed"));
  Plan backed_up = Slowed(plan, 1, 0.5);
  backed_up.backup_workers = 1;
  // Fewer than are slow leave some to wait for.
  EXPECT_TRUE(Says(error(backed_up),
                   "backup-workers: '1' with slow-nodes 1; allowed: 0, or slow-nodes 0: how many"));
  Plan alone = Slowed(plan, 1, 0.5);
  alone.strategy = Strategy::kNone;
  EXPECT_TRUE(Says(error(alone), "a strategy other than none"));
}

Plan AsynchronousOf(Placement placement, int servers = 1) {
  Plan plan = RingOf(std::move(placement), 32);
  plan.strategy = Strategy::kPsAsync;
  plan.servers = servers;
  plan.overlap = Overlap::kNone;
  return plan;
}

TEST(SlowNodes, OfAsynchronousServersMoveAtTheirOwnPace) {
  const Predictor predictor = MakePredictor();
  const Plan plan = AsynchronousOf({1, 1, 1, 1, 1});
  const Prediction equal = predictor.Predict(plan);
  const Prediction all_slow = predictor.Predict(Slowed(plan, 5, 0.5));
  const Prediction p = predictor.Predict(Slowed(plan, 2, 0.5));
  const AsyncServers<double>& servers = *p.async_servers;
  EXPECT_GT(p.throughput, all_slow.throughput);
  EXPECT_LT(p.throughput, equal.throughput);
  EXPECT_EQ(equal.async_servers->slow_updates, 0);
  EXPECT_EQ(all_slow.async_servers->slow_updates, 0);
  // Two of the five workers are slow.
  const auto rate = 3.0 / servers.fast_cycle + 2.0 / servers.slow_cycle;
  EXPECT_NEAR(servers.updates / rate, 1, 1e-12);
  EXPECT_NEAR(servers.slow_updates, (2.0 / servers.slow_cycle) / rate, 1e-12);
  EXPECT_NEAR(p.step_time.si() * rate.si(), 5, 1e-9);
  EXPECT_NEAR(p.breakdown.total() / p.step_time, 1, 1e-12);
  // A cycle differs by the compute.
  const Duration<> micro = predictor.Terms(Slowed(plan, 2, 0.5)).micro;
  EXPECT_NEAR((servers.slow_cycle - servers.fast_cycle) / (micro * 0.5), 1, 1e-9);
  // What one worker in two is, shows in the quantiles.
  EXPECT_LT(p.p50, servers.slow_cycle);
  EXPECT_GT(p.p95, servers.slow_cycle);
  EXPECT_GT(p.p99, p.p95);
}

// As many of either kind as updates are, drawn at random.
TEST(SlowNodes, QuantilesAreThoseOfAllUpdates) {
  const Predictor predictor = MakePredictor();
  const Plan plan = Slowed(AsynchronousOf({1, 1, 1}), 1, 0.25);
  const Prediction p = predictor.Predict(plan);
  const AsyncServers<double>& servers = *p.async_servers;
  const Prediction alike = predictor.Predict(AsynchronousOf({1, 1, 1}));
  ASSERT_GT(alike.p99 / alike.p50, 1.001) << "steps differ";
  // Far apart: the slow kind's share of the updates is beyond every fast one.
  ASSERT_GT(servers.slow_updates, 0.05);
  ASSERT_LT(servers.slow_updates, 0.5);
  EXPECT_LT(p.p50, servers.fast_cycle * (alike.p95 / alike.p50));
  EXPECT_GT(p.p50, servers.fast_cycle * 0.8);
  EXPECT_GT(p.p95, servers.slow_cycle * 0.8);
}

TEST(SlowNodes, SetThePaceWhereStalenessIsBounded) {
  const Predictor predictor = MakePredictor();
  Plan plan = AsynchronousOf({1, 1, 1, 1});
  plan.server.staleness_bound = 3;
  EXPECT_EQ(predictor.PredictStep(Slowed(plan, 1, 0.5)).total(),
            predictor.PredictStep(Slowed(plan, 4, 0.5)).total());
}

// The best of all shares.
Duration<> BestOfAll(const Predictor& predictor, const Plan& plan, int slow_workers) {
  Plan fast = plan;
  fast.slow_nodes = 0;
  fast.slow_speed.reset();
  const int fast_workers = plan.workers() - slow_workers;
  Duration<> best = predictor.PredictStep(plan).total();
  for (int b = 1; b <= plan.local_batch; ++b) {
    Plan of_slow = plan;
    of_slow.local_batch = b;
    const int left = plan.workers() * plan.local_batch - slow_workers * b;
    fast.local_batch = (left + fast_workers - 1) / fast_workers;
    best =
        Min(best, Max(predictor.PredictStep(fast).total(), predictor.PredictStep(of_slow).total()));
  }
  return best;
}

RC_GTEST_PROP(SlowNodes, NoSharesAreQuickerThanTheBest, ()) {
  const Predictor predictor = MakePredictor(*rc::gen::element("resnet50", "vgg16", "alexnet"));
  const int nodes = *rc::gen::inRange(2, 9);
  const int devices = *rc::gen::element(1, 2, 4);
  Plan plan = RingOf(Placement(static_cast<std::size_t>(nodes), devices), 1);
  plan.strategy = *rc::gen::element(Strategy::kRing, Strategy::kTree, Strategy::kPsSync);
  if (plan.strategy == Strategy::kPsSync) plan.servers = 2;
  plan.local_batch = *rc::gen::inRange(2, 100);
  plan.accumulation_steps = *rc::gen::inRange(1, 4);
  plan.link.bandwidth = GigabitsPerSecond(*rc::gen::element(0.1, 1.0, 10.0, 100.0));
  plan = Slowed(plan, *rc::gen::inRange(1, nodes), *rc::gen::inRange(10, 100) / 100.0);
  const auto unequal = WeighSlowNodes(predictor, plan);
  RC_ASSERT(unequal.has_value());
  const SharedOut& best = unequal->by_speed ? *unequal->by_speed : unequal->equal;
  const int slow_workers = plan.slow_nodes * devices;
  const double exhaustive = BestOfAll(predictor, plan, slow_workers).si();
  RC_ASSERT(best.step_time.si() <= exhaustive * (1 + 1e-12));
  RC_ASSERT(best.step_time.si() >= exhaustive * (1 - 1e-12));
  // All samples are taken, and by no more workers than there are.
  const int fast_workers = plan.workers() - slow_workers;
  const int taken = fast_workers * best.fast_batch + slow_workers * best.slow_batch;
  const int wanted = plan.workers() * plan.local_batch;
  RC_ASSERT(taken >= wanted);
  RC_ASSERT(taken < wanted + fast_workers);
  // Slow devices never get more.
  RC_ASSERT(best.slow_batch <= best.fast_batch);
}

TEST(SlowNodes, ThatHardlyComputeHoldTheOthersBack) {
  const Predictor predictor = MakePredictor();
  const auto unequal = WeighSlowNodes(predictor, Slowed(RingOf({1, 1, 1, 1}, 64), 1, 0.01));
  ASSERT_TRUE(unequal && unequal->by_speed && unequal->fast_only);
  EXPECT_LT(unequal->by_speed->step_time, unequal->equal.step_time);
  EXPECT_LT(unequal->fast_only->step_time, unequal->by_speed->step_time);
  EXPECT_EQ(unequal->fast_only->fast_batch, 86);  // 256 samples on three
  EXPECT_EQ(unequal->fast_only->slow_batch, 0);
  // The same samples in either time.
  EXPECT_NEAR(*unequal->worth(), unequal->fast_only->step_time / unequal->by_speed->step_time,
              1e-12);
  EXPECT_LT(*unequal->worth(), 1);
}

TEST(SlowNodes, HaveNoWorthWhereNobodyCanDoWithoutThem) {
  UnequalWorkers unequal;
  unequal.equal.throughput = Samples(100.0) / Seconds(1.0);
  EXPECT_FALSE(unequal.worth());
  unequal.fast_only = SharedOut{};
  unequal.fast_only->throughput = Samples(80.0) / Seconds(1.0);
  EXPECT_NEAR(*unequal.worth(), 1.25, 1e-12) << "of equal shares, where none by speed are better";
  unequal.by_speed = SharedOut{};
  unequal.by_speed->throughput = Samples(120.0) / Seconds(1.0);
  EXPECT_NEAR(*unequal.worth(), 1.5, 1e-12);
}

TEST(SlowNodes, AreNotWeighedWhereAllAreAlike) {
  const Predictor predictor = MakePredictor();
  const Plan plan = RingOf({1, 1}, 8);
  EXPECT_FALSE(WeighSlowNodes(predictor, plan));
  EXPECT_FALSE(WeighSlowNodes(predictor, Slowed(plan, 2, 0.5)));
}

TEST(SlowNodes, SharesFitTheMemory) {
  const Predictor predictor = MakePredictor("resnet50", T4());
  int bound = 0;
  for (int batch = 8; batch <= 512; batch *= 2) {
    const Plan plan = Slowed(RingOf({1, 1}, batch), 1, 0.25);
    const auto unequal = WeighSlowNodes(predictor, plan);
    ASSERT_TRUE(unequal);
    for (const auto& shared : {unequal->by_speed, unequal->fast_only}) {
      if (!shared) {
        ++bound;
        continue;
      }
      Plan fast = shared->slow_batch > 0 ? plan : WithPlacement(plan, {1});
      fast.local_batch = shared->fast_batch;
      EXPECT_NE(predictor.Memory(fast).verdict, MemoryVerdict::kOutOfMemory) << batch;
    }
  }
  EXPECT_GT(bound, 0);
}

// Fewer workers hold larger parts of what is shared out.
TEST(SlowNodes, RestOnlyWhereTheOthersHoldAll) {
  const Predictor predictor = MakePredictor("bert_large", T4());
  bool parted = false;
  for (int batch = 1; batch <= 16; ++batch) {
    Plan plan = Slowed(RingOf({1, 1}, batch), 1, 0.2);
    plan.shard = Shard::kParameters;
    const auto unequal = WeighSlowNodes(predictor, plan);
    Plan alone = WithPlacement(plan, {1});
    alone.local_batch = 2 * batch;
    const bool fits = predictor.Memory(alone).verdict != MemoryVerdict::kOutOfMemory;
    EXPECT_EQ(unequal->fast_only.has_value(), fits) << batch;
    plan.local_batch = 2 * batch;
    parted = parted || (!fits && predictor.Memory(plan).verdict != MemoryVerdict::kOutOfMemory);
  }
  EXPECT_TRUE(parted) << "no batch tells the two apart";
}

TEST(SlowNodes, SayWhyEqualSharesAreBest) {
  const Predictor predictor = MakePredictor();
  const auto why = [&](const Plan& plan) { return WeighSlowNodes(predictor, plan)->why_equal; };
  EXPECT_EQ(why(Slowed(RingOf({1, 1}, 1), 1, 0.5)), WhyEqual::kOneSample);
  EXPECT_EQ(why(Slowed(RingOf({1, 1}, 8), 1, 1)), WhyEqual::kNoneQuicker);
  EXPECT_EQ(why(Slowed(RingOf({1, 1}, 64), 1, 0.25)), std::nullopt);
}

}  // namespace
}  // namespace stepcast
