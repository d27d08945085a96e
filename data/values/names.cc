#include "data/values/names.h"

#include <algorithm>
#include <string>
#include <vector>

#include "data/record/controls.h"
#include "data/values/size_limits.h"
#include "data/values/spelling.h"
#include "data/values/suggest.h"
#include "data/values/utf8.h"

namespace stepcast {
namespace {

// The name that the word stands for; empty where it is none of them.
std::string_view NameMeant(std::string_view text, std::span<const OtherWord> words) {
  const std::string spelled = CanonicalName(text);
  for (const OtherWord& other : words) {
    if (other.word == spelled) return other.name;
  }
  return {};
}

}  // namespace

std::optional<int> FindWord(std::string_view text, const Names& known) {
  if (const std::optional<int> found = FindAlike(text, known.names)) return found;
  return FindName(NameMeant(text, known.others), known.names);
}

int ParseName(std::string_view text, const InputPlace& place, const Names& known) {
  if (const std::optional<int> found = FindWord(text, known)) return *found;
  std::string problem = known.problem;
  if (const std::string_view meant = NameMeant(text, known.elsewhere); !meant.empty()) {
    // An option is answered with an option, a column or a key with one of its own kind.
    const std::string fact = place.key.starts_with("--")
                                 ? std::string("--") + known.elsewhere_flag + " "
                                 : std::string(known.elsewhere_flag) + ": ";
    problem += std::string(", but ") + known.elsewhere_is + " (" + fact + std::string(meant) + ")";
  } else {
    problem += DidYouMean(text, known.names);
  }
  throw InputError(place, std::string(text), problem, JoinNames(known.names));
}

std::optional<int> FindName(std::string_view name, std::span<const char* const> names) {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) return std::nullopt;
  return static_cast<int>(it - names.begin());
}

std::optional<int> FindAlike(std::string_view name, std::span<const char* const> names) {
  // As files of a million rows have them, which need not be spelled.
  if (const std::optional<int> found = FindName(Trim(name), names)) return found;
  const std::string spelled = CanonicalName(name);
  const auto it = std::find_if(names.begin(), names.end(),
                               [&](const char* known) { return CanonicalName(known) == spelled; });
  if (it == names.end()) return std::nullopt;
  return static_cast<int>(it - names.begin());
}

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::string JoinNames(std::span<const std::string> names) {
  constexpr std::size_t kMostListed = 20;
  constexpr std::size_t kFirst = 10;
  const std::size_t listed = names.size() > kMostListed ? kFirst : names.size();
  std::string joined;
  for (const std::string& name : names.first(listed)) {
    joined += (joined.empty() ? "" : ", ") + Shortened(name);
  }
  if (listed == names.size()) return joined;
  std::string more = std::to_string(names.size() - listed);
  for (std::size_t at = more.size(); at > 3;) more.insert(at -= 3, ",");
  return joined + " and " + more + " more";
}

std::string JoinNames(std::span<const char* const> names) {
  std::string joined;
  for (const char* name : names) joined += (joined.empty() ? "" : ", ") + std::string(name);
  return joined;
}

std::string CheckedName(std::string_view text, const InputPlace& place) {
  if (text.empty()) throw InputError(place, "", "is empty", "a name");
  if (text.size() > kLongestName) {
    throw InputError(place, std::string(text), "is too long for a name",
                     "at most " + std::to_string(kLongestName) + " bytes");
  }
  if (!IsUtf8(text)) throw InputError(place, "", "is not UTF-8 text", "a name in UTF-8");
  RefuseControls(text, place);
  return std::string(text);
}

std::string_view Trim(std::string_view text) {
  constexpr const char* kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace stepcast
