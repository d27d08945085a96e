// The computation of one layer for one sample, with every length that decides its time: the thing
// that a microbenchmark measures. Layers of equal operations cost the same, whatever network they
// are in.
//
// Lengths count elements of one sample; a batch of b samples does the operation b times in one
// call. Images are channels x height x width, sequences are positions x features; a convolution
// over a sequence is one of an image of a single column.
#ifndef STEPCAST_DATA_RECORD_OPERATION_H_
#define STEPCAST_DATA_RECORD_OPERATION_H_

#include <compare>
#include <cstdint>
#include <variant>

namespace stepcast {

// NOLINTBEGIN(modernize-use-nullptr): clang-tidy 14 takes the zero that a defaulted <=> compares
// with for a pointer.

// Height and width of an image, of a window, or of its step.
struct Lengths2 {
  std::int64_t height = 1;
  std::int64_t width = 1;
  auto operator<=>(const Lengths2&) const = default;
};

// Zeros around an image.
struct Zeros2 {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t bottom = 0;
  std::int64_t right = 0;
  auto operator<=>(const Zeros2&) const = default;
};

enum class Function {
  kRelu,
  kRelu6,
  kLeakyRelu,
  kHardtanh,
  kSigmoid,
  kSwish,
  kTanh,
  kGelu,      // with the error function
  kGeluTanh,  // with its approximation by a hyperbolic tangent, as GPT-2
  kSoftmax,   // over the last dimension
};
inline constexpr int kFunctionCount = 10;
inline constexpr const char* kFunctionNames[kFunctionCount] = {
    "relu",  "relu6", "leaky_relu", "hardtanh",  "sigmoid",
    "swish", "tanh",  "gelu",       "gelu_tanh", "softmax"};

// Two-dimensional; depthwise where groups == channels. Backward are the gradients of the filter
// and, unless the layer reads the network's input, of the data.
struct ConvolutionOp {
  std::int64_t channels = 1;
  Lengths2 input;
  std::int64_t filters = 1;
  Lengths2 kernel;
  Lengths2 stride;
  Lengths2 dilation;
  Zeros2 padding;
  std::int64_t groups = 1;
  bool bias = false;
  bool input_gradient = true;
  auto operator<=>(const ConvolutionOp&) const = default;

  Lengths2 output() const {
    const auto slide = [](std::int64_t length, std::int64_t zeros, std::int64_t window,
                          std::int64_t step, std::int64_t spread) {
      return (length + zeros - (spread * (window - 1) + 1)) / step + 1;
    };
    return {slide(input.height, padding.top + padding.bottom, kernel.height, stride.height,
                  dilation.height),
            slide(input.width, padding.left + padding.right, kernel.width, stride.width,
                  dilation.width)};
  }
};

// positions x inputs times inputs x units.
struct DenseOp {
  std::int64_t positions = 1;
  std::int64_t inputs = 1;
  std::int64_t units = 1;
  bool bias = false;
  bool input_gradient = true;
  auto operator<=>(const DenseOp&) const = default;
};

// `count` products of rows x depth and depth x columns, none of them parameters: attention's scores
// and its weighted sum, a product for each head.
struct BatchedProductOp {
  std::int64_t count = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t depth = 1;
  auto operator<=>(const BatchedProductOp&) const = default;
};

// Over batch and positions for each channel (batch), or over channels for each position (layer);
// training mode.
enum class NormalizationKind { kBatch, kLayer };
struct NormalizationOp {
  NormalizationKind kind = NormalizationKind::kBatch;
  std::int64_t channels = 1;
  Lengths2 input;  // positions
  auto operator<=>(const NormalizationOp&) const = default;
};

struct ActivationOp {
  Function function = Function::kRelu;
  std::int64_t rows = 1;
  std::int64_t columns = 1;  // what softmax normalises over
  auto operator<=>(const ActivationOp&) const = default;
};

// An average counts the zeros of the padding or not, as a library's default is.
enum class PoolingKind { kMax, kAverage };
struct PoolingOp {
  PoolingKind kind = PoolingKind::kMax;
  std::int64_t channels = 1;
  Lengths2 input;
  Lengths2 window;
  Lengths2 stride;
  Zeros2 padding;  // with what an incomplete last window needs
  auto operator<=>(const PoolingOp&) const = default;

  Lengths2 output() const {
    return {(input.height + padding.top + padding.bottom - window.height) / stride.height + 1,
            (input.width + padding.left + padding.right - window.width) / stride.width + 1};
  }
};

enum class ElementwiseKind { kAdd, kMultiply };
// An operation on two tensors, element by element. Where `broadcast`, one of them has a single
// value for each channel, and its gradient is a sum over positions. The backward pass of a sum of
// two whole tensors is that of a fork: the gradients of two branches are added up.
struct ElementwiseOp {
  ElementwiseKind kind = ElementwiseKind::kAdd;
  std::int64_t channels = 1;
  std::int64_t positions = 1;
  bool broadcast = false;
  auto operator<=>(const ElementwiseOp&) const = default;
};

// `tokens` look-ups in a table; the gradient is dense.
struct EmbeddingOp {
  std::int64_t rows = 1;
  std::int64_t features = 1;
  std::int64_t tokens = 1;
  auto operator<=>(const EmbeddingOp&) const = default;
};

enum class RecurrentCell { kLstm, kGru };
struct RecurrentOp {
  RecurrentCell cell = RecurrentCell::kLstm;
  std::int64_t positions = 1;
  std::int64_t inputs = 1;
  std::int64_t hidden = 1;
  std::int64_t directions = 1;
  auto operator<=>(const RecurrentOp&) const = default;
};

// Concatenation, transposition, padding, upsampling: so many elements read and written.
struct CopyOp {
  std::int64_t elements = 1;
  auto operator<=>(const CopyOp&) const = default;
};

// The optimizer's work on all parameters of a layer, as frameworks do it by default: one pass over
// memory for each arithmetic operation. It does not depend on the batch.
enum class Optimizer { kSgd, kMomentum, kAdam };
inline constexpr int kOptimizerCount = 3;
inline constexpr const char* kOptimizerNames[kOptimizerCount] = {"sgd", "momentum", "adam"};
struct UpdateOp {
  Optimizer optimizer = Optimizer::kMomentum;
  std::int64_t parameters = 1;
  auto operator<=>(const UpdateOp&) const = default;
};

// The cost of a host's allocator to a framework: so many elements of memory that the operating
// system maps anew, page by page as they are first written, and takes back. A forward pass, at
// batch 1.
struct AllocateOp {
  std::int64_t elements = 1;
  auto operator<=>(const AllocateOp&) const = default;
};

// monostate: not stated, so that the layer cannot be measured.
using Operation = std::variant<std::monostate, ConvolutionOp, DenseOp, BatchedProductOp,
                               NormalizationOp, ActivationOp, PoolingOp, ElementwiseOp, EmbeddingOp,
                               RecurrentOp, CopyOp, UpdateOp, AllocateOp>;

// NOLINTEND(modernize-use-nullptr)

// Format in which numbers are multiplied. tf32 is stored in 32 bits. fp8 is of dense layers alone,
// whose operands are cast for their products; all else of such a training is bf16.
enum class Precision { kFp32, kTf32, kFp16, kBf16, kFp8 };
inline constexpr int kPrecisionCount = 5;
inline constexpr const char* kPrecisionNames[kPrecisionCount] = {"fp32", "tf32", "fp16", "bf16",
                                                                 "fp8"};
// Profiles measure layers at the first of them.
inline constexpr int kMeasuredPrecisionCount = 4;
// Whether what layers hand to each other is stored in 16 bits.
inline constexpr bool HasSixteenBits(Precision precision) {
  return precision == Precision::kFp16 || precision == Precision::kBf16 ||
         precision == Precision::kFp8;
}

// Whether attention is products and a softmax, one after another, or all of it one kernel, through
// which its scores never leave the device's caches (FlashAttention).
enum class AttentionForm { kPlain, kFused };
inline constexpr int kAttentionFormCount = 2;
inline constexpr const char* kAttentionFormNames[kAttentionFormCount] = {"plain", "fused"};

// What is not kept until the backward pass, and runs once more there (data/record/blocks.h):
// nothing, what is between queries, keys and values and the result of attention, or all that a
// block of layers computes from its input (activation checkpointing).
enum class Recompute { kNone, kSelective, kFull };
inline constexpr int kRecomputeCount = 3;
inline constexpr const char* kRecomputeNames[kRecomputeCount] = {"none", "selective", "full"};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_OPERATION_H_
