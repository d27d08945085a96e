// What is said of compute that is faster than the device's data sheet allows.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "data/io/machines.h"
#include "data/workloads/catalog.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

bool IsFlagged(const Prediction& prediction,
               const std::string& told = "times as fast as the peak") {
  return std::any_of(prediction.flags.begin(), prediction.flags.end(),
                     [&](const auto& flag) { return flag.find(told) != std::string::npos; });
}

// A calibrated cluster on which a sample of the workload takes so long.
Cluster WithSampleTime(const std::string& workload, double milliseconds) {
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  for (ParameterEstimate& e : cluster.calibration->parameters) {
    if (e.scope == ScopeOfSynthetic(workload) && e.name == "sample_time") e.value = milliseconds;
  }
  return cluster;
}

Prediction PredictionOf(const std::string& workload, double milliseconds, const Plan& plan) {
  return Predictor(WithSampleTime(workload, milliseconds), *FindWorkload(workload), T4())
      .Predict(plan);
}

TEST(PeakFlag, IsOfWhatNoDeviceComputes) {
  const Plan alone = AllreducePlan({1}, 64);
  EXPECT_FALSE(IsFlagged(PredictionOf("bert_base", 40, alone)));
  const Prediction fast = PredictionOf("bert_base", 10, alone);
  EXPECT_GT(fast.work->of_peak.value(), 1);
  EXPECT_TRUE(IsFlagged(fast,
                        "bert_base computes 2.5 times as fast as the peak of t4 allows in "
                        "fp32: is the precision, the size of its inputs or the device "
                        "another than stated?"));
}

// However long it waits for the network, and where units are faster it is none.
TEST(PeakFlag, IsOfComputeAlone) {
  Plan slow = AllreducePlan({1, 1}, 64);
  slow.link.bandwidth = MegabitsPerSecond(100.0);
  const Prediction waiting = PredictionOf("bert_base", 10, slow);
  EXPECT_LT(waiting.work->of_peak.value(), 1);
  EXPECT_TRUE(IsFlagged(waiting));

  Cluster cluster = WithSampleTime("bert_base", 10);
  for (ParameterEstimate& e : cluster.calibration->parameters) {
    if (e.scope == ScopeOfSynthetic("bert_base")) e.scope = "workload bert_base (fp16) on t4";
  }
  Workload half = *FindWorkload("bert_base");
  half.precision = Precision::kFp16;
  Device device = T4();
  device.fp16 = TeraflopPerSecond(65.0);
  EXPECT_FALSE(IsFlagged(Predictor(cluster, half, device).Predict(AllreducePlan({1}, 64))));
}

// Winograd's convolutions take a quarter of the products of windows of three.
TEST(PeakFlag, IsNotOfFastConvolutions) {
  const Plan alone = AllreducePlan({1}, 256);
  const Prediction fast = PredictionOf("resnet50", 2.6, alone);
  EXPECT_GT(fast.work->of_peak.value(), 1);
  EXPECT_FALSE(IsFlagged(fast));
  EXPECT_TRUE(IsFlagged(PredictionOf("resnet50", 1.3, alone)));
}

TEST(PeakFlag, IsNotOfWhatNobodyKnows) {
  Device without_memory;
  without_memory.name = "t4";
  without_memory.fp32 = TeraflopPerSecond(0.01);
  const Prediction p = Predictor(SyntheticCluster(), *FindWorkload("gpt2"), without_memory)
                           .Predict(AllreducePlan({1}, 8));
  EXPECT_EQ(p.compute_source, ComputeSource::kPrior);
  EXPECT_GT(p.work->of_peak.value(), 1);
  EXPECT_FALSE(IsFlagged(p));
}

// Neither on a shipped cluster, nor on any shipped board.
TEST(PeakFlag, IsNotOfForecastsByTheDataSheet) {
  const std::string machines = std::string(STEPCAST_SOURCE_DIR) + "/data/machines/";
  Cluster cluster;
  cluster.name = "nodes";
  for (const Device& device : ReadDevices(machines + "gpus.yaml")) {
    for (const char* const name : {"vgg16", "resnet50", "gpt2", "bert_base@128"}) {
      for (const int batch : {1, 64}) {
        const Prediction p = Predictor(cluster, *FindWorkload(name), device, device.name)
                                 .Predict(AllreducePlan({1}, batch));
        EXPECT_FALSE(IsFlagged(p)) << device.name << " " << name << " " << batch;
      }
    }
  }
  for (const auto& [name, values] : PlausibleTruth().workloads) {
    const Predictor calibrated(CalibratedCluster(PlausibleTruth()), *FindWorkload(name), T4());
    for (const int batch : {8, 64}) {
      EXPECT_FALSE(IsFlagged(calibrated.Predict(AllreducePlan({4, 4}, batch)))) << name;
    }
  }
}

}  // namespace
}  // namespace stepcast
