// The networks of the catalogue, one function each; catalog.h is what other rooms include. Those
// that take images or sequences of any size are told theirs: pixels of an image's side, or tokens.
#ifndef STEPCAST_DATA_WORKLOADS_FAMILIES_H_
#define STEPCAST_DATA_WORKLOADS_FAMILIES_H_

#include <cstdint>

#include "data/record/workload.h"

namespace stepcast {

// Positions that are learnt: no sequence is longer.
inline constexpr int kBertPositions = 512;
inline constexpr int kGpt2Positions = 1024;
// The sequence length of the SQuAD fine-tuning in google-research/bert, README.
inline constexpr int kSquadTokens = 384;

// residual_networks.cc
Workload ResNet18(std::int64_t pixels);
Workload ResNet18Cifar10();
Workload ResNet32();
Workload ResNet50(std::int64_t pixels);
Workload ResNet101(std::int64_t pixels);
Workload ResNet152(std::int64_t pixels);
Workload ResNet200(std::int64_t pixels);

// mobile_networks.cc
Workload MobileNet(std::int64_t pixels);
Workload MobileNetV2(std::int64_t pixels);
Workload EfficientNetB0(std::int64_t pixels);

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

// transformer_networks.cc
Workload BertBase(std::int64_t tokens);
Workload BertLarge(std::int64_t tokens);
Workload Gpt2(std::int64_t tokens);

// other_networks.cc
Workload YoloV3(std::int64_t pixels);
Workload DeepSpeech2();
Workload NeuralCollaborativeFiltering();

}  // namespace stepcast

#endif  // STEPCAST_DATA_WORKLOADS_FAMILIES_H_
