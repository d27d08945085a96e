// How wrong the formulas may be where nobody has measured.
//
//   D = delta sqrt( l(N/N_max)^2 + l(w/w_max)^2 + l(g/g_max)^2 + l(b/b_max)^2 + l(b_min/b)^2 )
//   l(x) = max(0, log2 x)
//
//   D      standard deviation of ln(measured / predicted), beside that of parameters and steps [1]
//   N, w   nodes and workers of the plan; g devices in use on its fullest node; b local batch,
//          each of the two where slow nodes take other samples
//   _max   the most of the fitted runs; b_min, b_max of those of the workload
//   delta  kDiscrepancyPerDoubling                                                              [1]
//
// A fit makes a formula right where the runs are, and parameters uncertain where they are not; that
// the formula itself is an idealisation shows the more, the further a plan is from all runs. Each
// doubling in each direction counts alike, and directions add as independent errors do.
//
// Where nothing was measured the range is one device on one node.
//
// Note that D is exactly 0 within the range, and never falls with the distance from it. What a
// network between nodes may do that no run has used is not its matter (slow_ends.h), nor what a job
// differs by from those that were measured (job_spread.h).
//
// Source: Kennedy and O'Hagan, J. R. Stat. Soc. B 63 (2001) (discrepancy beside parameters). delta:
// the value at which intervals of nine in ten hold about as many of the steps of public sources
// that lie beyond the fitted runs (docs/reference/sources.md).
#ifndef STEPCAST_MODEL_STEP_DISCREPANCY_H_
#define STEPCAST_MODEL_STEP_DISCREPANCY_H_

#include <algorithm>
#include <cmath>
#include <optional>

#include "data/record/calibration.h"
#include "data/record/plan.h"
#include "model/numeric/count_log2.h"

namespace stepcast {

inline constexpr double kDiscrepancyPerDoubling = 0.04;

// The sizes of a plan that decide its distance from the range.
struct PlanSize {
  int workers = 1;
  int nodes = 1;
  int devices_per_node = 1;  // in use, on the fullest node
  int smallest_batch = 1;    // of a micro-step on one device
  int largest_batch = 1;
};

// Doublings of a plan beyond the range, all directions together. `batches` of the workload, where
// runs of it were fitted.
inline double DoublingsBeyond(const PlanSize& plan, const CalibratedRange& range,
                              const std::optional<CalibratedRange::BatchRange>& batches) {
  const auto beyond = [&](int value, int most) {
    return value > std::max(1, most) ? CountLog2(value) - CountLog2(std::max(1, most)) : 0.0;
  };
  double squares = 0;
  const auto add = [&](double doublings) { squares += doublings * doublings; };
  add(beyond(plan.nodes, range.max_nodes));
  add(beyond(plan.workers, range.max_workers));
  add(beyond(plan.devices_per_node, range.max_devices_per_node));
  if (batches) {
    add(beyond(plan.largest_batch, batches->max));
    add(beyond(batches->min, plan.smallest_batch));
  }
  return std::sqrt(squares);
}

inline double Discrepancy(const PlanSize& plan, const CalibratedRange& range,
                          const std::optional<CalibratedRange::BatchRange>& batches) {
  return kDiscrepancyPerDoubling * DoublingsBeyond(plan, range, batches);
}

inline PlanSize SizeOf(const Plan& plan) {
  return {plan.workers(), plan.nodes(), DevicesOnFullestNode(plan.placement), plan.smallest_batch(),
          plan.largest_batch()};
}
inline double DoublingsBeyond(const Plan& plan, const CalibratedRange& range,
                              const std::optional<CalibratedRange::BatchRange>& batches) {
  return DoublingsBeyond(SizeOf(plan), range, batches);
}
inline double Discrepancy(const Plan& plan, const CalibratedRange& range,
                          const std::optional<CalibratedRange::BatchRange>& batches) {
  return Discrepancy(SizeOf(plan), range, batches);
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_DISCREPANCY_H_
