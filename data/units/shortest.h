// A number as an error quotes it.
#ifndef STEPCAST_DATA_UNITS_SHORTEST_H_
#define STEPCAST_DATA_UNITS_SHORTEST_H_

#include <charconv>
#include <cmath>
#include <string>

namespace stepcast {

// The fewest digits that read as `value`: "0", "0.1", "440000000", "1e-09". Without an exponent as
// far as people read on.
inline std::string ShortestText(double value) {
  constexpr double kLeastFixed = 1e-4;
  constexpr double kMostFixed = 1e15;
  char text[32];
  const double size = std::abs(value);
  const std::to_chars_result end =
      kLeastFixed <= size && size < kMostFixed
          ? std::to_chars(text, text + sizeof text, value, std::chars_format::fixed)
          : std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

}  // namespace stepcast

#endif  // STEPCAST_DATA_UNITS_SHORTEST_H_
