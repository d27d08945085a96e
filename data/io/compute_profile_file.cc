#include "data/io/compute_profile_file.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "data/io/strict_json.h"
#include "data/io/text_file.h"
#include "data/record/controls.h"
#include "data/record/input_error.h"
#include "data/values/names.h"
#include "data/values/operation_text.h"
#include "data/values/size_limits.h"

namespace stepcast {
namespace {

using nlohmann::json;
using Ordered = nlohmann::ordered_json;  // what is written

constexpr int kComputeFormat = 1;
constexpr const char* kComputeFormatKey = "stepcast_profile";
// A line, its device, and the facts of that; what nests without end is no profile.
constexpr int kDeepest = 3;

// An object of a line, read strictly: none of its keys is one that nobody asks for.
class Line {
 public:
  Line(std::string_view text, const std::string& path, int line)
      : Line(ParseStrictJson(text, kDeepest, {path, line, ""}, "one object a line"), path, line) {}
  Line(json object, const std::string& path, int line)
      : path_(path), line_(line), object_(std::move(object)) {
    if (!object_.is_object()) {
      throw InputError(PlaceOf(""), Shortened(object_.dump(), 40), "is no object",
                       "one object a line");
    }
  }

  bool Has(const char* key) {
    asked_.insert(key);
    return object_.contains(key);
  }
  InputPlace PlaceOf(const std::string& key) const { return {path_, line_, key}; }

  const json& Take(const char* key) {
    asked_.insert(key);
    const auto it = object_.find(key);
    if (it == object_.end())
      throw InputError(PlaceOf(key), "", "is a required key that is missing");
    return *it;
  }
  std::string Text(const char* key) {
    const json& value = Take(key);
    if (!value.is_string()) throw InputError(PlaceOf(key), value.dump(), "is no text", "a string");
    return value.get<std::string>();
  }
  std::string OptionalText(const char* key) { return Has(key) ? Text(key) : std::string(); }
  bool OptionalFlag(const char* key) {
    if (!Has(key)) return false;
    const json& value = Take(key);
    if (!value.is_boolean()) {
      throw InputError(PlaceOf(key), value.dump(), "is no flag", "true, false");
    }
    return value.get<bool>();
  }
  int Integer(const char* key, int low, int high) {
    const json& value = Take(key);
    if (!value.is_number_integer() || value.get<double>() < low || value.get<double>() > high) {
      throw InputError(PlaceOf(key), value.dump(), "is not a whole number in range",
                       std::to_string(low) + " to " + std::to_string(high));
    }
    return value.get<int>();
  }
  double Seconds(const char* key, const json& value) const {
    if (!value.is_number() || !IsRunTime(value.get<double>())) {
      throw InputError(PlaceOf(key), value.dump(), "is not a time",
                       "seconds above 0 and at most 1e6");
    }
    return value.get<double>();
  }
  int Choice(const char* key, std::span<const char* const> names) {
    const std::string text = Text(key);
    if (const auto found = FindName(text, names)) return *found;
    throw InputError(PlaceOf(key), text, "is not one of them", JoinNames(names));
  }
  std::map<std::string, std::string> Texts(const char* key) {
    const json& object = Take(key);
    if (!object.is_object()) {
      throw InputError(PlaceOf(key), object.dump(), "is no object", "names with texts");
    }
    std::map<std::string, std::string> texts;
    for (const auto& [name, value] : object.items()) {
      if (!value.is_string()) {
        throw InputError(PlaceOf(key + ("." + name)), value.dump(), "is no text", "a string");
      }
      texts[name] = value.get<std::string>();
    }
    return texts;
  }
  void Finish() const {
    for (const auto& [key, value] : object_.items()) {
      if (asked_.count(key) > 0) continue;
      const std::vector<std::string> known(asked_.begin(), asked_.end());
      throw InputError(PlaceOf(key), "", "is not a key of this line", JoinNames(known));
    }
  }

 private:
  std::string path_;
  int line_;
  json object_;
  std::set<std::string> asked_;
};

ComputeProfile ParseHeader(Line line) {
  if (!line.Has(kComputeFormatKey)) {
    throw InputError(line.PlaceOf(kComputeFormatKey), "", "is a required key that is missing",
                     "the first line of a profile that stepcast microbench wrote");
  }
  line.Integer(kComputeFormatKey, kComputeFormat, kComputeFormat);
  ComputeProfile profile;
  profile.backend = line.Text("backend");
  const json& device = line.Take("device");
  Line device_line(device, line.PlaceOf("").file, line.PlaceOf("").line);
  profile.device.name = device_line.Text("name");
  constexpr const char* kKinds[] = {"cpu", "gpu"};
  profile.device.kind = kKinds[device_line.Choice("kind", kKinds)];
  RefuseControls(profile.device.name, device_line.PlaceOf("name"));
  profile.device.facts = device_line.Texts("facts");
  for (const auto& [name, value] : profile.device.facts) {
    RefuseControls(name, device_line.PlaceOf("facts"));
    RefuseControls(value, device_line.PlaceOf("facts"));
  }
  device_line.Finish();
  profile.settings = line.Texts("settings");
  profile.version = line.Text("version");
  RefuseControls(profile.version, line.PlaceOf("version"));
  for (const auto& [name, value] : profile.settings) {
    RefuseControls(name, line.PlaceOf("settings"));
    RefuseControls(value, line.PlaceOf("settings"));
  }
  profile.started = line.Text("started");
  line.Finish();
  return profile;
}

MeasuredSamples ParseSamples(Line line) {
  MeasuredSamples samples;
  MeasuredPoint& point = samples.point;
  point.operation = ParseOperation(line.Text("operation"), line.PlaceOf("operation"));
  const bool update = std::holds_alternative<UpdateOp>(point.operation);
  const bool allocation = std::holds_alternative<AllocateOp>(point.operation);
  point.batch = line.Integer("batch", 1, update || allocation ? 1 : kMostSampleBatch);
  point.precision = static_cast<Precision>(
      line.Choice("precision", std::span(kPrecisionNames).first(kMeasuredPrecisionCount)));
  point.pass = static_cast<TrainingPass>(line.Choice("pass", kTrainingPassNames));
  if (line.Has("status")) {
    samples.status = static_cast<PointStatus>(line.Choice("status", kPointStatusNames));
  }
  if (update != (point.pass == TrainingPass::kUpdate) ||
      (allocation && point.pass != TrainingPass::kForward)) {
    throw InputError(line.PlaceOf("pass"), line.Text("pass"), "is not a pass of this operation",
                     update       ? "update"
                     : allocation ? "forward"
                                  : "forward, backward");
  }
  if (allocation && point.precision != Precision::kFp32) {
    throw InputError(line.PlaceOf("precision"), line.Text("precision"),
                     "is not a precision of this operation", "fp32");
  }
  if (samples.status == PointStatus::kMeasured) {
    const json& seconds = line.Take("seconds");
    if (!seconds.is_array() || seconds.empty()) {
      throw InputError(line.PlaceOf("seconds"), seconds.dump(), "is no list of times",
                       "at least one");
    }
    samples.seconds.reserve(seconds.size());
    for (const json& value : seconds) samples.seconds.push_back(line.Seconds("seconds", value));
  } else {
    samples.reason = line.Text("reason");
  }
  samples.algorithm = line.OptionalText("algorithm");
  samples.busy = line.OptionalFlag("busy");
  samples.throttled = line.OptionalFlag("throttled");
  if (line.Has("reference_s")) {
    samples.reference_s = line.Seconds("reference_s", line.Take("reference_s"));
  }
  samples.at = line.OptionalText("at");
  line.Finish();
  return samples;
}

}  // namespace

ReadProfile ReadComputeProfile(const std::string& path) {
  ReadProfile read = ParseComputeProfile(ReadTextFile(path, kMostProfileBytes), path);
  // Bytes of the file, of which a byte order mark is no text.
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  std::string start(kMark.size(), ' ');
  std::ifstream(path, std::ios::binary).read(start.data(), std::ssize(start));
  if (start == kMark) read.whole_bytes += kMark.size();
  return read;
}

ReadProfile ParseComputeProfile(const std::string& text, const std::string& path) {
  ReadProfile read;
  int number = 0;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = text.find('\n', from);
    if (end == std::string::npos) {
      read.torn = true;
      break;
    }
    Line line(std::string_view(text).substr(from, end - from), path, ++number);
    if (number == 1) {
      read.profile = ParseHeader(std::move(line));
    } else {
      read.profile.samples.push_back(ParseSamples(std::move(line)));
    }
    from = end + 1;
    read.whole_bytes = from;
  }
  if (number == 0) {
    throw InputError({path, 0, ""}, "", "is no profile: it has no line",
                     "a file that stepcast microbench wrote");
  }
  return read;
}

std::string FormatProfileHeader(const ComputeProfile& profile) {
  const Ordered header = {{kComputeFormatKey, kComputeFormat},
                          {"backend", profile.backend},
                          {"device",
                           {{"name", profile.device.name},
                            {"kind", profile.device.kind},
                            {"facts", profile.device.facts}}},
                          {"settings", profile.settings},
                          {"version", profile.version},
                          {"started", profile.started}};
  return header.dump(-1, ' ', true, Ordered::error_handler_t::replace) + "\n";
}

std::string FormatProfileSamples(const MeasuredSamples& samples) {
  const MeasuredPoint& point = samples.point;
  Ordered line = {{"operation", FormatOperation(point.operation)},
                  {"batch", point.batch},
                  {"precision", NameOf(point.precision)},
                  {"pass", kTrainingPassNames[static_cast<int>(point.pass)]}};
  if (samples.status == PointStatus::kMeasured) {
    // Seven digits are below what any clock can tell.
    Ordered seconds = Ordered::array();
    for (const double s : samples.seconds) seconds.push_back(std::stod(fmt::format("{:.7g}", s)));
    line["seconds"] = std::move(seconds);
  } else {
    line["status"] = kPointStatusNames[static_cast<int>(samples.status)];
    line["reason"] = samples.reason;
  }
  if (!samples.algorithm.empty()) line["algorithm"] = samples.algorithm;
  if (samples.busy) line["busy"] = true;
  if (samples.throttled) line["throttled"] = true;
  if (samples.reference_s > 0) line["reference_s"] = samples.reference_s;
  if (!samples.at.empty()) line["at"] = samples.at;
  // In ASCII: a write that is torn leaves no half of a letter.
  return line.dump(-1, ' ', true, Ordered::error_handler_t::replace) + "\n";
}

std::string FormatComputeProfile(const ComputeProfile& profile) {
  std::string text = FormatProfileHeader(profile);
  for (const MeasuredSamples& samples : profile.samples) text += FormatProfileSamples(samples);
  return text;
}

}  // namespace stepcast
