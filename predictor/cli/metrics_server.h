// /metrics of a job that is watched: an HTTP server of its cluster, as stepcast serve has it.
#ifndef STEPCAST_PREDICTOR_CLI_METRICS_SERVER_H_
#define STEPCAST_PREDICTOR_CLI_METRICS_SERVER_H_

#ifdef STEPCAST_HAS_SERVE

#include <memory>
#include <string>

#include "predictor/cli/command.h"
#include "predictor/serve/watch_metrics.h"

namespace stepcast::cli {

class MetricsServer {
 public:
  // Listens and answers from now on. Throws InputError for an address that cannot be listened on.
  MetricsServer(const std::string& address, const InputPlace& place, const Target& target);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  void Tell(const serve::WatchMetrics& metrics);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stepcast::cli

#endif

#endif  // STEPCAST_PREDICTOR_CLI_METRICS_SERVER_H_
