#include "data/record/calibration.h"

#include <algorithm>

#include "data/record/plan.h"

namespace stepcast {

void CalibratedRange::Include(const Plan& plan, const std::string& scope) {
  max_workers = std::max(max_workers, plan.workers());
  max_nodes = std::max(max_nodes, plan.nodes());
  max_devices_per_node = std::max(max_devices_per_node, DevicesOnFullestNode(plan.placement));
  const int batch = plan.local_batch;
  BatchRange& own = local_batch.try_emplace(scope, BatchRange{batch, batch, 0}).first->second;
  own.min = std::min(own.min, batch);
  own.max = std::max(own.max, batch);
  own.max_workers = std::max(own.max_workers, plan.workers());
}

}  // namespace stepcast
