#include "predictor/cli/probe_script.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <set>

#include "data/io/csv.h"
#include "data/values/numbers.h"
#include "data/values/quantile.h"
#include "data/values/utf8.h"
#include "microbench/script/training.h"
#include "microbench/script/wanted_runs.h"
#include "predictor/cli/signals.h"

namespace stepcast::cli {
namespace {

using script::Training;
using script::TrainingEnd;
using script::WantedRun;
using script::WantedRuns;

// Fewer steps are no measurement.
constexpr std::size_t kLeastSteps = 3;
constexpr int kMostSteps = 1'000'000;

enum class Outcome { kMeasured, kTakenOver, kUnfinished, kFailed, kInterrupted };
constexpr const char* kOutcomeNames[] = {"measured", "taken over", "unfinished", "failed",
                                         "interrupted"};

struct Result {
  const WantedRun* wanted = nullptr;
  Outcome outcome = Outcome::kMeasured;
  script::Timed timed;   // a bound is of a training that had begun to step
  std::string sentence;  // of what went wrong
};

// The runs file that is written, a row at a time: each is on the disk before the next is measured.
class RunsFile {
 public:
  RunsFile(std::string path, const WantedRuns& wanted)
      : path_(std::move(path)), wanted_(&wanted), header_(MeasuredHeader(wanted)) {
    std::error_code error;
    is_new_ = !std::filesystem::exists(path_, error);
    has_header_ = std::filesystem::is_regular_file(path_, error) &&
                  std::filesystem::file_size(path_, error) > 0;
    if (has_header_) TakeOver();
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file_ < 0) throw Unwritten(errno);
  }
  ~RunsFile() {
    close(file_);
    std::error_code error;
    if (is_new_ && !has_header_) std::filesystem::remove(path_, error);  // nothing was measured
  }
  RunsFile(const RunsFile&) = delete;
  RunsFile& operator=(const RunsFile&) = delete;

  // Whether the file already had this run.
  bool Has(const WantedRun& run) const {
    return taken_over_.count(WantedKey(*wanted_, run.fields)) > 0;
  }

  void Append(const Result& result) {
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

 private:
  InputError Unwritten(int why) const {
    return {{path_, 0, ""}, "", std::string("cannot be written: ") + std::strerror(why)};
  }
  void TakeOver() {
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

  std::string path_;
  const WantedRuns* wanted_;
  std::vector<std::string> header_;
  std::set<std::string> taken_over_;
  int file_ = -1;
  bool is_new_ = false;  // nobody had made it
  bool has_header_ = false;
};

// A file for the callback's rows, in a folder of its own.
class StepsFile {
 public:
  StepsFile() {
    folder_ = (std::filesystem::temp_directory_path() / "stepcast-steps-XXXXXX").string();
    if (mkdtemp(folder_.data()) == nullptr) {
      throw std::runtime_error("no folder for the times of steps in " + folder_);
    }
  }
  ~StepsFile() {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  StepsFile(const StepsFile&) = delete;
  StepsFile& operator=(const StepsFile&) = delete;

  std::string path() const { return folder_ + "/steps.csv"; }

 private:
  std::string folder_;
};

std::string LastLine(const Training& training) {
  return training.last_lines.empty()
             ? "it printed nothing"
             : "its last line: " + Shortened(training.last_lines.back(), 200);
}

Result Judge(const WantedRun& wanted, const Training& training, int steps, bool by_pattern) {
  Result result;
  result.wanted = &wanted;
  std::vector<double>& step_s = result.timed.step_s;
  step_s = training.step_s;
  std::sort(step_s.begin(), step_s.end());
  const std::size_t seen = static_cast<std::size_t>(training.warm_up_seen) + step_s.size();
  if (training.end == TrainingEnd::kInterrupted) {
    result.outcome = Outcome::kInterrupted;
    return result;
  }
  if (step_s.size() >= kLeastSteps) {
    if (step_s.size() < static_cast<std::size_t>(steps)) {
      result.sentence =
          fmt::format("{} steps of {}: {}", step_s.size(), steps,
                      training.end == TrainingEnd::kOutOfTime
                          ? "there was no time for more"
                          : fmt::format("it ended with exit code {}", training.exit_code));
    }
    return result;
  }
  if (training.end == TrainingEnd::kOutOfTime) {
    result.outcome = Outcome::kUnfinished;
    // Before its first step a training loads and compiles, which is none of a step.
    if (seen > 0) result.timed.bound_s = training.since_step_s;
    result.sentence =
        fmt::format("{} steps within {}, and none in the last {} of it; {}", seen,
                    FormatDuration(Seconds(training.elapsed_s)),
                    FormatDuration(Seconds(training.since_step_s)), LastLine(training));
    return result;
  }
  result.outcome = Outcome::kFailed;
  result.sentence =
      fmt::format("ended with exit code {} after {} steps{}; {}", training.exit_code, seen,
                  seen > 0     ? ", of which a warm-up takes the first"
                  : by_pattern ? " that --pattern finds"
                               : " that stepcast_steps.py told of",
                  LastLine(training));
  return result;
}

void PrintResults(const std::vector<Result>& results, const std::vector<std::string>& flags,
                  const std::string& path) {
  const Style style = DetectStyle();
  std::string out = Heading(fmt::format("{} runs of a training", results.size()), style);
  Table table({{"run", "", Align::kLeft},
               {"steps", ""},
               {"mean", ""},
               {"half", ""},
               {"95 %", ""},
               {"99 %", ""},
               {"", "", Align::kLeft}});
  for (const Result& r : results) {
    const bool measured = r.outcome == Outcome::kMeasured;
    const auto quantile = [&](double share) {
      return measured ? FormatDuration(Seconds(Quantile(r.timed.step_s, share))) : "-";
    };
    table.AddRow({DescribePlan(r.wanted->run.plan),
                  measured ? std::to_string(r.timed.step_s.size()) : "-",
                  measured          ? FormatDuration(Seconds(r.timed.Mean()))
                  : r.timed.bound_s ? "> " + FormatDuration(Seconds(*r.timed.bound_s))
                                    : "-",
                  quantile(0.5), quantile(0.95), quantile(0.99),
                  kOutcomeNames[static_cast<int>(r.outcome)]});
  }
  out += table.Render(style, 2);
  for (const Result& r : results) {
    if (r.sentence.empty()) continue;
    out += FlagLine(DescribePlan(r.wanted->run.plan) + ": " + r.sentence, style, TerminalWidth());
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
                    {"problem", r.sentence.empty() ? Json(nullptr) : Json(r.sentence)}});
  }
  return {{"output", path}, {"runs", runs}, {"flags", flags}};
}

double SecondsOf(const Arguments& args, const char* option, double otherwise) {
  constexpr double kLongest = 30 * 86400;
  if (!args.Has(option)) return otherwise;
  const double seconds = ParseDuration(args.Text(option), OptionPlace(option)).si();
  if (seconds > 0 && seconds <= kLongest) return seconds;
  throw InputError(OptionPlace(option), args.Text(option), "is out of range", "up to 30 d");
}

}  // namespace

void AddScriptOptions(po::options_description* options) {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  options->add_options()("pattern", text("R"),
                         "script: where the command prints its steps' times, as "
                         "\"step (?<ms>[0-9.]+) ms\"; else stepcast_steps.py tells them")(
      "steps", text("N"), "script: steps to time in each run (100)")(
      "warm-up", text("N"), "script: steps before them (20)")(
      "run-limit", text("T"), "script: time after which a run is ended (30 min)");
}

int ProbeScript(const Arguments& args, const std::vector<std::string>& words) {
  if (words.size() < 2) {
    throw InputError({"", 0, words.empty() ? "FILE" : "COMMAND"}, "", "is required",
                     "stepcast probe script FILE -- COMMAND, with FILE of stepcast plan --output");
  }
  const WantedRuns wanted = script::ReadWantedRuns(words.front());
  const std::vector<std::string> command(words.begin() + 1, words.end());
  std::optional<script::StepPattern> pattern;
  if (args.Has("pattern")) pattern.emplace(args.Text("pattern"), OptionPlace("pattern"));
  const auto integer = [&](const char* option, int otherwise, int low) {
    return args.Has(option) ? ParseInteger(args.Text(option), OptionPlace(option), low, kMostSteps)
                            : otherwise;
  };
  script::TrainingOptions options;
  options.steps = integer("steps", options.steps, static_cast<int>(kLeastSteps));
  options.warm_up = integer("warm-up", options.warm_up, 0);
  const double run_limit = SecondsOf(args, "run-limit", options.limit_s);
  const double limit = SecondsOf(args, "time-limit", 1e9);
  options.pattern = pattern ? &*pattern : nullptr;
  options.interrupted = &interrupted;
  // A name that stands for nothing should be known before an hour's work.
  for (const WantedRun& run : wanted.runs) {
    const auto values = script::ValuesOf(wanted, run);
    for (const std::string& word : command) script::FillIn(word, values);
  }
  std::vector<std::string> flags;
  for (const std::string& column : script::UntoldColumns(wanted, command)) {
    std::string variable = "STEPCAST_" + column;
    for (char& c : variable) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    flags.push_back(fmt::format(
        "runs that differ in {0} have the very same command: unless it reads {1}, they are one run "
        "measured twice; {{{0}}} in the command stands for the value",
        column, variable));
  }
  const std::string path = args.Has("output") ? args.Text("output") : "runs.csv";
  RunsFile file(path, wanted);
  StopInOrder();

  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::vector<Result> results;
  std::string unwritten;
  ProgressLine line;
  for (const WantedRun& run : wanted.runs) {
    if (file.Has(run)) {
      results.push_back({&run, Outcome::kTakenOver, {}, ""});
      continue;
    }
    if (interrupted || elapsed() >= limit) {
      results.push_back({&run, Outcome::kInterrupted, {}, "it was not begun"});
      continue;
    }
    const StepsFile steps;
    const auto values = script::ValuesOf(wanted, run);
    options.command.clear();
    for (const std::string& word : command) {
      options.command.push_back(script::FillIn(word, values));
    }
    options.variables.clear();
    for (const auto& [name, value] : values) {
      std::string variable = "STEPCAST_" + name;
      for (char& c : variable) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      options.variables[variable] = value;
    }
    options.steps_file = steps.path();
    options.variables["STEPCAST_STEPS"] = steps.path();
    options.limit_s = std::min(run_limit, limit - elapsed());
    options.progress = [&](int seen) {
      line.Show(elapsed(),
                fmt::format("{} of {}: {}: {} of {} steps", results.size() + 1, wanted.runs.size(),
                            DescribePlan(run.run.plan), seen, options.warm_up + options.steps));
    };
    const std::time_t now = std::time(nullptr);
    const Training training = script::RunTraining(options);
    results.push_back(Judge(run, training, options.steps, pattern.has_value()));
    Result& result = results.back();
    if (result.outcome != Outcome::kMeasured && !result.timed.bound_s) continue;
    const std::string ran = fmt::format("{}", fmt::join(options.command, " "));
    result.timed.source =
        fmt::format("stepcast {} probe script, {:%Y-%m-%dT%H:%M:%SZ}, {} steps behind {}: {}",
                    STEPCAST_VERSION, fmt::gmtime(now), result.timed.step_s.size(), options.warm_up,
                    IsUtf8(ran) ? ran : "a command that is no UTF-8 text");
    try {
      file.Append(result);
    } catch (const InputError& e) {
      unwritten = e.what();
      break;
    }
  }
  line.End();
  if (args.Has("json")) {
    PrintJson(ResultsJson(results, flags, path));
  } else {
    PrintResults(results, flags, path);
  }
  if (!unwritten.empty()) {
    std::fputs(("stepcast: " + unwritten + "; what was measured is printed alone\n").c_str(),
               stderr);
    return kBadInput;
  }
  return std::all_of(results.begin(), results.end(),
                     [](const Result& r) {
                       return r.outcome == Outcome::kMeasured || r.outcome == Outcome::kTakenOver;
                     })
             ? kDone
             : kAnswerIsNo;
}

}  // namespace stepcast::cli
