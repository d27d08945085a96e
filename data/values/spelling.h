// How names and words are told apart: case, spaces and signs do not count,
// but for signs between digits.
#ifndef STEPCAST_DATA_VALUES_SPELLING_H_
#define STEPCAST_DATA_VALUES_SPELLING_H_

#include <string>
#include <string_view>

namespace stepcast {

// "rtx4090" of "RTX 4090", "llama2_7b" of "Llama-2 7B", "opt1.3b" of "OPT-1.3B": letters in lower
// case, digits, and between digits a point where there is one, or _ for any other signs, which tell
// llama2_7b from llama_2.7b and llama_27b. Two texts are one name where this is the same.
// Note that it is its own canonical name.
std::string CanonicalName(std::string_view name);

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_SPELLING_H_
