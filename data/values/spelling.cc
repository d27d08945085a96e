#include "data/values/spelling.h"

#include <cctype>

namespace stepcast {

std::string CanonicalName(std::string_view name) {
  const auto is_digit = [](char letter) {
    return std::isdigit(static_cast<unsigned char>(letter));
  };
  std::string out;
  bool is_behind_sign = false;
  for (const char letter : name) {
    if (!std::isalnum(static_cast<unsigned char>(letter))) {
      is_behind_sign = true;
      continue;
    }
    if (is_behind_sign && !out.empty() && is_digit(out.back()) && is_digit(letter)) out += '.';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    is_behind_sign = false;
  }
  return out;
}

}  // namespace stepcast
