#include "data/record/input_error.h"

#include <gtest/gtest.h>

#include <string>

#include "data/values/utf8.h"

namespace stepcast {
namespace {

std::string Text(const InputPlace& place, const std::string& value, const std::string& problem,
                 const std::string& allowed = "") {
  return InputError(place, value, problem, allowed).what();
}

TEST(InputError, NamesFileLineKeyValueAndAllowed) {
  EXPECT_EQ(Text({"lab.yaml", 7, "link.rtt"}, "2 sec", "has an unknown unit", "s ms"),
            "lab.yaml:7: link.rtt: '2 sec' has an unknown unit; allowed: s ms");
}

TEST(InputError, WhatIsNotKnownIsNotPrinted) {
  EXPECT_EQ(Text({"", 0, "--rtt"}, "2", "has no unit"), "--rtt: '2' has no unit");
  EXPECT_EQ(Text({"lab.yaml", 0, ""}, "", "is empty"), "lab.yaml: is empty");
  EXPECT_EQ(Text({"lab.yaml", 3, ""}, "", "is not UTF-8 text"), "lab.yaml:3: is not UTF-8 text");
}

TEST(InputError, KeepsItsParts) {
  const InputError error({"lab.yaml", 7, "link.rtt"}, "a\nb", "is wrong", "right");
  EXPECT_EQ(error.place().file, "lab.yaml");
  EXPECT_EQ(error.place().line, 7);
  EXPECT_EQ(error.place().key, "link.rtt");
  EXPECT_EQ(error.value(), "a\nb");
  EXPECT_EQ(error.problem(), "is wrong");
  EXPECT_EQ(error.allowed(), "right");
}

TEST(InputError, AValueIsQuotedOnOneLine) {
  EXPECT_EQ(Text({}, "a\nb\t\x7f\x01", "is odd"), "'a\\x0ab\\x09\\x7f\\x01' is odd");
  EXPECT_EQ(Text({}, "µ", "is odd"), "'µ' is odd");
  EXPECT_EQ(Text({}, "\u009b2J", "is odd"), "'\\xc2\\x9b2J' is odd");
}

TEST(InputError, ALongValueIsCut) {
  const std::string text = Text({}, std::string(100'000, 'x'), "is long");
  EXPECT_LT(text.size(), 100U);
  EXPECT_NE(text.find("xxx...' is long"), std::string::npos) << text;
}

// Keys and the names of columns come from files, too.
TEST(InputError, AKeyIsOnOneLine) {
  const std::string text = Text({"lab\n.yaml", 7, "li\nnk"}, "", "is unknown", "a, b\nc");
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

// A program that passes the message on as JSON needs UTF-8.
TEST(InputError, ALongValueIsCutBetweenCharacters) {
  for (int lead = 0; lead < 3; ++lead) {
    std::string value(static_cast<std::size_t>(lead), 'x');
    for (int i = 0; i < 100; ++i) value += "\u20ac";
    EXPECT_TRUE(IsUtf8(Text({}, value, "is long"))) << lead;
  }
}

}  // namespace
}  // namespace stepcast
