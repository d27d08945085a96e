// What a step costs whose workers share the model out among themselves (ZeRO, FSDP).
//
// An all-reduce by rings is a reduce-scatter RS and an all-gather AG, equally long. Who keeps a
// part of the optimizer's state updates that part of the parameters, and has to send it to all
// others.
//
// With the optimizer's state shared out, or the gradients too (ZeRO-1, ZeRO-2), gradients are
// reduced to their owners behind the backward pass, bucket by bucket, and the parameters are
// gathered once they are updated, with nothing to hide behind:
//
//   exposed = max(t_b, E_RS) - t_b + sum_k AG_k
//
// With the parameters shared out (ZeRO-3, FSDP), each unit of the network is gathered before its
// forward pass and again before its backward pass, behind which its gradients are reduced; which is
// so in each micro-step. Units are counted as buckets are, from the end of the network. Gathers of
// the forward pass follow each other, and the pass ends at
//
//   F = max_k( r_k t_f + sum_{j >= k} AG_j )
//
// as of two machines in a row; unit k of the backward pass begins at b_k and is done at c_k,
//
//   b_k = max(c_{k-1}, G_k),   c_k = b_k + (r_k - r_{k-1}) t_b
//   G_{k+1} = max(L_k, b_k) + AG_{k+1},   L_{k+1} = max(G_{k+1}, c_k) + RS_k
//
// and the pass ends at max(c_K + (1 - r_K) t_b, L_{K+1}).
//
// With the parameters shared out within each node alone (hybrid: FSDP's HYBRID_SHARD), RS and AG
// are those of the g devices of a node at its own rate, and each of these devices then reduces its
// share of the unit's gradients with its like on the N nodes, by a ring of its own over the node's
// link, as in the hierarchical all-reduce (allreduce.h). The link between nodes is another one, so
// that these rings follow each other behind all else:
//
//   A_{k+1} = max(A_k, L_{k+1}) + AR_k
//
// and the pass ends at A_{K+1} if that is later.
//
//   RS_k, AG_k   reduce-scatter and all-gather of unit k: half of its all-reduce each       [s]
//   AR_k         all-reduce of unit k between the nodes, a g-th of it by each device        [s]
//   E_RS         end of the last reduce-scatter, from the start of the backward pass        [s]
//   r_k          share of the backward pass after which the gradients of unit k exist       [1]
//   t_f, t_b     forward and backward pass of a micro-step                                  [s]
//   G_k, L_k     moments at which unit k is gathered, and the link is free for the next     [s]
//   A_k          moment at which the link between nodes is free for the next                [s]
//
// Holds for links that serve first in first out, each for itself; the next unit's gather leaves
// when a unit's backward pass begins, which is what FullyShardedDataParallel prefetches by default.
// A framework that keeps the units of a micro-step for the next one gathers less.
//
// Note that the bytes of ZeRO-1 and ZeRO-2 are those of an all-reduce, and those of ZeRO-3 half as
// many again for each micro-step; that no pass is shorter than its compute, nor than its part of
// the exchange; that one worker pays nothing; and that hybrid is ZeRO-3 on one node, and on nodes
// of one device an all-reduce of each unit by a ring, in each micro-step.
//
// Sources: Rajbhandari et al., SC 2020 (what is shared out, and its bytes); Zhao et al., VLDB 2023
// (units, prefetching, hybrid sharding); PyTorch, torch/distributed/fsdp/_runtime_utils.py
// (all-reduces of hybrid sharding in a stream of their own, in each backward pass); Johnson, Naval
// Research Logistics Quarterly 1 (1954) (two machines in a row).
#ifndef STEPCAST_MODEL_EXCHANGE_SHARDED_H_
#define STEPCAST_MODEL_EXCHANGE_SHARDED_H_

#include <cstddef>
#include <vector>

#include "data/units/quantity.h"
#include "model/exchange/allreduce.h"
#include "model/overlap/buckets.h"

namespace stepcast {

// Two gathers and a reduce-scatter of a unit, in all-reduces: each is half of one.
inline constexpr double kGathersAndReduce = 1.5;

// Exchanges of each unit, of whose bytes and calls a synchronisation has as many: all-reduces, and
// where the model is shared out within nodes those between them, with all that goes before and
// after them within (HybridCall).
inline double ExchangesOf(Shard shard, int accumulation_steps) {
  if (!GathersUnits(shard)) return 1;
  return (shard == Shard::kHybrid ? 1 : kGathersAndReduce) * accumulation_steps;
}

template <class T>
PipelinedRing<T> Times(const PipelinedRing<T>& ring, double count) {
  const auto times = [&](const SyncCost<T>& cost) {
    return SyncCost<T>{cost.per_call * count, cost.per_byte * count};
  };
  return {times(ring.steady), times(ring.chain)};
}

// Either half of an all-reduce.
template <class T>
CallCost<T> Half(const CallCost<T>& call) {
  return {Times(call.between, 0.5), Times(call.within, 0.5)};
}

// Everything of a unit that is shared out within each of several nodes: two gathers and a
// reduce-scatter within them, and rings between them.
template <class T>
CallCost<T> HybridCall(const NodeShape& shape, const Hop<T>& inter, const Hop<T>& intra) {
  CallCost<T> call = PipelinedAllreduce(Strategy::kHierarchical, shape, inter, intra);
  call.within = Times(call.within, kGathersAndReduce);
  return call;
}

// The parts of an exchange of units: either half of an all-reduce among those who share the model
// out, and the all-reduce of what they have reduced between the nodes, which is nothing where all
// workers share.
template <class T>
struct UnitExchange {
  CallCost<T> half;
  PipelinedRing<T> between = {};
};

// `call` is an all-reduce, or HybridCall.
template <class T>
UnitExchange<T> UnitExchangeOf(Shard shard, const CallCost<T>& call) {
  if (shard != Shard::kHybrid) return {Half(call)};
  return {{Times(call.within, 0.5 / kGathersAndReduce)}, call.between};
}

// End of the exchange where the parameters are gathered after their update, from the start of the
// backward pass and without the update; `reduced` is E_RS.
template <class T>
Duration<T> EndOfSharedUpdate(const Duration<T>& backward, const Duration<T>& reduced,
                              const Duration<T>& gathers) {
  return Max(reduced, backward) + gathers;
}

// The passes of one micro-step, with what they wait for.
template <class T>
struct GatheredPasses {
  Duration<T> forward;
  Duration<T> backward;
};

// `late` is what the first all-reduce between nodes loses because their links were silent.
template <class T>
GatheredPasses<T> GatherUnits(const UnitExchange<T>& exchange, const std::vector<Bucket>& units,
                              const Duration<T>& forward, const Duration<T>& backward,
                              const Duration<T>& late = {}) {
  const CallCost<T>& half = exchange.half;
  GatheredPasses<T> passes{forward, {}};
  Duration<T> gathers;
  for (std::size_t k = units.size(); k-- > 0;) {
    gathers += half.Time(units[k].bytes);
    passes.forward = Max(passes.forward, forward * units[k].ready + gathers);
  }
  Duration<T> gathered = half.Time(units.front().bytes);
  Duration<T> free = gathered;  // from when on the link is
  Duration<T> between;          // and that between nodes
  Duration<T> computed;
  double before = 0;
  for (std::size_t k = 0; k < units.size(); ++k) {
    const Duration<T> begin = Max(computed, gathered);
    if (k + 1 < units.size()) {
      gathered = Max(free, begin) + half.Time(units[k + 1].bytes);
      free = gathered;
    }
    computed = begin + backward * (units[k].ready - before);
    free = Max(free, computed) + half.Time(units[k].bytes);
    between = Max(between, free) + exchange.between.Time(units[k].bytes);
    if (k == 0) between += late;
    before = units[k].ready;
  }
  passes.backward = Max(Max(computed + backward * (1 - before), free), between);
  return passes;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_SHARDED_H_
