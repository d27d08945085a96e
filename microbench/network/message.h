// What hosts of a probe tell each other: a line with a verb and values by their keys. A line comes
// from whoever reached the port: whatever is wrong with it is a NetworkError.
#ifndef STEPCAST_MICROBENCH_NETWORK_MESSAGE_H_
#define STEPCAST_MICROBENCH_NETWORK_MESSAGE_H_

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>

namespace stepcast::network {

class Message {
 public:
  Message() = default;
  explicit Message(std::string verb) : verb_(std::move(verb)) {}
  static Message Parse(std::string_view line);

  const std::string& verb() const { return verb_; }
  const std::map<std::string, std::string>& fields() const { return fields_; }

  Message& Set(const std::string& key, const std::string& value) {
    fields_[key] = value;
    return *this;
  }
  Message& Set(const std::string& key, double value) {
    return Set(key, fmt::format("{:.17g}", value));
  }
  Message& Set(const std::string& key, int value) { return Set(key, fmt::format("{}", value)); }

  // A value that must be there, within a range.
  const std::string& Text(const std::string& key) const;
  double Number(const std::string& key, double low, double high) const;
  int Integer(const std::string& key, int low, int high) const;

  std::string Line() const;

 private:
  std::string verb_;
  std::map<std::string, std::string> fields_;
};

}  // namespace stepcast::network

#endif  // STEPCAST_MICROBENCH_NETWORK_MESSAGE_H_
