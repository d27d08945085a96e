// Calibrations of many workloads, devices and hosts: excerpts forecast as the whole does, and time
// goes with the number of runs.
#include <gtest/gtest.h>

#include <ctime>
#include <optional>
#include <string>

#include "calibrate/calibrate.h"
#include "calibrate/excerpt.h"
#include "calibrate/suspects.h"
#include "data/io/machines.h"
#include "data/io/runs.h"
#include "data/workloads/catalog.h"
#include "predictor/predictor.h"

namespace stepcast {
namespace {

constexpr const char* kHeader =
    "workload,device,placement,servers,strategy,local_batch,step_time_s,hosts\n";

CalibrationProblem ProblemOf(const std::string& rows) {
  CalibrationProblem problem;
  problem.cluster = ParseCluster(
      "{name: c, device: t4, nodes: 100, devices_per_node: 4, link: {bandwidth: 10 Gbit/s}}",
      "c.yaml");
  problem.runs = ParseRuns(kHeader + rows, "r.csv");
  for (const Run& run : problem.runs) {
    if (problem.workloads.count(run.workload) == 0) {
      problem.workloads.emplace(run.workload, *FindWorkload(run.workload));
    }
  }
  return problem;
}

TEST(Excerpts, ForecastAsTheWholeDoes) {
  const CalibrationProblem problem = ProblemOf(
      "resnet50,t4,1,0,ring,32,0.5,a\n"
      "resnet50,t4,1-1,0,ring,32,0.7,a+b\n"
      "resnet50,v100,1-1,0,ring,32,0.4,b+c\n"
      "bert_base,v100,1,0,ring,8,0.3,c\n"
      "vgg16,t4,1-1,0,ring,32,1.9,a+c\n");
  const CalibrationOutcome outcome = Calibrate(problem);
  ASSERT_TRUE(outcome.IsUsable());
  const std::size_t all = outcome.cluster.calibration->parameters.size();
  const Excerpts excerpts(outcome.cluster);
  for (const auto& [workload, described] : problem.workloads) {
    for (const char* device : {"t4", "v100"}) {
      SCOPED_TRACE(workload + " on " + device);
      const Cluster part = excerpts.Of(workload, device);
      EXPECT_LT(part.calibration->parameters.size(), all);
      const auto forecast = [&](const Cluster& cluster) {
        Plan plan;
        plan.placement = {1, 1};
        plan.hosts = {"a", "c"};
        plan.strategy = Strategy::kRing;
        plan.local_batch = 16;
        Device facts;
        facts.name = device;
        facts.fp32 = TeraflopPerSecond(device == std::string("t4") ? 8.1 : 15.7);
        facts.memory_bandwidth = GigabytesPerSecond(300.0);
        return Predictor(cluster, described, facts, device).Predict(plan);
      };
      const Prediction whole = forecast(outcome.cluster);
      const Prediction own = forecast(part);
      EXPECT_EQ(own.step_time, whole.step_time);
      EXPECT_NEAR(own.low / whole.low, 1, 1e-12);
      EXPECT_NEAR(own.high / whole.high, 1, 1e-12);
      EXPECT_EQ(own.flags, whole.flags);
    }
  }
}

// Sixteen times as many hosts that were measured alone take about sixteen times as long.
TEST(Size, HostsThatWereMeasuredAlone) {
  const auto cost = [](int count) {
    std::string rows;
    for (int i = 0; i < count; ++i) {
      rows +=
          "resnet50,t4,1,0,ring,32,0.5" + std::to_string(i % 9) + ",h" + std::to_string(i) + "\n";
    }
    const CalibrationProblem problem = ProblemOf(rows);
    CalibrationOptions options;
    options.profiled_plans = 0;
    const std::clock_t start = std::clock();
    const CalibrationOutcome outcome = Calibrate(problem, options);
    EXPECT_TRUE(outcome.IsUsable());
    FindSuspects(problem, outcome);
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  const double small = cost(1000) + 5e-3;
  EXPECT_LT(cost(16'000) / small, 16 * 3.0);
}

}  // namespace
}  // namespace stepcast
