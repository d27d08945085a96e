// libFuzzer at one of the doors: --door=NAME; without a name, a list of them. Other arguments are
// libFuzzer's own. Built with clang alone; see tools/fuzz.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include "tests/fuzz/door.h"

namespace {

const stepcast::fuzz::Door* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kFlag = "--door=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    if (!word.starts_with(kFlag)) continue;
    for (const stepcast::fuzz::Door& door : stepcast::fuzz::Doors()) {
      if (word.substr(kFlag.size()) == door.name) chosen = &door;
    }
  }
  if (chosen != nullptr) return 0;
  for (const stepcast::fuzz::Door& door : stepcast::fuzz::Doors()) std::puts(door.name);
  std::exit(*argc > 1 ? 2 : 0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepcast::fuzz::Open(*chosen, std::string(reinterpret_cast<const char*>(data), size));  // NOLINT
  return 0;
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

// Now and then a piece is written thousands of times, each with a number of its own: what costs by
// the square of keys, columns or names is slow then, which changes of a few bytes never show.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  constexpr unsigned kOnceIn = 200;
  constexpr std::size_t kLongestPiece = 64;
  std::minstd_rand random(seed);
  if (random() % kOnceIn > 0 || size == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string input(reinterpret_cast<const char*>(data), size);  // NOLINT
  const std::size_t at = random() % size;
  const std::string piece = input.substr(at, 1 + random() % kLongestPiece);
  const std::size_t number_at = random() % (piece.size() + 1);
  std::string made = input.substr(0, at);
  for (std::size_t i = 0; made.size() + input.size() < most; ++i) {
    made += piece.substr(0, number_at) + std::to_string(i) + piece.substr(number_at);
  }
  made += input.substr(at);
  made.resize(std::min(made.size(), most));
  std::copy(made.begin(), made.end(), data);
  return made.size();
}
