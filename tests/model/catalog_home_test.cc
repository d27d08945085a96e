// Where the catalogue says that a formula stands, it stands: the header declares what the entry
// evaluates, the page has the section, the test tries the function. So for the parameters, each of
// which leads to the formula that reads it.
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "model/catalog/catalog.h"
#include "model/step/parameter_specs.h"
#include "tests/model/entries.h"
#include "tests/model/support.h"
#include "tests/support/markdown.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

std::string Source(const std::string& path) {
  return FileContent(std::string(STEPCAST_SOURCE_DIR) + "/" + path);
}

std::string WithoutComments(const std::string& code) {
  return std::regex_replace(code, std::regex("//[^\n]*"), "");
}

// A function at the start of a line, or a class.
bool Declares(const std::string& header, const std::string& name) {
  return std::regex_search(
      header, std::regex("\n[A-Za-z][^\n=;(]*[ &*]" + name + "\\(|\n(struct|class) " + name + " "));
}

bool Names(const std::string& text, const std::string& word) {
  return std::regex_search(text, std::regex("\\b" + word + "\\b"));
}

TEST(CatalogHome, DeclarationsAreTold) {
  EXPECT_TRUE(Declares("\ntemplate <class T>\nPath<T> Rate(int x) {\n", "Rate"));
  EXPECT_TRUE(Declares("\nclass Curve {\n", "Curve"));
  EXPECT_FALSE(Declares("\n  return Rate(x);\n", "Rate"));
  EXPECT_FALSE(Declares("\nint y = Rate(1);\n", "Rate"));
  EXPECT_FALSE(Declares("\nint HopRate(int x);\n", "Rate"));
  EXPECT_FALSE(Names("HopRate(1)", "Rate"));
}

class CatalogHomeTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  const Model<double> model_ = Entries().at(GetParam());
  const Home& home_ = model_.home;
};

TEST_P(CatalogHomeTest, HeaderDeclaresTheFunction) {
  // All headers of model/ are installed.
  EXPECT_TRUE(std::regex_match(home_.files.header, std::regex("model/.*\\.h")));
  EXPECT_TRUE(Declares(Source(home_.files.header), home_.function))
      << home_.files.header << " has no " << home_.function;
}

TEST_P(CatalogHomeTest, PageHasTheSection) {
  const std::string page = Source(home_.files.page);
  EXPECT_FALSE(page.empty()) << home_.files.page;
  EXPECT_EQ(Anchors(page).count(home_.section), 1U) << home_.files.page << "#" << home_.section;
}

TEST_P(CatalogHomeTest, TestTriesTheFunction) {
  EXPECT_TRUE(Names(WithoutComments(Source(home_.files.test)), home_.function))
      << home_.files.test << " does not try " << home_.function;
}

// The entry calls what it names, in the file that has its id.
TEST_P(CatalogHomeTest, EntryEvaluatesTheFunction) {
  const std::string quoted = std::string("\"") + model_.id + "\"";
  bool found = false;
  for (const auto& file :
       std::filesystem::directory_iterator(STEPCAST_SOURCE_DIR "/model/catalog")) {
    const std::string code = FileContent(file.path());
    if (code.find(quoted) == std::string::npos) continue;
    found = true;
    // A call, or a variable of the class; the name in quotes is neither.
    EXPECT_TRUE(
        std::regex_search(code, std::regex("[^\"A-Za-z]" + std::string(home_.function) + "[(<]")))
        << file.path();
  }
  EXPECT_TRUE(found);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, CatalogHomeTest,
                         ::testing::Range<std::size_t>(0, Entries().size()),
                         [](const ::testing::TestParamInfo<std::size_t>& entry) {
                           return TestName(Entries().at(entry.param).id);
                         });

// ---- Parameters.

// Its entry is in the catalogue, and the page of the step has its symbol.
TEST(ParameterHome, LeadsToTheFormulaThatReadsIt) {
  std::set<std::string> ids;
  for (const Model<double>& model : Entries()) ids.insert(model.id);
  const std::string page = Source("docs/explanation/step-model.md");
  for (const ParameterSpec* spec : kParameterSpecs) {
    EXPECT_EQ(ids.count(std::string(spec->model)), 1U) << spec->name << ": " << spec->model;
    EXPECT_NE(page.find("`" + std::string(spec->name) + "`"), std::string::npos) << spec->name;
    EXPECT_EQ(FindParameterSpec(spec->name), spec);
  }
  EXPECT_EQ(FindParameterSpec("physics"), nullptr);
}

}  // namespace
}  // namespace stepcast
