#include "predictor/online/step_answer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/numeric/dual.h"

namespace stepcast::internal {
namespace {

using Values = std::array<double, kAnswerColumns>;

// The columns on which the plan's step can depend.
struct Columns {
  std::array<std::size_t, kAnswerColumns> at{};
  int count = 0;

  void Add(int column) {
    at[static_cast<std::size_t>(count)] = static_cast<std::size_t>(column);
    ++count;
  }
};

Columns ActiveColumns(const StepFacts& facts, bool named_link) {
  Columns columns;
  const bool alone = Alone(facts);
  for (int i = 0; i < kClusterParameterCount; ++i) {
    if (alone && i != kHostContention) continue;
    // Each device exchanges with the servers over its node's link.
    if (i == kDeviceLatency && UsesServers(facts.strategy)) continue;
    const bool own_link = i == kLinkBandwidth && !named_link && facts.nodes > 1;
    if (own_link || CanDependOn(facts, static_cast<ClusterParameter>(i))) columns.Add(i);
  }
  for (int i = 0; i < kWorkloadParameterCount; ++i) columns.Add(Belief::kWorkloadOffset + i);
  if (named_link && !alone) columns.Add(kLinkColumn);
  return columns;
}

}  // namespace

PlanModel::PlanModel(StepFacts facts) : facts_(std::move(facts)) {
  if (Alone(facts_)) return;
  slowest_ = ComputedParts().Slowest(facts_);
  if (TraitsOf(facts_.strategy).has_phases()) {
    lines_ = MakeBucketLines(*facts_.buckets);
    held_ = MakeBucketLines(*facts_.held_buckets);
  } else if (TraitsOf(facts_.strategy).asynchronous()) {
    async_lines_ = AsyncLinesOf(facts_);
  }
}

template <int kLanes>
void PlanModel::Evaluate(const Values& values, StepAnswer* answer) const {
  const Columns columns = ActiveColumns(facts_, values[kLinkColumn] > 0);
  using T = DualOf<kLanes>;
  ClusterParameters<T> cluster;
  WorkloadParameters<T> workload;
  for (std::size_t i = 0; i < cluster.si.size(); ++i) cluster.si[i] = T(values[i]);
  for (std::size_t i = 0; i < workload.si.size(); ++i) {
    workload.si[i] = T(values[Belief::kWorkloadOffset + i]);
  }
  cluster.node_link_si = T(values[kLinkColumn]);
  for (int lane = 0; lane < columns.count; ++lane) {
    const std::size_t column = columns.at[static_cast<std::size_t>(lane)];
    T& parameter = column < cluster.si.size() ? cluster.si[column]
                   : column < kLinkColumn     ? workload.si[column - Belief::kWorkloadOffset]
                                              : cluster.node_link_si;
    parameter.slope.Set(lane, values[column]);  // d value / d ln(value)
  }
  Parts parts;
  parts.lines = &lines_;
  parts.held = &held_;
  parts.async_lines = &async_lines_;
  parts.slowest = slowest_;
  const StepTime<T> step = JoinStep<T>(
      facts_, MakeStepInputs<T>(facts_, cluster, workload, parts, nullptr), parts, nullptr);
  const Duration<T> total = step.total();
  const T log_step = log(total.si());
  answer->log_step = log_step.value;
  answer->sync_share = ValueOf(step.exposed() + step.straggler_wait) / ValueOf(total);
  for (int lane = 0; lane < columns.count; ++lane) {
    answer->gradient[columns.at[static_cast<std::size_t>(lane)]] = log_step.slope[lane];
  }
}

StepAnswer PlanModel::Answer(const Values& values) const {
  // Few derivatives are the rule, and cost less.
  constexpr int kAlone = 6;
  constexpr int kFew = 14;
  constexpr int kMany = 18;
  constexpr int kAll = (kAnswerColumns + 1) / 2 * 2;
  const int count = ActiveColumns(facts_, values[kLinkColumn] > 0).count;
  StepAnswer answer;
  if (count <= kAlone) {
    Evaluate<kAlone>(values, &answer);
  } else if (count <= kFew) {
    Evaluate<kFew>(values, &answer);
  } else if (count <= kMany) {
    Evaluate<kMany>(values, &answer);
  } else {
    Evaluate<kAll>(values, &answer);
  }
  return answer;
}

}  // namespace stepcast::internal
