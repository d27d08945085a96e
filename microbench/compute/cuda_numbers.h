// For the kernels alone: numbers of every stored type as floats, words of several of them, and
// sizes of grids. Read by nvcc only.
#ifndef STEPCAST_MICROBENCH_COMPUTE_CUDA_NUMBERS_H_
#define STEPCAST_MICROBENCH_COMPUTE_CUDA_NUMBERS_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "microbench/compute/cuda_kernels.h"
#include "microbench/compute/cuda_support.h"

namespace stepcast {

__device__ inline float ToFloat(float x) { return x; }
__device__ inline float ToFloat(__half x) { return __half2float(x); }
__device__ inline float ToFloat(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
__device__ T FromFloat(float x);
template <>
__device__ inline float FromFloat<float>(float x) {
  return x;
}
template <>
__device__ inline __half FromFloat<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ inline __nv_bfloat16 FromFloat<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// Numbers that one instruction loads or stores.
template <class T, int kLanes>
struct alignas(sizeof(T) * kLanes) Pack {
  T lane[kLanes];
};
// As many as 16 bytes hold, the most that a thread loads at once.
template <class T>
inline constexpr int kWordLanes = 16 / static_cast<int>(sizeof(T));
template <class T>
using Word = Pack<T, kWordLanes<T>>;

template <class T>
struct TypeTag {
  using type = T;
};
// Calls f(TypeTag<T>()) with the type that is stored.
template <class F>
void WithType(ElementType type, const F& f) {
  switch (type) {
    case ElementType::kFloat:
      return f(TypeTag<float>());
    case ElementType::kHalf:
      return f(TypeTag<__half>());
    case ElementType::kBfloat16:
      return f(TypeTag<__nv_bfloat16>());
  }
}

inline constexpr int kThreads = 256;

inline std::int64_t CeilDivide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Blocks of kThreads for so many pieces, a thread each; kernels go round again for the rest.
inline unsigned Blocks(std::int64_t pieces) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  const std::int64_t blocks = CeilDivide(pieces, kThreads);
  return static_cast<unsigned>(blocks < 1 ? 1 : (blocks < kMost ? blocks : kMost));
}
__device__ inline std::int64_t FirstPiece() {
  return blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
}
__device__ inline std::int64_t AllThreads() {
  return gridDim.x * static_cast<std::int64_t>(blockDim.x);
}

// A dimension of a grid that is not gone round: what the device takes at most.
inline unsigned GridLength(std::int64_t blocks, std::int64_t most, const char* what) {
  if (blocks > most) {
    throw CudaError(CudaTrouble::kUnsupported,
                    std::string(what) + ": more blocks than a grid takes");
  }
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks);
}
inline constexpr std::int64_t kMostGridX = 2147483647;
inline constexpr std::int64_t kMostGridYZ = 65535;

inline void CheckLaunch(const char* what) { Check(cudaGetLastError(), what); }

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_CUDA_NUMBERS_H_
