// The runs that are worth measuring next, as commands choose them and tell of them.
#ifndef STEPCAST_PREDICTOR_CLI_WANTED_RUNS_H_
#define STEPCAST_PREDICTOR_CLI_WANTED_RUNS_H_

#include <optional>
#include <string>
#include <vector>

#include "calibrate/next_runs.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {

inline constexpr int kDefaultWanted = 5;
inline constexpr int kMostWanted = 100;

struct ChosenRuns {
  Workload workload;  // its name and how it is trained; without layers
  std::string device;
  std::string cluster;
  Plan goal;  // whose forecast they are to narrow
  Prediction now;
  NextRuns next;
};

// At most `count` of `among`, or where it is empty of the goal's smaller layouts, but none of
// `left_out`; then each known host alone. A goal with strategy auto is one with the strategy that
// is chosen for it.
ChosenRuns ChooseWanted(const Target& target, Plan goal,
                        const std::optional<std::vector<Plan>>& among,
                        const std::vector<Plan>& left_out, int count);

// ---- In words.

// What the forecast is now, and what there is to do.
std::string WantedNow(const ChosenRuns& wanted);
inline constexpr const char* kNoneWanted =
    "No run would tell more about it: what remains is how single steps scatter.";
std::string HowToMeasure(const ChosenRuns& wanted);
// One row for each run.
Table WantedTable(const ChosenRuns& wanted);
// The runs as they go into a runs file, but for their times; the header comes first. All columns
// that any of them needs.
std::vector<std::string> WantedRows(const ChosenRuns& wanted);
// The same lines with the command of each run in front of it.
std::string WantedLines(const ChosenRuns& wanted);

Json WantedJson(const ChosenRuns& wanted);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_WANTED_RUNS_H_
