// The parts of a plan, as flags and as columns: one list for the command line, the runs CSV and
// JSON, and one check that every plan passes, wherever it comes from.
#ifndef STEPCAST_DATA_IO_PLAN_FIELDS_H_
#define STEPCAST_DATA_IO_PLAN_FIELDS_H_

#include <functional>
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

// The most that a plan may ask for, everywhere.
inline constexpr int kMostCount = 1'000'000;  // workers, nodes, servers, accumulation steps
inline constexpr int kMostBatch = 100'000'000;

// Throws InputError for a plan that no model covers: a number out of range, servers missing or
// superfluous, an option of servers without servers, hosts that do not match the placement.
// `place` says where a field was read.
void CheckPlan(const Plan& plan, const std::function<InputPlace(const PlanField&)>& place);
// The same with errors that name the flag alone.
void CheckPlan(const Plan& plan);

// The plan with `strategy`, without what CheckPlan refuses beside it: servers, their options,
// backup workers. Servers that the strategy requires are for the caller to name.
Plan WithStrategy(Plan plan, Strategy strategy);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_PLAN_FIELDS_H_
