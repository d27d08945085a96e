// Doors: where files, texts and messages of others come in, each with what must hold of any input.
//
//   STEPCAST_DOOR(runs) {                       // `input` is a std::string of any bytes
//     const std::vector<Run> runs = ParseRuns(input, "runs.csv");
//     RequireReadAgain(runs);
//   }
//
// A door may refuse its input by an InputError alone. What it accepts, its writer writes and it
// reads again, and what is answered is finite: the door says so by Require, which throws what no
// door may let out. corpus_test.cc opens each door with the inputs of corpus/NAME, fuzzer.cc with
// those that libFuzzer makes of them (tools/fuzz).
#ifndef STEPCAST_TESTS_FUZZ_DOOR_H_
#define STEPCAST_TESTS_FUZZ_DOOR_H_

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "data/record/input_error.h"
#include "data/values/utf8.h"
#include "tests/support/temp_file.h"

namespace stepcast::fuzz {

struct Door {
  const char* name;
  void (*open)(const std::string& input);
};

inline std::vector<Door>& Doors() {
  static std::vector<Door> doors;
  return doors;
}

struct ListedDoor {
  ListedDoor(const char* name, void (*open)(const std::string&)) {
    Doors().push_back({name, open});
  }
};

#define STEPCAST_DOOR(name)                          \
  void name##Door(const std::string& input);         \
  const ListedDoor name##_listed(#name, name##Door); \
  void name##Door([[maybe_unused]] const std::string& input)

// What holds no longer.
struct Broken : std::logic_error {
  using std::logic_error::logic_error;
};

inline void Require(bool holds, const std::string& what) {
  if (!holds) throw Broken(what);
}

// What a reader makes of our own text, which it may not refuse.
template <class Read>
auto ReadAgain(const std::string& text, Read read) {
  Require(IsUtf8(text), "what was written is no text, as files must be");
  try {
    return read(text);
  } catch (const InputError& e) {
    throw Broken(std::string("what was written is refused: ") + e.what() + "\n" + text);
  }
}

// An error is a line that a person can read.
inline void RequireReadable(const std::string& error) {
  constexpr std::size_t kLongest = 4000;
  Require(!error.empty() && error.find_first_of("\r\n") == std::string::npos &&
              error.size() <= kLongest,
          "an error of " + std::to_string(error.size()) + " bytes: " + error.substr(0, kLongest));
}

// Whether it works, or is refused.
template <class Act>
bool Try(const Act& act) {
  try {
    act();
    return true;
  } catch (const InputError& e) {
    RequireReadable(e.what());
    return false;
  }
}

// Whether the door takes the input.
inline bool Open(const Door& door, const std::string& input) {
  return Try([&] { door.open(input); });
}

// For readers that take a path alone: the input as a file of that name.
inline std::string FileOf(const std::string& input, const std::string& name) {
  static const TempFolder folder;
  return folder.Write(name, input);
}

}  // namespace stepcast::fuzz

#endif  // STEPCAST_TESTS_FUZZ_DOOR_H_
