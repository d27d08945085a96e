// The counts of operations, held against those of the catalogue layer by layer.
#include "data/record/operation_counts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "data/record/workload.h"
#include "data/workloads/catalog.h"

namespace stepcast {
namespace {

OperationCounts Forward(const Operation& operation) {
  return CountOperation(operation, TrainingPass::kForward);
}
OperationCounts Backward(const Operation& operation) {
  return CountOperation(operation, TrainingPass::kBackward);
}

void ExpectCounts(const OperationCounts& counts, double flop, double per_sample, double fixed) {
  EXPECT_EQ(counts.flop_per_sample, flop);
  EXPECT_EQ(counts.elements_per_sample, per_sample);
  EXPECT_EQ(counts.elements, fixed);
}

// ---- By hand.

// 3 x 5 x 5 to 4 x 3 x 3 by 3 x 3: 27 weights a filter, 36 outputs, 75 inputs.
TEST(OperationCounts, Convolution) {
  ConvolutionOp o;
  o.channels = 3;
  o.input = {5, 5};
  o.filters = 4;
  o.kernel = {3, 3};
  ExpectCounts(Forward(o), 2 * 27 * 36, 75 + 36, 108);
  ExpectCounts(Backward(o), 4 * 27 * 36, 2 * (75 + 36), 2 * 108);
  o.input_gradient = false;
  ExpectCounts(Backward(o), 2 * 27 * 36, 75 + 36, 108);
  o.bias = true;
  ExpectCounts(Forward(o), 2 * 27 * 36 + 36, 75 + 36, 108 + 4);
}

// Depthwise: 9 weights a filter. Stride 2 with zeros: 5 + 2 - 3 over 2, and one.
TEST(OperationCounts, GroupsStrideAndZeros) {
  ConvolutionOp o;
  o.channels = o.filters = o.groups = 3;
  o.input = {5, 5};
  o.kernel = {3, 3};
  o.stride = {2, 1};
  o.padding = {1, 1, 1, 1};
  EXPECT_EQ(o.output(), (Lengths2{3, 5}));
  ExpectCounts(Forward(o), 2 * 9 * 45, 75 + 45, 27);
  o.dilation = {2, 1};
  EXPECT_EQ(o.output(), (Lengths2{2, 5}));
}

// An incomplete last window needs zeros behind the input only.
TEST(OperationCounts, Pooling) {
  const PoolingOp max{PoolingKind::kMax, 2, {112, 112}, {3, 3}, {2, 2}, {0, 0, 1, 1}};
  EXPECT_EQ(max.output(), (Lengths2{56, 56}));
  const PoolingOp wide{PoolingKind::kMax, 2, {12, 20}, {2, 4}, {2, 3}, {1, 0, 1, 2}};
  EXPECT_EQ(wide.output(), (Lengths2{(12 + 2 - 2) / 2 + 1, (20 + 2 - 4) / 3 + 1}));
  const double in = 2 * 112 * 112;
  const double out = 2 * 56 * 56;
  ExpectCounts(Forward(max), 9 * out, in + out, 0);
  ExpectCounts(Backward(max), 9 * out, in + 2 * out, 0);
  PoolingOp average = max;
  average.kind = PoolingKind::kAverage;
  ExpectCounts(Forward(average), 9 * out, in + out, 0);
  ExpectCounts(Backward(average), 9 * out, in + out, 0);
}

TEST(OperationCounts, Dense) {
  ExpectCounts(Forward(DenseOp{7, 3, 2, true}), 2 * 3 * 14 + 14, 21 + 14, 6 + 2);
  ExpectCounts(Backward(DenseOp{7, 3, 2, true}), 2 * (2 * 3 * 14 + 14), 2 * (21 + 14), 2 * 8);
  ExpectCounts(Backward(DenseOp{7, 3, 2, false, false}), 2 * 3 * 14, 21 + 14, 6);
}

TEST(OperationCounts, BatchedProduct) {
  const BatchedProductOp o{12, 5, 7, 3};
  ExpectCounts(Forward(o), 2 * 12 * 5 * 7 * 3, 12 * (15 + 21 + 35), 0);
  ExpectCounts(Backward(o), 4 * 12 * 5 * 7 * 3, 2 * 12 * (15 + 21 + 35), 0);
}

TEST(OperationCounts, ElementByElement) {
  const NormalizationOp batch{NormalizationKind::kBatch, 4, {3, 3}};
  ExpectCounts(Forward(batch), 5 * 36, 72, 8);
  ExpectCounts(Backward(batch), 5 * 36, 108, 8);
  const NormalizationOp layer{NormalizationKind::kLayer, 4, {3, 3}};
  ExpectCounts(Forward(layer), 7 * 36, 72, 8);
  const ActivationOp softmax{Function::kSoftmax, 10, 20};
  ExpectCounts(Forward(softmax), 5 * 200, 400, 0);
  ExpectCounts(Backward(softmax), 5 * 200, 600, 0);
  const ElementwiseOp sum{ElementwiseKind::kAdd, 4, 9};
  ExpectCounts(Forward(sum), 36, 108, 0);
  ExpectCounts(Backward(sum), 36, 108, 0);
  const ElementwiseOp product{ElementwiseKind::kMultiply, 4, 9, true};
  ExpectCounts(Forward(product), 36, 72 + 4, 0);
  // Two products, of which one is written and read again to be added up over the positions.
  ExpectCounts(Backward(product), 108, 216 + 8, 0);
  const ElementwiseOp gate{ElementwiseKind::kMultiply, 4, 9};
  ExpectCounts(Forward(gate), 36, 108, 0);
  ExpectCounts(Backward(gate), 72, 216, 0);
  ExpectCounts(Forward(CopyOp{50}), 0, 100, 0);
  ExpectCounts(Backward(CopyOp{50}), 0, 100, 0);
}

TEST(OperationCounts, Embedding) {
  const EmbeddingOp o{1000, 8, 5};
  ExpectCounts(Forward(o), 0, 80, 0);
  ExpectCounts(Backward(o), 40, 120, 8000);
}

// One direction: 4 gates, 3 + 2 inputs, two biases a gate.
TEST(OperationCounts, Recurrent) {
  const RecurrentOp lstm{RecurrentCell::kLstm, 7, 3, 2, 1};
  ExpectCounts(Forward(lstm), 14 * (2 * 4 * 5 + 12 + 18), 21 + 14, 4 * 2 * (5 + 2));
  const RecurrentOp gru{RecurrentCell::kGru, 7, 3, 2, 2};
  ExpectCounts(Forward(gru), 28 * (2 * 3 * 5 + 9 + 13), 21 + 28, 2 * 3 * 2 * (5 + 2));
  ExpectCounts(Backward(gru), 2 * 28 * (2 * 3 * 5 + 9 + 13), 2 * (21 + 28), 2 * 2 * 3 * 2 * 7);
}

TEST(OperationCounts, Updates) {
  const double touches[] = {3, 8, 20};
  for (int i = 0; i < kOptimizerCount; ++i) {
    ExpectCounts(CountOperation(UpdateOp{static_cast<Optimizer>(i), 100}, TrainingPass::kUpdate), 0,
                 0, 100 * touches[i]);
  }
}

TEST(OperationCounts, WhatIsNotStatedCountsNothing) {
  for (const TrainingPass pass :
       {TrainingPass::kForward, TrainingPass::kBackward, TrainingPass::kUpdate}) {
    ExpectCounts(CountOperation({}, pass), 0, 0, 0);
  }
}

// The longest lengths overflow nothing.
TEST(OperationCounts, HugeLengthsStayFinite) {
  constexpr std::int64_t kLong = 2'000'000;
  EXPECT_EQ(Forward(DenseOp{kLong, kLong, kLong}).flop_per_sample, 2 * 8e18);
  EXPECT_EQ(Forward(BatchedProductOp{kLong, kLong, kLong, kLong}).flop_per_sample, 2 * 16e24);
  EXPECT_EQ(
      Forward(ActivationOp{Function::kRelu, 1'000'000'000'000, 1'000'000'000'000}).flop_per_sample,
      1e24);
}

// ---- The catalogue, which counts by itself.

void ForEachLayer(const std::function<void(const Workload&, const Layer&)>& look) {
  const std::vector<std::string> names = WorkloadNames();
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    const Workload workload = *FindWorkload(name);
    ASSERT_FALSE(workload.layers.empty()) << name;
    for (const Layer& layer : workload.layers) {
      SCOPED_TRACE(name + ": " + layer.name);
      look(workload, layer);
    }
  }
}

TEST(CatalogueOperations, EveryLayerStatesOne) {
  ForEachLayer([](const Workload&, const Layer& layer) {
    EXPECT_NE(layer.operation.index(), 0U);
    EXPECT_FALSE(std::holds_alternative<UpdateOp>(layer.operation));
  });
}

// An input that is normalised by stored statistics is one product, which the catalogue counts as a
// multiply-add.
bool NormalisesTheInput(const Layer& layer) {
  return layer.kind == LayerKind::kNormalization &&
         std::holds_alternative<ElementwiseOp>(layer.operation);
}

// Attention scales its scores by a constant beside the product.
bool IsScores(const Layer& layer) { return layer.name.ends_with(".scores"); }

TEST(CatalogueOperations, ForwardWorkIsTheLayers) {
  ForEachLayer([](const Workload&, const Layer& layer) {
    const double elements = layer.activation_bytes.in(kBytes) / 4;
    double expected = Forward(layer.operation).flop_per_sample;
    if (NormalisesTheInput(layer) || IsScores(layer)) expected += elements;
    EXPECT_EQ(layer.forward_flop.si(), expected);
  });
}

// Elements of one sample's output, where the operation says.
double Outputs(const Operation& operation) {
  struct Visitor {
    static double Of(std::int64_t a, std::int64_t b = 1, std::int64_t c = 1) {
      return static_cast<double>(a * b * c);
    }
    double operator()(const std::monostate&) const { return -1; }
    double operator()(const UpdateOp&) const { return -1; }
    double operator()(const AllocateOp&) const { return -1; }
    double operator()(const ConvolutionOp& o) const {
      return Of(o.filters, o.output().height, o.output().width);
    }
    double operator()(const DenseOp& o) const { return Of(o.positions, o.units); }
    double operator()(const BatchedProductOp& o) const { return Of(o.count, o.rows, o.columns); }
    double operator()(const NormalizationOp& o) const {
      return Of(o.channels, o.input.height, o.input.width);
    }
    double operator()(const ActivationOp& o) const { return Of(o.rows, o.columns); }
    double operator()(const PoolingOp& o) const {
      return Of(o.channels, o.output().height, o.output().width);
    }
    double operator()(const ElementwiseOp& o) const { return Of(o.channels, o.positions); }
    double operator()(const EmbeddingOp& o) const { return Of(o.tokens, o.features); }
    double operator()(const RecurrentOp& o) const {
      return Of(o.positions, o.hidden, o.directions);
    }
    double operator()(const CopyOp& o) const { return Of(o.elements); }
  };
  return std::visit(Visitor(), operation);
}

TEST(CatalogueOperations, OutputsAreTheActivations) {
  ForEachLayer([](const Workload&, const Layer& layer) {
    EXPECT_EQ(layer.activation_bytes.in(kBytes), 4 * Outputs(layer.operation));
  });
}

// Parameters that an operation has, counted from its lengths.
std::int64_t Parameters(const Operation& operation) {
  struct Visitor {
    std::int64_t operator()(const ConvolutionOp& o) const {
      return o.kernel.height * o.kernel.width * o.channels / o.groups * o.filters +
             (o.bias ? o.filters : 0);
    }
    std::int64_t operator()(const DenseOp& o) const {
      return o.inputs * o.units + (o.bias ? o.units : 0);
    }
    std::int64_t operator()(const NormalizationOp& o) const { return 2 * o.channels; }
    std::int64_t operator()(const EmbeddingOp& o) const { return o.rows * o.features; }
    std::int64_t operator()(const RecurrentOp& o) const {
      const std::int64_t gates = o.cell == RecurrentCell::kLstm ? 4 : 3;
      return o.directions * gates * o.hidden * (o.inputs + o.hidden + 2);
    }
    std::int64_t operator()(const std::monostate&) const { return 0; }
    std::int64_t operator()(const BatchedProductOp&) const { return 0; }
    std::int64_t operator()(const ActivationOp&) const { return 0; }
    std::int64_t operator()(const PoolingOp&) const { return 0; }
    std::int64_t operator()(const ElementwiseOp&) const { return 0; }
    std::int64_t operator()(const CopyOp&) const { return 0; }
    std::int64_t operator()(const UpdateOp&) const { return 0; }
    std::int64_t operator()(const AllocateOp&) const { return 0; }
  };
  return std::visit(Visitor(), operation);
}

// The windows of a transposed convolution are a dense layer's units, which share their biases.
bool IsTransposed(const Workload& workload, const Layer& layer) {
  return workload.name == "unet" && std::holds_alternative<DenseOp>(layer.operation);
}

// A head, and a decoder's table, may be tied to the embedding. A batch normalisation may have no
// scale, and that of a root mean square has no shift.
TEST(CatalogueOperations, ParametersAreTheTensors) {
  std::set<std::string> tied;
  int without_one = 0;
  ForEachLayer([&](const Workload& workload, const Layer& layer) {
    const std::int64_t parameters = Parameters(layer.operation);
    const double counted = Forward(layer.operation).elements;
    if (!std::holds_alternative<EmbeddingOp>(layer.operation)) {
      EXPECT_EQ(counted, static_cast<double>(parameters));
    }
    if (layer.parameters() == parameters) return;
    if (IsTransposed(workload, layer)) {
      ASSERT_EQ(layer.tensors.size(), 2U);
      EXPECT_EQ(layer.tensors[0] + 4 * layer.tensors[1], parameters);
      return;
    }
    if (std::holds_alternative<DenseOp>(layer.operation) ||
        std::holds_alternative<EmbeddingOp>(layer.operation)) {
      tied.insert(workload.name + " " + layer.name);
      EXPECT_TRUE(layer.tensors.empty());
      return;
    }
    ++without_one;
    EXPECT_TRUE(std::holds_alternative<NormalizationOp>(layer.operation));
    EXPECT_EQ(layer.tensors.size(), 1U);
    EXPECT_EQ(2 * layer.parameters(), parameters);
  });
  EXPECT_EQ(tied, (std::set<std::string>{"bloom_7b1 lm_head",
                                         "gpt2 lm_head",
                                         "gpt2_large lm_head",
                                         "gpt2_medium lm_head",
                                         "gpt2_xl lm_head",
                                         "llama3.2_1b lm_head",
                                         "llama3.2_3b lm_head",
                                         "qwen2.5_0.5b lm_head",
                                         "qwen2.5_1.5b lm_head",
                                         "qwen2.5_3b lm_head",
                                         "qwen3_0.6b lm_head",
                                         "qwen3_1.7b lm_head",
                                         "qwen3_4b lm_head",
                                         "gemma_2b lm_head",
                                         "gemma_7b lm_head",
                                         "gemma2_2b lm_head",
                                         "gemma2_9b lm_head",
                                         "gemma2_27b lm_head",
                                         "opt_1.3b lm_head",
                                         "opt_125m lm_head",
                                         "opt_13b lm_head",
                                         "opt_2.7b lm_head",
                                         "opt_6.7b lm_head",
                                         "switch_base_8 decoder.embed_tokens",
                                         "switch_base_8 lm_head",
                                         "t5_base decoder.embed_tokens",
                                         "t5_base lm_head",
                                         "t5_large decoder.embed_tokens",
                                         "t5_large lm_head",
                                         "t5_small decoder.embed_tokens",
                                         "t5_small lm_head",
                                         "t5_v1_1_base decoder.embed_tokens",
                                         "t5_v1_1_large decoder.embed_tokens",
                                         "t5_v1_1_xl decoder.embed_tokens",
                                         "whisper_small proj_out"}));
  EXPECT_GT(without_one, 0);
}

TEST(CatalogueOperations, BackwardIsAtLeastForward) {
  ForEachLayer([](const Workload&, const Layer& layer) {
    const OperationCounts forward = Forward(layer.operation);
    const OperationCounts backward = Backward(layer.operation);
    EXPECT_GE(forward.flop_per_sample, 0);
    EXPECT_GT(forward.elements_per_sample, 0);
    EXPECT_GE(backward.flop_per_sample, forward.flop_per_sample);
    EXPECT_GE(backward.elements_per_sample, forward.elements_per_sample);
    EXPECT_GE(backward.elements, forward.elements);
    EXPECT_GE(forward.elements_per_sample * 4, layer.activation_bytes.in(kBytes))
        << "the output is written";
  });
}

std::optional<bool> InputGradient(const Operation& operation) {
  if (const auto* o = std::get_if<ConvolutionOp>(&operation)) return o->input_gradient;
  if (const auto* o = std::get_if<DenseOp>(&operation)) return o->input_gradient;
  return std::nullopt;
}

// Only what reads the network's input has no gradient of it.
TEST(CatalogueOperations, TheFirstLayerWithParametersHasNoInputGradient) {
  int without = 0;
  for (const std::string& name : WorkloadNames()) {
    const Workload workload = *FindWorkload(name);
    bool first = true;
    for (const Layer& layer : workload.layers) {
      if (const std::optional<bool> gradient = InputGradient(layer.operation)) {
        EXPECT_EQ(*gradient, !first) << name << ": " << layer.name;
        without += *gradient ? 0 : 1;
      }
      first = first && layer.tensors.empty();
    }
    EXPECT_FALSE(first) << name;
  }
  EXPECT_GT(without, 10);
}

TEST(CatalogueOperations, DepthwiseIsOneGroupAChannel) {
  int depthwise = 0;
  ForEachLayer([&](const Workload&, const Layer& layer) {
    const auto* o = std::get_if<ConvolutionOp>(&layer.operation);
    const bool is = o != nullptr && o->groups > 1 && o->groups == o->channels;
    EXPECT_EQ(is, layer.kind == LayerKind::kDepthwiseConvolution);
    depthwise += is ? 1 : 0;
  });
  EXPECT_GT(depthwise, 20);
}

// A convolution's input is some earlier tensor, or the network's input.
TEST(CatalogueOperations, ShapesFollowEachOther) {
  const Workload vgg = *FindWorkload("vgg16");
  double elements = 3 * 224 * 224;
  for (const Layer& layer : vgg.layers) {
    if (const auto* o = std::get_if<ConvolutionOp>(&layer.operation)) {
      EXPECT_EQ(static_cast<double>(o->channels * o->input.height * o->input.width), elements);
    } else if (const auto* pool = std::get_if<PoolingOp>(&layer.operation)) {
      EXPECT_EQ(static_cast<double>(pool->channels * pool->input.height * pool->input.width),
                elements);
    } else if (const auto* dense = std::get_if<DenseOp>(&layer.operation)) {
      EXPECT_EQ(static_cast<double>(dense->positions * dense->inputs), elements);
    }
    elements = Outputs(layer.operation);
  }
  EXPECT_EQ(elements, 1000);
}

}  // namespace
}  // namespace stepcast
