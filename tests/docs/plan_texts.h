// What texts for others say of the fields of a plan, written from the list: tables of the
// reference, the messages of gRPC, the stub of the Python package. Each function makes the lines of
// one region.
#ifndef STEPCAST_TESTS_DOCS_PLAN_TEXTS_H_
#define STEPCAST_TESTS_DOCS_PLAN_TEXTS_H_

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <string>
#include <string_view>

#include "data/plan/check.h"
#include "data/plan/fields.h"
#include "data/values/size_limits.h"
#include "tests/support/markdown.h"

namespace stepcast {

// "1,000,000", "10^-9", "2^-20", "0.25".
inline std::string ReadableNumber(double number) {
  if (number == 0) return "0";
  const double ten = std::log10(number);
  const bool is_long = ten >= 7 || ten < -3;
  if (is_long && std::abs(ten - std::round(ten)) < 1e-9) return fmt::format("10^{:.0f}", ten);
  if (is_long && std::log2(number) == std::round(std::log2(number))) {
    return fmt::format("2^{:.0f}", std::log2(number));
  }
  if (number != std::floor(number)) return fmt::format("{:.3g}", number);
  std::string digits = fmt::format("{:.0f}", number);
  for (auto at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

// What a column may hold; the unit of a number stands in front.
inline std::string Allowed(const PlanField& field) {
  switch (field.kind) {
    case FieldKind::kPlacement:
      return fmt::format("1 to {} a node, joined by `-`", kMostDevicesPerNode);
    case FieldKind::kNames:
      return "names, joined by `+`";
    case FieldKind::kYesNo:
      return "`yes`, `no`";
    case FieldKind::kChoice: {
      std::string words;
      for (const char* word : field.words)
        words += fmt::format("{}`{}`", words.empty() ? "" : ", ", word);
      return words;
    }
    case FieldKind::kMethod:
      return "`none`, `fp16`, `bf16`, `int8`, `topk=` with a share to 1, `powersgd=` with a rank "
             "to 1024";
    case FieldKind::kCount:
    case FieldKind::kNumber:
      break;
  }
  const bool is_probability =
      field.kind == FieldKind::kNumber && *field.unit == '\0' && field.range.or_nought;
  return fmt::format("{}{}{}{} to {}{}", field.unit, *field.unit == '\0' ? "" : ", ",
                     field.range.or_nought ? "0, or " : "", ReadableNumber(field.range.least),
                     is_probability ? "below " : "", ReadableNumber(field.range.most));
}

inline std::string Meaning(const PlanField& field) {
  std::string text = field.meaning;
  if (*field.note != '\0') text.append(". ").append(field.note);
  if (field.with != GoesWith::kAll) text += ". With " + StrategiesWith(field.with) + " only";
  return text;
}

// Whether a cluster may state it too.
inline bool IsOfLink(const PlanField& field) {
  bool is_of_link = false;
  ForEachField([&](const FieldFacts& facts, auto at) {
    if (facts.flag == nullptr || std::string_view(facts.flag) != field.flag) return;
    is_of_link = decltype(at)::kIsOfLink;
  });
  return is_of_link;
}

// In a cell; empty where there is none.
inline std::string DefaultCell(const PlanField& field) {
  if (IsOfLink(field)) return "the cluster's";
  const std::string value = field.default_text();
  const bool is_word = field.kind == FieldKind::kChoice || field.kind == FieldKind::kMethod;
  return value.empty() || !is_word ? value : "`" + value + "`";
}

inline Lines PlanOptionTable() {
  Lines table = {"| option | value | default | meaning |", "|---|---|---|---|",
                 "| `--workers N` | 1 to 1,000,000 | 1 | devices to train on, instead of "
                 "`--placement`. Nodes are filled one after another with the cluster's devices per "
                 "node |"};
  static const std::map<std::string, std::string> kExamples = {
      {"Gbit/s", "`\"10 Gbit/s\"`"},
      {"ms", "`\"2 ms\"`"},
      {"MiB", "`\"25 MiB\"`"},
      {"samples/s", "`\"2000 samples/s\"`"}};
  for (const PlanField& field : PlanFields()) {
    const bool has_unit = field.unit != nullptr && *field.unit != '\0';
    const bool bare = field.placeholder == nullptr;
    table.push_back(fmt::format("| `--{}{}` | {} | {} | {} |", field.flag,
                                bare ? "" : std::string(" ") + field.placeholder,
                                has_unit ? kExamples.at(field.unit)
                                : bare   ? ""
                                         : Allowed(field),
                                DefaultCell(field), Meaning(field)));
  }
  return table;
}

inline Lines PlanColumnTable() {
  Lines table = {"| column | required | unit, range | meaning |", "|---|---|---|---|"};
  for (const PlanField& field : PlanFields()) {
    const bool required = field.told == Told::kAlways;
    std::string meaning = Meaning(field);
    if (!required && !DefaultCell(field).empty()) meaning += ". Empty is " + DefaultCell(field);
    table.push_back(fmt::format("| `{}` | {} | {} | {} |", field.column, required ? "yes" : "",
                                Allowed(field), meaning));
  }
  return table;
}

inline Lines PlanKeyTable() {
  Lines table = {"| key | unit | is there |", "|---|---|---|",
                 "| `workers`, `global_batch` | | always |"};
  for (const PlanField& field : PlanFields()) {
    const std::string when = field.told != Told::kUnlessDefault ? "always"
                             : field.kind == FieldKind::kYesNo  ? "`yes`, if set"
                             : DefaultCell(field).empty() || IsOfLink(field)
                                 ? "if stated"
                                 : "if not " + DefaultCell(field);
    table.push_back(fmt::format("| `{}` | {} | {} |", field.column,
                                field.unit != nullptr ? field.unit : "", when));
  }
  return table;
}

// Whoever has a message keeps it: a field has the number that `said`, the message as it stands,
// gives it, and a new field the next. `taken` is the greatest that others have.
inline Lines PlanMessage(const Lines& said, int taken) {
  static const std::regex kLine(R"( *optional \w+ (\w+) = (\d+);.*)");
  std::map<std::string, int> numbers;
  for (const std::string& line : said) {
    std::smatch part;
    if (!std::regex_match(line, part, kLine)) continue;
    numbers[part[1]] = std::stoi(part[2]);
    taken = std::max(taken, numbers[part[1]]);
  }
  Lines message;
  for (const PlanField& field : PlanFields()) {
    const char* type = field.kind == FieldKind::kYesNo    ? "bool"
                       : field.kind == FieldKind::kCount  ? "int32"
                       : field.kind == FieldKind::kNumber ? "double"
                                                          : "string";
    const auto known = numbers.find(field.column);
    const int number = known != numbers.end() ? known->second : ++taken;
    message.push_back(fmt::format("  // {}", field.meaning));
    message.push_back(fmt::format("  optional {} {} = {};", type, field.column, number));
  }
  return message;
}

struct PythonType {
  std::string given;
  std::string held;
};
inline PythonType PythonTypeOf(const PlanField& field) {
  if (field.kind == FieldKind::kPlacement) return {"Union[None, str, Sequence[int]]", "list[int]"};
  if (field.kind == FieldKind::kNames) return {"Optional[Sequence[str]]", "list[str]"};
  const std::string type = field.kind == FieldKind::kYesNo    ? "bool"
                           : field.kind == FieldKind::kCount  ? "int"
                           : field.kind == FieldKind::kNumber ? "float"
                                                              : "str";
  const std::string optional = "Optional[" + type + "]";
  return {optional, field.may_be_unknown ? optional : type};
}

inline Lines PlanKeywords() {
  Lines keywords;
  for (const PlanField& field : PlanFields()) {
    keywords.push_back(
        fmt::format("        {}: {} = None,", field.keyword, PythonTypeOf(field).given));
  }
  return keywords;
}

inline Lines PlanProperties() {
  Lines properties;
  for (const PlanField& field : PlanFields()) {
    properties.emplace_back("    @property");
    properties.push_back(
        fmt::format("    def {}(self) -> {}: ...", field.keyword, PythonTypeOf(field).held));
  }
  return properties;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_DOCS_PLAN_TEXTS_H_
