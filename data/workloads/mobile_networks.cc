// Howard et al.: MobileNets (arXiv 1704.04861); Sandler et al.: MobileNetV2 (arXiv 1801.04381);
// Tan, Le: EfficientNet (arXiv 1905.11946). All as in Keras applications.
#include <algorithm>
#include <string>

#include "data/workloads/families.h"
#include "data/workloads/network_builder.h"

namespace stepcast {
namespace {

using std::to_string;

// An inverted residual block (MobileNetV2) with optional squeeze and excitation (EfficientNet).
struct InvertedResidual {
  std::int64_t expansion;
  std::int64_t filters;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t squeeze_divisor;  // the squeezed width is the block's input width / this; 0: none
  Function activation;
};

void Append(NetworkBuilder& net, const std::string& block, const InvertedResidual& b) {
  const Shape input = net.shape();
  if (b.expansion != 1) {
    net.Conv2d(block + "expand_conv", {.filters = b.expansion * input.channels, .bias = false});
    net.BatchNorm(block + "expand_bn");
    net.Activation(block + "expand_activation", b.activation);
  }
  net.DepthwiseConv2d(block + "dwconv", {.kernel = b.kernel, .stride = b.stride, .bias = false});
  net.BatchNorm(block + "bn");
  net.Activation(block + "activation", b.activation);
  if (b.squeeze_divisor > 0) {
    const Shape expanded = net.shape();
    const std::int64_t squeezed = std::max<std::int64_t>(1, input.channels / b.squeeze_divisor);
    net.GlobalAveragePool(block + "se_squeeze");
    net.Conv2d(block + "se_reduce", {.filters = squeezed});
    net.Activation(block + "se_reduce_activation", b.activation);
    net.Conv2d(block + "se_expand", {.filters = expanded.channels});
    net.Activation(block + "se_expand_sigmoid", Function::kSigmoid);
    net.Multiply(block + "se_excite", expanded);
  }
  net.Conv2d(block + "project_conv", {.filters = b.filters, .bias = false});
  net.BatchNorm(block + "project_bn");
  if (net.shape() == input) net.Add(block + "add", input);
}

struct Stage {
  int blocks;
  std::int64_t expansion;
  std::int64_t filters;
  std::int64_t kernel;
  std::int64_t first_stride;
};

void AppendStem(NetworkBuilder& net, Function activation) {
  net.Conv2d("stem_conv", {.filters = 32, .kernel = 3, .stride = 2, .bias = false});
  net.BatchNorm("stem_bn");
  net.Activation("stem_activation", activation);
}

// Blocks are named block1a, block1b, ...
void AppendStages(NetworkBuilder& net, std::initializer_list<Stage> stages,
                  std::int64_t squeeze_divisor, Function activation) {
  int number = 1;
  for (const Stage& stage : stages) {
    for (int i = 0; i < stage.blocks; ++i) {
      const std::string block = "block" + to_string(number) + static_cast<char>('a' + i) + "_";
      const std::int64_t stride = i == 0 ? stage.first_stride : 1;
      Append(net, block,
             {stage.expansion, stage.filters, stage.kernel, stride, squeeze_divisor, activation});
    }
    ++number;
  }
}

void AppendTop(NetworkBuilder& net, Function activation) {
  net.Conv2d("top_conv", {.filters = 1280, .bias = false});
  net.BatchNorm("top_bn");
  net.Activation("top_activation", activation);
  net.GlobalAveragePool("avg_pool");
  net.Dense("predictions", {.units = 1000});
  net.Activation("predictions_softmax", Function::kSoftmax);
}

}  // namespace

Workload MobileNet(std::int64_t pixels) {
  NetworkBuilder net("mobilenet", "MobileNet v1 (width 1), " + ImageText(pixels),
                     "Keras applications, MobileNet; Howard et al., arXiv 1704.04861",
                     {pixels, pixels, 3});
  net.Conv2d("conv1", {.filters = 32, .kernel = 3, .stride = 2, .bias = false});
  net.BatchNorm("conv1_bn");
  net.Activation("conv1_relu", Function::kRelu6);
  struct Block {
    std::int64_t filters;
    std::int64_t stride;
  };
  constexpr Block kBlocks[] = {{64, 1},  {128, 2},  {128, 1}, {256, 2}, {256, 1},
                               {512, 2}, {512, 1},  {512, 1}, {512, 1}, {512, 1},
                               {512, 1}, {1024, 2}, {1024, 1}};
  int number = 1;
  for (const Block& block : kBlocks) {
    const std::string depthwise = "conv_dw_" + to_string(number);
    const std::string pointwise = "conv_pw_" + to_string(number);
    net.DepthwiseConv2d(depthwise, {.kernel = 3, .stride = block.stride, .bias = false});
    net.BatchNorm(depthwise + "_bn");
    net.Activation(depthwise + "_relu", Function::kRelu6);
    net.Conv2d(pointwise, {.filters = block.filters, .bias = false});
    net.BatchNorm(pointwise + "_bn");
    net.Activation(pointwise + "_relu", Function::kRelu6);
    ++number;
  }
  net.GlobalAveragePool("global_average_pooling2d");
  net.Conv2d("conv_preds", {.filters = 1000});
  net.Activation("predictions", Function::kSoftmax);
  return net.Finish(Statistics::kInTotal);
}

Workload MobileNetV2(std::int64_t pixels) {
  NetworkBuilder net("mobilenet_v2", "MobileNet v2 (width 1), " + ImageText(pixels),
                     "Keras applications, MobileNetV2; Sandler et al., arXiv 1801.04381",
                     {pixels, pixels, 3});
  AppendStem(net, Function::kRelu6);
  AppendStages(net,
               {{1, 1, 16, 3, 1},
                {2, 6, 24, 3, 2},
                {3, 6, 32, 3, 2},
                {4, 6, 64, 3, 2},
                {3, 6, 96, 3, 1},
                {3, 6, 160, 3, 2},
                {1, 6, 320, 3, 1}},
               /*squeeze_divisor=*/0, Function::kRelu6);
  AppendTop(net, Function::kRelu6);
  return net.Finish(Statistics::kInTotal);
}

// Note that the total has 7 statistics of the input's normalisation: mean and variance of three
// channels and a count.
Workload EfficientNetB0(std::int64_t pixels) {
  NetworkBuilder net("efficientnet_b0", "EfficientNet-B0, " + ImageText(pixels),
                     "Keras applications, EfficientNetB0; Tan and Le, arXiv 1905.11946",
                     {pixels, pixels, 3});
  net.InputNormalization("normalization");
  AppendStem(net, Function::kSwish);
  AppendStages(net,
               {{1, 1, 16, 3, 1},
                {2, 6, 24, 3, 2},
                {2, 6, 40, 5, 2},
                {3, 6, 80, 3, 2},
                {3, 6, 112, 5, 1},
                {4, 6, 192, 5, 2},
                {1, 6, 320, 3, 1}},
               /*squeeze_divisor=*/4, Function::kSwish);
  AppendTop(net, Function::kSwish);
  return net.Finish(Statistics::kInTotal);
}

}  // namespace stepcast
