// The questions of a scheduler to one compiled plan.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "data/workloads/catalog.h"
#include "predictor/compiled_plan.h"
#include "predictor/predictor.h"
#include "predictor/search/allocations.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/query_columns.h"

namespace stepcast {
namespace {

Workload WithoutLayers() {
  Workload workload = *FindWorkload("resnet50");
  workload.layers.clear();
  return workload;
}

// BERT's layers in 25 buckets.
Plan InBuckets(Plan plan) {
  plan.bucket = Mebibytes(16.0);
  return plan;
}

Plan WithServers(Plan plan, Strategy strategy, int servers) {
  plan.strategy = strategy;
  plan.servers = servers;
  return plan;
}

Plan With(Plan plan, Strategy strategy) {
  plan.strategy = strategy;
  return plan;
}

const Plan kRing = AllreducePlan(Placement(16, 4), 32);

// Exchanges beside a plain one's: sharded, compressed, rare, unequal, over a core that all share.
Plan Sharded(Plan plan) {
  plan.shard = Shard::kParameters;
  return plan;
}

Plan Compressed(Plan plan, Compression compression) {
  plan.compress = compression;
  plan.compress_rate = GigabytesPerSecond(20.0);
  return plan;
}

Plan EachFewSteps(Plan plan) {
  plan.local_steps = 8;
  return plan;
}

Plan WithSlowNodes(Plan plan) {
  plan.slow_nodes = 1;
  plan.slow_speed = 0.5;
  return plan;
}

Plan OverACore(Plan plan) {
  plan.link.oversubscription = 4.0;
  plan.link.nodes_per_switch = 8;
  return plan;
}

CompiledPlan Compile(const Workload& workload, const Plan& plan) {
  return {Predictor(CalibratedCluster(PlausibleTruth()), workload, std::nullopt), plan};
}

// Plans of a scheduler's size, in random order: up to 64 workers on up to 16 nodes.
std::vector<PlanQuery> RandomQueries(const Plan& plan, std::size_t count) {
  std::mt19937 random(1);
  std::vector<PlanQuery> queries(count, QueryOf(plan));
  for (PlanQuery& query : queries) {
    query.nodes = static_cast<int>(1 + random() % 16);
    query.devices_per_node = static_cast<int>(1 + random() % 4);
    query.workers = query.nodes * query.devices_per_node;
    query.local_batch = static_cast<int>(1 + random() % 256);
    query.accumulation_steps = static_cast<int>(1 + random() % 8);
    if (plan.servers > 0) query.servers = static_cast<int>(1 + random() % 8);
  }
  return queries;
}

constexpr std::size_t kQueries = 1024;

void StepTime(benchmark::State& state, const Workload& workload, const Plan& plan) {
  const CompiledPlan compiled = Compile(workload, plan);
  const std::vector<PlanQuery> queries = RandomQueries(plan, kQueries);
  std::size_t i = 0;
  while (state.KeepRunning()) {
    benchmark::DoNotOptimize(compiled.StepTime(queries[i]));
    i = (i + 1) % kQueries;
  }
}

void WithInterval(benchmark::State& state, const Workload& workload, const Plan& plan) {
  const CompiledPlan compiled = Compile(workload, plan);
  const std::vector<PlanQuery> queries = RandomQueries(plan, kQueries);
  std::size_t i = 0;
  while (state.KeepRunning()) {
    benchmark::DoNotOptimize(compiled.Predict(queries[i]));
    i = (i + 1) % kQueries;
  }
}

void Many(benchmark::State& state, const Plan& plan) {
  constexpr std::size_t kMany = 100'000;
  const CompiledPlan compiled = Compile(WithoutLayers(), plan);
  const QueryColumns columns(RandomQueries(plan, kMany));
  std::vector<double> step(kMany);
  const QueryArrays queries = columns.View(0, kMany, /*with_links=*/false);
  ForecastArrays answers;
  answers.step_time_s = step.data();
  while (state.KeepRunning()) {
    benchmark::DoNotOptimize(compiled.PredictMany(queries, answers));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kMany));
}

// The best of 50 global batches, for each allocation of `replicas` on up to `nodes` nodes.
void Choose(benchmark::State& state, int replicas, int nodes) {
  const CompiledPlan compiled = Compile(WithoutLayers(), kRing);
  std::vector<Allocation> allocations;
  for (int w = replicas == 16 ? 16 : 1; w <= replicas; ++w) {
    for (int n = nodes == 4 ? 4 : 1; n <= nodes; ++n) {
      allocations.push_back({w, n, (w + n - 1) / n, 0});
    }
  }
  BatchSearch search;
  search.candidates = 50;
  search.least_global_batch = 128;
  search.most_global_batch = 16384;
  search.most_local_batch = 256;
  search.noise_scale = 2000;
  search.initial_batch = 128;
  std::vector<BatchChoice> choices(allocations.size());
  while (state.KeepRunning()) {
    benchmark::DoNotOptimize(
        ChooseBatches(compiled, allocations.data(), allocations.size(), search, choices.data()));
    benchmark::ClobberMemory();
  }
}

void CompileTime(benchmark::State& state, const Workload& workload, const Plan& plan) {
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), workload, std::nullopt);
  while (state.KeepRunning()) benchmark::DoNotOptimize(CompiledPlan(predictor, plan));
}

#define STEPCAST_BENCH(function)                                                              \
  BENCHMARK_CAPTURE(function, ring_curve, WithoutLayers(), kRing);                            \
  BENCHMARK_CAPTURE(function, tree_curve, WithoutLayers(), With(kRing, Strategy::kTree));     \
  BENCHMARK_CAPTURE(function, halving_doubling_curve, WithoutLayers(),                        \
                    With(kRing, Strategy::kHalvingDoubling));                                 \
  BENCHMARK_CAPTURE(function, hierarchical_curve, WithoutLayers(),                            \
                    With(kRing, Strategy::kHierarchical));                                    \
  BENCHMARK_CAPTURE(function, byteps_curve, WithoutLayers(),                                  \
                    WithServers(kRing, Strategy::kBytePs, 4));                                \
  BENCHMARK_CAPTURE(function, ps_sync_curve, WithoutLayers(),                                 \
                    WithServers(kRing, Strategy::kPsSync, 4));                                \
  BENCHMARK_CAPTURE(function, ps_async_curve, WithoutLayers(),                                \
                    WithServers(kRing, Strategy::kPsAsync, 4));                               \
  BENCHMARK_CAPTURE(function, ring_25_buckets, *FindWorkload("bert_base"), InBuckets(kRing)); \
  BENCHMARK_CAPTURE(function, ps_sync_layers, *FindWorkload("resnet50"),                      \
                    WithServers(kRing, Strategy::kPsSync, 4));                                \
  BENCHMARK_CAPTURE(function, sharded, *FindWorkload("bert_base"), Sharded(kRing));           \
  BENCHMARK_CAPTURE(function, topk, *FindWorkload("bert_base"),                               \
                    Compressed(kRing, {Compressor::kTopK, 0.01}));                            \
  BENCHMARK_CAPTURE(function, powersgd, *FindWorkload("bert_base"),                           \
                    Compressed(kRing, {Compressor::kPowerSgd, 4}));                           \
  BENCHMARK_CAPTURE(function, local_steps, WithoutLayers(), EachFewSteps(kRing));             \
  BENCHMARK_CAPTURE(function, slow_nodes, WithoutLayers(), WithSlowNodes(kRing));             \
  BENCHMARK_CAPTURE(function, over_a_core, WithoutLayers(), OverACore(kRing));                \
  BENCHMARK_CAPTURE(function, async_slow_nodes, WithoutLayers(),                              \
                    WithSlowNodes(WithServers(kRing, Strategy::kPsAsync, 4)))

STEPCAST_BENCH(StepTime);
STEPCAST_BENCH(WithInterval);
BENCHMARK_CAPTURE(Many, ring, kRing);
BENCHMARK_CAPTURE(Many, ps_sync, WithServers(kRing, Strategy::kPsSync, 4));
BENCHMARK_CAPTURE(Choose, one_allocation, 16, 4)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Choose, allocations_64_x_16, 64, 16)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(CompileTime, ring, *FindWorkload("bert_base"), kRing)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(CompileTime, ps_sync, *FindWorkload("bert_base"),
                  WithServers(kRing, Strategy::kPsSync, 4))
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace stepcast
