#include "data/values/utf8.h"

#include <cstddef>

namespace stepcast {

char32_t NextCodePoint(std::string_view text, std::size_t* position) {
  const auto byte = [&](std::size_t i) -> char32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const std::size_t start = (*position)++;
  const char32_t lead = byte(start);
  if (lead < 0x80) return lead;
  if (lead < 0xc2 || lead > 0xf4) return 0xfffd;
  const int follow = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
  // Below this the form is longer than it need be, which UTF-8 forbids.
  const char32_t smallest = follow == 1 ? 0x80 : follow == 2 ? 0x800 : 0x10000;
  char32_t code_point = lead & (0x3fU >> follow);
  for (int i = 1; i <= follow; ++i) {
    const char32_t next = byte(start + static_cast<std::size_t>(i));
    if ((next & 0xc0) != 0x80) return 0xfffd;
    code_point = (code_point << 6) | (next & 0x3f);
  }
  const bool surrogate = code_point >= 0xd800 && code_point < 0xe000;
  if (code_point < smallest || code_point > 0x10ffff || surrogate) return 0xfffd;
  *position = start + static_cast<std::size_t>(follow) + 1;
  return code_point;
}

bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    if (NextCodePoint(text, &i) >= 0x80 && i - start == 1) return false;
  }
  return true;
}

}  // namespace stepcast
