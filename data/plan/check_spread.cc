#include "data/plan/check_spread.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "data/record/input_error.h"

namespace stepcast {
namespace {

// A time of the run's steps. Steps of at least x that are a share s of all make a mean of at least
// s x, so that none of these is more than so many times the mean. A standard deviation is more than
// 100 times the mean in runs of more than ten thousand steps only, of which one takes all the time.
struct SpreadPart {
  const char* column;
  std::optional<Duration<>> time;
  double most;  // x step_time
};

std::string NumberText(double value) { return fmt::format("{}", value); }

}  // namespace

void CheckSpread(const Run& run) {
  const StepSpread& spread = run.spread;
  const auto fail = [&](const char* column, Duration<> time, const std::string& problem,
                        const std::string& allowed) {
    throw InputError({run.place.file, run.place.line, column}, NumberText(time.in(kSeconds)),
                     problem, allowed);
  };
  const SpreadPart exposed{"exposed_sync_s", run.exposed_sync, 0};
  const SpreadPart sd{"step_time_sd_s", spread.sd, 100};
  const SpreadPart p50{"p50_s", spread.p50, 2};
  const SpreadPart p95{"p95_s", spread.p95, 20};
  const SpreadPart p99{"p99_s", spread.p99, 100};
  for (const SpreadPart& part : {exposed, sd, p50, p95, p99}) {
    if (!part.time) continue;
    if (run.stopped) {
      fail(part.column, *part.time, "is that of a step, and the run was stopped before one ended",
           "an empty field beside a step_time_s that begins with >");
    }
    if (part.most == 0) continue;
    if (!std::isfinite(part.time->si()) || part.time->si() < 0) {
      fail(part.column, *part.time, "is no time", "a finite time of at least 0");
    }
    if (*part.time > run.step_time * part.most) {
      fail(part.column, *part.time,
           fmt::format("is more than {:g} times the mean step, which it cannot be: another unit?",
                       part.most),
           fmt::format("at most {:g} x step_time_s, {}", part.most,
                       NumberText(part.most * run.step_time.in(kSeconds))));
    }
  }
  for (const SpreadPart& part : {p95, p99}) {
    if (!part.time || p50.time) continue;
    fail(part.column, *part.time, "tells no spread without the median", "p50_s beside it");
  }
  const auto ordered = [&](const SpreadPart& high, const SpreadPart& low) {
    if (!high.time || !low.time || *high.time >= *low.time) return;
    fail(high.column, *high.time, fmt::format("is shorter than {}", low.column),
         fmt::format("at least {}", NumberText(low.time->in(kSeconds))));
  };
  ordered(p95, p50);
  ordered(p99, p50);
  ordered(p99, p95);
}

}  // namespace stepcast
