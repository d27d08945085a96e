// What a compiled plan finds in its tables instead of computing it for each query.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "data/workloads/catalog.h"
#include "predictor/compiled/compiled.h"
#include "predictor/compiled/known_parts.h"
#include "predictor/compiled_plan.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"

namespace stepcast::internal {
namespace {

// Known parts that count what they would have to compute.
struct CountingParts : KnownParts<double> {
  int* computed = nullptr;

  PathRate<double> NodeRate(const LinkFacts& link, const ClusterParameters<double>& cluster,
                            const FlowShape& shape, const Barrier<double>& barrier,
                            PathTerms<double>* terms) const {
    if (Rates<double>::Find(rates->node, KeyOf(shape)) == nullptr) ++*computed;
    return KnownParts<double>::NodeRate(link, cluster, shape, barrier, terms);
  }
  PathRate<double> ServerRate(const LinkFacts& link, const ClusterParameters<double>& cluster,
                              const FlowShape& shape, const Barrier<double>& barrier,
                              PathTerms<double>* terms) const {
    if (Rates<double>::Find(rates->server, shape.peers) == nullptr) ++*computed;
    return KnownParts<double>::ServerRate(link, cluster, shape, barrier, terms);
  }
};

// Rates over the plan's own links that are in no table.
int ComputedRates(const CompiledState& state, const PlanQuery& query) {
  const StepFacts facts = state.FactsOf(query);
  int computed = 0;
  const CountingParts parts{state.PartsOf(query), &computed};
  if (UsesServers(facts.strategy)) {
    MakeServerRoutes<double>(facts, state.cluster, state.workload, parts, nullptr);
  } else {
    MakeCollectiveHops<double>(facts, state.cluster, parts, nullptr);
  }
  return computed;
}

TEST(CompiledRates, AreTabledForEveryPlacementOfAScheduler) {
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), *FindWorkload("resnet50"),
                            std::nullopt);
  for (int s = 0; s < kStrategyCount; ++s) {
    const auto strategy = static_cast<Strategy>(s);
    const StrategyTraits& traits = TraitsOf(strategy);
    if (!traits.exchanges || traits.to_be_chosen) continue;
    std::vector<int> servers;
    if (!traits.servers) servers.push_back(0);
    if (traits.may_have_servers()) servers.push_back(4);
    for (const int of_plan : servers) {
      Plan plan = AllreducePlan(Placement(16, 4), 32);
      plan.strategy = strategy;
      plan.servers = of_plan;
      const CompiledState state(predictor, plan, {});
      for (int nodes = 1; nodes <= 64; ++nodes) {
        for (int asked = of_plan > 0 ? 1 : 0; asked <= 2 * of_plan; ++asked) {
          PlanQuery query = QueryOf(plan);
          query.nodes = nodes;
          query.workers = 4 * nodes;
          query.servers = asked;
          ASSERT_EQ(state.Check(query), QueryStatus::kOk);
          ASSERT_EQ(ComputedRates(state, query), 0)
              << StrategyName(strategy) << ", " << nodes << " nodes, " << asked << " servers";
        }
      }
    }
  }
}

}  // namespace
}  // namespace stepcast::internal
