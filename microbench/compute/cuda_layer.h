// An operation on the GPU: it names its tensors, gets sets of them, and puts a pass over one set on
// the device's stream.
#ifndef STEPCAST_MICROBENCH_COMPUTE_CUDA_LAYER_H_
#define STEPCAST_MICROBENCH_COMPUTE_CUDA_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/record/compute_profile.h"
#include "data/record/operation.h"
#include "microbench/compute/cuda_device.h"
#include "microbench/compute/cuda_kernels.h"
#include "microbench/compute/cuda_plan.h"

namespace stepcast {

inline ElementType StoredAs(Precision precision) {
  if (precision == Precision::kFp16) return ElementType::kHalf;
  if (precision == Precision::kBf16) return ElementType::kBfloat16;
  return ElementType::kFloat;
}

[[noreturn]] inline void ThrowUnsupported(const std::string& why) {
  throw CudaError(CudaTrouble::kUnsupported, why);
}

// Which passes will be run.
struct WantedPasses {
  bool forward = false;
  bool backward = false;
  bool update = false;
};

// One set of an operation's tensors in device memory.
class CudaSet {
 public:
  CudaSet(void* base, const SetLayout& layout)
      : base_(static_cast<unsigned char*>(base)), layout_(&layout) {}
  template <class T = void>
  T* at(std::size_t tensor) const {
    return reinterpret_cast<T*>(base_ + layout_->tensors()[tensor].offset);
  }

 private:
  unsigned char* base_;
  const SetLayout* layout_;
};

class CudaLayer {
 public:
  CudaLayer(const CudaLayer&) = delete;
  CudaLayer& operator=(const CudaLayer&) = delete;
  virtual ~CudaLayer() = default;

  const SetLayout& layout() const { return layout_; }
  // Scratch memory that all sets share; known after Choose.
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Whether the backward pass reads what the forward pass left in the same set.
  virtual bool backward_needs_forward() const { return false; }
  // Whether the backward pass also changes that, so that each needs a forward pass of its own.
  virtual bool backward_spends_forward() const { return false; }

  // Puts numbers into a set.
  void Fill(const CudaSet& set) const;
  // Chooses algorithms with no more scratch memory than `workspace_limit` bytes.
  virtual void Choose(const CudaSet& /*set*/, std::size_t /*workspace_limit*/) {}
  virtual void Launch(TrainingPass pass, const CudaSet& set, const DeviceBuffer& workspace) = 0;
  virtual std::string Algorithm(TrainingPass pass) const = 0;

 protected:
  CudaLayer(CudaDevice& device, Precision precision)
      : device_(device), precision_(precision), type_(StoredAs(precision)) {}

  CudaDevice& device() const { return device_; }
  cudaStream_t stream() const { return device_.stream(); }
  Precision precision() const { return precision_; }
  ElementType type() const { return type_; }

  // Tensors: of the precision's type, of 32-bit numbers, of places in a table, of zeros. Each
  // returns what CudaSet::at takes.
  std::size_t AddNumbers(std::int64_t elements);
  std::size_t AddFloats(std::int64_t elements, float low = -1, float high = 1);
  std::size_t AddIndices(std::int64_t elements, std::int64_t limit);
  std::size_t AddZeros(std::size_t bytes);
  void NeedWorkspace(std::size_t bytes) {
    if (bytes > workspace_bytes_) workspace_bytes_ = bytes;
  }

 private:
  enum class Filling { kNumbers, kIndices, kZeros };
  struct Contents {
    Filling filling = Filling::kZeros;
    std::int64_t elements = 0;
    ElementType type = ElementType::kFloat;
    float low = 0;
    float high = 0;
    std::int64_t limit = 1;
  };

  CudaDevice& device_;
  Precision precision_;
  ElementType type_;
  SetLayout layout_;
  std::vector<Contents> contents_;  // in the order of the layout's tensors
  std::size_t workspace_bytes_ = 0;
};

// Device, batch, precision and passes that a layer is made for.
struct CudaLayerRequest {
  CudaDevice& device;
  std::int64_t batch = 1;
  Precision precision = Precision::kFp32;
  WantedPasses passes;
};

// Each throws CudaError where the libraries cannot do the operation.
std::unique_ptr<CudaLayer> MakeCudaLayer(const ConvolutionOp& op, const CudaLayerRequest& request);
std::unique_ptr<CudaLayer> MakeCudaLayer(const PoolingOp& op, const CudaLayerRequest& request);
std::unique_ptr<CudaLayer> MakeCudaLayer(const DenseOp& op, const CudaLayerRequest& request);
std::unique_ptr<CudaLayer> MakeCudaLayer(const BatchedProductOp& op,
                                         const CudaLayerRequest& request);
std::unique_ptr<CudaLayer> MakeCudaLayer(const NormalizationOp& op,
                                         const CudaLayerRequest& request);
std::unique_ptr<CudaLayer> MakeCudaLayer(const RecurrentOp& op, const CudaLayerRequest& request);
std::unique_ptr<CudaLayer> MakeCudaLayer(const ActivationOp& op, const CudaLayerRequest& request);
std::unique_ptr<CudaLayer> MakeCudaLayer(const ElementwiseOp& op, const CudaLayerRequest& request);
std::unique_ptr<CudaLayer> MakeCudaLayer(const EmbeddingOp& op, const CudaLayerRequest& request);
std::unique_ptr<CudaLayer> MakeCudaLayer(const CopyOp& op, const CudaLayerRequest& request);
std::unique_ptr<CudaLayer> MakeCudaLayer(const UpdateOp& op, const CudaLayerRequest& request);

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_CUDA_LAYER_H_
