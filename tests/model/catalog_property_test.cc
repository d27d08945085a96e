// What every entry of the catalogue promises: finite and positive over its range, with the trend
// that it declares for each input, and a description to find it by.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/catalog/catalog.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

// Sums and differences of parts round; a trend is kept but for this.
constexpr double kRounding = 1e-12;

class CatalogTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  const Model<double>& model() const { return model_; }

  std::vector<double> AnyPoint() const {
    std::vector<double> x;
    for (const ModelInput& input : model_.inputs) x.push_back(*LogUniform(input.low, input.high));
    return x;
  }

 private:
  const Model<double> model_ = Catalog<double>().at(GetParam());
};

bool FiniteAndPositive(double value) { return std::isfinite(value) && value > 0; }

TEST_P(CatalogTest, FiniteAndPositiveWithin) {
  EXPECT_TRUE(rc::check(model().id,
                        [this] { RC_ASSERT(FiniteAndPositive(model().evaluate(AnyPoint()))); }));
}

// The edges are where ranges break: all low, all high, and each input at either end of its range
// while the others are in the middle.
TEST_P(CatalogTest, FiniteAndPositiveAtTheEdges) {
  std::vector<double> low;
  std::vector<double> high;
  std::vector<double> middle;
  for (const ModelInput& input : model().inputs) {
    low.push_back(input.low);
    high.push_back(input.high);
    middle.push_back(std::sqrt(input.low * input.high));
  }
  EXPECT_TRUE(FiniteAndPositive(model().evaluate(low)));
  EXPECT_TRUE(FiniteAndPositive(model().evaluate(high)));
  for (std::size_t i = 0; i < middle.size(); ++i) {
    for (const double end : {low[i], high[i]}) {
      std::vector<double> x = middle;
      x[i] = end;
      EXPECT_TRUE(FiniteAndPositive(model().evaluate(x))) << model().inputs[i].symbol << " " << end;
    }
  }
}

TEST_P(CatalogTest, KeepsItsTrends) {
  for (std::size_t i = 0; i < model().inputs.size(); ++i) {
    const ModelInput& input = model().inputs[i];
    if (input.trend == Trend::kEither) continue;
    EXPECT_TRUE(rc::check(std::string(model().id) + " in " + input.symbol, [&] {
      std::vector<double> x = AnyPoint();
      std::vector<double> larger = x;
      larger[i] = *LogUniform(input.low, input.high);
      if (larger[i] < x[i]) std::swap(x, larger);
      const double at = model().evaluate(x);
      const double at_larger = model().evaluate(larger);
      if (input.trend == Trend::kNeverFalls) {
        RC_ASSERT(at_larger >= at * (1 - kRounding));
      } else {
        RC_ASSERT(at_larger <= at * (1 + kRounding));
      }
    }));
  }
}

// An input that never changes anything has no place in the list, and a trend that holds because
// nothing moves says nothing. ps-async has no part in some parameters of the step.
TEST_P(CatalogTest, SomeInputMovesIt) {
  std::size_t moving = 0;
  for (std::size_t i = 0; i < model().inputs.size(); ++i) {
    std::vector<double> low;
    for (const ModelInput& input : model().inputs) low.push_back(std::sqrt(input.low * input.high));
    std::vector<double> high = low;
    low[i] = model().inputs[i].low;
    high[i] = model().inputs[i].high;
    if (!Near(model().evaluate(low), model().evaluate(high), kRounding)) ++moving;
  }
  EXPECT_GE(2 * moving, model().inputs.size());
}

TEST_P(CatalogTest, SaysWhatItIs) {
  const std::string id = model().id;
  EXPECT_NE(id.find('/'), std::string::npos) << id;
  EXPECT_GT(std::string(model().sentence).size(), 20u);
  EXPECT_EQ(std::string(model().sentence).back(), '.');
  EXPECT_FALSE(std::string(model().source).empty());
  EXPECT_FALSE(std::string(model().validity).empty());
  EXPECT_FALSE(model().inputs.empty());
  std::set<std::string> symbols;
  for (const ModelInput& input : model().inputs) {
    EXPECT_TRUE(symbols.insert(input.symbol).second) << input.symbol;
    EXPECT_GT(input.low, 0) << input.symbol;
    EXPECT_LT(input.low, input.high) << input.symbol;
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, CatalogTest,
                         ::testing::Range<std::size_t>(0, Catalog<double>().size()),
                         [](const ::testing::TestParamInfo<std::size_t>& entry) {
                           return TestName(Catalog<double>().at(entry.param).id);
                         });

TEST(Catalogue, IdsAreUnique) {
  std::set<std::string> ids;
  for (const Model<double>& model : Catalog<double>()) {
    EXPECT_TRUE(ids.insert(model.id).second) << model.id;
  }
  EXPECT_GE(ids.size(), 14u);
}

}  // namespace
}  // namespace stepcast
