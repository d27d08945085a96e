#include "data/onnx/shapes.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "data/onnx/constants.h"

namespace stepcast {
namespace {

bool KeepsShape(const std::string& op) {
  static const std::set<std::string> kOps = {
      "Dropout",   "FastGelu",           "Gelu", "GroupNormalization",
      "HardSwish", "LayerNormalization", "Mish"};
  return kOps.count(op) > 0;
}

void CheckAxis(const OnnxGraph& graph, const OnnxNode& node, std::int64_t axis, std::int64_t rank) {
  if (axis >= -rank && axis < std::max<std::int64_t>(rank, 1)) return;
  graph.Fail(node, std::to_string(axis), "is not an axis of the input");
}

OnnxDims Reduced(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& dims) {
  const OnnxDims axes = OnnxReductionAxes(graph, node, dims.size());
  const bool keeps = node.Int("keepdims", 1) != 0;
  OnnxDims out;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool reduced = std::count(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) > 0;
    if (!reduced) out.push_back(dims[i]);
    if (reduced && keeps) out.push_back(1);
  }
  return out;
}

OnnxShapes InferSplit(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& dims) {
  const OnnxShapes unknown(node.outputs.size());
  std::int64_t axis = node.Int("axis", 0);
  if (axis < 0) axis += static_cast<std::int64_t>(dims.size());
  if (axis < 0 || axis >= static_cast<std::int64_t>(dims.size())) {
    graph.Fail(node, "axis", "is not an axis of the input");
  }
  const auto at = static_cast<std::size_t>(axis);
  const auto count = static_cast<std::int64_t>(node.outputs.size());
  OnnxDims parts = node.Ints("split");
  if (node.input(1) >= 0) {
    const std::optional<OnnxDims> sizes = graph.KnownIntegers(node.input(1));
    if (!sizes) return unknown;
    parts = *sizes;
  }
  if (parts.empty()) {
    const std::int64_t part = (dims[at] + count - 1) / count;
    for (std::int64_t i = 0; i < count; ++i) {
      parts.push_back(std::min(part, dims[at] - part * i));
    }
  }
  if (parts.size() != node.outputs.size()) graph.Fail(node, "split", "has not a part an output");
  OnnxShapes shapes(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    OnnxDims out = dims;
    out[at] = parts[i];
    if (parts[i] < 0 || parts[i] > dims[at]) {
      graph.Fail(node, std::to_string(parts[i]), "is no part of the axis");
    }
    shapes[i] = out;
  }
  return shapes;
}

OnnxShapes InferPad(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& dims) {
  const OnnxShapes unknown(node.outputs.size());
  OnnxDims pads = node.Ints("pads");
  OnnxDims axes;
  if (node.input(1) >= 0) {
    const std::optional<OnnxDims> known = graph.KnownIntegers(node.input(1));
    if (!known) return unknown;
    pads = *known;
  }
  if (node.input(3) >= 0) {
    const std::optional<OnnxDims> known = graph.KnownIntegers(node.input(3));
    if (!known) return unknown;
    axes = *known;
  } else {
    for (std::size_t i = 0; i < dims.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (pads.size() != 2 * axes.size()) graph.Fail(node, "pads", "has not two lengths an axis");
  OnnxDims out = dims;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto rank = static_cast<std::int64_t>(dims.size());
    CheckAxis(graph, node, axes[i], rank);
    for (const std::int64_t pad : {pads[i], pads[i + axes.size()]}) {
      if (std::abs(static_cast<double>(pad)) > 1e9) {
        graph.Fail(node, std::to_string(pad), "is out of range in pads");
      }
      out[static_cast<std::size_t>(axes[i] < 0 ? axes[i] + rank : axes[i])] += pad;
    }
  }
  return {out};
}

// Upsample has its scales second; Resize third from opset 11 on, and the sizes fourth.
OnnxShapes InferResize(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& dims) {
  const OnnxShapes unknown(node.outputs.size());
  OnnxDims out = dims;
  OnnxDims axes = node.Ints("axes");
  if (axes.empty()) {
    for (std::size_t i = 0; i < dims.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  const bool third = node.op == "Resize" && node.opset >= 11;
  std::vector<double> scales;
  if (const auto found = node.attributes.find("scales"); found != node.attributes.end()) {
    if (const auto* list = std::get_if<std::vector<double>>(&found->second)) scales = *list;
  }
  const int slot = node.input(third ? 2 : 1);
  if (slot >= 0 && graph.values[static_cast<std::size_t>(slot)].data) {
    scales = graph.values[static_cast<std::size_t>(slot)].data->values;
  }
  OnnxDims sizes;
  if (third && node.input(3) >= 0) {
    const std::optional<OnnxDims> known = graph.KnownIntegers(node.input(3));
    if (!known) return unknown;
    sizes = *known;
  }
  if (sizes.empty() && scales.empty()) return unknown;
  if ((sizes.empty() ? scales.size() : sizes.size()) != axes.size()) {
    graph.Fail(node, "scales", "has not a length for each axis");
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto rank = static_cast<std::int64_t>(dims.size());
    CheckAxis(graph, node, axes[i], rank);
    std::int64_t& length = out[static_cast<std::size_t>(axes[i] < 0 ? axes[i] + rank : axes[i])];
    length =
        sizes.empty() ? OnnxInteger(std::floor(static_cast<double>(length) * scales[i])) : sizes[i];
  }
  if (!OnnxElements(out)) graph.Fail(node, "", "has an output that is too large");
  return {out};
}

}  // namespace

void CheckOnnxAttributes(const OnnxGraph& graph, const OnnxNode& node) {
  for (const char* name : {"strides", "dilations", "kernel_shape"}) {
    for (const std::int64_t length : node.Ints(name)) {
      if (length < 1 || length > 1'000'000'000) {
        graph.Fail(node, std::to_string(length), std::string("is out of range in ") + name,
                   "1 or more");
      }
    }
  }
  for (const std::int64_t length : node.Ints("pads")) {
    if (std::abs(static_cast<double>(length)) > 1e9) {
      graph.Fail(node, std::to_string(length), "is out of range in pads");
    }
  }
  for (const char* name : {"group", "blocksize", "num_groups", "hidden_size"}) {
    if (node.Int(name, 1) < 1) {
      graph.Fail(node, std::to_string(node.Int(name, 1)), std::string("is out of range in ") + name,
                 "1 or more");
    }
  }
  const int first = node.input(0);
  if (first < 0 || !graph.values[static_cast<std::size_t>(first)].dims) return;
  const auto rank =
      static_cast<std::int64_t>(graph.values[static_cast<std::size_t>(first)].dims->size());
  OnnxDims axes = node.Ints("axes");
  std::int64_t room = rank;
  if (node.op == "Unsqueeze" || node.op == "Squeeze") {
    if (const std::optional<OnnxDims> input = graph.KnownIntegers(node.input(1))) axes = *input;
    if (node.op == "Unsqueeze") room += static_cast<std::int64_t>(axes.size());
  }
  for (const std::int64_t axis : axes) CheckAxis(graph, node, axis, room);
  if (node.Has("axis")) CheckAxis(graph, node, node.Int("axis", 0), rank + 1);
  const OnnxDims order = node.Ints("perm");
  if (order.empty() || node.op != "Transpose") return;
  const std::set<std::int64_t> different(order.begin(), order.end());
  if (static_cast<std::int64_t>(order.size()) != rank || different.size() != order.size() ||
      *different.begin() != 0 || *different.rbegin() != rank - 1) {
    graph.Fail(node, "perm", "is no order of the axes");
  }
}

std::optional<OnnxShapes> InferOnnxShapes(const OnnxGraph& graph, const OnnxNode& node) {
  const bool reduces = node.op.starts_with("Reduce");
  const bool pads = node.op == "Pad";
  const bool splits = node.op == "Split";
  const bool resizes = node.op == "Resize" || node.op == "Upsample";
  const int first = node.input(0);
  if (first < 0 || !(reduces || pads || splits || resizes || KeepsShape(node.op)))
    return std::nullopt;
  const std::optional<OnnxDims>& dims = graph.values[static_cast<std::size_t>(first)].dims;
  if (!dims) return OnnxShapes(node.outputs.size());
  if (reduces) return OnnxShapes{Reduced(graph, node, *dims)};
  if (pads) return InferPad(graph, node, *dims);
  if (splits) return InferSplit(graph, node, *dims);
  if (resizes) return InferResize(graph, node, *dims);
  return OnnxShapes{*dims};
}

OnnxDims OnnxReductionAxes(const OnnxGraph& graph, const OnnxNode& node, std::size_t rank) {
  OnnxDims axes = node.Ints("axes");
  if (node.input(1) >= 0) {
    const std::optional<OnnxDims> known = graph.KnownIntegers(node.input(1));
    if (!known) graph.Fail(node, "axes", "are not known before the network runs", "constants");
    axes = *known;
  }
  if (axes.empty() && node.Int("noop_with_empty_axes", 0) == 0) {
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  for (std::int64_t& axis : axes) {
    if (axis < 0) axis += static_cast<std::int64_t>(rank);
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) {
      graph.Fail(node, std::to_string(axis), "is not an axis of the input");
    }
  }
  return axes;
}

}  // namespace stepcast
