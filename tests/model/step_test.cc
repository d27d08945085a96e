// A whole step against its formula written out again, its limits, and what it promises not to do.
#include "model/statistics/normal.h"
#include "model/step/step.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/model/support.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

using Parameters = ClusterParameters<double>;

std::shared_ptr<const std::vector<Bucket>> OneBucket(DataSize<> gradient) {
  return std::make_shared<const std::vector<Bucket>>(std::vector<Bucket>{{gradient, 1.0}});
}

// Four buckets in the shares of a convolutional network.
std::shared_ptr<const std::vector<Bucket>> FourBuckets(DataSize<> gradient) {
  return std::make_shared<const std::vector<Bucket>>(std::vector<Bucket>{
      {gradient * 0.1, 0.1}, {gradient * 0.3, 0.4}, {gradient * 0.4, 0.8}, {gradient * 0.2, 1.0}});
}

Plan MakePlan(Placement placement, Strategy strategy, int servers = 0) {
  Plan plan;
  plan.placement = std::move(placement);
  plan.strategy = strategy;
  plan.servers = servers;
  plan.local_batch = 32;
  return plan;
}

StepFacts Facts(const Plan& plan, DataSize<> gradient = Megabytes(100.0)) {
  return MakeStepFacts(Cluster(), plan, gradient, FourBuckets(gradient));
}

StepTime<double> Step(const StepFacts& facts, const Parameters& cluster = PriorCluster(),
                      const WorkloadParameters<double>& workload = PriorWorkload()) {
  return EvaluateStep(facts, cluster, workload);
}

double Total(const Plan& plan, const Parameters& cluster = PriorCluster()) {
  return Step(Facts(plan), cluster).total().si();
}

const std::vector<Strategy> kSynchronous = {Strategy::kAllreduce,    Strategy::kRing,
                                            Strategy::kTree,         Strategy::kHalvingDoubling,
                                            Strategy::kHierarchical, Strategy::kPsSync};
constexpr int kServers = 2;

Plan PlanOf(Strategy strategy, const Placement& placement) {
  return MakePlan(placement, strategy, UsesServers(strategy) ? kServers : 0);
}

// Every parameter somewhere within a factor of three of its prior.
template <class P, class Specs>
P AnyParameters(const Specs& specs) {
  P parameters{};
  for (std::size_t i = 0; i < specs.size(); ++i) {
    parameters.si[i] = specs[i].prior * specs[i].si_per_unit * *LogUniform(1.0 / 3, 3);
  }
  return parameters;
}

Parameters AnyCluster() {
  Parameters cluster = AnyParameters<Parameters>(kClusterParameterSpecs);
  cluster.si[kOverlapShare] = *LogUniform(0.3, 0.8);
  return cluster;
}

WorkloadParameters<double> AnyWorkload() {
  return AnyParameters<WorkloadParameters<double>>(kWorkloadParameterSpecs);
}

// ---- The formula, once more and in plain numbers, from the headers.

struct ByHand {
  StepFacts facts;
  Parameters c{};
  WorkloadParameters<double> x{};

  double Micro() const {
    const double line = x.si[kSampleTime] * facts.batch;
    const double curve =
        x.si[kFixedTime] + std::pow(std::pow(x.si[kFloorTime], 4) + std::pow(line, 4), 0.25);
    return curve * (1 + c.si[kHostContention] * (facts.devices_per_node - 1));
  }
  double Backward() const { return Micro() * c.si[kOverlapShare]; }

  double Link(const LinkFacts& stated, double flows) const {
    const double rtt = stated.rtt ? stated.rtt->si() : 0;
    const double loss = stated.loss.value_or(0);
    double rate = (stated.bandwidth ? stated.bandwidth->si() : c.si[kLinkBandwidth]) * 1448 / 1538;
    // With loss, what the hosts add to the round trip counts.
    const double round = loss > 0 ? rtt + 2 * c.si[kLinkLatency] : rtt;
    if (round > 0) rate = std::min(rate, flows * 2.9e6 / round);
    if (loss > 0) rate = std::min(rate, flows * 1448 / round * std::sqrt(0.75 / loss));
    return rate * (1 - loss);
  }
  double HopPerByte(double peers) const {
    const double path = std::pow(
        std::pow(Link(facts.link, peers), -4) + std::pow(peers * c.si[kFlowBandwidth], -4), 0.25);
    return (path + 1 / c.si[kHostBandwidth]) *
           (1 + c.si[kHostSharing] * (facts.devices_per_node - 1)) *
           (1 + c.si[kNodeScaling] * std::log2(facts.nodes));
  }
  double Alpha() const {
    return c.si[kLinkLatency] + (facts.link.rtt ? facts.link.rtt->si() / 2 : 0);
  }

  // Cost of a call and of a byte.
  std::pair<double, double> Sync() const {
    const double w = facts.workers;
    const double nodes = facts.nodes;
    const double g = facts.devices_per_node;
    const double n = facts.servers;
    const double within = c.si[kDeviceLatency];
    const double device = 1 / c.si[kHostBandwidth];
    if (facts.strategy == Strategy::kPsSync) {
      const LinkFacts server = Overlay(facts.link, facts.server_link);
      return {2 * (Alpha() + c.si[kTransferInitiation] * std::max(w, n)),
              2 * std::max(g * HopPerByte(n), w / (n * Link(server, w)))};
    }
    const double peers = std::min(nodes - 1, 2.0);
    const double hop = nodes == 1 ? device : HopPerByte(peers);
    const double alpha = nodes == 1 ? within : Alpha();
    const double levels = std::ceil(std::log2(w));
    const double whole = std::pow(2, std::floor(std::log2(w)));
    switch (facts.strategy) {
      case Strategy::kTree:
        return {2 * levels * alpha, std::min(2.0, w / 2) * hop};
      case Strategy::kHalvingDoubling:
        return {2 * levels * alpha, (2 * (whole - 1) / whole + (w > whole ? 2 : 0)) * hop};
      case Strategy::kHierarchical:
        if (nodes == 1) return {2 * (w - 1) * within, 2 * (w - 1) / w * device};
        return {2 * (g - 1) * within + 2 * (nodes - 1) * Alpha(),
                2 * (g - 1) / g * device + 2 * (nodes - 1) / nodes * hop};
      default:
        return {2 * (w - nodes) * within + 2 * (nodes - 1) * Alpha(), 2 * (w - 1) / w * hop};
    }
  }

  double Wait() const {
    const double w = facts.workers;
    return w == 1 ? 0
                  : x.si[kStragglerSpread] * Micro() * std::sqrt(facts.accumulation_steps) *
                        NormalQuantile((w - 0.375) / (w + 0.25));
  }

  double Total() const {
    const auto [call, byte] = Sync();
    double end = 0;
    double rest = 0;
    for (std::size_t k = facts.buckets->size(); k-- > 0;) {
      const Bucket& bucket = (*facts.buckets)[k];
      rest += call + byte * bucket.bytes.si();
      end = std::max(end, bucket.ready * Backward() + rest);
    }
    const double overhead = c.si[facts.nodes > 1 ? kNodeSyncOverhead : kDeviceSyncOverhead];
    return (facts.accumulation_steps - 1) * Micro() + (Micro() - Backward()) +
           std::max(Backward(), end) + overhead + Wait();
  }
};

Placement AnyPlacement() {
  Placement placement;
  const int nodes = *Whole(1, 20);
  for (int i = 0; i < nodes; ++i) placement.push_back(*Whole(1, 8));
  if (Workers(placement) == 1) placement[0] = 2;
  return placement;
}

Plan AnyPlan(Strategy strategy) {
  Plan plan = PlanOf(strategy, AnyPlacement());
  plan.local_batch = *Whole(1, 512);
  plan.accumulation_steps = *Whole(1, 16);
  if (UsesServers(strategy)) plan.servers = *Whole(1, 16);
  if (*rc::gen::arbitrary<bool>()) plan.link.bandwidth = BytesPerSecond(*LogUniform(1e7, 1e10));
  if (*rc::gen::arbitrary<bool>()) {
    plan.link.rtt = Seconds(*LogUniform(1e-5, 0.1));
    if (*rc::gen::arbitrary<bool>()) plan.link.loss = *LogUniform(1e-6, 0.1);
  }
  if (*rc::gen::arbitrary<bool>()) {
    plan.server_link.bandwidth = BytesPerSecond(*LogUniform(1e7, 1e10));
  }
  return plan;
}

RC_GTEST_PROP(StepProperty, IsItsFormula, ()) {
  const Strategy strategy = *rc::gen::elementOf(kSynchronous);
  const StepFacts facts = Facts(AnyPlan(strategy), Bytes(*LogUniform(1e5, 1e9)));
  const Parameters cluster = AnyCluster();
  const WorkloadParameters<double> workload = AnyWorkload();
  RC_ASSERT(Near(Step(facts, cluster, workload).total().si(),
                 ByHand{facts, cluster, workload}.Total(), 1e-11));
}

// ---- No communication, no time for it.

RC_GTEST_PROP(StepProperty, OneWorkerKnowsNoNetwork, ()) {
  const Strategy strategy =
      *rc::gen::element(Strategy::kNone, Strategy::kAllreduce, Strategy::kRing, Strategy::kTree,
                        Strategy::kHalvingDoubling, Strategy::kHierarchical);
  Plan plan = MakePlan({1}, strategy);
  plan.accumulation_steps = *Whole(1, 16);
  const WorkloadParameters<double> workload = AnyWorkload();
  const Parameters cluster = AnyCluster();
  const StepTime<double> step = Step(Facts(plan), cluster, workload);
  RC_ASSERT(step.exposed_latency.si() == 0);
  RC_ASSERT(step.exposed_transfer.si() == 0);
  RC_ASSERT(step.straggler_wait.si() == 0);
  RC_ASSERT(step.synchronisation.si() == 0);
  RC_ASSERT(step.limiter == Limiter::kNothing);
  RC_ASSERT(Near(step.total().si(),
                 plan.accumulation_steps * ByHand{Facts(plan), cluster, workload}.Micro()));

  // The same bits on any other network.
  Parameters elsewhere = AnyCluster();
  elsewhere.si[kOverlapShare] = cluster.si[kOverlapShare];
  Plan with_link = plan;
  with_link.link = {MegabitsPerSecond(1.0), Seconds(1.0), 0.1};
  RC_ASSERT(Step(Facts(with_link), elsewhere, workload).total() == step.total());
}

TEST(Step, StrategyNoneOnlyComputes) {
  for (const Placement& placement : {Placement{1}, Placement{8}, Placement{4, 4, 4}}) {
    const Plan plan = MakePlan(placement, Strategy::kNone);
    const StepTime<double> step = Step(Facts(plan));
    EXPECT_EQ(step.exposed().si(), 0);
    EXPECT_EQ(step.straggler_wait.si(), 0);
    EXPECT_EQ(step.synchronisation.si(), 0);
    EXPECT_EQ(step.limiter, Limiter::kNothing);
    EXPECT_NEAR(step.total().si(), (ByHand{Facts(plan), PriorCluster(), PriorWorkload()}.Micro()),
                1e-15);
  }
}

// A lone worker of an all-reduce exchanges nothing, whatever servers stand about.
TEST(Step, ALoneWorkerWithIdleServersIsFinite) {
  const Plan idle = MakePlan({1}, Strategy::kAllreduce, 2);
  EXPECT_EQ(Total(idle), Total(MakePlan({1}, Strategy::kAllreduce)));
}

// ---- Parts.

RC_GTEST_PROP(StepProperty, PartsAddUpExactlyAndNoneIsNegative, ()) {
  const auto index = static_cast<int>(Strategy::kAllreduce);
  const auto strategy = static_cast<Strategy>(*Whole(index, kStrategyCount - 1));
  const StepTime<double> step = Step(Facts(AnyPlan(strategy)), AnyCluster(), AnyWorkload());
  const Duration<> parts = step.forward + step.backward +
                           (step.exposed_latency + step.exposed_transfer) + step.straggler_wait;
  RC_ASSERT(step.total() == parts);
  const double rounding = -1e-12 * step.total().si();
  for (const Duration<> part : {step.forward, step.backward, step.exposed_latency,
                                step.exposed_transfer, step.straggler_wait}) {
    RC_ASSERT(part.si() >= rounding);
  }
  // Hidden or not, synchronisation takes at least what is seen of it.
  RC_ASSERT(step.synchronisation.si() >= step.exposed().si() * (1 - 1e-12));
}

// One more micro-step costs one micro-step, and the growth of the spread of their sum.
RC_GTEST_PROP(StepProperty, AccumulationCostsAMicroStep, ()) {
  const Strategy strategy = *rc::gen::elementOf(kSynchronous);
  Plan plan = AnyPlan(strategy);
  const Parameters cluster = AnyCluster();
  const WorkloadParameters<double> workload = AnyWorkload();
  plan.accumulation_steps = *Whole(2, 32);
  const double total = Step(Facts(plan), cluster, workload).total().si();
  const ByHand after{Facts(plan), cluster, workload};
  --plan.accumulation_steps;
  const double before = Step(Facts(plan), cluster, workload).total().si();
  const ByHand less{Facts(plan), cluster, workload};
  RC_ASSERT(std::abs(total - before - (after.Micro() + after.Wait() - less.Wait())) <
            1e-12 * total);
}

// ---- Placement.

// One device a node: no ring within, so that the two agree, each to the last bit or nearly.
RC_GTEST_PROP(StepProperty, RingIsHierarchicalWithOneDeviceANode, ()) {
  const Placement placement(static_cast<std::size_t>(*Whole(2, 64)), 1);
  const Parameters cluster = AnyCluster();
  RC_ASSERT(Near(Total(MakePlan(placement, Strategy::kRing), cluster),
                 Total(MakePlan(placement, Strategy::kHierarchical), cluster)));
}

RC_GTEST_PROP(StepProperty, RingIsHierarchicalOnOneNode, ()) {
  const Placement placement = {*Whole(2, 64)};
  const Parameters cluster = AnyCluster();
  RC_ASSERT(Near(Total(MakePlan(placement, Strategy::kRing), cluster),
                 Total(MakePlan(placement, Strategy::kHierarchical), cluster)));
}

TEST(Step, AllreduceIsTheRing) {
  EXPECT_EQ(Total(MakePlan({4, 4}, Strategy::kAllreduce)),
            Total(MakePlan({4, 4}, Strategy::kRing)));
}

// Flows to one peer share 1 GB/s, to two 2; nothing else binds and no scaling with nodes.
TEST(Step, TwoNodesAreSpecial) {
  Parameters cluster = PriorCluster();
  cluster.si[kFlowBandwidth] = 1e9;
  cluster.si[kLinkBandwidth] = 1e18;
  cluster.si[kHostBandwidth] = 1e18;
  cluster.si[kNodeScaling] = 0;
  const auto rate = [&](int nodes) {
    const Placement placement(static_cast<std::size_t>(nodes), 1);
    return EvaluateNetwork(Facts(MakePlan(placement, Strategy::kRing)), cluster)
        .hop.bandwidth.in(kGigabytesPerSecond);
  };
  EXPECT_NEAR(rate(2), 1, 1e-6);
  EXPECT_NEAR(rate(3), 2, 1e-6);
  EXPECT_NEAR(rate(4), 2, 1e-6);
  EXPECT_NEAR(rate(16), 2, 1e-6);
  // So that a third node makes the step faster where the flows bind.
  EXPECT_LT(Total(MakePlan({1, 1, 1}, Strategy::kRing), cluster),
            Total(MakePlan({1, 1}, Strategy::kRing), cluster));
}

// 8 devices on 2 nodes: 1.75 times the bytes over the hop, 2 messages between and 12 within.
TEST(Step, FlatRingCallsByHand) {
  Parameters cluster = PriorCluster();
  const StepFacts facts = MakeStepFacts(Cluster(), MakePlan({4, 4}, Strategy::kRing),
                                        Megabytes(100.0), OneBucket(Megabytes(100.0)));
  const StepTime<double> step = Step(facts, cluster);
  const double rate = EvaluateNetwork(facts, cluster).hop.bandwidth.si();
  EXPECT_NEAR(step.exposed_transfer.si(), 1.75 * 100e6 / rate, 1e-12);
  EXPECT_NEAR(step.exposed_latency.si(), 2 * 50e-6 + 12 * 10e-6 + 0.6e-3, 1e-12);
  EXPECT_NEAR(step.synchronisation.si(), step.exposed().si(), 1e-12);
}

// ---- Loss and round trips.

TEST(Step, LossWithoutARoundTripMeetsTheLatencyOfTheLink) {
  Plan plan = MakePlan({1, 1}, Strategy::kRing);
  plan.link.loss = 0.01;
  const double unstated = Step(Facts(plan)).total().si();
  plan.link.rtt = Milliseconds(0.0);
  EXPECT_EQ(Step(Facts(plan)).total().si(), unstated) << "none stated is none added";
  plan.link.loss = 0.0;
  EXPECT_LT(Step(Facts(plan)).total().si(), unstated) << "loss costs";
  plan.link = {{}, Milliseconds(10.0), 0.01};
  EXPECT_GT(Step(Facts(plan)).total().si(), 2 * unstated) << "and more on a long path";
}

TEST(Step, LossOfTheServersCountsToo) {
  Plan plan = MakePlan({1, 1}, Strategy::kPsSync, 1);
  const double without = Step(Facts(plan)).total().si();
  plan.server_link.loss = 0.05;
  EXPECT_GT(Step(Facts(plan)).total().si(), without);
}

TEST(Step, LossOfTheClusterIsAFact) {
  Cluster cluster;
  cluster.link.loss = 0.001;
  const Plan plan = MakePlan({1, 1}, Strategy::kRing);
  const DataSize<> gradient = Megabytes(1.0);
  EXPECT_EQ(MakeStepFacts(cluster, plan, gradient, OneBucket(gradient)).link.loss, 0.001);
}

// A lost packet in a million is not what holds a slow link back.
TEST(Step, RareLossOnASlowLinkIsNotTheLimiter) {
  Plan plan = MakePlan({1, 1}, Strategy::kRing);
  plan.link = {MegabitsPerSecond(100.0), Milliseconds(0.05), 1e-9};
  EXPECT_EQ(Step(Facts(plan)).limiter, Limiter::kLink);
  plan.link.loss = 0.05;
  plan.link.rtt = Milliseconds(20.0);
  EXPECT_EQ(Step(Facts(plan)).limiter, Limiter::kTransport);
}

// The worst of the hosts that the plan names; a host of another run is none of its business.
TEST(Step, ANamedHostsRoundTripAndLossAreFacts) {
  Cluster cluster;
  cluster.link.rtt = Milliseconds(1.0);
  cluster.hosts = {{"near", {std::nullopt, Milliseconds(0.5), std::nullopt}},
                   {"far", {std::nullopt, Milliseconds(5.0), 0.01}}};
  Plan plan = MakePlan({1, 1}, Strategy::kRing);
  const DataSize<> gradient = Megabytes(1.0);
  const auto link = [&] {
    return MakeStepFacts(cluster, plan, gradient, OneBucket(gradient)).link;
  };
  plan.hosts = {"near", "other"};
  EXPECT_EQ(link().rtt, Milliseconds(1.0));
  EXPECT_FALSE(link().loss.has_value());
  plan.hosts = {"near", "far"};
  EXPECT_EQ(link().rtt, Milliseconds(5.0));
  EXPECT_EQ(link().loss, 0.01);
  plan.link.rtt = Milliseconds(2.0);
  EXPECT_EQ(link().rtt, Milliseconds(2.0));
}

// Half of it one way, in each of the 2 x 3 messages around four devices, once for each bucket.
TEST(Step, ADeviceLinksRoundTripIsAFact) {
  const Plan plan = MakePlan({4}, Strategy::kRing);
  const DataSize<> gradient = Megabytes(1.0);
  Cluster cluster;
  const auto synchronisation = [&] {
    return Step(MakeStepFacts(cluster, plan, gradient, OneBucket(gradient))).synchronisation.si();
  };
  const double before = synchronisation();
  cluster.device_link.rtt = Microseconds(100.0);
  EXPECT_NEAR(synchronisation() - before, 6 * 50e-6, 1e-12);
}

RC_GTEST_PROP(StepProperty, NoLossIsTheSameStatedOrNot, ()) {
  const auto strategy = static_cast<Strategy>(*Whole(0, kStrategyCount - 1));
  Plan silent = AnyPlan(strategy);
  silent.link.loss.reset();
  Plan lossless = silent;
  lossless.link.loss = 0.0;
  lossless.server_link.loss = 0.0;
  const Parameters cluster = AnyCluster();
  RC_ASSERT(Total(lossless, cluster) == Total(silent, cluster));
}

// The cluster file's bandwidth is the centre of a prior; what the plan states is a fact.
TEST(Step, StatedBandwidthIsAFactOnlyInThePlan) {
  Cluster cluster;
  cluster.link = {GigabitsPerSecond(1.0), Milliseconds(2.0), std::nullopt};
  Plan plan = MakePlan({1, 1}, Strategy::kRing);
  const DataSize<> gradient = Megabytes(1.0);
  StepFacts facts = MakeStepFacts(cluster, plan, gradient, OneBucket(gradient));
  EXPECT_FALSE(facts.link.bandwidth.has_value());
  EXPECT_EQ(facts.link.rtt, Milliseconds(2.0));
  plan.link.bandwidth = MegabitsPerSecond(100.0);
  facts = MakeStepFacts(cluster, plan, gradient, OneBucket(gradient));
  EXPECT_EQ(facts.link.bandwidth, MegabitsPerSecond(100.0));
}

// ---- Monotone.

RC_GTEST_PROP(StepProperty, BytesLossAndLatencyNeverHelp, ()) {
  const auto strategy = static_cast<Strategy>(*Whole(0, kStrategyCount - 1));
  Plan plan = AnyPlan(strategy);
  plan.link.rtt = Seconds(*LogUniform(1e-5, 0.1));
  plan.link.loss = *LogUniform(1e-6, 0.1);
  const Parameters cluster = AnyCluster();
  const WorkloadParameters<double> workload = AnyWorkload();
  const double factor = *LogUniform(1, 5);
  const double bytes = *LogUniform(1e5, 1e9);
  const auto total = [&](const Plan& p, double gradient) {
    return Step(Facts(p, Bytes(gradient)), cluster, workload).total().si();
  };
  const double before = total(plan, bytes) * (1 - 1e-12);
  RC_ASSERT(total(plan, bytes * factor) >= before);
  Plan worse = plan;
  worse.link.loss = *plan.link.loss * factor;
  RC_ASSERT(total(worse, bytes) >= before);
  worse = plan;
  worse.link.rtt = *plan.link.rtt * factor;
  RC_ASSERT(total(worse, bytes) >= before);
  worse = plan;
  worse.local_batch *= 2;
  RC_ASSERT(total(worse, bytes) >= before);
}

RC_GTEST_PROP(StepProperty, BandwidthNeverHurts, ()) {
  const auto strategy = static_cast<Strategy>(*Whole(0, kStrategyCount - 1));
  Plan plan = AnyPlan(strategy);
  plan.link.bandwidth = BytesPerSecond(*LogUniform(1e7, 1e10));
  plan.server_link.bandwidth = BytesPerSecond(*LogUniform(1e7, 1e10));
  const Parameters cluster = AnyCluster();
  const double factor = *LogUniform(1, 5);
  const double before = Total(plan, cluster) * (1 + 1e-12);
  Plan faster = plan;
  faster.link.bandwidth = *plan.link.bandwidth * factor;
  RC_ASSERT(Total(faster, cluster) <= before);
  faster = plan;
  faster.server_link.bandwidth = *plan.server_link.bandwidth * factor;
  RC_ASSERT(Total(faster, cluster) <= before);
}

// On the nodes that there are: more devices a node; and more nodes from three on, two being
// special. Halving-doubling is left out, which pays for what is beyond a power of two.
RC_GTEST_PROP(StepProperty, MoreDevicesNeverMakeAStepFaster, ()) {
  const Strategy strategy = *rc::gen::element(Strategy::kRing, Strategy::kTree,
                                              Strategy::kHierarchical, Strategy::kPsSync);
  const auto nodes = static_cast<std::size_t>(*Whole(1, 20));
  const int devices = *Whole(1, 8);
  const Parameters cluster = AnyCluster();
  const double before = Total(PlanOf(strategy, Placement(nodes, devices)), cluster) * (1 - 1e-12);
  RC_ASSERT(Total(PlanOf(strategy, Placement(nodes, devices + 1)), cluster) >= before);
  if (nodes >= 3) {
    RC_ASSERT(Total(PlanOf(strategy, Placement(nodes + 1, devices)), cluster) >= before);
  }
}

RC_GTEST_PROP(StepProperty, MoreServersNeverMakeAStepSlowerUpToTheWorkers, ()) {
  const Placement placement = AnyPlacement();
  const int servers = *Whole(1, Workers(placement) - 1);
  const Parameters cluster = AnyCluster();
  RC_ASSERT(Total(MakePlan(placement, Strategy::kPsSync, servers + 1), cluster) <=
            Total(MakePlan(placement, Strategy::kPsSync, servers), cluster) * (1 + 1e-12));
}

// ---- Limits.

Parameters PerfectNetwork() {
  Parameters cluster = PriorCluster();
  for (const int rate : {kLinkBandwidth, kFlowBandwidth, kHostBandwidth}) {
    cluster.si[static_cast<std::size_t>(rate)] = 1e30;
  }
  for (const int latency : {kLinkLatency, kDeviceLatency, kTransferInitiation}) {
    cluster.si[static_cast<std::size_t>(latency)] = 1e-30;
  }
  return cluster;
}

TEST(Step, APerfectNetworkLeavesComputeStragglersAndTheFixedCost) {
  for (const Strategy strategy : kSynchronous) {
    for (const Placement& placement : {Placement{4}, Placement{4, 4, 4}}) {
      const StepFacts facts = Facts(PlanOf(strategy, placement));
      const StepTime<double> step = Step(facts, PerfectNetwork());
      const ByHand hand{facts, PerfectNetwork(), PriorWorkload()};
      const double overhead = facts.nodes > 1 || UsesServers(strategy) ? 0.6e-3 : 0.3e-3;
      EXPECT_NEAR(step.total().si(), hand.Micro() + hand.Wait() + overhead, 1e-12)
          << StrategyName(strategy);
      EXPECT_NEAR(step.exposed().si(), overhead, 1e-12) << StrategyName(strategy);
    }
  }
}

TEST(Step, AsynchronousOnAPerfectNetworkOnlyComputes) {
  const StepFacts facts = Facts(PlanOf(Strategy::kPsAsync, {4, 4}));
  const ByHand hand{facts, PerfectNetwork(), PriorWorkload()};
  EXPECT_NEAR(Step(facts, PerfectNetwork()).total().si(), hand.Micro(), 1e-12);
}

// Compute, 2 (50 us + 2 x 20 us), and twice 100 MB over the worker's hop, the narrower one here.
TEST(Step, ALoneAsynchronousWorkerByHand) {
  const StepFacts facts = Facts(MakePlan({1}, Strategy::kPsAsync, 2));
  const ByHand hand{facts, PriorCluster(), PriorWorkload()};
  const StepTime<double> step = Step(facts);
  EXPECT_NEAR(step.exposed_latency.si(), 2 * (50e-6 + 2 * 20e-6), 1e-12);
  EXPECT_NEAR(step.exposed_transfer.si(), 2 * 100e6 * hand.HopPerByte(2), 1e-9);
  EXPECT_NEAR(step.total().si(), hand.Micro() + step.exposed().si(), 1e-12);
  EXPECT_EQ(step.straggler_wait.si(), 0);
}

// Slow compute hides all but the last bucket; slow network is seen whole but for the first wait.
TEST(Step, OverlapHidesWhatItCan) {
  WorkloadParameters<double> slow = PriorWorkload();
  slow.si[kFixedTime] = 1000;
  const StepFacts facts = Facts(MakePlan({1, 1, 1, 1}, Strategy::kRing));
  const auto [call, byte] = ByHand{facts, PriorCluster(), slow}.Sync();
  EXPECT_NEAR(Step(facts, PriorCluster(), slow).exposed().si(), call + byte * 20e6 + 0.6e-3, 1e-9);
  EXPECT_NEAR(Step(facts, PriorCluster(), slow).synchronisation.si(),
              4 * call + byte * 100e6 + 0.6e-3, 1e-12);
}

// ---- What holds it back.

Limiter LimiterOf(const Plan& plan, const Parameters& cluster) {
  return Step(Facts(plan), cluster).limiter;
}

// Nothing binds: each case then slows one thing down.
Parameters FastCluster() {
  Parameters cluster = PriorCluster();
  cluster.si[kLinkBandwidth] = 1e11;
  cluster.si[kFlowBandwidth] = 1e11;
  cluster.si[kHostBandwidth] = 1e12;
  return cluster;
}

TEST(StepLimiter, Link) {
  Parameters cluster = FastCluster();
  cluster.si[kLinkBandwidth] = 1e8;
  EXPECT_EQ(LimiterOf(MakePlan({1, 1, 1, 1}, Strategy::kRing), cluster), Limiter::kLink);
  // A stated bandwidth as well as a fitted one.
  Plan plan = MakePlan({1, 1, 1, 1}, Strategy::kRing);
  plan.link.bandwidth = MegabitsPerSecond(100.0);
  EXPECT_EQ(LimiterOf(plan, FastCluster()), Limiter::kLink);
}

TEST(StepLimiter, Flow) {
  Parameters cluster = FastCluster();
  cluster.si[kLinkBandwidth] = 1.5e9;
  cluster.si[kFlowBandwidth] = 1e9;
  EXPECT_EQ(LimiterOf(MakePlan({1, 1}, Strategy::kRing), cluster), Limiter::kFlow);
  // With two neighbours the flows carry more than the link.
  EXPECT_EQ(LimiterOf(MakePlan({1, 1, 1}, Strategy::kRing), cluster), Limiter::kLink);
}

TEST(StepLimiter, Host) {
  Parameters cluster = FastCluster();
  cluster.si[kHostBandwidth] = 1e8;
  EXPECT_EQ(LimiterOf(MakePlan({1, 1, 1, 1}, Strategy::kRing), cluster), Limiter::kHost);
  EXPECT_EQ(LimiterOf(MakePlan({8}, Strategy::kRing), cluster), Limiter::kHost);
}

TEST(StepLimiter, Transport) {
  Plan window = MakePlan({1, 1, 1, 1}, Strategy::kHierarchical);
  window.link.rtt = Milliseconds(50.0);
  EXPECT_EQ(LimiterOf(window, FastCluster()), Limiter::kTransport);
  Plan loss = MakePlan({1, 1, 1, 1}, Strategy::kRing);
  loss.link.rtt = Milliseconds(1.0);
  loss.link.loss = 0.01;
  EXPECT_EQ(LimiterOf(loss, FastCluster()), Limiter::kTransport);
}

TEST(StepLimiter, ServerLink) {
  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kPsAsync}) {
    Parameters cluster = FastCluster();
    cluster.si[kLinkBandwidth] = 1e8;
    const Placement eight(8, 1);
    // Eight workers at the link of one server, or of eight that are slower than the workers' own.
    EXPECT_EQ(LimiterOf(MakePlan(eight, strategy, 1), cluster), Limiter::kServerLink);
    Plan slow = MakePlan(eight, strategy, 8);
    slow.server_link.bandwidth = BytesPerSecond(1e6);
    EXPECT_EQ(LimiterOf(slow, cluster), Limiter::kServerLink);
    // Four devices of a node share its link; four servers have one each.
    EXPECT_EQ(LimiterOf(MakePlan({4}, strategy, 4), cluster), Limiter::kLink);
  }
}

TEST(StepLimiter, TransportAtTheServers) {
  Plan plan = MakePlan(Placement(8, 1), Strategy::kPsSync, 1);
  plan.server_link.rtt = Milliseconds(50.0);
  EXPECT_EQ(LimiterOf(plan, FastCluster()), Limiter::kTransport);
}

TEST(StepLimiter, Latency) {
  Parameters cluster = FastCluster();
  cluster.si[kLinkLatency] = 0.01;
  EXPECT_EQ(LimiterOf(MakePlan({1, 1, 1, 1}, Strategy::kRing), cluster), Limiter::kLatency);
  const StepFacts small = Facts(MakePlan({1, 1}, Strategy::kRing), Bytes(1000.0));
  EXPECT_EQ(Step(small).limiter, Limiter::kLatency);
}

}  // namespace
}  // namespace stepcast
