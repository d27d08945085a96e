// What a request is about: by its names, and as it answers.
#ifndef STEPCAST_PREDICTOR_SERVE_TARGET_H_
#define STEPCAST_PREDICTOR_SERVE_TARGET_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "data/record/machine.h"
#include "data/record/workload.h"
#include "predictor/predictor.h"

namespace stepcast::serve {

// `cluster` may be empty where there is one alone, `device` where it is the cluster's. How the
// workload is trained is what it says of itself, but for the words that are stated here, by the
// keys of data/values/training_facts.h. Of a workload that nobody knows `parameters` are enough. A
// job that is followed has said all of it.
struct TargetName {
  std::string cluster;
  std::string workload;
  std::string device;
  std::string job = {};
  std::map<std::string, std::string> training = {};
  std::optional<std::int64_t> parameters = {};
};

// What a target is made of.
struct TargetParts {
  const Cluster& cluster;  // the snapshot's
  Workload workload;
  std::optional<Device> facts;
  std::string device;
};

struct Target {
  std::string key;  // each one's own
  std::optional<Device> facts;
  Predictor predictor;
  // Whether the steps of the job have taught anything; nothing where no job was asked for.
  std::optional<bool> learnt = {};
};

}  // namespace stepcast::serve

#endif  // STEPCAST_PREDICTOR_SERVE_TARGET_H_
