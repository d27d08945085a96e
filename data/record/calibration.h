// The outcome of a calibration: parameters of a cluster with covariance, range and provenance.
#ifndef STEPCAST_DATA_RECORD_CALIBRATION_H_
#define STEPCAST_DATA_RECORD_CALIBRATION_H_

#include <Eigen/Core>
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "data/record/link.h"
#include "data/record/plan.h"
#include "data/record/scatter.h"
#include "data/record/strategy.h"
#include "data/units/quantity.h"

namespace stepcast {

struct Cluster;

// Who decided a fitted value. The variance of ln(value) after the fit is compared with the variance
// before it: the data decided when they removed at least three quarters of it, the prior when they
// removed less than one quarter.
// kStated: somebody fixed the value.
enum class DecidedBy { kData, kBoth, kPrior, kStated };
inline constexpr const char* kDecidedByNames[] = {"data", "both", "prior", "stated"};

// Who decided a value that nobody stated.
inline DecidedBy WhatDecided(double log_sd, double prior_log_sd) {
  const double kept = log_sd * log_sd / (prior_log_sd * prior_log_sd);
  return kept < 0.25 ? DecidedBy::kData : kept < 0.75 ? DecidedBy::kBoth : DecidedBy::kPrior;
}

// What a parameter belongs to, as files and reports write it: "cluster", "hosts tupi5+tupi6",
// "device rtx_4090", "workload gpt2 (bf16) on rtx_4090" (data/values/workload_scope.h).
inline constexpr const char* kAllScope = "all";  // of scatter that all workloads share
inline constexpr const char* kClusterScope = "cluster";
inline constexpr const char* kDeviceScopePrefix = "device ";
inline constexpr const char* kHostsScopePrefix = "hosts ";
inline constexpr const char* kWorkloadScopePrefix = "workload ";

// The hosts of a scope "hosts a+b"; none of another scope.
std::vector<std::string> HostsOfScope(const std::string& scope);

// One fitted parameter. All are positive and are fitted as ln(value / unit).
struct ParameterEstimate {
  std::string scope;
  std::string name;   // "link_bandwidth"
  std::string unit;   // "GB/s"; empty for a plain number
  double value = 0;   // in that unit
  double log_sd = 0;  // standard error of ln(value); value * log_sd is that of the value
  // 95 % interval in that unit, as far as the cost says: wider than value exp(+-1.96 log_sd), and
  // not symmetric, where what the runs show is a sum of which the value is a small part. 0 and 0
  // where no fit has told.
  double low = 0;
  double high = 0;
  double prior_value = 0;
  double prior_log_sd = 0;
  std::string prior_source;  // where somebody stated it; empty for the table's
  DecidedBy decided_by = DecidedBy::kPrior;
  // Of a host's compute, and of a link slower than was believed: the runs that it held back, and
  // those of them that it brings nearer; bare messages between the same hosts are one run. 0 of
  // others.
  int runs = 0;
  int runs_nearer = 0;
  int line = 0;  // of the file that it was read from
};

// The box that the fitted runs span. Outside it a prediction is an extrapolation and says so.
struct CalibratedRange {
  int max_workers = 0;
  int max_nodes = 0;
  int max_devices_per_node = 0;
  // A step that has run, and so fits in memory: what of its plan decides how much it needed. What
  // nobody has said, as older files have not, is what needs the least.
  struct Ran {
    Shard shard{};  // as ShardInMemory has it; none where there is one sharer
    int sharers = 1;
    int local_batch = 0;          // samples of its largest micro-step
    int bytes_per_parameter = 0;  // that were exchanged; 0 of a worker that was alone
    Compression compress = {};
    std::optional<DataSize<>> bucket = {};  // stated cap of the units that are whole at a time

    bool operator==(const Ran&) const = default;
    // Whether another needs no more than this.
    bool Covers(const Ran& other) const;
  };
  // The batches of one workload's own runs.
  struct BatchRange {
    int min = 0;
    int max = 0;
    int max_workers = 0;  // 0 where a file does not say
    // Steps of which no other tells as much. None where the largest batch says it all: each of
    // max_workers has run it with the whole model and gradients in 32 bits.
    std::vector<Ran> ran = {};

    std::vector<Ran> WhatRan() const;
    // Whether it is more than that.
    bool tells_more_than_batches() const;
    // Beyond kMostRan of them, more are forgotten.
    void AddRan(const Ran& step);
  };
  static constexpr std::size_t kMostRan = 64;
  std::map<std::string, BatchRange> local_batch;  // by the workload's scope
  // The line rates of links that runs had, where they or their cluster file stated them.
  struct RateRange {
    DataRate<> min;
    DataRate<> max;
  };
  std::optional<RateRange> bandwidth;
  std::set<std::string> hosts_alone;  // those that were measured by themselves
  // How the gradients of a run were exchanged.
  struct Exchange {
    Strategy strategy = Strategy::kNone;
    std::optional<Transport> transport = {};  // none where no byte left its node

    auto operator<=>(const Exchange&) const = default;  // NOLINT: as in operation.h
  };
  // Those of all runs; unknown where a file with runs does not say.
  std::optional<std::set<Exchange>> exchanges;

  // Empty for a workload of which no run was fitted.
  std::optional<BatchRange> BatchesOf(const std::string& scope) const;

  // Whether it spans no run.
  bool empty() const { return max_workers == 0; }
  // Grows by a run of the workload of that scope, or of a bare message, which tells of the network
  // alone. Workers that exchange nothing are many runs of one node.
  void Include(const Cluster& cluster, const Plan& plan, const std::string& scope);
  void IncludeMessage(const Cluster& cluster, const Plan& plan);
  // Grows by the runs that another spans.
  void Include(const CalibratedRange& other);
};

struct Calibration {
  std::vector<ParameterEstimate> parameters;
  Eigen::MatrixXd log_covariance;  // of ln(value), in the order of `parameters`
  // False where a file has none, or no more than variances: what a fit knows together is then taken
  // as known apart, and intervals are too wide or too narrow.
  bool has_covariance = true;
  // Other explanations of the runs, a row each: ln(value there / value) of every parameter, where
  // the 90 % range of one of them ends and that is not where the covariance says.
  Eigen::MatrixXd alternatives;
  // Scatter of one more step: the standard deviation of the normal law that holds nine tenths of
  // |ln(measured / predicted)| within the same bound as the fitted runs do.
  double residual_log_sd = 0;
  // Scatter of compute and of synchronisation apart: for each workload by its scope, for all
  // together by kAllScope. Where there is none, every step scatters by residual_log_sd.
  std::map<std::string, Scatter> scatter;
  // Scatter of runs of one plan among themselves, where there were any.
  std::optional<double> repeat_log_sd;
  // By what share of itself exposed synchronisation differs from step to step (standard deviation),
  // where runs told how their steps differ.
  std::optional<double> sync_jitter;
  CalibratedRange range;
  struct Source {
    std::string file;
    int runs = 0;
  };
  std::vector<Source> sources;
  std::string version;  // of the program that fitted

  // Index of an estimate; empty where there is none.
  std::optional<int> Find(const std::string& scope, std::string_view name) const {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].scope == scope && parameters[i].name == name) return static_cast<int>(i);
    }
    return std::nullopt;
  }

  // Scatter of the workload by its parts, else that of all workloads; empty where none was
  // estimated.
  std::optional<Scatter> ScatterOf(const std::string& scope) const {
    for (const std::string& whose : {scope, std::string(kAllScope)}) {
      const auto it = scatter.find(whose);
      if (it != scatter.end()) return it->second;
    }
    return std::nullopt;
  }
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_CALIBRATION_H_
