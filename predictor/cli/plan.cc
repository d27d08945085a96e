// stepcast plan: which runs to measure next, and what each would tell.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "calibrate/next_runs.h"
#include "data/io/csv.h"
#include "data/io/runs.h"
#include "data/io/text_file.h"
#include "data/plan/check.h"
#include "data/plan/fields.h"
#include "data/values/numbers.h"
#include "data/values/placement.h"
#include "model/statistics/normal.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {
namespace {

constexpr int kDefaultCount = 5;
constexpr int kMostRuns = 100;

// Half the width of the 90 % interval of ln(step) with this standard deviation, as a share.
double HalfWidth(double log_sd) { return std::expm1(kNinetyPercent * log_sd); }

// The workload that was asked for, or the one that the cluster was calibrated with.
std::string WorkloadOf(const Arguments& args, const Cluster& cluster) {
  if (args.Has("workload")) return args.Text("workload");
  std::string only;
  if (cluster.calibration) {
    const std::string prefix = "workload ";
    for (const ParameterEstimate& p : cluster.calibration->parameters) {
      if (p.scope.rfind(prefix, 0) != 0) continue;
      const std::string name = p.scope.substr(prefix.size(), p.scope.find(" on ") - prefix.size());
      if (!only.empty() && only != name) return "";
      only = name;
    }
  }
  return only;
}

// The plan that `stepcast plan` narrows: by default the whole cluster, with the smallest of the
// batches that were fitted, which synchronises most often.
Plan ReadGoal(const Arguments& args, const Target& target,
              const std::optional<CalibratedRange::BatchRange>& batches) {
  Plan plan = ReadPlan(args, target);
  if (!args.Has("workers") && !args.Has("placement") && !args.Has("hosts")) {
    plan.placement.assign(static_cast<std::size_t>(target.cluster.nodes),
                          target.cluster.devices_per_node);
    NameAllHosts(target.cluster, &plan);
  }
  if (plan.local_batch == 0 && batches) plan.local_batch = batches->min;
  RequireBatch(plan);
  CheckPlan(plan);
  return plan;
}

std::vector<Plan> ReadCandidates(const Arguments& args, const Target& target, const Plan& goal,
                                 const CalibratedRange::BatchRange& batches) {
  std::vector<Plan> plans;
  if (!args.Has("among")) {
    for (const Plan& plan : CandidatePlans(goal, batches)) {
      // A bare message needs somebody to send it to.
      const bool alone = plan.workers() == 1 && plan.servers == 0;
      if (alone && target.workload.communication_only) continue;
      if (plan.nodes() <= target.cluster.nodes) plans.push_back(plan);
    }
    return plans;
  }
  for (const Run& run : ReadRuns(args.Text("among"))) {
    if (run.workload == target.workload.name) plans.push_back(run.plan);
  }
  if (plans.empty()) {
    throw InputError(OptionPlace("among"), args.Text("among"),
                     "holds no run of " + target.workload.name, "runs that could be measured");
  }
  return plans;
}

std::string LaunchCommand(const Plan& plan) {
  std::string options = fmt::format("--batch-size {}", plan.local_batch);
  if (plan.accumulation_steps > 1) {
    options += fmt::format(" --accumulation-steps {}", plan.accumulation_steps);
  }
  const std::string hosts =
      plan.hosts.empty() ? "" : fmt::format("on {}: ", fmt::join(plan.hosts, ", "));
  if (plan.servers > 0) {
    return fmt::format(
        "{}start {} servers, then the workers {} (devices of each node): "
        "python TRAIN.py {}",
        hosts, plan.servers, FormatPlacement(plan.placement), options);
  }
  const int fullest = DevicesOnFullestNode(plan.placement);
  const bool even = plan.workers() == fullest * plan.nodes();
  return fmt::format(
      "{}torchrun --nnodes={} --nproc-per-node={} TRAIN.py {}", hosts, plan.nodes(),
      even ? std::to_string(fullest) : "(of each node: " + FormatPlacement(plan.placement) + ")",
      options);
}

// The runs as they go into a runs file, but for their times; the header comes first. All columns
// that any of them needs.
std::vector<std::string> RunsRows(const std::vector<NextRun>& runs, const Target& target) {
  std::vector<std::string> rows = {"workload,device"};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    rows.push_back(CsvField(target.workload.name) + "," + CsvField(target.device));
  }
  for (const PlanField& field : PlanFields()) {
    std::vector<std::string> values;
    for (const NextRun& run : runs) values.push_back(field.write(run.plan));
    const bool used = std::any_of(values.begin(), values.end(),
                                  [](const std::string& value) { return !value.empty(); });
    if (field.told != Told::kAlways && !used) continue;
    rows[0] += "," + std::string(field.column);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      rows[i + 1] += "," + CsvField(values[i]);
    }
  }
  rows[0] += ",step_time_s";
  for (std::size_t i = 0; i < runs.size(); ++i) rows[i + 1] += ",STEP_TIME";
  return rows;
}

void PrintRuns(const NextRuns& next, const Plan& goal, const Target& target,
               const Prediction& now) {
  const Style style = DetectStyle();
  const int width = TerminalWidth();
  std::string out =
      Heading(fmt::format("{} on {} ({}): what to measure for {}", target.workload.name,
                          target.cluster.name, target.device, DescribePlan(goal)),
              style);
  out += NoteLine(fmt::format("Now: a step of {}, within a factor of {:.2f} (90 % interval {} to "
                              "{}).",
                              FormatDuration(now.step_time), 1 + HalfWidth(next.log_sd),
                              FormatDuration(now.low), FormatDuration(now.high)),
                  style, width);
  if (next.runs.empty()) {
    out += NoteLine("No run would tell more about it: what remains is how single steps scatter.",
                    style, width);
    Print(out);
    return;
  }
  out += "\n";
  Table table({{"", "", Align::kRight},
               {"run", "", Align::kLeft},
               {"expected step", "", Align::kRight},
               {"device time", "", Align::kRight},
               {"then within", "", Align::kRight},
               {"tells most of", "", Align::kLeft}});
  int number = 0;
  for (const NextRun& run : next.runs) {
    table.AddRow({std::to_string(++number), DescribePlan(run.plan), FormatDuration(run.step_time),
                  FormatDuration(Seconds(run.device_seconds)),
                  fmt::format("a factor of {:.2f}", 1 + HalfWidth(run.log_sd)),
                  run.tells.empty() ? "the formula, nearer to the target" : run.tells});
  }
  out += table.Render(style, 2);
  out += NoteLine(fmt::format("Measure the mean step over about {:.0f} steps behind a warm-up, and "
                              "add a row to your runs:",
                              kMeasuredSteps),
                  style, width);
  const std::vector<std::string> rows = RunsRows(next.runs, target);
  out += fmt::format("\n  {}\n", rows[0]);
  for (std::size_t i = 0; i < next.runs.size(); ++i) {
    out +=
        fmt::format("\n  # {}: {}\n  {}\n", i + 1, LaunchCommand(next.runs[i].plan), rows[i + 1]);
  }
  out += "\n" + NoteLine(
                    "Then fit all runs together (stepcast calibrate) and ask again: each "
                    "measured run changes what is worth measuring next.",
                    style, width);
  Print(out);
}

Json RunsJson(const NextRuns& next, const Plan& goal, const Target& target, const Prediction& now) {
  Json json;
  json["workload"] = target.workload.name;
  json["device"] = target.device;
  json["cluster"] = target.cluster.name;
  json["target"] = PlanJson(goal);
  json["step_time_s"] = now.step_time.in(kSeconds);
  json["log_sd"] = next.log_sd;
  json["half_width"] = HalfWidth(next.log_sd);
  const std::vector<std::string> rows = RunsRows(next.runs, target);
  json["runs_header"] = rows[0];
  json["flags"] = now.flags;
  json["runs"] = Json::array();
  for (std::size_t i = 0; i < next.runs.size(); ++i) {
    const NextRun& run = next.runs[i];
    json["runs"].push_back({{"plan", PlanJson(run.plan)},
                            {"step_time_s", run.step_time.in(kSeconds)},
                            {"device_s", run.device_seconds},
                            {"log_sd", run.log_sd},
                            {"half_width", HalfWidth(run.log_sd)},
                            {"tells", run.tells},
                            {"command", LaunchCommand(run.plan)},
                            {"runs_row", rows[i + 1]}});
  }
  return json;
}

}  // namespace

int RunPlan(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddTargetOptions(&options);
  AddPlanOptions(&options);
  options.add_options()("count", po::value<std::string>()->value_name("N"),
                        "runs to choose, 1 to 100; 5 by default")(
      "among", po::value<std::string>()->value_name("R.csv"),
      "choose among the plans of a runs file, whose times are not looked at")(
      "output", po::value<std::string>()->value_name("F"),
      "also write the runs to a CSV, for stepcast probe script")("json", "print one JSON object")(
      "help", "print this text");
  const Arguments args("plan", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp(
        "stepcast plan --cluster F [--workload W] [--local-batch N] [--workers N] ...",
        "Chooses the runs that would narrow the forecast of a plan the most: by default of\n"
        "the whole cluster. Each is chosen as if those before it had been measured, the\n"
        "cheapest of those that bring at least half of what the best would. Beside them\n"
        "come one run of each known host alone, where there was none: a host that computes\n"
        "slower does not show otherwise. F may be calibrated or not: without any measured\n"
        "run the choice rests on priors.",
        options,
        "  stepcast plan --cluster ufrgs-tupi --workload resnet50 --local-batch 128 --count 3\n");
    return kDone;
  }
  Library library;
  const Cluster cluster =
      args.Has("cluster") ? library.LoadCluster(args.Text("cluster")) : Cluster();
  const std::string workload = WorkloadOf(args, cluster);
  const Target target = ReadTarget(args, workload);
  const Predictor predictor = target.MakePredictor();
  const auto batches = predictor.calibrated_batches();
  Plan goal = ReadGoal(args, target, batches);
  const Prediction now = predictor.Predict(goal);
  if (TraitsOf(goal.strategy).to_be_chosen)
    goal.strategy = now.algorithm;  // what would be measured
  const int count = args.Has("count")
                        ? ParseInteger(args.Text("count"), OptionPlace("count"), 1, kMostRuns)
                        : kDefaultCount;
  const BelievedModel model(target.cluster, target.workload, target.facts, target.device);
  const std::vector<Plan> candidates =
      ReadCandidates(args, target, goal, batches.value_or(CalibratedRange::BatchRange{0, 0, 0}));
  const CalibratedRange range =
      target.cluster.calibration ? target.cluster.calibration->range : CalibratedRange();
  NextRuns next = ChooseNextRuns(model, goal, candidates, range, count);
  if (!args.Has("among")) {
    AddHostRuns(model, goal, range, KnownHosts(target.cluster), &next);
  }
  if (args.Has("output")) {
    WriteTextFile(args.Text("output"),
                  fmt::format("{}\n", fmt::join(RunsRows(next.runs, target), "\n")));
  }
  if (args.Has("json")) {
    PrintJson(RunsJson(next, goal, target, now));
  } else {
    PrintRuns(next, goal, target, now);
  }
  return kDone;
}

}  // namespace stepcast::cli
