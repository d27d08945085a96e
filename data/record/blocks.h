// Blocks of layers, which a network repeats, and what of them is computed twice where activations
// are recomputed.
//
// A block is all layers whose names are the same up to a number that counts blocks, and have more
// behind it: "h.0.ln_1" and "h.0.mlp.c_fc" are of block "h.0", "wte", "conv.3" and "fc2" of none.
// Networks are written by hand and come from torch.fx, ONNX, Keras, JAX and TensorFlow, so that a
// name is parted at ".", "/", "_" and "-". A number counts blocks where it
//
// - is a component by itself, between "." or "/", whatever it is of: "features.3.conv",
//   "0.attention", as a list of modules names its members;
// - or is in or behind a word for what is repeated, "layer" and "block" in one or many, alone or at
//   a word's end ("denselayer", "encoderblock"), "blk", "unit", "h", and the modules "fire",
//   "inception" and "mixed": "layer12/ffn", "block_7.conv", "h_5_attn", "inception_4a/pool"; "l"
//   too, at a component's end: "l0.attn", as "l2_norm" is none.
//
// Any other word only numbers what there is more than one of: "conv1.bn", "conv_dw_5_bn" and
// "conv2d_3/relu" are of no block. Of several such numbers in a name
//
// - those that follow each other are one: "layer1.0.conv1" is of "layer1.0", which is ResNet's
//   block, and not of its stage "layer1"; behind "block_" they are not, as in Keras's
//   "conv2_block1_1_conv" of "conv2_block1";
// - the first is taken, as modules are within blocks ("block.0.layer.1.wi" is of "block.0",
//   "layers.3.experts.5.w1" of "layers.3"), unless its word is one for something coarser than that
//   of a later one: none, stages, layers, blocks, units, in this order. "stages.0.blocks.1.mlp",
//   "layers.0.blocks.1.attn" and "block1/unit_2/conv1" have their blocks in the second place. A
//   "denseblock" is a stage;
// - a part that is repeated with more is a scope: "/layer1/layer1.0/conv1" is of
//   "/layer1/layer1.0", as ONNX exports name it.
//
// Whether a network has another like it does not matter: a network may have one block.
//
// Where a workload's activations are recomputed, each block keeps its input alone
// (Recompute::kFull), or the core of attention (data/record/fused_attention.h) its queries, keys,
// values and result (Recompute::kSelective), in a block or not. In the backward pass its forward
// pass runs once more before its own backward pass does:
//
//   t_b' = t_b + t_f      of each layer of a block, or of a core                [s]
//
//   t_f, t_b   its forward and backward pass, in all that they are: kernels, launches, the host
//
// What is recomputed is kept until the backward pass of its block or core ends, of one at a time
// (model/memory/memory.h has the bytes). Nothing else is recomputed, and nothing more exchanged.
//
// The forward pass of a transformer's block takes 24 s h^2 + 4 s^2 h FLOP, of s tokens and h
// features. The second term is the core of attention, so that selective recomputation repeats
// s / (6 h + s) of it: 2.7 % of GPT-3's and 1.6 % of MT-NLG's, the overheads that Korthikanti et
// al. state, and a third of that of a step. What it saves, scores, grows with s^2. Fused attention
// keeps none: its kernel runs once more and saves nothing.
//
// Holds for frameworks that wrap each block (PyTorch's checkpoint, Megatron's full recomputation of
// one layer at a time); wrapping several together keeps fewer inputs, and more of what is
// recomputed. Note that compute takes about a third longer where backward passes take twice as long
// as forward ones, as those of products do, and that a network without blocks, or without
// attention, stays as it is.
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

// "h.0" of "h.0.ln_1"; empty of a layer of no block. In time in proportion to the name.
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
