// How the cost of all-reduces grows with the workers w, in the form of model/exchange/growth.h.
//
//   strategy           per_call(w)                         per_byte(w)
//   ring               2 alpha (w-1)                       2/B (1 - 1/w)
//   halving-doubling   2 alpha log2 w                      2/B (1 - 1/w)
//   binomial tree      2 alpha log2 w                      2/B log2 w
//   double tree        2 alpha log2 w                      2/B                              w >= 4
//   flat ring          h alpha + (2 (w-1) - h) alpha_i     max(2/(B c), 2/B_i) (1 - 1/w)    w >= 2g
//   hierarchical       2 alpha_i (g-1) + that of N = w/g   2/B_i (1 - 1/g) + that of N / c  w >= g
//   tree over nodes    2 alpha_i (g-1) + 2 alpha log2 N    max(2/(B c), min(2, g-1)/B_i)    w >= 4g
//
//   alpha, B     one-way cost of a message [s] and bandwidth [B/s] between nodes; with i: in a node
//   g, N, c      workers of a node, nodes, cards of a node that its workers use
//   h            2 N - max(0, 3 - g), the hops between nodes of a flat ring's piece
//
// Where the rounds of a ring follow each other bucket by bucket, less of them is seen:
//
//   pipelined ring     c m/2 + max( 4 alpha J + c m/2, J per_call(w) )     c m = m per_byte(w)
//
// Holds where w is a power of two (halving-doubling, trees) or fills its nodes (flat ring,
// hierarchical); in between, the algorithms cost up to a round and, for halving-doubling, two
// passes more. The pipelined ring is exact while bytes set the pace, and at most (m/B)/w too short
// where latency does.
//
// Note that ring and halving-doubling cost exactly nothing at w = 1.
//
// Sources: those of model/exchange/allreduce.h, whose costs these are; docs/explanation/limits.md.
#ifndef STEPCAST_MODEL_EXCHANGE_ALLREDUCE_LIMITS_H_
#define STEPCAST_MODEL_EXCHANGE_ALLREDUCE_LIMITS_H_

#include <algorithm>
#include <type_traits>

#include "data/units/quantity.h"
#include "model/exchange/allreduce.h"
#include "model/exchange/cost.h"
#include "model/exchange/growth.h"

namespace stepcast {

template <class T>
CostGrowth<T> RingGrowth(const Hop<T>& hop) {
  CostGrowth<T> growth;
  growth.per_call.fixed = hop.alpha * -2.0;
  growth.per_call.slope = hop.alpha * 2.0;
  growth.per_byte.fixed = 2.0 / hop.bandwidth;
  growth.per_byte.saved = 2.0 / hop.bandwidth;
  return growth;
}

template <class T>
CostGrowth<T> HalvingDoublingGrowth(const Hop<T>& hop) {
  CostGrowth<T> growth;
  growth.shape = GrowthShape::kLogarithmic;
  growth.per_call.slope = hop.alpha * 2.0;
  growth.per_byte.fixed = 2.0 / hop.bandwidth;
  growth.per_byte.saved = 2.0 / hop.bandwidth;
  return growth;
}

// Reduced up one tree and sent down it again, the whole message in every round.
template <class T>
CostGrowth<T> BinomialTreeGrowth(const Hop<T>& hop) {
  CostGrowth<T> growth;
  growth.shape = GrowthShape::kLogarithmic;
  growth.per_call.slope = hop.alpha * 2.0;
  growth.per_byte.slope = 2.0 / hop.bandwidth;
  return growth;
}

template <class T>
CostGrowth<T> DoubleTreeGrowth(const Hop<T>& hop) {
  CostGrowth<T> growth;
  growth.shape = GrowthShape::kLogarithmic;
  growth.least = 4;
  growth.per_call.slope = hop.alpha * 2.0;
  growth.per_byte.fixed = 2.0 / hop.bandwidth;
  return growth;
}

// On full nodes of `devices`, two of them at least.
template <class T>
CostGrowth<T> FlatRingGrowth(int devices, const Hop<T>& inter, const Hop<T>& intra, int cards = 1) {
  const double g = devices;
  const double used = std::min(devices, cards);
  const double left_out = std::max(0, 3 - devices);
  const DurationPerByte<T> slowest = Max(1.0 / (inter.bandwidth * used), 1.0 / intra.bandwidth);
  CostGrowth<T> growth;
  growth.least = 2 * g;
  growth.per_call.fixed = intra.alpha * (left_out - 2) - inter.alpha * left_out;
  growth.per_call.slope = inter.alpha * (2 / g) + intra.alpha * (2 - 2 / g);
  growth.per_byte.fixed = slowest * 2.0;
  growth.per_byte.saved = slowest * 2.0;
  return growth;
}

// `between` is the law of one device of each node, over nodes of `devices`.
template <class T>
CostGrowth<T> OverFullNodes(const CostGrowth<T>& between, int devices, int cards = 1) {
  const double used = std::min(devices, cards);
  CostGrowth<T> growth = OverNodes(between, devices);
  growth.per_byte.fixed = growth.per_byte.fixed / used;
  growth.per_byte.slope = growth.per_byte.slope / used;
  growth.per_byte.saved = growth.per_byte.saved / used;
  return growth;
}

// `between` is that of a ring, or of halving-doubling.
template <class T>
CostGrowth<T> HierarchicalGrowth(const CostGrowth<T>& between, int devices, const Hop<T>& intra,
                                 int cards = 1) {
  const SyncCost<T> within = RingAllreduce(devices, intra);
  CostGrowth<T> growth = OverFullNodes(between, devices, cards);
  growth.per_call.fixed += within.per_call;
  growth.per_byte.fixed += within.per_byte;
  return growth;
}

// A double tree between the nodes, whose devices form a chain; `devices` of 2 and more.
template <class T>
CostGrowth<T> TreeOverNodesGrowth(int devices, const Hop<T>& inter, const Hop<T>& intra,
                                  int cards = 1) {
  CostGrowth<T> growth = DoubleTreeGrowth(inter);
  growth.least *= devices;
  internal::CountWorkers(growth.shape, devices, &growth.per_call);
  growth.per_call.fixed += intra.alpha * (2.0 * (devices - 1));
  growth.per_byte.fixed = Max(growth.per_byte.fixed / static_cast<double>(std::min(devices, cards)),
                              std::min(2.0, devices - 1.0) / intra.bandwidth);
  return growth;
}

// S(w) of a ring whose pieces follow each other through its rounds (PipelineRing), `slowest` the
// latency of its slowest hop.
template <class T>
SyncGrowth<T> PipelinedRingGrowth(const CostGrowth<T>& ring, const Duration<T>& slowest,
                                  const std::type_identity_t<DataSize<T>>& bytes,
                                  const std::type_identity_t<T>& calls = T(1.0)) {
  SyncGrowth<T> growth;
  growth.least = ring.least;
  const Duration<T> half = ring.per_byte.fixed * bytes * 0.5;
  const Duration<T> chain = ring.per_call.fixed * calls;
  growth.time.fixed = half + chain;
  growth.time.saved = ring.per_byte.saved * bytes;
  growth.time.hinges[0] = {slowest * (calls * 4.0) + half - chain, ring.per_call.slope * calls};
  return growth;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_ALLREDUCE_LIMITS_H_
