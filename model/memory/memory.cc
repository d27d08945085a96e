#include "model/memory/memory.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <variant>
#include <vector>

#include "data/record/blocks.h"
#include "data/record/fused_attention.h"
#include "model/exchange/exchange.h"
#include "model/overlap/buckets.h"

namespace stepcast {

namespace {

// Layers as they run, one after another, and which of their outputs a gradient needs.
class Outputs {
 public:
  explicit Outputs(const Workload& workload)
      : layers_(workload.layers), run_(LayersAsRun(workload)) {}

  const std::vector<LayerAsRun>& run() const { return run_; }
  bool IsKept(std::size_t at) const {
    return !IsInPlace(at) && !IsOnlyAdded(at) && !IsTurned(at) && !IsTurned(at + 1);
  }
  bool IsInPlace(std::size_t at) const {
    if (IsOf(LayerKind::kReshape, at)) return true;
    const bool behind_dense = at > 0 && IsOf(LayerKind::kDense, at - 1);
    return IsOf(LayerKind::kActivation, at) && !behind_dense;
  }

 private:
  const Layer* At(std::size_t at) const {
    return at < run_.size() ? &layers_[run_[at].index] : nullptr;
  }
  bool IsOf(LayerKind kind, std::size_t at) const {
    const Layer* layer = At(at);
    return layer != nullptr && layer->kind == kind;
  }
  bool Is(ElementwiseKind kind, std::size_t at) const {
    const Layer* layer = At(at);
    const auto* op = layer == nullptr ? nullptr : std::get_if<ElementwiseOp>(&layer->operation);
    return op != nullptr && op->kind == kind;
  }
  std::size_t BehindCopies(std::size_t at) const {
    while (IsOf(LayerKind::kReshape, at)) ++at;
    return at;
  }

  bool IsOnlyAdded(std::size_t at) const {
    const bool needs_it_itself = IsOf(LayerKind::kActivation, at) ||
                                 IsOf(LayerKind::kRecurrent, at) || run_[at].fused.has_value();
    return !needs_it_itself && Is(ElementwiseKind::kAdd, BehindCopies(at + 1));
  }
  // Whether a rotation begins with the layer: x cos + turned(x) sin.
  bool IsTurned(std::size_t at) const {
    const std::size_t second = BehindCopies(at + 1);
    return Is(ElementwiseKind::kMultiply, at) && second > at + 1 &&
           Is(ElementwiseKind::kMultiply, second) && Is(ElementwiseKind::kAdd, second + 1);
  }

  const std::vector<Layer>& layers_;
  std::vector<LayerAsRun> run_;
};

DataSize<> LargestBucket(const Workload& workload, const Plan& plan) {
  const std::vector<Bucket> buckets =
      MakeBuckets(workload, BucketCap(plan, workload.gradient_bytes));
  return std::max_element(buckets.begin(), buckets.end(),
                          [](const Bucket& a, const Bucket& b) { return a.bytes < b.bytes; })
      ->bytes;
}

// For each layer the number of the block or core of attention that keeps no output of it; nothing
// where its output stays.
std::vector<std::optional<std::size_t>> WhatIsNotKept(const Workload& workload) {
  if (workload.recompute == Recompute::kFull) return BlocksOf(workload);
  std::vector<std::optional<std::size_t>> cores(workload.layers.size());
  if (workload.recompute == Recompute::kNone) return cores;
  std::size_t number = 0;
  for (const AttentionCore& core : AttentionCores(workload)) {
    for (std::size_t i = core.first; i < core.last; ++i) cores[i] = number;
    ++number;
  }
  return cores;
}

}  // namespace

DataSize<> KeptActivations(const Workload& workload) {
  const Outputs outputs(workload);
  // Queries, keys and values are kept by the layers that make them.
  const bool keeps_inputs = workload.recompute == Recompute::kFull;
  const std::vector<std::optional<std::size_t>> parts = WhatIsNotKept(workload);
  DataSize<> sum;
  std::vector<DataSize<>> recomputed;  // by part
  DataSize<> inputs;                   // of the parts so far
  std::vector<DataSize<>> held;        // these, when a part begins
  DataSize<> in;
  DataSize<> last;       // output of the network, where it is kept
  bool in_stays = true;  // whether a layer of no part keeps it, or nobody computes it
  for (std::size_t i = 0; i < outputs.run().size(); ++i) {
    const std::size_t at = outputs.run()[i].index;
    const DataSize<> out = workload.layers[at].activation_bytes;
    const DataSize<> kept = outputs.IsKept(i) ? out : DataSize<>();
    const std::optional<std::size_t> part = parts[at];
    if (part && *part >= recomputed.size()) {
      recomputed.resize(*part + 1);
      if (keeps_inputs && !in_stays) inputs += in;
      held.resize(*part + 1, inputs);
    }
    (part ? recomputed[*part] : sum) += kept;
    last = kept;
    in = out;
    in_stays = !part && (outputs.IsKept(i) || (outputs.IsInPlace(i) && in_stays));
  }
  DataSize<> most;
  for (std::size_t part = 0; part < recomputed.size(); ++part) {
    most = Max(most, held[part] + recomputed[part]);
  }
  sum += most;
  // The loss is computed in 32 bits.
  return HasSixteenBits(workload.precision) ? (sum + last) * 0.5 : sum;
}

ModelMemory::ModelMemory(const Workload& workload, const Plan& plan)
    : strategy_(plan.strategy),
      largest_unit_(plan.shard >= Shard::kGradients ? LargestBucket(workload, plan) : DataSize<>()),
      gradients_(workload.gradient_bytes),
      // Whose optimizer is divided exchanges the gradients where they are, as wide as they are
      // sent.
      width_(std::clamp(1.0 * plan.bytes_per_parameter, kBytesOfCopy, kBytesPerFloat) /
             kBytesPerFloat),
      copies_(plan.exchanged_share() + (plan.compress.leaves_a_rest() ? 1 : 0)) {
  const double parameters = static_cast<double>(workload.parameters);
  const double trained = static_cast<double>(workload.trainable_parameters);
  const bool has_copy = HasSixteenBits(workload.precision);
  computed_ = Bytes((has_copy ? kBytesOfCopy : kBytesPerFloat) * parameters);
  if (has_copy) updated_ = Bytes(kBytesPerFloat * parameters);
  states_ =
      Bytes(kBytesPerFloat * trained) * kOptimizerStates[static_cast<int>(workload.optimizer)];
}

MemoryNeed ModelMemory::NeedOf(const MemoryQuestion& q) const {
  const MemoryShares shares = ExchangeOf(strategy_).Memory(q);
  const bool in_place = shares.optimizer < 1;
  const DataSize<> gradients = in_place ? gradients_ * width_ : gradients_;
  MemoryNeed need;
  need.parameters = computed_ * shares.parameters + updated_ * shares.optimizer;
  need.gradients = gradients * shares.gradients;
  need.optimizer = states_ * shares.optimizer;
  const DataSize<> other_gradients = gradients * (1 - shares.gradients);
  if (shares.units > 0) {
    const DataSize<> lacking = computed_ * (1 - shares.parameters) + other_gradients;
    need.buckets = Min(largest_unit_ * (shares.units * width_), lacking);
  } else {
    // Gradients that wait for the last micro-step are whole.
    need.accumulation = other_gradients;
    need.buckets = gradients * (shares.buckets * copies_);
  }
  need.workspace = kWorkspace + kContext;
  need.total = need.parameters + need.gradients + need.optimizer + need.accumulation +
               need.buckets + need.workspace;
  return need;
}

MemoryNeed CountMemory(const Workload& workload, const Activations& activations, const Plan& plan,
                       const std::optional<DataSize<>>& available) {
  MemoryNeed need = ModelMemory(workload, plan).NeedOf(MemoryQuestion::Of(plan));
  const DataSize<> rest = need.total;
  need.activations = activations.PerSample() * static_cast<double>(plan.largest_batch());
  need.total = rest + need.activations;
  need.available = available;
  if (available) {
    const double samples = plan.largest_batch();
    need.verdict =
        activations.VerdictOf(samples, rest, need.buckets, *available, !workload.layers.empty());
    need.ran_without_copies =
        need.may_fit() && need.exceeds() && !activations.HaveRun(samples, rest, *available);
  }
  return need;
}

}  // namespace stepcast
