// stepcast models: the catalogue of formulas.
#include <fmt/format.h>

#include "model/catalog/catalog.h"
#include "predictor/cli/command.h"

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
    return text.empty() ? std::string() : fmt::format("  {:<11}{}\n", name, text);
  };
  std::string out = Heading(model.id, style);
  out += line("says", model.sentence) + line("formula", model.formula) +
         line("unit", UnitText(model.output)) + line("constants", model.constants) +
         line("holds for", model.validity) + line("source", model.source) + "\n";
  Table table({{"symbol", "", Align::kLeft},
               {"unit", "", Align::kLeft},
               {"from", "", Align::kRight},
               {"to", "", Align::kRight},
               {"result", "", Align::kLeft},
               {"meaning", "", Align::kLeft}});
  for (const ModelInput& input : model.inputs) {
    table.AddRow({input.symbol, UnitText(input.unit), FormatNumber(input.low),
                  FormatNumber(input.high), TrendName(input.trend), input.meaning});
  }
  out += table.Render(style, 2);
  for (const KnownCase& entry : model.known) {
    out += fmt::format("  known: {}: {}\n", entry.says, FormatNumber(entry.expected));
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
  Table table({{"id", "", Align::kLeft}, {"what it says", "", Align::kLeft}});
  for (const Model<double>* model : chosen) table.AddRow({model->id, model->sentence});
  Print(table.Render(style));
  return kDone;
}

}  // namespace stepcast::cli
