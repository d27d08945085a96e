// Runs that are to be measured: a runs CSV whose column step_time_s says STEP_TIME, as `stepcast
// plan --output` writes it, and the command that each of them becomes.
#ifndef STEPCAST_MICROBENCH_SCRIPT_WANTED_RUNS_H_
#define STEPCAST_MICROBENCH_SCRIPT_WANTED_RUNS_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/record/run.h"

namespace stepcast::script {

struct WantedRun {
  Run run;                          // but for its times
  std::vector<std::string> fields;  // of the file's row
};

struct WantedRuns {
  std::vector<std::string> header;
  std::size_t time_column = 0;
  std::vector<WantedRun> runs;
};

// The plans of rows, whatever times they have. Throws InputError where a row is no run.
std::vector<Run> ReadPlannedRuns(const std::string& path);

// Throws InputError where a row is no run, or has a time.
WantedRuns ReadWantedRuns(const std::string& path);
WantedRuns ParseWantedRuns(const std::string& text, const std::string& path);

// What was measured of a run: times of its steps [s], the least first, or what a step takes longer
// than, of a run that was ended before it had enough.
struct Timed {
  std::vector<double> step_s;
  std::optional<double> bound_s;
  std::string source;

  double Mean() const;
};

// The runs CSV of what was measured: the wanted columns, and behind them those of a measurement.
std::vector<std::string> MeasuredHeader(const WantedRuns& wanted);
std::vector<std::string> MeasuredFields(const WantedRuns& wanted, const WantedRun& run,
                                        const Timed& timed);
// What tells runs apart in it: all that was wanted, but for what a measurement writes.
std::string WantedKey(const WantedRuns& wanted, const std::vector<std::string>& fields);

// What a command may ask for: the file's columns, and workers, nodes, devices_per_node (of the
// fullest) and global_batch.
std::map<std::string, std::string> ValuesOf(const WantedRuns& wanted, const WantedRun& run);

// The word with each {NAME} replaced by its value; {{ stands for a brace. Throws InputError for a
// name that has none.
std::string FillIn(const std::string& word, const std::map<std::string, std::string>& values);

// The columns in which runs of the very same command differ: it learns of them from its
// environment, or not at all. Empty where each run has a command of its own, or the command names a
// variable.
std::set<std::string> UntoldColumns(const WantedRuns& wanted,
                                    const std::vector<std::string>& command);

}  // namespace stepcast::script

#endif  // STEPCAST_MICROBENCH_SCRIPT_WANTED_RUNS_H_
