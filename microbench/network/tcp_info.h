// What the kernel knows of a connection: TCP_INFO (linux/tcp.h).
#ifndef STEPCAST_MICROBENCH_NETWORK_TCP_INFO_H_
#define STEPCAST_MICROBENCH_NETWORK_TCP_INFO_H_

#include "data/record/network_profile.h"
#include "microbench/network/socket.h"

namespace stepcast::network {

// Throws NetworkError where the kernel does not tell.
TcpFacts ReadTcpInfo(const Socket& socket);

// What has come over a connection so far, whether or not the program has read it.
struct Arrived {
  double segments = 0;
  double in_order = 0;  // [B]; what waits behind a lost packet is not in it
  double largest = 0;   // payload of a segment [B]

  double payload() const { return segments > 0 ? in_order / segments : 0; }
};

// Throws NetworkError where the kernel does not tell.
Arrived ReadArrived(const Socket& socket);

// Facts of flows beside each other: counts add up, times and windows are means, shares are those of
// all flows' time.
TcpFacts Joined(const std::vector<TcpFacts>& flows);

}  // namespace stepcast::network

#endif  // STEPCAST_MICROBENCH_NETWORK_TCP_INFO_H_
