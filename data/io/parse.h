// Strict readers of single values: a number carries its unit, and a wrong one is an InputError that
// names the place, the value and what is allowed.
#ifndef STEPCAST_DATA_IO_PARSE_H_
#define STEPCAST_DATA_IO_PARSE_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/record/input_error.h"
#include "data/record/plan.h"
#include "data/units/quantity.h"

namespace stepcast {

// "10 Gbit/s", "0.9 GB/s": positive.
DataRate<> ParseDataRate(std::string_view text, const InputPlace& place);
// "2 ms", "200 us", "0 s": not negative.
Duration<> ParseDuration(std::string_view text, const InputPlace& place);
// "25 MiB", "16 GB": positive.
DataSize<> ParseDataSize(std::string_view text, const InputPlace& place);
// "82.6 TFLOP/s": positive.
WorkRate<> ParseWorkRate(std::string_view text, const InputPlace& place);
// "450 W": positive, returned in watts.
double ParseWatts(std::string_view text, const InputPlace& place);
// A plain number within [low, high].
double ParseNumber(std::string_view text, const InputPlace& place, double low, double high);
// A plain number in [0, 1).
double ParseProbability(std::string_view text, const InputPlace& place);
// A whole number within [low, high].
int ParseInteger(std::string_view text, const InputPlace& place, int low, int high);
long long ParseLongInteger(std::string_view text, const InputPlace& place, long long low,
                           long long high);
// "4-4-2": devices used on each node.
Placement ParsePlacement(std::string_view text, const InputPlace& place);
// "ring", "ps-sync", ...
Strategy ParseStrategy(std::string_view text, const InputPlace& place);
CongestionControl ParseCongestionControl(std::string_view text, const InputPlace& place);
Sharding ParseSharding(std::string_view text, const InputPlace& place);
Overlap ParseOverlap(std::string_view text, const InputPlace& place);
// "tupi1+tupi2".
std::vector<std::string> ParseHosts(std::string_view text, const InputPlace& place);

std::string FormatPlacement(const Placement& placement);
std::string JoinHosts(const std::vector<std::string>& hosts);

// The position of `name` among `names`, to the letter; empty where it is none of them.
std::optional<int> FindName(std::string_view name, std::span<const char* const> names);
// "a, b, c": what an error allows.
std::string JoinNames(std::span<const char* const> names);

// The text without white space at both ends.
std::string_view Trim(std::string_view text);

// Whether `text` is well-formed UTF-8.
bool IsUtf8(std::string_view text);

// The whole of a file, as UTF-8 text without its byte order mark. Throws InputError when it cannot
// be read, is larger than `most_bytes`, or is not UTF-8 (naming the line).
std::string ReadTextFile(const std::string& path, std::size_t most_bytes);

// Writes by way of a temporary file beside the target, so that a failed write leaves the old one.
void WriteTextFile(const std::string& path, const std::string& text);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_PARSE_H_
