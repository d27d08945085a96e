#include "predictor/report/html_page.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepcast {
namespace {

using internal::EscapeXml;

// Plots are drawn for this width, so that two stand side by side and one fits on a phone.
constexpr double kPlotWidth = 420.0;
constexpr double kPlotHeight = 310.0;

// A map of more names has cells without visible text.
constexpr std::size_t kMostShownNames = 16;

// Nothing is loaded, and the icon that browsers ask for is empty.
constexpr const char* kHead =
    R"(<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
)";

constexpr const char* kStyle =
    R"(:root{color-scheme:light dark;--page:#f4f5f7;--card:#ffffff;--text:#1b2430;--soft:#55606e;--line:#d5dae1;--accent:#0b5cad;--warn:#8a4b00;
--heat-0:#ffffff;--heat-1:#fdeccf;--heat-2:#fbd29b;--heat-3:#f3a75c;--heat-4:#b23a0a;--heat-text:#1b2430;--heat-text-4:#ffffff}
@media screen and (prefers-color-scheme:dark){:root{--page:#11161d;--card:#1a212b;--text:#e6ebf2;--soft:#a4b0be;--line:#35404e;--accent:#7db8f5;--warn:#f0b46a;
--heat-0:#1a212b;--heat-1:#35291a;--heat-2:#533813;--heat-3:#7d4a10;--heat-4:#f3a75c;--heat-text:#e6ebf2;--heat-text-4:#11161d}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:15px/1.5 system-ui,"DejaVu Sans",sans-serif}
header,main,footer{max-width:1120px;margin:0 auto;padding:0 20px}
header{padding-top:24px}
h1{font-size:26px;line-height:1.25;margin:0;overflow-wrap:anywhere}
header p{margin:4px 0 0;color:var(--soft)}
nav{margin-top:12px;font-size:14px}
nav ul{list-style:none;margin:0;padding:0;display:flex;flex-wrap:wrap;gap:4px 18px}
nav a{color:var(--accent);display:inline-block;min-height:24px}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;margin:16px 0;padding:14px 18px;min-width:0}
h2{font-size:19px;margin:0 0 8px}
h3{font-size:16px;margin:18px 0 6px;overflow-wrap:anywhere}
p{margin:6px 0;max-width:78ch;overflow-wrap:anywhere}
ul.notes,ul.warnings{margin:6px 0;padding-left:20px;max-width:84ch;overflow-wrap:anywhere}
ul.warnings{list-style:none;padding:0}
ul.warnings li{border-left:4px solid var(--warn);padding:2px 0 2px 10px;margin:6px 0}
ul.warnings strong{color:var(--warn)}
.scroll{overflow-x:auto;margin:10px 0}
table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding:2px 0 6px;font-size:14px}
caption span{display:block;position:sticky;left:0;max-width:min(84ch,100vw - 64px);width:max-content}
th,td{padding:4px 10px;border-bottom:1px solid var(--line);text-align:right;vertical-align:top;white-space:nowrap;unicode-bidi:isolate}
th{font-weight:600}
thead th{color:var(--soft);vertical-align:bottom}
td.left,th.left{text-align:left}
td.wrap{white-space:normal;min-width:30ch;overflow-wrap:anywhere}
tr.total th,tr.total td{border-top:2px solid var(--soft)}
pre{background:var(--page);border:1px solid var(--line);border-radius:6px;padding:8px 10px;font-size:13px;overflow-x:auto;margin:4px 0 12px}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:16px;margin:10px 0}
figure{margin:0;min-width:0;max-width:640px}
figcaption{font-size:14px;color:var(--soft);overflow-wrap:anywhere}
figcaption strong{color:var(--text);display:block}
figure svg{display:block;width:100%;height:auto}
table.heat td{border:1px solid var(--card);color:var(--heat-text);text-align:center;vertical-align:middle}
table.heat th{vertical-align:middle}
.h0{background:var(--heat-0)}.h1{background:var(--heat-1)}.h2{background:var(--heat-2)}.h3{background:var(--heat-3)}
table.heat td.h4{background:var(--heat-4);color:var(--heat-text-4)}
table.dense td{padding:0;width:11px;min-width:11px;height:11px;font-size:0}
table.dense th{padding:0 4px;font-size:9px;line-height:11px;border:0}
table.dense thead th{writing-mode:vertical-rl;padding:4px 0;text-align:right}
footer{color:var(--soft);font-size:13px;padding-bottom:28px}
@media (max-width:600px){header,main,footer{padding:0 10px}header{padding-top:14px}section{padding:12px 10px;border-radius:8px}h1{font-size:22px}th,td{padding:4px 7px}}
@page{size:A4;margin:14mm 12mm}
@media print{:root{color-scheme:light}body{background:#fff;font-size:9.5pt}nav{display:none}
header,main,footer{max-width:none;padding:0}section{border:0;border-radius:0;padding:0;margin:14pt 0 0}
h1{font-size:18pt}h2{font-size:13pt;border-bottom:1px solid var(--line);padding-bottom:2pt}h3{font-size:11pt}
h2,h3,caption{break-after:avoid}p,li,tr,figure,pre{break-inside:avoid}p,li{orphans:3;widows:3}thead{display:table-header-group}
.scroll{overflow:visible}table,pre{font-size:7.5pt}caption,figcaption{font-size:8.5pt}th,td{padding:2pt 4pt}th.left,td.left{white-space:normal}td.wrap{min-width:16ch}caption span{max-width:none;width:auto}table.small{break-inside:avoid}
pre{white-space:pre-wrap;overflow-wrap:anywhere}.figures{grid-template-columns:1fr 1fr;gap:10pt}
table.heat td,figure svg{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
)";

std::string SectionId(std::size_t number) { return fmt::format("section-{}", number); }

// Whether cells of the column are sentences rather than names and numbers.
bool IsLong(const Table& table, std::size_t column) {
  constexpr std::size_t kLongest = 40;
  return std::any_of(table.rows().begin(), table.rows().end(), [&](const auto& row) {
    return !row.empty() && row[column].size() > kLongest;
  });
}

// Beside which rows the first cell of this row stands, rules left out.
std::size_t RowsOfName(const Table& table, std::size_t row) {
  std::size_t count = 1;
  for (std::size_t i = row + 1; i < table.rows().size(); ++i) {
    if (table.rows()[i].empty() || !table.rows()[i].front().empty()) break;
    ++count;
  }
  return count;
}

std::string ListOf(const std::vector<std::string>& sentences, const char* kind, const char* mark) {
  std::string text = fmt::format("<ul class=\"{}\">\n", kind);
  for (const std::string& sentence : sentences) {
    text += fmt::format("<li>{}{}</li>\n", mark, EscapeXml(sentence));
  }
  return text + "</ul>\n";
}

}  // namespace

HtmlPage::HtmlPage(const std::string& title, const std::string& subtitle)
    : title_(title), subtitle_(subtitle) {}

// Closes the plots side by side, or begins them.
void HtmlPage::Open(bool figures) {
  if (figures == in_figures_) return;
  body_ += figures ? "<div class=\"figures\">\n" : "</div>\n";
  in_figures_ = figures;
}

void HtmlPage::Section(const std::string& title) {
  Open(false);
  if (!contents_.empty()) body_ += "</section>\n";
  contents_.push_back(title);
  body_ += fmt::format("<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n",
                       SectionId(contents_.size()), EscapeXml(title));
}

void HtmlPage::Subsection(const std::string& title) {
  Open(false);
  body_ += fmt::format("<h3>{}</h3>\n", EscapeXml(title));
}

void HtmlPage::Paragraph(const std::string& text) {
  Open(false);
  body_ += fmt::format("<p>{}</p>\n", EscapeXml(text));
}

void HtmlPage::Notes(const std::vector<std::string>& sentences) {
  if (sentences.empty()) return;
  Open(false);
  body_ += ListOf(sentences, "notes", "");
}

void HtmlPage::Warnings(const std::vector<std::string>& sentences) {
  if (sentences.empty()) return;
  Open(false);
  body_ += ListOf(sentences, "warnings", "<strong>Note:</strong> ");
}

void HtmlPage::AddLines(const std::string& lines, const std::string& caption) {
  Open(false);
  body_ += fmt::format("<p>{}</p>\n<pre tabindex=\"0\">{}</pre>\n", EscapeXml(caption),
                       EscapeXml(lines));
}

// A wide table is scrolled within the page, by the keyboard too.
void HtmlPage::BeginTable(const std::string& caption, const char* kind) {
  Open(false);
  body_ += fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">\n"
      "<table class=\"{1}\">\n<caption><span>{0}</span></caption>\n",
      EscapeXml(caption), kind);
}

void HtmlPage::AddTable(const Table& table, const std::string& caption, bool groups) {
  const std::vector<TableColumn>& columns = table.columns();
  std::vector<std::string> classes;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool left = columns[i].align == Align::kLeft;
    classes.emplace_back(!left                       ? ""
                         : i > 0 && IsLong(table, i) ? " class=\"left wrap\""
                                                     : " class=\"left\"");
  }
  // A short one is kept on one sheet of paper.
  constexpr std::size_t kShort = 15;
  BeginTable(caption, table.rows().size() <= kShort ? "small" : "long");
  body_ += "<thead><tr>";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const TableColumn& column = columns[i];
    const std::string unit = column.unit.empty() ? "" : " [" + column.unit + "]";
    // An empty header names nothing.
    const char* tag = column.header.empty() ? "td" : "th";
    body_ += fmt::format("<{0}{1}{2}>{3}</{0}>", tag, column.header.empty() ? "" : " scope=\"col\"",
                         column.align == Align::kLeft ? " class=\"left\"" : "",
                         EscapeXml(column.header + unit));
  }
  body_ += "</tr></thead>\n<tbody>\n";
  bool total = false;
  std::size_t named = 0;  // rows that the last name still stands beside
  for (std::size_t r = 0; r < table.rows().size(); ++r) {
    const std::vector<std::string>& row = table.rows()[r];
    if (row.empty()) {
      total = true;
      continue;
    }
    body_ += total ? "<tr class=\"total\">" : "<tr>";
    total = false;
    if (named > 0) {
      --named;
    } else {
      const std::size_t count = groups ? RowsOfName(table, r) : 1;
      named = count - 1;
      body_ += fmt::format("<th scope=\"{}\"{}{}>{}</th>", count > 1 ? "rowgroup" : "row",
                           count > 1 ? fmt::format(" rowspan=\"{}\"", count) : "", classes.front(),
                           EscapeXml(row.front()));
    }
    for (std::size_t i = 1; i < row.size(); ++i) {
      body_ += fmt::format("<td{}>{}</td>", classes[i], EscapeXml(row[i]));
    }
    body_ += "</tr>\n";
  }
  body_ += "</tbody>\n</table>\n</div>\n";
}

void HtmlPage::AddHeatMap(const HeatMap& map, const std::string& caption) {
  const bool dense = map.names.size() > kMostShownNames;
  BeginTable(caption, dense ? "heat dense" : "heat small");
  body_ +=
      fmt::format("<thead><tr><th scope=\"col\" class=\"left\">{}</th>", EscapeXml(map.corner));
  for (const std::string& name : map.names) {
    body_ += fmt::format("<th scope=\"col\">{}</th>", EscapeXml(name));
  }
  body_ += "</tr></thead>\n<tbody>\n";
  for (std::size_t a = 0; a < map.names.size(); ++a) {
    body_ += fmt::format("<tr><th scope=\"row\" class=\"left\">{}</th>", EscapeXml(map.names[a]));
    for (std::size_t b = 0; b < map.names.size(); ++b) {
      const std::optional<HeatMap::Cell>& cell = map.cells[a][b];
      if (!cell) {
        body_ += a == b ? "<td></td>" : "<td>?</td>";
        continue;
      }
      const std::string text = EscapeXml(cell->text);
      body_ += fmt::format("<td class=\"h{}\"{}>{}</td>", cell->shade,
                           dense ? fmt::format(" title=\"{}\"", text) : "", text);
    }
    body_ += "</tr>\n";
  }
  body_ += "</tbody>\n</table>\n</div>\n";
}

void HtmlPage::AddPlot(const std::vector<PlotSeries>& series, PlotOptions options,
                       const std::string& caption) {
  Open(true);
  options.on_page = true;
  options.width = kPlotWidth;
  options.height = kPlotHeight;
  body_ +=
      fmt::format("<figure>\n<figcaption><strong>{}</strong> {}</figcaption>\n{}</figure>\n",
                  EscapeXml(options.title), EscapeXml(caption), RenderSvgPlot(series, options));
}

std::string HtmlPage::Text() const {
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n{}<title>{}</title>\n<style>\n{}{}</style>\n"
      "</head>\n<body>\n<header>\n<h1>{}</h1>\n<p>{}</p>\n",
      kHead, EscapeXml(title_), kStyle, PlotStyle(), EscapeXml(title_), EscapeXml(subtitle_));
  text += "<nav aria-label=\"Contents\">\n<ul>\n";
  for (std::size_t i = 0; i < contents_.size(); ++i) {
    text +=
        fmt::format("<li><a href=\"#{}\">{}</a></li>\n", SectionId(i + 1), EscapeXml(contents_[i]));
  }
  text += "</ul>\n</nav>\n</header>\n<main>\n" + body_;
  if (in_figures_) text += "</div>\n";
  if (!contents_.empty()) text += "</section>\n";
  return text + "</main>\n</body>\n</html>\n";
}

}  // namespace stepcast
