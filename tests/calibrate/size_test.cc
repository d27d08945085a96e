// Calibrations of many workloads, devices and hosts: excerpts forecast as the whole does, and time
// goes with the number of runs.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <vector>

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
      const Cluster part = excerpts.Of(described, device);
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

CalibrationProblem Pairs(int count) {
  std::string rows;
  for (int i = 0; i < count; ++i) {
    const std::string host = "h" + std::to_string(i);
    rows +=
        "resnet50,t4,1-1,0,ring,32,0.5" + std::to_string(i % 9) + "," + host + "+" + host + "b\n";
  }
  return ProblemOf(rows);
}

CalibrationOutcome FitWithoutProfiles(const CalibrationProblem& problem) {
  CalibrationOptions options;
  options.profiled_plans = 0;
  CalibrationOutcome outcome = Calibrate(problem, options);
  EXPECT_TRUE(outcome.IsUsable());
  return outcome;
}

// Each pair has a link of its own: four times as many take about four times as long.
TEST(Size, HostsThatWereMeasuredInPairs) {
  const auto cost = [](int count) {
    const CalibrationProblem problem = Pairs(count);
    const std::clock_t start = std::clock();
    FitWithoutProfiles(problem);
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  const double small = cost(250) + 5e-3;
  EXPECT_LT(cost(1000) / small, 4 * 3.0);
}

// Beliefs of 60 workloads on 600 links have 190 MB of covariances, of which few are kept.
TEST(Size, SuspectsOfManyWorkloadsOnManyHosts) {
  constexpr int kPairs = 600;
  constexpr int kWorkloads = 60;
  std::string rows;
  for (int i = 0; i < 2 * kPairs; ++i) {
    const std::string host = "h" + std::to_string(i % kPairs);
    // Every seventh is far off, so that the share of synchronisation is asked for.
    const std::string time = (i % 7 == 0 ? "9." : "0.5") + std::to_string(i % 9);
    rows += "message_" + std::to_string(1'000'000 + i % kWorkloads) + ",t4,1-1,0,ring,1," + time +
            "," + host + "+" + host + "b\n";
  }
  const CalibrationProblem problem = ProblemOf(rows);
  const CalibrationOutcome outcome = FitWithoutProfiles(problem);
  const auto peak_mb = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1e3;
  };
  const double before = peak_mb();
  EXPECT_FALSE(FindSuspects(problem, outcome).empty());
  EXPECT_LT(peak_mb() - before, 100);
}

// From 101 links on the fit is solved in another way, and the same comes out: one more pair that is
// like the others tells a hundredth more.
TEST(Size, ManyLinksAreFittedAsFewAre) {
  const CalibrationOutcome few = FitWithoutProfiles(Pairs(100));
  const CalibrationOutcome many = FitWithoutProfiles(Pairs(101));
  std::map<std::string, ParameterEstimate> of_many;
  for (const ParameterEstimate& e : many.cluster.calibration->parameters) {
    of_many[e.scope + " " + e.name] = e;
  }
  const std::vector<ParameterEstimate>& of_few = few.cluster.calibration->parameters;
  ASSERT_EQ(of_many.size(), of_few.size() + 1);
  for (const ParameterEstimate& e : of_few) {
    const ParameterEstimate& other = of_many.at(e.scope + " " + e.name);
    EXPECT_NEAR(std::log(other.value / e.value), 0, 0.05 * e.log_sd) << e.scope << " " << e.name;
    EXPECT_NEAR(other.log_sd / e.log_sd, 1, 0.02) << e.scope << " " << e.name;
  }
}

}  // namespace
}  // namespace stepcast
