#include "predictor/cli/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "calibrate/excerpt.h"
#include "calibrate/host_findings.h"
#include "data/plan/check.h"
#include "data/plan/key.h"
#include "data/plan/limits.h"
#include "data/values/placement.h"
#include "data/values/training_facts.h"
#include "predictor/cli/probe_report.h"
#include "predictor/report/html_page.h"

namespace stepcast::cli {
namespace {

constexpr std::size_t kMostListed = 100;   // that a table lists one by one
constexpr std::size_t kMostWithBars = 40;  // points of a plot that have an interval each
constexpr std::size_t kMostPlotted = 6;    // that have plots of their own
constexpr const char* kMeasured = "measured";
constexpr const char* kForecast = "forecast, 90 % interval";

double InSeconds(Duration<> time) { return time.in(kSeconds); }

// The runs of the page's plots by workload and device, those with most runs first.
using RunsOf = std::vector<std::pair<std::string, std::vector<const EvaluatedRun*>>>;
RunsOf ByWorkload(const std::vector<EvaluatedRun>& runs) {
  std::set<std::string> devices;
  for (const EvaluatedRun& run : runs) devices.insert(run.device);
  std::map<std::string, std::vector<const EvaluatedRun*>> members;
  for (const EvaluatedRun& run : runs) {
    if (run.stopped) continue;
    members[devices.size() > 1 ? run.workload + " on " + run.device : run.workload].push_back(&run);
  }
  RunsOf sorted(members.begin(), members.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  return sorted;
}

// What a plot of some of the runs says of the others.
std::string StrideText(const Evaluation& evaluation) {
  if (evaluation.stride() == 1) return "";
  return fmt::format(" One of every {} runs is shown.", evaluation.stride());
}

// ---- Plots of an evaluation.

void AddOverMeasured(const Evaluation& evaluation, const RunsOf& workloads, HtmlPage* page) {
  std::vector<PlotSeries> series;
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const auto& [name, runs] : workloads) {
    PlotSeries points;
    points.name = name;
    points.points_only = true;
    points.colour = static_cast<int>(series.size());
    for (const EvaluatedRun* run : runs) {
      points.x.push_back(InSeconds(run->measured));
      points.y.push_back(InSeconds(run->predicted.step_time));
      if (evaluation.taken() <= kMostWithBars) {
        points.low.push_back(InSeconds(run->predicted.low));
        points.high.push_back(InSeconds(run->predicted.high));
      }
      low = std::min({low, points.x.back(), points.y.back()});
      high = std::max({high, points.x.back(), points.y.back()});
    }
    series.push_back(std::move(points));
  }
  // Where the two are the same.
  PlotSeries same;
  same.x = same.y = {low, high};
  same.dashed = true;
  constexpr int kBlack = 6;
  same.colour = kBlack;
  series.insert(series.begin(), same);
  PlotOptions options;
  options.title = "Predicted over measured";
  options.x_label = "Measured step time (s)";
  options.y_label = "Predicted step time (s)";
  options.log_x = options.log_y = true;
  page->AddPlot(series, options,
                "On the dashed line both are the same." +
                    std::string(evaluation.taken() <= kMostWithBars
                                    ? " Bars are 90 % intervals of a forecast."
                                    : "") +
                    StrideText(evaluation));
}

// Errors of each workload over what `x_of` says of a run.
template <class XOf>
std::vector<PlotSeries> ErrorsOver(const RunsOf& workloads, const XOf& x_of) {
  std::vector<PlotSeries> series;
  for (const auto& [name, runs] : workloads) {
    PlotSeries points;
    points.name = name;
    points.points_only = true;
    for (const EvaluatedRun* run : runs) {
      points.x.push_back(x_of(*run));
      points.y.push_back(100 * run->error());
    }
    series.push_back(std::move(points));
  }
  return series;
}

void AddErrors(const Evaluation& evaluation, const RunsOf& workloads, HtmlPage* page) {
  PlotOptions options;
  options.title = "Error over workers";
  options.x_label = "Workers";
  options.y_label = "Predicted / measured - 1 (%)";
  options.x_powers_of_two = true;
  page->AddPlot(
      ErrorsOver(workloads, [](const EvaluatedRun& run) { return 1.0 * run.plan.workers(); }),
      options, "Above zero the forecast is too long." + StrideText(evaluation));
  const auto beyond = [](const EvaluatedRun& run) { return run.predicted.doublings; };
  const std::vector<EvaluatedRun>& runs = evaluation.spread();
  if (std::none_of(runs.begin(), runs.end(), [&](const auto& run) { return beyond(run) > 0; })) {
    return;
  }
  options = {};
  options.title = "Error by distance from the fitted runs";
  options.x_label = "Doublings beyond the fitted runs";
  options.y_label = "Predicted / measured - 1 (%)";
  page->AddPlot(ErrorsOver(workloads, beyond), options,
                "At zero are runs within the range of the fitted ones." + StrideText(evaluation));
}

// Forecasts with their intervals beside what was measured: few runs by their number, many in the
// order of their forecasts.
void AddForecasts(const Evaluation& evaluation, const RunsOf& workloads, HtmlPage* page) {
  for (std::size_t i = 0; i < std::min(kMostPlotted, workloads.size()); ++i) {
    std::vector<const EvaluatedRun*> runs = workloads[i].second;
    const bool few = runs.size() <= kMostWithBars;
    if (!few) {
      std::stable_sort(runs.begin(), runs.end(), [](const auto* a, const auto* b) {
        return a->predicted.step_time < b->predicted.step_time;
      });
    }
    PlotSeries forecast;
    forecast.name = kForecast;
    forecast.points_only = few;
    PlotSeries measured;
    measured.name = kMeasured;
    measured.points_only = true;
    for (std::size_t k = 0; k < runs.size(); ++k) {
      const EvaluatedRun& run = *runs[k];
      const double x = static_cast<double>(few ? run.number : k + 1);
      forecast.x.push_back(x);
      forecast.y.push_back(InSeconds(run.predicted.step_time));
      forecast.low.push_back(InSeconds(run.predicted.low));
      forecast.high.push_back(InSeconds(run.predicted.high));
      measured.x.push_back(x);
      measured.y.push_back(InSeconds(run.measured));
    }
    PlotOptions options;
    options.title = workloads[i].first + ": forecast and measurement of each run";
    options.x_label = few ? "Run, by its number" : "Runs, in the order of forecasts";
    options.y_label = "Step time (s)";
    options.log_y = true;
    page->AddPlot(
        {forecast, measured}, options,
        "Nine of ten measured steps should be within the interval." + StrideText(evaluation));
  }
}

void AddPlots(const Evaluation& evaluation, HtmlPage* page) {
  const RunsOf workloads = ByWorkload(evaluation.spread());
  if (workloads.empty()) return;  // of all that are shown no step ended
  AddOverMeasured(evaluation, workloads, page);
  AddErrors(evaluation, workloads, page);
  AddForecasts(evaluation, workloads, page);
}

// ---- What an evaluation says.

void AddRuns(const Evaluation& evaluation, HtmlPage* page) {
  if (evaluation.taken() <= kMostListed) {
    page->AddTable(RunsTable(evaluation.spread(), true), "All runs");
    return;
  }
  const std::vector<EvaluatedRun> farthest = evaluation.Farthest();
  page->AddTable(RunsTable(farthest, true),
                 fmt::format("The {} runs of {} that are farthest off", farthest.size(),
                             FormatCount(evaluation.taken())));
}

std::string CaptionOf(const std::string& grouping) {
  if (grouping != kByDistance) return "Errors by " + grouping;
  return "Errors and coverage by distance: doublings of nodes, workers, devices or batch beyond "
         "the fitted runs, rounded up; 0 is within them";
}

void AddScores(const Evaluation& evaluation, const std::string& group_by, HtmlPage* page) {
  const Score all = evaluation.overall();
  std::vector<std::string> groupings = GroupingsOfPage();
  if (!group_by.empty() &&
      std::find(groupings.begin(), groupings.end(), group_by) == groupings.end())
    groupings.push_back(group_by);
  for (const std::string& grouping : groupings) {
    page->AddTable(ScoreTable(grouping, evaluation.By(grouping), all), CaptionOf(grouping));
  }
  if (const std::string stopped = StoppedText(all); !stopped.empty()) page->Notes({stopped});
}

constexpr const char* kScoresMean =
    "MAPE is the mean of |predicted / measured - 1|; beside it the median and the 90th percentile "
    "of the same, and its mean with its sign, the bias. In 90 % interval is the share of the runs "
    "that were measured within the interval of their forecast: nine in ten, if intervals are "
    "right.";

// ---- What a calibration says.

void AddLinks(const CalibrationReport& report, HtmlPage* page) {
  page->Section("Links");
  const std::vector<std::string> findings =
      HostFindings(report.fit.calibration(), report.fit.problem.cluster, report.fit.problem.runs);
  if (findings.empty()) {
    page->Paragraph("The runs name no hosts, so that all links are taken to be alike.");
  }
  page->Notes(findings);
  if (!report.network) {
    page->Paragraph(
        "No measured network was given (stepcast probe network writes one, --network reads it).");
    return;
  }
  const NetworkProfile& profile = *report.network;
  const network::NetworkSummary summary = network::Summarise(profile);
  page->Subsection(NetworkTitle(profile) + ", as measured");
  page->Warnings(FindingTexts(profile, summary));
  page->Notes(SoundTexts(profile, summary));
  page->Warnings(MissingTexts(profile));
  page->AddHeatMap(
      RatesOfPairs(profile),
      "What each host carries to each other one; strong colours are slow beside the best");
  page->AddHeatMap(RoundTripsOfPairs(profile),
                   "Round trips between hosts; strong colours are far beside the nearest");
  page->AddTable(LinksTable(profile, summary), "Links by host");
  page->Paragraph(kLinksMean);
}

// Runs of one workload whose plans differ in nodes and devices alone, equally many on each node.
struct Family {
  Plan plan;                             // of any of them
  std::map<int, std::set<int>> layouts;  // nodes by devices on each
  std::vector<const Run*> runs;

  std::set<int> nodes() const {
    std::set<int> all;
    for (const auto& [devices, of_nodes] : layouts) all.insert(of_nodes.begin(), of_nodes.end());
    return all;
  }
};

// The family whose runs have the most numbers of nodes, of those the one with the most runs; null
// where none has two of them.
std::optional<Family> LargestFamily(const std::vector<Run>& runs, const MeasuredWorkload& of) {
  std::map<PlanKey, Family> families;
  const auto belongs = [&](const Run& run) {
    return !run.stopped && run.workload == of.workload && run.device == of.device &&
           run.plan.hosts.empty() && AreNodesEqual(run.plan.placement);
  };
  const auto add = [](const Run& run, Family* family) {
    family->layouts[DevicesOnFullestNode(run.plan.placement)].insert(run.plan.nodes());
    family->runs.push_back(&run);
  };
  for (const Run& run : runs) {
    if (!belongs(run) || run.plan.workers() == 1) continue;
    Family& family = families[StatedKey(run.plan)];
    family.plan = run.plan;
    add(run, &family);
  }
  // One worker has nobody to exchange with, whatever the strategy of the others.
  for (const Run& run : runs) {
    if (!belongs(run) || run.plan.workers() > 1 || run.plan.servers > 0) continue;
    for (auto& [key, family] : families) {
      const bool alike = family.plan.local_batch == run.plan.local_batch &&
                         family.plan.accumulation_steps == run.plan.accumulation_steps;
      if (alike && family.plan.servers == 0) add(run, &family);
    }
  }
  const Family* best = nullptr;
  for (const auto& [key, family] : families) {
    const auto rank = [](const Family& f) { return std::pair(f.nodes().size(), f.runs.size()); };
    if (family.nodes().size() < 2) continue;
    if (best == nullptr || rank(family) > rank(*best)) best = &family;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

// Forecasts over nodes with their bands, up to the whole cluster, beside what was measured.
void AddScaling(const Fit& fit, const MeasuredWorkload& of, HtmlPage* page) {
  constexpr int kMostBeyond = 16;  // times the largest run
  constexpr std::size_t kMostCurves = 4;
  const std::optional<Family> family = LargestFamily(fit.problem.runs, of);
  if (!family) return;
  const std::set<int> measured_nodes = family->nodes();
  const int most = std::clamp(fit.problem.cluster.nodes, *measured_nodes.rbegin(),
                              kMostBeyond * *measured_nodes.rbegin());
  std::set<int> nodes = measured_nodes;
  for (int n = 1; n <= most; n *= 2) nodes.insert(n);
  nodes.insert(most);
  const Workload& workload = fit.problem.workloads.at(of.workload);
  const Predictor predictor(Excerpts(fit.outcome.cluster).Of(workload, of.device), workload,
                            DataSheetOf(fit.problem.devices, of.device), of.device);
  std::vector<PlotSeries> series;
  for (const auto& [devices, of_nodes] : family->layouts) {
    if (series.size() == 2 * kMostCurves) break;
    PlotSeries forecast;
    forecast.name = fmt::format("{} device{} a node", devices, devices == 1 ? "" : "s");
    forecast.colour = static_cast<int>(series.size() / 2);
    for (const int n : nodes) {
      if (n > kMostCount / devices) break;
      Plan plan = WithPlacement(family->plan, Placement(static_cast<std::size_t>(n), devices));
      // Runs of one family have as many slow nodes.
      plan.slow_speed = family->plan.slow_speed;
      plan.local_batch = family->plan.local_batch;
      plan.slow_local_batch = family->plan.slow_local_batch;
      plan = WithSlowNodes(std::move(plan), std::min(family->plan.slow_nodes, n));
      if (plan.workers() == 1 && plan.servers == 0) plan = WithStrategy(plan, Strategy::kNone);
      const Prediction p = predictor.Predict(plan);
      forecast.x.push_back(n);
      forecast.y.push_back(InSeconds(p.step_time));
      forecast.low.push_back(InSeconds(p.low));
      forecast.high.push_back(InSeconds(p.high));
    }
    PlotSeries measured;
    measured.points_only = true;
    measured.colour = forecast.colour;
    for (const Run* run : family->runs) {
      if (DevicesOnFullestNode(run->plan.placement) != devices) continue;
      measured.x.push_back(run->plan.nodes());
      measured.y.push_back(InSeconds(run->step_time));
    }
    series.push_back(std::move(forecast));
    series.push_back(std::move(measured));
  }
  PlotOptions options;
  options.title = of.workload + ": step time over nodes";
  options.x_label = "Nodes";
  options.y_label = "Step time (s)";
  options.x_powers_of_two = true;
  options.log_y = true;
  if (*measured_nodes.rbegin() < most) {
    options.vertical_marks = {{*measured_nodes.rbegin(), "largest run"}};
  }
  page->AddPlot(series, options,
                fmt::format("Lines and bands are forecasts with their 90 % intervals, {}, local "
                            "batch {}{}; points are measured.",
                            NameOf(family->plan.strategy), FormatCount(family->plan.local_batch),
                            family->plan.accumulation_steps == 1
                                ? ""
                                : fmt::format(" x {}", family->plan.accumulation_steps)));
}

void AddWanted(const CalibrationReport& report, HtmlPage* page) {
  page->Section("What to measure next");
  if (report.wanted.empty()) {
    page->Paragraph(
        "The runs have no workload with compute, of which a forecast could be narrowed.");
    return;
  }
  page->Paragraph(
      "The runs that would narrow the forecast of the whole cluster the most. Each is chosen as if "
      "those before it had been measured; what is then known is what to expect after it.");
  for (const ChosenRuns& wanted : report.wanted) {
    const std::string trained = DescribeWorkload(wanted.workload);
    page->Subsection(
        fmt::format("{} on {}: {}", trained, wanted.device, DescribePlan(wanted.goal)));
    page->Paragraph(WantedNow(wanted));
    if (wanted.next.runs.empty()) {
      page->Paragraph(kNoneWanted);
      continue;
    }
    page->AddTable(WantedTable(wanted), "Runs for " + trained);
    page->AddLines(WantedLines(wanted), HowToMeasure(wanted));
  }
  const std::size_t left_out = report.fit.whole_cluster.size() - report.wanted.size();
  if (left_out > 0) {
    page->Paragraph(
        fmt::format("Of {} more workloads stepcast plan --workload tells the same.", left_out));
  }
}

Table SourceTable(const Fit& fit) {
  Table table({LeftColumn("file"), "runs"});
  for (const Calibration::Source& source : fit.calibration().sources) {
    table.AddRow({source.file, FormatCount(source.runs)});
  }
  return table;
}

template <class Item, class ToText>
std::vector<std::string> TextsOf(const std::vector<Item>& items, const ToText& text_of) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(kMostListed, items.size()); ++i) {
    texts.push_back(text_of(items[i]));
  }
  if (items.size() > kMostListed) {
    texts.push_back(fmt::format("and {} more (stepcast calibrate --all shows them)",
                                items.size() - kMostListed));
  }
  return texts;
}

std::string TitleOf(const Cluster& cluster) {
  return cluster.title.empty() ? cluster.name : cluster.title;
}

}  // namespace

std::vector<std::string> GroupingsOfPage() { return {kByDistance, "workload", "workers"}; }

std::string EvaluationPage(const Cluster& cluster, const Evaluation& evaluation,
                           const std::string& group_by) {
  HtmlPage page(fmt::format("{}: predicted against measured", cluster.name), TitleOf(cluster));
  page.Section("Errors and coverage");
  AddScores(evaluation, group_by, &page);
  page.Paragraph(kScoresMean);
  page.Warnings(evaluation.extent().Beyond(cluster));
  page.Section("Predicted over measured");
  AddPlots(evaluation, &page);
  page.Section("Runs");
  AddRuns(evaluation, &page);
  return page.Text();
}

std::string CalibrationPage(const CalibrationReport& report) {
  const Fit& fit = report.fit;
  HtmlPage page("Calibration of " + FitTitle(fit), TitleOf(fit.problem.cluster));
  page.Section("Summary");
  page.Notes(FitNotes(fit));
  page.Notes(EarlierNotes(fit));
  page.AddTable(SourceTable(fit), "Fitted runs");
  page.Section("Caveats");
  if (fit.caveats.empty()) page.Paragraph("None: nothing stands out that these runs cannot show.");
  page.Warnings(fit.caveats);
  AddLinks(report, &page);

  page.Section("Fits and residuals");
  AddScores(report.fitted, "", &page);
  page.Paragraph(kScoresMean);
  AddPlots(report.fitted, &page);
  AddRuns(report.fitted, &page);

  if (report.judged != nullptr) {
    page.Section("Judged by runs that were not fitted");
    AddScores(*report.judged, "", &page);
    AddPlots(*report.judged, &page);
    AddRuns(*report.judged, &page);
  }

  page.Section("Forecasts");
  for (std::size_t i = 0; i < std::min(kMostPlotted, fit.workloads.size()); ++i) {
    AddScaling(fit, fit.workloads[i], &page);
  }
  if (fit.whole_cluster.empty()) {
    page.Paragraph("The runs have no workload with compute, so that there is no step to forecast.");
  } else {
    page.AddTable(
        WholeTable(fit),
        "The whole cluster with the smallest batch that was fitted, and what the interval "
        "is made of");
    page.Paragraph(
        "parameters, one step and beyond the runs are standard deviations of ln(step): what the "
        "runs left open, how one measured step scatters, and how far the plan is from the runs. "
        "More runs help the first, larger runs the last.");
  }

  page.Section("Parameters");
  int hidden = 0;
  page.AddTable(ParameterTable(fit, true, &hidden), "Fitted values beside their priors", true);
  page.Paragraph(
      "A prior of 10 x/ 2 is a belief of 10 with a factor of 2 as its standard deviation. data "
      "decided where the runs removed at least three quarters of the variance of ln(value), the "
      "prior where they removed less than one quarter.");

  page.Section("Suspect runs");
  if (fit.suspects.empty()) {
    page.Paragraph("None: the fit meets all runs, and no two of one plan contradict each other.");
  }
  page.Warnings(
      TextsOf(fit.suspects, [&](const Suspect& suspect) { return SuspectText(fit, suspect); }));
  page.Section("What these runs cannot tell apart");
  if (fit.ambiguities.empty()) page.Paragraph("No pair of parameters shows as a product or ratio.");
  page.Notes(TextsOf(fit.ambiguities, AmbiguityText));
  AddWanted(report, &page);
  return page.Text();
}

}  // namespace stepcast::cli
