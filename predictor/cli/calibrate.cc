// stepcast calibrate: learns a cluster's parameters from measured runs.
#include "calibrate/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/io/machines.h"
#include "data/io/parse.h"
#include "model/step/parameters.h"
#include "predictor/cli/command.h"
#include "predictor/cli/runs_problem.h"

namespace stepcast::cli {
namespace {

std::string ValueText(double value, const std::string& unit) {
  return FormatNumber(value) + (unit.empty() ? "" : " " + unit);
}

bool IsHostLink(const ParameterEstimate& p) { return p.scope.rfind(kHostsScopePrefix, 0) == 0; }

// What the links of named hosts turned out to be, a sentence for each group, slowest first.
std::vector<std::string> HostFindings(const Calibration& calibration, const Cluster& cluster) {
  std::vector<const ParameterEstimate*> links;
  for (const ParameterEstimate& p : calibration.parameters) {
    if (IsHostLink(p)) links.push_back(&p);
  }
  std::sort(links.begin(), links.end(),
            [](const auto* a, const auto* b) { return a->value < b->value; });
  std::vector<std::string> findings;
  for (const ParameterEstimate* p : links) {
    std::string hosts = p->scope.substr(std::string(kHostsScopePrefix).size());
    const bool several = hosts.find('+') != std::string::npos;
    for (std::size_t plus = hosts.find('+'); plus != std::string::npos; plus = hosts.find('+')) {
      hosts.replace(plus, 1, hosts.find('+', plus + 1) == std::string::npos ? " and " : ", ");
    }
    const DataRate<> rate = GigabitsPerSecond(p->value);
    std::string text = fmt::format("{} {} on a link of {} (fitted {}, standard error {}).", hosts,
                                   several ? "sit" : "sits", NominalLink(rate), FormatRate(rate),
                                   FormatPercent(p->log_sd));
    if (cluster.link.bandwidth && rate * 3.0 < *cluster.link.bandwidth) {
      text += fmt::format(" The cluster file says {}: look at the cable and the port.",
                          FormatRate(*cluster.link.bandwidth));
    }
    if (p->decided_by == DecidedBy::kPrior) text += " The runs hardly tell.";
    findings.push_back(text);
  }
  return findings;
}

// What speaks against a fit that converged, a sentence each.
std::vector<std::string> Doubts(const CalibrationOutcome& outcome) {
  // Beyond this the model does not describe the runs; public traces are met within 6 %.
  constexpr double kUselessMape = 0.5;
  constexpr double kAtBound = 1e-6;
  std::vector<std::string> doubts;
  if (outcome.mape > kUselessMape) {
    doubts.push_back(
        fmt::format("the model does not describe these runs: it is {} off on average; "
                    "look for a wrong unit, strategy, link or workload",
                    FormatPercent(outcome.mape)));
  }
  const auto edge = [&](const ParameterEstimate& p, const auto& specs) {
    for (const ParameterSpec& spec : specs) {
      if (p.name != spec.name) continue;
      if (p.value < spec.low * (1 + kAtBound) || p.value > spec.high * (1 - kAtBound)) {
        doubts.push_back(
            fmt::format("{} of {} stands at the edge of its range ({}): these runs do "
                        "not fit the formula",
                        p.name, p.scope, ValueText(p.value, p.unit)));
      }
    }
  };
  for (const ParameterEstimate& p : outcome.cluster.calibration->parameters) {
    edge(p, kClusterParameterSpecs);
    edge(p, kWorkloadParameterSpecs);
  }
  return doubts;
}

std::string RunText(const Run& run) {
  return fmt::format("{}:{} {}, {}", run.place.file, run.place.line, run.workload,
                     DescribePlan(run.plan));
}

void PrintReport(const CalibrationProblem& problem, const CalibrationOutcome& outcome,
                 const std::string& output, bool all_parameters) {
  const Style style = DetectStyle();
  const int width = TerminalWidth();
  const Calibration& calibration = *outcome.cluster.calibration;
  std::string out =
      Heading(fmt::format("{} from {} runs of {} workload{}", problem.cluster.name,
                          FormatCount(static_cast<double>(problem.runs.size())),
                          problem.workloads.size(), problem.workloads.size() == 1 ? "" : "s"),
              style);
  out += NoteLine(
      fmt::format("{} Fitted runs are met within {} on average (MAPE); one more step would scatter "
                  "by {}.",
                  outcome.message, FormatPercent(outcome.mape),
                  FormatPercent(calibration.residual_log_sd)),
      style, width);
  for (const std::string& finding : HostFindings(calibration, problem.cluster)) {
    out += NoteLine(finding, style, width);
  }
  if (problem.cluster.calibration) {
    out += NoteLine(
        "The cluster file was calibrated before; this fit starts anew from the priors and "
        "these runs alone.",
        style, width);
  }
  for (const std::string& doubt : Doubts(outcome)) out += FlagLine(doubt, style, width);
  out += "\n";
  Table table({{"of", "", Align::kLeft},
               {"parameter", "", Align::kLeft},
               {"value", "", Align::kRight},
               {"standard error", "", Align::kRight},
               {"prior", "", Align::kRight},
               {"decided by", "", Align::kLeft}});
  std::string scope;
  int hidden = 0;
  for (const ParameterEstimate& p : calibration.parameters) {
    if (!all_parameters && p.decided_by == DecidedBy::kPrior && !IsHostLink(p)) {
      ++hidden;
      continue;
    }
    table.AddRow({p.scope == scope ? "" : p.scope, p.name, ValueText(p.value, p.unit),
                  FormatPercent(p.log_sd),
                  fmt::format("{} x/ {}", ValueText(p.prior_value, p.unit),
                              FormatNumber(std::exp(p.prior_log_sd))),
                  kDecidedByNames[static_cast<int>(p.decided_by)]});
    scope = p.scope;
  }
  out += table.Render(style, 2);
  if (hidden > 0) {
    out +=
        NoteLine(fmt::format("{} parameters stayed on their priors: the runs say nothing of them "
                             "(--all shows them).",
                             hidden),
                 style, width);
  }
  // Runs that the model does not meet deserve a second look.
  constexpr double kFarOff = 3;
  std::vector<std::size_t> order(problem.runs.size());
  std::iota(order.begin(), order.end(), 0);
  const auto distance = [&](std::size_t i) { return std::abs(outcome.residuals[i].log_ratio); };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return distance(a) > distance(b); });
  int shown = 0;
  for (const std::size_t i : order) {
    const double far_off = std::min(kFarOff * calibration.residual_log_sd, std::log(2));
    if (distance(i) < far_off || shown == 3) break;
    out += FlagLine(fmt::format("{}: measured {}, the model says {}", RunText(problem.runs[i]),
                                FormatDuration(problem.runs[i].step_time),
                                FormatDuration(outcome.residuals[i].predicted)),
                    style, width);
    ++shown;
  }
  if (!output.empty()) out += NoteLine("written to " + output, style, width);
  Print(out);
}

Json ReportJson(const CalibrationProblem& problem, const CalibrationOutcome& outcome) {
  Json json;
  json["usable"] = outcome.IsUsable();
  json["message"] = outcome.message;
  json["runs"] = problem.runs.size();
  json["iterations"] = outcome.iterations;
  json["mape"] = outcome.IsUsable() ? Json(outcome.mape) : Json(nullptr);
  json["residual_log_sd"] = nullptr;
  json["parameters"] = Json::array();
  json["findings"] = Json::array();
  json["flags"] = Json::array();
  if (!outcome.IsUsable()) return json;
  const Calibration& calibration = *outcome.cluster.calibration;
  json["residual_log_sd"] = calibration.residual_log_sd;
  for (const ParameterEstimate& p : calibration.parameters) {
    json["parameters"].push_back({{"scope", p.scope},
                                  {"name", p.name},
                                  {"unit", p.unit},
                                  {"value", p.value},
                                  {"log_sd", p.log_sd},
                                  {"prior_value", p.prior_value},
                                  {"prior_log_sd", p.prior_log_sd},
                                  {"decided_by", kDecidedByNames[static_cast<int>(p.decided_by)]}});
  }
  json["findings"] = HostFindings(calibration, problem.cluster);
  json["flags"] = Doubts(outcome);
  return json;
}

}  // namespace

int RunCalibrate(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddRunsOptions(&options);
  options.add_options()("output", po::value<std::string>()->value_name("F"),
                        "cluster file to write, with the fitted parameters")(
      "all", "show the parameters that stayed on their priors too")(
      "json", "print one JSON object")("help", "print this text");
  const Arguments args("calibrate", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp(
        "stepcast calibrate --cluster C --runs R.csv ... --output F",
        "Fits the cost model to measured runs. Network parameters are shared by all\n"
        "workloads, compute by the runs of one workload on one device; hosts named in the\n"
        "runs get links of their own. F is the cluster file with values, covariance and\n"
        "where they come from; give it to the other commands as --cluster.",
        options,
        "  stepcast calibrate --cluster ufrgs-tupi --runs data/measurements/ufrgs-tupi-fit.csv "
        "--output fitted.yaml\n");
    return kDone;
  }
  const CalibrationProblem problem = ReadRunsProblem(args);
  const CalibrationOutcome outcome = Calibrate(problem);
  const std::string output = args.Has("output") ? args.Text("output") : "";
  if (outcome.IsUsable() && !output.empty()) {
    WriteTextFile(output, FormatCluster(outcome.cluster));
  }
  if (args.Has("json")) {
    PrintJson(ReportJson(problem, outcome));
  } else if (outcome.IsUsable()) {
    PrintReport(problem, outcome, output, args.Has("all"));
  } else {
    Print(outcome.message + "\n");
  }
  return outcome.IsUsable() ? kDone : kAnswerIsNo;
}

}  // namespace stepcast::cli
