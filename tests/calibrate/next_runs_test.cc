// Which runs are worth measuring next: the algebra, the choice, and whether it keeps its promise.
#include "calibrate/next_runs.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "data/plan/check.h"
#include "data/values/workload_scope.h"
#include "model/statistics/normal.h"
#include "model/step/discrepancy.h"
#include "model/step/job_spread.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/wide_csv.h"

namespace stepcast {
namespace {

SyntheticProblem OneWorkload(Truth truth = PlausibleTruth()) {
  truth.workloads = {{"resnet50", truth.workloads.at("resnet50")}};
  return SyntheticProblem(truth);
}

BelievedModel Model(const Cluster& cluster) {
  return {cluster, *FindWorkload("resnet50"), std::nullopt, kSyntheticDevice};
}

// All is known, but for what `uncertain` names with their standard deviations.
Cluster KnownBut(const std::vector<std::pair<std::string, double>>& uncertain) {
  Truth truth = PlausibleTruth();
  truth.workloads = {{"resnet50", truth.workloads.at("resnet50")}};
  Cluster cluster = CalibratedCluster(truth, 0);
  Calibration& calibration = *cluster.calibration;
  for (std::size_t i = 0; i < calibration.parameters.size(); ++i) {
    for (const auto& [name, log_sd] : uncertain) {
      if (calibration.parameters[i].name != name) continue;
      const auto at = static_cast<Eigen::Index>(i);
      calibration.log_covariance(at, at) = log_sd * log_sd;
    }
  }
  return cluster;
}

// ---- The update.

struct Problem {
  Eigen::MatrixXd covariance;
  Eigen::VectorXd gradient;
};

Problem RandomProblem(Noise* noise, Eigen::Index size) {
  Problem problem;
  Eigen::MatrixXd root(size, size);
  for (Eigen::Index i = 0; i < root.size(); ++i) root.data()[i] = noise->Next();
  problem.covariance = root * root.transpose();
  problem.gradient.resize(size);
  for (Eigen::Index i = 0; i < size; ++i) problem.gradient[i] = noise->Next();
  return problem;
}

// Bayes' rule for normal laws: precisions add.
TEST(CovarianceAfter, IsBayesRule) {
  Noise noise(1);
  for (const double variance : {1e-3, 0.1, 10.0}) {
    const auto [covariance, gradient] = RandomProblem(&noise, 5);
    const Eigen::MatrixXd brute =
        (covariance.inverse() + gradient * gradient.transpose() / variance).inverse();
    const Eigen::MatrixXd after = CovarianceAfter(covariance, gradient, variance);
    EXPECT_LT((after - brute).cwiseAbs().maxCoeff(), 1e-7 * covariance.norm());
  }
}

TEST(CovarianceAfter, TwoRunsInEitherOrderAreTheTwoTogether) {
  Noise noise(2);
  const auto [covariance, first] = RandomProblem(&noise, 6);
  const Eigen::VectorXd second = RandomProblem(&noise, 6).gradient;
  const Eigen::MatrixXd forth =
      CovarianceAfter(CovarianceAfter(covariance, first, 0.04), second, 0.3);
  const Eigen::MatrixXd back =
      CovarianceAfter(CovarianceAfter(covariance, second, 0.3), first, 0.04);
  EXPECT_LT((forth - back).cwiseAbs().maxCoeff(), 1e-9 * covariance.norm());
  // Four repeats of a run are one of a quarter of the variance.
  Eigen::MatrixXd repeated = covariance;
  for (int i = 0; i < 4; ++i) repeated = CovarianceAfter(repeated, first, 0.4);
  EXPECT_LT((repeated - CovarianceAfter(covariance, first, 0.1)).cwiseAbs().maxCoeff(),
            1e-9 * covariance.norm());
}

TEST(CovarianceAfter, NeverRaisesAnyVariance) {
  Noise noise(3);
  for (int round = 0; round < 30; ++round) {
    const auto [covariance, gradient] = RandomProblem(&noise, 7);
    const Eigen::MatrixXd after = CovarianceAfter(covariance, gradient, 0.01);
    const Eigen::VectorXd lost = VariancesLost(covariance, gradient, 0.01);
    EXPECT_LT(((covariance - after).diagonal() - lost).cwiseAbs().maxCoeff(),
              1e-12 * covariance.norm());
    for (int probe = 0; probe < 10; ++probe) {
      const Eigen::VectorXd h = RandomProblem(&noise, 7).gradient;
      const double before = h.dot(covariance * h);
      EXPECT_LE(h.dot(after * h), before);
      EXPECT_GE(h.dot(after * h), -1e-9 * before);
    }
    EXPECT_LT(gradient.dot(after * gradient), 0.01) << "it was just measured";
  }
}

TEST(CovarianceAfter, WhatDependsOnNothingTellsNothing) {
  Noise noise(4);
  const Problem problem = RandomProblem(&noise, 4);
  EXPECT_EQ(CovarianceAfter(problem.covariance, Eigen::VectorXd::Zero(4), 0.1), problem.covariance);
}

// ---- What is believed of a plan.

TEST(BelievedModelAnswer, GradientIsThatOfTheStep) {
  Truth truth = PlausibleTruth();
  truth.host_links = {{"a", GigabitsPerSecond(2.0)}, {"b", GigabitsPerSecond(1.0)}};
  const Cluster cluster = CalibratedCluster(truth);
  const BelievedModel model = Model(cluster);
  Plan named = AllreducePlan({1, 1}, 16);
  named.hosts = {"a", "b"};
  Plan servers = AllreducePlan({1, 1, 1}, 16);
  servers.strategy = Strategy::kPsSync;
  servers.servers = 2;
  for (const Plan& plan : {AllreducePlan({1}, 8), AllreducePlan({2, 2, 2}, 16), named, servers}) {
    const BelievedModel::Answer answer = model.Evaluate(plan);
    ASSERT_EQ(answer.gradient.size(), model.belief().log_covariance().rows());
    for (std::size_t i = 0; i < cluster.calibration->parameters.size(); ++i) {
      const ParameterEstimate& p = cluster.calibration->parameters[i];
      const auto log_step = [&](double h) {
        Cluster moved = cluster;
        moved.calibration->parameters[i].value *= std::exp(h);
        return Model(moved).Evaluate(plan).log_step;
      };
      int position = -1;
      for (int k = 0; k < answer.gradient.size(); ++k) {
        const std::string of = p.scope == kClusterScope ? p.name
                               : p.scope.rfind(kHostsScopePrefix, 0) == 0
                                   ? p.name + " of " + p.scope.substr(6)
                                   : p.name + " of " + p.scope.substr(9);
        if (model.belief().NameOf(k) == of) position = k;
      }
      if (position < 0) continue;  // of another workload
      EXPECT_NEAR(answer.gradient[position], (log_step(1e-4) - log_step(-1e-4)) / 2e-4, 1e-5)
          << p.scope << " " << p.name;
    }
  }
}

// ---- The choice.

std::string ScopeOfResnet() { return WorkloadScope(*FindWorkload("resnet50"), kSyntheticDevice); }

// V of the header, for a covariance and a range.
double Variance(const BelievedModel& model, const Plan& target, const Eigen::MatrixXd& covariance,
                const CalibratedRange& range) {
  const BelievedModel::Answer goal = model.Evaluate(target);
  const std::optional<CalibratedRange::BatchRange> batches = range.BatchesOf(ScopeOfResnet());
  return goal.gradient.dot(covariance * goal.gradient) +
         std::pow(model.belief().ScatterAt(goal.sync_share), 2) +
         std::pow(Discrepancy(target, range, batches), 2) +
         JobVariance(model.Facts(target), goal.gradient, OtherJobs(range, batches));
}

TEST(NextRuns, ExpectsWhatTheFormulaSays) {
  const Cluster cluster = KnownBut({{"flow_bandwidth", 0.8}, {"sample_time", 0.3}});
  const BelievedModel model = Model(cluster);
  CalibratedRange range = cluster.calibration->range;
  range.max_nodes = 2;
  range.max_workers = 2;
  range.max_devices_per_node = 1;
  range.local_batch[ScopeOfResnet()] = {16, 64, 0};
  const Plan target = AllreducePlan(Placement(16, 1), 16);
  const Plan run = AllreducePlan({1, 1, 1, 1}, 16);
  const NextRuns next = ChooseNextRuns(model, target, {run}, range, 3);
  ASSERT_EQ(next.runs.size(), 1U) << "each candidate once";

  const Eigen::MatrixXd before = model.belief().log_covariance();
  EXPECT_NEAR(next.log_sd, std::sqrt(Variance(model, target, before, range)), 1e-9);
  const BelievedModel::Answer answer = model.Evaluate(run);
  const double scatter = model.belief().ScatterAt(answer.sync_share);
  const double beyond = Discrepancy(run, range, range.local_batch.at(ScopeOfResnet()));
  EXPECT_NEAR(beyond, kDiscrepancyPerDoubling * std::sqrt(2.0), 1e-12);
  const Eigen::MatrixXd after =
      CovarianceAfter(before, answer.gradient, scatter * scatter + beyond * beyond);
  range.max_nodes = range.max_workers = 4;
  EXPECT_NEAR(next.runs[0].log_sd, std::sqrt(Variance(model, target, after, range)), 1e-9);
  EXPECT_NEAR(std::log(next.runs[0].step_time.in(kSeconds)), answer.log_step, 1e-12);
  EXPECT_NEAR(next.runs[0].device_seconds, 4 * (60 + 100 * std::exp(answer.log_step)), 1e-9);
}

// The width that is said of now is that of the forecast's upper end, and that of then the
// forecast's after a fit that leaves the same uncertain: what runs of an exchange over a link have
// told, up to that link's rate, has no slow end any more.
TEST(NextRuns, ReachAsFarUpAsForecastsDo) {
  constexpr std::optional<double> kNotStated;
  for (const auto& [asked, measured] :
       {std::pair(kNotStated, kNotStated), std::pair(std::optional(4.0), std::optional(4.0)),
        std::pair(std::optional(40.0), std::optional(4.0))}) {
    Cluster cluster = KnownBut({{"flow_bandwidth", 1.5}});
    CalibratedRange& range = cluster.calibration->range;
    range.max_nodes = range.max_workers = range.max_devices_per_node = 1;
    range.exchanges.emplace();
    Plan target = AllreducePlan({1, 1, 1, 1}, 32);
    Plan run = AllreducePlan({1, 1}, 32);
    if (asked) target.link.bandwidth = GigabitsPerSecond(*asked);
    if (measured) run.link.bandwidth = GigabitsPerSecond(*measured);
    const auto forecast = [&](const Cluster& of) {
      const Workload workload = *FindWorkload("resnet50");
      return Predictor(of, workload, std::nullopt, kSyntheticDevice).Predict(target);
    };
    const auto reach = [](const Prediction& p) {
      return std::log(p.high / p.step_time) / kNinetyPercent;
    };
    const BelievedModel model = Model(cluster);
    const NextRuns next = ChooseNextRuns(model, target, {run}, range, 1);
    const Prediction now = forecast(cluster);
    EXPECT_NEAR(next.log_sd, now.log_sd, 1e-9);
    EXPECT_NEAR(next.log_sd_above, reach(now), 1e-9);
    ASSERT_GT(next.log_sd_above, 1.1 * next.log_sd) << "or the case is none";
    ASSERT_EQ(next.runs.size(), 1U);

    const BelievedModel::Answer answer = model.Evaluate(run);
    const double beyond = Discrepancy(run, range, range.local_batch.at(ScopeOfResnet()));
    const double noise = answer.scatter * answer.scatter + beyond * beyond;
    Cluster fitted = cluster;
    fitted.calibration->log_covariance(kFlowBandwidth, kFlowBandwidth) = CovarianceAfter(
        model.belief().log_covariance(), answer.gradient, noise)(kFlowBandwidth, kFlowBandwidth);
    fitted.calibration->range.Include(cluster, run, ScopeOfResnet());
    const Prediction then = forecast(fitted);
    EXPECT_NEAR(next.runs[0].log_sd, then.log_sd, 1e-9);
    EXPECT_NEAR(next.runs[0].log_sd_above, reach(then), 1e-9);
    EXPECT_LT(next.runs[0].log_sd_above, next.log_sd_above);
  }
}

// Where all values are known, a run nearer to the target still makes its forecast surer.
TEST(NextRuns, ARunThatIsNearerTellsByThatAlone) {
  const Cluster cluster = KnownBut({});
  CalibratedRange range = cluster.calibration->range;
  range.max_nodes = range.max_workers = 2;
  range.max_devices_per_node = 1;
  const Plan target = AllreducePlan(Placement(16, 1), 16);
  const NextRuns next =
      ChooseNextRuns(Model(cluster), target, {AllreducePlan(Placement(8, 1), 16)}, range, 1);
  ASSERT_EQ(next.runs.size(), 1U);
  EXPECT_LT(next.runs[0].log_sd, next.log_sd);
}

// Of two that tell nearly the same the cheaper is taken, and what it leaves is said as a factor.
TEST(NextRuns, TakesTheCheaperOfTwoThatTellNearlyTheSame) {
  const Cluster cluster = KnownBut({{"sample_time", 0.5}});
  const BelievedModel model = Model(cluster);
  const CalibratedRange& range = cluster.calibration->range;
  const Plan target = AllreducePlan(Placement(8, 2), 64);
  const Plan little = AllreducePlan({1}, 40);
  const Plan more = AllreducePlan({1}, 64);
  const double after_little = ChooseNextRuns(model, target, {little}, range, 1).runs.at(0).log_sd;
  const double after_more = ChooseNextRuns(model, target, {more}, range, 1).runs.at(0).log_sd;
  ASSERT_GT(after_little, after_more);
  const NextRuns next = ChooseNextRuns(model, target, {more, little}, range, 1);
  ASSERT_EQ(next.runs.size(), 1U);
  EXPECT_EQ(next.runs[0].plan.local_batch, 40);
  const BelievedModel::Answer answer = model.Evaluate(little);
  const double scatter = model.belief().ScatterAt(answer.sync_share);
  const Eigen::MatrixXd after =
      CovarianceAfter(model.belief().log_covariance(), answer.gradient, scatter * scatter);
  Eigen::Index sample = 0;
  while (model.belief().NameOf(static_cast<int>(sample)).rfind("sample_time", 0) != 0) ++sample;
  char within[32];
  std::snprintf(within, sizeof within, "(within %.2fx)",
                std::exp(std::sqrt(after(sample, sample))));
  EXPECT_NE(next.runs[0].tells.find(within), std::string::npos) << next.runs[0].tells << within;
}

TEST(NextRuns, NeverRaiseTheTargetsVariance) {
  SyntheticProblem synthetic = OneWorkload();
  AddCampaign(&synthetic, {{1}, {1, 1}}, 0.05, 1);
  auto& runs = synthetic.problem().runs;
  runs.erase(std::remove_if(runs.begin(), runs.end(),
                            [](const auto& run) { return run.plan.nodes() > 2; }),
             runs.end());
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  const BelievedModel model = Model(outcome.cluster);
  for (const Placement& placement :
       std::vector<Placement>{Placement(16, 4), Placement(3, 1), {1, 1}, {4}, {1}}) {
    for (const int batch : {1, 32, 1024}) {
      const Plan target = AllreducePlan(placement, batch);
      const NextRuns next = ChooseNextRuns(model, target, CandidatePlans(target, {2, 64}),
                                           outcome.cluster.calibration->range, 6);
      EXPECT_LE(next.runs.size(), 6U);
      double last = next.log_sd;
      std::set<std::tuple<Placement, int, Strategy>> seen;
      for (const NextRun& run : next.runs) {
        EXPECT_LT(run.log_sd, last);
        last = run.log_sd;
        EXPECT_TRUE(
            seen.insert({run.plan.placement, run.plan.local_batch, run.plan.strategy}).second)
            << "each candidate once";
      }
      EXPECT_GT(last, model.belief().ScatterAt(model.Evaluate(target).sync_share) * 0.999)
          << "one more step scatters as those before";
    }
  }
}

// The workload's own runs are not there yet: a first batch is not a step back.
TEST(NextRuns, OfAWorkloadWithoutRunsDoNotRaiseItEither) {
  Cluster cluster = KnownBut({{"sample_time", 0.02}, {"flow_bandwidth", 0.3}});
  CalibratedRange range = cluster.calibration->range;
  range.local_batch.clear();
  const BelievedModel model = Model(cluster);
  const Plan target = AllreducePlan({1, 1, 1, 1}, 512);
  const NextRuns next = ChooseNextRuns(
      model, target, {AllreducePlan({1, 1, 1, 1}, 1), AllreducePlan({1, 1}, 2)}, range, 5);
  double last = next.log_sd;
  for (const NextRun& run : next.runs) {
    EXPECT_LT(run.log_sd, last);
    last = run.log_sd;
  }
}

TEST(NextRuns, TakesTheCheaperOfTwoThatTellTheSame) {
  // All plans show the time of a sample; one device takes an eighth of the device-seconds.
  const Cluster cluster = KnownBut({{"sample_time", 0.5}});
  const BelievedModel model = Model(cluster);
  const Plan target = AllreducePlan(Placement(8, 2), 64);
  const Plan cheap = AllreducePlan({1}, 64);
  const Plan dear = AllreducePlan({4, 4}, 64);
  for (const auto& candidates : std::vector<std::vector<Plan>>{{cheap, dear}, {dear, cheap}}) {
    const NextRuns next = ChooseNextRuns(model, target, candidates, cluster.calibration->range, 1);
    ASSERT_EQ(next.runs.size(), 1U);
    EXPECT_EQ(next.runs[0].plan.workers(), 1);
    EXPECT_LT(next.runs[0].log_sd, 0.3 * next.log_sd);
  }
}

TEST(NextRuns, PaysForWhatOnlyTheDearOneTells) {
  const Cluster cluster = KnownBut({{"flow_bandwidth", 1.0}, {"sample_time", 0.05}});
  const BelievedModel model = Model(cluster);
  const Plan target = AllreducePlan(Placement(8, 1), 8);
  const NextRuns next =
      ChooseNextRuns(model, target, {AllreducePlan({1}, 8), AllreducePlan({1, 1, 1, 1}, 8)},
                     cluster.calibration->range, 1);
  ASSERT_EQ(next.runs.size(), 1U);
  EXPECT_EQ(next.runs[0].plan.nodes(), 4);
  EXPECT_EQ(next.runs[0].tells.rfind("flow_bandwidth (within ", 0), 0U) << next.runs[0].tells;
}

TEST(NextRuns, ServersAreDevicesThatWait) {
  const Cluster cluster = KnownBut({{"sample_time", 0.5}});
  Plan plan = AllreducePlan({1, 1}, 64);
  plan.strategy = Strategy::kPsSync;
  plan.servers = 3;
  const NextRuns next = ChooseNextRuns(Model(cluster), plan, {plan}, cluster.calibration->range, 1);
  ASSERT_EQ(next.runs.size(), 1U);
  const double measuring = 60 + 100 * next.runs[0].step_time.in(kSeconds);
  EXPECT_NEAR(next.runs[0].device_seconds, 5 * measuring, 1e-9);
}

TEST(NextRuns, NothingUncertainIsNeverMeasured) {
  const Cluster cluster = KnownBut({{"flow_bandwidth", 1.0}});
  const BelievedModel model = Model(cluster);
  const Plan target = AllreducePlan(Placement(8, 1), 8);
  // One device knows of no flows.
  const std::vector<Plan> blind = {AllreducePlan({1}, 8), AllreducePlan({1}, 64),
                                   AllreducePlan({4}, 32)};
  EXPECT_TRUE(ChooseNextRuns(model, target, blind, cluster.calibration->range, 5).runs.empty());
  // Beside one that does, only that one is chosen.
  std::vector<Plan> candidates = blind;
  candidates.push_back(AllreducePlan(Placement(8, 1), 8));
  const NextRuns next = ChooseNextRuns(model, target, candidates, cluster.calibration->range, 5);
  ASSERT_EQ(next.runs.size(), 1U);
  EXPECT_EQ(next.runs[0].plan.nodes(), 8);
  // Nor is anything where all is known, or nothing that matters is not.
  EXPECT_TRUE(ChooseNextRuns(Model(KnownBut({})), target, candidates, cluster.calibration->range, 5)
                  .runs.empty());
  EXPECT_TRUE(ChooseNextRuns(Model(KnownBut({{"server_rate", 1.0}, {"loss_timeout", 1.0}})), target,
                             candidates, cluster.calibration->range, 5)
                  .runs.empty());
  EXPECT_TRUE(ChooseNextRuns(model, target, {}, cluster.calibration->range, 5).runs.empty());
  EXPECT_TRUE(
      ChooseNextRuns(model, target, candidates, cluster.calibration->range, 0).runs.empty());
}

// ---- On both sides of each bound.

// What measuring a plan takes from the variance of the target's ln(step).
double GainOf(const BelievedModel& model, const Plan& target, const Plan& plan) {
  const Eigen::VectorXd goal = model.Evaluate(target).gradient;
  const BelievedModel::Answer answer = model.Evaluate(plan);
  const Eigen::VectorXd product = model.belief().log_covariance() * answer.gradient;
  const double joint = answer.gradient.dot(product) + answer.scatter * answer.scatter;
  return std::pow(goal.dot(product), 2) / joint;
}

int PositionOf(const BelievedModel& model, const std::string& name) {
  int position = 0;
  while (model.belief().NameOf(position).rfind(name, 0) != 0) ++position;
  return position;
}

// The cheaper of two is taken if it brings half of what the dearer does.
TEST(NextRunBounds, OfWhatACheaperRunMustBring) {
  Cluster cluster = KnownBut({{"sample_time", 0.5}});
  cluster.calibration->residual_log_sd = 3;
  CalibratedRange range = cluster.calibration->range;
  range.local_batch[ScopeOfResnet()] = {1, 256, 0};
  const BelievedModel model = Model(cluster);
  const Plan dear = AllreducePlan({1}, 256);
  const auto share = [&](int batch) {
    return GainOf(model, dear, AllreducePlan({1}, batch)) / GainOf(model, dear, dear);
  };
  int batch = 1;
  while (batch < 256 && share(batch) < 0.5) ++batch;
  ASSERT_GT(batch, 1);
  ASSERT_GT(share(batch - 1), 0.42);
  ASSERT_LT(share(batch), 0.58);
  for (const int cheap : {batch - 1, batch}) {
    const NextRuns next = ChooseNextRuns(model, dear, {dear, AllreducePlan({1}, cheap)}, range, 1);
    ASSERT_EQ(next.runs.size(), 1U);
    EXPECT_EQ(next.runs[0].plan.local_batch, cheap == batch ? batch : 256);
  }
}

// A run that takes away less than a ten-thousandth of the variance is none.
TEST(NextRunBounds, OfWhatIsWorthARun) {
  const Plan plan = AllreducePlan({1}, 64);
  for (const auto& [gain, worth] : {std::pair(0.97e-4, false), std::pair(1.03e-4, true)}) {
    const BelievedModel::Answer answer = Model(KnownBut({})).Evaluate(plan);
    const double slope = answer.gradient[PositionOf(Model(KnownBut({})), "sample_time")];
    // x^2 / (x + s^2) of it, x what the value's variance makes of the step's.
    const double x =
        0.5 * (gain + std::sqrt(gain * gain + 4 * gain * answer.scatter * answer.scatter));
    const Cluster cluster = KnownBut({{"sample_time", std::sqrt(x) / slope}});
    ASSERT_NEAR(GainOf(Model(cluster), plan, plan), gain, 1e-9);
    const NextRuns next =
        ChooseNextRuns(Model(cluster), plan, {plan}, cluster.calibration->range, 1);
    EXPECT_EQ(next.runs.size(), worth ? 1U : 0U) << gain;
  }
}

// Of what a run tells: the three values whose variance falls most, by a tenth at least.
TEST(NextRunBounds, OfWhatARunTells) {
  const Plan plan = AllreducePlan({1}, 16);
  const auto tells = [&](const Cluster& cluster) {
    const NextRuns next =
        ChooseNextRuns(Model(cluster), plan, {plan}, cluster.calibration->range, 1);
    return next.runs.empty() ? "" : next.runs[0].tells;
  };
  const std::vector<std::string> names = {"fixed_time", "floor_time", "sample_time", "update_time"};
  // As surely as these are told, each by itself would move the step by as much.
  std::vector<std::pair<std::string, double>> uncertain;
  const BelievedModel known = Model(KnownBut({}));
  const BelievedModel::Answer answer = known.Evaluate(plan);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double slope = answer.gradient[PositionOf(known, names[i])];
    ASSERT_GT(slope, 0) << names[i];
    const double moves[] = {0.15, 0.1, 0.2, 0.12};
    uncertain.emplace_back(names[i], moves[i] / slope);
  }
  const BelievedModel model = Model(KnownBut(uncertain));
  const Eigen::MatrixXd& before = model.belief().log_covariance();
  const Eigen::MatrixXd after =
      CovarianceAfter(before, answer.gradient, answer.scatter * answer.scatter);
  std::string expected;
  for (const std::size_t i : {2U, 0U, 3U}) {
    const int at = PositionOf(model, names[i]);
    ASSERT_LT(after(at, at), 0.9 * before(at, at));
    char within[64];
    std::snprintf(within, sizeof within, " (within %.2fx)", std::exp(std::sqrt(after(at, at))));
    expected += (expected.empty() ? "" : ", ") + names[i] + " of resnet50 on t4" + within;
  }
  EXPECT_EQ(tells(KnownBut(uncertain)), expected);

  for (const auto& [share, told] : {std::pair(0.097, false), std::pair(0.103, true)}) {
    const double rest = 0.2 * 0.2 + answer.scatter * answer.scatter;
    const double move = std::sqrt(share * rest / (1 - share));
    const std::string said =
        tells(KnownBut({{"sample_time", 0.2 / answer.gradient[PositionOf(known, "sample_time")]},
                        {"fixed_time", move / answer.gradient[PositionOf(known, "fixed_time")]}}));
    EXPECT_EQ(said.rfind("sample_time of resnet50 on t4 (within ", 0), 0U) << said;
    EXPECT_EQ(said.find(", fixed_time of resnet50 on t4") != std::string::npos, told) << said;
  }
}

// Runs of hosts cost what they take, and leave the target as uncertain as it was.
TEST(NextRunBounds, OfRunsOfHosts) {
  const Cluster cluster = KnownBut({{"sample_time", 0.5}});
  const BelievedModel model = Model(cluster);
  Plan target = AllreducePlan({2, 2}, 16);
  NextRuns next;
  next.log_sd = 0.7;
  next.log_sd_above = 0.9;
  AddHostRuns(model, target, {}, {"a", "b"}, &next);
  ASSERT_EQ(next.runs.size(), 2U);
  for (const NextRun& run : next.runs) {
    const double step = std::exp(model.Evaluate(run.plan).log_step);
    EXPECT_NEAR(run.step_time.in(kSeconds), step, 1e-12);
    EXPECT_NEAR(run.device_seconds, 2 * (60 + 100 * step), 1e-9);
    EXPECT_EQ(run.log_sd, 0.7);
    EXPECT_EQ(run.log_sd_above, 0.9);
    EXPECT_EQ(run.tells, "whether " + run.plan.hosts.at(0) + " computes like the others");
    EXPECT_EQ(run.plan.local_batch, 16);
  }
  // What was chosen before is neither chosen again nor forgotten.
  NextRuns more;
  more.log_sd = 0.7;
  more.runs = {next.runs[1]};
  more.runs[0].log_sd = 0.4;
  AddHostRuns(model, target, {}, {"a", "b"}, &more);
  ASSERT_EQ(more.runs.size(), 2U);
  EXPECT_EQ(more.runs[1].plan.hosts, std::vector<std::string>{"a"});
  EXPECT_EQ(more.runs[1].log_sd, 0.4);
  // A message has no compute.
  const BelievedModel message(cluster, Message("message", 1e6), std::nullopt, kSyntheticDevice);
  NextRuns none;
  AddHostRuns(message, target, {}, {"a", "b"}, &none);
  EXPECT_TRUE(none.runs.empty());
}

// All of them: powers of two beyond four nodes, one, two and all devices of the fullest first.
TEST(NextRunBounds, OfCandidates) {
  const auto seen = [](const Plan& target, const CalibratedRange::BatchRange& batches) {
    std::set<std::pair<Placement, int>> plans;
    for (const Plan& plan : CandidatePlans(target, batches)) {
      plans.insert({plan.placement, plan.local_batch});
      EXPECT_EQ(plan.strategy, plan.workers() == 1 ? Strategy::kNone : Strategy::kAllreduce);
    }
    return plans;
  };
  std::set<std::pair<Placement, int>> expected;
  for (const std::size_t nodes : {1, 2, 3, 4, 8, 16, 20}) {
    for (const int devices : {1, 2, 8}) {
      for (const int batch : {15, 60, 24, 48}) expected.insert({Placement(nodes, devices), batch});
    }
  }
  EXPECT_EQ(seen(AllreducePlan(Placement(20, 8), 60), {24, 48}), expected);
  expected.clear();
  for (const int batch : {2, 8}) {
    for (const Placement& placement : std::vector<Placement>{
             {1}, {2}, {4}, {1, 1}, {2, 2}, {4, 3}, {1, 1, 1}, {2, 2, 1}, {4, 3, 1}}) {
      expected.insert({placement, batch});
    }
  }
  EXPECT_EQ(seen(AllreducePlan({3, 1, 4}, 8), {}), expected);
  // Hosts that are named keep their devices.
  Plan named = AllreducePlan({1, 3}, 1);
  named.hosts = {"a", "b"};
  std::set<std::pair<Placement, std::vector<std::string>>> of_hosts;
  for (const Plan& plan : CandidatePlans(named, {})) of_hosts.insert({plan.placement, plan.hosts});
  EXPECT_EQ(of_hosts,
            (std::set<std::pair<Placement, std::vector<std::string>>>{
                {{1}, {"a"}}, {{1, 1}, {"a", "b"}}, {{1, 2}, {"a", "b"}}, {{1, 3}, {"a", "b"}}}));
}

// ---- Candidates.

TEST(CandidatePlans, CanBeMeasuredAndAreNotLargerThanTheTarget) {
  std::vector<Plan> targets;
  for (const Placement& placement : std::vector<Placement>{{1}, {4}, {2, 2}, Placement(16, 8)}) {
    for (const Strategy strategy : {Strategy::kAllreduce, Strategy::kHierarchical,
                                    Strategy::kPsSync, Strategy::kPsAsync, Strategy::kBytePs}) {
      Plan plan = AllreducePlan(placement, 64);
      plan.strategy = strategy;
      if (UsesServers(strategy) || strategy == Strategy::kBytePs) plan.servers = 2;
      targets.push_back(plan);
    }
  }
  targets.push_back(AllreducePlan(Placement(8, 2), 2));
  targets.back().backup_workers = 9;
  for (const Plan& target : targets) {
    ASSERT_NO_THROW(CheckPlan(target));
    const std::vector<Plan> plans = CandidatePlans(target, {16, 32});
    std::set<std::pair<Placement, int>> seen;
    for (const Plan& plan : plans) {
      EXPECT_NO_THROW(CheckPlan(plan)) << StrategyName(target.strategy) << " " << plan.nodes()
                                       << " nodes, " << plan.workers() << " workers";
      EXPECT_LE(plan.nodes(), target.nodes());
      EXPECT_LE(DevicesOnFullestNode(plan.placement), DevicesOnFullestNode(target.placement));
      EXPECT_TRUE(seen.insert({plan.placement, plan.local_batch}).second) << "each once";
      EXPECT_EQ(plan.accumulation_steps, target.accumulation_steps);
      if (plan.workers() > 1) {
        EXPECT_EQ(plan.strategy, target.strategy);
      }
    }
    for (const Placement& placement : {Placement{1}, target.placement}) {
      for (const int batch : {16, 32, target.local_batch, std::max(1, target.local_batch / 4)}) {
        EXPECT_EQ(seen.count({placement, batch}), 1U) << batch;
      }
    }
    if (target.nodes() == 16) {
      for (const std::size_t nodes : {2, 3, 4, 8}) {
        EXPECT_EQ(seen.count({Placement(nodes, 1), 64}), 1U) << nodes;
        EXPECT_EQ(seen.count({Placement(nodes, 8), 64}), 1U) << nodes;
      }
    }
  }
}

TEST(CandidatePlans, WithoutFittedBatchesTakeTheTargets) {
  std::set<int> batches;
  for (const Plan& plan : CandidatePlans(AllreducePlan({1, 1}, 3), {})) {
    batches.insert(plan.local_batch);
  }
  EXPECT_EQ(batches, (std::set<int>{1, 3})) << "a quarter of three is one";
}

// ---- Whether it keeps what it promises.

Truth VariedTruth(std::uint64_t seed) {
  Truth truth = PlausibleTruth();
  Noise noise(seed);
  for (const int p : {kFlowBandwidth, kHostBandwidth, kLinkBandwidth, kHopSpread, kOverlapShare}) {
    truth.cluster.si[static_cast<std::size_t>(p)] *= std::exp(0.2 * noise.Next());
  }
  return truth;
}

// Pairs and single nodes, scattered as synthetic steps are.
SyntheticProblem SmallCampaign(std::uint64_t seed, double scatter) {
  SyntheticProblem synthetic = OneWorkload(VariedTruth(seed));
  Noise noise(seed + 100);
  for (const Placement& placement : std::vector<Placement>{{1}, {2}, {1, 1}, {2, 2}}) {
    for (const int batch : SyntheticBatches("resnet50")) {
      synthetic.Add("resnet50", AllreducePlan(placement, batch), scatter * noise.Next());
    }
  }
  return synthetic;
}

TEST(NextRuns, TheExpectedIntervalIsTheOneThatFollows) {
  constexpr double kScatter = 0.04;
  constexpr int kClusters = 6;
  const Plan target = AllreducePlan(Placement(16, 4), 8);
  double log_ratio = 0;
  double gained = 0;
  for (std::uint64_t seed = 1; seed <= kClusters; ++seed) {
    SyntheticProblem synthetic = SmallCampaign(seed, kScatter);
    const CalibrationOutcome before = Calibrate(synthetic.problem());
    ASSERT_TRUE(before.IsUsable()) << before.message;
    const NextRuns next =
        ChooseNextRuns(Model(before.cluster), target, CandidatePlans(target, {2, 64}),
                       before.cluster.calibration->range, 3);
    ASSERT_FALSE(next.runs.empty());
    Noise noise(seed + 200);
    for (const NextRun& run : next.runs) {
      synthetic.Add("resnet50", run.plan, kScatter * noise.Next());
    }
    const CalibrationOutcome after = Calibrate(synthetic.problem());
    ASSERT_TRUE(after.IsUsable()) << after.message;
    const BelievedModel model = Model(after.cluster);
    const double realised = std::sqrt(
        Variance(model, target, model.belief().log_covariance(), after.cluster.calibration->range));
    const double expected = next.runs.back().log_sd;
    EXPECT_LT(std::abs(std::log(realised / expected)), std::log(2.5))
        << "seed " << seed << ": expected " << expected << ", it is " << realised;
    log_ratio += std::log(realised / expected) / kClusters;
    gained += std::log(next.log_sd / expected) / kClusters;
    // Nor is the interval narrow at the wrong place.
    const double error = model.Evaluate(target).log_step -
                         std::log(synthetic.TrueStep("resnet50", target).in(kSeconds));
    EXPECT_LT(std::abs(error), 3 * realised) << seed;
  }
  EXPECT_LT(std::abs(log_ratio), std::log(1.5)) << "on average off by " << std::exp(log_ratio);
  EXPECT_GT(gained, std::log(1.3)) << "the runs must have been worth it";
}

// Pairs say nothing of a node with two neighbours, nor of how transfers grow with the nodes.
TEST(NextRuns, AThirdNodeIsAskedForWhereOnlyPairsWereMeasured) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const SyntheticProblem synthetic = SmallCampaign(seed, 0.04);
    const CalibrationOutcome outcome = Calibrate(synthetic.problem());
    ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
    const Plan target = AllreducePlan(Placement(16, 4), 8);
    const NextRuns next =
        ChooseNextRuns(Model(outcome.cluster), target, CandidatePlans(target, {2, 64}),
                       outcome.cluster.calibration->range, 2);
    int most = 0;
    for (const NextRun& run : next.runs) most = std::max(most, run.plan.nodes());
    EXPECT_GE(most, 3) << "seed " << seed;
  }
}

}  // namespace
}  // namespace stepcast
