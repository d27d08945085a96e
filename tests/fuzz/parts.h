// Several files or requests as one input of a door: what stands between the separators of JSON text
// sequences (RFC 7464).
#ifndef STEPCAST_TESTS_FUZZ_PARTS_H_
#define STEPCAST_TESTS_FUZZ_PARTS_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/fuzz/door.h"

namespace stepcast::fuzz {

inline std::vector<std::string> PartsOf(const std::string& input, std::size_t most = 8) {
  constexpr char kSeparator = '\x1e';
  std::vector<std::string> parts;
  for (std::size_t at = 0; parts.size() < most;) {
    const std::size_t end = input.find(kSeparator, at);
    parts.push_back(input.substr(at, end == std::string::npos ? end : end - at));
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return parts;
}

// Traces of several ranks, each a file of its own.
inline std::vector<std::string> RankFiles(const std::string& input) {
  std::vector<std::string> files;
  for (const std::string& text : PartsOf(input)) {
    files.push_back(FileOf(text, "rank" + std::to_string(files.size()) + ".json"));
  }
  return files;
}

// The first line, and what stands behind it.
struct HeadAndBody {
  std::string head;
  std::string body;
};
inline HeadAndBody SplitHead(const std::string& input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  return {input.substr(0, end), input.substr(std::min(end + 1, input.size()))};
}

}  // namespace stepcast::fuzz

#endif  // STEPCAST_TESTS_FUZZ_PARTS_H_
