// Strict readers of single numbers and quantities: a quantity carries its unit, and a wrong one is
// an InputError that names the place, the value and what is allowed.
#ifndef STEPCAST_DATA_VALUES_NUMBERS_H_
#define STEPCAST_DATA_VALUES_NUMBERS_H_

#include <string_view>
#include <type_traits>

#include "data/record/input_error.h"
#include "data/units/quantity.h"

namespace stepcast {

// "10 Gbit/s", "0.9 GB/s": positive.
DataRate<> ParseDataRate(std::string_view text, const InputPlace& place);
// "2 ms", "200 us", "0 s": not negative.
Duration<> ParseDuration(std::string_view text, const InputPlace& place);
// "25 MiB", "16 GB": positive.
DataSize<> ParseDataSize(std::string_view text, const InputPlace& place);
// One of these by its type.
template <class Q>
Q ParseQuantity(std::string_view text, const InputPlace& place) {
  if constexpr (std::is_same_v<Q, DataRate<>>) {
    return ParseDataRate(text, place);
  } else if constexpr (std::is_same_v<Q, Duration<>>) {
    return ParseDuration(text, place);
  } else {
    static_assert(std::is_same_v<Q, DataSize<>>);
    return ParseDataSize(text, place);
  }
}
// "82.6 TFLOP/s": positive.
WorkRate<> ParseWorkRate(std::string_view text, const InputPlace& place);
// "450 W": positive, returned in watts.
double ParseWatts(std::string_view text, const InputPlace& place);
// A plain number within [low, high].
double ParseNumber(std::string_view text, const InputPlace& place, double low, double high);
// A plain number in [0, 1).
double ParseProbability(std::string_view text, const InputPlace& place);
// A whole number within [low, high].
int ParseInteger(std::string_view text, const InputPlace& place, int low, int high);
long long ParseLongInteger(std::string_view text, const InputPlace& place, long long low,
                           long long high);

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_NUMBERS_H_
