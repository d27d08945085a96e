// For each field of the list: two plans that differ in it alone, and pass the check.
#ifndef STEPCAST_TESTS_SUPPORT_CHANGED_PLANS_H_
#define STEPCAST_TESTS_SUPPORT_CHANGED_PLANS_H_

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "data/plan/field_list.h"
#include "data/record/plan.h"

namespace stepcast {

inline void Change(int* value) { ++*value; }
inline void Change(double* value) { *value += 0.25; }
inline void Change(bool* value) { *value = !*value; }
inline void Change(Placement* value) { ++value->front(); }
inline void Change(std::vector<std::string>* value) { *value = {"a", "b"}; }
template <class E>
requires std::is_enum_v<E>
void Change(E* value) { *value = static_cast<E>(static_cast<int>(*value) + 1); }
inline void Change(DataRate<>* value) { *value += BytesPerSecond(2097152.0); }
inline void Change(DataSize<>* value) { *value += Mebibytes(2.0); }
inline void Change(Duration<>* value) { *value += Milliseconds(2.0); }
template <class T>
void Change(std::optional<T>* value) {
  Change(&value->emplace(value->value_or(T{})));
}

struct ChangedPlan {
  FieldFacts facts;
  Plan before;
  Plan after;
};

inline std::vector<ChangedPlan> ChangedPlans() {
  std::vector<ChangedPlan> all;
  ForEachField([&](const FieldFacts& facts, auto field) {
    Plan plan;
    plan.placement = {2, 2};
    plan.strategy = Strategy::kAllreduce;
    if (facts.with == GoesWith::kPsAsync) plan.strategy = Strategy::kPsAsync;
    if (facts.with == GoesWith::kPsSync || facts.with == GoesWith::kServers ||
        facts.with == GoesWith::kParameterServers) {
      plan.strategy = Strategy::kPsSync;
    }
    if (UsesServers(plan.strategy)) plan.servers = 1;
    all.push_back({facts, plan, plan});
    Change(&field.Of(all.back().after));
  });
  return all;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_CHANGED_PLANS_H_
