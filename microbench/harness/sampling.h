// Repeats a measurement until its median is known well enough.
//
// The stopwatch is the caller's: `measure()` performs the work once and returns seconds. Nothing
// here reads a clock, so that the rule is tested on recorded times.
#ifndef STEPCAST_MICROBENCH_HARNESS_SAMPLING_H_
#define STEPCAST_MICROBENCH_HARNESS_SAMPLING_H_

#include <vector>

#include "data/record/summary.h"

namespace stepcast {

struct StoppingRule {
  int warm_up = 3;            // measurements thrown away first
  int least = 10;             // samples before the rule may stop
  int most = 200;             // samples after which it stops in any case
  double enough_seconds = 1;  // measured time after which it stops in any case
  // Standard error of the median, as a share of it, that counts as known.
  double relative_error = 0.005;
};

struct SampledTimes {
  std::vector<double> seconds;  // in the order in which they were taken
  Summary summary;
  bool stable = false;  // whether relative_error was reached, or only a limit
};

template <class Measure>
SampledTimes SampleUntilStable(const Measure& measure, const StoppingRule& rule) {
  for (int i = 0; i < rule.warm_up; ++i) measure();
  SampledTimes samples;
  double total = 0;
  while (static_cast<int>(samples.seconds.size()) < rule.most) {
    samples.seconds.push_back(measure());
    total += samples.seconds.back();
    if (static_cast<int>(samples.seconds.size()) < rule.least) continue;
    samples.summary = Summarise(samples.seconds);
    samples.stable = samples.summary.relative_error <= rule.relative_error;
    if (samples.stable || total >= rule.enough_seconds) break;
  }
  samples.summary = Summarise(samples.seconds);
  return samples;
}

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_HARNESS_SAMPLING_H_
