// Attention in one kernel, which keeps no table of scores, and the layers of a workload as they run
// with it.
//
//   forward    F = 4 h q k d [FLOP], half where a mask hides what comes later
//              2 h d (q + k) elements read and written: queries, keys, values and the result
//   backward   2.5 F: scores once more and four gradients, five products where there were two
//              three times the elements: the four and their gradients; the result and its gradient
//              once more; the queries' gradient, which is added up in 32 bits
//
//   h, q, k, d   heads, queries, keys, features of a head
//
// Keys and values are taken to be one for each head. Softmax is not counted. What is kept until the
// backward pass instead of scores is a number for each head and query, which is not counted either.
//
// Source: Dao, FlashAttention-2 (arXiv 2307.08691), which counts FLOP in this way.
#ifndef STEPCAST_DATA_RECORD_FUSED_ATTENTION_H_
#define STEPCAST_DATA_RECORD_FUSED_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "data/record/operation_counts.h"
#include "data/record/workload.h"

namespace stepcast {

struct FusedAttention {
  std::int64_t heads = 1;
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  std::int64_t depth = 1;
  bool causal = false;
  bool operator==(const FusedAttention&) const = default;
};

OperationCounts CountAttention(const FusedAttention& attention, TrainingPass pass);

struct LayerAsRun {
  std::size_t index = 0;  // in the workload; of fused attention that of its last layer
  std::optional<FusedAttention> fused;
};

// In forward order. Where the workload's attention is fused, that is a product of activations, a
// softmax, and the product that takes its result back to the first one's lengths, with a scale, a
// mask, a drop-out or a bound by a hyperbolic tangent between them or not. Any other layer runs by
// itself.
std::vector<LayerAsRun> LayersAsRun(const Workload& workload);

// Layers from the scores of attention to their product with the values, drop-out between them: what
// one kernel does, or would do if attention were fused.
struct AttentionCore {
  std::size_t first = 0;  // in the workload
  std::size_t last = 0;
};
std::vector<AttentionCore> AttentionCores(const Workload& workload);

// Layers of kind attention, and those of them that one kernel does, or would do if attention were
// fused.
struct AttentionLayers {
  int all = 0;
  int fusable = 0;
};
AttentionLayers CountAttentionLayers(const Workload& workload);

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_FUSED_ATTENTION_H_
