// Repeats a measurement until its median is known well enough.
//
// The stopwatch is the caller's: `measure()` performs the work once and returns seconds. Nothing
// here reads a clock, so that the rule is tested on recorded times.
#ifndef STEPCAST_MICROBENCH_HARNESS_SAMPLING_H_
#define STEPCAST_MICROBENCH_HARNESS_SAMPLING_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace stepcast {

struct StoppingRule {
  int warm_up = 3;            // measurements thrown away first
  int least = 10;             // samples before the rule may stop
  int most = 200;             // samples after which it stops in any case
  double enough_seconds = 1;  // measured time after which it stops in any case
  // Standard error of the median, as a share of it, that counts as known.
  double relative_error = 0.005;
};

struct Samples {
  std::vector<double> seconds;  // in the order in which they were taken
  double median = 0;
  double relative_error = 0;  // of the median
  bool stable = false;        // whether relative_error was reached, or only a limit
};

// Median and its standard error, free of any assumption on how the times are distributed: the order
// statistics 0.98 sqrt(n) places to both sides of the middle enclose the median with 95 % confidence
// (Conover, Practical Nonparametric Statistics), which is 1.96 standard errors each way.
inline void Summarise(Samples* samples) {
  constexpr double kConfidence = 1.96;
  std::vector<double> sorted = samples->seconds;
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  const double last = n - 1;
  const double reach = kConfidence / 2 * std::sqrt(n);
  const auto at = [&](double place) {
    return sorted[static_cast<std::size_t>(std::min(std::max(place, 0.0), last))];
  };
  samples->median = (at(std::floor(last / 2)) + at(std::ceil(last / 2))) / 2;
  samples->relative_error = (at(std::ceil(last / 2 + reach)) - at(std::floor(last / 2 - reach))) /
                            (2 * kConfidence * samples->median);
}

template <class Measure>
Samples SampleUntilStable(const Measure& measure, const StoppingRule& rule) {
  for (int i = 0; i < rule.warm_up; ++i) measure();
  Samples samples;
  double total = 0;
  while (static_cast<int>(samples.seconds.size()) < rule.most) {
    samples.seconds.push_back(measure());
    total += samples.seconds.back();
    if (static_cast<int>(samples.seconds.size()) < rule.least) continue;
    Summarise(&samples);
    samples.stable = samples.relative_error <= rule.relative_error;
    if (samples.stable || total >= rule.enough_seconds) break;
  }
  Summarise(&samples);
  return samples;
}

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_HARNESS_SAMPLING_H_
