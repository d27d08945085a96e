#include "predictor/cli/wanted_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "data/io/csv.h"
#include "data/plan/fields.h"
#include "data/plan/key.h"
#include "data/record/host_texts.h"
#include "data/values/placement.h"
#include "data/values/training_facts.h"
#include "model/statistics/normal.h"
#include "model/step/believed_model.h"

namespace stepcast::cli {
namespace {

// The upper end of the target's 90 % interval over its forecast: now, and expected after a run.
double WithinNow(const ChosenRuns& wanted) { return wanted.now.high / wanted.now.step_time; }
double WithinAfter(const NextRun& run) { return NinetyPercentFactor(run.log_sd_above); }

std::string LaunchCommand(const Plan& plan) {
  std::string options = fmt::format("--batch-size {}", plan.local_batch);
  if (plan.slow_local_batch) {
    options += fmt::format(" ({} on slow nodes)", *plan.slow_local_batch);
  }
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
  return fmt::format("{}torchrun --nnodes={} --nproc-per-node={} TRAIN.py {}", hosts, plan.nodes(),
                     AreNodesEqual(plan.placement)
                         ? std::to_string(plan.placement.front())
                         : "(of each node: " + FormatPlacement(plan.placement) + ")",
                     options);
}

std::vector<Plan> SmallerLayouts(const Target& target, const Plan& goal,
                                 const CalibratedRange::BatchRange& batches) {
  std::vector<Plan> plans;
  for (const Plan& plan : CandidatePlans(goal, batches)) {
    // A bare message needs somebody to send it to.
    const bool alone = plan.workers() == 1 && (plan.servers == 0 || plan.server.colocated);
    if (alone && target.workload.communication_only) continue;
    if (plan.nodes() <= target.cluster.nodes) plans.push_back(plan);
  }
  return plans;
}

Workload WithoutLayers(const Workload& workload) {
  Workload named;
  named.name = workload.name;
  for (const TrainingFact& fact : TrainingFacts()) fact.set(fact.get(workload), &named);
  return named;
}

}  // namespace

ChosenRuns ChooseWanted(const Target& target, Plan goal,
                        const std::optional<std::vector<Plan>>& among,
                        const std::vector<Plan>& left_out, int count) {
  const Predictor predictor = target.MakePredictor();
  const Prediction now = predictor.Predict(goal);
  if (TraitsOf(goal.strategy).to_be_chosen)
    goal.strategy = now.algorithm;  // what would be measured
  const BelievedModel model(target.cluster, target.workload, target.facts, target.device);
  const CalibratedRange range =
      target.cluster.calibration ? target.cluster.calibration->range : CalibratedRange();
  const auto batches =
      predictor.calibrated_batches().value_or(CalibratedRange::BatchRange{0, 0, 0});
  std::vector<Plan> candidates = among ? *among : SmallerLayouts(target, goal, batches);
  const auto is_left_out = [&](const Plan& plan, bool on_its_hosts) {
    return std::any_of(left_out.begin(), left_out.end(), [&](const Plan& other) {
      if (on_its_hosts && other.hosts != plan.hosts) return false;
      return other.placement == plan.placement && StatedKey(other) == StatedKey(plan);
    });
  };
  std::erase_if(candidates, [&](const Plan& plan) { return is_left_out(plan, false); });
  NextRuns next = ChooseNextRuns(model, goal, candidates, range, count);
  if (!among) {
    AddHostRuns(model, goal, range, KnownHosts(target.cluster), &next);
    std::erase_if(next.runs, [&](const NextRun& run) { return is_left_out(run.plan, true); });
  }
  return {WithoutLayers(target.workload), target.device, target.cluster.name, goal, now, next};
}

std::string WantedNow(const ChosenRuns& wanted) {
  return fmt::format("Now: a step of {}, within a factor of {:.2f} (90 % interval {} to {}).",
                     FormatDuration(wanted.now.step_time), WithinNow(wanted),
                     FormatDuration(wanted.now.low), FormatDuration(wanted.now.high));
}

std::string HowToMeasure(const ChosenRuns& wanted) {
  const std::string trained = DescribeWorkload(wanted.workload);
  return fmt::format(
      "Measure the mean step{} over about {:.0f} steps behind a warm-up, and "
      "add a row to your runs:",
      trained == wanted.workload.name ? "" : " of " + trained, kMeasuredSteps);
}

Table WantedTable(const ChosenRuns& wanted) {
  Table table({"", LeftColumn("run"), "expected step", "device time", "then within",
               LeftColumn("tells most of")});
  int number = 0;
  for (const NextRun& run : wanted.next.runs) {
    table.AddRow({std::to_string(++number), DescribePlan(run.plan), FormatDuration(run.step_time),
                  FormatDuration(Seconds(run.device_seconds)),
                  fmt::format("a factor of {:.2f}", WithinAfter(run)),
                  run.tells.empty() ? "the formula, nearer to the target" : run.tells});
  }
  return table;
}

std::vector<std::string> WantedRows(const ChosenRuns& wanted) {
  const std::vector<NextRun>& runs = wanted.next.runs;
  std::vector<std::string> rows = {"workload,device"};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    rows.push_back(CsvField(wanted.workload.name) + "," + CsvField(wanted.device));
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

std::string WantedLines(const ChosenRuns& wanted) {
  const std::vector<std::string> rows = WantedRows(wanted);
  std::string lines = rows[0] + "\n";
  for (std::size_t i = 0; i < wanted.next.runs.size(); ++i) {
    lines += fmt::format("\n# {}: {}\n{}\n", i + 1, LaunchCommand(wanted.next.runs[i].plan),
                         rows[i + 1]);
  }
  return lines;
}

Json WantedJson(const ChosenRuns& wanted) {
  const NextRuns& next = wanted.next;
  Json json;
  json["workload"] = wanted.workload.name;
  json["device"] = wanted.device;
  json["cluster"] = wanted.cluster;
  TellTraining(wanted.workload, &json);
  json["target"] = PlanJson(wanted.goal);
  json["step_time_s"] = wanted.now.step_time.in(kSeconds);
  json["log_sd"] = next.log_sd;
  json["half_width"] = WithinNow(wanted) - 1;
  const std::vector<std::string> rows = WantedRows(wanted);
  json["runs_header"] = rows[0];
  json["flags"] = wanted.now.flags;
  json["runs"] = Json::array();
  for (std::size_t i = 0; i < next.runs.size(); ++i) {
    const NextRun& run = next.runs[i];
    json["runs"].push_back({{"plan", PlanJson(run.plan)},
                            {"step_time_s", run.step_time.in(kSeconds)},
                            {"device_s", run.device_seconds},
                            {"log_sd", run.log_sd},
                            {"half_width", WithinAfter(run) - 1},
                            {"tells", run.tells},
                            {"command", LaunchCommand(run.plan)},
                            {"runs_row", rows[i + 1]}});
  }
  return json;
}

}  // namespace stepcast::cli
