// Public traces of four jobs on 1 to 64 devices: a random fifth of the rows, all jobs fitted
// together, predicts the rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "calibrate/calibrate.h"
#include "data/io/import_adaptdl.h"
#include "data/io/machines.h"
#include "data/workloads/catalog.h"
#include "predictor/predictor.h"
#include "tests/support/datasets.h"

namespace stepcast {
namespace {

using Runs = std::vector<Run>;  // inside a TEST, Run is a member of GoogleTest's class

const std::string kMachines = std::string(STEPCAST_SOURCE_DIR) + "/data/machines";

struct Split {
  Runs fitted;
  Runs held_out;
};

// A fifth of the rows, drawn by Fisher-Yates with a generator that is the same everywhere.
Split DrawFifth(Runs runs, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  for (std::size_t i = runs.size(); i > 1; --i) std::swap(runs[i - 1], runs[engine() % i]);
  const auto cut = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 5);
  return {Runs(runs.begin(), cut), Runs(cut, runs.end())};
}

class Adaptdl : public ::testing::TestWithParam<int> {};

TEST_P(Adaptdl, AFifthPredictsTheRest) {
  const std::optional<std::string> folder = DatasetFolder("adaptdl");
  if (!folder) GTEST_SKIP() << MissingDataset("adaptdl");
  Runs all;
  for (const char* app : {"bert", "cifar10", "deepspeech2", "imagenet"}) {
    for (const char* kind : {"placements", "scalability"}) {
      const Runs more = ImportAdaptdl(*folder + "/" + app + "_" + kind + ".csv", "", "t4");
      all.insert(all.end(), more.begin(), more.end());
    }
  }
  ASSERT_EQ(all.size(), 4336U);
  const Split split = DrawFifth(all, static_cast<std::uint64_t>(GetParam()));

  CalibrationProblem problem;
  problem.cluster = ReadCluster(kMachines + "/aws-g4dn-12xlarge.yaml");
  problem.runs = split.fitted;
  for (const auto& run : all) problem.workloads[run.workload] = *FindWorkload(run.workload);
  const std::optional<Device> t4 = FindDevice(ReadDevices(kMachines + "/gpus.yaml"), "t4");
  problem.devices["t4"] = t4.value();
  const CalibrationOutcome outcome = Calibrate(problem);
  ASSERT_EQ(outcome.status, CalibrationOutcome::Status::kConverged) << outcome.message;

  struct Score {
    int runs = 0;
    int covered = 0;
    double error_sum = 0;
    double mape() const { return error_sum / runs; }
    double coverage() const { return static_cast<double>(covered) / runs; }
  };
  std::map<std::string, Score> scores;
  for (const auto& [name, workload] : problem.workloads) {
    const Predictor predictor(outcome.cluster, workload, t4, "t4");
    for (const auto& run : split.held_out) {
      if (run.workload != name) continue;
      const Prediction p = predictor.Predict(run.plan);
      Score& score = scores[name];
      ++score.runs;
      score.error_sum += std::abs(p.step_time / run.step_time - 1);
      score.covered += p.low <= run.step_time && run.step_time <= p.high ? 1 : 0;
    }
  }
  ASSERT_EQ(scores.size(), 4U);
  for (const auto& [name, score] : scores) {
    std::printf("[ measured ] seed %d, %-16s MAPE %.2f %%, %.1f %% of %d in their 90 %% interval\n",
                GetParam(), name.c_str(), 100 * score.mape(), 100 * score.coverage(), score.runs);
    EXPECT_LE(score.mape(), 0.10) << name;
    EXPECT_GE(score.coverage(), 0.80) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Seed, Adaptdl, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace stepcast
