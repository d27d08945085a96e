// What a file is, by what it begins with.
#ifndef STEPCAST_DATA_LOGS_GUESS_H_
#define STEPCAST_DATA_LOGS_GUESS_H_

#include <optional>
#include <string>

namespace stepcast {

struct FileGuess {
  std::string what;     // "a table of nccl-tests"
  std::string why;      // what it was known by
  std::string command;  // that reads it, with FILE for its name; empty where none does
};

// Looks at the first megabyte. Empty where nothing in it is known; throws InputError for what
// cannot be read.
std::optional<FileGuess> GuessFile(const std::string& path);

}  // namespace stepcast

#endif  // STEPCAST_DATA_LOGS_GUESS_H_
