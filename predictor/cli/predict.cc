// stepcast predict: one plan, answered.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "data/plan/fields.h"
#include "data/record/link_path.h"
#include "data/values/workload_scope.h"
#include "microbench/script/wanted_runs.h"
#include "model/network/sharing.h"
#include "predictor/binding.h"
#include "predictor/cli/command.h"
#include "predictor/cli/measured_step.h"
#include "predictor/cli/outlook.h"
#include "predictor/shared_link.h"

namespace stepcast::cli {
namespace {

std::string MemoryText(const MemoryNeed& memory) {
  if (memory.activations.si() == 0) {
    return "at least " + FormatSize(memory.total) + ": activations are unknown without layers" +
           (memory.verdict == MemoryVerdict::kFits ? ", but as large a batch has run" : "");
  }
  std::string text = "about " + FormatSize(memory.total);
  if (memory.available) text += " of " + FormatSize(*memory.available);
  const bool has_run = memory.may_fit() && memory.exceeds();
  return text + fmt::format(": {}{}", kMemoryVerdictNames[static_cast<int>(memory.verdict)],
                            !has_run ? ""
                            : memory.ran_without_copies
                                ? ", but as large a step has run without the exchange"
                                : ", but as large a step has run");
}

// Of asynchronous servers one update is counted; where the network adds up or copies, what crosses
// the servers' links and not what all workers send (model/exchange/traffic.h).
std::string TrafficText(const Traffic& traffic, int buckets, const Plan& plan) {
  if (traffic.transfers == 0) return "none";
  const bool of_update = TraitsOf(plan.strategy).asynchronous();
  const bool is_merged = plan.server.multicast || plan.server.in_network_aggregation;
  std::string text;
  if (plan.local_steps > 1) text = fmt::format("every {} steps ", plan.local_steps);
  if (of_update) text += "each update of a worker ";
  text +=
      fmt::format("{} each way{}", FormatSize(traffic.per_worker), of_update ? "" : " per worker");
  if (traffic.per_server) {
    text += fmt::format(", {} per server", FormatSize(*traffic.per_server));
  }
  text += fmt::format("; {} in {} transfers",
                      is_merged ? FormatSize(traffic.total) + " on the servers' links"
                                : "in all " + FormatSize(traffic.total),
                      FormatCount(traffic.transfers * buckets));
  return buckets > 1 ? text + fmt::format(", {} for each of {} buckets",
                                          FormatCount(traffic.transfers), FormatCount(buckets))
                     : text;
}

// "  name        text", wrapped at `width` columns under the text.
std::string NamedLine(const char* name, const std::string& text, int width) {
  constexpr int kIndent = 14;
  return HangingLine(fmt::format("  {:<{}}", name, kIndent - 2), text, width);
}

// Jobs on the same links, the one that is asked for first.
struct JobsBeside {
  std::vector<std::string> names;
  std::vector<Predictor> predictors;
  std::vector<SharingJob> jobs;
  std::vector<SharedJob> shared;
};

// The rows of a file as `stepcast plan --output` writes it, on the same cluster. What a row does
// not say of its links is as the plan has it.
JobsBeside ReadJobsBeside(const std::string& path, const Target& target, const Plan& plan) {
  // Who else is on its links is what the file is to say.
  const auto require_alone = [&](const StepFacts& facts, const InputPlace& place) {
    if (facts.link.others.value_or(0) == 0 && facts.server_link.others.value_or(0) == 0) return;
    throw InputError(place, path,
                     "says who else is on the links, of which others are stated already",
                     "one of the two: without link-others, and `others` in the cluster file");
  };
  JobsBeside beside;
  const std::vector<Run> runs = script::ReadPlannedRuns(path);
  if (runs.size() >= kMostJobsOnLink) {
    throw InputError({path, 0, ""}, std::to_string(runs.size()), "jobs are too many",
                     fmt::format("at most {}", kMostJobsOnLink - 1));
  }
  beside.predictors.reserve(runs.size() + 1);
  const auto add = [&](const std::string& name, const Target& of, const Plan& its) {
    beside.names.push_back(name + ", " + DescribePlan(its));
    beside.predictors.push_back(of.MakePredictor());
    beside.jobs.push_back({&beside.predictors.back(), its});
  };
  add(target.workload.name, target, plan);
  require_alone(beside.predictors.back().Facts(plan), OptionPlace("beside"));
  for (const Run& run : runs) {
    try {
      Target of = target;
      of.workload = of.library.LoadWorkload(run.workload);
      of.facts = of.library.LookUpDevice(run.device, of.cluster);
      of.device = of.facts ? of.facts->name : run.device;
      if (of.cluster.calibration) {
        TrainAsFitted(*of.cluster.calibration, of.device, {}, &of.workload);
      }
      of.profile = nullptr;
      Plan its = run.plan;
      its.link = Overlay(plan.link, its.link);
      its.server_link = Overlay(plan.server_link, its.server_link);
      add(of.workload.name, of, its);
      require_alone(beside.predictors.back().Facts(its), {});
    } catch (const InputError& e) {
      throw InRow(e, run.place);
    }
  }
  beside.shared = ShareLink(beside.jobs);
  return beside;
}

std::string BesideText(const JobsBeside& beside, const Style& style) {
  const auto apart = std::count_if(beside.shared.begin(), beside.shared.end(),
                                   [](const SharedJob& job) { return job.met == 0; });
  const bool all_apart = apart == std::ssize(beside.shared);
  Table table({LeftColumn(all_apart ? "jobs on links of their own" : "jobs on the same links"),
               "link busy", "step alone", "beside", "longer"});
  double busy = 0;
  for (std::size_t i = 0; i < beside.jobs.size(); ++i) {
    const SharedJob& job = beside.shared[i];
    if (job.met > 0) busy = std::max(busy, job.together);
    table.AddRow({beside.names[i], FormatPercent(job.link_busy), FormatDuration(job.alone),
                  FormatDuration(job.beside), FormatPercent(job.beside / job.alone - 1)});
  }
  if (all_apart) {
    return "\n" + table.Render(style, 2) +
           NoteLine(
               "No two of the jobs have a host in common, nor uplinks that hold both back: "
               "none costs another anything.",
               style, TerminalWidth());
  }
  std::string note = "Steps are taken to drift against each other. ";
  note += busy <= 1
              ? fmt::format(
                    "If the jobs took turns, none would lose anything: together they send "
                    "{} of the time.",
                    FormatPercent(busy))
              : fmt::format("Taking turns would not do: alone they would send {} of the time.",
                            FormatPercent(busy));
  if (apart > 0) {
    note += fmt::format(" {} of the {} jobs {} no link in common with another.", apart,
                        beside.jobs.size(), apart == 1 ? "has" : "have");
  }
  return "\n" + table.Render(style, 2) + NoteLine(note, style, TerminalWidth());
}

std::string WorkText(const ModelWork& work) {
  const std::string rate =
      fmt::format("{} TFLOP/s a device", FormatNumber(work.rate.in(kTeraflopPerSecond)));
  if (!work.of_peak) return rate;
  return fmt::format("{}, {} of its peak (MFU)", rate, FormatPercent(*work.of_peak));
}

void PrintPrediction(const Predictor& predictor, const Prediction& p, const Plan& plan,
                     const Target& target, const JobOutlook& job,
                     const std::optional<JobsBeside>& beside) {
  const Style style = DetectStyle();
  const auto line = [](const char* name, const std::string& text) {
    return NamedLine(name, text, TerminalWidth());
  };
  std::string out = PlanHeading(target, plan, style);
  const auto lines = [&](const NamedLines& named) {
    for (const auto& [name, text] : named) out += line(name.c_str(), text);
  };
  const std::string interval = IntervalText(p);
  if (job.limit && !job.limit->finishes) {
    // Not a time to trust: nobody has seen such a step end.
    out += line("step", LimitText(*job.limit));
    out += line("", "predicted " + interval);
  } else {
    out += line("step", interval);
    if (job.limit) out += line("", LimitText(*job.limit));
  }
  // A step of a round of local ones is their mean: one of them has the exchange of all.
  const bool rare = plan.local_steps > 1;
  out += line("quantiles",
              fmt::format("half the {} within {}{}, 95 % within {}, 99 % within {}",
                          rare ? fmt::format("rounds of {} steps", plan.local_steps) : "steps",
                          FormatDuration(p.p50), rare ? " a step" : "", FormatDuration(p.p95),
                          FormatDuration(p.p99)));
  out += line("throughput", FormatThroughput(p.throughput));
  if (p.work) out += line("work", WorkText(*p.work));
  out += line("idle", FormatPercent(p.idle_ratio()) + " of the step");
  out += line("binding", FindBinding(p).sentence);
  const StepTime<double>& b = p.breakdown;
  std::vector<BarPart> parts;
  const auto part = [&](const char* label, Duration<> time) {
    parts.push_back({label, time.in(kSeconds), FormatDuration(time)});
  };
  part("forward", b.forward);
  part("backward", b.backward);
  part("update", b.update);
  part("exposed transfer", b.exposed_transfer);
  part("exposed latency", b.exposed_latency);
  part("waiting for stragglers", b.straggler_wait);
  if (b.coding.si() > 0) part("coding", b.coding);
  if (b.input_wait.si() > 0) part("waiting for input", b.input_wait);
  out += "\n" + StackedBar(parts, TerminalWidth() - 4, style);
  // How much an asynchronous worker hides is not known apart.
  if (b.synchronisation.si() > 0 && !TraitsOf(plan.strategy).asynchronous()) {
    const Shard shard = plan.shard_on_nodes();
    const bool gathers = GathersUnits(shard) &&
                         SharersOf(shard, plan.workers(), DevicesOnFullestNode(plan.placement)) > 1;
    out += fmt::format("  {} of synchronisation, {} of it hidden behind {}\n",
                       FormatDuration(b.synchronisation),
                       FormatDuration(b.synchronisation - b.exposed()),
                       !gathers                  ? "the backward pass"
                       : shard == Shard::kHybrid ? "both passes and itself"
                                                 : "both passes");
  }
  out += "\n" + line("traffic", TrafficText(p.traffic, p.buckets, plan));
  if (const BusyLink busy = LinkBusy(predictor, plan); busy.share > 0) {
    out += line(busy.is_core ? "core busy" : "link busy",
                fmt::format("{} of the step, if it has {} to itself", FormatPercent(busy.share),
                            busy.is_core ? "the uplinks" : "it"));
  }
  out += line("memory", MemoryText(p.memory));
  if (plan.input_rate && !target.workload.communication_only) {
    out += line("input", InputText(*plan.input_rate, predictor.InputNeeded(plan)));
  }
  lines(StrategyLines(p, plan, target));
  lines(OutlookLines(job, plan));
  if (beside) out += BesideText(*beside, style);
  for (const std::string& flag : p.flags) out += FlagLine(flag, style, TerminalWidth());
  Print(out);
}

Json BesideJson(const JobsBeside& beside) {
  Json list = Json::array();
  for (std::size_t i = 0; i < beside.jobs.size(); ++i) {
    const SharedJob& job = beside.shared[i];
    list.push_back({{"workload", beside.jobs[i].predictor->workload().name},
                    {"plan", PlanJson(beside.jobs[i].plan)},
                    {"link_busy", job.link_busy},
                    {"others", job.others},
                    {"alone_s", job.alone.in(kSeconds)},
                    {"beside_s", job.beside.in(kSeconds)}});
  }
  return list;
}

}  // namespace

int RunPredict(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddTargetOptions(&options);
  AddKnownOptions(&options);
  AddPlanOptions(&options);
  AddLimitOption(&options);
  AddNoiseOptions(&options);
  AddJobOptions(&options);
  options.add_options()("beside", OptionValue("R.csv"),
                        "jobs on the same links: rows of a runs file, whatever times they have")(
      "json", "print one JSON object")("help", "print this text");
  const Arguments args("predict", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp(
        "stepcast predict --cluster C --workload W --local-batch N [--workers N] ...",
        "Predicts one training step: its time with a 90 % interval, what it is made of,\n"
        "what it puts on the network, whether it fits in memory. With --data-set,\n"
        "--noise-scale or --node-mtbf also what it means for the whole job; with --beside what it\n"
        "and other jobs on the same links cost each other. Of --json,\n"
        "synchronisation_s counts what is hidden as well, with ps-async only what shows.",
        options,
        "  stepcast predict --cluster ufrgs-tupi --workload resnet50 --local-batch 128 "
        "--workers 2\n"
        "  stepcast predict --device t4 --workload bert_base --local-batch 8 --workers 4 "
        "--bandwidth \"10 Gbit/s\"\n"
        "  stepcast predict --device a100 --parameters 350000000 --one-worker \"210 ms\" "
        "--local-batch 8 --workers 4 --bandwidth \"25 Gbit/s\"\n"
        "  stepcast predict --cluster ec2-g3-ps --workload inception_v3 --local-batch 32 "
        "--workers 8 --strategy ps-sync --servers 1\n"
        "  stepcast predict --cluster gce-t4 --workload vgg19 --local-batch 32 --workers 16 "
        "--data-set 1281167 --noise-scale 8000 --known-batch 256\n"
        "  stepcast predict --cluster gce-t4 --workload vgg19 --local-batch 32 --workers 16 "
        "--node-mtbf \"60 d\" --checkpoint-time \"20 s\" --restart-time \"5 min\"\n"
        "  stepcast predict --cluster ufrgs-tupi --workload vgg16 --local-batch 32 "
        "--workers 2 --rtt \"100 ms\" --loss 0.1 --time-limit \"1 min\"\n");
    return kDone;
  }
  const Target target = ReadKnownTarget(args);
  Plan plan = ReadPlan(args, target);
  RequireBatch(plan);
  std::optional<JobsBeside> beside;
  if (args.Has("beside")) {
    beside = ReadJobsBeside(args.Text("beside"), target, plan);
    plan.link.others = beside->shared.front().others;
  }
  const OutlookOptions asked = ReadOutlookOptions(args);
  const Predictor predictor = target.MakePredictor();
  const Prediction prediction = predictor.Predict(plan);
  const JobOutlook job = MakeOutlook(prediction, plan, target.cluster, target.facts, asked);
  if (args.Has("json")) {
    Json json = PredictionJson(prediction, plan, target.subject());
    AddJobJson(job, &json);
    if (beside) json["beside"] = BesideJson(*beside);
    PrintJson(json);
  } else {
    PrintPrediction(predictor, prediction, plan, target, job, beside);
  }
  const bool may_fit = prediction.memory.may_fit();
  const bool finishes = !job.limit || job.limit->finishes;
  return may_fit && finishes ? kDone : kAnswerIsNo;
}

}  // namespace stepcast::cli
