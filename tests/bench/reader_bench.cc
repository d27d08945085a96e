// How long readers of files take: a sixteenth, a quarter and all of what an honest large file has.
// The slope of ln(time) by ln(size) between the first and the last is 1 where time goes with size.
#include <benchmark/benchmark.h>

#include <cmath>
#include <ctime>
#include <map>
#include <string>

#include "tests/support/reader_inputs.h"

namespace stepcast {
namespace {

// What the smallest file of a reader took.
struct Least {
  double bytes = 0;
  double seconds = 0;
};

void Read(benchmark::State& state, const ReaderInput& input) {
  static std::map<std::string, Least> least_of;
  const auto count = static_cast<int>(state.range(0));
  const std::string text = input.text(count);
  const TempFolder folder;
  const std::string given = Given(input, text, folder);
  const std::clock_t start = std::clock();
  for (auto _ : state) input.read(given);  // NOLINT(clang-analyzer-deadcode.DeadStores)
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC /
                         static_cast<double>(state.iterations());
  const auto bytes = static_cast<double>(text.size());
  if (count == input.most / 16) least_of[input.name] = {bytes, seconds};
  const auto least = least_of.find(input.name);
  if (count == input.most && least != least_of.end()) {
    state.counters["slope"] =
        std::log(seconds / least->second.seconds) / std::log(bytes / least->second.bytes);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}

bool RegisterReaders() {
  for (const ReaderInput& input : ReaderInputs()) {
    benchmark::RegisterBenchmark((std::string("Read/") + input.name).c_str(),
                                 [input](benchmark::State& state) { Read(state, input); })
        ->Arg(input.most / 16)
        ->Arg(input.most / 4)
        ->Arg(input.most)
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}

const bool kRegistered = RegisterReaders();

}  // namespace
}  // namespace stepcast
