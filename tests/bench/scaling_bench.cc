// How answers' costs grow: with workers, buckets and plans. Rows of fits are in predict_bench.cc.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <optional>
#include <random>
#include <vector>

#include "data/workloads/catalog.h"
#include "predictor/compiled_plan.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/query_columns.h"

namespace stepcast {
namespace {

CompiledPlan CompileRing(const Workload& workload, std::optional<DataSize<>> bucket) {
  Plan plan = AllreducePlan({1, 1}, 32);
  plan.bucket = bucket;
  return {Predictor(CalibratedCluster(PlausibleTruth()), workload, std::nullopt), plan};
}

// Known by its size alone, so that it can be cut into any number of equal buckets.
Workload WithoutLayers() {
  Workload workload = *FindWorkload("resnet50");
  workload.layers.clear();
  return workload;
}

// One device a node.
void Workers(benchmark::State& state) {
  const CompiledPlan compiled = CompileRing(*FindWorkload("resnet50"), std::nullopt);
  PlanQuery query;
  query.workers = query.nodes = static_cast<int>(state.range(0));
  query.local_batch = 32;
  while (state.KeepRunning()) benchmark::DoNotOptimize(compiled.StepTime(query));
}
BENCHMARK(Workers)->RangeMultiplier(10)->Range(10, 1'000'000);

// The facade's, which walks all of them, and the compiled plan's.
void Buckets(benchmark::State& state) {
  const Workload workload = WithoutLayers();
  Plan plan = AllreducePlan(Placement(16, 4), 32);
  plan.bucket = workload.gradient_bytes / static_cast<double>(state.range(0));
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), workload, std::nullopt);
  while (state.KeepRunning()) benchmark::DoNotOptimize(predictor.PredictStep(plan));
}
BENCHMARK(Buckets)->RangeMultiplier(8)->Range(8, 4096);

void CompiledBuckets(benchmark::State& state) {
  const Workload workload = WithoutLayers();
  const CompiledPlan compiled =
      CompileRing(workload, workload.gradient_bytes / static_cast<double>(state.range(0)));
  PlanQuery query;
  query.workers = 64;
  query.nodes = 16;
  query.devices_per_node = 4;
  query.local_batch = 32;
  while (state.KeepRunning()) benchmark::DoNotOptimize(compiled.StepTime(query));
}
BENCHMARK(CompiledBuckets)->RangeMultiplier(8)->Range(8, 4096);

// Plans in random order, up to 64 workers on up to 16 nodes.
void Plans(benchmark::State& state, bool intervals, int threads) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const CompiledPlan compiled = CompileRing(WithoutLayers(), std::nullopt);
  std::mt19937 random(1);
  std::vector<PlanQuery> queries(count);
  for (PlanQuery& query : queries) {
    query.nodes = static_cast<int>(1 + random() % 16);
    query.devices_per_node = static_cast<int>(1 + random() % 4);
    query.workers = query.nodes * query.devices_per_node;
    query.local_batch = static_cast<int>(1 + random() % 256);
  }
  const QueryColumns columns(queries);
  std::vector<double> step(count);
  std::vector<double> low(count);
  std::vector<double> high(count);
  std::vector<double> log_sd(count);
  ForecastArrays answers;
  answers.step_time_s = step.data();
  if (intervals) {
    answers.low_s = low.data();
    answers.high_s = high.data();
    answers.log_sd = log_sd.data();
  }
  const QueryArrays asked = columns.View(0, count, /*with_links=*/false);
  while (state.KeepRunning()) {
    benchmark::DoNotOptimize(compiled.PredictMany(asked, answers, threads));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK_CAPTURE(Plans, step_times, false, 1)->RangeMultiplier(10)->Range(100, 1'000'000);
BENCHMARK_CAPTURE(Plans, with_intervals, true, 1)->RangeMultiplier(10)->Range(100, 1'000'000);
BENCHMARK_CAPTURE(Plans, step_times_2_threads, false, 2)->Arg(1'000'000)->UseRealTime();
BENCHMARK_CAPTURE(Plans, with_intervals_2_threads, true, 2)->Arg(1'000'000)->UseRealTime();

}  // namespace
}  // namespace stepcast
