#include "data/kineto/layers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "data/record/input_error.h"
#include "data/values/operation_text.h"
#include "data/values/size_limits.h"

namespace stepcast {
namespace {

using Dims = std::vector<std::int64_t>;

constexpr const char* kNeedsValues =
    "record the trace with PyTorch 2.1 or newer, which writes Concrete Inputs";

const KinetoInput& Input(const KinetoInputs* inputs, std::size_t i) {
  static const KinetoInput none;
  return inputs != nullptr && i < inputs->size() ? (*inputs)[i] : none;
}
const Dims& DimsOf(const KinetoInputs* inputs, std::size_t i) { return Input(inputs, i).dims; }

// Numbers of "[2, 2]" or "2"; none for other text.
std::optional<Dims> Numbers(std::string_view text) {
  if (text.empty()) return std::nullopt;
  Dims numbers;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '[' || c == ']' || c == ',' || c == ' ') {
      ++at;
      continue;
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc()) return std::nullopt;
    at = static_cast<std::size_t>(end - text.data());
    if (at < text.size() && text[at] == '.') return std::nullopt;
    numbers.push_back(value);
  }
  return numbers;
}
std::optional<Dims> NumbersOf(const KinetoInputs* inputs, std::size_t i) {
  return Numbers(Input(inputs, i).value);
}

// One number for each of `count` axes; a single one is that of all.
std::optional<Dims> PerAxis(const KinetoInputs* inputs, std::size_t i, std::size_t count) {
  auto numbers = NumbersOf(inputs, i);
  if (!numbers || numbers->empty()) return std::nullopt;
  if (numbers->size() == 1) numbers->resize(count, numbers->front());
  if (numbers->size() != count) return std::nullopt;
  return numbers;
}

KinetoOperation Problem(std::string text) {
  KinetoOperation none;
  none.problem = std::move(text);
  return none;
}

// No layer: its name says it all.
KinetoOperation Plain() { return {}; }

// Versions are known that mix the arguments of several calls up: a bias must fit its layer.
bool BiasFits(const Dims& bias, std::int64_t units) {
  return bias.empty() || (bias.size() == 1 && bias.front() == units);
}

// ---- Batch and positions.

struct Split {
  std::int64_t batch = 1;
  std::int64_t positions = 1;  // of one sample
};

// Batch and positions of a tensor with `rows` rows of features, whose first length is `first`.
Split SplitRows(std::int64_t rows, std::int64_t first, std::int64_t step_batch) {
  if (first != step_batch && step_batch > 0 && rows % step_batch == 0) first = step_batch;
  first = std::max<std::int64_t>(first, 1);
  return {first, std::max<std::int64_t>(rows / first, 1)};
}

Split SplitDims(const Dims& dims, std::int64_t step_batch) {
  const std::int64_t last = std::max<std::int64_t>(dims.back(), 1);
  const std::int64_t rows = KinetoElements(dims) / last;
  return SplitRows(rows, dims.front(), dims.size() == 4 ? dims.front() : step_batch);
}

KinetoOperation Layer(const Operation& operation, std::int64_t batch) {
  if (batch < 1 || batch > kMostSampleBatch) return Problem("of no usable batch");
  KinetoOperation described;
  described.operation = operation;
  described.batch = static_cast<int>(batch);
  return described;
}

// ---- The layers.

// Stride and zeros of one axis where a single choice explains the output: dilation is taken as one,
// a stride as at most the window, zeros as at most half of it, the same on both sides.
struct Slide {
  std::int64_t stride = 1;
  std::int64_t zeros = 0;
};
std::optional<Slide> DeriveSlide(std::int64_t input, std::int64_t window, std::int64_t output) {
  constexpr std::int64_t kWidest = 10'000;
  if (window > kWidest || output < 1) return std::nullopt;
  std::optional<Slide> found;
  const std::int64_t most = window == 1 ? std::min<std::int64_t>(input, 64) : window;
  for (std::int64_t zeros = 0; zeros <= window / 2; ++zeros) {
    const std::int64_t room = input + 2 * zeros - window;
    if (room < 0) continue;
    // The strides for which room / stride + 1 is the output.
    const std::int64_t least = room / output + 1;
    const std::int64_t last = output > 1 ? std::min(most, room / (output - 1)) : most;
    if (least > last) continue;
    if (found || least < last) return std::nullopt;
    found = Slide{least, zeros};
  }
  return found;
}

struct Geometry {
  Dims stride, padding, dilation;
  std::int64_t groups = 1;
  bool transposed = false;
};

// As written among the arguments: conv1d and conv2d (.., stride, padding, dilation, groups), or
// convolution (.., stride, padding, dilation, transposed, output_padding, groups).
std::optional<Geometry> WrittenGeometry(std::string_view name, const KinetoInputs* inputs,
                                        std::size_t axes) {
  const bool general = name == "convolution" || name == "_convolution";
  if (!general && name != "conv2d" && name != "conv1d") return std::nullopt;
  const auto stride = PerAxis(inputs, 3, axes);
  const auto padding = PerAxis(inputs, 4, axes);
  const auto dilation = PerAxis(inputs, 5, axes);
  const auto groups = NumbersOf(inputs, general ? 8 : 6);
  if (!stride || !padding || !dilation || !groups || groups->size() != 1) return std::nullopt;
  return Geometry{*stride, *padding, *dilation, groups->front(),
                  general && Input(inputs, 6).value == "True"};
}

KinetoOperation Convolution(const KinetoCall& call) {
  const Dims& input = DimsOf(call.inputs, 0);
  const Dims& weight = DimsOf(call.inputs, 1);
  if (call.name.starts_with("conv_transpose")) return Problem("transposed");
  if (input.size() == 5) return Problem("three-dimensional");
  if (input.size() < 3 || input.size() > 4 || weight.size() != input.size()) return Plain();
  const std::size_t axes = input.size() - 2;
  if (weight[1] < 1 || input[1] % weight[1] != 0 || !BiasFits(DimsOf(call.inputs, 2), weight[0])) {
    return Problem("of shapes that do not fit");
  }
  auto geometry = WrittenGeometry(call.inner_name, call.inner, axes);
  if (!geometry) geometry = WrittenGeometry(call.name, call.inputs, axes);
  bool derived = false;
  if (!geometry) {
    constexpr const char* kUnknown = "without stride: ";
    if (call.output == nullptr || call.output->size() != input.size()) {
      return Problem(std::string(kUnknown) + kNeedsValues);
    }
    derived = true;
    geometry = Geometry{{}, {}, Dims(axes, 1), input[1] / weight[1], false};
    for (std::size_t i = 2; i < input.size(); ++i) {
      const auto slide = DeriveSlide(input[i], weight[i], (*call.output)[i]);
      if (!slide) return Problem(std::string(kUnknown) + kNeedsValues);
      geometry->stride.push_back(slide->stride);
      geometry->padding.push_back(slide->zeros);
    }
  }
  if (geometry->transposed) return Problem("transposed");
  // A sequence is an image of one column.
  const auto pair = [axes](const Dims& v, std::size_t from, std::int64_t one) {
    return Lengths2{v[from], axes == 2 ? v[from + 1] : one};
  };
  const Lengths2 zeros = pair(geometry->padding, 0, 0);
  ConvolutionOp op;
  op.channels = input[1];
  op.input = pair(input, 2, 1);
  op.filters = weight[0];
  op.kernel = pair(weight, 2, 1);
  op.stride = pair(geometry->stride, 0, 1);
  op.dilation = pair(geometry->dilation, 0, 1);
  op.padding = {zeros.height, zeros.width, zeros.height, zeros.width};
  op.groups = geometry->groups;
  op.bias = !DimsOf(call.inputs, 2).empty();
  op.input_gradient = call.input_gradient;
  KinetoOperation described = Layer(op, input[0]);
  described.derived = derived;
  return described;
}

KinetoOperation DenseOf(const Dims& input, std::int64_t inputs, std::int64_t units, bool bias,
                        const KinetoCall& call) {
  if (input.empty() || input.back() != inputs) return Problem("of shapes that do not fit");
  const std::int64_t rows = KinetoElements(input) / std::max<std::int64_t>(inputs, 1);
  const Split split = SplitRows(rows, input.size() == 1 ? 1 : input.front(), call.step_batch);
  return Layer(DenseOp{split.positions, inputs, units, bias, call.input_gradient}, split.batch);
}

KinetoOperation Dense(const KinetoCall& call) {
  if (call.name == "addmm") {
    const Dims& input = DimsOf(call.inputs, 1);
    const Dims& weight = DimsOf(call.inputs, 2);
    if (input.size() != 2 || weight.size() != 2) return Plain();
    return DenseOf(input, weight[0], weight[1], DimsOf(call.inputs, 0).size() == 1, call);
  }
  const Dims& input = DimsOf(call.inputs, 0);
  const Dims& weight = DimsOf(call.inputs, 1);
  if (input.empty() || weight.size() != 2) return Plain();
  if (call.name == "mm") return DenseOf(input, weight[0], weight[1], false, call);
  if (call.inputs->size() > 3 || !BiasFits(DimsOf(call.inputs, 2), weight[0])) {
    return Problem("of shapes that do not fit");
  }
  return DenseOf(input, weight[1], weight[0], !DimsOf(call.inputs, 2).empty(), call);
}

KinetoOperation Product(const KinetoCall& call) {
  const std::size_t first = call.name == "baddbmm" ? 1 : 0;
  const Dims& left = DimsOf(call.inputs, first);
  const Dims& right = DimsOf(call.inputs, first + 1);
  if (left.size() < 2 || right.size() < 2) return Plain();
  if (right.size() == 2) return DenseOf(left, right[0], right[1], false, call);
  if (left.size() != right.size() ||
      !std::equal(left.begin(), left.end() - 2, right.begin(), right.end() - 2) ||
      left.back() != right[right.size() - 2]) {
    return Problem("of shapes that are repeated");
  }
  const std::int64_t products = KinetoElements(Dims(left.begin(), left.end() - 2));
  const Split split = SplitRows(products, left.front(), left.size() > 3 ? 0 : call.step_batch);
  return Layer(BatchedProductOp{split.positions, left[left.size() - 2], right.back(), left.back()},
               split.batch);
}

KinetoOperation BatchNormalization(const KinetoCall& call) {
  const Dims& input = DimsOf(call.inputs, 0);
  if (Input(call.inputs, 5).value == "False") return Problem("in evaluation mode");
  if (input.size() < 2 || input.size() > 4) return Problem("of no image");
  const Lengths2 positions{input.size() > 2 ? input[2] : 1, input.size() > 3 ? input[3] : 1};
  return Layer(NormalizationOp{NormalizationKind::kBatch, input[1], positions}, input[0]);
}

KinetoOperation LayerNormalization(const KinetoCall& call) {
  const Dims& input = DimsOf(call.inputs, 0);
  if (input.empty()) return Plain();
  std::int64_t channels = input.back();
  if (const Dims& weight = DimsOf(call.inputs, 2); !weight.empty()) {
    channels = KinetoElements(weight);
  } else if (const auto shape = NumbersOf(call.inputs, 1); shape && !shape->empty()) {
    channels = KinetoElements(*shape);
  }
  const std::int64_t elements = KinetoElements(input);
  if (channels < 1 || elements % channels != 0) return Problem("of shapes that do not fit");
  const Split split = SplitRows(elements / channels, input.front(), call.step_batch);
  return Layer(NormalizationOp{NormalizationKind::kLayer, channels, {split.positions, 1}},
               split.batch);
}

Function FunctionOf(const KinetoCall& call) {
  const std::string_view name = call.name;
  if (name == "relu") return Function::kRelu;
  if (name == "relu6") return Function::kRelu6;
  if (name == "leaky_relu") return Function::kLeakyRelu;
  if (name == "sigmoid") return Function::kSigmoid;
  if (name == "silu") return Function::kSwish;
  if (name == "tanh") return Function::kTanh;
  if (name == "gelu") {
    const bool tanh = Input(call.inputs, 1).value.find("tanh") != std::string::npos;
    return tanh ? Function::kGeluTanh : Function::kGelu;
  }
  if (name == "clamp_min") return Function::kRelu;
  if (name == "hardtanh" || name == "clamp") {
    const std::string& low = Input(call.inputs, 1).value;
    const std::string& high = Input(call.inputs, 2).value;
    if ((low == "0." || low == "0") && (high == "6." || high == "6")) return Function::kRelu6;
    return Function::kHardtanh;
  }
  return Function::kSoftmax;
}

KinetoOperation Activation(const KinetoCall& call) {
  const Dims& input = DimsOf(call.inputs, 0);
  if (input.size() < 2) return Plain();
  const Function function = FunctionOf(call);
  const Split split = SplitDims(input, call.step_batch);
  std::int64_t columns = input.back();
  std::int64_t rows = split.positions;
  if (function == Function::kSoftmax) {
    if (const auto axis = NumbersOf(call.inputs, 1);
        axis && axis->size() == 1 && axis->front() != -1 &&
        axis->front() != static_cast<std::int64_t>(input.size()) - 1) {
      return Problem("over another dimension than the last");
    }
  } else {  // rows matter to softmax alone
    columns *= rows;
    rows = 1;
  }
  return Layer(ActivationOp{function, rows, columns}, split.batch);
}

// Zeros in front as stated, behind what an incomplete last window lacks.
PoolingOp PoolingOf(PoolingKind kind, const Dims& input, const Dims& window, const Dims& stride,
                    const Dims& zeros, bool ceil) {
  std::array<std::int64_t, 2> behind{};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t length = input[i + 2];
    const std::int64_t room = length + 2 * zeros[i] - window[i];
    std::int64_t output = (ceil ? room + stride[i] - 1 : room) / stride[i] + 1;
    if (ceil && (output - 1) * stride[i] >= length + zeros[i]) --output;
    behind[i] = std::max(zeros[i], (output - 1) * stride[i] + window[i] - length - zeros[i]);
  }
  return {kind,
          input[1],
          {input[2], input[3]},
          {window[0], window[1]},
          {stride[0], stride[1]},
          {zeros[0], zeros[1], behind[0], behind[1]}};
}

KinetoOperation Pooling(PoolingKind kind, const KinetoCall& call) {
  const Dims& input = DimsOf(call.inputs, 0);
  if (input.size() != 4) return Plain();
  const auto window = PerAxis(call.inputs, 1, 2);
  const auto zeros = PerAxis(call.inputs, 3, 2);
  if (!window || !zeros) return Problem(std::string("without window: ") + kNeedsValues);
  const Dims stride = PerAxis(call.inputs, 2, 2).value_or(*window);
  const bool maximum = kind == PoolingKind::kMax;
  if (maximum && PerAxis(call.inputs, 4, 2).value_or(Dims{1, 1}) != Dims{1, 1}) {
    return Problem("dilated");
  }
  const auto bad = [](std::int64_t v) { return v < 1 || v > 1'000'000; };
  if (std::any_of(window->begin(), window->end(), bad) ||
      std::any_of(stride.begin(), stride.end(), bad)) {
    return Problem("of no usable window");
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t side = (*zeros)[i];
    if (side < 0 || side > (*window)[i] || input[i + 2] + 2 * side < (*window)[i]) {
      return Problem("of no usable window");
    }
  }
  const bool ceil = Input(call.inputs, maximum ? 5 : 4).value == "True";
  return Layer(PoolingOf(kind, input, *window, stride, *zeros, ceil), input[0]);
}

// An average whose windows divide the input evenly; a single window has no stride.
KinetoOperation AverageTo(const Dims& input, const Dims& output) {
  Dims window(2);
  Dims stride(2, 1);
  for (std::size_t i = 0; i < 2; ++i) {
    if (output[i] < 1 || input[i + 2] % output[i] != 0) return Problem("of uneven windows");
    window[i] = input[i + 2] / output[i];
    if (output[i] > 1) stride[i] = window[i];
  }
  return Layer(PoolingOf(PoolingKind::kAverage, input, window, stride, {0, 0}, false), input[0]);
}

KinetoOperation AdaptivePooling(const KinetoCall& call) {
  const Dims& input = DimsOf(call.inputs, 0);
  if (input.size() != 4) return Plain();
  if (const auto output = PerAxis(call.inputs, 1, 2)) return AverageTo(input, *output);
  if (call.inner_name == "mean") return AverageTo(input, {1, 1});
  if (call.output != nullptr && call.output->size() == 4) {
    return AverageTo(input, {(*call.output)[2], (*call.output)[3]});
  }
  return Problem(std::string("without output: ") + kNeedsValues);
}

KinetoOperation Mean(const KinetoCall& call) {
  const Dims& input = DimsOf(call.inputs, 0);
  auto axes = NumbersOf(call.inputs, 1);
  if (input.size() != 4 || !axes || axes->size() != 2) return Plain();
  for (std::int64_t& axis : *axes) axis = axis < 0 ? axis + 4 : axis;
  std::sort(axes->begin(), axes->end());
  return *axes == Dims{2, 3} ? AverageTo(input, {1, 1}) : Plain();
}

KinetoOperation Elementwise(ElementwiseKind kind, const KinetoCall& call) {
  Dims large = DimsOf(call.inputs, 0);
  Dims small = DimsOf(call.inputs, 1);
  if (KinetoElements(large) < KinetoElements(small)) std::swap(large, small);
  if (large.size() < 2 || small.empty()) return Plain();
  const bool image = large.size() == 4;
  const std::int64_t channels = image ? large[1] : large.back();
  if (channels < 1 || large.front() < 1) return Plain();
  const bool broadcast = large != small;
  if (broadcast) {
    // A value for each channel, of each sample or of all.
    Dims wanted(large.size(), 1);
    wanted[image ? 1 : large.size() - 1] = channels;
    Dims own = wanted;
    own.front() = large.front();
    Dims padded(large.size() - std::min(large.size(), small.size()), 1);
    padded.insert(padded.end(), small.begin(), small.end());
    if (padded != wanted && padded != own) return Problem("of shapes that are repeated");
  }
  const std::int64_t rows = KinetoElements(large) / channels;
  const Split split = SplitRows(rows, large.front(), image ? 0 : call.step_batch);
  return Layer(ElementwiseOp{kind, channels, split.positions, broadcast}, split.batch);
}

KinetoOperation Concatenation(const KinetoCall& call) {
  const std::int64_t elements = KinetoElements(Input(call.inputs, 0).list);
  std::int64_t first = 0;
  for (const Dims& dims : Input(call.inputs, 0).list) {
    if (first == 0 && !dims.empty()) first = dims.front();
  }
  if (elements < 1 || first < 1) return Plain();
  if (elements % first != 0) return Problem("of samples");  // along the batch
  return Layer(CopyOp{elements / first}, first);
}

KinetoOperation Embedding(const KinetoCall& call) {
  const Dims& table = DimsOf(call.inputs, 0);
  const Dims& tokens = DimsOf(call.inputs, 1);
  if (table.size() != 2 || tokens.empty() || tokens.front() < 1) return Plain();
  return Layer(EmbeddingOp{table[0], table[1], KinetoElements(tokens) / tokens.front()},
               tokens.front());
}

// lstm and gru (input, hidden, parameters, .., bidirectional, batch_first): one layer of them. The
// sizes are those of the lists; a list without shapes leaves the product with the input's weights,
// which reads positions x batch x inputs.
KinetoOperation Recurrent(RecurrentCell cell, const KinetoCall& call) {
  const std::int64_t gates = cell == RecurrentCell::kLstm ? 4 : 3;
  const Dims& input = DimsOf(call.inputs, 0);
  if (input.size() != 3) return Plain();
  // lstm has a list of two states, gru one state.
  const KinetoInput& hidden = Input(call.inputs, 1);
  const Dims state = !hidden.list.empty() ? hidden.list.front() : hidden.dims;
  const auto& parameters = Input(call.inputs, 2).list;
  if (state.size() == 3 && parameters.size() >= 2) {
    const std::int64_t stacked = state[0];
    std::int64_t directions = stacked;
    if (const std::string& both = Input(call.inputs, 7).value; !both.empty()) {
      directions = both == "True" ? 2 : 1;
    }
    const Dims& weights = parameters.front();
    if (stacked != directions || stacked > 2) return Problem("of several layers");
    if (weights.size() != 2 || weights[0] != gates * state[2] || weights[1] != input[2]) {
      return Problem("of shapes that do not fit");
    }
    const std::int64_t batch = state[1];
    const std::int64_t rows = input[0] * input[1];
    if (batch < 1 || rows % batch != 0) return Problem("of shapes that do not fit");
    return Layer(RecurrentOp{cell, rows / batch, input[2], state[2], directions}, batch);
  }
  const Dims& sequence = DimsOf(call.inner, 0);
  const Dims& weights = DimsOf(call.inner, 1);
  if (call.inner_name != "linear" || call.inner_products != 1 || sequence.size() != 3 ||
      weights.size() != 2 || weights[0] % gates != 0) {
    return Problem("whose states have no shapes");
  }
  return Layer(RecurrentOp{cell, sequence[0], weights[1], weights[0] / gates, 1}, sequence[1]);
}

KinetoOperation Describe(KinetoLayer layer, const KinetoCall& call) {
  switch (layer) {
    case KinetoLayer::kNone:
      break;
    case KinetoLayer::kConvolution:
      return Convolution(call);
    case KinetoLayer::kDense:
      return Dense(call);
    case KinetoLayer::kProduct:
      return Product(call);
    case KinetoLayer::kBatchNormalization:
      return BatchNormalization(call);
    case KinetoLayer::kLayerNormalization:
      return LayerNormalization(call);
    case KinetoLayer::kActivation:
      return Activation(call);
    case KinetoLayer::kMaxPooling:
      return Pooling(PoolingKind::kMax, call);
    case KinetoLayer::kAveragePooling:
      return Pooling(PoolingKind::kAverage, call);
    case KinetoLayer::kAdaptivePooling:
      return AdaptivePooling(call);
    case KinetoLayer::kMean:
      return Mean(call);
    case KinetoLayer::kAdd:
      return Elementwise(ElementwiseKind::kAdd, call);
    case KinetoLayer::kMultiply:
      return Elementwise(ElementwiseKind::kMultiply, call);
    case KinetoLayer::kConcatenation:
      return Concatenation(call);
    case KinetoLayer::kEmbedding:
      return Embedding(call);
    case KinetoLayer::kLstm:
      return Recurrent(RecurrentCell::kLstm, call);
    case KinetoLayer::kGru:
      return Recurrent(RecurrentCell::kGru, call);
  }
  return Plain();
}

// The type of the first tensor of floating point.
std::string TypeOf(const KinetoInputs* inputs) {
  std::string other;
  for (std::size_t i = 0; inputs != nullptr && i < inputs->size(); ++i) {
    const KinetoInput& input = (*inputs)[i];
    if (input.type.empty() || input.dims.empty()) continue;
    Precision precision = Precision::kFp32;
    if (KinetoPrecision(input.type, &precision)) return input.type;
    if (other.empty()) other = input.type;
  }
  return other;
}

}  // namespace

std::string_view KinetoOperatorName(std::string_view name) {
  constexpr std::string_view kPrefix = "aten::";
  if (!name.starts_with(kPrefix)) return name;
  name.remove_prefix(kPrefix.size());
  if (name.size() > 1 && name.back() == '_') name.remove_suffix(1);
  return name;
}

KinetoLayer KinetoLayerOf(std::string_view operator_name) {
  using L = KinetoLayer;
  static const std::unordered_map<std::string_view, KinetoLayer> known = {
      {"conv1d", L::kConvolution},
      {"conv2d", L::kConvolution},
      {"conv3d", L::kConvolution},
      {"conv_transpose1d", L::kConvolution},
      {"conv_transpose2d", L::kConvolution},
      {"conv_transpose3d", L::kConvolution},
      {"convolution", L::kConvolution},
      {"_convolution", L::kConvolution},
      {"linear", L::kDense},
      {"addmm", L::kDense},
      {"mm", L::kDense},
      {"matmul", L::kProduct},
      {"bmm", L::kProduct},
      {"baddbmm", L::kProduct},
      {"batch_norm", L::kBatchNormalization},
      {"native_batch_norm", L::kBatchNormalization},
      {"cudnn_batch_norm", L::kBatchNormalization},
      {"miopen_batch_norm", L::kBatchNormalization},
      {"layer_norm", L::kLayerNormalization},
      {"native_layer_norm", L::kLayerNormalization},
      {"relu", L::kActivation},
      {"relu6", L::kActivation},
      {"clamp", L::kActivation},
      {"clamp_min", L::kActivation},
      {"hardtanh", L::kActivation},
      {"leaky_relu", L::kActivation},
      {"sigmoid", L::kActivation},
      {"silu", L::kActivation},
      {"tanh", L::kActivation},
      {"gelu", L::kActivation},
      {"softmax", L::kActivation},
      {"_softmax", L::kActivation},
      {"log_softmax", L::kActivation},
      {"_log_softmax", L::kActivation},
      {"max_pool2d", L::kMaxPooling},
      {"max_pool2d_with_indices", L::kMaxPooling},
      {"avg_pool2d", L::kAveragePooling},
      {"adaptive_avg_pool2d", L::kAdaptivePooling},
      {"mean", L::kMean},
      {"add", L::kAdd},
      {"mul", L::kMultiply},
      {"cat", L::kConcatenation},
      {"embedding", L::kEmbedding},
      {"lstm", L::kLstm},
      {"gru", L::kGru}};
  const auto it = known.find(operator_name);
  return it == known.end() ? L::kNone : it->second;
}

bool IsOpaqueKinetoOperator(std::string_view operator_name) {
  static constexpr std::string_view kOpaque[] = {
      "dropout",  "feature_dropout", "native_dropout", "alpha_dropout", "to",
      "_to_copy", "group_norm",      "instance_norm",  "rms_norm",      "rnn_tanh",
      "rnn_relu", "mse_loss",        "l1_loss",        "smooth_l1_loss"};
  return std::find(std::begin(kOpaque), std::end(kOpaque), operator_name) != std::end(kOpaque);
}

bool KinetoPrecision(std::string_view type, Precision* precision) {
  if (type == "float") {
    *precision = Precision::kFp32;
  } else if (type == "c10::Half") {
    *precision = Precision::kFp16;
  } else if (type == "c10::BFloat16") {
    *precision = Precision::kBf16;
  } else {
    return false;
  }
  return true;
}

std::int64_t KinetoElements(const std::vector<std::int64_t>& dims) {
  std::int64_t elements = 1;
  for (const std::int64_t length : dims) {
    if (length < 1) return 0;
    if (elements > kMostTensorElements / length) return kMostTensorElements;
    elements *= length;
  }
  return elements;
}

std::int64_t KinetoElements(const std::vector<std::vector<std::int64_t>>& list) {
  std::int64_t elements = 0;
  for (const Dims& dims : list) elements = KinetoSum(elements, KinetoElements(dims));
  return elements;
}

std::int64_t KinetoSum(std::int64_t a, std::int64_t b) {
  return std::min(a + b, kMostTensorElements);
}

std::string KinetoProblem(const Operation& operation) {
  try {
    ParseOperation(FormatOperation(operation), {});
  } catch (const InputError& error) {
    return "that " + error.problem();
  }
  return "";
}

KinetoOperation DescribeKinetoCall(KinetoLayer layer, const KinetoCall& call) {
  for (const KinetoInputs* inputs : {call.inputs, call.inner}) {
    if (inputs == nullptr) continue;
    for (const KinetoInput& input : *inputs) {
      const std::int64_t elements = KinetoElements(input.dims);
      if (elements == 0) return Plain();  // nothing to compute
      if (std::max(elements, KinetoElements(input.list)) == kMostTensorElements) {
        return Problem("of no usable size");
      }
    }
  }
  KinetoOperation described = Describe(layer, call);
  if (described.operation.index() == 0) return described;
  // Where conversions come first the inner operator has the type that is computed in.
  std::string type = TypeOf(call.inner);
  if (type.empty()) type = TypeOf(call.inputs);
  if (!type.empty() && !KinetoPrecision(type, &described.precision)) return Problem("in " + type);
  std::string problem = KinetoProblem(described.operation);
  return problem.empty() ? described : Problem(std::move(problem));
}

}  // namespace stepcast
