// Public measurements of a slow cluster: three runs on one and two nodes forecast a run on three,
// and tell that two hosts sit on a slower link than the cluster's owner believes.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "calibrate/calibrate.h"
#include "data/io/machines.h"
#include "data/io/runs.h"
#include "data/workloads/catalog.h"
#include "predictor/binding.h"
#include "predictor/predictor.h"

namespace stepcast {
namespace {

const std::string kData = std::string(STEPCAST_SOURCE_DIR) + "/data";

class Ufrgs : public ::testing::Test {
 protected:
  Ufrgs() : device_(FindDevice(ReadDevices(kData + "/machines/gpus.yaml"), "rtx_4090")) {
    CalibrationProblem problem;
    problem.cluster = ReadCluster(kData + "/machines/ufrgs-tupi.yaml");
    problem.runs = ReadRuns(kData + "/measurements/ufrgs-tupi-fit.csv");
    problem.workloads["resnet50"] = *FindWorkload("resnet50");
    problem.devices["rtx_4090"] = device_.value();
    outcome_ = Calibrate(problem);
  }

  const ParameterEstimate& Link(const std::string& hosts) const {
    for (const ParameterEstimate& p : outcome_.cluster.calibration->parameters) {
      if (p.scope == kHostsScopePrefix + hosts) return p;
    }
    throw std::logic_error("no link of " + hosts);
  }

  std::optional<Device> device_;
  CalibrationOutcome outcome_;
};

TEST_F(Ufrgs, MeetsTheFittedRuns) {
  ASSERT_EQ(outcome_.status, CalibrationOutcome::Status::kConverged) << outcome_.message;
  EXPECT_LT(outcome_.mape, 0.02);
}

TEST_F(Ufrgs, FindsTheLinks) {
  ASSERT_TRUE(outcome_.IsUsable()) << outcome_.message;
  const ParameterEstimate& slow = Link("tupi5+tupi6");
  const ParameterEstimate& fast = Link("tupi1+tupi2");
  EXPECT_EQ(slow.unit, "Gbit/s");
  EXPECT_GT(slow.value, 0.080);
  EXPECT_LT(slow.value, 0.130);
  EXPECT_EQ(slow.decided_by, DecidedBy::kData);
  EXPECT_GT(fast.value, 0.6);
  EXPECT_LT(fast.value, 1.1);
  EXPECT_EQ(fast.decided_by, DecidedBy::kData);
}

TEST_F(Ufrgs, ForecastsThreeNodes) {
  ASSERT_TRUE(outcome_.IsUsable()) << outcome_.message;
  const auto held_out = ReadRuns(kData + "/measurements/ufrgs-tupi-holdout.csv");
  ASSERT_EQ(held_out.size(), 1U);
  ASSERT_EQ(held_out[0].plan.nodes(), 3);
  ASSERT_DOUBLE_EQ(held_out[0].step_time.in(kSeconds), 12.30);
  const Prediction p =
      Predictor(outcome_.cluster, *FindWorkload("resnet50"), device_).Predict(held_out[0].plan);
  std::printf("[ measured ] three nodes: predicted %.2f s (%.2f to %.2f), measured 12.30 s\n",
              p.step_time.in(kSeconds), p.low.in(kSeconds), p.high.in(kSeconds));
  EXPECT_NEAR(p.step_time.in(kSeconds), 12.30, 1.23);
  EXPECT_LT(p.low.in(kSeconds), 12.30);
  EXPECT_GT(p.high.in(kSeconds), 12.30);
  EXPECT_EQ(FindBinding(p).part, "link");
}

}  // namespace
}  // namespace stepcast
