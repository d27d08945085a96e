// What this host says of itself and of the interface that it measures by.
#ifndef STEPCAST_MICROBENCH_NETWORK_HOST_FACTS_H_
#define STEPCAST_MICROBENCH_NETWORK_HOST_FACTS_H_

#include <map>
#include <string>

#include "microbench/network/socket.h"

namespace stepcast::network {

// "interface", "driver", "mtu", "speed" ("25000 Mbit/s"), "kernel", "cores", "congestion_control",
// "receive_buffer", "send_buffer", "rdma_devices": those that the system tells.
std::map<std::string, std::string> HostFacts(const Address& own);

// As the system calls this host.
std::string HostName();

}  // namespace stepcast::network

#endif  // STEPCAST_MICROBENCH_NETWORK_HOST_FACTS_H_
