#include "microbench/script/step_pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "data/io/runs.h"
#include "data/values/text_as_number.h"

namespace stepcast::script {
namespace {

struct Unit {
  const char* name;
  double seconds;
  bool is_rate;
};
constexpr Unit kUnits[] = {
    {"s", 1, false}, {"ms", 1e-3, false}, {"us", 1e-6, false}, {"per_s", 1, true}};
constexpr std::size_t kLongestPattern = 1000;
// Of the instructions that RE2 makes of a pattern each may look at each byte: so many take at most
// about 2 s of a log of 1 MB.
constexpr int kMostInstructions = 300;
// For them, and for what RE2 remembers of the lines before, which makes it fast.
constexpr std::int64_t kMostMemory = 1 << 20;  // bytes
constexpr const char* kAllowed =
    "a regular expression with one of (?<s>...), (?<ms>...), (?<us>...), (?<per_s>...)";

// A pattern as RE2 takes it, of which the named group is the only one that has a number.
struct Translation {
  std::string regex;
  const Unit* unit = nullptr;  // of the named group, if there is one
};

Translation Translate(const std::string& text, const InputPlace& place) {
  const auto begins = [&](std::size_t at, std::string_view part) {
    return text.compare(at, part.size(), part) == 0;
  };
  const auto refuse = [&](const char* problem, const char* allowed) {
    throw InputError(place, text, problem, allowed);
  };
  const auto refuse_reference = [&] {
    refuse("refers back to a group, which no expression of RE2 does",
           "what the group holds, written once more");
  };
  Translation translation;
  std::string& regex = translation.regex;
  bool in_set = false;
  std::size_t at = 0;
  // Takes over what stands before `end`, unread.
  const auto copy_to = [&](std::size_t end) {
    end = std::min(end, text.size());
    regex.append(text, at, end - at);
    at = end;
  };
  while (at < text.size()) {
    if (text[at] == '\\') {
      const char next = at + 1 < text.size() ? text[at + 1] : '\0';
      // Two digits of eight and more are a byte.
      const char second = at + 2 < text.size() ? text[at + 2] : '\0';
      const bool is_octal = next <= '7' && second >= '0' && second <= '7';
      const bool is_number = next >= '1' && next <= '9' && !is_octal;
      if (!in_set && (is_number || next == 'k')) refuse_reference();
      const bool is_quote = !in_set && next == 'Q';
      copy_to(is_quote ? std::min(text.find("\\E", at), text.size() - 2) + 2 : at + 2);
    } else if (in_set) {
      const std::size_t end = begins(at, "[:") ? text.find(":]", at + 2) : std::string::npos;
      in_set = text[at] != ']';
      copy_to(end == std::string::npos ? at + 1 : end + 2);
    } else if (text[at] == '[') {
      in_set = true;
      std::size_t first = at + 1;
      if (begins(first, "^")) ++first;
      if (begins(first, "]")) ++first;  // one of the set
      copy_to(first);
    } else if (text[at] != '(') {
      copy_to(at + 1);
    } else if (!begins(at + 1, "?")) {
      regex += "(?:";
      ++at;
    } else if (begins(at, "(?=") || begins(at, "(?!") || begins(at, "(?<=") || begins(at, "(?<!")) {
      refuse("looks around, which no expression of RE2 does",
             "what stands before or behind the named group, written as it stands in the line");
    } else if (begins(at, "(?P=")) {
      refuse_reference();
    } else if (begins(at, "(?<") || begins(at, "(?P<")) {
      const std::size_t begin = text.find('<', at) + 1;
      const std::size_t end = text.find('>', begin);
      const std::string name = text.substr(begin, end == std::string::npos ? end : end - begin);
      const Unit* const unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                            [&](const Unit& known) { return name == known.name; });
      if (unit == std::end(kUnits) || end == std::string::npos) {
        throw InputError(place, name, "is not a unit of a step's time", kAllowed);
      }
      if (translation.unit != nullptr) refuse("has two named groups", kAllowed);
      translation.unit = unit;
      regex += '(';
      at = end + 1;
    } else {
      copy_to(at + 2);
    }
  }
  return translation;
}

}  // namespace

StepPattern::StepPattern(const std::string& text, const InputPlace& place) {
  if (text.size() > kLongestPattern) {
    throw InputError(place, text, "is too long", fmt::format("at most {} bytes", kLongestPattern));
  }
  const Translation translation = Translate(text, place);
  if (translation.unit == nullptr) throw InputError(place, text, "has no named group", kAllowed);
  unit_s_ = translation.unit->seconds;
  is_rate_ = translation.unit->is_rate;

  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // bytes
  options.set_log_errors(false);
  options.set_max_mem(kMostMemory);
  regex_ = std::make_shared<const re2::RE2>(translation.regex, options);
  const bool is_too_large = regex_->ok() ? regex_->ProgramSize() > kMostInstructions
                                         : regex_->error_code() == re2::RE2::ErrorPatternTooLarge;
  if (is_too_large) {
    const std::string count =
        regex_->ok() ? fmt::format(": {}", regex_->ProgramSize()) : ", and needs too much memory";
    throw InputError(place, text, "makes too many instructions of RE2" + count,
                     fmt::format("at most {}; a character is one or two, and a count in braces "
                                 "repeats those before it",
                                 kMostInstructions));
  }
  if (!regex_->ok()) {
    // The part that is wrong is named where it is one that was typed.
    std::string why = regex_->error();
    if (text.find(regex_->error_arg()) == std::string::npos) why = why.substr(0, why.find(": "));
    throw InputError(place, text, "is not a regular expression: " + why, kAllowed);
  }
}

std::optional<double> StepPattern::Find(const std::string& line, std::string* held) const {
  std::string number;
  if (!re2::RE2::PartialMatch(line, *regex_, &number)) return std::nullopt;
  if (held != nullptr) *held = number;
  const auto value = TextAsNumber<double>(number);
  if (!value) return std::nullopt;
  const double time = is_rate_ ? 1 / *value : *value * unit_s_;
  return kStepTimes.Holds(time) ? std::optional(time) : std::nullopt;
}

}  // namespace stepcast::script
