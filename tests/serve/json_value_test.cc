// The JSON of requests: what is read, and what is refused before it costs anything.
#include "predictor/serve/json_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace stepcast::serve {
namespace {

using Kind = JsonValue::Kind;

constexpr std::size_t kMost = 5;

const JsonValue& Member(const JsonValue& object, const std::string& key) {
  for (const auto& [name, value] : object.members) {
    if (name == key) return value;
  }
  ADD_FAILURE() << "no member " << key;
  return object;
}

TEST(JsonValue, KeepsEachKind) {
  const JsonValue v = ParseJson(
      R"({"n": null, "t": true, "i": -12, "x": 1.50e1, "s": "a\u00e9\n", "c": [1, 2.5, null],
          "e": [], "o": {"p": {}}})",
      kMost);
  ASSERT_EQ(v.kind, Kind::kObject);
  ASSERT_EQ(v.members.size(), 8U);
  EXPECT_EQ(Member(v, "n").kind, Kind::kNull);
  EXPECT_EQ(Member(v, "t").kind, Kind::kBoolean);
  EXPECT_TRUE(Member(v, "t").boolean);
  EXPECT_EQ(Member(v, "i").text, "-12");
  EXPECT_EQ(Member(v, "x").kind, Kind::kNumber);
  EXPECT_EQ(Member(v, "x").text, "1.50e1") << "digits as they were written";
  EXPECT_EQ(Member(v, "s").text, "a\xc3\xa9\n");
  const std::vector<double>& column = Member(v, "c").column;
  ASSERT_EQ(column.size(), 3U);
  EXPECT_EQ(column[0], 1);
  EXPECT_EQ(column[1], 2.5);
  EXPECT_TRUE(std::isnan(column[2]));
  EXPECT_EQ(Member(v, "e").kind, Kind::kColumn);
  EXPECT_EQ(Member(Member(v, "o"), "p").kind, Kind::kObject);
}

TEST(JsonValue, MembersAfterAnObjectGoWhereTheyBelong) {
  const JsonValue v = ParseJson(R"({"a": {"b": 1, "c": {"d": 2}, "e": 3}, "f": 4})", kMost);
  ASSERT_EQ(v.members.size(), 2U);
  ASSERT_EQ(Member(v, "a").members.size(), 3U);
  EXPECT_EQ(Member(Member(Member(v, "a"), "c"), "d").text, "2");
  EXPECT_EQ(Member(Member(v, "a"), "e").text, "3");
  EXPECT_EQ(Member(v, "f").text, "4");
}

// The sentence of the refusal; empty where the text is read.
std::string Refusal(const std::string& text) {
  try {
    ParseJson(text, kMost);
    return "";
  } catch (const JsonError& e) {
    return e.what();
  }
}

TEST(JsonValue, RefusesWhatIsNotJson) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "}",
                           "{]",
                           "[1,]",
                           "{\"a\":}",
                           "{\"a\" 1}",
                           "{a:1}",
                           "{'a':1}",
                           "{\"a\":1,}",
                           "{\"a\":01}",
                           "{\"a\":+1}",
                           "{\"a\":.5}",
                           "{\"a\":1.}",
                           "{\"a\":NaN}",
                           "{\"a\":Infinity}",
                           "{\"a\":1e400}",
                           "{\"a\":\"\x01\"}",
                           "{\"a\":\"\\x\"}",
                           "{\"a\":\"\\ud800\"}",
                           "{\"a\":\"\xff\"}",
                           "{\"a\":\"\xc0\xaf\"}",
                           "{\"a\":tru}",
                           "{\"a\":1} x",
                           "{\"a\":1}{}",
                           "// c\n{}",
                           "\"open",
                           "nul"}) {
    EXPECT_NE(Refusal(text), "") << text;
  }
  EXPECT_NE(Refusal(std::string("{\"a\":1\0}", 8)), "") << "a zero byte";
  EXPECT_EQ(Refusal("{\"a\":1e400}"), "byte 10: number overflow parsing '1e400'");
}

TEST(JsonValue, BoundsWhatItReads) {
  EXPECT_EQ(Refusal(R"({"a":{"b":{"c":{}}}})"), "");
  EXPECT_EQ(Refusal(R"({"a":{"b":{"c":{"d":{}}}}})"), "nests too deeply");
  EXPECT_EQ(Refusal("{\"a\":[1,2,3,4,5]}"), "");
  EXPECT_EQ(Refusal("{\"a\":[1,2,3,4,5,6]}"), "key \"a\": an array has more than 5 numbers");
  EXPECT_EQ(Refusal("{\"a\":1,\"a\":2}"), "key \"a\" is there twice");
  const char* const kNotNumbers = "key \"a\": is an array of something else than numbers";
  EXPECT_EQ(Refusal("{\"a\":[[1]]}"), kNotNumbers);
  EXPECT_EQ(Refusal("{\"a\":[\"x\"]}"), kNotNumbers);
  EXPECT_EQ(Refusal("{\"a\":[{}]}"), kNotNumbers);
  EXPECT_EQ(Refusal("{\"a\":[true]}"), kNotNumbers);
  // Where no array is asked for, none is told to hold numbers.
  try {
    ParseJson(R"({"hosts":["a","b"]})", 0);
    ADD_FAILURE() << "an array was read";
  } catch (const JsonError& e) {
    EXPECT_STREQ(e.what(), "key \"hosts\": is an array; allowed: a single value");
  }
  // An error quotes the beginning of a key only.
  const std::string name(1'000'000, 'k');
  const std::string start = "key \"" + name.substr(0, 60) + "...\"";
  EXPECT_EQ(Refusal("{\"" + name + "\":[1,2,3,4,5,6]}"),
            start + ": an array has more than 5 numbers");
  EXPECT_EQ(Refusal("{\"" + name + "\":1,\"" + name + "\":2}"), start + " is there twice");
  std::string wide = "{";
  for (std::size_t i = 0; i <= kMostJsonMembers; ++i) {
    wide += (i > 0 ? "," : "") + ("\"k" + std::to_string(i)) + "\":0";
  }
  EXPECT_EQ(Refusal(wide + "}"), "an object has more than 64 keys");
  EXPECT_EQ(Refusal(wide.substr(0, wide.rfind(',')) + "}"), "");
}

// No stack is used up by what nests: a million brackets are refused at the fifth.
TEST(JsonValue, DeepTextsCostNothing) {
  constexpr std::size_t kDeep = 1'000'000;
  EXPECT_NE(Refusal(std::string(kDeep, '[')), "");
  std::string objects;
  for (std::size_t i = 0; i < kDeep; ++i) objects += "{\"a\":";
  EXPECT_EQ(Refusal(objects), "nests too deeply");
}

}  // namespace
}  // namespace stepcast::serve
