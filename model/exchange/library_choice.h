// The all-reduce that a library takes where a plan leaves it the choice (strategy allreduce).
//
//   the double binary tree   between two nodes of several devices that have links of their own
//   the ring                 everywhere else
//
// Between two nodes a card carries the message once each way in a tree, and 2 (w-1)/w times around
// a flat ring of w workers; the tree passes it twice within the nodes instead, which links between
// the devices (NVLink) bear and PCI Express does not. NCCL has chosen so since it has trees, and
// RCCL with it. Gloo and MPI do not; with one worker a node, as they mostly have, both algorithms
// carry the same bytes.
//
// Holds for all-reduces alone: a reduce-scatter and an all-gather, of parameters that are shared
// out or of messages that cannot be added up on their way, go round a ring between two nodes too.
// NCCL also takes trees for short messages between many nodes, whose latency a ring would add up;
// that is not modelled.
//
// Sources: NCCL 2.4.8, src/init.cc, ncclTreeThreshold (the tree for all sizes where GPUs have
// NVLink and nodes are two; else the ring for large messages); NCCL 2.21.5, src/graph/tuning.cc
// (two nodes: the rate within nodes, times 0.92 / 2 in a tree) and src/graph/search.cc (which
// lets a tree be up to twice as fast within nodes as between them); S. Jeaugey in
// NVIDIA/nccl#946 and NVIDIA/nccl-tests#196. Measured: docs/explanation/collectives.md.
#ifndef STEPCAST_MODEL_EXCHANGE_LIBRARY_CHOICE_H_
#define STEPCAST_MODEL_EXCHANGE_LIBRARY_CHOICE_H_

#include "data/record/plan.h"
#include "data/record/strategy.h"

namespace stepcast {

// Whether a library chooses how the plan's gradients are summed.
inline bool LeavesAlgorithm(const Plan& plan) {
  return plan.strategy == Strategy::kAllreduce && plan.shard == Shard::kNone &&
         !plan.compress.is_gathered();
}

// What it chooses among `nodes`, the fullest of which has so many devices; kAllreduce is the ring.
inline Strategy LibraryAllreduce(int nodes, int devices, bool has_device_links) {
  return nodes == 2 && devices > 1 && has_device_links ? Strategy::kTree : Strategy::kAllreduce;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_LIBRARY_CHOICE_H_
