#include "calibrate/parameter_layout.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "data/plan/check.h"
#include "data/record/input_error.h"
#include "data/units/shortest.h"
#include "data/values/placement.h"
#include "data/values/suggest.h"
#include "data/values/workload_scope.h"
#include "model/compute/sheet_compute.h"
#include "model/step/parameter_specs.h"

namespace stepcast {
namespace {

// Groups of hosts that have a link of their own.
std::vector<std::vector<std::string>> GroupHosts(
    const std::unordered_map<std::string_view, const LinkFacts*>& own_links,
    const std::vector<Run>& runs) {
  // A run on one node says nothing about links.
  HostGroups found = GroupByLayouts(runs, [](const Run& run) { return CrossesNodes(run.plan); });
  std::vector<std::vector<std::string>>& groups = found.groups;
  // Hosts that are all alike are the cluster, and their link is its, unless they state their own.
  const auto has_link = [&](const std::string& host) {
    const auto known = own_links.find(host);
    return known != own_links.end() && known->second->bandwidth;
  };
  if (groups.size() == 1 && !found.some_without_hosts &&
      std::none_of(groups.front().begin(), groups.front().end(), has_link)) {
    groups.clear();
  }
  return groups;
}

}  // namespace

HostGroups GroupByLayouts(const std::vector<Run>& runs,
                          const std::function<bool(const Run&)>& counts) {
  HostGroups result;
  std::map<std::string, std::set<std::size_t>> runs_of;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!counts(runs[i])) continue;
    if (runs[i].plan.hosts.empty()) result.some_without_hosts = true;
    for (const std::string& host : runs[i].plan.hosts) runs_of[host].insert(i);
  }
  // Repeats of one layout must not split a group: compare layouts, not runs.
  std::map<std::vector<std::string>, std::optional<std::size_t>> layouts;
  std::vector<std::optional<std::size_t>*> layout_of;  // by run
  for (const Run& run : runs) {
    std::vector<std::string> hosts = run.plan.hosts;
    std::sort(hosts.begin(), hosts.end());
    layout_of.push_back(&layouts[std::move(hosts)]);
  }
  // Numbered by the names of hosts, so that the order of the rows decides nothing.
  std::size_t numbered = 0;
  std::map<std::string, std::set<std::size_t>> layouts_of;
  for (const auto& [host, indices] : runs_of) {
    for (const std::size_t i : indices) {
      if (!*layout_of[i]) *layout_of[i] = numbered++;
      layouts_of[host].insert(**layout_of[i]);
    }
  }
  std::map<std::set<std::size_t>, std::vector<std::string>> groups;
  for (const auto& [host, seen] : layouts_of) groups[seen].push_back(host);
  for (auto& [seen, hosts] : groups) result.groups.push_back(std::move(hosts));
  return result;
}

ParameterLayout::ParameterLayout(const Cluster& cluster, const std::vector<Run>& runs,
                                 const std::map<std::string, Workload>& workloads,
                                 const std::map<std::string, Device>& devices,
                                 const std::vector<ParameterStatement>& statements) {
  const std::optional<Device> device_of_cluster =
      cluster.device_facts ? cluster.device_facts : DataSheetOf(devices, cluster.device);
  const ClusterPriors cluster_priors = MakeClusterPriors(cluster, device_of_cluster);
  BeginBlock(Kind::kCluster, kClusterParameterCount);
  for (std::size_t i = 0; i < cluster_priors.size(); ++i) {
    Add(kClusterScope, kClusterParameterSpecs[i], cluster_priors[i]);
  }
  std::unordered_map<std::string_view, const LinkFacts*> own_links;
  for (const Host& host : cluster.hosts) own_links.emplace(host.name, &host.link);
  const auto link_prior = [&](const std::string& host) {
    const auto known = own_links.find(host);
    return HostLinkPrior(cluster, device_of_cluster,
                         known == own_links.end() ? LinkFacts() : *known->second);
  };
  for (const std::vector<std::string>& hosts : GroupHosts(own_links, runs)) {
    const int offset = BeginBlock(Kind::kHosts, 1);
    Prior slowest = link_prior(hosts.front());
    for (const std::string& host : hosts) {
      const Prior prior = link_prior(host);
      if (prior.si < slowest.si) slowest = prior;
    }
    for (const std::string& host : hosts) host_offset_[host] = offset;
    Add(kHostsScopePrefix + JoinHosts(hosts), kClusterParameterSpecs[kLinkBandwidth], slowest);
  }
  // By name, so that the order of the rows decides nothing.
  std::map<std::string, const Run*> first_of;
  std::map<std::string, int> smallest_batch;
  for (const Run& run : runs) {
    const std::string scope = ScopeOf(run, workloads);
    const Run& first = *first_of.try_emplace(scope, &run).first->second;
    if (run.workload != first.workload || run.device != first.device) {
      throw InputError({run.place.file, run.place.line, "workload"}, run.workload,
                       "on " + run.device + " would be fitted as what " + first.workload + " on " +
                           first.device + " is: " + scope,
                       "another name for one of the two");
    }
    int& smallest = smallest_batch.try_emplace(scope, run.plan.smallest_batch()).first->second;
    smallest = std::min(smallest, run.plan.smallest_batch());
  }
  std::map<std::string, int> device_offset;
  for (const auto& [scope, first] : first_of) {
    const Run& run = *first;
    if (device_offset.count(run.device) > 0) continue;
    if (!HasSheetTime(workloads.at(run.workload), DataSheetOf(devices, run.device))) continue;
    device_offset[run.device] = BeginBlock(Kind::kDevice, 1);
    Add(kDeviceScopePrefix + run.device, kDeviceSpeedSpec, PriorOf(kDeviceSpeedSpec));
  }
  for (const auto& [scope, first] : first_of) {
    const Run& run = *first;
    const Workload& workload = workloads.at(run.workload);
    const std::optional<Device> device = DataSheetOf(devices, run.device);
    const WorkloadPriors priors = MakeWorkloadPriors(workload, device);
    const int offset = BeginBlock(Kind::kWorkload, kWorkloadParameterCount);
    workload_offset_[run.workload][run.device] = offset;
    for (std::size_t i = 0; i < priors.size(); ++i) {
      Add(scope, kWorkloadParameterSpecs[i], priors[i]);
    }
    FittedParameter& fixed = parameters_[static_cast<std::size_t>(offset + kFixedTime)];
    if (HasSheetTime(workload, device)) {
      FittedParameter& sample = parameters_[static_cast<std::size_t>(offset + kSampleTime)];
      sample.relative_to = device_offset.at(run.device);
      sample.prior.log_sd = kWorkloadSpeedLogSd;
      parameters_[static_cast<std::size_t>(offset + kFloorTime)].prior =
          FloorBesideSamples(priors[kFixedTime].si, priors[kSampleTime].si);
      fixed.prior = FixedBesideSheet(priors[kFixedTime].si);
    } else {
      fixed.times = kFixedToSamples * smallest_batch.at(scope);
      fixed.multiple_of = offset + kSampleTime;
      fixed.prior.log_sd = kFixedToSamplesLogSd;
    }
  }
  for (const ParameterStatement& statement : statements) Apply(statement);
  for (FittedParameter& p : parameters_) {
    if (p.multiple_of < 0) continue;
    p.prior.si = p.times * parameters_[static_cast<std::size_t>(p.multiple_of)].prior.si;
  }
}

int ParameterLayout::BeginBlock(Kind kind, int count) {
  blocks_.push_back({kind, size(), count});
  return blocks_.back().offset;
}

void ParameterLayout::Apply(const ParameterStatement& statement) {
  bool found = false;
  for (FittedParameter& p : parameters_) {
    if (p.spec->name != statement.name) continue;
    if (!statement.workload.empty() && !IsOfWorkload(p.scope, statement.workload)) continue;
    if (statement.workload.empty() && p.scope.starts_with(kHostsScopePrefix)) continue;
    found = true;
    RequireInRange(*p.spec, statement.si, {"", 0, statement.name});
    if (statement.factor && !(*statement.factor > 1)) {
      throw InputError({"", 0, statement.name}, ShortestText(*statement.factor),
                       "is no factor of a prior", "more than 1");
    }
    p.prior.si = statement.si;
    p.prior.log_sd = statement.factor ? std::log(*statement.factor) : p.prior.log_sd;
    p.fixed = !statement.factor;
    p.relative_to = p.multiple_of = -1;
    p.source = statement.source;
  }
  if (found) return;
  const bool of_all = statement.workload.empty();
  const std::string asked = of_all ? statement.name : statement.workload + "/" + statement.name;
  std::vector<std::string> names;
  std::string allowed;
  for (const FittedParameter& p : parameters_) {
    const std::string name(p.spec->name);
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    names.push_back(name);
    allowed += (allowed.empty() ? "" : ", ") + name;
  }
  std::vector<std::string> of_workloads;
  for (const auto& [workload, offsets] : workload_offset_) {
    for (const ParameterSpec& spec : kWorkloadParameterSpecs) {
      of_workloads.push_back(workload + "/" + std::string(spec.name));
    }
  }
  throw InputError(
      {"", 0, "parameter"}, asked,
      "is no parameter of these runs" + DidYouMean(asked, of_all ? names : of_workloads), allowed);
}

int ParameterLayout::AddSlowHosts(const std::vector<std::string>& hosts) {
  const int offset = BeginBlock(Kind::kHosts, 1);
  Add(kHostsScopePrefix + JoinHosts(hosts), kComputeSlowdownSpec, PriorOf(kComputeSlowdownSpec));
  for (const std::string& host : hosts) slowdown_offset_[host] = offset;
  return offset;
}

ParameterLayout::Slowdowns ParameterLayout::SlowdownsOf(const Run& run) const {
  std::set<int> offsets;
  bool others = false;
  for (const std::string& host : run.plan.hosts_at_own_speed()) {
    const auto it = slowdown_offset_.find(host);
    if (it == slowdown_offset_.end()) {
      others = true;
    } else {
      offsets.insert(it->second);
    }
  }
  return {{offsets.begin(), offsets.end()}, others};
}

int ParameterLayout::WorkloadOffset(const Run& run) const {
  return workload_offset_.at(run.workload).at(run.device);
}

std::vector<int> ParameterLayout::HostOffsets(const Run& run) const {
  std::set<int> offsets;  // the order of the hosts decides nothing
  for (const std::string& host : run.plan.hosts) {
    const auto it = host_offset_.find(host);
    if (it != host_offset_.end()) offsets.insert(it->second);
  }
  return {offsets.begin(), offsets.end()};
}

}  // namespace stepcast
