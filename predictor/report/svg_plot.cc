#include "predictor/report/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "data/values/utf8.h"
#include "predictor/report/terminal.h"

namespace stepcast {
namespace {

// ---- The page: all lengths in units of the viewBox.

constexpr double kDirectWidth = 700.0;  // the least that has room for labels beside the plot
constexpr double kMargin = 26.0;
constexpr double kTitleSize = 18.0;
constexpr double kLongTitleSize = 15.0;
constexpr double kSubtitleSize = 13.0;
constexpr double kTextSize = 12.0;
constexpr double kLineHeight = 15.0;  // of kTextSize
constexpr double kLegendRow = 21.0;
constexpr int kLegendRows = 6;
constexpr double kMarkRow = 16.0;
constexpr int kMarkRows = 4;

// Labels at the right end of lines.
constexpr double kLabelGap = 8.0;             // from the plot to the labels
constexpr double kLabelMaxGap = 40.0;         // from the line's end, without a thin line in between
constexpr double kLabelWidth = 156.0;         // where they wrap
constexpr double kLabelMaxShift = 40.0;       // from the line's end, lest the eye lose it
constexpr double kLabelMinReach = 0.93;       // of the x axis, for a line to be labelled there
constexpr std::ptrdiff_t kMostFullBands = 4;  // more are drawn lightly, lest they hide each other
constexpr double kFullBand = 0.14;            // opacity
constexpr double kLightBand = 0.05;
constexpr std::size_t kMaxLargeMarkers = 40;  // more points without a line are drawn small
constexpr std::size_t kMaxLineMarkers = 24;   // a line of more points leaves all without markers

constexpr const char* kFont = "Helvetica, Arial, 'DejaVu Sans', sans-serif";
// Okabe and Ito's colours without their yellow, which fades on white; for text, others of the same
// hue, with a contrast to the ground of 4.5 and more.
struct Hue {
  const char* line;
  const char* text;
};

struct Palette {
  const char* paper;
  const char* ink;
  const char* soft_ink;
  const char* grid;
  const char* axis_line;
  const char* mark_line;
  std::array<Hue, 7> hues;
};
constexpr Palette kLight = {"#ffffff",
                            "#222222",
                            "#555555",
                            "#e4e4e4",
                            "#888888",
                            "#777777",
                            {{{"#0072b2", "#0068a3"},
                              {"#d55e00", "#b04d00"},
                              {"#009e73", "#00775a"},
                              {"#cc79a7", "#a2477a"},
                              {"#e69f00", "#8f6300"},
                              {"#56b4e9", "#1f76a8"},
                              {"#000000", "#000000"}}}};
constexpr Palette kDark = {"#1a212b",
                           "#e6ebf2",
                           "#a4b0be",
                           "#2f3947",
                           "#7c8896",
                           "#8e99a7",
                           {{{"#3f97d9", "#6fb4ea"},
                             {"#f0803c", "#f59c66"},
                             {"#1fbd90", "#3fd0a6"},
                             {"#dd94bd", "#e6aecd"},
                             {"#e9ab26", "#efbf57"},
                             {"#8fd0f5", "#a8dbf8"},
                             {"#e6ebf2", "#e6ebf2"}}}};
// The names under which a page's style has one of the two: see PlotStyle.
constexpr Palette kOfPage = {"var(--plot-paper)",
                             "var(--plot-ink)",
                             "var(--plot-soft-ink)",
                             "var(--plot-grid)",
                             "var(--plot-axis)",
                             "var(--plot-mark)",
                             {{{"var(--plot-line-0)", "var(--plot-text-0)"},
                               {"var(--plot-line-1)", "var(--plot-text-1)"},
                               {"var(--plot-line-2)", "var(--plot-text-2)"},
                               {"var(--plot-line-3)", "var(--plot-text-3)"},
                               {"var(--plot-line-4)", "var(--plot-text-4)"},
                               {"var(--plot-line-5)", "var(--plot-text-5)"},
                               {"var(--plot-line-6)", "var(--plot-text-6)"}}}};

// ---- Numbers and text.

// A coordinate: two decimals at most, never "-0".
std::string Num(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

// mantissa * 10^exponent, correctly rounded, so that ticks come out the same everywhere.
double Scaled(int mantissa, int exponent) {
  const std::string text = fmt::format("{}e{}", mantissa, exponent);
  double value = 0.0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int FloorLog10(double value) {
  int exponent = static_cast<int>(std::floor(std::log10(value)));
  if (Scaled(1, exponent + 1) <= value) ++exponent;
  if (Scaled(1, exponent) > value) --exponent;
  return exponent;
}

std::string Superscript(int exponent) {
  constexpr std::array<const char*, 10> kDigits = {"⁰", "¹", "²", "³", "⁴",
                                                   "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out;
  for (char c : std::to_string(exponent)) {
    out += c == '-' ? "⁻" : kDigits[static_cast<std::size_t>(c - '0')];
  }
  return out;
}

// Groups thousands and sets a real minus sign.
std::string Typeset(const std::string& number) {
  const std::string grouped = internal::GroupThousands(number);
  return grouped[0] == '-' ? "−" + grouped.substr(1) : grouped;
}

// The width of a character in em, after DejaVu Sans, the widest of the usual fonts.
double CharacterWidth(char32_t c) {
  if (c >= 0x80) return 0.64 * internal::CodePointWidth(c);
  if (c >= '0' && c <= '9') return 0.64;
  switch (c) {
    case 'i':
    case 'j':
    case 'l':
    case '\'':
    case 'I':
    case '|':
      return 0.30;
    case ' ':
    case '.':
    case ',':
    case ':':
    case ';':
    case '/':
      return 0.33;
    case 'f':
    case 'r':
    case 't':
    case '-':
    case '(':
    case ')':
    case '[':
    case ']':
    case '!':
      return 0.40;
    case 'c':
    case 's':
    case 'z':
    case 'k':
    case 'v':
    case 'x':
    case 'y':
    case 'J':
      return 0.58;
    case 'm':
    case 'M':
    case 'W':
    case '%':
    case '@':
      return 0.96;
    case 'w':
    case 'O':
    case 'Q':
    case '+':
    case '=':
    case '<':
    case '>':
    case '#':
    case '~':
      return 0.83;
    default:
      return c >= 'A' && c <= 'Z' ? 0.70 : 0.63;
  }
}

double TextWidth(const std::string& text, double size, bool bold = false) {
  double em = 0.0;
  for (std::size_t i = 0; i < text.size();) em += CharacterWidth(NextCodePoint(text, &i));
  return em * size * (bold ? 1.1 : 1.0);
}

// `text` cut to `width`, with an ellipsis if anything is lost.
std::string Cut(const std::string& text, double size, double width, bool bold = false) {
  if (TextWidth(text, size, bold) <= width) return text;
  std::size_t end = 0;
  for (std::size_t i = 0; i < text.size();) {
    NextCodePoint(text, &i);
    if (TextWidth(text.substr(0, i) + "…", size, bold) > width) break;
    end = i;
  }
  // Rather after a whole word, if that costs little.
  const std::size_t space = text.rfind(' ', end);
  if (space != std::string::npos && space + 12 > end) end = space;
  while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == ',')) --end;
  return text.substr(0, end) + "…";
}

struct Wrapped {
  std::vector<std::string> lines;
  bool cut = false;  // some of the text did not fit
};

// `text` in at most `max_lines` lines of `width`, broken at spaces.
Wrapped Wrap(const std::string& text, double size, double width, std::size_t max_lines,
             bool bold = false) {
  Wrapped out;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \t\n\r", i), text.size());
    if (end > i) words.push_back(text.substr(i, end - i));
    i = end + 1;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!out.lines.empty()) {
      const std::string longer = out.lines.back() + ' ' + words[i];
      if (TextWidth(longer, size, bold) <= width) {
        out.lines.back() = longer;
        continue;
      }
    }
    if (out.lines.size() == max_lines) {
      // All that is left goes to the last line, which is cut.
      for (; i < words.size(); ++i) out.lines.back() += ' ' + words[i];
      break;
    }
    out.lines.push_back(words[i]);
  }
  for (std::string& line : out.lines) {
    const std::string fitting = Cut(line, size, width, bold);
    out.cut = out.cut || fitting != line;
    line = fitting;
  }
  return out;
}

// As Wrap, but with lines of about equal length, as narrow as their number allows.
Wrapped WrapEvenly(const std::string& text, double size, double width, std::size_t max_lines,
                   bool bold) {
  Wrapped best = Wrap(text, size, width, max_lines, bold);
  while (!best.cut && width > 0.0) {
    width -= 4.0;
    const Wrapped narrower = Wrap(text, size, width, best.lines.size(), bold);
    if (narrower.cut) break;
    best = narrower;
  }
  return best;
}

// ---- The data, cleaned.

struct Point {
  double x = 0.0;
  double y = 0.0;
  bool has_interval = false;
  double low = 0.0;  // on a logarithmic axis it may be zero or less
  double high = 0.0;
};

struct Curve {
  std::string name;
  double band_opacity = 0.0;
  bool dashed = false;
  bool points_only = false;
  bool small = false;                    // its markers
  std::size_t colour = 0;                // counts on behind the end of the palette
  std::vector<std::vector<Point>> runs;  // points that belong together, between gaps
  std::size_t points = 0;

  const Point& last() const { return runs.back().back(); }
};

double WithoutExtremes(double value) {
  if (std::abs(value) < 1e-200) return 0.0;
  if (std::abs(value) > 1e200) return std::numeric_limits<double>::quiet_NaN();
  return value;
}

// `zero_x` stands for an x of zero on a logarithmic axis, where it is above zero.
Curve Clean(const PlotSeries& series, std::size_t position, bool log_x, bool log_y, double zero_x) {
  const std::size_t n = series.x.size();
  const auto has_length = [n](const std::vector<double>& v) { return v.empty() || v.size() == n; };
  if (series.y.size() != n || !has_length(series.low) || !has_length(series.high) ||
      series.low.size() != series.high.size()) {
    throw std::invalid_argument(fmt::format(
        "series \"{}\" of a plot has {} x, {} y, {} low and {} high; y must be as many as x, low "
        "and high as many or none",
        series.name, n, series.y.size(), series.low.size(), series.high.size()));
  }
  Curve curve;
  curve.name = series.name;
  curve.dashed = series.dashed;
  curve.points_only = series.points_only;
  curve.colour = series.colour >= 0 ? static_cast<std::size_t>(series.colour) : position;
  bool gap = true;
  for (std::size_t i = 0; i < n; ++i) {
    Point point;
    point.x = WithoutExtremes(series.x[i]);
    // Zero is infinitely far from its neighbours, and no line leads there.
    const bool apart = log_x && point.x == 0.0 && zero_x > 0.0;
    if (apart) point.x = zero_x;
    point.y = WithoutExtremes(series.y[i]);
    if (!std::isfinite(point.x) || !std::isfinite(point.y) || (log_x && point.x <= 0.0) ||
        (log_y && point.y <= 0.0)) {
      gap = true;
      continue;
    }
    if (!series.low.empty()) {
      point.low = WithoutExtremes(series.low[i]);
      point.high = WithoutExtremes(series.high[i]);
      point.has_interval =
          std::isfinite(point.low) && std::isfinite(point.high) && (!log_y || point.high > 0.0);
    }
    if (gap || apart) curve.runs.emplace_back();
    gap = apart;
    curve.runs.back().push_back(point);
    ++curve.points;
  }
  return curve;
}

constexpr double kZeroAway = 4.0;

// Where an x of zero is drawn on a logarithmic axis: some way below the least one above zero. Zero
// where no x is.
double StandInForZero(const std::vector<PlotSeries>& series) {
  double least = std::numeric_limits<double>::infinity();
  bool any = false;
  for (const PlotSeries& one : series) {
    for (const double raw : one.x) {
      const double x = WithoutExtremes(raw);
      any = any || x == 0.0;
      if (x > 0.0) least = std::min(least, x);
    }
  }
  return any && std::isfinite(least) ? least / kZeroAway : 0.0;
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// ---- Ticks.

// The smallest of 1, 2, 5 x 10^n that is at least `raw`.
double NiceStep(double raw) {
  for (int exponent = FloorLog10(raw);; ++exponent) {
    for (int mantissa : {1, 2, 5}) {
      const double step = Scaled(mantissa, exponent);
      if (step >= raw * (1.0 - 1e-9)) return step;
    }
  }
}

// The nearest of 1, 2, 5 x 10^n at or below and at or above `value` > 0.
double NiceBelow(double value) {
  const int exponent = FloorLog10(value);
  double below = Scaled(1, exponent);
  for (int mantissa : {2, 5}) {
    if (Scaled(mantissa, exponent) <= value) below = Scaled(mantissa, exponent);
  }
  return below;
}
double NiceAbove(double value) {
  const int exponent = FloorLog10(value);
  for (int mantissa : {1, 2, 5}) {
    if (Scaled(mantissa, exponent) >= value) return Scaled(mantissa, exponent);
  }
  return Scaled(1, exponent + 1);
}

// Over less than this factor a logarithmic axis has ticks as a linear one.
constexpr double kNarrowFactor = 5.0;
// Up to this factor it has ticks at 1, 2 and 5, beyond at powers of ten: so many steps at most.
constexpr double kNiceFactor = 1000.0 * (1.0 + 1e-9);
constexpr int kDecadeSteps = 8;

// The multiples of `step` within [low, high], or a rounding error outside.
std::vector<double> TicksAt(double step, double low, double high) {
  std::vector<double> ticks;
  const double last = std::floor(high / step + 1e-9);
  for (double i = std::ceil(low / step - 1e-9); i <= last; i += 1.0) ticks.push_back(i * step);
  return ticks;
}

int FloorToMultiple(int value, int of) {
  return value >= 0 ? value / of * of : -((-value + of - 1) / of * of);
}
int CeilToMultiple(int value, int of) { return -FloorToMultiple(-value, of); }

// The least power of ten at or above `value`, as its exponent.
int CeilLog10(double value) {
  const int exponent = FloorLog10(value);
  return Scaled(1, exponent) < value ? exponent + 1 : exponent;
}

// ---- An axis: from values to [0, 1], with its ticks.

struct Axis {
  bool log = false;
  double low = 0.0;
  double high = 1.0;
  std::vector<double> ticks;
  std::vector<std::string> labels;
  std::string factor;  // "10⁶" if the labels are to be multiplied by it

  double Fraction(double value) const {
    if (log) {
      if (value <= low) return 0.0;  // also zero, which lies infinitely far below
      return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
    }
    // Halves, so that the difference of huge values stays finite.
    return (0.5 * value - 0.5 * low) / (0.5 * high - 0.5 * low);
  }
};

void LabelLinear(Axis* axis) {
  double largest = 0.0;
  for (double tick : axis->ticks) largest = std::max(largest, std::abs(tick));
  int exponent = 0;
  if (largest >= 1e6 || (largest > 0.0 && largest < 1e-3)) {
    exponent = static_cast<int>(3.0 * std::floor(FloorLog10(largest) / 3.0));
    axis->factor = "10" + Superscript(exponent);
  }
  const double step =
      axis->ticks.size() > 1 ? axis->ticks[1] - axis->ticks[0] : std::max(largest, 1e-300);
  const int decimals = std::clamp(exponent - FloorLog10(step * (1.0 + 1e-9)), 0, 12);
  for (double tick : axis->ticks) {
    // A tick that is zero but for rounding.
    const double value = std::abs(tick) < 1e-9 * step ? 0.0 : tick / Scaled(1, exponent);
    axis->labels.push_back(Typeset(fmt::format("{:.{}f}", value, decimals)));
  }
}

void LabelLog(Axis* axis) {
  const bool plain = axis->ticks.front() >= 0.99e-4 && axis->ticks.back() < 0.99e6;
  for (double tick : axis->ticks) {
    if (plain) {
      axis->labels.push_back(Typeset(fmt::format("{:.6g}", tick)));
      continue;
    }
    const int exponent = FloorLog10(tick * (1.0 + 1e-9));
    const long mantissa = std::lround(tick / Scaled(1, exponent));
    axis->labels.push_back((mantissa == 1 ? "" : fmt::format("{}×", mantissa)) + "10" +
                           Superscript(exponent));
  }
}

void LabelPowersOfTwo(Axis* axis) {
  const bool plain = axis->ticks.front() >= 0.0625 && axis->ticks.back() < 1048576.0;
  for (double tick : axis->ticks) {
    axis->labels.push_back(plain
                               ? Typeset(fmt::format("{:.10g}", tick))
                               : "2" + Superscript(static_cast<int>(std::lround(std::log2(tick)))));
  }
}

// All values within rounding of each other count as one.
bool IsOneValue(const Range& range) {
  return range.high - range.low <= 1e-9 * std::max(std::abs(range.low), std::abs(range.high));
}

Axis LinearAxis(Range range, bool is_y, int intervals, double smallest_step) {
  Axis axis;
  if (IsOneValue(range)) {
    const double value = range.high;
    range = Range();
    range.Include(0.0);
    range.Include(value == 0.0 ? 1.0 : 2.0 * value);
  }
  // Zero belongs to the picture unless the data stay far from it.
  const double far = is_y ? 0.6 : 0.25;
  if (range.low > 0.0 && range.low <= far * range.high) range.low = 0.0;
  if (range.high < 0.0 && range.high >= far * range.low) range.high = 0.0;
  if (is_y) {
    if (range.low > 0.0 || range.high < 0.0) {  // an axis without zero leaves some room
      const double pad = 0.04 * (range.high - range.low);
      range.low -= pad;
      range.high += pad;
    }
    const double step = NiceStep((range.high - range.low) / intervals);
    axis.low = std::floor(range.low / step + 1e-9) * step;
    axis.high = std::ceil(range.high / step - 1e-9) * step;
    axis.ticks = TicksAt(step, axis.low, axis.high);
  } else {
    const double pad = 0.02 * (range.high - range.low);
    axis.low = range.low == 0.0 ? 0.0 : range.low - pad;
    axis.high = range.high + pad;
    axis.ticks = internal::LinearTicks(axis.low, axis.high, intervals, smallest_step);
  }
  LabelLinear(&axis);
  return axis;
}

// The factor by which a logarithmic x axis widens at either end.
double PadFactor(const Range& range) {
  return std::exp(0.025 * (std::log(range.high) - std::log(range.low)));
}

// Ends and ticks of a logarithmic y axis, which reaches to the next tick at either end.
void FitLogY(Range range, Axis* axis) {
  if (range.high / range.low < kNarrowFactor) {
    const double pad = 0.04 * (range.high - range.low);
    const double step = NiceStep((range.high - range.low + 2.0 * pad) / 7);
    axis->low = std::floor((range.low - pad) / step) * step;
    axis->high = std::ceil((range.high + pad) / step) * step;
    if (axis->low > 0.0) {
      axis->ticks = TicksAt(step, axis->low, axis->high);
      LabelLinear(axis);
      return;
    }
  }
  axis->low = NiceBelow(range.low);
  axis->high = NiceAbove(range.high);
  if (axis->high / axis->low <= kNiceFactor) {
    axis->ticks = internal::LogTicks(axis->low, axis->high);
  } else {
    int stride = 1;
    const auto first = [&] { return FloorToMultiple(FloorLog10(range.low), stride); };
    const auto last = [&] { return CeilToMultiple(CeilLog10(range.high), stride); };
    while ((last() - first()) / stride > kDecadeSteps) ++stride;
    axis->low = Scaled(1, first());
    axis->high = Scaled(1, last());
    for (int exponent = first(); exponent <= last(); exponent += stride) {
      axis->ticks.push_back(Scaled(1, exponent));
    }
  }
  LabelLog(axis);
}

Axis LogAxis(Range range, bool is_y) {
  Axis axis;
  axis.log = true;
  if (IsOneValue(range)) {
    range.low /= 3.0;
    range.high *= 3.0;
  }
  if (is_y) {
    FitLogY(range, &axis);
    return axis;
  }
  axis.low = range.low / PadFactor(range);
  axis.high = range.high * PadFactor(range);
  axis.ticks = internal::LogTicks(axis.low, axis.high);
  if (axis.high / axis.low < kNarrowFactor) {
    LabelLinear(&axis);
  } else {
    LabelLog(&axis);
  }
  return axis;
}

// The tick of zero, with none between it and the others.
void LabelZero(double zero, Axis* axis) {
  const double least = zero * kZeroAway * (1.0 - 1e-9);
  std::erase_if(axis->ticks, [least](double tick) { return tick < least; });
  if (axis->ticks.empty()) axis->ticks.push_back(zero * kZeroAway);
  axis->labels.clear();
  LabelLog(axis);
  axis->ticks.insert(axis->ticks.begin(), zero);
  axis->labels.insert(axis->labels.begin(), "0");
}

Axis PowerOfTwoAxis(Range range) {
  Axis axis;
  axis.log = true;
  const double below = std::exp2(std::floor(std::log2(range.low)));
  const double above = std::exp2(std::ceil(std::log2(range.high)));
  if (IsOneValue(range)) {
    range.low = 0.5 * below;
    range.high = 2.0 * above;
  } else if (internal::PowerOfTwoTicks(range.low, range.high).size() < 2) {
    range.low = below;
    range.high = above;
  }
  axis.low = range.low / PadFactor(range);
  axis.high = range.high * PadFactor(range);
  axis.ticks = internal::PowerOfTwoTicks(axis.low, axis.high);
  LabelPowersOfTwo(&axis);
  return axis;
}

// ---- The layout.

struct DirectLabel {
  std::size_t curve = 0;
  std::vector<std::string> lines;
  double target = 0.0;  // y of the line's end
  double centre = 0.0;  // y of the label

  double height() const { return kLineHeight * static_cast<double>(lines.size()); }
};

// Moves the labels as little as possible (least squares) so that none overlap and all stay within
// [top, bottom]; false if they are higher than that.
bool SpreadLabels(std::vector<DirectLabel>* labels, double top, double bottom) {
  std::stable_sort(labels->begin(), labels->end(),
                   [](const DirectLabel& a, const DirectLabel& b) { return a.target < b.target; });
  // Labels that touch form a block, placed where its members wish it on average.
  struct Block {
    std::size_t first;
    std::size_t count;
    double height;
    double wish;  // sum over members of where each wants the top of the block
    double start;
  };
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < labels->size(); ++i) {
    const DirectLabel& label = (*labels)[i];
    const double start = label.target - 0.5 * label.height();
    Block block{i, 1, label.height(), start, start};
    while (true) {
      const double wish = block.wish / static_cast<double>(block.count);
      block.start = std::max(top, std::min(wish, bottom - block.height));
      if (blocks.empty() || blocks.back().start + blocks.back().height <= block.start) break;
      Block& above = blocks.back();
      block.first = above.first;
      block.wish = above.wish + block.wish - static_cast<double>(block.count) * above.height;
      block.count += above.count;
      block.height += above.height;
      blocks.pop_back();
    }
    blocks.push_back(block);
  }
  for (const Block& block : blocks) {
    double y = block.start;
    for (std::size_t i = block.first; i < block.first + block.count; ++i) {
      DirectLabel& label = (*labels)[i];
      label.centre = y + 0.5 * label.height();
      y += label.height();
    }
    if (block.start + block.height > bottom + 0.01) return false;
  }
  return true;
}

struct LegendItem {
  std::size_t curve = 0;
  std::string text;
  double x = 0.0;
  int row = 0;
};

struct MarkLabel {
  double value = 0.0;
  std::string text;
  double x = 0.0;
  bool leftwards = false;  // written to the left of the line, for lack of room
  int row = 0;             // 0 is next to the plot

  double width() const { return TextWidth(text, kTextSize) + 10.0; }
  double start() const { return leftwards ? x - width() : x; }
  double end() const { return leftwards ? x : x + width(); }
};

struct Layout {
  double width = 0.0;  // of the page
  double height = 0.0;
  Wrapped title;
  double title_size = kTitleSize;
  Wrapped subtitle;
  Wrapped x_label;
  std::string y_label;
  double y_label_baseline = 0.0;
  std::vector<LegendItem> legend;
  std::size_t legend_left_out = 0;
  double legend_more_x = 0.0;
  double legend_top = 0.0;
  std::vector<MarkLabel> marks;
  std::vector<DirectLabel> labels;
  double left = 0.0;
  double right = 0.0;
  double top = 0.0;
  double bottom = 0.0;
};

// "Size (B)" with the factor 10⁶ is "Size (10⁶ B)".
std::string WithFactor(const std::string& label, const std::string& factor) {
  if (factor.empty()) return label;
  const std::size_t unit = label.rfind('(');
  if (unit != std::string::npos && label.back() == ')') {
    return label.substr(0, unit + 1) + factor + ' ' + label.substr(unit + 1);
  }
  return label + (label.empty() ? "" : " ") + "(×" + factor + ")";
}

bool HasLine(const Curve& curve) { return !curve.points_only && curve.points != 1; }

double SwatchWidth(const Curve& curve) { return HasLine(curve) ? 28.0 : 12.0; }

std::string LegendText(const Curve& curve) {
  const std::string name = Cut(curve.name, kTextSize, 330.0);
  return curve.points > 0 ? name : name + " (no data)";
}

std::vector<MarkLabel> PlaceMarks(const PlotOptions& options, const Axis& x_axis,
                                  const Layout& layout) {
  std::vector<MarkLabel> marks;
  for (const auto& [value, text] : options.vertical_marks) {
    const double x = WithoutExtremes(value);
    if (!std::isfinite(x) || (x_axis.log && x <= 0.0)) continue;
    MarkLabel mark;
    mark.value = x;
    mark.text = Cut(text, kTextSize, 300.0);
    mark.x = layout.left + x_axis.Fraction(x) * (layout.right - layout.left);
    mark.leftwards = mark.x + mark.width() > layout.width - 4.0;
    marks.push_back(mark);
  }
  std::stable_sort(marks.begin(), marks.end(),
                   [](const MarkLabel& a, const MarkLabel& b) { return a.x < b.x; });
  // Rows, so that no label runs into another, nor into a line that comes up to its own label. Two
  // long labels that face each other can ask for the impossible: the rows end at kMarkRows.
  for (std::size_t pass = 0; pass < marks.size(); ++pass) {
    for (MarkLabel& a : marks) {
      for (MarkLabel& b : marks) {
        if (a.x >= b.x) continue;  // a is the left one
        if (b.start() < a.x) b.row = std::max(b.row, a.row + 1);
        if (a.end() > b.x || (a.end() > b.start() && a.row == b.row)) {
          a.row = std::max(a.row, b.row + 1);
        }
        a.row = std::min(a.row, kMarkRows - 1);
        b.row = std::min(b.row, kMarkRows - 1);
      }
    }
  }
  return marks;
}

Layout Arrange(const std::vector<Curve>& curves, const PlotOptions& options, const Axis& x_axis,
               const Axis& y_axis, bool direct) {
  Layout layout;
  layout.width = options.width;
  layout.height = options.height;
  const double page = layout.width - 2.0 * kMargin;
  layout.title = Wrap(options.title, kTitleSize, page, 2, true);
  if (layout.title.cut) {
    layout.title_size = kLongTitleSize;
    layout.title = Wrap(options.title, kLongTitleSize, page, 2, true);
  }
  layout.subtitle = Wrap(options.subtitle, kSubtitleSize, page, 2);

  // Series labelled at the line's end, and series in the legend; a nameless one is in neither.
  double label_width = 0.0;
  std::vector<std::size_t> listed;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Curve& curve = curves[i];
    if (curve.name.empty()) continue;
    DirectLabel label;
    label.curve = i;
    bool fits = direct && !curve.points_only && curve.points > 0 &&
                x_axis.Fraction(curve.last().x) >= kLabelMinReach;
    if (fits) {
      const Wrapped wrapped = WrapEvenly(curve.name, kTextSize, kLabelWidth, 3, true);
      label.lines = wrapped.lines;
      fits = !wrapped.cut && !wrapped.lines.empty();
    }
    if (!fits) {
      listed.push_back(i);
      continue;
    }
    for (const std::string& line : label.lines) {
      label_width = std::max(label_width, TextWidth(line, kTextSize, true));
    }
    layout.labels.push_back(label);
  }

  double tick_width = 0.0;
  for (const std::string& label : y_axis.labels) {
    tick_width = std::max(tick_width, TextWidth(label, kTextSize));
  }
  layout.left = kMargin + tick_width + 10.0;
  layout.right = layout.width - kMargin - 6.0;
  if (!layout.labels.empty()) layout.right = layout.width - 14.0 - label_width - kLabelGap;

  double y = kMargin - 4.0;
  y += 24.0 * static_cast<double>(layout.title.lines.size());
  y += 18.0 * static_cast<double>(layout.subtitle.lines.size());
  y += layout.title.lines.empty() && layout.subtitle.lines.empty() ? 0.0 : 8.0;

  layout.legend_top = y;
  double x = kMargin;
  int row = 0;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    LegendItem item;
    item.curve = listed[i];
    item.text = LegendText(curves[listed[i]]);
    const double width = SwatchWidth(curves[listed[i]]) + 8.0 + TextWidth(item.text, kTextSize);
    // In the last row, room is kept to say how many are missing.
    const double end = row == kLegendRows - 1 && i + 1 < listed.size() ? page - 80.0 : page;
    if (x > kMargin && x + width > kMargin + end) {
      if (row == kLegendRows - 1) {
        layout.legend_left_out = listed.size() - i;
        layout.legend_more_x = x;
        break;
      }
      x = kMargin;
      ++row;
    }
    item.x = x;
    item.row = row;
    layout.legend.push_back(item);
    x += width + 22.0;
  }
  if (!layout.legend.empty()) y += kLegendRow * (row + 1) + 4.0;

  layout.y_label = Cut(WithFactor(options.y_label, y_axis.factor), kTextSize, page);
  if (!layout.y_label.empty()) {
    layout.y_label_baseline = y + 13.0;
    y += 22.0;
  }

  layout.marks = PlaceMarks(options, x_axis, layout);
  int mark_rows = 0;
  for (const MarkLabel& mark : layout.marks) {
    if (!mark.text.empty()) mark_rows = std::max(mark_rows, mark.row + 1);
  }
  layout.top = y + kMarkRow * mark_rows + 8.0;

  layout.x_label = Wrap(WithFactor(options.x_label, x_axis.factor), kTextSize, page, 2);
  layout.bottom = layout.height - 16.0 - 24.0 -
                  (kLineHeight + 2.0) * static_cast<double>(layout.x_label.lines.size());
  return layout;
}

// ---- Drawing.

class Writer {
 public:
  Writer(const Layout& layout, const Axis& x_axis, const Axis& y_axis, bool line_markers,
         const Palette& palette)
      : layout_(layout),
        x_axis_(x_axis),
        y_axis_(y_axis),
        line_markers_(line_markers),
        palette_(palette) {}

  const Palette& palette() const { return palette_; }
  const Hue& HueOf(const Curve& curve) const {
    return palette_.hues[curve.colour % palette_.hues.size()];
  }

  // Whether lines have a marker at each point.
  bool line_markers() const { return line_markers_; }

  double X(double value) const {
    return layout_.left + x_axis_.Fraction(value) * (layout_.right - layout_.left);
  }
  double Y(double value) const {
    return layout_.bottom - y_axis_.Fraction(value) * (layout_.bottom - layout_.top);
  }

  void Raw(const std::string& line) { out_ += line + '\n'; }

  void Line(double x1, double y1, double x2, double y2, const std::string& attributes) {
    Raw(fmt::format(R"(<line x1="{}" y1="{}" x2="{}" y2="{}" {}/>)", Num(x1), Num(y1), Num(x2),
                    Num(y2), attributes));
  }

  void Text(double x, double y, const std::string& text, const std::string& attributes) {
    Raw(fmt::format(R"(<text x="{}" y="{}" {}>{}</text>)", Num(x), Num(y), attributes,
                    internal::EscapeXml(text)));
  }

  // Shapes of about equal weight; hollow for measurements.
  void Marker(const Curve& curve, double x, double y) {
    const double r = curve.small ? 2.6 : curve.points_only ? 4.4 : 3.2;
    const char* colour = HueOf(curve).line;
    const std::string paint =
        curve.points_only
            ? fmt::format(R"(fill="{}" stroke="{}" stroke-width="{}")", palette_.paper, colour,
                          curve.small ? "1.2" : "1.8")
            : fmt::format(R"(fill="{}" stroke="{}" stroke-width="0.8")", colour, palette_.paper);
    const auto polygon = [&](const std::vector<std::pair<double, double>>& corners) {
      std::string points;
      for (const auto& [dx, dy] : corners) {
        points +=
            fmt::format("{}{},{}", points.empty() ? "" : " ", Num(x + r * dx), Num(y + r * dy));
      }
      Raw(fmt::format(R"(<polygon points="{}" {}/>)", points, paint));
    };
    switch ((curve.colour + curve.colour / kLight.hues.size()) % 5) {
      case 0:
        Raw(fmt::format(R"(<circle cx="{}" cy="{}" r="{}" {}/>)", Num(x), Num(y), Num(r), paint));
        break;
      case 1:
        polygon({{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}});
        break;
      case 2:
        polygon({{0.0, -1.25}, {1.15, 0.85}, {-1.15, 0.85}});
        break;
      case 3:
        polygon({{0.0, -1.3}, {1.3, 0.0}, {0.0, 1.3}, {-1.3, 0.0}});
        break;
      default:
        polygon({{0.0, 1.25}, {1.15, -0.85}, {-1.15, -0.85}});
        break;
    }
  }

  std::string Stroke(const Curve& curve) const {
    std::string stroke =
        fmt::format(R"(fill="none" stroke="{}" stroke-width="2.2" stroke-linejoin="round" )",
                    HueOf(curve).line);
    if (curve.dashed) return stroke + R"(stroke-dasharray="7 4.5")";
    // Beyond the palette colours come again, so the stroke changes.
    if (curve.colour / kLight.hues.size() % 2 == 1) return stroke + R"(stroke-dasharray="2 3")";
    return stroke + R"(stroke-linecap="round")";
  }

  void ErrorBar(const Curve& curve, const Point& point) {
    const double x = X(point.x);
    const double low = std::min(Y(point.low), layout_.bottom);
    const double high = Y(point.high);
    const std::string stroke =
        fmt::format(R"(stroke="{}" stroke-width="1.4" stroke-opacity="0.75")", HueOf(curve).line);
    Line(x, low, x, high, stroke);
    Line(x - 3.5, low, x + 3.5, low, stroke);
    Line(x - 3.5, high, x + 3.5, high, stroke);
  }

  void Band(const Curve& curve) {
    for (const std::vector<Point>& run : curve.runs) {
      for (std::size_t i = 0; i < run.size();) {
        std::size_t end = i;
        while (end < run.size() && run[end].has_interval) ++end;
        if (end == i + 1 || (curve.points_only && end > i)) {
          for (std::size_t k = i; k < end; ++k) ErrorBar(curve, run[k]);
        } else if (end > i) {
          std::string path;
          for (std::size_t k = i; k < end; ++k) {
            path +=
                fmt::format("{}{} {}", k == i ? "M" : " L", Num(X(run[k].x)), Num(Y(run[k].high)));
          }
          for (std::size_t k = end; k-- > i;) {
            path += fmt::format(" L{} {}", Num(X(run[k].x)), Num(Y(run[k].low)));
          }
          Raw(fmt::format(R"(<path d="{} Z" fill="{}" fill-opacity="{}" stroke="none"/>)", path,
                          HueOf(curve).line, Num(curve.band_opacity)));
        }
        i = end + 1;
      }
    }
  }

  void Curves(const Curve& curve) {
    if (!curve.points_only) {
      for (const std::vector<Point>& run : curve.runs) {
        if (run.size() < 2) continue;
        std::string path;
        for (const Point& point : run) {
          path +=
              fmt::format("{}{} {}", path.empty() ? "M" : " L", Num(X(point.x)), Num(Y(point.y)));
        }
        Raw(fmt::format(R"(<path d="{}" {}/>)", path, Stroke(curve)));
      }
    }
    for (const std::vector<Point>& run : curve.runs) {
      // A lone point has no line to show it.
      if (!curve.points_only && !line_markers_ && run.size() > 1) continue;
      for (const Point& point : run) Marker(curve, X(point.x), Y(point.y));
    }
  }

  const std::string& out() const { return out_; }

 private:
  const Layout& layout_;
  const Axis& x_axis_;
  const Axis& y_axis_;
  const bool line_markers_;
  const Palette& palette_;
  std::string out_;
};

std::string TextStyle(double size, const char* colour, const char* more = "") {
  return fmt::format(R"(font-size="{}" fill="{}"{})", Num(size), colour, more);
}

// The plot in words, for those who cannot see it. What stands for zero is told as zero.
std::string Describe(const std::vector<Curve>& curves, const PlotOptions& options, double zero_x) {
  const auto x_of = [zero_x](const Point& point) {
    return FormatNumber(point.x == zero_x ? 0.0 : point.x);
  };
  std::string text = fmt::format("{} against {}.", options.y_label.empty() ? "y" : options.y_label,
                                 options.x_label.empty() ? "x" : options.x_label);
  for (const Curve& curve : curves) {
    if (curve.points == 0) {
      text += fmt::format(" {}: no data.", curve.name);
      continue;
    }
    const Point& first = curve.runs.front().front();
    const Point& last = curve.last();
    const std::string name = curve.name.empty() ? "Series" : curve.name;
    if (curve.points == 1) {
      text += fmt::format(" {}: {} at {}.", name, FormatNumber(first.y), x_of(first));
    } else {
      text += fmt::format(" {}: {} points, from {} at {} to {} at {}.", name, curve.points,
                          FormatNumber(first.y), x_of(first), FormatNumber(last.y), x_of(last));
    }
  }
  for (const auto& [x, label] : options.vertical_marks) {
    if (std::isfinite(x)) text += fmt::format(" Mark at {}: {}.", FormatNumber(x), label);
  }
  return text;
}

void DrawAxes(const Layout& layout, const Axis& x_axis, const Axis& y_axis, Writer* writer) {
  const std::string grid = fmt::format(R"(stroke="{}" stroke-width="1")", writer->palette().grid);
  for (std::size_t i = 0; i < y_axis.ticks.size(); ++i) {
    const double y = writer->Y(y_axis.ticks[i]);
    writer->Line(layout.left, y, layout.right, y, grid);
    writer->Text(layout.left - 8.0, y + 4.2, y_axis.labels[i],
                 TextStyle(kTextSize, writer->palette().soft_ink, R"( text-anchor="end")"));
  }
  // Every n-th label, so that they do not touch.
  const auto room = [&](std::size_t stride) {
    for (std::size_t i = (x_axis.ticks.size() - 1) % stride; i + stride < x_axis.ticks.size();
         i += stride) {
      const double half = 0.5 * (TextWidth(x_axis.labels[i], kTextSize) +
                                 TextWidth(x_axis.labels[i + stride], kTextSize));
      if (writer->X(x_axis.ticks[i + stride]) - writer->X(x_axis.ticks[i]) < half + 8.0)
        return false;
    }
    return true;
  };
  std::size_t stride = 1;
  while (!room(stride)) ++stride;
  const std::string axis_line =
      fmt::format(R"(stroke="{}" stroke-width="1")", writer->palette().axis_line);
  for (std::size_t i = 0; i < x_axis.ticks.size(); ++i) {
    const double x = writer->X(x_axis.ticks[i]);
    writer->Line(x, layout.top, x, layout.bottom, grid);
    writer->Line(x, layout.bottom, x, layout.bottom + 5.0, axis_line);
    if ((x_axis.ticks.size() - 1 - i) % stride != 0) continue;  // the last has one
    writer->Text(x, layout.bottom + 19.0, x_axis.labels[i],
                 TextStyle(kTextSize, writer->palette().soft_ink, R"( text-anchor="middle")"));
  }
  writer->Line(layout.left, layout.bottom, layout.right, layout.bottom, axis_line);
  if (!y_axis.log && y_axis.low < 0.0 && y_axis.high > 0.0) {
    writer->Line(layout.left, writer->Y(0.0), layout.right, writer->Y(0.0), axis_line);
  }
  double baseline = layout.bottom + 24.0 + 15.0;
  for (const std::string& line : layout.x_label.lines) {
    writer->Text(0.5 * (layout.left + layout.right), baseline, line,
                 TextStyle(kTextSize, writer->palette().ink, R"( text-anchor="middle")"));
    baseline += kLineHeight + 2.0;
  }
  if (!layout.y_label.empty()) {
    writer->Text(kMargin, layout.y_label_baseline, layout.y_label,
                 TextStyle(kTextSize, writer->palette().ink));
  }
}

void DrawMarks(const Layout& layout, Writer* writer) {
  const auto baseline = [&](const MarkLabel& mark) {
    return layout.top - 6.0 - kMarkRow * mark.row;
  };
  const std::string stroke = fmt::format(R"(stroke="{}" stroke-width="1.2" stroke-dasharray="4 3")",
                                         writer->palette().mark_line);
  for (const MarkLabel& mark : layout.marks) {
    writer->Line(mark.x, mark.text.empty() ? layout.top : baseline(mark) - 9.0, mark.x,
                 layout.bottom, stroke);
  }
  for (const MarkLabel& mark : layout.marks) {
    if (mark.text.empty()) continue;
    // On white, in case a line of another mark passes behind.
    writer->Raw(fmt::format(R"(<rect x="{}" y="{}" width="{}" height="13" fill="{}"/>)",
                            Num(mark.start() + (mark.leftwards ? 2.0 : 3.0)),
                            Num(baseline(mark) - 10.0), Num(mark.width() - 5.0),
                            writer->palette().paper));
    writer->Text(mark.leftwards ? mark.x - 5.0 : mark.x + 5.0, baseline(mark), mark.text,
                 TextStyle(kTextSize, writer->palette().soft_ink,
                           mark.leftwards ? R"( font-style="italic" text-anchor="end")"
                                          : R"( font-style="italic")"));
  }
}

void DrawLegend(const Layout& layout, const std::vector<Curve>& curves, Writer* writer) {
  for (const LegendItem& item : layout.legend) {
    const Curve& curve = curves[item.curve];
    const double y = layout.legend_top + kLegendRow * (item.row + 0.5);
    const double swatch = SwatchWidth(curve);
    if (HasLine(curve)) writer->Line(item.x, y, item.x + swatch, y, writer->Stroke(curve));
    if (!HasLine(curve) || writer->line_markers()) {
      writer->Marker(curve, item.x + 0.5 * swatch, y);
    }
    writer->Text(item.x + swatch + 8.0, y + 4.2, item.text,
                 TextStyle(kTextSize,
                           curve.points > 0 ? writer->palette().ink : writer->palette().mark_line));
  }
  if (layout.legend_left_out > 0) {
    writer->Text(layout.legend_more_x, layout.legend_top + kLegendRow * (kLegendRows - 0.5) + 4.2,
                 fmt::format("and {} more", layout.legend_left_out),
                 TextStyle(kTextSize, writer->palette().soft_ink));
  }
}

void DrawDirectLabels(const Layout& layout, const std::vector<Curve>& curves, Writer* writer) {
  for (const DirectLabel& label : layout.labels) {
    const Curve& curve = curves[label.curve];
    const double end = writer->X(curve.last().x);
    const double x = layout.right + kLabelGap;
    if (std::abs(label.centre - label.target) > 2.0 || x - end > kLabelMaxGap) {
      writer->Line(end + 6.0, label.target, x - 4.0, label.centre,
                   fmt::format(R"(stroke="{}" stroke-width="1" stroke-opacity="0.6")",
                               writer->HueOf(curve).line));
    }
    double baseline = label.centre - 0.5 * label.height() + 11.5;
    for (const std::string& line : label.lines) {
      writer->Text(x, baseline, line,
                   TextStyle(kTextSize, writer->HueOf(curve).text, R"( font-weight="bold")"));
      baseline += kLineHeight;
    }
  }
}

}  // namespace

namespace internal {

std::vector<double> LinearTicks(double low, double high, int intervals, double smallest_step) {
  return TicksAt(std::max(NiceStep((high - low) / intervals), smallest_step), low, high);
}

std::vector<double> LogTicks(double low, double high) {
  if (high / low < kNarrowFactor) return LinearTicks(low, high, 6);
  const int first = FloorLog10(low);
  const int last = FloorLog10(high);
  const bool nice = high / low <= kNiceFactor;
  int stride = 1;
  while (!nice && (last - first) / stride > kDecadeSteps) ++stride;
  std::vector<double> ticks;
  for (int exponent = first; exponent <= last; ++exponent) {
    if (exponent % stride != 0) continue;
    for (int mantissa : {1, 2, 5}) {
      const double tick = Scaled(mantissa, exponent);
      const bool inside = tick >= low * (1.0 - 1e-9) && tick <= high * (1.0 + 1e-9);
      if (inside && (nice || mantissa == 1)) ticks.push_back(tick);
    }
  }
  return ticks;
}

std::vector<double> PowerOfTwoTicks(double low, double high) {
  const int first = static_cast<int>(std::ceil(std::log2(low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log2(high) + 1e-9));
  int stride = 1;
  while ((last - first) / stride > 11) ++stride;
  std::vector<double> ticks;
  for (int exponent = first; exponent <= last; ++exponent) {
    if ((last - exponent) % stride == 0) ticks.push_back(std::exp2(exponent));
  }
  return ticks;
}

std::string EscapeXml(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    const char32_t c = NextCodePoint(text, &i);
    const bool valid_here = i - start > 1 || c < 0x80;
    const bool is_control = c < 0x20 && c != '\t' && c != '\n' && c != '\r';
    if (!valid_here || is_control || c == 0xfffe || c == 0xffff) {
      out += "\xef\xbf\xbd";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out += text.substr(start, i - start);
    }
  }
  return out;
}

}  // namespace internal

namespace {

// The beginning of the picture, up to its title.
void DrawHead(const Layout& layout, const std::vector<Curve>& curves, const PlotOptions& options,
              double zero_x, Writer* writer) {
  if (!options.on_page) writer->Raw(R"(<?xml version="1.0" encoding="UTF-8"?>)");
  const std::string space = options.on_page ? "" : R"(xmlns="http://www.w3.org/2000/svg" )";
  writer->Raw(fmt::format(R"(<svg {3}viewBox="0 0 {0} {1}" )"
                          R"(width="{0}" height="{1}" role="img" font-family="{2}">)",
                          Num(layout.width), Num(layout.height), kFont, space));
  writer->Raw(fmt::format("<title>{}</title>",
                          internal::EscapeXml(options.title.empty() ? "Plot" : options.title)));
  writer->Raw(
      fmt::format("<desc>{}</desc>", internal::EscapeXml(Describe(curves, options, zero_x))));
  writer->Raw(fmt::format(R"(<rect width="{}" height="{}" fill="{}"/>)", Num(layout.width),
                          Num(layout.height), writer->palette().paper));
  double baseline = kMargin + 13.0;
  for (const std::string& line : layout.title.lines) {
    writer->Text(kMargin, baseline, line,
                 TextStyle(layout.title_size, writer->palette().ink, R"( font-weight="bold")"));
    baseline += 24.0;
  }
  baseline -= 3.0;
  for (const std::string& line : layout.subtitle.lines) {
    writer->Text(kMargin, baseline, line, TextStyle(kSubtitleSize, writer->palette().soft_ink));
    baseline += 18.0;
  }
}

// Measurements lie on top of the lines they are compared with.
void DrawCurves(const std::vector<Curve>& curves, Writer* writer) {
  for (const bool points_only : {false, true}) {
    for (const Curve& curve : curves) {
      if (curve.points_only != points_only || curve.points == 0) continue;
      writer->Raw("<g>");
      if (!curve.name.empty()) {
        writer->Raw(fmt::format("<title>{}</title>", internal::EscapeXml(curve.name)));
      }
      writer->Curves(curve);
      writer->Raw("</g>");
    }
  }
}

}  // namespace

std::string RenderSvgPlot(const std::vector<PlotSeries>& series, const PlotOptions& options) {
  const Palette& palette = options.on_page ? kOfPage : kLight;
  const bool log_x = options.log_x || options.x_powers_of_two;
  const double zero_x = options.log_x ? StandInForZero(series) : 0.0;
  std::vector<Curve> curves;
  Range x_range, y_range;
  bool whole_x = true;
  for (const PlotSeries& one : series) {
    curves.push_back(Clean(one, curves.size(), log_x, options.log_y, zero_x));
    for (const std::vector<Point>& run : curves.back().runs) {
      for (const Point& point : run) {
        x_range.Include(point.x);
        whole_x = whole_x && point.x == std::round(point.x);
        y_range.Include(point.y);
        if (!point.has_interval) continue;
        y_range.Include(point.high);
        if (!options.log_y || point.low > 0.0) y_range.Include(point.low);
      }
    }
  }
  if (x_range.low > x_range.high) {
    throw std::invalid_argument("a plot needs at least one series with a finite point");
  }
  for (const auto& mark : options.vertical_marks) {
    const double x = WithoutExtremes(mark.first);
    if (std::isfinite(x) && (!log_x || x > 0.0)) x_range.Include(x);
  }

  Axis x_axis = options.x_powers_of_two ? PowerOfTwoAxis(x_range)
                : log_x                 ? LogAxis(x_range, false)
                                        : LinearAxis(x_range, false, 10, whole_x ? 1.0 : 0.0);
  if (zero_x > 0.0) LabelZero(zero_x, &x_axis);
  const Axis y_axis = options.log_y ? LogAxis(y_range, true) : LinearAxis(y_range, true, 7, 0.0);

  const auto bands = std::count_if(series.begin(), series.end(),
                                   [](const PlotSeries& one) { return !one.low.empty(); });
  for (Curve& curve : curves) {
    curve.band_opacity = bands > kMostFullBands ? kLightBand : kFullBand;
  }
  std::size_t lone_points = 0;
  for (const Curve& curve : curves) lone_points += curve.points_only ? curve.points : 0;
  bool line_markers = true;
  for (Curve& curve : curves) {
    curve.small = curve.points_only && lone_points > kMaxLargeMarkers;
    line_markers = line_markers && (curve.points_only || curve.points <= kMaxLineMarkers);
  }

  // Labels at the lines' ends if they fit, else a legend for all.
  const bool direct = options.width >= kDirectWidth;
  PlotOptions drawn = options;
  if (options.on_page) drawn.title = drawn.subtitle = "";  // above it, as the page has them
  Layout layout = Arrange(curves, drawn, x_axis, y_axis, direct);
  bool fits = true;
  {
    const Writer ruler(layout, x_axis, y_axis, line_markers, palette);
    for (DirectLabel& label : layout.labels) {
      label.target = ruler.Y(curves[label.curve].last().y);
    }
    fits = SpreadLabels(&layout.labels, layout.top - 4.0, layout.bottom + 4.0);
    for (const DirectLabel& label : layout.labels) {
      fits = fits && std::abs(label.centre - label.target) <= kLabelMaxShift;
    }
  }
  if (!fits) layout = Arrange(curves, drawn, x_axis, y_axis, false);

  Writer writer(layout, x_axis, y_axis, line_markers, palette);
  DrawHead(layout, curves, options, zero_x, &writer);
  DrawAxes(layout, x_axis, y_axis, &writer);
  for (const Curve& curve : curves) writer.Band(curve);
  DrawMarks(layout, &writer);
  DrawCurves(curves, &writer);
  DrawLegend(layout, curves, &writer);
  DrawDirectLabels(layout, curves, &writer);
  return writer.out() + "</svg>\n";
}

std::string PlotStyle() {
  const auto values = [](const Palette& palette) {
    std::string text;
    const auto add = [&](std::string_view name, const char* value) {
      // "var(--NAME)" is where it is used.
      text += fmt::format("{}:{};", name.substr(4, name.size() - 5), value);
    };
    add(kOfPage.paper, palette.paper);
    add(kOfPage.ink, palette.ink);
    add(kOfPage.soft_ink, palette.soft_ink);
    add(kOfPage.grid, palette.grid);
    add(kOfPage.axis_line, palette.axis_line);
    add(kOfPage.mark_line, palette.mark_line);
    for (std::size_t i = 0; i < palette.hues.size(); ++i) {
      add(kOfPage.hues[i].line, palette.hues[i].line);
      add(kOfPage.hues[i].text, palette.hues[i].text);
    }
    return ":root{" + text + "}\n";
  };
  return values(kLight) + "@media screen and (prefers-color-scheme: dark){" + values(kDark) + "}\n";
}

}  // namespace stepcast
