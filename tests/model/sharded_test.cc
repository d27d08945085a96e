// Steps of models that are shared out, and of rare synchronisations: against precedences worked out
// one by one, by hand, and in the limits where another exchange is known.
#include "model/exchange/sharded.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/workloads/catalog.h"
#include "model/exchange/exchange.h"
#include "model/memory/memory.h"
#include "model/step/answer.h"
#include "model/step/step.h"
#include "tests/model/message_level.h"
#include "tests/model/step_derivatives.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

constexpr Shard kSharded[] = {Shard::kOptimizer, Shard::kGradients, Shard::kParameters};

CallCost<double> CostOf(double per_call, double per_byte) {
  const SyncCost<double> cost{Seconds(per_call), DurationPerByte<double>::FromSi(per_byte)};
  return {{cost, cost}, {}};
}

struct Unit {
  double bytes;
  double ready;
};

std::vector<Bucket> BucketsOf(const std::vector<Unit>& units) {
  std::vector<Bucket> buckets;
  for (const Unit& unit : units) buckets.push_back({Bytes(unit.bytes), unit.ready});
  return buckets;
}

std::vector<Unit> AnyUnits() {
  std::vector<Unit> units(static_cast<std::size_t>(*Whole(1, 12)));
  double sum = 0;
  for (Unit& unit : units) {
    unit.bytes = *LogUniform(1e3, 1e8);
    sum += unit.ready = *LogUniform(0.01, 1);
  }
  const double last = *LogUniform(0.5, 1);
  double before = 0;
  for (Unit& unit : units) before = unit.ready = before + unit.ready / sum * last;
  units.back().ready = last;
  return units;
}

// Ends of activities that wait for the ends, or for the begins, of others: the longest path, found
// by going over all precedences until nothing moves.
class Precedences {
 public:
  explicit Precedences(std::size_t count) : begin_(count), length_(count) {}

  void Set(std::size_t activity, double length) { length_[activity] = length; }
  void AfterEnd(std::size_t before, std::size_t after) { rules_.push_back({before, after, true}); }
  void AfterBegin(std::size_t before, std::size_t after) {
    rules_.push_back({before, after, false});
  }
  double LastEnd() {
    for (bool moved = true; moved;) {
      moved = false;
      for (const Rule& rule : rules_) {
        const double least = begin_[rule.before] + (rule.end ? length_[rule.before] : 0);
        if (begin_[rule.after] < least) {
          begin_[rule.after] = least;
          moved = true;
        }
      }
    }
    double last = 0;
    for (std::size_t i = 0; i < begin_.size(); ++i) last = std::max(last, begin_[i] + length_[i]);
    return last;
  }

 private:
  struct Rule {
    std::size_t before;
    std::size_t after;
    bool end;
  };
  std::vector<double> begin_;
  std::vector<double> length_;
  std::vector<Rule> rules_;
};

// What a unit costs within nodes, in halves of an all-reduce, and between them.
struct Costs {
  double call;
  double byte;
  double between_call = 0;
  double between_byte = 0;
  double late = 0;  // of the first unit between nodes

  UnitExchange<double> exchange() const {
    return {CostOf(call, byte), CostOf(between_call, between_byte).between};
  }
};

// Activities: gather k, compute k, reduce k are 3 k, 3 k + 1, 3 k + 2; what no unit computes is the
// next one, and behind it are those between nodes.
double BackwardByPrecedences(const std::vector<Unit>& units, double backward, const Costs& costs) {
  const std::size_t count = units.size();
  Precedences all(4 * count + 1);
  double before = 0;
  std::size_t carried = 0;  // the last operation of the link
  for (std::size_t k = 0; k < count; ++k) {
    const double on_link = costs.call + costs.byte * units[k].bytes;
    const std::size_t between = 3 * count + 1 + k;
    all.Set(between,
            costs.between_call + costs.between_byte * units[k].bytes + (k == 0 ? costs.late : 0));
    all.AfterEnd(3 * k + 2, between);
    if (k > 0) all.AfterEnd(between - 1, between);
    all.Set(3 * k, on_link);
    all.Set(3 * k + 1, backward * (units[k].ready - before));
    all.Set(3 * k + 2, on_link);
    before = units[k].ready;
    all.AfterEnd(3 * k, 3 * k + 1);
    if (k > 0) all.AfterEnd(3 * k - 2, 3 * k + 1);
    if (k + 1 < count) {
      all.AfterBegin(3 * k + 1, 3 * k + 3);
      all.AfterEnd(carried, 3 * k + 3);
      carried = 3 * k + 3;
    }
    all.AfterEnd(carried, 3 * k + 2);
    all.AfterEnd(3 * k + 1, 3 * k + 2);
    carried = 3 * k + 2;
  }
  all.Set(3 * count, backward * (1 - before));
  all.AfterEnd(3 * count - 2, 3 * count);
  return all.LastEnd();
}

// Gathers from the end of the network's list, units computed as they arrive; what comes before the
// first of them waits for none.
double ForwardByPrecedences(const std::vector<Unit>& units, double forward, const Costs& costs) {
  const std::size_t count = units.size();
  Precedences all(2 * count + 1);
  all.Set(2 * count, forward * (1 - units.back().ready));
  for (std::size_t k = count; k-- > 0;) {
    const double before = k == 0 ? 0 : units[k - 1].ready;
    all.Set(2 * k, costs.call + costs.byte * units[k].bytes);
    all.Set(2 * k + 1, forward * (units[k].ready - before));
    all.AfterEnd(2 * k, 2 * k + 1);
    all.AfterEnd(k + 1 < count ? 2 * k + 3 : 2 * count, 2 * k + 1);
    if (k + 1 < count) all.AfterEnd(2 * k + 2, 2 * k);
  }
  return all.LastEnd();
}

Costs AnyCosts() { return {*LogUniform(1e-6, 1e-2), *LogUniform(1e-11, 1e-7)}; }
Costs AnyHybridCosts() {
  Costs costs = AnyCosts();
  costs.between_call = *LogUniform(1e-6, 1e-2);
  costs.between_byte = *LogUniform(1e-11, 1e-7);
  costs.late = *Whole(0, 1) * *LogUniform(1e-4, 1);
  return costs;
}

RC_GTEST_PROP(GatherUnitsProperty, IsTheLongestPathOfPrecedences, ()) {
  const std::vector<Unit> units = AnyUnits();
  const double forward = *LogUniform(1e-3, 1);
  const double backward = *LogUniform(1e-3, 1);
  for (const Costs& costs : {AnyCosts(), AnyHybridCosts()}) {
    const GatheredPasses<double> passes =
        GatherUnits(costs.exchange(), BucketsOf(units), Seconds(forward), Seconds(backward),
                    Seconds(costs.late));
    RC_ASSERT(Near(passes.forward.si(), ForwardByPrecedences(units, forward, costs)));
    RC_ASSERT(Near(passes.backward.si(), BackwardByPrecedences(units, backward, costs)));
  }
}

// No pass is shorter than its compute or its bytes on any link, nor longer than all one after the
// other.
RC_GTEST_PROP(GatherUnitsProperty, LieBetweenTheLargerAndTheSum, ()) {
  const std::vector<Unit> units = AnyUnits();
  const double forward = *LogUniform(1e-3, 1);
  const double backward = *LogUniform(1e-3, 1);
  const Costs costs = *Whole(0, 1) == 0 ? AnyCosts() : AnyHybridCosts();
  double gathers = 0;
  double between = costs.late;
  for (const Unit& unit : units) {
    gathers += costs.call + costs.byte * unit.bytes;
    between += costs.between_call + costs.between_byte * unit.bytes;
  }
  const GatheredPasses<double> passes = GatherUnits(
      costs.exchange(), BucketsOf(units), Seconds(forward), Seconds(backward), Seconds(costs.late));
  const double slack = 1e-12;
  RC_ASSERT(passes.forward.si() >= std::max(forward, gathers) * (1 - slack));
  RC_ASSERT(passes.forward.si() <= (forward + gathers) * (1 + slack));
  RC_ASSERT(passes.backward.si() >= std::max({backward, 2 * gathers, between}) * (1 - slack));
  RC_ASSERT(passes.backward.si() <= (backward + 2 * gathers + between) * (1 + slack));
}

TEST(EndOfSharedUpdate, GathersAfterBoth) {
  EXPECT_EQ(EndOfSharedUpdate(Seconds(3.0), Seconds(2.0), Seconds(4.0)), Seconds(7.0));
  EXPECT_EQ(EndOfSharedUpdate(Seconds(3.0), Seconds(5.0), Seconds(4.0)), Seconds(9.0));
}

// ---- A whole step.

Workload Message(DataSize<> gradient) {
  Workload workload;
  workload.name = "message";
  workload.gradient_bytes = gradient;
  workload.parameters = workload.trainable_parameters =
      static_cast<std::int64_t>(gradient.si() / 4);
  return workload;
}

// Eight equal buckets.
std::shared_ptr<const std::vector<Bucket>> EightBuckets(DataSize<> gradient) {
  std::vector<Bucket> buckets;
  for (int k = 1; k <= 8; ++k) buckets.push_back({gradient / 8, k / 8.0});
  return std::make_shared<const std::vector<Bucket>>(buckets);
}

Plan PlanOn(const Placement& placement, Shard shard = Shard::kNone) {
  Plan plan;
  plan.placement = placement;
  plan.strategy = Strategy::kRing;
  plan.local_batch = 32;
  plan.shard = shard;
  return plan;
}

StepFacts FactsOf(const Plan& plan) {
  const DataSize<> gradient = Megabytes(100.0);
  return MakeStepFacts(Cluster(), plan, Message(gradient), EightBuckets(gradient));
}

// A network, and hosts, of this rate; without latency, fixed costs and what workers differ by.
ClusterParameters<double> ClusterOf(double bytes_per_s) {
  ClusterParameters<double> cluster = PriorCluster();
  cluster.si[kLinkBandwidth] = bytes_per_s;
  cluster.si[kFlowBandwidth] = cluster.si[kHostBandwidth] = 1e6 * bytes_per_s;
  cluster.si[kHopSpread] = cluster.si[kOverlapContention] = cluster.si[kHostSharing] = 0;
  cluster.si[kLinkLatency] = cluster.si[kNodeSyncOverhead] = 0;
  return cluster;
}
WorkloadParameters<double> Even() {
  WorkloadParameters<double> workload = PriorWorkload();
  workload.si[kStragglerSpread] = 0;
  return workload;
}

StepTime<double> Step(const Plan& plan, double bytes_per_s) {
  return EvaluateStep(FactsOf(plan), ClusterOf(bytes_per_s), Even());
}

// On a network that is no hindrance, all that is shared out makes the update shorter.
TEST(ShardedStep, OnAnEndlessNetworkOnlyTheUpdateChanges) {
  const StepTime<double> whole = Step(PlanOn({1, 1, 1, 1}), 1e30);
  for (const Shard shard : kSharded) {
    const StepTime<double> step = Step(PlanOn({1, 1, 1, 1}, shard), 1e30);
    EXPECT_NEAR(step.update / whole.update, 0.25, 1e-12);
    EXPECT_NEAR(Step(PlanOn({2, 2}, shard), 1e30).update / whole.update, 0.25, 1e-12);
    EXPECT_NEAR((step.total() - step.update) / (whole.total() - whole.update), 1, 1e-9);
  }
}

// On a network that is nothing but a hindrance a step is its bytes: twice m (w-1)/w, or three times
// for each micro-step.
TEST(ShardedStep, OnASlowNetworkIsItsBytes) {
  constexpr double kRate = 1e3;
  for (const int accumulation : {1, 4}) {
    for (const Shard shard :
         {Shard::kNone, Shard::kOptimizer, Shard::kGradients, Shard::kParameters}) {
      Plan plan = PlanOn({1, 1, 1, 1}, shard);
      plan.accumulation_steps = accumulation;
      const double passes = shard == Shard::kParameters ? 3 * accumulation : 2;
      const double bytes = passes * 100e6 * 3 / 4;
      EXPECT_NEAR(Step(plan, kRate).total().si() / (bytes / (kRate * kPayloadShare)), 1, 1e-4)
          << kShardNames[static_cast<int>(shard)] << " " << accumulation;
      const Traffic traffic = CountTraffic(plan, Megabytes(100.0));
      EXPECT_NEAR(traffic.per_worker.si(), bytes, 1);
      EXPECT_NEAR(traffic.total.si(), bytes * 4, 1);
    }
  }
}

// Where the backward pass hides the reduce-scatters but for the last bucket's, the gathers are what
// is seen of ZeRO-1, and in FSDP the first gather of each pass and the last reduce-scatter.
TEST(ShardedStep, ByHandOnAFastNetwork) {
  const double rate = 1e12;
  const double half = 100e6 * 3 / 4 / (rate * kPayloadShare);
  const auto exposed = [&](Shard shard) {
    return Step(PlanOn({1, 1, 1, 1}, shard), rate).exposed().si();
  };
  EXPECT_NEAR(exposed(Shard::kNone) / (2 * half / 8), 1, 1e-6);
  EXPECT_NEAR(exposed(Shard::kOptimizer) / (half / 8 + half), 1, 1e-6);
  EXPECT_NEAR(exposed(Shard::kGradients) / (half / 8 + half), 1, 1e-6);
  EXPECT_NEAR(exposed(Shard::kParameters) / (3 * half / 8), 1, 1e-6);
}

// Flows that were silent while the devices computed start slowly: once a step, and not at all where
// units keep them busy.
TEST(ShardedStep, SlowStartIsPaidOnce) {
  WorkloadParameters<double> long_steps = Even();
  long_steps.si[kSampleTime] = 1;
  const auto step = [&](Shard shard, double timeout, StepTerms<double>* terms) {
    StepFacts facts = FactsOf(PlanOn({1, 1, 1, 1}, shard));
    facts.link.rtt = Milliseconds(20.0);
    ClusterParameters<double> cluster = ClusterOf(1e9);
    cluster.si[kOverlapShare] = 1e-9;
    cluster.si[kLossTimeout] = timeout;
    return EvaluateStep(facts, cluster, long_steps, terms).total().si();
  };
  for (const Shard shard : {Shard::kNone, Shard::kOptimizer, Shard::kGradients}) {
    StepTerms<double> terms;
    const double slow = step(shard, 0.2, &terms);
    StepTerms<double> never;
    const double steady = step(shard, 1e9, &never);
    EXPECT_GT(terms.slow_start.si(), 0.01);
    EXPECT_EQ(never.slow_start.si(), 0);
    EXPECT_NEAR((slow - steady) / terms.slow_start.si(), 1, 1e-6);
  }
  StepTerms<double> terms;
  step(Shard::kParameters, 0.2, &terms);
  EXPECT_EQ(terms.slow_start.si(), 0);
}

TEST(ShardedStep, OfALoneWorkerIsTheSameToTheBit) {
  const StepTime<double> whole = Step(PlanOn({1}), 1e9);
  for (const Shard shard : kSharded)
    EXPECT_EQ(Step(PlanOn({1}, shard), 1e9).total(), whole.total());
  Plan rare = PlanOn({1});
  rare.local_steps = 64;
  EXPECT_EQ(Step(rare, 1e9).total(), whole.total());
}

// Who shares out more waits no less, but for the part of the update that others do.
RC_GTEST_PROP(ShardedStepProperty, NeverFallsWithLatencyOrBytesAndRisesWithBandwidth, ()) {
  Plan plan = PlanOn(Placement(static_cast<std::size_t>(*Whole(2, 20)), *Whole(1, 4)),
                     kSharded[*Whole(0, 2)]);
  plan.accumulation_steps = *Whole(1, 5);
  plan.strategy = *rc::gen::element(Strategy::kRing, Strategy::kHierarchical);
  plan.overlap = *rc::gen::element(Overlap::kBuckets, Overlap::kNone);
  ClusterParameters<double> cluster = PriorCluster();
  cluster.si[kLinkBandwidth] = *LogUniform(1e6, 1e11);
  const auto total = [&](const ClusterParameters<double>& at) {
    return EvaluateStep(FactsOf(plan), at, PriorWorkload()).total().si();
  };
  const double step = total(cluster);
  RC_ASSERT(std::isfinite(step));
  const double slack = 1 + 1e-12;
  for (const ClusterParameter faster : {kLinkBandwidth, kFlowBandwidth, kHostBandwidth}) {
    ClusterParameters<double> other = cluster;
    other.si[faster] *= *LogUniform(1, 10);
    RC_ASSERT(total(other) <= step * slack);
  }
  for (const ClusterParameter slower : {kLinkLatency, kDeviceLatency, kNodeSyncOverhead}) {
    ClusterParameters<double> other = cluster;
    other.si[slower] *= *LogUniform(1, 10);
    RC_ASSERT(total(other) * slack >= step);
  }
}

// The exact derivatives against differences.
RC_GTEST_PROP(ShardedStepProperty, HasItsDerivatives, ()) {
  Plan plan = PlanOn(Placement(static_cast<std::size_t>(*Whole(2, 20)), *Whole(1, 4)),
                     static_cast<Shard>(*Whole(0, kShardCount - 1)));
  plan.accumulation_steps = *Whole(1, 5);
  if (plan.shard == Shard::kNone) plan.local_steps = *Whole(2, 50);
  const StepFacts facts = FactsOf(plan);
  RequireStepDerivatives(
      facts, {kLinkBandwidth, kHostBandwidth, kLinkLatency, kOverlapShare, kOverlapContention});
}

// ---- Shared out within nodes.

// Run message by message: the rounds of all parts, and the bytes of the busiest worker in each.
TEST(HybridCall, IsTheAlgorithmRoundByRound) {
  const Hop<double> inter{Milliseconds(3.0), BytesPerSecond(1e6)};
  const Hop<double> intra{Milliseconds(1.0), BytesPerSecond(1e9)};
  for (int nodes = 2; nodes <= 5; ++nodes) {
    for (int devices = 1; devices <= 5; ++devices) {
      const MessageNetwork hybrid = RunHybrid(nodes, devices);
      ASSERT_TRUE(hybrid.EveryWorkerHasTheSum());
      const NodeShape shape{nodes * devices, nodes, devices, 1};
      const CallCost<double> call = HybridCall(shape, inter, intra);
      const int within = 3 * (devices - 1);
      const int between = 2 * (nodes - 1);
      EXPECT_EQ(hybrid.rounds(), within + between);
      EXPECT_DOUBLE_EQ(call.Chain().per_call.si(), within * 1e-3 + between * 3e-3);
      // All devices of a node share its card, and each has the node's own rate for itself.
      const double message = static_cast<double>(hybrid.length());
      const double of_device = 2.0 * (nodes - 1) / nodes * message / devices;
      EXPECT_DOUBLE_EQ(static_cast<double>(hybrid.serial_bytes()),
                       within * message / devices + of_device);
      EXPECT_NEAR(call.Steady().per_byte.si() * message,
                  within * message / devices / 1e9 + devices * of_device / 1e6, 1e-12);
      // Two cards carry it in half the time.
      NodeShape two = shape;
      two.cards = 2;
      EXPECT_DOUBLE_EQ(HybridCall(two, inter, intra).between.steady.per_byte.si(),
                       call.between.steady.per_byte.si() / std::min(2, devices));
    }
  }
}

constexpr Strategy kHalving[] = {Strategy::kAllreduce, Strategy::kRing, Strategy::kHierarchical};

Plan HybridOn(int nodes, int devices) {
  return PlanOn(Placement(static_cast<std::size_t>(nodes), devices), Shard::kHybrid);
}

// On one node all workers are those who share, bit by bit.
RC_GTEST_PROP(HybridStepProperty, OnOneNodeIsThatOfParameters, ()) {
  Plan plan = HybridOn(1, *Whole(1, 16));
  plan.strategy = kHalving[*Whole(0, 2)];
  plan.accumulation_steps = *Whole(1, 5);
  plan.overlap = *rc::gen::element(Overlap::kBuckets, Overlap::kNone);
  Plan parameters = plan;
  parameters.shard = Shard::kParameters;
  StepTerms<double> terms;
  StepTerms<double> expected;
  const StepTime<double> step =
      EvaluateStep(FactsOf(plan), PriorCluster(), PriorWorkload(), &terms);
  const StepTime<double> whole =
      EvaluateStep(FactsOf(parameters), PriorCluster(), PriorWorkload(), &expected);
  RC_ASSERT(step.total() == whole.total());
  RC_ASSERT(step.synchronisation == whole.synchronisation);
  RC_ASSERT(step.exposed_transfer == whole.exposed_transfer);
  RC_ASSERT(step.update == whole.update);
  RC_ASSERT(terms.passes == expected.passes);
  RC_ASSERT(terms.end == expected.end);
  const Traffic traffic = CountTraffic(plan, Megabytes(100.0));
  const Traffic of_parameters = CountTraffic(parameters, Megabytes(100.0));
  RC_ASSERT(traffic.transfers == of_parameters.transfers);
  RC_ASSERT(traffic.per_worker == of_parameters.per_worker);
  RC_ASSERT(traffic.total == of_parameters.total);
}

// On nodes of one device nothing is gathered: of the same buckets it is the ring of who keeps the
// whole, but in each micro-step.
RC_GTEST_PROP(HybridStepProperty, OnNodesOfOneDeviceIsTheRing, ()) {
  Plan plan = HybridOn(*Whole(2, 20), 1);
  plan.strategy = kHalving[*Whole(0, 2)];
  plan.overlap = *rc::gen::element(Overlap::kBuckets, Overlap::kNone);
  if (*Whole(0, 1) == 1) plan.link.rtt = Seconds(*LogUniform(1e-4, 0.1));
  Plan ring = plan;
  ring.shard = Shard::kNone;
  ClusterParameters<double> cluster = PriorCluster();
  cluster.si[kLinkBandwidth] = *LogUniform(1e6, 1e11);
  const auto step = [&](const Plan& of) {
    return EvaluateStep(FactsOf(of), cluster, PriorWorkload());
  };
  // What hides is not the same to contention, which takes all passes for the one that hides.
  cluster.si[kOverlapContention] = 0;
  RC_ASSERT(Near(step(plan).total().si(), step(ring).total().si()));
  RC_ASSERT(Near(step(plan).synchronisation.si(), step(ring).synchronisation.si()));
  const auto traffic = [&](const Plan& of) { return CountTraffic(of, Megabytes(100.0)); };
  RC_ASSERT(traffic(plan).transfers == traffic(ring).transfers);
  RC_ASSERT(Near(traffic(plan).per_worker.si(), traffic(ring).per_worker.si()));
  RC_ASSERT(traffic(plan).total == traffic(ring).total);
  plan.accumulation_steps = ring.accumulation_steps = *Whole(2, 5);
  RC_ASSERT(Near(traffic(plan).total.si(), traffic(ring).total.si() * plan.accumulation_steps));
  RC_ASSERT(step(plan).total() * (1 + 1e-12) >= step(ring).total());
}

// Where links between nodes are nothing but a hindrance a step is the bytes that cross them, and
// where those within nodes are it is three passes of all but the own share.
TEST(HybridStep, IsTheBytesOfTheSlowLevel) {
  for (const int accumulation : {1, 4}) {
    Plan plan = HybridOn(4, 2);
    plan.accumulation_steps = accumulation;
    const double between = accumulation * 100e6 * 2 * 3 / 4;
    EXPECT_NEAR(Step(plan, 1e3).total().si() / (between / (1e3 * kPayloadShare)), 1, 1e-4);
    ClusterParameters<double> cluster = ClusterOf(1e15);
    cluster.si[kHostBandwidth] = 1e3;
    cluster.si[kDeviceLatency] = 0;
    StepFacts facts = FactsOf(plan);
    facts.nics = 2;
    const double within = accumulation * 100e6 * 3 / 2;
    // The rings between nodes pass the same hosts, of which each has a card's share.
    const StepTime<double> step = EvaluateStep(facts, cluster, Even());
    EXPECT_GT(step.total().si(), within / 1e3);
    EXPECT_LT(step.total().si(), 2 * within / 1e3);
    EXPECT_NEAR(step.synchronisation.si() / ((within + between / 2) / 1e3), 1, 1e-6);
  }
}

// On fast links only what no pass hides is seen: the first gathers, and all of the last unit.
TEST(HybridStep, ByHandOnAFastNetwork) {
  ClusterParameters<double> cluster = ClusterOf(1e12);
  cluster.si[kDeviceLatency] = 0;
  cluster.si[kHostBandwidth] = 1e13;
  const Plan plan = HybridOn(4, 2);
  StepTerms<double> terms;
  const StepTime<double> step = EvaluateStep(FactsOf(plan), cluster, Even(), &terms);
  const double half = 100e6 / 2 / 1e13;
  const double between = 100e6 * 2 * 3 / 4 / terms.node_hop.bandwidth.si();
  EXPECT_NEAR(step.exposed().si() / (3 * half / 8 + between / 8), 1, 1e-6);
  EXPECT_NEAR(step.synchronisation.si() / (3 * half + between), 1, 1e-6);
  // Each device updates its half.
  const StepTime<double> whole = EvaluateStep(FactsOf(PlanOn({2, 2, 2, 2})), cluster, Even());
  EXPECT_NEAR(step.update / whole.update, 0.5, 1e-12);
}

// Links between nodes are silent until the first unit is reduced, in each micro-step.
TEST(HybridStep, SlowStartIsPaidInEachMicroStep) {
  WorkloadParameters<double> long_steps = Even();
  long_steps.si[kSampleTime] = 1;
  const auto step = [&](int accumulation, double timeout, StepTerms<double>* terms) {
    Plan plan = HybridOn(4, 2);
    plan.accumulation_steps = accumulation;
    StepFacts facts = FactsOf(plan);
    facts.link.rtt = Milliseconds(20.0);
    ClusterParameters<double> cluster = ClusterOf(1e9);
    cluster.si[kOverlapShare] = 1e-9;
    cluster.si[kLossTimeout] = timeout;
    return EvaluateStep(facts, cluster, long_steps, terms).total().si();
  };
  for (const int accumulation : {1, 3}) {
    StepTerms<double> terms;
    const double slow = step(accumulation, 0.2, &terms);
    StepTerms<double> never;
    const double steady = step(accumulation, 1e9, &never);
    EXPECT_GT(terms.slow_start.si(), 0.01);
    EXPECT_EQ(never.slow_start.si(), 0);
    EXPECT_NEAR((slow - steady) / (accumulation * terms.slow_start.si()), 1, 1e-6);
  }
}

// Workers on more nodes take no less time, and more latency or less bandwidth anywhere none less.
RC_GTEST_PROP(HybridStepProperty, NeverFallsWithNodesLatencyOrBytes, ()) {
  const int devices = *Whole(1, 8);
  Plan plan = HybridOn(*Whole(2, 20), devices);
  plan.accumulation_steps = *Whole(1, 5);
  plan.overlap = *rc::gen::element(Overlap::kBuckets, Overlap::kNone);
  ClusterParameters<double> cluster = PriorCluster();
  cluster.si[kLinkBandwidth] = *LogUniform(1e6, 1e11);
  const auto total = [&](const Plan& of, const ClusterParameters<double>& at) {
    return EvaluateStep(FactsOf(of), at, Even()).total().si();
  };
  const double step = total(plan, cluster);
  RC_ASSERT(std::isfinite(step));
  const double slack = 1 + 1e-12;
  Plan wider = plan;
  wider.placement.push_back(devices);
  RC_ASSERT(total(wider, cluster) * slack >= step || plan.nodes() == 2);
  for (const ClusterParameter faster : {kLinkBandwidth, kFlowBandwidth, kHostBandwidth}) {
    ClusterParameters<double> other = cluster;
    other.si[faster] *= *LogUniform(1, 10);
    RC_ASSERT(total(plan, other) <= step * slack);
  }
  for (const ClusterParameter slower : {kLinkLatency, kDeviceLatency, kNodeSyncOverhead}) {
    ClusterParameters<double> other = cluster;
    other.si[slower] *= *LogUniform(1, 10);
    RC_ASSERT(total(plan, other) * slack >= step);
  }
}

// ---- Rare synchronisation.

// An H-th of what a synchronisation after the pass costs, and the wait of H steps shared by them.
TEST(LocalSteps, ByHand) {
  Plan plan = PlanOn({2, 2, 2});
  plan.overlap = Overlap::kNone;
  plan.accumulation_steps = 2;
  const StepTime<double> each = EvaluateStep(FactsOf(plan), PriorCluster(), PriorWorkload());
  plan.overlap = Overlap::kBuckets;
  plan.local_steps = 16;
  const StepTime<double> rare = EvaluateStep(FactsOf(plan), PriorCluster(), PriorWorkload());
  EXPECT_EQ(rare.compute(), each.compute());
  EXPECT_NEAR(rare.exposed() / each.exposed(), 1.0 / 16, 1e-12);
  EXPECT_NEAR(rare.synchronisation / each.synchronisation, 1.0 / 16, 1e-12);
  EXPECT_NEAR(rare.straggler_wait / each.straggler_wait, 0.25, 1e-12);
}

RC_GTEST_PROP(LocalStepsProperty, NeverMakeAStepLonger, ()) {
  Plan plan = PlanOn(Placement(static_cast<std::size_t>(*Whole(1, 20)), *Whole(1, 4)));
  plan.strategy = *rc::gen::element(Strategy::kRing, Strategy::kTree, Strategy::kHalvingDoubling,
                                    Strategy::kHierarchical);
  plan.local_steps = *Whole(2, 1000);
  Plan more = plan;
  more.local_steps = plan.local_steps + *Whole(1, 1000);
  const auto total = [](const Plan& p) {
    return EvaluateStep(FactsOf(p), PriorCluster(), PriorWorkload()).total().si();
  };
  RC_ASSERT(total(more) <= total(plan) * (1 + 1e-12));
}

// ---- Memory.

TEST(ShardedMemory, IsTheOwnShareAndTwoUnits) {
  const Workload workload = Message(Gibibytes(8.0));
  const auto need = [&](Shard shard, int workers) {
    Plan plan = PlanOn(Placement(static_cast<std::size_t>(workers), 1), shard);
    plan.bucket = Gibibytes(1.0);
    return CountMemory(workload, DataSize<>(), plan, std::nullopt);
  };
  const double model = 8;
  for (const int w : {2, 8}) {
    EXPECT_NEAR(need(Shard::kNone, w).total.in(kGibibytes), 4 * model + 1, 1e-9);
    EXPECT_NEAR(need(Shard::kOptimizer, w).total.in(kGibibytes), 2 * model + model / w + 1, 1e-9);
    EXPECT_NEAR(need(Shard::kGradients, w).total.in(kGibibytes), model + 2 * model / w + 2 + 1,
                1e-9);
    EXPECT_NEAR(need(Shard::kParameters, w).total.in(kGibibytes), 3 * model / w + 2 + 1, 1e-9);
  }
  for (const Shard shard : kSharded) {
    EXPECT_EQ(need(shard, 1).total, need(Shard::kNone, 1).total);
  }
  // Within nodes alone: of those with one device each keeps the whole, and gathers none.
  const auto hybrid = [&](int nodes, int devices) {
    Plan plan = HybridOn(nodes, devices);
    plan.bucket = Gibibytes(1.0);
    return CountMemory(workload, DataSize<>(), plan, std::nullopt);
  };
  for (const int nodes : {2, 5}) {
    for (const int g : {2, 8}) {
      EXPECT_NEAR(hybrid(nodes, g).total.in(kGibibytes), 3 * model / g + 2 + 1, 1e-9);
    }
    EXPECT_EQ(hybrid(nodes, 1).total, need(Shard::kNone, nodes).total);
  }
  EXPECT_EQ(hybrid(1, 8).total, need(Shard::kParameters, 8).total);
  // Gradients add up where they are. Those that are shared out once all micro-steps are done are
  // whole until then, as without being shared out.
  for (const Shard shard :
       {Shard::kNone, Shard::kOptimizer, Shard::kGradients, Shard::kParameters}) {
    Plan plan = PlanOn(Placement(8, 1), shard);
    plan.accumulation_steps = 4;
    plan.bucket = Gibibytes(1.0);
    const MemoryNeed accumulated = CountMemory(workload, DataSize<>(), plan, std::nullopt);
    const bool waits = shard == Shard::kGradients;
    EXPECT_NEAR(accumulated.accumulation.in(kGibibytes), waits ? model * 7 / 8 : 0, 1e-9);
    EXPECT_NEAR(accumulated.total.in(kGibibytes),
                need(waits ? Shard::kOptimizer : shard, 8).total.in(kGibibytes), 1e-9);
  }
}

// One layer of VGG-16 has three quarters of the model: with two units of it whole there is nothing
// left to share of the gradients, and no more than all can be whole.
TEST(ShardedMemory, UnitsAreNoMoreThanTheSharesLack) {
  const Workload vgg = *FindWorkload("vgg16");
  const auto need = [&](Shard shard, int workers) {
    return CountMemory(vgg, DataSize<>(),
                       PlanOn(Placement(static_cast<std::size_t>(workers), 1), shard),
                       std::nullopt);
  };
  for (const int w : {2, 8, 64}) {
    const MemoryNeed gradients = need(Shard::kGradients, w);
    const MemoryNeed parameters = need(Shard::kParameters, w);
    const double lacking = 1 - 1.0 / w;
    EXPECT_DOUBLE_EQ(gradients.buckets.si(), vgg.gradient_bytes.si() * lacking);
    EXPECT_DOUBLE_EQ(gradients.total.si(), need(Shard::kOptimizer, w).total.si());
    const double largest = 4.0 * (25088 + 1) * 4096;
    const double all = (4.0 * vgg.parameters + vgg.gradient_bytes.si()) * lacking;
    EXPECT_DOUBLE_EQ(parameters.buckets.si(), std::min(2 * largest, all));
  }
}

// Who shares more needs no more, and who shares it among more neither.
RC_GTEST_PROP(ShardedMemoryProperty, NeverRisesWithWhatIsShared, ()) {
  const std::vector<std::string> names = WorkloadNames();
  Workload workload = *FindWorkload(names[*Whole(0, static_cast<int>(names.size()) - 1)]);
  workload.precision = *rc::gen::element(Precision::kFp32, Precision::kBf16);
  workload.optimizer = *rc::gen::element(Optimizer::kSgd, Optimizer::kMomentum, Optimizer::kAdam);
  const int workers = *Whole(2, 64);
  Plan plan = PlanOn(Placement(static_cast<std::size_t>(workers), 1), Shard::kNone);
  plan.accumulation_steps = *rc::gen::element(1, 4);
  plan.bytes_per_parameter = *rc::gen::element(1, 2, 4, 6);
  if (*rc::gen::arbitrary<bool>()) plan.bucket = Mebibytes(*LogUniform(1, 1e5));
  const auto total = [&](Shard shard, int of) {
    Plan shared = plan;
    shared.placement = Placement(static_cast<std::size_t>(of), 1);
    shared.shard = shard;
    return CountMemory(workload, DataSize<>(), shared, std::nullopt).total.si();
  };
  double before = total(Shard::kNone, workers);
  for (const Shard shard : {Shard::kOptimizer, Shard::kGradients, Shard::kParameters}) {
    const double now = total(shard, workers);
    RC_ASSERT(now <= before * (1 + 1e-12));
    RC_ASSERT(total(shard, workers + 1) <= now * (1 + 1e-12));
    before = now;
  }
}

// What a parameter takes, in bytes, of so many workers with Adam that send so much of it.
double BytesPerParameter(Shard shard, int workers, Precision precision, double sent) {
  Workload workload = Message(Gibibytes(1.0));
  const double parameters = static_cast<double>(workload.parameters);
  workload.precision = precision;
  workload.optimizer = Optimizer::kAdam;
  Plan plan = PlanOn(Placement(static_cast<std::size_t>(workers), 1), shard);
  plan.bytes_per_parameter = sent;
  const MemoryNeed need = CountMemory(workload, DataSize<>(), plan, std::nullopt);
  // Of whole units a network of many layers has few; this has one tensor.
  const DataSize<> units = shard >= Shard::kGradients ? need.buckets : DataSize<>();
  return (need.total - need.workspace - units).si() / parameters;
}

// The figure of 7.5e9 parameters on 64 devices, with gradients of 16 bits and K = 12, and the
// limits of many devices (Rajbhandari et al., SC 2020, Figure 1): 120, 31.4, 16.6 and 1.9 GB.
TEST(ShardedMemory, IsThatOfTheZeroPaper) {
  const auto gigabytes = [](Shard shard, int workers) {
    return 7.5 * BytesPerParameter(shard, workers, Precision::kFp16, 2);
  };
  // Whole, gradients have 4 bytes here.
  EXPECT_NEAR(gigabytes(Shard::kNone, 1), 120 + 7.5 * 2, 0.05);
  EXPECT_NEAR(gigabytes(Shard::kOptimizer, 64), 31.4, 0.05);
  EXPECT_NEAR(gigabytes(Shard::kGradients, 64), 16.6, 0.05);
  EXPECT_NEAR(gigabytes(Shard::kParameters, 64), 1.9, 0.05);
}

// Megatron Core's guide has a table of its distributed optimizer: 6 + 12/d bytes with parameters in
// bf16 and gradients in fp32, and 8 + 8/d with both in fp32; 18 and 16 where one worker has all.
TEST(ShardedMemory, IsThatOfMegatronsTable) {
  for (const int d : {2, 8, 64}) {
    EXPECT_NEAR(BytesPerParameter(Shard::kOptimizer, d, Precision::kBf16, 4), 6 + 12.0 / d, 1e-9);
    EXPECT_NEAR(BytesPerParameter(Shard::kOptimizer, d, Precision::kFp32, 4), 8 + 8.0 / d, 1e-9);
  }
  EXPECT_NEAR(BytesPerParameter(Shard::kNone, 1, Precision::kBf16, 4), 18, 1e-9);
  EXPECT_NEAR(BytesPerParameter(Shard::kNone, 1, Precision::kFp32, 4), 16, 1e-9);
  // PyTorch's DDP sends a copy besides, as wide as is said.
  EXPECT_NEAR(BytesPerParameter(Shard::kNone, 2, Precision::kBf16, 4), 22, 1e-9);
  EXPECT_NEAR(BytesPerParameter(Shard::kNone, 2, Precision::kBf16, 2), 20, 1e-9);
  // What is quantized to be sent is kept in 16 bits.
  EXPECT_NEAR(BytesPerParameter(Shard::kOptimizer, 8, Precision::kBf16, 1), 4 + 12.0 / 8, 1e-9);
}

}  // namespace
}  // namespace stepcast
