// stepcast evaluate: predicted against measured.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "data/io/text_file.h"
#include "data/values/names.h"
#include "data/values/workload_scope.h"
#include "predictor/cli/command.h"
#include "predictor/cli/evaluation.h"
#include "predictor/cli/report_page.h"
#include "predictor/cli/runs_problem.h"

namespace stepcast::cli {

int RunEvaluate(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddRunsOptions(&options);
  options.add_options()(
      "group-by", OptionValue("KEY"),
      "workload, device, strategy, workers, nodes, servers, local_batch, link, file, distance")(
      "report", OptionValue("FILE.html"),
      "also write a page: predicted over measured, errors by distance, coverage")(
      "rows", "with --json: each row's prediction")("json", "print one JSON object")(
      "help", "print this text");
  const Arguments args("evaluate", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp(
        "stepcast evaluate --cluster F --runs R.csv ... [--group-by workload] [--report FILE.html]",
        "Predicts every measured run and says how far off the predictions are: mean,\n"
        "median and 90th percentile of |predicted / measured - 1|, the mean sign (bias),\n"
        "and how many measurements fall in their 90 % interval.",
        options,
        "  stepcast calibrate --cluster ufrgs-tupi --runs data/measurements/ufrgs-tupi-fit.csv "
        "--output fitted.yaml\n"
        "  stepcast evaluate --cluster fitted.yaml "
        "--runs data/measurements/ufrgs-tupi-holdout.csv\n"
        "  stepcast evaluate --cluster fitted.yaml "
        "--runs data/measurements/ufrgs-tupi-holdout.csv --report judged.html\n");
    return kDone;
  }
  args.RequireOtherFile("report", {"cluster", "runs", "workload-file"});
  const std::string group_by = args.TextOr("group-by", "");
  const std::vector<std::string> known = GroupingNames();
  if (!group_by.empty() && std::find(known.begin(), known.end(), group_by) == known.end()) {
    throw InputError(OptionPlace("group-by"), group_by, "is not a grouping", JoinNames(known));
  }
  constexpr std::size_t kFewRows = 12;
  KeptRuns keep = args.Has("report") ? kRunsOfPage : KeptRuns();
  keep.first = !args.Has("json")   ? kFewRows + 1
               : !args.Has("rows") ? 0
                                   : std::numeric_limits<std::size_t>::max();
  std::vector<std::string> groupings;
  if (args.Has("report")) groupings = GroupingsOfPage();
  if (!group_by.empty()) groupings.push_back(group_by);
  Evaluation evaluation(groupings, keep);
  const CalibrationProblem problem =
      ReadEachRun(args, "runs", [&](const Run& run, const CalibrationProblem& named) {
        evaluation.Take(run, named.cluster, named);
      });
  const Score all = evaluation.overall();
  if (all.runs == 0) {
    throw InputError(OptionPlace("runs"), fmt::format("{}", fmt::join(args.Texts("runs"), ", ")),
                     "holds no run of which a step ended", "at least one row");
  }
  // Forecast as if the cluster had them.
  std::vector<std::string> beyond = evaluation.extent().Beyond(problem.cluster);
  for (const auto& [name, workload] : problem.workloads) {
    if (std::optional<std::string> flag = AsOthersFlag(workload, problem.cluster.name)) {
      beyond.push_back(*std::move(flag));
    }
  }
  std::vector<ScoredGroup> groups;
  if (!group_by.empty()) groups = evaluation.By(group_by);
  if (args.Has("report")) {
    WriteTextFile(args.Text("report"), EvaluationPage(problem.cluster, evaluation, group_by));
  }

  if (args.Has("json")) {
    Json json;
    json["overall"] = ScoreJson(all);
    json["flags"] = beyond;
    json["groups"] = Json::array();
    for (const ScoredGroup& group : groups) {
      Json of_group = {{"name", group.name}};
      of_group.update(ScoreJson(group.score));
      json["groups"].push_back(of_group);
    }
    if (args.Has("rows")) {
      json["rows"] = Json::array();
      for (const EvaluatedRun& row : evaluation.first()) json["rows"].push_back(RowJson(row));
    }
    PrintJson(json);
    return kDone;
  }

  const Style style = DetectStyle();
  std::string out =
      Heading(fmt::format("{}: predicted against measured", problem.cluster.name), style);
  if (evaluation.first().size() <= kFewRows) {
    out += RunsTable(evaluation.first()).Render(style, 2) + "\n";
  }
  out += ScoreTable(group_by.empty() ? "runs of" : group_by, groups, all).Render(style, 2);
  if (const std::string stopped = StoppedText(all); !stopped.empty()) {
    out += NoteLine(stopped, style);
  }
  for (const std::string& sentence : beyond) out += FlagLine(sentence, style);
  if (args.Has("report")) out += NoteLine("written to " + args.Text("report"), style);
  Print(out);
  return kDone;
}

}  // namespace stepcast::cli
