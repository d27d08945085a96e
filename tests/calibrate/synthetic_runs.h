// Runs whose parameters are known, because the formula made them: what a fit should find again.
#ifndef STEPCAST_TESTS_CALIBRATE_SYNTHETIC_RUNS_H_
#define STEPCAST_TESTS_CALIBRATE_SYNTHETIC_RUNS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/calibrate.h"
#include "data/record/calibration.h"
#include "data/workloads/catalog.h"
#include "model/statistics/normal.h"
#include "model/step/parameter_specs.h"
#include "model/step/priors.h"
#include "model/step/step.h"

namespace stepcast {

inline constexpr const char* kSyntheticDevice = "t4";

// Of a workload that is trained as is the default.
inline std::string ScopeOfSynthetic(const std::string& workload) {
  return kWorkloadScopePrefix + workload + " on " + kSyntheticDevice;
}

// Values that a cluster could have: each differs from its prior, by less than twice its spread.
struct Truth {
  ClusterParameters<double> cluster = {};
  std::map<std::string, WorkloadParameters<double>> workloads;
  std::map<std::string, DataRate<>> host_links;
  std::map<std::string, double> host_slowdowns;  // of the others there is none

  // The true value of what `estimate` estimates, in its unit.
  double ValueOf(const ParameterEstimate& estimate) const {
    const auto find = [&](const auto& specs, const auto& values) {
      for (std::size_t i = 0; i < specs.size(); ++i) {
        if (specs[i].name == estimate.name) return values.si[i] / specs[i].si_per_unit;
      }
      throw std::logic_error("no parameter " + estimate.name);
    };
    if (estimate.scope == kClusterScope) return find(kClusterParameterSpecs, cluster);
    for (const auto& [name, values] : workloads) {
      if (estimate.scope == ScopeOfSynthetic(name)) {
        return find(kWorkloadParameterSpecs, values);
      }
    }
    // "hosts a+b": all of them have one link.
    const std::size_t begin = std::string(kHostsScopePrefix).size();
    const std::string host = estimate.scope.substr(begin, estimate.scope.find('+', begin) - begin);
    if (estimate.name == kComputeSlowdownSpec.name) {
      const auto slow = host_slowdowns.find(host);
      return slow == host_slowdowns.end() ? 1 : slow->second;
    }
    return host_links.at(host).in(kGigabitsPerSecond);
  }
};

template <std::size_t n, class Specs>
std::array<double, n> SiValues(const Specs& specs, const std::array<double, n>& in_units) {
  std::array<double, n> si{};
  for (std::size_t i = 0; i < n; ++i) si[i] = in_units[i] * specs[i].si_per_unit;
  return si;
}

inline Truth PlausibleTruth() {
  Truth truth;
  // In the order and units of the specs: link and flow Gbit/s, host GB/s, latencies us, overheads
  // ms, sharing, spread, mesh share, contention, overlap, initiation us, server GB/s, rounds,
  // window MB, timeout ms, contention.
  truth.cluster.si = SiValues<kClusterParameterCount>(
      kClusterParameterSpecs,
      {9, 5, 7, 80, 3, 12, 1.0, 0.4, 0.1, 0.3, 0.75, 0.02, 0.5, 60, 2, 0.02, 2, 150, 0.04});
  const auto workload = [&](const char* name, double fixed_ms, double floor_ms, double sample_ms,
                            double spread, double update_ms) {
    truth.workloads[name].si = SiValues<kWorkloadParameterCount>(
        kWorkloadParameterSpecs, {fixed_ms, floor_ms, sample_ms, spread, update_ms});
  };
  workload("resnet50", 12, 25, 5, 0.04, 2);
  workload("bert_base", 20, 60, 40, 0.03, 8);
  workload("resnet18_cifar10", 6, 12, 0.35, 0.08, 1);
  return truth;
}

inline Cluster SyntheticCluster() {
  Cluster cluster;
  cluster.name = cluster.title = "synthetic";
  cluster.device = kSyntheticDevice;
  cluster.nodes = 16;
  cluster.devices_per_node = 4;
  return cluster;
}

// Hosts of these names, each with that link where it is stated.
inline void AddHosts(const std::vector<std::string>& names, std::optional<DataRate<>> bandwidth,
                     Cluster* cluster) {
  for (const std::string& name : names) {
    Host host;
    host.name = name;
    host.link.bandwidth = bandwidth;
    cluster->hosts.push_back(host);
  }
}

// The cluster as a perfect calibration would leave it: the true values, each with the standard
// error `log_sd` in ln(value), all independent.
inline Cluster CalibratedCluster(const Truth& truth, double log_sd = 0.02) {
  Cluster cluster = SyntheticCluster();
  Calibration calibration;
  calibration.version = "0";
  calibration.residual_log_sd = 0.03;
  calibration.sources = {{"synthetic.csv", 100}};
  calibration.range.max_workers = 32;
  calibration.range.max_nodes = 8;
  calibration.range.max_devices_per_node = 4;
  const auto add = [&](const std::string& scope, const ParameterSpec& spec) {
    ParameterEstimate p;
    p.scope = scope;
    p.name = spec.name;
    p.unit = spec.unit;
    p.value = truth.ValueOf(p);
    p.log_sd = log_sd;
    p.prior_value = spec.prior;
    p.prior_log_sd = spec.prior_log_sd;
    p.decided_by = DecidedBy::kData;
    calibration.parameters.push_back(p);
  };
  for (const ParameterSpec& spec : kClusterParameterSpecs) add(kClusterScope, spec);
  for (const auto& [host, link] : truth.host_links) {
    add(kHostsScopePrefix + host, kClusterParameterSpecs[kLinkBandwidth]);
    AddHosts({host}, std::nullopt, &cluster);
  }
  for (const auto& [host, slowdown] : truth.host_slowdowns) {
    add(kHostsScopePrefix + host, kComputeSlowdownSpec);
  }
  for (const auto& [name, values] : truth.workloads) {
    const std::string scope = ScopeOfSynthetic(name);
    for (const ParameterSpec& spec : kWorkloadParameterSpecs) add(scope, spec);
    calibration.range.local_batch[scope] = {8, 64, 32};
  }
  const auto size = static_cast<Eigen::Index>(calibration.parameters.size());
  calibration.log_covariance = log_sd * log_sd * Eigen::MatrixXd::Identity(size, size);
  cluster.calibration = calibration;
  return cluster;
}

// Standard normal numbers, the same on every platform.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : engine_(seed) {}

  double Next() {
    const double uniform = (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53;
    return NormalQuantile(uniform);
  }

 private:
  std::mt19937_64 engine_;
};

// A value of the prior that is within the parameter's range.
inline double DrawFrom(const Prior& prior, const ParameterSpec& spec, Noise* noise) {
  for (int i = 0; i < 100; ++i) {
    const double si = prior.si * std::exp(prior.log_sd * noise->Next());
    const double value = si / spec.si_per_unit;
    if (value >= spec.low && value <= spec.high) return si;
  }
  return prior.si;
}

// The problem that `Add` fills with runs of the truth.
class SyntheticProblem {
 public:
  explicit SyntheticProblem(Truth truth, Cluster cluster = SyntheticCluster())
      : truth_(std::move(truth)) {
    problem_.cluster = std::move(cluster);
    for (const auto& [name, values] : truth_.workloads) {
      problem_.workloads[name] = *FindWorkload(name);
    }
  }

  // The step without noise. Named hosts set the link and the compute by the slowest of them.
  Duration<> TrueStep(const std::string& workload, const Plan& plan) const {
    ClusterParameters<double> cluster = truth_.cluster;
    for (std::size_t i = 0; i < plan.hosts.size(); ++i) {
      const double link = truth_.host_links.at(plan.hosts[i]).si();
      cluster.node_link_si = i == 0 ? link : std::min(link, *cluster.node_link_si);
      const auto slow = truth_.host_slowdowns.find(plan.hosts[i]);
      const double slowdown = slow == truth_.host_slowdowns.end() ? 1 : slow->second;
      cluster.node_slowdown = i == 0 ? slowdown : std::max(slowdown, *cluster.node_slowdown);
    }
    const Workload& network = problem_.workloads.at(workload);
    const StepFacts facts = MakeStepFacts(problem_.cluster, plan, network,
                                          std::make_shared<const std::vector<Bucket>>(MakeBuckets(
                                              network, BucketCap(plan, network.gradient_bytes))));
    return EvaluateStep(facts, cluster, truth_.workloads.at(workload)).total();
  }

  void Add(const std::string& workload, const Plan& plan, double log_noise = 0) {
    Run run;
    run.workload = workload;
    run.device = kSyntheticDevice;
    run.plan = plan;
    run.step_time = TrueStep(workload, plan) * std::exp(log_noise);
    run.place = {"synthetic.csv", static_cast<int>(problem_.runs.size()) + 2, ""};
    problem_.runs.push_back(std::move(run));
  }

  const Truth& truth() const { return truth_; }
  const CalibrationProblem& problem() const { return problem_; }
  CalibrationProblem& problem() { return problem_; }

 private:
  Truth truth_;
  CalibrationProblem problem_;
};

inline Plan AllreducePlan(Placement placement, int batch) {
  Plan plan;
  plan.placement = std::move(placement);
  plan.strategy = plan.workers() == 1 ? Strategy::kNone : Strategy::kAllreduce;
  plan.local_batch = batch;
  return plan;
}

inline const std::vector<int>& SyntheticBatches(const std::string& workload) {
  static const std::map<std::string, std::vector<int>> batches = {
      {"resnet50", {2, 8, 24, 64}},
      {"bert_base", {1, 3, 6, 12}},
      {"resnet18_cifar10", {16, 64, 256, 1024}}};
  return batches.at(workload);
}

// Adds the runs that a fit learns from: all workloads on `placements` at all batches, accumulation,
// and parameter servers. `noise` is the standard deviation of ln(measured / true).
inline void AddCampaign(SyntheticProblem* synthetic, const std::vector<Placement>& placements,
                        double noise, std::uint64_t seed) {
  Noise normal(seed);
  const auto add = [&](const std::string& workload, const Plan& plan) {
    synthetic->Add(workload, plan, noise * normal.Next());
  };
  for (const auto& [workload, values] : synthetic->truth().workloads) {
    for (const int batch : SyntheticBatches(workload)) {
      for (const Placement& placement : placements) add(workload, AllreducePlan(placement, batch));
      Plan accumulating = AllreducePlan({1, 1, 1, 1}, batch);
      accumulating.accumulation_steps = 4;
      add(workload, accumulating);
      for (const int servers : {1, 2, 4}) {
        Plan plan = AllreducePlan({1, 1, 1, 1, 1, 1, 1, 1}, batch);
        plan.strategy = Strategy::kPsSync;
        plan.servers = servers;
        add(workload, plan);
      }
    }
  }
}

inline std::vector<Placement> FittedPlacements() {
  return {{1},       {2},       {4},          {1, 1},          {2, 2},         {4, 4},
          {1, 1, 1}, {2, 2, 2}, {4, 4, 4, 4}, Placement(8, 1), Placement(8, 4)};
}

inline std::vector<Placement> HeldOutPlacements() {
  return {
      {3}, {3, 3}, {2, 2, 2, 2}, {4, 4, 4}, Placement(6, 2), Placement(16, 1), Placement(16, 4)};
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_CALIBRATE_SYNTHETIC_RUNS_H_
