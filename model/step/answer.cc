#include "model/step/answer.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "model/numeric/dual.h"
#include "model/step/line_parts.h"

namespace stepcast {
namespace {

// What a plan's lines look up, and the slowest of its workers.
struct KnownToPlan : internal::LineParts {
  double slowest = 0;
  double Slowest(const StepFacts& /*facts*/) const { return slowest; }
};

template <class T, class Parts>
StepTime<T> Evaluate(const StepFacts& facts, const ClusterParameters<T>& cluster,
                     const WorkloadParameters<T>& workload, const Parts& parts,
                     PlanAnswer* answer) {
  const internal::StepInputs<T> inputs =
      internal::MakeStepInputs<T>(facts, cluster, workload, parts, nullptr);
  answer->micro = ValueOf(inputs.micro);
  return internal::JoinStep<T>(facts, inputs, parts, nullptr);
}

}  // namespace

PlanParameters PlanParameters::FromLogs(const double* log_cluster, const double* log_workload,
                                        const double* log_link, const double* log_slowdown) {
  PlanParameters parameters;
  auto& [cluster, workload] = parameters;
  for (std::size_t i = 0; i < cluster.si.size(); ++i) cluster.si[i] = std::exp(log_cluster[i]);
  for (std::size_t i = 0; i < workload.si.size(); ++i) workload.si[i] = std::exp(log_workload[i]);
  if (log_link != nullptr) cluster.node_link_si = std::exp(*log_link);
  if (log_slowdown != nullptr) cluster.node_slowdown = std::exp(*log_slowdown);
  return parameters;
}

ColumnSet ColumnsThatMatter(const StepFacts& facts, bool own_link) {
  ColumnSet columns;
  const auto set = [&](int column, bool matters) {
    columns.set(static_cast<std::size_t>(column), matters);
  };
  const bool several = facts.devices_per_node > 1;  // devices on a node
  if (internal::Alone(facts)) {
    for (int i = 0; i < kWorkloadParameterCount; ++i) set(kWorkloadColumn + i, true);
    set(kHostContention, internal::Crowding(facts) > 0);
    set(kSlowdownColumn, facts.has_compute);
    return columns;
  }
  const bool servers = UsesServers(facts.strategy);
  const bool helpers = TraitsOf(facts.strategy).helpers;
  const bool between_nodes = internal::LeavesNode(facts);
  const bool rdma = internal::ExchangeLink(facts)->rdma();
  const bool to_servers = facts.server.HasOwnLink(facts.servers);
  const bool held_back =
      between_nodes && !rdma &&
      (facts.link.may_hold_back() || (to_servers && facts.server_link.may_hold_back()));
  columns.set();
  set(kLinkColumn, own_link && between_nodes);
  set(kShareColumn, between_nodes && (facts.link.bandwidth || facts.server_link.bandwidth));
  // Servers, and the helpers of BytePS, have the cluster's link; uplinks are planned for it.
  const bool uplinks = facts.uplinks_known && IsOversubscribed(*internal::NodeLink(facts));
  set(kLinkBandwidth, between_nodes && (servers || !own_link || helpers || uplinks));
  set(kFlowBandwidth, between_nodes && !rdma);
  set(kLinkLatency, between_nodes && !rdma);
  set(kRdmaLatency, between_nodes && rdma);
  // Each device exchanges with servers over its node's link, if they are behind it.
  set(kDeviceLatency, several && (!servers || !between_nodes));
  set(kNodeSyncOverhead, facts.has_compute && between_nodes);
  set(kDeviceSyncOverhead, facts.has_compute && !between_nodes);
  set(kHostSharing, between_nodes && several);
  // Of one who exchanges with many at once, the mean is what counts.
  set(kHopSpread, facts.nodes > 1 && !rdma && !servers && !helpers);
  set(kMeshShare, facts.nodes > 1 && !rdma && helpers);
  set(kHostContention, internal::Crowding(facts) > 0);
  set(kTransferInitiation, servers);
  set(kServerRate, servers);
  set(kRpcRounds, servers);
  set(kFlowWindow, held_back);
  set(kLossTimeout, held_back);
  set(kSlowdownColumn, facts.has_compute);
  return columns;
}

PlanModel::PlanModel(StepFacts facts)
    : facts_(std::move(facts)),
      columns_(ColumnsThatMatter(facts_, false)),
      own_link_columns_(ColumnsThatMatter(facts_, true)) {
  if (internal::Alone(facts_)) return;
  slowest_ = internal::ComputedParts().Slowest(facts_);
  if (TraitsOf(facts_.strategy).has_phases()) {
    lines_ = MakeBucketLines(*facts_.buckets);
    held_ = MakeBucketLines(*facts_.held_buckets);
  } else if (TraitsOf(facts_.strategy).asynchronous()) {
    async_lines_ = internal::AsyncLinesOf(facts_);
  }
}

namespace {

// The parts of a step that several parameters enter by one number, and the lanes of these.
enum Part { kCurvePart, kNodePathPart, kServerPathPart, kWindowPart, kLossPart, kParts };

// The compute curve's time, by what it is made of: a lane is a parameter of the workload.
using CurveDual = DualOf<4>;
constexpr int kCurveParameters = 3;
static_assert(kFixedTime < kCurveParameters && kFloorTime < kCurveParameters &&
              kSampleTime < kCurveParameters);

// The rate of a path, and the limits of a connection, by their parameters: the last of these only
// where round trips or losses hold flows back.
enum PathLane {
  kLinkLane,
  kFlowLane,
  kSpreadLane,  // or mesh_share: a path has one of the two
  kShareLane,
  kFreeLanes,
  kWindowLane = kFreeLanes,
  kTimeoutLane,
  kLatencyLane,
  kUnusedLane,  // lanes are even
  kHeldBackLanes,
};

// The columns of a path's lanes.
using PathColumns = std::array<int, kUnusedLane>;
PathColumns ColumnsOfPath(int link, bool mesh, const LinkFacts& facts) {
  return {link,        kFlowBandwidth, mesh ? kMeshShare : kHopSpread,   kShareColumn,
          kFlowWindow, kLossTimeout,   internal::LatencyParameter(facts)};
}

// Sets the value of a scalar whose derivatives are 0.
void SetValue(double* scalar, double value) { *scalar = value; }
template <class S>
void SetValue(DualNumber<S>* scalar, double value) {
  scalar->value = value;
}

// Parameters as scalars without a derivative, so far.
template <class T>
ClusterParameters<T> ConstantsOf(const ClusterParameters<double>& at) {
  ClusterParameters<T> cluster;
  for (std::size_t i = 0; i < cluster.si.size(); ++i) SetValue(&cluster.si[i], at.si[i]);
  if (at.node_link_si) cluster.node_link_si = T(*at.node_link_si);
  if (at.node_slowdown) cluster.node_slowdown = T(*at.node_slowdown);
  cluster.stated_share = T(at.stated_share);
  return cluster;
}
template <class T>
WorkloadParameters<T> ConstantsOf(const WorkloadParameters<double>& at) {
  WorkloadParameters<T> workload;
  for (std::size_t i = 0; i < workload.si.size(); ++i) SetValue(&workload.si[i], at.si[i]);
  return workload;
}

// Gives a parameter its derivative: d value / d ln(value).
template <class T>
void Vary(T* parameter, int lane) {
  parameter->slope.Set(lane, parameter->value);
}

// Those of a cluster by the lanes of a path; without derivatives where P is no dual number.
template <class P>
ClusterParameters<P> VariedByPath(const ClusterParameters<double>& at) {
  ClusterParameters<P> cluster = ConstantsOf<P>(at);
  if constexpr (!std::is_same_v<P, double>) {
    // No path has both the links of its own nodes and the cluster's.
    if (cluster.node_link_si) Vary(&*cluster.node_link_si, kLinkLane);
    Vary(&cluster.si[kLinkBandwidth], kLinkLane);
    Vary(&cluster.si[kFlowBandwidth], kFlowLane);
    Vary(&cluster.si[kHopSpread], kSpreadLane);
    Vary(&cluster.si[kMeshShare], kSpreadLane);
    Vary(&cluster.stated_share, kShareLane);
    if constexpr (!std::is_same_v<P, DualOf<kFreeLanes>>) {
      Vary(&cluster.si[kFlowWindow], kWindowLane);
      Vary(&cluster.si[kLossTimeout], kTimeoutLane);
      Vary(&cluster.si[kLinkLatency], kLatencyLane);
      Vary(&cluster.si[kRdmaLatency], kLatencyLane);
    }
  }
  return cluster;
}

// A part by its parameters, `count` of them: what lies behind is never read.
// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): see above
struct PartSlopes {
  std::array<double, kHeldBackLanes> by;
  PathColumns columns;
  std::size_t count = 0;
};

// Works the parts out by their parameters and hands them on by themselves. T is the scalar of the
// step, P that of paths.
template <class T, class P>
struct SplitParts : KnownToPlan {
  WorkloadParameters<CurveDual> by_curve;
  ClusterParameters<P> by_path;
  std::array<PartSlopes, kParts>* slopes = nullptr;

  SplitParts(const KnownToPlan& known, const PlanParameters& at, std::array<PartSlopes, kParts>* to)
      : KnownToPlan(known),
        by_curve(ConstantsOf<CurveDual>(at.workload)),
        by_path(VariedByPath<P>(at.cluster)),
        slopes(to) {
    for (int lane = 0; lane < kCurveParameters; ++lane) {
      Vary(&by_curve.si[static_cast<std::size_t>(lane)], lane);
    }
  }

  Duration<T> CurveTime(double batch, const WorkloadParameters<T>& /*workload*/) const {
    constexpr PathColumns kColumns = {kWorkloadColumn + kFixedTime, kWorkloadColumn + kFloorTime,
                                      kWorkloadColumn + kSampleTime};
    return As(kCurvePart, KnownToPlan::CurveTime(batch, by_curve), kColumns, kCurveParameters);
  }
  PathRate<T> NodeRate(const LinkFacts& link, const ClusterParameters<T>& /*cluster*/,
                       const FlowShape& shape, const Barrier<T>& barrier,
                       PathTerms<T>* /*terms*/) const {
    const PathRate<P> rate =
        KnownToPlan::NodeRate<P>(link, by_path, shape, OfPath(barrier), nullptr);
    const bool own_link = by_path.node_link_si && internal::LineOfSlowest(link, by_path, shape).own;
    const int of_link = own_link ? kLinkColumn : int{kLinkBandwidth};
    return {OfPath(kNodePathPart, rate.bandwidth, ColumnsOfPath(of_link, shape.mesh, link)),
            rate.limiter};
  }
  PathRate<T> ServerRate(const LinkFacts& link, const ClusterParameters<T>& /*cluster*/,
                         const FlowShape& shape, const Barrier<T>& barrier,
                         PathTerms<T>* /*terms*/) const {
    const PathRate<P> rate =
        KnownToPlan::ServerRate<P>(link, by_path, shape, OfPath(barrier), nullptr);
    return {
        OfPath(kServerPathPart, rate.bandwidth, ColumnsOfPath(kLinkBandwidth, shape.mesh, link)),
        rate.limiter};
  }
  FlowLimits<T> ConnectionLimits(const LinkFacts& path, const ClusterParameters<T>& /*cluster*/,
                                 const Barrier<T>& barrier) const {
    const FlowLimits<P> limits = KnownToPlan::ConnectionLimits<P>(path, by_path, OfPath(barrier));
    const PathColumns columns = ColumnsOfPath(kLinkBandwidth, false, path);
    return {OfPath(kWindowPart, limits.window, columns), OfPath(kLossPart, limits.loss, columns)};
  }

 private:
  static Barrier<P> OfPath(const Barrier<T>& barrier) {
    return {DataSize<P>(ValueOf(barrier.message)), barrier.flows};
  }
  template <class D>
  Quantity<D, T> OfPath(Part part, const Quantity<D, P>& value, const PathColumns& columns) const {
    if constexpr (std::is_same_v<P, double>) {
      return value;
    } else {
      constexpr bool kFree = std::is_same_v<P, DualOf<kFreeLanes>>;
      return As(part, value, columns, kFree ? kFreeLanes : kUnusedLane);
    }
  }
  template <class D, class S>
  Quantity<D, T> As(Part part, const Quantity<D, S>& value, const PathColumns& columns,
                    int count) const {
    PartSlopes& kept = (*slopes)[part];
    value.si().slope.Store(kept.by.data());
    kept.columns = columns;
    kept.count = static_cast<std::size_t>(count);
    T itself(value.si().value);
    itself.slope.Set(part, 1);
    return Quantity<D, T>::FromSi(itself);
  }
};

// Columns that enter by parts alone.
constexpr bool OfPartsAlone(int column) {
  switch (column) {
    case kWorkloadColumn + kFixedTime:
    case kWorkloadColumn + kFloorTime:
    case kWorkloadColumn + kSampleTime:
    case kLinkBandwidth:
    case kFlowBandwidth:
    case kFlowWindow:
    case kHopSpread:
    case kMeshShare:
    case kLinkColumn:
    case kShareColumn:
      return true;
    default:
      return false;
  }
}

// Those columns, as bits.
constexpr unsigned long long kOfPartsAlone = [] {
  unsigned long long columns = 0;
  for (int column = 0; column < kPlanColumns; ++column) {
    if (OfPartsAlone(column)) columns |= 1ULL << column;
  }
  return columns;
}();

// Lanes that are enough for every plan.
constexpr int kMostLanes = [] {
  int lanes = kParts;
  for (int column = 0; column < kPlanColumns; ++column) lanes += OfPartsAlone(column) ? 0 : 1;
  return (lanes + 1) / 2 * 2;
}();

// The variables of a plan's answer: the columns that are wanted, and those of them that the step
// carries, behind as many lanes for parts as the plan may have.
struct Variables {
  ColumnSet wanted;
  int parts = 0;
  bool held_back = false;  // by round trips or losses
  std::array<std::uint8_t, kPlanColumns> carried{};
  int count = 0;  // of these

  int lanes() const { return parts + count; }
};

Variables VariablesOf(const StepFacts& facts, const ColumnSet& matter,
                      const ClusterParameters<double>& at, Derivatives derivatives) {
  Variables variables;
  variables.wanted = matter;
  if (!at.node_slowdown) variables.wanted.reset(kSlowdownColumn);
  if (derivatives == Derivatives::kOfWorkload) {
    ColumnSet workload;
    for (int i = 0; i < kWorkloadParameterCount; ++i) {
      workload.set(static_cast<std::size_t>(kWorkloadColumn + i));
    }
    variables.wanted &= workload;
  }
  variables.held_back = facts.link.may_hold_back() || facts.server_link.may_hold_back();
  const bool paths = derivatives == Derivatives::kAll && !internal::Alone(facts);
  const bool servers = UsesServers(facts.strategy) || TraitsOf(facts.strategy).helpers;
  variables.parts = !paths                ? kNodePathPart
                    : !servers            ? kServerPathPart
                    : variables.held_back ? kParts
                                          : kWindowPart;
  for (unsigned long long left = variables.wanted.to_ullong() & ~kOfPartsAlone; left != 0;
       left &= left - 1) {
    variables.carried[static_cast<std::size_t>(variables.count++)] =
        static_cast<std::uint8_t>(std::countr_zero(left));
  }
  return variables;
}

template <class T>
T& ParameterOf(int column, ClusterParameters<T>* cluster, WorkloadParameters<T>* workload) {
  const auto at = static_cast<std::size_t>(column);
  return column < kWorkloadColumn    ? cluster->si[at]
         : column == kSlowdownColumn ? *cluster->node_slowdown
                                     : workload->si[at - kWorkloadColumn];
}

template <class T>
void TakeValues(const StepTime<T>& step, PlanAnswer* answer) {
  answer->step = {ValueOf(step.forward),          ValueOf(step.backward),
                  ValueOf(step.update),           ValueOf(step.exposed_latency),
                  ValueOf(step.exposed_transfer), ValueOf(step.straggler_wait),
                  ValueOf(step.synchronisation),  ValueOf(step.coding),
                  ValueOf(step.input_wait),       step.limiter};
  const Duration<> total = answer->step.total();
  answer->log_step = std::log(total.si());
  answer->sync_share = (answer->step.exposed() + answer->step.straggler_wait) / total;
}

template <int kLanes, class P>
void Differentiate(const StepFacts& facts, const KnownToPlan& known, const PlanParameters& at,
                   const Variables& variables, PlanAnswer* answer) {
  using T = DualOf<kLanes>;
  ClusterParameters<T> cluster = ConstantsOf<T>(at.cluster);
  WorkloadParameters<T> workload = ConstantsOf<T>(at.workload);
  for (int i = 0; i < variables.count; ++i) {
    const int column = variables.carried[static_cast<std::size_t>(i)];
    Vary(&ParameterOf(column, &cluster, &workload), variables.parts + i);
  }
  std::array<PartSlopes, kParts> parts;
  const SplitParts<T, P> split(known, at, &parts);
  const StepTime<T> step = Evaluate(facts, cluster, workload, split, answer);
  TakeValues(step, answer);
  const auto gradient_of = [&](const T& what, double scale, PlanGradient* gradient) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): Store sets it
    std::array<double, kLanes> by;
    (what.slope * scale).Store(by.data());
    for (int i = 0; i < variables.count; ++i) {
      (*gradient)[static_cast<std::size_t>(variables.carried[static_cast<std::size_t>(i)])] =
          by[static_cast<std::size_t>(variables.parts + i)];
    }
    for (std::size_t part = 0; part < static_cast<std::size_t>(variables.parts); ++part) {
      for (std::size_t i = 0; i < parts[part].count; ++i) {
        const auto column = static_cast<std::size_t>(parts[part].columns[i]);
        if (variables.wanted[column]) (*gradient)[column] += by[part] * parts[part].by[i];
      }
    }
  };
  const T total = step.total().si();
  const T compute = step.compute().si();
  const T share = (step.exposed() + step.straggler_wait).si() / total;
  gradient_of(total, 1 / total.value, &answer->log_step_gradient);
  gradient_of(compute, compute.value > 0 ? 1 / compute.value : 0, &answer->log_compute_gradient);
  gradient_of(share, 1, &answer->sync_share_gradient);
}

}  // namespace

PlanAnswer PlanModel::Answer(const PlanParameters& at, Derivatives derivatives) const {
  KnownToPlan parts;
  parts.lines = &lines_;
  parts.held = &held_;
  parts.async_lines = &async_lines_;
  parts.slowest = slowest_;
  std::optional<StepFacts> later;
  if (facts_.slow_share) {
    later = internal::LaterSide(facts_, at.cluster, at.workload, parts);
  }
  const StepFacts& facts = later ? *later : facts_;
  PlanAnswer answer;
  answer.batch = facts.batch;
  if (derivatives == Derivatives::kNone) {
    TakeValues(Evaluate(facts, at.cluster, at.workload, parts, &answer), &answer);
    return answer;
  }
  // Few derivatives are the rule, and cost less.
  constexpr int kNoPath = 6;
  constexpr int kFew = 10;
  constexpr int kSeveral = 12;
  constexpr int kMany = 16;
  using Free = DualOf<kFreeLanes>;
  using HeldBack = DualOf<kHeldBackLanes>;
  const Variables variables = VariablesOf(
      facts, at.cluster.node_link_si ? own_link_columns_ : columns_, at.cluster, derivatives);
  const int lanes = variables.lanes();
  if (variables.parts == kNodePathPart && lanes <= kNoPath) {
    Differentiate<kNoPath, double>(facts, parts, at, variables, &answer);
  } else if (!variables.held_back && lanes <= kFew) {
    Differentiate<kFew, Free>(facts, parts, at, variables, &answer);
  } else if (!variables.held_back && lanes <= kSeveral) {
    Differentiate<kSeveral, Free>(facts, parts, at, variables, &answer);
  } else if (lanes <= kMany) {
    Differentiate<kMany, HeldBack>(facts, parts, at, variables, &answer);
  } else {
    Differentiate<kMostLanes, HeldBack>(facts, parts, at, variables, &answer);
  }
  return answer;
}

}  // namespace stepcast
