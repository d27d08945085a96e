// Counts of a service's work, as Prometheus reads them.
#ifndef STEPCAST_PREDICTOR_SERVE_METRICS_H_
#define STEPCAST_PREDICTOR_SERVE_METRICS_H_

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace stepcast::serve {

// The lines before the values of stepcast_NAME, and these with its only value.
void AddMetricHeader(const char* name, const char* type, const char* help, std::string* text);
template <class Value>
void AddMetric(const char* name, const char* type, const char* help, const Value& value,
               std::string* text) {
  AddMetricHeader(name, type, help, text);
  *text += fmt::format("stepcast_{} {}\n", name, value);
}

// Safe to use from many threads.
class Metrics {
 public:
  // A request to `endpoint` was answered by `code`, so long after it had been read.
  void Answered(const std::string& endpoint, const std::string& code, double seconds);

  std::atomic<std::int64_t> plans{0};     // predicted
  std::atomic<std::int64_t> observed{0};  // steps of jobs
  std::atomic<std::int64_t> changes{0};   // that they have shown
  std::atomic<std::int64_t> reloads{0};
  std::atomic<std::int64_t> failed_reloads{0};
  std::atomic<std::int64_t> in_flight{0};  // requests that are read or answered
  std::atomic<std::int64_t> connections{0};
  std::atomic<std::int64_t> refused_connections{0};
  std::atomic<std::int64_t> closed_for_others{0};  // that waited, when a new one came
  std::atomic<std::int64_t> timeouts{0};
  std::atomic<std::int64_t> failures{0};  // connections that ended for want of memory, say

  // What stands behind the service's own in the text: called by whoever asks for it, from any
  // thread. To be set before anybody asks.
  void AlsoTell(std::function<std::string()> others) { others_ = std::move(others); }

  // The text format of Prometheus, 0.0.4. `snapshot`, `compiled` and `jobs` are of the service.
  std::string Text(int snapshot, std::size_t compiled, std::size_t jobs) const;

 private:
  static constexpr std::array<double, 13> kBounds = {
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5};
  struct Histogram {
    std::array<std::int64_t, kBounds.size() + 1> counts{};  // of each bound; the last beyond all
    double sum = 0;
  };

  std::function<std::string()> others_;
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::int64_t> answered_;  // endpoint, code
  std::map<std::string, Histogram> seconds_;                              // endpoint
};

}  // namespace stepcast::serve

#endif  // STEPCAST_PREDICTOR_SERVE_METRICS_H_
