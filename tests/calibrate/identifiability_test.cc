// What runs cannot tell apart, and which run would.
#include "calibrate/identifiability.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/next_runs.h"
#include "data/values/workload_scope.h"
#include "tests/calibrate/synthetic_runs.h"

namespace stepcast {
namespace {

BelievedModel Model(const Cluster& cluster) {
  return {cluster, *FindWorkload("resnet50"), std::nullopt, kSyntheticDevice};
}

// ---- By hand.

// The calibration knows everything to 2 %, but for what is set here.
class Believed {
 public:
  Believed() : cluster_(CalibratedCluster(PlausibleTruth(), 0.02)) {}

  void Set(const std::string& one, const std::string& other, double sd, double other_sd,
           double correlation) {
    const Eigen::Index i = IndexOf(one);
    const Eigen::Index j = IndexOf(other);
    Eigen::MatrixXd& c = cluster_.calibration->log_covariance;
    c(i, i) = sd * sd;
    c(j, j) = other_sd * other_sd;
    c(i, j) = c(j, i) = correlation * sd * other_sd;
  }
  std::vector<Ambiguity> Find(const std::vector<Plan>& candidates = {}) const {
    return FindAmbiguities(Model(cluster_), candidates);
  }
  // Of every step, whatever it is made of.
  void SetScatter(double log_sd) { cluster_.calibration->residual_log_sd = log_sd; }
  const Cluster& cluster() const { return cluster_; }

 private:
  Eigen::Index IndexOf(const std::string& name) const {
    const std::vector<ParameterEstimate>& all = cluster_.calibration->parameters;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool of_others =
          all[i].scope != kClusterScope &&
          all[i].scope != WorkloadScope(*FindWorkload("resnet50"), kSyntheticDevice);
      if (all[i].name == name && !of_others) return static_cast<Eigen::Index>(i);
    }
    throw std::logic_error("no parameter " + name);
  }

  Cluster cluster_;
};

TEST(Ambiguities, NoneWhereAllIsKnown) { EXPECT_TRUE(Believed().Find().empty()); }

TEST(Ambiguities, ARatioWhereErrorsGoTogether) {
  Believed believed;
  believed.Set("flow_bandwidth", "sample_time", 0.5, 0.4, 0.95);
  const std::vector<Ambiguity> found = believed.Find();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].first, "flow_bandwidth");
  EXPECT_EQ(found[0].second, "sample_time of resnet50 on t4");
  EXPECT_FALSE(found[0].product) << "both too high leaves their ratio";
  EXPECT_NEAR(found[0].log_sd, 0.5, 1e-12);
  // The standard deviation of ln(flow) - ln(sample).
  EXPECT_NEAR(found[0].conditional_log_sd, found[0].log_sd * std::sqrt(1 - 0.95 * 0.95), 1e-12);
  EXPECT_FALSE(found[0].separating.has_value()) << "there is nothing to choose from";
}

TEST(Ambiguities, AProductWhereTheyGoAgainstEachOther) {
  Believed believed;
  believed.Set("flow_bandwidth", "host_bandwidth", 0.3, 0.6, -0.92);
  const std::vector<Ambiguity> found = believed.Find();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].product) << "one too high and one too low leaves their product";
  EXPECT_NEAR(found[0].log_sd, 0.6, 1e-12) << "of the less certain one";
  // The standard deviation of ln(flow) + ln(host).
  EXPECT_NEAR(found[0].conditional_log_sd, found[0].log_sd * std::sqrt(1 - 0.92 * 0.92), 1e-12);
}

TEST(Ambiguities, NeedACorrelationAndADoubt) {
  const auto count = [](double sd, double other_sd, double correlation) {
    Believed believed;
    believed.Set("flow_bandwidth", "host_bandwidth", sd, other_sd, correlation);
    return believed.Find().size();
  };
  EXPECT_EQ(count(0.5, 0.5, 0.91), 1U);
  EXPECT_EQ(count(0.5, 0.5, -0.91), 1U);
  EXPECT_EQ(count(0.5, 0.5, 0.82), 0U);
  EXPECT_EQ(count(0.5, 0.5, -0.82), 0U);
  EXPECT_EQ(count(0.5, 0.5, 0.0), 0U) << "of priors nothing is known together either";
  EXPECT_EQ(count(0.5, 0.1, 0.95), 0U) << "one of them is known";
  EXPECT_EQ(count(0.1, 0.1, 0.95), 0U);
}

// Where one is known far better than the other, a strong correlation does not make their product
// known: nobody may be told that it is.
TEST(Ambiguities, WhatIsKnownTogetherIsKnownBetter) {
  for (const double correlation : {-0.92, 0.92}) {
    Believed believed;
    believed.Set("flow_bandwidth", "host_bandwidth", 0.16, 1.5, correlation);
    for (const Ambiguity& a : believed.Find()) {
      EXPECT_LE(a.conditional_log_sd, 0.5501 * a.log_sd) << a.first << ", " << a.second;
    }
  }
}

TEST(Ambiguities, TheWorstFirstAndEachParameterOnce) {
  Believed believed;
  believed.Set("overlap_share", "fixed_time", 0.4, 0.4, 0.93);
  believed.Set("flow_bandwidth", "host_bandwidth", 0.5, 0.5, -0.99);
  believed.Set("host_bandwidth", "hop_spread", 0.5, 0.5, 0.94);
  const std::vector<Ambiguity> found = believed.Find();
  ASSERT_EQ(found.size(), 2U) << "host_bandwidth has its partner already";
  EXPECT_EQ(found[0].first, "flow_bandwidth");
  EXPECT_EQ(found[0].second, "host_bandwidth");
  EXPECT_EQ(found[1].first, "overlap_share");
}

// Of a standard deviation 0.55 may remain, and neither value is known to 0.15: to either side.
TEST(Ambiguities, BeginWhereTheyAreSaidTo) {
  const auto is_one = [](double sd, double other_sd, double correlation) {
    Believed believed;
    believed.Set("flow_bandwidth", "host_bandwidth", sd, other_sd, correlation);
    return !believed.Find().empty();
  };
  const double least = std::sqrt(1 - 0.55 * 0.55);
  for (const int sign : {1, -1}) {
    EXPECT_TRUE(is_one(0.5, 0.5, sign * (least + 1e-3)));
    EXPECT_FALSE(is_one(0.5, 0.5, sign * (least - 1e-3)));
  }
  EXPECT_TRUE(is_one(0.5, 0.1501, 0.95));
  EXPECT_TRUE(is_one(0.1501, 0.5, 0.95));
  EXPECT_FALSE(is_one(0.5, 0.1499, 0.95));
  EXPECT_FALSE(is_one(0.1499, 0.5, 0.95));
}

// ---- The run that separates.

// A run is worth it that leaves nine tenths of a standard deviation, or less.
TEST(SeparatingRun, IsWorthItFromATenthOn) {
  const Plan plan = AllreducePlan({1, 1, 1}, 8);
  for (const auto& [remains, worth] : {std::pair(0.898, true), std::pair(0.902, false)}) {
    Believed believed;
    believed.Set("flow_bandwidth", "host_bandwidth", 0.4, 0.7, -0.97);
    const BelievedModel model = Model(believed.cluster());
    const Eigen::MatrixXd& c = model.belief().log_covariance();
    const Eigen::VectorXd gradient = model.Evaluate(plan).gradient;
    const double shown = c.row(kHostBandwidth).dot(gradient);
    // The scatter of a step at which this is what remains.
    const double variance =
        shown * shown / ((1 - remains * remains) * c(kHostBandwidth, kHostBandwidth)) -
        gradient.dot(c * gradient);
    ASSERT_GT(variance, 0);
    believed.SetScatter(std::sqrt(variance));
    const std::vector<Ambiguity> found = believed.Find({plan});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].separating.has_value(), worth) << remains;
    if (!worth) continue;
    EXPECT_NEAR(found[0].separated_log_sd, remains * found[0].log_sd, 1e-9);
  }
}

TEST(SeparatingRun, LeavesTheLeastOfTheLessCertainOne) {
  Believed believed;
  believed.Set("flow_bandwidth", "host_bandwidth", 0.4, 0.7, -0.97);
  const std::vector<Plan> candidates = {AllreducePlan({1}, 8), AllreducePlan({4}, 8),
                                        AllreducePlan({1, 1}, 8), AllreducePlan({1, 1, 1}, 8)};
  const std::vector<Ambiguity> found = believed.Find(candidates);
  ASSERT_EQ(found.size(), 1U);
  ASSERT_TRUE(found[0].separating.has_value());
  // By Bayes' rule, of every candidate.
  const BelievedModel model = Model(believed.cluster());
  const Eigen::MatrixXd& c = model.belief().log_covariance();
  double least = 1e9;
  Placement best;
  for (const Plan& plan : candidates) {
    const BelievedModel::Answer answer = model.Evaluate(plan);
    const double scatter = model.belief().ScatterAt(answer.sync_share);
    const double joint = answer.gradient.dot(c * answer.gradient) + scatter * scatter;
    const double shown = c.row(kHostBandwidth).dot(answer.gradient);
    const double sd = std::sqrt(c(kHostBandwidth, kHostBandwidth) - shown * shown / joint);
    if (sd < least) {
      least = sd;
      best = plan.placement;
    }
  }
  EXPECT_EQ(found[0].separating->placement, best);
  EXPECT_NEAR(found[0].separated_log_sd, least, 1e-9);
  EXPECT_LT(found[0].separated_log_sd, 0.9 * found[0].log_sd);
  // Whichever is asked for first.
  const std::vector<Ambiguity> turned = believed.Find({candidates.rbegin(), candidates.rend()});
  ASSERT_TRUE(turned.size() == 1 && turned[0].separating);
  EXPECT_EQ(turned[0].separating->placement, best);
  EXPECT_NEAR(turned[0].separated_log_sd, least, 1e-9);
}

TEST(SeparatingRun, NoneWhereNoCandidateTells) {
  Believed believed;
  believed.Set("server_rate", "rpc_rounds", 0.5, 0.5, 0.95);
  const std::vector<Ambiguity> found =
      believed.Find({AllreducePlan({1}, 8), AllreducePlan({1, 1, 1}, 8)});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_FALSE(found[0].separating.has_value()) << "no plan has servers";
  EXPECT_EQ(found[0].separated_log_sd, 0);
}

// ---- Campaigns.

// A cluster whose ports are known to be far from the bottleneck, so that what a hop costs is the
// flow's part and the host's.
SyntheticProblem FastPorts(DataRate<> host = GigabytesPerSecond(7)) {
  Truth truth = PlausibleTruth();
  truth.workloads = {{"resnet50", truth.workloads.at("resnet50")}};
  truth.cluster.si[kLinkBandwidth] = GigabitsPerSecond(200.0).si();
  truth.cluster.si[kHostBandwidth] = host.si();
  Cluster cluster = SyntheticCluster();
  cluster.link.bandwidth = GigabitsPerSecond(200.0);
  return SyntheticProblem(truth, cluster);
}

void AddPlacements(SyntheticProblem* synthetic, const std::vector<Placement>& placements) {
  Noise noise(1);
  for (const Placement& placement : placements) {
    for (const int batch : SyntheticBatches("resnet50")) {
      for (int repeat = 0; repeat < 3; ++repeat) {
        synthetic->Add("resnet50", AllreducePlan(placement, batch), 0.02 * noise.Next());
      }
    }
  }
}

std::vector<Ambiguity> AmbiguitiesOf(const SyntheticProblem& synthetic) {
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  EXPECT_TRUE(outcome.IsUsable()) << outcome.message;
  const Plan target = AllreducePlan(Placement(8, 4), 8);
  return FindAmbiguities(Model(outcome.cluster), CandidatePlans(target, {2, 64}));
}

const Ambiguity* FindPair(const std::vector<Ambiguity>& all, const std::string& one,
                          const std::string& other) {
  for (const Ambiguity& a : all) {
    if ((a.first == one && a.second == other) || (a.first == other && a.second == one)) return &a;
  }
  return nullptr;
}

// Between two nodes a faster flow makes up for a wider spread.
TEST(Pairs, CannotTellTheFlowFromItsSpread) {
  SyntheticProblem synthetic = FastPorts();
  AddPlacements(&synthetic, {{1}, {1, 1}});
  const std::vector<Ambiguity> found = AmbiguitiesOf(synthetic);
  const Ambiguity* pair = FindPair(found, "flow_bandwidth", "hop_spread");
  ASSERT_NE(pair, nullptr) << found.size() << " others";
  ASSERT_TRUE(pair->separating.has_value());
  const Plan& run = *pair->separating;
  EXPECT_GE(run.nodes(), 3) << "another pair shows the same again";
  EXPECT_LT(pair->separated_log_sd, 0.9 * pair->log_sd);
}

// The run that was proposed does separate them.
TEST(Campaigns, TheProposedRunKeepsItsPromise) {
  SyntheticProblem synthetic = FastPorts();
  AddPlacements(&synthetic, {{1}, {1, 1}});
  const std::vector<Ambiguity> before = AmbiguitiesOf(synthetic);
  const Ambiguity* pair = FindPair(before, "flow_bandwidth", "hop_spread");
  ASSERT_NE(pair, nullptr);
  ASSERT_TRUE(pair->separating.has_value());
  for (int repeat = 0; repeat < 4; ++repeat) synthetic.Add("resnet50", *pair->separating);
  const CalibrationOutcome after = Calibrate(synthetic.problem());
  ASSERT_TRUE(after.IsUsable()) << after.message;
  const int worse = pair->first == "hop_spread" ? kHopSpread : kFlowBandwidth;
  const Eigen::MatrixXd& c = after.cluster.calibration->log_covariance;
  EXPECT_LT(std::min(c(kFlowBandwidth, kFlowBandwidth), c(kHopSpread, kHopSpread)),
            0.8 * pair->log_sd * pair->log_sd);
  EXPECT_LT(c(worse, worse), pair->log_sd * pair->log_sd);
}

TEST(Campaigns, ARichOneLeavesFewerDoubts) {
  SyntheticProblem poor = FastPorts();
  AddPlacements(&poor, {{1}, {1, 1}});
  SyntheticProblem rich = FastPorts();
  AddPlacements(&rich, {{1}, {2}, {4}, {1, 1}, {1, 1, 1}, {2, 2}, {4, 4}, Placement(8, 4)});
  const std::vector<Ambiguity> of_rich = AmbiguitiesOf(rich);
  EXPECT_LT(of_rich.size(), AmbiguitiesOf(poor).size());
  EXPECT_EQ(FindPair(of_rich, "flow_bandwidth", "host_bandwidth"), nullptr);
}

}  // namespace
}  // namespace stepcast
