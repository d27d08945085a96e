// What is counted of a workload, and of the device it is on, once for all of its plans.
#ifndef STEPCAST_MODEL_STEP_WORKLOAD_COUNTS_H_
#define STEPCAST_MODEL_STEP_WORKLOAD_COUNTS_H_

#include <memory>
#include <optional>
#include <utility>

#include "data/record/machine.h"
#include "data/record/workload.h"
#include "model/exchange/sharding.h"
#include "model/step/recomputation.h"

namespace stepcast {

struct WorkloadCounts {
  // What is known of its compute is as in Recomputation.
  explicit WorkloadCounts(const Workload& workload,
                          const std::optional<Device>& device = std::nullopt,
                          std::shared_ptr<const ProfiledCompute> profile = nullptr)
      : recomputation(workload, device, std::move(profile)),
        has_device_links(device && device->device_link) {}

  Recomputation recomputation;
  ShardsOfPlans shards;
  bool has_device_links;  // between devices of a node, by the data sheet
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_WORKLOAD_COUNTS_H_
