// Programs that this one starts.
#ifndef STEPCAST_MICROBENCH_SCRIPT_SPAWN_H_
#define STEPCAST_MICROBENCH_SCRIPT_SPAWN_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stepcast::script {

// Starts a program, by its words, in a process group of its own and without a signal held back: an
// interrupt of the terminal is ours, and who started it ends it in order. `variables` are set
// beside those of our environment; of `descriptors` the first is ours, and the second becomes the
// program's. Returns 0, or the number of the error that kept it from starting.
int SpawnApart(std::vector<std::string> words, const std::map<std::string, std::string>& variables,
               const std::vector<std::pair<int, int>>& descriptors, pid_t* pid);

}  // namespace stepcast::script

#endif  // STEPCAST_MICROBENCH_SCRIPT_SPAWN_H_
