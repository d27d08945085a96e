// Whether a calibration still holds for newly measured runs, and if not, which one of its
// parameters has changed.
//
// Of run i of plan p, which the calibration meets with
//
//   r_i = ln(measured / predicted) = g_p' d + u_p + e_i
//
//   d    how far the parameters are from their calibrated ln(value): N(0, C), C the covariance of
//        the calibration; what a workload has by prior or transfer alone is its own, and is
//        independent of all that was fitted
//   g_p  derivatives of ln(predicted) by them
//   u_p  how far the formula is off for this plan, the same in all its runs:
//        variance (1 - w) s^2 + D^2 + J^2
//   e_i  scatter of one run: t-distributed with 4 degrees of freedom, scale w^(1/2) s
//   s    scatter of one such step around the calibrated model (data/record/scatter.h), times
//        (N / (N - q))^(1/2), because the fit to N runs took q degrees of freedom from them;
//        N counts kScatterRuns more, as those that the scatter was estimated with
//   q    sum over the calibrated parameters of 1 - (standard error / that of the prior)^2
//   D    discrepancy of the plan beyond the calibrated range (model/step/discrepancy.h)
//   J    what its job may differ by from those of the calibration (model/step/job_spread.h)
//   w    share of repeats in s^2, by the calibration's repeat_log_sd; else
//        1 - kSharedByRepeats (model/statistics/scatter.h)
//
// Minus twice the logarithm of the penalised likelihood,
//
//   L = sum_i 5 ln(1 + e_i^2 / (4 w s^2)) + sum_p u_p^2 / var u_p + d' C^-1 d
//
// is minimised over d and u by reweighted least squares. s is that of the calibrated prediction,
// whatever is tried to have changed: explanations are then compared by how near they come to the
// runs, and not by how much scatter they excuse. Plans enter by the mean of their runs and d by a
// root of C: no matrix is larger than the number of parameters. What was never calibrated and
// has a standard error above 0.5 is first moved to where the new runs have it, and g_p taken there,
// because the formula is not linear over the width of such beliefs.
//
// Does it still hold? The winsorised distance
//
//   Q = sum_i min(e_i^2 / (w s^2), 3^2) + sum_p u_p^2 / var u_p + d' C^-1 d
//
// is r' V^-1 r, V = cov(r), as long as no run is far off, and then chi-square with n degrees; Q / n
// is taken as F(n, m), m = 0.64 (N - q), because s is itself an estimate by a quantile of N runs.
//
// What changed? For each parameter the change t of its ln(value) that minimises L is searched over
// its whole range with the formula itself, not its linearisation: first on a grid, then by
// Gauss-Newton steps along its derivatives at t. A link is searched up to its stated port. Beside
// single parameters two joint changes are tried: the efficiency of a device, which moves the
// compute times of all workloads on it, and the links of all hosts that have their own, as
// link_bandwidth of the cluster. So is the compute of each host that the runs tell apart, which is
// exactly the others' where it was not calibrated otherwise. The fall of L tells explanations
// apart. Whether one is significant, z tells: z^2 is the fall of L where no run counts for more
// than 6, so that a straggler or two change nothing. It takes |z| > 3, at a level of 1 % for all
// parameters tried together (Bonferroni), and a change of some run by half its s. Explanations
// whose L is within 6 of the best one's are alternatives that these runs do not tell from it;
// parameters whose derivatives are parallel on the new runs are of them. What changes more readily
// of itself is named first: links and devices, then what drivers and code decide, then the buses of
// a host, then what is a share or a growth of the formula.
//
// A calibration is stale when a change is significant, or Q with p < 0.01 and (Q/n)^(1/2) > 1.25. A
// parameter that the calibration hardly knew has a wide C: as far as the formula is linear over it,
// what new runs say of it is news rather than a change.
//
// Note that no runs, and fewer than kFewestDriftRuns, never make a calibration stale.
//
// Runs are taken as t-distributed; where their scatter is normal, standard errors come out about a
// tenth too small.
//
// Sources: Lange, Little, Taylor, JASA 84 (1989) (the t-distribution's weights); Woodbury,
// Princeton SRG memorandum 42 (1950) (the small matrix); Paulson, Ann. Math. Stat. 13 (1942) (the
// normal approximation of F).
#ifndef STEPCAST_CALIBRATE_DRIFT_H_
#define STEPCAST_CALIBRATE_DRIFT_H_

#include <map>
#include <string>
#include <vector>

#include "data/record/machine.h"
#include "data/record/run.h"
#include "data/record/workload.h"

namespace stepcast {

// One straggler among them still leaves a majority of three.
inline constexpr int kFewestDriftRuns = 4;

struct DriftProblem {
  Cluster cluster;  // with its calibration
  std::vector<Run> runs;
  std::map<std::string, Workload> workloads;  // by the name in the runs; every one of them
  std::map<std::string, Device> devices;      // by the name in the runs; those that are known
};

// One parameter which, if it alone had changed, would explain the new runs.
struct ParameterDrift {
  std::string scope;  // as in ParameterEstimate
  std::string name;
  std::string unit;
  double before = 0;  // in that unit
  double now = 0;
  double log_shift = 0;  // ln(now / before)
  double log_sd = 0;     // standard error of the change, which includes that of `before`
  // Standard error of ln(now). Large where the runs only bound the value, as when a link has become
  // too fast to matter.
  double now_log_sd = 0;
  double z = 0;              // signed; z^2 is the fall of L where no run counts for more than 6
  double improvement = 0;    // fall of L
  int explained = 0;         // runs within two standard deviations once it has changed
  int moved = 0;             // runs that the change moves
  int nearer = 0;            // those of them that it brings nearer
  bool alternative = false;  // the runs do not tell it from the first
};

struct DriftReport {
  int runs = 0;               // of which a step ended
  int stopped = 0;            // beside them: those that were stopped before
  int overdue = 0;            // those of them that were stopped later than scatter explains
  double mean_log_ratio = 0;  // of ln(measured / predicted)
  double scatter = 0;         // (Q/n)^(1/2): 1 is expected
  double p_value = 1;         // of so large a Q, if the calibration holds
  double p_value_after = 1;   // the same once the first of `drifts` has changed
  int met = 0;                // runs within two standard deviations as calibrated
  bool stale = false;
  // The likeliest first, then its alternatives.
  std::vector<ParameterDrift> drifts;
  std::string verdict;  // one sentence
};

// Throws InputError for a cluster without calibration or with one of another version, for a run
// whose workload is not in the problem, and for a plan that no model covers. Deterministic.
DriftReport CheckDrift(const DriftProblem& problem);

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_DRIFT_H_
