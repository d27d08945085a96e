#include "data/record/calibration.h"

#include <algorithm>
#include <sstream>

#include "data/record/link_path.h"
#include "data/record/machine.h"
#include "data/record/plan.h"

namespace stepcast {

std::vector<std::string> HostsOfScope(const std::string& scope) {
  const std::string prefix = kHostsScopePrefix;
  std::vector<std::string> hosts;
  if (scope.rfind(prefix, 0) != 0) return hosts;
  std::istringstream joined(scope.substr(prefix.size()));
  for (std::string host; std::getline(joined, host, '+');) hosts.push_back(host);
  return hosts;
}

std::optional<CalibratedRange::BatchRange> CalibratedRange::BatchesOf(
    const std::string& scope) const {
  const auto it = local_batch.find(scope);
  return it == local_batch.end() ? std::nullopt : std::optional(it->second);
}

std::vector<CalibratedRange::Ran> CalibratedRange::BatchRange::WhatRan() const {
  if (!ran.empty()) return ran;
  Ran largest{Shard::kNone, 1, max};
  if (max_workers > 1) largest.bytes_per_parameter = Plan().bytes_per_parameter;
  return {largest};
}

bool CalibratedRange::BatchRange::tells_more_than_batches() const {
  return WhatRan() != BatchRange{min, max, max_workers}.WhatRan();
}

bool CalibratedRange::Ran::Covers(const Ran& other) const {
  // Fewer sharers keep more each.
  return shard == other.shard && compress == other.compress && bucket == other.bucket &&
         sharers <= other.sharers && local_batch >= other.local_batch &&
         bytes_per_parameter >= other.bytes_per_parameter;
}

void CalibratedRange::BatchRange::AddRan(const Ran& step) {
  if (std::any_of(ran.begin(), ran.end(), [&](const Ran& of) { return of.Covers(step); })) return;
  std::erase_if(ran, [&](const Ran& other) { return step.Covers(other); });
  if (ran.size() < kMostRan) ran.push_back(step);
}

namespace {

CalibratedRange::Ran RanOf(const Plan& plan) {
  CalibratedRange::Ran ran;
  ran.local_batch = plan.largest_batch();
  if (!TraitsOf(plan.strategy).exchanges || plan.workers() == 1) return ran;
  ran.bytes_per_parameter = plan.bytes_per_parameter;
  ran.compress = plan.compress;
  ran.sharers = SharersOf(plan.shard, plan.workers(), DevicesOnFullestNode(plan.placement));
  if (ran.sharers > 1) ran.shard = ShardInMemory(plan.shard, plan.accumulation_steps);
  if (ran.shard >= Shard::kGradients) ran.bucket = plan.bucket;
  return ran;
}

// Grows by the batches of others.
void Include(const CalibratedRange::BatchRange& others, CalibratedRange::BatchRange* own) {
  own->ran = own->WhatRan();
  for (const CalibratedRange::Ran& step : others.WhatRan()) own->AddRan(step);
  own->min = std::min(own->min, others.min);
  own->max = std::max(own->max, others.max);
  own->max_workers = std::max(own->max_workers, others.max_workers);
}

// Grows by the line rate that a plan states or its cluster file knows.
void Include(const std::optional<DataRate<>>& stated, const std::optional<DataRate<>>& known,
             std::optional<CalibratedRange::RateRange>* range) {
  const std::optional<DataRate<>> rate = stated ? stated : known;
  if (!rate) return;
  if (!*range) *range = CalibratedRange::RateRange{*rate, *rate};
  (*range)->min = Min((*range)->min, *rate);
  (*range)->max = Max((*range)->max, *rate);
}

}  // namespace

void CalibratedRange::IncludeMessage(const Cluster& cluster, const Plan& plan) {
  if (empty()) exchanges.emplace();
  const int devices = DevicesOnFullestNode(plan.placement);
  const bool together = TraitsOf(plan.strategy).exchanges;
  max_workers = std::max(max_workers, together ? plan.workers() : devices);
  max_nodes = std::max(max_nodes, together ? plan.nodes() : 1);
  max_devices_per_node = std::max(max_devices_per_node, devices);
  if (!together) return;
  const bool to_servers = plan.has_server_link();
  const bool leaves_node = plan.nodes() > 1 || to_servers;
  if (leaves_node) stepcast::Include(plan.link.bandwidth, cluster.link.bandwidth, &bandwidth);
  if (to_servers) {
    stepcast::Include(plan.server_link.bandwidth, cluster.server_link.bandwidth, &bandwidth);
  }
  if (!exchanges || (plan.workers() == 1 && !to_servers)) return;
  Exchange exchange{plan.strategy};
  if (leaves_node) exchange.transport = TransportOf(cluster, plan);
  exchanges->insert(exchange);
}

void CalibratedRange::Include(const Cluster& cluster, const Plan& plan, const std::string& scope) {
  IncludeMessage(cluster, plan);
  const BatchRange its{plan.smallest_batch(), plan.largest_batch(), plan.workers(), {RanOf(plan)}};
  stepcast::Include(its, &local_batch.try_emplace(scope, its).first->second);
  if (plan.hosts.size() == 1) hosts_alone.insert(plan.hosts.front());
}

void CalibratedRange::Include(const CalibratedRange& other) {
  if (other.empty()) return;
  if (empty()) exchanges.emplace();
  if (exchanges && other.exchanges) {
    exchanges->insert(other.exchanges->begin(), other.exchanges->end());
  } else {
    exchanges.reset();
  }
  max_workers = std::max(max_workers, other.max_workers);
  max_nodes = std::max(max_nodes, other.max_nodes);
  max_devices_per_node = std::max(max_devices_per_node, other.max_devices_per_node);
  for (const auto& [scope, batch] : other.local_batch) {
    stepcast::Include(batch, &local_batch.try_emplace(scope, batch).first->second);
  }
  if (other.bandwidth) {
    stepcast::Include(other.bandwidth->min, std::nullopt, &bandwidth);
    stepcast::Include(other.bandwidth->max, std::nullopt, &bandwidth);
  }
  hosts_alone.insert(other.hosts_alone.begin(), other.hosts_alone.end());
}

}  // namespace stepcast
