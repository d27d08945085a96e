// Numbers as texts of other programs have them, without units.
#ifndef STEPCAST_DATA_VALUES_TEXT_AS_NUMBER_H_
#define STEPCAST_DATA_VALUES_TEXT_AS_NUMBER_H_

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace stepcast {

// The number that a text is, from its first character to its last. Nothing for any other text, and
// for a number that the type does not hold.
template <class Number>
std::optional<Number> TextAsNumber(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_TEXT_AS_NUMBER_H_
