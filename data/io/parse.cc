#include "data/io/parse.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <system_error>

namespace stepcast {
namespace {

struct UnitName {
  const char* name;
  double si;
};

constexpr UnitName kRateUnits[] = {
    {"bit/s", 1.0 / 8},     {"kbit/s", 1e3 / 8}, {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8},
    {"Tbit/s", 1e12 / 8},   {"B/s", 1.0},        {"kB/s", 1e3},       {"MB/s", 1e6},
    {"GB/s", 1e9},          {"TB/s", 1e12},      {"KiB/s", 1024.0},   {"MiB/s", 1048576.0},
    {"GiB/s", 1073741824.0}};
constexpr UnitName kTimeUnits[] = {{"s", 1.0},    {"ms", 1e-3},  {"us", 1e-6},  {"ns", 1e-9},
                                   {"min", 60.0}, {"h", 3600.0}, {"d", 86400.0}};
constexpr UnitName kSizeUnits[] = {
    {"B", 1.0},         {"kB", 1e3},           {"MB", 1e6},
    {"GB", 1e9},        {"TB", 1e12},          {"KiB", 1024.0},
    {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
constexpr UnitName kWorkRateUnits[] = {
    {"FLOP/s", 1.0}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};
constexpr UnitName kPowerUnits[] = {{"W", 1.0}, {"kW", 1e3}};

// Beyond these no machine is meant; a larger figure is a slip of the unit.
constexpr double kLargestRate = 1e15;
constexpr double kLongestTime = 1e9;
constexpr double kLargestSize = 1e18;
constexpr double kLargestWorkRate = 1e21;
constexpr double kLargestPower = 1e7;

// The leading number of `text`; `rest` is what follows it. False when there is none. A number
// beyond the range of double is an infinite one.
bool TakeNumber(std::string_view text, double* value, std::string_view* rest) {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error == std::errc::result_out_of_range) {
    *value = std::numeric_limits<double>::infinity();
  } else if (error != std::errc()) {
    return false;
  }
  *rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return true;
}

template <std::size_t N>
double ParseWithUnit(std::string_view raw, const InputPlace& place, const UnitName (&units)[N],
                     double low, bool low_allowed, double high, const char* example) {
  const std::string_view text = Trim(raw);
  std::string allowed = "a number with one of the units";
  for (const UnitName& unit : units) allowed += std::string(" ") + unit.name;
  allowed += std::string(", like \"") + example + "\"";
  const auto fail = [&](const std::string& problem, const std::string& range) {
    throw InputError(place, std::string(raw), problem, range);
  };
  if (text.empty()) fail("is empty", allowed);
  double number = 0;
  std::string_view rest;
  if (!TakeNumber(text, &number, &rest)) fail("is not a number with a unit", allowed);
  if (!std::isfinite(number)) fail("is not a finite number", allowed);
  const std::string_view name = Trim(rest);
  if (name.empty()) fail("has no unit", allowed);
  for (const UnitName& unit : units) {
    if (name != unit.name) continue;
    const double si = number * unit.si;
    if (si < low || (si == low && !low_allowed) || si > high) {
      std::ostringstream range;
      range << (low_allowed ? "at least " : "more than ") << low << " and at most "
            << high / unit.si << " " << unit.name;
      fail("is out of range", range.str());
    }
    return si;
  }
  fail("has an unknown unit", allowed);
  return 0;
}

int ParseName(std::string_view text, const InputPlace& place, std::span<const char* const> names,
              const char* problem) {
  if (const std::optional<int> found = FindName(Trim(text), names)) return *found;
  throw InputError(place, std::string(text), problem, JoinNames(names));
}

}  // namespace

DataRate<> ParseDataRate(std::string_view text, const InputPlace& place) {
  return BytesPerSecond(
      ParseWithUnit(text, place, kRateUnits, 0, false, kLargestRate, "10 Gbit/s"));
}

Duration<> ParseDuration(std::string_view text, const InputPlace& place) {
  return Seconds(ParseWithUnit(text, place, kTimeUnits, 0, true, kLongestTime, "2 ms"));
}

DataSize<> ParseDataSize(std::string_view text, const InputPlace& place) {
  return Bytes(ParseWithUnit(text, place, kSizeUnits, 0, false, kLargestSize, "25 MiB"));
}

WorkRate<> ParseWorkRate(std::string_view text, const InputPlace& place) {
  return WorkRate<>::FromSi(
      ParseWithUnit(text, place, kWorkRateUnits, 0, false, kLargestWorkRate, "8.1 TFLOP/s"));
}

double ParseWatts(std::string_view text, const InputPlace& place) {
  return ParseWithUnit(text, place, kPowerUnits, 0, false, kLargestPower, "70 W");
}

double ParseNumber(std::string_view text, const InputPlace& place, double low, double high) {
  const std::string_view trimmed = Trim(text);
  std::ostringstream allowed;
  allowed << "a number from " << low << " to " << high;
  double number = 0;
  std::string_view rest;
  if (trimmed.empty()) throw InputError(place, "", "is empty", allowed.str());
  if (!TakeNumber(trimmed, &number, &rest) || !Trim(rest).empty()) {
    throw InputError(place, std::string(text), "is not a number", allowed.str());
  }
  if (!std::isfinite(number)) {
    throw InputError(place, std::string(text), "is not a finite number", allowed.str());
  }
  if (number < low || number > high) {
    throw InputError(place, std::string(text), "is out of range", allowed.str());
  }
  return number;
}

double ParseProbability(std::string_view text, const InputPlace& place) {
  const double p = ParseNumber(text, place, 0, 1);
  if (p == 1) {
    throw InputError(place, std::string(text), "would lose every packet", "at least 0 and below 1");
  }
  return p;
}

long long ParseLongInteger(std::string_view text, const InputPlace& place, long long low,
                           long long high) {
  const std::string_view trimmed = Trim(text);
  const std::string allowed =
      "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
  if (trimmed.empty()) throw InputError(place, "", "is empty", allowed);
  long long number = 0;
  const auto [end, error] =
      std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), number);
  if (error == std::errc::invalid_argument || end != trimmed.data() + trimmed.size()) {
    throw InputError(place, std::string(text), "is not a whole number", allowed);
  }
  if (error != std::errc() || number < low || number > high) {
    throw InputError(place, std::string(text), "is out of range", allowed);
  }
  return number;
}

int ParseInteger(std::string_view text, const InputPlace& place, int low, int high) {
  return static_cast<int>(ParseLongInteger(text, place, low, high));
}

Placement ParsePlacement(std::string_view text, const InputPlace& place) {
  constexpr int kMostDevices = 1024;
  constexpr std::size_t kMostNodes = 1'000'000;
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
        devices > kMostDevices) {
      throw InputError(place, std::string(text), "is not a placement", allowed);
    }
    placement.push_back(devices);
    if (placement.size() > kMostNodes) {
      throw InputError(place, std::string(text), "names too many nodes", "at most 1000000");
    }
    if (dash == std::string_view::npos) return placement;
    rest.remove_prefix(dash + 1);
  }
}

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

std::vector<std::string> ParseHosts(std::string_view text, const InputPlace& place) {
  std::vector<std::string> hosts;
  std::string_view rest = Trim(text);
  while (true) {
    const std::size_t plus = rest.find('+');
    const std::string_view name = Trim(rest.substr(0, plus));
    if (name.empty()) {
      throw InputError(place, std::string(text), "has an empty host name",
                       "host names joined by +, like tupi1+tupi2");
    }
    if (std::find(hosts.begin(), hosts.end(), name) != hosts.end()) {
      throw InputError(place, std::string(text), "names a host twice", "each host once");
    }
    hosts.emplace_back(name);
    if (plus == std::string_view::npos) return hosts;
    rest.remove_prefix(plus + 1);
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

std::string JoinHosts(const std::vector<std::string>& hosts) {
  std::string text;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (i > 0) text += '+';
    text += hosts[i];
  }
  return text;
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

bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int length = lead < 0x80         ? 1
                       : lead >> 5 == 0x6  ? 2
                       : lead >> 4 == 0xe  ? 3
                       : lead >> 3 == 0x1e ? 4
                                           : 0;
    if (length == 0 || i + static_cast<std::size_t>(length) > text.size()) return false;
    unsigned code = length == 1 ? lead : lead & (0x7fU >> length);
    for (int k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
      if (next >> 6 != 0x2) return false;
      code = code << 6 | (next & 0x3fU);
    }
    // Overlong forms, surrogates and what lies beyond Unicode are not text.
    constexpr unsigned kFirstOfLength[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kFirstOfLength[length] || (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) {
      return false;
    }
    i += static_cast<std::size_t>(length);
  }
  return true;
}

std::string ReadTextFile(const std::string& path, std::size_t most_bytes) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw InputError({path, 0, ""}, "", "is a folder, not a file");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw InputError({path, 0, ""}, "", std::string("cannot be read: ") + std::strerror(errno));
  }
  const auto fail_too_large = [&] {
    throw InputError({path, 0, ""}, "", "is too large",
                     "at most " + std::to_string(most_bytes >> 20) + " MiB");
  };
  // A pipe has no size: it is counted as it is read.
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > most_bytes) fail_too_large();
  std::string text;
  char buffer[1 << 16];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(in.gcount()));
    if (text.size() > most_bytes) fail_too_large();
  }
  if (text.compare(0, 3, "\xef\xbb\xbf") == 0) text.erase(0, 3);
  int line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    const std::string_view row(text.data() + begin, end - begin);
    if (!IsUtf8(row)) {
      throw InputError({path, line, ""}, "", "is not UTF-8 text", "a file saved as UTF-8");
    }
    if (row.find('\0') != std::string_view::npos) {
      throw InputError({path, line, ""}, "", "contains a NUL byte", "a text file");
    }
    begin = end + 1;
  }
  return text;
}

void WriteTextFile(const std::string& path, const std::string& text) {
  const auto fail = [&](const std::string& temporary) {
    const std::string reason = std::strerror(errno);
    std::error_code ignored;
    if (!temporary.empty()) std::filesystem::remove(temporary, ignored);
    throw InputError({path, 0, ""}, "", "cannot be written: " + reason);
  };
  // A device or a pipe (/dev/stdout) has no place for a file beside it.
  std::error_code error;
  const bool direct =
      std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error);
  const std::string target = direct ? path : path + ".partial";
  {
    std::ofstream out(target, std::ios::binary | std::ios::trunc);
    if (!out) fail("");
    out << text;
    out.flush();
    if (!out) fail(direct ? "" : target);
  }
  if (direct) return;
  std::filesystem::rename(target, path, error);
  if (error) {
    errno = error.value();
    fail(target);
  }
}

}  // namespace stepcast
