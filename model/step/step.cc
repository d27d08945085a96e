#include "model/step/step.h"

#include <algorithm>
#include <utility>

#include "data/record/input_error.h"

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
  const bool crosses_links =
      plan.strategy != Strategy::kNone && (plan.nodes() > 1 || UsesServers(plan.strategy));
  if (!crosses_links) return facts;
  for (const LinkFacts* link : {&facts.link, &facts.server_link}) {
    if (link->loss.value_or(0) > 0 && !Overlay(facts.link, *link).rtt) {
      throw InputError(
          {"", 0, "loss"}, "", "needs a round-trip time to become a rate",
          "a round trip beside it: --rtt \"1 ms\", rtt_ms in runs, link.rtt in the cluster file");
    }
  }
  return facts;
}

}  // namespace stepcast
