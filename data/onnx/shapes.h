// Shapes of ONNX operators whose inference does not need ONNX, or whose meaning has changed since
// the opset that the library at hand infers.
#ifndef STEPCAST_DATA_ONNX_SHAPES_H_
#define STEPCAST_DATA_ONNX_SHAPES_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "data/onnx/graph.h"

namespace stepcast {

// The shape of each output; none where it is not known before the network runs.
using OnnxShapes = std::vector<std::optional<OnnxDims>>;

// Nothing for an operator that is not one of these: ONNX knows its shapes.
std::optional<OnnxShapes> InferOnnxShapes(const OnnxGraph& graph, const OnnxNode& node);

// The axes that a reduction goes over, 0-based, as attribute or input; all where none are named.
OnnxDims OnnxReductionAxes(const OnnxGraph& graph, const OnnxNode& node, std::size_t rank);

// Throws InputError for lengths and axes that no kernel could work with and that ONNX's inference
// does not look at, or would divide by.
void CheckOnnxAttributes(const OnnxGraph& graph, const OnnxNode& node);

}  // namespace stepcast

#endif  // STEPCAST_DATA_ONNX_SHAPES_H_
