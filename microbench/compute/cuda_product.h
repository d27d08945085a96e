// One matrix product of cuBLASLt, with a choice of its algorithms. C++17, since nvcc reads it too.
#ifndef STEPCAST_MICROBENCH_COMPUTE_CUDA_PRODUCT_H_
#define STEPCAST_MICROBENCH_COMPUTE_CUDA_PRODUCT_H_

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "microbench/compute/cuda_support.h"

namespace stepcast {

// C = op(A) op(B), m x n and k terms, each matrix column by column without gaps. With `bias`, a
// vector of m numbers is added to each column.
struct ProductShape {
  cudaDataType_t type = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  bool bias = false;
};

struct ProductOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;
};

class LtProduct {
 public:
  LtProduct(cublasLtHandle_t handle, const ProductShape& shape);
  ~LtProduct();
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;

  // Takes the algorithm that the heuristics expect to be the fastest; of more than one
  // `candidates`, that which is the fastest by the clock. Throws CudaError where there is none.
  void Choose(const ProductOperands& operands, const DeviceBuffer& workspace, int candidates,
              EventTimer* timer, cudaStream_t stream);
  void Run(const ProductOperands& operands, const DeviceBuffer& workspace, cudaStream_t stream);

 private:
  void SetBias(const void* bias);
  void Destroy();

  cublasLtHandle_t handle_;
  bool bias_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr;
  cublasLtMatrixLayout_t b_ = nullptr;
  cublasLtMatrixLayout_t c_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_CUDA_PRODUCT_H_
