// Reads a network from an ONNX file (opset 7 to 23) as a workload: layers with shapes, parameters,
// work and operations, for one sample, counted as data/workloads/network_builder.h says.
//
// The batch is the dimension called so of the first input, else its first one, and whatever length
// the file gives it is taken out. Other symbolic dimensions need a value. Parameters are the stored
// real tensors that operators use as such, in order of use:
// - A tensor that several layers use is that of the first. A vector that an exporter stored once
//   because it was equal to another counts for each.
// - In sums and products, tensors of more than one element are parameters, also where a framework
//   has them as buffers (position codes): ONNX does not tell. What is subtracted, divided by or
//   compared with is a constant.
// - A file without the values (torch.onnx.export with export_params=False) has the parameters as
//   inputs; they are known by their names ("layer1.0.conv1.weight") and by their use.
// Tensors need not be there: only shapes are read, and external data are not opened.
//
// Layer and GELU, swish and layer normalisation written as several operators are one layer. Copies
// are layers without work, views are none. What depends on shapes and constants alone is none.
// Volumes, transposed convolutions and what a sample has several images of have work, but no
// operation to measure.
//
// Export for training: an exporter that prepares for inference folds batch normalisation into the
// convolutions before it, and with it their parameters and work are gone. In PyTorch,
// training=torch.onnx.TrainingMode.TRAINING and do_constant_folding=False.
#ifndef STEPCAST_DATA_ONNX_IMPORT_ONNX_H_
#define STEPCAST_DATA_ONNX_IMPORT_ONNX_H_

#include <cstdint>
#include <map>
#include <string>

#include "data/record/workload.h"

namespace stepcast {

struct OnnxOptions {
  // Lengths of symbolic dimensions by name; "input[2]" where one has no name; "batch" for the
  // batch that the file was exported with, where it is not the first length of the first input.
  std::map<std::string, std::int64_t> dims;
  std::string name;  // of the workload; that of the file, without its ending, where empty
};

// Throws InputError, which names file, node and operator: for what is no network, for an operator
// whose work is not known, for control flow and for quantised networks.
Workload ImportOnnx(const std::string& path, const OnnxOptions& options);

}  // namespace stepcast

#endif  // STEPCAST_DATA_ONNX_IMPORT_ONNX_H_
