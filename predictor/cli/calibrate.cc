// stepcast calibrate: learns a cluster's parameters from measured runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibrate/drift.h"
#include "calibrate/host_findings.h"
#include "data/io/machines.h"
#include "data/io/text_file.h"
#include "data/values/size_limits.h"
#include "data/values/training_facts.h"
#include "model/step/parameters.h"
#include "predictor/cli/command.h"
#include "predictor/cli/fit.h"
#include "predictor/cli/fresh.h"
#include "predictor/cli/runs_problem.h"

namespace stepcast::cli {
namespace {

void PrintFit(const Fit& fit, const std::string& output, bool all) {
  constexpr std::size_t kMostLines = 5;
  const Style style = DetectStyle();
  const int width = TerminalWidth();
  std::string out = Heading(FitTitle(fit), style);
  const auto note = [&](const std::string& text) { out += NoteLine(text, style, width); };
  for (const std::string& text : FitNotes(fit)) note(text);
  const CalibrationProblem& problem = fit.problem;
  for (const std::string& text : HostFindings(fit.calibration(), problem.cluster, problem.runs)) {
    note(text);
  }
  for (const std::string& text : EarlierNotes(fit)) note(text);
  for (const std::string& caveat : fit.caveats) out += FlagLine(caveat, style, width);
  int hidden = 0;
  out += "\n" + ParameterTable(fit, all, &hidden).Render(style, 2);
  if (hidden > 0) {
    note(
        fmt::format("{} parameters stayed on their priors: the runs say nothing of them "
                    "(--all shows them).",
                    hidden));
  }
  if (!fit.whole_cluster.empty()) out += "\n" + WholeTable(fit).Render(style, 2);
  const std::size_t most = all ? fit.problem.runs.size() + kClusterParameterCount : kMostLines;
  const auto rest = [&](std::size_t size, const char* what) {
    if (size > most) note(fmt::format("and {} more {} (--all shows them)", size - most, what));
  };
  for (std::size_t i = 0; i < std::min(most, fit.ambiguities.size()); ++i) {
    note(AmbiguityText(fit.ambiguities[i]));
  }
  rest(fit.ambiguities.size(), "pairs");
  for (std::size_t i = 0; i < std::min(most, fit.suspects.size()); ++i) {
    out += FlagLine(SuspectText(fit, fit.suspects[i]), style, width);
  }
  rest(fit.suspects.size(), "suspect rows");
  if (!output.empty()) note("written to " + output);
  Print(out);
}

// ---- --check: whether a calibration still holds.

std::string DriftText(const ParameterDrift& drift) {
  return fmt::format("{}{} of {}: {} became {} (x {:.3g}, {:.1f} standard errors)",
                     drift.alternative ? "or " : "", drift.name, drift.scope,
                     ValueText(drift.before, drift.unit), ValueText(drift.now, drift.unit),
                     drift.now / drift.before, std::abs(drift.z));
}

int RunCheck(const CalibrationProblem& problem, bool as_json) {
  if (!problem.cluster.calibration) {
    throw InputError(OptionPlace("check"), problem.cluster.name, "has no calibration to check",
                     "a cluster file written by stepcast calibrate --output");
  }
  const DriftReport report =
      CheckDrift({problem.cluster, problem.runs, problem.workloads, problem.devices});
  if (as_json) {
    Json json;
    json["stale"] = report.stale;
    json["verdict"] = report.verdict;
    json["runs"] = report.runs;
    json["stopped_runs"] = report.stopped;
    json["overdue_runs"] = report.overdue;
    json["mean_log_ratio"] = report.mean_log_ratio;
    json["scatter"] = report.scatter;
    json["p_value"] = report.p_value;
    json["drifts"] = Json::array();
    for (const ParameterDrift& d : report.drifts) {
      json["drifts"].push_back({{"scope", d.scope},
                                {"name", d.name},
                                {"unit", d.unit},
                                {"before", d.before},
                                {"now", d.now},
                                {"log_sd", d.log_sd},
                                {"z", d.z},
                                {"alternative", d.alternative}});
    }
    PrintJson(json);
  } else {
    const Style style = DetectStyle();
    std::string out = Heading(fmt::format("{} against {} new run{}", problem.cluster.name,
                                          FormatCount(report.runs), report.runs == 1 ? "" : "s"),
                              style);
    const int width = TerminalWidth();
    out += report.stale ? FlagLine(report.verdict, style, width)
                        : NoteLine(report.verdict, style, width);
    if (report.runs >= kFewestDriftRuns) {
      out += NoteLine(fmt::format("They lie {} times as far from their forecasts as expected; were "
                                  "nothing changed, {} of such runs would lie as far or farther.",
                                  FormatNumber(report.scatter),
                                  report.p_value < 0.001 ? std::string("under 0.1 %")
                                                         : FormatPercent(report.p_value)),
                      style, width);
    }
    if (report.stopped > 0) {
      const std::string late = "later than the calibration has steps end";
      const std::string text =
          report.stopped == 1
              ? "One run was stopped before a step ended" +
                    (report.overdue > 0 ? ", " + late : std::string()) + "."
              : fmt::format("{} runs were stopped before a step ended, {} of them {}.",
                            report.stopped, report.overdue, late);
      out += report.overdue > 0 ? FlagLine(text, style, width) : NoteLine(text, style, width);
    }
    if (!problem.cluster.calibration->has_covariance) {
      out += FlagLine(
          "the calibration has no covariance: its parameters are taken as independent of each "
          "other, and runs may seem to scatter more or less than they do",
          style, width);
    }
    for (const ParameterDrift& drift : report.drifts) {
      out += NoteLine(DriftText(drift), style, width);
    }
    // No cluster changes so much.
    constexpr double kAnotherUnit = 30;
    if (std::abs(report.mean_log_ratio) > std::log(kAnotherUnit)) {
      out +=
          FlagLine(fmt::format("on average the runs take {} times as long as forecast: are their "
                               "times in seconds?",
                               FormatNumber(std::exp(report.mean_log_ratio))),
                   style, width);
    }
    Print(out);
  }
  // Too few runs to tell are no reason to go on trusting.
  return report.stale || report.runs < kFewestDriftRuns ? kAnswerIsNo : kDone;
}

}  // namespace

int RunCalibrate(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddFitOptions(&options);
  po::options_description of_fresh;
  AddFreshOptions(&of_fresh);
  options.add(of_fresh);
  options.add_options()("output", OptionValue("F"),
                        "cluster file to write, with the fitted parameters")(
      "check", OptionValues("R.csv")->multitoken(),
      "new runs: say whether the calibration of C still holds, and fit nothing")(
      "fresh", "measure the cluster first: its compute, network and steps")(
      "all", "show all: parameters that stayed on their priors, pairs, suspect rows")(
      "json", "print one JSON object")("help", "print this text");
  const Arguments args("calibrate", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp(
        "stepcast calibrate --cluster C --runs R.csv ... --output F\n"
        "       stepcast calibrate --cluster F --check NEW.csv ...\n"
        "       stepcast calibrate --fresh --cluster C --workload W --local-batch N --hosts H,... "
        "--output F",
        "Fits the cost model to measured runs. Network parameters are shared by all\n"
        "workloads, a device's speed by the workloads on it, compute by the runs of one\n"
        "workload; hosts named in the runs get links of their own. F is the cluster file with\n"
        "values, covariance and where they come from; give it to the other commands as\n"
        "--cluster. Rows that the model does not meet are named with what they behave like.\n"
        "--check fits nothing: exit code 1 if new runs say that a parameter has changed, or\n"
        "if they are too few to tell.\n\n"
        "--fresh goes the whole way on a new cluster, by the commands that it names as it goes:\n"
        "microbench on this host, probe network between all, plan, probe steps for the runs that\n"
        "plan asks for and for others to judge by, the fit, evaluate, report, and plan again. It\n"
        "is started on all hosts as stepcast probe is. Files are kept in a folder, from which the\n"
        "same command goes on where it was stopped.",
        options,
        "  stepcast calibrate --cluster ufrgs-tupi --runs data/measurements/ufrgs-tupi-fit.csv "
        "--output fitted.yaml\n"
        "  stepcast calibrate --cluster fitted.yaml "
        "--check last-week.csv\n"
        "  stepcast calibrate --fresh --cluster lab.yaml --workload resnet50 --local-batch 32 "
        "--hosts n1,n2,n3,n4 --ssh --output fitted.yaml\n");
    return kDone;
  }
  const bool is_fresh = args.Has("fresh");
  for (const auto& option : of_fresh.options()) {
    if (is_fresh || !args.Has(option->long_name())) continue;
    throw InputError(OptionPlace(option->long_name()), "", "has no meaning without --fresh",
                     "with --fresh");
  }
  if (is_fresh) {
    for (const char* other : {"runs", "check", "all"}) {
      if (!args.Has(other)) continue;
      throw InputError(OptionPlace(other), "", "has no meaning beside --fresh", "without it");
    }
    return CalibrateFresh(args);
  }
  if (args.Has("check")) {
    const auto refuse = [&](const char* other) {
      if (!args.Has(other)) return;
      throw InputError(OptionPlace(other), "", "has no meaning beside --check",
                       "either a fit or a check");
    };
    for (const char* other : {"runs", "output", "fix", "prior", "profile"}) refuse(other);
    for (const TrainingFact& fact : TrainingFacts()) refuse(fact.key);
    return RunCheck(ReadRunsProblem(args, "check"), args.Has("json"));
  }
  args.RequireOtherFile("output", {"runs", "workload-file", "profile"});
  const Fit fit = MakeFit(args);
  const CalibrationOutcome& outcome = fit.outcome;
  const std::string output = args.TextOr("output", "");
  if (outcome.IsUsable() && !output.empty()) {
    const std::string text = FormatCluster(outcome.cluster);
    if (text.size() > kMostYamlBytes) {
      throw InputError(
          OptionPlace("output"), fmt::format("{} MiB", text.size() >> 20),
          "is more than a cluster file may hold",
          fmt::format("at most {} MiB: fewer workloads in one fit", kMostYamlBytes >> 20));
    }
    WriteTextFile(output, text);
  }
  if (args.Has("json")) {
    PrintJson(FitJson(fit));
  } else if (outcome.IsUsable()) {
    PrintFit(fit, output, args.Has("all"));
  } else {
    Print(outcome.message + "\n");
  }
  return outcome.IsUsable() ? kDone : kAnswerIsNo;
}

}  // namespace stepcast::cli
