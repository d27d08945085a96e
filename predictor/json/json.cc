#include "predictor/json/json.h"

#include <cmath>
#include <cstdint>

#include "data/plan/fields.h"
#include "model/exchange/sharding.h"
#include "predictor/outlook.h"
#include "predictor/prediction_fields.h"

namespace stepcast {
namespace {

constexpr double kLargestWholeDouble = 9007199254740992.0;  // 2^53

Json ShardJson(const Plan& plan, const Workload& workload) {
  const LargestShard shard = LargestShare(workload, plan.servers, plan.server.sharding);
  return {{"share", shard.share},
          {"layer", shard.layer.empty() ? Json(nullptr) : Json(shard.layer)},
          {"tensors", CountJson(shard.tensors)},
          {"one_tensor", shard.one_tensor}};
}

Json SpendingJson(const StepSpending& s) {
  Json json = {{"price_usd", NumberJson(s.price_usd)}, {"energy_j", NumberJson(s.energy_j)}};
  if (s.price_usd) json["servers_priced"] = !s.servers_unpriced;
  if (s.energy_j) {
    json["energy_at_most"] = s.energy_at_most;
    json["energy_of_devices_alone"] = s.energy_of_devices;
    json["device_busy_w"] = s.device_busy_w;
  }
  return json;
}

// ---- What is predicted, by its type.

template <class T>
Json ValueJson(const T& value) {
  return value;
}
Json ValueJson(const Count& count) { return CountJson(count.value); }
Json ValueJson(const Duration<>& time) { return time.in(kSeconds); }
Json ValueJson(const DataSize<>& size) { return CountJson(size.in(kBytes)); }
template <class T>
Json ValueJson(const std::optional<T>& value) {
  return value ? ValueJson(*value) : Json(nullptr);
}

}  // namespace

Json NumberJson(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json CountJson(double value) {
  if (std::floor(value) == value && std::abs(value) < kLargestWholeDouble) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

Json PlanJson(const Plan& plan) {
  Json json;
  json["workers"] = plan.workers();
  for (const PlanField& field : PlanFields()) {
    const std::string text = field.told == Told::kInJson ? field.text(plan) : field.write(plan);
    if (text.empty()) continue;
    json[field.column] = field.unit != nullptr ? Json::parse(text) : Json(text);
  }
  json["global_batch"] = CountJson(plan.global_batch());
  return json;
}

Json PredictionJson(const Prediction& p, const Plan& plan, const Subject& subject) {
  Json json;
  json["workload"] = subject.workload.name;
  json["device"] = subject.device;
  json["cluster"] = subject.cluster.name;
  json["plan"] = PlanJson(plan);
  const auto tell = [&json](const char* group, const char* name, const auto& value) {
    (group == nullptr ? json : json[group])[name] = ValueJson(value);
  };
  ForEachPredicted(p, tell);
  if (UsesServers(plan.strategy)) json["largest_shard"] = ShardJson(plan, subject.workload);
  json["spending"] =
      SpendingJson(MakeOutlook(p, plan, subject.cluster, subject.facts, OutlookOptions()).spending);
  ForEachCaveat(p, tell);
  return json;
}

Json PayoffJson(const Payoff& payoff) {
  return {{"link_gbit_per_s",
           payoff.bandwidth ? Json(payoff.bandwidth->in(kGigabitsPerSecond)) : Json(nullptr)},
          {"accumulation_steps",
           payoff.accumulation_steps ? Json(*payoff.accumulation_steps) : Json(nullptr)}};
}

Json ClusterJson(const Cluster& c) {
  return {{"name", c.name},
          {"title", c.title},
          {"device", c.device},
          {"nodes", c.nodes},
          {"devices_per_node", c.devices_per_node},
          {"link_gbit_per_s",
           c.link.bandwidth ? Json(c.link.bandwidth->in(kGigabitsPerSecond)) : Json(nullptr)},
          {"calibrated", c.calibration.has_value()},
          {"source", c.source}};
}

Json WorkloadJson(const Workload& w) {
  return {{"name", w.name},
          {"title", w.title},
          {"parameters", w.parameters},
          {"trainable_parameters", w.trainable_parameters},
          {"gradient_bytes", CountJson(w.gradient_bytes.in(kBytes))},
          {"forward_flop", w.forward_flop().si()},
          {"activation_bytes", CountJson(w.activation_bytes().in(kBytes))},
          {"layers", w.layers.size()},
          {"source", w.source}};
}

}  // namespace stepcast
