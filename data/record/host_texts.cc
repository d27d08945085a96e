#include "data/record/host_texts.h"

#include <cstddef>
#include <cstdio>

namespace stepcast {

std::set<std::string> KnownHosts(const Cluster& cluster) {
  std::set<std::string> hosts;
  for (const Host& host : cluster.hosts) hosts.insert(host.name);
  if (cluster.calibration) {
    hosts.insert(cluster.calibration->range.hosts_alone.begin(),
                 cluster.calibration->range.hosts_alone.end());
    for (const ParameterEstimate& p : cluster.calibration->parameters) {
      for (const std::string& host : HostsOfScope(p.scope)) hosts.insert(host);
    }
  }
  return hosts;
}

std::vector<std::string> HostsOfAllNodes(const Cluster& cluster, int nodes) {
  if (nodes < cluster.nodes) return {};
  const std::set<std::string> known = KnownHosts(cluster);
  const auto all = static_cast<std::size_t>(nodes);
  if (known.empty() || known.size() > all) return {};
  std::vector<std::string> hosts(known.begin(), known.end());
  hosts.resize(all);
  return hosts;
}

std::string ListedNames(const std::vector<std::string>& names, const char* word) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " " + std::string(word) + " " : ", ";
    text += names[i];
  }
  return text;
}

std::string ComputeText(const ParameterEstimate& slowdown) {
  const std::vector<std::string> names = HostsOfScope(slowdown.scope);
  const bool slower = slowdown.value >= 1;
  char factor[32];
  std::snprintf(factor, sizeof factor, "%.2f", slower ? slowdown.value : 1 / slowdown.value);
  const bool all = names.size() > 1 && !slower;
  std::string text = ListedNames(names, slower ? "or" : "and") +
                     (all ? " compute " : " computes ") + factor + " times " +
                     (slower ? "slower" : "faster");
  if (slowdown.runs > 0) {
    text += " (" + std::to_string(slowdown.runs_nearer) + " of " + std::to_string(slowdown.runs) +
            (slowdown.runs == 1 ? " run)" : " runs)");
  }
  return text;
}

}  // namespace stepcast
