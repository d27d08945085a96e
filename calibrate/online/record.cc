// What was learnt as a record, and back: a record of another job, or one that no job could have
// left, is refused.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "calibrate/online/state.h"
#include "data/record/input_error.h"
#include "data/units/shortest.h"

namespace stepcast {
namespace {

[[noreturn]] void Refuse(const std::string& key, const std::string& value,
                         const std::string& problem, const std::string& allowed = "") {
  throw InputError({"", 0, key}, value, problem, allowed);
}

void CheckSame(const char* key, const std::string& text, const std::string& own) {
  if (text != own) Refuse(key, text, "is another", own);
}

void CheckSize(const char* key, Eigen::Index size, Eigen::Index own) {
  if (size != own) Refuse(key, std::to_string(size), "is of another size", std::to_string(own));
}

void CheckSame(const char* key, const Eigen::VectorXd& numbers, const Eigen::VectorXd& own) {
  CheckSize(key, numbers.size(), own.size());
  // Logarithms may be rounded otherwise on another machine.
  constexpr double kRounding = 1e-9;
  for (Eigen::Index i = 0; i < own.size(); ++i) {
    if (std::abs(numbers[i] - own[i]) <= kRounding * (1 + std::abs(own[i]))) continue;
    Refuse(key, ShortestText(numbers[i]),
           "is of another calibration of the cluster, or another workload", ShortestText(own[i]));
  }
}

internal::DriftSums DriftOf(const OnlineRecord& record) {
  internal::DriftSums drift;
  if (record.drift_sums.size() != drift.sums.size() ||
      record.drift_rows.size() != drift.rows.size()) {
    Refuse("drift", std::to_string(record.drift_sums.size()), "sums are not those of this version");
  }
  std::copy(record.drift_sums.begin(), record.drift_sums.end(), drift.sums.begin());
  std::copy(record.drift_rows.begin(), record.drift_rows.end(), drift.rows.begin());
  drift.latest = record.latest;
  for (const std::int64_t of : drift.rows) {
    if (of > static_cast<std::int64_t>(drift.latest.size())) {
      Refuse("drift", std::to_string(of), "are more rows than there are");
    }
  }
  for (const internal::DriftSums::Row& row : drift.latest) {
    if (!row.slopes.empty() && row.slopes.size() != internal::kDriftingCount) {
      Refuse("drift", std::to_string(row.slopes.size()), "slopes are not those of this version");
    }
  }
  return drift;
}

}  // namespace

OnlineRecord internal::OnlineState::Export() const {
  OnlineRecord record;
  record.cluster = cluster.name;
  record.workload = start.workload().name;
  record.device = start.device();
  record.start_log_values = centre;
  record.start_log_sds = root.rowwise().norm();
  record.start_scatter = start_scatter;
  record.smallest_batch = smallest_batch;
  record.least_activations = LeastActivations();
  if (anew) record.anew = cluster.calibration;
  record.earlier_rows = earlier_rows;
  record.rows = rows;
  record.y = y;
  record.scatter = scatter;
  record.next_scatter = next_scatter;
  record.next_plan = static_cast<std::int64_t>(next_plan);
  record.drift_sums.assign(drift.sums.begin(), drift.sums.end());
  record.drift_rows.assign(drift.rows.begin(), drift.rows.end());
  record.latest = drift.latest;
  record.folded = folded;
  record.folded_b = folded_b;
  record.a = a;
  record.b = b;
  record.range = range;
  record.plans.assign(plans.begin(), plans.end());
  return record;
}

void internal::OnlineState::Import(const OnlineRecord& record) {
  CheckSame("cluster", record.cluster, cluster.name);
  CheckSame("workload", record.workload, start.workload().name);
  CheckSame("device", record.device, start.device());
  if (record.earlier_rows > 0 && !record.anew) {
    Refuse("earlier_rows", std::to_string(record.earlier_rows), "are not what began anew");
  }
  if (record.anew) {
    const std::shared_ptr<const Cluster> given = first;
    Cluster before = *first;
    before.calibration = record.anew;
    *this = OnlineState(std::move(before), start.workload(), device_facts, start.device());
    first = given;
    anew = true;
    earlier_rows = record.earlier_rows;
  }
  if (record.smallest_batch > 0) KnowSmallestBatch(record.smallest_batch);
  KnowLeastActivations(record.least_activations);
  CheckSame("start_log_values", record.start_log_values, centre);
  CheckSame("start_log_sds", record.start_log_sds, root.rowwise().norm());
  CheckSame("start_scatter", Eigen::VectorXd::Constant(1, record.start_scatter),
            Eigen::VectorXd::Constant(1, start_scatter));
  CheckSize("y", record.y.size(), size());
  CheckSize("folded", record.folded.rows(), size());
  CheckSize("folded_b", record.folded_b.size(), size());
  CheckSize("a", record.a.rows(), size());
  CheckSize("b", record.b.size(), size());
  rows = record.rows;
  SetY(record.y);
  // In standard deviations of the start.
  constexpr double kFarthest = 1e3;
  if (!values.allFinite() || y.cwiseAbs().maxCoeff() > kFarthest) {
    Refuse("y", "", "is of no parameters that can be");
  }
  scatter = record.scatter;
  next_scatter = record.next_scatter;
  drift = DriftOf(record);
  folded = record.folded;
  folded_b = record.folded_b;
  const Eigen::MatrixXd with_start = Eigen::MatrixXd::Identity(size(), size()) + folded;
  if (with_start.selfadjointView<Eigen::Lower>().llt().info() != Eigen::Success) {
    Refuse("folded", "", "is of no normal equations");
  }
  a = record.a;
  b = record.b;
  range = record.range;
  if (record.plans.size() > kMostPlans) {
    Refuse("plans", std::to_string(record.plans.size()), "is too many", std::to_string(kMostPlans));
  }
  double kept = 0;
  for (const MeasuredPlan& from : record.plans) {
    CheckSize("slopes", from.slopes.size(), size());
    if (from.times.empty() || from.times.size() > kMostTimes) {
      Refuse("times", std::to_string(from.times.size()), "is no number of times that a plan has");
    }
    if (from.last > rows) Refuse("last_row", std::to_string(from.last), "is out of range");
    const std::size_t before = plans.size();
    const std::size_t at = FindOrAdd(from.plan);
    if (at < before) Refuse("plans", StrategyName(from.plan.strategy), "is there twice");
    static_cast<MeasuredPlan&>(plans[at]) = from;
    for (const MeasuredTime& time : from.times) plans[at].rows += time.rows;
    kept += plans[at].rows;
  }
  if (kept > static_cast<double>(rows) || (rows > 0 && plans.empty() && record.folded.isZero(0))) {
    Refuse("rows", std::to_string(rows), "is not what the plans have");
  }
  if (record.next_plan < 0 || record.next_plan > static_cast<std::int64_t>(kMostPlans)) {
    Refuse("next_plan", std::to_string(record.next_plan), "is out of range");
  }
  next_plan = static_cast<std::size_t>(record.next_plan);
  solver.compute(a);
  if (solver.info() != Eigen::Success) Refuse("a", "", "is not positive definite");
}

}  // namespace stepcast
