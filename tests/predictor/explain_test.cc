// What `explain` shows is what was evaluated: parts that add up, formulas that exist, elasticities
// that the facade itself confirms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "data/workloads/catalog.h"
#include "model/catalog/catalog.h"
#include "predictor/predictor.h"

namespace stepcast {
namespace {

Device FastDevice() {
  Device device;
  device.name = "x";
  device.fp32 = WorkRate<>::FromSi(1e13);
  device.memory_bandwidth = BytesPerSecond(5e11);
  return device;
}

Predictor MakePredictor() {
  Cluster cluster;
  cluster.name = "four nodes";
  cluster.device = "x";
  cluster.nodes = 4;
  cluster.devices_per_node = 2;
  return {cluster, *FindWorkload("resnet50"), FastDevice()};
}

Plan PlanOf(Strategy strategy) {
  Plan plan;
  plan.placement = {2, 2, 2};
  plan.strategy = strategy;
  plan.servers = UsesServers(strategy) || strategy == Strategy::kBytePs ? 2 : 0;
  plan.local_batch = 32;
  plan.link.bandwidth = GigabitsPerSecond(1.0);
  plan.link.rtt = Milliseconds(1.0);
  plan.link.loss = 1e-4;
  return plan;
}

const std::vector<Strategy> kStrategies = {
    Strategy::kAllreduce, Strategy::kTree, Strategy::kHalvingDoubling, Strategy::kHierarchical,
    Strategy::kBytePs,    Strategy::kAuto, Strategy::kPsSync,          Strategy::kPsAsync};

TEST(Explain, PartsAddUpToTheStep) {
  const Predictor predictor = MakePredictor();
  for (const Strategy strategy : kStrategies) {
    const Explanation explanation = predictor.Explain(PlanOf(strategy));
    double shares = 0;
    for (const ExplainedTerm& term : explanation.terms) shares += term.is_part ? term.share : 0;
    EXPECT_NEAR(shares, 1, 1e-12) << StrategyName(strategy);
  }
}

TEST(Explain, EveryModelIsInTheCatalogue) {
  std::set<std::string> ids;
  for (const Model<double>& model : Catalog<double>()) ids.insert(model.id);
  const Predictor predictor = MakePredictor();
  for (const Strategy strategy : kStrategies) {
    for (const ExplainedTerm& term : predictor.Explain(PlanOf(strategy)).terms) {
      EXPECT_FALSE(term.formula.empty()) << term.name;
      EXPECT_FALSE(term.source.empty()) << term.name;
      if (!term.model.empty()) {
        EXPECT_EQ(ids.count(term.model), 1U) << term.name << ": " << term.model;
      }
    }
  }
}

TEST(Explain, ElasticitiesAreWhatTheFacadeDoes) {
  constexpr double kMore = 1.0001;
  const Predictor predictor = MakePredictor();
  for (const Strategy strategy : {Strategy::kRing, Strategy::kPsSync}) {
    const Plan plan = PlanOf(strategy);
    Plan faster = plan;
    faster.link.bandwidth = *plan.link.bandwidth * kMore;
    Plan farther = plan;
    farther.link.rtt = *plan.link.rtt * kMore;
    Plan lossier = plan;
    lossier.link.loss = *plan.link.loss * kMore;
    const auto measured = [&](const Plan& changed) {
      return std::log(predictor.PredictStep(changed).total() /
                      predictor.PredictStep(plan).total()) /
             std::log(kMore);
    };
    const Explanation explanation = predictor.Explain(plan);
    const auto stated = [&](const std::string& name) {
      for (const ExplainedParameter& p : explanation.parameters) {
        if (p.value.symbol == name) return p.elasticity;
      }
      ADD_FAILURE() << name;
      return 0.0;
    };
    EXPECT_NEAR(stated("link bandwidth"), measured(faster), 2e-4);
    EXPECT_NEAR(stated("link round trip"), measured(farther), 2e-4);
    EXPECT_NEAR(stated("link loss"), measured(lossier), 2e-4);
    EXPECT_LT(stated("link bandwidth"), 0);
    EXPECT_GT(stated("link round trip"), 0);
    EXPECT_GT(stated("link loss"), 0);
  }
}

TEST(Explain, TheMostInfluentialComesFirst) {
  const Explanation explanation = MakePredictor().Explain(PlanOf(Strategy::kRing));
  ASSERT_GT(explanation.parameters.size(), 5U);
  EXPECT_TRUE(std::is_sorted(explanation.parameters.begin(), explanation.parameters.end(),
                             [](const ExplainedParameter& a, const ExplainedParameter& b) {
                               return std::abs(a.elasticity) > std::abs(b.elasticity);
                             }));
  for (const ExplainedParameter& p : explanation.parameters) {
    EXPECT_EQ(p.log_sd > 0, p.origin != Origin::kStated) << p.value.symbol;
    EXPECT_FALSE(p.meaning.empty()) << p.value.symbol;
  }
}

TEST(Explain, AutoNamesItsAlgorithmAndReason) {
  const Prediction p = MakePredictor().Predict(PlanOf(Strategy::kAuto));
  EXPECT_NE(p.algorithm, Strategy::kAuto);
  EXPECT_NE(p.algorithm_reason.find(StrategyName(p.algorithm)), std::string::npos)
      << p.algorithm_reason;
  const Duration<> chosen = p.step_time;
  for (const Strategy other :
       {Strategy::kRing, Strategy::kTree, Strategy::kHalvingDoubling, Strategy::kHierarchical}) {
    EXPECT_LE(chosen.si(), MakePredictor().PredictStep(PlanOf(other)).total().si() * (1 + 1e-9))
        << StrategyName(other);
  }
}

}  // namespace
}  // namespace stepcast
