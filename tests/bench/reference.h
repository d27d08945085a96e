// Work that takes as long as the machine lets it. Promised times were measured where it took
// kReferenceSeconds; timed tests allow as many times more as it takes longer (check_least.cmake),
// because others may share the machine or its clock be slow. Where it takes more than kTooSlow
// times as long, others slow some work more than other work, and what is too slow tells nothing.
#ifndef STEPCAST_TESTS_BENCH_REFERENCE_H_
#define STEPCAST_TESTS_BENCH_REFERENCE_H_

#include <cmath>
#include <map>
#include <string>

namespace stepcast {

inline constexpr double kReferenceSeconds = 1.5e-6;
inline constexpr double kTooSlow = 2;

// Names, allocations, logarithms and branches, in about the mix of a prediction.
inline double ReferenceWork() {
  std::map<std::string, double> numbers;
  for (int i = 0; i < 16; ++i) {
    numbers["parameter_" + std::to_string(i * 7919 % 64)] = std::log(1.0 + i);
  }
  double sum = 0;
  for (const auto& [name, number] : numbers) {
    sum += std::exp(-number) * static_cast<double>(name.size());
    if (number > 2) sum += std::sqrt(number);
  }
  return sum;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_BENCH_REFERENCE_H_
