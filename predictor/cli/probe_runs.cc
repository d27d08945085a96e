#include "predictor/cli/probe_runs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "data/io/csv.h"
#include "data/record/quantile.h"

namespace stepcast::cli {

RunsFile::RunsFile(std::string path, const script::WantedRuns& wanted)
    : path_(std::move(path)), wanted_(&wanted), header_(MeasuredHeader(wanted)) {
  std::error_code error;
  is_new_ = !std::filesystem::exists(path_, error);
  has_header_ = std::filesystem::is_regular_file(path_, error) &&
                std::filesystem::file_size(path_, error) > 0;
  if (has_header_) TakeOver();
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) throw Unwritten(errno);
}

RunsFile::~RunsFile() {
  close(file_);
  std::error_code error;
  if (is_new_ && !has_header_) std::filesystem::remove(path_, error);  // nothing was measured
}

void RunsFile::Append(const Result& result) {
  const std::string text = (has_header_ ? "" : CsvLine(header_)) +
                           CsvLine(MeasuredFields(*wanted_, *result.wanted, result.timed));
  const off_t before = lseek(file_, 0, SEEK_END);
  const auto size = static_cast<ssize_t>(text.size());
  errno = ENOSPC;  // what a write that is cut short means
  const bool written = write(file_, text.data(), text.size()) == size;
  // A pipe has no disk.
  if (!written || (fsync(file_) != 0 && errno != EINVAL)) {
    const int why = errno;
    // Half a row would make the file none; a device has no size to set.
    [[maybe_unused]] const int cut = ftruncate(file_, before);
    throw Unwritten(why);
  }
  has_header_ = true;
}

InputError RunsFile::Unwritten(int why) const {
  return {{path_, 0, ""}, "", std::string("cannot be written: ") + std::strerror(why)};
}

void RunsFile::TakeOver() {
  const CsvTable table = CsvTable::Read(path_);
  if (table.header() != header_) {
    throw InputError({path_, 1, ""}, "", "has other columns than the runs that are wanted",
                     "a new file, or the columns " + fmt::format("{}", fmt::join(header_, ",")));
  }
  // Who was stopped may have more time now.
  for (const CsvRow& row : table.rows()) {
    if (Trim(row.fields[wanted_->time_column]).rfind('>', 0) == 0) continue;
    taken_over_.insert(WantedKey(*wanted_, row.fields));
  }
}

std::string DescribeRun(const script::WantedRun& run) {
  return run.run.workload + ": " + DescribePlan(run.run.plan);
}

void PrintResults(const std::vector<Result>& results, const std::vector<std::string>& flags,
                  const std::string& path) {
  const Style style = DetectStyle();
  std::string out = Heading(fmt::format("{} runs of a training", results.size()), style);
  Table table({LeftColumn("run"), "steps", "mean", "half", "95 %", "99 %", LeftColumn("")});
  for (const Result& r : results) {
    const bool measured = r.outcome == Outcome::kMeasured;
    const auto quantile = [&](double share) {
      return measured ? FormatDuration(Seconds(Quantile(r.timed.step_s, share))) : "-";
    };
    table.AddRow({DescribeRun(*r.wanted), measured ? std::to_string(r.timed.step_s.size()) : "-",
                  measured          ? FormatDuration(Seconds(r.timed.Mean()))
                  : r.timed.bound_s ? "> " + FormatDuration(Seconds(*r.timed.bound_s))
                                    : "-",
                  quantile(0.5), quantile(0.95), quantile(0.99),
                  kOutcomeNames[static_cast<int>(r.outcome)]});
  }
  out += table.Render(style, 2);
  for (const Result& r : results) {
    if (r.sentence.empty()) continue;
    out += FlagLine(DescribeRun(*r.wanted) + ": " + r.sentence, style, TerminalWidth());
  }
  const bool any = std::any_of(results.begin(), results.end(), [](const Result& r) {
    return r.outcome == Outcome::kMeasured || r.outcome == Outcome::kTakenOver || r.timed.bound_s;
  });
  for (const std::string& flag : flags) out += FlagLine(flag, style, TerminalWidth());
  if (any) out += NoteLine("runs: " + path, style);
  Print(out);
}

Json ResultsJson(const std::vector<Result>& results, const std::vector<std::string>& flags,
                 const std::string& path) {
  Json runs = Json::array();
  for (const Result& r : results) {
    const bool measured = r.outcome == Outcome::kMeasured;
    const auto quantile = [&](double share) {
      return measured ? Json(Quantile(r.timed.step_s, share)) : Json(nullptr);
    };
    runs.push_back({{"plan", PlanJson(r.wanted->run.plan)},
                    {"outcome", kOutcomeNames[static_cast<int>(r.outcome)]},
                    {"measured_steps", r.timed.step_s.size()},
                    {"step_time_s", measured ? Json(r.timed.Mean()) : Json(nullptr)},
                    {"p50_s", quantile(0.5)},
                    {"p95_s", quantile(0.95)},
                    {"p99_s", quantile(0.99)},
                    {"bound_s", NumberJson(r.timed.bound_s)},
                    {"problem", TextJson(r.sentence)}});
  }
  return {{"output", path}, {"runs", runs}, {"flags", flags}};
}

int CodeOf(const std::vector<Result>& results) {
  return std::all_of(results.begin(), results.end(),
                     [](const Result& r) {
                       return r.outcome == Outcome::kMeasured || r.outcome == Outcome::kTakenOver;
                     })
             ? kDone
             : kAnswerIsNo;
}

}  // namespace stepcast::cli
