// A libFuzzer target: any bytes as a request, the first of which chooses the endpoint.
//
//   CC=clang CXX=clang++ cmake -B build/fuzz -G Ninja -DSTEPCAST_SANITIZE=address,undefined
//   ninja -C build/fuzz stepcast_serve_fuzz
//   build/fuzz/tests/serve/stepcast_serve_fuzz -max_total_time=60
//
// An argument of the form --seeds=FOLDER writes the seeds there and ends.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/serve/seeds.h"
#include "tests/serve/support.h"

namespace stepcast::serve {
namespace {

void Answer(const std::uint8_t* data, std::size_t size) {
  static const TestService test;
  static const std::vector<Seed> seeds = Seeds();
  if (size == 0) return;
  const Seed& seed = seeds[data[0] % seeds.size()];
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);  // NOLINT
  const Reply reply = test.api.Answer({seed.method, seed.path, seed.type, body});
  const bool json = std::string_view(reply.content_type).find("json") != std::string_view::npos;
  if (reply.status >= 500 || (json && !TestJson::accept(reply.body))) {
    std::fprintf(stderr, "%d %s\n", reply.status, reply.body.c_str());
    std::abort();
  }
}

void WriteSeeds(const std::string& folder) {
  std::filesystem::create_directories(folder);
  const std::vector<Seed> seeds = Seeds();
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream(folder + "/" + std::to_string(i), std::ios::binary)
        << static_cast<char>(i) << seeds[i].body;
  }
}

}  // namespace
}  // namespace stepcast::serve

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kSeeds = "--seeds=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    if (!word.starts_with(kSeeds)) continue;
    stepcast::serve::WriteSeeds(std::string(word.substr(kSeeds.size())));
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepcast::serve::Answer(data, size);
  return 0;
}
