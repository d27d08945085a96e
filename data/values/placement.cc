#include "data/values/placement.h"

#include <charconv>
#include <cstddef>
#include <string>
#include <system_error>
#include <unordered_set>

#include "data/values/names.h"
#include "data/values/size_limits.h"

namespace stepcast {

Placement ParsePlacement(std::string_view text, const InputPlace& place) {
  const std::string allowed = "devices used on each node joined by -, like 4-4-2";
  Placement placement;
  std::string_view rest = Trim(text);
  if (rest.empty()) throw InputError(place, "", "is empty", allowed);
  while (true) {
    const std::size_t dash = rest.find('-');
    const std::string_view part = rest.substr(0, dash);
    int devices = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), devices);
    if (error != std::errc() || end != part.data() + part.size() || devices < 1 ||
        devices > kMostDevicesPerNode) {
      throw InputError(place, std::string(text), "is not a placement", allowed);
    }
    placement.push_back(devices);
    if (placement.size() > static_cast<std::size_t>(kMostNodes)) {
      throw InputError(place, std::string(text), "names too many nodes",
                       "at most " + std::to_string(kMostNodes));
    }
    if (dash == std::string_view::npos) return placement;
    rest.remove_prefix(dash + 1);
  }
}

std::string FormatPlacement(const Placement& placement) {
  std::string text;
  for (std::size_t i = 0; i < placement.size(); ++i) {
    if (i > 0) text += '-';
    text += std::to_string(placement[i]);
  }
  return text;
}

std::vector<std::string> ParseHosts(std::string_view text, const InputPlace& place) {
  std::vector<std::string> hosts;
  std::unordered_set<std::string_view> names;
  std::string_view rest = Trim(text);
  while (true) {
    const std::size_t plus = rest.find('+');
    const std::string_view name = Trim(rest.substr(0, plus));
    if (name.empty()) {
      throw InputError(place, std::string(text), "has an empty host name",
                       "host names joined by +, like tupi1+tupi2");
    }
    if (!names.insert(name).second) {
      throw InputError(place, std::string(text), "names a host twice", "each host once");
    }
    hosts.push_back(CheckedName(name, place));
    if (hosts.size() > static_cast<std::size_t>(kMostNodes)) {
      throw InputError(place, std::string(text), "names too many hosts",
                       "at most " + std::to_string(kMostNodes));
    }
    if (plus == std::string_view::npos) return hosts;
    rest.remove_prefix(plus + 1);
  }
}

std::string JoinHosts(const std::vector<std::string>& hosts) {
  std::string text;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (i > 0) text += '+';
    text += hosts[i];
  }
  return text;
}

}  // namespace stepcast
