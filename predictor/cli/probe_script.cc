#include "predictor/cli/probe_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "data/values/numbers.h"
#include "data/values/utf8.h"
#include "microbench/script/training.h"
#include "microbench/script/wanted_runs.h"
#include "predictor/cli/probe_runs.h"
#include "predictor/cli/signals.h"

namespace stepcast::cli {
namespace {

using script::TrainingEnd;
using script::WantedRun;
using script::WantedRuns;

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

std::string LastLine(const script::Training& training) {
  return training.last_lines.empty()
             ? "it printed nothing"
             : "its last line: " + Shortened(training.last_lines.back(), 200);
}

Result Judge(const WantedRun& wanted, const script::Training& training, int steps,
             bool by_pattern) {
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

// The variable of the environment that tells a training its value of a column.
std::string VariableFor(const std::string& column) {
  std::string variable = "STEPCAST_" + column;
  for (char& c : variable) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return variable;
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
  options->add_options()("pattern", OptionValue("R"),
                         "script: where the command prints its steps' times, as "
                         "\"step (?<ms>[0-9.]+) ms\"; else stepcast_steps.py tells them")(
      "steps", OptionValue("N"), "script, steps: steps to time in each run (100; 30)")(
      "warm-up", OptionValue("N"), "script, steps: steps before them (20; 3)")(
      "run-limit", OptionValue("T"),
      "script, steps: time after which a run is ended (30 min; 5 min)");
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
  script::TrainingOptions options;
  options.steps =
      ReadInteger(args, "steps", static_cast<int>(kLeastSteps), kMostSteps, options.steps);
  options.warm_up = ReadInteger(args, "warm-up", 0, kMostSteps, options.warm_up);
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
    flags.push_back(fmt::format(
        "runs that differ in {0} have the very same command: unless it reads {1}, they are one run "
        "measured twice; {{{0}}} in the command stands for the value",
        column, VariableFor(column)));
  }
  const std::string path = args.TextOr("output", "runs.csv");
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
      options.variables[VariableFor(name)] = value;
    }
    options.steps_file = steps.path();
    options.variables["STEPCAST_STEPS"] = steps.path();
    options.limit_s = std::min(run_limit, limit - elapsed());
    options.progress = [&](int seen) {
      line.Show(elapsed(),
                fmt::format("{} of {}: {}: {} of {} steps", results.size() + 1, wanted.runs.size(),
                            DescribePlan(run.run.plan), seen, options.warm_up + options.steps));
    };
    const std::string began = TimeNow();
    const script::Training training = script::RunTraining(options);
    results.push_back(Judge(run, training, options.steps, pattern.has_value()));
    Result& result = results.back();
    if (result.outcome != Outcome::kMeasured && !result.timed.bound_s) continue;
    const std::string ran = fmt::format("{}", fmt::join(options.command, " "));
    result.timed.source =
        fmt::format("stepcast {} probe script, {}, {} steps behind {}: {}", STEPCAST_VERSION, began,
                    result.timed.step_s.size(), options.warm_up,
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
    Tell(unwritten + "; what was measured is printed alone");
    return kBadInput;
  }
  return CodeOf(results);
}

}  // namespace stepcast::cli
