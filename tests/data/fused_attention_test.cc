// Attention in one kernel: its work by hand, and which layers it stands for.
#include "data/record/fused_attention.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/workloads/catalog.h"

namespace stepcast {
namespace {

constexpr FusedAttention kSmall = {12, 5, 7, 3, false};

// 12 heads, 5 queries, 7 keys, 3 features: two products of 2 5 7 3 FLOP a head, and 5 3 numbers of
// queries and results, 7 3 of keys and values.
TEST(FusedAttention, CountsByHand) {
  const OperationCounts forward = CountAttention(kSmall, TrainingPass::kForward);
  EXPECT_EQ(forward.flop_per_sample, 12 * 2 * (2 * 5 * 7 * 3));
  EXPECT_EQ(forward.elements_per_sample, 12 * (2 * 15 + 2 * 21));
  EXPECT_EQ(forward.elements, 0);
  const OperationCounts backward = CountAttention(kSmall, TrainingPass::kBackward);
  EXPECT_EQ(backward.flop_per_sample, 12 * 5 * (2 * 5 * 7 * 3));
  EXPECT_EQ(backward.elements_per_sample, 3 * 12 * (2 * 15 + 2 * 21));
  EXPECT_EQ(backward.elements, 0);
}

TEST(FusedAttention, AMaskHalvesTheWorkAndNotTheBytes) {
  FusedAttention causal = kSmall;
  causal.causal = true;
  for (const TrainingPass pass : {TrainingPass::kForward, TrainingPass::kBackward}) {
    const OperationCounts whole = CountAttention(kSmall, pass);
    const OperationCounts half = CountAttention(causal, pass);
    EXPECT_EQ(half.flop_per_sample, whole.flop_per_sample / 2);
    EXPECT_EQ(half.elements_per_sample, whole.elements_per_sample);
  }
}

// Its forward products are those of the plain layers.
TEST(FusedAttention, DoesTheWorkOfItsProducts) {
  const double products =
      CountOperation(BatchedProductOp{12, 5, 7, 3}, TrainingPass::kForward).flop_per_sample +
      CountOperation(BatchedProductOp{12, 5, 3, 7}, TrainingPass::kForward).flop_per_sample;
  EXPECT_EQ(CountAttention(kSmall, TrainingPass::kForward).flop_per_sample, products);
}

Workload Fused(const std::string& name) {
  Workload workload = FindWorkload(name).value();
  workload.attention = AttentionForm::kFused;
  return workload;
}

std::vector<FusedAttention> AllFused(const Workload& workload) {
  std::vector<FusedAttention> all;
  for (const LayerAsRun& run : LayersAsRun(workload)) {
    if (run.fused) all.push_back(*run.fused);
  }
  return all;
}

// From the scores of each block to their product with the values, and whether it is fused or not.
TEST(AttentionCores, AreWhatOneKernelWouldDo) {
  const Workload bert = FindWorkload("bert_base").value();
  const std::vector<AttentionCore> cores = AttentionCores(bert);
  ASSERT_EQ(cores.size(), 12U);
  for (const AttentionCore& core : cores) {
    EXPECT_TRUE(bert.layers[core.first].name.ends_with(".scores"));
    EXPECT_TRUE(bert.layers[core.last].name.ends_with(".context"));
    EXPECT_EQ(core.last - core.first, 5U);
  }
  EXPECT_EQ(AttentionCores(Fused("bert_base")).size(), 12U);
  EXPECT_TRUE(AttentionCores(FindWorkload("resnet50").value()).empty());
}

TEST(LayersAsRun, PlainLayersRunOneByOne) {
  const Workload bert = FindWorkload("bert_base").value();
  const std::vector<LayerAsRun> run = LayersAsRun(bert);
  ASSERT_EQ(run.size(), bert.layers.size());
  for (std::size_t i = 0; i < run.size(); ++i) {
    EXPECT_EQ(run[i].index, i);
    EXPECT_FALSE(run[i].fused);
  }
}

// Scores, their scale, mask, softmax and drop-out, and the sums of each of 12 blocks are one, in
// the place of the last.
TEST(LayersAsRun, FusedAttentionIsOne) {
  const Workload bert = Fused("bert_base");
  const std::vector<LayerAsRun> run = LayersAsRun(bert);
  EXPECT_EQ(run.size(), bert.layers.size() - 5 * 12);
  for (std::size_t i = 1; i < run.size(); ++i) {
    EXPECT_EQ(run[i].index - run[i - 1].index, run[i].fused ? 6U : 1U);
    EXPECT_EQ(run[i].fused.has_value(), bert.layers[run[i].index].name.ends_with(".context"));
  }
  EXPECT_EQ(AllFused(bert), std::vector<FusedAttention>(12, {12, 384, 384, 64, false}));
}

// A decoder looks back at itself, and at all of its input.
TEST(LayersAsRun, DecodersAreCausal) {
  EXPECT_EQ(AllFused(Fused("opt_125m@100")),
            std::vector<FusedAttention>(12, {12, 100, 100, 64, true}));
  EXPECT_EQ(AllFused(Fused("gpt2@100")), std::vector<FusedAttention>(12, {12, 100, 100, 64, true}));
  EXPECT_EQ(AllFused(Fused("llama3_8b@100")),
            std::vector<FusedAttention>(32, {32, 100, 100, 128, true}));
  EXPECT_EQ(AllFused(Fused("qwen3_0.6b@100")),
            std::vector<FusedAttention>(28, {16, 100, 100, 128, true}));
  EXPECT_EQ(AllFused(Fused("gemma2_2b@100")),
            std::vector<FusedAttention>(26, {8, 100, 100, 256, true}))
      << "a bound of the scores is within the kernel";
  std::vector<FusedAttention> whisper(12, {12, 1500, 1500, 64, false});
  std::vector<FusedAttention> t5(12, {12, 512, 512, 64, false});
  for (int i = 0; i < 12; ++i) {
    whisper.insert(whisper.end(), {{12, 100, 100, 64, true}, {12, 100, 1500, 64, false}});
    t5.insert(t5.end(), {{12, 114, 114, 64, true}, {12, 114, 512, 64, false}});
  }
  EXPECT_EQ(AllFused(Fused("whisper_small@100")), whisper);
  EXPECT_EQ(AllFused(Fused("t5_base")), t5);
  EXPECT_TRUE(AllFused(Fused("vit_b_16")).size() == 12);
  EXPECT_TRUE(AllFused(Fused("resnet50")).empty());
}

Layer LayerOf(LayerKind kind, const Operation& operation) {
  Layer layer;
  layer.kind = kind;
  layer.operation = operation;
  return layer;
}

Workload Written() {
  Workload workload;
  workload.attention = AttentionForm::kFused;
  workload.layers = {LayerOf(LayerKind::kAttention, BatchedProductOp{2, 5, 7, 3}),
                     LayerOf(LayerKind::kElementwise, ElementwiseOp{ElementwiseKind::kAdd, 7, 10}),
                     LayerOf(LayerKind::kActivation, ActivationOp{Function::kSoftmax, 10, 7}),
                     LayerOf(LayerKind::kAttention, BatchedProductOp{2, 5, 3, 7})};
  return workload;
}

TEST(LayersAsRun, WhatIsPlainMayBeFused) {
  Workload plain = Written();
  plain.attention = AttentionForm::kPlain;
  EXPECT_EQ(CountAttentionLayers(plain).fusable, 2);
  EXPECT_EQ(CountAttentionLayers(FindWorkload("resnet50").value()).all, 0);
}

// Two products of each of 12 blocks; all of the catalogue's attention is of that form.
TEST(CountAttentionLayers, OfThoseThatFuseAndAll) {
  EXPECT_EQ(CountAttentionLayers(FindWorkload("bert_base").value()).all, 24);
  for (const std::string& name : WorkloadNames()) {
    const AttentionLayers count = CountAttentionLayers(FindWorkload(name).value());
    EXPECT_EQ(count.fusable, count.all) << name;
  }
  // A block, a product by itself and a block whose sums are of other lengths.
  Workload workload = Written();
  workload.layers.push_back(LayerOf(LayerKind::kAttention, BatchedProductOp{1, 9, 9, 9}));
  const std::vector<Layer> block = Written().layers;
  workload.layers.insert(workload.layers.end(), block.begin(), block.end());
  workload.layers.back().operation = BatchedProductOp{2, 5, 4, 7};
  EXPECT_EQ(CountAttentionLayers(workload).all, 5);
  EXPECT_EQ(CountAttentionLayers(workload).fusable, 2);
}

TEST(LayersAsRun, AMaskMayStandBetween) {
  EXPECT_EQ(AllFused(Written()), std::vector<FusedAttention>(1, {2, 5, 7, 3, false}));
  Workload causal = Written();
  causal.layers[0].causal = true;
  const Layer of_scores = LayerOf(LayerKind::kReshape, CopyOp{2 * 5 * 7});
  causal.layers.insert(causal.layers.begin() + 3, of_scores);
  causal.layers.insert(causal.layers.begin() + 1, of_scores);
  EXPECT_EQ(AllFused(causal), std::vector<FusedAttention>(1, {2, 5, 7, 3, true}));
}

// The mask hides as much of the sums as of the scores: either product may tell of it, or both.
TEST(LayersAsRun, EitherProductTellsOfTheMask) {
  for (const std::size_t product : {0U, 3U}) {
    Workload causal = Written();
    causal.layers[product].causal = true;
    EXPECT_EQ(AllFused(causal), std::vector<FusedAttention>(1, {2, 5, 7, 3, true})) << product;
  }
  Workload both = Written();
  both.layers[0].causal = both.layers[3].causal = true;
  EXPECT_EQ(AllFused(both), std::vector<FusedAttention>(1, {2, 5, 7, 3, true}));
  // What another layer says is not this attention's.
  Workload behind = Written();
  behind.layers.push_back(LayerOf(LayerKind::kAttention, BatchedProductOp{1, 1, 1, 1}));
  behind.layers.back().causal = true;
  EXPECT_EQ(AllFused(behind), std::vector<FusedAttention>(1, {2, 5, 7, 3, false}));
}

// Other lengths, another function, something trained, a product that is no attention, a file that
// breaks off, a copy, a sum and a softmax of something else.
TEST(LayersAsRun, WhatIsNoAttentionRunsByItself) {
  std::vector<Workload> others(11, Written());
  others[0].layers[3].operation = BatchedProductOp{2, 5, 4, 7};
  others[1].layers[3].operation = BatchedProductOp{2, 5, 3, 8};
  others[2].layers[2].operation = ActivationOp{Function::kTanh, 10, 7};
  others[3].layers[1].tensors = {7};
  others[4].layers[0].tensors = {21};
  others[5].layers[3].kind = LayerKind::kDense;
  others[6].layers.pop_back();
  others[7].layers.resize(1);
  others[9].layers[1].operation = ElementwiseOp{ElementwiseKind::kAdd, 7, 1000};
  others[10].layers[2].operation = ActivationOp{Function::kSoftmax, 5, 7};
  others[8].layers[1] = LayerOf(LayerKind::kReshape, CopyOp{2 * 5 * 7 + 1});
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_TRUE(AllFused(others[i]).empty()) << i;
    EXPECT_EQ(LayersAsRun(others[i]).size(), others[i].layers.size()) << i;
    EXPECT_EQ(CountAttentionLayers(others[i]).fusable, 0) << i;
  }
}

}  // namespace
}  // namespace stepcast
