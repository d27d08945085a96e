#include "data/workloads/catalog.h"

#include "data/workloads/families.h"

namespace stepcast {
namespace {

struct Entry {
  std::string_view name;
  Workload (*make)();
};

// Sorted by name.
constexpr Entry kEntries[] = {
    {"alexnet", AlexNet},
    {"bert_base", BertBase},
    {"bert_large", BertLarge},
    {"deepspeech2", DeepSpeech2},
    {"densenet121", DenseNet121},
    {"efficientnet_b0", EfficientNetB0},
    {"gpt2", Gpt2},
    {"inception_v1", InceptionV1},
    {"inception_v3", InceptionV3},
    {"mlp_imagenet", MlpImagenet},
    {"mlp_mnist", MlpMnist},
    {"mobilenet", MobileNet},
    {"mobilenet_v2", MobileNetV2},
    {"ncf", NeuralCollaborativeFiltering},
    {"resnet101", ResNet101},
    {"resnet152", ResNet152},
    {"resnet18", ResNet18},
    {"resnet18_cifar10", ResNet18Cifar10},
    {"resnet200", ResNet200},
    {"resnet32", ResNet32},
    {"resnet50", ResNet50},
    {"vgg16", Vgg16},
    {"vgg19", Vgg19},
    {"yolov3", YoloV3},
};

struct Alias {
  std::string_view alias;
  std::string_view name;
};

constexpr Alias kAliases[] = {
    {"bert", "bert_base"},  {"googlenet", "inception_v1"},
    {"gpt2_small", "gpt2"}, {"mobilenet_v1", "mobilenet"},
    {"neumf", "ncf"},       {"resnet200_v2", "resnet200"},
};

}  // namespace

std::vector<std::string> WorkloadNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

std::optional<Workload> FindWorkload(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (alias.alias == name) name = alias.name;
  }
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.make();
  }
  return std::nullopt;
}

}  // namespace stepcast
