// The networks of the catalogue, one function each; catalog.h is what other rooms include. Those
// that take images or sequences of any size are told theirs: pixels of an image's side, or tokens.
#ifndef STEPCAST_DATA_WORKLOADS_FAMILIES_H_
#define STEPCAST_DATA_WORKLOADS_FAMILIES_H_

#include <cstdint>
#include <string>

#include "data/record/workload.h"

namespace stepcast {

// Positions that are learnt: no sequence is longer.
inline constexpr int kBertPositions = 512;
inline constexpr int kGpt2Positions = 1024;
inline constexpr int kOptPositions = 2048;
inline constexpr int kWhisperPositions = 448;
// Rows of their tables of tokens.
inline constexpr int kGpt2Vocabulary = 50257;
inline constexpr int kLlamaVocabulary = 32000;
// Features within the feed-forward part of GPT-2.
inline std::int64_t GptMlp(std::int64_t hidden) { return 4 * hidden; }
// The sequence length of the SQuAD fine-tuning in google-research/bert, README.
inline constexpr int kSquadTokens = 384;
// Each expert has one token at least.
inline constexpr int kSwitchExperts = 8;

// residual_networks.cc
Workload ResNet18(std::int64_t pixels);
Workload ResNet18Cifar10();
Workload ResNet32();
Workload ResNet50(std::int64_t pixels);
Workload ResNet50V15(std::int64_t pixels);
Workload ResNet101(std::int64_t pixels);
Workload ResNet152(std::int64_t pixels);
Workload ResNet200(std::int64_t pixels);
Workload ResNeXt50(std::int64_t pixels);
Workload ResNeXt101(std::int64_t pixels);
Workload WideResNet50(std::int64_t pixels);
Workload WideResNet101(std::int64_t pixels);
Workload ConvNeXtTiny(std::int64_t pixels);
Workload ConvNeXtSmall(std::int64_t pixels);
Workload ConvNeXtBase(std::int64_t pixels);
Workload ConvNeXtLarge(std::int64_t pixels);

// mobile_networks.cc
Workload MobileNet(std::int64_t pixels);
Workload MobileNetV2(std::int64_t pixels);
Workload MobileNetV3Large(std::int64_t pixels);
Workload MobileNetV3Small(std::int64_t pixels);
Workload EfficientNetB0(std::int64_t pixels);
Workload EfficientNetB1(std::int64_t pixels);
Workload EfficientNetB2(std::int64_t pixels);
Workload EfficientNetB3(std::int64_t pixels);
Workload EfficientNetB4(std::int64_t pixels);
Workload EfficientNetB5(std::int64_t pixels);
Workload EfficientNetB6(std::int64_t pixels);
Workload EfficientNetB7(std::int64_t pixels);

// inception_networks.cc
Workload InceptionV1(std::int64_t pixels);
Workload InceptionV3(std::int64_t pixels);

// feedforward_networks.cc
Workload MlpMnist();
Workload MlpImagenet();
Workload AlexNet();
Workload Vgg16();
Workload Vgg19();
Workload DenseNet121(std::int64_t pixels);
Workload DenseNet169(std::int64_t pixels);
Workload DenseNet201(std::int64_t pixels);

// transformer_networks.cc
Workload BertBase(std::int64_t tokens);
Workload BertLarge(std::int64_t tokens);
Workload RobertaBase(std::int64_t tokens);
Workload RobertaLarge(std::int64_t tokens);
Workload VitTi16(std::int64_t pixels);
Workload VitS16(std::int64_t pixels);
Workload VitB16(std::int64_t pixels);
Workload VitB32(std::int64_t pixels);
Workload VitL16(std::int64_t pixels);
Workload VitL32(std::int64_t pixels);
Workload VitH14(std::int64_t pixels);

// decoder_networks.cc

// The lengths of a decoder.
struct DecoderNumbers {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;           // features of each token
  std::int64_t heads = 0;            // of queries
  std::int64_t key_value_heads = 0;  // each for a group of those of queries
  std::int64_t mlp = 0;              // features within the feed-forward part
  std::int64_t vocabulary = 0;
};
// Decoders in the form of GPT-2, with a learnt position for each of the tokens, and of LLaMA.
Workload GptOf(const std::string& name, const DecoderNumbers& numbers, std::int64_t tokens);
Workload LlamaOf(const std::string& name, const DecoderNumbers& numbers, std::int64_t tokens);

Workload Gpt2(std::int64_t tokens);
Workload Gpt2Medium(std::int64_t tokens);
Workload Gpt2Large(std::int64_t tokens);
Workload Gpt2Xl(std::int64_t tokens);
Workload Opt125M(std::int64_t tokens);
Workload Opt1300M(std::int64_t tokens);
Workload Opt2700M(std::int64_t tokens);
Workload Opt6700M(std::int64_t tokens);
Workload Opt13B(std::int64_t tokens);
Workload Llama7B(std::int64_t tokens);
Workload Llama13B(std::int64_t tokens);
Workload Llama2With7B(std::int64_t tokens);
Workload Llama2With13B(std::int64_t tokens);
Workload Llama2With70B(std::int64_t tokens);
Workload CodeLlama34B(std::int64_t tokens);
Workload Llama31With8B(std::int64_t tokens);
Workload Llama31With70B(std::int64_t tokens);
Workload Llama31With405B(std::int64_t tokens);
Workload Llama32With1B(std::int64_t tokens);
Workload Llama32With3B(std::int64_t tokens);
Workload Llama3With8B(std::int64_t tokens);
Workload Llama3With70B(std::int64_t tokens);
Workload Mistral7B(std::int64_t tokens);
Workload Mistral7BVersion2(std::int64_t tokens);
Workload Mistral7BVersion3(std::int64_t tokens);
Workload Qwen25With500M(std::int64_t tokens);
Workload Qwen25With1500M(std::int64_t tokens);
Workload Qwen25With3B(std::int64_t tokens);
Workload Qwen25With7B(std::int64_t tokens);
Workload Qwen25With14B(std::int64_t tokens);
Workload Qwen25With32B(std::int64_t tokens);
Workload Qwen25With72B(std::int64_t tokens);
Workload Qwen3With600M(std::int64_t tokens);
Workload Qwen3With1700M(std::int64_t tokens);
Workload Qwen3With4B(std::int64_t tokens);
Workload Qwen3With8B(std::int64_t tokens);
Workload Qwen3With14B(std::int64_t tokens);
Workload Qwen3With32B(std::int64_t tokens);
Workload Phi3Mini(std::int64_t tokens);
Workload Phi3Medium(std::int64_t tokens);
Workload Phi4(std::int64_t tokens);
Workload GemmaWith2B(std::int64_t tokens);
Workload GemmaWith7B(std::int64_t tokens);
Workload Gemma2With2B(std::int64_t tokens);
Workload Gemma2With9B(std::int64_t tokens);
Workload Gemma2With27B(std::int64_t tokens);
Workload GptNeox20B(std::int64_t tokens);
Workload Bloom7B1(std::int64_t tokens);

// encoder_decoder_networks.cc
Workload T5Small(std::int64_t tokens);
Workload T5Base(std::int64_t tokens);
Workload T5Large(std::int64_t tokens);
Workload T5V11Base(std::int64_t tokens);
Workload T5V11Large(std::int64_t tokens);
Workload T5V11Xl(std::int64_t tokens);
Workload SwitchBase8(std::int64_t tokens);
Workload WhisperSmall(std::int64_t tokens);

// other_networks.cc
Workload YoloV3(std::int64_t pixels);
Workload YoloV8N(std::int64_t pixels);
Workload YoloV8S(std::int64_t pixels);
Workload YoloV8M(std::int64_t pixels);
Workload YoloV8L(std::int64_t pixels);
Workload YoloV8X(std::int64_t pixels);
Workload UNet(std::int64_t pixels);
Workload DeepSpeech2();
Workload NeuralCollaborativeFiltering();

}  // namespace stepcast

#endif  // STEPCAST_DATA_WORKLOADS_FAMILIES_H_
