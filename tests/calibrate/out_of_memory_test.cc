// What did not fit in memory is told while jobs run, and kept wherever what was learnt is kept.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "calibrate/online/fleet.h"
#include "calibrate/online/online_calibration.h"
#include "data/io/machines.h"
#include "data/io/online_record.h"
#include "data/record/input_error.h"
#include "data/workloads/catalog.h"
#include "predictor/compiled_plan.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

// A job of which nobody knows more than its size.
Workload BySize() { return WorkloadOfSize("job", 25'000'000); }

Plan PlanOf(int local_batch) { return AllreducePlan({2}, local_batch); }

MemoryVerdict VerdictOf(const Cluster& cluster, int local_batch) {
  return Predictor(cluster, BySize(), T4()).Memory(PlanOf(local_batch)).verdict;
}

int MostLocalBatch(const Cluster& cluster) {
  const CompiledPlan compiled(Predictor(cluster, BySize(), T4()), PlanOf(1));
  return compiled.MostLocalBatch(QueryOf(PlanOf(1)));
}

TEST(OutOfMemory, BoundsTheBatchesOfAJobKnownByItsSize) {
  OnlineCalibration job(SyntheticCluster(), BySize(), T4());
  EXPECT_EQ(VerdictOf(job.cluster(), 64), MemoryVerdict::kUnknown);
  job.ObserveOutOfMemory(PlanOf(64));
  EXPECT_EQ(job.rows(), 0);
  EXPECT_EQ(VerdictOf(job.cluster(), 64), MemoryVerdict::kOutOfMemory);
  EXPECT_EQ(VerdictOf(job.cluster(), 63), MemoryVerdict::kUnknown);
  EXPECT_EQ(MostLocalBatch(job.cluster()), 63);
  // More is known by what runs, and by a smaller one that does not fit; not by a larger one.
  for (int i = 0; i < 3; ++i) job.Observe(PlanOf(32), Seconds(0.3));
  EXPECT_EQ(VerdictOf(job.cluster(), 32), MemoryVerdict::kFits);
  job.ObserveOutOfMemory(PlanOf(128));
  EXPECT_EQ(MostLocalBatch(job.cluster()), 63);
  job.ObserveOutOfMemory(PlanOf(48));
  EXPECT_EQ(MostLocalBatch(job.cluster()), 47);
  EXPECT_EQ(VerdictOf(job.cluster(), 32), MemoryVerdict::kFits);
}

TEST(OutOfMemory, IsAnsweredByCompiledPlansAsByPredictors) {
  OnlineCalibration job(SyntheticCluster(), BySize(), T4());
  job.Observe(PlanOf(32), Seconds(0.3));
  job.ObserveOutOfMemory(PlanOf(64));
  const Predictor predictor(job.cluster(), BySize(), T4());
  const CompiledPlan compiled(predictor, PlanOf(1));
  for (int batch = 1; batch < 100; ++batch) {
    for (const int steps : {1, 2}) {
      Plan plan = PlanOf(batch);
      plan.accumulation_steps = steps;
      EXPECT_EQ(compiled.Memory(QueryOf(plan)), predictor.Memory(plan).verdict)
          << batch << " x " << steps;
    }
  }
}

TEST(OutOfMemory, IsKeptByFilesAndRecords) {
  OnlineCalibration job(SyntheticCluster(), BySize(), T4());
  job.Observe(PlanOf(32), Seconds(0.3));
  job.ObserveOutOfMemory(PlanOf(64));
  const std::string file = FormatCluster(job.cluster());
  const Cluster read = ParseCluster(file, "read.yaml");
  EXPECT_EQ(MostLocalBatch(read), 63);
  EXPECT_EQ(FormatCluster(read), file);

  OnlineCalibration other(SyntheticCluster(), BySize(), T4());
  other.Import(ParseOnlineRecord(FormatOnlineRecord(job.Export())));
  EXPECT_EQ(FormatCluster(other.cluster()), file);
}

// On a device that by the count does not hold the model: what has run fits, of the same shares and
// of smaller ones, wherever it is kept; what was not seen does not.
TEST(OutOfMemory, WhatHasRunFitsWhateverIsCounted) {
  Device small = T4();
  small.memory = Gibibytes(1.0);
  const auto plan_of = [](Shard shard, int workers, int local_batch) {
    Plan plan = AllreducePlan({workers}, local_batch);
    plan.shard = shard;
    return plan;
  };
  const Plan ran = plan_of(Shard::kOptimizer, 4, 32);
  const auto knows_it = [&](const Cluster& cluster) {
    const Predictor predictor(cluster, BySize(), small);
    const auto fits = [&](const Plan& plan) { return predictor.Memory(plan).may_fit(); };
    return fits(ran) && fits(plan_of(Shard::kOptimizer, 8, 31)) &&
           !fits(plan_of(Shard::kOptimizer, 4, 33)) && !fits(plan_of(Shard::kOptimizer, 2, 32)) &&
           !fits(plan_of(Shard::kNone, 4, 32));
  };
  Fleet fleet(SyntheticCluster());
  EXPECT_FALSE(knows_it(fleet.ClusterFor(BySize(), small)));
  const auto job = fleet.Add("first", BySize(), small);
  job->Observe(ran, Seconds(0.3));
  EXPECT_TRUE(knows_it(job->cluster()));
  EXPECT_TRUE(knows_it(ParseCluster(FormatCluster(job->cluster()), "read.yaml")));
  OnlineCalibration other(SyntheticCluster(), BySize(), small);
  other.Import(ParseOnlineRecord(FormatOnlineRecord(job->Export())));
  EXPECT_TRUE(knows_it(other.cluster()));
  EXPECT_TRUE(knows_it(fleet.ClusterFor(BySize(), small))) << "while it runs";
  fleet.End("first");
  EXPECT_TRUE(knows_it(fleet.ClusterFor(BySize(), small))) << "when it is over";
  Fleet copy(SyntheticCluster());
  copy.Import(fleet.Export());
  EXPECT_TRUE(knows_it(copy.ClusterFor(BySize(), small)));
}

// Compute that takes twice as long is learnt anew, and memory is what it was.
TEST(OutOfMemory, OutlastsAChange) {
  OnlineCalibration job(SyntheticCluster(), BySize(), T4());
  for (int i = 0; i < 40; ++i) job.Observe(PlanOf(32), Seconds(0.3));
  job.ObserveOutOfMemory(PlanOf(64));
  for (int i = 0; i < 40; ++i) job.Observe(PlanOf(32), Seconds(0.6));
  ASSERT_TRUE(job.drifted());
  EXPECT_EQ(MostLocalBatch(job.cluster()), 63);
}

TEST(OutOfMemory, IsTaughtToJobsOfTheSameWorkload) {
  Fleet fleet(SyntheticCluster());
  const auto cluster_for_next = [&] { return fleet.ClusterFor(BySize(), T4()); };
  fleet.Add("first", BySize(), T4())->ObserveOutOfMemory(PlanOf(64));
  EXPECT_EQ(MostLocalBatch(cluster_for_next()), 63) << "while it runs";
  EXPECT_TRUE(fleet.ClusterFor(*FindWorkload("resnet50"), T4()).out_of_memory.empty());
  Fleet copy(SyntheticCluster());
  copy.Import(fleet.Export());
  EXPECT_EQ(MostLocalBatch(copy.ClusterFor(BySize(), T4())), 63);
  fleet.End("first");
  EXPECT_EQ(MostLocalBatch(cluster_for_next()), 63) << "when it is over";
  copy.Import(fleet.Export());
  EXPECT_EQ(MostLocalBatch(copy.ClusterFor(BySize(), T4())), 63);
  EXPECT_EQ(MostLocalBatch(fleet.Add("second", BySize(), T4())->cluster()), 63);

  Fleet forgetful(SyntheticCluster());
  forgetful.Add("first", BySize(), T4())->ObserveOutOfMemory(PlanOf(64));
  forgetful.Remove("first");
  EXPECT_TRUE(forgetful.ClusterFor(BySize(), T4()).out_of_memory.empty());
}

TEST(OutOfMemory, RefusesWhatNobodyCanKnow) {
  OnlineCalibration job(SyntheticCluster(), BySize(), T4());
  Plan none = PlanOf(32);
  none.local_batch = 0;
  EXPECT_THROW(job.ObserveOutOfMemory(none), InputError);
  Device unknown = T4();
  unknown.memory = std::nullopt;
  OnlineCalibration on_unknown(SyntheticCluster(), BySize(), unknown);
  EXPECT_THROW(on_unknown.ObserveOutOfMemory(PlanOf(32)), InputError);
  EXPECT_TRUE(job.cluster().out_of_memory.empty());
}

}  // namespace
}  // namespace stepcast
