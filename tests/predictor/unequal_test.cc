// Plans in which some nodes compute more slowly: their steps, and their best shares against all.
#include "predictor/search/unequal.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>

#include "data/plan/check.h"
#include "data/workloads/catalog.h"
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
  EXPECT_TRUE(Says(error(backed_up), "backup-workers"));
  Plan asynchronous = Slowed(plan, 1, 0.5);
  asynchronous.strategy = Strategy::kPsAsync;
  asynchronous.servers = 1;
  EXPECT_TRUE(Says(error(asynchronous), "synchronous"));
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
      Plan fast = plan;
      fast.local_batch = shared->fast_batch;
      EXPECT_NE(predictor.Memory(fast).verdict, MemoryVerdict::kOutOfMemory) << batch;
    }
  }
  EXPECT_GT(bound, 0);
}

}  // namespace
}  // namespace stepcast
