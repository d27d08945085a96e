// Howard et al.: MobileNets (arXiv 1704.04861); Sandler et al.: MobileNetV2 (arXiv 1801.04381);
// Tan, Le: EfficientNet (arXiv 1905.11946). All as in Keras applications. Howard et al.:
// MobileNetV3 (arXiv 1905.02244), as in torchvision.
#include <algorithm>
#include <string>

#include "data/workloads/families.h"
#include "data/workloads/network_builder.h"

namespace stepcast {
namespace {

using std::to_string;

// An inverted residual block (MobileNetV2) with optional squeeze and excitation.
struct InvertedResidual {
  std::int64_t expanded = 0;
  std::int64_t filters = 0;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t squeezed = 0;  // filters between squeeze and excitation; 0: none
  Function activation = Function::kRelu;
  Function squeeze_activation = activation;
};

void Append(NetworkBuilder& net, const std::string& block, const InvertedResidual& b) {
  const Shape input = net.shape();
  if (b.expanded != input.channels) {
    net.Conv2d(block + "expand_conv", {.filters = b.expanded, .bias = false});
    net.BatchNorm(block + "expand_bn");
    net.Activation(block + "expand_activation", b.activation);
  }
  net.DepthwiseConv2d(block + "dwconv", {.kernel = b.kernel, .stride = b.stride, .bias = false});
  net.BatchNorm(block + "bn");
  net.Activation(block + "activation", b.activation);
  if (b.squeezed > 0) {
    const Shape expanded = net.shape();
    net.GlobalAveragePool(block + "se_squeeze");
    net.Conv2d(block + "se_reduce", {.filters = b.squeezed});
    net.Activation(block + "se_reduce_activation", b.squeeze_activation);
    net.Conv2d(block + "se_expand", {.filters = expanded.channels});
    net.Activation(block + "se_expand_sigmoid", Function::kSigmoid);
    net.Multiply(block + "se_excite", expanded);
  }
  net.Conv2d(block + "project_conv", {.filters = b.filters, .bias = false});
  net.BatchNorm(block + "project_bn");
  if (net.shape() == input) net.Add(block + "add", input);
}

struct Stage {
  std::int64_t blocks;
  std::int64_t expansion;
  std::int64_t filters;
  std::int64_t kernel;
  std::int64_t first_stride;
};

// The multiple of 8 nearest to a number of filters in tenths, and no less than nine tenths of it.
std::int64_t RoundedFilters(std::int64_t tenths) {
  const std::int64_t nearest = std::max<std::int64_t>(8, (tenths + 40) / 80 * 8);
  return 100 * nearest < 9 * tenths ? nearest + 8 : nearest;
}

// EfficientNet's factors of filters and of blocks; MobileNetV2 is of 1 and 1.
struct Scale {
  std::int64_t width_tenths = 10;
  std::int64_t depth_tenths = 10;

  std::int64_t Filters(std::int64_t filters) const {
    return RoundedFilters(width_tenths * filters);
  }
  std::int64_t Blocks(std::int64_t blocks) const { return (depth_tenths * blocks + 9) / 10; }
};

void AppendStem(NetworkBuilder& net, std::int64_t filters, Function activation) {
  net.Conv2d("stem_conv", {.filters = filters, .kernel = 3, .stride = 2, .bias = false});
  net.BatchNorm("stem_bn");
  net.Activation("stem_activation", activation);
}

// Blocks are named block1a, block1b, ... The squeezed width is the block's input width /
// `squeeze_divisor`; 0: none.
void AppendStages(NetworkBuilder& net, std::initializer_list<Stage> stages, const Scale& scale,
                  std::int64_t squeeze_divisor, Function activation) {
  int number = 1;
  for (const Stage& stage : stages) {
    for (std::int64_t i = 0; i < scale.Blocks(stage.blocks); ++i) {
      const std::string block = "block" + to_string(number) + static_cast<char>('a' + i) + "_";
      const std::int64_t stride = i == 0 ? stage.first_stride : 1;
      const std::int64_t inputs = net.shape().channels;
      const std::int64_t squeezed =
          squeeze_divisor > 0 ? std::max<std::int64_t>(1, inputs / squeeze_divisor) : 0;
      Append(net, block,
             {.expanded = stage.expansion * inputs,
              .filters = scale.Filters(stage.filters),
              .kernel = stage.kernel,
              .stride = stride,
              .squeezed = squeezed,
              .activation = activation});
    }
    ++number;
  }
}

void AppendTop(NetworkBuilder& net, std::int64_t filters, Function activation) {
  net.Conv2d("top_conv", {.filters = filters, .bias = false});
  net.BatchNorm("top_bn");
  net.Activation("top_activation", activation);
  net.GlobalAveragePool("avg_pool");
  net.Dense("predictions", {.units = 1000});
  net.Activation("predictions_softmax", Function::kSoftmax);
}

// Note that the total has 7 statistics of the input's normalisation: mean and variance of three
// channels and a count.
Workload EfficientNet(const std::string& size, const Scale& scale, std::int64_t pixels) {
  NetworkBuilder net("efficientnet_b" + size, "EfficientNet-B" + size + ", " + ImageText(pixels),
                     "Keras applications, EfficientNetB" + size + "; Tan and Le, arXiv 1905.11946",
                     {pixels, pixels, 3});
  net.InputNormalization("normalization");
  AppendStem(net, scale.Filters(32), Function::kSwish);
  AppendStages(net,
               {{1, 1, 16, 3, 1},
                {2, 6, 24, 3, 2},
                {2, 6, 40, 5, 2},
                {3, 6, 80, 3, 2},
                {3, 6, 112, 5, 1},
                {4, 6, 192, 5, 2},
                {1, 6, 320, 3, 1}},
               scale, /*squeeze_divisor=*/4, Function::kSwish);
  AppendTop(net, scale.Filters(1280), Function::kSwish);
  return net.Finish(Statistics::kInTotal);
}

struct SearchedBlock {
  std::int64_t kernel;
  std::int64_t expanded;
  std::int64_t filters;
  bool squeezes;
  bool hard_swish;  // otherwise a rectifier
  std::int64_t stride;
};

// Hard forms of swish and of the sigmoid are taken for these, which pass over as much memory.
Workload MobileNetV3(const std::string& size, std::initializer_list<SearchedBlock> blocks,
                     std::int64_t hidden, std::int64_t pixels) {
  const std::string name = "mobilenet_v3_" + size;
  NetworkBuilder net(name, "MobileNet v3 " + size + ", " + ImageText(pixels),
                     "torchvision.models." + name + "; Howard et al., arXiv 1905.02244",
                     {pixels, pixels, 3});
  AppendStem(net, 16, Function::kSwish);
  int number = 1;
  for (const SearchedBlock& b : blocks) {
    Append(net, "block" + to_string(number++) + "_",
           {.expanded = b.expanded,
            .filters = b.filters,
            .kernel = b.kernel,
            .stride = b.stride,
            .squeezed = b.squeezes ? RoundedFilters(10 * (b.expanded / 4)) : 0,
            .activation = b.hard_swish ? Function::kSwish : Function::kRelu,
            .squeeze_activation = Function::kRelu});
  }
  net.Conv2d("top_conv", {.filters = 6 * net.shape().channels, .bias = false});
  net.BatchNorm("top_bn");
  net.Activation("top_activation", Function::kSwish);
  net.GlobalAveragePool("avgpool");
  net.Dense("classifier.0", {.units = hidden});
  net.Activation("classifier.1", Function::kSwish);
  net.Dense("classifier.3", {.units = 1000});
  return net.Finish(Statistics::kNotInTotal);
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
  AppendStem(net, 32, Function::kRelu6);
  AppendStages(net,
               {{1, 1, 16, 3, 1},
                {2, 6, 24, 3, 2},
                {3, 6, 32, 3, 2},
                {4, 6, 64, 3, 2},
                {3, 6, 96, 3, 1},
                {3, 6, 160, 3, 2},
                {1, 6, 320, 3, 1}},
               Scale(), /*squeeze_divisor=*/0, Function::kRelu6);
  AppendTop(net, 1280, Function::kRelu6);
  return net.Finish(Statistics::kInTotal);
}

Workload MobileNetV3Large(std::int64_t pixels) {
  return MobileNetV3("large",
                     {{3, 16, 16, false, false, 1},
                      {3, 64, 24, false, false, 2},
                      {3, 72, 24, false, false, 1},
                      {5, 72, 40, true, false, 2},
                      {5, 120, 40, true, false, 1},
                      {5, 120, 40, true, false, 1},
                      {3, 240, 80, false, true, 2},
                      {3, 200, 80, false, true, 1},
                      {3, 184, 80, false, true, 1},
                      {3, 184, 80, false, true, 1},
                      {3, 480, 112, true, true, 1},
                      {3, 672, 112, true, true, 1},
                      {5, 672, 160, true, true, 2},
                      {5, 960, 160, true, true, 1},
                      {5, 960, 160, true, true, 1}},
                     1280, pixels);
}
Workload MobileNetV3Small(std::int64_t pixels) {
  return MobileNetV3("small",
                     {{3, 16, 16, true, false, 2},
                      {3, 72, 24, false, false, 2},
                      {3, 88, 24, false, false, 1},
                      {5, 96, 40, true, true, 2},
                      {5, 240, 40, true, true, 1},
                      {5, 240, 40, true, true, 1},
                      {5, 120, 48, true, true, 1},
                      {5, 144, 48, true, true, 1},
                      {5, 288, 96, true, true, 2},
                      {5, 576, 96, true, true, 1},
                      {5, 576, 96, true, true, 1}},
                     1024, pixels);
}

Workload EfficientNetB0(std::int64_t pixels) { return EfficientNet("0", {10, 10}, pixels); }
Workload EfficientNetB1(std::int64_t pixels) { return EfficientNet("1", {10, 11}, pixels); }
Workload EfficientNetB2(std::int64_t pixels) { return EfficientNet("2", {11, 12}, pixels); }
Workload EfficientNetB3(std::int64_t pixels) { return EfficientNet("3", {12, 14}, pixels); }
Workload EfficientNetB4(std::int64_t pixels) { return EfficientNet("4", {14, 18}, pixels); }
Workload EfficientNetB5(std::int64_t pixels) { return EfficientNet("5", {16, 22}, pixels); }
Workload EfficientNetB6(std::int64_t pixels) { return EfficientNet("6", {18, 26}, pixels); }
Workload EfficientNetB7(std::int64_t pixels) { return EfficientNet("7", {20, 31}, pixels); }

}  // namespace stepcast
