#include "data/onnx/graph.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "data/onnx/constants.h"
#include "data/onnx/model.h"
#include "data/onnx/shapes.h"
#include "data/record/controls.h"
#include "data/record/input_error.h"
#include "data/values/names.h"
#include "data/values/utf8.h"

namespace stepcast {
namespace {

constexpr int kNewestOpset = 23;
// Before it, operands broadcast by attributes.
constexpr int kOldestOpset = 7;

bool IsOneOf(const std::string& text, std::initializer_list<const char*> list) {
  return std::any_of(list.begin(), list.end(), [&](const char* one) { return text == one; });
}

// Inputs of an operator that are parameters wherever it is used in a network.
bool IsWeightSlot(const std::string& op, std::size_t slot, bool matrix) {
  if (IsOneOf(op, {"Conv", "ConvTranspose", "Gemm", "InstanceNormalization", "LayerNormalization",
                   "GroupNormalization"})) {
    return slot == 1 || slot == 2;
  }
  if (op == "BatchNormalization") return slot >= 1 && slot <= 4;
  if (op == "LSTM" || op == "GRU") return slot >= 1 && slot <= 3;
  if (op == "MatMul") return slot == 1 && matrix;
  if (op == "Gather") return slot == 0 && matrix;
  return op == "PRelu" && slot == 1;
}

// A dimension's name in --dim: its own, or that of the input with the axis.
std::string DimName(const onnx::ValueInfoProto& input, int axis) {
  const auto& dim = input.type().tensor_type().shape().dim(axis);
  if (dim.has_dim_param() && !dim.dim_param().empty()) return dim.dim_param();
  return input.name() + "[" + std::to_string(axis) + "]";
}

bool NamesBatch(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(c < 0x80 ? std::tolower(c) : c); });
  return name.find("batch") != std::string::npos;
}

class Reader {
 public:
  Reader(const std::string& path, const std::map<std::string, std::int64_t>& dims)
      : path_(path), given_(dims), model_(ReadOnnxModel(path)) {
    graph_.file = path;
  }

  OnnxGraph Read() {
    CheckDims();
    ReadHeader();
    ReadInitializers();
    ReadNodes();
    SortNodes();
    ReadInputs();
    for (const onnx::ValueInfoProto& info : proto().value_info()) infos_[info.name()] = &info;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) Infer(i);
    return std::move(graph_);
  }

 private:
  const onnx::GraphProto& proto() const { return model_.graph(); }

  [[noreturn]] void FailFile(const std::string& value, const std::string& problem,
                             const std::string& allowed = "") const {
    throw InputError({path_, 0, ""}, value, problem, allowed);
  }

  void CheckDims() const {
    for (const auto& [name, length] : given_) {
      if (length >= 1 && length <= kMostTensorElements) continue;
      throw InputError({path_, 0, "--dim " + name}, std::to_string(length), "is out of range",
                       "1 or more");
    }
  }

  void ReadHeader() {
    graph_.name = proto().name();
    graph_.producer = model_.producer_name();
    if (!model_.producer_version().empty()) graph_.producer += " " + model_.producer_version();
    opsets_[""] = 1;
    for (const onnx::OperatorSetIdProto& set : model_.opset_import()) {
      const std::string domain = set.domain() == "ai.onnx" ? "" : set.domain();
      opsets_[domain] = static_cast<int>(std::clamp<std::int64_t>(set.version(), 0, 1'000'000));
    }
    graph_.opset = opsets_[""];
    if (proto().node_size() == 0) FailFile("", "has no node", "an exported network");
    if (graph_.opset < kOldestOpset || graph_.opset > kNewestOpset) {
      FailFile(std::to_string(graph_.opset), "is an operator set that is not understood",
               std::to_string(kOldestOpset) + " to " + std::to_string(kNewestOpset));
    }
    if (proto().sparse_initializer_size() > 0) {
      FailFile(proto().sparse_initializer(0).values().name(), "is a sparse tensor",
               "dense tensors");
    }
  }

  int AddValue(const std::string& name) {
    const auto [found, fresh] = index_.emplace(name, static_cast<int>(graph_.values.size()));
    if (fresh) graph_.values.emplace_back().name = name;
    return found->second;
  }

  OnnxValue& At(int value) { return graph_.values[static_cast<std::size_t>(value)]; }

  int AddParameter(const std::string& name, const OnnxDims& dims) {
    graph_.parameters.push_back({name, dims, *OnnxElements(dims)});
    return static_cast<int>(graph_.parameters.size()) - 1;
  }

  // Shapes of what the file states, and of what `node` computes.
  void SetDims(int value, const OnnxDims& dims) {
    if (dims.size() > static_cast<std::size_t>(kMostRank)) {
      FailFile(At(value).name, "has too many dimensions", std::to_string(kMostRank));
    }
    if (!OnnxElements(dims)) {
      FailFile(At(value).name, "is a tensor too large, or of a negative length", "10^15 elements");
    }
    At(value).dims = dims;
  }
  void SetDims(const OnnxNode& node, int value, const OnnxDims& dims) {
    if (dims.size() > static_cast<std::size_t>(kMostRank)) {
      graph_.Fail(node, At(value).name, "has too many dimensions", std::to_string(kMostRank));
    }
    if (!OnnxElements(dims)) {
      graph_.Fail(node, At(value).name, "is too large, or of a negative length", "10^15 elements");
    }
    At(value).dims = dims;
  }
  void SetData(const OnnxNode& node, int value, OnnxData data) {
    SetDims(node, value, data.dims);
    At(value).data = std::move(data);
  }

  // A tensor stored in the file, as initializer or by a Constant node.
  void SetStored(int value, const onnx::TensorProto& tensor, bool of_node) {
    const OnnxDims dims = DimsOf(tensor);
    SetDims(value, dims);
    if (IsOnnxReal(tensor.data_type())) {
      At(value).parameter = AddParameter(At(value).name, dims);
      if (!of_node) At(value).origin = OnnxOrigin::kParameters;
    }
    At(value).data = DataOf(tensor);
  }

  void ReadInitializers() {
    for (const onnx::TensorProto& tensor : proto().initializer()) {
      if (index_.count(tensor.name()) > 0) FailFile(tensor.name(), "is stored twice");
      SetStored(AddValue(tensor.name()), tensor, /*of_node=*/false);
      computed_.insert(tensor.name());
    }
  }

  void Refuse(const OnnxNode& node) const {
    if (IsOneOf(node.op, {"If", "Loop", "Scan", "SequenceMap"})) {
      graph_.Fail(node, node.op, "is control flow, whose work depends on the data",
                  "a network without it (export by tracing, with fixed sizes)");
    }
    if (IsOneOf(node.op, {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear",
                          "ConvInteger", "MatMulInteger"}) ||
        node.op.starts_with("QLinear")) {
      graph_.Fail(node, node.op, "is of a quantised network, which cannot be trained",
                  "the network before it was quantised");
    }
    const bool gelu =
        node.domain == "com.microsoft" && (node.op == "Gelu" || node.op == "FastGelu");
    if (!node.domain.empty() && !gelu) {
      graph_.Fail(node, node.op,
                  "is an operator of the domain " + node.domain + " (opset " +
                      std::to_string(node.opset) + "), whose work is not known",
                  "operators of the domain ai.onnx: the network as exported, not yet optimised for "
                  "a runtime");
    }
  }

  void ReadNodes() {
    std::unordered_set<std::string> inputs;
    for (const onnx::ValueInfoProto& input : proto().input()) {
      if (!inputs.insert(input.name()).second) FailFile(input.name(), "is an input twice");
      AddValue(input.name());
      computed_.insert(input.name());
    }
    for (const onnx::NodeProto& from : proto().node()) {
      OnnxNode node;
      node.op = from.op_type();
      node.domain = from.domain() == "ai.onnx" ? "" : from.domain();
      const auto opset = opsets_.find(node.domain);
      node.opset = opset == opsets_.end() ? 0 : opset->second;
      node.name = from.name();
      if (node.name.empty() && from.output_size() > 0) node.name = from.output(0);
      if (!IsUtf8(node.name) || HasControls(node.name) || node.name.size() > kLongestName) {
        node.name = node.op + std::to_string(graph_.nodes.size());
      }
      for (const onnx::AttributeProto& attribute : from.attribute()) {
        node.attributes[attribute.name()] = AttributeOf(attribute);
      }
      Refuse(node);
      for (const std::string& name : from.input()) {
        node.inputs.push_back(name.empty() ? -1 : AddValue(name));
      }
      const int index = static_cast<int>(graph_.nodes.size());
      for (const std::string& name : from.output()) {
        if (name.empty()) {
          node.outputs.push_back(-1);
          continue;
        }
        if (!computed_.insert(name).second) graph_.Fail(node, name, "is computed twice");
        node.outputs.push_back(AddValue(name));
        At(node.outputs.back()).producer = index;
      }
      if (node.outputs.empty() || node.outputs[0] < 0) graph_.Fail(node, node.op, "has no output");
      graph_.nodes.push_back(std::move(node));
    }
    for (const onnx::ValueInfoProto& output : proto().output()) {
      const auto found = index_.find(output.name());
      if (found == index_.end()) FailFile(output.name(), "is an output that nothing computes");
      At(found->second).is_output = true;
    }
  }

  // Into an order in which they can run: that of the file, where it is one.
  void SortNodes() {
    const std::size_t count = graph_.nodes.size();
    std::vector<int> waits(count, 0);
    std::vector<std::vector<std::size_t>> readers(graph_.values.size());
    for (std::size_t i = 0; i < count; ++i) {
      for (const int value : graph_.nodes[i].inputs) {
        if (value < 0) continue;
        if (computed_.count(At(value).name) == 0) {
          graph_.Fail(graph_.nodes[i], At(value).name, "is read, but nothing computes it");
        }
        if (At(value).producer < 0) continue;
        ++waits[i];
        readers[static_cast<std::size_t>(value)].push_back(i);
      }
    }
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < count; ++i) {
      if (waits[i] == 0) ready.push(i);
    }
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      const std::size_t i = ready.top();
      ready.pop();
      order.push_back(i);
      for (const int value : graph_.nodes[i].outputs) {
        if (value < 0) continue;
        for (const std::size_t reader : readers[static_cast<std::size_t>(value)]) {
          if (--waits[reader] == 0) ready.push(reader);
        }
      }
    }
    if (order.size() < count) {
      const auto stuck = std::find_if(waits.begin(), waits.end(), [](int w) { return w > 0; });
      graph_.Fail(graph_.nodes[static_cast<std::size_t>(stuck - waits.begin())], "",
                  "waits for its own output", "a graph without cycles");
    }
    std::vector<OnnxNode> sorted;
    for (const std::size_t i : order) {
      source_.push_back(static_cast<int>(i));
      sorted.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(sorted);
    for (std::size_t i = 0; i < count; ++i) {
      for (const int value : graph_.nodes[i].inputs) {
        if (value >= 0) At(value).consumers.push_back(static_cast<int>(i));
      }
      for (const int value : graph_.nodes[i].outputs) {
        if (value >= 0) At(value).producer = static_cast<int>(i);
      }
    }
  }

  // Whether each value goes, perhaps by views, only to where operators have their parameters; for a
  // tensor of two dimensions, or of another number.
  std::vector<bool> FeedsOnlyWeights(bool matrix) {
    std::vector<bool> only(graph_.values.size());
    for (std::size_t i = 0; i < only.size(); ++i) {
      only[i] = !graph_.values[i].consumers.empty() && !graph_.values[i].is_output;
    }
    // Nodes stand in an order in which they can run: behind a value are only later ones.
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      const bool view = IsOneOf(node->op, {"Transpose", "Identity", "Unsqueeze", "Squeeze",
                                           "Reshape", "Slice", "Cast", "Split", "Concat"}) &&
                        std::all_of(node->outputs.begin(), node->outputs.end(), [&](int output) {
                          return output < 0 || only[static_cast<std::size_t>(output)];
                        });
      for (std::size_t slot = 0; slot < node->inputs.size(); ++slot) {
        if (node->inputs[slot] < 0 || IsWeightSlot(node->op, slot, matrix)) continue;
        if (view && (slot == 0 || node->op == "Concat")) continue;
        only[static_cast<std::size_t>(node->inputs[slot])] = false;
      }
    }
    return only;
  }

  static bool IsFixed(const onnx::ValueInfoProto& input) {
    const auto& dims = input.type().tensor_type().shape().dim();
    return std::all_of(dims.begin(), dims.end(),
                       [](const auto& dim) { return dim.has_dim_value(); });
  }

  // Exports without the values of the parameters have these as inputs behind the data. They are
  // known by names such as "layer1.0.conv1.weight" (but not "input.1"), or by their use.
  bool IsParameter(const onnx::ValueInfoProto& input) {
    if (!IsFixed(input)) return false;
    const std::string& name = input.name();
    const std::size_t dot = name.rfind('.');
    if (dot != std::string::npos && dot > 0 &&
        name.find_first_not_of("0123456789", dot + 1) != std::string::npos) {
      return true;
    }
    const auto& tensor = input.type().tensor_type();
    if (!IsOnnxReal(tensor.elem_type())) return false;
    const bool matrix = tensor.shape().dim_size() == 2;
    std::optional<std::vector<bool>>& only = only_weights_[matrix ? 1 : 0];
    if (!only) only = FeedsOnlyWeights(matrix);
    return (*only)[static_cast<std::size_t>(AddValue(name))];
  }

  void ReadInputs() {
    std::vector<const onnx::ValueInfoProto*> data;
    std::vector<const onnx::ValueInfoProto*> parameters;
    std::unordered_set<std::string> stored;
    for (const onnx::TensorProto& tensor : proto().initializer()) stored.insert(tensor.name());
    for (const onnx::ValueInfoProto& input : proto().input()) {
      if (stored.count(input.name()) > 0) continue;  // with a default value, as before IR 4
      if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape()) {
        FailFile(input.name(), "is an input that is no tensor of a known rank", "tensors");
      }
      if (input.type().tensor_type().shape().dim_size() > kMostRank) {
        FailFile(input.name(), "has too many dimensions", std::to_string(kMostRank));
      }
      const bool behind = !parameters.empty() && IsFixed(input);
      (!data.empty() && (behind || IsParameter(input)) ? parameters : data).push_back(&input);
    }
    if (data.empty()) FailFile("", "has no input", "a network that reads data");
    const std::string batch = FindBatch(*data[0]);
    for (const onnx::ValueInfoProto* input : data) {
      if (input == data[0] || parameters.empty() || !IsFixed(*input)) {
        SetInput(*input, batch);
      } else if (batch_is_symbolic_) {
        parameters.push_back(input);
      } else {
        throw InputError({path_, 0, "input " + input->name()}, "",
                         "is either data or a parameter: the file has parameters as inputs",
                         "an export with the parameters' values, or with a symbolic batch");
      }
    }
    for (const onnx::ValueInfoProto* input : parameters) SetParameter(*input);
    for (const auto& [name, length] : given_) {
      if (name == "batch" || symbols_.count(name) > 0) continue;
      symbols_.insert("batch");
      throw InputError({path_, 0, "--dim"}, name, "is not a dimension of this graph",
                       JoinNames(std::vector<std::string>(symbols_.begin(), symbols_.end())));
    }
  }

  // Without a value; integers and masks are not trained.
  void SetParameter(const onnx::ValueInfoProto& input) {
    const int value = AddValue(input.name());
    OnnxDims dims;
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      dims.push_back(dim.dim_value());
    }
    SetDims(value, dims);
    if (!IsOnnxReal(input.type().tensor_type().elem_type())) return;
    At(value).origin = OnnxOrigin::kParameters;
    At(value).parameter = AddParameter(input.name(), dims);
  }

  // The name of the batch dimension, from the first input: what is called so, else the first.
  // Fixed lengths have no name.
  std::string FindBatch(const onnx::ValueInfoProto& input) {
    const auto& shape = input.type().tensor_type().shape();
    int axis = 0;
    for (int i = 0; i < shape.dim_size(); ++i) {
      if (!shape.dim(i).has_dim_value() && NamesBatch(DimName(input, i))) {
        axis = i;
        break;
      }
    }
    const auto given = given_.find("batch");
    if (shape.dim_size() == 0) return "";
    if (shape.dim(axis).has_dim_value()) {
      graph_.batch = shape.dim(axis).dim_value();
      if (given != given_.end()) graph_.batch = given->second;
      const bool found = std::any_of(shape.dim().begin(), shape.dim().end(), [&](const auto& dim) {
        return dim.dim_value() == graph_.batch;
      });
      if (!found || graph_.batch < 1) {
        throw InputError({path_, 0, "batch"}, std::to_string(graph_.batch),
                         "is not a length of the input " + input.name(),
                         "--dim batch=N with the batch that the graph was exported with");
      }
      return "";
    }
    batch_is_symbolic_ = true;
    const std::string name = DimName(input, axis);
    const auto own = given_.find(name);
    if (own != given_.end()) {
      graph_.batch = own->second;
    } else if (given != given_.end()) {
      graph_.batch = given->second;
    }
    return name;
  }

  void SetInput(const onnx::ValueInfoProto& input, const std::string& batch) {
    const int value = AddValue(input.name());
    OnnxValue& v = At(value);
    const auto& shape = input.type().tensor_type().shape();
    OnnxDims dims;
    for (int i = 0; i < shape.dim_size(); ++i) {
      const auto& dim = shape.dim(i);
      std::int64_t length = dim.dim_value();
      if (!dim.has_dim_value()) {
        const std::string name = DimName(input, i);
        symbols_.insert(name);
        const auto given = given_.find(name);
        // Other inputs may have names of their own for the batch.
        if (name == batch || (given == given_.end() && !batch.empty() &&
                              (NamesBatch(name) || (i == 0 && batch_is_symbolic_)))) {
          length = graph_.batch;
          v.batched = true;
        } else if (given != given_.end()) {
          length = given->second;
        } else {
          throw InputError({path_, 0, "input " + input.name()}, name,
                           "is a dimension without a value", "--dim " + name + "=VALUE");
        }
      } else if (length == graph_.batch && (batch.empty() || i == 0)) {
        v.batched = true;
      }
      if (length < 1) {
        throw InputError({path_, 0, "input " + input.name()}, std::to_string(length),
                         "is not a length", "1 or more");
      }
      dims.push_back(length);
    }
    if (!OnnxElements(dims)) {
      throw InputError({path_, 0, "input " + input.name()}, "", "is too large", "10^15 elements");
    }
    v.dims = dims;
    v.origin = OnnxOrigin::kActivation;
  }

  std::vector<const OnnxData*> DataInputs(const OnnxNode& node) {
    std::vector<const OnnxData*> inputs;
    for (const int value : node.inputs) {
      inputs.push_back(value >= 0 && At(value).data ? &*At(value).data : nullptr);
    }
    return inputs;
  }

  // Notes on each of the node's outputs what it depends on: parameters, activations or constants.
  void Mark(OnnxNode& node) {
    OnnxValue common;
    bool activation = false;
    bool from_parameters = false;
    for (const int input : node.inputs) {
      if (input < 0) continue;
      const OnnxValue& v = At(input);
      activation |= v.origin == OnnxOrigin::kActivation;
      from_parameters |= v.origin == OnnxOrigin::kParameters;
      common.batched |= v.batched && v.origin == OnnxOrigin::kActivation;
    }
    if (IsOneOf(node.op, {"Shape", "Size"})) activation = from_parameters = false;
    // A look-up in a table is work for every sample, wherever the indices come from.
    if (node.op == "Gather" && !activation && from_parameters && node.input(0) >= 0) {
      const OnnxValue& table = At(node.inputs[0]);
      const int indices = node.input(1);
      if (table.origin == OnnxOrigin::kParameters && table.dims && table.dims->size() == 2 &&
          node.Int("axis", 0) == 0 && indices >= 0 && At(indices).dims &&
          !At(indices).dims->empty()) {
        activation = true;
        common.batched = graph_.batch > 1 && At(indices).dims->front() == graph_.batch;
      }
    }
    for (const int output : node.outputs) {
      if (output < 0) continue;
      OnnxValue& v = At(output);
      v.origin = activation        ? OnnxOrigin::kActivation
                 : from_parameters ? OnnxOrigin::kParameters
                                   : OnnxOrigin::kConstant;
      v.batched = activation && common.batched;
    }
  }

  void Infer(std::size_t index) {
    OnnxNode& node = graph_.nodes[index];
    if (node.op == "Constant" && node.domain.empty()) {
      return InferConstant(node, proto().node(source_[index]));
    }
    CheckOnnxAttributes(graph_, node);
    Mark(node);
    const int output = node.outputs[0];
    if (At(output).origin != OnnxOrigin::kActivation && Compute(node)) return;
    if (node.op == "Shape" || node.op == "Size") {
      InferShapeOf(node);
    } else {
      const OnnxShapes shapes = InferOnnxShapes(graph_, node);
      for (std::size_t i = 0; i < std::min(shapes.size(), node.outputs.size()); ++i) {
        if (shapes[i] && node.outputs[i] >= 0) SetDims(node, node.outputs[i], *shapes[i]);
      }
    }
    for (const int value : node.outputs) {
      if (value >= 0 && !At(value).dims) TakeInfo(value);
    }
    SeparateVectors(node);
    if (At(output).origin != OnnxOrigin::kActivation && !At(output).data) Compute(node);
  }

  // Notes the values of a node's output where they are known.
  bool Compute(const OnnxNode& node) {
    std::optional<OnnxData> data =
        ComputeOnnxConstant(node, DataInputs(node), At(node.outputs[0]).dims, &budget_);
    if (data) SetData(node, node.outputs[0], std::move(*data));
    return data.has_value();
  }

  // Exporters store equal tensors once, and an Identity gives the others their names. Two vectors
  // are equal because they were initialised to zeros or ones; equal matrices are tied.
  void SeparateVectors(const OnnxNode& node) {
    if (node.op != "Identity" || At(node.outputs[0]).origin != OnnxOrigin::kParameters) return;
    OnnxValue& v = At(node.outputs[0]);
    if (v.dims && v.dims->size() <= 1) v.parameter = AddParameter(v.name, *v.dims);
  }

  void InferConstant(const OnnxNode& node, const onnx::NodeProto& from) {
    const int output = node.outputs[0];
    for (const onnx::AttributeProto& attribute : from.attribute()) {
      if (attribute.type() == onnx::AttributeProto::TENSOR) {
        return SetStored(output, attribute.t(), /*of_node=*/true);
      }
      OnnxData data;
      switch (attribute.type()) {
        case onnx::AttributeProto::INT:
          data.values = {static_cast<double>(attribute.i())};
          break;
        case onnx::AttributeProto::FLOAT:
          data = {{}, {static_cast<double>(attribute.f())}, false};
          break;
        case onnx::AttributeProto::INTS:
          data = {
              {attribute.ints_size()}, {attribute.ints().begin(), attribute.ints().end()}, true};
          break;
        case onnx::AttributeProto::FLOATS:
          data = {{attribute.floats_size()},
                  {attribute.floats().begin(), attribute.floats().end()},
                  false};
          break;
        default:
          continue;
      }
      return SetData(node, output, std::move(data));
    }
    graph_.Fail(node, "Constant", "has no tensor");
  }

  // Takes the file's word for a value whose shape cannot be inferred.
  void TakeInfo(int value) {
    const auto found = infos_.find(At(value).name);
    if (found == infos_.end()) return;
    const auto& tensor = found->second->type().tensor_type();
    OnnxDims dims;
    for (const auto& dim : tensor.shape().dim()) {
      std::int64_t length = dim.dim_value();
      if (!dim.has_dim_value()) {
        const auto given = given_.find(dim.dim_param());
        if (given == given_.end()) return;
        length = given->second;
      }
      if (length < 1) return;
      dims.push_back(length);
    }
    if (tensor.has_shape()) SetDims(value, dims);
  }

  void InferShapeOf(const OnnxNode& node) {
    const int first = node.input(0);
    if (first < 0 || !At(first).dims) return;
    const OnnxDims& dims = *At(first).dims;
    const int output = node.outputs[0];
    OnnxData data;
    if (node.op == "Size") {
      data.values = {static_cast<double>(*OnnxElements(dims))};
    } else {
      const auto rank = static_cast<std::int64_t>(dims.size());
      const auto place = [&](std::int64_t at) {
        return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
      };
      const std::int64_t end = place(node.Int("end", rank));
      for (std::int64_t i = place(node.Int("start", 0)); i < end; ++i) {
        data.values.push_back(static_cast<double>(dims[static_cast<std::size_t>(i)]));
      }
      data.dims = {static_cast<std::int64_t>(data.values.size())};
    }
    SetData(node, output, std::move(data));
  }

  std::string path_;
  std::map<std::string, std::int64_t> given_;
  onnx::ModelProto model_;
  OnnxGraph graph_;
  std::map<std::string, int> opsets_;
  std::unordered_map<std::string, int> index_;  // values by name
  std::unordered_set<std::string> computed_;    // names that have a source
  std::vector<int> source_;                     // of each node, its place in the file
  std::set<std::string> symbols_;               // names of the inputs' dimensions
  bool batch_is_symbolic_ = false;
  std::optional<std::vector<bool>> only_weights_[2];  // see FeedsOnlyWeights; once they are asked
  OnnxBudget budget_;
  std::unordered_map<std::string, const onnx::ValueInfoProto*> infos_;
};

}  // namespace

std::optional<OnnxDims> OnnxGraph::KnownIntegers(int value, std::size_t most) const {
  if (value < 0) return std::nullopt;
  const std::optional<OnnxData>& data = values[static_cast<std::size_t>(value)].data;
  if (!data || data->values.size() > most) return std::nullopt;
  return OnnxIntegers(*data);
}

const std::optional<OnnxDims>& OnnxGraph::DimsOf(int value) const {
  static const std::optional<OnnxDims> none;
  return value < 0 ? none : values[static_cast<std::size_t>(value)].dims;
}

void OnnxGraph::FailInputs(const OnnxNode& node) const {
  std::vector<std::string> shapes;
  for (const int value : node.inputs) {
    if (value < 0) continue;
    std::string lengths;
    for (const std::int64_t length : DimsOf(value).value_or(OnnxDims())) {
      lengths += (lengths.empty() ? "" : " x ") + std::to_string(length);
    }
    shapes.push_back(!DimsOf(value) ? "unknown" : lengths.empty() ? "scalar" : lengths);
  }
  Fail(node, node.op, "cannot work on its inputs: " + JoinNames(shapes),
       batch == 1 ? "inputs that fit; --dim batch=N where the graph was exported with a batch of "
                    "N and holds it in its constants"
                  : "inputs that fit");
}

void OnnxGraph::Fail(const OnnxNode& node, const std::string& value, const std::string& problem,
                     const std::string& allowed) const {
  const std::string op = node.op.empty() ? "" : " (" + node.op + ")";
  throw InputError({file, 0, "node " + node.name + op}, value, problem, allowed);
}

std::optional<std::int64_t> OnnxElements(const OnnxDims& dims) {
  std::int64_t elements = 1;
  for (const std::int64_t length : dims) {
    if (length < 0 || length > kMostTensorElements) return std::nullopt;
    if (length > 0 && elements > kMostTensorElements / length) return std::nullopt;
    elements *= length;
  }
  return elements;
}

OnnxGraph ReadOnnxGraph(const std::string& path, const std::map<std::string, std::int64_t>& dims) {
  return Reader(path, dims).Read();
}

}  // namespace stepcast
