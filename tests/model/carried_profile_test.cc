// A profile of one GPU as that of another.
#include "model/compute/carried_profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>

#include "data/workloads/catalog.h"
#include "model/compute/operation_curve.h"
#include "model/compute/profiled_compute.h"

namespace stepcast {
namespace {

Device Gpu(const char* name, double teraflop, double gigabytes, int multiprocessors) {
  Device device;
  device.name = name;
  device.fp32 = TeraflopPerSecond(teraflop);
  device.memory_bandwidth = GigabytesPerSecond(gigabytes);
  device.multiprocessors = multiprocessors;
  return device;
}

double Expected(const Device& device, const MeasuredPoint& point) {
  const OperationCurve<double> curve(SheetOf(device, point.precision).value(), LearntCurve(), 0.0);
  return curve.Time(point.operation, point.pass, point.batch);
}

// A device that takes twice as long as the curve expects, for all layers of a network.
ComputeProfile Measured(const Device& device, const Workload& workload) {
  ComputeProfile profile;
  profile.device.name = device.name;
  profile.device.kind = "gpu";
  profile.backend = kCudaBackend;
  const auto add = [&](const Operation& operation, int batch, TrainingPass pass) {
    MeasuredSamples samples;
    samples.point = {operation, batch, Precision::kFp32, pass};
    const double seconds = 2 * Expected(device, samples.point);
    if (seconds == 0) return;
    samples.seconds = {seconds, seconds, seconds};
    profile.samples.push_back(samples);
  };
  for (const Layer& layer : workload.layers) {
    for (const int batch : {8, 32}) {
      add(layer.operation, batch, TrainingPass::kForward);
      add(layer.operation, batch, TrainingPass::kBackward);
    }
  }
  add(UpdateOp{Optimizer::kMomentum, workload.trainable_parameters}, 1, TrainingPass::kUpdate);
  return profile;
}

// What the curve misses alike on both cancels: the other device is twice as slow as its curve, too.
TEST(CarriedProfile, IsTheRatioOfTheCurveForEachOperation) {
  const Workload resnet = *FindWorkload("resnet18");
  const Device v100 = Gpu("v100", 15.7, 900, 80);
  const Device t4 = Gpu("t4", 8.1, 320, 40);
  const ComputeProfile there = Measured(v100, resnet);
  ASSERT_TRUE(CanCarryOver(there, v100, t4));
  const ComputeProfile here = CarryOver(there, v100, t4);
  EXPECT_EQ(here.device.name, "t4");
  EXPECT_EQ(here.carried_from, "v100");
  ASSERT_EQ(here.samples.size(), there.samples.size());
  for (const MeasuredSamples& samples : here.samples) {
    EXPECT_NEAR(samples.seconds.at(0) / (2 * Expected(t4, samples.point)), 1, 1e-12);
  }
  const ComputeProfile back = CarryOver(here, t4, v100);
  for (std::size_t i = 0; i < back.samples.size(); ++i) {
    EXPECT_NEAR(back.samples[i].seconds[0] / there.samples[i].seconds[0], 1, 1e-12);
  }
}

// The interval of a step is at least as wide as devices differ.
TEST(CarriedProfile, IsLessSureThanOneThatWasMeasured) {
  const Workload resnet = *FindWorkload("resnet18");
  const Device v100 = Gpu("v100", 15.7, 900, 80);
  const Device t4 = Gpu("t4", 8.1, 320, 40);
  const ComputeProfile there = Measured(v100, resnet);
  const ProfiledCompute measured(there, resnet);
  const ProfiledCompute carried(CarryOver(there, v100, t4), resnet);
  EXPECT_TRUE(measured.carried_from().empty());
  EXPECT_EQ(carried.carried_from(), "v100");
  EXPECT_GT(carried.MicroStep(32), measured.MicroStep(32));
  EXPECT_NEAR(std::hypot(measured.LogSd(32), kCarriedLogSd), carried.LogSd(32), 1e-4)
      << "but for the shares of layers";
}

// What did not fit there says nothing of what fits here, nor do pages that the host maps.
TEST(CarriedProfile, LeavesOutWhatIsOfTheOtherMachine) {
  const Workload resnet = *FindWorkload("resnet18");
  const Device v100 = Gpu("v100", 15.7, 900, 80);
  const Device t4 = Gpu("t4", 8.1, 320, 40);
  ComputeProfile profile = Measured(v100, resnet);
  const std::size_t measured = profile.samples.size();
  MeasuredSamples too_large = profile.samples.front();
  too_large.status = PointStatus::kOutOfMemory;
  too_large.seconds.clear();
  profile.samples.push_back(too_large);
  MeasuredSamples pages = profile.samples.front();
  pages.point.operation = AllocateOp{1000};
  profile.samples.push_back(pages);
  EXPECT_EQ(CarryOver(profile, v100, t4).samples.size(), measured);
}

// Each operation goes by the peak of its own precision; clocks and reference work stay behind.
TEST(CarriedProfile, GoesByThePrecisionOfEachOperation) {
  Device v100 = Gpu("v100", 15.7, 900, 80);
  Device t4 = Gpu("t4", 8.1, 320, 40);
  v100.fp16 = TeraflopPerSecond(125.0);
  t4.fp16 = TeraflopPerSecond(30.0);
  ComputeProfile profile;
  profile.device.kind = "gpu";
  profile.device.facts["clock"] = "1380 MHz";
  MeasuredSamples samples;
  samples.point = {DenseOp{512, 4096, 4096}, 64, Precision::kFp16, TrainingPass::kForward};
  samples.seconds = {1e-3};
  samples.reference_s = 1e-3;
  profile.samples = {samples};
  const ComputeProfile carried = CarryOver(profile, v100, t4);
  const double ratio = Expected(t4, samples.point) / Expected(v100, samples.point);
  EXPECT_GT(ratio, 2.5);
  EXPECT_NEAR(carried.samples.at(0).seconds.at(0), 1e-3 * ratio, 1e-15);
  EXPECT_EQ(carried.samples[0].reference_s, 0);
  EXPECT_TRUE(carried.device.facts.empty());
}

TEST(CarriedProfile, NeedsTwoGpusWithDataSheets) {
  const Device v100 = Gpu("v100", 15.7, 900, 80);
  const Device t4 = Gpu("t4", 8.1, 320, 40);
  ComputeProfile profile;
  profile.device.kind = "gpu";
  EXPECT_TRUE(CanCarryOver(profile, v100, t4));
  Device silent = t4;
  silent.multiprocessors.reset();
  EXPECT_FALSE(CanCarryOver(profile, v100, silent));
  EXPECT_FALSE(CanCarryOver(profile, silent, v100));
  silent = t4;
  silent.memory_bandwidth.reset();
  EXPECT_FALSE(CanCarryOver(profile, v100, silent));
  profile.device.kind = "cpu";
  EXPECT_FALSE(CanCarryOver(profile, v100, t4));
}

}  // namespace
}  // namespace stepcast
