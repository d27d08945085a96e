#include "model/step/step.h"

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
  facts.link = Overlay(cluster.link, plan.link);
  facts.link.bandwidth = plan.link.bandwidth;
  facts.server_link = Overlay(cluster.server_link, plan.server_link);
  for (const LinkFacts* link : {&facts.link, &facts.server_link}) {
    if (link->loss.value_or(0) > 0 && !Overlay(facts.link, *link).rtt) {
      throw InputError({"", 0, "loss"}, "", "needs a round-trip time to become a rate",
                       "an rtt beside it, like \"1 ms\"");
    }
  }
  return facts;
}

}  // namespace stepcast
