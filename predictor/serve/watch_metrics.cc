#include "predictor/serve/watch_metrics.h"

#include <fmt/format.h>

#include "data/record/online_record.h"
#include "predictor/serve/metrics.h"

namespace stepcast::serve {

std::string WatchMetrics::Text() const {
  std::string text;
  const auto single = [&](const char* name, const char* type, const char* help, auto value) {
    AddMetric(name, type, help, value, &text);
  };
  if (numbers > 0) {
    single("watch_step_seconds", "gauge", "The last step, as measured.", measured_s);
    single("watch_expected_step_seconds", "gauge", "What was expected of it by all before it.",
           predicted_s);
  }
  single("watch_forecast_step_seconds", "gauge", "The forecast before any step was seen.",
         forecast_s);
  single("watch_forecast_low_seconds", "gauge", "The low end of its 90 % interval.", low_s);
  single("watch_forecast_high_seconds", "gauge", "The high end of its 90 % interval.", high_s);
  single("watch_learnt_step_seconds", "gauge", "The forecast by all that was learnt.", learnt_s);
  single("watch_steps_total", "counter", "Steps that were seen.", steps);
  single("watch_steps_seconds_total", "counter", "Time that they took.", seconds);
  single("watch_numbers_total", "counter", "Numbers of the log that tell of steps.", numbers);
  single("watch_inside_total", "counter", "Those within the forecast's interval.", inside);
  single("watch_warm_up_total", "counter", "Numbers of the warm-up, which are left out.", warm_up);
  single("watch_validation_lines_total", "counter", "Lines of validation.", validation);
  AddMetricHeader("watch_drifts_total", "counter", "Changes of the job, by their likely cause.",
                  &text);
  std::map<std::string, std::int64_t> counts = drifts;
  for (const char* cause : kDriftCauses) counts.try_emplace(cause, 0);
  for (const auto& [cause, count] : counts) {
    text += fmt::format("stepcast_watch_drifts_total{{cause=\"{}\"}} {}\n", cause, count);
  }
  return text;
}

}  // namespace stepcast::serve
