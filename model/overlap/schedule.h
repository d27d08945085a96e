// Operations that follow each other on one link, beside the passes that make what they send and
// wait for what they bring.
//
// A stream of compute runs the passes of a step, one step after the other: forward, backward, and
// the update of what the step has learnt. Operation k of a link leaves when its point r_k of the
// stream has been reached and the operation before it has ended; where the stream reaches the point
// n_k by which its bytes are needed, it stalls until they are there:
//
//   E_k    = max( t(r_k) + D(r_k), E_{k-1} ) + T_k
//   D(p)   = max( 0, max over j with n_j <= p of E_j - t(n_j) )
//   stall  = what D grows by with each step,   hidden = sum_k T_k - stall
//
//   t(p)   moment at which a stream that never stalls is at point p                 [s]
//   D(p)   what it has stalled up to p; those that need p wait before those leave that are ready
//   T_k    time of operation k on the link                                          [s]
//   E_k    its end                                                                  [s]
//
// from the start of the first step's forward pass. A point lies in either pass of this or of the
// next step, so that an exchange may hide behind the forward pass too: the buckets of an all-reduce
// are ready in the backward pass and needed at its end (model/overlap/buckets.h, which is the case
// of one need for all); a reduce-scatter is the same, and the all-gather that follows it is needed
// bit by bit in the next forward pass; parameters that are gathered unit by unit are ready where
// the unit before begins and needed where their own does.
//
// Holds for links that serve first in first out and one stream, neither of which slows the other.
// Operations are in the order in which they leave. None may be needed at or before the point at
// which itself, or one before it in the queue, is ready: nothing would ever move again.
//
// Note that a stall ends with an operation and that the link is busy all the time, so that it is
// part of the sum of all T_k; that no end and no stall falls with a time of compute or of an
// operation; and that operations which are all needed at the end of the backward pass stall it for
// max(t_b, E_K) - t_b.
//
// Sources: Li et al., VLDB 2020 (buckets behind the backward pass); Rajbhandari et al., SC
// 2020, and Zhao et al., VLDB 2023 (gathers before their units); Johnson, Naval Research Logistics
// Quarterly 1 (1954) (two machines in a row).
#ifndef STEPCAST_MODEL_OVERLAP_SCHEDULE_H_
#define STEPCAST_MODEL_OVERLAP_SCHEDULE_H_

#include <algorithm>
#include <vector>

#include "data/units/quantity.h"

namespace stepcast {

// What the stream computes in one step.
template <class T>
struct StepPasses {
  Duration<T> forward;
  Duration<T> backward;
  Duration<T> update;

  Duration<T> total() const { return forward + backward + update; }
};

enum class Pass { kForward, kBackward };

// A point of the stream: so much of a pass is done.
struct PassPoint {
  Pass pass = Pass::kBackward;
  double share = 1;  // [0, 1]
  int later = 0;     // steps after that of the operation: 0 or 1

  template <class T>
  Duration<T> In(const StepPasses<T>& passes) const {
    const Duration<T> within =
        pass == Pass::kForward ? passes.forward * share : passes.forward + passes.backward * share;
    return within + passes.total() * static_cast<double>(later);
  }
  bool Before(const PassPoint& other) const {
    if (later != other.later) return later < other.later;
    if (pass != other.pass) return pass < other.pass;
    return share < other.share;
  }
};

template <class T>
struct LinkOperation {
  Duration<T> time;
  PassPoint ready;
  PassPoint needed;
};

template <class T>
struct LinkSchedule {
  std::vector<Duration<T>> ends;  // of the last step's operations
  Duration<T> stall;              // exposed: what that step waits for them
  Duration<T> hidden;
};

// The last of `steps` equal steps on a link that was idle before. One is enough where the
// operations of a step are needed before those of the next are ready.
template <class T>
LinkSchedule<T> ScheduleOnLink(const std::vector<LinkOperation<T>>& operations,
                               const StepPasses<T>& passes, int steps = 1) {
  struct Need {
    PassPoint point;    // counted from the first step
    Duration<T> delay;  // E_j - t(n_j)
  };
  const auto later = [](const Need& a, const Need& b) { return b.point.Before(a.point); };
  std::vector<Need> needs;  // a heap of those that the stream has yet to reach
  Duration<T> delay;        // D of the latest point that an operation was ready at
  Duration<T> end;
  Duration<T> last;  // D once all needs so far are met
  LinkSchedule<T> schedule;
  for (int step = 0; step < steps; ++step) {
    const auto in_this = [step](PassPoint point) {
      point.later += step;
      return point;
    };
    schedule = {};
    const Duration<T> before = last;
    for (const LinkOperation<T>& operation : operations) {
      const PassPoint ready = in_this(operation.ready);
      // An operation behind one that is ready later waits for that: it may count its stalls too.
      while (!needs.empty() && !ready.Before(needs.front().point)) {
        delay = Max(delay, needs.front().delay);
        std::pop_heap(needs.begin(), needs.end(), later);
        needs.pop_back();
      }
      end = Max(ready.In(passes) + delay, end) + operation.time;
      const PassPoint needed = in_this(operation.needed);
      const Duration<T> missed = end - needed.In(passes);
      last = Max(last, missed);
      needs.push_back({needed, missed});
      std::push_heap(needs.begin(), needs.end(), later);
      schedule.ends.push_back(end);
      schedule.hidden += operation.time;
    }
    schedule.stall = last - before;
    schedule.hidden = schedule.hidden - schedule.stall;
  }
  return schedule;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_OVERLAP_SCHEDULE_H_
