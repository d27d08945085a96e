// The range of a plan's number in SI units.
#ifndef STEPCAST_DATA_PLAN_SI_RANGE_H_
#define STEPCAST_DATA_PLAN_SI_RANGE_H_

#include <string>

#include "data/values/numbers.h"

namespace stepcast {

// Of a field whose column is a rate, a time or a plain number: "bandwidth" in bytes a second. It
// is wider than the column's by what a conversion may round.
NumberRange SiRangeOf(const std::string& flag);

}  // namespace stepcast

#endif  // STEPCAST_DATA_PLAN_SI_RANGE_H_
