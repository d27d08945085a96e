// Traffic is counted, not fitted: to the byte against the closed forms, and against the algorithms
// themselves, run message by message.
#include "model/exchange/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "model/exchange/parameter_server.h"
#include "tests/model/message_level.h"

namespace stepcast {
namespace {

constexpr int kMostWorkers = 64;
constexpr int kMostServers = 8;
constexpr double kGradient = 102'228'128;  // ResNet-50
constexpr double kToTheByte = 0.01;

Traffic Count(Strategy strategy, const Placement& placement, double bytes, int servers = 0) {
  Plan plan;
  plan.strategy = strategy;
  plan.placement = placement;
  plan.servers = servers;
  return CountTraffic(plan, Bytes(bytes));
}

Placement OneEach(int workers) { return Placement(static_cast<std::size_t>(workers), 1); }

constexpr Strategy kCollectives[] = {Strategy::kAllreduce, Strategy::kRing, Strategy::kTree,
                                     Strategy::kHalvingDoubling, Strategy::kHierarchical};

const std::vector<Placement>& Placements() {
  static const std::vector<Placement> placements = {
      {1},          {2},       {8},          {1, 1},       {2, 2},  {4, 4},      {8, 8, 8},
      {4, 4, 4, 4}, {3, 3},    {5, 5, 5},    {4, 4, 2},    {4, 1},  {4, 2, 1},   {1, 4},
      {8, 4, 2, 1}, {6, 3, 2}, {2, 1, 1, 1}, {6, 6, 1, 3}, {16, 8}, {1, 1, 1, 1}};
  return placements;
}

// ---- The table.

TEST(Traffic, NoneIsNothing) {
  for (int w = 1; w <= kMostWorkers; ++w) {
    const Traffic traffic = Count(Strategy::kNone, OneEach(w), kGradient);
    EXPECT_EQ(traffic.transfers, 0);
    EXPECT_EQ(traffic.per_worker.si(), 0);
    EXPECT_EQ(traffic.total.si(), 0);
    EXPECT_FALSE(traffic.per_server.has_value());
  }
}

TEST(Traffic, OneWorkerSendsNothing) {
  for (const Strategy strategy : kCollectives) {
    const Traffic traffic = Count(strategy, {1}, kGradient);
    EXPECT_EQ(traffic.transfers, 0) << StrategyName(strategy);
    EXPECT_EQ(traffic.per_worker.si(), 0) << StrategyName(strategy);
    EXPECT_EQ(traffic.total.si(), 0) << StrategyName(strategy);
  }
}

TEST(Traffic, RingByTheTable) {
  for (const Strategy strategy : {Strategy::kAllreduce, Strategy::kRing}) {
    for (int w = 1; w <= kMostWorkers; ++w) {
      const Traffic traffic = Count(strategy, OneEach(w), kGradient);
      EXPECT_EQ(traffic.transfers, 2 * w * (w - 1));
      EXPECT_NEAR(traffic.per_worker.si(), 2 * kGradient * (w - 1) / w, kToTheByte) << w;
      EXPECT_EQ(traffic.total.si(), 2 * kGradient * (w - 1)) << w;
    }
  }
}

TEST(Traffic, HalvingDoublingOfPowersOfTwoByTheTable) {
  for (int log = 1; (1 << log) <= kMostWorkers; ++log) {
    const int w = 1 << log;
    const Traffic traffic = Count(Strategy::kHalvingDoubling, OneEach(w), kGradient);
    EXPECT_EQ(traffic.transfers, 2 * w * log) << w;
    EXPECT_NEAR(traffic.per_worker.si(), 2 * kGradient * (w - 1) / w, kToTheByte) << w;
    EXPECT_EQ(traffic.total.si(), 2 * kGradient * (w - 1)) << w;
  }
}

// Known answers: 5 workers are 4 and one that hands over; 2 x 4 x 2 messages and 2.
TEST(Traffic, HalvingDoublingOfFiveAndSeven) {
  const Traffic five = Count(Strategy::kHalvingDoubling, OneEach(5), 1000);
  EXPECT_EQ(five.transfers, 18);
  EXPECT_EQ(five.per_worker.si(), 2500);
  EXPECT_EQ(five.total.si(), 8000);
  const Traffic seven = Count(Strategy::kHalvingDoubling, OneEach(7), 1000);
  EXPECT_EQ(seven.transfers, 22);
  EXPECT_EQ(seven.per_worker.si(), 2500);
  EXPECT_EQ(seven.total.si(), 12000);
}

TEST(Traffic, EveryAllreducePutsTheSameBytesOnTheWire) {
  for (const Placement& placement : Placements()) {
    for (const Strategy strategy : kCollectives) {
      EXPECT_EQ(Count(strategy, placement, kGradient).total.si(),
                2 * kGradient * (Workers(placement) - 1))
          << StrategyName(strategy);
    }
  }
}

TEST(Traffic, ServersByTheTable) {
  for (int w = 1; w <= kMostWorkers; ++w) {
    for (int n = 1; n <= kMostServers; ++n) {
      const Traffic sync = Count(Strategy::kPsSync, OneEach(w), kGradient, n);
      EXPECT_EQ(sync.transfers, 2 * n * w);
      EXPECT_EQ(sync.per_worker.si(), kGradient);
      ASSERT_TRUE(sync.per_server.has_value());
      EXPECT_NEAR(sync.per_server->si(), kGradient * w / n, kToTheByte);
      EXPECT_EQ(sync.total.si(), 2 * kGradient * w);

      const Traffic async = Count(Strategy::kPsAsync, OneEach(w), kGradient, n);
      EXPECT_EQ(async.transfers, 2 * n);
      EXPECT_EQ(async.per_worker.si(), kGradient);
      ASSERT_TRUE(async.per_server.has_value());
      EXPECT_NEAR(async.per_server->si(), kGradient / n, kToTheByte);
      EXPECT_EQ(async.total.si(), 2 * kGradient);
    }
  }
}

// ---- What follows from the table.

TEST(Traffic, RingFlowOfAWorkerTendsToTwiceTheGradient) {
  double before = 0;
  for (int w = 1; w <= 4096; w *= 2) {
    const double flow = Count(Strategy::kRing, OneEach(w), kGradient).per_worker.si();
    EXPECT_LT(flow, 2 * kGradient);
    if (w > 1) {
      EXPECT_GT(flow, before);
    }
    before = flow;
  }
  EXPECT_NEAR(before, 2 * kGradient, 2 * kGradient / 4096 + 1);
}

TEST(Traffic, OnlyServersHaveServerTraffic) {
  for (const Strategy strategy : kCollectives) {
    EXPECT_FALSE(Count(strategy, {4, 4}, kGradient).per_server.has_value());
  }
}

// No worker is below the average, none carries more than all.
TEST(Traffic, TheBusiestWorkerCarriesAtLeastTheAverage) {
  for (const Strategy strategy : kCollectives) {
    for (const Placement& placement : Placements()) {
      const Traffic traffic = Count(strategy, placement, kGradient);
      EXPECT_GE(traffic.per_worker.si(), traffic.total.si() / Workers(placement) - kToTheByte)
          << StrategyName(strategy) << " of " << Workers(placement);
      EXPECT_LE(traffic.per_worker.si(), traffic.total.si() + kToTheByte);
    }
  }
}

TEST(Traffic, HierarchicalIsTheRingWhereThereIsOneLevel) {
  for (int w = 2; w <= kMostWorkers; ++w) {
    const Traffic ring = Count(Strategy::kRing, OneEach(w), kGradient);
    for (const Placement& placement : {OneEach(w), Placement{w}}) {
      const Traffic hierarchical = Count(Strategy::kHierarchical, placement, kGradient);
      EXPECT_EQ(hierarchical.transfers, ring.transfers) << w;
      EXPECT_NEAR(hierarchical.per_worker.si(), ring.per_worker.si(), kToTheByte) << w;
    }
  }
}

// 2 nodes of 4: 2 x 4 x 3 messages within each node, 4 rings of 2 nodes with 2 x 2 x 1 between.
TEST(Traffic, HierarchicalByHand) {
  const Traffic traffic = Count(Strategy::kHierarchical, {4, 4}, 8000);
  EXPECT_EQ(traffic.transfers, 2 * 24 + 16);
  EXPECT_NEAR(traffic.per_worker.si(), 2 * (6000 + 1000), kToTheByte);
  EXPECT_EQ(traffic.total.si(), 14 * 8000);
}

// ---- The algorithms, run.

void ExpectCounted(const MessageNetwork& network, const Traffic& traffic,
                   const std::string& where) {
  EXPECT_TRUE(network.EveryWorkerHasTheSum()) << where;
  EXPECT_EQ(network.transfers(), traffic.transfers) << where;
  EXPECT_EQ(static_cast<double>(network.total()), traffic.total.si()) << where;
  EXPECT_NEAR(static_cast<double>(network.most_sent()), traffic.per_worker.si(), kToTheByte)
      << where;
  EXPECT_NEAR(static_cast<double>(network.most_received()), traffic.per_worker.si(), kToTheByte)
      << where;
}

TEST(TrafficOfTheAlgorithm, Ring) {
  for (int w = 1; w <= kMostWorkers; ++w) {
    const MessageNetwork network = RunRingAllreduce(w);
    ExpectCounted(network,
                  Count(Strategy::kRing, OneEach(w), static_cast<double>(network.length())),
                  "ring of " + std::to_string(w));
  }
}

TEST(TrafficOfTheAlgorithm, HalvingDoubling) {
  for (int w = 1; w <= kMostWorkers; ++w) {
    const MessageNetwork network = RunHalvingDoubling(w);
    ExpectCounted(
        network,
        Count(Strategy::kHalvingDoubling, OneEach(w), static_cast<double>(network.length())),
        "halving-doubling of " + std::to_string(w));
  }
}

TEST(TrafficOfTheAlgorithm, DoubleTree) {
  for (int w = 1; w <= kMostWorkers; ++w) {
    const MessageNetwork network = RunDoubleTree(w);
    ExpectCounted(network,
                  Count(Strategy::kTree, OneEach(w), static_cast<double>(network.length())),
                  "tree of " + std::to_string(w));
  }
}

TEST(TrafficOfTheAlgorithm, Hierarchical) {
  for (const Placement& placement : Placements()) {
    const MessageNetwork network = RunHierarchical(placement);
    std::string where = "hierarchical over";
    for (const int devices : placement) where += " " + std::to_string(devices);
    ExpectCounted(network,
                  Count(Strategy::kHierarchical, placement, static_cast<double>(network.length())),
                  where);
  }
}

Plan HybridOn(int nodes, int devices) {
  Plan plan;
  plan.strategy = Strategy::kRing;
  plan.shard = Shard::kHybrid;
  plan.placement = Placement(static_cast<std::size_t>(nodes), devices);
  return plan;
}

TEST(TrafficOfTheAlgorithm, Hybrid) {
  for (int nodes = 1; nodes <= 8; ++nodes) {
    for (int devices = 1; devices <= 8; ++devices) {
      const MessageNetwork network = RunHybrid(nodes, devices);
      const DataSize<> bytes = Bytes(static_cast<double>(network.length()));
      const std::string where = std::to_string(nodes) + " nodes of " + std::to_string(devices);
      ExpectCounted(network, CountTraffic(HybridOn(nodes, devices), bytes), where);
    }
  }
}

// 4 nodes of 2 exchange in each of three micro-steps: within each node three times 2 messages of
// half of all, and for each of 2 shares a ring of 2 x 4 x 3 messages of an eighth between.
TEST(Traffic, HybridByHand) {
  Plan plan = HybridOn(4, 2);
  for (const Strategy strategy : {Strategy::kAllreduce, Strategy::kRing, Strategy::kHierarchical}) {
    plan.strategy = strategy;
    plan.accumulation_steps = 3;
    const Traffic traffic = CountTraffic(plan, Bytes(8000.0));
    EXPECT_EQ(traffic.transfers, 3 * (4 * 3 * 2 + 2 * 2 * 4 * 3));
    EXPECT_NEAR(traffic.per_worker.si(), 3 * (3 * 4000 + 6 * 1000), kToTheByte);
    EXPECT_NEAR(traffic.total.si(), 3 * (4 * 3 * 2 * 4000 + 2 * 2 * 4 * 3 * 1000), kToTheByte);
  }
}

TEST(TrafficOfTheAlgorithm, ParameterServers) {
  for (int w = 1; w <= kMostWorkers; ++w) {
    for (int n = 1; n <= kMostServers; ++n) {
      const MessageNetwork network = RunParameterServers(w, n);
      const Traffic traffic =
          Count(Strategy::kPsSync, OneEach(w), static_cast<double>(network.length()), n);
      ExpectCounted(network, traffic, std::to_string(w) + " workers, " + std::to_string(n));
      for (int s = w; s < w + n; ++s) {
        EXPECT_EQ(static_cast<double>(network.received(s)), traffic.per_server->si());
        EXPECT_EQ(static_cast<double>(network.sent(s)), traffic.per_server->si());
      }
    }
  }
}

// The simulation can tell: an all-reduce that stops half way leaves workers without the sum.
TEST(TrafficOfTheAlgorithm, AReduceScatterAloneIsNoAllreduce) {
  MessageNetwork network(4, 8);
  EXPECT_FALSE(network.EveryWorkerHasTheSum());
  RunRings({{Range(0, 4), {0, 8}}}, false, &network);
  EXPECT_FALSE(network.EveryWorkerHasTheSum());
  RunRings({{Range(0, 4), {0, 8}}}, true, &network);
  EXPECT_TRUE(network.EveryWorkerHasTheSum());
}

TEST(TrafficOfTheAlgorithm, HelpersOfEveryNumber) {
  for (int w = 1; w <= 12; ++w) {
    for (int k = 0; k <= w; ++k) {
      const MessageNetwork network = RunBytePs(w, k);
      if (network.length() == 0) continue;
      const Traffic traffic =
          Count(Strategy::kBytePs, OneEach(w), static_cast<double>(network.length()), k);
      EXPECT_TRUE(w == 1 || network.EveryWorkerHasTheSum());
      if (w == 1) {
        EXPECT_EQ(traffic.total.si(), 0);
        continue;
      }
      EXPECT_NEAR(static_cast<double>(network.total()), traffic.total.si(), kToTheByte);
      EXPECT_NEAR(static_cast<double>(network.most_sent()), traffic.per_worker.si(), kToTheByte);
      // With as many helpers as machines, machines sum nothing and send each other nothing.
      const double machine_messages = k == w ? 2.0 * w * (w - 1) : 0.0;
      EXPECT_EQ(network.transfers() + machine_messages, traffic.transfers);
      if (k == 0) continue;
      ASSERT_TRUE(traffic.per_server.has_value());
      EXPECT_NEAR(static_cast<double>(network.sent(w)), traffic.per_server->si(), kToTheByte);
      EXPECT_NEAR(static_cast<double>(network.received(w)), traffic.server_in->si(), kToTheByte);
    }
  }
}

// 5 helpers of 3 machines sum everything: each machine sends its 6000 bytes and gets as many back,
// a fifth of them by each helper.
TEST(Traffic, MoreHelpersThanMachines) {
  const Traffic traffic = Count(Strategy::kBytePs, OneEach(3), 6000, 5);
  EXPECT_NEAR(traffic.total.si(), 2 * 3 * 6000, kToTheByte);
  EXPECT_NEAR(traffic.per_worker.si(), 6000, kToTheByte);
  ASSERT_TRUE(traffic.per_server && traffic.server_in && traffic.server_out);
  for (const DataSize<>& bytes : {*traffic.per_server, *traffic.server_in, *traffic.server_out}) {
    EXPECT_NEAR(bytes.si(), 3 * 6000 / 5.0, kToTheByte);
  }
}

TEST(TrafficOfTheAlgorithm, ColocatedServers) {
  for (const Placement& placement : Placements()) {
    for (int n = 1; n <= static_cast<int>(placement.size()); ++n) {
      const MessageNetwork network = RunColocatedServers(placement, n);
      EXPECT_TRUE(network.EveryWorkerHasTheSum() || DevicesOnFullestNode(placement) > 1);
      Plan plan;
      plan.strategy = Strategy::kPsSync;
      plan.placement = placement;
      plan.servers = n;
      plan.server.colocated = true;
      const Traffic traffic = CountTraffic(plan, Bytes(static_cast<double>(network.length())));
      EXPECT_EQ(network.transfers(), traffic.transfers);
      EXPECT_NEAR(static_cast<double>(network.total()), traffic.total.si(), kToTheByte);
    }
  }
}

// The table of the header: w = 3 workers, n = 2 servers, 1200 bytes.
TEST(Traffic, MulticastAndAggregationByTheTable) {
  Plan plan;
  plan.strategy = Strategy::kPsSync;
  plan.placement = OneEach(3);
  plan.servers = 2;
  const auto expect = [&](double transfers, double in, double out, double total) {
    const Traffic traffic = CountTraffic(plan, Bytes(1200.0));
    EXPECT_EQ(traffic.transfers, transfers);
    EXPECT_EQ(traffic.per_worker.si(), 1200);
    EXPECT_EQ(traffic.server_in->si(), in);
    EXPECT_EQ(traffic.server_out->si(), out);
    EXPECT_EQ(traffic.per_server->si(), std::max(in, out));
    EXPECT_EQ(traffic.total.si(), total);
  };
  expect(12, 1800, 1800, 7200);
  plan.server.multicast = true;
  expect(8, 1800, 600, 4800);
  plan.server.in_network_aggregation = true;
  expect(8, 600, 600, 2400);
  plan.server.multicast = false;
  expect(12, 600, 1800, 4800);
}

// Two nodes of two workers and a server each: each server exchanges half of the 1200 bytes with two
// workers elsewhere, or once with the network; the cost counts the same bytes.
TEST(Traffic, MulticastAndAggregationOfColocatedServers) {
  Plan plan;
  plan.strategy = Strategy::kPsSync;
  plan.placement = {2, 2};
  plan.servers = 2;
  plan.server.colocated = true;
  ServerPaths<double> paths;
  paths.workers = 4;
  paths.servers = paths.nodes = 2;
  paths.workers_per_node = 2;
  paths.worker.bandwidth = BytesPerSecond(1.0);
  paths.colocated = true;
  const auto expect = [&](double transfers, double in, double out, double total) {
    const Traffic traffic = CountTraffic(plan, Bytes(1200.0));
    EXPECT_EQ(traffic.transfers, transfers);
    EXPECT_EQ(traffic.per_worker.si(), 600);
    EXPECT_EQ(traffic.server_in->si(), in);
    EXPECT_EQ(traffic.server_out->si(), out);
    EXPECT_EQ(traffic.per_server->si(), std::max(in, out));
    EXPECT_EQ(traffic.total.si(), total);
    paths.multicast = plan.server.multicast;
    paths.in_network_aggregation = plan.server.in_network_aggregation;
    const ServerPhases<double> phases = SynchronousServers(paths);
    const double own = 2 * traffic.per_worker.si();  // of the node's workers
    EXPECT_NEAR((phases.server_push.per_byte * Bytes(600.0)).si(), in, kToTheByte);
    EXPECT_NEAR((phases.server_pull.per_byte * Bytes(600.0)).si(), out, kToTheByte);
    EXPECT_NEAR((phases.shared_link * Bytes(1200.0)).si(), own + std::max(in, out), kToTheByte);
  };
  expect(8, 1200, 1200, 4800);
  plan.server.multicast = true;
  expect(6, 1200, 600, 3600);
  plan.server.in_network_aggregation = true;
  expect(6, 600, 600, 2400);
  plan.server.multicast = false;
  expect(8, 600, 1200, 3600);
  // On a single node nothing is on the wire, whatever would help.
  plan.placement = {4};
  plan.servers = 1;
  for (const bool multicast : {false, true}) {
    plan.server.multicast = multicast;
    const Traffic alone = CountTraffic(plan, Bytes(1200.0));
    EXPECT_EQ(alone.transfers, 0);
    EXPECT_EQ(alone.total.si(), 0);
    EXPECT_EQ(alone.per_worker.si(), 0);
    EXPECT_EQ(alone.per_server->si(), 0);
  }
}

// Two nodes whose two workers add up first: each server exchanges its half with one other node.
TEST(Traffic, NodesThatAddUpFirstAreOneWorkerEach) {
  Plan plan;
  plan.strategy = Strategy::kPsSync;
  plan.placement = {2, 2};
  plan.servers = 2;
  plan.server.colocated = true;
  plan.server.local_aggregation = true;
  const Traffic traffic = CountTraffic(plan, Bytes(1200.0));
  EXPECT_EQ(traffic.transfers, 4);
  EXPECT_EQ(traffic.per_worker.si(), 600);
  EXPECT_EQ(traffic.server_in->si(), 600);
  EXPECT_EQ(traffic.server_out->si(), 600);
  EXPECT_EQ(traffic.total.si(), 2 * 1200);
  // Four devices of a lone node push once to two servers elsewhere, and to those beside them
  // without a wire.
  plan.placement = {4};
  EXPECT_EQ(CountTraffic(plan, Bytes(1200.0)).transfers, 0);
  EXPECT_EQ(CountTraffic(plan, Bytes(1200.0)).total.si(), 0);
  plan.server.colocated = false;
  const Traffic away = CountTraffic(plan, Bytes(1200.0));
  EXPECT_EQ(away.transfers, 4);
  EXPECT_EQ(away.per_worker.si(), 1200);
  EXPECT_EQ(away.server_in->si(), 600);
  EXPECT_EQ(away.total.si(), 2 * 1200);
}

TEST(Traffic, MoreColocatedServersThanNodes) {
  Plan plan;
  plan.strategy = Strategy::kPsSync;
  plan.placement = {1, 1, 1};
  plan.servers = 6;
  plan.server.colocated = true;
  const Traffic six = CountTraffic(plan, Bytes(kGradient));
  plan.servers = 3;
  const Traffic three = CountTraffic(plan, Bytes(kGradient));
  EXPECT_NEAR(six.per_worker.si(), three.per_worker.si(), kToTheByte);
  EXPECT_NEAR(six.total.si(), three.total.si(), kToTheByte);
  EXPECT_NEAR(six.per_server->si() * 2, three.per_server->si(), kToTheByte);
}

TEST(Traffic, TheLargestShardBurdensItsServer) {
  Plan plan;
  plan.strategy = Strategy::kPsSync;
  plan.placement = OneEach(4);
  plan.servers = 2;
  const Traffic traffic = CountTraffic(plan, Bytes(1000.0), Bytes(900.0));
  EXPECT_EQ(traffic.per_server->si(), 3600);
  EXPECT_EQ(traffic.total.si(), 8000);
}

// One server a node, one worker a node: (w-1)/w m each way, 2 m (w-1) in all, as the ring.
TEST(Traffic, OneColocatedServerANodeIsTheRingInBytes) {
  for (int w = 2; w <= kMostWorkers; ++w) {
    Plan plan;
    plan.strategy = Strategy::kPsSync;
    plan.placement = OneEach(w);
    plan.servers = w;
    plan.server.colocated = true;
    const Traffic traffic = CountTraffic(plan, Bytes(kGradient));
    EXPECT_EQ(traffic.transfers, 2.0 * w * (w - 1));
    EXPECT_NEAR(traffic.per_worker.si(), kGradient * (w - 1) / w, kToTheByte);
    EXPECT_NEAR(traffic.per_server->si(), kGradient * (w - 1) / w, kToTheByte);
    EXPECT_NEAR(traffic.total.si(), 2 * kGradient * (w - 1), kToTheByte);
  }
}

// 4 nodes of 2: 2 x 2 x 1 messages within each node, and for each of 2 shards 2 x 4 x 2 between;
// a device sends half of the message twice within, and 1.5 halves between. Heads of chains of the
// tree send 2 m between and m down the chain.
TEST(Traffic, HalvingDoublingAndTreesSpanNodes) {
  const Traffic halving = Count(Strategy::kHalvingDoubling, {2, 2, 2, 2}, 8000);
  EXPECT_EQ(halving.transfers, 4 * 4 + 2 * 16);
  EXPECT_NEAR(halving.per_worker.si(), 8000 + 6000, kToTheByte);
  EXPECT_EQ(halving.total.si(), 14 * 8000);
  const Traffic tree = Count(Strategy::kTree, {2, 2, 2, 2}, 8000);
  EXPECT_EQ(tree.transfers, 4 * 7);
  EXPECT_NEAR(tree.per_worker.si(), 3 * 8000, kToTheByte);
  EXPECT_EQ(tree.total.si(), 14 * 8000);
}

}  // namespace
}  // namespace stepcast
