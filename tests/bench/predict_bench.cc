// How long an answer takes: a scheduler asks thousands of times a second.
#include <benchmark/benchmark.h>

#include <optional>
#include <string>

#include "calibrate/calibrate.h"
#include "data/io/machines.h"
#include "data/io/runs.h"
#include "data/workloads/catalog.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"

namespace stepcast {
namespace {

const std::string kData = std::string(STEPCAST_SOURCE_DIR) + "/data";

// As for a workload that is known by its step times alone: 102 MB in four equal buckets.
Workload WithoutLayers() {
  Workload workload = *FindWorkload("resnet50");
  workload.layers.clear();
  return workload;
}

Plan OwnBuckets() {
  Plan plan = AllreducePlan(Placement(16, 4), 32);
  plan.bucket = Mebibytes(10.0);  // cut anew at each call
  return plan;
}

void Predict(benchmark::State& state, const Workload& workload, const Plan& plan) {
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), workload, std::nullopt);
  while (state.KeepRunning()) benchmark::DoNotOptimize(predictor.Predict(plan));
}
BENCHMARK_CAPTURE(Predict, fitted_curve_2_workers, WithoutLayers(), AllreducePlan({1, 1}, 32));
BENCHMARK_CAPTURE(Predict, fitted_curve_64_workers, WithoutLayers(),
                  AllreducePlan(Placement(16, 4), 32));
BENCHMARK_CAPTURE(Predict, resnet50_buckets_64_workers, *FindWorkload("resnet50"),
                  AllreducePlan(Placement(16, 4), 32));
BENCHMARK_CAPTURE(Predict, bert_base_buckets_64_workers, *FindWorkload("bert_base"),
                  AllreducePlan(Placement(16, 4), 32));
BENCHMARK_CAPTURE(Predict, resnet50_own_buckets, *FindWorkload("resnet50"), OwnBuckets());

void PredictStep(benchmark::State& state, const Workload& workload, const Placement& placement) {
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), workload, std::nullopt);
  const Plan plan = AllreducePlan(placement, 32);
  while (state.KeepRunning()) benchmark::DoNotOptimize(predictor.PredictStep(plan));
}
BENCHMARK_CAPTURE(PredictStep, fitted_curve_2_workers, WithoutLayers(), {1, 1});
BENCHMARK_CAPTURE(PredictStep, resnet50_buckets_64_workers, *FindWorkload("resnet50"),
                  Placement(16, 4));
BENCHMARK_CAPTURE(PredictStep, bert_base_buckets_64_workers, *FindWorkload("bert_base"),
                  Placement(16, 4));

// Asynchronous servers: mean value analysis over all workers.
void PredictAsynchronous(benchmark::State& state) {
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), *FindWorkload("resnet50"),
                            std::nullopt);
  Plan plan = AllreducePlan(Placement(16, 4), 32);
  plan.strategy = Strategy::kPsAsync;
  plan.servers = 4;
  while (state.KeepRunning()) benchmark::DoNotOptimize(predictor.Predict(plan));
}
BENCHMARK(PredictAsynchronous);

void CalibrateUfrgs(benchmark::State& state) {
  CalibrationProblem problem;
  problem.cluster = ReadCluster(kData + "/machines/ufrgs-tupi.yaml");
  problem.runs = ReadRuns(kData + "/measurements/ufrgs-tupi-fit.csv");
  problem.workloads["resnet50"] = *FindWorkload("resnet50");
  problem.devices["rtx_4090"] =
      FindDevice(ReadDevices(kData + "/machines/gpus.yaml"), "rtx_4090").value();
  while (state.KeepRunning()) benchmark::DoNotOptimize(Calibrate(problem));
}
BENCHMARK(CalibrateUfrgs)->Unit(benchmark::kMillisecond);

// Rows of four workloads on plans drawn at random: few of them alike.
void CalibrateRows(benchmark::State& state) {
  constexpr double kScatter = 0.05;
  Truth truth = PlausibleTruth();
  truth.workloads["vgg16"].si =
      SiValues<kWorkloadParameterCount>(kWorkloadParameterSpecs, {8, 30, 9, 0.03, 10});
  SyntheticProblem synthetic(truth);
  std::vector<std::string> names;
  for (const auto& [name, values] : truth.workloads) names.push_back(name);
  Noise noise(1);
  std::mt19937_64 random(2);
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    const auto nodes = 1 + random() % 16;
    const auto devices = 1 + random() % 4;
    const auto batch = static_cast<int>(1 + random() % 200);
    synthetic.Add(names[random() % names.size()],
                  AllreducePlan(Placement(nodes, static_cast<int>(devices)), batch),
                  kScatter * noise.Next());
  }
  while (state.KeepRunning()) benchmark::DoNotOptimize(Calibrate(synthetic.problem()));
}
BENCHMARK(CalibrateRows)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stepcast

BENCHMARK_MAIN();
