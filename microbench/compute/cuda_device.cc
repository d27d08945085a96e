#include "microbench/compute/cuda_device.h"

#include <algorithm>
#include <cstdio>

#include "microbench/compute/cuda_kernels.h"
#include "microbench/compute/cuda_plan.h"

namespace stepcast {
namespace {

// What cuBLAS recommends for Hopper (its documentation of cublasSetWorkspace), and more than it
// asks for elsewhere.
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

std::string OneDecimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

}  // namespace

CudaDevice::CudaDevice(const CudaOptions& options)
    : options_(options),
      properties_(PropertiesOf(options.device)),
      nvml_(BusIdOf(options.device)),
      product_workspace_(kProductWorkspace),
      // At least the smallest cache that makes a difference, and a few words for the sink below.
      cache_filler_(std::max<std::size_t>(2 * cache_bytes(), std::size_t{1} << 20)) {
  Check(cudaMemsetAsync(cache_filler_.data(), 0, cache_filler_.bytes(), stream()), "cache");
  // The loop of Calculate takes 4 multiply-adds a step; with 8 warps to each of a multiprocessor's
  // four schedulers, and one instruction a cycle, a step takes 32 cycles. Where a scheduler has 16
  // lanes only, twice that.
  constexpr int kCyclesOfStep = 32;
  const int kilohertz = Attribute(cudaDevAttrClockRate, options.device);  // cycles in a millisecond
  calculation_steps_ = std::max(kilohertz / kCyclesOfStep, 1000);
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
  constexpr int kBlocksOfMultiprocessor = 4;  // of 8 warps each
  MultiplyAdd(properties_.multiProcessorCount * kBlocksOfMultiprocessor, calculation_steps_,
              static_cast<float*>(cache_filler_.data()), stream());
}

ProfiledDevice CudaDevice::Describe() const {
  constexpr double kMebi = 1024.0 * 1024.0;
  constexpr int kKilo = 1000;
  ProfiledDevice device;
  device.name = properties_.name;
  device.kind = "gpu";
  auto& facts = device.facts;
  facts["compute_capability"] =
      std::to_string(properties_.major) + "." + std::to_string(properties_.minor);
  facts["multiprocessors"] = std::to_string(properties_.multiProcessorCount);
  facts["sm_clock_mhz"] = std::to_string(Attribute(cudaDevAttrClockRate, options_.device) / kKilo);
  facts["memory_clock_mhz"] =
      std::to_string(Attribute(cudaDevAttrMemoryClockRate, options_.device) / kKilo);
  facts["memory_gib"] = OneDecimal(static_cast<double>(properties_.totalGlobalMem) / kMebi / 1024);
  facts["l2_mib"] = OneDecimal(properties_.l2CacheSize / kMebi);
  int driver = 0;
  Check(cudaDriverGetVersion(&driver), "driver version");
  facts["driver"] = nvml_.DriverVersion().value_or("of CUDA " + CudaVersionText(driver));
  int runtime = 0;
  Check(cudaRuntimeGetVersion(&runtime), "runtime version");
  facts["cuda"] = CudaVersionText(runtime);
  if (const auto mhz = nvml_.SmClockMhz()) facts["sm_clock_now_mhz"] = std::to_string(*mhz);
  if (const auto mhz = nvml_.MemoryClockMhz()) {
    facts["memory_clock_now_mhz"] = std::to_string(*mhz);
  }
  if (const auto watts = nvml_.PowerLimitWatts()) facts["power_limit_w"] = OneDecimal(*watts);
  return device;
}

}  // namespace stepcast
