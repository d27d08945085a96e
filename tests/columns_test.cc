// No line of a source is longer than 100 columns. clang-format keeps code so; comments, which it
// does not wrap, and Python are kept so here. What cannot be broken may be longer: the text of a
// raw string, and an address.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

constexpr std::ptrdiff_t kColumns = 100;

// Characters, not bytes of UTF-8.
std::ptrdiff_t Columns(std::string_view line) {
  return std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

// Whether a raw string has text on the line. *closing is what ends the one that is open, or empty.
bool HasRawText(std::string_view line, std::string* closing) {
  bool found = !closing->empty();
  for (std::size_t at = 0;;) {
    if (closing->empty()) {
      at = line.find("R\"", at);
      const std::size_t open = at == std::string_view::npos ? at : line.find('(', at);
      if (open == std::string_view::npos) return found;
      *closing = ")" + std::string(line.substr(at + 2, open - at - 2)) + "\"";
      at = open + 1;
      found = true;
    }
    at = line.find(*closing, at);
    if (at == std::string_view::npos) return true;
    at += closing->size();
    closing->clear();
  }
}

// Numbers, from 1, of the lines that are too long.
std::vector<int> LongLines(const std::string& text, bool cpp) {
  std::vector<int> numbers;
  std::istringstream in(text);
  std::string closing;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (cpp && HasRawText(line, &closing)) continue;
    if (Columns(line) > kColumns && line.find("://") == std::string::npos)
      numbers.push_back(number);
  }
  return numbers;
}

TEST(Columns, NoLineIsTooLong) {
  static const std::set<std::string> kSources = {".cc", ".h", ".cu", ".in", ".py", ".pyi"};
  const std::filesystem::path root = STEPCAST_SOURCE_DIR;
  int files = 0;
  for (const char* folder :
       {"data", "model", "calibrate", "microbench", "predictor", "tests", "tools", "docs"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (!entry.is_regular_file() || kSources.count(extension) == 0) continue;
      ++files;
      const bool cpp = !extension.starts_with(".py");
      for (const int line : LongLines(FileContent(entry.path().string()), cpp)) {
        ADD_FAILURE() << entry.path().lexically_relative(root).string() << ":" << line
                      << " is longer than " << kColumns << " columns";
      }
    }
  }
  EXPECT_GT(files, 100) << "the sources are not where they were";
}

TEST(Columns, RawStringsAndAddressesMayBeLonger) {
  const std::string fits(100, 'x');
  std::string text;
  for (const std::string& line : {
           fits,
           fits + "x",  // 2
           "// " + fits,
           "f(R\"(" + fits + ")\");",  // 4: raw
           "f(R\"re(a)\"" + fits,      // 5: raw, and still open behind it
           fits + ")re\");",
           fits + "y",  // 7
           "// https://example.org/" + fits,
           "\xc3\xa9" + fits.substr(1),  // 100 characters in 101 bytes
       }) {
    text += line + "\n";
  }
  EXPECT_EQ(LongLines(text, true), (std::vector<int>{2, 3, 7}));
  EXPECT_EQ(LongLines(text, false), (std::vector<int>{2, 3, 4, 5, 6, 7}));
}

}  // namespace
}  // namespace stepcast
