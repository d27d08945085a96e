#include "predictor/json/json.h"

#include <cmath>
#include <cstdint>
#include <string_view>

#include "data/plan/fields.h"
#include "model/exchange/sharding.h"
#include "predictor/outlook.h"

namespace stepcast {
namespace {

constexpr double kLargestWholeDouble = 9007199254740992.0;  // 2^53

// Indexed by AsyncLimiter.
constexpr const char* kAsyncLimiterNames[] = {"compute", "worker_link", "server_link",
                                              "server_rate", "server_update"};

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

// What a prediction holds beyond its times: the algorithm, the servers, money and energy.
Json OutlookJson(const Prediction& p, const Plan& plan, const Subject& subject) {
  Json json;
  json["algorithm"] = StrategyName(p.algorithm);
  json["algorithm_reason"] = p.algorithm_reason.empty() ? Json(nullptr) : Json(p.algorithm_reason);
  if (p.server_phases) {
    const PhaseBenefit<double>& phases = *p.server_phases;
    json["server_phases"] = {
        {"remaining_aggregation_s", phases.remaining_aggregation.in(kSeconds)},
        {"remaining_distribution_s", phases.remaining_distribution.in(kSeconds)},
        {"multicast_saves_s", phases.multicast_saves.in(kSeconds)},
        {"in_network_aggregation_saves_s", phases.in_network_aggregation_saves.in(kSeconds)},
        {"both_save_s", phases.both_save.in(kSeconds)}};
  }
  if (p.async_servers) {
    const AsyncServers<double>& a = *p.async_servers;
    json["async_servers"] = {{"updates_per_s", a.updates.si()},
                             {"cycle_s", a.cycle.in(kSeconds)},
                             {"queueing_s", a.queueing().in(kSeconds)},
                             {"server_link_busy", a.server_link},
                             {"server_processor_busy", a.server_processor},
                             {"server_update_busy", a.server_update},
                             {"worker_link_busy", a.worker_link},
                             {"mean_staleness", a.mean_staleness},
                             {"staleness_sd", a.staleness_sd},
                             {"limiter", kAsyncLimiterNames[static_cast<int>(a.limiter)]}};
  }
  if (UsesServers(plan.strategy)) json["largest_shard"] = ShardJson(plan, subject.workload);
  json["spending"] =
      SpendingJson(MakeOutlook(p, plan, subject.cluster, subject.facts, OutlookOptions()).spending);
  return json;
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
  json["step_time_s"] = p.step_time.in(kSeconds);
  json["low_s"] = p.low.in(kSeconds);
  json["high_s"] = p.high.in(kSeconds);
  json["uncertainty"] = {{"log_sd", p.log_sd},
                         {"parameters_log_sd", p.parameter_log_sd},
                         {"step_log_sd", p.scatter_log_sd},
                         {"beyond_range_log_sd", p.discrepancy_log_sd}};
  json["quantiles"] = {
      {"p50_s", p.p50.in(kSeconds)}, {"p95_s", p.p95.in(kSeconds)}, {"p99_s", p.p99.in(kSeconds)}};
  json["throughput_samples_per_s"] = p.throughput.in(kSamplesPerSecond);
  const StepTime<double>& b = p.breakdown;
  json["breakdown"] = {{"forward_s", b.forward.in(kSeconds)},
                       {"backward_s", b.backward.in(kSeconds)},
                       {"update_s", b.update.in(kSeconds)},
                       {"exposed_transfer_s", b.exposed_transfer.in(kSeconds)},
                       {"exposed_latency_s", b.exposed_latency.in(kSeconds)},
                       {"straggler_wait_s", b.straggler_wait.in(kSeconds)}};
  json["synchronisation_s"] = b.synchronisation.in(kSeconds);
  json["idle_ratio"] = p.idle_ratio();
  const Binding binding = FindBinding(p);
  json["binding"] = {
      {"part", binding.part}, {"share", binding.share}, {"sentence", binding.sentence}};
  json["traffic"] = {
      {"gradient_bytes", CountJson(subject.workload.gradient_bytes.in(kBytes))},
      {"transfers", CountJson(p.traffic.transfers)},
      {"buckets", p.buckets},
      {"bytes_per_worker", CountJson(p.traffic.per_worker.in(kBytes))},
      {"bytes_per_server",
       p.traffic.per_server ? CountJson(p.traffic.per_server->in(kBytes)) : Json(nullptr)},
      {"bytes_total", CountJson(p.traffic.total.in(kBytes))}};
  const MemoryNeed& m = p.memory;
  json["memory"] = {
      {"parameters_bytes", CountJson(m.parameters.in(kBytes))},
      {"gradients_bytes", CountJson(m.gradients.in(kBytes))},
      {"optimizer_bytes", CountJson(m.optimizer.in(kBytes))},
      {"accumulation_bytes", CountJson(m.accumulation.in(kBytes))},
      {"buckets_bytes", CountJson(m.buckets.in(kBytes))},
      {"activations_bytes",
       m.activations.si() > 0 ? CountJson(m.activations.in(kBytes)) : Json(nullptr)},
      {"workspace_bytes", CountJson(m.workspace.in(kBytes))},
      {"total_bytes", CountJson(m.total.in(kBytes))},
      {"available_bytes", m.available ? CountJson(m.available->in(kBytes)) : Json(nullptr)},
      {"verdict", kMemoryVerdictNames[static_cast<int>(m.verdict)]}};
  json.update(OutlookJson(p, plan, subject));
  json["compute_source"] = kComputeSourceNames[static_cast<int>(p.compute_source)];
  json["flags"] = p.flags;
  return json;
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
