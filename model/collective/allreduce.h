// All-reduce algorithms among w workers over equal hops, in the alpha-beta model.
//
//   ring              2 (w-1) alpha              + 2 (w-1)/w m / B
//   halving-doubling  2 ceil(log2 w) alpha       + 2 (w'-1)/w' m / B   [+ 2 m / B when w != w']
//   tree              2 ceil(log2 w) alpha       + min(2, w/2) m / B
//   hierarchical      2 (g-1) alpha_i + 2 (g-1)/g m / B_i + 2 (N-1) alpha + 2 (N-1)/N m / B
//
//   alpha, alpha_i   one-way cost of a message between nodes, within a node   [s]
//   B, B_i           bandwidth of a node's link, between devices of a node    [B/s]
//   m                gradient bytes of the call                               [B]
//   w, N, g          workers, nodes, devices of the fullest node
//   w'               2^floor(log2 w), the workers that halve and double
//
// Hold for messages of some kilobytes up, on links that carry both directions at once and a switch
// that does not block; adding up the received pieces is taken to hide behind their transfer. The
// tree is a double binary tree whose two halves are pipelined. In the hierarchical form each of the
// g devices of a node runs a ring over the nodes with m/g, and the g rings share the node's link.
//
// Note that one worker (one node, one device) costs exactly nothing, that no term falls with w
// (halving-doubling apart, which pays for what is beyond a power of two), and that ring and
// hierarchical agree when g = 1.
//
// Sources: Patarasuk & Yuan, JPDC 69 (2009); Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005);
// Sanders, Speck, Traff, Parallel Computing 35 (2009).
#ifndef STEPCAST_MODEL_COLLECTIVE_ALLREDUCE_H_
#define STEPCAST_MODEL_COLLECTIVE_ALLREDUCE_H_

#include <algorithm>
#include <bit>

#include "model/collective/cost.h"

namespace stepcast {

template <class T>
SyncCost<T> RingAllreduce(int workers, const Hop<T>& hop) {
  if (workers <= 1) return {};
  const double w = workers;
  return {hop.alpha * (2 * (w - 1)), (2 * (w - 1) / w) / hop.bandwidth};
}

template <class T>
SyncCost<T> HalvingDoublingAllreduce(int workers, const Hop<T>& hop) {
  if (workers <= 1) return {};
  const auto whole = static_cast<double>(std::bit_floor(static_cast<unsigned>(workers)));
  const int rounds = std::bit_width(static_cast<unsigned>(workers - 1));
  const double passes = 2 * (whole - 1) / whole + (workers > whole ? 2.0 : 0.0);
  return {hop.alpha * (2.0 * rounds), passes / hop.bandwidth};
}

template <class T>
SyncCost<T> TreeAllreduce(int workers, const Hop<T>& hop) {
  if (workers <= 1) return {};
  const int rounds = std::bit_width(static_cast<unsigned>(workers - 1));
  return {hop.alpha * (2.0 * rounds), std::min(2.0, workers / 2.0) / hop.bandwidth};
}

template <class T>
SyncCost<T> HierarchicalAllreduce(int nodes, int devices, const Hop<T>& inter,
                                  const Hop<T>& intra) {
  const SyncCost<T> within = RingAllreduce(devices, intra);
  const SyncCost<T> between = RingAllreduce(nodes, inter);
  return {within.per_call + between.per_call, within.per_byte + between.per_byte};
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_COLLECTIVE_ALLREDUCE_H_
