#include "data/values/device_name.h"

#include <algorithm>
#include <cctype>

#include "data/values/names.h"
#include "data/values/suggest.h"

namespace stepcast {

std::string CanonicalName(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

bool IsNamed(const Device& device, const std::string& name) {
  const std::string wanted = CanonicalName(name);
  const auto is = [&](const std::string& known) { return CanonicalName(known) == wanted; };
  return !wanted.empty() && (is(device.name) || is(device.title) ||
                             std::any_of(device.aliases.begin(), device.aliases.end(), is));
}

std::optional<Device> FindDevice(const std::vector<Device>& devices, const std::string& name) {
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](const Device& device) { return IsNamed(device, name); });
  return found == devices.end() ? std::nullopt : std::optional(*found);
}

InputError NoDataSheet(const std::string& device, const std::vector<Device>& known,
                       const InputPlace& place) {
  std::vector<std::string> names;  // by which it may have been meant
  for (const Device& one : known) names.push_back(one.name);
  return {
      place, device, "has no data sheet" + DidYouMean(device, names),
      JoinNames(names) +
          "; or a device that a cluster file describes (device: {name: ...}), or that runs were "
          "measured on (stepcast calibrate)"};
}

void RequireProfileOf(const std::string& measured, const std::string& device,
                      const std::optional<Device>& facts, const InputPlace& place) {
  if (CanonicalName(measured) == CanonicalName(device) || (facts && IsNamed(*facts, measured))) {
    return;
  }
  throw InputError(
      place, measured, "is the device that was measured: its times are not those of " + device,
      "a profile of " + device +
          ", or a cluster file in which aliases of the device say that it is the same");
}

}  // namespace stepcast
