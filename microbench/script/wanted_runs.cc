#include "microbench/script/wanted_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "data/io/csv.h"
#include "data/io/runs.h"
#include "data/io/text_file.h"
#include "data/plan/fields.h"
#include "data/values/names.h"
#include "data/values/size_limits.h"

namespace stepcast::script {
namespace {

constexpr const char* kTimeColumn = "step_time_s";
constexpr const char* kNoTime = "STEP_TIME";

}  // namespace

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
    if (Trim(time) != kNoTime) {
      throw InputError(table.Place(row, wanted.time_column), time, "is no run to be measured",
                       std::string(kNoTime) + ", for the time that is to be measured");
    }
    // The rules of a run are those of the runs' own reader, which wants a time; and it names the
    // line of a text of two.
    std::vector<std::string> fields = row.fields;
    fields[wanted.time_column] = "1";
    try {
      wanted.runs.push_back(
          {ParseRuns(CsvLine(wanted.header) + CsvLine(fields), path).front(), fields});
    } catch (const InputError& e) {
      throw InputError({path, e.place().line > 1 ? row.line : 1, e.place().key}, e.value(),
                       e.problem(), e.allowed());
    }
    wanted.runs.back().run.place.line = row.line;
  }
  if (wanted.runs.empty()) throw InputError({path, 0, ""}, "", "has no runs", "a row for each");
  return wanted;
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
