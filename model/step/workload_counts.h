// What is counted of a workload once for all of its plans.
#ifndef STEPCAST_MODEL_STEP_WORKLOAD_COUNTS_H_
#define STEPCAST_MODEL_STEP_WORKLOAD_COUNTS_H_

#include "data/record/blocks.h"
#include "data/record/workload.h"
#include "model/exchange/sharding.h"

namespace stepcast {

struct WorkloadCounts {
  explicit WorkloadCounts(const Workload& workload) : recomputed(RecomputedShare(workload)) {}

  double recomputed;  // share of the forward pass that the backward pass runs once more
  ShardsOfPlans shards;
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_WORKLOAD_COUNTS_H_
