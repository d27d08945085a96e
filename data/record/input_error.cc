#include "data/record/input_error.h"

#include <cstddef>

#include "data/record/controls.h"

namespace stepcast {
namespace {

constexpr std::size_t kLongestKey = 200;
constexpr std::size_t kLongestProblem = 1000;
constexpr std::size_t kLongestAllowed = 2500;

std::string Compose(const InputPlace& place, const std::string& value, const std::string& problem,
                    const std::string& allowed) {
  std::string text;
  if (!place.file.empty()) text += place.file;
  if (place.line > 0) text += ":" + std::to_string(place.line);
  if (!text.empty()) text += ": ";
  if (!place.key.empty()) text += Shortened(place.key, kLongestKey) + ": ";
  if (!value.empty()) text += "'" + Shortened(value) + "' ";
  text += Shortened(problem, kLongestProblem);
  if (!allowed.empty()) text += "; allowed: " + Shortened(allowed, kLongestAllowed);
  return Printable(text);
}

}  // namespace

std::string Shortened(std::string_view text, std::size_t most_bytes) {
  std::size_t length = text.size();
  if (length > most_bytes) {
    length = most_bytes;
    // Not within a character of several bytes.
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0U) == 0x80U) --length;
  }
  return std::string(text.substr(0, length)) + (length < text.size() ? "..." : "");
}

InputError::InputError(InputPlace place, std::string value, std::string problem,
                       std::string allowed)
    : std::runtime_error(Compose(place, value, problem, allowed)),
      place_(std::move(place)),
      value_(std::move(value)),
      problem_(std::move(problem)),
      allowed_(std::move(allowed)) {}

OutOfRange::OutOfRange(InputPlace place, std::string value, std::string allowed)
    : InputError(std::move(place), std::move(value), "is out of range", std::move(allowed)) {}

InputError InputError::At(InputPlace place) const {
  return {std::move(place), value_, problem_, allowed_};
}

}  // namespace stepcast
