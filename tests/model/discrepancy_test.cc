// How much the formulas are doubted beyond what was measured.
#include "model/step/discrepancy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <optional>

#include "tests/model/support.h"

namespace stepcast {
namespace {

using Batches = CalibratedRange::BatchRange;

Plan PlanOf(int nodes, int devices, int batch) {
  Plan plan;
  plan.placement = Placement(static_cast<std::size_t>(nodes), devices);
  plan.local_batch = batch;
  return plan;
}

// 4 nodes of 2 devices, 8 workers.
CalibratedRange Measured() {
  CalibratedRange range;
  range.max_nodes = 4;
  range.max_devices_per_node = 2;
  range.max_workers = 8;
  return range;
}

constexpr Batches kBatches = {16, 64};

TEST(Discrepancy, CountsDoublings) {
  struct Case {
    Plan plan;
    double doublings;
  };
  const Case cases[] = {
      {PlanOf(4, 2, 16), 0},
      {PlanOf(4, 2, 64), 0},
      {PlanOf(8, 1, 32), 1},                // nodes alone: 8 workers are in the range
      {PlanOf(1, 4, 32), 1},                // devices on a node
      {PlanOf(1, 8, 32), 2},                // 8 workers are in the range still
      {PlanOf(4, 2, 128), 1},               // a larger batch
      {PlanOf(4, 2, 8), 1},                 // a smaller one
      {PlanOf(4, 2, 1), 4},                 //
      {PlanOf(4, 2, 96), std::log2(1.5)},   // parts of a doubling count
      {PlanOf(8, 2, 32), std::sqrt(2.0)},   // nodes and workers
      {PlanOf(16, 2, 32), std::sqrt(8.0)},  // two doublings of each
      {PlanOf(8, 4, 8), std::sqrt(1 + 4 + 1 + 1)},
  };
  for (const Case& c : cases) {
    EXPECT_NEAR(DoublingsBeyond(c.plan, Measured(), kBatches), c.doublings, 1e-12)
        << c.plan.nodes() << " nodes, batch " << c.plan.local_batch;
    EXPECT_NEAR(Discrepancy(c.plan, Measured(), kBatches), 0.04 * c.doublings, 1e-12);
  }
}

TEST(Discrepancy, TheFullestNodeCounts) {
  Plan plan = PlanOf(1, 1, 32);
  plan.placement = {1, 4, 1};
  EXPECT_NEAR(DoublingsBeyond(plan, Measured(), kBatches), 1, 1e-12);
}

// Where slow nodes take other samples, either may be beyond the range.
TEST(Discrepancy, BothBatchesCount) {
  Plan plan = PlanOf(2, 1, 32);
  plan.slow_nodes = 1;
  plan.slow_speed = 0.5;
  const auto doublings = [&](int fast_batch, int slow_batch) {
    plan.local_batch = fast_batch;
    plan.slow_local_batch = slow_batch;
    return DoublingsBeyond(plan, Measured(), kBatches);
  };
  EXPECT_EQ(doublings(64, 16), 0);
  EXPECT_NEAR(doublings(64, 8), 1, 1e-12);
  EXPECT_NEAR(doublings(16, 128), 1, 1e-12);
  EXPECT_NEAR(doublings(256, 8), std::sqrt(4.0 + 1), 1e-12);
}

TEST(Discrepancy, BatchesCountOnlyWhereSomeWereFitted) {
  EXPECT_EQ(Discrepancy(PlanOf(1, 1, 4096), Measured(), std::nullopt), 0);
  EXPECT_GT(Discrepancy(PlanOf(1, 1, 4096), Measured(), kBatches), 0);
}

TEST(Discrepancy, WithoutACalibrationTheRangeIsOneDevice) {
  const CalibratedRange nothing;
  EXPECT_EQ(Discrepancy(PlanOf(1, 1, 77), nothing, std::nullopt), 0);
  // Two nodes are a doubling of the workers and of the nodes.
  EXPECT_NEAR(Discrepancy(PlanOf(2, 1, 77), nothing, std::nullopt), 0.04 * std::hypot(1, 1), 1e-12);
  // As if one device on one node had been measured.
  CalibratedRange one;
  one.max_nodes = one.max_devices_per_node = one.max_workers = 1;
  for (const auto& [nodes, devices] : {std::pair{1, 4}, {16, 1}, {16, 8}}) {
    const Plan plan = PlanOf(nodes, devices, 5);
    EXPECT_DOUBLE_EQ(Discrepancy(plan, nothing, std::nullopt),
                     Discrepancy(plan, one, std::nullopt));
  }
}

RC_GTEST_PROP(DiscrepancyProperty, IsExactlyZeroWithinTheRange, ()) {
  const int nodes = *Whole(1, 40);
  const int devices = *Whole(1, 8);
  const Batches batches = {*Whole(1, 64), *Whole(64, 4096)};
  CalibratedRange range;
  range.max_nodes = nodes + *Whole(0, 3);
  range.max_devices_per_node = devices + *Whole(0, 3);
  range.max_workers = nodes * devices + *Whole(0, 3);
  const Plan plan = PlanOf(nodes, devices, *Whole(batches.min, batches.max));
  RC_ASSERT(Discrepancy(plan, range, batches) == 0.0);
}

// Further in any direction is never nearer, and a wider range never further.
RC_GTEST_PROP(DiscrepancyProperty, NeverFallsWithTheDistance, ()) {
  const int nodes = *Whole(1, 40);
  const int devices = *Whole(1, 8);
  const int above = *Whole(16, 2000);
  const int below = *Whole(1, 64);
  const CalibratedRange range = Measured();
  const double at_above = Discrepancy(PlanOf(nodes, devices, above), range, kBatches);
  const double at_below = Discrepancy(PlanOf(nodes, devices, below), range, kBatches);
  RC_ASSERT(Discrepancy(PlanOf(nodes + 1, devices, above), range, kBatches) >= at_above);
  RC_ASSERT(Discrepancy(PlanOf(nodes, devices + 1, above), range, kBatches) >= at_above);
  RC_ASSERT(Discrepancy(PlanOf(nodes, devices, above + 1), range, kBatches) >= at_above);
  if (below > 1) {
    RC_ASSERT(Discrepancy(PlanOf(nodes, devices, below - 1), range, kBatches) >= at_below);
  }
  CalibratedRange wider = range;
  ++wider.max_nodes;
  RC_ASSERT(Discrepancy(PlanOf(nodes, devices, above), wider, kBatches) <= at_above);
  // Beyond the range it does not merely stay.
  RC_ASSERT(Discrepancy(PlanOf(nodes + 5, devices, 32), range, kBatches) >
            Discrepancy(PlanOf(nodes + 4, devices, 32), range, kBatches));
}

RC_GTEST_PROP(DiscrepancyProperty, DirectionsAddInSquares, ()) {
  const Plan plan = PlanOf(*Whole(1, 60), *Whole(1, 16), *Whole(1, 2000));
  const auto square = [&](const CalibratedRange& range, const std::optional<Batches>& batches) {
    const double d = Discrepancy(plan, range, batches);
    return d * d;
  };
  // Each direction by itself: the range is without bounds in the others.
  CalibratedRange endless;
  endless.max_nodes = endless.max_devices_per_node = endless.max_workers = 1 << 20;
  CalibratedRange nodes = endless;
  nodes.max_nodes = Measured().max_nodes;
  CalibratedRange devices = endless;
  devices.max_devices_per_node = Measured().max_devices_per_node;
  CalibratedRange workers = endless;
  workers.max_workers = Measured().max_workers;
  const double sum = square(nodes, std::nullopt) + square(devices, std::nullopt) +
                     square(workers, std::nullopt) + square(endless, kBatches);
  RC_ASSERT(std::abs(square(Measured(), kBatches) - sum) <= 1e-12 * (1 + sum));
}

}  // namespace
}  // namespace stepcast
