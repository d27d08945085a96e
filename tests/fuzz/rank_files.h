// Traces of several ranks as one input of a door: what stands between the separators of JSON text
// sequences (RFC 7464), each a file of its own.
#ifndef STEPCAST_TESTS_FUZZ_RANK_FILES_H_
#define STEPCAST_TESTS_FUZZ_RANK_FILES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tests/fuzz/door.h"

namespace stepcast::fuzz {

inline std::vector<std::string> RankFiles(const std::string& input) {
  constexpr char kSeparator = '\x1e';
  constexpr std::size_t kMost = 8;
  std::vector<std::string> files;
  for (std::size_t at = 0; files.size() < kMost;) {
    const std::size_t end = input.find(kSeparator, at);
    const std::string text = input.substr(at, end == std::string::npos ? end : end - at);
    files.push_back(FileOf(text, "rank" + std::to_string(files.size()) + ".json"));
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return files;
}

}  // namespace stepcast::fuzz

#endif  // STEPCAST_TESTS_FUZZ_RANK_FILES_H_
