// The residual of one run: a subtraction and a weight. The physics is the model's own, with the
// scalar that the solver brings.
#ifndef STEPCAST_CALIBRATE_STEP_RESIDUAL_H_
#define STEPCAST_CALIBRATE_STEP_RESIDUAL_H_

#include <cmath>

#include "model/step/step.h"

namespace stepcast {

// Parameter blocks, all ln(SI value): the cluster's, the workload's, then the links of the run's
// host groups, of which the slowest counts.
struct StepResidual {
  StepFacts facts;
  double log_measured = 0;  // ln(s)
  double weight = 1;
  int host_groups = 0;

  template <class T>
  T LogPredicted(T const* const* blocks) const {
    using std::exp;
    using std::log;
    ClusterParameters<T> cluster{};
    for (std::size_t i = 0; i < cluster.si.size(); ++i) cluster.si[i] = exp(blocks[0][i]);
    WorkloadParameters<T> workload{};
    for (std::size_t i = 0; i < workload.si.size(); ++i) workload.si[i] = exp(blocks[1][i]);
    for (int h = 0; h < host_groups; ++h) {
      const T link = exp(blocks[2 + h][0]);
      if (h == 0 || link < cluster.node_link_si) cluster.node_link_si = link;
    }
    return log(EvaluateStep(facts, cluster, workload).total().si());
  }

  template <class T>
  bool operator()(T const* const* blocks, T* residual) const {
    residual[0] = (LogPredicted(blocks) - log_measured) * weight;
    return true;
  }
};

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_STEP_RESIDUAL_H_
