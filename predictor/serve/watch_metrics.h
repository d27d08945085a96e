// A job that is watched, as Prometheus reads it.
#ifndef STEPCAST_PREDICTOR_SERVE_WATCH_METRICS_H_
#define STEPCAST_PREDICTOR_SERVE_WATCH_METRICS_H_

#include <cstdint>
#include <map>
#include <string>

namespace stepcast::serve {

struct WatchMetrics {
  double measured_s = 0;   // the last step; 0 before the first
  double predicted_s = 0;  // what was expected of it by all before
  double forecast_s = 0;   // before the first, with its 90 % interval
  double low_s = 0;
  double high_s = 0;
  double learnt_s = 0;  // now, by all that was learnt
  double steps = 0;
  double seconds = 0;                            // of all steps
  std::int64_t inside = 0;                       // numbers within the forecast's interval
  std::int64_t numbers = 0;                      // of the log
  std::int64_t warm_up = 0;                      // left out
  std::int64_t validation = 0;                   // lines
  std::map<std::string, std::int64_t> drifts{};  // changes by their cause

  // The text format of Prometheus, 0.0.4.
  std::string Text() const;
};

}  // namespace stepcast::serve

#endif  // STEPCAST_PREDICTOR_SERVE_WATCH_METRICS_H_
