// Steps of models that are shared out, and of rare synchronisations: against precedences worked out
// one by one, by hand, and in the limits where another exchange is known.
#include "model/exchange/sharded.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "model/exchange/exchange.h"
#include "model/memory/memory.h"
#include "model/step/answer.h"
#include "model/step/step.h"
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

// Activities: gather k, compute k, reduce k are 3 k, 3 k + 1, 3 k + 2; what no unit computes is the
// last one.
double BackwardByPrecedences(const std::vector<Unit>& units, double backward, double call,
                             double byte) {
  const std::size_t count = units.size();
  Precedences all(3 * count + 1);
  double before = 0;
  std::size_t carried = 0;  // the last operation of the link
  for (std::size_t k = 0; k < count; ++k) {
    const double on_link = call + byte * units[k].bytes;
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
double ForwardByPrecedences(const std::vector<Unit>& units, double forward, double call,
                            double byte) {
  const std::size_t count = units.size();
  Precedences all(2 * count + 1);
  all.Set(2 * count, forward * (1 - units.back().ready));
  for (std::size_t k = count; k-- > 0;) {
    const double before = k == 0 ? 0 : units[k - 1].ready;
    all.Set(2 * k, call + byte * units[k].bytes);
    all.Set(2 * k + 1, forward * (units[k].ready - before));
    all.AfterEnd(2 * k, 2 * k + 1);
    all.AfterEnd(k + 1 < count ? 2 * k + 3 : 2 * count, 2 * k + 1);
    if (k + 1 < count) all.AfterEnd(2 * k + 2, 2 * k);
  }
  return all.LastEnd();
}

RC_GTEST_PROP(GatherUnitsProperty, IsTheLongestPathOfPrecedences, ()) {
  const std::vector<Unit> units = AnyUnits();
  const double forward = *LogUniform(1e-3, 1);
  const double backward = *LogUniform(1e-3, 1);
  const double call = *LogUniform(1e-6, 1e-2);
  const double byte = *LogUniform(1e-11, 1e-7);
  const GatheredPasses<double> passes =
      GatherUnits(CostOf(call, byte), BucketsOf(units), Seconds(forward), Seconds(backward));
  RC_ASSERT(Near(passes.forward.si(), ForwardByPrecedences(units, forward, call, byte)));
  RC_ASSERT(Near(passes.backward.si(), BackwardByPrecedences(units, backward, call, byte)));
}

// No pass is shorter than its compute or its bytes, nor longer than the two one after the other.
RC_GTEST_PROP(GatherUnitsProperty, LieBetweenTheLargerAndTheSum, ()) {
  const std::vector<Unit> units = AnyUnits();
  const double forward = *LogUniform(1e-3, 1);
  const double backward = *LogUniform(1e-3, 1);
  const double call = *LogUniform(1e-6, 1e-2);
  const double byte = *LogUniform(1e-11, 1e-7);
  double gathers = 0;
  for (const Unit& unit : units) gathers += call + byte * unit.bytes;
  const GatheredPasses<double> passes =
      GatherUnits(CostOf(call, byte), BucketsOf(units), Seconds(forward), Seconds(backward));
  const double slack = 1e-12;
  RC_ASSERT(passes.forward.si() >= std::max(forward, gathers) * (1 - slack));
  RC_ASSERT(passes.forward.si() <= (forward + gathers) * (1 + slack));
  RC_ASSERT(passes.backward.si() >= std::max(backward, 2 * gathers) * (1 - slack));
  RC_ASSERT(passes.backward.si() <= (backward + 2 * gathers) * (1 + slack));
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
  PlanParameters at{PriorCluster(), PriorWorkload()};
  at.cluster.si[kLinkBandwidth] = *LogUniform(1e6, 1e11);
  const PlanAnswer answer = PlanModel(facts).Answer(at, Derivatives::kAll);
  RC_ASSERT(
      Near(answer.log_step, std::log(EvaluateStep(facts, at.cluster, at.workload).total().si())));
  for (const ClusterParameter parameter :
       {kLinkBandwidth, kHostBandwidth, kLinkLatency, kOverlapShare, kOverlapContention}) {
    const auto moved = [&](double by) {
      ClusterParameters<double> cluster = at.cluster;
      cluster.si[parameter] *= std::exp(by);
      return std::log(EvaluateStep(facts, cluster, at.workload).total().si());
    };
    constexpr double kBy = 1e-6;
    const double slope = answer.log_step_gradient[parameter];
    const double up = (moved(kBy) - answer.log_step) / kBy;
    const double down = (answer.log_step - moved(-kBy)) / kBy;
    // A corner has two slopes.
    RC_ASSERT(std::min(up, down) - 1e-4 <= slope && slope <= std::max(up, down) + 1e-4);
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
    EXPECT_NEAR(need(Shard::kOptimizer, w).total.in(kGibibytes), 3 * model + model / w + 1, 1e-9);
    EXPECT_NEAR(need(Shard::kGradients, w).total.in(kGibibytes), model + 2 * model / w + 2 + 1,
                1e-9);
    EXPECT_NEAR(need(Shard::kParameters, w).total.in(kGibibytes), 3 * model / w + 2 + 1, 1e-9);
  }
  for (const Shard shard : kSharded) {
    EXPECT_EQ(need(shard, 1).total, need(Shard::kNone, 1).total);
  }
  // What accumulates is shared out as the gradients are where each micro-step is exchanged, and
  // whole where one exchange is for all of them.
  for (const Shard shard :
       {Shard::kNone, Shard::kOptimizer, Shard::kGradients, Shard::kParameters}) {
    Plan plan = PlanOn(Placement(8, 1), shard);
    plan.accumulation_steps = 4;
    plan.bucket = Gibibytes(1.0);
    const bool whole = shard != Shard::kParameters;
    EXPECT_NEAR(CountMemory(workload, DataSize<>(), plan, std::nullopt).accumulation.in(kGibibytes),
                whole ? model : model / 8, 1e-9);
    plan.accumulation_steps = 1;
    EXPECT_EQ(CountMemory(workload, DataSize<>(), plan, std::nullopt).accumulation.si(), 0);
  }
}

}  // namespace
}  // namespace stepcast
