// Compute from a data sheet: the sum of two layers, and its promises for the catalogue's networks.
#include "model/compute/sheet_compute.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/io/machines.h"
#include "data/workloads/catalog.h"
#include "model/compute/operation_curve.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

Device MakeDevice(double teraflop, double gigabytes) {
  Device device;
  device.fp32 = TeraflopPerSecond(teraflop);
  device.memory_bandwidth = GigabytesPerSecond(gigabytes);
  return device;
}

// A dense layer of 1000 weights, then an activation, of which only work and bytes are stated.
Workload TwoLayers() {
  Workload workload;
  Layer dense;
  dense.kind = LayerKind::kDense;
  dense.tensors = {900, 100};
  dense.forward_flop = Flop(2e6);
  dense.activation_bytes = Bytes(4000.0);
  Layer activation;
  activation.kind = LayerKind::kActivation;
  activation.forward_flop = Flop(1e3);
  activation.activation_bytes = Bytes(4000.0);
  workload.layers = {dense, activation};
  workload.trainable_parameters = 1000;
  return workload;
}

TEST(SheetCompute, NeedsWorkAndADataSheet) {
  const Device device = MakeDevice(8.1, 320);
  EXPECT_TRUE(HasSheetTime(TwoLayers(), device));
  EXPECT_FALSE(HasSheetTime(TwoLayers(), std::nullopt));
  EXPECT_FALSE(HasSheetTime(Workload(), device));
  Device no_peak = device;
  no_peak.fp32.reset();
  EXPECT_FALSE(HasSheetTime(TwoLayers(), no_peak));
  Device no_memory = device;
  no_memory.memory_bandwidth.reset();
  EXPECT_FALSE(HasSheetTime(TwoLayers(), no_memory));
  Workload no_work = TwoLayers();
  for (Layer& layer : no_work.layers) layer.forward_flop = Work<>();
  EXPECT_FALSE(HasSheetTime(no_work, device));
}

// Twice the operations of 32 bits are those of ordinary units; more are another unit's.
TEST(DeviceSheet, UnitsForMatricesAreKnownByTheirPeak) {
  Device device = MakeDevice(10, 320);
  device.fp16 = TeraflopPerSecond(20.0);
  EXPECT_FALSE(SheetOf(device, Precision::kFp16)->matrix_units);
  device.fp16 = TeraflopPerSecond(80.0);
  const DeviceSheet half = SheetOf(device, Precision::kFp16).value();
  EXPECT_TRUE(half.matrix_units);
  EXPECT_EQ(half.flop_per_s, 80e12);
  EXPECT_EQ(half.vector_flop_per_s, 10e12);
  EXPECT_EQ(half.element_bytes, 2);
  const DeviceSheet whole = SheetOf(device, Precision::kFp32).value();
  EXPECT_FALSE(whole.matrix_units);
  EXPECT_EQ(whole.flop_per_s, 10e12);
  EXPECT_EQ(whole.element_bytes, 4);
  // Whoever has a peak for tf32 has them, however fast its ordinary units are.
  device.fp16 = TeraflopPerSecond(20.0);
  device.tf32 = TeraflopPerSecond(10.0);
  EXPECT_TRUE(SheetOf(device, Precision::kFp16)->matrix_units);
  EXPECT_TRUE(SheetOf(device, Precision::kTf32)->matrix_units);
  EXPECT_FALSE(SheetOf(device, Precision::kFp32)->matrix_units);
  EXPECT_FALSE(SheetOf(device, Precision::kBf16)->matrix_units) << "no peak of its own";
}

// Dense layers alone compute in 8 bits.
TEST(DeviceSheet, OfEightBitsIsThatOfBf16BesideProducts) {
  Device device = MakeDevice(67, 3350);
  device.bf16 = TeraflopPerSecond(989.0);
  const DeviceSheet none = SheetOf(device, Precision::kFp8).value();
  EXPECT_FALSE(PeakOf(device, Precision::kFp8));
  EXPECT_EQ(none.narrow_flop_per_s, 0);
  device.fp8 = TeraflopPerSecond(1979.0);
  EXPECT_TRUE(PeakOf(device, Precision::kFp8));
  const DeviceSheet sheet = SheetOf(device, Precision::kFp8).value();
  EXPECT_EQ(sheet.narrow_flop_per_s, 1979e12);
  EXPECT_EQ(sheet.flop_per_s, 989e12);
  EXPECT_EQ(sheet.element_bytes, 2);
  EXPECT_TRUE(sheet.matrix_units);
  EXPECT_EQ(SheetOf(device, Precision::kBf16)->narrow_flop_per_s, 0);
}

// A dense layer of which only work and bytes are stated has the peak of 8 bits, an activation not.
TEST(SheetCompute, DenseLayersComputeInEightBits) {
  Workload workload = TwoLayers();
  workload.layers[0].forward_flop = Flop(2e12);
  workload.layers[1].forward_flop = Flop(1e12);
  Device device = MakeDevice(67, 3350);
  device.bf16 = TeraflopPerSecond(989.0);
  device.fp8 = TeraflopPerSecond(1978.0);
  const auto seconds = [&](Precision precision) {
    workload.precision = precision;
    return SheetCompute(workload, device).BackwardSeconds(1);
  };
  const std::vector<double> half = seconds(Precision::kBf16);
  const std::vector<double> eighth = seconds(Precision::kFp8);
  EXPECT_NEAR(eighth[0] / half[0], 0.5, 0.01);
  EXPECT_EQ(eighth[1], half[1]);
}

// TF32 has 32 bits, which ordinary units compute as well; 16 bits they do not.
TEST(DeviceSheet, OrdinaryUnitsComputeTf32Too) {
  Device device = MakeDevice(10, 320);
  EXPECT_EQ(SheetOf(device, Precision::kTf32)->ordinary_flop_per_s, 0);
  device.tf32 = TeraflopPerSecond(15.0);
  device.fp16 = TeraflopPerSecond(30.0);
  EXPECT_EQ(SheetOf(device, Precision::kTf32)->ordinary_flop_per_s, 10e12);
  EXPECT_EQ(SheetOf(device, Precision::kFp16)->ordinary_flop_per_s, 0);
  EXPECT_EQ(SheetOf(device, Precision::kFp32)->ordinary_flop_per_s, 0);
}

// No network of the catalogue is slower in TF32 than in fp32, on a board whose peaks are equal.
TEST(SheetCompute, Tf32IsNeverSlower) {
  Device rtx_3090 = MakeDevice(35.6, 936);
  rtx_3090.tf32 = TeraflopPerSecond(35.6);
  rtx_3090.multiprocessors = 82;
  rtx_3090.power_w = 350;
  rtx_3090.process_nm = 8;
  for (const std::string& name : WorkloadNames()) {
    const Workload single = *FindWorkload(name);
    Workload tf32 = single;
    tf32.precision = Precision::kTf32;
    const SheetTime at = SheetCompute(single, rtx_3090).At(48);
    const SheetTime other = SheetCompute(tf32, rtx_3090).At(48);
    EXPECT_LE(other.forward, at.forward) << name;
    EXPECT_LE(other.backward, at.backward) << name;
  }
}

// Work and bytes by the curve; two gradients of the dense layer, one of the activation; four calls
// of the host.
TEST(SheetCompute, IsTheSumOfItsLayers) {
  const Workload workload = TwoLayers();
  const Device device = MakeDevice(1, 1);
  const SheetTime time = SheetCompute(workload, device).At(2);
  const OperationCurve<double> curve(SheetOf(device, Precision::kFp32).value(), LearntCurve(), 0.0);
  const double dense = curve.Counted(4e6, 2 * 4000 + 4000);
  const double activation = curve.Counted(2e3, 2 * 8000);
  EXPECT_DOUBLE_EQ(time.forward.si(), dense + activation);
  EXPECT_DOUBLE_EQ(time.backward.si(), 2 * dense + activation);
  EXPECT_DOUBLE_EQ(time.host.in(kMicroseconds), 4 * 80);
  EXPECT_DOUBLE_EQ(time.update.si(),
                   curve.Time(UpdateOp{Optimizer::kMomentum, 1000}, TrainingPass::kUpdate, 1));
}

// The dense layer is of a block, and its forward pass a third part of its backward pass; five calls
// of the host.
TEST(SheetCompute, ABlockThatIsRecomputedRunsForwardOnceMore) {
  Workload workload = TwoLayers();
  workload.layers[0].name = "h.0.dense";
  workload.layers[1].name = "activation";
  const Device device = MakeDevice(1, 1);
  const SheetTime kept = SheetCompute(workload, device).At(2);
  workload.recompute = Recompute::kFull;
  const SheetCompute compute(workload, device);
  const SheetTime time = compute.At(2);
  const OperationCurve<double> curve(SheetOf(device, Precision::kFp32).value(), LearntCurve(), 0.0);
  const double dense = curve.Counted(4e6, 2 * 4000 + 4000);
  const double activation = curve.Counted(2e3, 2 * 8000);
  EXPECT_EQ(time.forward, kept.forward);
  EXPECT_EQ(time.update, kept.update);
  EXPECT_DOUBLE_EQ(time.backward.si(), 3 * dense + activation);
  EXPECT_DOUBLE_EQ(time.host.in(kMicroseconds), 5 * 80);
  const std::vector<double> seconds = compute.BackwardSeconds(2);
  ASSERT_EQ(seconds.size(), 2U);
  EXPECT_DOUBLE_EQ(seconds[0], 3 * dense);
  EXPECT_DOUBLE_EQ(seconds[1], activation);
  // Nothing is trained in front of it.
  workload.layers[0].tensors.clear();
  EXPECT_EQ(SheetCompute(workload, device).At(2).backward, Duration<>());
  EXPECT_DOUBLE_EQ(SheetCompute(workload, device).At(2).host.in(kMicroseconds), 2 * 80);
}

Layer OfOperation(LayerKind kind, const Operation& operation) {
  Layer layer;
  layer.kind = kind;
  layer.operation = operation;
  layer.forward_flop = Flop(1.0);
  return layer;
}

// A dense layer, then attention of 12 heads: four layers, of which the host starts two.
TEST(SheetCompute, FusedAttentionIsOneLayer) {
  Workload workload;
  const DenseOp dense{384, 768, 768};
  workload.layers = {
      OfOperation(LayerKind::kDense, dense),
      OfOperation(LayerKind::kAttention, BatchedProductOp{12, 384, 384, 64}),
      OfOperation(LayerKind::kActivation, ActivationOp{Function::kSoftmax, 12 * 384, 384}),
      OfOperation(LayerKind::kAttention, BatchedProductOp{12, 384, 64, 384})};
  workload.layers[0].tensors = {768 * 768};
  workload.layers[1].causal = true;
  workload.trainable_parameters = 768 * 768;
  const Device device = MakeDevice(1, 1);
  const OperationCurve<double> curve(SheetOf(device, Precision::kFp32).value(), LearntCurve(), 0.0);
  const auto time = [&](const Layer& layer, TrainingPass pass) {
    return curve.Time(layer.operation, pass, 2);
  };
  double plain = 0;
  for (const Layer& layer : workload.layers) plain += time(layer, TrainingPass::kForward);
  EXPECT_DOUBLE_EQ(SheetCompute(workload, device).At(2).forward.si(), plain);
  EXPECT_DOUBLE_EQ(SheetCompute(workload, device).At(2).host.in(kMicroseconds), 8 * 80);

  workload.attention = AttentionForm::kFused;
  const SheetCompute fused(workload, device);
  const FusedAttention attention{12, 384, 384, 64, true};
  const double forward = curve.Time(attention, TrainingPass::kForward, 2);
  const double backward = curve.Time(attention, TrainingPass::kBackward, 2);
  EXPECT_DOUBLE_EQ(fused.At(2).forward.si(),
                   time(workload.layers[0], TrainingPass::kForward) + forward);
  EXPECT_DOUBLE_EQ(fused.At(2).backward.si(),
                   time(workload.layers[0], TrainingPass::kBackward) + backward);
  EXPECT_DOUBLE_EQ(fused.At(2).host.in(kMicroseconds), 4 * 80);
  const std::vector<double> seconds = fused.BackwardSeconds(2);
  ASSERT_EQ(seconds.size(), 4U);
  EXPECT_GT(seconds[0], 0);
  EXPECT_EQ(seconds[1], 0);
  EXPECT_EQ(seconds[2], 0);
  EXPECT_DOUBLE_EQ(seconds[3], backward);

  // Its forward kernel runs once more where it is recomputed.
  for (std::size_t i = 1; i < 4; ++i) workload.layers[i].name = "h.0.attention";
  workload.recompute = Recompute::kFull;
  const SheetCompute recomputed(workload, device);
  EXPECT_DOUBLE_EQ(recomputed.BackwardSeconds(2)[3], backward + forward);
  EXPECT_DOUBLE_EQ(recomputed.BackwardSeconds(2)[0], seconds[0]);
  EXPECT_DOUBLE_EQ(recomputed.At(2).host.in(kMicroseconds), 5 * 80);
}

// A dense layer of no block, and attention of three layers that run forward once more; fused, one.
TEST(SheetCompute, SelectiveRecomputationRunsAttentionOnceMore) {
  Workload workload;
  workload.layers = {
      OfOperation(LayerKind::kDense, DenseOp{384, 768, 768}),
      OfOperation(LayerKind::kAttention, BatchedProductOp{12, 384, 384, 64}),
      OfOperation(LayerKind::kActivation, ActivationOp{Function::kSoftmax, 12 * 384, 384}),
      OfOperation(LayerKind::kAttention, BatchedProductOp{12, 384, 64, 384})};
  workload.layers[0].tensors = {768 * 768};
  workload.trainable_parameters = 768 * 768;
  const Device device = MakeDevice(1, 1);
  const OperationCurve<double> curve(SheetOf(device, Precision::kFp32).value(), LearntCurve(), 0.0);
  const auto backward = [&](Recompute recompute) {
    workload.recompute = recompute;
    return SheetCompute(workload, device).BackwardSeconds(2);
  };
  const std::vector<double> kept = backward(Recompute::kNone);
  const std::vector<double> selective = backward(Recompute::kSelective);
  ASSERT_EQ(selective.size(), 4U);
  EXPECT_EQ(selective[0], kept[0]);
  for (std::size_t i = 1; i < 4; ++i) {
    const double forward = curve.Time(workload.layers[i].operation, TrainingPass::kForward, 2);
    EXPECT_DOUBLE_EQ(selective[i], kept[i] + forward) << i;
  }
  EXPECT_DOUBLE_EQ(SheetCompute(workload, device).At(2).host.in(kMicroseconds), (8 + 3) * 80);
  workload.attention = AttentionForm::kFused;
  const double fused =
      curve.Time(FusedAttention{12, 384, 384, 64, false}, TrainingPass::kForward, 2);
  EXPECT_DOUBLE_EQ(backward(Recompute::kSelective)[3], backward(Recompute::kNone)[3] + fused);
  EXPECT_EQ(backward(Recompute::kSelective)[0], kept[0]);
  workload.recompute = Recompute::kSelective;
  EXPECT_DOUBLE_EQ(SheetCompute(workload, device).At(2).host.in(kMicroseconds), (4 + 1) * 80);
}

// Korthikanti et al., Table 4, measured a layer of 22 billion parameters on A100: 7 % longer where
// attention is recomputed, 39 % where all is. Theirs has scale, mask and softmax in one kernel, and
// exchanges within layers that run once more too.
TEST(SheetCompute, SelectiveRecomputationTakesAFractionOfFullAsMeasured) {
  Device a100 = MakeDevice(19.5, 2039);
  a100.tf32 = TeraflopPerSecond(156.0);
  a100.fp16 = TeraflopPerSecond(312.0);
  a100.bf16 = a100.fp16;
  a100.power_w = 400;
  a100.multiprocessors = 108;
  a100.last_cache = Mebibytes(40.0);
  a100.process_nm = 7;
  Workload gpt = *FindWorkload("gpt:layers=4:hidden=6144:heads=64@2048");
  gpt.precision = Precision::kFp16;
  const auto seconds = [&](Recompute recompute) {
    gpt.recompute = recompute;
    const SheetTime time = SheetCompute(gpt, a100).At(4);
    return (time.forward + time.backward).si();
  };
  const double kept = seconds(Recompute::kNone);
  EXPECT_NEAR(seconds(Recompute::kSelective) / kept, 1.07, 0.06);
  EXPECT_NEAR(seconds(Recompute::kFull) / kept, 1.39, 0.09);
}

// The longer a text, the more of its step the scores take that no longer pass the memory.
TEST(SheetCompute, FusedAttentionIsFasterTheLongerTheText) {
  Device h100 = MakeDevice(67, 3350);
  h100.tf32 = TeraflopPerSecond(494.0);
  h100.bf16 = TeraflopPerSecond(989.0);
  h100.multiprocessors = 132;
  double before = 1;
  for (const char* name : {"opt_1.3b@512", "opt_1.3b@1024", "opt_1.3b@2048"}) {
    Workload opt = *FindWorkload(name);
    opt.precision = Precision::kBf16;
    const auto step = [&] {
      const SheetTime time = SheetCompute(opt, h100).At(8);
      return (time.forward + time.backward).si();
    };
    const double plain = step();
    opt.attention = AttentionForm::kFused;
    const double share = step() / plain;
    EXPECT_LT(share, before) << name;
    before = share;
  }
  EXPECT_LT(before, 0.75);
}

// What is before the first parameters has no gradient.
TEST(SheetCompute, NothingIsTrainedBeforeTheFirstParameters) {
  Workload workload = TwoLayers();
  std::swap(workload.layers[0], workload.layers[1]);
  const SheetCompute compute(workload, MakeDevice(1, 1));
  EXPECT_EQ(compute.BackwardSeconds(4)[0], 0);
  EXPECT_GT(compute.BackwardSeconds(4)[1], 0);
  EXPECT_DOUBLE_EQ(compute.At(4).host.in(kMicroseconds), 3 * 80);
}

// The curve that the step model takes is the sum, the first batch included.
TEST(SheetCompute, TheStepModelsCurveIsTheSum) {
  const Device device = T4();
  for (const std::string& name : WorkloadNames()) {
    const Workload workload = *FindWorkload(name);
    const SheetCompute compute(workload, device);
    const FittedCurve<double> curve = compute.Curve();
    EXPECT_GT(curve.per_sample.si(), 0) << name;
    for (const double batch : {1, 8, 100, 256}) {
      const SheetTime time = compute.At(batch);
      const double device_s = (time.forward + time.backward).si();
      if (device_s < 3 * time.host.si()) continue;
      EXPECT_NEAR(curve.Time(Samples(batch)).si() / device_s, 1, 0.25) << name << " at " << batch;
    }
  }
}

// DenseNet-121 was measured at 12 pictures on an A100 at 73 ms in fp16 and 74 in TF32: its 427
// layers and their backward passes wait for the host, whatever the precision.
TEST(SheetCompute, ADeviceThatIsFasterThanItsHostWaits) {
  Device a100 = MakeDevice(19.5, 1555);
  a100.tf32 = TeraflopPerSecond(156.0);
  a100.fp16 = TeraflopPerSecond(312.0);
  a100.multiprocessors = 108;
  for (const Precision precision : {Precision::kTf32, Precision::kFp16}) {
    Workload densenet = *FindWorkload("densenet121");
    densenet.precision = precision;
    const SheetTime time = SheetCompute(densenet, a100).At(12);
    const double step = SheetCompute(densenet, a100).Curve().Time(Samples(12.0)).si();
    EXPECT_LT(time.forward + time.backward, time.host);
    EXPECT_NEAR(step / 73.5e-3, 1, 0.1);
  }
}

// 0.62 of a step were measured of networks that are trained end to end.
TEST(SheetCompute, TheBackwardPassHasItsShare) {
  for (const char* name : {"resnet50", "bert_base", "inception_v3", "deepspeech2"}) {
    const Workload workload = *FindWorkload(name);
    const SheetTime time = SheetCompute(workload, T4()).At(32);
    const double share = time.backward / (time.forward + time.backward);
    EXPECT_GT(share, 0.55) << name;
    EXPECT_LT(share, 0.7) << name;
  }
}

// Of two dense layers with an activation before each, the first has no gradient to pass on.
TEST(SheetCompute, TheLeastOfASampleIsItsDenseLayersAtThePeak) {
  Device device = MakeDevice(10, 320);
  device.fp16 = TeraflopPerSecond(100.0);
  Workload workload = TwoLayers();
  workload.layers.push_back(workload.layers.front());
  workload.trainable_parameters = 2000;
  const auto least = [&] { return SheetCompute(workload, device).LeastOfASample().si(); };
  EXPECT_EQ(least(), 0) << "units of 32 bits may not be those that a run took";
  workload.precision = Precision::kFp16;
  EXPECT_DOUBLE_EQ(least(), (2 + 3) * 2e6 / 100e12);
  device.fp16 = TeraflopPerSecond(20.0);
  EXPECT_EQ(least(), 0) << "nor those of vectors";
}

// No forecast is quicker, on no device: neither the sum of the operations nor the step model's
// curve.
TEST(SheetCompute, NoNetworkIsQuickerThanAtThePeak) {
  int above = 0;
  for (const Device& device :
       ReadDevices(std::string(STEPCAST_SOURCE_DIR) + "/data/machines/gpus.yaml")) {
    for (const Precision precision : {Precision::kFp16, Precision::kBf16, Precision::kFp8}) {
      if (!PeakOf(device, precision)) continue;
      for (const char* name : {"gpt2", "bert_base", "llama2_7b", "vit_b_16", "resnet50"}) {
        Workload workload = FindWorkload(name).value();
        workload.precision = precision;
        if (!HasSheetTime(workload, device)) continue;
        const SheetCompute sheet(workload, device);
        const FittedCurve<double> curve = sheet.Curve();
        for (const double batch : {1.0, 32.0, 1024.0}) {
          const Duration<> least = sheet.LeastOfASample() * batch;
          const SheetTime time = sheet.At(batch);
          EXPECT_LE(least, time.forward + time.backward)
              << device.name << " " << name << " " << batch;
          EXPECT_LE(least.si(), curve.per_sample.si() * batch) << device.name << " " << name;
          above += least.si() > 0 ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GE(above, 1000);
}

// Half the bytes, and the peak of the tensor cores. The update is that of 32 bits.
TEST(SheetCompute, SixteenBitsAreFaster) {
  const Workload resnet = *FindWorkload("resnet50");
  Device t4 = T4();
  t4.fp16 = TeraflopPerSecond(65.0);
  Workload mixed = resnet;
  mixed.precision = Precision::kFp16;
  const SheetTime single = SheetCompute(resnet, t4).At(64);
  const SheetTime half = SheetCompute(mixed, t4).At(64);
  EXPECT_LT(half.forward, single.forward);
  EXPECT_LT(half.backward, single.backward);
  EXPECT_EQ(half.update, single.update);
}

// The workload says at which peak, and with how many bytes of a number: 2 at 16 bits, 4 at tf32.
TEST(SheetCompute, IsAtTheWorkloadsPrecision) {
  Device device = MakeDevice(1, 1);
  device.tf32 = TeraflopPerSecond(4.0);
  device.bf16 = TeraflopPerSecond(8.0);
  for (const auto& [precision, share] :
       {std::pair(Precision::kTf32, 1.0), std::pair(Precision::kBf16, 0.5)}) {
    Workload workload = TwoLayers();
    workload.precision = precision;
    const OperationCurve<double> curve(SheetOf(device, precision).value(), LearntCurve(), 0.0);
    const SheetTime time = SheetCompute(workload, device).At(2);
    EXPECT_DOUBLE_EQ(time.forward.si(), curve.Counted(4e6, share * (2 * 4000 + 4000)) +
                                            curve.Counted(2e3, share * 2 * 8000));
  }
  EXPECT_EQ(SheetOf(device, Precision::kTf32)->flop_per_s, 4e12);
  EXPECT_EQ(SheetOf(device, Precision::kBf16)->flop_per_s, 8e12);
}

// A precision that the sheet does not know has the peak of 32 bits, and the bytes of its own.
TEST(DeviceSheet, KnowsWhichPeaksItHas) {
  Device device = MakeDevice(10, 320);
  device.fp16 = TeraflopPerSecond(80.0);
  EXPECT_TRUE(PeakOf(device, Precision::kFp32));
  EXPECT_TRUE(PeakOf(device, Precision::kFp16));
  EXPECT_FALSE(PeakOf(device, Precision::kTf32));
  EXPECT_FALSE(PeakOf(device, Precision::kBf16));
  EXPECT_EQ(SheetOf(device, Precision::kBf16)->flop_per_s, 10e12);
  EXPECT_EQ(SheetOf(device, Precision::kBf16)->element_bytes, 2);
}

// Three, eight and twenty passes of 4 bytes over the memory, and one start of a kernel.
TEST(SheetCompute, TheUpdateIsTheOptimizers) {
  constexpr double kPasses[kOptimizerCount] = {3, 8, 20};
  const Device device = MakeDevice(1, 1);
  const CurveParameters<double> learnt = LearntCurve();
  for (int i = 0; i < kOptimizerCount; ++i) {
    Workload workload = TwoLayers();
    workload.optimizer = static_cast<Optimizer>(i);
    EXPECT_NEAR(SheetCompute(workload, device).At(1).update.si(),
                learnt[kKernelStart] + kPasses[i] * 4 * 1000 / (learnt[kElementBandwidth] * 1e9),
                1e-15)
        << kOptimizerNames[i];
  }
}

}  // namespace
}  // namespace stepcast
