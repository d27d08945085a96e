#include "data/io/strict_json.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace stepcast {

nlohmann::json ParseStrictJson(std::string_view text, int deepest, const InputPlace& place,
                               const std::string& allowed) {
  using nlohmann::json;
  const auto fail = [&](const char* problem) {
    throw InputError(place, Shortened(text, 40), problem, allowed);
  };
  std::vector<std::set<std::string>> keys;  // of the open object at each depth
  json parsed;
  try {
    parsed = json::parse(text, [&](int depth, json::parse_event_t event, const json& value) {
      const auto at = static_cast<std::size_t>(depth);
      if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
        if (depth >= deepest) fail("is nested too deeply");
        keys.resize(at + 2);
        keys[at + 1].clear();
      }
      if (event == json::parse_event_t::key && !keys[at].insert(value.get<std::string>()).second) {
        const std::string prefix = place.key.empty() ? "" : place.key + ".";
        throw InputError({place.file, place.line, prefix + value.get<std::string>()}, "",
                         "is given twice", "each key once");
      }
      return true;
    });
  } catch (const json::exception&) {
    fail("is not JSON");
  }
  return parsed;
}

}  // namespace stepcast
