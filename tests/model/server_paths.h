// Workers and servers for tests: 50 us and 10 Gbit/s at nodes and servers, no initiations.
#ifndef STEPCAST_TESTS_MODEL_SERVER_PATHS_H_
#define STEPCAST_TESTS_MODEL_SERVER_PATHS_H_

#include "model/exchange/parameter_server.h"

namespace stepcast {

inline const DataSize<> kMessage = Megabytes(100.0);

inline ServerPaths<double> PathsWithoutInitiations(int workers, int servers, int per_node = 1) {
  ServerPaths<double> paths;
  paths.workers = workers;
  paths.servers = servers;
  paths.workers_per_node = per_node;
  paths.worker = {Microseconds(50.0), GigabitsPerSecond(10.0)};
  paths.server_bandwidth = GigabitsPerSecond(10.0);
  return paths;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_MODEL_SERVER_PATHS_H_
