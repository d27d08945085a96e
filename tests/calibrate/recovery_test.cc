// Known parameters make runs; the fit has to find the parameters again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "calibrate/calibrate.h"
#include "data/io/machines.h"
#include "model/step/parameter_specs.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"

namespace stepcast {
namespace {

SyntheticProblem Campaign(double noise, std::uint64_t seed) {
  SyntheticProblem synthetic(PlausibleTruth());
  AddCampaign(&synthetic, FittedPlacements(), noise, seed);
  return synthetic;
}

const ParameterEstimate& Find(const CalibrationOutcome& outcome, const std::string& scope,
                              const std::string& name) {
  for (const ParameterEstimate& p : outcome.cluster.calibration->parameters) {
    if (p.scope == scope && p.name == name) return p;
  }
  throw std::logic_error("no parameter " + scope + " " + name);
}

std::set<std::string> Scopes(const CalibrationOutcome& outcome) {
  std::set<std::string> scopes;
  for (const ParameterEstimate& p : outcome.cluster.calibration->parameters) {
    scopes.insert(p.scope);
  }
  return scopes;
}

// The distance from the truth in standard errors, of the side of the interval on which it lies.
double StandardErrors(const ParameterEstimate& p, const Truth& truth) {
  constexpr double kNinetyFivePercent = 1.959964;
  const double distance = std::log(p.value / truth.ValueOf(p));
  const double side = distance > 0 ? std::log(p.value / p.low) : std::log(p.high / p.value);
  return kNinetyFivePercent * distance / side;
}

// ln(predicted / true) of every workload and batch on `placements`, none of which need be fitted.
std::vector<double> Errors(const SyntheticProblem& synthetic, const CalibrationOutcome& outcome,
                           const std::vector<Placement>& placements) {
  std::vector<double> errors;
  for (const auto& [name, workload] : synthetic.problem().workloads) {
    const Predictor predictor(outcome.cluster, workload, std::nullopt, kSyntheticDevice);
    for (const Placement& placement : placements) {
      for (const int batch : SyntheticBatches(name)) {
        const Plan plan = AllreducePlan(placement, batch);
        errors.push_back(
            std::log(predictor.PredictStep(plan).total() / synthetic.TrueStep(name, plan)));
      }
    }
  }
  return errors;
}

double RootMeanSquare(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v * v;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

double Largest(const std::vector<double>& values) {
  double largest = 0;
  for (const double v : values) largest = std::max(largest, std::abs(v));
  return largest;
}

struct NoisyCase {
  double noise;
  std::uint64_t seed;
};

class Recovery : public ::testing::TestWithParam<NoisyCase> {};

TEST_P(Recovery, FindsWhatTheDataDecide) {
  const auto [noise, seed] = GetParam();
  const SyntheticProblem synthetic = Campaign(noise, seed);
  CalibrationOptions follow;
  follow.profiled_plans = 1000;
  const CalibrationOutcome outcome = Calibrate(synthetic.problem(), follow);
  ASSERT_EQ(outcome.status, CalibrationOutcome::Status::kConverged) << outcome.message;

  std::vector<double> distances;
  for (const ParameterEstimate& p : outcome.cluster.calibration->parameters) {
    const double z = StandardErrors(p, synthetic.truth());
    if (p.decided_by != DecidedBy::kData) continue;
    distances.push_back(z);
    EXPECT_LT(std::abs(z), 3) << p.scope << " " << p.name << ": " << p.value << " +- "
                              << 100 * p.log_sd << " %, truth " << synthetic.truth().ValueOf(p);
  }
  EXPECT_GE(distances.size(), 15U) << "of 26: the campaign is made to tell most of them";
  // Honest standard errors: neither always far too large nor too small.
  EXPECT_GT(RootMeanSquare(distances), 0.5);
  EXPECT_LT(RootMeanSquare(distances), 1.5);
  EXPECT_NEAR(outcome.cluster.calibration->residual_log_sd, noise, 0.15 * noise);
}

TEST_P(Recovery, PredictsLayoutsItHasNotSeen) {
  const auto [noise, seed] = GetParam();
  const SyntheticProblem synthetic = Campaign(noise, seed);
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  const std::vector<double> errors = Errors(synthetic, outcome, HeldOutPlacements());
  EXPECT_LT(RootMeanSquare(errors), 0.6 * noise);
  EXPECT_LT(Largest(errors), 2 * noise);
}

// Rows of mixed devices with shares by speed are as good as others: a fit to them alone, beside one
// device by itself, forecasts workers that are all alike.
TEST(MixedDevices, TeachWhatWorkersThatAreAlikeDo) {
  SyntheticProblem synthetic(PlausibleTruth());
  constexpr double kNoise = 0.03;
  Noise noise(5);
  std::vector<Plan> alike;
  for (const int batch : SyntheticBatches("resnet50")) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      synthetic.Add("resnet50", AllreducePlan({1}, batch), kNoise * noise.Next());
    }
    for (const int nodes : {2, 4, 8}) {
      Plan plan = AllreducePlan(Placement(static_cast<std::size_t>(nodes), 1), batch);
      alike.push_back(plan);
      plan.slow_nodes = nodes / 2;
      plan.slow_speed = 0.4;
      for (const int slow_batch : {std::max(1, batch / 4), batch, 2 * batch}) {
        plan.slow_local_batch = slow_batch;
        synthetic.Add("resnet50", plan, kNoise * noise.Next());
      }
    }
  }
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  const Calibration& calibration = *outcome.cluster.calibration;
  EXPECT_LT(calibration.residual_log_sd, 1.5 * kNoise);
  const auto& [scope, batches] = *calibration.range.local_batch.begin();
  EXPECT_EQ(batches.min, 1) << scope;
  EXPECT_EQ(batches.max, 128) << scope;
  const Predictor predictor(outcome.cluster, *FindWorkload("resnet50"), std::nullopt,
                            kSyntheticDevice);
  // Read as equal shares the same rows contradict each other.
  CalibrationProblem unsaid = synthetic.problem();
  for (auto& run : unsaid.runs) run.plan.slow_local_batch.reset();
  const CalibrationOutcome misread = Calibrate(unsaid);
  ASSERT_TRUE(misread.IsUsable()) << misread.message;
  EXPECT_GT(misread.cluster.calibration->residual_log_sd, 5 * calibration.residual_log_sd);
  for (const Plan& plan : alike) {
    const Duration<> truth = synthetic.TrueStep("resnet50", plan);
    EXPECT_NEAR(predictor.PredictStep(plan).total() / truth, 1, 0.06) << plan.local_batch;
  }
}

INSTANTIATE_TEST_SUITE_P(Noise, Recovery,
                         ::testing::Values(NoisyCase{0.03, 1}, NoisyCase{0.045, 2},
                                           NoisyCase{0.06, 3}),
                         [](const auto& its) { return "Seed" + std::to_string(its.param.seed); });

// Beyond the corner where all of an exchange is hidden, hiding more of it changes no step: the
// interval reaches to the end of the range, where the standard error alone would end before it.
TEST(Intervals, ReachTheEndOfTheRangeWhereNoRunHoldsThem) {
  constexpr double kNinetyFivePercent = 1.959964;
  Truth truth = PlausibleTruth();
  truth.cluster.si[kOverlapShare] = 0.7;
  SyntheticProblem synthetic(truth);
  Noise noise(1);
  for (const int batch : SyntheticBatches("bert_base")) {
    for (const Placement& placement : {Placement{1}, Placement{1, 1}}) {
      for (int i = 0; i < 3; ++i) {
        synthetic.Add("bert_base", AllreducePlan(placement, batch), 0.01 * noise.Next());
      }
    }
  }
  CalibrationOptions follow;
  follow.profiled_plans = 1000;
  const CalibrationOutcome outcome = Calibrate(synthetic.problem(), follow);
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  const ParameterEstimate& share = Find(outcome, "cluster", "overlap_share");
  const double end = FindParameterSpec("overlap_share")->high;
  EXPECT_LT(share.value * std::exp(kNinetyFivePercent * share.log_sd), 0.95 * end);
  EXPECT_NEAR(share.high, end, 1e-9);
}

TEST(RecoveryWithoutNoise, MeetsEveryRun) {
  const SyntheticProblem synthetic = Campaign(0, 1);
  CalibrationOptions exact;
  exact.step_log_sd = 0.01;  // by default the priors would still pull the fit
  const CalibrationOutcome outcome = Calibrate(synthetic.problem(), exact);
  ASSERT_EQ(outcome.status, CalibrationOutcome::Status::kConverged) << outcome.message;
  ASSERT_EQ(outcome.residuals.size(), synthetic.problem().runs.size());
  for (std::size_t i = 0; i < outcome.residuals.size(); ++i) {
    // Where one part hides behind another the formula has corners, on which the search may rest.
    EXPECT_LT(std::abs(outcome.residuals[i].log_ratio), 3e-2)
        << synthetic.problem().runs[i].workload << " run " << i;
  }
  EXPECT_LT(outcome.mape, 2e-3);
}

// A few runs that took ten times as long (somebody else used the machine) are not believed.
TEST(RecoveryWithOutliers, HardlyMoves) {
  const SyntheticProblem clean = Campaign(0.03, 1);
  SyntheticProblem spoilt = clean;
  auto& runs = spoilt.problem().runs;
  for (std::size_t i = 7; i < runs.size(); i += runs.size() / 4) {
    runs[i].step_time = runs[i].step_time * 10.0;
  }
  const CalibrationOutcome before = Calibrate(clean.problem());
  const CalibrationOutcome after = Calibrate(spoilt.problem());
  ASSERT_TRUE(before.IsUsable());
  ASSERT_TRUE(after.IsUsable());
  EXPECT_LT(RootMeanSquare(Errors(spoilt, after, HeldOutPlacements())),
            1.5 * RootMeanSquare(Errors(clean, before, HeldOutPlacements())));
  for (std::size_t i = 0; i < before.cluster.calibration->parameters.size(); ++i) {
    const ParameterEstimate& was = before.cluster.calibration->parameters[i];
    const ParameterEstimate& is = after.cluster.calibration->parameters[i];
    EXPECT_LT(std::abs(std::log(is.value / was.value)), 0.5 * was.log_sd)
        << was.scope << " " << was.name << ": " << was.value << " became " << is.value;
  }
  EXPECT_LT(after.cluster.calibration->residual_log_sd, 0.035) << "nor is the scatter theirs";
}

// Steps scatter with heavier tails than a normal law: the interval is as wide as nine tenths of the
// fitted runs are, while the fit itself is weighed by the core of the scatter.
TEST(HeavyTails, NineTenthsOfTheRunsAreInTheInterval) {
  SyntheticProblem synthetic = Campaign(0.02, 9);
  Noise noise(10);
  for (auto& run : synthetic.problem().runs) {
    if (std::abs(noise.Next()) > 1.2) run.step_time = run.step_time * std::exp(0.1 * noise.Next());
  }
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  std::vector<double> deviations;
  for (const RunResidual& r : outcome.residuals) deviations.push_back(std::abs(r.log_ratio));
  std::sort(deviations.begin(), deviations.end());
  const double bound = 1.645 * outcome.cluster.calibration->residual_log_sd;
  const auto inside =
      std::upper_bound(deviations.begin(), deviations.end(), bound) - deviations.begin();
  const double share = static_cast<double>(inside) / static_cast<double>(deviations.size());
  EXPECT_GT(share, 0.88);
  EXPECT_LT(share, 0.93);
  // The law is not normal: one of the same core would be far narrower.
  EXPECT_GT(bound / deviations[deviations.size() / 2], 1.3 * 1.645 / 0.6745);
}

TEST(Determinism, TwoFitsGiveTheSameBytes) {
  const SyntheticProblem synthetic = Campaign(0.05, 4);
  const std::string first = FormatCluster(Calibrate(synthetic.problem()).cluster);
  const std::string second = FormatCluster(Calibrate(synthetic.problem()).cluster);
  EXPECT_EQ(first, second);
  EXPECT_NE(first.find("log_covariance"), std::string::npos);
}

// ---- Hosts with links of their own.

// Four hosts, of which d has negotiated 1 Gbit/s instead of 9; one node has one device.
SyntheticProblem HostProblem() {
  Truth truth = PlausibleTruth();
  for (const char* host : {"a", "b", "c"}) {
    truth.host_links[host] = DataRate<>::FromSi(truth.cluster.si[kLinkBandwidth]);
  }
  truth.host_links["d"] = GigabitsPerSecond(1.0);
  return SyntheticProblem(truth);
}

void AddPair(SyntheticProblem* synthetic, const std::string& one, const std::string& other,
             Noise* noise, double sd) {
  for (const int batch : SyntheticBatches("resnet50")) {
    Plan plan = AllreducePlan({1, 1}, batch);
    plan.hosts = {one, other};
    synthetic->Add("resnet50", plan, sd * noise->Next());
    synthetic->Add("resnet50", AllreducePlan({1}, batch), sd * noise->Next());
  }
}

TEST(Hosts, TheSlowOneIsFound) {
  SyntheticProblem synthetic = HostProblem();
  Noise noise(5);
  for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{
           {"a", "b"}, {"a", "c"}, {"b", "c"}, {"a", "d"}, {"c", "d"}}) {
    AddPair(&synthetic, one, other, &noise, 0.03);
  }
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  const ParameterEstimate& slow = Find(outcome, "hosts d", "link_bandwidth");
  EXPECT_EQ(slow.decided_by, DecidedBy::kData);
  EXPECT_LT(std::abs(StandardErrors(slow, synthetic.truth())), 3);
  for (const char* host : {"a", "b", "c"}) {
    EXPECT_GT(Find(outcome, std::string("hosts ") + host, "link_bandwidth").value, 3 * slow.value);
  }
}

// The facade forecasts a fit's own runs as the fit did, whoever states which link.
TEST(Hosts, AFitForecastsItsOwnRuns) {
  for (const bool stated : {false, true}) {
    for (const bool all_together : {false, true}) {
      Truth truth = PlausibleTruth();
      Cluster cluster = SyntheticCluster();
      for (const char* host : {"a", "b", "c"}) {
        truth.host_links[host] = GigabitsPerSecond(0.3);
        Host named;
        named.name = host;
        if (stated) named.link.bandwidth = GigabitsPerSecond(1.0);
        cluster.hosts.push_back(named);
      }
      SyntheticProblem synthetic(truth, cluster);
      for (const int batch : SyntheticBatches("resnet50")) {
        synthetic.Add("resnet50", AllreducePlan({1}, batch));
        Plan plan = AllreducePlan({1, 1, 1}, batch);
        plan.hosts = {"a", "b", "c"};
        synthetic.Add("resnet50", plan);
        if (all_together) continue;
        plan = AllreducePlan({1, 1}, batch);
        plan.hosts = {"a", "b"};
        synthetic.Add("resnet50", plan);
      }
      const CalibrationOutcome outcome = Calibrate(synthetic.problem());
      ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
      const Predictor predictor(outcome.cluster, synthetic.problem().workloads.at("resnet50"),
                                std::nullopt, kSyntheticDevice);
      for (std::size_t i = 0; i < outcome.residuals.size(); ++i) {
        const Duration<> again = predictor.PredictStep(synthetic.problem().runs[i].plan).total();
        EXPECT_NEAR(again / outcome.residuals[i].predicted, 1, 1e-6)
            << "run " << i << (stated ? ", links stated" : "")
            << (all_together ? ", one group" : "");
        EXPECT_NEAR(again / synthetic.problem().runs[i].step_time, 1, 0.15) << "run " << i;
      }
    }
  }
}

TEST(Hosts, NeverToldApartShareOneLink) {
  SyntheticProblem synthetic = HostProblem();
  Noise noise(6);
  AddPair(&synthetic, "a", "b", &noise, 0.03);
  AddPair(&synthetic, "d", "c", &noise, 0.03);
  const std::set<std::string> scopes = Scopes(Calibrate(synthetic.problem()));
  EXPECT_EQ(scopes.count("hosts a+b"), 1U);
  EXPECT_EQ(scopes.count("hosts c+d"), 1U);
  EXPECT_EQ(scopes.count("hosts a"), 0U);
}

TEST(Hosts, ToldApartGetLinksOfTheirOwn) {
  SyntheticProblem synthetic = HostProblem();
  Noise noise(7);
  AddPair(&synthetic, "a", "b", &noise, 0.03);
  AddPair(&synthetic, "b", "c", &noise, 0.03);
  const std::set<std::string> scopes = Scopes(Calibrate(synthetic.problem()));
  EXPECT_EQ(scopes.count("hosts a"), 1U) << "only b was in both runs";
  EXPECT_EQ(scopes.count("hosts b"), 1U);
  EXPECT_EQ(scopes.count("hosts c"), 1U);
}

TEST(Hosts, RunsWithoutThemFollowTheClustersLink) {
  SyntheticProblem synthetic = HostProblem();
  Noise noise(8);
  const double sd = 0.03;
  AddPair(&synthetic, "c", "d", &noise, sd);  // slow
  for (const Placement& placement : std::vector<Placement>{{1}, {1, 1}, {1, 1, 1}}) {
    for (const int batch : SyntheticBatches("resnet50")) {
      synthetic.Add("resnet50", AllreducePlan(placement, batch), sd * noise.Next());
    }
  }
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  const Predictor predictor(outcome.cluster, synthetic.problem().workloads.at("resnet50"),
                            std::nullopt, kSyntheticDevice);
  for (const int batch : SyntheticBatches("resnet50")) {
    Plan plan = AllreducePlan({1, 1}, batch);
    EXPECT_NEAR(predictor.PredictStep(plan).total() / synthetic.TrueStep("resnet50", plan), 1, sd);
    plan.hosts = {"d", "c"};
    EXPECT_NEAR(predictor.PredictStep(plan).total() / synthetic.TrueStep("resnet50", plan), 1, sd);
  }
}

void ExpectSame(const CalibrationOutcome& a, const CalibrationOutcome& b) {
  ASSERT_EQ(a.status, b.status);
  EXPECT_EQ(a.iterations, b.iterations);
  const Calibration& one = *a.cluster.calibration;
  const Calibration& other = *b.cluster.calibration;
  EXPECT_EQ(one.log_covariance, other.log_covariance);
  ASSERT_EQ(one.parameters.size(), other.parameters.size());
  for (std::size_t i = 0; i < one.parameters.size(); ++i) {
    EXPECT_EQ(one.parameters[i].value, other.parameters[i].value) << one.parameters[i].name;
    EXPECT_EQ(one.parameters[i].low, other.parameters[i].low) << one.parameters[i].name;
    EXPECT_EQ(one.parameters[i].high, other.parameters[i].high) << one.parameters[i].name;
  }
}

// Of intervals that follow the cost, and of many plans, whose sums are made in several parts.
TEST(Calibrate, ThreadsChangeNoBit) {
  SyntheticProblem many(PlausibleTruth());
  Noise noise(5);
  for (int i = 0; i < 1600; ++i) {
    const bool first = i % 2 == 0;
    many.Add(first ? "resnet50" : "bert_base",
             AllreducePlan(Placement(1 + i % 13, 1 + i / 13 % 4), 1 + i / 7), 0.05 * noise.Next());
  }
  for (const SyntheticProblem& synthetic : {Campaign(0.05, 3), many}) {
    CalibrationOptions options;
    const CalibrationOutcome alone = Calibrate(synthetic.problem(), options);
    ASSERT_TRUE(alone.IsUsable());
    for (const int threads : {2, 3, 100}) {
      options.threads = threads;
      ExpectSame(Calibrate(synthetic.problem(), options), alone);
    }
  }
}

}  // namespace
}  // namespace stepcast
