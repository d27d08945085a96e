#include "predictor/search/limits.h"

#include <algorithm>
#include <bit>
#include <string>

#include "data/record/input_error.h"
#include "model/limits/limits.h"
#include "predictor/search/placement.h"

namespace stepcast {
namespace {

constexpr int kMostStrongBatch = 100'000'000;

// The plan on `workers` workers. Named hosts cannot be stretched over more nodes: the first ones
// repeat, so that the slowest link still counts.
Plan Scaled(const Plan& plan, int workers, int devices_per_node) {
  Plan scaled = plan;
  scaled.placement = FillNodes(workers, devices_per_node);
  if (!plan.hosts.empty()) {
    scaled.hosts.clear();
    for (int i = 0; i < scaled.nodes(); ++i) {
      scaled.hosts.push_back(plan.hosts[static_cast<std::size_t>(i) % plan.hosts.size()]);
    }
  }
  return scaled;
}

ScalingPoint Evaluate(const Predictor& predictor, const Plan& plan, StepTime<double>* step) {
  *step = predictor.PredictStep(plan);
  ScalingPoint point;
  point.workers = plan.workers();
  point.step_time = step->total();
  point.throughput = Samples(plan.global_batch()) / point.step_time;
  return point;
}

}  // namespace

ScalingLimits FindScalingLimits(const Predictor& predictor, const Plan& plan, int devices_per_node,
                                int most_workers, int strong_global_batch) {
  ScalingLimits limits;
  limits.most_workers = most_workers;
  StepTime<double> step;
  const Plan single_plan = Scaled(plan, 1, devices_per_node);
  const ScalingPoint single = Evaluate(predictor, single_plan, &step);
  const Duration<> compute = step.compute();
  ScalingPoint best = single;
  for (int w = 1; w <= most_workers; ++w) {
    ScalingPoint point = Evaluate(predictor, Scaled(plan, w, devices_per_node), &step);
    point.efficiency = point.throughput / (single.throughput * static_cast<double>(w));
    if (w > 1 && !limits.worth_it && single.throughput < point.throughput) limits.worth_it = w;
    if (!limits.crossing && step.compute() < step.exposed()) limits.crossing = w;
    if (point.efficiency < 0.5) {
      if (!limits.half_efficiency) limits.half_efficiency = w;
    } else {
      limits.half_efficiency.reset();
    }
    if (best.throughput < point.throughput) best = point;
    limits.efficiency_at_most = point.efficiency;
    if (std::has_single_bit(static_cast<unsigned>(w)) || w == most_workers) {
      limits.curve.push_back(point);
    }
  }
  limits.best_workers = best.workers;
  const Prediction most = predictor.Predict(Scaled(plan, most_workers, devices_per_node));
  limits.weak_binding = FindBinding(most);
  limits.flags = most.flags;

  const long long full_node = 1LL * plan.local_batch * plan.accumulation_steps * devices_per_node;
  if (strong_global_batch == 0 && full_node > kMostStrongBatch) {
    throw InputError({"", 0, "global-batch"}, std::to_string(full_node),
                     "samples on one full node are out of range",
                     "--global-batch of at most " + std::to_string(kMostStrongBatch));
  }
  limits.strong_global_batch =
      strong_global_batch > 0 ? strong_global_batch : static_cast<int>(full_node);
  const int most_shares = std::min(most_workers, limits.strong_global_batch);
  Plan strong_best;
  for (int w = 1; w <= most_shares; ++w) {
    Plan share = Scaled(plan, w, devices_per_node);
    const int per_worker = 1 + (limits.strong_global_batch - 1) / w;
    share.accumulation_steps = std::max(1, 1 + (per_worker - 1) / plan.local_batch);
    share.local_batch = 1 + (per_worker - 1) / share.accumulation_steps;
    const ScalingPoint point = Evaluate(predictor, share, &step);
    if (w == 1 || point.step_time < limits.strong_best_step) {
      limits.strong_best_step = point.step_time;
      limits.strong_best_workers = w;
      strong_best = share;
    }
  }
  limits.strong_binding = FindBinding(predictor.Predict(strong_best));

  const Plan many = Scaled(plan, std::max(2 * devices_per_node, 2), devices_per_node);
  const NetworkRates<double> network = predictor.Network(many);
  const DataSize<> gradient = predictor.workload().gradient_bytes;
  if (UsesServers(plan.strategy)) {
    const double servers = plan.servers;
    // Asynchronous workers push while others pull: both directions of the servers' links are used.
    const double directions = plan.strategy == Strategy::kPsAsync ? 2 : 1;
    limits.server_ceiling =
        ServerCeiling(Samples(static_cast<double>(plan.local_batch) * plan.accumulation_steps),
                      servers, network.server_bandwidth, gradient) *
        directions;
    limits.server_half_workers =
        ServerHalfCeilingWorkers(compute, servers, network.server_bandwidth, gradient);
  } else if (plan.strategy == Strategy::kAllreduce || plan.strategy == Strategy::kRing) {
    const double micro_steps = static_cast<double>(limits.strong_global_batch) /
                               (1.0 * plan.local_batch * plan.accumulation_steps);
    limits.ring_best_workers = RingBestWorkers(compute * micro_steps, network.hop.alpha);
  }
  return limits;
}

}  // namespace stepcast
