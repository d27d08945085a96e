// The program's answers, as tests ask for them.
#ifndef STEPCAST_TESTS_CLI_PROGRAM_H_
#define STEPCAST_TESTS_CLI_PROGRAM_H_

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/cli/process.h"

namespace stepcast::program {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline ProcessResult Stepcast(const Words& arguments) {
  return RunProcess(Words{STEPCAST_PROGRAM} + arguments);
}

inline Json JsonOf(const Words& arguments, int exit_code = 0) {
  const ProcessResult result = Stepcast(arguments + Words{"--json"});
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  const Json json = Json::parse(result.out, nullptr, false);
  EXPECT_TRUE(json.is_object()) << result.out;
  return json.is_object() ? json : Json::object();
}

inline void ExpectText(const Words& arguments, const Words& fragments, int exit_code = 0) {
  const ProcessResult result = Stepcast(arguments);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  for (const std::string& fragment : fragments) {
    EXPECT_NE(result.out.find(fragment), std::string::npos) << result.out << "lacks: " << fragment;
  }
}

// One space for all white space, so that a wrapped sentence or a table's row can be found.
inline std::string Unwrapped(const std::string& text) {
  return std::regex_replace(text, std::regex("\\s+"), " ");
}

inline void ExpectError(const Words& arguments, const Words& fragments) {
  const ProcessResult result = Stepcast(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  for (const std::string& fragment : fragments) {
    EXPECT_NE(result.err.find(fragment), std::string::npos) << result.err << "lacks: " << fragment;
  }
}

}  // namespace stepcast::program

#endif  // STEPCAST_TESTS_CLI_PROGRAM_H_
