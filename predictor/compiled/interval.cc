#include <algorithm>
#include <cmath>

#include "model/statistics/normal.h"
#include "model/step/discrepancy.h"
#include "predictor/compiled/compiled.h"

namespace stepcast::internal {
namespace {

// What is counted rather than fitted.
template <class T>
void SetCounts(const ServerPaths<HopDual>& from, ServerPaths<T>* paths) {
  paths->workers = from.workers;
  paths->servers = from.servers;
  paths->workers_per_node = from.workers_per_node;
  paths->nodes = from.nodes;
  paths->colocated = from.colocated;
  paths->multicast = from.multicast;
  paths->in_network_aggregation = from.in_network_aggregation;
  paths->largest_share = from.largest_share;
  paths->tensors = from.tensors;
}

// The fixed cost of a synchronisation.
ClusterParameter OverheadOf(const StepFacts& f) {
  return LeavesNode(f) ? kNodeSyncOverhead : kDeviceSyncOverhead;
}

void SetCompute(const ComputeDual& micro, double by_micro, Gradient* gradient) {
  Gradient& g = *gradient;
  g[kWorkloadColumn + kFixedTime] = by_micro * micro.slope[kFixedLane];
  g[kWorkloadColumn + kFloorTime] = by_micro * micro.slope[kFloorLane];
  g[kWorkloadColumn + kSampleTime] = by_micro * micro.slope[kSampleLane];
  g[kHostContention] = by_micro * micro.slope[kContentionLane];
}

// Lanes, of which some more are zero.
template <int kFew>
Lanes<kHeldLanes> Widened(const Lanes<kFew>& few) {
  if constexpr (kFew == kHeldLanes) {
    return few;
  } else {
    Lanes<kHeldLanes> lanes;
    for (int i = 0; i < kFew; ++i) lanes.Set(i, few[i]);
    return lanes;
  }
}

// The times of a synchronisation, with their derivatives.
template <class T>
void SetTimes(const StepFacts& f, const Synchronisation<T>& sync, SyncSlopes* slopes) {
  const Duration<T> all = sync.All(f);
  slopes->limiter = sync.limiter;
  slopes->end = ValueOf(sync.end);
  slopes->all = ValueOf(all);
  slopes->transfer = ValueOf(sync.Transfer(f));
  slopes->of_end = Widened(sync.end.si().slope);
  slopes->of_all = Widened(all.si().slope);
}

// Adds what a part of the step that depends so on a plan's routes depends on through them.
void AddRoute(const RouteSlopes& route, double by_node_bandwidth, double by_server_rate,
              double by_connection, Gradient* gradient) {
  Gradient& g = *gradient;
  const Lanes<kHopLanes> by_hop = route.node_bandwidth.slope * by_node_bandwidth;
  g[kHostBandwidth] += by_hop[kHostLane];
  g[kHostSharing] += by_hop[kSharingLane];
  g[kNodeScaling] += by_hop[kScalingLane];
  Lanes<kLinkLanes> by_link = route.node_rate.si().slope * by_hop[kRateLane] +
                              route.server_rate.si().slope * by_server_rate;
  if (by_connection != 0) {
    const Lanes<kHopLanes> by_limits = route.connection.slope * by_connection;
    by_link += route.limits.window.si().slope * by_limits[kWindowLimitLane] +
               route.limits.loss.si().slope * by_limits[kLossLimitLane];
  }
  g[kLinkColumn] += by_link[kNodeLinkLane];
  for (int lane = kFlowLane; lane < kLinkLanes; ++lane) {
    g[kLinkLaneParameters[lane]] += by_link[lane];
  }
}

}  // namespace

template <bool kHeldBack>
[[gnu::flatten]] void CompiledState::ByCollective(const StepFacts& f, const KnownParts& parts,
                                                  Duration<> backward, Duration<> idle,
                                                  SyncSlopes* slopes) const {
  using T = DualOf<kHeldBack ? kHeldLanes : kFreeLanes>;
  const CollectiveHops<HopDual> from = MakeCollectiveHops<HopDual>(
      f, cluster_by_hop, HopParts{parts, &cluster_by_link, &slopes->route}, nullptr);
  slopes->route.node_bandwidth = from.node.bandwidth.si();
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
  SetTimes(f, Synchronise<T>(f, hops, pass, silence, timeout, parts, nullptr), slopes);
}

template <bool kHeldBack>
[[gnu::flatten]] void CompiledState::ByServers(const StepFacts& f, const KnownParts& parts,
                                               Duration<> backward, Duration<> idle,
                                               SyncSlopes* slopes) const {
  using T = DualOf<kHeldBack ? kHeldLanes : kFreeLanes>;
  const ServerRoutes<HopDual> routes =
      MakeServerRoutes<HopDual>(f, cluster_by_hop, workload_by_hop,
                                HopParts{parts, &cluster_by_link, &slopes->route}, nullptr);
  const ServerPaths<HopDual>& from = routes.paths;
  slopes->route.node_bandwidth = from.worker.bandwidth.si();
  slopes->route.connection = from.connection.si();
  slopes->update_per_byte = from.update.si().value;
  ServerRoutes<T> to_routes;
  to_routes.node_link = routes.node_link;
  to_routes.server_link = routes.server_link;
  to_routes.connection = routes.connection;
  ServerPaths<T>& paths = to_routes.paths;
  SetCounts(from, &paths);
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
    paths.worker.alpha = Seeded<Duration<T>>(from.worker.alpha, kServerAlphaLane);
    paths.rpc_rounds = T(cluster.rpc_rounds());
  }
  SetTimes(f, Synchronise<T>(f, to_routes, pass, silence, timeout, parts, nullptr), slopes);
  // Two phases of alpha (1 + 2 rho k), in the end and in the whole. Where the hop has a lane they
  // are there already, with rho as a constant.
  const double trips = 2 * cluster.rpc_rounds() * from.tensors;
  const Duration<> alpha = ValueOf(from.worker.alpha);
  slopes->by_rounds = 2 * trips * alpha.si();
  if constexpr (!kHeldBack) {
    const double phases = 2 * (1 + trips);
    slopes->end += alpha * phases;
    slopes->all += alpha * phases;
    slopes->of_end.Set(kServerAlphaLane, phases);
    slopes->of_all.Set(kServerAlphaLane, phases);
  }
}

void CompiledState::AddSynchronisation(const StepFacts& f, const SyncSlopes& sync,
                                       const Lanes<kHeldLanes>& by, double by_end_and_all,
                                       Gradient* gradient) const {
  Gradient& g = *gradient;
  g[kLossTimeout] += by[kSilenceLane] * cluster.si[kLossTimeout];
  if (!UsesServers(f.strategy)) {
    g[kLinkLatency] += by[kAlphaLane] * cluster.si[kLinkLatency];
    g[kDeviceLatency] += by[kDeviceAlphaLane] * cluster.si[kDeviceLatency];
    g[kHostBandwidth] += by[kDeviceBandwidthLane] * cluster.si[kHostBandwidth];
    AddRoute(sync.route, by[kBandwidthLane], by[kHelperLane], 0, &g);
    return;
  }
  g[kLinkLatency] += by[kServerAlphaLane] * cluster.si[kLinkLatency];
  g[kTransferInitiation] += by[kInitiationLane] * cluster.si[kTransferInitiation];
  g[kServerRate] += by[kServerRateLane] * cluster.si[kServerRate];
  g[kRpcRounds] += sync.by_rounds * by_end_and_all;
  g[kWorkloadColumn + kUpdateTime] += by[kUpdateLane] * sync.update_per_byte;
  AddRoute(sync.route, by[kBandwidthLane], by[kServerBandwidthLane], by[kConnectionLane], &g);
}

template <class ByStep, class ByCompute>
void CompiledState::SetInterval(const PlanQuery& query, const KnownParts& parts, Duration<> step,
                                Duration<> compute, const ByStep& by_step,
                                const ByCompute& by_compute, Duration<> shown,
                                Forecast* forecast) const {
  const double profile_sd = ProfileLogSd(query.local_batch);
  const double discrepancy =
      Discrepancy({query.workers, query.nodes, query.devices_per_node, query.local_batch}, range,
                  batches, [&](int count) { return parts.Doublings(count); });
  const double beyond = profile_sd * profile_sd + discrepancy * discrepancy;
  const double scatter = belief.ScatterAt(shown / step);
  forecast->step_time = step;
  forecast->log_sd =
      std::sqrt(std::max(0.0, covariance.Of(by_step())) + scatter * scatter + beyond);
  const double factor = std::exp(kNinetyPercent * forecast->log_sd);
  forecast->high = step * factor;
  forecast->low = step / factor;
  // However little is known of the network, no step is shorter than its compute; which is looked at
  // only where it can matter.
  const double compute_scatter = belief.ScatterAt(0);
  const double least = compute_scatter * compute_scatter + beyond;
  if (compute * factor < step * std::exp(kNinetyPercent * std::sqrt(least))) return;
  const double log_sd = std::sqrt(std::max(0.0, covariance.Of(by_compute())) + least);
  forecast->low = Max(forecast->low, compute / std::exp(kNinetyPercent * log_sd));
}

[[gnu::flatten]] void CompiledState::Predict(const PlanQuery& query, const StepFacts& f,
                                             Forecast* forecast) const {
  if (TraitsOf(f.strategy).asynchronous() && !Alone(f)) {
    PredictAsynchronous(query, f, forecast);
    return;
  }
  const KnownParts parts = PartsOf(query);
  const bool servers = UsesServers(f.strategy);
  const bool alone = Alone(f);
  const double a = f.accumulation_steps;
  const ComputeDual micro = MicroStep(f, cluster_by_compute, workload_by_compute, parts).si();
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
    if (servers) {
      held ? ByServers<true>(f, parts, backward, idle, &sync)
           : ByServers<false>(f, parts, backward, idle, &sync);
    } else {
      held ? ByCollective<true>(f, parts, backward, idle, &sync)
           : ByCollective<false>(f, parts, backward, idle, &sync);
    }
  }

  // The step, by what it is joined from.
  const ClusterParameter overhead = OverheadOf(f);
  JoinInputs<JoinDual> in;
  in.micro_steps = a;
  in.micro = Seeded<Duration<JoinDual>>(Seconds(micro.value), kMicroLane);
  in.backward = Seeded<Duration<JoinDual>>(backward, kPassLane);
  in.update = Seconds(update);
  if (!alone) {
    in.all = Seeded<Duration<JoinDual>>(sync.all, kAllLane);
    in.end = Seeded<Duration<JoinDual>>(sync.end, kEndLane);
    in.contention = cluster.overlap_contention();
    in.overhead = Seconds(cluster.si[overhead]);
    in.wait = workload.straggler_spread() * (std::sqrt(a) * parts.Slowest(f));
  }
  const JoinedStep<JoinDual> joined = Join(f.overlap, in);
  const Duration<JoinDual> compute = joined.compute();
  const Duration<JoinDual> shown = joined.shown();
  const Duration<JoinDual> step = compute + shown;

  // By ln(parameter), as a share of a part of the step.
  const auto gradient_of = [&](const JoinDual& part, bool whole_step) {
    const double scale = 1 / part.value;
    const Lanes<kJoinLanes> by = part.slope * scale;
    const Lanes<kHeldLanes> by_sync = sync.of_end * by[kEndLane] + sync.of_all * by[kAllLane];
    // Silence is all micro-steps but for what of the last hides behind its backward pass.
    const double by_idle = by_sync[kIdleLane];
    const double by_pass = by[kPassLane] + by_sync[kBackwardLane] - by_idle * HiddenSilence(f);
    const double by_micro = by[kMicroLane] + by_pass * share + by_idle * a;
    Gradient g = {};
    SetCompute(micro, by_micro, &g);
    g[kOverlapShare] = by_pass * backward.si();
    g[kOverlapContention] = joined.contention.si().value * scale;
    g[kWorkloadColumn + kUpdateTime] = update * scale;
    if (whole_step) g[kWorkloadColumn + kStragglerSpread] = joined.wait.si().value * scale;
    if (alone) return g;
    if (whole_step) g[overhead] = joined.overhead.si().value * scale;
    AddSynchronisation(f, sync, by_sync, by[kEndLane] + by[kAllLane], &g);
    return g;
  };
  SetInterval(
      query, parts, ValueOf(step), ValueOf(compute), [&] { return gradient_of(step.si(), true); },
      [&] { return gradient_of(compute.si(), false); }, ValueOf(shown), forecast);
  const Duration<> exposed = ValueOf(joined.exposed);
  const Duration<> transfer = ExposedTransfer(exposed, sync.transfer, sync.all);
  forecast->limiter =
      transfer < exposed - transfer + ValueOf(joined.overhead) ? Limiter::kLatency : sync.limiter;
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
  const ComputeDual micro = MicroStep(f, cluster_by_compute, workload_by_compute, parts).si();
  RouteSlopes route;
  const ServerRoutes<HopDual> routes = MakeServerRoutes<HopDual>(
      f, cluster_by_hop, workload_by_hop, HopParts{parts, &cluster_by_link, &route}, nullptr);
  const ServerPaths<HopDual>& from = routes.paths;
  route.node_bandwidth = from.worker.bandwidth.si();
  route.connection = from.connection.si();
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
  ServerPaths<T>& paths = inputs.servers.paths;
  SetCounts(from, &paths);
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
    Gradient g = {};
    SetCompute(micro, by[kByMicro], &g);
    g[kOverlapShare] = by[kByShare] * cluster.overlap_share();
    g[kWorkloadColumn + kStragglerSpread] = by[kBySpread] * workload.straggler_spread();
    g[kWorkloadColumn + kUpdateTime] = by[kByUpdate] * workload.update_time().si();
    g[overhead] = by[kByOverhead] * cluster.si[overhead];
    g[kTransferInitiation] = by[kByInitiation] * cluster.si[kTransferInitiation];
    g[kServerRate] = by[kByServerRate] * cluster.si[kServerRate];
    g[kRpcRounds] = by[kByRounds] * cluster.si[kRpcRounds];
    g[kLinkLatency] = by[kByAlpha] * cluster.si[kLinkLatency];
    AddRoute(route, by[kByBandwidth], by[kByServerBandwidth], by[kByConnection], &g);
    return g;
  };
  SetInterval(
      query, parts, ValueOf(step.total()), ValueOf(step.compute()),
      [&] { return gradient_of(step.total()); }, [&] { return gradient_of(step.compute()); },
      ValueOf(step.exposed() + step.straggler_wait), forecast);
  forecast->limiter = step.limiter;
}

}  // namespace stepcast::internal
