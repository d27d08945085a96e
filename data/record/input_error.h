// The one error that a user can cause: bad input, named so that it can be mended.
#ifndef STEPCAST_DATA_RECORD_INPUT_ERROR_H_
#define STEPCAST_DATA_RECORD_INPUT_ERROR_H_

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace stepcast {

// Where a wrong value stands. Empty fields (or line 0) are not printed: a value given on the
// command line has no file, a file that cannot be opened has no line.
struct InputPlace {
  std::string file;
  int line = 0;  // 1-based
  std::string key;
};

// A text of which an error quotes the beginning only: an error must stay one readable line.
std::string Shortened(std::string_view text, std::size_t most_bytes = 60);

// what() reads "FILE:LINE: KEY: 'VALUE' PROBLEM; allowed: ALLOWED", on one line.
class InputError : public std::runtime_error {
 public:
  InputError(InputPlace place, std::string value, std::string problem, std::string allowed = "");

  // The same error, of a value that stands at another place.
  InputError At(InputPlace place) const;

  const InputPlace& place() const { return place_; }
  const std::string& value() const { return value_; }
  const std::string& problem() const { return problem_; }
  const std::string& allowed() const { return allowed_; }

 private:
  InputPlace place_;
  std::string value_;
  std::string problem_;
  std::string allowed_;
};

// Of a value that is what it should be but for its size.
class OutOfRange : public InputError {
 public:
  OutOfRange(InputPlace place, std::string value, std::string allowed);
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_INPUT_ERROR_H_
