// Which operators of PyTorch are layers, and which operation each call is.
//
// Shapes are PyTorch's logical ones: images are batch x channels x height x width. Other tensors
// have their features last; how their other lengths divide into batch and positions no shape tells,
// and decides no time: the batch is that of the step where it divides them (the batch may come
// second, or be folded into the positions), otherwise the first length.
#ifndef STEPCAST_DATA_KINETO_LAYERS_H_
#define STEPCAST_DATA_KINETO_LAYERS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/kineto/trace.h"
#include "data/record/operation.h"

namespace stepcast {

enum class KinetoLayer : std::uint8_t {
  kNone,
  kConvolution,
  kDense,
  kProduct,  // matmul and bmm: of a parameter or of two activations
  kBatchNormalization,
  kLayerNormalization,
  kActivation,
  kMaxPooling,
  kAveragePooling,
  kAdaptivePooling,
  kMean,
  kAdd,
  kMultiply,
  kConcatenation,
  kEmbedding,
  kLstm,
  kGru,
};

// "aten::conv2d" -> "conv2d", "aten::relu_" -> "relu", "Optimizer.step" stays.
std::string_view KinetoOperatorName(std::string_view name);

// The layer that an operator computes, by its name without "aten::".
KinetoLayer KinetoLayerOf(std::string_view operator_name);

// Operators that are no layer and whose parts are none either: a dropout's product, a conversion.
bool IsOpaqueKinetoOperator(std::string_view operator_name);

// One call of a layer: the outermost operator and what the trace tells beside its arguments.
struct KinetoCall {
  std::string_view name;  // without "aten::"
  const KinetoInputs* inputs = nullptr;
  // The first operator within that computes: after conversions, and with all lengths explicit.
  std::string_view inner_name;
  const KinetoInputs* inner = nullptr;
  // Shape of the gradient of its output.
  const std::vector<std::int64_t>* output = nullptr;
  // Linear layers of whole sequences within a recurrent layer that is made of operators.
  int inner_products = 0;
  bool input_gradient = true;
  std::int64_t step_batch = 0;  // first length of what the step's first layer reads; 0: not known
};

struct KinetoOperation {
  Operation operation;  // monostate: no layer, for `problem` where it is not plain
  int batch = 1;
  Precision precision = Precision::kFp32;
  std::string problem;
  bool derived = false;  // a convolution's stride and padding, from its output
};

KinetoOperation DescribeKinetoCall(KinetoLayer layer, const KinetoCall& call);

// "float" -> kFp32; false for types that no layer is measured in.
bool KinetoPrecision(std::string_view type, Precision* precision);

// Elements of a shape, at most 10^15 (which no operation has).
std::int64_t KinetoElements(const std::vector<std::int64_t>& dims);
// The elements of several tensors, or the sum of two counts: at most 10^15 too.
std::int64_t KinetoElements(const std::vector<std::vector<std::int64_t>>& list);
std::int64_t KinetoSum(std::int64_t a, std::int64_t b);

// Why a profile cannot hold an operation; empty where it can.
std::string KinetoProblem(const Operation& operation);

}  // namespace stepcast

#endif  // STEPCAST_DATA_KINETO_LAYERS_H_
