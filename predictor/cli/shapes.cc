#include "predictor/cli/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "data/record/input_error.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/suggest.h"
#include "predictor/cli/settings.h"
#include "predictor/report/terminal.h"

namespace stepcast::cli {
namespace {

using steps::Conditions;

// What a link can be given, by the flag of the plan's field that says it of a run.
constexpr const char* kShapes[] = {"bandwidth", "rtt", "loss"};

// The number that is set.
double SetShape(const std::string& key, const std::string& value, const InputPlace& place,
                Conditions* conditions) {
  const auto out_of_range = [&](const std::string& range) {
    return OutOfRange(place, key + "=" + value, range);
  };
  if (key == "bandwidth") {
    conditions->bandwidth = ParseDataRate(value, place);
    const double rate = conditions->bandwidth->si();
    if (rate < steps::kLeastSetRate || rate > steps::kMostSetRate) {
      throw out_of_range(fmt::format("{} to {}", FormatRate(BytesPerSecond(steps::kLeastSetRate)),
                                     FormatRate(BytesPerSecond(steps::kMostSetRate))));
    }
    return rate;
  }
  if (key == "rtt") {
    conditions->rtt = ParseDuration(value, place);
    // Microseconds are what tc takes.
    const double rtt = conditions->rtt->si();
    if (rtt > steps::kLongestSetRtt || (rtt > 0 && rtt < 2e-6)) {
      throw out_of_range(fmt::format("0 s, or 2 us to {} s", steps::kLongestSetRtt));
    }
    return rtt;
  }
  conditions->loss = ParseProbability(value, place);
  const double loss = *conditions->loss;
  if (loss > steps::kMostSetLoss || (loss > 0 && loss < 1e-8)) {
    throw out_of_range(fmt::format("0, or 1e-8 to {}", steps::kMostSetLoss));
  }
  return loss;
}

}  // namespace

std::vector<Conditions> ParseShapes(const std::vector<std::string>& texts,
                                    const InputPlace& place) {
  std::vector<SweepAxis> axes;
  for (const std::string& text : texts) {
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ';');) {
      part = Trim(part);
      if (part.empty()) continue;
      SweepAxis axis = ParseSweepAxis(part, place);
      axis.key = Trim(axis.key);
      if (!FindName(axis.key, kShapes)) {
        throw InputError(place, axis.key,
                         "is nothing that a link can be given" + DidYouMean(axis.key, kShapes),
                         JoinNames(kShapes));
      }
      if (std::any_of(axes.begin(), axes.end(),
                      [&](const SweepAxis& other) { return other.key == axis.key; })) {
        throw InputError(place, axis.key, "is stated twice", "all its values in one list");
      }
      axes.push_back(std::move(axis));
    }
  }
  if (axes.empty()) {
    throw InputError(place, "", "names no conditions",
                     "like \"bandwidth=100 Mbit/s,1 Gbit/s; rtt=0 ms,10 ms; loss=0,0.01\"");
  }
  std::vector<Conditions> cells(1);
  for (const SweepAxis& axis : axes) {
    std::set<double> seen;
    for (const std::string& value : axis.values) {
      Conditions of_value;
      if (!seen.insert(SetShape(axis.key, value, place, &of_value)).second) {
        throw InputError(place, axis.key + "=" + value, "is stated twice", "each value once");
      }
    }
    if (cells.size() * axis.values.size() > kMostDesignedRuns) {
      throw InputError(place, "", "makes too many conditions",
                       fmt::format("at most {}", kMostDesignedRuns));
    }
    std::vector<Conditions> crossed;
    for (const Conditions& cell : cells) {
      for (const std::string& value : axis.values) {
        SetShape(axis.key, value, place, &crossed.emplace_back(cell));
      }
    }
    cells = std::move(crossed);
  }
  return cells;
}

}  // namespace stepcast::cli
