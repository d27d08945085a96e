#include "predictor/outlook.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "data/record/input_error.h"
#include "model/failures/failures.h"
#include "model/spending/spending.h"
#include "model/statistics/noise_scale.h"
#include "model/statistics/normal.h"

namespace stepcast {
namespace {

InputPlace At(const char* option) { return {"", 0, std::string("--") + option}; }

template <class Q>
void RequirePositive(const std::optional<Q>& value, const char* option) {
  if (value && !(value->si() > 0 && std::isfinite(value->si()))) {
    throw InputError(At(option), fmt::format("{}", value->si()), "is out of range", "more than 0");
  }
}

// An option that says nothing without one of those named.
void RequireWith(bool given, const char* option, bool fulfilled, const char* others) {
  if (given && !fulfilled) {
    throw InputError(At(option), "", std::string("says nothing without ") + others);
  }
}

bool IsAsynchronous(const Plan& plan) { return TraitsOf(plan.strategy).asynchronous(); }

StepSpending MakeSpending(const Prediction& p, const Plan& plan, const Cluster& cluster,
                          const std::optional<Device>& device) {
  StepSpending spending;
  const int servers = ServerNodes(plan);
  if (cluster.node_price_per_hour) {
    double usd = StepPriceUsd(p.step_time, plan.nodes(), *cluster.node_price_per_hour);
    if (servers > 0 && cluster.server_price_per_hour) {
      usd += StepPriceUsd(p.step_time, servers, *cluster.server_price_per_hour);
    }
    spending.price_usd = usd;
    spending.servers_unpriced = servers > 0 && !cluster.server_price_per_hour;
  }
  const std::optional<double> busy = cluster.device_power_w ? cluster.device_power_w
                                     : device               ? device->power_w
                                                            : std::nullopt;
  if (busy) {
    spending.device_busy_w = *busy;
    spending.energy_at_most = !cluster.device_idle_power_w;
    spending.energy_of_devices = !cluster.node_power_w;
    const Power<double> power{*busy, cluster.device_idle_power_w.value_or(*busy),
                              cluster.node_power_w.value_or(0)};
    spending.energy_j = StepEnergyJ(p.breakdown.compute(), p.step_time, power, plan.workers(),
                                    plan.nodes() + servers);
  }
  return spending;
}

FailureOutlook MakeFailures(const Prediction& p, const Plan& plan, const JobOutlook& job,
                            const OutlookOptions& options) {
  const Duration<> never = Seconds(std::numeric_limits<double>::infinity());
  const Duration<> node = *options.node_mtbf;
  const Duration<> device = options.device_mtbf.value_or(never);
  const Duration<> checkpoint = *options.checkpoint_time;
  const Duration<> restart = options.restart_time.value_or(Seconds(0.0));
  FailureOutlook f;
  f.at_least = !options.restart_time;
  f.between =
      JobTimeBetweenFailures(node, plan.nodes() + ServerNodes(plan), device, plan.workers());
  // An asynchronous job is stopped by the servers' nodes alone, wherever they run.
  f.between_restarts =
      IsAsynchronous(plan) ? JobTimeBetweenFailures(node, plan.servers, never, 0) : f.between;
  f.young = YoungInterval(checkpoint, f.between_restarts);
  f.daly = DalyInterval(checkpoint, f.between_restarts);
  f.slowdown = CheckpointSlowdown(f.daly, checkpoint, restart, f.between_restarts);
  f.chief_loss = ChiefLoss(f.daly, checkpoint, restart);
  if (plan.workers() > 1 && !HasNoReplica(plan.shard_on_nodes())) {
    WorkerLoss loss;
    if (IsAsynchronous(plan)) {
      loss.stall = restart;
      loss.stalled_share = 1 - RemainingThroughput(plan.workers(), 1);
      loss.slowdown = AsynchronousLossSlowdown(restart, JobTimeBetweenFailures(node, 1, device, 1));
      f.slowdown *= loss.slowdown;
    } else {
      loss.stall = restart + p.step_time * 0.5;
      loss.slowdown = SynchronousLossSlowdown(p.step_time, restart, f.between);
    }
    f.worker = loss;
  }
  f.throughput = EffectiveThroughput(job.update_batch / job.update_interval, f.slowdown);
  return f;
}

JobStretch MakeStretch(double updates, const JobOutlook& job, const Prediction& p) {
  JobStretch stretch;
  stretch.updates = updates;
  stretch.samples = job.update_batch * updates;
  stretch.time = job.update_interval * updates;
  stretch.low = stretch.time * (p.low / p.step_time);
  stretch.high = stretch.time * (p.high / p.step_time);
  // Steps of one worker, which are what a step's price and energy are of.
  const double steps = stretch.time / p.step_time;
  const auto for_steps = [&](const std::optional<double>& per_step) {
    return per_step ? std::optional<double>(*per_step * steps) : std::nullopt;
  };
  stretch.price_usd = for_steps(job.spending.price_usd);
  stretch.energy_j = for_steps(job.spending.energy_j);
  if (job.failures) {
    stretch.time_with_failures = stretch.time * job.failures->slowdown;
    if (stretch.price_usd) {
      stretch.price_with_failures_usd = *stretch.price_usd * job.failures->slowdown;
    }
  }
  return stretch;
}

}  // namespace

std::vector<std::string> CostsInSamples(const Plan& plan) {
  std::vector<std::string> costs;
  // One worker has nobody to be apart from, but may send to servers.
  if (plan.workers() > 1 && IsAsynchronous(plan)) costs.emplace_back("stale updates");
  if (plan.workers() > 1 && plan.local_steps > 1) costs.emplace_back("local steps");
  const bool sends = plan.workers() > 1 || (UsesServers(plan.strategy) && !plan.server.colocated);
  if (sends && plan.compress.exists()) costs.emplace_back("compressed gradients");
  return costs;
}

int ServerNodes(const Plan& plan) { return plan.server.colocated ? 0 : plan.servers; }

LimitOutlook MakeLimitOutlook(const Prediction& p, Duration<> limit) {
  LimitOutlook outlook;
  outlook.limit = limit;
  outlook.finishes = p.low <= limit;
  if (p.log_sd > 0) {
    // Above the step as far as its interval reaches, which is further than below where no run told
    // a pace. The lower end may be that of the compute, behind which no step lies.
    const double log_sd =
        limit > p.step_time ? std::log(p.high / p.step_time) / kNinetyPercent : p.log_sd;
    outlook.probability = NormalDistribution(std::log(limit / p.step_time) / log_sd);
  } else {
    outlook.probability = p.step_time <= limit ? 1 : 0;
  }
  return outlook;
}

void CheckOutlookOptions(const OutlookOptions& options) {
  RequirePositive(options.time_limit, "time-limit");
  RequirePositive(options.data_set, "data-set");
  RequirePositive(options.known_batch, "known-batch");
  RequirePositive(options.node_mtbf, "node-mtbf");
  RequirePositive(options.device_mtbf, "device-mtbf");
  RequirePositive(options.checkpoint_time, "checkpoint-time");
  if (options.noise_scale && !(options.noise_scale->si() >= 0)) {
    throw InputError(At("noise-scale"), fmt::format("{}", options.noise_scale->si()),
                     "is out of range", "at least 0");
  }
  if (options.least_steps && !(*options.least_steps >= 1)) {
    throw InputError(At("least-steps"), fmt::format("{}", *options.least_steps), "is out of range",
                     "at least 1");
  }
  const bool noise = options.noise_scale.has_value();
  RequireWith(noise, "noise-scale", options.known_batch || options.least_steps,
              "--known-batch or --least-steps");
  RequireWith(options.known_batch.has_value(), "known-batch", noise, "--noise-scale");
  RequireWith(options.least_steps.has_value(), "least-steps", noise, "--noise-scale");
  const bool node = options.node_mtbf.has_value();
  RequireWith(node, "node-mtbf", options.checkpoint_time.has_value(), "--checkpoint-time");
  RequireWith(options.checkpoint_time.has_value(), "checkpoint-time", node, "--node-mtbf");
  RequireWith(options.device_mtbf.has_value(), "device-mtbf", node,
              "--node-mtbf and --checkpoint-time");
  RequireWith(options.restart_time.has_value(), "restart-time", node,
              "--node-mtbf and --checkpoint-time");
}

JobOutlook MakeOutlook(const Prediction& p, const Plan& plan, const Cluster& cluster,
                       const std::optional<Device>& device, const OutlookOptions& options) {
  JobOutlook job;
  const SampleCount<> per_worker =
      Samples(static_cast<double>(plan.local_batch) * plan.accumulation_steps);
  if (IsAsynchronous(plan)) {
    job.update_batch = per_worker;
    job.update_interval = p.step_time / plan.workers();
  } else {
    job.update_batch = Samples(plan.global_batch()) - per_worker * plan.backup_workers;
    job.update_interval = p.step_time;
  }
  if (options.time_limit) job.limit = MakeLimitOutlook(p, *options.time_limit);
  job.spending = MakeSpending(p, plan, cluster, device);
  job.not_counted = CostsInSamples(plan);
  if (options.noise_scale && options.known_batch) {
    job.efficiency =
        StatisticalEfficiency(*options.noise_scale, *options.known_batch, job.update_batch);
    job.goodput = Goodput(job.update_batch / job.update_interval, *options.noise_scale,
                          *options.known_batch, job.update_batch);
    job.goodput_low = *job.goodput * (p.step_time / p.high);
    job.goodput_high = *job.goodput * (p.step_time / p.low);
  }
  if (options.node_mtbf && options.checkpoint_time) {
    job.failures = MakeFailures(p, plan, job, options);
  }
  if (options.data_set) {
    if (*options.data_set < job.update_batch) {
      throw InputError(
          At("data-set"), fmt::format("{}", options.data_set->in(kSamples)),
          "is less than a step takes",
          fmt::format("at least the {} samples of a step", job.update_batch.in(kSamples)));
    }
    job.epoch = MakeStretch(StepsPerEpoch(*options.data_set, job.update_batch), job, p);
  }
  if (options.noise_scale && options.least_steps) {
    job.target = MakeStretch(
        StepsToTarget(*options.least_steps, *options.noise_scale, job.update_batch), job, p);
  }
  return job;
}

}  // namespace stepcast
