#include "data/record/controls.h"

#include <cstddef>
#include <cstdio>

namespace stepcast {
namespace {

// The bytes of the control character that stands at text[at]; 0 where none does.
std::size_t ControlLength(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x20 || lead == 0x7f) return 1;
  if (lead != 0xc2 || at + 1 == text.size()) return 0;
  const auto next = static_cast<unsigned char>(text[at + 1]);
  return next >= 0x80 && next < 0xa0 ? 2 : 0;
}

}  // namespace

bool HasControls(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (ControlLength(text, at) > 0) return true;
  }
  return false;
}

void RefuseControls(std::string_view text, const InputPlace& place) {
  if (!HasControls(text)) return;
  throw InputError(place, std::string(text), "has a control character", "text on one line");
}

std::string Printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = ControlLength(text, at);
    if (length == 0) out += text[at++];
    for (; length > 0; --length) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(text[at++]));
      out += escaped;
    }
  }
  return out;
}

}  // namespace stepcast
