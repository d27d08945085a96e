// The core of a network against messages counted link by link.
#include "model/network/oversubscription.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "data/record/input_error.h"
#include "data/workloads/catalog.h"
#include "model/exchange/byteps.h"
#include "tests/model/prior_step.h"

namespace stepcast {
namespace {

// Switches of equally many nodes each; a link carries a byte a second, an uplink what its share of
// all that its switch's nodes have is.
class Fabric {
 public:
  Fabric(int nodes_per_switch, double oversubscription)
      : of_switch_(nodes_per_switch), uplink_(nodes_per_switch / oversubscription) {}

  void Send(int from, int to, double bytes) {
    Add(&out_, from, bytes);
    Add(&in_, to, bytes);
    if (from / of_switch_ == to / of_switch_) return;
    Add(&up_, from / of_switch_, bytes / uplink_);
    Add(&down_, to / of_switch_, bytes / uplink_);
  }
  // Time until all of it has arrived, after which nothing is on its way.
  double Finish() {
    double longest = 0;
    for (std::vector<double>* links : {&out_, &in_, &up_, &down_}) {
      for (const double busy : *links) longest = std::max(longest, busy);
      links->clear();
    }
    return longest;
  }

 private:
  static void Add(std::vector<double>* links, int at, double busy) {
    if (links->size() <= static_cast<std::size_t>(at)) links->resize(at + 1);
    (*links)[static_cast<std::size_t>(at)] += busy;
  }

  int of_switch_;
  double uplink_;
  std::vector<double> out_, in_, up_, down_;  // busy for so long [s]
};

double Ring(Fabric fabric, int nodes) {
  double time = 0;
  for (int round = 0; round < 2 * (nodes - 1); ++round) {
    for (int i = 0; i < nodes; ++i) fabric.Send(i, (i + 1) % nodes, 1.0 / nodes);
    time += fabric.Finish();
  }
  return time;
}

double HalvingDoubling(Fabric fabric, int nodes) {
  double time = 0;
  double bytes = 0.5;
  for (int distance = 1; distance < nodes; distance *= 2, bytes /= 2) {
    for (int i = 0; i < nodes; ++i) fabric.Send(i, i ^ distance, bytes);
    time += 2 * fabric.Finish();  // and back again
  }
  return time;
}

// Parents in the tree of NCCL: that of a number has its lowest one moved up.
std::vector<std::pair<int, int>> TreeEdges(int nodes) {
  std::vector<std::pair<int, int>> edges;
  for (int i = 1; i < nodes; ++i) {
    const int lowest = i & -i;
    const int above = (i ^ lowest) | (2 * lowest);
    edges.emplace_back(i, above < nodes ? above : i ^ lowest);
  }
  return edges;
}

// Half of the vector up and down a tree, the other half one whose inner nodes are leaves of that.
double Trees(Fabric fabric, int nodes) {
  for (const auto& [child, parent] : TreeEdges(nodes)) {
    const auto other = [&](int node) {
      return nodes % 2 == 1 ? (node + 1) % nodes : nodes - 1 - node;
    };
    for (const auto& [a, b] : {std::pair(child, parent), std::pair(other(child), other(parent))}) {
      fabric.Send(a, b, 0.5);
      fabric.Send(b, a, 0.5);
    }
  }
  return fabric.Finish();
}

double ToServersAmong(Fabric fabric, int nodes, int servers) {
  for (int i = 0; i < nodes; ++i) {
    for (int s = 0; s < servers; ++s) {
      if (i != s) fabric.Send(i, s, 1.0 / servers);
    }
  }
  return fabric.Finish();
}

double ToServersApart(Fabric fabric, int nodes, int servers, int nodes_per_switch) {
  const int first = (nodes + nodes_per_switch - 1) / nodes_per_switch * nodes_per_switch;
  for (int i = 0; i < nodes; ++i) {
    for (int s = 0; s < servers; ++s) fabric.Send(i, first + s, 1.0 / servers);
  }
  return fabric.Finish();
}

TEST(Oversubscription, MakesAByteTakeAsLongAsItsMessagesDo) {
  for (const int on_switch : {1, 2, 4, 8}) {
    for (const double o : {1.0, 1.5, 3.0, 10.0}) {
      const NetworkCore<> core{o, 1.0 * on_switch};
      const auto fabric = [&](double of = 1) { return Fabric(on_switch, of); };
      for (const int nodes : {2, 4, 8, 16, 64}) {
        const auto at = std::make_tuple(on_switch, o, nodes);
        EXPECT_NEAR(Ring(fabric(o), nodes) / Ring(fabric(), nodes), core.OfRing(nodes).longer, 1e-9)
            << testing::PrintToString(at);
        EXPECT_NEAR(HalvingDoubling(fabric(o), nodes) / HalvingDoubling(fabric(), nodes),
                    core.OfHalvingDoubling(nodes).longer, 1e-9)
            << testing::PrintToString(at);
        for (const int servers : {1, 2, 4, 8, 16}) {
          if (servers <= nodes) {
            EXPECT_NEAR(ToServersAmong(fabric(o), nodes, servers) /
                            ToServersAmong(fabric(), nodes, servers),
                        core.OfSome(nodes, servers).longer, 1e-9)
                << testing::PrintToString(at) << servers;
          }
          const double by_nodes = core.OfAllApart(nodes).longer;
          const double by_servers = core.OfAllApart(servers).longer * nodes / servers;
          EXPECT_NEAR(ToServersApart(fabric(o), nodes, servers, on_switch),
                      std::max(by_nodes, by_servers), 1e-9)
              << testing::PrintToString(at) << servers;
        }
      }
    }
  }
}

// Of as many nodes as a power of two on enough switches of any size the sum over rounds is exact.
TEST(Oversubscription, HalvingDoublingCrossesTheEdgesOfOddSwitches) {
  for (const int on_switch : {3, 5, 6, 7, 12, 20, 24}) {
    for (const double o : {1.5, 4.0, 10.0}) {
      const NetworkCore<> core{o, 1.0 * on_switch};
      for (const int nodes : {8, 16, 64, 256}) {
        const double counted = HalvingDoubling(Fabric(on_switch, o), nodes) /
                               HalvingDoubling(Fabric(on_switch, 1), nodes);
        const double told = core.OfHalvingDoubling(nodes).longer;
        const auto at = testing::PrintToString(std::make_tuple(on_switch, o, nodes));
        EXPECT_GE(told, counted * (1 - 1e-9)) << at << ": the worst switch may be missing";
        if (nodes >= 4 * on_switch) {
          EXPECT_NEAR(told, counted, 0.02 * counted) << at;
        }
      }
    }
  }
}

// Of nodes that fill switches or not.
TEST(Oversubscription, TreesLeaveASwitchByFewEdges) {
  double least = 1;
  double most = 1;
  for (const int on_switch : {1, 2, 3, 4, 6, 8, 16, 20, 24, 48}) {
    const double o = 4.0 * on_switch;  // all that crosses is longer
    const NetworkCore<> core{o, 1.0 * on_switch};
    for (const int nodes : {2, 3, 4, 8, 9, 16, 24, 33, 64, 100, 256, 401, 1000}) {
      const double counted =
          Trees(Fabric(on_switch, o), nodes) / Trees(Fabric(on_switch, 1), nodes);
      const double ratio = core.OfTree(nodes).longer / counted;
      least = std::min(least, ratio);
      most = std::max(most, ratio);
    }
  }
  EXPECT_GT(least, 0.59);
  EXPECT_LT(most, 2.01);
  // Switches that begin at multiples of a power of two: exact from four of them on.
  for (const int on_switch : {2, 4, 8, 16}) {
    const NetworkCore<> core{64, 1.0 * on_switch};
    for (const int switches : {4, 8, 16}) {
      const int nodes = switches * on_switch;
      EXPECT_NEAR(Trees(Fabric(on_switch, 64), nodes) / Trees(Fabric(on_switch, 1), nodes),
                  core.OfTree(nodes).longer, 1e-9)
          << on_switch << ' ' << nodes;
    }
  }
}

// Machines keep what they sum of the vector, give each other theirs, and helpers the rest; helpers
// sit on switches of their own.
TEST(Oversubscription, OfBytePsCountsWhatLeavesTheSwitch) {
  for (const int on_switch : {1, 3, 4, 16}) {
    for (const int nodes : {2, 3, 4, 12, 16}) {
      for (const int helpers : {0, 1, 2, 4, 8, 16}) {
        const double useful = std::min(nodes, helpers);
        const double own = BytePsMachineShare(nodes, useful);
        const double o = 4;
        const auto send = [&](Fabric fabric) {
          const int first = (nodes + on_switch - 1) / on_switch * on_switch;
          const double each = helpers > 0 ? (1 - nodes * own) / helpers : 0;
          for (int i = 0; i < nodes; ++i) {
            for (int j = 0; j < nodes; ++j) {
              if (i != j) fabric.Send(i, j, 2 * own);  // pushed, and given back
            }
            // What helpers give back comes in as they send it; on links of their own, so that only
            // the machines' count.
            for (int k = 0; k < helpers; ++k) fabric.Send(i, first + k * on_switch, each);
          }
          return fabric.Finish();
        };
        const NetworkCore<> core{o, 1.0 * on_switch};
        const double near = std::min(nodes, on_switch);
        const double told = core.OfShare(nodes, BytePsLeavingShare(nodes, near, helpers)).longer;
        const double sent = 1 + (nodes - 2) * own;
        const double at_helpers =
            helpers > 0 ? nodes * (1 - nodes * own) / helpers * std::max(1.0, o / on_switch) : 0;
        EXPECT_NEAR(send(Fabric(on_switch, o)), std::max(told * sent, at_helpers), 1e-9)
            << on_switch << ' ' << nodes << ' ' << helpers;
      }
    }
  }
}

Plan OnNodes(int nodes, Strategy strategy, double gbit) {
  Plan plan;
  plan.placement.assign(static_cast<std::size_t>(nodes), 1);
  plan.strategy = strategy;
  plan.local_batch = 32;
  plan.link.bandwidth = GigabitsPerSecond(gbit);
  return plan;
}

// A step over such a core is that over slower links.
TEST(Oversubscription, SlowsTheLinkOfAStepDown) {
  const Workload network = *FindWorkload("resnet50");
  const auto slower = [&](Plan plan, double by) {
    Plan core = plan;
    core.link.oversubscription = 12;
    core.link.nodes_per_switch = 4;
    *plan.link.bandwidth = *plan.link.bandwidth / by;
    EXPECT_NEAR(PriorStep(core, network).total() / PriorStep(plan, network).total(), 1, 1e-12);
  };
  slower(OnNodes(8, Strategy::kRing, 10), 3);
  slower(OnNodes(8, Strategy::kTree, 10), 12 * 4 / 16.0);
  slower(OnNodes(4, Strategy::kRing, 10), 1);
  slower(OnNodes(8, Strategy::kHalvingDoubling, 10), 1 + 11 / 7.0);
  slower(OnNodes(8, Strategy::kBytePs, 10), 12 * 4 / 7.0);
  Plan servers = OnNodes(8, Strategy::kPsSync, 10);
  servers.servers = 8;
  servers.server.colocated = true;
  slower(servers, 12 * 4 / 7.0);
  servers.servers = 2;
  slower(servers, 12 * 0.5 * 4 / 7.0);
  servers.server.colocated = false;
  servers.server_link.bandwidth = GigabitsPerSecond(1000.0);  // the nodes' links bind
  slower(servers, 12);
  servers.server.multicast = true;
  slower(servers, 12);
  servers.server.in_network_aggregation = true;
  slower(servers, 12 / 4.0);
  // Nodes have links, however many devices are on each.
  Plan shared = OnNodes(2, Strategy::kPsSync, 10);
  shared.placement = {2, 2};
  shared.servers = 2;
  shared.server_link.bandwidth = GigabitsPerSecond(1000.0);
  slower(shared, 12 * 2 / 4.0);
}

// Helpers on a switch of their own share its uplinks.
TEST(Oversubscription, SlowsTheLinksOfHelpersDown) {
  const Workload network = *FindWorkload("resnet50");
  Plan core = OnNodes(4, Strategy::kBytePs, 100);
  core.servers = 2;
  core.server_link.bandwidth = GigabitsPerSecond(0.5);
  Plan plain = core;
  core.link.oversubscription = 12;
  core.link.nodes_per_switch = 4;
  const double at_nodes =
      NetworkCore<>{12, 4}.OfShare(4, BytePsLeavingShare(4, 4, core.servers)).longer;
  *plain.link.bandwidth = *plain.link.bandwidth / at_nodes;
  *plain.server_link.bandwidth = *plain.server_link.bandwidth / (12 * 2 / 4.0);
  EXPECT_NEAR(PriorStep(core, network).total() / PriorStep(plain, network).total(), 1, 1e-12);
}

TEST(Oversubscription, BindsAsTheCoreOfTheNetwork) {
  const Workload network = *FindWorkload("vgg16");
  const auto limiter = [&](std::optional<double> oversubscription) {
    Plan plan = OnNodes(8, Strategy::kRing, 0.1);
    plan.link.oversubscription = oversubscription;
    plan.link.nodes_per_switch = 4;
    return PriorStep(plan, network).limiter;
  };
  EXPECT_EQ(limiter(std::nullopt), Limiter::kLink);
  EXPECT_EQ(limiter(4), Limiter::kLink);
  EXPECT_EQ(limiter(12), Limiter::kCore);
  // One node beyond the first switch: most of halving-doubling's bytes stay below.
  Plan plan = OnNodes(17, Strategy::kHalvingDoubling, 0.1);
  plan.link.oversubscription = 4.0;
  plan.link.nodes_per_switch = 16;
  EXPECT_EQ(PriorStep(plan, network).limiter, Limiter::kLink);
  plan.link.oversubscription = 400.0;
  EXPECT_EQ(PriorStep(plan, network).limiter, Limiter::kCore);
}

// Of a host whose own link carries `own` Gbit/s, in a cluster of 10 Gbit/s.
StepTime<double> SlowPortStep(Strategy strategy, double own, double oversubscription,
                              bool states_rate = true) {
  const Workload network = *FindWorkload("vgg16");
  Plan plan = OnNodes(8, strategy, 10);
  plan.link.bandwidth.reset();
  Cluster cluster;
  if (states_rate) cluster.link.bandwidth = GigabitsPerSecond(10.0);
  cluster.link.oversubscription = oversubscription;
  cluster.link.nodes_per_switch = 4;
  if (UsesServers(strategy)) {
    plan.servers = 8;
    plan.server.colocated = true;
    plan.server.sharding = Sharding::kEven;
  }
  const auto buckets = std::make_shared<const std::vector<Bucket>>(
      MakeBuckets(network, BucketCap(plan, network.gradient_bytes)));
  ClusterParameters<double> parameters = PriorCluster();
  parameters.si[kLinkBandwidth] = 10e9 / 8;
  parameters.si[kServerRate] = 1e12;
  parameters.node_link_si = own * 1e9 / 8;
  return EvaluateStep(MakeStepFacts(cluster, plan, network, buckets), parameters, PriorWorkload());
}

// Uplinks carry what they did when one of the hosts below them has a slow port: it waits for the
// slower of the two.
TEST(Oversubscription, IsNoWorseForOneSlowPort) {
  for (const Strategy strategy : {Strategy::kRing, Strategy::kHalvingDoubling, Strategy::kTree}) {
    const double c = strategy == Strategy::kHalvingDoubling ? 1 + 11 / 7.0 : 3;  // at o = 12
    const StepTime<double> healthy = SlowPortStep(strategy, 10, 12);
    EXPECT_EQ(SlowPortStep(strategy, 10 / (c - 0.5), 12).total(), healthy.total())
        << "the core takes longer";
    EXPECT_NEAR(SlowPortStep(strategy, 10 / c, 12).total() / healthy.total(), 1, 1e-12);
    const StepTime<double> held = SlowPortStep(strategy, 10 / (c + 0.5), 12);
    EXPECT_GT(held.total(), healthy.total());
    EXPECT_EQ(held.total(), SlowPortStep(strategy, 10 / (c + 0.5), 1).total())
        << "the port takes longer";
    EXPECT_EQ(SlowPortStep(strategy, 0.1, 12).limiter, Limiter::kLink);
    // Where nobody states what the links carry, nobody knows the uplinks but by them.
    EXPECT_GT(SlowPortStep(strategy, 5, 12, false).total(),
              SlowPortStep(strategy, 5, 12).total() * 1.2);
    // A faster link than most is planned with faster uplinks.
    EXPECT_LT(SlowPortStep(strategy, 20, 12).total(), healthy.total());
  }
  // Servers on the nodes have the links of most, behind which workers wait less.
  const StepTime<double> healthy = SlowPortStep(Strategy::kPsSync, 10, 12);
  EXPECT_EQ(SlowPortStep(Strategy::kPsSync, 5, 12).total(), healthy.total());
  EXPECT_GT(SlowPortStep(Strategy::kPsSync, 0.5, 12).total(), healthy.total());
}

TEST(Oversubscription, NeedsTheNodesOnASwitch) {
  const Workload network = *FindWorkload("resnet50");
  Plan plan = OnNodes(8, Strategy::kRing, 10);
  plan.link.oversubscription = 4;
  try {
    PriorStep(plan, network);
    FAIL() << "a core of switches of unknown size";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "nodes-per-switch: is required with oversubscription; allowed: the nodes on a "
                 "switch, like 16");
  }
  plan.link.oversubscription = 1;
  EXPECT_GT(PriorStep(plan, network).total().si(), 0);
}

}  // namespace
}  // namespace stepcast
