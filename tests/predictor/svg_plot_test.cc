// The plot, parsed back: is it XML, do ticks and labels stand where they should.
#include "predictor/report/svg_plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <locale>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace stepcast {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // unescaped

  bool Has(const std::string& key, const std::string& value) const {
    const auto found = attributes.find(key);
    return found != attributes.end() && found->second == value;
  }
  double Number(const std::string& key) const { return std::stod(attributes.at(key)); }
};

// Reads the subset of XML that a plot may use; throws std::runtime_error at the first fault.
class XmlChecker {
 public:
  explicit XmlChecker(const std::string& xml) : xml_(xml) {
    const std::string prolog = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    Check(xml_.compare(0, prolog.size(), prolog) == 0, "prolog");
    at_ = prolog.size();
    ReadElement();
    Check(xml_.substr(at_) == "\n", "something behind the root");
  }

  const std::vector<Element>& elements() const { return elements_; }

 private:
  void Check(bool good, const char* what) const {
    if (!good)
      throw std::runtime_error(std::string(what) + " at " +
                               xml_.substr(std::min(at_, xml_.size()), 60));
  }

  void Expect(const std::string& token) {
    Check(xml_.compare(at_, token.size(), token) == 0, token.c_str());
    at_ += token.size();
  }

  std::string Name() {
    const std::size_t start = at_;
    while (at_ < xml_.size() &&
           (std::isalnum(static_cast<unsigned char>(xml_[at_])) || xml_[at_] == '-')) {
      ++at_;
    }
    Check(at_ > start, "no name");
    return xml_.substr(start, at_ - start);
  }

  std::string Characters(char end) {
    static const std::map<std::string, std::string> kEntities = {
        {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}};
    std::string out;
    while (true) {
      Check(at_ < xml_.size(), "unfinished text");
      const char c = xml_[at_];
      if (c == end) return out;
      Check(c != '<' && c != '>', "unescaped bracket");
      Check(static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t', "control character");
      if (c == '&') {
        const std::size_t semicolon = xml_.find(';', at_);
        Check(semicolon != std::string::npos, "entity");
        const std::string entity = xml_.substr(at_, semicolon - at_ + 1);
        Check(kEntities.count(entity) == 1, "unknown entity");
        out += kEntities.at(entity);
        at_ = semicolon + 1;
      } else {
        out += c;
        ++at_;
      }
    }
  }

  void ReadElement() {
    Expect("<");
    const std::size_t index = elements_.size();
    elements_.emplace_back();
    const std::string name = Name();
    elements_[index].name = name;
    while (xml_[at_] == ' ') {
      ++at_;
      if (xml_[at_] == '/' || xml_[at_] == '>') break;
      const std::string key = Name();
      Expect("=\"");
      const std::string value = Characters('"');
      Expect("\"");
      Check(elements_[index].attributes.emplace(key, value).second, "attribute twice");
    }
    if (xml_.compare(at_, 2, "/>") == 0) {
      at_ += 2;
      return;
    }
    Expect(">");
    while (true) {
      elements_[index].text += Characters('<');
      if (xml_.compare(at_, 2, "</") == 0) break;
      ReadElement();
    }
    Expect("</" + name + ">");
  }

  const std::string& xml_;
  std::size_t at_ = 0;
  std::vector<Element> elements_;
};

std::vector<Element> Parse(const std::string& svg) { return XmlChecker(svg).elements(); }

std::vector<Element> Named(const std::vector<Element>& all, const std::string& name) {
  std::vector<Element> out;
  for (const Element& element : all) {
    if (element.name == name) out.push_back(element);
  }
  return out;
}

std::vector<Element> Texts(const std::vector<Element>& all, const std::string& key,
                           const std::string& value) {
  std::vector<Element> out;
  for (const Element& element : all) {
    if (element.name == "text" && element.Has(key, value)) out.push_back(element);
  }
  return out;
}

std::vector<std::string> Strings(const std::vector<Element>& elements) {
  std::vector<std::string> out;
  for (const Element& element : elements) out.push_back(element.text);
  return out;
}

// The labels of the y axis are the texts that end at its left; those of the x axis are centred.
std::vector<Element> YTicks(const std::string& svg) {
  return Texts(Parse(svg), "text-anchor", "end");
}
std::vector<Element> XTicks(const std::string& svg) {
  return Texts(Parse(svg), "text-anchor", "middle");
}
std::vector<Element> EndLabels(const std::string& svg) {
  return Texts(Parse(svg), "font-weight", "bold");
}

bool HasText(const std::string& svg, const std::string& text) {
  for (const Element& element : Named(Parse(svg), "text")) {
    if (element.text == text) return true;
  }
  return false;
}

PlotSeries Ring() {
  PlotSeries series;
  series.name = "ring";
  series.x = {1, 2, 4, 8, 16, 32};
  series.y = {0.20, 0.41, 0.52, 0.58, 0.62, 0.66};
  return series;
}

PlotOptions Labelled() {
  PlotOptions options;
  options.x_label = "Workers";
  options.y_label = "Step time (s)";
  return options;
}

// ---- Ticks.

TEST(LinearTicks, StepsOfOneTwoFive) {
  using V = std::vector<double>;
  EXPECT_EQ(internal::LinearTicks(0, 10, 5), (V{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(internal::LinearTicks(0.5, 10.5, 10), (V{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(internal::LinearTicks(-1, 1, 4), (V{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(internal::LinearTicks(0, 3, 10, 1.0), (V{0, 1, 2, 3}));
  std::mt19937 random(3);
  std::uniform_real_distribution<double> mantissa(-1.0, 1.0);
  std::uniform_real_distribution<double> exponent(-200.0, 200.0);
  for (int i = 0; i < 2000; ++i) {
    const double scale = std::pow(10.0, exponent(random));
    double low = scale * mantissa(random), high = scale * mantissa(random);
    if (low > high) std::swap(low, high);
    if (high - low < 1e-6 * scale) continue;
    const std::vector<double> ticks = internal::LinearTicks(low, high, 7);
    ASSERT_GE(ticks.size(), 2U);
    ASSERT_LE(ticks.size(), 8U);
    const double step = ticks[1] - ticks[0];
    for (std::size_t k = 1; k < ticks.size(); ++k) {
      EXPECT_NEAR((ticks[k] - ticks[k - 1]) / step, 1.0, 1e-6);
    }
    EXPECT_GE(ticks.front(), low - 1e-6 * step);
    EXPECT_LE(ticks.back(), high + 1e-6 * step);
    // The step is 1, 2 or 5 times a power of ten.
    const double leading = step / std::pow(10.0, std::floor(std::log10(step) + 1e-6));
    EXPECT_LT(std::min({std::abs(leading - 1), std::abs(leading - 2), std::abs(leading - 5)}), 1e-5)
        << step;
  }
}

TEST(LogTicks, NiceWithinThreeDecadesPowersBeyond) {
  using V = std::vector<double>;
  EXPECT_EQ(internal::LogTicks(1, 10), (V{1, 2, 5, 10}));
  EXPECT_EQ(internal::LogTicks(0.03, 3), (V{0.05, 0.1, 0.2, 0.5, 1, 2}));
  EXPECT_EQ(internal::LogTicks(1, 1e4), (V{1, 10, 100, 1000, 10000}));
  EXPECT_EQ(internal::LogTicks(1e-12, 1e12), (V{1e-12, 1e-9, 1e-6, 1e-3, 1, 1e3, 1e6, 1e9, 1e12}));
  EXPECT_EQ(internal::LogTicks(100, 105), (V{100, 101, 102, 103, 104, 105}));
  EXPECT_LE(internal::LogTicks(1e-200, 1e200).size(), 9U);
}

TEST(PowerOfTwoTicks, AllOrEveryNth) {
  using V = std::vector<double>;
  EXPECT_EQ(internal::PowerOfTwoTicks(1, 64), (V{1, 2, 4, 8, 16, 32, 64}));
  EXPECT_EQ(internal::PowerOfTwoTicks(0.9, 10), (V{1, 2, 4, 8}));
  EXPECT_EQ(internal::PowerOfTwoTicks(5, 7), V{});
  EXPECT_EQ(internal::PowerOfTwoTicks(1, 65536), (V{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536}));
}

// ---- The document.

TEST(SvgPlot, IsAnAccessibleXmlDocument) {
  PlotOptions options = Labelled();
  options.title = "ResNet-50";
  options.x_powers_of_two = true;
  const std::string svg = RenderSvgPlot({Ring()}, options);
  const std::vector<Element> all = Parse(svg);
  EXPECT_EQ(all[0].name, "svg");
  EXPECT_TRUE(all[0].Has("viewBox", "0 0 860 520"));
  EXPECT_TRUE(all[0].Has("role", "img"));
  EXPECT_EQ(all[1].name, "title");
  EXPECT_EQ(all[1].text, "ResNet-50");
  EXPECT_EQ(all[2].name, "desc");
  EXPECT_EQ(all[2].text,
            "Step time (s) against Workers. ring: 6 points, from 0.2 at 1 to 0.66 at 32.");
  EXPECT_TRUE(Named(all, "script").empty());
  EXPECT_TRUE(all[3].Has("fill", "#ffffff"));
}

TEST(SvgPlot, EscapesText) {
  PlotSeries series = Ring();
  series.name = "<b>\"R&D\"</b>'s";
  PlotOptions options = Labelled();
  options.title = "a < b & c > d";
  options.subtitle = "bell \x07, not UTF-8 \xff, \xed\xa0\x80";
  options.vertical_marks = {{4, "x<&>"}};
  const std::string svg = RenderSvgPlot({series}, options);
  EXPECT_TRUE(HasText(svg, "<b>\"R&D\"</b>'s"));
  EXPECT_TRUE(HasText(svg, "a < b & c > d"));
  EXPECT_TRUE(HasText(svg, "x<&>"));
  EXPECT_TRUE(HasText(svg,
                      "bell \xef\xbf\xbd, not UTF-8 \xef\xbf\xbd, "
                      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"));
  EXPECT_EQ(internal::EscapeXml("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(internal::EscapeXml("größe\n\xef\xbf\xbf"), "größe\n\xef\xbf\xbd");
}

TEST(SvgPlot, RefusesWhatItCannotDraw) {
  EXPECT_THROW(RenderSvgPlot({}, {}), std::invalid_argument);
  EXPECT_THROW(RenderSvgPlot({PlotSeries{}}, {}), std::invalid_argument);
  PlotSeries series;
  series.x = {1, 2};
  series.y = {kNan, kInfinity};
  EXPECT_THROW(RenderSvgPlot({series}, {}), std::invalid_argument);
  series.y = {-1, 0};
  PlotOptions log;
  log.log_y = true;
  EXPECT_THROW(RenderSvgPlot({series}, log), std::invalid_argument);
  series.y = {1};
  EXPECT_THROW(RenderSvgPlot({series}, {}), std::invalid_argument);
  series.y = {1, 2};
  series.low = {1, 2};
  EXPECT_THROW(RenderSvgPlot({series}, {}), std::invalid_argument);
  series.high = {1};
  EXPECT_THROW(RenderSvgPlot({series}, {}), std::invalid_argument);
  series.high = {2, 3};
  EXPECT_NO_THROW(RenderSvgPlot({series}, {}));
}

TEST(SvgPlot, SameBytesWhateverTheLocale) {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  PlotSeries series = Ring();
  series.x.back() = 32000.5;
  const std::string before = RenderSvgPlot({series}, Labelled());
  const std::locale old = std::locale::global(std::locale(std::locale(), new Comma));
  const std::string after = RenderSvgPlot({series}, Labelled());
  std::locale::global(old);
  EXPECT_EQ(before, after);
}

// ---- Axes.

TEST(SvgPlot, TicksOfALinearAxisStartAtZero) {
  const std::string svg = RenderSvgPlot({Ring()}, {});
  EXPECT_EQ(Strings(YTicks(svg)),
            (std::vector<std::string>{"0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7"}));
  EXPECT_EQ(Strings(XTicks(svg)),
            (std::vector<std::string>{"0", "5", "10", "15", "20", "25", "30"}));
}

TEST(SvgPlot, AnAxisFarFromZeroDoesNotReachIt) {
  PlotSeries series = Ring();
  series.y = {100, 101, 102, 103, 102, 101};
  const std::vector<std::string> ticks = Strings(YTicks(RenderSvgPlot({series}, {})));
  EXPECT_EQ(ticks.front(), "99.5");
  EXPECT_EQ(ticks.back(), "103.5");
}

TEST(SvgPlot, NegativeTicksHaveAMinusSign) {
  PlotSeries series;
  series.x = {0, 1};
  series.y = {-1, 1};
  const std::vector<std::string> ticks = Strings(YTicks(RenderSvgPlot({series}, {})));
  EXPECT_EQ(ticks.front(), "−1.0");
  EXPECT_NE(std::find(ticks.begin(), ticks.end(), "0.0"), ticks.end());
}

TEST(SvgPlot, PowersOfTwo) {
  PlotOptions options;
  options.x_powers_of_two = true;
  EXPECT_EQ(Strings(XTicks(RenderSvgPlot({Ring()}, options))),
            (std::vector<std::string>{"1", "2", "4", "8", "16", "32"}));
  PlotSeries series;
  series.x = {1, 1048576};
  series.y = {1, 2};
  const std::vector<std::string> ticks = Strings(XTicks(RenderSvgPlot({series}, options)));
  EXPECT_EQ(ticks.front(), "2⁰");
  EXPECT_EQ(ticks.back(), "2²⁰");
  series.x = {5, 7};
  EXPECT_EQ(Strings(XTicks(RenderSvgPlot({series}, options))),
            (std::vector<std::string>{"4", "8"}));
}

TEST(SvgPlot, ZeroStandsApartOnALogarithmicAxis) {
  PlotOptions options;
  options.log_x = true;
  PlotSeries series;
  series.x = {0, 1e-4, 1e-3, 1e-2};
  series.y = {4, 3, 2, 1};
  const std::string svg = RenderSvgPlot({series}, options);
  EXPECT_EQ(Strings(XTicks(svg)).front(), "0");
  EXPECT_EQ(Strings(XTicks(svg))[1], "0.0001");
  EXPECT_EQ(Parse(svg)[2].text, "y against x. Series: 4 points, from 4 at 0 to 1 at 0.01.");
  // Four markers, and a line that begins at the second point.
  std::size_t markers = 0;
  for (std::size_t at = 0; (at = svg.find("<circle", at)) != std::string::npos; ++at) ++markers;
  EXPECT_EQ(markers, 4U);
  const std::size_t line = svg.find("<path d=\"M");
  ASSERT_NE(line, std::string::npos);
  const std::string path = svg.substr(line, svg.find("/>", line) - line);
  EXPECT_EQ(std::count(path.begin(), path.end(), 'L'), 2);
  // It stands at a quarter of the least one above it.
  const std::vector<Element> points = Named(Parse(svg), "circle");
  const auto apart = [&](std::size_t i) {
    return points[i + 1].Number("cx") - points[i].Number("cx");
  };
  EXPECT_NEAR(apart(0) / apart(1), std::log10(4.0), 1e-3);
  EXPECT_NEAR(apart(2) / apart(1), 1, 1e-3);
  EXPECT_NEAR(XTicks(svg).front().Number("x"), points[0].Number("cx"), 0.02);
}

TEST(SvgPlot, TheLastTickHasALabel) {
  PlotOptions options;
  options.x_powers_of_two = true;
  PlotSeries series;
  for (int i = 0; i <= 20; ++i) {
    series.x.push_back(std::exp2(i));
    series.y.push_back(i + 1.0);
  }
  const auto ticks = internal::PowerOfTwoTicks(1, std::exp2(20));
  EXPECT_EQ(ticks.back(), std::exp2(20));
  EXPECT_EQ(Strings(XTicks(RenderSvgPlot({series}, options))).back(), "2²⁰");
}

TEST(SvgPlot, ManyBandsAreDrawnLightly) {
  PlotSeries one = Ring();
  one.low = one.y;
  one.high = one.y;
  for (double& high : one.high) high *= 1.1;
  const auto opacity = [](const std::string& svg) {
    const std::size_t at = svg.find("fill-opacity=\"") + 14;
    return std::stod(svg.substr(at));
  };
  const double few = opacity(RenderSvgPlot({one, one, one, one}, {}));
  EXPECT_LT(opacity(RenderSvgPlot({one, one, one, one, one}, {})), few / 2);
}

TEST(SvgPlot, LogarithmicTicks) {
  PlotSeries series;
  series.x = {0.5, 100};
  series.y = {1e-9, 1e-2};
  PlotOptions options;
  options.log_x = options.log_y = true;
  const std::string svg = RenderSvgPlot({series}, options);
  EXPECT_EQ(Strings(XTicks(svg)),
            (std::vector<std::string>{"0.5", "1", "2", "5", "10", "20", "50", "100"}));
  EXPECT_EQ(Strings(YTicks(svg)).front(), "10⁻⁹");
  EXPECT_EQ(Strings(YTicks(svg)).back(), "10⁻²");
}

TEST(SvgPlot, LargeAndSmallTicksShareAFactor) {
  PlotSeries series;
  series.x = {0, 4e6};
  series.y = {0, 2e-9};
  PlotOptions options;
  options.x_label = "Message size (B)";
  options.y_label = "Time";
  const std::string svg = RenderSvgPlot({series}, options);
  EXPECT_TRUE(HasText(svg, "Message size (10⁶ B)"));
  EXPECT_TRUE(HasText(svg, "Time (×10⁻⁹)"));
  EXPECT_EQ(Strings(YTicks(svg)).back(), "2.0");
}

// ---- Series.

TEST(SvgPlot, OneMarkerForEachFinitePoint) {
  PlotSeries series = Ring();
  series.y[1] = kNan;
  series.x[4] = kInfinity;
  const std::vector<Element> all = Parse(RenderSvgPlot({series}, {}));
  EXPECT_EQ(Named(all, "circle").size(), 4U);
  // Only 4 and 8 are neighbours: one line of two points, no bridge over a gap.
  const std::vector<Element> paths = Named(all, "path");
  ASSERT_EQ(paths.size(), 1U);
  const std::string& d = paths[0].attributes.at("d");
  EXPECT_EQ(std::count(d.begin(), d.end(), 'M'), 1);
  EXPECT_EQ(std::count(d.begin(), d.end(), 'L'), 1);
}

TEST(SvgPlot, PointsStandInTheOrderOfTheirValues) {
  for (const bool log : {false, true}) {
    PlotOptions options;
    options.log_x = options.log_y = log;
    const std::vector<Element> points = Named(Parse(RenderSvgPlot({Ring()}, options)), "circle");
    ASSERT_EQ(points.size(), 6U);
    for (std::size_t i = 1; i < points.size(); ++i) {
      EXPECT_GT(points[i].Number("cx"), points[i - 1].Number("cx"));
      EXPECT_LT(points[i].Number("cy"), points[i - 1].Number("cy"));
    }
  }
}

// A point on a tick's value is drawn at that tick.
TEST(SvgPlot, PointsAgreeWithTicks) {
  PlotSeries series;
  series.name = "s";
  series.x = {1, 2, 4};
  series.y = {1, 10, 100};
  PlotOptions options;
  options.x_powers_of_two = options.log_y = true;
  const std::string svg = RenderSvgPlot({series}, options);
  const std::vector<Element> points = Named(Parse(svg), "circle");
  std::size_t matched = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    for (const Element& tick : XTicks(svg)) {
      if (tick.text != std::to_string(1 << i)) continue;
      EXPECT_NEAR(tick.Number("x"), points[i].Number("cx"), 0.02);
      ++matched;
    }
    for (const Element& tick : YTicks(svg)) {
      if (tick.text != "1" + std::string(i, '0')) continue;
      EXPECT_NEAR(tick.Number("y") - 4.2, points[i].Number("cy"), 0.02);
      ++matched;
    }
  }
  EXPECT_EQ(matched, 6U);
}

TEST(SvgPlot, BandForALineErrorBarsForPoints) {
  PlotSeries series = Ring();
  for (double y : series.y) {
    series.low.push_back(0.9 * y);
    series.high.push_back(1.1 * y);
  }
  const auto bands = [](const std::string& svg) {
    std::size_t count = 0;
    for (const Element& path : Named(Parse(svg), "path")) {
      count += path.attributes.count("fill-opacity");
    }
    return count;
  };
  EXPECT_EQ(bands(RenderSvgPlot({series}, {})), 1U);
  series.high[2] = kInfinity;  // the band has a hole, the line has not
  EXPECT_EQ(bands(RenderSvgPlot({series}, {})), 2U);
  const std::size_t lines = Named(Parse(RenderSvgPlot({Ring()}, {})), "line").size();
  series.points_only = true;
  const std::string svg = RenderSvgPlot({series}, {});
  EXPECT_EQ(bands(svg), 0U);
  std::size_t bars = 0;
  for (const Element& line : Named(Parse(svg), "line"))
    bars += line.attributes.count("stroke-opacity");
  EXPECT_EQ(bars, 3U * 5U);
  EXPECT_GE(lines, 5U);
}

TEST(SvgPlot, ManyPointsNoMarkers) {
  PlotSeries series;
  for (int i = 0; i < 1000; ++i) {
    series.x.push_back(i);
    series.y.push_back(std::sin(i));
  }
  EXPECT_TRUE(Named(Parse(RenderSvgPlot({series}, {})), "circle").empty());
}

TEST(SvgPlot, SinglePoint) {
  PlotSeries series;
  series.name = "one";
  series.x = {4};
  series.y = {0.31};
  for (const bool log : {false, true}) {
    PlotOptions options;
    options.log_x = options.log_y = log;
    const std::string svg = RenderSvgPlot({series}, options);
    ASSERT_FALSE(Named(Parse(svg), "circle").empty());
    EXPECT_TRUE(Named(Parse(svg), "path").empty());
    EXPECT_GE(XTicks(svg).size(), 2U);
    EXPECT_GE(YTicks(svg).size(), 2U);
  }
}

// ---- Names.

TEST(SvgPlot, LinesAreLabelledAtTheirEnd) {
  std::vector<PlotSeries> series;
  for (int i = 0; i < 3; ++i) {
    series.push_back(Ring());
    series.back().name = "line " + std::to_string(i);
    for (double& y : series.back().y) y += 0.4 * i;
  }
  EXPECT_EQ(Strings(EndLabels(RenderSvgPlot(series, {}))),
            (std::vector<std::string>{"line 2", "line 1", "line 0"}));  // from the top down
  // Labels that would end too near each other are pushed apart.
  series[1].y.back() = series[0].y.back();
  const std::vector<Element> labels = EndLabels(RenderSvgPlot(series, {}));
  ASSERT_EQ(labels.size(), 3U);
  for (std::size_t i = 1; i < labels.size(); ++i) {
    EXPECT_GE(labels[i].Number("y") - labels[i - 1].Number("y"), 14.99);
  }
}

// Whatever follows a word that is too long for a label.
TEST(SvgPlot, ANameWithALongWordIsInTheLegend) {
  const std::string word(20, 'W');
  for (const std::string& name : {word, word + " end", "a " + word + " end"}) {
    PlotSeries series = Ring();
    series.name = name;
    const std::string svg = RenderSvgPlot({series}, {});
    EXPECT_TRUE(EndLabels(svg).empty()) << name;
    EXPECT_TRUE(HasText(svg, name)) << name;
  }
}

// What is cut is cut between words where one ends nearby, and within the word where that would
// leave little.
TEST(SvgPlot, LittleRoomIsLeftBehindATextThatIsCut) {
  PlotOptions options;
  const auto label = [&](const std::string& text) {
    options.y_label = text;
    for (const Element& element : Named(Parse(RenderSvgPlot({Ring()}, options)), "text")) {
      if (element.text.rfind("Step ", 0) == 0) return element.text;
    }
    return std::string();
  };
  const std::string cut = "…";
  const std::string within = label("Step " + std::string(400, 'x'));
  EXPECT_GT(within.size(), 80U);
  EXPECT_TRUE(within.ends_with("x" + cut)) << within;
  std::string words = "Step";
  for (int i = 0; i < 100; ++i) words += " after";
  const std::string between = label(words);
  EXPECT_GT(between.size(), 80U);
  EXPECT_TRUE(between.ends_with(" after" + cut)) << between;
}

// An axis reaches to the ends of the intervals, however far they are from their points.
TEST(SvgPlot, AnAxisHoldsWholeIntervals) {
  PlotSeries series;
  series.x = {1, 2};
  series.y = {1, 2};
  series.low = {0.01, 0.02};
  series.high = {100, 200};
  PlotOptions options;
  options.log_y = true;
  const std::vector<std::string> ticks = Strings(YTicks(RenderSvgPlot({series}, options)));
  EXPECT_EQ(ticks.front(), "0.01");
  EXPECT_EQ(ticks.back(), "1,000");
  series.low = {-50, 0};
  EXPECT_EQ(Strings(YTicks(RenderSvgPlot({series}, {}))).front(), "−50");
}

TEST(SvgPlot, ALegendWhereLabelsDoNotFit) {
  std::vector<PlotSeries> series(9, Ring());
  for (std::size_t i = 0; i < series.size(); ++i) series[i].name = "line " + std::to_string(i);
  const std::string svg = RenderSvgPlot(series, {});
  EXPECT_TRUE(EndLabels(svg).empty());
  for (const PlotSeries& one : series) EXPECT_TRUE(HasText(svg, one.name)) << one.name;
}

TEST(SvgPlot, WhatEndsEarlyOrHasNoLineIsInTheLegend) {
  PlotSeries early = Ring();
  early.name = "early";
  early.x = {1, 2, 3, 4, 5, 6};
  PlotSeries points = Ring();
  points.name = "measured";
  points.points_only = true;
  PlotSeries empty;
  empty.name = "empty";
  const std::string svg = RenderSvgPlot({Ring(), early, points, empty}, {});
  EXPECT_EQ(Strings(EndLabels(svg)), std::vector<std::string>{"ring"});
  EXPECT_TRUE(HasText(svg, "early"));
  EXPECT_TRUE(HasText(svg, "measured"));
  EXPECT_TRUE(HasText(svg, "empty (no data)"));
}

TEST(SvgPlot, ALegendThatIsTooLongSaysHowManyAreMissing) {
  std::vector<PlotSeries> series(60, Ring());
  for (std::size_t i = 0; i < series.size(); ++i) {
    series[i].name = "a rather long name of a series, number " + std::to_string(i);
  }
  const std::string svg = RenderSvgPlot(series, {});
  std::size_t named = 0, missing = 0;
  for (const Element& text : Named(Parse(svg), "text")) {
    named += text.text.rfind("a rather", 0) == 0;
    if (text.text.rfind("and ", 0) == 0) missing = std::stoul(text.text.substr(4));
  }
  EXPECT_GT(named, 0U);
  EXPECT_EQ(named + missing, 60U);
}

TEST(SvgPlot, ALongTitleIsWrappedAndKeptInFullForReaders) {
  PlotOptions options;
  for (int i = 0; i < 60; ++i) options.title += "word" + std::to_string(i) + " ";
  const std::string svg = RenderSvgPlot({Ring()}, options);
  EXPECT_EQ(Parse(svg)[1].text, options.title);
  std::size_t lines = 0;
  for (const Element& text : Named(Parse(svg), "text")) lines += text.text.rfind("word", 0) == 0;
  EXPECT_EQ(lines, 2U);
}

TEST(SvgPlot, MarksAreWithinTheAxisAndTheirLabelsApart) {
  PlotOptions options;
  options.x_powers_of_two = true;
  options.vertical_marks = {{64, "memory limit"},
                            {20, "scaling ends"},
                            {24, "best worker count"},
                            {kInfinity, "never"},
                            {-1, "nowhere"}};
  const std::string svg = RenderSvgPlot({Ring()}, options);
  std::map<std::string, Element> marks;
  for (const Element& text : Texts(Parse(svg), "font-style", "italic")) marks[text.text] = text;
  ASSERT_EQ(marks.size(), 3U);
  EXPECT_LT(marks["scaling ends"].Number("x"), marks["best worker count"].Number("x"));
  EXPECT_NE(marks["scaling ends"].Number("y"), marks["best worker count"].Number("y"));
  EXPECT_LT(marks["memory limit"].Number("x"), 860.0);
  EXPECT_EQ(Strings(XTicks(svg)).back(), "64");
}

TEST(SvgPlot, ColoursCanBeShared) {
  PlotSeries measured = Ring();
  measured.points_only = true;
  measured.colour = 0;
  const std::vector<Element> circles =
      Named(Parse(RenderSvgPlot({Ring(), measured}, {})), "circle");
  std::size_t filled = 0, hollow = 0;
  for (const Element& circle : circles) {
    filled += circle.Has("fill", "#0072b2");
    hollow += circle.Has("stroke", "#0072b2");
  }
  EXPECT_EQ(filled, 6U);
  EXPECT_EQ(hollow, 7U);  // one of them in the legend
}

// ---- What is drawn where.

// The upright or level lines of a colour.
std::vector<Element> LinesOf(const std::vector<Element>& all, const std::string& colour) {
  std::vector<Element> lines;
  for (const Element& line : Named(all, "line")) {
    if (line.Has("stroke", colour)) lines.push_back(line);
  }
  return lines;
}

// The height of a value, by two ticks of a linear axis.
double HeightOf(const std::string& svg, double value) {
  const std::vector<Element> ticks = YTicks(svg);
  const double low = std::stod(ticks.front().text);
  const double high = std::stod(ticks.back().text);
  const double bottom = ticks.front().Number("y") - 4.2;
  const double top = ticks.back().Number("y") - 4.2;
  return bottom + (value - low) / (high - low) * (top - bottom);
}

TEST(SvgPlot, IsToldInWords) {
  const struct {
    std::vector<PlotSeries> series;
    PlotOptions options;
    const char* words;
  } cases[] = {
      {{{.name = "a", .x = {1, 2}, .y = {3, 4000}}, {.name = "b", .x = {7}, .y = {8}}},
       {.x_label = "Workers", .y_label = "Time"},
       "Time against Workers. a: 2 points, from 3 at 1 to 4,000 at 2. b: 8 at 7."},
      {{{.x = {1, 2}, .y = {3, 4}}, {.name = "none", .x = {1}, .y = {kNan}}},
       {.vertical_marks = {{1.5, "here"}, {kInfinity, "never"}}},
       "y against x. Series: 2 points, from 3 at 1 to 4 at 2. none: no data. Mark at 1.5: here."},
      // What is left out does not count.
      {{{.name = "a", .x = {1, 2, 3}, .y = {kNan, 4, 5}}},
       {},
       "y against x. a: 2 points, from 4 at 2 to 5 at 3."},
  };
  for (const auto& c : cases) {
    const std::vector<Element> all = Parse(RenderSvgPlot(c.series, c.options));
    EXPECT_EQ(all[1].text, "Plot") << "without a title";
    EXPECT_EQ(all[2].text, c.words);
  }
}

// By shape too, as colours are not for all; beyond the palette by the stroke.
TEST(SvgPlot, SeriesDifferInShapeColourAndStroke) {
  std::vector<PlotSeries> series(9, Ring());
  for (std::size_t i = 0; i < series.size(); ++i) series[i].name = "line " + std::to_string(i);
  const std::string svg = RenderSvgPlot(series, {});
  std::vector<std::string> shapes;
  std::vector<std::string> strokes;
  for (std::size_t at = svg.find("<g>"); at != std::string::npos; at = svg.find("<g>", at + 1)) {
    const std::string group = svg.substr(at, svg.find("</g>", at) - at);
    const std::size_t shape = std::min(group.find("<circle"), group.find("<polygon"));
    // A polygon by how far its corners are from the first.
    std::string drawn = group.substr(shape, 7);
    if (drawn == "<polygo") {
      const std::size_t corners = shape + 17;
      std::string points = group.substr(corners, group.find('"', corners) - corners);
      std::replace(points.begin(), points.end(), ',', ' ');
      std::istringstream numbers(points);
      double first_x = 0;
      double first_y = 0;
      numbers >> first_x >> first_y;
      for (double x = 0, y = 0; numbers >> x >> y;) {
        drawn += " " + std::to_string(std::lround(10 * (x - first_x))) + "," +
                 std::to_string(std::lround(10 * (y - first_y)));
      }
    }
    shapes.push_back(drawn);
    const std::size_t line = group.find("<path");
    const std::string path = group.substr(line, group.find("/>", line) - line);
    strokes.push_back(path.substr(path.find("stroke=\"")));
  }
  ASSERT_EQ(shapes.size(), 9U);
  EXPECT_EQ(std::set<std::string>(shapes.begin(), shapes.begin() + 5).size(), 5U);
  EXPECT_EQ(std::set<std::string>(strokes.begin(), strokes.end()).size(), 9U);
  // The colours come again with the eighth, and another shape with them.
  EXPECT_NE(strokes[7].find("#0072b2"), std::string::npos) << strokes[7];
  EXPECT_NE(strokes[7].find("stroke-dasharray=\"2 3\""), std::string::npos) << strokes[7];
  EXPECT_NE(shapes[7], shapes[0]);
  PlotSeries dashed = Ring();
  dashed.dashed = true;
  EXPECT_NE(RenderSvgPlot({dashed}, {}).find("stroke-dasharray=\"7 4.5\""), std::string::npos);
}

TEST(SvgPlot, ErrorBarsReachFromLowToHigh) {
  PlotSeries series{.name = "s", .x = {1, 2}, .y = {4, 6}, .low = {3, 2}, .high = {5, 10}};
  series.points_only = true;
  const std::string svg = RenderSvgPlot({series}, {});
  std::vector<Element> upright;
  std::vector<Element> ends;
  for (const Element& line : LinesOf(Parse(svg), "#0072b2")) {
    (line.Has("x1", line.attributes.at("x2")) ? upright : ends).push_back(line);
  }
  ASSERT_EQ(upright.size(), 2U);
  ASSERT_EQ(ends.size(), 4U);
  const std::vector<Element> points = Named(Parse(svg), "circle");
  for (std::size_t i = 0; i < 2; ++i) {
    // The circle of the legend is drawn last.
    EXPECT_NEAR(upright[i].Number("x1"), points[i].Number("cx"), 0.02);
    EXPECT_NEAR(points[i].Number("cy"), HeightOf(svg, series.y[i]), 0.02);
    EXPECT_NEAR(upright[i].Number("y1"), HeightOf(svg, series.low[i]), 0.02);
    EXPECT_NEAR(upright[i].Number("y2"), HeightOf(svg, series.high[i]), 0.02);
    EXPECT_NEAR(ends[2 * i].Number("y1"), HeightOf(svg, series.low[i]), 0.02);
    EXPECT_NEAR(ends[2 * i + 1].Number("y1"), HeightOf(svg, series.high[i]), 0.02);
  }
}

// An interval that ends at zero, infinitely far down a logarithmic axis, runs off its bottom.
TEST(SvgPlot, WhatReachesZeroRunsOffTheBottom) {
  PlotSeries series{.name = "s", .x = {1}, .y = {4}, .low = {0}, .high = {5}};
  series.points_only = true;
  PlotOptions options;
  options.log_y = true;
  const std::string svg = RenderSvgPlot({series}, options);
  const double bottom = YTicks(svg).front().Number("y") - 4.2;
  double lowest = 0;
  for (const Element& line : LinesOf(Parse(svg), "#0072b2")) {
    lowest = std::max({lowest, line.Number("y1"), line.Number("y2")});
  }
  EXPECT_NEAR(lowest, bottom, 0.02);
}

TEST(SvgPlot, TheZeroOfAnAxisIsALine) {
  const auto axis_lines = [](double low) {
    PlotSeries series{.name = "s", .x = {0, 1}, .y = {low, 4}};
    std::vector<double> heights;
    for (const Element& line : LinesOf(Parse(RenderSvgPlot({series}, {})), "#888888")) {
      if (line.Has("y1", line.attributes.at("y2"))) heights.push_back(line.Number("y1"));
    }
    return heights;
  };
  EXPECT_EQ(axis_lines(0).size(), 1U) << "the x axis itself";
  const std::vector<double> both = axis_lines(-2);
  ASSERT_EQ(both.size(), 2U);
  PlotSeries series{.name = "s", .x = {0, 1}, .y = {-2, 4}};
  const std::string svg = RenderSvgPlot({series}, {});
  for (const Element& tick : YTicks(svg)) {
    if (tick.text == "0") {
      EXPECT_NEAR(tick.Number("y") - 4.2, both[1], 0.02);
    }
  }
}

TEST(SvgPlot, AMarkStandsAtItsValue) {
  PlotOptions options;
  options.x_powers_of_two = true;
  options.vertical_marks = {{4, "here"}, {32, "a long word at the right end"}};
  const std::string svg = RenderSvgPlot({Ring()}, options);
  const std::vector<Element> lines = LinesOf(Parse(svg), "#777777");
  ASSERT_EQ(lines.size(), 2U);
  for (const Element& tick : XTicks(svg)) {
    if (tick.text == "4") {
      EXPECT_NEAR(lines[0].Number("x1"), tick.Number("x"), 0.02);
    }
    if (tick.text == "32") {
      EXPECT_NEAR(lines[1].Number("x1"), tick.Number("x"), 0.02);
    }
  }
  // A text without room to the right of its line ends at it.
  const std::vector<Element> texts = Texts(Parse(svg), "font-style", "italic");
  ASSERT_EQ(texts.size(), 2U);
  EXPECT_EQ(texts[0].attributes.count("text-anchor"), 0U);
  EXPECT_GT(texts[0].Number("x"), lines[0].Number("x1"));
  EXPECT_TRUE(texts[1].Has("text-anchor", "end"));
  EXPECT_LT(texts[1].Number("x"), lines[1].Number("x1"));
}

// Twenty-four points of a line have markers; one more, on any of the lines, and none has.
TEST(SvgPlot, ALongLineHasNoMarkers) {
  const auto markers = [](int points, bool beside) {
    PlotSeries line{.name = "line"};
    for (int i = 0; i < points; ++i) {
      line.x.push_back(i);
      line.y.push_back(i);
    }
    std::vector<PlotSeries> series = {line};
    if (beside) series.push_back(Ring());
    const std::vector<Element> all = Parse(RenderSvgPlot(series, {}));
    return Named(all, "circle").size() + Named(all, "polygon").size();
  };
  EXPECT_EQ(markers(24, false), 24U);
  EXPECT_EQ(markers(25, false), 0U);
  EXPECT_EQ(markers(25, true), 0U);
}

// From 700 on there is room for a label at the end of a line that comes to it.
TEST(SvgPlot, LabelsAtTheEndOfLinesNeedRoom) {
  const auto labels = [](double width, double reach) {
    PlotOptions options;
    options.width = width;
    PlotSeries whole{.name = "whole", .x = {0, 100}, .y = {1, 2}};
    PlotSeries part{.name = "part", .x = {0, reach}, .y = {4, 5}};
    return Strings(EndLabels(RenderSvgPlot({whole, part}, options)));
  };
  using V = std::vector<std::string>;
  EXPECT_EQ(labels(700, 100), (V{"part", "whole"}));
  EXPECT_EQ(labels(699, 100), V());
  EXPECT_EQ(labels(700, 97), (V{"part", "whole"}));
  EXPECT_EQ(labels(700, 90), V{"whole"});
}

// The thin lines that lead to labels.
std::vector<Element> Leaders(const std::string& svg) {
  std::vector<Element> leaders;
  for (const Element& line : Named(Parse(svg), "line")) {
    if (line.Has("stroke-opacity", "0.6")) leaders.push_back(line);
  }
  return leaders;
}

// From 93 hundredths of the axis on a line has its label, and a thin line leads there where it is
// more than 40 away.
TEST(SvgPlot, AFarLabelIsLedTo) {
  const auto svg_of = [](double reach) {
    const PlotSeries part{.name = "part", .x = {0, reach}, .y = {1, 1.5}};
    const PlotSeries nameless{.x = {0, 100}, .y = {1, 2}};
    return RenderSvgPlot({part, nameless}, {});
  };
  // The axis ends at 102.
  EXPECT_TRUE(EndLabels(svg_of(94.5)).empty());
  int led = 0;
  int near = 0;
  for (double reach = 95; reach <= 100; reach += 0.25) {
    const std::string svg = svg_of(reach);
    ASSERT_EQ(EndLabels(svg).size(), 1U) << reach;
    const Element label = EndLabels(svg).front();
    const Element end = Named(Parse(svg), "circle").at(1);
    const double gap = label.Number("x") - end.Number("cx");
    if (std::abs(gap - 40) < 0.05) continue;
    const std::vector<Element> leaders = Leaders(svg);
    ASSERT_EQ(leaders.size(), gap > 40 ? 1U : 0U) << gap;
    (gap > 40 ? led : near) += 1;
    if (leaders.empty()) continue;
    EXPECT_NEAR(leaders[0].Number("x1"), end.Number("cx") + 6, 0.02);
    EXPECT_NEAR(leaders[0].Number("y1"), end.Number("cy"), 0.02);
    EXPECT_NEAR(leaders[0].Number("x2"), label.Number("x") - 4, 0.02);
    EXPECT_NEAR(leaders[0].Number("y2"), label.Number("y") - 4, 0.02) << "the middle of its line";
  }
  EXPECT_GT(led, 3);
  EXPECT_GT(near, 3);
}

// Of two ends nearer than a line of text both labels move, and are led to once that is more than 2.
TEST(SvgPlot, ALabelThatHasMovedIsLedTo) {
  int led = 0;
  int near = 0;
  for (int i = 2; i <= 30; ++i) {
    const PlotSeries lower{.name = "lower", .x = {0, 100}, .y = {0, 2}};
    const PlotSeries upper{.name = "upper", .x = {0, 100}, .y = {0, 2 + 0.005 * i}};
    const std::string svg = RenderSvgPlot({lower, upper}, {});
    const std::vector<Element> labels = EndLabels(svg);
    ASSERT_EQ(Strings(labels), (std::vector<std::string>{"upper", "lower"}));
    const double end = Named(Parse(svg), "circle").at(1).Number("cy");
    const double moved = std::abs(labels[1].Number("y") - 4 - end);
    if (std::abs(moved - 2) < 0.05) continue;
    EXPECT_EQ(Leaders(svg).size(), moved > 2 ? 2U : 0U) << moved;
    (moved > 2 ? led : near) += 1;
  }
  EXPECT_GT(led, 3);
  EXPECT_GT(near, 3);
}

// Of labels at one end the outer ones move by half a line for each of the others: six by 37.5 at
// most, and seven by more than the eye follows.
TEST(SvgPlot, LabelsMoveBySoMuch) {
  for (const std::size_t count : {std::size_t{6}, std::size_t{7}}) {
    std::vector<PlotSeries> series;
    for (std::size_t i = 0; i < count; ++i) {
      series.push_back({.name = std::string(1, static_cast<char>('a' + i)),
                        .x = {0, 50, 100},
                        .y = {0, 1, 0.5}});
    }
    EXPECT_EQ(EndLabels(RenderSvgPlot(series, {})).size(), count == 6 ? 6U : 0U);
  }
}

TEST(SvgPlot, MeasurementsLieOnTopOfLines) {
  PlotSeries points = Ring();
  points.name = "measured";
  points.points_only = true;
  const std::string svg = RenderSvgPlot({points, Ring()}, {});
  EXPECT_LT(svg.find("<title>ring</title>"), svg.find("<title>measured</title>"));
}

// Whether zero belongs to an axis, and where one value stands on it.
TEST(SvgPlot, EndsOfAnAxis) {
  const auto y_ends = [](std::vector<double> y, bool log) {
    PlotSeries series{.name = "s", .y = y};
    for (std::size_t i = 0; i < y.size(); ++i) series.x.push_back(static_cast<double>(i));
    PlotOptions options;
    options.log_y = log;
    const std::vector<std::string> ticks = Strings(YTicks(RenderSvgPlot({series}, options)));
    return std::pair(ticks.front(), ticks.back());
  };
  using Ends = std::pair<std::string, std::string>;
  EXPECT_EQ(y_ends({60, 100}, false), Ends("0", "100"));
  EXPECT_EQ(y_ends({61, 100}, false), Ends("50", "110"));
  EXPECT_EQ(y_ends({-100, -60}, false), Ends("−100", "0"));
  EXPECT_EQ(y_ends({7, 7}, false), Ends("0", "14"));
  EXPECT_EQ(y_ends({0, 0}, false), Ends("0.0", "1.0"));
  EXPECT_EQ(y_ends({3, 3}, true), Ends("1", "10"));
  EXPECT_EQ(y_ends({3, 2000}, true), Ends("2", "2,000"));
  EXPECT_EQ(y_ends({3, 20000}, true), Ends("1", "100,000"));
  EXPECT_EQ(y_ends({2e6, 8e6}, true), Ends("1", "9")) << "times a million";
}

TEST(SvgPlot, LabelsOfTicksBeyondAMillion) {
  PlotSeries series{.name = "s", .x = {1e6, 4e6, 6e7}, .y = {1, 2, 3}};
  PlotOptions options;
  options.log_x = true;
  EXPECT_EQ(Strings(XTicks(RenderSvgPlot({series}, options))),
            (std::vector<std::string>{"10⁶", "2×10⁶", "5×10⁶", "10⁷", "2×10⁷", "5×10⁷"}));
}

// A million and more, or all below a thousandth, is told times a power of ten.
TEST(SvgPlot, AFactorBeginsAtAMillion) {
  const auto last = [](double most) {
    PlotOptions options;
    options.y_label = "Time (s)";
    const std::string svg = RenderSvgPlot({{.name = "s", .x = {0, 1}, .y = {0, most}}}, options);
    const std::string tick = Strings(YTicks(svg)).back();
    for (const std::string factor : {"10⁶", "10⁻⁶", "10⁻³"}) {
      if (HasText(svg, "Time (" + factor + " s)")) return tick + " " + factor;
    }
    EXPECT_TRUE(HasText(svg, "Time (s)"));
    return tick;
  };
  EXPECT_EQ(last(7e5), "700,000");
  EXPECT_EQ(last(1e6), "1.0 10⁶");
  EXPECT_EQ(last(1e-3), "0.0010");
  EXPECT_EQ(last(7e-4), "700 10⁻⁶");
}

// Magnitudes that nobody means are none.
TEST(SvgPlot, WhatIsBeyondAllMeasureIsLeftOut) {
  PlotSeries series{.name = "s", .x = {1, 2, 3, 4}, .y = {1e201, 3, -1e201, 1e-201}};
  const std::string svg = RenderSvgPlot({series}, {});
  EXPECT_EQ(Parse(svg)[2].text, "y against x. s: 2 points, from 3 at 2 to 0 at 4.");
}

// ---- Anything at all: well-formed, on the page, ticks in order.

TEST(SvgPlot, RandomPlotsAreSound) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  const std::vector<double> odd = {kNan,   kInfinity, -kInfinity, 0.0,    1e300,
                                   -1e300, 1e-300,    5e-324,     1.7e308};
  int drawn = 0;
  for (int round = 0; round < 400; ++round) {
    PlotOptions options;
    options.log_x = random() % 2 == 0;
    options.log_y = random() % 2 == 0;
    options.x_powers_of_two = random() % 3 == 0;
    options.title = std::string(random() % 200, 'W');
    options.subtitle = random() % 2 == 0 ? "a subtitle" : "";
    options.y_label = random() % 2 == 0 ? "Size (B)" : "";
    const double x_spread = random() % 4 == 0 ? 190.0 : 3.0;
    const double y_spread = random() % 4 == 0 ? 190.0 : 1e-3 + static_cast<double>(random() % 5);
    const bool negative = random() % 2 == 0;
    const auto value = [&](double spread) {
      if (random() % 15 == 0) return odd[random() % odd.size()];
      const double magnitude = std::pow(10.0, spread * unit(random));
      return negative && random() % 2 == 0 ? -magnitude : magnitude;
    };
    std::vector<PlotSeries> series(1 + random() % 8);
    for (PlotSeries& one : series) {
      one.name = std::string(random() % 40, 'n') + " &";
      const std::size_t count = random() % 8;
      const bool interval = random() % 2 == 0;
      for (std::size_t i = 0; i < count; ++i) {
        one.x.push_back(value(x_spread));
        one.y.push_back(value(y_spread));
        if (!interval) continue;
        one.low.push_back(value(y_spread));
        one.high.push_back(value(y_spread));
      }
      one.points_only = random() % 3 == 0;
      one.dashed = random() % 3 == 0;
    }
    for (unsigned i = random() % 4; i > 0; --i)
      options.vertical_marks.emplace_back(value(x_spread), "m");
    std::string svg;
    try {
      svg = RenderSvgPlot(series, options);
    } catch (const std::invalid_argument&) {
      continue;
    }
    ++drawn;
    SCOPED_TRACE(svg);
    ASSERT_EQ(svg.find("nan"), std::string::npos);
    ASSERT_EQ(svg.find("=\"inf"), std::string::npos);
    const std::vector<Element> all = Parse(svg);
    for (const Element& element : all) {
      for (const auto& [key, text] : element.attributes) {
        const bool is_x = key == "x" || key == "x1" || key == "x2" || key == "cx";
        const bool is_y = key == "y" || key == "y1" || key == "y2" || key == "cy";
        if (!is_x && !is_y) continue;
        ASSERT_GE(std::stod(text), 0.0) << element.name;
        ASSERT_LE(std::stod(text), is_x ? 860.0 : 520.0) << element.name;
      }
    }
    std::vector<Element> x_ticks, y_ticks;
    for (const Element& tick : Texts(all, "text-anchor", "middle")) {
      if (x_ticks.empty() || tick.Number("y") == x_ticks[0].Number("y")) x_ticks.push_back(tick);
    }
    for (const Element& tick : Texts(all, "text-anchor", "end")) {
      if (!tick.Has("font-style", "italic")) y_ticks.push_back(tick);
    }
    ASSERT_GE(x_ticks.size(), 1U);
    ASSERT_GE(y_ticks.size(), 2U);
    // The y axis ends on ticks: the upright grid lines run from the last to the first.
    for (const Element& line : Named(all, "line")) {
      if (!line.Has("stroke", "#e4e4e4") || line.Number("x1") != line.Number("x2")) continue;
      ASSERT_NEAR(line.Number("y1"), y_ticks.back().Number("y") - 4.2, 0.02);
      ASSERT_NEAR(line.Number("y2"), y_ticks.front().Number("y") - 4.2, 0.02);
    }
    for (std::size_t i = 1; i < x_ticks.size(); ++i) {
      ASSERT_GT(x_ticks[i].Number("x"), x_ticks[i - 1].Number("x"));
      ASSERT_NE(x_ticks[i].text, x_ticks[i - 1].text);
    }
    for (std::size_t i = 1; i < y_ticks.size(); ++i) {
      ASSERT_LT(y_ticks[i].Number("y"), y_ticks[i - 1].Number("y"));
      ASSERT_NE(y_ticks[i].text, y_ticks[i - 1].text);
    }
    const std::vector<Element> labels = Texts(all, "font-weight", "bold");
    for (std::size_t i = 1; i < labels.size(); ++i) {
      if (labels[i].Has("font-size", "12") && labels[i - 1].Has("font-size", "12")) {
        ASSERT_GE(labels[i].Number("y") - labels[i - 1].Number("y"), 14.98);
      }
    }
  }
  EXPECT_GT(drawn, 250);
}

TEST(SvgPlot, ANarrowOneHasALegendForAll) {
  PlotSeries line{.name = "ring", .x = {1, 2, 4}, .y = {1, 2, 3}};
  PlotOptions options;
  EXPECT_EQ(EndLabels(RenderSvgPlot({line}, options)).size(), 1U);
  options.width = 420;
  options.height = 310;
  const std::string svg = RenderSvgPlot({line}, options);
  EXPECT_TRUE(EndLabels(svg).empty());
  const std::vector<Element> all = Parse(svg);
  EXPECT_TRUE(all.front().Has("viewBox", "0 0 420 310"));
  for (const Element& element : all) {
    for (const char* key : {"x", "x1", "x2", "cx"}) {
      if (element.attributes.count(key) == 0) continue;
      EXPECT_LE(element.Number(key), 420) << element.name;
    }
  }
}

TEST(SvgPlot, ManyPointsAreDrawnSmall) {
  const auto radius = [](int points) {
    PlotSeries series;
    series.points_only = true;
    for (int i = 0; i < points; ++i) {
      series.x.push_back(i);
      series.y.push_back(i);
    }
    return Named(Parse(RenderSvgPlot({series}, {})), "circle").front().Number("r");
  };
  EXPECT_LT(radius(41), radius(40));
  EXPECT_EQ(radius(1), radius(40));
}

}  // namespace
}  // namespace stepcast
