#include "microbench/compute/cuda_product.h"

#include <algorithm>
#include <limits>

namespace stepcast {
namespace {

template <class Value>
void Set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, Value value) {
  Check(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value), "cuBLASLt");
}

cublasLtMatrixLayout_t Layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  Check(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), rows),
        "cuBLASLt");
  return layout;
}

}  // namespace

LtProduct::LtProduct(cublasLtHandle_t handle, const ProductShape& s)
    : handle_(handle), bias_(s.bias) {
  try {
    Check(cublasLtMatmulDescCreate(&operation_, s.compute, CUDA_R_32F), "cuBLASLt");
    const cublasOperation_t as_is = CUBLAS_OP_N;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    Set(operation_, CUBLASLT_MATMUL_DESC_TRANSA, s.transpose_a ? transposed : as_is);
    Set(operation_, CUBLASLT_MATMUL_DESC_TRANSB, s.transpose_b ? transposed : as_is);
    if (s.bias) Set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    a_ = s.transpose_a ? Layout(s.type, s.k, s.m) : Layout(s.type, s.m, s.k);
    b_ = s.transpose_b ? Layout(s.type, s.n, s.k) : Layout(s.type, s.k, s.n);
    c_ = Layout(s.type, s.m, s.n);
  } catch (...) {
    Destroy();
    throw;
  }
}

LtProduct::~LtProduct() { Destroy(); }

void LtProduct::Destroy() {
  if (c_ != nullptr) cublasLtMatrixLayoutDestroy(c_);
  if (b_ != nullptr) cublasLtMatrixLayoutDestroy(b_);
  if (a_ != nullptr) cublasLtMatrixLayoutDestroy(a_);
  if (operation_ != nullptr) cublasLtMatmulDescDestroy(operation_);
}

void LtProduct::SetBias(const void* bias) {
  if (bias_) Set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
}

void LtProduct::Choose(const ProductOperands& operands, const DeviceBuffer& workspace,
                       int candidates, EventTimer* timer, cudaStream_t stream) {
  SetBias(operands.bias);  // the heuristics look at its alignment
  cublasLtMatmulPreference_t preference = nullptr;
  Check(cublasLtMatmulPreferenceCreate(&preference), "cuBLASLt");
  const std::size_t limit = workspace.bytes();
  cublasStatus_t status = cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof limit);
  std::vector<cublasLtMatmulHeuristicResult_t> results(
      static_cast<std::size_t>(std::max(candidates, 1)));
  int found = 0;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status =
        cublasLtMatmulAlgoGetHeuristic(handle_, operation_, a_, b_, c_, c_, preference,
                                       static_cast<int>(results.size()), results.data(), &found);
  }
  cublasLtMatmulPreferenceDestroy(preference);
  Check(status, "choice of a product's algorithm");
  results.resize(static_cast<std::size_t>(found));
  results.erase(std::remove_if(results.begin(), results.end(),
                               [](const cublasLtMatmulHeuristicResult_t& result) {
                                 return result.state != CUBLAS_STATUS_SUCCESS;
                               }),
                results.end());
  if (results.empty()) {
    throw CudaError(CudaTrouble::kUnsupported, "cuBLASLt has no algorithm for this product");
  }
  algorithm_ = results.front().algo;
  if (results.size() == 1) return;

  constexpr int kTries = 5;
  cublasLtMatmulAlgo_t fastest = algorithm_;
  double least = std::numeric_limits<double>::infinity();
  for (const cublasLtMatmulHeuristicResult_t& result : results) {
    algorithm_ = result.algo;
    try {
      Run(operands, workspace, stream);  // kernels are loaded at their first launch
      for (int i = 0; i < kTries; ++i) {
        const double seconds = timer->Time(stream, [&] { Run(operands, workspace, stream); });
        if (seconds < least) {
          least = seconds;
          fastest = algorithm_;
        }
      }
    } catch (const CudaError& e) {
      if (e.trouble() != CudaTrouble::kUnsupported) throw;
    }
  }
  algorithm_ = fastest;
}

void LtProduct::Run(const ProductOperands& operands, const DeviceBuffer& workspace,
                    cudaStream_t stream) {
  SetBias(operands.bias);
  Check(
      cublasLtMatmul(handle_, operation_, &kOne, operands.a, a_, operands.b, b_, &kZero, operands.c,
                     c_, operands.c, c_, &algorithm_, workspace.data(), workspace.bytes(), stream),
      "product");
}

}  // namespace stepcast
