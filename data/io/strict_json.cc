#include "data/io/strict_json.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace stepcast {
namespace {

using nlohmann::json;

// Looks at how deeply values are nested and at the keys of each object, and keeps nothing else.
class StrictForm : public nlohmann::json_sax<json> {
 public:
  StrictForm(int deepest, const InputPlace& place)
      : deepest_(static_cast<std::size_t>(deepest)), place_(place) {}

  bool is_too_deep() const { return is_too_deep_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return Open(); }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    const std::string prefix = place_.key.empty() ? "" : place_.key + ".";
    throw InputError({place_.file, place_.line, prefix + name}, "", "is given twice",
                     "each key once");
  }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;
  }

 private:
  bool Open() {
    is_too_deep_ = keys_.size() >= deepest_;
    keys_.emplace_back();
    return !is_too_deep_;
  }
  bool Close() {
    keys_.pop_back();
    return true;
  }

  std::size_t deepest_;
  const InputPlace& place_;
  bool is_too_deep_ = false;
  std::vector<std::set<std::string>> keys_;  // of what is open, the outermost first
};

// In two passes: a callback of json::parse would look at all that an object has so far, at each
// object within it.
template <class Parsed>
Parsed ParseInForm(std::string_view text, int deepest, const InputPlace& place,
                   const std::string& allowed) {
  const auto fail = [&](const char* problem) {
    throw InputError(place, Shortened(text, 40), problem, allowed);
  };
  StrictForm form(deepest, place);
  Parsed parsed;
  if (!json::sax_parse(text, &form)) {
    fail(form.is_too_deep() ? "is nested too deeply" : "is not JSON");
  }
  try {
    parsed = Parsed::parse(text);
  } catch (const json::exception&) {
    fail("is not JSON");
  }
  return parsed;
}

}  // namespace

json ParseStrictJson(std::string_view text, int deepest, const InputPlace& place,
                     const std::string& allowed) {
  return ParseInForm<json>(text, deepest, place, allowed);
}

nlohmann::ordered_json ParseStrictJsonInOrder(std::string_view text, int deepest,
                                              const InputPlace& place, const std::string& allowed) {
  return ParseInForm<nlohmann::ordered_json>(text, deepest, place, allowed);
}

}  // namespace stepcast
