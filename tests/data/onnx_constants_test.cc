// What a graph computes of its own small tensors, an operator at a time and by hand.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/onnx/constants.h"

namespace stepcast {
namespace {

using Attributes = std::map<std::string, OnnxAttribute>;
using Values = std::vector<double>;

// Integers in a row, and real numbers.
OnnxData Row(Values values) {
  return {{static_cast<std::int64_t>(values.size())}, std::move(values), true};
}
OnnxData Reals(Values values) {
  return {{static_cast<std::int64_t>(values.size())}, std::move(values), false};
}
OnnxData Tensor(OnnxDims dims, Values values) { return {std::move(dims), std::move(values), true}; }

// "2x3: 1 2 3 4 5 6", "2: 0.5 1 real"; "-" where nothing is computed.
std::string Text(const std::optional<OnnxData>& data) {
  if (!data) return "-";
  std::string text = fmt::format("{}:", fmt::join(data->dims, "x"));
  for (const double value : data->values) text += fmt::format(" {:g}", value);
  return text + (data->integer ? "" : " real");
}

std::string Computed(const std::string& op, const std::vector<OnnxData>& inputs,
                     const Attributes& attributes = {},
                     const std::optional<OnnxDims>& dims = std::nullopt) {
  OnnxNode node;
  node.op = op;
  node.attributes = attributes;
  std::vector<const OnnxData*> pointers;
  for (const OnnxData& input : inputs) pointers.push_back(&input);
  OnnxBudget budget;
  return Text(ComputeOnnxConstant(node, pointers, dims, &budget));
}

TEST(OnnxConstants, FunctionsOfOneNumber) {
  const struct {
    const char* op;
    Values of;
    const char* is;
  } cases[] = {{"Abs", {-1.5, 0.5, 4}, "3: 1.5 0.5 4 real"},
               {"Ceil", {-1.5, 0.5, 4}, "3: -1 1 4 real"},
               {"Floor", {-1.5, 0.5, 4}, "3: -2 0 4 real"},
               {"Neg", {-1.5, 0.5, 4}, "3: 1.5 -0.5 -4 real"},
               {"Round", {-1.5, 0.5, 2.4}, "3: -2 0 2 real"},  // halves to the even one
               {"Exp", {0, 1}, "2: 1 2.71828 real"},
               {"Log", {1, 100}, "2: 0 4.60517 real"},
               {"Sqrt", {4, 2.25}, "2: 2 1.5 real"},
               {"Reciprocal", {4, 0.5}, "2: 0.25 2 real"},
               {"Not", {0, 3}, "2: 1 0"},
               {"Erf", {0, 3}, "-"}};
  for (const auto& c : cases) EXPECT_EQ(Computed(c.op, {Reals(c.of)}), c.is) << c.op;
  EXPECT_EQ(Computed("Neg", {Row({3})}), "1: -3") << "of integers an integer";
}

TEST(OnnxConstants, FunctionsOfSeveralNumbers) {
  const std::pair<const char*, const char*> of_integers[] = {
      {"Add", "3: 9 -5 3"}, {"Sub", "3: 5 -9 9"}, {"Mul", "3: 14 -14 -18"}, {"Div", "3: 3 -3 -2"},
      {"Mod", "3: 1 1 0"},  {"Max", "3: 7 2 6"},  {"Min", "3: 2 -7 -3"},    {"Xor", "-"}};
  for (const auto& [op, is] : of_integers) {
    EXPECT_EQ(Computed(op, {Row({7, -7, 6}), Row({2, 2, -3})}), is) << op;
  }
  EXPECT_EQ(Computed("Pow", {Row({3, 2, 5}), Row({2, 3, 0})}), "3: 9 8 1");
  EXPECT_EQ(Computed("Div", {Reals({7, -7}), Reals({2, 0})}), "2: 3.5 -inf real");
  EXPECT_EQ(Computed("Equal", {Reals({1.5, 2}), Reals({1.5, 3})}), "2: 1 0");
  // Nobody divides integers by nought.
  EXPECT_EQ(Computed("Div", {Row({7, 7}), Row({2, 0})}), "-");
  EXPECT_EQ(Computed("Mod", {Row({7, 7}), Row({0, 2})}), "-");
  EXPECT_EQ(Computed("Mul", {Row({7, 7}), Row({2, 0})}), "2: 14 0");
  // Of as many as there are.
  EXPECT_EQ(Computed("Max", {Row({1, 5}), Row({4, 2}), Row({3, 6})}), "2: 4 6");
  EXPECT_EQ(Computed("Min", {Row({1, 5})}), "2: 1 5");
}

TEST(OnnxConstants, OperandsAreRepeated) {
  EXPECT_EQ(Computed("Add", {Tensor({2, 1}, {1, 2}), Row({10, 20, 30})}), "2x3: 11 21 31 12 22 32");
  EXPECT_EQ(Computed("Add", {Row({10, 20, 30}), Tensor({2, 1}, {1, 2})}), "2x3: 11 21 31 12 22 32");
  EXPECT_EQ(Computed("Add", {Tensor({}, {5}), Tensor({2, 1, 1}, {1, 2})}), "2x1x1: 6 7");
  EXPECT_EQ(Computed("Add", {Row({1, 2}), Row({1, 2, 3})}), "-");
  EXPECT_EQ(Computed("Where", {Tensor({2, 1}, {1, 0}), Row({5}), Row({7, 8, 9})}),
            "2x3: 5 5 5 7 8 9");
  EXPECT_EQ(Computed("Where", {Row({2, 0}), Reals({5, 5}), Row({7, 8})}), "2: 5 8 real");
  EXPECT_EQ(Computed("Expand", {Tensor({2, 1}, {1, 2}), Row({2, 3})}), "2x3: 1 1 1 2 2 2");
  EXPECT_EQ(Computed("Expand", {Tensor({2, 1}, {1, 2}), Row({1})}), "2x1: 1 2");
  EXPECT_EQ(Computed("Expand", {Row({1, 2}), Row({3})}), "-");
}

TEST(OnnxConstants, ViewsKeepTheirElements) {
  const OnnxData six = Row({1, 2, 3, 4, 5, 6});
  for (const char* op : {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Dropout"}) {
    EXPECT_EQ(Computed(op, {six}, {}, OnnxDims{3, 2}), "3x2: 1 2 3 4 5 6") << op;
    EXPECT_EQ(Computed(op, {six}, {}, OnnxDims{3, 3}), "-") << op;
    EXPECT_EQ(Computed(op, {six}), "-") << op;
  }
}

// TensorProto's float, double, float16 and bfloat16 are real, its bool is 0 or 1.
TEST(OnnxConstants, CastsRoundTowardsNought) {
  const OnnxData from = Reals({-1.5, 0, 2.9});
  for (const std::int64_t to : {1, 10, 11, 16}) {
    EXPECT_EQ(Computed("Cast", {from}, {{"to", to}}), "3: -1.5 0 2.9 real") << to;
  }
  for (const std::int64_t to : {2, 3, 5, 6, 7, 12, 13}) {
    EXPECT_EQ(Computed("Cast", {from}, {{"to", to}}), "3: -1 0 2") << to;
  }
  EXPECT_EQ(Computed("Cast", {from}, {{"to", std::int64_t{9}}}), "3: 1 0 1");
}

TEST(OnnxConstants, PicksAlongAnAxis) {
  const OnnxData x = Tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto gather = [&](std::int64_t axis, const OnnxData& picks) {
    return Computed("Gather", {x, picks}, {{"axis", axis}});
  };
  EXPECT_EQ(gather(1, Row({2, 0})), "2x2: 3 1 6 4");
  EXPECT_EQ(gather(-1, Row({2, 0})), "2x2: 3 1 6 4");
  EXPECT_EQ(gather(0, Row({1})), "1x3: 4 5 6");
  EXPECT_EQ(gather(-2, Row({1})), "1x3: 4 5 6");
  EXPECT_EQ(Computed("Gather", {x, Row({1})}), "1x3: 4 5 6") << "of the first axis";
  EXPECT_EQ(gather(1, Tensor({}, {-1})), "2: 3 6") << "the axis is gone";
  EXPECT_EQ(gather(1, Tensor({1, 2}, {-3, 1})), "2x1x2: 1 2 4 5");
  EXPECT_EQ(gather(1, Row({})), "2x0:");
  for (const double pick : {3.0, -4.0}) EXPECT_EQ(gather(1, Row({pick})), "-") << pick;
  for (const std::int64_t axis : {2, -3}) EXPECT_EQ(gather(axis, Row({0})), "-") << axis;

  const OnnxData narrow = Tensor({2, 1}, {7, 8});
  for (const std::int64_t axis : {1, -1}) {
    EXPECT_EQ(Computed("Concat", {narrow, x}, {{"axis", axis}}), "2x4: 7 1 2 3 8 4 5 6");
  }
  EXPECT_EQ(Computed("Concat", {x, x}, {{"axis", std::int64_t{0}}}),
            "4x3: 1 2 3 4 5 6 1 2 3 4 5 6");
  EXPECT_EQ(Computed("Concat", {narrow, x}, {{"axis", std::int64_t{0}}}), "-");
  EXPECT_EQ(Computed("Concat", {narrow, Row({1})}, {{"axis", std::int64_t{1}}}), "-");
  EXPECT_EQ(Computed("Concat", {Row({}), Row({1, 2})}, {{"axis", std::int64_t{0}}}), "2: 1 2");
  EXPECT_EQ(Computed("Concat", {Row({}), Row({})}, {{"axis", std::int64_t{0}}}), "0:");
}

TEST(OnnxConstants, SlicesOfAnAxis) {
  const OnnxData x = Row({0, 1, 2, 3, 4, 5});
  constexpr double kEnd = 9.2e18;
  const struct {
    double start, end, step;
    const char* is;
  } cases[] = {{1, 4, 1, "3: 1 2 3"},
               {-2, kEnd, 1, "2: 4 5"},
               {0, -1, 1, "5: 0 1 2 3 4"},
               {-100, 2, 1, "2: 0 1"},
               {0, 100, 4, "2: 0 4"},
               {0, 5, 4, "2: 0 4"},
               {0, 4, 4, "1: 0"},
               {3, 3, 1, "0:"},
               {4, 2, 1, "0:"},
               {10, 20, 1, "0:"},
               {4, 0, -2, "2: 4 2"},
               {5, -6, -1, "5: 5 4 3 2 1"},
               {5, -7, -1, "6: 5 4 3 2 1 0"},
               {100, -kEnd, -3, "2: 5 2"},
               {2, 4, -1, "0:"},
               {0, 6, 0, "-"}};
  for (const auto& c : cases) {
    EXPECT_EQ(Computed("Slice", {x, Row({c.start}), Row({c.end}), Row({0}), Row({c.step})}), c.is)
        << c.start << " " << c.end << " " << c.step;
  }
  const OnnxData square = Tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(Computed("Slice", {square, Row({1, 0}), Row({2, 2})}), "1x2: 4 5");
  EXPECT_EQ(Computed("Slice", {square, Row({0}), Row({2}), Row({-1})}), "2x2: 1 2 4 5");
  EXPECT_EQ(Computed("Slice", {square},
                     {{"starts", OnnxDims{1}}, {"ends", OnnxDims{2}}, {"axes", OnnxDims{1}}}),
            "2x1: 2 5");
  for (const std::vector<OnnxData>& none : {std::vector<OnnxData>{square, Row({1})},
                                            {square, Row({1}), Row({1, 2})},
                                            {square, Row({0, 0, 0}), Row({1, 1, 1})},
                                            {square, Row({0}), Row({1}), Row({2})},
                                            {square, Row({0}), Row({1}), Row({0, 1})},
                                            {square, Row({0}), Row({1}), Row({0}), Row({})}}) {
    EXPECT_EQ(Computed("Slice", none), "-");
  }
}

TEST(OnnxConstants, OrdersOfAxes) {
  const OnnxData x = Tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto turned = [](const OnnxData& data, const OnnxDims& perm) {
    return Computed("Transpose", {data}, {{"perm", perm}});
  };
  EXPECT_EQ(Computed("Transpose", {x}), "3x2: 1 4 2 5 3 6");
  EXPECT_EQ(turned(x, {1, 0}), "3x2: 1 4 2 5 3 6");
  EXPECT_EQ(turned(x, {0, 1}), "2x3: 1 2 3 4 5 6");
  EXPECT_EQ(turned(Tensor({1, 2, 3}, x.values), {2, 0, 1}), "3x1x2: 1 4 2 5 3 6");
  EXPECT_EQ(turned(Tensor({2, 3, 1}, x.values), {2, 0, 1}), "1x2x3: 1 2 3 4 5 6");
  for (const OnnxDims& perm : {OnnxDims{0, 0}, {0}, {0, 1, 2}, {1, 2}, {-1, 0}}) {
    EXPECT_EQ(turned(x, perm), "-");
  }
}

TEST(OnnxConstants, WhatIsMade) {
  EXPECT_EQ(Computed("ConstantOfShape", {Row({2, 2})}), "2x2: 0 0 0 0 real");
  EXPECT_EQ(Computed("ConstantOfShape", {Row({2})}, {{"value", Row({7})}}), "2: 7 7");
  EXPECT_EQ(Computed("ConstantOfShape", {Row({2})}, {{"value", Row({7, 8})}}), "-");
  const auto range = [](double from, double to, double by) {
    return Computed("Range", {Row({from}), Row({to}), Row({by})});
  };
  EXPECT_EQ(range(2, 7, 2), "3: 2 4 6");
  EXPECT_EQ(range(2, 8, 2), "3: 2 4 6");
  EXPECT_EQ(range(5, 5, 1), "0:");
  EXPECT_EQ(range(6, 1, -2), "3: 6 4 2");
  EXPECT_EQ(range(0, 1, 0.25), "4: 0 0.25 0.5 0.75");
  EXPECT_EQ(range(0, 1, 0), "-");
  EXPECT_EQ(Computed("Range", {Row({0}), Row({1, 2}), Row({1})}), "-");
  EXPECT_EQ(Computed("Range", {Row({0}), Row({1})}), "-");
}

TEST(OnnxConstants, ReductionsToOne) {
  const std::pair<const char*, const char*> cases[] = {
      {"ReduceProd", "40"}, {"ReduceSum", "11"}, {"ReduceMax", "5"}, {"ReduceMin", "2"}};
  for (const auto& [op, is] : cases) {
    const OnnxData x = Row({4, 2, 5});
    EXPECT_EQ(Computed(op, {x}, {}, OnnxDims{}), std::string(": ") + is) << op;
    EXPECT_EQ(Computed(op, {x}, {}, OnnxDims{1}), std::string("1: ") + is) << op;
    EXPECT_EQ(Computed(op, {x}, {}, OnnxDims{3}), "-") << op;
    EXPECT_EQ(Computed(op, {x}), "-") << op;
    EXPECT_EQ(Computed(op, {Row({})}, {}, OnnxDims{}), "-") << op;
  }
  EXPECT_EQ(Computed("ReduceMean", {Row({1, 2})}, {}, OnnxDims{}), "-");
}

// What an operator needs and does not have.
TEST(OnnxConstants, InputsThatAreNotKnown) {
  const OnnxData one = Row({1});
  OnnxBudget budget;
  for (const char* op : {"Add", "Where", "Gather", "Concat", "Slice", "Expand", "Range"}) {
    OnnxNode node;
    node.op = op;
    EXPECT_EQ(Text(ComputeOnnxConstant(node, {&one, nullptr, &one}, OnnxDims{1}, &budget)), "-")
        << op;
    EXPECT_EQ(Text(ComputeOnnxConstant(node, {nullptr, &one, &one}, OnnxDims{1}, &budget)), "-")
        << op;
    EXPECT_EQ(Text(ComputeOnnxConstant(node, {}, OnnxDims{1}, &budget)), "-") << op;
  }
}

// ---- What they are made of.

TEST(OnnxConstants, IntegersOfRealNumbers) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const std::pair<double, std::int64_t> cases[] = {
      {std::nan(""), 0}, {-1.9, -1},      {1.9, 1},          {1e30, kMost},
      {-1e30, kLeast},   {0x1p63, kMost}, {-0x1p63, kLeast}, {0x1p62, std::int64_t{1} << 62}};
  for (const auto& [value, integer] : cases) EXPECT_EQ(OnnxInteger(value), integer) << value;
}

TEST(OnnxConstants, AxesCountFromBothEnds) {
  EXPECT_EQ(OnnxAxis(0, 2), 0U);
  EXPECT_EQ(OnnxAxis(1, 2), 1U);
  EXPECT_EQ(OnnxAxis(-1, 2), 1U);
  EXPECT_EQ(OnnxAxis(-2, 2), 0U);
  EXPECT_FALSE(OnnxAxis(-3, 2));
  EXPECT_FALSE(OnnxAxis(2, 2));
  EXPECT_FALSE(OnnxAxis(0, 0));
}

TEST(OnnxConstants, FewAreFew) {
  EXPECT_EQ(FewOnnxElements({}), 1U);
  EXPECT_EQ(FewOnnxElements({256, 256}), 65536U);
  EXPECT_FALSE(FewOnnxElements({65537}));
  EXPECT_EQ(FewOnnxElements({0, 65536}), 0U);
  EXPECT_FALSE(FewOnnxElements({0, 65537})) << "somebody may count to its other length";
  // What few values need is free, and all others together have ten million.
  OnnxBudget budget;
  EXPECT_FALSE(budget.Affords(10'000'001));
  EXPECT_TRUE(budget.Affords(9'999'743));
  EXPECT_TRUE(budget.Affords(256));
  EXPECT_FALSE(budget.Affords(258));
  EXPECT_TRUE(budget.Affords(257));
  EXPECT_FALSE(budget.Affords(257));
  EXPECT_TRUE(budget.Affords(256));
}

}  // namespace
}  // namespace stepcast
