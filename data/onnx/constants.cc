#include "data/onnx/constants.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

namespace stepcast {
namespace {

using Inputs = std::vector<const OnnxData*>;

bool IsKnown(const Inputs& inputs, std::size_t count) {
  if (inputs.size() < count) return false;
  return std::all_of(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(count),
                     [](const OnnxData* data) { return data != nullptr; });
}

// Elements of an output that are few enough to be computed, each from so many values.
std::optional<std::size_t> Computable(const OnnxDims& dims, OnnxBudget* budget,
                                      std::size_t values = 1) {
  const std::optional<std::size_t> elements = FewOnnxElements(dims);
  if (!elements || !budget->Affords(*elements * values)) return std::nullopt;
  return elements;
}

// Lengths before, at, and behind an axis: values are read at (before * at + i) * behind + j.
struct Around {
  std::int64_t before = 1;
  std::int64_t at = 1;
  std::int64_t behind = 1;

  Around(const OnnxDims& dims, std::size_t axis) : at(dims[axis]) {
    for (std::size_t i = 0; i < axis; ++i) before *= dims[i];
    for (std::size_t i = axis + 1; i < dims.size(); ++i) behind *= dims[i];
  }
};

// The values at `picks` along an axis.
OnnxData Pick(const OnnxData& x, std::size_t axis, const OnnxDims& picks) {
  const Around around(x.dims, axis);
  OnnxData out{x.dims, {}, x.integer};
  out.dims[axis] = static_cast<std::int64_t>(picks.size());
  if (x.values.empty() || picks.empty()) return out;
  for (std::int64_t b = 0; b < around.before; ++b) {
    for (const std::int64_t pick : picks) {
      const auto from = x.values.begin() + (b * around.at + pick) * around.behind;
      out.values.insert(out.values.end(), from, from + around.behind);
    }
  }
  return out;
}

std::optional<OnnxDims> BroadcastDims(const Inputs& inputs) {
  OnnxDims dims;
  for (const OnnxData* x : inputs) {
    if (!BroadcastOnnx(x->dims, &dims)) return std::nullopt;
  }
  return dims;
}

// Where the value of `x` stands that belongs to element `index` of a tensor of `dims`.
std::size_t BroadcastIndex(const OnnxData& x, const OnnxDims& dims, std::size_t index) {
  std::size_t at = 0;
  std::size_t step = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto length = static_cast<std::size_t>(dims[dims.size() - 1 - i]);
    const std::size_t position = index % length;
    index /= length;
    if (i >= x.dims.size()) continue;
    const auto own = static_cast<std::size_t>(x.dims[x.dims.size() - 1 - i]);
    if (own > 1) at += position * step;
    step *= own;
  }
  return at;
}

std::optional<OnnxData> Elementwise(const Inputs& inputs, bool integer, OnnxBudget* budget,
                                    const std::function<double(const std::vector<double>&)>& f) {
  const std::optional<OnnxDims> dims = BroadcastDims(inputs);
  if (!dims) return std::nullopt;
  const std::optional<std::size_t> elements =
      Computable(*dims, budget, inputs.size() * std::max<std::size_t>(1, dims->size()));
  if (!elements) return std::nullopt;
  OnnxData out{*dims, std::vector<double>(*elements), integer};
  std::vector<double> operands(inputs.size());
  for (std::size_t i = 0; i < *elements; ++i) {
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      operands[k] = inputs[k]->values[BroadcastIndex(*inputs[k], *dims, i)];
    }
    out.values[i] = f(operands);
  }
  return out;
}

using Function1 = double (*)(double);
using Function2 = double (*)(double, double);

Function1 UnaryOf(const std::string& op) {
  static const std::map<std::string, Function1> kFunctions = {
      {"Abs", [](double x) { return std::abs(x); }},
      {"Ceil", [](double x) { return std::ceil(x); }},
      {"Exp", [](double x) { return std::exp(x); }},
      {"Floor", [](double x) { return std::floor(x); }},
      {"Log", [](double x) { return std::log(x); }},
      {"Neg", [](double x) { return -x; }},
      {"Not", [](double x) { return x == 0 ? 1.0 : 0.0; }},
      {"Reciprocal", [](double x) { return 1 / x; }},
      {"Round", [](double x) { return std::nearbyint(x); }},
      {"Sqrt", [](double x) { return std::sqrt(x); }},
  };
  const auto found = kFunctions.find(op);
  return found == kFunctions.end() ? nullptr : found->second;
}

Function2 BinaryOf(const std::string& op) {
  static const std::map<std::string, Function2> kFunctions = {
      {"Add", [](double a, double b) { return a + b; }},
      {"And", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }},
      {"Div", [](double a, double b) { return a / b; }},
      {"Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
      {"Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
      {"GreaterOrEqual", [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
      {"Less", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
      {"LessOrEqual", [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
      {"Max", [](double a, double b) { return std::max(a, b); }},
      {"Min", [](double a, double b) { return std::min(a, b); }},
      {"Mod", [](double a, double b) { return a - b * std::floor(a / b); }},
      {"Mul", [](double a, double b) { return a * b; }},
      {"Or", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }},
      {"Pow", [](double a, double b) { return std::pow(a, b); }},
      {"Sub", [](double a, double b) { return a - b; }},
  };
  const auto found = kFunctions.find(op);
  return found == kFunctions.end() ? nullptr : found->second;
}

bool GivesBool(const std::string& op) {
  return op == "Equal" || op == "Greater" || op == "GreaterOrEqual" || op == "Less" ||
         op == "LessOrEqual" || op == "And" || op == "Or" || op == "Not";
}

bool IsView(const std::string& op) {
  return op == "Identity" || op == "Reshape" || op == "Flatten" || op == "Squeeze" ||
         op == "Unsqueeze" || op == "Dropout";
}

std::optional<OnnxData> Gather(const OnnxNode& node, const OnnxData& x, const OnnxData& indices,
                               OnnxBudget* budget) {
  const std::optional<std::size_t> axis = OnnxAxis(node.Int("axis", 0), x.dims.size());
  if (!axis) return std::nullopt;
  OnnxDims picks;
  for (const double value : indices.values) {
    std::int64_t pick = OnnxInteger(value);
    if (pick < 0) pick += x.dims[*axis];
    if (pick < 0 || pick >= x.dims[*axis]) return std::nullopt;
    picks.push_back(pick);
  }
  OnnxDims most = x.dims;
  most[*axis] = static_cast<std::int64_t>(picks.size());
  if (!Computable(most, budget)) return std::nullopt;
  OnnxData out = Pick(x, *axis, picks);
  const auto at = out.dims.begin() + static_cast<std::ptrdiff_t>(*axis);
  out.dims.insert(out.dims.erase(at), indices.dims.begin(), indices.dims.end());
  return FewOnnxElements(out.dims) ? std::optional(out) : std::nullopt;
}

std::optional<OnnxData> Concat(const OnnxNode& node, const Inputs& inputs, OnnxBudget* budget) {
  const std::optional<std::size_t> axis = OnnxAxis(node.Int("axis", 0), inputs[0]->dims.size());
  if (!axis) return std::nullopt;
  OnnxData out{inputs[0]->dims, {}, inputs[0]->integer};
  out.dims[*axis] = 0;
  for (const OnnxData* x : inputs) {
    if (x->dims.size() != out.dims.size()) return std::nullopt;
    for (std::size_t i = 0; i < out.dims.size(); ++i) {
      if (i != *axis && x->dims[i] != out.dims[i]) return std::nullopt;
    }
    out.dims[*axis] += x->dims[*axis];
  }
  const std::optional<std::size_t> elements = Computable(out.dims, budget);
  if (!elements) return std::nullopt;
  if (*elements == 0) return out;
  const std::int64_t before = Around(out.dims, *axis).before;
  for (std::int64_t b = 0; b < before; ++b) {
    for (const OnnxData* x : inputs) {
      const auto part = static_cast<std::ptrdiff_t>(x->values.size()) / before;
      const auto from = x->values.begin() + b * part;
      out.values.insert(out.values.end(), from, from + part);
    }
  }
  return out;
}

// Integers of an attribute or, in later opsets, of an input.
std::optional<OnnxDims> Parameter(const OnnxNode& node, const char* attribute, const Inputs& inputs,
                                  std::size_t slot) {
  if (node.Has(attribute)) return node.Ints(attribute);
  if (slot >= inputs.size() || inputs[slot] == nullptr) return std::nullopt;
  return OnnxIntegers(*inputs[slot]);
}

std::optional<OnnxData> Slice(const OnnxNode& node, const Inputs& inputs, OnnxBudget* budget) {
  const std::optional<OnnxDims> starts = Parameter(node, "starts", inputs, 1);
  const std::optional<OnnxDims> ends = Parameter(node, "ends", inputs, 2);
  const std::optional<OnnxDims> axes = Parameter(node, "axes", inputs, 3);
  const std::optional<OnnxDims> steps = Parameter(node, "steps", inputs, 4);
  if (!starts || !ends || starts->size() != ends->size()) return std::nullopt;
  if (starts->size() > inputs[0]->dims.size()) return std::nullopt;  // each axis once
  if ((axes && axes->size() != starts->size()) || (steps && steps->size() != starts->size())) {
    return std::nullopt;
  }
  OnnxData out = *inputs[0];
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const std::optional<std::size_t> axis =
        OnnxAxis(axes ? (*axes)[i] : static_cast<std::int64_t>(i), out.dims.size());
    const std::int64_t step = steps ? (*steps)[i] : 1;
    if (!axis || step == 0) return std::nullopt;
    const OnnxPicks taken = OnnxPicksOf(out.dims[*axis], (*starts)[i], (*ends)[i], step);
    if (!budget->Affords(out.values.size() + static_cast<std::size_t>(taken.count))) {
      return std::nullopt;
    }
    OnnxDims picks;
    for (std::int64_t k = 0; k < taken.count; ++k) picks.push_back(taken.first + k * taken.step);
    out = Pick(out, *axis, picks);
  }
  return out;
}

std::optional<OnnxData> Transpose(const OnnxNode& node, const OnnxData& x, OnnxBudget* budget) {
  const std::size_t rank = x.dims.size();
  if (!budget->Affords(rank * x.values.size())) return std::nullopt;
  OnnxDims order = node.Ints("perm");
  if (order.empty()) {
    for (std::size_t i = rank; i > 0; --i) order.push_back(static_cast<std::int64_t>(i) - 1);
  }
  OnnxDims sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<std::int64_t>(i)) return std::nullopt;
  }
  if (order.size() != rank) return std::nullopt;
  OnnxDims steps(rank, 1);
  for (std::size_t i = rank; i-- > 1;) steps[i - 1] = steps[i] * x.dims[i];
  OnnxData out{{}, std::vector<double>(x.values.size()), x.integer};
  for (const std::int64_t axis : order) out.dims.push_back(x.dims[static_cast<std::size_t>(axis)]);
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i);
    std::int64_t from = 0;
    for (std::size_t k = rank; k-- > 0;) {
      from += rest % out.dims[k] * steps[static_cast<std::size_t>(order[k])];
      rest /= out.dims[k];
    }
    out.values[i] = x.values[static_cast<std::size_t>(from)];
  }
  return out;
}

std::optional<OnnxData> Filled(const OnnxDims& dims, double value, bool integer,
                               OnnxBudget* budget) {
  const std::optional<std::size_t> elements = Computable(dims, budget);
  if (!elements) return std::nullopt;
  return OnnxData{dims, std::vector<double>(*elements, value), integer};
}

std::optional<OnnxData> ConstantOfShape(const OnnxNode& node, const OnnxData& shape,
                                        OnnxBudget* budget) {
  if (!node.Has("value")) return Filled(OnnxIntegers(shape), 0, /*integer=*/false, budget);
  const auto* value = node.Find<OnnxData>("value");
  if (value == nullptr || value->values.size() != 1) return std::nullopt;
  return Filled(OnnxIntegers(shape), value->values[0], value->integer, budget);
}

std::optional<OnnxData> Range(const Inputs& inputs, OnnxBudget* budget) {
  for (const OnnxData* x : inputs) {
    if (x->values.size() != 1) return std::nullopt;
  }
  const double start = inputs[0]->values[0];
  const double step = inputs[2]->values[0];
  const double count = std::ceil((inputs[1]->values[0] - start) / step);
  if (!(count >= 0 && count <= static_cast<double>(kMostKnownElements))) return std::nullopt;
  OnnxData out{{static_cast<std::int64_t>(count)}, {}, inputs[0]->integer};
  if (!Computable(out.dims, budget)) return std::nullopt;
  for (std::int64_t i = 0; i < out.dims[0]; ++i) {
    out.values.push_back(start + static_cast<double>(i) * step);
  }
  return out;
}

// Reduces all elements to one; `dims` is the shape of the result, which may keep the reduced axes.
std::optional<OnnxData> Reduce(const std::string& op, const OnnxData& x,
                               const std::optional<OnnxDims>& dims) {
  if (!dims || OnnxElements(*dims) != 1 || x.values.empty()) return std::nullopt;
  double result = x.values[0];
  for (std::size_t i = 1; i < x.values.size(); ++i) {
    const double value = x.values[i];
    if (op == "ReduceProd") {
      result *= value;
    } else if (op == "ReduceSum") {
      result += value;
    } else if (op == "ReduceMax") {
      result = std::max(result, value);
    } else {
      result = std::min(result, value);
    }
  }
  return OnnxData{*dims, {result}, x.integer};
}

std::optional<OnnxData> Cast(const OnnxNode& node, const OnnxData& x) {
  // TensorProto.DataType: float, float16, double and bfloat16 are not integers.
  const std::int64_t to = node.Int("to", 0);
  OnnxData out = x;
  out.integer = to != 1 && to != 10 && to != 11 && to != 16;
  constexpr std::int64_t kBool = 9;
  for (double& value : out.values) {
    if (to == kBool) {
      value = value != 0 ? 1 : 0;
    } else if (out.integer) {
      value = std::trunc(value);
    }
  }
  return out;
}

}  // namespace

std::int64_t OnnxInteger(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  if (value <= -0x1p63) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

OnnxDims OnnxIntegers(const OnnxData& data) {
  OnnxDims integers;
  for (const double value : data.values) integers.push_back(OnnxInteger(value));
  return integers;
}

std::optional<std::size_t> OnnxAxis(std::int64_t axis, std::size_t rank) {
  if (axis < 0) axis += static_cast<std::int64_t>(rank);
  if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) return std::nullopt;
  return static_cast<std::size_t>(axis);
}

bool BroadcastOnnx(const OnnxDims& own, OnnxDims* dims) {
  if (own.size() > dims->size()) dims->insert(dims->begin(), own.size() - dims->size(), 1);
  const std::size_t before = dims->size() - own.size();
  for (std::size_t i = 0; i < own.size(); ++i) {
    std::int64_t& length = (*dims)[before + i];
    if (length == 1) {
      length = own[i];
    } else if (own[i] != 1 && own[i] != length) {
      return false;
    }
  }
  return true;
}

std::optional<std::size_t> FewOnnxElements(const OnnxDims& dims) {
  // A length of 0 makes no tensor small whose other lengths somebody may count to.
  OnnxDims counted = dims;
  for (std::int64_t& length : counted) {
    if (length == 0) length = 1;
  }
  const std::optional<std::int64_t> most = OnnxElements(counted);
  if (!most || *most > kMostKnownElements) return std::nullopt;
  return static_cast<std::size_t>(*OnnxElements(dims));
}

OnnxPicks OnnxPicksOf(std::int64_t length, std::int64_t start, std::int64_t end,
                      std::int64_t step) {
  if (length == 0) return {};
  const bool backwards = step < 0;
  // Backwards, a slice ends before its first element: at -1.
  const std::int64_t least = backwards ? -1 : 0;
  const std::int64_t most = backwards ? length - 1 : length;
  const auto place = [&](std::int64_t at) {
    return std::clamp(at < 0 ? std::max<std::int64_t>(at, -length - 1) + length : at, least, most);
  };
  const std::int64_t first = std::max<std::int64_t>(0, place(start));
  const std::int64_t distance = backwards ? first - place(end) : place(end) - first;
  step = std::clamp(step, -kMostTensorElements, kMostTensorElements);
  return {first, step, distance > 0 ? (distance - 1) / std::abs(step) + 1 : 0};
}

std::optional<OnnxData> ComputeOnnxConstant(const OnnxNode& node, const Inputs& inputs,
                                            const std::optional<OnnxDims>& dims,
                                            OnnxBudget* budget) {
  const std::string& op = node.op;
  if (!IsKnown(inputs, 1)) return std::nullopt;
  const OnnxData& x = *inputs[0];
  std::size_t read = 0;
  for (const OnnxData* input : inputs) read += input == nullptr ? 0 : input->values.size();
  if (!budget->Affords(read)) return std::nullopt;
  if (IsView(op)) {
    if (!dims || FewOnnxElements(*dims) != x.values.size()) return std::nullopt;
    return OnnxData{*dims, x.values, x.integer};
  }
  if (op == "Cast") return Cast(node, x);
  if (op == "Gather" && IsKnown(inputs, 2)) return Gather(node, x, *inputs[1], budget);
  if (op == "Concat" && IsKnown(inputs, inputs.size())) return Concat(node, inputs, budget);
  if (op == "Slice" && IsKnown(inputs, inputs.size())) return Slice(node, inputs, budget);
  if (op == "Transpose") return Transpose(node, x, budget);
  if (op == "ConstantOfShape") return ConstantOfShape(node, x, budget);
  if (op == "Range" && inputs.size() == 3 && IsKnown(inputs, 3)) return Range(inputs, budget);
  if (op == "ReduceProd" || op == "ReduceSum" || op == "ReduceMax" || op == "ReduceMin") {
    return Reduce(op, x, dims);
  }
  if (op == "Where" && inputs.size() == 3 && IsKnown(inputs, 3)) {
    return Elementwise(inputs, inputs[1]->integer, budget,
                       [](const std::vector<double>& v) { return v[0] != 0 ? v[1] : v[2]; });
  }
  if (op == "Expand" && IsKnown(inputs, 2)) {
    const std::optional<OnnxData> zeros = Filled(OnnxIntegers(*inputs[1]), 0, x.integer, budget);
    if (!zeros) return std::nullopt;
    return Elementwise({&x, &*zeros}, x.integer, budget,
                       [](const std::vector<double>& v) { return v[0]; });
  }
  if (const Function1 f = UnaryOf(op)) {
    return Elementwise({&x}, x.integer || GivesBool(op), budget,
                       [f](const std::vector<double>& v) { return f(v[0]); });
  }
  if (const Function2 f = BinaryOf(op); f != nullptr && IsKnown(inputs, inputs.size())) {
    const bool integer = x.integer || GivesBool(op);
    const bool divides = x.integer && (op == "Div" || op == "Mod");
    if (divides && inputs.size() == 2) {
      const std::vector<double>& divisors = inputs[1]->values;
      if (std::count(divisors.begin(), divisors.end(), 0.0) > 0) return std::nullopt;
    }
    return Elementwise(inputs, integer, budget, [&](const std::vector<double>& v) {
      double result = v[0];
      for (std::size_t i = 1; i < v.size(); ++i) result = f(result, v[i]);
      return divides ? std::trunc(result) : result;
    });
  }
  return std::nullopt;
}

}  // namespace stepcast
