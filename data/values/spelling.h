// How names and words are told apart: case, spaces and signs do not count,
// but for signs between digits.
#ifndef STEPCAST_DATA_VALUES_SPELLING_H_
#define STEPCAST_DATA_VALUES_SPELLING_H_

#include <string>
#include <string_view>

namespace stepcast {

// "rtx4090" of "RTX 4090", "opt1.3b" of "OPT-1.3B" and of "opt_1_3b": letters in lower case,
// digits, and a point for whatever signs are between digits, which tell opt_1.3b from opt_13b. Two
// texts are one name where this is the same.
// Note that it is its own canonical name.
std::string CanonicalName(std::string_view name);

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_SPELLING_H_
