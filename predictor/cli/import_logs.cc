#include "predictor/cli/import_logs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <utility>

#include "data/io/runs.h"
#include "data/io/text_file.h"
#include "data/logs/collective_log.h"
#include "data/logs/guess.h"
#include "data/logs/link_log.h"
#include "data/logs/step_log.h"
#include "data/plan/check.h"
#include "data/plan/check_spread.h"
#include "data/plan/limits.h"
#include "data/record/host_texts.h"
#include "data/record/quantile.h"
#include "data/values/device_name.h"
#include "data/values/numbers.h"
#include "data/values/placement.h"
#include "data/values/size_limits.h"
#include "microbench/script/step_pattern.h"
#include "predictor/cli/import.h"

namespace stepcast::cli {
namespace {

constexpr const char* kLogOptions[] = {
    "pattern",         "tells",      "warm-up",           "form",    "bar", "counts",
    "steps-per-epoch", "samples-of", "tokens-per-sample", "at-least"};

// ---- What all of them say.

Json UnknownJson(const UnknownLines& unknown) {
  Json first = Json::array();
  for (const UnknownLines::Line& line : unknown.first) {
    first.push_back({{"line", line.number}, {"text", line.text}});
  }
  return {{"lines", unknown.count}, {"first", first}};
}

std::string UnknownNotes(const std::string& path, const UnknownLines& unknown, const Style& style) {
  if (unknown.count == 0) return "";
  std::string out = NoteLine(fmt::format("{} of {} not understood, the first of them:",
                                         Several(unknown.count, "line"), FileName(path)),
                             style, TerminalWidth());
  for (const UnknownLines::Line& line : unknown.first) {
    out += fmt::format("    {}: {}\n", line.number, line.text);
  }
  return out;
}

// Where notes go that are not what is written.
void PrintNotes(const Arguments& args, const std::string& notes) {
  if (args.Has("json")) return;
  std::fputs(notes.c_str(), stderr);
}

std::string Quoted(const std::string& text) { return JsonText(text); }

// ---- Facts of a link.

struct LinkFile {
  std::string path;
  LinkLog log;
};

std::string ValueText(double value, LinkUnit unit) {
  switch (unit) {
    case LinkUnit::kRate:
      return FormatRate(MegabitsPerSecond(value / 1e6));
    case LinkUnit::kTime:
      return FormatDuration(Seconds(value));
    case LinkUnit::kSize:
      return FormatSizeExact(Bytes(value));
    case LinkUnit::kCount:
      return FormatCount(value);
  }
  return "";
}

const char* UnitSuffix(LinkUnit unit) {
  switch (unit) {
    case LinkUnit::kRate:
      return "_bit_per_s";
    case LinkUnit::kTime:
      return "_s";
    case LinkUnit::kSize:
      return "_bytes";
    case LinkUnit::kCount:
      return "";
  }
  return "";
}

// A fact as a cluster file states it, and as JSON does.
std::string FactText(const DataRate<>& rate) {
  return fmt::format("\"{:.6g} Mbit/s\"", rate.in(kMegabitsPerSecond));
}
std::string FactText(const Duration<>& time) {
  return fmt::format("\"{:.6g} ms\"", time.in(kMilliseconds));
}
std::string FactText(double share) { return fmt::format("{:.6g}", share); }
std::string FactText(CongestionControl control) { return NameOf(control); }
std::string FactText(Transport transport) { return NameOf(transport); }
std::pair<const char*, Json> FactJson(const DataRate<>& rate) {
  return {"_bit_per_s", rate.in(kMegabitsPerSecond)*1e6};
}
std::pair<const char*, Json> FactJson(const Duration<>& time) { return {"_s", time.si()}; }
std::pair<const char*, Json> FactJson(double share) { return {"", share}; }
std::pair<const char*, Json> FactJson(CongestionControl control) { return {"", NameOf(control)}; }
std::pair<const char*, Json> FactJson(Transport transport) { return {"", NameOf(transport)}; }

int DeliverLink(const Arguments& args, const std::vector<LinkFile>& files) {
  std::string facts;
  std::string sources;
  std::string remarks;
  std::string flags;
  std::string notes;
  Json link = Json::object();
  Json findings = Json::array();
  Json all_flags = Json::array();
  Json unknown = Json::array();
  std::map<std::string, std::string> stated;  // facts, by the file that states them
  for (const LinkFile& link_file : files) {
    // clang 14 lets no lambda have a part of a binding.
    const std::string& path = link_file.path;
    const LinkLog& log = link_file.log;
    const std::string file = FileName(path);
    LinkFacts::ForEach([&](const char* name, auto fact) {
      if (!(log.link.*fact)) return;
      if (const auto [other, is_new] = stated.emplace(name, file); !is_new) {
        throw InputError({path, 0, name}, "", "is stated by " + other->second + " too",
                         "each fact by one file");
      }
      const std::string source = fmt::format("{} ({}), {}", file, log.tool, log.sources.at(name));
      facts += fmt::format("  {}: {}\n", name, FactText(*(log.link.*fact)));
      sources += fmt::format("  link.{}: {}\n", name, Quoted(source));
      const auto [suffix, value] = FactJson(*(log.link.*fact));
      link[std::string(name) + suffix] = {{"value", value}, {"source", source}};
    });
    for (const LinkFinding& f : log.findings) {
      remarks +=
          fmt::format("# {}: {} ({}, {})\n", f.what, ValueText(f.value, f.unit), file, f.from);
      findings.push_back({{"name", f.name + UnitSuffix(f.unit)},
                          {"value", CountJson(f.value)},
                          {"what", f.what},
                          {"source", fmt::format("{}, {}", file, f.from)}});
    }
    for (const std::string& remark : log.remarks)
      remarks += fmt::format("# {}: {}\n", file, remark);
    for (const std::string& flag : log.flags) {
      flags += " " + flag;
      all_flags.push_back(flag);
    }
    notes += UnknownNotes(path, log.unknown, DetectStyle());
    unknown.push_back({{"file", path}, {"unknown", UnknownJson(log.unknown)}});
  }
  std::string text;
  if (!facts.empty()) text += "link:\n" + facts + "sources:\n" + sources;
  text += remarks;
  if (!flags.empty()) text += "# stepcast diagnose ..." + flags + "\n";
  const Json json = {
      {"link", link}, {"measured", findings}, {"diagnose", all_flags}, {"files", unknown}};
  if (args.Has("json") && !args.Has("output")) {
    PrintJson(json);
    return kDone;
  }
  PrintNotes(args, notes);
  return Deliver(args, text, kMostYamlBytes, "facts of a link", json);
}

// ---- Benchmarks of collectives.

// Smaller messages show what starts a call, which the exchange of a training hardly has.
constexpr double kLeastMessageBytes = 4096;
// The bucket of a plan without --bucket.
constexpr double kUsualBucketBytes = 25.0 * 1024 * 1024;

struct CollectiveTarget {
  Library library;
  Cluster cluster;
  bool has_cluster = false;
};

CollectiveTarget ReadCollectiveTarget(const Arguments& args) {
  CollectiveTarget target;
  if (args.Has("cluster")) {
    target.cluster = target.library.LoadCluster(args.Text("cluster"));
    target.has_cluster = true;
  }
  return target;
}

std::string DeviceOf(const Arguments& args, const CollectiveTarget& target,
                     const std::string& logged, const std::string& path) {
  std::string device = args.Has("device")   ? args.Text("device")
                       : target.has_cluster ? target.cluster.device
                                            : logged;
  if (device.empty()) {
    throw InputError(OptionPlace("device"), "",
                     "is required, or --cluster: " + FileName(path) + " names no device",
                     "the device of a rank, or cpu");
  }
  const bool is_logged = !args.Has("device") && !target.has_cluster;
  const InputPlace place = is_logged ? InputPlace{path, 0, "device"} : OptionPlace("device");
  return target.library.CanonicalDevice(CheckedName(device, place), target.cluster);
}

// The runs of a table of all-reduces; how many of its rows are too small goes into `small`.
std::vector<Run> RunsOf(const Arguments& args, const CollectiveTarget& target,
                        const CollectiveTable& table, const std::string& path, double least,
                        std::int64_t* small) {
  Target plain;
  plain.cluster = target.cluster;
  Plan plan = ReadPlan(args, plain);
  if (!args.Has("placement") && !args.Has("workers") && !args.Has("hosts")) {
    if (table.placement.empty()) {
      throw InputError(OptionPlace("placement"), "",
                       "is required: " + FileName(path) + " does not say where the ranks are",
                       "the ranks of each node, as 1-1 or 8-8");
    }
    plan.placement = table.placement;
  }
  if (!table.placement.empty() && plan.workers() != Workers(table.placement)) {
    throw InputError(OptionPlace("placement"), FormatPlacement(plan.placement),
                     fmt::format("has other ranks than {}", FileName(path)),
                     fmt::format("{} in all", Workers(table.placement)));
  }
  if (plan.local_batch == 0) plan.local_batch = 1;
  const std::string device = DeviceOf(args, target, table.device, path);
  std::vector<Run> runs;
  if (plan.workers() < 2) return runs;
  // Whose links these were, so that calibration finds a slow one.
  if (!args.Has("hosts") && plan.placement == table.placement) {
    const InputPlace place{path, table.line, "host"};
    plan.hosts = ParseHosts(JoinHosts(table.hosts), place);
    RequireKnownHosts(target.cluster, KnownHosts(target.cluster), plan.hosts, place);
  }
  for (const CollectiveRow& row : table.rows) {
    if (row.bytes < least) {
      ++*small;
      continue;
    }
    Run run;
    run.workload = fmt::format("message_{:.0f}", row.bytes);
    run.device = device;
    run.plan = plan;
    // A call is one message, whatever a bucket holds.
    if (!run.plan.bucket && row.bytes > kUsualBucketBytes) run.plan.bucket = Bytes(row.bytes);
    const bool in_place = row.in_place_s.has_value();
    run.step_time = Seconds(in_place ? *row.in_place_s : *row.out_of_place_s);
    run.source =
        fmt::format("{} line {}: {}{}", FileName(path), row.line,
                    table.name.empty() ? "nccl-tests" : table.name, in_place ? ", in place" : "");
    run.place = {path, row.line, ""};
    CheckPlan(run.plan);
    runs.push_back(std::move(run));
  }
  return runs;
}

// What two ranks on two nodes tell of the link between them.
LinkLog LinkOf(const CollectiveLog& log) {
  LinkLog link;
  link.tool = "OSU micro-benchmarks";
  link.unknown = log.unknown;
  for (const CollectiveTable& table : log.tables) {
    if (table.rows.empty()) continue;
    const auto least = std::min_element(
        table.rows.begin(), table.rows.end(),
        [](const CollectiveRow& a, const CollectiveRow& b) { return a.bytes < b.bytes; });
    const auto from = [&](int line) { return fmt::format("line {}: {}", line, table.name); };
    if (table.kind == CollectiveKind::kLatency && !link.link.rtt) {
      // One way, of what the library adds too.
      const double rtt = 2 * *least->out_of_place_s;
      link.link.rtt = Seconds(rtt);
      link.sources["rtt"] =
          from(least->line) + fmt::format(", twice the latency of {:.0f} bytes", least->bytes);
      link.flags.push_back(fmt::format("--ping \"{:.6g} us\"", rtt * 1e6));
    } else if (table.kind == CollectiveKind::kBandwidth) {
      const auto most = std::max_element(table.rows.begin(), table.rows.end(),
                                         [](const CollectiveRow& a, const CollectiveRow& b) {
                                           return *a.bytes_per_s < *b.bytes_per_s;
                                         });
      link.findings.push_back({"bandwidth", *most->bytes_per_s * 8, LinkUnit::kRate,
                               fmt::format("the most, with messages of {:.0f} bytes", most->bytes),
                               from(most->line)});
    } else {
      link.remarks.push_back(fmt::format("{} tells nothing of a link alone", table.name));
    }
  }
  return link;
}

Json TablesJson(const std::vector<CollectiveTable>& tables) {
  Json all = Json::array();
  for (const CollectiveTable& table : tables) {
    Json rows = Json::array();
    for (const CollectiveRow& row : table.rows) {
      rows.push_back({{"bytes", CountJson(row.bytes)},
                      {"out_of_place_s", NumberJson(row.out_of_place_s)},
                      {"in_place_s", NumberJson(row.in_place_s)},
                      {"bytes_per_s", NumberJson(row.bytes_per_s)},
                      {"bus_bytes_per_s", NumberJson(row.bus_bytes_per_s)},
                      {"line", row.line}});
    }
    all.push_back({{"benchmark", TextJson(table.name)},
                   {"line", table.line},
                   {"placement", table.placement.empty() ? Json(nullptr)
                                                         : Json(FormatPlacement(table.placement))},
                   {"hosts", table.hosts},
                   {"device", TextJson(table.device)},
                   {"wrong_results", table.wrong},
                   {"rows", rows}});
  }
  return all;
}

// ---- Steps of a training.

constexpr const char* kSamplesOfNames[] = {"job", "device", "node"};
constexpr const char* kCountNames[] = {"steps", "micro-steps"};
constexpr const char* kTellsNames[] = {"steps", "means"};
constexpr int kMostWarmUp = 1'000'000'000;

std::string NameOfRank(const StepSeries& series) { return series.rank.empty() ? "-" : series.rank; }

std::string SpanText(LoggedSpan span) {
  switch (span) {
    case LoggedSpan::kStep:
      return "times of single steps";
    case LoggedSpan::kInterval:
      return "means over the steps between two lines";
    case LoggedSpan::kEpochSoFar:
      return "means of epochs";
    case LoggedSpan::kRun:
      return "the mean of the whole run";
    case LoggedSpan::kEpoch:
      return "times of epochs";
  }
  return "";
}

// Samples of what a throughput counts, in one optimizer step.
double SamplesPerStep(const Arguments& args, SamplesOf counted, const Plan& plan) {
  RequireBatch(plan);
  const double device = static_cast<double>(plan.local_batch) * plan.accumulation_steps;
  if (plan.workers() == 1 || counted == SamplesOf::kDevice) return device;
  if (counted == SamplesOf::kJob) return plan.global_batch();
  if (!args.Has("samples-of")) {
    throw InputError(OptionPlace("samples-of"), "",
                     "is required: the log does not say whose samples its throughput counts",
                     fmt::format("{}", fmt::join(kSamplesOfNames, ", ")));
  }
  const int whose = ReadChoice<int>(args, "samples-of", kSamplesOfNames, 0);
  if (whose == 0) return plan.global_batch();
  if (whose == 1) return device;
  if (!AreNodesEqual(plan.placement)) {
    throw InputError(OptionPlace("samples-of"), "node", "is not the same on all nodes",
                     "job or device, or a placement of equal nodes");
  }
  return device * plan.placement.front();
}

// Tokens of a sample, of which a log tells how many there are in a second.
int TokensPerSample(const Arguments& args) {
  constexpr const char* kOption = "tokens-per-sample";
  if (!args.Has(kOption)) {
    throw InputError(OptionPlace(kOption), "", "is required: the log tells tokens in a second",
                     "the length of a sample, like 2048");
  }
  return ParseInteger(args.Text(kOption), OptionPlace(kOption), 1, kMostBatch);
}

// What is assumed where nothing says how many workers there were; empty where it does not matter.
std::string AssumedOfWorkers(const Arguments& args, const StepForm& form) {
  for (const char* told : {"workers", "placement", "hosts"}) {
    if (args.Has(told)) return "";
  }
  if (!form.samples || *form.samples == SamplesOf::kDevice) return "";
  const std::string taken = "one worker is taken (--workers, --placement)";
  return taken + (*form.samples == SamplesOf::kJob
                      ? ": the throughput is the whole job's"
                      : ", and the throughput as its own (--samples-of)");
}

// Refuses options that say what a log of this form says by itself, or has not.
void RefuseUnread(const Arguments& args, const StepForm& form) {
  const auto refuse = [&](const char* option, const char* allowed) {
    if (!args.Has(option)) return;
    throw InputError(OptionPlace(option), "", fmt::format("says nothing of {}", form.name),
                     allowed);
  };
  if (form.samples || form.span != LoggedSpan::kEpoch) {
    refuse("steps-per-epoch", "a log that tells times of epochs");
  }
  if (!form.tokens) refuse("tokens-per-sample", "a log that tells tokens in a second");
  if (form.samples != SamplesOf::kProcess) {
    refuse("samples-of", "a log that tells a throughput, and not whose samples it counts");
  }
}

std::string LinesText(int first, int last) {
  return first == last ? fmt::format("line {}", first) : fmt::format("lines {} to {}", first, last);
}

// Fewer steps tell little of how they scatter.
constexpr std::size_t kStepsOfASpread = 10;

}  // namespace

double StepsTimeFactor(const Arguments& args, const StepForm& form, const Plan& plan) {
  if (form.samples) {
    const double samples = SamplesPerStep(args, *form.samples, plan);
    return form.tokens ? samples * TokensPerSample(args) : samples;
  }
  if (form.span == LoggedSpan::kEpoch) {
    if (!args.Has("steps-per-epoch")) {
      throw InputError(OptionPlace("steps-per-epoch"), "",
                       "is required: the log tells times of epochs", "optimizer steps of an epoch");
    }
    return 1.0 / ParseInteger(args.Text("steps-per-epoch"), OptionPlace("steps-per-epoch"), 1,
                              kMostWarmUp);
  }
  if (plan.accumulation_steps == 1) return 1;
  if (form.count == LoggedCount::kEither && !args.Has("counts")) {
    throw InputError(OptionPlace("counts"), "",
                     "is required with --accumulation: nothing says which steps are counted",
                     fmt::format("{}", fmt::join(kCountNames, ", ")));
  }
  const bool micro = args.Has("counts") ? ReadChoice<int>(args, "counts", kCountNames, 0) == 1
                                        : form.count == LoggedCount::kMicroSteps;
  return micro ? plan.accumulation_steps : 1;
}

StepLogOptions ReadStepLogOptions(const Arguments& args) {
  StepLogOptions options;
  options.warm_up = ReadInteger(args, "warm-up", 0, kMostWarmUp, options.warm_up);
  if (args.Has("pattern")) {
    options.pattern = [pattern = std::make_shared<const script::StepPattern>(
                           args.Text("pattern"), OptionPlace("pattern"))](const std::string& line,
                                                                          std::string* found) {
      return pattern->Find(line, found);
    };
  }
  if (args.Has("tells")) {
    if (!options.pattern) {
      throw InputError(OptionPlace("tells"), args.Text("tells"), "is known of known forms",
                       "--pattern with it");
    }
    const bool means = ReadChoice<int>(args, "tells", kTellsNames, 0) == 1;
    options.pattern_tells = means ? LoggedSpan::kInterval : LoggedSpan::kStep;
  }
  return options;
}

StepChoice ReadStepChoice(const Arguments& args) {
  StepChoice choice;
  if (args.Has("form")) choice.form = args.Text("form");
  if (args.Has("bar")) {
    const std::string bar = args.Text("bar");
    const bool is_title = std::any_of(bar.begin(), bar.end(), [](char c) {
      return std::isalpha(static_cast<unsigned char>(c)) != 0 ||
             static_cast<unsigned char>(c) >= 0x80;
    });
    if (is_title) {
      choice.bar_title = BarTitle(bar);
    } else {
      choice.bar_steps = ParseInteger(bar, OptionPlace("bar"), 1, kMostWarmUp);
    }
  }
  return choice;
}

void AddLogOptions(po::options_description* options) {
  options->add_options()("guess", OptionValue("FILE"), "say what a file is, and what reads it")(
      "pattern", OptionValue("R"),
      "steps: where a step's time stands, as \"step (?<ms>[0-9.]+) ms\", instead of known forms")(
      "tells", OptionValue("WHAT"),
      "steps: what a pattern's numbers are: times of steps, or means over several")(
      "warm-up", OptionValue("N"), "steps: first steps that are left out (20)")(
      "form", OptionValue("NAME"), "steps: of a log that has several forms, which to take")(
      "bar", OptionValue("BAR"),
      "steps: of several progress bars, the training's: its steps or its title")(
      "counts", OptionValue("WHAT"),
      "steps, kineto-ranks: what is counted with --accumulation: steps or micro-steps")(
      "steps-per-epoch", OptionValue("N"), "steps: of a log that tells times of epochs")(
      "samples-of", OptionValue("WHO"),
      "steps: whose samples a throughput counts: job, device or node")(
      "tokens-per-sample", OptionValue("N"), "steps: of a log that tells tokens in a second")(
      "at-least", OptionValue("SIZE"),
      "nccl-tests, osu: the smallest message that is taken (4 KiB)");
}

void RefuseLogOptions(const Arguments& args, const std::string& kind) {
  for (const char* option : kLogOptions) Refuse(args, kind, option);
}

int ImportLink(const Arguments& args, const std::string& kind,
               const std::vector<std::string>& files) {
  AllowOnly(args, kind, {});
  std::vector<LinkFile> read;
  for (const std::string& path : files) {
    read.push_back({path, kind == "iperf3"    ? ReadIperf3(path)
                          : kind == "ping"    ? ReadPing(path)
                          : kind == "ethtool" ? ReadEthtool(path)
                                              : ReadSs(path)});
  }
  return DeliverLink(args, read);
}

int ImportCollectives(const Arguments& args, const std::string& kind,
                      const std::vector<std::string>& files) {
  for (const char* option : kLogOptions) {
    if (std::string(option) != "at-least") Refuse(args, kind, option);
  }
  for (const char* option :
       {"dim", "steps", "address", "filter", "flows", "workload", "workload-file", "profile"}) {
    Refuse(args, kind, option);
  }
  RefuseTrainingOptions(args, kind);
  const CollectiveTarget target = ReadCollectiveTarget(args);
  const double least =
      args.Has("at-least")
          ? ParseDataSize(args.Text("at-least"), OptionPlace("at-least")).in(kBytes)
          : kLeastMessageBytes;
  std::vector<Run> runs;
  std::vector<LinkFile> links;
  std::int64_t small = 0;
  std::int64_t wrong = 0;
  std::vector<std::string> others;
  std::string notes;
  Json tables = Json::array();
  Json unknown = Json::array();
  const Style style = DetectStyle();
  for (const std::string& path : files) {
    const CollectiveLog log = kind == "osu" ? ReadOsuBenchmarks(path) : ReadNcclTests(path);
    bool is_link = false;
    for (const CollectiveTable& table : log.tables) {
      wrong += table.wrong;
      if (table.kind == CollectiveKind::kAllreduce) {
        std::vector<Run> more = RunsOf(args, target, table, path, least, &small);
        runs.insert(runs.end(), std::make_move_iterator(more.begin()),
                    std::make_move_iterator(more.end()));
      } else if (table.kind == CollectiveKind::kOther) {
        others.push_back(table.name.empty() ? fmt::format("the table at line {}", table.line)
                                            : table.name);
      } else {
        is_link = true;
      }
    }
    if (is_link) links.push_back({path, CheckedLink(LinkOf(log), path)});
    notes += UnknownNotes(path, log.unknown, style);
    for (const Json& table : TablesJson(log.tables)) tables.push_back(table);
    unknown.push_back({{"file", path}, {"unknown", UnknownJson(log.unknown)}});
  }
  if (runs.empty() && !links.empty()) return DeliverLink(args, links);
  const auto note = [&](const std::string& text) {
    notes += NoteLine(text, style, TerminalWidth());
  };
  if (small > 0) {
    note(fmt::format("{} below {} {} left out: --at-least says where to begin",
                     Several(small, "message"), FormatSize(Bytes(least)),
                     small == 1 ? "is" : "are"));
  }
  if (wrong > 0) {
    note(fmt::format("{} with wrong results {} left out", Several(wrong, "row"),
                     wrong == 1 ? "is" : "are"));
  }
  if (!others.empty()) {
    note(fmt::format("no run stands for {}: all-reduces alone do", fmt::join(others, ", ")));
  }
  const Json json = {{"runs", runs.size()}, {"small", small},   {"wrong_results", wrong},
                     {"others", others},    {"tables", tables}, {"files", unknown}};
  if (args.Has("json") && !args.Has("output")) {
    PrintJson(json);
    return kDone;
  }
  if (runs.empty()) {
    throw InputError({files.front(), 0, ""}, "", "has no all-reduce between two ranks or more",
                     "all_reduce_perf or osu_allreduce, and messages of --at-least");
  }
  PrintNotes(args, notes);
  return Deliver(args, FormatRuns(runs), kMostCsvBytes,
                 fmt::format("{} runs", FormatCount(runs.size())), json);
}

namespace {

// What a log says of the steps of a training. Refers to what was read of it.
struct LoggedRun {
  const std::string& path;
  const StepLog& log;
  const LoggedSteps& steps;
  int warm_up = 0;    // steps that are left out
  double factor = 1;  // a step's time / a number of the log
  Run run = {};
  bool single = false;  // times of single steps, and enough of them for quantiles
  int first = 0;        // of the lines with the numbers
  int last = 0;
  std::string tells = {};     // what the numbers are
  std::string what = {};      // the same, with how many there are
  std::string includes = {};  // what is part of them besides; empty for nothing
  std::string assumed = {};   // of the workers; empty for nothing

  Json ToJson() const;
  // The step, and the ranks.
  std::string Text(const Style& style) const;
  // What to know of them.
  std::string Notes(const Style& style) const;
};

// `logged` says what was read.
LoggedRun TimeSteps(LoggedRun logged, const Arguments& args, const Plan& plan) {
  const LoggedSteps& steps = logged.steps;
  const double factor = logged.factor = StepsTimeFactor(args, steps.form, plan);
  logged.assumed = AssumedOfWorkers(args, steps.form);
  Run& run = logged.run;
  run.plan = plan;
  run.step_time = Seconds(steps.mean_s * factor);
  logged.single = steps.form.span == LoggedSpan::kStep && !steps.may_be_means &&
                  (plan.accumulation_steps == 1 || factor == 1) &&
                  steps.step_s.size() >= kStepsOfASpread;
  if (logged.single) {
    run.spread.p50 = Seconds(Quantile(steps.step_s, 0.5) * factor);
    run.spread.p95 = Seconds(Quantile(steps.step_s, 0.95) * factor);
    run.spread.p99 = Seconds(Quantile(steps.step_s, 0.99) * factor);
  }
  int& first = logged.first;
  int& last = logged.last;
  for (std::size_t i = 0; i < steps.ranks.size(); ++i) {
    if (steps.slowest && i != *steps.slowest) continue;
    const StepSeries& series = steps.ranks[i];
    if (series.first_line > 0 && (first == 0 || series.first_line < first)) {
      first = series.first_line;
    }
    last = std::max(last, series.last_line);
  }
  logged.tells = steps.may_be_means ? "times of single steps, or means over several"
                                    : SpanText(steps.form.span);
  const bool is_one = steps.numbers == 1;
  logged.what = is_one && steps.form.span == LoggedSpan::kStep && !steps.may_be_means
                    ? "the time of a single step"
                    : fmt::format("{} {}{}", FormatCount(steps.numbers),
                                  steps.form.span == LoggedSpan::kStep ? ""
                                  : is_one                             ? "number, "
                                                                       : "numbers, ",
                                  logged.tells);
  run.source = fmt::format("{} {} ({}): {} behind a warm-up of {} steps", FileName(logged.path),
                           LinesText(first, last), steps.form.name, logged.what, logged.warm_up);
  if (steps.with_others > 0) logged.includes = "the validation of each epoch is part of it";
  if (!logged.includes.empty()) run.source += "; " + logged.includes;
  if (steps.slowest) {
    run.source += fmt::format("; of rank {}, the slowest of {}",
                              NameOfRank(steps.ranks[*steps.slowest]), steps.ranks.size());
  }
  return logged;
}

Json LoggedRun::ToJson() const {
  Json ranks = Json::array();
  for (const StepSeries& series : steps.ranks) {
    ranks.push_back(
        {{"rank", TextJson(series.rank)},
         {"numbers", series.numbers},
         {"warm_up", series.warm_up},
         {"step_time_s", series.numbers > 0 ? Json(series.mean_s() * factor) : Json(nullptr)}});
  }
  Json bars = Json::object();
  for (const auto& [title, lines] : log.bars) bars[title] = lines;
  Json left_out = Json::array();
  for (const LoggedBar& bar : steps.other_bars) {
    left_out.push_back({{"title", TextJson(bar.title)},
                        {"steps", bar.steps},
                        {"holds_another", bar.holds_another}});
  }
  return {{"file", path},
          {"form", steps.form.name},
          {"other_forms", steps.others},
          {"tells", tells},
          {"step_time_s", run.step_time.si()},
          {"p50_s", OptionalJson(run.spread.p50, kSeconds)},
          {"p95_s", OptionalJson(run.spread.p95, kSeconds)},
          {"p99_s", OptionalJson(run.spread.p99, kSeconds)},
          {"numbers", steps.numbers},
          {"steps", CountJson(steps.steps)},
          {"warm_up", steps.warm_up},
          {"with_validation", steps.with_others},
          {"by_rate", steps.by_rate},
          {"begun_anew", steps.begun_anew},
          {"validation_lines", log.validation},
          {"lines_without_time", log.without_time},
          {"assumed", TextJson(assumed)},
          {"micro_steps", steps.micro_steps > 0 ? Json(steps.micro_steps) : Json(nullptr)},
          {"bar", TextJson(steps.bar)},
          {"bars_left_out", left_out},
          {"other_bars", bars},
          {"first_line", first},
          {"last_line", last},
          {"ranks", ranks},
          {"slowest_rank",
           steps.slowest ? Json(NameOfRank(steps.ranks[*steps.slowest])) : Json(nullptr)},
          {"unknown", UnknownJson(log.unknown)}};
}

std::string LoggedRun::Text(const Style& style) const {
  std::string out = Heading(fmt::format("{}: {}", FileName(path), steps.form.name), style);
  out += fmt::format("  step       {}", FormatDuration(run.step_time));
  if (single) {
    out += fmt::format(" (half within {}, 95 % within {}, 99 % within {})",
                       FormatDuration(*run.spread.p50), FormatDuration(*run.spread.p95),
                       FormatDuration(*run.spread.p99));
  }
  out += fmt::format("\n  from       {}, {}\n", what, LinesText(first, last));
  out += fmt::format("  left out   {} of the warm-up ({}), {} of validation\n",
                     FormatCount(steps.warm_up), Several(warm_up, "step"),
                     Several(log.validation, "line"));
  if (steps.ranks.size() > 1) {
    constexpr std::size_t kShown = 16;
    Table table({LeftColumn("rank"), "numbers", "step"});
    for (std::size_t i = 0; i < std::min(kShown, steps.ranks.size()); ++i) {
      const StepSeries& series = steps.ranks[i];
      table.AddRow({NameOfRank(series), FormatCount(series.numbers),
                    series.numbers > 0 ? FormatDuration(Seconds(series.mean_s() * factor)) : "-"});
    }
    out += "\n" + table.Render(style, 2);
    if (steps.ranks.size() > kShown) {
      out += fmt::format("  and {} ranks more: --json lists them\n", steps.ranks.size() - kShown);
    }
  }
  return out;
}

std::string LoggedRun::Notes(const Style& style) const {
  std::string out;
  const auto note = [&](const std::string& text) { out += NoteLine(text, style, TerminalWidth()); };
  const auto flag = [&](const std::string& text) { out += FlagLine(text, style, TerminalWidth()); };
  if (steps.slowest) {
    flag(fmt::format(
        "the ranks differ: the numbers are those of rank {}, the slowest, as a synchronous step "
        "ends with it",
        NameOfRank(steps.ranks[*steps.slowest])));
  }
  if (!includes.empty()) {
    flag(fmt::format("{} of {} means are of epochs with their validation, which makes them longer",
                     steps.with_others, steps.numbers));
  }
  if (!assumed.empty()) flag(assumed);
  if (steps.micro_steps > 0 && steps.micro_steps != run.plan.accumulation_steps) {
    flag(fmt::format("the log tells of {} micro-steps in a step, where --accumulation is {}",
                     steps.micro_steps, run.plan.accumulation_steps));
  }
  if (steps.by_rate > 0) {
    flag(
        fmt::format("{} of {} numbers are rates of bars too short for their clock: they may be of "
                    "the whole bar, warm-up included",
                    steps.by_rate, steps.numbers));
  }
  if (steps.begun_anew > 0) {
    note(fmt::format("times that the job was begun anew: {}; each warm-up is left out",
                     steps.begun_anew));
  }
  if (steps.form.span == LoggedSpan::kRun) {
    flag("it is of the whole run: start-up, evaluations and saving are part of it");
  }
  if (steps.may_be_means) {
    note(
        "the lines are several steps apart: if their times are means, these tell no spread, so "
        "that there are no quantiles (--tells says steps or means)");
  } else if (!single) {
    note(steps.form.span == LoggedSpan::kStep
             ? "too few single steps for quantiles"
             : "how single steps scatter, means do not tell: there are no quantiles");
  }
  if (!steps.others.empty()) {
    note(fmt::format("the log has other forms too: {} (--form)", fmt::join(steps.others, ", ")));
  }
  for (const LoggedBar& bar : steps.other_bars) {
    note(bar.holds_another
             ? fmt::format("bar {} is left out: within each of its steps another bar begins",
                           bar.Text())
             : fmt::format("bar {} is left out (--bar takes it)", bar.Text()));
  }
  for (const auto& [title, lines] : log.bars) {
    note(fmt::format("bar \"{}\" is none of training: {}", title, Several(lines, "line")));
  }
  out += UnknownNotes(path, log.unknown, style);
  return out;
}

}  // namespace

int ImportSteps(const Arguments& args, const std::vector<std::string>& files) {
  for (const char* option : {"dim", "steps", "address", "filter", "flows", "profile", "at-least"}) {
    Refuse(args, "steps", option);
  }
  RefuseTrainingOptions(args, "steps");
  const StepLogOptions options = ReadStepLogOptions(args);
  const StepChoice choice = ReadStepChoice(args);
  RequireOne(files, "steps");
  const std::string& path = files.front();
  const StepLog log = ReadStepLog(path, options);
  const LoggedSteps steps = ChooseSteps(log, choice, path);
  RefuseUnread(args, steps.form);

  Target target;
  const bool writes = args.Has("output");
  if (args.Has("workload") || writes) {
    if (!args.Has("cluster")) args.Required("device");
    target = ReadTarget(args, "", false);
  } else if (args.Has("cluster")) {
    target.cluster = target.library.LoadCluster(args.Text("cluster"));
  }
  Plan plan = ReadPlan(args, target);
  if (plan.workers() == 1 && !args.Has("strategy")) plan.strategy = Strategy::kNone;
  LoggedRun logged = TimeSteps({path, log, steps, options.warm_up}, args, plan);
  Run& run = logged.run;
  Json json = logged.ToJson();
  if (writes) {
    RequireBatch(plan);
    run.workload = target.workload.name;
    run.device = target.device;
    CheckPlan(plan);
    CheckSpread(run);
    if (!kStepTimes.Holds(run.step_time.si())) {
      throw InputError({path, logged.first, "step_time_s"},
                       fmt::format("{:.6g}", run.step_time.si()), "is out of range",
                       kStepTimes.Text());
    }
    run.extra_columns = std::make_shared<const std::vector<std::string>>(1, "measured_steps");
    run.extra = {fmt::format("{:.0f}", steps.steps)};
    WriteTextFile(args.Text("output"), FormatRuns({run}));
    json["output"] = args.Text("output");
  }
  if (args.Has("json")) {
    PrintJson(json);
    return kDone;
  }

  const Style style = DetectStyle();
  const auto note = [&](const std::string& text) { return NoteLine(text, style, TerminalWidth()); };
  Print(logged.Text(style) + logged.Notes(style) +
        (writes ? note("runs: " + args.Text("output"))
                : note(fmt::format("why is it slow? stepcast diagnose ... --measured \"{:.6g} s\"",
                                   run.step_time.si()))));
  return kDone;
}

int GuessKind(const Arguments& args, const std::string& file) {
  const std::optional<FileGuess> guess = GuessFile(file);
  std::string command = guess ? guess->command : "";
  // A name that a shell takes as it is, without quotes.
  const bool plain = std::all_of(file.begin(), file.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string("._-/+").find(c) != std::string::npos;
  });
  if (const std::size_t at = command.find("FILE"); at != std::string::npos && plain) {
    command.replace(at, 4, file);
  }
  if (args.Has("json")) {
    PrintJson({{"file", file},
               {"what", guess ? Json(guess->what) : Json(nullptr)},
               {"why", guess ? Json(guess->why) : Json(nullptr)},
               {"command", TextJson(command)}});
  } else if (!guess) {
    Print(
        fmt::format("{}: nothing that stepcast knows; where a log has times of steps, read it by\n"
                    "  stepcast import steps FILE --pattern \"...(?<ms>[0-9.]+)...\"\n",
                    file));
  } else {
    Print(fmt::format("{}: {}, by {}\n", file, guess->what, guess->why));
    Print(command.empty() ? "  no command reads it\n" : fmt::format("  {}\n", command));
  }
  return guess ? kDone : kAnswerIsNo;
}

}  // namespace stepcast::cli
