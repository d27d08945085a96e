#include "model/step/plan_key.h"

#include "model/overlap/buckets.h"
#include "model/step/step_facts.h"

namespace stepcast {

PlanKey FactsKey(const Cluster& cluster, const Plan& plan, const std::vector<int>& links,
                 const std::vector<int>& slowdowns, bool others) {
  PlanKey key = {static_cast<double>(plan.workers()), static_cast<double>(plan.nodes()),
                 static_cast<double>(DevicesOnFullestNode(plan.placement))};
  // The default of units depends on the workload: no stated cap is taken for it.
  const bool by_units = GathersUnits(plan.shard);
  const PlanKey options = OptionsKey(plan, by_units ? DataSize<>() : DefaultBucket(plan.strategy));
  key.insert(key.end(), options.begin(), options.end());
  AppendLink(LinkOf(cluster, plan), &key);
  AppendLink(ServerLinkOf(cluster, plan), &key);
  key.insert(key.end(), links.begin(), links.end());
  if (slowdowns.empty()) return key;
  key.push_back(others ? -1 : -2);  // no number of a host's, which parts the two
  key.insert(key.end(), slowdowns.begin(), slowdowns.end());
  return key;
}

}  // namespace stepcast
