// What is said of the width of what workers with shares of a model exchange.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "data/workloads/catalog.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"

namespace stepcast {
namespace {

bool IsFlagged(const Plan& plan, Precision precision = Precision::kBf16) {
  Workload workload = *FindWorkload("resnet50");
  workload.precision = precision;
  const Prediction prediction =
      Predictor(CalibratedCluster(PlausibleTruth()), workload, std::nullopt).Predict(plan);
  return std::any_of(prediction.flags.begin(), prediction.flags.end(), [](const std::string& flag) {
    return flag.find("--bytes-per-parameter 2 makes a step of 4 workers") != std::string::npos;
  });
}

Plan SharedOut(Shard shard) {
  Plan plan = AllreducePlan({1, 1, 1, 1}, 1);
  plan.shard = shard;
  return plan;
}

TEST(WidthFlag, IsOfSharedModelsInSixteenBits) {
  for (const Shard shard : {Shard::kOptimizer, Shard::kGradients, Shard::kParameters}) {
    EXPECT_TRUE(IsFlagged(SharedOut(shard)));
    EXPECT_TRUE(IsFlagged(SharedOut(shard), Precision::kFp16));
    EXPECT_FALSE(IsFlagged(SharedOut(shard), Precision::kFp32));
  }
  EXPECT_FALSE(IsFlagged(SharedOut(Shard::kNone)));
}

TEST(WidthFlag, IsNotWhereTheWidthIsStated) {
  Plan plan = SharedOut(Shard::kParameters);
  plan.bytes_per_parameter = 3;
  EXPECT_FALSE(IsFlagged(plan));
}

// A step that is nearly all compute depends on no width.
TEST(WidthFlag, IsNotWhereLittleHangsOnIt) {
  Plan plan = SharedOut(Shard::kOptimizer);
  plan.local_batch = 4096;
  EXPECT_FALSE(IsFlagged(plan));
}

}  // namespace
}  // namespace stepcast
