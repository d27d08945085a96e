#include "predictor/report/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "data/values/text_as_number.h"
#include "data/values/utf8.h"

namespace stepcast {
namespace {

// ---- The terminal.

bool NamesUtf8(std::string charset) {
  for (char& c : charset) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return charset.find("utf-8") != std::string::npos || charset.find("utf8") != std::string::npos;
}

// ---- Escape sequences, UTF-8.

constexpr std::string_view kReset = "\x1b[0m";
constexpr std::string_view kBold = "\x1b[1m";

std::string Repeat(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

std::string Spaces(int count) {
  return std::string(static_cast<std::size_t>(std::max(0, count)), ' ');
}

std::string Colour(int ansi_256, std::string_view text, const Style& style) {
  if (!style.colour || text.empty()) return std::string(text);
  return fmt::format("\x1b[38;5;{}m{}{}", ansi_256, text, kReset);
}

// The length of a colour or font sequence (ESC [ digits and ; m) at the front of `text`, or 0.
std::size_t StyleSequenceLength(std::string_view text) {
  if (text.size() < 3 || text[0] != '\x1b' || text[1] != '[') return 0;
  std::size_t i = 2;
  while (i < text.size() && ((text[i] >= '0' && text[i] <= '9') || text[i] == ';')) ++i;
  return i < text.size() && text[i] == 'm' ? i + 1 : 0;
}

// One line that cannot move the cursor: control characters but those of a style become spaces.
std::string OneLine(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t sequence = StyleSequenceLength(text.substr(i));
    if (sequence > 0) {
      out += text.substr(i, sequence);
      i += sequence;
      continue;
    }
    const std::size_t start = i;
    const char32_t c = NextCodePoint(text, &i);
    if (c < 0x20 || (c >= 0x7f && c < 0xa0)) {
      out += ' ';
    } else {
      out += text.substr(start, i - start);
    }
  }
  return out;
}

void TrimRight(std::string* text) { text->erase(text->find_last_not_of(' ') + 1); }

std::string Pad(const std::string& text, int width, Align align) {
  const std::string space = Spaces(width - DisplayWidth(text));
  return align == Align::kLeft ? text + space : space + text;
}

// ---- Numbers.

// Digits after the point that leave three significant ones once `magnitude` > 0 is rounded.
int Decimals(double magnitude) {
  const std::string rounded = fmt::format("{:.2e}", magnitude);
  int exponent = 0;
  const std::size_t sign = rounded.find('e') + 1;
  const std::size_t digits = rounded[sign] == '+' ? sign + 1 : sign;  // from_chars takes no '+'
  std::from_chars(rounded.data() + digits, rounded.data() + rounded.size(), exponent);
  return std::max(0, 2 - exponent);
}

// `magnitude` >= 0 as it will be read once it is printed, so that its unit can be chosen by it.
double Rounded(double magnitude) {
  if (magnitude == 0.0 || !std::isfinite(magnitude)) return magnitude;
  const std::string text = fmt::format("{:.{}f}", magnitude, Decimals(magnitude));
  double value = magnitude;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string NotFinite(double value) {
  if (std::isnan(value)) return "nan";
  return value > 0.0 ? "inf" : "-inf";
}

// A duration above zero.
std::string FormatPositive(double seconds) {
  struct Scale {
    double seconds;
    double limit;
    const char* symbol;
  };
  constexpr std::array<Scale, 4> kScales = {
      {{1e-9, 1e3, "ns"}, {1e-6, 1e3, "us"}, {1e-3, 1e3, "ms"}, {1.0, 60.0, "s"}}};
  for (const Scale& scale : kScales) {
    const double value = seconds / scale.seconds;
    if (Rounded(value) < scale.limit) return FormatNumber(value) + ' ' + scale.symbol;
  }
  // Two units, the smaller one whole: {larger unit, how many of the smaller it has, and how many of
  // the larger end the range}.
  struct Pair {
    double small_s;
    long long small_in_large;
    long long limit;
    const char* large;
    const char* small;
  };
  constexpr std::array<Pair, 3> kPairs = {
      {{1.0, 60, 60, "min", "s"}, {60.0, 60, 24, "h", "min"}, {3600.0, 24, 1000, "d", "h"}}};
  for (const Pair& pair : kPairs) {
    const double count = std::round(seconds / pair.small_s);
    if (count >= static_cast<double>(pair.small_in_large * pair.limit)) continue;
    const long long whole = static_cast<long long>(count);
    return fmt::format("{} {} {:02} {}", whole / pair.small_in_large, pair.large,
                       whole % pair.small_in_large, pair.small);
  }
  return FormatNumber(seconds / (365.25 * 86400.0)) + " years";
}

// ---- Bars.

// Okabe and Ito's colours (https://jfly.uni-koeln.de/color/) as the nearest of the 256, in an order
// that keeps neighbours apart; grey stands for their black, and yellow is left out because it fades
// on white.
constexpr std::array<int, 7> kColours = {25, 172, 36, 175, 74, 166, 246};
constexpr int kWarning = 166;
constexpr std::array<const char*, 10> kBlocks = {"█", "▓", "▒", "░", "▚", "═", "▪", "·", "╳", "│"};
constexpr std::array<const char*, 10> kAsciiBlocks = {"#", "=", "+", "-", ".",
                                                      "o", "*", "x", "%", ":"};

// `count` cells of the fill of the part at a position.
std::string Fill(std::size_t position, int count, const Style& style) {
  // With colour all are full blocks, until the palette is used up.
  const std::size_t glyph = style.colour && style.utf8 ? position / kColours.size() : position;
  const auto& blocks = style.utf8 ? kBlocks : kAsciiBlocks;
  return Colour(kColours[position % kColours.size()], Repeat(blocks[glyph % blocks.size()], count),
                style);
}

// Shares in a column: one decimal, and nothing above zero looks like zero.
std::string Share(double fraction) {
  if (fraction > 0.0 && fraction < 0.0005) return "<0.1 %";
  return fmt::format("{:.1f} %", 100.0 * fraction);
}

// ---- Marked lines.

// "4", "(2.5", "1,281,167": a word that its unit, or what it counts, must not be parted from.
bool IsNumber(std::string_view word) {
  while (!word.empty() && (word[0] == '(' || word[0] == '-' || word[0] == '+')) {
    word.remove_prefix(1);
  }
  return !word.empty() && word.find_first_not_of("0123456789.,") == std::string_view::npos &&
         word.back() >= '0' && word.back() <= '9';
}

}  // namespace

namespace internal {

int CodePointWidth(char32_t c) {
  struct Range {
    char32_t first;
    char32_t last;
  };
  constexpr std::array<Range, 7> kNone = {{{0x0300, 0x036f},
                                           {0x1ab0, 0x1aff},
                                           {0x1dc0, 0x1dff},
                                           {0x200b, 0x200f},
                                           {0x20d0, 0x20ff},
                                           {0xfe00, 0xfe0f},
                                           {0xfeff, 0xfeff}}};
  constexpr std::array<Range, 12> kTwo = {{{0x1100, 0x115f},
                                           {0x2e80, 0x303e},
                                           {0x3041, 0x33ff},
                                           {0x3400, 0x4dbf},
                                           {0x4e00, 0xa4cf},
                                           {0xac00, 0xd7a3},
                                           {0xf900, 0xfaff},
                                           {0xfe30, 0xfe6f},
                                           {0xff00, 0xff60},
                                           {0xffe0, 0xffe6},
                                           {0x1f300, 0x1faff},
                                           {0x20000, 0x3fffd}}};
  const auto holds = [c](const Range& range) { return c >= range.first && c <= range.last; };
  if (std::any_of(kNone.begin(), kNone.end(), holds)) return 0;
  return std::any_of(kTwo.begin(), kTwo.end(), holds) ? 2 : 1;
}

std::string GroupThousands(const std::string& number) {
  const std::size_t begin = !number.empty() && number[0] == '-' ? 1 : 0;
  const std::size_t end = std::min(number.find('.'), number.size());
  std::string out = number.substr(0, begin);
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin && (end - i) % 3 == 0) out += ',';
    out += number[i];
  }
  return out + number.substr(end);
}

}  // namespace internal

// ---- The terminal.

Style StyleFor(const TerminalEnvironment& environment) {
  const auto is_set = [](const std::optional<std::string>& variable) {
    return variable.has_value() && !variable->empty();
  };
  Style style;
  style.colour = environment.is_terminal && !is_set(environment.no_color) &&
                 is_set(environment.term) && *environment.term != "dumb";
  for (const std::optional<std::string>* variable :
       {&environment.lc_all, &environment.lc_ctype, &environment.lang}) {
    if (!is_set(*variable)) continue;
    style.utf8 = NamesUtf8(**variable);
    break;
  }
  return style;
}

int WidthFor(const TerminalEnvironment& environment) {
  int width = 100;
  if (environment.columns_of_terminal.has_value()) {
    width = *environment.columns_of_terminal;
  } else if (environment.columns.has_value()) {
    const int columns = TextAsNumber<int>(*environment.columns).value_or(0);
    if (columns > 0) width = columns;
  }
  return std::clamp(width, 60, 120);
}

// ---- Numbers.

std::string FormatNumber(double value) {
  if (!std::isfinite(value)) return NotFinite(value);
  const double magnitude = std::abs(value);
  if (magnitude == 0.0) return "0";
  if (magnitude < 1e-4 || magnitude >= 1e15) return fmt::format("{:.3g}", value);
  std::string text = fmt::format("{:.{}f}", value, Decimals(magnitude));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return internal::GroupThousands(text);
}

std::string FormatDuration(Duration<> duration) {
  const double seconds = duration.si();
  if (!std::isfinite(seconds)) return NotFinite(seconds);
  if (seconds == 0.0) return "0 s";
  return (seconds < 0.0 ? "-" : "") + FormatPositive(std::abs(seconds));
}

std::string FormatRate(DataRate<> rate) {
  if (!std::isfinite(rate.si())) return NotFinite(rate.si());
  const double megabits = rate.in(kMegabitsPerSecond);
  const double shown = Rounded(std::abs(megabits));
  if (shown >= 1000.0) return FormatNumber(rate.in(kGigabitsPerSecond)) + " Gbit/s";
  if (shown >= 1.0 || megabits == 0) return FormatNumber(megabits) + " Mbit/s";
  const double kilobits = megabits * 1e3;
  if (Rounded(std::abs(kilobits)) >= 1.0) return FormatNumber(kilobits) + " kbit/s";
  return FormatNumber(megabits * 1e6) + " bit/s";
}

std::string FormatSize(DataSize<> size) {
  double value = size.si();
  if (!std::isfinite(value)) return NotFinite(value);
  constexpr std::array<const char*, 6> kSymbols = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t i = 0;
  while (i + 1 < kSymbols.size() && Rounded(std::abs(value)) >= 1024.0) {
    value /= 1024.0;
    ++i;
  }
  return FormatNumber(value) + ' ' + kSymbols[i];
}

std::string FormatSizeExact(DataSize<> size) {
  if (!std::isfinite(size.si())) return NotFinite(size.si());
  return FormatCount(size.si()) + " B";
}

std::string FormatCount(double count) {
  if (!std::isfinite(count)) return NotFinite(count);
  const double whole = std::round(count);
  if (whole == 0.0) return "0";  // not "-0"
  return internal::GroupThousands(fmt::format("{:.0f}", whole));
}

std::string Several(std::int64_t count, const char* what) {
  return fmt::format("{} {}{}", FormatCount(static_cast<double>(count)), what,
                     count == 1 ? "" : "s");
}

std::string FormatPercent(double fraction) {
  if (!std::isfinite(fraction)) return NotFinite(fraction);
  return FormatNumber(100.0 * fraction) + " %";
}

std::string FormatLoss(double share) {
  const std::string rounded = FormatPercent(share);
  if (!(share < 1.0) || rounded != FormatPercent(1.0)) return rounded;
  // To the first digit of what arrives.
  const double percent_left = 100.0 * (1.0 - share);
  const int decimals = static_cast<int>(std::ceil(-std::log10(percent_left)));
  std::string text = fmt::format("{:.{}f}", 100.0 * share, decimals);
  text.erase(text.find_last_not_of('0') + 1);
  return text + " %";
}

std::string FormatFactor(double factor) {
  if (!std::isfinite(factor)) return NotFinite(factor);
  return FormatNumber(factor) + 'x';
}

std::string FormatThroughput(SampleRate<> rate) {
  if (!std::isfinite(rate.si())) return NotFinite(rate.si());
  return FormatNumber(rate.in(kSamplesPerSecond)) + " samples/s";
}

// ---- Text.

int DisplayWidth(std::string_view text) {
  int width = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t sequence = StyleSequenceLength(text.substr(i));
    if (sequence > 0) {
      i += sequence;
    } else {
      width += internal::CodePointWidth(NextCodePoint(text, &i));
    }
  }
  return width;
}

std::string Heading(std::string_view text, const Style& style) {
  const std::string line = OneLine(text);
  if (style.colour) return fmt::format("{}{}{}\n", kBold, line, kReset);
  return line + '\n' + Repeat(style.utf8 ? "─" : "-", DisplayWidth(line)) + '\n';
}

std::string HangingLine(const std::string& marker, std::string_view text, int width) {
  const std::string line = OneLine(text);
  const int indent = DisplayWidth(marker);
  std::string out = marker;
  int used = indent;
  bool first = true;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == ' ') {
      ++i;
      continue;
    }
    std::size_t end = std::min(line.find(' ', i), line.size());
    std::string part = line.substr(i, end - i);
    for (bool number = IsNumber(part); number;) {
      const std::size_t begin = line.find_first_not_of(' ', end);
      if (begin == std::string::npos) break;
      end = std::min(line.find(' ', begin), line.size());
      const std::string word = line.substr(begin, end - begin);
      part += ' ' + word;
      number = IsNumber(word);
    }
    const int width_of_part = DisplayWidth(part);
    if (!first && used + 1 + width_of_part > width) {
      out += '\n' + Spaces(indent);
      used = indent;
      first = true;
    }
    if (!first) {
      out += ' ';
      ++used;
    }
    out += part;
    used += width_of_part;
    first = false;
    i = end;
  }
  TrimRight(&out);
  return out + '\n';
}

std::string NoteLine(std::string_view text, const Style& style, int width) {
  return HangingLine(style.utf8 ? "· " : "- ", text, width);
}

std::string FlagLine(std::string_view text, const Style& style, int width) {
  const std::string marker =
      style.colour ? fmt::format("\x1b[1;38;5;{}m!{}", kWarning, kReset) : std::string("!");
  return HangingLine(marker + ' ', text, width);
}

Table::Table(std::vector<TableColumn> columns) : columns_(std::move(columns)) {
  if (columns_.empty()) throw std::invalid_argument("a table needs at least one column");
}

void Table::AddRow(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) {
    throw std::invalid_argument(fmt::format("a table of {} columns was given a row of {} cells",
                                            columns_.size(), cells.size()));
  }
  for (std::string& cell : cells) cell = OneLine(cell);
  rows_.push_back(std::move(cells));
}

void Table::AddRule() { rows_.emplace_back(); }

std::string Table::Render(const Style& style, int indent) const {
  std::vector<std::string> headers;
  std::vector<int> widths;
  for (const TableColumn& column : columns_) {
    headers.push_back(
        OneLine(column.unit.empty() ? column.header : column.header + " [" + column.unit + ']'));
    widths.push_back(DisplayWidth(headers.back()));
  }
  for (const std::vector<std::string>& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out = Spaces(indent);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) out += "  ";
      out += Pad(cells[i], widths[i], columns_[i].align);
    }
    TrimRight(&out);
    return out + '\n';
  };
  std::vector<std::string> dashes;
  for (int width : widths) dashes.push_back(Repeat(style.utf8 ? "─" : "-", width));
  const std::string rule = line(dashes);

  std::string out = line(headers) + rule;
  for (const std::vector<std::string>& row : rows_) out += row.empty() ? rule : line(row);
  return out;
}

// ---- Bars.

std::vector<int> AllocateCells(const std::vector<double>& values, int width) {
  for (double value : values) {
    if (!std::isfinite(value) || value < 0.0) {
      throw std::invalid_argument(
          fmt::format("a part of a bar must be finite and not negative, got {}", value));
    }
  }
  std::vector<std::size_t> pool;  // parts that share what is left in proportion
  double largest = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] > 0.0) pool.push_back(i);
    largest = std::max(largest, values[i]);
  }
  std::vector<int> cells(values.size(), 0);
  if (pool.empty()) return cells;
  if (width < static_cast<int>(pool.size())) {
    throw std::invalid_argument(fmt::format("{} parts do not fit in {} cells", pool.size(), width));
  }

  // Parts that are due less than one cell get one and leave the pool; the others then share less,
  // which may push more below one. Dividing by the largest keeps the sum from overflowing.
  int left = width;
  std::vector<double> quota(values.size(), 0.0);
  while (true) {
    double total = 0.0;
    for (std::size_t i : pool) total += values[i] / largest;
    for (std::size_t i : pool) quota[i] = values[i] / largest / total * left;
    const auto small = std::stable_partition(pool.begin(), pool.end(),
                                             [&](std::size_t i) { return quota[i] >= 1.0; });
    if (small == pool.end()) break;
    for (auto it = small; it != pool.end(); ++it) cells[*it] = 1;
    left -= static_cast<int>(pool.end() - small);
    pool.erase(small, pool.end());
    if (pool.empty()) return cells;  // one cell for each, all a rounding error below their one
  }

  for (std::size_t i : pool) {
    cells[i] = static_cast<int>(quota[i]);
    left -= cells[i];
  }
  std::stable_sort(pool.begin(), pool.end(), [&](std::size_t a, std::size_t b) {
    return quota[a] - std::floor(quota[a]) > quota[b] - std::floor(quota[b]);
  });
  for (std::size_t i = 0; left > 0; i = (i + 1) % pool.size(), --left) ++cells[pool[i]];
  return cells;
}

std::string StackedBar(const std::vector<BarPart>& parts, int width, const Style& style,
                       int indent) {
  if (parts.empty()) throw std::invalid_argument("a bar needs at least one part");
  std::vector<double> values;
  double largest = 0.0;
  for (const BarPart& part : parts) {
    values.push_back(part.value);
    largest = std::max(largest, part.value);
  }
  const std::vector<int> cells = AllocateCells(values, width);

  std::string bar;
  double total = 0.0;  // of the values over the largest
  std::vector<std::string> labels, texts, shares;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    bar += Fill(i, cells[i], style);
    if (largest > 0.0) total += parts[i].value / largest;
  }
  int label_width = 0, text_width = 0, share_width = 0;
  for (const BarPart& part : parts) {
    labels.push_back(OneLine(part.label));
    texts.push_back(OneLine(part.text));
    shares.push_back(Share(total > 0.0 ? part.value / largest / total : 0.0));
    label_width = std::max(label_width, DisplayWidth(labels.back()));
    text_width = std::max(text_width, DisplayWidth(texts.back()));
    share_width = std::max(share_width, DisplayWidth(shares.back()));
  }

  const std::string margin = Spaces(indent);
  std::string out = margin + (total > 0.0 ? bar : "(all parts are zero)") + '\n';
  for (std::size_t i = 0; i < parts.size(); ++i) {
    // A part without cells has no swatch: there is nothing of it to find in the bar.
    const std::string swatch = cells[i] > 0 ? Fill(i, 2, style) : Spaces(2);
    out += margin + swatch + ' ' + Pad(labels[i], label_width, Align::kLeft) + "  " +
           Pad(texts[i], text_width, Align::kRight) + (text_width > 0 ? "  " : "") +
           Pad(shares[i], share_width, Align::kRight) + '\n';
  }
  return out;
}

}  // namespace stepcast
