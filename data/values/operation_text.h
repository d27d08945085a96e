// Operations as files and tables write them: a name and the lengths that differ from one (zero for
// padding), in any order.
//
//   convolution channels=64 input=56x56 filters=128 kernel=3x3 stride=2x2 padding=1,1,1,1
//   dense inputs=512 units=1000 bias=yes
//
// Two lengths are height x width, four are zeros at top, left, bottom and right.
#ifndef STEPCAST_DATA_VALUES_OPERATION_TEXT_H_
#define STEPCAST_DATA_VALUES_OPERATION_TEXT_H_

#include <string>
#include <string_view>

#include "data/record/input_error.h"
#include "data/record/operation.h"

namespace stepcast {

// Empty for an operation that is not stated.
std::string FormatOperation(const Operation& operation);

// Throws InputError for an unknown name or key, a value out of range, and lengths that do not fit
// each other: a window larger than its padded input, channels that do not divide into groups.
Operation ParseOperation(std::string_view text, const InputPlace& place);

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_OPERATION_TEXT_H_
