// What TCP delivers: the numbers of the literature by hand, and the promises of the header.
#include "model/network/transport.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/model/support.h"

namespace stepcast {
namespace {

double Delivered(double bandwidth, double rtt, double loss, double flows = 1) {
  return DeliveredBandwidth(Path<double>{BytesPerSecond(bandwidth), Seconds(rtt), loss}, flows)
      .si();
}

constexpr double kGigabit = 125e6;

// 1 Gbit/s, 10 ms, 1 %: sqrt(3 / (2 x 2 x 0.01)) = sqrt(75) = 8.660254 segments of 1448 bytes a
// round trip are 1.254 MB/s, of which 1 % is sent twice.
TEST(Transport, MathisByHand) {
  EXPECT_NEAR(Delivered(kGigabit, 0.010, 0.01), 1448 * 8.660254037844386 / 0.010 * 0.99, 1e-3);
  EXPECT_NEAR(Delivered(kGigabit, 0.010, 0.01), 1.2414652e6, 1e2);
  // A tenth of the round trip, ten times the rate; a hundredth of the loss too.
  EXPECT_NEAR(Delivered(kGigabit, 0.001, 0.01), 1.2414652e7, 1e3);
  EXPECT_NEAR(Delivered(kGigabit, 0.010, 0.0001), 1.2540048e7 * 0.9999, 1e3);
}

TEST(Transport, FlowsAddUpToTheLine) {
  EXPECT_DOUBLE_EQ(Delivered(kGigabit, 0.010, 0.01, 7), 7 * Delivered(kGigabit, 0.010, 0.01));
  EXPECT_DOUBLE_EQ(Delivered(kGigabit, 0.010, 0.01, 1000), kGigabit * 0.99);
}

// 2.9 MB in flight: 29 MB/s over 100 ms; a gigabit is filled up to 23.2 ms.
TEST(Transport, WindowLimit) {
  EXPECT_DOUBLE_EQ(Delivered(kGigabit, 0.100, 0), 29e6);
  EXPECT_DOUBLE_EQ(Delivered(kGigabit, 0.100, 0, 3), 87e6);
  EXPECT_EQ(Delivered(kGigabit, 0.0231, 0), kGigabit);
  EXPECT_LT(Delivered(kGigabit, 0.0233, 0), kGigabit);
}

// At 1e-7 of loss a flow would keep 5.6 MB in flight; the window, and not the loss, decides.
TEST(Transport, TheLesserOfWindowAndLossDecides) {
  EXPECT_DOUBLE_EQ(Delivered(1e12, 0.010, 1e-7), 2.9e8 * (1 - 1e-7));
  EXPECT_LT(Delivered(1e12, 0.010, 1e-6), 2.9e8);
}

TEST(Transport, AShortRoundTripLeavesTheLine) {
  EXPECT_EQ(Delivered(kGigabit, 1e-5, 0), kGigabit);
  EXPECT_EQ(Delivered(kGigabit, 0, 0), kGigabit);
  EXPECT_EQ(Delivered(kGigabit, 0, 0.01), kGigabit * 0.99);
}

// No loss is the absence of the loss limit, bit for bit, and its limit from above.
TEST(Transport, NoLossIsNoLossLimit) {
  for (const double rtt : {0.0, 1e-5, 1e-3, 0.1}) {
    Path<double> silent;  // says nothing of loss
    silent.bandwidth = BytesPerSecond(kGigabit);
    silent.rtt = Seconds(rtt);
    EXPECT_EQ(DeliveredBandwidth(silent, 2).si(), Delivered(kGigabit, rtt, 0.0, 2));
    EXPECT_NEAR(Delivered(kGigabit, rtt, std::numeric_limits<double>::min(), 2),
                Delivered(kGigabit, rtt, 0.0, 2), 0);
  }
}

struct Conditions {
  double bandwidth = *LogUniform(1e5, 1e12);
  double rtt = *LogUniform(1e-6, 1);
  double loss = *LogUniform(1e-9, 0.5);
  double flows = *Whole(1, 64);
};

RC_GTEST_PROP(TransportProperty, NeverAboveTheLineNorBelowNothing, ()) {
  const Conditions c;
  const double rate = Delivered(c.bandwidth, c.rtt, c.loss, c.flows);
  RC_ASSERT(rate > 0);
  RC_ASSERT(rate <= c.bandwidth * (1 - c.loss));
  RC_ASSERT(rate <= c.flows * 2.9e6 / c.rtt);
}

RC_GTEST_PROP(TransportProperty, MonotoneInEverything, ()) {
  const Conditions c;
  const double factor = *LogUniform(1, 100);
  const double rate = Delivered(c.bandwidth, c.rtt, c.loss, c.flows);
  RC_ASSERT(Delivered(c.bandwidth * factor, c.rtt, c.loss, c.flows) >= rate);
  RC_ASSERT(Delivered(c.bandwidth, c.rtt * factor, c.loss, c.flows) <= rate);
  RC_ASSERT(Delivered(c.bandwidth, c.rtt, std::min(0.99, c.loss * factor), c.flows) <= rate);
  RC_ASSERT(Delivered(c.bandwidth, c.rtt, c.loss, c.flows + 1) >= rate);
  RC_ASSERT(Delivered(c.bandwidth, c.rtt, 0, c.flows) >= rate);
  RC_ASSERT(Delivered(c.bandwidth, 0, c.loss, c.flows) >= rate);
}

}  // namespace
}  // namespace stepcast
