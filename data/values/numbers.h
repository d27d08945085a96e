// Strict readers of single numbers and quantities: a quantity carries its unit, and a wrong one is
// an InputError that names the place, the value and what is allowed.
#ifndef STEPCAST_DATA_VALUES_NUMBERS_H_
#define STEPCAST_DATA_VALUES_NUMBERS_H_

#include <string>
#include <string_view>
#include <type_traits>

#include "data/record/input_error.h"
#include "data/units/quantity.h"

namespace stepcast {

// What a number may be.
struct NumberRange {
  double least = 0;
  double most = 0;
  bool or_nought = false;  // 0 too, where the least is more

  bool Holds(double number) const {
    return (number >= least && number <= most) || (or_nought && number == 0);
  }
  // "from 1 to 64", "0, or from 1e-12 to 1000".
  std::string Text() const;
};

// Less is a slip, and no formula has to bear it: no clock tells so short a time, and no link loses
// so few packets that anybody could count them.
inline constexpr double kLeastTime = 1e-12;  // s
inline constexpr double kLeastLoss = 1e-15;
inline constexpr double kLeastRate = 1.0 / 8;  // B/s: one bit a second

// "10 Gbit/s", "0.9 GB/s": at least a bit a second.
DataRate<> ParseDataRate(std::string_view text, const InputPlace& place);
// The same of traffic, of which there may be none: "0 Gbit/s".
DataRate<> ParseTraffic(std::string_view text, const InputPlace& place);
// "2 ms", "200 us", "0 s": 0, or at least a picosecond.
Duration<> ParseDuration(std::string_view text, const InputPlace& place);
// "25 MiB", "16 GB": at least a byte.
DataSize<> ParseDataSize(std::string_view text, const InputPlace& place);
// "2000 samples/s", more than none.
SampleRate<> ParseSampleRate(std::string_view text, const InputPlace& place);
// One of these by its type.
template <class Q>
Q ParseQuantity(std::string_view text, const InputPlace& place) {
  if constexpr (std::is_same_v<Q, DataRate<>>) {
    return ParseDataRate(text, place);
  } else if constexpr (std::is_same_v<Q, Duration<>>) {
    return ParseDuration(text, place);
  } else if constexpr (std::is_same_v<Q, SampleRate<>>) {
    return ParseSampleRate(text, place);
  } else {
    static_assert(std::is_same_v<Q, DataSize<>>);
    return ParseDataSize(text, place);
  }
}
// "82.6 TFLOP/s": at least 1 FLOP/s.
WorkRate<> ParseWorkRate(std::string_view text, const InputPlace& place);
// "450 W": at least a milliwatt, returned in watts.
double ParseWatts(std::string_view text, const InputPlace& place);
// "12 nm": of a chip's process, returned in nanometres.
double ParseNanometres(std::string_view text, const InputPlace& place);
// A plain number.
double ParseNumber(std::string_view text, const InputPlace& place, const NumberRange& range);
inline double ParseNumber(std::string_view text, const InputPlace& place, double low, double high) {
  return ParseNumber(text, place, NumberRange{low, high});
}
// 0, or a plain number from kLeastLoss to below 1.
double ParseProbability(std::string_view text, const InputPlace& place);
// A whole number within [low, high].
int ParseInteger(std::string_view text, const InputPlace& place, int low, int high);
long long ParseLongInteger(std::string_view text, const InputPlace& place, long long low,
                           long long high);

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_NUMBERS_H_
