// Scaling plots as SVG, written by our own code: no plotting library, no script, no external font.
//
// RenderSvgPlot draws lines with an optional band from low to high, and points with optional error
// bars, on linear, logarithmic or powers-of-two axes. The page is white, with a light grid and
// Okabe and Ito's colours (https://jfly.uni-koeln.de/color/), which people with impaired colour
// vision can tell apart; markers differ in shape as well. A series that reaches the right end is
// labelled there, in its colour, as long as all such labels fit; the others are listed in a legend
// above the plot. The same input gives the same bytes, whatever the locale.
//
//   PlotSeries forecast{.name = "ring", .x = {1, 2, 4}, .y = {0.20, 0.23, 0.31}};
//   PlotOptions options;
//   options.title = "ResNet-50 on 1 Gbit/s";
//   options.x_label = "Workers";
//   options.y_label = "Step time (s)";
//   options.x_powers_of_two = true;
//   std::string svg = RenderSvgPlot({forecast}, options);
#ifndef STEPCAST_PREDICTOR_REPORT_SVG_PLOT_H_
#define STEPCAST_PREDICTOR_REPORT_SVG_PLOT_H_

#include <string>
#include <utility>
#include <vector>

namespace stepcast {

// One line or set of points.
//
// A point is drawn if x and y are finite (and above zero on a logarithmic axis, but for an x of
// zero with log_x, which stands apart at the left end); where one is not, the line has a gap.
// Magnitudes below 1e-200 count as zero and above 1e200 as not finite. `low` and `high` are both
// empty or as long as `x`; an interval that is not finite is left out at its point, and one that
// reaches zero on a logarithmic axis runs off the bottom.
struct PlotSeries {
  std::string name = {};
  std::vector<double> x = {};
  std::vector<double> y = {};
  std::vector<double> low = {};
  std::vector<double> high = {};
  bool dashed = false;
  bool points_only = false;  // measurements: markers without a line, error bars for a band
  int colour = -1;           // place in the palette, so that two series can share; -1: by position
};

struct PlotOptions {
  std::string title = {};
  std::string subtitle = {};
  std::string x_label = {};
  std::string y_label = {};
  bool log_x = false;
  bool log_y = false;
  bool x_powers_of_two = false;  // logarithmic x with ticks at 1, 2, 4, ...: counts of workers
  double width = 860.0;  // in units of text, whose size is 12; a narrow one has a legend for all
  double height = 520.0;
  // An element of an HTML page rather than a document: colours are those of PlotStyle, and title
  // and subtitle are for the page to show.
  bool on_page = false;
  // Labelled vertical lines, as where scaling ends. The x axis is made to reach them.
  std::vector<std::pair<double, std::string>> vertical_marks = {};
};

// The plot as a complete SVG document.
//
// Axes: ticks at 1, 2 or 5 times a power of ten. A linear y axis starts at zero unless the data lie
// in its upper part only; the y axis ends on ticks. Ticks of a million and more, or all below
// 0.001, are printed over a power of ten, which then stands at the axis.
//
// A series without a point to draw is listed as "name (no data)". Throws std::invalid_argument if
// no series has a point to draw, or if the vectors of a series differ in length.
std::string RenderSvgPlot(const std::vector<PlotSeries>& series, const PlotOptions& options);

// The style sheet that gives the plots of a page their colours: light ones, and on a dark screen
// dark ones.
std::string PlotStyle();

namespace internal {

// Multiples within [low, high] of the smallest step out of 1, 2, 5 x 10^n that makes at most
// `intervals` steps of high - low, but not smaller than `smallest_step`. Requires low < high.
std::vector<double> LinearTicks(double low, double high, int intervals, double smallest_step = 0.0);

// Ticks within [low, high], 0 < low < high: at 1, 2 and 5 times each power of ten over up to three
// decades, at powers of ten beyond (every other or every n-th so that at most nine remain), and at
// LinearTicks where the range is less than a factor of five.
std::vector<double> LogTicks(double low, double high);

// Powers of two within [low, high], 0 < low < high: all of them, or every n-th so that at most
// twelve remain.
std::vector<double> PowerOfTwoTicks(double low, double high);

// `text` with & < > " ' escaped, and what XML 1.0 forbids or is not UTF-8 as U+FFFD.
std::string EscapeXml(const std::string& text);

}  // namespace internal
}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_REPORT_SVG_PLOT_H_
