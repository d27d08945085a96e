// stepcast calibrate: learns a cluster's parameters from measured runs.
#include "calibrate/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "calibrate/caveats.h"
#include "calibrate/drift.h"
#include "calibrate/excerpt.h"
#include "calibrate/host_findings.h"
#include "calibrate/identifiability.h"
#include "calibrate/next_runs.h"
#include "calibrate/parameter_layout.h"
#include "calibrate/suspects.h"
#include "data/io/machines.h"
#include "data/io/text_file.h"
#include "data/plan/limits.h"
#include "data/values/device_name.h"
#include "data/values/names.h"
#include "model/step/believed_model.h"
#include "model/step/parameters.h"
#include "predictor/cli/command.h"
#include "predictor/cli/profile_option.h"
#include "predictor/cli/runs_problem.h"
#include "predictor/cli/settings.h"

namespace stepcast::cli {
namespace {

std::string ValueText(double value, const std::string& unit) {
  return FormatNumber(value) + (unit.empty() ? "" : " " + unit);
}

bool IsHostLink(const ParameterEstimate& p) { return p.scope.rfind(kHostsScopePrefix, 0) == 0; }

std::string RunText(const Run& run) {
  return fmt::format("{}:{} {}, {}", run.place.file, run.place.line, run.workload,
                     DescribePlan(run.plan));
}

// Parts of a report beside the parameters.
struct Findings {
  std::vector<Suspect> suspects;
  std::vector<Ambiguity> ambiguities;
  std::vector<std::string> caveats;
};

// The plan that uses the whole cluster, with the smallest batch that was fitted.
Plan WholeCluster(const Cluster& cluster, int local_batch) {
  Plan plan;
  plan.placement.assign(static_cast<std::size_t>(cluster.nodes), cluster.devices_per_node);
  plan.local_batch = local_batch;
  if (plan.workers() == 1) plan.strategy = Strategy::kNone;
  NameAllHosts(cluster, &plan);
  return plan;
}

std::size_t StoppedRuns(const std::vector<Run>& runs) {
  return static_cast<std::size_t>(
      std::count_if(runs.begin(), runs.end(), [](const Run& run) { return run.stopped; }));
}

// One workload on a device, as the runs have it.
struct Measured {
  std::string workload;
  std::string device;
  CalibratedRange::BatchRange batches;
};

std::vector<Measured> MeasuredWorkloads(const CalibrationProblem& problem,
                                        const Calibration& calibration) {
  std::vector<Measured> measured;
  std::set<std::string> seen;
  for (const Run& run : problem.runs) {
    const std::string scope = WorkloadScope(run.workload, run.device);
    if (run.stopped || problem.workloads.at(run.workload).communication_only ||
        !seen.insert(scope).second) {
      continue;
    }
    measured.push_back({run.workload, run.device, calibration.range.local_batch.at(scope)});
  }
  return measured;
}

std::optional<Device> DeviceOf(const CalibrationProblem& problem, const std::string& name) {
  const auto it = problem.devices.find(name);
  return it == problem.devices.end() ? std::nullopt : std::optional(it->second);
}

Findings FindAll(const CalibrationProblem& problem, const CalibrationOutcome& outcome) {
  Findings findings;
  findings.suspects = FindSuspects(problem, outcome);
  findings.caveats = Caveats(problem, outcome);
  std::set<std::string> named;
  const Excerpts excerpts(outcome.cluster);
  const std::vector<ParameterEstimate>& parameters = outcome.cluster.calibration->parameters;
  std::vector<Measured> measured = MeasuredWorkloads(problem, *outcome.cluster.calibration);
  // A second at most: each workload takes the square of its values and those that it shares.
  constexpr double kBudget = 2e7;
  const auto values = static_cast<double>(
      kWorkloadParameterCount +
      std::count_if(parameters.begin(), parameters.end(), [](const ParameterEstimate& p) {
        return !p.scope.starts_with(kWorkloadScopePrefix) &&
               !p.scope.starts_with(kDeviceScopePrefix);
      }));
  const auto most = std::max<std::size_t>(1, static_cast<std::size_t>(kBudget / (values * values)));
  if (measured.size() > most) {
    findings.caveats.push_back(
        fmt::format("values that cannot be told apart were looked for with {} of the {} workloads "
                    "alone: there are too many hosts for more",
                    most, measured.size()));
    measured.resize(most);
  }
  for (const Measured& m : measured) {
    if (WholeCluster(outcome.cluster, 1).workers() > kMostCount) break;
    const BelievedModel model(excerpts.Of(m.workload, m.device), problem.workloads.at(m.workload),
                              DeviceOf(problem, m.device), m.device);
    const Plan whole = WholeCluster(outcome.cluster, m.batches.min);
    for (Ambiguity& a : FindAmbiguities(model, CandidatePlans(whole, m.batches))) {
      // Pairs of the cluster's parameters appear with each workload.
      if (named.insert(a.first + " " + a.second).second) findings.ambiguities.push_back(a);
    }
  }
  return findings;
}

std::string AmbiguityText(const Ambiguity& a) {
  const auto within = [](double log_sd) { return fmt::format("{:.2f}", std::exp(log_sd)); };
  std::string text = fmt::format(
      "{} and {} cannot be told apart: the runs show their {}. The worse is known within a factor "
      "of {}, and would be within {} if the other were known.",
      a.first, a.second, a.product ? "product" : "ratio", within(a.log_sd),
      within(a.conditional_log_sd));
  if (a.separating) {
    text += fmt::format(" A run of {} would leave {}.", DescribePlan(*a.separating),
                        within(a.separated_log_sd));
  }
  return text;
}

// The parts of an interval for the whole cluster, a row for each workload.
std::string ErrorBudget(const CalibrationProblem& problem, const CalibrationOutcome& outcome,
                        const Style& style) {
  Table table({{"whole cluster", "", Align::kLeft},
               {"local batch", "", Align::kRight},
               {"step", "", Align::kRight},
               {"parameters", "", Align::kRight},
               {"one step", "", Align::kRight},
               {"beyond the runs", "", Align::kRight},
               {"90 % interval", "", Align::kRight}});
  int rows = 0;
  const Excerpts excerpts(outcome.cluster);
  for (const Measured& m : MeasuredWorkloads(problem, *outcome.cluster.calibration)) {
    const Predictor predictor(excerpts.Of(m.workload, m.device), problem.workloads.at(m.workload),
                              DeviceOf(problem, m.device), m.device);
    const Plan plan = WholeCluster(outcome.cluster, m.batches.min);
    if (plan.workers() > kMostCount) continue;
    ++rows;
    const Prediction p = predictor.Predict(plan);
    table.AddRow({m.workload, FormatCount(plan.local_batch), FormatDuration(p.step_time),
                  FormatPercent(p.parameter_log_sd), FormatPercent(p.scatter_log_sd),
                  FormatPercent(p.discrepancy_log_sd),
                  fmt::format("{} - {}", FormatDuration(p.low), FormatDuration(p.high))});
  }
  return rows > 0 ? table.Render(style, 2) : "";
}

std::string SuspectText(const Suspect& suspect, const CalibrationProblem& problem,
                        const CalibrationOutcome& outcome) {
  const Run& run = problem.runs[suspect.run];
  return fmt::format("{}: {} {}, the model says {}: {}", RunText(run),
                     run.stopped ? "stopped after" : "measured", FormatDuration(run.step_time),
                     FormatDuration(outcome.residuals[suspect.run].predicted), suspect.cause);
}

void PrintReport(const CalibrationProblem& problem, const CalibrationOutcome& outcome,
                 const Findings& findings, const std::string& output, bool all) {
  constexpr std::size_t kMostLines = 5;
  const Style style = DetectStyle();
  const int width = TerminalWidth();
  const Calibration& calibration = *outcome.cluster.calibration;
  const std::size_t stopped = StoppedRuns(problem.runs);
  std::string out =
      Heading(fmt::format("{} from {} runs of {} workload{}", problem.cluster.name,
                          FormatCount(static_cast<double>(problem.runs.size() - stopped)),
                          problem.workloads.size(), problem.workloads.size() == 1 ? "" : "s"),
              style);
  const auto note = [&](const std::string& text) { out += NoteLine(text, style, width); };
  note(fmt::format(
      "{} Fitted runs are met within {} on average (MAPE); one more step would scatter "
      "by {}{}.",
      outcome.message, FormatPercent(outcome.mape), FormatPercent(calibration.residual_log_sd),
      calibration.repeat_log_sd ? fmt::format(", and repeats of a plan differ by {}",
                                              FormatPercent(*calibration.repeat_log_sd))
                                : ""));
  if (stopped > 0) {
    note(fmt::format("{} stopped before a step ended: {} a lower bound.",
                     stopped == 1 ? "One more run was" : fmt::format("{} more runs were", stopped),
                     stopped == 1 ? "its time counts as" : "their times count each as"));
  }
  if (calibration.sync_jitter) {
    note(
        fmt::format("The exposed synchronisation of single steps scatters by {} of itself "
                    "(standard deviation).",
                    FormatPercent(*calibration.sync_jitter)));
  }
  for (const std::string& finding : HostFindings(calibration, problem.cluster)) note(finding);
  if (problem.cluster.calibration) {
    note(
        "The cluster file was calibrated before; this fit starts anew from the priors and "
        "these runs alone.");
  }
  for (const std::string& caveat : findings.caveats) out += FlagLine(caveat, style, width);
  out += "\n";
  Table table({{"of", "", Align::kLeft},
               {"parameter", "", Align::kLeft},
               {"value", "", Align::kRight},
               {"95 % interval", "", Align::kRight},
               {"prior", "", Align::kRight},
               {"decided by", "", Align::kLeft}});
  std::string scope;
  int hidden = 0;
  for (const ParameterEstimate& p : calibration.parameters) {
    if (!all && p.decided_by == DecidedBy::kPrior && !IsHostLink(p) && p.prior_source.empty()) {
      ++hidden;
      continue;
    }
    const bool stated = p.decided_by == DecidedBy::kStated;
    table.AddRow({p.scope == scope ? "" : p.scope, p.name, ValueText(p.value, p.unit),
                  stated ? "" : fmt::format("{} - {}", FormatNumber(p.low), FormatNumber(p.high)),
                  stated ? ""
                         : fmt::format("{} x/ {}", ValueText(p.prior_value, p.unit),
                                       FormatNumber(std::exp(p.prior_log_sd))),
                  kDecidedByNames[static_cast<int>(p.decided_by)]});
    scope = p.scope;
  }
  out += table.Render(style, 2);
  if (hidden > 0) {
    note(
        fmt::format("{} parameters stayed on their priors: the runs say nothing of them "
                    "(--all shows them).",
                    hidden));
  }
  if (const std::string budget = ErrorBudget(problem, outcome, style); !budget.empty()) {
    out += "\n" + budget;
  }
  const std::size_t most = all ? problem.runs.size() + kClusterParameterCount : kMostLines;
  const auto rest = [&](std::size_t size, const char* what) {
    if (size > most) note(fmt::format("and {} more {} (--all shows them)", size - most, what));
  };
  for (std::size_t i = 0; i < std::min(most, findings.ambiguities.size()); ++i) {
    note(AmbiguityText(findings.ambiguities[i]));
  }
  rest(findings.ambiguities.size(), "pairs");
  for (std::size_t i = 0; i < std::min(most, findings.suspects.size()); ++i) {
    out += FlagLine(SuspectText(findings.suspects[i], problem, outcome), style, width);
  }
  rest(findings.suspects.size(), "suspect rows");
  if (!output.empty()) note("written to " + output);
  Print(out);
}

Json ReportJson(const CalibrationProblem& problem, const CalibrationOutcome& outcome,
                const Findings& findings) {
  Json json;
  json["usable"] = outcome.IsUsable();
  json["message"] = outcome.message;
  json["runs"] = problem.runs.size() - StoppedRuns(problem.runs);
  json["stopped_runs"] = StoppedRuns(problem.runs);
  json["iterations"] = outcome.iterations;
  json["mape"] = outcome.IsUsable() ? Json(outcome.mape) : Json(nullptr);
  json["residual_log_sd"] = nullptr;
  json["parameters"] = Json::array();
  json["findings"] = Json::array();
  json["flags"] = Json::array();
  json["suspects"] = Json::array();
  json["ambiguities"] = Json::array();
  if (!outcome.IsUsable()) return json;
  const Calibration& calibration = *outcome.cluster.calibration;
  json["residual_log_sd"] = calibration.residual_log_sd;
  json["repeat_log_sd"] =
      calibration.repeat_log_sd ? Json(*calibration.repeat_log_sd) : Json(nullptr);
  json["sync_jitter"] = calibration.sync_jitter ? Json(*calibration.sync_jitter) : Json(nullptr);
  for (const auto& [scope, scatter] : calibration.scatter) {
    json["scatter"][scope] = {{"compute", scatter.compute}, {"sync", scatter.sync}};
  }
  for (const ParameterEstimate& p : calibration.parameters) {
    json["parameters"].push_back({{"scope", p.scope},
                                  {"name", p.name},
                                  {"unit", p.unit},
                                  {"value", p.value},
                                  {"log_sd", p.log_sd},
                                  {"low", p.low},
                                  {"high", p.high},
                                  {"prior_value", p.prior_value},
                                  {"prior_log_sd", p.prior_log_sd},
                                  {"prior_source", p.prior_source},
                                  {"decided_by", kDecidedByNames[static_cast<int>(p.decided_by)]}});
  }
  json["findings"] = HostFindings(calibration, problem.cluster);
  json["flags"] = findings.caveats;
  for (const Suspect& suspect : findings.suspects) {
    const Run& run = problem.runs[suspect.run];
    json["suspects"].push_back(
        {{"file", run.place.file},
         {"line", run.place.line},
         {"workload", run.workload},
         {"measured_step_time_s", run.step_time.in(kSeconds)},
         {"stopped", run.stopped},
         {"predicted_step_time_s", outcome.residuals[suspect.run].predicted.in(kSeconds)},
         {"cause", suspect.cause}});
  }
  for (const Ambiguity& a : findings.ambiguities) {
    json["ambiguities"].push_back(
        {{"first", a.first},
         {"second", a.second},
         {"known", a.product ? "product" : "ratio"},
         {"log_sd", a.log_sd},
         {"conditional_log_sd", a.conditional_log_sd},
         {"separating_run", a.separating ? PlanJson(*a.separating) : Json(nullptr)},
         {"separated_log_sd", a.separating ? Json(a.separated_log_sd) : Json(nullptr)}});
  }
  return json;
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
    std::string out = Heading(
        fmt::format("{} against {} new runs", problem.cluster.name, FormatCount(report.runs)),
        style);
    const int width = TerminalWidth();
    out += report.stale ? FlagLine(report.verdict, style, width)
                        : NoteLine(report.verdict, style, width);
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

namespace {

// The profile's layers as beliefs about workloads that ran on the cluster's device and nowhere
// else, unless the user states his own.
void AddProfilePriors(const Arguments& args, CalibrationProblem* problem) {
  const std::optional<ComputeProfile> profile = ReadProfileOption(args);
  if (!profile) return;
  const Library library;
  const std::string device = library.CanonicalDevice(problem->cluster.device, problem->cluster);
  RequireProfileOf(library.CanonicalDevice(profile->device.name, problem->cluster), device,
                   library.LookUpDevice(device, problem->cluster), OptionPlace("profile"));
  std::set<std::string> elsewhere;
  for (const Run& run : problem->runs) {
    if (run.device != device) elsewhere.insert(run.workload);
  }
  const std::vector<ParameterStatement> stated = problem->statements;
  const auto leave_out = [](const std::string& workload, const std::string& why) {
    std::fputs(fmt::format("stepcast: the profile says nothing of {}: {}\n", workload, why).c_str(),
               stderr);
  };
  for (const auto& [name, workload] : problem->workloads) {
    if (workload.communication_only) continue;
    if (elsewhere.count(name) > 0) {
      leave_out(name, "some of its runs are not on " + device);
      continue;
    }
    const std::string source = args.Text("profile") + ", of " + profile->device.name;
    try {
      for (ParameterStatement& prior :
           StatePriors(BindProfile(args, *profile, workload), workload, source)) {
        const bool known = std::any_of(stated.begin(), stated.end(), [&](const auto& own) {
          return own.name == prior.name && (own.workload.empty() || own.workload == prior.workload);
        });
        if (!known) problem->statements.push_back(std::move(prior));
      }
    } catch (const InputError& e) {
      leave_out(name, e.value() + " " + e.problem());
    }
  }
}

}  // namespace

int RunCalibrate(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddRunsOptions(&options);
  options.add_options()("output", po::value<std::string>()->value_name("F"),
                        "cluster file to write, with the fitted parameters")(
      "fix", po::value<std::vector<std::string>>()->value_name("P")->composing(),
      "parameter that is known: \"flow_bandwidth=5 Gbit/s\"; may be repeated")(
      "prior", po::value<std::vector<std::string>>()->value_name("P")->composing(),
      "belief in place of the built-in one: \"resnet50/straggler_spread=0.02 x/ 1.5; SOURCE\"")(
      "check",
      po::value<std::vector<std::string>>()->value_name("R.csv")->multitoken()->composing(),
      "new runs: say whether the calibration of C still holds, and fit nothing")(
      "all", "show all: parameters that stayed on their priors, pairs, suspect rows")(
      "json", "print one JSON object")("help", "print this text");
  AddProfileOptions(&options);
  const Arguments args("calibrate", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp(
        "stepcast calibrate --cluster C --runs R.csv ... --output F\n"
        "       stepcast calibrate --cluster F --check NEW.csv ...",
        "Fits the cost model to measured runs. Network parameters are shared by all\n"
        "workloads, a device's speed by the workloads on it, compute by the runs of one\n"
        "workload; hosts named in the runs get links of their own. F is the cluster file with\n"
        "values, covariance and where they come from; give it to the other commands as\n"
        "--cluster. Rows that the model does not meet are named with what they behave like.\n"
        "--check fits nothing: exit code 1 if new runs say that a parameter has changed, or\n"
        "if they are too few to tell.",
        options,
        "  stepcast calibrate --cluster ufrgs-tupi --runs data/measurements/ufrgs-tupi-fit.csv "
        "--output fitted.yaml\n"
        "  stepcast calibrate --cluster fitted.yaml "
        "--check last-week.csv\n");
    return kDone;
  }
  if (args.Has("check")) {
    for (const char* other :
         {"runs", "output", "fix", "prior", "profile", "precision", "optimizer"}) {
      if (!args.Has(other)) continue;
      throw InputError(OptionPlace(other), "", "has no meaning beside --check",
                       "either a fit or a check");
    }
    return RunCheck(ReadRunsProblem(args, "check"), args.Has("json"));
  }
  CalibrationProblem problem = ReadRunsProblem(args);
  for (const char* option : {"fix", "prior"}) {
    for (const std::string& text : args.Texts(option)) {
      ParameterStatement statement =
          ParseStatement(text, option == std::string("prior"), OptionPlace(option));
      for (const ParameterStatement& other : problem.statements) {
        if (other.name != statement.name || other.workload != statement.workload) continue;
        throw InputError(OptionPlace(option), text, "is stated twice", "each parameter once");
      }
      problem.statements.push_back(std::move(statement));
    }
  }
  AddProfilePriors(args, &problem);
  // Some seconds at most: each interval takes fits whose cost grows with plans and parameters.
  constexpr double kProfileBudget = 4e6;
  const double parameters = ParameterLayout(problem.cluster, problem.runs, problem.workloads,
                                            problem.devices, problem.statements)
                                .size();
  CalibrationOptions how;
  how.profiled_plans = static_cast<std::size_t>(kProfileBudget / (parameters * parameters));
  const CalibrationOutcome outcome = Calibrate(problem, how);
  const Findings findings = outcome.IsUsable() ? FindAll(problem, outcome) : Findings();
  const std::string output = args.Has("output") ? args.Text("output") : "";
  if (outcome.IsUsable() && !output.empty()) {
    WriteTextFile(output, FormatCluster(outcome.cluster));
  }
  if (args.Has("json")) {
    PrintJson(ReportJson(problem, outcome, findings));
  } else if (outcome.IsUsable()) {
    PrintReport(problem, outcome, findings, output, args.Has("all"));
  } else {
    Print(outcome.message + "\n");
  }
  return outcome.IsUsable() ? kDone : kAnswerIsNo;
}

}  // namespace stepcast::cli
