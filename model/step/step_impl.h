// The templates of model/step/step.h.
#ifndef STEPCAST_MODEL_STEP_STEP_IMPL_H_
#define STEPCAST_MODEL_STEP_STEP_IMPL_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "model/collective/byteps.h"
#include "model/collective/choice.h"
#include "model/compute/fitted_curve.h"
#include "model/network/slow_start.h"
#include "model/network/transport.h"
#include "model/overlap/overlap.h"
#include "model/step/step.h"
#include "model/sync/straggler.h"

namespace stepcast::internal {

// Sharpness of the knees between a link's own limit, that of its flows and that of their windows.
inline constexpr double kLinkKnee = 4.0;
// Collectives answer segment by segment, which rounds the corner more than a sliding window does
// (model/collective/segments.h); with nobody to pipeline with, round trips add.
inline constexpr double kSegmentKnee = 2.0;
inline constexpr double kNoPipeline = 1.0;
// Share of a line rate that full frames leave to the payload.
inline constexpr double kPayloadShare = kSegmentBytes / kFrameBytes;

template <class T>
Duration<T> MicroStep(const StepFacts& facts, const ClusterParameters<T>& cluster,
                      const WorkloadParameters<T>& workload) {
  if (!facts.has_compute) return {};
  const T sharing =
      1.0 + cluster.host_contention() * static_cast<double>(facts.devices_per_node - 1);
  const FittedCurve<T> curve{workload.fixed_time(), workload.floor_time(), workload.sample_time()};
  return curve.Time(Samples(facts.batch)) * (sharing * facts.compute_shape);
}

// A link as stated, or as fitted where nothing is stated.
template <class T>
Path<T> MakePath(const LinkFacts& stated, const DataRate<T>& fitted,
                 const ClusterParameters<T>& cluster) {
  Path<T> path;
  path.bandwidth = (stated.bandwidth ? DataRate<T>(*stated.bandwidth) : fitted) * kPayloadShare;
  path.rtt = stated.rtt.value_or(Duration<>());
  path.loss = T(stated.loss.value_or(0.0));
  path.congestion = stated.congestion_control.value_or(CongestionControl::kCubic);
  path.window = cluster.flow_window();
  path.timeout = cluster.loss_timeout();
  path.burst = stated.loss_burst.value_or(Duration<>());
  // Without loss the round trip matters by the window alone, and only where it is stated. With loss
  // it decides, and what the hosts add to it counts.
  if (path.loss > 0.0) path.rtt += cluster.link_latency() * 2.0;
  return path;
}

// How many flows leave a node: to how many peers, of which each has a cap of its own, and over how
// many connections at once. Latency hides behind bytes with a knee of sharpness `window_knee`.
struct FlowShape {
  double peers = 1;
  double connections = 1;  // 0 where each is counted for itself
  double window_knee = kLinkKnee;
};

template <class T>
struct PathRate {
  DataRate<T> bandwidth;
  Limiter limiter = Limiter::kLink;
  PathTerms<T> terms;
};

template <class T>
PathRate<T> DeliverTo(const Path<T>& path, const FlowShape& shape,
                      const DataRate<T>& flow_bandwidth, const Barrier<T>& barrier) {
  FlowLimits<T> limits;
  if (shape.connections > 0) limits = LimitsOfFlow(path, barrier);
  const DurationPerByte<T> line = 1.0 / path.bandwidth;
  const DurationPerByte<T> flows = 1.0 / (flow_bandwidth * shape.peers);
  PathRate<T> rate;
  rate.limiter = line < flows ? Limiter::kFlow : Limiter::kLink;
  DurationPerByte<T> time = PNorm(line, flows, kLinkKnee);
  DurationPerByte<T> most = Max(line, flows);
  const auto join = [&](const DurationPerByte<T>& of_one, double knee, Limiter limiter) {
    if (!(of_one.si() > 0.0)) return;
    const DurationPerByte<T> limit = of_one / shape.connections;
    time = PNorm(time, limit, knee);
    if (most < limit) rate.limiter = limiter;
    most = Max(most, limit);
  };
  join(limits.window, shape.window_knee, Limiter::kWindow);
  join(limits.loss, kLinkKnee, Limiter::kLoss);
  rate.bandwidth = (1.0 - path.loss) / time;
  rate.terms = {path, limits, rate.bandwidth, shape.peers, shape.connections, shape.window_knee};
  return rate;
}

// A hop between nodes.
template <class T>
Hop<T> NodeHop(const StepFacts& facts, const LinkFacts& link, const ClusterParameters<T>& cluster,
               const FlowShape& shape, const Barrier<T>& barrier, Limiter* limiter,
               PathTerms<T>* terms) {
  const PathRate<T> rate = DeliverTo(MakePath(link, cluster.node_link(), cluster), shape,
                                     cluster.flow_bandwidth(), barrier);
  const DataRate<T> host = cluster.host_bandwidth();
  const T crowding =
      (1.0 + cluster.host_sharing() * static_cast<double>(facts.devices_per_node - 1)) *
      (1.0 + cluster.node_scaling() * std::log2(static_cast<double>(facts.nodes)));
  *limiter = host < rate.bandwidth ? Limiter::kHost : rate.limiter;
  if (terms != nullptr) *terms = rate.terms;
  return {cluster.link_latency() + link.rtt.value_or(Duration<>()) / 2.0,
          1.0 / ((1.0 / rate.bandwidth + 1.0 / host) * crowding)};
}

// A hop between devices of one node.
template <class T>
Hop<T> DeviceHop(const StepFacts& facts, const ClusterParameters<T>& cluster) {
  return {cluster.device_latency() + facts.device_rtt / 2.0, cluster.host_bandwidth()};
}

// The bytes of an average bucket.
inline DataSize<> MeanBucket(const StepFacts& facts) {
  return facts.gradient / static_cast<double>(facts.buckets->size());
}

// Paths to servers, and what limits the two links of each.
template <class T>
struct ServerRoutes {
  ServerPaths<T> paths;
  Limiter worker_link = Limiter::kLink;
  Limiter server_link = Limiter::kServerLink;
  Limiter connection = Limiter::kWindow;
  PathTerms<T> node_path;
  PathTerms<T> server_path;

  Limiter At(ServerLimiter part) const {
    switch (part) {
      case ServerLimiter::kWorkerLink:
        return worker_link;
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

// What is known between a worker and a server, with the bandwidth of the server's link.
inline LinkFacts PathToServers(const StepFacts& facts) {
  return facts.server.colocated ? facts.link : Overlay(facts.link, facts.server_link);
}

template <class T>
ServerRoutes<T> MakeServerRoutes(const StepFacts& facts, const ClusterParameters<T>& cluster,
                                 const WorkloadParameters<T>& workload) {
  const double servers = facts.servers;
  const double workers = facts.workers;
  ServerRoutes<T> routes;
  ServerPaths<T>& paths = routes.paths;
  paths.workers = facts.workers;
  paths.servers = facts.servers;
  paths.workers_per_node = facts.devices_per_node;
  paths.nodes = facts.nodes;
  paths.colocated = facts.server.colocated;
  paths.multicast = facts.server.multicast;
  paths.in_network_aggregation = facts.server.in_network_aggregation;
  paths.largest_share = facts.server_share;
  paths.tensors = facts.tensors;
  paths.rpc_rounds = cluster.rpc_rounds();
  paths.initiation = cluster.transfer_initiation();
  paths.server_rate = cluster.server_rate();
  paths.update = workload.update_time() / facts.gradient;
  // Messages pass the worker's link and the server's: round trip and loss are those of the two.
  const LinkFacts path = PathToServers(facts);
  LinkFacts node_link = path;
  node_link.bandwidth = facts.link.bandwidth;
  paths.worker =
      NodeHop(facts, node_link, cluster, {servers, 0}, {}, &routes.worker_link, &routes.node_path);
  const PathRate<T> rate = DeliverTo(MakePath(path, cluster.link_bandwidth(), cluster),
                                     {workers, 0}, cluster.flow_bandwidth(), {});
  paths.server_bandwidth = rate.bandwidth;
  // A phase ends with the slowest of all flows, one between each worker and each server.
  const Barrier<T> barrier{MeanBucket(facts) / servers, workers * servers};
  const FlowLimits<T> limits = LimitsOfFlow(rate.terms.path, barrier);
  paths.connection = Max(limits.window, limits.loss) / (1.0 - rate.terms.path.loss);
  if (limits.window < limits.loss) routes.connection = Limiter::kLoss;
  routes.server_path = rate.terms;
  routes.server_path.limits = limits;
  // A colocated server has its node's link.
  const Limiter at_server = paths.colocated ? routes.worker_link : rate.limiter;
  if (at_server != Limiter::kLink) routes.server_link = at_server;
  return routes;
}

// Distinct nodes that a node of a ring exchanges with.
inline double RingPeers(const StepFacts& facts) { return std::min(facts.nodes - 1, 2); }

inline NodeShape ShapeOf(const StepFacts& facts) {
  return {facts.workers, facts.nodes, facts.devices_per_node, facts.nics};
}

// The hop of an all-reduce between nodes: one connection to the next, in rounds of which each waits
// for the slowest hop. A ring of two has no round to pipeline with another: its round trips add.
// Machines of BytePS exchange with all others and with all helpers at once.
template <class T>
Hop<T> CollectiveHop(const StepFacts& facts, const ClusterParameters<T>& cluster, Limiter* limiter,
                     PathTerms<T>* terms) {
  const Barrier<T> barrier{MeanBucket(facts) / static_cast<double>(facts.workers),
                           static_cast<double>(facts.nodes)};
  FlowShape shape{RingPeers(facts), 1, kSegmentKnee};
  LinkFacts link = facts.link;
  if (facts.strategy == Strategy::kBytePs) {
    const double peers = facts.nodes - 1 + facts.servers;
    shape = {peers, peers};
    if (facts.servers > 0) {
      link = Overlay(link, facts.server_link);
      link.bandwidth = facts.link.bandwidth;
    }
  } else if (facts.nodes == 2 && facts.strategy != Strategy::kTree &&
             facts.strategy != Strategy::kHalvingDoubling) {
    shape.window_knee = kNoPipeline;
  }
  return NodeHop(facts, link, cluster, shape, barrier, limiter, terms);
}

// The cost of one collective call, and what limits its bytes. Only rings pipeline their rounds.
// `terms` may be null, here and below.
template <class T>
PipelinedRing<T> CollectiveCost(const StepFacts& facts, const ClusterParameters<T>& cluster,
                                Limiter* limiter, StepTerms<T>* terms) {
  const NodeShape shape = ShapeOf(facts);
  const Hop<T> intra = DeviceHop(facts, cluster);
  Hop<T> inter;
  *limiter = Limiter::kHost;
  if (facts.nodes > 1) {
    inter = CollectiveHop(facts, cluster, limiter, terms != nullptr ? &terms->node_path : nullptr);
  }
  if (terms != nullptr) {
    terms->node_hop = inter;
    terms->device_hop = intra;
  }
  if (facts.strategy == Strategy::kBytePs) {
    const LinkFacts helper = Overlay(facts.link, facts.server_link);
    const double machines = facts.nodes;
    const Barrier<T> barrier{MeanBucket(facts) / machines, machines};
    const PathRate<T> rate = DeliverTo(MakePath(helper, cluster.link_bandwidth(), cluster),
                                       {machines, machines}, cluster.flow_bandwidth(), barrier);
    if (terms != nullptr) terms->server_path = rate.terms;
    const SyncCost<T> cost = BytePsOverNodes(facts.nodes, facts.devices_per_node, facts.servers,
                                             inter, rate.bandwidth, intra, facts.nics);
    return {cost, cost};
  }
  const SyncCost<T> cost = AllreduceCost(facts.strategy, shape, inter, intra);
  const bool ring = facts.strategy == Strategy::kAllreduce || facts.strategy == Strategy::kRing;
  if (!ring) return {cost, cost};
  return PipelineRing(cost, facts.nodes > 1 ? inter.alpha : intra.alpha);
}

// What an asynchronous worker does between two updates.
template <class T>
AsyncWork<T> WorkOf(const StepFacts& facts, const WorkloadParameters<T>& workload,
                    const Duration<T>& micro, const Duration<T>& backward) {
  AsyncWork<T> work;
  work.forward = micro * static_cast<double>(facts.accumulation_steps) - backward;
  work.backward = backward;
  work.spread = workload.straggler_spread();
  work.buckets = facts.overlap == Overlap::kNone ? nullptr : facts.buckets.get();
  return work;
}

// The routes to the servers, which `terms` report.
template <class T>
ServerRoutes<T> TakeServerRoutes(const StepFacts& facts, const ClusterParameters<T>& cluster,
                                 const WorkloadParameters<T>& workload, StepTerms<T>* terms) {
  ServerRoutes<T> routes = MakeServerRoutes(facts, cluster, workload);
  if (terms == nullptr) return routes;
  terms->node_hop = routes.paths.worker;
  terms->servers = routes.paths;
  terms->node_path = routes.node_path;
  terms->server_path = routes.server_path;
  return routes;
}

// Silence of the links before a step's first bucket leaves.
template <class T>
Duration<T> IdleTime(const StepFacts& facts, const Duration<T>& micro,
                     const Duration<T>& backward) {
  const double hidden = facts.overlap == Overlap::kBuckets ? 1 - facts.buckets->front().ready : 0;
  return micro * static_cast<double>(facts.accumulation_steps) - backward * hidden;
}

// What a step's first bucket loses because its flows were silent while the devices computed. A
// node sends `passes` bytes of it for each byte of the message, which takes `per_byte` once the
// flows are open, whatever limits it: a faster link that nobody can use loses no more.
template <class T>
Duration<T> SlowStart(const LinkFacts& link, const ClusterParameters<T>& cluster, double flows,
                      double passes, const DurationPerByte<T>& per_byte, const DataSize<>& bucket,
                      const Duration<T>& idle) {
  if (!link.rtt) return {};
  Path<T> path = MakePath(link, cluster.node_link(), cluster);
  path.bandwidth = passes / per_byte;
  path.loss = T(0.0);  // windows and losses have their part in the rate
  path.window = DataSize<T>::FromSi(T(std::numeric_limits<double>::infinity()));
  return SlowStartDelay(path, DataSize<T>(bucket * passes), flows,
                        std::optional<Duration<T>>(idle));
}

// The same in each phase of synchronous servers, at the worker and at the fullest server as fast as
// either is.
template <class T>
FirstBucketDelays<T> SlowStarts(const StepFacts& facts, const ClusterParameters<T>& cluster,
                                const ServerPhases<T>& phases, double passes,
                                const Duration<T>& idle) {
  const auto delay = [&](const SyncCost<T>& cost, double share,
                         const std::vector<Bucket>& buckets) {
    return SlowStart(PathToServers(facts), cluster, facts.servers, passes, cost.per_byte * share,
                     buckets.front().bytes / share, idle);
  };
  return {delay(phases.worker_push, 1, *facts.buckets),
          delay(phases.worker_pull, 1, *facts.buckets),
          delay(phases.server_push, phases.share, *facts.held_buckets),
          delay(phases.server_pull, phases.share, *facts.held_buckets)};
}

}  // namespace stepcast::internal

namespace stepcast {

template <class T>
AllreduceChoice<T> EvaluateChoice(const StepFacts& facts, const ClusterParameters<T>& cluster) {
  std::vector<AllreduceCandidate<T>> candidates;
  StepFacts one = facts;
  for (const Strategy algorithm : AllreduceAlgorithms(internal::ShapeOf(facts))) {
    one.strategy = algorithm;
    Limiter limiter = Limiter::kNothing;
    candidates.push_back({algorithm, internal::CollectiveCost<T>(one, cluster, &limiter, nullptr)});
  }
  return ChooseAmong(candidates, facts.workers, internal::MeanBucket(facts));
}

template <class T>
PhaseBenefit<T> EvaluateServerPhases(const StepFacts& facts, const ClusterParameters<T>& cluster,
                                     const WorkloadParameters<T>& workload) {
  return CompareNetworkServices(
      WithoutLatency(internal::MakeServerRoutes(facts, cluster, workload).paths), *facts.buckets,
      *facts.held_buckets, internal::MicroStep(facts, cluster, workload) * cluster.overlap_share(),
      facts.server.pipelined);
}

template <class T>
StepTime<T> EvaluateStep(const StepFacts& facts, const ClusterParameters<T>& cluster,
                         const WorkloadParameters<T>& workload, StepTerms<T>* terms) {
  using internal::SlowStart;
  if (terms != nullptr) *terms = {};
  StepTime<T> step;
  const double a = facts.accumulation_steps;
  const bool servers = UsesServers(facts.strategy);
  const Duration<T> micro = internal::MicroStep(facts, cluster, workload);
  const Duration<T> backward = micro * cluster.overlap_share();
  step.forward = (micro - backward) * a;
  step.backward = backward * a;
  if (terms != nullptr) {
    terms->micro = micro;
    terms->backward = backward;
  }
  const bool alone = facts.workers == 1 && (!servers || facts.server.colocated);
  if (facts.has_compute && (!servers || alone)) step.update = workload.update_time();
  if (facts.strategy == Strategy::kNone) return step;
  if (alone) {
    if (terms != nullptr) {
      terms->async.cycle = terms->async.alone = step.total();
      if (step.total().si() > 0.0) terms->async.updates = 1.0 / step.total();
    }
    return step;
  }

  const Duration<T> wait =
      StragglerWait(micro, workload.straggler_spread(), facts.accumulation_steps, facts.workers,
                    facts.backup_workers);
  const Duration<T> idle = internal::IdleTime(facts, micro, backward);
  const Duration<T> overhead =
      facts.nodes > 1 || servers ? cluster.node_sync_overhead() : cluster.device_sync_overhead();
  if (terms != nullptr) terms->overhead = overhead;

  if (facts.strategy == Strategy::kPsAsync) {
    const internal::ServerRoutes<T> routes =
        internal::TakeServerRoutes(facts, cluster, workload, terms);
    const ServerPaths<T>& paths = routes.paths;
    const AsyncServers<T> async = AsynchronousServers(
        paths, internal::WorkOf(facts, workload, micro, backward), facts.gradient);
    if (terms != nullptr) terms->async = async;
    step.limiter = routes.At(async);
    const Duration<T> exposed =
        Max(async.cycle - step.compute(), Duration<T>());  // rounding must not make it negative
    step.exposed_latency =
        Min(exposed,
            (paths.worker.alpha + paths.initiation * static_cast<double>(facts.servers)) * 2.0) +
        overhead;
    step.exposed_transfer = exposed + overhead - step.exposed_latency;
    step.synchronisation = step.exposed();
    if (facts.server.staleness_bound) {
      step.straggler_wait = BoundedStalenessWait(wait, step.total(), facts.server.staleness_bound);
    }
    return step;
  }

  Duration<T> calls;
  Duration<T> slow_start;  // before the first bucket
  Duration<T> end;         // of the last bucket
  SyncCost<T> cost;
  if (facts.strategy == Strategy::kPsSync) {
    const internal::ServerRoutes<T> routes =
        internal::TakeServerRoutes(facts, cluster, workload, terms);
    const ServerPaths<T>& paths = routes.paths;
    // All buckets of a phase are on their way at once.
    const Duration<T> latency = paths.alone() ? Duration<T>() : PhaseLatency(paths) * 2.0;
    const ServerPhases<T> phases = SynchronousServers(WithoutLatency(paths));
    if (terms != nullptr) terms->phases = phases;
    step.limiter = routes.At(phases.limiter());
    cost = phases.push + phases.pull;
    calls = cost.per_call * static_cast<double>(facts.buckets->size()) + latency;
    // Both directions of a link start slowly, a phase after the other.
    const double passes = paths.worker_passes();
    const DataSize<> first =
        Max(facts.buckets->front().bytes, facts.held_buckets->front().bytes / phases.share);
    for (const SyncCost<T>& phase : {phases.push, phases.pull}) {
      slow_start += SlowStart(internal::PathToServers(facts), cluster, facts.servers, passes,
                              phase.per_byte, first, idle);
    }
    end = ScheduleServers(phases, *facts.buckets, *facts.held_buckets, backward,
                          facts.server.pipelined,
                          internal::SlowStarts(facts, cluster, phases, passes, idle))
              .pulled +
          latency;
  } else {
    const PipelinedRing<T> ring = internal::CollectiveCost(facts, cluster, &step.limiter, terms);
    cost = ring.steady;
    const Bucket& first = facts.buckets->front();
    if (facts.nodes > 1) {
      // A ring moves a message 2 (w-1)/w times, one w-th at once.
      const double w = facts.workers;
      slow_start = SlowStart(facts.link, cluster, 1, 1 / w, cost.per_byte / (2 * (w - 1)),
                             first.bytes, idle);
    }
    end = LastSynchronisationEnd(*facts.buckets, backward, [&](const Bucket& bucket) {
      const Duration<T> time = ring.Time(bucket.bytes);
      calls += time - ring.steady.per_byte * bucket.bytes;
      return &bucket == &first ? time + slow_start : time;
    });
  }
  calls += slow_start;
  const Duration<T> transfer = cost.per_byte * facts.gradient;
  const Duration<T> all = calls + transfer;
  OverlapSplit<T> split;
  switch (facts.overlap) {
    case Overlap::kBuckets:
      split = BucketOverlap(backward, all, end);
      break;
    case Overlap::kNone:
      split = {all, {}};
      break;
    case Overlap::kPNorm:
      split = PNormOverlap(backward, all);
      break;
  }
  const Duration<T> contention = OverlapContention(split, backward, cluster.overlap_contention());
  if (terms != nullptr) {
    terms->cost = cost;
    terms->slow_start = slow_start;
    terms->end = end;
    terms->hidden = split.hidden;
    terms->contention = contention;
  }
  step.backward += contention;
  step.synchronisation = all + overhead;
  // The exposed part beyond the fixed cost is shared out as the whole is made up.
  step.exposed_transfer = all.si() > 0.0 ? split.exposed * (transfer / all) : Duration<T>();
  step.exposed_latency = split.exposed - step.exposed_transfer + overhead;
  if (step.exposed_transfer < step.exposed_latency) step.limiter = Limiter::kLatency;
  step.straggler_wait = wait;
  return step;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_STEP_IMPL_H_
