// Sources of a library are compiled several at a time, and a constant that one of them keeps for
// itself in an inner namespace is then found by the others before the one of a header that they
// mean. No compiler says so.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

// Names of the constants that stand at the beginning of a line.
std::set<std::string> ConstantsOf(const std::string& text) {
  static const std::regex constant(
      R"(\n(?:inline |static )?(?:constexpr|const) [^\n;=(){}]*\b(k[A-Z]\w*)(?:\[\w*\])*[ ]?[={])");
  std::set<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), constant), end; it != end; ++it) {
    names.insert((*it)[1]);
  }
  return names;
}

TEST(HiddenConstants, NoSourceHidesThatOfAHeader) {
  const std::filesystem::path root = STEPCAST_SOURCE_DIR;
  std::map<std::string, std::string> of_headers;
  std::map<std::string, std::string> sources;  // that have an inner namespace
  for (const char* room : {"data", "model", "calibrate", "microbench", "predictor"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / room)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cc") continue;
      const std::string text = FileContent(entry.path().string());
      const bool is_inner = text.find("\nnamespace stepcast::") != std::string::npos;
      const std::string file = entry.path().lexically_relative(root).string();
      if (extension == ".cc" && is_inner) sources[file] = text;
      if (extension == ".cc" || is_inner) continue;
      for (const std::string& name : ConstantsOf(text)) of_headers[name] = file;
    }
  }
  int looked_at = 0;
  for (const auto& [file, text] : sources) {
    for (const std::string& name : ConstantsOf(text)) {
      ++looked_at;
      const auto found = of_headers.find(name);
      if (found == of_headers.end()) continue;
      ADD_FAILURE() << file << ": " << name << " hides that of " << found->second;
    }
  }
  EXPECT_GT(of_headers.size(), 100U);
  EXPECT_GT(looked_at, 100);
}

TEST(HiddenConstants, AreSeen) {
  const std::set<std::string> names = ConstantsOf(
      "\nconstexpr int kOne = 1;\ninline constexpr const char* kNames[] = {\"kNone\"};\n"
      "  constexpr int kWithin = 1;\nconst std::string kText(\"kNot\");\nstatic constexpr double "
      "kTwo{2};\n");
  EXPECT_EQ(names, (std::set<std::string>{"kOne", "kNames", "kTwo"}));
}

}  // namespace
}  // namespace stepcast
