// Texts by lines, and pages by headings.
#ifndef STEPCAST_TESTS_SUPPORT_MARKDOWN_H_
#define STEPCAST_TESTS_SUPPORT_MARKDOWN_H_

#include <cctype>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace stepcast {

using Lines = std::vector<std::string>;

inline Lines Split(const std::string& text, char separator) {
  Lines parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

// Without white space at line ends, which option lists of the program have and pages should not.
inline Lines LinesOf(const std::string& text) {
  Lines lines = Split(text, '\n');
  for (std::string& line : lines) line.erase(line.find_last_not_of(" \t\r") + 1);
  return lines;
}

// All matches of the expression's first group.
inline Lines FindAll(const std::string& text, const std::string& expression) {
  const std::regex regex(expression);
  Lines found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

// The page without the blocks between ``` lines.
inline std::string Prose(const std::string& text) {
  std::string prose;
  bool inside = false;
  for (const std::string& line : LinesOf(text)) {
    if (line.starts_with("```")) {
      inside = !inside;
    } else if (!inside) {
      prose += line + '\n';
    }
  }
  return prose;
}

// As GitHub makes them of headings.
inline std::set<std::string> Anchors(const std::string& text) {
  std::set<std::string> anchors;
  for (const std::string& heading : FindAll(Prose(text), "(?:^|\n)#+ ([^\n]*)")) {
    std::string anchor;
    for (const char c : heading) {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_') {
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      } else if (c == ' ') {
        anchor += '-';
      }
    }
    anchors.insert(anchor);
  }
  return anchors;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_MARKDOWN_H_
