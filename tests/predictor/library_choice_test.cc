// The all-reduce that a library takes between two nodes, as all answers tell it.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "data/workloads/catalog.h"
#include "predictor/compiled_plan.h"
#include "predictor/predictor.h"
#include "predictor/search/limits.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

Predictor Linked(bool has_links = true) {
  Device device = T4();
  if (has_links) device.device_link = GigabytesPerSecond(150.0);
  return {CalibratedCluster(PlausibleTruth()), *FindWorkload("resnet50"), device};
}

Plan PlanOn(Placement placement, Strategy strategy = Strategy::kAllreduce) {
  Plan plan = AllreducePlan(std::move(placement), 32);
  plan.strategy = strategy;
  return plan;
}

TEST(LibraryChoice, IsSaidWithWhy) {
  const Prediction two = Linked().Predict(PlanOn({4, 4}));
  EXPECT_EQ(two.algorithm, Strategy::kTree);
  EXPECT_NE(two.algorithm_reason.find("around a ring 1.75 times"), std::string::npos)
      << two.algorithm_reason;
  const Prediction three = Linked().Predict(PlanOn({4, 4, 4}));
  EXPECT_EQ(three.algorithm, Strategy::kRing);
  EXPECT_EQ(three.algorithm_reason, "");
}

TEST(LibraryChoice, HasTheTrafficOfItsAlgorithm) {
  const Predictor predictor = Linked();
  const Traffic of_tree = predictor.Predict(PlanOn({4, 4}, Strategy::kTree)).traffic;
  const Traffic chosen = predictor.Predict(PlanOn({4, 4})).traffic;
  EXPECT_EQ(chosen.per_worker, of_tree.per_worker);
  EXPECT_EQ(chosen.transfers, of_tree.transfers);
}

// Whatever placement a plan was compiled for.
TEST(LibraryChoice, IsThatOfEachQuery) {
  const Predictor predictor = Linked();
  const std::vector<Placement> placements = {{4}, {1, 1}, {4, 4}, {4, 4, 4}};
  for (const Placement& compiled_for : placements) {
    const CompiledPlan compiled(predictor, PlanOn(compiled_for));
    for (const Placement& placement : placements) {
      const Prediction prediction = predictor.Predict(PlanOn(placement));
      const PlanQuery query = QueryOf(PlanOn(placement));
      const Forecast forecast = compiled.Predict(query);
      ASSERT_EQ(forecast.status, QueryStatus::kOk);
      EXPECT_NEAR(forecast.step_time / prediction.step_time, 1, 1e-12);
      EXPECT_NEAR(compiled.StepTime(query) / prediction.step_time, 1, 1e-12);
      EXPECT_NEAR(forecast.high / prediction.high, 1, 1e-3);
    }
  }
}

// The laws of growth hold beyond two nodes.
TEST(LibraryChoice, LeavesTheLimitsThoseOfTheRing) {
  const Predictor predictor = Linked();
  const ScalingLimits chosen = FindScalingLimits(predictor, PlanOn({4, 4}), 4, {});
  const ScalingLimits ring = FindScalingLimits(predictor, PlanOn({4, 4}, Strategy::kRing), 4, {});
  ASSERT_TRUE(ring.closed.half_efficiency && ring.closed.half_efficiency->exists());
  ASSERT_TRUE(chosen.closed.half_efficiency && chosen.closed.half_efficiency->exists());
  EXPECT_EQ(chosen.closed.half_efficiency->value(), ring.closed.half_efficiency->value());
}

}  // namespace
}  // namespace stepcast
