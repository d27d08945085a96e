// One GPU with what all operations on it share: a stream, the libraries' handles, and memory that
// is read to empty the cache.
#ifndef STEPCAST_MICROBENCH_COMPUTE_CUDA_DEVICE_H_
#define STEPCAST_MICROBENCH_COMPUTE_CUDA_DEVICE_H_

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "data/record/compute_profile.h"
#include "microbench/compute/cuda_backend.h"
#include "microbench/compute/cuda_nvml.h"
#include "microbench/compute/cuda_support.h"

namespace stepcast {

class CudaDevice {
 public:
  // Throws CudaError.
  explicit CudaDevice(const CudaOptions& options);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const CudaOptions& options() const { return options_; }
  cudaStream_t stream() const { return stream_.get(); }
  cudnnHandle_t cudnn() const { return cudnn_; }
  cublasHandle_t cublas() const { return cublas_; }
  cublasLtHandle_t cublas_lt() const { return cublas_lt_; }
  // Scratch memory of products, all of which run one after the other.
  const DeviceBuffer& product_workspace() const { return product_workspace_; }
  EventTimer& timer() { return timer_; }
  const Nvml& nvml() const { return nvml_; }

  std::size_t cache_bytes() const { return static_cast<std::size_t>(properties_.l2CacheSize); }
  // 86 is compute capability 8.6.
  int capability() const { return properties_.major * 10 + properties_.minor; }
  std::size_t FreeBytes() const;
  // Makes this the device of the calling thread; to be called before anything else is done with it.
  void Use() const { Check(cudaSetDevice(options_.device), "device"); }
  void Wait() const { Check(cudaStreamSynchronize(stream()), "device"); }
  // Puts work on the stream after which nothing of ours is in the cache.
  void EmptyCache() const;
  // Puts a fixed amount of arithmetic on the stream, the same for all devices of this kind.
  void Calculate() const;
  // Puts arithmetic of one block on the stream that takes at least so long and leaves the cache as
  // it is: what is put there meanwhile is in line when it ends.
  void Occupy(double seconds) const;

  ProfiledDevice Describe() const;

 private:
  // Steps of MultiplyAdd that take so long, with so many blocks on a multiprocessor at full clock.
  std::int64_t StepsOf(double seconds, int blocks) const;

  CudaOptions options_;
  cudaDeviceProp properties_;
  CudaStream stream_;
  EventTimer timer_;
  Nvml nvml_;
  DeviceBuffer product_workspace_;
  DeviceBuffer cache_filler_;
  int kilohertz_ = 0;  // the highest clock
  cudnnHandle_t cudnn_ = nullptr;
  cublasHandle_t cublas_ = nullptr;
  cublasLtHandle_t cublas_lt_ = nullptr;
};

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_CUDA_DEVICE_H_
