#include "data/values/suggest.h"

#include <algorithm>
#include <cstddef>

#include "data/values/spelling.h"

namespace stepcast {
namespace {

constexpr std::size_t kLongestWord = 64;

// The fewest letters added, left out, changed, or swapped with their neighbour.
std::size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> of(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        of[i][j] = i + j;
        continue;
      }
      of[i][j] = std::min(
          {of[i - 1][j] + 1, of[i][j - 1] + 1, of[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        of[i][j] = std::min(of[i][j], of[i - 2][j - 2] + 1);
      }
    }
  }
  return of[a.size()][b.size()];
}

}  // namespace

std::string NearestName(std::string_view text, std::span<const std::string> names,
                        std::size_t most) {
  const std::string wanted = CanonicalName(text.substr(0, kLongestWord));
  if (wanted.empty() || text.size() > kLongestWord) return "";
  std::string nearest;
  // In halves of a letter.
  std::size_t least = 2 * std::min(std::max<std::size_t>(1, wanted.size() / 3), most) + 1;
  for (const std::string& name : names) {
    if (name.size() > kLongestWord) continue;
    const std::string known = CanonicalName(name);
    // A beginning is nearer than one letter.
    const bool begins = wanted.size() >= 3 && known.starts_with(wanted);
    const std::size_t distance = begins ? std::min<std::size_t>(1, known.size() - wanted.size())
                                        : 2 * EditDistance(wanted, known);
    if (distance < least && distance < 2 * known.size()) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

std::string DidYouMean(const std::string& meant) {
  return meant.empty() ? "" : " (did you mean " + meant + "?)";
}

std::string DidYouMean(std::string_view text, std::span<const std::string> names) {
  return DidYouMean(NearestName(text, names));
}

std::string DidYouMean(std::string_view text, std::span<const char* const> names) {
  const std::vector<std::string> words(names.begin(), names.end());
  return DidYouMean(text, words);
}

}  // namespace stepcast
