// What the arithmetic of the model's own formula costs on this processor, beside which the times of
// answers may be seen: as many operations of each kind as one evaluation of a plan has, on numbers
// that do not wait for each other.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "data/workloads/catalog.h"
#include "model/step/step_impl.h"
#include "tests/bench/counted.h"
#include "tests/calibrate/synthetic_runs.h"

namespace stepcast {
namespace {

template <class T>
ClusterParameters<T> Carried(const ClusterParameters<double>& from) {
  ClusterParameters<T> to;
  std::copy(from.si.begin(), from.si.end(), to.si.begin());
  return to;
}
template <class T>
WorkloadParameters<T> Carried(const WorkloadParameters<double>& from) {
  WorkloadParameters<T> to;
  std::copy(from.si.begin(), from.si.end(), to.si.begin());
  return to;
}

Operations OperationsOf(const StepFacts& facts, const Truth& truth) {
  Counted::Done() = {};
  benchmark::DoNotOptimize(EvaluateStep(facts, Carried<Counted>(truth.cluster),
                                        Carried<Counted>(truth.workloads.at("resnet50")))
                               .total()
                               .si()
                               .a);
  return Counted::Done();
}

// One number for each of eight chains, so that none waits for what went before.
class Chains {
 public:
  template <class Operation>
  void Run(int count, const Operation& operation) {
    for (int i = 0; i < count; ++i) {
      double& x = x_[static_cast<std::size_t>(i) % x_.size()];
      x = operation(x);
      benchmark::DoNotOptimize(x);
    }
  }

 private:
  std::array<double, 8> x_ = {1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8};
};

StepFacts FactsOf(Strategy strategy, int servers) {
  Workload workload = *FindWorkload("resnet50");
  workload.layers.clear();
  Plan plan = AllreducePlan(Placement(16, 4), 32);
  plan.strategy = strategy;
  plan.servers = servers;
  return MakeStepFacts(SyntheticCluster(), plan, workload,
                       std::make_shared<const std::vector<Bucket>>(
                           MakeBuckets(workload, BucketCap(plan, workload.gradient_bytes))));
}

void Limit(benchmark::State& state, Strategy strategy, int servers) {
  const Operations n = OperationsOf(FactsOf(strategy, servers), PlausibleTruth());
  Chains chains;
  while (state.KeepRunning()) {
    chains.Run(n.additions, [](double x) { return x + 1e-9; });
    chains.Run(n.multiplications, [](double x) { return x * 1.000000001; });
    chains.Run(n.divisions, [](double x) { return x / 1.000000001; });
    chains.Run(n.roots, [](double x) { return std::sqrt(x); });
    chains.Run(n.functions, [](double x) { return std::exp(x - 1.5); });
  }
  state.counters["additions"] = n.additions;
  state.counters["multiplications"] = n.multiplications;
  state.counters["divisions"] = n.divisions;
  state.counters["roots"] = n.roots;
  state.counters["functions"] = n.functions;
}
BENCHMARK_CAPTURE(Limit, ring_curve, Strategy::kRing, 0);
BENCHMARK_CAPTURE(Limit, tree_curve, Strategy::kTree, 0);
BENCHMARK_CAPTURE(Limit, hierarchical_curve, Strategy::kHierarchical, 0);
BENCHMARK_CAPTURE(Limit, byteps_curve, Strategy::kBytePs, 4);
BENCHMARK_CAPTURE(Limit, ps_sync_curve, Strategy::kPsSync, 4);
BENCHMARK_CAPTURE(Limit, ps_async_curve, Strategy::kPsAsync, 4);

}  // namespace
}  // namespace stepcast
