// stepcast plan: which runs to measure next, and what each would tell.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <sstream>

#include "data/io/runs.h"
#include "data/io/text_file.h"
#include "data/plan/check.h"
#include "data/record/host_texts.h"
#include "data/values/workload_scope.h"
#include "microbench/script/wanted_runs.h"
#include "predictor/cli/command.h"
#include "predictor/cli/fit.h"
#include "predictor/cli/training_option.h"
#include "predictor/cli/wanted_runs.h"

namespace stepcast::cli {
namespace {

// The workload that was asked for, or the one that the cluster was calibrated with.
std::string WorkloadOf(const Arguments& args, const Cluster& cluster) {
  if (args.Has("workload")) return args.Text("workload");
  std::string only;
  if (cluster.calibration) {
    for (const ParameterEstimate& p : cluster.calibration->parameters) {
      const std::string name = WorkloadOfScope(p.scope);
      if (name.empty()) continue;
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
    UseWholeCluster(target.cluster, &plan);
    if (plan.workers() > kMostCount) {
      throw InputError(OptionPlace("workers"), "",
                       fmt::format("is required: {} has {} devices, more than a plan may have",
                                   target.cluster.name, plan.workers()),
                       fmt::format("at most {}", kMostCount));
    }
  }
  if (plan.local_batch == 0 && batches) plan.local_batch = batches->min;
  RequireBatch(plan);
  CheckPlan(plan);
  return plan;
}

// Whether a row is of the workload, by whatever name it goes there.
bool IsOf(const Run& run, const Target& target) {
  try {
    return target.library.CanonicalWorkload(run.workload) == target.workload.name;
  } catch (const InputError& e) {
    throw e.At({run.place.file, run.place.line, "workload"});
  }
}

// The plans that can be measured; empty where nobody says.
std::optional<std::vector<Plan>> ReadCandidates(const Arguments& args, const Target& target) {
  if (!args.Has("among")) return {};
  const std::set<std::string> hosts = KnownHosts(target.cluster);
  std::vector<Plan> plans;
  for (const Run& run : ReadRuns(args.Text("among"))) {
    if (!IsOf(run, target)) continue;
    RequireKnownHosts(target.cluster, hosts, run.plan.hosts,
                      {run.place.file, run.place.line, "hosts"});
    plans.push_back(run.plan);
  }
  if (plans.empty()) {
    throw InputError(OptionPlace("among"), args.Text("among"),
                     "holds no run of " + target.workload.name, "runs that could be measured");
  }
  return plans;
}

void PrintWanted(const ChosenRuns& wanted, const Arguments& args) {
  const Style style = DetectStyle();
  const int width = TerminalWidth();
  std::string out = Heading(
      fmt::format("{} on {} ({}): what to measure for {}", DescribeWorkload(wanted.workload),
                  wanted.cluster, wanted.device, DescribePlan(wanted.goal)),
      style);
  out += NoteLine(WantedNow(wanted), style, width);
  if (wanted.next.runs.empty()) {
    out += NoteLine(kNoneWanted, style, width);
    Print(out);
    return;
  }
  out += "\n" + WantedTable(wanted).Render(style, 2);
  out += NoteLine(HowToMeasure(wanted), style, width) + "\n";
  std::istringstream lines(WantedLines(wanted));
  for (std::string line; std::getline(lines, line);)
    out += line.empty() ? "\n" : "  " + line + "\n";
  std::string calibrate = "stepcast calibrate";
  for (const TrainingFact* fact : FactsToState(args, wanted.workload)) {
    calibrate += fmt::format(" --{} {}", fact->key, fact->WordOf(wanted.workload));
  }
  out += "\n" + NoteLine("Then fit all runs together (" + calibrate +
                             ") and ask again: each measured run changes what is worth measuring "
                             "next.",
                         style, width);
  Print(out);
}

}  // namespace

int RunPlan(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddTargetOptions(&options);
  AddPlanOptions(&options);
  options.add_options()("count", OptionValue("N"), "runs to choose, 1 to 100; 5 by default")(
      "among", OptionValue("R.csv"),
      "choose among the plans of a runs file, whose times are not looked at")(
      "without", OptionValue("R.csv"),
      "but for the plans of a runs file without times, which are kept to judge a fit by")(
      "output", OptionValue("F"), "also write the runs to a CSV, for stepcast probe script")(
      "json", "print one JSON object")("help", "print this text");
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
  args.RequireOtherFile("output", {"cluster", "among", "without", "workload-file", "profile"});
  Library library;
  const Cluster cluster =
      args.Has("cluster") ? library.LoadCluster(args.Text("cluster")) : Cluster();
  const std::string workload = WorkloadOf(args, cluster);
  const Target target = ReadTarget(args, workload);
  const auto batches = target.MakePredictor().calibrated_batches();
  const Plan goal = ReadGoal(args, target, batches);
  const int count = ReadInteger(args, "count", 1, kMostWanted, kDefaultWanted);
  std::vector<Plan> left_out;
  if (args.Has("without")) {
    for (const script::WantedRun& run : script::ReadWantedRuns(args.Text("without")).runs) {
      if (IsOf(run.run, target)) left_out.push_back(run.run.plan);
    }
  }
  const ChosenRuns wanted =
      ChooseWanted(target, goal, ReadCandidates(args, target), left_out, count);
  if (args.Has("output")) {
    WriteTextFile(args.Text("output"), fmt::format("{}\n", fmt::join(WantedRows(wanted), "\n")));
  }
  if (args.Has("json")) {
    PrintJson(WantedJson(wanted));
  } else {
    PrintWanted(wanted, args);
  }
  return kDone;
}

}  // namespace stepcast::cli
