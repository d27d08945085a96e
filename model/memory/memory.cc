#include "model/memory/memory.h"

#include "model/exchange/exchange.h"

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
  const MemoryShares shares = ExchangeOf(plan.strategy).Memory(plan);
  const DataSize<> gradients = workload.gradient_bytes;
  need.parameters =
      Bytes(kBytesPerFloat * static_cast<double>(workload.parameters)) * shares.parameters;
  need.gradients = gradients * shares.gradients;
  need.optimizer = gradients * (kOptimizerStates * shares.optimizer);
  if (plan.accumulation_steps > 1) need.accumulation = gradients;
  need.buckets = gradients * (shares.buckets * plan.exchanged_share());
  need.activations = kept_activations * static_cast<double>(plan.local_batch);
  need.workspace = kWorkspace + kContext;
  need.total = need.parameters + need.gradients + need.optimizer + need.accumulation +
               need.buckets + need.activations + need.workspace;
  need.available = available;
  if (available && !workload.layers.empty()) need.verdict = VerdictOf(need.total, *available);
  return need;
}

}  // namespace stepcast
