// Operations as text: what is written is read again, and what cannot be meant is refused.
#include "data/values/operation_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "data/io/workload_file.h"
#include "data/workloads/catalog.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

const InputPlace kPlace{"net.yaml", 7, "operation"};

Operation Parse(const std::string& text) { return ParseOperation(text, kPlace); }

std::optional<InputError> Refusal(const std::string& text) {
  return ErrorOf([&] { Parse(text); });
}

// ---- By hand.

TEST(OperationText, AsTheHeaderWritesThem) {
  ConvolutionOp convolution;
  convolution.channels = 64;
  convolution.input = {56, 56};
  convolution.filters = 128;
  convolution.kernel = {3, 3};
  convolution.stride = {2, 2};
  convolution.padding = {1, 1, 1, 1};
  const std::string text =
      "convolution channels=64 input=56x56 filters=128 kernel=3x3 stride=2x2 padding=1,1,1,1";
  EXPECT_EQ(FormatOperation(convolution), text);
  EXPECT_EQ(Parse(text), Operation(convolution));
  EXPECT_EQ(FormatOperation(DenseOp{1, 512, 1000, true}), "dense inputs=512 units=1000 bias=yes");
  EXPECT_EQ(Parse("dense inputs=512 units=1000 bias=yes"), Operation(DenseOp{1, 512, 1000, true}));
}

// What kind of an operation it is stands there always; a length of one does not.
TEST(OperationText, OneOfEach) {
  const struct {
    Operation operation;
    const char* text;
  } cases[] = {
      {ConvolutionOp{}, "convolution"},
      {DenseOp{1, 3, 1, false, false}, "dense inputs=3 input_gradient=no"},
      {BatchedProductOp{12, 384, 384, 64},
       "batched_product count=12 rows=384 columns=384 depth=64"},
      {NormalizationOp{NormalizationKind::kLayer, 768, {384, 1}},
       "normalization kind=layer channels=768 input=384x1"},
      {NormalizationOp{NormalizationKind::kBatch, 64, {1, 56}},
       "normalization kind=batch channels=64 input=1x56"},
      {ActivationOp{Function::kSoftmax, 4608, 384},
       "activation function=softmax rows=4608 columns=384"},
      {ActivationOp{}, "activation function=relu"},
      {PoolingOp{PoolingKind::kMax, 64, {112, 112}, {3, 3}, {2, 2}, {0, 1, 2, 3}},
       "pooling kind=max channels=64 input=112x112 window=3x3 stride=2x2 padding=0,1,2,3"},
      {PoolingOp{PoolingKind::kAverage, 8, {7, 7}, {7, 7}, {1, 1}, {}},
       "pooling kind=average channels=8 input=7x7 window=7x7"},
      {ElementwiseOp{ElementwiseKind::kMultiply, 32, 49, true},
       "elementwise kind=multiply channels=32 positions=49 broadcast=yes"},
      {ElementwiseOp{}, "elementwise kind=add"},
      {EmbeddingOp{30522, 768, 384}, "embedding rows=30522 features=768 tokens=384"},
      {RecurrentOp{RecurrentCell::kGru, 501, 672, 800, 2},
       "recurrent cell=gru positions=501 inputs=672 hidden=800 directions=2"},
      {RecurrentOp{}, "recurrent cell=lstm"},
      {CopyOp{150528}, "copy elements=150528"},
      {UpdateOp{Optimizer::kAdam, 1000}, "update optimizer=adam parameters=1000"},
      {UpdateOp{}, "update optimizer=momentum"},
      {AllocateOp{4096}, "allocate elements=4096"},
  };
  std::set<std::size_t> seen;
  for (const auto& c : cases) {
    EXPECT_EQ(FormatOperation(c.operation), c.text);
    EXPECT_EQ(Parse(c.text), c.operation) << c.text;
    seen.insert(c.operation.index());
  }
  EXPECT_EQ(seen.size(), std::variant_size_v<Operation> - 1) << "all but the unstated";
}

TEST(OperationText, AnUnstatedOneIsEmpty) { EXPECT_EQ(FormatOperation({}), ""); }

TEST(OperationText, OrderAndSpacesDoNotMatter) {
  const Operation dense = DenseOp{5, 3, 2};
  for (const char* text :
       {"dense positions=5 inputs=3 units=2", "dense units=2 positions=5 inputs=3",
        "  dense   units=2  inputs=3 positions=5 ",
        "dense units=2 inputs=3 positions=5 bias=no input_gradient=yes"}) {
    EXPECT_EQ(Parse(text), dense) << text;
  }
}

TEST(OperationText, EveryNamedValue) {
  for (const char* function : kFunctionNames) {
    const std::string text = std::string("activation function=") + function;
    EXPECT_EQ(FormatOperation(Parse(text)), text);
  }
  for (const char* optimizer : kOptimizerNames) {
    const std::string text = std::string("update optimizer=") + optimizer;
    EXPECT_EQ(FormatOperation(Parse(text)), text);
  }
}

TEST(OperationText, TheLargestLengths) {
  EXPECT_EQ(Parse("dense inputs=2000000 units=2000000"),
            Operation(DenseOp{1, 2'000'000, 2'000'000}));
  EXPECT_EQ(Parse("copy elements=1000000000000"), Operation(CopyOp{1'000'000'000'000}));
}

// ---- Round trips.

TEST(OperationText, EveryOperationOfTheCatalogueRoundTrips) {
  std::set<std::string> texts;
  for (const std::string& name : WorkloadNames()) {
    const Workload workload = *FindWorkload(name);
    for (const Layer& layer : workload.layers) {
      ASSERT_NE(layer.operation.index(), 0U) << name << ": " << layer.name;
      const std::string text = FormatOperation(layer.operation);
      texts.insert(text);
      EXPECT_EQ(Parse(text), layer.operation) << name << ": " << layer.name << ": " << text;
    }
  }
  EXPECT_GT(texts.size(), 500U);
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  // Both ends included, small ones as often as large ones.
  std::int64_t Length(std::int64_t low, std::int64_t high) {
    const double top = std::log2(static_cast<double>(high - low) + 2);
    const double exponent = std::uniform_real_distribution<double>(0, top)(engine_);
    return std::min(high, low - 1 + static_cast<std::int64_t>(std::exp2(exponent)));
  }
  std::int64_t Long() { return Length(1, 2'000'000); }
  std::int64_t Elements() { return Length(1, 1'000'000'000'000); }
  Lengths2 Pair(std::int64_t high = 2'000'000) { return {Length(1, high), Length(1, high)}; }
  Zeros2 Zeros() {
    return {Length(0, 9), Length(0, 2'000'000), Length(0, 2'000'000), Length(0, 9)};
  }
  bool Yes() { return Length(0, 1) == 1; }
  template <class E>
  E One(int count) {
    return static_cast<E>(std::uniform_int_distribution<int>(0, count - 1)(engine_));
  }

  Operation Any() {
    switch (std::uniform_int_distribution<int>(1, 11)(engine_)) {
      case 1: {
        ConvolutionOp o;
        o.groups = Length(1, 1000);
        o.channels = o.groups * Length(1, 1000);
        o.filters = o.groups * Length(1, 1000);
        o.input = Pair();
        o.padding = Zeros();
        o.stride = Pair();
        const std::int64_t rows = o.input.height + o.padding.top + o.padding.bottom;
        const std::int64_t columns = o.input.width + o.padding.left + o.padding.right;
        o.kernel = {Length(1, std::min<std::int64_t>(rows, 2'000'000)),
                    Length(1, std::min<std::int64_t>(columns, 2'000'000))};
        if (o.kernel.height > 1) o.dilation.height = Length(1, (rows - 1) / (o.kernel.height - 1));
        if (o.kernel.width > 1) o.dilation.width = Length(1, (columns - 1) / (o.kernel.width - 1));
        o.dilation.height = std::min<std::int64_t>(o.dilation.height, 2'000'000);
        o.dilation.width = std::min<std::int64_t>(o.dilation.width, 2'000'000);
        o.bias = Yes();
        o.input_gradient = Yes();
        return o;
      }
      case 2:
        return DenseOp{Long(), Long(), Long(), Yes(), Yes()};
      case 3:
        return BatchedProductOp{Long(), Long(), Long(), Long()};
      case 4:
        return NormalizationOp{One<NormalizationKind>(2), Long(), Pair()};
      case 5:
        return ActivationOp{One<Function>(kFunctionCount), Elements(), Elements()};
      case 6: {
        PoolingOp o{One<PoolingKind>(2), Long(), Pair(), {}, Pair(), Zeros()};
        o.window = {Length(1, std::min<std::int64_t>(o.input.height + o.padding.top, 2'000'000)),
                    Length(1, std::min<std::int64_t>(o.input.width + o.padding.right, 2'000'000))};
        return o;
      }
      case 7:
        return ElementwiseOp{One<ElementwiseKind>(2), Long(), Elements(), Yes()};
      case 8:
        return EmbeddingOp{Elements(), Long(), Long()};
      case 9:
        return RecurrentOp{One<RecurrentCell>(2), Long(), Long(), Long(), Length(1, 2)};
      case 10:
        return CopyOp{Elements()};
      default:
        return UpdateOp{One<Optimizer>(kOptimizerCount), Elements()};
    }
  }

 private:
  std::mt19937_64 engine_;
};

RC_GTEST_PROP(OperationTextProperty, RoundTripsInAnyOrder, (std::uint64_t seed)) {
  Draw draw(seed);
  for (int i = 0; i < 20; ++i) {
    const Operation operation = draw.Any();
    const std::string text = FormatOperation(operation);
    RC_ASSERT(Parse(text) == operation);
    RC_ASSERT(FormatOperation(Parse(text)) == text);
    std::vector<std::string> words;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) words.push_back(word);
    std::reverse(words.begin() + 1, words.end());
    std::string reversed;
    for (const std::string& word : words) reversed += word + " ";
    RC_ASSERT(Parse(reversed) == operation);
  }
}

// Different operations have different texts: files tell them apart.
RC_GTEST_PROP(OperationTextProperty, TellsOperationsApart, (std::uint64_t seed)) {
  Draw draw(seed);
  const Operation a = draw.Any();
  const Operation b = draw.Any();
  RC_ASSERT((a == b) == (FormatOperation(a) == FormatOperation(b)));
}

// A text with one character changed, lost or doubled is an operation or an InputError.
RC_GTEST_PROP(OperationTextProperty, AnythingElseIsAnInputError, (std::uint64_t seed)) {
  Draw draw(seed);
  constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz_=x,0123456789 -.+\t\n\0\xff";
  const std::string alphabet(kAlphabet, sizeof kAlphabet - 1);
  for (int i = 0; i < 20; ++i) {
    std::string text = FormatOperation(draw.Any());
    for (std::int64_t edits = draw.Length(1, 4); edits > 0; --edits) {
      const auto at =
          static_cast<std::size_t>(draw.Length(0, static_cast<std::int64_t>(text.size()) - 1));
      const char c = alphabet[static_cast<std::size_t>(draw.Length(0, std::ssize(alphabet) - 1))];
      switch (draw.Length(0, 2)) {
        case 0:
          text[at] = c;
          break;
        case 1:
          text.insert(at, 1, c);
          break;
        default:
          if (text.size() > 1) text.erase(at, 1);
      }
    }
    try {
      const Operation operation = Parse(text);
      RC_ASSERT(Parse(FormatOperation(operation)) == operation);
    } catch (const InputError& error) {
      RC_ASSERT(!error.problem().empty());
      RC_ASSERT(std::string(error.what()).find("net.yaml:7: ") == 0);
    }
  }
}

// ---- Refusals.

TEST(OperationText, Refusals) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"", "net.yaml:7: operation: is empty; allowed: an operation"},
      {"   ", "operation: '   ' is empty"},
      {"conv", "'conv' is not an operation; allowed: convolution, dense, batched_product, "},
      {"Dense", "'Dense' is not an operation"},
      {"inputs=3", "'inputs=3' is not an operation"},
      {"dense units", "is empty; allowed: a whole number from 1 to 2000000"},
      {"dense units=", "is empty; allowed: a whole number from 1 to 2000000"},
      {"dense units=0", "'0' is out of range; allowed: a whole number from 1 to 2000000"},
      {"dense units=-1", "'-1' is out of range"},
      {"dense units=2000001", "'2000001' is out of range"},
      {"dense units=99999999999999999999", "'99999999999999999999' is out of range"},
      {"dense units=1.5", "'1.5' is not a whole number"},
      {"dense units=1e3", "'1e3' is not a whole number"},
      {"dense units=five", "'five' is not a whole number"},
      {"dense units=5 units=5", "'units' is given twice; allowed: once"},
      {"dense width=5",
       "'width' is no length of this operation; allowed: positions, inputs, units, bias, "
       "input_gradient"},
      {"dense =5", "is no length of this operation"},
      {"dense units==5", "'=5' is not a whole number"},
      {"dense bias=true", "'true' is neither; allowed: yes, no"},
      {"dense bias", "is neither; allowed: yes, no"},
      {"convolution kernel=3", "'3' is not two lengths; allowed: e.g. 3x3"},
      {"convolution kernel=3x3x3", "'3x3x3' is not two lengths"},
      {"convolution kernel=3,3", "'3,3' is not two lengths"},
      {"convolution kernel=3x", "is empty; allowed: a whole number"},
      {"convolution kernel=0x3", "'0' is out of range"},
      {"convolution input=2x2 kernel=3x1",
       "'3x1' is a window larger than the input; allowed: at most the input with its padding"},
      {"convolution input=9x9 kernel=3x3 dilation=1x5", "'3x11' is a window larger than the input"},
      {"convolution input=9x9 kernel=3x3 dilation=5x1", "'11x3' is a window larger than the input"},
      {"convolution input=2x2 padding=1,0,0,0 kernel=4x2", "'4x2' is a window larger"},
      {"convolution padding=1,1", "'1,1' is not four numbers of zeros; allowed: e.g. 1,1,1,1"},
      {"convolution padding=1,1,1,1,1", "is not four numbers of zeros"},
      {"convolution padding=1,1,-1,1", "'-1' is out of range; allowed: a whole number from 0"},
      {"convolution channels=6 filters=4 groups=3",
       "'3' is a number of groups that does not divide; allowed: a divisor of channels and "
       "filters"},
      {"convolution channels=4 filters=6 groups=3", "'3' is a number of groups"},
      {"convolution channels=4 filters=4 groups=8", "'8' is a number of groups"},
      {"pooling window=2x1", "'2x1' is a window larger than the input"},
      {"pooling kind=median", "'median' is not one of them; allowed: max, average"},
      {"normalization kind=group", "'group' is not one of them; allowed: batch, layer"},
      {"elementwise kind=divide", "'divide' is not one of them; allowed: add, multiply"},
      {"recurrent cell=rnn", "'rnn' is not one of them; allowed: lstm, gru"},
      {"recurrent directions=3", "'3' are too many directions; allowed: 1, 2"},
      {"activation function=selu", "'selu' is not one of them; allowed: relu, relu6, leaky_relu"},
      {"activation function", "is not one of them"},
      {"update optimizer=lamb", "'lamb' is not one of them; allowed: sgd, momentum, adam"},
      {"copy elements=10000000000001", "'10000000000001' is out of range"},
      {"copy elements=0", "'0' is out of range"},
      {"embedding features=2000001", "'2000001' is out of range"},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(Says(Refusal(c.text), c.says)) << c.text;
    EXPECT_TRUE(Says(Refusal(c.text), "net.yaml:7: ")) << c.text;
  }
}

// The operation that is wrong is named beside the value.
TEST(OperationText, ARefusalQuotesTheOperation) {
  EXPECT_TRUE(
      Says(Refusal("dense inputs=3 units=0"), "dense inputs=3 units=0: '0' is out of range"));
}

// An error is one readable line, however long the text.
TEST(OperationText, ARefusalOfALongTextIsShort) {
  for (const std::string& text :
       {"dense units=" + std::string(100'000, '9'), std::string(100'000, 'x'),
        "dense " + std::string(100'000, 'y') + "=1", "copy" + std::string(100'000, ' ') + "a=b"}) {
    const std::optional<InputError> error = Refusal(text);
    ASSERT_TRUE(error.has_value());
    EXPECT_LT(std::string(error->what()).size(), 1000U);
  }
}

// ---- In workload files.

TEST(OperationText, WorkloadFilesKeepTheCataloguesOperations) {
  for (const std::string& name : WorkloadNames()) {
    const Workload workload = *FindWorkload(name);
    const Workload read = ParseWorkload(FormatWorkload(workload), "net.yaml");
    ASSERT_EQ(read.layers.size(), workload.layers.size()) << name;
    for (std::size_t i = 0; i < read.layers.size(); ++i) {
      EXPECT_EQ(read.layers[i].operation, workload.layers[i].operation)
          << name << ": " << workload.layers[i].name;
    }
  }
}

TEST(OperationText, AWorkloadFileNeedNotStateThem) {
  const Workload workload = ParseWorkload(R"(name: mine
layers:
  - {kind: dense, tensors: [6], operation: "dense inputs=3 units=2"}
  - kind: activation
)",
                                          "net.yaml");
  ASSERT_EQ(workload.layers.size(), 2U);
  EXPECT_EQ(workload.layers[0].operation, Operation(DenseOp{1, 3, 2}));
  EXPECT_EQ(workload.layers[1].operation, Operation());
  EXPECT_EQ(FormatWorkload(workload).find("operation"),
            FormatWorkload(workload).rfind("operation"));
}

TEST(OperationText, AWorkloadFileIsRefusedWithItsLine) {
  const auto refusal = [](const std::string& operation) {
    return ErrorOf([&] {
      ParseWorkload("name: mine\nlayers:\n  - kind: dense\n    tensors: [6]\n    operation: " +
                        operation + "\n",
                    "net.yaml");
    });
  };
  EXPECT_TRUE(Says(refusal("dense inputs=0"), "net.yaml:5: "));
  EXPECT_TRUE(Says(refusal("dense inputs=0"), "'0' is out of range"));
  EXPECT_TRUE(Says(refusal("softmax"), "net.yaml:5: "));
  EXPECT_TRUE(Says(refusal("softmax"), "'softmax' is not an operation"));
  EXPECT_TRUE(Says(refusal("\"\""), "net.yaml:5: layers[0].operation: is empty"));
  EXPECT_TRUE(Says(refusal("[dense]"), "net.yaml:5: layers[0].operation: "));
}

// An update is what the optimizer does to a layer; no layer is one.
TEST(OperationText, AnUpdateIsNoLayer) {
  EXPECT_TRUE(Says(ErrorOf([] {
                     ParseWorkload(
                         "name: mine\nlayers:\n  - kind: elementwise\n    tensors: [6]\n"
                         "    operation: update optimizer=sgd parameters=6\n",
                         "net.yaml");
                   }),
                   "net.yaml:5: "));
}

}  // namespace
}  // namespace stepcast
