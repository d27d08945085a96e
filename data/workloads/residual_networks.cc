// He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, CVPR 2016 (arXiv 1512.03385);
// Identity Mappings in Deep Residual Networks, ECCV 2016 (arXiv 1603.05027). Xie et al.: ResNeXt
// (1611.05431); Zagoruyko, Komodakis: Wide Residual Networks (1605.07146); Liu et al.: A ConvNet
// for the 2020s (2201.03545).
#include <array>
#include <string>

#include "data/workloads/families.h"
#include "data/workloads/network_builder.h"

namespace stepcast {
namespace {

using std::to_string;

// What a shortcut does where the shape changes: a strided 1 x 1 convolution with normalisation
// (option B of the paper), or every other pixel with zero channels added (option A).
enum class Shortcut { kProjection, kPadding };

// A stage of two-convolution blocks, in the order of torchvision's forward pass.
void BasicStage(NetworkBuilder& net, const std::string& stage, int blocks, std::int64_t filters,
                std::int64_t first_stride, Shortcut kind) {
  for (int i = 0; i < blocks; ++i) {
    const std::string block = stage + "." + to_string(i) + ".";
    const std::int64_t stride = i == 0 ? first_stride : 1;
    const Shape input = net.shape();
    net.Conv2d(block + "conv1", {.filters = filters,
                                 .kernel = 3,
                                 .stride = stride,
                                 .padding = Padding::Explicit(1),
                                 .bias = false});
    net.BatchNorm(block + "bn1");
    net.Activation(block + "relu1", Function::kRelu);
    net.Conv2d(block + "conv2", {.filters = filters, .kernel = 3, .bias = false});
    net.BatchNorm(block + "bn2");
    const Shape output = net.shape();
    if (!(input == output)) {
      net.set_shape(input);
      if (kind == Shortcut::kProjection) {
        net.Conv2d(block + "downsample.0", {.filters = filters, .stride = stride, .bias = false});
        net.BatchNorm(block + "downsample.1");
      } else {
        net.Rearrange(block + "shortcut", output);
      }
    }
    net.Add(block + "add", output);
    net.Activation(block + "relu2", Function::kRelu);
  }
}

// Stages of as many blocks each: with each the filters double, and all but the first halve the
// image.
void BasicStages(NetworkBuilder& net, int stages, int blocks, std::int64_t filters, Shortcut kind) {
  for (int i = 0; i < stages; ++i, filters *= 2) {
    BasicStage(net, "layer" + to_string(i + 1), blocks, filters, i == 0 ? 1 : 2, kind);
  }
}

// Keras's version 1: convolutions have biases and the stride is in the first 1 x 1 convolution.
Workload KerasResNet(const std::string& depth, const std::array<int, 4>& blocks,
                     std::int64_t pixels) {
  NetworkBuilder net("resnet" + depth, "ResNet-" + depth + " (v1), " + ImageText(pixels),
                     "Keras applications, ResNet" + depth + "; He et al., arXiv 1512.03385",
                     {pixels, pixels, 3});
  net.Conv2d("conv1_conv",
             {.filters = 64, .kernel = 7, .stride = 2, .padding = Padding::Explicit(3)});
  net.BatchNorm("conv1_bn");
  net.Activation("conv1_relu", Function::kRelu);
  net.MaxPool("pool1_pool", {.window = 3, .padding = Padding::Explicit(1)});
  std::int64_t filters = 64;
  for (std::size_t stage = 0; stage < 4; ++stage, filters *= 2) {
    for (int i = 0; i < blocks.at(stage); ++i) {
      const std::string block = "conv" + to_string(stage + 2) + "_block" + to_string(i + 1) + "_";
      const std::int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      const Shape input = net.shape();
      Shape shortcut = input;
      if (i == 0) {
        net.Conv2d(block + "0_conv", {.filters = 4 * filters, .stride = stride});
        net.BatchNorm(block + "0_bn");
        shortcut = net.shape();
        net.set_shape(input);
      }
      net.Conv2d(block + "1_conv", {.filters = filters, .stride = stride});
      net.BatchNorm(block + "1_bn");
      net.Activation(block + "1_relu", Function::kRelu);
      net.Conv2d(block + "2_conv", {.filters = filters, .kernel = 3});
      net.BatchNorm(block + "2_bn");
      net.Activation(block + "2_relu", Function::kRelu);
      net.Conv2d(block + "3_conv", {.filters = 4 * filters});
      net.BatchNorm(block + "3_bn");
      net.Add(block + "add", shortcut);
      net.Activation(block + "out", Function::kRelu);
    }
  }
  net.GlobalAveragePool("avg_pool");
  net.Dense("predictions", {.units = 1000});
  net.Activation("predictions_softmax", Function::kSoftmax);
  return net.Finish(Statistics::kInTotal);
}

// What torchvision's networks begin with.
void TorchStem(NetworkBuilder& net) {
  net.Conv2d(
      "conv1",
      {.filters = 64, .kernel = 7, .stride = 2, .padding = Padding::Explicit(3), .bias = false});
  net.BatchNorm("bn1");
  net.Activation("relu", Function::kRelu);
  net.MaxPool("maxpool", {.window = 3, .padding = Padding::Explicit(1)});
}

// Networks of blocks of three convolutions, as torchvision's one function makes them all.
struct TorchBottlenecks {
  std::string name;
  std::string title;
  std::string function;  // torchvision's
  std::string paper;
  std::array<int, 4> blocks;
  std::int64_t width = 64;  // of the 3 x 3 convolutions in the first stage
  std::int64_t groups = 1;  // of them
};

// No convolution has a bias, and the stride is in the 3 x 3 one, as in NVIDIA's and MLPerf's
// ResNet-50.
Workload TorchResNet(const TorchBottlenecks& network, std::int64_t pixels) {
  NetworkBuilder net(network.name, network.title + ", " + ImageText(pixels),
                     "torchvision.models." + network.function + "; " + network.paper,
                     {pixels, pixels, 3});
  TorchStem(net);
  std::int64_t width = network.width;
  std::int64_t filters = 256;
  for (std::size_t stage = 0; stage < network.blocks.size(); ++stage, width *= 2, filters *= 2) {
    for (int i = 0; i < network.blocks.at(stage); ++i) {
      const std::string block = "layer" + to_string(stage + 1) + "." + to_string(i) + ".";
      const std::int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      const Shape input = net.shape();
      net.Conv2d(block + "conv1", {.filters = width, .bias = false});
      net.BatchNorm(block + "bn1");
      net.Activation(block + "relu1", Function::kRelu);
      net.Conv2d(block + "conv2", {.filters = width,
                                   .kernel = 3,
                                   .stride = stride,
                                   .padding = Padding::Explicit(1),
                                   .groups = network.groups,
                                   .bias = false});
      net.BatchNorm(block + "bn2");
      net.Activation(block + "relu2", Function::kRelu);
      net.Conv2d(block + "conv3", {.filters = filters, .bias = false});
      net.BatchNorm(block + "bn3");
      const Shape output = net.shape();
      if (i == 0) {
        net.set_shape(input);
        net.Conv2d(block + "downsample.0", {.filters = filters, .stride = stride, .bias = false});
        net.BatchNorm(block + "downsample.1");
      }
      net.Add(block + "add", output);
      net.Activation(block + "relu3", Function::kRelu);
    }
  }
  net.GlobalAveragePool("avgpool");
  net.Dense("fc", {.units = 1000});
  return net.Finish(Statistics::kNotInTotal);
}

// Each block ends in a trained factor for each channel, which is one row of a table here.
// Stochastic depth is not listed, as drop-out is not.
Workload ConvNeXt(const std::string& size, const std::array<int, 4>& blocks, std::int64_t width,
                  std::int64_t pixels) {
  const std::string name = "convnext_" + size;
  NetworkBuilder net(name, "ConvNeXt-" + size + ", " + ImageText(pixels),
                     "torchvision.models." + name + "; Liu et al., arXiv 2201.03545",
                     {pixels, pixels, 3});
  net.Conv2d("stem.conv",
             {.filters = width, .kernel = 4, .stride = 4, .padding = Padding::Valid()});
  net.LayerNorm("stem.norm");
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const std::string at = "stage" + to_string(stage + 1) + ".";
    if (stage > 0) {
      width *= 2;
      net.LayerNorm(at + "downsample.norm");
      net.Conv2d(at + "downsample.conv",
                 {.filters = width, .kernel = 2, .stride = 2, .padding = Padding::Valid()});
    }
    for (int i = 0; i < blocks.at(stage); ++i) {
      const std::string block = at + to_string(i) + ".";
      const Shape input = net.shape();
      net.DepthwiseConv2d(block + "conv", {.kernel = 7, .padding = Padding::Explicit(3)});
      net.LayerNorm(block + "norm");
      net.Dense(block + "mlp.0", {.units = 4 * width});
      net.Activation(block + "mlp.gelu", Function::kGelu);
      net.Dense(block + "mlp.1", {.units = width});
      net.Embedding(block + "layer_scale", {.rows = 1, .features = width});
      net.Multiply(block + "scale", input);
      net.Add(block + "add", input);
    }
  }
  net.GlobalAveragePool("avgpool");
  net.LayerNorm("classifier.norm");
  net.Dense("classifier.fc", {.units = 1000});
  return net.Finish(Statistics::kNotInTotal);
}

}  // namespace

Workload ResNet18(std::int64_t pixels) {
  NetworkBuilder net("resnet18", "ResNet-18, " + ImageText(pixels),
                     "torchvision.models.resnet18; He et al., arXiv 1512.03385",
                     {pixels, pixels, 3});
  TorchStem(net);
  BasicStages(net, 4, 2, 64, Shortcut::kProjection);
  net.GlobalAveragePool("avgpool");
  net.Dense("fc", {.units = 1000});
  return net.Finish(Statistics::kNotInTotal);
}

// 464,154 parameters: the 0.46 M of the paper's table 6.
Workload ResNet32() {
  NetworkBuilder net("resnet32", "ResNet-32 for CIFAR-10, 32 x 32 x 3, 10 classes",
                     "He et al., arXiv 1512.03385, section 4.2, shortcuts of option A",
                     {32, 32, 3});
  net.Conv2d("conv1", {.filters = 16, .kernel = 3, .bias = false});
  net.BatchNorm("bn1");
  net.Activation("relu", Function::kRelu);
  BasicStages(net, 3, 5, 16, Shortcut::kPadding);
  net.GlobalAveragePool("avgpool");
  net.Dense("linear", {.units = 10});
  return net.Finish(Statistics::kNotInTotal);
}

Workload ResNet18Cifar10() {
  NetworkBuilder net("resnet18_cifar10", "ResNet-18 for CIFAR-10, 32 x 32 x 3, 10 classes",
                     "github.com/kuangliu/pytorch-cifar, models/resnet.py", {32, 32, 3});
  net.Conv2d("conv1", {.filters = 64, .kernel = 3, .bias = false});
  net.BatchNorm("bn1");
  net.Activation("relu", Function::kRelu);
  BasicStages(net, 4, 2, 64, Shortcut::kProjection);
  net.GlobalAveragePool("avgpool");
  net.Dense("linear", {.units = 10});
  return net.Finish(Statistics::kNotInTotal);
}

Workload ResNet50(std::int64_t pixels) { return KerasResNet("50", {3, 4, 6, 3}, pixels); }
Workload ResNet101(std::int64_t pixels) { return KerasResNet("101", {3, 4, 23, 3}, pixels); }
Workload ResNet152(std::int64_t pixels) { return KerasResNet("152", {3, 8, 36, 3}, pixels); }

Workload ResNet50V15(std::int64_t pixels) {
  return TorchResNet({.name = "resnet50_v1_5",
                      .title = "ResNet-50 (v1.5)",
                      .function = "resnet50",
                      .paper = "He et al., arXiv 1512.03385",
                      .blocks = {3, 4, 6, 3}},
                     pixels);
}

Workload ResNeXt50(std::int64_t pixels) {
  return TorchResNet({.name = "resnext50_32x4d",
                      .title = "ResNeXt-50, 32 groups of 4",
                      .function = "resnext50_32x4d",
                      .paper = "Xie et al., arXiv 1611.05431",
                      .blocks = {3, 4, 6, 3},
                      .width = 128,
                      .groups = 32},
                     pixels);
}
Workload ResNeXt101(std::int64_t pixels) {
  return TorchResNet({.name = "resnext101_32x8d",
                      .title = "ResNeXt-101, 32 groups of 8",
                      .function = "resnext101_32x8d",
                      .paper = "Xie et al., arXiv 1611.05431",
                      .blocks = {3, 4, 23, 3},
                      .width = 256,
                      .groups = 32},
                     pixels);
}

Workload WideResNet50(std::int64_t pixels) {
  return TorchResNet({.name = "wide_resnet50_2",
                      .title = "Wide ResNet-50-2",
                      .function = "wide_resnet50_2",
                      .paper = "Zagoruyko and Komodakis, arXiv 1605.07146",
                      .blocks = {3, 4, 6, 3},
                      .width = 128},
                     pixels);
}
Workload WideResNet101(std::int64_t pixels) {
  return TorchResNet({.name = "wide_resnet101_2",
                      .title = "Wide ResNet-101-2",
                      .function = "wide_resnet101_2",
                      .paper = "Zagoruyko and Komodakis, arXiv 1605.07146",
                      .blocks = {3, 4, 23, 3},
                      .width = 128},
                     pixels);
}

Workload ConvNeXtTiny(std::int64_t pixels) { return ConvNeXt("tiny", {3, 3, 9, 3}, 96, pixels); }
Workload ConvNeXtSmall(std::int64_t pixels) { return ConvNeXt("small", {3, 3, 27, 3}, 96, pixels); }
Workload ConvNeXtBase(std::int64_t pixels) { return ConvNeXt("base", {3, 3, 27, 3}, 128, pixels); }
Workload ConvNeXtLarge(std::int64_t pixels) {
  return ConvNeXt("large", {3, 3, 27, 3}, 192, pixels);
}

// Normalisation and activation come before each convolution; a projection starts from the activated
// tensor, an identity from the raw one; the stride is in the 3 x 3 convolution. 64,666,280
// parameters and 15.07 G multiply-adds, as PreResNet-200b in github.com/osmr/imgclsmob.
Workload ResNet200(std::int64_t pixels) {
  NetworkBuilder net("resnet200", "ResNet-200 (v2, pre-activation), " + ImageText(pixels),
                     "He et al., arXiv 1603.05027; total as PreResNet-200b of osmr/imgclsmob",
                     {pixels, pixels, 3});
  net.Conv2d(
      "conv1",
      {.filters = 64, .kernel = 7, .stride = 2, .padding = Padding::Explicit(3), .bias = false});
  net.BatchNorm("bn1");
  net.Activation("relu1", Function::kRelu);
  net.MaxPool("maxpool", {.window = 3, .padding = Padding::Explicit(1)});
  constexpr std::array<int, 4> kBlocks = {3, 24, 36, 3};
  std::int64_t filters = 64;
  for (std::size_t stage = 0; stage < 4; ++stage, filters *= 2) {
    for (int i = 0; i < kBlocks.at(stage); ++i) {
      const std::string block = "layer" + to_string(stage + 1) + "." + to_string(i) + ".";
      const std::int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      const Shape input = net.shape();
      Shape shortcut = input;
      net.BatchNorm(block + "bn1");
      net.Activation(block + "relu1", Function::kRelu);
      if (i == 0) {
        net.Conv2d(block + "downsample", {.filters = 4 * filters, .stride = stride, .bias = false});
        shortcut = net.shape();
        net.set_shape(input);
      }
      net.Conv2d(block + "conv1", {.filters = filters, .bias = false});
      net.BatchNorm(block + "bn2");
      net.Activation(block + "relu2", Function::kRelu);
      net.Conv2d(block + "conv2",
                 {.filters = filters, .kernel = 3, .stride = stride, .bias = false});
      net.BatchNorm(block + "bn3");
      net.Activation(block + "relu3", Function::kRelu);
      net.Conv2d(block + "conv3", {.filters = 4 * filters, .bias = false});
      net.Add(block + "add", shortcut);
    }
  }
  net.BatchNorm("bn2");
  net.Activation("relu2", Function::kRelu);
  net.GlobalAveragePool("avgpool");
  net.Dense("fc", {.units = 1000});
  return net.Finish(Statistics::kNotInTotal);
}

}  // namespace stepcast
