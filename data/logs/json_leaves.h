// The values of a JSON document by their path, each with the line that it stands in.
#ifndef STEPCAST_DATA_LOGS_JSON_LEAVES_H_
#define STEPCAST_DATA_LOGS_JSON_LEAVES_H_

#include <functional>
#include <optional>
#include <string>

namespace stepcast {

struct JsonLeaf {
  std::string path;  // "end.streams.0.sender.min_rtt"
  std::optional<double> number;
  std::string text;  // of a text
  int line = 0;
};

// Calls take(leaf) for each number and text of the document, in its order. Throws InputError, which
// names the line, for what is no JSON or nests too deeply; `allowed` says what should be there.
void ForEachJsonLeaf(const std::string& text, const std::string& path, const std::string& allowed,
                     const std::function<void(const JsonLeaf&)>& take);

}  // namespace stepcast

#endif  // STEPCAST_DATA_LOGS_JSON_LEAVES_H_
