// Caveats of a fit that converged: what the runs could not show, and what they contradict.
#ifndef STEPCAST_CALIBRATE_CAVEATS_H_
#define STEPCAST_CALIBRATE_CAVEATS_H_

#include <string>
#include <vector>

#include "calibrate/calibrate.h"

namespace stepcast {

// The most that plans take of a cluster.
struct PlansExtent {
  int nodes = 0;
  int devices_per_node = 0;

  void Include(const Plan& plan);
  // What of it the cluster does not have: a sentence each, without its full stop.
  std::vector<std::string> Beyond(const Cluster& cluster) const;
};

// What to know of a fit, a sentence each without its full stop, the gravest first: the model does
// not describe the runs; times as of another unit; rows that repeat others; hosts, nodes, devices
// that the cluster file does not have; a parameter at the edge of its range; one that is further
// from what is believed of it than three of its prior's standard deviations; nothing decided by the
// runs; one batch only; no run between nodes, or none on three. Empty for an outcome that is not
// usable.
std::vector<std::string> Caveats(const CalibrationProblem& problem,
                                 const CalibrationOutcome& outcome);

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_CAVEATS_H_
