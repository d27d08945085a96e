// stepcast recommend: which batch, accumulation, workers, servers, algorithm and bucket to use.
#include "predictor/search/recommend.h"

#include <fmt/format.h>

#include "data/values/names.h"
#include "data/values/numbers.h"
#include "predictor/cli/command.h"
#include "predictor/cli/outlook.h"

namespace stepcast::cli {
namespace {

// "1,2,4" with each item read by `parse`.
template <class Parse>
auto ParseList(const Arguments& args, const std::string& option, Parse parse) {
  std::vector<decltype(parse(std::string_view(), InputPlace()))> values;
  if (!args.Has(option)) return values;
  const std::string text = args.Text(option);
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t comma = text.find(',', at);
    if (comma == std::string::npos) comma = text.size();
    values.push_back(parse(text.substr(at, comma - at), OptionPlace(option)));
    at = comma + 1;
  }
  return values;
}

// Names of scores, by Objective: a column's header and a key of JSON, each with the unit.
constexpr const char* kScoreHeaders[kObjectiveCount] = {"throughput", "goodput", "samples per USD",
                                                        "samples per kJ"};
constexpr const char* kScoreKeys[kObjectiveCount] = {
    "throughput_samples_per_s", "goodput_samples_per_s", "samples_per_usd", "samples_per_j"};

Objective ParseObjective(const std::string& text) {
  if (const auto found = FindName(text, kObjectiveNames)) return static_cast<Objective>(*found);
  throw InputError(OptionPlace("objective"), text, "is not an objective",
                   JoinNames(kObjectiveNames));
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
    json["statistical_efficiency"] =
        *MakeOutlook(r.prediction, r.plan, target.cluster, target.facts, search.outlook).efficiency;
  }
  return json;
}

}  // namespace

int RunRecommend(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddTargetOptions(&options);
  AddPlanOptions(&options);
  const auto list = [] { return po::value<std::string>()->value_name("V,V,..."); };
  options.add_options()("try-workers", list(), "numbers of workers to choose from (the plan's)")(
      "try-local-batch", list(),
      "batches to choose from (the plan's, and powers of two: up to a factor of four beyond the "
      "calibrated ones, or all where none is)")(
      "try-accumulation", list(),
      "intervals to choose from (powers of two, the largest that --most-global-batch allows, at "
      "most 4096, and those with which computing takes 50, 75, 90 and 95 % of a step)")(
      "try-servers", list(), "numbers of servers to choose from (the plan's)")(
      "try-strategy", list(), "strategies to choose from (the plan's)")(
      "try-bucket", list(), "bucket caps to choose from (the plan's)")(
      "most-global-batch", po::value<std::string>()->value_name("N"),
      "samples of one optimizer step that training tolerates (8192)")(
      "objective", po::value<std::string>()->value_name("O"),
      "what is to be best: throughput (the default), goodput (needs --noise-scale and "
      "--known-batch), price (samples per USD), energy (samples per J)");
  AddNoiseOptions(&options);
  options.add_options()("json", "print one JSON object")("help", "print this text");
  const Arguments args("recommend", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast recommend --cluster C --workload W --local-batch N --workers N ...",
              "Recommends a plan: the smallest global batch within 5 % of the highest throughput\n"
              "that memory and --most-global-batch allow, compared with the plan as given. With\n"
              "another --objective that is what is highest; where --noise-scale tells what a\n"
              "sample is worth, useful samples count.",
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
  const Target target = ReadTarget(args);
  const Plan plan = ReadPlan(args, target);
  RequireBatch(plan);
  RecommendOptions search;
  const auto counts = [](std::string_view text, const InputPlace& place) {
    return ParseInteger(text, place, 1, 100'000'000);
  };
  search.workers = ParseList(args, "try-workers", counts);
  search.local_batches = ParseList(args, "try-local-batch", counts);
  search.accumulation_steps = ParseList(args, "try-accumulation", counts);
  search.servers = ParseList(args, "try-servers", counts);
  search.strategies = ParseList(args, "try-strategy", ParseEnum<Strategy>);
  search.buckets = ParseList(args, "try-bucket", ParseDataSize);
  if (args.Has("most-global-batch")) {
    search.most_global_batch = ParseInteger(args.Text("most-global-batch"),
                                            OptionPlace("most-global-batch"), 1, 1'000'000'000);
  }
  if (args.Has("objective")) search.objective = ParseObjective(args.Text("objective"));
  search.outlook = ReadOutlookOptions(args);
  search.device = target.facts;
  if (search.objective == Objective::kGoodput && !search.outlook.noise_scale) {
    throw InputError(OptionPlace("objective"), "goodput", "needs --noise-scale and --known-batch");
  }
  const RecommendOutcome outcome =
      Recommend(target.MakePredictor(), plan, target.cluster.devices_per_node, search);
  if (args.Has("json")) {
    Json json;
    json["feasible"] = outcome.best.has_value();
    json["considered"] = outcome.considered;
    json["out_of_memory"] = outcome.out_of_memory;
    json["over_global_batch"] = outcome.over_global_batch;
    const auto optional = [&](const std::optional<Recommendation>& r) {
      return r ? RecommendationJson(*r, target, search) : Json(nullptr);
    };
    json["best"] = optional(outcome.best);
    json["baseline"] = optional(outcome.baseline);
    json["objective"] = kObjectiveNames[static_cast<int>(search.objective)];
    json["objective_gain"] = outcome.best ? Json(outcome.score_gain) : Json(nullptr);
    json["gain"] = outcome.best ? Json(outcome.gain) : Json(nullptr);
    json["binding_constraint"] = outcome.best                ? outcome.binding
                                 : outcome.out_of_memory > 0 ? "the device's memory"
                                                             : "the global batch limit";
    json["pareto"] = Json::array();
    for (const Recommendation& r : outcome.pareto) {
      json["pareto"].push_back(RecommendationJson(r, target, search));
    }
    PrintJson(json);
    return outcome.best ? kDone : kAnswerIsNo;
  }
  const Style style = DetectStyle();
  if (!outcome.best) {
    Print(
        fmt::format("No plan fits: of {} considered, {} run out of memory and {} exceed the "
                    "global batch of {}.\n",
                    outcome.considered, outcome.out_of_memory, outcome.over_global_batch,
                    search.most_global_batch));
    return kAnswerIsNo;
  }
  const Recommendation& best = *outcome.best;
  std::string out = Heading(fmt::format("{} on {}: {}", target.workload.name, target.cluster.name,
                                        DescribePlan(best.plan)),
                            style);
  const bool own_score = search.objective != Objective::kThroughput;
  std::vector<TableColumn> columns = {{"", "", Align::kLeft}};
  // With a score of its own, batch x accumulation are one column, so that all fit a terminal.
  for (const char* header : own_score ? std::vector<const char*>{"workers", "batch"}
                                      : std::vector<const char*>{"local batch", "accumulate"}) {
    columns.push_back({header, "", Align::kRight});
  }
  for (const char* header : {"global batch", "step", "throughput", "efficiency"}) {
    columns.push_back({header, "", Align::kRight});
  }
  if (own_score) {
    columns.push_back({kScoreHeaders[static_cast<int>(search.objective)], "", Align::kRight});
  }
  Table table(columns);
  const auto row = [&](const char* name, const Recommendation& r) {
    const std::string batch = std::to_string(r.plan.local_batch);
    const std::string accumulation = std::to_string(r.plan.accumulation_steps);
    std::vector<std::string> cells = {name};
    if (own_score) {
      cells.insert(cells.end(), {FormatCount(r.plan.workers()), batch + " x " + accumulation});
    } else {
      cells.insert(cells.end(), {batch, accumulation});
    }
    for (const std::string& cell :
         {FormatCount(r.plan.global_batch()), FormatDuration(r.prediction.step_time),
          FormatThroughput(r.prediction.throughput), FormatPercent(r.efficiency)}) {
      cells.push_back(cell);
    }
    if (own_score) cells.push_back(ScoreText(search.objective, r.score));
    table.AddRow(cells);
  };
  row("as given", *outcome.baseline);
  row("recommended", best);
  table.AddRule();
  // A few of the choices in between.
  const std::size_t stride = outcome.pareto.size() / 8 + 1;
  for (std::size_t i = 0; i < outcome.pareto.size(); i += stride) row("or", outcome.pareto[i]);
  out += table.Render(style, 2) + "\n";
  out += NoteLine(fmt::format("Expected gain: {} the {} of the plan as given.",
                              FormatFactor(outcome.score_gain),
                              kScoreHeaders[static_cast<int>(search.objective)]),
                  style, TerminalWidth());
  out +=
      NoteLine("What keeps it from being better: " + outcome.binding + ".", style, TerminalWidth());
  if (best.efficiency * best.plan.workers() < 1) {
    out += FlagLine(fmt::format("one worker alone gives {}: more than this plan",
                                FormatThroughput(best.prediction.throughput /
                                                 (best.efficiency * best.plan.workers()))),
                    style, TerminalWidth());
  }
  for (const std::string& flag : best.prediction.flags) {
    out += FlagLine(flag, style, TerminalWidth());
  }
  Print(out);
  return kDone;
}

}  // namespace stepcast::cli
