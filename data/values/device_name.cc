#include "data/values/device_name.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <iterator>

#include "data/values/names.h"
#include "data/values/suggest.h"

namespace stepcast {
namespace {

// "a100", "sxm4" and "80gb" of "NVIDIA A100-SXM4-80GB": the words of a name, without its maker's.
std::vector<std::string> DeviceWords(const std::string& name) {
  constexpr const char* kMakers[] = {"nvidia", "amd", "tesla", "geforce", "instinct"};
  std::vector<std::string> words;
  std::string word;
  for (const char c : name + ' ') {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter)) {
      word += static_cast<char>(std::tolower(letter));
    } else if (!word.empty()) {
      if (std::find(std::begin(kMakers), std::end(kMakers), word) == std::end(kMakers)) {
        words.push_back(word);
      }
      word.clear();
    }
  }
  return words;
}

// Whether the words of a device are all among those that were said, where 80 may be of GB.
bool AreSaid(const std::vector<std::string>& words, const std::vector<std::string>& said) {
  return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::any_of(said.begin(), said.end(),
                       [&](const std::string& one) { return word == one || word == one + "gb"; });
  });
}

// The device whose words are all among those of `name`, the most of them: a letter that is wrong
// makes an H100 of 80 GB no A100 of 80 GB. Where only the size of its memory was said besides, "one
// or another" of that size. Empty where none is.
std::string NamedWithin(const std::string& name, const std::vector<Device>& known) {
  const std::vector<std::string> said = DeviceWords(name);
  std::string within;
  std::vector<std::string> its;
  for (const Device& device : known) {
    const std::vector<std::string> words = DeviceWords(device.name);
    if (words.size() <= its.size() || !AreSaid(words, said)) continue;
    within = device.name;
    its = words;
  }
  if (its.empty() || its.size() < said.size() || !its.back().ends_with("gb")) return within;
  for (const Device& device : known) {
    std::vector<std::string> words = DeviceWords(device.name);
    if (words.size() != its.size() + 1) continue;
    words.pop_back();
    if (words == its) within += " or " + device.name;
  }
  return within;
}

}  // namespace

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
  const std::string within = NamedWithin(device, known);
  return {place, device,
          "has no data sheet" + (within.empty() ? DidYouMean(device, names) : DidYouMean(within)),
          JoinNames(names) +
              " (stepcast machines lists them); or a device that a cluster file describes (device: "
              "{name: ...}), or that runs were measured on (stepcast calibrate)"};
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
