#include "microbench/script/step_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "data/io/runs.h"

namespace stepcast::script {
namespace {

struct Unit {
  const char* name;
  double seconds;
  bool is_rate;
};
constexpr Unit kUnits[] = {
    {"s", 1, false}, {"ms", 1e-3, false}, {"us", 1e-6, false}, {"per_s", 1, true}};
// Without ways back, which may take for ever; where the library knows how.
#ifdef __GLIBCXX__
constexpr auto kSyntax = std::regex::ECMAScript | std::regex_constants::__polynomial;
#else
constexpr auto kSyntax = std::regex::ECMAScript;
#endif
constexpr std::size_t kLongestPattern = 1000;
constexpr double kMostCopies = 100;
constexpr std::size_t kMostGroups = 20;
constexpr const char* kAllowed =
    "a regular expression with one of (?<s>...), (?<ms>...), (?<us>...), (?<per_s>...)";

}  // namespace

StepPattern::StepPattern(const std::string& text, const InputPlace& place) {
  if (text.size() > kLongestPattern) {
    throw InputError(place, text, "is too long", fmt::format("at most {} bytes", kLongestPattern));
  }
  // The standard's expressions have no names: the group becomes one without, whose number is that
  // of its bracket.
  std::string plain;
  std::size_t groups = 0;
  bool in_set = false;
  double copies = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    plain += c;
    if (c == '\\' && i + 1 < text.size()) {
      plain += text[++i];
    } else if (in_set) {
      in_set = c != ']';
    } else if (c == '[') {
      in_set = true;
    } else if (c == '(' && text.compare(i + 1, 2, "?<") == 0) {
      const std::size_t end = text.find('>', i);
      const std::string name =
          end == std::string::npos ? text.substr(i + 3) : text.substr(i + 3, end - i - 3);
      const Unit* unit = nullptr;
      for (const Unit& known : kUnits) {
        if (name == known.name) unit = &known;
      }
      if (unit == nullptr || end == std::string::npos) {
        throw InputError(place, name, "is not a unit of a step's time", kAllowed);
      }
      if (group_ != 0) throw InputError(place, text, "has two named groups", kAllowed);
      group_ = ++groups;
      unit_s_ = unit->seconds;
      is_rate_ = unit->is_rate;
      i = end;
    } else if (c == '(' && text.compare(i + 1, 1, "?") != 0) {
      ++groups;
    } else if (c == '{') {
      // Each repetition is a copy: copies of copies would take for ever.
      const std::size_t end = std::min(text.find('}', i), text.size());
      const std::size_t comma = text.rfind(',', end);
      const std::size_t from = comma != std::string::npos && comma > i ? comma : i;
      double count = 1;
      std::from_chars(text.data() + from + 1, text.data() + end, count);
      copies *= std::max(1.0, count);
    }
  }
  if (!(copies <= kMostCopies)) {
    throw InputError(place, text, "repeats too often",
                     fmt::format("counts in braces of at most {} together", kMostCopies));
  }
  if (group_ == 0) throw InputError(place, text, "has no named group", kAllowed);
  if (groups > kMostGroups) {
    throw InputError(place, text, "has too many groups",
                     fmt::format("at most {}; (?:...) is none", kMostGroups));
  }
  takes_any_start_ = plain.starts_with(".*") && plain.find('|') == std::string::npos;
  try {
    regex_ = std::regex(plain, kSyntax);
  } catch (const std::regex_error& e) {
    throw InputError(place, text, std::string("is not a regular expression: ") + e.what(),
                     kAllowed);
  }
}

std::optional<double> StepPattern::Find(const std::string& line, std::string* held) const {
  std::smatch match;
  const std::string start = line.substr(0, kLongestLine);
  try {
    // What begins with .* is found at the start or nowhere, unless a line end, which . is not,
    // stands within.
    const bool at_start = takes_any_start_ && start.find_first_of("\r\n") == std::string::npos;
    const auto where =
        at_start ? std::regex_constants::match_continuous : std::regex_constants::match_default;
    if (!std::regex_search(start, match, regex_, where)) return std::nullopt;
  } catch (const std::regex_error&) {
    return std::nullopt;  // too much to try on this line
  }
  const std::string number = match[static_cast<int>(group_)].str();
  if (held != nullptr) *held = number;
  double value = 0;
  const char* const end = number.data() + number.size();
  const auto parsed = std::from_chars(number.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  const double time = is_rate_ ? 1 / value : value * unit_s_;
  return kStepTimes.Holds(time) ? std::optional(time) : std::nullopt;
}

}  // namespace stepcast::script
