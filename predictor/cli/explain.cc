// stepcast explain: every term of one prediction.
#include <fmt/format.h>

#include <algorithm>

#include "model/statistics/normal.h"
#include "predictor/cli/command.h"
#include "predictor/cli/measured_step.h"
#include "predictor/cli/wrapped.h"
#include "predictor/explanation.h"

namespace stepcast::cli {
namespace {

std::string NumberText(const NamedValue& value) {
  return FormatNumber(value.value) + (value.unit.empty() ? "" : " " + value.unit);
}

// "flow_bandwidth B_flow = 5 Gbit/s".
std::string ValueText(const NamedValue& value) {
  const std::string name = value.name.empty() ? "" : value.name + " ";
  const std::string symbol = value.symbol.empty() ? "" : value.symbol + " = ";
  return name + symbol + NumberText(value);
}

void PrintExplanation(const Explanation& explanation, const Plan& plan, const Target& target) {
  const Style style = DetectStyle();
  const Prediction& p = explanation.prediction;
  std::string out = PlanHeading(target, plan, style);
  out += "  step  " + IntervalText(p) + "\n\n";
  const bool norms = std::any_of(
      explanation.terms.begin(), explanation.terms.end(),
      [](const ExplainedTerm& term) { return term.formula.find("||") != std::string::npos; });
  if (norms) out += "  ||a, b||_q is (a^q + b^q)^(1/q), a soft maximum.\n\n";
  for (const ExplainedTerm& term : explanation.terms) {
    const std::string share =
        term.is_part ? fmt::format("  {} of the step", FormatPercent(term.share)) : "";
    out += fmt::format("  {}: {}{}\n", term.name, ValueText(term.result), share);
    out += WrappedText("      = ", term.formula);
    std::vector<std::string> inputs;
    for (const NamedValue& input : term.inputs) inputs.push_back(ValueText(input) + ",");
    if (!inputs.empty()) {
      inputs.back().pop_back();
      out += WrappedItems("        ", inputs);
    }
    const std::string model = term.model.empty() ? "" : term.model + ": ";
    out += WrappedText("      [", model + term.source + "]");
  }
  out += "\n" + Heading("What the step depends on", style);
  Table table({LeftColumn("parameter"), "value", "+1 % changes the step by", "90 % within",
               LeftColumn("from")});
  for (const ExplainedParameter& parameter : explanation.parameters) {
    table.AddRow(
        {parameter.value.symbol, NumberText(parameter.value),
         fmt::format("{:+.3f} %", parameter.elasticity),
         parameter.log_sd > 0 ? "x/ " + FormatNumber(NinetyPercentFactor(parameter.log_sd)) : "",
         parameter.origin == Origin::kFittedPrior
             ? "weak fit"
             : kOriginNames[static_cast<int>(parameter.origin)]});
  }
  out += table.Render(style, 2);
  for (const std::string& flag : p.flags) out += FlagLine(flag, style, TerminalWidth());
  Print(out);
}

}  // namespace

int RunExplain(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddTargetOptions(&options);
  AddKnownOptions(&options);
  AddPlanOptions(&options);
  options.add_options()("json", "print one JSON object")("help", "print this text");
  const Arguments args("explain", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp(
        "stepcast explain --cluster C --workload W --local-batch N [--workers N] ...",
        "Takes one prediction apart: every term with its formula, inputs and source, and\n"
        "what one per cent more of each parameter would change.",
        options,
        "  stepcast explain --cluster ufrgs-tupi --workload resnet50 --local-batch 128 "
        "--workers 2\n"
        "  stepcast explain --cluster ec2-g3-ps --workload vgg16 --local-batch 32 --workers 8 "
        "--strategy ps-sync --servers 2\n");
    return kDone;
  }
  const Target target = ReadKnownTarget(args);
  const Plan plan = ReadPlan(args, target);
  RequireBatch(plan);
  const Explanation explanation = target.MakePredictor().Explain(plan);
  if (args.Has("json")) {
    PrintJson(ExplanationJson(explanation, plan, target.subject()));
  } else {
    PrintExplanation(explanation, plan, target);
  }
  return kDone;
}

}  // namespace stepcast::cli
