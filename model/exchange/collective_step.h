// A step's synchronisation by a collective: hops, the cost of a call, and the schedule of buckets.
//
// All buckets follow each other over one link behind the backward pass; the formulas are those of
// allreduce.h, byteps.h and model/overlap/buckets.h.
#ifndef STEPCAST_MODEL_EXCHANGE_COLLECTIVE_STEP_H_
#define STEPCAST_MODEL_EXCHANGE_COLLECTIVE_STEP_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "data/units/quantity.h"
#include "model/exchange/allreduce.h"
#include "model/exchange/byteps.h"
#include "model/exchange/synchronisation.h"
#include "model/numeric/dual.h"
#include "model/overlap/buckets.h"
#include "model/step/step_terms.h"

namespace stepcast::internal {

// The hops of a collective, and what limits that between nodes.
template <class T>
struct CollectiveHops {
  Hop<T> node;              // for more than one node
  Hop<T> device;            // between devices of a node
  DataRate<T> helper_link;  // byteps
  Limiter node_link = Limiter::kHost;
};

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
    } else if (facts.nodes == 2 && RingBetweenNodes(facts.strategy)) {
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
  // Sums over the buckets from one on: their number and bytes, and those of them that the chain
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

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_EXCHANGE_COLLECTIVE_STEP_H_
