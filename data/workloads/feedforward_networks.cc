// Plain stacks, and DenseNet. Krizhevsky: One weird trick (arXiv 1404.5997) for AlexNet; Simonyan,
// Zisserman: VGG (arXiv 1409.1556); Huang et al.: DenseNet (arXiv 1608.06993).
#include <array>
#include <string>

#include "data/workloads/families.h"
#include "data/workloads/network_builder.h"

namespace stepcast {
namespace {

using std::to_string;

void DenseRelu(NetworkBuilder& net, const std::string& name, std::int64_t units) {
  net.Dense(name, {.units = units});
  net.Activation(name + "_relu", Function::kRelu);
}

void Classify(NetworkBuilder& net, std::int64_t classes) {
  net.Dense("predictions", {.units = classes});
  net.Activation("predictions_softmax", Function::kSoftmax);
}

// Two hidden layers of 512, as the Keras example mnist_mlp.py.
Workload Perceptron(NetworkBuilder net, std::int64_t classes) {
  net.Flatten();
  DenseRelu(net, "dense_1", 512);
  DenseRelu(net, "dense_2", 512);
  Classify(net, classes);
  return net.Finish(Statistics::kInTotal);
}

// `convolutions` is how many 3 x 3 convolutions each of the five blocks has.
Workload Vgg(const std::string& depth, const std::array<int, 5>& convolutions) {
  NetworkBuilder net("vgg" + depth, "VGG-" + depth + ", 224 x 224 x 3",
                     "Keras applications, VGG" + depth +
                         "; Simonyan and Zisserman, "
                         "arXiv 1409.1556",
                     {224, 224, 3});
  constexpr std::array<std::int64_t, 5> kFilters = {64, 128, 256, 512, 512};
  for (std::size_t i = 0; i < kFilters.size(); ++i) {
    const std::string block = "block" + to_string(i + 1) + "_";
    for (int j = 1; j <= convolutions.at(i); ++j) {
      const std::string conv = block + "conv" + to_string(j);
      net.Conv2d(conv, {.filters = kFilters.at(i), .kernel = 3});
      net.Activation(conv + "_relu", Function::kRelu);
    }
    net.MaxPool(block + "pool", {.window = 2});
  }
  net.Flatten();
  DenseRelu(net, "fc1", 4096);
  DenseRelu(net, "fc2", 4096);
  Classify(net, 1000);
  return net.Finish(Statistics::kInTotal);
}

Workload DenseNet(const std::string& depth, const std::array<int, 4>& blocks, std::int64_t pixels) {
  NetworkBuilder net("densenet" + depth, "DenseNet-" + depth + ", " + ImageText(pixels),
                     "Keras applications, DenseNet" + depth + "; Huang et al., arXiv 1608.06993",
                     {pixels, pixels, 3});
  constexpr std::int64_t kGrowth = 32;
  const auto norm_relu = [&net](const std::string& name) {
    net.BatchNorm(name + "_bn");
    net.Activation(name + "_relu", Function::kRelu);
  };
  net.Conv2d(
      "conv1_conv",
      {.filters = 64, .kernel = 7, .stride = 2, .padding = Padding::Explicit(3), .bias = false});
  norm_relu("conv1");
  net.MaxPool("pool1", {.window = 3, .padding = Padding::Explicit(1)});
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const std::string number = to_string(stage + 2);
    for (int i = 1; i <= blocks.at(stage); ++i) {
      const std::string block = "conv" + number + "_block" + to_string(i);
      const std::int64_t channels = net.shape().channels;
      norm_relu(block + "_0");
      net.Conv2d(block + "_1_conv", {.filters = 4 * kGrowth, .bias = false});
      norm_relu(block + "_1");
      net.Conv2d(block + "_2_conv", {.filters = kGrowth, .kernel = 3, .bias = false});
      net.Concat(block + "_concat", channels + kGrowth);
    }
    if (stage + 1 < blocks.size()) {
      const std::string transition = "pool" + number;
      norm_relu(transition);
      net.Conv2d(transition + "_conv", {.filters = net.shape().channels / 2, .bias = false});
      net.AveragePool(transition + "_pool", {.window = 2});
    }
  }
  norm_relu("conv5");
  net.GlobalAveragePool("avg_pool");
  Classify(net, 1000);
  return net.Finish(Statistics::kInTotal);
}

}  // namespace

Workload MlpMnist() {
  return Perceptron({"mlp_mnist", "Perceptron for MNIST, 28 x 28 -> 512 -> 512 -> 10",
                     "Keras examples, mnist_mlp.py", Shape{28, 28, 1}},
                    10);
}

// No publisher has a standard perceptron for ImageNet; nearly all of this one is its first layer.
Workload MlpImagenet() {
  return Perceptron(
      {"mlp_imagenet", "Perceptron for ImageNet, 224 x 224 x 3 -> 512 -> 512 -> 1000",
       "our own: the layers of Keras's mnist_mlp.py on ImageNet's sizes", Shape{224, 224, 3}},
      1000);
}

Workload AlexNet() {
  NetworkBuilder net("alexnet", "AlexNet (one column), 224 x 224 x 3",
                     "torchvision.models.alexnet; Krizhevsky, arXiv 1404.5997", {224, 224, 3});
  const auto conv_relu = [&net](const std::string& name, const ConvolutionOptions& options) {
    net.Conv2d(name, options);
    net.Activation(name + "_relu", Function::kRelu);
  };
  const PoolingOptions pooling = {.window = 3, .stride = 2};
  conv_relu("conv1", {.filters = 64, .kernel = 11, .stride = 4, .padding = Padding::Explicit(2)});
  net.MaxPool("pool1", pooling);
  conv_relu("conv2", {.filters = 192, .kernel = 5});
  net.MaxPool("pool2", pooling);
  conv_relu("conv3", {.filters = 384, .kernel = 3});
  conv_relu("conv4", {.filters = 256, .kernel = 3});
  conv_relu("conv5", {.filters = 256, .kernel = 3});
  net.MaxPool("pool5", pooling);
  net.Flatten();
  DenseRelu(net, "fc6", 4096);
  DenseRelu(net, "fc7", 4096);
  net.Dense("fc8", {.units = 1000});
  return net.Finish(Statistics::kNotInTotal);
}

Workload Vgg16() { return Vgg("16", {2, 2, 3, 3, 3}); }
Workload Vgg19() { return Vgg("19", {2, 2, 4, 4, 4}); }

Workload DenseNet121(std::int64_t pixels) { return DenseNet("121", {6, 12, 24, 16}, pixels); }
Workload DenseNet169(std::int64_t pixels) { return DenseNet("169", {6, 12, 32, 32}, pixels); }
Workload DenseNet201(std::int64_t pixels) { return DenseNet("201", {6, 12, 48, 32}, pixels); }

}  // namespace stepcast
