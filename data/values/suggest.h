// What a misspelt word was probably meant to be.
#ifndef STEPCAST_DATA_VALUES_SUGGEST_H_
#define STEPCAST_DATA_VALUES_SUGGEST_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

inline constexpr std::size_t kAnyDistance = static_cast<std::size_t>(-1) / 2;

// The one of `names` that is nearest to `text`: the fewest letters added, left out, changed or
// swapped, without regard to case and signs, and no more than a third of them, or than `most`.
// Empty where none is.
std::string NearestName(std::string_view text, std::span<const std::string> names,
                        std::size_t most = kAnyDistance);

// " (did you mean NAME?)", to stand behind the problem of an error; empty where nothing is near.
std::string DidYouMean(std::string_view text, std::span<const std::string> names);
std::string DidYouMean(std::string_view text, std::span<const char* const> names);
// The same of a word that is known to be meant, or of none.
std::string DidYouMean(const std::string& meant);

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_SUGGEST_H_
