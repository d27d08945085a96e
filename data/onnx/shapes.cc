#include "data/onnx/shapes.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <set>
#include <string>

#include "data/onnx/constants.h"

namespace stepcast {
namespace {

OnnxShapes Unknown(const OnnxNode& node) { return OnnxShapes(node.outputs.size()); }

// 0-based, of an input that has it.
std::size_t AxisOf(const OnnxGraph& graph, const OnnxNode& node, std::int64_t axis,
                   std::size_t rank) {
  const std::optional<std::size_t> found = OnnxAxis(axis, rank);
  if (!found) graph.Fail(node, std::to_string(axis), "is not an axis of the input");
  return *found;
}

OnnxDims AllAxes(std::size_t rank) {
  OnnxDims axes;
  for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

// The integers of an attribute or, in later opsets, of an input; empty where left out. False where
// they are not known before the network runs.
bool TakeIntegers(const OnnxGraph& graph, const OnnxNode& node, const char* attribute,
                  std::size_t slot, OnnxDims* integers,
                  std::size_t most = std::size_t{2} * kMostRank) {
  *integers = node.Ints(attribute);
  if (node.input(slot) < 0) return true;
  const std::optional<OnnxDims> known = graph.KnownIntegers(node.input(slot), most);
  if (known) *integers = *known;
  return known.has_value();
}

std::int64_t ProductOf(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& lengths) {
  const std::optional<std::int64_t> product = OnnxElements(lengths);
  if (!product) graph.Fail(node, "", "has an output too large, or of a negative length");
  return *product;
}

OnnxDims Part(const OnnxDims& dims, std::size_t from, std::size_t to) {
  return {dims.begin() + static_cast<std::ptrdiff_t>(from),
          dims.begin() + static_cast<std::ptrdiff_t>(to)};
}

OnnxDims Joined(OnnxDims a, const OnnxDims& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void Broadcast(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& own, OnnxDims* dims) {
  if (!BroadcastOnnx(own, dims)) graph.FailInputs(node);
}

// ---- One function for each kind of operator; `x` is the shape of the first input.

using Rule = OnnxShapes (*)(const OnnxGraph&, const OnnxNode&, const OnnxDims& x);

OnnxShapes Kept(const OnnxGraph&, const OnnxNode&, const OnnxDims& x) { return {x}; }

// A mask or indices come with it.
OnnxShapes KeptTwice(const OnnxGraph&, const OnnxNode&, const OnnxDims& x) { return {x, x}; }

OnnxShapes Elementwise(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  OnnxDims dims = x;
  for (std::size_t slot = 1; slot < node.inputs.size(); ++slot) {
    const std::optional<OnnxDims>& own = graph.DimsOf(node.inputs[slot]);
    if (!own) return Unknown(node);
    Broadcast(graph, node, *own, &dims);
  }
  return {dims};
}

OnnxShapes Reduced(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const OnnxDims axes =
      node.op.starts_with("Arg")
          ? OnnxDims{static_cast<std::int64_t>(AxisOf(graph, node, node.Int("axis", 0), x.size()))}
          : OnnxReductionAxes(graph, node, x.size());
  const bool keeps = node.Int("keepdims", 1) != 0;
  OnnxDims out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool reduced = std::count(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) > 0;
    if (!reduced) out.push_back(x[i]);
    if (reduced && keeps) out.push_back(1);
  }
  return {out};
}

// ---- Windows.

// Places of a window of `size` over each axis of an image.
std::int64_t Places(const OnnxGraph& graph, const OnnxNode& node, const OnnxWindow& window,
                    std::size_t axis, std::int64_t length, std::int64_t size) {
  const std::int64_t stride = window.strides[axis];
  const std::int64_t dilation = window.dilations[axis];
  if (size < 1 || size - 1 > kMostTensorElements / dilation) graph.FailInputs(node);
  if (window.same) return length / stride + (length % stride == 0 ? 0 : 1);
  const std::int64_t room = length + window.pads[axis] + window.pads[axis + window.strides.size()] -
                            dilation * (size - 1) - 1;
  if (room < 0) graph.FailInputs(node);
  // An incomplete last window counts where it is asked for.
  return (room + (node.Int("ceil_mode", 0) != 0 ? stride - 1 : 0)) / stride + 1;
}

// The window's lengths, which the weight w has as well.
OnnxDims KernelOf(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x,
                  const OnnxDims& w) {
  if (x.size() < 3 || w.size() != x.size()) graph.FailInputs(node);
  const OnnxDims kernel = Part(w, 2, w.size());
  if (node.Has("kernel_shape") && node.Ints("kernel_shape") != kernel) {
    graph.Fail(node, "kernel_shape", "is not that of the weight");
  }
  return kernel;
}

OnnxShapes Convolved(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::optional<OnnxDims>& w = graph.DimsOf(node.input(1));
  if (!w) return Unknown(node);
  const OnnxDims kernel = KernelOf(graph, node, x, *w);
  const OnnxWindow window = OnnxWindowOf(graph, node, kernel.size());
  OnnxDims out = {x[0], (*w)[0]};
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    out.push_back(Places(graph, node, window, i, x[i + 2], kernel[i]));
  }
  return {out};
}

OnnxShapes ConvolvedBack(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::optional<OnnxDims>& w = graph.DimsOf(node.input(1));
  if (!w) return Unknown(node);
  const OnnxDims kernel = KernelOf(graph, node, x, *w);
  const std::int64_t groups = node.Int("group", 1);
  if ((*w)[0] != x[1] || x[1] % groups != 0) graph.FailInputs(node);
  const OnnxWindow window = OnnxWindowOf(graph, node, kernel.size());
  OnnxDims more = node.Ints("output_padding");
  if (more.empty()) more.assign(kernel.size(), 0);
  const OnnxDims given = node.Ints("output_shape");
  if (more.size() != kernel.size() || (!given.empty() && given.size() != kernel.size())) {
    graph.Fail(node, "output_shape", "has not a length for each dimension");
  }
  OnnxDims out = {x[0], ProductOf(graph, node, {(*w)[1], groups})};
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t stride = window.strides[i];
    if (!given.empty()) {
      out.push_back(given[i]);
    } else if (window.same) {
      out.push_back(ProductOf(graph, node, {x[i + 2], stride}));
    } else {
      const std::int64_t spread =
          ProductOf(graph, node, {window.dilations[i], std::max<std::int64_t>(0, kernel[i] - 1)});
      out.push_back(ProductOf(graph, node, {stride, std::max<std::int64_t>(0, x[i + 2] - 1)}) +
                    more[i] + spread + 1 - window.pads[i] - window.pads[i + kernel.size()]);
    }
    if (out.back() < 1) graph.FailInputs(node);
  }
  return {out};
}

OnnxShapes Pooled(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const OnnxDims kernel = node.Ints("kernel_shape");
  if (kernel.empty() || kernel.size() + 2 != x.size()) {
    graph.Fail(node, "kernel_shape", "has not a length for each dimension");
  }
  const OnnxWindow window = OnnxWindowOf(graph, node, kernel.size());
  OnnxDims out = {x[0], x[1]};
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    out.push_back(Places(graph, node, window, i, x[i + 2], kernel[i]));
  }
  return {out, out};
}

OnnxShapes PooledWhole(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  if (x.size() < 2) graph.FailInputs(node);
  OnnxDims out(x.size(), 1);
  std::copy_n(x.begin(), 2, out.begin());
  return {out};
}

// ---- Products.

OnnxShapes Gemm(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::optional<OnnxDims>& w = graph.DimsOf(node.input(1));
  if (!w) return Unknown(node);
  if (x.size() != 2 || w->size() != 2) graph.FailInputs(node);
  const std::size_t turn_a = node.Int("transA", 0) != 0 ? 1 : 0;
  const std::size_t turn_b = node.Int("transB", 0) != 0 ? 1 : 0;
  if (x[1 - turn_a] != (*w)[turn_b]) graph.FailInputs(node);
  return {OnnxDims{x[turn_a], (*w)[1 - turn_b]}};
}

OnnxShapes MatMul(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::optional<OnnxDims>& w = graph.DimsOf(node.input(1));
  if (!w) return Unknown(node);
  if (x.empty() || w->empty()) graph.FailInputs(node);
  const OnnxDims left = x.size() == 1 ? Joined({1}, x) : x;
  const OnnxDims right = w->size() == 1 ? Joined(*w, {1}) : *w;
  if (left.back() != right[right.size() - 2]) graph.FailInputs(node);
  OnnxDims out = Part(left, 0, left.size() - 2);
  Broadcast(graph, node, Part(right, 0, right.size() - 2), &out);
  if (x.size() > 1) out.push_back(left[left.size() - 2]);
  if (w->size() > 1) out.push_back(right.back());
  return {out};
}

OnnxShapes Recurrent(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::optional<OnnxDims>& r = graph.DimsOf(node.input(2));
  if (!r) return Unknown(node);
  if (x.size() != 3 || r->size() != 3) graph.FailInputs(node);
  const std::int64_t directions = node.Text("direction", "forward") == "bidirectional" ? 2 : 1;
  const std::int64_t hidden = node.Int("hidden_size", (*r)[2]);
  if ((*r)[0] != directions || (*r)[2] != hidden) graph.FailInputs(node);
  if (node.Int("layout", 0) != 0) {
    const OnnxDims state = {x[0], directions, hidden};
    return {OnnxDims{x[0], x[1], directions, hidden}, state, state};
  }
  const OnnxDims state = {directions, x[1], hidden};
  return {OnnxDims{x[0], directions, x[1], hidden}, state, state};
}

OnnxShapes Loss(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::optional<OnnxDims>& target = graph.DimsOf(node.input(1));
  if (!target) return Unknown(node);
  const bool all = node.Text("reduction", "mean") == "none";
  return {all ? *target : OnnxDims(), x};
}

// ---- What only moves elements.

OnnxShapes Gather(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::optional<OnnxDims>& indices = graph.DimsOf(node.input(1));
  const std::size_t axis = AxisOf(graph, node, node.Int("axis", 0), x.size());
  if (!indices) return Unknown(node);
  return {Joined(Joined(Part(x, 0, axis), *indices), Part(x, axis + 1, x.size()))};
}

OnnxShapes GatherElements(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::optional<OnnxDims>& indices = graph.DimsOf(node.input(1));
  if (!indices) return Unknown(node);
  if (indices->size() != x.size()) graph.FailInputs(node);
  return {*indices};
}

OnnxShapes GatherND(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::optional<OnnxDims>& indices = graph.DimsOf(node.input(1));
  if (!indices) return Unknown(node);
  const std::int64_t batch = node.Int("batch_dims", 0);
  const auto rank = static_cast<std::int64_t>(x.size());
  if (indices->empty() || batch < 0 || batch > rank || indices->back() > rank - batch) {
    graph.FailInputs(node);
  }
  return {Joined(Part(*indices, 0, indices->size() - 1),
                 Part(x, static_cast<std::size_t>(batch + indices->back()), x.size()))};
}

OnnxShapes Concat(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::size_t axis = AxisOf(graph, node, node.Int("axis", 1), x.size());
  OnnxDims out = x;
  for (std::size_t slot = 1; slot < node.inputs.size(); ++slot) {
    const std::optional<OnnxDims>& own = graph.DimsOf(node.inputs[slot]);
    if (!own) return Unknown(node);
    if (own->size() != x.size()) graph.FailInputs(node);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i != axis && (*own)[i] != x[i]) graph.FailInputs(node);
    }
    out[axis] += (*own)[axis];
    if (out[axis] > kMostTensorElements) ProductOf(graph, node, out);  // says so
  }
  return {out};
}

OnnxShapes Transpose(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const OnnxDims order = node.Ints("perm");
  if (order.empty()) return {OnnxDims(x.rbegin(), x.rend())};
  OnnxDims sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != AllAxes(x.size())) graph.Fail(node, "perm", "is no order of the axes");
  OnnxDims out;
  for (const std::int64_t axis : order) out.push_back(x[static_cast<std::size_t>(axis)]);
  return {out};
}

OnnxShapes Slice(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  OnnxDims starts;
  OnnxDims ends;
  OnnxDims axes;
  OnnxDims steps;
  if (!TakeIntegers(graph, node, "starts", 1, &starts) ||
      !TakeIntegers(graph, node, "ends", 2, &ends) ||
      !TakeIntegers(graph, node, "axes", 3, &axes) ||
      !TakeIntegers(graph, node, "steps", 4, &steps)) {
    return Unknown(node);
  }
  if (axes.empty()) axes = AllAxes(starts.size());
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    graph.Fail(node, "starts", "has not an end, axis and step for each");
  }
  OnnxDims out = x;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (steps[i] == 0) graph.Fail(node, "0", "is no step");
    std::int64_t& length = out[AxisOf(graph, node, axes[i], x.size())];
    length = OnnxPicksOf(length, starts[i], ends[i], steps[i]).count;
  }
  return {out};
}

OnnxShapes Split(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::size_t at = AxisOf(graph, node, node.Int("axis", 0), x.size());
  const auto count = static_cast<std::int64_t>(node.outputs.size());
  OnnxDims parts;
  if (!TakeIntegers(graph, node, "split", 1, &parts, node.outputs.size())) return Unknown(node);
  if (parts.empty()) {
    const std::int64_t part = (x[at] + count - 1) / count;
    for (std::int64_t i = 0; i < count; ++i) {
      parts.push_back(std::clamp<std::int64_t>(x[at] - part * i, 0, part));
    }
  }
  if (parts.size() != node.outputs.size()) graph.Fail(node, "split", "has not a part an output");
  OnnxShapes shapes(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    OnnxDims out = x;
    out[at] = parts[i];
    if (parts[i] < 0 || parts[i] > x[at]) {
      graph.Fail(node, std::to_string(parts[i]), "is no part of the axis");
    }
    shapes[i] = out;
  }
  return shapes;
}

OnnxShapes Pad(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  OnnxDims pads;
  OnnxDims axes;
  if (!TakeIntegers(graph, node, "pads", 1, &pads) ||
      !TakeIntegers(graph, node, "axes", 3, &axes)) {
    return Unknown(node);
  }
  if (node.input(3) < 0) axes = AllAxes(x.size());
  if (pads.size() != 2 * axes.size()) graph.Fail(node, "pads", "has not two lengths an axis");
  OnnxDims out = x;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::int64_t& length = out[AxisOf(graph, node, axes[i], x.size())];
    for (const std::int64_t pad : {pads[i], pads[i + axes.size()]}) {
      if (std::abs(static_cast<double>(pad)) > 1e9) {
        graph.Fail(node, std::to_string(pad), "is out of range in pads");
      }
      length += pad;
    }
  }
  return {out};
}

// Upsample has its scales second; Resize third from opset 11 on, and the sizes fourth.
OnnxShapes Resize(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  OnnxDims axes = node.Ints("axes");
  if (axes.empty()) axes = AllAxes(x.size());
  const bool third = node.op == "Resize" && node.opset >= 11;
  std::vector<double> scales = node.ValueOr("scales", std::vector<double>());
  const int slot = node.input(third ? 2 : 1);
  if (slot >= 0 && graph.values[static_cast<std::size_t>(slot)].data) {
    scales = graph.values[static_cast<std::size_t>(slot)].data->values;
  }
  OnnxDims sizes;
  if (third && !TakeIntegers(graph, node, "sizes", 3, &sizes)) return Unknown(node);
  if (sizes.empty() && scales.empty()) return Unknown(node);
  if ((sizes.empty() ? scales.size() : sizes.size()) != axes.size()) {
    graph.Fail(node, "scales", "has not a length for each axis");
  }
  OnnxDims out = x;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::int64_t& length = out[AxisOf(graph, node, axes[i], x.size())];
    length =
        sizes.empty() ? OnnxInteger(std::floor(static_cast<double>(length) * scales[i])) : sizes[i];
  }
  return {out};
}

OnnxShapes Expand(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::optional<OnnxDims> shape = graph.KnownIntegers(node.input(1));
  if (!shape) return Unknown(node);
  OnnxDims out = x;
  Broadcast(graph, node, *shape, &out);
  return {out};
}

OnnxShapes Tile(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::optional<OnnxDims> repeats = graph.KnownIntegers(node.input(1));
  if (!repeats) return Unknown(node);
  if (repeats->size() != x.size()) graph.FailInputs(node);
  OnnxDims out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    out.push_back(ProductOf(graph, node, {x[i], (*repeats)[i]}));
  }
  return {out};
}

OnnxShapes DepthToSpace(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::int64_t block = node.Int("blocksize", 1);
  const std::int64_t area = ProductOf(graph, node, {block, block});
  if (x.size() != 4 || x[1] % area != 0) graph.FailInputs(node);
  return {OnnxDims{x[0], x[1] / area, ProductOf(graph, node, {x[2], block}),
                   ProductOf(graph, node, {x[3], block})}};
}

OnnxShapes SpaceToDepth(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::int64_t block = node.Int("blocksize", 1);
  if (x.size() != 4 || x[2] % block != 0 || x[3] % block != 0) graph.FailInputs(node);
  return {OnnxDims{x[0], ProductOf(graph, node, {x[1], block, block}), x[2] / block, x[3] / block}};
}

OnnxShapes Flatten(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  std::int64_t axis = node.Int("axis", 1);
  if (axis < 0) axis += static_cast<std::int64_t>(x.size());
  if (axis < 0 || axis > static_cast<std::int64_t>(x.size())) {
    graph.Fail(node, std::to_string(axis), "is not an axis of the input");
  }
  const auto at = static_cast<std::size_t>(axis);
  return {OnnxDims{ProductOf(graph, node, Part(x, 0, at)),
                   ProductOf(graph, node, Part(x, at, x.size()))}};
}

OnnxShapes Reshape(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  const std::optional<OnnxDims> shape = graph.KnownIntegers(node.input(1));
  if (!shape) return Unknown(node);
  OnnxDims out = *shape;
  std::ptrdiff_t open = -1;  // the length that follows from the others
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == 0 && node.Int("allowzero", 0) == 0) {
      if (i >= x.size()) graph.FailInputs(node);
      out[i] = x[i];
    }
    if (out[i] != -1) continue;
    if (open >= 0) graph.FailInputs(node);
    open = static_cast<std::ptrdiff_t>(i);
    out[i] = 1;
  }
  const std::int64_t elements = ProductOf(graph, node, x);
  const std::int64_t others = ProductOf(graph, node, out);
  if (open >= 0 && others > 0) out[static_cast<std::size_t>(open)] = elements / others;
  if (ProductOf(graph, node, out) != elements) graph.FailInputs(node);
  return {out};
}

OnnxShapes Squeeze(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  OnnxDims axes;
  if (!TakeIntegers(graph, node, "axes", 1, &axes)) return Unknown(node);
  std::set<std::size_t> gone;
  for (const std::int64_t axis : axes) gone.insert(AxisOf(graph, node, axis, x.size()));
  OnnxDims out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool goes = axes.empty() ? x[i] == 1 : gone.count(i) > 0;
    if (goes && x[i] != 1) graph.FailInputs(node);
    if (!goes) out.push_back(x[i]);
  }
  return {out};
}

OnnxShapes Unsqueeze(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims& x) {
  OnnxDims axes;
  if (!TakeIntegers(graph, node, "axes", 1, &axes)) return Unknown(node);
  const std::size_t rank = x.size() + axes.size();
  std::set<std::size_t> added;
  for (const std::int64_t axis : axes) added.insert(AxisOf(graph, node, axis, rank));
  if (added.size() != axes.size()) graph.Fail(node, "axes", "name an axis twice");
  OnnxDims out;
  for (std::size_t i = 0, from = 0; i < rank; ++i) {
    out.push_back(added.count(i) > 0 ? 1 : x[from++]);
  }
  return {out};
}

OnnxShapes ConstantOfShape(const OnnxGraph& graph, const OnnxNode& node, const OnnxDims&) {
  const std::optional<OnnxDims> shape = graph.KnownIntegers(node.input(0));
  if (!shape) return Unknown(node);
  return {*shape};
}

// Every operator that layers are made of, and those that shapes are computed with.
const std::map<std::string, Rule>& Rules() {
  static const std::map<std::string, Rule> kRules = [] {
    std::map<std::string, Rule> rules;
    const auto add = [&](Rule rule, std::initializer_list<const char*> operators) {
      for (const char* op : operators) rules[op] = rule;
    };
    add(Pooled, {"AveragePool", "LpPool", "MaxPool"});
    add(Concat, {"Concat"});
    add(ConstantOfShape, {"ConstantOfShape"});
    add(Convolved, {"Conv"});
    add(ConvolvedBack, {"ConvTranspose"});
    add(DepthToSpace, {"DepthToSpace"});
    add(KeptTwice, {"Dropout"});
    add(Expand, {"Expand"});
    add(Flatten, {"Flatten"});
    add(Recurrent, {"GRU", "LSTM"});
    add(Gather, {"Gather"});
    add(GatherElements, {"GatherElements"});
    add(GatherND, {"GatherND"});
    add(Gemm, {"Gemm"});
    add(PooledWhole, {"GlobalAveragePool", "GlobalMaxPool"});
    add(MatMul, {"MatMul"});
    add(Loss, {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"});
    add(Pad, {"Pad"});
    add(Reshape, {"Reshape"});
    add(Resize, {"Resize", "Upsample"});
    add(Slice, {"Slice"});
    add(SpaceToDepth, {"SpaceToDepth"});
    add(Split, {"Split"});
    add(Squeeze, {"Squeeze"});
    add(Tile, {"Tile"});
    add(Transpose, {"Transpose"});
    add(Unsqueeze, {"Unsqueeze"});
    add(Elementwise,
        {"Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max",
         "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor"});
    add(Kept, {"BatchNormalization", "GroupNormalization", "InstanceNormalization",
               "LayerNormalization", "LpNormalization"});
    add(Kept,
        {"Celu",    "Clip",      "Elu",        "FastGelu", "Gelu",  "HardSigmoid",    "HardSwish",
         "Hardmax", "LeakyRelu", "LogSoftmax", "Mish",     "PRelu", "Relu",           "Selu",
         "Sigmoid", "Softmax",   "Softplus",   "Softsign", "Tanh",  "ThresholdedRelu"});
    add(Kept, {"Abs",        "Acos",  "Acosh", "Asin",  "Asinh", "Atan",  "Atanh", "Ceil", "Cos",
               "Cosh",       "Erf",   "Exp",   "Floor", "IsInf", "IsNaN", "Log",   "Neg",  "Not",
               "Reciprocal", "Round", "Sign",  "Sin",   "Sinh",  "Sqrt",  "Tan"});
    add(Kept, {"Cast", "CastLike", "CumSum", "Identity", "ScatterElements", "ScatterND", "Trilu"});
    add(Reduced,
        {"ArgMax", "ArgMin", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
         "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"});
    return rules;
  }();
  return kRules;
}

}  // namespace

OnnxWindow OnnxWindowOf(const OnnxGraph& graph, const OnnxNode& node, std::size_t rank) {
  const auto lengths = [&](const char* name, std::size_t count, std::int64_t missing) {
    OnnxDims given = node.Ints(name);
    if (given.empty()) given.assign(count, missing);
    if (given.size() != count) {
      graph.Fail(node, name,
                 count == rank ? "has not a length for each dimension"
                               : "has not two lengths for each dimension",
                 std::to_string(count));
    }
    return given;
  };
  OnnxWindow window;
  window.strides = lengths("strides", rank, 1);
  window.dilations = lengths("dilations", rank, 1);
  const std::string automatic = node.Text("auto_pad", "NOTSET");
  window.upper = automatic == "SAME_UPPER";
  window.same = window.upper || automatic == "SAME_LOWER";
  if (automatic == "NOTSET") {
    window.pads = lengths("pads", 2 * rank, 0);
  } else {
    window.pads.assign(2 * rank, 0);
  }
  return window;
}

void CheckOnnxAttributes(const OnnxGraph& graph, const OnnxNode& node) {
  for (const char* name : {"strides", "dilations", "kernel_shape"}) {
    for (const std::int64_t length : node.Ints(name)) {
      if (length < 1 || length > 1'000'000'000) {
        graph.Fail(node, std::to_string(length), std::string("is out of range in ") + name,
                   "1 or more");
      }
    }
  }
  for (const char* name : {"pads", "output_padding"}) {
    for (const std::int64_t length : node.Ints(name)) {
      if (std::abs(static_cast<double>(length)) > 1e9) {
        graph.Fail(node, std::to_string(length), std::string("is out of range in ") + name);
      }
    }
  }
  for (const char* name : {"group", "blocksize", "num_groups", "hidden_size"}) {
    if (node.Int(name, 1) < 1) {
      graph.Fail(node, std::to_string(node.Int(name, 1)), std::string("is out of range in ") + name,
                 "1 or more");
    }
  }
}

OnnxShapes InferOnnxShapes(const OnnxGraph& graph, const OnnxNode& node) {
  const auto rule = Rules().find(node.op);
  const std::optional<OnnxDims>& x = graph.DimsOf(node.input(0));
  if (rule == Rules().end() || !x) return Unknown(node);
  return rule->second(graph, node, *x);
}

OnnxDims OnnxReductionAxes(const OnnxGraph& graph, const OnnxNode& node, std::size_t rank) {
  OnnxDims axes = node.Ints("axes");
  if (node.input(1) >= 0) {
    const std::optional<OnnxDims> known = graph.KnownIntegers(node.input(1));
    if (!known) graph.Fail(node, "axes", "are not known before the network runs", "constants");
    axes = *known;
  }
  if (axes.empty() && node.Int("noop_with_empty_axes", 0) == 0) {
    axes = AllAxes(rank);
  }
  for (std::int64_t& axis : axes) {
    axis = static_cast<std::int64_t>(AxisOf(graph, node, axis, rank));
  }
  return axes;
}

}  // namespace stepcast
