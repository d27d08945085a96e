// Shapes of the outputs of ONNX operators, from those of their inputs.
#ifndef STEPCAST_DATA_ONNX_SHAPES_H_
#define STEPCAST_DATA_ONNX_SHAPES_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "data/onnx/graph.h"

namespace stepcast {

// The shape of each output; none where it is not known before the network runs.
using OnnxShapes = std::vector<std::optional<OnnxDims>>;

// Throws InputError for inputs that no kernel could work with. Nothing is known of operators that
// no layer is made of.
OnnxShapes InferOnnxShapes(const OnnxGraph& graph, const OnnxNode& node);

// How a window moves over `rank` axes.
struct OnnxWindow {
  OnnxDims strides;
  OnnxDims dilations;
  OnnxDims pads;       // in front, then behind
  bool same = false;   // as many places as strides fit the input; the pads follow from that
  bool upper = false;  // ... with the odd one behind
};
OnnxWindow OnnxWindowOf(const OnnxGraph& graph, const OnnxNode& node, std::size_t rank);

// The axes that a reduction goes over, 0-based, as attribute or input; all where none are named.
OnnxDims OnnxReductionAxes(const OnnxGraph& graph, const OnnxNode& node, std::size_t rank);

// Throws InputError for lengths that no kernel could work with.
void CheckOnnxAttributes(const OnnxGraph& graph, const OnnxNode& node);

}  // namespace stepcast

#endif  // STEPCAST_DATA_ONNX_SHAPES_H_
