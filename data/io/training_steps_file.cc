#include "data/io/training_steps_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "data/io/csv.h"
#include "data/values/names.h"
#include "data/values/numbers.h"

namespace stepcast {
namespace {

constexpr std::int64_t kMostSteps = 1'000'000'000'000;

// A double tells a time since 1970 to a quarter of a microsecond only: digits are read as they are.
std::int64_t ParseTime(std::string_view text, const InputPlace& place) {
  const auto refuse = [&](const std::string& problem) {
    return InputError(place, std::string(text), problem,
                      "seconds since 1970, as 1769860800.123456");
  };
  const std::string_view digits = Trim(text);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  std::int64_t seconds = 0;
  const char* const end = digits.data() + point;
  const auto whole = std::from_chars(digits.data(), end, seconds);
  if (point == 0 || whole.ec != std::errc() || whole.ptr != end) throw refuse("is no time");
  if (seconds < 0 || seconds > kLatestS) throw refuse("is out of range");
  std::int64_t ns = 0;
  std::int64_t unit = kNsPerS;
  for (const char c : digits.substr(std::min(point + 1, digits.size()))) {
    if (c < '0' || c > '9') throw refuse("is no time");
    unit /= 10;
    ns += unit * (c - '0');
  }
  return seconds * kNsPerS + ns;
}

std::string TimeText(std::int64_t ns) {
  return fmt::format("{}.{:09}", ns / kNsPerS, ns % kNsPerS);
}

struct Row {
  TrainingStep step;
  int line = 0;
};

HostSteps InOrder(const std::string& host, std::vector<Row> rows, const std::string& path) {
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::pair(a.step.begin_ns, a.line) < std::pair(b.step.begin_ns, b.line);
  });
  HostSteps steps{host, {}};
  steps.steps.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && rows[i].step.begin_ns < rows[i - 1].step.end_ns) {
      throw InputError({path, rows[i].line, "begin_s"}, TimeText(rows[i].step.begin_ns),
                       fmt::format("lies in the step of line {}", rows[i - 1].line),
                       "steps of a host one after another");
    }
    steps.steps.push_back(rows[i].step);
  }
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return a.step.number < b.step.number; });
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].step.number > rows[i - 1].step.number) continue;
    throw InputError({path, std::max(rows[i].line, rows[i - 1].line), "step"},
                     std::to_string(rows[i].step.number), "is given twice",
                     "each step once a host");
  }
  return steps;
}

std::vector<HostSteps> FromTable(const CsvTable& table) {
  const std::size_t number = table.RequiredColumn("step");
  const std::size_t begin = table.RequiredColumn("begin_s");
  const std::size_t end = table.RequiredColumn("end_s");
  const auto host = table.Column("host");
  const auto compute_end = table.Column("compute_end_s");
  std::vector<std::string> names;
  std::map<std::string, std::vector<Row>> rows;
  for (const CsvRow& row : table.rows()) {
    const auto time = [&](std::size_t column) {
      return ParseTime(row.fields[column], table.Place(row, column));
    };
    TrainingStep step;
    step.number = ParseLongInteger(row.fields[number], table.Place(row, number), 0, kMostSteps);
    step.begin_ns = time(begin);
    step.end_ns = time(end);
    if (step.end_ns <= step.begin_ns) {
      throw InputError(table.Place(row, end), row.fields[end], "is not after begin_s",
                       "a time after " + row.fields[begin]);
    }
    if (compute_end && !Trim(row.fields[*compute_end]).empty()) {
      step.compute_end_ns = time(*compute_end);
      if (*step.compute_end_ns < step.begin_ns || *step.compute_end_ns > step.end_ns) {
        throw InputError(table.Place(row, *compute_end), row.fields[*compute_end],
                         "lies outside of the step", "a time from begin_s to end_s");
      }
    }
    const std::string name =
        host ? CheckedName(row.fields[*host], table.Place(row, *host)) : std::string();
    std::vector<Row>& own = rows[name];
    if (own.empty()) names.push_back(name);
    own.push_back({step, row.line});
  }
  if (names.empty()) throw InputError({table.path(), 0, ""}, "", "has no steps", "a row for each");
  std::vector<HostSteps> hosts;
  for (const std::string& name : names) hosts.push_back(InOrder(name, rows[name], table.path()));
  return hosts;
}

}  // namespace

std::vector<HostSteps> ReadTrainingSteps(const std::string& path) {
  return FromTable(CsvTable::Read(path));
}

std::vector<HostSteps> ParseTrainingSteps(const std::string& text, const std::string& path) {
  return FromTable(CsvTable::Parse(text, path));
}

}  // namespace stepcast
