#include "calibrate/group_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "data/record/input_error.h"

namespace stepcast {
namespace {

// Share of the variance of a step that its repeats have in common: other layouts of one shape differ
// by 3 to 6 % where single steps scatter by 6 to 8 % (public traces).
constexpr double kSharedByRepeats = 0.3;

// What decides a plan's answer, as numbers: equal keys have equal answers.
using PlanKey = std::vector<double>;

PlanKey KeyOf(const StepFacts& f, const DataSize<>& bucket_cap, int workload_offset,
              const std::vector<int>& host_offsets) {
  const auto known = [](const auto& optional, auto si) { return optional ? si(*optional) : -1.0; };
  const auto quantity = [](const auto& q) { return q.si(); };
  const auto number = [](const auto& n) { return static_cast<double>(n); };
  PlanKey key = {number(workload_offset),
                 number(f.workers),
                 number(f.nodes),
                 number(f.devices_per_node),
                 f.batch,
                 number(f.accumulation_steps),
                 number(f.strategy),
                 number(f.servers),
                 number(f.overlap),
                 number(f.backup_workers),
                 number(f.server.colocated),
                 number(f.server.sharding),
                 number(f.server.pipelined),
                 number(f.server.multicast),
                 number(f.server.in_network_aggregation),
                 known(f.server.staleness_bound, number),
                 bucket_cap.si()};
  for (const LinkFacts* link : {&f.link, &f.server_link}) {
    key.push_back(known(link->bandwidth, quantity));
    key.push_back(known(link->rtt, quantity));
    key.push_back(known(link->loss, number));
    key.push_back(known(link->congestion_control, number));
    key.push_back(known(link->loss_burst, quantity));
  }
  for (const int offset : host_offsets) key.push_back(offset);
  return key;
}

// The exposed synchronisation of an all-reduce includes the wait for the slowest worker, because
// nobody's ends before everybody's began. What one device measures is the call alone.
std::optional<double> SyncShare(const Run& run) {
  if (!run.exposed_sync || run.plan.workers() == 1 || UsesServers(run.plan.strategy)) {
    return std::nullopt;
  }
  return *run.exposed_sync / run.step_time;
}

}  // namespace

std::vector<PlanRows> GroupRows(const CalibrationProblem& problem, const ParameterLayout& layout) {
  std::map<std::pair<std::string, double>, std::shared_ptr<const std::vector<Bucket>>> buckets;
  std::map<PlanKey, PlanRows> plans;
  for (std::size_t i = 0; i < problem.runs.size(); ++i) {
    const Run& run = problem.runs[i];
    const Workload& workload = problem.workloads.at(run.workload);
    const DataSize<> cap = run.plan.bucket.value_or(DefaultBucket(run.plan.strategy));
    auto& shared = buckets[{run.workload, cap.in(kBytes)}];
    if (!shared) {
      shared = std::make_shared<const std::vector<Bucket>>(MakeBuckets(workload, cap));
    }
    PlanRows plan;
    try {
      plan.facts = MakeStepFacts(problem.cluster, run.plan, workload, shared);
    } catch (const InputError& e) {
      throw InputError({run.place.file, run.place.line, e.place().key}, e.value(), e.problem(),
                       e.allowed());
    }
    plan.workload_offset = layout.WorkloadOffset(run);
    plan.host_offsets = layout.HostOffsets(run);
    PlanKey key = KeyOf(plan.facts, cap, plan.workload_offset, plan.host_offsets);
    PlanRows& group = plans.try_emplace(std::move(key), std::move(plan)).first->second;
    group.rows.push_back(
        {static_cast<int>(i), std::log(run.step_time.in(kSeconds)), SyncShare(run)});
  }
  std::vector<PlanRows> result;
  result.reserve(plans.size());
  for (auto& [key, plan] : plans) result.push_back(std::move(plan));
  return result;
}

std::vector<const PlanRows*> Shuffled(const std::vector<PlanRows>& plans) {
  constexpr int kFewOfEach = 8;
  std::vector<const PlanRows*> pointers;
  for (const PlanRows& plan : plans) pointers.push_back(&plan);
  std::mt19937_64 random;
  for (std::size_t i = pointers.size(); i > 1; --i) {
    std::swap(pointers[i - 1], pointers[random() % i]);
  }
  std::map<int, int> seen;
  std::stable_partition(pointers.begin(), pointers.end(), [&](const PlanRows* plan) {
    return ++seen[plan->workload_offset] <= kFewOfEach;
  });
  return pointers;
}

std::optional<double> RepeatScatter(const std::vector<PlanRows>& plans) {
  double squares = 0;
  int degrees = 0;
  for (const PlanRows& plan : plans) {
    double mean = 0;
    for (const MeasuredRow& row : plan.rows) mean += row.log_step;
    mean /= static_cast<double>(plan.rows.size());
    for (const MeasuredRow& row : plan.rows) squares += std::pow(row.log_step - mean, 2);
    degrees += static_cast<int>(plan.rows.size()) - 1;
  }
  if (degrees == 0) return std::nullopt;
  return std::sqrt(squares / degrees);
}

double RepeatFactor(std::size_t n) {
  return std::sqrt(1 - kSharedByRepeats + kSharedByRepeats * static_cast<double>(n));
}

}  // namespace stepcast
