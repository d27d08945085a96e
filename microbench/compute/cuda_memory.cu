// Kernels that fill, read and copy memory, and that measure the device itself.
#include "microbench/compute/cuda_kernels.h"
#include "microbench/compute/cuda_numbers.h"

namespace stepcast {
namespace {

// ---- Contents.

// Mixes the bits of a number: multiplications by odd constants and shifts, each of which can be
// undone, so that different numbers stay different.
__device__ std::uint32_t Mix(std::uint32_t x) {
  x *= 2654435761U;
  x ^= x >> 16;
  x *= 2246822519U;
  x ^= x >> 13;
  x *= 3266489917U;
  return x ^ (x >> 16);
}
__device__ std::uint32_t MixedIndex(std::int64_t i) {
  const auto bits = static_cast<std::uint64_t>(i);
  return Mix(static_cast<std::uint32_t>(bits) ^ Mix(static_cast<std::uint32_t>(bits >> 32) + 1));
}

template <class T>
__global__ void FillUniformKernel(T* data, std::int64_t count, float low, float range) {
  constexpr float kUnit = 1.0F / (1 << 24);
  for (std::int64_t i = FirstPiece(); i < count; i += AllThreads()) {
    data[i] = FromFloat<T>(low + range * kUnit * static_cast<float>(MixedIndex(i) >> 8));
  }
}

__global__ void FillIndicesKernel(std::int64_t* data, std::int64_t count, std::int64_t limit) {
  for (std::int64_t i = FirstPiece(); i < count; i += AllThreads()) {
    const std::uint64_t bits =
        (static_cast<std::uint64_t>(MixedIndex(i)) << 31) ^ MixedIndex(~i & 0x7fffffffffffffff);
    data[i] = static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(limit));
  }
}

__global__ void ReadThroughKernel(const uint4* words, std::int64_t count, float* sink) {
  std::uint32_t bits = 0;
#pragma unroll 4
  for (std::int64_t i = FirstPiece(); i < count; i += AllThreads()) {
    const uint4 word = words[i];
    bits |= word.x ^ word.y ^ word.z ^ word.w;
  }
  // Never true for the zeros that the memory holds; the compiler does not know.
  if (bits == 0x9e3779b9U) *sink = 1;
}

// ---- The device itself.

__global__ void MultiplyAddKernel(std::int64_t steps, float* sink) {
  float a = static_cast<float>(threadIdx.x);
  float b = a + 1;
  float c = a + 2;
  float d = a + 3;
  // The factor is not known to the compiler, and below one: nothing grows without bounds.
  const float factor = 0.5F + 1e-3F * static_cast<float>(blockIdx.x & 7U);
#pragma unroll 8
  for (std::int64_t i = 0; i < steps; ++i) {
    a = fmaf(a, factor, 1.0F);
    b = fmaf(b, factor, 1.0F);
    c = fmaf(c, factor, 1.0F);
    d = fmaf(d, factor, 1.0F);
  }
  if (a + b + c + d == -1) *sink = a;  // never
}

template <int kWords, bool kStreaming>
__global__ void CopyKernel(const uint4* from, uint4* to, std::int64_t words) {
  const std::int64_t first = blockIdx.x * std::int64_t{kThreads * kWords} + threadIdx.x;
  uint4 held[kWords];
#pragma unroll
  for (int w = 0; w < kWords; ++w) {
    const std::int64_t i = first + w * kThreads;
    if (i < words) held[w] = kStreaming ? __ldcs(from + i) : from[i];
  }
#pragma unroll
  for (int w = 0; w < kWords; ++w) {
    const std::int64_t i = first + w * kThreads;
    if (i >= words) continue;
    if (kStreaming) {
      __stcs(to + i, held[w]);
    } else {
      to[i] = held[w];
    }
  }
}

template <int kWords, bool kStreaming>
void LaunchCopy(const void* from, void* to, std::int64_t words, cudaStream_t stream) {
  const unsigned blocks =
      GridLength(CeilDivide(words, std::int64_t{kThreads} * kWords), kMostGridX, "copy");
  CopyKernel<kWords, kStreaming><<<blocks, kThreads, 0, stream>>>(static_cast<const uint4*>(from),
                                                                  static_cast<uint4*>(to), words);
}

}  // namespace

void FillUniform(void* data, std::int64_t count, ElementType type, float low, float high,
                 cudaStream_t stream) {
  WithType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    FillUniformKernel<T>
        <<<Blocks(count), kThreads, 0, stream>>>(static_cast<T*>(data), count, low, high - low);
  });
  CheckLaunch("fill");
}

void FillIndices(std::int64_t* data, std::int64_t count, std::int64_t limit, cudaStream_t stream) {
  FillIndicesKernel<<<Blocks(count), kThreads, 0, stream>>>(data, count, limit);
  CheckLaunch("fill");
}

void ReadThrough(const void* data, std::size_t bytes, float* sink, cudaStream_t stream) {
  constexpr unsigned kReadBlocks = 2048;
  ReadThroughKernel<<<kReadBlocks, kThreads, 0, stream>>>(
      static_cast<const uint4*>(data), static_cast<std::int64_t>(bytes / sizeof(uint4)), sink);
  CheckLaunch("emptying the cache");
}

void MultiplyAdd(int blocks, std::int64_t steps, float* sink, cudaStream_t stream) {
  MultiplyAddKernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(steps, sink);
  CheckLaunch("arithmetic");
}

void CopyWords(const void* from, void* to, std::size_t bytes, int variant, cudaStream_t stream) {
  const auto words = static_cast<std::int64_t>((bytes + sizeof(uint4) - 1) / sizeof(uint4));
  switch (variant) {
    case 0:
      LaunchCopy<1, false>(from, to, words, stream);
      break;
    case 1:
      LaunchCopy<4, false>(from, to, words, stream);
      break;
    case 2:
      LaunchCopy<1, true>(from, to, words, stream);
      break;
    default:
      LaunchCopy<4, true>(from, to, words, stream);
      break;
  }
  CheckLaunch("copy");
}

}  // namespace stepcast
