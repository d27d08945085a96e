#include "data/onnx/import_onnx.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "data/io/workload_file.h"
#include "data/record/fused_attention.h"
#include "data/workloads/catalog.h"
#include "tests/support/input_error.h"
#include "tests/support/onnx_model.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

using Dims = Model::Dims;

Workload Import(const Model& model, const OnnxOptions& options = {}) {
  const TempFolder folder;
  return ImportOnnx(folder.Write("net.onnx", model.proto.SerializeAsString()), options);
}
Workload Import(const Model& model, std::map<std::string, std::int64_t> dims) {
  return Import(model, OnnxOptions{std::move(dims), ""});
}

std::optional<InputError> ErrorIn(const Model& model, const OnnxOptions& options = {}) {
  return ErrorOf([&] { Import(model, options); });
}

template <typename Op>
Op OperationOf(const Workload& workload, std::size_t layer) {
  EXPECT_LT(layer, workload.layers.size());
  if (layer >= workload.layers.size()) return {};
  const auto* op = std::get_if<Op>(&workload.layers[layer].operation);
  EXPECT_NE(op, nullptr) << workload.layers[layer].name;
  return op == nullptr ? Op{} : *op;
}

// Two layers are the same work; names are everybody's own.
void ExpectSameLayer(const Layer& layer, const Layer& expected) {
  SCOPED_TRACE(layer.name + " as " + expected.name);
  EXPECT_EQ(layer.kind, expected.kind);
  EXPECT_EQ(layer.tensors, expected.tensors);
  EXPECT_EQ(layer.statistics, expected.statistics);
  EXPECT_EQ(layer.forward_flop, expected.forward_flop);
  EXPECT_EQ(layer.activation_bytes, expected.activation_bytes);
  EXPECT_EQ(layer.operation, expected.operation);
}

// ResNet-18's stem and its first stage of two blocks.
Model ResidualStage(const std::string& batch) {
  Model m;
  std::string x = m.Input("image", {batch, "3", "224", "224"});
  x = m.Convolution(x, "conv1", 3, 64, 7, 2, 3);
  x = m.Node("Relu", {m.BatchNormalization(x, "bn1", 64)});
  x = m.Node("MaxPool", {x}, Model::Ints{"kernel_shape", {3, 3}}, Model::Ints{"strides", {2, 2}},
             Model::Ints{"pads", {1, 1, 1, 1}});
  for (const std::string block : {"0.", "1."}) {
    std::string y = m.Convolution(x, block + "conv1", 64, 64, 3, 1, 1);
    y = m.Node("Relu", {m.BatchNormalization(y, block + "bn1", 64)});
    y = m.Convolution(y, block + "conv2", 64, 64, 3, 1, 1);
    y = m.BatchNormalization(y, block + "bn2", 64);
    x = m.Node("Relu", {m.Node("Add", {y, x})});
  }
  m.Output(x);
  return m;
}

TEST(ImportOnnx, AResidualStageIsThatOfTheCatalogue) {
  const Workload resnet = FindWorkload("resnet18").value();
  for (const char* batch : {"1", "32", "batch", "N"}) {
    SCOPED_TRACE(batch);
    const Workload stage = Import(ResidualStage(batch));
    ASSERT_EQ(stage.layers.size(), 18U);
    for (std::size_t i = 0; i < stage.layers.size(); ++i) {
      ExpectSameLayer(stage.layers[i], resnet.layers.at(i));
    }
    EXPECT_EQ(stage.parameters - stage.trainable_parameters, 2 * 5 * 64);
    EXPECT_EQ(stage.gradient_bytes.in(kBytes),
              4.0 * static_cast<double>(stage.trainable_parameters));
  }
}

TEST(ImportOnnx, TheWorkloadIsNamedAfterTheFile) {
  const Model m = ResidualStage("batch");
  EXPECT_EQ(Import(m).name, "net");
  EXPECT_EQ(Import(m).source, "ONNX graph net by test, opset 13");
  EXPECT_EQ(Import(m, OnnxOptions{{}, "mine"}).name, "mine");
}

// A name that no workload file has is another's.
TEST(ImportOnnx, NamesWithControlsAreReplaced) {
  Model m = ResidualStage("batch");
  m.graph().set_name("ne\x1b[31mt");
  m.graph().mutable_node(0)->set_name("\x1b[2J");
  const Workload stage = Import(m);
  EXPECT_TRUE(stage.source.starts_with("ONNX graph without a name by test")) << stage.source;
  EXPECT_EQ(stage.layers.at(0).name, m.graph().node(0).op_type() + "0");
  EXPECT_EQ(ParseWorkload(FormatWorkload(stage), "stage.yaml").layers.at(0).name,
            stage.layers[0].name);
}

TEST(ImportOnnx, AWorkloadFileGivesItBack) {
  const Workload stage = Import(ResidualStage("batch"));
  const Workload back = ParseWorkload(FormatWorkload(stage), "stage.yaml");
  EXPECT_EQ(back.trainable_parameters, stage.trainable_parameters);
  ASSERT_EQ(back.layers.size(), stage.layers.size());
  for (std::size_t i = 0; i < back.layers.size(); ++i) {
    ExpectSameLayer(back.layers[i], stage.layers[i]);
  }
}

// What mobilenet_v2 has after its stem: depthwise, with six as the upper bound.
TEST(ImportOnnx, DepthwiseConvolution) {
  const Workload mobilenet = FindWorkload("mobilenet_v2").value();
  Model m;
  std::string x = m.Input("x", {"n", "3", "224", "224"});
  m.Weight("stem", {32, 3, 3, 3});
  x = m.Node("Conv", {x, "stem"}, Model::Ints{"strides", {2, 2}},
             Model::Word{"auto_pad", "SAME_UPPER"});
  x = m.Node("Clip", {m.BatchNormalization(x, "bn0", 32), m.Scalar(0), m.Scalar(6)});
  x = m.Convolution(x, "dw", 32, 32, 3, 1, 1, 32);
  x = m.Node("Clip", {m.BatchNormalization(x, "bn1", 32), m.Scalar(0), m.Scalar(6)});
  m.Output(x);
  const Workload w = Import(m);
  ASSERT_EQ(w.layers.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) ExpectSameLayer(w.layers[i], mobilenet.layers.at(i));
}

// An image of one channel has no channels of its own to be kept apart.
TEST(ImportOnnx, OneChannelIsNoDepthwiseConvolution) {
  Model m;
  m.Output(m.Convolution(m.Input("x", {"n", "1", "28", "28"}), "conv", 1, 8, 3, 1, 1, 1));
  const Workload w = Import(m);
  ASSERT_EQ(w.layers.size(), 1U);
  EXPECT_EQ(w.layers[0].kind, LayerKind::kConvolution);
  EXPECT_EQ(OperationOf<ConvolutionOp>(w, 0).groups, 1);
}

// Each input of a transposed convolution is multiplied with its weights for all outputs that it has
// a part in; a bias is added to each output.
TEST(ImportOnnx, TransposedConvolutionsCountTheirBias) {
  for (const bool bias : {false, true}) {
    Model m;
    m.Weight("w", {3, 5, 2, 2});
    std::vector<std::string> inputs = {m.Input("x", {"n", "3", "4", "4"}), "w"};
    if (bias) {
      m.Weight("b", {5});
      inputs.emplace_back("b");
    }
    m.Output(m.Node("ConvTranspose", inputs, Model::Ints{"strides", {2, 2}}));
    const Workload w = Import(m);
    ASSERT_EQ(w.layers.size(), 1U);
    const double products = 3 * 4 * 4 * (5 * 2 * 2);
    EXPECT_EQ(w.layers[0].forward_flop, Flop(2 * products + (bias ? 5 * 8 * 8 : 0)));
    EXPECT_EQ(w.layers[0].tensors, bias ? (Dims{60, 5}) : (Dims{60}));
    EXPECT_EQ(w.layers[0].activation_bytes, Bytes(4.0 * 5 * 8 * 8));
  }
}

TEST(ImportOnnx, MultilayerPerceptron) {
  const Workload mlp = FindWorkload("mlp_mnist").value();
  Model m(11);
  std::string x = m.Node("Flatten", {m.Input("x", {"batch", "1", "28", "28"})});
  const Dims units = {784, 512, 512, 10};
  for (std::size_t i = 1; i < units.size(); ++i) {
    const std::string name = "fc" + std::to_string(i);
    m.Weight(name + ".weight", {units[i], units[i - 1]});
    m.Weight(name + ".bias", {units[i]});
    x = m.Node("Gemm", {x, name + ".weight", name + ".bias"}, Model::Int{"transB", 1});
    x = i < 3 ? m.Node("Relu", {x}) : m.Node("Softmax", {x}, Model::Int{"axis", 1});
  }
  m.Output(x);
  const Workload w = Import(m);
  ASSERT_EQ(w.layers.size(), mlp.layers.size());
  for (std::size_t i = 0; i < w.layers.size(); ++i) ExpectSameLayer(w.layers[i], mlp.layers[i]);
  EXPECT_EQ(w.forward_flop(), mlp.forward_flop());
}

// The first layer of BERT-base, its shapes taken from the input as exporters write it. Copies are
// this graph's own; all other layers are those of the catalogue.
Model TransformerBlock(const std::string& batch, const std::string& tokens) {
  constexpr std::int64_t kFeatures = 768;
  constexpr std::int64_t kHeads = 12;
  Model m;
  const std::string ids = m.Input("ids", {batch, tokens}, kInteger);
  const std::string types = m.Input("types", {batch, tokens}, kInteger);
  m.Weight("word", {30522, kFeatures});
  m.Weight("type", {2, kFeatures});
  m.Weight("position", {512, kFeatures});
  std::string x = m.Node("Gather", {"word", ids});
  x = m.Node("Add", {x, m.Node("Gather", {"type", types})});
  const std::string length = m.Node("Gather", {m.Node("Shape", {ids}), m.Index(1)});
  const std::string places = m.Node("Range", {m.Index(0), length, m.Index(1)});
  x = m.Node("Add", {x, m.Node("Gather", {"position", places})});
  x = m.LayerNorm(x, "norm", kFeatures);

  m.Integers("zero", {0});
  m.Integers("heads", {kHeads, kFeatures / kHeads});
  m.Integers("features", {kFeatures});
  const auto first = [&](const std::string& of, std::int64_t count) {
    m.Integers(of + ".from", {0});
    m.Integers(of + ".to", {count});
    return m.Node("Slice", {m.Node("Shape", {of}), of + ".from", of + ".to"});
  };
  const auto split = [&](const std::string& name, const Dims& order) {
    const std::string y = m.Linear(x, name, kFeatures, kFeatures);
    const std::string shape = m.Node("Concat", {first(y, 2), "heads"}, Model::Int{"axis", 0});
    return m.Node("Transpose", {m.Node("Reshape", {y, shape})}, Model::Ints{"perm", order});
  };
  const std::string query = split("query", {0, 2, 1, 3});
  const std::string key = split("key", {0, 2, 3, 1});
  const std::string value = split("value", {0, 2, 1, 3});
  const std::string scores = m.Node("Div", {m.Node("MatMul", {query, key}), m.Scalar(8)});
  const std::string weights = m.Node("Softmax", {scores}, Model::Int{"axis", -1});
  std::string y =
      m.Node("Transpose", {m.Node("MatMul", {weights, value})}, Model::Ints{"perm", {0, 2, 1, 3}});
  const std::string joined = m.Node("Concat", {first(y, 2), "features"}, Model::Int{"axis", 0});
  y = m.Linear(m.Node("Reshape", {y, joined}), "output", kFeatures, kFeatures);
  x = m.LayerNorm(m.Node("Add", {x, y}), "norm1", kFeatures);
  y = m.Gelu(m.Linear(x, "intermediate", kFeatures, 4 * kFeatures));
  y = m.Linear(y, "down", 4 * kFeatures, kFeatures);
  x = m.LayerNorm(m.Node("Add", {x, y}), "norm2", kFeatures);
  m.Output(x);
  return m;
}

TEST(ImportOnnx, ATransformerBlockIsThatOfTheCatalogue) {
  const auto all_but_copies = [](const Workload& workload) {
    std::vector<Layer> layers;
    for (const Layer& layer : workload.layers) {
      if (!std::holds_alternative<CopyOp>(layer.operation)) layers.push_back(layer);
    }
    return layers;
  };
  const std::vector<Layer> bert = all_but_copies(FindWorkload("bert_base").value());
  const std::vector<std::pair<Model, std::map<std::string, std::int64_t>>> cases = {
      {TransformerBlock("batch", "tokens"), {{"tokens", 384}}},
      {TransformerBlock("batch", "tokens"), {{"tokens", 384}, {"batch", 4}}},
      {TransformerBlock("8", "384"), {}}};
  for (const auto& [model, dims] : cases) {
    const Workload w = Import(model, dims);
    const std::vector<Layer> layers = all_but_copies(w);
    EXPECT_EQ(w.layers.size() - layers.size(), 4U) << "transpositions";
    ASSERT_EQ(layers.size(), 20U);
    for (std::size_t i = 0; i < layers.size(); ++i) ExpectSameLayer(layers[i], bert.at(i));
  }
}

// Attention of 2 heads over 6 tokens of 4 features, whose scores are what `masked` makes of them.
bool IsCausal(const std::function<std::string(Model*, const std::string& scores)>& masked) {
  Model m(14);
  const std::string x = m.Linear(m.Input("x", {"batch", "2", "6", "4"}), "fc", 4, 4);
  const std::string turned = m.Node("Transpose", {x}, Model::Ints{"perm", {0, 1, 3, 2}});
  const std::string scores = m.Node("Mul", {m.Node("MatMul", {x, turned}), m.Scalar(0.5F)});
  m.Integers("table", {6, 6});
  m.Output(m.Node("MatMul", {m.Node("Softmax", {masked(&m, scores)}), x}));
  Workload w = Import(m);
  int products = 0;
  for (const Layer& layer : w.layers) products += layer.kind == LayerKind::kAttention ? 1 : 0;
  EXPECT_EQ(products, 2);
  w.attention = AttentionForm::kFused;
  bool causal = false;
  for (const LayerAsRun& run : LayersAsRun(w)) {
    if (run.fused) causal = run.fused->causal;
  }
  return causal;
}

// As PyTorch writes is_causal of scaled_dot_product_attention, and a mask of its own by torch.triu.
TEST(ImportOnnx, AMaskThatTriluCutsIsCausal) {
  const float low = -std::numeric_limits<float>::infinity();
  const auto ones = [](Model* m) { return m->Node("Expand", {m->Scalar(1), "table"}); };
  const auto lower = [&](Model* m) { return m->Node("Trilu", {ones(m)}, Model::Int{"upper", 0}); };
  const auto added = [&](float hidden) {
    return IsCausal([&](Model* m, const std::string& scores) {
      const std::string above = m->Node("Equal", {lower(m), m->Scalar(0)});
      return m->Node("Add", {scores, m->Node("Where", {above, m->Scalar(hidden), m->Scalar(0)})});
    });
  };
  EXPECT_TRUE(added(low));
  EXPECT_TRUE(added(-10000));
  EXPECT_FALSE(added(-1)) << "a bias";
  const auto filled = [&](std::int64_t diagonal) {
    return IsCausal([&](Model* m, const std::string& scores) {
      const std::string mask =
          m->Node("Trilu", {m->Node("Expand", {m->Scalar(low), "table"}), m->Index(diagonal)});
      return m->Node("Add", {m->Node("Unsqueeze", {mask, m->Integers("axes", {0, 1})}), scores});
    });
  };
  // A token more or less at the diagonal is causal still.
  for (const std::int64_t diagonal : {-1, 0, 1}) EXPECT_TRUE(filled(diagonal)) << diagonal;
  for (const std::int64_t diagonal : {-3, -2, 2, 3}) {
    EXPECT_FALSE(filled(diagonal)) << diagonal << ": a window";
  }
  const auto chosen = [&](float hidden) {
    return IsCausal([&](Model* m, const std::string& scores) {
      const std::string seen = m->Node("Cast", {lower(m)}, Model::Int{"to", 9});
      return m->Node("Where", {seen, scores, m->Scalar(hidden)});
    });
  };
  EXPECT_TRUE(chosen(low));
  EXPECT_FALSE(chosen(0));
  // What nothing has cut, what is two tables at once, and no mask.
  EXPECT_FALSE(IsCausal([&](Model* m, const std::string& scores) {
    return m->Node("Add", {scores, m->Node("Expand", {m->Scalar(low), "table"})});
  }));
  EXPECT_FALSE(IsCausal([&](Model* m, const std::string& scores) {
    const std::string either = m->Node("Mul", {lower(m), ones(m)});
    return m->Node("Add", {scores, m->Node("Mul", {either, m->Scalar(low)})});
  }));
  EXPECT_FALSE(IsCausal([](Model*, const std::string& scores) { return scores; }));
}

// Tensors, work and output as NetworkBuilder counts them.
TEST(ImportOnnx, EmbeddingAndLstm) {
  Model m;
  const std::string ids = m.Input("ids", {"batch", "time"}, kInteger);
  m.Weight("table", {200, 32});
  std::string x =
      m.Node("Transpose", {m.Node("Gather", {"table", ids})}, Model::Ints{"perm", {1, 0, 2}});
  m.Weight("w", {2, 192, 32});
  m.Weight("r", {2, 192, 48});
  m.Weight("b", {2, 384});
  x = m.Node("LSTM", {x, "w", "r", "b"}, Model::Int{"hidden_size", 48},
             Model::Word{"direction", "bidirectional"});
  m.Integers("shape", {0, 0, -1});
  x = m.Node("Reshape", {m.Node("Transpose", {x}, Model::Ints{"perm", {0, 2, 1, 3}}), "shape"});
  m.Weight("w1", {1, 48, 96});
  m.Weight("r1", {1, 48, 16});
  m.Output(m.Node("GRU", {x, "w1", "r1"}, Model::Int{"hidden_size", 16}));
  const Workload w = Import(m, {{"time", 12}});
  ASSERT_EQ(w.layers.size(), 5U);
  EXPECT_EQ(OperationOf<EmbeddingOp>(w, 0), (EmbeddingOp{200, 32, 12}));
  EXPECT_EQ(w.layers[0].tensors, (Dims{6400}));
  EXPECT_EQ(OperationOf<RecurrentOp>(w, 2), (RecurrentOp{RecurrentCell::kLstm, 12, 32, 48, 2}));
  EXPECT_EQ(w.layers[2].tensors, (Dims{6144, 9216, 192, 192, 6144, 9216, 192, 192}));
  EXPECT_EQ(w.layers[2].forward_flop, Flop(12.0 * 2 * 48 * (2 * 4 * (32 + 48) + 3 * 4 + 18)));
  EXPECT_EQ(w.layers[2].activation_bytes, Bytes(4.0 * 12 * 96));
  EXPECT_EQ(OperationOf<RecurrentOp>(w, 4), (RecurrentOp{RecurrentCell::kGru, 12, 96, 16, 1}));
  EXPECT_EQ(w.layers[4].tensors, (Dims{4608, 768})) << "without biases";
  EXPECT_EQ(w.layers[4].forward_flop, Flop(12.0 * 16 * (2 * 3 * (96 + 16) + 3 + 13)));
}

TEST(ImportOnnx, ConvolutionsOfOneAndThreeDimensions) {
  Model m;
  m.Weight("w", {8, 2, 5});
  m.Weight("b", {8});
  std::string x = m.Node("Conv", {m.Input("x", {"batch", "4", "100"}), "w", "b"},
                         Model::Int{"group", 2}, Model::Ints{"dilations", {2}},
                         Model::Ints{"pads", {1, 3}}, Model::Ints{"strides", {3}});
  m.Integers("shape", {0, 8, 2, 4, 4});
  m.Integers("pads", {0, 0, 0, 0, 0, 0});
  x = m.Node("Reshape", {x, "shape"});
  m.Weight("v", {16, 8, 1, 2, 2});
  m.Output(m.Node("Conv", {x, "v"}));
  const Workload w = Import(m);
  ASSERT_EQ(w.layers.size(), 2U);
  const ConvolutionOp op = OperationOf<ConvolutionOp>(w, 0);
  EXPECT_EQ(op.input, (Lengths2{100, 1}));
  EXPECT_EQ(op.kernel, (Lengths2{5, 1}));
  EXPECT_EQ(op.dilation, (Lengths2{2, 1}));
  EXPECT_EQ(op.padding, (Zeros2{1, 0, 3, 0}));
  EXPECT_EQ(op.groups, 2);
  EXPECT_TRUE(op.bias);
  EXPECT_FALSE(op.input_gradient);
  EXPECT_EQ(op.output(), (Lengths2{32, 1}));
  EXPECT_EQ(w.layers[0].forward_flop, Flop((2.0 * 5 * 2 + 1) * 8 * 32));
  EXPECT_EQ(w.layers[1].forward_flop, Flop(2.0 * 8 * 4 * 16 * 2 * 3 * 3));
  EXPECT_EQ(w.layers[1].operation.index(), 0U) << "volumes cannot be measured";
}

TEST(ImportOnnx, PaddingThatIsNamed) {
  const auto zeros = [](const char* name) {
    Model m;
    m.Weight("w", {4, 3, 3, 3});
    m.Output(m.Node("Conv", {m.Input("x", {"1", "3", "8", "7"}), "w"},
                    Model::Ints{"strides", {2, 2}}, Model::Word{"auto_pad", name}));
    return OperationOf<ConvolutionOp>(Import(m), 0).padding;
  };
  EXPECT_EQ(zeros("SAME_UPPER"), (Zeros2{0, 1, 1, 1}));
  EXPECT_EQ(zeros("SAME_LOWER"), (Zeros2{1, 1, 0, 1}));
  EXPECT_EQ(zeros("VALID"), (Zeros2{0, 0, 0, 0}));
}

TEST(ImportOnnx, Poolings) {
  Model m;
  std::string x = m.Convolution(m.Input("x", {"batch", "3", "9", "9"}), "w", 3, 4, 1, 1, 0);
  x = m.Node("MaxPool", {x}, Model::Ints{"kernel_shape", {2, 2}}, Model::Ints{"strides", {2, 2}},
             Model::Int{"ceil_mode", 1});
  m.Output(m.Node("GlobalAveragePool", {x}));
  m.Output(m.Node("ReduceMean", {x}, Model::Ints{"axes", {2, 3}}));
  m.Output(m.Node("AveragePool", {x}, Model::Ints{"kernel_shape", {3, 3}}));
  m.Output(m.Node("GlobalMaxPool", {x}));
  for (const char* op : {"ReduceMax", "ReduceMin"}) {
    m.Output(m.Node(op, {x}, Model::Ints{"axes", {2, 3}}));
  }
  const Workload w = Import(m);
  ASSERT_EQ(w.layers.size(), 8U);
  const PoolingOp maximum = OperationOf<PoolingOp>(w, 1);
  EXPECT_EQ(maximum, (PoolingOp{PoolingKind::kMax, 4, {9, 9}, {2, 2}, {2, 2}, {0, 0, 1, 1}}));
  EXPECT_EQ(maximum.output(), (Lengths2{5, 5}));
  EXPECT_EQ(w.layers[1].forward_flop, Flop(4.0 * 4 * 25));
  const PoolingOp mean{PoolingKind::kAverage, 4, {5, 5}, {5, 5}, {}, {}};
  EXPECT_EQ(OperationOf<PoolingOp>(w, 2), mean);
  EXPECT_EQ(OperationOf<PoolingOp>(w, 3), mean);
  EXPECT_EQ(OperationOf<PoolingOp>(w, 4).output(), (Lengths2{3, 3}));
  const PoolingOp most{PoolingKind::kMax, 4, {5, 5}, {5, 5}, {}, {}};
  for (const std::size_t layer : {5U, 6U, 7U}) EXPECT_EQ(OperationOf<PoolingOp>(w, layer), most);
}

// What an image classifier's squeeze and excitation needs.
TEST(ImportOnnx, BroadcastProducts) {
  Model m;
  std::string x = m.Convolution(m.Input("x", {"batch", "3", "28", "28"}), "w", 3, 8, 1, 1, 0);
  const std::string gate = m.Node("Sigmoid", {m.Node("GlobalAveragePool", {x})});
  x = m.Node("Mul", {x, gate});
  m.Output(m.Node("Mul", {x, m.Scalar(0.5F)}));
  const Workload w = Import(m);
  ASSERT_EQ(w.layers.size(), 5U);
  const ElementwiseOp product{ElementwiseKind::kMultiply, 8, 784, true};
  EXPECT_EQ(OperationOf<ElementwiseOp>(w, 3), product);
  EXPECT_EQ(OperationOf<ElementwiseOp>(w, 4), product);
}

TEST(ImportOnnx, ActivationFunctions) {
  const auto function = [](const std::function<std::string(Model&, const std::string&)>& f,
                           int opset = 13) {
    Model m(opset);
    const std::string x = m.Linear(m.Input("x", {"batch", "6"}), "fc", 6, 10);
    m.Output(f(m, x));
    const Workload w = Import(m);
    EXPECT_EQ(w.layers.size(), 2U);
    EXPECT_EQ(w.layers.back().kind, LayerKind::kActivation);
    return OperationOf<ActivationOp>(w, 1).function;
  };
  const auto node = [&](const char* op, int opset = 13) {
    return function([op](Model& m, const std::string& x) { return m.Node(op, {x}); }, opset);
  };
  EXPECT_EQ(node("Relu"), Function::kRelu);
  EXPECT_EQ(node("LeakyRelu"), Function::kLeakyRelu);
  EXPECT_EQ(node("Sigmoid"), Function::kSigmoid);
  EXPECT_EQ(node("HardSigmoid"), Function::kSigmoid);
  EXPECT_EQ(node("HardSwish", 14), Function::kSwish);
  EXPECT_EQ(node("Tanh"), Function::kTanh);
  EXPECT_EQ(node("Gelu", 20), Function::kGelu);
  EXPECT_EQ(node("LogSoftmax"), Function::kSoftmax);
  EXPECT_EQ(node("Clip"), Function::kHardtanh);
  EXPECT_EQ(function([](Model& m, const std::string& x) {
              return m.Node("Clip", {x, m.Scalar(0), m.Scalar(6)});
            }),
            Function::kRelu6);
  EXPECT_EQ(function([](Model& m, const std::string& x) {
              return m.Node("Clip", {x, m.Scalar(-1), m.Scalar(1)});
            }),
            Function::kHardtanh);
  EXPECT_EQ(function([](Model& m, const std::string& x) { return m.Gelu(x); }), Function::kGelu);
  EXPECT_EQ(function([](Model& m, const std::string& x) {
              return m.Node("Mul", {x, m.Node("Sigmoid", {x})});
            }),
            Function::kSwish);
  EXPECT_EQ(function([](Model& m, const std::string& x) {
              const std::string cubic =
                  m.Node("Mul", {m.Node("Pow", {x, m.Scalar(3)}), m.Scalar(0.044715F)});
              const std::string sum = m.Node("Mul", {m.Node("Add", {x, cubic}), m.Scalar(0.8F)});
              const std::string one = m.Node("Add", {m.Node("Tanh", {sum}), m.Scalar(1)});
              return m.Node("Mul", {m.Node("Mul", {x, m.Scalar(0.5F)}), one});
            }),
            Function::kGeluTanh);
}

// An operator without a function of its own has that of one with the same work.
TEST(ImportOnnx, ActivationsOfTheSameWork) {
  const auto function = [](const std::function<std::string(Model&, const std::string&)>& f) {
    Model m(20);
    m.Output(f(m, m.Linear(m.Input("x", {"batch", "6"}), "fc", 6, 10)));
    return OperationOf<ActivationOp>(Import(m), 1);
  };
  const std::pair<const char*, Function> cases[] = {{"ThresholdedRelu", Function::kRelu},
                                                    {"Elu", Function::kSigmoid},
                                                    {"Selu", Function::kSigmoid},
                                                    {"Celu", Function::kSigmoid},
                                                    {"Softplus", Function::kSigmoid},
                                                    {"Softsign", Function::kSigmoid},
                                                    {"Mish", Function::kSwish}};
  for (const auto& [op, is] : cases) {
    EXPECT_EQ(function([op = op](Model& m, const std::string& x) { return m.Node(op, {x}); }),
              (ActivationOp{is, 1, 10}))
        << op;
  }
  EXPECT_EQ(function([](Model& m, const std::string& x) {
              return m.Node("Gelu", {x}, Model::Word{"approximate", "tanh"});
            }).function,
            Function::kGeluTanh);
  // What is cut off below 0 and nowhere else, at 6, at another number, and above alone.
  const auto clip = [&](const std::function<std::vector<std::string>(Model&)>& bounds) {
    return function([&](Model& m, const std::string& x) {
             std::vector<std::string> inputs = {x};
             for (const std::string& bound : bounds(m)) inputs.push_back(bound);
             return m.Node("Clip", inputs);
           })
        .function;
  };
  using Bounds = std::vector<std::string>;
  EXPECT_EQ(clip([](Model& m) { return Bounds{m.Scalar(0)}; }), Function::kRelu);
  EXPECT_EQ(clip([](Model& m) { return Bounds{m.Scalar(1)}; }), Function::kHardtanh);
  EXPECT_EQ(clip([](Model& m) { return Bounds{m.Scalar(0), m.Scalar(5)}; }), Function::kHardtanh);
  EXPECT_EQ(clip([](Model& m) { return Bounds{"", m.Scalar(6)}; }), Function::kHardtanh);
  // A slope for each channel is trained.
  Model m;
  const std::string x = m.Linear(m.Input("x", {"batch", "6"}), "fc", 6, 10);
  m.Weight("slope", {10});
  m.Output(m.Node("PRelu", {x, "slope"}));
  const Workload w = Import(m);
  EXPECT_EQ(OperationOf<ActivationOp>(w, 1).function, Function::kLeakyRelu);
  EXPECT_EQ(w.layers.at(1).tensors, (Dims{10}));
}

// What is multiplied or costs a division, a root or a power, and what is added or only looked at;
// each operand beyond the first is an operation.
TEST(ImportOnnx, ElementByElement) {
  const auto layer = [](const char* op, int operands) {
    Model m;
    const std::string input = m.Input("x", {"batch", "6"});
    const std::string x = m.Linear(input, "fc1", 6, 10);
    const std::string y = m.Linear(input, "fc2", 6, 10);
    std::vector<std::string> inputs = {x, y, x};
    inputs.resize(static_cast<std::size_t>(operands));
    m.Output(m.Node(op, inputs));
    m.Output(y);
    const Workload w = Import(m);
    EXPECT_EQ(w.layers.size(), 3U) << op;
    return w.layers.back();
  };
  const auto expect = [&](const char* op, int operands, ElementwiseKind kind, double flop) {
    const Layer is = layer(op, operands);
    EXPECT_EQ(std::get<ElementwiseOp>(is.operation), (ElementwiseOp{kind, 10, 1, operands < 2}))
        << op;
    EXPECT_EQ(is.forward_flop, Flop(flop)) << op;
    EXPECT_TRUE(is.tensors.empty()) << op;
  };
  for (const char* op : {"Mul", "Div", "Pow", "Mod"}) {
    expect(op, 2, ElementwiseKind::kMultiply, 10);
  }
  for (const char* op : {"Sqrt", "Exp", "Log", "Erf", "Sin", "Cos", "Reciprocal"}) {
    expect(op, 1, ElementwiseKind::kMultiply, 10);
  }
  for (const char* op : {"Add", "Sub", "Max", "Min", "Sum", "Mean", "Less", "Equal"}) {
    expect(op, 2, ElementwiseKind::kAdd, 10);
  }
  for (const char* op : {"Neg", "Abs", "Floor", "Ceil", "Round", "Sign", "IsNaN"}) {
    expect(op, 1, ElementwiseKind::kAdd, 10);
  }
  for (const char* op : {"Max", "Min", "Sum", "Mean"}) {
    expect(op, 3, ElementwiseKind::kAdd, 20);
    expect(op, 1, ElementwiseKind::kAdd, 10);
  }
}

// Weights may stand on either side, turned or not, as vectors, and one for each of some products.
TEST(ImportOnnx, ProductsWithWeights) {
  const auto import = [](const std::function<std::string(Model&)>& product) {
    Model m;
    m.Output(product(m));
    const Workload w = Import(m);
    EXPECT_EQ(w.layers.size(), 1U);
    return w;
  };
  const Workload turned = import([](Model& m) {
    m.Weight("w", {10, 6});
    m.Weight("b", {10});
    return m.Node("Gemm", {m.Input("x", {"batch", "6"}), "w", "b"}, Model::Int{"transB", 1});
  });
  EXPECT_EQ(OperationOf<DenseOp>(turned, 0), (DenseOp{1, 6, 10, true, false}));
  EXPECT_EQ(turned.layers.at(0).forward_flop, Flop((2.0 * 6 + 1) * 10));
  EXPECT_EQ(turned.layers.at(0).tensors, (Dims{60, 10}));
  const Workload left = import([](Model& m) {
    m.Weight("w", {10, 6});
    return m.Node("Gemm", {"w", m.Input("x", {"batch", "6"})}, Model::Int{"transB", 1});
  });
  EXPECT_EQ(OperationOf<DenseOp>(left, 0), (DenseOp{1, 6, 10, false, false}));
  EXPECT_EQ(left.layers.at(0).forward_flop, Flop(2.0 * 6 * 10));
  const Workload vector = import([](Model& m) {
    m.Weight("w", {6});
    return m.Node("MatMul", {m.Input("x", {"batch", "6"}), "w"});
  });
  EXPECT_EQ(OperationOf<DenseOp>(vector, 0), (DenseOp{1, 6, 1, false, false}));
  const Workload several = import([](Model& m) {
    m.Weight("w", {4, 6, 10});
    return m.Node("MatMul", {m.Input("x", {"batch", "4", "3", "6"}), "w"});
  });
  EXPECT_EQ(several.layers.at(0).kind, LayerKind::kDense);
  EXPECT_EQ(OperationOf<BatchedProductOp>(several, 0),
            (BatchedProductOp{.count = 4, .rows = 3, .columns = 10, .depth = 6}));
  EXPECT_EQ(several.layers.at(0).forward_flop, Flop(2.0 * 6 * 4 * 3 * 10));
  EXPECT_EQ(several.layers.at(0).tensors, (Dims{240}));
  const Workload first = import([](Model& m) {
    m.Weight("w", {1, 6, 10});
    return m.Node("MatMul", {m.Input("x", {"batch", "3", "6"}), "w"});
  });
  EXPECT_EQ(OperationOf<DenseOp>(first, 0), (DenseOp{3, 6, 10, false, false}));
}

// Scores that are scaled by a number are one product; a number over them is none.
TEST(ImportOnnx, ScalesOfScores) {
  const auto layers = [](const std::function<std::string(Model&, const std::string&)>& scale) {
    Model m;
    const std::string x = m.Input("x", {"batch", "4", "6"});
    const std::string keys =
        m.Node("Transpose", {m.Linear(x, "k", 6, 8)}, Model::Ints{"perm", {0, 2, 1}});
    m.Output(scale(m, m.Node("MatMul", {m.Linear(x, "q", 6, 8), keys})));
    return Import(m).layers;
  };
  const auto bare = layers([](Model&, const std::string& scores) { return scores; });
  ASSERT_EQ(bare.size(), 4U);
  EXPECT_EQ(bare.back().forward_flop, Flop(2.0 * 8 * 16));
  for (const char* op : {"Mul", "Div"}) {
    const auto scaled = layers([op](Model& m, const std::string& scores) {
      return m.Node(op, {scores, m.Scalar(8)});
    });
    ASSERT_EQ(scaled.size(), 4U) << op;
    EXPECT_EQ(scaled.back().forward_flop, Flop(2.0 * 8 * 16 + 16)) << op;
    const auto turned = layers([op](Model& m, const std::string& scores) {
      return m.Node(op, {m.Scalar(8), scores});
    });
    EXPECT_EQ(turned.size(), op == std::string("Mul") ? 4U : 5U) << op;
  }
  EXPECT_EQ(layers([](Model& m, const std::string& scores) {
              return m.Node("Add", {scores, m.Scalar(8)});
            }).size(),
            5U);
}

// A table that is picked from along its second axis, and a recurrent layer with the batch first.
TEST(ImportOnnx, OtherAxes) {
  Model m(14);
  m.Weight("table", {32, 200});
  m.Output(m.Node("Gather", {"table", m.Input("ids", {"batch", "12"}, kInteger)},
                  Model::Int{"axis", 1}));
  const Workload table = Import(m);
  ASSERT_EQ(table.layers.size(), 1U);
  EXPECT_EQ(OperationOf<EmbeddingOp>(table, 0), (EmbeddingOp{200, 32, 12}));
  Model r(14);
  r.Weight("w", {1, 48, 32});
  r.Weight("r", {1, 48, 16});
  r.Weight("b", {1, 96});
  r.Output(r.Node("GRU", {r.Input("x", {"batch", "12", "32"}), "w", "r", "b"},
                  Model::Int{"hidden_size", 16}, Model::Int{"layout", 1}));
  const Workload gru = Import(r);
  ASSERT_EQ(gru.layers.size(), 1U);
  EXPECT_EQ(OperationOf<RecurrentOp>(gru, 0), (RecurrentOp{RecurrentCell::kGru, 12, 32, 16, 1}));
  EXPECT_EQ(gru.layers[0].tensors, (Dims{1536, 768, 48, 48}));
  EXPECT_EQ(gru.layers[0].forward_flop, Flop(12.0 * 16 * (2 * 3 * (32 + 16) + 3 * 3 + 13)));
}

// Windows with gaps cannot be measured; sums over channels, and over axes that come in another
// order, are windows of one column.
TEST(ImportOnnx, OtherWindows) {
  Model m;
  const std::string x = m.Convolution(m.Input("x", {"batch", "3", "9", "9"}), "w", 3, 4, 1, 1, 0);
  m.Output(m.Node("MaxPool", {x}, Model::Ints{"kernel_shape", {2, 2}},
                  Model::Ints{"dilations", {2, 2}}));
  m.Output(m.Node("LpPool", {x}, Model::Ints{"kernel_shape", {3, 3}}));
  m.Output(m.Node("ReduceSum", {x, m.Integers("axes", {1})}));
  m.Output(m.Node("ReduceMean", {x}, Model::Ints{"axes", {3, 2}}));
  const Workload w = Import(m);
  ASSERT_EQ(w.layers.size(), 5U);
  EXPECT_EQ(w.layers[1].operation.index(), 0U);
  EXPECT_EQ(w.layers[1].forward_flop, Flop(4.0 * 4 * 7 * 7));
  EXPECT_EQ(OperationOf<PoolingOp>(w, 2),
            (PoolingOp{PoolingKind::kAverage, 4, {9, 9}, {3, 3}, {}, {}}));
  EXPECT_EQ(OperationOf<PoolingOp>(w, 3),
            (PoolingOp{PoolingKind::kAverage, 81, {4, 1}, {4, 1}, {}, {}}));
  EXPECT_EQ(w.layers[3].forward_flop, Flop(4.0 * 81));
  EXPECT_EQ(OperationOf<PoolingOp>(w, 4),
            (PoolingOp{PoolingKind::kAverage, 4, {81, 1}, {81, 1}, {}, {}}));
}

// Of 6 rows of 10 features: over one axis since opset 13, the last where none is said; before, over
// all from the axis on, the second where none is said.
TEST(ImportOnnx, SoftmaxIsOverTheAxesOfItsOpset) {
  const auto softmax = [](int opset, std::optional<std::int64_t> axis) {
    Model m(opset);
    const std::string x = m.Linear(m.Input("x", {"batch", "6", "4"}), "fc", 4, 10);
    m.Output(axis ? m.Node("Softmax", {x}, Model::Int{"axis", *axis}) : m.Node("Softmax", {x}));
    return OperationOf<ActivationOp>(Import(m), 1);
  };
  const ActivationOp of_features{Function::kSoftmax, 6, 10};
  const ActivationOp of_rows{Function::kSoftmax, 10, 6};
  const ActivationOp of_all{Function::kSoftmax, 1, 60};
  for (const int opset : {11, 12}) {
    EXPECT_EQ(softmax(opset, std::nullopt), of_all) << opset;
    EXPECT_EQ(softmax(opset, 1), of_all) << opset;
    EXPECT_EQ(softmax(opset, 2), of_features) << opset;
    EXPECT_EQ(softmax(opset, -1), of_features) << opset;
  }
  for (const int opset : {13, 20}) {
    EXPECT_EQ(softmax(opset, std::nullopt), of_features) << opset;
    EXPECT_EQ(softmax(opset, 1), of_rows) << opset;
    EXPECT_EQ(softmax(opset, 2), of_features) << opset;
    EXPECT_EQ(softmax(opset, -2), of_rows) << opset;
  }
}

// Some exporters subtract the mean twice: for the variance, and for what is divided.
TEST(ImportOnnx, ANormalizationMaySubtractTwice) {
  Model m;
  const std::string x = m.Linear(m.Input("x", {"batch", "6"}), "fc", 6, 10);
  const std::string mean = m.Node("ReduceMean", {x}, Model::Ints{"axes", {-1}});
  const std::string square = m.Node("Pow", {m.Node("Sub", {x, mean}), m.Scalar(2)});
  const std::string variance = m.Node("ReduceMean", {square}, Model::Ints{"axes", {-1}});
  const std::string root = m.Node("Sqrt", {m.Node("Add", {variance, m.Scalar(1e-5F)})});
  m.Output(m.Node("Div", {m.Node("Sub", {x, mean}), root}));
  const Workload w = Import(m);
  ASSERT_EQ(w.layers.size(), 2U);
  EXPECT_EQ(OperationOf<NormalizationOp>(w, 1),
            (NormalizationOp{NormalizationKind::kLayer, 10, {1, 1}}));
}

// A pattern is one layer only where nothing else needs what is between.
TEST(ImportOnnx, PatternsThatOthersReadAreNotFolded) {
  Model m;
  const std::string x = m.Linear(m.Input("x", {"batch", "6"}), "fc", 6, 10);
  const std::string gate = m.Node("Sigmoid", {x});
  m.Output(m.Node("Mul", {x, gate}));
  m.Output(m.Node("Neg", {gate}));
  const Workload w = Import(m);
  ASSERT_EQ(w.layers.size(), 4U);
  EXPECT_EQ(OperationOf<ActivationOp>(w, 1).function, Function::kSigmoid);
  EXPECT_EQ(OperationOf<ElementwiseOp>(w, 2), (ElementwiseOp{ElementwiseKind::kMultiply, 10, 1}));
}

// Who runs the network reads its outputs.
TEST(ImportOnnx, PatternsAroundAnOutputAreNotFolded) {
  for (const bool is_read : {false, true}) {
    Model m;
    const std::string x = m.Linear(m.Input("x", {"batch", "6"}), "fc", 6, 10);
    const std::string quotient = m.Node("Div", {x, m.Scalar(1.4142135F)});
    if (is_read) m.Output(quotient);
    const std::string one = m.Node("Add", {m.Node("Erf", {quotient}), m.Scalar(1)});
    m.Output(m.Node("Mul", {m.Node("Mul", {x, one}), m.Scalar(0.5F)}));
    // Unfolded, five beside the first.
    EXPECT_EQ(Import(m).layers.size(), is_read ? 6U : 2U);
  }
}

TEST(ImportOnnx, Normalizations) {
  Model m(17);
  const std::string x = m.Convolution(m.Input("x", {"batch", "3", "5", "6"}), "w", 3, 8, 1, 1, 0);
  m.Weight("scale", {8});
  m.Weight("shift", {8});
  m.Output(m.Node("InstanceNormalization", {x, "scale", "shift"}));
  m.Weight("scale1", {5, 6});
  m.Weight("shift1", {5, 6});
  m.Output(m.Node("LayerNormalization", {x, "scale1", "shift1"}, Model::Int{"axis", 2}));
  const Workload w = Import(m);
  ASSERT_EQ(w.layers.size(), 3U);
  const NormalizationOp op{NormalizationKind::kLayer, 30, {8, 1}};
  EXPECT_EQ(OperationOf<NormalizationOp>(w, 1), op);
  EXPECT_EQ(OperationOf<NormalizationOp>(w, 2), op);
  EXPECT_EQ(w.layers[1].tensors, (Dims{8, 8}));
  EXPECT_EQ(w.layers[2].tensors, (Dims{30, 30}));
  EXPECT_EQ(w.layers[2].forward_flop, Flop(7.0 * 240));
}

TEST(ImportOnnx, GroupNormalizationIsOverTheChannelsOfAGroup) {
  const auto model = [](std::int64_t groups, bool as_inputs) {
    Model m(21);
    const std::string x = m.Convolution(m.Input("x", {"batch", "3", "5", "6"}), "w", 3, 8, 1, 1, 0);
    for (const char* name : {"scale", "shift"}) {
      if (as_inputs) {
        m.Input(name, {"8"});
      } else {
        m.Weight(name, {8});
      }
    }
    m.Output(m.Node("GroupNormalization", {x, "scale", "shift"}, Model::Int{"num_groups", groups}));
    return m;
  };
  for (const bool as_inputs : {false, true}) {
    const Workload w = Import(model(2, as_inputs));
    ASSERT_EQ(w.layers.size(), 2U);
    EXPECT_EQ(OperationOf<NormalizationOp>(w, 1),
              (NormalizationOp{NormalizationKind::kLayer, 120, {2, 1}}));
    EXPECT_EQ(w.layers[1].tensors, (Dims{8, 8}));
    EXPECT_EQ(w.layers[1].forward_flop, Flop(7.0 * 240));
  }
  EXPECT_TRUE(Says(ErrorIn(model(3, false)), "does not divide the channels"));
}

// What picks the lengths of a shape: as bytes, and as numbers.
TEST(ImportOnnx, TensorsOfYesAndNoAreRead) {
  for (const bool raw : {false, true}) {
    Model m;
    std::string x = m.Convolution(m.Input("x", {"batch", "3", "4", "4"}), "w", 3, 8, 1, 1, 0);
    onnx::TensorProto* which = m.graph().add_initializer();
    which->set_name("which");
    which->set_data_type(onnx::TensorProto::BOOL);
    which->add_dims(2);
    if (raw) {
      which->set_raw_data(std::string("\1\0", 2));
    } else {
      which->add_int32_data(1);
      which->add_int32_data(0);
    }
    m.Integers("yes", {-1, 7});
    m.Integers("no", {9, 128});
    x = m.Node("Reshape", {x, m.Node("Where", {"which", "yes", "no"})});
    m.Weight("fc", {128, 10});
    m.Output(m.Node("MatMul", {x, "fc"}));
    const Workload w = Import(m);
    ASSERT_EQ(w.layers.size(), 2U) << raw;
    EXPECT_EQ(w.layers[1].tensors, (Dims{1280})) << raw;
  }
}

// What a file computes of its own tensors, element by element: one yes and one no.
TEST(ImportOnnx, ComparisonsOfTensorsAreComputed) {
  const struct {
    const char* op;
    Dims first;
    Dims second;
  } cases[] = {{"And", {1, 1}, {1, 0}},
               {"And", {1, 0}, {1, 1}},
               {"Or", {1, 0}, {0, 0}},
               {"Or", {0, 0}, {1, 0}},
               {"Or", {1, 0}, {1, 0}},
               {"Equal", {3, 4}, {3, 5}},
               {"Equal", {0, 4}, {0, 0}},
               {"Greater", {5, 3}, {4, 3}},
               {"Greater", {1, 3}, {0, 4}},
               {"GreaterOrEqual", {4, 3}, {4, 4}},
               {"GreaterOrEqual", {5, 0}, {4, 1}},
               {"Less", {3, 4}, {4, 4}},
               {"Less", {0, 5}, {1, 4}},
               {"LessOrEqual", {4, 5}, {4, 4}},
               {"LessOrEqual", {3, 1}, {4, 0}}};
  for (const auto& c : cases) {
    Model m;
    std::string x = m.Convolution(m.Input("x", {"batch", "3", "4", "4"}), "w", 3, 8, 1, 1, 0);
    m.Integers("first", c.first);
    m.Integers("second", c.second);
    m.Integers("yes", {-1, 7});
    m.Integers("no", {9, 128});
    const std::string which = m.Node(c.op, {"first", "second"});
    x = m.Node("Reshape", {x, m.Node("Where", {which, "yes", "no"})});
    m.Weight("fc", {128, 10});
    m.Output(m.Node("MatMul", {x, "fc"}));
    const Workload w = Import(m);
    ASSERT_EQ(w.layers.size(), 2U) << c.op;
    EXPECT_EQ(w.layers[1].tensors, (Dims{1280})) << c.op;
  }
}

// Before opset 10 what is sliced is said by attributes.
TEST(ImportOnnx, OldSlicesHaveAttributes) {
  for (const bool old : {false, true}) {
    Model m(old ? 9 : 10);
    std::string x = m.Convolution(m.Input("x", {"batch", "3", "4", "6"}), "w", 3, 8, 1, 1, 0);
    if (old) {
      x = m.Node("Slice", {x}, Model::Ints{"axes", {3, 2}}, Model::Ints{"starts", {1, 0}},
                 Model::Ints{"ends", {6, 2}});
    } else {
      m.Integers("from", {1, 0});
      m.Integers("to", {6, 2});
      m.Integers("axes", {3, 2});
      x = m.Node("Slice", {x, "from", "to", "axes"});
    }
    x = m.Node("Flatten", {x});
    m.Weight("fc", {80, 10});
    m.Output(m.Node("MatMul", {x, "fc"}));
    EXPECT_EQ(OperationOf<DenseOp>(Import(m), 2), (DenseOp{1, 80, 10, false, true})) << old;
  }
}

// The last stride of a slice may be cut short, and takes an element all the same.
TEST(ImportOnnx, SlicesWithStepsAreRead) {
  struct Taken {
    Dims of;
    std::int64_t from;
    std::int64_t to;
    std::int64_t step;
  };
  // Each leaves -1 and 128.
  for (const Taken& taken : {Taken{{-1, 7, 128}, 0, 3, 2}, Taken{{-1, 7, 128, 9}, 0, 4, 2},
                             Taken{{128, 7, -1}, -1, -4, -2}, Taken{{-1, 7, 9, 128}, 0, 4, 3}}) {
    Model m;
    std::string x = m.Convolution(m.Input("x", {"batch", "3", "4", "4"}), "w", 3, 8, 1, 1, 0);
    m.Integers("of", taken.of);
    m.Integers("from", {taken.from});
    m.Integers("to", {taken.to});
    m.Integers("axis", {0});
    m.Integers("step", {taken.step});
    x = m.Node("Reshape", {x, m.Node("Slice", {"of", "from", "to", "axis", "step"})});
    m.Weight("fc", {128, 10});
    m.Output(m.Node("MatMul", {x, "fc"}));
    const Workload w = Import(m);
    ASSERT_EQ(w.layers.size(), 2U) << taken.step;
    EXPECT_EQ(OperationOf<DenseOp>(w, 1), (DenseOp{1, 128, 10, false, true})) << taken.step;
  }
}

// Every type that networks are trained in.
TEST(ImportOnnx, WeightsOfAnyRealTypeAreParameters) {
  for (const int type : {onnx::TensorProto::FLOAT, onnx::TensorProto::FLOAT16,
                         onnx::TensorProto::DOUBLE, onnx::TensorProto::BFLOAT16}) {
    Model m;
    m.Output(m.Linear(m.Input("x", {"batch", "6"}, type), "fc", 6, 10));
    for (onnx::TensorProto& weight : *m.graph().mutable_initializer()) weight.set_data_type(type);
    const Workload w = Import(m);
    ASSERT_EQ(w.layers.size(), 1U) << type;
    EXPECT_EQ(w.parameters, 6 * 10 + 10) << type;
  }
}

TEST(ImportOnnx, CopiesAndViews) {
  Model m;
  std::string x = m.Convolution(m.Input("x", {"batch", "3", "4", "4"}), "w", 3, 8, 1, 1, 0);
  x = m.Node("Identity", {m.Node("Dropout", {x})});
  x = m.Node("Concat", {x, x}, Model::Int{"axis", 1});
  m.Integers("pads", {0, 0, 1, 1, 0, 0, 1, 1});
  m.Integers("none", {0, 0, 0, 0, 0, 0, 0, 0});
  x = m.Node("Pad", {m.Node("Pad", {x, "none"}), "pads"});
  m.Integers("sizes", {1, 16, 12, 12});
  x = m.Node("Resize", {x, "", "", "sizes"});
  onnx::NodeProto& split = m.Add("Split", {x}, 2);
  Model::Set(split, Model::Int{"axis", 1});
  m.Output(split.output(0));
  m.Output(m.Node("Flatten", {split.output(1)}));
  const Workload w = Import(m);
  ASSERT_EQ(w.layers.size(), 5U);
  EXPECT_EQ(OperationOf<CopyOp>(w, 1), CopyOp{256});
  EXPECT_EQ(OperationOf<CopyOp>(w, 2), CopyOp{576});
  EXPECT_EQ(OperationOf<CopyOp>(w, 3), CopyOp{2304});
  EXPECT_EQ(OperationOf<CopyOp>(w, 4), CopyOp{2304});
  EXPECT_EQ(w.forward_flop(), w.layers[0].forward_flop);
}

// From opset 18 on, axes are inputs, and a split says how many parts it has.
TEST(ImportOnnx, NewerOpsets) {
  Model m(20);
  std::string x = m.Convolution(m.Input("x", {"batch", "3", "4", "6"}), "w", 3, 8, 1, 1, 0);
  m.Integers("pads", {1, 2});
  m.Integers("axis", {-1});
  x = m.Node("Pad", {x, "pads", "", "axis"});
  onnx::NodeProto& split = m.Add("Split", {x}, 2);
  Model::Set(split, Model::Int{"axis", 3});
  Model::Set(split, Model::Int{"num_outputs", 2});
  m.Integers("axes", {2, 3});
  m.Output(m.Node("ReduceMean", {split.output(0), "axes"}, Model::Int{"keepdims", 0}));
  m.Output(m.Node("ReduceMax", {split.output(1), "axes"}));
  const Workload w = Import(m);
  ASSERT_EQ(w.layers.size(), 5U);
  EXPECT_EQ(OperationOf<CopyOp>(w, 1), CopyOp{288});
  EXPECT_EQ(OperationOf<PoolingOp>(w, 3),
            (PoolingOp{PoolingKind::kAverage, 8, {4, 5}, {4, 5}, {}, {}}));
  EXPECT_EQ(OperationOf<PoolingOp>(w, 4),
            (PoolingOp{PoolingKind::kMax, 8, {4, 4}, {4, 4}, {}, {}}));
}

TEST(ImportOnnx, ATiedWeightCountsOnce) {
  Model m;
  m.Weight("table", {500, 64});
  std::string x = m.Node("Gather", {"table", m.Input("ids", {"batch", "7"}, kInteger)});
  m.Output(m.Node("MatMul", {x, m.Node("Transpose", {"table"}, Model::Ints{"perm", {1, 0}})}));
  const Workload w = Import(m);
  ASSERT_EQ(w.layers.size(), 2U);
  EXPECT_EQ(w.parameters, 500 * 64);
  EXPECT_TRUE(w.layers[1].tensors.empty());
  EXPECT_EQ(OperationOf<DenseOp>(w, 1), (DenseOp{7, 64, 500, false, true}));
  EXPECT_NE(w.source.find("1 layer has a weight of earlier ones"), std::string::npos) << w.source;
}

// A matrix is the same one under every name that the graph gives it.
TEST(ImportOnnx, ATiedWeightCountsOnceWhateverItsNames) {
  Model m;
  m.Weight("table", {500, 64});
  std::string x = m.Node("Gather", {"table", m.Input("ids", {"batch", "7"}, kInteger)});
  x = m.Node("MatMul", {x, m.Node("Transpose", {"table"}, Model::Ints{"perm", {1, 0}})});
  m.Output(m.Node("MatMul", {x, m.Node("Identity", {"table"})}));
  const Workload w = Import(m);
  ASSERT_EQ(w.layers.size(), 3U);
  EXPECT_EQ(w.parameters, 500 * 64);
  EXPECT_EQ(OperationOf<DenseOp>(w, 2), (DenseOp{7, 500, 64, false, true}));
  EXPECT_NE(w.source.find("2 layers have weights of earlier ones"), std::string::npos) << w.source;
}

// As PyTorch stores the ones and zeros of an untrained network.
TEST(ImportOnnx, EqualVectorsAreNotTied) {
  Model m(17);
  m.Weight("one", {10});
  m.Weight("zero", {10});
  std::string x = m.Linear(m.Input("x", {"batch", "10"}), "fc", 10, 10);
  x = m.Node("LayerNormalization", {x, "one", "zero"});
  x = m.Node("LayerNormalization", {x, m.Node("Identity", {"one"}), m.Node("Identity", {"zero"})});
  m.Output(x);
  EXPECT_EQ(Import(m).parameters, 100 + 10 + 4 * 10);
}

// A vector that two layers read is one parameter, but no weight that a layer has of another.
TEST(ImportOnnx, SharedVectorsAreNotTied) {
  Model m(17);
  m.Weight("one", {10});
  m.Weight("zero", {10});
  std::string x = m.Linear(m.Input("x", {"batch", "10"}), "fc", 10, 10);
  for (int i = 0; i < 2; ++i) x = m.Node("LayerNormalization", {x, "one", "zero"});
  m.Output(x);
  const Workload w = Import(m);
  EXPECT_EQ(w.parameters, 100 + 10 + 2 * 10);
  EXPECT_EQ(w.source.find("of earlier ones"), std::string::npos) << w.source;
}

// A layer that reads some rows of another's matrix has less than its weight.
TEST(ImportOnnx, APartOfAMatrixIsNotTied) {
  for (const std::int64_t rows : {4, 6}) {
    Model m;
    m.Weight("w", {6, 6});
    m.Integers("from", {0});
    m.Integers("to", {rows});
    const std::string x = m.Node("MatMul", {m.Input("x", {"batch", "6"}), "w"});
    const std::string part = m.Node("Slice", {"w", "from", "to"});
    m.Output(m.Node("MatMul", {x, m.Node("Transpose", {part}, Model::Ints{"perm", {1, 0}})}));
    const Workload w = Import(m);
    EXPECT_EQ(w.parameters, 36);
    ASSERT_EQ(w.layers.size(), 2U);
    EXPECT_EQ(OperationOf<DenseOp>(w, 1), (DenseOp{1, 6, rows, false, true}));
    EXPECT_EQ(w.source.find("of earlier ones") != std::string::npos, rows == 6) << w.source;
  }
}

TEST(ImportOnnx, OnlyWhatIsBehindAParameterHasAGradient) {
  Model m;
  const std::string x = m.Input("x", {"batch", "6"});
  const std::string scaled = m.Node("Div", {x, m.Scalar(255)});
  m.Weight("w", {6, 4});
  m.Weight("w1", {4, 4});
  m.Output(m.Node("MatMul", {m.Node("MatMul", {scaled, "w"}), "w1"}));
  const Workload w = Import(m);
  ASSERT_EQ(w.layers.size(), 3U);
  EXPECT_FALSE(OperationOf<DenseOp>(w, 1).input_gradient);
  EXPECT_TRUE(OperationOf<DenseOp>(w, 2).input_gradient);
}

// torch.onnx.export(export_params=False).
TEST(ImportOnnx, ParametersAsInputs) {
  const auto model = [](const std::string& batch) {
    Model m;
    std::string x = m.Input("x", {batch, "6"});
    m.Input("0.weight", {"4", "6"});
    m.Input("0.bias", {"4"});
    m.Input("gain", {"4"});
    x = m.Node("Gemm", {x, "0.weight", "0.bias"}, Model::Int{"transB", 1});
    m.Output(m.Node("Mul", {x, "gain"}));
    return m;
  };
  for (const char* batch : {"batch", "1", "4"}) {
    const Workload w = Import(model(batch));
    ASSERT_EQ(w.layers.size(), 2U);
    EXPECT_EQ(w.layers[0].tensors, (Dims{24, 4}));
    EXPECT_EQ(w.layers[1].tensors, (Dims{4}));
  }
  Model m;
  m.Input("x", {"1", "6"});
  m.Input("y", {"1", "6"});
  m.Input("0.weight", {"4", "6"});
  m.Output(m.Node("Gemm", {m.Node("Add", {"x", "y"}), "0.weight"}, Model::Int{"transB", 1}));
  EXPECT_TRUE(Says(ErrorIn(m), "input y: is either data or a parameter"));
}

TEST(ImportOnnx, TheBatchIsTakenOut) {
  // Recurrent networks may have it second.
  Model m;
  m.Weight("w", {1, 16, 8});
  m.Weight("r", {1, 16, 4});
  m.Output(
      m.Node("LSTM", {m.Input("x", {"5", "batch", "8"}), "w", "r"}, Model::Int{"hidden_size", 4}));
  EXPECT_EQ(OperationOf<RecurrentOp>(Import(m), 0).positions, 5);
  Model fixed;
  fixed.Weight("w", {1, 16, 8});
  fixed.Weight("r", {1, 16, 4});
  fixed.Output(fixed.Node("LSTM", {fixed.Input("x", {"5", "3", "8"}), "w", "r"},
                          Model::Int{"hidden_size", 4}));
  EXPECT_EQ(OperationOf<RecurrentOp>(Import(fixed, {{"batch", 3}}), 0).positions, 5);
  EXPECT_TRUE(Says(ErrorIn(fixed), "does not divide by the batch of 5"));
  EXPECT_TRUE(Says(ErrorIn(fixed, {{{"batch", 7}}, ""}), "'7' is not a length of the input x"));
  // A constant holds the batch of the export.
  Model traced;
  traced.Integers("shape", {6, 20});
  traced.Weight("w", {20, 3});
  traced.Output(traced.Node(
      "MatMul", {traced.Node("Reshape", {traced.Input("x", {"batch", "4", "5"}), "shape"}), "w"}));
  EXPECT_EQ(OperationOf<DenseOp>(Import(traced, {{"batch", 6}}), 0).positions, 1);
  EXPECT_TRUE(Says(ErrorIn(traced), "--dim batch=N"));
}

TEST(ImportOnnx, SymbolicDimensionsNeedValues) {
  const Model m = TransformerBlock("batch", "tokens");
  EXPECT_TRUE(Says(ErrorIn(m), "input ids: 'tokens' is a dimension without a value"));
  EXPECT_TRUE(Says(ErrorIn(m), "--dim tokens=VALUE"));
  EXPECT_TRUE(Says(ErrorIn(m, {{{"tokens", 9}, {"width", 3}}, ""}),
                   "--dim: 'width' is not a dimension of this graph; allowed: batch, tokens"));
  EXPECT_TRUE(Says(ErrorIn(m, {{{"tokens", 0}}, ""}), "--dim tokens: '0' is out of range"));
  Model nameless;
  nameless.Output(nameless.Linear(nameless.Input("x", {"", "", "6"}), "fc", 6, 10));
  EXPECT_TRUE(Says(ErrorIn(nameless), "--dim x[1]=VALUE"));
  EXPECT_EQ(OperationOf<DenseOp>(Import(nameless, {{"x[1]", 9}}), 0).positions, 9);
}

TEST(ImportOnnx, UnknownOperatorsAreErrors) {
  const auto with = [](const std::string& op, const std::string& domain = "") {
    Model m;
    const std::string x = m.Linear(m.Input("x", {"batch", "6"}), "fc", 6, 6);
    onnx::NodeProto& node = m.Add(op, {x});
    node.set_name("here");
    node.set_domain(domain);
    m.Output(node.output(0));
    return ErrorIn(m);
  };
  EXPECT_TRUE(Says(with("Det"), "node here (Det): "));
  EXPECT_TRUE(Says(with("CumProduct"), "'CumProduct' is an operator (opset 13) whose work is"));
  EXPECT_TRUE(Says(with("NonZero"), "'NonZero' is an operator (opset 13) whose work is not known"));
  EXPECT_TRUE(Says(with("NonZero"), "BatchNormalization, Cast, "));
  EXPECT_TRUE(Says(with("Magic", "my.domain"), "of the domain my.domain"));
  EXPECT_TRUE(Says(with("Loop"), "'Loop' is control flow"));
  EXPECT_TRUE(Says(with("If"), "'If' is control flow"));
  EXPECT_TRUE(Says(with("QuantizeLinear"), "is of a quantised network"));
  EXPECT_TRUE(Says(with("QLinearConv"), "is of a quantised network"));
}

TEST(ImportOnnx, GraphsThatMakeNoSense) {
  const auto error = [](const std::function<void(Model&)>& build, int opset = 13) {
    Model m(opset);
    build(m);
    return ErrorIn(m);
  };
  EXPECT_TRUE(Says(error([](Model&) {}), "has no node"));
  EXPECT_TRUE(Says(error([](Model& m) { m.Node("Relu", {"x"}); }), "'x' is read, but nothing"));
  EXPECT_TRUE(Says(error([](Model& m) { m.Node("Relu", {m.Scalar(1)}); }), "has no input"));
  EXPECT_TRUE(Says(error([](Model& m) {
                     m.Node("Relu", {m.Input("x", {"1", "2"})});
                   }),
                   "has no trainable parameter"));
  EXPECT_TRUE(Says(error([](Model& m) {
                     m.Input("x", {"1"});
                     m.Add("Add", {"x", "Relu2:0"});
                     m.Node("Relu", {"Add1:0"});
                   }),
                   "waits for its own output"));
  EXPECT_TRUE(Says(error([](Model& m) {
                     m.Node("Relu", {m.Input("x", {"1"})});
                     m.Add("Relu", {"x"}).set_output(0, "Relu1:0");
                   }),
                   "'Relu1:0' is computed twice"));
  EXPECT_TRUE(Says(error([](Model& m) {
                     m.Weight("x", {1});
                     m.Weight("x", {2});
                     m.Node("Relu", {"x"});
                   }),
                   "'x' is stored twice"));
  EXPECT_TRUE(Says(error([](Model& m) {
                     m.Weight("w", {4, 5});
                     m.Node("MatMul", {m.Input("x", {"1", "3"}), "w"});
                   }),
                   "cannot work on its inputs: 1 x 3, 4 x 5"));
  EXPECT_TRUE(Says(error([](Model& m) {
                     m.Node("Relu", {m.Input("x", {"1", "-3"})});
                   }),
                   "input x: '-3' is not a length"));
  EXPECT_TRUE(Says(error([](Model& m) {
                     m.Node("Relu", {m.Input("x", {"9", "999999999999999"})});
                   }),
                   "input x: is too large"));
  EXPECT_TRUE(Says(error([](Model& m) {
                     m.Weight("w", {-4, 5});
                     m.Node("MatMul", {m.Input("x", {"1", "3"}), "w"});
                   }),
                   "'w' is a tensor too large, or of a negative length"));
  EXPECT_TRUE(Says(
      error([](Model& m) {
        m.Weight("w", {4, 3, 3, 3});
        m.Node("Conv", {m.Input("x", {"1", "3", "8", "8"}), "w"}, Model::Ints{"strides", {0, 1}});
      }),
      "'0' is out of range in strides"));
  EXPECT_TRUE(Says(error([](Model& m) { m.Node("Relu", {"x"}); }, 6), "'6' is an operator set"));
  EXPECT_TRUE(Says(error([](Model& m) { m.Node("Relu", {"x"}); }, 99), "7 to 23"));
  EXPECT_TRUE(Says(error([](Model& m) {
                     m.Output(m.Node("Relu", {m.Input("x", {"1"})}));
                     m.Output("nothing");
                   }),
                   "'nothing' is an output that nothing computes"));
}

TEST(ImportOnnx, NodesMayStandInAnyOrder) {
  Model m = ResidualStage("batch");
  auto* nodes = m.graph().mutable_node();
  for (int i = 0; i < nodes->size() / 2; ++i) nodes->SwapElements(i, nodes->size() - 1 - i);
  EXPECT_EQ(Import(m).forward_flop(), Import(ResidualStage("batch")).forward_flop());
}

TEST(ImportOnnx, FilesThatAreNoModels) {
  const TempFolder folder;
  const auto error = [&](const std::string& content) {
    return ErrorOf([&] { ImportOnnx(folder.Write("f.onnx", content), {}); });
  };
  EXPECT_TRUE(Says(error(""), "is not an ONNX model"));
  EXPECT_TRUE(Says(error("workload: resnet50\n"), "is not an ONNX model"));
  const std::string whole = ResidualStage("batch").proto.SerializeAsString();
  EXPECT_TRUE(Says(error(whole.substr(0, whole.size() / 2)), "is not an ONNX model"));
  EXPECT_TRUE(Says(ErrorOf([&] { ImportOnnx(folder.Path("none.onnx"), {}); }), "cannot be read"));
  EXPECT_TRUE(Says(ErrorOf([&] { ImportOnnx(folder.path(), {}); }), "is a directory"));
}

// Whatever stands in a file, the answer is a workload or an InputError.
TEST(ImportOnnx, DamagedModels) {
  std::mt19937 random(1);
  const TempFolder folder;
  for (const Model& model : {ResidualStage("batch"), TransformerBlock("2", "16")}) {
    const std::string whole = model.proto.SerializeAsString();
    for (int i = 0; i < 150; ++i) {
      std::string damaged = whole;
      for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
      try {
        const Workload w = ImportOnnx(folder.Write("f.onnx", damaged), {});
        EXPECT_TRUE(std::isfinite(w.forward_flop().si()));
        EXPECT_EQ(ParseWorkload(FormatWorkload(w), "w.yaml").parameters, w.parameters);
      } catch (const InputError& error) {
        EXPECT_FALSE(error.problem().empty());
      }
    }
  }
}

}  // namespace
}  // namespace stepcast
