// The tables and the picture of docs/reference/extrapolation.md: errors of forecasts against their
// distance from the fitted runs, beside the published model of the traces' authors on the same
// rows.
#ifndef STEPCAST_TESTS_CALIBRATE_EXTRAPOLATION_PAGE_H_
#define STEPCAST_TESTS_CALIBRATE_EXTRAPOLATION_PAGE_H_

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/step/discrepancy.h"
#include "predictor/report/svg_plot.h"
#include "tests/calibrate/adaptdl_traces.h"
#include "tests/calibrate/pollux_model.h"

namespace stepcast::extrapolation {

// ---- What is judged.

// One held-out run, by both models.
struct HeldOutRow {
  std::string workload;
  int nodes = 0;
  int local_batch = 0;
  double doublings = 0;  // beyond the fitted runs
  Judged ours;
  Judged published;  // only its error is known
};

struct JudgedFit {
  std::string name;
  std::string judged_on;
  std::size_t fitted = 0;
  std::vector<HeldOutRow> rows;
};

// Throws where the fit does not converge.
inline Cluster FitTraces(const Traces& traces, const std::vector<Run>& runs) {
  const CalibrationOutcome outcome = Calibrate(TraceProblem(traces, runs));
  if (outcome.status != CalibrationOutcome::Status::kConverged) {
    throw std::runtime_error(outcome.message);
  }
  return outcome.cluster;
}

// The published model, fitted to the workloads that are judged.
inline std::map<std::string, PolluxParameters> FitPublished(const TraceSplit& split) {
  std::map<std::string, PolluxParameters> fits;
  for (const Run& judged : split.held_out) {
    const auto [fit, fresh] = fits.try_emplace(judged.workload);
    if (!fresh) continue;
    fit->second = FitPollux(
        RunsWhere(split.fitted, [&](const Run& run) { return run.workload == judged.workload; }));
  }
  return fits;
}

// Both models, fitted to one part of the split and judged on the other.
inline JudgedFit FitAndJudge(const std::string& name, const std::string& judged_on,
                             const Traces& traces, const TraceSplit& split) {
  const Cluster cluster = FitTraces(traces, split.fitted);
  const CalibratedRange& range = cluster.calibration->range;
  const std::map<std::string, PolluxParameters> published = FitPublished(split);
  std::map<std::string, std::optional<CalibratedRange::BatchRange>> batches;
  for (const auto& [workload, fit] : published) {
    batches[workload] =
        Predictor(cluster, *FindWorkload(workload), traces.device, "t4").calibrated_batches();
  }
  const TraceScores scores = JudgeTraces(traces, cluster, split.held_out);
  std::map<std::string, std::size_t> next;  // JudgeTraces keeps the order of a workload's rows
  JudgedFit fit{name, judged_on, split.fitted.size(), {}};
  for (const Run& run : split.held_out) {
    const double seconds = PolluxStepSeconds(published.at(run.workload), run.plan);
    HeldOutRow row;
    row.workload = run.workload;
    row.nodes = run.plan.nodes();
    row.local_batch = run.plan.local_batch;
    row.doublings = DoublingsBeyond(run.plan, range, batches.at(run.workload));
    row.ours = scores.at(run.workload).rows.at(next[run.workload]++);
    row.published.error = seconds / run.step_time.in(kSeconds)-1;
    fit.rows.push_back(row);
  }
  return fit;
}

// All layouts of up to four nodes, against the runs of more.
inline TraceSplit MoreNodesSplit(const Traces& traces) {
  return {traces.placements, traces.scalability};
}

// The two models' scores of some rows.
struct Scores {
  TraceScore ours;
  TraceScore published;

  bool empty() const { return ours.rows.empty(); }
};

template <class Keep>
Scores ScoresWhere(const std::vector<HeldOutRow>& rows, const Keep& keep) {
  Scores scores;
  for (const HeldOutRow& row : rows) {
    if (!keep(row)) continue;
    scores.ours.rows.push_back(row.ours);
    scores.published.rows.push_back(row.published);
  }
  return scores;
}

inline Scores ScoresOf(const std::vector<HeldOutRow>& rows) {
  return ScoresWhere(rows, [](const HeldOutRow&) { return true; });
}

// ---- By distance.

// Bin i holds the rows of i - 0.5 to i + 0.5 doublings.
inline int BinOf(double doublings) { return static_cast<int>(std::floor(doublings + 0.5)); }

struct DistanceBin {
  int number = 0;
  double doublings = 0;   // mean
  double half_width = 0;  // median
  Scores scores;

  std::string label() const {
    return fmt::format("{:.1f} to {:.1f}", std::max(0.0, number - 0.5), number + 0.5);
  }
};

inline double MedianHalfWidth(const TraceScore& score) {
  std::vector<double> widths;
  for (const Judged& row : score.rows) widths.push_back(row.half_width);
  std::sort(widths.begin(), widths.end());
  return widths.at((widths.size() - 1) / 2);
}

// The bins of distance that have rows, from near to far.
inline std::vector<DistanceBin> BinsOf(const std::vector<HeldOutRow>& rows) {
  std::map<int, double> doublings;
  for (const HeldOutRow& row : rows) doublings[BinOf(row.doublings)] += row.doublings;
  std::vector<DistanceBin> bins;
  for (const auto& [number, sum] : doublings) {
    DistanceBin bin;
    bin.number = number;
    bin.scores = ScoresWhere(rows, [bin_number = number](const HeldOutRow& row) {
      return BinOf(row.doublings) == bin_number;
    });
    bin.doublings = sum / static_cast<double>(bin.scores.ours.rows.size());
    bin.half_width = MedianHalfWidth(bin.scores.ours);
    bins.push_back(std::move(bin));
  }
  return bins;
}

// ---- What no fit explains.

// How well the other layouts of as many nodes, workers and samples tell a run: the mean of
// |g / measured - 1|, g their geometric mean, over the runs that have another. By workload.
inline std::map<std::string, double> OtherLayouts(const std::vector<Run>& runs) {
  std::map<std::tuple<std::string, int, int, int>, std::vector<double>> shapes;
  for (const Run& run : runs) {
    shapes[{run.workload, run.plan.nodes(), run.plan.workers(), run.plan.local_batch}].push_back(
        std::log(run.step_time.in(kSeconds)));
  }
  std::map<std::string, std::pair<double, int>> sums;
  for (const auto& [shape, logs] : shapes) {
    if (logs.size() < 2) continue;
    double sum = 0;
    for (const double log : logs) sum += log;
    auto& [errors, count] = sums[std::get<0>(shape)];
    for (const double log : logs) {
      const double others = (sum - log) / static_cast<double>(logs.size() - 1);
      errors += std::abs(std::exp(others - log) - 1);
      ++count;
    }
  }
  std::map<std::string, double> means;
  for (const auto& [workload, sum] : sums) means[workload] = sum.first / sum.second;
  return means;
}

// The fit with the values that another one found for the parameters of these names; all, where none
// is named.
inline Cluster WithValuesOf(Cluster fit, const Cluster& other,
                            const std::vector<std::string>& names) {
  for (ParameterEstimate& p : fit.calibration->parameters) {
    if (!names.empty() && std::find(names.begin(), names.end(), p.name) == names.end()) continue;
    for (const ParameterEstimate& q : other.calibration->parameters) {
      if (q.scope == p.scope && q.name == p.name) p.value = q.value;
    }
  }
  return fit;
}

// ---- What the page shows.

inline int Decimals(double share) { return std::abs(share) < 1 ? 1 : 0; }
inline std::string Percent(double share) {
  return fmt::format("{:.{}f} %", 100 * share, Decimals(share));
}
inline std::string Signed(double share) {
  return fmt::format("{:+.{}f} %", 100 * share, Decimals(share));
}

class Table {
 public:
  explicit Table(const std::vector<std::string>& heads) {
    Add(heads);
    text_ += "|";
    for (std::size_t i = 0; i < heads.size(); ++i) text_ += "---|";
    text_ += "\n";
  }
  void Add(const std::vector<std::string>& cells) {
    text_ += "|";
    for (const std::string& cell : cells) text_ += " " + cell + " |";
    text_ += "\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

inline std::vector<std::string> Workloads() {
  std::vector<std::string> names;
  for (const char* app : kTraceApps) names.push_back(AdaptdlWorkload(app));
  return names;
}

struct Measured {
  std::vector<JudgedFit> ranges;  // of growing range; the second is "small"
  std::vector<JudgedFit> others;  // a new job, a fifth
  std::map<std::string, double> other_layouts;
  Cluster small;
  Cluster all;  // fitted to all rows
};

inline constexpr std::size_t kSmall = 1;

inline Measured Measure(const Traces& traces) {
  Measured measured;
  const std::string larger = "more than 4 devices";
  const char* kNames[] = {"1 node", "2 nodes, 4 devices", "3 nodes, 4 devices"};
  for (int nodes = 1; nodes <= 3; ++nodes) {
    measured.ranges.push_back(
        FitAndJudge(kNames[nodes - 1], larger, traces, SmallSplit(traces, nodes)));
  }
  measured.ranges.push_back(
      FitAndJudge("4 nodes, 16 devices", "6 to 16 nodes", traces, MoreNodesSplit(traces)));
  for (const std::string& workload : Workloads()) {
    measured.others.push_back(FitAndJudge("one device, and all of the other jobs",
                                          "more devices: " + workload, traces,
                                          NewJobSplit(traces, workload)));
  }
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    measured.others.push_back(FitAndJudge(fmt::format("a fifth of all rows, draw {}", seed),
                                          "the rest", traces, FifthSplit(traces, seed)));
  }
  measured.other_layouts = OtherLayouts(traces.placements);
  measured.small = FitTraces(traces, SmallSplit(traces, 2).fitted);
  measured.all = FitTraces(traces, traces.All());
  return measured;
}

inline std::string SplitTable(const std::vector<JudgedFit>& fits) {
  Table table({"fitted on", "rows", "judged on", "rows", "MAPE", "90th pct", "bias",
               "in 90 % interval", "published: MAPE", "published: bias"});
  for (const JudgedFit& fit : fits) {
    const Scores s = ScoresOf(fit.rows);
    table.Add({fit.name, std::to_string(fit.fitted), fit.judged_on, std::to_string(fit.rows.size()),
               Percent(s.ours.mape()), Percent(s.ours.error_quantile(0.9)), Signed(s.ours.bias()),
               Percent(s.ours.coverage()), Percent(s.published.mape()),
               Signed(s.published.bias())});
  }
  return table.text();
}

inline std::string DistanceTable(const std::vector<JudgedFit>& fits) {
  Table table({"fitted on", "doublings", "mean", "rows", "MAPE", "median", "published: MAPE",
               "in 90 % interval", "its half-width", "discrepancy, one sd"});
  for (const JudgedFit& fit : fits) {
    for (const DistanceBin& bin : BinsOf(fit.rows)) {
      const TraceScore& ours = bin.scores.ours;
      table.Add({fit.name, bin.label(), fmt::format("{:.2f}", bin.doublings),
                 std::to_string(ours.rows.size()), Percent(ours.mape()),
                 Percent(ours.error_quantile(0.5)), Percent(bin.scores.published.mape()),
                 Percent(ours.coverage()), Percent(bin.half_width),
                 Percent(kDiscrepancyPerDoubling * bin.doublings)});
    }
  }
  return table.text();
}

inline Scores ScoresOfJob(const JudgedFit& fit, const std::string& workload) {
  return ScoresWhere(fit.rows, [&](const HeldOutRow& row) { return row.workload == workload; });
}

inline std::string JobTable(const JudgedFit& fit) {
  Table table({"job", "rows", "MAPE", "90th pct", "bias", "in 90 % interval", "published: MAPE",
               "90th pct", "bias"});
  for (const std::string& workload : Workloads()) {
    const Scores s = ScoresOfJob(fit, workload);
    table.Add({workload, std::to_string(s.ours.rows.size()), Percent(s.ours.mape()),
               Percent(s.ours.error_quantile(0.9)), Signed(s.ours.bias()),
               Percent(s.ours.coverage()), Percent(s.published.mape()),
               Percent(s.published.error_quantile(0.9)), Signed(s.published.bias())});
  }
  return table.text();
}

inline std::string LayoutTable(const std::map<std::string, double>& other_layouts) {
  Table table({"job", "MAPE of the other layouts"});
  for (const std::string& workload : Workloads()) {
    table.Add({workload, Percent(other_layouts.at(workload))});
  }
  return table.text();
}

inline std::string NodeTable(const JudgedFit& fit) {
  std::vector<std::string> heads = {"nodes"};
  for (const std::string& workload : Workloads()) {
    heads.push_back(workload);
    heads.emplace_back("in 90 % interval");
  }
  Table table(heads);
  for (const int nodes : {2, 3, 4, 6, 8, 12, 16}) {
    std::vector<std::string> cells = {std::to_string(nodes)};
    for (const std::string& workload : Workloads()) {
      const Scores s = ScoresWhere(fit.rows, [&](const HeldOutRow& row) {
        return row.workload == workload && row.nodes == nodes;
      });
      cells.push_back(Signed(s.ours.bias()));
      cells.push_back(Percent(s.ours.coverage()));
    }
    table.Add(cells);
  }
  return table.text();
}

inline std::string BatchTable(const JudgedFit& fit, const std::string& workload) {
  std::map<int, int> batches;
  for (const HeldOutRow& row : fit.rows) batches[row.local_batch] += row.workload == workload;
  Table table({"local batch", "rows", "MAPE", "bias", "in 90 % interval"});
  for (const auto& [batch, rows] : batches) {
    if (rows == 0) continue;
    const Scores s = ScoresWhere(fit.rows, [&, of = batch](const HeldOutRow& row) {
      return row.workload == workload && row.local_batch == of;
    });
    table.Add({std::to_string(batch), std::to_string(rows), Percent(s.ours.mape()),
               Signed(s.ours.bias()), Percent(s.ours.coverage())});
  }
  return table.text();
}

inline std::string CauseTable(const Traces& traces, const Measured& measured) {
  std::vector<std::string> heads = {"values of the fit to all rows for", "mean MAPE"};
  for (const std::string& workload : Workloads()) heads.push_back(workload + ": MAPE");
  for (const std::string& workload : Workloads()) {
    heads.emplace_back(workload + ", 12-16 nodes: bias");
  }
  Table table(heads);
  const std::vector<Run> larger = SmallSplit(traces, 2).held_out;
  const std::vector<Run> largest =
      RunsWhere(larger, [](const Run& run) { return run.plan.nodes() >= 12; });
  const auto add = [&](const std::string& name, const Cluster& cluster) {
    const TraceScores scores = JudgeTraces(traces, cluster, larger);
    const TraceScores far = JudgeTraces(traces, cluster, largest);
    std::vector<std::string> cells = {name, Percent(MeanMape(scores))};
    for (const std::string& workload : Workloads()) {
      cells.push_back(Percent(scores.at(workload).mape()));
    }
    for (const std::string& workload : Workloads()) {
      cells.push_back(Signed(far.at(workload).bias()));
    }
    table.Add(cells);
  };
  const auto with = [&](const std::vector<std::string>& names) {
    return WithValuesOf(measured.small, measured.all, names);
  };
  add("nothing: as fitted to *small*", measured.small);
  add("`hop_spread`", with({"hop_spread"}));
  add("`straggler_spread`", with({"straggler_spread"}));
  add("both", with({"hop_spread", "straggler_spread"}));
  add("everything", with({}));
  return table.text();
}

inline std::map<std::string, std::string> PageTables(const Traces& traces,
                                                     const Measured& measured) {
  const JudgedFit& small = measured.ranges.at(kSmall);
  return {{"ranges", SplitTable(measured.ranges)},
          {"distance", DistanceTable(measured.ranges)},
          {"jobs", JobTable(small)},
          {"jobs, four nodes", JobTable(measured.ranges.back())},
          {"layouts", LayoutTable(measured.other_layouts)},
          {"nodes", NodeTable(small)},
          {"batches", BatchTable(small, AdaptdlWorkload("deepspeech2"))},
          {"causes", CauseTable(traces, measured)},
          {"splits", SplitTable(measured.others)}};
}

// MAPE over distance: of the fits to few nodes with lines, of that to many with dashes.
inline std::string PagePicture(const Measured& measured) {
  constexpr int kOurColour = 0;
  constexpr int kTheirColour = 1;
  const auto series = [](const std::string& name, int colour, bool dashed) {
    PlotSeries s;
    s.name = name;
    s.colour = colour;
    s.dashed = dashed;
    return s;
  };
  const auto add = [](PlotSeries* s, const DistanceBin& bin, double share) {
    s->x.push_back(bin.doublings);
    s->y.push_back(100 * share);
  };
  PlotSeries theirs = series("published model", kTheirColour, false);
  PlotSeries half_width = series("90 % interval of stepcast, half-width", 2, false);
  PlotSeries ours = series("stepcast", kOurColour, false);
  for (const DistanceBin& bin : BinsOf(measured.ranges.at(kSmall).rows)) {
    add(&ours, bin, bin.scores.ours.mape());
    add(&theirs, bin, bin.scores.published.mape());
    add(&half_width, bin, bin.half_width);
  }
  PlotSeries their_many = series("published model, fitted on 4 nodes", kTheirColour, true);
  PlotSeries our_many = series("stepcast, fitted on 4 nodes", kOurColour, true);
  for (const DistanceBin& bin : BinsOf(measured.ranges.back().rows)) {
    add(&our_many, bin, bin.scores.ours.mape());
    add(&their_many, bin, bin.scores.published.mape());
  }
  PlotSeries discrepancy = series("expected discrepancy, one sd", 6, true);
  for (const double doublings : {0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0}) {
    discrepancy.x.push_back(doublings);
    discrepancy.y.push_back(100 * kDiscrepancyPerDoubling * doublings);
  }
  PlotOptions options;
  options.title = "Error against distance from the fitted runs";
  options.subtitle =
      "Four jobs on up to 64 T4, judged on more than was fitted: on 2 nodes and 4 devices, or "
      "(dashed) on 4 nodes";
  options.x_label = "Doublings beyond the fitted runs";
  options.y_label = "Mean absolute error of the step time (%)";
  options.log_y = true;
  return RenderSvgPlot({theirs, half_width, ours, discrepancy, their_many, our_many}, options);
}

// ---- The page as a file.

// The page with each table between <!-- measured: NAME --> and <!-- end -->. Throws where a table
// has no place, or a place no table.
inline std::string WithTables(const std::string& page, std::map<std::string, std::string> tables) {
  const std::string begin = "<!-- measured: ";
  const std::string close = " -->";
  const std::string end = "<!-- end -->";
  std::istringstream in(page);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    out += line + "\n";
    if (line.rfind(begin, 0) != 0) continue;
    const std::string name = line.substr(begin.size(), line.size() - begin.size() - close.size());
    const auto table = tables.find(name);
    if (table == tables.end()) throw std::runtime_error("no table for " + line);
    out += table->second;
    tables.erase(table);
    while (line != end) {
      if (!std::getline(in, line)) throw std::runtime_error(name + " does not end");
    }
    out += end + "\n";
  }
  if (!tables.empty()) throw std::runtime_error("no place for table " + tables.begin()->first);
  return out;
}

// By how much two printings of one number may differ: as a share, so that one row may leave its
// interval in the smallest bin, and by the last printed digit.
inline constexpr double kNoise = 0.04;
inline constexpr double kNoiseNearZero = 0.11;

// Whether two lines differ by no more than another compiler's rounding does.
inline bool SameButForNoise(const std::string& said, const std::string& actual) {
  std::size_t i = 0;
  std::size_t j = 0;
  const auto starts_number = [](const std::string& text, std::size_t at) {
    const auto digit = [&](std::size_t k) {
      return k < text.size() && text[k] >= '0' && text[k] <= '9';
    };
    return digit(at) || ((text[at] == '-' || text[at] == '+') && digit(at + 1));
  };
  const auto number = [](const std::string& text, std::size_t* at) {
    std::size_t end = *at + 1;
    while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == '.')) ++end;
    const double value = std::strtod(text.substr(*at, end - *at).c_str(), nullptr);
    *at = end;
    return value;
  };
  while (i < said.size() && j < actual.size()) {
    if (starts_number(said, i) && starts_number(actual, j)) {
      const double x = number(said, &i);
      const double y = number(actual, &j);
      const double most = std::max(kNoise * std::max(std::abs(x), std::abs(y)), kNoiseNearZero);
      if (std::abs(x - y) > most) return false;
    } else if (said[i] == actual[j]) {
      ++i;
      ++j;
    } else {
      return false;
    }
  }
  return i == said.size() && j == actual.size();
}

}  // namespace stepcast::extrapolation

#endif  // STEPCAST_TESTS_CALIBRATE_EXTRAPOLATION_PAGE_H_
