// Where scaling ends for one plan, and which term ends it.
#ifndef STEPCAST_PREDICTOR_SEARCH_LIMITS_H_
#define STEPCAST_PREDICTOR_SEARCH_LIMITS_H_

#include <optional>
#include <string>
#include <vector>

#include "predictor/predictor.h"

namespace stepcast {

struct ScalingPoint {
  int workers = 1;
  Duration<> step_time;
  SampleRate<> throughput;
  double efficiency = 1;  // of weak scaling: throughput / (workers x that of one worker)
};

struct ScalingLimits {
  std::vector<ScalingPoint> curve;  // powers of two, and the last
  int most_workers = 1;             // to which the search went
  // Weak scaling: every worker keeps its batch.
  std::optional<int> worth_it;         // fewest workers (2 or more) that beat a single one
  std::optional<int> half_efficiency;  // fewest workers from which efficiency stays below one half
  std::optional<int> crossing;    // fewest workers whose exposed synchronisation exceeds compute
  int best_workers = 1;           // highest throughput within the search
  double efficiency_at_most = 1;  // at most_workers
  // Strong scaling: the step's samples are shared out.
  int strong_global_batch = 0;
  int strong_best_workers = 1;  // shortest step
  Duration<> strong_best_step;
  Binding strong_binding;          // there
  Binding weak_binding;            // at most_workers
  std::vector<std::string> flags;  // of the prediction at most_workers
  // Closed forms, for the strategies that have them (model/limits/limits.h).
  std::optional<SampleRate<>> server_ceiling;
  std::optional<double> server_half_workers;
  std::optional<double> ring_best_workers;
};

// Scales `plan` by its workers, on as many nodes as that takes, up to `most_workers`; its links,
// batch, accumulation, servers and strategy stay. Hosts are dropped, but the slowest of them sets
// the link. `strong_global_batch` 0 means that of the plan on one full node.
ScalingLimits FindScalingLimits(const Predictor& predictor, const Plan& plan, int devices_per_node,
                                int most_workers, int strong_global_batch = 0);

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_SEARCH_LIMITS_H_
