// stepcast report: a calibration as one HTML page.
#include <fmt/format.h>

#include <algorithm>

#include "data/io/network_profile_file.h"
#include "data/io/text_file.h"
#include "predictor/cli/command.h"
#include "predictor/cli/report_page.h"
#include "predictor/cli/runs_problem.h"

namespace stepcast::cli {
namespace {

// Workloads whose next runs are chosen; each may take seconds.
constexpr std::size_t kMostPlanned = 6;

std::vector<ChosenRuns> WantedOf(const Fit& fit) {
  std::vector<ChosenRuns> wanted;
  for (std::size_t i = 0; i < std::min(kMostPlanned, fit.whole_cluster.size()); ++i) {
    const WholeForecast& whole = fit.whole_cluster[i];
    Target target;
    target.cluster = fit.outcome.cluster;
    target.workload = fit.problem.workloads.at(whole.of.workload);
    target.device = whole.of.device;
    target.facts = DataSheetOf(fit.problem.devices, whole.of.device);
    wanted.push_back(ChooseWanted(target, whole.plan, {}, {}, kDefaultWanted));
  }
  return wanted;
}

Evaluation Evaluated(const Fit& fit, const CalibrationProblem& problem) {
  Evaluation evaluation(GroupingsOfPage(), kRunsOfPage);
  for (const Run& run : problem.runs) evaluation.Take(run, fit.outcome.cluster, problem);
  return evaluation;
}

}  // namespace

int RunReport(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddFitOptions(&options);
  options.add_options()("judge", OptionValues("R.csv")->multitoken(),
                        "runs that are not fitted, to judge the forecasts by")(
      "network", OptionValue("FILE"),
      "the cluster's network as stepcast probe network measured it")(
      "output", OptionValue("FILE.html"), "the page; required")("json", "print one JSON object")(
      "help", "print this text");
  const Arguments args("report", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp(
        "stepcast report --cluster C --runs R.csv ... --output FILE.html",
        "Fits the cost model as stepcast calibrate does, and writes what came of it as one\n"
        "HTML page to read, hand on and print: caveats, links, each run beside its forecast,\n"
        "parameters with priors and intervals, suspect runs, and what to measure next. The\n"
        "page needs no script and no network. Exit code 1 if the fit is not usable.",
        options,
        "  stepcast report --cluster ufrgs-tupi --runs data/measurements/ufrgs-tupi-fit.csv "
        "--output report.html\n"
        "  stepcast report --cluster ufrgs-tupi --runs data/measurements/ufrgs-tupi-fit.csv "
        "--judge data/measurements/ufrgs-tupi-holdout.csv --output report.html\n");
    return kDone;
  }
  const std::string output = args.Required("output");
  args.RequireOtherFile("output",
                        {"cluster", "runs", "judge", "network", "workload-file", "profile"});
  // What cannot be read is said before the fit, which may take long.
  std::optional<NetworkProfile> network;
  if (args.Has("network")) network = ReadNetworkProfile(args.Text("network"));
  std::optional<CalibrationProblem> others;
  if (args.Has("judge")) {
    others = ReadRunsProblem(args, "judge");
    if (std::all_of(others->runs.begin(), others->runs.end(),
                    [](const Run& run) { return run.stopped; })) {
      throw InputError(OptionPlace("judge"), "", "holds no run of which a step ended",
                       "at least one row");
    }
  }
  const Fit fit = MakeFit(args);
  std::string page;
  if (fit.outcome.IsUsable()) {
    const Evaluation fitted = Evaluated(fit, fit.problem);
    std::optional<Evaluation> judged;
    if (others) judged = Evaluated(fit, *others);
    page = CalibrationPage({fit, fitted, judged ? &*judged : nullptr, WantedOf(fit), network});
    WriteTextFile(output, page);
  }
  if (args.Has("json")) {
    PrintJson({{"usable", fit.outcome.IsUsable()},
               {"message", fit.outcome.message},
               {"output", page.empty() ? Json(nullptr) : Json(output)},
               {"bytes", page.empty() ? Json(nullptr) : Json(page.size())}});
  } else if (page.empty()) {
    Print(fit.outcome.message + "\n");
  } else {
    Print(NoteLine("written to " + output + ", which any browser opens and prints", DetectStyle()));
  }
  return page.empty() ? kAnswerIsNo : kDone;
}

}  // namespace stepcast::cli
