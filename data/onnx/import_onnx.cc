#include "data/onnx/import_onnx.h"

#include <filesystem>
#include <string>
#include <utility>

#include "data/onnx/graph.h"
#include "data/onnx/layers.h"
#include "data/record/input_error.h"
#include "data/values/utf8.h"

namespace stepcast {
namespace {

constexpr std::int64_t kMostParameters = 1'000'000'000'000'000;
constexpr double kBytesPerGradient = 4;

std::string TextOf(const std::string& text, const std::string& otherwise) {
  return text.empty() || !IsUtf8(text) ? otherwise : text;
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

}  // namespace

Workload ImportOnnx(const std::string& path, const OnnxOptions& options) {
  const OnnxGraph graph = ReadOnnxGraph(path, options.dims);
  OnnxLayers found = LayersOfOnnx(graph);
  const std::filesystem::path file(path);
  Workload workload;
  workload.name = options.name.empty() ? TextOf(file.stem().string(), "network") : options.name;
  workload.title =
      workload.name + ", imported from " + TextOf(file.filename().string(), "an ONNX file");
  workload.source = Source(graph, found.shared);
  workload.layers = std::move(found.layers);
  for (const Layer& layer : workload.layers) {
    workload.trainable_parameters += layer.parameters();
    workload.parameters += layer.statistics;
    if (workload.trainable_parameters > kMostParameters) {
      throw InputError({path, 0, ""}, "", "has too many parameters", "10^15");
    }
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
