#include "microbench/compute/onednn_operations.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <optional>

#include "microbench/compute/onednn_loops.h"

namespace stepcast {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;
using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

constexpr TrainingPass kForward = TrainingPass::kForward;
constexpr TrainingPass kBackward = TrainingPass::kBackward;
constexpr TensorRole kGiven = TensorRole::kGiven;
constexpr TensorRole kMade = TensorRole::kMade;
constexpr TensorRole kTemporary = TensorRole::kTemporary;

// Added to the variance, as torch.nn.BatchNorm2d and LayerNorm do; no time depends on it.
constexpr float kVarianceEpsilon = 1e-5F;

bool HasIsa(dnnl::cpu_isa wanted) {
  const auto bits = static_cast<unsigned>(wanted);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

dnnl::primitive_attr UserScratch() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

struct EltwiseChoice {
  algorithm kind;
  float alpha;
  bool keeps_output;  // the gradient is computed from the result, not from what came in
};

EltwiseChoice EltwiseOf(Function function) {
  switch (function) {
    case Function::kRelu:
      return {algorithm::eltwise_relu, 0, false};
    case Function::kRelu6:
      return {algorithm::eltwise_bounded_relu, 6, false};
    case Function::kLeakyRelu:
      return {algorithm::eltwise_relu, 0.01F, false};
    case Function::kHardtanh:
      return {algorithm::eltwise_clip, -1, false};
    case Function::kSigmoid:
      return {algorithm::eltwise_logistic_use_dst_for_bwd, 0, true};
    case Function::kSwish:
      return {algorithm::eltwise_swish, 1, false};
    case Function::kTanh:
      return {algorithm::eltwise_tanh_use_dst_for_bwd, 0, true};
    case Function::kGelu:
      return {algorithm::eltwise_gelu_erf, 0, false};
    case Function::kGeluTanh:
      return {algorithm::eltwise_gelu_tanh, 0, false};
    case Function::kSoftmax:
      break;
  }
  throw dnnl::error(dnnl_unimplemented, "not an elementwise function");
}

// Visits an operation and appends its primitives.
class Describer {
 public:
  Describer(int batch, Type type, const std::vector<TrainingPass>& passes, OneDnnPlan* plan)
      : batch_(batch), type_(type), plan_(plan), attr_(UserScratch()) {
    for (const TrainingPass pass : passes) {
      forward_ = forward_ || pass == kForward;
      backward_ = backward_ || pass == kBackward;
    }
  }

  void operator()(const std::monostate& /*none*/) const {}
  void operator()(const ConvolutionOp& op);
  void operator()(const DenseOp& op);
  void operator()(const BatchedProductOp& op);
  void operator()(const NormalizationOp& op);
  void operator()(const ActivationOp& op);
  void operator()(const PoolingOp& op);
  void operator()(const ElementwiseOp& op);
  void operator()(const EmbeddingOp& op);
  void operator()(const RecurrentOp& op);
  void operator()(const CopyOp& op);
  void operator()(const UpdateOp& op);
  void operator()(const AllocateOp&) {}  // is none of oneDNN's

 private:
  using Arguments = std::unordered_map<int, TensorId>;

  template <class Primitive>
  void Do(TrainingPass pass, const typename Primitive::primitive_desc& desc, Arguments arguments) {
    plan_->Name(pass, desc.impl_info_str());
    plan_->Call<Primitive>(pass, desc, std::move(arguments));
  }
  TensorId Given(const Desc& desc, TensorFill fill = TensorFill::kNoise) {
    return plan_->Tensor(desc, kGiven, fill);
  }
  TensorId Made(const Desc& desc) { return plan_->Tensor(desc, kMade); }
  // The gradient of an activation: such memory goes round from layer to layer.
  TensorId Gradient(const Desc& desc) { return plan_->Tensor(desc, kTemporary); }
  TensorId Like(TrainingPass pass, TensorId tensor, const Desc& desc) {
    return plan_->Reordered(pass, tensor, desc);
  }
  // A tensor as the primitive writes it, and the format in which the framework gets it.
  struct Result {
    TensorId written = 0;  // by the primitive
    Desc wanted;
  };
  Result MadeAs(const Desc& written, const Desc& wanted) {
    return {plan_->Tensor(written, written == wanted ? kMade : kTemporary), wanted};
  }
  void HandOn(TrainingPass pass, const Result& result) {
    plan_->Reordered(pass, result.written, result.wanted, kMade);
  }
  // The tensors of a recurrent layer, its weights as the framework has them.
  struct RecurrentDescs {
    Desc src;
    Desc dst;
    Desc layer;
    Desc iter;
    Desc bias;
  };
  template <class Forward, class Backward>
  void Recur(const RecurrentDescs& of, const typename Forward::primitive_desc& forward,
             const typename Backward::primitive_desc& backward);
  // Images between layers, as convolutions like them.
  static Tag ImageTag() {
    if (HasIsa(dnnl::cpu_isa::avx512_core)) return Tag::nChw16c;
    return HasIsa(dnnl::cpu_isa::sse41) ? Tag::nChw8c : Tag::nchw;
  }
  Desc Image(std::int64_t channels, std::int64_t height, std::int64_t width) const {
    return {{batch_, channels, height, width}, type_, ImageTag()};
  }
  Desc Flat(std::int64_t elements) const { return {{elements}, type_, Tag::a}; }
  static Desc Floats(std::int64_t elements) { return {{elements}, Type::f32, Tag::a}; }
  void Recurrence(const RecurrentOp& op);

  std::int64_t batch_;
  Type type_;
  OneDnnPlan* plan_;
  dnnl::primitive_attr attr_;
  bool forward_ = false;
  bool backward_ = false;
};

void Describer::operator()(const ConvolutionOp& op) {
  using dnnl::convolution_backward_data;
  using dnnl::convolution_backward_weights;
  using dnnl::convolution_forward;
  const Lengths2 out = op.output();
  const Dims src_dims = {batch_, op.channels, op.input.height, op.input.width};
  const Dims dst_dims = {batch_, op.filters, out.height, out.width};
  Dims weight_dims = {op.filters, op.channels, op.kernel.height, op.kernel.width};
  if (op.groups > 1) {
    weight_dims = {op.groups, op.filters / op.groups, op.channels / op.groups, op.kernel.height,
                   op.kernel.width};
  }
  const Dims strides = {op.stride.height, op.stride.width};
  const Dims dilation = {op.dilation.height - 1, op.dilation.width - 1};  // 0 is dense
  const Dims before = {op.padding.top, op.padding.left};
  const Dims after = {op.padding.bottom, op.padding.right};
  const Desc src_any(src_dims, type_, Tag::any);
  const Desc dst_any(dst_dims, type_, Tag::any);
  const Desc weights_any(weight_dims, type_, Tag::any);
  const Desc weights_plain(weight_dims, Type::f32, op.groups > 1 ? Tag::goihw : Tag::oihw);
  const Desc bias = op.bias ? Floats(op.filters) : Desc();
  const algorithm direct = algorithm::convolution_direct;

  const convolution_forward::primitive_desc forward(
      {prop_kind::forward_training, direct, src_any, weights_any, bias, dst_any, strides, dilation,
       before, after},
      attr_, plan_->engine());
  const Desc src_format = op.input_gradient ? forward.src_desc() : Desc(src_dims, type_, Tag::nchw);
  const TensorId src = Given(src_format);
  std::optional<TensorId> weights;
  if (forward_ || op.input_gradient) weights = Given(weights_plain);
  if (forward_) {
    Arguments arguments = {{DNNL_ARG_SRC, Like(kForward, src, forward.src_desc())},
                           {DNNL_ARG_WEIGHTS, Like(kForward, *weights, forward.weights_desc())},
                           {DNNL_ARG_DST, Made(forward.dst_desc())}};
    if (op.bias) arguments[DNNL_ARG_BIAS] = Given(bias);
    Do<convolution_forward>(kForward, forward, arguments);
  }
  if (!backward_) return;

  const TensorId diff_dst = Given(forward.dst_desc());
  if (op.input_gradient) {
    const convolution_backward_data::primitive_desc data(
        {direct, src_any, weights_any, dst_any, strides, dilation, before, after}, attr_,
        plan_->engine(), forward);
    const TensorId diff_src = Gradient(data.diff_src_desc());
    Do<convolution_backward_data>(
        kBackward, data,
        {{DNNL_ARG_DIFF_DST, Like(kBackward, diff_dst, data.diff_dst_desc())},
         {DNNL_ARG_WEIGHTS, Like(kBackward, *weights, data.weights_desc())},
         {DNNL_ARG_DIFF_SRC, diff_src}});
    Like(kBackward, diff_src, forward.src_desc());
  }
  const convolution_backward_weights::primitive_desc gradient(
      {direct, src_any, weights_any, bias, dst_any, strides, dilation, before, after}, attr_,
      plan_->engine(), forward);
  const Result diff_weights = MadeAs(gradient.diff_weights_desc(), weights_plain);
  Arguments arguments = {{DNNL_ARG_SRC, Like(kBackward, src, gradient.src_desc())},
                         {DNNL_ARG_DIFF_DST, Like(kBackward, diff_dst, gradient.diff_dst_desc())},
                         {DNNL_ARG_DIFF_WEIGHTS, diff_weights.written}};
  if (op.bias) arguments[DNNL_ARG_DIFF_BIAS] = Made(gradient.diff_bias_desc());
  Do<convolution_backward_weights>(kBackward, gradient, arguments);
  HandOn(kBackward, diff_weights);
}

void Describer::operator()(const DenseOp& op) {
  using dnnl::inner_product_backward_data;
  using dnnl::inner_product_backward_weights;
  using dnnl::inner_product_forward;
  const std::int64_t rows = batch_ * op.positions;
  const Desc src_plain({rows, op.inputs}, type_, Tag::ab);
  const Desc dst_plain({rows, op.units}, type_, Tag::ab);
  const Desc weights_any({op.units, op.inputs}, type_, Tag::any);
  const Desc weights_plain({op.units, op.inputs}, Type::f32, Tag::ab);
  const Desc bias = op.bias ? Floats(op.units) : Desc();

  const inner_product_forward::primitive_desc forward(
      {prop_kind::forward_training, src_plain, weights_any, bias, dst_plain}, attr_,
      plan_->engine());
  const TensorId src = Given(src_plain);
  std::optional<TensorId> weights;
  if (forward_ || op.input_gradient) weights = Given(weights_plain);
  if (forward_) {
    Arguments arguments = {{DNNL_ARG_SRC, src},
                           {DNNL_ARG_WEIGHTS, Like(kForward, *weights, forward.weights_desc())},
                           {DNNL_ARG_DST, Made(dst_plain)}};
    if (op.bias) arguments[DNNL_ARG_BIAS] = Given(bias);
    Do<inner_product_forward>(kForward, forward, arguments);
  }
  if (!backward_) return;

  const TensorId diff_dst = Given(dst_plain);
  if (op.input_gradient) {
    // With weights as they are: frameworks do not reorder them for this gradient.
    const Desc weights_here({op.units, op.inputs}, type_, Tag::ab);
    const inner_product_backward_data::primitive_desc data({src_plain, weights_here, dst_plain},
                                                           attr_, plan_->engine(), forward);
    Do<inner_product_backward_data>(kBackward, data,
                                    {{DNNL_ARG_DIFF_DST, diff_dst},
                                     {DNNL_ARG_WEIGHTS, Like(kBackward, *weights, weights_here)},
                                     {DNNL_ARG_DIFF_SRC, Gradient(src_plain)}});
  }
  const inner_product_backward_weights::primitive_desc gradient(
      {src_plain, weights_any, bias, dst_plain}, attr_, plan_->engine(), forward);
  const Result diff_weights = MadeAs(gradient.diff_weights_desc(), weights_plain);
  Arguments arguments = {{DNNL_ARG_SRC, src},
                         {DNNL_ARG_DIFF_DST, diff_dst},
                         {DNNL_ARG_DIFF_WEIGHTS, diff_weights.written}};
  if (op.bias) arguments[DNNL_ARG_DIFF_BIAS] = Made(gradient.diff_bias_desc());
  Do<inner_product_backward_weights>(kBackward, gradient, arguments);
  HandOn(kBackward, diff_weights);
}

void Describer::operator()(const BatchedProductOp& op) {
  const std::int64_t count = batch_ * op.count;
  const Desc left({count, op.rows, op.depth}, type_, Tag::abc);
  const Desc right({count, op.depth, op.columns}, type_, Tag::abc);
  const Desc product({count, op.rows, op.columns}, type_, Tag::abc);
  const Desc left_transposed({count, op.depth, op.rows}, type_, Tag::acb);
  const Desc right_transposed({count, op.columns, op.depth}, type_, Tag::acb);
  const auto multiply = [&](TrainingPass pass, TensorId a, TensorId b, TensorId result) {
    const dnnl::matmul::primitive_desc desc(
        dnnl::matmul::desc(plan_->Description(a), plan_->Description(b),
                           plan_->Description(result)),
        attr_, plan_->engine());
    Do<dnnl::matmul>(pass, desc,
                     {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, result}});
  };
  const TensorId a = Given(left);
  const TensorId b = Given(right);
  if (forward_) multiply(kForward, a, b, Made(product));
  if (!backward_) return;
  const TensorId diff = Given(product);
  multiply(kBackward, diff, plan_->View(b, right_transposed), Gradient(left));
  multiply(kBackward, plan_->View(a, left_transposed), diff, Gradient(right));
}

void Describer::operator()(const NormalizationOp& op) {
  const auto append = [&](const auto& forward, const auto& backward, const Desc& data,
                          auto forward_kind, auto backward_kind) {
    using Forward = typename decltype(forward_kind)::type;
    using Backward = typename decltype(backward_kind)::type;
    const Desc scale_shift({2, op.channels}, Type::f32, Tag::nc);
    const TensorId src = Given(data);
    const TensorId scale = Given(scale_shift);
    if (forward_) {
      Do<Forward>(kForward, forward,
                  {{DNNL_ARG_SRC, src},
                   {DNNL_ARG_SCALE_SHIFT, scale},
                   {DNNL_ARG_MEAN, Made(forward.mean_desc())},
                   {DNNL_ARG_VARIANCE, Made(forward.variance_desc())},
                   {DNNL_ARG_DST, Made(data)}});
    }
    if (backward_) {
      Do<Backward>(kBackward, backward,
                   {{DNNL_ARG_SRC, src},
                    {DNNL_ARG_SCALE_SHIFT, scale},
                    {DNNL_ARG_MEAN, Given(forward.mean_desc())},
                    {DNNL_ARG_VARIANCE, Given(forward.variance_desc(), TensorFill::kOne)},
                    {DNNL_ARG_DIFF_DST, Given(data)},
                    {DNNL_ARG_DIFF_SRC, Gradient(data)},
                    {DNNL_ARG_DIFF_SCALE_SHIFT, Made(scale_shift)}});
    }
  };
  const dnnl::normalization_flags flags = dnnl::normalization_flags::use_scale_shift;
  if (op.kind == NormalizationKind::kBatch) {
    using Forward = dnnl::batch_normalization_forward;
    using Backward = dnnl::batch_normalization_backward;
    const Desc data = Image(op.channels, op.input.height, op.input.width);
    const Forward::primitive_desc forward(
        {prop_kind::forward_training, data, kVarianceEpsilon, flags}, attr_, plan_->engine());
    const Backward::primitive_desc backward(
        {prop_kind::backward, data, data, kVarianceEpsilon, flags}, attr_, plan_->engine(),
        forward);
    append(forward, backward, data, std::common_type<Forward>(), std::common_type<Backward>());
  } else {
    using Forward = dnnl::layer_normalization_forward;
    using Backward = dnnl::layer_normalization_backward;
    const Desc data({batch_ * op.input.height * op.input.width, op.channels}, type_, Tag::ab);
    const Forward::primitive_desc forward(
        {prop_kind::forward_training, data, kVarianceEpsilon, flags}, attr_, plan_->engine());
    const Backward::primitive_desc backward(
        {prop_kind::backward, data, data, forward.mean_desc(), kVarianceEpsilon, flags}, attr_,
        plan_->engine(), forward);
    append(forward, backward, data, std::common_type<Forward>(), std::common_type<Backward>());
  }
}

void Describer::operator()(const ActivationOp& op) {
  if (op.function == Function::kSoftmax) {
    const Desc data({batch_ * op.rows, op.columns}, type_, Tag::ab);
    const dnnl::softmax_forward::primitive_desc forward({prop_kind::forward_training, data, 1},
                                                        attr_, plan_->engine());
    if (forward_) {
      Do<dnnl::softmax_forward>(kForward, forward,
                                {{DNNL_ARG_SRC, Given(data)}, {DNNL_ARG_DST, Made(data)}});
    }
    if (backward_) {
      const dnnl::softmax_backward::primitive_desc backward({data, data, 1}, attr_, plan_->engine(),
                                                            forward);
      Do<dnnl::softmax_backward>(kBackward, backward,
                                 {{DNNL_ARG_DST, Given(data)},
                                  {DNNL_ARG_DIFF_DST, Given(data)},
                                  {DNNL_ARG_DIFF_SRC, Gradient(data)}});
    }
    return;
  }
  const EltwiseChoice choice = EltwiseOf(op.function);
  // The upper end of a clip; no other function has a second number.
  const float beta = op.function == Function::kHardtanh ? 1 : 0;
  const Desc data = Flat(batch_ * op.rows * op.columns);
  const dnnl::eltwise_forward::primitive_desc forward(
      {prop_kind::forward_training, choice.kind, data, choice.alpha, beta}, attr_, plan_->engine());
  const TensorId kept = Given(data);
  if (forward_) {
    Do<dnnl::eltwise_forward>(kForward, forward,
                              {{DNNL_ARG_SRC, kept}, {DNNL_ARG_DST, Made(data)}});
  }
  if (backward_) {
    const dnnl::eltwise_backward::primitive_desc backward(
        {choice.kind, data, data, choice.alpha, beta}, attr_, plan_->engine(), forward);
    Do<dnnl::eltwise_backward>(kBackward, backward,
                               {{choice.keeps_output ? DNNL_ARG_DST : DNNL_ARG_SRC, kept},
                                {DNNL_ARG_DIFF_DST, Given(data)},
                                {DNNL_ARG_DIFF_SRC, Gradient(data)}});
  }
}

void Describer::operator()(const PoolingOp& op) {
  using dnnl::pooling_v2_backward;
  using dnnl::pooling_v2_forward;
  const Lengths2 out = op.output();
  const Desc src = Image(op.channels, op.input.height, op.input.width);
  const Desc dst = Image(op.channels, out.height, out.width);
  const Dims strides = {op.stride.height, op.stride.width};
  const Dims window = {op.window.height, op.window.width};
  const Dims dilation = {0, 0};
  const Dims before = {op.padding.top, op.padding.left};
  const Dims after = {op.padding.bottom, op.padding.right};
  const bool max = op.kind == PoolingKind::kMax;
  const algorithm kind = max ? algorithm::pooling_max : algorithm::pooling_avg_exclude_padding;
  const pooling_v2_forward::primitive_desc forward(
      {prop_kind::forward_training, kind, src, dst, strides, window, dilation, before, after},
      attr_, plan_->engine());
  if (forward_) {
    Arguments arguments = {{DNNL_ARG_SRC, Given(src)}, {DNNL_ARG_DST, Made(dst)}};
    if (max) arguments[DNNL_ARG_WORKSPACE] = Made(forward.workspace_desc());
    Do<pooling_v2_forward>(kForward, forward, arguments);
  }
  if (!backward_) return;
  const pooling_v2_backward::primitive_desc backward(
      {kind, src, dst, strides, window, dilation, before, after}, attr_, plan_->engine(), forward);
  const TensorId diff_dst = Given(dst);
  const TensorId diff_src = Gradient(src);
  Arguments arguments = {{DNNL_ARG_DIFF_DST, diff_dst}, {DNNL_ARG_DIFF_SRC, diff_src}};
  if (max) {
    // Which of a window was the largest, of random images: written by a forward pass that uses the
    // gradients' memory for its images.
    const TensorId places = Given(forward.workspace_desc(), TensorFill::kZero);
    arguments[DNNL_ARG_WORKSPACE] = places;
    plan_->Prime<pooling_v2_forward>(
        forward,
        {{DNNL_ARG_SRC, diff_src}, {DNNL_ARG_DST, diff_dst}, {DNNL_ARG_WORKSPACE, places}});
  }
  Do<pooling_v2_backward>(kBackward, backward, arguments);
}

void Describer::operator()(const ElementwiseOp& op) {
  const Desc data = Image(op.channels, op.positions, 1);
  const Desc second = op.broadcast ? Image(op.channels, 1, 1) : data;
  const auto add = [&](TrainingPass pass) {
    const dnnl::sum::primitive_desc desc(data, {1, 1}, {data, data}, plan_->engine(), attr_);
    Do<dnnl::sum>(pass, desc,
                  {{DNNL_ARG_MULTIPLE_SRC, Given(data)},
                   {DNNL_ARG_MULTIPLE_SRC + 1, Given(data)},
                   {DNNL_ARG_DST, pass == kForward ? Made(data) : Gradient(data)}});
  };
  const auto combine = [&](TrainingPass pass, algorithm kind, TensorId a, TensorId b,
                           TensorRole role) {
    const dnnl::binary::primitive_desc desc(
        dnnl::binary::desc(kind, plan_->Description(a), plan_->Description(b), data), attr_,
        plan_->engine());
    const TensorId result = plan_->Tensor(data, role);
    Do<dnnl::binary>(pass, desc,
                     {{DNNL_ARG_SRC_0, a}, {DNNL_ARG_SRC_1, b}, {DNNL_ARG_DST, result}});
    return result;
  };
  // Over the positions. A mean costs what a sum costs, and pooling is the primitive that has code
  // for every format.
  const auto sum_up = [&](TrainingPass pass, TensorId from) {
    const Dims all = {op.positions, 1};
    const Dims none = {0, 0};
    const dnnl::pooling_v2_forward::primitive_desc desc(
        {prop_kind::forward_training, algorithm::pooling_avg_exclude_padding, data, second, all,
         all, none, none, none},
        attr_, plan_->engine());
    Do<dnnl::pooling_v2_forward>(pass, desc,
                                 {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, Gradient(second)}});
  };

  if (op.kind == ElementwiseKind::kAdd) {
    if (forward_) {
      if (op.broadcast) {
        combine(kForward, algorithm::binary_add, Given(data), Given(second), kMade);
      } else {
        add(kForward);
      }
    }
    if (backward_) {
      if (op.broadcast) {
        sum_up(kBackward, Given(data));
      } else {
        add(kBackward);
      }
    }
    return;
  }
  const TensorId a = Given(data);
  const TensorId b = Given(second);
  const algorithm times = algorithm::binary_mul;
  if (forward_) combine(kForward, times, a, b, kMade);
  if (backward_) {
    const TensorId diff = Given(data);
    combine(kBackward, times, diff, b, kTemporary);
    const TensorId other = combine(kBackward, times, diff, a, kTemporary);
    if (op.broadcast) sum_up(kBackward, other);
  }
}

void Describer::operator()(const EmbeddingOp& op) {
  const std::int64_t tokens = batch_ * op.tokens;
  const std::int64_t rows = op.rows;
  const std::int64_t features = op.features;
  constexpr std::int64_t kIndexBytes = sizeof(std::int64_t);
  const TensorId index = Given(Desc({tokens * kIndexBytes}, Type::u8, Tag::a), TensorFill::kZero);
  const auto indices = [index](const TensorAddresses& at) {
    return reinterpret_cast<std::int64_t*>(at[index]);
  };
  const auto floats = [](const TensorAddresses& at, TensorId tensor) {
    return reinterpret_cast<float*>(at[tensor]);
  };
  plan_->PrimeLoop({index},
                   [=](const TensorAddresses& at) { FillIndices(indices(at), tokens, rows); });
  if (forward_) {
    const TensorId table = Given(Floats(rows * features));
    const TensorId out = Made(Floats(tokens * features));
    plan_->Loop(kForward, {index, table, out}, [=](const TensorAddresses& at) {
      GatherRows(floats(at, table), indices(at), floats(at, out), tokens, features);
    });
  }
  if (backward_) {
    const TensorId diff = Given(Floats(tokens * features));
    const TensorId gradient = Made(Floats(rows * features));
    plan_->Loop(kBackward, {index, diff, gradient}, [=](const TensorAddresses& at) {
      ScatterRows(floats(at, diff), indices(at), floats(at, gradient), tokens, features, rows);
    });
  }
}

template <class Forward, class Backward>
void Describer::Recur(const RecurrentDescs& of, const typename Forward::primitive_desc& forward,
                      const typename Backward::primitive_desc& backward) {
  const TensorId x = Given(of.src);
  const TensorId layer = Given(of.layer);
  const TensorId iter = Given(of.iter);
  const TensorId b = Given(of.bias);
  if (forward_) {
    Do<Forward>(kForward, forward,
                {{DNNL_ARG_SRC_LAYER, x},
                 {DNNL_ARG_WEIGHTS_LAYER, Like(kForward, layer, forward.weights_layer_desc())},
                 {DNNL_ARG_WEIGHTS_ITER, Like(kForward, iter, forward.weights_iter_desc())},
                 {DNNL_ARG_BIAS, b},
                 {DNNL_ARG_DST_LAYER, Made(of.dst)},
                 {DNNL_ARG_WORKSPACE, Made(forward.workspace_desc())}});
  }
  if (!backward_) return;
  const TensorId y = Given(of.dst);
  const TensorId kept = Given(forward.workspace_desc(), TensorFill::kZero);
  plan_->Prime<Forward>(
      forward, {{DNNL_ARG_SRC_LAYER, x},
                {DNNL_ARG_WEIGHTS_LAYER, plan_->Tensor(forward.weights_layer_desc(), kTemporary)},
                {DNNL_ARG_WEIGHTS_ITER, plan_->Tensor(forward.weights_iter_desc(), kTemporary)},
                {DNNL_ARG_BIAS, b},
                {DNNL_ARG_DST_LAYER, y},
                {DNNL_ARG_WORKSPACE, kept}});
  const Result diff_layer = MadeAs(backward.diff_weights_layer_desc(), of.layer);
  const Result diff_iter = MadeAs(backward.diff_weights_iter_desc(), of.iter);
  const TensorId diff_bias = Made(of.bias);
  // oneDNN adds to the gradients of the weights.
  for (const TensorId gradient : {diff_layer.written, diff_iter.written, diff_bias}) {
    const std::size_t bytes = plan_->Description(gradient).get_size();
    plan_->Loop(kBackward, {gradient},
                [gradient, bytes](const TensorAddresses& at) { ZeroBytes(at[gradient], bytes); });
  }
  Do<Backward>(kBackward, backward,
               {{DNNL_ARG_SRC_LAYER, x},
                {DNNL_ARG_WEIGHTS_LAYER, Like(kBackward, layer, backward.weights_layer_desc())},
                {DNNL_ARG_WEIGHTS_ITER, Like(kBackward, iter, backward.weights_iter_desc())},
                {DNNL_ARG_BIAS, b},
                {DNNL_ARG_DST_LAYER, y},
                {DNNL_ARG_WORKSPACE, kept},
                {DNNL_ARG_DIFF_DST_LAYER, Given(of.dst)},
                {DNNL_ARG_DIFF_SRC_LAYER, Gradient(of.src)},
                {DNNL_ARG_DIFF_WEIGHTS_LAYER, diff_layer.written},
                {DNNL_ARG_DIFF_WEIGHTS_ITER, diff_iter.written},
                {DNNL_ARG_DIFF_BIAS, diff_bias}});
  HandOn(kBackward, diff_layer);
  HandOn(kBackward, diff_iter);
}

void Describer::operator()(const RecurrentOp& op) {
  const bool lstm = op.cell == RecurrentCell::kLstm;
  const std::int64_t gates = lstm ? 4 : 3;
  // The variant of the GRU that frameworks and cuDNN have keeps two biases of one gate apart.
  const std::int64_t biases = 4;
  const std::int64_t sides = op.directions;
  const dnnl::rnn_direction direction = sides == 2 ? dnnl::rnn_direction::bidirectional_concat
                                                   : dnnl::rnn_direction::unidirectional_left2right;
  const Desc src({op.positions, batch_, op.inputs}, type_, Tag::tnc);
  const Desc dst({op.positions, batch_, sides * op.hidden}, type_, Tag::tnc);
  const Dims layer_dims = {1, sides, op.inputs, gates, op.hidden};
  const Dims iter_dims = {1, sides, op.hidden, gates, op.hidden};
  const Desc layer_any(layer_dims, type_, Tag::any);
  const Desc iter_any(iter_dims, type_, Tag::any);
  const Desc layer_plain(layer_dims, Type::f32, Tag::ldigo);
  const Desc iter_plain(iter_dims, Type::f32, Tag::ldigo);
  const Desc bias({1, sides, biases, op.hidden}, Type::f32, Tag::ldgo);
  const Desc none;

  const RecurrentDescs descs{src, dst, layer_plain, iter_plain, bias};
  if (lstm) {
    using Forward = dnnl::lstm_forward;
    using Backward = dnnl::lstm_backward;
    const Forward::primitive_desc forward({prop_kind::forward_training, direction, src, none, none,
                                           layer_any, iter_any, bias, dst, none, none},
                                          attr_, plan_->engine());
    const Backward::primitive_desc backward({prop_kind::backward,
                                             direction,
                                             src,
                                             none,
                                             none,
                                             layer_any,
                                             iter_any,
                                             bias,
                                             dst,
                                             none,
                                             none,
                                             src,
                                             none,
                                             none,
                                             layer_any,
                                             iter_any,
                                             bias,
                                             dst,
                                             none,
                                             none},
                                            attr_, plan_->engine(), forward);
    Recur<Forward, Backward>(descs, forward, backward);
  } else {
    using Forward = dnnl::lbr_gru_forward;
    using Backward = dnnl::lbr_gru_backward;
    const Forward::primitive_desc forward(
        {prop_kind::forward_training, direction, src, none, layer_any, iter_any, bias, dst, none},
        attr_, plan_->engine());
    const Backward::primitive_desc backward(
        {prop_kind::backward, direction, src, none, layer_any, iter_any, bias, dst, none, src, none,
         layer_any, iter_any, bias, dst, none},
        attr_, plan_->engine(), forward);
    Recur<Forward, Backward>(descs, forward, backward);
  }
}

void Describer::operator()(const CopyOp& op) {
  const Desc data = Flat(batch_ * op.elements);
  const std::size_t bytes = data.get_size();
  const auto append = [&](TrainingPass pass) {
    const TensorId from = Given(data);
    const TensorId to = pass == kForward ? Made(data) : Gradient(data);
    plan_->Loop(pass, {from, to},
                [=](const TensorAddresses& at) { CopyBytes(at[from], at[to], bytes); });
  };
  if (forward_) append(kForward);
  if (backward_) append(kBackward);
}

void Describer::operator()(const UpdateOp& op) {
  const std::int64_t n = op.parameters;
  const Desc data = Floats(n);
  const auto floats = [](const TensorAddresses& at, TensorId tensor) {
    return reinterpret_cast<float*>(at[tensor]);
  };
  const TensorId p = Given(data);
  const TensorId g = Given(data);
  switch (op.optimizer) {
    case Optimizer::kSgd:
      plan_->Loop(TrainingPass::kUpdate, {p, g},
                  [=](const TensorAddresses& at) { SgdUpdate(floats(at, p), floats(at, g), n); });
      break;
    case Optimizer::kMomentum: {
      const TensorId buffer = Given(data);
      plan_->Loop(TrainingPass::kUpdate, {p, g, buffer}, [=](const TensorAddresses& at) {
        MomentumUpdate(floats(at, p), floats(at, g), floats(at, buffer), n);
      });
      break;
    }
    case Optimizer::kAdam: {
      const TensorId m = Given(data);
      const TensorId v = Given(data, TensorFill::kOne);
      const TensorId root = plan_->Tensor(data, kTemporary);
      const TensorId quotient = plan_->Tensor(data, kTemporary);
      plan_->Loop(TrainingPass::kUpdate, {p, g, m, v, root, quotient},
                  [=](const TensorAddresses& at) {
                    AdamUpdate(floats(at, p), floats(at, g), floats(at, m), floats(at, v),
                               floats(at, root), floats(at, quotient), n);
                  });
      break;
    }
  }
}

// Lengths that must be positive, and a sentence where something else is wrong.
struct Lengths {
  std::vector<std::int64_t> positive;
  std::vector<std::int64_t> not_negative;
  std::string wrong;
};

void Append(Lengths* lengths, const Lengths2& more) {
  lengths->positive.push_back(more.height);
  lengths->positive.push_back(more.width);
}
void Append(Lengths* lengths, const Zeros2& more) {
  for (const std::int64_t n : {more.top, more.left, more.bottom, more.right}) {
    lengths->not_negative.push_back(n);
  }
}

struct LengthsOf {
  Lengths operator()(const std::monostate& /*none*/) const {
    return {{}, {}, "the layer does not state its operation"};
  }
  Lengths operator()(const ConvolutionOp& op) const {
    Lengths lengths = {{op.channels, op.filters, op.groups}, {}, {}};
    Append(&lengths, op.input);
    Append(&lengths, op.kernel);
    Append(&lengths, op.stride);
    Append(&lengths, op.dilation);
    Append(&lengths, op.padding);
    if (op.groups > 0 && (op.channels % op.groups != 0 || op.filters % op.groups != 0)) {
      lengths.wrong = "channels and filters are no multiples of the groups";
    }
    return lengths;
  }
  Lengths operator()(const DenseOp& op) const {
    return {{op.positions, op.inputs, op.units}, {}, {}};
  }
  Lengths operator()(const BatchedProductOp& op) const {
    return {{op.count, op.rows, op.columns, op.depth}, {}, {}};
  }
  Lengths operator()(const NormalizationOp& op) const {
    Lengths lengths = {{op.channels}, {}, {}};
    Append(&lengths, op.input);
    return lengths;
  }
  Lengths operator()(const ActivationOp& op) const { return {{op.rows, op.columns}, {}, {}}; }
  Lengths operator()(const PoolingOp& op) const {
    Lengths lengths = {{op.channels}, {}, {}};
    Append(&lengths, op.input);
    Append(&lengths, op.window);
    Append(&lengths, op.stride);
    Append(&lengths, op.padding);
    return lengths;
  }
  Lengths operator()(const ElementwiseOp& op) const {
    return {{op.channels, op.positions}, {}, {}};
  }
  Lengths operator()(const EmbeddingOp& op) const {
    return {{op.rows, op.features, op.tokens}, {}, {}};
  }
  Lengths operator()(const RecurrentOp& op) const {
    Lengths lengths = {{op.positions, op.inputs, op.hidden, op.directions}, {}, {}};
    if (op.directions > 2) lengths.wrong = "a recurrent layer has one or two directions";
    return lengths;
  }
  Lengths operator()(const CopyOp& op) const { return {{op.elements}, {}, {}}; }
  Lengths operator()(const UpdateOp& op) const { return {{op.parameters}, {}, {}}; }
  Lengths operator()(const AllocateOp& op) const { return {{op.elements}, {}, {}}; }
};

double Product(std::initializer_list<std::int64_t> lengths) {
  double product = 1;
  for (const std::int64_t n : lengths) product *= static_cast<double>(n);
  return product;
}

// Elements for one sample and those shared by a batch, of each tensor that both passes have.
struct Elements {
  std::vector<double> of_sample;
  std::vector<double> shared;  // in fp32
  bool by_library = true;
};

struct ElementsOf {
  Elements operator()(const std::monostate& /*none*/) const { return {}; }
  Elements operator()(const ConvolutionOp& op) const {
    const Lengths2 out = op.output();
    return {{Product({op.channels, op.input.height, op.input.width}),
             Product({op.filters, out.height, out.width})},
            {Product({op.filters, op.channels / op.groups, op.kernel.height, op.kernel.width})}};
  }
  Elements operator()(const DenseOp& op) const {
    return {{Product({op.positions, op.inputs}), Product({op.positions, op.units})},
            {Product({op.inputs, op.units})}};
  }
  Elements operator()(const BatchedProductOp& op) const {
    return {{Product({op.count, op.rows, op.depth}), Product({op.count, op.depth, op.columns}),
             Product({op.count, op.rows, op.columns})},
            {}};
  }
  Elements operator()(const NormalizationOp& op) const {
    const double data = Product({op.channels, op.input.height, op.input.width});
    return {{data, data}, {}};
  }
  Elements operator()(const ActivationOp& op) const {
    const double data = Product({op.rows, op.columns});
    return {{data, data}, {}};
  }
  Elements operator()(const PoolingOp& op) const {
    const Lengths2 out = op.output();
    return {{Product({op.channels, op.input.height, op.input.width}),
             Product({op.channels, out.height, out.width})},
            {}};
  }
  Elements operator()(const ElementwiseOp& op) const {
    const double data = Product({op.channels, op.positions});
    return {{data, data}, {}};
  }
  Elements operator()(const EmbeddingOp& op) const {
    return {{Product({op.tokens, op.features})}, {Product({op.rows, op.features})}, false};
  }
  Elements operator()(const RecurrentOp& op) const {
    return {{Product({op.positions, op.inputs}), Product({op.positions, op.hidden, op.directions})},
            {4 * Product({op.directions, op.inputs + op.hidden, op.hidden})}};
  }
  Elements operator()(const CopyOp& op) const {
    const double data = Product({op.elements});
    return {{data, data}, {}, false};
  }
  Elements operator()(const AllocateOp& op) const { return {{}, {Product({op.elements})}, false}; }
  Elements operator()(const UpdateOp& op) const {
    const double data = Product({op.parameters});
    return {{}, {data, data}, false};
  }
};

bool IsPositive(const Lengths2& lengths) { return lengths.height > 0 && lengths.width > 0; }

}  // namespace

std::string WhyUnsupported(const Operation& operation, int batch, Precision precision,
                           const std::vector<TrainingPass>& passes) {
  if (precision == Precision::kTf32) return "CPUs have no tf32";
  if (precision == Precision::kFp16) return "oneDNN 2.6 has no fp16 on CPUs";
  if (precision == Precision::kFp8) return "oneDNN 2.6 has no fp8 on CPUs";
  if (precision == Precision::kBf16 && !HasIsa(dnnl::cpu_isa::avx512_core)) {
    return "oneDNN computes in bf16 only with AVX-512, which this CPU has not";
  }
  const Lengths lengths = std::visit(LengthsOf(), operation);
  if (!lengths.wrong.empty()) return lengths.wrong;
  const bool positive = std::all_of(lengths.positive.begin(), lengths.positive.end(),
                                    [](std::int64_t n) { return n > 0; });
  const bool not_negative = std::all_of(lengths.not_negative.begin(), lengths.not_negative.end(),
                                        [](std::int64_t n) { return n >= 0; });
  if (!positive || !not_negative || batch <= 0) return "a length is not positive";
  if (const auto* convolution = std::get_if<ConvolutionOp>(&operation)) {
    if (!IsPositive(convolution->output())) return "the kernel is larger than the padded image";
  }
  if (const auto* pooling = std::get_if<PoolingOp>(&operation)) {
    if (!IsPositive(pooling->output())) return "the window is larger than the padded image";
  }
  const bool update = std::holds_alternative<UpdateOp>(operation);
  for (const TrainingPass pass : passes) {
    if (update != (pass == TrainingPass::kUpdate)) {
      return update ? "an update has neither a forward nor a backward pass"
                    : "only an optimizer has an update pass";
    }
  }
  return {};
}

PlainSize PlainSizeOf(const Operation& operation, int batch, Precision precision) {
  const Elements elements = std::visit(ElementsOf(), operation);
  PlainSize size;
  for (const double n : elements.of_sample) {
    size.bytes += n * batch * (precision == Precision::kBf16 ? 2 : 4);
    if (elements.by_library) size.largest_tensor = std::max(size.largest_tensor, n * batch);
  }
  for (const double n : elements.shared) {
    size.bytes += n * 4;
    if (elements.by_library) size.largest_tensor = std::max(size.largest_tensor, n);
  }
  return size;
}

void DescribeOperation(const Operation& operation, int batch, Precision precision,
                       const std::vector<TrainingPass>& passes, OneDnnPlan* plan) {
  const Type type = precision == Precision::kBf16 ? Type::bf16 : Type::f32;
  std::visit(Describer(batch, type, passes, plan), operation);
}

}  // namespace stepcast
