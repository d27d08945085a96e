#include "data/onnx/layers.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "data/onnx/constants.h"
#include "data/onnx/patterns.h"
#include "data/onnx/shapes.h"
#include "data/record/operation_counts.h"
#include "data/values/names.h"
#include "data/values/operation_text.h"

namespace stepcast {
namespace {

// A window that slides over an image.
struct Window {
  Lengths2 size;
  Lengths2 stride;
  Lengths2 dilation;
  Zeros2 zeros;
  bool flat = true;  // at most two dimensions
  double area = 1;
};

std::int64_t Product(const OnnxDims& dims, std::size_t from, std::size_t to) {
  std::int64_t product = 1;
  for (std::size_t i = from; i < to; ++i) product *= dims[i];
  return product;
}

Lengths2 Lengths(const OnnxDims& lengths) {
  if (lengths.empty()) return {};
  if (lengths.size() == 1) return {lengths[0], 1};
  return {lengths[lengths.size() - 2], lengths.back()};
}

class Writer {
 public:
  explicit Writer(const OnnxGraph& graph)
      : g_(graph),
        trained_(graph.values.size(), false),
        layer_of_(graph.values.size(), -1),
        counted_(graph.parameters.size(), false),
        walked_(graph.nodes.size(), false) {}

  OnnxLayers Write() {
    FindTied();
    std::vector<OnnxPattern> patterns = FindOnnxPatterns(g_);
    std::map<int, const OnnxPattern*> by_last;
    std::set<int> inside;
    for (const OnnxPattern& pattern : patterns) {
      by_last[pattern.last] = &pattern;
      inside.insert(pattern.nodes.begin(), pattern.nodes.end());
    }
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      const OnnxNode& node = g_.nodes[i];
      const auto pattern = by_last.find(static_cast<int>(i));
      if (pattern != by_last.end()) {
        WritePattern(*pattern->second);
      } else if (inside.count(static_cast<int>(i)) == 0) {
        WriteNode(node);
      }
    }
    return std::move(out_);
  }

 private:
  using Handler = void (Writer::*)(const OnnxNode&);

  // One list of what is known; an operator that is not in it is an error.
  static const std::map<std::string, Handler>& Handlers() {
    static const std::map<std::string, Handler> kHandlers = [] {
      std::map<std::string, Handler> handlers;
      const auto add = [&](Handler handler, std::initializer_list<const char*> operators) {
        for (const char* op : operators) handlers[op] = handler;
      };
      add(&Writer::Convolution, {"Conv"});
      add(&Writer::TransposedConvolution, {"ConvTranspose"});
      add(&Writer::Gemm, {"Gemm"});
      add(&Writer::MatMul, {"MatMul"});
      add(&Writer::BatchNormalization, {"BatchNormalization"});
      add(&Writer::InstanceNormalization, {"InstanceNormalization"});
      add(&Writer::GroupNormalization, {"GroupNormalization"});
      add(&Writer::LayerNormalization, {"LayerNormalization"});
      add(&Writer::Recurrent, {"LSTM", "GRU"});
      add(&Writer::Gather, {"Gather"});
      add(&Writer::Activation, {"Relu", "ThresholdedRelu", "Clip", "LeakyRelu", "PRelu", "Sigmoid",
                                "HardSigmoid", "HardSwish", "Mish", "Elu", "Selu", "Celu",
                                "Softplus", "Softsign", "Tanh", "Gelu", "FastGelu"});
      add(&Writer::Softmax, {"Softmax", "LogSoftmax"});
      add(&Writer::Pooling, {"MaxPool", "AveragePool", "LpPool"});
      add(&Writer::GlobalPooling, {"GlobalAveragePool", "GlobalMaxPool"});
      add(&Writer::Reduction, {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"});
      add(&Writer::Copy, {"Concat", "Transpose", "Slice", "Split", "Pad", "Resize", "Upsample",
                          "Expand", "Tile", "Trilu", "GatherElements", "GatherND",
                          "ScatterElements", "ScatterND", "DepthToSpace", "SpaceToDepth"});
      add(&Writer::View,
          {"Flatten", "Reshape", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Cast", "CastLike",
           "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"});
      add(&Writer::Elementwise,
          {"Add",  "Sub",         "Mul",  "Div",   "Pow",        "Mod",     "Sum",
           "Mean", "Min",         "Max",  "Where", "Equal",      "Greater", "GreaterOrEqual",
           "Less", "LessOrEqual", "And",  "Or",    "Xor",        "Not",     "Neg",
           "Abs",  "Sqrt",        "Exp",  "Log",   "Reciprocal", "Erf",     "Sin",
           "Cos",  "Floor",       "Ceil", "Round", "Sign",       "IsNaN",   "IsInf"});
      return handlers;
    }();
    return kHandlers;
  }

  const OnnxValue& Value(int value) const { return g_.values[static_cast<std::size_t>(value)]; }
  bool Is(int value, OnnxOrigin origin) const {
    return value >= 0 && Value(value).origin == origin;
  }
  bool IsActivation(int value) const { return Is(value, OnnxOrigin::kActivation); }
  // Stored, or computed from what is stored; also the tensor of a Constant node.
  bool IsWeight(int value) const {
    return value >= 0 && !IsActivation(value) && Value(value).is_weight();
  }

  const OnnxDims& Dims(const OnnxNode& node, int value) const {
    if (value < 0) g_.Fail(node, "", "lacks an input");
    const std::optional<OnnxDims>& dims = Value(value).dims;
    if (!dims) {
      g_.Fail(node, Value(value).name,
              "is a value whose shape is not known before the network runs",
              "a network whose shapes follow from those of its inputs");
    }
    const std::optional<std::int64_t> elements = OnnxElements(*dims);
    if (!elements) {
      g_.Fail(node, Value(value).name, "is too large, or of a negative length", "10^15 elements");
    }
    if (*elements == 0) g_.Fail(node, Value(value).name, "has no elements");
    return *dims;
  }
  const OnnxDims& Dims(const OnnxNode& node, int value, std::size_t least_rank) const {
    const OnnxDims& dims = Dims(node, value);
    if (dims.size() < least_rank) {
      g_.Fail(node, Value(value).name, "has too few dimensions", std::to_string(least_rank));
    }
    return dims;
  }

  std::int64_t Samples(int value) const { return Value(value).batched ? g_.batch : 1; }

  // A count over the whole batch, for one sample.
  std::int64_t PerSample(const OnnxNode& node, int value, std::int64_t count) const {
    const std::int64_t samples = Samples(value);
    if (count % samples != 0) {
      g_.Fail(node, std::to_string(count),
              "does not divide by the batch of " + std::to_string(samples),
              "the batch that the graph was exported with, by --dim batch=N");
    }
    return count / samples;
  }
  std::int64_t Elements(const OnnxNode& node, int value) const {
    return PerSample(node, value, *OnnxElements(Dims(node, value)));
  }

  bool Trained(const OnnxNode& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](int value) {
      return value >= 0 && trained_[static_cast<std::size_t>(value)];
    });
  }

  // None where a length is beyond what files may hold: the layer keeps its work and its tensors.
  static Operation Writable(const Operation& operation) {
    if (operation.index() == 0) return operation;
    try {
      return ParseOperation(FormatOperation(operation), {});
    } catch (const InputError&) {
      return {};
    }
  }

  Layer& Append(const std::string& name, LayerKind kind, const Operation& operation, double flop,
                const OnnxNode& node, std::initializer_list<int> outputs) {
    Layer& layer = out_.layers.emplace_back();
    layer.name = name;
    layer.kind = kind;
    layer.operation = Writable(operation);
    layer.forward_flop = Flop(flop);
    double elements = 0;
    for (const int output : outputs) elements += static_cast<double>(Elements(node, output));
    layer.activation_bytes = Bytes(4 * elements);
    for (const int output : outputs) {
      layer_of_[static_cast<std::size_t>(output)] = static_cast<int>(out_.layers.size()) - 1;
    }
    return layer;
  }
  Layer& Append(const OnnxNode& node, LayerKind kind, const Operation& operation, double flop) {
    return Append(node.name, kind, operation, flop, node, {node.outputs[0]});
  }

  // Finds the matrix that each value is, seen otherwise or scaled: of as many elements.
  void FindTied() {
    tied_.assign(g_.values.size(), -1);
    for (std::size_t i = 0; i < g_.values.size(); ++i) {
      const int parameter = g_.values[i].parameter;
      if (parameter >= 0 && g_.parameters[static_cast<std::size_t>(parameter)].dims.size() > 1) {
        tied_[i] = parameter;
      }
    }
    for (const OnnxNode& node : g_.nodes) {
      const OnnxValue& output = Value(node.outputs[0]);
      if (output.parameter >= 0 || output.origin != OnnxOrigin::kParameters || !output.dims) {
        continue;
      }
      for (const int input : node.inputs) {
        const int tied = input < 0 ? -1 : tied_[static_cast<std::size_t>(input)];
        if (tied < 0 ||
            g_.parameters[static_cast<std::size_t>(tied)].elements != OnnxElements(*output.dims)) {
          continue;
        }
        tied_[static_cast<std::size_t>(node.outputs[0])] = tied;
        break;
      }
    }
  }

  // Adds the tensors that `value` is computed from, but those that an earlier layer has.
  void AddTensors(int value, Layer* layer) {
    if (value < 0 || !Value(value).is_weight()) return;
    reads_parameters_ = true;
    const int tied = tied_[static_cast<std::size_t>(value)];
    if (tied >= 0 && counted_[static_cast<std::size_t>(tied)]) ++out_.shared;
    std::vector<int> found;
    std::vector<int> open = {value};
    while (!open.empty()) {
      const OnnxValue& v = Value(open.back());
      open.pop_back();
      if (v.parameter >= 0) {
        if (!counted_[static_cast<std::size_t>(v.parameter)]) found.push_back(v.parameter);
        counted_[static_cast<std::size_t>(v.parameter)] = true;
      } else if (v.origin == OnnxOrigin::kParameters) {
        const auto node = static_cast<std::size_t>(v.producer);
        if (walked_[node]) continue;
        walked_[node] = true;
        for (const int input : g_.nodes[node].inputs) {
          if (input >= 0 && Value(input).is_weight()) open.push_back(input);
        }
      }
    }
    std::sort(found.begin(), found.end());
    for (const int parameter : found) {
      const std::int64_t elements = g_.parameters[static_cast<std::size_t>(parameter)].elements;
      if (elements > 0) layer->tensors.push_back(elements);
    }
  }

  void MarkTrained(const OnnxNode& node, bool trained) {
    for (const int output : node.outputs) {
      if (output >= 0) trained_[static_cast<std::size_t>(output)] = trained;
    }
  }

  void WriteNode(const OnnxNode& node) {
    const auto handler = Handlers().find(node.op);
    if (handler == Handlers().end() && !IsFree(node)) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : Handlers()) known.push_back(name);
      g_.Fail(node, node.op,
              "is an operator (opset " + std::to_string(node.opset) + ") whose work is not known",
              JoinNames(known));
    }
    if (!IsActivation(node.outputs[0])) return;
    if (handler == Handlers().end()) return;
    reads_parameters_ = false;
    (this->*handler->second)(node);
    MarkTrained(node, Trained(node) || reads_parameters_);
  }

  // Whether a node depends on shapes, constants or parameters alone: then it is not run for each
  // sample.
  bool IsFree(const OnnxNode& node) const {
    if (node.op == "Shape" || node.op == "Size") return true;
    return std::none_of(node.inputs.begin(), node.inputs.end(),
                        [&](int value) { return IsActivation(value); });
  }

  void WritePattern(const OnnxPattern& pattern) {
    const OnnxNode& node = g_.nodes[static_cast<std::size_t>(pattern.last)];
    bool trained = trained_[static_cast<std::size_t>(pattern.input)];
    const std::int64_t elements = Elements(node, pattern.output);
    if (pattern.kind == OnnxPattern::Kind::kLayerNormalization) {
      const OnnxNode& mean = g_.nodes[static_cast<std::size_t>(
          *std::min_element(pattern.nodes.begin(), pattern.nodes.end()))];
      const OnnxDims& dims = Dims(node, pattern.input);
      const std::size_t axes = OnnxReductionAxes(g_, mean, dims.size()).size();
      Layer& layer = Normalize(node, pattern.name, pattern.output,
                               Product(dims, dims.size() - axes, dims.size()));
      for (const int weight : pattern.weights) AddTensors(weight, &layer);
      trained = trained || !pattern.weights.empty();
    } else {
      const Function function = pattern.kind == OnnxPattern::Kind::kGelu       ? Function::kGelu
                                : pattern.kind == OnnxPattern::Kind::kGeluTanh ? Function::kGeluTanh
                                                                               : Function::kSwish;
      Append(pattern.name, LayerKind::kActivation, ActivationOp{function, 1, elements},
             FlopPerElement(function) * static_cast<double>(elements), node, {pattern.output});
    }
    MarkTrained(node, trained);
  }

  // The window of `size` that `node` moves over the image `input`, giving the image `output`.
  Window WindowOf(const OnnxNode& node, const OnnxDims& size, const OnnxDims& input,
                  const OnnxDims& output) {
    const std::size_t rank = size.size();
    const OnnxWindow moves = OnnxWindowOf(g_, node, rank);
    OnnxDims pads = moves.pads;
    for (std::size_t i = 0; i < rank; ++i) {
      const std::int64_t needed =
          (output[i] - 1) * moves.strides[i] + moves.dilations[i] * (size[i] - 1) + 1 - input[i];
      if (moves.same) {
        const std::int64_t total = std::max<std::int64_t>(0, needed);
        const std::int64_t larger = total - total / 2;
        pads[i] = moves.upper ? total / 2 : larger;
        pads[i + rank] = total - pads[i];
      } else {
        // An incomplete last window adds what it lacks.
        pads[i + rank] = std::max(pads[i + rank], needed - pads[i]);
      }
    }
    Window window;
    window.size = Lengths(size);
    window.stride = Lengths(moves.strides);
    window.dilation = Lengths(moves.dilations);
    window.flat = rank <= 2;
    for (const std::int64_t length : size) window.area *= static_cast<double>(length);
    if (rank == 1) window.zeros = {pads[0], 0, pads[1], 0};
    if (rank == 2) window.zeros = {pads[0], pads[1], pads[2], pads[3]};
    return window;
  }

  void RequireWeight(const OnnxNode& node, std::size_t slot, const char* what) const {
    if (IsWeight(node.input(slot))) return;
    g_.Fail(node, what, "is computed from the data, or is no real tensor", "a parameter");
  }

  void Convolution(const OnnxNode& node) {
    const OnnxDims& x = Dims(node, node.input(0), 3);
    const OnnxDims& w = Dims(node, node.input(1), 3);
    const OnnxDims& y = Dims(node, node.outputs[0], 3);
    RequireWeight(node, 1, "weight");
    const std::int64_t groups = node.Int("group", 1);
    if (w.size() != x.size() || y.size() != x.size() || w[1] != x[1] / groups ||
        x[1] % groups != 0 || w[0] % groups != 0) {
      g_.Fail(node, Value(node.input(1)).name, "does not fit the channels of the input");
    }
    const Window window = WindowOf(node, {w.begin() + 2, w.end()}, {x.begin() + 2, x.end()},
                                   {y.begin() + 2, y.end()});
    const bool bias = node.input(2) >= 0;
    ConvolutionOp op;
    op.channels = x[1];
    op.input = Lengths({x.begin() + 2, x.end()});
    op.filters = w[0];
    op.kernel = window.size;
    op.stride = window.stride;
    op.dilation = window.dilation;
    op.padding = window.zeros;
    op.groups = groups;
    op.bias = bias;
    op.input_gradient = trained_[static_cast<std::size_t>(node.input(0))];
    const auto outputs = static_cast<double>(Elements(node, node.outputs[0]));
    const double flop = (2 * window.area * static_cast<double>(w[1]) + (bias ? 1 : 0)) * outputs;
    // Only what one sample has one of can be measured.
    const bool once = PerSample(node, node.input(0), x[0]) == 1;
    const bool depthwise = groups > 1 && groups == x[1];
    Layer& layer =
        Append(node, depthwise ? LayerKind::kDepthwiseConvolution : LayerKind::kConvolution,
               window.flat && once ? Operation(op) : Operation(), flop);
    AddTensors(node.input(1), &layer);
    AddTensors(node.input(2), &layer);
  }

  // Every input meets every weight of its channel once; there is no operation of this kind.
  void TransposedConvolution(const OnnxNode& node) {
    const OnnxDims& w = Dims(node, node.input(1), 3);
    RequireWeight(node, 1, "weight");
    double weights = static_cast<double>(Product(w, 1, w.size()));
    const auto inputs = static_cast<double>(Elements(node, node.input(0)));
    const bool bias = node.input(2) >= 0;
    const auto outputs = static_cast<double>(Elements(node, node.outputs[0]));
    Layer& layer =
        Append(node, LayerKind::kConvolution, {}, 2 * weights * inputs + (bias ? outputs : 0));
    AddTensors(node.input(1), &layer);
    AddTensors(node.input(2), &layer);
  }

  void Dense(const OnnxNode& node, int data, int weight, std::int64_t inputs, std::int64_t units,
             int bias) {
    const int output = node.outputs[0];
    DenseOp op;
    op.inputs = inputs;
    op.units = units;
    const std::int64_t outputs = Elements(node, output);
    if (outputs % units != 0) g_.Fail(node, node.op, "has an output that does not fit its weight");
    op.positions = outputs / units;
    op.bias = bias >= 0;
    op.input_gradient = trained_[static_cast<std::size_t>(data)];
    const double flop =
        (2 * static_cast<double>(inputs) + (op.bias ? 1 : 0)) * static_cast<double>(outputs);
    Layer& layer = Append(node, LayerKind::kDense, op, flop);
    AddTensors(weight, &layer);
    AddTensors(bias, &layer);
  }

  // rows x depth times depth x columns, so many times in the whole batch.
  Layer& Products(const OnnxNode& node, LayerKind kind, std::int64_t count, std::int64_t rows,
                  std::int64_t columns, std::int64_t depth) {
    const int output = node.outputs[0];
    const double flop =
        2 * static_cast<double>(depth) * static_cast<double>(Elements(node, output));
    // The batch is among the products, or it is what one of them goes over.
    const std::int64_t samples = Samples(output);
    if (count % samples == 0) {
      count /= samples;
    } else if (count == 1 && rows % samples == 0) {
      rows /= samples;
    } else {
      PerSample(node, output, count);  // says why not
    }
    return Append(
        node, kind,
        BatchedProductOp{.count = count, .rows = rows, .columns = columns, .depth = depth}, flop);
  }

  void Gemm(const OnnxNode& node) {
    const int a = node.input(0);
    const int b = node.input(1);
    const OnnxDims& left = Dims(node, a, 2);
    const OnnxDims& right = Dims(node, b, 2);
    const bool turn_a = node.Int("transA", 0) != 0;
    const bool turn_b = node.Int("transB", 0) != 0;
    const std::int64_t depth = left[turn_a ? 0 : 1];
    const std::int64_t rows = left[turn_a ? 1 : 0];
    const std::int64_t columns = right[turn_b ? 0 : 1];
    if (right[turn_b ? 1 : 0] != depth) g_.Fail(node, node.op, "has operands that do not fit");
    if (IsWeight(b) && IsActivation(a)) {
      Dense(node, a, b, depth, columns, node.input(2));
    } else if (IsWeight(a) && IsActivation(b)) {
      Dense(node, b, a, depth, rows, node.input(2));
    } else {
      AddTensors(node.input(2), &Products(node, LayerKind::kAttention, 1, rows, columns, depth));
    }
  }

  void MatMul(const OnnxNode& node) {
    const int a = node.input(0);
    const int b = node.input(1);
    OnnxDims left = Dims(node, a, 1);
    OnnxDims right = Dims(node, b, 1);
    if (left.size() == 1) left.insert(left.begin(), 1);
    if (right.size() == 1) right.push_back(1);
    const std::int64_t depth = left.back();
    const std::int64_t rows = left[left.size() - 2];
    const std::int64_t columns = right.back();
    if (right[right.size() - 2] != depth) g_.Fail(node, node.op, "has operands that do not fit");
    const bool weighted = IsWeight(a) || IsWeight(b);
    if (weighted && IsWeight(b) && Product(right, 0, right.size() - 2) == 1) {
      return Dense(node, a, b, depth, columns, -1);
    }
    if (weighted && IsWeight(a) && Product(left, 0, left.size() - 2) == 1) {
      return Dense(node, b, a, depth, rows, -1);
    }
    const std::int64_t total = *OnnxElements(Dims(node, node.outputs[0]));
    Layer& layer = Products(node, weighted ? LayerKind::kDense : LayerKind::kAttention,
                            total / (rows * columns), rows, columns, depth);
    if (IsWeight(a)) AddTensors(a, &layer);
    if (IsWeight(b)) AddTensors(b, &layer);
  }

  void BatchNormalization(const OnnxNode& node) {
    const OnnxDims& x = Dims(node, node.input(0), 2);
    const std::int64_t elements = Elements(node, node.outputs[0]);
    const std::int64_t channels = x[1];
    if (elements % channels != 0) g_.Fail(node, node.op, "has channels that do not fit");
    Lengths2 image = Lengths({x.begin() + 2, x.end()});
    // Volumes, and several images a sample, are more rows.
    image.height = elements / channels / image.width;
    Layer& layer = Append(node, LayerKind::kNormalization,
                          NormalizationOp{NormalizationKind::kBatch, channels, image},
                          5 * static_cast<double>(elements));
    AddTensors(node.input(1), &layer);
    AddTensors(node.input(2), &layer);
    for (const std::size_t slot : {3U, 4U}) {
      layer.statistics += *OnnxElements(Dims(node, node.input(slot)));
    }
  }

  Layer& Normalize(const OnnxNode& node, const std::string& name, int output,
                   std::int64_t channels) {
    const std::int64_t elements = Elements(node, output);
    if (elements % channels != 0) g_.Fail(node, node.op, "normalises over the batch");
    return Append(name, LayerKind::kNormalization,
                  NormalizationOp{NormalizationKind::kLayer, channels, {elements / channels, 1}},
                  7 * static_cast<double>(elements), node, {output});
  }

  void LayerNormalization(const OnnxNode& node) {
    const OnnxDims& x = Dims(node, node.input(0), 1);
    const std::optional<std::size_t> axis = OnnxAxis(node.Int("axis", -1), x.size());
    if (!axis) g_.Fail(node, "axis", "is not an axis of the input");
    Layer& layer = Normalize(node, node.name, node.outputs[0], Product(x, *axis, x.size()));
    AddAffine(node, &layer);
  }

  // Over the positions of a channel.
  void InstanceNormalization(const OnnxNode& node) {
    const OnnxDims& x = Dims(node, node.input(0), 3);
    Layer& layer = Normalize(node, node.name, node.outputs[0], Product(x, 2, x.size()));
    AddAffine(node, &layer);
  }

  void GroupNormalization(const OnnxNode& node) {
    const OnnxDims& x = Dims(node, node.input(0), 3);
    const std::int64_t groups = node.Int("num_groups", 1);
    if (x[1] % groups != 0) g_.Fail(node, "num_groups", "does not divide the channels");
    Layer& layer = Normalize(node, node.name, node.outputs[0], Product(x, 1, x.size()) / groups);
    AddAffine(node, &layer);
  }

  // A Constant node stands for a normalisation without scale and shift.
  void AddAffine(const OnnxNode& node, Layer* layer) {
    for (const std::size_t slot : {1U, 2U}) {
      if (Is(node.input(slot), OnnxOrigin::kParameters)) AddTensors(node.input(slot), layer);
    }
  }

  void Recurrent(const OnnxNode& node) {
    const OnnxDims& x = Dims(node, node.input(0), 3);
    const OnnxDims& w = Dims(node, node.input(1), 3);
    const OnnxDims& r = Dims(node, node.input(2), 3);
    RequireWeight(node, 1, "weight");
    RequireWeight(node, 2, "weight");
    const bool lstm = node.op == "LSTM";
    const std::int64_t gates = lstm ? 4 : 3;
    if (lstm && node.input(7) >= 0) {
      g_.Fail(node, Value(node.input(7)).name, "are peepholes", "an LSTM without them");
    }
    const bool batch_first = node.Int("layout", 0) != 0;
    RecurrentOp op;
    op.cell = lstm ? RecurrentCell::kLstm : RecurrentCell::kGru;
    op.positions = x[batch_first ? 1 : 0];
    op.inputs = x[2];
    op.hidden = r[2];
    op.directions = w[0];
    if (op.directions > 2 || w[1] != gates * op.hidden || r[1] != w[1] || w[2] != op.inputs ||
        r[0] != w[0]) {
      g_.Fail(node, Value(node.input(1)).name, "does not fit the input and the hidden state");
    }
    const int data = node.input(0);
    const std::int64_t sequences = PerSample(node, data, x[batch_first ? 0 : 1]);
    const bool bias = node.input(3) >= 0;
    if (bias && Dims(node, node.input(3)) != OnnxDims{op.directions, 2 * gates * op.hidden}) {
      g_.Fail(node, Value(node.input(3)).name, "does not fit the input and the hidden state");
    }
    const double element_flop = static_cast<double>((bias ? 3 : 1) * gates + (lstm ? 18 : 13));
    const double outputs = static_cast<double>(sequences) * static_cast<double>(op.positions) *
                           static_cast<double>(op.directions * op.hidden);
    const double flop =
        outputs * (2 * static_cast<double>(gates * (op.inputs + op.hidden)) + element_flop);
    Layer& layer = out_.layers.emplace_back();
    layer.name = node.name;
    layer.kind = LayerKind::kRecurrent;
    if (sequences == 1) layer.operation = op;
    layer.forward_flop = Flop(flop);
    layer.activation_bytes = Bytes(4 * outputs);
    AddRecurrentTensors(node, op.directions, &layer);
  }

  // As frameworks store them: a tensor for each direction, and two biases. Exporters may have
  // joined them.
  void AddRecurrentTensors(const OnnxNode& node, std::int64_t directions, Layer* layer) {
    std::vector<std::pair<int, std::int64_t>> joined;  // parameter, parts
    for (const std::size_t slot : {1U, 2U, 3U}) {
      const int value = node.input(slot);
      if (value < 0) continue;
      const OnnxValue& v = Value(value);
      const bool whole =
          v.parameter >= 0 && v.producer < 0 && !counted_[static_cast<std::size_t>(v.parameter)];
      if (!whole) {
        for (const auto& [parameter, parts] : joined) AddParts(parameter, parts, 1, layer);
        joined.clear();
        AddTensors(value, layer);
        continue;
      }
      counted_[static_cast<std::size_t>(v.parameter)] = true;
      reads_parameters_ = true;
      joined.emplace_back(v.parameter, directions * (slot == 3 ? 2 : 1));
    }
    for (std::int64_t direction = 0; direction < directions; ++direction) {
      for (const auto& [parameter, parts] : joined) {
        AddParts(parameter, parts, parts / directions, layer);
      }
    }
  }
  void AddParts(int parameter, std::int64_t parts, std::int64_t count, Layer* layer) const {
    const std::int64_t elements = g_.parameters[static_cast<std::size_t>(parameter)].elements;
    layer->tensors.insert(layer->tensors.end(), static_cast<std::size_t>(count), elements / parts);
  }

  void Gather(const OnnxNode& node) {
    const int table = node.input(0);
    if (!IsWeight(table)) return Copy(node);
    const OnnxDims& dims = Dims(node, table, 1);
    const std::optional<std::size_t> axis = OnnxAxis(node.Int("axis", 0), dims.size());
    if (!axis) g_.Fail(node, "axis", "is not an axis of the table");
    EmbeddingOp op;
    op.rows = dims[*axis];
    op.features = *OnnxElements(dims) / op.rows;
    op.tokens = Elements(node, node.outputs[0]) / op.features;
    Layer& layer = Append(node, LayerKind::kEmbedding, op, 0);
    AddTensors(table, &layer);
  }

  Function FunctionOf(const OnnxNode& node) const {
    // An operator without a function of its own is taken as one with the same work.
    static const std::map<std::string, Function> kFunctions = {
        {"Relu", Function::kRelu},           {"ThresholdedRelu", Function::kRelu},
        {"LeakyRelu", Function::kLeakyRelu}, {"PRelu", Function::kLeakyRelu},
        {"Sigmoid", Function::kSigmoid},     {"HardSigmoid", Function::kSigmoid},
        {"Elu", Function::kSigmoid},         {"Selu", Function::kSigmoid},
        {"Celu", Function::kSigmoid},        {"Softplus", Function::kSigmoid},
        {"Softsign", Function::kSigmoid},    {"HardSwish", Function::kSwish},
        {"Mish", Function::kSwish},          {"Tanh", Function::kTanh},
        {"FastGelu", Function::kGeluTanh}};
    if (node.op == "Gelu") {
      return node.Text("approximate", "none") == "tanh" ? Function::kGeluTanh : Function::kGelu;
    }
    if (node.op != "Clip") return kFunctions.at(node.op);
    const auto bound = [&](const char* attribute, std::size_t slot) -> std::optional<double> {
      if (node.Has(attribute)) return node.Float(attribute, 0);
      const int value = node.input(slot);
      if (value < 0 || !Value(value).data || Value(value).data->values.size() != 1) {
        return std::nullopt;
      }
      return Value(value).data->values[0];
    };
    const std::optional<double> low = bound("min", 1);
    const std::optional<double> high = bound("max", 2);
    if (low == 0.0 && high == 6.0) return Function::kRelu6;
    const bool open = !node.Has("max") && node.input(2) < 0;
    return low == 0.0 && open ? Function::kRelu : Function::kHardtanh;
  }

  void Activation(const OnnxNode& node) {
    const Function function = FunctionOf(node);
    const std::int64_t elements = Elements(node, node.outputs[0]);
    Layer& layer = Append(node, LayerKind::kActivation, ActivationOp{function, 1, elements},
                          FlopPerElement(function) * static_cast<double>(elements));
    if (node.op == "PRelu") AddTensors(node.input(1), &layer);
  }

  void Softmax(const OnnxNode& node) {
    const OnnxDims& x = Dims(node, node.input(0), 1);
    constexpr int kOneAxis = 13;  // before it, all from the axis on
    std::int64_t axis = node.Int("axis", node.opset < kOneAxis ? 1 : -1);
    const auto rank = static_cast<std::int64_t>(x.size());
    if (axis < 0) axis += rank;
    if (axis < 0 || axis > rank || (axis == rank && node.opset >= kOneAxis)) {
      g_.Fail(node, "axis", "is not an axis of the input");
    }
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t columns = node.opset < kOneAxis ? Product(x, at, x.size()) : x[at];
    const std::int64_t elements = Elements(node, node.outputs[0]);
    if (elements % columns != 0) g_.Fail(node, node.op, "goes over the batch");
    Append(node, LayerKind::kActivation,
           ActivationOp{Function::kSoftmax, elements / columns, columns},
           FlopPerElement(Function::kSoftmax) * static_cast<double>(elements));
  }

  void Pooling(const OnnxNode& node) {
    const OnnxDims& x = Dims(node, node.input(0), 3);
    const OnnxDims& y = Dims(node, node.outputs[0], 3);
    const OnnxDims size = node.Ints("kernel_shape");
    if (y.size() != x.size() || size.size() + 2 != x.size()) {
      g_.Fail(node, "kernel_shape", "has not a length for each dimension");
    }
    const Window window = WindowOf(node, size, {x.begin() + 2, x.end()}, {y.begin() + 2, y.end()});
    PoolingOp op;
    op.kind = node.op == "MaxPool" ? PoolingKind::kMax : PoolingKind::kAverage;
    op.channels = PerSample(node, node.input(0), x[0] * x[1]);
    op.input = Lengths({x.begin() + 2, x.end()});
    op.window = window.size;
    op.stride = window.stride;
    op.padding = window.zeros;
    const double flop = window.area * static_cast<double>(Elements(node, node.outputs[0]));
    const bool stated = window.flat && window.dilation == Lengths2{};
    Append(node, LayerKind::kPooling, stated ? Operation(op) : Operation(), flop);
  }

  void GlobalPooling(const OnnxNode& node) {
    const OnnxDims& x = Dims(node, node.input(0), 3);
    Lengths2 image = Lengths({x.begin() + 2, x.end()});
    image.height = Product(x, 2, x.size()) / image.width;
    Pool(node, node.op == "GlobalMaxPool" ? PoolingKind::kMax : PoolingKind::kAverage, image);
  }

  // Over axes of one sample: pooling with a window of them all.
  void Reduction(const OnnxNode& node) {
    const OnnxDims& x = Dims(node, node.input(0));
    const OnnxDims axes = OnnxReductionAxes(g_, node, x.size());
    if (axes.empty()) return;
    OnnxDims lengths;
    for (const std::int64_t axis : axes) lengths.push_back(x[static_cast<std::size_t>(axis)]);
    Lengths2 image{Product(lengths, 0, lengths.size()), 1};
    if (axes.size() == 2 && axes[0] < axes[1]) image = {lengths[0], lengths[1]};
    Pool(node,
         node.op == "ReduceMax" || node.op == "ReduceMin" ? PoolingKind::kMax
                                                          : PoolingKind::kAverage,
         image);
  }

  void Pool(const OnnxNode& node, PoolingKind kind, const Lengths2& image) {
    const std::int64_t inputs = Elements(node, node.input(0));
    const std::int64_t area = image.height * image.width;
    // A sum over the whole batch, as of a loss, is no work of one sample's own.
    if (inputs % area != 0) g_.Fail(node, node.op, "goes over the batch", "axes of one sample");
    PoolingOp op;
    op.kind = kind;
    op.channels = inputs / area;
    op.input = image;
    op.window = image;
    Append(node, LayerKind::kPooling, op, static_cast<double>(inputs));
  }

  // The output is the input, seen otherwise.
  void View(const OnnxNode&) {}

  void Copy(const OnnxNode& node) {
    const int output = node.outputs[0];
    const bool moves = node.op == "Transpose" || node.op.starts_with("Gather") ||
                       node.op.starts_with("Scatter") || node.op == "Trilu";
    if (!moves && node.outputs.size() == 1 && Dims(node, output) == Dims(node, node.input(0))) {
      return;
    }
    std::int64_t elements = 0;
    for (const int value : node.outputs) {
      if (value >= 0) elements += Elements(node, value);
      if (elements > kMostTensorElements) g_.Fail(node, "", "copies too much", "10^15 elements");
    }
    Layer& layer = Append(node, LayerKind::kReshape, CopyOp{elements}, 0);
    layer.activation_bytes = Bytes(4 * static_cast<double>(elements));
    // Concat may join parameters; the other inputs of these operators are scales, sizes and
    // paddings.
    const std::size_t slots = node.op == "Concat" ? node.inputs.size() : 1;
    for (std::size_t slot = 0; slot < slots; ++slot) {
      if (Is(node.inputs[slot], OnnxOrigin::kParameters)) AddTensors(node.inputs[slot], &layer);
    }
  }

  // Images have their channels second, everything else has them last.
  static std::int64_t Channels(const OnnxDims& dims) {
    if (dims.empty()) return 1;
    return dims.size() >= 4 ? dims[1] : dims.back();
  }

  // The layer that alone computes `value`, where nothing else reads it.
  Layer* OnlyReaderOf(int value) {
    const int layer = layer_of_[static_cast<std::size_t>(value)];
    if (layer < 0 || Value(value).consumers.size() != 1 || Value(value).is_output) return nullptr;
    return &out_.layers[static_cast<std::size_t>(layer)];
  }

  // A vector added to a product or convolution without a bias is its bias; a constant factor
  // of a batched product is part of it.
  bool Folds(const OnnxNode& node) {
    if (node.inputs.size() != 2) return false;
    const bool first = IsActivation(node.inputs[0]);
    const int data = node.inputs[first ? 0 : 1];
    const int other = node.inputs[first ? 1 : 0];
    if (!IsActivation(data) || IsActivation(other) || other < 0 || !Value(other).dims) return false;
    if (node.op == "Div" && !first) return false;
    Layer* layer = OnlyReaderOf(data);
    if (layer == nullptr || Dims(node, data) != Dims(node, node.outputs[0])) return false;
    const std::optional<std::int64_t> length = OnnxElements(*Value(other).dims);
    const double elements = static_cast<double>(Elements(node, data));
    if (node.op == "Add" && Is(other, OnnxOrigin::kParameters)) {
      const OnnxDims& shape = *Value(other).dims;
      auto* dense = std::get_if<DenseOp>(&layer->operation);
      auto* convolution = std::get_if<ConvolutionOp>(&layer->operation);
      if (dense != nullptr && !dense->bias && length == dense->units && !shape.empty() &&
          shape.back() == dense->units && Dims(node, data).back() == dense->units) {
        dense->bias = true;
      } else if (convolution != nullptr && !convolution->bias && length == convolution->filters &&
                 shape.size() + 1 >= Dims(node, data).size() &&
                 shape[shape.size() + 1 - Dims(node, data).size()] == convolution->filters) {
        convolution->bias = true;
      } else {
        return false;
      }
      AddTensors(other, layer);
    } else if ((node.op == "Mul" || node.op == "Div") && length == 1 &&
               std::holds_alternative<BatchedProductOp>(layer->operation) &&
               layer->kind == LayerKind::kAttention) {
      // The scale of attention's scores.
    } else {
      return false;
    }
    layer->forward_flop += Flop(elements);
    layer_of_[static_cast<std::size_t>(node.outputs[0])] =
        layer_of_[static_cast<std::size_t>(data)];
    return true;
  }

  // Whether a value is a number, or one number throughout, as low as 16 bits hide scores with.
  bool Hides(int value) const {
    constexpr double kHidden = -1e4;
    if (value < 0) return false;
    const auto is_low = [](const OnnxData& data) {
      return !data.values.empty() && std::all_of(data.values.begin(), data.values.end(),
                                                 [](double one) { return one <= kHidden; });
    };
    if (Value(value).data) return is_low(*Value(value).data);
    if (Value(value).producer < 0) return false;
    const OnnxNode& node = g_.nodes[static_cast<std::size_t>(Value(value).producer)];
    if (node.op == "Expand") {
      const int one = node.input(0);
      return one >= 0 && Value(one).data && is_low(*Value(one).data);
    }
    const auto* fill = node.Find<OnnxData>("value");
    return node.op == "ConstantOfShape" && fill != nullptr && is_low(*fill);
  }
  bool IsNumber(int value) const {
    return value >= 0 && Value(value).dims && OnnxElements(*Value(value).dims) == 1;
  }

  // A table of which Trilu has cut one half off, at its diagonal, and what became of the halves.
  struct CutTable {
    bool is_cut = false;
    bool hides = false;  // one of them is as low as hides scores
  };
  CutTable CutOf(int value) const {
    constexpr int kMostSteps = 32;  // a mask is made in a handful
    static const std::set<std::string> kViews = {"Cast",    "Expand",    "Identity",
                                                 "Reshape", "Unsqueeze", "Squeeze"};
    static const std::set<std::string> kWithNumbers = {"Equal", "Mul", "Not", "Sub", "Where"};
    CutTable cut;
    for (int i = 0; i < kMostSteps && value >= 0 && Value(value).producer >= 0; ++i) {
      const OnnxNode& node = g_.nodes[static_cast<std::size_t>(Value(value).producer)];
      if (node.op == "Trilu") {
        const std::optional<OnnxDims> diagonal = g_.KnownIntegers(node.input(1), 1);
        if (node.input(1) >= 0 && (!diagonal || diagonal->size() != 1)) return {};
        cut.is_cut = !diagonal || (diagonal->front() >= -1 && diagonal->front() <= 1);
        cut.hides = cut.hides || Hides(node.input(0));
        return cut;
      }
      if (kViews.count(node.op) > 0) {
        value = node.input(0);
        continue;
      }
      if (kWithNumbers.count(node.op) == 0) return {};
      value = -1;
      for (const int input : node.inputs) {
        if (IsNumber(input)) {
          cut.hides = cut.hides || Hides(input);
        } else if (value >= 0) {
          return {};
        } else {
          value = input;
        }
      }
    }
    return {};
  }

  // Notes on the product that makes attention's scores that a mask hides one half of them: added to
  // them, or choosing among them. Which half is all the same.
  void NoteMask(const OnnxNode& node) {
    if (node.inputs.size() != (node.op == "Where" ? 3U : 2U)) return;
    if (node.op != "Add" && node.op != "Where") return;
    const std::size_t first = node.op == "Where" ? 1 : 0;
    for (const std::size_t slot : {first, first + 1}) {
      const int scores = node.inputs[slot];
      const int other = node.inputs[2 * first + 1 - slot];
      if (scores < 0 || layer_of_[static_cast<std::size_t>(scores)] < 0) continue;
      Layer& layer =
          out_.layers[static_cast<std::size_t>(layer_of_[static_cast<std::size_t>(scores)])];
      const auto* product = std::get_if<BatchedProductOp>(&layer.operation);
      if (layer.kind != LayerKind::kAttention || product == nullptr) continue;
      if (product->rows != product->columns) continue;
      const int mask = node.op == "Where" ? node.inputs[0] : other;
      const std::optional<OnnxDims>& dims = g_.DimsOf(mask);
      if (!dims || dims->size() < 2 || dims->back() != product->columns ||
          (*dims)[dims->size() - 2] != product->rows) {
        continue;
      }
      const CutTable cut = CutOf(mask);
      const bool hides = node.op == "Where" ? IsNumber(other) && Hides(other) : cut.hides;
      if (cut.is_cut && hides) layer.causal = true;
    }
  }

  void Elementwise(const OnnxNode& node) {
    if (Folds(node)) return;
    NoteMask(node);
    const int output = node.outputs[0];
    const OnnxDims& dims = Dims(node, output);
    const std::int64_t elements = Elements(node, output);
    static const std::set<std::string> kProducts = {"Mul", "Div", "Pow", "Sqrt", "Exp",       "Log",
                                                    "Erf", "Sin", "Cos", "Mod",  "Reciprocal"};
    ElementwiseOp op;
    op.kind = kProducts.count(node.op) > 0 ? ElementwiseKind::kMultiply : ElementwiseKind::kAdd;
    int whole = 0;  // operands as large as the output
    std::int64_t smaller = 0;
    for (const int value : node.inputs) {
      if (value < 0 || (!IsActivation(value) && !Is(value, OnnxOrigin::kParameters))) continue;
      const std::int64_t own = Elements(node, value);
      if (own == elements) {
        ++whole;
      } else {
        smaller = std::max(smaller, own);
      }
    }
    op.broadcast = whole < 2;
    op.channels = Channels(dims);
    // A value for each channel, wherever these are.
    if (op.broadcast && smaller > 1) op.channels = smaller;
    if (elements % op.channels != 0) op.channels = 1;
    op.positions = elements / op.channels;
    const auto operands = static_cast<double>(std::count_if(node.inputs.begin(), node.inputs.end(),
                                                            [](int value) { return value >= 0; }));
    const bool many = node.op == "Sum" || node.op == "Mean" || node.op == "Max" || node.op == "Min";
    const double flop = (many ? std::max(1.0, operands - 1) : 1) * static_cast<double>(elements);
    Layer& layer = Append(node, LayerKind::kElementwise, op, flop);
    // Sums and products have parameters; what is subtracted, compared or divided by is a constant.
    if (node.op != "Add" && node.op != "Mul" && node.op != "Sum") return;
    for (const int value : node.inputs) {
      if (Is(value, OnnxOrigin::kParameters) && Elements(node, value) > 1) {
        AddTensors(value, &layer);
      }
    }
  }

  const OnnxGraph& g_;
  OnnxLayers out_;
  std::vector<bool> trained_;      // values: whether they depend on a parameter
  std::vector<int> layer_of_;      // values: the layer that computes them, or -1
  std::vector<int> tied_;          // values: the matrix that they are, or -1
  std::vector<bool> counted_;      // parameters
  std::vector<bool> walked_;       // nodes: their parameters are counted
  bool reads_parameters_ = false;  // the node in hand does
};

}  // namespace

OnnxLayers LayersOfOnnx(const OnnxGraph& graph) { return Writer(graph).Write(); }

}  // namespace stepcast
