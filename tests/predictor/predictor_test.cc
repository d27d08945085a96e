// The facade: what it answers, with what certainty, and what it refuses to answer.
#include "predictor/predictor.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "data/io/machines.h"
#include "data/workloads/catalog.h"
#include "model/compute/sheet_compute.h"
#include "model/statistics/normal.h"
#include "model/step/slow_ends.h"
#include "predictor/binding.h"
#include "predictor/compiled_plan.h"
#include "predictor/explanation.h"
#include "predictor/prediction_fields.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

Workload Resnet50() { return *FindWorkload("resnet50"); }

Workload WithoutLayers() {
  Workload workload;
  workload.name = "mine";
  workload.parameters = workload.trainable_parameters = 1'000'000;
  workload.gradient_bytes = Megabytes(4.0);
  return workload;
}

Predictor Calibrated(double log_sd = 0.02) {
  return {CalibratedCluster(PlausibleTruth(), log_sd), Resnet50(), T4()};
}

Plan ServerPlan(Strategy strategy, int workers, int servers) {
  Plan plan = AllreducePlan(Placement(static_cast<std::size_t>(workers), 1), 32);
  plan.strategy = strategy;
  plan.servers = servers;
  return plan;
}

// One plan of each kind.
std::vector<Plan> Plans() {
  std::vector<Plan> plans;
  for (const Placement& placement :
       std::vector<Placement>{{1}, {4}, {1, 1}, {4, 4}, {4, 4, 2}, Placement(16, 4)}) {
    for (const Strategy strategy :
         {Strategy::kNone, Strategy::kAllreduce, Strategy::kRing, Strategy::kTree,
          Strategy::kHalvingDoubling, Strategy::kHierarchical}) {
      for (const int accumulation : {1, 8}) {
        Plan plan = AllreducePlan(placement, 32);
        plan.strategy = strategy;
        plan.accumulation_steps = accumulation;
        plans.push_back(plan);
      }
    }
  }
  plans.push_back(ServerPlan(Strategy::kPsSync, 8, 2));
  plans.push_back(ServerPlan(Strategy::kPsAsync, 8, 2));
  plans.push_back(ServerPlan(Strategy::kPsSync, 1, 1));
  Plan lossy = AllreducePlan({1, 1, 1}, 32);
  lossy.link.bandwidth = GigabitsPerSecond(1.0);
  lossy.link.rtt = Milliseconds(2.0);
  lossy.link.loss = 0.01;
  lossy.bucket = Mebibytes(4.0);
  plans.push_back(lossy);
  for (const double rate : {10.0, 1e6}) {
    plans.push_back(AllreducePlan({2, 2}, 32));
    plans.back().input_rate = SampleRate<>::FromSi(rate);
    plans.push_back(ServerPlan(Strategy::kPsAsync, 4, 2));
    plans.back().input_rate = SampleRate<>::FromSi(rate);
  }
  return plans;
}

bool HasFlag(const Prediction& prediction, const std::string& fragment) {
  return std::any_of(
      prediction.flags.begin(), prediction.flags.end(),
      [&](const std::string& flag) { return flag.find(fragment) != std::string::npos; });
}

// ---- The number.

TEST(Predictor, IsTheFormulaAtTheCalibratedValues) {
  const SyntheticProblem synthetic(PlausibleTruth());
  const Predictor predictor = Calibrated();
  for (const Plan& plan : Plans()) {
    // The synthetic runs have the default buckets of collectives.
    if (plan.bucket || UsesServers(plan.strategy)) continue;
    EXPECT_NEAR(predictor.Predict(plan).step_time / synthetic.TrueStep("resnet50", plan), 1, 1e-12);
  }
}

TEST(Predictor, WorkIsThreeForwardPassesOfASampleByTheStep) {
  Device device;
  device.name = kSyntheticDevice;
  device.fp32 = TeraflopPerSecond(20.0);
  const Workload workload = *FindWorkload("resnet50");
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), workload, device);
  Plan plan = AllreducePlan({1, 1}, 32);
  const Prediction p = predictor.Predict(plan);
  ASSERT_TRUE(p.work);
  const double flop = 3 * workload.forward_flop().si() * plan.local_batch;
  EXPECT_NEAR(p.work->rate.si(), flop / p.step_time.in(kSeconds), 1e-9 * p.work->rate.si());
  EXPECT_NEAR(p.work->of_peak.value(), p.work->rate.si() / 20e12, 1e-12);
  // A peak of another precision is none, and slow nodes may be of other devices.
  Workload narrow = workload;
  narrow.precision = Precision::kBf16;
  const Predictor of_narrow(CalibratedCluster(PlausibleTruth()), narrow, device);
  EXPECT_FALSE(of_narrow.Predict(plan).work->of_peak);
  plan.slow_nodes = 1;
  plan.slow_speed = 0.5;
  EXPECT_FALSE(predictor.Predict(plan).work->of_peak);
  // Of a network that is known by its size alone nobody knows the products.
  const Predictor of_size(CalibratedCluster(PlausibleTruth()), *FindWorkload("message_1000000"),
                          device);
  EXPECT_FALSE(of_size.Predict(AllreducePlan({1, 1}, 32)).work);
}

// A wide interval ends where the device would be at its peak, and a compiled plan's there too.
TEST(Predictor, NoStepIsQuickerThanAtTheDevicesPeak) {
  Workload workload = *FindWorkload("llama2_7b@512");
  workload.precision = Precision::kFp16;
  Device device = T4();
  device.fp16 = TeraflopPerSecond(65.0);
  const Predictor predictor(Cluster(), workload, device, "t4");
  Plan plan;
  plan.placement = {1};
  plan.local_batch = 64;
  plan.accumulation_steps = 3;
  const Prediction p = predictor.Predict(plan);
  const double least = SheetCompute(workload, device).LeastOfASample().si() * 64 * 3;
  EXPECT_DOUBLE_EQ(p.low.si(), least);
  EXPECT_LT(p.step_time.si() / NinetyPercentFactor(p.log_sd), least) << "the width alone";
  EXPECT_LT(p.low, p.step_time);
  const CompiledPlan compiled(predictor, plan);
  EXPECT_NEAR(compiled.Predict(QueryOf(plan)).low.si(), least, 1e-12 * least);
}

// Who states a fast link and no transport is told what RDMA would make of it.
TEST(Predictor, SaysWhatRdmaMakesOfAFastLink) {
  const Workload workload = *FindWorkload("bert_base");
  const Predictor predictor(Cluster(), workload, T4(), "t4");
  Plan plan;
  plan.placement = {1, 1, 1, 1};
  plan.local_batch = 2;
  const auto said = [&](const Predictor& of) {
    const std::vector<std::string> flags = of.Predict(plan).flags;
    return std::count_if(flags.begin(), flags.end(), [](const std::string& flag) {
      return flag.find("--transport rdma") != std::string::npos;
    });
  };
  plan.link.bandwidth = GigabitsPerSecond(200.0);
  EXPECT_EQ(said(predictor), 1);
  plan.link.transport = Transport::kTcp;
  EXPECT_EQ(said(predictor), 0) << "it is stated";
  plan.link.transport.reset();
  plan.link.congestion_control = CongestionControl::kCubic;
  EXPECT_EQ(said(predictor), 0) << "so is a matter of TCP";
  plan.link.congestion_control.reset();
  plan.link.bandwidth = GigabitsPerSecond(10.0);
  EXPECT_EQ(said(predictor), 0) << "few such cards do";
}

TEST(Predictor, PartsSumToTheStep) {
  const Predictor predictor = Calibrated();
  for (const Plan& plan : Plans()) {
    const Prediction p = predictor.Predict(plan);
    const StepTime<double>& b = p.breakdown;
    double sum = 0;
    for (const Duration<> part : {b.forward, b.backward, b.update, b.exposed_latency,
                                  b.exposed_transfer, b.straggler_wait, b.input_wait}) {
      EXPECT_GE(part.si(), 0);
      sum += part.in(kSeconds);
    }
    EXPECT_NEAR(sum, p.step_time.in(kSeconds), 1e-12 * sum);
    EXPECT_GE(p.idle_ratio(), -1e-12);
    EXPECT_LT(p.idle_ratio(), 1);
    EXPECT_NEAR(p.throughput.in(kSamplesPerSecond)*sum, plan.global_batch(),
                1e-9 * plan.global_batch());
    const StepTime<double> step = predictor.PredictStep(plan);
    EXPECT_EQ(step.total(), p.step_time) << "the short way is the same way";
    EXPECT_EQ(step.limiter, b.limiter);
  }
}

TEST(Predictor, BucketsArePartOfThePlan) {
  const Predictor predictor = Calibrated();
  Plan plan = AllreducePlan({1, 1}, 32);
  const Duration<> by_default = predictor.PredictStep(plan).total();
  plan.bucket = kDefaultBucket;
  EXPECT_EQ(predictor.PredictStep(plan).total(), by_default);
  plan.bucket = Gibibytes(1.0);
  EXPECT_GT(predictor.PredictStep(plan).total(), by_default) << "one bucket hides nothing";
}

// ---- Samples that arrive too slowly.

// The step, its bounds and its quantiles are each the larger of two: without the wait, and of the
// arrival, which scatters as steps do whose network has no part in it.
TEST(Input, EachBoundIsTheLargerOfTwo) {
  const Predictor predictor = Calibrated();
  for (const Strategy strategy : {Strategy::kRing, Strategy::kPsSync, Strategy::kPsAsync}) {
    Plan plan = AllreducePlan({2, 2, 2}, 32);
    plan.strategy = strategy;
    plan.servers = UsesServers(strategy) ? 2 : 0;
    const Prediction without = predictor.Predict(plan);
    const double factor = std::exp(kNinetyPercent * predictor.belief().ScatterAt(0));
    const double jitter =
        std::hypot(predictor.belief().ScatterAt(0), predictor.belief().JitterAt(0));
    for (const double times : {0.2, 0.99, 1.01, 1.2, 5.0}) {
      const Duration<> arrival = without.step_time * times;
      plan.input_rate = Samples(64.0) / arrival;
      const Prediction p = predictor.Predict(plan);
      EXPECT_NEAR(p.step_time / Max(without.step_time, arrival), 1, 1e-12);
      EXPECT_NEAR(p.low / Max(without.low, arrival / factor), 1, 1e-12);
      EXPECT_NEAR(p.high / Max(without.high, arrival * factor), 1, 1e-12);
      EXPECT_NEAR(std::log(p.high / p.step_time), kNinetyPercent * p.log_sd, 1e-12);
      EXPECT_NEAR(std::hypot(p.parameter_log_sd, p.scatter_log_sd, p.discrepancy_log_sd), p.log_sd,
                  1e-12);
      EXPECT_NEAR(p.p50 / Max(without.p50, arrival), 1, 1e-12);
      // The standard normal quantiles of 95 and 99 %.
      EXPECT_NEAR(p.p95 / Max(without.p95, arrival * std::exp(1.644854 * jitter)), 1, 1e-6);
      EXPECT_NEAR(p.p99 / Max(without.p99, arrival * std::exp(2.326348 * jitter)), 1, 1e-6);
      EXPECT_NEAR(p.throughput * p.step_time / Samples(192.0), 1, 1e-12);
      EXPECT_EQ(FindBinding(p).part == "input", times > 1);
      EXPECT_EQ(HasFlag(p, "sets the pace"), times < 1 && HasFlag(without, "sets the pace"));
    }
  }
}

// Asynchronous workers of two paces: the fast ones may wait where the slow ones have all samples.
TEST(Input, EachKindOfWorkersWaitsByItself) {
  const Predictor predictor = Calibrated();
  Plan plan = ServerPlan(Strategy::kPsAsync, 4, 2);
  plan.slow_nodes = 1;
  plan.slow_speed = 0.3;
  const Prediction without = predictor.Predict(plan);
  const AsyncServers<double> servers = *without.async_servers;
  ASSERT_GT(servers.slow_cycle, servers.fast_cycle * 1.5);
  const double factor = std::exp(kNinetyPercent * predictor.belief().ScatterAt(0));
  int longer_than_both = 0;
  for (const double times : {0.5, 1.01, 1.2, 1.5, 3.0, 9.0}) {
    const Duration<> arrival = servers.fast_cycle * times;
    plan.input_rate = Samples(32.0) / arrival;
    // Where all cycles take so many times as long.
    const auto step = [&](double longer, Duration<> late) {
      return 4 / (3 / Max(servers.fast_cycle * longer, late) +
                  1 / Max(servers.slow_cycle * longer, late));
    };
    const Prediction p = predictor.Predict(plan);
    EXPECT_NEAR(p.step_time / step(1, arrival), 1, 1e-12);
    EXPECT_NEAR(p.low / step(without.low / without.step_time, arrival / factor), 1, 1e-12);
    EXPECT_NEAR(p.high / step(without.high / without.step_time, arrival * factor), 1, 1e-12);
    EXPECT_NEAR(std::log(p.high / p.step_time), kNinetyPercent * p.log_sd, 1e-12);
    if (p.step_time > Max(without.step_time, arrival) * 1.001) ++longer_than_both;
  }
  EXPECT_GE(longer_than_both, 2);
}

// The rate from which on nobody waits, found by bisection: of workers of two paces the fast ones
// are the first to wait, and where slow nodes take other samples the later side may be another than
// the one whose samples are the last to arrive.
TEST(Input, IsNeededWhereTheFirstWorkerBeginsToWait) {
  const Predictor predictor = Calibrated();
  const auto slowed = [](Plan plan, double speed, std::optional<int> batch = std::nullopt) {
    plan.slow_nodes = 1;
    plan.slow_speed = speed;
    plan.slow_local_batch = batch;
    return plan;
  };
  const Plan asynchronous = ServerPlan(Strategy::kPsAsync, 4, 2);
  Plan bounded = slowed(asynchronous, 0.3);
  bounded.server.staleness_bound = 3;
  const Plan ring = AllreducePlan({2, 2, 2}, 32);
  const std::vector<Plan> plans = {ring,
                                   slowed(ring, 0.3),
                                   slowed(ring, 0.2, 30),
                                   slowed(ring, 0.9, 300),
                                   slowed(ring, 0.2, 8),
                                   asynchronous,
                                   slowed(asynchronous, 0.3),
                                   slowed(asynchronous, 0.9),
                                   bounded,
                                   slowed(ServerPlan(Strategy::kPsSync, 4, 2), 0.2, 20)};
  for (std::size_t at = 0; at < plans.size(); ++at) {
    SCOPED_TRACE(at);
    const Plan& plan = plans[at];
    double low = 1e-3;
    double high = 1e9;
    for (int i = 0; i < 200; ++i) {
      Plan tried = plan;
      tried.input_rate = SampleRate<>::FromSi(std::sqrt(low * high));
      const bool waits = predictor.PredictStep(tried).input_wait.si() > 0;
      (waits ? low : high) = tried.input_rate->si();
    }
    for (const double times : {0.1, 0.5, 0.9, 2.0}) {  // whatever there is now
      Plan asked = plan;
      asked.input_rate = SampleRate<>::FromSi(high * times);
      EXPECT_NEAR(predictor.InputNeeded(asked).si() / high, 1, 1e-9) << times;
    }
    EXPECT_NEAR(predictor.InputNeeded(plan).si() / high, 1, 1e-9);
  }
}

// Fast and slow workers that each cycle by themselves, some of them waiting: the cycles of all that
// end within a long time. What a cycle takes and the arrival of its samples are late together.
TEST(Input, QuantilesAreThoseOfWorkersThatWaitByThemselves) {
  const Predictor predictor = Calibrated();
  constexpr int kWorkers = 8;
  Plan plan = ServerPlan(Strategy::kPsAsync, kWorkers, 4);
  plan.slow_nodes = 1;
  plan.slow_speed = 0.1;
  const Prediction without = predictor.Predict(plan);
  const AsyncServers<double> servers = *without.async_servers;
  ASSERT_GT(servers.slow_cycle, servers.fast_cycle * 3);
  ASSERT_LT(servers.slow_updates, 0.045) << "p95 is a fast cycle unless those wait";
  const Belief& belief = predictor.belief();
  const double own = std::hypot(without.scatter_log_sd,
                                belief.JitterAt(without.breakdown.exposed() / without.step_time));
  const double late = std::hypot(belief.ScatterAt(0), belief.JitterAt(0));
  const double spread = PlausibleTruth().workloads.at("resnet50").straggler_spread() *
                        (predictor.Terms(plan).micro / without.step_time);
  for (const double times : {0.1, 0.2, 0.6, 0.9, 2.0}) {
    SCOPED_TRACE(times);
    const Duration<> arrival = servers.slow_cycle * times;
    plan.input_rate = Samples(32.0) / arrival;
    const Prediction p = predictor.Predict(plan);
    Noise normal(5);
    std::vector<double> cycles;
    for (int worker = 0; worker < kWorkers; ++worker) {
      const double mean = (worker == 0 ? servers.slow_cycle : servers.fast_cycle).si();
      for (double now = 0; now < 5'000 * servers.slow_cycle.si(); now += cycles.back()) {
        const double z = normal.Next();
        const double by_compute = z < 0 ? spread * z : std::log1p(spread * z);
        cycles.push_back(
            std::max(mean * std::exp(std::copysign(std::hypot(by_compute, own * z), z)),
                     arrival.si() * std::exp(late * z)));
      }
    }
    std::sort(cycles.begin(), cycles.end());
    const auto quantile = [&](double q) {
      return cycles[static_cast<std::size_t>(q * static_cast<double>(cycles.size()))];
    };
    EXPECT_NEAR(p.p50.si() / quantile(0.5), 1, 0.01);
    EXPECT_NEAR(p.p95.si() / quantile(0.95), 1, 0.01);
    EXPECT_NEAR(p.p99.si() / quantile(0.99), 1, 0.01);
    EXPECT_EQ(p.p95 > servers.slow_cycle * 0.8, times > 0.5) << "slow cycles are more than 5 %";
  }
}

TEST(Input, NamesWhatBinds) {
  const Predictor predictor = Calibrated();
  Plan plan = AllreducePlan({2, 2}, 32);
  plan.input_rate = Samples(64.0) / (predictor.PredictStep(plan).total() * 4.0);
  const Binding binding = FindBinding(predictor.Predict(plan));
  EXPECT_EQ(binding.part, "input");
  EXPECT_NEAR(binding.share, 0.75, 1e-12);
  EXPECT_EQ(binding.sentence, "The arrival of samples binds: 75 % of the step waits for it.");
}

// ---- The interval.

// No step is shorter than its compute, however little is known of the network.
TEST(Interval, EndsWhereTheComputeEnds) {
  const Truth truth = PlausibleTruth();
  Cluster cluster = CalibratedCluster(truth, 0.01);
  const auto row = static_cast<Eigen::Index>(kFlowBandwidth);
  cluster.calibration->log_covariance(row, row) = 4;
  const Prediction p = Predictor(cluster, Resnet50(), T4()).Predict(AllreducePlan({1, 1}, 4));
  const double symmetric = p.step_time / p.high * p.step_time.in(kSeconds);
  EXPECT_LT(symmetric, 0.5 * p.breakdown.compute().in(kSeconds)) << "or the case is none";
  EXPECT_GT(p.low, p.breakdown.compute() * 0.9);
  EXPECT_LT(p.low, p.breakdown.compute());
}

TEST(Interval, ContainsThePointAndIsSymmetricInTheLogarithm) {
  const Predictor predictor = Calibrated();
  for (const Plan& plan : Plans()) {
    const Prediction p = predictor.Predict(plan);
    EXPECT_LT(p.low, p.step_time);
    EXPECT_GT(p.high, p.step_time);
    EXPECT_NEAR(p.step_time / p.low, p.high / p.step_time, 1e-9);
    EXPECT_NEAR(std::log(p.high / p.step_time), 1.6448536 * p.log_sd, 1e-6);
  }
}

// What these parameters of the cluster make of a step: the model without a belief.
Duration<> StepWith(const Predictor& predictor, const Plan& plan, int column, double factor) {
  PlanParameters at = predictor.belief().ParametersAt(predictor.belief().SlowestOf(plan));
  at.cluster.si[static_cast<std::size_t>(column)] *= factor;
  if (column == kLinkBandwidth && at.cluster.node_link_si) *at.cluster.node_link_si *= factor;
  return EvaluateStep(predictor.Facts(plan), at.cluster, at.workload).total();
}

// An exchange that is hidden, and would be most of the step if its node were slow: its derivative
// is 0, and what is not known of the node is in the interval all the same.
TEST(Interval, ReachesTheSlowEndOfAPaceThatIsHardlyKnown) {
  Cluster cluster = CalibratedCluster(PlausibleTruth(), 0.01);
  cluster.calibration->range.max_nodes = cluster.calibration->range.max_devices_per_node = 1;
  const auto row = static_cast<Eigen::Index>(kHostBandwidth);
  cluster.calibration->parameters[kHostBandwidth].value = 10;
  cluster.calibration->log_covariance.row(row).setZero();
  cluster.calibration->log_covariance.col(row).setZero();
  const Plan plan = AllreducePlan({4}, 32);
  const Prediction known = Predictor(cluster, Resnet50(), T4()).Predict(plan);
  constexpr double kSd = 2;
  cluster.calibration->log_covariance(row, row) = kSd * kSd;
  const Predictor predictor(cluster, Resnet50(), T4());
  const Prediction p = predictor.Predict(plan);
  ASSERT_LT(p.log_sd, known.log_sd * 1.2) << "or the derivative tells it";
  const double factor = std::exp(kNinetyPercent * kSd);
  const double slow = std::log(StepWith(predictor, plan, kHostBandwidth, 1 / factor) / p.step_time);
  ASSERT_GT(slow, 0.2) << "or the case is none";
  const double above = std::log(p.high / p.step_time);
  EXPECT_GT(above, slow);
  EXPECT_NEAR(above, std::hypot(slow, kNinetyPercent * known.log_sd), 0.02);
  // A quicker node changes nothing, and the lower end is where it was.
  EXPECT_NEAR(std::log(p.step_time / p.low), kNinetyPercent * known.log_sd, 0.02);
  // Runs on several devices of a node exclude that it is slow, or there would be a derivative.
  for (int CalibratedRange::*most :
       {&CalibratedRange::max_devices_per_node, &CalibratedRange::max_nodes}) {
    Cluster told = cluster;
    told.calibration->range.*most = 4;
    const Prediction of_told = Predictor(told, Resnet50(), T4()).Predict(plan);
    EXPECT_NEAR(std::log(of_told.high / of_told.step_time), kNinetyPercent * of_told.log_sd, 1e-9);
  }
}

// Rings tell nothing of servers, nor TCP of RDMA: a pace that fitted runs did not use reaches its
// slow end as if there were no runs, and one that they used does not.
TEST(Interval, ReachesTheSlowEndOfWhatNoRunUsed) {
  Plan servers = ServerPlan(Strategy::kPsSync, 4, 4);
  Plan rdma = AllreducePlan({4, 4}, 32);
  rdma.link.transport = Transport::kRdma;
  for (const auto& [pace, plan] :
       {std::pair(kServerRate, servers), std::pair(kLinkBandwidth, rdma)}) {
    Cluster cluster = CalibratedCluster(PlausibleTruth(), 0);
    const auto row = static_cast<Eigen::Index>(pace);
    cluster.calibration->parameters[pace].value *= 4;  // it binds at its slow end alone
    constexpr double kSd = 1.5;
    cluster.calibration->log_covariance(row, row) = kSd * kSd;
    const auto above = [&](const std::set<CalibratedRange::Exchange>& exchanges) {
      cluster.calibration->range.exchanges = exchanges;
      const Prediction p = Predictor(cluster, Resnet50(), T4()).Predict(plan);
      EXPECT_NEAR(std::log(p.step_time / p.low), kNinetyPercent * p.log_sd, 1e-6);
      return std::log(p.high / p.step_time) - kNinetyPercent * p.log_sd;
    };
    EXPECT_GT(above({{Strategy::kRing, Transport::kTcp}}), 0.1) << plan.servers;
    EXPECT_NEAR(above({{plan.strategy, plan.link.transport.value_or(Transport::kTcp)}}), 0, 1e-9);
  }
}

// What the step is at the slow end takes the place of what the derivative makes of it; the lower
// end is the derivative's.
TEST(Interval, EndsWhereASlowPaceTakesTheStep) {
  for (const auto& [pace, log_sd] :
       {std::pair(kFlowBandwidth, 0.3), std::pair(kFlowBandwidth, 0.51),
        std::pair(kFlowBandwidth, 1.5), std::pair(kLinkBandwidth, 1.5)}) {
    Cluster cluster = CalibratedCluster(PlausibleTruth(), 0);
    cluster.calibration->range.max_nodes = 1;
    const auto row = static_cast<Eigen::Index>(pace);
    cluster.calibration->log_covariance(row, row) = log_sd * log_sd;
    const Predictor predictor(cluster, Resnet50(), T4());
    const Plan plan = AllreducePlan({4, 4}, 32);
    const Prediction p = predictor.Predict(plan);
    const Duration<> slow = StepWith(predictor, plan, pace, std::exp(-kNinetyPercent * log_sd));
    const double reached = std::log(slow / p.step_time) / kNinetyPercent;
    const double straight = kNinetyPercent * p.log_sd;
    const double at_end =
        kNinetyPercent * std::hypot(reached, p.scatter_log_sd, p.discrepancy_log_sd);
    ASSERT_GT(at_end, straight * 1.05) << log_sd << ", or the case is none";
    EXPECT_NEAR(std::log(p.high / p.step_time), at_end, 1e-6) << log_sd;
    if (p.low > p.breakdown.compute()) {
      EXPECT_NEAR(std::log(p.step_time / p.low), straight, 1e-6) << log_sd;
    }
  }
}

// A pace that is less than the derivative makes of it does not narrow the interval, and of several
// the slowest step takes the place of the most that a derivative tells.
TEST(Interval, AnEndNeverNarrows) {
  WorstEnd worst;
  EXPECT_EQ(worst.variance(), 0);
  worst.Include(0.6, Seconds(1.0), Seconds(1.2));
  EXPECT_EQ(worst.variance(), 0);
  worst.Include(-0.7, Seconds(1.0), Seconds(0.1));
  EXPECT_EQ(worst.variance(), 0) << "a slow pace that makes the step shorter";
  worst.Include(0.0, Seconds(1.0), Seconds(4.0));
  const double reached = std::log(4.0) / kNinetyPercent;
  EXPECT_NEAR(worst.variance(), reached * reached - 0.49, 1e-12);
  worst.Include(0.1, Seconds(1.0), Seconds(2.0));
  EXPECT_NEAR(worst.variance(), reached * reached - 0.49, 1e-12);
}

// A faster link makes no plan look much worse, whatever else is hardly known: of a network by its
// size alone compute is, and of no network how fast flows are. Steps that are shorter leave more to
// what derivatives tell at the centre, a quarter at most; by the sum of all slow ends plans looked
// up to three times as bad.
TEST(Interval, AFasterLinkHasHardlyAHigherEnd) {
  const Workload by_size = WorkloadOfSize("job", 50'000'000);
  for (const int nodes : {2, 4, 8}) {
    for (const double loss : {0.0, 1e-3}) {
      double before = std::numeric_limits<double>::infinity();
      for (const double rate : {0.5, 1.0, 2.0, 2.5, 3.0, 5.0, 10.0, 25.0, 100.0}) {
        Plan plan = AllreducePlan(Placement(static_cast<std::size_t>(nodes), 1), 8);
        plan.link.bandwidth = GigabitsPerSecond(rate);
        plan.link.rtt = Milliseconds(1.0);
        plan.link.loss = loss;
        const Prediction p = Predictor(SyntheticCluster(), by_size, T4()).Predict(plan);
        EXPECT_LE(p.high.si(), before * 1.25) << nodes << " nodes, " << rate << " Gbit/s, " << loss;
        before = p.high.si();
      }
    }
  }
}

// Behind a fast link a server sets the pace, whose derivative then tells all: the slow end of
// flows, or of hosts, that is quicker than the server's own adds nothing.
TEST(Interval, AFasterLinkToServersHasHardlyAHigherEnd) {
  Plan plan = ServerPlan(Strategy::kPsAsync, 2, 1);
  plan.local_batch = 1;
  const Predictor predictor(SyntheticCluster(), *FindWorkload("bert_base"), T4());
  double least = std::numeric_limits<double>::infinity();
  for (const double rate : {10.0, 14.0, 20.0, 40.0}) {
    plan.link.bandwidth = GigabitsPerSecond(rate);
    const double high = predictor.Predict(plan).high.si();
    EXPECT_LE(high, least * 1.1) << rate << " Gbit/s";
    least = std::min(least, high);
  }
}

// Nor has one that is faster than those of all runs, behind which runs saw nothing: where flows,
// hosts or servers take over from the link their derivatives jump, and their slow ends do not.
RC_GTEST_PROP(IntervalProperty, AFasterLinkThanAnyRunsHasHardlyAHigherEnd, ()) {
  Cluster cluster = CalibratedCluster(PlausibleTruth(), 0.05);
  CalibratedRange& range = cluster.calibration->range;
  const double fastest = *rc::gen::element(0.5, 1.0, 5.0);
  range.bandwidth = {GigabitsPerSecond(fastest), GigabitsPerSecond(fastest)};
  for (const ClusterParameter pace : {kFlowBandwidth, kHostBandwidth, kServerRate}) {
    // What such runs leave of a rate that they did not see: the prior, as far as above their link.
    const double times = *rc::gen::element(2.0, 5.0, 20.0);
    const double widest =
        std::min(kClusterParameterSpecs[pace].prior_log_sd, std::log(times) / kNinetyPercent);
    const double log_sd = 0.1 * *rc::gen::inRange(1, 11) * widest;
    const auto row = static_cast<Eigen::Index>(pace);
    cluster.calibration->parameters[pace].value =
        GigabitsPerSecond(fastest * times).si() / kClusterParameterSpecs[pace].si_per_unit;
    cluster.calibration->log_covariance(row, row) = log_sd * log_sd;
  }
  const Predictor predictor(cluster, Resnet50(), T4());
  Plan plan =
      *rc::gen::element(AllreducePlan({1, 1}, 32), AllreducePlan({4, 4}, 32),
                        AllreducePlan(Placement(8, 1), 8), ServerPlan(Strategy::kPsSync, 4, 2));
  double least = std::numeric_limits<double>::infinity();
  for (double rate = fastest / 4; rate < 1000; rate *= 1.3) {
    plan.link.bandwidth = GigabitsPerSecond(rate);
    const double high = predictor.Predict(plan).high.si();
    RC_ASSERT(high <= least * 1.25);
    least = std::min(least, high);
  }
}

TEST(Interval, WidensWithLessKnowledge) {
  const Predictor sure = Calibrated(0.005);
  const Predictor unsure = Calibrated(0.1);
  const Predictor ignorant(SyntheticCluster(), Resnet50(), T4());
  for (const Plan& plan : Plans()) {
    // How many samples arrive is a fact.
    if (sure.Predict(plan).breakdown.input_wait.si() > 0) continue;
    EXPECT_LT(sure.Predict(plan).log_sd, unsure.Predict(plan).log_sd);
    EXPECT_LT(unsure.Predict(plan).log_sd, ignorant.Predict(plan).log_sd);
    EXPECT_GE(sure.Predict(plan).log_sd, 0.03) << "one more step scatters as those before";
  }
}

// By the delta method: scatter and (d ln T / d ln value) x standard error, in square.
TEST(Interval, PropagatesEachParameter) {
  const Plan plan = AllreducePlan({4, 4}, 32);
  const Cluster base = CalibratedCluster(PlausibleTruth(), 0);
  const auto log_step = [&](std::size_t parameter, double factor) {
    Cluster cluster = base;
    cluster.calibration->parameters[parameter].value *= factor;
    return std::log(Predictor(cluster, Resnet50(), T4()).PredictStep(plan).total().in(kSeconds));
  };
  constexpr double kSd = 0.3;
  constexpr double kNudge = 1e-4;
  const double scatter = base.calibration->residual_log_sd;
  bool any_matters = false;
  for (std::size_t i = 0; i < base.calibration->parameters.size(); ++i) {
    Cluster cluster = base;
    const auto row = static_cast<Eigen::Index>(i);
    cluster.calibration->log_covariance(row, row) = kSd * kSd;
    const double slope =
        (log_step(i, std::exp(kNudge)) - log_step(i, std::exp(-kNudge))) / (2 * kNudge);
    any_matters = any_matters || std::abs(slope) > 0.1;
    EXPECT_NEAR(Predictor(cluster, Resnet50(), T4()).Predict(plan).log_sd,
                std::hypot(scatter, slope * kSd), 1e-4)
        << base.calibration->parameters[i].scope << " " << base.calibration->parameters[i].name;
  }
  EXPECT_TRUE(any_matters);
}

TEST(Interval, KnowsCorrelations) {
  const Plan plan = AllreducePlan({1}, 32);
  Cluster cluster = CalibratedCluster(PlausibleTruth(), 0.1);
  const double independent = Predictor(cluster, Resnet50(), T4()).Predict(plan).log_sd;
  std::vector<Eigen::Index> of_resnet50;
  for (std::size_t i = 0; i < cluster.calibration->parameters.size(); ++i) {
    if (cluster.calibration->parameters[i].scope == "workload resnet50 on t4") {
      of_resnet50.push_back(static_cast<Eigen::Index>(i));
    }
  }
  // What the fixed time gains the time of a sample loses: their sum is known better.
  const Eigen::Index fixed = of_resnet50.at(kFixedTime);
  const Eigen::Index sample = of_resnet50.at(kSampleTime);
  Eigen::MatrixXd& covariance = cluster.calibration->log_covariance;
  covariance(fixed, sample) = covariance(sample, fixed) = -0.009;
  EXPECT_LT(Predictor(cluster, Resnet50(), T4()).Predict(plan).log_sd, independent - 1e-4);
}

// ---- Flags: what a reader must know before trusting the number.

TEST(Flags, NoneWithinTheCalibratedRange) {
  const Prediction p = Calibrated().Predict(AllreducePlan({4, 4}, 32));
  EXPECT_TRUE(p.flags.empty()) << p.flags.front();
  EXPECT_EQ(p.compute_source, ComputeSource::kFitted);
}

TEST(Flags, UncalibratedAndDataSheet) {
  const Prediction p =
      Predictor(SyntheticCluster(), Resnet50(), T4()).Predict(AllreducePlan({1}, 32));
  EXPECT_TRUE(HasFlag(p, "not calibrated"));
  EXPECT_TRUE(HasFlag(p, "forecast from the data sheet"));
  EXPECT_EQ(p.compute_source, ComputeSource::kDataSheet);
}

// A peak of 65 TFLOP/s where the sheet states it; what it does not state is said to be assumed.
TEST(Flags, APrecisionWithoutAPeak) {
  Device t4 = T4();
  t4.fp16 = TeraflopPerSecond(65.0);
  const auto predict = [&](Precision precision) {
    Workload resnet = Resnet50();
    resnet.precision = precision;
    return Predictor(SyntheticCluster(), resnet, t4).Predict(AllreducePlan({1}, 32));
  };
  const char* const kAssumed = "the data sheet of t4 states no peak at ";
  const Prediction single = predict(Precision::kFp32);
  const Prediction half = predict(Precision::kFp16);
  EXPECT_FALSE(HasFlag(single, kAssumed));
  EXPECT_FALSE(HasFlag(half, kAssumed));
  EXPECT_LT(half.step_time.si(), 0.6 * single.step_time.si());
  EXPECT_TRUE(HasFlag(predict(Precision::kBf16), std::string(kAssumed) + "bf16: that of fp32"));
  const Prediction tf32 = predict(Precision::kTf32);
  EXPECT_TRUE(HasFlag(tf32, std::string(kAssumed) + "tf32"));
  EXPECT_EQ(tf32.step_time, single.step_time) << "as many bytes, and the same peak";
}

// Where nothing computes in 8 bits there is no such training.
TEST(Flags, EightBitsNeedUnitsForThem) {
  Workload bert = *FindWorkload("bert_base");
  const auto predictor = [&](Precision precision, const Device& device) {
    bert.precision = precision;
    return Predictor(SyntheticCluster(), bert, device);
  };
  EXPECT_TRUE(
      Says(ErrorOf([&] { predictor(Precision::kFp8, T4()); }),
           "precision: 'fp8' needs units that compute in 8 bits, and the data sheet of t4 "
           "states no peak of such; allowed: fp32, tf32, fp16, bf16, or a device with fp8"));
  Device narrow = T4();
  narrow.bf16 = TeraflopPerSecond(100.0);
  narrow.fp8 = TeraflopPerSecond(200.0);
  const Plan plan = AllreducePlan({1}, 32);
  const Prediction half = predictor(Precision::kBf16, narrow).Predict(plan);
  const Prediction eighth = predictor(Precision::kFp8, narrow).Predict(plan);
  EXPECT_FALSE(HasFlag(eighth, "states no peak"));
  EXPECT_NE(eighth.step_time, half.step_time);
  EXPECT_EQ(eighth.memory.total, half.memory.total);
}

// What was measured was measured in one precision: the data sheet tells what another changes, and
// batches and memory of the one say nothing of the other.
TEST(Flags, FittedComputeIsOfItsPrecision) {
  Workload half = Resnet50();
  half.precision = Precision::kFp16;
  const Plan plan = AllreducePlan({4, 4}, 32);
  const Prediction fitted = Calibrated().Predict(plan);
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), half, T4());
  const Prediction p = predictor.Predict(plan);
  EXPECT_EQ(p.compute_source, ComputeSource::kFromOtherTraining);
  EXPECT_LT(p.step_time, fitted.step_time);
  EXPECT_GT(p.log_sd, fitted.log_sd);
  EXPECT_FALSE(predictor.calibrated_batches().has_value());
  EXPECT_TRUE(
      HasFlag(p,
              "resnet50 was measured on t4 with precision fp32, not fp16: compute is taken "
              "from there, changed as the data sheet lets expect, good to a factor of 1.6"));
}

// A batch that fitted in 16 bits says nothing of 32.
TEST(Flags, MemoryThatFittedIsOfItsPrecision) {
  Workload half = Resnet50();
  half.precision = Precision::kFp16;
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  for (ParameterEstimate& e : cluster.calibration->parameters) {
    if (e.scope == "workload resnet50 on t4") e.scope = "workload resnet50 (fp16) on t4";
  }
  cluster.calibration->range.local_batch = {{"workload resnet50 (fp16) on t4", {8, 4096, 1}}};
  const Plan plan = AllreducePlan({1}, 4096);
  EXPECT_EQ(Predictor(cluster, half, T4()).Predict(plan).memory.verdict, MemoryVerdict::kFits);
  EXPECT_EQ(Predictor(cluster, Resnet50(), T4()).Predict(plan).memory.verdict,
            MemoryVerdict::kOutOfMemory);
}

// Without attention there is nothing to fuse.
TEST(Flags, AttentionThatIsFusedInNameAlone) {
  const char* const kNone = "attention of resnet50 is said to be fused, and none of its layers";
  const Plan plan = AllreducePlan({1}, 8);
  const auto fused = [&](const char* name, const Cluster& cluster) {
    Workload workload = *FindWorkload(name);
    workload.attention = AttentionForm::kFused;
    return Predictor(cluster, workload, T4()).Predict(plan);
  };
  EXPECT_TRUE(HasFlag(fused("resnet50", SyntheticCluster()), kNone));
  const Prediction bert = fused("bert_base", SyntheticCluster());
  EXPECT_FALSE(HasFlag(bert, "is said to be fused"));
  // One of its 12 blocks multiplies something else.
  Workload in_part = *FindWorkload("bert_base");
  in_part.attention = AttentionForm::kFused;
  for (Layer& layer : in_part.layers) {
    if (layer.name == "layer.0.attention.scores") layer.operation = BatchedProductOp{1, 1, 1, 1};
  }
  EXPECT_TRUE(HasFlag(Predictor(SyntheticCluster(), in_part, T4()).Predict(plan),
                      "attention of bert_base is said to be fused, and 22 of its 24 layers of "
                      "attention are such: the others run one by one"));
  const Prediction plain =
      Predictor(SyntheticCluster(), *FindWorkload("bert_base"), T4()).Predict(plan);
  EXPECT_LT(bert.step_time, plain.step_time);
  EXPECT_LT(bert.memory.activations, plain.memory.activations);
}

// Without attention there is nothing to select, and in part of BERT's it is another.
TEST(Flags, SelectiveRecomputationInNameAlone) {
  const Plan plan = AllreducePlan({1}, 8);
  const auto trained = [&](Workload workload, Recompute recompute) {
    workload.recompute = recompute;
    return Predictor(SyntheticCluster(), workload, T4()).Predict(plan);
  };
  const Prediction none = trained(Resnet50(), Recompute::kSelective);
  EXPECT_TRUE(HasFlag(none,
                      "attention of resnet50 is said to be recomputed, and none of its layers is "
                      "such attention: nothing changes"));
  EXPECT_EQ(none.step_time, trained(Resnet50(), Recompute::kNone).step_time);
  EXPECT_EQ(none.memory.total, trained(Resnet50(), Recompute::kNone).memory.total);
  EXPECT_FALSE(HasFlag(trained(Resnet50(), Recompute::kFull), "is said to be recomputed"));
  Workload bert = *FindWorkload("bert_base");
  const Prediction kept = trained(bert, Recompute::kNone);
  const Prediction selective = trained(bert, Recompute::kSelective);
  const Prediction full = trained(bert, Recompute::kFull);
  EXPECT_FALSE(HasFlag(kept, "recomputed"));
  EXPECT_FALSE(HasFlag(selective, "recomputed"));
  EXPECT_GT(selective.step_time, kept.step_time);
  EXPECT_LT(selective.step_time, full.step_time);
  EXPECT_LT(selective.memory.activations, kept.memory.activations);
  EXPECT_GT(selective.memory.activations, full.memory.activations);
  for (Layer& layer : bert.layers) {
    if (layer.name == "layer.0.attention.scores") layer.operation = BatchedProductOp{1, 1, 1, 1};
  }
  EXPECT_TRUE(HasFlag(trained(bert, Recompute::kSelective),
                      "attention of bert_base is said to be recomputed, and 22 of its 24 layers of "
                      "attention are such: the others keep what they compute"));
}

TEST(Flags, HybridSharesOnNodesOfOneDevice) {
  const auto shared = [](const Placement& placement, Shard shard) {
    Plan plan = AllreducePlan(placement, 8);
    plan.shard = shard;
    return Calibrated().Predict(plan);
  };
  const char* const kNothing = "nodes of one device share nothing out within them";
  const Prediction hybrid = shared({1, 1}, Shard::kHybrid);
  EXPECT_TRUE(HasFlag(hybrid, kNothing));
  EXPECT_EQ(hybrid.memory.total, shared({1, 1}, Shard::kNone).memory.total);
  EXPECT_FALSE(HasFlag(shared({2, 2}, Shard::kHybrid), kNothing));
  EXPECT_FALSE(HasFlag(shared({1, 1}, Shard::kParameters), kNothing));
}

// What changes nothing is no other training than that of the runs.
TEST(Flags, TrainingInNameAloneIsAsMeasured) {
  const Plan plan = AllreducePlan({1}, 8);
  Workload asked = Resnet50();
  asked.attention = AttentionForm::kFused;
  const Prediction p = Predictor(CalibratedCluster(PlausibleTruth()), asked, T4()).Predict(plan);
  const Prediction fitted = Calibrated().Predict(plan);
  EXPECT_TRUE(HasFlag(p, "nothing changes"));
  EXPECT_FALSE(HasFlag(p, "was measured on"));
  EXPECT_EQ(p.compute_source, ComputeSource::kFitted);
  EXPECT_EQ(p.step_time, fitted.step_time);
  EXPECT_EQ(p.low, fitted.low);
  EXPECT_EQ(p.high, fitted.high);
  EXPECT_EQ(p.memory.verdict, fitted.memory.verdict);
}

// Whatever else is recomputed, in whatever plan: the backward pass alone is longer.
TEST(Predictor, RecomputationMovesNoForwardPass) {
  for (const char* const name : {"resnet18", "gpt2", "vit_b_16"}) {
    Workload workload = *FindWorkload(name);
    const Predictor keeps(SyntheticCluster(), workload, T4());
    ASSERT_EQ(keeps.compute_source(), ComputeSource::kDataSheet);
    const bool attends = workload.name != "resnet18";
    double shortest = 0;
    for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
      workload.recompute = recompute;
      const Predictor predictor(SyntheticCluster(), workload, T4());
      for (const int batch : {1, 8, 64}) {
        for (const Placement& placement : {Placement{1}, Placement{4, 4}}) {
          SCOPED_TRACE(fmt::format("{}, recompute {}, batch {}, {} nodes", name,
                                   kRecomputeNames[static_cast<int>(recompute)], batch,
                                   placement.size()));
          Plan plan = AllreducePlan(placement, batch);
          plan.accumulation_steps = 2;
          const StepTime<double> kept = keeps.PredictStep(plan);
          const StepTime<double> step = predictor.PredictStep(plan);
          EXPECT_NEAR(step.forward / kept.forward, 1, 1e-12);
          EXPECT_EQ(step.update, kept.update);
          if (recompute == Recompute::kFull || attends) {
            EXPECT_GT(step.backward, kept.backward);
          } else {
            EXPECT_EQ(step.total(), kept.total());
          }
        }
      }
      const double step = predictor.PredictStep(AllreducePlan({1}, 64)).total().si();
      EXPECT_GT(step, shortest);
      shortest = step;
    }
  }
}

// AlexNet has no blocks to recompute, BERT has twelve.
TEST(Flags, RecomputationInNameAlone) {
  const char* const kNothing =
      "activations of alexnet are said to be recomputed, and none of its layers is of a block";
  const Plan plan = AllreducePlan({1}, 8);
  const auto trained = [&](Workload workload, Recompute recompute) {
    workload.recompute = recompute;
    return Predictor(SyntheticCluster(), workload, T4()).Predict(plan);
  };
  const Workload alexnet = *FindWorkload("alexnet");
  const Prediction none = trained(alexnet, Recompute::kFull);
  EXPECT_TRUE(HasFlag(none, kNothing));
  EXPECT_EQ(none.step_time, trained(alexnet, Recompute::kNone).step_time);
  EXPECT_EQ(none.memory.total, trained(alexnet, Recompute::kNone).memory.total);
  EXPECT_FALSE(HasFlag(trained(alexnet, Recompute::kNone), "are said to be recomputed"));
  const Workload bert = *FindWorkload("bert_base");
  const Prediction kept = trained(bert, Recompute::kNone);
  const Prediction full = trained(bert, Recompute::kFull);
  EXPECT_FALSE(HasFlag(full, "are said to be recomputed"));
  EXPECT_GT(full.step_time, kept.step_time * 1.2);
  EXPECT_LT(full.step_time, kept.step_time * 1.5);
  EXPECT_NEAR(full.breakdown.forward / kept.breakdown.forward, 1, 1e-12);
  EXPECT_LT(full.memory.activations, kept.memory.activations * 0.25);
  // Of runs that kept what they computed.
  Workload measured = Resnet50();
  measured.recompute = Recompute::kFull;
  EXPECT_TRUE(HasFlag(Predictor(CalibratedCluster(PlausibleTruth()), measured, T4()).Predict(plan),
                      "resnet50 was measured on t4 with recompute none, not full: compute"));
  measured.optimizer = Optimizer::kAdam;
  EXPECT_TRUE(HasFlag(Predictor(CalibratedCluster(PlausibleTruth()), measured, T4()).Predict(plan),
                      "with optimizer momentum, not adam; recompute none, not full: compute"));
}

TEST(Flags, ANewWorkloadOnACalibratedCluster) {
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), *FindWorkload("vgg16"), T4());
  const Prediction p = predictor.Predict(AllreducePlan({4, 4}, 32));
  EXPECT_FALSE(HasFlag(p, "not calibrated"));
  EXPECT_TRUE(HasFlag(p, "vgg16 was not measured on t4"));
  EXPECT_EQ(p.compute_source, ComputeSource::kDataSheet);
  EXPECT_FALSE(predictor.calibrated_batches().has_value());
}

TEST(Flags, ACalibratedWorkloadOnAnotherDevice) {
  Device v100 = T4();
  v100.name = "v100";
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), Resnet50(), v100, "v100");
  EXPECT_EQ(predictor.device(), "v100");
  EXPECT_TRUE(HasFlag(predictor.Predict(AllreducePlan({1}, 32)), "not measured on v100"));
}

TEST(Flags, OutsideTheCalibratedRange) {
  struct Case {
    Placement placement;
    int batch;
    const char* flag;
  };
  const Case cases[] = {
      {Placement(9, 1), 32, "9 nodes, fitted to 8"},
      {Placement(9, 4), 32, "36 workers, fitted to 32"},
      {{5}, 32, "5 devices per node, fitted to 4"},
      {{1}, 7, "local batch 7, fitted from 8 to 64"},
      {{1}, 65, "local batch 65, fitted from 8 to 64"},
      {Placement(17, 1), 32, "the plan uses 17 nodes, synthetic has 16"},
      {{5}, 32, "the plan uses 5 devices on a node, synthetic has 4"},
  };
  const Predictor predictor = Calibrated();
  for (const Case& c : cases) {
    EXPECT_TRUE(HasFlag(predictor.Predict(AllreducePlan(c.placement, c.batch)), c.flag)) << c.flag;
  }
  // The borders themselves are inside.
  for (const int batch : {8, 64}) {
    EXPECT_TRUE(predictor.Predict(AllreducePlan(Placement(8, 4), batch)).flags.empty()) << batch;
  }
}

// Each stated rate is held against those that were fitted, and told as the link's whose it is.
TEST(Flags, EachRateOutsideTheCalibratedRange) {
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  const auto range = [&](double least, double most) {
    cluster.calibration->range.bandwidth = {GigabitsPerSecond(least), GigabitsPerSecond(most)};
  };
  Plan plan = ServerPlan(Strategy::kPsSync, 4, 4);
  for (const auto& [most, fitted] : {std::pair(8.0, "from 2 to 8"), std::pair(2.0, "at 2 only")}) {
    range(2, most);
    const Predictor predictor(cluster, Resnet50(), T4());
    for (const double link : {0.5, 2.0, 10.0}) {
      for (const double server_link : {0.25, 2.0, 40.0}) {
        plan.link.bandwidth = GigabitsPerSecond(link);
        plan.server_link.bandwidth = GigabitsPerSecond(server_link);
        const Prediction p = predictor.Predict(plan);
        const auto flag = [&](const char* whose, double rate) {
          return fmt::format("outside the calibrated range: {} of {} Gbit/s, fitted {}", whose,
                             rate, fitted);
        };
        EXPECT_EQ(HasFlag(p, flag("a link", link)), link != 2);
        EXPECT_EQ(HasFlag(p, flag("a server link", server_link)), server_link != 2);
        EXPECT_FALSE(HasFlag(p, "of 2 Gbit/s"));
      }
    }
  }
}

TEST(Flags, LossThatLimits) {
  Plan plan = AllreducePlan({1, 1}, 32);
  plan.link.rtt = Milliseconds(10.0);
  plan.link.loss = 0.01;
  EXPECT_FALSE(HasFlag(Calibrated().Predict(plan), "sets the pace"));
  EXPECT_FALSE(HasFlag(Calibrated().Predict(plan), "loss without a round trip"));
  plan.link.loss = 0.06;
  EXPECT_TRUE(HasFlag(Calibrated().Predict(plan),
                      "packet loss of 0.06 sets the pace: from 0.05 on timeouts multiply, and "
                      "steps may take up to three times as long"));
  plan.link.rtt.reset();
  // A message takes 80 us there, and one back as long.
  EXPECT_TRUE(HasFlag(Calibrated().Predict(plan), "loss without a round trip: 160 us assumed"));
  plan.placement = {1};
  EXPECT_FALSE(HasFlag(Calibrated().Predict(plan), "loss")) << "nothing crosses the link";
}

// BBR's rate is not a matter of loss here, but from 2 % on nobody is certain of that.
TEST(Flags, BbrUnderLoss) {
  const Predictor predictor = Calibrated();
  Plan plan = AllreducePlan({1, 1}, 32);
  plan.link.rtt = Milliseconds(10.0);
  plan.link.congestion_control = CongestionControl::kBbr;
  plan.link.loss = 0.019;
  EXPECT_FALSE(HasFlag(predictor.Predict(plan), "BBR"));
  for (const double loss : {0.02, 0.1}) {
    plan.link.loss = loss;
    const Prediction p = predictor.Predict(plan);
    EXPECT_TRUE(HasFlag(p, "its rate is not certain beyond 2 %")) << loss;
    EXPECT_FALSE(HasFlag(p, "sets the pace")) << loss;
  }
  EXPECT_TRUE(HasFlag(predictor.Predict(plan), "BBR with a loss of 0.1:"));
  Plan rdma = plan;
  rdma.link.transport = Transport::kRdma;
  EXPECT_FALSE(HasFlag(predictor.Predict(rdma), "BBR")) << "nothing of it is TCP";
  plan.link.congestion_control = CongestionControl::kCubic;
  EXPECT_FALSE(HasFlag(predictor.Predict(plan), "BBR"));
}

TEST(Flags, FactsOfTcpOverRdma) {
  const Predictor predictor = Calibrated();
  const std::string kControl =
      "congestion control is a matter of TCP: over RDMA it changes nothing";
  const std::string kBurst =
      "how long losses last together is a matter of TCP: over RDMA it changes nothing";
  Plan plan = AllreducePlan({1, 1}, 32);
  plan.link.rtt = Milliseconds(1.0);
  plan.link.loss = 1e-4;
  plan.link.transport = Transport::kRdma;
  EXPECT_FALSE(HasFlag(predictor.Predict(plan), "a matter of TCP"));
  const Duration<> without = predictor.PredictStep(plan).total();
  plan.link.congestion_control = CongestionControl::kReno;
  EXPECT_TRUE(HasFlag(predictor.Predict(plan), kControl));
  EXPECT_FALSE(HasFlag(predictor.Predict(plan), kBurst));
  plan.link.loss_burst = Milliseconds(1.0);
  EXPECT_TRUE(HasFlag(predictor.Predict(plan), kBurst));
  EXPECT_EQ(predictor.PredictStep(plan).total(), without) << "as the flags say";
  Plan within = plan;
  within.placement = {2};
  EXPECT_FALSE(HasFlag(predictor.Predict(within), "a matter of TCP"));
  plan.link.transport.reset();
  EXPECT_FALSE(HasFlag(predictor.Predict(plan), "a matter of TCP"));
  EXPECT_NE(predictor.PredictStep(plan).total(), without);
}

// Other traffic that a link has no room for, beside rounds or streams, be they one worker's alone.
TEST(Flags, TrafficThatALinkDoesNotCarry) {
  const auto flags = [](Plan plan, double gbit_per_s, const std::string& fragment) {
    plan.link.bandwidth = GigabitsPerSecond(10.0);
    plan.link.background = GigabitsPerSecond(gbit_per_s);
    return HasFlag(Calibrated().Predict(plan), fragment);
  };
  const std::string any = "other traffic";
  const std::string gets =
      "asks for more than it gets beside an exchange on a link of 10 Gbit/s: taken as ";
  const std::string there_is =
      "other traffic of 20 Gbit/s asks for more than there is on a link of 10 Gbit/s: taken as ";
  Plan ring = AllreducePlan({1, 1, 1, 1}, 32);
  EXPECT_FALSE(flags(ring, 7, any));
  EXPECT_TRUE(flags(ring, 10, gets + "7.14;"));
  EXPECT_TRUE(flags(ring, 20, there_is + "7.14;"));
  Plan served = ServerPlan(Strategy::kPsSync, 1, 2);
  EXPECT_FALSE(flags(served, 4, any));
  EXPECT_TRUE(flags(served, 6, gets + "5;"));
  EXPECT_TRUE(flags(served, 20, there_is + "5;"));
  served.server.colocated = true;
  served.servers = 1;
  EXPECT_FALSE(flags(served, 20, any)) << "nothing leaves the node";
  ring.placement = {4};
  EXPECT_FALSE(flags(ring, 20, any)) << "nothing leaves the node";
}

// How well a stated rate is known counts of the links that a plan has.
TEST(Intervals, LinksOfServersThatAreNotThere) {
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  cluster.calibration->range.bandwidth = {GigabitsPerSecond(1.0), GigabitsPerSecond(8.0)};
  Cluster stated = cluster;
  stated.server_link.bandwidth = GigabitsPerSecond(400.0);
  const auto wider = [&](Plan plan) {
    plan.link.bandwidth = GigabitsPerSecond(4.0);
    const auto log_sd = [&](const Cluster& of) {
      return Predictor(of, Resnet50(), T4()).Predict(plan).log_sd;
    };
    return log_sd(stated) > log_sd(cluster) * (1 + 1e-9);
  };
  Plan servers = ServerPlan(Strategy::kPsSync, 4, 4);
  EXPECT_TRUE(wider(servers));
  servers.server.colocated = true;
  EXPECT_FALSE(wider(servers));
  EXPECT_FALSE(wider(AllreducePlan({1, 1, 1, 1}, 32)));
}

// Loss at the servers' end alone is loss, and its round trip may be known from there.
TEST(Flags, LossOfTheServersLinkAlone) {
  const Predictor predictor = Calibrated();
  Plan plan = ServerPlan(Strategy::kPsSync, 8, 2);
  plan.link.bandwidth = plan.server_link.bandwidth = GigabitsPerSecond(1.0);
  const std::string unknown = "loss without a round trip";
  EXPECT_FALSE(HasFlag(predictor.Predict(plan), unknown));
  plan.server_link.loss = 0.2;
  EXPECT_TRUE(HasFlag(predictor.Predict(plan), unknown));
  EXPECT_TRUE(HasFlag(predictor.Predict(plan), "packet loss of 0.2 sets the pace"));
  plan.server_link.rtt = Milliseconds(1.0);
  EXPECT_FALSE(HasFlag(predictor.Predict(plan), unknown));
  EXPECT_TRUE(HasFlag(predictor.Predict(plan), "packet loss of 0.2 sets the pace"));
  plan.link.loss = 0.001;
  EXPECT_TRUE(HasFlag(predictor.Predict(plan), "packet loss of 0.2 sets the pace"));
}

// A step that leaves its slowest k of w workers out counts the samples of the others, and its
// quantiles are those of the (w - k)-th of w normal times.
TEST(Predictor, BackupWorkersAreNeitherCountedNorWaitedFor) {
  const Predictor predictor = Calibrated();
  Plan plan = AllreducePlan({4, 4}, 32);
  plan.accumulation_steps = 2;
  plan.backup_workers = 2;
  const Prediction p = predictor.Predict(plan);
  EXPECT_NEAR(p.throughput.in(kSamplesPerSecond)*p.step_time.in(kSeconds), 6 * 32 * 2, 1e-9);
  const double sd = p.scatter_log_sd;
  const double without_wait = (p.step_time - p.breakdown.straggler_wait).in(kSeconds);
  const double micro = predictor.Terms(plan).micro.in(kSeconds);
  const double spread =
      micro * PlausibleTruth().workloads.at("resnet50").straggler_spread() * std::sqrt(2.0);
  Noise normal(3);
  std::vector<double> steps;
  for (int i = 0; i < 40'000; ++i) {
    std::vector<double> workers;
    for (int w = 0; w < 8; ++w) workers.push_back(normal.Next());
    std::nth_element(workers.begin(), workers.begin() + 5, workers.end());
    steps.push_back((without_wait + spread * workers[5]) * std::exp(sd * normal.Next()));
  }
  std::sort(steps.begin(), steps.end());
  const auto quantile = [&](double q) { return steps[static_cast<std::size_t>(q * 40'000)]; };
  EXPECT_NEAR(p.p50.in(kSeconds) / quantile(0.5), 1, 0.004);
  EXPECT_NEAR(p.p95.in(kSeconds) / quantile(0.95), 1, 0.006);
  EXPECT_NEAR(p.p99.in(kSeconds) / quantile(0.99), 1, 0.01);
  plan.backup_workers = 0;
  EXPECT_GT(predictor.Predict(plan).p50 / p.p50, 1.005) << "the test tells the two apart";
}

TEST(Predictor, SaysWhatWasEvaluatedAndInHowManyBuckets) {
  const Predictor predictor = Calibrated();
  Plan plan = AllreducePlan({1, 1}, 32);
  const Prediction p = predictor.Predict(plan);
  EXPECT_EQ(p.algorithm, Strategy::kRing) << "allreduce is the ring";
  EXPECT_EQ(p.buckets, static_cast<int>(MakeBuckets(predictor.workload(), kDefaultBucket).size()));
  plan.bucket = Gibibytes(1.0);
  EXPECT_EQ(predictor.Predict(plan).buckets, 2) << "the first one is small";
  plan.strategy = Strategy::kTree;
  EXPECT_EQ(predictor.Predict(plan).algorithm, Strategy::kTree);
}

TEST(Memory, OutOfMemoryIsAVerdict) {
  const Predictor predictor = Calibrated();
  const Prediction fits = predictor.Predict(AllreducePlan({1}, 32));
  EXPECT_EQ(fits.memory.verdict, MemoryVerdict::kFits);
  const Prediction too_large = predictor.Predict(AllreducePlan({1}, 4096));
  EXPECT_EQ(too_large.memory.verdict, MemoryVerdict::kOutOfMemory);
  EXPECT_TRUE(HasFlag(too_large, "out of memory"));
  EXPECT_EQ(too_large.memory.available, Gibibytes(16.0));
}

TEST(Memory, UnknownWithoutADataSheet) {
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), Resnet50(), std::nullopt);
  const Prediction p = predictor.Predict(AllreducePlan({1}, 4096));
  EXPECT_EQ(p.memory.verdict, MemoryVerdict::kUnknown);
  EXPECT_FALSE(HasFlag(p, "out of memory"));
}

// ---- Hosts.

Truth TruthWithHosts() {
  Truth truth = PlausibleTruth();
  truth.host_links = {{"fast", GigabitsPerSecond(9.0)},
                      {"mid", GigabitsPerSecond(2.0)},
                      {"slow", GigabitsPerSecond(0.1)}};
  return truth;
}

class Hosts : public ::testing::Test {
 protected:
  Prediction Predict(const std::vector<std::string>& hosts) const {
    Plan plan = AllreducePlan(Placement(std::max<std::size_t>(2, hosts.size()), 1), 32);
    plan.hosts = hosts;
    return predictor_.Predict(plan);
  }
  SyntheticProblem synthetic_{TruthWithHosts()};
  Predictor predictor_{CalibratedCluster(TruthWithHosts()), Resnet50(), T4()};
};

TEST_F(Hosts, TheSlowestCountsWhereverItStands) {
  EXPECT_LT(Predict({"fast", "mid"}).step_time, Predict({"fast", "slow"}).step_time);
  EXPECT_EQ(Predict({"slow", "fast"}).step_time, Predict({"fast", "slow"}).step_time);
  EXPECT_EQ(Predict({"slow", "mid"}).step_time, Predict({"fast", "slow"}).step_time);
  for (const auto& hosts : std::vector<std::vector<std::string>>{
           {"fast", "mid"}, {"mid", "slow"}, {"fast", "mid", "slow"}}) {
    Plan plan = AllreducePlan(Placement(hosts.size(), 1), 32);
    plan.hosts = hosts;
    EXPECT_NEAR(Predict(hosts).step_time / synthetic_.TrueStep("resnet50", plan), 1, 1e-9);
  }
}

TEST_F(Hosts, AreAskedForWhereTheyDiffer) {
  EXPECT_TRUE(HasFlag(Predict({}), "none is named"));
  EXPECT_TRUE(HasFlag(Predict({}), "assumed, where that of slow has "));
  EXPECT_FALSE(HasFlag(Predict({"fast", "slow"}), "none is named"));
  EXPECT_TRUE(HasFlag(Predict({"fast", "new"}), "no run has shown the link of host new"));
  EXPECT_TRUE(HasFlag(Predict({"fast", "new"}), "synthetic has no host new"));
  EXPECT_TRUE(Predict({"fast", "slow"}).flags.empty());
}

// Where a plan takes every node it has no choice of hosts, and is told what they make of the step.
TEST_F(Hosts, APlanOnEveryNodeIsToldOfTheSlowest) {
  const auto ask = [&](Cluster cluster, int nodes, const std::vector<std::string>& hosts = {}) {
    Plan plan = AllreducePlan(Placement(static_cast<std::size_t>(nodes), 1), 32);
    plan.hosts = hosts;
    return Predictor(std::move(cluster), Resnet50(), T4()).Predict(plan);
  };
  Cluster three = CalibratedCluster(TruthWithHosts());
  three.nodes = 3;
  const char* const said = "takes every node of synthetic and names none";
  const Prediction unnamed = ask(three, 3);
  const Prediction named = ask(three, 3, {"fast", "mid", "slow"});
  ASSERT_GT(named.step_time, unnamed.step_time);
  ASSERT_TRUE(HasFlag(unnamed, said));
  EXPECT_NE(unnamed.flags.front().find(said), std::string::npos) << "the first of them";
  EXPECT_TRUE(
      HasFlag(unnamed, fmt::format("the step is {:.3g} s, not {:.3g} s",
                                   named.step_time.in(kSeconds), unnamed.step_time.in(kSeconds))));
  EXPECT_FALSE(HasFlag(named, said));
  EXPECT_FALSE(HasFlag(ask(three, 2), said)) << "two of three may be any";
  // Of five nodes, two are known to nobody.
  Cluster five = CalibratedCluster(TruthWithHosts());
  five.nodes = 5;
  EXPECT_FALSE(HasFlag(ask(five, 4), said));
  EXPECT_TRUE(HasFlag(ask(five, 5), said));
  // Hosts that do not differ change nothing.
  Truth alike = PlausibleTruth();
  const DataRate<> rate = BytesPerSecond(alike.cluster.si[kLinkBandwidth]);
  alike.host_links = {{"a", rate}, {"b", rate}, {"c", rate}};
  Cluster equal = CalibratedCluster(alike);
  equal.nodes = 3;
  EXPECT_FALSE(HasFlag(ask(equal, 3), said));
  // A host's round trip is one more thing by which it may be the slowest.
  Cluster far;
  far.name = "plain";
  far.device = "t4";
  far.nodes = 2;
  far.hosts = {{"near", {}}, {"far", {}}};
  far.hosts[1].link.rtt = Milliseconds(100.0);
  EXPECT_TRUE(HasFlag(ask(far, 2), "takes every node of"));
}

TEST_F(Hosts, ACalibrationWithoutCovarianceSaysSo) {
  Cluster cluster = CalibratedCluster(TruthWithHosts());
  const Plan plan = AllreducePlan({1}, 32);
  EXPECT_FALSE(HasFlag(Predictor(cluster, Resnet50(), T4()).Predict(plan), "no covariance"));
  cluster.calibration->has_covariance = false;
  EXPECT_TRUE(HasFlag(Predictor(cluster, Resnet50(), T4()).Predict(plan), "no covariance"));
}

TEST_F(Hosts, TheirUncertaintyCounts) {
  Cluster cluster = CalibratedCluster(TruthWithHosts());
  const Calibration& calibration = *cluster.calibration;
  for (std::size_t i = 0; i < calibration.parameters.size(); ++i) {
    const auto row = static_cast<Eigen::Index>(i);
    if (calibration.parameters[i].scope == "hosts slow") {
      cluster.calibration->log_covariance(row, row) = 0.25;
    }
  }
  const Predictor unsure(cluster, Resnet50(), T4());
  Plan plan = AllreducePlan({1, 1}, 32);
  plan.hosts = {"fast", "slow"};
  EXPECT_GT(unsure.Predict(plan).log_sd, predictor_.Predict(plan).log_sd + 0.1);
  plan.hosts = {"fast", "mid"};
  EXPECT_NEAR(unsure.Predict(plan).log_sd, predictor_.Predict(plan).log_sd, 1e-12);
}

TEST_F(Hosts, AStatedBandwidthReplacesThem) {
  Plan plan = AllreducePlan({1, 1}, 32);
  plan.link.bandwidth = GigabitsPerSecond(10.0);
  const Duration<> without = predictor_.Predict(plan).step_time;
  plan.hosts = {"fast", "slow"};
  EXPECT_EQ(predictor_.Predict(plan).step_time, without);
  EXPECT_FALSE(HasFlag(predictor_.Predict(plan), "host"));
}

// ---- What binds.

TEST(Binding, NamesThePart) {
  struct Case {
    const char* part;
    std::function<void(Truth*, Plan*)> make;
  };
  const Case cases[] = {
      {"compute", [](Truth*, Plan* plan) { plan->placement = {1}; }},
      {"link", [](Truth*, Plan* plan) { plan->link.bandwidth = MegabitsPerSecond(100.0); }},
      {"flow", [](Truth* truth, Plan*) { truth->cluster.si[kFlowBandwidth] = 1e6; }},
      {"host", [](Truth* truth, Plan*) { truth->cluster.si[kHostBandwidth] = 6e7; }},
      {"loss",
       [](Truth*, Plan* plan) {
         plan->link.rtt = Milliseconds(50.0);
         plan->link.loss = 0.01;
       }},
      {"window", [](Truth*, Plan* plan) { plan->link.rtt = Milliseconds(500.0); }},
      {"latency", [](Truth* truth, Plan*) { truth->cluster.si[kLinkLatency] = 0.1; }},
      {"stragglers",
       [](Truth* truth, Plan* plan) {
         truth->workloads.at("resnet50").si[kStragglerSpread] = 2;
         plan->placement = Placement(16, 4);
       }},
      {"server_link",
       [](Truth*, Plan* plan) {
         *plan = ServerPlan(Strategy::kPsSync, 8, 1);
         plan->server_link.bandwidth = MegabitsPerSecond(100.0);
       }},
  };
  for (const Case& c : cases) {
    Truth truth = PlausibleTruth();
    Plan plan = AllreducePlan({1, 1}, 32);
    c.make(&truth, &plan);
    const Predictor predictor(CalibratedCluster(truth), Resnet50(), T4());
    const Binding binding = FindBinding(predictor.Predict(plan));
    EXPECT_EQ(binding.part, c.part);
    EXPECT_GT(binding.share, 0.3) << c.part;
    EXPECT_LE(binding.share, 1) << c.part;
    EXPECT_NE(binding.sentence.find(" % of the step."), std::string::npos) << binding.sentence;
  }
}

// What nothing tells is a prior that says so: too wide to be taken for an answer.
TEST(Compute, WithoutAnySourceIsAPrior) {
  Device without_peak = T4();
  without_peak.fp32.reset();
  Cluster of_abacus = SyntheticCluster();
  of_abacus.device = "abacus";
  const struct {
    Predictor predictor;
    const char* why;
  } cases[] = {
      {{SyntheticCluster(), WithoutLayers(), T4()},
       "mine was not measured on t4, and it has no layers"},
      {{of_abacus, Resnet50(), std::nullopt, "abacus"},
       "resnet50 was not measured on abacus, and no data sheet with fp32 and memory_bandwidth is "
       "known of it: "},
      {{SyntheticCluster(), Resnet50(), without_peak}, "no data sheet with fp32"},
  };
  for (const auto& c : cases) {
    const Prediction p = c.predictor.Predict(AllreducePlan({1}, 32));
    EXPECT_EQ(p.compute_source, ComputeSource::kPrior);
    EXPECT_STREQ(kComputeSourceNames[static_cast<int>(p.compute_source)], "prior");
    EXPECT_TRUE(std::any_of(p.flags.begin(), p.flags.end(), [&](const std::string& flag) {
      return flag.find(c.why) != std::string::npos;
    })) << c.why;
    // e^(1.645 x 4): nine of ten lie within it.
    EXPECT_TRUE(HasFlag(p, "good to a factor of 720;"));
    EXPECT_GT(p.high / p.low, 1e4);
  }
}

// ---- Questions that have no answer.

TEST(Errors, CalibratedWorkloadsNeedNeitherLayersNorDataSheet) {
  Workload bare = WithoutLayers();
  bare.name = "resnet50";
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), bare, std::nullopt);
  EXPECT_EQ(predictor.compute_source(), ComputeSource::kFitted);
  EXPECT_GT(predictor.Predict(AllreducePlan({1}, 32)).step_time.si(), 0);
}

TEST(Errors, PlansThatNoModelCovers) {
  struct Case {
    const char* what;
    std::function<void(Plan*)> spoil;
    const char* says;
  };
  const Case cases[] = {
      {"no nodes", [](Plan* p) { p->placement = {}; }, "placement: is empty"},
      {"an empty node",
       [](Plan* p) {
         p->placement = {4, 0};
       },
       "placement: '0'"},
      {"a negative node",
       [](Plan* p) {
         p->placement = {4, -1};
       },
       "placement: '-1'"},
      {"no batch", [](Plan* p) { p->local_batch = 0; }, "local-batch: '0'"},
      {"a huge batch", [](Plan* p) { p->local_batch = 2'000'000'000; },
       "local-batch: '2000000000'"},
      {"no micro-step", [](Plan* p) { p->accumulation_steps = 0; }, "accumulation: '0'"},
      {"servers missing", [](Plan* p) { p->strategy = Strategy::kPsSync; },
       "servers: are required with strategy ps-sync"},
      {"asynchronous servers missing", [](Plan* p) { p->strategy = Strategy::kPsAsync; },
       "servers: are required with strategy ps-async"},
      {"negative servers",
       [](Plan* p) {
         p->strategy = Strategy::kPsSync;
         p->servers = -1;
       },
       "servers: '-1'"},
      {"superfluous servers", [](Plan* p) { p->servers = 2; }, "servers: '2' with strategy"},
      {"too few hosts", [](Plan* p) { p->hosts = {"a"}; }, "hosts: 'a' names 1 hosts"},
      {"too many hosts",
       [](Plan* p) {
         p->hosts = {"a", "b", "c"};
       },
       "allowed: 2, one for each"},
      {"every packet lost", [](Plan* p) { p->link.loss = 1.0; }, "loss: '1' is out of range"},
      {"loss that is no number", [](Plan* p) { p->link.loss = std::nan(""); }, "loss: 'nan'"},
      {"no bandwidth", [](Plan* p) { p->link.bandwidth = BytesPerSecond(0.0); }, "bandwidth: '0'"},
      {"time running backwards", [](Plan* p) { p->link.rtt = Seconds(-1.0); }, "rtt: '-1'"},
  };
  const Predictor predictor = Calibrated();
  for (const Case& c : cases) {
    Plan plan = AllreducePlan({4, 4}, 32);
    ASSERT_NO_THROW(predictor.Predict(plan));
    c.spoil(&plan);
    EXPECT_TRUE(Says(ErrorOf([&] { predictor.Predict(plan); }), c.says)) << c.what;
    EXPECT_TRUE(Says(ErrorOf([&] { predictor.PredictStep(plan); }), c.says)) << c.what;
    EXPECT_TRUE(Says(ErrorOf([&] { predictor.Terms(plan); }), c.says)) << c.what;
  }
}

// ---- The file, and threads.

TEST(RoundTrip, TheFileGivesTheSameAnswers) {
  Cluster cluster = CalibratedCluster(TruthWithHosts(), 0.05);
  Eigen::MatrixXd& covariance = cluster.calibration->log_covariance;
  for (Eigen::Index i = 0; i + 1 < covariance.rows(); ++i) {
    covariance(i, i + 1) = covariance(i + 1, i) = 0.001 / 3;
  }
  const Cluster reread = ParseCluster(FormatCluster(cluster), "reread.yaml");
  const Predictor before(cluster, Resnet50(), T4());
  const Predictor after(reread, Resnet50(), T4());
  for (const Plan& plan : Plans()) {
    const Prediction was = before.Predict(plan);
    const Prediction is = after.Predict(plan);
    EXPECT_NEAR(is.step_time / was.step_time, 1, 1e-9);
    EXPECT_NEAR(is.breakdown.exposed().si(), was.breakdown.exposed().si(),
                1e-9 * was.step_time.si());
    // The file keeps six digits of the covariance.
    EXPECT_NEAR(is.low / was.low, 1, 1e-6);
    EXPECT_NEAR(is.high / was.high, 1, 1e-6);
    EXPECT_EQ(is.flags, was.flags);
    EXPECT_EQ(is.memory.verdict, was.memory.verdict);
    EXPECT_EQ(is.traffic.total, was.traffic.total);
  }
}

TEST(Threads, AllGetTheSameAnswers) {
  const Predictor predictor(CalibratedCluster(TruthWithHosts()), Resnet50(), T4());
  const std::vector<Plan> plans = Plans();
  std::vector<Prediction> expected;
  expected.reserve(plans.size());
  for (const Plan& plan : plans) expected.push_back(predictor.Predict(plan));

  constexpr int kThreads = 8;
  constexpr int kRounds = 20;
  std::vector<int> differences(kThreads, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        for (std::size_t i = 0; i < plans.size(); ++i) {
          // Each thread begins elsewhere.
          const std::size_t at = (i + static_cast<std::size_t>(t) * 7) % plans.size();
          const Prediction p = predictor.Predict(plans[at]);
          if (p.step_time != expected[at].step_time || p.low != expected[at].low ||
              p.flags != expected[at].flags) {
            ++differences[static_cast<std::size_t>(t)];
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : differences) EXPECT_EQ(count, 0);
}

// ---- What is stated, and what is assumed.

Cluster PlainCluster() {
  Cluster cluster;
  cluster.name = "plain";
  cluster.device = "t4";
  cluster.nodes = 16;
  cluster.devices_per_node = 8;
  return cluster;
}

// A line rate is worth the same wherever it is stated, since its share that is reached is.
TEST(Predictor, ALineRateIsKnownAsWellWhereverItIsStated) {
  for (const Strategy strategy :
       {Strategy::kRing, Strategy::kTree, Strategy::kHalvingDoubling, Strategy::kHierarchical,
        Strategy::kBytePs, Strategy::kAuto, Strategy::kPsSync, Strategy::kPsAsync}) {
    for (const double gbit : {0.1, 1.0, 10.0, 100.0}) {
      for (const int devices : {1, 4}) {
        SCOPED_TRACE(std::string(StrategyName(strategy)) + " at " + std::to_string(gbit));
        Plan plan = AllreducePlan(Placement(4, devices), 32);
        plan.strategy = strategy;
        plan.servers = UsesServers(strategy) ? 2 : 0;
        Cluster cluster = PlainCluster();
        cluster.link.bandwidth = GigabitsPerSecond(gbit);
        const Prediction in_file = Predictor(cluster, Resnet50(), T4()).Predict(plan);
        plan.link.bandwidth = cluster.link.bandwidth;
        const Prediction in_both = Predictor(cluster, Resnet50(), T4()).Predict(plan);
        const Prediction in_plan = Predictor(PlainCluster(), Resnet50(), T4()).Predict(plan);
        for (const Prediction& p : {in_both, in_plan}) {
          EXPECT_NEAR(p.step_time / in_file.step_time, 1, 1e-12);
          EXPECT_NEAR(p.low / in_file.low, 1, 1e-9);
          EXPECT_NEAR(p.high / in_file.high, 1, 1e-9);
        }
      }
    }
  }
}

const ExplainedParameter* ParameterCalled(const Explanation& explanation, const std::string& name) {
  for (const ExplainedParameter& parameter : explanation.parameters) {
    if (parameter.value.symbol.rfind(name, 0) == 0) return &parameter;
  }
  return nullptr;
}

// Faster cards than the flows can use gain nothing, which the answer says and its interval shows.
TEST(Predictor, SaysWhichPriorSetsThePace) {
  // One card's flows, or with eight cards the exchange within the node.
  Cluster cluster = PlainCluster();
  Plan plan = AllreducePlan(Placement(4, 8), 1);
  for (const auto& [cards, said] : {std::pair{1,
                                              "flow_bandwidth sets the pace of the exchange, a "
                                              "prior that nobody measured here: 10 Gbit/s"},
                                    std::pair{8,
                                              "host_bandwidth sets the pace of the exchange, a "
                                              "prior that nobody measured here: 3.8 GB/s"}}) {
    cluster.nics_per_node = cards;
    const Predictor predictor(cluster, Resnet50(), T4());
    std::vector<double> steps;
    for (const double gbit : {100.0, 200.0, 400.0}) {
      plan.link.bandwidth = GigabitsPerSecond(gbit);
      const Prediction p = predictor.Predict(plan);
      EXPECT_TRUE(HasFlag(p, said)) << gbit;
      EXPECT_TRUE(HasFlag(p, "calibrate --fix")) << gbit;
      steps.push_back(p.step_time.si());
    }
    EXPECT_NEAR(steps.back() / steps.front(), 1, 0.01);
  }
  cluster.nics_per_node = 1;
  const Predictor predictor(cluster, Resnet50(), T4());
  // Nothing is said where the stated link binds, or where runs have told.
  plan.link.bandwidth = GigabitsPerSecond(1.0);
  EXPECT_FALSE(HasFlag(predictor.Predict(plan), "a prior that nobody measured"));
  plan.link.bandwidth = GigabitsPerSecond(400.0);
  EXPECT_FALSE(HasFlag(Calibrated().Predict(plan), "a prior that nobody measured"));
}

// Nodes of one device have no exchange within them, and no link between devices to state; nor have
// devices that exchange with servers alone.
TEST(Predictor, SaysWhatTheHostIsOnTheWayTo) {
  const auto parallel = [](const Placement& placement) { return AllreducePlan(placement, 1); };
  struct Case {
    Plan plan;
    bool leads_out = false;
  };
  Plan servers = ServerPlan(Strategy::kPsSync, 4, 4);
  servers.placement = {4, 4};
  servers.local_batch = 1;
  for (const auto& [given, leads_out] :
       {Case{parallel({1, 1, 1, 1}), true}, Case{parallel({8, 8}), false},
        Case{parallel({8}), false}, Case{servers, true}}) {
    SCOPED_TRACE(std::to_string(given.nodes()) + " nodes, " + std::to_string(given.servers));
    Plan plan = given;
    plan.link.bandwidth = GigabitsPerSecond(400.0);
    plan.link.transport = Transport::kRdma;
    EXPECT_EQ(HostLeadsOut(plan), leads_out);
    const Prediction p = Predictor(PlainCluster(), *FindWorkload("vgg16"), T4()).Predict(plan);
    Prediction held = p;  // whatever binds this one, if the host did
    held.breakdown.limiter = Limiter::kHost;
    held.breakdown.exposed_transfer = p.step_time * 100;
    const Binding binding = FindBinding(held);
    EXPECT_EQ(binding.part, "host");
    EXPECT_EQ(binding.Clause(), leads_out ? "the way from the device to its network card binds"
                                          : "the exchange within the node binds");
    if (UsesServers(plan.strategy)) continue;  // whose own rate may be what sets the pace
    EXPECT_EQ(p.breakdown.limiter, Limiter::kHost);
    EXPECT_TRUE(HasFlag(p, "host_bandwidth sets the pace"));
    EXPECT_EQ(HasFlag(p, "assumed from a device to its network card"), leads_out);
    EXPECT_EQ(HasFlag(p, "calibrate with runs between nodes"), leads_out);
    EXPECT_EQ(HasFlag(p, "state device_link"), !leads_out);
  }
}

// A host's own link that runs have told sets the pace, though no run told what a flow carries.
TEST(Predictor, ALinkOfAHostSetsThePaceBeforeAPrior) {
  Truth truth = PlausibleTruth();
  for (const double gbit : {4.0, 20.0}) {  // below and above what a flow carries
    truth.host_links = {{"a", GigabitsPerSecond(gbit)}, {"b", GigabitsPerSecond(gbit)}};
    Cluster cluster = CalibratedCluster(truth);
    for (ParameterEstimate& p : cluster.calibration->parameters) {
      if (p.name == "flow_bandwidth") p.decided_by = DecidedBy::kPrior;
    }
    Plan plan = AllreducePlan({1, 1}, 1);
    plan.hosts = {"a", "b"};
    EXPECT_EQ(
        HasFlag(Predictor(cluster, Resnet50(), T4()).Predict(plan), "flow_bandwidth sets the pace"),
        gbit > 5)
        << gbit;
  }
}

// Auto is the algorithm whose step is the shortest, also where another is faster for a bucket.
TEST(Predictor, AutoIsTheShortestStep) {
  int by_the_step = 0;
  for (const char* workload : {"resnet50", "vgg16", "mlp_mnist"}) {
    for (const double gbit : {0.3, 1.0, 10.0, 100.0}) {
      for (const int nodes : {2, 3, 5, 8}) {
        for (const int devices : {1, 2, 8}) {
          for (const double mib : {0.5, 25.0}) {
            const Predictor predictor(PlainCluster(), *FindWorkload(workload), T4());
            Plan plan = AllreducePlan(Placement(static_cast<std::size_t>(nodes), devices), 16);
            plan.bucket = Mebibytes(mib);
            plan.link.bandwidth = GigabitsPerSecond(gbit);
            plan.strategy = Strategy::kAuto;
            const Prediction p = predictor.Predict(plan);
            by_the_step += p.algorithm_reason.find("makes the shortest step") != std::string::npos;
            for (const Strategy other : {Strategy::kRing, Strategy::kTree,
                                         Strategy::kHalvingDoubling, Strategy::kHierarchical}) {
              plan.strategy = other;
              EXPECT_LE(p.step_time / predictor.PredictStep(plan).total(), 1 + 1e-12)
                  << workload << gbit << " " << nodes << " " << devices << StrategyName(other);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(by_the_step, 0);
}

// Whatever prior is named, the interval is at least as wide as that alone makes it.
TEST(Predictor, APriorThatSetsThePaceIsInTheInterval) {
  int named = 0;
  for (const Strategy strategy : {Strategy::kRing, Strategy::kTree, Strategy::kHalvingDoubling,
                                  Strategy::kHierarchical, Strategy::kPsSync, Strategy::kPsAsync}) {
    for (const double gbit : {0.0, 1.0, 10.0, 100.0}) {
      for (const int nodes : {1, 4}) {
        for (const int devices : {1, 8}) {
          if (nodes * devices == 1) continue;
          Plan plan = AllreducePlan(Placement(static_cast<std::size_t>(nodes), devices), 8);
          plan.strategy = strategy;
          plan.servers = UsesServers(strategy) ? 2 : 0;
          if (gbit > 0) plan.link.bandwidth = GigabitsPerSecond(gbit);
          const Predictor predictor(PlainCluster(), Resnet50(), T4());
          const Explanation explained = predictor.Explain(plan);
          for (const std::string& flag : explained.prediction.flags) {
            const std::size_t ends =
                flag.find(" sets the pace of the exchange, a prior that nobody measured");
            if (ends == std::string::npos) continue;
            const std::string name = flag.substr(0, ends);
            SCOPED_TRACE(flag);
            const ExplainedParameter* parameter = ParameterCalled(explained, name);
            ASSERT_NE(parameter, nullptr);
            EXPECT_EQ(parameter->origin, Origin::kPrior);
            EXPECT_GE(explained.prediction.parameter_log_sd,
                      std::abs(parameter->elasticity) * parameter->log_sd * (1 - 1e-9));
            EXPECT_LT(parameter->elasticity, 0);
            ++named;
          }
        }
      }
    }
  }
  EXPECT_GT(named, 10);
}

}  // namespace
}  // namespace stepcast
