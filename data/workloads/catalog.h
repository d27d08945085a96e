// The networks stepcast knows by name, layer by layer, generated from their definitions.
//
// Names are lower case, as torchvision and Keras spell them. Input is 224 x 224 x 3 and output 1000
// classes (ImageNet) unless the table says otherwise.
//
//   name               what                                            structure and totals from
//   alexnet            AlexNet, one column                              torchvision
//   bert_base          BERT-base uncased with pooler, 384 tokens        Hugging Face BertModel
//   bert_large         BERT-large uncased with pooler, 384 tokens       Hugging Face BertModel
//   bloom_7b1          BLOOM-7B1, 2048 tokens                           Hugging Face, tied head
//   codellama_34b      Code Llama, 8 heads of keys for 64, 4096 tokens  Hugging Face
//   convnext_tiny, convnext_small, convnext_base, convnext_large
//                      ConvNeXt                                         torchvision
//   deepspeech2        2 convolutions, 5 bidirectional GRU of 800, 5 s  petuum/adaptdl
//   densenet121, densenet169, densenet201
//                      DenseNet                                         Keras
//   efficientnet_b0 to efficientnet_b7
//                      EfficientNet, 224 to 600 x as many x 3           Keras
//   gemma_2b, gemma_7b Gemma, heads of 256, 8192 tokens                 Hugging Face, tied head
//   gemma2_2b, gemma2_9b, gemma2_27b
//                      Gemma 2, 4096 tokens                             Hugging Face, tied head
//   gpt2               GPT-2 small, 1024 tokens                         Hugging Face, tied head
//   gpt2_medium, gpt2_large, gpt2_xl
//                      GPT-2 of 24, 36 and 48 blocks, 1024 tokens       Hugging Face, tied head
//   gpt_neox_20b       GPT-NeoX-20B, 2048 tokens                        Hugging Face
//   inception_v1       GoogLeNet without auxiliary classifiers          torchvision
//   inception_v3       Inception v3, 299 x 299 x 3                      Keras
//   llama_7b, llama_13b
//                      LLaMA, 2048 tokens                               Hugging Face
//   llama2_7b, llama2_13b
//                      Llama 2, 4096 tokens                             Hugging Face
//   llama2_70b         Llama 2, 8 heads of keys for 64, 4096 tokens     Hugging Face
//   llama3_8b          Llama 3, 8 heads of keys for 32, 8192 tokens     Hugging Face
//   llama3_70b         Llama 3, 8 heads of keys for 64, 8192 tokens     Hugging Face
//   llama3.1_8b, llama3.1_70b, llama3.1_405b
//                      Llama 3.1, 8 heads of keys, 8192 tokens          Hugging Face
//   llama3.2_1b        Llama 3.2, 8 heads of keys for 32, 8192 tokens   Hugging Face
//   llama3.2_3b        Llama 3.2, 8 heads of keys for 24, 8192 tokens   Hugging Face
//   mistral_7b, mistral_7b_v0.2, mistral_7b_v0.3
//                      Mistral, 8 heads of keys for 32, 4096 tokens     Hugging Face
//   mlp_imagenet       224 x 224 x 3 -> 512 -> 512 -> 1000              ours, after mlp_mnist
//   mlp_mnist          28 x 28 -> 512 -> 512 -> 10                      Keras example mnist_mlp.py
//   mobilenet          MobileNet v1, width 1                            Keras
//   mobilenet_v2       MobileNet v2, width 1                            Keras
//   mobilenet_v3_large, mobilenet_v3_small
//                      MobileNet v3, width 1                            torchvision
//   ncf                NeuMF, 32 factors, MovieLens-1M                  petuum/adaptdl
//   opt_125m, opt_1.3b, opt_2.7b, opt_6.7b, opt_13b
//                      OPT, 2048 tokens                                 Hugging Face, tied head
//   phi3_mini, phi3_medium, phi4
//                      Phi-3 and Phi-4, 4096 tokens                     Hugging Face
//   qwen2.5_0.5b to qwen2.5_72b
//                      Qwen2.5 and Qwen2, 4096 tokens                   Hugging Face
//   qwen3_0.6b to qwen3_32b
//                      Qwen3, heads of 128, 4096 tokens                 Hugging Face
//   resnet18           ResNet-18                                        torchvision
//   resnet18_cifar10   ResNet-18 for 32 x 32 x 3, 10 classes            kuangliu/pytorch-cifar
//   resnet32           ResNet-32 for 32 x 32 x 3, 10 classes            He et al. 2015, option A
//   resnet50           ResNet-50 v1                                     Keras
//   resnet50_v1_5      ResNet-50 v1.5: stride in 3 x 3, no biases       torchvision
//   resnet101          ResNet-101 v1                                    Keras
//   resnet152          ResNet-152 v1                                    Keras
//   resnet200          ResNet-200 v2 (pre-activation)                   osmr/imgclsmob
//   resnext50_32x4d, resnext101_32x8d
//                      ResNeXt, 32 groups of 4 or 8                     torchvision
//   roberta_base, roberta_large
//                      RoBERTa with pooler, 512 tokens                  Hugging Face RobertaModel
//   switch_base_8      t5_base with 8 experts in each second block      Hugging Face, tied head
//   t5_small, t5_base, t5_large
//                      T5 v1.0, 512 tokens to 114                       Hugging Face, tied head
//   t5_v1_1_base, t5_v1_1_large, t5_v1_1_xl
//                      T5 v1.1 with gates, 512 tokens to 114            Hugging Face
//   unet               U-Net, padded, 512 x 512 x 3, 2 classes          milesial/Pytorch-UNet
//   vgg16, vgg19       VGG, configurations D and E                      Keras
//   vit_b_16, vit_b_32, vit_l_16, vit_l_32, vit_h_14
//                      ViT, base to huge, patches of 14 to 32           torchvision
//   vit_ti_16, vit_s_16
//                      ViT, tiny and small                              timm, as DeiT
//   whisper_small      30 s of speech to 448 tokens                     Hugging Face, tied head
//   wide_resnet50_2, wide_resnet101_2
//                      Wide ResNet, blocks twice as wide                torchvision
//   yolov3             YOLOv3, 416 x 416 x 3, 80 classes (COCO)         Darknet, ultralytics/yolov3
//   yolov8n to yolov8x YOLOv8, 640 x 640 x 3, 80 classes (COCO)         ultralytics, trained ones
//
// `parameters` is the total as that publisher prints it: Keras counts the moving statistics of
// normalisation layers, and Hugging Face the positions of Whisper's encoder, which are not trained;
// the others do not. Each Layer has its statistics in either case, and
//   parameters           = all tensors (+ all statistics, where the publisher counts them)
//   trainable_parameters = all tensors
//   gradient_bytes       = 4 trainable_parameters.
// network_builder.h says what counts as work and as activation; where an input has no fixed size
// (tokens, seconds), the one used is in the table and in `title`.
//
// A network that takes images or sequences of any size is known with each, as NAME@SIZE, the pixels
// of an image's side or the tokens of a sequence: resnet50@160, bert_base@128. Its tensors are the
// same, its work and activations are not. A network whose dense layer takes the whole grid
// (AlexNet, VGG, perceptrons) or that is made for CIFAR has one size. ViT learns a position for
// each patch: that one tensor, and with it the parameters, are those of the size. The tokens of T5
// and Switch are those of the input, the output has 114 (of the pretraining's 512) whatever they
// are; Whisper's are those of the text, of 30 s of speech always.
//
// Attention is fused in llama*, codellama_34b and mistral_7b*, as LLaMA's and Mistral's papers say
// and their successors, qwen*, phi* and gemma* among them, are taken to have kept, and plain in all
// others. Layers are those of plain attention either way. The positions of LLaMA are no table, so
// that llama_7b and llama_13b take as many tokens as Llama 2 was trained on; those after Llama 2
// take as many as their publishers say, but that a window of the attention of mistral_7b and of
// gemma2_* is as long as their longest sequence here, and phi3_* are those without a window.
//
// Decoders that are not in the table are known by their numbers, like
// gpt:layers=24:hidden=2048:heads=16@2048 (by_numbers.h).
//
// message_N, N from 4 to 10^15, is a bare message of N bytes, as benchmarks of collectives send it:
// nothing is computed.
#ifndef STEPCAST_DATA_WORKLOADS_CATALOG_H_
#define STEPCAST_DATA_WORKLOADS_CATALOG_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/record/workload.h"

namespace stepcast {

// All names of the table, sorted.
std::vector<std::string> WorkloadNames();

// The network, decoder or message of that name, generated anew at each call (within some ms at
// most), or nothing. Case and signs but those between
// digits do not count ("ResNet-50"), and other common names are
// understood: bert, bert_base_uncased, bert_large_uncased, bloom, deit_tiny and _small,
// googlenet, gpt2_small, gpt_neox, llama3, llama3.1, llama3.3_70b, mistral, mistral_7b_v0.1,
// mobilenet_v1, neumf, phi3, phi3_*_128k, phi4_14b, qwen2_*, resnet200_v2, resnet50_v1.5, roberta,
// switch_base, t5, t5_v1.1_*, vit, vit_tiny_16, whisper. Throws InputError for a known network with
// a size that it does not take, and for wrong numbers.
std::optional<Workload> FindWorkload(std::string_view name);

// " (did you mean llama3.1_8b@4096?)" of a name that no workload has, to stand behind the problem
// of an error: what is near is told without the size behind an @, which stands behind the nearest
// of `names` again where that takes sizes. Empty where none is near.
std::string DidYouMeanWorkload(std::string_view name, std::span<const std::string> names);

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

// The sizes of the network of that name; nothing where it takes one size only.
std::optional<InputSizes> SizesOf(std::string_view name);

}  // namespace stepcast

#endif  // STEPCAST_DATA_WORKLOADS_CATALOG_H_
