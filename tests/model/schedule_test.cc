// A schedule of operations on a link against a simulation of its events, against closed forms, and
// against the buckets of collectives, which are a case of it.
#include "model/overlap/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "model/numeric/dual.h"
#include "model/overlap/buckets.h"
#include "model/overlap/overlap.h"
#include "model/step/step.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

using Operation = LinkOperation<double>;
using Passes = StepPasses<double>;

PassPoint Forward(double share, int later = 0) { return {Pass::kForward, share, later}; }
PassPoint Backward(double share, int later = 0) { return {Pass::kBackward, share, later}; }

// ---- A simulation, event by event: the stream moves from mark to mark, the link serves its queue.

struct Simulated {
  std::vector<double> ends;
  double stall = 0;  // of all steps
};

Simulated Simulate(const std::vector<Operation>& operations, const Passes& passes, int steps) {
  struct Job {
    double ready;   // in compute done
    double needed;  // likewise
    double time;
    std::optional<double> end;
  };
  std::vector<Job> queue;
  double all = 0;
  for (int step = 0; step < steps; ++step) {
    for (const Operation& o : operations) {
      const double base = step * passes.total().si();
      queue.push_back({base + o.ready.In(passes).si(), base + o.needed.In(passes).si(), o.time.si(),
                       std::nullopt});
      all = std::max({all, queue.back().ready, queue.back().needed});
    }
  }
  constexpr double kNever = std::numeric_limits<double>::infinity();
  constexpr double kRounding = 1e-12;
  Simulated simulated;
  double now = 0;
  double done = 0;        // compute
  std::size_t head = 0;   // of the queue
  double until = kNever;  // that the link serves the head
  while (head < queue.size() || done < all) {
    // The stream's next mark, and whether it may pass.
    double mark = all;
    bool waits = false;
    for (const Job& job : queue) {
      if (!job.end && std::abs(job.needed - done) <= kRounding * (1 + done)) waits = true;
      if (job.needed > done + kRounding * (1 + done)) mark = std::min(mark, job.needed);
      if (job.ready > done + kRounding * (1 + done)) mark = std::min(mark, job.ready);
    }
    if (until == kNever && head < queue.size() &&
        queue[head].ready <= done + kRounding * (1 + done)) {
      until = now + queue[head].time;
    }
    const double at_mark = waits || done >= all ? kNever : now + (mark - done);
    const double at_end = until;
    if (at_mark == kNever && at_end == kNever) break;  // nothing moves any more
    const double next = std::min(at_mark, at_end);
    if (waits) {
      simulated.stall += next - now;
    } else if (done < all) {
      done = at_mark <= at_end ? mark : done + (next - now);
    }
    now = next;
    if (until <= next) {
      queue[head++].end = now;
      until = kNever;
    }
  }
  for (const Job& job : queue) simulated.ends.push_back(job.end.value_or(kNever));
  return simulated;
}

Passes SomePasses() {
  return {Seconds(*LogUniform(0.05, 1)), Seconds(*LogUniform(0.05, 1)),
          Seconds(*rc::gen::element(0.0, 0.1))};
}

// Points on a grid, so that many fall together.
constexpr int kGrid = 8;
PassPoint PointOf(int mark) {
  const int in_step = mark % (2 * kGrid);
  return {in_step < kGrid ? Pass::kForward : Pass::kBackward, 1.0 * (in_step % kGrid) / kGrid,
          mark / (2 * kGrid)};
}

// Operations that are ready in order and needed after the point at which any before them is.
std::vector<Operation> SomeOperations() {
  std::vector<Operation> operations;
  int ready = 0;
  const int count = *Whole(1, 12);
  for (int k = 0; k < count; ++k) {
    ready = std::min(2 * kGrid - 1, ready + *Whole(0, 3));
    const int needed = *Whole(ready + 1, 4 * kGrid - 1);
    operations.push_back({Seconds(*LogUniform(1e-3, 0.3)), PointOf(ready), PointOf(needed)});
  }
  return operations;
}

RC_GTEST_PROP(Schedule, IsWhatHappens, ()) {
  const Passes passes = SomePasses();
  std::vector<Operation> operations = SomeOperations();
  const auto schedule = ScheduleOnLink(operations, passes);
  const Simulated simulated = Simulate(operations, passes, 1);
  RC_ASSERT(schedule.ends.size() == operations.size());
  double work = 0;
  for (std::size_t k = 0; k < operations.size(); ++k) {
    RC_ASSERT(Near(schedule.ends[k].si(), simulated.ends[k], 1e-9));
    work += operations[k].time.si();
  }
  RC_ASSERT(std::abs(schedule.stall.si() - simulated.stall) < 1e-9);
  RC_ASSERT(schedule.stall.si() >= 0);
  RC_ASSERT(schedule.hidden.si() >= -1e-12);
  RC_ASSERT(Near((schedule.stall + schedule.hidden).si(), work, 1e-9));
}

// Needs of one step may stall the next, whose operations queue behind those of the first.
RC_GTEST_PROP(Schedule, OfSeveralStepsIsWhatHappens, ()) {
  const Passes passes = SomePasses();
  std::vector<Operation> operations = SomeOperations();
  // What is needed in the next step is so before its own operations are ready.
  const double first = operations.front().ready.In(passes).si() + passes.total().si();
  for (Operation& o : operations) {
    if (o.needed.In(passes).si() > first) o.needed = Backward(1);
  }
  const int steps = *Whole(1, 4);
  const auto schedule = ScheduleOnLink(operations, passes, steps);
  const Simulated simulated = Simulate(operations, passes, steps);
  const std::size_t before = simulated.ends.size() - operations.size();
  for (std::size_t k = 0; k < operations.size(); ++k) {
    RC_ASSERT(Near(schedule.ends[k].si(), simulated.ends[before + k], 1e-9));
  }
  double stall = 0;
  for (int s = 1; s <= steps; ++s) stall += ScheduleOnLink(operations, passes, s).stall.si();
  RC_ASSERT(std::abs(stall - simulated.stall) < 1e-9);
}

// ---- Cases with known answers.

TEST(Schedule, NothingIsNothing) {
  const auto schedule = ScheduleOnLink<double>({}, {Seconds(1.0), Seconds(2.0), {}});
  EXPECT_EQ(schedule.stall.si(), 0);
  EXPECT_EQ(schedule.hidden.si(), 0);
  EXPECT_TRUE(schedule.ends.empty());
}

// A reduce-scatter bucket by bucket, needed by the update: max(t_b, E_K) - t_b.
TEST(Schedule, ReduceScatterBehindTheBackwardPass) {
  const Passes passes{Seconds(1.0), Seconds(2.0), {}};
  std::vector<Operation> operations;
  for (const double share : {0.25, 0.5, 0.75, 1.0}) {
    operations.push_back({Seconds(0.6), Backward(share), Backward(1)});
  }
  // The first leaves at 1.5 and each waits for the one before: E_4 = 1.5 + 4 * 0.6 = 3.9.
  const auto schedule = ScheduleOnLink(operations, passes);
  EXPECT_NEAR(schedule.ends.back().si(), 3.9, 1e-12);
  EXPECT_NEAR(schedule.stall.si(), 0.9, 1e-12);
  EXPECT_NEAR(schedule.hidden.si(), 1.5, 1e-12);
}

// An all-gather of parameters after the update, of which unit l is needed where its forward begins:
// the stream stalls for max over l of sum_{j <= l} T_j - (l-1)/L t_f.
TEST(Schedule, AllGatherBehindTheNextForwardPass) {
  constexpr int kUnits = 5;
  const double times[kUnits] = {0.1, 0.3, 0.05, 0.5, 0.2};
  const Passes passes{Seconds(1.0), Seconds(2.0), Seconds(0.25)};
  std::vector<Operation> operations;
  double sum = 0;
  double stall = 0;
  for (int l = 0; l < kUnits; ++l) {
    const double share = 1.0 * l / kUnits;
    operations.push_back({Seconds(times[l]), Forward(0, 1), Forward(share, 1)});
    sum += times[l];
    stall = std::max(stall, sum - share);
  }
  const auto schedule = ScheduleOnLink(operations, passes);
  EXPECT_NEAR(schedule.stall.si(), stall, 1e-12);
  EXPECT_NEAR(schedule.ends.front().si(), 3.25 + 0.1, 1e-12);
  // Each step waits alike.
  EXPECT_NEAR(ScheduleOnLink(operations, passes, 7).stall.si(), stall, 1e-12);
}

// Both in one step: they meet on the link only where the first is late.
TEST(Schedule, ScatterBehindBackwardThenGatherBehindForward) {
  const Passes passes{Seconds(1.0), Seconds(2.0), {}};
  std::vector<Operation> operations = {{Seconds(0.5), Backward(0.5), Backward(1)},
                                       {Seconds(0.5), Backward(1), Backward(1)},
                                       {Seconds(0.4), Forward(0, 1), Forward(0, 1)},
                                       {Seconds(0.4), Forward(0, 1), Forward(0.5, 1)}};
  // The second bucket ends half a second late, the first unit 0.4 later; the second hides.
  const auto schedule = ScheduleOnLink(operations, passes);
  EXPECT_NEAR(schedule.stall.si(), 0.5 + 0.4, 1e-12);
  EXPECT_NEAR(schedule.hidden.si(), 0.5 + 0.4, 1e-12);
}

// Parameters gathered a unit ahead: max(compute, gather) for each unit but the ends (two machines).
TEST(Schedule, UnitsGatheredAheadAreAFlowShop) {
  constexpr int kUnits = 6;
  const Passes passes{Seconds(0.6), Seconds(1.0), {}};
  for (const double gather : {0.05, 0.1, 0.3}) {
    std::vector<Operation> operations;
    for (int l = 0; l < kUnits; ++l) {
      const double share = 1.0 * l / kUnits;
      const double ahead = 1.0 * std::max(0, l - 1) / kUnits;
      operations.push_back({Seconds(gather), Forward(ahead), Forward(share)});
    }
    const double unit = 0.6 / kUnits;
    // The first is waited for, and what a gather takes longer than a unit is, each time but one:
    // the first unit gathers its own and the one after.
    const double expected = gather + (kUnits - 1) * std::max(0.0, gather - unit);
    EXPECT_NEAR(ScheduleOnLink(operations, passes).stall.si(), expected, 1e-12) << gather;
  }
}

// A step cannot be shorter than an operation and what is computed from its need to where the next
// one is ready: here half the backward pass.
TEST(Schedule, ALateNeedHoldsUpTheNextOperation) {
  const Passes passes{Seconds(1.0), Seconds(1.0), {}};
  const std::vector<Operation> operations = {{Seconds(3.0), Backward(0.5), Forward(1, 1)}};
  const auto schedule = ScheduleOnLink(operations, passes, 20);
  EXPECT_NEAR((passes.total() + schedule.stall).si(), 3.0 + 0.5, 1e-9);
}

// ---- The buckets of a collective, and derivatives.

std::vector<Bucket> SomeBuckets() {
  std::vector<Bucket> buckets;
  const int count = *Whole(1, 12);
  for (int k = 1; k <= count; ++k) {
    buckets.push_back({Megabytes(*LogUniform(0.01, 30)), 1.0 * k / count});
  }
  return buckets;
}

RC_GTEST_PROP(Schedule, HoldsTheBucketsOfACollective, ()) {
  const std::vector<Bucket> buckets = SomeBuckets();
  const auto level = [] {
    return PipelineRing(
        RingAllreduce(*Whole(2, 64), Hop<double>{Seconds(*LogUniform(1e-6, 1e-3)),
                                                 GigabitsPerSecond(*LogUniform(1, 100))}),
        Seconds(*LogUniform(1e-6, 1e-3)));
  };
  CallCost<double> call{level(), {}};
  if (*Whole(0, 1) == 0) call.within = level();
  const Passes passes{Seconds(0.1), Seconds(*LogUniform(1e-3, 1)), {}};
  const Duration<> late = Seconds(*rc::gen::element(0.0, 0.01));
  std::vector<Operation> operations;
  Duration<> all;
  for (const Bucket& bucket : buckets) {
    const Duration<> time =
        call.Time(bucket.bytes) + (&bucket == &buckets.front() ? late : Duration<>());
    operations.push_back({time, Backward(bucket.ready), Backward(1)});
    all += time;
  }
  const auto schedule = ScheduleOnLink(operations, passes);
  const auto collective = internal::ScheduleCollective(call, buckets, passes.backward, late);
  RC_ASSERT(Near((schedule.ends.back() - passes.forward).si(), collective.end.si(), 1e-9));
  const OverlapSplit<double> split = BucketOverlap(passes.backward, all, collective.end);
  RC_ASSERT(std::abs((schedule.stall - split.exposed).si()) < 1e-9);
  RC_ASSERT(std::abs((schedule.hidden - split.hidden).si()) < 1e-9);
}

RC_GTEST_PROP(Schedule, DerivativesAreDifferences, ()) {
  const Passes passes = SomePasses();
  const std::vector<Operation> operations = SomeOperations();
  const auto stall = [&](const auto& scale) {
    using T = std::decay_t<decltype(scale)>;
    std::vector<LinkOperation<T>> scaled;
    for (const Operation& o : operations) scaled.push_back({o.time * scale, o.ready, o.needed});
    return ScheduleOnLink<T>(scaled, {passes.forward, passes.backward, passes.update}, 2).stall;
  };
  const double by_dual = stall(Dual{1.0, 1.0}).si().slope;
  constexpr double kStep = 1e-7;
  const double up = (stall(1 + kStep) - stall(1.0)).si() / kStep;
  const double down = (stall(1.0) - stall(1 - kStep)).si() / kStep;
  // At a kink it is one of the two sides.
  RC_ASSERT(std::min(up, down) - 1e-5 <= by_dual);
  RC_ASSERT(by_dual <= std::max(up, down) + 1e-5);
}

}  // namespace
}  // namespace stepcast
