#include "data/plan/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <type_traits>

#include "data/plan/bucket_words.h"
#include "data/values/compression.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/placement.h"

namespace stepcast {
namespace {

// What is read as a flag and as a column: the value, and for a number its range.
struct Source {
  const std::string& text;
  const InputPlace& place;
  const FieldFacts& facts;
  bool is_flag;
};

void Read(const Source& from, Placement* value) { *value = ParsePlacement(from.text, from.place); }
void Read(const Source& from, std::vector<std::string>* value) {
  *value = ParseHosts(from.text, from.place);
}
void Read(const Source& from, bool* value) {
  constexpr const char* kNoYes[] = {"no", "yes"};
  const std::optional<int> found = FindAlike(from.text, kNoYes);
  if (!found) throw InputError(from.place, from.text, "is neither yes nor no", "yes, no");
  *value = *found == 1;
}
void Read(const Source& from, int* value) {
  const FieldFacts& facts = from.facts;
  // A required column of counts that may be none is left empty where they are.
  const bool none =
      facts.told == Told::kAlways && facts.range.least == 0 && Trim(from.text).empty();
  *value = none ? 0
                : ParseInteger(from.text, from.place, static_cast<int>(facts.range.least),
                               static_cast<int>(facts.range.most));
}
void Read(const Source& from, double* value) {
  *value = from.facts.is_probability() ? ParseProbability(from.text, from.place)
                                       : ParseNumber(from.text, from.place, from.facts.range);
}
void Read(const Source& from, Compression* value) {
  *value = ParseCompression(from.text, from.place);
}
template <class E>
requires std::is_enum_v<E>
void Read(const Source& from, E* value) { *value = ParseEnum<E>(from.text, from.place); }
template <class D>
void Read(const Source& from, Quantity<D>* value) {
  const Unit<D>& unit = ColumnUnit(*value);
  const NumberRange& range = from.facts.range;
  if (!from.is_flag) {
    *value = Quantity<D>::FromSi(ParseNumber(from.text, from.place, range) * unit.si);
    return;
  }
  if constexpr (std::is_same_v<Quantity<D>, DataRate<>>) {
    *value = range.or_nought ? ParseTraffic(from.text, from.place)
                             : ParseDataRate(from.text, from.place);
  } else {
    *value = ParseQuantity<Quantity<D>>(from.text, from.place);
  }
  if (!range.Holds(value->in(unit))) {
    throw InputError(from.place, from.text, "is out of range", range.Text() + " " + unit.symbol);
  }
}
void Read(const Source& from, DataSize<>* value) {
  *value = from.is_flag ? ParseBucketCap(from.text, from.place)
                        : ParseBucketColumn(from.text, from.place);
}
template <class T>
void Read(const Source& from, std::optional<T>* value) {
  T read{};
  Read(from, &read);
  *value = read;
}

std::string Text(const Placement& value) { return FormatPlacement(value); }
std::string Text(const std::vector<std::string>& value) { return JoinHosts(value); }
std::string Text(bool value) { return value ? "yes" : "no"; }
std::string Text(int value) { return std::to_string(value); }
std::string Text(double value) { return fmt::format("{}", value); }
std::string Text(const Compression& value) { return FormatCompression(value); }
template <class E>
requires std::is_enum_v<E> std::string Text(E value) { return NameOf(value); }
template <class D>
std::string Text(const Quantity<D>& value) {
  return Text(value.in(ColumnUnit(value)));
}
template <class T>
std::string Text(const std::optional<T>& value) {
  return value ? Text(*value) : "";
}

FieldType TypeOf(const Placement& /*kind*/) { return {FieldKind::kPlacement}; }
FieldType TypeOf(const std::vector<std::string>& /*kind*/) { return {FieldKind::kNames}; }
FieldType TypeOf(bool /*kind*/) { return {FieldKind::kYesNo}; }
FieldType TypeOf(const Compression& /*kind*/) { return {FieldKind::kMethod}; }
FieldType TypeOf(int /*kind*/) { return {FieldKind::kCount, ""}; }
FieldType TypeOf(double /*kind*/) { return {FieldKind::kNumber, ""}; }
template <class D>
FieldType TypeOf(const Quantity<D>& kind) {
  return {FieldKind::kNumber, ColumnUnit(kind).symbol};
}
FieldType TypeOf(const DataSize<>& kind) {
  FieldType type = {FieldKind::kNumber, ColumnUnit(kind).symbol};
  type.sizes = kBucketWords;
  return type;
}
template <class E>
requires std::is_enum_v<E> FieldType TypeOf(E kind) {
  return {FieldKind::kChoice, nullptr, NamesOf(kind).names};
}
template <class T>
FieldType TypeOf(const std::optional<T>& /*kind*/) {
  FieldType type = TypeOf(T());
  type.may_be_unknown = true;
  return type;
}

template <class At, bool kIsFlag>
void ReadField(const std::string& text, const InputPlace& place, const FieldFacts& facts,
               Plan* plan) {
  Read({text, place, facts, kIsFlag}, &At::Of(*plan));
}

}  // namespace

std::string PlanField::default_text() const {
  const bool none = may_be_unknown || kind == FieldKind::kPlacement || kind == FieldKind::kNames ||
                    (told == Told::kAlways && kind != FieldKind::kChoice);
  return none ? "" : text(DefaultPlan());
}

const Plan& DefaultPlan() {
  static const Plan plan;
  return plan;
}

const std::vector<PlanField>& PlanFields() {
  static const std::vector<PlanField> fields = [] {
    std::vector<PlanField> all;
    ForEachField([&](const FieldFacts& facts, auto at) {
      using At = decltype(at);
      if (facts.flag == nullptr) return;
      all.push_back({facts, TypeOf(At::Of(DefaultPlan())), std::string(facts.meaning) + facts.more,
                     ReadField<At, true>, ReadField<At, false>,
                     [](const Plan& plan) { return Text(At::Of(plan)); },
                     [](const Plan& plan) { return At::Of(plan) == At::Of(DefaultPlan()); },
                     [](Plan* plan) { At::Of(*plan) = At::Of(DefaultPlan()); }});
    });
    return all;
  }();
  return fields;
}

const PlanField* FindPlanField(const std::string& flag) {
  for (const PlanField& field : PlanFields()) {
    if (flag == field.flag) return &field;
  }
  return nullptr;
}

InputError InRow(const InputError& error, const InputPlace& row) {
  std::string key = error.place().key;
  if (key.starts_with("--")) {
    key.erase(0, 2);
    std::replace(key.begin(), key.end(), '-', '_');
  }
  const PlanField* field = FindPlanField(key);
  return error.At({row.file, row.line, field != nullptr ? field->column : key});
}

}  // namespace stepcast
