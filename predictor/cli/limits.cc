// stepcast limits: where scaling ends, and why.
#include "data/plan/limits.h"

#include <fmt/format.h>

#include <cmath>

#include "data/plan/check.h"
#include "data/record/link_path.h"
#include "data/values/compression.h"
#include "data/values/numbers.h"
#include "data/values/training_facts.h"
#include "model/step/step_facts.h"
#include "predictor/cli/command.h"
#include "predictor/cli/measured_step.h"
#include "predictor/search/inverse.h"
#include "predictor/search/limits.h"

namespace stepcast::cli {
namespace {

double ReadEfficiency(const std::string& text) {
  const InputPlace place = OptionPlace("target-efficiency");
  const double efficiency = ParseNumber(text, place, 0, 1);
  if (efficiency == 0 || efficiency == 1) {
    throw InputError(place, text, "is out of range", "more than 0 and less than 1");
  }
  return efficiency;
}

std::string Workers(int count) {
  return fmt::format("{} worker{}", FormatCount(count), count == 1 ? "" : "s");
}

// What the machines that there are give, and what would make them worth it.
std::string GivenText(const GivenScaling& given, const Plan& plan) {
  const std::string text =
      fmt::format("{} give {} the throughput of one: {} at {} efficiency.",
                  Workers(given.point.workers), FormatFactor(given.speedup),
                  FormatThroughput(given.point.throughput), FormatPercent(given.point.efficiency));
  if (given.speedup >= 1) return text;
  const Plan scaled = WithPlacement(plan, {given.point.workers});
  const std::string payoff = PayoffText(given.payoff, scaled);
  return text + (payoff.empty() ? " Neither a faster network nor accumulation makes them worth it."
                                : fmt::format(" They are worth it with {}.", payoff));
}

// From how many workers on they are faster than one.
std::string WorthItText(const ScalingLimits& limits) {
  if (!limits.worth_it) {
    return fmt::format("No number of workers up to {} is faster than one.",
                       FormatCount(limits.most_workers));
  }
  if (limits.worth_it_from == limits.worth_it) {
    return fmt::format("More than one worker pays from {} on.", Workers(*limits.worth_it));
  }
  return fmt::format("The fewest that are faster than one are {}; ", Workers(*limits.worth_it)) +
         (limits.worth_it_from
              ? fmt::format("all are from {} on.", FormatCount(*limits.worth_it_from))
              : fmt::format("{} are not.", FormatCount(limits.most_workers)));
}

// From how many workers on less is used than wasted. Efficiency is another measure with servers.
std::string HalfUsedText(const ScalingLimits& limits) {
  if (!limits.half_utilisation) {
    return fmt::format("At {} the efficiency is still {}.", Workers(limits.most_workers),
                       FormatPercent(limits.efficiency_at_most));
  }
  const std::string text = fmt::format("From {} on less than half of the devices' work is used",
                                       Workers(*limits.half_utilisation));
  if (limits.half_efficiency == limits.half_utilisation) return text + ".";
  return text + "; efficiency, which is against one worker and its servers, is " +
         (limits.half_efficiency
              ? fmt::format("below one half from {} on.", FormatCount(*limits.half_efficiency))
              : fmt::format("still {} on {}.", FormatPercent(limits.efficiency_at_most),
                            FormatCount(limits.most_workers)));
}

// The findings, a sentence each.
std::vector<std::string> Findings(const ScalingLimits& limits, const Plan& plan) {
  std::vector<std::string> findings;
  if (limits.given) findings.push_back(GivenText(*limits.given, plan));
  findings.push_back(WorthItText(limits));
  findings.push_back(
      limits.crossing
          ? fmt::format("From {} on the exposed synchronisation takes longer than compute.",
                        Workers(*limits.crossing))
          : fmt::format("On {} compute takes longer than the exposed synchronisation.",
                        Workers(limits.most_workers)));
  findings.push_back(HalfUsedText(limits));
  findings.push_back(fmt::format("Highest throughput within the search: {}. On {} {}.",
                                 Workers(limits.best_workers), FormatCount(limits.most_workers),
                                 limits.weak_binding.Clause()));
  findings.push_back(
      fmt::format("A fixed step of {} sample{} is fastest on {}: {}. {}",
                  FormatCount(limits.strong_global_batch),
                  limits.strong_global_batch == 1 ? "" : "s", Workers(limits.strong_best_workers),
                  FormatDuration(limits.strong_best_step), limits.strong_binding.sentence));
  if (plan.compress.exists()) {
    const std::optional<DataRate<>>& below = limits.compression_pays_below;
    findings.push_back(fmt::format(
        "Compression to {} makes {} step of {} shorter{}.", FormatCompression(plan.compress),
        below ? "a" : "no", Workers(limits.reference_workers),
        below && *below < kFastestPayoff ? " on links of less than " + FormatRate(*below)
                                         : std::string(", whatever the links")));
  }
  if (limits.input_needed) {
    findings.push_back(InputText(*plan.input_rate, *limits.input_needed) +
                       fmt::format(" That is on {}.", Workers(limits.reference_workers)));
  }
  return findings;
}

// ---- Each limit in closed form and searched.

std::string Count(double value) {
  return value < 100 ? FormatNumber(value) : FormatCount(std::round(value));
}

template <class Q, class Text>
std::string ClosedText(const ClosedForm<Q>& closed, const Text& text) {
  if (!closed) return "-";
  return closed->exists() ? text(closed->value()) : "none";
}

struct LimitRow {
  std::string name;
  const char* key;
  ClosedForm<double> closed;
  std::optional<std::string> searched;
  const char* guide = "";  // what a closed form that is no more than a guide says of its number
};

// "3 or more (within 1 %)", "3 to 40 (within 1 %)".
std::string RangeText(const CountRange& range) {
  const std::string within = fmt::format(" (within {})", FormatPercent(kEnough));
  const std::string from = FormatCount(range.from);
  if (!range.to) return from + " or more" + within;
  return (*range.to == range.from ? from : from + " to " + FormatCount(*range.to)) + within;
}

// The limits that are counts.
std::vector<LimitRow> Counts(const ScalingLimits& limits) {
  const ClosedLimits& closed = limits.closed;
  const std::string there = fmt::format(" on {}", Workers(limits.reference_workers));
  const auto text = [](const std::optional<int>& count) {
    return count ? std::optional(FormatCount(*count)) : std::nullopt;
  };
  return {
      {"workers for half of the ceiling", "half_ceiling_workers", closed.half_ceiling,
       text(limits.half_ceiling)},
      {"workers for half efficiency", "half_efficiency_workers", closed.half_efficiency,
       text(limits.half_efficiency)},
      {"workers for transfer beyond compute", "crossing_workers", closed.crossing,
       text(limits.crossing)},
      {"best workers for the fixed step", "strong_best_workers", closed.strong_best_workers,
       text(limits.strong_best_workers)},
      {"workers at the knee of the queues", "knee_workers", closed.knee, std::nullopt},
      {fmt::format("accumulation for {} compute", FormatPercent(limits.target_efficiency)) + there,
       "accumulation", closed.accumulation, text(limits.accumulation)},
      {"buckets that suffice" + there, "buckets", closed.buckets,
       limits.buckets ? std::optional(RangeText(*limits.buckets)) : std::nullopt, "up to "},
      {"servers that suffice" + there, "servers", closed.servers, text(limits.servers)},
  };
}

std::string PaysBelowText(const std::optional<DataRate<>>& rate) {
  if (!rate) return "none";
  return *rate < kFastestPayoff ? FormatRate(*rate) : "any";
}

std::string LimitTable(const ScalingLimits& limits, const Plan& plan, const Style& style) {
  Table table({LeftColumn("limit"), "closed form", "searched"});
  if (limits.closed.ceiling) {
    table.AddRow({"throughput ceiling", ClosedText(limits.closed.ceiling, FormatThroughput),
                  fmt::format("{} on {}", FormatThroughput(limits.best_throughput),
                              Workers(limits.best_workers))});
  }
  if (plan.compress.exists()) {
    table.AddRow({"rate below which compression pays",
                  ClosedText(limits.closed.compression,
                             [](DataRate<> rate) { return FormatRate(rate) + " of a hop"; }),
                  PaysBelowText(limits.compression_pays_below)});
  }
  for (const LimitRow& row : Counts(limits)) {
    if (!row.closed && !row.searched) continue;
    table.AddRow({row.name,
                  ClosedText(row.closed, [&](double value) { return row.guide + Count(value); }),
                  row.searched.value_or("-")});
  }
  return table.Render(style, 2);
}

template <class Q, class Value>
Json ClosedJson(const ClosedForm<Q>& closed, const Value& value) {
  if (!closed) return nullptr;
  return closed->exists() ? Json(value(closed->value())) : Json("none");
}

Json ClosedLimitsJson(const ScalingLimits& limits) {
  Json json;
  json["ceiling_samples_per_s"] = ClosedJson(
      limits.closed.ceiling, [](SampleRate<> rate) { return rate.in(kSamplesPerSecond); });
  json["compression_hop_gbit_per_s"] = ClosedJson(
      limits.closed.compression, [](DataRate<> rate) { return rate.in(kGigabitsPerSecond); });
  for (const LimitRow& row : Counts(limits)) {
    json[row.key] = ClosedJson(row.closed, [](double value) { return value; });
  }
  return json;
}

// The value of a closed form that exists and does end, else null.
Json NumberJson(const ClosedForm<double>& closed, bool applies) {
  return applies && closed && closed->exists() ? Json(closed->value()) : Json(nullptr);
}

Json PointJson(const ScalingPoint& point) {
  return {{"workers", point.workers},
          {"step_time_s", point.step_time.in(kSeconds)},
          {"throughput_samples_per_s", point.throughput.in(kSamplesPerSecond)},
          {"efficiency", point.efficiency}};
}

Json GivenJson(const std::optional<GivenScaling>& given) {
  if (!given) return nullptr;
  Json json = PointJson(given->point);
  json["times_one_worker"] = given->speedup;
  json["pays_from"] = given->speedup < 1 ? PayoffJson(given->payoff) : Json(nullptr);
  return json;
}

// ---- What reaches a utilisation.

std::string InverseTable(const InverseAnswers& answers, int most_workers, const Style& style) {
  if (answers.reaches.empty()) return "";
  Table table({"utilisation", "links of", "or round trip", "or loss", "or accumulation",
               "or local batch", "or workers"});
  const auto cell = [](const auto& answer, const auto& text) {
    return answer ? std::string(text(*answer)) : std::string("-");
  };
  const auto count = [](int value) { return FormatCount(value); };
  for (const WhatReaches& reach : answers.reaches) {
    table.AddRow({FormatPercent(reach.utilisation), cell(reach.bandwidth, FormatRate),
                  cell(reach.rtt, FormatDuration), cell(reach.loss, FormatLoss),
                  cell(reach.accumulation_steps, count), cell(reach.local_batch, count),
                  cell(reach.workers, [&](int workers) {
                    return FormatCount(workers) + (workers == most_workers ? " or more" : "");
                  })});
  }
  return table.Render(style, 2) + "\n";
}

std::string InverseText(const InverseAnswers& answers, const Plan& plan, const LinkFacts& link) {
  std::string text = fmt::format(
      "{} do {} of the work of as many devices that exchange nothing. The last table says what "
      "would make it so much, each with all else as it is.",
      Workers(plan.workers()), FormatPercent(answers.utilisation));
  if (plan.slow_local_batch) {
    text +=
        fmt::format(" With another local batch slow nodes take theirs in proportion, {} for {}.",
                    FormatCount(*plan.slow_local_batch), FormatCount(plan.local_batch));
  }
  if (answers.twice_the_link) {
    text += fmt::format(" Links{} twice as fast bring {} more throughput.",
                        IsOversubscribed(link) ? " and uplinks" : "",
                        FormatPercent(*answers.twice_the_link - 1));
  }
  return text;
}

Json InverseJson(const InverseAnswers& answers) {
  if (answers.reaches.empty()) return nullptr;
  Json json = {{"utilisation", answers.utilisation},
               {"twice_the_link", OptionalJson(answers.twice_the_link)},
               {"reaches", Json::array()}};
  for (const WhatReaches& reach : answers.reaches) {
    json["reaches"].push_back(
        {{"utilisation", reach.utilisation},
         {"link_gbit_per_s", OptionalJson(reach.bandwidth, kGigabitsPerSecond)},
         {"rtt_ms", OptionalJson(reach.rtt, kMilliseconds)},
         {"loss_rate", OptionalJson(reach.loss)},
         {"accumulation_steps", OptionalJson(reach.accumulation_steps)},
         {"local_batch", OptionalJson(reach.local_batch)},
         {"workers", OptionalJson(reach.workers)}});
  }
  return json;
}

Json LimitsJson(const ScalingLimits& limits, const InverseAnswers& inverse, const Plan& plan) {
  Json json;
  json["plan"] = PlanJson(plan);
  json["given"] = GivenJson(limits.given);
  json["most_workers"] = limits.most_workers;
  json["worth_it_workers"] = OptionalJson(limits.worth_it);
  json["worth_it_from_workers"] = OptionalJson(limits.worth_it_from);
  json["crossing_workers"] = OptionalJson(limits.crossing);
  json["half_efficiency_workers"] = OptionalJson(limits.half_efficiency);
  json["half_utilisation_workers"] = OptionalJson(limits.half_utilisation);
  json["efficiency_at_most"] = limits.efficiency_at_most;
  json["best_workers"] = limits.best_workers;
  json["binding"] = limits.weak_binding.part;
  json["strong_scaling"] = {{"global_batch", limits.strong_global_batch},
                            {"best_workers", limits.strong_best_workers},
                            {"step_time_s", limits.strong_best_step.in(kSeconds)},
                            {"binding", limits.strong_binding.part}};
  json["reference_workers"] = limits.reference_workers;
  json["target_efficiency"] = limits.target_efficiency;
  json["half_ceiling_workers"] = OptionalJson(limits.half_ceiling);
  json["accumulation"] = OptionalJson(limits.accumulation);
  json["buckets"] = limits.buckets ? Json(limits.buckets->from) : Json(nullptr);
  json["most_buckets"] = limits.buckets ? OptionalJson(limits.buckets->to) : Json(nullptr);
  json["servers"] = OptionalJson(limits.servers);
  json["input_needed_samples_per_s"] = OptionalJson(limits.input_needed, kSamplesPerSecond);
  json["compression_pays_below_gbit_per_s"] =
      OptionalJson(limits.compression_pays_below, kGigabitsPerSecond);
  json["closed_form"] = ClosedLimitsJson(limits);
  json["inverse"] = InverseJson(inverse);
  // Older names of three of these.
  const bool servers = UsesServers(plan.strategy);
  const bool ring = TraitsOf(plan.strategy).ring;
  const ClosedForm<SampleRate<>>& ceiling = limits.closed.ceiling;
  json["server_ceiling_samples_per_s"] = servers && ceiling && ceiling->exists()
                                             ? Json(ceiling->value().in(kSamplesPerSecond))
                                             : Json(nullptr);
  json["server_half_ceiling_workers"] = NumberJson(limits.closed.half_ceiling, servers);
  json["ring_best_workers"] = NumberJson(limits.closed.strong_best_workers, ring);
  Json curve = Json::array();
  for (const ScalingPoint& point : limits.curve) {
    curve.push_back(PointJson(point));
  }
  json["curve"] = curve;
  json["findings"] = Findings(limits, plan);
  json["flags"] = limits.flags;
  return json;
}

}  // namespace

int RunLimits(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddTargetOptions(&options);
  AddKnownOptions(&options);
  AddPlanOptions(&options);
  options.add_options()("most-workers", OptionValue("N"), "how far to search (256)")(
      "global-batch", OptionValue("N"),
      "samples of the fixed step that strong scaling shares out (those of one full node)")(
      "target-efficiency", OptionValue("E"),
      "share of a step in micro-steps that accumulation is to reach (0.9)")(
      "json", "print one JSON object")("help", "print this text");
  const Arguments args("limits", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast limits --cluster C --workload W --local-batch N [--strategy S] ...",
              "Finds where scaling ends and why: from how many workers on it pays, where\n"
              "synchronisation overtakes compute, where half of the devices is wasted, what caps\n"
              "the throughput, how many workers finish a fixed step soonest, and how much\n"
              "accumulation, how many buckets and servers it takes: in closed form, and searched.",
              options,
              "  stepcast limits --cluster gce-t4 --workload resnet50 --local-batch 64\n"
              "  stepcast limits --cluster ec2-g3-ps --workload inception_v3 --local-batch 32 "
              "--strategy ps-sync --servers 1\n");
    return kDone;
  }
  const Target target = ReadKnownTarget(args);
  const Plan plan = ReadPlan(args, target);
  RequireBatch(plan);
  LimitsOptions limits_options;
  limits_options.most_workers =
      ReadInteger(args, "most-workers", 1, kMostCount, limits_options.most_workers);
  limits_options.strong_global_batch =
      ReadInteger(args, "global-batch", 1, kMostBatch, limits_options.strong_global_batch);
  if (args.Has("target-efficiency")) {
    limits_options.target_efficiency = ReadEfficiency(args.Text("target-efficiency"));
  }
  const int per_node = args.Has("placement") ? DevicesOnFullestNode(plan.placement)
                                             : target.cluster.devices_per_node;
  const Predictor predictor = target.MakePredictor();
  const ScalingLimits limits = FindScalingLimits(predictor, plan, per_node, limits_options);
  // The questions are about the machines that there are, as are accumulation and buckets.
  Plan asked = plan;
  if (plan.workers() != limits.reference_workers) {
    asked = OnFilledNodes(asked, limits.reference_workers, per_node);
    asked.hosts.clear();
  }
  const InverseAnswers inverse =
      AnswerInverseQuestions(predictor, asked, per_node, limits_options.most_workers);
  if (args.Has("json")) {
    PrintJson(LimitsJson(limits, inverse, plan));
    return kDone;
  }
  const Style style = DetectStyle();
  std::string out = Heading(fmt::format("Where scaling of {} on {} ends",
                                        DescribeWorkload(target.workload), target.cluster.name),
                            style);
  Table table({"workers", "step", "throughput", "efficiency"});
  const auto row = [&](const ScalingPoint& point) {
    table.AddRow({FormatCount(point.workers), FormatDuration(point.step_time),
                  FormatThroughput(point.throughput), FormatPercent(point.efficiency)});
  };
  if (limits.given) {
    row(limits.given->point);
    table.AddRule();
  }
  for (const ScalingPoint& point : limits.curve) row(point);
  out += table.Render(style, 2) + "\n" + LimitTable(limits, plan, style) + "\n";
  out += InverseTable(inverse, limits.most_workers, style);
  for (const std::string& finding : Findings(limits, plan)) {
    out += NoteLine(finding, style, TerminalWidth());
  }
  if (!inverse.reaches.empty()) {
    out +=
        NoteLine(InverseText(inverse, asked, predictor.Facts(asked).link), style, TerminalWidth());
  }
  for (const std::string& flag : limits.flags) out += FlagLine(flag, style, TerminalWidth());
  Print(out);
  return kDone;
}

}  // namespace stepcast::cli
