// The model's answer to plans of one workload, from what is believed of a cluster, with derivatives
// by all that is believed: what the choice of runs, findings on runs and online calibration ask.
#ifndef STEPCAST_MODEL_STEP_BELIEVED_MODEL_H_
#define STEPCAST_MODEL_STEP_BELIEVED_MODEL_H_

#include <Eigen/Core>
#include <memory>
#include <optional>
#include <string>

#include "data/record/machine.h"
#include "data/record/workload.h"
#include "model/step/belief.h"
#include "model/step/step.h"
#include "model/step/workload_counts.h"

namespace stepcast {

class BelievedModel {
 public:
  // `facts` and `device` as for Predictor. Throws InputError as Belief does.
  BelievedModel(const Cluster& cluster, const Workload& workload,
                const std::optional<Device>& facts, const std::string& device);

  // What is counted of a plan, to be asked again and again. Strategy auto is taken as allreduce.
  // Throws InputError for a plan that no model covers.
  StepFacts Facts(const Plan& plan) const;

  struct Answer {
    double log_step = 0;       // ln(s)
    double sync_share = 0;     // exposed synchronisation and wait, as a share of the step
    double scatter = 0;        // standard deviation of ln(measured / predicted) of one step
    Eigen::VectorXd gradient;  // of log_step, by the belief's ln(SI value)
  };

  // The answer to Facts(plan), at the values that are believed.
  Answer Evaluate(const Plan& plan) const;

  const Cluster& cluster() const { return cluster_; }
  const Belief& belief() const { return belief_; }
  const Workload& workload() const { return workload_; }
  const std::string& device() const { return device_; }

 private:
  Cluster cluster_;
  Workload workload_;
  std::string device_;
  std::optional<DataRate<>> memory_bandwidth_;  // of the device, where it is known
  Belief belief_;
  mutable BucketsOfPlans buckets_;
  std::shared_ptr<const WorkloadCounts> counts_;
};

// Throws InputError where nothing tells the compute time and nobody knows the device: it has no
// facts and is not the cluster's. Of a device that is known, or a workload without layers to count
// work from, compute is a wide prior.
void CheckDeviceIsKnown(const Belief& belief, const Workload& workload, const Cluster& cluster,
                        const std::optional<Device>& facts, const std::string& device);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_BELIEVED_MODEL_H_
