#include "data/record/fused_attention.h"

#include <algorithm>
#include <variant>

namespace stepcast {
namespace {

const BatchedProductOp* ProductOf(const Layer& layer) {
  const bool is_one = layer.kind == LayerKind::kAttention && layer.tensors.empty();
  return is_one ? std::get_if<BatchedProductOp>(&layer.operation) : nullptr;
}

bool IsSoftmax(const Layer& layer, const BatchedProductOp& scores) {
  const auto* activation = std::get_if<ActivationOp>(&layer.operation);
  return activation != nullptr && activation->function == Function::kSoftmax &&
         activation->rows == scores.count * scores.rows && activation->columns == scores.columns;
}

// A scale, a mask, a drop-out or a bound of the scores, as operations of their own or as passes
// over them.
bool IsOfScores(const Layer& layer, const BatchedProductOp& scores) {
  if (!layer.tensors.empty()) return false;
  const std::int64_t elements = scores.count * scores.rows * scores.columns;
  if (const auto* copy = std::get_if<CopyOp>(&layer.operation)) return copy->elements == elements;
  if (const auto* curve = std::get_if<ActivationOp>(&layer.operation)) {
    return curve->function == Function::kTanh && curve->rows * curve->columns == elements;
  }
  const auto* op = std::get_if<ElementwiseOp>(&layer.operation);
  return op != nullptr && op->channels * op->positions == elements;
}

// The attention that begins with the layer at `first`.
std::optional<LayerAsRun> FusedFrom(const std::vector<Layer>& layers, std::size_t first) {
  const BatchedProductOp* scores = ProductOf(layers[first]);
  if (scores == nullptr) return std::nullopt;
  std::size_t at = first + 1;
  const auto skip = [&] {
    while (at < layers.size() && IsOfScores(layers[at], *scores)) ++at;
    return at < layers.size();
  };
  if (!skip() || !IsSoftmax(layers[at++], *scores)) return std::nullopt;
  if (!skip()) return std::nullopt;
  const BatchedProductOp* sums = ProductOf(layers[at]);
  if (sums == nullptr ||
      *sums != BatchedProductOp{scores->count, scores->rows, scores->depth, scores->columns}) {
    return std::nullopt;
  }
  bool causal = false;
  for (std::size_t i = first; i <= at; ++i) causal = causal || layers[i].causal;
  return LayerAsRun{
      at, FusedAttention{scores->count, scores->rows, scores->columns, scores->depth, causal}};
}

std::vector<LayerAsRun> RunOf(const std::vector<Layer>& layers, bool fuses) {
  std::vector<LayerAsRun> run;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::optional<LayerAsRun> fused;
    if (fuses) fused = FusedFrom(layers, i);
    run.push_back(fused.value_or(LayerAsRun{i, std::nullopt}));
    i = run.back().index;
  }
  return run;
}

}  // namespace

OperationCounts CountAttention(const FusedAttention& attention, TrainingPass pass) {
  constexpr double kBackwardFlop = 2.5;
  constexpr double kBackwardElements = 3;
  const auto heads = static_cast<double>(attention.heads);
  const auto queries = static_cast<double>(attention.queries);
  const auto keys = static_cast<double>(attention.keys);
  const auto depth = static_cast<double>(attention.depth);
  const double flop = (attention.causal ? 2 : 4) * heads * queries * keys * depth;
  const double elements = 2 * heads * depth * (queries + keys);
  if (pass == TrainingPass::kForward) return {flop, elements, 0};
  return {kBackwardFlop * flop, kBackwardElements * elements, 0};
}

std::vector<LayerAsRun> LayersAsRun(const Workload& workload) {
  return RunOf(workload.layers, workload.attention == AttentionForm::kFused);
}

std::vector<AttentionCore> AttentionCores(const Workload& workload) {
  std::vector<AttentionCore> cores;
  std::size_t first = 0;
  for (const LayerAsRun& run : RunOf(workload.layers, true)) {
    if (run.fused) cores.push_back({first, run.index});
    first = run.index + 1;
  }
  return cores;
}

AttentionLayers CountAttentionLayers(const Workload& workload) {
  const auto is_one = [](const Layer& layer) { return layer.kind == LayerKind::kAttention; };
  const auto layer = [&](std::size_t i) {
    return workload.layers.begin() + static_cast<std::ptrdiff_t>(i);
  };
  const auto all = std::count_if(workload.layers.begin(), workload.layers.end(), is_one);
  AttentionLayers count{static_cast<int>(all), 0};
  for (const AttentionCore& core : AttentionCores(workload)) {
    const auto fusable = std::count_if(layer(core.first), layer(core.last + 1), is_one);
    count.fusable += static_cast<int>(fusable);
  }
  return count;
}

}  // namespace stepcast
