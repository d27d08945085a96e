#include "data/workloads/catalog.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "data/record/input_error.h"
#include "data/values/spelling.h"
#include "data/values/suggest.h"
#include "data/values/text_as_number.h"
#include "data/workloads/by_numbers.h"
#include "data/workloads/families.h"

namespace stepcast {
namespace {

constexpr std::int64_t kBytesPerGradient = 4;

// The least sides are those that Keras allows; YOLOv3's grids meet at multiples of 32 only, and
// U-Net's at multiples of 16, where patches have to cover the image of a ViT or a ConvNeXt. No
// length of an operation is beyond those that files may state.
constexpr const char* kPixels = "pixels";
constexpr int kMostPixels = 4096;
constexpr InputSizes Image(int usual) { return {kPixels, usual, 32, kMostPixels}; }
constexpr InputSizes kImage = Image(224);
// From the first multiple that is no less than 32 to the last that is no more than the most.
constexpr InputSizes Patches(int side) {
  return {kPixels, 224, (32 + side - 1) / side * side, kMostPixels / side * side, side};
}
constexpr const char* kTokens = "tokens";
constexpr InputSizes Tokens(int usual, int most) { return {kTokens, usual, 1, most}; }
// 128 Ki, as many as language models since Llama 3.1 say they take.
constexpr int kLongTokens = 131072;
// A text as long as those of the pretraining.
constexpr InputSizes Text(int most) { return Tokens(most, most); }
// Distances have no end; a table of them for each pair of tokens is looked up.
constexpr int kT5Tokens = 512;
constexpr int kMostT5Tokens = 1024;

struct Entry {
  std::string_view name;
  Workload (*make)() = nullptr;
  Workload (*make_sized)(std::int64_t) = nullptr;
  InputSizes sizes = {};

  constexpr Entry(std::string_view its, Workload (*of_it)()) : name(its), make(of_it) {}
  constexpr Entry(std::string_view its, Workload (*of_size)(std::int64_t), const InputSizes& all)
      : name(its), make_sized(of_size), sizes(all) {}
};

// Sorted by name.
constexpr Entry kEntries[] = {
    {"alexnet", AlexNet},
    {"bert_base", BertBase, Tokens(kSquadTokens, kBertPositions)},
    {"bert_large", BertLarge, Tokens(kSquadTokens, kBertPositions)},
    {"bloom_7b1", Bloom7B1, Text(2048)},
    {"codellama_34b", CodeLlama34B, Tokens(4096, 16384)},
    {"convnext_base", ConvNeXtBase, Patches(4)},
    {"convnext_large", ConvNeXtLarge, Patches(4)},
    {"convnext_small", ConvNeXtSmall, Patches(4)},
    {"convnext_tiny", ConvNeXtTiny, Patches(4)},
    {"deepspeech2", DeepSpeech2},
    {"densenet121", DenseNet121, kImage},
    {"densenet169", DenseNet169, kImage},
    {"densenet201", DenseNet201, kImage},
    {"efficientnet_b0", EfficientNetB0, kImage},
    {"efficientnet_b1", EfficientNetB1, Image(240)},
    {"efficientnet_b2", EfficientNetB2, Image(260)},
    {"efficientnet_b3", EfficientNetB3, Image(300)},
    {"efficientnet_b4", EfficientNetB4, Image(380)},
    {"efficientnet_b5", EfficientNetB5, Image(456)},
    {"efficientnet_b6", EfficientNetB6, Image(528)},
    {"efficientnet_b7", EfficientNetB7, Image(600)},
    {"gemma2_27b", Gemma2With27B, Text(4096)},
    {"gemma2_2b", Gemma2With2B, Text(4096)},
    {"gemma2_9b", Gemma2With9B, Text(4096)},
    {"gemma_2b", GemmaWith2B, Text(8192)},
    {"gemma_7b", GemmaWith7B, Text(8192)},
    {"gpt2", Gpt2, Text(kGpt2Positions)},
    {"gpt2_large", Gpt2Large, Text(kGpt2Positions)},
    {"gpt2_medium", Gpt2Medium, Text(kGpt2Positions)},
    {"gpt2_xl", Gpt2Xl, Text(kGpt2Positions)},
    {"gpt_neox_20b", GptNeox20B, Text(2048)},
    {"inception_v1", InceptionV1, kImage},
    {"inception_v3", InceptionV3, {kPixels, 299, 75, kMostPixels}},
    {"llama2_13b", Llama2With13B, Text(4096)},
    {"llama2_70b", Llama2With70B, Text(4096)},
    {"llama2_7b", Llama2With7B, Text(4096)},
    {"llama3.1_405b", Llama31With405B, Tokens(8192, kLongTokens)},
    {"llama3.1_70b", Llama31With70B, Tokens(8192, kLongTokens)},
    {"llama3.1_8b", Llama31With8B, Tokens(8192, kLongTokens)},
    {"llama3.2_1b", Llama32With1B, Tokens(8192, kLongTokens)},
    {"llama3.2_3b", Llama32With3B, Tokens(8192, kLongTokens)},
    {"llama3_70b", Llama3With70B, Text(8192)},
    {"llama3_8b", Llama3With8B, Text(8192)},
    {"llama_13b", Llama13B, Tokens(2048, 4096)},
    {"llama_7b", Llama7B, Tokens(2048, 4096)},
    {"mistral_7b", Mistral7B, Text(4096)},
    {"mistral_7b_v0.2", Mistral7BVersion2, Tokens(4096, 32768)},
    {"mistral_7b_v0.3", Mistral7BVersion3, Tokens(4096, 32768)},
    {"mlp_imagenet", MlpImagenet},
    {"mlp_mnist", MlpMnist},
    {"mobilenet", MobileNet, kImage},
    {"mobilenet_v2", MobileNetV2, kImage},
    {"mobilenet_v3_large", MobileNetV3Large, kImage},
    {"mobilenet_v3_small", MobileNetV3Small, kImage},
    {"ncf", NeuralCollaborativeFiltering},
    {"opt_1.3b", Opt1300M, Text(kOptPositions)},
    {"opt_125m", Opt125M, Text(kOptPositions)},
    {"opt_13b", Opt13B, Text(kOptPositions)},
    {"opt_2.7b", Opt2700M, Text(kOptPositions)},
    {"opt_6.7b", Opt6700M, Text(kOptPositions)},
    {"phi3_medium", Phi3Medium, Tokens(4096, kLongTokens)},
    {"phi3_mini", Phi3Mini, Tokens(4096, kLongTokens)},
    {"phi4", Phi4, Tokens(4096, 16384)},
    {"qwen2.5_0.5b", Qwen25With500M, Tokens(4096, 32768)},
    {"qwen2.5_1.5b", Qwen25With1500M, Tokens(4096, 32768)},
    {"qwen2.5_14b", Qwen25With14B, Tokens(4096, kLongTokens)},
    {"qwen2.5_32b", Qwen25With32B, Tokens(4096, kLongTokens)},
    {"qwen2.5_3b", Qwen25With3B, Tokens(4096, 32768)},
    {"qwen2.5_72b", Qwen25With72B, Tokens(4096, kLongTokens)},
    {"qwen2.5_7b", Qwen25With7B, Tokens(4096, kLongTokens)},
    {"qwen3_0.6b", Qwen3With600M, Tokens(4096, 32768)},
    {"qwen3_1.7b", Qwen3With1700M, Tokens(4096, 32768)},
    {"qwen3_14b", Qwen3With14B, Tokens(4096, kLongTokens)},
    {"qwen3_32b", Qwen3With32B, Tokens(4096, kLongTokens)},
    {"qwen3_4b", Qwen3With4B, Tokens(4096, kLongTokens)},
    {"qwen3_8b", Qwen3With8B, Tokens(4096, kLongTokens)},
    {"resnet101", ResNet101, kImage},
    {"resnet152", ResNet152, kImage},
    {"resnet18", ResNet18, kImage},
    {"resnet18_cifar10", ResNet18Cifar10},
    {"resnet200", ResNet200, kImage},
    {"resnet32", ResNet32},
    {"resnet50", ResNet50, kImage},
    {"resnet50_v1_5", ResNet50V15, kImage},
    {"resnext101_32x8d", ResNeXt101, kImage},
    {"resnext50_32x4d", ResNeXt50, kImage},
    {"roberta_base", RobertaBase, Text(kBertPositions)},
    {"roberta_large", RobertaLarge, Text(kBertPositions)},
    {"switch_base_8",
     SwitchBase8,
     {kTokens, kT5Tokens, kSwitchExperts, kMostT5Tokens, kSwitchExperts}},
    {"t5_base", T5Base, Tokens(kT5Tokens, kMostT5Tokens)},
    {"t5_large", T5Large, Tokens(kT5Tokens, kMostT5Tokens)},
    {"t5_small", T5Small, Tokens(kT5Tokens, kMostT5Tokens)},
    {"t5_v1_1_base", T5V11Base, Tokens(kT5Tokens, kMostT5Tokens)},
    {"t5_v1_1_large", T5V11Large, Tokens(kT5Tokens, kMostT5Tokens)},
    {"t5_v1_1_xl", T5V11Xl, Tokens(kT5Tokens, kMostT5Tokens)},
    {"unet", UNet, {kPixels, 512, 32, 2048, 16}},
    {"vgg16", Vgg16},
    {"vgg19", Vgg19},
    {"vit_b_16", VitB16, Patches(16)},
    {"vit_b_32", VitB32, Patches(32)},
    {"vit_h_14", VitH14, Patches(14)},
    {"vit_l_16", VitL16, Patches(16)},
    {"vit_l_32", VitL32, Patches(32)},
    {"vit_s_16", VitS16, Patches(16)},
    {"vit_ti_16", VitTi16, Patches(16)},
    {"whisper_small", WhisperSmall, Text(kWhisperPositions)},
    {"wide_resnet101_2", WideResNet101, kImage},
    {"wide_resnet50_2", WideResNet50, kImage},
    {"yolov3", YoloV3, {kPixels, 416, 32, kMostPixels, 32}},
    {"yolov8l", YoloV8L, {kPixels, 640, 32, kMostPixels, 32}},
    {"yolov8m", YoloV8M, {kPixels, 640, 32, kMostPixels, 32}},
    {"yolov8n", YoloV8N, {kPixels, 640, 32, kMostPixels, 32}},
    {"yolov8s", YoloV8S, {kPixels, 640, 32, kMostPixels, 32}},
    {"yolov8x", YoloV8X, {kPixels, 640, 32, kMostPixels, 32}},
};

struct Alias {
  std::string_view alias;
  std::string_view name;
};

constexpr Alias kAliases[] = {
    {"bert", "bert_base"},
    {"bert_base_uncased", "bert_base"},
    {"bert_large_uncased", "bert_large"},
    {"bloom", "bloom_7b1"},
    {"deit_small", "vit_s_16"},
    {"deit_tiny", "vit_ti_16"},
    {"googlenet", "inception_v1"},
    {"gpt2_small", "gpt2"},
    {"gpt_neox", "gpt_neox_20b"},
    {"llama3", "llama3_8b"},
    {"llama3.1", "llama3.1_8b"},
    {"llama3.3_70b", "llama3.1_70b"},
    {"mistral", "mistral_7b"},
    {"mistral_7b_v0.1", "mistral_7b"},
    {"mobilenet_v1", "mobilenet"},
    {"neumf", "ncf"},
    {"phi3", "phi3_mini"},
    {"phi3_medium_128k", "phi3_medium"},
    {"phi3_mini_128k", "phi3_mini"},
    {"phi4_14b", "phi4"},
    {"qwen2_0.5b", "qwen2.5_0.5b"},
    {"qwen2_1.5b", "qwen2.5_1.5b"},
    {"qwen2_72b", "qwen2.5_72b"},
    {"qwen2_7b", "qwen2.5_7b"},
    {"resnet200_v2", "resnet200"},
    {"resnet50_v1.5", "resnet50_v1_5"},
    {"roberta", "roberta_base"},
    {"switch_base", "switch_base_8"},
    {"t5", "t5_base"},
    {"t5_v1.1_base", "t5_v1_1_base"},
    {"t5_v1.1_large", "t5_v1_1_large"},
    {"t5_v1.1_xl", "t5_v1_1_xl"},
    {"vit", "vit_b_16"},
    {"vit_tiny_16", "vit_ti_16"},
    {"whisper", "whisper_small"},
};

constexpr char kAtSize = '@';

const Entry* FindEntry(std::string_view name) {
  const std::string spelled = CanonicalName(name);
  const auto is = [&](std::string_view known) { return CanonicalName(known) == spelled; };
  for (const Alias& alias : kAliases) {
    if (!is(alias.alias)) continue;
    return &*std::find_if(std::begin(kEntries), std::end(kEntries),
                          [&](const Entry& entry) { return entry.name == alias.name; });
  }
  const auto* const found = std::find_if(std::begin(kEntries), std::end(kEntries),
                                         [&](const Entry& entry) { return is(entry.name); });
  return found == std::end(kEntries) ? nullptr : found;
}

// The size after the @ of a name.
int SizeOf(const Entry& entry, std::string_view name, std::string_view text) {
  const auto wrong = [&](const char* problem, const std::string& allowed) {
    return InputError({"", 0, "workload"}, std::string(name), problem, allowed);
  };
  if (entry.make_sized == nullptr) {
    throw wrong("takes one size of input only", std::string(entry.name));
  }
  const InputSizes& sizes = entry.sizes;
  const auto size = TextAsNumber<int>(text);
  if (!size || *size < sizes.least || *size > sizes.most || *size % sizes.step != 0) {
    throw wrong("has no such size of input",
                std::string(entry.name) + kAtSize + "N, N " +
                    (sizes.step > 1 ? "a multiple of " + std::to_string(sizes.step) : "whole") +
                    " from " + std::to_string(sizes.least) + " to " + std::to_string(sizes.most) +
                    " " + sizes.unit);
  }
  return *size;
}

// The message of so many bytes that "message_N" names, in any spelling with one sign or none before
// the number; none for any other name.
std::optional<Workload> FindMessage(std::string_view name) {
  constexpr std::string_view kMessage = "message";
  constexpr std::int64_t kMostBytes = 1'000'000'000'000'000;
  const std::size_t digits = std::min(name.find_first_of("0123456789"), name.size());
  const std::string_view word = name.substr(0, digits);
  if (CanonicalName(word) != kMessage || word.size() > kMessage.size() + 1) return std::nullopt;
  const auto bytes = TextAsNumber<std::int64_t>(name.substr(digits));
  if (!bytes || *bytes < kBytesPerGradient || *bytes > kMostBytes) return std::nullopt;
  Workload message;
  message.name = std::string(kMessage) + "_" + std::to_string(*bytes);
  message.title = "a message of " + std::to_string(*bytes) + " bytes";
  message.parameters = message.trainable_parameters = *bytes / kBytesPerGradient;
  message.gradient_bytes = Bytes(static_cast<double>(*bytes));
  message.communication_only = true;
  return message;
}

}  // namespace

std::vector<std::string> WorkloadNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

std::optional<Workload> FindWorkload(std::string_view name) {
  const std::size_t at = name.find(kAtSize);
  const Entry* entry = FindEntry(name.substr(0, at));
  if (entry == nullptr) {
    std::optional<Workload> decoder = FindByNumbers(name);
    return decoder ? decoder : FindMessage(name);
  }
  if (at == std::string_view::npos) {
    return entry->make_sized != nullptr ? entry->make_sized(entry->sizes.usual) : entry->make();
  }
  const int size = SizeOf(*entry, name, name.substr(at + 1));
  Workload workload = entry->make_sized(size);
  if (size != entry->sizes.usual) workload.name += kAtSize + std::to_string(size);
  return workload;
}

std::string DidYouMeanWorkload(std::string_view name, std::span<const std::string> names) {
  const std::size_t at = std::min(name.find(kAtSize), name.size());
  std::string meant = NearestName(name.substr(0, at), names);
  const bool has_size = at < name.size() && TextAsNumber<int>(name.substr(at + 1));
  if (has_size && SizesOf(meant)) meant += name.substr(at);
  return DidYouMean(meant);
}

Workload WorkloadOfSize(std::string name, std::int64_t parameters) {
  Workload workload;
  workload.title = name;
  workload.name = std::move(name);
  workload.parameters = workload.trainable_parameters = parameters;
  workload.gradient_bytes = Bytes(kBytesPerGradient * static_cast<double>(parameters));
  return workload;
}

std::optional<InputSizes> SizesOf(std::string_view name) {
  const Entry* entry = FindEntry(name);
  if (entry == nullptr || entry->make_sized == nullptr) return std::nullopt;
  return entry->sizes;
}

}  // namespace stepcast
