#include "data/record/calibration.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "data/record/plan.h"

namespace stepcast {

std::vector<std::string> HostsOfScope(const std::string& scope) {
  const std::string prefix = kHostsScopePrefix;
  std::vector<std::string> hosts;
  if (scope.rfind(prefix, 0) != 0) return hosts;
  std::istringstream joined(scope.substr(prefix.size()));
  for (std::string host; std::getline(joined, host, '+');) hosts.push_back(host);
  return hosts;
}

std::string ComputeText(const ParameterEstimate& slowdown) {
  std::string hosts;
  const std::vector<std::string> names = HostsOfScope(slowdown.scope);
  for (std::size_t i = 0; i < names.size(); ++i) {
    hosts += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  const bool slower = slowdown.value >= 1;
  char factor[32];
  std::snprintf(factor, sizeof factor, "%.2f", slower ? slowdown.value : 1 / slowdown.value);
  std::string text = hosts + (names.size() > 1 ? " compute " : " computes ") + factor + " times " +
                     (slower ? "slower" : "faster");
  if (slowdown.runs > 0) {
    text += " (" + std::to_string(slowdown.runs_nearer) + " of " + std::to_string(slowdown.runs) +
            (slowdown.runs == 1 ? " run)" : " runs)");
  }
  return text;
}

void CalibratedRange::Include(const Plan& plan, const std::string& scope) {
  max_workers = std::max(max_workers, plan.workers());
  max_nodes = std::max(max_nodes, plan.nodes());
  max_devices_per_node = std::max(max_devices_per_node, DevicesOnFullestNode(plan.placement));
  const int batch = plan.local_batch;
  BatchRange& own = local_batch.try_emplace(scope, BatchRange{batch, batch, 0}).first->second;
  own.min = std::min(own.min, batch);
  own.max = std::max(own.max, batch);
  own.max_workers = std::max(own.max_workers, plan.workers());
  if (plan.hosts.size() == 1) hosts_alone.insert(plan.hosts.front());
}

}  // namespace stepcast
