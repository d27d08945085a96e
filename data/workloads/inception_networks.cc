// Szegedy et al.: Going Deeper with Convolutions (arXiv 1409.4842); Rethinking the Inception
// Architecture for Computer Vision (arXiv 1512.00567).
#include <string>

#include "data/workloads/families.h"
#include "data/workloads/network_builder.h"

namespace stepcast {
namespace {

using std::to_string;

// Convolution without bias, normalisation, activation. Keras's Inception v3 has no gamma.
class ConvNormRelu {
 public:
  ConvNormRelu(NetworkBuilder& net, bool scale) : net_(net), scale_(scale) {}

  void operator()(const std::string& name, std::int64_t filters, Extent kernel, Extent stride = 1,
                  Padding padding = Padding::Same()) const {
    net_.Conv2d(name + ".conv", {.filters = filters,
                                 .kernel = kernel,
                                 .stride = stride,
                                 .padding = padding,
                                 .bias = false});
    net_.BatchNorm(name + ".bn", {.scale = scale_});
    net_.Activation(name + ".relu", Function::kRelu);
  }

 private:
  NetworkBuilder& net_;
  bool scale_;
};

}  // namespace

// torchvision's "5 x 5" branch has 3 x 3 kernels (github.com/pytorch/vision/issues/906).
Workload InceptionV1(std::int64_t pixels) {
  NetworkBuilder net("inception_v1",
                     "Inception v1 (GoogLeNet with batch normalisation), " + ImageText(pixels),
                     "torchvision.models.googlenet, aux_logits=False; Szegedy et al., "
                     "arXiv 1409.4842",
                     {pixels, pixels, 3});
  const ConvNormRelu conv(net, /*scale=*/true);
  const auto pool = [&net](const std::string& name, std::int64_t window) {
    net.MaxPool(name, {.window = window, .stride = 2, .ceil = true});
  };
  conv("conv1", 64, 7, 2, Padding::Explicit(3));
  pool("maxpool1", 3);
  conv("conv2", 64, 1);
  conv("conv3", 192, 3);
  pool("maxpool2", 3);

  struct Module {
    const char* name;
    std::int64_t direct, reduce3, conv3, reduce5, conv5, pooled;
  };
  constexpr Module kModules[] = {
      {"inception3a", 64, 96, 128, 16, 32, 32},     {"inception3b", 128, 128, 192, 32, 96, 64},
      {"inception4a", 192, 96, 208, 16, 48, 64},    {"inception4b", 160, 112, 224, 24, 64, 64},
      {"inception4c", 128, 128, 256, 24, 64, 64},   {"inception4d", 112, 144, 288, 32, 64, 64},
      {"inception4e", 256, 160, 320, 32, 128, 128}, {"inception5a", 256, 160, 320, 32, 128, 128},
      {"inception5b", 384, 192, 384, 48, 128, 128}};
  for (const Module& m : kModules) {
    const std::string name = m.name;
    if (name == "inception4a") pool("maxpool3", 3);
    if (name == "inception5a") pool("maxpool4", 2);
    net.Branches(name + ".concat", {[&] { conv(name + ".branch1", m.direct, 1); },
                                    [&] {
                                      conv(name + ".branch2.0", m.reduce3, 1);
                                      conv(name + ".branch2.1", m.conv3, 3);
                                    },
                                    [&] {
                                      conv(name + ".branch3.0", m.reduce5, 1);
                                      conv(name + ".branch3.1", m.conv5, 3);
                                    },
                                    [&] {
                                      net.MaxPool(
                                          name + ".branch4.0",
                                          {.window = 3, .stride = 1, .padding = Padding::Same()});
                                      conv(name + ".branch4.1", m.pooled, 1);
                                    }});
  }
  net.GlobalAveragePool("avgpool");
  net.Dense("fc", {.units = 1000});
  return net.Finish(Statistics::kNotInTotal);
}

Workload InceptionV3(std::int64_t pixels) {
  NetworkBuilder net("inception_v3", "Inception v3, " + ImageText(pixels),
                     "Keras applications, InceptionV3; Szegedy et al., arXiv 1512.00567",
                     {pixels, pixels, 3});
  const ConvNormRelu conv(net, /*scale=*/false);
  const auto pool = [&net](const std::string& name) {
    net.MaxPool(name, {.window = 3, .stride = 2});
  };
  // Average pooling and a projection, the last branch of most modules.
  const auto pooled = [&](const std::string& name, std::int64_t filters) {
    net.AveragePool(name + ".pool", {.window = 3, .stride = 1, .padding = Padding::Same()});
    conv(name + ".pool_proj", filters, 1);
  };

  conv("conv2d_1", 32, 3, 2, Padding::Valid());
  conv("conv2d_2", 32, 3, 1, Padding::Valid());
  conv("conv2d_3", 64, 3);
  pool("max_pooling2d_1");
  conv("conv2d_4", 80, 1);
  conv("conv2d_5", 192, 3, 1, Padding::Valid());
  pool("max_pooling2d_2");

  // 35 x 35 of 299 x 299 pixels.
  for (int i = 0; i < 3; ++i) {
    const std::string name = "mixed" + to_string(i);
    net.Branches(name, {[&] { conv(name + ".1x1", 64, 1); },
                        [&] {
                          conv(name + ".5x5_1", 48, 1);
                          conv(name + ".5x5_2", 64, 5);
                        },
                        [&] {
                          conv(name + ".3x3dbl_1", 64, 1);
                          conv(name + ".3x3dbl_2", 96, 3);
                          conv(name + ".3x3dbl_3", 96, 3);
                        },
                        [&] { pooled(name, i == 0 ? 32 : 64); }});
  }
  net.Branches("mixed3", {[&] { conv("mixed3.3x3", 384, 3, 2, Padding::Valid()); },
                          [&] {
                            conv("mixed3.3x3dbl_1", 64, 1);
                            conv("mixed3.3x3dbl_2", 96, 3);
                            conv("mixed3.3x3dbl_3", 96, 3, 2, Padding::Valid());
                          },
                          [&] { pool("mixed3.pool"); }});

  // 17 x 17: 7 x 7 convolutions as rows and columns.
  constexpr std::int64_t kInner[] = {128, 160, 160, 192};
  int number = 4;
  for (const std::int64_t inner : kInner) {
    const std::string name = "mixed" + to_string(number++);
    net.Branches(name, {[&] { conv(name + ".1x1", 192, 1); },
                        [&] {
                          conv(name + ".7x7_1", inner, 1);
                          conv(name + ".7x7_2", inner, {1, 7});
                          conv(name + ".7x7_3", 192, {7, 1});
                        },
                        [&] {
                          conv(name + ".7x7dbl_1", inner, 1);
                          conv(name + ".7x7dbl_2", inner, {7, 1});
                          conv(name + ".7x7dbl_3", inner, {1, 7});
                          conv(name + ".7x7dbl_4", inner, {7, 1});
                          conv(name + ".7x7dbl_5", 192, {1, 7});
                        },
                        [&] { pooled(name, 192); }});
  }
  net.Branches("mixed8", {[&] {
                            conv("mixed8.3x3_1", 192, 1);
                            conv("mixed8.3x3_2", 320, 3, 2, Padding::Valid());
                          },
                          [&] {
                            conv("mixed8.7x7x3_1", 192, 1);
                            conv("mixed8.7x7x3_2", 192, {1, 7});
                            conv("mixed8.7x7x3_3", 192, {7, 1});
                            conv("mixed8.7x7x3_4", 192, 3, 2, Padding::Valid());
                          },
                          [&] { pool("mixed8.pool"); }});

  // 8 x 8: the 3 x 3 branches end in a row and a column side by side.
  for (int i = 9; i <= 10; ++i) {
    const std::string name = "mixed" + to_string(i);
    const auto row_and_column = [&](const std::string& branch) {
      net.Branches(branch, {[&] {
                              conv(branch + "_row", 384, {1, 3});
                            },
                            [&] {
                              conv(branch + "_column", 384, {3, 1});
                            }});
    };
    net.Branches(name, {[&] { conv(name + ".1x1", 320, 1); },
                        [&] {
                          conv(name + ".3x3_1", 384, 1);
                          row_and_column(name + ".3x3_2");
                        },
                        [&] {
                          conv(name + ".3x3dbl_1", 448, 1);
                          conv(name + ".3x3dbl_2", 384, 3);
                          row_and_column(name + ".3x3dbl_3");
                        },
                        [&] { pooled(name, 192); }});
  }
  net.GlobalAveragePool("avg_pool");
  net.Dense("predictions", {.units = 1000});
  net.Activation("predictions_softmax", Function::kSoftmax);
  return net.Finish(Statistics::kInTotal);
}

}  // namespace stepcast
