// An ONNX graph in plain structs: nodes in an order in which they can run, the shape of every value
// for the batch that it was exported with, and what each value is computed from.
#ifndef STEPCAST_DATA_ONNX_GRAPH_H_
#define STEPCAST_DATA_ONNX_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "data/values/size_limits.h"

namespace stepcast {

using OnnxDims = std::vector<std::int64_t>;

// A known small tensor: a shape, an axis, a scale. Integers beyond 2^53 are sentinels ("to the
// end") and need not be exact.
struct OnnxData {
  OnnxDims dims;
  std::vector<double> values;
  bool integer = true;
};

// A stored tensor that training may change.
struct OnnxParameter {
  std::string name;
  OnnxDims dims;
  std::int64_t elements = 1;
};

enum class OnnxOrigin {
  kConstant,    // shapes, constants, and what is computed from these alone
  kParameters,  // stored tensors and what is computed from these alone: does not depend on the data
  kActivation,  // computed from the data, or looked up in a trained table
};

struct OnnxValue {
  std::string name;
  OnnxOrigin origin = OnnxOrigin::kConstant;
  bool batched = false;          // computed from an input that has the batch dimension
  int parameter = -1;            // that it is; -1: it is none, or computed from some
  std::optional<OnnxDims> dims;  // none where it cannot be known
  std::optional<OnnxData> data;  // where known
  int producer = -1;             // node
  std::vector<int> consumers;    // nodes, one for each use
  bool is_output = false;        // of the graph

  // Stored, or computed from what is stored; also the real tensor of a Constant node.
  bool is_weight() const { return parameter >= 0 || origin == OnnxOrigin::kParameters; }
};

using OnnxAttribute = std::variant<std::int64_t, double, std::string, OnnxDims, std::vector<double>,
                                   OnnxData, std::monostate>;

struct OnnxNode {
  std::string name;  // its own, or that of its first output
  std::string op;
  std::string domain;       // empty for the standard operators
  int opset = 0;            // of its domain
  std::vector<int> inputs;  // values; -1 where left out
  std::vector<int> outputs;
  std::map<std::string, OnnxAttribute> attributes;

  bool Has(const std::string& attribute) const { return attributes.count(attribute) > 0; }
  // The attribute's value; nullptr where it has none of this type.
  template <class T>
  const T* Find(const std::string& attribute) const {
    const auto found = attributes.find(attribute);
    return found == attributes.end() ? nullptr : std::get_if<T>(&found->second);
  }
  template <class T>
  T ValueOr(const std::string& attribute, const T& missing) const {
    const T* value = Find<T>(attribute);
    return value == nullptr ? missing : *value;
  }
  std::int64_t Int(const std::string& attribute, std::int64_t missing) const {
    return ValueOr(attribute, missing);
  }
  double Float(const std::string& attribute, double missing) const {
    return ValueOr(attribute, missing);
  }
  std::string Text(const std::string& attribute, const std::string& missing) const {
    return ValueOr(attribute, missing);
  }
  OnnxDims Ints(const std::string& attribute) const { return ValueOr(attribute, OnnxDims()); }
  int input(std::size_t slot) const { return slot < inputs.size() ? inputs[slot] : -1; }
};

struct OnnxGraph {
  std::string file;
  std::string name;
  std::string producer;
  int opset = 0;
  std::int64_t batch = 1;  // samples that the shapes are for
  std::vector<OnnxNode> nodes;
  std::vector<OnnxValue> values;
  std::vector<OnnxParameter> parameters;

  // Integers of an input that is known, as axes or sizes are; nothing where they are more than
  // `most`: two for each axis.
  std::optional<OnnxDims> KnownIntegers(int value,
                                        std::size_t most = std::size_t{2} * kMostRank) const;
  const std::optional<OnnxDims>& DimsOf(int value) const;  // none where `value` is left out
  [[noreturn]] void Fail(const OnnxNode& node, const std::string& value, const std::string& problem,
                         const std::string& allowed = "") const;
  // For inputs whose shapes do not fit each other.
  [[noreturn]] void FailInputs(const OnnxNode& node) const;
};

// Product of the lengths, or nothing where it is beyond 10^15 or a length is negative.
std::optional<std::int64_t> OnnxElements(const OnnxDims& dims);

// Reads the graph and finds all shapes. `dims` gives values to symbolic dimensions; "batch" is
// always understood as the batch that the graph was exported with. Throws InputError.
OnnxGraph ReadOnnxGraph(const std::string& path, const std::map<std::string, std::int64_t>& dims);

}  // namespace stepcast

#endif  // STEPCAST_DATA_ONNX_GRAPH_H_
