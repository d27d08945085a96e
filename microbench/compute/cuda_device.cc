#include "microbench/compute/cuda_device.h"

#include <algorithm>
#include <cstdio>

#include "microbench/compute/cuda_kernels.h"
#include "microbench/compute/cuda_plan.h"

namespace stepcast {
namespace {

// The size that cuBLAS recommends for Hopper (its documentation of cublasSetWorkspace); it asks for
// less elsewhere.
constexpr std::size_t kProductWorkspace = std::size_t{32} << 20;

cudaDeviceProp PropertiesOf(int device) {
  Check(cudaSetDevice(device), "device");
  cudaDeviceProp properties{};
  Check(cudaGetDeviceProperties(&properties, device), "device properties");
  return properties;
}

std::string BusIdOf(int device) {
  char text[32] = "";
  Check(cudaDeviceGetPCIBusId(text, sizeof text, device), "bus");
  return text;
}

int Attribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  Check(cudaDeviceGetAttribute(&value, attribute, device), "device attribute");
  return value;
}

std::string Number(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// A step of MultiplyAdd is 4 instructions for each of a block's 8 warps. Each of a multiprocessor's
// four schedulers issues one a cycle, or one in two where it has 16 lanes only.
constexpr int kInstructionsOfStep = 4;
constexpr int kWarpsOfBlock = 8;
constexpr int kSchedulers = 4;

}  // namespace

CudaDevice::CudaDevice(const CudaOptions& options)
    : options_(options),
      properties_(PropertiesOf(options.device)),
      nvml_(BusIdOf(options.device)),
      product_workspace_(kProductWorkspace),
      // At least the smallest cache that makes a difference, and a few words for the sink below.
      cache_filler_(std::max<std::size_t>(2 * cache_bytes(), std::size_t{1} << 20)) {
  Check(cudaMemsetAsync(cache_filler_.data(), 0, cache_filler_.bytes(), stream()), "cache");
  kilohertz_ = Attribute(cudaDevAttrClockRate, options.device);
  if (kilohertz_ <= 0) {
    throw CudaError(CudaTrouble::kUnsupported, "the driver does not tell the clock");
  }
  try {
    Check(cudnnCreate(&cudnn_), "cuDNN");
    Check(cudnnSetStream(cudnn_, stream()), "cuDNN");
    Check(cublasCreate(&cublas_), "cuBLAS");
    Check(cublasSetStream(cublas_, stream()), "cuBLAS");
    Check(cublasSetWorkspace(cublas_, product_workspace_.data(), product_workspace_.bytes()),
          "cuBLAS");
    Check(cublasLtCreate(&cublas_lt_), "cuBLASLt");
    Wait();
  } catch (...) {
    if (cublas_lt_ != nullptr) cublasLtDestroy(cublas_lt_);
    if (cublas_ != nullptr) cublasDestroy(cublas_);
    if (cudnn_ != nullptr) cudnnDestroy(cudnn_);
    throw;
  }
}

CudaDevice::~CudaDevice() {
  cublasLtDestroy(cublas_lt_);
  cublasDestroy(cublas_);
  cudnnDestroy(cudnn_);
}

std::size_t CudaDevice::FreeBytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  Check(cudaMemGetInfo(&free, &total), "free memory");
  return free;
}

void CudaDevice::EmptyCache() const {
  ReadThrough(cache_filler_.data(), cache_filler_.bytes(),
              static_cast<float*>(cache_filler_.data()), stream());
}

void CudaDevice::Calculate() const {
  constexpr double kSeconds = 1e-3;
  constexpr int kBlocksOfMultiprocessor = 4;
  MultiplyAdd(properties_.multiProcessorCount * kBlocksOfMultiprocessor,
              StepsOf(kSeconds, kBlocksOfMultiprocessor), static_cast<float*>(cache_filler_.data()),
              stream());
}

void CudaDevice::Occupy(double seconds) const {
  MultiplyAdd(1, StepsOf(seconds, 1), static_cast<float*>(cache_filler_.data()), stream());
}

std::int64_t CudaDevice::StepsOf(double seconds, int blocks) const {
  constexpr double kKilo = 1000;
  const int cycles = kInstructionsOfStep * kWarpsOfBlock * blocks / kSchedulers;
  return static_cast<std::int64_t>(seconds * kKilo * kilohertz_ / cycles) + 1;
}

ProfiledDevice CudaDevice::Describe() const {
  constexpr double kKibi = 1024;
  constexpr double kMebi = kKibi * kKibi;
  constexpr double kKilo = 1000;
  ProfiledDevice device;
  device.name = properties_.name;
  device.kind = "gpu";
  auto& facts = device.facts;
  facts["compute_capability"] =
      std::to_string(properties_.major) + "." + std::to_string(properties_.minor);
  facts["multiprocessors"] = std::to_string(properties_.multiProcessorCount);
  // "1980 MHz"; left out where the driver does not tell.
  const auto clock = [&](const char* name, double megahertz) {
    if (megahertz > 0) facts[name] = Number("%.0f MHz", megahertz);
  };
  clock("sm_clock", kilohertz_ / kKilo);
  clock("memory_clock", Attribute(cudaDevAttrMemoryClockRate, options_.device) / kKilo);
  clock("sm_clock_now", nvml_.SmClockMhz().value_or(0));
  clock("memory_clock_now", nvml_.MemoryClockMhz().value_or(0));
  facts["memory"] =
      Number("%.1f GiB", static_cast<double>(properties_.totalGlobalMem) / kMebi / kKibi);
  facts["l2_cache"] = Number("%.4g MiB", properties_.l2CacheSize / kMebi);
  int driver = 0;
  Check(cudaDriverGetVersion(&driver), "driver version");
  facts["driver"] = nvml_.DriverVersion().value_or("of CUDA " + CudaVersionText(driver));
  int runtime = 0;
  Check(cudaRuntimeGetVersion(&runtime), "runtime version");
  facts["cuda"] = CudaVersionText(runtime);
  if (const auto watts = nvml_.PowerLimitWatts()) {
    facts["power_limit"] = Number("%.4g W", *watts);
  }
  return device;
}

}  // namespace stepcast
