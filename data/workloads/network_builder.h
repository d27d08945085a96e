// Writes a network down layer by layer, keeping track of the shape of the current tensor.
//
//   NetworkBuilder net("lenet", "LeNet, 28 x 28 x 1", "LeCun et al. 1998", {28, 28, 1});
//   net.Conv2d("conv1", {.filters = 6, .kernel = 5, .padding = Padding::Explicit(2)});
//   net.Activation("tanh1", Function::kTanh);
//   ...
//   Workload lenet = net.Finish(Statistics::kNotInTotal);
//
// What is counted, for one sample of a training step's forward pass:
// - A multiply-add is 2 FLOP; adding a bias is 1 FLOP for each output element; a comparison, a
//   division, an exponential, an error function or a hyperbolic tangent is 1 FLOP.
// - Batch normalisation is 5 FLOP an element (sum, square, sum of squares; then one multiply-add,
//   as all constants of a channel fold into two); layer normalisation 7 (they do not fold), and
//   that of the root mean square, which is one without a mean and a shift, is taken for one.
// - Copies (concatenate, upsample, transpose, pad) and table look-ups are 0 FLOP.
// - activation_bytes is the layer's output, 4 bytes an element. A view (flatten) is no layer. An
//   activation function has an output of its own: a framework that works in place keeps less. The
//   inner gates of recurrent layers are not in it.
// - Drop-out, the loss and the conversion of the input are not listed.
#ifndef STEPCAST_DATA_WORKLOADS_NETWORK_BUILDER_H_
#define STEPCAST_DATA_WORKLOADS_NETWORK_BUILDER_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "data/record/operation.h"
#include "data/record/workload.h"

namespace stepcast {

// The shape of one sample. An image is height x width x channels; a sequence of tokens with
// features is tokens x 1 x features; a vector is 1 x 1 x features.
struct Shape {
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t channels = 1;

  std::int64_t positions() const { return height * width; }
  std::int64_t elements() const { return height * width * channels; }
  bool operator==(const Shape&) const = default;
};

// "224 x 224 x 3", as titles name what colour images a network takes.
std::string ImageText(std::int64_t pixels);

// Height and width of a window or of a step; one number means a square.
struct Extent {
  constexpr Extent(std::int64_t side) : height(side), width(side) {}  // NOLINT: meant
  constexpr Extent(std::int64_t h, std::int64_t w) : height(h), width(w) {}

  std::int64_t height;
  std::int64_t width;
};

// Same: the output has ceil(input / stride) positions, as in TensorFlow. Explicit: so many zeros on
// both sides, as in PyTorch.
struct Padding {
  static constexpr Padding Same() { return {true, 0}; }
  static constexpr Padding Valid() { return {false, 0}; }
  static constexpr Padding Explicit(Extent zeros) { return {false, zeros}; }

  bool same;
  Extent zeros;
};

// Whether a publisher's total counts what is stored and not trained: Keras counts the moving
// statistics, torchvision does not.
enum class Statistics { kInTotal, kNotInTotal };

struct ConvolutionOptions {
  std::int64_t filters = 0;
  Extent kernel = 1;
  Extent stride = 1;
  Padding padding = Padding::Same();
  std::int64_t groups = 1;
  bool bias = true;
};

struct TransposedConvolutionOptions {
  std::int64_t filters = 0;
  std::int64_t factor = 2;  // side of the window and its step, so that windows touch
};

struct DepthwiseOptions {
  Extent kernel = 3;
  Extent stride = 1;
  Padding padding = Padding::Same();
  bool bias = true;
};

struct PoolingOptions {
  Extent window = 2;
  Extent stride = 2;
  Padding padding = Padding::Valid();
  bool ceil = false;  // a last, incomplete window counts (PyTorch's ceil_mode)
};

struct BatchNormOptions {
  bool scale = true;  // false: no gamma, only beta (Keras scale=False)
};

struct DenseOptions {
  std::int64_t units = 0;
  bool bias = true;
  bool tied = false;  // the weight is that of an earlier layer: work, but no tensor
};

struct EmbeddingOptions {
  std::int64_t rows = 0;
  std::int64_t features = 0;
  std::int64_t tokens = 1;  // look-ups for one sample
  bool tied = false;        // the table is that of an earlier layer
};

struct AttentionOptions {
  std::int64_t heads = 1;
  bool fused_projections = false;  // one dense layer for query, key and value
  // Heads of keys and values, each for a group of those of queries; 0: as many as these.
  std::int64_t key_value_heads = 0;
  std::int64_t head_features = 0;  // 0: the heads divide the features of a token
  bool bias = true;
  bool key_bias = true;     // false: the keys have none where the others have
  bool output_bias = true;  // false: the output projection has none where the others have
  // Each head of queries and of keys is normalised by its root mean square, with one scale for all
  // (Henry et al., arXiv 2010.04245).
  bool head_norms = false;
  // The scores pass a hyperbolic tangent between a division and a product (Gemma 2).
  bool capped_scores = false;
  // Heads are copied apart and together, and scores are scaled, masked and dropped out, each in a
  // pass of its own: code from before one kernel did all of attention, and of drop-out.
  bool in_passes = false;
  // Turns queries and keys by their positions (Su et al., arXiv 2104.09864): of each head's
  // features one in so many.
  bool rotary = false;
  std::int64_t rotary_divisor = 1;
  bool causal = false;  // a mask hides from each position what comes later
  // The sequence that keys and values are made of, in cross attention; otherwise the current one.
  std::optional<Shape> memory = std::nullopt;
};

struct MixtureOptions {
  std::int64_t experts = 1;
  std::int64_t hidden = 0;
  Function function = Function::kRelu;
};

struct RecurrentOptions {
  RecurrentCell cell = RecurrentCell::kLstm;
  std::int64_t hidden = 0;
  bool bidirectional = false;
};

class NetworkBuilder {
 public:
  NetworkBuilder(std::string name, std::string title, std::string source, const Shape& input);

  // The output of the last layer; setting it starts another branch from an earlier tensor, or takes
  // a view (a flattened tensor, the first token of a sequence).
  const Shape& shape() const { return shape_; }
  void set_shape(const Shape& shape) { shape_ = shape; }
  void Flatten() { shape_ = {1, 1, shape_.elements()}; }

  void Conv2d(const std::string& name, const ConvolutionOptions& options);
  void DepthwiseConv2d(const std::string& name, const DepthwiseOptions& options);
  // Every position becomes a window of its own, factor x factor positions: work and weight are
  // those of a dense layer with so many units for each filter, which share one bias.
  void TransposedConv2d(const std::string& name, const TransposedConvolutionOptions& options);
  // Applied at every position, so that it is a vector's or a sequence's dense layer.
  void Dense(const std::string& name, const DenseOptions& options);

  void BatchNorm(const std::string& name, const BatchNormOptions& options = {});
  void LayerNorm(const std::string& name);
  // By the root mean square (Zhang, Sennrich, arXiv 1910.07467): a scale and no shift.
  void RmsNorm(const std::string& name);
  // Normalises the input with stored mean and variance (and a sample count), none of them trained.
  void InputNormalization(const std::string& name);
  void Activation(const std::string& name, Function function);

  void MaxPool(const std::string& name, const PoolingOptions& options);
  void AveragePool(const std::string& name, const PoolingOptions& options);
  void GlobalAveragePool(const std::string& name);

  // Every row has a gradient, also those that no sample looked up: gradients are dense.
  void Embedding(const std::string& name, const EmbeddingOptions& options);
  // Self-attention or cross attention: projections, scores, softmax, weighted sum and output
  // projection; full tokens x tokens score matrices also where a causal mask hides half of them.
  // The scores are scaled by a constant, or a bias is added to them. All layers are those of plain
  // attention.
  void Attention(const std::string& name, const AttentionOptions& options);
  // A mixture of feed-forward experts of two dense layers without bias, of which every token takes
  // the one that a router finds likeliest, times that probability (Fedus et al., arXiv 2101.03961).
  // Each expert has its share of the tokens, all as equal as may be.
  void Mixture(const std::string& name, const MixtureOptions& options);
  // One layer over a sequence; both directions concatenate. Tensors as PyTorch stores them: input
  // and hidden weight, input and hidden bias, for each direction.
  void Recurrent(const std::string& name, const RecurrentOptions& options);

  // The sum or product of the current tensor and another one. Both have the same shape or, in a
  // product, the current tensor is one value for each channel of `other`; the result has the shape
  // of `other`.
  void Add(const std::string& name, const Shape& other);
  void Multiply(const std::string& name, const Shape& other);
  // In each pass so many elements read and written, as a copy; its mask aside.
  void Dropout(const std::string& name);
  // Divided, through a hyperbolic tangent, and multiplied again: nothing is beyond a bound.
  void CapAt(const std::string& name);
  // The sum of the current tensor and a stored one of its shape, which is not trained.
  void AddStored(const std::string& name);

  // Copies: `channels` in all, from tensors of the current height and width; nearest neighbours;
  // anything that pads, subsamples or transposes into `shape`.
  void Concat(const std::string& name, std::int64_t channels);
  void Upsample(const std::string& name, std::int64_t factor);
  void Rearrange(const std::string& name, const Shape& shape);

  // Runs each branch on the current tensor and concatenates their outputs.
  void Branches(const std::string& name, std::initializer_list<std::function<void()>> branches);

  // Samples differ in size; otherwise all have that of the input.
  void LetInputsVary() { workload_.inputs_vary = true; }
  // Otherwise attention is plain.
  void FuseAttention() { workload_.attention = AttentionForm::kFused; }

  // The finished record; the builder is empty after it.
  Workload Finish(Statistics statistics);

 private:
  void Append(const std::string& name, LayerKind kind, Operation operation,
              std::vector<std::int64_t> tensors, std::int64_t flop, std::int64_t statistics = 0);
  // Whether a gradient has to go on to the tensors of earlier layers.
  bool HasTrainedLayers() const;
  void Pool(const std::string& name, PoolingKind kind, const PoolingOptions& options);
  // Each pair of features, turned by the angle of its position: x cos + turned(x) sin. Of a part of
  // the current tensor's features, which is then joined to the rest.
  void Rotate(const std::string& name, std::int64_t divisor);

  Workload workload_;
  Shape shape_;
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_WORKLOADS_NETWORK_BUILDER_H_
