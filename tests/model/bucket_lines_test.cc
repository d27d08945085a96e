// Buckets as few straight lines: the end that they give is that of the buckets one by one.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "data/workloads/catalog.h"
#include "model/exchange/allreduce.h"
#include "model/exchange/parameter_server.h"
#include "model/exchange/sharding.h"
#include "model/overlap/buckets.h"
#include "model/step/step.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

// Buckets that become ready in order; some at one moment, some empty of anything but a call.
std::vector<Bucket> DrawBuckets() {
  const int count = *Whole(1, 60);
  std::vector<Bucket> buckets;
  double ready = 0;
  for (int k = 0; k < count; ++k) {
    if (*Whole(0, 3) > 0) ready += *LogUniform(1e-6, 1);
    buckets.push_back({Bytes(*LogUniform(1, 1e9)), ready});
  }
  const double last = ready > 0 ? ready : 1;
  for (Bucket& bucket : buckets) bucket.ready /= last;
  return buckets;
}

SyncCost<double> DrawCost() {
  return {Seconds(*Whole(0, 4) == 0 ? 0 : *LogUniform(1e-7, 1e-1)),
          Seconds(*Whole(0, 4) == 0 ? 0 : *LogUniform(1e-12, 1e-6)) / Bytes(1.0)};
}

Duration<> DrawTime() { return Seconds(*Whole(0, 4) == 0 ? 0 : *LogUniform(1e-6, 1e2)); }

// Bucket after bucket; the first takes `late` longer.
Duration<> OneByOne(const std::vector<Bucket>& buckets, Duration<> backward,
                    const SyncCost<double>& cost, Duration<> late) {
  return LastSynchronisationEnd(buckets, backward, [&](const Bucket& bucket) {
    return cost.Time(bucket.bytes) + (&bucket == &buckets.front() ? late : Duration<>());
  });
}

RC_GTEST_PROP(BucketLinesProperty, EndWhereTheBucketsEnd, ()) {
  const std::vector<Bucket> buckets = DrawBuckets();
  const std::vector<BucketLine> lines = MakeBucketLines(buckets);
  for (int i = 0; i < 20; ++i) {
    const SyncCost<double> cost = DrawCost();
    const Duration<> backward = DrawTime();
    const Duration<> late = *Whole(0, 1) == 0 ? Duration<>() : DrawTime();
    const Duration<> expected = OneByOne(buckets, backward, cost, late);
    const Duration<> end = LastSynchronisationEnd(lines, backward, cost, late);
    RC_LOG() << lines.size() << " lines of " << buckets.size() << " buckets\n";
    RC_ASSERT(Near(end.si(), expected.si()));
  }
}

RC_GTEST_PROP(BucketLinesProperty, TheFirstIsThatOfAllBuckets, ()) {
  const std::vector<Bucket> buckets = DrawBuckets();
  const std::vector<BucketLine> lines = MakeBucketLines(buckets);
  RC_ASSERT(!lines.empty() && lines.size() <= buckets.size());
  DataSize<> all;
  for (const Bucket& bucket : buckets) all += bucket.bytes;
  RC_ASSERT(lines.front().ready == buckets.front().ready);
  RC_ASSERT(lines.front().count == static_cast<double>(buckets.size()));
  RC_ASSERT(Near(lines.front().bytes.si(), all.si()));
  RC_ASSERT(lines.back().ready == buckets.back().ready);
  for (std::size_t k = 1; k < lines.size(); ++k) {
    RC_ASSERT(lines[k].ready >= lines[k - 1].ready);
    RC_ASSERT(lines[k].count < lines[k - 1].count);
    RC_ASSERT(lines[k].bytes < lines[k - 1].bytes);
  }
}

// The derivative is that of the bucket that binds.
RC_GTEST_PROP(BucketLinesProperty, HaveTheDerivativesOfTheBuckets, ()) {
  const std::vector<Bucket> buckets = DrawBuckets();
  const std::vector<BucketLine> lines = MakeBucketLines(buckets);
  const auto seeded = [](double value, int lane) {
    DualOf<4> dual(value);
    dual.slope.Set(lane, 1);
    return dual;
  };
  const SyncCost<double> cost = DrawCost();
  const auto backward = Duration<DualOf<4>>::FromSi(seeded(*LogUniform(1e-4, 10), 0));
  const SyncCost<DualOf<4>> dual = {
      Duration<DualOf<4>>::FromSi(seeded(cost.per_call.si(), 1)),
      DurationPerByte<DualOf<4>>::FromSi(seeded(cost.per_byte.si(), 2))};
  const auto late = Duration<DualOf<4>>::FromSi(seeded(*LogUniform(1e-6, 1), 3));
  const DualOf<4> by_lines = LastSynchronisationEnd(lines, backward, dual, late).si();
  const DualOf<4> one_by_one = LastSynchronisationEnd(buckets, backward, [&](const Bucket& bucket) {
                                 const Duration<DualOf<4>> time = dual.Time(bucket.bytes);
                                 return &bucket == &buckets.front() ? time + late : time;
                               }).si();
  RC_ASSERT(Near(by_lines.value, one_by_one.value));
  // Where two bind alike either is right.
  double ends = 0;
  double rest = 0;
  for (std::size_t k = buckets.size(); k-- > 0;) {
    rest += cost.Time(buckets[k].bytes).si() + (k == 0 ? late.si().value : 0);
    const double end = backward.si().value * buckets[k].ready + rest;
    ends += Near(end, one_by_one.value, 1e-9) ? 1 : 0;
  }
  if (ends > 1) return;
  for (int lane = 0; lane < 4; ++lane) {
    RC_ASSERT(Near(by_lines.slope[lane], one_by_one.slope[lane], 1e-9));
  }
}

// Servers with phases one after the other.
RC_GTEST_PROP(BucketLinesProperty, ServersEndWhereTheBucketsEnd, ()) {
  const std::vector<Bucket> buckets = DrawBuckets();
  const std::vector<Bucket> held = DrawBuckets();
  ServerPhases<double> phases;
  phases.worker_push = DrawCost();
  phases.worker_pull = DrawCost();
  phases.server_push = DrawCost();
  phases.server_pull = DrawCost();
  const Duration<> backward = DrawTime();
  FirstBucketDelays<double> late;
  if (*Whole(0, 1) == 1) late = {DrawTime(), DrawTime(), DrawTime(), DrawTime()};
  const ServerEnd<double> expected = ScheduleServers(phases, buckets, held, backward, false, late);
  const ServerEnd<double> end =
      ScheduleServers(phases, MakeBucketLines(buckets), MakeBucketLines(held), backward, late);
  RC_ASSERT(Near(end.pushed.si(), expected.pushed.si()));
  RC_ASSERT(Near(end.pulled.si(), expected.pulled.si()));
}

// The buckets of real networks, and what servers hold of them; few lines are left of many.
TEST(BucketLines, OfTheCatalogueEndWhereTheBucketsEnd) {
  for (const std::string& name : WorkloadNames()) {
    const Workload workload = *FindWorkload(name);
    for (const DataSize<> cap : {Mebibytes(0.1), Mebibytes(1.0), Mebibytes(25.0)}) {
      for (const int servers : {1, 3, 64}) {
        const std::vector<Bucket> buckets = TensorShards(workload, Sharding::kTensor)
                                                .LastBuckets(servers, MakeBuckets(workload, cap));
        const std::vector<BucketLine> lines = MakeBucketLines(buckets);
        for (const double backward : {0.0, 1e-3, 0.1, 10.0}) {
          for (const double per_call : {0.0, 1e-6, 1e-3}) {
            for (const double rate : {1e6, 1e9, 1e12}) {
              const SyncCost<double> cost = {Seconds(per_call), Seconds(1.0) / Bytes(rate)};
              EXPECT_PRED2(
                  [](double a, double b) { return Near(a, b); },
                  LastSynchronisationEnd(lines, Seconds(backward), cost, Duration<>()).si(),
                  OneByOne(buckets, Seconds(backward), cost, Duration<>()).si())
                  << name << ", " << servers << " servers, " << cap.si();
            }
          }
        }
      }
    }
  }
}

TEST(BucketLines, OfEqualBucketsAreTwo) {
  Workload workload;
  workload.parameters = workload.trainable_parameters = 250'000'000;
  workload.gradient_bytes = Gigabytes(1.0);
  for (const double mebibytes : {0.2, 1.0, 25.0, 300.0}) {
    const std::vector<Bucket> buckets = MakeBuckets(workload, Mebibytes(mebibytes));
    EXPECT_EQ(MakeBucketLines(buckets).size(), std::min<std::size_t>(buckets.size(), 2))
        << buckets.size();
  }
  EXPECT_EQ(MakeBucketLines({{Bytes(1.0), 1}}).size(), 1U);
}

// ---- Collectives, whose buckets cost on each level what the larger of two lines says.

RC_GTEST_PROP(CollectiveScheduleProperty, IsTheRecursion, ()) {
  const std::vector<Bucket> buckets = DrawBuckets();
  CallCost<double> call;
  call.between = {DrawCost(), DrawCost()};
  if (*Whole(0, 1) == 0) call.within = {DrawCost(), DrawCost()};
  if (!call.two_levels()) call.within = {};  // a level takes time for its bytes
  if (*Whole(0, 3) == 0) call.between.chain = call.between.steady;
  const Duration<> backward = DrawTime();
  const Duration<> late = *Whole(0, 1) == 0 ? Duration<>() : DrawTime();
  const internal::CollectiveSchedule<double> schedule =
      internal::ScheduleCollective(call, buckets, backward, late);
  Duration<> all = late;
  DataSize<> bytes;
  const auto time = [&](const Bucket& bucket) {
    return Max(call.between.steady.Time(bucket.bytes), call.between.chain.Time(bucket.bytes)) +
           Max(call.within.steady.Time(bucket.bytes), call.within.chain.Time(bucket.bytes));
  };
  for (const Bucket& bucket : buckets) {
    all += time(bucket);
    bytes += bucket.bytes;
  }
  const Duration<> end = LastSynchronisationEnd(buckets, backward, [&](const Bucket& bucket) {
    return &bucket == &buckets.front() ? time(bucket) + late : time(bucket);
  });
  RC_ASSERT(Near(schedule.end.si(), end.si()));
  RC_ASSERT(Near((schedule.calls + call.Steady().per_byte * bytes).si(), all.si()));
}

}  // namespace
}  // namespace stepcast
