// Plots of the program, read back: each point, band and bar is where the same command's JSON has
// it, under titles that say what is shown.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/program.h"
#include "tests/support/svg_values.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

using program::Json;
using program::JsonOf;
using program::Words;
using program::operator+;

const std::string kMeasurements = std::string(STEPCAST_SOURCE_DIR) + "/data/measurements/";
const std::string kFit = kMeasurements + "ufrgs-tupi-fit.csv";

double Number(const Json& of, const char* key) { return of.at(key).get<double>(); }

// Upper ends from left to right, and lower ones back.
PlotPoints BandOf(const PlotPoints& low, const PlotPoints& high) {
  PlotPoints band = high;
  band.insert(band.end(), low.rbegin(), low.rend());
  return band;
}

// ---- sweep --plot.

class SweepPlot : public testing::Test {
 protected:
  // What the sweep answers, which draws its plot too.
  Json Sweep(const Words& words) {
    return JsonOf(Words{"sweep", "--cluster", "gce-t4", "--workload", "resnet50", "--local-batch",
                        "8", "--plot", file_} +
                  words)
        .at("points");
  }
  ShownPlot Plot(bool log_x, bool log_y) const { return {FileContent(file_), log_x, log_y}; }

  TempFolder folder_;
  std::string file_ = folder_.Path("sweep.svg");
};

// Over doublings of the workers both axes are logarithmic, and linear scaling is a straight line.
TEST_F(SweepPlot, HasThroughputsBesideLinearScaling) {
  const Json points = Sweep({"--over", "workers=2,4,8,16"});
  PlotPoints line;
  PlotPoints low;
  PlotPoints high;
  PlotPoints ideal;
  for (const Json& point : points) {
    const double workers = Number(point.at("plan"), "workers");
    const double samples = Number(point.at("plan"), "global_batch");
    line.emplace_back(workers, Number(point, "throughput_samples_per_s"));
    low.emplace_back(workers, samples / Number(point, "high_s"));
    high.emplace_back(workers, samples / Number(point, "low_s"));
    ideal.emplace_back(workers, line.front().second * workers / 2);
  }
  const ShownPlot plot = Plot(true, true);
  ASSERT_EQ(plot.curves.size(), 2U);
  ExpectPoints(plot.Named("predicted").line, line);
  ExpectPoints(plot.Named("predicted").markers, line);
  EXPECT_FALSE(plot.Named("predicted").dashed);
  ExpectPoints(plot.Named("linear scaling").line, ideal);
  EXPECT_TRUE(plot.Named("linear scaling").dashed);
  ASSERT_EQ(plot.bands.size(), 1U);
  ExpectPoints(plot.bands.front(), BandOf(low, high));
  EXPECT_TRUE(plot.Says(">resnet50 on gce-t4</text>"));
  EXPECT_TRUE(plot.Says(">workers</text>"));
  EXPECT_TRUE(plot.Says(">throughput [samples/s]</text>"));
}

// Times of steps have no linear scaling beside them, and a line for each of what else is varied.
TEST_F(SweepPlot, HasStepTimesOfEachSeries) {
  const Json points =
      Sweep({"--over", "workers=2,4,8,16", "--over", "strategy=ring,tree", "--y", "step_time"});
  const ShownPlot plot = Plot(true, true);
  ASSERT_EQ(plot.curves.size(), 2U);
  ASSERT_EQ(plot.bands.size(), 2U);
  EXPECT_TRUE(plot.Says(">step time [s]</text>"));
  EXPECT_FALSE(plot.Says("linear scaling"));
  std::size_t band = 0;
  for (const std::string strategy : {"ring", "tree"}) {
    PlotPoints line;
    PlotPoints low;
    PlotPoints high;
    for (const Json& point : points) {
      if (point.at("plan").at("strategy") != strategy) continue;
      const double workers = Number(point.at("plan"), "workers");
      line.emplace_back(workers, Number(point, "step_time_s"));
      low.emplace_back(workers, Number(point, "low_s"));
      high.emplace_back(workers, Number(point, "high_s"));
    }
    ExpectPoints(plot.Named("strategy " + strategy).line, line);
    ExpectPoints(plot.bands[band++], BandOf(low, high));
  }
  Sweep({"--over", "workers=2,4,8,16", "--y", "step_time"});
  EXPECT_FALSE(Plot(true, true).Says("linear scaling")) << "nor has one alone";
}

// The numbers of an axis are in the unit that it is labelled with; one worker is one.
TEST_F(SweepPlot, SaysWhatIsVariedAndWhatIsNot) {
  const std::string ends = "; bands are 90 % prediction intervals</text>";
  const struct {
    Words words;
    bool log_x;
    bool log_y;
    std::vector<double> x;
    const char* label;
    const char* settings;
  } cases[] = {
      {{"--workers", "8", "--over", "bandwidth=1 Gbit/s,2000 Mbit/s,3 Gbit/s"},
       false,
       false,
       {1, 2, 3},
       "bandwidth [Gbit/s]",
       "t4: 8 workers, allreduce, local batch 8"},
      {{"--workers", "8", "--rtt", "1 ms", "--over", "loss=0.001,0.01,0.1"},
       true,
       false,
       {0.001, 0.01, 0.1},
       "loss",
       "t4: 8 workers, allreduce, local batch 8, rtt 1 ms"},
      {{"--over", "workers=1,2,4"},
       false,
       false,
       {1, 2, 4},
       "workers",
       "t4: allreduce, local batch 8"},
      {{"--workers", "1", "--over", "accumulation=1,2,4", "--y", "step_time"},
       false,
       true,
       {1, 2, 4},
       "accumulation",
       "t4: 1 worker, allreduce, local batch 8"},
      {{"--workers", "4", "--over", "accumulation=1,2,4", "--over", "strategy=ring,tree"},
       false,
       false,
       {1, 2, 4},
       "accumulation",
       "t4: 4 workers, local batch 8"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.settings);
    const Json points = Sweep(c.words);
    const ShownPlot plot = Plot(c.log_x, c.log_y);
    EXPECT_TRUE(plot.Says(std::string(">") + c.label + "</text>"));
    EXPECT_TRUE(plot.Says(std::string(">") + c.settings + "; not calibrated" + ends));
    const bool times = c.words.back() == "step_time";
    PlotPoints line;
    for (std::size_t i = 0; i < c.x.size(); ++i) {
      const Json& point = points.at(i * points.size() / c.x.size());
      line.emplace_back(c.x[i], Number(point, times ? "step_time_s" : "throughput_samples_per_s"));
    }
    ExpectPoints(plot.curves.front().line, line);
    EXPECT_EQ(plot.Says("linear scaling"), std::string(c.label) == "workers");
  }
  // A fit is not said to be none.
  const std::string fitted = folder_.Path("fitted.yaml");
  JsonOf({"calibrate", "--cluster", "ufrgs-tupi", "--runs", kFit, "--output", fitted});
  JsonOf({"sweep", "--cluster", fitted, "--workload", "resnet50", "--local-batch", "128", "--over",
          "workers=1..4", "--plot", file_});
  EXPECT_TRUE(Plot(true, true).Says(">rtx_4090: allreduce, local batch 128" + ends));
}

// ---- Pages.

// The plots of a page by the titles above them.
std::vector<std::pair<std::string, std::string>> PlotsOf(const std::string& page) {
  std::vector<std::pair<std::string, std::string>> plots;
  std::size_t at = 0;
  while ((at = page.find("<figure>", at)) != std::string::npos) {
    const std::size_t end = page.find("</figure>", at);
    const std::string figure = page.substr(at, end - at);
    const std::size_t begin = figure.find("<svg");
    plots.emplace_back(figure.substr(0, begin), figure.substr(begin));
    at = end;
  }
  return plots;
}

class ReportPlots : public testing::Test {
 protected:
  // The figures of that title in the page; what stands above each is in `captions_`.
  std::vector<std::string> Figures(const std::string& page, const std::string& title) {
    std::vector<std::string> svgs;
    captions_.clear();
    for (const auto& [head, svg] : PlotsOf(page)) {
      if (head.find("<strong>" + title + "</strong>") == std::string::npos) continue;
      captions_.push_back(head);
      svgs.push_back(svg);
    }
    return svgs;
  }
  bool CaptionSays(const std::string& sentence) const {
    return !captions_.empty() && captions_.front().find(sentence) != std::string::npos;
  }

  TempFolder folder_;
  std::vector<std::string> captions_;
};

TEST_F(ReportPlots, OfAnEvaluationHaveItsRows) {
  const std::string page_file = folder_.Path("judged.html");
  const Json rows = JsonOf({"evaluate", "--cluster", "ufrgs-tupi", "--runs", kFit, "--rows",
                            "--report", page_file})
                        .at("rows");
  const std::string page = FileContent(page_file);
  ASSERT_EQ(rows.size(), 3U);
  PlotPoints over_measured;
  PlotPoints errors;
  PlotPoints forecasts;
  PlotPoints measured;
  double least = 1e300;
  double most = 0;
  const double workers[] = {1, 2, 2};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double was = Number(rows[i], "measured_step_time_s");
    const double said = Number(rows[i], "predicted_step_time_s");
    over_measured.emplace_back(was, said);
    errors.emplace_back(workers[i], 100 * (said / was - 1));
    forecasts.emplace_back(i + 1.0, said);
    measured.emplace_back(i + 1.0, was);
    least = std::min({least, was, said});
    most = std::max({most, was, said});
  }
  const auto expect_bars = [&](const ShownPlot& plot, bool by_number) {
    ASSERT_EQ(plot.bars.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double x = by_number ? static_cast<double>(i + 1) : over_measured[i].first;
      EXPECT_NEAR(plot.bars[i].x / x, 1, 1e-3);
      EXPECT_NEAR(plot.bars[i].low / Number(rows[i], "low_s"), 1, 1e-3);
      EXPECT_NEAR(plot.bars[i].high / Number(rows[i], "high_s"), 1, 1e-3);
    }
  };

  std::vector<std::string> figures = Figures(page, "Predicted over measured");
  ASSERT_EQ(figures.size(), 1U);
  const ShownPlot predicted(figures.front(), true, true);
  ExpectPoints(predicted.Named("resnet50").markers, over_measured);
  EXPECT_TRUE(predicted.Named("resnet50").line.empty());
  ASSERT_FALSE(predicted.curves.empty());
  EXPECT_TRUE(predicted.curves.front().dashed) << "where both are the same";
  ExpectPoints(predicted.curves.front().line, {{least, least}, {most, most}});
  expect_bars(predicted, false);
  EXPECT_TRUE(predicted.Says(">Measured step time (s)<"));
  EXPECT_TRUE(predicted.Says(">Predicted step time (s)<"));
  EXPECT_TRUE(CaptionSays("On the dashed line both are the same. Bars are 90 % intervals"));

  figures = Figures(page, "Error over workers");
  ASSERT_EQ(figures.size(), 1U);
  ExpectPoints(ShownPlot(figures.front(), true, false).Named("resnet50").markers, errors);
  EXPECT_TRUE(CaptionSays("Above zero the forecast is too long."));

  figures = Figures(page, "resnet50: forecast and measurement of each run");
  ASSERT_EQ(figures.size(), 1U);
  const ShownPlot each(figures.front(), false, true);
  ExpectPoints(each.Named("forecast, 90 % interval").markers, forecasts);
  ExpectPoints(each.Named("measured").markers, measured);
  expect_bars(each, true);
  EXPECT_TRUE(each.Says(">Run, by its number<"));
  EXPECT_TRUE(CaptionSays("Nine of ten measured steps should be within the interval."));
}

// More than forty runs are a line in the order of their forecasts, with a band and without bars.
TEST_F(ReportPlots, OfManyRunsAreInTheOrderOfForecasts) {
  const auto figures = [&](int runs, const std::string& title) {
    std::string rows = "workload,device,placement,servers,strategy,local_batch,step_time_s\n";
    for (int i = 0; i < runs; ++i) {
      rows += fmt::format("resnet50,rtx_4090,1,0,none,{},0.2\n", 1 + (i * 17) % 60);
    }
    const std::string page_file = folder_.Path("judged.html");
    JsonOf({"evaluate", "--cluster", "ufrgs-tupi", "--runs", folder_.Write("runs.csv", rows),
            "--report", page_file});
    return Figures(FileContent(page_file), title);
  };
  const std::string each = "resnet50: forecast and measurement of each run";
  std::vector<std::string> of_many = figures(41, each);
  ASSERT_EQ(of_many.size(), 1U);
  const ShownPlot many(of_many.front(), false, true);
  const ShownCurve forecast = many.Named("forecast, 90 % interval");
  ASSERT_EQ(forecast.line.size(), 41U);
  for (std::size_t i = 0; i < forecast.line.size(); ++i) {
    EXPECT_NEAR(forecast.line[i].first, i + 1.0, 0.03);
    EXPECT_TRUE(i == 0 || forecast.line[i].second >= forecast.line[i - 1].second) << i;
  }
  EXPECT_TRUE(many.bars.empty());
  EXPECT_EQ(many.bands.size(), 1U);
  EXPECT_TRUE(many.Says(">Runs, in the order of forecasts<"));
  EXPECT_FALSE(CaptionSays("runs is shown")) << "all of them are";
  of_many = figures(41, "Predicted over measured");
  EXPECT_FALSE(CaptionSays("Bars are")) << captions_.front();
  const std::vector<std::string> of_few = figures(40, each);
  ASSERT_EQ(of_few.size(), 1U);
  EXPECT_EQ(ShownPlot(of_few.front(), false, true).bars.size(), 40U);
  figures(40, "Predicted over measured");
  EXPECT_TRUE(CaptionSays("Bars are"));
}

// Forecasts over nodes are those of predict, beside the runs, of which the largest is marked.
TEST_F(ReportPlots, OverNodesHaveForecastsAndRuns) {
  const std::string cluster =
      folder_.Write("big.yaml",
                    "name: big\ndevice: t4\nnodes: 16\ndevices_per_node: 2\nlink: {bandwidth: 10 "
                    "Gbit/s}\n");
  const std::string runs = folder_.Write(
      "runs.csv",
      "workload,device,placement,servers,strategy,local_batch,accumulation_steps,step_time_s\n"
      "resnet50,t4,1-1,0,ring,64,2,1.2\n"
      "resnet50,t4,1-1-1,0,ring,64,2,1.5\n"
      "resnet50,t4,2-2,0,ring,64,2,1.4\n");
  const std::string page_file = folder_.Path("report.html");
  const std::string fitted = folder_.Path("fitted.yaml");
  JsonOf({"report", "--cluster", cluster, "--runs", runs, "--output", page_file});
  JsonOf({"calibrate", "--cluster", cluster, "--runs", runs, "--output", fitted});
  const std::vector<std::string> figures =
      Figures(FileContent(page_file), "resnet50: step time over nodes");
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_TRUE(CaptionSays("90 % intervals, ring, local batch 64 x 2; points are measured."))
      << captions_.front();
  const ShownPlot plot(figures.front(), true, true);
  EXPECT_TRUE(plot.Says(">Nodes<"));
  EXPECT_TRUE(plot.Says(">largest run<"));
  ASSERT_EQ(plot.marks.size(), 1U);
  EXPECT_NEAR(plot.marks.front(), 3, 0.01);
  const auto forecast = [&](int devices) {
    PlotPoints points;
    for (const int nodes : {1, 2, 3, 4, 8, 16}) {
      std::string placement = std::to_string(devices);
      for (int i = 1; i < nodes; ++i) placement += "-" + std::to_string(devices);
      points.emplace_back(
          nodes, Number(JsonOf({"predict", "--cluster", fitted, "--workload", "resnet50",
                                "--placement", placement, "--local-batch", "64", "--accumulation",
                                "2", "--strategy", nodes * devices == 1 ? "none" : "ring"}),
                        "step_time_s"));
    }
    return points;
  };
  ExpectPoints(plot.Named("1 device a node").line, forecast(1));
  ExpectPoints(plot.Named("2 devices a node").line, forecast(2));
  EXPECT_EQ(plot.bands.size(), 2U);
  // Measurements are drawn behind both lines, and have no name of their own.
  ASSERT_EQ(plot.curves.size(), 4U);
  ExpectPoints(plot.curves[2].markers, {{2, 1.2}, {3, 1.5}});
  ExpectPoints(plot.curves[3].markers, {{2, 1.4}});
}

}  // namespace
}  // namespace stepcast
