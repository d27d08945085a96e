// A hop between nodes: what holds of any, and what each limit leaves when the others are gone.
#include "model/network/hop.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/statistics/order_statistics.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

constexpr double kGigabit = 1e9 / 8;

Path<double> AnyPath() {
  Path<double> path;
  path.bandwidth = BytesPerSecond(*LogUniform(1e6, 1e11));
  path.rtt = Seconds(*LogUniform(1e-5, 0.1));
  path.loss = *LogUniform(1e-6, 0.05);
  path.window = Bytes(*LogUniform(1e4, 1e8));
  return path;
}

FlowShape AnyShape() {
  const auto peers = static_cast<double>(*Whole(1, 16));
  const int nodes = *Whole(1, 64);
  return {peers, static_cast<double>(*Whole(0, 16)), *LogUniform(1, 4), false,
          nodes, ExpectedNormalRank(nodes, nodes)};
}

RC_GTEST_PROP(Path, IsNoFasterThanAnyOfItsLimits, ()) {
  const Path<double> path = AnyPath();
  const FlowShape shape = AnyShape();
  const Flows<double> each{BytesPerSecond(*LogUniform(1e6, 1e11)), *LogUniform(1e-4, 2)};
  const double rate = DeliverTo(path, shape, each).bandwidth.si();
  const double least = 1 - 1e-12;
  RC_ASSERT(rate * least <= path.bandwidth.si());
  RC_ASSERT(rate * least * (1 + each.spread * shape.slowest) <= each.bandwidth.si() * shape.peers);
  const FlowLimits<double> one = LimitsOfFlow(path);
  if (shape.connections > 0) {
    RC_ASSERT(rate * one.window.si() * least <= shape.connections);
    RC_ASSERT(rate * one.loss.si() * least <= shape.connections);
  }
}

RC_GTEST_PROP(Path, TermsAreWhatItWasJoinedFrom, ()) {
  const Path<double> path = AnyPath();
  const FlowShape shape = AnyShape();
  PathTerms<double> terms;
  const PathRate<double> rate = DeliverTo(path, shape, {BytesPerSecond(1e9)}, {}, &terms);
  RC_ASSERT(terms.rate.si() == rate.bandwidth.si());
  RC_ASSERT(terms.shape.peers == shape.peers);
  RC_ASSERT(terms.shape.connections == shape.connections);
  RC_ASSERT((terms.limits.window.si() > 0) == (shape.connections > 0));
}

TEST(Path, NamesWhatLimitsIt) {
  Path<double> path;
  path.bandwidth = BytesPerSecond(kGigabit);
  const auto limiter = [&](const FlowShape& shape, double flow) {
    return DeliverTo(path, shape, {BytesPerSecond(flow)}).limiter;
  };
  EXPECT_EQ(limiter({2, 1, kSegmentKnee}, 1e12), Limiter::kLink);
  EXPECT_EQ(limiter({2, 1, kSegmentKnee}, 1e6), Limiter::kFlow);
  path.rtt = Seconds(1.0);
  EXPECT_EQ(limiter({2, 1, kSegmentKnee}, 1e12), Limiter::kWindow);
  EXPECT_EQ(limiter({2, 0, kSegmentKnee}, 1e12), Limiter::kLink) << "each connection for itself";
  path.loss = 0.05;
  EXPECT_EQ(limiter({2, 1, kSegmentKnee}, 1e12), Limiter::kLoss);
}

// Two nodes have one path and nothing to pipeline with.
TEST(Path, RoundTripsAddBetweenTwoNodes) {
  Path<double> path;
  path.bandwidth = BytesPerSecond(1e8);
  path.rtt = Milliseconds(29.0);  // 10 ns a byte in a window of 2.9 MB
  const Flows<double> flow{BytesPerSecond(1e15)};
  EXPECT_NEAR(DeliverTo(path, {1, 1, kNoPipeline}, flow).bandwidth.si(), 5e7, 1);
  EXPECT_NEAR(DeliverTo(path, {2, 1, kSegmentKnee}, flow).bandwidth.si(), 1e8 / std::sqrt(2.0), 1);
}

RC_GTEST_PROP(Hop, IsNoFasterThanPathOrHost, ()) {
  const DataRate<> path = BytesPerSecond(*LogUniform(1e6, 1e11));
  const DataRate<> host = BytesPerSecond(*LogUniform(1e6, 1e12));
  const double hop = HopRate(path, host).si();
  RC_ASSERT(hop <= path.si() * (1 + 1e-12));
  RC_ASSERT(hop <= host.si() * (1 + 1e-12));
  // In a pipeline the slower sets the pace: at most a fifth is lost, where both are alike.
  RC_ASSERT(hop >= std::min(path.si(), host.si()) * 0.84);
}

// The share of the path is what the hop gains by a faster one, and the host's is the rest.
RC_GTEST_PROP(Hop, SharesAreWhatIsGained, ()) {
  const DataRate<> path = BytesPerSecond(*LogUniform(1e6, 1e11));
  const DataRate<> host = path * *LogUniform(0.1, 10);
  const double share = PathShare(path, host);
  constexpr double kMore = 1 + 1e-6;
  const double before = HopRate(path, host).si();
  const double by_path = std::log(HopRate(path * kMore, host).si() / before) / std::log(kMore);
  const double by_host = std::log(HopRate(path, host * kMore).si() / before) / std::log(kMore);
  RC_ASSERT(std::abs(by_path - share) < 1e-5);
  RC_ASSERT(std::abs(by_host - (1 - share)) < 1e-5);
}

TEST(Hop, DevicesShareTheirHost) {
  const DataRate<> host = GigabytesPerSecond(2.0);
  EXPECT_NEAR(SharedHost(host, 0.5, 1).si(), 2e9, 1);
  EXPECT_NEAR(SharedHost(host, 0.5, 3).si(), 1e9, 1);
}

// What flows carry differs from hop to hop, what ports carry does not.
TEST(Path, OnlyFlowsGrowWithTheNodes) {
  Path<double> path;
  path.bandwidth = BytesPerSecond(kGigabit);
  const auto time = [&](double flow, int nodes) {
    const FlowShape ring{2, 1, kSegmentKnee, false, nodes, ExpectedNormalRank(nodes, nodes)};
    return 1 / DeliverTo(path, ring, {BytesPerSecond(flow), 0.5}).bandwidth.si();
  };
  EXPECT_NEAR(time(1e15, 64) / time(1e15, 2), 1, 1e-9);
  // Phi^-1 of 63.625/64.25 and of 1.625/2.25.
  EXPECT_NEAR(time(1e3, 64) / time(1e3, 2), (1 + 0.5 * 2.3367) / (1 + 0.5 * 0.5895), 1e-3);
}

// RDMA knows neither windows nor caps of flows, and goes back to what was lost, which is among what
// is sent again.
TEST(Path, RdmaBehindACoreRepeatsWhatIsOnItsWay) {
  Path<double> path;
  path.bandwidth = BytesPerSecond(kGigabit);
  path.transport = Transport::kRdma;
  path.rtt = Milliseconds(10.0);
  FlowShape ring{2, 1, kSegmentKnee};
  const auto time = [&](double loss, double core) {
    path.loss = loss;
    ring.core = {core, core > 1};
    return 1 / DeliverTo(path, ring, {BytesPerSecond(1.0)}).bandwidth.si();
  };
  // A core of an eighth has an eighth of the packets on their way: a loss costs the same.
  EXPECT_NEAR(time(0.001, 8) - time(0, 8), time(0.001, 1) - time(0, 1), 1e-3 * time(0, 1));
  EXPECT_DOUBLE_EQ(time(0, 8), 8 * time(0, 1));
}

// Other traffic takes of the node's link, and nothing of the uplinks.
TEST(Path, OtherTrafficStaysBelowItsSwitch) {
  Path<double> path;
  path.transport = Transport::kRdma;
  const auto time = [&](double left, double core) {
    path.left = left;
    path.bandwidth = BytesPerSecond(kGigabit * left);
    FlowShape ring{2, 1, kSegmentKnee};
    ring.core = {core, core > 1};
    const PathRate<double> rate = DeliverTo(path, ring, {BytesPerSecond(1.0)});
    EXPECT_EQ(rate.limiter, core * left > 1 ? Limiter::kCore : Limiter::kLink);
    return kGigabit / rate.bandwidth.si();
  };
  EXPECT_DOUBLE_EQ(time(1, 8), 8);
  EXPECT_DOUBLE_EQ(time(0.3, 8), 8);
  EXPECT_DOUBLE_EQ(time(0.3, 2), 1 / 0.3);
  EXPECT_DOUBLE_EQ(time(0.5, 1), 2);
}

TEST(Path, RdmaIsTheLine) {
  Path<double> path;
  path.bandwidth = BytesPerSecond(kGigabit);
  path.transport = Transport::kRdma;
  path.rtt = Milliseconds(10.0);
  const FlowShape ring{2, 1, kSegmentKnee};
  PathRate<double> rate = DeliverTo(path, ring, {BytesPerSecond(1.0)});
  EXPECT_DOUBLE_EQ(rate.bandwidth.si(), path.bandwidth.si());
  EXPECT_EQ(rate.limiter, Limiter::kLink);
  path.loss = 0.01;
  const double flight = path.bandwidth.si() * 0.01 / 1448;
  rate = DeliverTo(path, ring, {BytesPerSecond(1.0)});
  EXPECT_NEAR(rate.bandwidth.si() / path.bandwidth.si(), 1 / (1 + 0.01 * flight / 0.99), 1e-12);
  EXPECT_DOUBLE_EQ(GoBackShare(path), rate.bandwidth / path.bandwidth);
  EXPECT_EQ(rate.limiter, Limiter::kLoss);
  // Loss that leaves more than half of the line does not set the pace.
  path.loss = 1e-6;
  EXPECT_GT(GoBackShare(path), 0.5);
  EXPECT_EQ(DeliverTo(path, ring, {BytesPerSecond(1.0)}).limiter, Limiter::kLink);
}

TEST(Hop, LatencyIsTheHostsAndHalfTheRoundTrip) {
  EXPECT_DOUBLE_EQ(HopLatency(Microseconds(50.0), Milliseconds(1.0)).si(), 5.5e-4);
  EXPECT_DOUBLE_EQ(HopLatency(Microseconds(50.0), Duration<>()).si(), 5e-5);
}

RC_GTEST_PROP(Connection, IsItsWindowOrItsLoss, ()) {
  const Path<double> path = AnyPath();
  const FlowLimits<double> limits = LimitsOfFlow(path);
  const double time = ConnectionTime(limits, path.loss).si() * (1 - path.loss);
  RC_ASSERT(Near(time, std::max(limits.window.si(), limits.loss.si())));
}

}  // namespace
}  // namespace stepcast
