// Where a fit begins: near the data, and in the right one of several minima.
//
// Each workload's curve goes through its own runs with the fewest workers, each host is as fast as
// the fastest run that it took part in, and of a grid around the priors of what may hold a hop back
// the points that are nearest to the data are tried. Where a host is slow, others of its runs are
// tried in its place.
#ifndef STEPCAST_CALIBRATE_STARTING_POINT_H_
#define STEPCAST_CALIBRATE_STARTING_POINT_H_

#include <vector>

#include "calibrate/calibrate.h"
#include "calibrate/minimisation.h"
#include "calibrate/parameter_layout.h"
#include "calibrate/plan_rows.h"

namespace stepcast {

// A fit to `sample`, which need not be more than it takes to tell minima apart.
Fit FindStart(const CalibrationProblem& problem, const ParameterLayout& layout,
              const std::vector<const PlanRows*>& sample, int max_iterations);

// Which of the hosts of slow runs are the slow ones: two hosts that are slow together, or the one
// first tried, may be one, or the other. Takes the fit that costs least; returns the iterations
// that it took.
int ImproveHosts(const ParameterLayout& layout, const std::vector<const PlanRows*>& sample,
                 int max_iterations, Fit* fit);

// For each workload whether what no batch changes is a fixed time or the floor of the device, the
// other being small: two minima again. Returns the iterations that it took.
int ImproveCurves(const ParameterLayout& layout, const std::vector<const PlanRows*>& sample,
                  std::vector<double>* values);

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_STARTING_POINT_H_
