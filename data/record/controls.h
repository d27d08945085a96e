// Characters that steer a terminal instead of being shown.
#ifndef STEPCAST_DATA_RECORD_CONTROLS_H_
#define STEPCAST_DATA_RECORD_CONTROLS_H_

#include <string>
#include <string_view>

#include "data/record/input_error.h"

namespace stepcast {

// Whether `text` has a control character: U+0000 to U+001F, which line ends and tabs are too,
// U+007F, or one of U+0080 to U+009F as UTF-8 has them.
bool HasControls(std::string_view text);

// Throws InputError where it has one.
void RefuseControls(std::string_view text, const InputPlace& place);

// The text on one line that steers nothing, wherever its parts come from: the bytes of control
// characters are written out, "\x1b".
std::string Printable(std::string_view text);

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_CONTROLS_H_
