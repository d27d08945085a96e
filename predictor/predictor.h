// The facade: a cluster, a workload and its device, asked about plans.
//
//   Predictor predictor(cluster, *FindWorkload("resnet50"), FindDevice(devices, cluster.device));
//   Plan plan;
//   plan.placement = {1, 1};
//   plan.local_batch = 128;
//   Prediction p = predictor.Predict(plan);
//   p.step_time.in(kMilliseconds);
//
// Parameters are those of the cluster's calibration, else priors: interval and flags tell which.
// Construction reads them once; Predict is const and may be called from many threads.
#ifndef STEPCAST_PREDICTOR_PREDICTOR_H_
#define STEPCAST_PREDICTOR_PREDICTOR_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/record/machine.h"
#include "data/record/workload.h"
#include "predictor/prediction.h"

namespace stepcast {

class Belief;
struct Bucket;
struct Explanation;
struct Activations;
class GradientOrder;
struct PlanAnswer;
class ProfiledCompute;
struct ProfiledSum;
struct StepFacts;
class Recomputation;
class WaitingPaces;
struct WorkloadCounts;
template <class T>
struct StepTerms;

class Predictor {
 public:
  // `device` is what the workload runs on, by default the cluster's: with `facts` as far as its
  // data sheet is known. Compute is a wide prior where nothing tells it: the workload was not
  // calibrated on this device, and it has no layers or the device no data sheet. Throws InputError
  // for a device that nobody knows, and where `profile` is of another workload or device.
  Predictor(Cluster cluster, Workload workload, const std::optional<Device>& facts,
            const std::string& device = "",
            std::shared_ptr<const ProfiledCompute> profile = nullptr);

  // Throws InputError for a plan that no model covers: servers missing or superfluous, hosts that
  // do not match the placement, a number out of range. Loss without a round trip is a flag.
  Prediction Predict(const Plan& plan) const;

  // The step time alone, without interval, traffic, memory and flags.
  StepTime<double> PredictStep(const Plan& plan) const;

  // Every term of one prediction.
  Explanation Explain(const Plan& plan) const;

  // Terms of the closed-form limits; `algorithm`, where given, is what strategy auto stands for.
  StepTerms<double> Terms(const Plan& plan, Strategy* algorithm = nullptr) const;

  // Counts and facts of a plan, with the algorithm that strategy auto stands for. The links are
  // those that the plan, its hosts and the cluster state.
  StepFacts Facts(const Plan& plan) const;
  // Samples a second that a node must get so that no worker waits for them: those of the fullest
  // node in a step with all samples there, and in a cycle of the fast ones where asynchronous
  // workers have two paces.
  SampleRate<> InputNeeded(const Plan& plan) const;
  MemoryNeed Memory(const Plan& plan) const;
  const Activations& activations() const { return *activations_; }
  const std::optional<DataSize<>>& device_memory() const { return device_memory_; }

  const Cluster& cluster() const { return cluster_; }
  const Workload& workload() const { return workload_; }
  const Belief& belief() const { return *belief_; }
  // Null where something else is believed.
  const std::shared_ptr<const ProfiledCompute>& profile() const { return profile_; }
  // What recomputed activations add, at any batch.
  const Recomputation& recomputation() const;
  const std::string& device() const { return device_; }
  ComputeSource compute_source() const { return compute_source_; }
  // The batches that the calibration saw; empty when it saw none.
  const std::optional<CalibratedRange::BatchRange>& calibrated_batches() const {
    return calibrated_batches_;
  }

 private:
  struct Active;  // the parameters that one plan uses: predictor/active.h
  Active ActiveParameters(const Plan& plan) const;
  std::optional<ModelWork> WorkIn(const Plan& plan, SampleRate<> throughput) const;
  void SetInterval(const Plan& plan, const StepFacts& facts, const PlanAnswer& answer,
                   const Active& active, Prediction* prediction) const;
  StepFacts Facts(const Plan& plan, const Active& active, std::string* why = nullptr) const;
  void CheckPlan(const Plan& plan) const;
  // Turns a prediction with all samples there into that of samples so late that a step is `step`.
  void WaitForInput(Duration<> arrival, const WaitingPaces& paces, const StepTime<double>& step,
                    Prediction* prediction) const;
  // Of a prediction with all samples there, that of samples which take `arrival`. `together`: the
  // share of steps in which workers wait for each other; `servers`: of async ones.
  void SetQuantiles(const StepFacts& facts, Duration<> spread_of_micro, double together,
                    const AsyncServers<double>* servers, Duration<> arrival,
                    Prediction* prediction) const;
  void AddFlags(const Plan& plan, const StepFacts& facts, const PlanAnswer& answer,
                const std::optional<ProfiledSum>& profiled, Prediction* prediction) const;
  void AddComputeSourceFlags(const Plan& plan, const PlanAnswer& answer,
                             std::vector<std::string>* flags) const;
  void AddTrainingFlags(std::vector<std::string>* flags) const;
  void AddRangeFlags(const Plan& plan, bool communicates, std::vector<std::string>* flags) const;
  void AddSizeFlags(const Plan& plan, std::vector<std::string>* flags) const;
  void AddHostLinkFlags(const Plan& plan, std::vector<std::string>* flags) const;
  void AddLossFlags(const Plan& plan, const StepFacts& facts, Limiter limiter,
                    std::vector<std::string>* flags) const;
  void AddHostsFlag(const Plan& plan, Prediction* prediction) const;
  void AddComputeFlags(const Plan& plan, std::vector<std::string>* flags) const;
  void AddPeakFlag(Prediction* prediction) const;
  void AddPriorFlag(const Plan& plan, const PlanAnswer& answer, Prediction* prediction) const;
  void AddProfileFlags(const Plan& plan, const ProfiledSum& sum, Prediction* prediction) const;

  Cluster cluster_;
  Workload workload_;
  std::string device_;
  std::optional<DataSize<>> device_memory_;
  std::optional<DataRate<>> memory_bandwidth_;
  std::optional<WorkRate<>> peak_;  // of its data sheet, at the workload's precision
  Work<> forward_flop_;             // of a sample
  Work<> least_flop_;               // of it, where convolutions take the least products
  // Of a workload that has it fused: layers of attention, and those that are such.
  int attention_layers_ = 0;
  int fusable_layers_ = 0;
  bool recomputes_nothing_ = false;                 // for want of blocks
  std::shared_ptr<const ProfiledCompute> profile_;  // null where something else is believed
  std::shared_ptr<const Belief> belief_;
  ComputeSource compute_source_ = ComputeSource::kDataSheet;
  std::optional<CalibratedRange::BatchRange> calibrated_batches_;
  std::vector<std::size_t> slowdowns_;  // of hosts, among the calibration's parameters
  std::shared_ptr<const Activations> activations_;
  std::shared_ptr<const WorkloadCounts> counts_;
  std::shared_ptr<const GradientOrder> gradients_;
  std::shared_ptr<const std::vector<Bucket>> default_buckets_;  // of collectives
  std::shared_ptr<const std::vector<Bucket>> server_buckets_;   // of parameter servers
};

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_PREDICTOR_H_
