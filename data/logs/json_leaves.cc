#include "data/logs/json_leaves.h"

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "data/record/input_error.h"
#include "data/values/size_limits.h"

namespace stepcast {
namespace {

constexpr std::size_t kDeepest = 64;

// Where the parser is: the keys and positions of the open objects and arrays.
class Leaves {
 public:
  Leaves(const rapidjson::StringStream& stream, const std::string& text, const std::string& path,
         const std::string& allowed, const std::function<void(const JsonLeaf&)>& take)
      : stream_(stream), text_(text), path_(path), allowed_(allowed), take_(take) {}

  bool Null() { return Other(); }
  bool Bool(bool /*value*/) { return Other(); }
  bool Int(int value) { return Number(value); }
  bool Uint(unsigned value) { return Number(value); }
  bool Int64(std::int64_t value) { return Number(static_cast<double>(value)); }
  bool Uint64(std::uint64_t value) { return Number(static_cast<double>(value)); }
  bool Double(double value) { return Number(value); }
  bool RawNumber(const char* /*text*/, rapidjson::SizeType /*size*/, bool /*copy*/) {
    return false;
  }
  bool String(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    Give({}, std::string(text, size));
    return true;
  }
  bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    if (size > kLongestName) {
      throw InputError(place(), Shortened({text, size}), "is too long for a key",
                       "at most " + std::to_string(kLongestName) + " bytes");
    }
    Step({text, size});
    return true;
  }
  bool StartObject() { return Open(false); }
  bool EndObject(rapidjson::SizeType /*count*/) { return Close(); }
  bool StartArray() { return Open(true); }
  bool EndArray(rapidjson::SizeType /*count*/) { return Close(); }

  InputPlace place() {
    const std::size_t at = std::min(stream_.Tell(), text_.size());
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    counted_ = at;
    return {path_, line_, ""};
  }

 private:
  struct Level {
    bool is_array = false;
    std::size_t path = 0;  // bytes of the path that lead to it
    std::size_t next = 0;  // of an array
  };

  // From the innermost level to one of its values.
  void Step(std::string_view name) {
    leaf_.path.resize(levels_.back().path);
    if (!leaf_.path.empty()) leaf_.path += '.';
    leaf_.path += name;
  }
  void StepOn() {
    if (!levels_.empty() && levels_.back().is_array) Step(std::to_string(levels_.back().next++));
  }
  bool Open(bool is_array) {
    if (levels_.size() >= kDeepest) throw InputError(place(), "", "is nested too deeply", allowed_);
    StepOn();
    levels_.push_back({is_array, leaf_.path.size(), 0});
    return true;
  }
  bool Close() {
    levels_.pop_back();
    return true;
  }
  bool Other() {
    StepOn();
    return true;
  }
  bool Number(double value) {
    Give(value, "");
    return true;
  }
  void Give(std::optional<double> number, std::string text) {
    StepOn();
    leaf_.number = number;
    leaf_.text = std::move(text);
    leaf_.line = place().line;
    take_(leaf_);
  }

  const rapidjson::StringStream& stream_;
  const std::string& text_;
  const std::string& path_;
  const std::string& allowed_;
  const std::function<void(const JsonLeaf&)>& take_;
  std::vector<Level> levels_;
  JsonLeaf leaf_;  // the path is that to where the parser is
  std::size_t counted_ = 0;
  int line_ = 1;
};

}  // namespace

void ForEachJsonLeaf(const std::string& text, const std::string& path, const std::string& allowed,
                     const std::function<void(const JsonLeaf&)>& take) {
  rapidjson::StringStream stream(text.c_str());
  Leaves leaves(stream, text, path, allowed, take);
  rapidjson::Reader reader;
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag |
                              rapidjson::kParseValidateEncodingFlag;
  if (!reader.Parse<kFlags>(stream, leaves)) {
    std::string why = rapidjson::GetParseError_En(reader.GetParseErrorCode());
    if (why.ends_with('.')) why.pop_back();  // the sentence of the error goes on behind it
    throw InputError(leaves.place(), "", "is not JSON: " + why, allowed);
  }
}

}  // namespace stepcast
