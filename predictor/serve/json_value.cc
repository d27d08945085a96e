#include "predictor/serve/json_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/record/input_error.h"

namespace stepcast::serve {
namespace {

using Kind = JsonValue::Kind;

// Receives the parser's events; false ends the parse.
class Builder {
 public:
  explicit Builder(std::size_t most_numbers) : most_numbers_(most_numbers) {}

  JsonValue Take() { return std::move(root_); }
  const std::string& error() const { return error_; }

  bool null() {
    if (in_column_) return Append(std::numeric_limits<double>::quiet_NaN());
    return Place() != nullptr;
  }
  bool boolean(bool value) {
    JsonValue* place = PlaceOutsideColumn(Kind::kBoolean);
    if (place == nullptr) return false;
    place->boolean = value;
    return true;
  }
  bool number_integer(std::int64_t value) { return Number(value); }
  bool number_unsigned(std::uint64_t value) { return Number(value); }
  bool number_float(double value, const std::string& digits) {
    if (in_column_) return Append(value);
    return Scalar(Kind::kNumber, digits);
  }
  bool string(const std::string& value) { return Scalar(Kind::kString, value); }
  bool binary(const nlohmann::json::binary_t& /*value*/) { return Refuse("binary is not JSON"); }

  bool start_object(std::size_t /*size*/) {
    JsonValue* place = PlaceOutsideColumn(Kind::kObject);
    if (place == nullptr) return false;
    if (open_.size() >= kMostJsonDepth) return Refuse("nests too deeply");
    open_.push_back(place);
    return true;
  }
  bool key(const std::string& name) {
    std::vector<JsonMember>& members = open_.back()->members;
    if (members.size() == kMostJsonMembers) {
      return Refuse(fmt::format("an object has more than {} keys", kMostJsonMembers));
    }
    if (std::any_of(members.begin(), members.end(), [&](const auto& m) { return m.key == name; })) {
      return Refuse(fmt::format("key \"{}\" is there twice", Shortened(name)));
    }
    members.push_back({name, JsonValue()});
    return true;
  }
  bool end_object() {
    open_.pop_back();
    return true;
  }
  bool start_array(std::size_t /*size*/) {
    if (in_column_) return RefuseInColumn();
    column_ = Place();
    column_->kind = Kind::kColumn;
    in_column_ = true;
    return true;
  }
  bool end_array() {
    in_column_ = false;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ...", or
    // "[json.exception.out_of_range.406] number overflow parsing '1e400'"
    std::string_view what = e.what();
    const std::size_t bracket = what.find("] ");
    if (bracket != std::string_view::npos) what.remove_prefix(bracket + 2);
    const std::size_t colon = what.find(": ");
    if (colon != std::string_view::npos) what.remove_prefix(colon + 2);
    constexpr std::size_t kLongest = 200;
    return Refuse(fmt::format("byte {}: {}", position, what.substr(0, kLongest)));
  }

 private:
  bool Refuse(std::string why) {
    error_ = std::move(why);
    return false;
  }
  // Of what the array holds that is open, under the key that was read last.
  bool RefuseColumn(std::string why) {
    if (open_.empty()) return Refuse(std::move(why));
    return Refuse(fmt::format("key \"{}\": {}", Shortened(open_.back()->members.back().key), why));
  }
  bool RefuseInColumn() {
    return RefuseColumn(most_numbers_ == 0 ? "is an array; allowed: a single value"
                                           : "is an array of something else than numbers");
  }
  // Where the next value goes: under the key that was read last, or at the top.
  JsonValue* Place() { return open_.empty() ? &root_ : &open_.back()->members.back().value; }
  JsonValue* PlaceOutsideColumn(Kind kind) {
    if (in_column_) {
      RefuseInColumn();
      return nullptr;
    }
    JsonValue* place = Place();
    place->kind = kind;
    return place;
  }
  bool Scalar(Kind kind, const std::string& text) {
    JsonValue* place = PlaceOutsideColumn(kind);
    if (place == nullptr) return false;
    place->text = text;
    return true;
  }
  template <class T>
  bool Number(T value) {
    if (in_column_) return Append(static_cast<double>(value));
    return Scalar(Kind::kNumber, std::to_string(value));
  }
  bool Append(double value) {
    if (column_->column.size() == most_numbers_) {
      if (most_numbers_ == 0) return RefuseInColumn();
      return RefuseColumn(fmt::format("an array has more than {} numbers", most_numbers_));
    }
    column_->column.push_back(value);
    return true;
  }

  std::size_t most_numbers_;
  JsonValue root_;
  // Objects that are not closed yet. Only the last one grows, so that the others stay in place.
  std::vector<JsonValue*> open_;
  JsonValue* column_ = nullptr;
  bool in_column_ = false;
  std::string error_;
};

}  // namespace

JsonValue ParseJson(std::string_view text, std::size_t most_numbers_of_a_column) {
  Builder builder(most_numbers_of_a_column);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    throw JsonError(builder.error());
  }
  return builder.Take();
}

}  // namespace stepcast::serve
