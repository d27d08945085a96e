// stepcast models: the catalogue of formulas, and the parameters that they read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "data/values/suggest.h"
#include "model/catalog/catalog.h"
#include "model/step/parameter_specs.h"
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

// The page, with the section.
std::string PageOf(const Home& home) { return std::string(home.files.page) + "#" + home.section; }

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
          {"known", known},
          {"function", model.home.function},
          {"header", model.home.files.header},
          {"page", PageOf(model.home)},
          {"test", model.home.files.test}};
}

Json ParameterJson(const ParameterSpec& spec) {
  return {{"name", spec.name},
          {"meaning", spec.meaning},
          {"unit", spec.unit.empty() ? "1" : spec.unit},
          {"prior", spec.prior},
          {"prior_log_sd", spec.prior_log_sd},
          {"low", spec.low},
          {"high", spec.high},
          {"source", spec.source},
          {"model", spec.model}};
}

std::string Line(const char* name, std::string_view text) {
  return text.empty() ? "" : WrappedText(fmt::format("  {:<11}", name), text);
}

// Where it stands in the repository.
std::string HomeText(const Home& home) {
  return Line("code", fmt::format("{}: {}", home.files.header, home.function)) +
         Line("derived in", PageOf(home)) + Line("tested in", home.files.test);
}

void PrintModel(const Model<double>& model, const Style& style) {
  std::string out = Heading(model.id, style);
  out += Line("says", model.sentence) + Line("formula", model.formula) +
         Line("unit", UnitText(model.output)) + Line("constants", model.constants) +
         Line("holds for", model.validity) + Line("source", model.source) + HomeText(model.home) +
         "\n";
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

void PrintParameter(const ParameterSpec& spec, const Model<double>& reader, const Style& style) {
  const std::string unit = spec.unit.empty() ? "" : fmt::format(" {}", spec.unit);
  std::string out = Heading(std::string(spec.name), style);
  out += Line("is", spec.meaning) + Line("unit", spec.unit.empty() ? "1" : spec.unit) +
         Line("prior", fmt::format("{:g}{} x/ {:.3g}, from {:g} to {:g}", spec.prior, unit,
                                   std::exp(spec.prior_log_sd), spec.low, spec.high)) +
         Line("source", spec.source) + Line("stated in", "model/step/parameters.h") +
         Line("read by", fmt::format("{}: {}", reader.id, reader.formula)) + HomeText(reader.home);
  Print(out + "\n");
}

// What an id that is not known was probably meant to be; its last part may have been all that was
// said.
std::string MeantModel(const std::string& wanted, const std::vector<Model<double>>& catalog) {
  std::map<std::string, std::string> meant;
  for (const ParameterSpec* spec : kParameterSpecs) meant.emplace(spec->name, spec->name);
  for (const Model<double>& model : catalog) {
    const std::string id = model.id;
    const std::size_t slash = id.find('/');
    meant.emplace(id, id);
    meant.emplace(id.substr(0, slash), id.substr(0, slash));
    meant.emplace(id.substr(slash + 1), id);
  }
  std::vector<std::string> words;
  for (const auto& [word, of] : meant) words.push_back(word);
  return DidYouMean(meant[NearestName(wanted, words)]);
}

}  // namespace

int RunModels(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  options.add_options()("json", "print one JSON object")("help", "print this text");
  po::options_description all;
  all.add(options).add_options()("input", po::value<std::vector<std::string>>());
  const Arguments args("models", all, "input", arguments);
  if (args.Has("help")) {
    PrintHelp(
        "stepcast models [ID ...]",
        "Lists the formulas that predictions are made of, and their parameters; with ids (or\n"
        "the first part of them) or names of parameters, prints each with its unit, range\n"
        "and source, and where its code, its derivation and its test are.",
        options, "  stepcast models\n  stepcast models collective/ring link_bandwidth\n");
    return kDone;
  }
  const std::vector<Model<double>> catalog = Catalog<double>();
  std::vector<const Model<double>*> chosen;
  std::vector<const ParameterSpec*> parameters;
  for (const std::string& wanted : args.Texts("input")) {
    if (const ParameterSpec* spec = FindParameterSpec(wanted)) {
      parameters.push_back(spec);
      continue;
    }
    const std::size_t before = chosen.size();
    for (const Model<double>& model : catalog) {
      const std::string id = model.id;
      if (id == wanted || id.rfind(wanted + "/", 0) == 0) chosen.push_back(&model);
    }
    if (chosen.size() == before) {
      throw InputError({"", 0, "ID"}, wanted,
                       "is not in the catalogue of models" + MeantModel(wanted, catalog),
                       "an id of stepcast models, its first part, like collective, or the name of "
                       "a parameter");
    }
  }
  const bool list = chosen.empty() && parameters.empty();
  if (list) {
    for (const Model<double>& model : catalog) chosen.push_back(&model);
    parameters.assign(kParameterSpecs.begin(), kParameterSpecs.end());
  }
  if (args.Has("json")) {
    Json json = Json::array();
    for (const Model<double>* model : chosen) json.push_back(ModelJson(*model));
    Json specs = Json::array();
    for (const ParameterSpec* spec : parameters) specs.push_back(ParameterJson(*spec));
    PrintJson(Json{{"models", json}, {"parameters", specs}});
    return kDone;
  }
  const Style style = DetectStyle();
  if (!list) {
    for (const Model<double>* model : chosen) PrintModel(*model, style);
    for (const ParameterSpec* spec : parameters) {
      PrintParameter(*spec,
                     *std::find_if(catalog.begin(), catalog.end(),
                                   [&](const auto& model) { return spec->model == model.id; }),
                     style);
    }
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
  out += "\n" + Heading("parameters", style);
  for (const ParameterSpec* spec : parameters) {
    out += fmt::format("  {}\n", spec->name) + WrappedText("      ", spec->meaning);
  }
  Print(out);
  return kDone;
}

}  // namespace stepcast::cli
