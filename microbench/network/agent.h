// A host that measures what its coordinator asks of it.
#ifndef STEPCAST_MICROBENCH_NETWORK_AGENT_H_
#define STEPCAST_MICROBENCH_NETWORK_AGENT_H_

#include <map>
#include <string>

#include "microbench/network/door.h"
#include "microbench/network/socket.h"

namespace stepcast::network {

struct AgentOptions {
  int rank = 0;
  int of = 0;
  std::string name;
  Address master;  // where the coordinator waits
  std::string token;
  std::string bind;    // interface or address to listen at; empty for that towards the master
  double join_s = 60;  // for the coordinator to be there
  Deadline deadline;   // for all
};

// Does what the coordinator says until it ends the probe; `door` is that of this host, or null for
// one of its own. Returns why the probe ended early, empty where it did not. Throws NetworkError
// where the coordinator cannot be reached, refuses this host, or goes away.
std::string RunAgent(const AgentOptions& options, Door* door = nullptr);

// ---- What the two sides agree on.

// How long a host takes at most to make a step's connections, how long the coordinator waits for
// that, and behind the end of a step for its results; and how long a host waits for a word of the
// coordinator, who may be waiting for another.
inline constexpr double kSetUpS = 4;
inline constexpr double kReadyS = 6;
inline constexpr double kGraceS = 5;
inline constexpr double kPatienceS = 20;

}  // namespace stepcast::network

#endif  // STEPCAST_MICROBENCH_NETWORK_AGENT_H_
