// The pages on the C interface: what they show is what is compiled, and they leave nothing out.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

const std::string kSource = STEPCAST_SOURCE_DIR;

std::string Content(const std::string& path) {
  const std::string text = FileContent(kSource + "/" + path);
  EXPECT_FALSE(text.empty()) << path;
  return text;
}

// What stands behind <!-- from: FILE --> is that file of consumers/, or a stretch of it.
TEST(Pages, ShowTheConsumers) {
  const std::regex block("<!-- from: (\\S+) -->\n```[a-z]+\n([^`]*)```\n");
  for (const char* path : {"docs/howto/link-from-c-go-rust.md", "docs/reference/c-api.md"}) {
    const std::string page = Content(path);
    std::set<std::string> shown;
    for (std::sregex_iterator it(page.begin(), page.end(), block), end; it != end; ++it) {
      const std::string file = (*it)[1];
      shown.insert(file);
      EXPECT_NE(Content("tests/capi/consumers/" + file).find((*it)[2]), std::string::npos)
          << path << " shows of " << file << " what is not there:\n"
          << (*it)[2];
    }
    // Code that nothing compiles does not stand in a page.
    const std::regex code("```(c|go|rust|cmake)\n");
    const auto blocks =
        std::distance(std::sregex_iterator(page.begin(), page.end(), code), std::sregex_iterator());
    const auto checked = std::distance(std::sregex_iterator(page.begin(), page.end(), block),
                                       std::sregex_iterator());
    EXPECT_EQ(blocks, checked) << path;
    if (std::string(path).find("howto") != std::string::npos) {
      EXPECT_EQ(shown,
                (std::set<std::string>{"CMakeLists.txt", "fleet.c", "fleet.go", "fleet.rs"}));
    }
  }
}

TEST(Pages, NameEveryFunctionAndEnumerator) {
  const std::string page = Content("docs/reference/c-api.md");
  const std::string header =
      std::regex_replace(Content("predictor/capi/stepcast.h"), std::regex("//[^\n]*"), "");
  const std::regex name("\\b(stepcast_[a-z_]+(?=\\()|STEPCAST_[A-Z_]+(?= =))");
  std::set<std::string> names;
  for (std::sregex_iterator it(header.begin(), header.end(), name), end; it != end; ++it) {
    names.insert((*it)[1]);
  }
  EXPECT_GT(names.size(), 70U);
  for (const std::string& one : names) {
    EXPECT_NE(page.find("`" + one + "`"), std::string::npos) << one;
  }
  // And nothing that is not there.
  const std::regex said("`((?:stepcast|STEPCAST)_[A-Za-z_]+)`");
  for (std::sregex_iterator it(page.begin(), page.end(), said), end; it != end; ++it) {
    EXPECT_NE(header.find((*it)[1]), std::string::npos) << (*it)[1];
  }
}

}  // namespace
}  // namespace stepcast
