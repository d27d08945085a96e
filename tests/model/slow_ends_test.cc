// Where a pace that no run has told is slow.
#include "model/step/slow_ends.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "data/record/calibration.h"
#include "data/workloads/catalog.h"
#include "model/step/parameter_specs.h"
#include "model/step/priors.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

// A rate is slow where it is small, the time of a sample and what grows with devices where they are
// large: each by 1.645 standard deviations of its prior, where that is wide.
TEST(SlowEnds, AreSmallRatesAndLargeTimes) {
  const Belief belief(Cluster(), *FindWorkload("resnet50"), std::nullopt, "t4");
  const Belief::AtHosts nowhere;
  std::map<int, double> moves;  // of ln(value), by column
  for (const SlowEnd& end : SlowEndsOf(belief, nowhere)) {
    const auto& [cluster, workload] = end.parameters;
    const auto column = static_cast<std::size_t>(end.column);
    if (end.column == kShareColumn) {  // of a rate that a plan states, and no value of the belief
      moves[end.column] = std::log(cluster.stated_share);
      continue;
    }
    const double si = end.column == kLinkColumn      ? cluster.node_link_si.value()
                      : end.column < kWorkloadColumn ? cluster.si.at(column)
                                                     : workload.si.at(column - kWorkloadColumn);
    moves[end.column] = std::log(si) - belief.log_value(nowhere.Position(end.column));
  }
  const auto sd = [](ClusterParameter of) { return kClusterParameterSpecs[of].prior_log_sd; };
  const std::map<int, double> expected = {
      {kLinkColumn, -sd(kLinkBandwidth)},
      {kShareColumn, -kStatedLinkLogSd},
      {kFlowBandwidth, -sd(kFlowBandwidth)},
      {kHostBandwidth, -sd(kHostBandwidth)},
      {kHostSharing, sd(kHostSharing)},
      {kServerRate, -sd(kServerRate)},
      {kWorkloadColumn + kFixedTime, kWorkloadParameterSpecs[kFixedTime].prior_log_sd},
      {kWorkloadColumn + kFloorTime, kWorkloadParameterSpecs[kFloorTime].prior_log_sd},
      {kWorkloadColumn + kSampleTime, kWorkloadParameterSpecs[kSampleTime].prior_log_sd}};
  ASSERT_EQ(moves.size(), expected.size());
  for (const auto& [column, sds] : expected) {
    EXPECT_NEAR(moves[column], 1.6448536 * sds, 1e-6) << column;
  }
}

// A data sheet tells what samples take. What no batch changes beside them is told by runs of the
// workload alone, on this device or another.
TEST(SlowEnds, OfTimesAreThoseThatNothingTells) {
  const auto columns = [](const Cluster& cluster, const std::string& workload,
                          const std::optional<Device>& facts) {
    std::set<int> found;
    for (const SlowEnd& end : SlowEndsOf({cluster, *FindWorkload(workload), facts, "t4"}, {})) {
      if (IsWorkloadColumn(end.column)) found.insert(end.column - kWorkloadColumn);
    }
    return found;
  };
  using Columns = std::set<int>;
  EXPECT_EQ(columns(Cluster(), "resnet50", std::nullopt),
            Columns({kFixedTime, kFloorTime, kSampleTime}));
  EXPECT_EQ(columns(Cluster(), "resnet50", T4()), Columns({kFixedTime, kFloorTime}));
  Cluster fitted;
  Calibration& calibration = fitted.calibration.emplace();
  for (const ParameterSpec& spec : kWorkloadParameterSpecs) {
    ParameterEstimate p;
    p.scope = "workload resnet50 on t4";
    p.name = spec.name;
    p.unit = spec.unit;
    p.value = p.prior_value = spec.prior;
    p.log_sd = p.prior_log_sd = 0.1;
    calibration.parameters.push_back(p);
  }
  calibration.log_covariance =
      0.01 * Eigen::MatrixXd::Identity(kWorkloadParameterCount, kWorkloadParameterCount);
  EXPECT_EQ(columns(fitted, "resnet50", T4()), Columns());
  EXPECT_EQ(columns(fitted, "vgg16", T4()), Columns({kFixedTime, kFloorTime}));
}

// The columns of a ring of four devices, or of servers, that have an end over this transport, after
// runs of several nodes that exchanged like these; none says nothing of how they did.
std::set<int> EndsAfter(const std::optional<std::set<CalibratedRange::Exchange>>& exchanges,
                        Strategy strategy, Transport transport) {
  Cluster cluster;
  Calibration& calibration = cluster.calibration.emplace();
  calibration.range.max_nodes = calibration.range.max_workers = 4;
  calibration.range.exchanges = exchanges;
  const Belief belief(cluster, *FindWorkload("resnet50"), T4(), "t4");
  StepFacts facts;
  facts.strategy = strategy;
  facts.workers = 4;
  facts.nodes = facts.devices_per_node = 2;
  facts.servers = UsesServers(strategy) ? 1 : 0;
  facts.link.transport = transport;
  facts.link.bandwidth = GigabitsPerSecond(10.0);
  std::set<int> ends;
  for (const SlowEnd& end : UntoldEndsOf(belief, {}, facts)) {
    if (!IsWorkloadColumn(end.column)) ends.insert(end.column);
  }
  return ends;
}

// Runs tell of what they used: links and flows of a transport over it, servers where there were
// some, a node's own rate however its devices exchanged.
TEST(SlowEnds, AreOfWhatNoRunUsed) {
  using Exchanges = std::set<CalibratedRange::Exchange>;
  using Ends = std::set<int>;
  constexpr Transport kTcp = Transport::kTcp;
  constexpr Transport kRdma = Transport::kRdma;
  for (const Transport over : {kTcp, kRdma}) {
    const Transport other = over == kTcp ? kRdma : kTcp;
    Ends of_transport = {kLinkColumn, kShareColumn};
    if (over == kTcp) of_transport.insert(kFlowBandwidth);
    Ends of_network = of_transport;
    of_network.insert(kHostSharing);
    const auto with = [](Ends ends, int column) {
      ends.insert(column);
      return ends;
    };
    const Exchanges none;
    const Exchanges within = {{Strategy::kRing, std::nullopt}};
    const Exchanges rings = {{Strategy::kRing, over}};
    const Exchanges elsewhere = {{Strategy::kTree, other}};
    const Exchanges servers = {{Strategy::kPsAsync, over}};
    EXPECT_EQ(EndsAfter(std::nullopt, Strategy::kRing, over), Ends());
    EXPECT_EQ(EndsAfter(std::nullopt, Strategy::kPsSync, over), Ends());
    EXPECT_EQ(EndsAfter(none, Strategy::kRing, over), with(of_network, kHostBandwidth));
    EXPECT_EQ(EndsAfter(within, Strategy::kRing, over), of_network);
    EXPECT_EQ(EndsAfter(rings, Strategy::kRing, over), Ends());
    EXPECT_EQ(EndsAfter(rings, Strategy::kPsSync, over), Ends{kServerRate});
    EXPECT_EQ(EndsAfter(elsewhere, Strategy::kRing, over), of_transport);
    EXPECT_EQ(EndsAfter(elsewhere, Strategy::kPsSync, over), with(of_transport, kServerRate));
    EXPECT_EQ(EndsAfter(servers, Strategy::kPsSync, over), Ends());
  }
}

// Behind the fastest link that runs had, flows, hosts and servers of any higher rate are hidden: to
// plans with a faster one their slow end is the prior's, but no slower than that link.
TEST(SlowEnds, AreNoSlowerThanTheLinksOfRuns) {
  constexpr double kPriors[] = {10, 3.8 * 8, 1.2 * 8};  // Gbit/s: flows, hosts, servers
  constexpr ClusterParameter kColumns[] = {kFlowBandwidth, kHostBandwidth, kServerRate};
  for (const double fastest : {1.0, 5.0, 9.8, 50.0}) {
    Cluster cluster;
    Calibration& calibration = cluster.calibration.emplace();
    calibration.range.max_nodes = calibration.range.max_workers = 4;
    calibration.range.bandwidth = {GigabitsPerSecond(0.1), GigabitsPerSecond(fastest)};
    const Belief belief(cluster, *FindWorkload("resnet50"), T4(), "t4");
    std::map<int, double> slow;  // Gbit/s
    for (const SlowEnd& end : SlowEndsOf(belief, {})) {
      if (IsWorkloadColumn(end.column)) continue;
      const double si = end.parameters.cluster.si.at(static_cast<std::size_t>(end.column));
      slow[end.column] = BytesPerSecond(si).in(kGigabitsPerSecond);
      StepFacts facts;
      EXPECT_FALSE(end.IsUntoldTo(facts)) << "the cluster's own link, which runs had";
      facts.link.bandwidth = GigabitsPerSecond(fastest);
      EXPECT_FALSE(end.IsUntoldTo(facts));
      facts.server_link.bandwidth = GigabitsPerSecond(fastest * 1.01);
      EXPECT_FALSE(end.IsUntoldTo(facts)) << "without servers";
      facts.servers = 2;
      EXPECT_TRUE(end.IsUntoldTo(facts));
      facts.servers = 0;
      facts.link.bandwidth = GigabitsPerSecond(fastest * 1.01);
      EXPECT_TRUE(end.IsUntoldTo(facts));
    }
    std::size_t ends = 0;
    for (std::size_t i = 0; i < std::size(kColumns); ++i) {
      if (kPriors[i] < fastest) continue;
      ++ends;
      const double sd = kClusterParameterSpecs[kColumns[i]].prior_log_sd;
      const double prior = kPriors[i] * std::exp(-1.6448536 * sd);
      EXPECT_NEAR(slow[kColumns[i]], std::max(prior, fastest), 1e-5 * fastest) << fastest;
    }
    EXPECT_EQ(slow.size(), ends) << fastest;
  }
}

}  // namespace
}  // namespace stepcast
