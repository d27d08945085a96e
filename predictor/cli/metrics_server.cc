#include "predictor/cli/metrics_server.h"

#ifdef STEPCAST_HAS_SERVE

#include <fmt/format.h>

#include <chrono>
#include <mutex>

#include "predictor/serve/http_server.h"

namespace stepcast::cli {
namespace {

constexpr std::size_t kMostWaiting = 16;

serve::Inventory InventoryOf(const Target& target) {
  return {{target.cluster}, {target.workload}, target.library.Devices()};
}

serve::HttpOptions OptionsOf(const serve::Address& address) {
  serve::HttpOptions options;
  options.address = address;
  constexpr std::size_t kFew = 64;
  options.most_connections = kFew;
  return options;
}

}  // namespace

struct MetricsServer::State {
  State(const serve::Address& address, const Target& target)
      : service([target] { return InventoryOf(target); }, {}),
        api(&service, &metrics),
        pool(1, kMostWaiting) {
    metrics.AlsoTell([this] {
      const std::lock_guard lock(mutex);
      return watched.Text();
    });
    server = std::make_unique<serve::HttpServer>(&api, &metrics, &pool, OptionsOf(address));
  }
  ~State() {
    server->Stop(std::chrono::milliseconds(0));
    pool.Stop();
  }

  std::mutex mutex;  // of watched
  serve::WatchMetrics watched;
  serve::Service service;
  serve::Metrics metrics;
  serve::Api api;
  serve::WorkPool pool;
  std::unique_ptr<serve::HttpServer> server;
};

MetricsServer::MetricsServer(const std::string& address, const InputPlace& place,
                             const Target& target) {
  serve::Address listen = serve::ParseAddress(address, place);
  state_ = std::make_unique<State>(listen, target);
  listen.port = state_->server->port();
  cli::Tell(fmt::format("http://{}/metrics answers{}", listen.text(),
                        listen.loopback() ? "" : ", other machines too, without password"));
}

MetricsServer::~MetricsServer() = default;

void MetricsServer::Tell(const serve::WatchMetrics& metrics) {
  const std::lock_guard lock(state_->mutex);
  state_->watched = metrics;
}

}  // namespace stepcast::cli

#endif
