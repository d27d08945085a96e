#include <cmath>

#include "model/statistics/normal.h"
#include "model/step/discrepancy.h"
#include "predictor/compiled/compiled.h"

namespace stepcast::internal {
namespace {

// What is counted rather than fitted.
template <class T>
ServerPaths<T> CountsOf(const ServerPaths<LinkDual>& from) {
  ServerPaths<T> paths;
  paths.workers = from.workers;
  paths.servers = from.servers;
  paths.workers_per_node = from.workers_per_node;
  paths.nodes = from.nodes;
  paths.colocated = from.colocated;
  paths.multicast = from.multicast;
  paths.in_network_aggregation = from.in_network_aggregation;
  paths.largest_share = from.largest_share;
  paths.tensors = from.tensors;
  return paths;
}

// The fixed cost of a synchronisation.
ClusterParameter OverheadOf(const StepFacts& f) {
  return f.nodes > 1 || UsesServers(f.strategy) ? kNodeSyncOverhead : kDeviceSyncOverhead;
}

void SetCompute(const ComputeDual& micro, double by_micro, Gradient* gradient) {
  Gradient& g = *gradient;
  g[kWorkloadOffset + kFixedTime] = by_micro * micro.slope[kFixedLane];
  g[kWorkloadOffset + kFloorTime] = by_micro * micro.slope[kFloorLane];
  g[kWorkloadOffset + kSampleTime] = by_micro * micro.slope[kSampleLane];
  g[kHostContention] = by_micro * micro.slope[kContentionLane];
}

void SetLinks(const Lanes<kLinkLanes>& by_link, Gradient* gradient) {
  (*gradient)[kNodeLink] = by_link[kNodeLinkLane];
  for (int lane = kFlowLane; lane < kLinkLanesUsed; ++lane) {
    (*gradient)[kLinkLaneParameters[lane]] = by_link[lane];
  }
}

}  // namespace

template <bool kHeldBack>
[[gnu::flatten]] SyncSlopes CompiledState::ByCollective(const StepFacts& f, const KnownParts& parts,
                                                        Duration<> backward,
                                                        Duration<> idle) const {
  using T = DualOf<kHeldBack ? kHeldLanes : kFreeLanes>;
  const CollectiveHops<LinkDual> from =
      MakeCollectiveHops<LinkDual>(f, cluster_by_link, parts, nullptr);
  CollectiveHops<T> hops;
  hops.node_link = from.node_link;
  hops.node = {Seeded<Duration<T>>(from.node.alpha, kAlphaLane),
               Seeded<DataRate<T>>(from.node.bandwidth, kBandwidthLane)};
  hops.device = {Seeded<Duration<T>>(from.device.alpha, kDeviceAlphaLane),
                 Seeded<DataRate<T>>(from.device.bandwidth, kDeviceBandwidthLane)};
  hops.helper_link = Seeded<DataRate<T>>(from.helper_link, kHelperLane);
  const Duration<T> pass = Seeded<Duration<T>>(backward, kBackwardLane);
  Duration<T> silence = idle;
  Duration<T> timeout = cluster.loss_timeout();
  if constexpr (kHeldBack) {
    silence = Seeded<Duration<T>>(idle, kIdleLane);
    timeout = Seeded<Duration<T>>(cluster.loss_timeout(), kSilenceLane);
  }
  const Synchronisation<T> sync = Synchronise<T>(f, hops, pass, silence, timeout, parts, nullptr);

  SyncSlopes slopes;
  slopes.limiter = sync.limiter;
  const auto take = [&](const Duration<T>& time, Duration<>* value, TimeSlopes* to) {
    const auto& by = time.si().slope;
    *value = ValueOf(time);
    to->by_backward = by[kBackwardLane];
    to->by_link = from.node.alpha.si().slope * by[kAlphaLane] +
                  from.node.bandwidth.si().slope * by[kBandwidthLane] +
                  from.device.bandwidth.si().slope * by[kDeviceBandwidthLane] +
                  from.helper_link.si().slope * by[kHelperLane];
    to->other[kDeviceLatencyOf] = by[kDeviceAlphaLane] * cluster.si[kDeviceLatency];
    if constexpr (kHeldBack) {
      to->by_idle = by[kIdleLane];
      to->by_timeout = by[kSilenceLane] * cluster.si[kLossTimeout];
    }
  };
  take(sync.end, &slopes.end, &slopes.of_end);
  take(sync.All(f), &slopes.all, &slopes.of_all);
  slopes.transfer = ValueOf(sync.Transfer(f));
  return slopes;
}

template <bool kHeldBack>
[[gnu::flatten]] SyncSlopes CompiledState::ByServers(const StepFacts& f, const KnownParts& parts,
                                                     Duration<> backward, Duration<> idle) const {
  using T = DualOf<kHeldBack ? kHeldLanes : kFreeLanes>;
  const ServerRoutes<LinkDual> routes =
      MakeServerRoutes<LinkDual>(f, cluster_by_link, workload_by_link, parts, nullptr);
  const ServerPaths<LinkDual>& from = routes.paths;
  ServerRoutes<T> to_routes;
  to_routes.node_link = routes.node_link;
  to_routes.server_link = routes.server_link;
  to_routes.connection = routes.connection;
  to_routes.paths = CountsOf<T>(from);
  ServerPaths<T>& paths = to_routes.paths;
  paths.worker.bandwidth = Seeded<DataRate<T>>(from.worker.bandwidth, kBandwidthLane);
  paths.server_bandwidth = Seeded<DataRate<T>>(from.server_bandwidth, kServerBandwidthLane);
  paths.initiation = Seeded<Duration<T>>(cluster.transfer_initiation(), kInitiationLane);
  paths.server_rate = Seeded<DataRate<T>>(cluster.server_rate(), kServerRateLane);
  paths.update = Seeded<DurationPerByte<T>>(from.update, kUpdateLane);
  const Duration<T> pass = Seeded<Duration<T>>(backward, kBackwardLane);
  Duration<T> silence = idle;
  Duration<T> timeout = cluster.loss_timeout();
  if constexpr (kHeldBack) {
    if (from.connection.si() > 0.0) {
      paths.connection = Seeded<DurationPerByte<T>>(from.connection, kConnectionLane);
    }
    silence = Seeded<Duration<T>>(idle, kIdleLane);
    timeout = Seeded<Duration<T>>(cluster.loss_timeout(), kSilenceLane);
    paths.worker.alpha = Seeded<Duration<T>>(from.worker.alpha, kHopLane);
    paths.rpc_rounds = T(cluster.rpc_rounds());
  }
  Synchronisation<T> sync = Synchronise<T>(f, to_routes, pass, silence, timeout, parts, nullptr);

  // Two phases of alpha (1 + 2 rho k), in the end and in the whole. Where the hop has a lane they
  // are in the value already, with rho as a constant.
  const double trips = 2 * cluster.rpc_rounds() * from.tensors;
  const double alpha = from.worker.alpha.si().value;
  const double by_alpha = kHeldBack ? 0 : 2 * (1 + trips);
  SyncSlopes slopes;
  slopes.limiter = sync.limiter;
  const auto take = [&](const Duration<T>& time, Duration<>* value, TimeSlopes* to) {
    const auto& by = time.si().slope;
    *value = ValueOf(time) + Seconds(by_alpha * alpha);
    to->by_backward = by[kBackwardLane];
    double by_hop = by_alpha;
    to->by_link = from.worker.bandwidth.si().slope * by[kBandwidthLane] +
                  from.server_bandwidth.si().slope * by[kServerBandwidthLane];
    if constexpr (kHeldBack) {
      by_hop = by[kHopLane];
      to->by_link += from.connection.si().slope * by[kConnectionLane];
      to->by_idle = by[kIdleLane];
      to->by_timeout = by[kSilenceLane] * cluster.si[kLossTimeout];
    }
    to->by_link += from.worker.alpha.si().slope * by_hop;
    to->other[kInitiationOf] = by[kInitiationLane] * cluster.si[kTransferInitiation];
    to->other[kServerRateOf] = by[kServerRateLane] * cluster.si[kServerRate];
    to->other[kRoundsOf] = 2 * alpha * trips;
    to->by_update = by[kUpdateLane] * from.update.si().value;
  };
  take(sync.end, &slopes.end, &slopes.of_end);
  take(sync.All(f), &slopes.all, &slopes.of_all);
  slopes.transfer = ValueOf(sync.Transfer(f));
  return slopes;
}

template <class ByStep, class ByCompute>
void CompiledState::SetInterval(const PlanQuery& query, Duration<> step, Duration<> compute,
                                const ByStep& by_step, const ByCompute& by_compute,
                                Duration<> shown, Forecast* forecast) const {
  const double profile_sd = ProfileLogSd(query.local_batch);
  const double discrepancy = Discrepancy(
      {query.workers, query.nodes, query.devices_per_node, query.local_batch}, range, batches);
  const double beyond = profile_sd * profile_sd + discrepancy * discrepancy;
  const double scatter = belief.ScatterAt(shown / step);
  forecast->step_time = step;
  forecast->log_sd = std::sqrt(Variance(covariance, by_step()) + scatter * scatter + beyond);
  const double factor = std::exp(kNinetyPercent * forecast->log_sd);
  forecast->high = step * factor;
  forecast->low = step / factor;
  // However little is known of the network, no step is shorter than its compute; which is looked at
  // only where it can matter.
  const double compute_scatter = belief.ScatterAt(0);
  const double least = compute_scatter * compute_scatter + beyond;
  if (compute * factor < step * std::exp(kNinetyPercent * std::sqrt(least))) return;
  const double log_sd = std::sqrt(Variance(covariance, by_compute()) + least);
  forecast->low = Max(forecast->low, compute / std::exp(kNinetyPercent * log_sd));
}

[[gnu::flatten]] void CompiledState::Predict(const PlanQuery& query, const StepFacts& f,
                                             Forecast* forecast) const {
  if (f.strategy == Strategy::kPsAsync && !Alone(f)) {
    PredictAsynchronous(query, f, forecast);
    return;
  }
  const KnownParts parts = PartsOf(query);
  const bool servers = UsesServers(f.strategy);
  const bool alone = Alone(f);
  const double a = f.accumulation_steps;
  const ComputeDual micro = MicroStep(f, cluster_by_compute, workload_by_compute).si();
  const double share = cluster.overlap_share();
  const Duration<> backward = Seconds(micro.value * share);
  const bool updates = f.has_compute && (!servers || alone);
  const double update = updates ? workload.update_time().si() : 0;

  SyncSlopes sync;
  if (!alone) {
    const Duration<> idle = IdleTime(f, Seconds(micro.value), backward);
    // Round trips and losses hold flows back.
    const auto holds = [](const LinkFacts& link) { return link.rtt || link.loss.value_or(0) > 0; };
    const bool held = holds(f.link) || holds(f.server_link);
    sync = servers ? held ? ByServers<true>(f, parts, backward, idle)
                          : ByServers<false>(f, parts, backward, idle)
           : held ? ByCollective<true>(f, parts, backward, idle)
                   : ByCollective<false>(f, parts, backward, idle);
  }

  // The step, by what it is joined from.
  const auto t = Seeded<Duration<JoinDual>>(Seconds(micro.value), kMicroLane);
  const auto t_b = Seeded<Duration<JoinDual>>(backward, kPassLane);
  const OverlapSplit<JoinDual> split =
      alone ? OverlapSplit<JoinDual>{}
            : SplitOverlap(f.overlap, t_b, Seeded<Duration<JoinDual>>(sync.all, kAllLane),
                           Seeded<Duration<JoinDual>>(sync.end, kEndLane));
  const Duration<JoinDual> contention =
      OverlapContention(split, t_b, JoinDual(cluster.overlap_contention()));
  const ClusterParameter overhead = OverheadOf(f);
  const Duration<> fixed = alone ? Duration<>() : Seconds(cluster.si[overhead]);
  const double spread = alone ? 0 : workload.straggler_spread() * (std::sqrt(a) * parts.Slowest(f));
  const Duration<JoinDual> wait = t * spread;
  const Duration<JoinDual> compute = t * a + contention + Duration<JoinDual>(Seconds(update));
  const Duration<JoinDual> shown = split.exposed + Duration<JoinDual>(fixed) + wait;
  const Duration<JoinDual> step = compute + shown;

  // By ln(parameter), as a share of a part of the step.
  const auto gradient_of = [&](const JoinDual& part, bool whole_step) {
    const double scale = 1 / part.value;
    const Lanes<kJoinLanes> by = part.slope * scale;
    const double by_end = by[kEndLane];
    const double by_all = by[kAllLane];
    const auto weigh = [&](double of_end, double of_all) {
      return by_end * of_end + by_all * of_all;
    };
    // Silence is all micro-steps but for what of the last hides behind its backward pass.
    const double by_idle = weigh(sync.of_end.by_idle, sync.of_all.by_idle);
    const double by_pass = by[kPassLane] + weigh(sync.of_end.by_backward, sync.of_all.by_backward) -
                           by_idle * HiddenSilence(f);
    const double by_micro = by[kMicroLane] + by_pass * share + by_idle * a;
    Gradient g = Gradient::Zero();
    SetCompute(micro, by_micro, &g);
    g[kOverlapShare] = by_pass * backward.si();
    g[kOverlapContention] = contention.si().value * scale;
    g[kWorkloadOffset + kUpdateTime] =
        update * scale + weigh(sync.of_end.by_update, sync.of_all.by_update);
    if (whole_step) g[kWorkloadOffset + kStragglerSpread] = wait.si().value * scale;
    if (alone) return g;
    if (whole_step) g[overhead] = fixed.si() * scale;
    for (int i = 0; i < kOthers; ++i) {
      g[kOtherParameters[i]] = weigh(sync.of_end.other[i], sync.of_all.other[i]);
    }
    SetLinks(sync.of_end.by_link * by_end + sync.of_all.by_link * by_all, &g);
    g[kLossTimeout] += weigh(sync.of_end.by_timeout, sync.of_all.by_timeout);
    return g;
  };
  SetInterval(
      query, ValueOf(step), ValueOf(compute), [&] { return gradient_of(step.si(), true); },
      [&] { return gradient_of(compute.si(), false); }, ValueOf(shown), forecast);
  const Duration<> transfer =
      sync.all.si() > 0 ? ValueOf(split.exposed) * (sync.transfer / sync.all) : Duration<>();
  forecast->limiter =
      transfer < ValueOf(split.exposed) - transfer + fixed ? Limiter::kLatency : sync.limiter;
}

// Asynchronous workers have no synchronisation apart: the whole step is carried through.
void CompiledState::PredictAsynchronous(const PlanQuery& query, const StepFacts& f,
                                        Forecast* forecast) const {
  enum Lane {
    kByMicro,
    kByShare,
    kBySpread,
    kByUpdate,
    kByOverhead,
    kByAlpha,
    kByBandwidth,
    kByServerBandwidth,
    kByInitiation,
    kByServerRate,
    kByRounds,
    kByConnection,
    kByAll
  };
  using T = DualOf<kByAll>;
  const KnownParts parts = PartsOf(query);
  const ComputeDual micro = MicroStep(f, cluster_by_compute, workload_by_compute).si();
  const ServerRoutes<LinkDual> routes =
      MakeServerRoutes<LinkDual>(f, cluster_by_link, workload_by_link, parts, nullptr);
  const ServerPaths<LinkDual>& from = routes.paths;
  const auto number = [](double value, int lane) {
    T dual(value);
    dual.slope.Set(lane, 1);
    return dual;
  };
  const ClusterParameter overhead = OverheadOf(f);
  StepInputs<T> inputs;
  inputs.micro = Duration<T>::FromSi(number(micro.value, kByMicro));
  inputs.overlap_share = number(cluster.overlap_share(), kByShare);
  inputs.straggler_spread = number(workload.straggler_spread(), kBySpread);
  inputs.update = Seeded<Duration<T>>(workload.update_time(), kByUpdate);
  inputs.overhead = Duration<T>::FromSi(number(cluster.si[overhead], kByOverhead));
  inputs.servers.node_link = routes.node_link;
  inputs.servers.server_link = routes.server_link;
  inputs.servers.connection = routes.connection;
  inputs.servers.paths = CountsOf<T>(from);
  ServerPaths<T>& paths = inputs.servers.paths;
  paths.worker = {Seeded<Duration<T>>(from.worker.alpha, kByAlpha),
                  Seeded<DataRate<T>>(from.worker.bandwidth, kByBandwidth)};
  paths.server_bandwidth = Seeded<DataRate<T>>(from.server_bandwidth, kByServerBandwidth);
  paths.initiation = Seeded<Duration<T>>(cluster.transfer_initiation(), kByInitiation);
  paths.server_rate = Seeded<DataRate<T>>(cluster.server_rate(), kByServerRate);
  paths.rpc_rounds = number(cluster.rpc_rounds(), kByRounds);
  paths.update = inputs.update / f.gradient;
  if (from.connection.si() > 0.0) {
    paths.connection = Seeded<DurationPerByte<T>>(from.connection, kByConnection);
  }
  const stepcast::StepTime<T> step = JoinStep<T>(f, inputs, parts, nullptr);

  const auto gradient_of = [&](const Duration<T>& part) {
    const Lanes<kByAll> by = part.si().slope * (1 / part.si().value);
    Gradient g = Gradient::Zero();
    SetCompute(micro, by[kByMicro], &g);
    g[kOverlapShare] = by[kByShare] * cluster.overlap_share();
    g[kWorkloadOffset + kStragglerSpread] = by[kBySpread] * workload.straggler_spread();
    g[kWorkloadOffset + kUpdateTime] = by[kByUpdate] * workload.update_time().si();
    g[overhead] = by[kByOverhead] * cluster.si[overhead];
    g[kTransferInitiation] = by[kByInitiation] * cluster.si[kTransferInitiation];
    g[kServerRate] = by[kByServerRate] * cluster.si[kServerRate];
    g[kRpcRounds] = by[kByRounds] * cluster.si[kRpcRounds];
    SetLinks(from.worker.alpha.si().slope * by[kByAlpha] +
                 from.worker.bandwidth.si().slope * by[kByBandwidth] +
                 from.server_bandwidth.si().slope * by[kByServerBandwidth] +
                 from.connection.si().slope * by[kByConnection],
             &g);
    return g;
  };
  SetInterval(
      query, ValueOf(step.total()), ValueOf(step.compute()),
      [&] { return gradient_of(step.total()); }, [&] { return gradient_of(step.compute()); },
      ValueOf(step.exposed() + step.straggler_wait), forecast);
  forecast->limiter = step.limiter;
}

}  // namespace stepcast::internal
