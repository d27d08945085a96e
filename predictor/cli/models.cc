// stepcast models: the catalogue of formulas.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/catalog/catalog.h"
#include "predictor/cli/command.h"
#include "predictor/cli/wrapped.h"

namespace stepcast::cli {
namespace {

const char* TrendName(Trend trend) {
  switch (trend) {
    case Trend::kNeverFalls:
      return "grows";
    case Trend::kNeverRises:
      return "falls";
    case Trend::kEither:
      break;
  }
  return "either";
}

std::string UnitText(const char* unit) { return *unit == '\0' ? "1" : unit; }

Json ModelJson(const Model<double>& model) {
  Json inputs = Json::array();
  for (const ModelInput& input : model.inputs) {
    inputs.push_back({{"symbol", input.symbol},
                      {"unit", UnitText(input.unit)},
                      {"meaning", input.meaning},
                      {"low", input.low},
                      {"high", input.high},
                      {"output", TrendName(input.trend)}});
  }
  Json known = Json::array();
  for (const KnownCase& entry : model.known) {
    known.push_back({{"says", entry.says}, {"inputs", entry.inputs}, {"expected", entry.expected}});
  }
  return {{"id", model.id},
          {"sentence", model.sentence},
          {"formula", model.formula},
          {"source", model.source},
          {"validity", model.validity},
          {"unit", UnitText(model.output)},
          {"constants", model.constants},
          {"inputs", inputs},
          {"known", known}};
}

void PrintModel(const Model<double>& model, const Style& style) {
  const auto line = [](const char* name, const std::string& text) {
    return text.empty() ? std::string() : WrappedText(fmt::format("  {:<11}", name), text);
  };
  std::string out = Heading(model.id, style);
  out += line("says", model.sentence) + line("formula", model.formula) +
         line("unit", UnitText(model.output)) + line("constants", model.constants) +
         line("holds for", model.validity) + line("source", model.source) + "\n";
  std::size_t widest = 0;
  for (const ModelInput& input : model.inputs) {
    widest = std::max(widest, std::string(input.symbol).size());
  }
  for (const ModelInput& input : model.inputs) {
    out += WrappedText(
        fmt::format("  {:<{}}  ", input.symbol, widest),
        fmt::format("[{}] {}, {:g} to {:g}: the result {}", UnitText(input.unit), input.meaning,
                    input.low, input.high,
                    input.trend == Trend::kEither ? "grows or falls" : TrendName(input.trend)));
  }
  out += '\n';
  for (const KnownCase& entry : model.known) {
    out += WrappedText("  known: ", fmt::format("{}: gives {} {}", entry.says,
                                                FormatNumber(entry.expected), model.output));
  }
  Print(out + "\n");
}

}  // namespace

int RunModels(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  options.add_options()("json", "print one JSON object")("help", "print this text");
  po::options_description all;
  all.add(options).add_options()("input", po::value<std::vector<std::string>>());
  const Arguments args("models", all, "input", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast models [ID ...]",
              "Lists the formulas that predictions are made of; with ids (or the first part of\n"
              "them), prints each with its inputs, their ranges, where it holds and its source.",
              options, "  stepcast models\n  stepcast models collective/ring network\n");
    return kDone;
  }
  const std::vector<Model<double>> catalog = Catalog<double>();
  std::vector<const Model<double>*> chosen;
  for (const std::string& wanted : args.Texts("input")) {
    const std::size_t before = chosen.size();
    for (const Model<double>& model : catalog) {
      const std::string id = model.id;
      if (id == wanted || id.rfind(wanted + "/", 0) == 0) chosen.push_back(&model);
    }
    if (chosen.size() == before) {
      throw InputError({"", 0, "ID"}, wanted, "is not in the catalogue of models",
                       "an id of stepcast models, or its first part, like collective");
    }
  }
  const bool list = chosen.empty();
  if (list) {
    for (const Model<double>& model : catalog) chosen.push_back(&model);
  }
  if (args.Has("json")) {
    Json json = Json::array();
    for (const Model<double>* model : chosen) json.push_back(ModelJson(*model));
    PrintJson(Json{{"models", json}});
    return kDone;
  }
  const Style style = DetectStyle();
  if (!list) {
    for (const Model<double>* model : chosen) PrintModel(*model, style);
    return kDone;
  }
  // A heading for each first part of the ids, which may come again further down.
  std::vector<std::string> groups;
  std::map<std::string, std::string> lines;
  for (const Model<double>* model : chosen) {
    const std::string id = model->id;
    const std::string group = id.substr(0, id.find('/'));
    if (lines.count(group) == 0) groups.push_back(group);
    lines[group] += fmt::format("  {}\n", model->id) + WrappedText("      ", model->sentence);
  }
  std::string out;
  for (const std::string& group : groups) {
    out += (out.empty() ? "" : "\n") + Heading(group, style) + lines[group];
  }
  Print(out);
  return kDone;
}

}  // namespace stepcast::cli
