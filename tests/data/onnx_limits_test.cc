// ONNX graphs that nobody exported: what they ask for costs little, and what is made of them is
// read again.
#include <gtest/gtest.h>
#include <onnx/shape_inference/implementation.h>

#include <ctime>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "data/io/workload_file.h"
#include "data/onnx/graph.h"
#include "data/onnx/import_onnx.h"
#include "tests/support/input_error.h"
#include "tests/support/onnx_model.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

using Dims = Model::Dims;
using Names = Model::Names;

constexpr std::int64_t kHuge = 1'000'000'000'000'000;

Names Texts(const Dims& dims) {
  Names texts;
  for (const std::int64_t length : dims) texts.push_back(std::to_string(length));
  return texts;
}

Workload Import(const Model& model) {
  static const TempFolder folder;
  return ImportOnnx(folder.Write("net.onnx", model.proto.SerializeAsString()), {});
}
std::optional<InputError> ErrorIn(const Model& model) {
  return ErrorOf([&] { Import(model); });
}

// A workload that its own file gives back, or an InputError.
void ExpectAnswer(const Model& model) {
  try {
    const Workload w = Import(model);
    const Workload read = ParseWorkload(FormatWorkload(w), "w.yaml");
    EXPECT_EQ(read.parameters, w.parameters);
    EXPECT_EQ(read.gradient_bytes, w.gradient_bytes);
    ASSERT_EQ(read.layers.size(), w.layers.size());
    for (std::size_t i = 0; i < w.layers.size(); ++i) {
      EXPECT_EQ(read.layers[i].tensors, w.layers[i].tensors);
      EXPECT_EQ(read.layers[i].operation, w.layers[i].operation);
    }
  } catch (const InputError& error) {
    EXPECT_FALSE(error.problem().empty());
    EXPECT_LT(std::string(error.what()).size(), 2000U);
  }
}

double CpuSeconds(const std::function<void()>& act) {
  const std::clock_t start = std::clock();
  act();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// ---- Shapes, as libonnx infers them where it can be trusted.

std::optional<Dims> ShapeByOnnx(const Model& model, const std::string& value) {
  onnx::ModelProto proto = model.proto;
  try {
    onnx::shape_inference::InferShapes(proto, onnx::OpSchemaRegistry::Instance(), {true, 1, false});
  } catch (const std::exception&) {
    return std::nullopt;
  }
  for (const onnx::ValueInfoProto& info : proto.graph().value_info()) {
    if (info.name() != value || !info.type().tensor_type().has_shape()) continue;
    Dims dims;
    for (const auto& dim : info.type().tensor_type().shape().dim()) {
      if (dim.dim_value() < 1) return std::nullopt;  // unknown; or it did not look at the window
      dims.push_back(dim.dim_value());
    }
    return dims;
  }
  return std::nullopt;
}

std::optional<Dims> ShapeHere(const Model& model, const std::string& value) {
  static const TempFolder folder;
  try {
    const OnnxGraph graph =
        ReadOnnxGraph(folder.Write("net.onnx", model.proto.SerializeAsString()), {});
    for (const OnnxValue& v : graph.values) {
      if (v.name == value) return v.dims;
    }
  } catch (const InputError&) {
  }
  return std::nullopt;
}

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  bool Yes() { return Between(0, 1) == 1; }
  Dims Some(std::size_t count, std::int64_t low, std::int64_t high) {
    Dims dims;
    for (std::size_t i = 0; i < count; ++i) dims.push_back(Between(low, high));
    return dims;
  }
  template <class T>
  const T& Of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(Between(0, std::ssize(list) - 1))];
  }

 private:
  std::mt19937 random_;
};

// Strides, dilations and pads for a window over `axes` axes.
void SetWindow(onnx::NodeProto& node, std::size_t axes, bool dilated, Draw* draw) {
  // Beyond a window's length libonnx does not divide as ONNX says.
  Model::Set(node, Model::Ints{"strides", draw->Some(axes, 1, 2)});
  if (dilated) Model::Set(node, Model::Ints{"dilations", draw->Some(axes, 1, 2)});
  const std::vector<const char*> named = {"VALID", "SAME_UPPER", "SAME_LOWER"};
  if (draw->Between(0, 3) == 0) {
    Model::Set(node, Model::Word{"auto_pad", draw->Of(named)});
  } else {
    Model::Set(node, Model::Ints{"pads", draw->Some(2 * axes, 0, 2)});
  }
}

// A model of one node that can run, of an operator whose shape takes more than a glance.
Model OneNode(Draw* draw) {
  Model m;
  const auto input = [&](const char* name, const Dims& dims, int type = kReal) {
    return m.Input(name, Texts(dims), type);
  };
  const std::size_t axes = static_cast<std::size_t>(draw->Between(1, 3));
  const auto joined = [](Dims a, const Dims& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const Dims image = joined(draw->Some(2, 1, 4), draw->Some(axes, 8, 14));
  const Dims any = draw->Some(static_cast<std::size_t>(draw->Between(1, 4)), 1, 6);
  const auto rank = static_cast<std::int64_t>(any.size());
  const std::int64_t axis = draw->Between(0, rank - 1);
  switch (draw->Between(0, 19)) {
    case 0: {
      const std::int64_t groups = draw->Yes() ? 1 : image[1];
      const Dims w =
          joined({groups * draw->Between(1, 3), image[1] / groups}, draw->Some(axes, 2, 4));
      m.Weight("w", w);
      onnx::NodeProto& node = m.Add("Conv", {input("x", image), "w"});
      Model::Set(node, Model::Int{"group", groups});
      SetWindow(node, axes, true, draw);
      break;
    }
    case 1: {
      m.Weight("w", joined({image[1], draw->Between(1, 3)}, draw->Some(axes, 2, 4)));
      onnx::NodeProto& node = m.Add("ConvTranspose", {input("x", image), "w"});
      Model::Set(node, Model::Ints{"strides", draw->Some(axes, 1, 3)});
      Model::Set(node, Model::Ints{"pads", draw->Some(2 * axes, 0, 1)});
      Model::Set(node, Model::Ints{"dilations", draw->Some(axes, 1, 2)});
      break;
    }
    case 2: {
      const bool most = draw->Yes();
      onnx::NodeProto& node = m.Add(most ? "MaxPool" : "AveragePool", {input("x", image)});
      Model::Set(node, Model::Ints{"kernel_shape", draw->Some(axes, 2, 4)});
      Model::Set(node, Model::Int{"ceil_mode", draw->Between(0, 1)});
      SetWindow(node, axes, most, draw);
      break;
    }
    case 3: {
      const Dims n = draw->Some(3, 1, 5);
      const bool a = draw->Yes();
      const bool b = draw->Yes();
      m.Weight("w", b ? Dims{n[2], n[1]} : Dims{n[1], n[2]});
      m.Node("Gemm", {input("x", a ? Dims{n[1], n[0]} : Dims{n[0], n[1]}), "w"},
             Model::Int{"transA", a}, Model::Int{"transB", b});
      break;
    }
    case 4: {
      const std::int64_t depth = draw->Between(1, 5);
      Dims left = joined(any, {depth});
      Dims right = draw->Yes() ? Dims{depth} : joined(any, {0});
      if (right.size() > 1) right[right.size() - 2] = depth, right.back() = draw->Between(1, 5);
      for (std::size_t i = 0; i + 2 < right.size(); ++i) {
        if (draw->Between(0, 2) == 0) right[i] = 1;
      }
      m.Weight("w", right);
      m.Node("MatMul", {input("x", left), "w"});
      break;
    }
    case 5:
      m.Node("Gather", {input("x", any), input("i", draw->Some(2, 1, 4), kInteger)},
             Model::Int{"axis", draw->Yes() ? axis : axis - rank});
      break;
    case 6: {
      Dims other = any;
      other[static_cast<std::size_t>(axis)] = draw->Between(1, 5);
      m.Node("Concat", {input("x", any), input("y", other)}, Model::Int{"axis", axis});
      break;
    }
    case 7: {
      m.Integers("starts", draw->Some(1, -8, 8));
      m.Integers("ends", draw->Yes() ? draw->Some(1, -8, 8) : Dims{9223372036854775807});
      m.Integers("axes", {axis});
      m.Integers("steps", {draw->Yes() ? draw->Between(1, 3) : draw->Between(-3, -1)});
      m.Node("Slice", {input("x", any), "starts", "ends", "axes", "steps"});
      break;
    }
    case 8: {
      Dims even = any;
      even[static_cast<std::size_t>(axis)] = 6;
      Model::Set(m.Add("Split", {input("x", even)}, 3), Model::Int{"axis", axis});
      break;
    }
    case 9: {
      Dims one = any;
      one[static_cast<std::size_t>(axis)] = 1;
      m.Integers("axes", {axis});
      m.Node("Squeeze", {input("x", one), "axes"});
      break;
    }
    case 10:
      m.Integers("axes", {0, draw->Yes() ? -1 : 1});
      m.Node("Unsqueeze", {input("x", any), "axes"});
      break;
    case 11: {
      Dims shape = any;
      shape[static_cast<std::size_t>(axis)] = draw->Yes() ? 0 : -1;
      m.Integers("shape", shape);
      m.Node("Reshape", {input("x", any), "shape"});
      break;
    }
    case 12:
      m.Integers("shape", joined({draw->Between(1, 3)}, any));
      m.Node("Expand", {input("x", any), "shape"});
      break;
    case 13:
      m.Integers("repeats", draw->Some(any.size(), 1, 3));
      m.Node("Tile", {input("x", any), "repeats"});
      break;
    case 14: {
      const std::int64_t block = draw->Between(1, 3);
      const Dims n = draw->Some(4, 1, 3);
      const bool deep = draw->Yes();
      m.Node(deep ? "DepthToSpace" : "SpaceToDepth",
             {input("x", deep ? Dims{n[0], n[1] * block * block, n[2], n[3]}
                              : Dims{n[0], n[1], n[2] * block, n[3] * block})},
             Model::Int{"blocksize", block});
      break;
    }
    case 15:
      m.Node("Flatten", {input("x", any)}, Model::Int{"axis", draw->Between(-rank, rank)});
      break;
    case 16: {
      const bool lstm = draw->Yes();
      const std::int64_t hidden = draw->Between(1, 4);
      const std::int64_t directions = draw->Between(1, 2);
      const Dims x = draw->Some(3, 1, 4);
      m.Weight("w", {directions, (lstm ? 4 : 3) * hidden, x[2]});
      m.Weight("r", {directions, (lstm ? 4 : 3) * hidden, hidden});
      m.Node(lstm ? "LSTM" : "GRU", {input("x", x), "w", "r"}, Model::Int{"hidden_size", hidden},
             Model::Word{"direction", directions == 2 ? "bidirectional" : "forward"});
      break;
    }
    case 17: {
      Dims other = any;
      for (std::int64_t& length : other) length = draw->Yes() ? 1 : length;
      other.erase(other.begin(), other.begin() + draw->Between(0, rank - 1));
      m.Node(draw->Yes() ? "Add" : "Mul", {input("x", any), input("y", other)});
      break;
    }
    case 18:
      m.Node("ReduceMean", {input("x", any)}, Model::Ints{"axes", {axis}},
             Model::Int{"keepdims", draw->Between(0, 1)});
      break;
    default: {
      Dims order;
      for (std::int64_t i = 0; i < rank; ++i) order.push_back((i + axis) % rank);
      m.Node("Transpose", {input("x", any)}, Model::Ints{"perm", order});
    }
  }
  return m;
}

TEST(OnnxShapes, AreThoseOfLibonnx) {
  Draw draw(3);
  int compared = 0;
  for (int i = 0; i < 800; ++i) {
    const Model m = OneNode(&draw);
    const onnx::NodeProto& node = m.proto.graph().node(0);
    for (const std::string& value : node.output()) {
      const std::optional<Dims> expected = ShapeByOnnx(m, value);
      if (!expected) continue;
      ++compared;
      ASSERT_EQ(ShapeHere(m, value), expected) << m.proto.DebugString();
    }
  }
  EXPECT_GT(compared, 600);
}

// What operators do where they are told less, or more, than the models above tell them.
TEST(OnnxShapes, ByHand) {
  const auto shape = [](const std::function<std::string(Model*)>& build) {
    Model m;
    const std::string value = build(&m);
    return ShapeHere(m, value).value_or(Dims());
  };
  const auto image = [](Model* m) { return m->Input("x", {"1", "4", "8", "7"}); };
  // (8 - 1) 2 + 3 - 1 - 1 and (7 - 1) 3 + 3, and what is to be added at one end.
  for (const Dims& more : {Dims{0, 0}, Dims{1, 2}}) {
    EXPECT_EQ(shape([&](Model* m) {
                m->Weight("w", {4, 3, 3, 3});
                return m->Node("ConvTranspose", {image(m), "w"}, Model::Ints{"strides", {2, 3}},
                               Model::Ints{"pads", {1, 0, 1, 0}},
                               Model::Ints{"output_padding", more});
              }),
              (Dims{1, 3, 15 + more[0], 21 + more[1]}));
  }
  EXPECT_EQ(shape([&](Model* m) { return m->Node("Transpose", {image(m)}); }), (Dims{7, 8, 4, 1}));
  // From where to before where, by how much.
  const auto range = [&](std::int64_t from, std::int64_t to, std::int64_t by) {
    return shape([&](Model* m) {
      const std::string all = m->Node("Range", {m->Index(from), m->Index(to), m->Index(by)});
      return m->Node("Expand", {m->Input("x", {"1"}), all});
    });
  };
  EXPECT_EQ(range(2, 7, 2), (Dims{2, 4, 6}));
  EXPECT_EQ(range(2, 8, 2), (Dims{2, 4, 6}));
  EXPECT_EQ(range(6, 1, -2), (Dims{6, 4, 2}));
  // Numbers below zero count from the end.
  EXPECT_EQ(
      shape([&](Model* m) {
        const std::string all = m->Integers("all", {3, 4, 5});
        const std::string picked = m->Node("Gather", {all, m->Integers("picks", {-1, 1, -3, 0})});
        return m->Node("Expand", {m->Input("x", {"1"}), picked});
      }),
      (Dims{5, 4, 3, 3}));
}

// ---- Graphs that make no sense.

// What picks, pads, scales and splits, with and without what may be left out.
TEST(OnnxShapes, OfWhatIsMovedByHand) {
  using Ints = Model::Ints;
  using Int = Model::Int;
  const auto shape = [](const std::function<std::string(Model*)>& build, int opset = 13) {
    Model m(opset);
    const std::string value = build(&m);
    return ShapeHere(m, value);
  };
  const auto of = [&](const Dims& x, const std::string& op, const auto&... attributes) {
    return shape([&](Model* m) { return m->Node(op, {m->Input("x", Texts(x))}, attributes...); });
  };
  const auto with = [&](const Dims& x, const std::string& op, const Dims& other,
                        const auto&... attributes) {
    return shape([&](Model* m) {
      return m->Node(op, {m->Input("x", Texts(x)), m->Input("y", Texts(other), kInteger)},
                     attributes...);
    });
  };
  EXPECT_EQ(with({2, 3}, "GatherElements", {2, 2}), (Dims{2, 2}));
  EXPECT_FALSE(with({2, 3}, "GatherElements", {2}));
  EXPECT_EQ(with({2, 3, 4}, "GatherND", {5, 2}), (Dims{5, 4}));
  EXPECT_EQ(with({2, 3, 4}, "GatherND", {5, 3}), (Dims{5}));
  EXPECT_EQ(with({2, 3, 4}, "GatherND", {2, 5, 1}, Int{"batch_dims", 1}), (Dims{2, 5, 4}));
  EXPECT_FALSE(with({2, 3, 4}, "GatherND", {5, 4}));
  EXPECT_FALSE(with({2, 3, 4}, "GatherND", {2, 3}, Int{"batch_dims", 1}));
  EXPECT_EQ(with({4, 5}, "SoftmaxCrossEntropyLoss", {4}), Dims());
  EXPECT_EQ(with({4, 5}, "SoftmaxCrossEntropyLoss", {4}, Model::Word{"reduction", "none"}),
            (Dims{4}));

  EXPECT_EQ(of({2, 3, 4}, "ArgMax"), (Dims{1, 3, 4}));
  EXPECT_EQ(of({2, 3, 4}, "ArgMin", Int{"axis", 1}), (Dims{2, 1, 4}));
  EXPECT_EQ(of({2, 3, 4}, "ArgMax", Int{"axis", -1}, Int{"keepdims", 0}), (Dims{2, 3}));
  EXPECT_EQ(of({2, 3, 4}, "ReduceSum"), (Dims{1, 1, 1}));
  EXPECT_EQ(of({2, 3, 4}, "ReduceSum", Int{"noop_with_empty_axes", 1}), (Dims{2, 3, 4}));
  EXPECT_EQ(of({2, 3, 7, 5}, "GlobalMaxPool"), (Dims{2, 3, 1, 1}));
  EXPECT_EQ(of({1, 3, 1}, "Squeeze"), (Dims{3}));
  EXPECT_EQ(of({2, 3, 4}, "Flatten"), (Dims{2, 12}));
  EXPECT_EQ(of({2, 3, 4}, "Flatten", Int{"axis", 3}), (Dims{24, 1}));
  EXPECT_EQ(of({2, 3, 4}, "Flatten", Int{"axis", -3}), (Dims{1, 24}));
  EXPECT_EQ(with({2, 3}, "Concat", {2, 4}, Int{"axis", 1}), (Dims{2, 7}));
  EXPECT_EQ(with({2, 3}, "Concat", {2, 4}), (Dims{2, 7})) << "before opset 4 the axis is 1";

  // Lengths in front, then behind, of all axes or of those that are told; negative ones cut.
  EXPECT_EQ(shape([](Model* m) {
              const std::string pads = m->Integers("pads", {0, 1, 2, -1});
              return m->Node("Pad", {m->Input("x", {"3", "4"}), pads});
            }),
            (Dims{5, 4}));
  EXPECT_EQ(shape(
                [](Model* m) {
                  const std::string pads = m->Integers("pads", {1, 2});
                  const std::string axes = m->Integers("axes", {-1});
                  return m->Node("Pad", {m->Input("x", {"3", "4"}), pads, "", axes});
                },
                18),
            (Dims{3, 7}));
  EXPECT_EQ(shape([](Model* m) {
              const std::string sizes = m->Integers("sizes", {1, 2, 9, 8});
              return m->Node("Resize", {m->Input("x", {"1", "2", "3", "4"}), "", "", sizes});
            }),
            (Dims{1, 2, 9, 8}));
  // Of scales what is whole of a length: 1.5 times 3 is 4.
  EXPECT_EQ(shape(
                [](Model* m) {
                  onnx::NodeProto& node = m->Add("Upsample", {m->Input("x", {"1", "2", "3", "3"})});
                  onnx::AttributeProto* scales = node.add_attribute();
                  scales->set_name("scales");
                  scales->set_type(onnx::AttributeProto::FLOATS);
                  for (const float scale : {1.0F, 1.0F, 2.0F, 1.5F}) scales->add_floats(scale);
                  return node.output(0);
                },
                7),
            (Dims{1, 2, 6, 4}));

  // Five in two, in four, and as they are told.
  const auto split = [&](int count, const Dims& told) {
    std::vector<std::optional<Dims>> parts;
    for (int i = 0; i < count; ++i) {
      parts.push_back(shape([&](Model* m) {
        Names inputs = {m->Input("x", {"2", "5"})};
        if (!told.empty()) inputs.push_back(m->Integers("told", told));
        onnx::NodeProto& node = m->Add("Split", inputs, count);
        Model::Set(node, Int{"axis", 1});
        return node.output(i);
      }));
    }
    return parts;
  };
  using Parts = std::vector<std::optional<Dims>>;
  EXPECT_EQ(split(2, {}), (Parts{Dims{2, 3}, Dims{2, 2}}));
  EXPECT_EQ(split(4, {}), (Parts{Dims{2, 2}, Dims{2, 2}, Dims{2, 1}, Dims{2, 0}}));
  EXPECT_EQ(split(2, {1, 4}), (Parts{Dims{2, 1}, Dims{2, 4}}));
  EXPECT_EQ(split(2, {6, 0}), (Parts{std::nullopt, std::nullopt}));
  EXPECT_EQ(split(2, {1, 2, 2}), (Parts{std::nullopt, std::nullopt}));

  // Of a recurrent layer the sequence comes first, or the batch.
  for (const bool batch_first : {false, true}) {
    for (const int output : {0, 1}) {
      EXPECT_EQ(shape(
                    [&](Model* m) {
                      m->Weight("w", {1, 16, 3});
                      m->Weight("r", {1, 16, 4});
                      onnx::NodeProto& node =
                          m->Add("LSTM", {m->Input("x", {"2", "5", "3"}), "w", "r"}, 3);
                      Model::Set(node, Int{"hidden_size", 4});
                      Model::Set(node, Int{"layout", batch_first ? 1 : 0});
                      return node.output(output);
                    },
                    14),
                batch_first ? (output == 0 ? Dims{2, 5, 1, 4} : Dims{2, 1, 4})
                            : (output == 0 ? Dims{2, 1, 5, 4} : Dims{1, 5, 4}));
    }
  }
  // Transposed convolutions to a size that is named, or told.
  const auto back = [&](const auto& attribute) {
    return shape([&](Model* m) {
      m->Weight("w", {4, 3, 3, 3});
      return m->Node("ConvTranspose", {m->Input("x", {"1", "4", "8", "7"}), "w"},
                     Ints{"strides", {2, 3}}, Int{"group", 1}, attribute);
    });
  };
  EXPECT_EQ(back(Model::Word{"auto_pad", "SAME_UPPER"}), (Dims{1, 3, 16, 21}));
  EXPECT_EQ(back(Model::Word{"auto_pad", "VALID"}), (Dims{1, 3, 17, 21}));
  EXPECT_EQ(back(Ints{"output_shape", {20, 22}}), (Dims{1, 3, 20, 22}));
  EXPECT_FALSE(back(Ints{"output_shape", {20}}));
}

TEST(OnnxLimits, RanksThatDoNotFit) {
  const std::vector<std::string> ops = {"Conv",
                                        "ConvTranspose",
                                        "MaxPool",
                                        "Gemm",
                                        "MatMul",
                                        "LSTM",
                                        "GRU",
                                        "BatchNormalization",
                                        "GlobalAveragePool",
                                        "DepthToSpace",
                                        "Concat",
                                        "GatherND",
                                        "GatherElements"};
  for (const std::string& op : ops) {
    for (std::size_t x = 0; x < 6; ++x) {
      for (std::size_t w = 0; w < 6; ++w) {
        Model m;
        m.Input("x", Names(x, "1"));
        m.Weight("w", Dims(w, 1));
        m.Weight("v", Dims(w, 1));
        m.Node(op, {"x", "w", "v"}, Model::Ints{"kernel_shape", Dims(2, 1)}, Model::Int{"axis", 0});
        ExpectAnswer(m);
      }
    }
  }
  Model m;
  m.Weight("w", {1, 1, 1, 1});
  m.Node("ConvTranspose", {m.Input("x", {"1", "1", "8"}), "w"});
  EXPECT_TRUE(Says(ErrorIn(m), "cannot work on its inputs: 1 x 1 x 8, 1 x 1 x 1 x 1"));
}

// A constant without elements whose other length is `kHuge`.
std::string Empty(Model* m, const std::string& name, const Dims& dims) {
  onnx::TensorProto* tensor = m->graph().add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(kInteger);
  for (const std::int64_t length : dims) tensor->add_dims(length);
  return name;
}

TEST(OnnxLimits, LengthsThatNobodyMayCountTo) {
  const std::vector<std::function<void(Model*)>> graphs = {
      [](Model* m) {
        m->Weight("w", {1, 1, 3});
        m->Input("x", Texts({1, 1, kHuge}));
        m->Node("Conv", {"x", "w"}, Model::Ints{"strides", {7}},
                Model::Word{"auto_pad", "SAME_UPPER"});
      },
      [](Model* m) {
        m->Weight("w", {1, 1, kHuge});
        m->Node("Conv", {m->Input("x", Texts({1, 1, kHuge})), "w"},
                Model::Ints{"dilations", {1'000'000'000}});
      },
      [](Model* m) {
        m->Weight("w", {1, 1, kHuge});
        m->Node("ConvTranspose", {m->Input("x", Texts({1, 1, kHuge})), "w"},
                Model::Ints{"strides", {1'000'000'000}});
      },
      [](Model* m) {
        m->Integers("zero", {0});
        m->Integers("end", {kHuge});
        m->Node("Slice", {Empty(m, "x", {kHuge, 0}), "zero", "end", "zero"});
      },
      [](Model* m) {
        m->Integers("zero", {0});
        m->Node("Gather", {Empty(m, "x", {kHuge, 0, 4}), "zero"}, Model::Int{"axis", 2});
      },
      [](Model* m) {
        Empty(m, "x", {kHuge, 0});
        m->Node("Concat", {"x", "x"}, Model::Int{"axis", 1});
      },
      [](Model* m) {
        Empty(m, "x", {kHuge, kHuge, 0, kHuge});
        m->Node("Transpose", {"x"}, Model::Ints{"perm", {3, 2, 1, 0}});
      },
      [](Model* m) {
        m->Integers("shape", {kHuge, 0, kHuge, kHuge});
        m->Node("Flatten", {m->Node("ConstantOfShape", {"shape"})}, Model::Int{"axis", 3});
      },
      [](Model* m) {
        m->Integers("zero", {0});
        m->Integers("end", {kHuge});
        m->Node("Slice", {m->Input("y", Texts({kHuge})), "zero", "end", "zero"});
      },
      [](Model* m) {
        m->Node("Reshape", {m->Input("y", {"1"}), m->Integers("shape", Dims(1000, 1))});
      },
  };
  for (const auto& build : graphs) {
    Model m;
    build(&m);
    m.Weight("last", {4, 4});
    m.Node("MatMul", {m.Input("in", {"1", "4"}), "last"});
    EXPECT_LT(CpuSeconds([&] { ExpectAnswer(m); }), 1) << m.proto.ShortDebugString();
  }
}

TEST(OnnxLimits, WhatAWorkloadFileDoesNotHold) {
  Model batches;  // statistics of many layers
  std::string x = batches.Input("x", {"1", "8"});
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    batches.Weight("one" + n, {1});
    for (const char* part : {"mean", "var"}) batches.Weight(part + n, {kHuge / 2});
    batches.Node("BatchNormalization", {x, "one" + n, "one" + n, "mean" + n, "var" + n});
  }
  EXPECT_TRUE(Says(ErrorIn(batches), "has too many parameters"));

  Model bias;  // of one element, for two times eight gates
  bias.Weight("w", {1, 4, 1});
  bias.Weight("r", {1, 4, 1});
  bias.Weight("b", {1, 1});
  bias.Node("LSTM", {bias.Input("x", {"1", "1", "1"}), "w", "r", "b"});
  EXPECT_TRUE(Says(ErrorIn(bias), "'b' does not fit"));

  Model work;
  work.Weight("w", {1'000'000'000, 1'000'000});
  work.Weight("v", {1'000'000, 1'000'000'000});
  work.Node("MatMul",
            {work.Node("MatMul", {work.Input("x", {"1", "1000000", "1000000000"}), "w"}), "v"});
  ExpectAnswer(work);
  Model product;
  product.Weight("w", {4, 4});
  product.Node("MatMul", {product.Input("x", {"1", "4"}), "w"});
  product.Node("MatMul", {product.Input("a", {"10000000", "100000000"}),
                          product.Input("b", {"100000000", "10000000"})});
  ExpectAnswer(product);
  Model gradients;  // 4 bytes of each parameter
  gradients.Weight("w", {1'000'000, 900'000'000});
  gradients.Node("MatMul", {gradients.Input("x", {"1", "1000000"}), "w"});
  EXPECT_EQ(Import(gradients).gradient_bytes.in(kBytes), 3.6e15);
  ExpectAnswer(gradients);
}

// Graphs of any operators on any values.
TEST(OnnxLimits, NoiseIsAnsweredAndReadBack) {
  const Names ops = {"Add",
                     "ArgMax",
                     "AveragePool",
                     "BatchNormalization",
                     "Cast",
                     "Clip",
                     "Concat",
                     "ConstantOfShape",
                     "Conv",
                     "ConvTranspose",
                     "DepthToSpace",
                     "Div",
                     "Dropout",
                     "Equal",
                     "Expand",
                     "Flatten",
                     "GRU",
                     "Gather",
                     "GatherElements",
                     "GatherND",
                     "Gemm",
                     "GlobalMaxPool",
                     "GroupNormalization",
                     "Identity",
                     "InstanceNormalization",
                     "LSTM",
                     "LayerNormalization",
                     "LogSoftmax",
                     "MatMul",
                     "MaxPool",
                     "Mul",
                     "PRelu",
                     "Pad",
                     "Range",
                     "ReduceMax",
                     "ReduceMean",
                     "ReduceProd",
                     "Relu",
                     "Reshape",
                     "Resize",
                     "ScatterND",
                     "Shape",
                     "Sigmoid",
                     "Size",
                     "Slice",
                     "Softmax",
                     "SpaceToDepth",
                     "Split",
                     "Squeeze",
                     "Sum",
                     "Tile",
                     "Transpose",
                     "Unsqueeze",
                     "Upsample",
                     "Where"};
  const Dims lengths = {0, 1, 1, 1, 2, 3, 4, 8, 1000, 1'000'000, 1'000'000'000, kHuge};
  const Dims numbers = {0,
                        1,
                        1,
                        2,
                        3,
                        4,
                        -1,
                        -2,
                        64,
                        -3,
                        77,
                        1000,
                        kHuge,
                        1'000'000'000,
                        -9223372036854775807 - 1,
                        9223372036854775807};
  const std::vector<const char*> attributes = {
      "axis",  "group",      "blocksize", "to",  "hidden_size", "keepdims",
      "start", "num_groups", "layout",    "end", "batch_dims",  "transA"};
  const std::vector<const char*> lists = {
      "axes",   "pads", "strides", "dilations",    "kernel_shape", "perm",
      "starts", "ends", "split",   "output_shape", "steps",        "output_padding"};
  const std::vector<const char*> padding = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
  Draw draw(5);
  for (int i = 0; i < 2000; ++i) {
    Model m(static_cast<int>(draw.Between(7, 23)));
    const auto some = [&](const Dims& from, std::int64_t most) {
      Dims list;
      for (std::int64_t k = draw.Between(0, most); k > 0; --k) list.push_back(draw.Of(from));
      return list;
    };
    Names values = {m.Input("x", Texts(some({1, 2, 3, 4, 8, 1000, 1'000'000}, 4)))};
    for (int k = 0; k < 3; ++k) {
      values.push_back(m.Weight("w" + std::to_string(k), some(lengths, 4)));
      values.push_back(m.Integers("i" + std::to_string(k), some(numbers, 5)));
    }
    values.push_back(Empty(&m, "empty", some(lengths, 3)));
    for (std::int64_t nodes = draw.Between(1, 8); nodes > 0; --nodes) {
      Names inputs;
      for (std::int64_t k = draw.Between(0, 5); k > 0; --k) {
        inputs.push_back(draw.Between(0, 9) == 0 ? "" : draw.Of(values));
      }
      onnx::NodeProto& node = m.Add(draw.Of(ops), inputs, static_cast<int>(draw.Between(1, 3)));
      for (int k = 0; k < 2; ++k) {
        Model::Set(node, Model::Int{draw.Of(attributes), draw.Of(numbers)});
        Model::Set(node, Model::Ints{draw.Of(lists), some(numbers, 4)});
      }
      Model::Set(node, Model::Word{"auto_pad", draw.Of(padding)});
      values.insert(values.end(), node.output().begin(), node.output().end());
    }
    ExpectAnswer(m);
    if (HasFailure()) FAIL() << m.proto.DebugString();
  }
}

// ---- Cost in proportion to the file.

struct Growing {
  const char* what;
  int count;
  std::function<void(Model*, int)> build;
};

TEST(OnnxLimits, CostGrowsAsTheFileDoes) {
  const std::vector<Growing> kinds = {
      {"nodes behind a concatenation of many parameters", 500,
       [](Model* m, int n) {
         Names parts;
         for (int i = 0; i < n; ++i) parts.push_back(m->Weight("p" + std::to_string(i), {1, 4}));
         std::string w = m->Node("Concat", parts, Model::Int{"axis", 0});
         for (int i = 0; i < n; ++i) w = m->Node("Identity", {w});
         m->Node("MatMul", {m->Input("in", {"1", std::to_string(n)}), w});
       }},
      {"inputs that go the same long way", 500,
       [](Model* m, int n) {
         m->Input("in", {"1", "4"});
         Names parts;
         for (int i = 0; i < n; ++i) parts.push_back(m->Input("p" + std::to_string(i), {"1", "4"}));
         std::string w = m->Node("Concat", parts, Model::Int{"axis", 1});
         for (int i = 0; i < n; ++i) w = m->Node("Identity", {w});
         m->Integers("shape", {4, n});
         m->Node("MatMul", {"in", m->Node("Reshape", {w, "shape"})});
       }},
      {"large constants", 1000,
       [](Model* m, int n) {
         m->Integers("shape", {65536});
         for (int i = 0; i < n; ++i) m->Node("ConstantOfShape", {"shape"});
       }},
      {"broadcasting of many dimensions", 200,
       [](Model* m, int n) {
         m->Integers("shape", Dims(16, 2));
         m->Integers("ones", Dims(60, 1));
         const std::string large = m->Node("ConstantOfShape", {"shape"});
         const std::string flat = m->Node("ConstantOfShape", {"ones"});
         for (int i = 0; i < n; ++i) m->Node("Add", {large, flat});
       }},
      {"differences from one mean", 500,
       [](Model* m, int n) {
         m->Input("x", {"1", "4"});
         const std::string mean = m->Node("ReduceMean", {"x"}, Model::Ints{"axes", {1}});
         for (int i = 0; i < n; ++i) m->Node("Sub", {"x", mean});
       }},
      {"a matrix that is doubled again and again", 500,
       [](Model* m, int n) {
         std::string w = m->Weight("w", {4, 4});
         for (int i = 0; i < n; ++i) w = m->Node("Add", {w, w});
         m->Node("MatMul", {m->Input("in", {"1", "4"}), w});
       }},
      {"outputs of one split", 500,
       [](Model* m, int n) {
         m->Weight("w", {n, 4});
         onnx::NodeProto& split = m->Add("Split", {"w"}, n);
         Model::Set(split, Model::Int{"axis", 0});
         const Names parts(split.output().begin(), split.output().end());
         m->Node("Sum", parts);
       }},
  };
  for (const Growing& kind : kinds) {
    SCOPED_TRACE(kind.what);
    const auto cost = [&](int count) {
      Model m;
      kind.build(&m, count);
      m.Weight("last", {4, 4});
      m.Node("MatMul", {m.Input("final", {"1", "4"}), "last"});
      double least = 1e9;
      for (int i = 0; i < 3; ++i) least = std::min(least, CpuSeconds([&] { ExpectAnswer(m); }));
      return least;
    };
    const double small = cost(kind.count) + 2e-3;
    EXPECT_LT(cost(16 * kind.count) / small, 16 * 3.0);
  }
}

}  // namespace
}  // namespace stepcast
