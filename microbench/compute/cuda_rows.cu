// Sums over dimensions of tensors, and what needs sums over rows: softmax and layer normalization.
#include <algorithm>

#include "microbench/compute/cuda_kernels.h"
#include "microbench/compute/cuda_numbers.h"

namespace stepcast {
namespace {

// ---- Sums down the columns of rows x columns, and over planes.
//
// A tensor is cut into chunks, of which each block sums one; where there is more than one, the
// partial sums are added by a second kernel, in a fixed order.

// Enough blocks to fill any device, and few enough partial sums to be nothing beside the data.
constexpr std::int64_t kWantedBlocks = 1024;
constexpr std::int64_t kLeastRows = 64;     // of a chunk, so that a block has something to sum
constexpr std::int64_t kLeastPlane = 2048;  // elements of a chunk of planes
constexpr int kTile = 16;                   // a block of columns is kTile x kTile threads
constexpr int kTileLanes = 4;

std::int64_t Chunks(std::int64_t length, std::int64_t least, std::int64_t other_blocks) {
  const std::int64_t most =
      std::max<std::int64_t>(1, kWantedBlocks / std::max<std::int64_t>(1, other_blocks));
  return std::clamp<std::int64_t>(CeilDivide(length, least), 1, most);
}

// Where sums go: partial[chunk][sum][output], or straight to where they belong if one chunk is all.
template <class Out, int kSums>
struct SumTargets {
  Out* out[kSums];
  float* partial;
  std::int64_t outputs;

  __device__ void Put(int sum, std::int64_t output, float value) const {
    if (gridDim.y == 1) {
      out[sum][output] = FromFloat<Out>(value);
    } else {
      partial[(std::int64_t{blockIdx.y} * kSums + sum) * outputs + output] = value;
    }
  }
};

template <class Out, int kSums>
__global__ void FinishSums(SumTargets<Out, kSums> targets, std::int64_t chunks) {
  for (std::int64_t i = FirstPiece(); i < targets.outputs; i += AllThreads()) {
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
      float sum = 0;
      for (std::int64_t c = 0; c < chunks; ++c) {
        sum += targets.partial[(c * kSums + s) * targets.outputs + i];
      }
      targets.out[s][i] = FromFloat<Out>(sum);
    }
  }
}

// Terms of a sum: PlainTerms are the elements as they are, LayerNormTerms those of the gradients of
// a layer norm's parameters.
template <class T, int kLanes>
struct PlainTerms {
  static constexpr int kSums = 1;
  const Pack<T, kLanes>* x;
  __device__ void Add(std::int64_t pack, std::int64_t /*row*/, float (&sums)[1][kLanes]) const {
    const Pack<T, kLanes> some = x[pack];
#pragma unroll
    for (int k = 0; k < kLanes; ++k) sums[0][k] += ToFloat(some.lane[k]);
  }
};
template <class T, int kLanes>
struct LayerNormTerms {
  static constexpr int kSums = 2;
  const Pack<T, kLanes>* x;
  const Pack<T, kLanes>* dy;
  const float* mean;
  const float* rstd;
  __device__ void Add(std::int64_t pack, std::int64_t row, float (&sums)[2][kLanes]) const {
    const Pack<T, kLanes> some = x[pack];
    const Pack<T, kLanes> gradient = dy[pack];
    const float m = mean[row];
    const float r = rstd[row];
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      const float g = ToFloat(gradient.lane[k]);
      sums[0][k] += g * (ToFloat(some.lane[k]) - m) * r;
      sums[1][k] += g;
    }
  }
};

// grid: tiles of columns x chunks of rows x images; `rows` are those of one image.
template <class Terms, class Out, int kLanes>
__global__ void ColumnSumsKernel(Terms terms, SumTargets<Out, Terms::kSums> targets,
                                 std::int64_t rows, std::int64_t columns) {
  constexpr int kSums = Terms::kSums;
  __shared__ float shared[kSums][kTile][kTile * kLanes + 1];
  const std::int64_t packs = columns / kLanes;
  const std::int64_t pack = std::int64_t{blockIdx.x} * kTile + threadIdx.x;
  const std::int64_t first_row = std::int64_t{blockIdx.z} * rows;
  const std::int64_t chunk = (rows + gridDim.y - 1) / gridDim.y;
  const std::int64_t begin = std::int64_t{blockIdx.y} * chunk;
  const std::int64_t end = begin + chunk < rows ? begin + chunk : rows;
  float sums[kSums][kLanes] = {};
  if (pack < packs) {
#pragma unroll 4
    for (std::int64_t row = begin + threadIdx.y; row < end; row += kTile) {
      terms.Add((first_row + row) * packs + pack, first_row + row, sums);
    }
  }
#pragma unroll
  for (int s = 0; s < kSums; ++s) {
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      shared[s][threadIdx.y][threadIdx.x * kLanes + k] = sums[s][k];
    }
  }
  __syncthreads();
  for (int i = threadIdx.y * kTile + threadIdx.x; i < kSums * kTile * kLanes; i += kTile * kTile) {
    const int s = i / (kTile * kLanes);
    const int within = i % (kTile * kLanes);
    const std::int64_t column = std::int64_t{blockIdx.x} * (kTile * kLanes) + within;
    if (column >= columns) continue;
    float sum = 0;
    for (int y = 0; y < kTile; ++y) sum += shared[s][y][within];
    targets.Put(s, std::int64_t{blockIdx.z} * columns + column, sum);
  }
}

template <int kWarps>
__device__ float GroupSum(float value);

// grid: outputs x chunks. Output c is the sum over elements (n outputs + c) positions + p of all
// images n and positions p.
template <class T, class Index>
__global__ void PlaneSumsKernel(const T* x, SumTargets<T, 1> targets, Index images,
                                Index positions) {
  constexpr int kWarps = kThreads / 32;
  const std::int64_t output = blockIdx.x;
  const Index length = images * positions;
  const Index chunk = (length + gridDim.y - 1) / gridDim.y;
  const Index begin = static_cast<Index>(blockIdx.y) * chunk;
  const Index end = begin + chunk < length ? begin + chunk : length;
  float sum = 0;
#pragma unroll 4
  for (Index i = begin + threadIdx.x; i < end; i += kThreads) {
    const Index image = i / positions;
    const Index position = i - image * positions;
    sum += ToFloat(
        x[(static_cast<std::int64_t>(image) * targets.outputs + output) * positions + position]);
  }
  sum = GroupSum<kWarps>(sum);
  if (threadIdx.x == 0) targets.Put(0, output, sum);
}

template <class Out, int kSums>
void Finish(const SumTargets<Out, kSums>& targets, std::int64_t chunks, cudaStream_t stream) {
  if (chunks == 1) return;
  FinishSums<Out, kSums><<<Blocks(targets.outputs), kThreads, 0, stream>>>(targets, chunks);
}

template <class Terms, class Out, int kLanes>
void LaunchColumnSums(const Terms& terms, const SumTargets<Out, Terms::kSums>& targets,
                      std::int64_t images, std::int64_t rows, std::int64_t columns,
                      cudaStream_t stream) {
  const std::int64_t tiles = CeilDivide(columns, std::int64_t{kTile} * kLanes);
  const std::int64_t chunks = Chunks(rows, kLeastRows, tiles * images);
  const dim3 grid(GridLength(tiles, kMostGridX, "sums"), static_cast<unsigned>(chunks),
                  GridLength(images, kMostGridYZ, "sums"));
  ColumnSumsKernel<Terms, Out, kLanes>
      <<<grid, dim3(kTile, kTile), 0, stream>>>(terms, targets, rows, columns);
  Finish(targets, chunks, stream);
}

template <class T, int kLanes>
void PlainColumnSums(const void* x, void* sums, std::int64_t images, std::int64_t rows,
                     std::int64_t columns, void* scratch, cudaStream_t stream) {
  const PlainTerms<T, kLanes> terms{static_cast<const Pack<T, kLanes>*>(x)};
  const SumTargets<T, 1> targets{
      {static_cast<T*>(sums)}, static_cast<float*>(scratch), images * columns};
  LaunchColumnSums<PlainTerms<T, kLanes>, T, kLanes>(terms, targets, images, rows, columns, stream);
}

// Sums over `images` and `positions` where the channels are not last.
template <class T>
void PlaneSums(const void* x, void* sums, std::int64_t images, std::int64_t outputs,
               std::int64_t positions, void* scratch, cudaStream_t stream) {
  const std::int64_t length = images * positions;
  const std::int64_t chunks = Chunks(length, kLeastPlane, outputs);
  const SumTargets<T, 1> targets{{static_cast<T*>(sums)}, static_cast<float*>(scratch), outputs};
  const dim3 grid(GridLength(outputs, kMostGridX, "sums"), static_cast<unsigned>(chunks));
  const auto* from = static_cast<const T*>(x);
  // Below, `begin + chunk` and the last step of the loop stay within 32 bits.
  if (length < (std::int64_t{1} << 31)) {
    PlaneSumsKernel<T, std::uint32_t><<<grid, kThreads, 0, stream>>>(
        from, targets, static_cast<std::uint32_t>(images), static_cast<std::uint32_t>(positions));
  } else {
    PlaneSumsKernel<T, std::uint64_t><<<grid, kThreads, 0, stream>>>(
        from, targets, static_cast<std::uint64_t>(images), static_cast<std::uint64_t>(positions));
  }
  Finish(targets, chunks, stream);
}

// ---- Rows: a warp has one of up to kWarpColumns, a block of kRowWarps warps a longer one.

constexpr std::int64_t kWarpColumns = 1024;
constexpr int kRowWarps = 8;
constexpr int kRowsOfBlock = 4;  // where a warp has one

struct TakeSum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct TakeMost {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// The same value for every thread of the group that has the row.
template <int kWarps, class F>
__device__ float GroupReduce(float value, F f) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    value = f(value, __shfl_xor_sync(0xffffffffU, value, step));
  }
  if constexpr (kWarps > 1) {
    __shared__ float warps[kWarps];
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = warps[0];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) value = f(value, warps[w]);
    __syncthreads();  // before the next sum writes there
  }
  return value;
}
template <int kWarps>
__device__ float GroupSum(float value) {
  return GroupReduce<kWarps>(value, TakeSum());
}

__device__ std::int64_t RowOfThread() {
  return std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
}

// Each warp sums a row.
template <class T>
__global__ void RowSumsKernel(const T* x, T* sums, std::int64_t rows, std::int64_t columns) {
  const std::int64_t row = RowOfThread();
  if (row >= rows) return;
  const T* from = x + row * columns;
  float sum = 0;
#pragma unroll 4
  for (auto i = static_cast<int>(threadIdx.x); i < columns; i += 32) sum += ToFloat(from[i]);
  sum = GroupSum<1>(sum);
  if (threadIdx.x == 0) sums[row] = FromFloat<T>(sum);
}

template <class T, int kWarps, int kLanes>
__global__ void SoftmaxForwardKernel(const T* x, T* y, std::int64_t rows, std::int64_t columns) {
  using Some = Pack<T, kLanes>;
  const std::int64_t row = RowOfThread();
  if (row >= rows) return;
  const auto* from = reinterpret_cast<const Some*>(x + row * columns);
  auto* to = reinterpret_cast<Some*>(y + row * columns);
  const auto packs = static_cast<int>(columns / kLanes);
  float most = -INFINITY;
  for (int i = threadIdx.x; i < packs; i += 32 * kWarps) {
    const Some some = from[i];
#pragma unroll
    for (int k = 0; k < kLanes; ++k) most = fmaxf(most, ToFloat(some.lane[k]));
  }
  most = GroupReduce<kWarps>(most, TakeMost());
  float sum = 0;
  for (int i = threadIdx.x; i < packs; i += 32 * kWarps) {
    const Some some = from[i];
#pragma unroll
    for (int k = 0; k < kLanes; ++k) sum += expf(ToFloat(some.lane[k]) - most);
  }
  const float share = 1.0F / GroupSum<kWarps>(sum);
  for (int i = threadIdx.x; i < packs; i += 32 * kWarps) {
    Some some = from[i];
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      some.lane[k] = FromFloat<T>(expf(ToFloat(some.lane[k]) - most) * share);
    }
    to[i] = some;
  }
}

template <class T, int kWarps, int kLanes>
__global__ void SoftmaxBackwardKernel(const T* y, const T* dy, T* dx, std::int64_t rows,
                                      std::int64_t columns) {
  using Some = Pack<T, kLanes>;
  const std::int64_t row = RowOfThread();
  if (row >= rows) return;
  const auto* outputs = reinterpret_cast<const Some*>(y + row * columns);
  const auto* gradients = reinterpret_cast<const Some*>(dy + row * columns);
  auto* to = reinterpret_cast<Some*>(dx + row * columns);
  const auto packs = static_cast<int>(columns / kLanes);
  float sum = 0;
  for (int i = threadIdx.x; i < packs; i += 32 * kWarps) {
    const Some output = outputs[i];
    const Some gradient = gradients[i];
#pragma unroll
    for (int k = 0; k < kLanes; ++k) sum += ToFloat(output.lane[k]) * ToFloat(gradient.lane[k]);
  }
  sum = GroupSum<kWarps>(sum);
  for (int i = threadIdx.x; i < packs; i += 32 * kWarps) {
    const Some output = outputs[i];
    Some some = gradients[i];
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      some.lane[k] = FromFloat<T>(ToFloat(output.lane[k]) * (ToFloat(some.lane[k]) - sum));
    }
    to[i] = some;
  }
}

template <class T, int kWarps, int kLanes>
__global__ void LayerNormForwardKernel(LayerNormTensors t, std::int64_t rows,
                                       std::int64_t columns) {
  using Some = Pack<T, kLanes>;
  using Floats = Pack<float, kLanes>;
  constexpr float kEpsilon = 1e-5F;
  const std::int64_t row = RowOfThread();
  if (row >= rows) return;
  const auto* from = reinterpret_cast<const Some*>(static_cast<const T*>(t.x) + row * columns);
  auto* to = reinterpret_cast<Some*>(static_cast<T*>(t.y) + row * columns);
  const auto packs = static_cast<int>(columns / kLanes);
  float sum = 0;
  float squares = 0;
  for (int i = threadIdx.x; i < packs; i += 32 * kWarps) {
    const Some some = from[i];
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      const float value = ToFloat(some.lane[k]);
      sum += value;
      squares += value * value;
    }
  }
  const float each = 1.0F / static_cast<float>(columns);
  const float mean = GroupSum<kWarps>(sum) * each;
  const float variance = fmaxf(GroupSum<kWarps>(squares) * each - mean * mean, 0.0F);
  const float rstd = rsqrtf(variance + kEpsilon);
  for (int i = threadIdx.x; i < packs; i += 32 * kWarps) {
    Some some = from[i];
    const Floats gamma = reinterpret_cast<const Floats*>(t.gamma)[i];
    const Floats beta = reinterpret_cast<const Floats*>(t.beta)[i];
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      some.lane[k] =
          FromFloat<T>((ToFloat(some.lane[k]) - mean) * rstd * gamma.lane[k] + beta.lane[k]);
    }
    to[i] = some;
  }
  if (threadIdx.x == 0) {
    t.mean[row] = mean;
    t.rstd[row] = rstd;
  }
}

// With g = dy gamma and z = (x - mean) rstd: dx = rstd (g - average of g - z average of g z).
template <class T, int kWarps, int kLanes>
__global__ void LayerNormBackwardKernel(LayerNormTensors t, std::int64_t rows,
                                        std::int64_t columns) {
  using Some = Pack<T, kLanes>;
  using Floats = Pack<float, kLanes>;
  const std::int64_t row = RowOfThread();
  if (row >= rows) return;
  const auto* inputs = reinterpret_cast<const Some*>(static_cast<const T*>(t.x) + row * columns);
  const auto* gradients =
      reinterpret_cast<const Some*>(static_cast<const T*>(t.dy) + row * columns);
  const auto* gammas = reinterpret_cast<const Floats*>(t.gamma);
  auto* to = reinterpret_cast<Some*>(static_cast<T*>(t.dx) + row * columns);
  const auto packs = static_cast<int>(columns / kLanes);
  const float mean = t.mean[row];
  const float rstd = t.rstd[row];
  float sum = 0;
  float products = 0;
  for (int i = threadIdx.x; i < packs; i += 32 * kWarps) {
    const Some input = inputs[i];
    const Some gradient = gradients[i];
    const Floats gamma = gammas[i];
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      const float g = ToFloat(gradient.lane[k]) * gamma.lane[k];
      sum += g;
      products += g * (ToFloat(input.lane[k]) - mean) * rstd;
    }
  }
  const float each = 1.0F / static_cast<float>(columns);
  sum = GroupSum<kWarps>(sum) * each;
  products = GroupSum<kWarps>(products) * each;
  for (int i = threadIdx.x; i < packs; i += 32 * kWarps) {
    const Some input = inputs[i];
    Some some = gradients[i];
    const Floats gamma = gammas[i];
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      const float z = (ToFloat(input.lane[k]) - mean) * rstd;
      const float g = ToFloat(some.lane[k]) * gamma.lane[k];
      some.lane[k] = FromFloat<T>(rstd * (g - sum - z * products));
    }
    to[i] = some;
  }
}

template <int kWarps>
struct RowGroup {
  static constexpr int kCount = kWarps;
};

// Calls f(type, warps of a row, lanes, grid, block) with what suits rows of this length.
template <class F>
void WithRows(std::int64_t rows, std::int64_t columns, ElementType type, const char* what,
              const F& f) {
  if (columns > kMostGridX) {
    throw CudaError(CudaTrouble::kUnsupported, std::string(what) + ": rows are too long");
  }
  WithType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int kMostLanes = kWordLanes<T>;
    const bool words = columns % kMostLanes == 0;
    if (columns <= kWarpColumns) {
      const unsigned grid = GridLength(CeilDivide(rows, kRowsOfBlock), kMostGridX, what);
      const dim3 block(32, kRowsOfBlock);
      if (words) return f(tag, RowGroup<1>(), RowGroup<kMostLanes>(), grid, block);
      return f(tag, RowGroup<1>(), RowGroup<1>(), grid, block);
    }
    const unsigned grid = GridLength(rows, kMostGridX, what);
    const dim3 block(32 * kRowWarps);
    if (words) return f(tag, RowGroup<kRowWarps>(), RowGroup<kMostLanes>(), grid, block);
    return f(tag, RowGroup<kRowWarps>(), RowGroup<1>(), grid, block);
  });
  CheckLaunch(what);
}

template <class T, int kLanes>
void LayerNormParameters(const LayerNormTensors& t, std::int64_t rows, std::int64_t columns,
                         cudaStream_t stream) {
  using Terms = LayerNormTerms<T, kLanes>;
  const Terms terms{static_cast<const Pack<T, kLanes>*>(t.x),
                    static_cast<const Pack<T, kLanes>*>(t.dy), t.mean, t.rstd};
  const SumTargets<float, 2> targets{{t.dgamma, t.dbeta}, static_cast<float*>(t.scratch), columns};
  LaunchColumnSums<Terms, float, kLanes>(terms, targets, 1, rows, columns, stream);
}

}  // namespace

std::size_t SumScratchBytes(const ImageShape& shape) {
  // Chunks x other blocks are at most kWantedBlocks, or there is one chunk and no need.
  constexpr std::int64_t kSums = 2;
  constexpr std::int64_t kMost = kWantedBlocks * kTile * kTileLanes;
  const std::int64_t outputs = shape.batch * shape.channels;
  return sizeof(float) * static_cast<std::size_t>(kSums * std::max(outputs, kMost));
}

void SumChannels(const void* x, void* sums, const ImageShape& shape, ElementType type,
                 void* scratch, cudaStream_t stream) {
  WithType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::int64_t rows = shape.batch * shape.positions;
    if (!shape.channels_last) {
      PlaneSums<T>(x, sums, shape.batch, shape.channels, shape.positions, scratch, stream);
    } else if (shape.channels % kTileLanes == 0) {
      PlainColumnSums<T, kTileLanes>(x, sums, 1, rows, shape.channels, scratch, stream);
    } else {
      PlainColumnSums<T, 1>(x, sums, 1, rows, shape.channels, scratch, stream);
    }
  });
  CheckLaunch("sums");
}

void SumPositions(const void* x, void* sums, const ImageShape& shape, ElementType type,
                  void* scratch, cudaStream_t stream) {
  WithType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (!shape.channels_last && shape.positions <= kWarpColumns) {
      const std::int64_t rows = shape.batch * shape.channels;
      const unsigned grid = GridLength(CeilDivide(rows, kRowsOfBlock), kMostGridX, "sums");
      RowSumsKernel<T><<<grid, dim3(32, kRowsOfBlock), 0, stream>>>(
          static_cast<const T*>(x), static_cast<T*>(sums), rows, shape.positions);
    } else if (!shape.channels_last) {
      PlaneSums<T>(x, sums, 1, shape.batch * shape.channels, shape.positions, scratch, stream);
    } else if (shape.channels % kTileLanes == 0) {
      PlainColumnSums<T, kTileLanes>(x, sums, shape.batch, shape.positions, shape.channels, scratch,
                                     stream);
    } else {
      PlainColumnSums<T, 1>(x, sums, shape.batch, shape.positions, shape.channels, scratch, stream);
    }
  });
  CheckLaunch("sums");
}

void SoftmaxForward(const void* x, void* y, std::int64_t rows, std::int64_t columns,
                    ElementType type, cudaStream_t stream) {
  WithRows(rows, columns, type, "softmax",
           [&](auto tag, auto warps, auto lanes, unsigned grid, dim3 block) {
             using T = typename decltype(tag)::type;
             SoftmaxForwardKernel<T, decltype(warps)::kCount, decltype(lanes)::kCount>
                 <<<grid, block, 0, stream>>>(static_cast<const T*>(x), static_cast<T*>(y), rows,
                                              columns);
           });
}

void SoftmaxBackward(const void* y, const void* dy, void* dx, std::int64_t rows,
                     std::int64_t columns, ElementType type, cudaStream_t stream) {
  WithRows(rows, columns, type, "softmax",
           [&](auto tag, auto warps, auto lanes, unsigned grid, dim3 block) {
             using T = typename decltype(tag)::type;
             SoftmaxBackwardKernel<T, decltype(warps)::kCount, decltype(lanes)::kCount>
                 <<<grid, block, 0, stream>>>(static_cast<const T*>(y), static_cast<const T*>(dy),
                                              static_cast<T*>(dx), rows, columns);
           });
}

void LayerNormForward(const LayerNormTensors& t, std::int64_t rows, std::int64_t columns,
                      ElementType type, cudaStream_t stream) {
  WithRows(rows, columns, type, "layer normalization",
           [&](auto tag, auto warps, auto lanes, unsigned grid, dim3 block) {
             using T = typename decltype(tag)::type;
             LayerNormForwardKernel<T, decltype(warps)::kCount, decltype(lanes)::kCount>
                 <<<grid, block, 0, stream>>>(t, rows, columns);
           });
}

void LayerNormBackward(const LayerNormTensors& t, std::int64_t rows, std::int64_t columns,
                       ElementType type, cudaStream_t stream) {
  WithRows(rows, columns, type, "layer normalization",
           [&](auto tag, auto warps, auto lanes, unsigned grid, dim3 block) {
             using T = typename decltype(tag)::type;
             LayerNormBackwardKernel<T, decltype(warps)::kCount, decltype(lanes)::kCount>
                 <<<grid, block, 0, stream>>>(t, rows, columns);
           });
  WithType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (columns % kTileLanes == 0) {
      LayerNormParameters<T, kTileLanes>(t, rows, columns, stream);
    } else {
      LayerNormParameters<T, 1>(t, rows, columns, stream);
    }
  });
  CheckLaunch("layer normalization");
}

}  // namespace stepcast
