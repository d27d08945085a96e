// Values that somebody fixed and priors that somebody gave.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/calibrate.h"
#include "calibrate/parameter_layout.h"
#include "model/compute/sheet_compute.h"
#include "model/step/belief.h"
#include "model/step/priors.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

using Statements = std::vector<ParameterStatement>;

ParameterStatement Fixed(const std::string& name, double si, const std::string& workload = "") {
  return {name, workload, si, std::nullopt, "the notebook"};
}

ParameterStatement Within(const std::string& name, double si, double factor,
                          const std::string& workload = "") {
  return {name, workload, si, factor, "the notebook"};
}

SyntheticProblem Campaign(const Statements& statements) {
  SyntheticProblem synthetic(PlausibleTruth());
  AddCampaign(&synthetic, {{1}, {2}, {1, 1}, {1, 1, 1}, {2, 2}}, 0.03, 1);
  synthetic.problem().statements = statements;
  return synthetic;
}

CalibrationOutcome Fit(const CalibrationProblem& problem) {
  CalibrationOutcome outcome = Calibrate(problem);
  EXPECT_EQ(outcome.status, CalibrationOutcome::Status::kConverged) << outcome.message;
  return outcome;
}

std::size_t IndexOf(const CalibrationOutcome& outcome, const std::string& scope,
                    const std::string& name) {
  const std::vector<ParameterEstimate>& all = outcome.cluster.calibration->parameters;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].scope == scope && all[i].name == name) return i;
  }
  throw std::logic_error("no parameter " + scope + " " + name);
}

const ParameterEstimate& Find(const CalibrationOutcome& outcome, const std::string& scope,
                              const std::string& name) {
  return outcome.cluster.calibration->parameters[IndexOf(outcome, scope, name)];
}

// ---- Fixed values.

TEST(FixedValues, StayExactly) {
  const Statements statements = {
      Fixed("flow_bandwidth", GigabitsPerSecond(3.0).si()), Fixed("overlap_share", 0.31),
      Fixed("fixed_time", 0.015, "resnet50"), Fixed("loss_timeout", 0.3)};
  const CalibrationOutcome outcome = Fit(Campaign(statements).problem());
  struct Expected {
    const char* scope;
    const char* name;
    double value;
  };
  const Eigen::MatrixXd& covariance = outcome.cluster.calibration->log_covariance;
  for (const Expected& e :
       {Expected{"cluster", "flow_bandwidth", 3}, Expected{"cluster", "overlap_share", 0.31},
        Expected{"workload resnet50 on t4", "fixed_time", 15},
        Expected{"cluster", "loss_timeout", 300}}) {
    const ParameterEstimate& p = Find(outcome, e.scope, e.name);
    EXPECT_NEAR(p.value, e.value, 1e-12 * e.value) << e.name;
    EXPECT_EQ(p.log_sd, 0) << e.name;
    EXPECT_EQ(p.decided_by, DecidedBy::kStated) << e.name;
    EXPECT_EQ(p.prior_source, "the notebook") << e.name;
    const auto at = static_cast<Eigen::Index>(IndexOf(outcome, e.scope, e.name));
    EXPECT_EQ(covariance.row(at).cwiseAbs().maxCoeff(), 0) << e.name;
    EXPECT_EQ(covariance.col(at).cwiseAbs().maxCoeff(), 0) << e.name;
  }
  // The others are fitted as ever.
  const ParameterEstimate& sample = Find(outcome, "workload resnet50 on t4", "sample_time");
  EXPECT_EQ(sample.decided_by, DecidedBy::kData);
  EXPECT_GT(sample.log_sd, 0);
  EXPECT_EQ(sample.prior_source, "");
  const Belief belief(outcome.cluster, *FindWorkload("resnet50"), std::nullopt, kSyntheticDevice);
  EXPECT_EQ(belief.origin(kOverlapShare), Origin::kStated);
  EXPECT_EQ(belief.log_covariance()(kOverlapShare, kOverlapShare), 0);
  EXPECT_EQ(belief.origin(kLinkLatency), Origin::kFittedPrior);
}

// The truth, told, helps to find the rest.
TEST(FixedValues, LeaveMoreToTheOthers) {
  const Truth truth = PlausibleTruth();
  const CalibrationOutcome without = Fit(Campaign({}).problem());
  const CalibrationOutcome with =
      Fit(Campaign({Fixed("flow_bandwidth", truth.cluster.si[kFlowBandwidth]),
                    Fixed("host_bandwidth", truth.cluster.si[kHostBandwidth])})
              .problem());
  EXPECT_LT(Find(with, "cluster", "hop_spread").log_sd,
            Find(without, "cluster", "hop_spread").log_sd);
}

// The others make the best of a wrong value, and it is still what was said.
TEST(FixedValues, AreBelievedWhateverTheRunsSay) {
  const CalibrationOutcome outcome =
      Fit(Campaign({Fixed("link_bandwidth", GigabitsPerSecond(0.5).si())}).problem());
  EXPECT_NEAR(Find(outcome, "cluster", "link_bandwidth").value, 0.5, 1e-12);
  EXPECT_GT(outcome.mape, 2 * Fit(Campaign({}).problem()).mape);
}

TEST(FixedValues, MayStandAtTheEdgeOfTheirRange) {
  for (const double value : {0.05, 0.95}) {
    const CalibrationOutcome outcome = Fit(Campaign({Fixed("overlap_share", value)}).problem());
    EXPECT_NEAR(Find(outcome, "cluster", "overlap_share").value, value, 1e-12);
    EXPECT_NO_THROW(
        Predictor(outcome.cluster, *FindWorkload("resnet50"), std::nullopt, kSyntheticDevice));
  }
}

TEST(FixedValues, AllOfThem) {
  const Truth truth = PlausibleTruth();
  Statements statements;
  for (std::size_t i = 0; i < kClusterParameterCount; ++i) {
    statements.push_back(Fixed(std::string(kClusterParameterSpecs[i].name), truth.cluster.si[i]));
  }
  for (const auto& [workload, values] : truth.workloads) {
    for (std::size_t i = 0; i < kWorkloadParameterCount; ++i) {
      statements.push_back(
          Fixed(std::string(kWorkloadParameterSpecs[i].name), values.si[i], workload));
    }
  }
  const SyntheticProblem synthetic = Campaign(statements);
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  const Calibration& calibration = *outcome.cluster.calibration;
  for (const ParameterEstimate& p : calibration.parameters) {
    EXPECT_NEAR(p.value / truth.ValueOf(p), 1, 1e-12) << p.scope << " " << p.name;
    EXPECT_EQ(p.decided_by, DecidedBy::kStated);
  }
  EXPECT_EQ(calibration.log_covariance.cwiseAbs().maxCoeff(), 0);
  EXPECT_NEAR(calibration.residual_log_sd, 0.03, 0.01) << "what is left is scatter";
  for (std::size_t i = 0; i < outcome.residuals.size(); ++i) {
    const auto& run = synthetic.problem().runs[i];
    if (UsesServers(run.plan.strategy)) continue;  // synthetic runs have a collective's buckets
    EXPECT_NEAR(outcome.residuals[i].predicted / synthetic.TrueStep(run.workload, run.plan), 1,
                1e-9);
  }
  const Predictor predictor(outcome.cluster, *FindWorkload("resnet50"), std::nullopt,
                            kSyntheticDevice);
  const Prediction p = predictor.Predict(AllreducePlan({1, 1}, 24));
  EXPECT_EQ(p.parameter_log_sd, 0);
  EXPECT_GT(p.log_sd, 0.01);
}

// ---- Priors.

TEST(GivenPriors, AreUsedWhereTheRunsAreSilent) {
  const CalibrationOutcome outcome = Fit(
      Campaign({Within("loss_timeout", 0.05, 1.5), Within("device_latency", 3e-6, 2)}).problem());
  const ParameterEstimate& silent = Find(outcome, "cluster", "loss_timeout");
  EXPECT_NEAR(silent.value, 50, 1e-3);
  EXPECT_NEAR(silent.prior_value, 50, 1e-9);
  EXPECT_NEAR(silent.log_sd, std::log(1.5), 1e-6);
  EXPECT_NEAR(silent.prior_log_sd, std::log(1.5), 1e-12);
  EXPECT_EQ(silent.prior_source, "the notebook");
  EXPECT_EQ(silent.decided_by, DecidedBy::kPrior);
  EXPECT_EQ(Find(outcome, "cluster", "rpc_rounds").prior_source, "") << "nobody spoke of it";
  EXPECT_NEAR(Find(outcome, "cluster", "device_latency").prior_log_sd, std::log(2.0), 1e-12);
}

TEST(GivenPriors, GiveWayToTheRuns) {
  // Three times the truth; within a factor of three it is no contradiction, within 1.01 it is.
  const double wrong = 3 * PlausibleTruth().workloads.at("resnet50").si[kSampleTime];
  const auto fitted = [&](double factor) {
    return Find(Fit(Campaign({Within("sample_time", wrong, factor, "resnet50")}).problem()),
                "workload resnet50 on t4", "sample_time");
  };
  EXPECT_NEAR(fitted(3).value, 5, 0.5);
  EXPECT_EQ(fitted(3).decided_by, DecidedBy::kData);
  EXPECT_NEAR(fitted(1.001).value, 15, 0.5);
  EXPECT_GT(fitted(1.2).value, fitted(3).value);
}

TEST(GivenPriors, TheLastWordCounts) {
  const CalibrationOutcome outcome =
      Fit(Campaign({Fixed("loss_timeout", 0.1), Within("loss_timeout", 0.4, 1.5),
                    Within("rpc_rounds", 0.02, 1.5), Fixed("rpc_rounds", 0.05)})
              .problem());
  EXPECT_NEAR(Find(outcome, "cluster", "loss_timeout").value, 400, 1);
  EXPECT_EQ(Find(outcome, "cluster", "loss_timeout").decided_by, DecidedBy::kPrior);
  EXPECT_NEAR(Find(outcome, "cluster", "rpc_rounds").value, 0.05, 1e-12);
  EXPECT_EQ(Find(outcome, "cluster", "rpc_rounds").decided_by, DecidedBy::kStated);
}

// ---- Whose parameter it is.

TEST(StatementsOfAWorkload, TouchOnlyThatOne) {
  const CalibrationOutcome outcome =
      Fit(Campaign({Fixed("update_time", 0.004, "resnet50")}).problem());
  EXPECT_NEAR(Find(outcome, "workload resnet50 on t4", "update_time").value, 4, 1e-12);
  for (const char* other : {"workload bert_base on t4", "workload resnet18_cifar10 on t4"}) {
    EXPECT_NE(Find(outcome, other, "update_time").decided_by, DecidedBy::kStated);
    EXPECT_EQ(Find(outcome, other, "update_time").prior_source, "");
    EXPECT_NEAR(Find(outcome, other, "update_time").prior_value, 1, 1e-9);
  }
}

TEST(StatementsOfAWorkload, WithoutItsNameTouchAll) {
  const CalibrationOutcome outcome = Fit(Campaign({Fixed("update_time", 0.004)}).problem());
  for (const char* scope :
       {"workload resnet50 on t4", "workload bert_base on t4", "workload resnet18_cifar10 on t4"}) {
    EXPECT_NEAR(Find(outcome, scope, "update_time").value, 4, 1e-12) << scope;
    EXPECT_EQ(Find(outcome, scope, "update_time").decided_by, DecidedBy::kStated);
  }
}

// resnet18 is not resnet18_cifar10.
TEST(StatementsOfAWorkload, NamesAreWhole) {
  const auto error =
      ErrorOf([] { Calibrate(Campaign({Fixed("update_time", 0.004, "resnet18")}).problem()); });
  EXPECT_TRUE(Says(error, "'resnet18/update_time' is no parameter of these runs"));
  EXPECT_TRUE(
      Says(ErrorOf([] { Calibrate(Campaign({Fixed("update_time", 0.004, "resnet5")}).problem()); }),
           "'resnet5/update_time' is no parameter of these runs (did you mean "
           "resnet50/update_time?)"));
}

// The cluster's link is not that of hosts with links of their own.
TEST(StatementsOfTheCluster, LeaveNamedHostsAlone) {
  Truth truth = PlausibleTruth();
  truth.host_links = {{"a", GigabitsPerSecond(9.0)},
                      {"b", GigabitsPerSecond(9.0)},
                      {"c", GigabitsPerSecond(1.0)},
                      {"d", GigabitsPerSecond(1.0)}};
  SyntheticProblem synthetic(truth);
  for (const int batch : SyntheticBatches("resnet50")) {
    synthetic.Add("resnet50", AllreducePlan({1}, batch));
    for (const std::vector<std::string>& hosts :
         {std::vector<std::string>{"a", "b"}, std::vector<std::string>{"c", "d"}}) {
      Plan plan = AllreducePlan({1, 1}, batch);
      plan.hosts = hosts;
      synthetic.Add("resnet50", plan);
    }
  }
  synthetic.problem().statements = {Fixed("link_bandwidth", GigabitsPerSecond(25.0).si())};
  const CalibrationOutcome outcome = Fit(synthetic.problem());
  EXPECT_NEAR(Find(outcome, "cluster", "link_bandwidth").value, 25, 1e-9);
  EXPECT_NEAR(Find(outcome, "hosts c+d", "link_bandwidth").value, 1, 0.1);
  EXPECT_EQ(Find(outcome, "hosts c+d", "link_bandwidth").prior_source, "");
}

// ---- The speed of a device.

// resnet50 runs so fast against what the data sheet lets expect.
constexpr double kReached = 0.6;

SyntheticProblem WithDataSheet(const Statements& statements) {
  Truth truth = PlausibleTruth();
  truth.workloads = {{"resnet50", truth.workloads.at("resnet50")}};
  const FittedCurve<double> curve = SheetCompute(*FindWorkload("resnet50"), T4()).Curve();
  truth.workloads["resnet50"].si[kSampleTime] = curve.per_sample.si() / kReached;
  SyntheticProblem synthetic(truth);
  synthetic.problem().devices = {{kSyntheticDevice, T4()}};
  for (const int batch : SyntheticBatches("resnet50")) {
    for (int i = 0; i < 3; ++i) synthetic.Add("resnet50", AllreducePlan({1}, batch));
  }
  synthetic.problem().statements = statements;
  return synthetic;
}

// The runs show the time of a sample, and through it the efficiency, as far as one workload can:
// half way (both spreads are equal) from what was believed. A prior that knows nothing is no way.
TEST(StatedSpeed, IsThePriorOfTheSpeed) {
  const auto fitted = [](double prior, double factor) {
    const CalibrationOutcome outcome =
        Fit(WithDataSheet({Within("device_speed", prior, factor)}).problem());
    EXPECT_EQ(Find(outcome, "workload resnet50 on t4", "sample_time").decided_by, DecidedBy::kData);
    return Find(outcome, "device t4", "device_speed").value;
  };
  const double as_wide = std::exp(kWorkloadSpeedLogSd);
  EXPECT_NEAR(fitted(1.0, as_wide) / std::sqrt(1.0 * kReached), 1, 0.05);
  EXPECT_NEAR(fitted(2.4, as_wide) / std::sqrt(2.4 * kReached), 1, 0.05);
  EXPECT_NEAR(fitted(0.2, as_wide) / std::sqrt(0.2 * kReached), 1, 0.05);
  EXPECT_NEAR(fitted(2.4, 100) / kReached, 1, 0.05) << "who knows nothing is told by the runs";
}

// A speed that is stated moves what is believed of every workload's time.
TEST(StatedSpeed, MovesTheTimesOfWorkloads) {
  const auto sample_time = [](double efficiency) {
    SyntheticProblem synthetic = WithDataSheet({Fixed("device_speed", efficiency)});
    // One run of one sample says little of the time of many.
    auto& runs = synthetic.problem().runs;
    runs.resize(1);
    runs[0].plan.local_batch = 1;
    const CalibrationOutcome outcome = Fit(synthetic.problem());
    EXPECT_NEAR(Find(outcome, "device t4", "device_speed").value, efficiency, 1e-12);
    return Find(outcome, "workload resnet50 on t4", "sample_time").value;
  };
  EXPECT_GT(sample_time(0.2) / sample_time(0.8), 1.5);
}

// Times around others are as uncertain as both, and a speed that is stated is certain.
TEST(StatedSpeed, LeavesTheSpreadOfTheWorkload) {
  for (const bool is_stated : {false, true}) {
    Statements statements;
    if (is_stated) statements.push_back(Fixed("device_speed", kReached));
    const CalibrationOutcome outcome = Fit(WithDataSheet(statements).problem());
    const auto spread = [&](const char* name) {
      return Find(outcome, "workload resnet50 on t4", name).prior_log_sd;
    };
    const double of_speed = is_stated ? 0 : kDeviceSpeedSpec.prior_log_sd;
    const double of_samples = std::hypot(kWorkloadSpeedLogSd, of_speed);
    EXPECT_NEAR(spread("sample_time"), of_samples, 1e-12) << is_stated;
    EXPECT_NEAR(spread("fixed_time"), kFixedToSheetLogSd, 1e-12) << is_stated;
  }
}

// A workload that nobody ran there is believed to run at the stated speed.
TEST(StatedSpeed, MovesWhatWasNotMeasured) {
  const auto forecast = [](double efficiency) {
    const CalibrationOutcome outcome =
        Fit(WithDataSheet({Fixed("device_speed", efficiency)}).problem());
    const Belief belief(outcome.cluster, *FindWorkload("vgg16"), T4(), kSyntheticDevice);
    EXPECT_EQ(belief.compute(), ComputeBelief::kFromDevice);
    return std::exp(belief.log_value(Belief::kWorkloadOffset + kSampleTime));
  };
  const double sheet = SheetCompute(*FindWorkload("vgg16"), T4()).Curve().per_sample.si();
  for (const double efficiency : {0.2, 0.8}) {
    EXPECT_NEAR(forecast(efficiency) / (sheet / efficiency), 1, 1e-6) << efficiency;
  }
}

// ---- What cannot be stated.

TEST(StatementErrors, AnUnknownNameListsThoseThatThereAre) {
  const auto error = ErrorOf([] { Calibrate(Campaign({Fixed("flow_bandwith", 1e9)}).problem()); });
  EXPECT_TRUE(Says(error,
                   "parameter: 'flow_bandwith' is no parameter of these runs (did you mean "
                   "flow_bandwidth?); allowed: "));
  for (const ParameterSpec& spec : kClusterParameterSpecs) {
    EXPECT_TRUE(Says(error, std::string(spec.name)));
  }
  for (const ParameterSpec& spec : kWorkloadParameterSpecs) {
    EXPECT_TRUE(Says(error, std::string(spec.name)));
  }
  // Each once: node_sync_overhead is not missing because of device_sync_overhead.
  const std::string text = error ? error->allowed() : "";
  EXPECT_EQ(std::count(text.begin(), text.end(), ','),
            int{kClusterParameterCount} + int{kWorkloadParameterCount} - 1)
      << text;
}

TEST(StatementErrors, WhatIsNotTheWorkloads) {
  for (const auto& [name, workload] :
       {std::pair{"flow_bandwidth", "resnet50"}, std::pair{"sample_time", "vgg16"}}) {
    const auto error = ErrorOf(
        [&, n = name, w = workload] { Calibrate(Campaign({Fixed(n, 0.01, w)}).problem()); });
    EXPECT_TRUE(Says(error, std::string("'") + workload + "/" + name + "' is no parameter"));
  }
  // Without a data sheet no device has an efficiency here.
  EXPECT_TRUE(Says(ErrorOf([] { Calibrate(Campaign({Fixed("device_speed", 0.5)}).problem()); }),
                   "'device_speed' is no parameter of these runs"));
}

TEST(StatementErrors, OutOfRange) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const double value : {0.0, -1.0, 0.049, 0.96, kNaN}) {
    for (const bool fixed : {true, false}) {
      const auto error = ErrorOf([&] {
        Calibrate(
            Campaign({fixed ? Fixed("overlap_share", value) : Within("overlap_share", value, 1.5)})
                .problem());
      });
      EXPECT_TRUE(Says(error, "overlap_share: '")) << value;
      EXPECT_TRUE(Says(error, "is out of range")) << value;
      EXPECT_TRUE(Says(error, "0.05 to 0.95")) << value;
    }
  }
  // In its own unit, not in SI.
  const auto error = ErrorOf([] { Calibrate(Campaign({Fixed("link_latency", 2.0)}).problem()); });
  EXPECT_TRUE(Says(error, "link_latency: '2e+06 us' is out of range"));
  EXPECT_TRUE(Says(error, "0.5 to 100000 us"));
}

}  // namespace
}  // namespace stepcast
