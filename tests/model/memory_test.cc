// Device memory, term by term, and against sizes that are known to fit and not to fit.
#include "model/memory/memory.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "data/workloads/catalog.h"
#include "model/memory/fitted.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

Plan MakePlan(int workers, int local_batch, int accumulation = 1) {
  Plan plan;
  plan.placement = {workers};
  plan.local_batch = local_batch;
  plan.accumulation_steps = accumulation;
  return plan;
}

Layer MakeLayer(LayerKind kind, double activation_bytes) {
  Layer layer;
  layer.kind = kind;
  layer.activation_bytes = Bytes(activation_bytes);
  return layer;
}

// 100 parameters of which 90 are trained.
Workload SmallWorkload() {
  Workload workload;
  workload.parameters = 100;
  workload.trainable_parameters = 90;
  workload.gradient_bytes = Bytes(360.0);
  workload.layers = {MakeLayer(LayerKind::kConvolution, 1000),
                     MakeLayer(LayerKind::kNormalization, 1000),
                     MakeLayer(LayerKind::kActivation, 1000), MakeLayer(LayerKind::kReshape, 1000),
                     MakeLayer(LayerKind::kDense, 10)};
  return workload;
}

constexpr double kFixed = 1024.0 * 1048576;  // workspace and context

TEST(Memory, EachTermByHand) {
  const MemoryNeed need =
      CountMemory(SmallWorkload(), Bytes(2010.0), MakePlan(2, 8, 3), std::nullopt);
  EXPECT_EQ(need.parameters.si(), 400);
  EXPECT_EQ(need.gradients.si(), 360);
  EXPECT_EQ(need.optimizer.si(), 360);
  EXPECT_EQ(need.accumulation.si(), 0);
  EXPECT_EQ(need.buckets.si(), 360);
  EXPECT_EQ(need.activations.si(), 8 * 2010);
  EXPECT_EQ(need.workspace.si(), kFixed);
  EXPECT_EQ(need.total.si(), 400 + 3 * 360 + 8 * 2010 + kFixed);
}

// 90 trained parameters: nothing, 4 bytes and 8 of each, whatever is sent of a gradient.
TEST(Memory, TheOptimizersStateIsItsOwn) {
  Workload workload = SmallWorkload();
  const auto state = [&](Optimizer optimizer) {
    workload.optimizer = optimizer;
    return CountMemory(workload, DataSize<>(), MakePlan(2, 8), std::nullopt).optimizer.si();
  };
  EXPECT_EQ(state(Optimizer::kSgd), 0);
  EXPECT_EQ(state(Optimizer::kMomentum), 360);
  EXPECT_EQ(state(Optimizer::kAdam), 720);
  workload.gradient_bytes = Bytes(180.0);
  EXPECT_EQ(state(Optimizer::kAdam), 720);
}

// A copy of 2 bytes beside the 4 of each of 100 parameters, and half of the activations; gradients
// and state as in 32 bits. tf32 is stored as fp32 is.
TEST(Memory, SixteenBitsHalveActivationsAlone) {
  const MemoryNeed single = CountMemory(SmallWorkload(), KeptActivations(SmallWorkload()),
                                        MakePlan(2, 8, 3), std::nullopt);
  for (const Precision precision : {Precision::kFp16, Precision::kBf16}) {
    Workload mixed = SmallWorkload();
    mixed.precision = precision;
    EXPECT_EQ(KeptActivations(mixed).si(), 1000 + 10) << "the loss keeps 32 bits of the last 10";
    const MemoryNeed need =
        CountMemory(mixed, KeptActivations(mixed), MakePlan(2, 8, 3), std::nullopt);
    EXPECT_EQ(need.parameters.si(), 600);
    EXPECT_EQ(need.activations.si(), 8 * 1010);
    EXPECT_EQ(need.gradients, single.gradients);
    EXPECT_EQ(need.optimizer, single.optimizer);
    EXPECT_EQ(need.accumulation, single.accumulation);
    EXPECT_EQ(need.buckets, single.buckets);
    EXPECT_EQ(need.total.si(), single.total.si() + 200 - 8 * 1000);
  }
  Workload tf32 = SmallWorkload();
  tf32.precision = Precision::kTf32;
  EXPECT_EQ(CountMemory(tf32, KeptActivations(tf32), MakePlan(2, 8, 3), std::nullopt).total.si(),
            single.total.si());
}

// PyTorch adds to .grad, Megatron to main_grad.
TEST(Memory, MicroStepsAddUpInTheGradientsThemselves) {
  for (const int workers : {1, 2}) {
    const auto total = [&](int steps) {
      return CountMemory(SmallWorkload(), Bytes(0.0), MakePlan(workers, 8, steps), std::nullopt)
          .total;
    };
    EXPECT_EQ(total(16), total(1));
  }
}

TEST(Memory, OnlyAnExchangeKeepsBuckets) {
  EXPECT_EQ(CountMemory(SmallWorkload(), Bytes(0.0), MakePlan(1, 8), std::nullopt).buckets.si(), 0);
  Plan apart = MakePlan(4, 8);
  apart.strategy = Strategy::kNone;
  EXPECT_EQ(CountMemory(SmallWorkload(), Bytes(0.0), apart, std::nullopt).buckets.si(), 0);
}

// A dense layer of 10 bytes, scores of 400 with their softmax, and a result of 40.
TEST(Memory, FusedAttentionKeepsNoScores) {
  Workload workload;
  workload.layers = {MakeLayer(LayerKind::kDense, 10), MakeLayer(LayerKind::kAttention, 400),
                     MakeLayer(LayerKind::kActivation, 400), MakeLayer(LayerKind::kAttention, 40)};
  workload.layers[1].operation = BatchedProductOp{1, 10, 10, 1};
  workload.layers[2].operation = ActivationOp{Function::kSoftmax, 10, 10};
  workload.layers[3].operation = BatchedProductOp{1, 10, 1, 10};
  EXPECT_EQ(KeptActivations(workload).si(), 450);
  workload.attention = AttentionForm::kFused;
  EXPECT_EQ(KeptActivations(workload).si(), 50);
  workload.precision = Precision::kBf16;
  EXPECT_EQ(KeptActivations(workload).si(), 5 + 40) << "of the last, 32 bits";
}

// 32 heads of 2048 x 2048 scores in each of 24 blocks.
TEST(Memory, FusedAttentionSavesTheScoresOfANetwork) {
  Workload opt = *FindWorkload("opt_1.3b");
  const double plain = KeptActivations(opt).si();
  opt.attention = AttentionForm::kFused;
  EXPECT_EQ(plain - KeptActivations(opt).si(), 4.0 * 24 * 32 * 2048 * 2048);
}

Layer OfOperation(LayerKind kind, double activation_bytes, const Operation& operation) {
  Layer layer = MakeLayer(kind, activation_bytes);
  layer.operation = operation;
  return layer;
}
Layer MakeSum(double activation_bytes) {
  return OfOperation(LayerKind::kElementwise, activation_bytes,
                     ElementwiseOp{ElementwiseKind::kAdd, 1, 1});
}
Layer MakeProduct(double activation_bytes) {
  return OfOperation(LayerKind::kElementwise, activation_bytes,
                     ElementwiseOp{ElementwiseKind::kMultiply, 1, 1});
}

double KeptOf(const std::vector<Layer>& layers) {
  Workload workload;
  workload.layers = layers;
  return KeptActivations(workload).si();
}

// The gradient of a sum needs neither summand, whether drop-out is between or not; that of a
// product needs both factors.
TEST(Memory, WhatIsOnlyAddedIsNotKept) {
  const Layer dense = MakeLayer(LayerKind::kDense, 1);
  const Layer copy = MakeLayer(LayerKind::kReshape, 1000);
  EXPECT_EQ(KeptOf({dense, MakeSum(10), dense}), 11);
  EXPECT_EQ(KeptOf({dense, copy, copy, MakeSum(10), dense}), 11);
  EXPECT_EQ(KeptOf({dense, MakeSum(10), MakeSum(100)}), 100);
  EXPECT_EQ(KeptOf({dense, MakeProduct(10), dense}), 12);
  EXPECT_EQ(KeptOf({dense, copy}), 1);
  // What it is, a file does not say.
  EXPECT_EQ(KeptOf({dense, MakeLayer(LayerKind::kElementwise, 10)}), 11);
  EXPECT_EQ(KeptOf({MakeLayer(LayerKind::kNormalization, 1), MakeSum(10)}), 10);
  // These need their output for their own gradient.
  EXPECT_EQ(KeptOf({MakeLayer(LayerKind::kRecurrent, 1), MakeSum(10)}), 11);
  EXPECT_EQ(KeptOf({dense, MakeLayer(LayerKind::kActivation, 10), MakeSum(100)}), 111);
  Workload attends;
  attends.attention = AttentionForm::kFused;
  attends.layers = {
      OfOperation(LayerKind::kAttention, 1000, BatchedProductOp{1, 10, 10, 1}),
      OfOperation(LayerKind::kActivation, 1000, ActivationOp{Function::kSoftmax, 10, 10}),
      OfOperation(LayerKind::kAttention, 10, BatchedProductOp{1, 10, 1, 10}), MakeSum(1)};
  EXPECT_EQ(KeptActivations(attends).si(), 11);
}

// x cos + turned(x) sin, of which angles are not trained.
TEST(Memory, OfARotationTheSumAloneIsKept) {
  const Layer dense = MakeLayer(LayerKind::kDense, 1);
  const Layer copy = MakeLayer(LayerKind::kReshape, 1000);
  const Layer cosine = MakeProduct(10);
  const Layer sine = MakeProduct(100);
  EXPECT_EQ(KeptOf({dense, cosine, copy, sine, MakeSum(5), dense}), 6);
  EXPECT_EQ(KeptOf({dense, cosine, copy, copy, sine, MakeSum(5)}), 5);
  // Without a turn, the second product or the sum it is none.
  EXPECT_EQ(KeptOf({dense, cosine, sine, MakeSum(5)}), 16);
  EXPECT_EQ(KeptOf({dense, cosine, copy, dense, MakeSum(5)}), 16);
  EXPECT_EQ(KeptOf({dense, cosine, copy, sine, dense}), 112);
}

// LLaMA's block keeps 8 features and 4 of its feed-forward part for each of 2048 tokens, GPT-2's 16
// features for each of 1024, in 32 bits; besides what comes before and behind all blocks.
TEST(Memory, BlocksOfTransformersByHand) {
  constexpr double kLlama = 4.0 * 2048 * (8 * 4096 + 4 * 11008);
  constexpr double kAroundLlama = 4.0 * 2048 * (2 * 4096 + 32000);
  Workload llama = *FindWorkload("llama_7b");
  EXPECT_EQ(KeptActivations(llama).si(), 32 * kLlama + kAroundLlama);
  Workload gpt = *FindWorkload("gpt2");
  gpt.attention = AttentionForm::kFused;
  EXPECT_EQ(KeptActivations(gpt).si(), 4.0 * 1024 * (12 * 16 * 768 + 3 * 768 + 50257));
  // Of blocks that are recomputed their inputs, and one of them at a time. The first one's is the
  // embedding's output, which is kept anyway.
  llama.recompute = Recompute::kFull;
  EXPECT_EQ(KeptActivations(llama).si(), 31 * 4.0 * 2048 * 4096 + kLlama + kAroundLlama);
  llama.precision = Precision::kBf16;
  EXPECT_EQ(KeptActivations(llama).si(),
            31 * 2.0 * 2048 * 4096 + (kLlama + kAroundLlama) / 2 + 2.0 * 2048 * 32000);
}

// Blocks of 60 and 10 whose inputs are 1, which is kept anyway, and 40; 1 and 3 around them.
TEST(Memory, RecomputedBlocksKeepTheirInputs) {
  const auto named = [](const char* name, LayerKind kind, double bytes) {
    Layer layer = MakeLayer(kind, bytes);
    layer.name = name;
    return layer;
  };
  Workload workload;
  workload.layers = {
      named("in", LayerKind::kDense, 1),         named("b.0.x", LayerKind::kDense, 20),
      named("b.0.y", LayerKind::kDense, 40),     named("b.1.x", LayerKind::kDense, 10),
      named("b.1.copy", LayerKind::kReshape, 7), named("out", LayerKind::kDense, 3)};
  EXPECT_EQ(KeptActivations(workload).si(), 1 + 60 + 10 + 3);
  workload.recompute = Recompute::kFull;
  EXPECT_EQ(KeptActivations(workload).si(), 60 + (1 + 3));
  workload.layers[1].activation_bytes = Bytes(5.0);
  workload.layers[3].activation_bytes = Bytes(30.0);
  EXPECT_EQ(KeptActivations(workload).si(), (40 + 30) + (1 + 3)) << "the later one holds both";
  workload.layers[0].kind = LayerKind::kReshape;
  EXPECT_EQ(KeptActivations(workload).si(), (40 + 30) + 3) << "what nobody computes";
  workload.layers[0].kind = LayerKind::kDense;
  workload.layers[1].activation_bytes = Bytes(20.0);
  workload.layers[3].activation_bytes = Bytes(10.0);
  for (Layer& layer : workload.layers) layer.name = "layer";
  EXPECT_EQ(KeptActivations(workload).si(), 1 + 60 + 10 + 3) << "no blocks";
}

// Blocks of a single layer, as NCF's, and whatever else the catalogue has.
TEST(Memory, RecomputingNeverTakesMore) {
  for (const std::string& name : WorkloadNames()) {
    Workload workload = *FindWorkload(name);
    const DataSize<> all = KeptActivations(workload);
    for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
      workload.recompute = recompute;
      EXPECT_LE(KeptActivations(workload).si(), all.si() * (1 + 1e-12)) << name;
    }
  }
}

// A dense layer of 10 bytes, a core with scores of 400 and a result of 40, and one of 200 and 20.
TEST(Memory, SelectiveRecomputationKeepsNoScores) {
  const auto core = [](double scores, double result, std::int64_t tokens) {
    return std::vector<Layer>{
        OfOperation(LayerKind::kAttention, scores, BatchedProductOp{1, tokens, tokens, 1}),
        OfOperation(LayerKind::kActivation, scores,
                    ActivationOp{Function::kSoftmax, tokens, tokens}),
        OfOperation(LayerKind::kAttention, result, BatchedProductOp{1, tokens, 1, tokens})};
  };
  Workload workload;
  workload.layers = {MakeLayer(LayerKind::kDense, 10)};
  for (const Layer& layer : core(400, 40, 10)) workload.layers.push_back(layer);
  workload.layers.push_back(MakeLayer(LayerKind::kDense, 1));
  for (const Layer& layer : core(200, 20, 5)) workload.layers.push_back(layer);
  EXPECT_EQ(KeptActivations(workload).si(), 10 + 440 + 1 + 220);
  workload.recompute = Recompute::kSelective;
  EXPECT_EQ(KeptActivations(workload).si(), 10 + 40 + 1 + 20 + 400);
  // Fused attention has none to save, whichever way.
  workload.attention = AttentionForm::kFused;
  EXPECT_EQ(KeptActivations(workload).si(), 10 + 40 + 1 + 20);
  workload.recompute = Recompute::kNone;
  EXPECT_EQ(KeptActivations(workload).si(), 10 + 40 + 1 + 20);
  workload.layers = {MakeLayer(LayerKind::kDense, 10), MakeLayer(LayerKind::kDense, 1)};
  workload.recompute = Recompute::kSelective;
  EXPECT_EQ(KeptActivations(workload).si(), 11) << "no attention";
}

// The models of Korthikanti et al. (arXiv 2205.05198), Table 3, without tensor and sequence
// parallelism. In 16 bits a block keeps s h (34 + 5 a s / h) bytes, 34 s h where attention is
// recomputed and 2 s h where all is. Of these 2 s h are masks of drop-out and 3 a s^2 what drop-out
// of plain attention keeps, which are not counted here. Logits of v words are 4 s v bytes.
TEST(Memory, BlocksOfAPaperByHand) {
  struct Model {
    int layers;
    double hidden;
    double heads;
    double scores;  // 5 a s / h
    double saved;   // by recomputing attention; they state it of GPT-3 and MT-NLG
  };
  constexpr double kTokens = 2048;
  constexpr Model kModels[] = {{48, 6144, 64, 106.7, 0.76},
                               {96, 12288, 96, 80, 0.70},
                               {105, 20480, 128, 64, 0.65},
                               {128, 25600, 160, 64, 0.65}};
  for (const Model& model : kModels) {
    const std::string name = "gpt:layers=" + std::to_string(model.layers) +
                             ":hidden=" + std::to_string(static_cast<int>(model.hidden)) +
                             ":heads=" + std::to_string(static_cast<int>(model.heads)) + "@2048";
    SCOPED_TRACE(name);
    Workload gpt = *FindWorkload(name);
    gpt.precision = Precision::kBf16;
    const auto kept = [&](Recompute recompute) {
      gpt.recompute = recompute;
      return KeptActivations(gpt).si();
    };
    const double unit = kTokens * model.hidden;
    const double scores = 2 * model.heads * kTokens * kTokens;
    const double around = 2 * kTokens * 3 * model.hidden + 4 * kTokens * 50257;
    const double none = kept(Recompute::kNone);
    const double selective = kept(Recompute::kSelective);
    const double full = kept(Recompute::kFull);
    EXPECT_DOUBLE_EQ(none, model.layers * (32 * unit + scores) + around);
    EXPECT_DOUBLE_EQ(selective, model.layers * 32 * unit + scores + around);
    EXPECT_DOUBLE_EQ(full, (model.layers - 1) * 2 * unit + 32 * unit + scores + around);
    // As they count, by what one block more has.
    const double masks = 2 * unit;
    const double drop_out = 3 * model.heads * kTokens * kTokens;
    const double saved = (none - selective) / (model.layers - 1) + drop_out;
    EXPECT_NEAR(saved / unit, model.scores, 0.05);
    const double block = (selective - scores - around) / model.layers + masks;
    EXPECT_DOUBLE_EQ(block / unit, 34);
    EXPECT_NEAR(saved / (saved + block), model.saved, 0.005);
    gpt.attention = AttentionForm::kFused;
    EXPECT_DOUBLE_EQ(kept(Recompute::kSelective), model.layers * 32 * unit + around);
    EXPECT_EQ(kept(Recompute::kSelective), kept(Recompute::kNone));
  }
}

// Llama 2 7B at 4096 tokens as others train it on 80 GB: bf16, parameters shared out among 8, two
// samples. Inputs of blocks are 2.1 GB, one block 1.3 GB, the output layer in 32 bits and what is
// before and behind blocks 1.2 GB.
TEST(Memory, ALargeModelThatIsRecomputedFits) {
  Workload llama = *FindWorkload("llama_7b");
  for (Layer& layer : llama.layers) layer.activation_bytes = layer.activation_bytes * 2.0;
  llama.precision = Precision::kBf16;
  llama.optimizer = Optimizer::kAdam;
  const auto need = [&](Recompute recompute) {
    llama.recompute = recompute;
    Plan plan = MakePlan(8, 2);
    plan.strategy = Strategy::kRing;
    plan.shard = Shard::kParameters;
    return CountMemory(llama, KeptActivations(llama), plan, Gigabytes(80.0));
  };
  EXPECT_NEAR(need(Recompute::kFull).activations.in(kGigabytes), 4.53, 0.01);
  EXPECT_EQ(need(Recompute::kFull).verdict, MemoryVerdict::kFits);
  EXPECT_NEAR(need(Recompute::kNone).activations.in(kGigabytes), 41.5, 0.1);
}

TEST(Memory, WhatIsComputedInPlaceIsNotKept) {
  EXPECT_EQ(KeptActivations(SmallWorkload()).si(), 2010);
  EXPECT_EQ(KeptActivations(Workload()).si(), 0);
  // What follows a dense layer, as GELU does, reads the layer's own result once more.
  Workload dense;
  dense.layers = {MakeLayer(LayerKind::kDense, 10), MakeLayer(LayerKind::kActivation, 20),
                  MakeLayer(LayerKind::kConvolution, 100), MakeLayer(LayerKind::kActivation, 200)};
  EXPECT_EQ(KeptActivations(dense).si(), 130);
}

RC_GTEST_PROP(MemoryProperty, NeverFallsWithTheBatch, ()) {
  const int batch = *Whole(1, 4096);
  const int workers = *Whole(1, 8);
  const int accumulation = *Whole(1, 8);
  const DataSize<> kept = Bytes(*LogUniform(1, 1e9));
  const auto need = [&](int b) {
    return CountMemory(SmallWorkload(), kept, MakePlan(workers, b, accumulation), std::nullopt);
  };
  RC_ASSERT(need(batch + 1).total > need(batch).total);
  RC_ASSERT(need(2 * batch).activations == need(batch).activations * 2.0);
  RC_ASSERT(need(batch).total >= need(batch).activations + need(batch).parameters);
}

// Half precision, or checkpoints: what has run fits, with any number of workers and micro-steps.
RC_GTEST_PROP(MemoryProperty, WhatHasRunFits, ()) {
  const Workload workload = *FindWorkload("resnet50");
  const int ran = *Whole(1, 4096);
  const DataSize<> available = Gibibytes(*LogUniform(2, 100));
  const Activations counted(KeptActivations(workload));
  Activations seen = counted;
  LearnFromRuns(workload, true, {{Shard::kNone, 1, ran, 4}}, available, &seen);
  RC_ASSERT(seen.PerSample() <= counted.counted);
  const Plan plan = MakePlan(*Whole(1, 8), *Whole(1, ran), *Whole(1, 8));
  RC_ASSERT(CountMemory(workload, seen, plan, available).verdict == MemoryVerdict::kFits);
  // What was counted stays where it fits.
  const bool fits =
      CountMemory(workload, counted, MakePlan(2, ran, 2), available * 0.999).verdict !=
      MemoryVerdict::kOutOfMemory;
  RC_ASSERT(!fits || seen.PerSample() == counted.counted);
}

// Whether layers are known or not: what did not fit does not, nor does more of the same, and on a
// device that has room for it that plan is none of which nothing is known.
RC_GTEST_PROP(MemoryProperty, WhatDidNotFitDoesNot, ()) {
  Workload workload = *FindWorkload("resnet50");
  if (*rc::gen::arbitrary<bool>()) workload.layers.clear();
  const DataSize<> available = Gibibytes(*LogUniform(2, 100));
  const Plan plan = MakePlan(*Whole(1, 8), *Whole(1, 4096), *Whole(1, 8));
  Activations seen(KeptActivations(workload));
  seen.least = ActivationsThatDidNotFit(workload, plan, available);
  RC_ASSERT(seen.least.has_value());
  const MemoryNeed need = CountMemory(workload, seen, plan, available);
  RC_ASSERT(need.verdict == MemoryVerdict::kOutOfMemory);
  RC_ASSERT(need.total > available);
  const Plan more = MakePlan(plan.workers(), plan.local_batch + *Whole(1, 100), 8);
  RC_ASSERT(CountMemory(workload, seen, more, available).verdict == MemoryVerdict::kOutOfMemory);
  // What was counted stays where it is more.
  RC_ASSERT(seen.PerSample() == Max(seen.counted, *seen.least));
}

// By hand, of a model without layers: 1 GiB of workspace, no parameters that matter, 3 GiB left.
TEST(Memory, BetweenWhatRanAndWhatDidNotFitNothingIsKnown) {
  Workload workload = SmallWorkload();
  workload.layers.clear();
  const DataSize<> available = Gibibytes(4.0);
  Activations seen;
  seen.most = Gibibytes(3.0 / 32 * 0.999);  // 32 samples ran
  seen.least = Gibibytes(3.0 / 64);         // 64 did not fit
  const auto verdict = [&](int batch) {
    return CountMemory(workload, seen, MakePlan(1, batch), available).verdict;
  };
  EXPECT_EQ(verdict(32), MemoryVerdict::kFits);
  EXPECT_EQ(verdict(33), MemoryVerdict::kUnknown);
  EXPECT_EQ(verdict(63), MemoryVerdict::kUnknown);
  EXPECT_EQ(verdict(64), MemoryVerdict::kOutOfMemory);
  // On a device of twice the room, twice as much.
  const auto on_larger = [&](int batch) {
    return CountMemory(workload, seen, MakePlan(1, batch), Gibibytes(7.0)).verdict;
  };
  EXPECT_EQ(on_larger(64), MemoryVerdict::kFits);
  EXPECT_EQ(on_larger(127), MemoryVerdict::kUnknown);
  EXPECT_EQ(on_larger(128), MemoryVerdict::kOutOfMemory);
  // A step that ran once and once did not fit.
  seen.most = Gibibytes(3.0 / 80);
  EXPECT_EQ(verdict(70), MemoryVerdict::kTight);
  EXPECT_EQ(verdict(81), MemoryVerdict::kOutOfMemory);
}

Activations LearntFrom(const Workload& workload, const std::vector<CalibratedRange::Ran>& runs,
                       DataSize<> available) {
  Activations seen(KeptActivations(workload));
  LearnFromRuns(workload, true, runs, available, &seen);
  return seen;
}

// What is left beside two workers, who need 400 bytes and three times the gradients, and beside the
// one that did not fit, who needs twice the gradients.
TEST(Memory, RoomOfASampleByHand) {
  const Workload workload = SmallWorkload();
  const DataSize<> available = Bytes(kFixed + 400 + 3 * 360 + 8 * 1000);
  const CalibratedRange::Ran whole{Shard::kNone, 1, 8, 4};
  const Activations ran = LearntFrom(workload, {whole}, available);
  ASSERT_TRUE(ran.most.has_value());
  EXPECT_NEAR(ran.most->si(), 1000 * (1 - 1e-9), 1e-9);
  // Of four that share the optimizer's state out each needs 400 bytes, the gradients and a quarter
  // of them: 630 are left for eight samples. The lowest bound counts.
  const CalibratedRange::Ran shared{Shard::kOptimizer, 4, 8, 4};
  const double room = 1000 + 630.0 / 8;
  EXPECT_NEAR(LearntFrom(workload, {shared}, available).most->si(), room * (1 - 1e-9), 1e-9);
  EXPECT_EQ(LearntFrom(workload, {shared, whole}, available).most, ran.most);
  EXPECT_EQ(LearntFrom(workload, {whole, shared}, available).most, ran.most);
  // One worker alone needs no copy of 360 bytes, with gradients of 2 bytes half of one.
  const auto left = [&](int sent) {
    return LearntFrom(workload, {{Shard::kNone, 1, 8, sent}}, available).most->si();
  };
  EXPECT_NEAR(left(0), (1000 + 360.0 / 8) * (1 - 1e-9), 1e-9);
  EXPECT_NEAR(left(2), (1000 + 180.0 / 8) * (1 - 1e-9), 1e-9);
  const auto failed =
      ActivationsThatDidNotFit(workload, MakePlan(1, 8), Bytes(kFixed + 400 + 2 * 360 + 8 * 1000));
  ASSERT_TRUE(failed.has_value());
  EXPECT_NEAR(failed->si(), 1000 * (1 + 1e-9), 1e-9);
}

// One worker ran 8 samples alone: what it needed is at most what there is, and several need a copy
// of 360 bytes more.
TEST(Memory, AnExchangeBesideWhatRanAloneIsTight) {
  const Workload workload = SmallWorkload();
  const DataSize<> available = Bytes(kFixed + 400 + 2 * 360 + 8 * 1000);
  Activations seen = LearntFrom(workload, {{Shard::kNone, 1, 8}}, available);
  ASSERT_GT(seen.counted.si(), 1000);
  const auto need = [&](int workers, int batch) {
    return CountMemory(workload, seen, MakePlan(workers, batch), available);
  };
  EXPECT_EQ(need(1, 8).verdict, MemoryVerdict::kFits);
  EXPECT_EQ(need(1, 9).verdict, MemoryVerdict::kOutOfMemory);
  EXPECT_EQ(need(2, 7).verdict, MemoryVerdict::kFits);
  EXPECT_EQ(need(2, 8).verdict, MemoryVerdict::kTight);
  EXPECT_GT(need(2, 8).total, available);
  EXPECT_TRUE(need(2, 8).ran_without_copies);
  EXPECT_FALSE(need(2, 7).ran_without_copies);
  EXPECT_EQ(need(64, 8).verdict, MemoryVerdict::kTight);
  EXPECT_EQ(need(2, 9).verdict, MemoryVerdict::kOutOfMemory);
  EXPECT_FALSE(need(2, 9).ran_without_copies);
  // What did not fit does not, and what needs more than that did not either.
  seen.least = ActivationsThatDidNotFit(workload, MakePlan(2, 12), available);
  EXPECT_EQ(need(2, 8).verdict, MemoryVerdict::kTight);
  seen.least = ActivationsThatDidNotFit(workload, MakePlan(2, 8), available);
  EXPECT_EQ(need(2, 8).verdict, MemoryVerdict::kOutOfMemory);
  EXPECT_EQ(need(1, 8).verdict, MemoryVerdict::kFits);
}

// With copies of 1 GiB, and 1 GiB for each sample: 6 of 5 GiB may be 5, as the count is good to a
// quarter; 4 of 3 GiB are not 3.
TEST(Memory, AnExchangeOfMoreThanTheCountIsUncertainByIsNot) {
  Workload workload = SmallWorkload();
  workload.gradient_bytes = Gibibytes(1.0);
  const auto verdict = [&](int samples) {
    const DataSize<> available = Bytes(760.0) + Gibibytes(2.0 + samples);
    Activations seen(Gibibytes(2.0));
    LearnFromRuns(workload, true, {{Shard::kNone, 1, samples}}, available, &seen);
    return CountMemory(workload, seen, MakePlan(2, samples), available).verdict;
  };
  EXPECT_EQ(verdict(3), MemoryVerdict::kTight);
  EXPECT_EQ(verdict(1), MemoryVerdict::kOutOfMemory);
}

TEST(Memory, NothingIsToldOfActivationsWhereTheModelAloneIsTooLarge) {
  const Workload workload = SmallWorkload();
  EXPECT_FALSE(LearntFrom(workload, {{Shard::kNone, 1, 8}}, Mebibytes(1024.0)).most.has_value());
  EXPECT_FALSE(ActivationsThatDidNotFit(workload, MakePlan(1, 8), Mebibytes(1024.0)).has_value());
}

// A model that by its count does not fit by itself: a step of 8 samples that has run among 4 fits,
// with fewer samples and with more sharers too, and nothing else is told by it.
TEST(Memory, WhatHasRunFitsWhateverIsCounted) {
  const Workload workload = SmallWorkload();
  const DataSize<> available = Mebibytes(1024.0);
  const Activations seen = LearntFrom(workload, {{Shard::kOptimizer, 4, 8, 4}}, available);
  const auto verdict = [&](Shard shard, int workers, int batch, int steps = 1) {
    Plan plan = MakePlan(workers, batch, steps);
    plan.shard = shard;
    return CountMemory(workload, seen, plan, available).verdict;
  };
  EXPECT_EQ(verdict(Shard::kOptimizer, 4, 8), MemoryVerdict::kTight);
  EXPECT_EQ(verdict(Shard::kOptimizer, 4, 8, 16), MemoryVerdict::kTight);
  EXPECT_EQ(verdict(Shard::kOptimizer, 4, 1), MemoryVerdict::kTight);
  EXPECT_EQ(verdict(Shard::kOptimizer, 8, 8), MemoryVerdict::kTight);
  EXPECT_EQ(verdict(Shard::kGradients, 4, 8, 16), MemoryVerdict::kTight) << "as ZeRO-1";
  EXPECT_EQ(verdict(Shard::kOptimizer, 4, 9), MemoryVerdict::kOutOfMemory);
  EXPECT_EQ(verdict(Shard::kOptimizer, 3, 8), MemoryVerdict::kOutOfMemory);
  EXPECT_EQ(verdict(Shard::kNone, 4, 8), MemoryVerdict::kOutOfMemory);
}

// On a device that by the count has no room for any: what has run fits, and so does what needs no
// more by the count, but nothing that needs more.
TEST(Memory, ARunProvesWhatNeedsNoMoreByTheCount) {
  const Workload workload = SmallWorkload();
  const DataSize<> available = Mebibytes(1024.0);
  const auto fits = [&](const CalibratedRange::Ran& ran, Shard shard, int workers, int sent) {
    Plan plan = MakePlan(workers, 8);
    plan.shard = shard;
    plan.bytes_per_parameter = sent;
    return CountMemory(workload, LearntFrom(workload, {ran}, available), plan, available).verdict ==
           MemoryVerdict::kTight;
  };
  // Copies for an exchange.
  EXPECT_TRUE(fits({Shard::kNone, 1, 8}, Shard::kNone, 1, 4));
  EXPECT_FALSE(fits({Shard::kNone, 1, 8}, Shard::kNone, 2, 4));
  EXPECT_TRUE(fits({Shard::kNone, 1, 8, 4}, Shard::kNone, 2, 4));
  EXPECT_TRUE(fits({Shard::kNone, 1, 8, 4}, Shard::kNone, 1, 4));
  EXPECT_FALSE(fits({Shard::kNone, 1, 8, 2}, Shard::kNone, 2, 4));
  CalibratedRange::Ran compressed{Shard::kNone, 1, 8, 4, {Compressor::kInt8}};
  EXPECT_FALSE(fits(compressed, Shard::kNone, 2, 4));
  EXPECT_FALSE(fits(compressed, Shard::kNone, 2, 2));
  EXPECT_TRUE(fits(compressed, Shard::kNone, 2, 1));
  // Gradients where they are, as wide as they are sent; of an older file as narrow as they may be.
  for (const int ran : {0, 2}) {
    EXPECT_TRUE(fits({Shard::kOptimizer, 4, 8, ran}, Shard::kOptimizer, 4, 2));
    EXPECT_FALSE(fits({Shard::kOptimizer, 4, 8, ran}, Shard::kOptimizer, 4, 4));
  }
  EXPECT_TRUE(fits({Shard::kOptimizer, 4, 8, 4}, Shard::kOptimizer, 4, 2));
  // The whole model is more than a share of it, and a share of few more than one of many.
  EXPECT_TRUE(fits({Shard::kNone, 1, 8, 4}, Shard::kOptimizer, 2, 4));
  EXPECT_TRUE(fits({Shard::kOptimizer, 4, 8, 4}, Shard::kParameters, 4, 4));
  EXPECT_FALSE(fits({Shard::kOptimizer, 4, 8, 4}, Shard::kNone, 4, 4));
  EXPECT_FALSE(fits({Shard::kOptimizer, 4, 8, 4}, Shard::kParameters, 2, 4));
}

// A run without recomputation proves the same plan with it, and more samples of it; not the other
// way round.
TEST(Memory, ARunProvesLeanerTrainings) {
  Workload plain = *FindWorkload("gpt2");
  plain.precision = Precision::kFp16;
  Workload recomputed = plain;
  recomputed.recompute = Recompute::kFull;
  const double ratio = KeptActivations(plain).si() / KeptActivations(recomputed).si();
  ASSERT_GT(ratio, 2);
  ASSERT_LT(ratio, 8);
  const auto verdict = [](const Workload& ran, const Workload& asked, int batch,
                          DataSize<> available) {
    Activations seen(KeptActivations(asked));
    LearnFromRuns(ran, false, {{Shard::kNone, 1, 8, 4}}, available, &seen);
    return CountMemory(asked, seen, MakePlan(2, batch), available).verdict;
  };
  // Where the model alone is too large by its count.
  const DataSize<> tiny = Mebibytes(1024.0);
  const int most = static_cast<int>(8 * ratio);
  EXPECT_EQ(verdict(plain, recomputed, 8, tiny), MemoryVerdict::kTight);
  EXPECT_EQ(verdict(plain, recomputed, most, tiny), MemoryVerdict::kTight);
  EXPECT_EQ(verdict(plain, recomputed, most + 1, tiny), MemoryVerdict::kOutOfMemory);
  EXPECT_EQ(verdict(recomputed, plain, 8, tiny), MemoryVerdict::kOutOfMemory);
  EXPECT_EQ(verdict(recomputed, plain, static_cast<int>(8 / ratio), tiny), MemoryVerdict::kTight);
  // Where it is not, what a sample takes is bounded by the training that takes more.
  const DataSize<> model = CountMemory(plain, DataSize<>(), MakePlan(2, 1), std::nullopt).total;
  const DataSize<> room = model + KeptActivations(recomputed) * 4.0;
  EXPECT_EQ(verdict(plain, recomputed, 8, room), MemoryVerdict::kFits);
  EXPECT_EQ(verdict(recomputed, plain, 8, room), MemoryVerdict::kOutOfMemory);
  // Of layers that nobody knows nothing tells what a training takes.
  plain.layers.clear();
  recomputed.layers.clear();
  EXPECT_EQ(verdict(plain, recomputed, 8, room), MemoryVerdict::kUnknown);
}

MemoryVerdict VerdictOf(double available_over_total) {
  const Workload workload = SmallWorkload();
  const Plan plan = MakePlan(1, 1);
  const DataSize<> total = CountMemory(workload, Bytes(2010.0), plan, std::nullopt).total;
  return CountMemory(workload, Bytes(2010.0), plan, total * available_over_total).verdict;
}

TEST(Memory, VerdictTurnsAtItsThresholds) {
  EXPECT_EQ(VerdictOf(0.999), MemoryVerdict::kOutOfMemory);
  EXPECT_EQ(VerdictOf(1.0), MemoryVerdict::kTight);
  EXPECT_EQ(VerdictOf(0.999 / 0.85), MemoryVerdict::kTight);
  EXPECT_EQ(VerdictOf(1.001 / 0.85), MemoryVerdict::kFits);
  EXPECT_EQ(VerdictOf(100), MemoryVerdict::kFits);
}

TEST(Memory, WithoutMemoryOrLayersItIsUnknown) {
  const Plan plan = MakePlan(1, 1);
  const MemoryNeed no_device = CountMemory(SmallWorkload(), Bytes(2010.0), plan, std::nullopt);
  EXPECT_EQ(no_device.verdict, MemoryVerdict::kUnknown);
  EXPECT_FALSE(no_device.available.has_value());
  Workload no_layers = SmallWorkload();
  no_layers.layers.clear();
  EXPECT_EQ(CountMemory(no_layers, Bytes(0.0), plan, Gibibytes(24.0)).verdict,
            MemoryVerdict::kUnknown);
}

MemoryVerdict Verdict(const std::string& name, int batch, double gibibytes) {
  const Workload workload = *FindWorkload(name);
  return CountMemory(workload, KeptActivations(workload), MakePlan(1, batch), Gibibytes(gibibytes))
      .verdict;
}

struct Trained {
  const char* workload;
  int batch;
  double gibibytes;
};

// What others did train, in 32-bit floats, on a device of that memory.
constexpr Trained kTrained[] = {
    // tensorflow/docs, performance benchmarks of 2017: K80 (12 GiB) and P100 (16 GiB).
    {"resnet50", 64, 12},
    {"inception_v3", 64, 12},
    {"resnet152", 32, 12},
    {"vgg16", 32, 12},
    {"alexnet", 512, 12},
    {"resnet152", 64, 16},
    {"vgg16", 64, 16},
    // google-research/bert, "Out-of-memory issues": sequences of 384 on a Titan X.
    {"bert_base", 12, 12},
    // kenichi220/comp-sys-perf-analysis-final-work: RTX 4090.
    {"resnet50", 128, 24}};

TEST(Memory, WhatOthersTrainedIsNotOutOfMemory) {
  for (const Trained& t : kTrained) {
    EXPECT_NE(Verdict(t.workload, t.batch, t.gibibytes), MemoryVerdict::kOutOfMemory)
        << t.workload << " " << t.batch;
  }
  EXPECT_EQ(Verdict("resnet50", 128, 24), MemoryVerdict::kFits);
}

struct Peak {
  const char* workload;
  Precision precision;
  Recompute recompute;
  Shard shard;
  int workers;
  int batch;
  int steps;
  int sent;
  double gigabytes;
};

// What others have measured with Adam.
constexpr Peak kPeaks[] = {
    // hpcaitech/ColossalAI-Pytorch-lightning, benchmark/gpt: the most that PyTorch allocated on
    // four A100, GPT2-XL with DDP and with DeepSpeed's ZeRO-3.
    {"gpt2_xl", Precision::kFp16, Recompute::kFull, Shard::kNone, 4, 6, 1, 4, 37.905},
    {"gpt2_xl", Precision::kFp16, Recompute::kFull, Shard::kParameters, 4, 40, 1, 2, 25.361},
    // xduan7/scalable-transformer, docs/megatron_bert_345m.md: 8430 MiB of one A100.
    {"bert_large@512", Precision::kFp16, Recompute::kFull, Shard::kNone, 1, 4, 2, 4, 8.839}};

TEST(Memory, WhatOthersMeasuredIsMetWithinAQuarter) {
  for (const Peak& peak : kPeaks) {
    SCOPED_TRACE(peak.workload);
    Workload workload = *FindWorkload(peak.workload);
    workload.precision = peak.precision;
    workload.recompute = peak.recompute;
    workload.optimizer = Optimizer::kAdam;
    Plan plan = MakePlan(peak.workers, peak.batch, peak.steps);
    plan.shard = peak.shard;
    plan.bytes_per_parameter = peak.sent;
    const MemoryNeed need = CountMemory(workload, KeptActivations(workload), plan, std::nullopt);
    EXPECT_NEAR(need.total.in(kGigabytes) / peak.gigabytes, 1, 0.25);
  }
}

// Runs that NVIDIA publishes with Megatron's distributed optimizer (Megatron Bridge, performance
// summary), in fp8: two on H100 of 80 GB, and one on B200 of 180 GB.
TEST(Memory, MegatronsRunsFit) {
  const auto verdict = [](const char* name, int workers, int batch, double gigabytes) {
    Workload workload = *FindWorkload(name);
    workload.precision = Precision::kFp8;
    workload.optimizer = Optimizer::kAdam;
    workload.attention = AttentionForm::kFused;
    Plan plan = MakePlan(workers, batch, 8);
    plan.shard = Shard::kOptimizer;
    return CountMemory(workload, KeptActivations(workload), plan, Gigabytes(gigabytes)).verdict;
  };
  EXPECT_NE(verdict("llama2_7b", 8, 1, 80), MemoryVerdict::kOutOfMemory);
  EXPECT_NE(verdict("gpt:layers=24:hidden=4096:heads=32@2048", 64, 4, 80),
            MemoryVerdict::kOutOfMemory);
  EXPECT_NE(verdict("llama3_8b", 8, 2, 180), MemoryVerdict::kOutOfMemory);
}

// ResNet-50 keeps some 86 MB of activations a picture: 512 of them are 44 GB.
TEST(Memory, WhatCannotFitIsOutOfMemory) {
  EXPECT_EQ(Verdict("resnet50", 512, 24), MemoryVerdict::kOutOfMemory);
  EXPECT_EQ(Verdict("resnet50", 256, 12), MemoryVerdict::kOutOfMemory);
  EXPECT_EQ(Verdict("resnet152", 64, 12), MemoryVerdict::kOutOfMemory);
  EXPECT_EQ(Verdict("bert_base", 64, 12), MemoryVerdict::kOutOfMemory);
}

// A device cannot hold what its parameters alone exceed.
TEST(Memory, EveryNetworkNeedsAtLeastItsParametersAndGradients) {
  for (const std::string& name : WorkloadNames()) {
    const Workload workload = *FindWorkload(name);
    const MemoryNeed need =
        CountMemory(workload, KeptActivations(workload), MakePlan(1, 1), std::nullopt);
    EXPECT_GE(need.total.si(), 4.0 * workload.parameters + 2 * workload.gradient_bytes.si())
        << name;
    EXPECT_GT(KeptActivations(workload).si(), 0) << name;
    EXPECT_LE(KeptActivations(workload), workload.activation_bytes()) << name;
  }
}

}  // namespace
}  // namespace stepcast
