#include "calibrate/parameter_layout.h"

#include <algorithm>
#include <set>

#include "data/io/parse.h"

namespace stepcast {
namespace {

// Hosts by the set of runs that they took part in: equal sets cannot be told apart.
std::map<std::set<std::size_t>, std::vector<std::string>> GroupHosts(const std::vector<Run>& runs) {
  std::map<std::string, std::set<std::size_t>> runs_of;
  bool some_without_hosts = false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    // A run on one node says nothing about links.
    if (runs[i].plan.nodes() < 2 && !UsesServers(runs[i].plan.strategy)) continue;
    if (runs[i].plan.hosts.empty()) some_without_hosts = true;
    for (const std::string& host : runs[i].plan.hosts) runs_of[host].insert(i);
  }
  // Repeats of one layout must not split a group: compare layouts, not runs.
  std::map<std::vector<std::string>, std::size_t> layouts;
  std::map<std::string, std::set<std::size_t>> layouts_of;
  for (const auto& [host, indices] : runs_of) {
    for (const std::size_t i : indices) {
      std::vector<std::string> hosts = runs[i].plan.hosts;
      std::sort(hosts.begin(), hosts.end());
      layouts_of[host].insert(layouts.try_emplace(hosts, layouts.size()).first->second);
    }
  }
  std::map<std::set<std::size_t>, std::vector<std::string>> groups;
  for (const auto& [host, seen] : layouts_of) groups[seen].push_back(host);
  // Hosts that are all alike are the cluster, and their link is its link.
  if (groups.size() == 1 && !some_without_hosts) groups.clear();
  return groups;
}

}  // namespace

ParameterLayout::ParameterLayout(const Cluster& cluster, const std::vector<Run>& runs,
                                 const std::map<std::string, Workload>& workloads,
                                 const std::map<std::string, Device>& devices) {
  const auto begin_block = [&](int size) {
    blocks_.push_back({static_cast<int>(parameters_.size()), size});
    return blocks_.back().offset;
  };
  const ClusterPriors cluster_priors = MakeClusterPriors(cluster);
  begin_block(kClusterParameterCount);
  for (std::size_t i = 0; i < cluster_priors.size(); ++i) {
    parameters_.push_back({kClusterScope, &kClusterParameterSpecs[i], cluster_priors[i]});
  }
  for (const auto& [layouts, hosts] : GroupHosts(runs)) {
    const int offset = begin_block(1);
    Prior slowest = HostLinkPrior(cluster, hosts.front());
    for (const std::string& host : hosts) {
      const Prior prior = HostLinkPrior(cluster, host);
      if (prior.si < slowest.si) slowest = prior;
    }
    for (const std::string& host : hosts) host_offset_[host] = offset;
    parameters_.push_back(
        {kHostsScopePrefix + JoinHosts(hosts), &kClusterParameterSpecs[kLinkBandwidth], slowest});
  }
  for (const Run& run : runs) {
    const std::string scope = WorkloadScope(run.workload, run.device);
    if (workload_offset_.count(scope) > 0) continue;
    const auto device = devices.find(run.device);
    const WorkloadPriors priors =
        MakeWorkloadPriors(workloads.at(run.workload),
                           device == devices.end() ? std::optional<Device>() : device->second);
    workload_offset_[scope] = begin_block(kWorkloadParameterCount);
    for (std::size_t i = 0; i < priors.size(); ++i) {
      parameters_.push_back({scope, &kWorkloadParameterSpecs[i], priors[i]});
    }
  }
}

int ParameterLayout::WorkloadOffset(const Run& run) const {
  return workload_offset_.at(WorkloadScope(run.workload, run.device));
}

std::vector<int> ParameterLayout::HostOffsets(const Run& run) const {
  std::vector<int> offsets;
  for (const std::string& host : run.plan.hosts) {
    const auto it = host_offset_.find(host);
    if (it == host_offset_.end()) continue;
    if (std::find(offsets.begin(), offsets.end(), it->second) == offsets.end()) {
      offsets.push_back(it->second);
    }
  }
  return offsets;
}

}  // namespace stepcast
