// The JSON of a request: strict, bounded, with arrays of numbers kept as columns.
//
// Well-formed UTF-8 JSON only (RFC 8259), no comments, no key twice in an object. What nests deeper
// or holds more than a request may is refused while it is read, so that a text costs memory in
// proportion to its length and no stack.
#ifndef STEPCAST_PREDICTOR_SERVE_JSON_VALUE_H_
#define STEPCAST_PREDICTOR_SERVE_JSON_VALUE_H_

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepcast::serve {

// A text that is not JSON, or not the JSON of a request: one sentence with the place.
class JsonError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct JsonMember;

struct JsonValue {
  enum class Kind { kNull, kBoolean, kNumber, kString, kColumn, kObject };
  Kind kind = Kind::kNull;
  bool boolean = false;
  std::string text;            // of a string; a number in its digits
  std::vector<double> column;  // an array of numbers; null is not a number
  std::vector<JsonMember> members;
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

inline constexpr std::size_t kMostJsonMembers = 64;  // of an object
inline constexpr int kMostJsonDepth = 4;

// Throws JsonError.
JsonValue ParseJson(std::string_view text, std::size_t most_numbers_of_a_column);

}  // namespace stepcast::serve

#endif  // STEPCAST_PREDICTOR_SERVE_JSON_VALUE_H_
