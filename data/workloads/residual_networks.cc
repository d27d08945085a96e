// He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, CVPR 2016 (arXiv 1512.03385);
// Identity Mappings in Deep Residual Networks, ECCV 2016 (arXiv 1603.05027).
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

}  // namespace

Workload ResNet18(std::int64_t pixels) {
  NetworkBuilder net("resnet18", "ResNet-18, " + ImageText(pixels),
                     "torchvision.models.resnet18; He et al., arXiv 1512.03385",
                     {pixels, pixels, 3});
  TorchStem(net);
  BasicStage(net, "layer1", 2, 64, 1, Shortcut::kProjection);
  BasicStage(net, "layer2", 2, 128, 2, Shortcut::kProjection);
  BasicStage(net, "layer3", 2, 256, 2, Shortcut::kProjection);
  BasicStage(net, "layer4", 2, 512, 2, Shortcut::kProjection);
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
  BasicStage(net, "layer1", 5, 16, 1, Shortcut::kPadding);
  BasicStage(net, "layer2", 5, 32, 2, Shortcut::kPadding);
  BasicStage(net, "layer3", 5, 64, 2, Shortcut::kPadding);
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
  BasicStage(net, "layer1", 2, 64, 1, Shortcut::kProjection);
  BasicStage(net, "layer2", 2, 128, 2, Shortcut::kProjection);
  BasicStage(net, "layer3", 2, 256, 2, Shortcut::kProjection);
  BasicStage(net, "layer4", 2, 512, 2, Shortcut::kProjection);
  net.GlobalAveragePool("avgpool");
  net.Dense("linear", {.units = 10});
  return net.Finish(Statistics::kNotInTotal);
}

Workload ResNet50(std::int64_t pixels) { return KerasResNet("50", {3, 4, 6, 3}, pixels); }
Workload ResNet101(std::int64_t pixels) { return KerasResNet("101", {3, 4, 23, 3}, pixels); }
Workload ResNet152(std::int64_t pixels) { return KerasResNet("152", {3, 8, 36, 3}, pixels); }

// torchvision's: no convolution has a bias, and the stride is in the 3 x 3 one, as in NVIDIA's and
// MLPerf's ResNet-50.
Workload ResNet50V15(std::int64_t pixels) {
  NetworkBuilder net("resnet50_v1_5", "ResNet-50 (v1.5), " + ImageText(pixels),
                     "torchvision.models.resnet50; He et al., arXiv 1512.03385",
                     {pixels, pixels, 3});
  TorchStem(net);
  constexpr std::array<int, 4> kBlocks = {3, 4, 6, 3};
  std::int64_t filters = 64;
  for (std::size_t stage = 0; stage < kBlocks.size(); ++stage, filters *= 2) {
    for (int i = 0; i < kBlocks.at(stage); ++i) {
      const std::string block = "layer" + to_string(stage + 1) + "." + to_string(i) + ".";
      const std::int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      const Shape input = net.shape();
      net.Conv2d(block + "conv1", {.filters = filters, .bias = false});
      net.BatchNorm(block + "bn1");
      net.Activation(block + "relu1", Function::kRelu);
      net.Conv2d(block + "conv2", {.filters = filters,
                                   .kernel = 3,
                                   .stride = stride,
                                   .padding = Padding::Explicit(1),
                                   .bias = false});
      net.BatchNorm(block + "bn2");
      net.Activation(block + "relu2", Function::kRelu);
      net.Conv2d(block + "conv3", {.filters = 4 * filters, .bias = false});
      net.BatchNorm(block + "bn3");
      const Shape output = net.shape();
      if (i == 0) {
        net.set_shape(input);
        net.Conv2d(block + "downsample.0",
                   {.filters = 4 * filters, .stride = stride, .bias = false});
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
