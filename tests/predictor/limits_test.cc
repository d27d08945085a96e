// Where scaling ends, against a search by hand and against the closed forms.
#include "predictor/search/limits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "data/workloads/catalog.h"
#include "model/network/transport.h"
#include "model/overlap/buckets.h"
#include "predictor/search/one_worker.h"
#include "predictor/search/payoff.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

constexpr int kDevicesPerNode = 4;
constexpr int kMost = 48;

Predictor MakePredictor(const Truth& truth = PlausibleTruth()) {
  return {CalibratedCluster(truth), *FindWorkload("resnet50"), std::nullopt};
}

Plan BasePlan(Strategy strategy = Strategy::kRing, int servers = 0) {
  Plan plan;
  plan.local_batch = 32;
  plan.strategy = strategy;
  plan.servers = servers;
  return plan;
}

Plan On(const Plan& plan, int workers) {
  Plan scaled = plan;
  scaled.placement = FillNodes(workers, kDevicesPerNode);
  return scaled;
}

// Between two nodes all flows share one path, between more there are two: scaling gets better
// again.
Truth NarrowFlows() {
  Truth truth = PlausibleTruth();
  truth.cluster.si[kFlowBandwidth] = 1.2e9 / 8;
  truth.cluster.si[kHopSpread] = 1;
  return truth;
}

// The plans that the searches are tried on: some scale well, some not at all.
std::vector<Plan> Plans() {
  std::vector<Plan> plans = {BasePlan(), BasePlan(Strategy::kTree),
                             BasePlan(Strategy::kHierarchical), BasePlan(Strategy::kPsSync, 2),
                             BasePlan(Strategy::kPsAsync, 1)};
  Plan slow = BasePlan();
  slow.link.bandwidth = MegabitsPerSecond(200.0);
  plans.push_back(slow);
  Plan accumulating = BasePlan();
  accumulating.accumulation_steps = 8;
  plans.push_back(accumulating);
  Plan distant = BasePlan();
  distant.link.rtt = Milliseconds(20.0);
  plans.push_back(distant);
  return plans;
}

double Throughput(const Predictor& predictor, const Plan& plan) {
  return plan.global_batch() / predictor.PredictStep(plan).total().in(kSeconds);
}

TEST(PlacementSearch, FillsOneNodeAfterAnother) {
  EXPECT_EQ(FillNodes(10, 4), Placement({4, 4, 2}));
  EXPECT_EQ(FillNodes(4, 4), Placement({4}));
  EXPECT_EQ(FillNodes(3, 1), Placement({1, 1, 1}));
}

TEST(Limits, TheCurveIsThePredictors) {
  const Predictor predictor = MakePredictor();
  for (const Plan& plan : Plans()) {
    const ScalingLimits limits =
        FindScalingLimits(predictor, plan, kDevicesPerNode, {.most_workers = kMost});
    std::vector<int> workers;
    const double single = Throughput(predictor, On(plan, 1));
    for (const ScalingPoint& point : limits.curve) {
      workers.push_back(point.workers);
      const double expected = Throughput(predictor, On(plan, point.workers));
      EXPECT_NEAR(point.throughput.in(kSamplesPerSecond), expected, 1e-9 * expected);
      EXPECT_NEAR(point.efficiency, expected / (single * point.workers), 1e-9);
      EXPECT_EQ(point.step_time, predictor.PredictStep(On(plan, point.workers)).total());
    }
    EXPECT_EQ(workers, std::vector<int>({1, 2, 4, 8, 16, 32, 48}));
    EXPECT_EQ(limits.efficiency_at_most, limits.curve.back().efficiency);
    EXPECT_EQ(limits.most_workers, kMost);
  }
}

// Who shares the model out within nodes takes full ones alone.
TEST(Limits, NodesThatShareTheModelOutAreFull) {
  const Predictor predictor = MakePredictor();
  Plan plan = BasePlan();
  plan.shard = Shard::kHybrid;
  constexpr int kThree = 3;
  const ScalingLimits limits = FindScalingLimits(predictor, plan, kThree, {.most_workers = 20});
  EXPECT_EQ(limits.most_workers, 18);
  std::vector<int> workers;
  const StepTime<double> one = predictor.PredictStep(On(plan, 1));
  for (const ScalingPoint& point : limits.curve) {
    workers.push_back(point.workers);
    Plan there = plan;
    there.placement = FillNodes(point.workers, kThree);
    const double expected = Throughput(predictor, there);
    EXPECT_NEAR(point.throughput.in(kSamplesPerSecond), expected, 1e-9 * expected);
    const StepTime<double> step = predictor.PredictStep(there);
    EXPECT_NEAR(point.efficiency, (one.total() - one.update + step.update) / step.total(), 1e-9);
  }
  EXPECT_EQ(workers, std::vector<int>({1, 2, 3, 6, 15, 18}));
  for (const int found : {limits.best_workers, limits.strong_best_workers}) {
    EXPECT_TRUE(found < kThree || found % kThree == 0) << found;
  }
  for (const std::optional<int>& found : {limits.half_efficiency, limits.crossing}) {
    if (found) {
      EXPECT_TRUE(*found < kThree || *found % kThree == 0) << *found;
    }
  }
}

TEST(Limits, WeakScalingAgreesWithASearchByHand) {
  const Predictor predictor = MakePredictor();
  int worth_it = 0;
  int crossing = 0;
  int half = 0;
  int between = 0;
  for (const Plan& plan : Plans()) {
    const ScalingLimits limits =
        FindScalingLimits(predictor, plan, kDevicesPerNode, {.most_workers = kMost});
    const double single = Throughput(predictor, On(plan, 1));
    Plan nobody = On(plan, 1);
    nobody.strategy = Strategy::kNone;
    nobody.servers = 0;
    const double free = Throughput(predictor, nobody);
    std::optional<int> first_faster;
    int best = 1;
    for (int w = 1; w <= kMost; ++w) {
      const double throughput = Throughput(predictor, On(plan, w));
      if (w > 1 && throughput > single && !first_faster) first_faster = w;
      if (throughput > Throughput(predictor, On(plan, best))) best = w;
    }
    const auto from_on = [](const auto& holds) {
      std::optional<int> from;
      for (int w = kMost; w >= 1 && holds(w); --w) from = w;
      return from;
    };
    const std::optional<int> faster_from =
        from_on([&](int w) { return Throughput(predictor, On(plan, w)) > single; });
    const std::optional<int> crossing_from = from_on([&](int w) {
      const StepTime<double> step = predictor.PredictStep(On(plan, w));
      return step.exposed() > step.compute();
    });
    const std::optional<int> half_from =
        from_on([&](int w) { return Throughput(predictor, On(plan, w)) < 0.5 * single * w; });
    EXPECT_EQ(limits.worth_it, first_faster);
    EXPECT_EQ(limits.worth_it_from, faster_from);
    EXPECT_EQ(limits.crossing, crossing_from);
    EXPECT_EQ(limits.half_efficiency, half_from);
    EXPECT_EQ(limits.half_utilisation,
              from_on([&](int w) { return Throughput(predictor, On(plan, w)) < 0.5 * free * w; }));
    between += first_faster && faster_from != first_faster ? 1 : 0;
    EXPECT_EQ(limits.best_workers, best);
    EXPECT_EQ(limits.weak_binding.part, FindBinding(predictor.Predict(On(plan, kMost))).part);
    worth_it += first_faster.has_value() ? 1 : 0;
    crossing += crossing_from.has_value() ? 1 : 0;
    half += half_from.has_value() ? 1 : 0;
  }
  // The plans cover both answers to each question.
  const int all = static_cast<int>(Plans().size());
  EXPECT_GT(worth_it, 0);
  EXPECT_GT(crossing, 0);
  EXPECT_LT(crossing, all);
  EXPECT_GT(half, 0);
  EXPECT_LT(half, all);
  EXPECT_GT(between, 0) << "one node pays, and the first few do not";
}

// One worker that exchanges with servers does less than a device alone: half of the efficiency is
// not half of the devices' work.
TEST(Limits, HalfOfTheWorkIsAgainstDevicesThatExchangeNothing) {
  const Predictor predictor = MakePredictor();
  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kPsAsync}) {
    Plan plan = BasePlan(strategy, 1);
    plan.link.bandwidth = GigabitsPerSecond(1.0);
    plan.accumulation_steps = 32;
    Plan nobody = On(BasePlan(Strategy::kNone), 1);
    nobody.accumulation_steps = 32;
    const double free = Throughput(predictor, nobody);
    const double single = Throughput(predictor, On(plan, 1));
    ASSERT_LT(single, 0.9 * free);
    const ScalingLimits limits = FindScalingLimits(predictor, plan, 1, {.most_workers = kMost});
    const std::optional<int> used = limits.half_utilisation;
    const std::optional<int> efficient = limits.half_efficiency;
    ASSERT_TRUE(used && efficient);
    EXPECT_LT(*used, *efficient);
    const auto throughput = [&](int w) {
      Plan scaled = plan;
      scaled.placement = FillNodes(w, 1);
      return Throughput(predictor, scaled) / w;
    };
    EXPECT_LT(throughput(*used), 0.5 * free);
    if (*used > 1) {
      EXPECT_GE(throughput(*used - 1), 0.5 * free);
    }
    EXPECT_GE(throughput(*efficient - 1), 0.5 * single);
  }
}

// What crosses on two nodes may not on three, where flows have two paths.
TEST(Limits, WhatIsSaidFromANumberOnIsSoOfAllBeyond) {
  const Predictor predictor = MakePredictor(NarrowFlows());
  int ended = 0;
  for (const int accumulation : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16}) {
    Plan plan = BasePlan();
    plan.accumulation_steps = accumulation;
    const ScalingLimits limits =
        FindScalingLimits(predictor, plan, kDevicesPerNode, {.most_workers = 256});
    const auto crosses = [&](int w) {
      const StepTime<double> step = predictor.PredictStep(On(plan, w));
      return step.exposed() > step.compute();
    };
    for (int w = limits.crossing.value_or(257); w <= 256; ++w) EXPECT_TRUE(crosses(w)) << w;
    const int before = limits.crossing.value_or(257) - 1;
    if (before >= 1) {
      EXPECT_FALSE(crosses(before));
    }
    for (int w = 1; w < before; ++w) ended += crosses(w) && !crosses(w + 1) ? 1 : 0;
  }
  EXPECT_GT(ended, 0) << "some crossing ends";
}

// What is given is compared with one worker, and shared out among all workers, not nodes.
TEST(Limits, TheGivenPlanByHand) {
  const Predictor predictor = MakePredictor();
  const Plan plan = On(BasePlan(), 10);
  const ScalingLimits limits = FindScalingLimits(predictor, plan, kDevicesPerNode, {kMost});
  const double step = predictor.PredictStep(plan).total().in(kSeconds);
  const double alone = predictor.PredictStep(On(BasePlan(), 1)).total().in(kSeconds);
  ASSERT_TRUE(limits.given);
  EXPECT_EQ(limits.given->point.workers, 10);
  EXPECT_NEAR(limits.given->speedup, 10 * alone / step, 1e-9);
  EXPECT_NEAR(limits.given->point.efficiency, alone / step, 1e-9);
}

// A plan that is slower than one worker alone is told what would make it as fast.
TEST(Limits, TheGivenPlanIsToldWhatItTakes) {
  const Predictor predictor = MakePredictor();
  Plan plan = On(BasePlan(), 10);
  plan.link.bandwidth = MegabitsPerSecond(100.0);
  const ScalingLimits limits = FindScalingLimits(predictor, plan, kDevicesPerNode, {kMost});
  const double alone = Throughput(predictor, On(BasePlan(), 1));
  ASSERT_LT(limits.given->speedup, 1);
  ASSERT_TRUE(limits.given->payoff.bandwidth && limits.given->payoff.accumulation_steps);
  plan.link.bandwidth = *limits.given->payoff.bandwidth;
  EXPECT_NEAR(Throughput(predictor, plan) / alone, 1, 2e-3);
}

// ---- What would make a plan pay.

// The rate, and the number of micro-steps, from which on a plan reaches a throughput: those below
// do not.
TEST(Payoff, IsTheLeastThatPays) {
  const Predictor predictor = MakePredictor();
  Plan ring = On(BasePlan(), 8);
  Plan servers = BasePlan(Strategy::kPsSync, 1);
  servers.placement = {2};  // one node: only the servers are elsewhere
  Plan stated = servers;
  stated.server_link.bandwidth = MegabitsPerSecond(50.0);
  for (Plan plan : {ring, servers, stated}) {
    SCOPED_TRACE(StrategyName(plan.strategy));
    plan.link.bandwidth = MegabitsPerSecond(50.0);
    const auto throughput = [&](const Plan& tried) { return predictor.Predict(tried).throughput; };
    const auto at_rate = [&](DataRate<> rate) {
      Plan tried = plan;
      tried.link.bandwidth = rate;
      if (plan.server_link.bandwidth) tried.server_link.bandwidth = rate;
      return throughput(tried);
    };
    const SampleRate<> wanted = at_rate(MegabitsPerSecond(500.0));
    const Payoff payoff = FindPayoff(predictor, plan, wanted, 1e9);
    ASSERT_TRUE(payoff.bandwidth);
    EXPECT_NEAR(*payoff.bandwidth / MegabitsPerSecond(500.0), 1, 2e-3);
    EXPECT_GE(at_rate(*payoff.bandwidth).si(), wanted.si());
    ASSERT_TRUE(payoff.accumulation_steps);
    Plan accumulating = plan;
    accumulating.accumulation_steps = *payoff.accumulation_steps;
    EXPECT_GE(throughput(accumulating).si(), wanted.si());
    --accumulating.accumulation_steps;
    EXPECT_LT(throughput(accumulating).si(), wanted.si());
  }
}

TEST(Payoff, IsSaidWithItsGlobalBatch) {
  Plan plan = On(BasePlan(), 8);  // of 32 samples each
  plan.accumulation_steps = 2;
  Payoff payoff;
  EXPECT_EQ(PayoffText(payoff, plan), "");
  payoff.accumulation_steps = 5;
  EXPECT_EQ(PayoffText(payoff, plan), "5 micro-steps accumulated (a global batch of 1,280)");
  payoff.bandwidth = GigabitsPerSecond(25.0);
  EXPECT_EQ(PayoffText(payoff, plan),
            "links of 25 Gbit/s or more, or 5 micro-steps accumulated (a global batch of 1,280)");
}

// With ZeRO-2, micro-steps that are accumulated keep whole gradients: where they do not fit, none
// pay.
TEST(Payoff, AccumulatesNothingThatDoesNotFit) {
  Device device;
  device.name = kSyntheticDevice;
  device.memory = Gibibytes(16.0);
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), *FindWorkload("resnet50"), device);
  Plan plan = On(BasePlan(), 8);
  plan.shard = Shard::kGradients;
  plan.link.bandwidth = MegabitsPerSecond(50.0);
  const auto fits = [&](int batch, int steps) {
    Plan tried = plan;
    tried.local_batch = batch;
    tried.accumulation_steps = steps;
    return predictor.Memory(tried).verdict != MemoryVerdict::kOutOfMemory;
  };
  int most = 1;
  while (fits(most + 1, 1)) ++most;
  ASSERT_FALSE(fits(most, 2));
  for (const int batch : {most, most / 2}) {
    plan.local_batch = batch;
    const SampleRate<> wanted = predictor.Predict(plan).throughput * 1.5;
    EXPECT_EQ(FindPayoff(predictor, plan, wanted, 1e9).accumulation_steps.has_value(),
              batch != most);
  }
}

// Of a model that is shared out each worker updates its share, and one that exchanges nothing would
// do no less: none does more than all of its work.
TEST(Limits, ShardedWorkersAreHeldAgainstTheUpdateOfTheirShare) {
  Workload workload = *FindWorkload("opt_1.3b@512");
  workload.optimizer = Optimizer::kAdam;
  const Predictor predictor(Cluster(), workload, T4(), "t4");
  Plan plan = On(BasePlan(Strategy::kAllreduce), 16);
  plan.shard = Shard::kParameters;
  plan.local_batch = 1;
  plan.link.bandwidth = GigabitsPerSecond(400.0);
  plan.link.transport = Transport::kRdma;
  const ScalingLimits limits =
      FindScalingLimits(predictor, plan, kDevicesPerNode, {.most_workers = 64});
  const StepTime<double> one = predictor.PredictStep(On(plan, 1));
  for (const ScalingPoint& point : limits.curve) {
    const StepTime<double> step = predictor.PredictStep(On(plan, point.workers));
    const Duration<> alone = one.total() - one.update + step.update;
    EXPECT_NEAR(point.efficiency, alone / step.total(), 1e-12) << point.workers;
    EXPECT_LE(point.efficiency, 1 + 1e-12) << point.workers;
  }
  EXPECT_LT(predictor.PredictStep(plan).update, one.update * 0.1) << "the update is shared out";
  // Slow nodes update more slowly, and workers at full speed by themselves do not.
  Plan slow = plan;
  slow.slow_nodes = 1;
  slow.slow_speed = 0.5;
  const SampleRate<> alone = RatesAlone(predictor, plan, OneWorkerOf(plan)).Of(plan);
  EXPECT_NEAR(RatesAlone(predictor, slow, OneWorkerOf(slow)).Of(slow) / alone, 1, 1e-12);
}

TEST(Limits, HalfEfficiencyIsForGood) {
  const Predictor predictor = MakePredictor(NarrowFlows());
  Plan plan = BasePlan();
  plan.accumulation_steps = 8;
  const auto efficiency = [&](int w) {
    return Throughput(predictor, On(plan, w)) / (w * Throughput(predictor, On(plan, 1)));
  };
  ASSERT_LT(efficiency(8), 0.5) << "two nodes";
  ASSERT_GT(efficiency(12), 0.5) << "three";
  const std::optional<int> half =
      FindScalingLimits(predictor, plan, kDevicesPerNode, {.most_workers = 256}).half_efficiency;
  ASSERT_TRUE(half.has_value());
  EXPECT_GT(*half, 12);
  EXPECT_GE(efficiency(*half - 1), 0.5);
  for (int w = *half; w <= 256; ++w) EXPECT_LT(efficiency(w), 0.5) << w;
}

TEST(Limits, StrongScalingIsFastestWhereItSays) {
  const Predictor predictor = MakePredictor();
  for (const int samples : {24, 256, 1000}) {
    const ScalingLimits limits =
        FindScalingLimits(predictor, BasePlan(), kDevicesPerNode,
                          {.most_workers = kMost, .strong_global_batch = samples});
    EXPECT_EQ(limits.strong_global_batch, samples);
    EXPECT_LE(limits.strong_best_workers, std::min(samples, kMost));
    for (int w = 1; w <= std::min(samples, kMost); ++w) {
      // The largest share of a worker, in equal micro-steps of at most 32.
      const int share = (samples + w - 1) / w;
      Plan plan = On(BasePlan(), w);
      plan.accumulation_steps = (share + 31) / 32;
      plan.local_batch = (share + plan.accumulation_steps - 1) / plan.accumulation_steps;
      const Duration<> step = predictor.PredictStep(plan).total();
      EXPECT_LE(limits.strong_best_step, step) << samples << " samples on " << w;
      if (w == limits.strong_best_workers) {
        EXPECT_EQ(limits.strong_best_step, step);
        EXPECT_EQ(limits.strong_binding.part, FindBinding(predictor.Predict(plan)).part);
      }
    }
  }
}

// Workers that share a model out are many enough to hold it, and those that the throughput is
// compared with are said to be none.
TEST(Limits, AFixedStepIsFastestWhereItFits) {
  Workload workload = *FindWorkload("opt_2.7b@128");
  workload.optimizer = Optimizer::kAdam;
  const Predictor predictor(Cluster(), workload, T4(), "t4");
  Plan plan = On(BasePlan(Strategy::kAllreduce), 16);
  plan.shard = Shard::kParameters;
  plan.local_batch = 1;
  plan.link.bandwidth = MegabitsPerSecond(100.0);  // the fewer exchange, the better
  const ScalingLimits limits =
      FindScalingLimits(predictor, plan, kDevicesPerNode, {.most_workers = kMost});
  Plan best = On(plan, limits.strong_best_workers);
  EXPECT_TRUE(predictor.Memory(best).may_fit());
  EXPECT_FALSE(predictor.Memory(On(plan, 2)).may_fit());
  const auto said_of = [](const ScalingLimits& of, int workers, const std::string& what = "") {
    const std::string named =
        what + fmt::format("on {} worker{}: ", workers, workers == 1 ? "" : "s");
    return std::count_if(of.flags.begin(), of.flags.end(),
                         [&](const std::string& flag) { return flag.starts_with(named); });
  };
  EXPECT_EQ(said_of(limits, 1), 1);
  const ScalingLimits of_two = FindScalingLimits(predictor, plan, kDevicesPerNode,
                                                 {.most_workers = kMost, .strong_global_batch = 2});
  EXPECT_EQ(said_of(of_two, of_two.strong_best_workers, "a fixed step "), 1)
      << "no two workers hold it";
}

// Beyond the numbers that are all looked at, the fewest workers that have as small a share are as
// fast as those that were found.
TEST(Limits, StrongScalingWastesNoWorkers) {
  Truth truth = PlausibleTruth();
  truth.cluster.si[kLinkBandwidth] *= 100;
  truth.cluster.si[kFlowBandwidth] *= 100;
  truth.cluster.si[kHostBandwidth] *= 100;
  truth.cluster.si[kLinkLatency] /= 100;
  const Predictor predictor(CalibratedCluster(truth), *FindWorkload("resnet50"), std::nullopt);
  int large = 0;
  for (int samples = 1000; samples < 30000; samples = samples * 5 / 4 + 7) {
    const Plan plan = BasePlan(samples % 2 == 0 ? Strategy::kTree : Strategy::kRing);
    const ScalingLimits limits = FindScalingLimits(
        predictor, plan, kDevicesPerNode, {.most_workers = 4096, .strong_global_batch = samples});
    large += limits.strong_best_workers > kEveryWorkerTo ? 1 : 0;
    const int share = 1 + (samples - 1) / limits.strong_best_workers;
    Plan fewest = On(plan, 1 + (samples - 1) / share);
    fewest.accumulation_steps = (share + 31) / 32;
    fewest.local_batch = (share + fewest.accumulation_steps - 1) / fewest.accumulation_steps;
    EXPECT_LE(limits.strong_best_step, predictor.PredictStep(fewest).total()) << samples;
  }
  EXPECT_GT(large, 3);
}

TEST(Limits, StrongScalingIsByDefaultTheStepOfAFullNode) {
  Plan plan = BasePlan();
  plan.accumulation_steps = 3;
  EXPECT_EQ(FindScalingLimits(MakePredictor(), plan, kDevicesPerNode, {.most_workers = 8})
                .strong_global_batch,
            32 * 3 * kDevicesPerNode);
}

TEST(Limits, OneWorkerIsALimitToo) {
  const ScalingLimits limits =
      FindScalingLimits(MakePredictor(), BasePlan(), kDevicesPerNode, {.most_workers = 1});
  ASSERT_EQ(limits.curve.size(), 1U);
  EXPECT_EQ(limits.best_workers, 1);
  EXPECT_FALSE(limits.worth_it.has_value());
  EXPECT_FALSE(limits.half_efficiency.has_value());
  EXPECT_EQ(limits.weak_binding.part, "compute");
}

TEST(Limits, TheSlowestHostStillCounts) {
  Truth truth = PlausibleTruth();
  truth.host_links = {{"fast", GigabitsPerSecond(9.0)}, {"slow", GigabitsPerSecond(0.1)}};
  const Predictor predictor = MakePredictor(truth);
  Plan plan = BasePlan();
  plan.placement = {1, 1};
  plan.hosts = {"fast", "slow"};
  const ScalingLimits with = FindScalingLimits(predictor, plan, 1, {.most_workers = 8});
  Plan stated = BasePlan();
  stated.link.bandwidth = GigabitsPerSecond(0.1);
  const ScalingLimits same = FindScalingLimits(predictor, stated, 1, {.most_workers = 8});
  for (std::size_t i = 0; i < with.curve.size(); ++i) {
    EXPECT_NEAR(with.curve[i].step_time / same.curve[i].step_time, 1, 1e-9);
  }
}

// The rate from which on no step waits is the one at which it begins to: found by bisection.
TEST(Limits, TheInputThatIsNeededIsWhereTheStepBeginsToWait) {
  const Predictor predictor = MakePredictor();
  for (Plan plan : Plans()) {
    plan.placement = {4, 4, 2};
    plan.input_rate = SampleRate<>::FromSi(100.0);
    const ScalingLimits limits =
        FindScalingLimits(predictor, plan, kDevicesPerNode, {.most_workers = 16});
    ASSERT_TRUE(limits.input_needed.has_value());
    double low = 1e-3;
    double high = 1e9;
    for (int i = 0; i < 200; ++i) {
      Plan tried = plan;
      tried.input_rate = SampleRate<>::FromSi(std::sqrt(low * high));
      const bool waits = predictor.PredictStep(tried).input_wait.si() > 0;
      (waits ? low : high) = tried.input_rate->si();
    }
    EXPECT_NEAR(limits.input_needed->si() / high, 1, 1e-9);
    // The closed forms are those of compute and exchange.
    plan.input_rate = std::nullopt;
    const ScalingLimits ever =
        FindScalingLimits(predictor, plan, kDevicesPerNode, {.most_workers = 16});
    EXPECT_FALSE(ever.input_needed.has_value());
    ASSERT_EQ(limits.closed.crossing.has_value(), ever.closed.crossing.has_value());
    if (ever.closed.crossing && ever.closed.crossing->exists()) {
      EXPECT_EQ(limits.closed.crossing->value(), ever.closed.crossing->value());
    }
  }
}

// On slower links the compressed step is the shorter one, on faster ones the whole.
TEST(Limits, CompressionPaysBelowItsRate) {
  const Predictor predictor = MakePredictor();
  for (const Compression& compression :
       {Compression{Compressor::kFp16}, Compression{Compressor::kInt8},
        Compression{Compressor::kTopK, 0.001}}) {
    for (const Placement& placement : {Placement{1, 1, 1, 1}, Placement{4, 4}}) {
      Plan plan = BasePlan();
      plan.placement = placement;
      plan.compress = compression;
      plan.compress_rate = GigabytesPerSecond(0.3);
      const ScalingLimits limits =
          FindScalingLimits(predictor, plan, placement.front(), {.most_workers = 8});
      ASSERT_TRUE(limits.compression_pays_below.has_value());
      const auto gain = [&](double times) {
        Plan tried = plan;
        tried.link.bandwidth = *limits.compression_pays_below * times;
        const Duration<> with = predictor.PredictStep(tried).total();
        tried.compress = {};
        return predictor.PredictStep(tried).total() / with;
      };
      EXPECT_GT(gain(0.99), 1);
      EXPECT_LT(gain(1.01), 1);
      // One level of rings has a closed form, of a hop; what hides leaves less to save.
      const bool one_level = placement.front() == 1;
      ASSERT_EQ(limits.closed.compression.has_value(), one_level);
      if (!one_level) continue;
      ASSERT_TRUE(limits.closed.compression->exists());
      Plan there = plan;
      there.link.bandwidth = *limits.compression_pays_below;
      const DataRate<> hop = predictor.Terms(there).node_hop.bandwidth;
      EXPECT_LT(hop, limits.closed.compression->value() * 1.02);
      // With nothing to hide behind they are one.
      plan.overlap = there.overlap = Overlap::kNone;
      const ScalingLimits bare =
          FindScalingLimits(predictor, plan, placement.front(), {.most_workers = 8});
      there.link.bandwidth = *bare.compression_pays_below;
      EXPECT_NEAR(predictor.Terms(there).node_hop.bandwidth / bare.closed.compression->value(), 1,
                  0.05);
    }
  }
}

// What compression saves is of the exchange: samples that come slowly make no step pay.
TEST(Limits, CompressionPaysWhereItDoesHoweverSlowlySamplesCome) {
  const Predictor predictor = MakePredictor();
  Plan plan = BasePlan();
  plan.placement = {1, 1, 1, 1};
  plan.compress = {Compressor::kInt8};
  plan.compress_rate = GigabytesPerSecond(0.3);
  const auto pays_below = [&] {
    return FindScalingLimits(predictor, plan, 1, {.most_workers = 8}).compression_pays_below;
  };
  const std::optional<DataRate<>> alone = pays_below();
  ASSERT_TRUE(alone);
  // Each worker's samples arrive in five times the step there.
  Plan there = plan;
  there.link.bandwidth = *alone;
  plan.input_rate = Samples(32.0) / (predictor.PredictStep(there).total() * 5.0);
  there.input_rate = plan.input_rate;
  ASSERT_GT(predictor.PredictStep(there).input_wait.si(), 0);
  const std::optional<DataRate<>> slowly = pays_below();
  ASSERT_TRUE(slowly);
  EXPECT_NEAR(*slowly / *alone, 1, 1e-9);
}

TEST(Limits, BackupWorkersAreFewerThanWorkers) {
  Plan plan = BasePlan();
  plan.placement = {4};
  plan.backup_workers = 2;
  const ScalingLimits limits =
      FindScalingLimits(MakePredictor(), plan, kDevicesPerNode, {.most_workers = 8});
  EXPECT_EQ(limits.curve.size(), 4U);
  EXPECT_EQ(limits.reference_workers, 4) << "the plan's own number";
  const auto said = [](const ScalingLimits& of, const std::string& text) {
    return std::any_of(of.flags.begin(), of.flags.end(), [&](const std::string& flag) {
      return flag.find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(said(limits, "of 2 workers or fewer all but one are backup workers, and not 2; a "));
  plan.backup_workers = 0;
  EXPECT_FALSE(said(FindScalingLimits(MakePredictor(), plan, kDevicesPerNode, {.most_workers = 8}),
                    "backup"));
}

// ---- Beyond the numbers that are all looked at.

TEST(Limits, FarNumbersAreFoundAsByLookingAtEach) {
  constexpr int kFar = 1500;
  const Predictor predictor = MakePredictor();
  int beyond = 0;
  for (const Strategy strategy : {Strategy::kRing, Strategy::kTree, Strategy::kHalvingDoubling,
                                  Strategy::kHierarchical, Strategy::kPsSync}) {
    for (const double rtt_ms : {0.0, 1.0, 3.0}) {
      Plan plan = BasePlan(strategy, strategy == Strategy::kPsSync ? 64 : 0);
      plan.accumulation_steps = 4;
      plan.link.rtt = Milliseconds(rtt_ms);
      const ScalingLimits limits =
          FindScalingLimits(predictor, plan, kDevicesPerNode, {.most_workers = kFar});
      const double single = Throughput(predictor, On(plan, 1));
      int last_uncrossed = 0;
      int last_efficient = 1;
      double best = 0;
      for (int w = 1; w <= kFar; ++w) {
        const StepTime<double> step = predictor.PredictStep(On(plan, w));
        const double throughput = On(plan, w).global_batch() / step.total().in(kSeconds);
        if (!(step.exposed() > step.compute())) last_uncrossed = w;
        if (throughput >= 0.5 * single * w) last_efficient = w;
        best = std::max(best, throughput);
      }
      const auto near = [&](const std::optional<int>& found, int exact, const char* what) {
        ASSERT_TRUE(found.has_value()) << what;
        // Beyond the first 256 the neighbours on partly filled nodes may be missed.
        const int tolerance = exact <= kEveryWorkerTo ? 0 : kDevicesPerNode;
        EXPECT_NEAR(*found, exact, tolerance) << what << " of " << StrategyName(strategy);
        beyond += exact > kEveryWorkerTo ? 1 : 0;
      };
      if (last_uncrossed < kFar) near(limits.crossing, last_uncrossed + 1, "crossing");
      EXPECT_EQ(limits.crossing.has_value(), last_uncrossed < kFar);
      if (last_efficient < kFar) near(limits.half_efficiency, last_efficient + 1, "half");
      EXPECT_EQ(limits.half_efficiency.has_value(), last_efficient < kFar);
      EXPECT_NEAR(limits.best_throughput.in(kSamplesPerSecond), best, 1e-3 * best);
      EXPECT_EQ(limits.curve.size(), 12U) << "powers of two and the last";
    }
  }
  EXPECT_GT(beyond, 0) << "some answer lies beyond";
}

TEST(Limits, AMillionWorkersAreAnsweredAtOnce) {
  const Predictor predictor = MakePredictor();
  for (const Strategy strategy : {Strategy::kAuto, Strategy::kPsSync, Strategy::kPsAsync}) {
    const Plan plan = BasePlan(strategy, UsesServers(strategy) ? 100 : 0);
    const auto start = std::chrono::steady_clock::now();
    const ScalingLimits limits = FindScalingLimits(
        predictor, plan, 1, {.most_workers = 1'000'000, .strong_global_batch = 1'000'000});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::cout << StrategyName(strategy) << ": " << seconds.count() << " s\n";
    EXPECT_LT(seconds.count(), 60) << "every number would take hours";
    EXPECT_EQ(limits.curve.back().workers, 1'000'000);
    EXPECT_EQ(limits.curve.size(), 21U);
  }
}

// ---- With a number of workers that is given.

TEST(Limits, AccumulationIsTheLeastThatReachesTheTarget) {
  const Predictor predictor = MakePredictor();
  Plan plan = BasePlan();
  plan.placement = {4, 4};
  const auto share = [&](int a) {
    Plan p = plan;
    p.accumulation_steps = a;
    return a * (predictor.Terms(p).micro / predictor.PredictStep(p).total());
  };
  int before = 0;
  for (const double target : {0.5, 0.8, 0.9, 0.95}) {
    LimitsOptions options;
    options.most_workers = 8;
    options.target_efficiency = target;
    const ScalingLimits limits = FindScalingLimits(predictor, plan, kDevicesPerNode, options);
    EXPECT_EQ(limits.reference_workers, 8);
    ASSERT_TRUE(limits.accumulation.has_value());
    const int a = *limits.accumulation;
    EXPECT_GE(share(a), target);
    if (a > 1) {
      EXPECT_LT(share(a - 1), target);
    }
    EXPECT_GE(a, before);
    before = a;
    // The closed form takes the wait for stragglers as it is with one micro-step; it grows.
    ASSERT_TRUE(limits.closed.accumulation && limits.closed.accumulation->exists());
    EXPECT_LE(limits.closed.accumulation->value(), a);
    EXPECT_GE(limits.closed.accumulation->value(), 0.5 * a);
  }
  EXPECT_GT(before, 2);
}

TEST(Limits, OtherNumbersOfBucketsBringAPerCentAtMost) {
  const Predictor predictor = MakePredictor();
  for (const Strategy strategy : {Strategy::kRing, Strategy::kTree, Strategy::kPsSync}) {
    Plan plan = BasePlan(strategy, strategy == Strategy::kPsSync ? 2 : 0);
    plan.placement = {4, 4, 4, 4};
    const ScalingLimits limits =
        FindScalingLimits(predictor, plan, kDevicesPerNode, {.most_workers = 16});
    ASSERT_TRUE(limits.buckets.has_value());
    ASSERT_TRUE(limits.closed.buckets.has_value());
    const int from = limits.buckets->from;
    const int to = limits.buckets->to.value_or(std::numeric_limits<int>::max());
    EXPECT_LE(from, to);
    const auto step = [&](DataSize<> cap) {
      plan.bucket = cap;
      return predictor.PredictStep(plan).total().in(kSeconds);
    };
    double shortest = 1e9;
    double fewer = 1e9;
    double at_from = 1e9;  // shortest of those with as many buckets
    double at_to = limits.buckets->to ? 1e9 : 0;
    for (double mib = 0.25; mib < 128; mib *= 1.1) {
      const double seconds = step(Mebibytes(mib));
      shortest = std::min(shortest, seconds);
      const auto count = static_cast<int>(MakeBuckets(predictor.workload(), Mebibytes(mib)).size());
      if (count < from) fewer = std::min(fewer, seconds);
      if (count == from) at_from = std::min(at_from, seconds);
      if (count == to) at_to = std::min(at_to, seconds);
    }
    std::cout << StrategyName(strategy) << ": " << from << " to " << to << ", closed form "
              << limits.closed.buckets->value() << "\n";
    EXPECT_LT(std::max(at_from, at_to), 1.02 * shortest) << StrategyName(strategy);
    EXPECT_GT(fewer, shortest) << StrategyName(strategy);
    EXPECT_LE(from, limits.closed.buckets->value()) << "an upper guide";
  }
}

// From the best cap on either side the steps are within 1 % as far as the ends, which are among
// them: of caps that are each smaller by the root of two.
TEST(Limits, TheEndsOfTheRangeOfBucketsAreInIt) {
  const Predictor predictor = MakePredictor();
  int ends = 0;
  for (const Strategy strategy : {Strategy::kRing, Strategy::kTree, Strategy::kPsSync}) {
    for (const double rtt_ms : {0.0, 2.0}) {
      SCOPED_TRACE(fmt::format("{}, {} ms", StrategyName(strategy), rtt_ms));
      Plan plan = BasePlan(strategy, strategy == Strategy::kPsSync ? 2 : 0);
      plan.placement = {4, 4, 4, 4};
      if (rtt_ms > 0) plan.link.rtt = Milliseconds(rtt_ms);
      const ScalingLimits limits =
          FindScalingLimits(predictor, plan, kDevicesPerNode, {.most_workers = 16});
      ASSERT_TRUE(limits.buckets);
      std::vector<int> counts;
      std::vector<double> steps_s;
      for (double pieces = 1; pieces <= 4096; pieces *= std::sqrt(2.0)) {
        plan.bucket = predictor.workload().gradient_bytes / pieces;
        counts.push_back(static_cast<int>(MakeBuckets(predictor.workload(), *plan.bucket).size()));
        steps_s.push_back(predictor.PredictStep(plan).total().in(kSeconds));
      }
      const auto best = static_cast<std::size_t>(std::min_element(steps_s.begin(), steps_s.end()) -
                                                 steps_s.begin());
      const auto within = [&](std::size_t i) { return steps_s[i] <= 1.01 * steps_s[best]; };
      std::size_t first = best;
      while (first > 0 && within(first - 1)) --first;
      std::size_t last = best;
      while (last + 1 < steps_s.size() && within(last + 1)) ++last;
      EXPECT_EQ(limits.buckets->from, counts[first]);
      const bool ends_there = last + 1 < steps_s.size();
      ASSERT_EQ(limits.buckets->to.has_value(), ends_there);
      if (!ends_there) continue;
      ends += counts[last + 1] > counts[last] ? 1 : 0;
      EXPECT_EQ(limits.buckets->to, counts[last]);
    }
  }
  EXPECT_GT(ends, 0) << "or nothing tells the last one from the next";
}

TEST(Limits, MoreServersThanSufficeBringAPerCentAtMost) {
  const Predictor predictor = MakePredictor();
  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kPsAsync}) {
    Plan plan = BasePlan(strategy, 1);
    plan.placement = {1, 1, 1, 1, 1, 1, 1, 1};
    plan.server.sharding = Sharding::kEven;
    const ScalingLimits limits = FindScalingLimits(predictor, plan, 1, {.most_workers = 8});
    ASSERT_TRUE(limits.servers.has_value());
    ASSERT_TRUE(limits.closed.servers && limits.closed.servers->exists());
    const auto step = [&](int n) {
      plan.servers = n;
      return predictor.PredictStep(plan).total().in(kSeconds);
    };
    const int n = *limits.servers;
    double shortest = step(1);
    for (int more = 2; more < 1000; ++more) shortest = std::min(shortest, step(more));
    EXPECT_GT(n, 1);
    EXPECT_LE(step(n), 1.0101 * shortest);
    EXPECT_GT(step(n - 1), 1.0099 * shortest);
    // Synchronous: as many as balance the links. Whole servers, and what updates take.
    if (strategy == Strategy::kPsSync) {
      EXPECT_NEAR(limits.closed.servers->value(), n, 0.35 * n + 1);
    }
  }
}

// ---- Closed forms.

TEST(ClosedForms, EveryStrategyHasThem) {
  const Predictor predictor = MakePredictor();
  for (int i = 0; i < kStrategyCount; ++i) {
    const auto strategy = static_cast<Strategy>(i);
    Plan plan = BasePlan(strategy, UsesServers(strategy) || strategy == Strategy::kBytePs ? 2 : 0);
    const ScalingLimits limits =
        FindScalingLimits(predictor, plan, kDevicesPerNode, {.most_workers = 32});
    SCOPED_TRACE(StrategyName(strategy));
    const ClosedLimits& closed = limits.closed;
    ASSERT_TRUE(closed.ceiling && closed.half_ceiling && closed.half_efficiency);
    ASSERT_TRUE(closed.crossing && closed.strong_best_workers);
    EXPECT_EQ(closed.accumulation.has_value(), strategy != Strategy::kPsAsync);
    EXPECT_EQ(closed.half_ceiling->exists(), closed.ceiling->exists());
    EXPECT_EQ(closed.knee.has_value(), strategy == Strategy::kPsAsync);
    EXPECT_EQ(closed.servers.has_value(), UsesServers(strategy));
    // Which strategies have a ceiling and which have none.
    const bool ends = strategy == Strategy::kAllreduce || strategy == Strategy::kRing ||
                      strategy == Strategy::kHierarchical || UsesServers(strategy);
    if (strategy != Strategy::kAuto) {
      EXPECT_EQ(closed.ceiling->exists(), ends);
    }
  }
}

// Asynchronous workers that accumulate empty their queues: what one micro-step shows is not what
// many do, but for a worker by itself.
TEST(ClosedForms, AccumulationIsNotSaidOfQueuesThatEmpty) {
  const Predictor predictor = MakePredictor();
  Plan plan = BasePlan(Strategy::kPsAsync, 1);
  plan.link.bandwidth = GigabitsPerSecond(1.0);
  const auto exposed = [&](int accumulation) {
    Plan accumulating = plan;
    accumulating.accumulation_steps = accumulation;
    const Duration<> micro = predictor.Terms(accumulating).micro;
    return predictor.PredictStep(accumulating).total() - micro * (1.0 * accumulation);
  };
  for (const int workers : {1, 8}) {
    plan.placement = FillNodes(workers, 1);
    const ScalingLimits limits = FindScalingLimits(predictor, plan, 1, {.most_workers = workers});
    ASSERT_EQ(limits.reference_workers, workers);
    ASSERT_TRUE(limits.accumulation.has_value());
    EXPECT_EQ(limits.closed.accumulation.has_value(), workers == 1);
    const double kept = exposed(*limits.accumulation) / exposed(1);
    if (workers == 1) {
      EXPECT_NEAR(kept, 1, 0.05);
      EXPECT_NEAR(limits.closed.accumulation->value(), *limits.accumulation,
                  1 + 0.05 * *limits.accumulation);
    } else {
      EXPECT_LT(kept, 0.7);
    }
  }
}

// How much crosses a core changes where a switch is full: what is found is not what a law says.
TEST(ClosedForms, AreNotSaidOfAnOversubscribedCore) {
  const Predictor predictor = MakePredictor();
  Plan plan = BasePlan();
  plan.link.nodes_per_switch = 4;
  for (const double oversubscription : {1.0, 8.0}) {
    plan.link.oversubscription = oversubscription;
    const ScalingLimits limits =
        FindScalingLimits(predictor, plan, kDevicesPerNode, {.most_workers = kMost});
    EXPECT_EQ(limits.closed.half_efficiency.has_value(), oversubscription == 1);
    EXPECT_EQ(limits.closed.ceiling.has_value(), oversubscription == 1);
  }
}

TEST(ClosedForms, ServersCapTheThroughput) {
  const Truth truth = PlausibleTruth();
  const Predictor predictor = MakePredictor(truth);
  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kPsAsync}) {
    Plan plan = BasePlan(strategy, 2);
    plan.accumulation_steps = 16;
    plan.server.sharding = Sharding::kEven;
    plan.server_link.bandwidth = GigabitsPerSecond(1.0);
    const ScalingLimits limits =
        FindScalingLimits(predictor, plan, kDevicesPerNode, {.most_workers = 256});
    // Each worker adds a transfer of each phase and m/n bytes of it, of the payload's share of the
    // line rate; asynchronous workers push while others pull, so that only one direction counts,
    // and their servers' processors work beside the links.
    const double server_bytes_per_s = 1e9 / 8 * kSegmentBytes / kFrameBytes;
    const double gradient_bytes = predictor.workload().gradient_bytes.in(kBytes);
    const double of_bytes = gradient_bytes / (2 * server_bytes_per_s);
    const double calls =
        static_cast<double>(MakeBuckets(predictor.workload(), kServerBucket).size());
    const double a_worker = strategy == Strategy::kPsAsync
                                ? of_bytes
                                : 2 * (of_bytes + calls * truth.cluster.si[kTransferInitiation]);
    const double ceiling = 16 * 32 / a_worker;
    ASSERT_TRUE(limits.closed.ceiling && limits.closed.ceiling->exists());
    EXPECT_NEAR(limits.closed.ceiling->value().in(kSamplesPerSecond), ceiling, 1e-6 * ceiling);
    // The curve respects the cap, and comes close to it.
    for (const ScalingPoint& point : limits.curve) {
      EXPECT_LE(point.throughput.in(kSamplesPerSecond), ceiling * (1 + 1e-6)) << point.workers;
    }
    EXPECT_GT(limits.curve.back().throughput.in(kSamplesPerSecond), 0.9 * ceiling);
    ASSERT_GT(limits.half_ceiling.value_or(0), 1);
    EXPECT_GE(Throughput(predictor, On(plan, *limits.half_ceiling)), ceiling / 2);
    EXPECT_LT(Throughput(predictor, On(plan, *limits.half_ceiling - 1)), ceiling / 2);
  }
}

TEST(ClosedForms, PipelinedPhasesRaiseTheCeilingButNotToTwice) {
  const Predictor predictor = MakePredictor();
  Plan plan = BasePlan(Strategy::kPsSync, 2);
  plan.server_link.bandwidth = GigabitsPerSecond(1.0);
  const auto limits = [&](bool pipelined) {
    plan.server.pipelined = pipelined;
    return FindScalingLimits(predictor, plan, kDevicesPerNode, {.most_workers = 256});
  };
  const ScalingLimits serial = limits(false);
  const ScalingLimits pipelined = limits(true);
  const double gain = pipelined.closed.ceiling->value() / serial.closed.ceiling->value();
  const double searched = pipelined.best_throughput / serial.best_throughput;
  std::cout << "pipelined phases: ceiling x " << gain << ", searched x " << searched << '\n';
  EXPECT_GT(gain, 1.2);
  EXPECT_LT(gain, 2);
  EXPECT_NEAR(searched, gain, 0.1 * gain);
}

// A world without what closed forms leave out: no stragglers, no crowding with more nodes, compute
// in proportion to the batch, a large model on flows that never bind.
Truth PlainTruth() {
  Truth truth = PlausibleTruth();
  truth.cluster.si[kFlowBandwidth] = 1e12;
  truth.cluster.si[kHopSpread] = 1e-4;
  truth.cluster.si[kHostContention] = 1e-4;
  truth.cluster.si[kOverlapContention] = 1e-4;
  for (auto& [name, workload] : truth.workloads) {
    workload.si[kStragglerSpread] = 1e-4;
    workload.si[kFixedTime] = workload.si[kFloorTime] = workload.si[kUpdateTime] = 1e-6;
  }
  return truth;
}

// What the bounds of queues say: half of the ceiling with one worker less than the knee, and half
// of what a worker does alone with twice as many as there.
TEST(ClosedForms, AsynchronousOnesGoByTheKnee) {
  const Predictor predictor = MakePredictor(PlainTruth());
  Plan plan = BasePlan(Strategy::kPsAsync, 2);
  plan.link.bandwidth = GigabitsPerSecond(10.0);
  plan.server_link.bandwidth = GigabitsPerSecond(10.0);
  const ClosedLimits closed = FindScalingLimits(predictor, plan, 1, {.most_workers = 64}).closed;
  ASSERT_TRUE(closed.knee && closed.half_ceiling && closed.half_efficiency);
  const double knee = closed.knee->value();
  ASSERT_GT(knee, 2.5);
  ASSERT_LT(knee, 64);
  EXPECT_NEAR(closed.half_ceiling->value() / (knee - 1), 1, 0.01);
  EXPECT_NEAR(closed.half_efficiency->value() / (2 * knee), 1, 0.01);
}

constexpr int kFar = 20'000;  // as far as is searched

// How many comparisons it is: none where the closed form lies beyond what is searched.
int MeetsSearch(const std::string& what, const ClosedForm<double>& closed,
                const std::optional<int>& searched, int devices) {
  std::cout << what << " " << (closed->exists() ? closed->value() : -1) << " searched "
            << searched.value_or(-1) << '\n';
  if (!closed->exists() || closed->value() > kFar) return 0;
  EXPECT_TRUE(searched.has_value()) << what;
  // Whole nodes, what one step up to another node costs, and buckets that are not equal.
  EXPECT_NEAR(closed->value(), searched.value_or(0), 0.15 * closed->value() + devices) << what;
  return 1;
}

TEST(ClosedForms, MeetTheSearchWhereNothingIsLeftOut) {
  const Predictor predictor = MakePredictor(PlainTruth());
  struct {
    Strategy strategy;
    double rtt_ms;
    double bandwidth_gbit;
  } cases[] = {{Strategy::kRing, 0.2, 10},      {Strategy::kRing, 2, 1},
               {Strategy::kAllreduce, 0.5, 10}, {Strategy::kHierarchical, 0.2, 10},
               {Strategy::kHierarchical, 1, 1}, {Strategy::kPsSync, 0.1, 10},
               {Strategy::kPsSync, 1, 1}};
  int compared = 0;
  for (const auto& c : cases) {
    for (const int devices : {1, 4}) {
      for (const Overlap overlap : {Overlap::kNone, Overlap::kPNorm, Overlap::kBuckets}) {
        Plan plan = BasePlan(c.strategy, c.strategy == Strategy::kPsSync ? 4 : 0);
        plan.overlap = overlap;
        plan.server.sharding =
            c.strategy == Strategy::kPsSync ? Sharding::kEven : Sharding::kTensor;
        plan.link.bandwidth = GigabitsPerSecond(c.bandwidth_gbit);
        plan.link.rtt = Milliseconds(c.rtt_ms);
        const ScalingLimits limits = FindScalingLimits(
            predictor, plan, devices, {.most_workers = kFar, .strong_global_batch = 1'000'000});
        const std::string where =
            fmt::format("{} {} ms, {} Gbit/s, {} a node, {}", StrategyName(c.strategy), c.rtt_ms,
                        c.bandwidth_gbit, devices, kOverlapNames[static_cast<int>(overlap)]);
        const auto compare = [&](const char* what, const ClosedForm<double>& closed,
                                 const std::optional<int>& searched) {
          compared += MeetsSearch(where + ": " + what, closed, searched, devices);
        };
        compare("crossing", limits.closed.crossing, limits.crossing);
        compare("half efficiency", limits.closed.half_efficiency, limits.half_efficiency);
        compare("half ceiling", limits.closed.half_ceiling, limits.half_ceiling);
        // The optimum is flat: its step counts.
        const ClosedForm<double>& best = limits.closed.strong_best_workers;
        if (!best->exists() || best->value() > kFar) continue;
        Plan share = plan;
        const int w = std::max(1, static_cast<int>(std::lround(best->value())));
        share.placement = FillNodes(w, devices);
        const int per_worker = 1 + (1'000'000 - 1) / w;
        share.accumulation_steps = std::max(1, 1 + (per_worker - 1) / plan.local_batch);
        share.local_batch = 1 + (per_worker - 1) / share.accumulation_steps;
        const double step = predictor.PredictStep(share).total() / limits.strong_best_step;
        std::cout << "    strong " << w << " searched " << limits.strong_best_workers << ", step x "
                  << step << '\n';
        EXPECT_LT(step, 1.1);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 60);
}

// Rings between nodes that set the pace end the scaling of a model that is shared out within nodes.
TEST(ClosedForms, MeetTheSearchOfNodesThatShareTheModelOut) {
  const Predictor predictor = MakePredictor(PlainTruth());
  int compared = 0;
  for (const int devices : {1, 4}) {
    for (const Overlap overlap : {Overlap::kNone, Overlap::kBuckets}) {
      for (const double gbit : {1.0, 10.0}) {
        Plan plan = BasePlan();
        plan.shard = Shard::kHybrid;
        plan.overlap = overlap;
        plan.link.bandwidth = GigabitsPerSecond(gbit);
        plan.link.rtt = Milliseconds(0.5);
        const ScalingLimits limits =
            FindScalingLimits(predictor, plan, devices, {.most_workers = kFar});
        const std::string where = fmt::format("{} a node, {} Gbit/s, {}", devices, gbit,
                                              kOverlapNames[static_cast<int>(overlap)]);
        const auto compare = [&](const char* what, const ClosedForm<double>& closed,
                                 const std::optional<int>& searched) {
          compared += MeetsSearch(where + ": " + what, closed, searched, devices);
        };
        compare("crossing", limits.closed.crossing, limits.crossing);
        compare("half efficiency", limits.closed.half_efficiency, limits.half_efficiency);
        EXPECT_FALSE(limits.closed.accumulation.has_value());
      }
    }
  }
  EXPECT_GT(compared, 8);
}

TEST(ClosedForms, NothingEndsWithoutCommunication) {
  const ScalingLimits limits = FindScalingLimits(MakePredictor(), BasePlan(Strategy::kNone),
                                                 kDevicesPerNode, {.most_workers = 4});
  EXPECT_FALSE(limits.closed.ceiling->exists());
  EXPECT_FALSE(limits.closed.crossing->exists());
  EXPECT_FALSE(limits.closed.half_efficiency->exists());
  EXPECT_FALSE(limits.closed.buckets.has_value());
  EXPECT_FALSE(limits.closed.servers.has_value());
}

}  // namespace
}  // namespace stepcast
