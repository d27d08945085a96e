#include "model/step/plan_key.h"

#include <optional>
#include <type_traits>
#include <utility>

namespace stepcast {
namespace {

double Number(double n) { return n; }
template <class E>
requires std::is_enum_v<E>
double Number(E e) { return static_cast<double>(e); }
template <class D, class T>
double Number(const Quantity<D, T>& q) {
  return q.si();
}

template <class T>
double Known(const std::optional<T>& value) {
  return value ? Number(*value) : -1;
}

PlanKey Options(const Plan& plan, double bucket) {
  return {Number(plan.strategy),
          Number(plan.servers),
          Number(plan.local_batch),
          Number(plan.accumulation_steps),
          bucket,
          Number(plan.overlap),
          Number(plan.backup_workers),
          Number(plan.server.colocated),
          Number(plan.server.sharding),
          Number(plan.server.pipelined),
          Number(plan.server.multicast),
          Number(plan.server.in_network_aggregation),
          Known(plan.server.staleness_bound)};
}

}  // namespace

PlanKey OptionsKey(const Plan& plan) { return Options(plan, Known(plan.bucket)); }

void AppendLink(const LinkFacts& link, PlanKey* key) {
  key->insert(key->end(), {Known(link.bandwidth), Known(link.rtt), Known(link.loss),
                           Known(link.congestion_control), Known(link.loss_burst)});
}

PlanKey FactsKey(const Cluster& cluster, const Plan& plan, const std::vector<int>& links) {
  PlanKey key = {Number(plan.workers()), Number(plan.nodes()),
                 Number(DevicesOnFullestNode(plan.placement))};
  const DataSize<> bucket = plan.bucket.value_or(DefaultBucket(plan.strategy));
  const PlanKey options = Options(plan, Number(bucket));
  key.insert(key.end(), options.begin(), options.end());
  AppendLink(LinkOf(cluster, plan), &key);
  AppendLink(ServerLinkOf(cluster, plan), &key);
  key.insert(key.end(), links.begin(), links.end());
  return key;
}

}  // namespace stepcast
