// Words that stand for enumerators, and what is allowed where one is wrong.
#ifndef STEPCAST_DATA_VALUES_NAMES_H_
#define STEPCAST_DATA_VALUES_NAMES_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "data/record/input_error.h"
#include "data/record/plan.h"

namespace stepcast {

// "ring", "ps-sync", ...
Strategy ParseStrategy(std::string_view text, const InputPlace& place);
CongestionControl ParseCongestionControl(std::string_view text, const InputPlace& place);
Sharding ParseSharding(std::string_view text, const InputPlace& place);
Overlap ParseOverlap(std::string_view text, const InputPlace& place);

// The position of `name` among `names`, to the letter; empty where it is none of them.
std::optional<int> FindName(std::string_view name, std::span<const char* const> names);
// "a, b, c": what an error allows.
std::string JoinNames(std::span<const char* const> names);

// The text without white space at both ends.
std::string_view Trim(std::string_view text);

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_NAMES_H_
