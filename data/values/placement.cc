#include "data/values/placement.h"

#include <cstddef>
#include <string>
#include <unordered_set>
#include <utility>

#include "data/values/names.h"
#include "data/values/size_limits.h"
#include "data/values/text_as_number.h"

namespace stepcast {
namespace {

// Names of hosts, each once; errors quote `text`. What it refers to outlives it.
class HostNames {
 public:
  HostNames(std::string_view text, const InputPlace& place) : text_(text), place_(place) {}

  void Add(std::string_view named) {
    const std::string_view name = Trim(named);
    if (name.empty()) {
      throw InputError(place_, std::string(text_), "has an empty host name",
                       "host names joined by +, like tupi1+tupi2");
    }
    if (!seen_.insert(name).second) {
      throw InputError(place_, std::string(text_), "names a host twice", "each host once");
    }
    names_.push_back(CheckedName(name, place_));
    if (names_.size() > static_cast<std::size_t>(kMostNodes)) {
      throw InputError(place_, std::string(text_), "names too many hosts",
                       "at most " + std::to_string(kMostNodes));
    }
  }
  std::vector<std::string> Take() { return std::move(names_); }

 private:
  std::string_view text_;
  const InputPlace& place_;
  std::unordered_set<std::string_view> seen_;
  std::vector<std::string> names_;
};

}  // namespace

Placement ParsePlacement(std::string_view text, const InputPlace& place) {
  const std::string allowed = "devices used on each node joined by -, like 4-4-2";
  Placement placement;
  std::string_view rest = Trim(text);
  if (rest.empty()) throw InputError(place, "", "is empty", allowed);
  while (true) {
    const std::size_t dash = rest.find('-');
    const std::string_view part = rest.substr(0, dash);
    const auto devices = TextAsNumber<int>(part);
    if (!devices || *devices < 1 || *devices > kMostDevicesPerNode) {
      throw InputError(place, std::string(text), "is not a placement", allowed);
    }
    placement.push_back(*devices);
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
  HostNames hosts(text, place);
  std::string_view rest = Trim(text);
  while (true) {
    const std::size_t plus = rest.find('+');
    hosts.Add(rest.substr(0, plus));
    if (plus == std::string_view::npos) return hosts.Take();
    rest.remove_prefix(plus + 1);
  }
}

std::vector<std::string> CheckedHosts(const std::vector<std::string>& names,
                                      const InputPlace& place) {
  const std::string text = JoinHosts(names);
  HostNames hosts(text, place);
  for (const std::string& name : names) {
    if (name.find('+') != std::string::npos) {
      throw InputError(place, name, "is not the name of one host", "names without +");
    }
    hosts.Add(name);
  }
  return hosts.Take();
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
