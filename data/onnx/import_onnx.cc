#include "data/onnx/import_onnx.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>

#include "data/onnx/graph.h"
#include "data/onnx/layers.h"
#include "data/record/controls.h"
#include "data/record/input_error.h"
#include "data/values/names.h"
#include "data/values/size_limits.h"
#include "data/values/utf8.h"
#include "data/values/workload_scope.h"

namespace stepcast {
namespace {

constexpr double kBytesPerGradient = 4;

std::string TextOf(const std::string& text, const std::string& otherwise) {
  return Trim(text).empty() || !IsUtf8(text) || HasControls(text) ? otherwise : text;
}

std::string Source(const OnnxGraph& graph, int shared) {
  std::string text = "ONNX graph " + TextOf(graph.name, "without a name");
  const std::string producer = TextOf(graph.producer, "");
  if (!producer.empty()) text += " by " + producer;
  text += ", opset " + std::to_string(graph.opset);
  if (shared > 0) {
    text += "; " + std::to_string(shared) +
            (shared == 1 ? " layer has a weight" : " layers have weights") +
            " of earlier ones (tied, or stored once because equal)";
  }
  return text;
}

// What a workload file cannot hold is refused here.
void CheckLayer(const std::string& path, const Layer& layer) {
  const InputPlace place{path, 0, "node " + layer.name};
  if (layer.forward_flop.si() > kMostFlop) {
    throw InputError(place, "", "does too much work", fmt::format("at most {} FLOP", kMostFlop));
  }
  if (layer.activation_bytes.in(kBytes) > kMostActivationBytes) {
    throw InputError(place, "", "has too large an output",
                     fmt::format("at most {} bytes", kMostActivationBytes));
  }
}

void CheckSize(const std::string& path, bool fits) {
  if (fits) return;
  throw InputError({path, 0, ""}, "", "has too many parameters",
                   fmt::format("at most 10^15 in {} tensors", kMostTensors));
}

}  // namespace

Workload ImportOnnx(const std::string& path, const OnnxOptions& options) {
  const OnnxGraph graph = ReadOnnxGraph(path, options.dims);
  OnnxLayers found = LayersOfOnnx(graph);
  const std::filesystem::path file(path);
  Workload workload;
  const std::string stem = TextOf(file.stem().string(), "network");
  workload.name =
      CheckedWorkloadName(options.name.empty() ? stem : Trim(options.name), {path, 0, "workload"});
  workload.title =
      workload.name + ", imported from " + TextOf(file.filename().string(), "an ONNX file");
  workload.source = Source(graph, found.shared);
  workload.layers = std::move(found.layers);
  std::size_t tensors = 0;
  for (const Layer& layer : workload.layers) {
    CheckLayer(path, layer);
    for (const std::int64_t tensor : layer.tensors) {
      workload.trainable_parameters += tensor;
      CheckSize(path,
                ++tensors <= kMostTensors && workload.trainable_parameters <= kMostParameters);
    }
    workload.parameters += layer.statistics;
    CheckSize(path, workload.parameters + workload.trainable_parameters <= kMostParameters);
  }
  workload.parameters += workload.trainable_parameters;
  if (workload.trainable_parameters == 0) {
    throw InputError({path, 0, ""}, "", "has no trainable parameter",
                     "a network whose weights are initializers, or inputs beside the data");
  }
  workload.gradient_bytes =
      Bytes(kBytesPerGradient * static_cast<double>(workload.trainable_parameters));
  return workload;
}

}  // namespace stepcast
