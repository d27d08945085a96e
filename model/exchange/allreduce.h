// All-reduce algorithms in the alpha-beta model: among w workers over equal hops, and among N nodes
// of g devices each.
//
//   ring              2 (w-1) alpha              + 2 (w-1)/w m / B
//   halving-doubling  2 ceil(log2 w) alpha       + 2 (w'-1)/w' m / B   [+ 2 m / B when w != w']
//   tree              2 ceil(log2 w) alpha       + min(2, w/2) m / B
//   flat ring         h alpha + (2 (w-1) - h) alpha_i + 2 (w-1)/w m max(1 / (B c), 1 / B_i)
//   hierarchical      2 (g-1) alpha_i + 2 (g-1)/g m / B_i + 2 (N-1) alpha + 2 (N-1)/N m / (B c)
//   ... with halving-doubling between the nodes: that line with N, and m / c, in the place of w, m
//   tree over nodes   2 (g-1) alpha_i + 2 ceil(log2 N) alpha
//                       + m max( min(2, N/2) / (B c), min(2, g-1) / B_i )
//
//   alpha, alpha_i   one-way cost of a message between nodes, within a node   [s]
//   B, B_i           bandwidth of a network card, between devices of a node   [B/s]
//   m                gradient bytes of the call                               [B]
//   w, N, g          workers, nodes, devices of the fullest node
//   w'               2^floor(log2 w), the workers that halve and double
//   c                min(g, cards of a node), the cards that a node has work for
//   h                2 N - max(0, 3 - g), hops between nodes that a piece takes one after another
//
// Hold for messages of some kilobytes up, on links that carry both directions at once and a switch
// that does not block; adding up the received pieces is taken to hide behind their transfer (see
// WithReduction where it does not). The tree is a double binary tree whose halves are pipelined;
// over nodes, the devices of a node form a chain to the one that is in the tree. In the
// hierarchical forms each of the g devices of a node exchanges m/g with its like on other nodes,
// and the g exchanges share the node's c cards.
//
// The flat ring passes all devices of a node before it leaves it, so a node's card carries the
// ring once in and once out, and the slowest hop sets the pace of all. Its rounds are no barriers:
// a device sends the next piece as soon as it has the one before. What has to be waited for is the
// longest path of a piece, 2 (w-1) hops in a row, two short of two laps; the longest leaves out two
// hops within a node where there are two in a row. That gives h. A worker that stays at the slow
// hop waits for its bytes only, so latency and bytes together are an upper bound, which the larger
// of the two approaches.
//
// Rounds of a ring are cut into pieces that follow each other, and latency hides behind bytes: of
// all the latency L of the ring only two round trips of its slowest hop are seen, unless the bytes
// are too few to hide the rest (PipelinedRing):
//
//   T = max( min(L, 4 alpha) + c m,  L + c m / 2 )
//
// with c the ring's time per byte, of which half is the first of two pieces.
//
// Rings within the nodes and those between them do so alike, each on its level, and the levels
// follow each other: what a library cuts into pieces is the transfer of one collective, and the
// next one takes its whole result (CallCost). A tree is cut into pieces as well, which is why it
// costs two passes and not two for each level; but its last piece leaves when all others have left,
// and still goes all the way up and down, so that bytes hide nothing of its latency. In halving and
// doubling each round sends what the round before has received from another partner, and nothing
// hides.
//
// Note that one worker (one node, one device) costs exactly nothing, that no term falls with w
// (halving-doubling apart, which pays for what is beyond a power of two), that every form over
// nodes is the plain one when g = 1 or N = 1, and that cards beyond the devices do nothing.
//
// Sources: Patarasuk & Yuan, JPDC 69 (2009); Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005);
// Sanders, Speck, Traff, Parallel Computing 35 (2009); Jeaugey, "Massively Scale Your Deep Learning
// Training with NCCL 2.4" (2019) (chains within nodes, trees between them); Horovod,
// horovod/common/ops/nccl_operations.cc, NCCLHierarchicalAllreduce (a reduce-scatter within the
// nodes, an all-reduce between them and an all-gather, one after the other); Gloo,
// gloo/allreduce_halving_doubling.h (each step waits for its partner's part).
#ifndef STEPCAST_MODEL_EXCHANGE_ALLREDUCE_H_
#define STEPCAST_MODEL_EXCHANGE_ALLREDUCE_H_

#include <algorithm>
#include <bit>
#include <vector>

#include "data/record/strategy.h"
#include "model/exchange/cost.h"

namespace stepcast {

// Workers as they lie on nodes.
struct NodeShape {
  int workers = 1;
  int nodes = 1;
  int devices = 1;  // on the fullest node
  int cards = 1;    // network cards of a node

  int used_cards() const { return std::min(devices, cards); }
};

// Rounds in which a message that doubles its holders each round reaches all.
inline int DoublingRounds(int workers) {
  return workers <= 1 ? 0 : std::bit_width(static_cast<unsigned>(workers - 1));
}

template <class T>
SyncCost<T> RingAllreduce(int workers, const Hop<T>& hop) {
  if (workers <= 1) return {};
  const double w = workers;
  return {hop.alpha * (2 * (w - 1)), (2 * (w - 1) / w) / hop.bandwidth};
}

// The first half of the ring; the all-gather is the second and costs the same.
template <class T>
SyncCost<T> RingReduceScatter(int workers, const Hop<T>& hop) {
  if (workers <= 1) return {};
  const double w = workers;
  return {hop.alpha * (w - 1), ((w - 1) / w) / hop.bandwidth};
}

template <class T>
SyncCost<T> HalvingDoublingAllreduce(int workers, const Hop<T>& hop) {
  if (workers <= 1) return {};
  const auto whole = static_cast<double>(std::bit_floor(static_cast<unsigned>(workers)));
  const double passes = 2 * (whole - 1) / whole + (workers > whole ? 2.0 : 0.0);
  return {hop.alpha * (2.0 * DoublingRounds(workers)), passes / hop.bandwidth};
}

template <class T>
SyncCost<T> TreeAllreduce(int workers, const Hop<T>& hop) {
  if (workers <= 1) return {};
  return {hop.alpha * (2.0 * DoublingRounds(workers)),
          std::min(2.0, workers / 2.0) / hop.bandwidth};
}

template <class T>
SyncCost<T> FlatRingAllreduce(const NodeShape& shape, const Hop<T>& inter, const Hop<T>& intra) {
  if (shape.nodes <= 1) return RingAllreduce(shape.workers, intra);
  if (shape.devices <= 1) return RingAllreduce(shape.workers, inter);
  const double w = shape.workers;
  const double between = 2.0 * shape.nodes - std::max(0, 3 - shape.devices);
  return {inter.alpha * between + intra.alpha * (2 * (w - 1) - between),
          (2 * (w - 1) / w) /
              Min(inter.bandwidth * static_cast<double>(shape.used_cards()), intra.bandwidth)};
}

// A ring whose pieces follow each other through its rounds.
template <class T>
struct PipelinedRing {
  SyncCost<T> steady;  // bytes set the pace
  SyncCost<T> chain;   // a single piece that goes all the way round

  template <class S>
  auto Time(const DataSize<S>& message) const {
    return Max(steady.Time(message), chain.Time(message));
  }
  // The one of the two that a message takes.
  template <class S>
  const SyncCost<T>& Binding(const DataSize<S>& message) const {
    return steady.Time(message) < chain.Time(message) ? chain : steady;
  }
};

// `ring` is what the rounds cost one after another, `slowest` the latency of the slowest hop.
template <class T>
PipelinedRing<T> PipelineRing(const SyncCost<T>& ring, const Duration<T>& slowest) {
  return {{Min(ring.per_call, slowest * 4.0), ring.per_byte}, {ring.per_call, ring.per_byte * 0.5}};
}

// What a call costs whose levels follow each other, each at the larger of its two paces.
template <class T>
struct CallCost {
  PipelinedRing<T> between;      // or the only level
  PipelinedRing<T> within = {};  // nothing where there is one level

  bool two_levels() const { return within.steady.per_byte.si() > 0.0; }

  template <class S>
  auto Time(const DataSize<S>& message) const {
    return between.Time(message) + within.Time(message);
  }
  // The cost while bytes set the pace.
  SyncCost<T> Steady() const { return between.steady + within.steady; }
  // That of a single piece.
  SyncCost<T> Chain() const { return between.chain + within.chain; }
  // The cost that a message takes.
  template <class S>
  SyncCost<T> Binding(const DataSize<S>& message) const {
    return between.Binding(message) + within.Binding(message);
  }
};

namespace internal {

// Reduce-scatter and all-gather within the nodes, and between them whatever `between` costs for one
// card that carries all.
template <class T>
SyncCost<T> AroundNodes(const SyncCost<T>& between, int devices, const Hop<T>& intra, int cards) {
  const SyncCost<T> within = RingAllreduce(devices, intra);
  const double used = std::min(devices, cards);
  return {within.per_call + between.per_call, within.per_byte + between.per_byte / used};
}

}  // namespace internal

template <class T>
SyncCost<T> HierarchicalAllreduce(int nodes, int devices, const Hop<T>& inter, const Hop<T>& intra,
                                  int cards = 1) {
  return internal::AroundNodes(RingAllreduce(nodes, inter), devices, intra, cards);
}

template <class T>
SyncCost<T> HalvingDoublingOverNodes(int nodes, int devices, const Hop<T>& inter,
                                     const Hop<T>& intra, int cards = 1) {
  if (nodes <= 1) return HalvingDoublingAllreduce(devices, intra);
  return internal::AroundNodes(HalvingDoublingAllreduce(nodes, inter), devices, intra, cards);
}

template <class T>
SyncCost<T> TreeOverNodes(int nodes, int devices, const Hop<T>& inter, const Hop<T>& intra,
                          int cards = 1) {
  if (nodes <= 1) return TreeAllreduce(devices, intra);
  SyncCost<T> cost = TreeAllreduce(nodes, inter);
  if (devices <= 1) return cost;
  const double used = std::min(devices, cards);
  cost.per_call += intra.alpha * (2.0 * (devices - 1));
  cost.per_byte = Max(cost.per_byte / used, std::min(2.0, devices - 1.0) / intra.bandwidth);
  return cost;
}

// The cost of one algorithm, round after round, for any shape that has workers: the ring (which is
// kAllreduce too, as in libraries), the tree, halving and doubling, or the hierarchical one.
template <class T>
SyncCost<T> AllreduceCost(Strategy algorithm, const NodeShape& s, const Hop<T>& inter,
                          const Hop<T>& intra) {
  switch (algorithm) {
    case Strategy::kTree:
      return TreeOverNodes(s.nodes, s.devices, inter, intra, s.cards);
    case Strategy::kHalvingDoubling:
      return HalvingDoublingOverNodes(s.nodes, s.devices, inter, intra, s.cards);
    case Strategy::kHierarchical:
      return HierarchicalAllreduce(s.nodes, s.devices, inter, intra, s.cards);
    default:
      return FlatRingAllreduce(s, inter, intra);
  }
}

// Whether messages between nodes go round them, as a ring's do and those between two levels.
inline bool RingBetweenNodes(Strategy algorithm) {
  return algorithm != Strategy::kTree && algorithm != Strategy::kHalvingDoubling;
}

// The same as libraries send it: rings in pieces that follow each other, on each of their levels.
template <class T>
CallCost<T> PipelinedAllreduce(Strategy algorithm, const NodeShape& s, const Hop<T>& inter,
                               const Hop<T>& intra) {
  const bool levels = s.nodes > 1 && s.devices > 1;
  const bool over_nodes =
      algorithm == Strategy::kHierarchical || algorithm == Strategy::kHalvingDoubling;
  if (levels && over_nodes) {
    const bool ring = RingBetweenNodes(algorithm);
    SyncCost<T> cost =
        ring ? RingAllreduce(s.nodes, inter) : HalvingDoublingAllreduce(s.nodes, inter);
    cost.per_byte = cost.per_byte / static_cast<double>(s.used_cards());
    return {ring ? PipelineRing(cost, inter.alpha) : PipelinedRing<T>{cost, cost},
            PipelineRing(RingAllreduce(s.devices, intra), intra.alpha)};
  }
  const SyncCost<T> cost = AllreduceCost(algorithm, s, inter, intra);
  if (!RingBetweenNodes(algorithm)) return {{cost, cost}, {}};
  return {PipelineRing(cost, s.nodes > 1 ? inter.alpha : intra.alpha), {}};
}

// The algorithms that apply. Two levels are another one only where there are two.
inline std::vector<Strategy> AllreduceAlgorithms(const NodeShape& shape) {
  std::vector<Strategy> algorithms = {Strategy::kRing, Strategy::kTree, Strategy::kHalvingDoubling};
  if (shape.nodes > 1 && shape.devices > 1) algorithms.push_back(Strategy::kHierarchical);
  return algorithms;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_ALLREDUCE_H_
