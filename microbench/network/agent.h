// A host that measures what its coordinator asks of it.
#ifndef STEPCAST_MICROBENCH_NETWORK_AGENT_H_
#define STEPCAST_MICROBENCH_NETWORK_AGENT_H_

#include <string>

#include "microbench/network/meeting.h"

namespace stepcast::network {

// Does what the coordinator says until it ends the probe; `door` is that of this host, or null for
// one of its own. Returns why the probe ended early, empty where it did not. Throws NetworkError
// where the coordinator cannot be reached, refuses this host, or goes away.
std::string RunAgent(const AgentOptions& options, Door* door = nullptr);

// ---- What the two sides agree on.

// How long a host takes at most to make a step's connections, and how long the coordinator waits
// for that.
inline constexpr double kSetUpS = 4;
inline constexpr double kReadyS = 6;

}  // namespace stepcast::network

#endif  // STEPCAST_MICROBENCH_NETWORK_AGENT_H_
