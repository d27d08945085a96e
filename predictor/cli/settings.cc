#include "predictor/cli/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>

#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/suggest.h"
#include "data/values/text_as_number.h"
#include "model/step/parameter_specs.h"
#include "model/step/priors.h"

namespace stepcast::cli {
namespace {

// "fitted 3 GB/s" as the option --fix or --prior states it.
double ParseParameterValue(const ParameterSpec& spec, const std::string& text,
                           const InputPlace& place) {
  const std::string unit(spec.unit);
  if (unit.empty()) return ParseNumber(text, place, 0, 1e30);
  if (unit == "Gbit/s" || unit == "GB/s") return ParseDataRate(text, place).si();
  if (unit == "MB") return ParseDataSize(text, place).si();
  return ParseDuration(text, place).si();
}

const ParameterSpec& FindParameter(const std::string& name, const InputPlace& place) {
  if (const ParameterSpec* spec = FindParameterSpec(name)) return *spec;
  std::vector<std::string> names;
  for (const ParameterSpec* spec : kParameterSpecs) names.emplace_back(spec->name);
  throw InputError(place, name, "is not a parameter" + DidYouMean(name, names),
                   fmt::format("{}", fmt::join(names, ", ")));
}

// "1..16" of "1-16" and "1:16", which is a placement only where a placement is asked for.
std::string RangeMeant(const std::string& key, const std::string& item) {
  const std::size_t sign = item.find_first_not_of("0123456789");
  if (key == "placement" || sign == 0 || sign == std::string::npos) return "";
  const std::string to = item.substr(sign + 1);
  if ((item[sign] != '-' && item[sign] != ':') || !TextAsNumber<std::int64_t>(to)) return "";
  return to.front() == '-' ? "" : item.substr(0, sign) + ".." + to;
}

}  // namespace

SweepAxis ParseSweepAxis(const std::string& text, const InputPlace& place) {
  const std::size_t equals = text.find('=');
  const std::string allowed = "KEY=V,V,... or KEY=FROM..TO or KEY=FROM..TO..STEP";
  if (equals == std::string::npos || equals == 0) {
    throw InputError(place, text, "names no values", allowed);
  }
  SweepAxis axis;
  axis.key = text.substr(0, equals);
  const auto add = [&](const std::string& value) {
    if (axis.values.size() == kMostSweepPoints) {
      throw InputError(place, text, "has too many values",
                       "at most " + std::to_string(kMostSweepPoints));
    }
    axis.values.push_back(value);
  };
  for (const std::string& listed : SplitList(std::string_view(text).substr(equals + 1))) {
    const std::string item(Trim(listed));
    const std::size_t dots = item.find("..");
    if (item.empty()) throw InputError(place, text, "has an empty value", allowed);
    if (dots == std::string::npos) {
      if (const std::string range = RangeMeant(axis.key, item); !range.empty()) {
        throw InputError(place, item, "is no value" + DidYouMean(range), allowed);
      }
      add(item);
      continue;
    }
    const std::size_t second = item.find("..", dots + 2);
    const auto whole = [&](const std::string& part) {
      if (Trim(part).empty()) throw InputError(place, item, "is a range without an end", allowed);
      if (!TextAsNumber<std::int64_t>(Trim(part))) {
        throw InputError(place, item, "is no range of whole numbers", allowed);
      }
      return ParseInteger(part, place, 0, static_cast<int>(kMostSweepPoints) * 10);
    };
    const int from = whole(item.substr(0, dots));
    const int to = whole(item.substr(dots + 2, second - dots - 2));
    const int step = second == std::string::npos ? 1 : whole(item.substr(second + 2));
    if (to < from || step == 0) throw InputError(place, item, "is an empty range", allowed);
    for (int value = from; value <= to; value += step) add(std::to_string(value));
  }
  return axis;
}

ParameterStatement ParseStatement(const std::string& text, bool prior, const InputPlace& place) {
  const std::string form = prior ? "NAME=VALUE x/ FACTOR; SOURCE" : "NAME=VALUE; SOURCE";
  // A workload's name may have any character; a parameter's and a value's have none of these.
  const std::size_t equals = text.substr(0, text.find(';')).rfind('=');
  if (equals == std::string::npos) throw InputError(place, text, "has no value", form);
  ParameterStatement statement;
  statement.name = Trim(std::string_view(text).substr(0, equals));
  const std::size_t slash = statement.name.rfind('/');
  if (slash != std::string::npos) {
    statement.workload = statement.name.substr(0, slash);
    statement.name = statement.name.substr(slash + 1);
  }
  std::string value = text.substr(equals + 1);
  const std::size_t semicolon = value.find(';');
  if (semicolon != std::string::npos) {
    statement.source = Trim(std::string_view(value).substr(semicolon + 1));
    value = value.substr(0, semicolon);
  }
  if (statement.source.empty()) statement.source = "stated on the command line";
  const std::size_t times = value.find("x/");
  if (prior != (times != std::string::npos)) {
    throw InputError(place, text, prior ? "has no factor" : "has a factor, as a prior has", form);
  }
  if (prior) {
    const double factor =
        ParseNumber(Trim(std::string_view(value).substr(times + 2)), place, 1, 1e6);
    if (factor == 1) throw InputError(place, text, "leaves no doubt", "a factor above 1, or --fix");
    statement.factor = factor;
    value = value.substr(0, times);
  }
  const ParameterSpec& spec = FindParameter(statement.name, place);
  statement.si = ParseParameterValue(spec, std::string(Trim(value)), place);
  RequireInRange(spec, statement.si, {place.file, place.line, place.key + " " + statement.name});
  return statement;
}

}  // namespace stepcast::cli
