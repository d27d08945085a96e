// What recomputed activations make of a micro-step, and of its two passes.
#include "model/step/recomputation.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/record/blocks.h"
#include "data/workloads/catalog.h"
#include "model/compute/sheet_compute.h"
#include "model/numeric/dual.h"
#include "model/overlap/buckets.h"
#include "model/step/priors.h"
#include "model/step/step.h"
#include "model/step/workload_counts.h"
#include "tests/model/support.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

Workload Recomputed(const std::string& name, Recompute recompute) {
  Workload workload = *FindWorkload(name);
  workload.recompute = recompute;
  return workload;
}

// A step of one device, at what its data sheet lets expect.
StepTime<double> SheetStep(const Workload& workload, int batch) {
  Plan plan;
  plan.placement = {1};
  plan.strategy = Strategy::kNone;
  plan.local_batch = batch;
  const WorkloadPriors priors = MakeWorkloadPriors(workload, T4());
  WorkloadParameters<double> parameters;
  for (std::size_t i = 0; i < priors.size(); ++i) parameters.si[i] = priors[i].si;
  const WorkloadCounts counts(workload, T4());
  const auto buckets =
      std::make_shared<const std::vector<Bucket>>(MakeBuckets(workload, kDefaultBucket));
  return EvaluateStep(
      MakeStepFacts(Cluster(), plan, workload, buckets, T4().memory_bandwidth, &counts),
      PriorCluster(), parameters);
}

constexpr const char* kNetworks[] = {"resnet18", "gpt2", "vit_b_16"};
constexpr int kBatches[] = {1, 8, 64, 512};

// A quarter of all more, or half of the forward pass.
TEST(BackwardShare, ByHand) {
  EXPECT_EQ(BackwardShare(Recomputing(), 0.65), 0.65);
  EXPECT_DOUBLE_EQ(BackwardShare(Recomputing{0.25, 0}, 0.6), 1 - 0.4 / 1.25);
  EXPECT_DOUBLE_EQ(BackwardShare(Recomputing{0, 0.5}, 0.6), 0.8 / 1.2);
}

// By the overlap share, which is all that it may depend on among what is fitted.
TEST(BackwardShare, HasItsDerivative) {
  constexpr double kDistance = 1e-6;
  for (const Recomputing again : {Recomputing{0.3, 0}, Recomputing{0, 0.9}, Recomputing{}}) {
    for (const double share : {0.1, 0.65, 0.9}) {
      const DualNumber<double> dual = BackwardShare(again, DualNumber<double>(share, 1.0));
      const double difference =
          (BackwardShare(again, share + kDistance) - BackwardShare(again, share - kDistance)) /
          (2 * kDistance);
      EXPECT_EQ(dual.value, BackwardShare(again, share));
      EXPECT_NEAR(dual.slope, difference, 1e-8);
      EXPECT_GE(dual.value, share);
      EXPECT_LT(dual.value, 1);
    }
  }
}

TEST(Recomputation, LeavesTheForwardPassAsItIs) {
  for (const std::string name : kNetworks) {
    for (const int batch : kBatches) {
      SCOPED_TRACE(name + ", batch " + std::to_string(batch));
      const StepTime<double> kept = SheetStep(*FindWorkload(name), batch);
      for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
        const Workload workload = Recomputed(name, recompute);
        const StepTime<double> step = SheetStep(workload, batch);
        EXPECT_TRUE(Near(step.forward.si(), kept.forward.si()));
        EXPECT_EQ(step.update, kept.update);
        const double growth = Recomputation(workload, T4()).At(batch).of_all;
        EXPECT_TRUE(Near((step.total() - kept.total()).si(),
                         growth * (kept.forward + kept.backward).si(), 1e-10));
      }
    }
  }
}

// Layer by layer, at a batch that the device's time is all of.
TEST(Recomputation, IsAsLongAsItsLayers) {
  for (const std::string name : kNetworks) {
    for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
      const Workload workload = Recomputed(name, recompute);
      const SheetTime once = SheetCompute(*FindWorkload(name), T4()).At(64);
      const SheetTime whole = SheetCompute(workload, T4()).At(64);
      const double growth = (whole.backward - once.backward) / (once.forward + once.backward);
      EXPECT_NEAR(Recomputation(workload, T4()).At(64).of_all, growth, 0.03) << name;
    }
  }
}

TEST(Recomputation, OfAttentionAloneIsLessThanOfBlocks) {
  for (const std::string name : {"gpt2", "vit_b_16"}) {
    for (const int batch : kBatches) {
      const double attention =
          Recomputation(Recomputed(name, Recompute::kSelective), T4()).At(batch).of_all;
      const double blocks =
          Recomputation(Recomputed(name, Recompute::kFull), T4()).At(batch).of_all;
      EXPECT_GT(attention, 0) << name;
      EXPECT_LT(attention, blocks) << name;
      EXPECT_LT(blocks, 0.5) << name;
    }
  }
  // Calls of the host grow by half, kernels by a third of what they were or less.
  const Recomputation resnet(Recomputed("resnet18", Recompute::kFull), T4());
  EXPECT_GT(resnet.At(1).of_all, resnet.At(64).of_all + 0.1);
}

TEST(Recomputation, IsNothingWhereNothingIs) {
  for (const Workload& workload :
       {*FindWorkload("gpt2"), Recomputed("resnet18", Recompute::kSelective),
        Recomputed("alexnet", Recompute::kFull)}) {
    for (const std::optional<Device>& device : {std::optional(T4()), std::optional<Device>()}) {
      const Recomputation recomputation(workload, device);
      EXPECT_FALSE(recomputation.exists());
      EXPECT_FALSE(recomputation.At(8).exists());
    }
  }
}

// Without a data sheet nobody knows more than the FLOP.
TEST(Recomputation, IsCountedWhereNoTimesAreKnown) {
  const Workload workload = Recomputed("gpt2", Recompute::kFull);
  const Recomputation recomputation(workload);
  EXPECT_TRUE(recomputation.exists());
  for (const int batch : kBatches) {
    EXPECT_EQ(recomputation.At(batch).of_all, 0);
    EXPECT_EQ(recomputation.At(batch).of_forward, RecomputedShare(workload));
  }
}

// Slow nodes have the share of their own batch.
TEST(Recomputation, IsThatOfEachBatch) {
  const Workload workload = Recomputed("resnet18", Recompute::kFull);
  const WorkloadCounts counts(workload, T4());
  Plan plan;
  plan.placement = {1, 1};
  plan.strategy = Strategy::kRing;
  plan.local_batch = 64;
  plan.slow_nodes = 1;
  plan.slow_speed = 0.5;
  plan.slow_local_batch = 2;
  const auto buckets =
      std::make_shared<const std::vector<Bucket>>(MakeBuckets(workload, kDefaultBucket));
  const StepFacts facts = MakeStepFacts(Cluster(), plan, workload, buckets, std::nullopt, &counts);
  const auto at = [&](double batch) { return counts.recomputation.At(batch).of_all; };
  EXPECT_EQ(facts.recomputing.of_all, at(64));
  EXPECT_EQ(internal::FastSide(facts).recomputing.of_all, at(64));
  EXPECT_EQ(internal::SlowSide(facts).recomputing.of_all, at(2));
  EXPECT_NE(at(2), at(64));
}

}  // namespace
}  // namespace stepcast
