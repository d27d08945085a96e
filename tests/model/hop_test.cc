// A hop between nodes: what holds of any, and what each limit leaves when the others are gone.
#include "model/network/hop.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

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
  return {peers, static_cast<double>(*Whole(0, 16)), *LogUniform(1, 4)};
}

RC_GTEST_PROP(Path, IsNoFasterThanAnyOfItsLimits, ()) {
  const Path<double> path = AnyPath();
  const FlowShape shape = AnyShape();
  const DataRate<> flow = BytesPerSecond(*LogUniform(1e6, 1e11));
  const double rate = DeliverTo(path, shape, flow).bandwidth.si();
  const double least = 1 - 1e-12;
  RC_ASSERT(rate * least <= path.bandwidth.si());
  RC_ASSERT(rate * least <= flow.si() * shape.peers);
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
  const PathRate<double> rate = DeliverTo(path, shape, BytesPerSecond(1e9), {}, &terms);
  RC_ASSERT(terms.rate.si() == rate.bandwidth.si());
  RC_ASSERT(terms.peers == shape.peers);
  RC_ASSERT(terms.connections == shape.connections);
  RC_ASSERT((terms.limits.window.si() > 0) == (shape.connections > 0));
}

TEST(Path, NamesWhatLimitsIt) {
  Path<double> path;
  path.bandwidth = BytesPerSecond(kGigabit);
  const auto limiter = [&](const FlowShape& shape, double flow) {
    return DeliverTo(path, shape, BytesPerSecond(flow)).limiter;
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
  const DataRate<> flow = BytesPerSecond(1e15);
  EXPECT_NEAR(DeliverTo(path, {1, 1, kNoPipeline}, flow).bandwidth.si(), 5e7, 1);
  EXPECT_NEAR(DeliverTo(path, {2, 1, kSegmentKnee}, flow).bandwidth.si(), 1e8 / std::sqrt(2.0), 1);
}

RC_GTEST_PROP(Hop, IsNoFasterThanPathOrHost, ()) {
  const DataRate<> path = BytesPerSecond(*LogUniform(1e6, 1e11));
  const DataRate<> host = BytesPerSecond(*LogUniform(1e6, 1e12));
  const Crowding<double> crowding{*LogUniform(1e-4, 2), static_cast<double>(*Whole(1, 16)),
                                  *LogUniform(1e-4, 1), *LogUniform(1, 10)};
  const double hop = HopRate(path, host, crowding).si();
  RC_ASSERT(hop <= path.si());
  RC_ASSERT(hop <= host.si());
  RC_ASSERT(
      Near(HopRate(path, host, Crowding<double>{}).si(), 1 / (1 / path.si() + 1 / host.si())));
}

TEST(Hop, CrowdingCountsFurtherDevicesAndDoublings) {
  const DataRate<> rate = GigabytesPerSecond(2.0);
  EXPECT_NEAR(HopRate(rate, rate, Crowding<double>{0.5, 1, 0.25, 0}).si(), 1e9, 1);
  EXPECT_NEAR(HopRate(rate, rate, Crowding<double>{0.5, 3, 0.25, 4}).si(), 1e9 / 4, 1);
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
