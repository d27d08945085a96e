#include "predictor/cli/import_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "data/io/runs.h"
#include "data/io/text_file.h"
#include "data/kineto/import_ranks.h"
#include "data/plan/check.h"
#include "data/record/host_texts.h"
#include "data/values/placement.h"
#include "predictor/cli/import.h"
#include "predictor/cli/import_logs.h"

namespace stepcast::cli {
namespace {

constexpr std::size_t kShownRanks = 32;
constexpr std::size_t kShownClasses = 16;
constexpr std::size_t kShownRemarks = 5;

std::string Lasting(double seconds) { return FormatDuration(Seconds(seconds)); }

// "0 to 2", "0, 2 and 3": at most ten ranges.
std::string RangesText(const std::vector<std::int64_t>& sorted) {
  constexpr std::size_t kMostRanges = 10;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    if (parts.size() == kMostRanges) {
      parts.emplace_back("more");
      break;
    }
    parts.push_back(end - i > 1 ? fmt::format("{} to {}", sorted[i], sorted[end - 1])
                                : std::to_string(sorted[i]));
    i = end;
  }
  return ListedNames(parts);
}

// ---- As text.

std::string PartsText(const TrainingRanks& training, const Style& style) {
  const RankTimes& mean = training.mean;
  if (mean.step <= 0) return "";
  std::vector<BarPart> parts;
  const std::pair<const char*, double> named[] = {{"computing", mean.computing},
                                                  {"exposed communication", mean.exposed},
                                                  {"copying alone", mean.copying},
                                                  {"idle", mean.idle}};
  for (const auto& [name, seconds] : named) {
    // A difference of sums may round below 0.
    if (seconds > 0) parts.push_back({name, seconds, Lasting(seconds)});
  }
  return parts.empty() ? "" : StackedBar(parts, TerminalWidth() - 4, style);
}

std::string RanksTable(const TrainingRanks& training, const Style& style) {
  Table table({"rank", LeftColumn("trace"), "step", "computing", "communication", "exposed",
               "hidden", "idle", "waits", "waited for", "came last"});
  for (std::size_t i = 0; i < std::min(kShownRanks, training.ranks.size()); ++i) {
    const RankOfTraining& r = training.ranks[i];
    const bool compared = r.compared > 0;
    table.AddRow(
        {std::to_string(r.rank), FileName(r.path), Lasting(r.mean.step), Lasting(r.mean.computing),
         Lasting(r.mean.communication), Lasting(r.mean.exposed), Lasting(r.mean.hidden),
         Lasting(r.mean.idle), compared ? Lasting(r.mean.waits) : "-",
         compared ? Lasting(r.mean.waited_for) : "-",
         compared ? fmt::format("{} of {}", FormatCount(r.came_last), FormatCount(r.compared))
                  : "-"});
  }
  std::string out = table.Render(style, 2);
  if (training.ranks.size() > kShownRanks) {
    out += fmt::format("  and {} ranks more: --json lists them\n",
                       training.ranks.size() - kShownRanks);
  }
  return out;
}

std::string ClassesText(const TrainingRanks& training, const Style& style) {
  Table table({LeftColumn("collective"), LeftColumn("type"), "message", "ranks", "a step", "takes",
               "exposed", "without waiting", "bus bandwidth"});
  for (std::size_t i = 0; i < std::min(kShownClasses, training.classes.size()); ++i) {
    const CollectiveClass& c = training.classes[i];
    table.AddRow(
        {kCollectiveCallNames[static_cast<int>(c.call)], c.type.empty() ? "-" : c.type,
         c.bytes ? FormatSize(Bytes(*c.bytes)) : "-", std::to_string(c.ranks),
         FormatNumber(c.calls_per_step), Lasting(c.time_s), Lasting(c.exposed_s),
         c.transfer_s ? Lasting(*c.transfer_s) : "-",
         c.bus_bytes_per_s ? FormatRate(MegabitsPerSecond(*c.bus_bytes_per_s * 8e-6)) : "-"});
  }
  std::string out = table.Render(style, 2);
  if (training.classes.size() > kShownClasses) {
    out +=
        fmt::format("  and {} more: --json lists them\n", training.classes.size() - kShownClasses);
  }
  return out;
}

// Who is waited for, in a sentence; empty where nobody waits or nothing tells.
std::string WaitingText(const TrainingRanks& training) {
  const auto last = std::max_element(training.ranks.begin(), training.ranks.end(),
                                     [](const RankOfTraining& a, const RankOfTraining& b) {
                                       return a.mean.waited_for < b.mean.waited_for;
                                     });
  if (last->mean.waited_for <= 0) return "";
  const auto steps = std::count_if(training.steps.begin(), training.steps.end(),
                                   [&](const StepOfTraining& s) { return s.last == last->rank; });
  return fmt::format(
      "rank {} is waited for the longest: {} a step by each of the others on average, {} of the "
      "step; it is the one in {} of {}",
      last->rank, Lasting(last->mean.waited_for),
      FormatPercent(last->mean.waited_for / training.mean.step), FormatCount(steps),
      Several(static_cast<std::int64_t>(training.steps.size()), "step"));
}

// What is not known, or was taken for granted.
std::vector<std::string> FlagsOf(const TrainingRanks& training) {
  std::vector<std::string> flags;
  if (!training.marked) {
    flags.emplace_back(
        "no steps are marked (ProfilerStep#N): the times are those of the whole trace. A schedule "
        "and profiler.step() mark them");
  }
  if (!training.ranks_are_told) {
    flags.emplace_back(
        "no trace tells its rank (distributedInfo): the order of the files is taken for theirs");
  }
  if (!training.world_is_told) {
    flags.push_back(fmt::format("no trace tells the size of the world: {} taken for all",
                                Several(training.world_size, "rank")));
  }
  if (!training.missing.empty()) {
    const std::vector<std::int64_t> missing(training.missing.begin(), training.missing.end());
    flags.push_back(
        fmt::format("there is no trace of rank{} {}: whether it is waited for, "
                    "cannot be told",
                    missing.size() == 1 ? "" : "s", RangesText(missing)));
  }
  if (!training.others.empty()) {
    flags.push_back(fmt::format("not all ranks have step{} {}: left out",
                                training.others.size() == 1 ? "" : "s",
                                RangesText(training.others)));
  }
  if (training.classes.empty()) flags.emplace_back("there is no collective in these steps");
  if (training.groups_are_taken && !training.classes.empty()) {
    flags.emplace_back(
        "some collectives do not tell their group: they are taken for those of all ranks");
  }
  if (training.queued) {
    flags.emplace_back(
        "collectives on the host are timed from where they are queued: behind others they take "
        "longer than their transfer");
  }
  if (training.compared_in_part > 0) {
    flags.push_back(
        fmt::format("{} compared without all ranks of the group: the shortest time "
                    "may be one of waiting too",
                    Several(training.compared_in_part, "collective")));
  }
  for (const auto& [why, calls] : training.not_compared) {
    flags.push_back(
        fmt::format("{} not compared between ranks: those {}", Several(calls, "collective"), why));
  }
  return flags;
}

std::vector<std::string> RemarksOf(const TrainingRanks& training) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> all;  // how often, by how many ranks
  std::int64_t idle = 0;
  for (const RankOfTraining& rank : training.ranks) {
    idle += rank.idle_marks;
    for (const auto& [text, count] : rank.remarks) {
      all[text].first += count;
      ++all[text].second;
    }
  }
  std::vector<std::string> remarks;
  if (idle > 0) {
    remarks.push_back(
        fmt::format("{} in which nothing is done: no steps", Several(idle, "marked step")));
  }
  for (const auto& [text, counts] : all) {
    if (remarks.size() == kShownRemarks) {
      remarks.emplace_back("and more: --json lists them");
      break;
    }
    remarks.push_back(fmt::format("not understood or left out: {} ({} in {})", text,
                                  FormatCount(counts.first), Several(counts.second, "trace")));
  }
  return remarks;
}

// ---- As JSON.

Json TimesJson(const RankTimes& times, bool compared) {
  return {{"step_time_s", times.step},
          {"computing_s", times.computing},
          {"communication_s", times.communication},
          {"exposed_s", times.exposed},
          {"hidden_s", times.hidden},
          {"copying_s", times.copying},
          {"idle_s", times.idle},
          {"waits_s", compared ? Json(times.waits) : Json(nullptr)},
          {"waited_for_s", compared ? Json(times.waited_for) : Json(nullptr)}};
}

Json TrainingJson(const TrainingRanks& training) {
  const bool any = std::any_of(training.ranks.begin(), training.ranks.end(),
                               [](const RankOfTraining& r) { return r.compared > 0; });
  Json ranks = Json::array();
  for (const RankOfTraining& r : training.ranks) {
    Json json = {{"rank", r.rank},
                 {"file", r.path},
                 {"collectives", r.collectives},
                 {"compared", r.compared},
                 {"came_last", r.came_last},
                 {"idle_marks", r.idle_marks},
                 {"not_understood", r.remarks}};
    json.update(TimesJson(r.mean, r.compared > 0));
    ranks.push_back(json);
  }
  Json steps = Json::array();
  for (std::size_t i = 0; i < training.steps.size(); ++i) {
    const StepOfTraining& s = training.steps[i];
    Json by_rank = Json::array();
    for (const RankOfTraining& r : training.ranks) {
      by_rank.push_back(TimesJson(r.steps[i], r.compared > 0));
    }
    Json json = {{"step", training.marked ? Json(s.number) : Json(nullptr)},
                 {"last", OptionalJson(s.last)},
                 {"by_rank", by_rank}};
    json.update(TimesJson(s.mean, any));
    steps.push_back(json);
  }
  Json classes = Json::array();
  for (const CollectiveClass& c : training.classes) {
    classes.push_back({{"collective", kCollectiveCallNames[static_cast<int>(c.call)]},
                       {"type", TextJson(c.type)},
                       {"bytes", c.bytes ? CountJson(*c.bytes) : Json(nullptr)},
                       {"ranks", c.ranks},
                       {"calls", c.calls},
                       {"calls_per_step", c.calls_per_step},
                       {"time_s", c.time_s},
                       {"exposed_s", c.exposed_s},
                       {"compared", c.compared},
                       {"transfer_s", NumberJson(c.transfer_s)},
                       {"bus_bytes_per_s", NumberJson(c.bus_bytes_per_s)}});
  }
  Json json = {{"backend", TextJson(training.backend)},
               {"gpu", training.gpu},
               {"world_size", training.world_size},
               {"world_size_is_told", training.world_is_told},
               {"ranks_are_told", training.ranks_are_told},
               {"missing_ranks", training.missing},
               {"marked", training.marked},
               {"steps_left_out", training.others},
               {"compared_in_part", training.compared_in_part},
               {"not_compared", training.not_compared},
               {"flags", FlagsOf(training)},
               {"ranks", ranks},
               {"steps", steps},
               {"collectives", classes}};
  json.update(TimesJson(training.mean, any));
  return json;
}

// ---- As a row of runs.

Run RunOfRanks(const Arguments& args, const TrainingRanks& training) {
  if (!args.Has("cluster")) args.Required("device");
  const Target target = ReadTarget(args, "", false);
  Plan plan = ReadPlan(args, target);
  const bool placed = args.Has("placement") || args.Has("workers") || args.Has("hosts");
  if (!placed && training.world_size > 1) {
    throw InputError(
        OptionPlace("placement"), "",
        "is required: traces do not say on which nodes their ranks are",
        fmt::format("the ranks of each node, {} in all, as 1-1 or 8-8", training.world_size));
  }
  if (plan.workers() != training.world_size) {
    throw InputError(OptionPlace("placement"), FormatPlacement(plan.placement),
                     "has other ranks than the traces",
                     fmt::format("{} in all", training.world_size));
  }
  if (plan.workers() == 1 && !args.Has("strategy")) plan.strategy = Strategy::kNone;
  RequireBatch(plan);
  // A mark is of whatever is between two calls of profiler.step().
  StepForm marks;
  marks.count = LoggedCount::kEither;
  const int micro_steps = static_cast<int>(StepsTimeFactor(args, marks, plan));
  CheckPlan(plan);
  Run run;
  run.workload = target.workload.name;
  run.device = target.device;
  run.plan = plan;
  MeasureRun(training, micro_steps, &run);
  return run;
}

}  // namespace

int ImportRanks(const Arguments& args, const std::vector<std::string>& files) {
  for (const char* option : {"guess", "dim", "steps", "address", "filter", "flows", "profile",
                             "pattern", "tells", "warm-up", "form", "bar", "steps-per-epoch",
                             "samples-of", "tokens-per-sample", "at-least"}) {
    Refuse(args, "kineto-ranks", option);
  }
  RefuseTrainingOptions(args, "kineto-ranks");
  const TrainingRanks training = ImportKinetoRanks(files);
  Json json = TrainingJson(training);
  if (args.Has("output")) {
    const Run run = RunOfRanks(args, training);
    WriteTextFile(args.Text("output"), FormatRuns({run}));
    json["output"] = args.Text("output");
  }
  if (args.Has("json")) {
    PrintJson(json);
    return kDone;
  }
  const Style style = DetectStyle();
  const auto ranks = static_cast<std::int64_t>(training.ranks.size());
  std::string title =
      fmt::format("{} of {}", FormatCount(ranks), Several(training.world_size, "rank"));
  title += training.gpu ? " on GPUs" : " on CPUs";
  if (!training.backend.empty()) title += ", " + training.backend;
  if (training.marked) {
    std::vector<std::int64_t> numbers;
    for (const StepOfTraining& step : training.steps) numbers.push_back(step.number);
    title += fmt::format(": {}, ProfilerStep#{}",
                         Several(static_cast<std::int64_t>(training.steps.size()), "step"),
                         RangesText(numbers));
  }
  std::string out = Heading(title, style);
  const RankTimes& mean = training.mean;
  out += fmt::format("  {}  {}\n", training.marked ? "step         " : "whole trace  ",
                     Lasting(mean.step));
  out += fmt::format("  communication  {}", Lasting(mean.communication));
  if (mean.communication > 0) {
    out += fmt::format(", of which {} is hidden and {} exposed ({} of the step)",
                       FormatPercent(mean.hidden / mean.communication), Lasting(mean.exposed),
                       FormatPercent(mean.exposed / mean.step));
  }
  out += "\n\n" + PartsText(training, style) + "\n" + RanksTable(training, style);
  if (!training.classes.empty()) out += "\n" + ClassesText(training, style);
  const int width = TerminalWidth();
  if (const std::string waiting = WaitingText(training); !waiting.empty()) {
    out += NoteLine(waiting, style, width);
  }
  for (const std::string& flag : FlagsOf(training)) out += FlagLine(flag, style, width);
  for (const std::string& remark : RemarksOf(training)) out += NoteLine(remark, style, width);
  if (args.Has("output")) out += NoteLine("runs: " + args.Text("output"), style, width);
  Print(out);
  return kDone;
}

}  // namespace stepcast::cli
