#include "model/step/believed_model.h"

#include "data/record/input_error.h"
#include "model/step/answer.h"

namespace stepcast {

BelievedModel::BelievedModel(const Cluster& cluster, const Workload& workload,
                             const std::optional<Device>& facts, const std::string& device)
    : cluster_(cluster),
      workload_(workload),
      device_(DeviceName(cluster, facts, device)),
      memory_bandwidth_(facts ? facts->memory_bandwidth : std::nullopt),
      belief_(cluster, workload, facts, device_),
      counts_(std::make_shared<const WorkloadCounts>(workload_, facts)) {
  cluster_.calibration.reset();  // all that is needed of it is the belief
}

void CheckDeviceIsKnown(const Belief& belief, const Workload& workload, const Cluster& cluster,
                        const std::optional<Device>& facts, const std::string& device) {
  if (belief.compute() != ComputeBelief::kPrior || workload.communication_only || facts ||
      device == cluster.device) {
    return;
  }
  throw InputError(
      {"", 0, "device"}, device,
      "is known to nobody: it has no data sheet, and no run of " + workload.name +
          " was fitted on it",
      "the cluster's own (" + cluster.device + "), or one that stepcast machines lists");
}

StepFacts BelievedModel::Facts(const Plan& plan) const {
  if (plan.bucket) CheckBucketCap(workload_, *plan.bucket);
  StepFacts facts = MakeStepFacts(cluster_, plan, workload_, buckets_.Of(workload_, plan),
                                  memory_bandwidth_, counts_.get());
  if (TraitsOf(facts.strategy).to_be_chosen) facts.strategy = Strategy::kAllreduce;
  return facts;
}

BelievedModel::Answer BelievedModel::Evaluate(const Plan& plan) const {
  const Belief::AtHosts hosts = belief_.SlowestOf(plan);
  const PlanModel model(Facts(plan));
  const PlanAnswer answer = model.Answer(belief_.ParametersAt(hosts), Derivatives::kAll);
  return {answer.log_step, answer.sync_share, belief_.ScatterOf(model.facts(), answer.sync_share),
          belief_.ByPosition(answer.log_step_gradient, hosts)};
}

}  // namespace stepcast
