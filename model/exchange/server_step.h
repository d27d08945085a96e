// A step's synchronisation through parameter servers: the paths to them and the two phases.
//
// The formulas are those of parameter_server.h; both kinds of servers have the same paths.
#ifndef STEPCAST_MODEL_EXCHANGE_SERVER_STEP_H_
#define STEPCAST_MODEL_EXCHANGE_SERVER_STEP_H_

#include "data/units/quantity.h"
#include "model/exchange/async_server.h"
#include "model/exchange/parameter_server.h"
#include "model/exchange/synchronisation.h"
#include "model/step/step_terms.h"

namespace stepcast::internal {

// The paths to servers, and what limits the two links of each.
template <class T>
struct ServerRoutes {
  ServerPaths<T> paths;
  Limiter node_link = Limiter::kLink;
  Limiter server_link = Limiter::kServerLink;
  Limiter connection = Limiter::kWindow;

  Limiter At(ServerLimiter part) const {
    switch (part) {
      case ServerLimiter::kWorkerLink:
        return node_link;
      case ServerLimiter::kServerRate:
        return Limiter::kServer;
      case ServerLimiter::kConnection:
        return connection;
      case ServerLimiter::kServerLink:
        break;
    }
    return server_link;
  }
  Limiter At(const AsyncServers<T>& async) const {
    switch (async.limiter) {
      case AsyncLimiter::kServerLink:
        return server_link;
      case AsyncLimiter::kServerRate:
      case AsyncLimiter::kServerUpdate:
        return Limiter::kServer;
      default:
        return At(async.exchange);
    }
  }
};

// How many times as long a server's update takes as it does alone on its machine. Synchronous
// workers wait for it; asynchronous ones compute on, and where it is colocated the node is as
// crowded for it as it is for them.
template <class T>
T UpdateSharing(const StepFacts& facts, const T& host_contention) {
  if (!TraitsOf(facts.strategy).asynchronous() || ServersBeside(facts) == 0) return T(1.0);
  return Crowded(facts, host_contention);
}

// What the core of the network makes of a byte's time on the two links of a path.
struct CrossingToServers {
  Crossing<> at_nodes;
  Crossing<> at_servers;
};
inline CrossingToServers CrossedToServers(const StepFacts& facts) {
  const NetworkCore<> core = CoreOf(facts.link);
  if (facts.server.colocated) {
    const Crossing<> at_servers = core.OfSome(facts.nodes, facts.servers);
    return {at_servers, at_servers};
  }
  // Added up and copied by the switch, what its nodes exchange crosses its uplinks once for all.
  const bool once = facts.server.multicast && facts.server.in_network_aggregation;
  return {core.OfAllApart(once ? 1 : facts.nodes),
          CoreOf(*PathToServers(facts)).OfAllApart(facts.servers)};
}

template <class T, class Parts>
ServerRoutes<T> MakeServerRoutes(const StepFacts& facts, const ClusterParameters<T>& cluster,
                                 const WorkloadParameters<T>& workload, const Parts& parts,
                                 StepTerms<T>* terms) {
  const double servers = facts.servers;
  const double workers = ServerClients(facts);
  ServerRoutes<T> routes;
  ServerPaths<T>& paths = routes.paths;
  paths.workers = ServerClients(facts);
  paths.servers = facts.servers;
  paths.workers_per_node = ClientsPerNode(facts);
  paths.nodes = facts.nodes;
  paths.colocated = facts.server.colocated;
  paths.multicast = facts.server.multicast;
  paths.in_network_aggregation = facts.server.in_network_aggregation;
  paths.added_up = AddedUpAtHome(facts);
  paths.largest_share = facts.server_share;
  paths.tensors = facts.tensors;
  paths.rpc_rounds = cluster.rpc_rounds();
  paths.initiation = cluster.transfer_initiation();
  paths.server_rate = cluster.server_rate();
  paths.update =
      workload.update_time() * UpdateSharing(facts, cluster.host_contention()) / facts.gradient;
  if (!LeavesNode(facts)) {
    // Of a lone node with its servers no byte reaches a network: messages wait for those of a hop
    // within it, whatever the network's round trip is.
    paths.worker = DeviceHop(facts, cluster);
    routes.node_link = routes.server_link = Limiter::kHost;
    if (terms != nullptr) {
      terms->node_hop = paths.worker;
      terms->servers = paths;
    }
    return routes;
  }
  // Messages pass the worker's link and the server's: round trip and loss are those of the two.
  const PathFacts to_server = PathToServers(facts);
  const PathFacts from_node = NodeEndOf(to_server, facts.link);
  const LinkFacts& path = *to_server;
  const LinkFacts& node_link = *from_node;
  const CrossingToServers core = CrossedToServers(facts);
  const FlowShape at_worker{.peers = servers,
                            .connections = 0,
                            .core = core.at_nodes,
                            .uplinks_known = facts.uplinks_known};
  const PathRate<T> at_node = parts.NodeRate(node_link, cluster, at_worker, Barrier<T>(),
                                             terms != nullptr ? &terms->node_path : nullptr);
  const NodeHop<T> node = MakeNodeHop(facts, node_link, cluster, at_node);
  paths.worker = node.hop;
  routes.node_link = node.path_share < 0.5 ? Limiter::kHost : at_node.limiter;
  const FlowShape at_fullest{.peers = workers, .connections = 0, .core = core.at_servers};
  const PathRate<T> rate = parts.ServerRate(path, cluster, at_fullest, Barrier<T>(),
                                            terms != nullptr ? &terms->server_path : nullptr);
  paths.server_bandwidth = rate.bandwidth;
  const double loss = path.loss.value_or(0.0);
  if (path.rtt || loss > 0.0) {
    // A phase ends with the slowest of all flows, one between each worker and each server.
    const Barrier<T> barrier{MeanBucket(facts) / servers, workers * servers};
    const FlowLimits<T> limits = parts.ConnectionLimits(path, cluster, barrier);
    paths.connection = ConnectionTime(limits, loss);
    if (limits.window < limits.loss) routes.connection = Limiter::kLoss;
    if (terms != nullptr) terms->server_path.limits = limits;
  }
  // A colocated server has its node's link.
  const Limiter at_server = paths.colocated ? routes.node_link : rate.limiter;
  if (at_server != Limiter::kLink) routes.server_link = at_server;
  if (terms != nullptr) {
    terms->node_hop = paths.worker;
    terms->servers = paths;
  }
  return routes;
}

// The same in each phase of synchronous servers, at the worker and at the fullest server as fast as
// either is.
template <class T>
FirstBucketDelays<T> SlowStarts(const StepFacts& facts, const Duration<T>& trip,
                                const Duration<T>& timeout, const ServerPhases<T>& phases,
                                double passes, const Duration<T>& idle) {
  const auto delay = [&](const SyncCost<T>& cost, double share, const Bucket& first) {
    return SlowStart(trip, timeout, facts.servers, passes, cost.per_byte * share,
                     first.bytes / share, idle);
  };
  const Bucket& first = facts.buckets->front();
  const Bucket& held = facts.held_buckets->front();
  return {delay(phases.worker_push, 1, first), delay(phases.worker_pull, 1, first),
          delay(phases.server_push, phases.share, held),
          delay(phases.server_pull, phases.share, held)};
}

// With synchronous servers. `timeout` is that of a retransmission, in which the windows of links
// that were silent halve.
template <class T, class Parts>
Synchronisation<T> Synchronise(const StepFacts& facts, const ServerRoutes<T>& routes,
                               const Duration<T>& micro, const Duration<T>& backward,
                               const Duration<T>& timeout, const Parts& parts,
                               StepTerms<T>* terms) {
  Synchronisation<T> sync;
  const ServerPaths<T>& paths = routes.paths;
  // All buckets of a phase are on their way at once.
  const Duration<T> latency = PhaseLatency(paths);
  const ServerPhases<T> phases = SynchronousServers(paths, Duration<T>());
  sync.limiter = routes.At(phases.limiter());
  sync.cost = phases.push + phases.pull;
  FirstBucketDelays<T> late;
  Duration<T> push_start;
  Duration<T> pull_start;
  const Duration<T> trip = SlowStartTrip(*PathToServers(facts), paths.worker);
  if (trip.si() > 0.0 && LeavesNode(facts)) {
    // Both directions of a link start slowly, a phase after the other.
    const double passes = paths.worker_passes();
    const Duration<T> idle = IdleTime(facts, micro, backward);
    const DataSize<> first =
        Max(facts.buckets->front().bytes, facts.held_buckets->front().bytes / phases.share);
    const auto start = [&](const SyncCost<T>& phase) {
      return SlowStart(trip, timeout, facts.servers, passes, phase.per_byte, first, idle);
    };
    push_start = start(phases.push);
    pull_start = start(phases.pull);
    late = SlowStarts(facts, trip, timeout, phases, passes, idle);
  }
  sync.slow_start = push_start + pull_start;
  const auto calls = static_cast<double>(facts.buckets->size());
  sync.calls = sync.cost.per_call * calls + latency * 2.0 + sync.slow_start;
  sync.end = parts.ServersEnd(facts, phases, backward, late) + latency * 2.0;
  if (terms != nullptr) {
    const auto time = [&](const SyncCost<T>& phase, const Duration<T>& start) {
      return phase.per_call * calls + latency + start + phase.per_byte * facts.gradient;
    };
    const Duration<T> update = paths.update * facts.gradient * phases.share;
    terms->phases = phases;
    terms->server_times = {time(phases.push, push_start) - update, update,
                           time(phases.pull, pull_start)};
  }
  return sync;
}

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_EXCHANGE_SERVER_STEP_H_
