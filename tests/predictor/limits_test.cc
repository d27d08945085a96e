// Where scaling ends, against a search by hand and against the closed forms.
#include "predictor/search/limits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "data/workloads/catalog.h"
#include "model/network/transport.h"
#include "predictor/search/placement.h"
#include "tests/calibrate/synthetic_runs.h"

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
    const ScalingLimits limits = FindScalingLimits(predictor, plan, kDevicesPerNode, kMost);
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

TEST(Limits, WeakScalingAgreesWithASearchByHand) {
  const Predictor predictor = MakePredictor();
  int worth_it = 0;
  int crossing = 0;
  int half = 0;
  for (const Plan& plan : Plans()) {
    const ScalingLimits limits = FindScalingLimits(predictor, plan, kDevicesPerNode, kMost);
    const double single = Throughput(predictor, On(plan, 1));
    std::optional<int> first_faster;
    std::optional<int> first_crossing;
    std::optional<int> half_from;
    int best = 1;
    for (int w = 1; w <= kMost; ++w) {
      const StepTime<double> step = predictor.PredictStep(On(plan, w));
      const double throughput = Throughput(predictor, On(plan, w));
      if (w > 1 && throughput > single && !first_faster) first_faster = w;
      if (step.exposed() > step.compute() && !first_crossing) first_crossing = w;
      if (throughput > Throughput(predictor, On(plan, best))) best = w;
    }
    for (int w = kMost; w >= 1 && Throughput(predictor, On(plan, w)) < 0.5 * single * w; --w) {
      half_from = w;
    }
    EXPECT_EQ(limits.worth_it, first_faster);
    EXPECT_EQ(limits.crossing, first_crossing);
    EXPECT_EQ(limits.half_efficiency, half_from);
    EXPECT_EQ(limits.best_workers, best);
    EXPECT_EQ(limits.weak_binding.part, FindBinding(predictor.Predict(On(plan, kMost))).part);
    worth_it += first_faster.has_value() ? 1 : 0;
    crossing += first_crossing.has_value() ? 1 : 0;
    half += half_from.has_value() ? 1 : 0;
  }
  // The plans cover both answers to each question.
  const int all = static_cast<int>(Plans().size());
  EXPECT_GT(worth_it, 0);
  EXPECT_GT(crossing, 0);
  EXPECT_LT(crossing, all);
  EXPECT_GT(half, 0);
  EXPECT_LT(half, all);
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
      FindScalingLimits(predictor, plan, kDevicesPerNode, 256).half_efficiency;
  ASSERT_TRUE(half.has_value());
  EXPECT_GT(*half, 12);
  EXPECT_GE(efficiency(*half - 1), 0.5);
  for (int w = *half; w <= 256; ++w) EXPECT_LT(efficiency(w), 0.5) << w;
}

TEST(Limits, StrongScalingIsFastestWhereItSays) {
  const Predictor predictor = MakePredictor();
  for (const int samples : {24, 256, 1000}) {
    const ScalingLimits limits =
        FindScalingLimits(predictor, BasePlan(), kDevicesPerNode, kMost, samples);
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

TEST(Limits, StrongScalingIsByDefaultTheStepOfAFullNode) {
  Plan plan = BasePlan();
  plan.accumulation_steps = 3;
  EXPECT_EQ(FindScalingLimits(MakePredictor(), plan, kDevicesPerNode, 8).strong_global_batch,
            32 * 3 * kDevicesPerNode);
}

TEST(Limits, OneWorkerIsALimitToo) {
  const ScalingLimits limits = FindScalingLimits(MakePredictor(), BasePlan(), kDevicesPerNode, 1);
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
  const ScalingLimits with = FindScalingLimits(predictor, plan, 1, 8);
  Plan stated = BasePlan();
  stated.link.bandwidth = GigabitsPerSecond(0.1);
  const ScalingLimits same = FindScalingLimits(predictor, stated, 1, 8);
  for (std::size_t i = 0; i < with.curve.size(); ++i) {
    EXPECT_NEAR(with.curve[i].step_time / same.curve[i].step_time, 1, 1e-9);
  }
}

// ---- Closed forms.

TEST(ClosedForms, ServersCapTheThroughput) {
  Truth truth = PlausibleTruth();
  const Predictor predictor = MakePredictor(truth);
  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kPsAsync}) {
    Plan plan = BasePlan(strategy, 2);
    plan.accumulation_steps = 2;
    plan.server_link.bandwidth = GigabitsPerSecond(1.0);
    const ScalingLimits limits = FindScalingLimits(predictor, plan, kDevicesPerNode, 256);
    // a b n B_s / 2m, of the payload's share of the line rate; asynchronous workers push while
    // others pull, so that both directions of the links are used: a b n B_s / m.
    const double server_bytes_per_s = 1e9 / 8 * kSegmentBytes / kFrameBytes;
    const double gradient_bytes = predictor.workload().gradient_bytes.in(kBytes);
    const double directions = strategy == Strategy::kPsAsync ? 2 : 1;
    const double ceiling = 2 * 32 * 2 * server_bytes_per_s / (2 * gradient_bytes) * directions;
    ASSERT_TRUE(limits.server_ceiling.has_value());
    EXPECT_NEAR(limits.server_ceiling->in(kSamplesPerSecond), ceiling, 1e-9 * ceiling);
    // a t n B_s / 2m.
    const double compute_s = predictor.PredictStep(On(plan, 1)).compute().in(kSeconds);
    EXPECT_NEAR(limits.server_half_workers.value(),
                compute_s * 2 * server_bytes_per_s / (2 * gradient_bytes), 1e-9);
    // The curve respects the cap, and comes close to it.
    for (const ScalingPoint& point : limits.curve) {
      EXPECT_LE(point.throughput.in(kSamplesPerSecond), ceiling * (1 + 1e-9)) << point.workers;
    }
    EXPECT_GT(limits.curve.back().throughput.in(kSamplesPerSecond), 0.9 * ceiling);
    EXPECT_FALSE(limits.ring_best_workers.has_value());
  }
}

TEST(ClosedForms, LatencyEndsTheRing) {
  const Truth truth = PlausibleTruth();
  const Predictor predictor = MakePredictor(truth);
  for (const Strategy strategy : {Strategy::kRing, Strategy::kAllreduce}) {
    Plan plan = BasePlan(strategy);
    plan.link.rtt = Milliseconds(2.0);
    const ScalingLimits limits = FindScalingLimits(predictor, plan, kDevicesPerNode, 4);
    // The work of one full node, which strong scaling shares out.
    const double compute_s =
        kDevicesPerNode * predictor.PredictStep(On(plan, 1)).compute().in(kSeconds);
    const double alpha_s = truth.cluster.si[kLinkLatency] + 1e-3;  // half of the round trip
    EXPECT_NEAR(limits.ring_best_workers.value(), std::sqrt(compute_s / (2 * alpha_s)), 1e-6);
    EXPECT_FALSE(limits.server_ceiling.has_value());
    EXPECT_FALSE(limits.server_half_workers.has_value());
  }
}

TEST(ClosedForms, OthersHaveNone) {
  for (const Strategy strategy : {Strategy::kTree, Strategy::kHierarchical, Strategy::kNone}) {
    const ScalingLimits limits =
        FindScalingLimits(MakePredictor(), BasePlan(strategy), kDevicesPerNode, 4);
    EXPECT_FALSE(limits.ring_best_workers.has_value());
    EXPECT_FALSE(limits.server_ceiling.has_value());
  }
}

}  // namespace
}  // namespace stepcast
