#include "predictor/json/json.h"

#include <cmath>
#include <cstdint>

#include "data/plan/check.h"
#include "data/plan/fields.h"
#include "data/values/names.h"
#include "data/values/training_facts.h"
#include "model/exchange/sharding.h"
#include "predictor/outlook.h"
#include "predictor/prediction_fields.h"

namespace stepcast {
namespace {

constexpr double kLargestWholeDouble = 9007199254740992.0;  // 2^53

Json ShardJson(const Plan& plan, const Workload& workload) {
  const LargestShard shard = LargestShare(workload, plan.servers, plan.server.sharding);
  return {{"share", shard.share},
          {"layer", TextJson(shard.layer)},
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

Json ValueJson(const NamedValue& value) {
  return {
      {"symbol", value.symbol}, {"value", value.value}, {"unit", value.unit}, {"name", value.name}};
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

std::string JsonText(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json CountJson(double value) {
  if (std::floor(value) == value && std::abs(value) < kLargestWholeDouble) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

Json TextJson(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

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

Json PlanFieldsJson() {
  Json fields = Json::array();
  for (const PlanField& field : PlanFields()) {
    Json json = {{"column", field.column},
                 {"flag", field.flag},
                 {"kind", kFieldKindNames[static_cast<int>(field.kind)]},
                 {"meaning", field.meaning},
                 {"more", field.more},
                 {"default", field.text(DefaultPlan())},
                 {"always_told", field.told != Told::kUnlessDefault}};
    for (const char* word : field.words) json["choices"].push_back(word);
    if (field.unit != nullptr) {
      json["unit"] = field.unit;
      json["least"] = field.range.least;
      json["most"] = field.range.most;
      json["or_nought"] = field.range.or_nought;
    }
    for (const BucketWord& size : field.sizes) {
      json["words"].push_back({{"word", std::string(size.word)},
                               {"meaning", std::string(size.meaning)},
                               {"value", size.cap.in(kMebibytes)}});
    }
    json["strategies"] = Json::array();
    for (const StrategyTraits& strategy : kStrategies) {
      if (Allows(field.with, strategy)) json["strategies"].push_back(strategy.name);
    }
    fields.push_back(json);
  }
  return fields;
}

Json TrainingFactsJson() {
  Json facts = Json::array();
  for (const TrainingFact& fact : TrainingFacts()) {
    Json json = {{"column", fact.key},
                 {"flag", fact.key},
                 {"kind", kFieldKindNames[static_cast<int>(FieldKind::kChoice)]},
                 {"meaning", fact.meaning},
                 {"more", fact.more()},
                 {"default", ""},
                 {"always_told", false},
                 {"noun", fact.noun}};
    for (const char* word : fact.words.names) json["choices"].push_back(word);
    facts.push_back(json);
  }
  return facts;
}

Json PredictionJson(const Prediction& p, const Plan& plan, const Subject& subject) {
  Json json;
  json["workload"] = subject.workload.name;
  json["device"] = subject.device;
  json["cluster"] = subject.cluster.name;
  TellTraining(subject.workload, &json);
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

Json ExplanationJson(const Explanation& explanation, const Plan& plan, const Subject& subject) {
  Json json = PredictionJson(explanation.prediction, plan, subject);
  Json terms = Json::array();
  for (const ExplainedTerm& term : explanation.terms) {
    Json inputs = Json::array();
    for (const NamedValue& input : term.inputs) inputs.push_back(ValueJson(input));
    terms.push_back({{"name", term.name},
                     {"formula", term.formula},
                     {"inputs", inputs},
                     {"result", ValueJson(term.result)},
                     {"is_part", term.is_part},
                     {"share", term.share},
                     {"model", term.model},
                     {"source", term.source}});
  }
  Json parameters = Json::array();
  for (const ExplainedParameter& parameter : explanation.parameters) {
    parameters.push_back({{"name", parameter.value.symbol},
                          {"value", parameter.value.value},
                          {"unit", parameter.value.unit},
                          {"log_sd", parameter.log_sd},
                          {"elasticity", parameter.elasticity},
                          {"origin", kOriginNames[static_cast<int>(parameter.origin)]},
                          {"meaning", parameter.meaning},
                          {"source", parameter.source}});
  }
  json["terms"] = terms;
  json["parameters"] = parameters;
  return json;
}

Json UnequalJson(const UnequalWorkers& unequal) {
  const auto shares = [](const SharedOut& shared) {
    return Json{{"fast_local_batch", shared.fast_batch},
                {"slow_local_batch", shared.slow_batch},
                {"step_time_s", shared.step_time.si()},
                {"throughput_samples_per_s", shared.throughput.in(kSamplesPerSecond)}};
  };
  const auto optional = [&](const std::optional<SharedOut>& shared) {
    return shared ? shares(*shared) : Json(nullptr);
  };
  return {
      {"equal", shares(unequal.equal)},
      {"by_speed", optional(unequal.by_speed)},
      {"why_equal", unequal.why_equal ? Json(kWhyEqualNames[static_cast<int>(*unequal.why_equal)])
                                      : Json(nullptr)},
      {"fast_only", optional(unequal.fast_only)},
      {"worth", NumberJson(unequal.worth())}};
}

Json PayoffJson(const Payoff& payoff) {
  return {{"link_gbit_per_s", OptionalJson(payoff.bandwidth, kGigabitsPerSecond)},
          {"accumulation_steps", OptionalJson(payoff.accumulation_steps)}};
}

Json ClusterJson(const Cluster& c) {
  return {{"name", c.name},
          {"title", c.title},
          {"device", c.device},
          {"nodes", c.nodes},
          {"devices_per_node", c.devices_per_node},
          {"link_gbit_per_s", OptionalJson(c.link.bandwidth, kGigabitsPerSecond)},
          {"calibrated", c.calibration.has_value()},
          {"source", c.source}};
}

Json WorkloadJson(const Workload& w) {
  Json json = {{"name", w.name},
               {"title", w.title},
               {"parameters", w.parameters},
               {"trainable_parameters", w.trainable_parameters},
               {"gradient_bytes", CountJson(w.gradient_bytes.in(kBytes))},
               {"forward_flop", w.forward_flop().si()},
               {"activation_bytes", CountJson(w.activation_bytes().in(kBytes))},
               {"layers", w.layers.size()},
               {"inputs_vary", OptionalJson(w.inputs_vary)}};
  TellTraining(w, &json);
  json["source"] = w.source;
  return json;
}

void TellTraining(const Workload& workload, Json* json) {
  for (const TrainingFact& fact : TrainingFacts()) (*json)[fact.key] = fact.WordOf(workload);
}

}  // namespace stepcast
