// The network that is trained, layer by layer, in the order of its forward pass.
#ifndef STEPCAST_DATA_RECORD_WORKLOAD_H_
#define STEPCAST_DATA_RECORD_WORKLOAD_H_

#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/record/operation.h"
#include "data/units/quantity.h"

namespace stepcast {

enum class LayerKind {
  kConvolution,
  kDepthwiseConvolution,
  kDense,
  kRecurrent,
  kEmbedding,
  kAttention,
  kNormalization,
  kActivation,
  kPooling,
  kElementwise,
  kReshape,
};

// The name used in files, e.g. "convolution"; the array is in the order of the enumerators.
inline constexpr const char* kLayerKindNames[] = {
    "convolution", "depthwise_convolution", "dense",      "recurrent", "embedding",
    "attention",   "normalization",         "activation", "pooling",   "elementwise",
    "reshape"};

struct Layer {
  std::string name;
  LayerKind kind = LayerKind::kElementwise;
  // Parameter count of each trainable tensor (weight, bias, ...), in the order in which a framework
  // registers them. A tensor is the unit of gradient exchange: it is never split between buckets.
  std::vector<std::int64_t> tensors;
  // Parameters that are stored but not trained, such as the moving mean and variance of a batch
  // normalisation. They count in the published totals and have no gradient.
  std::int64_t statistics = 0;
  // Forward work for one sample; a multiply-add counts as 2 FLOP.
  Work<> forward_flop;
  // Output of the layer for one sample in 32-bit floats: what the backward pass may have to keep.
  DataSize<> activation_bytes;
  // The layer's computation in full; none where a file does not say.
  Operation operation;
  // Of attention, on any of its products: a mask hides from each position what comes later. A
  // kernel that fuses attention leaves that half out, all others compute it.
  bool causal = false;
  // Measured time of the backward pass on the device at hand; zero: not measured. Gradients are
  // ready in proportion to these times or, where no layer has one, to the forward work.
  Duration<> backward_time;

  std::int64_t parameters() const {
    return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0});
  }

  bool operator==(const Layer&) const = default;
};

struct Workload {
  std::string name;             // lower case, as torchvision and Keras spell it: "resnet50"
  std::string title;            // "ResNet-50 (v1), 224 x 224 x 3"
  std::string source;           // where the structure and the published parameter count come from
  std::int64_t parameters = 0;  // all stored parameters, as published
  std::int64_t trainable_parameters = 0;  // those with a gradient
  // Bytes that one worker contributes to a synchronisation: 4 a trainable parameter unless the
  // source says otherwise.
  DataSize<> gradient_bytes;
  // Forward order; gradients become ready in the reverse order. Empty where only the totals are
  // known: then compute time must be fitted and buckets are taken as equal.
  std::vector<Layer> layers;
  // A bare message, as collective benchmarks send it: there is no compute time to speak of.
  bool communication_only = false;
  // Whether samples differ in size, as utterances and images of several resolutions do, so that
  // workers wait for who drew the longest. Unknown unless somebody says.
  std::optional<bool> inputs_vary;
  // How it is trained. In 16 bits it is mixed precision, as frameworks cast by themselves: products
  // and activations have 16 bits, parameters, gradients and the optimizer's state 32.
  Precision precision = Precision::kFp32;
  Optimizer optimizer = Optimizer::kMomentum;
  // Layers are those of plain attention in either case (data/record/fused_attention.h).
  AttentionForm attention = AttentionForm::kPlain;
  Recompute recompute = Recompute::kNone;
  // Keys of these facts that nobody states of it, and that are as in the runs of other workloads
  // (data/values/workload_scope.h).
  std::set<std::string> as_others;

  Work<> forward_flop() const {
    Work<> sum;
    for (const Layer& layer : layers) sum += layer.forward_flop;
    return sum;
  }
  // Sums over the layers: zero where these are unknown.
  std::int64_t tensor_count() const {
    std::int64_t count = 0;
    for (const Layer& layer : layers) count += static_cast<std::int64_t>(layer.tensors.size());
    return count;
  }
  DataSize<> activation_bytes() const {
    DataSize<> sum;
    for (const Layer& layer : layers) sum += layer.activation_bytes;
    return sum;
  }

  bool operator==(const Workload&) const = default;
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_WORKLOAD_H_
