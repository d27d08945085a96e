// Numbers in the sentences that this room writes.
#ifndef STEPCAST_CALIBRATE_TEXT_H_
#define STEPCAST_CALIBRATE_TEXT_H_

#include <cstdio>
#include <string>

#include "data/units/quantity.h"

namespace stepcast {

// The value with three digits.
inline std::string NumberText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

inline std::string ValueText(double value, const std::string& unit) {
  return NumberText(value) + (unit.empty() ? "" : " " + unit);
}

inline std::string RateText(DataRate<> rate) {
  const double megabits = rate.in(kMegabitsPerSecond);
  // A rate that three digits round up to 1000 is told in the next unit.
  if (megabits < 999.5) return NumberText(megabits) + " Mbit/s";
  return NumberText(rate.in(kGigabitsPerSecond)) + " Gbit/s";
}

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_TEXT_H_
