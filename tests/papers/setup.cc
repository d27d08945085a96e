#include "tests/papers/setup.h"

#include <cmath>
#include <stdexcept>
#include <utility>

#include "data/io/machines.h"
#include "data/values/workload_scope.h"
#include "data/workloads/catalog.h"
#include "model/step/priors.h"

namespace stepcast::papers {
namespace {

const std::string kMachines = std::string(STEPCAST_SOURCE_DIR) + "/data/machines/";
// The measured scatter of a step plays no part here: no intervals are asked for.
constexpr double kStepScatter = 0.06;

// The x in [low, high] with f(x) = wanted, f monotone; the better end where there is none.
double SolveMonotone(double low, double high, double wanted,
                     const std::function<double(double)>& f) {
  const double at_low = f(low) - wanted;
  const double at_high = f(high) - wanted;
  if (at_low * at_high > 0) return std::abs(at_low) < std::abs(at_high) ? low : high;
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = std::sqrt(low * high);
    ((f(middle) - wanted) * at_low > 0 ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

}  // namespace

Setup::Setup(const std::string& machine, bool data_sheet)
    : cluster_(ReadCluster(kMachines + machine + ".yaml")) {
  if (!data_sheet) return;
  device_ = FindDevice(ReadDevices(kMachines + "gpus.yaml"), cluster_.device);
  if (!device_) throw std::runtime_error("no device " + cluster_.device);
}

const ParameterSpec& Setup::Spec(const Key& key) const {
  const auto i = static_cast<std::size_t>(key.parameter);
  return key.workload.empty() ? kClusterParameterSpecs[i] : kWorkloadParameterSpecs[i];
}

void Setup::Set(const Key& key, double value) {
  values_[key] = value;
  predictors_.clear();
}

void Setup::Give(ClusterParameter parameter, double value, const std::string& source) {
  const Key key{"", parameter};
  Set(key, value);
  lines_.push_back(
      {std::string(Spec(key).name), value, std::string(Spec(key).unit), source, false});
}

void Setup::Give(const std::string& workload, WorkloadParameter parameter, double value,
                 const std::string& source) {
  const Key key{workload, parameter};
  Set(key, value);
  lines_.push_back({std::string(Spec(key).name) + " of " + workload, value,
                    std::string(Spec(key).unit), source, false});
}

void Setup::GiveMemory(DataSize<> memory, const std::string& source) {
  device_.value().memory = memory;
  cluster_.device_facts = device_;
  predictors_.clear();
  lines_.push_back({"memory of " + cluster_.device, memory.in(kGigabytes), "GB", source, false});
}

void Setup::Solve(const Key& key, const std::string& rows, double wanted, const Answer& answer) {
  const ParameterSpec& spec = Spec(key);
  const double value = SolveMonotone(spec.low, spec.high, wanted, [&](double x) {
    Set(key, x);
    return answer(*this);
  });
  Set(key, value);
  const std::string of = key.workload.empty() ? "" : " of " + key.workload;
  lines_.push_back({std::string(spec.name) + of, value, std::string(spec.unit), rows, true});
}

void Setup::Calibrate(ClusterParameter parameter, const std::string& rows, double wanted,
                      const Answer& answer) {
  Solve({"", parameter}, rows, wanted, answer);
}

void Setup::Calibrate(const std::string& workload, WorkloadParameter parameter,
                      const std::string& rows, double wanted, const Answer& answer) {
  Solve({workload, parameter}, rows, wanted, answer);
}

void Setup::CalibrateBytes(const std::string& name, const std::string& rows, double wanted,
                           const Answer& answer) {
  constexpr double kRange = 100;
  const Workload original = workload(name);
  const double scale = SolveMonotone(1 / kRange, kRange, wanted, [&](double x) {
    Workload scaled = original;
    scaled.gradient_bytes = original.gradient_bytes * x;
    // Tensors and layers are those of another size.
    scaled.layers.clear();
    Add(name, scaled);
    return answer(*this);
  });
  Workload scaled = original;
  scaled.gradient_bytes = original.gradient_bytes * scale;
  scaled.layers.clear();
  Add(name, scaled);
  lines_.push_back(
      {"gradient_bytes of " + name, scaled.gradient_bytes.in(kMegabytes), "MB", rows, true});
}

void Setup::Add(const std::string& name, Workload workload, const std::string& source) {
  workload.name = name;
  if (!source.empty()) {
    lines_.push_back(
        {"gradient_bytes of " + name, workload.gradient_bytes.in(kMegabytes), "MB", source, false});
  }
  workloads_[name] = std::move(workload);
  predictors_.erase(name);
}

const Workload& Setup::workload(const std::string& name) const {
  const auto known = workloads_.find(name);
  if (known != workloads_.end()) return known->second;
  std::optional<Workload> found = FindWorkload(name);
  if (!found) throw std::runtime_error("no workload " + name);
  return workloads_.emplace(name, *found).first->second;
}

Cluster Setup::Calibrated() const {
  Cluster cluster = cluster_;
  Calibration calibration;
  for (const auto& [key, value] : values_) {
    const ParameterSpec& spec = Spec(key);
    ParameterEstimate estimate;
    estimate.scope = key.workload.empty() ? kClusterScope
                                          : WorkloadScope(workload(key.workload), cluster.device);
    estimate.name = spec.name;
    estimate.unit = spec.unit;
    estimate.value = estimate.prior_value = value;
    estimate.decided_by = DecidedBy::kStated;
    calibration.parameters.push_back(estimate);
  }
  const auto n = static_cast<Eigen::Index>(calibration.parameters.size());
  calibration.log_covariance = Eigen::MatrixXd::Zero(n, n);
  calibration.residual_log_sd = kStepScatter;
  calibration.range.max_nodes = cluster.nodes;
  calibration.range.max_devices_per_node = cluster.devices_per_node;
  calibration.range.max_workers = cluster.nodes * cluster.devices_per_node;
  cluster.calibration = std::move(calibration);
  return cluster;
}

const Predictor& Setup::predictor(const std::string& name) const {
  std::shared_ptr<const Predictor>& predictor = predictors_[name];
  if (predictor) return *predictor;
  predictor =
      std::make_shared<const Predictor>(Calibrated(), workload(name), device_, cluster_.device);
  return *predictor;
}

Prediction Setup::Ask(const std::string& workload, const Plan& plan) const {
  return predictor(workload).Predict(plan);
}

Duration<> Setup::Step(const std::string& workload, const Plan& plan) const {
  return predictor(workload).PredictStep(plan).total();
}

StepFacts Setup::Facts(const std::string& name, const Plan& plan) const {
  const Workload& w = workload(name);
  auto buckets = std::make_shared<const std::vector<Bucket>>(
      MakeBuckets(w, plan.bucket.value_or(DefaultBucket(plan.strategy))));
  return MakeStepFacts(cluster_, plan, w, std::move(buckets));
}

ClusterParameters<double> Setup::ClusterValues() const {
  const ClusterPriors priors = MakeClusterPriors(cluster_, std::nullopt);
  ClusterParameters<double> values{};
  for (std::size_t i = 0; i < values.si.size(); ++i) {
    const auto given = values_.find({"", static_cast<int>(i)});
    values.si[i] = given == values_.end() ? priors[i].si
                                          : given->second * kClusterParameterSpecs[i].si_per_unit;
  }
  return values;
}

WorkloadParameters<double> Setup::WorkloadValues(const std::string& name) const {
  const WorkloadPriors priors = MakeWorkloadPriors(workload(name), device_);
  WorkloadParameters<double> values{};
  for (std::size_t i = 0; i < values.si.size(); ++i) {
    const auto given = values_.find({name, static_cast<int>(i)});
    values.si[i] = given == values_.end() ? priors[i].si
                                          : given->second * kWorkloadParameterSpecs[i].si_per_unit;
  }
  return values;
}

StepTerms<double> Setup::Terms(const std::string& name, const Plan& plan) const {
  return predictor(name).Terms(plan);
}

PhaseBenefit<double> Setup::Phases(const std::string& name, const Plan& plan) const {
  return EvaluateServerPhases(Facts(name, plan), ClusterValues(), WorkloadValues(name));
}

}  // namespace stepcast::papers
