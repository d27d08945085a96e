// A calibration, then runs of a truth of which one thing has changed: the check has to name it.
#include "calibrate/drift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/record/input_error.h"
#include "data/values/workload_scope.h"
#include "model/statistics/f_distribution.h"
#include "model/statistics/normal.h"
#include "model/step/believed_model.h"
#include "model/step/discrepancy.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

using Runs = std::vector<Run>;
using Hosts = std::vector<std::string>;

constexpr double kNoise = 0.04;

const Cluster& Calibrated(std::uint64_t seed = 1) {
  static std::map<std::uint64_t, Cluster> clusters;
  const auto known = clusters.find(seed);
  if (known != clusters.end()) return known->second;
  SyntheticProblem synthetic(PlausibleTruth());
  AddCampaign(&synthetic, FittedPlacements(), kNoise, seed);
  return clusters[seed] = Calibrate(synthetic.problem()).cluster;
}

// 33 runs: of each workload eleven plans, from one device to 32.
Runs NewRuns(const Truth& truth, std::uint64_t seed) {
  SyntheticProblem synthetic(truth);
  Noise noise(seed);
  const std::vector<Placement> placements = {
      {1}, {1}, {2}, {4}, {1, 1}, {2, 2}, {4, 4}, {1, 1, 1, 1}, Placement(8, 1), Placement(8, 4)};
  for (const auto& [workload, values] : truth.workloads) {
    const std::vector<int>& batches = SyntheticBatches(workload);
    std::size_t i = 0;
    for (const Placement& placement : placements) {
      synthetic.Add(workload, AllreducePlan(placement, batches[1 + i++ % 3]),
                    kNoise * noise.Next());
    }
    Plan servers = AllreducePlan({1, 1, 1, 1}, batches[2]);
    servers.strategy = Strategy::kPsSync;
    servers.servers = 2;
    synthetic.Add(workload, servers, kNoise * noise.Next());
  }
  return synthetic.problem().runs;
}

DriftProblem Problem(const Cluster& cluster, Runs runs) {
  DriftProblem problem;
  problem.cluster = cluster;
  problem.runs = std::move(runs);
  for (const Run& run : problem.runs) problem.workloads[run.workload] = *FindWorkload(run.workload);
  return problem;
}

// The first, or an alternative to it, of this name; none where it is not among them.
const ParameterDrift* Find(const DriftReport& report, const std::string& scope,
                           const std::string& name) {
  for (const ParameterDrift& drift : report.drifts) {
    const bool named = &drift == &report.drifts.front() || drift.alternative;
    if (named && drift.scope == scope && drift.name == name) return &drift;
  }
  return nullptr;
}

// ---- One thing has changed.

struct Change {
  const char* title;
  std::string scope;
  std::string name;
  std::function<void(Truth*)> apply;
};

Change OfCluster(const char* title, ClusterParameter parameter, double factor) {
  return {title, kClusterScope,
          std::string(kClusterParameterSpecs[static_cast<std::size_t>(parameter)].name),
          [=](Truth* truth) { truth->cluster.si[parameter] *= factor; }};
}

Change OfWorkload(const char* title, const std::string& workload, WorkloadParameter parameter,
                  double factor) {
  return {title, WorkloadScope(*FindWorkload(workload), kSyntheticDevice),
          std::string(kWorkloadParameterSpecs[static_cast<std::size_t>(parameter)].name),
          [=](Truth* truth) { truth->workloads[workload].si[parameter] *= factor; }};
}

class OneChange : public ::testing::TestWithParam<Change> {};

TEST_P(OneChange, IsNamedWithItsNewValue) {
  const Change& change = GetParam();
  Truth truth = PlausibleTruth();
  change.apply(&truth);
  ParameterEstimate of;
  of.scope = change.scope;
  of.name = change.name;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const DriftReport report = CheckDrift(Problem(Calibrated(seed), NewRuns(truth, 100 + seed)));
    EXPECT_TRUE(report.stale) << report.verdict;
    EXPECT_EQ(report.verdict.rfind("The calibration is stale: ", 0), 0U) << report.verdict;
    const ParameterDrift* drift = Find(report, change.scope, change.name);
    ASSERT_NE(drift, nullptr) << report.verdict;
    EXPECT_NE(report.verdict.find("explains " + std::to_string(report.drifts.front().explained) +
                                  " of " + std::to_string(report.runs) + " runs (" +
                                  std::to_string(report.met) + " without it)"),
              std::string::npos)
        << report.verdict;
    EXPECT_GT(std::abs(drift->z), 3);
    EXPECT_LT(std::abs(std::log(drift->now / truth.ValueOf(of))), 3 * drift->now_log_sd)
        << report.verdict;
    EXPECT_GT(drift->explained, report.met);
    EXPECT_NEAR(drift->now, drift->before * std::exp(drift->log_shift), 1e-9 * drift->now);
    // A shift that is not so large that single runs count for all they may is as many standard
    // errors as the fall of the cost says, or nearly.
    if (std::abs(drift->log_shift) > 1) continue;
    EXPECT_LT(std::abs(std::log(std::abs(drift->log_shift / (drift->log_sd * drift->z)))),
              std::log(6.0))
        << drift->log_shift << " +- " << drift->log_sd << ", z " << drift->z;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Drift, OneChange,
    ::testing::Values(OfCluster("LinkToANinth", kLinkBandwidth, 1.0 / 9),
                      OfCluster("LinkHalved", kLinkBandwidth, 0.5),
                      OfCluster("FlowHalved", kFlowBandwidth, 0.5),
                      OfCluster("FlowDoubled", kFlowBandwidth, 2),
                      OfCluster("HostHalved", kHostBandwidth, 0.5),
                      OfCluster("ScalingFourfold", kHopSpread, 4),
                      OfCluster("ContentionFivefold", kHostContention, 5),
                      OfCluster("OverlapHalved", kOverlapShare, 0.5),
                      OfWorkload("SampleTimeMore", "resnet50", kSampleTime, 1.25),
                      OfWorkload("SampleTimeLess", "bert_base", kSampleTime, 0.75),
                      OfWorkload("SpreadThreefold", "resnet18_cifar10", kStragglerSpread, 3)),
    [](const auto& its) { return its.param.title; });

// A driver that slows everything: the device's efficiency, rather than one workload after another.
TEST(DriftOfADevice, IsTheDevices) {
  SyntheticProblem campaign(PlausibleTruth());
  campaign.problem().devices[kSyntheticDevice] = T4();
  AddCampaign(&campaign, FittedPlacements(), kNoise, 1);
  const Cluster cluster = Calibrate(campaign.problem()).cluster;
  Truth truth = PlausibleTruth();
  for (auto& [name, workload] : truth.workloads) {
    for (const int i : {kFloorTime, kSampleTime, kUpdateTime}) workload.si[i] *= 1.25;
  }
  DriftProblem problem = Problem(cluster, NewRuns(truth, 2));
  problem.devices[kSyntheticDevice] = T4();
  const DriftReport report = CheckDrift(problem);
  ASSERT_FALSE(report.drifts.empty()) << report.verdict;
  const ParameterDrift& first = report.drifts.front();
  EXPECT_EQ(first.name, "device_speed") << report.verdict;
  EXPECT_EQ(first.scope, "device t4");
  EXPECT_NEAR(first.log_shift, std::log(1 / 1.25), 3 * first.log_sd);
}

// A cable: host d went from the cluster's link to 1 Gbit/s. As calibrated the link holds nothing
// back (the flow does), so that the change is invisible to derivatives there.
TEST(DriftOfAHost, IsTheHosts) {
  Truth truth = PlausibleTruth();
  for (const char* host : {"a", "b", "c", "d"}) {
    truth.host_links[host] = DataRate<>::FromSi(truth.cluster.si[kLinkBandwidth]);
  }
  Cluster bare = SyntheticCluster();
  for (const char* name : {"a", "b", "c", "d"}) {
    Host host;
    host.name = name;
    bare.hosts.push_back(host);
  }
  const auto pairs = [](const Truth& of, const Cluster& cluster, std::uint64_t seed) {
    SyntheticProblem synthetic(of, cluster);
    Noise noise(seed);
    for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{
             {"a", "b"}, {"a", "c"}, {"b", "c"}, {"a", "d"}, {"c", "d"}}) {
      for (const int batch : SyntheticBatches("resnet50")) {
        Plan plan = AllreducePlan({1, 1}, batch);
        plan.hosts = {one, other};
        synthetic.Add("resnet50", plan, 0.03 * noise.Next());
        synthetic.Add("resnet50", AllreducePlan({1}, batch), 0.03 * noise.Next());
      }
    }
    return synthetic;
  };
  const Cluster cluster = Calibrate(pairs(truth, bare, 1).problem()).cluster;
  EXPECT_FALSE(CheckDrift(Problem(cluster, pairs(truth, bare, 2).problem().runs)).stale);

  truth.host_links["d"] = GigabitsPerSecond(1.0);
  const DriftReport report = CheckDrift(Problem(cluster, pairs(truth, bare, 3).problem().runs));
  ASSERT_FALSE(report.drifts.empty()) << report.verdict;
  const ParameterDrift& first = report.drifts.front();
  EXPECT_EQ(first.scope, "hosts d") << report.verdict;
  EXPECT_EQ(first.name, "link_bandwidth");
  EXPECT_LT(std::abs(std::log(first.now)), 3 * first.now_log_sd) << report.verdict;
  EXPECT_LT(first.now_log_sd, 0.1);
  // Each run with d is nearer by it, three batches with a and three with c.
  EXPECT_EQ(first.moved, 2 * static_cast<int>(SyntheticBatches("resnet50").size()));
  EXPECT_EQ(first.nearer, first.moved);
}

// Where only one plan is measured, many parameters could be to blame, and are named.
TEST(DriftOnOnePlan, NamesTheAlternatives) {
  Truth truth = PlausibleTruth();
  truth.cluster.si[kLinkBandwidth] *= 0.5;
  SyntheticProblem synthetic(truth);
  Noise noise(1);
  for (int i = 0; i < 12; ++i) {
    synthetic.Add("bert_base", AllreducePlan({1, 1, 1, 1}, 3), kNoise * noise.Next());
  }
  const DriftReport report = CheckDrift(Problem(Calibrated(), synthetic.problem().runs));
  EXPECT_TRUE(report.stale) << report.verdict;
  EXPECT_NE(Find(report, kClusterScope, "link_bandwidth"), nullptr) << report.verdict;
  EXPECT_NE(Find(report, kClusterScope, "hop_spread"), nullptr) << report.verdict;
  EXPECT_NE(report.verdict.find(", or "), std::string::npos) << report.verdict;
  // Each alternative in its order, behind what the first explains, and what they are.
  std::size_t at = report.verdict.find(" without it)");
  for (const ParameterDrift& drift : report.drifts) {
    EXPECT_EQ(drift.alternative, &drift != &report.drifts.front());
    if (!drift.alternative) continue;
    const std::string told = ", or " + drift.name + " of " + drift.scope +
                             (drift.log_shift < 0 ? " fell from " : " rose from ");
    const std::size_t next = report.verdict.find(told, at);
    ASSERT_NE(next, std::string::npos) << report.verdict << " lacks " << told;
    at = next + 1;
  }
  EXPECT_NE(report.verdict.find(", which these runs do not tell from it", at), std::string::npos)
      << report.verdict;
}

// ---- Nothing has changed.

TEST(NoDrift, FalseAlarmsAreRare) {
  int alarms = 0;
  int of_parameters = 0;
  constexpr int kSeeds = 100;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const DriftReport report =
        CheckDrift(Problem(Calibrated(1 + seed % 10), NewRuns(PlausibleTruth(), 1000 + seed)));
    if (!report.stale) {
      EXPECT_EQ(report.verdict, "The calibration still holds: 33 new runs scatter as expected.");
      EXPECT_TRUE(report.drifts.empty());
      continue;
    }
    ++alarms;
    if (!report.drifts.empty()) ++of_parameters;
  }
  std::cout << alarms << " false alarms in " << kSeeds << ", " << of_parameters
            << " of them name a parameter\n";
  EXPECT_LE(alarms, kSeeds / 20);
}

// Runs that scatter more than the calibrated ones do so by as many of their standard deviations,
// not by the square of that.
// Of runs, however many plans they are of.
TEST(NoDrift, IsTheMeanOfAllRuns) {
  SyntheticProblem synthetic(PlausibleTruth());
  for (const double log_noise : {0.1, 0.3, 0.2}) {
    synthetic.Add("resnet50", AllreducePlan({1}, 8), log_noise);
  }
  synthetic.Add("resnet50", AllreducePlan({2, 2}, 8), -0.2);
  const Cluster cluster = CalibratedCluster(PlausibleTruth());
  EXPECT_NEAR(CheckDrift(Problem(cluster, synthetic.problem().runs)).mean_log_ratio, 0.1, 1e-9);
}

// Links that carry four times as much as they did are named, but with no more than their port.
TEST(DriftOfLinks, IsNoneBeyondThePort) {
  for (const bool of_hosts : {false, true}) {
    for (const bool with_port : {false, true}) {
      Truth before = PlausibleTruth();
      before.cluster.si[kFlowBandwidth] *= 20;
      const Hosts hosts = {"a", "b", "c", "d"};
      if (of_hosts) {
        for (const std::string& host : hosts) before.host_links[host] = GigabitsPerSecond(9.0);
      }
      Cluster cluster = CalibratedCluster(before);
      if (with_port) cluster.link.bandwidth = GigabitsPerSecond(10.0);
      for (Host& host : cluster.hosts) host.link.bandwidth = cluster.link.bandwidth;
      Truth now = before;
      now.cluster.si[kLinkBandwidth] *= 4;
      for (auto& [host, link] : now.host_links) link = link * 4.0;
      SyntheticProblem synthetic(now);
      Noise noise(3);
      for (const int batch : {2, 8, 24, 64}) {
        for (const Placement& placement :
             std::vector<Placement>{{1, 1}, {1, 1, 1}, {1, 1, 1, 1}, {2, 2}}) {
          Plan plan = AllreducePlan(placement, batch);
          if (of_hosts) plan.hosts.assign(hosts.begin(), hosts.begin() + plan.nodes());
          synthetic.Add("resnet50", plan, kNoise * noise.Next());
        }
      }
      const DriftReport report = CheckDrift(Problem(cluster, synthetic.problem().runs));
      bool beyond = false;
      for (const ParameterDrift& drift : report.drifts) {
        if (drift.name == "link_bandwidth") beyond = beyond || drift.now > 10 * (1 + 1e-9);
      }
      EXPECT_EQ(beyond, !with_port) << of_hosts << ": " << report.verdict;
    }
  }
}

// Where each of two hosts has a link of its own, both may be faster: one alone would not be seen,
// as the slower one sets the pace.
TEST(DriftOfLinks, OfTwoHostsIsThatOfAllLinks) {
  Truth before = PlausibleTruth();
  before.cluster.si[kFlowBandwidth] *= 20;
  for (const char* host : {"a", "b"}) before.host_links[host] = GigabitsPerSecond(9.0);
  const Cluster cluster = CalibratedCluster(before);
  Truth now = before;
  for (auto& [host, link] : now.host_links) link = link * 4.0;
  SyntheticProblem synthetic(now);
  Noise noise(3);
  for (const int batch : {2, 8, 24, 64}) {
    for (const Placement& placement : std::vector<Placement>{{1, 1}, {2, 2}}) {
      Plan plan = AllreducePlan(placement, batch);
      plan.hosts = {"a", "b"};
      synthetic.Add("resnet50", plan, kNoise * noise.Next());
    }
  }
  const DriftReport report = CheckDrift(Problem(cluster, synthetic.problem().runs));
  EXPECT_TRUE(std::any_of(report.drifts.begin(), report.drifts.end(), [](const auto& drift) {
    return drift.scope == "cluster" && drift.name == "link_bandwidth" && drift.now > 20;
  })) << report.verdict;
}

TEST(MoreScatter, IsToldAsAFactor) {
  SyntheticProblem synthetic(PlausibleTruth());
  Noise noise(11);
  const auto scatter = [&](double factor) {
    Runs runs = NewRuns(PlausibleTruth(), 3);
    for (stepcast::Run& run : runs) {
      const Duration<> truth = synthetic.TrueStep(run.workload, run.plan);
      run.step_time = truth * std::exp(factor * kNoise * noise.Next());
    }
    return CheckDrift(Problem(Calibrated(), runs)).scatter;
  };
  // A run counts for three standard deviations at most, which makes it less than twice.
  const double ratio = scatter(2) / scatter(1);
  EXPECT_GT(ratio, 1.3);
  EXPECT_LT(ratio, 2.1);
}

TEST(NoDrift, OneWildRunIsNone) {
  for (const double factor : {0.2, 1.5, 3.0, 20.0}) {
    for (const std::size_t wild : {0U, 6U, 12U, 19U}) {
      Runs runs = NewRuns(PlausibleTruth(), 1);
      runs.resize(20);
      runs[wild].step_time = runs[wild].step_time * factor;
      const DriftReport report = CheckDrift(Problem(Calibrated(), runs));
      EXPECT_FALSE(report.stale) << factor << " in " << wild << ": " << report.verdict;
    }
  }
}

// A wild run does not hide a change either.
TEST(OneWildRun, DoesNotHideAChange) {
  Truth truth = PlausibleTruth();
  truth.cluster.si[kLinkBandwidth] *= 0.5;
  Runs runs = NewRuns(truth, 1);
  runs[3].step_time = runs[3].step_time * 20.0;
  const DriftReport report = CheckDrift(Problem(Calibrated(), runs));
  ASSERT_FALSE(report.drifts.empty());
  EXPECT_EQ(report.drifts.front().name, "link_bandwidth") << report.verdict;
  EXPECT_LT(std::abs(std::log(report.drifts.front().now / 4.5)),
            3 * report.drifts.front().now_log_sd);
}

// ---- Little or nothing is known.

TEST(FewRuns, AreTooFewToTell) {
  Truth truth = PlausibleTruth();
  truth.cluster.si[kLinkBandwidth] *= 0.1;
  Runs runs = NewRuns(truth, 1);
  runs.erase(runs.begin(), runs.begin() + 6);
  runs.resize(2);
  const DriftReport report = CheckDrift(Problem(Calibrated(), runs));
  EXPECT_EQ(report.runs, 2);
  EXPECT_FALSE(report.stale);
  EXPECT_EQ(report.verdict, "Too few runs to tell: there are 2, and it takes at least 4.");
  EXPECT_GT(report.scatter, 1);
}

TEST(FewRuns, NoneAreNone) {
  const DriftReport report = CheckDrift(Problem(Calibrated(), {}));
  EXPECT_EQ(report.runs, 0);
  EXPECT_FALSE(report.stale);
  EXPECT_EQ(report.p_value, 1);
  EXPECT_EQ(report.verdict, "There are no steps to check the calibration with.");
}

// A workload that was never calibrated brings its own, wide, priors: whatever it takes is news.
TEST(NewWorkload, IsNoDriftByItself) {
  Truth truth = PlausibleTruth();
  SyntheticProblem campaign(truth);
  AddCampaign(&campaign, FittedPlacements(), kNoise, 1);
  Runs& runs = campaign.problem().runs;
  runs.erase(std::remove_if(runs.begin(), runs.end(),
                            [](const auto& run) { return run.workload == "bert_base"; }),
             runs.end());
  for (const bool with_device : {false, true}) {
    if (with_device) campaign.problem().devices[kSyntheticDevice] = T4();
    const Cluster cluster = Calibrate(campaign.problem()).cluster;
    DriftProblem problem = Problem(cluster, NewRuns(truth, 4));
    if (with_device) problem.devices[kSyntheticDevice] = T4();
    const DriftReport report = CheckDrift(problem);
    EXPECT_FALSE(report.stale) << report.verdict;

    // What has changed in the cluster is still seen.
    truth.cluster.si[kFlowBandwidth] *= 0.5;
    problem.runs = NewRuns(truth, 4);
    EXPECT_NE(Find(CheckDrift(problem), kClusterScope, "flow_bandwidth"), nullptr);
    truth = PlausibleTruth();
  }
}

TEST(DriftInput, IsChecked) {
  DriftProblem problem = Problem(Calibrated(), NewRuns(PlausibleTruth(), 1));
  problem.workloads.erase("resnet50");
  EXPECT_THROW(CheckDrift(problem), InputError);
  problem = Problem(SyntheticCluster(), NewRuns(PlausibleTruth(), 1));
  EXPECT_TRUE(Says(ErrorOf([&] { CheckDrift(problem); }), "'synthetic' has no calibration"));
}

// ---- Many runs, and the same answer twice.

TEST(ManyRuns, TakeSecondsAndGiveTheSameAnswer) {
  Truth truth = PlausibleTruth();
  truth.cluster.si[kHostBandwidth] *= 0.2;
  SyntheticProblem synthetic(truth);
  Noise noise(1);
  for (int i = 0; i < 10000; ++i) {
    const char* const workload = i % 2 == 0 ? "resnet50" : "bert_base";
    const Placement placement(static_cast<std::size_t>(1 + i % 8), 1 + i / 8 % 4);
    Plan plan = AllreducePlan(placement, 1 + i / 32 % 40);
    plan.accumulation_steps = 1 + i / 2000;
    synthetic.Add(workload, plan, kNoise * noise.Next());
  }
  const DriftProblem problem = Problem(Calibrated(), synthetic.problem().runs);
  const auto start = std::chrono::steady_clock::now();
  const DriftReport report = CheckDrift(problem);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::cout << "10,000 runs in " << took.count() << " s\n";
  EXPECT_LT(took.count(), 60);
  ASSERT_FALSE(report.drifts.empty());
  EXPECT_EQ(report.drifts.front().name, "host_bandwidth") << report.verdict;
  EXPECT_NEAR(report.drifts.front().now / 1.4, 1, 0.1);
}

// So many runs that hardly any change is by chance.
Runs ManyNewRuns(const Truth& truth) {
  Runs runs;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Runs more = NewRuns(truth, 50 + seed);
    runs.insert(runs.end(), more.begin(), more.end());
  }
  return runs;
}

// What moves all runs by less than half of their scatter would not change a forecast much, however
// surely thousands of them show it.
TEST(ManyRuns, AChangeThatNobodyFeelsIsNoDrift) {
  // Of which each value is known to a hundredth of what fits know.
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  Calibration& calibration = *cluster.calibration;
  calibration.log_covariance *= 1e-4;
  for (ParameterEstimate& e : calibration.parameters) e.log_sd *= 1e-2;
  calibration.range.local_batch[WorkloadScope(*FindWorkload("resnet50"), kSyntheticDevice)] = {
      8, 20'000, 32};
  // New runs scatter about as much more than the fitted ones.
  const double scatter = 1.37 * calibration.residual_log_sd;
  const auto drifts = [&](double shares) {
    Truth truth = PlausibleTruth();
    truth.workloads["resnet50"].si[kSampleTime] *= std::exp(shares * scatter);
    SyntheticProblem synthetic(truth);
    Noise noise(1);
    for (int i = 0; i < 3000; ++i) {
      const Plan plan = AllreducePlan({1}, 10'000 + i);
      // One run in ten is only just within two standard deviations, on either side. The longer of
      // these are no longer so if all runs take longer.
      const bool hardly = i % 10 == 0;
      const double edge = i % 20 == 0 ? 1.75 : -1.75;
      synthetic.Add("resnet50", plan, scatter * (hardly ? edge : 0.7 * noise.Next()));
    }
    return CheckDrift(Problem(cluster, synthetic.problem().runs));
  };
  const DriftReport little = drifts(0.3);
  EXPECT_TRUE(little.drifts.empty()) << little.verdict;
  const DriftReport more = drifts(0.75);
  ASSERT_FALSE(more.drifts.empty()) << more.verdict;
  EXPECT_EQ(more.drifts.front().name, "sample_time") << more.verdict;
}

// The more hosts could be to blame, the surer a change of one of them must be: all hosts together
// raise one false alarm in a hundred, rather than each of them.
TEST(ManyHosts, OneOfThemIsNamedWhenChanceWouldHardlyMakeOneOfAllSo) {
  // Of the smallest change that is named.
  const auto smallest_z = [](int hosts) {
    Truth truth = PlausibleTruth();
    for (int i = 0; i < hosts; ++i) {
      truth.host_links["n" + std::to_string(i)] = GigabitsPerSecond(9.0);
    }
    const Cluster cluster = CalibratedCluster(truth);
    const auto report_of = [&](double log_factor) {
      SyntheticProblem synthetic(truth, cluster);
      for (const Host& host : cluster.hosts) {
        Plan alone = AllreducePlan({1}, 32);
        alone.hosts = {host.name};
        const double slower = host.name == "n0" ? log_factor : 0;
        for (const int sign : {1, -1, 1, -1}) {
          synthetic.Add("resnet50", alone, sign * cluster.calibration->residual_log_sd + slower);
        }
      }
      return CheckDrift(Problem(cluster, synthetic.problem().runs));
    };
    double unnamed = 0;
    double named = 0.5;
    for (int halving = 0; halving < 9; ++halving) {
      const double middle = 0.5 * (unnamed + named);
      (report_of(middle).drifts.empty() ? unnamed : named) = middle;
    }
    const ParameterDrift drift = report_of(named).drifts.at(0);
    EXPECT_EQ(drift.scope, "hosts n0");
    return drift.z;
  };
  // At least three standard deviations, and with a hundred hosts what leaves one in 20,000 to
  // either side.
  EXPECT_NEAR(smallest_z(3), 3.3, 0.3);
  const double of_many = smallest_z(100);
  EXPECT_GT(of_many, 3.89);
  EXPECT_LT(of_many, 4.2);
}

// Nor would what moves so few runs that hardly one of a hundred is met that was not.
TEST(ManyRuns, AChangeOfAFewOfThemIsNoDrift) {
  const double scatter = Calibrated().calibration->residual_log_sd;
  const auto drifts = [&](double shares) {
    Runs runs = ManyNewRuns(PlausibleTruth());
    for (stepcast::Run& run : runs) {
      if (UsesServers(run.plan.strategy))
        run.step_time = run.step_time * std::exp(shares * scatter);
    }
    return CheckDrift(Problem(Calibrated(), runs));
  };
  const DriftReport little = drifts(0.8);
  EXPECT_TRUE(little.drifts.empty()) << little.verdict;
  const DriftReport more = drifts(4);
  EXPECT_FALSE(more.drifts.empty()) << more.verdict;
}

// A fit meets its own runs too well: of N runs and q values that it decided, new ones scatter by
// (N / (N - q))^(1/2) more, which is nothing where N is large.
TEST(MoreScatter, IsJudgedByRunsThatAFitLeftFree) {
  const Runs runs = NewRuns(PlausibleTruth(), 3);
  Cluster cluster = Calibrated();
  const double few = CheckDrift(Problem(cluster, runs)).scatter;
  double decided = 0;
  for (const ParameterEstimate& e : cluster.calibration->parameters) {
    const double kept = e.prior_log_sd > 0 ? e.log_sd / e.prior_log_sd : 1;
    decided += std::max(0.0, 1 - kept * kept);
  }
  double calibrated = 0;
  for (const Calibration::Source& source : cluster.calibration->sources) calibrated += source.runs;
  const double factor = std::sqrt(calibrated / (calibrated - decided));
  ASSERT_GT(factor, 1.05);
  cluster.calibration->sources.front().runs = 1'000'000;
  const double ratio = CheckDrift(Problem(cluster, runs)).scatter / few;
  // The scatter is a part of what parts runs and forecasts.
  EXPECT_GT(ratio, 1 + (factor - 1) / 3);
  EXPECT_LT(ratio, factor * 1.01);
}

// q is the share of each variance that the runs took away: of half the spread three quarters.
TEST(MoreScatter, CountsTheVarianceThatAFitTookAway) {
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  Calibration& calibration = *cluster.calibration;
  for (ParameterEstimate& e : calibration.parameters) e.log_sd = e.prior_log_sd / 2;
  // The formula is exact, and all that a run is off is its own scatter.
  calibration.log_covariance.setZero();
  calibration.repeat_log_sd = calibration.residual_log_sd = 0.03;
  SyntheticProblem synthetic(PlausibleTruth());
  synthetic.Add("resnet50", AllreducePlan({1}, 32), 0.06);
  const double runs = 10 + 100;  // ten that were believed beforehand
  const double decided = 0.75 * static_cast<double>(calibration.parameters.size());
  EXPECT_NEAR(CheckDrift(Problem(cluster, synthetic.problem().runs)).scatter,
              0.06 / (0.03 * std::sqrt(runs / (runs - decided))), 1e-9);
}

// Runs of one plan are apart by what is a run's own: the share of its variance that repeats show,
// from a tenth to all of it.
TEST(MoreScatter, OfRepeatsIsOfWhatIsARunsOwn) {
  for (const auto& [repeats, share] : {std::pair(0.003, 0.1), std::pair(0.015, 0.25),
                                       std::pair(0.024, 0.64), std::pair(0.06, 1.0)}) {
    Cluster cluster = CalibratedCluster(PlausibleTruth());
    Calibration& calibration = *cluster.calibration;
    for (ParameterEstimate& e : calibration.parameters) e.log_sd = e.prior_log_sd;  // none decided
    calibration.log_covariance.setZero();
    calibration.residual_log_sd = 0.03;
    calibration.repeat_log_sd = repeats;
    SyntheticProblem synthetic(PlausibleTruth());
    for (const double off : {-0.015, 0.015}) {
      synthetic.Add("resnet50", AllreducePlan({1}, 32), off);
    }
    EXPECT_NEAR(CheckDrift(Problem(cluster, synthetic.problem().runs)).scatter,
                0.015 / (0.03 * std::sqrt(share)), 1e-9)
        << repeats;
  }
}

// A step that went on for longer than nine tenths of them do, before it was stopped: they scatter,
// and the formula is off beyond the eight nodes that were measured.
TEST(StoppedRuns, AreOverdueBeyondScatterAndDiscrepancy) {
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  // No value was decided by runs: steps scatter as those of the fit, by 0.03.
  for (ParameterEstimate& e : cluster.calibration->parameters) e.log_sd = e.prior_log_sd;
  for (const int nodes : {8, 16}) {
    const double discrepancy = nodes == 16 ? kDiscrepancyPerDoubling : 0;
    for (const double share : {0.98, 1.02}) {
      SyntheticProblem synthetic(PlausibleTruth());
      synthetic.Add("resnet50", AllreducePlan(Placement(static_cast<std::size_t>(nodes), 1), 32),
                    share * kNinetyPercent * std::hypot(0.03, discrepancy));
      synthetic.problem().runs.back().stopped = true;
      const DriftReport report = CheckDrift(Problem(cluster, synthetic.problem().runs));
      EXPECT_EQ(report.stopped, 1);
      EXPECT_EQ(report.overdue, share > 1 ? 1 : 0) << nodes << ", " << share;
    }
  }
}

// ---- By hand.

// All values are known exactly, none was decided by runs, and all that parts a run from its
// forecast is its own scatter of 0.03.
Cluster KnownExactly(const Truth& truth, int calibrated_runs = 100) {
  Cluster cluster = CalibratedCluster(truth);
  Calibration& calibration = *cluster.calibration;
  for (ParameterEstimate& e : calibration.parameters) e.log_sd = e.prior_log_sd;
  calibration.log_covariance.setZero();
  calibration.repeat_log_sd = calibration.residual_log_sd = 0.03;
  calibration.sources.front().runs = calibrated_runs;
  return cluster;
}

// Of runs on one device that are so many times their scatter off.
DriftReport ReportOf(const std::vector<double>& off, int calibrated_runs = 100) {
  SyntheticProblem synthetic(PlausibleTruth());
  for (const double times : off) synthetic.Add("resnet50", AllreducePlan({1}, 32), 0.03 * times);
  return CheckDrift(
      Problem(KnownExactly(PlausibleTruth(), calibrated_runs), synthetic.problem().runs));
}

// One run in two is as far off to either side.
std::vector<double> ToEitherSide(int runs, double times) {
  std::vector<double> off;
  for (int i = 0; i < runs; ++i) off.push_back(i % 2 == 0 ? times : -times);
  return off;
}

// Squares up to that of three; 110 runs, with ten that were believed before, know the scatter.
TEST(DriftByHand, IsADistanceOfRuns) {
  const DriftReport report = ReportOf({0, 1, -1.99, 2.01, 2.9, -3.1, 5});
  const double squares = 1 + 1.99 * 1.99 + 2.01 * 2.01 + 2.9 * 2.9 + 9 + 9;
  EXPECT_EQ(report.runs, 7);
  EXPECT_EQ(report.met, 3) << "within two standard deviations";
  EXPECT_NEAR(report.scatter, std::sqrt(squares / 7), 1e-9);
  EXPECT_NEAR(report.p_value, TailOfF(squares / 7, 7, 0.64 * 110), 1e-9);
  EXPECT_NEAR(report.mean_log_ratio, 0.03 * (1 - 1.99 + 2.01 + 2.9 - 3.1 + 5) / 7, 1e-9);
}

// By more than a quarter, and with less than one chance in a hundred.
TEST(DriftByHand, OfAllRunsBeginsWhereItIsSaidTo) {
  constexpr int kMany = 1'000'000;
  const DriftReport less = ReportOf(ToEitherSide(200, 1.24), kMany);
  EXPECT_LT(less.p_value, 0.001);
  EXPECT_EQ(less.verdict, "The calibration still holds: 200 new runs scatter as expected.");
  EXPECT_EQ(ReportOf(ToEitherSide(200, 1.26), kMany).verdict,
            "The calibration is stale: 200 new runs scatter 1.26 times as far as expected, and the "
            "change of no single parameter explains it.");
  for (const auto& [p, stale] : {std::pair(0.0103, false), std::pair(0.0097, true)}) {
    double low = 1.3;
    double high = 1.95;
    while (high - low > 1e-9) {
      const double middle = (low + high) / 2;
      (TailOfF(middle * middle, 6, 0.64 * (kMany + 10.0)) > p ? low : high) = middle;
    }
    const DriftReport report = ReportOf(ToEitherSide(6, low), kMany);
    EXPECT_NEAR(report.p_value, p, 1e-6);
    EXPECT_EQ(report.stale, stale) << report.verdict;
    EXPECT_TRUE(report.drifts.empty());
  }
}

TEST(DriftByHand, TakesFourRuns) {
  EXPECT_EQ(ReportOf({9}).verdict, "Too few runs to tell: there is 1, and it takes at least 4.");
  EXPECT_EQ(ReportOf({9, 9, 9}).verdict,
            "Too few runs to tell: there are 3, and it takes at least 4.");
  EXPECT_EQ(ReportOf({0, 0, 0, 0}).verdict,
            "The calibration still holds: 4 new runs scatter as expected.");
}

// Runs that follow one change exactly: the fall of L is 5 ln(1 + z^2 / 4) of each, of which 6 count
// for its significance.
TEST(DriftByHand, OfOneValueIsWhatRunsSay) {
  Truth now = PlausibleTruth();
  now.workloads["resnet50"].si[kSampleTime] *= 1.25;
  const SyntheticProblem before(PlausibleTruth());
  SyntheticProblem synthetic(now);
  const Cluster changed = CalibratedCluster(now);
  const BelievedModel model(changed, *FindWorkload("resnet50"), std::nullopt, kSyntheticDevice);
  double fall = 0;
  double information = 0;
  double mean = 0;
  for (const int batch : {12, 16, 20, 24, 32, 40, 48, 64}) {
    const Plan plan = AllreducePlan({1}, batch);
    synthetic.Add("resnet50", plan);
    const double off =
        std::log(synthetic.TrueStep("resnet50", plan) / before.TrueStep("resnet50", plan));
    ASSERT_GT(off / 0.03, 4);
    mean += off / 8;
    fall += 5 * std::log1p(std::pow(off / 0.03, 2) / 4);
    // Of a run that is met each has the weight 5/4.
    const double slope = model.Evaluate(plan).gradient[Belief::kWorkloadOffset + kSampleTime];
    information += 1.25 * slope * slope / (0.03 * 0.03);
  }
  const DriftReport report =
      CheckDrift(Problem(KnownExactly(PlausibleTruth()), synthetic.problem().runs));
  EXPECT_EQ(report.verdict,
            "The calibration is stale: sample_time of workload resnet50 on t4 rose from 5 to 6.25 "
            "ms, which explains 8 of 8 runs (0 without it).");
  EXPECT_NEAR(report.mean_log_ratio, mean, 1e-9);
  EXPECT_GT(report.p_value_after, 0.99);
  EXPECT_LT(report.p_value, 1e-4);
  ASSERT_EQ(report.drifts.size(), 1U);
  const ParameterDrift& drift = report.drifts[0];
  EXPECT_EQ(drift.unit, "ms");
  EXPECT_NEAR(drift.before, 5, 1e-9);
  EXPECT_NEAR(drift.log_shift, std::log(1.25), 5e-4);
  EXPECT_NEAR(drift.z, std::sqrt(8 * 6.0), 1e-2);
  EXPECT_NEAR(drift.improvement, fall, 1e-2);
  EXPECT_NEAR(drift.log_sd, 1 / std::sqrt(information), 1e-3 * drift.log_sd);
  EXPECT_NEAR(drift.now_log_sd, drift.log_sd, 1e-9) << "nothing was unknown of it before";
  EXPECT_EQ(drift.explained, 8);
  EXPECT_EQ(drift.moved, 8);
  EXPECT_EQ(drift.nearer, 8);
  EXPECT_FALSE(drift.alternative);
}

// What scatters more than expected around what explains it has more behind it.
TEST(DriftByHand, SaysWhereMoreMustHaveChanged) {
  Truth now = PlausibleTruth();
  now.workloads["resnet50"].si[kSampleTime] /= 1.25;
  SyntheticProblem synthetic(now);
  for (int i = 0; i < 40; ++i) {
    synthetic.Add("resnet50", AllreducePlan({1}, 20 + i / 2), i % 2 == 0 ? 0.054 : -0.054);
  }
  const DriftReport report =
      CheckDrift(Problem(KnownExactly(PlausibleTruth()), synthetic.problem().runs));
  EXPECT_EQ(report.verdict.rfind("The calibration is stale: sample_time of workload resnet50 on t4 "
                                 "fell from 5 to ",
                                 0),
            0U)
      << report.verdict;
  EXPECT_NE(report.verdict.find("; more must have changed, because they still scatter more than "
                                "expected."),
            std::string::npos)
      << report.verdict;
  EXPECT_LT(report.p_value_after, 0.01);
}

// Of a link that no longer holds anything back no more is known than that; of one that does, its
// rate.
TEST(DriftByHand, SaysWhatIsHardlyKnown) {
  Truth before = PlausibleTruth();
  before.cluster.si[kLinkBandwidth] = GigabitsPerSecond(2.0).si();
  for (const auto& [gbit, says] :
       {std::pair(3.0, "rose from 2 to 3 Gbit/s"), std::pair(200.0, "rose from 2 to at least ")}) {
    Truth now = before;
    now.cluster.si[kLinkBandwidth] = GigabitsPerSecond(gbit).si();
    SyntheticProblem synthetic(now);
    for (const std::size_t nodes : {2, 3, 4}) {
      for (const int batch : {8, 16, 32, 48}) {
        synthetic.Add("resnet50", AllreducePlan(Placement(nodes, 1), batch));
      }
    }
    const DriftReport report = CheckDrift(Problem(KnownExactly(before), synthetic.problem().runs));
    EXPECT_NE(report.verdict.find(std::string("link_bandwidth of cluster ") + says),
              std::string::npos)
        << report.verdict;
  }
}

TEST(Deterministic, TwoChecksAgree) {
  Truth truth = PlausibleTruth();
  truth.cluster.si[kFlowBandwidth] *= 0.6;
  const DriftProblem problem = Problem(Calibrated(), NewRuns(truth, 9));
  const DriftReport one = CheckDrift(problem);
  const DriftReport two = CheckDrift(problem);
  EXPECT_EQ(one.verdict, two.verdict);
  EXPECT_EQ(one.p_value, two.p_value);
  ASSERT_EQ(one.drifts.size(), two.drifts.size());
  for (std::size_t i = 0; i < one.drifts.size(); ++i) {
    EXPECT_EQ(one.drifts[i].now, two.drifts[i].now);
    EXPECT_EQ(one.drifts[i].z, two.drifts[i].z);
  }
}

}  // namespace
}  // namespace stepcast
