#include "data/record/input_error.h"

#include <cstddef>
#include <cstdio>

namespace stepcast {
namespace {

// A value is quoted whole up to this length: an error must stay one readable line.
constexpr std::size_t kLongestQuote = 60;

std::string Quote(const std::string& value) {
  std::string out = "'";
  for (const char c : value) {
    if (out.size() > kLongestQuote) {
      out += "...";
      break;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string Compose(const InputPlace& place, const std::string& value, const std::string& problem,
                    const std::string& allowed) {
  std::string text;
  if (!place.file.empty()) text += place.file;
  if (place.line > 0) text += ":" + std::to_string(place.line);
  if (!text.empty()) text += ": ";
  if (!place.key.empty()) text += place.key + ": ";
  if (!value.empty()) text += Quote(value) + " ";
  text += problem;
  if (!allowed.empty()) text += "; allowed: " + allowed;
  return text;
}

}  // namespace

InputError::InputError(InputPlace place, std::string value, std::string problem,
                       std::string allowed)
    : std::runtime_error(Compose(place, value, problem, allowed)),
      place_(std::move(place)),
      value_(std::move(value)),
      problem_(std::move(problem)),
      allowed_(std::move(allowed)) {}

}  // namespace stepcast
