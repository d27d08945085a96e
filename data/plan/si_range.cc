#include "data/plan/si_range.h"

#include <string_view>

#include "data/plan/fields.h"

namespace stepcast {

NumberRange SiRangeOf(const std::string& flag) {
  const PlanField& field = *FindPlanField(flag);
  const std::string_view unit = field.unit;
  double si = 1;
  if (unit == kGigabitsPerSecond.symbol) si = kGigabitsPerSecond.si;
  if (unit == kMilliseconds.symbol) si = kMilliseconds.si;
  constexpr double kRounding = 1e-12;
  NumberRange range = field.range;
  range.least *= si * (1 - kRounding);
  range.most *= si * (1 + kRounding);
  return range;
}

}  // namespace stepcast
