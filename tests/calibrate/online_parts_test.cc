// The parts that online calibration is made of, each by hand: sums that speak for a change, levels
// that may have changed, times of a plan, and what is left of what was known.
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/online/fleet.h"
#include "calibrate/online/state.h"
#include "data/values/workload_scope.h"
#include "data/workloads/catalog.h"
#include "model/statistics/scatter.h"
#include "model/step/believed_model.h"
#include "model/step/parameter_specs.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

using internal::Drifting;
using internal::DriftSums;
using internal::ObservedPlan;
using internal::OnlineState;

DriftSums::Row RowOf(double residual, double sd, std::vector<double> slopes) {
  DriftSums::Row row;
  row.residual = residual;
  row.sd = sd;
  row.slopes = std::move(slopes);
  return row;
}

// ---- Sums that speak for a change.

// d (r - d / 2) / s^2 of a shift d of 0.223 times the slope; r is at most 3 s or the shift, and a
// row counts for 4.5 at most.
TEST(DriftSums, AddWhatARowSays) {
  struct Case {
    double residual, sd, slope;
    double slower, faster;
  };
  for (const Case& its :
       {Case{0.2, 0.1, 1, 0.223 * (0.2 - 0.1115) / 0.01, 0},
        Case{-0.2, 0.1, 1, 0, 0.223 * (0.2 - 0.1115) / 0.01},
        Case{0.2, 0.1, 0.5, 0.1115 * (0.2 - 0.05575) / 0.01, 0},
        Case{0.2, 0.1, -1, 0, 0.223 * (0.2 - 0.1115) / 0.01}, Case{0.11, 0.1, 1, 0, 0},
        Case{0.112, 0.1, 1, 0.223 * 0.0005 / 0.01, 0},
        Case{0.5, 0.1, 1, 0.223 * (0.3 - 0.1115) / 0.01, 0},
        Case{0.5, 0.2, 1, 0.223 * (0.5 - 0.1115) / 0.04, 0}, Case{0.5, 0.05, 1, 4.5, 0},
        Case{-9, 0.05, 1, 0, 4.5}, Case{0.2, 0.1, 0, 0, 0}}) {
    for (std::size_t level = 0; level < internal::kDriftingCount; ++level) {
      DriftSums sums;
      std::vector<double> slopes(internal::kDriftingCount, 0);
      slopes[level] = its.slope;
      sums.Add(RowOf(its.residual, its.sd, slopes));
      for (std::size_t i = 0; i < sums.sums.size(); ++i) {
        const double expected = i == 2 * level ? its.slower : i == 2 * level + 1 ? its.faster : 0;
        EXPECT_NEAR(sums.sums[i], expected, 1e-12) << its.residual << " " << its.sd << " " << i;
        EXPECT_EQ(sums.rows[i], expected > 0 ? 1 : 0) << its.residual << " " << its.sd << " " << i;
      }
      EXPECT_EQ(sums.latest.size(), its.slower + its.faster > 0 ? 1U : 0U);
    }
  }
}

// A sum goes on from row to row, with those without slopes among them, until it is back at nothing;
// rows are kept as long as one sum is of them, and 64 at most.
TEST(DriftSums, KeepTheRowsThatTheyAreOf) {
  DriftSums sums;
  const double step = 0.223 * (0.2 - 0.1115) / 0.01;
  sums.Add(RowOf(0.2, 0.1, {1, 0, 0}));
  sums.Add(RowOf(9, 0.1, {}));
  sums.Add(RowOf(0.2, 0.1, {1, 1, 0}));
  EXPECT_NEAR(sums.sums[0], 2 * step, 1e-12);
  EXPECT_NEAR(sums.sums[2], step, 1e-12);
  EXPECT_EQ(sums.rows[0], 3);
  EXPECT_EQ(sums.rows[2], 1);
  EXPECT_EQ(sums.latest.size(), 3U);
  // Back: -0.2 takes away 0.223 (0.2 + 0.1115) / 0.01 = 6.9.
  sums.Add(RowOf(-0.2, 0.1, {1, 0, 0}));
  EXPECT_EQ(sums.sums[0], 0);
  EXPECT_EQ(sums.rows[0], 0);
  EXPECT_NEAR(sums.sums[1], step, 1e-12);
  EXPECT_EQ(sums.rows[2], 2) << "of a level that the row says nothing of";
  ASSERT_EQ(sums.latest.size(), 2U);
  EXPECT_EQ(sums.latest.front().slopes, (std::vector<double>{1, 1, 0}));
  DriftSums many;
  for (int i = 0; i < 70; ++i) many.Add(RowOf(0.2, 0.1, {0, 0, 1}));
  EXPECT_NEAR(many.sums[4], 70 * step, 1e-9);
  EXPECT_EQ(many.rows[4], 64);
  EXPECT_EQ(many.latest.size(), 64U);
}

TEST(DriftSums, RaiseAnAlarmAboveTwelve) {
  DriftSums sums;
  for (int i = 0; i < 5; ++i) sums.latest.push_back(RowOf(i, 1, {}));
  sums.rows = {5, 0, 0, 2, 0, 1};
  sums.sums = {11, 0, 0, 12, 0, 3};
  EXPECT_FALSE(sums.RowsSinceChange());
  sums.sums[3] = 12.001;
  const auto since = sums.RowsSinceChange();
  ASSERT_TRUE(since);
  ASSERT_EQ(since->size(), 2U);
  EXPECT_EQ(since->front().residual, 3);
  EXPECT_EQ(since->back().residual, 4);
}

// ---- Levels that may have changed.

// By half of pull^2 / information of each; those within 2 of the likeliest.
TEST(LevelsChanged, AreTheLikeliest) {
  const auto levels = [](double of_first) {
    std::vector<int> changed;
    for (const Drifting level : internal::LevelsChanged(
             {RowOf(of_first, 0.1, {1, 0, 0}), RowOf(7, 0.1, {}), RowOf(0.4, 0.1, {1, 1, 0})})) {
      changed.push_back(level);
    }
    return changed;
  };
  // 25 (x + 0.4)^2 of compute, 8 of the network.
  EXPECT_EQ(levels(0.23), (std::vector<int>{0, 1}));   // 9.9
  EXPECT_EQ(levels(0.24), std::vector<int>{0});        // 10.2
  EXPECT_EQ(levels(0.095), (std::vector<int>{0, 1}));  // 6.1
  EXPECT_EQ(levels(0.08), std::vector<int>{1});        // 5.8
  // Rows count by their scatter, and whichever side they are off to.
  EXPECT_EQ(internal::LevelsChanged({RowOf(-0.5, 0.1, {0, 0, 1}), RowOf(0.5, 0.2, {0, 1, 0})}),
            std::vector<Drifting>{internal::kNodeDrift});
}

TEST(SignOf, IsOfTheLevelsOwnParameters) {
  const auto sign = [](Drifting level, std::string_view name) {
    const bool time = name == "fixed_time" || name == "floor_time" || name == "sample_time" ||
                      name == "update_time";
    const bool rate = name == "link_bandwidth" || name == "flow_bandwidth" || name == "server_rate";
    switch (level) {
      case internal::kComputeDrift:
        return time ? 1 : 0;
      case internal::kNetworkDrift:
        return rate ? -1 : 0;
      default:
        return name == "host_bandwidth" ? -1 : 0;
    }
  };
  std::vector<std::string_view> names = {""};
  for (const ParameterSpec& spec : kClusterParameterSpecs) names.push_back(spec.name);
  for (const ParameterSpec& spec : kWorkloadParameterSpecs) names.push_back(spec.name);
  const Eigen::MatrixXd moves = internal::MovesOfChange(internal::kAllDrifting, names);
  const std::vector<Drifting> two = {internal::kNodeDrift, internal::kComputeDrift};
  const Eigen::MatrixXd of_two = internal::MovesOfChange(two, names);
  const Eigen::MatrixXd covariance = of_two * of_two.transpose();
  ASSERT_EQ(moves.rows(), static_cast<Eigen::Index>(names.size()));
  ASSERT_EQ(moves.cols(), 3);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto row = static_cast<Eigen::Index>(i);
    for (const Drifting level : internal::kAllDrifting) {
      EXPECT_EQ(internal::SignOf(level, names[i]), sign(level, names[i])) << names[i];
      EXPECT_EQ(moves(row, level), 0.7 * sign(level, names[i])) << names[i];
    }
    for (std::size_t j = 0; j < names.size(); ++j) {
      double expected = 0;
      for (const Drifting level : two) {
        expected += 0.49 * sign(level, names[i]) * sign(level, names[j]);
      }
      EXPECT_NEAR(covariance(row, static_cast<Eigen::Index>(j)), expected, 1e-12);
    }
  }
}

// ---- Times of a plan.

TEST(ObservedPlan, KeepsItsTimesInOrder) {
  ObservedPlan plan;
  for (const double time : {0.3, 0.1, 0.2, 0.1}) plan.Add(time);
  EXPECT_EQ(plan.rows, 4);
  ASSERT_EQ(plan.times.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(plan.times[i].log_step, 0.1 * static_cast<double>(i + 1));
    EXPECT_EQ(plan.times[i].rows, i == 0 ? 2 : 1);
  }
  plan.Remove(0.14);
  EXPECT_EQ(plan.rows, 3);
  EXPECT_EQ(plan.times[0].rows, 1);
  plan.Remove(0.19);
  EXPECT_EQ(plan.rows, 2);
  ASSERT_EQ(plan.times.size(), 2U);
  EXPECT_DOUBLE_EQ(plan.times[1].log_step, 0.3);
  plan.Remove(9);
  plan.Remove(-9);
  EXPECT_EQ(plan.rows, 0);
  EXPECT_TRUE(plan.times.empty());
  plan.Remove(0.1);
  EXPECT_EQ(plan.rows, 0) << "there was none";
}

// Each row by 1 / (1 + z^2)^(1/2), however many there are at one time.
TEST(ObservedPlan, IsOffByItsWeightedMean) {
  ObservedPlan plan;
  EXPECT_EQ(plan.MeanResidual(0.1), 0);
  plan.log_step = 2;
  plan.times = {{1.7, 1}, {2.1, 3}};
  const double of_far = 1 / std::sqrt(10.0);
  const double of_near = 3 / std::sqrt(2.0);
  EXPECT_NEAR(plan.MeanResidual(0.1), (0.1 * of_near - 0.3 * of_far) / (of_near + of_far), 1e-12);
}

TEST(Count, EndsAtAThousandMillion) {
  int runs = 5;
  internal::Count(3, &runs);
  EXPECT_EQ(runs, 8);
  internal::Count(999'999'999, &runs);
  EXPECT_EQ(runs, 1'000'000'000);
}

// ---- What an observed row becomes.

// Of a calibration that is as good as certain: a row's own scatter, and what rows of its plan have
// in common as far as the earlier ones have shown it. Slopes by level are those of the step.
TEST(OnlineRows, AreHeldAgainstWhatTheirPlanHasShown) {
  const Workload workload = *FindWorkload("resnet50");
  const Cluster cluster = CalibratedCluster(PlausibleTruth(), 1e-6);
  const BelievedModel model(cluster, workload, T4(), "t4");
  Plan servers = AllreducePlan({1, 1, 1}, 32);
  servers.strategy = Strategy::kPsSync;
  servers.servers = 2;
  for (const Plan& plan :
       {AllreducePlan({1}, 32), AllreducePlan({4}, 32), AllreducePlan({2, 2}, 8), servers}) {
    const BelievedModel::Answer answer = model.Evaluate(plan);
    OnlineState state(cluster, workload, T4(), "t4");
    const auto observe = [&](double log_off) {
      return state.Observe(plan, Seconds(std::exp(answer.log_step + log_off)));
    };
    observe(0.2);
    ASSERT_EQ(state.drift.latest.size(), 1U);
    const DriftSums::Row first = state.drift.latest.back();
    EXPECT_NEAR(first.log_step, answer.log_step + 0.2, 1e-12);
    EXPECT_NEAR(first.residual, 0.2, 1e-9);
    EXPECT_NEAR(first.sd, 0.03, 1e-7);
    ASSERT_EQ(first.slopes.size(), 3U);
    double compute = 0;
    for (const int time : {kFixedTime, kFloorTime, kSampleTime, kUpdateTime}) {
      compute += answer.gradient[Belief::kWorkloadOffset + time];
    }
    EXPECT_NEAR(first.slopes[internal::kComputeDrift], compute, 1e-9);
    EXPECT_NEAR(first.slopes[internal::kNetworkDrift],
                -answer.gradient[kLinkBandwidth] - answer.gradient[kFlowBandwidth] -
                    answer.gradient[kServerRate],
                1e-9);
    EXPECT_NEAR(first.slopes[internal::kNodeDrift], -answer.gradient[kHostBandwidth], 1e-9);

    for (int rows = 1; rows <= 2; ++rows) {
      ObservedPlan before = state.plans.at(0);
      const double variance = state.scatter * state.scatter;
      ASSERT_EQ(before.rows, rows);
      const Observation said = observe(0.19);
      before.log_step = std::log(said.predicted.si());
      const double known = 0.3 * rows / (0.3 * rows + 0.7);
      const DriftSums::Row& row = state.drift.latest.back();
      EXPECT_NEAR(row.residual, said.log_ratio - known * before.MeanResidual(std::sqrt(variance)),
                  1e-9);
      EXPECT_NEAR(row.sd, std::sqrt(variance * (0.7 + 0.3 * (1 - known))), 1e-5);
    }
  }
}

// ---- What was learnt, as a cluster.

// Steps scatter around what is learnt as a quantile of nine tenths of them says, with what was
// known before as ten more.
TEST(LearntCluster, ScattersAsItsRowsDo) {
  const Workload workload = *FindWorkload("resnet50");
  const std::string scope = WorkloadScope(workload, "t4");
  Cluster start = CalibratedCluster(PlausibleTruth(), 0.05);
  start.calibration->residual_log_sd = 0.04;
  start.calibration->scatter[kAllScope] = {0.05, 0.2};
  OnlineState state(start, workload, T4(), "t4");
  Noise noise(3);
  const SyntheticProblem synthetic(PlausibleTruth());
  std::vector<std::pair<Plan, double>> rows;
  for (int i = 0; i < 40; ++i) {
    const Plan plan = AllreducePlan(i % 2 == 0 ? Placement{1} : Placement{2, 2}, 8 + i % 5);
    rows.emplace_back(plan,
                      std::log(synthetic.TrueStep("resnet50", plan).si()) + 0.045 * noise.Next());
    state.Observe(plan, Seconds(std::exp(rows.back().second)));
  }
  const Cluster learnt = state.Learnt();
  const BelievedModel model(learnt, workload, T4(), "t4");
  std::vector<Deviation> off;
  std::vector<Deviation> in_parts;
  for (const auto& [plan, log_step] : rows) {
    const BelievedModel::Answer answer = model.Evaluate(plan);
    off.push_back({std::abs(log_step - answer.log_step), 1});
    in_parts.push_back(
        {off.back().size / std::hypot(0.05 * (1 - answer.sync_share), 0.2 * answer.sync_share), 1});
  }
  const Calibration& calibration = *learnt.calibration;
  EXPECT_NEAR(calibration.residual_log_sd, ScatterOf(off, 0.9, 0.04), 1e-9);
  const double factor = ScatterOf(in_parts, 0.9, 1);
  EXPECT_NEAR(calibration.scatter.at(scope).compute, 0.05 * factor, 1e-9);
  EXPECT_NEAR(calibration.scatter.at(scope).sync, 0.2 * factor, 1e-9);
  EXPECT_EQ(calibration.scatter.at(kAllScope).compute, 0.05);

  // Who goes on from it counts on where it ended.
  ASSERT_EQ(calibration.sources.size(), 2U);
  EXPECT_EQ(calibration.sources[0].file, "synthetic.csv");
  EXPECT_EQ(calibration.sources[1].file, "observed steps");
  EXPECT_EQ(calibration.sources[1].runs, 40);
  OnlineState next(learnt, workload, T4(), "t4");
  for (int i = 0; i < 3; ++i) next.Observe(rows[0].first, Seconds(std::exp(rows[0].second)));
  const Cluster after = next.Learnt();
  ASSERT_EQ(after.calibration->sources.size(), 2U);
  EXPECT_EQ(after.calibration->sources[1].runs, 43);
}

// ---- What one job teaches the next.

// Of what the file knows exactly, jobs of one workload differ by 5 %, and workloads not at all.
TEST(FleetDifferences, AreThoseOfJobs) {
  Fleet fleet(CalibratedCluster(PlausibleTruth(), 1e-3));
  const Plan plan = AllreducePlan({1, 1}, 32);
  const SyntheticProblem synthetic(PlausibleTruth());
  fleet.Add("first", *FindWorkload("resnet50"), T4())
      ->Observe(plan, synthetic.TrueStep("resnet50", plan));
  for (const char* workload : {"resnet50", "bert_base"}) {
    const Cluster next = fleet.ClusterFor(*FindWorkload(workload), T4());
    const bool same = workload == std::string("resnet50");
    const std::string own = WorkloadScope(*FindWorkload(workload), "t4");
    int seen = 0;
    for (const ParameterEstimate& e : next.calibration->parameters) {
      if (e.scope != kClusterScope && e.scope != own) continue;
      ++seen;
      EXPECT_NEAR(e.log_sd, same ? std::hypot(0.05, 1e-3) : 1e-3, 2e-5) << e.scope << " " << e.name;
    }
    EXPECT_EQ(seen, int{kClusterParameterCount} + int{kWorkloadParameterCount}) << workload;
  }
}

}  // namespace
}  // namespace stepcast
