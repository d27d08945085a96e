#include "data/io/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "data/plan/check.h"
#include "data/plan/fields.h"
#include "data/values/names.h"
#include "data/values/numbers.h"

namespace stepcast {
namespace {

constexpr double kLongestStep = 1e7;  // s

enum class Need { kRequired, kOptional };

// One known column: how a field becomes part of a run, and back.
struct ColumnFormat {
  const char* name;
  Need need;
  std::function<void(const std::string&, const InputPlace&, Run*)> read;
  std::function<std::string(const Run&)> write;
};

std::string Number(double value) { return fmt::format("{}", value); }

std::string Name(const std::string& text, const InputPlace& place) {
  const std::string name(Trim(text));
  if (name.empty()) throw InputError(place, "", "is empty", "a name");
  return name;
}

ColumnFormat PlanColumn(const PlanField& field) {
  return {field.column, field.told == Told::kAlways ? Need::kRequired : Need::kOptional,
          [&field](const auto& t, const auto& p, Run* r) { field.read_column(t, p, &r->plan); },
          [&field](const Run& r) { return field.write(r.plan); }};
}

std::vector<ColumnFormat> MakeColumns() {
  std::vector<ColumnFormat> columns = {
      {"workload", Need::kRequired,
       [](const auto& t, const auto& p, Run* r) { r->workload = Name(t, p); },
       [](const Run& r) { return r.workload; }},
      {"device", Need::kRequired,
       [](const auto& t, const auto& p, Run* r) { r->device = Name(t, p); },
       [](const Run& r) { return r.device; }}};
  for (const char* flag : {"placement", "servers", "strategy", "local-batch"}) {
    columns.push_back(PlanColumn(*FindPlanField(flag)));
  }
  columns.push_back({"step_time_s", Need::kRequired,
                     [](const auto& t, const auto& p, Run* r) {
                       const double seconds = ParseNumber(t, p, 0, kLongestStep);
                       if (seconds == 0) throw InputError(p, t, "is out of range", "more than 0");
                       r->step_time = Seconds(seconds);
                     },
                     [](const Run& r) { return Number(r.step_time.in(kSeconds)); }});
  columns.push_back({"exposed_sync_s", Need::kOptional,
                     [](const auto& t, const auto& p, Run* r) {
                       r->exposed_sync = Seconds(ParseNumber(t, p, 0, kLongestStep));
                     },
                     [](const Run& r) {
                       return r.exposed_sync ? Number(r.exposed_sync->in(kSeconds)) : std::string();
                     }});
  for (const PlanField& field : PlanFields()) {
    const bool known = std::any_of(columns.begin(), columns.end(), [&](const ColumnFormat& column) {
      return !std::strcmp(column.name, field.column);
    });
    if (!known) columns.push_back(PlanColumn(field));
  }
  columns.push_back({"source", Need::kOptional,
                     [](const auto& t, const auto&, Run* r) { r->source = t; },
                     [](const Run& r) { return r.source; }});
  return columns;
}

const std::vector<ColumnFormat>& Columns() {
  static const std::vector<ColumnFormat> columns = MakeColumns();
  return columns;
}

// Checks that concern several fields of a row together.
void CheckWholeRow(const CsvTable& table, const CsvRow& row, const Run& run) {
  const auto place = [&](const char* column) { return InputPlace{table.path(), row.line, column}; };
  CheckPlan(run.plan, [&](const FieldFacts& field) { return place(field.column); });
  if (TraitsOf(run.plan.strategy).to_be_chosen) {
    throw InputError(place("strategy"), "auto", "is a question and not a measurement",
                     "the algorithm that ran, or allreduce where the library chose");
  }
  if (run.exposed_sync && *run.exposed_sync > run.step_time) {
    throw InputError(place("exposed_sync_s"), Number(run.exposed_sync->in(kSeconds)),
                     "is longer than the step",
                     "at most step_time_s, " + Number(run.step_time.in(kSeconds)));
  }
}

}  // namespace

std::vector<Run> ReadRuns(const std::string& path) {
  const CsvTable table = CsvTable::Read(path);
  return ParseRuns(table);
}

std::vector<Run> ParseRuns(const CsvTable& table) {
  const std::vector<ColumnFormat>& formats = Columns();
  std::vector<const ColumnFormat*> format_of(table.header().size(), nullptr);
  for (const ColumnFormat& format : formats) {
    if (format.need == Need::kRequired) table.RequiredColumn(format.name);
    if (const auto column = table.Column(format.name)) format_of[*column] = &format;
  }
  std::vector<Run> runs;
  runs.reserve(table.rows().size());
  for (const CsvRow& row : table.rows()) {
    Run run;
    for (std::size_t i = 0; i < row.fields.size(); ++i) {
      const ColumnFormat* format = format_of[i];
      if (format == nullptr) {
        run.extra.emplace_back(table.header()[i], row.fields[i]);
      } else if (format->need == Need::kRequired || !Trim(row.fields[i]).empty()) {
        format->read(row.fields[i], table.Place(row, i), &run);
      }
    }
    CheckWholeRow(table, row, run);
    run.place = {table.path(), row.line, ""};
    runs.push_back(std::move(run));
  }
  return runs;
}

std::string FormatRuns(const std::vector<Run>& runs) {
  std::vector<const ColumnFormat*> used;
  std::vector<std::string> extra;
  for (const ColumnFormat& format : Columns()) {
    const bool any = std::any_of(runs.begin(), runs.end(),
                                 [&](const Run& run) { return !format.write(run).empty(); });
    if (format.need == Need::kRequired || any) used.push_back(&format);
  }
  for (const Run& run : runs) {
    for (const auto& [name, value] : run.extra) {
      if (std::find(extra.begin(), extra.end(), name) == extra.end()) extra.push_back(name);
    }
  }
  std::string text;
  for (const ColumnFormat* format : used) {
    text += (text.empty() ? "" : ",") + std::string(format->name);
  }
  for (const std::string& name : extra) text += "," + CsvField(name);
  text += '\n';
  for (const Run& run : runs) {
    bool first = true;
    for (const ColumnFormat* format : used) {
      if (!first) text += ',';
      first = false;
      const std::string field = format->write(run);
      // An absent accumulation interval is one of 1 step.
      text +=
          CsvField(field.empty() && !std::strcmp(format->name, "accumulation_steps") ? "1" : field);
    }
    for (const std::string& name : extra) {
      const auto it = std::find_if(run.extra.begin(), run.extra.end(),
                                   [&](const auto& column) { return column.first == name; });
      text += "," + (it == run.extra.end() ? std::string() : CsvField(it->second));
    }
    text += '\n';
  }
  return text;
}

}  // namespace stepcast
