// Numbers, tables and bars, read as a person reads them.
#include "predictor/report/terminal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace stepcast {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Style kPlain{false, false};
constexpr Style kUtf8{false, true};
constexpr Style kColour{true, true};

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::string line;
  for (char c : text) {
    if (c == '\n') {
      lines.push_back(line);
      line.clear();
    } else {
      line += c;
    }
  }
  EXPECT_EQ(line, "") << "the last line does not end";
  return lines;
}

void ExpectNoTrailingSpace(const std::string& text) {
  for (const std::string& line : Lines(text)) {
    EXPECT_TRUE(line.empty() || line.back() != ' ') << '"' << line << '"';
  }
}

// ---- Numbers.

TEST(FormatNumber, ThreeSignificantDigitsAndAllWholeOnes) {
  EXPECT_EQ(FormatNumber(0.0), "0");
  EXPECT_EQ(FormatNumber(-0.0), "0");
  EXPECT_EQ(FormatNumber(9.3349), "9.33");
  EXPECT_EQ(FormatNumber(9.996), "10");
  EXPECT_EQ(FormatNumber(99.96), "100");
  EXPECT_EQ(FormatNumber(204.4), "204");
  EXPECT_EQ(FormatNumber(12345.6), "12,346");
  EXPECT_EQ(FormatNumber(999999.7), "1,000,000");
  EXPECT_EQ(FormatNumber(-1234.0), "-1,234");
  EXPECT_EQ(FormatNumber(0.031249), "0.0312");
  EXPECT_EQ(FormatNumber(0.5), "0.5");
  EXPECT_EQ(FormatNumber(1.0), "1");
  EXPECT_EQ(FormatNumber(100.0), "100");
  EXPECT_EQ(FormatNumber(0.0001), "0.0001");
  EXPECT_EQ(FormatNumber(1.2345e-5), "1.23e-05");
  EXPECT_EQ(FormatNumber(5e-324), "4.94e-324");
  EXPECT_EQ(FormatNumber(1e15), "1e+15");
  EXPECT_EQ(FormatNumber(1.7976e308), "1.8e+308");
  EXPECT_EQ(FormatNumber(kNan), "nan");
  EXPECT_EQ(FormatNumber(-kInfinity), "-inf");
}

TEST(FormatDuration, PicksTheUnitAfterRounding) {
  EXPECT_EQ(FormatDuration(Seconds(0.0)), "0 s");
  EXPECT_EQ(FormatDuration(Seconds(9.33)), "9.33 s");
  EXPECT_EQ(FormatDuration(Milliseconds(204.0)), "204 ms");
  EXPECT_EQ(FormatDuration(Microseconds(12.5)), "12.5 us");
  EXPECT_EQ(FormatDuration(Microseconds(1.0)), "1 us");
  EXPECT_EQ(FormatDuration(Seconds(3e-9)), "3 ns");
  EXPECT_EQ(FormatDuration(Seconds(5e-13)), "0.0005 ns");
  EXPECT_EQ(FormatDuration(Milliseconds(999.4)), "999 ms");
  EXPECT_EQ(FormatDuration(Milliseconds(999.6)), "1 s");
  EXPECT_EQ(FormatDuration(Microseconds(999.6)), "1 ms");
  EXPECT_EQ(FormatDuration(Seconds(59.94)), "59.9 s");
  EXPECT_EQ(FormatDuration(Seconds(59.96)), "1 min 00 s");
  EXPECT_EQ(FormatDuration(Seconds(725.0)), "12 min 05 s");
  EXPECT_EQ(FormatDuration(Seconds(3599.4)), "59 min 59 s");
  EXPECT_EQ(FormatDuration(Seconds(3599.6)), "1 h 00 min");
  EXPECT_EQ(FormatDuration(Seconds(7500.0)), "2 h 05 min");
  EXPECT_EQ(FormatDuration(Seconds(86399.0)), "1 d 00 h");
  EXPECT_EQ(FormatDuration(Seconds(3.0 * 86400 + 4 * 3600)), "3 d 04 h");
  EXPECT_EQ(FormatDuration(Seconds(12.3 * 365.25 * 86400)), "12.3 years");
  EXPECT_EQ(FormatDuration(Seconds(1000.0 * 86400 - 3600)), "999 d 23 h");
  EXPECT_EQ(FormatDuration(Seconds(1000.0 * 86400)), "2.74 years");
  EXPECT_EQ(FormatDuration(Seconds(1e300)), "3.17e+292 years");
  EXPECT_EQ(FormatDuration(Milliseconds(-12.5)), "-12.5 ms");
  EXPECT_EQ(FormatDuration(Seconds(kNan)), "nan");
  EXPECT_EQ(FormatDuration(Seconds(kInfinity)), "inf");
}

TEST(FormatRate, BitsToGigabits) {
  EXPECT_EQ(FormatRate(MegabitsPerSecond(0.9996)), "1 Mbit/s");
  EXPECT_EQ(FormatRate(MegabitsPerSecond(0.9994)), "999 kbit/s");
  EXPECT_EQ(FormatRate(MegabitsPerSecond(0.056)), "56 kbit/s");
  EXPECT_EQ(FormatRate(MegabitsPerSecond(0.0009996)), "1 kbit/s");
  EXPECT_EQ(FormatRate(MegabitsPerSecond(0.000500)), "500 bit/s");
  EXPECT_EQ(FormatRate(MegabitsPerSecond(1e-6)), "1 bit/s");
  EXPECT_EQ(FormatRate(MegabitsPerSecond(-0.056)), "-56 kbit/s");
  EXPECT_EQ(FormatRate(MegabitsPerSecond(94.9)), "94.9 Mbit/s");
  EXPECT_EQ(FormatRate(GigabitsPerSecond(0.82)), "820 Mbit/s");
  EXPECT_EQ(FormatRate(MegabitsPerSecond(999.4)), "999 Mbit/s");
  EXPECT_EQ(FormatRate(MegabitsPerSecond(999.6)), "1 Gbit/s");
  EXPECT_EQ(FormatRate(GigabitsPerSecond(1.0)), "1 Gbit/s");
  EXPECT_EQ(FormatRate(GigabitsPerSecond(9.416)), "9.42 Gbit/s");
  EXPECT_EQ(FormatRate(GigabytesPerSecond(150.0)), "1,200 Gbit/s");
  EXPECT_EQ(FormatRate(MegabitsPerSecond(0.0)), "0 Mbit/s");
  EXPECT_EQ(FormatRate(MegabitsPerSecond(kNan)), "nan");
}

TEST(FormatSize, BinaryUnitsAndTheExactForm) {
  EXPECT_EQ(FormatSize(Bytes(0.0)), "0 B");
  EXPECT_EQ(FormatSize(Bytes(512.0)), "512 B");
  EXPECT_EQ(FormatSize(Bytes(1023.0)), "1,023 B");
  EXPECT_EQ(FormatSize(Bytes(1023.7)), "1 KiB");
  EXPECT_EQ(FormatSize(Bytes(1024.0)), "1 KiB");
  EXPECT_EQ(FormatSize(Bytes(102334368.0)), "97.6 MiB");
  EXPECT_EQ(FormatSize(Mebibytes(1023.8)), "1 GiB");
  EXPECT_EQ(FormatSize(Gibibytes(1.23)), "1.23 GiB");
  EXPECT_EQ(FormatSize(Gibibytes(16.0 * 1024 * 1024 * 1024)), "16,384 PiB");
  EXPECT_EQ(FormatSize(Mebibytes(-25.0)), "-25 MiB");
  EXPECT_EQ(FormatSize(Bytes(kInfinity)), "inf");
  EXPECT_EQ(FormatSizeExact(Bytes(102334368.0)), "102,334,368 B");
  EXPECT_EQ(FormatSizeExact(Bytes(0.4)), "0 B");
  EXPECT_EQ(FormatSizeExact(Bytes(999.0)), "999 B");
  EXPECT_EQ(FormatSizeExact(Gibibytes(1.0)), "1,073,741,824 B");
}

TEST(FormatCount, GroupsByThousands) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(-0.4), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(12345678), "12,345,678");
  EXPECT_EQ(FormatCount(-123456), "-123,456");
  EXPECT_EQ(FormatCount(kNan), "nan");
  EXPECT_EQ(Several(1, "rank"), "1 rank");
  EXPECT_EQ(Several(0, "rank"), "0 ranks");
  EXPECT_EQ(Several(1234, "rank"), "1,234 ranks");
}

TEST(FormatLoss, OfLessThanAllIsNeverAll) {
  EXPECT_EQ(FormatLoss(0.0), "0 %");
  EXPECT_EQ(FormatLoss(1e-9), "1e-07 %");
  EXPECT_EQ(FormatLoss(0.0123456), "1.23 %");
  EXPECT_EQ(FormatLoss(0.999), "99.9 %");
  EXPECT_EQ(FormatLoss(0.9996), "99.96 %");
  EXPECT_EQ(FormatLoss(0.999999), "99.9999 %");
  EXPECT_EQ(FormatLoss(1.0), "100 %");
  EXPECT_EQ(FormatLoss(kNan), "nan");
  for (double left = 4e-3; left > 1e-15; left *= 0.37) {
    const std::string text = FormatLoss(1.0 - left);
    EXPECT_TRUE(text.starts_with("99.")) << text;
    EXPECT_NE(text[text.size() - 3], '0') << text;
  }
}

TEST(FormatPercentFactorThroughput, ExactStrings) {
  EXPECT_EQ(FormatPercent(0.0481), "4.81 %");
  EXPECT_EQ(FormatPercent(0.9), "90 %");
  EXPECT_EQ(FormatPercent(1.0), "100 %");
  EXPECT_EQ(FormatPercent(0.0), "0 %");
  EXPECT_EQ(FormatPercent(-0.125), "-12.5 %");
  EXPECT_EQ(FormatPercent(kNan), "nan");
  EXPECT_EQ(FormatFactor(2.2361), "2.24x");
  EXPECT_EQ(FormatFactor(1.0), "1x");
  EXPECT_EQ(FormatFactor(0.5), "0.5x");
  EXPECT_EQ(FormatFactor(kInfinity), "inf");
  EXPECT_EQ(FormatThroughput(Samples(187.3) / Seconds(1.0)), "187 samples/s");
  EXPECT_EQ(FormatThroughput(Samples(32.0) / Milliseconds(2.5)), "12,800 samples/s");
  EXPECT_EQ(FormatThroughput(Samples(1.0) / Seconds(3.0)), "0.333 samples/s");
}

// Whatever is printed lies within half a unit of the third digit of what was given.
TEST(FormatNumber, RoundTripsToThreeDigits) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(-9.0, 14.0);
  for (int i = 0; i < 2000; ++i) {
    const double value = std::pow(10.0, exponent(random));
    std::string text = FormatNumber(value);
    text.erase(std::remove(text.begin(), text.end(), ','), text.end());
    EXPECT_NEAR(std::stod(text) / value, 1.0, 0.00501) << text;
  }
}

// ---- The terminal.

TEST(Style, ColourNeedsATerminalThatWantsIt) {
  TerminalEnvironment environment;
  environment.term = "xterm-256color";
  EXPECT_FALSE(StyleFor(environment).colour);
  environment.is_terminal = true;
  EXPECT_TRUE(StyleFor(environment).colour);
  environment.no_color = "";  // present but empty: not set, says no-color.org
  EXPECT_TRUE(StyleFor(environment).colour);
  environment.no_color = "1";
  EXPECT_FALSE(StyleFor(environment).colour);
  environment.no_color.reset();
  environment.term = "dumb";
  EXPECT_FALSE(StyleFor(environment).colour);
  environment.term.reset();
  EXPECT_FALSE(StyleFor(environment).colour);
}

TEST(Style, Utf8ByTheFirstLocaleVariableThatIsSet) {
  TerminalEnvironment environment;
  EXPECT_FALSE(StyleFor(environment).utf8);
  environment.lang = "pt_BR.UTF-8";
  EXPECT_TRUE(StyleFor(environment).utf8);
  environment.lc_ctype = "C";
  EXPECT_FALSE(StyleFor(environment).utf8);
  environment.lc_all = "en_US.utf8";
  EXPECT_TRUE(StyleFor(environment).utf8);
  environment.lc_all = "";
  EXPECT_FALSE(StyleFor(environment).utf8);
}

TEST(Width, TerminalThenColumnsThenHundred) {
  TerminalEnvironment environment;
  EXPECT_EQ(WidthFor(environment), 100);
  environment.columns = "80";
  EXPECT_EQ(WidthFor(environment), 80);
  environment.columns_of_terminal = 90;
  EXPECT_EQ(WidthFor(environment), 90);
  environment.columns_of_terminal = 400;
  EXPECT_EQ(WidthFor(environment), 120);
  environment.columns_of_terminal = 20;
  EXPECT_EQ(WidthFor(environment), 60);
  environment.columns_of_terminal.reset();
  for (const char* nonsense : {"", "wide", "80 ", "-5", "0", "99999999999999"}) {
    environment.columns = nonsense;
    EXPECT_EQ(WidthFor(environment), 100) << nonsense;
  }
}

// ---- Text.

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth(""), 0);
  EXPECT_EQ(DisplayWidth("ring"), 4);
  EXPECT_EQ(DisplayWidth("größe"), 5);
  EXPECT_EQ(DisplayWidth("e\xcc\x81"), 1);  // e and a combining accent
  EXPECT_EQ(DisplayWidth("█▓▒░─"), 5);
  EXPECT_EQ(DisplayWidth("訓練"), 4);
  EXPECT_EQ(DisplayWidth("\xf0\x9f\x9a\x80"), 2);  // a rocket
  EXPECT_EQ(DisplayWidth("\x1b[38;5;25mab\x1b[0m"), 2);
  EXPECT_EQ(DisplayWidth("\xff\xfe"), 2);
}

TEST(Heading, RuleIsAsWideAsTheTitle) {
  EXPECT_EQ(Heading("Größe", kPlain), "Größe\n-----\n");
  EXPECT_EQ(Heading("Time", kUtf8), "Time\n────\n");
  EXPECT_EQ(Heading("Time", kColour), "\x1b[1mTime\x1b[0m\n");
}

TEST(FlagLine, WrapsUnderAHangingIndent) {
  EXPECT_EQ(FlagLine("loss is above the range checked", kPlain, 20),
            "! loss is above the\n  range checked\n");
  EXPECT_EQ(FlagLine("", kPlain), "!\n");
  EXPECT_EQ(FlagLine("averyveryverylongword b", kPlain, 10), "! averyveryverylongword\n  b\n");
  EXPECT_EQ(NoteLine("fitted on 14 runs", kPlain), "- fitted on 14 runs\n");
  EXPECT_EQ(NoteLine("fitted\non\t14 runs", kUtf8), "· fitted on 14 runs\n");
  EXPECT_EQ(FlagLine("x", kColour), "\x1b[1;38;5;166m!\x1b[0m x\n");
}

TEST(HangingLine, KeepsANumberWithItsUnit) {
  EXPECT_EQ(HangingLine("  step  ", "takes about 12.5 ms or more", 21),
            "  step  takes about\n        12.5 ms or\n        more\n");
  EXPECT_EQ(HangingLine("", "within (90 %) all", 10), "within\n(90 %) all\n");
  EXPECT_EQ(HangingLine("", "a 1,281,167 steps b", 15), "a\n1,281,167 steps\nb\n");
  // A list's comma ends it, and a name is no number.
  EXPECT_EQ(HangingLine("", "fast 4, slow", 8), "fast 4,\nslow\n");
  EXPECT_EQ(HangingLine("", "on resnet50 only", 11), "on resnet50\nonly\n");
  EXPECT_EQ(HangingLine("", "on resnet50 only", 10), "on\nresnet50\nonly\n") << "one too few";
  EXPECT_EQ(HangingLine("- ", "on resnet50", 12), "- on\n  resnet50\n");
  EXPECT_EQ(HangingLine("- ", "on resnet50", 13), "- on resnet50\n");
  EXPECT_EQ(HangingLine("! ", "ends with 5", 100), "! ends with 5\n");
}

// Names come from files of other people: they must not drive the terminal.
TEST(FlagLine, ControlCharactersAreHarmless) {
  EXPECT_EQ(FlagLine("a\x1b]0;title\x07z\x1b[2Jq\rr", kPlain), "! a ]0;title z [2Jq r\n");
  EXPECT_EQ(FlagLine("a\xc2\x9bz", kPlain), "! a z\n");  // CSI in one code point
}

TEST(Table, AlignsByDisplayWidth) {
  Table table({{"workload", "", Align::kLeft}, {"workers", ""}, {"step time", "s"}});
  table.AddRow({"resnet50", "4", "0.304"});
  table.AddRow({"größe訓練", "16", "12.9"});
  table.AddRule();
  table.AddRow({"all", "", ""});
  EXPECT_EQ(table.Render(kPlain, 2),
            "  workload   workers  step time [s]\n"
            "  ---------  -------  -------------\n"
            "  resnet50         4          0.304\n"
            "  größe訓練       16           12.9\n"
            "  ---------  -------  -------------\n"
            "  all\n");
  const std::vector<std::string> lines = Lines(table.Render(kUtf8));
  EXPECT_EQ(lines[1], "─────────  ───────  ─────────────");
  ExpectNoTrailingSpace(table.Render(kUtf8, 4));
}

TEST(Table, ColouredCellsStayAligned) {
  Table table({{"a", ""}, {"b", ""}});
  table.AddRow({"\x1b[1m1\x1b[0m", "2"});
  table.AddRow({"100", "2"});
  const std::vector<std::string> lines = Lines(table.Render(kPlain));
  EXPECT_EQ(DisplayWidth(lines[2]), DisplayWidth(lines[3]));
}

TEST(Table, RefusesARowOfAnotherLength) {
  EXPECT_THROW(Table({}), std::invalid_argument);
  Table table({{"a", ""}, {"b", ""}});
  EXPECT_THROW(table.AddRow({"1"}), std::invalid_argument);
  EXPECT_THROW(table.AddRow({"1", "2", "3"}), std::invalid_argument);
  EXPECT_THROW(table.AddRow({}), std::invalid_argument);
  EXPECT_EQ(table.Render(kPlain), "a  b\n-  -\n");
}

// ---- Bars.

TEST(AllocateCells, KnownCases) {
  using V = std::vector<int>;
  EXPECT_EQ(AllocateCells({1, 1, 2}, 8), (V{2, 2, 4}));
  EXPECT_EQ(AllocateCells({1, 1, 1}, 10), (V{4, 3, 3}));
  EXPECT_EQ(AllocateCells({0.49, 0.31, 0.2}, 10), (V{5, 3, 2}));
  EXPECT_EQ(AllocateCells({1e-12, 1, 0}, 10), (V{1, 9, 0}));
  EXPECT_EQ(AllocateCells({1, 1e-3, 1e-3, 1e-3}, 4), (V{1, 1, 1, 1}));
  EXPECT_EQ(AllocateCells({1, 1, 1}, 3), (V{1, 1, 1}));
  EXPECT_EQ(AllocateCells({0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, 7), (V{1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(AllocateCells({0, 0}, 10), (V{0, 0}));
  EXPECT_EQ(AllocateCells({}, 10), V{});
  EXPECT_EQ(AllocateCells({1.7e308, 1.7e308}, 10), (V{5, 5}));
  EXPECT_EQ(AllocateCells({5e-324, 1.7e308}, 10), (V{1, 9}));
}

TEST(AllocateCells, Refuses) {
  EXPECT_THROW(AllocateCells({1, -1}, 10), std::invalid_argument);
  EXPECT_THROW(AllocateCells({kNan}, 10), std::invalid_argument);
  EXPECT_THROW(AllocateCells({kInfinity}, 10), std::invalid_argument);
  EXPECT_THROW(AllocateCells({1, 1, 1}, 2), std::invalid_argument);
  EXPECT_THROW(AllocateCells({1}, 0), std::invalid_argument);
}

TEST(AllocateCells, SumsToWidthShowsEachPartAndKeepsTheOrder) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> exponent(-8.0, 4.0);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t count = 1 + random() % 12;
    const int width = static_cast<int>(count + random() % 100);
    std::vector<double> values(count);
    for (double& value : values) value = random() % 5 == 0 ? 0.0 : std::pow(10.0, exponent(random));
    if (count > 2 && random() % 2 == 0) values[1] = values[0];
    const std::vector<int> cells = AllocateCells(values, width);
    const bool all_zero =
        std::all_of(values.begin(), values.end(), [](double v) { return v == 0; });
    EXPECT_EQ(std::accumulate(cells.begin(), cells.end(), 0), all_zero ? 0 : width);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(cells[i] > 0, values[i] > 0.0);
      for (std::size_t j = 0; j < count; ++j) {
        EXPECT_TRUE(values[i] <= values[j] || cells[i] >= cells[j]);
        EXPECT_TRUE(values[i] != values[j] || std::abs(cells[i] - cells[j]) <= 1);
      }
    }
  }
}

std::vector<BarPart> Breakdown() {
  return {{"compute", 0.204, "204 ms"},
          {"exposed sync", 0.0959, "95.9 ms"},
          {"update", 0.0001, "0.1 ms"},
          {"input", 0.0, "0 s"}};
}

TEST(StackedBar, AsciiText) {
  EXPECT_EQ(StackedBar(Breakdown(), 20, kPlain),
            "  #############======+\n"
            "  ## compute        204 ms  68.0 %\n"
            "  == exposed sync  95.9 ms  32.0 %\n"
            "  ++ update         0.1 ms  <0.1 %\n"
            "     input             0 s   0.0 %\n");
}

TEST(StackedBar, EveryStyleFillsTheWidthAndKeepsPartsApart) {
  std::vector<BarPart> parts;
  for (int i = 0; i < 10; ++i) {
    parts.push_back({"part " + std::to_string(i), 1.0 + i, std::to_string(1 + i)});
  }
  for (const Style& style : {kPlain, kUtf8, kColour, Style{true, false}}) {
    const std::string text = StackedBar(parts, 70, style, 0);
    ExpectNoTrailingSpace(text);
    const std::vector<std::string> lines = Lines(text);
    ASSERT_EQ(lines.size(), 11U);
    EXPECT_EQ(DisplayWidth(lines[0]), 70);
    // The swatches (all before the first space of a legend line) all differ.
    std::vector<std::string> swatches;
    for (std::size_t i = 1; i < lines.size(); ++i) {
      EXPECT_EQ(DisplayWidth(lines[i]), DisplayWidth(lines[1]));
      swatches.push_back(lines[i].substr(0, lines[i].find(" part")));
      EXPECT_EQ(DisplayWidth(swatches.back()), 2);
    }
    std::sort(swatches.begin(), swatches.end());
    EXPECT_EQ(std::unique(swatches.begin(), swatches.end()), swatches.end());
    EXPECT_EQ(text.find('\x1b') != std::string::npos, style.colour);
    const bool ascii = std::all_of(text.begin(), text.end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    EXPECT_EQ(ascii, !style.utf8);
  }
}

// Half a thousandth is told as a tenth of a per cent, and less as less.
TEST(StackedBar, NothingLooksLikeZeroThatIsNot) {
  const auto share = [](double part) {
    const std::string row =
        Lines(StackedBar({{"a", part, ""}, {"b", 1 - part, ""}}, 10, kPlain))[1];
    return row.substr(row.find_first_not_of(' ', row.find(" a ") + 2));
  };
  EXPECT_EQ(share(0.0004), "<0.1 %");
  EXPECT_EQ(share(0.00051), "0.1 %");
  EXPECT_EQ(share(0), "0.0 %");
}

// Full blocks of the palette first, then a palette of other blocks.
TEST(StackedBar, ColoursComeAgainWithOtherBlocks) {
  std::vector<BarPart> parts(8, {"part", 1, ""});
  const std::string text = StackedBar(parts, 8, kColour, 0);
  const std::string bar = Lines(text)[0];
  for (const int colour : {25, 172, 36, 175, 74, 166, 246}) {
    EXPECT_NE(bar.find("\x1b[38;5;" + std::to_string(colour) + "m█"), std::string::npos) << colour;
  }
  EXPECT_TRUE(bar.ends_with("\x1b[38;5;25m▓\x1b[0m")) << bar;
}

// Where a character is of no width, or of two.
TEST(DisplayWidth, EndsOfItsRanges) {
  const std::pair<char32_t, int> widths[] = {
      {0x2ff, 1},   {0x300, 0},   {0x36f, 0},   {0x370, 1},   {0x10ff, 1},  {0x1100, 2},
      {0x200a, 1},  {0x200b, 0},  {0x200f, 0},  {0x2010, 1},  {0x303e, 2},  {0x303f, 1},
      {0x4e00, 2},  {0xa4cf, 2},  {0xa4d0, 1},  {0xac00, 2},  {0xd7a3, 2},  {0xd7a4, 1},
      {0xfe0f, 0},  {0xfe10, 1},  {0xfeff, 0},  {0xff00, 2},  {0xff60, 2},  {0xff61, 1},
      {0x1f2ff, 1}, {0x1f300, 2}, {0x1faff, 2}, {0x1fb00, 1}, {0x20000, 2}, {0x3fffd, 2},
      {0x115f, 2},  {0x1160, 1},  {0x1aaf, 1},  {0x1ab0, 0},  {0x1aff, 0},  {0x1b00, 1},
      {0x1dbf, 1},  {0x1dc0, 0},  {0x1dff, 0},  {0x1e00, 1},  {0x20cf, 1},  {0x20d0, 0},
      {0x20ff, 0},  {0x2100, 1},  {0x2e7f, 1},  {0x2e80, 2},  {0x3040, 1},  {0x3041, 2},
      {0x4dbf, 2},  {0x4dc0, 1},  {0x4dff, 1},  {0xabff, 1},  {0xf8ff, 1},  {0xf900, 2},
      {0xfaff, 2},  {0xfb00, 1},  {0xfdff, 1},  {0xfe00, 0},  {0xfe2f, 1},  {0xfe30, 2},
      {0xfe6f, 2},  {0xfe70, 1},  {0xfeff, 0},  {0xffdf, 1},  {0xffe0, 2},  {0xffe6, 2},
      {0xffe7, 1},  {0x1ffff, 1}, {0x3fffe, 1}};
  for (const auto& [character, width] : widths) {
    EXPECT_EQ(internal::CodePointWidth(character), width) << static_cast<unsigned>(character);
  }
}

TEST(StackedBar, NothingToShow) {
  EXPECT_EQ(StackedBar({{"a", 0.0, ""}}, 10, kPlain), "  (all parts are zero)\n     a  0.0 %\n");
  EXPECT_THROW(StackedBar({}, 10, kPlain), std::invalid_argument);
  EXPECT_THROW(StackedBar({{"a", kNan, ""}}, 10, kPlain), std::invalid_argument);
}

}  // namespace
}  // namespace stepcast
