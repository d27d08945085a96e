// How long readers of files take: a sixteenth, a quarter and all of what an honest large file has.
#include <benchmark/benchmark.h>

#include <string>

#include "tests/support/reader_inputs.h"

namespace stepcast {
namespace {

bool RegisterReaders() {
  for (const ReaderInput& input : ReaderInputs()) {
    const auto read = [input](benchmark::State& state) {
      const std::string text = input.text(static_cast<int>(state.range(0)));
      for (auto _ : state) input.read(text);  // NOLINT(clang-analyzer-deadcode.DeadStores)
      state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
      state.SetComplexityN(static_cast<benchmark::IterationCount>(text.size()));
    };
    benchmark::RegisterBenchmark((std::string("Read/") + input.name).c_str(), read)
        ->Arg(input.most / 16)
        ->Arg(input.most / 4)
        ->Arg(input.most)
        ->Unit(benchmark::kMillisecond)
        ->Complexity();
  }
  return true;
}

const bool kRegistered = RegisterReaders();

}  // namespace
}  // namespace stepcast
