// Whether bytes are text, and the characters that they are.
#ifndef STEPCAST_DATA_VALUES_UTF8_H_
#define STEPCAST_DATA_VALUES_UTF8_H_

#include <cstddef>
#include <string_view>

namespace stepcast {

// The code point that starts at text[*position], which moves behind it. What is not well-formed
// UTF-8 yields U+FFFD, one byte at a time. Requires *position < text.size().
char32_t NextCodePoint(std::string_view text, std::size_t* position);

// Whether `text` is well-formed UTF-8.
bool IsUtf8(std::string_view text);

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_UTF8_H_
