// All that the jobs of a fleet have learnt: what it is kept as between two processes.
#ifndef STEPCAST_DATA_RECORD_FLEET_RECORD_H_
#define STEPCAST_DATA_RECORD_FLEET_RECORD_H_

#include <optional>
#include <string>
#include <vector>

#include "data/record/calibration.h"
#include "data/record/machine.h"
#include "data/record/online_record.h"
#include "data/record/workload.h"

namespace stepcast {

struct FleetRecord {
  // What a workload's jobs on one device have learnt that are over, or one that is running.
  struct Learnt {
    Workload workload;
    std::optional<Device> facts;
    std::string device;
    OnlineRecord state;
  };
  struct Job {
    std::string name;
    // What the cluster's file and the other jobs knew when it was added.
    std::optional<Calibration> start;
    Learnt learnt;
  };

  std::string cluster;  // its name
  std::vector<Learnt> taught;
  std::vector<Job> jobs;  // that are running
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_FLEET_RECORD_H_
