// One worker of a plan by itself, with nobody to exchange with: what the whole is held against.
#ifndef STEPCAST_PREDICTOR_SEARCH_ONE_WORKER_H_
#define STEPCAST_PREDICTOR_SEARCH_ONE_WORKER_H_

#include "data/plan/check.h"
#include "data/record/plan.h"

namespace stepcast {

// At the plan's batch and accumulation, on a host that nobody names.
inline Plan OneWorkerOf(const Plan& plan) {
  Plan one = WithStrategy(plan, Strategy::kNone);
  one.placement = {1};
  one.hosts.clear();
  return one;
}

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_SEARCH_ONE_WORKER_H_
