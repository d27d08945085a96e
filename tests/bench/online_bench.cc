// The cost of learning from a measured step while the job runs.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/online/fleet.h"
#include "calibrate/online/online_calibration.h"
#include "data/io/online_record.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

constexpr std::size_t kPlans = 25;
constexpr std::size_t kRows = 100;

struct Row {
  Plan plan;
  Duration<> step_time;
};

// Rows of 25 plans in turn: up to 32 workers on up to 8 nodes, two batches and three.
std::vector<Row> Rows(const std::string& workload, Strategy strategy, std::size_t rows) {
  const SyntheticProblem synthetic(PlausibleTruth());
  Noise noise(1);
  std::vector<Plan> plans;
  for (const int batch : SyntheticBatches(workload)) {
    for (const Placement& placement : FittedPlacements()) {
      Plan plan = AllreducePlan(placement, batch);
      if (plan.workers() > 1) plan.strategy = strategy;
      if (UsesServers(plan.strategy)) plan.servers = 2;
      if (plans.size() < kPlans) plans.push_back(std::move(plan));
    }
  }
  std::vector<Row> result;
  for (std::size_t i = 0; i < rows; ++i) {
    const Plan& plan = plans[7 * i % plans.size()];
    result.push_back({plan, synthetic.TrueStep(workload, plan) * std::exp(0.04 * noise.Next())});
  }
  return result;
}

OnlineCalibration After(const std::string& workload, const std::vector<Row>& rows) {
  OnlineCalibration job(SyntheticCluster(), *FindWorkload(workload), T4());
  for (const Row& row : rows) job.Observe(row.plan, row.step_time);
  return job;
}

// Rows 101 to 200, again and again: a row that searches anew, the 128th, is one of them. The median
// is the counter.
void Observe(benchmark::State& state, const std::string& workload, Strategy strategy) {
  using Clock = std::chrono::steady_clock;
  const std::vector<Row> rows = Rows(workload, strategy, 2 * kRows);
  const OnlineCalibration start = After(workload, {rows.begin(), rows.begin() + kRows});
  const OnlineRecord record = start.Export();
  std::optional<OnlineCalibration> job;
  std::vector<double> times;
  std::size_t i = rows.size();
  while (state.KeepRunning()) {
    if (i == rows.size()) {
      state.PauseTiming();
      job = After(workload, {});
      job->Import(record);
      i = kRows;
      state.ResumeTiming();
    }
    const Row& row = rows[i++];
    const Clock::time_point begin = Clock::now();
    benchmark::DoNotOptimize(job->Observe(row.plan, row.step_time));
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  const auto median = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), median, times.end());
  state.counters["median_us"] = 1e6 * *median;
}
BENCHMARK_CAPTURE(Observe, resnet50_ring, "resnet50", Strategy::kAllreduce);
BENCHMARK_CAPTURE(Observe, bert_base_ring, "bert_base", Strategy::kAllreduce);
BENCHMARK_CAPTURE(Observe, resnet50_hierarchical, "resnet50", Strategy::kHierarchical);
BENCHMARK_CAPTURE(Observe, resnet50_ps_sync, "resnet50", Strategy::kPsSync);
BENCHMARK_CAPTURE(Observe, resnet50_ps_async, "resnet50", Strategy::kPsAsync);

void LearntCluster(benchmark::State& state) {
  const OnlineCalibration job = After("resnet50", Rows("resnet50", Strategy::kAllreduce, kRows));
  while (state.KeepRunning()) benchmark::DoNotOptimize(job.cluster());
}
BENCHMARK(LearntCluster)->Unit(benchmark::kMillisecond);

// A network of its own name, by its number.
Workload NetworkOf(std::int64_t number) {
  Workload workload = *FindWorkload("resnet50");
  workload.name += "_" + std::to_string(number);
  return workload;
}

// A job of a new workload is added and learns its first step, where so many workloads have taught
// and one more job has learnt a row since the last was added.
void FirstStep(benchmark::State& state) {
  static const std::vector<Row> rows = Rows("resnet50", Strategy::kAllreduce, kRows);
  static std::map<std::int64_t, Fleet> fleets;  // by their workloads
  std::size_t next = 0;
  const auto observe = [&](OnlineCalibration* job) {
    const Row& row = rows[next++ % rows.size()];
    job->Observe(row.plan, row.step_time);
  };
  const auto [entry, is_new] = fleets.try_emplace(state.range(0), SyntheticCluster());
  Fleet& fleet = entry->second;
  for (std::int64_t i = 0; is_new && i < state.range(0); ++i) {
    const std::string job = std::to_string(i);
    const auto added = fleet.Add(job, NetworkOf(i), T4());
    for (int row = 0; row < 4; ++row) observe(added.get());
    if (i > 0) fleet.End(job);
  }
  const auto running = fleet.Job("0");
  const Workload workload = NetworkOf(state.range(0));
  while (state.KeepRunning()) {
    observe(running.get());
    observe(fleet.Add("new", workload, T4()).get());
    fleet.Remove("new");
  }
}
BENCHMARK(FirstStep)->Arg(1)->Arg(300)->Unit(benchmark::kMillisecond);

void ExportAndImport(benchmark::State& state) {
  OnlineCalibration job = After("resnet50", Rows("resnet50", Strategy::kAllreduce, kRows));
  while (state.KeepRunning()) {
    job.Import(ParseOnlineRecord(FormatOnlineRecord(job.Export())));
  }
}
BENCHMARK(ExportAndImport)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stepcast
