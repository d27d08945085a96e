// The layers of an ONNX graph: the work of its nodes for one sample.
#ifndef STEPCAST_DATA_ONNX_LAYERS_H_
#define STEPCAST_DATA_ONNX_LAYERS_H_

#include <vector>

#include "data/onnx/graph.h"
#include "data/record/workload.h"

namespace stepcast {

struct OnnxLayers {
  std::vector<Layer> layers;
  int shared = 0;  // further uses of a weight matrix that an earlier layer has
};

// In the order of the nodes. Throws InputError for an operator whose work is not known.
OnnxLayers LayersOfOnnx(const OnnxGraph& graph);

}  // namespace stepcast

#endif  // STEPCAST_DATA_ONNX_LAYERS_H_
