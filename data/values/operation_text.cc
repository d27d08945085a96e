#include "data/values/operation_text.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/size_limits.h"

namespace stepcast {
namespace {

// Longer than any layer's length, and small enough that products of three stay exact in 64 bits.
constexpr std::int64_t kLongest = 2'000'000;

constexpr const char* kNormalizationNames[] = {"batch", "layer"};
constexpr const char* kPoolingNames[] = {"max", "average"};
constexpr const char* kElementwiseNames[] = {"add", "multiply"};
constexpr const char* kCellNames[] = {"lstm", "gru"};

// In the order of the variant's alternatives.
constexpr const char* kOperationNames[] = {
    "",           "convolution", "dense",       "batched_product", "normalization",
    "activation", "pooling",     "elementwise", "embedding",       "recurrent",
    "copy",       "update",      "allocate"};
static_assert(std::size(kOperationNames) == std::variant_size_v<Operation>);

// A value of a fixed list of names.
template <class E>
struct Named {
  E* value;
  std::span<const char* const> names;
};
template <class E, std::size_t N>
Named<E> Among(E& value, const char* const (&names)[N]) {
  return {&value, names};
}
// A count that may be as large as a whole tensor.
struct Elements {
  std::int64_t* value;
};

// ---- Every field of every operation, once: what is written and what is read.

template <class V>
void Fields(ConvolutionOp& o, V visit) {
  visit("channels", &o.channels);
  visit("input", &o.input);
  visit("filters", &o.filters);
  visit("kernel", &o.kernel);
  visit("stride", &o.stride);
  visit("dilation", &o.dilation);
  visit("padding", &o.padding);
  visit("groups", &o.groups);
  visit("bias", &o.bias);
  visit("input_gradient", &o.input_gradient);
}
template <class V>
void Fields(DenseOp& o, V visit) {
  visit("positions", &o.positions);
  visit("inputs", &o.inputs);
  visit("units", &o.units);
  visit("bias", &o.bias);
  visit("input_gradient", &o.input_gradient);
}
template <class V>
void Fields(BatchedProductOp& o, V visit) {
  visit("count", &o.count);
  visit("rows", &o.rows);
  visit("columns", &o.columns);
  visit("depth", &o.depth);
}
template <class V>
void Fields(NormalizationOp& o, V visit) {
  visit("kind", Among(o.kind, kNormalizationNames));
  visit("channels", &o.channels);
  visit("input", &o.input);
}
template <class V>
void Fields(ActivationOp& o, V visit) {
  visit("function", Among(o.function, kFunctionNames));
  visit("rows", Elements{&o.rows});
  visit("columns", Elements{&o.columns});
}
template <class V>
void Fields(PoolingOp& o, V visit) {
  visit("kind", Among(o.kind, kPoolingNames));
  visit("channels", &o.channels);
  visit("input", &o.input);
  visit("window", &o.window);
  visit("stride", &o.stride);
  visit("padding", &o.padding);
}
template <class V>
void Fields(ElementwiseOp& o, V visit) {
  visit("kind", Among(o.kind, kElementwiseNames));
  visit("channels", &o.channels);
  visit("positions", Elements{&o.positions});
  visit("broadcast", &o.broadcast);
}
template <class V>
void Fields(EmbeddingOp& o, V visit) {
  visit("rows", Elements{&o.rows});
  visit("features", &o.features);
  visit("tokens", &o.tokens);
}
template <class V>
void Fields(RecurrentOp& o, V visit) {
  visit("cell", Among(o.cell, kCellNames));
  visit("positions", &o.positions);
  visit("inputs", &o.inputs);
  visit("hidden", &o.hidden);
  visit("directions", &o.directions);
}
template <class V>
void Fields(CopyOp& o, V visit) {
  visit("elements", Elements{&o.elements});
}
template <class V>
void Fields(UpdateOp& o, V visit) {
  visit("optimizer", Among(o.optimizer, kOptimizerNames));
  visit("parameters", Elements{&o.parameters});
}
template <class V>
void Fields(AllocateOp& o, V visit) {
  visit("elements", Elements{&o.elements});
}
template <class V>
void Fields(std::monostate&, V) {}

// ---- Writing.

std::string TextOf(const std::int64_t* v) { return fmt::format("{}", *v); }
std::string TextOf(const Elements& v) { return fmt::format("{}", *v.value); }
std::string TextOf(const Lengths2* v) { return fmt::format("{}x{}", v->height, v->width); }
std::string TextOf(const Zeros2* v) {
  return fmt::format("{},{},{},{}", v->top, v->left, v->bottom, v->right);
}
std::string TextOf(const bool* v) { return *v ? "yes" : "no"; }
template <class E>
std::string TextOf(const Named<E>& v) {
  return v.names[static_cast<std::size_t>(*v.value)];
}

// The text always names the kind of the operation; lengths stand in it unless they are the default.
template <class V>
constexpr bool kAlwaysWritten = false;
template <class E>
constexpr bool kAlwaysWritten<Named<E>> = true;

struct FieldText {
  std::string key;
  std::string value;
  bool always = false;
};

template <class Op>
std::vector<FieldText> Texts(Op op) {
  std::vector<FieldText> texts;
  Fields(op, [&](const char* key, const auto& value) {
    texts.push_back({key, TextOf(value), kAlwaysWritten<std::decay_t<decltype(value)>>});
  });
  return texts;
}

// ---- Reading.

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(separator, from), text.size());
    parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

class Reader {
 public:
  Reader(std::string_view text, InputPlace place) : place_(std::move(place)) {
    constexpr std::size_t kLongestQuote = 200;  // an error is one readable line
    place_.key = text.substr(0, kLongestQuote);
    if (text.size() > kLongestQuote) place_.key += "...";
  }

  void Take(std::int64_t* v, std::string_view text, std::int64_t low = 1,
            std::int64_t high = kLongest) const {
    *v = ParseLongInteger(text, place_, low, high);
  }
  void Take(const Elements& v, std::string_view text) const {
    Take(v.value, text, 1, kMostOperationElements);
  }
  void Take(Lengths2* v, std::string_view text) const {
    const std::vector<std::string_view> parts = Split(text, 'x');
    if (parts.size() != 2) throw Wrong(text, "is not two lengths", "e.g. 3x3");
    Take(&v->height, parts[0]);
    Take(&v->width, parts[1]);
  }
  void Take(Zeros2* v, std::string_view text) const {
    const std::vector<std::string_view> parts = Split(text, ',');
    if (parts.size() != 4) throw Wrong(text, "is not four numbers of zeros", "e.g. 1,1,1,1");
    std::int64_t* const sides[] = {&v->top, &v->left, &v->bottom, &v->right};
    for (std::size_t i = 0; i < 4; ++i) Take(sides[i], parts[i], 0);
  }
  void Take(bool* v, std::string_view text) const {
    if (text != "yes" && text != "no") throw Wrong(text, "is neither", "yes, no");
    *v = text == "yes";
  }
  template <class E>
  void Take(const Named<E>& v, std::string_view text) const {
    const std::optional<int> found = FindName(text, v.names);
    if (!found) throw Wrong(text, "is not one of them", JoinNames(v.names));
    *v.value = static_cast<E>(*found);
  }

  InputError Wrong(std::string_view value, const char* problem, const std::string& allowed) const {
    return {place_, std::string(value), problem, allowed};
  }

 private:
  InputPlace place_;
};

template <class Op>
void TakeFields(Op* op, const std::vector<std::string_view>& words, const Reader& reader) {
  std::vector<std::string_view> seen;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = std::min(words[i].find('='), words[i].size());
    const std::string_view key = words[i].substr(0, equals);
    const std::string_view value = words[i].substr(std::min(equals + 1, words[i].size()));
    for (const std::string_view other : seen) {
      if (other == key) throw reader.Wrong(key, "is given twice", "once");
    }
    seen.push_back(key);
    bool known = false;
    std::string keys;
    Fields(*op, [&](const char* name, const auto& target) {
      keys += (keys.empty() ? "" : ", ") + std::string(name);
      if (key != name) return;
      known = true;
      reader.Take(target, value);
    });
    if (!known) throw reader.Wrong(key, "is no length of this operation", keys);
  }
}

// ---- Lengths that must fit each other.

void RequireWindowFits(const Lengths2& input, const Zeros2& zeros, std::int64_t height,
                       std::int64_t width, const Reader& reader) {
  if (height <= input.height + zeros.top + zeros.bottom &&
      width <= input.width + zeros.left + zeros.right) {
    return;
  }
  throw reader.Wrong(fmt::format("{}x{}", height, width), "is a window larger than the input",
                     "at most the input with its padding");
}

void Check(const ConvolutionOp& o, const Reader& reader) {
  if (o.channels % o.groups != 0 || o.filters % o.groups != 0) {
    throw reader.Wrong(fmt::format("{}", o.groups), "is a number of groups that does not divide",
                       "a divisor of channels and filters");
  }
  RequireWindowFits(o.input, o.padding, o.dilation.height * (o.kernel.height - 1) + 1,
                    o.dilation.width * (o.kernel.width - 1) + 1, reader);
}
void Check(const PoolingOp& o, const Reader& reader) {
  RequireWindowFits(o.input, o.padding, o.window.height, o.window.width, reader);
}
void Check(const RecurrentOp& o, const Reader& reader) {
  if (o.directions > 2) {
    throw reader.Wrong(fmt::format("{}", o.directions), "are too many directions", "1, 2");
  }
}
template <class Op>
void Check(const Op&, const Reader&) {}

template <std::size_t I = 1>
Operation ParseNamed(const std::vector<std::string_view>& words, const Reader& reader) {
  if constexpr (I == std::variant_size_v<Operation>) {
    throw reader.Wrong(words.front(), "is not an operation",
                       JoinNames(std::span(kOperationNames).subspan(1)));
  } else {
    if (words.front() != kOperationNames[I]) return ParseNamed<I + 1>(words, reader);
    std::variant_alternative_t<I, Operation> op;
    TakeFields(&op, words, reader);
    Check(op, reader);
    return op;
  }
}

}  // namespace

std::string FormatOperation(const Operation& operation) {
  return std::visit(
      [&](const auto& op) {
        std::string text = kOperationNames[operation.index()];
        const auto defaults = Texts(std::decay_t<decltype(op)>());
        const auto values = Texts(op);
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (!values[i].always && values[i].value == defaults[i].value) continue;
          text += " " + values[i].key + "=" + values[i].value;
        }
        return text;
      },
      operation);
}

Operation ParseOperation(std::string_view text, const InputPlace& place) {
  std::vector<std::string_view> words;
  for (const std::string_view word : Split(text, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  const Reader reader(text, place);
  if (words.empty()) throw InputError(place, std::string(text), "is empty", "an operation");
  return ParseNamed(words, reader);
}

}  // namespace stepcast
