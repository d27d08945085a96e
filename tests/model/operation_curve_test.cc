// The curve of an operation: cases by hand, and what it promises for any operation and device.
#include "model/compute/operation_curve.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "data/workloads/catalog.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

// 100 multiprocessors of 100 GFLOP/s, 1 TB/s.
DeviceSheet Round() {
  DeviceSheet sheet;
  sheet.flop_per_s = 1e13;
  sheet.bytes_per_s = 1e12;
  sheet.multiprocessors = 100;
  return sheet;
}

// What is usually small is nothing, what is a share is all, and a library takes the best tile.
CurveParameters<double> Ideal() {
  CurveParameters<double> p = LearntCurve();
  for (const CurveParameter i :
       {kFeedEnergy, kTileEdge, kTileStart, kWaveTail, kKeptCache, kKernelStart, kRecurrentStep}) {
    p.si[i] = 0;
  }
  p.si[kClockPower] = 1;  // one voltage
  p.si[kTileChoice] = 1e4;
  for (const CurveParameter i : {kProductBandwidth, kElementBandwidth, kSoftmaxBandwidth,
                                 kNormBandwidth, kForwardGather, kDataGather, kWeightGather}) {
    p.si[i] = 1;
  }
  return p;
}

OperationCurve<double> At(const DeviceSheet& sheet,
                          const CurveParameters<double>& p = LearntCurve()) {
  return {sheet, p, 0.0};
}

// 1280 x 1280 are 100 tiles of 128 x 128: one wave of 2 128 128 4096 FLOP at 100 GFLOP/s. With one
// row more, four products are 440 such tiles, five waves, or 1680 of 64 x 64, 17 waves of a
// quarter.
TEST(OperationCurve, TilesAndWavesByHand) {
  const OperationCurve<double> curve = At(Round(), Ideal());
  const double wave = 2.0 * 128 * 128 * 4096 / 1e11;
  EXPECT_NEAR(curve.Product(1, 1280, 1280, 4096) / wave, 1, 1e-3);
  EXPECT_NEAR(curve.Product(4, 1281, 1280, 4096) / wave, 4.25, 0.01);
  EXPECT_NEAR(curve.Product(8, 1280, 1280, 4096) / wave, 8, 0.01);
  // Depths are those of whole eights.
  EXPECT_NEAR(curve.Product(1, 1280, 1280, 4089) / wave, 1, 1e-3);
}

// One tile for 100 multiprocessors: its depth is cut into as many parts as still pay. 64 products
// in one call are not cut: 256 tiles of 64 x 64 are three waves.
TEST(OperationCurve, DeepProductsAreSplit) {
  const OperationCurve<double> curve = At(Round(), Ideal());
  const double whole = 2.0 * 128 * 128 * 65536 / 1e11;
  EXPECT_LT(curve.Product(1, 128, 128, 65536), whole / 40);
  EXPECT_NEAR(curve.Product(64, 128, 128, 65536) / whole, 0.75, 0.01);
}

// 100 heads of 128 queries are a block for each multiprocessor: 4 100 128 10^5 64 FLOP at 0.4 of
// 10 TFLOP/s. Half of the heads leave half of the device idle. Two queries and keys of a million
// features are 8 10^8 numbers at 1 TB/s.
TEST(OperationCurve, FusedAttentionByHand) {
  DeviceSheet matrix = Round();
  matrix.matrix_units = true;
  const OperationCurve<double> curve = At(matrix, Ideal());
  const auto time = [&](const FusedAttention& attention, TrainingPass pass, double batch = 1) {
    return curve.Time(attention, pass, batch);
  };
  const FusedAttention busy = {100, 128, 100'000, 64, false};
  const double flop = 4.0 * 100 * 128 * 1e5 * 64;
  const double seconds = flop / (kFusedAttentionShare * 1e13);
  EXPECT_NEAR(time(busy, TrainingPass::kForward) / seconds, 1, 1e-4);
  EXPECT_NEAR(time(busy, TrainingPass::kBackward) / seconds, 2.5, 1e-4);
  FusedAttention half = busy;
  half.heads = 50;
  EXPECT_NEAR(time(half, TrainingPass::kForward) / seconds, 1, 1e-4);
  EXPECT_NEAR(time(half, TrainingPass::kForward, 2) / seconds, 1, 1e-4);
  EXPECT_NEAR(time(half, TrainingPass::kForward, 4) / seconds, 2, 1e-4);
  FusedAttention causal = busy;
  causal.causal = true;
  EXPECT_NEAR(time(causal, TrainingPass::kForward) / seconds, 0.5, 1e-3);
  // One query more is a block more.
  FusedAttention longer = busy;
  longer.queries = 129;
  EXPECT_NEAR(time(longer, TrainingPass::kForward) / seconds, 2, 1e-4);
  longer.queries = 256;
  EXPECT_NEAR(time(longer, TrainingPass::kForward) / seconds, 2, 1e-4);
  const double ordinary = At(Round(), Ideal()).Time(busy, TrainingPass::kForward, 1);
  EXPECT_NEAR(ordinary / seconds, kFusedAttentionShare / kOrdinaryAttentionShare, 1e-4);
  const FusedAttention wide = {100, 128, 2, 15'625, false};
  EXPECT_NEAR(time(wide, TrainingPass::kForward), 1.625e-3, 1e-5);
  EXPECT_NEAR(time(wide, TrainingPass::kBackward), 4.875e-3, 1e-5);
  DeviceSheet unknown = matrix;
  unknown.multiprocessors = 0;
  EXPECT_NEAR(At(unknown, Ideal()).Time(half, TrainingPass::kForward, 1) / seconds, 0.5, 1e-3);
}

// 2 W are 2 TFLOP/s of 1 pJ each; 10 W are more than the share of the peak.
TEST(OperationCurve, ThePowerLimitHoldsFusedAttentionBack) {
  DeviceSheet sheet = Round();
  sheet.watts = 2;
  sheet.process_nm = 12;
  CurveParameters<double> p = Ideal();
  p.si[kVectorEnergy] = 1e-12;
  const FusedAttention busy = {100, 128, 100'000, 64, false};
  const double flop = 4.0 * 100 * 128 * 1e5 * 64;
  EXPECT_NEAR(At(sheet, p).Time(busy, TrainingPass::kForward, 1) / (flop / 2e12), 1, 1e-4);
  sheet.watts = 10;
  EXPECT_NEAR(At(sheet, p).Time(busy, TrainingPass::kForward, 1) / (flop / 8e12), 1, 1e-4);
}

// Three tensors of 1 GB.
TEST(OperationCurve, MemoryByHand) {
  const OperationCurve<double> curve = At(Round(), Ideal());
  const ElementwiseOp sum{ElementwiseKind::kAdd, 250'000, 1000, false};
  EXPECT_NEAR(curve.Time(sum, TrainingPass::kForward, 1), 3e-3, 1e-12);
  const ActivationOp relu{Function::kRelu, 1000, 250'000};
  EXPECT_NEAR(curve.Time(relu, TrainingPass::kForward, 1), 2e-3, 1e-12);
  EXPECT_NEAR(curve.Time(relu, TrainingPass::kBackward, 1), 3e-3, 1e-12);
  CurveParameters<double> slow = Ideal();
  slow.si[kSoftmaxBandwidth] = 0.5;
  const ActivationOp softmax{Function::kSoftmax, 1000, 250'000};
  EXPECT_NEAR(At(Round(), slow).Time(softmax, CurvePass::kForward, 1) /
                  curve.Time(softmax, CurvePass::kForward, 1),
              2, 1e-12);
  EXPECT_EQ(At(Round(), slow).Time(relu, CurvePass::kForward, 1),
            curve.Time(relu, CurvePass::kForward, 1));
  const UpdateOp momentum{Optimizer::kMomentum, 250'000'000};
  EXPECT_NEAR(curve.Time(momentum, TrainingPass::kUpdate, 1), 8e-3, 1e-12);
}

// What stays in the last cache does not pass the memory, but for a fifth.
TEST(OperationCurve, TheLastCacheKeepsItsShare) {
  CurveParameters<double> p = Ideal();
  p.si[kKeptCache] = 0.5;
  DeviceSheet sheet = Round();
  sheet.cache_bytes = 40e6;
  const auto seconds = [&](std::int64_t bytes) {
    return At(sheet, p).Time(CopyOp{bytes / 8}, TrainingPass::kForward, 1);
  };
  EXPECT_NEAR(seconds(100'000'000), 80e-6, 1e-12);
  EXPECT_NEAR(seconds(20'000'000), 4e-6, 1e-12);
}

// 70 W at 15 pJ are 4.67 TFLOP/s, whatever the peak; a burst goes on at the peak for so long.
TEST(OperationCurve, ThePowerLimitHoldsTheClockBack) {
  CurveParameters<double> p = Ideal();
  p.si[kVectorEnergy] = 15e-12;
  DeviceSheet sheet = Round();
  const auto seconds = [&](double burst) {
    return OperationCurve<double>(sheet, p, burst).Product(8, 1280, 1280, 4096);
  };
  const double free = seconds(0);
  sheet.watts = 70;
  sheet.process_nm = 12;
  const double flop = 8 * 2.0 * 1280 * 1280 * 4096;
  EXPECT_NEAR(seconds(0) / (flop * 15e-12 / 70), 1, 0.01);
  EXPECT_NEAR(seconds(1), free, 1e-9);
  sheet.process_nm = 6;
  EXPECT_NEAR(seconds(0) / (flop * 7.5e-12 / 70), 1, 0.01);
}

// 400 W at 2.5 pJ are 160 TFLOP/s of 16 bits, and 80 of TF32, whose peak of 156 is out of reach.
TEST(OperationCurve, TwiceTheBitsTakeTwiceTheEnergy) {
  CurveParameters<double> p = Ideal();
  p.si[kMatrixEnergy] = 2.5e-12;
  DeviceSheet sheet = Round();
  sheet.matrix_units = true;
  sheet.watts = 400;
  sheet.process_nm = 12;
  const double flop = 100 * 2.0 * 1280 * 1280 * 4096;
  sheet.flop_per_s = 312e12;
  sheet.element_bytes = 2;
  EXPECT_NEAR(flop / At(sheet, p).Product(100, 1280, 1280, 4096) / 160e12, 1, 0.01);
  sheet.flop_per_s = 156e12;
  sheet.element_bytes = 4;
  EXPECT_NEAR(flop / At(sheet, p).Product(100, 1280, 1280, 4096) / 80e12, 1, 0.01);
}

// A board that would draw 400 W and has 100 runs at half of its clock where voltage follows that as
// its root, and at a quarter where it does not, as ordinary units do.
TEST(OperationCurve, ALowerClockNeedsLessVoltageToo) {
  CurveParameters<double> p = Ideal();
  p.si[kMatrixEnergy] = p.si[kVectorEnergy] = 40e-12;
  DeviceSheet sheet = Round();
  sheet.matrix_units = true;
  sheet.element_bytes = 2;
  const auto seconds = [&] { return At(sheet, p).Product(100, 1280, 1280, 4096); };
  const double free = seconds();
  sheet.watts = 100;
  sheet.process_nm = 12;
  EXPECT_NEAR(seconds() / free, 4, 0.01);
  p.si[kClockPower] = 2;
  EXPECT_NEAR(seconds() / free, 2, 0.01);
  sheet.matrix_units = false;
  EXPECT_NEAR(seconds() / free, 4, 0.01);
  sheet.watts = 400;
  EXPECT_NEAR(seconds() / free, 1, 1e-9);
}

// What feeds units for matrices costs the same whatever these compute: of 1 W of feeding and 1 W of
// operations a board of 2 W has no more than that; twice as wide it would draw 3 W, not 4.
TEST(OperationCurve, WideUnitsAreFedOnce) {
  CurveParameters<double> p = Ideal();
  DeviceSheet sheet = Round();
  sheet.process_nm = 12;
  sheet.matrix_units = true;
  sheet.element_bytes = 2;
  p.si[kMatrixEnergy] = 1 / sheet.flop_per_s;
  sheet.vector_flop_per_s = 1e12;
  p.si[kFeedEnergy] = 1 / sheet.vector_flop_per_s;
  const auto seconds = [&] { return At(sheet, p).Product(100, 1280, 1280, 4096); };
  const double narrow = seconds();
  sheet.watts = 2;
  EXPECT_NEAR(seconds() / narrow, 1, 1e-9);
  sheet.flop_per_s *= 2;
  EXPECT_NEAR(seconds() / narrow, 1.5 / 2, 1e-3);
  // Ordinary units are fed within the energy of their operations.
  sheet.matrix_units = false;
  p.si[kVectorEnergy] = 1 / sheet.flop_per_s;
  EXPECT_NEAR(seconds() / narrow, 1.0 / 2, 1e-3);
}

// Where products of B200, H100 and L4 were seen to end up (data/measurements/matrix-products.csv):
// 1.70 PFLOP/s, 0.80 and, at half the power on PCIe, 0.49; 57 TFLOP/s of 121 on 72 W.
TEST(OperationCurve, LargeProductsReachWhatBoardsReach) {
  DeviceSheet b200;
  b200.flop_per_s = 2250e12;
  b200.vector_flop_per_s = 75e12;
  b200.bytes_per_s = 7700e9;
  b200.element_bytes = 2;
  b200.matrix_units = true;
  b200.multiprocessors = 148;
  b200.cache_bytes = 126.5 * 1024 * 1024;
  b200.watts = 1000;
  b200.process_nm = 5;
  const auto reached = [](const DeviceSheet& sheet) {
    return 2 * 8192.0 * 8192 * 8192 / At(sheet).Product(1, 8192, 8192, 8192);
  };
  EXPECT_NEAR(reached(b200) / 1.7e15, 1, 0.2);
  DeviceSheet h100 = b200;
  h100.flop_per_s = 989.4e12;
  h100.vector_flop_per_s = 66.9e12;
  h100.bytes_per_s = 3350e9;
  h100.multiprocessors = 132;
  h100.watts = 700;
  EXPECT_NEAR(reached(h100) / 0.797e15, 1, 0.1);
  DeviceSheet pcie = h100;
  pcie.flop_per_s = 756e12;
  pcie.vector_flop_per_s = 51.2e12;
  pcie.multiprocessors = 114;
  pcie.watts = 350;
  EXPECT_NEAR(reached(pcie) / 0.493e15, 1, 0.1);
  DeviceSheet l4 = pcie;
  l4.flop_per_s = 121e12;
  l4.vector_flop_per_s = 30.3e12;
  l4.bytes_per_s = 300e9;
  l4.multiprocessors = 58;
  l4.watts = 72;
  EXPECT_NEAR(reached(l4) / 57e12, 1, 0.2);
}

// A 3 x 3 window by Winograd is faster than the peak allows the plain product; one of 3 x 1 is not.
TEST(OperationCurve, WindowsOfThreeAreWinograds) {
  ConvolutionOp op;
  op.channels = op.filters = 256;
  op.input = {56, 56};
  op.kernel = {3, 3};
  op.stride = op.dilation = {1, 1};
  op.padding = {1, 1, 1, 1};
  const OperationCurve<double> curve = At(Round(), Ideal());
  const auto flop = [&] { return 64 * CountOperation(op, TrainingPass::kForward).flop_per_sample; };
  EXPECT_LT(curve.Time(op, CurvePass::kForward, 64), flop() / 1e13 / 1.3);
  op.kernel = {3, 1};
  op.padding = {1, 0, 1, 0};
  EXPECT_GE(curve.Time(op, CurvePass::kForward, 64), flop() / 1e13);
  DeviceSheet matrix = Round();
  matrix.matrix_units = true;
  op.kernel = {3, 3};
  op.padding = {1, 1, 1, 1};
  EXPECT_GE(At(matrix, Ideal()).Time(op, CurvePass::kForward, 64), flop() / 1e13);
}

// Where units for matrices are as fast as ordinary ones, TF32 takes as long as fp32: Winograd's is
// faster than either unit's product. Where they are eight times as fast, it is theirs.
TEST(OperationCurve, Tf32IsOnTheFasterUnits) {
  ConvolutionOp op;
  op.channels = op.filters = 256;
  op.input = {56, 56};
  op.kernel = {3, 3};
  op.stride = op.dilation = {1, 1};
  op.padding = {1, 1, 1, 1};
  const DeviceSheet single = Round();
  DeviceSheet matrix = single;
  matrix.matrix_units = true;
  DeviceSheet either = matrix;
  either.ordinary_flop_per_s = single.flop_per_s;
  const auto seconds = [&](const DeviceSheet& sheet) {
    return At(sheet, Ideal()).Time(op, CurvePass::kForward, 64);
  };
  EXPECT_GT(seconds(matrix), 1.3 * seconds(single));
  EXPECT_EQ(seconds(either), seconds(single));
  either.flop_per_s = matrix.flop_per_s = 8e13;
  EXPECT_EQ(seconds(either), seconds(matrix));
  EXPECT_LT(seconds(either), seconds(single));
  // A product of 32 bits at half of the ordinary units' rate, and what is known by its work alone.
  either.flop_per_s = 5e12;
  EXPECT_EQ(At(either).Product(8, 1280, 1280, 4096), At(single).Product(8, 1280, 1280, 4096));
  EXPECT_EQ(At(either).Counted(1e12, 1e6), At(single).Counted(1e12, 1e6));
  const FusedAttention attention{100, 1024, 1024, 64, false};
  for (const TrainingPass pass : {TrainingPass::kForward, TrainingPass::kBackward}) {
    EXPECT_EQ(At(either).Time(attention, pass, 4), At(single).Time(attention, pass, 4));
  }
}

// Products of activations have two gradients although they have no parameters; what reads the
// network's input has one although it has some; a sum has one.
TEST(OperationCurve, GradientsAreThoseOfTheInputs) {
  const OperationCurve<double> curve = At(Round());
  const BatchedProductOp attention{12, 512, 512, 512};
  EXPECT_NEAR(curve.Time(attention, TrainingPass::kBackward, 8) /
                  curve.Time(attention, TrainingPass::kForward, 8),
              2, 0.01);
  DenseOp dense{512, 1024, 1024};
  const double both = curve.Time(dense, TrainingPass::kBackward, 8);
  dense.input_gradient = false;
  EXPECT_NEAR(curve.Time(dense, TrainingPass::kBackward, 8) / both, 0.5, 0.1);
  EXPECT_EQ(curve.Time(dense, CurvePass::kDataGradient, 8), 0);
  const DenseOp narrow{512, 200, 3000};
  EXPECT_EQ(curve.Time(narrow, CurvePass::kWeightGradient, 8), curve.Product(1, 200, 3000, 4096));
  EXPECT_EQ(curve.Time(narrow, CurvePass::kDataGradient, 8), curve.Product(1, 4096, 200, 3000));
}

// A bias reads the gradient of the output once more: 1 GB at 1 TB/s, whatever the layer.
TEST(OperationCurve, ABiasTakesAPassOfItsOwn) {
  const OperationCurve<double> curve = At(Round(), Ideal());
  const auto bias_seconds = [&](auto op, CurvePass pass, double batch) {
    const double without = curve.Time(op, pass, batch);
    op.bias = true;
    return curve.Time(op, pass, batch) - without;
  };
  const DenseOp dense{500, 1000, 5000};
  ConvolutionOp convolution;
  convolution.channels = 3;
  convolution.filters = 100;
  convolution.input = {500, 50};
  convolution.kernel = convolution.stride = convolution.dilation = {1, 1};
  EXPECT_NEAR(bias_seconds(dense, CurvePass::kWeightGradient, 100), 1e-3, 1e-9);
  EXPECT_NEAR(bias_seconds(convolution, CurvePass::kWeightGradient, 100), 1e-3, 1e-9);
  for (const CurvePass pass : {CurvePass::kForward, CurvePass::kDataGradient}) {
    EXPECT_EQ(bias_seconds(dense, pass, 100), 0);
    EXPECT_EQ(bias_seconds(convolution, pass, 100), 0);
  }
}

// A position after another: twice as many take twice as long. Two directions go side by side.
TEST(OperationCurve, RecurrentLayersGoPositionByPosition) {
  const OperationCurve<double> curve = At(Round());
  const double once = curve.Recurrent(4, 100, 0, 512, 1, CurvePass::kForward, 16);
  EXPECT_NEAR(curve.Recurrent(4, 200, 0, 512, 1, CurvePass::kForward, 16) / once, 2, 1e-12);
  for (const auto& [cell, gates] :
       {std::pair(RecurrentCell::kLstm, 4), std::pair(RecurrentCell::kGru, 3)}) {
    EXPECT_EQ(curve.Time(RecurrentOp{cell, 100, 256, 512, 1}, CurvePass::kForward, 16),
              curve.Recurrent(gates, 100, 256, 512, 1, CurvePass::kForward, 16));
  }
  const double both = curve.Recurrent(4, 100, 0, 512, 2, CurvePass::kForward, 16);
  EXPECT_GE(both, once);
  EXPECT_LT(both, 2 * once - 99 * LearntCurve()[kRecurrentStep]);
  EXPECT_GT(once, 100 * LearntCurve()[kRecurrentStep]);
}

// The weights of 320 units and 960 inputs are 1280 x 1280, of 16 x 256 rows: one wave of tiles, for
// each direction.
TEST(OperationCurve, RecurrentWeightsAreOneProductByHand) {
  const OperationCurve<double> curve = At(Round(), Ideal());
  const double wave = 2.0 * 128 * 128 * 4096 / 1e11;
  for (const int directions : {1, 2}) {
    const RecurrentOp lstm{RecurrentCell::kLstm, 256, 960, 320, directions};
    EXPECT_NEAR(curve.Time(lstm, CurvePass::kWeightGradient, 16) / wave, directions, 2e-3);
  }
}

std::vector<Operation> OperationsOf(const char* name) {
  std::vector<Operation> operations;
  const Workload workload = *FindWorkload(name);
  for (const Layer& layer : workload.layers) operations.push_back(layer.operation);
  return operations;
}

// Layers of all kinds, every fifth.
const std::vector<Operation>& SomeOperations() {
  static const std::vector<Operation> some = [] {
    std::vector<Operation> kept;
    for (const char* name : {"resnet50", "bert_base", "deepspeech2", "mobilenet", "ncf"}) {
      const std::vector<Operation> all = OperationsOf(name);
      for (std::size_t i = 0; i < all.size(); i += 5) kept.push_back(all[i]);
    }
    return kept;
  }();
  return some;
}

DeviceSheet RandomSheet() {
  DeviceSheet sheet;
  sheet.flop_per_s = *LogUniform(1e11, 1e15);
  sheet.bytes_per_s = *LogUniform(1e10, 1e13);
  sheet.multiprocessors = *Whole(0, 200);
  sheet.cache_bytes = *LogUniform(1e5, 1e8);
  sheet.watts = *Whole(0, 1) == 0 ? 0 : *LogUniform(10, 1000);
  sheet.process_nm = *LogUniform(3, 30);
  sheet.matrix_units = *Whole(0, 1) == 0;
  sheet.vector_flop_per_s = *LogUniform(1e11, 1e14);
  return sheet;
}

RC_GTEST_PROP(OperationCurveProperty, NeverFallsWithTheBatchNorRisesWithTheDevice, ()) {
  const DeviceSheet sheet = RandomSheet();
  const Operation& op =
      SomeOperations()[static_cast<std::size_t>(*Whole(0, int(SomeOperations().size()) - 1))];
  const double batch = *Whole(1, 300);
  DeviceSheet faster = sheet;
  faster.flop_per_s *= *LogUniform(1, 10);
  DeviceSheet wider = sheet;
  wider.bytes_per_s *= *LogUniform(1, 10);
  DeviceSheet stronger = sheet;
  stronger.watts *= *LogUniform(1, 10);
  for (const TrainingPass pass : {TrainingPass::kForward, TrainingPass::kBackward}) {
    const double time = At(sheet).Time(op, pass, batch);
    const double rounding = 1 - 1e-12;
    RC_ASSERT(std::isfinite(time) && time >= 0);
    RC_ASSERT(At(sheet).Time(op, pass, batch + 1) >= time * rounding);
    RC_ASSERT(At(faster).Time(op, pass, batch) * rounding <= time);
    RC_ASSERT(At(wider).Time(op, pass, batch) * rounding <= time);
    RC_ASSERT(At(stronger).Time(op, pass, batch) * rounding <= time);
  }
}

RC_GTEST_PROP(OperationCurveProperty, NoProductBeatsThePeak, ()) {
  const DeviceSheet sheet = RandomSheet();
  const double count = *Whole(1, 100);
  const double m = *Whole(1, 5000);
  const double n = *Whole(1, 5000);
  const double k = *Whole(1, 5000);
  const double time = At(sheet).Product(count, m, n, k);
  RC_ASSERT(time >= 2 * count * m * n * k / sheet.flop_per_s);
  RC_ASSERT(At(sheet).Product(count, m + 1, n, k) >= time * (1 - 1e-12));
  RC_ASSERT(At(sheet).Product(count, m, n, k + 1) >= time * (1 - 1e-12));
}

// 100 tiles of 128 x 128 are a wave of 2 128 128 4096 FLOP at 200 GFLOP/s; input and weights, 4096
// x 1280 numbers each, are read in 16 bits and written twice in 8.
TEST(OperationCurve, DenseLayersInEightBitsByHand) {
  DeviceSheet sheet = Round();
  sheet.matrix_units = true;
  sheet.element_bytes = 2;
  sheet.narrow_flop_per_s = 2e13;
  const DenseOp dense{1280, 4096, 1280};
  const double wave = 2.0 * 128 * 128 * 4096 / 2e11;
  const double casts = 2 * 4.0 * 4096 * 1280 / 1e12;
  EXPECT_NEAR(At(sheet, Ideal()).Time(dense, CurvePass::kForward, 1) / (wave + casts), 1, 1e-3);

  DeviceSheet narrow = sheet;
  narrow.flop_per_s = sheet.narrow_flop_per_s;
  narrow.narrow_flop_per_s = 0;
  narrow.element_bytes = 1;
  DeviceSheet half = sheet;
  half.narrow_flop_per_s = 0;
  const OperationCurve<double> curve = At(sheet);
  // So many numbers in and out at 2 bytes are as many as a cast reads and writes.
  const auto cast = [&](std::int64_t numbers) {
    return At(half).Time(CopyOp{numbers}, CurvePass::kForward, 1);
  };
  EXPECT_TRUE(Near(
      curve.Time(dense, CurvePass::kForward, 3),
      At(narrow).Product(1, 3 * 1280, 1280, 4096) + cast(3 * 1280 * 4096) + cast(4096 * 1280)));
  EXPECT_TRUE(Near(curve.Time(dense, CurvePass::kWeightGradient, 3),
                   At(narrow).Product(1, 4096, 1280, 3 * 1280) + cast(3 * 1280 * 1280)));
  EXPECT_TRUE(Near(curve.Time(dense, CurvePass::kDataGradient, 3),
                   At(narrow).Product(1, 3 * 1280, 4096, 1280)));
  // All else is of 16 bits.
  const BatchedProductOp scores{12, 384, 384, 64};
  const ConvolutionOp convolution{64, {56, 56}, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
  for (const CurvePass pass :
       {CurvePass::kForward, CurvePass::kDataGradient, CurvePass::kWeightGradient}) {
    EXPECT_EQ(curve.Time(scores, pass, 3), At(half).Time(scores, pass, 3));
    EXPECT_EQ(curve.Time(convolution, pass, 3), At(half).Time(convolution, pass, 3));
  }
}

// Products of an H100 that are large gain most of the factor of two, and small ones lose by casts.
TEST(OperationCurve, EightBitsPayForLargeProducts) {
  DeviceSheet half;
  half.flop_per_s = 989.4e12;
  half.bytes_per_s = 3350e9;
  half.element_bytes = 2;
  half.matrix_units = true;
  half.multiprocessors = 132;
  half.watts = 700;
  half.process_nm = 5;
  DeviceSheet eighth = half;
  eighth.narrow_flop_per_s = 1978.9e12;
  const auto ratio = [&](std::int64_t length) {
    const DenseOp dense{length, length, length};
    return At(eighth).Time(dense, TrainingPass::kForward, 1) /
           At(half).Time(dense, TrainingPass::kForward, 1);
  };
  EXPECT_GT(ratio(256), 1);
  EXPECT_LT(ratio(8192), 0.75);
  EXPECT_GT(ratio(8192), 0.5);
}

TEST(OperationCurve, ParametersAreWithinTheirRanges) {
  for (const CurveParameterSpec& spec : kCurveParameterSpecs) {
    EXPECT_GT(spec.low, 0) << spec.name;
    EXPECT_LE(spec.low, spec.value) << spec.name;
    EXPECT_GE(spec.high, spec.value) << spec.name;
    EXPECT_FALSE(spec.meaning.empty()) << spec.name;
  }
}

}  // namespace
}  // namespace stepcast
