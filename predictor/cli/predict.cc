// stepcast predict: one plan, answered.
#include <fmt/format.h>

#include "predictor/cli/command.h"

namespace stepcast::cli {
namespace {

std::string MemoryText(const MemoryNeed& memory) {
  if (memory.activations.si() == 0) {
    return "at least " + FormatSize(memory.total) + ": activations are unknown without layers";
  }
  std::string text = "about " + FormatSize(memory.total);
  if (memory.available) text += " of " + FormatSize(*memory.available);
  return text + fmt::format(": {}", kMemoryVerdictNames[static_cast<int>(memory.verdict)]);
}

std::string TrafficText(const Traffic& traffic) {
  if (traffic.transfers == 0) return "none";
  std::string text = fmt::format("{} each way per worker", FormatSize(traffic.per_worker));
  if (traffic.per_server) {
    text += fmt::format(", {} per server", FormatSize(*traffic.per_server));
  }
  return text + fmt::format("; {} in {} transfers", FormatSizeExact(traffic.total),
                            FormatCount(traffic.transfers));
}

void PrintPrediction(const Prediction& p, const Plan& plan, const Target& target) {
  const Style style = DetectStyle();
  const auto line = [](const char* name, const std::string& text) {
    return fmt::format("  {:<12}{}\n", name, text);
  };
  std::string out = Heading(fmt::format("{} on {} ({}): {}", target.workload.name,
                                        target.cluster.name, target.device, DescribePlan(plan)),
                            style);
  out += line("step", fmt::format("{}  (90 % interval {} to {})", FormatDuration(p.step_time),
                                  FormatDuration(p.low), FormatDuration(p.high)));
  out += line("throughput", FormatThroughput(p.throughput));
  out += line("idle", FormatPercent(p.idle_ratio()) + " of the step");
  out += line("binding", FindBinding(p).sentence);
  const StepTime<double>& b = p.breakdown;
  std::vector<BarPart> parts;
  const auto part = [&](const char* label, Duration<> time) {
    parts.push_back({label, time.in(kSeconds), FormatDuration(time), -1});
  };
  part("forward", b.forward);
  part("backward", b.backward);
  part("exposed transfer", b.exposed_transfer);
  part("exposed latency", b.exposed_latency);
  part("waiting for stragglers", b.straggler_wait);
  out += "\n" + StackedBar(parts, TerminalWidth() - 4, style);
  if (b.synchronisation.si() > 0) {
    out += fmt::format("  {} of synchronisation, {} of it hidden behind the backward pass\n",
                       FormatDuration(b.synchronisation),
                       FormatDuration(b.synchronisation - b.exposed()));
  }
  out += "\n" + line("traffic", TrafficText(p.traffic)) + line("memory", MemoryText(p.memory));
  for (const std::string& flag : p.flags) out += FlagLine(flag, style, TerminalWidth());
  Print(out);
}

}  // namespace

int RunPredict(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddTargetOptions(&options);
  AddPlanOptions(&options);
  options.add_options()("json", "print one JSON object")("help", "print this text");
  const Arguments args("predict", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast predict --cluster C --workload W --local-batch N [--workers N] ...",
              "Predicts one training step: its time with a 90 % interval, what it is made of,\n"
              "what it puts on the network, whether it fits in memory.",
              options,
              "  stepcast predict --cluster ufrgs-tupi --workload resnet50 --local-batch 128 "
              "--workers 2\n"
              "  stepcast predict --device t4 --workload bert_base --local-batch 8 --workers 4 "
              "--bandwidth \"10 Gbit/s\"\n"
              "  stepcast predict --cluster ec2-g3-ps --workload inception_v3 --local-batch 32 "
              "--workers 8 --strategy ps-sync --servers 1\n");
    return kDone;
  }
  const Target target = ReadTarget(args);
  const Plan plan = ReadPlan(args, target);
  RequireBatch(plan);
  const Prediction prediction = target.MakePredictor().Predict(plan);
  if (args.Has("json")) {
    PrintJson(PredictionJson(prediction, plan, target));
  } else {
    PrintPrediction(prediction, plan, target);
  }
  return prediction.memory.verdict == MemoryVerdict::kOutOfMemory ? kAnswerIsNo : kDone;
}

}  // namespace stepcast::cli
