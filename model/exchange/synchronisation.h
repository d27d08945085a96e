// What every exchange of a step is made of: paths as stated or fitted, hops, the silence of the
// links before the first bucket, and what comes of it.
//
// The formulas are those of model/network/hop.h and slow_start.h; here they meet the facts of a
// plan and the fitted parameters.
#ifndef STEPCAST_MODEL_EXCHANGE_SYNCHRONISATION_H_
#define STEPCAST_MODEL_EXCHANGE_SYNCHRONISATION_H_

#include <limits>
#include <optional>

#include "data/units/quantity.h"
#include "model/exchange/cost.h"
#include "model/network/hop.h"
#include "model/network/limiter.h"
#include "model/network/sharing.h"
#include "model/network/slow_start.h"
#include "model/network/transport.h"
#include "model/overlap/buckets.h"
#include "model/step/parameters.h"
#include "model/step/step_facts.h"

namespace stepcast::internal {

// The bytes of an average bucket.
inline DataSize<> MeanBucket(const StepFacts& facts) {
  return facts.gradient / static_cast<double>(facts.buckets->size());
}

// The parameter that is the one-way cost of a message over the link, and its value.
inline ClusterParameter LatencyParameter(const LinkFacts& link) {
  return link.rdma() ? kRdmaLatency : kLinkLatency;
}
template <class T>
Duration<T> LatencyOf(const LinkFacts& link, const ClusterParameters<T>& cluster) {
  return Duration<T>::FromSi(cluster.si[LatencyParameter(link)]);
}

template <class T>
Flows<T> FlowsOf(const ClusterParameters<T>& cluster) {
  return {cluster.flow_bandwidth(), cluster.hop_spread()};
}

// A link as stated, or as fitted where nothing is stated, for flows of a shape. Where all nodes
// send to all, their flows collide at the receivers, and TCP backs off.
template <class T>
Path<T> MakePath(const LinkFacts& stated, const DataRate<T>& fitted,
                 const ClusterParameters<T>& cluster, const FlowShape& shape = {}) {
  Path<T> path;
  const DataRate<T> line = stated.bandwidth ? *stated.bandwidth * cluster.stated_share : fitted;
  path.others = stated.others.value_or(0.0);
  path.bandwidth = line * kPayloadShare;
  if (stated.background) {
    path.taken =
        TakenByBackground(line, *stated.background, path.others, shape.hops > 1) * kPayloadShare;
    path.left = 1.0 - path.taken / path.bandwidth;
    path.bandwidth = path.bandwidth - path.taken;
  }
  path.bandwidth = path.bandwidth / (1 + path.others);
  if (shape.mesh && !stated.rdma()) path.bandwidth = path.bandwidth * cluster.mesh_share();
  path.rtt = stated.rtt.value_or(Duration<>());
  path.loss = T(stated.loss.value_or(0.0));
  path.transport = stated.transport.value_or(Transport::kTcp);
  path.congestion = stated.congestion_control.value_or(CongestionControl::kCubic);
  path.window = cluster.flow_window();
  path.timeout = cluster.loss_timeout();
  path.burst = stated.loss_burst.value_or(Duration<>());
  // Without loss the round trip matters by the window alone, and only where it is stated. With loss
  // it decides, and what the hosts add to it counts.
  if (path.loss > 0.0) path.rtt += LatencyOf(stated, cluster) * 2.0;
  return path;
}

// The line that sets the pace of the slowest node, and whether the core has its part in it.
struct NodeLine {
  bool own = true;  // the node's own link, or that of most
  bool crossed = true;
};
template <class T>
NodeLine LineOfSlowest(const LinkFacts& stated, const ClusterParameters<T>& cluster,
                       const FlowShape& shape) {
  if (!shape.uplinks_known || shape.core.longer == 1 || stated.bandwidth) return {};
  if (!cluster.node_link_si || !(cluster.node_link() < cluster.link_bandwidth())) return {};
  const bool held =
      HeldByItsOwnLink(MakePath(stated, cluster.node_link(), cluster, shape),
                       MakePath(stated, cluster.link_bandwidth(), cluster, shape), shape);
  return {held, !held};
}

// A hop between nodes, and the share of it that a faster path saves.
template <class T>
struct NodeHop {
  Hop<T> hop;
  double path_share = 0;
};

// The same over a path of `rate`.
template <class T>
NodeHop<T> MakeNodeHop(const StepFacts& facts, const LinkFacts& link,
                       const ClusterParameters<T>& cluster, const PathRate<T>& rate) {
  const DataRate<T> host =
      SharedHost(cluster.host_bandwidth(), cluster.host_sharing(), facts.devices_per_node);
  return {{HopLatency(LatencyOf(link, cluster), link.rtt.value_or(Duration<>())),
           HopRate(rate.bandwidth, host)},
          PathShare(rate.bandwidth, host)};
}

// A hop between devices of one node.
template <class T>
Hop<T> DeviceHop(const StepFacts& facts, const ClusterParameters<T>& cluster) {
  return {HopLatency(cluster.device_latency(), facts.device_rtt), cluster.host_bandwidth()};
}

// Silence of the links before a step's first bucket leaves.
template <class T>
Duration<T> IdleTime(const StepFacts& facts, const Duration<T>& micro,
                     const Duration<T>& backward) {
  const bool by_buckets = facts.overlap == Overlap::kBuckets;
  const double left = by_buckets ? 1 - facts.buckets->front().ready : 0;  // of the backward pass
  return micro * MicroStepsBetween(facts) - backward * left;
}

// The round trip of flows that start slowly, as those of TCP do: as stated, and what the hosts of
// `hop` add to it where loss makes it count (MakePath).
template <class T>
Duration<T> SlowStartTrip(const LinkFacts& link, const Hop<T>& hop) {
  if (!link.rtt || link.rdma()) return {};
  return link.loss.value_or(0.0) > 0.0 ? hop.alpha * 2.0 : Duration<T>(*link.rtt);
}

// Time that a step's first bucket loses because flows were silent while the devices computed. A
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

// A synchronisation beside the passes of a step.
template <class T>
struct Synchronisation {
  // Of the last bucket, from the start of the backward pass; that of a pass of the same length
  // which stalls at its end only, where the passes wait for parts of the exchange.
  Duration<T> end;
  Duration<T> calls;       // of all buckets; their bytes are the rest
  Duration<T> slow_start;  // before the first bucket, within the calls
  SyncCost<T> cost;        // of a call
  double passes = 1;       // calls of the kind that `cost` is of, for each bucket
  Limiter limiter = Limiter::kNothing;

  Duration<T> Transfer(const StepFacts& facts) const {
    return cost.per_byte * facts.gradient * passes;
  }
  Duration<T> All(const StepFacts& facts) const { return calls + Transfer(facts); }
};

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_EXCHANGE_SYNCHRONISATION_H_
