#include "model/memory/memory.h"

namespace stepcast {

DataSize<> KeptActivations(const Workload& workload) {
  DataSize<> sum;
  LayerKind before = LayerKind::kReshape;
  for (const Layer& layer : workload.layers) {
    const bool in_place = layer.kind == LayerKind::kReshape ||
                          (layer.kind == LayerKind::kActivation && before != LayerKind::kDense);
    if (!in_place) sum += layer.activation_bytes;
    before = layer.kind;
  }
  return sum;
}

MemoryNeed CountMemory(const Workload& workload, DataSize<> kept_activations, const Plan& plan,
                       const std::optional<DataSize<>>& available) {
  MemoryNeed need;
  need.parameters = Bytes(kBytesPerFloat * static_cast<double>(workload.parameters));
  need.gradients = workload.gradient_bytes;
  need.optimizer = workload.gradient_bytes * kOptimizerStates;
  if (plan.accumulation_steps > 1) need.accumulation = workload.gradient_bytes;
  if (plan.workers() > 1 && TraitsOf(plan.strategy).exchanges) {
    need.buckets = workload.gradient_bytes;
  }
  need.activations = kept_activations * static_cast<double>(plan.local_batch);
  need.workspace = kWorkspace + kContext;
  need.total = need.parameters + need.gradients + need.optimizer + need.accumulation +
               need.buckets + need.activations + need.workspace;
  need.available = available;
  if (available && !workload.layers.empty()) {
    need.verdict = *available < need.total                 ? MemoryVerdict::kOutOfMemory
                   : *available * kTightShare < need.total ? MemoryVerdict::kTight
                                                           : MemoryVerdict::kFits;
  }
  return need;
}

}  // namespace stepcast
