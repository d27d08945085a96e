// An ONNX file as protobuf reads it, with tensors and attributes in plain structs.
#ifndef STEPCAST_DATA_ONNX_MODEL_H_
#define STEPCAST_DATA_ONNX_MODEL_H_

// Generated code is not judged by our warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
#include <onnx/onnx_pb.h>
#pragma GCC diagnostic pop

#include <optional>
#include <string>

#include "data/onnx/graph.h"

namespace stepcast {

// Throws InputError for what cannot be read, is larger than protobuf's 2 GiB, or is no model.
onnx::ModelProto ReadOnnxModel(const std::string& path);

// Whether a TensorProto.DataType is floating point.
bool IsOnnxReal(int type);

OnnxDims DimsOf(const onnx::TensorProto& tensor);

// The values of a small tensor, where they are in the file.
std::optional<OnnxData> DataOf(const onnx::TensorProto& tensor);

OnnxAttribute AttributeOf(const onnx::AttributeProto& attribute);

}  // namespace stepcast

#endif  // STEPCAST_DATA_ONNX_MODEL_H_
