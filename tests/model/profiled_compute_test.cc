// A workload's compute time as the sum of its layers, on devices of which every time is known.
#include "model/compute/profiled_compute.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "data/workloads/catalog.h"
#include "model/step/priors.h"
#include "tests/model/operation_time.h"
#include "tests/model/support.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

constexpr TrainingPass kForward = TrainingPass::kForward;
constexpr TrainingPass kBackward = TrainingPass::kBackward;
constexpr TrainingPass kUpdate = TrainingPass::kUpdate;

// A device that does what its roofline says, after the start of a kernel.
struct IdealDevice {
  double flop_per_s = 2e13;
  double elements_per_s = 1e11;
  double start_s = 4e-6;

  double Seconds(const Operation& operation, TrainingPass pass, double batch) const {
    const OperationCounts n = CountOperation(operation, pass);
    return start_s + std::max(n.flop_per_sample * batch / flop_per_s,
                              (n.elements_per_sample * batch + n.elements) / elements_per_s);
  }
};

void Add(ComputeProfile* profile, const Operation& operation, TrainingPass pass, double batch,
         double seconds, Precision precision = Precision::kFp32) {
  MeasuredSamples samples;
  samples.point = {operation, static_cast<int>(batch), precision, pass};
  samples.seconds = {seconds, seconds, seconds};
  profile->samples.push_back(samples);
}

ComputeProfile OnDevice(const std::string& kind) {
  ComputeProfile profile;
  profile.device.name = "ideal";
  profile.device.kind = kind;
  return profile;
}

// Every operation of the workload at these batches, and its updates.
ComputeProfile Measured(const Workload& workload, const std::vector<double>& batches,
                        const std::string& kind = "gpu", const IdealDevice& device = {},
                        const std::function<double()>& noise = nullptr) {
  ComputeProfile profile = OnDevice(kind);
  for (const Layer& layer : workload.layers) {
    for (const double batch : batches) {
      for (const TrainingPass pass : {kForward, kBackward}) {
        const double seconds = device.Seconds(layer.operation, pass, batch);
        Add(&profile, layer.operation, pass, batch, seconds * (noise ? noise() : 1));
      }
    }
    if (layer.tensors.empty()) continue;
    const UpdateOp update{Optimizer::kMomentum, layer.parameters()};
    Add(&profile, update, kUpdate, 1, device.Seconds(update, kUpdate, 1));
  }
  return profile;
}

ProfiledCompute Compute(const ComputeProfile& profile, Workload workload,
                        Optimizer optimizer = Optimizer::kMomentum) {
  workload.optimizer = optimizer;
  return {profile, workload};
}

// An input that is scaled, a dense layer of 12 + 4 parameters, an activation.
Workload Small() {
  Workload workload;
  workload.name = "small";
  Layer scale;
  scale.name = "scale";
  scale.kind = LayerKind::kElementwise;
  scale.operation = ElementwiseOp{ElementwiseKind::kMultiply, 3, 1};
  scale.activation_bytes = Bytes(12.0);
  Layer dense;
  dense.name = "dense";
  dense.kind = LayerKind::kDense;
  dense.tensors = {12, 4};
  dense.operation = DenseOp{1, 3, 4, true, false};
  dense.forward_flop = Flop(28.0);
  dense.activation_bytes = Bytes(16.0);
  Layer activation;
  activation.name = "relu";
  activation.kind = LayerKind::kActivation;
  activation.operation = ActivationOp{Function::kRelu, 1, 4};
  activation.forward_flop = Flop(4.0);
  activation.activation_bytes = Bytes(16.0);
  workload.layers = {scale, dense, activation};
  workload.parameters = workload.trainable_parameters = 16;
  workload.gradient_bytes = Bytes(64.0);
  return workload;
}

// Microseconds at batch 8: forward 10, 20, 5; backward 40, 6 (and 1000 of the scale, which nobody
// asks for); updates 3. At 16 twice as much.
ComputeProfile SmallProfile(const std::string& kind) {
  ComputeProfile profile = OnDevice(kind);
  const Workload small = Small();
  const double forward[] = {10, 20, 5};
  const double backward[] = {1000, 40, 6};
  for (std::size_t i = 0; i < small.layers.size(); ++i) {
    for (const double batch : {8.0, 16.0}) {
      Add(&profile, small.layers[i].operation, kForward, batch, forward[i] * 1e-6 * batch / 8);
      Add(&profile, small.layers[i].operation, kBackward, batch, backward[i] * 1e-6 * batch / 8);
    }
  }
  Add(&profile, UpdateOp{Optimizer::kMomentum, 16}, kUpdate, 1, 3e-6);
  return profile;
}

// ---- By hand.

// One product of attention was measured, and sets both peaks. Forward, what is fused has twice its
// work and two thirds of its bytes; backward 2.5 times and as many.
TEST(ProfiledCompute, FusedAttentionIsScaledFromProducts) {
  const BatchedProductOp scores{4, 64, 64, 16};
  Workload workload;
  workload.name = "attends";
  Layer dense;
  dense.name = "dense";
  dense.kind = LayerKind::kDense;
  dense.tensors = {9};
  dense.operation = DenseOp{1, 3, 3};
  Layer layer;
  layer.name = "scores";
  layer.kind = LayerKind::kAttention;
  layer.operation = scores;
  workload.layers = {dense, layer, layer, layer};
  workload.layers[2].name = "softmax";
  workload.layers[2].kind = LayerKind::kActivation;
  workload.layers[2].operation = ActivationOp{Function::kSoftmax, 256, 64};
  workload.layers[3].name = "context";
  workload.layers[3].operation = BatchedProductOp{4, 64, 16, 64};
  workload.parameters = workload.trainable_parameters = 9;
  workload.gradient_bytes = Bytes(36.0);
  workload.attention = AttentionForm::kFused;
  ComputeProfile profile = OnDevice("gpu");
  for (const TrainingPass pass : {kForward, kBackward}) {
    Add(&profile, dense.operation, pass, 8, 1e-3);
    Add(&profile, scores, pass, 8, 1e-4);
  }
  Add(&profile, UpdateOp{Optimizer::kMomentum, 9}, kUpdate, 1, 3e-6);
  const ProfiledCompute compute = Compute(profile, workload);
  const ProfiledSum sum = compute.Sum(8);
  ASSERT_EQ(sum.layers.size(), 2U);
  const ProfiledLayer& fused = sum.layers[1];
  EXPECT_EQ(fused.name, "context (fused)");
  EXPECT_EQ(fused.kind, LayerKind::kAttention);
  EXPECT_EQ(fused.forward.origin, TimeOrigin::kScaled);
  EXPECT_EQ(fused.forward.relative, "attention");
  EXPECT_TRUE(Near(fused.forward.time.si(), 2 * 1e-4));
  EXPECT_TRUE(Near(fused.backward.time.si(), 2.5 * 1e-4));
  EXPECT_TRUE(Near(sum.host.si(), 4 * kGpuHostOverhead.si()));
  const std::vector<double> seconds = compute.BackwardSeconds(8);
  ASSERT_EQ(seconds.size(), 4U);
  EXPECT_EQ(seconds[1], 0);
  EXPECT_EQ(seconds[2], 0);
  EXPECT_TRUE(Near(seconds[3], 2.5 * 1e-4));
}

TEST(ProfiledCompute, SumsByHand) {
  const ProfiledCompute compute = Compute(SmallProfile("cpu"), Small());
  const ProfiledSum sum = compute.Sum(8);
  EXPECT_TRUE(Near(sum.forward.in(kMicroseconds), 35));
  EXPECT_TRUE(Near(sum.backward.in(kMicroseconds), 46));
  EXPECT_TRUE(Near(sum.update.in(kMicroseconds), 3));
  EXPECT_TRUE(Near(sum.host.in(kMicroseconds), 5 * 7)) << "three forward, two backward";
  EXPECT_TRUE(Near(sum.host_update.si(), 2 * kUpdateHostOverhead.si())) << "two tensors";
  EXPECT_EQ(sum.scaled, Duration<>());
  EXPECT_EQ(sum.beyond, Duration<>());
  EXPECT_FALSE(sum.flagged);
  EXPECT_FALSE(sum.out_of_memory);
  ASSERT_EQ(sum.layers.size(), 3U);
  EXPECT_EQ(sum.layers[0].name, "scale");
  EXPECT_EQ(sum.layers[0].backward.origin, TimeOrigin::kNone);
  EXPECT_EQ(sum.layers[0].backward.time, Duration<>());
  EXPECT_EQ(sum.layers[0].update.origin, TimeOrigin::kNone);
  EXPECT_EQ(sum.layers[1].backward.origin, TimeOrigin::kMeasured);
  EXPECT_EQ(sum.layers[1].update.origin, TimeOrigin::kMeasured);
  // Each is known to one per cent, and their errors are their own.
  const double squares = 10 * 10 + 20 * 20 + 5 * 5 + 40 * 40 + 6 * 6;
  EXPECT_TRUE(Near(sum.log_sd, 0.01 * std::sqrt(squares) / 81));
  EXPECT_TRUE(Near(compute.LogSd(8), std::hypot(sum.log_sd, kProfiledLogSd)));
  EXPECT_EQ(compute.batches(), (std::vector<double>{8, 16}));
}

// The dense layer and what follows are a block. Before it nothing is trained.
TEST(ProfiledCompute, ABlockThatIsRecomputedRunsForwardOnceMore) {
  Workload small = Small();
  small.recompute = Recompute::kFull;
  EXPECT_EQ(Compute(SmallProfile("cpu"), small).MicroStep(8),
            Compute(SmallProfile("cpu"), Small()).MicroStep(8))
      << "no blocks";
  for (Layer& layer : small.layers) layer.name = "h.0." + layer.name;
  const ProfiledCompute compute = Compute(SmallProfile("cpu"), small);
  const ProfiledSum sum = compute.Sum(8);
  EXPECT_TRUE(Near(sum.forward.in(kMicroseconds), 35));
  EXPECT_TRUE(Near(sum.backward.in(kMicroseconds), 46 + 25));
  EXPECT_TRUE(Near(sum.update.in(kMicroseconds), 3));
  EXPECT_TRUE(Near(sum.host.in(kMicroseconds), 7 * 7)) << "three forward, two backward, two again";
  EXPECT_TRUE(Near(compute.MicroStep(8).in(kMicroseconds), 7 * 7 + 106));
  EXPECT_TRUE(Near(compute.MicroStepOnce(8).in(kMicroseconds), 5 * 7 + 81));
  ASSERT_EQ(sum.layers.size(), 3U);
  EXPECT_EQ(sum.layers[0].backward.origin, TimeOrigin::kNone);
  EXPECT_TRUE(Near(sum.layers[1].backward.time.in(kMicroseconds), 60));
  EXPECT_EQ(sum.layers[1].backward.origin, TimeOrigin::kMeasured);
  EXPECT_TRUE(Near(sum.layers[1].backward.log_sd, 0.01 * std::hypot(20, 40) / 60));
  const std::vector<double> seconds = compute.BackwardSeconds(8);
  EXPECT_EQ(seconds[0], 0);
  EXPECT_TRUE(Near(seconds[1], 60e-6));
  EXPECT_TRUE(Near(seconds[2], 11e-6));
  // What is measured of a forward pass errs in both.
  const double squares = 10 * 10 + 40 * 40 + 10 * 10 + 40 * 40 + 6 * 6;
  EXPECT_TRUE(Near(sum.log_sd, 0.01 * std::sqrt(squares) / 106));
}

// Which passes of a layer were only measured while others used the device.
TEST(ProfiledCompute, WhatIsFlaggedIsSaidOfItsPass) {
  Workload small = Small();
  for (Layer& layer : small.layers) layer.name = "h.0." + layer.name;
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    small.recompute = recompute;
    for (const TrainingPass busy : {kForward, kBackward, kUpdate}) {
      ComputeProfile profile = SmallProfile("cpu");
      for (MeasuredSamples& samples : profile.samples) {
        const bool is_dense = samples.point.operation == small.layers[1].operation;
        samples.busy = samples.point.pass == busy && (is_dense || busy == kUpdate);
      }
      const ProfiledSum sum = Compute(profile, small).Sum(8);
      EXPECT_TRUE(sum.flagged);
      const ProfiledLayer& dense = sum.layers[1];
      EXPECT_EQ(dense.forward.flagged, busy == kForward);
      EXPECT_EQ(dense.backward.flagged,
                busy == kBackward || (busy == kForward && recompute == Recompute::kFull));
      EXPECT_EQ(dense.update.flagged, busy == kUpdate);
      EXPECT_FALSE(sum.layers[2].forward.flagged || sum.layers[2].backward.flagged);
    }
  }
}

// A pass that is scaled from another is known to a factor of 1.5, which layers share.
TEST(ProfiledCompute, ARecomputedPassIsAsUncertainAsItsParts) {
  Workload small = Small();
  small.recompute = Recompute::kFull;
  for (Layer& layer : small.layers) layer.name = "h.0." + layer.name;
  ComputeProfile profile = SmallProfile("cpu");
  const auto is_of_dense = [&](const MeasuredSamples& samples) {
    return samples.point.operation == small.layers[1].operation && samples.point.pass == kForward;
  };
  std::erase_if(profile.samples, is_of_dense);
  for (const double batch : {8.0, 16.0}) {
    Add(&profile, DenseOp{1, 3, 8, true, false}, kForward, batch, 20e-6 * batch / 8);
  }
  const ProfiledSum sum = Compute(profile, small).Sum(8);
  const ProfiledLayer& dense = sum.layers[1];
  ASSERT_EQ(dense.forward.origin, TimeOrigin::kScaled);
  EXPECT_EQ(dense.backward.origin, TimeOrigin::kScaled);
  EXPECT_EQ(dense.backward.relative, dense.forward.relative);
  const double share = dense.forward.time / dense.backward.time;
  EXPECT_TRUE(Near(dense.backward.shared_log_sd, share * dense.forward.shared_log_sd));
  EXPECT_GT(dense.backward.log_sd, dense.backward.shared_log_sd);
  EXPECT_TRUE(Near(sum.scaled.si(), 2 * dense.forward.time.si()));
}

// A CPU starts and computes in turn, a GPU beside each other.
TEST(ProfiledCompute, TheHostAddsOrRunsAhead) {
  const ProfiledCompute cpu = Compute(SmallProfile("cpu"), Small());
  const ProfiledCompute gpu = Compute(SmallProfile("gpu"), Small());
  EXPECT_FALSE(cpu.runs_ahead());
  EXPECT_TRUE(gpu.runs_ahead());
  EXPECT_TRUE(Near(cpu.MicroStep(8).in(kMicroseconds), 5 * 7 + 81));
  EXPECT_TRUE(Near(gpu.MicroStep(8).in(kMicroseconds),
                   std::pow(std::pow(5 * 80.0, 4) + std::pow(81.0, 4), 0.25)));
  EXPECT_TRUE(Near(cpu.Update().in(kMicroseconds), 3 + 2 * kUpdateHostOverhead.in(kMicroseconds)));
  EXPECT_TRUE(Near(gpu.Update().in(kMicroseconds), 3));
}

// A library's bare calls and a framework's kernels say the same of the host of a GPU: nothing.
TEST(ProfiledCompute, TheHostIsThatOfTheDevicesKind) {
  const auto overhead = [](const char* kind, const char* backend) {
    ComputeProfile profile = SmallProfile(kind);
    profile.backend = backend;
    EXPECT_TRUE(Near(Compute(profile, Small()).Host().si(), 5 * HostOverhead(profile).si()));
    return HostOverhead(profile).in(kMicroseconds);
  };
  EXPECT_DOUBLE_EQ(overhead("gpu", kCudaBackend), 80);
  EXPECT_DOUBLE_EQ(overhead("gpu", kKinetoBackend), 80);
  EXPECT_DOUBLE_EQ(overhead("cpu", kKinetoBackend), 7);
  EXPECT_DOUBLE_EQ(overhead("cpu", kOneDnnBackend), 20);
}

// A host that maps memory at 1 ns a byte: nothing up to what its allocator keeps, then gradients
// and a share of what the layers write.
TEST(ProfiledCompute, AllocationIsOfWhatTheAllocatorGivesBack) {
  const Workload network = *FindWorkload("resnet18");
  ComputeProfile profile = Measured(network, {2, 8}, "cpu");
  const ProfiledCompute without = Compute(profile, network);
  EXPECT_EQ(without.Sum(8).allocation, Duration<>());
  constexpr std::int64_t kElements = 1 << 20;
  Add(&profile, AllocateOp{kElements}, kForward, 1, 4e-9 * static_cast<double>(kElements));
  const ProfiledCompute with = Compute(profile, network);
  for (const double batch : {2.0, 5.0, 8.0, 64.0}) {
    const double bytes = 4.0 * static_cast<double>(network.trainable_parameters) +
                         0.1 * 2 * batch * network.activation_bytes().si() - 16 * 1048576;
    ASSERT_GT(bytes, 0);
    EXPECT_TRUE(Near(with.Sum(batch).allocation.si(), 1e-9 * bytes)) << batch;
    EXPECT_TRUE(Near(with.MicroStep(batch).si(), without.MicroStep(batch).si() + 1e-9 * bytes));
    EXPECT_TRUE(Near(with.Curve().Time(Samples(batch)).si() * with.ShapeAt(batch),
                     with.MicroStep(batch).si(), 1e-9));
  }
  // What is recomputed is written once more: of ResNet-18 all blocks.
  Workload recomputed = network;
  recomputed.recompute = Recompute::kFull;
  double again = 0;
  for (const Layer& layer : network.layers) {
    if (layer.name.starts_with("layer")) again += layer.activation_bytes.si();
  }
  EXPECT_GT(again, 0);
  EXPECT_TRUE(Near((Compute(profile, recomputed).Sum(8).allocation - with.Sum(8).allocation).si(),
                   1e-9 * 0.1 * 8 * again));
  EXPECT_TRUE(Near(Compute(profile, recomputed).MicroStepOnce(8).si(), with.MicroStep(8).si()));
  EXPECT_EQ(with.MicroStepOnce(8), with.MicroStep(8));
  // A small network stays within what the allocator keeps; a copy is not scaled from it.
  const Workload small = *FindWorkload("mlp_mnist");
  ComputeProfile of_small = Measured(small, {2, 8}, "cpu");
  Add(&of_small, AllocateOp{kElements}, kForward, 1, 1e-3);
  EXPECT_EQ(Compute(of_small, small).Sum(8).allocation, Duration<>());
  EXPECT_FALSE(TimeIn(OperationTimes(of_small, Precision::kFp32), CopyOp{100}, kForward, 8));
}

// Each optimizer has updates of its own, of all tensors of a layer.
TEST(ProfiledCompute, UpdatesByOptimizer) {
  ComputeProfile profile = SmallProfile("cpu");
  Add(&profile, UpdateOp{Optimizer::kSgd, 16}, kUpdate, 1, 1e-6);
  Add(&profile, UpdateOp{Optimizer::kAdam, 16}, kUpdate, 1, 8e-6);
  const double device[] = {1, 3, 8};
  for (int i = 0; i < kOptimizerCount; ++i) {
    const ProfiledSum sum = Compute(profile, Small(), static_cast<Optimizer>(i)).Sum(8);
    EXPECT_TRUE(Near(sum.update.in(kMicroseconds), device[i])) << kOptimizerNames[i];
    EXPECT_TRUE(Near(sum.layers[1].update.time.in(kMicroseconds), device[i]));
    EXPECT_EQ(sum.layers[2].update.time, Duration<>());
  }
}

TEST(ProfiledCompute, BackwardSecondsAreInForwardOrder) {
  const std::vector<double> seconds = Compute(SmallProfile("gpu"), Small()).BackwardSeconds(16);
  ASSERT_EQ(seconds.size(), 3U);
  EXPECT_EQ(seconds[0], 0);
  EXPECT_TRUE(Near(seconds[1], 80e-6));
  EXPECT_TRUE(Near(seconds[2], 12e-6));
}

// What reads the input and has no parameters need not have been measured backward.
TEST(ProfiledCompute, NothingIsAskedForBeforeTheFirstParameters) {
  ComputeProfile profile = SmallProfile("cpu");
  const Operation scale = Small().layers[0].operation;
  std::erase_if(profile.samples, [&](const MeasuredSamples& samples) {
    return samples.point.operation == scale && samples.point.pass == kBackward;
  });
  EXPECT_TRUE(Near(Compute(profile, Small()).MicroStep(8).si(),
                   Compute(SmallProfile("cpu"), Small()).MicroStep(8).si()));
}

// ---- Layers without an operation.

// Alone they are scaled by kind, FLOP and bytes: the same counts, the same time.
TEST(ProfiledCompute, AnUnstatedLayerIsScaledByItsKind) {
  Workload workload = Small();
  workload.layers[2].operation = {};
  const ProfiledSum sum = Compute(SmallProfile("cpu"), workload).Sum(8);
  // Four elements read and four written, a FLOP each, as the activation that was measured.
  EXPECT_TRUE(Near(sum.layers[2].forward.time.in(kMicroseconds), 5));
  EXPECT_EQ(sum.layers[2].forward.origin, TimeOrigin::kScaled);
  EXPECT_EQ(sum.layers[2].forward.relative, "activation");
  EXPECT_EQ(sum.scaled, sum.layers[2].forward.time + sum.layers[2].backward.time);
  EXPECT_GT(sum.log_sd, 0.01);

  workload.layers[2].forward_flop = Flop(12.0);
  workload.layers[1].activation_bytes = Bytes(48.0);
  workload.layers[2].activation_bytes = Bytes(48.0);
  EXPECT_TRUE(Near(
      Compute(SmallProfile("cpu"), workload).Sum(8).layers[2].forward.time.in(kMicroseconds), 15))
      << "three times the work and the bytes";
}

TEST(ProfiledCompute, AnUnstatedLayerOfAnUnmeasuredKindIsRefused) {
  Workload workload = Small();
  workload.layers[2].operation = {};
  workload.layers[2].kind = LayerKind::kPooling;
  const std::optional<InputError> error = ErrorOf([&] { Compute(SmallProfile("cpu"), workload); });
  EXPECT_TRUE(Says(
      error, "'small: relu' is a layer of a kind whose forward pass was not measured, pooling"));
  EXPECT_TRUE(Says(error, "allowed: a profile of this workload"));
}

// ---- Refusals.

TEST(ProfiledCompute, AKindThatWasNotMeasuredIsNamed) {
  ComputeProfile profile = SmallProfile("cpu");
  const Operation relu = Small().layers[2].operation;
  std::erase_if(profile.samples,
                [&](const MeasuredSamples& samples) { return samples.point.operation == relu; });
  EXPECT_TRUE(
      Says(ErrorOf([&] { Compute(profile, Small()); }),
           "'small: relu' is a layer of a kind whose forward pass was not measured, activation"));
  EXPECT_TRUE(Says(ErrorOf([&] { Compute(profile, Small()); }), "at precision fp32"));
}

TEST(ProfiledCompute, APrecisionThatWasNotMeasuredIsNamed) {
  Workload half = Small();
  half.precision = Precision::kBf16;
  EXPECT_TRUE(Says(ErrorOf([&] { Compute(SmallProfile("cpu"), half); }),
                   "precision: 'bf16' was not measured on ideal"));
  EXPECT_TRUE(Says(ErrorOf([] { Compute(OnDevice("gpu"), Small()); }), "'fp32' was not measured"));
  // Allowed is at what layers were measured: not what the device cannot, nor allocations alone.
  ComputeProfile profile = SmallProfile("cpu");
  Add(&profile, AllocateOp{16}, kForward, 1, 1e-3, Precision::kFp16);
  MeasuredSamples unsupported;
  unsupported.point = {Small().layers[1].operation, 8, Precision::kBf16, kForward};
  unsupported.status = PointStatus::kUnsupported;
  profile.samples.push_back(unsupported);
  const auto allowed = [&] {
    const std::optional<InputError> error = ErrorOf([&] { Compute(profile, half); });
    return error ? error->allowed() : "";
  };
  EXPECT_EQ(allowed(), "fp32");
  Add(&profile, Small().layers[1].operation, kForward, 8, 1e-3, Precision::kFp16);
  EXPECT_EQ(allowed(), "fp32, fp16");
}

TEST(ProfiledCompute, AnOptimizerThatWasNotMeasuredIsNamed) {
  EXPECT_TRUE(
      Says(ErrorOf([] { Compute(SmallProfile("cpu"), Small(), Optimizer::kAdam); }),
           "optimizer: 'adam' has no update in the profile; allowed: an optimizer that was"));
  ComputeProfile profile = SmallProfile("cpu");
  profile.samples.pop_back();
  EXPECT_TRUE(Says(ErrorOf([&] { Compute(profile, Small()); }),
                   "optimizer: 'momentum' has no update in the profile"));
}

TEST(ProfiledCompute, AWorkloadWithoutLayersIsRefused) {
  Workload workload;
  workload.name = "mine";
  EXPECT_TRUE(Says(ErrorOf([&] { Compute(SmallProfile("cpu"), workload); }),
                   "workload: 'mine' has no layers to look up in a profile"));
}

// ---- What a reader must know.

TEST(ProfiledCompute, PartsOfOtherOriginsAreSummed) {
  const ProfiledCompute compute = Compute(SmallProfile("cpu"), Small());
  const ProfiledSum beyond = compute.Sum(64);
  EXPECT_TRUE(Near(beyond.beyond.si(), (beyond.forward + beyond.backward).si()));
  EXPECT_TRUE(Near(beyond.forward.in(kMicroseconds), 35 * 8));
  EXPECT_EQ(compute.Sum(12).beyond, Duration<>());
  EXPECT_EQ(compute.Sum(12).scaled, Duration<>());
}

TEST(ProfiledCompute, FlagsAndMemory) {
  ComputeProfile profile = SmallProfile("cpu");
  MeasuredSamples failed;
  failed.point = {Small().layers[1].operation, 32, Precision::kFp32, kForward};
  failed.status = PointStatus::kOutOfMemory;
  profile.samples.push_back(failed);
  const ProfiledCompute compute = Compute(profile, Small());
  EXPECT_FALSE(compute.Sum(16).out_of_memory);
  EXPECT_TRUE(compute.Sum(32).out_of_memory);
  EXPECT_FALSE(compute.Sum(16).flagged);
  for (MeasuredSamples& samples : profile.samples) {
    samples.busy = std::holds_alternative<UpdateOp>(samples.point.operation);
  }
  EXPECT_TRUE(Compute(profile, Small()).Sum(16).flagged) << "an update is measured too";
}

TEST(ProfiledCompute, KnownLessBeyondTheBatches) {
  const ProfiledCompute compute = Compute(SmallProfile("cpu"), Small());
  EXPECT_EQ(compute.ExtraLogSd(16), 0);
  EXPECT_EQ(compute.ExtraLogSd(8), 0);
  double sd = compute.LogSd(16);
  double extra = 0;
  for (const double batch : {32.0, 64.0, 256.0}) {
    EXPECT_GT(compute.LogSd(batch), sd) << batch;
    EXPECT_GT(compute.ExtraLogSd(batch), extra) << batch;
    sd = compute.LogSd(batch);
    extra = compute.ExtraLogSd(batch);
    EXPECT_TRUE(Near(std::hypot(extra, compute.LogSd(16)), sd));
  }
  EXPECT_GT(compute.LogSd(2), compute.LogSd(8));
  EXPECT_GT(compute.ExtraLogSd(1), 0);
}

// ---- Networks of the catalogue.

// The sum of what the device needs for each layer, and nothing else.
TEST(ProfiledCompute, MeasuredBatchesAreTheSumOfTheLayers) {
  const IdealDevice device;
  for (const std::string name :
       {"resnet50", "bert_base", "mobilenet_v2", "deepspeech2", "ncf", "efficientnet_b0", "gpt2"}) {
    const Workload workload = *FindWorkload(name);
    const ProfiledCompute compute = Compute(Measured(workload, {2, 16}), workload);
    for (const double batch : {2.0, 16.0}) {
      double forward = 0;
      double backward = 0;
      double starts = 0;
      bool trained = false;
      for (const Layer& layer : workload.layers) {
        trained = trained || !layer.tensors.empty();
        forward += device.Seconds(layer.operation, kForward, batch);
        if (trained) backward += device.Seconds(layer.operation, kBackward, batch);
        starts += trained ? 2 : 1;
      }
      // One update of all parameters, scaled from those of the layers.
      const UpdateOp all{Optimizer::kMomentum, workload.trainable_parameters};
      const auto update =
          TimeIn(OperationTimes(Measured(workload, {2, 16}), Precision::kFp32), all, kUpdate, 1);
      ASSERT_TRUE(update);
      const ProfiledSum sum = compute.Sum(batch);
      EXPECT_TRUE(Near(sum.forward.si(), forward, 1e-9)) << name;
      EXPECT_TRUE(Near(sum.backward.si(), backward, 1e-9)) << name;
      EXPECT_TRUE(Near(sum.update.si(), update->time.si(), 1e-9)) << name;
      EXPECT_TRUE(Near(sum.host.si(), starts * kGpuHostOverhead.si(), 1e-9)) << name;
      EXPECT_EQ(sum.scaled, Duration<>()) << name;
      Duration<> layers;
      for (const ProfiledLayer& layer : sum.layers) {
        EXPECT_NE(layer.forward.origin, TimeOrigin::kNone) << name;
        layers += layer.forward.time + layer.backward.time;
      }
      EXPECT_TRUE(Near(layers.si(), (sum.forward + sum.backward).si(), 1e-9)) << name;
    }
  }
}

// Three batches tell a fourth, between and beyond them.
TEST(ProfiledCompute, ThreeBatchesTellAFourth) {
  const IdealDevice device;
  for (const std::string name : {"resnet50", "vgg16", "bert_base", "mobilenet_v2"}) {
    const Workload workload = *FindWorkload(name);
    const ProfiledCompute three = Compute(Measured(workload, {4, 16, 64}), workload);
    const ProfiledCompute all = Compute(Measured(workload, {2, 4, 8, 16, 32, 64, 128}), workload);
    for (const double batch : {2.0, 8.0, 32.0, 128.0}) {
      EXPECT_NEAR(three.MicroStep(batch) / all.MicroStep(batch), 1, 0.05) << name << " " << batch;
    }
  }
}

// A network that was never measured is met by the layers of others, within what its error says.
TEST(ProfiledCompute, LayersOfOthersTellANetwork) {
  const Workload known = *FindWorkload("resnet50");
  const Workload unknown = *FindWorkload("resnet101");
  const ProfiledCompute truth = Compute(Measured(unknown, {16}), unknown);
  const ProfiledCompute scaled = Compute(Measured(known, {16}), unknown);
  EXPECT_NEAR(scaled.MicroStep(16) / truth.MicroStep(16), 1, 0.05);
  const Workload vgg = *FindWorkload("vgg16");
  const ProfiledSum sum = Compute(Measured(known, {16}), vgg).Sum(16);
  EXPECT_GT(sum.scaled, (sum.forward + sum.backward) * 0.5);
  const ProfiledSum right = Compute(Measured(vgg, {16}), vgg).Sum(16);
  EXPECT_LT(std::abs(std::log((sum.forward + sum.backward) / (right.forward + right.backward))),
            2 * kScaledLogSd);
  EXPECT_GT(sum.log_sd, right.log_sd);
}

// What is scaled is the passes of layers that are, and no update, of a device that updates layer by
// layer.
TEST(ProfiledCompute, WhatIsScaledIsOfForwardAndBackwardPasses) {
  const Workload known = *FindWorkload("resnet50");
  for (const char* name : {"vgg16", "resnet101"}) {
    const ProfiledSum sum = Compute(Measured(known, {8, 16}, "cpu"), *FindWorkload(name)).Sum(16);
    Duration<> scaled;
    Duration<> of_updates;
    for (const ProfiledLayer& layer : sum.layers) {
      for (const OperationTime* pass : {&layer.forward, &layer.backward}) {
        if (pass->origin == TimeOrigin::kScaled) scaled += pass->time;
      }
      if (layer.update.origin == TimeOrigin::kScaled) of_updates += layer.update.time;
    }
    EXPECT_TRUE(Near(sum.scaled.si(), scaled.si())) << name;
    if (name == std::string("vgg16")) {
      EXPECT_GT(of_updates.si(), 0);
    }
  }
}

TEST(ProfiledCompute, CurveTimesShapeIsTheMicroStep) {
  const Workload workload = *FindWorkload("resnet18");
  for (const char* kind : {"cpu", "gpu"}) {
    const ProfiledCompute compute = Compute(Measured(workload, {1, 8, 64}, kind), workload);
    const FittedCurve<double> curve = compute.Curve();
    EXPECT_GT(curve.fixed.si(), 0);
    EXPECT_GT(curve.floor.si(), 0);
    EXPECT_GT(curve.per_sample.si(), 0);
    for (const double batch : {0.5, 1.0, 3.0, 8.0, 20.0, 64.0, 100.0, 5000.0}) {
      EXPECT_TRUE(Near(curve.Time(Samples(batch)).si() * compute.ShapeAt(batch),
                       compute.MicroStep(batch).si()))
          << kind << " " << batch;
    }
    // As near as a fixed part and a slope come to the measured batches.
    double squares = 0;
    for (const double batch : compute.batches())
      squares += std::pow(std::log(compute.ShapeAt(batch)), 2);
    EXPECT_TRUE(Near(compute.CurveMisfit(), std::sqrt(squares / 3)));
    EXPECT_LT(compute.CurveMisfit(), 0.2) << kind;
  }
}

// What was scaled from one relative errs together: many layers do not make it certain.
TEST(ProfiledCompute, ScaledLayersErrTogether) {
  const Workload known = *FindWorkload("resnet18");
  const ProfiledCompute compute = Compute(Measured(known, {8, 16}), *FindWorkload("resnet152"));
  const ProfiledSum sum = compute.Sum(8);
  const double share = sum.scaled / (sum.forward + sum.backward);
  EXPECT_GT(share, 0.5);
  EXPECT_NEAR(sum.log_sd, share * kScaledLogSd, 0.1 * kScaledLogSd);
  // So do lines that go on beyond the batches.
  const ProfiledCompute own = Compute(Measured(known, {8, 16}), known);
  EXPECT_NEAR(own.Sum(64).log_sd, 2 * kBeyondLogSd, 0.005);
}

// Its own batches, not those of other workloads in the same profile.
TEST(ProfiledCompute, BatchesAreThoseOfItsOwnLayers) {
  const Workload own = *FindWorkload("resnet18");
  ComputeProfile profile = Measured(own, {2, 4});
  const ComputeProfile others = Measured(*FindWorkload("mlp_mnist"), {2, 16, 64});
  profile.samples.insert(profile.samples.end(), others.samples.begin(), others.samples.end());
  EXPECT_EQ(Compute(profile, own).batches(), (std::vector<double>{2, 4}));
}

// Half of the layers that the best batch has are enough for another, and fewer are not.
TEST(ProfiledCompute, ABatchNeedsHalfOfTheLayers) {
  Workload workload = Small();
  Layer more = workload.layers.back();
  more.name = "sigmoid";
  more.operation = ActivationOp{Function::kSigmoid, 1, 4};
  workload.layers.push_back(more);
  for (const std::size_t measured : {1, 2, 3}) {
    ComputeProfile profile = Measured(workload, {8});
    for (std::size_t i = 0; i < measured; ++i) {
      for (const TrainingPass pass : {kForward, kBackward}) {
        Add(&profile, workload.layers[i].operation, pass, 16, 1e-4);
      }
    }
    EXPECT_EQ(Compute(profile, workload).batches(),
              measured < 2 ? std::vector<double>{8} : (std::vector<double>{8, 16}))
        << measured;
  }
}

// What no batch changes is the host's part, hardly known, and the device's, which is measured.
TEST(ProfiledCompute, BothPartsOfTheFixedTimeAreDoubtedByThemselves) {
  const Workload workload = *FindWorkload("resnet18");
  for (const char* kind : {"cpu", "gpu"}) {
    const ProfiledCompute compute = Compute(Measured(workload, {8, 16, 32}, kind), workload);
    const WorkloadPriors priors = MakeWorkloadPriors(workload, std::nullopt, &compute);
    const Prior prior = priors[kFixedTime];
    // Optimizers fuse their passes or do not, beside what is not known of the samples.
    EXPECT_NEAR(priors[kUpdateTime].log_sd, std::hypot(compute.LogSd(32), 0.2), 1e-12) << kind;
    const FittedCurve<double> curve = compute.Curve();
    EXPECT_EQ(prior.si, curve.fixed.si());
    const bool runs_ahead = kind == std::string("gpu");
    const double host = runs_ahead ? 0 : compute.Host() / curve.fixed;
    if (!runs_ahead) {
      EXPECT_GT(host, 0.3);
      EXPECT_LT(host, 1);
    }
    EXPECT_NEAR(prior.log_sd, std::hypot(0.5 * host, compute.LogSd(32) * (1 - host)), 1e-12)
        << kind;
  }
}

TEST(ProfiledCompute, BackwardSecondsSumToTheBackwardPass) {
  const Workload workload = *FindWorkload("efficientnet_b0");
  const ProfiledCompute compute = Compute(Measured(workload, {8, 32}), workload);
  const std::vector<double> seconds = compute.BackwardSeconds(32);
  ASSERT_EQ(seconds.size(), workload.layers.size());
  double sum = 0;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    sum += seconds[i];
    if (workload.layers[i].tensors.empty()) continue;
    EXPECT_GT(seconds[i], 0) << workload.layers[i].name;
  }
  EXPECT_TRUE(Near(sum, compute.Sum(32).backward.si(), 1e-9));
  EXPECT_EQ(seconds.front(), 0) << "the input is normalised, and nothing behind it is trained";
}

void RequireNeverFalls(const ProfiledCompute& compute) {
  double last = 0;
  for (double batch = 1; batch < 3000; batch *= 1.3) {
    const double seconds = compute.MicroStep(batch).si();
    RC_ASSERT(std::isfinite(seconds));
    RC_ASSERT(seconds >= last * (1 - 1e-12));
    RC_ASSERT(compute.ShapeAt(batch) > 0);
    RC_ASSERT(std::isfinite(compute.LogSd(batch)));
    last = seconds;
  }
}

std::vector<double> AnyBatches() {
  std::vector<double> batches;
  double batch = 0;
  for (int i = *Whole(1, 4); i > 0; --i) batches.push_back(batch += *Whole(1, 50));
  return batches;
}

IdealDevice AnyDevice() {
  return {*LogUniform(1e10, 1e15), *LogUniform(1e9, 1e12), *LogUniform(1e-7, 1e-4)};
}

RC_GTEST_PROP(ProfiledComputeProperty, NeverFallsWithTheBatch, ()) {
  static const Workload workload = *FindWorkload("alexnet");
  const IdealDevice device = AnyDevice();
  const std::string kind = *Whole(0, 1) == 0 ? "cpu" : "gpu";
  const ComputeProfile profile =
      Measured(workload, AnyBatches(), kind, device, [] { return *LogUniform(0.7, 1.4); });
  RequireNeverFalls(Compute(profile, workload));
}

// Also where its layers are those of another network.
RC_GTEST_PROP(ProfiledComputeProperty, NeverFallsWithTheBatchOnLayersOfOthers, ()) {
  static const Workload known = *FindWorkload("alexnet");
  static const Workload workload = *FindWorkload("vgg16");
  const ComputeProfile profile = Measured(known, AnyBatches(), "gpu", AnyDevice());
  RequireNeverFalls(Compute(profile, workload));
}

}  // namespace
}  // namespace stepcast
