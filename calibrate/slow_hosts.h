// Which hosts compute slower than the others, or faster.
//
// What is believed of a host's compute before any run is a spike and a slab: that it is exactly the
// others', or that it takes q times as long, q log-normal around 1 (compute_slowdown in
// model/step/parameters.h). A host has a q only where runs demand one, so that on healthy hardware
// there is none, and forecasts there are as if nobody had looked.
//
// Hosts are taken one after another. For each group of hosts that runs tell apart the fit is made
// anew with a q of its own, and with q held at 1, both from the fit so far. With
//
//   z^2 = 2 (cost at 1 - cost at q), without the prior of q, and no row counts for more than 8
//
// the group is taken whose z^2 is largest, if z exceeds 3 and the level of 1 % for all hosts
// together (Bonferroni), if q is off 1 by 10 % or more, which healthy devices of one kind are, and
// if two runs or more are nearer with q. Of a slower group and a faster one that the runs do not
// tell apart, as of two hosts alone, the slower is taken: devices break rather than improve.
// Then the next one, until none is left.
//
// The scatter by which costs are counted is that around the fit with q: what q explains is none.
//
// Note that a host which no run parts from all others never has a q.
//
// Source: Mitchell, Beauchamp, JASA 83 (1988) (spike and slab).
#ifndef STEPCAST_CALIBRATE_SLOW_HOSTS_H_
#define STEPCAST_CALIBRATE_SLOW_HOSTS_H_

#include <optional>
#include <vector>

#include "calibrate/calibrate.h"
#include "calibrate/minimisation.h"
#include "calibrate/parameter_layout.h"
#include "calibrate/plan_rows.h"

namespace stepcast {

// A fit with one more of these groups.
struct SlowHosts {
  ParameterLayout layout;
  std::vector<PlanRows> plans;  // with the scatter of their rows
  Fit fit;
};

// The next group; none where no more differ. `plans` are those of the layout, of which `fit` is.
std::optional<SlowHosts> NextSlowHosts(const CalibrationProblem& problem,
                                       const ParameterLayout& layout,
                                       const std::vector<PlanRows>& plans, const Fit& fit,
                                       const CalibrationOptions& options);

// Sets how many of the runs that each compute_slowdown, and each link that is slower than was
// believed, holds back are nearer with it. Bare messages between the same hosts are one run, in
// which all may have been slowed alike.
void CountSlowRuns(const CalibrationProblem& problem, const ParameterLayout& layout,
                   const std::vector<PlanRows>& plans, const std::vector<double>& values,
                   std::vector<ParameterEstimate>* estimates);

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_SLOW_HOSTS_H_
