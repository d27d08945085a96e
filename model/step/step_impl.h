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
  return curve.Time(Samples(facts.batch)) * sharing;
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
  double connections = 1;
  double window_knee = kLinkKnee;
};

template <class T>
struct PathRate {
  DataRate<T> bandwidth;
  Limiter limiter = Limiter::kLink;
};

template <class T>
PathRate<T> DeliverTo(const Path<T>& path, const FlowShape& shape,
                      const DataRate<T>& flow_bandwidth, const Barrier<T>& barrier) {
  const FlowLimits<T> limits = LimitsOfFlow(path, barrier);
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
  return rate;
}

// A hop between nodes.
template <class T>
Hop<T> NodeHop(const StepFacts& facts, const ClusterParameters<T>& cluster, const FlowShape& shape,
               const Barrier<T>& barrier, Limiter* limiter) {
  const PathRate<T> rate = DeliverTo(MakePath(facts.link, cluster.node_link(), cluster), shape,
                                     cluster.flow_bandwidth(), barrier);
  const DataRate<T> host = cluster.host_bandwidth();
  const T crowding =
      (1.0 + cluster.host_sharing() * static_cast<double>(facts.devices_per_node - 1)) *
      (1.0 + cluster.node_scaling() * std::log2(static_cast<double>(facts.nodes)));
  *limiter = host < rate.bandwidth ? Limiter::kHost : rate.limiter;
  return {cluster.link_latency() + facts.link.rtt.value_or(Duration<>()) / 2.0,
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

template <class T>
ServerPaths<T> MakeServerPaths(const StepFacts& facts, const ClusterParameters<T>& cluster,
                               const WorkloadParameters<T>& workload, Limiter* limiter) {
  const double servers = facts.servers;
  const double workers = facts.workers;
  ServerPaths<T> paths;
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
  // A phase ends with the slowest of all flows, one between each worker and each server.
  const Barrier<T> barrier{MeanBucket(facts) / servers, workers * servers};
  paths.worker = NodeHop(facts, cluster, {servers, servers}, barrier, limiter);
  Limiter server_limiter = Limiter::kServerLink;
  const LinkFacts server_link = Overlay(facts.link, facts.server_link);
  const PathRate<T> rate = DeliverTo(MakePath(server_link, cluster.link_bandwidth(), cluster),
                                     {workers, workers}, cluster.flow_bandwidth(), barrier);
  if (rate.limiter == Limiter::kLoss || rate.limiter == Limiter::kWindow) {
    server_limiter = rate.limiter;
  }
  paths.server_bandwidth = rate.bandwidth;
  const DurationPerByte<T> at_worker = paths.worker_passes() / paths.worker.bandwidth;
  const DurationPerByte<T> on_link =
      paths.link_share() * paths.remote_workers() / paths.server_link();
  const DurationPerByte<T> processor = paths.share() * workers / paths.server_rate;
  if (at_worker < Max(on_link, processor)) {
    *limiter = on_link < processor ? Limiter::kServer : server_limiter;
  }
  return paths;
}

// Distinct nodes that a node of a ring exchanges with.
inline double RingPeers(const StepFacts& facts) { return std::min(facts.nodes - 1, 2); }

// The hop of an all-reduce between nodes: one connection to the next, in rounds of which each waits
// for the slowest hop. A ring of two has no round to pipeline with another: its round trips add.
template <class T>
Hop<T> CollectiveHop(const StepFacts& facts, const ClusterParameters<T>& cluster,
                     Limiter* limiter) {
  const Barrier<T> barrier{MeanBucket(facts) / static_cast<double>(facts.workers),
                           static_cast<double>(facts.nodes)};
  const FlowShape shape{RingPeers(facts), 1, facts.nodes > 2 ? kSegmentKnee : kNoPipeline};
  return NodeHop(facts, cluster, shape, barrier, limiter);
}

// The cost of one collective call, and what limits its bytes. Only rings pipeline their rounds.
template <class T>
PipelinedRing<T> CollectiveCost(const StepFacts& facts, const ClusterParameters<T>& cluster,
                                Limiter* limiter, StepTerms<T>* terms) {
  const NodeShape shape{facts.workers, facts.nodes, facts.devices_per_node, facts.nics};
  const Hop<T> intra = DeviceHop(facts, cluster);
  Hop<T> inter;
  *limiter = Limiter::kHost;
  if (facts.nodes > 1) inter = CollectiveHop(facts, cluster, limiter);
  terms->node_hop = inter;
  terms->device_hop = intra;
  if (facts.strategy == Strategy::kBytePs) {
    const LinkFacts helper = Overlay(facts.link, facts.server_link);
    const DataRate<T> line = MakePath(helper, cluster.link_bandwidth(), cluster).bandwidth;
    const SyncCost<T> cost = BytePsOverNodes(facts.nodes, facts.devices_per_node, facts.servers,
                                             inter, line, intra, facts.nics);
    return {cost, cost};
  }
  const SyncCost<T> cost = AllreduceCost(facts.strategy, shape, inter, intra);
  const bool ring = facts.strategy == Strategy::kAllreduce || facts.strategy == Strategy::kRing;
  if (!ring) return {cost, cost};
  return PipelineRing(cost, facts.nodes > 1 ? inter.alpha : intra.alpha);
}

// Silence of the links before a step's first bucket leaves.
template <class T>
Duration<T> IdleTime(const StepFacts& facts, const Duration<T>& micro,
                     const Duration<T>& backward) {
  const double hidden = facts.overlap == Overlap::kBuckets ? 1 - facts.buckets->front().ready : 0;
  return micro * static_cast<double>(facts.accumulation_steps) - backward * hidden;
}

// What a step's first bucket loses because its flows were silent while the devices computed. A
// node sends `passes` bytes of it for each byte of the message, which takes `per_byte` once the flows
// are open, whatever limits it: a faster link that nobody can use loses no more.
template <class T>
Duration<T> SlowStart(const StepFacts& facts, const ClusterParameters<T>& cluster, double flows,
                      double passes, const DurationPerByte<T>& per_byte, const DataSize<>& bucket,
                      const Duration<T>& idle) {
  if (!facts.link.rtt || facts.nodes + facts.servers < 2) return {};
  Path<T> path = MakePath(facts.link, cluster.node_link(), cluster);
  path.bandwidth = passes / per_byte;
  path.loss = T(0.0);  // windows and losses have their part in the rate
  path.window = DataSize<T>::FromSi(T(std::numeric_limits<double>::infinity()));
  return SlowStartDelay(path, DataSize<T>(bucket * passes), flows,
                        std::optional<Duration<T>>(idle));
}

// The end of synchronous servers' pulls, as ScheduleServers has it, with flows that start slowly:
// in each phase of the first bucket, at the worker and at the fullest server as fast as either is.
template <class T>
Duration<T> ServersEnd(const StepFacts& facts, const ClusterParameters<T>& cluster,
                       const ServerPhases<T>& phases, double passes, const Duration<T>& backward,
                       const Duration<T>& idle) {
  const auto times = [&](const SyncCost<T>& cost, double share,
                         const std::vector<Bucket>& buckets) {
    const Bucket* first = &buckets.front();
    const Duration<T> slow = SlowStart(facts, cluster, facts.servers, passes, cost.per_byte * share,
                                       first->bytes / share, idle);
    return [&cost, first, slow](const Bucket& bucket) {
      return &bucket == first ? cost.Time(bucket.bytes) + slow : cost.Time(bucket.bytes);
    };
  };
  const std::vector<Bucket>& whole = *facts.buckets;
  const std::vector<Bucket>& held = *facts.held_buckets;
  const auto worker_push = times(phases.worker_push, 1, whole);
  const auto worker_pull = times(phases.worker_pull, 1, whole);
  const auto server_push = times(phases.server_push, phases.share, held);
  const auto server_pull = times(phases.server_pull, phases.share, held);
  if (!facts.server.pipelined) {
    return Max(LastSynchronisationEnd(whole, backward, worker_push),
               LastSynchronisationEnd(held, backward, server_push)) +
           Max(LastSynchronisationEnd(whole, Duration<T>(), worker_pull),
               LastSynchronisationEnd(held, Duration<T>(), server_pull));
  }
  const Duration<T> shared = ScheduleServers(phases, whole, held, backward, true).pulled;
  return Max(shared, Max(PipelinedServerEnd(whole, backward, worker_push, worker_pull),
                         PipelinedServerEnd(held, backward, server_push, server_pull)));
}

}  // namespace stepcast::internal

namespace stepcast {

template <class T>
AllreduceChoice<T> EvaluateChoice(const StepFacts& facts, const ClusterParameters<T>& cluster) {
  const NodeShape shape{facts.workers, facts.nodes, facts.devices_per_node, facts.nics};
  Limiter unused = Limiter::kNothing;
  Hop<T> inter;
  if (facts.nodes > 1) inter = internal::CollectiveHop(facts, cluster, &unused);
  const Hop<T> intra = internal::DeviceHop(facts, cluster);
  const DataSize<> message = internal::MeanBucket(facts);
  std::vector<AllreduceCandidate<T>> candidates = AllreduceCandidates(shape, inter, intra);
  if (facts.workers == 1) return {candidates.front(), std::nullopt};
  SyncCost<T>& ring = candidates.front().cost;  // the ring comes first
  const PipelinedRing<T> pipelined =
      PipelineRing(ring, facts.nodes > 1 ? inter.alpha : intra.alpha);
  ring.per_call = pipelined.Time(message) - ring.per_byte * message;
  return ChooseAmong(candidates, message);
}

template <class T>
PhaseBenefit<T> EvaluateServerPhases(const StepFacts& facts, const ClusterParameters<T>& cluster,
                                     const WorkloadParameters<T>& workload) {
  Limiter unused = Limiter::kNothing;
  return CompareNetworkServices(
      WithoutLatency(internal::MakeServerPaths(facts, cluster, workload, &unused)), *facts.buckets,
      *facts.held_buckets, internal::MicroStep(facts, cluster, workload) * cluster.overlap_share(),
      facts.server.pipelined);
}

template <class T>
StepTime<T> EvaluateStep(const StepFacts& facts, const ClusterParameters<T>& cluster,
                         const WorkloadParameters<T>& workload, StepTerms<T>* terms) {
  using internal::SlowStart;
  StepTerms<T> unused;
  StepTerms<T>& t = terms != nullptr ? *terms : unused;
  t = {};
  StepTime<T> step;
  const double a = facts.accumulation_steps;
  const bool servers = UsesServers(facts.strategy);
  t.micro = internal::MicroStep(facts, cluster, workload);
  t.backward = t.micro * cluster.overlap_share();
  step.forward = (t.micro - t.backward) * a;
  step.backward = t.backward * a;
  const bool alone = facts.workers == 1 && (!servers || facts.server.colocated);
  if (facts.has_compute && (!servers || alone)) step.update = workload.update_time();
  if (facts.strategy == Strategy::kNone) return step;
  if (alone) {
    t.async.cycle = t.async.alone = step.total();
    if (step.total().si() > 0.0) t.async.updates = 1.0 / step.total();
    return step;
  }

  const Duration<T> wait =
      StragglerWait(t.micro, workload.straggler_spread(), facts.accumulation_steps, facts.workers,
                    facts.backup_workers);
  const Duration<T> idle = internal::IdleTime(facts, t.micro, t.backward);
  t.overhead =
      facts.nodes > 1 || servers ? cluster.node_sync_overhead() : cluster.device_sync_overhead();

  if (facts.strategy == Strategy::kPsAsync) {
    const ServerPaths<T> paths = internal::MakeServerPaths(facts, cluster, workload, &step.limiter);
    t.node_hop = paths.worker;
    t.servers = paths;
    AsyncWork<T> work;
    work.forward = t.micro * a - t.backward;
    work.backward = t.backward;
    work.spread = workload.straggler_spread();
    work.buckets = facts.overlap == Overlap::kNone ? nullptr : facts.buckets.get();
    t.async = AsynchronousServers(paths, work, facts.gradient);
    const Duration<T> exposed =
        Max(t.async.cycle - step.compute(), Duration<T>());  // rounding must not make it negative
    step.exposed_latency =
        Min(exposed,
            (paths.worker.alpha + paths.initiation * static_cast<double>(facts.servers)) * 2.0) +
        t.overhead;
    step.exposed_transfer = exposed + t.overhead - step.exposed_latency;
    step.synchronisation = step.exposed();
    if (facts.server.staleness_bound) {
      step.straggler_wait = BoundedStalenessWait(wait, step.total(), facts.server.staleness_bound);
    }
    return step;
  }

  Duration<T> calls;
  if (facts.strategy == Strategy::kPsSync) {
    const ServerPaths<T> paths = internal::MakeServerPaths(facts, cluster, workload, &step.limiter);
    t.node_hop = paths.worker;
    t.servers = paths;
    // All buckets of a phase are on their way at once.
    const Duration<T> latency = paths.alone() ? Duration<T>() : PhaseLatency(paths) * 2.0;
    t.phases = SynchronousServers(WithoutLatency(paths));
    t.cost = t.phases.push + t.phases.pull;
    calls = t.cost.per_call * static_cast<double>(facts.buckets->size()) + latency;
    // Both directions of a link start slowly, a phase after the other.
    const double passes = paths.worker_passes();
    const DataSize<> first =
        Max(facts.buckets->front().bytes, facts.held_buckets->front().bytes / t.phases.share);
    for (const SyncCost<T>& phase : {t.phases.push, t.phases.pull}) {
      t.slow_start += SlowStart(facts, cluster, facts.servers, passes, phase.per_byte, first, idle);
    }
    t.end = internal::ServersEnd(facts, cluster, t.phases, passes, t.backward, idle) + latency;
  } else {
    const PipelinedRing<T> ring = internal::CollectiveCost(facts, cluster, &step.limiter, &t);
    t.cost = ring.steady;
    const Bucket& first = facts.buckets->front();
    if (facts.nodes > 1) {
      // A ring moves a message 2 (w-1)/w times, one w-th at once.
      const double w = facts.workers;
      t.slow_start =
          SlowStart(facts, cluster, 1, 1 / w, t.cost.per_byte / (2 * (w - 1)), first.bytes, idle);
    }
    t.end = LastSynchronisationEnd(*facts.buckets, t.backward, [&](const Bucket& bucket) {
      const Duration<T> time = ring.Time(bucket.bytes);
      calls += time - ring.steady.per_byte * bucket.bytes;
      return &bucket == &first ? time + t.slow_start : time;
    });
  }
  calls += t.slow_start;
  const Duration<T> transfer = t.cost.per_byte * facts.gradient;
  const Duration<T> all = calls + transfer;
  OverlapSplit<T> split;
  switch (facts.overlap) {
    case Overlap::kBuckets:
      split = BucketOverlap(t.backward, all, t.end);
      break;
    case Overlap::kNone:
      split = {all, {}};
      break;
    case Overlap::kPNorm:
      split = PNormOverlap(t.backward, all);
      break;
  }
  t.hidden = split.hidden;
  t.contention = OverlapContention(split, t.backward, cluster.overlap_contention());
  step.backward += t.contention;
  step.synchronisation = all + t.overhead;
  // The exposed part beyond the fixed cost is shared out as the whole is made up.
  step.exposed_transfer = all.si() > 0.0 ? split.exposed * (transfer / all) : Duration<T>();
  step.exposed_latency = split.exposed - step.exposed_transfer + t.overhead;
  if (step.exposed_transfer < step.exposed_latency) step.limiter = Limiter::kLatency;
  step.straggler_wait = wait;
  return step;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_STEP_IMPL_H_
