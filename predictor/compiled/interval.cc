#include "predictor/compiled/interval.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>

#include "model/numeric/dual.h"
#include "model/statistics/normal.h"
#include "model/step/alternatives.h"
#include "model/step/answer.h"
#include "model/step/discrepancy.h"
#include "model/step/job_spread.h"
#include "model/step/slow_ends.h"
#include "predictor/arrival.h"
#include "predictor/compiled/compiled.h"

namespace stepcast::internal {
namespace {

// Parameters of the rate of a path, in this order; derivatives are by their logarithms.
enum LinkLane {
  kNodeLinkLane,
  kFlowLane,
  kLatencyLane,
  kWindowLane,
  kTimeoutLane,
  kSpreadLane,
  kServerLinkLane,
  kLinkParameterLanes,
  kStatedShareLane = kLinkParameterLanes,  // of the line rates that the plan states
  kLinkLanes,
};
// The first is that of the slowest host's link; the latency is that of the plan's transport.
inline constexpr ClusterParameter kLinkLaneParameters[kLinkParameterLanes] = {
    kLinkBandwidth, kFlowBandwidth, kLinkLatency,  kFlowWindow,
    kLossTimeout,   kHopSpread,     kLinkBandwidth};
using LinkDual = DualOf<kLinkLanes>;

// The bandwidth of a hop depends on the rate of its path, by the value, and on parameters, by their
// logarithms. The limits of a single connection depend on none of these, and have the first two
// places for its limits.
enum HopLane {
  kRateLane,
  kHostLane,
  kSharingLane,
  kUnusedLane,  // lanes are even
  kHopLanes,
  kWindowLimitLane = kRateLane,
  kLossLimitLane = kHostLane,
};
using HopDual = DualOf<kHopLanes>;

// The rates that one plan's routes were made from, and the hops by their derivatives.
struct RouteSlopes {
  // A rate, looked up or computed here; null where a plan has none.
  struct Rate {
    const DataRate<LinkDual>* bandwidth = nullptr;
    std::optional<PathRate<LinkDual>> computed;
  };
  Rate node;
  Rate server;                                 // or a helper's
  std::optional<FlowLimits<LinkDual>> limits;  // of a connection
  HopDual node_bandwidth;
  HopDual connection;
  // The columns of lanes that differ from plan to plan.
  ClusterParameter latency = kLinkLatency;
  bool mesh = false;  // the lane of hop_spread is that of mesh_share

  // Not the default one, which g++ makes a constant of that it copies, the room for rates included.
  RouteSlopes() {}  // NOLINT(modernize-use-equals-default): see above
  ~RouteSlopes() = default;
  RouteSlopes(const RouteSlopes&) = delete;  // rates lie in it
  RouteSlopes& operator=(const RouteSlopes&) = delete;
};

// Parameters that a micro-step depends on.
enum ComputeLane { kFixedLane, kFloorLane, kSampleLane, kContentionLane, kComputeLanes };
using ComputeDual = DualOf<kComputeLanes>;

// A synchronisation depends on these, by the values themselves: a collective, and servers in the
// same places. The last ones are needed only where a round trip or loss holds flows back, or where
// the forward pass waits too.
enum SyncLane {
  kBackwardLane,
  kBandwidthLane,
  kAlphaLane,
  kDeviceAlphaLane,
  kDeviceBandwidthLane,
  kHelperLane,
  kFreeLanes,
  kServerBandwidthLane = kAlphaLane,
  kInitiationLane = kDeviceAlphaLane,
  kServerRateLane = kDeviceBandwidthLane,
  kUpdateLane = kHelperLane,
  kConnectionLane = kFreeLanes,
  kServerAlphaLane,
  kMicroStepLane,
  kSilenceLane,
  kHeldLanes,
};

// The step is joined from these, of compute and of synchronisation.
enum JoinLane { kMicroLane, kPassLane, kEndLane, kAllLane, kJoinLanes };
using JoinDual = DualOf<kJoinLanes>;

// A synchronisation, and the derivatives of its times by its lanes.
struct SyncSlopes {
  Duration<> end;
  Duration<> all;
  Duration<> transfer;  // of it, bytes at their pace
  Limiter limiter = Limiter::kNothing;
  Lanes<kHeldLanes> of_end;
  Lanes<kHeldLanes> of_all;
  double by_rounds = 0;  // of either, by ln(rpc_rounds)

  RouteSlopes route;
  double update_per_byte = 0;
};

// A quantity of this value, by itself.
template <class Q, class D, class S>
Q Seeded(const Quantity<D, S>& value, int lane) {
  typename Q::Scalar dual(ValueOf(value.si()));
  dual.slope.Set(lane, 1);
  return Q::FromSi(dual);
}

// Columns that few plans depend on.
inline constexpr int kRareColumns[] = {kRdmaLatency, kMeshShare,     kTransferInitiation,
                                       kServerRate,  kRpcRounds,     kFlowWindow,
                                       kLossTimeout, kSlowdownColumn};

// Where the columns of model/step/answer.h lie in a gradient: the rare ones last.
constexpr std::array<std::size_t, kPlanColumns> PlacesOfColumns() {
  std::array<std::size_t, kPlanColumns> places{};
  std::size_t next = 0;
  for (const bool rare : {false, true}) {
    for (int column = 0; column < kPlanColumns; ++column) {
      bool is_rare = false;
      for (const int other : kRareColumns) is_rare = is_rare || other == column;
      if (is_rare == rare) places[static_cast<std::size_t>(column)] = next++;
    }
  }
  return places;
}
inline constexpr std::array<std::size_t, kPlanColumns> kPlaces = PlacesOfColumns();
constexpr std::size_t PlaceOf(int column) { return kPlaces[static_cast<std::size_t>(column)]; }

// A gradient by those columns. A form needs no more of a row than what comes before its own place.
class Gradient {
 public:
  static constexpr int kPadded = (kPlanColumns + kWide - 1) / kWide * kWide;

  double& operator[](int column) { return values_[PlaceOf(column)]; }
  double operator[](int column) const { return values_[PlaceOf(column)]; }
  const double* data() const { return values_.data(); }
  double Dot(const Gradient& other) const {
    return std::inner_product(values_.begin(), values_.end(), other.values_.begin(), 0.0);
  }

 private:
  std::array<double, kPadded> values_{};
};

// N sums, as many at once as a wide register holds.
using Wide = double __attribute__((vector_size(sizeof(double) * kWide)));
template <int N>
struct Sums {
  Wide wide = {};
  Sums<N - kWide> rest;
};
template <>
struct Sums<0> {};

// x^T C x of a symmetric C, by the lower triangle, in which what stands for two places counts
// twice. Row by row into sums that stay in registers, without the rows of parameters that a plan
// does not depend on: most plans depend on few.
class QuadraticForm {
 public:
  // The rows and columns of a gradient.
  void Set(int row, int column, double value) {
    const std::size_t i = PlaceOf(row);
    const std::size_t j = PlaceOf(column);
    rows_[std::max(i, j)][std::min(i, j)] = i == j ? value : 2 * value;
  }
  double Of(const Gradient& x) const {
    Sums<Gradient::kPadded> sums;
    AddRows<0>(x.data(), &sums);
    return Dot(sums, x.data());
  }

 private:
  template <std::size_t kRow>
  void AddRows(const double* x, Sums<Gradient::kPadded>* sums) const {
    if constexpr (kRow < kPlanColumns) {
      if (x[kRow] != 0) AddRow<kRow / kWide>(rows_[kRow].data(), x[kRow], sums);
      AddRows<kRow + 1>(x, sums);
    }
  }
  // The first kFurther + 1 registers of a row. Each number by its name, which is what g++ keeps in
  // registers.
  template <std::size_t kFurther, int kNumbers = kWide, int N>
  static void AddRow(const double* row, double x, Sums<N>* sums) {
    if constexpr (kNumbers == 4) {
      sums->wide += decltype(sums->wide){row[0], row[1], row[2], row[3]} * x;
    } else {
      sums->wide += decltype(sums->wide){row[0], row[1]} * x;
    }
    if constexpr (kFurther > 0) AddRow<kFurther - 1>(row + kWide, x, &sums->rest);
  }
  template <int N, int kNumbers = kWide>
  static double Dot(const Sums<N>& sums, const double* x) {
    double sum = sums.wide[0] * x[0] + sums.wide[1] * x[1];
    if constexpr (kNumbers == 4) sum += sums.wide[2] * x[2] + sums.wide[3] * x[3];
    if constexpr (N > kWide) sum += Dot(sums.rest, x + kWide);
    return sum;
  }

  std::array<std::array<double, Gradient::kPadded>, kPlanColumns> rows_{};
};

// The backward pass's share of a micro-step, with its derivative by ln(overlap_share).
DualNumber<double> BackwardShareByLog(const StepFacts& facts, double overlap_share) {
  return BackwardShare(facts, DualNumber<double>(overlap_share, overlap_share));
}

using StagedParts = KnownParts<LinkDual, ComputeDual>;

// For hops by the rates of their paths, which it keeps with their derivatives by the parameters.
struct HopParts : StagedParts {
  const ClusterParameters<LinkDual>* cluster_by_link = nullptr;
  RouteSlopes* route = nullptr;

  PathRate<HopDual> NodeRate(const LinkFacts& link, const ClusterParameters<HopDual>& /*cluster*/,
                             const FlowShape& shape, const Barrier<HopDual>& barrier,
                             PathTerms<HopDual>* /*terms*/) const {
    route->latency = LatencyParameter(link);
    route->mesh = shape.mesh;
    return Kept(KnownNodeRate(shape), &route->node, [&] {
      return ComputedParts::NodeRate<LinkDual>(link, *cluster_by_link, shape, ByLink(barrier),
                                               nullptr);
    });
  }
  PathRate<HopDual> ServerRate(const LinkFacts& link, const ClusterParameters<HopDual>& /*cluster*/,
                               const FlowShape& shape, const Barrier<HopDual>& barrier,
                               PathTerms<HopDual>* /*terms*/) const {
    return Kept(KnownServerRate(shape), &route->server, [&] {
      return ComputedParts::ServerRate<LinkDual>(link, *cluster_by_link, shape, ByLink(barrier),
                                                 nullptr);
    });
  }
  FlowLimits<HopDual> ConnectionLimits(const LinkFacts& path,
                                       const ClusterParameters<HopDual>& /*cluster*/,
                                       const Barrier<HopDual>& barrier) const {
    const FlowLimits<LinkDual>& limits = route->limits.emplace(
        StagedParts::ConnectionLimits<LinkDual>(path, *cluster_by_link, ByLink(barrier)));
    return {Seeded<DurationPerByte<HopDual>>(limits.window, kWindowLimitLane),
            Seeded<DurationPerByte<HopDual>>(limits.loss, kLossLimitLane)};
  }

 private:
  template <class Compute>
  static PathRate<HopDual> Kept(const PathRate<LinkDual>* known, RouteSlopes::Rate* kept,
                                const Compute& compute) {
    const PathRate<LinkDual>& rate = known != nullptr ? *known : kept->computed.emplace(compute());
    kept->bandwidth = &rate.bandwidth;
    return {Seeded<DataRate<HopDual>>(rate.bandwidth, kRateLane), rate.limiter};
  }
  static Barrier<LinkDual> ByLink(const Barrier<HopDual>& barrier) {
    return {DataSize<LinkDual>(ValueOf(barrier.message)), barrier.flows};
  }
};

// The routes to servers, and what they depend on.
ServerRoutes<HopDual> RoutesOf(const StepFacts& f, const ClusterParameters<HopDual>& cluster,
                               const WorkloadParameters<HopDual>& workload, const HopParts& parts) {
  if (!LeavesNode(f)) parts.route->latency = kDeviceLatency;
  ServerRoutes<HopDual> routes = MakeServerRoutes<HopDual>(f, cluster, workload, parts, nullptr);
  parts.route->node_bandwidth = routes.paths.worker.bandwidth.si();
  parts.route->connection = routes.paths.connection.si();
  return routes;
}

// Copies what is counted rather than fitted.
template <class T>
void SetCounts(const ServerPaths<HopDual>& from, ServerPaths<T>* paths) {
  paths->workers = from.workers;
  paths->servers = from.servers;
  paths->workers_per_node = from.workers_per_node;
  paths->nodes = from.nodes;
  paths->colocated = from.colocated;
  paths->multicast = from.multicast;
  paths->in_network_aggregation = from.in_network_aggregation;
  paths->added_up = from.added_up;
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

// What slows all compute of a host moves it in proportion; `update` is a share of the same whole.
void SetSlowdown(const StepFacts& f, const ClusterParameters<double>& cluster,
                 const ComputeDual& micro, double by_micro, double update, Gradient* gradient) {
  if (!cluster.node_slowdown || StatedIsSlowest(f, cluster)) return;
  (*gradient)[kSlowdownColumn] = by_micro * micro.value + update;
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
[[gnu::noinline]] void AddRoute(const RouteSlopes& route, double by_node_bandwidth,
                                double by_server_rate, double by_connection, Gradient* gradient) {
  Gradient& g = *gradient;
  const Lanes<kHopLanes> by_hop = route.node_bandwidth.slope * by_node_bandwidth;
  g[kHostBandwidth] += by_hop[kHostLane];
  g[kHostSharing] += by_hop[kSharingLane];
  Lanes<kLinkLanes> by_link;
  const auto add = [&](const RouteSlopes::Rate& rate, double by) {
    if (rate.bandwidth != nullptr) by_link += rate.bandwidth->si().slope * by;
  };
  add(route.node, by_hop[kRateLane]);
  add(route.server, by_server_rate);
  if (route.limits) {
    const Lanes<kHopLanes> by_limits = route.connection.slope * by_connection;
    by_link += route.limits->window.si().slope * by_limits[kWindowLimitLane] +
               route.limits->loss.si().slope * by_limits[kLossLimitLane];
  }
  g[kLinkColumn] += by_link[kNodeLinkLane];
  for (int lane = kFlowLane; lane < kLinkParameterLanes; ++lane) {
    g[lane == kLatencyLane                ? route.latency
      : lane == kSpreadLane && route.mesh ? kMeshShare
                                          : kLinkLaneParameters[lane]] += by_link[lane];
  }
  g[kShareColumn] += by_link[kStatedShareLane];
}

}  // namespace

// A pace that no run has told, at its slow end.
struct TabledEnd {
  SlowEnd end;
  Gradient along;
  CompiledValues values;
};

struct IntervalTables {
  ClusterParameters<LinkDual> cluster_by_link;
  WorkloadParameters<LinkDual> workload_by_link;
  ClusterParameters<HopDual> cluster_by_hop;
  WorkloadParameters<HopDual> workload_by_hop;
  ClusterParameters<ComputeDual> cluster_by_compute;
  WorkloadParameters<ComputeDual> workload_by_compute;
  std::vector<Duration<ComputeDual>> curve;
  Rates<LinkDual> rates;
  QuadraticForm covariance;
  int link = kLinkBandwidth;  // position of the slowest host's
  std::vector<TabledEnd> ends;
  std::vector<CompiledValues> alternatives;
};

namespace {

// The stages. Those of a synchronisation are compiled apart: inlined they take a seventh longer.
struct Staged {
  const CompiledState& s;
  const IntervalTables& t;
  const StepFacts& asked;  // of which those of a stage are the side that the step waits for

  template <bool kHeldBack>
  void ByCollective(const StepFacts& f, const StagedParts& parts, Duration<> micro,
                    Duration<> backward, SyncSlopes* slopes) const;
  template <bool kHeldBack>
  void ByServers(const StepFacts& f, const StagedParts& parts, Duration<> micro,
                 Duration<> backward, SyncSlopes* slopes) const;
  // Adds what a part of the step depends on through a synchronisation: by its lanes it has the
  // derivatives `by`, and `by_end_and_all` is the sum of those by its end and by its length.
  void AddSynchronisation(const StepFacts& f, const SyncSlopes& sync, const Lanes<kHeldLanes>& by,
                          double by_end_and_all, Gradient* gradient) const;
  void Predict(const PlanQuery& query, const StepFacts& f, Forecast* forecast) const;
  void PredictAsynchronous(const PlanQuery& query, const StepFacts& f, Forecast* forecast) const;
  // The variance of ln(step), which is `variance` by its gradient, for the upper end of its
  // interval.
  double Above(const PlanQuery& query, const Gradient& gradient, double variance,
               Duration<> step) const;
  // How far the alternatives are from what is believed of a plan.
  AlternativeReaches Reaches(const PlanQuery& query, Duration<> step, Duration<> compute) const;
  // `by_step()` and `by_compute()` are the gradients of the logarithms of the step and its compute;
  // `shown` is the part of the step that is not compute.
  template <class ByStep, class ByCompute>
  void SetInterval(const PlanQuery& query, const StepFacts& f, Duration<> step, Duration<> compute,
                   const ByStep& by_step, const ByCompute& by_compute, Duration<> shown,
                   Forecast* forecast) const;
};

template <bool kHeldBack>
[[gnu::noinline]] STEPCAST_WIDE STEPCAST_FLATTEN void Staged::ByCollective(
    const StepFacts& f, const StagedParts& parts, Duration<> micro, Duration<> backward,
    SyncSlopes* slopes) const {
  using T = DualOf<kHeldBack ? kHeldLanes : kFreeLanes>;
  const CollectiveHops<HopDual> from = MakeCollectiveHops<HopDual>(
      f, t.cluster_by_hop, HopParts{parts, &t.cluster_by_link, &slopes->route}, nullptr);
  slopes->route.node_bandwidth = from.node.bandwidth.si();
  CollectiveHops<T> hops;
  hops.path = from.path;
  hops.path_share = from.path_share;
  hops.node = {Seeded<Duration<T>>(from.node.alpha, kAlphaLane),
               Seeded<DataRate<T>>(from.node.bandwidth, kBandwidthLane)};
  hops.device = {Seeded<Duration<T>>(from.device.alpha, kDeviceAlphaLane),
                 Seeded<DataRate<T>>(from.device.bandwidth, kDeviceBandwidthLane)};
  hops.helper_link = Seeded<DataRate<T>>(from.helper_link, kHelperLane);
  const Duration<T> pass = Seeded<Duration<T>>(backward, kBackwardLane);
  Duration<T> of_micro = micro;
  Duration<T> timeout = s.cluster.loss_timeout();
  if constexpr (kHeldBack) {
    of_micro = Seeded<Duration<T>>(micro, kMicroStepLane);
    timeout = Seeded<Duration<T>>(s.cluster.loss_timeout(), kSilenceLane);
  }
  SetTimes(f, Synchronise<T>(f, hops, of_micro, pass, timeout), slopes);
}

template <bool kHeldBack>
[[gnu::noinline]] STEPCAST_WIDE STEPCAST_FLATTEN void Staged::ByServers(const StepFacts& f,
                                                                        const StagedParts& parts,
                                                                        Duration<> micro,
                                                                        Duration<> backward,
                                                                        SyncSlopes* slopes) const {
  using T = DualOf<kHeldBack ? kHeldLanes : kFreeLanes>;
  const ServerRoutes<HopDual> routes = RoutesOf(
      f, t.cluster_by_hop, t.workload_by_hop, HopParts{parts, &t.cluster_by_link, &slopes->route});
  const ServerPaths<HopDual>& from = routes.paths;
  slopes->update_per_byte = from.update.si().value;
  ServerRoutes<T> to_routes;
  to_routes.node_link = routes.node_link;
  to_routes.server_link = routes.server_link;
  to_routes.connection = routes.connection;
  ServerPaths<T>& paths = to_routes.paths;
  SetCounts(from, &paths);
  paths.worker.bandwidth = Seeded<DataRate<T>>(from.worker.bandwidth, kBandwidthLane);
  paths.server_bandwidth = Seeded<DataRate<T>>(from.server_bandwidth, kServerBandwidthLane);
  paths.initiation = Seeded<Duration<T>>(s.cluster.transfer_initiation(), kInitiationLane);
  paths.server_rate = Seeded<DataRate<T>>(s.cluster.server_rate(), kServerRateLane);
  paths.update = Seeded<DurationPerByte<T>>(from.update, kUpdateLane);
  const Duration<T> pass = Seeded<Duration<T>>(backward, kBackwardLane);
  Duration<T> of_micro = micro;
  Duration<T> timeout = s.cluster.loss_timeout();
  if constexpr (kHeldBack) {
    if (from.connection.si() > 0.0) {
      paths.connection = Seeded<DurationPerByte<T>>(from.connection, kConnectionLane);
    }
    of_micro = Seeded<Duration<T>>(micro, kMicroStepLane);
    timeout = Seeded<Duration<T>>(s.cluster.loss_timeout(), kSilenceLane);
    paths.worker.alpha = Seeded<Duration<T>>(from.worker.alpha, kServerAlphaLane);
    paths.rpc_rounds = T(s.cluster.rpc_rounds());
  }
  SetTimes(f, Synchronise<T>(f, to_routes, of_micro, pass, timeout, parts, nullptr), slopes);
  // Two phases of alpha (1 + 2 rho k), in the end and in the whole. Where the hop has a lane they
  // are there already, with rho as a constant.
  const double trips = 2 * s.cluster.rpc_rounds() * from.tensors;
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

[[gnu::noinline]] void Staged::AddSynchronisation(const StepFacts& f, const SyncSlopes& sync,
                                                  const Lanes<kHeldLanes>& by,
                                                  double by_end_and_all, Gradient* gradient) const {
  Gradient& g = *gradient;
  g[kLossTimeout] += by[kSilenceLane] * s.cluster.si[kLossTimeout];
  if (!UsesServers(f.strategy)) {
    g[sync.route.latency] += by[kAlphaLane] * s.cluster.si[sync.route.latency];
    g[kDeviceLatency] += by[kDeviceAlphaLane] * s.cluster.si[kDeviceLatency];
    g[kHostBandwidth] += by[kDeviceBandwidthLane] * s.cluster.si[kHostBandwidth];
    AddRoute(sync.route, by[kBandwidthLane], by[kHelperLane], 0, &g);
    return;
  }
  g[sync.route.latency] += by[kServerAlphaLane] * s.cluster.si[sync.route.latency];
  g[kTransferInitiation] += by[kInitiationLane] * s.cluster.si[kTransferInitiation];
  g[kServerRate] += by[kServerRateLane] * s.cluster.si[kServerRate];
  g[kRpcRounds] += sync.by_rounds * by_end_and_all;
  g[kWorkloadColumn + kUpdateTime] += by[kUpdateLane] * sync.update_per_byte;
  AddRoute(sync.route, by[kBandwidthLane], by[kServerBandwidthLane], by[kConnectionLane], &g);
}

[[gnu::noinline]] double Staged::Above(const PlanQuery& query, const Gradient& gradient,
                                       double variance, Duration<> step) const {
  std::optional<ColumnSet> matter;
  WorstEnd worst;
  for (const TabledEnd& slow : t.ends) {
    if (!slow.end.IsUntoldTo(asked)) continue;
    if (!matter) matter = ColumnsThatMatter(asked, true);
    if (!(*matter)[static_cast<std::size_t>(slow.end.column)]) continue;
    worst.Include(gradient.Dot(slow.along), step, s.StepTimeAt(slow.values, query, asked));
  }
  return variance + worst.variance();
}

[[gnu::noinline]] AlternativeReaches Staged::Reaches(const PlanQuery& query, Duration<> step,
                                                     Duration<> compute) const {
  AlternativeReaches reaches;
  for (const CompiledValues& alternative : t.alternatives) {
    reaches.Include(step, compute, s.StepAt(alternative, query, asked));
  }
  return reaches;
}

template <class ByStep, class ByCompute>
void Staged::SetInterval(const PlanQuery& query, const StepFacts& f, Duration<> step,
                         Duration<> compute, const ByStep& by_step, const ByCompute& by_compute,
                         Duration<> shown, Forecast* forecast) const {
  const double profile_sd = s.ProfileLogSd(static_cast<int>(f.batch));
  const int batch = query.local_batch;
  const int slow_batch = asked.slow_share ? static_cast<int>(asked.slow_share->batch) : batch;
  const double discrepancy =
      Discrepancy(PlanSize{query.workers, query.nodes, query.devices_per_node,
                           std::min(batch, slow_batch), std::max(batch, slow_batch)},
                  s.range, s.batches);
  const double beyond = profile_sd * profile_sd + discrepancy * discrepancy;
  const double scatter = s.belief.ScatterOf(f, shown / step);
  const double share_log_sd = s.belief.StatedShareLogSd(f, t.link);
  const auto variance = [&](const Gradient& by) {
    const double by_share = by[kShareColumn] * share_log_sd;
    return std::max(0.0, t.covariance.Of(by)) + by_share * by_share +
           JobVariance(f, by, s.other_jobs);
  };
  const Gradient gradient = by_step();
  const double by_parameters = variance(gradient);
  const double others = scatter * scatter + beyond;
  forecast->step_time = step;
  forecast->log_sd = std::sqrt(by_parameters + others);
  double factor = NinetyPercentFactor(forecast->log_sd);  // of the lower end
  forecast->high = step * factor;
  AlternativeReaches alternatives;
  if (!t.ends.empty() || !t.alternatives.empty()) {
    alternatives = Reaches(query, step, compute);
    const double above =
        alternatives.step.VarianceAbove(Above(query, gradient, by_parameters, step));
    forecast->high = step * NinetyPercentFactor(std::sqrt(above + others));
    factor =
        NinetyPercentFactor(std::sqrt(alternatives.step.VarianceBelow(by_parameters) + others));
  }
  forecast->low = Max(step / factor, s.belief.LeastCompute(f));
  // However little is known of the network, no step is shorter than its compute; which is looked at
  // only where it can matter, 1 + x being less than e^x.
  const double compute_scatter = s.belief.ScatterAt(0);
  const double least = compute_scatter * compute_scatter + beyond;
  if (compute * factor < step * (1 + kNinetyPercent * std::sqrt(least))) return;
  const double log_sd =
      std::sqrt(alternatives.compute.VarianceBelow(variance(by_compute())) + least);
  forecast->low = Max(forecast->low, compute / NinetyPercentFactor(log_sd));
}

STEPCAST_WIDE STEPCAST_FLATTEN void Staged::Predict(const PlanQuery& query, const StepFacts& f,
                                                    Forecast* forecast) const {
  if (TraitsOf(f.strategy).asynchronous() && !Alone(f)) {
    PredictAsynchronous(query, f, forecast);
    return;
  }
  const StagedParts parts = s.PartsOf(query, t.curve, t.rates);
  const bool servers = UsesServers(f.strategy);
  const bool alone = Alone(f);
  const double a = f.accumulation_steps;
  const ComputeDual micro = MicroStep(f, t.cluster_by_compute, t.workload_by_compute, parts).si();
  const DualNumber<double> share = BackwardShareByLog(f, s.cluster.overlap_share());
  const Duration<> backward = Seconds(micro.value * share.value);
  const bool updates = f.has_compute && (!servers || alone);
  const double update = updates ? s.workload.update_time().si() * UpdateShare(f) *
                                      SlowdownOf(f, s.cluster).value_or(1)
                                : 0;

  SyncSlopes sync;
  if (!alone) {
    const Duration<> whole = Seconds(micro.value);
    // Round trips and losses hold flows back, which start slowly after the silence of all compute.
    const bool held =
        f.link.may_hold_back() || f.server_link.may_hold_back() || GathersUnits(f.shard);
    if (servers) {
      held ? ByServers<true>(f, parts, whole, backward, &sync)
           : ByServers<false>(f, parts, whole, backward, &sync);
    } else {
      held ? ByCollective<true>(f, parts, whole, backward, &sync)
           : ByCollective<false>(f, parts, whole, backward, &sync);
    }
  }

  // The step, by what it is joined from.
  const ClusterParameter overhead = OverheadOf(f);
  JoinInputs<JoinDual, double> in;
  in.micro_steps = a;
  in.micro = Seeded<Duration<JoinDual>>(Seconds(micro.value), kMicroLane);
  in.backward = Seeded<Duration<JoinDual>>(backward, kPassLane);
  in.beside = Beside(f, in.micro, in.backward);
  in.update = Seconds(update);
  if (!alone) {
    in.all = Seeded<Duration<JoinDual>>(sync.all, kAllLane);
    in.end = Seeded<Duration<JoinDual>>(sync.end, kEndLane);
    in.contention = s.cluster.overlap_contention();
    if (f.has_compute) in.overhead = Seconds(s.cluster.si[overhead] * (1.0 / f.local_steps));
    in.coding = CodingOf(f);
    in.wait = s.workload.straggler_spread() * (SpreadOfStep(f) * parts.Slowest(f));
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
    const double by_pass = by[kPassLane] + by_sync[kBackwardLane];
    const double by_micro = by[kMicroLane] + by_sync[kMicroStepLane] + by_pass * share.value;
    Gradient g;
    SetCompute(micro, by_micro, &g);
    SetSlowdown(f, s.cluster, micro, by_micro, update * scale, &g);
    g[kOverlapShare] = by_pass * (micro.value * share.slope);
    g[kOverlapContention] = joined.contention.si().value * scale;
    g[kWorkloadColumn + kUpdateTime] = update * scale;
    if (whole_step) g[kWorkloadColumn + kStragglerSpread] = joined.wait.si().value * scale;
    if (alone) return g;
    if (whole_step) g[overhead] = joined.overhead.si().value * scale;
    AddSynchronisation(f, sync, by_sync, by[kEndLane] + by[kAllLane], &g);
    return g;
  };
  SetInterval(
      query, f, ValueOf(step), ValueOf(compute), [&] { return gradient_of(step.si(), true); },
      [&] { return gradient_of(compute.si(), false); }, ValueOf(shown), forecast);
  const Duration<> exposed = ValueOf(joined.exposed);
  const Duration<> transfer = ExposedTransfer(exposed, sync.transfer, sync.all);
  forecast->limiter =
      transfer < exposed - transfer + ValueOf(joined.overhead) ? Limiter::kLatency : sync.limiter;
}

// Asynchronous workers have no synchronisation apart: the whole step is carried through.
[[gnu::noinline]] void Staged::PredictAsynchronous(const PlanQuery& query, const StepFacts& f,
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
  const StagedParts parts = s.PartsOf(query, t.curve, t.rates);
  const ComputeDual micro = MicroStep(f, t.cluster_by_compute, t.workload_by_compute, parts).si();
  RouteSlopes route;
  const ServerRoutes<HopDual> routes =
      RoutesOf(f, t.cluster_by_hop, t.workload_by_hop, HopParts{parts, &t.cluster_by_link, &route});
  const ServerPaths<HopDual>& from = routes.paths;
  const auto number = [](double value, int lane) {
    T dual(value);
    dual.slope.Set(lane, 1);
    return dual;
  };
  const ClusterParameter overhead = OverheadOf(f);
  StepInputs<T> inputs;
  inputs.micro = Duration<T>::FromSi(number(micro.value, kByMicro));
  const DualNumber<double> share = BackwardShareByLog(f, s.cluster.overlap_share());
  inputs.backward_share = number(share.value, kByShare);
  inputs.straggler_spread = number(s.workload.straggler_spread(), kBySpread);
  inputs.fast_pace = FastPace(f, s.cluster);
  // A lane of the update as it is beside the workers, of which both its factors are derivatives.
  const double contention = s.cluster.host_contention();
  const double sharing = UpdateSharing(f, contention);
  const double update = s.workload.update_time().si() * sharing;
  inputs.update = Seeded<Duration<T>>(Seconds(update), kByUpdate);
  if (f.has_compute) {
    inputs.overhead = Duration<T>::FromSi(number(s.cluster.si[overhead], kByOverhead));
  }
  inputs.servers.node_link = routes.node_link;
  inputs.servers.server_link = routes.server_link;
  inputs.servers.connection = routes.connection;
  ServerPaths<T>& paths = inputs.servers.paths;
  SetCounts(from, &paths);
  paths.worker = {Seeded<Duration<T>>(from.worker.alpha, kByAlpha),
                  Seeded<DataRate<T>>(from.worker.bandwidth, kByBandwidth)};
  paths.server_bandwidth = Seeded<DataRate<T>>(from.server_bandwidth, kByServerBandwidth);
  paths.initiation = Seeded<Duration<T>>(s.cluster.transfer_initiation(), kByInitiation);
  paths.server_rate = Seeded<DataRate<T>>(s.cluster.server_rate(), kByServerRate);
  paths.rpc_rounds = number(s.cluster.rpc_rounds(), kByRounds);
  paths.update = inputs.update / f.gradient;
  if (from.connection.si() > 0.0) {
    paths.connection = Seeded<DurationPerByte<T>>(from.connection, kByConnection);
  }
  const stepcast::StepTime<T> step = JoinStep<T>(f, inputs, parts, nullptr);

  const auto gradient_of = [&](const Duration<T>& part) {
    const Lanes<kByAll> by = part.si().slope * (1 / part.si().value);
    Gradient g;
    SetCompute(micro, by[kByMicro], &g);
    SetSlowdown(f, s.cluster, micro, by[kByMicro], 0, &g);
    g[kOverlapShare] = by[kByShare] * share.slope;
    g[kWorkloadColumn + kStragglerSpread] = by[kBySpread] * s.workload.straggler_spread();
    g[kWorkloadColumn + kUpdateTime] = by[kByUpdate] * update;
    g[kHostContention] += by[kByUpdate] * update * (1 - 1 / sharing);
    g[overhead] = by[kByOverhead] * s.cluster.si[overhead];
    g[kTransferInitiation] = by[kByInitiation] * s.cluster.si[kTransferInitiation];
    g[kServerRate] = by[kByServerRate] * s.cluster.si[kServerRate];
    g[kRpcRounds] = by[kByRounds] * s.cluster.si[kRpcRounds];
    g[route.latency] = by[kByAlpha] * s.cluster.si[route.latency];
    AddRoute(route, by[kByBandwidth], by[kByServerBandwidth], by[kByConnection], &g);
    return g;
  };
  SetInterval(
      query, f, ValueOf(step.total()), ValueOf(step.compute()),
      [&] { return gradient_of(step.total()); }, [&] { return gradient_of(step.compute()); },
      ValueOf(step.exposed() + step.straggler_wait), forecast);
  forecast->limiter = step.limiter;
}

// The forecast of workers of two paces, each kind of which waits for its samples by itself, from
// that of `supplied`, who has all of them.
[[gnu::noinline]] void LengthenTwoPaces(const CompiledState& s, const PlanQuery& query,
                                        const StepFacts& facts, const StepFacts& supplied,
                                        Forecast* forecast) {
  const KnownParts<double> parts = s.PartsOf(query);
  const auto evaluate = [&](const StepFacts& f, StepTerms<double>* terms) {
    const auto inputs = MakeStepInputs<double>(f, s.cluster, s.workload, parts, nullptr);
    return JoinStep<double>(f, inputs, parts, terms);
  };
  StepTerms<double> terms;
  evaluate(supplied, &terms);
  LengthenBy(ArrivalOf(facts), WaitingPaces(terms.async), s.belief.ScatterAt(0), forecast);
  // What limits the mean update is another where the fast workers make fewer of them.
  const StepTime<double> step = evaluate(facts, nullptr);
  forecast->step_time = step.total();
  forecast->limiter = step.limiter;
}

}  // namespace

std::shared_ptr<const IntervalTables> MakeIntervalTables(const CompiledState& state,
                                                         const Belief::AtHosts& at_hosts,
                                                         int last_batch,
                                                         std::vector<Duration<>>* curve) {
  auto made = std::make_shared<IntervalTables>();
  IntervalTables& t = *made;
  const auto constants = [&](auto* cluster, auto* workload) {
    std::copy(state.cluster.si.begin(), state.cluster.si.end(), cluster->si.begin());
    std::copy(state.workload.si.begin(), state.workload.si.end(), workload->si.begin());
    cluster->node_link_si = *state.cluster.node_link_si;
    if (state.cluster.node_slowdown) cluster->node_slowdown = *state.cluster.node_slowdown;
  };
  constants(&t.cluster_by_link, &t.workload_by_link);
  constants(&t.cluster_by_hop, &t.workload_by_hop);
  constants(&t.cluster_by_compute, &t.workload_by_compute);
  // By ln(value): the derivative of a value is the value.
  const auto vary = [](auto* dual, int lane) { dual->slope.Set(lane, dual->value); };
  vary(&*t.cluster_by_link.node_link_si, kNodeLinkLane);
  vary(&t.cluster_by_link.stated_share, kStatedShareLane);
  for (int lane = kFlowLane; lane < kLinkParameterLanes; ++lane) {
    vary(&t.cluster_by_link.si[static_cast<std::size_t>(kLinkLaneParameters[lane])], lane);
  }
  vary(&t.cluster_by_link.si[kRdmaLatency], kLatencyLane);
  vary(&t.cluster_by_link.si[kMeshShare], kSpreadLane);
  vary(&t.cluster_by_hop.si[kHostBandwidth], kHostLane);
  vary(&t.cluster_by_hop.si[kHostSharing], kSharingLane);
  vary(&t.cluster_by_compute.si[kHostContention], kContentionLane);
  vary(&t.workload_by_compute.si[kFixedTime], kFixedLane);
  vary(&t.workload_by_compute.si[kFloorTime], kFloorLane);
  vary(&t.workload_by_compute.si[kSampleTime], kSampleLane);
  for (int b = 0; b <= last_batch; ++b) {
    t.curve.push_back(ComputedParts().CurveTime(b, t.workload_by_compute));
    curve->push_back(ValueOf(t.curve.back()));
  }
  t.link = at_hosts.link;
  for (int i = 0; i < kShareColumn; ++i) {
    for (int j = 0; j <= i; ++j) {
      t.covariance.Set(i, j,
                       state.belief.log_covariance()(at_hosts.Position(i), at_hosts.Position(j)));
    }
  }
  state.RecordRates(t.cluster_by_link, t.workload_by_link, &t.rates);
  const auto values_at = [&](const PlanParameters& at) {
    CompiledValues values{at.cluster, at.workload, {}, {}};
    for (int b = 0; b <= last_batch; ++b) {
      values.curve.push_back(ComputedParts().CurveTime(b, values.workload));
    }
    state.RecordRates(values.cluster, values.workload, &values.rates);
    return values;
  };
  for (const SlowEnd& end : SlowEndsOf(state.belief, at_hosts)) {
    TabledEnd tabled{end, {}, values_at(end.parameters)};
    for (int column = 0; column < kPlanColumns; ++column) {
      tabled.along[column] = end.along[static_cast<std::size_t>(column)];
    }
    t.ends.push_back(std::move(tabled));
  }
  for (const PlanParameters& alternative : AlternativesOf(state.belief, at_hosts)) {
    t.alternatives.push_back(values_at(alternative));
  }
  return made;
}

void PredictInterval(const CompiledState& state, const PlanQuery& query, const StepFacts& facts,
                     Forecast* forecast) {
  const auto predict = [&](const StepFacts& asked) {
    const Staged staged{state, *state.intervals, asked};
    if (asked.slow_share) {
      staged.Predict(query, state.LaterSideAt(state, query, asked), forecast);
    } else {
      staged.Predict(query, asked, forecast);
    }
  };
  if (!facts.input_rate) {
    predict(facts);
    return;
  }
  StepFacts supplied = facts;
  supplied.input_rate = std::nullopt;
  predict(supplied);
  if (TraitsOf(facts.strategy).asynchronous() && !Alone(facts) && HasTwoPaces(facts)) {
    LengthenTwoPaces(state, query, facts, supplied, forecast);
  } else {
    LengthenBy(ArrivalOf(facts), WaitingPaces(), state.belief.ScatterAt(0), forecast);
  }
}

}  // namespace stepcast::internal
