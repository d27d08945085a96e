// stepcast limits: where scaling ends, and why.
#include "predictor/search/limits.h"

#include <fmt/format.h>

#include <cmath>

#include "data/io/parse.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {
namespace {

constexpr int kDefaultMostWorkers = 256;
constexpr int kMostWorkersAllowed = 65536;

std::string Workers(int count) { return fmt::format("{} worker{}", count, count == 1 ? "" : "s"); }

// The findings, a sentence each.
std::vector<std::string> Findings(const ScalingLimits& limits, Strategy strategy) {
  std::vector<std::string> findings;
  if (limits.worth_it) {
    findings.push_back(
        fmt::format("More than one worker pays from {} on.", Workers(*limits.worth_it)));
  } else {
    findings.push_back(
        fmt::format("No number of workers up to {} is faster than one.", limits.most_workers));
  }
  findings.push_back(
      limits.crossing
          ? fmt::format("From {} on the exposed synchronisation takes longer than compute.",
                        Workers(*limits.crossing))
          : fmt::format("Up to {} compute takes longer than the exposed synchronisation.",
                        Workers(limits.most_workers)));
  findings.push_back(limits.half_efficiency
                         ? fmt::format("From {} on less than half of the devices' work is used.",
                                       Workers(*limits.half_efficiency))
                         : fmt::format("At {} the efficiency is still {}.",
                                       Workers(limits.most_workers),
                                       FormatPercent(limits.efficiency_at_most)));
  findings.push_back(fmt::format("Highest throughput within the search: {}. {}",
                                 Workers(limits.best_workers), limits.weak_binding.sentence));
  findings.push_back(
      fmt::format("A fixed step of {} samples is fastest on {}: {}. {}",
                  FormatCount(limits.strong_global_batch), Workers(limits.strong_best_workers),
                  FormatDuration(limits.strong_best_step), limits.strong_binding.sentence));
  if (limits.server_ceiling) {
    findings.push_back(fmt::format(
        "The servers' links cap the throughput at {} (a b n B_s / {}); half of it, where transfer "
        "equals compute, is reached with {:.1f} workers.",
        FormatThroughput(*limits.server_ceiling), strategy == Strategy::kPsAsync ? "m" : "2m",
        *limits.server_half_workers));
  }
  if (limits.ring_best_workers) {
    findings.push_back(
        fmt::format("Latency alone would end strong scaling at sqrt(C / 2 alpha) = {:.0f} workers.",
                    *limits.ring_best_workers));
  }
  return findings;
}

Json LimitsJson(const ScalingLimits& limits, const Plan& plan) {
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json json;
  json["plan"] = PlanJson(plan);
  json["most_workers"] = limits.most_workers;
  json["worth_it_workers"] = optional(limits.worth_it);
  json["crossing_workers"] = optional(limits.crossing);
  json["half_efficiency_workers"] = optional(limits.half_efficiency);
  json["efficiency_at_most"] = limits.efficiency_at_most;
  json["best_workers"] = limits.best_workers;
  json["binding"] = limits.weak_binding.part;
  json["strong_scaling"] = {{"global_batch", limits.strong_global_batch},
                            {"best_workers", limits.strong_best_workers},
                            {"step_time_s", limits.strong_best_step.in(kSeconds)},
                            {"binding", limits.strong_binding.part}};
  json["server_ceiling_samples_per_s"] =
      limits.server_ceiling ? Json(limits.server_ceiling->in(kSamplesPerSecond)) : Json(nullptr);
  json["server_half_ceiling_workers"] = optional(limits.server_half_workers);
  json["ring_best_workers"] = optional(limits.ring_best_workers);
  Json curve = Json::array();
  for (const ScalingPoint& point : limits.curve) {
    curve.push_back({{"workers", point.workers},
                     {"step_time_s", point.step_time.in(kSeconds)},
                     {"throughput_samples_per_s", point.throughput.in(kSamplesPerSecond)},
                     {"efficiency", point.efficiency}});
  }
  json["curve"] = curve;
  json["findings"] = Findings(limits, plan.strategy);
  json["flags"] = limits.flags;
  return json;
}

}  // namespace

int RunLimits(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddTargetOptions(&options);
  AddPlanOptions(&options);
  options.add_options()("most-workers", po::value<std::string>()->value_name("N"),
                        "how far to search (256)")(
      "global-batch", po::value<std::string>()->value_name("N"),
      "samples of the fixed step that strong scaling shares out (those of one full node)")(
      "json", "print one JSON object")("help", "print this text");
  const Arguments args("limits", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast limits --cluster C --workload W --local-batch N [--strategy S] ...",
              "Finds where scaling ends and why: from how many workers on it pays, where\n"
              "synchronisation overtakes compute, where half of the devices is wasted, what caps\n"
              "the throughput, and how many workers finish a fixed step soonest.",
              options,
              "  stepcast limits --cluster gce-t4 --workload resnet50 --local-batch 64\n"
              "  stepcast limits --cluster ec2-g3-ps --workload inception_v3 --local-batch 32 "
              "--strategy ps-sync --servers 1\n");
    return kDone;
  }
  const Target target = ReadTarget(args);
  const Plan plan = ReadPlan(args, target);
  RequireBatch(plan);
  const int most = args.Has("most-workers")
                       ? ParseInteger(args.Text("most-workers"), OptionPlace("most-workers"), 1,
                                      kMostWorkersAllowed)
                       : kDefaultMostWorkers;
  const int global =
      args.Has("global-batch")
          ? ParseInteger(args.Text("global-batch"), OptionPlace("global-batch"), 1, 100'000'000)
          : 0;
  const int per_node = args.Has("placement") ? DevicesOnFullestNode(plan.placement)
                                             : target.cluster.devices_per_node;
  const ScalingLimits limits =
      FindScalingLimits(target.MakePredictor(), plan, per_node, most, global);
  if (args.Has("json")) {
    PrintJson(LimitsJson(limits, plan));
    return kDone;
  }
  const Style style = DetectStyle();
  std::string out = Heading(
      fmt::format("Where scaling of {} on {} ends", target.workload.name, target.cluster.name),
      style);
  Table table({{"workers", "", Align::kRight},
               {"step", "", Align::kRight},
               {"throughput", "", Align::kRight},
               {"efficiency", "", Align::kRight}});
  for (const ScalingPoint& point : limits.curve) {
    table.AddRow({std::to_string(point.workers), FormatDuration(point.step_time),
                  FormatThroughput(point.throughput), FormatPercent(point.efficiency)});
  }
  out += table.Render(style, 2) + "\n";
  for (const std::string& finding : Findings(limits, plan.strategy)) {
    out += NoteLine(finding, style, TerminalWidth());
  }
  for (const std::string& flag : limits.flags) out += FlagLine(flag, style, TerminalWidth());
  Print(out);
  return kDone;
}

}  // namespace stepcast::cli
