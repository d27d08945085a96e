// stepcast evaluate: predicted against measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "data/plan/key.h"
#include "data/values/quantile.h"
#include "predictor/cli/command.h"
#include "predictor/cli/runs_problem.h"

namespace stepcast::cli {
namespace {

// What is kept of a prediction.
struct Answer {
  Duration<> step_time;
  Duration<> low;
  Duration<> high;
  std::vector<std::string> flags;
};

struct Row {
  std::string workload;
  Plan plan;
  Duration<> measured;
  bool stopped = false;
  Answer predicted;
};

// Predicts plans of one workload on one device. Runs repeat plans: so many answers are remembered.
class Evaluated {
 public:
  explicit Evaluated(Predictor predictor) : predictor_(std::move(predictor)) {}

  const Answer& Of(const Plan& plan) {
    if (!plan.hosts.empty()) return last_ = Ask(plan);
    PlanKey key = StatedKey(plan);
    key.insert(key.end(), plan.placement.begin(), plan.placement.end());
    const auto known = answers_.find(key);
    if (known != answers_.end()) return known->second;
    if (answers_.size() >= kMostRemembered) return last_ = Ask(plan);
    return answers_.emplace(std::move(key), Ask(plan)).first->second;
  }

 private:
  static constexpr std::size_t kMostRemembered = 20'000;

  Answer Ask(const Plan& plan) const {
    Prediction prediction = predictor_.Predict(plan);
    return {prediction.step_time, prediction.low, prediction.high, std::move(prediction.flags)};
  }

  Predictor predictor_;
  std::map<PlanKey, Answer> answers_;
  Answer last_;
};

// Fractions, not per cent.
struct Score {
  int runs = 0;
  double mape = 0;
  double median_ape = 0;
  double p90_ape = 0;
  double bias = 0;  // mean of predicted / measured - 1
  double coverage90 = 0;
  int stopped = 0;  // beside the runs: those that were stopped
  int longer = 0;   // those of them for which the interval reaches past the stop
};

// What is kept of many runs.
struct Errors {
  std::vector<double> relative;  // predicted / measured - 1
  int covered = 0;
  int stopped = 0;
  int longer = 0;

  void Add(const Run& run, const Answer& predicted) {
    if (run.stopped) {
      ++stopped;
      longer += predicted.high >= run.step_time ? 1 : 0;
      return;
    }
    relative.push_back(predicted.step_time / run.step_time - 1);
    covered += predicted.low <= run.step_time && run.step_time <= predicted.high ? 1 : 0;
  }
};

Score ScoreOf(const Errors& all) {
  Score score;
  score.runs = static_cast<int>(all.relative.size());
  score.stopped = all.stopped;
  score.longer = all.longer;
  if (score.runs == 0) return score;
  std::vector<double> errors;
  errors.reserve(all.relative.size());
  for (const double error : all.relative) {
    errors.push_back(std::abs(error));
    score.bias += error;
    score.mape += errors.back();
  }
  score.bias /= score.runs;
  score.mape /= score.runs;
  score.coverage90 = static_cast<double>(all.covered) / score.runs;
  std::sort(errors.begin(), errors.end());
  score.median_ape = Quantile(errors, 0.5);
  score.p90_ape = Quantile(errors, 0.9);
  return score;
}

std::string LinkName(const LinkFacts& link) {
  const std::string facts = DescribeLink(link);
  return facts.empty() ? "not stated" : facts;
}

using GroupOf = std::function<std::string(const Run&)>;

const std::map<std::string, GroupOf>& Groupings() {
  static const std::map<std::string, GroupOf> groupings = {
      {"workload", [](const Run& r) { return r.workload; }},
      {"device", [](const Run& r) { return r.device; }},
      {"strategy", [](const Run& r) { return std::string(StrategyName(r.plan.strategy)); }},
      {"workers", [](const Run& r) { return std::to_string(r.plan.workers()); }},
      {"nodes", [](const Run& r) { return std::to_string(r.plan.nodes()); }},
      {"servers", [](const Run& r) { return std::to_string(r.plan.servers); }},
      {"local_batch", [](const Run& r) { return std::to_string(r.plan.local_batch); }},
      {"link", [](const Run& r) { return LinkName(r.plan.link); }},
      {"file", [](const Run& r) { return r.place.file; }},
  };
  return groupings;
}

// Numbers by value, and behind them names by letter.
bool GroupLess(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& s) {
    return !s.empty() && s.find_first_not_of("0123456789") == std::string::npos;
  };
  if (number(a) != number(b)) return number(a);
  if (number(a) && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

Json ScoreJson(const Score& s) {
  const auto of_runs = [&](double value) { return s.runs > 0 ? Json(value) : Json(nullptr); };
  return {{"runs", s.runs},
          {"mape", of_runs(s.mape)},
          {"median_ape", of_runs(s.median_ape)},
          {"p90_ape", of_runs(s.p90_ape)},
          {"bias", of_runs(s.bias)},
          {"coverage90", of_runs(s.coverage90)},
          {"stopped_runs", s.stopped},
          {"stopped_forecast_longer", s.longer}};
}

}  // namespace

int RunEvaluate(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddRunsOptions(&options);
  options.add_options()(
      "group-by", po::value<std::string>()->value_name("KEY"),
      "workload, device, strategy, workers, nodes, servers, local_batch, link, file")(
      "rows", "with --json: each row's prediction")("json", "print one JSON object")(
      "help", "print this text");
  const Arguments args("evaluate", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp(
        "stepcast evaluate --cluster F --runs R.csv ... [--group-by workload]",
        "Predicts every measured run and says how far off the predictions are: mean,\n"
        "median and 90th percentile of |predicted / measured - 1|, the mean sign (bias),\n"
        "and how many measurements fall in their 90 % interval.",
        options,
        "  stepcast calibrate --cluster ufrgs-tupi --runs data/measurements/ufrgs-tupi-fit.csv "
        "--output fitted.yaml\n"
        "  stepcast evaluate --cluster fitted.yaml "
        "--runs data/measurements/ufrgs-tupi-holdout.csv\n");
    return kDone;
  }
  const std::string group_by = args.Has("group-by") ? args.Text("group-by") : "";
  if (!group_by.empty() && Groupings().count(group_by) == 0) {
    std::string allowed;
    for (const auto& [name, of] : Groupings()) allowed += (allowed.empty() ? "" : ", ") + name;
    throw InputError(OptionPlace("group-by"), group_by, "is not a grouping", allowed);
  }
  constexpr std::size_t kFewRows = 12;
  const std::size_t most_rows =
      args.Has("json") ? (args.Has("rows") ? std::numeric_limits<std::size_t>::max() : 0)
                       : kFewRows + 1;
  std::map<std::pair<std::string, std::string>, Evaluated> predictors;
  std::vector<Row> rows;
  Errors all;
  std::map<std::string, Errors, decltype(&GroupLess)> groups(&GroupLess);
  const auto take = [&](Run&& run, const CalibrationProblem& problem) {
    try {
      auto it = predictors.find({run.workload, run.device});
      if (it == predictors.end()) {
        const auto device = problem.devices.find(run.device);
        Predictor predictor(
            problem.cluster, problem.workloads.at(run.workload),
            device == problem.devices.end() ? std::optional<Device>() : device->second, run.device);
        it = predictors.emplace(std::pair(run.workload, run.device), std::move(predictor)).first;
      }
      const Answer& predicted = it->second.Of(run.plan);
      all.Add(run, predicted);
      if (!group_by.empty()) groups[Groupings().at(group_by)(run)].Add(run, predicted);
      if (rows.size() < most_rows) {
        rows.push_back({run.workload, std::move(run.plan), run.step_time, run.stopped, predicted});
      }
    } catch (const InputError& e) {
      throw InputError({run.place.file, run.place.line, e.place().key}, e.value(), e.problem(),
                       e.allowed());
    }
  };
  const CalibrationProblem problem = ReadEachRun(args, "runs", take);
  if (all.relative.empty()) {
    throw InputError(OptionPlace("runs"), "",
                     all.stopped > 0 ? "holds no run of which a step ended" : "holds no runs",
                     "at least one row");
  }

  if (args.Has("json")) {
    Json json;
    json["overall"] = ScoreJson(ScoreOf(all));
    json["groups"] = Json::array();
    for (const auto& [name, members] : groups) {
      Json group = {{"name", name}};
      group.update(ScoreJson(ScoreOf(members)));
      json["groups"].push_back(group);
    }
    if (args.Has("rows")) {
      json["rows"] = Json::array();
      for (const Row& row : rows) {
        json["rows"].push_back({{"predicted_step_time_s", row.predicted.step_time.in(kSeconds)},
                                {"low_s", row.predicted.low.in(kSeconds)},
                                {"high_s", row.predicted.high.in(kSeconds)},
                                {"measured_step_time_s", row.measured.in(kSeconds)},
                                {"stopped", row.stopped},
                                {"flags", row.predicted.flags}});
      }
    }
    PrintJson(json);
    return kDone;
  }

  const Style style = DetectStyle();
  Table table({{group_by.empty() ? "runs of" : group_by, "", Align::kLeft},
               {"runs", "", Align::kRight},
               {"MAPE", "", Align::kRight},
               {"median", "", Align::kRight},
               {"90th pct", "", Align::kRight},
               {"bias", "", Align::kRight},
               {"in 90 % interval", "", Align::kRight}});
  const auto add = [&](const std::string& name, const Score& s) {
    if (s.runs == 0) {
      table.AddRow({name, "0", "", "", "", "", ""});
      return;
    }
    table.AddRow({name, FormatCount(s.runs), FormatPercent(s.mape), FormatPercent(s.median_ape),
                  FormatPercent(s.p90_ape), (s.bias > 0 ? "+" : "") + FormatPercent(s.bias),
                  FormatPercent(s.coverage90)});
  };
  for (const auto& [name, members] : groups) add(name, ScoreOf(members));
  if (!groups.empty()) table.AddRule();
  add("all", ScoreOf(all));
  std::string out =
      Heading(fmt::format("{}: predicted against measured", problem.cluster.name), style);
  if (rows.size() <= kFewRows) {
    Table detail({{"workload", "", Align::kLeft},
                  {"plan", "", Align::kLeft},
                  {"measured", "", Align::kRight},
                  {"predicted", "", Align::kRight},
                  {"90 % interval", "", Align::kRight},
                  {"error", "", Align::kRight}});
    for (const Row& row : rows) {
      constexpr double kRounding = 1e-9;
      const double off = row.predicted.step_time / row.measured - 1;
      const double error = std::abs(off) < kRounding ? 0 : off;
      detail.AddRow({row.workload, DescribePlan(row.plan),
                     (row.stopped ? "> " : "") + FormatDuration(row.measured),
                     FormatDuration(row.predicted.step_time),
                     FormatDuration(row.predicted.low) + " - " + FormatDuration(row.predicted.high),
                     row.stopped ? "" : (error > 0 ? "+" : "") + FormatPercent(error)});
    }
    out += detail.Render(style, 2) + "\n";
  }
  out += table.Render(style, 2);
  if (all.stopped > 0) {
    out += NoteLine(
        fmt::format("{} stopped before a step ended and {} above; for {} the forecast's interval "
                    "reaches past the stop.",
                    all.stopped == 1 ? "1 run was" : fmt::format("{} runs were", all.stopped),
                    all.stopped == 1 ? "counts nowhere" : "count nowhere", all.longer),
        style);
  }
  Print(out);
  return kDone;
}

}  // namespace stepcast::cli
