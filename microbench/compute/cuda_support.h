// Shared by all code that calls CUDA: statuses checked, memory and events owned. C++17, since nvcc
// reads it too.
#ifndef STEPCAST_MICROBENCH_COMPUTE_CUDA_SUPPORT_H_
#define STEPCAST_MICROBENCH_COMPUTE_CUDA_SUPPORT_H_

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace stepcast {

// y = kOne f(x) + kZero y: factors that the libraries read where they are pointed to.
inline constexpr float kOne = 1;
inline constexpr float kZero = 0;

// Meaning of a failed call for the operation that was tried.
enum class CudaTrouble {
  kOutOfMemory,  // the device has not enough
  kUnsupported,  // the library or the device cannot do this
  kFailed,       // anything else, mistakes of ours among them
};

class CudaError : public std::runtime_error {
 public:
  CudaError(CudaTrouble trouble, const std::string& message)
      : std::runtime_error(message), trouble_(trouble) {}
  CudaTrouble trouble() const { return trouble_; }

 private:
  CudaTrouble trouble_;
};

// Throws CudaError "what: the library's message" unless `status` is success. An error that CUDA
// remembers is taken back from it, so that the next call does not report it again.
inline void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  CudaTrouble trouble = CudaTrouble::kFailed;
  if (status == cudaErrorMemoryAllocation) trouble = CudaTrouble::kOutOfMemory;
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorNotSupported) {
    trouble = CudaTrouble::kUnsupported;
  }
  throw CudaError(trouble, std::string(what) + ": " + cudaGetErrorString(status));
}

inline void Check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  CudaTrouble trouble = CudaTrouble::kFailed;
  if (status == CUBLAS_STATUS_ALLOC_FAILED || cudaGetLastError() == cudaErrorMemoryAllocation) {
    trouble = CudaTrouble::kOutOfMemory;
  } else if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH) {
    trouble = CudaTrouble::kUnsupported;
  }
  throw CudaError(trouble, std::string(what) + ": " + cublasGetStatusString(status));
}

inline void Check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  // cuDNN's statuses come in thousands: 3000 is what it does not support.
  constexpr int kNotSupported = 3;
  const int category = static_cast<int>(status) / 1000;
  CudaTrouble trouble = CudaTrouble::kFailed;
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ||
      cudaGetLastError() == cudaErrorMemoryAllocation) {
    trouble = CudaTrouble::kOutOfMemory;
  } else if (category == kNotSupported) {
    trouble = CudaTrouble::kUnsupported;
  }
  throw CudaError(trouble, std::string(what) + ": " + cudnnGetErrorString(status));
}

// Why device `index` cannot be used, in one sentence; empty where it can.
inline std::string WhyNoDevice(int index) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    cudaGetLastError();
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) {
      return "no GPU can be used: no NVIDIA driver is installed";
    }
    return std::string("no GPU can be used: ") + cudaGetErrorString(status);
  }
  if (count == 0) return "no GPU can be used: none is present";
  if (index < 0 || index >= count) {
    return "GPU " + std::to_string(index) + " does not exist; there are " + std::to_string(count);
  }
  return {};
}

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
    if (bytes > 0) Check(cudaMalloc(&data_, bytes), "device memory");
  }
  ~DeviceBuffer() {
    if (data_ != nullptr) cudaFree(data_);
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept : data_(other.data_), bytes_(other.bytes_) {
    other.data_ = nullptr;
    other.bytes_ = 0;
  }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Seconds of the work that `work` puts on a stream, between two events.
class EventTimer {
 public:
  EventTimer() {
    Check(cudaEventCreate(&begin_), "event");
    try {
      Check(cudaEventCreate(&end_), "event");
    } catch (...) {
      cudaEventDestroy(begin_);
      throw;
    }
  }
  ~EventTimer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  EventTimer(const EventTimer&) = delete;
  EventTimer& operator=(const EventTimer&) = delete;

  template <class Work>
  double Time(cudaStream_t stream, const Work& work) {
    Check(cudaEventRecord(begin_, stream), "event");
    work();
    Check(cudaEventRecord(end_, stream), "event");
    Check(cudaEventSynchronize(end_), "event");
    float milliseconds = 0;
    Check(cudaEventElapsedTime(&milliseconds, begin_, end_), "event");
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

class CudaStream {
 public:
  CudaStream() { Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
  ~CudaStream() { cudaStreamDestroy(stream_); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// Work of a stream recorded once and launched as a whole.
class CudaGraph {
 public:
  CudaGraph() = default;
  ~CudaGraph() { Reset(); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  // Records what `work` puts on the stream. False where something in it cannot be recorded; the
  // stream is then as before.
  template <class Work>
  bool Record(cudaStream_t stream, const Work& work) {
    Reset();
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
      cudaGetLastError();
      return false;
    }
    bool recorded = true;
    try {
      work();
    } catch (const std::exception&) {
      recorded = false;
    }
    cudaGraph_t graph = nullptr;
    recorded = cudaStreamEndCapture(stream, &graph) == cudaSuccess && recorded;
    recorded = recorded && graph != nullptr &&
               cudaGraphGetNodes(graph, nullptr, &nodes_) == cudaSuccess &&
               cudaGraphInstantiate(&executable_, graph, 0) == cudaSuccess &&
               cudaGraphUpload(executable_, stream) == cudaSuccess;
    if (graph != nullptr) cudaGraphDestroy(graph);
    if (!recorded) {
      Reset();
      cudaGetLastError();
    }
    return recorded;
  }
  bool recorded() const { return executable_ != nullptr; }
  // Kernels, copies and the like in it.
  std::size_t nodes() const { return nodes_; }
  void Launch(cudaStream_t stream) const { Check(cudaGraphLaunch(executable_, stream), "graph"); }
  void Reset() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    executable_ = nullptr;
    nodes_ = 0;
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
  std::size_t nodes_ = 0;
};

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_CUDA_SUPPORT_H_
