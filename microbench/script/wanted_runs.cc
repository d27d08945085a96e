#include "microbench/script/wanted_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "data/io/csv.h"
#include "data/io/runs.h"
#include "data/io/text_file.h"
#include "data/plan/fields.h"
#include "data/record/quantile.h"
#include "data/values/names.h"
#include "data/values/size_limits.h"

namespace stepcast::script {
namespace {

constexpr const char* kTimeColumn = "step_time_s";
constexpr const char* kNoTime = "STEP_TIME";
constexpr const char* kOwnColumns[] = {"source", "measured_steps", "step_time_sd_s",
                                       "p50_s",  "p95_s",          "p99_s"};
// What another measurement may have left in the row that is wanted.
constexpr const char* kNotMeasured = "exposed_sync_s";
// The spread of fewer is hardly known.
constexpr std::size_t kStepsOfASpread = 10;

int LineEnds(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

bool IsMeasured(const std::string& column) {
  return column == kTimeColumn || column == kNotMeasured ||
         std::count(std::begin(kOwnColumns), std::end(kOwnColumns), column) > 0;
}

// The rules of a run are those of the runs' own reader, which wants times; and it counts the lines
// of a text without those that are empty.
std::vector<Run> RunsWithoutTimes(const CsvTable& table, const std::string& path) {
  std::vector<std::string> header = table.header();
  const std::size_t time = table.Column(kTimeColumn).value_or(header.size());
  if (time == header.size()) header.emplace_back(kTimeColumn);
  std::vector<std::size_t> measured;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (IsMeasured(header[i])) measured.push_back(i);
  }
  std::string timed = CsvLine(header);
  std::map<int, int> lines;  // of that text, those of the file
  int line = 1 + LineEnds(timed);
  for (const CsvRow& row : table.rows()) {
    std::vector<std::string> fields = row.fields;
    fields.resize(header.size());
    for (const std::size_t i : measured) fields[i] = i == time ? "1" : "";
    lines[line] = row.line;
    const std::string written = CsvLine(fields);
    line += LineEnds(written);
    timed += written;
  }
  try {
    std::vector<Run> runs = ParseRuns(timed, path);
    for (std::size_t i = 0; i < runs.size(); ++i) runs[i].place.line = table.rows()[i].line;
    if (runs.empty()) throw InputError({path, 0, ""}, "", "has no runs", "a row for each");
    return runs;
  } catch (const InputError& e) {
    if (e.place().line == 0) throw;
    const auto behind = lines.upper_bound(e.place().line);
    throw e.At({path, behind == lines.begin() ? 1 : std::prev(behind)->second, e.place().key});
  }
}

}  // namespace

std::vector<Run> ReadPlannedRuns(const std::string& path) {
  return RunsWithoutTimes(CsvTable::Parse(ReadTextFile(path, kMostCsvBytes), path), path);
}

WantedRuns ReadWantedRuns(const std::string& path) {
  return ParseWantedRuns(ReadTextFile(path, kMostCsvBytes), path);
}

WantedRuns ParseWantedRuns(const std::string& text, const std::string& path) {
  const CsvTable table = CsvTable::Parse(text, path);
  WantedRuns wanted;
  wanted.header = table.header();
  wanted.time_column = table.RequiredColumn(kTimeColumn);
  for (const CsvRow& row : table.rows()) {
    const std::string& time = row.fields[wanted.time_column];
    if (Trim(time) == kNoTime) continue;
    throw InputError(table.Place(row, wanted.time_column), time, "is no run to be measured",
                     std::string(kNoTime) + ", for the time that is to be measured");
  }
  std::vector<Run> runs = RunsWithoutTimes(table, path);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    wanted.runs.push_back({std::move(runs[i]), table.rows()[i].fields});
  }
  return wanted;
}

double Timed::Mean() const {
  return std::accumulate(step_s.begin(), step_s.end(), 0.0) / static_cast<double>(step_s.size());
}

std::vector<std::string> MeasuredHeader(const WantedRuns& wanted) {
  std::vector<std::string> header = wanted.header;
  for (const char* column : kOwnColumns) {
    if (std::count(header.begin(), header.end(), column) == 0) header.emplace_back(column);
  }
  return header;
}

std::vector<std::string> MeasuredFields(const WantedRuns& wanted, const WantedRun& run,
                                        const Timed& timed) {
  const auto number = [](double value) { return fmt::format("{:.6g}", value); };
  std::map<std::string, std::string> own;
  own[kTimeColumn] = timed.bound_s ? ">" + number(*timed.bound_s) : number(timed.Mean());
  for (const char* column : kOwnColumns) own[column];
  own[kNotMeasured];
  own["source"] = timed.source;
  own["measured_steps"] = std::to_string(timed.step_s.size());
  if (!timed.bound_s && timed.step_s.size() >= kStepsOfASpread) {
    const double mean = timed.Mean();
    double squares = 0;
    for (const double step : timed.step_s) squares += (step - mean) * (step - mean);
    own["step_time_sd_s"] =
        number(std::sqrt(squares / static_cast<double>(timed.step_s.size() - 1)));
    own["p50_s"] = number(Quantile(timed.step_s, 0.5));
    own["p95_s"] = number(Quantile(timed.step_s, 0.95));
    own["p99_s"] = number(Quantile(timed.step_s, 0.99));
  }
  const std::vector<std::string> header = MeasuredHeader(wanted);
  std::vector<std::string> fields;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const auto found = own.find(header[i]);
    fields.push_back(found != own.end() ? found->second : run.fields[i]);
  }
  return fields;
}

std::string WantedKey(const WantedRuns& wanted, const std::vector<std::string>& fields) {
  std::vector<std::string> key;
  for (std::size_t i = 0; i < wanted.header.size(); ++i) {
    if (!IsMeasured(wanted.header[i])) key.push_back(fields[i]);
  }
  return CsvLine(key);
}

std::map<std::string, std::string> ValuesOf(const WantedRuns& wanted, const WantedRun& run) {
  std::map<std::string, std::string> values;
  for (std::size_t i = 0; i < wanted.header.size(); ++i) {
    if (i != wanted.time_column) values[wanted.header[i]] = run.fields[i];
  }
  const Plan& plan = run.run.plan;
  values["workers"] = std::to_string(plan.workers());
  values["nodes"] = std::to_string(plan.nodes());
  values["devices_per_node"] = std::to_string(DevicesOnFullestNode(plan.placement));
  values["global_batch"] = std::to_string(static_cast<std::int64_t>(plan.global_batch()));
  values["accumulation_steps"] = std::to_string(plan.accumulation_steps);
  return values;
}

std::string FillIn(const std::string& word, const std::map<std::string, std::string>& values) {
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word.compare(i, 2, "{{") == 0) {
      out += word[i++];
      continue;
    }
    const std::size_t end = word[i] == '{'
                                ? word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", i + 1)
                                : std::string::npos;
    if (end == std::string::npos || end == i + 1 || word[end] != '}') {
      out += word[i];
      continue;
    }
    const std::string name = word.substr(i + 1, end - i - 1);
    const auto found = values.find(name);
    if (found == values.end()) {
      std::vector<std::string> names;
      for (const auto& [known, value] : values) names.push_back("{" + known + "}");
      throw InputError({"", 0, "COMMAND"}, "{" + name + "}", "stands for nothing",
                       fmt::format("{}; {{{{ for a brace", fmt::join(names, ", ")));
    }
    out += found->second;
    i = end;
  }
  return out;
}

std::set<std::string> UntoldColumns(const WantedRuns& wanted,
                                    const std::vector<std::string>& command) {
  std::set<std::string> untold;
  std::set<std::string> told = {"workload"};  // notes and the like are nothing to a training
  for (const PlanField& field : PlanFields()) told.insert(field.column);
  for (const std::string& word : command) {
    if (word.find("STEPCAST_") != std::string::npos) return untold;
  }
  std::map<std::vector<std::string>, const WantedRun*> first;  // of each command
  for (const WantedRun& run : wanted.runs) {
    const auto values = ValuesOf(wanted, run);
    std::vector<std::string> words;
    for (const std::string& word : command) words.push_back(FillIn(word, values));
    const auto [it, is_new] = first.try_emplace(std::move(words), &run);
    if (is_new) continue;
    for (std::size_t i = 0; i < wanted.header.size(); ++i) {
      if (run.fields[i] == it->second->fields[i] || told.count(wanted.header[i]) == 0) continue;
      untold.insert(wanted.header[i]);
    }
  }
  return untold;
}

}  // namespace stepcast::script
