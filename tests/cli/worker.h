// What tests of probes share: workers' programs, of which a build may lack some, and how hosts
// meet.
#ifndef STEPCAST_TESTS_CLI_WORKER_H_
#define STEPCAST_TESTS_CLI_WORKER_H_

#include <unistd.h>

#include <string>

#include "microbench/network/socket.h"

namespace stepcast::program {

// All hosts of a probe have it in their environment.
inline constexpr const char* kToken = "STEPCAST_PROBE_TOKEN=0123456789abcdef";

// An address of the loopback with a port that is free now, as others see it.
inline std::string FreeMaster() {
  return network::Socket::Listen(network::LocalAddress("127.0.0.1")).local().text();
}

// Whether it lies beside the program under test.
inline bool HasWorker(const std::string& name) {
  const std::string program = STEPCAST_PROGRAM;
  const std::string beside = program.substr(0, program.rfind('/')) + "/../lib/stepcast/" + name;
  return access(beside.c_str(), X_OK) == 0;
}

}  // namespace stepcast::program

#endif  // STEPCAST_TESTS_CLI_WORKER_H_
