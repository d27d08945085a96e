// Computes the small constant tensors of an ONNX graph: the shape arithmetic that exporters write
// where a dimension was not fixed (Shape, Gather, Concat, Slice, ...).
#ifndef STEPCAST_DATA_ONNX_CONSTANTS_H_
#define STEPCAST_DATA_ONNX_CONSTANTS_H_

#include <optional>
#include <vector>

#include "data/onnx/graph.h"

namespace stepcast {

// Tensors beyond this are not computed: their values are no shapes.
inline constexpr std::int64_t kMostKnownElements = 65536;

// The output of `node` for the given inputs (null where left out), or nothing where the operator is
// not one of shape arithmetic or the inputs make no sense for it. `dims` is the shape of the output
// where it is known already.
std::optional<OnnxData> ComputeOnnxConstant(const OnnxNode& node,
                                            const std::vector<const OnnxData*>& inputs,
                                            const std::optional<OnnxDims>& dims);

// As C++ rounds towards zero, with the ends of the range for what is beyond it.
std::int64_t OnnxInteger(double value);

}  // namespace stepcast

#endif  // STEPCAST_DATA_ONNX_CONSTANTS_H_
