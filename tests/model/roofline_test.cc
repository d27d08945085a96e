// The roofline of two layers by hand, and its promises for the networks of the catalogue.
#include "model/compute/roofline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "data/workloads/catalog.h"
#include "model/compute/fitted_curve.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

Device MakeDevice(double teraflop, double gigabytes) {
  Device device;
  device.fp32 = TeraflopPerSecond(teraflop);
  device.memory_bandwidth = GigabytesPerSecond(gigabytes);
  return device;
}

// A dense layer of 1000 weights, then an activation.
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
  return workload;
}

// 1 TFLOP/s and 1 GB/s. Dense, 2 samples: 4 us of work against 8000 + 4000 bytes, 12 us; backward 8
// against 24 us. Activation: 16000 bytes, 16 us, both ways. Update: 5 x 4000 bytes.
TEST(Roofline, MemoryBoundByHand) {
  const RooflineTime time = EvaluateRoofline(TwoLayers(), MakeDevice(1, 1), 2);
  EXPECT_DOUBLE_EQ(time.forward.in(kMicroseconds), 12 + 16);
  EXPECT_DOUBLE_EQ(time.backward.in(kMicroseconds), 24 + 16);
  EXPECT_DOUBLE_EQ(time.update.in(kMicroseconds), 20);
  EXPECT_DOUBLE_EQ(time.launches.in(kMicroseconds), 4 * 5 + 2 * 5);
}

// A thousand times the bandwidth: the dense layer's work binds, 4 and 8 us; the activation has 2 ns
// of work and 16 ns of bytes.
TEST(Roofline, ComputeBoundByHand) {
  const RooflineTime time = EvaluateRoofline(TwoLayers(), MakeDevice(1, 1000), 2);
  EXPECT_DOUBLE_EQ(time.forward.in(kMicroseconds), 4 + 0.016);
  EXPECT_DOUBLE_EQ(time.backward.in(kMicroseconds), 8 + 0.016);
}

TEST(Roofline, NeedsWorkAndADataSheet) {
  const Device device = MakeDevice(8.1, 320);
  EXPECT_TRUE(HasRoofline(TwoLayers(), device));
  EXPECT_FALSE(HasRoofline(TwoLayers(), std::nullopt));
  EXPECT_FALSE(HasRoofline(Workload(), device));
  Device no_peak = device;
  no_peak.fp32.reset();
  EXPECT_FALSE(HasRoofline(TwoLayers(), no_peak));
  Device no_memory = device;
  no_memory.memory_bandwidth.reset();
  EXPECT_FALSE(HasRoofline(TwoLayers(), no_memory));
  Workload no_work = TwoLayers();
  for (Layer& layer : no_work.layers) layer.forward_flop = Work<>();
  EXPECT_FALSE(HasRoofline(no_work, device));
}

double Total(const RooflineTime& time) {
  return (time.forward + time.backward + time.update + time.launches).si();
}

RC_GTEST_PROP(RooflineProperty, NeverFallsWithTheBatchNorRisesWithTheDevice, ()) {
  static const Workload resnet = *FindWorkload("resnet50");
  static const Workload bert = *FindWorkload("bert_base");
  const double teraflop = *LogUniform(0.1, 1000);
  const double gigabytes = *LogUniform(10, 10000);
  const double batch = *Whole(1, 512);
  const double factor = *LogUniform(1, 10);
  for (const Workload* workload : {&resnet, &bert}) {
    const Device device = MakeDevice(teraflop, gigabytes);
    const double time = Total(EvaluateRoofline(*workload, device, batch));
    RC_ASSERT(Total(EvaluateRoofline(*workload, device, batch + 1)) >= time);
    RC_ASSERT(Total(EvaluateRoofline(*workload, MakeDevice(teraflop * factor, gigabytes), batch)) <=
              time);
    RC_ASSERT(Total(EvaluateRoofline(*workload, MakeDevice(teraflop, gigabytes * factor), batch)) <=
              time);
  }
}

// No device does more work than its peak: three forward passes' worth of matrix work at least.
TEST(Roofline, IsNeverFasterThanThePeak) {
  const Device device = MakeDevice(8.1, 320);
  for (const std::string& name : WorkloadNames()) {
    const Workload workload = *FindWorkload(name);
    const RooflineTime time = EvaluateRoofline(workload, device, 16);
    EXPECT_GE(time.forward, workload.forward_flop() * 16.0 / *device.fp32) << name;
    EXPECT_GE(time.backward, time.forward) << name;
    EXPECT_GT(time.update.si(), 0) << name;
  }
}

// As a curve: slope and floor at the stated efficiency, launches beside it. The update comes once a
// step and not with every micro-step.
TEST(Roofline, CurveIsTheRooflineAtItsEfficiency) {
  const Device device = MakeDevice(8.1, 320);
  for (const std::string& name : WorkloadNames()) {
    const Workload workload = *FindWorkload(name);
    const FittedCurve<double> curve = RooflineCurve(workload, device);
    const RooflineTime one = EvaluateRoofline(workload, device, 1);
    EXPECT_GT(curve.per_sample.si(), 0) << name;
    EXPECT_DOUBLE_EQ(curve.floor.si(), (one.forward + one.backward).si() / 0.5) << name;
    EXPECT_DOUBLE_EQ(curve.fixed.si(), one.launches.si()) << name;
    const RooflineTime large = EvaluateRoofline(workload, device, 256);
    const double at_256 = (large.forward + large.backward).si() / 0.5 + large.launches.si();
    EXPECT_NEAR(curve.Time(Samples(256)).si(), at_256, 0.12 * at_256) << name;
  }
}

}  // namespace
}  // namespace stepcast
