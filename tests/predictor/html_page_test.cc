// The page, read back: texts stay texts, nothing is loaded, and it can be read by everybody.
#include "predictor/report/html_page.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/html.h"

namespace stepcast {
namespace {

// A page with `text` wherever it takes one.
std::string PageOf(const std::string& text) {
  HtmlPage page(text, text);
  page.Section(text);
  page.Subsection(text);
  page.Paragraph(text);
  page.Notes({text, text});
  page.Warnings({text});
  page.AddLines(text, text);
  Table table({{text, text, Align::kLeft}, {text, "", Align::kRight}});
  table.AddRow({text, text});
  table.AddRow({"", text});
  table.AddRule();
  table.AddRow({text, text});
  page.AddTable(table, text);
  HeatMap map;
  map.corner = text;
  map.names = {text, text};
  map.cells.assign(2, std::vector<std::optional<HeatMap::Cell>>(2));
  map.cells[0][1] = HeatMap::Cell{text, 4};
  page.AddHeatMap(map, text);
  constexpr std::size_t kMany = 17;  // whose cells show no text
  map.names.assign(kMany, text);
  map.cells.assign(kMany, std::vector<std::optional<HeatMap::Cell>>(kMany));
  map.cells[0][1] = HeatMap::Cell{text, 0};
  page.AddHeatMap(map, text);
  PlotSeries line{.name = text, .x = {1, 2}, .y = {1, 2}};
  PlotOptions options;
  options.title = text;
  options.x_label = options.y_label = "s";
  page.AddPlot({line}, options, text);
  return page.Text();
}

std::vector<std::string> Tags(const std::string& page) {
  std::vector<std::string> tags;
  for (const HtmlElement& element : ReadHtml(page)) tags.push_back(element.name);
  return tags;
}

const std::vector<std::string> kHostile = {"<script>alert(1)</script>",
                                           "\"><img src=x onerror=alert(1)>",
                                           "</title></style></script>",
                                           "<!--",
                                           "-->",
                                           "&lt;script&gt;",
                                           "&amp;",
                                           "'\" onload='x",
                                           "]]>",
                                           "<svg/onload=x>",
                                           "\xff\xfe",
                                           "\xe2\x80\xae",
                                           "javascript:alert(1)",
                                           "http://example.org/x.js"};

// A table of fifteen rows is kept on one sheet of paper.
TEST(HtmlReport, ShortTablesStayTogether) {
  for (const auto& [rows, kind] :
       {std::pair(1, "small"), std::pair(15, "small"), std::pair(16, "long")}) {
    HtmlPage page("title", "");
    page.Section("section");
    Table table({{"", "", Align::kLeft}});
    for (int i = 0; i < rows; ++i) table.AddRow({"row"});
    page.AddTable(table, "caption");
    const auto tables = HtmlNamed(ReadHtml(page.Text()), "table");
    ASSERT_EQ(tables.size(), 1U);
    EXPECT_EQ(tables.front().Get("class"), kind) << rows;
  }
}

TEST(HtmlReport, HostileTextsStayTexts) {
  const std::vector<std::string> plain = Tags(PageOf("plain"));
  for (const std::string& text : kHostile) {
    SCOPED_TRACE(text);
    const std::string page = PageOf(text);
    EXPECT_EQ(Tags(page), plain);
    if (text.find('\xff') != std::string::npos) continue;  // not UTF-8: stands as U+FFFD
    EXPECT_EQ(HtmlNamed(ReadHtml(page), "h1").front().text, text);
    EXPECT_EQ(HtmlNamed(ReadHtml(page), "pre").front().text, text);
  }
}

RC_GTEST_PROP(HtmlReport, NoTextBecomesMarkup, ()) {
  std::string text = "x";  // a plot leaves out what names nothing
  for (const std::string& part : *rc::gen::container<std::vector<std::string>>(
           rc::gen::oneOf(rc::gen::elementOf(kHostile), rc::gen::arbitrary<std::string>()))) {
    text += part;
  }
  // Lines of a label on a plot are cut at its spaces, wherever these are.
  text = std::regex_replace(text, std::regex("[\\s\\x00-\\x1f]"), "_");
  static const std::vector<std::string> plain = Tags(PageOf("plain"));
  RC_ASSERT(Tags(PageOf(text)) == plain);
}

TEST(HtmlReport, NothingIsLoaded) {
  const std::string page = PageOf("plain");
  for (const char* way : {"http:", "https:", "url(", "@import", "<script", " src="}) {
    EXPECT_EQ(page.find(way), std::string::npos) << way;
  }
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos) << "and nothing may be";
  EXPECT_EQ(page, PageOf("plain"));
}

TEST(HtmlReport, ItsStructureIsForThoseWhoDoNotSeeIt) {
  HtmlPage page("Title", "of a test");
  page.Section("First");
  page.Subsection("Below");
  page.Section("Second");
  Table table({{"of", "", Align::kLeft}, {"value", "s", Align::kRight}});
  table.AddRow({"a", "1"});
  table.AddRow({"", "2"});
  table.AddRow({"b", "3"});
  table.AddRule();
  table.AddRow({"all", "6"});
  page.AddTable(table, "Values", true);
  page.AddTable(table, "The same");
  page.AddPlot({{.name = "line", .x = {1, 2}, .y = {3, 4}}}, {.title = "Plot"}, "with a line");
  const std::vector<HtmlElement> all = ReadHtml(page.Text());
  EXPECT_EQ(HtmlNamed(all, "html").front().Get("lang"), "en");
  EXPECT_EQ(HtmlNamed(all, "title").front().text, "Title");
  EXPECT_EQ(HtmlNamed(all, "h1").size(), 1U);
  // The contents lead to the sections, which are named by their headings.
  const auto links = HtmlNamed(all, "a");
  const auto headings = HtmlNamed(all, "h2");
  const auto sections = HtmlNamed(all, "section");
  ASSERT_EQ(links.size(), 2U);
  ASSERT_EQ(headings.size(), 2U);
  for (std::size_t i = 0; i < links.size(); ++i) {
    EXPECT_EQ(links[i].Get("href"), "#" + headings[i].Get("id"));
    EXPECT_EQ(links[i].text, headings[i].text);
    EXPECT_EQ(sections[i].Get("aria-labelledby"), headings[i].Get("id"));
  }
  // Rows and columns have their headers.
  std::vector<std::pair<std::string, std::string>> scopes;
  for (const HtmlElement& head : HtmlNamed(all, "th")) {
    scopes.emplace_back(head.text, head.Get("scope") + head.Get("rowspan"));
  }
  EXPECT_EQ(scopes, (std::vector<std::pair<std::string, std::string>>{{"of", "col"},
                                                                      {"value [s]", "col"},
                                                                      {"a", "rowgroup2"},
                                                                      {"b", "row"},
                                                                      {"all", "row"},
                                                                      {"of", "col"},
                                                                      {"value [s]", "col"},
                                                                      {"a", "row"},
                                                                      {"", "row"},
                                                                      {"b", "row"},
                                                                      {"all", "row"}}));
  EXPECT_EQ(TableOf(all, "Values").rows[2], std::vector<std::string>{"2"});
  const auto rows = HtmlNamed(all, "tr");
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(),
                          [](const auto& row) { return row.Get("class") == "total"; }),
            2);
  // The plot has a name and says in words what it shows.
  const HtmlElement plot = HtmlNamed(all, "svg").front();
  EXPECT_EQ(plot.Get("role"), "img");
  EXPECT_NE(plot.text.find("line: 2 points"), std::string::npos) << plot.text;
  EXPECT_EQ(HtmlNamed(all, "figcaption").front().text, "Plot with a line");
  // What is wider than the page is reached by the keyboard.
  for (const HtmlElement& part : HtmlNamed(all, "div")) {
    if (part.Get("class") != "scroll") continue;
    EXPECT_EQ(part.Get("tabindex"), "0");
    EXPECT_NE(part.Get("aria-label"), "");
  }
}

TEST(HtmlReport, AHeatMapSaysItsValues) {
  HeatMap map;
  map.corner = "from \\ to";
  map.names = {"n1", "n2", "n3"};
  map.cells.assign(3, std::vector<std::optional<HeatMap::Cell>>(3));
  map.cells[0][1] = HeatMap::Cell{"1 Gbit/s", 0};
  map.cells[0][2] = HeatMap::Cell{"100 Mbit/s", 4};
  HtmlPage page("t", "s");
  page.Section("x");
  page.AddHeatMap(map, "Rates");
  const std::vector<HtmlElement> all = ReadHtml(page.Text());
  const HtmlTable table = TableOf(all, "Rates");
  EXPECT_EQ(table.rows[0], (std::vector<std::string>{"from \\ to", "n1", "n2", "n3"}));
  EXPECT_EQ(table.rows[1], (std::vector<std::string>{"n1", "", "1 Gbit/s", "100 Mbit/s"}));
  EXPECT_EQ(table.rows[2], (std::vector<std::string>{"n2", "?", "", "?"}));
  std::vector<std::string> shades;
  for (const HtmlElement& cell : HtmlNamed(all, "td")) {
    if (!cell.Get("class").empty()) shades.push_back(cell.Get("class"));
  }
  EXPECT_EQ(shades, (std::vector<std::string>{"h0", "h4"}));
}

// Of more than sixteen names a map is a pattern, whose values are told where one points.
TEST(HtmlReport, AMapOfManyNamesIsAPattern) {
  for (const std::size_t names : {std::size_t{16}, std::size_t{17}}) {
    HeatMap map;
    map.corner = "from";
    map.names.assign(names, "n");
    map.cells.assign(names, std::vector<std::optional<HeatMap::Cell>>(names));
    map.cells[2][1] = HeatMap::Cell{"5 ms", 3};
    HtmlPage page("t", "s");
    page.Section("x");
    page.AddHeatMap(map, "Trips");
    const std::vector<HtmlElement> all = ReadHtml(page.Text());
    const bool dense = names > 16;
    EXPECT_EQ(HtmlNamed(all, "table").front().Get("class"), dense ? "heat dense" : "heat small");
    const auto cells = HtmlNamed(all, "td");
    ASSERT_EQ(cells.size(), names * names);
    const HtmlElement& cell = cells[2 * names + 1];
    EXPECT_EQ(cell.Get("class"), "h3");
    EXPECT_EQ(cell.text, "5 ms");
    EXPECT_EQ(cell.Get("title"), dense ? "5 ms" : "");
  }
}

// Cells of sentences are broken into lines, those of names and numbers are not; nor is the first.
TEST(HtmlReport, SentencesInACellAreBroken) {
  HtmlPage page("t", "s");
  page.Section("x");
  const std::string name(41, 'n');
  Table table({{"run", "", Align::kLeft},
               {"forty", "", Align::kLeft},
               {"more", "", Align::kLeft},
               {"value", "", Align::kRight}});
  table.AddRow({name, std::string(40, 'x'), std::string(41, 'x'), "1"});
  table.AddRow({"b", "", "short", "2"});
  page.AddTable(table, "Runs");
  const std::vector<HtmlElement> all = ReadHtml(page.Text());
  std::vector<std::string> classes;
  for (const HtmlElement& cell : HtmlNamed(all, "td")) classes.push_back(cell.Get("class"));
  EXPECT_EQ(classes, (std::vector<std::string>{"left", "left wrap", "", "left", "left wrap", ""}));
  for (const HtmlElement& head : HtmlNamed(all, "th")) {
    EXPECT_EQ(head.Get("class"), head.text == "value" ? "" : "left") << head.text;
  }
}

// Plots that follow each other stand side by side, whatever else there is.
TEST(HtmlReport, PlotsStandSideBySide) {
  HtmlPage page("t", "s");
  page.Section("x");
  const PlotSeries line{.name = "line", .x = {1, 2}, .y = {3, 4}};
  const auto add = [&](const std::string& title) {
    PlotOptions options;
    options.title = title;
    page.AddPlot({line}, options, "of " + title);
  };
  add("one");
  add("two");
  page.Paragraph("between");
  add("three");
  page.Section("y");
  const std::vector<HtmlElement> all = ReadHtml(page.Text());
  std::vector<std::string> within;
  for (const HtmlElement& figure : HtmlNamed(all, "figure")) {
    const HtmlElement& around = all[static_cast<std::size_t>(figure.parent)];
    EXPECT_EQ(around.Get("class"), "figures");
    within.push_back(std::to_string(figure.parent));
  }
  ASSERT_EQ(within.size(), 3U);
  EXPECT_EQ(within[0], within[1]);
  EXPECT_NE(within[1], within[2]);
  std::vector<std::string> captions;
  for (const HtmlElement& caption : HtmlNamed(all, "figcaption")) captions.push_back(caption.text);
  EXPECT_EQ(captions, (std::vector<std::string>{"one of one", "two of two", "three of three"}));
  for (const HtmlElement& svg : HtmlNamed(all, "svg")) {
    EXPECT_EQ(svg.Get("viewBox"), "0 0 420 310");
  }
}

// Notes are a list, warnings one that says what they are, and of none there is nothing.
TEST(HtmlReport, ListsOfSentences) {
  HtmlPage page("t", "s");
  page.Section("x");
  const std::string before = page.Text();
  page.Notes({});
  page.Warnings({});
  EXPECT_EQ(page.Text(), before);
  page.Notes({"one", "two"});
  page.Warnings({"three"});
  page.AddLines("a\n b", "to copy");
  const std::vector<HtmlElement> all = ReadHtml(page.Text());
  std::vector<std::string> lists;
  for (const HtmlElement& list : HtmlNamed(all, "ul")) lists.push_back(list.Get("class"));
  EXPECT_EQ(lists, (std::vector<std::string>{"", "notes", "warnings"})) << "behind the contents";
  std::vector<std::string> items;
  for (const HtmlElement& item : HtmlNamed(all, "li")) items.push_back(item.text);
  EXPECT_EQ(items, (std::vector<std::string>{"x", "one", "two", "Note: three"}));
  EXPECT_EQ(HtmlNamed(all, "pre").front().text, "a\n b");
  EXPECT_EQ(HtmlNamed(all, "p").back().text, "to copy");
  EXPECT_EQ(HtmlNamed(all, "p").front().text, "s") << "below the title";
}

// ---- Colours.

using Colours = std::map<std::string, std::string>;

// The colours of a style, light ones and those of a dark screen.
std::pair<Colours, Colours> ColoursOf(const std::string& style) {
  std::pair<Colours, Colours> colours;
  const std::regex variable("--([a-z0-9-]+): *(#[0-9a-f]{6})");
  std::size_t at = 0;
  while (at < style.size()) {
    const std::size_t end = std::min(style.find("}\n", at), style.size());
    const std::string part = style.substr(at, end - at);
    const bool dark = part.find("prefers-color-scheme") != std::string::npos;
    for (auto it = std::sregex_iterator(part.begin(), part.end(), variable);
         it != std::sregex_iterator(); ++it) {
      (dark ? colours.second : colours.first)[(*it)[1]] = (*it)[2];
    }
    at = end + 1;
  }
  return colours;
}

// Of WCAG 2.1.
double Luminance(const std::string& colour) {
  const auto channel = [&](std::size_t at) {
    const double c = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}
double Contrast(const std::string& a, const std::string& b) {
  const auto [low, high] = std::minmax({Luminance(a), Luminance(b)});
  return (high + 0.05) / (low + 0.05);
}

TEST(HtmlReport, TextsAndLinesStandOutLightAndDark) {
  const std::string style = HtmlNamed(ReadHtml(PageOf("plain")), "style").front().text;
  const auto [light, dark] = ColoursOf(style);
  ASSERT_GT(light.size(), 30U);
  for (const auto& colours : {light, dark}) {
    ASSERT_EQ(colours.size(), light.size()) << "each colour has both";
    const auto expect = [&](const std::string& front, const std::string& ground, double least) {
      EXPECT_GE(Contrast(colours.at(front), colours.at(ground)), least)
          << front << " on " << ground;
    };
    constexpr double kText = 4.5;
    constexpr double kShape = 3;
    for (const char* ground : {"page", "card"}) {
      for (const char* front : {"text", "soft", "accent", "warn"}) expect(front, ground, kText);
    }
    for (const char* heat : {"heat-0", "heat-1", "heat-2", "heat-3"}) {
      expect("heat-text", heat, kText);
    }
    expect("heat-text-4", "heat-4", kText);
    expect("plot-ink", "plot-paper", kText);
    expect("plot-soft-ink", "plot-paper", kText);
    expect("plot-axis", "plot-paper", kShape);
    for (int i = 0; i < 7; ++i) expect("plot-text-" + std::to_string(i), "plot-paper", kText);
    EXPECT_EQ(colours.at("plot-paper"), colours.at("card")) << "plots lie on their page";
  }
}

// A plot's title and subtitle are its caption, and not drawn into it once more.
TEST(HtmlReport, APlotIsNamedAboveItAlone) {
  HtmlPage page("page", "of plots");
  page.Section("plots");
  PlotOptions options;
  options.title = "How long steps take";
  options.subtitle = "in a day";
  options.x_label = options.y_label = "s";
  page.AddPlot({{.name = "line", .x = {1, 2}, .y = {1, 2}}}, options, "of all");
  const auto elements = ReadHtml(page.Text());
  const auto drawn = HtmlNamed(elements, "text");
  EXPECT_GT(drawn.size(), 3U);
  for (const HtmlElement& text : drawn) {
    EXPECT_EQ(text.text.find("How long"), std::string::npos);
    EXPECT_EQ(text.text.find("in a day"), std::string::npos);
  }
  EXPECT_EQ(HtmlNamed(elements, "strong").front().text, "How long steps take");
}

// Every colour of a plot is one that the page's style has.
TEST(HtmlReport, PlotsHaveTheColoursAroundThem) {
  const std::string page = PageOf("plain");
  const std::regex used("(?:fill|stroke)=\"([^\"]*)\"");
  const Colours light = ColoursOf(HtmlNamed(ReadHtml(page), "style").front().text).first;
  int count = 0;
  for (auto it = std::sregex_iterator(page.begin(), page.end(), used); it != std::sregex_iterator();
       ++it) {
    const std::string colour = (*it)[1];
    if (colour == "none") continue;
    ASSERT_EQ(colour.rfind("var(--", 0), 0U) << colour;
    EXPECT_EQ(light.count(colour.substr(6, colour.size() - 7)), 1U) << colour;
    ++count;
  }
  EXPECT_GT(count, 10);
}

}  // namespace
}  // namespace stepcast
