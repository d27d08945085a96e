// Detection, segmentation, speech and recommendation.
#include <algorithm>
#include <array>
#include <string>

#include "data/workloads/families.h"
#include "data/workloads/network_builder.h"

namespace stepcast {
namespace {

using std::to_string;

// Darknet's convolutional layer, numbered in forward order.
class DarknetConv {
 public:
  explicit DarknetConv(NetworkBuilder& net) : net_(net) {}

  void operator()(std::int64_t filters, std::int64_t kernel, std::int64_t stride = 1) {
    const std::string name = "conv" + to_string(number_++);
    net_.Conv2d(name, {.filters = filters,
                       .kernel = kernel,
                       .stride = stride,
                       .padding = Padding::Explicit(kernel / 2),
                       .bias = false});
    net_.BatchNorm(name + "_bn");
    net_.Activation(name + "_leaky", Function::kLeakyRelu);
  }

 private:
  NetworkBuilder& net_;
  int number_ = 1;
};

void DoubleConv(NetworkBuilder& net, const std::string& name, std::int64_t filters) {
  for (const char* half : {".0", ".1"}) {
    const std::string layer = name + half;
    net.Conv2d(layer + ".conv",
               {.filters = filters, .kernel = 3, .padding = Padding::Explicit(1), .bias = false});
    net.BatchNorm(layer + ".norm");
    net.Activation(layer + ".relu", Function::kRelu);
  }
}

// What the sizes of YOLOv8 differ in: quarters of the filters, thirds of the blocks, and the most
// filters before they are scaled.
struct YoloV8Size {
  const char* letter;
  std::int64_t width_quarters;
  std::int64_t depth_thirds;
  std::int64_t most_filters;
};

class YoloV8Writer {
 public:
  YoloV8Writer(NetworkBuilder& net, const YoloV8Size& size) : net_(net), size_(size) {}

  std::int64_t Filters(std::int64_t filters) const {
    const std::int64_t scaled = std::min(filters, size_.most_filters) * size_.width_quarters;
    return (scaled + 31) / 32 * 8;
  }

  void Conv(const std::string& name, std::int64_t filters, std::int64_t kernel = 1,
            std::int64_t stride = 1) {
    net_.Conv2d(name + ".conv", {.filters = filters,
                                 .kernel = kernel,
                                 .stride = stride,
                                 .padding = Padding::Explicit(kernel / 2),
                                 .bias = false});
    net_.BatchNorm(name + ".bn");
    net_.Activation(name + ".act", Function::kSwish);
  }

  // C2f: one half of the channels passes through the bottlenecks, all of whose outputs are kept.
  void Stage(const std::string& name, std::int64_t filters, std::int64_t usual_blocks,
             bool shortcut) {
    const std::int64_t hidden = filters / 2;
    const std::int64_t blocks = usual_blocks * size_.depth_thirds / 3;
    Conv(name + ".cv1", filters);
    Shape half = net_.shape();
    half.channels = hidden;
    net_.set_shape(half);
    for (std::int64_t i = 0; i < blocks; ++i) {
      const std::string block = name + ".m." + to_string(i);
      Conv(block + ".cv1", hidden, 3);
      Conv(block + ".cv2", hidden, 3);
      if (shortcut) net_.Add(block + ".add", half);
    }
    net_.Concat(name + ".concat", (2 + blocks) * hidden);
    Conv(name + ".cv2", filters);
  }

  // Three poolings, one after another, beside what they begin with.
  void PyramidPooling(const std::string& name) {
    const std::int64_t filters = net_.shape().channels;
    Conv(name + ".cv1", filters / 2);
    for (int i = 0; i < 3; ++i) {
      net_.MaxPool(name + ".m." + to_string(i),
                   {.window = 5, .stride = 1, .padding = Padding::Explicit(2)});
    }
    net_.Concat(name + ".concat", 2 * filters);
    Conv(name + ".cv2", filters);
  }

  // The box as 16 bins for each of four sides, and the classes, from one level.
  void Detect(const std::string& name, const Shape& level, std::int64_t least_filters) {
    constexpr std::int64_t kClasses = 80;
    constexpr std::int64_t kBins = 16;
    const auto branch = [&](const std::string& part, std::int64_t filters, std::int64_t outputs) {
      net_.set_shape(level);
      Conv(part + ".0", filters, 3);
      Conv(part + ".1", filters, 3);
      net_.Conv2d(part + ".2", {.filters = outputs});
    };
    branch(name + ".box", std::max(least_filters / 4, 4 * kBins), 4 * kBins);
    branch(name + ".class", std::max(least_filters, kClasses), kClasses);
  }

 private:
  NetworkBuilder& net_;
  const YoloV8Size& size_;
};

// Jocher, Chaurasia, Qiu: Ultralytics YOLOv8 (2023). The publisher counts 16 numbers more, by which
// bins become a length, and which are not trained.
Workload YoloV8(const YoloV8Size& size, std::int64_t pixels) {
  const std::string letter = size.letter;
  NetworkBuilder net("yolov8" + letter,
                     "YOLOv8" + letter + ", " + ImageText(pixels) + ", 80 classes (COCO)",
                     "ultralytics/ultralytics, yolov8.yaml", {pixels, pixels, 3});
  YoloV8Writer write(net, size);
  write.Conv("model.0", write.Filters(64), 3, 2);
  std::array<Shape, 4> levels;
  constexpr std::array<std::int64_t, 4> kFilters = {128, 256, 512, 1024};
  constexpr std::array<std::int64_t, 4> kBlocks = {3, 6, 6, 3};
  int number = 1;
  const auto next = [&] { return "model." + to_string(number++); };
  for (std::size_t i = 0; i < levels.size(); ++i) {
    write.Conv(next(), write.Filters(kFilters.at(i)), 3, 2);
    write.Stage(next(), write.Filters(kFilters.at(i)), kBlocks.at(i), /*shortcut=*/true);
    levels.at(i) = net.shape();
  }
  write.PyramidPooling(next());
  levels[3] = net.shape();
  // To the larger images and back, joined with what is there.
  const auto join = [&](const Shape& other) {
    net.Concat(next(), net.shape().channels + other.channels);
  };
  for (const std::size_t to : {2, 1}) {
    net.Upsample(next(), 2);
    join(levels.at(to));
    write.Stage(next(), write.Filters(kFilters.at(to)), 3, /*shortcut=*/false);
    levels.at(to) = net.shape();
  }
  for (const std::size_t to : {2, 3}) {
    write.Conv(next(), write.Filters(kFilters.at(to - 1)), 3, 2);
    join(levels.at(to));
    write.Stage(next(), write.Filters(kFilters.at(to)), 3, /*shortcut=*/false);
    levels.at(to) = net.shape();
  }
  for (const std::size_t level : {1, 2, 3}) {
    write.Detect("model.22." + to_string(level - 1), levels.at(level), levels[1].channels);
  }
  return net.Finish(Statistics::kNotInTotal);
}

}  // namespace

Workload YoloV8N(std::int64_t pixels) { return YoloV8({"n", 1, 1, 1024}, pixels); }
Workload YoloV8S(std::int64_t pixels) { return YoloV8({"s", 2, 1, 1024}, pixels); }
Workload YoloV8M(std::int64_t pixels) { return YoloV8({"m", 3, 2, 768}, pixels); }
Workload YoloV8L(std::int64_t pixels) { return YoloV8({"l", 4, 3, 512}, pixels); }
Workload YoloV8X(std::int64_t pixels) { return YoloV8({"x", 5, 3, 512}, pixels); }

// Redmon, Farhadi: YOLOv3 (arXiv 1804.02767). Note that the AdaptDL traces trained it on VOC, 20
// classes, which is 0.5 % fewer parameters, at sizes varying around 448 x 448.
Workload YoloV3(std::int64_t pixels) {
  NetworkBuilder net("yolov3", "YOLOv3, " + ImageText(pixels) + ", 80 classes (COCO)",
                     "Darknet cfg/yolov3.cfg; total as ultralytics/yolov3; Redmon and Farhadi, "
                     "arXiv 1804.02767",
                     {pixels, pixels, 3});
  net.LetInputsVary();                    // trained at several sizes of image
  constexpr std::int64_t kOutputs = 255;  // 3 anchors x (4 of the box + objectness + 80 classes)
  DarknetConv conv(net);

  // Darknet-53; the last three stages feed the heads.
  constexpr std::array<int, 5> kBlocks = {1, 2, 8, 8, 4};
  std::array<Shape, 5> stages;
  std::int64_t filters = 64;
  conv(32, 3);
  for (std::size_t stage = 0; stage < kBlocks.size(); ++stage, filters *= 2) {
    conv(filters, 3, 2);
    const Shape shape = net.shape();
    for (int i = 0; i < kBlocks.at(stage); ++i) {
      conv(filters / 2, 1);
      conv(filters, 3);
      net.Add("shortcut" + to_string(stage + 1) + "_" + to_string(i + 1), shape);
    }
    stages.at(stage) = shape;
  }

  // One head a scale, coarse to fine.
  filters = 512;
  for (std::size_t head = 0; head < 3; ++head, filters /= 2) {
    if (head > 0) {
      const Shape& finer = stages.at(4 - head);
      conv(filters, 1);
      net.Upsample("upsample" + to_string(head), 2);
      net.Concat("route" + to_string(head), net.shape().channels + finer.channels);
    }
    for (int i = 0; i < 2; ++i) {
      conv(filters, 1);
      conv(2 * filters, 3);
    }
    conv(filters, 1);
    const Shape trunk = net.shape();
    conv(2 * filters, 3);
    net.Conv2d("detect" + to_string(head + 1), {.filters = kOutputs});
    net.set_shape(trunk);
  }
  return net.Finish(Statistics::kNotInTotal);
}

// Ronneberger et al.: U-Net (arXiv 1505.04597), as it is trained today: of colour images into two
// classes, with normalisation, and padded, so that the output has the size of the input and nothing
// is cropped. The paper's has 572 x 572 pixels of grey, of which it tells 388 x 388.
Workload UNet(std::int64_t pixels) {
  NetworkBuilder net("unet", "U-Net, padded, " + ImageText(pixels) + ", 2 classes",
                     "milesial/Pytorch-UNet; Ronneberger et al., arXiv 1505.04597",
                     {pixels, pixels, 3});
  constexpr std::size_t kSteps = 4;
  std::array<Shape, kSteps> skipped;
  std::int64_t filters = 64;
  DoubleConv(net, "inc", filters);
  for (std::size_t i = 0; i < kSteps; ++i) {
    skipped.at(i) = net.shape();
    const std::string down = "down" + to_string(i + 1);
    net.MaxPool(down + ".pool", {});
    filters *= 2;
    DoubleConv(net, down, filters);
  }
  for (std::size_t i = 0; i < kSteps; ++i) {
    const std::string up = "up" + to_string(i + 1);
    filters /= 2;
    net.TransposedConv2d(up + ".up", {.filters = filters});
    net.Concat(up + ".concat", filters + skipped.at(kSteps - 1 - i).channels);
    DoubleConv(net, up, filters);
  }
  net.Conv2d("outc", {.filters = 2});
  return net.Finish(Statistics::kNotInTotal);
}

// Amodei et al.: Deep Speech 2 (arXiv 1512.02595), in the size that the AdaptDL traces trained
// (petuum/adaptdl, benchmark/models/deepspeech2: GRU, 5 layers of 800, both directions summed, 29
// labels): 41,187,968 parameters. The work is for 5 s of speech: 16 kHz, windows of 20 ms every
// 10 ms, so 161 frequencies x 501 frames. Utterances differ in length, and the work with them.
Workload DeepSpeech2() {
  NetworkBuilder net("deepspeech2",
                     "Deep Speech 2: 2 convolutions, 5 bidirectional GRU of 800; 5 s of speech",
                     "petuum/adaptdl benchmark/models/deepspeech2, after "
                     "SeanNaren/deepspeech.pytorch; Amodei et al., arXiv 1512.02595",
                     {161, 501, 1});
  net.LetInputsVary();  // utterances
  constexpr std::int64_t kHidden = 800;
  constexpr int kLayers = 5;
  constexpr std::int64_t kLabels = 29;
  net.Conv2d(
      "conv.0",
      {.filters = 32, .kernel = {41, 11}, .stride = {2, 2}, .padding = Padding::Explicit({20, 5})});
  net.BatchNorm("conv.1");
  net.Activation("conv.2", Function::kHardtanh);
  net.Conv2d(
      "conv.3",
      {.filters = 32, .kernel = {21, 11}, .stride = {2, 1}, .padding = Padding::Explicit({10, 5})});
  net.BatchNorm("conv.4");
  net.Activation("conv.5", Function::kHardtanh);
  const Shape image = net.shape();
  net.Rearrange("transpose", {image.width, 1, image.height * image.channels});
  for (int i = 0; i < kLayers; ++i) {
    const std::string layer = "rnns." + to_string(i) + ".";
    if (i > 0) net.BatchNorm(layer + "batch_norm");
    net.Recurrent(layer + "rnn",
                  {.cell = RecurrentCell::kGru, .hidden = kHidden, .bidirectional = true});
    net.set_shape({net.shape().height, 1, kHidden});  // one direction
    net.Add(layer + "sum_directions", net.shape());
  }
  net.BatchNorm("fc.0");
  net.Dense("fc.1", {.units = kLabels, .bias = false});
  net.Activation("softmax", Function::kSoftmax);
  return net.Finish(Statistics::kNotInTotal);
}

// He et al.: Neural Collaborative Filtering, WWW 2017 (arXiv 1708.05031): NeuMF with the defaults
// of guoyang9/NCF, which the AdaptDL traces used (factor_num 32, num_layers 3). 1,602,657
// parameters, 97 % of them in the embeddings.
Workload NeuralCollaborativeFiltering() {
  NetworkBuilder net("ncf", "NeuMF, 32 factors, 3 layers, MovieLens-1M (6040 users, 3706 items)",
                     "petuum/adaptdl benchmark/models/ncf, after guoyang9/NCF; He et al., "
                     "arXiv 1708.05031",
                     {1, 1, 1});
  constexpr std::int64_t kUsers = 6040;
  constexpr std::int64_t kItems = 3706;
  constexpr std::int64_t kFactors = 32;
  constexpr std::int64_t kFeatures = 4 * kFactors;
  net.Embedding("embed_user_gmf", {.rows = kUsers, .features = kFactors});
  net.Embedding("embed_item_gmf", {.rows = kItems, .features = kFactors});
  net.Multiply("gmf", net.shape());
  net.Embedding("embed_user_mlp", {.rows = kUsers, .features = kFeatures});
  net.Embedding("embed_item_mlp", {.rows = kItems, .features = kFeatures});
  net.Concat("mlp_input", 2 * kFeatures);
  for (int i = 0; i < 3; ++i) {
    const std::string layer = "mlp." + to_string(i);
    net.Dense(layer, {.units = net.shape().channels / 2});
    net.Activation(layer + ".relu", Function::kRelu);
  }
  net.Concat("interaction", 2 * kFactors);
  net.Dense("predict", {.units = 1});
  return net.Finish(Statistics::kNotInTotal);
}

}  // namespace stepcast
