// The closed forms of where scaling ends, against a scan of the models that they are derived from.
#include "model/limits/limits.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "model/exchange/allreduce.h"
#include "model/exchange/allreduce_limits.h"
#include "model/exchange/async_server.h"
#include "model/exchange/async_server_limits.h"
#include "model/exchange/byteps.h"
#include "model/exchange/byteps_limits.h"
#include "model/exchange/parameter_server.h"
#include "model/exchange/parameter_server_limits.h"
#include "model/overlap/buckets.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

constexpr double kBatch = 32;
constexpr int kAccumulation = 2;
constexpr int kServers = 2;
const DataSize<> kGradient = Megabytes(100.0);
const DataRate<> kServerLink = GigabitsPerSecond(10.0);

// Only the servers' links bind.
ServerPaths<double> Paths(int workers) {
  ServerPaths<double> paths;
  paths.workers = workers;
  paths.servers = kServers;
  paths.worker = {Duration<>(), GigabitsPerSecond(1e6)};
  paths.server_bandwidth = kServerLink;
  return paths;
}

// Samples per second with synchronous servers and `compute` for the a micro-steps of a step.
double SyncThroughput(int workers, Duration<> compute) {
  const Duration<> step = compute + ServerSynchronisation(Paths(workers)).Time(kGradient);
  return workers * kBatch * kAccumulation / step.in(kSeconds);
}

double Ceiling() {
  return WeakScalingCeiling(Samples(kBatch * kAccumulation), ServerGrowth(Paths(1)).Of(kGradient))
      .value()
      .in(kSamplesPerSecond);
}

// 64 samples x 2 servers x 1.25 GB/s / 200 MB.
TEST(Limits, ServerCeilingByHand) { EXPECT_DOUBLE_EQ(Ceiling(), 800); }

TEST(Limits, ServerCeilingIsReachedInTheLimitAndNeverPassed) {
  double before = 0;
  for (int workers = 1; workers <= 1 << 20; workers *= 2) {
    const double throughput = SyncThroughput(workers, Seconds(0.8));
    EXPECT_LT(throughput, Ceiling());
    EXPECT_GT(throughput, before);
    before = throughput;
  }
  EXPECT_GT(before, 0.9999 * Ceiling());
}

// Pushes and pulls of different workers pass a full-duplex link at once.
TEST(Limits, AsynchronousServersReachTwiceTheCeiling) {
  const auto throughput = [](int workers) {
    const Duration<> cycle = AsyncServerCycle(Paths(workers), Seconds(0.8), kGradient);
    return workers * kBatch * kAccumulation / cycle.in(kSeconds);
  };
  EXPECT_LT(throughput(1 << 15), 2 * Ceiling());
  EXPECT_GT(throughput(1 << 15), 2 * 0.999 * Ceiling());
}

double HalfCeiling(Duration<> compute) {
  return HalfCeilingWorkers(ServerGrowth(Paths(1)).Of(kGradient), compute).value();
}

// 0.8 s x 2 x 1.25 GB/s / 200 MB = 10 workers: half the ceiling, transfer as long as compute.
TEST(Limits, HalfTheCeilingIsWhereTransferEqualsCompute) {
  const double half = HalfCeiling(Seconds(0.8));
  ASSERT_DOUBLE_EQ(half, 10);
  EXPECT_NEAR(SyncThroughput(10, Seconds(0.8)), Ceiling() / 2, 1e-9);
  EXPECT_NEAR(ServerSynchronisation(Paths(10)).Time(kGradient).in(kSeconds), 0.8, 1e-12);
}

RC_GTEST_PROP(LimitsProperty, HalfTheCeilingIsReachedBetweenTheNeighbours, ()) {
  const Duration<> compute = Seconds(*LogUniform(0.16, 100));
  const double half = HalfCeiling(compute);
  RC_ASSERT(SyncThroughput(static_cast<int>(std::floor(half)), compute) <=
            Ceiling() / 2 * (1 + 1e-12));
  RC_ASSERT(SyncThroughput(static_cast<int>(std::ceil(half)), compute) >=
            Ceiling() / 2 * (1 - 1e-12));
}

double RingBestWorkers(Duration<> work, const Hop<double>& hop) {
  return BestStrongScaling(RingGrowth(hop).Of(kGradient), work).workers.value();
}

// C = 20 s, alpha = 1 ms: sqrt(20 / 0.002) = 100.
TEST(Limits, RingBestWorkersByHand) {
  EXPECT_NEAR(RingBestWorkers(Seconds(20.0), {Milliseconds(1.0), BytesPerSecond(1e30)}), 100, 1e-9);
}

RC_GTEST_PROP(LimitsProperty, RingBestWorkersIsTheScansBest, ()) {
  const Duration<> work = Seconds(*LogUniform(1e-2, 10));
  const Hop<double> hop{Seconds(*LogUniform(1e-4, 1e-2)), BytesPerSecond(1e30)};
  const auto step = [&](int w) {
    return (work / static_cast<double>(w) + RingAllreduce(w, hop).Time(kGradient)).si();
  };
  int best = 1;
  for (int w = 2; w < 1000; ++w) {
    if (step(w) < step(best)) best = w;
  }
  // The best whole number is next to the best real one.
  const double closed = RingBestWorkers(work, hop);
  RC_ASSERT(best >= std::fmax(1, std::floor(closed)));
  RC_ASSERT(best <= std::fmax(1, std::ceil(closed)));
}

// ---- The growth laws are the costs of the collectives, wherever they hold.

constexpr double kRounding = 1e-10;

Hop<double> AnyHop() {
  return {Seconds(*LogUniform(1e-5, 1e-2)), BytesPerSecond(*LogUniform(1e8, 1e11))};
}

ServerPaths<double> AnyServers() {
  ServerPaths<double> network;
  network.servers = *Whole(1, 64);
  network.workers_per_node = *Whole(1, 8);
  network.worker = AnyHop();
  network.server_bandwidth = BytesPerSecond(*LogUniform(1e8, 1e11));
  network.initiation = Seconds(*LogUniform(1e-6, 1e-3));
  network.rpc_rounds = 0.5;
  network.tensors = *Whole(0, 20);
  network.server_rate = BytesPerSecond(*LogUniform(1e8, 1e12));
  network.update = DurationPerByte<double>::FromSi(*LogUniform(1e-13, 1e-10));
  return network;
}

ServerPaths<double> WithWorkers(ServerPaths<double> paths, int workers) {
  paths.workers = workers;
  paths.nodes = (workers - 1) / paths.workers_per_node + 1;
  if (paths.colocated) paths.servers = paths.nodes;
  return paths;
}

SyncCost<double> ServerCost(const ServerPaths<double>& paths, int workers) {
  return ServerSynchronisation(WithWorkers(paths, workers));
}

bool Same(const SyncCost<double>& law, const SyncCost<double>& cost) {
  return Near(law.per_call.si(), cost.per_call.si(), kRounding) &&
         Near(law.per_byte.si(), cost.per_byte.si(), kRounding);
}

// A strategy as a law and as the cost that the law stands for. The cost is defined for
// `unit` and `factor`: w = unit, 2 unit, 3 unit, ..., or unit, 2 unit, 4 unit, ... for logarithms.
struct GrowingCost {
  const char* name;
  CostGrowth<double> law;
  std::function<SyncCost<double>(int)> cost;
  int unit = 1;
  bool doubles = false;

  int Next(int workers) const { return doubles ? 2 * workers : workers + unit; }
  // The whole number of the law at or below w, and the first.
  int Below(double w) const {
    if (doubles) {
      const double doublings = std::floor(std::log2(w * (1 + kRounding) / unit));
      return unit << static_cast<int>(std::fmax(0, doublings));
    }
    return std::max(unit, static_cast<int>(w * (1 + kRounding)) / unit * unit);
  }
};

std::vector<GrowingCost> AnyStrategies() {
  const Hop<double> hop = AnyHop();
  const Hop<double> intra = {hop.alpha * 0.1, hop.bandwidth * 10.0};
  const int devices = *Whole(2, 8);
  const int cards = *Whole(1, 4);
  const ServerPaths<double> servers = AnyServers();
  // A law that holds from `least` on.
  return {
      {"ring", RingGrowth(hop), [=](int w) { return RingAllreduce(w, hop); }},
      {"halving-doubling", HalvingDoublingGrowth(hop),
       [=](int w) { return HalvingDoublingAllreduce(w, hop); }, 1, true},
      {"double tree", DoubleTreeGrowth(hop), [=](int w) { return TreeAllreduce(w, hop); }, 4, true},
      {"hierarchical", HierarchicalGrowth(RingGrowth(hop), devices, intra, cards),
       [=](int w) { return HierarchicalAllreduce(w / devices, devices, hop, intra, cards); },
       devices},
      {"halving-doubling over nodes",
       HierarchicalGrowth(HalvingDoublingGrowth(hop), devices, intra, cards),
       [=](int w) {
         return w == devices ? RingAllreduce(devices, intra)
                             : HalvingDoublingOverNodes(w / devices, devices, hop, intra, cards);
       },
       devices, true},
      {"servers", ServerGrowth(servers), [=](int w) { return ServerCost(servers, w); }},
  };
}

RC_GTEST_PROP(LimitsProperty, TheLawsAreTheCosts, ()) {
  for (const GrowingCost& strategy : AnyStrategies()) {
    int w = strategy.unit;
    for (int i = 0; i < 24; ++i, w = strategy.Next(w)) {
      RC_ASSERT(Same(strategy.law.At(w), strategy.cost(w)));
      const SyncGrowth<double> growth = strategy.law.Of(kGradient, 3.0);
      const SyncCost<double> cost = strategy.cost(w);
      const double expected = (cost.per_call * 3.0 + cost.per_byte * kGradient).si();
      // One worker costs nothing, as a difference of numbers of at most seconds.
      RC_ASSERT(std::abs(growth.Time(w).si() - expected) <= kRounding * expected + 1e-13);
      // Every fourth step.
      RC_ASSERT(std::abs(growth.Times(0.25).Time(w).si() - expected / 4) <=
                kRounding * expected + 1e-13);
    }
  }
}

RC_GTEST_PROP(LimitsProperty, TheLawOfTheFlatRingIsItsCost, ()) {
  const Hop<double> inter = AnyHop();
  const Hop<double> intra = AnyHop();
  const int devices = *Whole(1, 8);
  const int cards = *Whole(1, 4);
  const CostGrowth<double> law = FlatRingGrowth(devices, inter, intra, cards);
  for (int nodes = 2; nodes < 40; ++nodes) {
    const NodeShape shape{nodes * devices, nodes, devices, cards};
    // With one device a node no hop lies within it, nor does its bandwidth matter.
    const Hop<double> within = devices == 1 ? Hop<double>{inter.alpha, inter.bandwidth} : intra;
    const CostGrowth<double> expected =
        devices == 1 ? FlatRingGrowth(devices, inter, within, cards) : law;
    RC_ASSERT(Same(expected.At(shape.workers), FlatRingAllreduce(shape, inter, intra)));
  }
}

RC_GTEST_PROP(LimitsProperty, TheLawsOfMergingServersAreTheirCosts, ()) {
  ServerPaths<double> servers = AnyServers();
  servers.multicast = *rc::gen::arbitrary<bool>();
  servers.in_network_aggregation = *rc::gen::arbitrary<bool>();
  for (int w = 1; w < 200; w += 7) {
    RC_ASSERT(Same(ServerGrowth(servers).At(w), ServerCost(servers, w)));
  }
}

// A law of nodes as one of workers: what so many nodes cost, their workers cost.
RC_GTEST_PROP(LimitsProperty, ALawOverNodesIsThatOfTheNodes, ()) {
  const int devices = *Whole(1, 16);
  std::vector<CostGrowth<double>> laws = {ServerGrowth(AnyServers()),
                                          ColocatedServerGrowth(AnyServers())};
  for (const GrowingCost& strategy : AnyStrategies()) laws.push_back(strategy.law);
  for (const CostGrowth<double>& law : laws) {
    const CostGrowth<double> over = OverNodes(law, devices);
    RC_ASSERT(Near(over.least, law.least * devices, kRounding));
    for (double nodes = 2 * law.least; nodes < 1e4; nodes *= 3) {
      RC_ASSERT(Same(over.At(nodes * devices), law.At(nodes)));
    }
  }
}

// 8 workers and 2 servers of 10 Gbit/s, of 100 MB: a phase takes 320 ms, and 40 ms where the
// network adds up or copies. A quarter of one phase is seen: of the pull, or of the push alone that
// the network adds up, behind which the pull goes on.
TEST(Limits, AQuarterOfOnePhaseIsSeenByHand) {
  ServerPaths<double> servers = Paths(8);
  const auto milli = [&](bool added_up, bool copied) {
    servers.in_network_aggregation = added_up;
    servers.multicast = copied;
    return (ServerGrowth(servers, 1, 0.25).At(8).per_byte * kGradient).in(kMilliseconds);
  };
  EXPECT_NEAR(milli(false, false), 320 + 80, 1e-9);
  EXPECT_NEAR(milli(true, false), 10 + 320, 1e-9);
  EXPECT_NEAR(milli(false, true), 320 + 10, 1e-9);
  EXPECT_NEAR(milli(true, true), 40 + 10, 1e-9);
}

RC_GTEST_PROP(LimitsProperty, TheLawOfColocatedServersIsTheirCost, ()) {
  ServerPaths<double> servers = AnyServers();
  servers.server_rate = BytesPerSecond(1e30);
  servers.update = {};
  servers.colocated = true;
  const int g = servers.workers_per_node;
  for (int nodes = 2; nodes < 40; ++nodes) {
    RC_ASSERT(Same(ColocatedServerGrowth(servers).At(nodes * g), ServerCost(servers, nodes * g)));
  }
  // What the network merges saves transfers, and no byte that a worker sends or receives.
  const SyncCost<double> plain = ServerCost(servers, 16 * g);
  servers.multicast = servers.in_network_aggregation = true;
  const SyncCost<double> law = ColocatedServerGrowth(servers).At(16 * g);
  RC_ASSERT(Near(law.per_byte.si(), plain.per_byte.si(), kRounding));
  RC_ASSERT(Same(law, ServerCost(servers, 16 * g)));
}

RC_GTEST_PROP(LimitsProperty, BytePsIsExactAtBothEndsAndCloseBetween, ()) {
  const Hop<double> hop = AnyHop();
  const int w = *Whole(2, 1000);
  const int helpers = *Whole(0, w);
  const auto law = [&](double k) { return BytePsGrowth(k, hop).At(w); };
  RC_ASSERT(Same(law(0), BytePsAllreduce(w, 0, hop, hop.bandwidth)));
  RC_ASSERT(Same(law(1), BytePsAllreduce(w, w, hop, hop.bandwidth)));
  const double passes = law(1.0 * helpers / w).per_byte * hop.bandwidth;
  const double real = BytePsAllreduce(w, helpers, hop, hop.bandwidth).per_byte * hop.bandwidth;
  RC_ASSERT(passes >= real * (1 - kRounding));
  RC_ASSERT(passes <= real + 2 * 0.25 / (1.0 * w * (w - 1)) + kRounding);
}

// ---- Limits of weak scaling.

// The largest count a double counts exactly enough for a sum with compute, and an int holds.
constexpr int kMany = 1 << 30;
constexpr double kManyWithNext = kMany / 4.0;

RC_GTEST_PROP(LimitsProperty, CeilingsAreApproachedAndNeverPassed, ()) {
  const Duration<> compute = Seconds(*LogUniform(1e-2, 1));
  const double calls = *Whole(1, 20);
  for (const GrowingCost& strategy : AnyStrategies()) {
    const auto throughput = [&](int w) {
      const SyncCost<double> cost = strategy.cost(w);
      return w / (compute + cost.per_call * calls + cost.per_byte * kGradient).in(kSeconds);
    };
    const Limit<SampleRate<>> ceiling =
        WeakScalingCeiling(Samples(1.0), strategy.law.Of(kGradient, calls));
    RC_ASSERT(ceiling.exists() == !strategy.doubles);
    const int many = strategy.Below(kMany);
    if (!ceiling.exists()) {
      // Twice the workers still bring nearly twice the throughput.
      RC_ASSERT(throughput(many) > 1.9 * throughput(many / 2));
      continue;
    }
    const double cap = ceiling.value().in(kSamplesPerSecond);
    RC_ASSERT(Near(throughput(many), cap, 1e-3));
    if (throughput(strategy.unit) > cap) continue;  // loses with every worker
    for (int w = strategy.unit; w < 1 << 24; w = strategy.Next(w) * 2) {
      RC_ASSERT(throughput(w) <= cap * (1 + 1e-9));
    }
  }
}

TEST(Limits, InNetworkSumsAndMulticastTakeTheServersCeilingAway) {
  ServerPaths<double> network;
  network.servers = kServers;
  network.worker = {Milliseconds(1.0), GigabitsPerSecond(10.0)};
  network.server_bandwidth = kServerLink;
  const auto ceiling = [&] {
    return WeakScalingCeiling(Samples(kBatch * kAccumulation), ServerGrowth(network).Of(kGradient));
  };
  EXPECT_DOUBLE_EQ(ceiling().value().in(kSamplesPerSecond), Ceiling());
  network.multicast = true;
  EXPECT_DOUBLE_EQ(ceiling().value().in(kSamplesPerSecond), 2 * Ceiling());
  network.multicast = false;
  network.in_network_aggregation = true;
  EXPECT_DOUBLE_EQ(ceiling().value().in(kSamplesPerSecond), 2 * Ceiling());
  network.multicast = true;
  EXPECT_FALSE(ceiling().exists());
  // Both directions at the worker: 2 x 1 ms + 2 x 100 MB / 1.25 GB/s, with any number of workers.
  EXPECT_DOUBLE_EQ(ServerGrowth(network).Of(kGradient).Time(1e6).in(kMilliseconds), 162);
  EXPECT_FALSE(CrossingWorkers(ServerGrowth(network).Of(kGradient), Seconds(0.2)).exists());
  EXPECT_EQ(CrossingWorkers(ServerGrowth(network).Of(kGradient), Seconds(0.1)).value(), 1);
}

// The classic failure: one tensor with half of the bytes makes four servers as slow as two.
TEST(Limits, TheLargestShardSetsTheCeiling) {
  ServerPaths<double> network;
  network.servers = 4;
  network.worker = {Duration<>(), GigabitsPerSecond(1e6)};
  network.server_bandwidth = kServerLink;
  network.largest_share = 0.5;
  EXPECT_DOUBLE_EQ(
      WeakScalingCeiling(Samples(kBatch * kAccumulation), ServerGrowth(network).Of(kGradient))
          .value()
          .in(kSamplesPerSecond),
      Ceiling());
}

// A server on every node carries what a ring carries: 2 (w-1)/w m.
TEST(Limits, ColocatedServersCarryTheBytesOfARing) {
  ServerPaths<double> network;
  network.worker = {Milliseconds(1.0), GigabitsPerSecond(10.0)};
  for (int w = 2; w < 100; ++w) {
    EXPECT_TRUE(Near(ColocatedServerGrowth(network).At(w).per_byte.si(),
                     RingAllreduce(w, network.worker).per_byte.si(), kRounding));
  }
  EXPECT_FALSE(
      WeakScalingCeiling(Samples(1.0), ColocatedServerGrowth(network).Of(kGradient)).exists());
  // A server serves 11 pushes and 11 pulls, one after another; 1 ms for a message each way.
  network.initiation = Milliseconds(1.0);
  EXPECT_NEAR(ColocatedServerGrowth(network).At(11).per_call.in(kMilliseconds), 24, 1e-9);
}

RC_GTEST_PROP(LimitsProperty, SynchronisationReachesATimeAtTheClosedForm, ()) {
  const Duration<> time = Seconds(*LogUniform(1e-3, 10));
  const double calls = *Whole(1, 20);
  for (const GrowingCost& strategy : AnyStrategies()) {
    const auto sync = [&](int w) {
      const SyncCost<double> cost = strategy.cost(w);
      return cost.per_call * calls + cost.per_byte * kGradient;
    };
    const Limit<double> at = WorkersWhereSyncTakes(strategy.law.Of(kGradient, calls), time);
    if (!at.exists() || at.value() > kManyWithNext) {
      RC_ASSERT(sync(strategy.Below(kManyWithNext)) <= time * (1 + kRounding));
      continue;
    }
    RC_ASSERT(at.value() >= strategy.law.least);
    const int below = strategy.Below(at.value());
    // At the first number the time may be passed at once.
    if (at.value() > strategy.law.least) RC_ASSERT(sync(below) <= time * (1 + 1e-8));
    RC_ASSERT(sync(strategy.Next(below)) >= time * (1 - 1e-8));
  }
}

// Against the smallest whole number that a search finds in the step itself.
RC_GTEST_PROP(LimitsProperty, EfficiencyFallsAtTheClosedForm, ()) {
  const Duration<> compute = Seconds(*LogUniform(1e-2, 1));
  const Duration<> hidden = compute * *LogUniform(1e-2, 1);
  const double efficiency = *LogUniform(0.2, 0.95);
  for (const GrowingCost& strategy : AnyStrategies()) {
    const auto step = [&](int w) {
      return compute + Max(strategy.cost(w).Time(kGradient) - hidden, Duration<>());
    };
    const Duration<> single = strategy.cost(1).Time(kGradient) > hidden ? step(1) : compute;
    const Limit<double> at =
        WorkersAtEfficiency(strategy.law.Of(kGradient), efficiency, single, compute, hidden);
    if (!at.exists() || at.value() > kManyWithNext) continue;
    const int below = strategy.Below(at.value());
    if (at.value() > strategy.law.least) RC_ASSERT(single >= step(below) * (efficiency * 0.99999));
    RC_ASSERT(single <= step(strategy.Next(below)) * (efficiency * 1.00001));
  }
}

RC_GTEST_PROP(LimitsProperty, HalfTheCeilingIsKeptFromTheClosedFormOn, ()) {
  const Duration<> compute = Seconds(*LogUniform(1e-2, 1));
  const Duration<> hidden = compute * *LogUniform(1e-2, 1);
  for (const GrowingCost& strategy : AnyStrategies()) {
    const SyncGrowth<double> growth = strategy.law.Of(kGradient);
    const Limit<double> half = HalfCeilingWorkers(growth, compute, hidden);
    RC_ASSERT(half.exists() == !strategy.doubles);
    if (!half.exists()) continue;
    const double cap = WeakScalingCeiling(Samples(1.0), growth).value().in(kSamplesPerSecond);
    const auto share = [&](int w) {
      const Duration<> exposed = Max(strategy.cost(w).Time(kGradient) - hidden, Duration<>());
      return w / (compute + exposed).in(kSeconds) / cap;
    };
    const int below = strategy.Below(half.value());
    if (half.value() > strategy.law.least) {
      const Duration<> exposed = Max(growth.Time(half.value()) - hidden, Duration<>());
      RC_ASSERT(Near(half.value() / (compute + exposed).in(kSeconds), cap / 2, 1e-6));
    }
    int w = strategy.Next(below);
    for (int i = 0; i < 200 && w < kMany; ++i, w += (w / 20 / strategy.unit + 1) * strategy.unit) {
      RC_ASSERT(share(w) >= 0.5 * (1 - 1e-8));
    }
  }
}

// ---- Strong scaling.

// The best of the numbers for which the cost is defined, by trying them all.
int ScanForBest(const GrowingCost& strategy, const std::function<Duration<>(int)>& step, int most) {
  int best = strategy.unit;
  for (int w = best; w <= most; w = strategy.Next(w)) {
    if (step(w) < step(best)) best = w;
  }
  return best;
}

RC_GTEST_PROP(LimitsProperty, BestStrongScalingIsTheScansBest, ()) {
  const Duration<> work = Seconds(*LogUniform(1e-2, 100));
  const double calls = *Whole(1, 20);
  const double share = *rc::gen::arbitrary<bool>() ? 0.0 : *LogUniform(0.05, 0.95);
  for (const GrowingCost& strategy : AnyStrategies()) {
    const auto step = [&](int w) {
      const SyncCost<double> cost = strategy.cost(w);
      const Duration<> sync = cost.per_call * calls + cost.per_byte * kGradient;
      const Duration<> compute = work / static_cast<double>(w);
      return compute + Max(sync - compute * share, Duration<>());
    };
    const SyncGrowth<double> growth = strategy.law.Of(kGradient, calls);
    const StrongScaling<double> best = BestStrongScaling(growth, work, share);
    RC_ASSERT(best.workers.exists());
    const double closed = best.workers.value();
    if (closed > 2e4 && !strategy.doubles) continue;  // a long scan
    if (closed > 1e8) continue;
    const int most = strategy.doubles ? 1 << 28 : static_cast<int>(2 * closed) + 100;
    const int scanned = ScanForBest(strategy, step, most);
    const int below = strategy.Below(closed);
    const int above = strategy.Next(below);
    const Duration<> of_neighbours = Min(step(below), step(above));
    RC_ASSERT(Near(of_neighbours.si(), step(scanned).si(), 1e-9));
    // No whole number is better than the real one.
    RC_ASSERT(best.step <= step(scanned) * (1 + 1e-9));
  }
}

TEST(Limits, BestStrongScalingByHand) {
  const Hop<double> hop = {Milliseconds(1.0), GigabytesPerSecond(1.0)};
  const auto best = [](const CostGrowth<double>& law, double work, double hidden = 0) {
    return BestStrongScaling(law.Of(kGradient), Seconds(work), hidden);
  };
  // 2 sqrt((C - 2m/B) 2 alpha) + 2m/B - 2 alpha: the ring's first worker's message is none.
  EXPECT_NEAR(best(RingGrowth(hop), 20.2).workers.value(), 100, 1e-9);
  EXPECT_NEAR(best(RingGrowth(hop), 20.2).step.in(kSeconds), 0.4 + 0.2 - 0.002, 1e-12);
  EXPECT_NEAR(best(HalvingDoublingGrowth(hop), 20.2).workers.value(), 1e4 * std::log(2.0), 1e-6);
  EXPECT_NEAR(best(BinomialTreeGrowth(hop), 20.2).workers.value(), 100 * std::log(2.0), 1e-9);
  // All hidden as long as 2 ms w + 198 ms - 0.2 s / w stays below C/w: w = 50.
  EXPECT_NEAR(best(RingGrowth(hop), 14.7, 1).workers.value(), 50, 1e-9);
  EXPECT_NEAR(best(RingGrowth(hop), 14.7, 1).step.in(kSeconds), 14.7 / 50, 1e-12);
  // A synchronisation that does not grow ends nothing.
  ServerPaths<double> merged;
  merged.worker = hop;
  merged.server_bandwidth = GigabytesPerSecond(1.0);
  merged.multicast = merged.in_network_aggregation = true;
  EXPECT_FALSE(best(ServerGrowth(merged), 20).workers.exists());
  EXPECT_NEAR(best(ServerGrowth(merged), 20).step.in(kSeconds), 0.202, 1e-12);
}

// sqrt(C n B_s / (2m)), once nothing but the servers' links grows.
RC_GTEST_PROP(LimitsProperty, ServersEndStrongScalingByTheirLinks, ()) {
  ServerPaths<double> network;
  network.servers = *Whole(1, 64);
  network.worker = {Duration<>(), BytesPerSecond(1e30)};
  network.server_bandwidth = BytesPerSecond(*LogUniform(1e8, 1e11));
  const Duration<> work = Seconds(*LogUniform(10, 1000));
  const double expected =
      std::sqrt(work * network.server_bandwidth * network.servers / (kGradient * 2.0));
  const double best = BestStrongScaling(ServerGrowth(network).Of(kGradient), work).workers.value();
  RC_ASSERT(Near(best, std::fmax(1, expected), 1e-9));
}

// ---- Servers.

RC_GTEST_PROP(LimitsProperty, MoreServersThanSufficeDoNotHelp, ()) {
  ServerPaths<double> network = AnyServers();
  network.update = {};
  const int workers = *Whole(1, 64);
  const DataSize<> bytes = Bytes(*LogUniform(1e5, 1e9));
  const double suffice = ServersThatSuffice(WithWorkers(network, workers), bytes);
  if (suffice > 5000) return;
  const auto step = [&](int n) {
    network.servers = n;
    return ServerCost(network, workers).Time(bytes).si();
  };
  const int below = static_cast<int>(suffice * (1 + kRounding));
  const int above = static_cast<int>(std::ceil(suffice * (1 - kRounding)));
  double least = step(1);
  for (int n = 2; n <= 2 * above + 200; ++n) least = std::fmin(least, step(n));
  RC_ASSERT(Near(std::fmin(step(below), step(above)), least, 1e-9));
  // Fewer do hurt.
  if (below > 2) RC_ASSERT(step(below / 2) > least * (1 + 1e-9));
}

TEST(Limits, OneTensorIsOnOneServer) {
  ServerPaths<double> network;
  network.workers = 8;
  network.worker = {Duration<>(), GigabitsPerSecond(10.0)};
  network.server_bandwidth = GigabitsPerSecond(10.0);
  EXPECT_DOUBLE_EQ(ServersThatSuffice(network, kGradient), 8);
  EXPECT_DOUBLE_EQ(ServersThatSuffice(network, kGradient, 1, 0.25), 4);
  EXPECT_DOUBLE_EQ(ServersThatSuffice(network, kGradient, 1, 0.01), 8);
}

// ---- Asynchronous servers, against mean value analysis.

// One worker a node: the laws leave out that those of a node wait for each other.
ServerPaths<double> OneWorkerANode() {
  ServerPaths<double> network = AnyServers();
  network.workers_per_node = 1;
  return network;
}

struct AsyncCase {
  ServerPaths<double> network = OneWorkerANode();
  ServerQueues<double> queues = AsyncServerQueues(network, kGradient);

  Duration<> Cycle(int workers, Duration<> compute) const {
    return AsyncServerCycle(WithWorkers(network, workers), compute, kGradient);
  }
};

RC_GTEST_PROP(LimitsProperty, AsynchronousThroughputStaysBelowBothBounds, ()) {
  const AsyncCase servers;
  const Duration<> compute = Seconds(*LogUniform(1e-2, 1));
  const double cap = AsyncCeiling(Samples(1.0), servers.queues).in(kSamplesPerSecond);
  const double knee = AsyncKnee(servers.queues, compute);
  for (const int w : {1, 2, 3, 5, 8, 20, kExactCustomers, 100, 1000, 10000}) {
    const double throughput = w / servers.Cycle(w, compute).in(kSeconds);
    RC_ASSERT(throughput <= cap * std::fmin(1, w / knee) * (1 + 1e-9));
    // And above X >= w / (Z + D + (w-1) D_max).
    RC_ASSERT(throughput >= cap * w / (knee + w - 1) * (1 - 1e-9));
  }
}

RC_GTEST_PROP(LimitsProperty, HalfTheAsynchronousCeilingIsWithinItsBracket, ()) {
  const AsyncCase servers;
  const Duration<> compute = Seconds(*LogUniform(1e-2, 1));
  const double knee = AsyncKnee(servers.queues, compute);
  const double cap = AsyncCeiling(Samples(1.0), servers.queues).in(kSamplesPerSecond);
  if (knee > 1e5) return;
  const auto share = [&](double w) {
    return w / servers.Cycle(static_cast<int>(w), compute).in(kSeconds) / cap;
  };
  RC_ASSERT(share(std::fmax(1, std::floor(knee / 2))) <= 0.5 * (1 + 1e-9) || knee < 2);
  RC_ASSERT(share(std::ceil(std::fmax(1, knee - 1))) >= 0.5 * (1 - 1e-9));
}

RC_GTEST_PROP(LimitsProperty, AsynchronousCrossingIsWithinItsBracket, ()) {
  const AsyncCase servers;
  const Duration<> compute = Seconds(*LogUniform(1e-2, 1));
  const double crossing = AsyncCrossingWorkers(servers.queues, compute);
  if (crossing > 1e5) return;
  RC_ASSERT(servers.Cycle(static_cast<int>(std::ceil(crossing)), compute) >=
            compute * (2.0 * (1 - 1e-9)));
  const double early =
      (compute - servers.queues.think - servers.queues.demand) / servers.queues.largest + 1;
  if (early >= 2) {
    RC_ASSERT(servers.Cycle(static_cast<int>(early), compute) <= compute * (2.0 * (1 + 1e-9)));
  }
}

RC_GTEST_PROP(LimitsProperty, AsynchronousBestIsWithinTwiceTheScansBest, ()) {
  const AsyncCase servers;
  const Duration<> work = Seconds(*LogUniform(1e-2, 30));
  const double closed = AsyncBestWorkers(servers.queues, work);
  if (closed > 300) return;
  const auto cycle = [&](int w) { return servers.Cycle(w, work / static_cast<double>(w)); };
  Duration<> least = cycle(1);
  for (int w = 2; w < 1000; ++w) least = Min(least, cycle(w));
  // A whole number next to the knee, one worker more than the bound at most.
  const int w = static_cast<int>(closed);
  RC_ASSERT(Min(cycle(w), cycle(w + 1)) <= least * (2.0 * (1 + 1e-9)));
}

RC_GTEST_PROP(LimitsProperty, EnoughAsynchronousServersPutTheKneeAtTheWorkers, ()) {
  ServerPaths<double> network = OneWorkerANode();
  network.initiation = Duration<>();
  network.update = {};
  const int workers = *Whole(3, 1000);
  network.workers = workers;
  const Duration<> compute = Seconds(*LogUniform(1e-2, 1));
  const double suffice = AsyncServersThatSuffice(network, kGradient, compute);
  const auto knee = [&](double n) {
    // Any real number of servers, by their rates.
    ServerPaths<double> one = network;
    one.servers = 1;
    one.server_bandwidth = network.server_bandwidth * n;
    one.server_rate = network.server_rate * n;
    return AsyncKnee(AsyncServerQueues(one, kGradient), compute);
  };
  if (suffice > 1) RC_ASSERT(Near(knee(suffice), workers, 1e-9));
  RC_ASSERT(knee(suffice) >= workers * (1 - 1e-9));
}

// ---- Buckets.

std::vector<Bucket> EqualBuckets(int count) {
  std::vector<Bucket> buckets;
  for (int i = 1; i <= count; ++i) {
    buckets.push_back({kGradient / static_cast<double>(count), static_cast<double>(i) / count});
  }
  return buckets;
}

RC_GTEST_PROP(LimitsProperty, BestBucketCountIsTheSchedulesBest, ()) {
  const Duration<> backward = Seconds(*LogUniform(1e-2, 1));
  const SyncCost<double> cost = {Seconds(*LogUniform(1e-4, 1e-1)),
                                 DurationPerByte<double>::FromSi(*LogUniform(1e-10, 1e-7))};
  const auto end = [&](int count) {
    return LastSynchronisationEnd(EqualBuckets(count), backward,
                                  [&](const Bucket& b) { return cost.Time(b.bytes); });
  };
  const double closed = BestBucketCount(backward, cost, kGradient);
  if (closed > 400) return;
  Duration<> least = end(1);
  for (int count = 2; count < 900; ++count) {
    RC_ASSERT(Near(end(count).si(), EqualBucketsEnd(count, backward, cost, kGradient).si(), 1e-9));
    least = Min(least, end(count));
  }
  const int below = static_cast<int>(closed);
  RC_ASSERT(Near(Min(end(below), end(below + 1)).si(), least.si(), 1e-9));
}

// ---- v + ln v = x.

TEST(Limits, LambertsFunctionOfAnExponential) {
  EXPECT_DOUBLE_EQ(internal::SolvePlusLog(1.0), 1);
  EXPECT_NEAR(internal::SolvePlusLog(0.0), 0.56714329040978387, 1e-15);  // the omega constant
  for (double x = -600; x <= 1e6; x += std::fmax(0.01, std::abs(x) / 50)) {
    const double v = internal::SolvePlusLog(x);
    EXPECT_GT(v, 0);
    EXPECT_NEAR(v + std::log(v), x, 1e-12 * std::fmax(1, std::abs(x))) << x;
  }
}

// ---- Accumulation.

double Efficiency(double accumulation, double exposed_over_micro_step) {
  return accumulation / (accumulation + exposed_over_micro_step);
}

TEST(Limits, AccumulationByHand) {
  // Three quarters of the time with an exposed half: 0.75 / 0.25 x 0.5 = 1.5, so 2.
  EXPECT_EQ(RealAccumulationForEfficiency(0.75, Seconds(0.5), Seconds(1.0)), 1.5);
  EXPECT_EQ(AccumulationForEfficiency(0.75, Seconds(0.5), Seconds(1.0)), 2);
  // Whole numbers are kept, though 0.9 / (1 - 0.9) is 9.000000000000002.
  EXPECT_EQ(AccumulationForEfficiency(0.5, Seconds(3.0), Seconds(1.0)), 3);
  EXPECT_EQ(AccumulationForEfficiency(0.9, Seconds(1.0), Seconds(1.0)), 9);
  EXPECT_EQ(AccumulationForEfficiency(0.99, Seconds(1.0), Seconds(1.0)), 99);
  // There is no less than one.
  EXPECT_EQ(AccumulationForEfficiency(0.5, Seconds(0.0), Seconds(1.0)), 1);
  EXPECT_EQ(AccumulationForEfficiency(0.01, Seconds(1.0), Seconds(1.0)), 1);
}

RC_GTEST_PROP(LimitsProperty, AccumulationReachesTheEfficiencyAndOneLessDoesNot, ()) {
  const double efficiency = *LogUniform(0.05, 0.999);
  const double ratio = *LogUniform(1e-3, 1e3);
  const double a = AccumulationForEfficiency(efficiency, Seconds(ratio), Seconds(1.0));
  RC_ASSERT(a == std::floor(a));
  RC_ASSERT(a >= 1);
  RC_ASSERT(Efficiency(a, ratio) >= efficiency * (1 - 1e-12));
  if (a > 1) RC_ASSERT(Efficiency(a - 1, ratio) < efficiency);
}

}  // namespace
}  // namespace stepcast
