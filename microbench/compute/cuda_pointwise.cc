// Operations that go element by element or row by row: activations, sums and products of tensors,
// look-ups, copies and optimizers. They run by our kernels, as frameworks have theirs.
#include <limits>

#include "microbench/compute/cuda_layer.h"

namespace stepcast {
namespace {

Curve CurveOf(Function function) {
  switch (function) {
    case Function::kRelu:
      return Curve::kRelu;
    case Function::kRelu6:
      return Curve::kRelu6;
    case Function::kLeakyRelu:
      return Curve::kLeakyRelu;
    case Function::kHardtanh:
      return Curve::kHardtanh;
    case Function::kSigmoid:
      return Curve::kSigmoid;
    case Function::kSwish:
      return Curve::kSwish;
    case Function::kTanh:
      return Curve::kTanh;
    case Function::kGelu:
      return Curve::kGelu;
    case Function::kGeluTanh:
      return Curve::kGeluTanh;
    case Function::kSoftmax:
      break;
  }
  ThrowUnsupported("the activation function is unknown");
}

// Elements of tensors that are no parameters: what their length times 4 bytes may be at most is far
// above any memory, and checked so that kernels may count on it.
std::int64_t Checked(std::int64_t elements) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 64;
  if (elements > kMost) ThrowUnsupported("a tensor has more elements than any memory");
  return elements;
}

class ActivationLayer : public CudaLayer {
 public:
  ActivationLayer(const ActivationOp& op, const CudaLayerRequest& request)
      : CudaLayer(request.device, request.precision),
        softmax_(op.function == Function::kSoftmax),
        curve_(softmax_ ? Curve::kRelu : CurveOf(op.function)),
        rows_(Elements(request.batch, op.rows)),
        columns_(op.columns),
        elements_(Checked(Elements(rows_, op.columns))) {
    if (request.passes.forward) {
      x_ = AddNumbers(elements_);
      y_ = AddNumbers(elements_);
    }
    if (request.passes.backward) {
      saved_ = request.passes.forward ? (KeepsOutput() ? y_ : x_) : AddNumbers(elements_);
      dy_ = AddNumbers(elements_);
      dx_ = AddNumbers(elements_);
    }
  }

  void Launch(TrainingPass pass, const CudaSet& set, const DeviceBuffer& /*workspace*/) override {
    if (pass == TrainingPass::kForward) {
      if (softmax_) {
        SoftmaxForward(set.at(x_), set.at(y_), rows_, columns_, type(), stream());
      } else {
        CurveForward(curve_, set.at(x_), set.at(y_), elements_, type(), stream());
      }
    } else if (softmax_) {
      SoftmaxBackward(set.at(saved_), set.at(dy_), set.at(dx_), rows_, columns_, type(), stream());
    } else {
      CurveBackward(curve_, set.at(saved_), set.at(dy_), set.at(dx_), elements_, type(), stream());
    }
  }
  std::string Algorithm(TrainingPass /*pass*/) const override { return "own"; }

 private:
  bool KeepsOutput() const {
    return softmax_ || curve_ == Curve::kRelu || curve_ == Curve::kSigmoid ||
           curve_ == Curve::kTanh;
  }

  bool softmax_;
  Curve curve_;
  std::int64_t rows_;
  std::int64_t columns_;
  std::int64_t elements_;
  std::size_t x_ = 0, y_ = 0, saved_ = 0, dy_ = 0, dx_ = 0;
};

// Backward: of a sum of two like tensors, the gradients of its two users are added, which is the
// forward pass again; where one has a value for each channel, its gradient is summed over the
// positions, and the other's is the sum's own. Of a product, each factor's gradient is a product
// with the other; that of a value for each channel is then summed, by a second kernel.
class ElementwiseLayer : public CudaLayer {
 public:
  ElementwiseLayer(const ElementwiseOp& op, const CudaLayerRequest& request)
      : CudaLayer(request.device, request.precision),
        op_(op),
        pairing_(op.kind == ElementwiseKind::kAdd ? Pairing::kAdd : Pairing::kMultiply),
        shape_{request.batch, op.channels, op.positions, request.device.options().channels_last},
        elements_(Checked(Elements(request.batch, op.channels, op.positions))) {
    const std::int64_t others = op.broadcast ? Elements(request.batch, op.channels) : elements_;
    const bool product = op.kind == ElementwiseKind::kMultiply;
    const bool again = !product && !op.broadcast;  // backward is forward
    if (request.passes.forward || product || again) {
      a_ = AddNumbers(elements_);
      b_ = AddNumbers(others);
    }
    if (request.passes.forward || again) c_ = AddNumbers(elements_);
    if (!request.passes.backward || again) return;
    dc_ = AddNumbers(elements_);
    db_ = AddNumbers(others);
    if (product) da_ = AddNumbers(elements_);
    if (op.broadcast) {
      if (product) products_ = AddNumbers(elements_);
      NeedWorkspace(SumScratchBytes(shape_));
    }
  }

  void Launch(TrainingPass pass, const CudaSet& set, const DeviceBuffer& workspace) override {
    const auto apply = [&](const void* whole, const void* other, void* result) {
      if (op_.broadcast) {
        CombineChannels(pairing_, whole, other, true, result, shape_, type(), stream());
      } else {
        Combine(pairing_, whole, other, result, elements_, type(), stream());
      }
    };
    if (pass == TrainingPass::kBackward && op_.broadcast && pairing_ == Pairing::kAdd) {
      SumPositions(set.at(dc_), set.at(db_), shape_, type(), workspace.data(), stream());
      return;
    }
    if (pass == TrainingPass::kForward || pairing_ == Pairing::kAdd) {
      apply(set.at(a_), set.at(b_), set.at(c_));
      return;
    }
    apply(set.at(dc_), set.at(b_), set.at(da_));
    void* products = op_.broadcast ? set.at(products_) : set.at(db_);
    Combine(Pairing::kMultiply, set.at(dc_), set.at(a_), products, elements_, type(), stream());
    if (op_.broadcast) {
      SumPositions(products, set.at(db_), shape_, type(), workspace.data(), stream());
    }
  }
  std::string Algorithm(TrainingPass /*pass*/) const override { return "own"; }

 private:
  ElementwiseOp op_;
  Pairing pairing_;
  ImageShape shape_;
  std::int64_t elements_;
  std::size_t a_ = 0, b_ = 0, c_ = 0, dc_ = 0, da_ = 0, db_ = 0, products_ = 0;
};

// In 32 bits at every precision, as mixed precision leaves tables. The gradient is dense: it is set
// to zero before the rows of the batch are added to it.
class EmbeddingLayer : public CudaLayer {
 public:
  EmbeddingLayer(const EmbeddingOp& op, const CudaLayerRequest& request)
      : CudaLayer(request.device, request.precision),
        tokens_(Elements(request.batch, op.tokens)),
        features_(op.features) {
    const std::int64_t table = Checked(Elements(op.rows, op.features));
    const std::int64_t outputs = Checked(Elements(tokens_, op.features));
    table_bytes_ = static_cast<std::size_t>(table) * sizeof(float);
    if (op.rows < 1) ThrowUnsupported("a table without rows");
    indices_ = AddIndices(tokens_, op.rows);
    if (request.passes.forward) {
      table_ = AddFloats(table);
      y_ = AddFloats(outputs);
    }
    if (request.passes.backward) {
      dy_ = AddFloats(outputs);
      dtable_ = AddFloats(table);
    }
  }

  void Launch(TrainingPass pass, const CudaSet& set, const DeviceBuffer& /*workspace*/) override {
    const auto* indices = set.at<std::int64_t>(indices_);
    if (pass == TrainingPass::kForward) {
      Gather(set.at<float>(table_), indices, set.at<float>(y_), tokens_, features_, stream());
      return;
    }
    Check(cudaMemsetAsync(set.at(dtable_), 0, table_bytes_, stream()), "gradient");
    ScatterAdd(set.at<float>(dy_), indices, set.at<float>(dtable_), tokens_, features_, stream());
  }
  std::string Algorithm(TrainingPass pass) const override {
    return pass == TrainingPass::kForward ? "own" : "own atomic adds";
  }

 private:
  std::int64_t tokens_;
  std::int64_t features_;
  std::size_t table_bytes_ = 0;
  std::size_t indices_ = 0, table_ = 0, y_ = 0, dy_ = 0, dtable_ = 0;
};

// Backward, gradients are copied as data are forward.
class CopyLayer : public CudaLayer {
 public:
  CopyLayer(const CopyOp& op, const CudaLayerRequest& request)
      : CudaLayer(request.device, request.precision),
        elements_(Checked(Elements(request.batch, op.elements))) {
    from_ = AddNumbers(elements_);
    to_ = AddNumbers(elements_);
  }
  void Launch(TrainingPass /*pass*/, const CudaSet& set,
              const DeviceBuffer& /*workspace*/) override {
    CopyWords(set.at(from_), set.at(to_),
              static_cast<std::size_t>(elements_) * ElementBytes(type()), kVariant, stream());
  }
  std::string Algorithm(TrainingPass /*pass*/) const override { return "own"; }

 private:
  static constexpr int kVariant = 0;  // one word for each thread, as frameworks copy

  std::int64_t elements_;
  std::size_t from_ = 0, to_ = 0;
};

// As PyTorch's optimizers by default (foreach, without weight decay): each operation on all
// parameters is a kernel of its own. Adam's mean is decayed and then added to, which makes 20
// touches of memory for a parameter. Parameters, gradients and states are in 32 bits at every
// precision.
class UpdateLayer : public CudaLayer {
 public:
  UpdateLayer(const UpdateOp& op, const CudaLayerRequest& request)
      : CudaLayer(request.device, request.precision),
        optimizer_(op.optimizer),
        count_(Checked(op.parameters)) {
    parameters_ = AddFloats(count_);
    gradient_ = AddFloats(count_);
    if (optimizer_ != Optimizer::kSgd) mean_ = AddFloats(count_);
    if (optimizer_ == Optimizer::kAdam) {
      square_ = AddFloats(count_, 0, 1);
      root_ = AddFloats(count_, 0, 1);
    }
  }

  void Launch(TrainingPass /*pass*/, const CudaSet& set,
              const DeviceBuffer& /*workspace*/) override {
    // Small enough for runs without number to leave all values finite.
    constexpr float kRate = 1e-6F;
    auto* p = set.at<float>(parameters_);
    const auto* g = set.at<float>(gradient_);
    switch (optimizer_) {
      case Optimizer::kSgd:
        Axpy(-kRate, g, p, count_, stream());
        return;
      case Optimizer::kMomentum: {
        constexpr float kMomentum = 0.9F;
        auto* m = set.at<float>(mean_);
        Scale(kMomentum, m, count_, stream());
        Axpy(1, g, m, count_, stream());
        Axpy(-kRate, m, p, count_, stream());
        return;
      }
      case Optimizer::kAdam: {
        constexpr float kBeta1 = 0.9F;
        constexpr float kBeta2 = 0.999F;
        constexpr float kEpsilon = 1e-8F;
        auto* m = set.at<float>(mean_);
        auto* v = set.at<float>(square_);
        auto* root = set.at<float>(root_);
        Scale(kBeta1, m, count_, stream());
        Axpy(1 - kBeta1, g, m, count_, stream());
        Scale(kBeta2, v, count_, stream());
        AddSquare(1 - kBeta2, g, v, count_, stream());
        SquareRoot(v, root, count_, stream());
        Scale(1, root, count_, stream());  // the correction of the first steps' bias
        Shift(kEpsilon, root, count_, stream());
        AddQuotient(-kRate, m, root, p, count_, stream());
        return;
      }
    }
  }
  std::string Algorithm(TrainingPass /*pass*/) const override {
    return "own, a kernel for each operation";
  }

 private:
  Optimizer optimizer_;
  std::int64_t count_;
  std::size_t parameters_ = 0, gradient_ = 0, mean_ = 0, square_ = 0, root_ = 0;
};

}  // namespace

std::unique_ptr<CudaLayer> MakeCudaLayer(const ActivationOp& op, const CudaLayerRequest& request) {
  return std::make_unique<ActivationLayer>(op, request);
}
std::unique_ptr<CudaLayer> MakeCudaLayer(const ElementwiseOp& op, const CudaLayerRequest& request) {
  return std::make_unique<ElementwiseLayer>(op, request);
}
std::unique_ptr<CudaLayer> MakeCudaLayer(const EmbeddingOp& op, const CudaLayerRequest& request) {
  return std::make_unique<EmbeddingLayer>(op, request);
}
std::unique_ptr<CudaLayer> MakeCudaLayer(const CopyOp& op, const CudaLayerRequest& request) {
  return std::make_unique<CopyLayer>(op, request);
}
std::unique_ptr<CudaLayer> MakeCudaLayer(const UpdateOp& op, const CudaLayerRequest& request) {
  return std::make_unique<UpdateLayer>(op, request);
}

}  // namespace stepcast
