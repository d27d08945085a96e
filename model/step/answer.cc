#include "model/step/answer.h"

#include <cmath>
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

template <class T>
StepTime<T> Evaluate(const StepFacts& facts, const ClusterParameters<T>& cluster,
                     const WorkloadParameters<T>& workload, const KnownToPlan& parts) {
  return internal::JoinStep<T>(
      facts, internal::MakeStepInputs<T>(facts, cluster, workload, parts, nullptr), parts, nullptr);
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

bool MattersTo(const StepFacts& facts, bool own_link, int column) {
  if (column >= kWorkloadColumn && column < kLinkColumn) return true;
  if (column == kSlowdownColumn) return facts.has_compute;
  const bool several = facts.devices_per_node > 1;  // devices on a node
  if (column == kHostContention) return internal::OthersBeside(facts) > 0;
  if (internal::Alone(facts)) return false;
  const bool servers = UsesServers(facts.strategy);
  const bool between_nodes = internal::LeavesNode(facts);
  const bool rdma = internal::ExchangeLink(facts).rdma();
  switch (column) {
    case kLinkColumn:
      return own_link && between_nodes;
    case kShareColumn:
      return between_nodes && (facts.link.bandwidth || facts.server_link.bandwidth);
    case kLinkBandwidth:
      // Servers, and the helpers of BytePS, have the cluster's link.
      return servers || (facts.nodes > 1 && (!own_link || TraitsOf(facts.strategy).helpers));
    case kNodeSyncOverhead:
      return facts.has_compute && between_nodes;
    case kFlowBandwidth:
    case kLinkLatency:
      return between_nodes && !rdma;
    case kRdmaLatency:
      return between_nodes && rdma;
    case kHostSharing:
      return between_nodes && several;
    case kHopSpread:
      // Of one who exchanges with many at once, the mean is what counts.
      return facts.nodes > 1 && !rdma && !servers && !TraitsOf(facts.strategy).helpers;
    case kMeshShare:
      return facts.nodes > 1 && !rdma && TraitsOf(facts.strategy).helpers;
    case kDeviceSyncOverhead:
      return facts.has_compute && !between_nodes;
    case kDeviceLatency:
      // Each device exchanges with servers over its node's link.
      return several && !servers;
    case kTransferInitiation:
    case kServerRate:
    case kRpcRounds:
      return servers;
    case kFlowWindow:
    case kLossTimeout: {
      const bool loss = facts.link.loss.value_or(0) > 0 || facts.server_link.loss.value_or(0) > 0;
      return between_nodes && !rdma && (loss || facts.link.rtt || facts.server_link.rtt);
    }
    default:
      return true;
  }
}

PlanModel::PlanModel(StepFacts facts) : facts_(std::move(facts)) {
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

// The columns by which a plan's answer is differentiated.
struct Columns {
  std::array<int, kPlanColumns> at{};
  int count = 0;

  void Add(int column) { at[static_cast<std::size_t>(count++)] = column; }
};

Columns ColumnsOf(const StepFacts& facts, const ClusterParameters<double>& at,
                  Derivatives derivatives) {
  const bool own_link = at.node_link_si.has_value();
  Columns columns;
  for (int column = 0; column < kPlanColumns; ++column) {
    const bool wanted =
        derivatives == Derivatives::kAll || (column >= kWorkloadColumn && column < kLinkColumn);
    if (column == kSlowdownColumn && !at.node_slowdown) continue;
    if (wanted && MattersTo(facts, own_link, column)) columns.Add(column);
  }
  return columns;
}

template <class T>
void TakeValues(const StepTime<T>& step, PlanAnswer* answer) {
  answer->step = {ValueOf(step.forward),          ValueOf(step.backward),
                  ValueOf(step.update),           ValueOf(step.exposed_latency),
                  ValueOf(step.exposed_transfer), ValueOf(step.straggler_wait),
                  ValueOf(step.synchronisation),  step.limiter};
  const Duration<> total = answer->step.total();
  answer->log_step = std::log(total.si());
  answer->sync_share = (answer->step.exposed() + answer->step.straggler_wait) / total;
}

template <int kLanes>
void Differentiate(const StepFacts& facts, const KnownToPlan& parts, const PlanParameters& at,
                   const Columns& columns, PlanAnswer* answer) {
  using T = DualOf<kLanes>;
  ClusterParameters<T> cluster;
  WorkloadParameters<T> workload;
  for (std::size_t i = 0; i < cluster.si.size(); ++i) cluster.si[i] = T(at.cluster.si[i]);
  for (std::size_t i = 0; i < workload.si.size(); ++i) workload.si[i] = T(at.workload.si[i]);
  if (at.cluster.node_link_si) cluster.node_link_si = T(*at.cluster.node_link_si);
  cluster.stated_share = T(at.cluster.stated_share);
  if (at.cluster.node_slowdown) cluster.node_slowdown = T(*at.cluster.node_slowdown);
  const auto column_of = [&](int lane) {
    return static_cast<std::size_t>(columns.at[static_cast<std::size_t>(lane)]);
  };
  for (int lane = 0; lane < columns.count; ++lane) {
    const std::size_t column = column_of(lane);
    T& parameter = column < kWorkloadColumn    ? cluster.si[column]
                   : column < kLinkColumn      ? workload.si[column - kWorkloadColumn]
                   : column == kLinkColumn     ? *cluster.node_link_si
                   : column == kSlowdownColumn ? *cluster.node_slowdown
                                               : cluster.stated_share;
    parameter.slope.Set(lane, parameter.value);  // d value / d ln(value)
  }
  const StepTime<T> step = Evaluate(facts, cluster, workload, parts);
  TakeValues(step, answer);
  const T total = step.total().si();
  const T compute = step.compute().si();
  const T share = (step.exposed() + step.straggler_wait).si() / total;
  const double by_compute = compute.value > 0 ? 1 / compute.value : 0;
  for (int lane = 0; lane < columns.count; ++lane) {
    const std::size_t column = column_of(lane);
    answer->log_step_gradient[column] = total.slope[lane] / total.value;
    answer->log_compute_gradient[column] = compute.slope[lane] * by_compute;
    answer->sync_share_gradient[column] = share.slope[lane];
  }
}

}  // namespace

PlanAnswer PlanModel::Answer(const PlanParameters& at, Derivatives derivatives) const {
  KnownToPlan parts;
  parts.lines = &lines_;
  parts.held = &held_;
  parts.async_lines = &async_lines_;
  parts.slowest = slowest_;
  PlanAnswer answer;
  if (derivatives == Derivatives::kNone) {
    TakeValues(Evaluate(facts_, at.cluster, at.workload, parts), &answer);
    return answer;
  }
  // Few derivatives are the rule, and cost less.
  constexpr int kAlone = 6;
  constexpr int kFew = 14;
  constexpr int kMany = 18;
  constexpr int kAll = (kPlanColumns + 1) / 2 * 2;
  const Columns columns = ColumnsOf(facts_, at.cluster, derivatives);
  if (columns.count <= kAlone) {
    Differentiate<kAlone>(facts_, parts, at, columns, &answer);
  } else if (columns.count <= kFew) {
    Differentiate<kFew>(facts_, parts, at, columns, &answer);
  } else if (columns.count <= kMany) {
    Differentiate<kMany>(facts_, parts, at, columns, &answer);
  } else {
    Differentiate<kAll>(facts_, parts, at, columns, &answer);
  }
  return answer;
}

}  // namespace stepcast
