// Runs a training command until enough of its steps were timed, and ends it then.
#ifndef STEPCAST_MICROBENCH_SCRIPT_TRAINING_H_
#define STEPCAST_MICROBENCH_SCRIPT_TRAINING_H_

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "microbench/script/step_pattern.h"

namespace stepcast::script {

struct TrainingOptions {
  std::vector<std::string> command;              // the program and its arguments
  std::map<std::string, std::string> variables;  // beside this process's own
  const StepPattern* pattern = nullptr;          // null: times come from the file
  std::string steps_file;                        // where the callback writes them
  int warm_up = 20;                              // steps that are not counted
  int steps = 100;                               // that are enough
  double limit_s = 1800;
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(int steps)> progress;  // called now and then
};

enum class TrainingEnd { kEnough, kEnded, kOutOfTime, kInterrupted };

struct Training {
  TrainingEnd end = TrainingEnd::kEnded;
  int exit_code = 0;           // of kEnded; 128 + the signal
  std::vector<double> step_s;  // behind the warm-up
  int warm_up_seen = 0;        // steps of the warm-up
  double elapsed_s = 0;
  double since_step_s = 0;              // from the last step, or the begin, to the end
  std::vector<std::string> last_lines;  // that it printed
};

// The command and whatever it started are gone when this returns. Throws InputError where the
// command cannot be run, and for a file of steps that is none.
Training RunTraining(const TrainingOptions& options);

}  // namespace stepcast::script

#endif  // STEPCAST_MICROBENCH_SCRIPT_TRAINING_H_
