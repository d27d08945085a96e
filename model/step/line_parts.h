// Parts of a step that depend on no parameter, worked out once for a plan that is asked again and
// again: what its buckets come to, and how slow the slowest of its workers is.
#ifndef STEPCAST_MODEL_STEP_LINE_PARTS_H_
#define STEPCAST_MODEL_STEP_LINE_PARTS_H_

#include <vector>

#include "model/step/step.h"

namespace stepcast::internal {

// The lines of an asynchronous worker's pushes.
inline OverlapLines AsyncLinesOf(const StepFacts& facts) {
  return MakeOverlapLines(facts.overlap == Overlap::kNone ? nullptr : facts.buckets.get());
}

// Schedules by lines; all else is computed.
struct LineParts : ComputedParts {
  const std::vector<BucketLine>* lines = nullptr;  // ps-sync
  const std::vector<BucketLine>* held = nullptr;   // ps-sync, those of the fullest server
  const OverlapLines* async_lines = nullptr;       // ps-async

  template <class T>
  Duration<T> ServersEnd(const StepFacts& facts, const ServerPhases<T>& phases,
                         const Duration<T>& backward, const FirstBucketDelays<T>& late) const {
    if (facts.server.pipelined) return ComputedParts::ServersEnd(facts, phases, backward, late);
    return ScheduleServers(phases, *lines, *held, backward, late).pulled;
  }
  const OverlapLines* AsyncLines(const StepFacts& /*facts*/) const { return async_lines; }
};

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_STEP_LINE_PARTS_H_
