// Repeats a measurement until its median is known well enough.
//
// The stopwatch is the caller's: `measure()` performs the work once and returns seconds. Nothing here
// reads a clock, so that the rule is tested on recorded times.
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

namespace internal {

inline double MedianOf(std::vector<double> values) {
  const std::size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half),
                   values.end());
  const double upper = values[half];
  if (values.size() % 2 == 1) return upper;
  return (*std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half)) +
          upper) /
         2;
}

}  // namespace internal

// Median and its standard error, robustly: 1.2533 s / sqrt(n), with s = 1.4826 times the median
// absolute deviation (Rousseeuw & Croux, JASA 88, 1993).
inline void Summarise(Samples* samples) {
  constexpr double kSdPerDeviation = 1.4826;
  constexpr double kMedianInflation = 1.2533;
  samples->median = internal::MedianOf(samples->seconds);
  std::vector<double> deviations;
  for (const double s : samples->seconds) deviations.push_back(std::abs(s - samples->median));
  const double sd = kSdPerDeviation * internal::MedianOf(deviations);
  samples->relative_error = kMedianInflation * sd /
                            std::sqrt(static_cast<double>(samples->seconds.size())) /
                            samples->median;
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
