// cuDNN's descriptors owned, and its types for ours.
#ifndef STEPCAST_MICROBENCH_COMPUTE_CUDA_CUDNN_H_
#define STEPCAST_MICROBENCH_COMPUTE_CUDA_CUDNN_H_

#include <cstdint>
#include <limits>
#include <string>

#include "microbench/compute/cuda_layer.h"
#include "microbench/compute/cuda_support.h"

namespace stepcast {

template <class T, cudnnStatus_t (*kCreate)(T*), cudnnStatus_t (*kDestroy)(T)>
class CudnnDescriptor {
 public:
  CudnnDescriptor() { Check(kCreate(&descriptor_), "cuDNN descriptor"); }
  ~CudnnDescriptor() { kDestroy(descriptor_); }
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;
  T get() const { return descriptor_; }

 private:
  T descriptor_ = nullptr;
};
using TensorDescriptor = CudnnDescriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor,
                                         cudnnDestroyTensorDescriptor>;
using FilterDescriptor = CudnnDescriptor<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor,
                                         cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor =
    CudnnDescriptor<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
                    cudnnDestroyConvolutionDescriptor>;
using PoolingDescriptor = CudnnDescriptor<cudnnPoolingDescriptor_t, cudnnCreatePoolingDescriptor,
                                          cudnnDestroyPoolingDescriptor>;
using DropoutDescriptor = CudnnDescriptor<cudnnDropoutDescriptor_t, cudnnCreateDropoutDescriptor,
                                          cudnnDestroyDropoutDescriptor>;
using RnnDescriptor =
    CudnnDescriptor<cudnnRNNDescriptor_t, cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor>;
using RnnDataDescriptor = CudnnDescriptor<cudnnRNNDataDescriptor_t, cudnnCreateRNNDataDescriptor,
                                          cudnnDestroyRNNDataDescriptor>;

inline cudnnDataType_t CudnnType(Precision precision) {
  switch (StoredAs(precision)) {
    case ElementType::kHalf:
      return CUDNN_DATA_HALF;
    case ElementType::kBfloat16:
      return CUDNN_DATA_BFLOAT16;
    case ElementType::kFloat:
      break;
  }
  return CUDNN_DATA_FLOAT;
}
// Its default math may round to tf32, its "fused multiply-add" never does.
inline cudnnMathType_t CudnnMath(Precision precision) {
  if (precision == Precision::kFp32) return CUDNN_FMA_MATH;
  return precision == Precision::kTf32 ? CUDNN_DEFAULT_MATH : CUDNN_TENSOR_OP_MATH;
}

// cuDNN counts in 32 bits.
inline int CudnnLength(std::int64_t length) {
  if (length < 0 || length > std::numeric_limits<int>::max()) {
    ThrowUnsupported("a length of " + std::to_string(length) + " is beyond what cuDNN takes");
  }
  return static_cast<int>(length);
}
inline void CheckCudnnElements(std::int64_t elements) {
  if (elements > std::numeric_limits<int>::max()) {
    ThrowUnsupported("a tensor of " + std::to_string(elements) +
                     " elements is beyond the 2^31 - 1 that cuDNN takes");
  }
}

inline cudnnTensorFormat_t CudnnFormat(bool channels_last) {
  return channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}
inline void SetImages(const TensorDescriptor& descriptor, std::int64_t batch, std::int64_t channels,
                      const Lengths2& image, Precision precision, bool channels_last) {
  CheckCudnnElements(Elements(batch, channels, image.height, image.width));
  Check(cudnnSetTensor4dDescriptor(descriptor.get(), CudnnFormat(channels_last),
                                   CudnnType(precision), CudnnLength(batch), CudnnLength(channels),
                                   CudnnLength(image.height), CudnnLength(image.width)),
        "cuDNN tensor");
}

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_CUDA_CUDNN_H_
