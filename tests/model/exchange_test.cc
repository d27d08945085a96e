// What must be true of every way to exchange gradients. A strategy that is added and forgotten in
// one of its places fails here; see "a strategy" in CONTRIBUTING.md.
#include "model/exchange/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "model/catalog/catalog.h"
#include "model/exchange/growth.h"
#include "model/memory/memory.h"
#include "model/step/explainer.h"
#include "model/step/step.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

class Exchanges : public ::testing::TestWithParam<int> {
 protected:
  Exchanges() {
    workload_.name = "plain";
    workload_.parameters = workload_.trainable_parameters = 25'000'000;
    workload_.gradient_bytes = Megabytes(100.0);
    cluster_.nodes = 8;
  }

  Strategy strategy() const { return static_cast<Strategy>(GetParam()); }
  const StrategyTraits& traits() const { return TraitsOf(strategy()); }
  bool exchanges() const { return traits().exchanges && !traits().to_be_chosen; }

  Plan PlanOn(int nodes, int devices) const {
    Plan plan;
    plan.placement.assign(static_cast<std::size_t>(nodes), devices);
    plan.strategy = strategy();
    plan.servers = traits().may_have_servers() ? 2 : 0;
    plan.local_batch = 32;
    plan.link.bandwidth = GigabitsPerSecond(1.0);
    return plan;
  }
  StepFacts FactsOf(const Plan& plan) const {
    return MakeStepFacts(cluster_, plan, workload_,
                         std::make_shared<const std::vector<Bucket>>(
                             MakeBuckets(workload_, DefaultBucket(plan.strategy))));
  }

  Workload workload_;
  Cluster cluster_;
  const ClusterParameters<double> fitted_ = PriorCluster();
  const WorkloadParameters<double> network_ = PriorWorkload();
};

TEST_P(Exchanges, StandInTheDispatch) {
  EXPECT_EQ(&ExchangeOf(strategy()) == &ExchangeOf(Strategy::kNone), !traits().exchanges)
      << traits().name;
}

TEST_P(Exchanges, HaveANameOfTheirOwn) {
  EXPECT_EQ(std::count_if(kStrategyNames.begin(), kStrategyNames.end(),
                          [&](const std::string& name) { return name == traits().name; }),
            1);
}

TEST_P(Exchanges, SendWhereThereIsSomebody) {
  const DataSize<> total = CountTraffic(PlanOn(4, 2), Megabytes(100.0)).total;
  EXPECT_EQ(total.si() > 0, traits().exchanges) << traits().name;
}

TEST_P(Exchanges, OfALoneWorkerAreNothing) {
  if (traits().servers || traits().to_be_chosen) GTEST_SKIP() << "servers are somebody";
  EXPECT_EQ(CountTraffic(PlanOn(1, 1), Megabytes(100.0)).total.si(), 0);
  EXPECT_EQ(EvaluateStep(FactsOf(PlanOn(1, 1)), fitted_, network_).exposed().si(), 0);
}

// No worker's link carries its bytes sooner than they take at the line rate.
TEST_P(Exchanges, TakeAsLongAsTheirBytes) {
  if (!exchanges()) GTEST_SKIP();
  const Plan plan = PlanOn(4, 1);
  const Traffic traffic = CountTraffic(plan, workload_.gradient_bytes);
  EXPECT_GT(EvaluateStep(FactsOf(plan), fitted_, network_).synchronisation,
            traffic.per_worker / *plan.link.bandwidth)
      << traits().name;
}

TEST_P(Exchanges, KeepAShareOfTheModel) {
  for (const int nodes : {1, 4}) {
    const MemoryShares shares = ExchangeOf(strategy()).Memory(MemoryQuestion::Of(PlanOn(nodes, 1)));
    for (const double share : {shares.parameters, shares.gradients, shares.optimizer}) {
      EXPECT_GT(share, 0);
      EXPECT_LE(share, 1);
    }
    EXPECT_EQ(shares.buckets > 0, nodes > 1 && traits().exchanges);
  }
}

// The law of growth is the cost of the workers that it was made from, where the two are exact: on
// nodes of one device, with buckets that are large.
TEST_P(Exchanges, GrowAsTheirCost) {
  if (!exchanges() || !traits().synchronous) GTEST_SKIP() << "has no S(w)";
  Plan plan = PlanOn(8, 1);
  if (traits().helpers) plan.servers = 0;  // whose cards the law takes for workers'
  const StepFacts facts = FactsOf(plan);
  StepTerms<double> terms;
  const StepTime<double> step = EvaluateStep(facts, fitted_, network_, &terms);
  const GrowthQuestion question{plan, strategy(), terms, *facts.buckets, facts.gradient};
  const Exchange& exchange = ExchangeOf(strategy());
  const double law = exchange.Growth(question).Time(8.0).si();
  const double cost = (step.synchronisation - terms.overhead).si();
  EXPECT_NEAR(law / cost, 1, 0.02) << traits().name;
  // The pace of a call is its cost, and what compute has room for lies within it.
  const CallPaces paces = exchange.Paces(question);
  EXPECT_EQ(paces.steady.per_byte, terms.cost.per_byte);
  EXPECT_GE(exchange.Room(question).si(), 0);
  EXPECT_LE(exchange.Room(question).si(), terms.backward.si());
  if (facts.buckets->size() > 1) {
    EXPECT_GT(exchange.Room(question).si(), 0);
  }
  // What is exchanged after several whole steps has no backward pass to hide behind.
  Plan rare = plan;
  rare.local_steps = 4;
  const GrowthQuestion rarely{rare, strategy(), terms, *facts.buckets, facts.gradient};
  EXPECT_EQ(exchange.Room(rarely).si(), 0);
}

// Where the servers' phases run beside each other, the slower one sets the pace: the pull where the
// network adds up what is pushed, the push where it copies what is pulled.
TEST_P(Exchanges, TheSlowerOfPipelinedPhasesSetsThePace) {
  if (strategy() != Strategy::kPsSync) GTEST_SKIP() << "has no phases that are pipelined";
  Plan plan = PlanOn(8, 1);
  plan.server.pipelined = true;
  for (const bool adds : {false, true}) {
    plan.server.in_network_aggregation = adds;
    plan.server.multicast = !adds;
    const StepFacts facts = FactsOf(plan);
    StepTerms<double> terms;
    EvaluateStep(facts, fitted_, network_, &terms);
    const GrowthQuestion question{plan, strategy(), terms, *facts.buckets, facts.gradient};
    const Duration<> push = terms.phases.push.Time(facts.gradient);
    const Duration<> pull = terms.phases.pull.Time(facts.gradient);
    EXPECT_EQ(push < pull, adds);
    const CallPaces paces = ExchangeOf(strategy()).Paces(question);
    EXPECT_EQ(paces.steady.Time(facts.gradient), Max(push, pull));
    EXPECT_EQ(paces.chain.Time(facts.gradient), Max(push, pull));
  }
}

TEST_P(Exchanges, AreExplained) {
  if (!exchanges()) GTEST_SKIP();
  const StepFacts facts = FactsOf(PlanOn(4, 2));
  const std::vector<ExplainedTerm> terms = Explainer(facts, fitted_, network_).Make();
  double share = 0;
  int of_exchange = 0;
  for (const ExplainedTerm& term : terms) {
    if (term.is_part) share += term.share;
    EXPECT_FALSE(term.formula.empty()) << term.name;
    if (term.model.starts_with("collective/")) ++of_exchange;
  }
  EXPECT_NEAR(share, 1, 1e-9) << traits().name;
  EXPECT_GT(of_exchange, 0) << traits().name << ": no term names a formula of the exchange";
}

// Loops over the catalogue test derivatives and trends of every entry.
TEST_P(Exchanges, HaveAStepInTheCatalogue) {
  if (!exchanges() || strategy() == Strategy::kAllreduce) GTEST_SKIP() << "is the ring";
  std::string id = std::string("step/") + traits().name;
  const auto models = Catalog<double>();
  const auto is = [](char a, char b) { return a == b || (a == '_' && b == '-'); };
  EXPECT_TRUE(std::any_of(models.begin(), models.end(), [&](const Model<double>& model) {
    const std::string_view other = model.id;
    return std::equal(other.begin(), other.end(), id.begin(), id.end(), is);
  })) << id;
}

INSTANTIATE_TEST_SUITE_P(Model, Exchanges, ::testing::Range(0, kStrategyCount),
                         [](const auto& strategy) {
                           return TestName(
                               kStrategyNames[static_cast<std::size_t>(strategy.param)]);
                         });

}  // namespace
}  // namespace stepcast
