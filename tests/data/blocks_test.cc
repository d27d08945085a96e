// Blocks by the names of their layers, and what of a network is computed twice.
#include "data/record/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/workloads/catalog.h"

namespace stepcast {
namespace {

TEST(Blocks, AreWhatStandsBeforeANumberAndIt) {
  EXPECT_EQ(BlockOf("h.0.ln_1"), "h.0");
  EXPECT_EQ(BlockOf("encoder/layer/11/fc1"), "encoder/layer/11");
  EXPECT_EQ(BlockOf("block_7.conv"), "block_7");
  EXPECT_EQ(BlockOf("layer12/ffn"), "layer12");
  EXPECT_EQ(BlockOf("LAYER12/ffn"), "LAYER12");
  EXPECT_EQ(BlockOf("l0.attn"), "l0");
  EXPECT_EQ(BlockOf("h3.mlp"), "h3");
  EXPECT_EQ(BlockOf("0.attention"), "0");
  EXPECT_EQ(BlockOf("12/attention/dense"), "12");
  EXPECT_EQ(BlockOf("wte"), "");
  EXPECT_EQ(BlockOf(""), "");
  // A layer that has only a number for a name is no block of layers.
  EXPECT_EQ(BlockOf("conv.3"), "");
  EXPECT_EQ(BlockOf("features.0"), "");
  EXPECT_EQ(BlockOf("layers_3"), "");
  EXPECT_EQ(BlockOf("block7"), "");
  EXPECT_EQ(BlockOf("h.0."), "");
  EXPECT_EQ(BlockOf("/342"), "");
}

// What a network has several of is not what it repeats.
TEST(Blocks, AreNotWhateverHasANumber) {
  for (const char* const name : {"conv1",
                                 "fc2",
                                 "bn1",
                                 "add_12",
                                 "conv1.bn1",
                                 "conv1/weight",
                                 "conv2d_3/relu",
                                 "pool2_conv",
                                 "conv_dw_5_bn",
                                 "conv_pw_5_relu",
                                 "conv4_3_norm",
                                 "dense_1_relu",
                                 "layer_norm1.x",
                                 "layer_norm_1_x",
                                 "l2_norm",
                                 "l2_norm.x",
                                 "c4h_3.x",
                                 "h..ln",
                                 "h.0a.ln",
                                 "h0a.ln",
                                 "block1ab_conv",
                                 "mlp.dense_4h_to_h",
                                 "stage3.downsample.norm",
                                 "shortcut3_7"}) {
    EXPECT_EQ(BlockOf(name), "") << name;
  }
}

// Numbers that follow each other, those of coarser things, and names that say a part twice.
TEST(Blocks, OfSeveralNumbersAreThoseOfBlocks) {
  EXPECT_EQ(BlockOf("0.1.conv"), "0.1");
  EXPECT_EQ(BlockOf("features.0.0"), "features.0");
  EXPECT_EQ(BlockOf("blocks_1_0_conv_pw"), "blocks_1_0");
  EXPECT_EQ(BlockOf("conv2_block1_1_conv"), "conv2_block1");
  EXPECT_EQ(BlockOf("layers.3.mlp.experts.5.w1"), "layers.3");
  EXPECT_EQ(BlockOf("features.3.layers.0.conv"), "features.3");
  EXPECT_EQ(BlockOf("encoder.block.0.layer.1.wi"), "encoder.block.0");
  EXPECT_EQ(BlockOf("layers.0.blocks.1.mlp"), "layers.0.blocks.1");
  EXPECT_EQ(BlockOf("block1/unit_2/bottleneck_v1/conv1"), "block1/unit_2");
  EXPECT_EQ(BlockOf("0.auto_model.encoder.layer.3.output"), "0.auto_model.encoder.layer.3");
  EXPECT_EQ(BlockOf("0.features.3.conv"), "0");
  EXPECT_EQ(BlockOf("/layer1/layer1.0/conv1/Conv"), "/layer1/layer1.0");
  EXPECT_EQ(BlockOf("layer1/layer10/conv1"), "layer1");
  EXPECT_EQ(BlockOf("layer1/layer1"), "layer1");
}

// Names as the publishers' modules and their exports have them.
TEST(Blocks, OfNamesThatOthersGive) {
  struct Scheme {
    const char* of;
    const char* block;
    std::vector<const char*> layers;
  };
  const Scheme schemes[] = {
      {"torchvision resnet50",
       "layer1.0",
       {"layer1.0.conv1", "layer1.0.bn3", "layer1.0.relu", "layer1.0.downsample.0",
        "layer1.0.downsample.1"}},
      {"its graph by torch.fx",
       "layer3_5",
       {"layer3_5_conv1", "layer3_5_bn3", "layer3_5_relu_2", "layer3_5_downsample_0"}},
      {"its ONNX export",
       "/layer1/layer1.0",
       {"/layer1/layer1.0/conv1/Conv", "/layer1/layer1.0/relu_2/Relu", "/layer1/layer1.0/Add",
        "/layer1/layer1.0/downsample/downsample.0/Conv"}},
      {"Keras resnet50",
       "conv4_block6",
       {"conv4_block6_1_conv", "conv4_block6_0_bn", "conv4_block6_add", "conv4_block6_out"}},
      {"TF-Slim resnet_v1_50",
       "resnet_v1_50/block1/unit_2",
       {"resnet_v1_50/block1/unit_2/bottleneck_v1/conv1/Conv2D",
        "resnet_v1_50/block1/unit_2/bottleneck_v1/add"}},
      {"MXNet resnet-50", "stage1_unit2", {"stage1_unit2_conv1", "stage1_unit2_bn3"}},
      {"torchvision efficientnet_b0",
       "features.1.0",
       {"features.1.0.block.0.0", "features.1.0.block.1.fc1", "features.1.0.stochastic_depth"}},
      {"its ONNX export",
       "/features/features.1/features.1.0",
       {"/features/features.1/features.1.0/block/block.0/block.0.0/Conv",
        "/features/features.1/features.1.0/Add"}},
      {"timm efficientnet_b0", "blocks.1.0", {"blocks.1.0.conv_pw", "blocks.1.0.se.conv_reduce"}},
      {"Keras efficientnet_b0", "block2b", {"block2b_expand_conv", "block2b_se_squeeze"}},
      {"torchvision mobilenet_v2", "features.3", {"features.3.conv.0.0", "features.3.conv.2"}},
      {"Keras mobilenet_v2", "block_7", {"block_7_expand", "block_7_depthwise_relu"}},
      {"torchvision densenet121",
       "features.denseblock2.denselayer11",
       {"features.denseblock2.denselayer11.norm1", "features.denseblock2.denselayer11.conv2"}},
      {"torchvision regnet_y_400mf",
       "trunk_output.block3.block3-1",
       {"trunk_output.block3.block3-1.f.a.0", "trunk_output.block3.block3-1.activation"}},
      {"torchvision inception_v3",
       "Mixed_5b",
       {"Mixed_5b.branch1x1.conv", "Mixed_5b.branch3x3dbl_2.bn"}},
      {"Caffe bvlc_googlenet", "inception_4a", {"inception_4a/3x3_reduce", "inception_4a/output"}},
      {"timm convnext_tiny", "stages.2.blocks.8", {"stages.2.blocks.8.conv_dw"}},
      {"HF resnet-50",
       "resnet.encoder.stages.0.layers.1",
       {"resnet.encoder.stages.0.layers.1.layer.0.convolution"}},
      {"timm swin_tiny", "layers.2.blocks.5", {"layers.2.blocks.5.attn.qkv"}},
      {"its graph by torch.fx", "layers_2_blocks_5", {"layers_2_blocks_5_mlp_fc1"}},
      {"HF bert-base-uncased",
       "bert.encoder.layer.11",
       {"bert.encoder.layer.11.attention.self.query", "bert.encoder.layer.11.output.LayerNorm"}},
      {"its graph by torch.fx",
       "bert_encoder_layer_11",
       {"bert_encoder_layer_11_attention_self_query", "bert_encoder_layer_11_output_dense"}},
      {"its ONNX export",
       "/bert/encoder/layer.11",
       {"/bert/encoder/layer.11/attention/self/MatMul_1",
        "/bert/encoder/layer.11/output/dense/MatMul"}},
      {"its TensorFlow graph",
       "tf_bert_model/bert/encoder/layer_._11",
       {"tf_bert_model/bert/encoder/layer_._11/attention/self/query/Tensordot"}},
      {"HF gpt2", "transformer.h.0", {"transformer.h.0.attn.c_attn", "transformer.h.0.ln_2"}},
      {"its graph by torch.fx",
       "transformer_h_5",
       {"transformer_h_5_attn", "transformer_h_5_ln_1"}},
      {"its ONNX export", "/transformer/h.0", {"/transformer/h.0/attn/c_attn/Gemm"}},
      {"HF llama",
       "model.layers.31",
       {"model.layers.31.self_attn.q_proj", "model.layers.31.mlp.gate_proj"}},
      {"its ONNX export",
       "/model/layers.11",
       {"/model/layers.11/self_attn/MatMul", "/model/layers.11/mlp/act_fn/Sigmoid"}},
      {"llama.cpp", "blk.3", {"blk.3.attn_q", "blk.3.ffn_down"}},
      {"HF t5-base",
       "decoder.block.2",
       {"decoder.block.2.layer.0.SelfAttention.q", "decoder.block.2.layer.1.EncDecAttention.v",
        "decoder.block.2.layer.2.DenseReluDense.wi"}},
      {"its graph by torch.fx", "decoder_block_2", {"decoder_block_2_layer_1_layer_norm"}},
      {"t5x", "encoder/layers_0", {"encoder/layers_0/attention/query", "encoder/layers_0/mlp/wi"}},
      {"timm vit_base_patch16_224", "blocks.3", {"blocks.3.attn.qkv", "blocks.3.mlp.fc1"}},
      {"its ONNX export", "/blocks/blocks.3", {"/blocks/blocks.3/attn/qkv/MatMul"}},
      {"torchvision vit_b_16",
       "encoder.layers.encoder_layer_0",
       {"encoder.layers.encoder_layer_0.ln_1", "encoder.layers.encoder_layer_0.mlp.3"}},
      {"Flax ViT-B_16",
       "Transformer/encoderblock_3",
       {"Transformer/encoderblock_3/MultiHeadDotProductAttention_1/query",
        "Transformer/encoderblock_3/MlpBlock_3/Dense_0"}},
      {"Megatron-LM",
       "language_model.encoder.layers.11",
       {"language_model.encoder.layers.11.self_attention.query_key_value",
        "language_model.encoder.layers.11.mlp.dense_h_to_4h"}},
      {"Megatron Core",
       "decoder.layers.0",
       {"decoder.layers.0.self_attention.linear_qkv", "decoder.layers.0.mlp.linear_fc1",
        "decoder.layers.0.mlp.experts.local_experts.5.linear_fc1"}},
      {"GPT-NeoX", "sequential.12", {"sequential.12.attention.query_key_value"}},
      {"HF wav2vec2", "wav2vec2.encoder.layers.3", {"wav2vec2.encoder.layers.3.attention.k_proj"}},
      {"ultralytics yolov8n", "model.4", {"model.4.m.0.cv1.conv", "model.4.cv1.conv"}},
  };
  for (const Scheme& scheme : schemes) {
    for (const char* const layer : scheme.layers) {
      EXPECT_EQ(BlockOf(layer), scheme.block) << scheme.of << ": " << layer;
    }
  }
}

Layer Named(const char* name, double flop) {
  Layer layer;
  layer.name = name;
  layer.forward_flop = Flop(flop);
  return layer;
}

// What is in the middle of a block and not of it leaves it one block.
TEST(Blocks, AreCountedInTheOrderInWhichTheyBegin) {
  Workload workload;
  workload.layers = {Named("in", 1), Named("b.1.x", 2), Named("b.0.x", 4), Named("mask", 8),
                     Named("b.1.y", 16)};
  using Numbers = std::vector<std::optional<std::size_t>>;
  EXPECT_EQ(BlocksOf(workload), (Numbers{std::nullopt, 0, 1, std::nullopt, 0}));
  EXPECT_TRUE(HasBlocks(workload));
  EXPECT_EQ(RecomputedLayers(workload), std::vector<bool>(5, false));
  EXPECT_EQ(RecomputedShare(workload), 0);
  workload.recompute = Recompute::kFull;
  EXPECT_EQ(RecomputedLayers(workload), (std::vector<bool>{false, true, true, false, true}));
  EXPECT_EQ(RecomputedShare(workload), 22.0 / 31);
  for (Layer& layer : workload.layers) layer.forward_flop = Work<>();
  EXPECT_EQ(RecomputedShare(workload), 0);
}

// Scores, their scale, mask, softmax and drop-out, and the product with values, whoever runs them.
TEST(Recomputed, SelectivelyIsTheCoreOfAttention) {
  Workload bert = *FindWorkload("bert_base");
  bert.recompute = Recompute::kSelective;
  const std::vector<bool> recomputed = RecomputedLayers(bert);
  const std::set<std::string> core = {"scores", "scale", "mask", "softmax", "dropout", "context"};
  const std::string attention = ".attention.";
  for (std::size_t i = 0; i < bert.layers.size(); ++i) {
    const std::string& name = bert.layers[i].name;
    const std::size_t at = name.find(attention);
    const bool expected =
        at != std::string::npos && core.count(name.substr(at + attention.size())) == 1;
    EXPECT_EQ(recomputed[i], expected) << name;
  }
  EXPECT_EQ(std::count(recomputed.begin(), recomputed.end(), true), 12 * 6);
  bert.attention = AttentionForm::kFused;
  EXPECT_EQ(RecomputedLayers(bert), recomputed);
  // It needs no blocks, and a network without attention has nothing of the kind.
  for (Layer& layer : bert.layers) layer.name = "layer";
  EXPECT_EQ(RecomputedLayers(bert), recomputed);
  Workload resnet = *FindWorkload("resnet50");
  resnet.recompute = Recompute::kSelective;
  EXPECT_EQ(RecomputedLayers(resnet), std::vector<bool>(resnet.layers.size(), false));
  EXPECT_EQ(RecomputedShare(resnet), 0);
}

// Korthikanti et al., Sections 5 and 6, state 2.7 and 1.6 % of GPT-3 and MT-NLG. They count
// products alone; softmax, which is recomputed too, and the output layer are within a per cent of
// these.
TEST(Recomputed, SelectivelyIsTheShareThatItsAuthorsState) {
  const auto share = [](const char* name) {
    Workload gpt = *FindWorkload(name);
    gpt.recompute = Recompute::kSelective;
    return RecomputedShare(gpt);
  };
  const double gpt3 = share("gpt:layers=96:hidden=12288:heads=96@2048");
  EXPECT_NEAR(gpt3, 2048.0 / (6 * 12288 + 2048), 0.0003);
  EXPECT_NEAR(gpt3, 0.027, 0.0005);
  const double mt_nlg = share("gpt:layers=105:hidden=20480:heads=128@2048");
  EXPECT_NEAR(mt_nlg, 2048.0 / (6 * 20480 + 2048), 0.0003);
  EXPECT_NEAR(mt_nlg, 0.016, 0.0006);
}

TEST(Blocks, OfKnownNetworks) {
  const auto count = [](const char* name) {
    std::set<std::size_t> blocks;
    for (const std::optional<std::size_t>& block : BlocksOf(FindWorkload(name).value())) {
      if (block) blocks.insert(*block);
    }
    return blocks.size();
  };
  EXPECT_EQ(count("gpt2"), 12U);
  EXPECT_EQ(count("bert_large"), 24U);
  EXPECT_EQ(count("llama_13b"), 40U);
  EXPECT_EQ(count("t5_base"), 24U);
  EXPECT_EQ(count("vit_l_16"), 24U);
  EXPECT_EQ(count("resnet50_v1_5"), 16U);
  // Keras's, whose names have no dots.
  EXPECT_EQ(count("resnet50"), 16U);
  EXPECT_EQ(count("resnet152"), 50U);
  EXPECT_EQ(count("densenet121"), 6U + 12 + 24 + 16);
  EXPECT_EQ(count("efficientnet_b0"), 16U);
  EXPECT_EQ(count("mobilenet_v2"), 17U);
  EXPECT_EQ(count("inception_v1"), 9U);
  EXPECT_EQ(count("inception_v3"), 11U);
  EXPECT_EQ(count("convnext_tiny"), 3U + 3 + 9 + 3);
  EXPECT_EQ(count("vgg16"), 5U);
  EXPECT_EQ(count("alexnet"), 0U);
  EXPECT_EQ(count("mobilenet"), 0U);
  EXPECT_EQ(count("yolov3"), 0U);
  EXPECT_FALSE(HasBlocks(FindWorkload("alexnet").value()));
  EXPECT_FALSE(HasBlocks(Workload()));
}

}  // namespace
}  // namespace stepcast
