#include "model/step/step.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "data/plan/check.h"
#include "data/record/input_error.h"
#include "data/record/link_path.h"
#include "data/record/machine.h"
#include "model/exchange/library_choice.h"
#include "model/step/workload_counts.h"

namespace stepcast {

template StepTime<double> EvaluateStep(const StepFacts&, const ClusterParameters<double>&,
                                       const WorkloadParameters<double>&, StepTerms<double>*);
template AllreduceChoice<double> EvaluateChoice(const StepFacts&, const ClusterParameters<double>&);
template PhaseBenefit<double> EvaluateServerPhases(const StepFacts&,
                                                   const ClusterParameters<double>&,
                                                   const WorkloadParameters<double>&);

namespace {

// What a worker exchanges in a synchronisation.
DataSize<> SentBytes(const Workload& workload, const Plan& plan,
                     const std::vector<Bucket>& buckets) {
  DataSize<> whole = workload.gradient_bytes;
  if (plan.compress.is_factored()) {
    whole = {};
    for (const Bucket& message : buckets) whole += message.bytes;
  }
  return whole * plan.exchanged_share();
}

void RequireSwitches(const LinkFacts& link) {
  if (!LacksSwitches(link)) return;
  throw InputError({"", 0, "nodes-per-switch"}, "", "is required with oversubscription",
                   "the nodes on a switch, like 16");
}

}  // namespace

StepFacts MakeStepFacts(const Cluster& cluster, const Plan& plan, const Workload& workload,
                        const std::shared_ptr<const std::vector<Bucket>>& buckets,
                        const std::optional<DataRate<>>& memory_bandwidth,
                        const WorkloadCounts* counts) {
  std::optional<WorkloadCounts> own;
  const WorkloadCounts& counted = counts != nullptr ? *counts : own.emplace(workload);
  StepFacts facts;
  facts.workers = plan.workers();
  facts.nodes = plan.nodes();
  facts.devices_per_node = DevicesOnFullestNode(plan.placement);
  facts.nics = cluster.nics_per_node;
  facts.servers = plan.servers;
  facts.accumulation_steps = plan.accumulation_steps;
  facts.batch = plan.local_batch;
  facts.strategy = LeavesAlgorithm(plan) ? LibraryAllreduce(facts.nodes, facts.devices_per_node,
                                                            counted.has_device_links)
                                         : plan.strategy;
  // The parameters that local steps average are known after the last of them.
  facts.overlap = plan.local_steps > 1 ? Overlap::kNone : plan.overlap;
  facts.backup_workers = plan.backup_workers;
  if (plan.slow_nodes > 0) {
    facts.slow_speed = plan.slow_speed;
    facts.slow_workers = plan.slow_workers();
    if (plan.slow_local_batch && *plan.slow_local_batch != plan.local_batch) {
      facts.slow_share.emplace().batch = *plan.slow_local_batch;
    }
  }
  facts.shard = plan.shard_on_nodes();
  facts.local_steps = plan.local_steps;
  facts.input_rate = plan.input_rate;
  facts.compress = plan.compress;
  facts.dense_gradient = workload.gradient_bytes;
  facts.coding_rate = plan.compress_rate;
  facts.memory_bandwidth = memory_bandwidth.value_or(DataRate<>());
  if (plan.compress.exists() && !plan.compress_rate && !memory_bandwidth) {
    throw InputError({"", 0, "compress-rate"}, "",
                     "is required with compress: nobody knows the memory bandwidth of the device",
                     "gradients that it encodes and decodes in a second, like \"20 GB/s\"");
  }
  facts.has_compute = !workload.communication_only;
  facts.recomputing = counted.recomputation.At(facts.batch);
  if (auto& share = facts.slow_share) {
    share->recomputing = counted.recomputation.At(share->batch);
  }
  facts.gradient = SentBytes(workload, plan, *buckets);
  facts.server = plan.server;
  if (workload.communication_only && internal::Alone(facts)) {
    throw InputError({"", 0, "workload"}, workload.name,
                     "is a bare message, and nothing is exchanged",
                     "two workers or more, or servers on nodes of their own");
  }
  facts.buckets = Scaled(buckets, plan.exchanged_share());
  if (UsesServers(plan.strategy)) {
    const bool has_phases = TraitsOf(plan.strategy).has_phases();
    const TensorShards::Held held =
        counted.shards.Of(workload, plan, has_phases && plan.servers > 1 ? buckets : nullptr);
    facts.server_share = held.share;
    facts.tensors = std::max(1.0, static_cast<double>(workload.tensor_count()));
    if (has_phases) {
      facts.held_buckets =
          held.buckets ? Scaled(held.buckets, plan.exchanged_share()) : facts.buckets;
    }
  }
  facts.link = LinkOf(cluster, plan);
  facts.uplinks_known = cluster.link.bandwidth.has_value();
  facts.device_rtt = cluster.device_link.rtt.value_or(Duration<>());
  facts.server_link = ServerLinkOf(cluster, plan);
  RequireSwitches(facts.link);
  RequireSwitches(Overlay(facts.link, facts.server_link));
  return facts;
}

}  // namespace stepcast
