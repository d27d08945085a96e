// Recurrent layers by cuDNN.
#include <array>
#include <vector>

#include "microbench/compute/cuda_cudnn.h"

namespace stepcast {
namespace {

// One layer over sequences of equal length, position by position in memory, without initial states:
// zeros are then used. All gates' weights and both bias vectors are one block of cuDNN's.
class RecurrentLayer : public CudaLayer {
 public:
  RecurrentLayer(const RecurrentOp& op, const CudaLayerRequest& request)
      : CudaLayer(request.device, request.precision), passes_(request.passes) {
    if (op.directions != 1 && op.directions != 2) {
      ThrowUnsupported("a recurrent layer has one direction or two");
    }
    cudnnHandle_t cudnn = device().cudnn();
    const int batch = CudnnLength(request.batch);
    const int positions = CudnnLength(op.positions);
    const std::int64_t outputs_each = Elements(op.directions, op.hidden);
    const std::int64_t inputs = Elements(request.batch, op.positions, op.inputs);
    const std::int64_t outputs = Elements(request.batch, op.positions, outputs_each);
    CheckCudnnElements(inputs);
    CheckCudnnElements(outputs);
    CheckCudnnElements(Elements(op.directions, request.batch, op.hidden));
    // Without dropout no states are needed, and none are made.
    Check(cudnnSetDropoutDescriptor(dropout_.get(), cudnn, 0, nullptr, 0, 0), "cuDNN dropout");
    // The vectors are stored as the precision says and summed up in 32 bits.
    Check(cudnnSetRNNDescriptor_v8(
              rnn_.get(), CUDNN_RNN_ALGO_STANDARD,
              op.cell == RecurrentCell::kLstm ? CUDNN_LSTM : CUDNN_GRU, CUDNN_RNN_DOUBLE_BIAS,
              op.directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT,
              CudnnType(precision()), CUDNN_DATA_FLOAT, CudnnMath(precision()),
              CudnnLength(op.inputs), CudnnLength(op.hidden), CudnnLength(op.hidden), kLayers,
              dropout_.get(), CUDNN_RNN_PADDED_IO_DISABLED),
          "cuDNN recurrent layer");
    const std::vector<int> lengths(static_cast<std::size_t>(batch), positions);
    const auto describe = [&](const RnnDataDescriptor& descriptor, std::int64_t vector) {
      Check(cudnnSetRNNDataDescriptor(descriptor.get(), CudnnType(precision()),
                                      CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, positions, batch,
                                      CudnnLength(vector), lengths.data(), nullptr),
            "cuDNN sequences");
    };
    describe(x_desc_, op.inputs);
    describe(y_desc_, outputs_each);
    const std::array<int, 3> states = {kLayers * static_cast<int>(op.directions), batch,
                                       CudnnLength(op.hidden)};
    const std::array<int, 3> strides = {states[1] * states[2], states[2], 1};
    Check(cudnnSetTensorNdDescriptor(state_desc_.get(), CudnnType(precision()), 3, states.data(),
                                     strides.data()),
          "cuDNN states");
    Check(cudnnGetRNNWeightSpaceSize(cudnn, rnn_.get(), &weight_bytes_), "recurrent layer");
    std::size_t work_bytes = 0;
    Check(cudnnGetRNNTempSpaceSizes(cudnn, rnn_.get(), CUDNN_FWD_MODE_TRAINING, x_desc_.get(),
                                    &work_bytes, &reserve_bytes_),
          "recurrent layer");
    NeedWorkspace(work_bytes);

    // Older versions of cuDNN read the lengths from the device too.
    lengths_ = DeviceBuffer(lengths.size() * sizeof(int));
    Check(cudaMemcpyAsync(lengths_.data(), lengths.data(), lengths_.bytes(), cudaMemcpyHostToDevice,
                          stream()),
          "lengths of sequences");
    device().Wait();  // before the vector goes

    const auto weights = static_cast<std::int64_t>(weight_bytes_ / ElementBytes(type()));
    x_ = AddNumbers(inputs);
    w_ = AddNumbers(weights);
    y_ = AddNumbers(outputs);
    reserve_ = AddZeros(reserve_bytes_);
    if (passes_.backward) {
      dy_ = AddNumbers(outputs);
      dx_ = AddNumbers(inputs);
      dw_ = AddNumbers(weights);
    }
  }
  bool backward_needs_forward() const override { return true; }
  // cuDNN overwrites the reserve space.
  bool backward_spends_forward() const override { return true; }

  void Launch(TrainingPass pass, const CudaSet& set, const DeviceBuffer& workspace) override {
    cudnnHandle_t cudnn = device().cudnn();
    const auto* lengths = static_cast<const std::int32_t*>(lengths_.data());
    if (pass == TrainingPass::kForward) {
      Check(cudnnRNNForward(cudnn, rnn_.get(), CUDNN_FWD_MODE_TRAINING, lengths, x_desc_.get(),
                            set.at(x_), y_desc_.get(), set.at(y_), state_desc_.get(), nullptr,
                            nullptr, state_desc_.get(), nullptr, nullptr, weight_bytes_, set.at(w_),
                            workspace.bytes(), workspace.data(), reserve_bytes_, set.at(reserve_)),
            "recurrent layer");
      return;
    }
    Check(cudnnRNNBackwardData_v8(cudnn, rnn_.get(), lengths, y_desc_.get(), set.at(y_),
                                  set.at(dy_), x_desc_.get(), set.at(dx_), state_desc_.get(),
                                  nullptr, nullptr, nullptr, state_desc_.get(), nullptr, nullptr,
                                  nullptr, weight_bytes_, set.at(w_), workspace.bytes(),
                                  workspace.data(), reserve_bytes_, set.at(reserve_)),
          "data gradient of a recurrent layer");
    // Gradients of weights are added to what is there: frameworks set it to zero before.
    Check(cudaMemsetAsync(set.at(dw_), 0, weight_bytes_, stream()), "gradient");
    Check(cudnnRNNBackwardWeights_v8(
              cudnn, rnn_.get(), CUDNN_WGRAD_MODE_ADD, lengths, x_desc_.get(), set.at(x_),
              state_desc_.get(), nullptr, y_desc_.get(), set.at(y_), weight_bytes_, set.at(dw_),
              workspace.bytes(), workspace.data(), reserve_bytes_, set.at(reserve_)),
          "weight gradient of a recurrent layer");
  }
  std::string Algorithm(TrainingPass /*pass*/) const override { return "cudnn standard"; }

 private:
  static constexpr int kLayers = 1;

  WantedPasses passes_;
  DropoutDescriptor dropout_;
  RnnDescriptor rnn_;
  RnnDataDescriptor x_desc_;
  RnnDataDescriptor y_desc_;
  TensorDescriptor state_desc_;
  DeviceBuffer lengths_;
  std::size_t weight_bytes_ = 0;
  std::size_t reserve_bytes_ = 0;
  std::size_t x_ = 0, w_ = 0, y_ = 0, reserve_ = 0, dy_ = 0, dx_ = 0, dw_ = 0;
};

}  // namespace

std::unique_ptr<CudaLayer> MakeCudaLayer(const RecurrentOp& op, const CudaLayerRequest& request) {
  return std::make_unique<RecurrentLayer>(op, request);
}

}  // namespace stepcast
