// The two ends of a connection that is measured.
#ifndef STEPCAST_MICROBENCH_NETWORK_TRAFFIC_H_
#define STEPCAST_MICROBENCH_NETWORK_TRAFFIC_H_

#include "data/record/network_profile.h"
#include "microbench/network/socket.h"

namespace stepcast::network {

struct RoundTrips {
  double median_s = 0;
  double p10_s = 0;
};

// Sends a small message and waits for it to come back, again and again for so long, but some few
// times at least.
RoundTrips Ping(const Socket& socket, double seconds, const Deadline& deadline);
// Sends back what comes until the other end closes.
void Echo(const Socket& socket, const Deadline& deadline);

// The rate [B/s] at which bytes come, 0 where none do: of `seconds` from `start` on, or from the
// first byte where that comes later. Tells the sender when it is done. Flows that share a line
// have one start: where one is measured for longer than the others, it has the line alone at last,
// and their sum is too high.
double Receive(const Socket& socket, Clock::time_point start, double seconds,
               const Deadline& deadline);
// Sends until the receiver is done, and says what the kernel then knows. What has not arrived is
// dropped.
TcpFacts SendUntilDone(Socket* socket, const Deadline& deadline);

}  // namespace stepcast::network

#endif  // STEPCAST_MICROBENCH_NETWORK_TRAFFIC_H_
