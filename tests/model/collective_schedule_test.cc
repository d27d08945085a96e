// Buckets of a collective behind the backward pass, against a simulation of its events.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "model/overlap/buckets.h"
#include "model/overlap/overlap.h"
#include "model/step/step.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

struct Operation {
  double time;    // on the link
  double ready;   // in compute done, from which on it may leave
  double needed;  // likewise: where compute waits for it
};

struct Simulated {
  double end = 0;    // of the last operation
  double stall = 0;  // of the compute
};

// Event by event: the stream moves from mark to mark, the link serves its queue.
Simulated Simulate(const std::vector<Operation>& queue, double compute) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  constexpr double kRounding = 1e-12;
  Simulated simulated;
  double now = 0;
  double done = 0;        // compute
  std::size_t head = 0;   // of the queue
  double until = kNever;  // that the link serves the head
  const auto reached = [&](double mark) { return mark <= done + kRounding * (1 + done); };
  while (head < queue.size() || done < compute) {
    // The stream's next mark, and whether it may pass.
    double mark = compute;
    bool waits = false;
    for (std::size_t k = 0; k < queue.size(); ++k) {
      if (reached(queue[k].needed)) {
        waits = waits || k >= head;
      } else {
        mark = std::min(mark, queue[k].needed);
      }
      if (!reached(queue[k].ready)) mark = std::min(mark, queue[k].ready);
    }
    if (until == kNever && head < queue.size() && reached(queue[head].ready)) {
      until = now + queue[head].time;
    }
    const double at_mark = waits || done >= compute ? kNever : now + (mark - done);
    if (at_mark == kNever && until == kNever) break;  // nothing moves any more
    const double next = std::min(at_mark, until);
    if (waits) {
      simulated.stall += next - now;
    } else if (done < compute) {
      done = at_mark <= until ? mark : done + (next - now);
    }
    now = next;
    if (until <= next) {
      ++head;
      simulated.end = now;
      until = kNever;
    }
  }
  return simulated;
}

std::vector<Bucket> SomeBuckets() {
  std::vector<Bucket> buckets;
  const int count = *Whole(1, 12);
  for (int k = 1; k <= count; ++k) {
    buckets.push_back({Megabytes(*LogUniform(0.01, 30)), 1.0 * k / count});
  }
  return buckets;
}

RC_GTEST_PROP(CollectiveSchedule, IsWhatHappens, ()) {
  const std::vector<Bucket> buckets = SomeBuckets();
  const auto level = [] {
    return PipelineRing(
        RingAllreduce(*Whole(2, 64), Hop<double>{Seconds(*LogUniform(1e-6, 1e-3)),
                                                 GigabitsPerSecond(*LogUniform(1, 100))}),
        Seconds(*LogUniform(1e-6, 1e-3)));
  };
  CallCost<double> call{level(), {}};
  if (*Whole(0, 1) == 0) call.within = level();
  const Duration<> backward = Seconds(*LogUniform(1e-3, 1));
  const Duration<> late = Seconds(*rc::gen::element(0.0, 0.01));
  std::vector<Operation> operations;
  Duration<> all;
  for (const Bucket& bucket : buckets) {
    const Duration<> time =
        call.Time(bucket.bytes) + (&bucket == &buckets.front() ? late : Duration<>());
    operations.push_back({time.si(), (backward * bucket.ready).si(), backward.si()});
    all += time;
  }
  const Simulated simulated = Simulate(operations, backward.si());
  const auto collective = internal::ScheduleCollective(call, buckets, backward, late);
  RC_ASSERT(Near(simulated.end, collective.end.si(), 1e-9));
  const OverlapSplit<double> split = BucketOverlap(backward, all, collective.end);
  RC_ASSERT(std::abs(simulated.stall - split.exposed.si()) < 1e-9);
  RC_ASSERT(std::abs(all.si() - simulated.stall - split.hidden.si()) < 1e-9);
}

}  // namespace
}  // namespace stepcast
