// A step's synchronisation by a collective: hops, the cost of a call, and the schedule of buckets.
//
// All buckets follow each other over one link behind the backward pass; the formulas are those of
// allreduce.h, byteps.h and model/overlap/buckets.h.
#ifndef STEPCAST_MODEL_EXCHANGE_COLLECTIVE_STEP_H_
#define STEPCAST_MODEL_EXCHANGE_COLLECTIVE_STEP_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "data/units/quantity.h"
#include "model/exchange/allreduce.h"
#include "model/exchange/byteps.h"
#include "model/exchange/sharded.h"
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
  // What limits the path between nodes, and the share of a hop's time that is the path's.
  Limiter path = Limiter::kHost;
  double path_share = 0;
};

// Distinct nodes that a node of a ring exchanges with.
inline double RingPeers(const StepFacts& facts) { return std::min(facts.nodes - 1, 2); }

inline NodeShape ShapeOf(const StepFacts& facts) {
  return {facts.workers, facts.nodes, facts.devices_per_node, facts.nics};
}

inline Crossing<> CrossedByCollective(const StepFacts& facts, const NetworkCore<>& core) {
  const int nodes = facts.nodes;
  if (TraitsOf(facts.strategy).helpers) {
    const double near = std::min<double>(nodes, core.nodes);
    return core.OfShare(nodes, BytePsLeavingShare(nodes, near, facts.servers));
  }
  if (facts.strategy == Strategy::kTree) return core.OfTree(nodes);
  return facts.strategy == Strategy::kHalvingDoubling ? core.OfHalvingDoubling(nodes)
                                                      : core.OfRing(nodes);
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
    const double pieces = facts.compress.is_gathered() ? 1 : facts.workers;
    const Barrier<T> barrier{mean / pieces, machines};
    FlowShape shape{
        RingPeers(facts), 1, kSegmentKnee, false, facts.nodes, parts.SlowestHop(facts.nodes)};
    const PathFacts between = NodeLink(facts);
    const LinkFacts& link = *between;
    if (TraitsOf(facts.strategy).helpers) {
      const double peers = facts.nodes - 1 + facts.servers;
      shape = {peers, peers, kLinkKnee, true};
    } else if (facts.nodes == 2 && RingBetweenNodes(facts.strategy)) {
      shape.window_knee = kNoPipeline;
    }
    shape.core = CrossedByCollective(facts, CoreOf(link));
    shape.uplinks_known = facts.uplinks_known;
    const PathRate<T> rate = parts.NodeRate(link, cluster, shape, barrier,
                                            terms != nullptr ? &terms->node_path : nullptr);
    const NodeHop<T> node = MakeNodeHop(facts, link, cluster, rate);
    hops.node = node.hop;
    hops.path = rate.limiter;
    hops.path_share = node.path_share;
  }
  if (TraitsOf(facts.strategy).helpers) {
    const PathFacts to_helper = PathToServer(facts.link, facts.server_link);
    const LinkFacts& path = *to_helper;
    FlowShape shape{machines, machines, kLinkKnee, true};
    shape.core = CoreOf(path).OfAllApart(facts.servers);
    hops.helper_link = parts
                           .ServerRate(path, cluster, shape, Barrier<T>{mean / machines, machines},
                                       terms != nullptr ? &terms->server_path : nullptr)
                           .bandwidth;
  }
  if (terms != nullptr) {
    terms->node_hop = hops.node;
    terms->device_hop = hops.device;
  }
  return hops;
}

// The cost of one collective call.
template <class T>
CallCost<T> CollectiveCost(const StepFacts& facts, const CollectiveHops<T>& hops) {
  if (TraitsOf(facts.strategy).helpers) {
    return PipelinedBytePs(facts.nodes, facts.devices_per_node, facts.servers, hops.node,
                           hops.helper_link, hops.device, facts.nics);
  }
  const NodeShape shape = ShapeOf(facts);
  if (facts.shard == Shard::kHybrid) return HybridCall(shape, hops.node, hops.device);
  if (!facts.compress.is_gathered()) {
    return PipelinedAllreduce(facts.strategy, shape, hops.node, hops.device);
  }
  return GatherCall(PipelinedAllreduce(facts.strategy, shape, hops.node, hops.device),
                    facts.workers);
}

// Time per byte of the message that its first piece takes once the flows between nodes are open. A
// ring moves a message 2 (w-1)/w times, one w-th at once.
template <class T>
DurationPerByte<T> TimeOfPieces(const StepFacts& facts, const SyncCost<T>& call,
                                const Hop<T>& node) {
  const RingPieces pieces = PiecesOf(facts);
  if (facts.shard != Shard::kHybrid) return call.per_byte / pieces.count;
  // What goes within nodes is no part of it.
  return pieces.first / (node.bandwidth * static_cast<double>(ShapeOf(facts).used_cards()));
}

// What would speed up a collective over an average bucket most by being faster: the path between
// nodes, or the exchange within them, which has its part in hops between nodes and between devices.
// Bytes that meet both twice as fast take half as long, so that what the one does not save of them
// the other does.
template <class T>
Limiter CollectiveLimiter(const StepFacts& facts, const CollectiveHops<T>& hops,
                          const CallCost<T>& call) {
  if (facts.nodes <= 1) return Limiter::kHost;
  if (facts.devices_per_node <= 1 && !TraitsOf(facts.strategy).helpers) {
    return hops.path_share < 0.5 ? Limiter::kHost : hops.path;
  }
  constexpr double kFaster = 1 + 0x1p-10;
  CollectiveHops<double> faster;
  faster.node = {ValueOf(hops.node.alpha), ValueOf(hops.node.bandwidth) /
                                               (hops.path_share + (1 - hops.path_share) / kFaster)};
  faster.device = {ValueOf(hops.device.alpha), ValueOf(hops.device.bandwidth) * kFaster};
  faster.helper_link = ValueOf(hops.helper_link);
  const DataSize<> bucket = MeanBucket(facts);
  const Duration<> by_host =
      ValueOf(call.Time(bucket)) - CollectiveCost(facts, faster).Time(bucket);
  const Duration<> by_both = ValueOf(call.Binding(bucket).per_byte) * bucket * (1 - 1 / kFaster);
  return by_both - by_host < by_host ? Limiter::kHost : hops.path;
}

// Bucket after bucket over a collective, of which each takes the larger of two times on each level.
template <class T>
struct CollectiveSchedule {
  Duration<T> end;    // E_K, from the start of the backward pass
  Duration<T> calls;  // of all buckets; their bytes at the steady pace are the rest
};

// The same where a call has so many levels.
template <std::size_t kLevels, class T>
CollectiveSchedule<T> ScheduleLevels(const CallCost<T>& call, const std::vector<Bucket>& buckets,
                                     const Duration<T>& backward, const Duration<T>& late) {
  // Sums over the buckets from one on: their number and bytes, and those of them that the chain of
  // a level holds up.
  struct Chained {
    double count = 0;
    double bytes = 0;
  };
  struct Tail {
    double count = 0;
    double bytes = 0;
    std::array<Chained, kLevels> chained;
  };
  struct Level {
    const PipelinedRing<T>& ring;
    SyncCost<double> steady;
    SyncCost<double> chain;
    explicit Level(const PipelinedRing<T>& of)
        : ring(of),
          steady{ValueOf(of.steady.per_call), ValueOf(of.steady.per_byte)},
          chain{ValueOf(of.chain.per_call), ValueOf(of.chain.per_byte)} {}
  };
  const std::array<Level, 2> levels = {Level(call.between), Level(call.within)};
  const Duration<> pass = ValueOf(backward);
  Tail tail;
  Tail binding;
  std::size_t from = 0;  // the bucket from which they bind
  Duration<> rest;
  Duration<> latest = Seconds(-1.0);
  for (std::size_t k = buckets.size(); k-- > 0;) {
    const Bucket& bucket = buckets[k];
    tail.count += 1.0;
    tail.bytes += bucket.bytes.si();
    for (std::size_t i = 0; i < kLevels; ++i) {
      const Duration<> at_pace = levels[i].steady.Time(bucket.bytes);
      const Duration<> around = levels[i].chain.Time(bucket.bytes);
      const double chained = at_pace < around ? 1.0 : 0.0;
      tail.chained[i].count += chained;
      tail.chained[i].bytes += chained * bucket.bytes.si();
      rest += Max(at_pace, around);
    }
    if (k == 0) rest += ValueOf(late);
    const Duration<> end = pass * bucket.ready + rest;
    if (latest < end) {
      latest = end;
      binding = tail;
      from = k;
    }
  }
  const auto calls = [&](const Tail& t) {
    Duration<T> sum;
    for (std::size_t i = 0; i < kLevels; ++i) {
      const PipelinedRing<T>& ring = levels[i].ring;
      const Chained& chained = t.chained[i];
      sum += ring.steady.per_call * (t.count - chained.count);
      if (chained.count == 0) continue;
      sum += ring.chain.per_call * chained.count -
             (ring.steady.per_byte - ring.chain.per_byte) * Bytes(chained.bytes);
    }
    return sum;
  };
  CollectiveSchedule<T> schedule;
  const Duration<T> all = calls(tail);
  schedule.calls = all + late;
  schedule.end = backward * buckets[from].ready + (from == 0 ? all + late : calls(binding)) +
                 call.Steady().per_byte * Bytes(binding.bytes);
  return schedule;
}

template <class T>
CollectiveSchedule<T> ScheduleCollective(const CallCost<T>& call,
                                         const std::vector<Bucket>& buckets,
                                         const Duration<T>& backward, const Duration<T>& late) {
  return call.two_levels() ? ScheduleLevels<2>(call, buckets, backward, late)
                           : ScheduleLevels<1>(call, buckets, backward, late);
}

// By a collective, whole or in halves.
template <class T>
Synchronisation<T> Synchronise(const StepFacts& facts, const CollectiveHops<T>& hops,
                               const Duration<T>& micro, const Duration<T>& backward,
                               const Duration<T>& timeout) {
  Synchronisation<T> sync;
  const CallCost<T> call = CollectiveCost(facts, hops);
  const std::vector<Bucket>& buckets = *facts.buckets;
  sync.limiter = CollectiveLimiter(facts, hops, call);
  sync.cost = call.Steady();
  sync.passes = ExchangesOf(facts.shard, facts.accumulation_steps) / facts.local_steps;
  // Gathers between nodes keep their links busy.
  const bool is_silent = facts.nodes > 1 && facts.shard != Shard::kParameters;
  const Duration<T> trip = is_silent ? SlowStartTrip(*NodeLink(facts), hops.node) : Duration<T>();
  if (trip.si() > 0.0) {
    sync.slow_start = SlowStart(trip, timeout, 1, PiecesOf(facts).first,
                                TimeOfPieces(facts, sync.cost, hops.node), buckets.front().bytes,
                                IdleTime(facts, micro, backward));
  }
  const CollectiveSchedule<T> whole = ScheduleCollective(call, buckets, backward, sync.slow_start);
  sync.calls = whole.calls * sync.passes;
  if (facts.shard == Shard::kNone) {
    sync.end = whole.end;
    return sync;
  }
  const UnitExchange<T> of_unit = UnitExchangeOf(facts.shard, call);
  if (GathersUnits(facts.shard)) {
    const Duration<T> forward = micro - backward;
    const GatheredPasses<T> passes =
        GatherUnits(of_unit, buckets, forward, backward, sync.slow_start);
    const Duration<T> stalls = passes.forward - forward + (passes.backward - backward);
    sync.end = backward + stalls * static_cast<double>(facts.accumulation_steps);
    return sync;
  }
  const Duration<T> reduced =
      ScheduleCollective(of_unit.half, buckets, backward, sync.slow_start).end;
  sync.end = EndOfSharedUpdate(backward, reduced, (sync.All(facts) - sync.slow_start) * 0.5);
  return sync;
}

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_EXCHANGE_COLLECTIVE_STEP_H_
