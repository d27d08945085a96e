// Products with parameters by cuBLASLt, and batches of products without by cuBLAS.
#include <limits>

#include "microbench/compute/cuda_layer.h"
#include "microbench/compute/cuda_product.h"

namespace stepcast {
namespace {

cudaDataType_t BlasType(Precision precision) {
  switch (StoredAs(precision)) {
    case ElementType::kHalf:
      return CUDA_R_16F;
    case ElementType::kBfloat16:
      return CUDA_R_16BF;
    case ElementType::kFloat:
      break;
  }
  return CUDA_R_32F;
}
// cuBLAS rounds to tf32 only where it is told to.
cublasComputeType_t BlasCompute(Precision precision) {
  return precision == Precision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// y = x w^T + b, row by row: x is rows x inputs, w units x inputs as frameworks store it. cuBLAS
// counts column by column, so that each matrix is what it takes for its transpose.
class DenseLayer : public CudaLayer {
 public:
  DenseLayer(const DenseOp& op, const CudaLayerRequest& request)
      : CudaLayer(request.device, request.precision),
        op_(op),
        passes_(request.passes),
        rows_(Elements(request.batch, op.positions)),
        y_shape_{1, op.units, rows_, true} {
    const std::int64_t inputs = Elements(rows_, op.inputs);
    const std::int64_t outputs = Elements(rows_, op.units);
    const std::int64_t weights = Elements(op.inputs, op.units);
    x_ = AddNumbers(inputs);
    w_ = AddNumbers(weights);
    if (passes_.forward) {
      y_ = AddNumbers(outputs);
      if (op.bias) bias_ = AddNumbers(op.units);
    }
    if (passes_.backward) {
      dy_ = AddNumbers(outputs);
      dw_ = AddNumbers(weights);
      if (op.input_gradient) dx_ = AddNumbers(inputs);
      if (op.bias) {
        dbias_ = AddNumbers(op.units);
        NeedWorkspace(SumScratchBytes(y_shape_));
      }
    }
  }

  void Choose(const CudaSet& set, std::size_t /*workspace_limit*/) override {
    if (passes_.forward) {
      fused_bias_ = op_.bias;
      try {
        forward_ = Product(true, false, op_.units, rows_, op_.inputs, fused_bias_, Forward(set));
      } catch (const CudaError& e) {
        if (!op_.bias || e.trouble() != CudaTrouble::kUnsupported) throw;
        fused_bias_ = false;
        forward_ = Product(true, false, op_.units, rows_, op_.inputs, false, Forward(set));
      }
    }
    if (!passes_.backward) return;
    weights_ = Product(false, true, op_.inputs, op_.units, rows_, false, Weights(set));
    if (op_.input_gradient) {
      data_ = Product(false, false, op_.inputs, rows_, op_.units, false, Data(set));
    }
  }

  void Launch(TrainingPass pass, const CudaSet& set, const DeviceBuffer& workspace) override {
    const DeviceBuffer& scratch = device().product_workspace();
    if (pass == TrainingPass::kForward) {
      forward_->Run(Forward(set), scratch, stream());
      if (op_.bias && !fused_bias_) {
        CombineChannels(Pairing::kAdd, set.at(y_), set.at(bias_), false, set.at(y_), y_shape_,
                        type(), stream());
      }
      return;
    }
    if (op_.input_gradient) data_->Run(Data(set), scratch, stream());
    weights_->Run(Weights(set), scratch, stream());
    if (op_.bias) {
      SumChannels(set.at(dy_), set.at(dbias_), y_shape_, type(), workspace.data(), stream());
    }
  }
  std::string Algorithm(TrainingPass pass) const override {
    const bool apart = pass == TrainingPass::kForward && op_.bias && !fused_bias_;
    return apart ? "cublasLt, bias apart" : "cublasLt";
  }

 private:
  ProductOperands Forward(const CudaSet& set) const {
    return {set.at(w_), set.at(x_), set.at(y_), op_.bias ? set.at(bias_) : nullptr};
  }
  ProductOperands Weights(const CudaSet& set) const {
    return {set.at(x_), set.at(dy_), set.at(dw_), nullptr};
  }
  ProductOperands Data(const CudaSet& set) const {
    return {set.at(w_), set.at(dy_), set.at(dx_), nullptr};
  }

  std::unique_ptr<LtProduct> Product(bool transpose_a, bool transpose_b, std::int64_t m,
                                     std::int64_t n, std::int64_t k, bool bias,
                                     const ProductOperands& operands) const {
    const ProductShape shape{
        BlasType(precision()), BlasCompute(precision()), transpose_a, transpose_b, m, n, k, bias};
    auto product = std::make_unique<LtProduct>(device().cublas_lt(), shape);
    constexpr int kSearched = 8;
    product->Choose(operands, device().product_workspace(),
                    device().options().search ? kSearched : 1, &device().timer(), stream());
    return product;
  }

  DenseOp op_;
  WantedPasses passes_;
  std::int64_t rows_;
  ImageShape y_shape_;
  bool fused_bias_ = false;
  std::unique_ptr<LtProduct> forward_;
  std::unique_ptr<LtProduct> weights_;
  std::unique_ptr<LtProduct> data_;
  std::size_t x_ = 0, w_ = 0, bias_ = 0, y_ = 0, dy_ = 0, dw_ = 0, dx_ = 0, dbias_ = 0;
};

// c = a b for each of many. Where there are more columns than terms, as in attention's scores, b is
// stored transposed, columns x depth: keys are stored as queries are. Elsewhere, as in its weighted
// sum of values, b is stored depth x columns.
class BatchedProductLayer : public CudaLayer {
 public:
  BatchedProductLayer(const BatchedProductOp& op, const CudaLayerRequest& request)
      : CudaLayer(request.device, request.precision),
        op_(op),
        count_(Elements(request.batch, op.count)),
        transposed_(op.depth < op.columns) {
    for (const std::int64_t length : {count_, op.rows, op.columns, op.depth}) {
      if (length > std::numeric_limits<int>::max()) {
        ThrowUnsupported("a length of " + std::to_string(length) + " is beyond what cuBLAS takes");
      }
    }
    const std::int64_t as = Elements(count_, op.rows, op.depth);
    const std::int64_t bs = Elements(count_, op.depth, op.columns);
    const std::int64_t cs = Elements(count_, op.rows, op.columns);
    a_ = AddNumbers(as);
    b_ = AddNumbers(bs);
    if (request.passes.forward) c_ = AddNumbers(cs);
    if (request.passes.backward) {
      dc_ = AddNumbers(cs);
      da_ = AddNumbers(as);
      db_ = AddNumbers(bs);
    }
  }

  // Column by column, a is depth x rows, c is columns x rows, and b is columns x depth, or depth x
  // columns where it is stored transposed.
  void Launch(TrainingPass pass, const CudaSet& set, const DeviceBuffer& /*workspace*/) override {
    const Matrix a{a_, op_.depth, op_.rows};
    const Matrix b =
        transposed_ ? Matrix{b_, op_.depth, op_.columns} : Matrix{b_, op_.columns, op_.depth};
    const auto is = CUBLAS_OP_N;
    const auto t = CUBLAS_OP_T;
    if (pass == TrainingPass::kForward) {
      Multiply(set, b, transposed_ ? t : is, a, is, {c_, op_.columns, op_.rows}, op_.depth);
      return;
    }
    const Matrix dc{dc_, op_.columns, op_.rows};
    Multiply(set, b, transposed_ ? is : t, dc, is, {da_, op_.depth, op_.rows}, op_.columns);
    if (transposed_) {
      Multiply(set, a, is, dc, t, {db_, op_.depth, op_.columns}, op_.rows);
    } else {
      Multiply(set, dc, is, a, t, {db_, op_.columns, op_.depth}, op_.rows);
    }
  }
  std::string Algorithm(TrainingPass /*pass*/) const override { return "cublas strided batched"; }

 private:
  struct Matrix {
    std::size_t tensor;
    std::int64_t rows;
    std::int64_t columns;
  };

  void Multiply(const CudaSet& set, const Matrix& a, cublasOperation_t op_a, const Matrix& b,
                cublasOperation_t op_b, const Matrix& c, std::int64_t terms) const {
    const cudaDataType_t stored = BlasType(precision());
    const auto length = [](std::int64_t value) { return static_cast<int>(value); };
    Check(cublasGemmStridedBatchedEx(device().cublas(), op_a, op_b, length(c.rows),
                                     length(c.columns), length(terms), &kOne, set.at(a.tensor),
                                     stored, length(a.rows), a.rows * a.columns, set.at(b.tensor),
                                     stored, length(b.rows), b.rows * b.columns, &kZero,
                                     set.at(c.tensor), stored, length(c.rows), c.rows * c.columns,
                                     length(count_), BlasCompute(precision()), CUBLAS_GEMM_DEFAULT),
          "batched product");
  }

  BatchedProductOp op_;
  std::int64_t count_;
  bool transposed_;
  std::size_t a_ = 0, b_ = 0, c_ = 0, dc_ = 0, da_ = 0, db_ = 0;
};

}  // namespace

std::unique_ptr<CudaLayer> MakeCudaLayer(const DenseOp& op, const CudaLayerRequest& request) {
  return std::make_unique<DenseLayer>(op, request);
}
std::unique_ptr<CudaLayer> MakeCudaLayer(const BatchedProductOp& op,
                                         const CudaLayerRequest& request) {
  return std::make_unique<BatchedProductLayer>(op, request);
}

}  // namespace stepcast
