// Belief about the parameters of one workload on one device of a cluster: values, how certain they
// are, and where each comes from.
//
// Each parameter is log-normal. What a calibration has fitted replaces the prior, with the whole
// covariance. A workload that the calibration did not see on this device takes over what it can
// (ln(value) is linear in what was fitted, so is its covariance):
//
//   c(d)   = sheet(d) / v_d                           the device d was fitted with other workloads
//   c(d)   = c'(d) sheet(d) / sheet'(d)               the workload was fitted, trained otherwise
//   c(d)   = c(x) sheet(d) / sheet(x)                 the workload was fitted on another device x
//   c(d)   = c(x) sheet(d) / sheet(x) v_x/v_d         both
//
//   c      sample_time; floor_time and update_time follow all but the first alike  [s]
//   c'     of the way in which it was trained (data/values/workload_scope.h)       [s]
//   v_d    device_speed of the device                                              [1]
//
// fixed_time, which launches and input make, and straggler_spread are taken over as they are; so is
// all that was trained otherwise where no data sheet tells the difference. Each step of the way
// adds its own variance.
//
// Throws InputError for a calibration of another version: an unknown parameter, another unit, a
// value out of its range.
#ifndef STEPCAST_MODEL_STEP_BELIEF_H_
#define STEPCAST_MODEL_STEP_BELIEF_H_

#include <Eigen/Core>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/record/calibration.h"
#include "data/record/machine.h"
#include "data/record/plan.h"
#include "data/record/workload.h"
#include "model/step/parameters.h"

namespace stepcast {

class ProfiledCompute;
struct StepFacts;

// Where a parameter's value comes from; kStated: somebody fixed it.
enum class Origin { kFitted, kFittedPrior, kPrior, kStated, kTransferred };
inline constexpr const char* kOriginNames[] = {"fitted", "fitted, but the prior decided", "prior",
                                               "stated", "transferred"};

// Source of a workload's compute time on the device.
enum class ComputeBelief {
  kFitted,             // its own runs
  kFromDevice,         // runs of other workloads on the device
  kProfile,            // its layers one by one
  kFromOtherTraining,  // its runs there, trained otherwise
  kFromOtherDevice,    // its runs on another device
  kDataSheet,
  kPrior,  // nothing tells
};

class Belief {
 public:
  // Positions in the vector of ln(SI value): the cluster's parameters, the workload's, those of
  // hosts: their links and what slows their compute.
  static constexpr int kWorkloadOffset = kClusterParameterCount;
  static constexpr int kHostOffset = kWorkloadOffset + int{kWorkloadParameterCount};

  // `profile`, where given, is of this workload on this device; it yields to runs of the two
  // together, and goes before what runs of others tell.
  Belief(const Cluster& cluster, const Workload& workload, const std::optional<Device>& facts,
         const std::string& device, const ProfiledCompute* profile = nullptr);
  // The same values after more runs, which leave this covariance of them; `range` spans all runs.
  Belief After(Eigen::MatrixXd log_covariance, const CalibratedRange& range) const;

  const std::vector<double>& log_values() const { return log_values_; }
  double log_value(int position) const { return log_values_[static_cast<std::size_t>(position)]; }
  const Eigen::MatrixXd& log_covariance() const { return log_covariance_; }
  // The values by other explanations of the runs, a column each (model/step/alternatives.h).
  const Eigen::MatrixXd& log_alternatives() const { return log_alternatives_; }
  Origin origin(int position) const { return origins_[static_cast<std::size_t>(position)]; }
  ComputeBelief compute() const { return compute_; }
  // What a step computes for at the least, at the device's peak, where nothing but its data sheet
  // tells of compute; else 0.
  Duration<> LeastCompute(const StepFacts& facts) const;
  // That of the calibration whose values are the workload's (FittedScope).
  const std::string& scope() const { return scope_; }
  // Of kFromOtherTraining.
  struct OtherTraining {
    Workload fitted;        // as it was trained there, by what differs; without layers
    bool by_sheet = false;  // whether a data sheet tells the difference
    double log_sd = 0;      // of what is taken over
  };
  const OtherTraining& other_training() const { return other_training_; }
  // Standard deviation of ln(measured / predicted) of one step, where the parameters are right;
  // `sync_share` as in data/record/scatter.h.
  double ScatterAt(double sync_share) const {
    return scatter_ ? scatter_->At(sync_share) : total_scatter_;
  }
  // The same of a plan, with what losses add.
  double ScatterOf(const StepFacts& facts, double sync_share) const;
  // What one step differs by from the next, beside how runs do: 0 where no run told it;
  // `exposed_share` is that of the exposed synchronisation, without the wait.
  double JitterAt(double exposed_share) const { return sync_jitter_ * exposed_share; }
  // Standard deviation of ln(share reached of a line rate that the plan states): 0 within the rates
  // of the fitted runs, and away from them up to what is believed of a link that nobody has used.
  // `position` is that of the plan's slowest link. Where the cluster's file states one rate for all
  // links and runs were fitted to some of them, it adds how far the link at `position` is from that
  // rate, and how well it is known: who states of a link what the file said of it knows no more of
  // it than the runs told, and less where they told of other links alone.
  double StatedShareLogSd(const LinkFacts& link, const LinkFacts& server_link, int position) const;
  double StatedShareLogSd(const StepFacts& facts, int position) const;
  // The most nodes, and devices on a node, of the runs that were fitted: 0 where there are none.
  int fitted_nodes() const { return fitted_nodes_; }
  int fitted_devices_per_node() const { return fitted_devices_per_node_; }
  // The line rates that they had, where somebody stated them.
  const std::optional<CalibratedRange::RateRange>& fitted_rates() const { return rates_; }
  // How those runs exchanged; none where there are runs and nobody says.
  const std::optional<std::set<CalibratedRange::Exchange>>& fitted_exchanges() const {
    return fitted_exchanges_;
  }
  // Host -> position of its link, of all that have one of their own.
  const std::vector<std::pair<std::string, int>>& host_links() const { return host_links_; }
  // Covariance of the believed ln(value) with those that the calibration has fitted, a column for
  // each of these in its order. 0 for a prior.
  Eigen::MatrixXd CovarianceWith(const Calibration& calibration) const;
  // The table's entry of a parameter of the cluster, the workload, or a host.
  const ParameterSpec& SpecOf(int position) const;
  // "flow_bandwidth", "sample_time of resnet50 on t4", "link_bandwidth of tupi5+tupi6". The hosts
  // alone are empty for what no host has any more.
  std::string NameOf(int position) const;
  // Position of the slowest link among named hosts; an unknown host has the cluster's link.
  int SlowestLink(const std::vector<std::string>& hosts) const;
  // Position of a host's compute_slowdown; none where it computes like most.
  std::optional<int> SlowdownOf(const std::string& host) const;
  // Position of the compute_slowdown that named hosts are held back by; none where none is.
  std::optional<int> SlowestCompute(std::span<const std::string> hosts) const;
  // "tupi5+tupi6": the hosts that a position is of.
  std::string HostsOf(int position) const;
  // Positions of what holds named hosts back.
  struct AtHosts {
    int link = kLinkBandwidth;
    std::optional<int> slowdown;

    // Position of a column of model/step/answer.h but for the last, which is of the plan. Without a
    // factor on compute its column is 0, and any position will do.
    int Position(int column) const;
  };
  // Of a plan; what its slow nodes compute is stated.
  AtHosts SlowestOf(const Plan& plan) const {
    return {SlowestLink(plan.hosts), SlowestCompute(plan.hosts_at_own_speed())};
  }
  // A gradient by the columns of model/step/answer.h as one by positions: without the last column,
  // which is of the plan.
  Eigen::VectorXd ByPosition(std::span<const double> by_column, const AtHosts& hosts) const;
  // The values at which a plan is evaluated that these hold back. The link has a column of its own,
  // also where it is the cluster's, so that links to servers are told apart.
  PlanParameters ParametersAt(const AtHosts& hosts) const;

 private:
  // ln(value) as a sum of fitted ones, and what that adds to its variance.
  struct Source {
    int position = 0;
    std::vector<std::pair<int, double>> terms;  // (index in the calibration, coefficient)
    double variance = 0;
  };

  void TakeCalibration(const Calibration& calibration, const Workload& workload,
                       const std::optional<Device>& facts, const std::string& device);
  void TakeEstimate(const ParameterEstimate& estimate, int index, const ParameterSpec& spec,
                    int position);
  void Transfer(const Calibration& calibration, const Workload& workload,
                const std::optional<Device>& facts, const std::string& device);
  void TransferTraining(const Calibration& calibration, const Workload& workload,
                        const std::optional<Device>& facts, const std::string& device);
  void SetTransferred(int parameter, double log_value, Source source);
  void TakeCovariance(const Calibration& calibration);
  void TakeAlternatives(const Calibration& calibration);
  void TakeRange(const CalibratedRange& range);

  std::string workload_;  // "resnet50 on t4"
  std::string scope_;
  std::vector<double> log_values_;
  PlanParameters values_;  // without a link of its own
  std::vector<Origin> origins_;
  std::vector<Source> sources_;
  Eigen::MatrixXd log_covariance_;
  Eigen::MatrixXd log_alternatives_;
  std::vector<std::pair<std::string, int>> host_links_;
  std::vector<std::pair<std::string, int>> host_slowdowns_;
  ComputeBelief compute_ = ComputeBelief::kDataSheet;
  Duration<> least_of_a_sample_;
  OtherTraining other_training_;
  int fitted_nodes_ = 0;
  int fitted_devices_per_node_ = 0;
  std::optional<std::set<CalibratedRange::Exchange>> fitted_exchanges_;
  double total_scatter_ = 0;
  double sync_jitter_ = 0;
  std::optional<CalibratedRange::RateRange> rates_;  // of the fitted runs
  // ln(line rate that the cluster's file states of its links), where runs were fitted to some.
  std::optional<double> log_tested_rate_;
  std::optional<Scatter> scatter_;
};

// The cluster as it was read from `file`, for all who read one: a calibration that Belief would
// refuse is refused then, with the line of the parameter that is wrong.
Cluster WithUsableCalibration(Cluster cluster, const std::string& file);

// Device that a workload runs on: the named one, else that of the data sheet, else the cluster's.
std::string DeviceName(const Cluster& cluster, const std::optional<Device>& facts,
                       const std::string& device);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_BELIEF_H_
