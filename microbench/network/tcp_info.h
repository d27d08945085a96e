// What the kernel knows of a connection: TCP_INFO (linux/tcp.h).
#ifndef STEPCAST_MICROBENCH_NETWORK_TCP_INFO_H_
#define STEPCAST_MICROBENCH_NETWORK_TCP_INFO_H_

#include "data/record/network_profile.h"
#include "microbench/network/socket.h"

namespace stepcast::network {

// Throws NetworkError where the kernel does not tell.
TcpFacts ReadTcpInfo(const Socket& socket);

// The bytes that have come in order, whether or not the program has read them. Throws NetworkError
// where the kernel does not tell.
double BytesReceived(const Socket& socket);

// Facts of flows beside each other: counts add up, times and windows are means, shares are those of
// all flows' time.
TcpFacts Joined(const std::vector<TcpFacts>& flows);

}  // namespace stepcast::network

#endif  // STEPCAST_MICROBENCH_NETWORK_TCP_INFO_H_
