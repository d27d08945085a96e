// Finds what exporters write as several ONNX operators and frameworks compute as one.
#ifndef STEPCAST_DATA_ONNX_PATTERNS_H_
#define STEPCAST_DATA_ONNX_PATTERNS_H_

#include <string>
#include <vector>

#include "data/onnx/graph.h"

namespace stepcast {

// A chain of nodes from value `input` to `output`; nobody else reads what is between.
struct OnnxPattern {
  enum class Kind { kLayerNormalization, kGelu, kGeluTanh, kSwish };
  Kind kind = Kind::kSwish;
  int input = -1;
  int output = -1;
  int last = -1;             // the node that computes the output
  std::vector<int> nodes;    // all of them
  std::vector<int> weights;  // values: scale and shift of a normalisation
  std::string name;          // of its first node
};

// Layer normalisation (ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div[, Mul][, Add]), GELU by
// Erf and by Tanh, and x * Sigmoid(x), x * HardSigmoid(x).
std::vector<OnnxPattern> FindOnnxPatterns(const OnnxGraph& graph);

}  // namespace stepcast

#endif  // STEPCAST_DATA_ONNX_PATTERNS_H_
