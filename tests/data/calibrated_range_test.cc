// The box that fitted runs span grows by each of them, and by other boxes.
#include <gtest/gtest.h>

#include <string>

#include "data/record/calibration.h"
#include "data/record/machine.h"
#include "data/record/plan.h"

namespace stepcast {
namespace {

constexpr const char* kScope = "workload resnet50 on t4";

Plan RingOf(int nodes, int local_batch) {
  Plan plan;
  plan.strategy = Strategy::kRing;
  plan.placement = Placement(static_cast<std::size_t>(nodes), 1);
  plan.local_batch = local_batch;
  return plan;
}

CalibratedRange RangeOf(int nodes, int local_batch) {
  CalibratedRange range;
  range.Include(Cluster(), RingOf(nodes, local_batch), kScope);
  return range;
}

TEST(CalibratedRange, GrowsByEachRun) {
  CalibratedRange range = RangeOf(2, 32);
  range.Include(Cluster(), RingOf(8, 16), kScope);
  range.Include(Cluster(), RingOf(4, 64), kScope);
  EXPECT_EQ(range.max_workers, 8);
  EXPECT_EQ(range.max_nodes, 8);
  EXPECT_EQ(range.max_devices_per_node, 1);
  EXPECT_EQ(range.local_batch.at(kScope).min, 16);
  EXPECT_EQ(range.local_batch.at(kScope).max, 64);
  EXPECT_EQ(range.local_batch.at(kScope).max_workers, 8);
}

// Whichever of the two is the larger, and of a workload that only one knows.
TEST(CalibratedRange, HasTheSamplesOfSlowNodesToo) {
  Plan plan;
  plan.placement = {1, 1};
  plan.strategy = Strategy::kRing;
  plan.local_batch = 48;
  plan.slow_nodes = 1;
  plan.slow_speed = 0.5;
  plan.slow_local_batch = 20;
  CalibratedRange range;
  range.Include({}, plan, "mine");
  EXPECT_EQ(range.BatchesOf("mine")->min, 20);
  EXPECT_EQ(range.BatchesOf("mine")->max, 48);
  plan.slow_local_batch = 70;
  range.Include({}, plan, "mine");
  EXPECT_EQ(range.BatchesOf("mine")->min, 20);
  EXPECT_EQ(range.BatchesOf("mine")->max, 70);
}

TEST(CalibratedRange, GrowsByAnother) {
  const CalibratedRange small = RangeOf(2, 32);
  CalibratedRange large = RangeOf(8, 64);
  large.Include(Cluster(), RingOf(4, 8), "another");
  for (const bool small_first : {true, false}) {
    CalibratedRange range = small_first ? small : large;
    range.Include(small_first ? large : small);
    EXPECT_EQ(range.max_workers, 8);
    EXPECT_EQ(range.max_nodes, 8);
    EXPECT_EQ(range.local_batch.at(kScope).min, 32);
    EXPECT_EQ(range.local_batch.at(kScope).max, 64);
    EXPECT_EQ(range.local_batch.at(kScope).max_workers, 8) << small_first;
    EXPECT_EQ(range.local_batch.at("another").max_workers, 4);
    EXPECT_EQ(range.local_batch.at("another").max, 8);
  }
}

// Bare messages tell of no batch, and workers that exchange nothing of one node.
TEST(CalibratedRange, MessagesAndWorkersAloneTellOfLess) {
  CalibratedRange range;
  range.IncludeMessage(Cluster(), RingOf(8, 32));
  EXPECT_EQ(range.max_workers, 8);
  EXPECT_TRUE(range.local_batch.empty());
  Plan alone = RingOf(4, 32);
  alone.strategy = Strategy::kNone;
  CalibratedRange of_one;
  of_one.Include(Cluster(), alone, kScope);
  EXPECT_EQ(of_one.max_workers, 1);
  EXPECT_EQ(of_one.max_nodes, 1);
}

}  // namespace
}  // namespace stepcast
