// A host of `stepcast probe steps`: runs the program of a worker or of servers whenever the
// coordinator asks for it.
#ifndef STEPCAST_MICROBENCH_STEPS_AGENT_H_
#define STEPCAST_MICROBENCH_STEPS_AGENT_H_

#include <string>
#include <vector>

#include "microbench/network/meeting.h"
#include "microbench/steps/work.h"

namespace stepcast::steps {

// How long one may take to start, to connect and to end.
inline constexpr double kStartS = 30;

// The programs of workers, by how they exchange; empty where this stepcast has none.
struct Programs {
  std::string gloo;
  std::string servers;  // a worker, servers, or both
  std::string mpi = {};

  const std::string& Of(const Training& training) const {
    if (training.servers) return servers;
    return training.library == Library::kMpi ? mpi : gloo;
  }
};
// The programs that are found in one of these folders.
Programs FindPrograms(const std::vector<std::string>& folders);
// Throws InputError where there is none for such trainings.
void RequireProgram(const Programs& programs, const Training& training);

// Does what the coordinator says until it ends the probe; `door` is that of this host, or null for
// one of its own. `shaped` is the interface whose conditions the coordinator may set, empty where
// it may set none: they are as they were when this returns or throws. Returns why the probe ended
// early, empty where it did not. Throws NetworkError where the coordinator cannot be reached,
// refuses this host, or goes away. Whatever happens, no worker is left running.
std::string RunAgent(const network::AgentOptions& options, const Programs& programs,
                     network::Door* door = nullptr, const std::string& shaped = {});

}  // namespace stepcast::steps

#endif  // STEPCAST_MICROBENCH_STEPS_AGENT_H_
