#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/record/controls.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/placement.h"
#include "data/values/spelling.h"
#include "data/values/suggest.h"
#include "data/values/utf8.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

const InputPlace kPlace{"lab.yaml", 7, "link.bandwidth"};

double Rate(const std::string& text) { return ParseDataRate(text, kPlace).si(); }
double Time(const std::string& text) { return ParseDuration(text, kPlace).si(); }
double Size(const std::string& text) { return ParseDataSize(text, kPlace).si(); }
double WorkPerSecond(const std::string& text) { return ParseWorkRate(text, kPlace).si(); }
double Watts(const std::string& text) { return ParseWatts(text, kPlace); }

// ---- Units.

struct UnitCase {
  const char* unit;
  double si;
};

using Parser = double (*)(const std::string&);

struct Family {
  const char* name;
  Parser parse;
  std::vector<UnitCase> units;
  const char* foreign;  // a unit of another dimension
};

const std::vector<Family>& Families() {
  static const std::vector<Family> families = {
      {"rate",
       Rate,
       {{"bit/s", 0.125},
        {"kbit/s", 125.0},
        {"Mbit/s", 125e3},
        {"Gbit/s", 125e6},
        {"Tbit/s", 125e9},
        {"B/s", 1.0},
        {"kB/s", 1e3},
        {"MB/s", 1e6},
        {"GB/s", 1e9},
        {"TB/s", 1e12},
        {"KiB/s", 1024.0},
        {"MiB/s", 1048576.0},
        {"GiB/s", 1073741824.0}},
       "GB"},
      {"time",
       Time,
       {{"s", 1.0},
        {"ms", 1e-3},
        {"us", 1e-6},
        {"ns", 1e-9},
        {"min", 60.0},
        {"h", 3600.0},
        {"d", 86400.0}},
       "MB"},
      {"size",
       Size,
       {{"B", 1.0},
        {"kB", 1e3},
        {"MB", 1e6},
        {"GB", 1e9},
        {"TB", 1e12},
        {"KiB", 1024.0},
        {"MiB", 1048576.0},
        {"GiB", 1073741824.0},
        {"TiB", 1099511627776.0}},
       "GB/s"},
      {"work rate",
       WorkPerSecond,
       {{"FLOP/s", 1.0}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}},
       "TFLOPS"},
      {"power", Watts, {{"W", 1.0}, {"kW", 1e3}}, "J"}};
  return families;
}

TEST(Parse, EveryUnit) {
  for (const Family& family : Families()) {
    for (const UnitCase& unit : family.units) {
      const std::string name = unit.unit;
      EXPECT_DOUBLE_EQ(family.parse("2.5 " + name), 2.5 * unit.si) << family.name;
      EXPECT_DOUBLE_EQ(family.parse("2.5" + name), 2.5 * unit.si) << "no space: " << name;
      EXPECT_DOUBLE_EQ(family.parse("  +25e-1\t" + name + " "), 2.5 * unit.si) << name;
    }
  }
}

TEST(Parse, EveryErrorNamesPlaceValueAndWhatIsAllowed) {
  for (const Family& family : Families()) {
    const std::string good = family.units.front().unit;
    const struct {
      std::string text;
      const char* problem;
    } cases[] = {
        {"", "is empty"},
        {"  ", "is empty"},
        {"12", "has no unit"},
        {"fast", "is not a number with a unit"},
        {good, "is not a number with a unit"},
        {"12 " + std::string(family.foreign), "has an unknown unit"},
        {"12 " + good + " extra", "has an unknown unit"},
        {"0x10 " + good, "has an unknown unit"},
        {"1,5 " + good, "is not a number with a unit"},
        {"-1 " + good, "is out of range"},
        {"1e300 " + good, "is out of range"},
        {"nan " + good, "is not a finite number"},
        {"inf " + good, "is not a finite number"},
        {"-inf " + good, "is not a finite number"},
        {"1e400 " + good, "is not a finite number"},
        {"+-1 " + good, "is not a number with a unit"},
        {"--1 " + good, "is not a number with a unit"},
    };
    for (const auto& c : cases) {
      const auto error = ErrorOf([&] { family.parse(c.text); });
      ASSERT_TRUE(Says(error, c.problem)) << family.name << ": '" << c.text << "'";
      // It may say what was meant besides.
      EXPECT_EQ(error->problem().rfind(c.problem, 0), 0U) << error->problem();
      EXPECT_EQ(error->value(), c.text);
      EXPECT_FALSE(error->allowed().empty()) << error->what();
      EXPECT_TRUE(Says(error, "lab.yaml:7: link.bandwidth: "));
      EXPECT_TRUE(Says(error, "; allowed: " + error->allowed()));
      EXPECT_TRUE(Says(error, c.text.empty() ? c.problem : "'" + c.text + "' " + c.problem));
    }
  }
}

TEST(Parse, AWrongUnitIsToldAllTheRightOnes) {
  for (const Family& family : Families()) {
    const auto error = ErrorOf([&] { family.parse("1 furlong"); });
    for (const UnitCase& unit : family.units) {
      EXPECT_TRUE(Says(error, std::string(" ") + unit.unit)) << family.name;
    }
  }
}

// A unit is spelt one way: Mbit and MB are eightfold apart, m is not M.
TEST(Parse, UnitsAreCaseSensitive) {
  for (const char* text :
       {"10 gbit/s", "10 Gb/s", "10 Gbps", "10 GBit/s", "10 gb/s", "10 mbit/s"}) {
    EXPECT_TRUE(Says(ErrorOf([&] { Rate(text); }), "has an unknown unit")) << text;
  }
  for (const char* text : {"2 MS", "2 Ms", "2 sec", "2 S", "2 µs"}) {
    EXPECT_TRUE(Says(ErrorOf([&] { Time(text); }), "has an unknown unit")) << text;
  }
}

TEST(Parse, ZeroIsATimeAndNothingElse) {
  EXPECT_EQ(Time("0 s"), 0.0);
  EXPECT_EQ(Time("0 ms"), 0.0);
  EXPECT_TRUE(Says(ErrorOf([] { Rate("0 bit/s"); }), "is out of range; allowed: from 1 to "));
  EXPECT_TRUE(Says(ErrorOf([] { Size("0 B"); }), "is out of range; allowed: from 1 to 1e+18 B"));
  EXPECT_TRUE(Says(ErrorOf([] { WorkPerSecond("0 FLOP/s"); }), "allowed: from 1 to "));
  EXPECT_TRUE(Says(ErrorOf([] { Watts("0 W"); }), "is out of range; allowed: from 0.001 to "));
}

// Each kind has a least value that means something: less is a slip, and the error tells it. It may
// be given in any unit, and survives being written in another.
TEST(Parse, EachKindHasALeastValue) {
  for (const Family& family : Families()) {
    const UnitCase& unit = family.units.front();
    for (const char* number : {"1e-13", "1e-300", "1e-400", "1e-320", "-1e-400", "-1"}) {
      const auto error = ErrorOf([&] { family.parse(std::string(number) + " " + unit.unit); });
      EXPECT_TRUE(Says(error, "is out of range; allowed: ")) << family.name << " " << number;
      EXPECT_TRUE(Says(error, "from ")) << family.name;
    }
  }
  EXPECT_EQ(Rate("1 bit/s"), 0.125);
  EXPECT_DOUBLE_EQ(Rate("1e-9 Gbit/s"), 0.125);
  EXPECT_DOUBLE_EQ(Time("1e-9 ms"), 1e-12);
  EXPECT_EQ(Size("1e-9 GB"), 1.0);
  EXPECT_EQ(WorkPerSecond("1e-12 TFLOP/s"), 1.0);
  EXPECT_TRUE(Says(ErrorOf([] { Rate("1e-300 bit/s"); }),
                   "'1e-300 bit/s' is out of range; allowed: from 1 to 8e+15 bit/s"));
  EXPECT_TRUE(Says(ErrorOf([] { Time("1e-300 s"); }), "allowed: 0, or from 1e-12 to 1e+09 s"));
}

// The range is told in the unit of the value.
TEST(Parse, TheRangeIsInTheUnitGiven) {
  EXPECT_TRUE(Says(ErrorOf([] { Time("-1 ms"); }), "allowed: 0, or from 1e-09 to 1e+12 ms"));
  EXPECT_TRUE(Says(ErrorOf([] { Rate("9e9 Tbit/s"); }), "allowed: from 1e-12 to 8000 Tbit/s"));
}

RC_GTEST_PROP(Parse, WhatIsWrittenIsRead, ()) {
  const int digits = *rc::gen::inRange(1, 1'000'000);
  const int exponent = *rc::gen::inRange(-6, 3);
  const std::string number = std::to_string(digits) + "e" + std::to_string(exponent);
  for (const Family& family : Families()) {
    const UnitCase& unit = family.units[*rc::gen::inRange<std::size_t>(0, family.units.size())];
    const double expected = std::stod(number) * unit.si;
    // The least of the upper bounds, the most of the lower ones.
    if (expected > 1e7 || expected < 1) continue;
    const double read = family.parse(number + " " + unit.unit);
    RC_ASSERT(std::abs(read - expected) <= 1e-15 * expected);
  }
}

// ---- Plain numbers.

// A number that is wrong by its size alone has an error of its own kind.
TEST(Parse, WhatIsOutOfRangeHasItsOwnType) {
  const InputPlace place{"", 0, "--x"};
  const auto is_of_size = [](const auto& parse) {
    try {
      parse();
    } catch (const OutOfRange& error) {
      EXPECT_EQ(error.problem(), "is out of range");
      return true;
    } catch (const InputError&) {
      return false;
    }
    ADD_FAILURE() << "is taken";
    return false;
  };
  for (const char* text : {"-1 s", "1e99 s", "1e-99 s"}) {
    EXPECT_TRUE(is_of_size([&] { ParseDuration(text, place); })) << text;
  }
  for (const char* text : {"", "s", "1", "1 Gbit/s", "nan s", "1,5 s"}) {
    EXPECT_FALSE(is_of_size([&] { ParseDuration(text, place); })) << text;
  }
  EXPECT_TRUE(is_of_size([&] { ParseNumber("3", place, 0, 2); }));
  EXPECT_FALSE(is_of_size([&] { ParseNumber("x", place, 0, 2); }));
  EXPECT_TRUE(is_of_size([&] { ParseInteger("3", place, 0, 2); }));
  EXPECT_TRUE(is_of_size([&] { ParseInteger("99999999999999999999", place, 0, 2); }));
  EXPECT_FALSE(is_of_size([&] { ParseInteger("1.5", place, 0, 2); }));
}

TEST(Parse, Numbers) {
  EXPECT_EQ(ParseNumber(" 1.5 ", kPlace, 0, 2), 1.5);
  EXPECT_EQ(ParseNumber("0", kPlace, 0, 2), 0.0);
  EXPECT_EQ(ParseNumber("2", kPlace, 0, 2), 2.0);
  EXPECT_EQ(ParseNumber("-1e-3", kPlace, -1, 2), -1e-3);
  const struct {
    const char* text;
    const char* problem;
  } cases[] = {{"", "is empty"},
               {"2.0001", "is out of range"},
               {"-0.1", "is out of range"},
               {"1.5 s", "is not a number"},
               {"1,5", "is not a number (did you mean 1.5?)"},
               {"one", "is not a number"},
               {"1e400", "is not a finite number"},
               {"-1e5000", "is not a finite number"},
               {"1e-400", "is too near to 0"},
               {"1e-5000", "is too near to 0"},
               {"-1e-5000", "is out of range"},
               {"nan", "is not a finite number"},
               {"-nan", "is not a finite number"},
               {"infinity", "is not a finite number"}};
  for (const auto& c : cases) {
    const auto error = ErrorOf([&] { ParseNumber(c.text, kPlace, 0, 2); });
    ASSERT_TRUE(Says(error, "lab.yaml:7: link.bandwidth: ")) << c.text;
    EXPECT_EQ(error->problem(), c.problem) << c.text;
    EXPECT_EQ(error->value(), c.text);
    EXPECT_EQ(error->allowed(), "a number from 0 to 2");
  }
}

// Decimals behind a comma, and thousands with signs between them.
TEST(Parse, NumbersAsTheyAreWrittenElsewhere) {
  const struct {
    const char* text;
    const char* meant;
  } cases[] = {{"0,5", "0.5"},
               {"-0,125", "-0.125"},
               {"1,234", "1.234 or 1234"},
               {"1,2345", "1.2345"},
               {"1,234.5", "1234.5"},
               {"1.234,5", "1234.5"},
               {"1,234,567", "1234567"},
               {"1.234.567", "1234567"},
               {"12 345", "12345"},
               {"1'234.25", "1234.25"},
               {"1_000", "1000"},
               {"1,,5", ""},
               {"1,5,5", ""},
               {",5", ""},
               {"1, 5", ""},
               {"1.2.3", ""},
               {"1234,567.8", ""},
               {"0.1,", ""}};
  for (const auto& c : cases) {
    const auto error = ErrorOf([&] { ParseNumber(c.text, kPlace, -1e9, 1e9); });
    ASSERT_TRUE(error) << c.text;
    const std::string hint =
        *c.meant == '\0' ? "" : std::string(" (did you mean ") + c.meant + "?)";
    EXPECT_EQ(error->problem(), "is not a number" + hint) << c.text;
  }
  EXPECT_TRUE(Says(ErrorOf([] { ParseDuration("1,5 ms", kPlace); }),
                   "'1,5 ms' is not a number with a unit (did you mean 1.5 ms?); allowed: "));
  EXPECT_TRUE(Says(ErrorOf([] { ParseInteger("1,024", kPlace, 1, 10'000); }),
                   "'1,024' is not a whole number (did you mean 1024?); allowed: "));
  EXPECT_EQ(ErrorOf([] { ParseInteger("1,5", kPlace, 1, 8); })->problem(), "is not a whole number");
  EXPECT_EQ(ErrorOf([] { ParseInteger("1.500", kPlace, 1, 8); })->problem(),
            "is not a whole number");
}

TEST(Parse, Probabilities) {
  EXPECT_EQ(ParseProbability("0", kPlace), 0.0);
  EXPECT_EQ(ParseProbability("0.999", kPlace), 0.999);
  EXPECT_TRUE(Says(ErrorOf([] { ParseProbability("1", kPlace); }), "would lose every packet"));
  EXPECT_TRUE(Says(ErrorOf([] { ParseProbability("1.0", kPlace); }), "below 1"));
  EXPECT_TRUE(Says(ErrorOf([] { ParseProbability("1 %", kPlace); }),
                   "is not a number (did you mean 0.01?); allowed: 0, or from 1e-15 to below 1"));
  EXPECT_TRUE(Says(ErrorOf([] { ParseProbability("100%", kPlace); }), "is not a number; "));
  EXPECT_TRUE(Says(ErrorOf([] { ParseProbability("%", kPlace); }), "is not a number; "));
  EXPECT_TRUE(Says(ErrorOf([] { ParseProbability("-0.1", kPlace); }), "is out of range"));
  EXPECT_EQ(ParseProbability("1e-15", kPlace), 1e-15);
  for (const char* text : {"1e-16", "1e-300", "1e-400"}) {
    EXPECT_TRUE(Says(ErrorOf([&] { ParseProbability(text, kPlace); }),
                     "is out of range; allowed: 0, or from 1e-15 to below 1"));
  }
}

TEST(Parse, Integers) {
  EXPECT_EQ(ParseInteger(" 8 ", kPlace, 1, 8), 8);
  EXPECT_EQ(ParseInteger("-3", kPlace, -5, 8), -3);
  EXPECT_EQ(ParseLongInteger("9007199254740993", kPlace, 0, 1LL << 60), 9007199254740993);
  const struct {
    const char* text;
    const char* problem;
  } cases[] = {{"", "is empty"},
               {"0", "is out of range"},
               {"9", "is out of range"},
               {"99999999999999999999", "is out of range"},
               {"-99999999999999999999", "is out of range"},
               {"2.0", "is not a whole number"},
               {"2e0", "is not a whole number"},
               {"0x2", "is not a whole number"},
               {"2 nodes", "is not a whole number"},
               {"nan", "is not a whole number"},
               {"two", "is not a whole number"}};
  for (const auto& c : cases) {
    const auto error = ErrorOf([&] { ParseInteger(c.text, kPlace, 1, 8); });
    ASSERT_TRUE(Says(error, "lab.yaml:7: link.bandwidth: ")) << c.text;
    EXPECT_EQ(error->problem(), c.problem) << c.text;
    EXPECT_EQ(error->value(), c.text);
    EXPECT_EQ(error->allowed(), "a whole number from 1 to 8");
  }
}

// ---- Words.

TEST(Parse, Placements) {
  EXPECT_EQ(ParsePlacement("4-4-2", kPlace), (Placement{4, 4, 2}));
  EXPECT_EQ(ParsePlacement(" 1 ", kPlace), (Placement{1}));
  EXPECT_EQ(ParsePlacement("1024", kPlace), (Placement{1024}));
  for (const char* text : {"", "-", "4-", "-4", "4--4", "0", "4-0", "4,4", "4 - 4", "1025", "4x2",
                           "99999999999999999999", "1.5", "nan"}) {
    const auto error = ErrorOf([&] { ParsePlacement(text, kPlace); });
    ASSERT_TRUE(Says(error, "lab.yaml:7: link.bandwidth: ")) << text;
    EXPECT_TRUE(Says(error, "like 4-4-2"));
    EXPECT_EQ(error->value(), text);
  }
}

TEST(Parse, PlacementsOfTooManyNodesAreRefused) {
  std::string text = "1";
  for (int i = 0; i < 1'000'000; ++i) text += "-1";
  const auto error = ErrorOf([&] { ParsePlacement(text, kPlace); });
  EXPECT_TRUE(Says(error, "names too many nodes; allowed: at most 1000000"));
  EXPECT_LT(std::string(error->what()).size(), 300U) << "a long value is quoted in part";
}

RC_GTEST_PROP(Parse, PlacementsRoundTrip, ()) {
  const auto placement =
      *rc::gen::nonEmpty(rc::gen::container<Placement>(rc::gen::inRange(1, 1025)));
  RC_ASSERT(ParsePlacement(FormatPlacement(placement), kPlace) == placement);
}

TEST(Parse, Strategies) {
  for (int i = 0; i < kStrategyCount; ++i) {
    EXPECT_EQ(ParseEnum<Strategy>(kStrategyNames[i], kPlace), static_cast<Strategy>(i));
    EXPECT_STREQ(StrategyName(static_cast<Strategy>(i)), kStrategyNames[i]);
  }
  EXPECT_EQ(ParseEnum<Strategy>("Ring", kPlace), Strategy::kRing);
  EXPECT_EQ(ParseEnum<Strategy>("all-reduce", kPlace), Strategy::kAllreduce);
  EXPECT_EQ(ParseEnum<Strategy>("PS_Sync", kPlace), Strategy::kPsSync);
  for (const char* text : {"", "-", "rings", "all", "ps", "ring,tree", "ring.tree"}) {
    const auto error = ErrorOf([&] { ParseEnum<Strategy>(text, kPlace); });
    EXPECT_TRUE(Says(error, "is not a strategy")) << text;
    EXPECT_TRUE(Says(error,
                     "; allowed: none, allreduce, ring, tree, "
                     "halving-doubling, hierarchical, ps-sync, ps-async, byteps, auto"))
        << text;
  }
  // Ways to share the model out are no strategies here, and each says where it belongs.
  for (const OtherWord& word : kShardOtherWords) {
    const std::string text(word.word);
    const auto error_at = [&](const InputPlace& place) {
      return ErrorOf([&] { ParseEnum<Strategy>(text, place); });
    };
    const std::string said =
        "strategy: '" + text + "' is not a strategy, but a way to share the model out (";
    const std::string name(word.name);
    EXPECT_TRUE(Says(error_at({"", 0, "--strategy"}),
                     "--" + said + "--shard " + name + "); allowed: none, allreduce, "));
    EXPECT_TRUE(Says(error_at({"runs.csv", 2, "strategy"}),
                     ": " + said + "shard: " + name + "); allowed: none, allreduce, "));
  }
  EXPECT_TRUE(Says(ErrorOf([] { ParseEnum<Strategy>("ZeRO-3", kPlace); }), "(shard: parameters)"));
}

template <class Enum, std::size_t n>
void ExpectNames(const char* const (&names)[n], int count,
                 Enum (*parse)(std::string_view, const InputPlace&), const std::string& problem) {
  ASSERT_EQ(static_cast<int>(n), count);
  std::string allowed;
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(parse(names[i], kPlace), static_cast<Enum>(i));
    EXPECT_EQ(parse(std::string(" ") + names[i] + "\t", kPlace), static_cast<Enum>(i));
    allowed += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  for (const std::string text : {"", "_", "cubics", "x", "even,tensor", "p.norms"}) {
    const auto error = ErrorOf([&] { parse(text, kPlace); });
    EXPECT_TRUE(Says(error, problem)) << text;
    EXPECT_TRUE(Says(error, "; allowed: " + allowed)) << text;
  }
}

TEST(Parse, NamesOfOptions) {
  ExpectNames(kCongestionControlNames, kCongestionControlCount, ParseEnum<CongestionControl>,
              "is not a known congestion control");
  ExpectNames(kShardingNames, kShardingCount, ParseEnum<Sharding>, "is not a way to shard");
  ExpectNames(kOverlapNames, kOverlapCount, ParseEnum<Overlap>, "is not a way to overlap");
}

// As people and frameworks write them.
TEST(Parse, WordsAreReadInAnySpelling) {
  for (const char* text : {"adam", "Adam", "ADAM", "adamw", "AdamW", "adamW", "Adam-W"}) {
    EXPECT_EQ(ParseEnum<Optimizer>(text, kPlace), Optimizer::kAdam) << text;
  }
  EXPECT_EQ(ParseEnum<Optimizer>("SGD", kPlace), Optimizer::kSgd);
  EXPECT_EQ(ParseEnum<Strategy>("DDP", kPlace), Strategy::kAllreduce);
  EXPECT_EQ(ParseEnum<Shard>("ZeRO-1", kPlace), Shard::kOptimizer);
  EXPECT_EQ(ParseEnum<Shard>("zero_2", kPlace), Shard::kGradients);
  EXPECT_EQ(ParseEnum<Shard>("zero3", kPlace), Shard::kParameters);
  EXPECT_EQ(ParseEnum<Shard>("FSDP", kPlace), Shard::kParameters);
  EXPECT_EQ(ParseEnum<Shard>("HYBRID_SHARD", kPlace), Shard::kHybrid);
  constexpr std::pair<const char*, Precision> kPrecisions[] = {
      {"FP16", Precision::kFp16},           {"half", Precision::kFp16},
      {"Float16", Precision::kFp16},        {"bfloat16", Precision::kBf16},
      {"BF16", Precision::kBf16},           {"TF32", Precision::kTf32},
      {"TensorFloat-32", Precision::kTf32}, {"fp-32", Precision::kFp32},
      {"float32", Precision::kFp32},        {"Float", Precision::kFp32},
      {"single", Precision::kFp32},         {"FP8", Precision::kFp8},
      {"float8", Precision::kFp8}};
  for (const auto& [text, precision] : kPrecisions) {
    EXPECT_EQ(ParseEnum<Precision>(text, kPlace), precision) << text;
  }
  for (const char* text : {"", "fp1.6", "fp", "16", "adagrad", "int8", "fp16,bf16"}) {
    EXPECT_TRUE(Says(ErrorOf([&] { ParseEnum<Precision>(text, kPlace); }), "is not a precision"))
        << text;
    EXPECT_TRUE(Says(ErrorOf([&] { ParseEnum<Optimizer>(text, kPlace); }), "is not an optimizer"))
        << text;
  }
}

// Signs count between digits alone, where points are none of the others; no two words of an
// enumeration are spelled alike.
TEST(Parse, SpellingsTellNamesApart) {
  EXPECT_EQ(CanonicalName("RTX 4090"), "rtx4090");
  EXPECT_EQ(CanonicalName("OPT-1.3B"), "opt1.3b");
  EXPECT_EQ(CanonicalName("Llama-2 7B"), "llama2_7b");
  EXPECT_EQ(CanonicalName(".a. 1. .2 b.3 4.c 5.6"), "a1.2b3_4c5.6");
  EXPECT_EQ(CanonicalName("_-."), "");
  const auto all_differ = [](std::span<const char* const> names) {
    std::set<std::string> spelled;
    for (const char* name : names) {
      EXPECT_TRUE(spelled.insert(CanonicalName(name)).second) << name;
      EXPECT_FALSE(CanonicalName(name).empty()) << name;
    }
  };
  all_differ(kStrategyNames);
  all_differ(kCongestionControlNames);
  all_differ(kTransportNames);
  all_differ(kShardNames);
  all_differ(kShardingNames);
  all_differ(kOverlapNames);
  all_differ(kCompressorNames);
  all_differ(kPrecisionNames);
  all_differ(kOptimizerNames);
  all_differ(kAttentionFormNames);
  all_differ(kRecomputeNames);
}

TEST(Parse, Hosts) {
  EXPECT_EQ(ParseHosts("tupi1", kPlace), (std::vector<std::string>{"tupi1"}));
  EXPECT_EQ(ParseHosts(" tupi1 + tupi2 ", kPlace), (std::vector<std::string>{"tupi1", "tupi2"}));
  EXPECT_EQ(JoinHosts({"tupi1", "tupi2"}), "tupi1+tupi2");
  for (const char* text : {"", "+", "a+", "+a", "a++b", "a+ +b"}) {
    const auto error = ErrorOf([&] { ParseHosts(text, kPlace); });
    EXPECT_TRUE(Says(error, "has an empty host name; allowed: host names joined by +")) << text;
  }
}

TEST(Parse, HostsThatStandApartHaveTheSameRules) {
  EXPECT_EQ(CheckedHosts({"tupi1", " tupi2 "}, kPlace),
            (std::vector<std::string>{"tupi1", "tupi2"}));
  EXPECT_TRUE(CheckedHosts({}, kPlace).empty());
  EXPECT_TRUE(Says(ErrorOf([&] { CheckedHosts({"a", ""}, kPlace); }), "has an empty host name"));
  EXPECT_TRUE(Says(ErrorOf([&] { CheckedHosts({"a", "a"}, kPlace); }), "names a host twice"));
  EXPECT_TRUE(Says(ErrorOf([&] { CheckedHosts({"a+b"}, kPlace); }),
                   "'a+b' is not the name of one host; allowed: names without +"));
}

// A beginning is as near as one letter; a word that goes on behind a name is as far as its letters.
TEST(NearestName, BeginningsAreNear) {
  const std::vector<std::string> names = {"predict", "recommend"};
  EXPECT_EQ(NearestName("recom", names), "recommend");
  EXPECT_EQ(NearestName("Rec", names), "recommend");
  EXPECT_EQ(NearestName("re", names), "") << "too short to tell";
  EXPECT_EQ(NearestName("predicts", names), "predict");
  EXPECT_EQ(NearestName("predictions", names), "") << "four letters more than the name";
}

TEST(Parse, Trim) {
  EXPECT_EQ(Trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(Trim(" \r\n"), "");
  EXPECT_EQ(Trim(""), "");
}

TEST(Parse, PartsOfAList) {
  using V = std::vector<std::string>;
  EXPECT_EQ(SplitList("1,2, 3"), (V{"1", "2", " 3"}));
  EXPECT_EQ(SplitList("ring"), (V{"ring"}));
  EXPECT_EQ(SplitList(""), (V{""}));
  EXPECT_EQ(SplitList(",8,"), (V{"", "8", ""}));
}

// ---- Text.

TEST(Parse, Utf8) {
  for (const char* text : {"", "plain", "µs", "é", "日本", "\U0001F600", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  const struct {
    const char* bytes;
    const char* what;
  } cases[] = {{"\xff", "no lead byte"},
               {"\x80", "a continuation alone"},
               {"\xc3", "cut short"},
               {"\xe2\x82", "cut short"},
               {"\xc3(", "not a continuation"},
               {"\xc0\xaf", "overlong slash"},
               {"\xe0\x80\xaf", "overlong slash"},
               {"\xf0\x80\x80\xaf", "overlong slash"},
               {"\xed\xa0\x80", "a surrogate"},
               {"\xf4\x90\x80\x80", "beyond Unicode"},
               {"\xf8\x88\x80\x80\x80", "five bytes"},
               {"caf\xe9", "Latin-1"}};
  for (const auto& c : cases) EXPECT_FALSE(IsUtf8(c.bytes)) << c.what;
  EXPECT_TRUE(IsUtf8("\xef\xbf\xbd")) << "what stands for such bytes is text";
}

TEST(Parse, Controls) {
  for (const char* text : {"", "plain ~", "\u00a0", "\u00bf", "日本", "\xc2"}) {
    EXPECT_FALSE(HasControls(text)) << text;
    EXPECT_EQ(Printable(text), text);
  }
  const struct {
    const char* text;
    const char* printed;
  } cases[] = {{"\x01", "\\x01"},   {"a\x1f", "a\\x1f"},      {"a\tb\n", "a\\x09b\\x0a"},
               {"\x7fz", "\\x7fz"}, {"\u0080", "\\xc2\\x80"}, {"é\u009f2J", "é\\xc2\\x9f2J"}};
  for (const auto& c : cases) {
    EXPECT_TRUE(HasControls(c.text)) << c.printed;
    EXPECT_EQ(Printable(c.text), c.printed);
  }
}

TEST(Parse, ANameHasNoControls) {
  EXPECT_EQ(CheckedName("résumé\u00a0(2)", kPlace), "résumé\u00a0(2)");
  for (const char* text : {"\x1b[2J", "a\nb", "a\x7f", "a\u009b31m"}) {
    EXPECT_TRUE(Says(ErrorOf([&] { CheckedName(text, kPlace); }),
                     "has a control character; allowed: text on one line"))
        << text;
  }
}

TEST(Parse, CodePointsOfWhatIsNotUtf8) {
  const auto decode = [](std::string_view text) {
    std::vector<char32_t> out;
    for (std::size_t i = 0; i < text.size();) out.push_back(NextCodePoint(text, &i));
    return out;
  };
  using V = std::vector<char32_t>;
  EXPECT_EQ(decode("aé€\xf0\x9f\x9a\x80"), (V{'a', 0xe9, 0x20ac, 0x1f680}));
  EXPECT_EQ(decode("\xc0\xaf"), (V{0xfffd, 0xfffd}));              // overlong
  EXPECT_EQ(decode("\xe0\x80\xaf"), (V{0xfffd, 0xfffd, 0xfffd}));  // overlong
  EXPECT_EQ(decode("\xed\xa0\x80"), (V{0xfffd, 0xfffd, 0xfffd}));  // surrogate
  EXPECT_EQ(decode("\xf5\x80"), (V{0xfffd, 0xfffd}));              // above U+10FFFF
  EXPECT_EQ(decode("\xe2\x82"), (V{0xfffd, 0xfffd}));              // ends early
  EXPECT_EQ(decode("\xe2(x"), (V{0xfffd, '(', 'x'}));              // one byte lost, not three
}

}  // namespace
}  // namespace stepcast
