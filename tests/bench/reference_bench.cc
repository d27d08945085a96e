#include <benchmark/benchmark.h>

#include "tests/bench/reference.h"

namespace stepcast {
namespace {

// `slowness`: of this machine, now, against the one that promised times were measured on.
void Reference(benchmark::State& state) {
  while (state.KeepRunning()) benchmark::DoNotOptimize(ReferenceWork());
  state.counters["slowness"] =
      benchmark::Counter(kReferenceSeconds, benchmark::Counter::kIsIterationInvariantRate |
                                                benchmark::Counter::kInvert);
}
BENCHMARK(Reference);

}  // namespace
}  // namespace stepcast
