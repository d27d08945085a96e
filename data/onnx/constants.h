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

// What a graph's arithmetic may cost, in values that are read or written; what few values need is
// free. Beyond it nothing large is computed.
class OnnxBudget {
 public:
  bool Affords(std::size_t steps) {
    constexpr std::size_t kFree = 256;
    if (steps <= kFree) return true;
    if (steps > left_) return false;
    left_ -= steps;
    return true;
  }

 private:
  std::size_t left_ = 10'000'000;
};

// The elements of a tensor that is small enough to be known.
std::optional<std::size_t> FewOnnxElements(const OnnxDims& dims);

// The output of `node` for the given inputs (null where left out), or nothing where the operator is
// not one of shape arithmetic or the inputs make no sense for it. `dims` is the shape of the output
// where it is known already.
std::optional<OnnxData> ComputeOnnxConstant(const OnnxNode& node,
                                            const std::vector<const OnnxData*>& inputs,
                                            const std::optional<OnnxDims>& dims,
                                            OnnxBudget* budget);

// What a slice takes of an axis: `count` indices from `first` on.
struct OnnxPicks {
  std::int64_t first = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;
};
// A step is not 0.
OnnxPicks OnnxPicksOf(std::int64_t length, std::int64_t start, std::int64_t end, std::int64_t step);

// As C++ rounds towards zero, with the ends of the range for what is beyond it.
std::int64_t OnnxInteger(double value);
OnnxDims OnnxIntegers(const OnnxData& data);

// The 0-based axis that `axis` is of `rank`, counted from behind where it is negative; nothing
// where there is none such.
std::optional<std::size_t> OnnxAxis(std::int64_t axis, std::size_t rank);

// Takes `own` into the common shape of operands that are repeated where they have a length of 1.
// False where it does not fit.
bool BroadcastOnnx(const OnnxDims& own, OnnxDims* dims);

}  // namespace stepcast

#endif  // STEPCAST_DATA_ONNX_CONSTANTS_H_
