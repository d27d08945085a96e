// Text that is wrapped at the width of the terminal under a hanging indent.
#ifndef STEPCAST_PREDICTOR_CLI_WRAPPED_H_
#define STEPCAST_PREDICTOR_CLI_WRAPPED_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "predictor/cli/console.h"

namespace stepcast::cli {

// `lead` and then the items, a space between two; further lines begin under the first item. An item
// stays whole.
inline std::string WrappedItems(const std::string& lead, const std::vector<std::string>& items) {
  const int indent = DisplayWidth(lead);
  std::string out = lead;
  int column = indent;
  for (const std::string& item : items) {
    const int width = DisplayWidth(item);
    if (column > indent && column + 1 + width > TerminalWidth()) {
      out += '\n' + std::string(static_cast<std::size_t>(indent), ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += item;
    column += width;
  }
  return out + '\n';
}

// The words of one text.
inline std::string WrappedText(const std::string& lead, std::string_view text) {
  std::vector<std::string> words;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t space = std::min(text.find(' ', start), text.size());
    if (space > start) words.emplace_back(text.substr(start, space - start));
    start = space + 1;
  }
  return WrappedItems(lead, words);
}

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_WRAPPED_H_
