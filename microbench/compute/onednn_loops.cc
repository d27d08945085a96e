#include "microbench/compute/onednn_loops.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace stepcast {
namespace {

// Below so many elements PyTorch does not wake other threads (at::internal::GRAIN_SIZE).
constexpr std::int64_t kGrain = 32768;

// Runs part(begin, end) for all of [0, n) on the threads.
template <class Part>
void Share(std::int64_t n, const Part& part) {
#pragma omp parallel if (n > kGrain)
  {
    const std::int64_t threads = omp_get_num_threads();
    const std::int64_t thread = omp_get_thread_num();
    const std::int64_t each = (n + threads - 1) / threads;
    const std::int64_t begin = std::min(n, each * thread);
    const std::int64_t end = std::min(n, begin + each);
    if (begin < end) part(begin, end);
  }
}

// One arithmetic operation of an optimizer on a stretch of memory. The bodies are compiled for
// three instruction sets, as frameworks' are: with data in the L2 cache the width matters. For a
// root stands a division, which the same unit computes in about the time: sqrtf has to report
// errors in errno, and compilers take such roots one by one.
enum class Arithmetic { kScale, kAdd, kAddScaled, kAddSquare, kRoot, kDivide, kAddConstant, kStep };

template <Arithmetic kWhat>
[[gnu::always_inline]] inline void Apply(float* __restrict a, const float* __restrict b,
                                         const float* __restrict c, float factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (kWhat == Arithmetic::kScale) a[i] *= factor;
    if constexpr (kWhat == Arithmetic::kAdd) a[i] += b[i];
    if constexpr (kWhat == Arithmetic::kAddScaled) a[i] += factor * b[i];
    if constexpr (kWhat == Arithmetic::kAddSquare) a[i] += factor * b[i] * b[i];
    if constexpr (kWhat == Arithmetic::kRoot) a[i] = factor / b[i];
    if constexpr (kWhat == Arithmetic::kDivide) a[i] = b[i] / factor;
    if constexpr (kWhat == Arithmetic::kAddConstant) a[i] += factor;
    if constexpr (kWhat == Arithmetic::kStep) a[i] += factor * b[i] / c[i];
  }
}

#ifdef __x86_64__
template <Arithmetic kWhat>
[[gnu::target("avx512f,prefer-vector-width=512")]] void Apply512(float* a, const float* b,
                                                                 const float* c, float factor,
                                                                 std::int64_t n) {
  Apply<kWhat>(a, b, c, factor, n);
}

template <Arithmetic kWhat>
[[gnu::target("avx2")]] void Apply256(float* a, const float* b, const float* c, float factor,
                                      std::int64_t n) {
  Apply<kWhat>(a, b, c, factor, n);
}
#endif

// Where b or c is not used, a stands in its place.
template <Arithmetic kWhat>
void Everywhere(float* a, const float* b, const float* c, float factor, std::int64_t n) {
  Share(n, [&](std::int64_t begin, std::int64_t end) {
    float* const a0 = a + begin;
    const float* const b0 = b + begin;
    const float* const c0 = c + begin;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") != 0) {
      return Apply512<kWhat>(a0, b0, c0, factor, end - begin);
    }
    if (__builtin_cpu_supports("avx2") != 0) {
      return Apply256<kWhat>(a0, b0, c0, factor, end - begin);
    }
#endif
    Apply<kWhat>(a0, b0, c0, factor, end - begin);
  });
}

// Usual settings; the times do not depend on them.
constexpr float kRate = 0.001F;
constexpr float kMomentum = 0.9F;
constexpr float kBeta1 = 0.9F;
constexpr float kBeta2 = 0.999F;
constexpr float kAdamEpsilon = 1e-8F;

// xorshift64*, Vigna, An experimental exploration of Marsaglia's xorshift generators.
std::uint64_t Next(std::uint64_t* state) {
  *state ^= *state >> 12U;
  *state ^= *state << 25U;
  *state ^= *state >> 27U;
  return *state * 0x2545F4914F6CDD1DULL;
}
constexpr std::uint64_t kSeed = 0x9E3779B97F4A7C15ULL;

// A prime length, so that no two rows or channels repeat each other.
constexpr std::size_t kNoiseLength = 65521;

// Sums of four uniform numbers: near enough to a normal distribution.
const std::vector<float>& Noise() {
  static const std::vector<float> noise = [] {
    std::vector<float> values(kNoiseLength);
    std::uint64_t state = kSeed;
    for (float& value : values) {
      const std::uint64_t bits = Next(&state);
      float sum = -2 + 1.0F / 65536;  // never exactly 0, and 2^-16 at least
      for (unsigned part = 0; part < 4; ++part) {
        sum += static_cast<float>((bits >> (16 * part)) & 0xFFFFU) / 65536;
      }
      value = sum * 1.7320508F;  // the variance of the sum is 1/3
    }
    return values;
  }();
  return noise;
}

}  // namespace

void SgdUpdate(float* p, const float* g, std::int64_t n) {
  Everywhere<Arithmetic::kAddScaled>(p, g, p, -kRate, n);
}

void MomentumUpdate(float* p, const float* g, float* buffer, std::int64_t n) {
  Everywhere<Arithmetic::kScale>(buffer, buffer, buffer, kMomentum, n);
  Everywhere<Arithmetic::kAdd>(buffer, g, buffer, 0, n);
  Everywhere<Arithmetic::kAddScaled>(p, buffer, p, -kRate, n);
}

void AdamUpdate(float* p, const float* g, float* m, float* v, float* root, float* quotient,
                std::int64_t n) {
  Everywhere<Arithmetic::kScale>(m, m, m, kBeta1, n);
  Everywhere<Arithmetic::kAddScaled>(m, g, m, 1 - kBeta1, n);
  Everywhere<Arithmetic::kScale>(v, v, v, kBeta2, n);
  Everywhere<Arithmetic::kAddSquare>(v, g, v, 1 - kBeta2, n);
  Everywhere<Arithmetic::kRoot>(root, v, root, 1, n);
  Everywhere<Arithmetic::kDivide>(quotient, root, quotient, 0.5F, n);
  Everywhere<Arithmetic::kAddConstant>(quotient, quotient, quotient, kAdamEpsilon, n);
  Everywhere<Arithmetic::kStep>(p, m, quotient, -kRate, n);
}

void GatherRows(const float* table, const std::int64_t* index, float* out, std::int64_t tokens,
                std::int64_t features) {
  const auto bytes = static_cast<std::size_t>(features) * sizeof(float);
#pragma omp parallel for if (tokens * features > kGrain)
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::memcpy(out + t * features, table + index[t] * features, bytes);
  }
}

void ScatterRows(const float* gradient, const std::int64_t* index, float* table,
                 std::int64_t tokens, std::int64_t features, std::int64_t rows) {
  // Each thread owns a range of rows and looks through all tokens, so that none is added twice at
  // the same time.
#pragma omp parallel if (rows * features > kGrain)
  {
    const std::int64_t threads = omp_get_num_threads();
    const std::int64_t each = (rows + threads - 1) / threads;
    const std::int64_t begin = std::min(rows, each * omp_get_thread_num());
    const std::int64_t end = std::min(rows, begin + each);
    std::memset(table + begin * features, 0,
                static_cast<std::size_t>((end - begin) * features) * sizeof(float));
    for (std::int64_t t = 0; t < tokens; ++t) {
      if (index[t] < begin || index[t] >= end) continue;
      float* const to = table + index[t] * features;
      const float* const from = gradient + t * features;
      for (std::int64_t i = 0; i < features; ++i) to[i] += from[i];
    }
  }
}

void FillIndices(std::int64_t* index, std::int64_t tokens, std::int64_t rows) {
  std::uint64_t state = kSeed;
  for (std::int64_t t = 0; t < tokens; ++t) {
    index[t] = static_cast<std::int64_t>(Next(&state) % static_cast<std::uint64_t>(rows));
  }
}

void CopyBytes(const std::byte* from, std::byte* to, std::size_t bytes) {
  Share(static_cast<std::int64_t>(bytes), [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}

void ZeroBytes(std::byte* to, std::size_t bytes) {
  Share(static_cast<std::int64_t>(bytes), [&](std::int64_t begin, std::int64_t end) {
    std::memset(to + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

void FillNoise(float* to, std::size_t count, float stretch) {
  const std::vector<float>& noise = Noise();
  for (std::size_t done = 0; done < count; done += kNoiseLength) {
    const std::size_t length = std::min(kNoiseLength, count - done);
    for (std::size_t i = 0; i < length; ++i) to[done + i] = stretch * noise[i];
  }
}

void FillNoiseBf16(std::uint16_t* to, std::size_t count, float stretch) {
  const std::vector<float>& noise = Noise();
  for (std::size_t done = 0; done < count; done += kNoiseLength) {
    const std::size_t length = std::min(kNoiseLength, count - done);
    for (std::size_t i = 0; i < length; ++i) {
      // bf16 is the upper half of an fp32.
      to[done + i] =
          static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(stretch * noise[i]) >> 16U);
    }
  }
}

double SpinArithmetic(int threads) {
  constexpr int kRounds = 500'000;
  double total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : total)
  {
    // Chains that wait for nothing but their own last result: latency of the units times rounds,
    // whatever is in the caches.
    std::array<double, 8> chains{};
    double factor = 0.999;
    // Hides the constant, so that nothing is computed before.
    asm volatile("" : "+x"(factor));
    for (int round = 0; round < kRounds; ++round) {
      for (double& chain : chains) chain = chain * factor + 1;
    }
    for (const double chain : chains) total += chain;
  }
  return total;
}

}  // namespace stepcast
