#include "model/step/alternatives.h"

#include <algorithm>
#include <cmath>

#include "model/statistics/normal.h"
#include "model/step/step.h"

namespace stepcast {

void AlternativeReach::Include(Duration<> believed, Duration<> alternative) {
  if (!(believed.si() > 0 && alternative.si() > 0)) return;  // nothing takes time
  const double sds = std::log(alternative / believed) / kNinetyPercent;
  above_ = std::max(above_, sds);
  below_ = std::max(below_, -sds);
}

double AlternativeReach::VarianceAbove(double variance) const {
  return std::max(variance, above_ * above_);
}

double AlternativeReach::VarianceBelow(double variance) const {
  return std::max(variance, below_ * below_);
}

void AlternativeReaches::Include(Duration<> believed_step, Duration<> believed_compute,
                                 const StepTime<double>& alternative) {
  step.Include(believed_step, alternative.total());
  compute.Include(believed_compute, alternative.compute());
}

std::vector<PlanParameters> AlternativesOf(const Belief& belief, const Belief::AtHosts& hosts) {
  std::vector<PlanParameters> alternatives;
  for (Eigen::Index k = 0; k < belief.log_alternatives().cols(); ++k) {
    const double* const at = belief.log_alternatives().col(k).data();
    alternatives.push_back(
        PlanParameters::FromLogs(at, at + Belief::kWorkloadOffset, at + hosts.link,
                                 hosts.slowdown ? at + *hosts.slowdown : nullptr));
  }
  return alternatives;
}

AlternativeReaches ReachesOf(const Belief& belief, const Belief::AtHosts& hosts,
                             const StepFacts& facts, const StepTime<double>& step) {
  AlternativeReaches reaches;
  for (const auto& [cluster, workload] : AlternativesOf(belief, hosts)) {
    reaches.Include(step.total(), step.compute(), EvaluateStep(facts, cluster, workload));
  }
  return reaches;
}

}  // namespace stepcast
