// The templates of model/step/step.h.
#ifndef STEPCAST_MODEL_STEP_STEP_IMPL_H_
#define STEPCAST_MODEL_STEP_STEP_IMPL_H_

#include <algorithm>
#include <cmath>

#include "model/collective/allreduce.h"
#include "model/collective/parameter_server.h"
#include "model/compute/fitted_curve.h"
#include "model/network/transport.h"
#include "model/step/step.h"
#include "model/sync/straggler.h"

namespace stepcast::internal {

// Sharpness of the knee between a link's own limit and that of its flows.
inline constexpr double kLinkKnee = 4.0;
// Share of a line rate that full frames leave to the payload.
inline constexpr double kPayloadShare = kSegmentBytes / kFrameBytes;

template <class T>
Duration<T> MicroStep(const StepFacts& facts, const ClusterParameters<T>& cluster,
                      const WorkloadParameters<T>& workload) {
  const T sharing =
      1.0 + cluster.host_contention() * static_cast<double>(facts.devices_per_node - 1);
  const FittedCurve<T> curve{workload.fixed_time(), workload.floor_time(), workload.sample_time()};
  return curve.Time(Samples(facts.batch)) * sharing;
}

// What TCP delivers over a link as stated, or as fitted where nothing is stated; sets `limited`
// when the transport rather than the line rate decides.
template <class T>
DataRate<T> UsableLink(const LinkFacts& stated, const DataRate<T>& fitted,
                       const Duration<T>& latency, double flows, bool* limited) {
  const DataRate<T> line = stated.bandwidth ? DataRate<T>(*stated.bandwidth) : fitted;
  // Without loss the round trip matters by TCP's window alone, and only where it is stated. With
  // loss it decides, and what the hosts add to it counts.
  Path<T> path{line * kPayloadShare, stated.rtt.value_or(Duration<>()), stated.loss.value_or(0.0)};
  if (path.loss > 0) path.rtt += latency * 2.0;
  const DataRate<T> usable = DeliveredBandwidth(path, flows);
  *limited = usable < path.bandwidth * (1.0 - path.loss);
  return usable;
}

// A hop between nodes: `peers` distinct nodes are exchanged with.
template <class T>
Hop<T> NodeHop(const StepFacts& facts, const ClusterParameters<T>& cluster, double peers,
               Limiter* limiter) {
  bool transport = false;
  const DataRate<T> link =
      UsableLink(facts.link, cluster.link_bandwidth(), cluster.link_latency(), peers, &transport);
  const DataRate<T> flows = cluster.flow_bandwidth() * peers;
  const DataRate<T> host = cluster.host_bandwidth();
  const auto path = PNorm(1.0 / link, 1.0 / flows, kLinkKnee);
  const T crowding =
      (1.0 + cluster.host_sharing() * static_cast<double>(facts.devices_per_node - 1)) *
      (1.0 + cluster.node_scaling() * std::log2(static_cast<double>(facts.nodes)));
  *limiter = host < link && host < flows ? Limiter::kHost
             : flows < link              ? Limiter::kFlow
             : transport                 ? Limiter::kTransport
                                         : Limiter::kLink;
  return {cluster.link_latency() + facts.link.rtt.value_or(Duration<>()) / 2.0,
          1.0 / ((path + 1.0 / host) * crowding)};
}

// A hop between devices of one node.
template <class T>
Hop<T> DeviceHop(const StepFacts& facts, const ClusterParameters<T>& cluster) {
  return {cluster.device_latency() + facts.device_rtt / 2.0, cluster.host_bandwidth()};
}

template <class T>
ServerPaths<T> MakeServerPaths(const StepFacts& facts, const ClusterParameters<T>& cluster,
                               Limiter* limiter) {
  ServerPaths<T> paths;
  paths.workers = facts.workers;
  paths.servers = facts.servers;
  paths.workers_per_node = facts.devices_per_node;
  paths.worker = NodeHop(facts, cluster, static_cast<double>(facts.servers), limiter);
  bool transport = false;
  paths.server_bandwidth =
      UsableLink(Overlay(facts.link, facts.server_link), cluster.link_bandwidth(),
                 cluster.link_latency(), static_cast<double>(facts.workers), &transport);
  paths.initiation = cluster.transfer_initiation();
  const double at_worker = facts.devices_per_node;
  const double at_server = static_cast<double>(facts.workers) / facts.servers;
  if (paths.server_bandwidth * at_worker < paths.worker.bandwidth * at_server) {
    *limiter = transport ? Limiter::kTransport : Limiter::kServerLink;
  }
  return paths;
}

// Distinct nodes that a node of a ring exchanges with.
inline double RingPeers(const StepFacts& facts) { return std::min(facts.nodes - 1, 2); }

// The cost of one collective call, and what limits its bytes.
template <class T>
SyncCost<T> CollectiveCost(const StepFacts& facts, const ClusterParameters<T>& cluster,
                           Limiter* limiter) {
  const Hop<T> intra = DeviceHop(facts, cluster);
  *limiter = Limiter::kHost;
  if (facts.strategy == Strategy::kPsSync) {
    return ServerSynchronisation(MakeServerPaths(facts, cluster, limiter));
  }
  if (facts.nodes == 1) {
    switch (facts.strategy) {
      case Strategy::kTree:
        return TreeAllreduce(facts.workers, intra);
      case Strategy::kHalvingDoubling:
        return HalvingDoublingAllreduce(facts.workers, intra);
      default:
        return RingAllreduce(facts.workers, intra);
    }
  }
  const double ring_peers = RingPeers(facts);
  switch (facts.strategy) {
    case Strategy::kTree:
      return TreeAllreduce(facts.workers, NodeHop(facts, cluster, ring_peers, limiter));
    case Strategy::kHalvingDoubling:
      return HalvingDoublingAllreduce(facts.workers, NodeHop(facts, cluster, ring_peers, limiter));
    case Strategy::kHierarchical:
      return HierarchicalAllreduce(facts.nodes, facts.devices_per_node,
                                   NodeHop(facts, cluster, ring_peers, limiter), intra);
    default: {
      // The ring passes every device: w - N hops within nodes and N between them, and every hop
      // carries all bytes.
      const Hop<T> inter = NodeHop(facts, cluster, ring_peers, limiter);
      SyncCost<T> cost = RingAllreduce(facts.workers, inter);
      cost.per_call = inter.alpha * (2.0 * (facts.nodes - 1)) +
                      intra.alpha * (2.0 * (facts.workers - facts.nodes));
      return cost;
    }
  }
}

}  // namespace stepcast::internal

namespace stepcast {

template <class T>
NetworkRates<T> EvaluateNetwork(const StepFacts& facts, const ClusterParameters<T>& cluster) {
  Limiter unused = Limiter::kNothing;
  if (UsesServers(facts.strategy)) {
    const ServerPaths<T> paths = internal::MakeServerPaths(facts, cluster, &unused);
    return {paths.worker, paths.server_bandwidth};
  }
  if (facts.nodes == 1) return {internal::DeviceHop(facts, cluster), {}};
  return {internal::NodeHop(facts, cluster, internal::RingPeers(facts), &unused), {}};
}

template <class T>
StepTime<T> EvaluateStep(const StepFacts& facts, const ClusterParameters<T>& cluster,
                         const WorkloadParameters<T>& workload) {
  StepTime<T> step;
  const double a = facts.accumulation_steps;
  const Duration<T> micro = internal::MicroStep(facts, cluster, workload);
  const Duration<T> backward = micro * cluster.overlap_share();
  const Duration<T> forward = micro - backward;
  step.forward = forward * a;
  step.backward = backward * a;
  if (facts.workers == 1 && (facts.servers == 0 || !UsesServers(facts.strategy))) return step;
  if (facts.strategy == Strategy::kNone) return step;

  if (facts.strategy == Strategy::kPsAsync) {
    const ServerPaths<T> paths = internal::MakeServerPaths(facts, cluster, &step.limiter);
    const Duration<T> compute = step.compute();
    const Duration<T> cycle = AsyncServerCycle(paths, compute, facts.gradient);
    step.exposed_latency =
        (paths.worker.alpha + paths.initiation * static_cast<double>(facts.servers)) * 2.0;
    // What is left; rounding must not make it negative.
    step.exposed_transfer = Max(cycle - compute - step.exposed_latency, Duration<T>());
    step.synchronisation = step.exposed();
    return step;
  }

  const SyncCost<T> cost = internal::CollectiveCost(facts, cluster, &step.limiter);
  const Duration<T> overhead = facts.nodes > 1 || UsesServers(facts.strategy)
                                   ? cluster.node_sync_overhead()
                                   : cluster.device_sync_overhead();
  const Duration<T> end = LastSynchronisationEnd(
      *facts.buckets, backward, [&](const Bucket& bucket) { return cost.Time(bucket.bytes); });
  const Duration<T> calls = cost.per_call * static_cast<double>(facts.buckets->size());
  const Duration<T> transfer = cost.per_byte * facts.gradient;
  step.synchronisation = calls + transfer + overhead;
  // The exposed part beyond the fixed cost is shared out as the whole is made up.
  const Duration<T> exposed = Max(end, backward) - backward;
  step.exposed_transfer = exposed * (transfer / (calls + transfer));
  step.exposed_latency = exposed - step.exposed_transfer + overhead;
  if (step.exposed_transfer < step.exposed_latency) step.limiter = Limiter::kLatency;
  step.straggler_wait =
      StragglerWait(micro, workload.straggler_spread(), facts.accumulation_steps, facts.workers);
  return step;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_STEP_IMPL_H_
