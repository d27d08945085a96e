// A device on a recorded clock: nothing runs, and each run moves the clock on by a time that
// follows from the point and a script of what happens to the device. The same script and seed give
// the same times.
//
//   RecordedBackend device(script);
//   RunCampaign(space, &device, &journal, options, device.Hooks());
#ifndef STEPCAST_TESTS_MICROBENCH_RECORDED_BACKEND_H_
#define STEPCAST_TESTS_MICROBENCH_RECORDED_BACKEND_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "data/record/operation_counts.h"
#include "microbench/harness/backend.h"
#include "microbench/harness/campaign.h"

namespace stepcast {

// An interval of the recorded clock [s].
struct RecordedInterval {
  double from = 0;
  double to = 0;
};

inline bool Within(const std::vector<RecordedInterval>& intervals, double time) {
  return std::any_of(intervals.begin(), intervals.end(), [&](const RecordedInterval& interval) {
    return time >= interval.from && time < interval.to;
  });
}

// A device of 1 TFLOP/s and 100 GB/s that needs 5 us for the least.
inline double WorkTime(const MeasuredPoint& point) {
  const OperationCounts counts = CountOperation(point.operation, point.pass);
  const double elements = counts.elements_per_sample * point.batch + counts.elements;
  return 5e-6 + std::max(counts.flop_per_sample * point.batch / 1e12, 4 * elements / 1e11);
}

struct RecordedScript {
  std::function<double(const MeasuredPoint&)> seconds = WorkTime;  // undisturbed
  // Standard deviation of a time's logarithm.
  std::function<double(const MeasuredPoint&)> noise = [](const MeasuredPoint&) { return 0.0; };
  std::uint64_t seed = 1;
  int outlier_every = 0;  // so many runs; 0: none
  double outlier_factor = 20;

  double prepare_s = 1e-4;
  double reference_s = 1e-3;

  // Others have half of the device.
  std::vector<RecordedInterval> busy;
  double busy_share = 0.5;
  // The clock is down.
  std::vector<RecordedInterval> throttled;
  double throttled_factor = 1.5;
  bool tells_throttling = true;

  std::function<bool(const Operation&, int batch)> too_large = [](const Operation&, int) {
    return false;
  };
  std::vector<RecordedInterval> memory_taken;  // by others, all of it
  std::function<bool(const Operation&, Precision)> unsupported = [](const Operation&, Precision) {
    return false;
  };

  // Before these runs, counted from 0, the device fails or somebody interrupts.
  std::size_t fail_at_run = std::numeric_limits<std::size_t>::max();
  std::size_t stop_at_run = std::numeric_limits<std::size_t>::max();
};

inline constexpr const char* kOutOfMemoryReason = "needs more than there is";
inline constexpr const char* kUnsupportedReason = "the library has no such operation";

class RecordedBackend : public Backend {
 public:
  struct Prepared {
    MeasuredPoint point;  // forward, or the update
    double at = 0;
  };
  struct Ran {
    MeasuredPoint point;
    double at = 0;
    double seconds = 0;
  };

  explicit RecordedBackend(RecordedScript script = {})
      : script_(std::move(script)), random_(script_.seed) {}

  std::string Name() const override { return "recorded"; }
  ProfiledDevice Device() override { return {"Recorded Device", "cpu", {{"memory", "1 GiB"}}}; }
  std::map<std::string, std::string> Settings() const override { return {{"layout", "any"}}; }

  Preparation Prepare(const Operation& operation, int batch, Precision precision,
                      const std::vector<TrainingPass>& passes) override {
    prepared_.push_back({{operation, batch, precision, passes.front()}, now_});
    now_ += script_.prepare_s;
    if (script_.unsupported(operation, precision)) {
      return {nullptr, PointStatus::kUnsupported, kUnsupportedReason};
    }
    if (script_.too_large(operation, batch) || Within(script_.memory_taken, now_)) {
      return {nullptr, PointStatus::kOutOfMemory, kOutOfMemoryReason};
    }
    Preparation preparation;
    preparation.trial =
        std::make_unique<RecordedTrial>(this, MeasuredPoint{operation, batch, precision, {}});
    return preparation;
  }

  TimedRun RunReference() override { return Advance(script_.reference_s); }

  std::string ThrottleReason() override {
    return script_.tells_throttling && Within(script_.throttled, now_) ? "power cap" : "";
  }

  // Now, the time of day, and the interrupt of the script.
  CampaignHooks Hooks() {
    CampaignHooks hooks;
    hooks.now = [this] { return now_; };
    hooks.time = [this] { return "second " + std::to_string(now_); };
    hooks.stop = [this] { return ran_.size() >= script_.stop_at_run; };
    return hooks;
  }

  double now() const { return now_; }
  const std::vector<Prepared>& prepared() const { return prepared_; }
  const std::vector<Ran>& ran() const { return ran_; }  // warm-up too, without the reference
  const RecordedScript& script() const { return script_; }

 private:
  class RecordedTrial : public Trial {
   public:
    RecordedTrial(RecordedBackend* device, MeasuredPoint point) : device_(device), point_(point) {}
    TimedRun Run(TrainingPass pass) override {
      point_.pass = pass;
      return device_->RunPoint(point_);
    }
    std::string Algorithm(TrainingPass pass) const override {
      return std::string("algorithm_") + kTrainingPassNames[static_cast<int>(pass)];
    }

   private:
    RecordedBackend* device_;
    MeasuredPoint point_;
  };

  TimedRun RunPoint(const MeasuredPoint& point) {
    if (ran_.size() >= script_.fail_at_run) throw std::runtime_error("the device fell off the bus");
    double seconds = script_.seconds(point) * std::exp(script_.noise(point) * normal_(random_));
    const auto nth = static_cast<int>(ran_.size()) + 1;
    if (script_.outlier_every > 0 && nth % script_.outlier_every == 0) {
      seconds *= script_.outlier_factor;
    }
    const double begin = now_;
    const TimedRun run = Advance(seconds);
    ran_.push_back({point, begin, run.seconds});
    return run;
  }

  TimedRun Advance(double seconds) {
    TimedRun run;
    if (Within(script_.throttled, now_)) seconds *= script_.throttled_factor;
    if (Within(script_.busy, now_)) run.own_share = script_.busy_share;
    run.seconds = seconds / run.own_share;
    now_ += run.seconds;
    return run;
  }

  RecordedScript script_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  double now_ = 0;
  std::vector<Prepared> prepared_;
  std::vector<Ran> ran_;
};

}  // namespace stepcast

#endif  // STEPCAST_TESTS_MICROBENCH_RECORDED_BACKEND_H_
