// Text for a terminal: numbers with their units, tables, bars and marked lines.
//
// Everything here turns values into a std::string; nothing prints, or looks at the process. A
// string of more than one line ends every line with '\n'; no line ends with a space; the digits do
// not depend on the locale. A value that is not finite prints as "nan", "inf" or "-inf".
//
//   const Style style = StyleFor(environment);
//   std::cout << Heading("Step time", style)
//             << StackedBar({{"compute", 0.204, "204 ms"}, {"exposed sync", 0.096, "96 ms"}},
//                           WidthFor(environment) - 4, style);
#ifndef STEPCAST_PREDICTOR_REPORT_TERMINAL_H_
#define STEPCAST_PREDICTOR_REPORT_TERMINAL_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/units/quantity.h"

namespace stepcast {

// ---- What the terminal can show.

// How text may be dressed. The default is what any pipe or log can take.
struct Style {
  bool colour = false;  // ANSI escape sequences, 256 colours
  bool utf8 = false;    // box lines and blocks, otherwise ASCII
};

// Where text is shown; an unset variable is nullopt.
struct TerminalEnvironment {
  bool is_terminal = false;
  std::optional<int> columns_of_terminal;
  std::optional<std::string> no_color;
  std::optional<std::string> term;
  std::optional<std::string> columns;
  std::optional<std::string> lc_all;
  std::optional<std::string> lc_ctype;
  std::optional<std::string> lang;
};

// Colour on a terminal whose TERM is set and not "dumb", unless NO_COLOR is set and not empty
// (no-color.org). UTF-8 if the first of LC_ALL, LC_CTYPE, LANG that is not empty names that
// charset.
Style StyleFor(const TerminalEnvironment& environment);

// Columns of the terminal, else of the variable COLUMNS, else 100; always within 60..120.
int WidthFor(const TerminalEnvironment& environment);

// ---- Numbers. Three significant digits, without zeros at the end; digits before the point are
// all kept and grouped by thousands. Rounding comes before the choice of unit: 999.6 ms is "1 s".

// "0.0312", "9.33", "204", "12,346"; below 1e-4 and from 1e15 on with an exponent, "1.23e-05".
std::string FormatNumber(double value);

// "12.5 us", "204 ms", "9.33 s", "12 min 05 s", "2 h 05 min", "3 d 04 h", "12.3 years".
std::string FormatDuration(Duration<> duration);

// "9.42 Gbit/s", "94.9 Mbit/s", "56 kbit/s", "1 bit/s".
std::string FormatRate(DataRate<> rate);

// "512 B", "97.6 MiB", "1.23 GiB"; 1 KiB is 1024 B.
std::string FormatSize(DataSize<> size);

// Rounded to whole bytes: "102,334,368 B".
std::string FormatSizeExact(DataSize<> size);

// Rounded to a whole number: "12,345,678".
std::string FormatCount(double count);
// "1 rank", "2 ranks".
std::string Several(std::int64_t count, const char* what);

// FormatPercent(0.0481) is "4.81 %".
std::string FormatPercent(double fraction);

// The same of packets that are lost, of which less than all are never "100 %", where nothing would
// arrive: "99.9999 %".
std::string FormatLoss(double share);

// "2.24x".
std::string FormatFactor(double factor);

// "187 samples/s".
std::string FormatThroughput(SampleRate<> rate);

// ---- Text.

// Columns that `text` takes in a terminal: escape sequences and combining marks take none, East
// Asian wide characters and emoji two, all else (also a byte that is not UTF-8) one.
int DisplayWidth(std::string_view text);

// A section's title: bold with colour, otherwise underlined with a rule.
std::string Heading(std::string_view text, const Style& style);

// `marker` and behind it the text, wrapped at `width` columns under itself. A number stays with the
// word behind it, which is its unit or what it counts; what is longer than the line is kept whole.
std::string HangingLine(const std::string& marker, std::string_view text, int width = 100);

// A remark, and a warning marked "!", both of that form.
std::string NoteLine(std::string_view text, const Style& style, int width = 100);
std::string FlagLine(std::string_view text, const Style& style, int width = 100);

enum class Align { kLeft, kRight };

// A column, of numbers if nothing else is said: a header alone is one, too.
struct TableColumn {
  TableColumn(const char* text) : header(text) {}             // NOLINT(google-explicit-constructor)
  TableColumn(std::string text) : header(std::move(text)) {}  // NOLINT(google-explicit-constructor)
  TableColumn(std::string text, std::string in, Align to = Align::kRight)
      : header(std::move(text)), unit(std::move(in)), align(to) {}

  std::string header;
  std::string unit;  // shown as "header [unit]"; empty for none
  Align align = Align::kRight;
};
// A column of words.
inline TableColumn LeftColumn(std::string header) { return {std::move(header), "", Align::kLeft}; }

// A table with a light rule under its header and two spaces between columns. It wraps and cuts
// nothing; control characters in a cell become spaces.
class Table {
 public:
  // Throws std::invalid_argument without columns.
  explicit Table(std::vector<TableColumn> columns);

  // Throws std::invalid_argument if there are not as many cells as columns.
  void AddRow(std::vector<std::string> cells);

  // A rule between the rows before and after, as above a total.
  void AddRule();

  std::string Render(const Style& style, int indent = 0) const;

  const std::vector<TableColumn>& columns() const { return columns_; }
  // A row without cells is a rule.
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// ---- Bars.

// Shares `width` cells among `values` in proportion, by largest remainder, but at least one cell
// to each value above zero.
//
// Note that the cells sum to `width` (or are all zero if all values are), a larger value never has
// fewer cells than a smaller one, and equal values differ by at most one cell. Throws
// std::invalid_argument if a value is negative or not finite, or if more values are above zero than
// there are cells.
std::vector<int> AllocateCells(const std::vector<double>& values, int width);

struct BarPart {
  std::string label;
  double value = 0.0;  // in any unit that all parts share
  std::string text;    // the value as printed, "204 ms"
};

// One line of `width` cells divided in proportion to the parts, and under it a legend line for each
// part: swatch, label, text, share. Parts differ by colour, or else by glyph (ten, then again from
// the first). Throws as AllocateCells does, and if there are no parts.
std::string StackedBar(const std::vector<BarPart>& parts, int width, const Style& style,
                       int indent = 2);

namespace internal {

// Columns of one code point: 0, 1 or 2.
int CodePointWidth(char32_t code_point);

// Groups the whole part of a plain decimal number: "-1234567.25" -> "-1,234,567.25".
std::string GroupThousands(const std::string& number);

}  // namespace internal
}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_REPORT_TERMINAL_H_
