// The networks of the catalogue, one function each; catalog.h is what other rooms include.
#ifndef STEPCAST_DATA_WORKLOADS_FAMILIES_H_
#define STEPCAST_DATA_WORKLOADS_FAMILIES_H_

#include "data/record/workload.h"

namespace stepcast {

// residual_networks.cc
Workload ResNet18();
Workload ResNet18Cifar10();
Workload ResNet32();
Workload ResNet50();
Workload ResNet101();
Workload ResNet152();
Workload ResNet200();

// mobile_networks.cc
Workload MobileNet();
Workload MobileNetV2();
Workload EfficientNetB0();

// inception_networks.cc
Workload InceptionV1();
Workload InceptionV3();

// feedforward_networks.cc
Workload MlpMnist();
Workload MlpImagenet();
Workload AlexNet();
Workload Vgg16();
Workload Vgg19();
Workload DenseNet121();

// transformer_networks.cc
Workload BertBase();
Workload BertLarge();
Workload Gpt2();

// other_networks.cc
Workload YoloV3();
Workload DeepSpeech2();
Workload NeuralCollaborativeFiltering();

}  // namespace stepcast

#endif  // STEPCAST_DATA_WORKLOADS_FAMILIES_H_
