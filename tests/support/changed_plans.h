// For each field of the list: plans that differ in it alone, two by two, and pass the check.
#ifndef STEPCAST_TESTS_SUPPORT_CHANGED_PLANS_H_
#define STEPCAST_TESTS_SUPPORT_CHANGED_PLANS_H_

#include <algorithm>
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
inline void Change(Compression* value) { value->method = Compressor::kFp16; }
inline void Change(SampleRate<>* value) { *value += SampleRate<>::FromSi(0.0625); }
template <class T>
void Change(std::optional<T>* value) {
  Change(&value->emplace(value->value_or(T{})));
}

struct ChangedPlan {
  FieldFacts facts;
  Plan before;
  Plan after;
};

// Other fields are as `base` has them, but for servers where the strategy has none; else there is
// one at least.
inline std::vector<ChangedPlan> ChangedPlans(const Plan& base = {}) {
  std::vector<ChangedPlan> all;
  ForEachField([&](const FieldFacts& facts, auto field) {
    Plan plan = base;
    plan.placement = {2, 2};
    plan.strategy = Strategy::kAllreduce;
    if (facts.with == GoesWith::kPsAsync) plan.strategy = Strategy::kPsAsync;
    const std::string state = facts.state;
    const bool of_servers = state.starts_with("server");
    if (facts.with == GoesWith::kPsSync || of_servers ||
        facts.with == GoesWith::kParameterServers) {
      plan.strategy = Strategy::kPsSync;
    }
    plan.servers = UsesServers(plan.strategy) ? std::max(1, base.servers) : 0;
    if (plan.servers == 0) plan.server_link = {};
    if (state == "colocated_servers") plan.server_link.bandwidth.reset();
    if (facts.with == GoesWith::kCompresses) plan.compress_rate = GigabytesPerSecond(0.04);
    if (state == "compress_bytes_per_s") plan.compress = {Compressor::kInt8};
    if (state.starts_with("slow_")) {
      plan.slow_nodes = 1;
      plan.slow_speed = 0.5;
    }
    if (state.ends_with("oversubscription") || state.ends_with("per_switch")) {
      LinkFacts* link = of_servers ? &plan.server_link : &plan.link;
      link->oversubscription = 8;
      link->nodes_per_switch = of_servers ? 4 : 1;
    }
    all.push_back({facts, plan, plan});
    Change(&field.Of(all.back().after));
    if (state == "compress") {  // one method keeps more or less
      plan.compress = {Compressor::kTopK, 0.25};
      all.push_back({facts, plan, plan});
      all.back().after.compress.kept = 0.5;
    }
  });
  return all;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_CHANGED_PLANS_H_
