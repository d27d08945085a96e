// Where two causes explain the runs nearly alike, intervals hold the forecasts of both.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "calibrate/calibrate.h"
#include "calibrate/excerpt.h"
#include "calibrate/online/online_calibration.h"
#include "data/io/machines.h"
#include "model/statistics/normal.h"
#include "model/step/priors.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

constexpr double kNoise = 0.02;
constexpr const char* kNetwork = "resnet50";

Plan Ring(int nodes, int batch = 16) {
  Plan plan = AllreducePlan(Placement(static_cast<std::size_t>(nodes), 1), batch);
  plan.overlap = Overlap::kNone;
  return plan;
}

// Nodes of one device, of which nobody said how fast their links are.
Cluster Unstated() {
  Cluster cluster = SyntheticCluster();
  cluster.devices_per_node = 1;
  return cluster;
}

SyntheticProblem ProblemOf(Truth truth) {
  truth.workloads = {{kNetwork, truth.workloads.at(kNetwork)}};
  SyntheticProblem synthetic(std::move(truth), Unstated());
  synthetic.problem().devices[kSyntheticDevice] = T4();
  return synthetic;
}

// What holds an exchange back, of this rate.
Truth HeldBackBy(ClusterParameter pace, double gbit_per_s) {
  Truth truth = PlausibleTruth();
  truth.cluster.si[kLinkBandwidth] = truth.cluster.si[kFlowBandwidth] =
      GigabitsPerSecond(80.0).si();
  truth.cluster.si[pace] = GigabitsPerSecond(gbit_per_s).si();
  return truth;
}

void AddRepeats(const Plan& plan, int count, Noise* noise, SyntheticProblem* synthetic) {
  for (int i = 0; i < count; ++i) synthetic->Add(kNetwork, plan, kNoise * noise->Next());
}

// Fitted to few runs on one node and on four.
Cluster FittedToOneAndFour(Truth truth, std::uint64_t seed) {
  Noise noise(seed);
  SyntheticProblem synthetic = ProblemOf(std::move(truth));
  AddRepeats(Ring(1), 3, &noise, &synthetic);
  AddRepeats(Ring(4), 5, &noise, &synthetic);
  return Calibrate(synthetic.problem()).cluster;
}

struct Held {
  int of = 0;
  int held = 0;
  int without = 0;  // by the covariance alone

  void Include(const Cluster& fitted, const SyntheticProblem& synthetic, const Plan& plan) {
    Cluster plain = fitted;
    plain.calibration->alternatives.resize(0, 0);
    const Duration<> truth = synthetic.TrueStep(kNetwork, plan);
    const auto holds = [&](const Cluster& cluster) {
      const Prediction p = Predictor(cluster, *FindWorkload(kNetwork), T4()).Predict(plan);
      return p.low <= truth && truth <= p.high ? 1 : 0;
    };
    ++of;
    held += holds(fitted);
    without += holds(plain);
  }
  double share() const { return 1.0 * held / of; }
  void Print(const char* what) const {
    std::printf("[ measured ] %-34s %d of %d steps within the interval, %d by the covariance\n",
                what, held, of, without);
  }
};

// Clusters drawn from the priors, measured on one node and on four: whether links, connections or
// hosts hold them back there, two, eight and sixteen nodes show.
TEST(Alternatives, HoldWhatElseExplainsANetwork) {
  const ClusterPriors priors = MakeClusterPriors(Unstated(), std::nullopt);
  Held held;
  for (int seed = 0; seed < 100; ++seed) {
    Noise noise(1000 + static_cast<std::uint64_t>(seed));
    Truth truth = PlausibleTruth();
    for (std::size_t i = 0; i < priors.size(); ++i) {
      truth.cluster.si[i] = DrawFrom(priors[i], kClusterParameterSpecs[i], &noise);
    }
    SyntheticProblem synthetic = ProblemOf(std::move(truth));
    AddRepeats(Ring(1), 5, &noise, &synthetic);
    AddRepeats(Ring(4), 20, &noise, &synthetic);
    const Cluster fitted = Calibrate(synthetic.problem()).cluster;
    for (const int nodes : {2, 8, 16}) held.Include(fitted, synthetic, Ring(nodes));
  }
  held.Print("one and four nodes measured");
  EXPECT_GE(held.share(), 0.85);
  EXPECT_GE(held.held - held.without, 0.03 * held.of) << "or nothing was to be held";
}

// Which batches take as long as they do for their samples, and which for what no batch changes,
// one batch does not tell.
TEST(Alternatives, HoldTheTimesOfOtherBatches) {
  const WorkloadPriors priors = MakeWorkloadPriors(*FindWorkload(kNetwork), T4());
  const Prior floor = FloorBesideSamples(priors[kFixedTime].si, priors[kSampleTime].si);
  const auto draw = [&](WorkloadParameter of, const Prior& prior, Noise* noise) {
    return DrawFrom(prior, kWorkloadParameterSpecs[of], noise);
  };
  Held held;
  for (int seed = 0; seed < 100; ++seed) {
    Noise noise(300 + static_cast<std::uint64_t>(seed));
    Truth truth = PlausibleTruth();
    auto& own = truth.workloads.at(kNetwork).si;
    own[kFixedTime] = draw(kFixedTime, FixedBesideSheet(priors[kFixedTime].si), &noise);
    own[kFloorTime] = draw(kFloorTime, floor, &noise);
    own[kSampleTime] = draw(kSampleTime, {priors[kSampleTime].si, kSheetTimeLogSd}, &noise);
    SyntheticProblem synthetic = ProblemOf(std::move(truth));
    AddRepeats(Ring(1, 16), 5, &noise, &synthetic);
    const Cluster fitted = Calibrate(synthetic.problem()).cluster;
    for (const int batch : {2, 64}) held.Include(fitted, synthetic, Ring(1, batch));
  }
  held.Print("one batch measured");
  EXPECT_GE(held.share(), 0.85);
}

// An alternative meets the runs hardly worse than the fit does.
TEST(Alternatives, MeetTheRuns) {
  const Cluster fitted = FittedToOneAndFour(HeldBackBy(kLinkBandwidth, 5), 7);
  const Eigen::MatrixXd& alternatives = fitted.calibration->alternatives;
  ASSERT_GT(alternatives.rows(), 0);
  const auto step_of = [&](const Cluster& cluster, const Plan& plan) {
    return Predictor(cluster, *FindWorkload(kNetwork), T4()).PredictStep(plan).total();
  };
  for (Eigen::Index k = 0; k < alternatives.rows(); ++k) {
    Cluster alternative = fitted;
    for (std::size_t i = 0; i < alternative.calibration->parameters.size(); ++i) {
      alternative.calibration->parameters[i].value *=
          std::exp(alternatives(k, static_cast<Eigen::Index>(i)));
    }
    for (const int nodes : {1, 4}) {
      const double off = std::log(step_of(alternative, Ring(nodes)) / step_of(fitted, Ring(nodes)));
      // Of so many repeats, each by the scatter that the fit has found.
      const double scatter = fitted.calibration->residual_log_sd;
      EXPECT_LE(std::abs(off), 2 * kNinetyPercent * scatter / std::sqrt(3)) << k << " " << nodes;
    }
  }
}

// Runs that tell the two apart leave none of them.
TEST(Alternatives, EndWithTheQuestion) {
  Noise noise(9);
  SyntheticProblem synthetic = ProblemOf(HeldBackBy(kLinkBandwidth, 5));
  for (const int batch : {4, 16, 64}) AddRepeats(Ring(1, batch), 5, &noise, &synthetic);
  for (const int nodes : {2, 3, 4, 8}) AddRepeats(Ring(nodes), 5, &noise, &synthetic);
  const Cluster fitted = Calibrate(synthetic.problem()).cluster;
  Cluster plain = fitted;
  plain.calibration->alternatives.resize(0, 0);
  for (const int nodes : {2, 4, 16}) {
    const Prediction p = Predictor(fitted, *FindWorkload(kNetwork), T4()).Predict(Ring(nodes));
    const Prediction q = Predictor(plain, *FindWorkload(kNetwork), T4()).Predict(Ring(nodes));
    EXPECT_LT(std::log(p.high / p.low), 1.1 * std::log(q.high / q.low)) << nodes;
  }
}

TEST(Alternatives, AreWrittenCutAndForgotten) {
  const Cluster fitted = FittedToOneAndFour(HeldBackBy(kFlowBandwidth, 5), 11);
  ASSERT_GT(fitted.calibration->alternatives.rows(), 0);
  const Workload network = *FindWorkload(kNetwork);
  const Prediction whole = Predictor(fitted, network, T4()).Predict(Ring(2));
  const auto expect_same = [&](const Cluster& cluster, const char* what) {
    const Prediction p = Predictor(cluster, network, T4()).Predict(Ring(2));
    EXPECT_NEAR(p.low / whole.low, 1, 1e-12) << what;
    EXPECT_NEAR(p.high / whole.high, 1, 1e-12) << what;
  };
  const Cluster read = ParseCluster(FormatCluster(fitted), "fitted.yaml");
  EXPECT_EQ(read.calibration->alternatives, fitted.calibration->alternatives);
  expect_same(read, "read");
  expect_same(Excerpts(fitted).Of(network, kSyntheticDevice), "its part of the calibration");
  // What was another explanation of earlier runs need not be one of later ones.
  OnlineCalibration online(fitted, network, T4(), kSyntheticDevice);
  expect_same(online.cluster(), "nothing observed");
  online.Observe(Ring(2), whole.step_time);
  EXPECT_EQ(online.cluster().calibration->alternatives.rows(), 0);
}

}  // namespace
}  // namespace stepcast
