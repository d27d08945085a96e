// The one list of what a prediction tells, by name and with its unit in the name: JSON, messages
// and Python's dictionaries follow from it.
#ifndef STEPCAST_PREDICTOR_PREDICTION_FIELDS_H_
#define STEPCAST_PREDICTOR_PREDICTION_FIELDS_H_

#include <optional>

#include "predictor/binding.h"
#include "predictor/prediction.h"

namespace stepcast {

// Indexed by ComputeSource.
inline constexpr const char* kComputeSourceNames[] = {"calibration",
                                                      "profile",
                                                      "data sheet",
                                                      "calibration of the device",
                                                      "calibration on another device",
                                                      "none",
                                                      "prior",
                                                      "calibration of it trained otherwise"};

// Indexed by AsyncLimiter.
inline constexpr const char* kAsyncLimiterNames[] = {"compute", "worker_link", "server_link",
                                                     "server_rate", "server_update"};

// A number that is whole where it counts whole things.
struct Count {
  double value = 0;
};

// Calls visit(group, name, value) for each part of the answer, in order; `group` is nullptr for
// what stands by itself. A value is a number, a Count, a time [s], a size [bytes], a text, or an
// optional one of these; a group that the plan has no part of is left out.
template <class Visit>
void ForEachPredicted(const Prediction& p, const Visit& visit) {
  visit(nullptr, "step_time_s", p.step_time);
  visit(nullptr, "low_s", p.low);
  visit(nullptr, "high_s", p.high);
  visit("uncertainty", "log_sd", p.log_sd);
  visit("uncertainty", "parameters_log_sd", p.parameter_log_sd);
  visit("uncertainty", "step_log_sd", p.scatter_log_sd);
  visit("uncertainty", "beyond_range_log_sd", p.discrepancy_log_sd);
  visit("quantiles", "p50_s", p.p50);
  visit("quantiles", "p95_s", p.p95);
  visit("quantiles", "p99_s", p.p99);
  visit(nullptr, "throughput_samples_per_s", p.throughput.in(kSamplesPerSecond));
  if (p.work) {
    visit("work", "flop_per_s", p.work->rate.si());
    visit("work", "share_of_peak", p.work->of_peak);
  }
  const StepTime<double>& b = p.breakdown;
  visit("breakdown", "forward_s", b.forward);
  visit("breakdown", "backward_s", b.backward);
  visit("breakdown", "update_s", b.update);
  visit("breakdown", "exposed_transfer_s", b.exposed_transfer);
  visit("breakdown", "exposed_latency_s", b.exposed_latency);
  visit("breakdown", "straggler_wait_s", b.straggler_wait);
  visit("breakdown", "coding_s", b.coding);
  visit("breakdown", "input_wait_s", b.input_wait);
  visit(nullptr, "synchronisation_s", b.synchronisation);
  visit(nullptr, "idle_ratio", p.idle_ratio());
  const Binding binding = FindBinding(p);
  visit("binding", "part", binding.part);
  visit("binding", "share", binding.share);
  visit("binding", "sentence", binding.sentence);
  visit("traffic", "gradient_bytes", p.traffic.gradient);
  visit("traffic", "transfers", Count{p.traffic.transfers});
  visit("traffic", "buckets", p.buckets);
  visit("traffic", "bytes_per_worker", p.traffic.per_worker);
  visit("traffic", "bytes_per_server", p.traffic.per_server);
  visit("traffic", "bytes_total", p.traffic.total);
  const MemoryNeed& m = p.memory;
  visit("memory", "parameters_bytes", m.parameters);
  visit("memory", "gradients_bytes", m.gradients);
  visit("memory", "optimizer_bytes", m.optimizer);
  visit("memory", "accumulation_bytes", m.accumulation);
  visit("memory", "buckets_bytes", m.buckets);
  visit("memory", "activations_bytes",
        m.activations.si() > 0 ? std::optional(m.activations) : std::nullopt);
  visit("memory", "workspace_bytes", m.workspace);
  visit("memory", "total_bytes", m.total);
  visit("memory", "available_bytes", m.available);
  visit("memory", "verdict", kMemoryVerdictNames[static_cast<int>(m.verdict)]);
  visit(nullptr, "algorithm", StrategyName(p.algorithm));
  visit(nullptr, "algorithm_reason",
        p.algorithm_reason.empty() ? std::nullopt : std::optional(p.algorithm_reason));
  if (p.server_times) {
    visit("server_times", "push_s", p.server_times->push);
    visit("server_times", "update_s", p.server_times->update);
    visit("server_times", "pull_s", p.server_times->pull);
  }
  if (p.server_phases) {
    const PhaseBenefit<double>& phases = *p.server_phases;
    visit("server_phases", "remaining_aggregation_s", phases.remaining_aggregation);
    visit("server_phases", "remaining_distribution_s", phases.remaining_distribution);
    visit("server_phases", "multicast_saves_s", phases.multicast_saves);
    visit("server_phases", "in_network_aggregation_saves_s", phases.in_network_aggregation_saves);
    visit("server_phases", "both_save_s", phases.both_save);
  }
  if (p.async_servers) {
    const AsyncServers<double>& a = *p.async_servers;
    visit("async_servers", "updates_per_s", a.updates.si());
    visit("async_servers", "cycle_s", a.cycle);
    visit("async_servers", "queueing_s", Max(a.queueing(), Duration<>()));
    visit("async_servers", "server_link_busy", a.server_link);
    visit("async_servers", "server_processor_busy", a.server_processor);
    visit("async_servers", "server_update_busy", a.server_update);
    visit("async_servers", "worker_link_busy", a.worker_link);
    const auto of_two = [&](Duration<> cycle) {
      return a.slow_updates > 0 ? std::optional(cycle) : std::nullopt;
    };
    visit("async_servers", "fast_cycle_s", of_two(a.fast_cycle));
    visit("async_servers", "slow_cycle_s", of_two(a.slow_cycle));
    visit("async_servers", "slow_updates_share", a.slow_updates);
    visit("async_servers", "mean_staleness", a.mean_staleness);
    visit("async_servers", "staleness_sd", a.staleness_sd);
    visit("async_servers", "limiter", kAsyncLimiterNames[static_cast<int>(a.limiter)]);
  }
}

// The same for what a reader must know before trusting the answer; the flags are a list of texts.
template <class Visit>
void ForEachCaveat(const Prediction& p, const Visit& visit) {
  visit(nullptr, "compute_source", kComputeSourceNames[static_cast<int>(p.compute_source)]);
  visit(nullptr, "flags", p.flags);
}

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_PREDICTION_FIELDS_H_
