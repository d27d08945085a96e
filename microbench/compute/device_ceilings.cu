#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "microbench/compute/device_ceilings.h"
#include "microbench/harness/sampling.h"

namespace stepcast {
namespace {

void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}
void Check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string(what) + ": " + cublasGetStatusString(status));
}
void Check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string(what) + ": " + cudnnGetErrorString(status));
}

class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
    Check(cudaMalloc(&data_, bytes), "device memory");
  }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

// Pseudo-random bits whose every 16- or 32-bit piece is a finite number near one: units draw less
// power, and run faster, on zeros than on data.
__global__ void FillLikeData(std::uint32_t* words, std::size_t count, std::uint32_t exponents,
                             std::uint32_t ones) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < count;
       i += stride) {
    std::uint32_t x = static_cast<std::uint32_t>(i) * 2654435761U;
    x ^= x >> 16;
    x *= 2246822519U;
    x ^= x >> 13;
    words[i] = (x & ~exponents) | ones;
  }
}

// Where the exponents of a word of numbers stand, and what they are for numbers from 1 to 2.
struct WordFormat {
  std::uint32_t exponents;
  std::uint32_t ones;
};
constexpr WordFormat kFloat{0x7f800000U, 0x3f800000U};
constexpr WordFormat kTwoBfloats{0x7f807f80U, 0x3f803f80U};
constexpr WordFormat kTwoHalfs{0x7c007c00U, 0x3c003c00U};

void Fill(const DeviceBuffer& buffer, const WordFormat& format) {
  FillLikeData<<<1024, 256>>>(static_cast<std::uint32_t*>(buffer.data()), buffer.bytes() / 4,
                              format.exponents, format.ones);
  Check(cudaGetLastError(), "fill");
}

// Seconds of one call of `work` on the default stream, between two events.
class EventTimer {
 public:
  EventTimer() {
    Check(cudaEventCreate(&begin_), "event");
    Check(cudaEventCreate(&end_), "event");
  }
  ~EventTimer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  EventTimer(const EventTimer&) = delete;
  EventTimer& operator=(const EventTimer&) = delete;

  template <class Work>
  double Time(const Work& work) {
    Check(cudaEventRecord(begin_), "event");
    work();
    Check(cudaEventRecord(end_), "event");
    Check(cudaEventSynchronize(end_), "event");
    float milliseconds = 0;
    Check(cudaEventElapsedTime(&milliseconds, begin_, end_), "event");
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

template <class Work>
MeasuredRate Rate(const char* name, double amount, const Work& work) {
  EventTimer timer;
  const Samples samples = SampleUntilStable([&] { return timer.Time(work); }, StoppingRule());
  return {name, amount / samples.median, samples.relative_error, samples.stable};
}

MeasuredRate CopyRate() {
  constexpr std::size_t kBytes = std::size_t{512} << 20;
  const DeviceBuffer from(kBytes);
  const DeviceBuffer to(kBytes);
  Fill(from, kFloat);
  return Rate("copy", 2.0 * kBytes, [&] {
    Check(cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice), "copy");
  });
}

struct Precision {
  const char* name;
  cudaDataType_t type;
  cublasComputeType_t compute;
  std::size_t bytes;
  WordFormat format;
};

MeasuredRate ProductRate(cublasHandle_t cublas, const Precision& precision, int n) {
  const std::size_t elements = static_cast<std::size_t>(n) * n;
  const DeviceBuffer a(elements * precision.bytes);
  const DeviceBuffer b(elements * precision.bytes);
  const DeviceBuffer c(elements * precision.bytes);
  Fill(a, precision.format);
  Fill(b, precision.format);
  const float one = 1;
  const float zero = 0;
  return Rate(precision.name, 2.0 * n * n * n, [&] {
    Check(cublasGemmEx(cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a.data(), precision.type, n,
                       b.data(), precision.type, n, &zero, c.data(), precision.type, n,
                       precision.compute, CUBLAS_GEMM_DEFAULT),
          precision.name);
  });
}

// A 3 x 3 convolution of 256 channels at 56 x 56, as in the middle of a residual network.
MeasuredRate ConvolutionRate(cudnnHandle_t cudnn) {
  constexpr int kBatch = 32;
  constexpr int kChannels = 256;
  constexpr int kSide = 56;
  constexpr int kKernel = 3;
  cudnnTensorDescriptor_t image = nullptr;
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  Check(cudnnCreateTensorDescriptor(&image), "tensor");
  Check(cudnnCreateFilterDescriptor(&filter), "filter");
  Check(cudnnCreateConvolutionDescriptor(&convolution), "convolution");
  Check(cudnnSetTensor4dDescriptor(image, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, kBatch, kChannels,
                                   kSide, kSide),
        "tensor");
  Check(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, kChannels,
                                   kChannels, kKernel, kKernel),
        "filter");
  Check(cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT),
        "convolution");
  Check(cudnnSetConvolutionMathType(convolution, CUDNN_FMA_MATH), "convolution");
  cudnnConvolutionFwdAlgoPerf_t choice;
  int found = 0;
  Check(cudnnGetConvolutionForwardAlgorithm_v7(cudnn, image, filter, convolution, image, 1, &found,
                                               &choice),
        "convolution algorithm");
  if (found == 0) throw std::runtime_error("cuDNN offers no convolution algorithm");
  const std::size_t image_bytes = std::size_t{4} * kBatch * kChannels * kSide * kSide;
  const DeviceBuffer in(image_bytes);
  const DeviceBuffer out(image_bytes);
  const DeviceBuffer weights(std::size_t{4} * kChannels * kChannels * kKernel * kKernel);
  const DeviceBuffer workspace(std::max<std::size_t>(choice.memory, 256));
  Fill(in, kFloat);
  Fill(weights, kFloat);
  const float one = 1;
  const float zero = 0;
  const double flop = 2.0 * kBatch * kChannels * kSide * kSide * kChannels * kKernel * kKernel;
  const MeasuredRate rate = Rate("convolution_fp32", flop, [&] {
    Check(cudnnConvolutionForward(cudnn, &one, image, in.data(), filter, weights.data(),
                                  convolution, choice.algo, workspace.data(), workspace.bytes(),
                                  &zero, image, out.data()),
          "convolution");
  });
  cudnnDestroyConvolutionDescriptor(convolution);
  cudnnDestroyFilterDescriptor(filter);
  cudnnDestroyTensorDescriptor(image);
  return rate;
}

}  // namespace

CeilingsOutcome MeasureDeviceCeilings(int index) {
  CeilingsOutcome outcome;
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    outcome.message = std::string("no GPU can be used: ") +
                      (status != cudaSuccess ? cudaGetErrorString(status) : "none is present");
    return outcome;
  }
  if (index < 0 || index >= count) {
    outcome.message =
        "GPU " + std::to_string(index) + " does not exist; there are " + std::to_string(count);
    return outcome;
  }
  try {
    Check(cudaSetDevice(index), "device");
    cudaDeviceProp properties;
    Check(cudaGetDeviceProperties(&properties, index), "device properties");
    DeviceCeilings& c = outcome.ceilings;
    c.name = properties.name;
    c.multiprocessors = properties.multiProcessorCount;
    c.memory_bytes = static_cast<double>(properties.totalGlobalMem);
    Check(cudaDriverGetVersion(&c.driver_version), "driver version");
    Check(cudaRuntimeGetVersion(&c.cuda_version), "runtime version");
    c.cudnn_version = cudnnGetVersion();
    c.rates.push_back(CopyRate());

    cublasHandle_t cublas = nullptr;
    Check(cublasCreate(&cublas), "cuBLAS");
    constexpr int kFloatSide = 4096;
    constexpr int kTensorSide = 8192;
    c.rates.push_back(
        ProductRate(cublas, {"fp32", CUDA_R_32F, CUBLAS_COMPUTE_32F, 4, kFloat}, kFloatSide));
    constexpr int kHasHalf = 7;
    constexpr int kHasTf32 = 8;
    if (properties.major >= kHasTf32) {
      c.rates.push_back(ProductRate(
          cublas, {"tf32", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4, kFloat}, kTensorSide));
    }
    if (properties.major >= kHasHalf) {
      c.rates.push_back(
          ProductRate(cublas, {"fp16", CUDA_R_16F, CUBLAS_COMPUTE_32F, 2, kTwoHalfs}, kTensorSide));
    }
    if (properties.major >= kHasTf32) {
      c.rates.push_back(ProductRate(
          cublas, {"bf16", CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2, kTwoBfloats}, kTensorSide));
    }
    Check(cublasDestroy(cublas), "cuBLAS");

    cudnnHandle_t cudnn = nullptr;
    Check(cudnnCreate(&cudnn), "cuDNN");
    c.rates.push_back(ConvolutionRate(cudnn));
    Check(cudnnDestroy(cudnn), "cuDNN");
    outcome.measured = true;
  } catch (const std::exception& e) {
    outcome.message = std::string("the GPU could not be measured: ") + e.what();
  }
  return outcome;
}

}  // namespace stepcast
