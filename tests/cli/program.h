// The program's answers, as tests ask for them.
#ifndef STEPCAST_TESTS_CLI_PROGRAM_H_
#define STEPCAST_TESTS_CLI_PROGRAM_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
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

// A sentence or an item in what a command prints, however its lines are broken.
inline void ExpectSaid(const std::string& printed, const std::string& sentence, bool is_due) {
  const std::string text = Unwrapped(printed);
  EXPECT_EQ(text.find(Unwrapped(sentence)) != std::string::npos, is_due)
      << printed << (is_due ? "lacks: " : "should not say: ") << sentence;
}

// A whole line, as the row of a table, with one space for all white space.
inline void ExpectLine(const std::string& printed, const std::string& line, bool is_due = true) {
  bool is_there = false;
  std::istringstream lines(printed);
  for (std::string one; std::getline(lines, one);) {
    const std::string plain = Unwrapped(one);
    is_there = is_there || plain.substr(plain.starts_with(' ') ? 1 : 0) == line;
  }
  EXPECT_EQ(is_there, is_due) << printed << (is_due ? "lacks the line: " : "has the line: ")
                              << line;
}

// What commands have to say where it is due, and must not say where it is not.
struct Telling {
  Words command;
  Words says;
  Words keeps_back = {};
  int exit_code = 0;
};
inline void ExpectTold(const std::vector<Telling>& rows) {
  for (const Telling& row : rows) {
    const ProcessResult result = Stepcast(row.command);
    EXPECT_EQ(result.exit_code, row.exit_code) << result.err;
    for (const std::string& sentence : row.says) ExpectSaid(result.out, sentence, true);
    for (const std::string& sentence : row.keeps_back) ExpectSaid(result.out, sentence, false);
  }
}

// The cells of the first line of a table whose first cell it is, which stand two blanks apart; none
// where there is no such line.
inline Words RowOf(const std::string& text, const std::string& first) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    Words cells;
    std::size_t at = line.find_first_not_of(' ');
    while (at != std::string::npos) {
      const std::size_t end = std::min(line.find("  ", at), line.size());
      cells.push_back(line.substr(at, end - at));
      at = line.find_first_not_of(' ', end);
    }
    if (!cells.empty() && cells.front() == first) return cells;
  }
  return {};
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
