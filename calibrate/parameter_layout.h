// Which parameters a set of runs has, in blocks, and where each stands in one vector of ln(value).
#ifndef STEPCAST_CALIBRATE_PARAMETER_LAYOUT_H_
#define STEPCAST_CALIBRATE_PARAMETER_LAYOUT_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/record/calibration.h"
#include "data/record/run.h"
#include "data/record/statement.h"
#include "data/record/workload.h"
#include "model/step/priors.h"

namespace stepcast {

struct FittedParameter {
  std::string scope;
  const ParameterSpec* spec = nullptr;
  Prior prior;
  // The prior is around another parameter's value: ln(value) = ln(prior) + ln(its prior) - ln(its
  // value). -1 where it is around the prior alone.
  int relative_to = -1;
  // The prior is that many times the value of `multiple_of`, within its log_sd.
  double times = 0;
  int multiple_of = -1;
  bool fixed = false;
  std::string source = {};  // of a prior or value that was stated; empty for the table's
};

// Hosts that took part in the same layouts, which nothing can tell apart, as one group.
struct HostGroups {
  std::vector<std::vector<std::string>> groups;
  bool some_without_hosts = false;  // some of the runs name no hosts
};

// `counts` says which of the runs tell about what is asked of the hosts.
HostGroups GroupByLayouts(const std::vector<Run>& runs,
                          const std::function<bool(const Run&)>& counts);

// Blocks: the cluster's parameters first; then the link of each group of hosts; then the efficiency
// of each device; then, for each workload on a device, its curve; and last the compute of the hosts
// that differ from the others in it. Hosts that no run tells apart share one link, because nothing
// could tell their two rates apart either. A workload's time for a sample is believed to be what
// the data sheet says at the efficiency of its device, and what no batch changes to be a share of
// what the samples of its smallest batch take.
class ParameterLayout {
 public:
  // `workloads` by name and `devices` by the name in the runs. Throws InputError for a statement
  // that names no parameter of these runs, or a value out of its range.
  ParameterLayout(const Cluster& cluster, const std::vector<Run>& runs,
                  const std::map<std::string, Workload>& workloads,
                  const std::map<std::string, Device>& devices,
                  const std::vector<ParameterStatement>& statements = {});

  const std::vector<FittedParameter>& parameters() const { return parameters_; }
  int size() const { return static_cast<int>(parameters_.size()); }

  static constexpr int kClusterOffset = 0;
  int WorkloadOffset(const Run& run) const;
  // Offsets of the link parameters of the run's groups of hosts; empty without hosts.
  std::vector<int> HostOffsets(const Run& run) const;

  // Gives these hosts one compute_slowdown; returns its offset, which is the last.
  int AddSlowHosts(const std::vector<std::string>& hosts);
  // What the run's hosts have of these. `others`: some of them compute like most.
  struct Slowdowns {
    std::vector<int> offsets;
    bool others = false;
  };
  Slowdowns SlowdownsOf(const Run& run) const;

  enum class Kind { kCluster, kHosts, kDevice, kWorkload };
  struct Block {
    Kind kind = Kind::kCluster;
    int offset = 0;
    int size = 0;
  };
  const std::vector<Block>& blocks() const { return blocks_; }

 private:
  int BeginBlock(Kind kind, int count);  // returns its offset
  void Add(const std::string& scope, const ParameterSpec& spec, const Prior& prior) {
    parameters_.push_back({scope, &spec, prior});
  }
  void Apply(const ParameterStatement& statement);

  std::vector<FittedParameter> parameters_;
  std::vector<Block> blocks_;
  std::map<std::string, std::map<std::string, int>> workload_offset_;  // by workload and device
  std::map<std::string, int> host_offset_;                             // by host
  std::map<std::string, int> slowdown_offset_;                         // by host
};

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_PARAMETER_LAYOUT_H_
