#include "data/logs/json_leaves.h"

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "data/record/input_error.h"

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
    levels_.back().key.assign(text, size);
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
    std::string key;
    std::size_t next = 0;  // of an array
  };

  bool Open(bool is_array) {
    if (levels_.size() >= kDeepest) throw InputError(place(), "", "is nested too deeply", allowed_);
    levels_.push_back({is_array, "", 0});
    return true;
  }
  bool Close() {
    levels_.pop_back();
    return Other();
  }
  bool Other() {
    if (!levels_.empty()) ++levels_.back().next;
    return true;
  }
  bool Number(double value) {
    Give(value, "");
    return true;
  }
  void Give(std::optional<double> number, std::string text) {
    JsonLeaf leaf{"", number, std::move(text), place().line};
    for (const Level& level : levels_) {
      if (!leaf.path.empty()) leaf.path += '.';
      leaf.path += level.is_array ? std::to_string(level.next) : level.key;
    }
    Other();
    take_(leaf);
  }

  const rapidjson::StringStream& stream_;
  const std::string& text_;
  const std::string& path_;
  const std::string& allowed_;
  const std::function<void(const JsonLeaf&)>& take_;
  std::vector<Level> levels_;
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
    throw InputError(
        leaves.place(), "",
        std::string("is not JSON: ") + rapidjson::GetParseError_En(reader.GetParseErrorCode()),
        allowed);
  }
}

}  // namespace stepcast
