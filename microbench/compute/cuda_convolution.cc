// Convolutions and pooling by cuDNN.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "microbench/compute/cuda_cudnn.h"

namespace stepcast {
namespace {

// An image with its margins, as the kernels that pad and crop it see it.
Frame FrameOf(const Lengths2& image, const Zeros2& zeros) {
  return {image.height,
          image.width,
          zeros.top,
          zeros.left,
          zeros.top + image.height + zeros.bottom,
          zeros.left + image.width + zeros.right};
}

// The first successful result, which is the fastest by measurement or expectation, that needs no
// more scratch memory than there is. In fp32, results for other than full multiplications are left
// out where there are such.
template <class Results>
auto FirstThatFits(const Results& results, Precision precision, std::size_t limit,
                   const char* what) {
  const bool full =
      precision == Precision::kFp32 &&
      std::any_of(results.begin(), results.end(), [](const auto& result) {
        return result.status == CUDNN_STATUS_SUCCESS && result.mathType == CUDNN_FMA_MATH;
      });
  std::size_t least = 0;
  for (const auto& result : results) {
    if (result.status != CUDNN_STATUS_SUCCESS) continue;
    if (full && result.mathType != CUDNN_FMA_MATH) continue;
    if (result.memory <= limit) return result;
    least = least == 0 ? result.memory : std::min(least, result.memory);
  }
  if (least > 0) throw CudaError(CudaTrouble::kOutOfMemory, NeedsText(least, limit));
  throw CudaError(CudaTrouble::kUnsupported,
                  std::string(what) + ": cuDNN has no algorithm for this convolution");
}

// The scratch memory that a search is given: what the most demanding algorithm wants that fits.
template <class Results>
std::size_t SearchBytes(const Results& results, std::size_t limit) {
  std::size_t most = 0;
  for (const auto& result : results) {
    if (result.status == CUDNN_STATUS_SUCCESS && result.memory <= limit) {
      most = std::max(most, result.memory);
    }
  }
  return most;
}

const char* NameOf(cudnnConvolutionFwdAlgo_t algorithm) {
  static constexpr std::array<const char*, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> kNames = {
      "implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling",
      "winograd",      "winograd_nonfused"};
  const auto i = static_cast<std::size_t>(algorithm);
  return i < kNames.size() ? kNames[i] : "unknown";
}
const char* NameOf(cudnnConvolutionBwdFilterAlgo_t algorithm) {
  static constexpr std::array<const char*, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT> kNames = {
      "algo_0", "algo_1", "fft", "algo_3", "winograd", "winograd_nonfused", "fft_tiling"};
  const auto i = static_cast<std::size_t>(algorithm);
  return i < kNames.size() ? kNames[i] : "unknown";
}
const char* NameOf(cudnnConvolutionBwdDataAlgo_t algorithm) {
  static constexpr std::array<const char*, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT> kNames = {
      "algo_0", "algo_1", "fft", "fft_tiling", "winograd", "winograd_nonfused"};
  const auto i = static_cast<std::size_t>(algorithm);
  return i < kNames.size() ? kNames[i] : "unknown";
}

// Padding that is not symmetric is made symmetric where the output stays as large; elsewhere the
// image is copied into a frame of zeros before, as frameworks do, and its gradient out of one
// after. The bias and its gradient are passes of their own, by our kernels, as PyTorch and
// TensorFlow have them.
class ConvolutionLayer : public CudaLayer {
 public:
  ConvolutionLayer(const ConvolutionOp& op, const CudaLayerRequest& request)
      : CudaLayer(request.device, request.precision),
        op_(op),
        passes_(request.passes),
        last_(request.device.options().channels_last),
        plan_(PlanPadding(op.input, op.padding, Extent(op), op.stride)),
        frame_(FrameOf(op.input, op.padding)),
        x_shape_{request.batch, op.channels, op.input.height * op.input.width, last_},
        y_shape_{request.batch, op.filters, op.output().height * op.output().width, last_} {
    const Lengths2 output = op.output();
    if (output.height < 1 || output.width < 1) ThrowUnsupported("the window exceeds the image");
    if (op.groups < 1 || op.channels % op.groups != 0 || op.filters % op.groups != 0) {
      ThrowUnsupported("channels and filters are not multiples of the groups");
    }
    const std::int64_t batch = request.batch;
    SetImages(x_desc_, batch, op.channels, plan_.input, precision(), last_);
    SetImages(y_desc_, batch, op.filters, output, precision(), last_);
    const std::int64_t weights =
        Elements(op.filters, op.channels / op.groups, op.kernel.height, op.kernel.width);
    CheckCudnnElements(weights);
    Check(cudnnSetFilter4dDescriptor(w_desc_.get(), CudnnType(precision()), CudnnFormat(last_),
                                     CudnnLength(op.filters), CudnnLength(op.channels / op.groups),
                                     CudnnLength(op.kernel.height), CudnnLength(op.kernel.width)),
          "cuDNN filter");
    for (const ConvolutionDescriptor* c : {&forward_, &filter_, &data_}) Describe(*c);

    const std::int64_t inputs = Elements(batch, op.channels, op.input.height, op.input.width);
    const std::int64_t outputs = Elements(batch, op.filters, output.height, output.width);
    const std::int64_t framed =
        plan_.copied ? Elements(batch, op.channels, plan_.input.height, plan_.input.width) : 0;
    // Backward alone reads the copy only.
    if (passes_.forward || !plan_.copied) x_ = AddNumbers(inputs);
    framed_x_ = plan_.copied ? AddNumbers(framed) : x_;
    w_ = AddNumbers(weights);
    if (passes_.forward) {
      y_ = AddNumbers(outputs);
      if (op.bias) bias_ = AddNumbers(op.filters);
    }
    if (passes_.backward) {
      dy_ = AddNumbers(outputs);
      dw_ = AddNumbers(weights);
      if (op.bias) {
        dbias_ = AddNumbers(op.filters);
        NeedWorkspace(SumScratchBytes(y_shape_));
      }
      if (op.input_gradient) {
        dx_ = AddNumbers(inputs);
        framed_dx_ = plan_.copied ? AddNumbers(framed) : dx_;
      }
    }
  }

  void Choose(const CudaSet& set, std::size_t limit) override {
    if (passes_.forward) ChooseForward(set, limit);
    if (passes_.backward) {
      ChooseFilter(set, limit);
      if (op_.input_gradient) ChooseData(set, limit);
    }
  }

  void Launch(TrainingPass pass, const CudaSet& set, const DeviceBuffer& workspace) override {
    if (pass == TrainingPass::kForward) {
      if (plan_.copied)
        PadImages(set.at(x_), set.at(framed_x_), frame_, x_shape_, type(), stream());
      Check(cudnnConvolutionForward(device().cudnn(), &kOne, x_desc_.get(), set.at(framed_x_),
                                    w_desc_.get(), set.at(w_), forward_.get(), forward_algorithm_,
                                    workspace.data(), workspace.bytes(), &kZero, y_desc_.get(),
                                    set.at(y_)),
            "convolution");
      if (op_.bias) {
        CombineChannels(Pairing::kAdd, set.at(y_), set.at(bias_), false, set.at(y_), y_shape_,
                        type(), stream());
      }
      return;
    }
    if (op_.input_gradient) {
      Check(cudnnConvolutionBackwardData(device().cudnn(), &kOne, w_desc_.get(), set.at(w_),
                                         y_desc_.get(), set.at(dy_), data_.get(), data_algorithm_,
                                         workspace.data(), workspace.bytes(), &kZero, x_desc_.get(),
                                         set.at(framed_dx_)),
            "data gradient of a convolution");
      if (plan_.copied) {
        CropImages(set.at(framed_dx_), set.at(dx_), frame_, x_shape_, type(), stream());
      }
    }
    Check(cudnnConvolutionBackwardFilter(device().cudnn(), &kOne, x_desc_.get(), set.at(framed_x_),
                                         y_desc_.get(), set.at(dy_), filter_.get(),
                                         filter_algorithm_, workspace.data(), workspace.bytes(),
                                         &kZero, w_desc_.get(), set.at(dw_)),
          "filter gradient of a convolution");
    if (op_.bias) {
      SumChannels(set.at(dy_), set.at(dbias_), y_shape_, type(), workspace.data(), stream());
    }
  }

  std::string Algorithm(TrainingPass pass) const override {
    if (pass == TrainingPass::kForward) return std::string("cudnn ") + NameOf(forward_algorithm_);
    std::string text = std::string("cudnn filter ") + NameOf(filter_algorithm_);
    if (op_.input_gradient) text += std::string(", data ") + NameOf(data_algorithm_);
    return text;
  }

 private:
  static Lengths2 Extent(const ConvolutionOp& op) {
    return {op.dilation.height * (op.kernel.height - 1) + 1,
            op.dilation.width * (op.kernel.width - 1) + 1};
  }

  void Describe(const ConvolutionDescriptor& convolution) const {
    Check(cudnnSetConvolution2dDescriptor(
              convolution.get(), CudnnLength(plan_.height), CudnnLength(plan_.width),
              CudnnLength(op_.stride.height), CudnnLength(op_.stride.width),
              CudnnLength(op_.dilation.height), CudnnLength(op_.dilation.width),
              CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
          "cuDNN convolution");
    Check(cudnnSetConvolutionGroupCount(convolution.get(), CudnnLength(op_.groups)),
          "cuDNN convolution");
    Check(cudnnSetConvolutionMathType(convolution.get(), CudnnMath(precision())),
          "cuDNN convolution");
  }

  // Heuristics tell with each algorithm whether it uses tensor units. In fp32 they are not asked.
  void TakeMath(const ConvolutionDescriptor& convolution, cudnnMathType_t math) const {
    if (precision() == Precision::kFp32) return;
    Check(cudnnSetConvolutionMathType(convolution.get(), math), "cuDNN convolution");
  }

  // The algorithm for a pass, by cuDNN's functions for it: `most` tells of how many results there
  // may be, `expect` asks the heuristics, `search` measures. Of `from`, `with` and `to` each is a
  // descriptor and an address.
  template <class Result, class Expect, class Search, class From, class With, class To>
  auto Choose(cudnnStatus_t (*most)(cudnnHandle_t, int*), const Expect& expect,
              const Search& search, std::size_t algorithms,
              const ConvolutionDescriptor& convolution, const From& from, const With& with,
              const To& to, std::size_t limit, const char* what) {
    cudnnHandle_t cudnn = device().cudnn();
    int count = 0;
    Check(most(cudnn, &count), "convolution algorithms");
    std::vector<Result> results(static_cast<std::size_t>(count));
    Check(expect(cudnn, from.first, with.first, convolution.get(), to.first, count, &count,
                 results.data()),
          "convolution algorithms");
    results.resize(static_cast<std::size_t>(count));
    if (device().options().search) {
      const DeviceBuffer scratch(SearchBytes(results, limit));
      results.resize(algorithms * kMathTypes);
      Check(search(cudnn, from.first, from.second, with.first, with.second, convolution.get(),
                   to.first, to.second, static_cast<int>(results.size()), &count, results.data(),
                   scratch.data(), scratch.bytes()),
            "search for a convolution algorithm");
      results.resize(static_cast<std::size_t>(count));
    }
    const Result choice = FirstThatFits(results, precision(), limit, what);
    TakeMath(convolution, choice.mathType);
    NeedWorkspace(choice.memory);
    return choice.algo;
  }

  void ChooseForward(const CudaSet& set, std::size_t limit) {
    forward_algorithm_ = Choose<cudnnConvolutionFwdAlgoPerf_t>(
        cudnnGetConvolutionForwardAlgorithmMaxCount, cudnnGetConvolutionForwardAlgorithm_v7,
        cudnnFindConvolutionForwardAlgorithmEx, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, forward_,
        std::pair(x_desc_.get(), set.at(framed_x_)), std::pair(w_desc_.get(), set.at(w_)),
        std::pair(y_desc_.get(), set.at(y_)), limit, "convolution");
  }

  void ChooseFilter(const CudaSet& set, std::size_t limit) {
    filter_algorithm_ = Choose<cudnnConvolutionBwdFilterAlgoPerf_t>(
        cudnnGetConvolutionBackwardFilterAlgorithmMaxCount,
        cudnnGetConvolutionBackwardFilterAlgorithm_v7,
        cudnnFindConvolutionBackwardFilterAlgorithmEx, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT,
        filter_, std::pair(x_desc_.get(), set.at(framed_x_)), std::pair(y_desc_.get(), set.at(dy_)),
        std::pair(w_desc_.get(), set.at(dw_)), limit, "filter gradient");
  }

  void ChooseData(const CudaSet& set, std::size_t limit) {
    data_algorithm_ = Choose<cudnnConvolutionBwdDataAlgoPerf_t>(
        cudnnGetConvolutionBackwardDataAlgorithmMaxCount,
        cudnnGetConvolutionBackwardDataAlgorithm_v7, cudnnFindConvolutionBackwardDataAlgorithmEx,
        CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, data_, std::pair(w_desc_.get(), set.at(w_)),
        std::pair(y_desc_.get(), set.at(dy_)), std::pair(x_desc_.get(), set.at(framed_dx_)), limit,
        "data gradient");
  }

  // A search tries each algorithm with and without tensor units.
  static constexpr std::size_t kMathTypes = 2;

  ConvolutionOp op_;
  WantedPasses passes_;
  bool last_;
  PaddingPlan plan_;
  Frame frame_;
  ImageShape x_shape_;
  ImageShape y_shape_;
  TensorDescriptor x_desc_;
  TensorDescriptor y_desc_;
  FilterDescriptor w_desc_;
  ConvolutionDescriptor forward_;
  ConvolutionDescriptor filter_;
  ConvolutionDescriptor data_;
  cudnnConvolutionFwdAlgo_t forward_algorithm_ = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  cudnnConvolutionBwdFilterAlgo_t filter_algorithm_ = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0;
  cudnnConvolutionBwdDataAlgo_t data_algorithm_ = CUDNN_CONVOLUTION_BWD_DATA_ALGO_0;
  std::size_t x_ = 0, framed_x_ = 0, w_ = 0, bias_ = 0, y_ = 0;
  std::size_t dy_ = 0, dw_ = 0, dbias_ = 0, dx_ = 0, framed_dx_ = 0;
};

// The average over a whole image is a sum over its positions and, backward, one value for all of
// them: frameworks do it by their reductions, not by cuDNN's windows.
class GlobalAverageLayer : public CudaLayer {
 public:
  GlobalAverageLayer(const PoolingOp& op, const CudaLayerRequest& request)
      : CudaLayer(request.device, request.precision),
        shape_{request.batch, op.channels, op.input.height * op.input.width,
               request.device.options().channels_last} {
    const std::int64_t inputs = Elements(shape_.batch, shape_.channels, shape_.positions);
    const std::int64_t outputs = Elements(shape_.batch, shape_.channels);
    if (request.passes.forward) {
      x_ = AddNumbers(inputs);
      y_ = AddNumbers(outputs);
      NeedWorkspace(SumScratchBytes(shape_));
    }
    if (request.passes.backward) {
      dy_ = AddNumbers(outputs);
      dx_ = AddNumbers(inputs);
    }
  }
  void Launch(TrainingPass pass, const CudaSet& set, const DeviceBuffer& workspace) override {
    if (pass == TrainingPass::kForward) {
      SumPositions(set.at(x_), set.at(y_), shape_, type(), workspace.data(), stream());
    } else {
      SpreadChannels(set.at(dy_), set.at(dx_), shape_, type(), stream());
    }
  }
  std::string Algorithm(TrainingPass /*pass*/) const override { return "own reduction"; }

 private:
  ImageShape shape_;
  std::size_t x_ = 0, y_ = 0, dy_ = 0, dx_ = 0;
};

// Zeros that cannot be made symmetric are copied around the image, also where a framework would
// leave windows incomplete instead. Averages count zeros, as PyTorch's do by default.
class PoolingLayer : public CudaLayer {
 public:
  PoolingLayer(const PoolingOp& op, const CudaLayerRequest& request)
      : CudaLayer(request.device, request.precision),
        last_(request.device.options().channels_last),
        plan_(PlanPadding(op.input, op.padding, op.window, op.stride)),
        frame_(FrameOf(op.input, op.padding)),
        x_shape_{request.batch, op.channels, op.input.height * op.input.width, last_} {
    const Lengths2 output = op.output();
    if (output.height < 1 || output.width < 1) ThrowUnsupported("the window exceeds the image");
    const std::int64_t batch = request.batch;
    SetImages(x_desc_, batch, op.channels, plan_.input, precision(), last_);
    SetImages(y_desc_, batch, op.channels, output, precision(), last_);
    Check(cudnnSetPooling2dDescriptor(
              pooling_.get(),
              op.kind == PoolingKind::kMax ? CUDNN_POOLING_MAX
                                           : CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
              CUDNN_NOT_PROPAGATE_NAN, CudnnLength(op.window.height), CudnnLength(op.window.width),
              CudnnLength(plan_.height), CudnnLength(plan_.width), CudnnLength(op.stride.height),
              CudnnLength(op.stride.width)),
          "cuDNN pooling");
    const std::int64_t inputs = Elements(batch, op.channels, op.input.height, op.input.width);
    const std::int64_t framed = Elements(batch, op.channels, plan_.input.height, plan_.input.width);
    const std::int64_t outputs = Elements(batch, op.channels, output.height, output.width);
    x_ = AddNumbers(inputs);
    framed_x_ = plan_.copied ? AddNumbers(framed) : x_;
    y_ = AddNumbers(outputs);
    if (request.passes.backward) {
      dy_ = AddNumbers(outputs);
      dx_ = AddNumbers(inputs);
      framed_dx_ = plan_.copied ? AddNumbers(framed) : dx_;
    }
  }
  // The maximum's gradient goes where input and output agree.
  bool backward_needs_forward() const override { return true; }

  void Launch(TrainingPass pass, const CudaSet& set, const DeviceBuffer& /*workspace*/) override {
    if (pass == TrainingPass::kForward) {
      if (plan_.copied)
        PadImages(set.at(x_), set.at(framed_x_), frame_, x_shape_, type(), stream());
      Check(cudnnPoolingForward(device().cudnn(), pooling_.get(), &kOne, x_desc_.get(),
                                set.at(framed_x_), &kZero, y_desc_.get(), set.at(y_)),
            "pooling");
      return;
    }
    Check(cudnnPoolingBackward(device().cudnn(), pooling_.get(), &kOne, y_desc_.get(), set.at(y_),
                               y_desc_.get(), set.at(dy_), x_desc_.get(), set.at(framed_x_), &kZero,
                               x_desc_.get(), set.at(framed_dx_)),
          "gradient of pooling");
    if (plan_.copied) {
      CropImages(set.at(framed_dx_), set.at(dx_), frame_, x_shape_, type(), stream());
    }
  }
  std::string Algorithm(TrainingPass /*pass*/) const override { return "cudnn"; }

 private:
  bool last_;
  PaddingPlan plan_;
  Frame frame_;
  ImageShape x_shape_;
  TensorDescriptor x_desc_;
  TensorDescriptor y_desc_;
  PoolingDescriptor pooling_;
  std::size_t x_ = 0, framed_x_ = 0, y_ = 0, dy_ = 0, dx_ = 0, framed_dx_ = 0;
};

}  // namespace

std::unique_ptr<CudaLayer> MakeCudaLayer(const ConvolutionOp& op, const CudaLayerRequest& request) {
  return std::make_unique<ConvolutionLayer>(op, request);
}

std::unique_ptr<CudaLayer> MakeCudaLayer(const PoolingOp& op, const CudaLayerRequest& request) {
  const bool whole = op.window == op.input && op.padding == Zeros2();
  if (whole && op.kind == PoolingKind::kAverage) {
    return std::make_unique<GlobalAverageLayer>(op, request);
  }
  return std::make_unique<PoolingLayer>(op, request);
}

}  // namespace stepcast
