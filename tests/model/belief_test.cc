// What is believed of a workload on a device: from priors, from runs of its own, from others.
#include "model/step/belief.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "data/values/training_facts.h"
#include "data/workloads/catalog.h"
#include "model/compute/sheet_compute.h"
#include "model/step/parameter_specs.h"
#include "model/step/priors.h"
#include "model/step/step_facts.h"
#include "tests/support/devices.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

Workload Resnet50() { return *FindWorkload("resnet50"); }

Device V100() {
  Device device;
  device.name = "v100";
  device.fp32 = TeraflopPerSecond(15.7);
  device.memory_bandwidth = GigabytesPerSecond(900.0);
  return device;
}

const ParameterSpec& SpecOf(const std::string& name) {
  for (const ParameterSpec& spec : kClusterParameterSpecs) {
    if (spec.name == name) return spec;
  }
  for (const ParameterSpec& spec : kWorkloadParameterSpecs) {
    if (spec.name == name) return spec;
  }
  return kDeviceSpeedSpec;
}

// A calibration by hand: parameters one after another, with any covariance.
class Builder {
 public:
  // `value` in the parameter's unit; returns its index.
  int Add(const std::string& scope, const std::string& name, double value, double prior = 1) {
    ParameterEstimate e;
    e.scope = scope;
    e.name = name;
    e.unit = SpecOf(name).unit;
    e.value = value;
    e.prior_value = prior;
    e.decided_by = DecidedBy::kData;
    calibration.parameters.push_back(e);
    const auto size = static_cast<Eigen::Index>(calibration.parameters.size());
    calibration.log_covariance.conservativeResizeLike(Eigen::MatrixXd::Zero(size, size));
    return static_cast<int>(size) - 1;
  }
  void Covariance(int i, int j, double value) {
    calibration.log_covariance(i, j) = calibration.log_covariance(j, i) = value;
  }
  Cluster AsCluster() const {
    Cluster cluster;
    cluster.name = "here";
    cluster.nodes = 16;
    cluster.calibration = calibration;
    return cluster;
  }

  Calibration calibration;
};

constexpr int kSample = Belief::kWorkloadOffset + kSampleTime;
constexpr int kFloor = Belief::kWorkloadOffset + kFloorTime;
constexpr int kFixed = Belief::kWorkloadOffset + kFixedTime;
constexpr int kUpdate = Belief::kWorkloadOffset + kUpdateTime;
constexpr int kSpread = Belief::kWorkloadOffset + kStragglerSpread;

// What the data sheet lets expect of one more sample.
double SheetMs(const Workload& workload, const Device& device) {
  return 1e3 * SheetCompute(workload, device).Curve().per_sample.si();
}

double Ms(double log_si) { return 1e3 * std::exp(log_si); }

// ---- Without a calibration.

TEST(BeliefWithoutRuns, IsThePriors) {
  Cluster cluster;
  cluster.link.bandwidth = GigabitsPerSecond(25.0);
  Host named;
  named.name = "a";
  named.link.bandwidth = GigabitsPerSecond(1.0);
  Host silent;
  silent.name = "b";
  cluster.hosts = {named, silent};
  const Belief belief(cluster, Resnet50(), T4(), "t4");

  const ClusterPriors of_cluster = MakeClusterPriors(cluster, std::nullopt);
  const WorkloadPriors of_workload = MakeWorkloadPriors(Resnet50(), T4());
  const auto expect = [&](int position, const Prior& prior) {
    EXPECT_NEAR(belief.log_value(position), std::log(prior.si), 1e-12) << position;
    EXPECT_NEAR(belief.log_covariance()(position, position), prior.log_sd * prior.log_sd, 1e-12);
    EXPECT_EQ(belief.origin(position), Origin::kPrior) << position;
  };
  for (int i = 0; i < kClusterParameterCount; ++i) {
    expect(i, of_cluster[static_cast<std::size_t>(i)]);
  }
  for (int i = 0; i < kWorkloadParameterCount; ++i) {
    expect(Belief::kWorkloadOffset + i, of_workload[static_cast<std::size_t>(i)]);
  }
  ASSERT_EQ(belief.host_links().size(), 1U) << "b states no bandwidth";
  EXPECT_EQ(belief.host_links()[0].first, "a");
  expect(belief.host_links()[0].second, HostLinkPrior(cluster, T4(), cluster.hosts.front().link));
  Eigen::MatrixXd off_diagonal = belief.log_covariance();
  off_diagonal.diagonal().setZero();
  EXPECT_EQ(off_diagonal.cwiseAbs().maxCoeff(), 0);
  EXPECT_EQ(belief.compute(), ComputeBelief::kDataSheet);
  for (const double share : {0.0, 0.4, 1.0}) EXPECT_NEAR(belief.ScatterAt(share), 0.06, 1e-12);
}

// ---- With runs of its own.

TEST(BeliefWithItsOwnRuns, TakesValuesAndCovarianceInWhateverOrder) {
  Builder b;
  const int sample = b.Add("workload resnet50 on t4", "sample_time", 5);
  const int flow = b.Add("cluster", "flow_bandwidth", 4);
  const int foreign = b.Add("workload vgg16 on t4", "sample_time", 30);
  const int fixed = b.Add("workload resnet50 on t4", "fixed_time", 12);
  b.Covariance(sample, sample, 0.01);
  b.Covariance(flow, flow, 0.04);
  b.Covariance(foreign, foreign, 0.5);
  b.Covariance(fixed, fixed, 0.09);
  b.Covariance(sample, fixed, -0.02);
  b.Covariance(sample, flow, 0.007);
  b.Covariance(sample, foreign, 0.003);
  const Belief belief(b.AsCluster(), Resnet50(), T4(), "t4");

  EXPECT_EQ(belief.compute(), ComputeBelief::kFitted);
  EXPECT_NEAR(Ms(belief.log_value(kSample)), 5, 1e-12);
  EXPECT_NEAR(Ms(belief.log_value(kFixed)), 12, 1e-12);
  EXPECT_NEAR(std::exp(belief.log_value(kFlowBandwidth)), 4e9 / 8, 1e-3);
  const Eigen::MatrixXd& c = belief.log_covariance();
  EXPECT_DOUBLE_EQ(c(kSample, kSample), 0.01);
  EXPECT_DOUBLE_EQ(c(kFixed, kFixed), 0.09);
  EXPECT_DOUBLE_EQ(c(kFlowBandwidth, kFlowBandwidth), 0.04);
  EXPECT_DOUBLE_EQ(c(kSample, kFixed), -0.02);
  EXPECT_DOUBLE_EQ(c(kFixed, kSample), -0.02);
  EXPECT_DOUBLE_EQ(c(kFlowBandwidth, kSample), 0.007);
  EXPECT_EQ(c(kFlowBandwidth, kFixed), 0);
  // What was not fitted stays as it was believed, and is correlated with nothing.
  EXPECT_NEAR(belief.log_value(kFloor),
              std::log(MakeWorkloadPriors(Resnet50(), T4())[kFloorTime].si), 1e-12);
  EXPECT_EQ(belief.origin(kFloor), Origin::kPrior);
  EXPECT_EQ(c.row(kFloor).cwiseAbs().sum(), c(kFloor, kFloor));
  EXPECT_EQ(belief.log_covariance().rows(), Belief::kHostOffset) << "no host has a link";
}

TEST(BeliefWithItsOwnRuns, SaysWhoDecided) {
  struct Case {
    DecidedBy decided_by;
    Origin origin;
  };
  for (const Case& c :
       {Case{DecidedBy::kData, Origin::kFitted}, Case{DecidedBy::kBoth, Origin::kFitted},
        Case{DecidedBy::kPrior, Origin::kFittedPrior}, Case{DecidedBy::kStated, Origin::kStated}}) {
    Builder b;
    b.Add("cluster", "overlap_share", 0.5);
    b.calibration.parameters[0].decided_by = c.decided_by;
    const Belief belief(b.AsCluster(), Resnet50(), T4(), "t4");
    EXPECT_EQ(belief.origin(kOverlapShare), c.origin);
  }
}

TEST(BeliefWithItsOwnRuns, ScattersAsItDoes) {
  Builder b;
  b.Add("workload resnet50 on t4", "sample_time", 5);
  b.calibration.residual_log_sd = 0.11;
  const auto at = [&](const std::string& workload, double share) {
    return Belief(b.AsCluster(), *FindWorkload(workload), T4(), "t4").ScatterAt(share);
  };
  EXPECT_DOUBLE_EQ(at("resnet50", 0), 0.11);
  EXPECT_DOUBLE_EQ(at("resnet50", 1), 0.11);
  b.calibration.scatter["all"] = {0.05, 0.2};
  EXPECT_DOUBLE_EQ(at("resnet50", 0), 0.05);
  EXPECT_DOUBLE_EQ(at("resnet50", 1), 0.2);
  b.calibration.scatter["workload resnet50 on t4"] = {0.03, 0.4};
  EXPECT_DOUBLE_EQ(at("resnet50", 0), 0.03);
  EXPECT_DOUBLE_EQ(at("resnet50", 1), 0.4);
  EXPECT_DOUBLE_EQ(at("resnet50", 0.5), std::hypot(0.015, 0.2));
  EXPECT_DOUBLE_EQ(at("vgg16", 1), 0.2) << "another workload scatters as all do";
}

// Of the exchange, where it crosses a lossy network with TCP and loses packets at all.
TEST(BeliefWithItsOwnRuns, ScattersMoreByLosses) {
  Builder b;
  b.Add("workload resnet50 on t4", "sample_time", 5);
  b.calibration.residual_log_sd = 0.05;
  const Belief belief(b.AsCluster(), Resnet50(), T4(), "t4");
  StepFacts facts;
  facts.nodes = 2;
  facts.workers = 2;
  facts.gradient = Bytes(1448e3);  // 1000 packets
  const auto added = [&](double share) {
    const double all = belief.ScatterOf(facts, share);
    return std::sqrt(all * all - 0.05 * 0.05);
  };
  EXPECT_EQ(belief.ScatterOf(facts, 1), 0.05) << "no loss";
  facts.link.loss = 0.01;
  EXPECT_NEAR(added(1), 0.12 * 10 / 11, 1e-9);
  EXPECT_NEAR(added(0.5), 0.06 * 10 / 11, 1e-9);
  EXPECT_EQ(belief.ScatterOf(facts, 0), 0.05) << "compute loses nothing";
  facts.link.loss = 1e-6;
  EXPECT_NEAR(added(1), 0.12e-3, 1e-6) << "one step of a thousand loses a packet";
  facts.link.loss = 0.01;
  facts.link.transport = Transport::kRdma;
  EXPECT_EQ(belief.ScatterOf(facts, 1), 0.05) << "cards send again by themselves";
  facts.link.transport = Transport::kTcp;
  facts.nodes = 1;
  EXPECT_EQ(belief.ScatterOf(facts, 1), 0.05) << "nothing crosses the network";
  facts.strategy = Strategy::kPsSync;
  facts.servers = 1;
  facts.link.loss.reset();
  facts.server_link.loss = 0.01;
  EXPECT_NEAR(added(1), 0.12 * 10 / 11, 1e-9) << "servers are behind their own link";
}

// ln(share of a stated rate that is reached) is known the less the farther the rate is from those
// of the runs: 0.15 for each doubling, 0.05 for each halving, 0.35 where nothing is known.
TEST(BeliefWithItsOwnRuns, KnowsStatedRatesLessFarFromTheirs) {
  Builder b;
  b.Add("workload resnet50 on t4", "sample_time", 5);
  const auto log_sd = [&](std::optional<double> link, std::optional<double> server) {
    LinkFacts of_link;
    LinkFacts of_server;
    if (link) of_link.bandwidth = GigabitsPerSecond(*link);
    if (server) of_server.bandwidth = GigabitsPerSecond(*server);
    return Belief(b.AsCluster(), Resnet50(), T4(), "t4")
        .StatedShareLogSd(of_link, of_server, kLinkBandwidth);
  };
  EXPECT_EQ(log_sd(10, {}), 0.35) << "no run had a known rate";
  EXPECT_EQ(log_sd({}, {}), 0);
  b.calibration.range.bandwidth = {GigabitsPerSecond(2.0), GigabitsPerSecond(8.0)};
  EXPECT_EQ(log_sd({}, {}), 0);
  for (const double within : {2.0, 5.0, 8.0}) EXPECT_NEAR(log_sd(within, within), 0, 1e-12);
  EXPECT_NEAR(log_sd(16, {}), 0.15, 1e-12);
  EXPECT_NEAR(log_sd(1, {}), 0.05, 1e-12);
  EXPECT_NEAR(log_sd(0.25, {}), 0.15, 1e-12) << "three halvings";
  EXPECT_NEAR(log_sd({}, 0.5), 0.1, 1e-12);
  EXPECT_NEAR(log_sd(0.5, 32), 0.3, 1e-12) << "the farther of the two";
  EXPECT_EQ(log_sd(1000, {}), 0.35) << "no less than where nothing is known";
}

// Runs between hosts whose link was fitted tell how much of the stated rate that link reaches: who
// states the rate with a plan of these hosts knows it no better. Of other hosts, and of a cluster
// whose links stayed on their prior, no such link tells.
TEST(BeliefWithItsOwnRuns, KnowsAStatedRateNoBetterThanTheFittedLink) {
  Builder b;
  b.Add("cluster", "link_bandwidth", 1);
  b.calibration.parameters.back().decided_by = DecidedBy::kPrior;
  b.Covariance(0, 0, 0.04);
  b.calibration.range.bandwidth = {GigabitsPerSecond(1.0), GigabitsPerSecond(1.0)};
  Cluster cluster = b.AsCluster();
  cluster.link.bandwidth = GigabitsPerSecond(1.0);
  LinkFacts stated;
  stated.bandwidth = GigabitsPerSecond(1.0);
  const auto log_sd = [&](const std::vector<std::string>& hosts) {
    const Belief belief(cluster, Resnet50(), T4(), "t4");
    return belief.StatedShareLogSd(stated, {}, belief.SlowestLink(hosts));
  };
  EXPECT_EQ(log_sd({}), 0) << "no fitted link tells otherwise";

  const int near = b.Add("hosts a+b", "link_bandwidth", 0.9);
  b.Covariance(near, near, 0.01);
  const int far = b.Add("hosts c+d", "link_bandwidth", 0.1);
  b.Covariance(far, far, 0.01);
  cluster.calibration = b.calibration;
  EXPECT_NEAR(log_sd({"a", "b"}), std::hypot(std::log(0.9), 0.1), 1e-9);
  EXPECT_EQ(log_sd({"c", "d"}), 0.35) << "no less than where nothing is known";
  EXPECT_NEAR(log_sd({}), 0.2, 1e-9) << "no run had the cluster's own link";
  stated.bandwidth = GigabitsPerSecond(2.0);
  EXPECT_NEAR(log_sd({"a", "b"}), std::hypot(std::log(0.9), 0.1, 0.15), 1e-9);
  stated.bandwidth.reset();
  EXPECT_EQ(log_sd({"a", "b"}), 0);
  const Belief belief(cluster, Resnet50(), T4(), "t4");
  LinkFacts of_server;
  of_server.bandwidth = GigabitsPerSecond(1.0);
  EXPECT_EQ(belief.StatedShareLogSd({}, of_server, belief.SlowestLink({"a"})), 0)
      << "the link of a server is another";

  cluster.link.bandwidth.reset();
  stated.bandwidth = GigabitsPerSecond(1.0);
  EXPECT_EQ(log_sd({"a", "b"}), 0) << "the rates of runs were those that they stated";
  cluster = b.AsCluster();
  cluster.calibration = Builder().calibration;
  cluster.link.bandwidth = GigabitsPerSecond(1.0);
  EXPECT_EQ(log_sd({}), 0.35) << "no run had a known rate";
}

// So is the link of a cluster without hosts of their own.
TEST(BeliefWithItsOwnRuns, KnowsAStatedRateNoBetterThanTheClustersFittedLink) {
  Builder b;
  const int link = b.Add("cluster", "link_bandwidth", 0.95);
  b.Covariance(link, link, 0.0025);
  b.calibration.range.bandwidth = {GigabitsPerSecond(1.0), GigabitsPerSecond(1.0)};
  Cluster cluster = b.AsCluster();
  cluster.link.bandwidth = GigabitsPerSecond(1.0);
  LinkFacts stated;
  stated.bandwidth = GigabitsPerSecond(1.0);
  EXPECT_NEAR(Belief(cluster, Resnet50(), T4(), "t4").StatedShareLogSd(stated, {}, kLinkBandwidth),
              std::hypot(std::log(0.95), 0.05), 1e-9);
}

// ---- From the device's speed: c(d) = sheet(d) / v_d.

TEST(BeliefFromTheDevice, IsWhatTheSheetLetsExpectAtItsSpeed) {
  Builder b;
  const int efficiency = b.Add("device t4", "device_speed", 0.8);
  const int flow = b.Add("cluster", "flow_bandwidth", 4);
  b.Add("workload vgg16 on t4", "sample_time", 30);
  b.Add("device v100", "device_speed", 0.2);
  b.Covariance(efficiency, efficiency, 0.05);
  b.Covariance(flow, flow, 0.04);
  b.Covariance(efficiency, flow, 0.006);
  const Belief belief(b.AsCluster(), Resnet50(), T4(), "t4");

  EXPECT_EQ(belief.compute(), ComputeBelief::kFromDevice);
  EXPECT_EQ(belief.origin(kSample), Origin::kTransferred);
  EXPECT_NEAR(Ms(belief.log_value(kSample)) / (SheetMs(Resnet50(), T4()) / 0.8), 1, 1e-9);
  const Eigen::MatrixXd& c = belief.log_covariance();
  EXPECT_NEAR(c(kSample, kSample), 0.05 + kWorkloadSpeedLogSd * kWorkloadSpeedLogSd, 1e-12);
  EXPECT_NEAR(c(kSample, kFlowBandwidth), -0.006, 1e-12) << "time falls with speed";
  EXPECT_NEAR(c(kFlowBandwidth, kSample), -0.006, 1e-12);
  EXPECT_NEAR(c(kFlowBandwidth, kFlowBandwidth), 0.04, 1e-12);
  for (const int untouched : {kFixed, kFloor, kUpdate, kSpread}) {
    EXPECT_EQ(belief.origin(untouched), Origin::kPrior);
    EXPECT_EQ(c.row(untouched).cwiseAbs().sum(), c(untouched, untouched));
  }
}

// ---- From another device.

// resnet50 was fitted on v100, where its data sheet gave it the priors that it did.
struct Elsewhere {
  explicit Elsewhere(double efficiency) {
    const WorkloadPriors priors = MakeWorkloadPriors(Resnet50(), V100());
    const auto add = [&](int parameter, double ms) {
      const std::string name(kWorkloadParameterSpecs[static_cast<std::size_t>(parameter)].name);
      return b.Add("workload resnet50 on v100", name, ms,
                   1e3 * priors[static_cast<std::size_t>(parameter)].si);
    };
    fixed = add(kFixedTime, 11);
    floor = add(kFloorTime, 7);
    sample = add(kSampleTime, 2.2);
    update = add(kUpdateTime, 3);
    spread = b.Add("workload resnet50 on v100", "straggler_spread", 0.2);
    there = b.Add("device v100", "device_speed", efficiency);
    b.Covariance(fixed, fixed, 0.08);
    b.Covariance(floor, floor, 0.02);
    b.Covariance(sample, sample, 0.01);
    b.Covariance(update, update, 0.03);
    b.Covariance(spread, spread, 0.04);
    b.Covariance(there, there, 0.06);
    b.Covariance(sample, there, -0.009);
    b.Covariance(floor, sample, -0.005);
  }

  Builder b;
  int fixed, floor, sample, update, spread, there;
};

double PriorRatio(int parameter) {
  const auto at = static_cast<std::size_t>(parameter);
  return MakeWorkloadPriors(Resnet50(), T4())[at].si /
         MakeWorkloadPriors(Resnet50(), V100())[at].si;
}

TEST(BeliefFromAnotherDevice, ScalesByTheDataSheets) {
  const Elsewhere elsewhere(0.4);
  const Belief belief(elsewhere.b.AsCluster(), Resnet50(), T4(), "t4");
  EXPECT_EQ(belief.compute(), ComputeBelief::kFromOtherDevice);
  for (const int position : {kFixed, kFloor, kSample, kUpdate, kSpread}) {
    EXPECT_EQ(belief.origin(position), Origin::kTransferred) << position;
  }
  // The ratio of the priors is that of the sheets.
  EXPECT_NEAR(Ms(belief.log_value(kSample)),
              2.2 * SheetMs(Resnet50(), T4()) / SheetMs(Resnet50(), V100()), 1e-9);
  EXPECT_NEAR(Ms(belief.log_value(kFloor)), 7 * PriorRatio(kFloorTime), 1e-9);
  EXPECT_NEAR(Ms(belief.log_value(kUpdate)), 3 * PriorRatio(kUpdateTime), 1e-9);
  EXPECT_GT(PriorRatio(kUpdateTime), 2.5) << "T4 has a third of the memory bandwidth";
  // These do not depend on the device.
  EXPECT_NEAR(Ms(belief.log_value(kFixed)), 11, 1e-9);
  EXPECT_NEAR(std::exp(belief.log_value(kSpread)), 0.2, 1e-12);

  const Eigen::MatrixXd& c = belief.log_covariance();
  const double step = 0.15 * 0.15;  // of any workload between two devices
  // Of the device that nobody has measured.
  const double speeds = std::pow(kDeviceSpeedSpec.prior_log_sd, 2);
  EXPECT_NEAR(c(kSample, kSample), 0.01 + step + speeds, 1e-12);
  EXPECT_NEAR(c(kFloor, kFloor), 0.02 + step + speeds, 1e-12);
  EXPECT_NEAR(c(kUpdate, kUpdate), 0.03 + step + speeds, 1e-12);
  EXPECT_NEAR(c(kFixed, kFixed), 0.08 + 0.7 * 0.7, 1e-12);
  EXPECT_NEAR(c(kSpread, kSpread), 0.04 + 0.3 * 0.3, 1e-12);
  EXPECT_NEAR(c(kFloor, kSample), -0.005, 1e-12) << "what was fitted together stays correlated";
}

TEST(BeliefFromAnotherDevice, AndByTheEfficienciesOfBoth) {
  Elsewhere elsewhere(0.4);
  Builder& b = elsewhere.b;
  const int here = b.Add("device t4", "device_speed", 0.7);
  const int flow = b.Add("cluster", "flow_bandwidth", 4);
  b.Covariance(here, here, 0.07);
  b.Covariance(flow, flow, 0.09);
  b.Covariance(here, elsewhere.there, 0.011);
  b.Covariance(here, flow, 0.013);
  b.Covariance(elsewhere.there, flow, 0.002);
  b.Covariance(elsewhere.sample, flow, 0.001);
  const Belief belief(b.AsCluster(), Resnet50(), T4(), "t4");

  EXPECT_EQ(belief.compute(), ComputeBelief::kFromOtherDevice);
  const double ratio = 0.4 / 0.7;
  EXPECT_NEAR(Ms(belief.log_value(kSample)), 2.2 * PriorRatio(kSampleTime) * ratio, 1e-9);
  EXPECT_NEAR(Ms(belief.log_value(kFloor)), 7 * PriorRatio(kFloorTime) * ratio, 1e-9);
  EXPECT_NEAR(Ms(belief.log_value(kUpdate)), 3 * PriorRatio(kUpdateTime) * ratio, 1e-9);
  EXPECT_NEAR(Ms(belief.log_value(kFixed)), 11, 1e-9);

  const Eigen::MatrixXd& c = belief.log_covariance();
  const double step = 0.15 * 0.15;
  // The variance of ln c_x + ln v_x - ln v_d.
  EXPECT_NEAR(c(kSample, kSample), 0.01 + 0.06 + 0.07 + 2 * (-0.009) - 2 * 0.011 + step, 1e-12);
  EXPECT_NEAR(c(kFloor, kFloor), 0.02 + 0.06 + 0.07 - 2 * 0.011 + step, 1e-12);
  // Both have the two speeds in them.
  EXPECT_NEAR(c(kFloor, kSample), -0.005 - 0.009 + 0.06 + 0.07 - 2 * 0.011, 1e-12);
  EXPECT_NEAR(c(kSample, kFlowBandwidth), 0.001 + 0.002 - 0.013, 1e-12);
  EXPECT_EQ(c(kFixed, kSample), 0);
}

// Without the data sheet of either device there is nothing to scale by.
TEST(BeliefFromAnotherDevice, NeedsBothDataSheets) {
  Builder b;
  b.Add("workload resnet50 on abacus", "sample_time", 2.2, 1);
  EXPECT_EQ(Belief(b.AsCluster(), Resnet50(), T4(), "t4").compute(), ComputeBelief::kDataSheet);
  const Elsewhere elsewhere(0.4);
  const Belief belief(elsewhere.b.AsCluster(), Resnet50(), std::nullopt, "abacus");
  EXPECT_EQ(belief.compute(), ComputeBelief::kPrior);
  EXPECT_EQ(belief.origin(kSample), Origin::kPrior);
}

// A device whose data sheet was not known then must not hide the one whose was.
TEST(BeliefFromAnotherDevice, TakesTheOneWithADataSheet) {
  Elsewhere elsewhere(0.4);
  Builder first;
  first.Add("workload resnet50 on abacus", "sample_time", 2200, 1);
  for (const ParameterEstimate& p : elsewhere.b.calibration.parameters) {
    first.Add(p.scope, p.name, p.value, p.prior_value);
  }
  const Belief belief(first.AsCluster(), Resnet50(), T4(), "t4");
  EXPECT_EQ(belief.compute(), ComputeBelief::kFromOtherDevice);
  EXPECT_NEAR(Ms(belief.log_value(kSample)), 2.2 * PriorRatio(kSampleTime), 1e-9);
}

// What somebody stated of the other device says nothing of the data sheets.
TEST(BeliefFromAnotherDevice, DoesNotTakeOverWhatWasStated) {
  Elsewhere elsewhere(0.4);
  const auto floor = static_cast<std::size_t>(elsewhere.floor);
  elsewhere.b.calibration.parameters[floor].prior_source = "notebook";
  const Belief belief(elsewhere.b.AsCluster(), Resnet50(), T4(), "t4");
  EXPECT_EQ(belief.origin(kFloor), Origin::kPrior);
  EXPECT_NEAR(belief.log_value(kFloor),
              std::log(MakeWorkloadPriors(Resnet50(), T4())[kFloorTime].si), 1e-12);
  EXPECT_EQ(belief.origin(kSample), Origin::kTransferred);
}

TEST(BeliefFromAnotherDevice, ItsOwnRunsComeFirst) {
  Elsewhere elsewhere(0.4);
  elsewhere.b.Add("device t4", "device_speed", 0.7);
  elsewhere.b.Add("workload resnet50 on t4", "sample_time", 9);
  const Belief belief(elsewhere.b.AsCluster(), Resnet50(), T4(), "t4");
  EXPECT_EQ(belief.compute(), ComputeBelief::kFitted);
  EXPECT_NEAR(Ms(belief.log_value(kSample)), 9, 1e-9);
}

// "resnet50" must not be taken for "resnet50v2", nor t4 for t4g.
TEST(BeliefFromAnotherDevice, NamesAreWhole) {
  Builder b;
  b.Add("workload resnet50v2 on t4", "sample_time", 2.2, 1);
  b.Add("workload resnet50 on t4g", "sample_time", 2.2, 1);
  b.Add("device t4g", "device_speed", 0.3);
  b.calibration.parameters[1].scope = "workload resnet501 on t4";
  const Belief belief(b.AsCluster(), Resnet50(), T4(), "t4");
  EXPECT_EQ(belief.compute(), ComputeBelief::kDataSheet);
}

// ---- From another way of training.

// resnet50 was fitted on t4 in fp32, where the device is half as fast as its data sheet says.
struct InFp32 {
  InFp32() {
    const auto add = [&](const char* name, double value) {
      return b.Add("workload resnet50 on t4", name, value);
    };
    fixed = add("fixed_time", 11);
    sample = add("sample_time", 9);
    update = add("update_time", 4);
    speed = b.Add("device t4", "device_speed", 0.5);
    b.Covariance(fixed, fixed, 0.08);
    b.Covariance(sample, sample, 0.01);
    b.Covariance(update, update, 0.03);
    b.Covariance(speed, speed, 0.07);
    b.Covariance(fixed, sample, -0.004);
  }
  Builder b;
  int fixed, sample, update, speed;
};

TEST(BeliefFromAnotherTraining, IsChangedAsTheDataSheetSays) {
  const InFp32 known;
  Workload half = Resnet50();
  half.precision = Precision::kFp16;
  const Belief belief(known.b.AsCluster(), half, T4(), "t4");
  EXPECT_EQ(belief.compute(), ComputeBelief::kFromOtherTraining);
  EXPECT_EQ(DescribeWorkload(belief.other_training().fitted), "resnet50");
  EXPECT_TRUE(belief.other_training().by_sheet);
  EXPECT_NEAR(Ms(belief.log_value(kSample)), 9 * SheetMs(half, T4()) / SheetMs(Resnet50(), T4()),
              1e-9);
  EXPECT_LT(SheetMs(half, T4()), 0.8 * SheetMs(Resnet50(), T4()));
  EXPECT_NEAR(Ms(belief.log_value(kFixed)), 11, 1e-9) << "launches are as many";
  EXPECT_NEAR(Ms(belief.log_value(kUpdate)), 4, 1e-9) << "parameters keep 32 bits";
  const Eigen::MatrixXd& c = belief.log_covariance();
  EXPECT_NEAR(c(kSample, kSample), 0.01 + 0.3 * 0.3, 1e-12) << "the device's speed is in both";
  EXPECT_NEAR(c(kFixed, kSample), -0.004, 1e-12);
  EXPECT_EQ(belief.origin(kSample), Origin::kTransferred);
}

TEST(BeliefFromAnotherTraining, AnOptimizerChangesTheUpdate) {
  const InFp32 known;
  Workload adam = Resnet50();
  adam.optimizer = Optimizer::kAdam;
  const Belief belief(known.b.AsCluster(), adam, T4(), "t4");
  EXPECT_EQ(belief.compute(), ComputeBelief::kFromOtherTraining);
  EXPECT_NEAR(Ms(belief.log_value(kSample)), 9, 1e-9);
  const double ratio = MakeWorkloadPriors(adam, T4())[kUpdateTime].si /
                       MakeWorkloadPriors(Resnet50(), T4())[kUpdateTime].si;
  EXPECT_GT(ratio, 1.2);
  EXPECT_NEAR(Ms(belief.log_value(kUpdate)), 4 * ratio, 1e-9);
  EXPECT_NEAR(belief.log_covariance()(kSample, kSample), 0.01 + 0.15 * 0.15, 1e-12);
}

// Nothing tells what another precision brings where there is nothing to count.
TEST(BeliefFromAnotherTraining, IsTakenAsItIsWithoutADataSheet) {
  const InFp32 known;
  Workload half = Resnet50();
  half.precision = Precision::kFp16;
  const Belief belief(known.b.AsCluster(), half, std::nullopt, "t4");
  EXPECT_EQ(belief.compute(), ComputeBelief::kFromOtherTraining);
  EXPECT_FALSE(belief.other_training().by_sheet);
  EXPECT_NEAR(Ms(belief.log_value(kSample)), 9, 1e-9);
  EXPECT_NEAR(belief.log_covariance()(kSample, kSample), 0.01 + 0.7 * 0.7, 1e-12);
}

TEST(BeliefFromAnotherTraining, TakesTheNearest) {
  InFp32 known;
  known.b.Add("workload resnet50 (fp16) on t4", "sample_time", 5);
  known.b.Add("workload resnet50 (fp16, adam) on t4", "sample_time", 6);
  Workload asked = Resnet50();
  asked.optimizer = Optimizer::kSgd;
  const auto from = [&] {
    return DescribeWorkload(Belief(known.b.AsCluster(), asked, T4(), "t4").other_training().fitted);
  };
  EXPECT_EQ(from(), "resnet50");
  asked.precision = Precision::kFp16;
  EXPECT_EQ(from(), "resnet50 (fp16)");
  asked.optimizer = Optimizer::kAdam;
  EXPECT_EQ(Belief(known.b.AsCluster(), asked, T4(), "t4").compute(), ComputeBelief::kFitted);
  asked.recompute = Recompute::kFull;
  EXPECT_EQ(from(), "resnet50 (fp16, adam)");
}

// ResNet-50 has blocks and no attention.
TEST(BeliefFromAnotherTraining, IsNoOtherWhereNothingChanges) {
  const InFp32 known;
  const Belief as_fitted(known.b.AsCluster(), Resnet50(), T4(), "t4");
  Workload asked = Resnet50();
  asked.attention = AttentionForm::kFused;
  asked.recompute = Recompute::kSelective;
  const Belief belief(known.b.AsCluster(), asked, T4(), "t4");
  EXPECT_EQ(belief.compute(), ComputeBelief::kFitted);
  EXPECT_EQ(belief.scope(), "workload resnet50 on t4");
  EXPECT_EQ(belief.log_values(), as_fitted.log_values());
  EXPECT_TRUE(belief.log_covariance() == as_fitted.log_covariance());
  asked.recompute = Recompute::kFull;
  const Belief recomputed(known.b.AsCluster(), asked, T4(), "t4");
  EXPECT_EQ(recomputed.compute(), ComputeBelief::kFromOtherTraining);
  EXPECT_EQ(recomputed.scope(), "workload resnet50 (fused, full recompute) on t4");
  EXPECT_EQ(recomputed.other_training().fitted.attention, AttentionForm::kFused);
  EXPECT_EQ(recomputed.other_training().fitted.recompute, Recompute::kNone);
}

// ---- Covariances.

// With any covariance of the calibration, that of the belief is one too, in each of the four cases.
TEST(BeliefCovariance, IsPositiveSemidefinite) {
  std::mt19937_64 random(3);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53 - 0.5; };
  for (int round = 0; round < 40; ++round) {
    Elsewhere elsewhere(0.4);
    Builder& b = elsewhere.b;
    b.Add("cluster", "flow_bandwidth", 4);
    b.Add("hosts a+b", "link_bandwidth", 1);
    if (round % 2 == 0) b.Add("device t4", "device_speed", 0.7);
    if (round % 3 == 0) b.Add("workload resnet50 on t4", "sample_time", 9);
    const auto size = b.calibration.log_covariance.rows();
    // Low rank, now and then, stands for parameters of which only sums are known.
    Eigen::MatrixXd root(size, round % 4 == 0 ? 2 : size);
    for (Eigen::Index i = 0; i < root.size(); ++i) root.data()[i] = uniform();
    b.calibration.log_covariance = root * root.transpose();
    for (const auto& [name, facts] :
         {std::pair{"t4", T4()}, std::pair{"v100", V100()}, std::pair{"k80", V100()}}) {
      const Belief belief(b.AsCluster(), Resnet50(), facts, name);
      const Eigen::MatrixXd& c = belief.log_covariance();
      ASSERT_EQ(c.rows(), static_cast<Eigen::Index>(belief.log_values().size()));
      EXPECT_LE((c - c.transpose()).cwiseAbs().maxCoeff(), 1e-14 * c.trace());
      // No eigenvalue is below what rounding leaves.
      const Eigen::MatrixXd rounding =
          1e-12 * c.trace() * Eigen::MatrixXd::Identity(c.rows(), c.cols());
      EXPECT_EQ(Eigen::LLT<Eigen::MatrixXd>(c + rounding).info(), Eigen::Success)
          << name << " " << round;
    }
  }
}

// ---- Hosts and names.

TEST(BeliefHosts, TheFittedLinkReplacesTheStatedOne) {
  Builder b;
  const int pair = b.Add("hosts a+b", "link_bandwidth", 0.1);
  const int other = b.Add("hosts c", "link_bandwidth", 2);
  b.Covariance(pair, pair, 0.01);
  b.Covariance(other, other, 0.02);
  b.Covariance(pair, other, 0.004);
  Cluster cluster = b.AsCluster();
  for (const char* name : {"a", "d"}) {
    Host host;
    host.name = name;
    host.link.bandwidth = GigabitsPerSecond(40.0);
    cluster.hosts.push_back(host);
  }
  const Belief belief(cluster, Resnet50(), T4(), "t4");
  ASSERT_EQ(belief.host_links().size(), 4U) << "a, b, c and d, each once";
  const int ab = belief.SlowestLink({"a", "d", "c"});
  EXPECT_EQ(belief.SlowestLink({"b", "c"}), ab);
  EXPECT_NEAR(std::exp(belief.log_value(ab)), 0.1e9 / 8, 1e-3);
  const int c = belief.SlowestLink({"c", "d"});
  EXPECT_NEAR(std::exp(belief.log_value(c)), 2e9 / 8, 1e-3);
  EXPECT_DOUBLE_EQ(belief.log_covariance()(ab, ab), 0.01);
  EXPECT_DOUBLE_EQ(belief.log_covariance()(ab, c), 0.004);
  EXPECT_EQ(belief.NameOf(ab), "link_bandwidth of a+b");
  EXPECT_EQ(belief.NameOf(c), "link_bandwidth of c");
  EXPECT_EQ(belief.NameOf(belief.SlowestLink({"d"})), "link_bandwidth of d");
}

TEST(BeliefHosts, AnUnknownOneHasTheClustersLink) {
  Builder b;
  b.Add("cluster", "link_bandwidth", 5);
  b.Add("hosts slow", "link_bandwidth", 0.1);
  b.Add("hosts fast", "link_bandwidth", 50);
  const Belief belief(b.AsCluster(), Resnet50(), T4(), "t4");
  EXPECT_EQ(belief.SlowestLink({}), kLinkBandwidth);
  EXPECT_EQ(belief.SlowestLink({"new"}), kLinkBandwidth);
  EXPECT_EQ(belief.SlowestLink({"fast", "new"}), kLinkBandwidth);
  EXPECT_EQ(belief.SlowestLink({"new", "fast"}), kLinkBandwidth);
  EXPECT_EQ(belief.NameOf(belief.SlowestLink({"new", "slow"})), "link_bandwidth of slow");
  EXPECT_EQ(belief.NameOf(belief.SlowestLink({"fast"})), "link_bandwidth of fast");
}

TEST(BeliefNames, SayWhoseParameterItIs) {
  const Belief belief(Cluster(), Resnet50(), T4(), "t4");
  for (int i = 0; i < kClusterParameterCount; ++i) {
    EXPECT_EQ(belief.NameOf(i), kClusterParameterSpecs[static_cast<std::size_t>(i)].name);
  }
  EXPECT_EQ(belief.NameOf(kSample), "sample_time of resnet50 on t4");
  EXPECT_EQ(belief.NameOf(kSpread), "straggler_spread of resnet50 on t4");
}

// Whoever names a device means that; else its data sheet says whose it is, however the cluster's
// file spells it, and without one the cluster's file does.
TEST(BeliefNames, OfADevice) {
  Cluster cluster;
  cluster.device = "Tesla T4";
  EXPECT_EQ(DeviceName(cluster, T4(), "mine"), "mine");
  EXPECT_EQ(DeviceName(cluster, std::nullopt, "mine"), "mine");
  EXPECT_EQ(DeviceName(cluster, T4(), ""), "t4");
  EXPECT_EQ(DeviceName(cluster, std::nullopt, ""), "Tesla T4");
}

// ---- Calibrations of another version.

std::optional<InputError> ErrorWith(const std::function<void(Builder*)>& spoil) {
  Builder b;
  spoil(&b);
  return ErrorOf([&] { Belief(b.AsCluster(), Resnet50(), T4(), "t4"); });
}

TEST(BeliefErrors, UnknownParameters) {
  for (const char* scope : {"cluster", "workload resnet50 on t4"}) {
    const auto error = ErrorWith([&](Builder* b) {
      b->Add(scope, "flow_bandwidth", 4);
      b->calibration.parameters[0].name = "warp_factor";
    });
    EXPECT_TRUE(Says(error, std::string("calibration of ") + scope + ", warp_factor"));
    EXPECT_TRUE(Says(error, "'warp_factor' is not a parameter of this version"));
    EXPECT_TRUE(Says(error, "a new calibration"));
  }
  EXPECT_TRUE(Says(ErrorWith([](Builder* b) { b->Add("cluster", "sample_time", 4); }),
                   "'sample_time' is not a parameter of this version"))
      << "it is a workload's";
}

TEST(BeliefErrors, NameTheCluster) {
  Builder b;
  b.Add("cluster", "overlap_share", 7);
  Cluster cluster = b.AsCluster();
  cluster.name = "hall-3";
  const auto error = ErrorOf([&] { Belief(cluster, Resnet50(), T4(), "t4"); });
  EXPECT_TRUE(Says(error, "hall-3.calibration of cluster, overlap_share"));
}

TEST(BeliefErrors, OtherUnits) {
  for (const char* scope : {"cluster", "hosts a"}) {
    const auto error = ErrorWith([&](Builder* b) {
      b->Add(scope, "link_bandwidth", 4);
      b->calibration.parameters[0].unit = "GB/s";
    });
    EXPECT_TRUE(Says(error, std::string("calibration of ") + scope + ", link_bandwidth"));
    EXPECT_TRUE(Says(error, "'GB/s' is not its unit"));
    EXPECT_TRUE(Says(error, "Gbit/s"));
  }
  const auto error = ErrorWith([](Builder* b) {
    b->Add("cluster", "overlap_share", 0.4);
    b->calibration.parameters[0].unit = "ms";
  });
  EXPECT_TRUE(Says(error, "a plain number"));
}

TEST(BeliefErrors, ValuesOutOfRange) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const double value : {0.0, -1.0, 0.049, 0.951, 7.0, kNaN}) {
    const auto error = ErrorWith([&](Builder* b) { b->Add("cluster", "overlap_share", value); });
    EXPECT_TRUE(Says(error, "calibration of cluster, overlap_share")) << value;
    EXPECT_TRUE(Says(error, "out of range")) << value;
    EXPECT_TRUE(Says(error, "0.05 to 0.95")) << value;
  }
  for (const double value : {0.05, 0.95}) {
    EXPECT_NO_THROW(ErrorWith([&](Builder* b) { b->Add("cluster", "overlap_share", value); }));
  }
  EXPECT_TRUE(Says(ErrorWith([](Builder* b) { b->Add("hosts a", "link_bandwidth", 2e4); }),
                   "calibration of hosts a, link_bandwidth"));
}

// Who reads a file must not believe for long that it can be used.
TEST(WithUsableCalibration, NamesTheLineOfWhatNoForecastCouldUse) {
  const auto error_of = [](const std::string& scope, const std::string& name, double value) {
    Builder b;
    b.Add("cluster", "overlap_share", 0.5);
    b.Add(scope, name == "hop_spreadx" ? "hop_spread" : name, value);
    ParameterEstimate& wrong = b.calibration.parameters[1];
    wrong.name = name;
    wrong.line = 41;
    return ErrorOf([&] { WithUsableCalibration(b.AsCluster(), "hall.yaml"); });
  };
  EXPECT_FALSE(error_of("cluster", "hop_spread", 0.5));
  EXPECT_TRUE(Says(error_of("nonsense", "hop_spread", 0.5),
                   "hall.yaml:41: calibration of nonsense, hop_spread: 'nonsense' is no scope of "
                   "a parameter; allowed: cluster, hosts ..."));
  EXPECT_TRUE(Says(error_of("cluster", "hop_spreadx", 0.5),
                   "hall.yaml:41: calibration of cluster, "
                   "hop_spreadx: 'hop_spreadx' is not"));
  // Of hosts, devices and workloads that a forecast at hand may not be of.
  EXPECT_TRUE(Says(error_of("hosts a+b", "link_bandwidth", 2e4), "hall.yaml:41: "));
  EXPECT_TRUE(Says(error_of("device t4", "device_speed", 51), "hall.yaml:41: "));
  EXPECT_TRUE(Says(error_of("workload vgg16 on t4", "sample_time", 2e7), "hall.yaml:41: "));
  EXPECT_EQ(WithUsableCalibration(Cluster(), "hall.yaml").nodes, Cluster().nodes);
}

// What is taken over is looked at as closely.
TEST(BeliefErrors, OfWhatIsTransferred) {
  const auto of_workload = ErrorOf([] {
    Elsewhere elsewhere(0.4);
    elsewhere.b.calibration.parameters[static_cast<std::size_t>(elsewhere.sample)].value = -2;
    Belief(elsewhere.b.AsCluster(), Resnet50(), T4(), "t4");
  });
  EXPECT_TRUE(Says(of_workload, "calibration of workload resnet50 on v100, sample_time"));
  for (const double efficiency : {-0.5, 0.0, 0.001, 1000.0}) {
    const auto own =
        ErrorWith([&](Builder* b) { b->Add("device t4", "device_speed", efficiency); });
    EXPECT_TRUE(Says(own, "calibration of device t4, device_speed")) << efficiency;
  }
  const auto other = ErrorOf([] {
    Elsewhere elsewhere(-0.4);
    elsewhere.b.Add("device t4", "device_speed", 0.7);
    Belief(elsewhere.b.AsCluster(), Resnet50(), T4(), "t4");
  });
  EXPECT_TRUE(Says(other, "calibration of device v100, device_speed"));
}

}  // namespace
}  // namespace stepcast
