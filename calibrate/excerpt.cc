#include "calibrate/excerpt.h"

#include <algorithm>
#include <vector>

#include "data/values/workload_scope.h"

namespace stepcast {

Excerpts::Excerpts(const Cluster& cluster) : whole_(cluster), bare_(cluster) {
  bare_.calibration.reset();
}

Cluster Excerpts::Of(const Workload& workload, const std::string& device) const {
  Cluster cluster = bare_;
  if (!whole_.calibration) return cluster;
  const Calibration& all = *whole_.calibration;
  const std::string own = WorkloadScope(workload, device);
  const bool fitted = std::any_of(all.parameters.begin(), all.parameters.end(),
                                  [&](const ParameterEstimate& e) { return e.scope == own; });
  const auto is_kept = [&](const std::string& scope) {
    if (scope.starts_with(kWorkloadScopePrefix)) {
      return fitted ? scope == own : IsOfWorkload(scope, workload.name);
    }
    return !fitted || !scope.starts_with(kDeviceScopePrefix) ||
           scope == kDeviceScopePrefix + device;
  };
  Calibration& part = cluster.calibration.emplace();
  std::vector<Eigen::Index> kept;
  for (std::size_t i = 0; i < all.parameters.size(); ++i) {
    if (!is_kept(all.parameters[i].scope)) continue;
    kept.push_back(static_cast<Eigen::Index>(i));
    part.parameters.push_back(all.parameters[i]);
  }
  part.log_covariance = all.log_covariance(kept, kept);
  part.has_covariance = all.has_covariance;
  if (all.alternatives.rows() > 0) part.alternatives = all.alternatives(Eigen::all, kept);
  part.residual_log_sd = all.residual_log_sd;
  for (const std::string& scope : {own, std::string(kAllScope)}) {
    const auto it = all.scatter.find(scope);
    if (it != all.scatter.end()) part.scatter.insert(*it);
  }
  part.repeat_log_sd = all.repeat_log_sd;
  part.sync_jitter = all.sync_jitter;
  part.range = all.range;
  part.sources = all.sources;
  part.version = all.version;
  return cluster;
}

}  // namespace stepcast
