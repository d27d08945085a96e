// A host of `stepcast probe steps`: runs a worker's program whenever the coordinator asks for it.
#ifndef STEPCAST_MICROBENCH_STEPS_AGENT_H_
#define STEPCAST_MICROBENCH_STEPS_AGENT_H_

#include <string>
#include <vector>

#include "microbench/network/meeting.h"

namespace stepcast::steps {

// How long a worker may take to start, to connect and to end.
inline constexpr double kStartS = 30;

// The worker's program in one of these folders. Throws InputError where this stepcast has none.
std::string WorkerProgram(const std::vector<std::string>& folders);

// Does what the coordinator says until it ends the probe; `door` is that of this host, or null for
// one of its own. Returns why the probe ended early, empty where it did not. Throws NetworkError
// where the coordinator cannot be reached, refuses this host, or goes away. Whatever happens, no
// worker is left running.
std::string RunAgent(const network::AgentOptions& options, const std::string& program,
                     network::Door* door = nullptr);

}  // namespace stepcast::steps

#endif  // STEPCAST_MICROBENCH_STEPS_AGENT_H_
