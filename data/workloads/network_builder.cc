#include "data/workloads/network_builder.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "data/record/operation_counts.h"

namespace stepcast {
namespace {

// A network written down wrongly is our mistake, never a user's.
void Require(bool condition, const std::string& layer, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "stepcast: layer %s: %s\n", layer.c_str(), what);
  std::abort();
}

std::int64_t OutputLength(std::int64_t input, std::int64_t window, std::int64_t stride, bool same,
                          std::int64_t zeros, bool ceil) {
  if (same) return (input + stride - 1) / stride;
  const std::int64_t room = input + 2 * zeros - window;
  if (!ceil) return room / stride + 1;
  const std::int64_t output = (room + stride - 1) / stride + 1;
  // PyTorch drops a window that would start in the padding behind the input.
  return (output - 1) * stride >= input + zeros ? output - 1 : output;
}

// The zeros that a window needs before and behind an image's rows or columns to come to `output`
// positions: what is odd goes behind, as TensorFlow has it; explicit zeros are the same on both
// sides, and an incomplete last window adds what it lacks.
std::pair<std::int64_t, std::int64_t> ZerosAround(std::int64_t input, std::int64_t window,
                                                  std::int64_t stride, std::int64_t output,
                                                  bool same, std::int64_t zeros) {
  const std::int64_t needed = (output - 1) * stride + window - input;
  if (!same) return {zeros, std::max(zeros, needed - zeros)};
  const std::int64_t total = std::max<std::int64_t>(0, needed);
  return {total / 2, total - total / 2};
}

Zeros2 ZerosOf(const Shape& input, const Extent& window, const Extent& stride,
               const Padding& padding, const Shape& output) {
  const auto [top, bottom] = ZerosAround(input.height, window.height, stride.height, output.height,
                                         padding.same, padding.zeros.height);
  const auto [left, right] = ZerosAround(input.width, window.width, stride.width, output.width,
                                         padding.same, padding.zeros.width);
  return {top, left, bottom, right};
}

Lengths2 LengthsOf(const Extent& extent) { return {extent.height, extent.width}; }
Lengths2 LengthsOf(const Shape& shape) { return {shape.height, shape.width}; }

// The positions after sliding a window over the input.
Shape Slide(const Shape& input, const Extent& window, const Extent& stride, const Padding& padding,
            bool ceil) {
  return {OutputLength(input.height, window.height, stride.height, padding.same,
                       padding.zeros.height, ceil),
          OutputLength(input.width, window.width, stride.width, padding.same, padding.zeros.width,
                       ceil),
          input.channels};
}

std::int64_t Area(const Extent& window) { return window.height * window.width; }

}  // namespace

std::string ImageText(std::int64_t pixels) {
  const std::string side = std::to_string(pixels);
  return side + " x " + side + " x 3";
}

NetworkBuilder::NetworkBuilder(std::string name, std::string title, std::string source,
                               const Shape& input)
    : shape_(input) {
  workload_.name = std::move(name);
  workload_.title = std::move(title);
  workload_.source = std::move(source);
}

bool NetworkBuilder::HasTrainedLayers() const {
  return std::any_of(workload_.layers.begin(), workload_.layers.end(),
                     [](const Layer& layer) { return !layer.tensors.empty(); });
}

void NetworkBuilder::Append(const std::string& name, LayerKind kind, Operation operation,
                            std::vector<std::int64_t> tensors, std::int64_t flop,
                            std::int64_t statistics) {
  Layer layer;
  layer.name = name;
  layer.kind = kind;
  layer.operation = operation;
  layer.tensors = std::move(tensors);
  layer.statistics = statistics;
  layer.forward_flop = Flop(static_cast<double>(flop));
  layer.activation_bytes = Bytes(4.0 * static_cast<double>(shape_.elements()));
  workload_.layers.push_back(std::move(layer));
}

void NetworkBuilder::Conv2d(const std::string& name, const ConvolutionOptions& options) {
  const Shape input = shape_;
  const std::int64_t inputs = shape_.channels;
  Require(inputs % options.groups == 0 && options.filters % options.groups == 0, name,
          "channels do not divide into the groups");
  shape_ = Slide(shape_, options.kernel, options.stride, options.padding, /*ceil=*/false);
  shape_.channels = options.filters;
  Require(shape_.elements() > 0, name, "the kernel is larger than the input");
  const std::int64_t weights_per_filter = Area(options.kernel) * inputs / options.groups;
  std::vector<std::int64_t> tensors = {weights_per_filter * options.filters};
  std::int64_t flop = 2 * weights_per_filter * shape_.elements();
  if (options.bias) {
    tensors.push_back(options.filters);
    flop += shape_.elements();
  }
  Append(name, LayerKind::kConvolution,
         ConvolutionOp{
             .channels = inputs,
             .input = LengthsOf(input),
             .filters = options.filters,
             .kernel = LengthsOf(options.kernel),
             .stride = LengthsOf(options.stride),
             .dilation = {},
             .padding = ZerosOf(input, options.kernel, options.stride, options.padding, shape_),
             .groups = options.groups,
             .bias = options.bias,
             .input_gradient = HasTrainedLayers()},
         std::move(tensors), flop);
}

void NetworkBuilder::DepthwiseConv2d(const std::string& name, const DepthwiseOptions& options) {
  const Shape input = shape_;
  shape_ = Slide(shape_, options.kernel, options.stride, options.padding, /*ceil=*/false);
  Require(shape_.elements() > 0, name, "the kernel is larger than the input");
  const std::int64_t area = Area(options.kernel);
  std::vector<std::int64_t> tensors = {area * shape_.channels};
  std::int64_t flop = 2 * area * shape_.elements();
  if (options.bias) {
    tensors.push_back(shape_.channels);
    flop += shape_.elements();
  }
  Append(name, LayerKind::kDepthwiseConvolution,
         ConvolutionOp{
             .channels = input.channels,
             .input = LengthsOf(input),
             .filters = input.channels,
             .kernel = LengthsOf(options.kernel),
             .stride = LengthsOf(options.stride),
             .dilation = {},
             .padding = ZerosOf(input, options.kernel, options.stride, options.padding, shape_),
             .groups = input.channels,
             .bias = options.bias,
             .input_gradient = HasTrainedLayers()},
         std::move(tensors), flop);
}

void NetworkBuilder::TransposedConv2d(const std::string& name,
                                      const TransposedConvolutionOptions& options) {
  const Shape input = shape_;
  const std::int64_t units = options.factor * options.factor * options.filters;
  shape_ = {input.height * options.factor, input.width * options.factor, options.filters};
  Append(name, LayerKind::kDense,
         DenseOp{.positions = input.positions(),
                 .inputs = input.channels,
                 .units = units,
                 .bias = true,
                 .input_gradient = HasTrainedLayers()},
         {input.channels * units, options.filters}, (2 * input.channels + 1) * shape_.elements());
}

void NetworkBuilder::Dense(const std::string& name, const DenseOptions& options) {
  const std::int64_t inputs = shape_.channels;
  shape_.channels = options.units;
  std::vector<std::int64_t> tensors;
  if (!options.tied) tensors.push_back(inputs * options.units);
  std::int64_t flop = 2 * inputs * shape_.elements();
  if (options.bias) {
    tensors.push_back(options.units);
    flop += shape_.elements();
  }
  Append(name, LayerKind::kDense,
         DenseOp{.positions = shape_.positions(),
                 .inputs = inputs,
                 .units = options.units,
                 .bias = options.bias,
                 .input_gradient = HasTrainedLayers()},
         std::move(tensors), flop);
}

void NetworkBuilder::BatchNorm(const std::string& name, const BatchNormOptions& options) {
  const std::int64_t channels = shape_.channels;
  std::vector<std::int64_t> tensors(options.scale ? 2 : 1, channels);
  Append(name, LayerKind::kNormalization,
         NormalizationOp{NormalizationKind::kBatch, channels, LengthsOf(shape_)},
         std::move(tensors), 5 * shape_.elements(), 2 * channels);
}

void NetworkBuilder::LayerNorm(const std::string& name) {
  Append(name, LayerKind::kNormalization,
         NormalizationOp{NormalizationKind::kLayer, shape_.channels, LengthsOf(shape_)},
         {shape_.channels, shape_.channels}, 7 * shape_.elements());
}

void NetworkBuilder::RmsNorm(const std::string& name) {
  Append(name, LayerKind::kNormalization,
         NormalizationOp{NormalizationKind::kLayer, shape_.channels, LengthsOf(shape_)},
         {shape_.channels}, 7 * shape_.elements());
}

void NetworkBuilder::InputNormalization(const std::string& name) {
  Append(name, LayerKind::kNormalization,
         ElementwiseOp{ElementwiseKind::kMultiply, shape_.channels, shape_.positions(),
                       /*broadcast=*/true},
         {}, 2 * shape_.elements(), 2 * shape_.channels + 1);
}

void NetworkBuilder::Activation(const std::string& name, Function function) {
  // Rows matter to softmax alone.
  const std::int64_t columns = function == Function::kSoftmax ? shape_.channels : shape_.elements();
  Append(name, LayerKind::kActivation, ActivationOp{function, shape_.elements() / columns, columns},
         {}, FlopPerElement(function) * shape_.elements());
}

void NetworkBuilder::Pool(const std::string& name, PoolingKind kind,
                          const PoolingOptions& options) {
  const Shape input = shape_;
  shape_ = Slide(shape_, options.window, options.stride, options.padding, options.ceil);
  Require(shape_.elements() > 0, name, "the window is larger than the input");
  Append(name, LayerKind::kPooling,
         PoolingOp{kind, input.channels, LengthsOf(input), LengthsOf(options.window),
                   LengthsOf(options.stride),
                   ZerosOf(input, options.window, options.stride, options.padding, shape_)},
         {}, Area(options.window) * shape_.elements());
}

void NetworkBuilder::MaxPool(const std::string& name, const PoolingOptions& options) {
  Pool(name, PoolingKind::kMax, options);
}

void NetworkBuilder::AveragePool(const std::string& name, const PoolingOptions& options) {
  Pool(name, PoolingKind::kAverage, options);
}

void NetworkBuilder::GlobalAveragePool(const std::string& name) {
  Pool(name, PoolingKind::kAverage, {.window = {shape_.height, shape_.width}, .stride = 1});
}

void NetworkBuilder::Embedding(const std::string& name, const EmbeddingOptions& options) {
  shape_ = {options.tokens, 1, options.features};
  std::vector<std::int64_t> tensors;
  if (!options.tied) tensors.push_back(options.rows * options.features);
  Append(name, LayerKind::kEmbedding, EmbeddingOp{options.rows, options.features, options.tokens},
         std::move(tensors), 0);
}

void NetworkBuilder::Rotate(const std::string& name, std::int64_t divisor) {
  const Shape whole = shape_;
  Require(whole.channels % divisor == 0, name, "the features do not divide");
  shape_.channels /= divisor;
  const Shape part = shape_;
  Multiply(name + ".cos", part);
  Rearrange(name + ".turn", part);
  Multiply(name + ".sin", part);
  Add(name + ".add", part);
  if (divisor > 1) Concat(name + ".join", whole.channels);
}

void NetworkBuilder::Attention(const std::string& name, const AttentionOptions& options) {
  const Shape sequence = shape_;
  const Shape memory = options.memory.value_or(sequence);
  const std::int64_t tokens = sequence.positions();
  const std::int64_t memory_tokens = memory.positions();
  const std::int64_t features = sequence.channels;
  const std::int64_t key_value_heads =
      options.key_value_heads > 0 ? options.key_value_heads : options.heads;
  Require(options.head_features > 0 || features % options.heads == 0, name,
          "features do not divide into the heads");
  Require(options.heads % key_value_heads == 0, name, "heads do not divide into the groups");
  const std::int64_t depth =
      options.head_features > 0 ? options.head_features : features / options.heads;
  const Shape queries = {tokens, 1, options.heads * depth};
  const Shape keys = {memory_tokens, 1, key_value_heads * depth};
  const auto prepare = [&](const std::string& part, std::int64_t heads) {
    const Shape whole = shape_;
    if (options.head_norms) {
      shape_ = {whole.height, heads, depth};
      RmsNorm(part + ".norm");
      shape_ = whole;
    }
    if (options.rotary) Rotate(part + ".rotary", options.rotary_divisor);
  };
  if (options.fused_projections) {
    Require(memory == sequence, name, "the projections cannot be fused");
    Dense(name + ".query_key_value",
          {.units = queries.channels + 2 * keys.channels, .bias = options.bias});
    shape_ = queries;
    prepare(name + ".query", options.heads);
    shape_ = keys;
    prepare(name + ".key", key_value_heads);
  } else {
    Dense(name + ".query", {.units = queries.channels, .bias = options.bias});
    prepare(name + ".query", options.heads);
    shape_ = memory;
    Dense(name + ".key", {.units = keys.channels, .bias = options.bias && options.key_bias});
    prepare(name + ".key", key_value_heads);
    shape_ = memory;
    Dense(name + ".value", {.units = keys.channels, .bias = options.bias});
  }
  if (options.in_passes) {
    Rearrange(name + ".query.heads", queries);
    Rearrange(name + ".key.heads", keys);
    Rearrange(name + ".value.heads", keys);
  }
  // Every head multiplies tokens x (features / heads) matrices.
  shape_ = {options.heads * tokens, 1, memory_tokens};
  const std::int64_t product_flop = 2 * tokens * memory_tokens * queries.channels;
  Append(name + ".scores", LayerKind::kAttention,
         BatchedProductOp{
             .count = options.heads, .rows = tokens, .columns = memory_tokens, .depth = depth},
         {}, product_flop + shape_.elements());
  workload_.layers.back().causal = options.causal;
  if (options.capped_scores) CapAt(name + ".cap");
  if (options.in_passes) {
    Rearrange(name + ".scale", shape_);
    Rearrange(name + ".mask", shape_);
  }
  Activation(name + ".softmax", Function::kSoftmax);
  if (options.in_passes) Dropout(name + ".dropout");
  shape_ = queries;
  Append(name + ".context", LayerKind::kAttention,
         BatchedProductOp{
             .count = options.heads, .rows = tokens, .columns = depth, .depth = memory_tokens},
         {}, product_flop);
  if (options.in_passes) Rearrange(name + ".context.heads", queries);
  Dense(name + ".output", {.units = features, .bias = options.bias && options.output_bias});
}

void NetworkBuilder::Mixture(const std::string& name, const MixtureOptions& options) {
  const Shape sequence = shape_;
  const std::int64_t tokens = sequence.positions();
  Require(tokens >= options.experts, name, "an expert has no token");
  Dense(name + ".router", {.units = options.experts, .bias = false});
  Activation(name + ".router.softmax", Function::kSoftmax);
  Rearrange(name + ".dispatch", sequence);
  for (std::int64_t i = 0; i < options.experts; ++i) {
    const std::string expert = name + ".expert_" + std::to_string(i);
    const std::int64_t share = (tokens + options.experts - 1 - i) / options.experts;
    shape_ = {share, 1, sequence.channels};
    Dense(expert + ".wi", {.units = options.hidden, .bias = false});
    Activation(expert + ".activation", options.function);
    Dense(expert + ".wo", {.units = sequence.channels, .bias = false});
  }
  Rearrange(name + ".combine", sequence);
  Multiply(name + ".probability", sequence);
}

void NetworkBuilder::Recurrent(const std::string& name, const RecurrentOptions& options) {
  const std::int64_t inputs = shape_.channels;
  const std::int64_t hidden = options.hidden;
  const bool lstm = options.cell == RecurrentCell::kLstm;
  const std::int64_t gates = lstm ? 4 : 3;
  const std::int64_t directions = options.bidirectional ? 2 : 1;
  std::vector<std::int64_t> tensors;
  for (std::int64_t direction = 0; direction < directions; ++direction) {
    tensors.insert(tensors.end(), {gates * hidden * inputs, gates * hidden * hidden, gates * hidden,
                                   gates * hidden});
  }
  // Element-wise for each unit, step and direction. Two biases and one sum a gate; then
  // LSTM: 3 sigmoid (12), 2 tanh (2), c = f c + i g (3), h = o tanh(c) (1);
  // GRU: 2 sigmoid (8), tanh (1), r (W h + b) (1), h = n + z (h - n) (3).
  const std::int64_t element_flop = 3 * gates + (lstm ? 18 : 13);
  const std::int64_t flop =
      shape_.positions() * directions * hidden * (2 * gates * (inputs + hidden) + element_flop);
  shape_.channels = directions * hidden;
  Append(name, LayerKind::kRecurrent,
         RecurrentOp{options.cell, shape_.positions(), inputs, hidden, directions},
         std::move(tensors), flop);
}

void NetworkBuilder::CapAt(const std::string& name) {
  Rearrange(name + ".divide", shape_);
  Activation(name + ".tanh", Function::kTanh);
  Rearrange(name + ".multiply", shape_);
}

void NetworkBuilder::Dropout(const std::string& name) { Rearrange(name, shape_); }

void NetworkBuilder::Add(const std::string& name, const Shape& other) {
  Require(shape_ == other, name, "the summands differ in shape");
  Append(name, LayerKind::kElementwise,
         ElementwiseOp{ElementwiseKind::kAdd, shape_.channels, shape_.positions()}, {},
         shape_.elements());
}

void NetworkBuilder::Multiply(const std::string& name, const Shape& other) {
  Require(shape_ == other || (shape_.positions() == 1 && shape_.channels == other.channels), name,
          "the factors do not fit");
  const bool broadcast = !(shape_ == other);
  shape_ = other;
  Append(name, LayerKind::kElementwise,
         ElementwiseOp{ElementwiseKind::kMultiply, other.channels, other.positions(), broadcast},
         {}, shape_.elements());
}

void NetworkBuilder::AddStored(const std::string& name) {
  Append(name, LayerKind::kElementwise,
         ElementwiseOp{ElementwiseKind::kAdd, shape_.channels, shape_.positions()}, {},
         shape_.elements(), shape_.elements());
}

void NetworkBuilder::Concat(const std::string& name, std::int64_t channels) {
  Require(channels >= shape_.channels, name, "the parts are more than the whole");
  shape_.channels = channels;
  Append(name, LayerKind::kReshape, CopyOp{shape_.elements()}, {}, 0);
}

void NetworkBuilder::Upsample(const std::string& name, std::int64_t factor) {
  Rearrange(name, {shape_.height * factor, shape_.width * factor, shape_.channels});
}

void NetworkBuilder::Rearrange(const std::string& name, const Shape& shape) {
  shape_ = shape;
  Append(name, LayerKind::kReshape, CopyOp{shape_.elements()}, {}, 0);
}

void NetworkBuilder::Branches(const std::string& name,
                              std::initializer_list<std::function<void()>> branches) {
  const Shape input = shape_;
  Shape output;
  output.channels = 0;
  for (const std::function<void()>& branch : branches) {
    shape_ = input;
    branch();
    Require(
        output.channels == 0 || (shape_.height == output.height && shape_.width == output.width),
        name, "the branches differ in height or width");
    output = {shape_.height, shape_.width, output.channels + shape_.channels};
  }
  Concat(name, output.channels);
}

Workload NetworkBuilder::Finish(Statistics statistics) {
  std::int64_t stored_only = 0;
  for (const Layer& layer : workload_.layers) {
    for (const std::int64_t tensor : layer.tensors) workload_.trainable_parameters += tensor;
    stored_only += layer.statistics;
  }
  workload_.parameters = workload_.trainable_parameters;
  if (statistics == Statistics::kInTotal) workload_.parameters += stored_only;
  workload_.gradient_bytes = Bytes(4.0 * static_cast<double>(workload_.trainable_parameters));
  workload_.inputs_vary = workload_.inputs_vary.value_or(false);
  return std::exchange(workload_, Workload());
}

}  // namespace stepcast
