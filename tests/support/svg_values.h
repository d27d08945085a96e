// A plot of ours, read back into the values that it shows.
#ifndef STEPCAST_TESTS_SUPPORT_SVG_VALUES_H_
#define STEPCAST_TESTS_SUPPORT_SVG_VALUES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace stepcast {

using PlotPoints = std::vector<std::pair<double, double>>;

// A curve: what it is called, its line, and its markers, each at its middle.
struct ShownCurve {
  std::string name;
  PlotPoints line;
  PlotPoints markers;
  bool dashed = false;
};

struct ShownBar {
  double x = 0;
  double low = 0;
  double high = 0;
};

// Its axes have to be of the kind that is said: ticks in between are where their labels are.
class ShownPlot {
 public:
  ShownPlot(const std::string& svg, bool log_x, bool log_y) : svg_(svg), x_(log_x), y_(log_y) {
    std::vector<std::pair<double, double>> x_ticks;
    std::vector<std::pair<double, double>> y_ticks;
    for (const std::smatch& text :
         All("<text x=\"([0-9.]+)\" y=\"([0-9.]+)\" font-size=\"12\" "
             "fill=\"(#555555|var\\(--plot-soft-ink\\))\" text-anchor=\"(middle|end)\">([^<]*)<",
             svg_)) {
      const bool is_x = text[4] == "middle";
      constexpr double kBaseline = 4.2;  // of a label below the middle of its tick
      (is_x ? x_ticks : y_ticks)
          .emplace_back(std::stod(text[is_x ? 1 : 2]) - (is_x ? 0 : kBaseline), ValueOf(text[5]));
    }
    x_.Fit(x_ticks);
    y_.Fit(y_ticks);
    for (const std::smatch& path :
         All("<path d=\"([^\"]*) Z\" fill=\"[^\"]*\" fill-opacity=", svg_)) {
      bands.push_back(Points(path[1]));
    }
    for (const std::smatch& bar :
         All("<line x1=\"([0-9.]+)\" y1=\"([0-9.]+)\" x2=\"([0-9.]+)\" y2=\"([0-9.]+)\" "
             "stroke=\"[^\"]*\" stroke-width=\"1.4\" stroke-opacity=\"0.75\"",
             svg_)) {
      if (bar[1] != bar[3]) continue;  // its ends
      bars.push_back(
          {x_.At(std::stod(bar[1])), y_.At(std::stod(bar[2])), y_.At(std::stod(bar[4]))});
    }
    for (const std::smatch& mark :
         All("<line x1=\"([0-9.]+)\" y1=\"[0-9.]+\" x2=\"[0-9.]+\" y2=\"[0-9.]+\" "
             "stroke=\"[^\"]*\" stroke-width=\"1.2\" stroke-dasharray=\"4 3\"",
             svg_)) {
      marks.push_back(x_.At(std::stod(mark[1])));
    }
    std::size_t at = 0;
    while ((at = svg_.find("<g>", at)) != std::string::npos) {
      const std::size_t end = svg_.find("</g>", at);
      curves.push_back(CurveOf(svg_.substr(at, end - at)));
      at = end;
    }
  }

  // The curve of the name; one without a point where there is none.
  ShownCurve Named(const std::string& name) const {
    for (const ShownCurve& curve : curves) {
      if (curve.name == name) return curve;
    }
    return {};
  }
  // Whether one of its texts is this, or has it in it.
  bool Says(const std::string& text) const { return svg_.find(text) != std::string::npos; }

  std::vector<ShownCurve> curves;  // points alone are drawn behind all lines
  std::vector<PlotPoints> bands;   // along the upper end and back along the lower one
  std::vector<ShownBar> bars;      // of intervals
  std::vector<double> marks;       // where upright lines stand

 private:
  class Axis {
   public:
    explicit Axis(bool log) : log_(log) {}

    void Fit(const std::vector<std::pair<double, double>>& ticks) {
      ASSERT_GE(ticks.size(), 2U);
      begin_ = ticks.front();
      end_ = ticks.back();
      for (const auto& [place, value] : ticks) {
        EXPECT_NEAR(PlaceOf(value), place, 0.05) << "a tick at " << value;
      }
    }
    double At(double place) const {
      const double share = (place - begin_.first) / (end_.first - begin_.first);
      if (!log_) return begin_.second + share * (end_.second - begin_.second);
      return begin_.second * std::pow(end_.second / begin_.second, share);
    }

   private:
    double PlaceOf(double value) const {
      const double share =
          log_ ? std::log(value / begin_.second) / std::log(end_.second / begin_.second)
               : (value - begin_.second) / (end_.second - begin_.second);
      return begin_.first + share * (end_.first - begin_.first);
    }

    bool log_;
    std::pair<double, double> begin_;
    std::pair<double, double> end_;
  };

  static std::vector<std::smatch> All(const std::string& pattern, const std::string& text) {
    const std::regex regex(pattern);
    return {std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()};
  }

  static double ValueOf(std::string label) {
    std::erase(label, ',');
    const std::string minus = "−";
    if (label.rfind(minus, 0) == 0) return -std::stod(label.substr(minus.size()));
    return std::stod(label);
  }

  PlotPoints Points(std::string path) const {
    std::replace_if(
        path.begin(), path.end(), [](char c) { return c == 'M' || c == 'L' || c == ','; }, ' ');
    std::istringstream numbers(path);
    PlotPoints points;
    for (double x = 0, y = 0; numbers >> x >> y;) points.emplace_back(x_.At(x), y_.At(y));
    return points;
  }

  ShownCurve CurveOf(const std::string& group) const {
    ShownCurve curve;
    for (const std::smatch& title : All("<title>([^<]*)</title>", group)) curve.name = title[1];
    for (const std::smatch& path : All("<path d=\"([^\"]*)\"", group)) {
      for (const auto& point : Points(path[1])) curve.line.push_back(point);
    }
    curve.dashed = group.find("stroke-dasharray=\"7 4.5\"") != std::string::npos;
    for (const std::smatch& marker :
         All("<circle cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"|<polygon points=\"([^\"]*)\"", group)) {
      if (marker[1].matched) {
        curve.markers.emplace_back(x_.At(std::stod(marker[1])), y_.At(std::stod(marker[2])));
        continue;
      }
      std::string corners = marker[3];
      std::replace(corners.begin(), corners.end(), ',', ' ');
      std::istringstream numbers(corners);
      std::vector<double> xs;
      std::vector<double> ys;
      for (double x = 0, y = 0; numbers >> x >> y;) {
        xs.push_back(x);
        ys.push_back(y);
      }
      // Of a square that is its middle, and of a triangle where it stands.
      const auto [left, right] = std::minmax_element(xs.begin(), xs.end());
      const auto [top, bottom] = std::minmax_element(ys.begin(), ys.end());
      curve.markers.emplace_back(x_.At((*left + *right) / 2), y_.At((*top + *bottom) / 2));
    }
    return curve;
  }

  const std::string svg_;
  Axis x_;
  Axis y_;
};

// As near as a coordinate of two decimals tells.
inline void ExpectPoints(const PlotPoints& shown, const PlotPoints& expected) {
  ASSERT_EQ(shown.size(), expected.size());
  double x_range = 0;
  double y_range = 0;
  for (const auto& [x, y] : expected) {
    x_range = std::max(x_range, std::abs(x));
    y_range = std::max(y_range, std::abs(y));
  }
  constexpr double kNear = 1e-3;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    EXPECT_NEAR(shown[i].first, expected[i].first, kNear * x_range) << "point " << i;
    EXPECT_NEAR(shown[i].second, expected[i].second, kNear * y_range) << "point " << i;
  }
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_SVG_VALUES_H_
