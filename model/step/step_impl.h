// The templates of model/step/step.h.
#ifndef STEPCAST_MODEL_STEP_STEP_IMPL_H_
#define STEPCAST_MODEL_STEP_STEP_IMPL_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "model/compute/fitted_curve.h"
#include "model/exchange/byteps.h"
#include "model/exchange/choice.h"
#include "model/network/hop.h"
#include "model/network/slow_start.h"
#include "model/network/transport.h"
#include "model/numeric/dual.h"
#include "model/step/join.h"
#include "model/step/step.h"
#include "model/sync/straggler.h"

namespace stepcast::internal {

template <class T, class Parts>
Duration<T> MicroStep(const StepFacts& facts, const ClusterParameters<T>& cluster,
                      const WorkloadParameters<T>& workload, const Parts& parts) {
  if (!facts.has_compute) return {};
  const T sharing =
      1.0 + cluster.host_contention() * static_cast<double>(facts.devices_per_node - 1);
  return parts.CurveTime(facts.batch, workload) * (sharing * facts.compute_shape);
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

// The parts of a step that few plans differ in: a curve's time of a batch, the rate of a path, a
// logarithm, an order statistic, the end of a schedule. Here each is computed anew; a compiled plan
// looks them up (predictor/compiled_plan.h).
struct ComputedParts {
  template <class T>
  Duration<T> CurveTime(double batch, const WorkloadParameters<T>& workload) const {
    const FittedCurve<T> curve{workload.fixed_time(), workload.floor_time(),
                               workload.sample_time()};
    return curve.Time(Samples(batch));
  }
  template <class T>
  PathRate<T> NodeRate(const LinkFacts& link, const ClusterParameters<T>& cluster,
                       const FlowShape& shape, const Barrier<T>& barrier,
                       PathTerms<T>* terms) const {
    return DeliverTo(MakePath(link, cluster.node_link(), cluster), shape, cluster.flow_bandwidth(),
                     barrier, terms);
  }
  // Of a server's link, or a helper's.
  template <class T>
  PathRate<T> ServerRate(const LinkFacts& link, const ClusterParameters<T>& cluster,
                         const FlowShape& shape, const Barrier<T>& barrier,
                         PathTerms<T>* terms) const {
    return DeliverTo(MakePath(link, cluster.link_bandwidth(), cluster), shape,
                     cluster.flow_bandwidth(), barrier, terms);
  }
  // Of one connection between a worker and a server.
  template <class T>
  FlowLimits<T> ConnectionLimits(const LinkFacts& path, const ClusterParameters<T>& cluster,
                                 const Barrier<T>& barrier) const {
    return LimitsOfFlow(MakePath(path, cluster.link_bandwidth(), cluster), barrier);
  }
  double Doublings(int nodes) const { return std::log2(static_cast<double>(nodes)); }
  // The slowest of a step's workers, in standard deviations.
  double Slowest(const StepFacts& facts) const {
    return ExpectedSlowest(facts.workers, facts.backup_workers);
  }
  template <class T>
  Duration<T> ServersEnd(const StepFacts& facts, const ServerPhases<T>& phases,
                         const Duration<T>& backward, const FirstBucketDelays<T>& late) const {
    return ScheduleServers(phases, *facts.buckets, *facts.held_buckets, backward,
                           facts.server.pipelined, late)
        .pulled;
  }
  const OverlapLines* AsyncLines(const StepFacts& /*facts*/) const { return nullptr; }
};

// A hop between nodes over a path of `rate`.
template <class T>
Hop<T> NodeHop(const StepFacts& facts, const LinkFacts& link, const ClusterParameters<T>& cluster,
               const PathRate<T>& rate, double doublings, Limiter* limiter) {
  const DataRate<T> host = cluster.host_bandwidth();
  const Crowding<T> crowding{cluster.host_sharing(), static_cast<double>(facts.devices_per_node),
                             cluster.node_scaling(), doublings};
  *limiter = host < rate.bandwidth ? Limiter::kHost : rate.limiter;
  return {HopLatency(cluster.link_latency(), link.rtt.value_or(Duration<>())),
          HopRate(rate.bandwidth, host, crowding)};
}

// A hop between devices of one node.
template <class T>
Hop<T> DeviceHop(const StepFacts& facts, const ClusterParameters<T>& cluster) {
  return {HopLatency(cluster.device_latency(), facts.device_rtt), cluster.host_bandwidth()};
}

// The bytes of an average bucket.
inline DataSize<> MeanBucket(const StepFacts& facts) {
  return facts.gradient / static_cast<double>(facts.buckets->size());
}

// The hops of a collective, and what limits that between nodes.
template <class T>
struct CollectiveHops {
  Hop<T> node;              // for more than one node
  Hop<T> device;            // between devices of a node
  DataRate<T> helper_link;  // byteps
  Limiter node_link = Limiter::kHost;
};

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

// What a step is joined from, beside what is counted.
template <class T>
struct StepInputs {
  Duration<T> micro;  // one micro-step
  T overlap_share = T(0.0);
  T overlap_contention = T(0.0);
  T straggler_spread = T(0.0);
  Duration<T> update;       // the optimizer's, on a worker
  Duration<T> overhead;     // fixed cost of a synchronisation
  Duration<T> timeout;      // of a retransmission, after which silent flows start slowly
  CollectiveHops<T> hops;   // of a collective
  ServerRoutes<T> servers;  // of ps-sync and ps-async
};

// What is known between a worker and a server, with the bandwidth of the server's link.
inline LinkFacts PathToServers(const StepFacts& facts) {
  return facts.server.colocated ? facts.link : Overlay(facts.link, facts.server_link);
}

template <class T, class Parts>
ServerRoutes<T> MakeServerRoutes(const StepFacts& facts, const ClusterParameters<T>& cluster,
                                 const WorkloadParameters<T>& workload, const Parts& parts,
                                 StepTerms<T>* terms) {
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
  const PathRate<T> at_node = parts.NodeRate(node_link, cluster, {servers, 0}, Barrier<T>(),
                                             terms != nullptr ? &terms->node_path : nullptr);
  paths.worker =
      NodeHop(facts, node_link, cluster, at_node, parts.Doublings(facts.nodes), &routes.node_link);
  const PathRate<T> rate = parts.ServerRate(path, cluster, {workers, 0}, Barrier<T>(),
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

// What is known between the nodes of a collective. Machines of BytePS exchange with helpers too.
inline LinkFacts NodeLink(const StepFacts& facts) {
  if (!TraitsOf(facts.strategy).helpers || facts.servers == 0) return facts.link;
  LinkFacts link = Overlay(facts.link, facts.server_link);
  link.bandwidth = facts.link.bandwidth;
  return link;
}

// The link that an exchange between nodes crosses.
inline LinkFacts ExchangeLink(const StepFacts& facts) {
  return UsesServers(facts.strategy) ? PathToServers(facts) : NodeLink(facts);
}

// Distinct nodes that a node of a ring exchanges with.
inline double RingPeers(const StepFacts& facts) { return std::min(facts.nodes - 1, 2); }

inline NodeShape ShapeOf(const StepFacts& facts) {
  return {facts.workers, facts.nodes, facts.devices_per_node, facts.nics};
}

// The hops of an all-reduce. Between nodes: one connection to the next, in rounds of which each
// waits for the slowest hop. A ring of two has no round to pipeline with another: its round trips
// add. Machines of BytePS exchange with all others and with all helpers at once.
template <class T, class Parts>
CollectiveHops<T> MakeCollectiveHops(const StepFacts& facts, const ClusterParameters<T>& cluster,
                                     const Parts& parts, StepTerms<T>* terms) {
  CollectiveHops<T> hops;
  hops.device = DeviceHop(facts, cluster);
  const DataSize<> mean = MeanBucket(facts);
  const double machines = facts.nodes;
  if (facts.nodes > 1) {
    const Barrier<T> barrier{mean / static_cast<double>(facts.workers), machines};
    FlowShape shape{RingPeers(facts), 1, kSegmentKnee};
    const LinkFacts link = NodeLink(facts);
    if (TraitsOf(facts.strategy).helpers) {
      const double peers = facts.nodes - 1 + facts.servers;
      shape = {peers, peers};
    } else if (facts.nodes == 2 && facts.strategy != Strategy::kTree &&
               facts.strategy != Strategy::kHalvingDoubling) {
      shape.window_knee = kNoPipeline;
    }
    const PathRate<T> rate = parts.NodeRate(link, cluster, shape, barrier,
                                            terms != nullptr ? &terms->node_path : nullptr);
    hops.node = NodeHop(facts, link, cluster, rate, parts.Doublings(facts.nodes), &hops.node_link);
  }
  if (TraitsOf(facts.strategy).helpers) {
    hops.helper_link = parts
                           .ServerRate(Overlay(facts.link, facts.server_link), cluster,
                                       {machines, machines}, Barrier<T>{mean / machines, machines},
                                       terms != nullptr ? &terms->server_path : nullptr)
                           .bandwidth;
  }
  if (terms != nullptr) {
    terms->node_hop = hops.node;
    terms->device_hop = hops.device;
  }
  return hops;
}

// The cost of one collective call. Only rings pipeline their rounds.
template <class T>
PipelinedRing<T> CollectiveCost(const StepFacts& facts, const CollectiveHops<T>& hops) {
  if (TraitsOf(facts.strategy).helpers) {
    const SyncCost<T> cost = BytePsOverNodes(facts.nodes, facts.devices_per_node, facts.servers,
                                             hops.node, hops.helper_link, hops.device, facts.nics);
    return {cost, cost};
  }
  const SyncCost<T> cost = AllreduceCost(facts.strategy, ShapeOf(facts), hops.node, hops.device);
  const bool ring = TraitsOf(facts.strategy).ring;
  if (!ring) return {cost, cost};
  return PipelineRing(cost, facts.nodes > 1 ? hops.node.alpha : hops.device.alpha);
}

// What an asynchronous worker does between two updates.
template <class T>
AsyncWork<T> WorkOf(const StepFacts& facts, const Duration<T>& micro, const Duration<T>& backward,
                    const T& spread, const OverlapLines* lines = nullptr) {
  AsyncWork<T> work;
  work.forward = micro * static_cast<double>(facts.accumulation_steps) - backward;
  work.backward = backward;
  work.spread = spread;
  work.buckets = facts.overlap == Overlap::kNone ? nullptr : facts.buckets.get();
  work.lines = lines;
  return work;
}

// Whether nobody is there to exchange anything with.
inline bool Alone(const StepFacts& facts) {
  return !TraitsOf(facts.strategy).exchanges ||
         (facts.workers == 1 && (!UsesServers(facts.strategy) || facts.server.colocated));
}

// Whether an exchange leaves the node: servers are behind its link wherever they live.
inline bool LeavesNode(const StepFacts& facts) {
  return facts.nodes > 1 || UsesServers(facts.strategy);
}

template <class T, class Parts>
StepInputs<T> MakeStepInputs(const StepFacts& facts, const ClusterParameters<T>& cluster,
                             const WorkloadParameters<T>& workload, const Parts& parts,
                             StepTerms<T>* terms) {
  StepInputs<T> inputs;
  inputs.micro = MicroStep(facts, cluster, workload, parts);
  inputs.overlap_share = cluster.overlap_share();
  inputs.overlap_contention = cluster.overlap_contention();
  inputs.straggler_spread = workload.straggler_spread();
  inputs.update = workload.update_time();
  if (Alone(facts)) return inputs;
  const bool servers = UsesServers(facts.strategy);
  inputs.overhead =
      LeavesNode(facts) ? cluster.node_sync_overhead() : cluster.device_sync_overhead();
  inputs.timeout = cluster.loss_timeout();
  if (servers) {
    inputs.servers = MakeServerRoutes(facts, cluster, workload, parts, terms);
  } else {
    inputs.hops = MakeCollectiveHops(facts, cluster, parts, terms);
  }
  return inputs;
}

// Share of the backward pass that is left when a step's first bucket leaves.
inline double HiddenSilence(const StepFacts& facts) {
  return facts.overlap == Overlap::kBuckets ? 1 - facts.buckets->front().ready : 0;
}

// Silence of the links before a step's first bucket leaves.
template <class T>
Duration<T> IdleTime(const StepFacts& facts, const Duration<T>& micro,
                     const Duration<T>& backward) {
  return micro * static_cast<double>(facts.accumulation_steps) - backward * HiddenSilence(facts);
}

// The round trip of flows that start slowly: as stated, and what the hosts of `hop` add to it where
// loss makes it count (MakePath).
template <class T>
Duration<T> SlowStartTrip(const LinkFacts& link, const Hop<T>& hop) {
  if (!link.rtt) return {};
  return link.loss.value_or(0.0) > 0.0 ? hop.alpha * 2.0 : Duration<T>(*link.rtt);
}

// What a step's first bucket loses because its flows were silent while the devices computed. A
// node sends `passes` bytes of it for each byte of the message, which takes `per_byte` once the
// flows are open, whatever limits it: a faster link that nobody can use loses no more.
template <class T>
Duration<T> SlowStart(const Duration<T>& trip, const Duration<T>& timeout, double flows,
                      double passes, const DurationPerByte<T>& per_byte, const DataSize<>& bucket,
                      const Duration<T>& idle) {
  if (!(trip.si() > 0.0)) return {};
  // Windows and losses have their part in the rate.
  Path<T> path;
  path.bandwidth = passes / per_byte;
  path.rtt = trip;
  path.timeout = timeout;
  path.window = DataSize<T>::FromSi(T(std::numeric_limits<double>::infinity()));
  return SlowStartDelay(path, DataSize<T>(bucket * passes), flows,
                        std::optional<Duration<T>>(idle));
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

// Bucket after bucket over a collective, of which each takes the larger of the ring's two times.
template <class T>
struct CollectiveSchedule {
  Duration<T> end;    // E_K, from the start of the backward pass
  Duration<T> calls;  // of all buckets; their bytes at the steady pace are the rest
};

template <class T>
CollectiveSchedule<T> ScheduleCollective(const PipelinedRing<T>& ring,
                                         const std::vector<Bucket>& buckets,
                                         const Duration<T>& backward, const Duration<T>& late) {
  // What buckets from one on sum up to: their number and bytes, and those of them that the chain
  // holds up.
  struct Tail {
    double count = 0;
    double bytes = 0;
    double chained = 0;
    double chained_bytes = 0;
  };
  const SyncCost<double> steady{ValueOf(ring.steady.per_call), ValueOf(ring.steady.per_byte)};
  const SyncCost<double> chain{ValueOf(ring.chain.per_call), ValueOf(ring.chain.per_byte)};
  const Duration<> pass = ValueOf(backward);
  Tail tail;
  Tail binding;
  std::size_t from = 0;  // the bucket from which they bind
  Duration<> rest;
  Duration<> latest = Seconds(-1.0);
  for (std::size_t k = buckets.size(); k-- > 0;) {
    const Bucket& bucket = buckets[k];
    const Duration<> at_pace = steady.Time(bucket.bytes);
    const Duration<> around = chain.Time(bucket.bytes);
    const double chained = at_pace < around ? 1.0 : 0.0;
    tail.count += 1.0;
    tail.bytes += bucket.bytes.si();
    tail.chained += chained;
    tail.chained_bytes += chained * bucket.bytes.si();
    rest += Max(at_pace, around);
    if (k == 0) rest += ValueOf(late);
    const Duration<> end = pass * bucket.ready + rest;
    if (latest < end) {
      latest = end;
      binding = tail;
      from = k;
    }
  }
  const auto calls = [&](const Tail& t) {
    return ring.steady.per_call * (t.count - t.chained) + ring.chain.per_call * t.chained -
           (ring.steady.per_byte - ring.chain.per_byte) * Bytes(t.chained_bytes);
  };
  CollectiveSchedule<T> schedule;
  schedule.calls = calls(tail) + late;
  schedule.end = backward * buckets[from].ready + calls(binding) +
                 ring.steady.per_byte * Bytes(binding.bytes) + (from == 0 ? late : Duration<T>());
  return schedule;
}

// A synchronisation beside the backward pass.
template <class T>
struct Synchronisation {
  Duration<T> end;         // of the last bucket, from the start of the backward pass
  Duration<T> calls;       // of all buckets; their bytes are the rest
  Duration<T> slow_start;  // before the first bucket, within the calls
  SyncCost<T> cost;
  Limiter limiter = Limiter::kNothing;

  Duration<T> Transfer(const StepFacts& facts) const { return cost.per_byte * facts.gradient; }
  Duration<T> All(const StepFacts& facts) const { return calls + Transfer(facts); }
};

// With synchronous servers. `idle` is the silence of the links before, and `timeout` that of a
// retransmission, in which their windows halve.
template <class T, class Parts>
Synchronisation<T> Synchronise(const StepFacts& facts, const ServerRoutes<T>& routes,
                               const Duration<T>& backward, const Duration<T>& idle,
                               const Duration<T>& timeout, const Parts& parts,
                               StepTerms<T>* terms) {
  Synchronisation<T> sync;
  const ServerPaths<T>& paths = routes.paths;
  // All buckets of a phase are on their way at once.
  const Duration<T> latency = PhaseLatency(paths) * 2.0;
  const ServerPhases<T> phases = SynchronousServers(paths, Duration<T>());
  if (terms != nullptr) terms->phases = phases;
  sync.limiter = routes.At(phases.limiter());
  sync.cost = phases.push + phases.pull;
  FirstBucketDelays<T> late;
  const Duration<T> trip = SlowStartTrip(PathToServers(facts), paths.worker);
  if (trip.si() > 0.0) {
    // Both directions of a link start slowly, a phase after the other.
    const double passes = paths.worker_passes();
    const DataSize<> first =
        Max(facts.buckets->front().bytes, facts.held_buckets->front().bytes / phases.share);
    for (const SyncCost<T>* phase : {&phases.push, &phases.pull}) {
      sync.slow_start +=
          SlowStart(trip, timeout, facts.servers, passes, phase->per_byte, first, idle);
    }
    late = SlowStarts(facts, trip, timeout, phases, passes, idle);
  }
  sync.calls =
      sync.cost.per_call * static_cast<double>(facts.buckets->size()) + latency + sync.slow_start;
  sync.end = parts.ServersEnd(facts, phases, backward, late) + latency;
  return sync;
}

// By a collective.
template <class T, class Parts>
Synchronisation<T> Synchronise(const StepFacts& facts, const CollectiveHops<T>& hops,
                               const Duration<T>& backward, const Duration<T>& idle,
                               const Duration<T>& timeout, const Parts& /*parts*/,
                               StepTerms<T>* /*terms*/) {
  Synchronisation<T> sync;
  const PipelinedRing<T> ring = CollectiveCost(facts, hops);
  sync.limiter = hops.node_link;
  sync.cost = ring.steady;
  if (facts.nodes > 1) {
    // A ring moves a message 2 (w-1)/w times, one w-th at once.
    const double w = facts.workers;
    sync.slow_start =
        SlowStart(SlowStartTrip(NodeLink(facts), hops.node), timeout, 1, 1 / w,
                  sync.cost.per_byte / (2 * (w - 1)), facts.buckets->front().bytes, idle);
  }
  const CollectiveSchedule<T> schedule =
      ScheduleCollective(ring, *facts.buckets, backward, sync.slow_start);
  sync.calls = schedule.calls;
  sync.end = schedule.end;
  return sync;
}

// Asynchronous servers: a worker's cycle takes the place of a synchronisation.
template <class T, class Parts>
StepTime<T> JoinCycle(const StepFacts& facts, const StepInputs<T>& inputs,
                      const Duration<T>& backward, const T& wait, const Parts& parts,
                      StepTerms<T>* terms) {
  const Duration<T>& micro = inputs.micro;
  const ServerRoutes<T>& routes = inputs.servers;
  const ServerPaths<T>& paths = routes.paths;
  const AsyncServers<T> async = AsynchronousServers(
      paths, WorkOf(facts, micro, backward, inputs.straggler_spread, parts.AsyncLines(facts)),
      facts.gradient);
  StepTime<T> step;
  step.forward = (micro - backward) * static_cast<double>(facts.accumulation_steps);
  step.backward = backward * static_cast<double>(facts.accumulation_steps);
  if (terms != nullptr) terms->async = async;
  step.limiter = routes.At(async);
  const Duration<T> exposed =
      Max(async.cycle - step.compute(), Duration<T>());  // rounding must not make it negative
  step.exposed_latency =
      Min(exposed,
          (paths.worker.alpha + paths.initiation * static_cast<double>(facts.servers)) * 2.0) +
      inputs.overhead;
  step.exposed_transfer = exposed + inputs.overhead - step.exposed_latency;
  step.synchronisation = step.exposed();
  if (facts.server.staleness_bound) {
    step.straggler_wait =
        BoundedStalenessWait(micro * wait, step.total(), facts.server.staleness_bound);
  }
  return step;
}

// The step of these inputs.
template <class T, class Parts>
StepTime<T> JoinStep(const StepFacts& facts, const StepInputs<T>& inputs, const Parts& parts,
                     StepTerms<T>* terms) {
  const bool servers = UsesServers(facts.strategy);
  const bool alone = Alone(facts);
  const Duration<T> backward = inputs.micro * inputs.overlap_share;
  if (terms != nullptr) {
    terms->micro = inputs.micro;
    terms->backward = backward;
    if (!alone) terms->overhead = inputs.overhead;
  }
  JoinInputs<T> in;
  in.micro_steps = facts.accumulation_steps;
  in.micro = inputs.micro;
  in.backward = backward;
  if (facts.has_compute && (!servers || alone)) in.update = inputs.update;
  Synchronisation<T> sync;
  if (!alone) {
    in.wait = inputs.straggler_spread * (std::sqrt(in.micro_steps) * parts.Slowest(facts));
    if (TraitsOf(facts.strategy).asynchronous()) {
      return JoinCycle(facts, inputs, backward, in.wait, parts, terms);
    }
    const Duration<T> idle = IdleTime(facts, inputs.micro, backward);
    sync = servers
               ? Synchronise(facts, inputs.servers, backward, idle, inputs.timeout, parts, terms)
               : Synchronise(facts, inputs.hops, backward, idle, inputs.timeout, parts, terms);
    in.all = sync.All(facts);
    in.end = sync.end;
    in.contention = inputs.overlap_contention;
    in.overhead = inputs.overhead;
  }
  const JoinedStep<T> joined = Join(facts.overlap, in);

  StepTime<T> step;
  step.forward = joined.forward;
  step.backward = joined.backward;
  step.update = joined.update;
  if (alone) {
    if (terms != nullptr && TraitsOf(facts.strategy).exchanges) {
      terms->async.cycle = terms->async.alone = step.total();
      if (step.total().si() > 0.0) terms->async.updates = 1.0 / step.total();
    }
    return step;
  }
  step.synchronisation = in.all + joined.overhead;
  step.exposed_transfer = ExposedTransfer(joined.exposed, sync.Transfer(facts), in.all);
  step.exposed_latency = joined.exposed - step.exposed_transfer + joined.overhead;
  step.limiter = step.exposed_transfer < step.exposed_latency ? Limiter::kLatency : sync.limiter;
  step.straggler_wait = joined.wait;
  if (terms != nullptr) {
    terms->cost = sync.cost;
    terms->slow_start = sync.slow_start;
    terms->end = sync.end;
    terms->hidden = joined.hidden;
    terms->contention = joined.contention;
  }
  return step;
}

}  // namespace stepcast::internal

namespace stepcast {

template <class T>
AllreduceChoice<T> EvaluateChoice(const StepFacts& facts, const ClusterParameters<T>& cluster) {
  std::vector<AllreduceCandidate<T>> candidates;
  StepFacts one = facts;
  for (const Strategy algorithm : AllreduceAlgorithms(internal::ShapeOf(facts))) {
    one.strategy = algorithm;
    const internal::CollectiveHops<T> hops =
        internal::MakeCollectiveHops<T>(one, cluster, internal::ComputedParts(), nullptr);
    candidates.push_back({algorithm, internal::CollectiveCost(one, hops)});
  }
  return ChooseAmong(candidates, facts.workers, internal::MeanBucket(facts));
}

template <class T>
PhaseBenefit<T> EvaluateServerPhases(const StepFacts& facts, const ClusterParameters<T>& cluster,
                                     const WorkloadParameters<T>& workload) {
  const internal::ServerRoutes<T> routes =
      internal::MakeServerRoutes<T>(facts, cluster, workload, internal::ComputedParts(), nullptr);
  return CompareNetworkServices(
      WithoutLatency(routes.paths), *facts.buckets, *facts.held_buckets,
      internal::MicroStep(facts, cluster, workload, internal::ComputedParts()) *
          cluster.overlap_share(),
      facts.server.pipelined);
}

template <class T>
StepTime<T> EvaluateStep(const StepFacts& facts, const ClusterParameters<T>& cluster,
                         const WorkloadParameters<T>& workload, StepTerms<T>* terms) {
  const internal::ComputedParts parts;
  if (terms != nullptr) *terms = {};
  return internal::JoinStep(facts, internal::MakeStepInputs(facts, cluster, workload, parts, terms),
                            parts, terms);
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_STEP_IMPL_H_
