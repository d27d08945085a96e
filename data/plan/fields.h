// The parts of a plan, as flags and as columns: one list for the command line, the runs CSV and
// JSON.
#ifndef STEPCAST_DATA_PLAN_FIELDS_H_
#define STEPCAST_DATA_PLAN_FIELDS_H_

#include <string>
#include <vector>

#include "data/record/input_error.h"
#include "data/record/plan.h"

namespace stepcast {

struct PlanField {
  const char* flag;         // "local-batch": --local-batch N, and what errors name
  const char* column;       // "local_batch": of the runs CSV and of JSON, with the unit in the name
  const char* placeholder;  // of the flag's value in help; nullptr for a flag without one
  const char* help;
  const char* unit;  // of the column; empty for a plain number, nullptr for what is not a number
  using Reader = void (*)(const std::string&, const InputPlace&, Plan*);
  Reader read_flag;    // a value that carries its unit
  Reader read_column;  // a plain number in `unit`
  // As read_column reads it; empty where the plan does not say, or says the default.
  std::string (*write)(const Plan&);
};

// In the order in which flags are applied: a strategy before what depends on it.
const std::vector<PlanField>& PlanFields();
// The field of a flag; nullptr when there is none.
const PlanField* FindPlanField(const std::string& flag);

}  // namespace stepcast

#endif  // STEPCAST_DATA_PLAN_FIELDS_H_
