// Networks as ONNX.
#include "data/onnx/import_onnx.h"
#include "tests/fuzz/door.h"
#include "tests/fuzz/message.h"
#include "tests/fuzz/written.h"

// Generated code is not judged by our warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#include <onnx/onnx_pb.h>
#pragma GCC diagnostic pop

namespace stepcast::fuzz {
namespace {

STEPCAST_DOOR(onnx) {
  onnx::ModelProto model;
  const std::string bytes = MessageBytes(input, &model);
  // Lengths that have a name, but for the batch.
  OnnxOptions options;
  for (const auto& data : model.graph().input()) {
    for (const auto& dim : data.type().tensor_type().shape().dim()) {
      constexpr int kLength = 16;
      if (dim.has_dim_param() && dim.dim_param() != "batch")
        options.dims[dim.dim_param()] = kLength;
    }
  }
  RequireReadAgain(ImportOnnx(FileOf(bytes, "net.onnx"), options));
}

}  // namespace
}  // namespace stepcast::fuzz
