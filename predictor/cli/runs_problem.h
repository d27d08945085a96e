// Runs as commands take them: files read, names resolved, each run's error naming its line.
#ifndef STEPCAST_PREDICTOR_CLI_RUNS_PROBLEM_H_
#define STEPCAST_PREDICTOR_CLI_RUNS_PROBLEM_H_

#include <functional>
#include <string>

#include "calibrate/calibrate.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {

// Options --cluster, --runs and --workload-file.
void AddRunsOptions(po::options_description* options);

// The cluster, the runs of all files in order, with devices by their canonical names, and the
// workloads and data sheets that they name.
// `option` is the one that names the files. Throws InputError, with their names, where they hold no
// run.
CalibrationProblem ReadRunsProblem(const Arguments& arguments, const std::string& option = "runs");

// The same run by run: `take` is given each, and the problem, which has all that the run names and
// no runs.
CalibrationProblem ReadEachRun(
    const Arguments& arguments, const std::string& option,
    const std::function<void(Run&& run, const CalibrationProblem& problem)>& take);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_RUNS_PROBLEM_H_
