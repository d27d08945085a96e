#include "data/io/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "data/io/csv.h"
#include "data/io/text_file.h"
#include "data/plan/check.h"
#include "data/plan/check_spread.h"
#include "data/plan/fields.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/size_limits.h"
#include "data/values/suggest.h"
#include "data/values/training_facts.h"

namespace stepcast {
namespace {

enum class Need { kRequired, kOptional };

constexpr const char* kStepTime = "step_time_s";
constexpr const char* kThroughput = "throughput_samples_per_s";

// One known column: how a field becomes part of a run, and back.
struct ColumnFormat {
  const char* name;
  Need need;
  std::function<void(const std::string&, const InputPlace&, Run*)> read;
  std::function<std::string(const Run&)> write;
};

std::string Number(double value) { return fmt::format("{}", value); }

std::string Name(const std::string& text, const InputPlace& place) {
  return CheckedName(Trim(text), place);
}

// "1.25", or ">1800" of a run that was stopped.
void ReadStepTime(const std::string& text, const InputPlace& place, Run* run) {
  std::string number(Trim(text));
  run->stopped = number.rfind('>', 0) == 0;
  if (run->stopped) number.erase(0, 1);
  run->step_time = Seconds(ParseNumber(number, place, kStepTimes));
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
  columns.push_back(
      {kStepTime, Need::kRequired,
       [](const auto& t, const auto& p, Run* r) { ReadStepTime(t, p, r); },
       [](const Run& r) { return (r.stopped ? ">" : "") + Number(r.step_time.in(kSeconds)); }});
  const auto time = [&](const char* name, const NumberRange& range, auto of) {
    columns.push_back(
        {name, Need::kOptional,
         [=](const auto& t, const auto& p, Run* r) { *of(r) = Seconds(ParseNumber(t, p, range)); },
         [=](const Run& r) {
           const std::optional<Duration<>>& value = *of(&r);
           return value ? Number(value->in(kSeconds)) : std::string();
         }});
  };
  time("exposed_sync_s", kExposedTimes, [](auto* r) { return &r->exposed_sync; });
  time("step_time_sd_s", kExposedTimes, [](auto* r) { return &r->spread.sd; });
  time("p50_s", kStepTimes, [](auto* r) { return &r->spread.p50; });
  time("p95_s", kStepTimes, [](auto* r) { return &r->spread.p95; });
  time("p99_s", kStepTimes, [](auto* r) { return &r->spread.p99; });
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

// Checks that concern several fields of a row together: those of its plan.
void CheckRunPlan(const Run& run) {
  const auto place = [&](const char* column) {
    return InputPlace{run.place.file, run.place.line, column};
  };
  CheckPlan(run.plan, [&](const FieldFacts& field) { return place(field.column); });
  if (TraitsOf(run.plan.strategy).to_be_chosen) {
    throw InputError(place("strategy"), "auto", "is a question and not a measurement",
                     "the algorithm that ran, or allreduce where the library chose");
  }
}

// The step of a throughput: that of all workers together, of samples that count.
Duration<> StepAt(const std::string& throughput, const InputPlace& place, const Plan& plan) {
  const double rate = ParseNumber(throughput, place, kThroughputs);
  const Duration<> step = CountedSamples(plan) / (Samples(rate) / Seconds(1.0));
  if (kStepTimes.Holds(step.in(kSeconds))) return step;
  throw InputError(place, throughput, fmt::format("is one of {:g} s a step", step.in(kSeconds)),
                   kStepTimes.Text() + " s a step");
}

// A row may have a throughput for its step time. One beside it is what the source printed.
void TakeThroughput(const std::string& throughput, bool has_step_time, const InputPlace& place,
                    Run* run) {
  constexpr double kRounded = 0.1;  // as figures of one or two digits differ
  const Duration<> step = StepAt(throughput, place, run->plan);
  if (!has_step_time) {
    run->step_time = step;
  } else if (std::abs(run->step_time / step - 1) > kRounded) {
    throw InputError(place, throughput,
                     fmt::format("is one of {:.6g} s a step, and {} is {}", step.in(kSeconds),
                                 kStepTime, Number(run->step_time.in(kSeconds))),
                     "one of the two, or samples of all workers in a second");
  }
}

// The same of its times.
void CheckTimes(const Run& run) {
  const auto place = [&](const char* column) {
    return InputPlace{run.place.file, run.place.line, column};
  };
  CheckSpread(run);
  if (run.exposed_sync && *run.exposed_sync > run.step_time) {
    throw InputError(place("exposed_sync_s"), Number(run.exposed_sync->in(kSeconds)),
                     "is longer than the step",
                     "at most step_time_s, " + Number(run.step_time.in(kSeconds)));
  }
}

// Whether two names differ in their digits alone, as p90_s and p95_s do.
bool DifferInDigits(std::string a, std::string b) {
  const auto is_digit = [](char c) { return '0' <= c && c <= '9'; };
  const std::size_t digits = std::erase_if(a, is_digit);
  std::erase_if(b, is_digit);
  return digits > 0 && a == b;
}

// How a workload is trained is a fact of the workload: a column that says so of a row would be kept
// as one of the user's own, and the runs fitted as if it were not there.
void RefuseTrainingFact(const std::string& name, const std::string& key, const InputPlace& place) {
  throw InputError(place, "",
                   "is not a column of runs" + (name == key ? "" : DidYouMean(key)) +
                       ": how a run was trained is a fact of its workload",
                   key + " in the workload's file, or --" + key +
                       "; a workload of its own name for each way of training");
}

// Columns that are not known are kept; one that is within two letters of a known one, which the
// file lacks, is a slip that would leave out what was stated.
void RefuseMisspelt(const std::vector<std::string>& unknown, const CsvReader& reader) {
  constexpr std::size_t kMostLetters = 2;
  std::vector<std::string> absent;
  for (const ColumnFormat& format : Columns()) {
    if (!reader.Column(format.name)) absent.emplace_back(format.name);
  }
  for (const TrainingFact& fact : TrainingFacts()) absent.emplace_back(fact.key);
  for (const std::string& name : unknown) {
    const std::string meant = NearestName(name, absent, kMostLetters);
    if (meant.empty() || DifferInDigits(name, meant)) continue;
    if (std::max(meant.size(), name.size()) - std::min(meant.size(), name.size()) > kMostLetters) {
      continue;
    }
    if (FindTrainingFact(meant) != nullptr) {
      RefuseTrainingFact(name, meant, {reader.path(), 1, name});
    }
    throw InputError({reader.path(), 1, name}, "", "is not a known column" + DidYouMean(meant),
                     meant + ", or for a column of your own a name that is not so near to it");
  }
}

void TakeRuns(std::string text, const std::string& path, const std::function<void(Run&&)>& take) {
  CsvReader reader(std::move(text), path);
  std::vector<const ColumnFormat*> format_of(reader.header().size(), nullptr);
  const std::optional<std::size_t> throughput = reader.Column(kThroughput);
  const std::optional<std::size_t> step_time = reader.Column(kStepTime);
  for (const ColumnFormat& format : Columns()) {
    if (!std::strcmp(format.name, kStepTime)) {
      if (!throughput) reader.RequiredColumn(kStepTime, kThroughput);
    } else if (format.need == Need::kRequired) {
      reader.RequiredColumn(format.name);
    }
    if (const auto column = reader.Column(format.name)) format_of[*column] = &format;
  }
  std::vector<std::string> unknown;
  for (std::size_t i = 0; i < format_of.size(); ++i) {
    if (format_of[i] == nullptr) unknown.push_back(reader.header()[i]);
  }
  RefuseMisspelt(unknown, reader);
  const auto extra_columns = std::make_shared<const std::vector<std::string>>(std::move(unknown));
  for (CsvRow row; reader.Next(&row);) {
    Run run;
    run.place = {path, row.line, ""};
    if (!extra_columns->empty()) run.extra_columns = extra_columns;
    run.extra.reserve(extra_columns->size());
    const bool has_throughput = throughput && !Trim(row.fields[*throughput]).empty();
    const bool has_step_time =
        step_time && (!has_throughput || !Trim(row.fields[*step_time]).empty());
    if (!has_throughput && !step_time) {
      throw InputError(reader.Place(row, *throughput), "", "is required", "samples in a second");
    }
    for (std::size_t i = 0; i < row.fields.size(); ++i) {
      if (step_time == i && !has_step_time) continue;
      const ColumnFormat* format = format_of[i];
      if (format == nullptr) {
        run.extra.push_back(row.fields[i]);
      } else if (format->need == Need::kRequired || !Trim(row.fields[i]).empty()) {
        format->read(row.fields[i], reader.Place(row, i), &run);
      }
    }
    CheckRunPlan(run);
    if (has_throughput) {
      TakeThroughput(row.fields[*throughput], has_step_time, reader.Place(row, *throughput), &run);
    }
    CheckTimes(run);
    take(std::move(run));
  }
}

}  // namespace

std::vector<Run> ReadRuns(const std::string& path) {
  std::vector<Run> runs;
  ForEachRun(path, [&](Run&& run) { runs.push_back(std::move(run)); });
  return runs;
}

std::vector<Run> ParseRuns(const std::string& text, const std::string& path) {
  CheckText(text, path);
  std::vector<Run> runs;
  TakeRuns(text, path, [&](Run&& run) { runs.push_back(std::move(run)); });
  return runs;
}

void ForEachRun(const std::string& path, const std::function<void(Run&&)>& take) {
  TakeRuns(ReadTextFile(path, kMostCsvBytes), path, take);
}

std::string FormatRuns(const std::vector<Run>& runs) {
  std::vector<const ColumnFormat*> used;
  for (const ColumnFormat& format : Columns()) {
    const bool any = std::any_of(runs.begin(), runs.end(),
                                 [&](const Run& run) { return !format.write(run).empty(); });
    if (format.need == Need::kRequired || any) used.push_back(&format);
  }
  // The unknown columns of all files, each once, and where those of a file are among them.
  std::vector<std::string> extra;
  std::unordered_map<std::string, std::size_t> index;
  std::unordered_map<const std::vector<std::string>*, std::vector<std::size_t>> places;
  for (const Run& run : runs) {
    if (!run.extra_columns || places.count(run.extra_columns.get()) > 0) continue;
    std::vector<std::size_t>& own = places[run.extra_columns.get()];
    for (const std::string& name : *run.extra_columns) {
      const auto [it, is_new] = index.emplace(name, extra.size());
      if (is_new) extra.push_back(name);
      own.push_back(it->second);
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
    std::vector<const std::string*> values(extra.size(), nullptr);
    if (run.extra_columns) {
      const std::vector<std::size_t>& own = places.at(run.extra_columns.get());
      for (std::size_t i = 0; i < own.size(); ++i) values[own[i]] = &run.extra[i];
    }
    for (const std::string* value : values) {
      text += ',';
      if (value != nullptr) text += CsvField(*value);
    }
    text += '\n';
  }
  return text;
}

}  // namespace stepcast
