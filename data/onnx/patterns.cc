#include "data/onnx/patterns.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "data/onnx/shapes.h"

namespace stepcast {
namespace {

class Finder {
 public:
  explicit Finder(const OnnxGraph& graph) : g_(graph) {}

  std::optional<OnnxPattern> From(int node) {
    nodes_.clear();
    weights_.clear();
    const OnnxNode& start = Node(node);
    if (!start.domain.empty()) return std::nullopt;
    std::optional<OnnxPattern> found;
    if (start.op == "ReduceMean") found = LayerNormalization(node);
    if (start.op == "Erf") found = Gelu(node);
    if (start.op == "Tanh") found = GeluTanh(node);
    if (start.op == "Sigmoid" || start.op == "HardSigmoid") found = Swish(node);
    if (!found) return std::nullopt;
    found->nodes = nodes_;
    found->weights = weights_;
    found->last = Value(found->output).producer;
    found->name = Node(*std::min_element(nodes_.begin(), nodes_.end())).name;
    return Closed(*found) ? found : std::nullopt;
  }

 private:
  const OnnxNode& Node(int node) const { return g_.nodes[static_cast<std::size_t>(node)]; }
  const OnnxValue& Value(int value) const { return g_.values[static_cast<std::size_t>(value)]; }

  bool IsActivation(int value) const {
    return value >= 0 && Value(value).origin == OnnxOrigin::kActivation;
  }
  bool IsScalar(int value) const {
    return value >= 0 && !IsActivation(value) && Value(value).dims &&
           OnnxElements(*Value(value).dims) == 1;
  }

  // The only node that reads `value`, if it is `op`.
  int Reader(int value, const char* op) const {
    const OnnxValue& v = Value(value);
    std::set<int> readers(v.consumers.begin(), v.consumers.end());
    if (readers.size() != 1 || v.is_output) return -1;
    return Node(*readers.begin()).op == op ? *readers.begin() : -1;
  }

  // The other input of a node that reads `value` and one more; -1 where it does not read it.
  int Other(int node, int value) const {
    const OnnxNode& n = Node(node);
    if (n.inputs.size() != 2) return -1;
    if (n.inputs[0] == value) return n.inputs[1];
    return n.inputs[1] == value ? n.inputs[0] : -1;
  }

  // The activation that a product, quotient or sum with a scalar reads; -1 for other nodes.
  int Scaled(int value, const char* op) const {
    if (value < 0 || Value(value).producer < 0) return -1;
    const OnnxNode& n = Node(Value(value).producer);
    if (n.op != op || n.inputs.size() != 2) return -1;
    if (IsScalar(n.inputs[1]) && IsActivation(n.inputs[0])) return n.inputs[0];
    return IsScalar(n.inputs[0]) && IsActivation(n.inputs[1]) ? n.inputs[1] : -1;
  }

  // Takes a node into the pattern; its output.
  int Take(int node) {
    if (std::count(nodes_.begin(), nodes_.end(), node) == 0) nodes_.push_back(node);
    return Node(node).outputs[0];
  }
  int TakeProducer(int value) { return Take(Value(value).producer); }

  // The output of the only reader of `value`, which is `op` with a scalar; -1 otherwise.
  int ThenScalar(int value, const char* op) {
    const int node = Reader(value, op);
    if (node < 0 || !IsScalar(Other(node, value))) return -1;
    return Take(node);
  }

  // Nothing outside reads what is inside.
  bool Closed(const OnnxPattern& pattern) const {
    return std::all_of(nodes_.begin(), nodes_.end(), [&](int node) {
      const std::vector<int>& outputs = Node(node).outputs;
      return std::all_of(outputs.begin(), outputs.end(), [&](int output) {
        if (output < 0 || output == pattern.output) return true;
        const OnnxValue& v = Value(output);
        return !v.is_output &&
               std::all_of(v.consumers.begin(), v.consumers.end(), [&](int consumer) {
                 return std::count(nodes_.begin(), nodes_.end(), consumer) > 0;
               });
      });
    });
  }

  std::optional<OnnxPattern> LayerNormalization(int mean) {
    const int x = Node(mean).input(0);
    if (!IsActivation(x) || !Value(x).dims) return std::nullopt;
    const OnnxDims axes = OnnxReductionAxes(g_, Node(mean), Value(x).dims->size());
    const auto rank = static_cast<std::int64_t>(Value(x).dims->size());
    if (axes.empty() || *std::min_element(axes.begin(), axes.end()) !=
                            rank - static_cast<std::int64_t>(axes.size())) {
      return std::nullopt;
    }
    const int mean_value = Take(mean);
    // Some exporters compute the difference twice.
    if (Value(mean_value).consumers.size() > 2) return std::nullopt;
    int variance = -1;
    int quotient = -1;
    for (const int node : Value(mean_value).consumers) {
      if (Node(node).op != "Sub" || Node(node).input(0) != x) return std::nullopt;
      const int difference = Take(node);
      for (const int reader : Value(difference).consumers) {
        if (Node(reader).op == "Div" && Node(reader).input(0) == difference) {
          quotient = reader;
        } else if (Node(reader).op == "Pow" || Node(reader).op == "Mul") {
          variance = reader;
        } else {
          return std::nullopt;
        }
      }
    }
    if (variance < 0 || quotient < 0) return std::nullopt;
    int value = Take(variance);
    const int second = Reader(value, "ReduceMean");
    if (second < 0) return std::nullopt;
    value = ThenScalar(Take(second), "Add");
    if (value < 0) return std::nullopt;
    const int root = Reader(value, "Sqrt");
    if (root < 0) return std::nullopt;
    value = Take(root);
    if (Reader(value, "Div") != quotient) return std::nullopt;
    int output = Take(quotient);
    for (const char* op : {"Mul", "Add"}) {
      const int node = Reader(output, op);
      if (node < 0) continue;
      const int weight = Other(node, output);
      if (weight < 0 || Value(weight).origin != OnnxOrigin::kParameters) continue;
      if (Value(weight).dims && OnnxElements(*Value(weight).dims) == Normalized(x, axes)) {
        weights_.push_back(weight);
        output = Take(node);
      }
    }
    return Pattern(OnnxPattern::Kind::kLayerNormalization, x, output);
  }

  std::optional<std::int64_t> Normalized(int x, const OnnxDims& axes) const {
    OnnxDims lengths;
    for (const std::int64_t axis : axes) {
      lengths.push_back((*Value(x).dims)[static_cast<std::size_t>(axis)]);
    }
    return OnnxElements(lengths);
  }

  // x/2 (1 + erf(x / sqrt 2)), with the factors in any order.
  std::optional<OnnxPattern> Gelu(int erf) {
    const int argument = Node(erf).input(0);
    int x = Scaled(argument, "Div");
    if (x < 0) x = Scaled(argument, "Mul");
    if (x < 0) return std::nullopt;
    TakeProducer(argument);
    const int output = HalfTimes(x, ThenScalar(Take(erf), "Add"));
    if (output < 0) return std::nullopt;
    return Pattern(OnnxPattern::Kind::kGelu, x, output);
  }

  // x/2 (1 + tanh(c (x + d x^3))).
  std::optional<OnnxPattern> GeluTanh(int tanh) {
    const int argument = Node(tanh).input(0);
    const int sum = Scaled(argument, "Mul");
    if (sum < 0 || Value(sum).producer < 0 || Node(Value(sum).producer).op != "Add") {
      return std::nullopt;
    }
    const OnnxNode& add = Node(Value(sum).producer);
    for (std::size_t slot = 0; slot < 2 && add.inputs.size() == 2; ++slot) {
      const int x = add.inputs[slot];
      const int cubic = add.inputs[1 - slot];
      const int cube = Scaled(cubic, "Mul");
      if (cube < 0 || !IsCube(cube, x)) continue;
      TakeProducer(argument);
      TakeProducer(sum);
      TakeProducer(cubic);
      TakeCube(cube, x);
      const int output = HalfTimes(x, ThenScalar(Take(tanh), "Add"));
      if (output < 0) return std::nullopt;
      return Pattern(OnnxPattern::Kind::kGeluTanh, x, output);
    }
    return std::nullopt;
  }

  bool IsCube(int value, int x) const {
    if (Value(value).producer < 0) return false;
    const OnnxNode& n = Node(Value(value).producer);
    if (n.op == "Pow") return n.input(0) == x && IsScalar(n.input(1));
    if (n.op != "Mul") return false;
    const int square = Other(Value(value).producer, x);
    if (square < 0 || Value(square).producer < 0) return false;
    const OnnxNode& s = Node(Value(square).producer);
    return s.op == "Mul" && s.input(0) == x && s.input(1) == x;
  }
  void TakeCube(int value, int x) {
    const int node = Value(value).producer;
    if (Node(node).op == "Mul") TakeProducer(Other(node, x));
    Take(node);
  }

  // From 1 + f(x) to its product with x and 1/2: (x f) / 2, (x / 2) f or x (f / 2).
  int HalfTimes(int x, int f) {
    if (f < 0) return -1;
    const int product = Reader(f, "Mul");
    if (product < 0) return -1;
    const int other = Other(product, f);
    if (other == x) return ThenScalar(Take(product), "Mul");
    if (other >= 0 && Scaled(other, "Mul") == x) {
      TakeProducer(other);
      return Take(product);
    }
    if (!IsScalar(other)) return -1;
    const int half = Take(product);
    const int last = Reader(half, "Mul");
    return last >= 0 && Other(last, half) == x ? Take(last) : -1;
  }

  std::optional<OnnxPattern> Swish(int sigmoid) {
    const int x = Node(sigmoid).input(0);
    const int factor = Take(sigmoid);
    const int product = Reader(factor, "Mul");
    if (!IsActivation(x) || product < 0 || Other(product, factor) != x) return std::nullopt;
    return Pattern(OnnxPattern::Kind::kSwish, x, Take(product));
  }

  static OnnxPattern Pattern(OnnxPattern::Kind kind, int input, int output) {
    OnnxPattern pattern;
    pattern.kind = kind;
    pattern.input = input;
    pattern.output = output;
    return pattern;
  }

  const OnnxGraph& g_;
  std::vector<int> nodes_;
  std::vector<int> weights_;
};

}  // namespace

std::vector<OnnxPattern> FindOnnxPatterns(const OnnxGraph& graph) {
  Finder finder(graph);
  std::vector<OnnxPattern> patterns;
  std::set<int> taken;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (taken.count(static_cast<int>(i)) > 0) continue;
    std::optional<OnnxPattern> pattern = finder.From(static_cast<int>(i));
    if (!pattern) continue;
    const bool free = std::none_of(pattern->nodes.begin(), pattern->nodes.end(),
                                   [&](int node) { return taken.count(node) > 0; });
    if (!free) continue;
    taken.insert(pattern->nodes.begin(), pattern->nodes.end());
    patterns.push_back(std::move(*pattern));
  }
  return patterns;
}

}  // namespace stepcast
