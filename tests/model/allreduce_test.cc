// All-reduce times against numbers worked out by hand, their limits, and the algorithms themselves.
#include "model/exchange/allreduce.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "data/record/collective_call.h"
#include "model/exchange/broadcast.h"
#include "model/exchange/byteps.h"
#include "model/exchange/choice.h"
#include "model/exchange/segments.h"
#include "tests/model/message_level.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

// 50 us and 10 Gbit/s; 100 MB pass once in 80 ms.
const Hop<double> kHop{Microseconds(50.0), GigabitsPerSecond(10.0)};
const Hop<double> kFastHop{Microseconds(5.0), GigabytesPerSecond(10.0)};
const DataSize<> kMessage = Megabytes(100.0);

double Milli(const SyncCost<double>& cost) { return cost.Time(kMessage).in(kMilliseconds); }

// ---- Known answers.

TEST(Allreduce, RingByHand) {
  EXPECT_NEAR(Milli(RingAllreduce(2, kHop)), 2 * 0.05 + 80.0, 1e-9);
  EXPECT_NEAR(Milli(RingAllreduce(4, kHop)), 6 * 0.05 + 120.0, 1e-9);
  EXPECT_NEAR(Milli(RingAllreduce(16, kHop)), 30 * 0.05 + 150.0, 1e-9);
}

TEST(Allreduce, HalvingDoublingByHand) {
  EXPECT_NEAR(Milli(HalvingDoublingAllreduce(2, kHop)), 2 * 0.05 + 80.0, 1e-9);
  EXPECT_NEAR(Milli(HalvingDoublingAllreduce(4, kHop)), 4 * 0.05 + 120.0, 1e-9);
  EXPECT_NEAR(Milli(HalvingDoublingAllreduce(16, kHop)), 8 * 0.05 + 150.0, 1e-9);
  // Six are four, and two that hand over before and get back after.
  EXPECT_NEAR(Milli(HalvingDoublingAllreduce(6, kHop)), 6 * 0.05 + 120.0 + 160.0, 1e-9);
}

TEST(Allreduce, TreeByHand) {
  EXPECT_NEAR(Milli(TreeAllreduce(2, kHop)), 2 * 0.05 + 80.0, 1e-9);
  EXPECT_NEAR(Milli(TreeAllreduce(3, kHop)), 4 * 0.05 + 120.0, 1e-9);
  EXPECT_NEAR(Milli(TreeAllreduce(8, kHop)), 6 * 0.05 + 160.0, 1e-9);
  EXPECT_NEAR(Milli(TreeAllreduce(9, kHop)), 8 * 0.05 + 160.0, 1e-9);
}

// Within: 6 x 5 us and 1.5 x 10 ms. Between 2 nodes: 2 x 50 us and 80 ms.
TEST(Allreduce, HierarchicalByHand) {
  EXPECT_NEAR(Milli(HierarchicalAllreduce(2, 4, kHop, kFastHop)), 0.03 + 15.0 + 0.1 + 80.0, 1e-9);
}

// ---- Limits.

TEST(Allreduce, OneWorkerCostsExactlyNothing) {
  for (const SyncCost<double>& cost :
       {RingAllreduce(1, kHop), HalvingDoublingAllreduce(1, kHop), TreeAllreduce(1, kHop),
        HierarchicalAllreduce(1, 1, kHop, kFastHop)}) {
    EXPECT_EQ(cost.per_call.si(), 0);
    EXPECT_EQ(cost.per_byte.si(), 0);
    EXPECT_EQ(cost.Time(kMessage).si(), 0);
  }
}

TEST(Allreduce, WithoutBytesOnlyLatencyIsLeft) {
  const Hop<double> wide{kHop.alpha, BytesPerSecond(1e30)};
  EXPECT_NEAR(Milli(RingAllreduce(8, wide)), 14 * 0.05, 1e-12);
  EXPECT_NEAR(Milli(HalvingDoublingAllreduce(8, wide)), 6 * 0.05, 1e-12);
  EXPECT_NEAR(Milli(TreeAllreduce(8, wide)), 6 * 0.05, 1e-12);
  EXPECT_EQ(RingAllreduce(8, kHop).Time(DataSize<>()), RingAllreduce(8, kHop).per_call);
}

TEST(Allreduce, WithoutLatencyOnlyBytesAreLeft) {
  const Hop<double> instant{Duration<>(), kHop.bandwidth};
  EXPECT_EQ(RingAllreduce(8, instant).per_call.si(), 0);
  EXPECT_NEAR(Milli(RingAllreduce(8, instant)), 140.0, 1e-9);
  EXPECT_NEAR(Milli(HalvingDoublingAllreduce(8, instant)), 140.0, 1e-9);
  EXPECT_NEAR(Milli(TreeAllreduce(8, instant)), 160.0, 1e-9);
}

TEST(Allreduce, HierarchicalIsTheRingWhereThereIsOneLevel) {
  for (int w = 1; w <= 64; ++w) {
    const SyncCost<double> flat = HierarchicalAllreduce(w, 1, kHop, kFastHop);
    EXPECT_EQ(flat.per_call, RingAllreduce(w, kHop).per_call);
    EXPECT_EQ(flat.per_byte, RingAllreduce(w, kHop).per_byte);
    const SyncCost<double> within = HierarchicalAllreduce(1, w, kHop, kFastHop);
    EXPECT_EQ(within.per_call, RingAllreduce(w, kFastHop).per_call);
    EXPECT_EQ(within.per_byte, RingAllreduce(w, kFastHop).per_byte);
  }
}

// Where theory says that algorithms agree, they do: two workers exchange the message, whatever it
// is called; powers of two move the ring's bytes in fewer messages.
TEST(Allreduce, AlgorithmsAgreeWhereTheoryDoes) {
  EXPECT_DOUBLE_EQ(Milli(HalvingDoublingAllreduce(2, kHop)), Milli(RingAllreduce(2, kHop)));
  EXPECT_DOUBLE_EQ(Milli(TreeAllreduce(2, kHop)), Milli(RingAllreduce(2, kHop)));
  for (int w = 2; w <= 64; w *= 2) {
    EXPECT_EQ(HalvingDoublingAllreduce(w, kHop).per_byte, RingAllreduce(w, kHop).per_byte);
  }
}

TEST(Allreduce, NoTermOfRingTreeOrHierarchicalFallsWithWorkers) {
  for (int w = 1; w < 256; ++w) {
    EXPECT_LE(RingAllreduce(w, kHop).per_call, RingAllreduce(w + 1, kHop).per_call);
    EXPECT_LE(RingAllreduce(w, kHop).per_byte, RingAllreduce(w + 1, kHop).per_byte);
    EXPECT_LE(TreeAllreduce(w, kHop).per_call, TreeAllreduce(w + 1, kHop).per_call);
    EXPECT_LE(TreeAllreduce(w, kHop).per_byte, TreeAllreduce(w + 1, kHop).per_byte);
    for (int g = 1; g <= 8; ++g) {
      const SyncCost<double> here = HierarchicalAllreduce(w, g, kHop, kFastHop);
      for (const SyncCost<double>& more : {HierarchicalAllreduce(w + 1, g, kHop, kFastHop),
                                           HierarchicalAllreduce(w, g + 1, kHop, kFastHop)}) {
        EXPECT_LE(here.per_call, more.per_call);
        EXPECT_LE(here.per_byte, more.per_byte);
      }
    }
  }
}

// Halving-doubling is the exception: 15 workers pay for the 7 beyond 8, 16 do not.
TEST(Allreduce, HalvingDoublingPaysForWhatIsBeyondAPowerOfTwo) {
  EXPECT_GT(HalvingDoublingAllreduce(15, kHop).per_byte,
            HalvingDoublingAllreduce(16, kHop).per_byte);
  for (int w = 1; w < 256; ++w) {
    EXPECT_LE(HalvingDoublingAllreduce(w, kHop).per_call,
              HalvingDoublingAllreduce(w + 1, kHop).per_call);
  }
}

// No algorithm moves fewer bytes than the ring (Patarasuk & Yuan prove it optimal).
TEST(Allreduce, TheRingMovesFewestBytes) {
  for (int w = 2; w <= 256; ++w) {
    EXPECT_GE(HalvingDoublingAllreduce(w, kHop).per_byte, RingAllreduce(w, kHop).per_byte) << w;
    EXPECT_GE(TreeAllreduce(w, kHop).per_byte.si(),
              RingAllreduce(w, kHop).per_byte.si() * (1 - 1e-12))
        << w;
  }
}

// ---- The algorithms, run: as many latencies as rounds; and bytes one round after another, or,
// where the rounds of a tree are pipelined, those of the busiest worker.

void ExpectRun(const MessageNetwork& network, std::size_t bytes, const SyncCost<double>& cost,
               const std::string& where) {
  const double passes = static_cast<double>(bytes) / static_cast<double>(network.length());
  EXPECT_DOUBLE_EQ(cost.per_call.si(), network.rounds() * kHop.alpha.si()) << where;
  EXPECT_DOUBLE_EQ(cost.per_byte.si(), passes / kHop.bandwidth.si()) << where;
}

TEST(AllreduceOfTheAlgorithm, RoundsAndBytesMakeTheTime) {
  for (int w = 1; w <= 64; ++w) {
    const std::string workers = std::to_string(w);
    const MessageNetwork ring = RunRingAllreduce(w);
    ExpectRun(ring, ring.serial_bytes(), RingAllreduce(w, kHop), "ring of " + workers);
    const MessageNetwork halving = RunHalvingDoubling(w);
    ExpectRun(halving, halving.serial_bytes(), HalvingDoublingAllreduce(w, kHop),
              "halving-doubling of " + workers);
    const MessageNetwork tree = RunDoubleTree(w);
    ExpectRun(tree, tree.most_sent(), TreeAllreduce(w, kHop), "tree of " + workers);
  }
}

RC_GTEST_PROP(AllreduceProperty, TimesAreAffineInTheMessage, ()) {
  const int w = *Whole(2, 300);
  const Hop<double> hop{Seconds(*LogUniform(1e-7, 1e-2)), BytesPerSecond(*LogUniform(1e5, 1e12))};
  const double bytes = *LogUniform(1, 1e10);
  for (const SyncCost<double>& cost :
       {RingAllreduce(w, hop), HalvingDoublingAllreduce(w, hop), TreeAllreduce(w, hop)}) {
    const double whole = cost.Time(Bytes(2 * bytes)).si();
    const double halves = 2 * cost.Time(Bytes(bytes)).si() - cost.per_call.si();
    RC_ASSERT(Near(whole, halves));
    RC_ASSERT(cost.per_call.si() > 0);
    RC_ASSERT(cost.per_byte.si() > 0);
  }
}

// ---- Workers on nodes.

// 4 cards carry what one carried; 4 more have no device.
TEST(AllreduceOverNodes, CardsShareTheBytesBetweenNodes) {
  EXPECT_NEAR(Milli(HierarchicalAllreduce(2, 4, kHop, kFastHop, 4)), 0.03 + 15.0 + 0.1 + 20.0,
              1e-9);
  EXPECT_EQ(HierarchicalAllreduce(2, 4, kHop, kFastHop, 8).per_byte,
            HierarchicalAllreduce(2, 4, kHop, kFastHop, 4).per_byte);
  EXPECT_NEAR(Milli(HalvingDoublingOverNodes(4, 4, kHop, kFastHop, 2)),
              0.03 + 15.0 + 4 * 0.05 + 60.0, 1e-9);
  // A chain of 4 in each node, a tree over 4 nodes: 160 ms between, at most 20 within.
  EXPECT_NEAR(Milli(TreeOverNodes(4, 4, kHop, kFastHop)), 6 * 0.005 + 4 * 0.05 + 160.0, 1e-9);
  EXPECT_NEAR(Milli(FlatRingAllreduce({8, 2, 4, 1}, kHop, kFastHop)), 4 * 0.05 + 10 * 0.005 + 140.0,
              1e-9);
}

TEST(AllreduceOverNodes, OneLevelIsThePlainAlgorithm) {
  for (int w = 1; w <= 40; ++w) {
    for (const bool nodes : {false, true}) {
      const NodeShape shape{w, nodes ? w : 1, nodes ? 1 : w, 2};
      const Hop<double>& hop = nodes ? kHop : kFastHop;
      for (const auto& [algorithm, plain] :
           {std::pair{Strategy::kRing, RingAllreduce(w, hop)},
            {Strategy::kHierarchical, RingAllreduce(w, hop)},
            {Strategy::kTree, TreeAllreduce(w, hop)},
            {Strategy::kHalvingDoubling, HalvingDoublingAllreduce(w, hop)}}) {
        const SyncCost<double> cost = AllreduceCost(algorithm, shape, kHop, kFastHop);
        EXPECT_EQ(cost.per_call, plain.per_call) << StrategyName(algorithm) << " of " << w;
        EXPECT_EQ(cost.per_byte, plain.per_byte) << StrategyName(algorithm) << " of " << w;
      }
    }
  }
}

TEST(AllreduceOverNodes, NoTermFallsWithNodesOrDevices) {
  for (int n = 1; n < 64; ++n) {
    for (int g = 1; g <= 8; ++g) {
      for (const Strategy algorithm : {Strategy::kRing, Strategy::kHierarchical}) {
        const auto cost = [&](int nodes, int devices) {
          return AllreduceCost(algorithm, {nodes * devices, nodes, devices, 1}, kHop, kFastHop);
        };
        for (const SyncCost<double>& more : {cost(n + 1, g), cost(n, g + 1)}) {
          EXPECT_LE(cost(n, g).per_call, more.per_call) << n << " x " << g;
          EXPECT_LE(cost(n, g).per_byte, more.per_byte) << n << " x " << g;
        }
      }
    }
  }
}

// The ring without barriers, run in time. Latency alone: exactly the longest walk. Equal rates:
// exactly latency and bytes. A slow hop between nodes: between the larger of the two and their sum.
TEST(AllreduceOverNodes, FlatRingWaitsForTheLongestWalk) {
  for (int nodes = 2; nodes <= 9; ++nodes) {
    for (int g = 1; g <= 8; ++g) {
      const NodeShape shape{nodes * g, nodes, g, 1};
      const auto w = static_cast<std::size_t>(shape.workers);
      const double piece = kMessage.si() / shape.workers;
      const auto run = [&](const Hop<double>& inter, const Hop<double>& intra) {
        std::vector<TimedHop> hops(w);
        for (std::size_t i = 0; i < w; ++i) {
          const bool leaves = (i + 1) % static_cast<std::size_t>(g) == 0;
          const Hop<double>& hop = leaves ? inter : intra;
          hops[i] = {hop.alpha.si(), piece / hop.bandwidth.si()};
        }
        return RunTimedRing(hops);
      };
      const std::string where = std::to_string(nodes) + " x " + std::to_string(g);
      const SyncCost<double> cost = FlatRingAllreduce(shape, kHop, kFastHop);
      const DataRate<> boundless = BytesPerSecond(1e30);
      EXPECT_NEAR(run({kHop.alpha, boundless}, {kFastHop.alpha, boundless}), cost.per_call.si(),
                  1e-12)
          << where;
      EXPECT_NEAR(run(kHop, {kFastHop.alpha, kHop.bandwidth}), cost.Time(kMessage).si(), 1e-12)
          << where;
      const double real = run(kHop, kFastHop);
      EXPECT_LE(real, cost.Time(kMessage).si() * (1 + 1e-12)) << where;
      EXPECT_GE(real, cost.per_byte.si() * kMessage.si() * (1 - 1e-12)) << where;
      EXPECT_GE(real, cost.per_call.si()) << where;
    }
  }
}

// ---- Helpers.

TEST(BytePs, RingWithoutHelpersAndServersWithMany) {
  for (int n = 2; n <= 64; ++n) {
    EXPECT_NEAR(BytePsAllreduce(n, 0, kHop, kHop.bandwidth).per_byte.si(),
                RingAllreduce(n, kHop).per_byte.si(), 1e-24);
    for (const int k : {n, n + 1, 1'000'000}) {
      EXPECT_NEAR(BytePsAllreduce(n, k, kHop, kHop.bandwidth).per_byte.si(),
                  1 / kHop.bandwidth.si(), 1e-24);
    }
  }
}

// 4 machines, 2 helpers: 2 x 4 x 3 / (16 + 8 - 4) = 1.2 passes. Helpers at half the rate are one:
// 24 / 18 passes.
TEST(BytePs, ByHand) {
  EXPECT_NEAR(Milli(BytePsAllreduce(4, 2, kHop, kHop.bandwidth)), 0.1 + 1.2 * 80, 1e-9);
  EXPECT_NEAR(Milli(BytePsAllreduce(4, 2, kHop, kHop.bandwidth * 0.5)), 0.1 + 80 * 4 / 3., 1e-9);
  EXPECT_NEAR(Milli(BytePsOverNodes(4, 4, 2, kHop, kHop.bandwidth, kFastHop)), 0.03 + 15 + 0.1 + 96,
              1e-9);
  EXPECT_EQ(Milli(BytePsOverNodes(1, 1, 3, kHop, kHop.bandwidth, kFastHop)), 0);
  EXPECT_EQ(BytePsAllreduce(2, 5, kHop, kHop.bandwidth).per_byte, 1 / kHop.bandwidth);
}

TEST(BytePs, HelpersNeverHurtAndTheSharesAreTheRunOnes) {
  for (int n = 2; n <= 16; ++n) {
    for (int k = 0; k <= n; ++k) {
      const MessageNetwork network = RunBytePs(n, k);
      EXPECT_TRUE(network.EveryWorkerHasTheSum()) << n << " + " << k;
      const double passes =
          static_cast<double>(network.most_sent()) / static_cast<double>(network.length());
      EXPECT_NEAR(BytePsAllreduce(n, k, kHop, kHop.bandwidth).per_byte.si() * kHop.bandwidth.si(),
                  passes, 1e-12);
      for (int helper = n; helper < n + k; ++helper) {
        EXPECT_LE(network.sent(helper), network.most_sent());
      }
      EXPECT_LE(BytePsAllreduce(n, k + 1, kHop, kHop.bandwidth).per_byte.si(),
                BytePsAllreduce(n, k, kHop, kHop.bandwidth).per_byte.si() * (1 + 1e-12));
    }
  }
}

// ---- To and from one.

TEST(Broadcast, ByHand) {
  EXPECT_NEAR(Milli(BinomialBroadcast(8, kHop)), 3 * (0.05 + 80), 1e-9);
  EXPECT_NEAR(Milli(BinomialAllreduce(5, kHop)), 6 * (0.05 + 80), 1e-9);
  EXPECT_NEAR(Milli(ChainBroadcast(8, kHop)), 7 * 0.05 + 80, 1e-9);
  const DataRate<> free = BytesPerSecond(1e30);
  EXPECT_NEAR(Milli(ConcurrentBinomialBroadcast(4, kHop, free)), 2 * 0.05 + 3 * 80, 1e-6);
  EXPECT_NEAR(Milli(ConcurrentBinomialBroadcast(8, kHop, free)), 3 * 0.05 + 6 * 80, 1e-6);
  EXPECT_NEAR(Milli(GatheringReduce(4, kHop, kHop.bandwidth * 2.0)), 4 * 0.05 + 60 + 30, 1e-9);
  for (const SyncCost<double>& cost :
       {BinomialBroadcast(1, kHop), BinomialAllreduce(1, kHop), ChainBroadcast(1, kHop),
        ConcurrentBinomialBroadcast(1, kHop, free), GatheringReduce(1, kHop, free)}) {
    EXPECT_EQ(cost.Time(kMessage).si(), 0);
  }
}

TEST(Broadcast, TransfersStartedTogetherEndAsTheTreeSays) {
  const DataRate<> free = BytesPerSecond(1e30);
  for (int w = 1; w <= 300; ++w) {
    const BroadcastEnd end = RunConcurrentBroadcast(w);
    const SyncCost<double> cost = ConcurrentBinomialBroadcast(w, kHop, free);
    EXPECT_NEAR(cost.per_byte.si() * kHop.bandwidth.si(), end.passes, 1e-9) << w;
    EXPECT_LE(cost.per_call.si(), end.hops * kHop.alpha.si() * (1 + 1e-12)) << w;
  }
}

// ---- Segments on request.

TEST(Segments, LimitsOfTheRate) {
  const DataRate<> line = GigabitsPerSecond(1.0);
  for (int w = 2; w <= 4; ++w) {
    // Nothing to wait for: the line. A long way: two segments a round trip.
    EXPECT_NEAR(SegmentedBandwidth(w, line, Duration<>(), DataSize<>(Mebibytes(1.0))) / line, 1,
                1e-3);
    const Duration<> far = Seconds(10.0);
    EXPECT_NEAR(SegmentedBandwidth(w, line, far, DataSize<>(Mebibytes(1.0))) * far /
                    DataSize<>(Mebibytes(2.0)),
                1, 2e-3);
  }
  // 1 MB at 125 MB/s takes 8 ms: 8 + 20/2 between two; (8 + 20)/2, hardly rounded, among more.
  EXPECT_NEAR(
      (DataSize<>(Megabytes(1.0)) /
       SegmentedBandwidth(2, line, Duration<>(Milliseconds(20.0)), DataSize<>(Megabytes(1.0))))
          .in(kMilliseconds),
      18, 1e-9);
  EXPECT_NEAR(
      (DataSize<>(Megabytes(1.0)) /
       SegmentedBandwidth(4, line, Duration<>(Milliseconds(20.0)), DataSize<>(Megabytes(1.0))))
          .in(kMilliseconds),
      14 * std::pow(1 + std::pow(8.0 / 14, 8), 0.125), 1e-9);
}

// 4 MiB at 125 MB/s and 20 ms. Between two, four segments of 1 MiB, each with half a round trip,
// and nothing besides. Among four, segments of half a MiB, one and a half times all eight, two of
// them a round trip, hardly rounded, and two round trips for all.
TEST(Segments, RingByHand) {
  const DataRate<> line = GigabitsPerSecond(1.0);
  const Duration<> round_trip = Milliseconds(20.0);
  const DataSize<> message = Mebibytes(4.0);
  const double mebibyte_ms = 1048576 / 125e3;
  EXPECT_NEAR(SegmentedRingAllreduce(2, line, round_trip, message).Time(message).in(kMilliseconds),
              4 * (mebibyte_ms + 10), 1e-9);
  const SyncCost<double> four = SegmentedRingAllreduce(4, line, round_trip, message);
  EXPECT_NEAR(four.per_call.in(kMilliseconds), 40, 1e-9);
  const double pair = (mebibyte_ms / 2 + 20) / 2;
  EXPECT_NEAR((four.per_byte * message).in(kMilliseconds),
              1.5 * 8 * pair * std::pow(1 + std::pow(mebibyte_ms / 2 / pair, 8), 0.125), 1e-9);
  EXPECT_EQ(SegmentedRingAllreduce(1, line, round_trip, message).Time(message).si(), 0);
}

RC_GTEST_PROP(SegmentsProperty, MoreRateOrLessWaitingNeverHurts, ()) {
  const int w = *Whole(2, 9);
  const DataRate<> line = BytesPerSecond(*LogUniform(1e5, 1e11));
  const Duration<> wait = Seconds(*LogUniform(1e-6, 1));
  const DataSize<> segment = Bytes(*LogUniform(1e3, 1e8));
  const double more = *LogUniform(1, 100);
  const DataRate<> rate = SegmentedBandwidth(w, line, wait, segment);
  RC_ASSERT(rate <= line);
  RC_ASSERT(SegmentedBandwidth(w, line * more, wait, segment).si() >= rate.si() * (1 - 1e-12));
  RC_ASSERT(SegmentedBandwidth(w, line, wait * more, segment).si() <= rate.si() * (1 + 1e-12));
  RC_ASSERT(SegmentedBandwidth(w, line, wait, segment * more).si() >= rate.si() * (1 - 1e-12));
}

// ---- Efficiency, reduction.

// 30 x 50 us and 1.875 x 0.8 ns/B: half the rate at 1 MB.
TEST(SyncCostTest, EfficiencyCurve) {
  const SyncCost<double> ring = RingAllreduce(16, kHop);
  EXPECT_NEAR(Efficiency(ring, Megabytes(1.0)), 0.5, 1e-12);
  EXPECT_NEAR(Efficiency(ring, Megabytes(9.0)), 0.9, 1e-12);
  // At its best a ring's bus bandwidth is the link's.
  const double factor = BusFactor(CollectiveCall::kAllReduce, 16).value();
  EXPECT_NEAR(factor * AlgorithmBandwidth(ring, Gigabytes(1e6)) / kHop.bandwidth, 1, 1e-6);
  EXPECT_NEAR(AlgorithmBandwidth(ring, Megabytes(1.0)).in(kGigabytesPerSecond), 1 / 3., 1e-9);
}

// 4 workers add up three quarters of 100 MB at 0.1 ns/B: 7.5 ms.
TEST(SyncCostTest, ReductionAddsUpWhatArrives) {
  const auto reduce = DurationPerByte<double>::FromSi(1e-10);
  EXPECT_NEAR(Milli(WithReduction(RingAllreduce(4, kHop), 4, reduce)),
              Milli(RingAllreduce(4, kHop)) + 7.5, 1e-9);
  EXPECT_EQ(Milli(WithReduction(RingAllreduce(1, kHop), 1, reduce)), 0);
}

// ---- Pipelines.

// Two calls of which each takes the same time as the other, for messages of all sizes.
void ExpectSame(const CallCost<double>& a, const CallCost<double>& b) {
  for (double bytes = 1; bytes < 1e11; bytes *= 10) {
    RC_ASSERT(Near(a.Time(Bytes(bytes)).si(), b.Time(Bytes(bytes)).si()));
  }
}

// With one device a node, or with one node, every algorithm is the one among as many workers, and
// one that is rings on two levels is the ring.
RC_GTEST_PROP(PipelinedProperty, OneLevelIsTheAlgorithmOfOneLevel, ()) {
  const int workers = *Whole(1, 80);
  const int cards = *Whole(1, 8);
  const Hop<double> inter{Seconds(*LogUniform(1e-7, 1e-2)), BytesPerSecond(*LogUniform(1e6, 1e11))};
  const Hop<double> intra{Seconds(*LogUniform(1e-7, 1e-3)), BytesPerSecond(*LogUniform(1e8, 1e12))};
  const NodeShape apart{workers, workers, 1, cards};
  const NodeShape together{workers, 1, workers, cards};
  const auto call = [&](Strategy algorithm, const NodeShape& shape, bool swapped = false) {
    return swapped ? PipelinedAllreduce(algorithm, shape, intra, inter)
                   : PipelinedAllreduce(algorithm, shape, inter, intra);
  };
  for (const Strategy algorithm :
       {Strategy::kRing, Strategy::kTree, Strategy::kHalvingDoubling, Strategy::kHierarchical}) {
    ExpectSame(call(algorithm, apart), call(algorithm, together, true));
  }
  ExpectSame(call(Strategy::kHierarchical, apart), call(Strategy::kRing, apart));
  ExpectSame(call(Strategy::kHierarchical, together), call(Strategy::kRing, together));
  ExpectSame(PipelinedBytePs(1, workers, 3, inter, inter.bandwidth, intra, cards),
             call(Strategy::kRing, together));
}

// Levels follow each other, and a pipeline takes no longer than rounds, nor less than bytes.
RC_GTEST_PROP(PipelinedProperty, LevelsFollowEachOther, ()) {
  const NodeShape shape{0, *Whole(2, 40), *Whole(2, 9), *Whole(1, 9)};
  const Hop<double> inter{Seconds(*LogUniform(1e-7, 1e-2)), BytesPerSecond(*LogUniform(1e6, 1e11))};
  const Hop<double> intra{Seconds(*LogUniform(1e-7, 1e-3)), BytesPerSecond(*LogUniform(1e8, 1e12))};
  const DataSize<> message = Bytes(*LogUniform(1, 1e11));
  const auto of = [&](const NodeShape& s) {
    return PipelinedAllreduce(Strategy::kHierarchical, s, inter, intra);
  };
  const Duration<> time = of(shape).Time(message);
  const Duration<> within = of({shape.devices, 1, shape.devices, 1}).Time(message);
  NodeShape cards = {shape.nodes, shape.nodes, 1, 1};
  const Duration<> between = of(cards).Time(message / static_cast<double>(shape.used_cards()));
  RC_ASSERT(Near(time.si(), (within + between).si()));
  const SyncCost<double> rounds =
      HierarchicalAllreduce(shape.nodes, shape.devices, inter, intra, shape.cards);
  RC_ASSERT(time <= rounds.Time(message) * (1 + 1e-12));
  RC_ASSERT(time >= rounds.per_byte * message);
}

// ---- The choice.

TEST(Choice, ChangesWhereTwoTie) {
  const NodeShape shape{9, 9, 1, 1};
  // A piece once around a ring of 9: 0.8 ms and 8/9 passes; a tree: 0.4 ms and 2 passes. They tie
  // at 0.45 MB; with bytes at the ring's pace (0.2 ms, 16/9 passes) the tree never leads.
  const SyncCost<double> ring = RingAllreduce(9, kHop);
  const std::optional<DataSize<>> tie =
      TieMessage(PipelineRing(ring, kHop.alpha).chain, TreeAllreduce(9, kHop));
  ASSERT_TRUE(tie.has_value());
  EXPECT_NEAR(tie->in(kMegabytes), 0.45, 1e-9);
  const auto expect = [&](double times, Strategy best, const std::string& reason) {
    const DataSize<> message = *tie * times;
    const auto choice = ChooseAllreduce(shape, kHop, kFastHop, message);
    EXPECT_EQ(choice.best.algorithm, best) << times;
    const std::string why = WhyChosen(choice, message);
    EXPECT_NE(why.find(": " + reason + "."), std::string::npos) << times << ": " << why;
  };
  expect(1.5, Strategy::kRing, "it costs less for each byte, which decides above 0.45 MB");
  expect(0.5, Strategy::kTree, "it costs less for each call, which decides below 0.45 MB");
  expect(1.01, Strategy::kRing, "the two differ by less than 1 %");
  expect(0.99, Strategy::kTree, "the two differ by less than 1 %");
  // Where the ring takes its other cost, and far from the tie, it is not named.
  expect(3, Strategy::kRing, "for messages like this it costs no more for a call and for a byte");
  const SyncCost<double> tree = TreeAllreduce(9, kHop);
  const AllreduceChoice<double> far{
      {Strategy::kTree, {tree, tree}},
      AllreduceCandidate<double>{Strategy::kRing, PipelineRing(ring, kHop.alpha)}};
  const std::string why = WhyChosen(far, *tie * 0.05);
  EXPECT_NE(why.find(": it costs less for each call."), std::string::npos) << why;
}

TEST(Choice, DominatedAlgorithmsHaveNoTie) {
  EXPECT_FALSE(TieMessage(HalvingDoublingAllreduce(8, kHop), RingAllreduce(8, kHop)).has_value());
}

TEST(Choice, OneWorkerHasNothingToExchange) {
  const auto choice = ChooseAllreduce<double>({}, kHop, kFastHop, kMessage);
  EXPECT_EQ(choice.best.cost.Time(kMessage).si(), 0);
  EXPECT_FALSE(choice.next.has_value());
  EXPECT_EQ(WhyChosen(choice, kMessage), "One worker has nothing to exchange.");
}

RC_GTEST_PROP(ChoiceProperty, NothingIsFasterAndLargerMessagesNeverCheaper, ()) {
  const int nodes = *Whole(1, 40);
  const int devices = *Whole(1, 9);
  const NodeShape shape{nodes * devices, nodes, devices, *Whole(1, 9)};
  const Hop<double> inter{Seconds(*LogUniform(1e-7, 1e-2)), BytesPerSecond(*LogUniform(1e6, 1e11))};
  const Hop<double> intra{Seconds(*LogUniform(1e-7, 1e-3)), BytesPerSecond(*LogUniform(1e8, 1e12))};
  const DataSize<> message = Bytes(*LogUniform(1, 1e10));
  const auto choice = ChooseAllreduce(shape, inter, intra, message);
  for (const auto& other : AllreduceCandidates(shape, inter, intra)) {
    RC_ASSERT(choice.best.cost.Time(message) <= other.cost.Time(message));
    if (choice.next && other.algorithm != choice.best.algorithm) {
      RC_ASSERT(choice.next->cost.Time(message) <= other.cost.Time(message));
    }
  }
  const DataSize<> larger = message * 3.0;
  const auto then = ChooseAllreduce(shape, inter, intra, larger);
  RC_ASSERT(choice.best.cost.Time(message) <= then.best.cost.Time(larger));
  const std::string why = WhyChosen(choice, message);
  RC_ASSERT(why.back() == '.');
  RC_ASSERT(why.find('\n') == std::string::npos);
  // The tie that the sentence names is one, and nothing changes between it and the message.
  const std::size_t decides = why.find("which decides ");
  if (decides != std::string::npos) {
    const std::string where = why.substr(decides + std::string("which decides above ").size());
    const DataSize<> tie = Megabytes(std::stod(where));
    const double gap = choice.next->cost.Time(tie) / choice.best.cost.Time(tie);
    RC_ASSERT(std::abs(gap - 1) < 0.01);  // the sentence has three figures
    for (const double part : {0.1, 0.5, 0.9}) {
      const DataSize<> between = message * (1 - part) + tie * part;
      RC_ASSERT(choice.best.cost.Time(between) <= choice.next->cost.Time(between) * (1 + 1e-3));
    }
  }
}

}  // namespace
}  // namespace stepcast
