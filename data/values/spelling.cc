#include "data/values/spelling.h"

#include <cctype>

namespace stepcast {

std::string CanonicalName(std::string_view name) {
  const auto is_digit = [](char letter) {
    return std::isdigit(static_cast<unsigned char>(letter));
  };
  std::string out;
  char sign = 0;  // before the letter
  for (const char letter : name) {
    if (!std::isalnum(static_cast<unsigned char>(letter))) {
      sign = letter == '.' || sign == '.' ? '.' : '_';
      continue;
    }
    if (sign != 0 && !out.empty() && is_digit(out.back()) && is_digit(letter)) out += sign;
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    sign = 0;
  }
  return out;
}

}  // namespace stepcast
