#include "data/values/spelling.h"

#include <cctype>
#include <cstddef>

namespace stepcast {

std::string CanonicalName(std::string_view name) {
  const auto is_digit = [](std::string_view text) {
    return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front()));
  };
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto letter = static_cast<unsigned char>(name[i]);
    const bool is_behind_digit = !out.empty() && is_digit({&out.back(), 1});
    const bool is_point = letter == '.' && is_behind_digit && is_digit(name.substr(i + 1));
    if (std::isalnum(letter) || is_point) out += static_cast<char>(std::tolower(letter));
  }
  return out;
}

}  // namespace stepcast
