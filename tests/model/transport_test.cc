// What TCP delivers: numbers of the literature by hand, simulated windows, and the promises of the
// headers.
#include "model/network/transport.h"

#include <ceres/jet.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "model/network/incast.h"
#include "model/network/slow_start.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

constexpr double kGigabit = 125e6;

Path<double> MakePath(double bandwidth, double rtt, double loss,
                      CongestionControl congestion = CongestionControl::kCubic) {
  Path<double> path;
  path.bandwidth = BytesPerSecond(bandwidth);
  path.rtt = Seconds(rtt);
  path.loss = loss;
  path.congestion = congestion;
  return path;
}

double Delivered(double bandwidth, double rtt, double loss, double flows = 1) {
  return Deliver(MakePath(bandwidth, rtt, loss), flows).si();
}

// 1 % of loss: sqrt(2/3 x 0.01) = 0.0816497 of a round trip a segment, 1448 x 12.247 bytes a round
// trip.
TEST(Congestion, MathisByHand) {
  const Duration<> each = RenoSegmentTime(Milliseconds(10.0), 0.01);
  EXPECT_NEAR(each.si(), 0.816496580927726e-3, 1e-15);
  EXPECT_NEAR((Bytes(kSegmentBytes) / each).in(kMegabitsPerSecond), 14.1875, 1e-3);
  // Acknowledgements of every second packet cost a root of two.
  EXPECT_DOUBLE_EQ(RenoSegmentTime(Milliseconds(10.0), 0.01, 2).si(), each.si() * std::sqrt(2.0));
}

// p = 0.03, b = 2: sqrt(4 x 0.03 / 3) = 0.2 and 3 sqrt(3 x 0.03 / 4) = 0.45.
TEST(Congestion, PftkByHand) {
  const Duration<> each = PftkSegmentTime(Milliseconds(100.0), 0.03, Milliseconds(200.0), 2);
  EXPECT_NEAR(each.si(), 0.1 * 0.2 + 0.2 * 0.45 * 0.03 * (1 + 32 * 0.0009), 1e-15);
  // Without a timer's cost it is Mathis.
  EXPECT_EQ(PftkSegmentTime(Milliseconds(100.0), 0.03, Duration<>(), 2).si(),
            RenoSegmentTime(Milliseconds(100.0), 0.03, 2).si());
}

// The two paces of CUBIC meet where W = sqrt(3/(2p)) = (1.2333 (R/p)^3)^(1/4), which is
// p = (1.2333 / 2.25) R^3 = 0.5481 R^3 = R^3 / 1.824 s^3.
TEST(Congestion, CubicHasARenoRegion) {
  for (const double rtt : {0.001, 0.01, 0.1}) {
    const double meet = rtt * rtt * rtt * (0.4 * 3.7 / 1.2) / 2.25;
    const auto ratio = [&](double p) {
      return AvoidanceSegmentTime(Seconds(rtt), p, CongestionControl::kReno) /
             AvoidanceSegmentTime(Seconds(rtt), p, CongestionControl::kCubic);
    };
    EXPECT_EQ(ratio(meet * 1.01), 1);
    EXPECT_EQ(ratio(0.01), 1);
    EXPECT_GT(ratio(meet * 0.5), 1.1);
    EXPECT_NEAR(ratio(meet / 16), std::pow(16.0, 0.25), 1e-9);
  }
}

// Recovery with selective acknowledgements costs a round trip a loss, and a timer only where what
// was sent again is lost: 10 ms, 1 %: 0.8165 + 0.1 + 0.02 ms.
TEST(Congestion, SackByHand) {
  const Duration<> each = SackSegmentTime(Milliseconds(10.0), 0.01, Duration<>(),
                                          Milliseconds(200.0), CongestionControl::kReno);
  EXPECT_NEAR(each.in(kMilliseconds), 0.816496580927726 + 0.1 + 0.02, 1e-12);
}

TEST(Congestion, BurstsAreOneLossEach) {
  const Duration<> rtt = Milliseconds(10.0);
  EXPECT_EQ(LossEventRate(0.01, rtt, Duration<>()), 0.01);
  // A burst never holds more than 64 KiB, and never less than one packet.
  EXPECT_DOUBLE_EQ(LossEventRate(0.01, Duration<>(), kOffloadBurst), 0.01 * 1448 / 65536);
  EXPECT_NEAR(LossEventRate(0.01, Seconds(1000.0), kOffloadBurst), 0.01, 1e-6);
  // Between: p_e (1 + tau / s) = p with s = K R sqrt(p_e).
  for (const double p : {1e-4, 1e-3, 1e-2, 0.1}) {
    const double events = LossEventRate(p, rtt, kOffloadBurst);
    const double segments = 1 + kOffloadBurst / RenoSegmentTime(rtt, events);
    if (segments < 65536.0 / 1448) {
      EXPECT_NEAR(events * segments, p, 1e-12);
    }
  }
}

// One packet needs 1 / (1-p) rounds; the larger of two 2/(1-p) - 1/(1-p^2).
TEST(Congestion, WindowRoundsByHand) {
  for (const double p : {1e-6, 0.01, 0.1, 0.5}) {
    EXPECT_NEAR(WindowRounds(p, 1.0), 1 / (1 - p), 1e-12);
    EXPECT_NEAR(WindowRounds(p, 2.0), 2 / (1 - p) - 1 / (1 - p * p), 1e-12);
  }
  EXPECT_EQ(WindowRounds(0.0, 1e6), 1.0);
  // A thousand packets at 1 %: surely one is lost, seldom one twice: 1 + 1 + (1 - 0.9999^1000).
  EXPECT_NEAR(WindowRounds(0.01, 1000.0), 2 + 0.0952 + 0.001, 1e-4);
}

// ---- The window as it moves: grows by alpha segments a round trip, falls to a share beta at
// losses that come at random. The rest is formulas; this is what they approximate.

struct Sawtooth {
  double alpha;
  double beta;
};
constexpr Sawtooth kRenoWindow{1, 0.5};
constexpr Sawtooth kCubicWindow{3 * (1 - kCubicDecrease) / (1 + kCubicDecrease), kCubicDecrease};

// Times of blocks of `block` segments, in round trips; a segment takes 1/W, at least `line`.
std::vector<double> SimulateBlocks(const Sawtooth& window, double loss, double line, double block,
                                   int blocks) {
  std::mt19937_64 random(7);
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  // W^2 grows by 2 alpha a segment.
  const double full = 1 / (line * line);
  const auto time = [&](double from, double to) {
    const double bend = std::clamp(full, from, to);
    return (std::sqrt(bend) - std::sqrt(from)) / window.alpha +
           line * (to - bend) / (2 * window.alpha);
  };
  std::vector<double> times;
  double square = 1.5 / loss;
  double left = -std::log(uniform()) / loss;
  for (int i = -10; i < blocks; ++i) {
    double sum = 0;
    double remaining = block;
    while (remaining > 0) {
      const double now = std::min(left, remaining);
      const double next = square + 2 * window.alpha * now;
      sum += time(square, next);
      square = next;
      remaining -= now;
      left -= now;
      if (left <= 0) {
        square *= window.beta * window.beta;
        left = -std::log(uniform()) / loss;
      }
    }
    if (i >= 0) times.push_back(sum);
  }
  return times;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

double Spread(const std::vector<double>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double v : values) sum += (v - mean) * (v - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

TEST(SimulatedWindow, MathisHoldsWithinATenth) {
  for (const Sawtooth& window : {kRenoWindow, kCubicWindow}) {
    for (const double p : {1e-4, 1e-3}) {
      const double each = Mean(SimulateBlocks(window, p, 1e-9, 100 / p, 1000)) / (100 / p);
      EXPECT_NEAR(each / RenoSegmentTime(Seconds(1.0), p).si(), 0.95, 0.05);
    }
  }
}

// The relative spread of a message's time, against 1 / (2 sqrt(1 + N p)).
TEST(SimulatedWindow, SpreadOfAMessage) {
  const double p = 1e-3;
  for (const double losses : {0.1, 1.0, 10.0, 100.0}) {
    const double formula = 0.5 / std::sqrt(1 + losses);
    const std::vector<double> reno = SimulateBlocks(kRenoWindow, p, 1e-9, losses / p, 20000);
    EXPECT_NEAR(Spread(reno) / Mean(reno) / formula, 1, 0.15) << losses;
    const std::vector<double> cubic = SimulateBlocks(kCubicWindow, p, 1e-9, losses / p, 20000);
    const double ratio = Spread(cubic) / Mean(cubic) / formula;
    EXPECT_GT(ratio, 0.6) << losses;
    EXPECT_LT(ratio, 1.1) << losses;
  }
}

// Where line and loss allow the same, the mix of both takes 2^(1/4) = 1.19 of either; simulated
// 1.16 and 1.12.
TEST(SimulatedWindow, TheCornerIsRound) {
  const double p = 1e-3;
  for (const Sawtooth& window : {kRenoWindow, kCubicWindow}) {
    const double free = Mean(SimulateBlocks(window, p, 1e-9, 100 / p, 1000)) / (100 / p);
    for (const double ratio : {0.3, 0.7, 1.0, 1.5, 3.0}) {
      const double both =
          Mean(SimulateBlocks(window, p, free * ratio, 100 / p, 1000)) / (100 / p) / free;
      const double formula = std::pow(1 + std::pow(ratio, 4.0), 0.25);
      EXPECT_NEAR(both / formula, 0.97, 0.04) << ratio;
    }
  }
}

// ---- Delivery.

TEST(Transport, LossAloneByHand) {
  // 0.9365 ms a segment (SackByHand) with a line and a window out of the way.
  const double each = 0.936496580927726e-3;
  EXPECT_NEAR(Delivered(1e12, 0.010, 0.01), 1448 / each * 0.99, 1);
  // Seven flows carry seven times as much, a thousand the line.
  EXPECT_NEAR(Delivered(1e12, 0.010, 0.01, 7), 7 * 1448 / each * 0.99, 10);
  EXPECT_NEAR(Delivered(kGigabit, 0.010, 0.01, 1000), kGigabit * 0.99, 1e-3 * kGigabit);
}

// 2.9 MB in flight: 29 MB/s over 100 ms; a line of just that rate costs the fourth root of two.
TEST(Transport, WindowLimit) {
  EXPECT_NEAR(Delivered(1e12, 0.100, 0), 29e6, 1);
  EXPECT_NEAR(Delivered(1e12, 0.100, 0, 3), 87e6, 1);
  EXPECT_NEAR(Delivered(29e6, 0.100, 0), 29e6 / std::pow(2.0, 0.25), 1);
}

TEST(Transport, BbrLosesWhatItSendsAgain) {
  for (const double p : {0.001, 0.01, 0.1, 0.2}) {
    const Path<double> path = MakePath(kGigabit, 0.001, p, CongestionControl::kBbr);
    EXPECT_NEAR(Deliver(path, 1).si(), kGigabit * (1 - p), 1e-3 * kGigabit);
    EXPECT_EQ(BarrierAmplification(path, Barrier<double>{Megabytes(1.0), 8}), 1);
  }
}

TEST(Transport, AShortRoundTripLeavesTheLine) {
  EXPECT_NEAR(Delivered(kGigabit, 1e-5, 0), kGigabit, 1e-9 * kGigabit);
  EXPECT_EQ(Delivered(kGigabit, 0, 0), kGigabit);
  // The timers alone: 0.0001 x 200 ms a segment.
  EXPECT_NEAR(Delivered(1e12, 0, 0.01), 1448 / 20e-6 * 0.99, 1);
}

TEST(Transport, WireBytes) {
  EXPECT_DOUBLE_EQ(stepcast::WireBytes(Megabytes(99.0), 0.01).in(kMegabytes), 100);
  EXPECT_EQ(stepcast::WireBytes(Megabytes(99.0), 0.0).in(kMegabytes), 99);
}

// No loss is the absence of every loss term, bit for bit, and the limit of little loss.
TEST(Transport, NoLossIsNoLossLimit) {
  for (const double rtt : {0.0, 1e-5, 1e-3, 0.1}) {
    Path<double> silent;  // says nothing of loss
    silent.bandwidth = BytesPerSecond(kGigabit);
    silent.rtt = Seconds(rtt);
    const double lossless = Deliver(silent, 2).si();
    const Barrier<double> barrier{Megabytes(1.0), 64};
    Path<double> stated = MakePath(kGigabit, rtt, 0.0, CongestionControl::kBbr);
    stated.timeout = Seconds(3.0);
    stated.burst = kOffloadBurst;
    EXPECT_EQ(Deliver(stated, 2, barrier).si(), lossless);
    EXPECT_EQ(BarrierAmplification(stated, barrier), 1);
    EXPECT_NEAR(Deliver(MakePath(kGigabit, rtt, 1e-15), 2, barrier).si(), lossless,
                1e-6 * lossless);
  }
}

// ---- Barriers.

TEST(BarrierWait, NoneForOneFlow) {
  const Path<double> path = MakePath(kGigabit, 0.01, 0.01);
  EXPECT_EQ(BarrierAmplification(path, Barrier<double>{Megabytes(1.0), 1}), 1);
  EXPECT_EQ(BarrierAmplification(path, Barrier<double>{}), 1);
}

// 8 flows, 400 segments, 6 %: z = 1.4342, s / (2 sqrt(25)) = 2 ms of t = 26 ms without timers.
TEST(BarrierWait, ByHand) {
  Path<double> path = MakePath(kGigabit, 0.1, 0.06);
  path.timeout = Duration<>();
  const double amplified =
      BarrierAmplification(path, Barrier<double>{Bytes(400 * kSegmentBytes), 8});
  EXPECT_NEAR(amplified, 1 + 1.4342002 * 0.002 / 0.026, 1e-7);
  const FlowLimits<double> barrier = LimitsOfFlow(path, {Bytes(400 * kSegmentBytes), 8});
  EXPECT_DOUBLE_EQ(barrier.loss.si(), LimitsOfFlow(path).loss.si() * amplified);
}

// The same with timers of a second, t = 29.6 ms: in a message of one segment each of the seven
// other flows may run into one, 7 x 0.06^2; in one of 400 segments 1.4342 x 0.06 / 20 of them do.
TEST(BarrierWait, TimersByHand) {
  constexpr double kNormal = 1.4342002;
  Path<double> path = MakePath(kGigabit, 0.1, 0.06);
  path.timeout = Seconds(1.0);
  const auto amplified = [&](double segments) {
    return BarrierAmplification(path, Barrier<double>{Bytes(segments * kSegmentBytes), 8});
  };
  const double one = std::hypot(kNormal * 0.01 / std::sqrt(1.06), 0.0252);
  EXPECT_NEAR(amplified(1), 1 + one / 0.0296, 1e-7);
  EXPECT_NEAR(amplified(400), 1 + kNormal * std::hypot(0.002, 0.003) / 0.0296, 1e-7);
}

// The slowest of w simulated messages, against the formula without recovery and timers.
TEST(BarrierWait, AgreesWithSimulatedWindows) {
  constexpr int kFlows = 8;
  const double p = 1e-3;
  for (const double losses : {3.0, 30.0}) {
    const std::vector<double> times =
        SimulateBlocks(kRenoWindow, p, 1e-9, losses / p, kFlows * 4000);
    double slowest = 0;
    for (std::size_t i = 0; i < times.size(); i += kFlows) {
      slowest += *std::max_element(times.begin() + static_cast<std::ptrdiff_t>(i),
                                   times.begin() + static_cast<std::ptrdiff_t>(i + kFlows));
    }
    const double simulated = slowest / (static_cast<double>(times.size()) / kFlows) / Mean(times);
    Path<double> path = MakePath(kGigabit, 1.0, p, CongestionControl::kReno);
    path.timeout = Duration<>();
    const double formula =
        BarrierAmplification(path, Barrier<double>{Bytes(losses / p * kSegmentBytes), kFlows});
    EXPECT_NEAR(formula / simulated, 1, 0.06) << losses;
  }
}

// ---- Slow start.

// 320 segments in flight at full rate: five doublings of ten, which carry 310 segments.
TEST(SlowStart, ByHand) {
  Path<double> path = MakePath(320 * kSegmentBytes / 0.1, 0.1, 0);
  path.window = Gigabytes(1e6);
  EXPECT_NEAR(SlowStartDelay(path, Gigabytes(1.0), 1).si(), 0.1 * (5 - 310.0 / 320), 1e-12);
  // 10 (2^3 - 1) segments wait twice, for what 10 + 20 segments leave of a round trip; ten do not.
  EXPECT_NEAR(SlowStartDelay(path, Bytes(70 * kSegmentBytes), 1).si(), 0.1 * (2 - 30.0 / 320),
              1e-12);
  EXPECT_EQ(SlowStartDelay(path, Bytes(10 * kSegmentBytes), 1).si(), 0);
  // Thirty-two flows fill the pipe with what they start with.
  EXPECT_EQ(SlowStartDelay(path, Gigabytes(1.0), 32).si(), 0);
  EXPECT_EQ(SlowStartDelay(MakePath(kGigabit, 0, 0), Gigabytes(1.0), 1).si(), 0);
}

// 2.5 timers of silence halve the window twice; half a timer not at all; many to ten segments.
TEST(SlowStart, SilenceHalvesTheWindow) {
  Path<double> path = MakePath(320 * kSegmentBytes / 0.1, 0.1, 0);
  path.window = Gigabytes(1e6);
  const auto after = [&](double idle) {
    return SlowStartDelay<double>(path, Gigabytes(1.0), 1, Seconds(idle)).si();
  };
  EXPECT_EQ(after(0.1), 0);
  EXPECT_NEAR(after(0.5), 0.1 * (2 - 0.75), 1e-12);
  EXPECT_EQ(after(100), SlowStartDelay(path, Gigabytes(1.0), 1).si());
}

// ---- Incast.

TEST(Incast, CollapsesBeyondFourSegmentsEach) {
  const DataSize<> queue = Mebibytes(0.0625);  // 64 KiB, 45.3 segments
  EXPECT_NEAR(IncastSenders(queue), 11.3, 0.02);
  EXPECT_EQ(IncastWait(queue, 7, kLeastTimeout).si(), 0);  // as measured
  EXPECT_EQ(IncastWait(queue, 12, kLeastTimeout).si(), 0.2);
}

// ---- What the headers promise, on random paths.

struct Conditions {
  Path<double> path;
  double flows = *Whole(1, 64);
  Barrier<double> barrier;

  Conditions() {
    path.bandwidth = BytesPerSecond(*LogUniform(1e5, 1e12));
    path.rtt = Seconds(*LogUniform(1e-6, 1));
    path.loss = *LogUniform(1e-9, 0.5);
    path.congestion = static_cast<CongestionControl>(*Whole(0, kCongestionControlCount - 1));
    path.window = Bytes(*LogUniform(1448, 1e9));
    path.timeout = Seconds(*LogUniform(1e-3, 5));
    path.burst = Seconds(*Whole(0, 1) * *LogUniform(1e-6, 1e-2));
    barrier.message = Bytes(*LogUniform(1, 1e10));
    barrier.flows = *Whole(1, 1000000);
  }
  double Rate() const { return Deliver(path, flows, barrier).si(); }
  double Time() const { return barrier.message.si() / Rate(); }
  double TimeFromIdle() const {
    return barrier.message.si() / Deliver(path, flows).si() +
           SlowStartDelay(path, barrier.message, flows).si();
  }
};

constexpr double kRounding = 1e-9;

RC_GTEST_PROP(TransportProperty, NeverAboveTheLineNorBelowNothing, ()) {
  const Conditions c;
  const double rate = c.Rate();
  RC_ASSERT(rate > 0);
  RC_ASSERT(rate <= c.path.bandwidth.si() * (1 - c.path.loss));
  RC_ASSERT(rate <= c.flows * c.path.window.si() / c.path.rtt.si() * (1 + kRounding));
  const double amplified = BarrierAmplification(c.path, c.barrier);
  RC_ASSERT(amplified >= 1);
  RC_ASSERT(std::isfinite(amplified));
}

RC_GTEST_PROP(TransportProperty, MonotoneInEverything, ()) {
  const Conditions c;
  const double factor = *LogUniform(1, 100);
  const auto better = [&](auto&& change) {
    Conditions changed = c;
    change(changed);
    RC_ASSERT(changed.Rate() >= c.Rate() * (1 - kRounding));
  };
  const auto worse = [&](auto&& change) {
    Conditions changed = c;
    change(changed);
    RC_ASSERT(changed.Rate() <= c.Rate() * (1 + kRounding));
  };
  better([&](Conditions& n) { n.path.bandwidth = n.path.bandwidth * factor; });
  better([&](Conditions& n) { n.path.window = n.path.window * factor; });
  better([&](Conditions& n) { n.path.burst = n.path.burst * factor; });
  better([&](Conditions& n) { n.flows += 1; });
  better([&](Conditions& n) { n.path.loss = 0; });
  better([&](Conditions& n) { n.path.rtt = Duration<>(); });
  worse([&](Conditions& n) { n.path.rtt = n.path.rtt * factor; });
  worse([&](Conditions& n) { n.path.loss = std::min(0.9, n.path.loss * factor); });
  worse([&](Conditions& n) { n.path.timeout = n.path.timeout * factor; });
  worse([&](Conditions& n) { n.barrier.flows += 1; });
}

RC_GTEST_PROP(TransportProperty, MoreBytesNeverTakeLess, ()) {
  const Conditions c;
  Conditions more = c;
  more.barrier.message = more.barrier.message * *LogUniform(1, 100);
  RC_ASSERT(more.Time() >= c.Time() * (1 - kRounding));
  RC_ASSERT(more.TimeFromIdle() >= c.TimeFromIdle() * (1 - kRounding));
}

RC_GTEST_PROP(TransportProperty, SlowStartKeepsTheTrends, ()) {
  const Conditions c;
  const double factor = *LogUniform(1, 100);
  RC_ASSERT(SlowStartDelay(c.path, c.barrier.message, c.flows).si() >= 0);
  Conditions changed = c;
  changed.path.bandwidth = changed.path.bandwidth * factor;
  RC_ASSERT(changed.TimeFromIdle() <= c.TimeFromIdle() * (1 + kRounding));
  changed = c;
  changed.path.rtt = changed.path.rtt * factor;
  RC_ASSERT(changed.TimeFromIdle() >= c.TimeFromIdle() * (1 - kRounding));
  changed = c;
  changed.path.loss = std::min(0.9, changed.path.loss * factor);
  RC_ASSERT(changed.TimeFromIdle() >= c.TimeFromIdle() * (1 - kRounding));
  // More silence, more lost.
  const Duration<> idle = Seconds(*LogUniform(1e-3, 100));
  const auto lost = [&](const Duration<>& silence) {
    return SlowStartDelay<double>(c.path, c.barrier.message, c.flows, silence).si();
  };
  RC_ASSERT(lost(idle * factor) >= lost(idle) - kRounding * c.TimeFromIdle());
}

// The derivatives that calibration uses are those of the function.
RC_GTEST_PROP(TransportProperty, DerivativesAreTheFunctions, ()) {
  using Jet = ceres::Jet<double, 4>;
  const Conditions c;
  Path<Jet> path;
  path.bandwidth = DataRate<Jet>::FromSi(Jet(c.path.bandwidth.si(), 0));
  path.rtt = Duration<Jet>::FromSi(Jet(c.path.rtt.si(), 1));
  path.loss = Jet(c.path.loss);
  path.congestion = c.path.congestion;
  path.window = DataSize<Jet>::FromSi(Jet(c.path.window.si(), 2));
  path.timeout = Duration<Jet>::FromSi(Jet(c.path.timeout.si(), 3));
  path.burst = c.path.burst;
  const Jet rate = Deliver(path, c.flows, Barrier<Jet>{c.barrier.message, c.barrier.flows}).si();
  RC_ASSERT(Near(rate.a, c.Rate(), 1e-12));
  const auto difference = [&](int which, double h) {
    const auto at = [&](double sign) {
      Conditions n = c;
      const double factor = std::exp(sign * h);
      if (which == 0) n.path.bandwidth = n.path.bandwidth * factor;
      if (which == 1) n.path.rtt = n.path.rtt * factor;
      if (which == 2) n.path.window = n.path.window * factor;
      if (which == 3) n.path.timeout = n.path.timeout * factor;
      return n.Rate();
    };
    return (at(1) - at(-1)) / (2 * h);
  };
  const double x[] = {c.path.bandwidth.si(), c.path.rtt.si(), c.path.window.si(),
                      c.path.timeout.si()};
  for (int i = 0; i < 4; ++i) {
    const double coarse = difference(i, 1e-4);
    const double fine = difference(i, 5e-5);
    if (std::abs(coarse - fine) > 1e-5 * rate.a) continue;  // a kink in between
    RC_ASSERT(std::abs(rate.v[i] * x[i] - fine) <= 1e-5 * rate.a);
  }
}

}  // namespace
}  // namespace stepcast
