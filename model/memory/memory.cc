#include "model/memory/memory.h"

#include <algorithm>
#include <vector>

#include "data/record/fused_attention.h"
#include "model/exchange/exchange.h"
#include "model/overlap/buckets.h"

namespace stepcast {

DataSize<> KeptActivations(const Workload& workload) {
  DataSize<> sum;
  LayerKind before = LayerKind::kReshape;
  for (const LayerAsRun& run : LayersAsRun(workload)) {
    const Layer& layer = workload.layers[run.index];
    const bool in_place = layer.kind == LayerKind::kReshape ||
                          (layer.kind == LayerKind::kActivation && before != LayerKind::kDense);
    if (!in_place) sum += layer.activation_bytes;
    before = layer.kind;
  }
  return HasSixteenBits(workload.precision) ? sum * 0.5 : sum;
}

namespace {

DataSize<> LargestBucket(const Workload& workload, const Plan& plan) {
  const std::vector<Bucket> buckets =
      MakeBuckets(workload, BucketCap(plan, workload.gradient_bytes));
  return std::max_element(buckets.begin(), buckets.end(),
                          [](const Bucket& a, const Bucket& b) { return a.bytes < b.bytes; })
      ->bytes;
}

}  // namespace

MemoryNeed CountMemory(const Workload& workload, const Activations& activations, const Plan& plan,
                       const std::optional<DataSize<>>& available) {
  MemoryNeed need;
  const MemoryShares shares = ExchangeOf(plan.strategy).Memory(plan);
  const DataSize<> gradients = workload.gradient_bytes;
  const double copy = HasSixteenBits(workload.precision) ? kBytesOfCopy : 0;
  need.parameters =
      Bytes((kBytesPerFloat + copy) * static_cast<double>(workload.parameters)) * shares.parameters;
  need.gradients = gradients * shares.gradients;
  const double states = kOptimizerStates[static_cast<int>(workload.optimizer)];
  need.optimizer = Bytes(kBytesPerFloat * static_cast<double>(workload.trainable_parameters)) *
                   (states * shares.optimizer);
  if (plan.accumulation_steps > 1) {
    const bool waits = !GathersUnits(plan.shard);
    need.accumulation = gradients * (waits ? 1.0 : shares.gradients);
  }
  need.buckets = gradients * (shares.buckets * plan.exchanged_share());
  if (plan.compress.leaves_a_rest() && plan.workers() > 1) need.buckets += gradients;
  if (shares.units > 0) {
    need.buckets = LargestBucket(workload, plan) * (shares.units * plan.exchanged_share());
  }
  need.activations = activations.PerSample() * static_cast<double>(plan.local_batch);
  need.workspace = kWorkspace + kContext;
  const DataSize<> rest = need.parameters + need.gradients + need.optimizer + need.accumulation +
                          need.buckets + need.workspace;
  need.total = rest + need.activations;
  need.available = available;
  if (available) {
    need.verdict =
        activations.VerdictOf(plan.local_batch, rest, *available, !workload.layers.empty());
  }
  return need;
}

}  // namespace stepcast
