#include "data/record/operation_counts.h"

namespace stepcast {
namespace {

double Area(const Lengths2& lengths) {
  return static_cast<double>(lengths.height) * static_cast<double>(lengths.width);
}

// One sample's forward pass, from which both passes are counted.
struct Forward {
  double flop = 0;
  double inputs = 0;
  double outputs = 0;
  double parameters = 0;
  bool input_gradient = true;
};

Forward Count(const ConvolutionOp& o) {
  Forward f;
  const auto filters = static_cast<double>(o.filters);
  const double weights_per_filter =
      Area(o.kernel) * static_cast<double>(o.channels) / static_cast<double>(o.groups);
  f.inputs = static_cast<double>(o.channels) * Area(o.input);
  f.outputs = filters * Area(o.output());
  f.flop = 2 * weights_per_filter * f.outputs + (o.bias ? f.outputs : 0);
  f.parameters = weights_per_filter * filters + (o.bias ? filters : 0);
  f.input_gradient = o.input_gradient;
  return f;
}

Forward Count(const DenseOp& o) {
  Forward f;
  const auto positions = static_cast<double>(o.positions);
  const auto inputs = static_cast<double>(o.inputs);
  const auto units = static_cast<double>(o.units);
  f.inputs = positions * inputs;
  f.outputs = positions * units;
  f.flop = 2 * inputs * f.outputs + (o.bias ? f.outputs : 0);
  f.parameters = inputs * units + (o.bias ? units : 0);
  f.input_gradient = o.input_gradient;
  return f;
}

Forward Count(const NormalizationOp& o) {
  Forward f;
  const bool batch = o.kind == NormalizationKind::kBatch;
  f.inputs = f.outputs = static_cast<double>(o.channels) * Area(o.input);
  f.flop = (batch ? 5 : 7) * f.outputs;
  f.parameters = 2 * static_cast<double>(o.channels);
  return f;
}

Forward Count(const PoolingOp& o) {
  Forward f;
  f.inputs = static_cast<double>(o.channels) * Area(o.input);
  f.outputs = static_cast<double>(o.channels) * Area(o.output());
  f.flop = Area(o.window) * f.outputs;
  return f;
}

Forward Count(const RecurrentOp& o) {
  Forward f;
  const bool lstm = o.cell == RecurrentCell::kLstm;
  const double gates = lstm ? 4 : 3;
  const auto inputs = static_cast<double>(o.inputs);
  const auto positions = static_cast<double>(o.positions);
  const auto hidden = static_cast<double>(o.hidden);
  const auto directions = static_cast<double>(o.directions);
  const double element_flop = 3 * gates + (lstm ? 18 : 13);
  f.inputs = positions * inputs;
  f.outputs = positions * directions * hidden;
  f.flop = f.outputs * (2 * gates * (inputs + hidden) + element_flop);
  f.parameters = directions * gates * hidden * (inputs + hidden + 2);
  return f;
}

OperationCounts WithParameters(const Forward& f, TrainingPass pass) {
  if (pass == TrainingPass::kForward) return {f.flop, f.inputs + f.outputs, f.parameters};
  const double gradients = f.input_gradient ? 2 : 1;
  return {gradients * f.flop, gradients * (f.inputs + f.outputs), gradients * f.parameters};
}

// Backward reads the gradient of the output and `kept` values, and writes that of the input.
OperationCounts WithoutParameters(const Forward& f, double kept, TrainingPass pass) {
  if (pass == TrainingPass::kForward) return {f.flop, f.inputs + f.outputs, 0};
  return {f.flop, f.inputs + f.outputs + kept, 0};
}

OperationCounts CountOne(const std::monostate&, TrainingPass) { return {}; }
OperationCounts CountOne(const ConvolutionOp& o, TrainingPass pass) {
  return WithParameters(Count(o), pass);
}
OperationCounts CountOne(const DenseOp& o, TrainingPass pass) {
  return WithParameters(Count(o), pass);
}
OperationCounts CountOne(const RecurrentOp& o, TrainingPass pass) {
  return WithParameters(Count(o), pass);
}
OperationCounts CountOne(const NormalizationOp& o, TrainingPass pass) {
  const Forward f = Count(o);
  OperationCounts counts = WithoutParameters(f, f.inputs, pass);
  counts.elements = f.parameters;
  return counts;
}
OperationCounts CountOne(const PoolingOp& o, TrainingPass pass) {
  const Forward f = Count(o);
  return WithoutParameters(f, o.kind == PoolingKind::kMax ? f.outputs : 0, pass);
}
OperationCounts CountOne(const ActivationOp& o, TrainingPass pass) {
  Forward f;
  f.inputs = f.outputs = static_cast<double>(o.rows) * static_cast<double>(o.columns);
  f.flop = FlopPerElement(o.function) * f.outputs;
  return WithoutParameters(f, f.outputs, pass);
}
OperationCounts CountOne(const BatchedProductOp& o, TrainingPass pass) {
  const auto count = static_cast<double>(o.count);
  const auto rows = static_cast<double>(o.rows);
  const auto columns = static_cast<double>(o.columns);
  const auto depth = static_cast<double>(o.depth);
  const double flop = 2 * count * rows * columns * depth;
  const double elements = count * (rows * depth + depth * columns + rows * columns);
  const double products = pass == TrainingPass::kForward ? 1 : 2;
  return {products * flop, products * elements, 0};
}
OperationCounts CountOne(const ElementwiseOp& o, TrainingPass pass) {
  const double elements = static_cast<double>(o.channels) * static_cast<double>(o.positions);
  const double other = o.broadcast ? static_cast<double>(o.channels) : elements;
  const bool product_rule = pass == TrainingPass::kBackward && o.kind == ElementwiseKind::kMultiply;
  // dz y and dz x, each of two read and one written; where y is broadcast, dz x is of all positions
  // and another pass adds it up. A sum's fork adds two gradients up, a broadcast sum has one to add
  // up over positions.
  if (product_rule && o.broadcast) return {3 * elements, 6 * elements + 2 * other, 0};
  if (product_rule) return {2 * elements, 6 * elements, 0};
  if (pass == TrainingPass::kBackward && o.broadcast) return {elements, elements + other, 0};
  return {elements, 2 * elements + other, 0};
}
OperationCounts CountOne(const EmbeddingOp& o, TrainingPass pass) {
  const double looked_up = static_cast<double>(o.tokens) * static_cast<double>(o.features);
  const double table = static_cast<double>(o.rows) * static_cast<double>(o.features);
  // The gradient is dense: all rows are set to zero before those looked up are added.
  if (pass == TrainingPass::kBackward) return {looked_up, 3 * looked_up, table};
  return {0, 2 * looked_up, 0};
}
OperationCounts CountOne(const CopyOp& o, TrainingPass) {
  return {0, 2 * static_cast<double>(o.elements), 0};
}
OperationCounts CountOne(const AllocateOp& o, TrainingPass) {
  return {0, 0, static_cast<double>(o.elements)};
}
OperationCounts CountOne(const UpdateOp& o, TrainingPass) {
  const auto parameters = static_cast<double>(o.parameters);
  // Read and written, each arithmetic operation in a pass of its own. sgd: p -= a g. momentum:
  // v *= c; v += g; p -= a v. adam: m *= b; m += (1-b) g; v *= c; v += (1-c) g g; then the root of
  // v, its scale and its sum with e, each into a tensor of their own, and p -= a m over that: 2 +
  // 3 + 2 + 3 + 2 + 2 + 2 + 4.
  constexpr double kTouches[kOptimizerCount] = {3, 8, 20};
  return {0, 0, kTouches[static_cast<int>(o.optimizer)] * parameters};
}

}  // namespace

int FlopPerElement(Function function) {
  switch (function) {
    case Function::kRelu:
    case Function::kTanh:
      return 1;
    case Function::kRelu6:      // two comparisons
    case Function::kLeakyRelu:  // comparison, product
    case Function::kHardtanh:
      return 2;
    case Function::kSigmoid:  // 1 / (1 + exp(-x))
      return 4;
    case Function::kSwish:    // x * sigmoid(x)
    case Function::kGelu:     // x * 0.5 * (1 + erf(x * c))
    case Function::kSoftmax:  // maximum, difference, exponential, sum, quotient
      return 5;
    case Function::kGeluTanh:  // 0.5 * x * (1 + tanh(c * (x + d * x^3)))
      return 9;
  }
  return 0;
}

OperationCounts CountOperation(const Operation& operation, TrainingPass pass) {
  return std::visit([&](const auto& op) { return CountOne(op, pass); }, operation);
}

}  // namespace stepcast
