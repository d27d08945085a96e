// Blocks of layers, which a network repeats, and what of them is computed twice where activations
// are recomputed.
//
// A block is all layers whose names are the same up to their first component that is a number and
// has others behind it; components end at "." and "/". "h.0.ln_1" and "h.0.mlp.c_fc" are of block
// "h.0", "encoder/layers/11/fc1" is of "encoder/layers/11", "wte" and "conv.3" are of none.
//
// Where a workload's activations are recomputed (Recompute::kFull), each block keeps its input
// alone. In the backward pass its forward pass runs once more before its own backward pass does:
//
//   t_b' = t_b + t_f      of each layer of a block                              [s]
//
//   t_f, t_b   its forward and backward pass, in all that they are: kernels, launches, the host
//
// What is recomputed is kept until the block's backward pass ends, of one block at a time
// (model/memory/memory.h has the bytes). No layer of no block is recomputed. Nothing more is
// exchanged.
//
// Holds for frameworks that wrap each block (PyTorch's checkpoint, Megatron's full recomputation of
// one layer at a time); wrapping several together keeps fewer inputs, and more of what is
// recomputed. Note that compute takes about a third longer where backward passes take twice as long
// as forward ones, as those of products do, and that a network without blocks stays as it is.
//
// Sources: Chen et al., Training Deep Nets with Sublinear Memory Cost (arXiv 1604.06174);
// Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models (arXiv
// 2205.05198).
#ifndef STEPCAST_DATA_RECORD_BLOCKS_H_
#define STEPCAST_DATA_RECORD_BLOCKS_H_

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "data/record/workload.h"

namespace stepcast {

// "h.0" of "h.0.ln_1"; empty of a layer of no block.
std::string_view BlockOf(std::string_view layer);

// For each layer the number of its block, in the order in which blocks begin; nothing where it is
// of none.
std::vector<std::optional<std::size_t>> BlocksOf(const Workload& workload);

bool HasBlocks(const Workload& workload);

// For each layer whether its forward pass runs once more in the backward pass.
std::vector<bool> RecomputedLayers(const Workload& workload);
// The share of the forward pass that these are, by FLOP.
double RecomputedShare(const Workload& workload);

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_BLOCKS_H_
