// The networks stepcast knows by name, layer by layer, generated from their definitions.
//
// Names are lower case, as torchvision and Keras spell them. Input is 224 x 224 x 3 and output 1000
// classes (ImageNet) unless the table says otherwise.
//
//   name               what                                            structure and totals from
//   alexnet            AlexNet, one column                              torchvision
//   bert_base          BERT-base uncased with pooler, 384 tokens        Hugging Face BertModel
//   bert_large         BERT-large uncased with pooler, 384 tokens       Hugging Face BertModel
//   deepspeech2        2 convolutions, 5 bidirectional GRU of 800, 5 s  petuum/adaptdl
//   densenet121        DenseNet-121                                     Keras
//   efficientnet_b0    EfficientNet-B0                                  Keras
//   gpt2               GPT-2 small, 1024 tokens                         Hugging Face, tied head
//   inception_v1       GoogLeNet without auxiliary classifiers          torchvision
//   inception_v3       Inception v3, 299 x 299 x 3                      Keras
//   mlp_imagenet       224 x 224 x 3 -> 512 -> 512 -> 1000              ours, after mlp_mnist
//   mlp_mnist          28 x 28 -> 512 -> 512 -> 10                      Keras example mnist_mlp.py
//   mobilenet          MobileNet v1, width 1                            Keras
//   mobilenet_v2       MobileNet v2, width 1                            Keras
//   ncf                NeuMF, 32 factors, MovieLens-1M                  petuum/adaptdl
//   resnet18           ResNet-18                                        torchvision
//   resnet18_cifar10   ResNet-18 for 32 x 32 x 3, 10 classes            kuangliu/pytorch-cifar
//   resnet32           ResNet-32 for 32 x 32 x 3, 10 classes            He et al. 2015, option A
//   resnet50           ResNet-50 v1                                     Keras
//   resnet101          ResNet-101 v1                                    Keras
//   resnet152          ResNet-152 v1                                    Keras
//   resnet200          ResNet-200 v2 (pre-activation)                   osmr/imgclsmob
//   vgg16, vgg19       VGG, configurations D and E                      Keras
//   yolov3             YOLOv3, 416 x 416 x 3, 80 classes (COCO)         Darknet, ultralytics/yolov3
//
// `parameters` is the total as that publisher prints it: Keras counts the moving statistics of
// normalisation layers, the others do not. Each Layer has its statistics in either case, and
//   parameters           = all tensors (+ all statistics, where the publisher is Keras)
//   trainable_parameters = all tensors
//   gradient_bytes       = 4 trainable_parameters.
// network_builder.h says what counts as work and as activation; where an input has no fixed size
// (tokens, seconds), the one used is in the table and in `title`.
//
// A network that takes images or sequences of any size is known with each, as NAME@SIZE, the pixels
// of an image's side or the tokens of a sequence: resnet50@160, bert_base@128. Its tensors are the
// same, its work and activations are not. A network whose dense layer takes the whole grid
// (AlexNet, VGG, perceptrons) or that is made for CIFAR has one size.
//
// message_N, N from 4 to 10^15, is a bare message of N bytes, as benchmarks of collectives send it:
// nothing is computed.
#ifndef STEPCAST_DATA_WORKLOADS_CATALOG_H_
#define STEPCAST_DATA_WORKLOADS_CATALOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/record/workload.h"

namespace stepcast {

// All names of the table, sorted.
std::vector<std::string> WorkloadNames();

// The network or message of that name, generated anew at each call (well below 1 ms), or nothing.
// Other common spellings are understood: googlenet, mobilenet_v1, bert, gpt2_small, neumf,
// resnet200_v2. Throws InputError for a known network with a size that it does not take.
std::optional<Workload> FindWorkload(std::string_view name);

// A network of which nothing is known but its size: all parameters have gradients of 4 bytes.
Workload WorkloadOfSize(std::string name, std::int64_t parameters);

// The sizes of input that a network takes: all from least to most that are multiples of `step`.
struct InputSizes {
  const char* unit = "";  // "pixels" or "tokens"
  int usual = 0;
  int least = 0;
  int most = 0;
  int step = 1;
};

// Those of the network of that name, or nothing where it takes one size only.
std::optional<InputSizes> SizesOf(std::string_view name);

}  // namespace stepcast

#endif  // STEPCAST_DATA_WORKLOADS_CATALOG_H_
