// The fields of a plan as texts: for the command line, the runs CSV, JSON, messages and C.
#ifndef STEPCAST_DATA_PLAN_FIELDS_H_
#define STEPCAST_DATA_PLAN_FIELDS_H_

#include <span>
#include <string>
#include <vector>

#include "data/plan/field_list.h"
#include "data/record/input_error.h"
#include "data/record/plan.h"

namespace stepcast {

enum class FieldKind { kPlacement, kNames, kYesNo, kCount, kNumber, kChoice, kMethod };
inline constexpr const char* kFieldKindNames[] = {"placement", "names",  "yes or no", "count",
                                                  "number",    "choice", "method"};

// What a field can hold, by its type.
struct FieldType {
  FieldKind kind;
  const char* unit = nullptr;  // of the column; empty for a plain number, nullptr for what is none
  std::span<const char* const> words = {};  // that a choice is one of
  bool may_be_unknown = false;              // a plan need not say it, and then it has no default
  std::span<const BucketWord> sizes = {};   // numbers that have a word
};

struct PlanField : FieldFacts, FieldType {
  std::string help;  // of the flag
  using Reader = void (*)(const std::string&, const InputPlace&, const FieldFacts&, Plan*);
  Reader from_flag;
  Reader from_column;
  std::string (*text)(const Plan&);
  bool (*is_default)(const Plan&);
  void (*set_default)(Plan*);

  // A value that carries its unit.
  void read_flag(const std::string& value, const InputPlace& place, Plan* plan) const {
    from_flag(value, place, *this, plan);
  }
  // A plain number in `unit`.
  void read_column(const std::string& value, const InputPlace& place, Plan* plan) const {
    from_column(value, place, *this, plan);
  }
  // As read_column reads it; empty where the plan does not say, or says the default of a field that
  // need not be told.
  std::string write(const Plan& plan) const {
    return told != Told::kAlways && is_default(plan) ? "" : text(plan);
  }
  // Whether `range` says anything: of numbers, and of the devices on each node of a placement.
  bool has_range() const { return unit != nullptr || kind == FieldKind::kPlacement; }
  // Whether the most of the range is too much itself: a packet that is surely lost never arrives.
  bool is_below_most() const {
    return kind == FieldKind::kNumber && *unit == '\0' && is_probability();
  }
  // What holds where nobody says otherwise; empty where the field has to be said, or is unknown.
  std::string default_text() const;
};

// The units of columns.
constexpr const Unit<ByteRateDimension>& ColumnUnit(const DataRate<>& /*kind*/) {
  return kGigabitsPerSecond;
}
constexpr const Unit<TimeDimension>& ColumnUnit(const Duration<>& /*kind*/) {
  return kMilliseconds;
}
constexpr const Unit<ByteDimension>& ColumnUnit(const DataSize<>& /*kind*/) { return kMebibytes; }
constexpr const Unit<SampleRateDimension>& ColumnUnit(const SampleRate<>& /*kind*/) {
  return kSamplesPerSecond;
}

// A plan that says nothing: the default of each field.
const Plan& DefaultPlan();
// All that have a flag, in the order in which flags are applied.
const std::vector<PlanField>& PlanFields();
// The field of a flag; nullptr when there is none.
const PlanField* FindPlanField(const std::string& flag);

// The error of a plan, whose key is a flag, as one of the row that states the plan: its key is the
// column.
InputError InRow(const InputError& error, const InputPlace& row);

}  // namespace stepcast

#endif  // STEPCAST_DATA_PLAN_FIELDS_H_
