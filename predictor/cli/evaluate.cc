// stepcast evaluate: predicted against measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "predictor/cli/command.h"
#include "predictor/cli/runs_problem.h"

namespace stepcast::cli {
namespace {

struct Row {
  const Run* run = nullptr;
  Prediction prediction;

  double relative_error() const { return prediction.step_time / run->step_time - 1; }
  bool covered() const {
    return prediction.low <= run->step_time && run->step_time <= prediction.high;
  }
};

// Fractions, not per cent.
struct Score {
  int runs = 0;
  double mape = 0;
  double median_ape = 0;
  double p90_ape = 0;
  double bias = 0;  // mean of predicted / measured - 1
  double coverage90 = 0;
};

// Linear interpolation between order statistics; `sorted` is not empty.
double Quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - std::floor(at)) * (sorted[above] - sorted[below]);
}

Score ScoreOf(const std::vector<const Row*>& rows) {
  Score score;
  score.runs = static_cast<int>(rows.size());
  std::vector<double> errors;
  for (const Row* row : rows) {
    errors.push_back(std::abs(row->relative_error()));
    score.bias += row->relative_error();
    score.mape += errors.back();
    score.coverage90 += row->covered() ? 1.0 : 0.0;
  }
  score.bias /= score.runs;
  score.mape /= score.runs;
  score.coverage90 /= score.runs;
  std::sort(errors.begin(), errors.end());
  score.median_ape = Quantile(errors, 0.5);
  score.p90_ape = Quantile(errors, 0.9);
  return score;
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
      {"file", [](const Run& r) { return r.place.file; }},
  };
  return groupings;
}

// Numbers by value, names by letter.
bool GroupLess(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& s) {
    return !s.empty() && s.find_first_not_of("0123456789") == std::string::npos;
  };
  if (number(a) && number(b) && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

Json ScoreJson(const Score& s) {
  return {{"runs", s.runs},       {"mape", s.mape}, {"median_ape", s.median_ape},
          {"p90_ape", s.p90_ape}, {"bias", s.bias}, {"coverage90", s.coverage90}};
}

}  // namespace

int RunEvaluate(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddRunsOptions(&options);
  options.add_options()("group-by", po::value<std::string>()->value_name("KEY"),
                        "workload, device, strategy, workers, nodes, servers, local_batch, file")(
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
  const CalibrationProblem problem = ReadRunsProblem(args);
  if (problem.runs.empty()) {
    throw InputError(OptionPlace("runs"), "", "holds no runs", "at least one row");
  }
  std::map<std::pair<std::string, std::string>, Predictor> predictors;
  std::vector<Row> rows;
  for (const Run& run : problem.runs) {
    try {
      auto it = predictors.find({run.workload, run.device});
      if (it == predictors.end()) {
        const auto device = problem.devices.find(run.device);
        it = predictors
                 .emplace(std::pair(run.workload, run.device),
                          Predictor(problem.cluster, problem.workloads.at(run.workload),
                                    device == problem.devices.end() ? std::optional<Device>()
                                                                    : device->second,
                                    run.device))
                 .first;
      }
      rows.push_back({&run, it->second.Predict(run.plan)});
    } catch (const InputError& e) {
      throw InputError({run.place.file, run.place.line, e.place().key}, e.value(), e.problem(),
                       e.allowed());
    }
  }

  std::vector<const Row*> all;
  std::map<std::string, std::vector<const Row*>, decltype(&GroupLess)> groups(&GroupLess);
  for (const Row& row : rows) {
    all.push_back(&row);
    if (!group_by.empty()) groups[Groupings().at(group_by)(*row.run)].push_back(&row);
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
        json["rows"].push_back({{"predicted_step_time_s", row.prediction.step_time.in(kSeconds)},
                                {"low_s", row.prediction.low.in(kSeconds)},
                                {"high_s", row.prediction.high.in(kSeconds)},
                                {"measured_step_time_s", row.run->step_time.in(kSeconds)},
                                {"flags", row.prediction.flags}});
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
    table.AddRow({name, FormatCount(s.runs), FormatPercent(s.mape), FormatPercent(s.median_ape),
                  FormatPercent(s.p90_ape), (s.bias > 0 ? "+" : "") + FormatPercent(s.bias),
                  FormatPercent(s.coverage90)});
  };
  for (const auto& [name, members] : groups) add(name, ScoreOf(members));
  if (!groups.empty()) table.AddRule();
  add("all", ScoreOf(all));
  std::string out =
      Heading(fmt::format("{}: predicted against measured", problem.cluster.name), style);
  constexpr std::size_t kFewRows = 12;
  if (rows.size() <= kFewRows) {
    Table detail({{"workload", "", Align::kLeft},
                  {"plan", "", Align::kLeft},
                  {"measured", "", Align::kRight},
                  {"predicted", "", Align::kRight},
                  {"90 % interval", "", Align::kRight},
                  {"error", "", Align::kRight}});
    for (const Row& row : rows) {
      const double error = row.relative_error();
      detail.AddRow(
          {row.run->workload, DescribePlan(row.run->plan), FormatDuration(row.run->step_time),
           FormatDuration(row.prediction.step_time),
           FormatDuration(row.prediction.low) + " - " + FormatDuration(row.prediction.high),
           (error > 0 ? "+" : "") + FormatPercent(error)});
    }
    out += detail.Render(style, 2) + "\n";
  }
  out += table.Render(style, 2);
  Print(out);
  return kDone;
}

}  // namespace stepcast::cli
