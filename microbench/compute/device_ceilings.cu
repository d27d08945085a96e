#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "microbench/compute/cuda_kernels.h"
#include "microbench/compute/cuda_product.h"
#include "microbench/compute/cuda_support.h"
#include "microbench/compute/device_ceilings.h"
#include "microbench/harness/sampling.h"

namespace stepcast {
namespace {

class HostBuffer {
 public:
  explicit HostBuffer(std::size_t bytes) {
    Check(cudaMallocHost(&data_, bytes), "page-locked memory");
  }
  ~HostBuffer() { cudaFreeHost(data_); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

// A handle or descriptor of cuDNN's.
template <class T, cudnnStatus_t (*kCreate)(T*), cudnnStatus_t (*kDestroy)(T)>
class Owned {
 public:
  Owned() { Check(kCreate(&it_), "cuDNN"); }
  ~Owned() { kDestroy(it_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  T get() const { return it_; }

 private:
  T it_ = nullptr;
};

// Measures on a stream of its own.
class CeilingsBench {
 public:
  CeilingsBench() { Check(cublasLtCreate(&cublas_lt_), "cuBLASLt"); }
  ~CeilingsBench() { cublasLtDestroy(cublas_lt_); }
  CeilingsBench(const CeilingsBench&) = delete;
  CeilingsBench& operator=(const CeilingsBench&) = delete;

  cudaStream_t stream() const { return stream_.get(); }
  cublasLtHandle_t cublas_lt() const { return cublas_lt_; }
  EventTimer& timer() { return timer_; }

  template <class Work>
  MeasuredRate Rate(const char* name, double amount, const Work& work) {
    const SampledTimes samples =
        SampleUntilStable([&] { return timer_.Time(stream(), work); }, StoppingRule());
    return {name, amount / samples.summary.median, samples.summary.relative_error, samples.stable};
  }

  // The least of a few runs, for choosing between ways to do one thing.
  template <class Work>
  double Least(const Work& work) {
    constexpr int kTries = 5;
    work();
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kTries; ++i) least = std::min(least, timer_.Time(stream(), work));
    return least;
  }

 private:
  CudaStream stream_;
  EventTimer timer_;
  cublasLtHandle_t cublas_lt_ = nullptr;
};

MeasuredRate CopyRate(CeilingsBench* bench) {
  constexpr std::size_t kBytes = std::size_t{512} << 20;
  const DeviceBuffer from(kBytes);
  const DeviceBuffer to(kBytes);
  FillUniform(from.data(), kBytes / sizeof(float), ElementType::kFloat, -1, 1, bench->stream());
  std::function<void()> best;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](const std::function<void()>& way) {
    const double seconds = bench->Least(way);
    if (seconds >= least) return;
    least = seconds;
    best = way;
  };
  consider([&] {
    Check(
        cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice, bench->stream()),
        "copy");
  });
  for (int variant = 0; variant < kCopyVariants; ++variant) {
    consider([&, variant] { CopyWords(from.data(), to.data(), kBytes, variant, bench->stream()); });
  }
  return bench->Rate("copy", 2.0 * kBytes, best);
}

void AddHostCopies(CeilingsBench* bench, std::vector<MeasuredRate>* rates) {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  const DeviceBuffer on_device(kBytes);
  const HostBuffer on_host(kBytes);
  FillUniform(on_device.data(), kBytes / sizeof(float), ElementType::kFloat, -1, 1,
              bench->stream());
  // First to the host, so that there are pages with data to bring back.
  const MeasuredRate to_host = bench->Rate("copy_device_to_host", kBytes, [&] {
    Check(cudaMemcpyAsync(on_host.data(), on_device.data(), kBytes, cudaMemcpyDeviceToHost,
                          bench->stream()),
          "copy to the host");
  });
  rates->push_back(bench->Rate("copy_host_to_device", kBytes, [&] {
    Check(cudaMemcpyAsync(on_device.data(), on_host.data(), kBytes, cudaMemcpyHostToDevice,
                          bench->stream()),
          "copy from the host");
  }));
  rates->push_back(to_host);
}

struct ProductPrecision {
  const char* name;
  cudaDataType_t type;
  cublasComputeType_t compute;
  ElementType element;
};

// Square products of a side and half of it, with the first factor as it is and transposed: which of
// them a device's kernels like best differs.
MeasuredRate ProductRate(CeilingsBench* bench, const ProductPrecision& precision, int side) {
  constexpr std::size_t kWorkspace = std::size_t{64} << 20;
  constexpr int kCandidates = 6;
  const std::int64_t elements = std::int64_t{side} * side;
  const std::size_t bytes = static_cast<std::size_t>(elements) * ElementBytes(precision.element);
  const DeviceBuffer a(bytes);
  const DeviceBuffer b(bytes);
  const DeviceBuffer c(bytes);
  const DeviceBuffer workspace(kWorkspace);
  FillUniform(a.data(), elements, precision.element, -1, 1, bench->stream());
  FillUniform(b.data(), elements, precision.element, -1, 1, bench->stream());
  const ProductOperands operands{a.data(), b.data(), c.data(), nullptr};
  std::unique_ptr<LtProduct> best;
  double best_rate = 0;
  double best_flop = 0;
  for (const int n : {side, side / 2}) {
    for (const bool transposed : {false, true}) {
      ProductShape shape;
      shape.type = precision.type;
      shape.compute = precision.compute;
      shape.transpose_a = transposed;
      shape.m = shape.n = shape.k = n;
      auto product = std::make_unique<LtProduct>(bench->cublas_lt(), shape);
      product->Choose(operands, workspace, kCandidates, &bench->timer(), bench->stream());
      const double flop = 2.0 * n * n * n;
      const double rate =
          flop / bench->Least([&] { product->Run(operands, workspace, bench->stream()); });
      if (rate <= best_rate) continue;
      best_rate = rate;
      best_flop = flop;
      best = std::move(product);
    }
  }
  return bench->Rate(precision.name, best_flop,
                     [&] { best->Run(operands, workspace, bench->stream()); });
}

// A 3 x 3 convolution of 256 channels at 56 x 56, as in the middle of a residual network.
MeasuredRate ConvolutionRate(CeilingsBench* bench, cudnnHandle_t cudnn) {
  constexpr int kBatch = 32;
  constexpr int kChannels = 256;
  constexpr int kSide = 56;
  constexpr int kKernel = 3;
  const Owned<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>
      image;
  const Owned<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>
      filter;
  const Owned<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
              cudnnDestroyConvolutionDescriptor>
      convolution;
  Check(cudnnSetTensor4dDescriptor(image.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, kBatch,
                                   kChannels, kSide, kSide),
        "tensor");
  Check(cudnnSetFilter4dDescriptor(filter.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, kChannels,
                                   kChannels, kKernel, kKernel),
        "filter");
  Check(cudnnSetConvolution2dDescriptor(convolution.get(), 1, 1, 1, 1, 1, 1,
                                        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        "convolution");
  Check(cudnnSetConvolutionMathType(convolution.get(), CUDNN_FMA_MATH), "convolution");
  cudnnConvolutionFwdAlgoPerf_t choice;
  int found = 0;
  Check(cudnnGetConvolutionForwardAlgorithm_v7(cudnn, image.get(), filter.get(), convolution.get(),
                                               image.get(), 1, &found, &choice),
        "convolution algorithm");
  if (found == 0) throw std::runtime_error("cuDNN offers no convolution algorithm");
  const std::int64_t pixels = std::int64_t{kBatch} * kChannels * kSide * kSide;
  const std::int64_t weights_count = std::int64_t{kChannels} * kChannels * kKernel * kKernel;
  const DeviceBuffer in(sizeof(float) * pixels);
  const DeviceBuffer out(sizeof(float) * pixels);
  const DeviceBuffer weights(sizeof(float) * weights_count);
  const DeviceBuffer workspace(choice.memory);
  FillUniform(in.data(), pixels, ElementType::kFloat, -1, 1, bench->stream());
  FillUniform(weights.data(), weights_count, ElementType::kFloat, -1, 1, bench->stream());
  const float one = 1;
  const float zero = 0;
  const double flop = 2.0 * kBatch * kChannels * kSide * kSide * kChannels * kKernel * kKernel;
  return bench->Rate("convolution_fp32", flop, [&] {
    Check(cudnnConvolutionForward(cudnn, &one, image.get(), in.data(), filter.get(), weights.data(),
                                  convolution.get(), choice.algo, workspace.data(),
                                  workspace.bytes(), &zero, image.get(), out.data()),
          "convolution");
  });
}

std::vector<MeasuredRate> MeasureRates(int major) {
  CeilingsBench bench;
  std::vector<MeasuredRate> rates;
  rates.push_back(CopyRate(&bench));
  AddHostCopies(&bench, &rates);

  constexpr int kFloatSide = 4096;
  constexpr int kTensorSide = 8192;
  constexpr int kHasHalf = 7;
  constexpr int kHasTf32 = 8;
  rates.push_back(ProductRate(&bench, {"fp32", CUDA_R_32F, CUBLAS_COMPUTE_32F, ElementType::kFloat},
                              kFloatSide));
  if (major >= kHasTf32) {
    rates.push_back(
        ProductRate(&bench, {"tf32", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, ElementType::kFloat},
                    kTensorSide));
  }
  if (major >= kHasHalf) {
    rates.push_back(ProductRate(
        &bench, {"fp16", CUDA_R_16F, CUBLAS_COMPUTE_32F, ElementType::kHalf}, kTensorSide));
  }
  if (major >= kHasTf32) {
    rates.push_back(ProductRate(
        &bench, {"bf16", CUDA_R_16BF, CUBLAS_COMPUTE_32F, ElementType::kBfloat16}, kTensorSide));
  }

  const Owned<cudnnHandle_t, cudnnCreate, cudnnDestroy> cudnn;
  Check(cudnnSetStream(cudnn.get(), bench.stream()), "cuDNN");
  rates.push_back(ConvolutionRate(&bench, cudnn.get()));
  return rates;
}

}  // namespace

std::vector<MeasuredRate> MeasureDeviceCeilings(int index) {
  const std::string why_not = WhyNoDevice(index);
  if (!why_not.empty()) throw std::runtime_error(why_not);
  Check(cudaSetDevice(index), "device");
  int major = 0;
  Check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index), "device");
  return MeasureRates(major);
}

}  // namespace stepcast
