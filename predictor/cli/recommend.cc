// stepcast recommend: which batch, accumulation, workers, servers, algorithm and bucket to use.
#include "predictor/search/recommend.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/plan/bucket_words.h"
#include "data/plan/limits.h"
#include "data/record/host_texts.h"
#include "data/values/compression.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/training_facts.h"
#include "predictor/cli/command.h"
#include "predictor/cli/measured_step.h"
#include "predictor/cli/outlook.h"
#include "predictor/cli/what_fits.h"
#include "predictor/search/unequal.h"

namespace stepcast::cli {
namespace {

// "1,2,4" with each item read by `parse`.
template <class Parse>
auto ParseList(const Arguments& args, const std::string& option, Parse parse) {
  std::vector<decltype(parse(std::string_view(), InputPlace()))> values;
  if (!args.Has(option)) return values;
  for (const std::string& part : SplitList(args.Text(option))) {
    values.push_back(parse(part, OptionPlace(option)));
  }
  return values;
}

// Names of scores, by Objective: a column's header and a key of JSON, each with the unit.
constexpr const char* kScoreHeaders[kObjectiveCount] = {"throughput", "goodput", "samples per USD",
                                                        "samples per kJ"};
constexpr const char* kScoreKeys[kObjectiveCount] = {
    "throughput_samples_per_s", "goodput_samples_per_s", "samples_per_usd", "samples_per_j"};

Objective ParseObjective(const std::string& text) {
  return ParseChoice<Objective>(text, "objective", kObjectiveNames);
}

std::string ScoreText(Objective objective, double score) {
  switch (objective) {
    case Objective::kThroughput:
    case Objective::kGoodput:
      return FormatThroughput(Samples(score) / Seconds(1.0));
    case Objective::kPrice:
      return FormatNumber(score);
    default:
      return FormatNumber(score * 1e3);
  }
}

Json RecommendationJson(const Recommendation& r, const Target& target,
                        const RecommendOptions& search) {
  Json json = PredictionJson(r.prediction, r.plan, target.subject());
  json["efficiency"] = r.efficiency;
  json[kScoreKeys[static_cast<int>(search.objective)]] = r.score;
  if (search.outlook.noise_scale) {
    const JobOutlook job =
        MakeOutlook(r.prediction, r.plan, target.cluster, target.facts, search.outlook);
    json["statistical_efficiency"] = *job.efficiency;
    json["not_counted"] = job.not_counted;
    json["goodput_low_samples_per_s"] = job.goodput_low->in(kSamplesPerSecond);
    json["goodput_high_samples_per_s"] = job.goodput_high->in(kSamplesPerSecond);
  }
  return json;
}

std::string BucketText(const Plan& plan) { return plan.bucket ? CapText(*plan.bucket) : "default"; }

// A column of the table that is shown where its rows differ.
struct RowFact {
  const char* header;
  std::string (*text)(const Plan&);
};
constexpr RowFact kRowFacts[] = {
    {"workers", [](const Plan& plan) { return FormatCount(plan.workers()); }},
    {"strategy", [](const Plan& plan) { return std::string(StrategyName(plan.strategy)); }},
    {"servers", [](const Plan& plan) { return FormatCount(plan.servers); }},
    {"backup", [](const Plan& plan) { return FormatCount(plan.backup_workers); }},
    {"bucket", BucketText},
    {"shared out", [](const Plan& plan) { return std::string(NameOf(plan.shard)); }},
    {"compressed", [](const Plan& plan) { return FormatCompression(plan.compress); }},
};

// Some of the choices between the plan as given and the best; how many there are besides goes into
// `more`.
std::vector<const Recommendation*> ChoicesBetween(const RecommendOutcome& outcome, int* more) {
  std::vector<const Recommendation*> choices;
  const std::size_t stride = outcome.pareto.size() / 8 + 1;
  for (std::size_t i = 0; i + 1 < outcome.pareto.size(); ++i) {
    if (outcome.pareto[i].score == outcome.baseline->score) continue;
    if (i % stride == 0) {
      choices.push_back(&outcome.pareto[i]);
    } else {
      ++*more;
    }
  }
  return choices;
}

// The rows: the plan as given, the recommended one, and some of the choices in between.
std::string OutcomeTable(const RecommendOutcome& outcome, const RecommendOptions& search,
                         const Style& style, int* more) {
  std::vector<std::pair<const char*, const Recommendation*>> rows = {
      {"as given", &*outcome.baseline},
      {outcome.is_advice ? "recommended" : "best of these", &*outcome.best}};
  for (const Recommendation* choice : ChoicesBetween(outcome, more)) {
    rows.emplace_back("or", choice);
  }
  const bool own_score = search.objective != Objective::kThroughput;
  std::vector<RowFact> facts;
  for (const RowFact& fact : kRowFacts) {
    const bool differs = std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
      return fact.text(row.second->plan) != fact.text(outcome.baseline->plan);
    });
    if (differs) facts.push_back(fact);
  }
  std::vector<TableColumn> columns = {LeftColumn("")};
  const auto add_column = [&](const char* header) { columns.emplace_back(header); };
  for (const RowFact& fact : facts) add_column(fact.header);
  for (const char* header : {"batch", "global batch", "step", "throughput", "efficiency"}) {
    add_column(header);
  }
  if (own_score) add_column(kScoreHeaders[static_cast<int>(search.objective)]);
  Table table(columns);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Recommendation& r = *rows[i].second;
    if (i == 2) table.AddRule();
    std::vector<std::string> cells = {rows[i].first};
    for (const RowFact& fact : facts) cells.push_back(fact.text(r.plan));
    cells.insert(cells.end(),
                 {fmt::format("{} x {}", r.plan.local_batch, r.plan.accumulation_steps),
                  FormatCount(r.plan.global_batch()), FormatDuration(r.prediction.step_time),
                  FormatThroughput(r.prediction.throughput), FormatPercent(r.efficiency)});
    if (own_score) cells.push_back(ScoreText(search.objective, r.score));
    table.AddRow(cells);
  }
  return table.Render(style, 2);
}

// What samples of the best plan and of the one as given cost beyond what their scores count, where
// those count what a sample is worth.
std::vector<std::string> CostsNotInScores(const RecommendOutcome& outcome,
                                          const RecommendOptions& search) {
  if (search.objective == Objective::kThroughput || !search.outlook.noise_scale) return {};
  std::vector<std::string> costs = CostsInSamples(outcome.best->plan);
  for (const std::string& cost : CostsInSamples(outcome.baseline->plan)) {
    if (std::find(costs.begin(), costs.end(), cost) == costs.end()) costs.push_back(cost);
  }
  return costs;
}

// The gain of the best plan as a bound, where one of the two alone has such costs.
std::string GainText(const RecommendOutcome& outcome, const RecommendOptions& search) {
  const char* bound = "";
  if (!CostsNotInScores(outcome, search).empty()) {
    if (CostsInSamples(outcome.baseline->plan).empty()) bound = "at most ";
    if (CostsInSamples(outcome.best->plan).empty()) bound = "at least ";
  }
  return bound + FormatFactor(outcome.score_gain);
}

// What the outcome says of the plan as given.
std::string Advice(const RecommendOutcome& outcome, const RecommendOptions& search) {
  const Recommendation& given = *outcome.baseline;
  const char* score = kScoreHeaders[static_cast<int>(search.objective)];
  if (!given.prediction.memory.may_fit()) {
    return "The plan as given runs out of memory.";
  }
  if (!IsUsable(given, search)) {
    return fmt::format("The plan as given exceeds the global batch of {}; this one has {} its {}.",
                       search.most_global_batch, GainText(outcome, search), score);
  }
  if (outcome.is_advice && outcome.score_gain > 1) {
    return fmt::format("Expected gain: {} the {} of the plan as given.", GainText(outcome, search),
                       score);
  }
  if (outcome.is_advice) {
    const Plan& best = outcome.best->plan;
    if (DescribePlan(best) == DescribePlan(given.plan)) {
      return "None of the plans tried is better: keep the plan as given.";
    }
    const std::string batch =
        best.global_batch() == given.plan.global_batch()
            ? ""
            : fmt::format(" with a global batch of {} instead of {}",
                          FormatCount(best.global_batch()), FormatCount(given.plan.global_batch()));
    return fmt::format("None of the plans tried brings more {}. This one brings the same{}.", score,
                       batch);
  }
  std::string text = fmt::format(
      "No: the best of the plans tried has {} the {} of the plan as given. Keep that one.",
      GainText(outcome, search), score);
  if (search.objective != Objective::kThroughput) return text;
  const std::string payoff = PayoffText(outcome.payoff, outcome.best->plan);
  return text + (payoff.empty()
                     ? fmt::format(" Neither a faster network nor accumulation within a global "
                                   "batch of {} would make it as good.",
                                   search.most_global_batch)
                     : fmt::format(" It would be as good with {}.", payoff));
}

// In the order of WhyEqual.
constexpr const char* kWhyEqualText[] = {
    "With one sample on each device there is nothing to share out by speed.",
    "Shares by speed do not fit the memory of the fast devices.",
    "No shares by speed are quicker than {} ones."};

// What equal shares lose where some nodes are slow, and whether those help.
std::string UnequalText(const UnequalWorkers& unequal) {
  const SharedOut& best = unequal.best();
  const bool is_equal = unequal.equal.fast_batch == unequal.equal.slow_batch;
  const char* const given = is_equal ? "equal" : "the given";
  std::string text =
      unequal.by_speed
          ? fmt::format(
                "Shares by speed (--local-batch {} --slow-local-batch {}) take {} a step ({}): {} "
                "the throughput of {} shares.",
                best.fast_batch, best.slow_batch, FormatDuration(best.step_time),
                FormatThroughput(best.throughput),
                FormatFactor(best.throughput / unequal.equal.throughput), given)
          : fmt::format(fmt::runtime(kWhyEqualText[static_cast<int>(*unequal.why_equal)]), given);
  const char* slow = unequal.slow_nodes == 1 ? "slow node" : "slow nodes";
  if (!unequal.fast_only) {
    return text +
           fmt::format(" Without the {} the samples do not fit the memory of the others.", slow);
  }
  const SharedOut& others = *unequal.fast_only;
  text += fmt::format(" Without the {}, {} samples on each of the others take {} ({}): with {} ",
                      slow, others.fast_batch, FormatDuration(others.step_time),
                      FormatThroughput(others.throughput), unequal.slow_nodes == 1 ? "it" : "them");
  text += fmt::format("throughput is {} that", FormatFactor(*unequal.worth()));
  return text + (*unequal.worth() <= 1 ? fmt::format("; leave the {} out.", slow) : ".");
}

std::string Plans(int count) {
  return fmt::format("{} {}", FormatCount(count), count == 1 ? "plan" : "plans");
}

std::string LeftOutText(const LeftOut& left_out) {
  return fmt::format("{} left out: {}.", Plans(left_out.plans), left_out.reason);
}

// Why no candidate is left, and what would leave one, a line each.
std::string NothingFitsText(const RecommendOutcome& outcome, const Plan& plan, const Target& target,
                            const RecommendOptions& search) {
  const auto some = [](int count, const char* one, const char* more) {
    return fmt::format("{} {}", FormatCount(count), count == 1 ? one : more);
  };
  if (outcome.considered == 0) return "No plan fits.\n";
  std::vector<std::string> reasons;
  if (outcome.out_of_memory > 0) {
    reasons.push_back(some(outcome.out_of_memory, "runs out of memory", "run out of memory"));
  }
  if (outcome.over_global_batch > 0) {
    reasons.push_back(fmt::format("{} the global batch of {}",
                                  some(outcome.over_global_batch, "exceeds", "exceed"),
                                  search.most_global_batch));
  }
  const Cluster& cluster = target.cluster;
  if (outcome.over_nodes > 0) {
    reasons.push_back(fmt::format("{} more nodes than {} has",
                                  some(outcome.over_nodes, "needs", "need"), cluster.name));
  }
  std::string text = fmt::format("No plan fits: of {} considered, {}.\n", outcome.considered,
                                 ListedNames(reasons));
  const int fewest = search.workers.empty()
                         ? plan.workers()
                         : *std::min_element(search.workers.begin(), search.workers.end());
  if (outcome.over_global_batch > 0) {
    text += fewest > search.most_global_batch
                ? fmt::format(
                      "{} workers have at least {} samples in a step, one each: try fewer, "
                      "or a larger --most-global-batch.\n",
                      FormatCount(fewest), FormatCount(fewest))
                : "Less is in a step with fewer workers, a smaller --try-local-batch or a smaller "
                  "--try-accumulation.\n";
  }
  if (outcome.over_nodes > 0) {
    text += fmt::format(
        "Keep --try-workers to {} at most, or state more nodes in the cluster "
        "file.\n",
        cluster.nodes * cluster.devices_per_node);
  }
  if (outcome.out_of_memory > 0) text += WhatFitsText(target, plan, search);
  return text;
}

// What keeps it from being known whether the recommended plan fits, which no running plan as given
// shows either; empty where that is known. Out of memory is no candidate; what nobody knows is one.
std::string UnknownMemoryText(const RecommendOutcome& outcome, const Workload& workload) {
  const Plan& best = outcome.best->plan;
  const MemoryNeed& memory = outcome.best->prediction.memory;
  const Recommendation& given = *outcome.baseline;
  const bool may_have_run = given.prediction.memory.may_fit();
  if (!outcome.is_advice || memory.verdict != MemoryVerdict::kUnknown) return "";
  if (may_have_run && best.local_batch <= given.plan.local_batch) return "";
  const std::string need = FormatSize(memory.total);
  const std::string batch = fmt::format("a local batch of {}", FormatCount(best.local_batch));
  if (!workload.layers.empty() || workload.communication_only) {
    if (memory.available) return "";
    return fmt::format(
        "nobody knows the device's memory: {} takes about {}; state memory in the "
        "cluster file",
        batch, need);
  }
  constexpr const char* kRemedy =
      "state layers in the workload file, or tell steps that did not fit (observe_out_of_memory)";
  return memory.available
             ? fmt::format(
                   "activations are unknown without layers and not counted: {} takes at "
                   "least {} of the device's {}; {}",
                   batch, need, FormatSize(*memory.available), kRemedy)
             : fmt::format(
                   "activations are unknown without layers and not counted, and nobody "
                   "knows the device's memory: {} takes at least {}; state memory in the "
                   "cluster file, and {}",
                   batch, need, kRemedy);
}

std::string OutcomeText(const RecommendOutcome& outcome, const Target& target,
                        const RecommendOptions& search,
                        const std::optional<UnequalWorkers>& unequal) {
  const Style style = DetectStyle();
  const Recommendation& answer = outcome.is_advice ? *outcome.best : *outcome.baseline;
  const std::string subject =
      fmt::format("{} on {}", DescribeWorkload(target.workload), target.cluster.name);
  std::string out = Heading(
      fmt::format("{}: {}{}", subject, outcome.is_advice ? "" : "keep ", DescribePlan(answer.plan)),
      style);
  const auto note = [&](const std::string& text) { out += NoteLine(text, style, TerminalWidth()); };
  int more = 0;
  out += OutcomeTable(outcome, search, style, &more) + "\n";
  note(Advice(outcome, search));
  if (outcome.is_advice) note("What keeps it from being better: " + outcome.binding + ".");
  if (search.objective == Objective::kGoodput) {
    const JobOutlook job =
        MakeOutlook(answer.prediction, answer.plan, target.cluster, target.facts, search.outlook);
    note(fmt::format("Its goodput is {}{} (90 % interval {} to {}).",
                     job.not_counted.empty() ? "" : "at most ", FormatThroughput(*job.goodput),
                     FormatThroughput(*job.goodput_low), FormatThroughput(*job.goodput_high)));
  }
  if (const auto costs = CostsNotInScores(outcome, search); !costs.empty()) {
    std::string text = NotCountedText(costs);
    text.front() = 'W';
    note(text + ".");
  }
  if (unequal) note(UnequalText(*unequal));
  for (const LeftOut& left_out : ReasonsLeftOut(outcome, search)) note(LeftOutText(left_out));
  if (more > 0) note(fmt::format("{} more between those shown: --json has them.", Plans(more)));
  if (outcome.one_worker && outcome.is_advice) {
    out += FlagLine(fmt::format("one worker alone gives {}: more than this plan",
                                FormatThroughput(*outcome.one_worker)),
                    style, TerminalWidth());
  }
  if (const std::string text = UnknownMemoryText(outcome, target.workload); !text.empty()) {
    out += FlagLine(text, style, TerminalWidth());
  }
  if (const MemoryNeed& memory = answer.prediction.memory;
      memory.verdict == MemoryVerdict::kTight && !memory.exceeds()) {
    out += FlagLine(fmt::format("memory of the {} is tight: about {:.1f} of {:.1f} GiB, known "
                                "within about a quarter",
                                outcome.is_advice ? "recommended plan" : "plan as given",
                                memory.total.in(kGibibytes), memory.available->in(kGibibytes)),
                    style, TerminalWidth());
  }
  for (const std::string& flag : answer.prediction.flags) {
    out += FlagLine(flag, style, TerminalWidth());
  }
  return out;
}

Json RecommendJson(const RecommendOutcome& outcome, const Target& target,
                   const RecommendOptions& search, const std::optional<UnequalWorkers>& unequal) {
  Json json;
  json["feasible"] = outcome.best.has_value();
  json["considered"] = outcome.considered;
  json["out_of_memory"] = outcome.out_of_memory;
  json["over_global_batch"] = outcome.over_global_batch;
  json["over_nodes"] = outcome.over_nodes;
  json["left_out"] = Json::array();
  for (const LeftOut& left_out : ReasonsLeftOut(outcome, search)) {
    json["left_out"].push_back({{"plans", left_out.plans}, {"reason", left_out.reason}});
  }
  const auto optional = [&](const std::optional<Recommendation>& r) {
    return r ? RecommendationJson(*r, target, search) : Json(nullptr);
  };
  json["best"] = optional(outcome.best);
  json["baseline"] = optional(outcome.baseline);
  json["objective"] = kObjectiveNames[static_cast<int>(search.objective)];
  json["objective_gain"] = outcome.best ? Json(outcome.score_gain) : Json(nullptr);
  json["gain"] = outcome.best ? Json(outcome.gain) : Json(nullptr);
  json["recommended"] = outcome.is_advice;
  json["baseline_usable"] =
      outcome.baseline ? Json(IsUsable(*outcome.baseline, search)) : Json(nullptr);
  json["pays_from"] = outcome.best && !outcome.is_advice ? PayoffJson(outcome.payoff) : nullptr;
  json["binding_constraint"] = outcome.best                    ? outcome.binding
                               : outcome.out_of_memory > 0     ? "the device's memory"
                               : outcome.over_global_batch > 0 ? "the global batch limit"
                               : outcome.over_nodes > 0        ? "the nodes of the cluster"
                                                               : "what does not go together";
  json["shares"] = unequal ? UnequalJson(*unequal) : Json(nullptr);
  json["pareto"] = Json::array();
  for (const Recommendation& r : outcome.pareto) {
    json["pareto"].push_back(RecommendationJson(r, target, search));
  }
  return json;
}

void AddSearchOptions(po::options_description* options) {
  const auto list = [] { return OptionValue("V,V,..."); };
  options->add_options()("try-workers", list(), "numbers of workers to choose from (the plan's)")(
      "try-local-batch", list(),
      "batches to choose from (the plan's, powers of two, and the largest that --most-global-batch "
      "allows: up to a factor of four beyond the calibrated ones, or all where none is)")(
      "try-accumulation", list(),
      "intervals to choose from (the plan's, powers of two and half as much again, and the largest "
      "that --most-global-batch allows, at most 4096)")(
      "try-servers", list(), "numbers of servers to choose from (the plan's)")(
      "try-strategy", list(), "strategies to choose from (the plan's)")(
      "try-bucket", list(), "bucket caps to choose from (the plan's)")(
      "try-shard", list(),
      "what to share out: none, optimizer, gradients, parameters, hybrid to choose from (the "
      "plan's)")(
      "try-compress", list(),
      "how to compress gradients: none, fp16, bf16, int8, topk=SHARE, powersgd=RANK to choose from "
      "(the plan's)")("most-global-batch", OptionValue("N"),
                      "samples of one optimizer step that training tolerates (8192)")(
      "objective", OptionValue("O"),
      "what is to be best: throughput (the default), goodput (the default with --noise-scale and "
      "--known-batch, which it needs), price (samples per USD), energy (samples per J)");
  AddNoiseOptions(options);
}

// What is tried, and what is to be best. Throws InputError.
RecommendOptions ReadSearch(const Arguments& args, const Target& target, const Plan& plan) {
  RecommendOptions search;
  const auto counts = [&](const char* option, int most) {
    return ParseList(args, option, [&](std::string_view text, const InputPlace& place) {
      return ParseInteger(text, place, 1, most);
    });
  };
  search.workers = counts("try-workers", kMostCount);
  search.local_batches = counts("try-local-batch", kMostBatch);
  search.accumulation_steps = counts("try-accumulation", kMostCount);
  search.servers = counts("try-servers", kMostCount);
  search.strategies = ParseList(args, "try-strategy", ParseEnum<Strategy>);
  const auto has_servers = [](Strategy tried) { return TraitsOf(tried).may_have_servers(); };
  const bool any_servers =
      search.strategies.empty()
          ? has_servers(plan.strategy)
          : std::any_of(search.strategies.begin(), search.strategies.end(), has_servers);
  if (!search.servers.empty() && !any_servers) {
    throw InputError(OptionPlace("try-servers"), args.Text("try-servers"),
                     "are servers of no strategy that is tried",
                     "with --strategy or --try-strategy ps-sync, ps-async or byteps");
  }
  search.buckets = ParseList(args, "try-bucket", ParseBucketCap);
  search.shards = ParseList(args, "try-shard", ParseEnum<Shard>);
  search.compressions = ParseList(args, "try-compress", ParseCompression);
  search.most_global_batch =
      ReadInteger(args, "most-global-batch", 1, 1'000'000'000, search.most_global_batch);
  search.outlook = ReadOutlookOptions(args);
  search.objective = args.Has("objective") ? ParseObjective(args.Text("objective"))
                                           : DefaultObjective(search.outlook);
  search.device = target.facts;
  if (search.objective == Objective::kGoodput && !search.outlook.noise_scale) {
    throw InputError(OptionPlace("objective"), "goodput", "needs the noise scale",
                     "with --noise-scale and --known-batch");
  }
  return search;
}

}  // namespace

int RunRecommend(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddTargetOptions(&options);
  AddKnownOptions(&options);
  AddPlanOptions(&options);
  AddSearchOptions(&options);
  options.add_options()("json", "print one JSON object")("help", "print this text");
  const Arguments args("recommend", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast recommend --cluster C --workload W --local-batch N --workers N ...",
              "Recommends a plan: the smallest global batch within 5 % of the highest throughput\n"
              "that memory and --most-global-batch allow, compared with the plan as given. With\n"
              "another --objective that is what is highest; where --noise-scale tells what a\n"
              "sample is worth, useful samples count. Where all that is tried is worse than the\n"
              "plan as given the answer is no (exit code 1), with what would make it pay.",
              options,
              "  stepcast recommend --cluster ufrgs-tupi --workload resnet50 --local-batch 128 "
              "--workers 2\n"
              "  stepcast recommend --cluster gce-t4 --workload vgg19 --local-batch 32 "
              "--try-workers 4,8,16 --try-strategy ring,hierarchical,tree\n"
              "  stepcast recommend --cluster aws-g4dn-12xlarge --workload resnet50 "
              "--local-batch 64 --try-workers 4,8,16,32 --objective price "
              "--noise-scale 4000 --known-batch 256\n");
    return kDone;
  }
  const Target target = ReadKnownTarget(args);
  const Plan plan = ReadPlan(args, target);
  RequireBatch(plan);
  const RecommendOptions search = ReadSearch(args, target, plan);
  const Predictor predictor = target.MakePredictor();
  const RecommendOutcome outcome =
      Recommend(predictor, plan, target.cluster.devices_per_node, search);
  std::optional<UnequalWorkers> unequal;  // in the plan that the answer is
  if (outcome.best) {
    unequal =
        WeighSlowNodes(predictor, (outcome.is_advice ? outcome.best : outcome.baseline)->plan);
  }
  const int code = outcome.is_advice ? kDone : kAnswerIsNo;
  if (args.Has("json")) {
    PrintJson(RecommendJson(outcome, target, search, unequal));
    return code;
  }
  if (!outcome.best) {
    Print(NothingFitsText(outcome, plan, target, search));
    if (outcome.not_together > 0) Print(LeftOutText(ReasonsLeftOut(outcome, search).back()) + "\n");
    return kAnswerIsNo;
  }
  Print(OutcomeText(outcome, target, search, unequal));
  return code;
}

}  // namespace stepcast::cli
