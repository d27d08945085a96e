#include "calibrate/plan_key.h"

#include <numeric>
#include <optional>
#include <random>
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

}  // namespace

PlanKey OptionsKey(const Plan& plan) {
  return {Number(plan.strategy),
          Number(plan.servers),
          Number(plan.local_batch),
          Number(plan.accumulation_steps),
          Known(plan.bucket),
          Number(plan.overlap),
          Number(plan.backup_workers),
          Number(plan.server.colocated),
          Number(plan.server.sharding),
          Number(plan.server.pipelined),
          Number(plan.server.multicast),
          Number(plan.server.in_network_aggregation),
          Known(plan.server.staleness_bound)};
}

void AppendLink(const LinkFacts& link, PlanKey* key) {
  key->insert(key->end(), {Known(link.bandwidth), Known(link.rtt), Known(link.loss),
                           Known(link.congestion_control), Known(link.loss_burst)});
}

PlanKey FactsKey(const Plan& plan, const StepFacts& facts, const DataSize<>& bucket_cap) {
  PlanKey key = {Number(facts.workers), Number(facts.nodes), Number(facts.devices_per_node)};
  const PlanKey options = OptionsKey(plan);
  key.insert(key.end(), options.begin(), options.end());
  key.push_back(Number(bucket_cap));
  AppendLink(facts.link, &key);
  AppendLink(facts.server_link, &key);
  return key;
}

std::vector<std::size_t> ShuffledOrder(std::size_t n) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random;
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

}  // namespace stepcast
