// Whether bytes are text.
#ifndef STEPCAST_DATA_VALUES_UTF8_H_
#define STEPCAST_DATA_VALUES_UTF8_H_

#include <string_view>

namespace stepcast {

// Whether `text` is well-formed UTF-8.
bool IsUtf8(std::string_view text);
// Whether it has a character that steers a terminal: of ASCII below the space, line ends and tabs
// too, or DEL.
bool HasControls(std::string_view text);

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_UTF8_H_
