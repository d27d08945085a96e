#include "data/logs/log_lines.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include "data/io/text_file.h"
#include "data/record/input_error.h"
#include "data/values/names.h"
#include "data/values/size_limits.h"
#include "data/values/utf8.h"

namespace stepcast {
namespace {

constexpr char kEscape = '\x1b';
constexpr char kDelete = '\x7f';

bool IsBlank(char c) { return c == ' ' || c == '\t'; }
bool IsControl(char c) { return static_cast<unsigned char>(c) < ' ' || c == kDelete; }

// The text without escape sequences and control characters but tabs.
void Undress(std::string* text) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < text->size(); ++i) {
    const char c = (*text)[i];
    if (c == kEscape && i + 1 < text->size() && (*text)[i + 1] == '[') {
      // Parameters, and one letter that ends them.
      for (i += 2; i < text->size() && ((*text)[i] < '@' || (*text)[i] > '~'); ++i) continue;
    } else if (c == '\t' || !IsControl(c)) {
      (*text)[out++] = c;
    }
  }
  text->resize(out);
}

// What sets thousands apart: ASCII's, a quotation mark, and blanks that break no line.
constexpr std::string_view kSeparators[] = {",", "'", "_", "\u2019", "\u00a0", "\u202f", "\u2009"};

// Bytes of the separator that a text begins with; 0 where it begins with none.
std::size_t SeparatorLength(std::string_view text) {
  for (const std::string_view separator : kSeparators) {
    if (text.starts_with(separator)) return separator.size();
  }
  return 0;
}
std::size_t SeparatorLengthBefore(std::string_view text, std::size_t at) {
  for (const std::string_view separator : kSeparators) {
    if (text.substr(0, at).ends_with(separator)) return separator.size();
  }
  return 0;
}

bool MayBeFirstGroup(std::string_view text) {
  return !text.empty() && text.size() <= 3 && text.front() != '0' &&
         std::all_of(text.begin(), text.end(), IsDigit);
}
bool MayBeLaterGroup(std::string_view text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  return end == 3;
}

// The number whose thousands are set apart, which is the whole of `text`.
std::optional<double> GroupedNumber(std::string_view text, Decimals decimals) {
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string_view separator = [&] {
    const std::size_t at = std::min(text.find_first_not_of("0123456789"), text.size());
    return text.substr(at, SeparatorLength(text.substr(at)));
  }();
  std::string digits;
  std::string_view rest = text.substr(0, point);
  int separators = 0;
  for (;; ++separators) {
    const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const std::string_view group = rest.substr(0, end);
    if (separators == 0 ? !MayBeFirstGroup(group) : group.size() != 3) return std::nullopt;
    digits += group;
    rest = rest.substr(end);
    if (rest.empty()) break;
    if (separator.empty() || !rest.starts_with(separator)) return std::nullopt;
    rest.remove_prefix(separator.size());
  }
  // One comma alone may be that of a fraction.
  if (separator == "," && separators == 1 && point == text.size() && decimals != Decimals::kNone) {
    return std::nullopt;
  }
  return NumberOf(digits + std::string(text.substr(point)));
}

// One of the forms of TakeRank, as the rank and what is left.
std::optional<std::pair<std::string, std::string_view>> OneRank(std::string_view text) {
  constexpr std::size_t kFurthest = 100;  // that a host or a time may reach before the rank
  constexpr std::size_t kMostDigits = 7;
  const auto found =
      [&](std::size_t begin, std::size_t end,
          std::size_t rest) -> std::optional<std::pair<std::string, std::string_view>> {
    if (begin == end || end - begin > kMostDigits) return std::nullopt;
    return std::pair(std::string(text.substr(begin, end - begin)), text.substr(rest));
  };
  const std::size_t tag = text.substr(0, kFurthest).find("]<std");
  const std::size_t colon = tag == std::string_view::npos ? tag : text.find(">:", tag);
  if (colon != std::string_view::npos && colon < tag + 10) {
    const std::size_t begin = DigitsBefore(text, tag);
    if (begin > 0 && text[begin - 1] == ',') return found(begin, tag, colon + 2);
  }
  for (const std::string_view opening : {"[rank", "[default", "["}) {
    if (!text.starts_with(opening)) continue;
    const std::size_t close = text.find(']', opening.size());
    if (close == std::string_view::npos || DigitsBefore(text, close) != opening.size()) continue;
    const std::string_view behind = text.substr(close + 1, 1);
    if (behind == ":") return found(opening.size(), close, close + 2);
    if (opening == "[" && behind == " ") return found(opening.size(), close, close + 1);
  }
  const std::size_t end = std::min(text.find(": "), text.size());
  if (end < text.size() && DigitsBefore(text, end) == 0) return found(0, end, end + 2);
  return std::nullopt;
}

}  // namespace

void LogLineCutter::Add(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    const std::size_t room = kLongestLogLine - std::min(kLongestLogLine, line_.size());
    line_.append(bytes.substr(0, std::min(end, room)));
    if (end == bytes.size()) return;
    Finish();
    if (bytes[end] == '\n' && number_ < std::numeric_limits<int>::max()) ++number_;
    bytes.remove_prefix(end + 1);
  }
}

void LogLineCutter::Finish() {
  Undress(&line_);
  if (line_.find_first_not_of(" \t") != std::string::npos) take_({line_, number_});
  line_.clear();
}

void LogLineCutter::BeginAnew() {
  Finish();
  number_ = 1;
}

void ForEachLogLine(const std::string& path, const std::function<void(const LogLine&)>& take) {
  std::ifstream in = OpenFile(path);
  LogLineCutter lines(take);
  std::vector<char> buffer(1U << 18U);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0) {
    lines.Add({buffer.data(), static_cast<std::size_t>(in.gcount())});
  }
  lines.Finish();
}

void ForEachLogLineOf(std::string_view text, const std::function<void(const LogLine&)>& take) {
  LogLineCutter lines(take);
  lines.Add(text);
  lines.Finish();
}

void UnknownLines::Add(const LogLine& line) {
  constexpr std::size_t kNamed = 3;
  constexpr std::size_t kShown = 80;
  if (++count > static_cast<std::int64_t>(kNamed)) return;
  std::string text = Shortened(Trim(line.text), kShown);
  for (char& c : text) {
    if (IsControl(c)) c = ' ';
  }
  if (!IsUtf8(text)) {
    for (char& c : text) {
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
    }
  }
  first.push_back({line.number, text});
}

std::string TakeRank(std::string_view* text) {
  constexpr int kMostLaunchers = 3;
  std::string ranks;
  for (int i = 0; i < kMostLaunchers; ++i) {
    std::string_view from = *text;
    while (!from.empty() && IsBlank(from.front())) from.remove_prefix(1);
    const auto one = OneRank(from);
    if (!one) break;
    ranks += (ranks.empty() ? "" : ".") + one->first;
    *text = one->second;
  }
  return ranks;
}

std::size_t DigitsBefore(std::string_view text, std::size_t at) {
  while (at > 0 && IsDigit(text[at - 1])) --at;
  return at;
}

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(" \t", at)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(" \t", at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<double> NumberOf(std::string_view word) {
  if (word.empty() || IsBlank(word.front())) return std::nullopt;
  std::size_t end = 0;
  std::optional<double> number = NumberFrom(word, 0, &end);
  if (end != word.size()) number.reset();
  return number;
}

std::optional<double> NumberFrom(std::string_view text, std::size_t at, std::size_t* end) {
  while (at < text.size() && IsBlank(text[at])) ++at;
  double value = 0;
  const char* const last = text.data() + text.size();
  const auto [stopped, error] =
      std::from_chars(text.data() + std::min(at, text.size()), last, value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  *end = static_cast<std::size_t>(stopped - text.data());
  return value;
}

std::optional<double> PrintedNumberFrom(std::string_view text, std::size_t at, std::size_t* end) {
  while (at < text.size() && IsBlank(text[at])) ++at;
  const std::optional<double> plain = NumberFrom(text, at, end);
  if (!plain) return plain;
  const std::string_view rest = text.substr(*end);
  const std::size_t separator = SeparatorLength(rest);
  if (separator > 0 && separator < rest.size() && IsDigit(rest[separator])) {
    std::size_t stop = *end;
    while (stop < text.size()) {
      const std::size_t length = SeparatorLength(text.substr(stop));
      if (IsDigit(text[stop]) || text[stop] == '.') {
        ++stop;
      } else if (length > 0 && stop + length < text.size() && IsDigit(text[stop + length])) {
        stop += length;
      } else {
        break;
      }
    }
    // A point that ends a sentence.
    if (text[stop - 1] == '.') --stop;
    *end = stop;
    return GroupedNumber(text.substr(at, stop - at), Decimals::kMayBe);
  }
  // A blank that may be a separator.
  if (*end + 1 < text.size() && text[*end] == ' ' && MayBeFirstGroup(text.substr(at, *end - at)) &&
      MayBeLaterGroup(text.substr(*end + 1))) {
    return std::nullopt;
  }
  return plain;
}

std::optional<double> PrintedNumberUpTo(std::string_view text, std::size_t at, bool blanks,
                                        Decimals decimals, std::size_t* begin) {
  while (blanks && at > 0 && IsBlank(text[at - 1])) --at;
  std::size_t from = at;
  bool grouped = false;
  while (from > 0) {
    const std::size_t length = SeparatorLengthBefore(text, from);
    if (IsDigit(text[from - 1]) || (decimals == Decimals::kMayBe && text[from - 1] == '.')) {
      --from;
    } else if (from < at && IsDigit(text[from]) && length > 0 && from > length &&
               IsDigit(text[from - length - 1])) {
      from -= length;
      grouped = true;
    } else {
      break;
    }
  }
  if (begin != nullptr) *begin = from;
  const std::string_view number = text.substr(from, at - from);
  // A word that ends in digits is no number.
  if (from > 0 && (IsLetter(text[from - 1]) || text[from - 1] == '_' || text[from - 1] == '-')) {
    return std::nullopt;
  }
  if (grouped) return GroupedNumber(number, decimals);
  // A blank that may be a separator, of a number and not of a time or a date.
  if (decimals == Decimals::kMayBe && from > 1 && text[from - 1] == ' ' &&
      MayBeLaterGroup(number)) {
    const std::size_t group = DigitsBefore(text, from - 1);
    const bool of_a_clock =
        group > 0 && std::string_view(":-/.").find(text[group - 1]) != std::string_view::npos;
    if (!of_a_clock && MayBeFirstGroup(text.substr(group, from - 1 - group))) return std::nullopt;
  }
  return NumberOf(number);
}

}  // namespace stepcast
