// How a synchronisation and a backward pass share a step: limits, bounds, and what hiding costs.
#include "model/overlap/overlap.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/model/support.h"

namespace stepcast {
namespace {

// ---- Buckets.

// Backward 10 s, 8 s of synchronisation of which the last ends at 13 s: 3 are seen, 5 hidden.
TEST(BucketOverlap, ByHand) {
  const OverlapSplit<double> split = BucketOverlap(Seconds(10.0), Seconds(8.0), Seconds(13.0));
  EXPECT_DOUBLE_EQ(split.exposed.si(), 3);
  EXPECT_DOUBLE_EQ(split.hidden.si(), 5);
}

// A synchronisation that ends with the pass, or before it, is not seen.
TEST(BucketOverlap, WhatEndsInTimeIsHidden) {
  EXPECT_EQ(BucketOverlap(Seconds(10.0), Seconds(8.0), Seconds(10.0)).exposed.si(), 0);
  EXPECT_EQ(BucketOverlap(Seconds(10.0), Seconds(8.0), Seconds(9.0)).hidden.si(), 8);
  EXPECT_EQ(BucketOverlap(Seconds(0.0), Seconds(8.0), Seconds(8.0)).hidden.si(), 0);
}

// ---- Of totals alone.

TEST(PNormOverlap, ByHand) {
  const OverlapSplit<double> split = PNormOverlap(Seconds(1.0), Seconds(1.0));
  EXPECT_NEAR(split.exposed.si(), std::cbrt(2.0) - 1, 1e-15);
  EXPECT_NEAR(split.hidden.si(), 2 - std::cbrt(2.0), 1e-15);
  const double both = std::cbrt(27.0 + 64.0);
  EXPECT_NEAR(PNormOverlap(Seconds(3.0), Seconds(4.0)).exposed.si(), both - 3, 1e-14);
}

TEST(PNormOverlap, WithoutComputeNothingHides) {
  const OverlapSplit<double> split = PNormOverlap(Duration<>(), Seconds(4.0));
  EXPECT_DOUBLE_EQ(split.exposed.si(), 4);
  EXPECT_DOUBLE_EQ(split.hidden.si(), 0);
}

RC_GTEST_PROP(PNormOverlapProperty, LiesBetweenAllAndNothingHidden, ()) {
  const double backward = *LogUniform(1e-4, 10);
  const double total = *LogUniform(1e-4, 10);
  const OverlapSplit<double> split = PNormOverlap(Seconds(backward), Seconds(total));
  const double most = total * (1 + 1e-12);
  RC_ASSERT(split.exposed.si() >= std::max(0.0, total - backward) * (1 - 1e-12));
  RC_ASSERT(split.exposed.si() <= most);
  RC_ASSERT(std::abs((split.exposed + split.hidden).si() - total) <= 1e-12 * (total + backward));
  RC_ASSERT(split.hidden.si() <= backward * (1 + 1e-12));
}

// ---- Its cost.

TEST(OverlapContention, IsAShareOfWhatRunsBesideThePass) {
  const OverlapSplit<double> split = {Seconds(3.0), Seconds(5.0)};
  EXPECT_DOUBLE_EQ(OverlapContention(split, Seconds(10.0), 0.1).si(), 0.5);
  // 5 s of pulls behind pushes slow a pass of 2 s for 2 s at most, and no pass not at all.
  EXPECT_DOUBLE_EQ(OverlapContention(split, Seconds(2.0), 0.1).si(), 0.2);
  EXPECT_EQ(OverlapContention(split, Duration<>(), 0.1).si(), 0);
}

// Backward pass with its contention, and what is seen: neither a longer pass nor a longer
// synchronisation makes it shorter.
RC_GTEST_PROP(OverlapProperty, AStepNeverFallsWithItsParts, ()) {
  const double backward = *LogUniform(1e-4, 10);
  const double total = *LogUniform(1e-4, 10);
  const double kappa = *LogUniform(1e-4, 1);
  const double ready = *LogUniform(1e-3, 1);
  const auto step = [&](double t_b, double s, bool buckets) {
    const Duration<> pass = Seconds(t_b);
    // One bucket that is ready within the pass.
    const OverlapSplit<double> split =
        buckets ? BucketOverlap(pass, Seconds(s), Seconds(ready * t_b + s))
                : PNormOverlap(pass, Seconds(s));
    return (pass + OverlapContention(split, pass, kappa) + split.exposed).si();
  };
  const double factor = *LogUniform(1, 5);
  for (const bool buckets : {false, true}) {
    const double least = step(backward, total, buckets) * (1 - 1e-12);
    RC_ASSERT(step(backward * factor, total, buckets) >= least);
    RC_ASSERT(step(backward, total * factor, buckets) >= least);
  }
}

}  // namespace
}  // namespace stepcast
