// What every entry of the catalogue promises: finite and never negative over its range, with the
// trend that it declares for each input, right where the answer is known, of the unit that it
// states, and a description to find it by.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "model/catalog/catalog.h"
#include "tests/model/entries.h"
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
  const Model<double> model_ = Entries().at(GetParam());
};

// Whole steps, with all parameters as inputs.
bool IsStep(const Model<double>& model) { return std::string(model.id).rfind("step/", 0) == 0; }

bool FiniteAndNotNegative(double value) { return std::isfinite(value) && value >= 0; }

TEST_P(CatalogTest, FiniteAndNotNegativeWithin) {
  EXPECT_TRUE(rc::check(model().id,
                        [this] { RC_ASSERT(FiniteAndNotNegative(model().evaluate(AnyPoint()))); }));
}

// The edges are where ranges break: all low, all high, and each input at either end of its range
// while the others are in the middle.
TEST_P(CatalogTest, FiniteAndNotNegativeAtTheEdges) {
  std::vector<double> low;
  std::vector<double> high;
  std::vector<double> middle;
  for (const ModelInput& input : model().inputs) {
    low.push_back(input.low);
    high.push_back(input.high);
    middle.push_back(std::sqrt(input.low * input.high));
  }
  EXPECT_TRUE(FiniteAndNotNegative(model().evaluate(low)));
  EXPECT_TRUE(FiniteAndNotNegative(model().evaluate(high)));
  for (std::size_t i = 0; i < middle.size(); ++i) {
    for (const double end : {low[i], high[i]}) {
      std::vector<double> x = middle;
      x[i] = end;
      EXPECT_TRUE(FiniteAndNotNegative(model().evaluate(x)))
          << model().inputs[i].symbol << " " << end;
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

// The inputs that change the value, alone, from one end of their range to the other at one of many
// points.
std::set<std::size_t> MovingInputs(const Model<double>& model) {
  std::set<std::size_t> moving;
  std::mt19937_64 random(7);
  constexpr int kPoints = 200;
  for (int point = 0; point < kPoints && moving.size() < model.inputs.size(); ++point) {
    std::vector<double> x;
    for (const ModelInput& input : model.inputs) {
      const double share = static_cast<double>(random() >> 11) * 0x1p-53;
      x.push_back(input.low * std::pow(input.high / input.low, point == 0 ? 0.5 : share));
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::vector<double> low = x;
      std::vector<double> high = x;
      low[i] = model.inputs[i].low;
      high[i] = model.inputs[i].high;
      if (!Near(model.evaluate(low), model.evaluate(high), kRounding)) moving.insert(i);
    }
  }
  return moving;
}

// An input that never changes anything has no place in the list, and a trend that holds because
// nothing moves says nothing. One may stand there to show that it has no part. A whole step knows
// nothing of the parameters of other strategies.
TEST_P(CatalogTest, EveryInputMovesIt) {
  const std::set<std::size_t> moving = MovingInputs(model());
  const std::size_t count = model().inputs.size();
  if (IsStep(model())) {
    EXPECT_GE(3 * moving.size(), 2 * count);
    return;
  }
  EXPECT_GE(moving.size() + 1, count);
  EXPECT_GE(moving.size(), 1u);
}

// ---- Known answers.

// Some answers are worked out with tables of the normal distribution.
constexpr double kKnownTolerance = 5e-7;
constexpr double kNothing = 1e-15;  // where the answer is 0

TEST_P(CatalogTest, AnswersWhatIsKnown) {
  for (const KnownCase& known : model().known) {
    EXPECT_GT(std::string(known.says).size(), 5u);
    ASSERT_EQ(known.inputs.size(), model().inputs.size()) << known.says;
    const double value = model().evaluate(known.inputs);
    EXPECT_LE(std::abs(value - known.expected),
              kKnownTolerance * std::abs(known.expected) + kNothing)
        << known.says << ": " << value << " is not " << known.expected;
  }
}

// Whole steps have the formula, written out again, in their own tests.
TEST_P(CatalogTest, HasKnownAnswers) {
  if (IsStep(model())) return;
  const bool overlap = std::string(model().id).rfind("overlap/", 0) == 0;
  EXPECT_GE(model().known.size(), overlap ? 1u : 2u);
}

// ---- Dimensions.

// A change of units: what a number of each base unit is multiplied by. No product of small powers
// of these is that of others. An hour is a unit of its own: that it has 3600 s is a constant.
const std::map<std::string, double> kChangeOfUnits = {{"s", 3.0},    {"h", 19.0},       {"B", 5.0},
                                                      {"FLOP", 7.0}, {"samples", 11.0}, {"J", 13.0},
                                                      {"USD", 17.0}};

// The factor of "", "s", "B/s", "1/s", "s^2", ...; nothing for a unit that is not known.
std::optional<double> UnitFactor(const std::string& unit) {
  double factor = 1;
  std::istringstream parts(unit);
  std::string part;
  for (bool first = true; std::getline(parts, part, '/'); first = false) {
    int power = 1;
    const std::size_t hat = part.find('^');
    if (hat != std::string::npos) {
      power = std::stoi(part.substr(hat + 1));
      part.resize(hat);
    }
    if (first && part == "1") continue;
    const auto base = kChangeOfUnits.find(part);
    if (base == kChangeOfUnits.end()) return std::nullopt;
    factor *= std::pow(base->second, first ? power : -power);
  }
  return factor;
}

TEST(Units, AreRead) {
  EXPECT_EQ(UnitFactor(""), 1.0);
  EXPECT_EQ(UnitFactor("s"), 3.0);
  EXPECT_DOUBLE_EQ(UnitFactor("1/s").value(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(UnitFactor("B/s").value(), 5.0 / 3);
  EXPECT_EQ(UnitFactor("s^2"), 9.0);
  EXPECT_DOUBLE_EQ(UnitFactor("samples/s").value(), 11.0 / 3);
  EXPECT_FALSE(UnitFactor("parsec"));
  EXPECT_FALSE(UnitFactor("SI"));
}

// Whether the value at x, after a change of units, is that of its own unit's change.
bool ScalesAt(const Model<double>& model, const std::vector<double>& x) {
  std::vector<double> changed = x;
  for (std::size_t i = 0; i < x.size(); ++i) changed[i] *= *UnitFactor(model.inputs[i].unit);
  return Near(model.evaluate(changed), model.evaluate(x) * *UnitFactor(model.output), 1e-9);
}

TEST_P(CatalogTest, UnitsAreUnits) {
  EXPECT_TRUE(UnitFactor(model().output)) << model().output;
  for (const ModelInput& input : model().inputs) {
    EXPECT_TRUE(UnitFactor(input.unit)) << input.symbol << " " << input.unit;
  }
}

// A formula without constants does not know which units are in use. One with constants does, and
// names them with theirs.
TEST_P(CatalogTest, IsOfTheUnitThatItStates) {
  const std::string constants = model().constants;
  if (constants.empty()) {
    EXPECT_TRUE(rc::check(model().id, [this] { RC_ASSERT(ScalesAt(model(), AnyPoint())); }));
    return;
  }
  const std::regex with_unit(
      R"((^|[ =])[0-9.]+ (s|ms|us|h|B|kB|MB|GB|KiB|MiB|FLOP|J|samples|segments/s\^3)($|[ ,;]))");
  EXPECT_TRUE(std::regex_search(constants, with_unit)) << constants;
  int differs = 0;
  EXPECT_TRUE(rc::check(model().id, [&] { differs += ScalesAt(model(), AnyPoint()) ? 0 : 1; }));
  EXPECT_GT(differs, 0) << "scales without the constants that it states: " << constants;
}

// ---- Texts.

TEST_P(CatalogTest, SaysWhatItIs) {
  const std::string id = model().id;
  EXPECT_TRUE(std::regex_match(id, std::regex("[a-z_0-9-]+/[a-z_0-9-]+"))) << id;
  EXPECT_GT(std::string(model().sentence).size(), 20u);
  EXPECT_EQ(std::string(model().sentence).back(), '.');
  EXPECT_FALSE(std::string(model().formula).empty());
  EXPECT_EQ(std::string(model().formula).find('\n'), std::string::npos) << "one line";
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

// A formula is in the symbols of its inputs, but for one that may have no part. Those that refer to
// another formula, or to what a simulation finds, leave theirs to it.
TEST_P(CatalogTest, TheFormulaHasItsInputs) {
  if (IsStep(model())) return;
  const std::string formula = model().formula;
  const std::regex refers(" as in | of the header|^min over | by mean value analysis| that of ");
  const std::set<std::string> of_other_terms = {
      "collective/async_staleness_sd",  // C is the time of a cycle
      "limits/server_half_ceiling",     // flat and slope are those of a side
      "overlap/input"};                 // n is g b a
  if (std::regex_search(formula, refers) || of_other_terms.count(model().id) > 0) return;
  const std::set<std::size_t> moving = MovingInputs(model());
  for (std::size_t i = 0; i < model().inputs.size(); ++i) {
    const std::regex symbol("(^|[^A-Za-z_0-9])" + std::string(model().inputs[i].symbol) +
                            "($|[^A-Za-z_0-9])");
    EXPECT_TRUE(std::regex_search(formula, symbol) || moving.count(i) == 0)
        << formula << " lacks " << model().inputs[i].symbol;
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, CatalogTest, ::testing::Range<std::size_t>(0, Entries().size()),
                         [](const ::testing::TestParamInfo<std::size_t>& entry) {
                           return TestName(Entries().at(entry.param).id);
                         });

TEST(Catalogue, IdsAreUnique) {
  std::set<std::string> ids;
  for (const Model<double>& model : Entries()) {
    EXPECT_TRUE(ids.insert(model.id).second) << model.id;
  }
  std::map<std::string, int> rooms;
  for (const std::string& id : ids) ++rooms[id.substr(0, id.find('/'))];
  for (const auto& [room, count] : rooms) std::cout << count << " in " << room << "\n";
  std::cout << ids.size() << " entries\n";
  RecordProperty("entries", static_cast<int>(ids.size()));
  EXPECT_GE(ids.size(), 80u);
}

}  // namespace
}  // namespace stepcast
