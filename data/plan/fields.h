// The fields of a plan as texts: for the command line, the runs CSV, JSON, messages and C.
#ifndef STEPCAST_DATA_PLAN_FIELDS_H_
#define STEPCAST_DATA_PLAN_FIELDS_H_

#include <string>
#include <vector>

#include "data/plan/field_list.h"
#include "data/record/input_error.h"
#include "data/record/plan.h"

namespace stepcast {

struct PlanField : FieldFacts {
  std::string help;  // of the flag
  const char* unit;  // of the column; empty for a plain number, nullptr for what is not a number
  using Reader = void (*)(const std::string&, const InputPlace&, const FieldFacts&, Plan*);
  Reader from_flag;
  Reader from_column;
  std::string (*text)(const Plan&);
  bool (*is_default)(const Plan&);

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
};

// The units of columns.
constexpr const Unit<ByteRateDimension>& ColumnUnit(const DataRate<>& /*kind*/) {
  return kGigabitsPerSecond;
}
constexpr const Unit<TimeDimension>& ColumnUnit(const Duration<>& /*kind*/) {
  return kMilliseconds;
}
constexpr const Unit<ByteDimension>& ColumnUnit(const DataSize<>& /*kind*/) { return kMebibytes; }

// A plan that says nothing: the default of each field.
const Plan& DefaultPlan();
// All that have a flag, in the order in which flags are applied.
const std::vector<PlanField>& PlanFields();
// The field of a flag; nullptr when there is none.
const PlanField* FindPlanField(const std::string& flag);

}  // namespace stepcast

#endif  // STEPCAST_DATA_PLAN_FIELDS_H_
