// Random numbers that are the same with every standard library, whose distributions may differ.
#ifndef STEPCAST_TESTS_SUPPORT_RANDOM_H_
#define STEPCAST_TESTS_SUPPORT_RANDOM_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <random>

namespace stepcast {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t Seed() { return engine_(); }
  double Uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double Between(double low, double high) { return low + (high - low) * Uniform(); }
  double LogBetween(double low, double high) {
    return low * std::exp(std::log(high / low) * Uniform());
  }
  // Both ends included.
  int Whole(int low, int high) {
    return std::min(high, low + static_cast<int>(Uniform() * (1.0 + high - low)));
  }
  int LogWhole(int low, int high) {
    return std::clamp(static_cast<int>(LogBetween(low, high + 1.0)), low, high);
  }
  bool Chance(double p) { return Uniform() < p; }
  template <class Container>
  const auto& From(const Container& of) {
    return *(std::begin(of) + Whole(0, static_cast<int>(std::size(of)) - 1));
  }
  template <class T>
  T Pick(std::initializer_list<T> of) {
    return From(of);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_RANDOM_H_
