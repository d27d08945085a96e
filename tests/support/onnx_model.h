// ONNX models that tests write down node by node.
#ifndef STEPCAST_TESTS_SUPPORT_ONNX_MODEL_H_
#define STEPCAST_TESTS_SUPPORT_ONNX_MODEL_H_

// Generated code is not judged by our warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#include <onnx/onnx_pb.h>
#pragma GCC diagnostic pop

#include <cstdint>
#include <string>
#include <vector>

namespace stepcast {

inline constexpr int kReal = onnx::TensorProto::FLOAT;
inline constexpr int kInteger = onnx::TensorProto::INT64;

// Writes an ONNX model down node by node; each returns the name of its output.
class Model {
 public:
  using Dims = std::vector<std::int64_t>;
  using Names = std::vector<std::string>;

  explicit Model(int opset = 13) {
    proto.set_ir_version(8);
    proto.set_producer_name("test");
    proto.add_opset_import()->set_version(opset);
    graph().set_name("net");
  }

  onnx::GraphProto& graph() { return *proto.mutable_graph(); }

  // Dims are numbers, names, or empty for neither.
  std::string Input(const std::string& name, const Names& lengths, int type = kReal) {
    onnx::ValueInfoProto* input = graph().add_input();
    input->set_name(name);
    auto* tensor = input->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const std::string& length : lengths) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (length.empty()) continue;
      const bool number = length.find_first_not_of("-0123456789") == std::string::npos;
      if (number) {
        dim->set_dim_value(std::stoll(length));
      } else {
        dim->set_dim_param(length);
      }
    }
    return name;
  }

  // Only the shape: the values would be in a file that is not there.
  std::string Weight(const std::string& name, const Dims& dims) {
    onnx::TensorProto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(kReal);
    for (const std::int64_t length : dims) tensor->add_dims(length);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    auto* entry = tensor->add_external_data();
    entry->set_key("location");
    entry->set_value("missing.bin");
    return name;
  }

  std::string Integers(const std::string& name, const Dims& values) {
    onnx::TensorProto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(kInteger);
    tensor->add_dims(static_cast<std::int64_t>(values.size()));
    for (const std::int64_t value : values) tensor->add_int64_data(value);
    return name;
  }

  std::string Scalar(float value) {
    onnx::NodeProto& node = Add("Constant", {});
    onnx::AttributeProto* attribute = node.add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    attribute->mutable_t()->set_data_type(kReal);
    attribute->mutable_t()->add_float_data(value);
    return node.output(0);
  }

  std::string Index(std::int64_t value) {
    onnx::NodeProto& node = Add("Constant", {});
    onnx::AttributeProto* attribute = node.add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    attribute->mutable_t()->set_data_type(kInteger);
    attribute->mutable_t()->add_int64_data(value);
    return node.output(0);
  }

  onnx::NodeProto& Add(const std::string& op, const Names& inputs, int outputs = 1) {
    onnx::NodeProto& node = *graph().add_node();
    node.set_op_type(op);
    node.set_name(op + std::to_string(graph().node_size()));
    for (const std::string& input : inputs) node.add_input(input);
    for (int i = 0; i < outputs; ++i) node.add_output(node.name() + ":" + std::to_string(i));
    return node;
  }

  struct Ints {
    const char* name;
    Dims values;
  };
  struct Int {
    const char* name;
    std::int64_t value;
  };
  struct Word {
    const char* name;
    const char* value;
  };
  static void Set(onnx::NodeProto& node, const Ints& ints) {
    onnx::AttributeProto* attribute = node.add_attribute();
    attribute->set_name(ints.name);
    attribute->set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t value : ints.values) attribute->add_ints(value);
  }
  static void Set(onnx::NodeProto& node, const Int& value) {
    onnx::AttributeProto* attribute = node.add_attribute();
    attribute->set_name(value.name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value.value);
  }
  static void Set(onnx::NodeProto& node, const Word& word) {
    onnx::AttributeProto* attribute = node.add_attribute();
    attribute->set_name(word.name);
    attribute->set_type(onnx::AttributeProto::STRING);
    attribute->set_s(word.value);
  }

  template <typename... Attributes>
  std::string Node(const std::string& op, const Names& inputs, const Attributes&... attributes) {
    onnx::NodeProto& node = Add(op, inputs);
    (Set(node, attributes), ...);
    return node.output(0);
  }

  void Output(const std::string& name) { graph().add_output()->set_name(name); }

  std::string Convolution(const std::string& x, const std::string& name, std::int64_t inputs,
                          std::int64_t filters, std::int64_t kernel, std::int64_t stride,
                          std::int64_t pad, std::int64_t groups = 1) {
    Weight(name, {filters, inputs / groups, kernel, kernel});
    return Node("Conv", {x, name}, Ints{"kernel_shape", {kernel, kernel}},
                Ints{"strides", {stride, stride}}, Ints{"pads", {pad, pad, pad, pad}},
                Int{"group", groups});
  }

  std::string BatchNormalization(const std::string& x, const std::string& name,
                                 std::int64_t channels) {
    for (const char* part : {".weight", ".bias", ".mean", ".var"}) Weight(name + part, {channels});
    return Node("BatchNormalization",
                {x, name + ".weight", name + ".bias", name + ".mean", name + ".var"});
  }

  // As PyTorch exports torch.nn.Linear on a sequence.
  std::string Linear(const std::string& x, const std::string& name, std::int64_t inputs,
                     std::int64_t units) {
    Weight(name + ".weight", {inputs, units});
    Weight(name + ".bias", {units});
    return Node("Add", {name + ".bias", Node("MatMul", {x, name + ".weight"})});
  }

  // As PyTorch exports it before opset 17.
  std::string LayerNorm(const std::string& x, const std::string& name, std::int64_t features) {
    Weight(name + ".weight", {features});
    Weight(name + ".bias", {features});
    const std::string difference = Node("Sub", {x, Node("ReduceMean", {x}, Ints{"axes", {-1}})});
    const std::string square = Node("Pow", {difference, Scalar(2)});
    const std::string variance = Node("ReduceMean", {square}, Ints{"axes", {-1}});
    const std::string root = Node("Sqrt", {Node("Add", {variance, Scalar(1e-5F)})});
    const std::string scaled = Node("Mul", {Node("Div", {difference, root}), name + ".weight"});
    return Node("Add", {scaled, name + ".bias"});
  }

  std::string Gelu(const std::string& x) {
    const std::string erf = Node("Erf", {Node("Div", {x, Scalar(1.4142135F)})});
    return Node("Mul", {Node("Mul", {x, Node("Add", {erf, Scalar(1)})}), Scalar(0.5F)});
  }

  onnx::ModelProto proto;
};

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_ONNX_MODEL_H_
