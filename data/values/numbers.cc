#include "data/values/numbers.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>

#include "data/values/names.h"
#include "data/values/suggest.h"

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
constexpr UnitName kSampleRateUnits[] = {{"samples/s", 1.0}};
constexpr UnitName kWorkRateUnits[] = {
    {"FLOP/s", 1.0}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};
constexpr UnitName kPowerUnits[] = {{"W", 1.0}, {"kW", 1e3}};
constexpr UnitName kProcessUnits[] = {{"nm", 1.0}};

// In SI units. Beyond these no machine is meant; another figure is a slip of the unit.
constexpr NumberRange kRates{kLeastRate, 1e15};
constexpr NumberRange kTraffic{kLeastRate, 1e15, true};
constexpr NumberRange kTimes{kLeastTime, 1e9, true};
constexpr NumberRange kSizes{1, 1e18};
constexpr NumberRange kSampleRates{1e-9, 1e15};
constexpr NumberRange kWorkRates{1, 1e21};
constexpr NumberRange kPowers{1e-3, 1e7};
constexpr NumberRange kProcesses{0.1, 1e4};  // nanometres

// Whether a number that no double holds is too small rather than too large.
bool IsTooSmall(std::string_view text) {
  long double wide = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), wide);
  if (error == std::errc()) return std::abs(wide) < 1;
  const std::size_t exponent = text.find_first_of("eE");
  return exponent < text.size() && text.substr(exponent + 1).starts_with('-');
}

// The leading number of `text`; `rest` is what follows it. False when there is none. A number
// beyond the range of double is an infinite one, one that is nearer to 0 than any double the
// nearest of them that is not 0.
bool TakeNumber(std::string_view text, double* value, std::string_view* rest) {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error == std::errc::result_out_of_range) {
    *value = IsTooSmall(text) ? std::numeric_limits<double>::denorm_min()
                              : std::numeric_limits<double>::infinity();
    if (text.front() == '-') *value = -*value;
  } else if (error != std::errc()) {
    return false;
  }
  *rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return true;
}

// The number that a text means whose decimals follow a comma, or that has signs between thousands:
// "0.5" of "0,5", "1234.5" of "1,234.5" and of "1.234,5", "1.234 or 1234" of "1,234". Empty for any
// other text.
std::string NumberMeant(std::string_view text, bool is_whole) {
  constexpr std::string_view kDigits = "0123456789";
  const std::string sign(text.substr(0, text.find_first_not_of("+-")));
  std::string_view rest = text.substr(sign.size());
  const auto are_digits = [&](std::string_view part) {
    return !part.empty() && part.find_first_not_of(kDigits) == std::string_view::npos;
  };
  const std::size_t first = std::min(rest.find_first_not_of(kDigits), rest.size());
  if (sign.size() > 1 || first == 0 || first == rest.size()) return "";
  const char between = rest[first];
  if (std::string_view(",.'_ ").find(between) == std::string_view::npos) return "";
  const std::string before(rest.substr(0, first));
  std::string decimal;
  if (between == ',' && are_digits(rest.substr(first + 1))) {
    decimal = sign + before + "." + std::string(rest.substr(first + 1));
  }
  // Groups of three digits, and decimals behind another sign.
  std::string thousands = sign + before;
  int groups = 0;
  rest.remove_prefix(first);
  while (rest.size() > 3 && rest.front() == between && are_digits(rest.substr(1, 3))) {
    thousands += rest.substr(1, 3);
    rest.remove_prefix(4);
    ++groups;
  }
  const bool has_decimals = rest.size() > 1 && rest.front() != between &&
                            (rest.front() == '.' || rest.front() == ',') &&
                            are_digits(rest.substr(1));
  if (has_decimals) thousands += "." + std::string(rest.substr(1));
  const bool is_grouped = first <= 3 && before.front() != '0' && (rest.empty() || has_decimals) &&
                          groups > (between == '.' && !has_decimals ? 1 : 0);
  if (!is_grouped || (is_whole && has_decimals)) thousands.clear();
  if (is_whole) decimal.clear();
  return decimal + (decimal.empty() || thousands.empty() ? "" : " or ") + thousands;
}

// Words for units that are not those of this program, without regard to case.
struct Synonym {
  const char* word;
  const char* unit;
};
constexpr Synonym kSynonyms[] = {
    {"sec", "s"},          {"second", "s"}, {"seconds", "s"},    {"msec", "ms"},
    {"millisecond", "ms"}, {"usec", "us"},  {"\u00b5s", "us"},   {"\u03bcs", "us"},
    {"nsec", "ns"},        {"m", "min"},    {"mins", "min"},     {"minute", "min"},
    {"minutes", "min"},    {"hr", "h"},     {"hour", "h"},       {"hours", "h"},
    {"day", "d"},          {"days", "d"},   {"byte", "B"},       {"bytes", "B"},
    {"watt", "W"},         {"watts", "W"},  {"FLOPS", "FLOP/s"}, {"sample/s", "samples/s"}};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// The unit that another way to write it means: "Gbps", "gbit/s", "Gb/s", "msec"; empty for none.
template <std::size_t N>
std::string UnitMeant(std::string_view name, const UnitName (&units)[N]) {
  const auto known = [&](const std::string& word, bool to_the_letter) -> std::string {
    for (const UnitName& unit : units) {
      if (to_the_letter ? word == unit.name : Lower(word) == Lower(unit.name)) return unit.name;
    }
    return "";
  };
  std::string word(name);
  for (const Synonym& synonym : kSynonyms) {
    if (Lower(word) == Lower(synonym.word) && !known(synonym.unit, true).empty()) {
      return synonym.unit;
    }
  }
  if (word.ends_with("PS") || word.ends_with("ps")) word.replace(word.size() - 2, 2, "/s");
  if (Lower(word).ends_with("flop/s") || Lower(word).ends_with("flo/s")) {
    word.replace(word.size() - (Lower(word).ends_with("flop/s") ? 6 : 5), std::string::npos,
                 "FLOP/s");
  }
  // A small b is a bit, a large one a byte.
  if (word.ends_with("b/s")) word.replace(word.size() - 3, 3, "bit/s");
  for (const std::string& tried : {word, word + "/s"}) {
    for (const bool to_the_letter : {true, false}) {
      const std::string unit = known(tried, to_the_letter);
      if (!unit.empty()) return unit;
    }
  }
  return "";
}

template <std::size_t N>
double ParseWithUnit(std::string_view raw, const InputPlace& place, const UnitName (&units)[N],
                     const NumberRange& range, const char* example) {
  const std::string_view text = Trim(raw);
  std::string allowed = "a number with one of the units";
  for (const UnitName& unit : units) allowed += std::string(" ") + unit.name;
  allowed += std::string(", like \"") + example + "\"";
  const auto fail = [&](const std::string& problem, const std::string& instead) {
    throw InputError(place, std::string(raw), problem, instead);
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
    if (!range.Holds(si)) {
      const NumberRange in_unit{range.least / unit.si, range.most / unit.si, range.or_nought};
      throw OutOfRange(place, std::string(raw), in_unit.Text() + " " + unit.name);
    }
    return si;
  }
  // "1,5 s", of which the number ends before the comma.
  const std::size_t end = std::min(text.find_first_not_of("+-0123456789,.'_ "), text.size());
  if (const std::string meant = NumberMeant(Trim(text.substr(0, end)), false); !meant.empty()) {
    fail("is not a number with a unit" + DidYouMean(meant + " " + std::string(text.substr(end))),
         allowed);
  }
  fail("has an unknown unit" + DidYouMean(UnitMeant(name, units)), allowed);
  return 0;
}

// "0.05" of "5 %", where a number is a share.
std::string ShareMeant(std::string_view text, const NumberRange& range) {
  if (range.most > 1 || !text.ends_with('%')) return "";
  double number = 0;
  std::string_view rest;
  if (!TakeNumber(text, &number, &rest) || Trim(rest) != "%") return "";
  std::ostringstream share;
  share << number / 100;
  return range.Holds(number / 100) && number / 100 < range.most ? share.str() : "";
}

}  // namespace

std::string NumberRange::Text() const {
  std::ostringstream text;
  text << (or_nought ? "0, or from " : "from ") << least << " to " << most;
  return text.str();
}

DataRate<> ParseDataRate(std::string_view text, const InputPlace& place) {
  return BytesPerSecond(ParseWithUnit(text, place, kRateUnits, kRates, "10 Gbit/s"));
}

DataRate<> ParseTraffic(std::string_view text, const InputPlace& place) {
  return BytesPerSecond(ParseWithUnit(text, place, kRateUnits, kTraffic, "200 Mbit/s"));
}

Duration<> ParseDuration(std::string_view text, const InputPlace& place) {
  return Seconds(ParseWithUnit(text, place, kTimeUnits, kTimes, "2 ms"));
}

DataSize<> ParseDataSize(std::string_view text, const InputPlace& place) {
  return Bytes(ParseWithUnit(text, place, kSizeUnits, kSizes, "25 MiB"));
}

SampleRate<> ParseSampleRate(std::string_view text, const InputPlace& place) {
  return SampleRate<>::FromSi(
      ParseWithUnit(text, place, kSampleRateUnits, kSampleRates, "2000 samples/s"));
}

WorkRate<> ParseWorkRate(std::string_view text, const InputPlace& place) {
  return WorkRate<>::FromSi(ParseWithUnit(text, place, kWorkRateUnits, kWorkRates, "8.1 TFLOP/s"));
}

double ParseWatts(std::string_view text, const InputPlace& place) {
  return ParseWithUnit(text, place, kPowerUnits, kPowers, "70 W");
}

double ParseNanometres(std::string_view text, const InputPlace& place) {
  return ParseWithUnit(text, place, kProcessUnits, kProcesses, "12 nm");
}

double ParseNumber(std::string_view text, const InputPlace& place, const NumberRange& range) {
  const std::string_view trimmed = Trim(text);
  const auto allowed = [&] { return (range.or_nought ? "" : "a number ") + range.Text(); };
  const auto fail = [&](const std::string& problem) {
    throw InputError(place, std::string(trimmed.empty() ? trimmed : text), problem, allowed());
  };
  double number = 0;
  std::string_view rest;
  if (trimmed.empty()) fail("is empty");
  if (!TakeNumber(trimmed, &number, &rest) || !Trim(rest).empty()) {
    const std::string share = ShareMeant(trimmed, range);
    fail("is not a number" + DidYouMean(share.empty() ? NumberMeant(trimmed, false) : share));
  }
  if (!std::isfinite(number)) fail("is not a finite number");
  if (!range.Holds(number)) throw OutOfRange(place, std::string(text), allowed());
  if (std::fpclassify(number) == FP_SUBNORMAL) fail("is too near to 0");
  return number;
}

double ParseProbability(std::string_view text, const InputPlace& place) {
  const std::string allowed = "0, or from 1e-15 to below 1";
  double p = 0;
  try {
    p = ParseNumber(text, place, NumberRange{kLeastLoss, 1, true});
  } catch (const OutOfRange& e) {
    throw OutOfRange(e.place(), e.value(), allowed);
  } catch (const InputError& e) {
    throw InputError(e.place(), e.value(), e.problem(), allowed);
  }
  if (p == 1) throw InputError(place, std::string(text), "would lose every packet", allowed);
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
    throw InputError(place, std::string(text),
                     "is not a whole number" + DidYouMean(NumberMeant(trimmed, true)), allowed);
  }
  if (error != std::errc() || number < low || number > high) {
    throw OutOfRange(place, std::string(text), allowed);
  }
  return number;
}

int ParseInteger(std::string_view text, const InputPlace& place, int low, int high) {
  return static_cast<int>(ParseLongInteger(text, place, low, high));
}

}  // namespace stepcast
