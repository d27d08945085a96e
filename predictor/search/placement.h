// How a number of workers is laid out when nobody says.
#ifndef STEPCAST_PREDICTOR_SEARCH_PLACEMENT_H_
#define STEPCAST_PREDICTOR_SEARCH_PLACEMENT_H_

#include <algorithm>

#include "data/record/plan.h"

namespace stepcast {

// Nodes are filled one after another: 10 workers on nodes of 4 are 4-4-2.
inline Placement FillNodes(int workers, int devices_per_node) {
  Placement placement;
  for (int left = workers; left > 0; left -= devices_per_node) {
    placement.push_back(std::min(left, devices_per_node));
  }
  return placement;
}

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_SEARCH_PLACEMENT_H_
