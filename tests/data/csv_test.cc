#include "data/io/csv.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "data/values/size_limits.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

using Fields = std::vector<std::string>;

CsvTable Parse(const std::string& text) { return CsvTable::Parse(text, "t.csv"); }

TEST(Csv, HeaderRowsAndLines) {
  const CsvTable table = Parse("a,b\n1,2\n3,4\n");
  EXPECT_EQ(table.path(), "t.csv");
  EXPECT_EQ(table.header(), (Fields{"a", "b"}));
  ASSERT_EQ(table.rows().size(), 2U);
  EXPECT_EQ(table.rows()[0].fields, (Fields{"1", "2"}));
  EXPECT_EQ(table.rows()[0].line, 2);
  EXPECT_EQ(table.rows()[1].fields, (Fields{"3", "4"}));
  EXPECT_EQ(table.rows()[1].line, 3);
}

TEST(Csv, TheLastLineNeedsNoEnd) {
  EXPECT_EQ(Parse("a,b\n1,2").rows().at(0).fields, (Fields{"1", "2"}));
  EXPECT_EQ(Parse("a,b\n1,").rows().at(0).fields, (Fields{"1", ""}));
  EXPECT_TRUE(Parse("a,b").rows().empty());
}

TEST(Csv, QuotesEncloseCommasQuotesAndLineEnds) {
  const CsvTable table = Parse("a,b\n\"x, \"\"y\"\"\nz\",\"\"\n3,4\n");
  ASSERT_EQ(table.rows().size(), 2U);
  EXPECT_EQ(table.rows()[0].fields, (Fields{"x, \"y\"\nz", ""}));
  EXPECT_EQ(table.rows()[0].line, 2);
  EXPECT_EQ(table.rows()[1].line, 4) << "the first row has two lines";
}

TEST(Csv, CrLfIsALineEnd) {
  const CsvTable table = Parse("a,b\r\n1,2\r\n\r\n3,\"4\"\r\n");
  EXPECT_EQ(table.header(), (Fields{"a", "b"}));
  ASSERT_EQ(table.rows().size(), 2U);
  EXPECT_EQ(table.rows()[0].fields, (Fields{"1", "2"}));
  EXPECT_EQ(table.rows()[1].fields, (Fields{"3", "4"}));
  EXPECT_EQ(table.rows()[1].line, 4);
}

TEST(Csv, EmptyLinesAreSkippedButCounted) {
  const CsvTable table = Parse("\n\na,b\n\n  \n1,2\n");
  EXPECT_EQ(table.header(), (Fields{"a", "b"}));
  ASSERT_EQ(table.rows().size(), 1U);
  EXPECT_EQ(table.rows()[0].line, 6);
}

TEST(Csv, HasAsManyRowsAsAreAllowed) {
  std::string text = "a\n";
  for (std::size_t i = 0; i <= kMostRows; ++i) text += "1\n";
  CsvReader reader(std::move(text), "t.csv");
  CsvRow row;
  std::size_t rows = 0;
  const auto error = ErrorOf([&] {
    while (reader.Next(&row)) ++rows;
  });
  EXPECT_EQ(rows, kMostRows);
  EXPECT_TRUE(Says(error, "t.csv:10000002: is a row too many; allowed: at most 10000000"));
}

TEST(Csv, ColumnsByName) {
  const CsvTable table = Parse(" a , b\n1,2\n");
  EXPECT_EQ(table.Column("a"), 0U);
  EXPECT_EQ(table.Column("b"), 1U);
  EXPECT_FALSE(table.Column("B").has_value());
  EXPECT_EQ(table.RequiredColumn("b"), 1U);
  const InputPlace place = table.Place(table.rows()[0], 1);
  EXPECT_EQ(place.file, "t.csv");
  EXPECT_EQ(place.line, 2);
  EXPECT_EQ(place.key, "b");
  EXPECT_TRUE(Says(ErrorOf([&] { table.RequiredColumn("c"); }),
                   "t.csv:1: c: is a required column that is missing; allowed: a header with it; "
                   "this file has a, b"));
}

TEST(Csv, Errors) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"", "t.csv: is empty; allowed: a header and rows"},
      {"\n \n", "t.csv: is empty"},
      {"a,b\n1\n", "t.csv:2: has 1 fields; allowed: 2, as the header"},
      {"a,b\n1,2\n1,2,3\n", "t.csv:3: has 3 fields; allowed: 2, as the header"},
      {"a,b\n1,2\n3", "t.csv:3: has 1 fields"},
      {"a,b\n1,0,5\n",
       "t.csv:2: has 3 fields; allowed: 2, as the header; decimals follow a point, and a field "
       "with "
       "a comma stands in quotes"},
      {"a;b\n1;0,5\n",
       "t.csv:1: header: 'a;b' is separated by semicolons; allowed: commas between fields, and a "
       "point before decimals"},
      {"a\tb\n1\t2\n", "t.csv:1: header: 'a\\x09b' is separated by tabs; allowed: commas"},
      {"# mine\na,b\n1,2\n",
       "t.csv:1: header: '# mine' is a comment, where names of columns are looked for; allowed: no "
       "comments; what is to be remarked has a column of its own"},
      {"\n #a, b\n1,2\n", "t.csv:2: header: ' #a' is a comment"},
      {"a,b\n1,2\n# 3, 4, 5\n",
       "t.csv:3: '# 3' is a comment, where a row is looked for; allowed: no comments"},
      {"a,b,a\n", "t.csv:1: column 3: 'a' is the name of an earlier column too"},
      {"a,,b\n", "t.csv:1: column 2: has no name in the header"},
      {"a,\n", "t.csv:1: column 2: has no name in the header"},
      {"a,b\n1,\"2\n3,4\n",
       "t.csv:2: column 2: '2\\x0a3,4\\x0a' begins with a quote that is never "
       "closed"},
      {"a,b\n1,2\"3\n", "t.csv:2: column 2: '2' has a quote in the middle of a field"},
      {"a,b\n1,\"2\"3\n", "t.csv:2: column 2: '2' has text behind its closing quote"},
      {"a,b\n1,\"2\"\"\n", "begins with a quote that is never closed"},
  };
  for (const auto& c : cases) EXPECT_TRUE(Says(ErrorOf([&] { Parse(c.text); }), c.says)) << c.text;
}

TEST(Csv, ReadNamesTheFile) {
  const TempFolder folder;
  const std::string path = folder.Write("runs.csv",
                                        "\xef\xbb\xbf"
                                        "a,b\n1,2\n");
  EXPECT_EQ(CsvTable::Read(path).header(), (Fields{"a", "b"}));
  EXPECT_EQ(CsvTable::Read(path).path(), path);
  const std::string missing = folder.Path("missing.csv");
  EXPECT_TRUE(Says(ErrorOf([&] { CsvTable::Read(missing); }),
                   missing + ": cannot be read: No such file or directory"));
}

TEST(Csv, FieldsAreQuotedOnlyWhereTheyMust) {
  EXPECT_EQ(CsvField("plain text"), "plain text");
  EXPECT_EQ(CsvField(""), "");
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(CsvField("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(CsvField("cr\r"), "\"cr\r\"");
}

// Whatever is written as fields is read as the same fields.
RC_GTEST_PROP(Csv, FieldsRoundTrip, ()) {
  const auto text = rc::gen::container<std::string>(
      rc::gen::element('a', 'b', ' ', ',', '"', '\n', '\r', ';', '\t', '0'));
  const auto rows = *rc::gen::container<std::vector<Fields>>(rc::gen::container<Fields>(3, text));
  std::string file = "x,y,z\n";
  for (const Fields& row : rows) file += CsvLine(row);
  const CsvTable table = Parse(file);
  RC_ASSERT(table.rows().size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) RC_ASSERT(table.rows()[i].fields == rows[i]);
}

}  // namespace
}  // namespace stepcast
