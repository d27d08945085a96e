#include "microbench/compute/cuda_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>

namespace stepcast {
namespace {

constexpr std::size_t kMebi = std::size_t{1} << 20;
constexpr std::size_t kGibi = std::size_t{1} << 30;

// ---- Memory.

TEST(CudaPlanTest, TensorsFollowOneAnotherAligned) {
  SetLayout layout;
  EXPECT_EQ(layout.Add(1, 4), 0U);
  EXPECT_EQ(layout.Add(64, 4), 1U);
  EXPECT_EQ(layout.Add(65, 4), 2U);
  EXPECT_EQ(layout.Add(0, 4), 3U);
  ASSERT_EQ(layout.tensors().size(), 4U);
  EXPECT_EQ(layout.tensors()[0].offset, 0U);
  EXPECT_EQ(layout.tensors()[1].offset, 256U);
  EXPECT_EQ(layout.tensors()[2].offset, 512U);
  EXPECT_EQ(layout.tensors()[2].bytes, 512U);
  EXPECT_EQ(layout.tensors()[3].offset, 1024U);
  EXPECT_EQ(layout.bytes(), 1280U);
}

RC_GTEST_PROP(CudaPlanTest, TensorsDoNotOverlapAndHoldTheirElements, ()) {
  SetLayout layout;
  const auto count = *rc::gen::inRange(1, 20);
  std::size_t end = 0;
  for (int i = 0; i < count; ++i) {
    const auto elements = *rc::gen::inRange<std::int64_t>(0, 1 << 20);
    const auto each = *rc::gen::element<std::size_t>(2, 4, 8);
    RC_ASSERT(layout.Add(elements, each) == static_cast<std::size_t>(i));
    const SetLayout::Tensor tensor = layout.tensors().back();
    RC_ASSERT(tensor.offset == end);
    RC_ASSERT(tensor.offset % kTensorAlignment == 0U);
    RC_ASSERT(tensor.bytes >= static_cast<std::size_t>(elements) * each);
    end = tensor.offset + tensor.bytes;
  }
  RC_ASSERT(layout.bytes() == end);
}

TEST(CudaPlanTest, WhatNoMemoryCouldHoldIsTooMuchAndDoesNotOverflow) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(Elements(std::int64_t{1} << 40, std::int64_t{1} << 40), kMost);
  EXPECT_EQ(Elements(kMost, 2, 3, 4), kMost);
  EXPECT_EQ(Elements(3, 4, 5, 6), 360);
  EXPECT_EQ(Elements(kMost, 0), 0);
  SetLayout layout;
  layout.Add(kMost, 4);
  layout.Add(kMost, 8);
  EXPECT_EQ(layout.bytes(), SetLayout::kMost);
}

TEST(CudaPlanTest, NeedsAreToldInGibibytes) {
  EXPECT_EQ(NeedsText(kGibi * 123 / 10, 8 * kGibi), "needs 12.3 GiB, 8.0 GiB are free");
}

TEST(CudaPlanTest, SetsFillTheCacheTwiceAndServeRepeatsWithinAQuarterOfTheMemory) {
  constexpr std::size_t kCache = 50 * kMebi;
  EXPECT_EQ(RotationSets(1024, kCache, 100 * kGibi), kMostSets);
  EXPECT_EQ(RotationSets(256 * kMebi, kCache, 100 * kGibi), 16);  // 4 GiB
  EXPECT_EQ(RotationSets(5 * kGibi, kCache, 100 * kGibi), 2);     // one would do, two are the least
  EXPECT_EQ(RotationSets(10 * kMebi, kCache, 160 * kMebi), 4);    // as many as a quarter holds
  EXPECT_EQ(RotationSets(30 * kGibi, kCache, 100 * kGibi), 1);
  // A cache of 10 GiB, filled twice by sets of one, and one more for the next turn.
  EXPECT_EQ(RotationSets(kGibi, 10 * kGibi, 1000 * kGibi), 21);
}

RC_GTEST_PROP(CudaPlanTest, SetsStayWithinAQuarterOrThereIsOne, ()) {
  const auto bytes = *rc::gen::inRange<std::size_t>(1, 40 * kGibi);
  const auto cache = *rc::gen::inRange<std::size_t>(0, 100 * kMebi);
  const auto free = *rc::gen::inRange<std::size_t>(0, 140 * kGibi);
  const int sets = RotationSets(bytes, cache, free);
  RC_ASSERT(sets >= 1);
  RC_ASSERT(sets <= kMostSets);
  RC_ASSERT(sets == 1 || static_cast<std::size_t>(sets) * bytes <= free / 4);
}

// ---- Repetition.

TEST(CudaPlanTest, OnlyShortPassesAreRepeated) {
  EXPECT_EQ(GraphRepeats(kShortSeconds, kMostSets), 1);
  EXPECT_EQ(GraphRepeats(1, kMostSets), 1);
  EXPECT_EQ(GraphRepeats(25e-6, kMostSets), 20);
  EXPECT_EQ(GraphRepeats(10e-6, kMostSets), 50);
  // Each set once: a second time it might be in the cache.
  EXPECT_EQ(GraphRepeats(5e-6, kMostSets), kMostSets);
  EXPECT_EQ(GraphRepeats(25e-6, 11), 11);
  EXPECT_EQ(GraphRepeats(2e-6, 1), 1);
  // Neither a clock that shows nothing nor one that shows nonsense asks for endless work.
  EXPECT_EQ(GraphRepeats(0, kMostSets), kMostSets);
  EXPECT_EQ(GraphRepeats(std::numeric_limits<double>::quiet_NaN(), kMostSets), 1);
}

// ---- Padding.

TEST(CudaPlanTest, SymmetricZerosStay) {
  EXPECT_EQ(SymmetricZeros(224, 3, 3, 7, 2), std::optional<std::int64_t>(3));
  EXPECT_EQ(SymmetricZeros(224, 0, 0, 2, 2), std::optional<std::int64_t>(0));
}

TEST(CudaPlanTest, ZerosOnOneSideBecomeSymmetricWhereTheOutputStaysAsLarge) {
  // "same" padding of a 3 x 3 window with step 2: zeros below and to the right.
  EXPECT_EQ(SymmetricZeros(224, 0, 1, 3, 2), std::optional<std::int64_t>(1));
  // A 7 x 7 window with step 2: 2 before, 3 after.
  EXPECT_EQ(SymmetricZeros(224, 2, 3, 7, 2), std::optional<std::int64_t>(3));
  // An incomplete last window of 3 with step 2 on 112: ceil mode.
  EXPECT_EQ(SymmetricZeros(112, 0, 1, 3, 2), std::optional<std::int64_t>(1));
  // A window of 2 with step 1 that keeps the length: 0 gives one place less, 1 one more.
  EXPECT_EQ(SymmetricZeros(28, 0, 1, 2, 1), std::nullopt);
}

RC_GTEST_PROP(CudaPlanTest, SymmetricZerosLeaveTheOutputAsLarge, ()) {
  const auto length = *rc::gen::inRange<std::int64_t>(1, 300);
  const auto before = *rc::gen::inRange<std::int64_t>(0, 6);
  const auto after = *rc::gen::inRange<std::int64_t>(0, 6);
  const auto window = *rc::gen::inRange<std::int64_t>(1, 12);
  const auto step = *rc::gen::inRange<std::int64_t>(1, 5);
  RC_PRE(length + before + after >= window);
  const auto zeros = SymmetricZeros(length, before, after, window, step);
  if (before == after) RC_ASSERT(zeros == before);
  if (!zeros.has_value()) return;
  RC_ASSERT(*zeros >= 0);
  RC_ASSERT((length + 2 * *zeros - window) / step == (length + before + after - window) / step);
}

TEST(CudaPlanTest, AnImageIsCopiedOnlyWhereNoSymmetricPaddingDoes) {
  const PaddingPlan told = PlanPadding({224, 112}, {0, 1, 1, 1}, {3, 3}, {2, 2});
  EXPECT_FALSE(told.copied);
  EXPECT_EQ(told.height, 1);
  EXPECT_EQ(told.width, 1);
  EXPECT_EQ(told.input, (Lengths2{224, 112}));
  // One side that cannot be made symmetric is enough.
  const PaddingPlan copied = PlanPadding({28, 28}, {0, 1, 1, 1}, {2, 3}, {1, 1});
  EXPECT_TRUE(copied.copied);
  EXPECT_EQ(copied.height, 0);
  EXPECT_EQ(copied.width, 0);
  EXPECT_EQ(copied.input, (Lengths2{29, 30}));
}

// ---- Words.

TEST(CudaPlanTest, ThrottlingIsToldInWords) {
  EXPECT_EQ(ThrottleWords(0), "");
  EXPECT_EQ(ThrottleWords(0x1), "");          // idle
  EXPECT_EQ(ThrottleWords(0x2 | 0x100), "");  // clocks set for applications, or by a display
  EXPECT_EQ(ThrottleWords(0x4), "power cap");
  EXPECT_EQ(ThrottleWords(0x4 | 0x20), "power cap, thermal slowdown");
  EXPECT_EQ(ThrottleWords(0x8 | 0x40), "thermal slowdown by hardware, hardware slowdown");
  EXPECT_EQ(ThrottleWords(std::uint64_t{1} << 40), "");  // what later drivers may add
}

TEST(CudaPlanTest, VersionsAreTakenApart) {
  EXPECT_EQ(CudaVersionText(13000), "13.0");
  EXPECT_EQ(CudaVersionText(12090), "12.9");
  EXPECT_EQ(LibraryVersionText(91900), "9.19.0");
  EXPECT_EQ(LibraryVersionText(130103), "13.1.3");
}

}  // namespace
}  // namespace stepcast
