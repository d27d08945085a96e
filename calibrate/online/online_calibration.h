// Parameters that follow a job while it runs: each measured step moves them at once.
//
//   OnlineCalibration job(cluster, workload, facts);
//   job.Observe(plan, Seconds(0.31));        // microseconds
//   Predictor predictor(job.cluster(), workload, facts);
//
// The belief of the cluster's calibration (or its priors) is the start: a normal law of the
// ln(value) of the cluster's and the workload's parameters, with their covariance. Observed plans
// are kept by their times, one entry a distinct plan, and after each row the penalised least
// squares of calibrate/calibrate.h,
//
//   sum_plans sum_rows ( (1 + z^2)^(1/2) - 1 ) + 1/2 (x - x_0)' C_0^-1 (x - x_0)
//   z = ln(T_measured / T) / s_p,   s_p = s (0.7 + 0.3 n_p)^(1/2)
//
// takes a Gauss-Newton step from where it was, with derivatives of the observed plan and of
// another, in turn, taken anew; of all plans, and again, as long as a step is a long one. When rows
// have grown by an eighth it goes to the minimum, as cluster() does, which also begins at other
// explanations of the rows; so does the row whose number is a power of two, from the 16th on.
//
//   x, x_0  ln(value) of the parameters; of the belief at the start
//   C_0     its covariance
//   T       step of a plan at x                                                        [s]
//   s       scatter of one measured step, estimated from the rows                      [1]
//   n_p     rows of the plan, which have a part of their scatter in common
//
// Three things can drift: compute, the network (rates of links, flows and servers), and exchange
// within nodes (host_bandwidth). Of each, and of both directions, the logarithm of how much more
// likely rows are with a level changed by d than without is summed up (Page's test):
//
//   g = max(0, g + (u d r - u^2 d^2 / 2) / s_r^2) > 12,   d = +-ln 1.25
//
//   r    ln(T_measured / T) of a row, less what the plan's earlier rows tell of its misfit, each by
//        its weight, so that a step with a pause hardly tells of any; at most 3 s_r, or u d where
//        that is more. A row adds 4.5 to g at most
//   s_r  its standard deviation, of the step and of what is not known of its parameters
//   u    d ln T / d level
//
// Rows count once the parameters are known better than one step is. Then the rows since the sum
// left 0 are taken out again; what was known before them is where learning begins anew, with the
// level that changed free (a factor of two), as is any other whose explanation of these rows is as
// good; and these rows are learnt again. All else is known as before.
//
// A start that knows by runs may be of other days. Rows 8, 16, 32 and so on ask whether all rows
// are likelier by more than 12 (in ln) with all three levels free from the first on, and each
// host's link and compute: then the start is given up, and the job goes on from the freed one. That
// is no change, and nobody is told of one.
//
// Note that rows in another order give the same parameters to the tolerance of the search, as long
// as the cost has one minimum, and that the same rows give the same bits. A plan keeps 32 times,
// beyond which near ones are joined, and a job 256 plans, beyond which the one that was not
// observed for longest is kept as its normal equations: what a job takes is bounded.
//
// LearnTogether goes straight to the minimum of rows that are there at once.
//
// Not covered: a measured profile of the device as the start, and own links of hosts that neither
// the cluster file nor its calibration tells from others.
//
// Sources: Page, Biometrika 41 (1954) (cumulated sums); docs/explanation/online.md (what is
// measured of it).
#ifndef STEPCAST_CALIBRATE_ONLINE_ONLINE_CALIBRATION_H_
#define STEPCAST_CALIBRATE_ONLINE_ONLINE_CALIBRATION_H_

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/record/machine.h"
#include "data/record/online_record.h"
#include "data/record/workload.h"

namespace stepcast {

// The answer to one observed step.
struct Observation {
  Duration<> predicted;  // before the row was learnt
  double log_ratio = 0;  // ln(measured / predicted)
  double surprise = 0;   // log_ratio in standard deviations of what was expected
  bool drifted = false;  // see OnlineCalibration::drifted
  // What this row has shown to have changed: "compute", "network", "node", or "compute or network"
  // where rows do not tell; empty where it has shown nothing.
  std::string cause;
};

class OnlineCalibration {
 public:
  // `facts` and `device` as for Predictor. Throws InputError as Predictor does.
  OnlineCalibration(Cluster cluster, const Workload& workload, const std::optional<Device>& facts,
                    const std::string& device = "");
  ~OnlineCalibration();
  OnlineCalibration(const OnlineCalibration&) = delete;
  OnlineCalibration& operator=(const OnlineCalibration&) = delete;
  OnlineCalibration(OnlineCalibration&&) noexcept;
  OnlineCalibration& operator=(OnlineCalibration&&) noexcept;

  // Learns a measured step of `plan` (strategy auto is not one: name the algorithm). Throws
  // InputError for a plan that no model covers and for a time that is none; nothing is learnt then.
  // Not to be called by two threads at once.
  Observation Observe(const Plan& plan, Duration<> step_time);

  // A step of `plan` did not fit in the device's memory: plans that need no less are out of memory
  // from now on, and a sample is known to leave so much that this one does not fit. Throws
  // InputError for a plan that no model covers, and where nobody states the device's memory.
  void ObserveOutOfMemory(const Plan& plan);

  // The cluster with the parameters as learnt, as `stepcast calibrate` would leave it: for
  // Predictor, or to be written as a cluster file. What its calibration knew of other jobs moves
  // with what they have in common. Without rows it is the start. Changes nothing here.
  Cluster cluster() const;

  // That the caller gave; of the device its name.
  const Cluster& start() const;
  const Workload& workload() const;
  const std::optional<Device>& facts() const;
  const std::string& device() const;

  int rows() const;  // observed so far
  // Whether some rows lay apart from the older ones by more than chance allows; for good. What had
  // changed is learnt anew since then.
  bool drifted() const;

  // All that was learnt, and back: the two have the same bits ahead of them. Import throws
  // InputError for a record of another cluster, workload or device, or of none that can be, and
  // changes nothing then. data/io/online_record.h has the text of a record.
  OnlineRecord Export() const;
  void Import(const OnlineRecord& record);

 private:
  friend class Fleet;
  struct State;
  std::unique_ptr<State> state_;
};

struct MeasuredStep {
  Plan plan;
  Duration<> step_time;
};

// The cluster that OnlineCalibration::cluster() would tell after these steps, were they no sequence
// in which anything can drift: the minimum of all of them, to which their order tells nothing, in
// the time of one search. Throws InputError as OnlineCalibration and its Observe do.
Cluster LearnTogether(Cluster cluster, const Workload& workload, const std::optional<Device>& facts,
                      const std::string& device, std::span<const MeasuredStep> steps);

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_ONLINE_ONLINE_CALIBRATION_H_
