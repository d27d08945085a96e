// stepcast diagnose: why a measured step is longer than it should be.
#include "predictor/diagnose/diagnose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "data/plan/check.h"
#include "data/plan/limits.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/training_facts.h"
#include "predictor/cli/command.h"
#include "predictor/cli/measured_step.h"
#include "predictor/search/one_worker.h"

namespace stepcast::cli {
namespace {

constexpr int kSeveral = 8;  // connections of --link-rate

// Options that tell a step of the job, or of a part of it.
constexpr const char* kOneNode = "one-node";
constexpr const char* kHostsAlone = "slowest-alone";
constexpr const char* kMadeUp = "synthetic-input";
constexpr const char* kExchange = "exchange-alone";

po::options_description DiagnoseOptions() {
  po::options_description options("options");
  AddTargetOptions(&options);
  AddPlanOptions(&options);
  options.add_options()("measured", OptionValue("T"),
                        "what a step takes: \"0.43 s\" or \"0.43 s/it\", or how fast it goes: "
                        "\"2.3 it/s\", or \"240 samples/s\" of all workers")(
      kOneWorker, OptionValue("T"), "the same of one device alone, at the same batch")(
      kOneNode, OptionValue("T"), "the same of one node alone, with all its devices")(
      kHostsAlone, OptionValue("T"), "the longest of one device alone on each host in turn")(
      kMadeUp, OptionValue("T"), "the same of the whole job on samples made up in memory")(
      kExchange, OptionValue("T"),
      "what the workers take to exchange the gradients, without a training")(
      "also", OptionValues("KEY=V,...: T"),
      "the same of another plan: what differs, like \"accumulation=4: 1.2 s\" or "
      "\"placement=8, local-batch=32: 240 samples/s\"; may be repeated")(
      "flow-rate", OptionValue("RATE"), "what one connection between two nodes carries (iperf3)")(
      "link-rate", OptionValue("RATE"), "what eight carry at once (iperf3 -P 8)")(
      "ping", OptionValue("TIME"), "round trip between two nodes, as measured")(
      "lost", OptionValue("K/N"), "packets lost between two nodes, of how many: 12/100000")(
      "parameters", OptionValue("N"),
      "of a network that nobody knows by name; needs --one-worker or another part's step")(
      "json", "print one JSON object")("help", "print this text");
  return options;
}

// "accumulation=4, local-batch=32: 1.2 s".
Measurement ReadOther(const std::string& text, const Target& target, const Plan& plan) {
  const InputPlace place = OptionPlace("also");
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0) {
    throw InputError(place, text, colon == 0 ? "does not say what differs" : "has no time",
                     "KEY=V,...: T, like \"accumulation=4: 1.2 s\"");
  }
  Plan other = plan;
  std::size_t begin = 0;
  while (begin < colon) {
    const std::size_t end = std::min(text.find(',', begin), colon);
    const std::size_t from = text.find_first_not_of(' ', begin);
    const std::size_t equals = text.find('=', begin);
    if (equals >= end) {
      throw InputError(place, text.substr(begin, end - begin), "has no value",
                       "KEY=V, like accumulation=4");
    }
    const std::string key = text.substr(from, equals - from);
    if (key == "workers" || key == "placement") other.hosts.clear();
    SetPlanOption(key, text.substr(equals + 1, end - equals - 1), target.cluster, place, &other);
    begin = end + 1;
  }
  const std::size_t value = text.find_first_not_of(' ', colon + 1);
  return Measurement::Step(
      other, ReadStep(value == std::string::npos ? "" : text.substr(value), place, other));
}

Measurement ReadLoss(const std::string& text) {
  const InputPlace place = OptionPlace("lost");
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) {
    throw InputError(place, text, "does not say of how many", "K/N, like 12/100000");
  }
  constexpr long long kMostPackets = 1'000'000'000'000;
  const long long sent = ParseLongInteger(text.substr(slash + 1), place, 1, kMostPackets);
  const long long lost = ParseLongInteger(text.substr(0, slash), place, 0, sent - 1);
  return Measurement::Loss(static_cast<double>(lost) / static_cast<double>(sent),
                           static_cast<double>(sent));
}

Complaint ReadComplaint(const Arguments& args, const Target& target) {
  Complaint complaint;
  complaint.plan = ReadPlan(args, target);
  RequireBatch(complaint.plan);
  const Plan& plan = complaint.plan;
  complaint.step = ReadStep(args.Required("measured"), OptionPlace("measured"), plan);
  std::vector<Measurement>& known = complaint.known;
  const auto step = [&](const char* option, const Plan& of) -> Measurement& {
    known.push_back(Measurement::Step(of, ReadStep(args.Text(option), OptionPlace(option), of)));
    return known.back();
  };
  if (args.Has(kOneWorker)) step(kOneWorker, AloneOf(plan));
  if (args.Has(kHostsAlone)) step(kHostsAlone, AloneOf(plan)).slowest_of_hosts = true;
  if (args.Has(kMadeUp)) step(kMadeUp, plan).synthetic_input = true;
  const auto require = [](bool says_something, const char* option, const char* allowed) {
    if (says_something) return;
    throw InputError(OptionPlace(option), "", "says nothing beside this plan", allowed);
  };
  if (args.Has(kExchange)) {
    require(WorkersExchange(plan) || UsesServers(plan.strategy), kExchange,
            "workers that exchange gradients");
    step(kExchange, plan).exchange_alone = true;
  }
  if (args.Has(kOneNode)) {
    require(plan.nodes() > 1 && !UsesServers(plan.strategy), kOneNode,
            "workers on several nodes, without parameter servers");
    const Plan node = OneNodeOf(plan);
    step(kOneNode, node.workers() == 1 ? AloneOf(plan) : node);
  }
  for (const std::string& text : args.Texts("also")) {
    known.push_back(ReadOther(text, target, plan));
  }
  const auto rate = [&](const char* option, int connections) {
    if (!args.Has(option)) return;
    known.push_back(
        Measurement::Rate(ParseDataRate(args.Text(option), OptionPlace(option)), connections));
  };
  rate("flow-rate", 1);
  rate("link-rate", kSeveral);
  if (args.Has("ping")) {
    known.push_back(Measurement::RoundTrip(ParseDuration(args.Text("ping"), OptionPlace("ping"))));
  }
  if (args.Has("lost")) known.push_back(ReadLoss(args.Text("lost")));
  return complaint;
}

bool HasPart(const Arguments& args) { return args.Has(kOneWorker) || args.Has(kOneNode); }
bool HasDevice(const Arguments& args) {
  return args.Has("device") || args.Has("cluster") || args.Has("profile");
}

// How long a job computes a device tells, of a network that is known by name, or the step of a part
// of it. `has_part`: there is, or may be, one.
void RequireCompute(const Arguments& args, bool has_part) {
  const bool is_named = !args.Has("parameters");
  if (has_part || (is_named && HasDevice(args))) return;
  throw InputError(OptionPlace(kOneWorker), "",
                   fmt::format("is required{}, or --one-node, or --also of fewer workers{}",
                               is_named ? "" : " with --parameters",
                               is_named ? ", or --device, --cluster or --profile" : ""),
                   "a step's time: nothing else tells how long it computes");
}

// The network may be one of which nothing but its size is known.
Target ReadComplainant(const Arguments& args) {
  const bool may_have_part = HasPart(args) || args.Has("also");
  RequireCompute(args, may_have_part);
  return ReadTarget(args, "", !may_have_part);
}

Json PartsJson(const StepTime<double>& parts) {
  return {{"compute_s", parts.compute().in(kSeconds)},
          {"exposed_transfer_s", parts.exposed_transfer.in(kSeconds)},
          {"exposed_latency_s", parts.exposed_latency.in(kSeconds)},
          {"straggler_wait_s", parts.straggler_wait.in(kSeconds)},
          {"coding_s", parts.coding.in(kSeconds)},
          {"input_wait_s", parts.input_wait.in(kSeconds)}};
}

Json DiagnosisJson(const Diagnosis& d, const Plan& plan, const Target& target) {
  Json json;
  json["workload"] = target.workload.name;
  json["device"] = target.device;
  TellTraining(target.workload, &json);
  json["plan"] = PlanJson(plan);
  json["measured_s"] = d.measured.in(kSeconds);
  json["expected_s"] = d.expected.in(kSeconds);
  json["low_s"] = d.low.in(kSeconds);
  json["high_s"] = d.high.in(kSeconds);
  json["expected_parts"] = PartsJson(d.expected_parts);
  json["verdict"] = VerdictOf(d);
  json["binding"] = d.binding.part;
  json["at_odds"] = d.at_odds;
  json["causes"] = Json::array();
  for (const ExplainedBy& cause : d.causes) {
    Json one = {{"cause", kCauseNames[static_cast<int>(cause.cause)]},
                {"probability", cause.probability},
                {"text", CauseText(cause, d)},
                {"step_time_s", cause.step.in(kSeconds)},
                {"added_s", cause.added.in(kSeconds)},
                {"surprise", cause.surprise}};
    if (!cause.size.unit.empty() || cause.size.high > cause.size.low) {
      one["size"] = {{"value", cause.size.value},
                     {"low", cause.size.low},
                     {"high", cause.size.high},
                     {"unit", cause.size.unit}};
    } else {
      one["size"] = nullptr;
    }
    json["causes"].push_back(std::move(one));
  }
  json["remedies"] = Json::array();
  for (const Remedy& remedy : d.remedies) {
    json["remedies"].push_back(
        {{"text", remedy.text},
         {"repairs", remedy.repairs},
         {"step_time_s", remedy.step.in(kSeconds)},
         {"throughput_samples_per_s", remedy.throughput.in(kSamplesPerSecond)},
         {"gain", remedy.gain},
         {"plan", PlanJson(remedy.plan)}});
  }
  json["next"] = nullptr;
  if (d.next) {
    Json forecasts = Json::object();
    for (const auto& [cause, text] : d.next->forecasts) {
      forecasts[kCauseNames[static_cast<int>(cause)]] = text;
    }
    json["next"] = {{"text", d.next->text},
                    {"command", d.next->command},
                    {"bits", d.next->bits},
                    {"forecasts", forecasts}};
  }
  return json;
}

// Where the time of a step goes, as a bar.
std::string PartsText(Duration<> step, const StepTime<double>& parts, const Style& style) {
  std::vector<BarPart> bar;
  const auto add = [&](const char* label, Duration<> time) {
    bar.push_back({label, time.in(kSeconds), FormatDuration(time)});
  };
  add("compute", parts.compute());
  add("exposed transfer", parts.exposed_transfer);
  add("exposed latency", parts.exposed_latency);
  add("waiting for stragglers", parts.straggler_wait);
  if (parts.coding.si() > 0) add("coding", parts.coding);
  const Duration<> rest = step - parts.supplied();
  if (rest > step * 1e-6) add("waiting for input", rest);
  return StackedBar(bar, TerminalWidth() - 4, style);
}

std::string Line(const char* name, const std::string& text) {
  return HangingLine(fmt::format("  {:<11}", name), text, TerminalWidth());
}

// "940 Mbit/s if it is link; 8.99 Gbit/s if it is loss or nothing is wrong".
std::string ForecastsText(const NextMeasurement& next) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const auto& [cause, text] : next.forecasts) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&, &value = text](const auto& one) { return one.first == value; });
    if (group == groups.end()) group = groups.insert(groups.end(), {text, {}});
    group->second.emplace_back(cause == Cause::kNothing
                                   ? "nothing is wrong"
                                   : std::string("it is ") + kCauseNames[static_cast<int>(cause)]);
  }
  std::string all;
  for (const auto& [value, causes] : groups) {
    all += fmt::format("{}{} if {}", all.empty() ? "" : "; ", value, fmt::join(causes, " or "));
  }
  return all;
}

void PrintDiagnosis(const Diagnosis& d, const Plan& plan, const Target& target) {
  const Style style = DetectStyle();
  const auto heading = [&](const std::string& text) { return "\n" + Heading(text, style); };
  std::string out = Heading(fmt::format("{} on {}: {}", DescribeWorkload(target.workload),
                                        target.device, DescribePlan(plan)),
                            style);
  out += Line("measured", fmt::format("{}, {}", FormatDuration(d.measured),
                                      FormatThroughput(CountedSamples(plan) / d.measured)));
  out += Line("should be", fmt::format("{}  (90 % interval of a healthy cluster {} to {})",
                                       FormatDuration(d.expected), FormatDuration(d.low),
                                       FormatDuration(d.high)));
  out += Line("verdict", VerdictOf(d));
  const ExplainedBy& first = d.causes.front();
  if (first.cause == Cause::kNothing && first.size.text.empty() && !d.is_short() &&
      d.is_explained()) {
    out += Line("", d.binding.sentence);
  }
  if (d.is_met()) {
    out += heading("Where the time goes") + PartsText(first.step, first.parts, style);
  }
  out += heading(d.is_met() ? "What may be wrong" : "What comes nearest");
  Table causes({"probability", LeftColumn("cause"), "step", LeftColumn("")});
  std::vector<ExplainedBy> sorted = d.causes;
  std::stable_sort(sorted.begin(), sorted.end(), [](const ExplainedBy& a, const ExplainedBy& b) {
    return a.probability > b.probability;
  });
  for (const ExplainedBy& cause : sorted) {
    constexpr double kWorthSaying = 0.005;
    if (cause.probability < kWorthSaying) continue;
    causes.AddRow({FormatPercent(cause.probability), kCauseNames[static_cast<int>(cause.cause)],
                   FormatDuration(cause.step), CauseText(cause, d)});
  }
  out += causes.Render(style, 2);
  if (!d.remedies.empty()) {
    out += heading(first.cause == Cause::kNothing ? "What would bring more"
                                                  : "What would help, if that is it");
    Table remedies({"throughput", "step", LeftColumn("with")});
    for (const Remedy& remedy : d.remedies) {
      remedies.AddRow({FormatFactor(remedy.gain), FormatDuration(remedy.step), remedy.text});
    }
    out += remedies.Render(style, 2);
  }
  if (d.next && d.is_met()) {
    out += heading("What to measure next");
    out += Line("measure", d.next->text);
    out += Line("by", d.next->command);
    out += Line("expect", ForecastsText(*d.next));
  }
  Print(out);
}

}  // namespace

int RunDiagnose(const std::vector<std::string>& arguments) {
  const po::options_description options = DiagnoseOptions();
  const Arguments args("diagnose", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp(
        "stepcast diagnose --workload W --local-batch N --workers N --measured T "
        "[--one-worker T] ...",
        "Says why a measured step is longer than it should be: which single cause explains it\n"
        "best and how sure that is, what would help and by how much, and which measurement\n"
        "would tell most next. Whatever else was measured makes it surer; how long it computes\n"
        "is told by --device, --cluster, --one-worker, --one-node or --also of fewer workers.",
        options,
        "  stepcast diagnose --workload resnet50 --device v100 --local-batch 64 --placement 4-4 "
        "--bandwidth \"10 Gbit/s\" --measured \"300 samples/s\" --one-node \"608 samples/s\"\n"
        "  stepcast diagnose --parameters 22000000 --local-batch 32 --workers 2 --one-worker "
        "\"0.2 s\" --measured \"1.9 s\" --flow-rate \"625 Mbit/s\"\n");
    return kDone;
  }
  const Target target = ReadComplainant(args);
  const Complaint complaint = ReadComplaint(args, target);
  const bool has_smaller =
      std::any_of(complaint.known.begin(), complaint.known.end(), [&](const Measurement& known) {
        return known.what == Measured::kStep && known.plan.workers() < complaint.plan.workers();
      });
  RequireCompute(args, HasPart(args) || has_smaller);
  const Diagnosis diagnosis = Diagnose(target.MakePredictor(), complaint);
  if (args.Has("json")) {
    PrintJson(DiagnosisJson(diagnosis, complaint.plan, target));
  } else {
    PrintDiagnosis(diagnosis, complaint.plan, target);
  }
  return kDone;
}

}  // namespace stepcast::cli
