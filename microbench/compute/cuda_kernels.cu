// Kernels that go element by element: activations, pairs of tensors, images, tables, optimizers.
#include <type_traits>

#include "microbench/compute/cuda_kernels.h"
#include "microbench/compute/cuda_numbers.h"

namespace stepcast {
namespace {

// ---- Element by element.

constexpr float kLeak = 0.01F;  // PyTorch's default
constexpr float kSqrtHalf = 0.70710678F;
constexpr float kGaussian = 0.39894228F;     // 1 / sqrt(2 pi)
constexpr float kSqrt2OverPi = 0.79788456F;  // of the tanh approximation of gelu
constexpr float kGeluCubic = 0.044715F;

__device__ float Logistic(float x) { return 1.0F / (1.0F + expf(-x)); }

template <Curve kCurve>
__device__ float Value(float x) {
  if constexpr (kCurve == Curve::kRelu) return fmaxf(x, 0.0F);
  if constexpr (kCurve == Curve::kRelu6) return fminf(fmaxf(x, 0.0F), 6.0F);
  if constexpr (kCurve == Curve::kLeakyRelu) return x > 0 ? x : kLeak * x;
  if constexpr (kCurve == Curve::kHardtanh) return fminf(fmaxf(x, -1.0F), 1.0F);
  if constexpr (kCurve == Curve::kSigmoid) return Logistic(x);
  if constexpr (kCurve == Curve::kSwish) return x * Logistic(x);
  if constexpr (kCurve == Curve::kTanh) return tanhf(x);
  if constexpr (kCurve == Curve::kGelu) return 0.5F * x * (1.0F + erff(x * kSqrtHalf));
  if constexpr (kCurve == Curve::kGeluTanh) {
    return 0.5F * x * (1.0F + tanhf(kSqrt2OverPi * (x + kGeluCubic * x * x * x)));
  }
}

// Slope of the activation: `s` is its output for relu, sigmoid and tanh, its input for the others.
template <Curve kCurve>
__device__ float Slope(float s) {
  if constexpr (kCurve == Curve::kRelu) return s > 0 ? 1.0F : 0.0F;
  if constexpr (kCurve == Curve::kRelu6) return s > 0 && s < 6 ? 1.0F : 0.0F;
  if constexpr (kCurve == Curve::kLeakyRelu) return s > 0 ? 1.0F : kLeak;
  if constexpr (kCurve == Curve::kHardtanh) return s > -1 && s < 1 ? 1.0F : 0.0F;
  if constexpr (kCurve == Curve::kSigmoid) return s * (1.0F - s);
  if constexpr (kCurve == Curve::kSwish) {
    const float g = Logistic(s);
    return g * (1.0F + s * (1.0F - g));
  }
  if constexpr (kCurve == Curve::kTanh) return 1.0F - s * s;
  if constexpr (kCurve == Curve::kGelu) {
    return 0.5F * (1.0F + erff(s * kSqrtHalf)) + s * kGaussian * expf(-0.5F * s * s);
  }
  if constexpr (kCurve == Curve::kGeluTanh) {
    const float t = tanhf(kSqrt2OverPi * (s + kGeluCubic * s * s * s));
    return 0.5F * (1.0F + t) +
           0.5F * s * (1.0F - t * t) * kSqrt2OverPi * (1.0F + 3.0F * kGeluCubic * s * s);
  }
}

template <Curve kCurve>
struct ForwardOf {
  __device__ float operator()(float x) const { return Value<kCurve>(x); }
};
template <Curve kCurve>
struct BackwardOf {
  __device__ float operator()(float s, float dy) const { return dy * Slope<kCurve>(s); }
};
template <Pairing kPairing>
struct Paired {
  __device__ float operator()(float a, float b) const {
    return kPairing == Pairing::kAdd ? a + b : a * b;
  }
};

template <class T, class F>
__global__ void MapKernel(const Word<T>* x, Word<T>* y, std::int64_t words, F f) {
  for (std::int64_t i = FirstPiece(); i < words; i += AllThreads()) {
    Word<T> word = x[i];
#pragma unroll
    for (int k = 0; k < kWordLanes<T>; ++k) word.lane[k] = FromFloat<T>(f(ToFloat(word.lane[k])));
    y[i] = word;
  }
}

template <class T, class F>
__global__ void Map2Kernel(const Word<T>* a, const Word<T>* b, Word<T>* c, std::int64_t words,
                           F f) {
  for (std::int64_t i = FirstPiece(); i < words; i += AllThreads()) {
    const Word<T> first = a[i];
    const Word<T> second = b[i];
    Word<T> result;
#pragma unroll
    for (int k = 0; k < kWordLanes<T>; ++k) {
      result.lane[k] = FromFloat<T>(f(ToFloat(first.lane[k]), ToFloat(second.lane[k])));
    }
    c[i] = result;
  }
}

template <class F>
void Map(const void* x, void* y, std::int64_t count, ElementType type, const F& f,
         cudaStream_t stream) {
  WithType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::int64_t words = CeilDivide(count, kWordLanes<T>);
    MapKernel<T, F><<<Blocks(words), kThreads, 0, stream>>>(static_cast<const Word<T>*>(x),
                                                            static_cast<Word<T>*>(y), words, f);
  });
}
template <class F>
void Map2(const void* a, const void* b, void* c, std::int64_t count, ElementType type, const F& f,
          cudaStream_t stream) {
  WithType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::int64_t words = CeilDivide(count, kWordLanes<T>);
    Map2Kernel<T, F><<<Blocks(words), kThreads, 0, stream>>>(static_cast<const Word<T>*>(a),
                                                             static_cast<const Word<T>*>(b),
                                                             static_cast<Word<T>*>(c), words, f);
  });
}

template <Curve kCurve>
using CurveTag = std::integral_constant<Curve, kCurve>;
template <class F>
void WithCurve(Curve curve, const F& f) {
  switch (curve) {
    case Curve::kRelu:
      return f(CurveTag<Curve::kRelu>());
    case Curve::kRelu6:
      return f(CurveTag<Curve::kRelu6>());
    case Curve::kLeakyRelu:
      return f(CurveTag<Curve::kLeakyRelu>());
    case Curve::kHardtanh:
      return f(CurveTag<Curve::kHardtanh>());
    case Curve::kSigmoid:
      return f(CurveTag<Curve::kSigmoid>());
    case Curve::kSwish:
      return f(CurveTag<Curve::kSwish>());
    case Curve::kTanh:
      return f(CurveTag<Curve::kTanh>());
    case Curve::kGelu:
      return f(CurveTag<Curve::kGelu>());
    case Curve::kGeluTanh:
      return f(CurveTag<Curve::kGeluTanh>());
  }
}

// ---- Images.

// Divisions of 64 bits take dozens of instructions: where 32 bits reach, they are used.
template <class F>
void WithIndex(std::int64_t count, const F& f) {
  if (count < (std::int64_t{1} << 31)) return f(TypeTag<std::uint32_t>());
  return f(TypeTag<std::uint64_t>());
}

template <class Index>
struct ChannelPlaces {
  Index channels;
  Index positions;
  bool each_image;
};

// Without x where it is null, the same for all threads: y is then 0 + v.
template <class T, Pairing kPairing, bool kLast, class Index>
__global__ void CombineChannelsKernel(const T* x, const T* v, T* y, Index count,
                                      ChannelPlaces<Index> places) {
  constexpr int kLanes = kWordLanes<T>;
  const Paired<kPairing> op;
  // A run is what lies together: the channels of a position where they are last, else a channel of
  // an image. Its first value:
  const auto value_of_run = [&](Index run) -> Index {
    if (kLast) return places.each_image ? run / places.positions * places.channels : 0;
    return places.each_image ? run : run % places.channels;
  };
  const Index run_length = kLast ? places.channels : places.positions;
  const auto words = static_cast<std::int64_t>((count + kLanes - 1) / kLanes);
  for (std::int64_t w = FirstPiece(); w < words; w += AllThreads()) {
    const Index i = static_cast<Index>(w) * kLanes;
    Word<T> word = {};
    if (x != nullptr) word = reinterpret_cast<const Word<T>*>(x)[w];
    Index run = i / run_length;
    Index within = i - run * run_length;
    Index value = value_of_run(run);
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      if (i + k >= count) break;
      const T other = v[kLast ? value + within : value];
      word.lane[k] = FromFloat<T>(op(ToFloat(word.lane[k]), ToFloat(other)));
      if (++within == run_length && i + k + 1 < count) {
        within = 0;
        value = value_of_run(++run);
      }
    }
    reinterpret_cast<Word<T>*>(y)[w] = word;
  }
}

template <class Index>
struct FrameSizes {
  Index channels;
  Index height, width;  // of the result
  Index from_height, from_width;
  Index top, left;
};

// Each element of the result takes its own from the source. Padding: a place left of or above the
// image wraps round to a huge number, and is outside like one right of or below it.
template <class T, bool kLast, bool kCrop, class Index>
__global__ void FrameKernel(const T* from, T* to, Index count, FrameSizes<Index> s) {
  const auto elements = static_cast<std::int64_t>(count);
  for (std::int64_t piece = FirstPiece(); piece < elements; piece += AllThreads()) {
    const auto i = static_cast<Index>(piece);
    Index rest = i;
    Index channel = 0;
    if (kLast) {
      channel = rest % s.channels;
      rest /= s.channels;
    }
    Index column = rest % s.width;
    rest /= s.width;
    Index row = rest % s.height;
    const Index plane = rest / s.height;  // an image, or a channel of one
    if (kCrop) {
      row += s.top;
      column += s.left;
    } else {
      row -= s.top;
      column -= s.left;
    }
    T value = FromFloat<T>(0.0F);
    if (row < s.from_height && column < s.from_width) {
      const Index place = (plane * s.from_height + row) * s.from_width + column;
      value = from[kLast ? place * s.channels + channel : place];
    }
    to[i] = value;
  }
}

template <bool kCrop>
void LaunchFrame(const void* from, void* to, const Frame& f, const ImageShape& shape,
                 ElementType type, cudaStream_t stream) {
  const std::int64_t images = shape.batch * shape.channels;
  const std::int64_t framed = images * f.framed_height * f.framed_width;
  const std::int64_t count = kCrop ? images * f.height * f.width : framed;
  WithType(type, [&](auto type_tag) {
    using T = typename decltype(type_tag)::type;
    WithIndex(framed, [&](auto index_tag) {
      using Index = typename decltype(index_tag)::type;
      FrameSizes<Index> s;
      s.channels = static_cast<Index>(shape.channels);
      s.height = static_cast<Index>(kCrop ? f.height : f.framed_height);
      s.width = static_cast<Index>(kCrop ? f.width : f.framed_width);
      s.from_height = static_cast<Index>(kCrop ? f.framed_height : f.height);
      s.from_width = static_cast<Index>(kCrop ? f.framed_width : f.width);
      s.top = static_cast<Index>(f.top);
      s.left = static_cast<Index>(f.left);
      const auto elements = static_cast<Index>(count);
      const auto* source = static_cast<const T*>(from);
      auto* target = static_cast<T*>(to);
      if (shape.channels_last) {
        FrameKernel<T, true, kCrop, Index>
            <<<Blocks(count), kThreads, 0, stream>>>(source, target, elements, s);
      } else {
        FrameKernel<T, false, kCrop, Index>
            <<<Blocks(count), kThreads, 0, stream>>>(source, target, elements, s);
      }
    });
  });
  CheckLaunch("padding");
}

template <Pairing kPairing>
void LaunchCombineChannels(const void* x, const void* v, bool each_image, void* y,
                           const ImageShape& shape, ElementType type, cudaStream_t stream) {
  const std::int64_t count = shape.batch * shape.channels * shape.positions;
  WithType(type, [&](auto type_tag) {
    using T = typename decltype(type_tag)::type;
    WithIndex(count, [&](auto index_tag) {
      using Index = typename decltype(index_tag)::type;
      const ChannelPlaces<Index> places{static_cast<Index>(shape.channels),
                                        static_cast<Index>(shape.positions), each_image};
      const unsigned blocks = Blocks(CeilDivide(count, kWordLanes<T>));
      const auto elements = static_cast<Index>(count);
      const auto* from = static_cast<const T*>(x);
      const auto* values = static_cast<const T*>(v);
      auto* to = static_cast<T*>(y);
      if (shape.channels_last) {
        CombineChannelsKernel<T, kPairing, true, Index>
            <<<blocks, kThreads, 0, stream>>>(from, values, to, elements, places);
      } else {
        CombineChannelsKernel<T, kPairing, false, Index>
            <<<blocks, kThreads, 0, stream>>>(from, values, to, elements, places);
      }
    });
  });
  CheckLaunch("channel values");
}

// ---- Tables and optimizers.

// One block for each look-up.
template <int kLanes, bool kAdd>
__global__ void TableKernel(const float* from, const std::int64_t* indices, float* to,
                            std::int64_t features) {
  using Some = Pack<float, kLanes>;
  const std::int64_t token = blockIdx.x;
  const std::int64_t row = indices[token];
  const std::int64_t packs = features / kLanes;
  const auto* source = reinterpret_cast<const Some*>(from + (kAdd ? token : row) * features);
  float* target = to + (kAdd ? row : token) * features;
  for (std::int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const Some some = source[i];
    if (kAdd) {
#pragma unroll
      for (int k = 0; k < kLanes; ++k) atomicAdd(target + i * kLanes + k, some.lane[k]);
    } else {
      reinterpret_cast<Some*>(target)[i] = some;
    }
  }
}

template <bool kAdd>
void LaunchTable(const float* from, const std::int64_t* indices, float* to, std::int64_t tokens,
                 std::int64_t features, cudaStream_t stream) {
  constexpr int kTableThreads = 128;
  const unsigned blocks = GridLength(tokens, kMostGridX, "table");
  if (features % 4 == 0) {
    TableKernel<4, kAdd><<<blocks, kTableThreads, 0, stream>>>(from, indices, to, features);
  } else {
    TableKernel<1, kAdd><<<blocks, kTableThreads, 0, stream>>>(from, indices, to, features);
  }
  CheckLaunch("table");
}

// y = f(x, z, y). Tensors that f does not use are null and are not read.
template <class F>
__global__ void StepKernel(const float4* x, const float4* z, float4* y, std::int64_t words, F f) {
  for (std::int64_t i = FirstPiece(); i < words; i += AllThreads()) {
    const float4 none = make_float4(0, 0, 0, 0);
    const float4 a = F::kReadsX ? x[i] : none;
    const float4 b = F::kReadsZ ? z[i] : none;
    const float4 c = F::kReadsY ? y[i] : none;
    y[i] = make_float4(f(a.x, b.x, c.x), f(a.y, b.y, c.y), f(a.z, b.z, c.z), f(a.w, b.w, c.w));
  }
}
template <bool kX, bool kZ, bool kY>
struct Reads {
  static constexpr bool kReadsX = kX;
  static constexpr bool kReadsZ = kZ;
  static constexpr bool kReadsY = kY;
};
struct AxpyStep : Reads<true, false, true> {
  float a;
  __device__ float operator()(float x, float /*z*/, float y) const { return y + a * x; }
};
struct ScaleStep : Reads<false, false, true> {
  float a;
  __device__ float operator()(float /*x*/, float /*z*/, float y) const { return a * y; }
};
struct ShiftStep : Reads<false, false, true> {
  float a;
  __device__ float operator()(float /*x*/, float /*z*/, float y) const { return y + a; }
};
struct AddSquareStep : Reads<true, false, true> {
  float a;
  __device__ float operator()(float x, float /*z*/, float y) const { return y + a * x * x; }
};
struct SquareRootStep : Reads<true, false, false> {
  float a;
  __device__ float operator()(float x, float /*z*/, float /*y*/) const { return sqrtf(x); }
};
struct AddQuotientStep : Reads<true, true, true> {
  float a;
  __device__ float operator()(float x, float z, float y) const { return y + a * (x / z); }
};

template <class F>
void Step(float a, const float* x, const float* z, float* y, std::int64_t count,
          cudaStream_t stream) {
  F f;
  f.a = a;
  const std::int64_t words = CeilDivide(count, 4);
  StepKernel<F><<<Blocks(words), kThreads, 0, stream>>>(reinterpret_cast<const float4*>(x),
                                                        reinterpret_cast<const float4*>(z),
                                                        reinterpret_cast<float4*>(y), words, f);
  CheckLaunch("update");
}

}  // namespace

void CurveForward(Curve curve, const void* x, void* y, std::int64_t count, ElementType type,
                  cudaStream_t stream) {
  WithCurve(curve,
            [&](auto tag) { Map(x, y, count, type, ForwardOf<decltype(tag)::value>(), stream); });
  CheckLaunch("activation");
}

void CurveBackward(Curve curve, const void* saved, const void* dy, void* dx, std::int64_t count,
                   ElementType type, cudaStream_t stream) {
  WithCurve(curve, [&](auto tag) {
    Map2(saved, dy, dx, count, type, BackwardOf<decltype(tag)::value>(), stream);
  });
  CheckLaunch("activation");
}

void Combine(Pairing pairing, const void* a, const void* b, void* c, std::int64_t count,
             ElementType type, cudaStream_t stream) {
  if (pairing == Pairing::kAdd) {
    Map2(a, b, c, count, type, Paired<Pairing::kAdd>(), stream);
  } else {
    Map2(a, b, c, count, type, Paired<Pairing::kMultiply>(), stream);
  }
  CheckLaunch("elementwise");
}

void CombineChannels(Pairing pairing, const void* x, const void* v, bool each_image, void* y,
                     const ImageShape& shape, ElementType type, cudaStream_t stream) {
  if (pairing == Pairing::kAdd) {
    LaunchCombineChannels<Pairing::kAdd>(x, v, each_image, y, shape, type, stream);
  } else {
    LaunchCombineChannels<Pairing::kMultiply>(x, v, each_image, y, shape, type, stream);
  }
}

void SpreadChannels(const void* v, void* y, const ImageShape& shape, ElementType type,
                    cudaStream_t stream) {
  LaunchCombineChannels<Pairing::kAdd>(nullptr, v, true, y, shape, type, stream);
}

void PadImages(const void* x, void* framed, const Frame& frame, const ImageShape& shape,
               ElementType type, cudaStream_t stream) {
  LaunchFrame<false>(x, framed, frame, shape, type, stream);
}
void CropImages(const void* framed, void* x, const Frame& frame, const ImageShape& shape,
                ElementType type, cudaStream_t stream) {
  LaunchFrame<true>(framed, x, frame, shape, type, stream);
}

void Gather(const float* table, const std::int64_t* indices, float* y, std::int64_t tokens,
            std::int64_t features, cudaStream_t stream) {
  LaunchTable<false>(table, indices, y, tokens, features, stream);
}
void ScatterAdd(const float* dy, const std::int64_t* indices, float* table, std::int64_t tokens,
                std::int64_t features, cudaStream_t stream) {
  LaunchTable<true>(dy, indices, table, tokens, features, stream);
}

void Axpy(float a, const float* x, float* y, std::int64_t count, cudaStream_t stream) {
  Step<AxpyStep>(a, x, nullptr, y, count, stream);
}
void Scale(float a, float* y, std::int64_t count, cudaStream_t stream) {
  Step<ScaleStep>(a, nullptr, nullptr, y, count, stream);
}
void Shift(float a, float* y, std::int64_t count, cudaStream_t stream) {
  Step<ShiftStep>(a, nullptr, nullptr, y, count, stream);
}
void AddSquare(float a, const float* x, float* y, std::int64_t count, cudaStream_t stream) {
  Step<AddSquareStep>(a, x, nullptr, y, count, stream);
}
void SquareRoot(const float* x, float* y, std::int64_t count, cudaStream_t stream) {
  Step<SquareRootStep>(0, x, nullptr, y, count, stream);
}
void AddQuotient(float a, const float* x, const float* z, float* y, std::int64_t count,
                 cudaStream_t stream) {
  Step<AddQuotientStep>(a, x, z, y, count, stream);
}

}  // namespace stepcast
