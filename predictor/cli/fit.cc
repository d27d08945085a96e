#include "predictor/cli/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>
#include <utility>

#include "calibrate/caveats.h"
#include "calibrate/excerpt.h"
#include "calibrate/host_findings.h"
#include "calibrate/next_runs.h"
#include "calibrate/parameter_layout.h"
#include "data/plan/limits.h"
#include "data/record/host_texts.h"
#include "data/values/device_name.h"
#include "data/values/names.h"
#include "data/values/workload_scope.h"
#include "model/statistics/normal.h"
#include "model/step/believed_model.h"
#include "model/step/parameters.h"
#include "predictor/cli/profile_option.h"
#include "predictor/cli/runs_problem.h"
#include "predictor/cli/settings.h"

namespace stepcast::cli {
namespace {

bool IsHostLink(const ParameterEstimate& p) { return p.scope.rfind(kHostsScopePrefix, 0) == 0; }

std::string RunText(const Run& run) {
  return fmt::format("{}:{} {}, {}", run.place.file, run.place.line, run.workload,
                     DescribePlan(run.plan));
}

Plan WholeClusterPlan(const Cluster& cluster, int local_batch) {
  Plan plan;
  UseWholeCluster(cluster, &plan);
  plan.local_batch = local_batch;
  if (plan.workers() == 1) plan.strategy = Strategy::kNone;
  return plan;
}

std::size_t StoppedRuns(const std::vector<Run>& runs) {
  return static_cast<std::size_t>(
      std::count_if(runs.begin(), runs.end(), [](const Run& run) { return run.stopped; }));
}

std::vector<MeasuredWorkload> MeasuredWorkloads(const CalibrationProblem& problem,
                                                const Calibration& calibration) {
  std::vector<MeasuredWorkload> measured;
  std::set<std::string> seen;
  for (const Run& run : problem.runs) {
    const std::string scope = ScopeOf(run, problem.workloads);
    if (run.stopped || problem.workloads.at(run.workload).communication_only ||
        !seen.insert(scope).second) {
      continue;
    }
    measured.push_back({run.workload, run.device, calibration.range.local_batch.at(scope)});
  }
  return measured;
}

// What the fit leaves open, and what it lets expect.
void FindAll(Fit* fit) {
  const CalibrationProblem& problem = fit->problem;
  const CalibrationOutcome& outcome = fit->outcome;
  fit->suspects = FindSuspects(problem, outcome);
  fit->caveats = Caveats(problem, outcome);
  fit->workloads = MeasuredWorkloads(problem, fit->calibration());
  std::set<std::string> named;
  const Excerpts excerpts(outcome.cluster);
  const std::vector<ParameterEstimate>& parameters = fit->calibration().parameters;
  // A second at most: each workload takes the square of its values and those that it shares.
  constexpr double kBudget = 2e7;
  const auto values = static_cast<double>(
      kWorkloadParameterCount +
      std::count_if(parameters.begin(), parameters.end(), [](const ParameterEstimate& p) {
        return !p.scope.starts_with(kWorkloadScopePrefix) &&
               !p.scope.starts_with(kDeviceScopePrefix);
      }));
  const auto most = std::max<std::size_t>(1, static_cast<std::size_t>(kBudget / (values * values)));
  if (fit->workloads.size() > most) {
    fit->caveats.push_back(
        fmt::format("values that cannot be told apart were looked for with {} of the {} workloads "
                    "alone: there are too many hosts for more",
                    most, fit->workloads.size()));
  }
  for (std::size_t i = 0; i < fit->workloads.size(); ++i) {
    const MeasuredWorkload& m = fit->workloads[i];
    const Plan whole = WholeClusterPlan(outcome.cluster, m.batches.min);
    if (whole.workers() > kMostCount) break;
    const Cluster excerpt = excerpts.Of(problem.workloads.at(m.workload), m.device);
    const Workload& workload = problem.workloads.at(m.workload);
    const std::optional<Device> device = DataSheetOf(problem.devices, m.device);
    fit->whole_cluster.push_back(
        {m, whole, Predictor(excerpt, workload, device, m.device).Predict(whole)});
    if (i >= most) continue;
    const BelievedModel model(excerpt, workload, device, m.device);
    for (Ambiguity& a : FindAmbiguities(model, CandidatePlans(whole, m.batches))) {
      // Pairs of the cluster's parameters appear with each workload.
      if (named.insert(a.first + " " + a.second).second) fit->ambiguities.push_back(a);
    }
  }
}

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
    Tell(fmt::format("the profile says nothing of {}: {}", workload, why));
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
           StatePriors(ProfiledCompute(*profile, workload), workload, source)) {
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

void AddFitOptions(po::options_description* options) {
  AddRunsOptions(options);
  options->add_options()("fix", OptionValues("P"),
                         "parameter that is known: \"flow_bandwidth=5 Gbit/s\"; may be repeated")(
      "prior", OptionValues("P"),
      "belief in place of the built-in one: \"resnet50/straggler_spread=0.02 x/ 1.5; SOURCE\"");
  AddProfileOption(options);
}

std::vector<ParameterStatement> ReadStatements(const Arguments& arguments) {
  std::vector<ParameterStatement> statements;
  for (const char* option : {"fix", "prior"}) {
    for (const std::string& text : arguments.Texts(option)) {
      ParameterStatement statement =
          ParseStatement(text, option == std::string("prior"), OptionPlace(option));
      for (const ParameterStatement& other : statements) {
        if (other.name != statement.name || other.workload != statement.workload) continue;
        throw InputError(OptionPlace(option), text, "is stated twice", "each parameter once");
      }
      statements.push_back(std::move(statement));
    }
  }
  return statements;
}

Fit MakeFit(const Arguments& arguments) {
  Fit fit;
  CalibrationProblem& problem = fit.problem = ReadRunsProblem(arguments);
  problem.statements = ReadStatements(arguments);
  AddProfilePriors(arguments, &problem);
  // Some seconds at most: each interval takes fits whose cost grows with plans and parameters.
  constexpr double kProfileBudget = 4e6;
  const double parameters = ParameterLayout(problem.cluster, problem.runs, problem.workloads,
                                            problem.devices, problem.statements)
                                .size();
  CalibrationOptions how;
  how.profiled_plans = static_cast<std::size_t>(kProfileBudget / (parameters * parameters));
  how.threads = static_cast<int>(std::thread::hardware_concurrency());
  fit.outcome = Calibrate(problem, how);
  if (fit.outcome.IsUsable()) FindAll(&fit);
  return fit;
}

void UseWholeCluster(const Cluster& cluster, Plan* plan) {
  plan->placement.assign(static_cast<std::size_t>(cluster.nodes), cluster.devices_per_node);
  std::vector<std::string> hosts = HostsOfAllNodes(cluster, plan->nodes());
  // Their links differ, and no plan for all of them is without the slowest; but a plan is for hosts
  // that all have a name.
  if (hosts.empty() || hosts.back().empty()) return;
  plan->hosts = std::move(hosts);
}

std::string ValueText(double value, const std::string& unit) {
  return FormatNumber(value) + (unit.empty() ? "" : " " + unit);
}

std::string FitTitle(const Fit& fit) {
  const CalibrationProblem& problem = fit.problem;
  const std::size_t runs = problem.runs.size() - StoppedRuns(problem.runs);
  return fmt::format("{} from {} run{} of {} workload{}", problem.cluster.name, FormatCount(runs),
                     runs == 1 ? "" : "s", problem.workloads.size(),
                     problem.workloads.size() == 1 ? "" : "s");
}

std::vector<std::string> FitNotes(const Fit& fit) {
  const Calibration& calibration = fit.calibration();
  const std::size_t stopped = StoppedRuns(fit.problem.runs);
  std::vector<std::string> notes = {
      fmt::format("{} Fitted runs are met within {} on average (MAPE); one more step would scatter "
                  "by {}{}.",
                  fit.outcome.message, FormatPercent(fit.outcome.mape),
                  FormatPercent(calibration.residual_log_sd),
                  calibration.repeat_log_sd ? fmt::format(", and repeats of a plan differ by {}",
                                                          FormatPercent(*calibration.repeat_log_sd))
                                            : "")};
  if (stopped > 0) {
    notes.push_back(
        fmt::format("{} stopped before a step ended: {} a lower bound.",
                    stopped == 1 ? "One more run was" : fmt::format("{} more runs were", stopped),
                    stopped == 1 ? "its time counts as" : "their times count each as"));
  }
  if (calibration.sync_jitter) {
    notes.push_back(
        fmt::format("The exposed synchronisation of single steps scatters by {} of itself "
                    "(standard deviation).",
                    FormatPercent(*calibration.sync_jitter)));
  }
  if (const Eigen::Index alternatives = calibration.alternatives.rows(); alternatives > 0) {
    notes.push_back(fmt::format(
        "Other values of the parameters meet the runs about as well: {} far from these, which the "
        "intervals of forecasts hold.",
        alternatives == 1 ? "one set is"
                          : FormatCount(static_cast<std::size_t>(alternatives)) + " sets are"));
  }
  return notes;
}

std::vector<std::string> EarlierNotes(const Fit& fit) {
  if (!fit.problem.cluster.calibration) return {};
  return {
      "The cluster file was calibrated before; this fit starts anew from the priors and "
      "these runs alone."};
}

std::string AmbiguityText(const Ambiguity& a) {
  const auto within = [](double log_sd) {
    return fmt::format("{:.2f}", NinetyPercentFactor(log_sd));
  };
  std::string text = fmt::format(
      "{} and {} cannot be told apart: the runs show their {}. The worse is known within a factor "
      "of {} (90 %), and would be within {} if the other were known.",
      a.first, a.second, a.product ? "product" : "ratio", within(a.log_sd),
      within(a.conditional_log_sd));
  if (a.separating) {
    text += fmt::format(" A run of {} would leave {}.", DescribePlan(*a.separating),
                        within(a.separated_log_sd));
  }
  return text;
}

std::string SuspectText(const Fit& fit, const Suspect& suspect) {
  const Run& run = fit.problem.runs[suspect.run];
  return fmt::format("{}: {} {}, the model says {}: {}", RunText(run),
                     run.stopped ? "stopped after" : "measured", FormatDuration(run.step_time),
                     FormatDuration(fit.outcome.residuals[suspect.run].predicted), suspect.cause);
}

Table ParameterTable(const Fit& fit, bool all, int* hidden) {
  Table table({LeftColumn("of"), LeftColumn("parameter"), "value", "95 % interval", "prior",
               LeftColumn("decided by")});
  std::string scope;
  for (const ParameterEstimate& p : fit.calibration().parameters) {
    if (!all && p.decided_by == DecidedBy::kPrior && !IsHostLink(p) && p.prior_source.empty()) {
      ++*hidden;
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
  return table;
}

Table WholeTable(const Fit& fit) {
  Table table({LeftColumn("whole cluster"), "local batch", "step", "parameters", "one step",
               "beyond the runs", "90 % interval"});
  for (const WholeForecast& whole : fit.whole_cluster) {
    const Prediction& p = whole.prediction;
    table.AddRow({whole.of.workload, FormatCount(whole.plan.local_batch),
                  FormatDuration(p.step_time), FormatPercent(p.parameter_log_sd),
                  FormatPercent(p.scatter_log_sd), FormatPercent(p.discrepancy_log_sd),
                  fmt::format("{} - {}", FormatDuration(p.low), FormatDuration(p.high))});
  }
  return table;
}

Json FitJson(const Fit& fit) {
  const CalibrationProblem& problem = fit.problem;
  const CalibrationOutcome& outcome = fit.outcome;
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
  json["whole_cluster"] = Json::array();
  if (!outcome.IsUsable()) return json;
  const Calibration& calibration = *outcome.cluster.calibration;
  json["residual_log_sd"] = calibration.residual_log_sd;
  json["repeat_log_sd"] = OptionalJson(calibration.repeat_log_sd);
  json["sync_jitter"] = OptionalJson(calibration.sync_jitter);
  json["alternatives"] = calibration.alternatives.rows();
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
  json["findings"] = HostFindings(calibration, problem.cluster, problem.runs);
  json["flags"] = fit.caveats;
  for (const Suspect& suspect : fit.suspects) {
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
  for (const Ambiguity& a : fit.ambiguities) {
    json["ambiguities"].push_back(
        {{"first", a.first},
         {"second", a.second},
         {"known", a.product ? "product" : "ratio"},
         {"log_sd", a.log_sd},
         {"conditional_log_sd", a.conditional_log_sd},
         {"separating_run", a.separating ? PlanJson(*a.separating) : Json(nullptr)},
         {"separated_log_sd", a.separating ? Json(a.separated_log_sd) : Json(nullptr)}});
  }
  for (const WholeForecast& whole : fit.whole_cluster) {
    const std::optional<Device> facts = DataSheetOf(problem.devices, whole.of.device);
    const Subject subject{outcome.cluster, problem.workloads.at(whole.of.workload), whole.of.device,
                          facts};
    json["whole_cluster"].push_back(PredictionJson(whole.prediction, whole.plan, subject));
  }
  return json;
}

}  // namespace stepcast::cli
