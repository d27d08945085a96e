// Which runs are worth measuring next.
//
// A run of plan c, measured once, changes what is believed of the parameters from C to
//
//   C' = C - C g g' C / ( g' C g + s_c^2 + D_c^2 )
//
// and so the variance of ln(step) of the plan that matters, t, from V to V':
//
//   V   = h' C h + b_t^2 + s_t^2 + D_t^2,    V'   = h' C' h + b'_t^2 + s_t^2 + D'_t^2
//   V_e = V + E,                             V_e' = V' + E'
//
//   C      covariance of the parameters, in ln(value)
//   g, h   d ln(step) / d ln(value) of plans c and t
//   b      what is not known of the share that is reached of stated rates            [1]
//   s      scatter of one measured step                                              [1]
//   D      discrepancy of the formulas beyond the measured range (model/step/discrepancy.h); D'
//          and b' with the range that contains c
//   V_e    the same for the upper end of the interval: E is of paces that no run has told
//          (model/step/slow_ends.h); E' with C' and the range that contains c
//
// Runs are chosen by V, one after another, each as if those before it had been measured: of the
// candidates that lower V by at least half of what the best one does, the one that takes the fewest
// device-seconds. The candidate's step time comes from the model, its length from kMeasuredSteps.
//
// Holds as far as the model is linear in ln(value) over the width of its uncertainty. What a run
// would show is not known before it is measured: the interval after it is the expected one.
//
// Note that V' never exceeds V. A plan that tells nothing of the parameters may still be chosen
// because it brings the measured range nearer to the target.
//
// Source: Fedorov, Theory of Optimal Experiments, 1972 (sequential design; here c-optimal: for the
// variance of one answer).
#ifndef STEPCAST_CALIBRATE_NEXT_RUNS_H_
#define STEPCAST_CALIBRATE_NEXT_RUNS_H_

#include <Eigen/Core>
#include <set>
#include <string>
#include <vector>

#include "data/record/calibration.h"
#include "data/record/plan.h"
#include "model/step/believed_model.h"

namespace stepcast {

// Cost of measuring a plan: steps after some of warm-up, and starting the job.
inline constexpr double kMeasuredSteps = 100;
inline constexpr Duration<> kJobStart = Seconds(60.0);

struct NextRun {
  Plan plan;
  Duration<> step_time;       // expected
  double device_seconds = 0;  // that measuring it takes
  // Of ln(step) of the target, expected after this run and those before; and for the upper end of
  // its interval.
  double log_sd = 0;
  double log_sd_above = 0;
  std::string tells;  // the parameters of which it says most, with what remains unknown
};

struct NextRuns {
  double log_sd = 0;  // the same, now
  double log_sd_above = 0;
  std::vector<NextRun> runs;
};

// Runs of at most `count` of `candidates`, each once; fewer where nothing more helps.
NextRuns ChooseNextRuns(const BelievedModel& model, const Plan& target,
                        const std::vector<Plan>& candidates, const CalibratedRange& range,
                        int count);

// Adds one run of each of the hosts by itself that the range has not seen so: nothing else tells
// whether a host computes slower than the others (slow_hosts.h). They come beside those that were
// chosen, and are taken to tell nothing of the target. None for a bare message, nor for one host,
// which has nobody to be compared with. `hosts` are all that are known.
void AddHostRuns(const BelievedModel& model, const Plan& target, const CalibratedRange& range,
                 const std::set<std::string>& hosts, NextRuns* next);

// Plans like `target` that could be measured: its first nodes, fewer of its devices on each, the
// batches that were fitted or a quarter of the target's; the target itself among them.
std::vector<Plan> CandidatePlans(const Plan& target, const CalibratedRange::BatchRange& batches);

// C' of the header.
Eigen::MatrixXd CovarianceAfter(const Eigen::MatrixXd& covariance, const Eigen::VectorXd& gradient,
                                double variance);
// The diagonal of C - C'.
Eigen::VectorXd VariancesLost(const Eigen::MatrixXd& covariance, const Eigen::VectorXd& gradient,
                              double variance);

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_NEXT_RUNS_H_
