// A page of HTML that needs nothing else: no script, no file beside it, no network. It is read on a
// screen of any width, dark or light, and printed on paper.
//
// Texts are escaped, whatever they hold; tables are those of the terminal, plots those of the SVG
// writer in the colours of the page. A policy in its head forbids all loading. The same calls give
// the same bytes.
//
//   HtmlPage page("Calibration of lab", "from 12 runs");
//   page.Section("Parameters");
//   page.AddTable(table, "Fitted values");
//   std::string html = page.Text();
#ifndef STEPCAST_PREDICTOR_REPORT_HTML_PAGE_H_
#define STEPCAST_PREDICTOR_REPORT_HTML_PAGE_H_

#include <optional>
#include <string>
#include <vector>

#include "predictor/report/svg_plot.h"
#include "predictor/report/terminal.h"

namespace stepcast {

// Values of ordered pairs of a few names, shaded by how bad each is.
struct HeatMap {
  static constexpr int kShades = 5;
  struct Cell {
    std::string text;
    int shade = 0;  // below kShades; 0 is as good as the best
  };

  std::string corner;  // "from \ to"
  std::vector<std::string> names;
  // By row, then column; nothing on the diagonal and where nothing is known.
  std::vector<std::vector<std::optional<Cell>>> cells;
};

class HtmlPage {
 public:
  HtmlPage(const std::string& title, const std::string& subtitle);

  // Begins a section, and names it in the list of contents.
  void Section(const std::string& title);
  // A heading below that of the section.
  void Subsection(const std::string& title);

  void Paragraph(const std::string& text);
  // A sentence each. Warnings are marked, by more than their colour.
  void Notes(const std::vector<std::string>& sentences);
  void Warnings(const std::vector<std::string>& sentences);
  // Lines that are kept as they are, as those of a file.
  void AddLines(const std::string& lines, const std::string& caption);

  // The first column names the rows; with `groups` a row whose first cell is empty belongs to the
  // one above it.
  void AddTable(const Table& table, const std::string& caption, bool groups = false);
  void AddHeatMap(const HeatMap& map, const std::string& caption);
  // A plot under its title. `options` say nothing of its size, which fits half of the page.
  void AddPlot(const std::vector<PlotSeries>& series, PlotOptions options,
               const std::string& caption);

  std::string Text() const;

 private:
  void Open(bool figures);
  void BeginTable(const std::string& caption, const char* kind);

  std::string title_;
  std::string subtitle_;
  std::vector<std::string> contents_;  // titles of the sections
  std::string body_;
  bool in_figures_ = false;  // plots stand side by side
};

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_REPORT_HTML_PAGE_H_
