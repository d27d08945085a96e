#include "data/values/utf8.h"

#include <algorithm>
#include <cstddef>

namespace stepcast {

bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int length = lead < 0x80         ? 1
                       : lead >> 5 == 0x6  ? 2
                       : lead >> 4 == 0xe  ? 3
                       : lead >> 3 == 0x1e ? 4
                                           : 0;
    if (length == 0 || i + static_cast<std::size_t>(length) > text.size()) return false;
    unsigned code = length == 1 ? lead : lead & (0x7fU >> length);
    for (int k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
      if (next >> 6 != 0x2) return false;
      code = code << 6 | (next & 0x3fU);
    }
    // Overlong forms, surrogates and what lies beyond Unicode are not text.
    constexpr unsigned kFirstOfLength[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kFirstOfLength[length] || (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) {
      return false;
    }
    i += static_cast<std::size_t>(length);
  }
  return true;
}

bool HasControls(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

}  // namespace stepcast
