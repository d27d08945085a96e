#include "data/io/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "data/io/parse.h"

namespace stepcast {
namespace {

constexpr int kMostBatch = 100'000'000;
constexpr int kMostServers = 1'000'000;
constexpr int kMostAccumulation = 1'000'000;
constexpr double kLongestStep = 1e7;  // s
constexpr double kFastestLink = 1e6;  // Gbit/s
constexpr double kLongestRtt = 1e6;   // ms

enum class Need { kRequired, kOptional };

// One known column: how a field becomes part of a run, and back.
struct ColumnFormat {
  const char* name;
  Need need;
  std::function<void(const std::string&, const InputPlace&, Run*)> read;
  std::function<std::string(const Run&)> write;
};

std::string Number(double value) { return fmt::format("{}", value); }

template <class Q, class D>
std::string Number(const std::optional<Q>& value, const Unit<D>& unit) {
  return value ? Number(value->in(unit)) : std::string();
}

double Positive(const std::string& text, const InputPlace& place, double high) {
  const double value = ParseNumber(text, place, 0, high);
  if (value == 0) throw InputError(place, text, "is out of range", "more than 0");
  return value;
}

std::string Name(const std::string& text, const InputPlace& place) {
  const std::string name(Trim(text));
  if (name.empty()) throw InputError(place, "", "is empty", "a name");
  return name;
}

const std::vector<ColumnFormat>& Columns() {
  static const std::vector<ColumnFormat> columns = {
      {"workload", Need::kRequired,
       [](const auto& t, const auto& p, Run* r) { r->workload = Name(t, p); },
       [](const Run& r) { return r.workload; }},
      {"device", Need::kRequired,
       [](const auto& t, const auto& p, Run* r) { r->device = Name(t, p); },
       [](const Run& r) { return r.device; }},
      {"placement", Need::kRequired,
       [](const auto& t, const auto& p, Run* r) { r->plan.placement = ParsePlacement(t, p); },
       [](const Run& r) { return FormatPlacement(r.plan.placement); }},
      {"servers", Need::kRequired,
       [](const auto& t, const auto& p, Run* r) {
         r->plan.servers = Trim(t).empty() ? 0 : ParseInteger(t, p, 0, kMostServers);
       },
       [](const Run& r) { return std::to_string(r.plan.servers); }},
      {"strategy", Need::kRequired,
       [](const auto& t, const auto& p, Run* r) { r->plan.strategy = ParseStrategy(t, p); },
       [](const Run& r) { return std::string(StrategyName(r.plan.strategy)); }},
      {"local_batch", Need::kRequired,
       [](const auto& t, const auto& p, Run* r) {
         r->plan.local_batch = ParseInteger(t, p, 1, kMostBatch);
       },
       [](const Run& r) { return std::to_string(r.plan.local_batch); }},
      {"step_time_s", Need::kRequired,
       [](const auto& t, const auto& p, Run* r) {
         r->step_time = Seconds(Positive(t, p, kLongestStep));
       },
       [](const Run& r) { return Number(r.step_time.in(kSeconds)); }},
      {"accumulation_steps", Need::kOptional,
       [](const auto& t, const auto& p, Run* r) {
         r->plan.accumulation_steps = ParseInteger(t, p, 1, kMostAccumulation);
       },
       [](const Run& r) {
         return r.plan.accumulation_steps == 1 ? std::string()
                                               : std::to_string(r.plan.accumulation_steps);
       }},
      {"exposed_sync_s", Need::kOptional,
       [](const auto& t, const auto& p, Run* r) {
         r->exposed_sync = Seconds(ParseNumber(t, p, 0, kLongestStep));
       },
       [](const Run& r) { return Number(r.exposed_sync, kSeconds); }},
      {"link_gbit_per_s", Need::kOptional,
       [](const auto& t, const auto& p, Run* r) {
         r->plan.link.bandwidth = GigabitsPerSecond(Positive(t, p, kFastestLink));
       },
       [](const Run& r) { return Number(r.plan.link.bandwidth, kGigabitsPerSecond); }},
      {"server_link_gbit_per_s", Need::kOptional,
       [](const auto& t, const auto& p, Run* r) {
         r->plan.server_link.bandwidth = GigabitsPerSecond(Positive(t, p, kFastestLink));
       },
       [](const Run& r) { return Number(r.plan.server_link.bandwidth, kGigabitsPerSecond); }},
      {"rtt_ms", Need::kOptional,
       [](const auto& t, const auto& p, Run* r) {
         r->plan.link.rtt = Milliseconds(ParseNumber(t, p, 0, kLongestRtt));
       },
       [](const Run& r) { return Number(r.plan.link.rtt, kMilliseconds); }},
      {"loss_rate", Need::kOptional,
       [](const auto& t, const auto& p, Run* r) { r->plan.link.loss = ParseProbability(t, p); },
       [](const Run& r) { return r.plan.link.loss ? Number(*r.plan.link.loss) : std::string(); }},
      {"bucket_mib", Need::kOptional,
       [](const auto& t, const auto& p, Run* r) {
         r->plan.bucket = Mebibytes(Positive(t, p, 1e9));
       },
       [](const Run& r) { return Number(r.plan.bucket, kMebibytes); }},
      {"hosts", Need::kOptional,
       [](const auto& t, const auto& p, Run* r) { r->plan.hosts = ParseHosts(t, p); },
       [](const Run& r) { return JoinHosts(r.plan.hosts); }},
      {"source", Need::kOptional, [](const auto& t, const auto&, Run* r) { r->source = t; },
       [](const Run& r) { return r.source; }},
  };
  return columns;
}

// What no single field can know.
void CheckWholeRow(const CsvTable& table, const CsvRow& row, const Run& run) {
  const auto place = [&](const char* column) { return InputPlace{table.path(), row.line, column}; };
  const Plan& plan = run.plan;
  const std::string servers = std::to_string(plan.servers);
  if (UsesServers(plan.strategy) && plan.servers == 0) {
    throw InputError(place("servers"), servers,
                     std::string("with strategy ") + StrategyName(plan.strategy), "at least 1");
  }
  if (!UsesServers(plan.strategy) && plan.servers != 0) {
    throw InputError(place("servers"), servers,
                     std::string("with strategy ") + StrategyName(plan.strategy),
                     "0, or a strategy that uses servers");
  }
  if (!plan.hosts.empty() && static_cast<int>(plan.hosts.size()) != plan.nodes()) {
    throw InputError(place("hosts"), JoinHosts(plan.hosts),
                     "names " + std::to_string(plan.hosts.size()) + " hosts",
                     std::to_string(plan.nodes()) + ", one for each node of placement " +
                         FormatPlacement(plan.placement));
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
