// Plans in which some nodes compute more slowly: their steps, and their best shares against all.
#include "predictor/search/unequal.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/plan/check.h"
#include "data/workloads/catalog.h"
#include "model/step/explained_term.h"
#include "model/step/step_terms.h"
#include "predictor/compiled_plan.h"
#include "predictor/explanation.h"
#include "predictor/outlook.h"
#include "predictor/search/inverse.h"
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

// ---- Shares that a plan states.

Plan Shared(Plan plan, int fast_batch, int slow_batch) {
  plan.local_batch = fast_batch;
  plan.slow_local_batch = slow_batch;
  return plan;
}

// A plan with slow nodes on any synchronous strategy.
Plan AnySlowed(const Predictor& predictor) {
  const int nodes = *rc::gen::inRange(2, 7);
  const int devices = *rc::gen::element(1, 2, 4);
  Plan plan = RingOf(Placement(static_cast<std::size_t>(nodes), devices), 1);
  plan.placement.back() = *rc::gen::inRange(1, devices + 1);
  plan.strategy = *rc::gen::element(Strategy::kRing, Strategy::kTree, Strategy::kHierarchical,
                                    Strategy::kAuto, Strategy::kBytePs, Strategy::kPsSync);
  if (plan.strategy == Strategy::kPsSync) plan.servers = *rc::gen::inRange(1, 4);
  plan.overlap = *rc::gen::element(Overlap::kBuckets, Overlap::kNone, Overlap::kPNorm);
  plan.local_batch = *rc::gen::inRange(1, 200);
  plan.accumulation_steps = *rc::gen::inRange(1, 4);
  plan.link.bandwidth = GigabitsPerSecond(*rc::gen::element(0.1, 1.0, 10.0, 100.0));
  if (*rc::gen::inRange(0, 3) == 0) plan.link.rtt = Milliseconds(5.0);
  if (*rc::gen::inRange(0, 3) == 0) {
    plan.input_rate = SampleRate<>::FromSi(*rc::gen::element(30.0, 300.0, 3000.0));
  }
  plan = Slowed(plan, *rc::gen::inRange(1, nodes), *rc::gen::inRange(10, 101) / 100.0);
  if (plan.strategy == Strategy::kAuto) {  // one algorithm, so that sides can be held together
    predictor.Terms(plan, &plan.strategy);
  }
  return plan;
}

RC_GTEST_PROP(SlowShares, OfTheLocalBatchChangeNoBit, ()) {
  const Predictor predictor = MakePredictor(*rc::gen::element("resnet50", "vgg16"), T4());
  const Plan plan = AnySlowed(predictor);
  const Plan stated = Shared(plan, plan.local_batch, plan.local_batch);
  const Prediction a = predictor.Predict(plan);
  const Prediction b = predictor.Predict(stated);
  for (const auto& [one, other] :
       {std::pair(a.step_time, b.step_time), std::pair(a.low, b.low), std::pair(a.high, b.high),
        std::pair(a.p50, b.p50), std::pair(a.p95, b.p95), std::pair(a.p99, b.p99),
        std::pair(a.breakdown.forward, b.breakdown.forward),
        std::pair(a.breakdown.exposed_transfer, b.breakdown.exposed_transfer),
        std::pair(a.breakdown.straggler_wait, b.breakdown.straggler_wait)}) {
    RC_ASSERT(one == other);
  }
  RC_ASSERT(a.throughput == b.throughput);
  RC_ASSERT(a.memory.total == b.memory.total);
  RC_ASSERT(a.flags == b.flags);
  RC_ASSERT(plan.global_batch() == stated.global_batch());
  const CompiledPlan one(predictor, plan);
  const CompiledPlan other(predictor, stated);
  RC_ASSERT(one.Predict(QueryOf(plan)).high == other.Predict(QueryOf(stated)).high);
  LimitsOptions options;
  options.most_workers = 16;
  RC_ASSERT(FindScalingLimits(predictor, plan, 2, options).strong_best_step ==
            FindScalingLimits(predictor, stated, 2, options).strong_best_step);
}

// The step is the later of two steps that need no such plan.
RC_GTEST_PROP(SlowShares, MakeTheLaterOfTwoSteps, ()) {
  const Predictor predictor = MakePredictor(*rc::gen::element("resnet50", "vgg16"));
  const Plan plan = AnySlowed(predictor);
  const int slow_batch = *rc::gen::inRange(1, 200);
  RC_PRE(slow_batch != plan.local_batch);
  Plan fast = plan;
  fast.slow_nodes = 0;
  fast.slow_speed.reset();
  Plan slow = plan;
  slow.local_batch = slow_batch;
  const Plan shared = Shared(plan, plan.local_batch, slow_batch);
  const StepTime<double> of_fast = predictor.PredictStep(fast);
  const StepTime<double> of_slow = predictor.PredictStep(slow);
  const bool slow_is_later = of_fast.total() < of_slow.total();
  const StepTime<double>& later = slow_is_later ? of_slow : of_fast;
  const StepTime<double> step = predictor.PredictStep(shared);
  RC_ASSERT(step.total() == later.total());
  RC_ASSERT(step.backward == later.backward);
  RC_ASSERT(step.update == later.update);
  RC_ASSERT(step.exposed_transfer == later.exposed_transfer);
  RC_ASSERT(step.straggler_wait == later.straggler_wait);
  const int slow_workers = shared.slow_workers();
  const int samples =
      ((plan.workers() - slow_workers) * plan.local_batch + slow_workers * slow_batch) *
      plan.accumulation_steps;
  RC_ASSERT(shared.global_batch() == samples);
  const Prediction prediction = predictor.Predict(shared);
  RC_ASSERT(std::abs(prediction.throughput.si() * step.total().si() / samples - 1) < 1e-12);
  RC_ASSERT(predictor.Terms(shared).slow_is_later == slow_is_later);
}

// By hand: 40 samples at the full speed take 12 ms + (25^4 + 200^4)^(1/4) ms, and as many take
// twice that on a slow node. A slow node with 10 samples is earlier than the others, with 25 it is
// not.
TEST(SlowShares, SetThePaceByTheLaterKind) {
  const Predictor predictor = MakePredictor();
  const Plan plan = Slowed(RingOf({1, 1, 1, 1}, 40), 1, 0.5);
  const auto curve_ms = [](double samples) {
    return 12 + std::pow(std::pow(25, 4) + std::pow(5 * samples, 4), 0.25);
  };
  const auto micro_ms = [&](int slow_batch) {
    return predictor.Terms(Shared(plan, 40, slow_batch)).micro.in(kMilliseconds);
  };
  EXPECT_NEAR(micro_ms(10), curve_ms(40), 1e-9);
  EXPECT_NEAR(micro_ms(40), 2 * curve_ms(40), 1e-9);
  EXPECT_NEAR(micro_ms(25), 2 * curve_ms(25), 1e-9);
  // The update of a slow node takes twice as long, too.
  EXPECT_NEAR(predictor.PredictStep(Shared(plan, 40, 10)).update.in(kMilliseconds), 2, 1e-9);
  EXPECT_NEAR(predictor.PredictStep(Shared(plan, 40, 25)).update.in(kMilliseconds), 4, 1e-9);
}

TEST(SlowShares, CountInAllThatCountsSamples) {
  const Predictor predictor = MakePredictor("resnet50", T4());
  const Plan plan = Slowed(RingOf({2, 2, 1}, 60), 1, 0.4);
  const Plan shared = Shared(plan, 60, 25);
  EXPECT_EQ(shared.slow_workers(), 1);
  EXPECT_EQ(shared.micro_batch(), 4 * 60 + 25);
  EXPECT_EQ(shared.smallest_batch(), 25);
  EXPECT_EQ(shared.largest_batch(), 60);
  const Prediction p = predictor.Predict(shared);
  const Cluster cluster = CalibratedCluster(PlausibleTruth());
  OutlookOptions options;
  options.noise_scale = Samples(100.0);
  options.known_batch = Samples(32.0);
  const JobOutlook job = MakeOutlook(p, shared, cluster, std::nullopt, options);
  EXPECT_EQ(job.update_batch.in(kSamples), 265);
  EXPECT_NEAR(*job.efficiency, (32.0 + 100) / (265 + 100), 1e-12);
  EXPECT_NEAR(job.goodput->si(), p.throughput.si() * *job.efficiency, 1e-9);
  // Memory is that of the devices that take the most, be they the slow ones.
  const DataSize<> of_60 = predictor.Memory(plan).total;
  EXPECT_EQ(p.memory.total, of_60);
  Plan plain = plan;
  plain.local_batch = 80;
  EXPECT_EQ(predictor.Memory(Shared(plan, 60, 80)).total, predictor.Memory(plain).total);
  // Runs were fitted at 8 to 64 samples.
  const auto says = [&](int fast_batch, int slow_batch, const char* flag) {
    const std::vector<std::string> flags =
        predictor.Predict(Shared(plan, fast_batch, slow_batch)).flags;
    return std::any_of(flags.begin(), flags.end(),
                       [&](const std::string& its) { return its.find(flag) != std::string::npos; });
  };
  EXPECT_FALSE(says(60, 8, "calibrated range: local batch"));
  EXPECT_TRUE(says(60, 4, "calibrated range: local batch 4, fitted from 8 to 64"));
  EXPECT_TRUE(says(70, 20, "calibrated range: local batch 70, fitted from 8 to 64"));
  EXPECT_GT(predictor.Predict(Shared(plan, 60, 4)).discrepancy_log_sd, p.discrepancy_log_sd);
  // The node that takes more waits for more.
  Plan fed = Shared(Slowed(RingOf({1, 1}, 10), 1, 0.9), 10, 50);
  fed.input_rate = SampleRate<>::FromSi(10);
  EXPECT_NEAR(predictor.PredictStep(fed).total().si(), 5, 1e-12);
  EXPECT_NEAR(predictor.Predict(fed).step_time.si(), 5, 1e-12);
}

TEST(SlowShares, AreExplainedByWhoIsLater) {
  const Predictor predictor = MakePredictor();
  const Plan plan = Slowed(RingOf({1, 1, 1, 1}, 40), 1, 0.5);
  const auto batch_of = [&](int slow_batch) {
    for (const ExplainedTerm& term : predictor.Explain(Shared(plan, 40, slow_batch)).terms) {
      if (term.name != "micro-step") continue;
      for (const NamedValue& input : term.inputs) {
        if (input.symbol == "b") return input;
      }
    }
    return NamedValue();
  };
  EXPECT_EQ(batch_of(10).value, 40);
  EXPECT_EQ(batch_of(10).name, "batch");
  EXPECT_EQ(batch_of(30).value, 30);
  EXPECT_EQ(batch_of(30).name, "batch on slow nodes");
  const auto elasticity = [&](int slow_batch, const std::string& name) {
    for (const ExplainedParameter& p : predictor.Explain(Shared(plan, 40, slow_batch)).parameters) {
      if (p.value.symbol == name) return p.elasticity;
    }
    return 0.0;
  };
  EXPECT_GT(elasticity(30, "slow local batch"), 0.1);
  EXPECT_EQ(elasticity(30, "local batch"), 0);
  EXPECT_GT(elasticity(10, "local batch"), 0.1);
  EXPECT_EQ(elasticity(10, "slow local batch"), 0);
}

// What was calibrated of a host is of the other nodes; what is stated is of the slow ones.
TEST(SlowShares, OfHostsAreHeldBackEachByItsOwn) {
  Truth truth = PlausibleTruth();
  truth.host_slowdowns["d"] = 1.6;
  const Predictor predictor(CalibratedCluster(truth), *FindWorkload("resnet50"), std::nullopt);
  const Plan plan = Slowed(RingOf({1, 1, 1}, 32), 1, 0.8);
  Plan named = Shared(plan, 32, 40);
  named.hosts = {"d", "a", "b"};
  const auto alone = [&](int batch) {
    Plan one = RingOf({1, 1, 1}, batch);
    return predictor.Terms(one).micro;
  };
  EXPECT_NEAR(predictor.Terms(named).micro / alone(32), 1.6, 1e-12);
  named.slow_local_batch = 64;
  EXPECT_NEAR(predictor.Terms(named).micro / alone(64), 1 / 0.8, 1e-12);
}

TEST(SlowShares, AreRefusedWhereTheyCannotBe) {
  const auto error = [](const Plan& wrong) { return ErrorOf([&] { CheckPlan(wrong); }); };
  const Plan plan = Shared(Slowed(RingOf({1, 1}, 8), 1, 0.5), 8, 4);
  EXPECT_FALSE(error(plan));
  EXPECT_TRUE(Says(error(Shared(RingOf({1, 1}, 8), 8, 4)), "with slow-local-batch 4"));
  EXPECT_TRUE(
      Says(error(Shared(Slowed(RingOf({1, 1}, 8), 2, 0.5), 8, 4)),
           "slow-local-batch: '4' where all nodes are slow; allowed: nothing: local-batch"));
  EXPECT_TRUE(Says(error(Shared(plan, 8, 0)), "slow-local-batch: '0' is out of range"));
  Plan asynchronous = plan;
  asynchronous.strategy = Strategy::kPsAsync;
  asynchronous.servers = 1;
  EXPECT_TRUE(Says(error(asynchronous), "with strategy ps-async; allowed: a synchronous strategy"));
  const Predictor predictor = MakePredictor();
  RecommendOptions options;
  options.strategies = {Strategy::kRing, Strategy::kPsAsync};
  EXPECT_TRUE(Says(ErrorOf([&] { Recommend(predictor, plan, 1, options); }),
                   "'ps-async' says nothing of other samples on slow nodes, 4 of a micro-step"));
}

TEST(SlowShares, GoWithTheSlowNodes) {
  const Plan plan = Shared(Slowed(RingOf({1, 1, 1, 2}, 8), 1, 0.5), 8, 3);
  EXPECT_EQ(WithPlacement(plan, {1, 1, 1, 2, 1}).slow_local_batch, 3);
  EXPECT_EQ(WithPlacement(plan, {1, 1, 1}).slow_local_batch, std::nullopt);
  // Where they alone are left, the local batch is theirs.
  const Plan all = WithPlacement(plan, {5});
  EXPECT_EQ(all.slow_nodes, 1);
  EXPECT_EQ(all.slow_local_batch, std::nullopt);
  EXPECT_EQ(all.local_batch, 3);
  EXPECT_FALSE(ErrorOf([&] { CheckPlan(all); }));
  EXPECT_EQ(WithSlowNodes(plan, 2).slow_local_batch, 3);
  EXPECT_EQ(WithSlowNodes(plan, 0).local_batch, 8);
  EXPECT_EQ(WithSlowNodes(plan, 0).slow_speed, std::nullopt);
}

// Shares that are stated are weighed as equal ones are: the best are found, and found to be best.
TEST(SlowShares, AreWeighedAgainstTheBest) {
  const Predictor predictor = MakePredictor();
  const Plan equal = Slowed(RingOf({1, 1}, 64), 1, 0.5);  // of one each, so that nothing is rounded
  const auto best = WeighSlowNodes(predictor, equal)->by_speed;
  ASSERT_TRUE(best);
  const Plan stated = Shared(equal, best->fast_batch, best->slow_batch);
  ASSERT_EQ(stated.micro_batch(), 128);
  const auto weighed = WeighSlowNodes(predictor, stated);
  EXPECT_EQ(weighed->equal.step_time, best->step_time);
  EXPECT_EQ(weighed->why_equal, WhyEqual::kNoneQuicker);
  EXPECT_EQ(predictor.PredictStep(stated).total(), best->step_time);
  const auto bad = WeighSlowNodes(predictor, Shared(equal, 60, 68));
  ASSERT_TRUE(bad->by_speed);
  EXPECT_EQ(bad->by_speed->fast_batch, best->fast_batch);
  EXPECT_EQ(bad->by_speed->slow_batch, best->slow_batch);
  EXPECT_EQ(bad->equal.slow_batch, 68);
  EXPECT_GT(bad->equal.step_time, best->step_time);
}

// A fixed step is shared out in the plan's proportion, as long as there are slow nodes.
TEST(SlowShares, ShareAFixedStepInTheirProportion) {
  const Predictor predictor = MakePredictor();
  Plan plan = Shared(Slowed(RingOf({1, 1, 1, 1}, 640), 1, 0.8), 640, 400);
  plan.link.bandwidth = GigabitsPerSecond(100.0);
  LimitsOptions options;
  options.most_workers = 4;
  options.strong_global_batch = 1160;  // half of a step's samples
  const ScalingLimits limits = FindScalingLimits(predictor, plan, 1, options);
  ASSERT_EQ(limits.strong_best_workers, 4);
  EXPECT_EQ(limits.strong_best_step, predictor.PredictStep(Shared(plan, 320, 200)).total());
}

// Shares that do not come out even, between many slow devices and few fast ones, each of which has
// a sample at least.
RC_GTEST_PROP(SlowShares, OfFewFastDevicesAreWeighedAgainstAll, ()) {
  const Predictor predictor = MakePredictor(*rc::gen::element("resnet50", "vgg16"));
  const int nodes = *rc::gen::inRange(2, 17);
  const int fast = *rc::gen::inRange(1, std::min(nodes, 4));
  const int slow = nodes - fast;
  const Plan plan = Shared(Slowed(RingOf(Placement(static_cast<std::size_t>(nodes), 1), 1), slow,
                                  *rc::gen::inRange(10, 100) / 100.0),
                           *rc::gen::inRange(1, 80), *rc::gen::inRange(1, 9));
  const auto unequal = WeighSlowNodes(predictor, plan);
  RC_ASSERT(unequal.has_value());
  const SharedOut& best = unequal->best();
  RC_ASSERT(best.fast_batch >= 1);
  RC_ASSERT(best.slow_batch >= 1);
  const long long samples = plan.micro_batch();
  const long long taken = 1LL * fast * best.fast_batch + 1LL * slow * best.slow_batch;
  RC_ASSERT(taken >= samples);
  RC_ASSERT(taken < samples + fast);
  Duration<> least = predictor.PredictStep(plan).total();
  for (int of_slow = 1; fast + 1LL * slow * of_slow <= samples; ++of_slow) {
    const auto of_fast = static_cast<int>((samples - 1LL * slow * of_slow + fast - 1) / fast);
    least = Min(least, predictor.PredictStep(Shared(plan, of_fast, of_slow)).total());
  }
  RC_ASSERT(std::abs(best.step_time / least - 1) < 1e-12);
}

// Eleven samples on eight devices: two on each of seven would leave less than none for the eighth.
TEST(SlowShares, LeaveTheFastDeviceASample) {
  const Predictor predictor = MakePredictor();
  const Plan plan = Shared(Slowed(RingOf(Placement(8, 1), 1), 7, 0.9), 4, 1);
  const auto unequal = WeighSlowNodes(predictor, plan);
  ASSERT_TRUE(unequal);
  EXPECT_EQ(unequal->best().fast_batch, 4);
  EXPECT_EQ(unequal->best().slow_batch, 1);
  EXPECT_EQ(unequal->fast_only->fast_batch, 11);
}

// What the devices of a plan do that exchange nothing, each with its own samples.
SampleRate<> Alone(const Predictor& predictor, const Plan& plan) {
  const auto rate = [&](int batch) {
    Plan one = AllreducePlan({1}, batch);
    one.strategy = Strategy::kNone;
    one.accumulation_steps = plan.accumulation_steps;
    one.input_rate = plan.input_rate;
    return Samples(one.global_batch()) / predictor.PredictStep(one).total();
  };
  const int slow = plan.slow_workers();
  return rate(plan.local_batch) * (1.0 * (plan.workers() - slow)) +
         rate(plan.slow_local_batch.value_or(plan.local_batch)) * (1.0 * slow);
}

double UsedOf(const Predictor& predictor, const Plan& plan) {
  return Samples(plan.global_batch()) / predictor.PredictStep(plan).total() /
         Alone(predictor, plan);
}

// No devices do more than they do alone, whoever takes how many samples.
RC_GTEST_PROP(SlowShares, AreHeldAgainstDevicesWithTheirSamples, ()) {
  const Predictor predictor = MakePredictor(*rc::gen::element("resnet50", "vgg16"));
  const Plan some = AnySlowed(predictor);
  const Plan plan = Shared(some, some.local_batch, *rc::gen::inRange(1, 200));
  const double used = UsedOf(predictor, plan);
  RC_ASSERT(used <= 1 + 1e-12);
  RecommendOptions options;
  options.local_batches = {plan.local_batch};
  options.accumulation_steps = {plan.accumulation_steps};
  options.most_global_batch = 1'000'000;
  const RecommendOutcome outcome = Recommend(predictor, plan, 4, options);
  RC_ASSERT(outcome.baseline.has_value());
  RC_ASSERT(std::abs(outcome.baseline->efficiency / used - 1) < 1e-12);
  LimitsOptions of_few;
  of_few.most_workers = 8;
  const ScalingLimits limits = FindScalingLimits(predictor, plan, 4, of_few);
  RC_ASSERT(limits.given.has_value());
  // One worker exchanges with servers, too.
  if (!UsesServers(plan.strategy)) {
    RC_ASSERT(std::abs(limits.given->point.efficiency / used - 1) < 1e-12);
  }
}

// The batch that is asked for is that of the fast devices, the others' in the plan's proportion.
TEST(SlowShares, ChangeInProportionWithTheBatchThatIsAskedFor) {
  const Predictor predictor = MakePredictor();
  int asked = 0;
  for (const auto& shares :
       {std::pair(1, 60), std::pair(32, 60), std::pair(60, 25), std::pair(64, 1)}) {
    const int fast = shares.first;
    const int slow = shares.second;
    for (const double gigabits : {0.1, 1.0, 10.0}) {
      Plan plan = Shared(Slowed(RingOf({1, 1, 1, 1}, 1), 1, 0.5), fast, slow);
      plan.link.bandwidth = GigabitsPerSecond(gigabits);
      const InverseAnswers answers = AnswerInverseQuestions(predictor, plan, 1, 8);
      EXPECT_NEAR(answers.utilisation, UsedOf(predictor, plan), 1e-12);
      EXPECT_LE(answers.utilisation, 1);
      for (const WhatReaches& reach : answers.reaches) {
        if (!reach.local_batch) continue;
        const auto with = [&](int batch) {
          return UsedOf(predictor, Shared(plan, batch, (batch * slow + fast - 1) / fast));
        };
        EXPECT_GE(with(*reach.local_batch), reach.utilisation);
        if (*reach.local_batch > 1) {
          EXPECT_LT(with(*reach.local_batch - 1), reach.utilisation);
        }
        ++asked;
      }
    }
  }
  EXPECT_GT(asked, 0);
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
