#include "microbench/network/message.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "data/values/text_as_number.h"
#include "microbench/network/socket.h"

namespace stepcast::network {
namespace {

// What stands for itself in a line; all else is %XX.
bool IsPlain(char c) { return c > ' ' && c < '\x7f' && c != '=' && c != '%'; }

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (IsPlain(c)) {
      out += c;
    } else {
      out += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

[[noreturn]] void NoMessage() { throw NetworkError("sent what is no message"); }

std::string Unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if (!IsPlain(text[i])) NoMessage();
      out += text[i];
      continue;
    }
    unsigned char byte = 0;
    const char* const from = text.data() + i + 1;
    if (i + 2 >= text.size()) NoMessage();
    if (std::from_chars(from, from + 2, byte, 16).ptr != from + 2) NoMessage();
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

}  // namespace

Message Message::Parse(std::string_view line) {
  Message message;
  for (bool first = true; first || !line.empty(); first = false) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    if (first) {
      message.verb_ = Unescaped(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) NoMessage();
    message.fields_[Unescaped(word.substr(0, equals))] = Unescaped(word.substr(equals + 1));
  }
  return message;
}

const std::string& Message::Text(const std::string& key) const {
  const auto found = fields_.find(key);
  if (found == fields_.end()) throw NetworkError("sent no " + key);
  return found->second;
}

double Message::Number(const std::string& key, double low, double high) const {
  const std::string& text = Text(key);
  const auto value = TextAsNumber<double>(text);
  // A number that is none is in no range.
  if (!value || !(*value >= low && *value <= high)) {
    throw NetworkError(fmt::format("sent {} '{}', which is not from {} to {}", key,
                                   Escaped(text.substr(0, 40)), low, high));
  }
  return *value;
}

int Message::Integer(const std::string& key, int low, int high) const {
  const double value = Number(key, low, high);
  if (value != std::floor(value)) throw NetworkError("sent a broken " + key);
  return static_cast<int>(value);
}

std::string Message::Line() const {
  std::string line = Escaped(verb_);
  for (const auto& [key, value] : fields_) line += " " + Escaped(key) + "=" + Escaped(value);
  return line;
}

}  // namespace stepcast::network
