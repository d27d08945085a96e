#include "predictor/serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepcast::serve {

void AddMetricHeader(const char* name, const char* type, const char* help, std::string* text) {
  *text += fmt::format("# HELP stepcast_{0} {2}\n# TYPE stepcast_{0} {1}\n", name, type, help);
}

void Metrics::Answered(const std::string& endpoint, const std::string& code, double seconds) {
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
  const std::lock_guard lock(mutex_);
  ++answered_[{endpoint, code}];
  Histogram& histogram = seconds_[endpoint];
  ++histogram.counts[static_cast<std::size_t>(bucket)];
  histogram.sum += seconds;
}

std::string Metrics::Text(int snapshot, std::size_t compiled, std::size_t jobs) const {
  std::string text;
  const auto single = [&](const char* name, const char* type, const char* help, auto value) {
    AddMetric(name, type, help, value, &text);
  };
  {
    const std::lock_guard lock(mutex_);
    AddMetricHeader("requests_total", "counter", "Requests answered.", &text);
    for (const auto& [labels, count] : answered_) {
      text += fmt::format("stepcast_requests_total{{endpoint=\"{}\",code=\"{}\"}} {}\n",
                          labels.first, labels.second, count);
    }
    AddMetricHeader("request_seconds", "histogram", "From a request's last byte to its answer.",
                    &text);
    for (const auto& [endpoint, histogram] : seconds_) {
      std::int64_t count = 0;
      for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
        count += histogram.counts[i];
        text += fmt::format("stepcast_request_seconds_bucket{{endpoint=\"{}\",le=\"{}\"}} {}\n",
                            endpoint, i < kBounds.size() ? fmt::format("{}", kBounds[i]) : "+Inf",
                            count);
      }
      text += fmt::format(
          "stepcast_request_seconds_sum{{endpoint=\"{0}\"}} {1}\n"
          "stepcast_request_seconds_count{{endpoint=\"{0}\"}} {2}\n",
          endpoint, histogram.sum, count);
    }
  }
  single("plans_total", "counter", "Plans predicted.", plans.load());
  single("observed_steps_total", "counter", "Steps of jobs that were observed.", observed.load());
  single("changes_total", "counter", "Changes that observed steps have shown.", changes.load());
  single("jobs", "gauge", "Jobs that are followed.", jobs);
  AddMetricHeader("reloads_total", "counter", "Times that the files were read anew.", &text);
  text += fmt::format(
      "stepcast_reloads_total{{outcome=\"done\"}} {}\n"
      "stepcast_reloads_total{{outcome=\"failed\"}} {}\n",
      reloads.load(), failed_reloads.load());
  single("snapshot", "gauge", "Number of the snapshot that answers.", snapshot);
  single("compiled_plans", "gauge", "Compiled plans that the snapshot keeps.", compiled);
  single("in_flight", "gauge", "Requests that are being read or answered.", in_flight.load());
  single("connections", "gauge", "Open HTTP connections.", connections.load());
  single("connections_refused_total", "counter", "HTTP connections beyond the limit.",
         refused_connections.load());
  single("connections_closed_for_others_total", "counter",
         "HTTP connections that waited and were closed for new ones.", closed_for_others.load());
  single("timeouts_total", "counter", "HTTP requests and answers that took too long to transfer.",
         timeouts.load());
  single("failures_total", "counter", "HTTP connections that ended by a failure of this program.",
         failures.load());
  if (others_) text += others_();
  return text;
}

}  // namespace stepcast::serve
