// Learns a cluster's parameters from measured runs.
//
// Minimises, over ln(value) of all parameters,
//
//   1/2 sum_runs [ rho( ((ln T - ln T_measured) / s)^2 ) + rho( ((X/T - X/T measured) / s_x)^2 ) ]
//     + 1/2 sum_parameters ((ln value - ln prior) / sd)^2
//
//   T, X   step; exposed synchronisation with the wait for the slowest, where a run states it  [s]
//   rho    2 (sqrt(1 + x) - 1): a run that is far off counts by its distance, not its square
//   s      scatter of one measured step, estimated from a first fit; s_x as in plan_rows.h    [1]
//
// Runs that state how their steps differ, and runs that were stopped, add what plan_rows.h says.
// Blocks of parameters: the cluster's, shared by all workloads; a link for each group of hosts that
// runs tell apart; the speed of each device, shared by the workloads on it; and a curve for each
// workload on a device, whose time for a sample is believed to be what the data sheet lets expect
// at that speed. Priors are those of model/step, or stated in the problem; a stated value is kept.
//
// A fit begins at a sample of the plans (starting_point.h) and goes on with larger ones; the last
// is of all. Standard errors are those of the covariance at the minimum, 95 % intervals those of
// the cost (profile.h). The scatter of compute and of synchronisation comes last (scatter.h).
//
// Note that the order of the runs changes values within the tolerance of the search only, and that
// the same problem gives the same bits.
#ifndef STEPCAST_CALIBRATE_CALIBRATE_H_
#define STEPCAST_CALIBRATE_CALIBRATE_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "data/record/machine.h"
#include "data/record/run.h"
#include "data/record/statement.h"
#include "data/record/workload.h"

namespace stepcast {

struct CalibrationProblem {
  Cluster cluster;
  std::vector<Run> runs;
  std::map<std::string, Workload> workloads;   // by the name in the runs; every one of them
  std::map<std::string, Device> devices;       // by the name in the runs; those that are known
  std::vector<ParameterStatement> statements;  // values fixed and priors given by hand
};

// Scatter of the mean step of one run around the model: 6 % on public traces, where repeats of a
// layout differ by 3 to 7 %.
inline constexpr double kStepLogSd = 0.06;

struct CalibrationOptions {
  double step_log_sd = kStepLogSd;
  int max_iterations = 200;
  // Up to so many different plans the 95 % intervals of the parameters follow the cost itself, and
  // minima beside the one found are looked for on the way; beyond, they are as the curvature of the
  // cost at its minimum says. Takes some tens of times as long as the fit.
  std::size_t profiled_plans = 100;
  // Up to so many threads share a fit to hundreds of plans and more, and intervals that follow the
  // cost; what is found does not depend on how many they are.
  int threads = 1;
};

// One run beside what the fitted model says of it.
struct RunResidual {
  Duration<> predicted;
  // ln(measured / predicted); 0 for a run that was stopped sooner than predicted.
  double log_ratio = 0;
};

struct CalibrationOutcome {
  enum class Status { kConverged, kNotConverged, kNoRuns, kFailed };

  Status status = Status::kFailed;
  std::string message;                 // one sentence
  Cluster cluster;                     // with its calibration, when usable
  std::vector<RunResidual> residuals;  // in the order of the runs
  double mape = 0;                     // over the fitted runs, but for those that were stopped
  double prior_log_ratio = 0;          // median of ln(measured / predicted) before the fit
  int iterations = 0;

  bool IsUsable() const { return status == Status::kConverged || status == Status::kNotConverged; }
};

// Throws InputError for a run whose workload is not in the problem, whose step time is none, or
// whose plan no model covers, and for a statement about a parameter that the runs do not have.
// Deterministic: the same problem gives the same bits.
CalibrationOutcome Calibrate(const CalibrationProblem& problem,
                             const CalibrationOptions& options = {});

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_CALIBRATE_H_
