// All-reduce times against numbers worked out by hand, their limits, and the algorithms themselves.
#include "model/collective/allreduce.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <string>

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

}  // namespace
}  // namespace stepcast
