// Batch normalization by cuDNN, layer normalization by our kernels.
#include "microbench/compute/cuda_cudnn.h"

namespace stepcast {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr double kMomentum = 0.1;  // PyTorch's defaults; no time depends on them

// Parameters, statistics and their gradients are in 32 bits at every precision. With the channels
// last, cuDNN's persistent kernels are asked for, as PyTorch does; where the channels are first it
// does not, for the sake of accuracy.
class BatchNormLayer : public CudaLayer {
 public:
  BatchNormLayer(const NormalizationOp& op, const CudaLayerRequest& request)
      : CudaLayer(request.device, request.precision),
        passes_(request.passes),
        mode_(request.device.options().channels_last ? CUDNN_BATCHNORM_SPATIAL_PERSISTENT
                                                     : CUDNN_BATCHNORM_SPATIAL) {
    const std::int64_t elements =
        Elements(request.batch, op.channels, op.input.height, op.input.width);
    SetImages(x_desc_, request.batch, op.channels, op.input, precision(),
              request.device.options().channels_last);
    Check(cudnnDeriveBNTensorDescriptor(values_desc_.get(), x_desc_.get(), mode_),
          "cuDNN batch normalization");
    cudnnHandle_t cudnn = device().cudnn();
    std::size_t bytes = 0;
    Check(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
              cudnn, mode_, kOps, x_desc_.get(), nullptr, x_desc_.get(), values_desc_.get(),
              nullptr, &bytes),
          "batch normalization");
    NeedWorkspace(bytes);
    Check(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnn, mode_, kOps, nullptr,
                                                               x_desc_.get(), &reserve_bytes_),
          "batch normalization");
    x_ = AddNumbers(elements);
    y_ = AddNumbers(elements);
    gamma_ = AddFloats(op.channels);
    beta_ = AddFloats(op.channels);
    running_mean_ = AddFloats(op.channels);
    running_variance_ = AddFloats(op.channels, 0, 1);
    mean_ = AddFloats(op.channels);
    rstd_ = AddFloats(op.channels, 0, 1);
    reserve_ = AddZeros(reserve_bytes_);
    if (!passes_.backward) return;
    Check(cudnnGetBatchNormalizationBackwardExWorkspaceSize(
              cudnn, mode_, kOps, x_desc_.get(), nullptr, x_desc_.get(), nullptr, x_desc_.get(),
              values_desc_.get(), nullptr, &bytes),
          "batch normalization");
    NeedWorkspace(bytes);
    dy_ = AddNumbers(elements);
    dx_ = AddNumbers(elements);
    dgamma_ = AddFloats(op.channels);
    dbeta_ = AddFloats(op.channels);
  }
  bool backward_needs_forward() const override { return true; }

  void Launch(TrainingPass pass, const CudaSet& set, const DeviceBuffer& workspace) override {
    void* reserve = reserve_bytes_ > 0 ? set.at(reserve_) : nullptr;
    if (pass == TrainingPass::kForward) {
      Check(
          cudnnBatchNormalizationForwardTrainingEx(
              device().cudnn(), mode_, kOps, &kOne, &kZero, x_desc_.get(), set.at(x_), nullptr,
              nullptr, x_desc_.get(), set.at(y_), values_desc_.get(), set.at(gamma_), set.at(beta_),
              kMomentum, set.at(running_mean_), set.at(running_variance_), kEpsilon, set.at(mean_),
              set.at(rstd_), nullptr, workspace.data(), workspace.bytes(), reserve, reserve_bytes_),
          "batch normalization");
      return;
    }
    Check(cudnnBatchNormalizationBackwardEx(
              device().cudnn(), mode_, kOps, &kOne, &kZero, &kOne, &kZero, x_desc_.get(),
              set.at(x_), nullptr, nullptr, x_desc_.get(), set.at(dy_), nullptr, nullptr,
              x_desc_.get(), set.at(dx_), values_desc_.get(), set.at(gamma_), nullptr,
              set.at(dgamma_), set.at(dbeta_), kEpsilon, set.at(mean_), set.at(rstd_), nullptr,
              workspace.data(), workspace.bytes(), reserve, reserve_bytes_),
          "gradient of batch normalization");
  }
  std::string Algorithm(TrainingPass /*pass*/) const override {
    return mode_ == CUDNN_BATCHNORM_SPATIAL ? "cudnn spatial" : "cudnn spatial_persistent";
  }

 private:
  static constexpr cudnnBatchNormOps_t kOps = CUDNN_BATCHNORM_OPS_BN;

  WantedPasses passes_;
  cudnnBatchNormMode_t mode_;
  TensorDescriptor x_desc_;
  TensorDescriptor values_desc_;
  std::size_t reserve_bytes_ = 0;
  std::size_t x_ = 0, y_ = 0, gamma_ = 0, beta_ = 0, running_mean_ = 0, running_variance_ = 0;
  std::size_t mean_ = 0, rstd_ = 0, reserve_ = 0, dy_ = 0, dx_ = 0, dgamma_ = 0, dbeta_ = 0;
};

// The channels of a position lie together, whatever the layout of images: networks that normalize
// so bring them there.
class LayerNormLayer : public CudaLayer {
 public:
  LayerNormLayer(const NormalizationOp& op, const CudaLayerRequest& request)
      : CudaLayer(request.device, request.precision),
        rows_(Elements(request.batch, op.input.height, op.input.width)),
        columns_(op.channels) {
    const std::int64_t elements = Elements(rows_, columns_);
    x_ = AddNumbers(elements);
    gamma_ = AddFloats(columns_);
    mean_ = AddFloats(rows_);
    rstd_ = AddFloats(rows_, 0, 1);
    if (request.passes.forward) {
      beta_ = AddFloats(columns_);
      y_ = AddNumbers(elements);
    }
    if (request.passes.backward) {
      dy_ = AddNumbers(elements);
      dx_ = AddNumbers(elements);
      dgamma_ = AddFloats(columns_);
      dbeta_ = AddFloats(columns_);
      NeedWorkspace(SumScratchBytes({1, columns_, rows_, true}));
    }
  }

  void Launch(TrainingPass pass, const CudaSet& set, const DeviceBuffer& workspace) override {
    LayerNormTensors t;
    t.x = set.at(x_);
    t.gamma = set.at<float>(gamma_);
    t.mean = set.at<float>(mean_);
    t.rstd = set.at<float>(rstd_);
    if (pass == TrainingPass::kForward) {
      t.beta = set.at<float>(beta_);
      t.y = set.at(y_);
      LayerNormForward(t, rows_, columns_, type(), stream());
      return;
    }
    t.dy = set.at(dy_);
    t.dx = set.at(dx_);
    t.dgamma = set.at<float>(dgamma_);
    t.dbeta = set.at<float>(dbeta_);
    t.scratch = workspace.data();
    LayerNormBackward(t, rows_, columns_, type(), stream());
  }
  std::string Algorithm(TrainingPass /*pass*/) const override { return "own"; }

 private:
  std::int64_t rows_;
  std::int64_t columns_;
  std::size_t x_ = 0, gamma_ = 0, beta_ = 0, y_ = 0, mean_ = 0, rstd_ = 0;
  std::size_t dy_ = 0, dx_ = 0, dgamma_ = 0, dbeta_ = 0;
};

}  // namespace

std::unique_ptr<CudaLayer> MakeCudaLayer(const NormalizationOp& op,
                                         const CudaLayerRequest& request) {
  if (op.kind == NormalizationKind::kBatch) return std::make_unique<BatchNormLayer>(op, request);
  return std::make_unique<LayerNormLayer>(op, request);
}

}  // namespace stepcast
