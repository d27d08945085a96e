#include "data/values/names.h"

#include <algorithm>

namespace stepcast {
namespace {

int ParseName(std::string_view text, const InputPlace& place, std::span<const char* const> names,
              const char* problem) {
  if (const std::optional<int> found = FindName(Trim(text), names)) return *found;
  throw InputError(place, std::string(text), problem, JoinNames(names));
}

}  // namespace

Strategy ParseStrategy(std::string_view text, const InputPlace& place) {
  return static_cast<Strategy>(ParseName(text, place, kStrategyNames, "is not a strategy"));
}

CongestionControl ParseCongestionControl(std::string_view text, const InputPlace& place) {
  return static_cast<CongestionControl>(
      ParseName(text, place, kCongestionControlNames, "is not a known congestion control"));
}

Sharding ParseSharding(std::string_view text, const InputPlace& place) {
  return static_cast<Sharding>(ParseName(text, place, kShardingNames, "is not a way to shard"));
}

Overlap ParseOverlap(std::string_view text, const InputPlace& place) {
  return static_cast<Overlap>(ParseName(text, place, kOverlapNames, "is not a way to overlap"));
}

std::optional<int> FindName(std::string_view name, std::span<const char* const> names) {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) return std::nullopt;
  return static_cast<int>(it - names.begin());
}

std::string JoinNames(std::span<const char* const> names) {
  std::string joined;
  for (const char* name : names) joined += (joined.empty() ? "" : ", ") + std::string(name);
  return joined;
}

std::string_view Trim(std::string_view text) {
  constexpr const char* kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace stepcast
