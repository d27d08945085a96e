#include "model/step/step.h"

#include <algorithm>
#include <utility>

namespace stepcast {

StepFacts MakeStepFacts(const Cluster& cluster, const Plan& plan, DataSize<> gradient,
                        std::shared_ptr<const std::vector<Bucket>> buckets) {
  StepFacts facts;
  facts.workers = plan.workers();
  facts.nodes = plan.nodes();
  facts.devices_per_node = DevicesOnFullestNode(plan.placement);
  facts.servers = plan.servers;
  facts.accumulation_steps = plan.accumulation_steps;
  facts.batch = plan.local_batch;
  facts.strategy = plan.strategy;
  facts.gradient = gradient;
  facts.buckets = std::move(buckets);
  facts.link = cluster.link;
  for (const Host& host : cluster.hosts) {
    if (std::find(plan.hosts.begin(), plan.hosts.end(), host.name) == plan.hosts.end()) continue;
    if (host.link.rtt) facts.link.rtt = Max(facts.link.rtt.value_or(Duration<>()), *host.link.rtt);
    if (host.link.loss) facts.link.loss = std::max(facts.link.loss.value_or(0), *host.link.loss);
  }
  facts.link = Overlay(facts.link, plan.link);
  facts.link.bandwidth = plan.link.bandwidth;
  facts.device_rtt = cluster.device_link.rtt.value_or(Duration<>());
  facts.server_link = Overlay(cluster.server_link, plan.server_link);
  return facts;
}

}  // namespace stepcast
