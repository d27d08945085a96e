// The catalogue against numbers that others published.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "data/workloads/catalog.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

Workload Find(const std::string& name) {
  std::optional<Workload> workload = FindWorkload(name);
  EXPECT_TRUE(workload.has_value()) << name;
  return workload.value_or(Workload());
}

// Matrix work only: what published operation counts are about.
bool IsMatrixWork(LayerKind kind) {
  switch (kind) {
    case LayerKind::kConvolution:
    case LayerKind::kDepthwiseConvolution:
    case LayerKind::kDense:
    case LayerKind::kRecurrent:
    case LayerKind::kAttention:
      return true;
    default:
      return false;
  }
}

double MatrixFlop(const Workload& workload) {
  double sum = 0.0;
  for (const Layer& layer : workload.layers) {
    if (IsMatrixWork(layer.kind)) sum += layer.forward_flop.si();
  }
  return sum;
}

double FlopOfKind(const Workload& workload, LayerKind kind) {
  double sum = 0.0;
  for (const Layer& layer : workload.layers) {
    if (layer.kind == kind) sum += layer.forward_flop.si();
  }
  return sum;
}

std::size_t TensorCount(const Workload& workload) {
  std::size_t count = 0;
  for (const Layer& layer : workload.layers) count += layer.tensors.size();
  return count;
}

const Layer& LayerNamed(const Workload& workload, const std::string& name) {
  const auto found = std::find_if(workload.layers.begin(), workload.layers.end(),
                                  [&](const Layer& layer) { return layer.name == name; });
  EXPECT_NE(found, workload.layers.end()) << workload.name << " has no " << name;
  return found == workload.layers.end() ? workload.layers.front() : *found;
}

double OutputElements(const Layer& layer) { return layer.activation_bytes.si() / 4.0; }

// ---- Counts.

struct PublishedCount {
  const char* name;
  std::int64_t parameters;
  std::int64_t trainable;
};

// Keras: "Total params" and "Trainable params" of model.summary(); torchvision, Hugging Face and
// the others: the number of elements in model.parameters().
constexpr PublishedCount kPublishedCounts[] = {
    {"alexnet", 61'100'840, 61'100'840},                  // torchvision, meta num_params
    {"bert_base", 109'482'240, 109'482'240},              // Hugging Face BertModel
    {"bert_large", 335'141'888, 335'141'888},             // Hugging Face BertModel
    {"bloom_7b1", 7'069'016'064, 7'069'016'064},          // Hugging Face BloomForCausalLM
    {"codellama_34b", 33'743'970'304, 33'743'970'304},    // Hugging Face LlamaForCausalLM
    {"convnext_base", 88'591'464, 88'591'464},            // torchvision, meta num_params
    {"convnext_large", 197'767'336, 197'767'336},         // torchvision, meta num_params
    {"convnext_small", 50'223'688, 50'223'688},           // torchvision, meta num_params
    {"convnext_tiny", 28'589'128, 28'589'128},            // torchvision, meta num_params
    {"deepspeech2", 41'187'968, 41'187'968},              // derived from petuum/adaptdl's code
    {"densenet121", 8'062'504, 7'978'856},                // Keras
    {"densenet169", 14'307'880, 14'149'480},              // Keras
    {"densenet201", 20'242'984, 20'013'928},              // Keras
    {"efficientnet_b0", 5'330'571, 5'288'548},            // Keras
    {"efficientnet_b1", 7'856'239, 7'794'184},            // Keras
    {"efficientnet_b2", 9'177'569, 9'109'994},            // Keras
    {"efficientnet_b3", 12'320'535, 12'233'232},          // Keras
    {"efficientnet_b4", 19'466'823, 19'341'616},          // Keras
    {"efficientnet_b5", 30'562'527, 30'389'784},          // Keras
    {"efficientnet_b6", 43'265'143, 43'040'704},          // Keras
    {"efficientnet_b7", 66'658'687, 66'347'960},          // Keras
    {"gemma2_27b", 27'227'128'320, 27'227'128'320},       // Hugging Face Gemma2ForCausalLM
    {"gemma2_2b", 2'614'341'888, 2'614'341'888},          // Hugging Face Gemma2ForCausalLM
    {"gemma2_9b", 9'241'705'984, 9'241'705'984},          // Hugging Face Gemma2ForCausalLM
    {"gemma_2b", 2'506'172'416, 2'506'172'416},           // Hugging Face GemmaForCausalLM
    {"gemma_7b", 8'537'680'896, 8'537'680'896},           // Hugging Face GemmaForCausalLM
    {"gpt2", 124'439'808, 124'439'808},                   // Hugging Face GPT2LMHeadModel
    {"gpt2_large", 774'030'080, 774'030'080},             // Hugging Face GPT2LMHeadModel
    {"gpt2_medium", 354'823'168, 354'823'168},            // Hugging Face GPT2LMHeadModel
    {"gpt2_xl", 1'557'611'200, 1'557'611'200},            // Hugging Face GPT2LMHeadModel
    {"gpt_neox_20b", 20'554'567'680, 20'554'567'680},     // Hugging Face GPTNeoXForCausalLM
    {"inception_v1", 6'624'904, 6'624'904},               // torchvision, meta num_params
    {"inception_v3", 23'851'784, 23'817'352},             // Keras
    {"llama2_13b", 13'015'864'320, 13'015'864'320},       // Hugging Face LlamaForCausalLM
    {"llama2_70b", 68'976'648'192, 68'976'648'192},       // Hugging Face LlamaForCausalLM
    {"llama2_7b", 6'738'415'616, 6'738'415'616},          // Hugging Face LlamaForCausalLM
    {"llama3.1_405b", 405'853'388'800, 405'853'388'800},  // Hugging Face LlamaForCausalLM
    {"llama3.1_70b", 70'553'706'496, 70'553'706'496},     // Hugging Face LlamaForCausalLM
    {"llama3.1_8b", 8'030'261'248, 8'030'261'248},        // Hugging Face LlamaForCausalLM
    {"llama3.2_1b", 1'235'814'400, 1'235'814'400},        // Hugging Face LlamaForCausalLM
    {"llama3.2_3b", 3'212'749'824, 3'212'749'824},        // Hugging Face LlamaForCausalLM
    {"llama3_70b", 70'553'706'496, 70'553'706'496},       // Hugging Face LlamaForCausalLM
    {"llama3_8b", 8'030'261'248, 8'030'261'248},          // Hugging Face LlamaForCausalLM
    {"llama_13b", 13'015'864'320, 13'015'864'320},        // Hugging Face LlamaForCausalLM
    {"llama_7b", 6'738'415'616, 6'738'415'616},           // Hugging Face LlamaForCausalLM
    {"mistral_7b", 7'241'732'096, 7'241'732'096},         // Hugging Face MistralForCausalLM
    {"mistral_7b_v0.2", 7'241'732'096, 7'241'732'096},    // Hugging Face MistralForCausalLM
    {"mistral_7b_v0.3", 7'248'023'552, 7'248'023'552},    // Hugging Face MistralForCausalLM
    {"mlp_imagenet", 77'846'504, 77'846'504},             // ours: derived
    {"mlp_mnist", 669'706, 669'706},                      // Keras examples, mnist_mlp.py
    {"mobilenet", 4'253'864, 4'231'976},                  // Keras
    {"mobilenet_v2", 3'538'984, 3'504'872},               // Keras
    {"mobilenet_v3_large", 5'483'032, 5'483'032},         // torchvision, meta num_params
    {"mobilenet_v3_small", 2'542'856, 2'542'856},         // torchvision, meta num_params
    {"ncf", 1'602'657, 1'602'657},                        // derived
    {"opt_1.3b", 1'315'758'080, 1'315'758'080},           // Hugging Face OPTForCausalLM
    {"opt_125m", 125'239'296, 125'239'296},               // Hugging Face OPTForCausalLM
    {"opt_13b", 12'853'473'280, 12'853'473'280},          // Hugging Face OPTForCausalLM
    {"opt_2.7b", 2'651'596'800, 2'651'596'800},           // Hugging Face OPTForCausalLM
    {"opt_6.7b", 6'658'473'984, 6'658'473'984},           // Hugging Face OPTForCausalLM
    {"phi3_medium", 13'960'238'080, 13'960'238'080},      // Hugging Face Phi3ForCausalLM
    {"phi3_mini", 3'821'079'552, 3'821'079'552},          // Hugging Face Phi3ForCausalLM
    {"phi4", 14'659'507'200, 14'659'507'200},             // Hugging Face Phi3ForCausalLM
    {"qwen2.5_0.5b", 494'032'768, 494'032'768},           // Hugging Face Qwen2ForCausalLM
    {"qwen2.5_1.5b", 1'543'714'304, 1'543'714'304},       // Hugging Face Qwen2ForCausalLM
    {"qwen2.5_14b", 14'770'033'664, 14'770'033'664},      // Hugging Face Qwen2ForCausalLM
    {"qwen2.5_32b", 32'763'876'352, 32'763'876'352},      // Hugging Face Qwen2ForCausalLM
    {"qwen2.5_3b", 3'085'938'688, 3'085'938'688},         // Hugging Face Qwen2ForCausalLM
    {"qwen2.5_72b", 72'706'203'648, 72'706'203'648},      // Hugging Face Qwen2ForCausalLM
    {"qwen2.5_7b", 7'615'616'512, 7'615'616'512},         // Hugging Face Qwen2ForCausalLM
    {"qwen3_0.6b", 596'049'920, 596'049'920},             // Hugging Face Qwen3ForCausalLM
    {"qwen3_1.7b", 1'720'574'976, 1'720'574'976},         // Hugging Face Qwen3ForCausalLM
    {"qwen3_14b", 14'768'307'200, 14'768'307'200},        // Hugging Face Qwen3ForCausalLM
    {"qwen3_32b", 32'762'123'264, 32'762'123'264},        // Hugging Face Qwen3ForCausalLM
    {"qwen3_4b", 4'022'468'096, 4'022'468'096},           // Hugging Face Qwen3ForCausalLM
    {"qwen3_8b", 8'190'735'360, 8'190'735'360},           // Hugging Face Qwen3ForCausalLM
    {"resnet101", 44'707'176, 44'601'832},                // Keras
    {"resnet152", 60'419'944, 60'268'520},                // Keras
    {"resnet18", 11'689'512, 11'689'512},                 // torchvision, meta num_params
    {"resnet18_cifar10", 11'173'962, 11'173'962},         // kuangliu/pytorch-cifar
    {"resnet200", 64'666'280, 64'666'280},                // osmr/imgclsmob, PreResNet-200b
    {"resnet32", 464'154, 464'154},                       // reimplementations; 0.46 M in He et al.
    {"resnet50", 25'636'712, 25'583'592},                 // Keras
    {"resnet50_v1_5", 25'557'032, 25'557'032},            // torchvision, meta num_params
    {"resnext101_32x8d", 88'791'336, 88'791'336},         // torchvision, meta num_params
    {"resnext50_32x4d", 25'028'904, 25'028'904},          // torchvision, meta num_params
    {"roberta_base", 124'645'632, 124'645'632},           // Hugging Face RobertaModel
    {"roberta_large", 355'359'744, 355'359'744},          // Hugging Face RobertaModel
    {"switch_base_8", 619'339'008, 619'339'008},          // Hugging Face SwitchTransformers
    {"t5_base", 222'903'552, 222'903'552},                // Hugging Face T5ForConditionalGeneration
    {"t5_large", 737'668'096, 737'668'096},               // Hugging Face T5ForConditionalGeneration
    {"t5_small", 60'506'624, 60'506'624},                 // Hugging Face T5ForConditionalGeneration
    {"t5_v1_1_base", 247'577'856, 247'577'856},           // Hugging Face T5ForConditionalGeneration
    {"t5_v1_1_large", 783'150'080, 783'150'080},          // Hugging Face T5ForConditionalGeneration
    {"t5_v1_1_xl", 2'849'757'184, 2'849'757'184},         // Hugging Face T5ForConditionalGeneration
    {"unet", 31'037'698, 31'037'698},                     // milesial/Pytorch-UNet
    {"vgg16", 138'357'544, 138'357'544},                  // Keras
    {"vgg19", 143'667'240, 143'667'240},                  // Keras
    {"vit_b_16", 86'567'656, 86'567'656},                 // torchvision, meta num_params
    {"vit_b_32", 88'224'232, 88'224'232},                 // torchvision, meta num_params
    {"vit_h_14", 632'045'800, 632'045'800},               // torchvision, meta num_params
    {"vit_l_16", 304'326'632, 304'326'632},               // torchvision, meta num_params
    {"vit_l_32", 306'535'400, 306'535'400},               // torchvision, meta num_params
    {"vit_s_16", 22'050'664, 22'050'664},                 // timm, deit_small_patch16_224
    {"vit_ti_16", 5'717'416, 5'717'416},                  // timm, deit_tiny_patch16_224
    {"whisper_small", 241'734'912, 240'582'912},          // Hugging Face, all and requires_grad
    {"wide_resnet101_2", 126'886'696, 126'886'696},       // torchvision, meta num_params
    {"wide_resnet50_2", 68'883'240, 68'883'240},          // torchvision, meta num_params
    {"yolov3", 61'949'149, 61'949'149},                   // ultralytics/yolov3
    {"yolov8l", 43'691'504, 43'691'504},                  // ultralytics, "gradients"
    {"yolov8m", 25'902'624, 25'902'624},                  // ultralytics, "gradients"
    {"yolov8n", 3'157'184, 3'157'184},                    // ultralytics, "gradients"
    {"yolov8s", 11'166'544, 11'166'544},                  // ultralytics, "gradients"
    {"yolov8x", 68'229'632, 68'229'632},                  // ultralytics, "gradients"
};

TEST(WorkloadCatalog, TotalsAreThePublishedOnes) {
  std::vector<std::string> names;
  for (const PublishedCount& published : kPublishedCounts) {
    const Workload workload = Find(published.name);
    EXPECT_EQ(workload.parameters, published.parameters) << published.name;
    EXPECT_EQ(workload.trainable_parameters, published.trainable) << published.name;
    names.emplace_back(published.name);
  }
  EXPECT_EQ(names, WorkloadNames()) << "every network of the catalogue has a row above";
}

TEST(WorkloadCatalog, AttentionIsFusedSinceLlama) {
  constexpr std::array kSinceLlama = {"llama", "mistral", "qwen", "phi", "gemma"};
  for (const std::string& name : WorkloadNames()) {
    const bool is_since =
        std::any_of(kSinceLlama.begin(), kSinceLlama.end(),
                    [&](const char* family) { return name.find(family) != std::string::npos; });
    EXPECT_EQ(FindWorkload(name)->attention == AttentionForm::kFused, is_since) << name;
  }
}

// len(model.trainable_weights) in Keras, len(list(model.parameters())) in PyTorch.
TEST(WorkloadCatalog, UtterancesAndDetectionVaryInSize) {
  for (const std::string& name : WorkloadNames()) {
    EXPECT_EQ(FindWorkload(name)->inputs_vary, name == "deepspeech2" || name == "yolov3") << name;
  }
}

TEST(WorkloadCatalog, GradientTensorsAreAsManyAsInTheFrameworks) {
  EXPECT_EQ(TensorCount(Find("resnet50")), 214U);
  EXPECT_EQ(TensorCount(Find("resnet50_v1_5")), 161U);
  EXPECT_EQ(TensorCount(Find("resnet101")), 418U);
  EXPECT_EQ(TensorCount(Find("resnet152")), 622U);
  EXPECT_EQ(TensorCount(Find("densenet121")), 364U);
  EXPECT_EQ(TensorCount(Find("mobilenet_v2")), 158U);
  EXPECT_EQ(TensorCount(Find("efficientnet_b0")), 213U);
  EXPECT_EQ(TensorCount(Find("vgg16")), 32U);
  EXPECT_EQ(TensorCount(Find("resnet18")), 62U);
  EXPECT_EQ(TensorCount(Find("bert_base")), 199U);
  EXPECT_EQ(TensorCount(Find("gpt2")), 148U);
  EXPECT_EQ(TensorCount(Find("gpt2_xl")), 580U);
  EXPECT_EQ(TensorCount(Find("opt_125m")), 196U);
  EXPECT_EQ(TensorCount(Find("llama_7b")), 291U);
  EXPECT_EQ(TensorCount(Find("llama2_70b")), 723U);
  EXPECT_EQ(TensorCount(Find("mistral_7b")), 291U);
  EXPECT_EQ(TensorCount(Find("qwen2.5_7b")), 339U);
  EXPECT_EQ(TensorCount(Find("qwen3_8b")), 399U);
  EXPECT_EQ(TensorCount(Find("phi3_mini")), 195U);
  EXPECT_EQ(TensorCount(Find("gemma_2b")), 164U);
  EXPECT_EQ(TensorCount(Find("gemma2_9b")), 464U);
  EXPECT_EQ(TensorCount(Find("mobilenet_v3_large")), 174U);
  EXPECT_EQ(TensorCount(Find("gpt_neox_20b")), 532U);
  EXPECT_EQ(TensorCount(Find("bloom_7b1")), 365U);
  EXPECT_EQ(TensorCount(Find("roberta_base")), 199U);
  EXPECT_EQ(TensorCount(Find("resnext50_32x4d")), 161U);
  EXPECT_EQ(TensorCount(Find("convnext_tiny")), 182U);
  EXPECT_EQ(TensorCount(Find("t5_v1_1_xl")), 558U);
  EXPECT_EQ(TensorCount(Find("vit_b_16")), 152U);
  EXPECT_EQ(TensorCount(Find("t5_base")), 257U);
  EXPECT_EQ(TensorCount(Find("unet")), 64U);
  EXPECT_EQ(TensorCount(Find("whisper_small")), 478U);
  EXPECT_EQ(TensorCount(Find("yolov3")), 222U);
}

TEST(WorkloadCatalog, SumsOverLayersAreTheTotals) {
  for (const std::string& name : WorkloadNames()) {
    const Workload workload = Find(name);
    std::int64_t trainable = 0;
    std::int64_t statistics = 0;
    for (const Layer& layer : workload.layers) {
      for (const std::int64_t tensor : layer.tensors) trainable += tensor;
      statistics += layer.statistics;
    }
    EXPECT_EQ(trainable, workload.trainable_parameters) << name;
    // Of Hugging Face's one has a stored table that is not trained, and counts it.
    const bool counted =
        workload.source.find("Keras") != std::string::npos || name == "whisper_small";
    EXPECT_EQ(trainable + (counted ? statistics : 0), workload.parameters) << name;
    EXPECT_EQ(workload.gradient_bytes.si(), 4.0 * static_cast<double>(trainable)) << name;
  }
}

// Keras prints 52,608 moving statistics for the same YOLOv3 (62,001,757 - 61,949,149).
TEST(WorkloadCatalog, StatisticsAreListedEvenWhereTheyAreNotInTheTotal) {
  std::int64_t statistics = 0;
  for (const Layer& layer : Find("yolov3").layers) statistics += layer.statistics;
  EXPECT_EQ(statistics, 52'608);
  // Mean and variance of three channels, and a count.
  EXPECT_EQ(LayerNamed(Find("efficientnet_b0"), "normalization").statistics, 7);
  EXPECT_EQ(LayerNamed(Find("whisper_small"), "encoder.embed_positions").statistics, 1500 * 768);
}

// ---- Work.

struct PublishedWork {
  const char* name;
  double gigaflop;   // 2 x the published multiply-adds
  double tolerance;  // relative
};

// torchvision: "GIPS" of the model tables (meta _ops), multiply-adds of convolutions and dense
// layers. He et al. 2015, table 1, round to two digits.
constexpr PublishedWork kPublishedWork[] = {
    {"alexnet", 2 * 0.714, 0.005},             // torchvision
    {"convnext_base", 2 * 15.355, 0.005},      // torchvision
    {"convnext_large", 2 * 34.361, 0.005},     // torchvision
    {"convnext_small", 2 * 8.684, 0.005},      // torchvision
    {"convnext_tiny", 2 * 4.456, 0.005},       // torchvision
    {"densenet121", 2 * 2.834, 0.005},         // torchvision
    {"densenet169", 2 * 3.36, 0.005},          // torchvision
    {"densenet201", 2 * 4.291, 0.005},         // torchvision
    {"efficientnet_b0", 2 * 0.386, 0.005},     // torchvision
    {"efficientnet_b1", 2 * 0.687, 0.005},     // torchvision
    {"efficientnet_b3", 2 * 1.827, 0.005},     // torchvision
    {"efficientnet_b4", 2 * 4.394, 0.005},     // torchvision
    {"efficientnet_b5", 2 * 10.266, 0.005},    // torchvision
    {"efficientnet_b6", 2 * 19.068, 0.005},    // torchvision
    {"efficientnet_b7", 2 * 37.746, 0.005},    // torchvision
    {"gpt2", 291.648, 0.005},                  // karpathy/nanoGPT, transformer_sizing.ipynb
    {"inception_v1", 2 * 1.498, 0.005},        // torchvision
    {"inception_v3", 2 * 5.713, 0.005},        // torchvision
    {"mobilenet", 2 * 0.569, 0.005},           // Howard et al., table 4
    {"mobilenet_v2", 2 * 0.301, 0.005},        // torchvision
    {"mobilenet_v3_large", 2 * 0.217, 0.005},  // torchvision
    {"mobilenet_v3_small", 2 * 0.057, 0.01},   // torchvision
    {"resnet101", 2 * 7.6, 0.02},              // He et al.
    {"resnet152", 2 * 11.3, 0.02},             // He et al.
    {"resnet18", 2 * 1.814, 0.005},            // torchvision
    {"resnet18_cifar10", 2 * 0.55665, 0.005},  // microsoft/nni, with normalisation
    {"resnet200", 2 * 15.06863, 0.01},         // osmr/imgclsmob, with normalisation
    {"resnet32", 2 * 0.06886, 0.005},          // as thop prints it
    {"resnet50", 2 * 3.8, 0.02},               // He et al.
    {"resnet50_v1_5", 2 * 4.089, 0.005},       // torchvision
    {"resnext101_32x8d", 2 * 16.414, 0.005},   // torchvision
    {"resnext50_32x4d", 2 * 4.23, 0.005},      // torchvision
    {"vgg16", 2 * 15.47, 0.005},               // torchvision
    {"vgg19", 2 * 19.632, 0.005},              // torchvision
    {"vit_b_16", 2 * 17.564, 0.005},           // torchvision
    {"vit_b_32", 2 * 4.409, 0.005},            // torchvision
    {"vit_h_14", 2 * 167.295, 0.005},          // torchvision
    {"vit_l_16", 2 * 61.555, 0.005},           // torchvision
    {"vit_l_32", 2 * 15.378, 0.005},           // torchvision
    {"vit_s_16", 2 * 4.6, 0.005},              // Touvron et al., arXiv 2012.12877, table 5
    {"wide_resnet101_2", 2 * 22.753, 0.005},   // torchvision
    {"wide_resnet50_2", 2 * 11.398, 0.005},    // torchvision
    {"yolov8n", 8.7, 0.01},                    // ultralytics, table of detection
    {"yolov8s", 28.6, 0.01},                   // ultralytics
    {"yolov8m", 78.9, 0.01},                   // ultralytics
    {"yolov8l", 165.2, 0.01},                  // ultralytics
    {"yolov8x", 257.8, 0.01},                  // ultralytics
    {"yolov3", 65.86, 0.005},                  // pjreddie.com/darknet/yolo (2 a multiply-add)
};

TEST(WorkloadCatalog, MatrixWorkIsNearThePublished) {
  for (const PublishedWork& published : kPublishedWork) {
    const double gigaflop = 1e-9 * MatrixFlop(Find(published.name));
    EXPECT_NEAR(gigaflop, published.gigaflop, published.tolerance * published.gigaflop)
        << published.name;
  }
}

// Howard et al., MobileNets, table 7; tensorflow/models, mobilenet_v2's README; for YOLOv3
// pjreddie.com/darknet; for ViT torchvision's weights that were trained at these sizes, and
// for EfficientNet-B2 those that are judged at this one.
constexpr PublishedWork kPublishedWorkOfSizes[] = {
    {"mobilenet@192", 2 * 0.418, 0.005},
    {"mobilenet@160", 2 * 0.290, 0.005},
    {"mobilenet@128", 2 * 0.186, 0.005},
    {"mobilenet_v2@192", 2 * 0.221, 0.005},
    {"mobilenet_v2@160", 2 * 0.154, 0.005},
    {"mobilenet_v2@128", 2 * 0.099, 0.01},
    {"efficientnet_b2@288", 2 * 1.088, 0.005},
    {"yolov3@320", 38.97, 0.005},
    {"yolov3@608", 140.69, 0.005},
    {"vit_b_16@384", 2 * 55.484, 0.005},
    {"vit_l_16@512", 2 * 361.986, 0.005},
    {"vit_h_14@518", 2 * 1016.717, 0.005},
    {"bert_base@128", 22.5, 0.02},      // TinyBERT (arXiv 1909.10351), table 1
    {"llama_7b@128", 1700.06, 0.005},   // calflops, README
    {"llama2_7b@128", 1700.06, 0.005},  // calflops, README
};

TEST(WorkloadCatalog, MatrixWorkOfOtherSizesIsNearThePublished) {
  for (const PublishedWork& published : kPublishedWorkOfSizes) {
    const double gigaflop = 1e-9 * MatrixFlop(Find(published.name));
    EXPECT_NEAR(gigaflop, published.gigaflop, published.tolerance * published.gigaflop)
        << published.name;
  }
}

// Those that learn a position for each patch; all else is the same at every size.
bool IsOfTheSize(const Layer& layer) { return layer.name == "encoder.pos_embedding"; }

// Whatever the size, the tensors are the same, and more of it is more work.
TEST(WorkloadCatalog, SizesOfInputChangeWorkAndNoTensor) {
  int sized = 0;
  for (const std::string& name : WorkloadNames()) {
    const std::optional<InputSizes> sizes = SizesOf(name);
    if (!sizes) {
      EXPECT_TRUE(Says(ErrorOf([&] { FindWorkload(name + "@64"); }), "takes one size")) << name;
      continue;
    }
    ++sized;
    const Workload usual = Find(name);
    EXPECT_EQ(Find(name + "@" + std::to_string(sizes->usual)).name, name);
    double last = 0;
    for (const int size :
         {sizes->least, sizes->least + 3 * sizes->step, sizes->usual - sizes->step, sizes->most}) {
      const std::string asked = name + "@" + std::to_string(size);
      const Workload workload = Find(asked);
      EXPECT_EQ(workload.name, asked == name + "@" + std::to_string(sizes->usual) ? name : asked);
      EXPECT_NE(workload.title.find(std::to_string(size)), std::string::npos) << workload.title;
      ASSERT_EQ(workload.layers.size(), usual.layers.size()) << asked;
      std::int64_t more = 0;
      for (std::size_t i = 0; i < usual.layers.size(); ++i) {
        if (IsOfTheSize(usual.layers[i])) {
          EXPECT_TRUE(name.starts_with("vit_")) << name;
          more += workload.layers[i].parameters() - usual.layers[i].parameters();
          continue;
        }
        EXPECT_EQ(workload.layers[i].tensors, usual.layers[i].tensors) << asked;
      }
      EXPECT_EQ(workload.parameters, usual.parameters + more) << asked;
      EXPECT_GT(MatrixFlop(workload), last) << asked;
      last = MatrixFlop(workload);
    }
    for (const std::string& wrong :
         {std::to_string(sizes->least - 1), std::to_string(sizes->most + 1), std::string("big"),
          std::string(), std::to_string(sizes->usual) + "x", std::string("1e3"), std::string("-64"),
          std::string("99999999999999999999")}) {
      EXPECT_TRUE(Says(ErrorOf([&] { FindWorkload(name + "@" + wrong); }), name + "@" + wrong));
    }
  }
  EXPECT_EQ(sized, 105);
  EXPECT_TRUE(Says(ErrorOf([] { FindWorkload("yolov3@400"); }), "a multiple of 32"));
  EXPECT_TRUE(Says(ErrorOf([] { FindWorkload("vit_b_16@100"); }), "a multiple of 16"));
  EXPECT_TRUE(Says(ErrorOf([] { FindWorkload("vit_b_32@240"); }), "a multiple of 32"));
  EXPECT_TRUE(
      Says(ErrorOf([] { FindWorkload("vit_h_14@32"); }), "a multiple of 14 from 42 to 4088"));
  EXPECT_TRUE(Says(ErrorOf([] { FindWorkload("switch_base_8@100"); }), "a multiple of 8"));
  EXPECT_FALSE(FindWorkload("resnet5@64").has_value());
  EXPECT_EQ(Find("googlenet@128").name, "inception_v1@128");
}

// torchvision, meta num_params of the weights that were trained at these sizes.
TEST(WorkloadCatalog, APositionIsLearntForEachPatch) {
  EXPECT_EQ(Find("vit_b_16@384").parameters, 86'859'496);
  EXPECT_EQ(Find("vit_l_16@512").parameters, 305'174'504);
  EXPECT_EQ(Find("vit_h_14@518").parameters, 633'470'440);
  EXPECT_EQ(LayerNamed(Find("vit_b_32@64"), "encoder.pos_embedding").tensors,
            std::vector<std::int64_t>{5 * 768});
}

// TinyBERT (arXiv 1909.10351), table 1: 22.5 G for BERT-base at 128 tokens. Dense layers grow with
// the tokens, attention products with their square.
TEST(WorkloadCatalog, BertWorkScalesToThePublishedSequenceLength) {
  const Workload bert = Find("bert_base");
  const double at_128 = 1e-9 * (FlopOfKind(bert, LayerKind::kDense) / 3.0 +
                                FlopOfKind(bert, LayerKind::kAttention) / 9.0);
  EXPECT_NEAR(at_128, 22.5, 0.02 * 22.5);
}

// In closed form, biases aside: 24 layers of 12 d^2 weights, and two products of tokens^2 d.
TEST(WorkloadCatalog, BertLargeWorkIsTheClosedForm) {
  const double d = 1024.0;
  const double tokens = 384.0;
  const double expected = 24.0 * (2.0 * tokens * 12.0 * d * d + 4.0 * tokens * tokens * d);
  EXPECT_NEAR(MatrixFlop(Find("bert_large")), expected, 0.002 * expected);
}

// What has no FLOP of its own, in elements: a block copies queries, keys, values and the context,
// and drops two outputs out; scores are scaled, masked and dropped out. One drop-out is the
// embedding's.
TEST(WorkloadCatalog, TransformersPassTheMemoryBesideTheirProducts) {
  const auto elements = [](const char* name) {
    std::int64_t sum = 0;
    for (const Layer& layer : Find(name).layers) {
      if (const auto* copy = std::get_if<CopyOp>(&layer.operation)) sum += copy->elements;
    }
    return sum;
  };
  EXPECT_EQ(elements("bert_base"), 12 * (6 * 384 * 768 + 3 * 12 * 384 * 384) + 384 * 768);
  EXPECT_EQ(elements("gpt2"), 12 * (6 * 1024 * 768 + 3 * 12 * 1024 * 1024) + 1024 * 768);
  EXPECT_EQ(elements("opt_125m"), 0) << "one kernel";
}

struct DecoderSizes {
  const char* name;
  double tokens;
  double layers;
  double features;
  double vocabulary;
};

// Narayanan et al. (arXiv 2104.04473), appendix, a forward pass: 24 B s l h^2 (1 + s / 6h), and
// 2 B s h V of the output layer.
TEST(WorkloadCatalog, WorkOfDecodersIsTheClosedForm) {
  constexpr DecoderSizes kDecoders[] = {
      {"gpt2", 1024, 12, 768, 50257},        {"gpt2_medium", 1024, 24, 1024, 50257},
      {"gpt2_large", 1024, 36, 1280, 50257}, {"gpt2_xl", 1024, 48, 1600, 50257},
      {"opt_125m", 2048, 12, 768, 50272},    {"opt_1.3b", 2048, 24, 2048, 50272},
      {"opt_2.7b", 2048, 32, 2560, 50272},   {"opt_6.7b", 2048, 32, 4096, 50272},
      {"opt_13b", 2048, 40, 5120, 50272},    {"opt_13b@100", 100, 40, 5120, 50272},
      {"bloom_7b1", 2048, 30, 4096, 250880}, {"gpt_neox_20b", 2048, 44, 6144, 50432}};
  for (const DecoderSizes& d : kDecoders) {
    const double h = d.features;
    const double expected = 24 * d.tokens * d.layers * h * h * (1 + d.tokens / (6 * h)) +
                            2 * d.tokens * h * d.vocabulary;
    EXPECT_NEAR(MatrixFlop(Find(d.name)), expected, 0.002 * expected) << d.name;
  }
}

// Every weight but the embedding's meets every token; scores and their weighted sums have as many
// heads as the queries, however few those of the keys are. Norms are 0.01 % of the weights.
TEST(WorkloadCatalog, LlamaWorkIsTheClosedForm) {
  constexpr DecoderSizes kDecoders[] = {{"llama_7b", 2048, 32, 4096, 32000},
                                        {"llama_13b", 2048, 40, 5120, 32000},
                                        {"llama_7b@4096", 4096, 32, 4096, 32000},
                                        {"llama2_7b", 4096, 32, 4096, 32000},
                                        {"llama2_13b", 4096, 40, 5120, 32000},
                                        {"llama2_70b", 4096, 80, 8192, 32000},
                                        {"codellama_34b@16384", 16384, 48, 8192, 32000},
                                        {"llama3_8b", 8192, 32, 4096, 128256},
                                        {"llama3_70b", 8192, 80, 8192, 128256},
                                        {"llama3.1_405b", 8192, 126, 16384, 128256},
                                        {"mistral_7b", 4096, 32, 4096, 32000},
                                        {"llama3.1_8b@131072", 131072, 32, 4096, 128256},
                                        {"llama3.1_405b@131072", 131072, 126, 16384, 128256},
                                        {"qwen2.5_7b", 4096, 28, 3584, 152064},
                                        {"qwen3_8b", 4096, 36, 4096, 151936},
                                        {"phi4@16384", 16384, 40, 5120, 100352}};
  for (const DecoderSizes& d : kDecoders) {
    const Workload llama = Find(d.name);
    const double weights = static_cast<double>(llama.parameters) - d.vocabulary * d.features;
    const double expected =
        2 * d.tokens * weights + 4 * d.tokens * d.tokens * d.layers * d.features;
    EXPECT_NEAR(MatrixFlop(llama), expected, 0.002 * expected) << d.name;
  }
}

// Llama 3.1 of these sizes is Llama 3, but that its positions go on for longer; so do Mistral's
// since its second version, and those of each family as its publisher says.
TEST(WorkloadCatalog, EachNameHasTheLengthThatIsPublished) {
  EXPECT_EQ(Find("llama3.1_8b").layers, Find("llama3_8b").layers);
  EXPECT_EQ(Find("llama3.1_70b").layers, Find("llama3_70b").layers);
  EXPECT_EQ(Find("mistral_7b_v0.2").layers, Find("mistral_7b").layers);
  constexpr std::pair<const char*, int> kLongest[] = {
      {"llama3_8b", 8192},        {"llama3_70b", 8192},      {"llama3.1_8b", 131072},
      {"llama3.1_70b", 131072},   {"llama3.1_405b", 131072}, {"llama3.2_1b", 131072},
      {"llama3.2_3b", 131072},    {"mistral_7b", 4096},      {"mistral_7b_v0.2", 32768},
      {"mistral_7b_v0.3", 32768}, {"codellama_34b", 16384},  {"qwen2.5_0.5b", 32768},
      {"qwen2.5_3b", 32768},      {"qwen2.5_7b", 131072},    {"qwen3_1.7b", 32768},
      {"qwen3_4b", 131072},       {"phi3_mini", 131072},     {"phi4", 16384},
      {"gemma_7b", 8192},         {"gemma2_9b", 4096}};
  for (const auto& [name, tokens] : kLongest) {
    EXPECT_EQ(SizesOf(name)->most, tokens) << name;
    EXPECT_TRUE(Says(ErrorOf([&] { FindWorkload(name + ("@" + std::to_string(tokens + 1))); }),
                     "to " + std::to_string(tokens) + " tokens"));
  }
}

// Heads of 128 features, each normalised with one scale, whatever the features of a token.
TEST(WorkloadCatalog, QwenNormalisesItsHeads) {
  const Workload qwen = Find("qwen3_0.6b@100");
  const std::string attention = "layers.0.self_attn.";
  EXPECT_EQ(LayerNamed(qwen, attention + "query").parameters(), 1024 * 16 * 128);
  EXPECT_EQ(LayerNamed(qwen, attention + "output").parameters(), 16 * 128 * 1024);
  EXPECT_EQ(LayerNamed(qwen, attention + "query.norm").tensors, std::vector<std::int64_t>{128});
  EXPECT_EQ(LayerNamed(qwen, attention + "query.norm").operation,
            Operation(NormalizationOp{NormalizationKind::kLayer, 128, {100, 16}}));
  EXPECT_EQ(LayerNamed(qwen, attention + "key.norm").operation,
            Operation(NormalizationOp{NormalizationKind::kLayer, 128, {100, 8}}));
  EXPECT_EQ(LayerNamed(qwen, attention + "scores").operation,
            Operation(BatchedProductOp{16, 100, 100, 128}));
}

// Queries, keys and values of Qwen2.5 have biases, and their output has none.
TEST(WorkloadCatalog, QwenHasBiasesInFrontOfItsAttention) {
  const Workload qwen = Find("qwen2.5_7b");
  const std::string attention = "layers.0.self_attn.";
  EXPECT_EQ(LayerNamed(qwen, attention + "query").tensors,
            (std::vector<std::int64_t>{3584 * 3584, 3584}));
  EXPECT_EQ(LayerNamed(qwen, attention + "value").tensors,
            (std::vector<std::int64_t>{3584 * 512, 512}));
  EXPECT_EQ(LayerNamed(qwen, attention + "output").tensors.size(), 1U);
}

// One product makes queries, keys and values, and one the gate and what it multiplies.
TEST(WorkloadCatalog, PhiFusesItsProjections) {
  const Workload phi = Find("phi3_medium@100");
  EXPECT_EQ(LayerNamed(phi, "layers.0.self_attn.query_key_value").parameters(),
            5120 * (40 + 2 * 10) * 128);
  EXPECT_EQ(OutputElements(LayerNamed(phi, "layers.0.self_attn.key.rotary.add")), 100.0 * 1280);
  EXPECT_EQ(LayerNamed(phi, "layers.0.mlp.gate_up_proj").parameters(), 5120 * 2 * 17920);
  EXPECT_EQ(OutputElements(LayerNamed(phi, "layers.0.mlp.silu")), 100.0 * 17920);
}

// Scores are bound between their product and the softmax, those of the vocabulary at the end.
TEST(WorkloadCatalog, GemmaBoundsItsScores) {
  const Workload gemma = Find("gemma2_2b@100");
  EXPECT_EQ(OutputElements(LayerNamed(gemma, "layers.0.self_attn.cap.tanh")), 8.0 * 100 * 100);
  EXPECT_EQ(OutputElements(LayerNamed(gemma, "lm_head.cap.tanh")), 100.0 * 256000);
  EXPECT_EQ(LayerNamed(gemma, "layers.0.self_attn.query").parameters(), 2304 * 8 * 256);
  const Workload first = Find("gemma_2b");
  EXPECT_TRUE(std::none_of(first.layers.begin(), first.layers.end(), [](const Layer& layer) {
    return layer.name.find("cap") != std::string::npos;
  }));
}

// LLaMA and Llama 2 of these sizes are one network.
TEST(WorkloadCatalog, LlamaTakesTheTokensOfLlama2) {
  for (const auto& [first, second] :
       {std::pair("llama_7b", "llama2_7b"), {"llama_13b", "llama2_13b"}}) {
    EXPECT_EQ(Find(first + std::string("@4096")).layers, Find(second).layers);
    EXPECT_EQ(Find(first).layers, Find(second + std::string("@2048")).layers);
  }
}

// calflops, README: 1550.39 G for BLOOM-7B1 without its output layer, of whose two products of
// attention it sees one.
TEST(WorkloadCatalog, BloomWorkIsNearThePublished) {
  const Workload bloom = Find("bloom_7b1@128");
  const double head = LayerNamed(bloom, "lm_head").forward_flop.si();
  const double seen = MatrixFlop(bloom) - head - FlopOfKind(bloom, LayerKind::kAttention) / 2;
  EXPECT_NEAR(1e-9 * seen, 1550.39, 0.002 * 1550.39);
}

// Of 96 features of a head 24 are turned, and joined to the others again.
TEST(WorkloadCatalog, NeoxTurnsAQuarterOfItsFeatures) {
  const Workload neox = Find("gpt_neox_20b@100");
  for (const char* which : {"query", "key"}) {
    const std::string rotary = std::string("layers.7.attention.") + which + ".rotary";
    EXPECT_EQ(OutputElements(LayerNamed(neox, rotary + ".add")), 100.0 * 64 * 24) << which;
    EXPECT_EQ(OutputElements(LayerNamed(neox, rotary + ".join")), 100.0 * 64 * 96) << which;
  }
  EXPECT_EQ(LayerNamed(neox, "layers.7.attention.scores").operation,
            Operation(BatchedProductOp{64, 100, 100, 96}));
}

// 8 heads of keys serve 64 of queries.
TEST(WorkloadCatalog, GroupsOfHeadsShareTheirKeys) {
  const Workload llama = Find("llama2_70b@1000");
  const std::string attention = "layers.0.self_attn";
  EXPECT_EQ(LayerNamed(llama, attention + ".query").parameters(), 8192 * 8192);
  EXPECT_EQ(LayerNamed(llama, attention + ".key").parameters(), 8192 * 1024);
  EXPECT_EQ(LayerNamed(llama, attention + ".value").parameters(), 8192 * 1024);
  EXPECT_EQ(LayerNamed(llama, attention + ".scores").operation,
            Operation(BatchedProductOp{64, 1000, 1000, 128}));
  EXPECT_EQ(LayerNamed(llama, attention + ".context").operation,
            Operation(BatchedProductOp{64, 1000, 128, 1000}));
  // Turning a pair is two products and a sum, of queries and of keys.
  EXPECT_EQ(OutputElements(LayerNamed(llama, attention + ".query.rotary.add")), 1000.0 * 8192.0);
  EXPECT_EQ(OutputElements(LayerNamed(llama, attention + ".key.rotary.add")), 1000.0 * 1024.0);
}

// 114 tokens of output, whatever the input. A block of the encoder has 12 d^2 weights; one of the
// decoder 16, of which 2 are for the keys and values of the input.
TEST(WorkloadCatalog, EncoderAndDecoderWorkIsTheClosedForm) {
  constexpr DecoderSizes kModels[] = {{"t5_small", 512, 6, 512, 32128},
                                      {"t5_base", 512, 12, 768, 32128},
                                      {"t5_large", 512, 24, 1024, 32128},
                                      {"t5_base@1000", 1000, 12, 768, 32128},
                                      {"t5_v1_1_base", 512, 12, 768, 32128}};
  for (const DecoderSizes& m : kModels) {
    const double d = m.features;
    const double out = 114;
    const double block = 2 * d * d * (12 * m.tokens + 14 * out + 2 * m.tokens) +
                         4 * d * (m.tokens * m.tokens + out * out + out * m.tokens);
    const double expected = m.layers * block + 2 * out * d * m.vocabulary;
    EXPECT_NEAR(MatrixFlop(Find(m.name)), expected, 0.002 * expected) << m.name;
  }
}

// Two layers of 5120 make the gate of each feed-forward part, which one of 8192 would not, and the
// output layer has a weight of its own.
TEST(WorkloadCatalog, TheNewerT5HasGates) {
  const Workload t5 = Find("t5_v1_1_xl");
  const std::string part = "decoder.block.3.feed_forward";
  EXPECT_EQ(LayerNamed(t5, part + ".wi_0").operation, Operation(DenseOp{114, 2048, 5120}));
  EXPECT_EQ(LayerNamed(t5, part + ".wi_1").operation, Operation(DenseOp{114, 2048, 5120}));
  EXPECT_EQ(OutputElements(LayerNamed(t5, part + ".gate")), 114.0 * 5120);
  EXPECT_EQ(LayerNamed(t5, part + ".wo").operation, Operation(DenseOp{114, 5120, 2048}));
  EXPECT_EQ(t5.layers.back().tensors, std::vector<std::int64_t>{2048 * 32128});
  EXPECT_TRUE(LayerNamed(t5, "decoder.embed_tokens").tensors.empty());
}

TEST(WorkloadCatalog, CrossAttentionReadsTheEncoder) {
  const Workload t5 = Find("t5_base");
  const std::string attention = "decoder.block.3.cross_attention";
  EXPECT_EQ(LayerNamed(t5, attention + ".query").operation, Operation(DenseOp{114, 768, 768}));
  EXPECT_EQ(LayerNamed(t5, attention + ".key").operation, Operation(DenseOp{512, 768, 768}));
  EXPECT_EQ(LayerNamed(t5, attention + ".value").operation, Operation(DenseOp{512, 768, 768}));
  EXPECT_EQ(LayerNamed(t5, attention + ".scores").operation,
            Operation(BatchedProductOp{12, 114, 512, 64}));
  EXPECT_EQ(LayerNamed(t5, attention + ".context").operation,
            Operation(BatchedProductOp{12, 114, 64, 512}));
  // The one table of both and of the output.
  EXPECT_EQ(LayerNamed(t5, "encoder.embed_tokens").parameters(), 32128 * 768);
  EXPECT_TRUE(LayerNamed(t5, "decoder.embed_tokens").tensors.empty());
  EXPECT_EQ(LayerNamed(t5, "encoder.relative_attention_bias").parameters(), 32 * 12);
}

// Each token meets one expert, which is as large as the dense layers that it is in place of: all
// that is more is the router.
TEST(WorkloadCatalog, ExpertsAddTensorsAndHardlyAnyWork) {
  for (const char* size : {"@8", "@512", "@1000"}) {
    const Workload dense = Find(std::string("t5_base") + size);
    const Workload experts = Find(std::string("switch_base_8") + size);
    const double tokens = std::stod(size + 1);
    EXPECT_EQ(MatrixFlop(experts) - MatrixFlop(dense), 6 * (tokens + 114) * 2 * 768 * 8) << size;
    EXPECT_EQ(experts.parameters - dense.parameters, 12 * (7 * 2 * 768 * 3072 + 768 * 8));
  }
  const Workload experts = Find("switch_base_8");
  const auto positions = [&](const std::string& layer) {
    return OutputElements(LayerNamed(experts, layer)) / 3072;
  };
  for (int i = 0; i < 8; ++i) {
    const std::string expert = ".feed_forward.expert_" + std::to_string(i) + ".wi";
    EXPECT_EQ(positions("encoder.block.1" + expert), 64);
    EXPECT_EQ(positions("decoder.block.11" + expert), i < 2 ? 15 : 14);
  }
}

// 30 s of speech are 1500 positions for the encoder, whatever the text.
TEST(WorkloadCatalog, WhisperWorkIsTheClosedForm) {
  for (const double tokens : {448.0, 100.0}) {
    const double d = 768;
    const double in = 1500;
    const double convolutions = 2 * 3 * d * (3000 * 80 + in * d);
    const double block = 2 * d * d * (12 * in + 14 * tokens + 2 * in) +
                         4 * d * (in * in + tokens * tokens + tokens * in);
    const double expected = convolutions + 12 * block + 2 * tokens * d * 51865;
    const Workload whisper = Find("whisper_small@" + std::to_string(static_cast<int>(tokens)));
    EXPECT_NEAR(MatrixFlop(whisper), expected, 0.002 * expected) << tokens;
  }
}

// Channels double where sides halve, so that every convolution of C to C channels is A = 64^2 N^2
// multiply-adds for each of its 9 weights. Two of 4.5 and 9 A four times on the way down, two of 18
// and 9 A up, where each transposed one is 2 A; 3 channels come in and 2 go out.
TEST(WorkloadCatalog, UNetWorkIsTheClosedForm) {
  for (const double pixels : {512.0, 256.0, 48.0}) {
    const double area = pixels * pixels;
    const double a = 64 * 64 * area;
    const double into = 9 * 3 * 64 * area + 9 * a;
    const double expected = 2 * (into + 4 * 13.5 * a + 4 * 27 * a + 4 * 2 * a + 64 * 2 * area);
    const Workload unet = Find("unet@" + std::to_string(static_cast<int>(pixels)));
    EXPECT_NEAR(MatrixFlop(unet), expected, 0.001 * expected) << pixels;
    // With the biases of 512, 256, 128 and 64 channels.
    const double up = 2 * 8 * a + 64 * area * (1 + 0.5 + 0.25 + 0.125);
    EXPECT_NEAR(FlopOfKind(unet, LayerKind::kDense), up, 1e-9 * up) << pixels;
  }
  EXPECT_EQ(LayerNamed(Find("unet"), "up1.up").tensors,
            (std::vector<std::int64_t>{1024 * 512 * 4, 512}));
}

// 5 s are 501 frames; the second convolution leaves 251 steps of 41 x 32 features. Each recurrent
// weight is used once a step. GRU: 3 x 800 rows of 1312 inputs and of 800 units.
TEST(WorkloadCatalog, DeepSpeechShapesAndWork) {
  const Workload speech = Find("deepspeech2");
  EXPECT_EQ(OutputElements(LayerNamed(speech, "conv.0")), 32.0 * 81.0 * 251.0);
  EXPECT_EQ(OutputElements(LayerNamed(speech, "conv.3")), 32.0 * 41.0 * 251.0);
  EXPECT_EQ(OutputElements(LayerNamed(speech, "transpose")), 1312.0 * 251.0);
  const std::vector<std::int64_t> one_direction = {3148800, 1920000, 2400, 2400};
  std::vector<std::int64_t> tensors = one_direction;
  tensors.insert(tensors.end(), one_direction.begin(), one_direction.end());
  EXPECT_EQ(LayerNamed(speech, "rnns.0.rnn").tensors, tensors);
  const double recurrent_weights = 2.0 * 2400.0 * (1312.0 + 800.0 + 4.0 * 1600.0);
  const double expected = 2.0 * 251.0 * recurrent_weights;
  EXPECT_NEAR(FlopOfKind(speech, LayerKind::kRecurrent), expected, 0.01 * expected);
}

// Every weight of a perceptron is used once a sample.
TEST(WorkloadCatalog, PerceptronWorkIsTwiceItsWeights) {
  for (const char* name : {"mlp_mnist", "mlp_imagenet"}) {
    const Workload mlp = Find(name);
    const double expected = 2.0 * static_cast<double>(mlp.parameters);
    EXPECT_NEAR(MatrixFlop(mlp), expected, 0.002 * expected) << name;
  }
  const double ncf_dense = 2.0 * (256.0 * 128.0 + 128.0 * 64.0 + 64.0 * 32.0 + 64.0);
  EXPECT_NEAR(MatrixFlop(Find("ncf")), ncf_dense, 0.01 * ncf_dense);
}

TEST(WorkloadCatalog, ElementwiseWorkIsSmall) {
  for (const std::string& name : WorkloadNames()) {
    const Workload workload = Find(name);
    const double ratio = workload.forward_flop().si() / MatrixFlop(workload);
    EXPECT_GE(ratio, 1.0) << name;
    // Most in MobileNet v3 small, with 0.06 G multiply-adds, and EfficientNet, with 0.4 G.
    EXPECT_LT(ratio, 1.11) << name;
  }
}

// In Keras, v1 clips behind its first convolution and behind both of each of 13 blocks; v2 behind
// the first and the last, 17 depthwise convolutions and 16 expansions.
TEST(WorkloadCatalog, MobileNetsClipAtSix) {
  for (const auto& [name, expected] : {std::pair("mobilenet", 27), {"mobilenet_v2", 35}}) {
    int clipped = 0;
    const Workload workload = Find(name);
    for (const Layer& layer : workload.layers) {
      const auto* activation = std::get_if<ActivationOp>(&layer.operation);
      if (activation == nullptr || activation->function == Function::kSoftmax) continue;
      EXPECT_EQ(activation->function, Function::kRelu6) << name << ": " << layer.name;
      ++clipped;
    }
    EXPECT_EQ(clipped, expected) << name;
  }
}

// 12 heads of 64 features on 384 tokens: each score is a product over 64 and is scaled; the
// weighted sums are as many products, and nothing else.
TEST(WorkloadCatalog, ScoresAreScaledProducts) {
  const Workload bert = Find("bert_base");
  const double scores = 12.0 * 384 * 384;
  EXPECT_EQ(LayerNamed(bert, "layer.0.attention.scores").forward_flop.si(), scores * (2 * 64 + 1));
  EXPECT_EQ(LayerNamed(bert, "layer.0.attention.context").forward_flop.si(), scores * 2 * 64);
}

// ---- Shapes.

// The sizes that Keras and torchvision print along the way.
TEST(WorkloadCatalog, ShapesAlongTheWay) {
  const auto elements = [](const char* name, const char* layer) {
    return OutputElements(LayerNamed(Find(name), layer));
  };
  EXPECT_EQ(elements("resnet50", "conv1_conv"), 112.0 * 112.0 * 64.0);
  EXPECT_EQ(elements("resnet50", "pool1_pool"), 56.0 * 56.0 * 64.0);
  EXPECT_EQ(elements("resnet50", "conv5_block3_out"), 7.0 * 7.0 * 2048.0);
  EXPECT_EQ(elements("inception_v3", "mixed2"), 35.0 * 35.0 * 288.0);
  EXPECT_EQ(elements("inception_v3", "mixed7"), 17.0 * 17.0 * 768.0);
  EXPECT_EQ(elements("inception_v3", "mixed10"), 8.0 * 8.0 * 2048.0);
  EXPECT_EQ(elements("inception_v1", "maxpool1"), 56.0 * 56.0 * 64.0);  // ceil_mode
  EXPECT_EQ(elements("inception_v1", "inception5b.concat"), 7.0 * 7.0 * 1024.0);
  EXPECT_EQ(elements("alexnet", "conv1"), 55.0 * 55.0 * 64.0);
  EXPECT_EQ(elements("alexnet", "pool5"), 6.0 * 6.0 * 256.0);
  EXPECT_EQ(elements("densenet121", "conv5_block16_concat"), 7.0 * 7.0 * 1024.0);
  EXPECT_EQ(elements("yolov3", "detect1"), 13.0 * 13.0 * 255.0);
  EXPECT_EQ(elements("yolov3", "route2"), 52.0 * 52.0 * 384.0);
  EXPECT_EQ(elements("yolov3", "detect3"), 52.0 * 52.0 * 255.0);
  EXPECT_EQ(elements("bert_base", "layer.0.attention.scores"), 12.0 * 384.0 * 384.0);
  EXPECT_EQ(elements("bert_base", "pooler"), 768.0);
  EXPECT_EQ(elements("gpt2", "lm_head"), 1024.0 * 50257.0);
  EXPECT_EQ(elements("llama3_8b", "layers.31.mlp.gate"), 8192.0 * 14336.0);
  EXPECT_EQ(elements("vit_b_16", "concat_class_token"), 197.0 * 768.0);
  EXPECT_EQ(elements("vit_b_16", "heads.head"), 1000.0);
  EXPECT_EQ(elements("convnext_tiny", "stem.norm"), 56.0 * 56.0 * 96.0);
  EXPECT_EQ(elements("convnext_tiny", "stage4.2.scale"), 7.0 * 7.0 * 768.0);
  EXPECT_EQ(elements("resnext101_32x8d", "layer4.0.conv2"), 7.0 * 7.0 * 2048.0);
  EXPECT_EQ(elements("unet", "down4.1.conv"), 32.0 * 32.0 * 1024.0);
  EXPECT_EQ(elements("unet", "up1.concat"), 64.0 * 64.0 * 1024.0);
  EXPECT_EQ(elements("unet", "outc"), 512.0 * 512.0 * 2.0);
  EXPECT_EQ(elements("whisper_small", "encoder.layer_norm"), 1500.0 * 768.0);
  EXPECT_EQ(elements("t5_base", "lm_head"), 114.0 * 32128.0);
}

// ---- Sanity.

TEST(WorkloadCatalog, NamesAreSortedUniqueAndFound) {
  const std::vector<std::string> names = WorkloadNames();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  for (const std::string& name : names) {
    const Workload workload = Find(name);
    EXPECT_EQ(workload.name, name);
    EXPECT_FALSE(workload.title.empty()) << name;
    EXPECT_FALSE(workload.source.empty()) << name;
    EXPECT_FALSE(workload.layers.empty()) << name;
  }
}

TEST(WorkloadCatalog, UnknownNamesAreNothing) {
  for (const char* name : {"", "resnet", "resnet5", "-", "unknown"}) {
    EXPECT_FALSE(FindWorkload(name).has_value()) << name;
  }
}

TEST(WorkloadCatalog, ASizeOfInputIsNoPartOfWhatIsNear) {
  std::vector<std::string> names = WorkloadNames();
  names.emplace_back("my_net");
  const std::pair<const char*, const char*> cases[] = {
      {"llama3_1_8b", " (did you mean llama3.1_8b?)"},
      {"llama3_1_8b@4096", " (did you mean llama3.1_8b@4096?)"},
      {"resnet51@160", " (did you mean resnet50@160?)"},
      {"vgg17@160", " (did you mean vgg16?)"},
      {"my_nett@160", " (did you mean my_net?)"},
      {"nobody@160", ""},
      {"@160", ""},
      {"", ""}};
  for (const auto& [name, meant] : cases) {
    EXPECT_EQ(DidYouMeanWorkload(name, names), meant) << name;
  }
}

TEST(WorkloadCatalog, AliasesLeadToTheCatalogueName) {
  EXPECT_EQ(Find("googlenet").name, "inception_v1");
  EXPECT_EQ(Find("mobilenet_v1").name, "mobilenet");
  EXPECT_EQ(Find("bert").name, "bert_base");
  EXPECT_EQ(Find("gpt2_small").name, "gpt2");
  EXPECT_EQ(Find("neumf").name, "ncf");
  EXPECT_EQ(Find("resnet200_v2").name, "resnet200");
  EXPECT_EQ(Find("llama3").name, "llama3_8b");
  EXPECT_EQ(Find("mistral").name, "mistral_7b");
  EXPECT_EQ(Find("roberta").name, "roberta_base");
  EXPECT_EQ(Find("bloom").name, "bloom_7b1");
  EXPECT_EQ(Find("gpt_neox").name, "gpt_neox_20b");
  EXPECT_EQ(Find("switch_base").name, "switch_base_8");
  EXPECT_EQ(Find("t5@100").name, "t5_base@100");
  EXPECT_EQ(Find("vit").name, "vit_b_16");
  EXPECT_EQ(Find("whisper").name, "whisper_small");
  EXPECT_EQ(Find("llama3.1").name, "llama3.1_8b");
  EXPECT_EQ(Find("llama3.3_70b").name, "llama3.1_70b");
  EXPECT_EQ(Find("qwen2_7b").name, "qwen2.5_7b");
  EXPECT_EQ(Find("bert-large-uncased@512").name, "bert_large@512");
}

TEST(WorkloadCatalog, EveryLayerIsFiniteAndNamedOnce) {
  for (const std::string& name : WorkloadNames()) {
    const Workload workload = Find(name);
    std::set<std::string> layer_names;
    for (const Layer& layer : workload.layers) {
      const std::string where = name + ": " + layer.name;
      EXPECT_TRUE(layer_names.insert(layer.name).second) << where;
      EXPECT_FALSE(layer.name.empty()) << name;
      EXPECT_TRUE(std::isfinite(layer.forward_flop.si())) << where;
      EXPECT_GE(layer.forward_flop.si(), 0.0) << where;
      EXPECT_TRUE(std::isfinite(layer.activation_bytes.si())) << where;
      EXPECT_GT(layer.activation_bytes.si(), 0.0) << where;
      EXPECT_GE(layer.statistics, 0) << where;
      for (const std::int64_t tensor : layer.tensors) EXPECT_GT(tensor, 0) << where;
      if (IsMatrixWork(layer.kind)) {
        EXPECT_GT(layer.forward_flop.si(), 0.0) << where;
      }
    }
  }
}

// Gradients become ready in reverse: the input's layer is first, the output's last.
TEST(WorkloadCatalog, LayersAreInForwardOrder) {
  const Workload resnet = Find("resnet50");
  EXPECT_EQ(resnet.layers.front().name, "conv1_conv");
  EXPECT_EQ(resnet.layers.front().tensors, (std::vector<std::int64_t>{9408, 64}));
  EXPECT_EQ(resnet.layers.at(resnet.layers.size() - 2).tensors,
            (std::vector<std::int64_t>{2048000, 1000}));
  EXPECT_EQ(Find("vgg16").layers.front().name, "block1_conv1");
  EXPECT_EQ(Find("bert_base").layers.front().name, "embeddings.word");
  EXPECT_EQ(Find("gpt2").layers.back().name, "lm_head");
  EXPECT_TRUE(Find("gpt2").layers.back().tensors.empty());
  EXPECT_TRUE(Find("llama3.2_1b").layers.back().tensors.empty());
  EXPECT_EQ(Find("llama_7b").layers.back().tensors, std::vector<std::int64_t>{4096 * 32000});
  EXPECT_EQ(Find("t5_base").layers.front().name, "encoder.embed_tokens");
}

// Those between digits count: opt_1.3b is none of 13 billion.
TEST(WorkloadCatalog, CaseAndSignsOfANameDoNotCount) {
  EXPECT_EQ(Find("ResNet50").name, "resnet50");
  EXPECT_EQ(Find("resnet-50@160").name, "resnet50@160");
  EXPECT_EQ(Find("ViT-B/16").name, "vit_b_16");
  EXPECT_EQ(Find("OPT-1.3B").name, "opt_1.3b");
  EXPECT_EQ(Find("OPT-13B").name, "opt_13b");
  EXPECT_EQ(Find("gemma-2-2b").name, "gemma2_2b");
  for (const char* other : {"opt_1_3b", "gemma_22b", "gemma_2.2b", "llama_2.7b", "llama_27b"}) {
    EXPECT_EQ(FindWorkload(other), std::nullopt) << other;
  }
  EXPECT_EQ(Find("Llama3.1-8B@4096").name, "llama3.1_8b@4096");
  EXPECT_EQ(Find("Qwen2.5-7B").name, "qwen2.5_7b");
  EXPECT_EQ(Find("ResNet-50 v1.5").name, "resnet50_v1_5");
  for (const std::string& name : WorkloadNames()) {
    std::string shouted;
    for (const char c : name) {
      shouted += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      if (!std::isdigit(static_cast<unsigned char>(c)) && c != '.') shouted += '-';
    }
    EXPECT_EQ(Find(shouted).name, name);
  }
}

TEST(WorkloadCatalog, DeeperIsMore) {
  const std::vector<std::vector<std::string>> ladders = {
      {"resnet18", "resnet50", "resnet101", "resnet152", "resnet200"},
      {"vgg16", "vgg19"},
      {"bert_base", "bert_large"},
      {"gpt2", "gpt2_medium", "gpt2_large", "gpt2_xl"},
      {"opt_125m", "opt_1.3b", "opt_2.7b", "opt_6.7b", "opt_13b"},
      {"llama_7b", "llama_13b", "llama2_70b"},
      {"llama2_7b", "llama2_13b", "codellama_34b", "llama2_70b"},
      {"llama3.2_1b", "llama3.2_3b", "llama3_8b", "llama3_70b", "llama3.1_405b"},
      {"qwen2.5_0.5b", "qwen2.5_1.5b", "qwen2.5_3b", "qwen2.5_7b", "qwen2.5_14b", "qwen2.5_32b",
       "qwen2.5_72b"},
      {"qwen3_0.6b", "qwen3_1.7b", "qwen3_4b", "qwen3_8b", "qwen3_14b", "qwen3_32b"},
      {"phi3_mini", "phi3_medium", "phi4"},
      {"gemma_2b", "gemma_7b"},
      {"gemma2_2b", "gemma2_9b", "gemma2_27b"},
      {"efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3",
       "efficientnet_b4", "efficientnet_b5", "efficientnet_b6", "efficientnet_b7"},
      {"densenet121", "densenet169", "densenet201"},
      {"mobilenet_v3_small", "mobilenet_v3_large"},
      {"vit_ti_16", "vit_s_16", "vit_b_16", "vit_l_16"},
      {"yolov8n", "yolov8s", "yolov8m", "yolov8l", "yolov8x"},
      {"roberta_base", "roberta_large"},
      {"vit_b_16", "vit_l_16", "vit_h_14"},
      {"t5_small", "t5_base", "t5_large"},
      {"t5_v1_1_base", "t5_v1_1_large", "t5_v1_1_xl"},
      {"convnext_tiny", "convnext_small", "convnext_base", "convnext_large"},
      {"resnext50_32x4d", "resnext101_32x8d"},
      {"resnet50_v1_5", "wide_resnet50_2", "wide_resnet101_2"},
      {"t5_base", "switch_base_8"},
      {"mlp_mnist", "mlp_imagenet"}};
  for (const std::vector<std::string>& ladder : ladders) {
    for (std::size_t i = 1; i < ladder.size(); ++i) {
      const Workload less = Find(ladder[i - 1]);
      const Workload more = Find(ladder[i]);
      EXPECT_LT(less.parameters, more.parameters) << more.name;
      EXPECT_LT(less.forward_flop(), more.forward_flop()) << more.name;
      EXPECT_LT(less.activation_bytes(), more.activation_bytes()) << more.name;
      EXPECT_LT(less.gradient_bytes, more.gradient_bytes) << more.name;
    }
  }
}

TEST(WorkloadCatalog, AMessageIsNamedByItsBytes) {
  const std::optional<Workload> message = FindWorkload("message_1048576");
  ASSERT_TRUE(message);
  EXPECT_EQ(message->name, "message_1048576");
  EXPECT_EQ(message->gradient_bytes.in(kBytes), 1048576);
  EXPECT_EQ(message->trainable_parameters, 262144);
  EXPECT_TRUE(message->communication_only);
  EXPECT_TRUE(message->layers.empty());
  const std::optional<Workload> least = FindWorkload("message_4");
  ASSERT_TRUE(least);
  EXPECT_EQ(least->trainable_parameters, 1);
  for (const char* spelled : {"message-1000", "Message 1000", "MESSAGE1000", "message_01000"}) {
    const std::optional<Workload> found = FindWorkload(spelled);
    ASSERT_TRUE(found) << spelled;
    EXPECT_EQ(found->name, "message_1000") << spelled;
  }
  for (const char* other : {"message_", "message_3", "message_-1000", "messages_1000", "1000",
                            "message_1.5", "message_1e6", "message_17 ", "message_-4",
                            "message_1000000000000001", "message_99999999999999999999"}) {
    EXPECT_FALSE(FindWorkload(other)) << other;
  }
}

}  // namespace
}  // namespace stepcast
