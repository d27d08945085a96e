// The inside of an OnlineCalibration: what it knows, and the arithmetic on it.
//
// Parameters are x = x_0 + L y, where C_0 = L L' is the covariance of the belief at the start: y is
// standard normal before any row, whatever is correlated, and however narrow (a stated value, of
// variance 0, is no exception). Of a plan p, linearised where it was evaluated last,
//
//   ln T(y) = ln T_p + h_p' (y - y_p),   h_p = L' d ln T / d x
//   w_p     = sum_rows 1 / ((1 + z^2)^(1/2) s_p^2),   z = (ln T_measured - ln T_p) / s_p
//   t_p     = h_p' y_p + sum_rows w (ln T_measured - ln T_p) / w_p
//
// and the normal equations of all that was observed are sums over plans,
//
//   (I + sum_p w_p h_p h_p') y = sum_p w_p t_p h_p
//
// into which a plan is entered anew when it is evaluated anew. The weights are those of rho: where
// y, h and w no longer change, the gradient of the penalised least squares is zero.
#ifndef STEPCAST_CALIBRATE_ONLINE_STATE_H_
#define STEPCAST_CALIBRATE_ONLINE_STATE_H_

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "calibrate/online/online_calibration.h"
#include "data/record/calibration.h"
#include "data/record/online_record.h"
#include "data/values/workload_scope.h"
#include "model/statistics/scatter.h"
#include "model/step/answer.h"
#include "model/step/believed_model.h"
#include "model/step/plan_key.h"

namespace stepcast {
namespace internal {

// The most times that a plan keeps.
inline constexpr std::size_t kMostTimes = 32;
// Distinct plans that are kept; beyond, the one that was not observed for longest is kept as it was
// linearised last.
inline constexpr std::size_t kMostPlans = 256;

struct ObservedPlan : MeasuredPlan {
  PlanModel model;
  std::vector<int> links;      // of its hosts, by position; none where all have the cluster's
  std::vector<int> slowdowns;  // of the compute of its hosts, by position
  bool others = false;         // whether some of its hosts compute like most
  double rows = 0;

  // A row more; the two nearest become one where there are too many.
  void Add(double log_time);
  void Remove(double log_time);
  // Of the times around log_step, each by its weight: one that is far off is no misfit.
  double MeanResidual(double sd) const;
};

// So many rows more, as far as they are counted.
inline void Count(std::int64_t rows, int* runs) {
  *runs = static_cast<int>(std::min(*runs + rows, kMostObservedRows));
}

// Positions in the belief.
inline constexpr int kFixedPosition = Belief::kWorkloadOffset + kFixedTime;
inline constexpr int kSamplePosition = Belief::kWorkloadOffset + kSampleTime;
inline constexpr int kFloorPosition = Belief::kWorkloadOffset + kFloorTime;

// What can drift by itself: the parameters of a level, which change together, by their sign; in the
// order of kDriftCauses.
enum Drifting { kComputeDrift, kNetworkDrift, kNodeDrift, kDriftingCount };

inline constexpr std::array<Drifting, kDriftingCount> kAllDrifting = {kComputeDrift, kNetworkDrift,
                                                                      kNodeDrift};
// Of the common factor by which a level that changed is unknown: a factor of two.
inline constexpr double kChangeLogSd = 0.7;
// How much likelier rows are, in ln, with a level that changed, before it is taken for changed.
inline constexpr double kAlarm = 12;

// The sign with which a parameter of that name follows a level; 0 where it does not.
int SignOf(Drifting level, std::string_view name);

// U of U U', how far a change moves parameters of these names, those of each level together: a
// common factor of each, and a column. An empty name is of one that no change moves.
Eigen::MatrixXd MovesOfChange(std::span<const Drifting> levels,
                              const std::vector<std::string_view>& names);

// How strongly ln(step) follows each level.
using DriftSlopes = std::array<double, kDriftingCount>;

// Cumulated sums of log-likelihood ratios (Page, Biometrika 41, 1954), of each level becoming
// slower and faster, and the rows that they are of.
struct DriftSums {
  using Row = OnlineRecord::LatestRow;

  std::array<double, std::size_t{2} * kDriftingCount> sums{};
  std::array<std::int64_t, std::size_t{2} * kDriftingCount> rows{};  // of `latest`, from its end
  std::vector<Row> latest;

  void Add(Row row);
  // The rows since a change, where there was one.
  std::optional<std::vector<Row>> RowsSinceChange() const;
};

// The levels that may have changed before these rows: the likeliest, and those nearly as likely.
std::vector<Drifting> LevelsChanged(const std::vector<DriftSums::Row>& rows);

struct OnlineState {
  OnlineState(Cluster of, const Workload& workload, const std::optional<Device>& facts,
              const std::string& device);

  Observation Observe(const Plan& plan, Duration<> step_time);
  // Learns the first rows, one at least, all at once and as none that can show a change. Each of
  // their plans is kept.
  void LearnTogether(std::span<const MeasuredStep> steps);
  void ObserveOutOfMemory(const Plan& plan);
  // What a sample of the workload leaves in memory at least, as far as anything did not fit.
  DataSize<> LeastActivations() const;
  void KnowLeastActivations(DataSize<> least);
  // The cluster of what Settle comes to.
  Cluster Learnt() const;
  // The cluster as it is at y.
  Cluster AtY() const;
  OnlineRecord Export() const;
  // Throws InputError; may leave a state that is of no use.
  void Import(const OnlineRecord& record);

  // ---- The start; after a change it is what was known before that.
  std::shared_ptr<const Cluster> first;  // that the caller gave
  bool anew = false;                     // whether the start is another by now
  std::int64_t earlier_rows = 0;
  Cluster cluster;
  BelievedModel start;
  std::optional<Device> device_facts;
  Eigen::VectorXd centre;     // x_0
  Eigen::MatrixXd root;       // L
  Eigen::VectorXd low, high;  // of x
  double start_scatter;       // of one step, before any row
  // That was observed; 0 before, and where fixed_time is no prior. The start relates fixed_time to
  // its samples where no data sheet tells the time of the layers.
  int smallest_batch = 0;
  bool FixedTimeGoesWithSamples() const;
  std::string scope() const { return WorkloadScope(start.workload(), start.device()); }

  // ---- What was learnt.
  std::vector<ObservedPlan> plans;
  Eigen::VectorXd y;
  double scatter;            // s
  Eigen::MatrixXd folded;    // sum of w h h' of plans that are no longer kept
  Eigen::VectorXd folded_b;  // and of w t h
  Eigen::MatrixXd a;         // of the normal equations, its lower triangle
  Eigen::VectorXd b;
  std::int64_t rows = 0;
  std::int64_t next_scatter = 1;  // row after which the scatter is estimated anew
  std::size_t next_plan = 0;      // whose turn it is to be evaluated anew
  DriftSums drift;
  CalibratedRange range;

  // ---- Made of these.
  std::map<PlanKey, std::size_t> index;  // of plans
  Eigen::LLT<Eigen::MatrixXd> solver;    // of a
  Eigen::VectorXd log_values;            // x, within its bounds
  Eigen::VectorXd values;                // exp of it
  Eigen::VectorXd scratch;

  // Where nothing but its prior tells fixed_time, it is that of a fit to runs from here on: by what
  // a data sheet tells, or as a share of the samples of this batch, the smallest that was
  // observed.
  void KnowSmallestBatch(int batch);

  // ---- Arithmetic.
  Eigen::Index size() const { return centre.size(); }
  // x of y, within bounds.
  Eigen::VectorXd LogValues(const Eigen::VectorXd& at) const;
  // y of x, as far as the start allows any.
  Eigen::VectorXd YOf(const Eigen::VectorXd& log_x) const;
  void SetY(const Eigen::VectorXd& to);
  // `at_hosts` becomes what holds the plan's hosts back.
  PlanAnswer Answer(const ObservedPlan& plan, const Eigen::VectorXd& log_x,
                    const Eigen::VectorXd& x, Belief::AtHosts* at_hosts,
                    Derivatives derivatives = Derivatives::kAll) const;
  // d ln T / d ln x of a plan's answer at these log_x; a value at its bound does not move.
  void Gradient(const PlanAnswer& answer, const Belief::AtHosts& at_hosts,
                const Eigen::VectorXd& log_x, Eigen::Ref<Eigen::VectorXd> gradient) const;
  // h of it.
  void Slopes(const PlanAnswer& answer, const Belief::AtHosts& at_hosts,
              const Eigen::VectorXd& log_x, Eigen::VectorXd* slopes) const;
  // Enters a plan as it is at y. `answer` of it.
  void Linearise(ObservedPlan* plan, const PlanAnswer& answer, const Belief::AtHosts& at_hosts);
  void Enter(const ObservedPlan& plan, double sign);
  void Rebuild();  // a and b from their parts
  // Returns the length of the step, in standard deviations of what is known after it.
  double Solve();
  void LineariseAll();
  // To the minimum below `from`, each step of which lowers the cost.
  void Descend(const Eigen::VectorXd& from);
  // The same, to the lowest of those below y and these.
  void DescendFrom(const std::vector<Eigen::VectorXd>& starts);
  // The least cost, from where the rows have led, of rows of that scatter.
  double CostAt(double of_scatter) const;
  // The scatter, and the minimum from where the rows have led, or from other starts as well.
  void Settle(bool from_other_starts);
  void Learn(const Plan& plan, std::size_t at, const PlanAnswer& answer,
             const Belief::AtHosts& at_hosts, double log_time);
  DriftSlopes DriftSlopesOf(const PlanAnswer& answer) const;
  // Takes rows out again.
  void Unlearn(const std::vector<DriftSums::Row>& gone);
  // Begins anew from what was known before these rows, with the levels free that changed; which
  // they are.
  std::vector<Drifting> BeginAnew(const std::vector<DriftSums::Row>& since);
  void LearnAgain(Cluster before, const std::vector<Drifting>& changed,
                  const std::vector<DriftSums::Row>& since);
  // Frees all levels of the start where its rows are far likelier so: a start of other days.
  void DoubtStart();
  double MeanDistance(const std::vector<DriftSums::Row>& of);  // of |ln(measured / forecast)|
  std::vector<int> LinksOf(const Plan& plan) const;
  // Sets what hosts with a compute_slowdown have to do with the plan.
  void SetSlowdowns(ObservedPlan* observed) const;
  PlanKey KeyOf(const ObservedPlan& observed) const;
  // Plans of equal answers are one, as they are to the batch fit.
  std::size_t FindOrAdd(const Plan& plan);
  // The answer to plans[at], as it is believed by now. Throws InputError where it has no finite
  // step; of a plan without rows nothing is left then.
  PlanAnswer Forecast(std::size_t at, Belief::AtHosts* at_hosts);
  void Drop(std::size_t at);
  void Forget();  // the plan that was not observed for longest
  double Variance(const Eigen::VectorXd& slopes) const;
};

}  // namespace internal

struct OnlineCalibration::State : internal::OnlineState {
  using OnlineState::OnlineState;

  // Another whenever something may have been learnt; no part of a record.
  std::int64_t revision = 0;
};

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_ONLINE_STATE_H_
