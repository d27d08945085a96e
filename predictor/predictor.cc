#include "predictor/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/io/parse.h"
#include "data/record/input_error.h"
#include "model/compute/roofline.h"
#include "model/step/priors.h"

namespace stepcast {
namespace {

// Quantile of the standard normal that leaves 5 % on each side.
constexpr double kNinetyPercent = 1.6448536269514722;
// Scatter of one measured step around the model where no calibration has told (the runs of public
// traces scatter by 6 %).
constexpr double kUncalibratedScatter = 0.06;
// Step of the one-sided derivative in ln(value).
constexpr double kDerivativeStep = 1e-5;
// From here on timeouts, which the transport formula leaves out, dominate.
constexpr double kTimeoutLoss = 0.02;

constexpr int kMostBatch = 100'000'000;
constexpr int kMostCount = 1'000'000;
constexpr int kMostBuckets = 100'000;

void CheckRange(const char* key, int value, int low, int high) {
  if (value >= low && value <= high) return;
  throw InputError({"", 0, key}, std::to_string(value), "is out of range",
                   fmt::format("a whole number from {} to {}", low, high));
}

ClusterParameters<double> ClusterValues(const double* log_values) {
  ClusterParameters<double> cluster{};
  for (std::size_t i = 0; i < cluster.si.size(); ++i) cluster.si[i] = std::exp(log_values[i]);
  return cluster;
}

StepTime<double> Evaluate(const StepFacts& facts, const double* log_values) {
  WorkloadParameters<double> workload{};
  for (std::size_t i = 0; i < workload.si.size(); ++i) {
    workload.si[i] = std::exp(log_values[kClusterParameterCount + i]);
  }
  return EvaluateStep(facts, ClusterValues(log_values), workload);
}

}  // namespace

Predictor::Predictor(Cluster cluster, Workload workload, const std::optional<Device>& facts,
                     const std::string& device)
    : cluster_(std::move(cluster)),
      workload_(std::move(workload)),
      device_(!device.empty() ? device
              : facts         ? facts->name
                              : cluster_.device),
      scatter_(kUncalibratedScatter),
      kept_activations_(KeptActivations(workload_)),
      default_buckets_(
          std::make_shared<const std::vector<Bucket>>(MakeBuckets(workload_, kDefaultBucket))) {
  if (facts) device_memory_ = facts->memory;
  const ClusterPriors cluster_priors = MakeClusterPriors(cluster_);
  const WorkloadPriors workload_priors = MakeWorkloadPriors(workload_, facts);
  std::vector<double> sds;
  for (const Prior& prior : cluster_priors) {
    log_values_.push_back(std::log(prior.si));
    sds.push_back(prior.log_sd);
  }
  for (const Prior& prior : workload_priors) {
    log_values_.push_back(std::log(prior.si));
    sds.push_back(prior.log_sd);
  }
  for (const Host& host : cluster_.hosts) {
    if (!host.link.bandwidth) continue;
    const Prior prior = HostLinkPrior(cluster_, host.name);
    host_index_.emplace_back(host.name, static_cast<int>(log_values_.size()));
    log_values_.push_back(std::log(prior.si));
    sds.push_back(prior.log_sd);
  }
  log_covariance_ = Eigen::Map<const Eigen::VectorXd>(sds.data(), static_cast<long>(sds.size()))
                        .array()
                        .square()
                        .matrix()
                        .asDiagonal();
  if (cluster_.calibration) TakeCalibration(*cluster_.calibration);
  if (compute_source_ == ComputeSource::kDataSheet && !HasRoofline(workload_, facts)) {
    throw InputError(
        {"", 0, "workload"}, workload_.name,
        fmt::format("has no known compute time on {}: {}", device_,
                    workload_.layers.empty() ? "it has no layers to count work from"
                                             : "the device has no data sheet with fp32 and "
                                               "memory_bandwidth"),
        "a cluster file calibrated with at least one run of it (stepcast calibrate)");
  }
}

void Predictor::TakeCalibration(const Calibration& calibration) {
  scatter_ = calibration.residual_log_sd;
  const std::string workload_scope = WorkloadScope(workload_.name, device_);
  // Where each estimate goes; a group of hosts becomes a position of its own.
  std::vector<std::pair<int, int>> moves;  // (position here, index in the calibration)
  const auto refuse = [&](const ParameterEstimate& e, const std::string& value, const char* problem,
                          const std::string& allowed) {
    throw InputError({"", 0, "calibration of " + e.scope + ", " + e.name}, value, problem, allowed);
  };
  const auto check = [&](const ParameterEstimate& e, const ParameterSpec& spec) {
    constexpr double kRounding = 1e-6;
    if (e.unit != spec.unit) {
      refuse(e, e.unit, "is not its unit",
             spec.unit.empty() ? "a plain number" : std::string(spec.unit));
    }
    if (e.value < spec.low * (1 - kRounding) || e.value > spec.high * (1 + kRounding)) {
      refuse(e, fmt::format("{}", e.value), "is out of range",
             fmt::format("{} to {} {}", spec.low, spec.high, spec.unit));
    }
  };
  const auto place = [&](const ParameterEstimate& e, std::size_t index, auto& specs, int offset) {
    bool known = false;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (e.name != specs[i].name) continue;
      known = true;
      check(e, specs[i]);
      const int position = offset + static_cast<int>(i);
      log_values_[static_cast<std::size_t>(position)] = std::log(e.value * specs[i].si_per_unit);
      moves.emplace_back(position, static_cast<int>(index));
    }
    if (!known) refuse(e, e.name, "is not a parameter of this version", "a new calibration");
  };
  for (std::size_t i = 0; i < calibration.parameters.size(); ++i) {
    const ParameterEstimate& e = calibration.parameters[i];
    if (e.scope == kClusterScope) {
      place(e, i, kClusterParameterSpecs, 0);
    } else if (e.scope == workload_scope) {
      place(e, i, kWorkloadParameterSpecs, kWorkloadOffset);
      compute_source_ = ComputeSource::kFitted;
    } else if (e.scope.rfind(kHostsScopePrefix, 0) == 0) {
      check(e, kClusterParameterSpecs[kLinkBandwidth]);
      const int position = static_cast<int>(log_values_.size());
      log_values_.push_back(std::log(e.value * kClusterParameterSpecs[kLinkBandwidth].si_per_unit));
      moves.emplace_back(position, static_cast<int>(i));
      const std::string hosts = e.scope.substr(std::string(kHostsScopePrefix).size());
      for (const std::string& host : ParseHosts(hosts, {"", 0, "calibration of " + e.scope})) {
        host_index_.erase(std::remove_if(host_index_.begin(), host_index_.end(),
                                         [&](const auto& known) { return known.first == host; }),
                          host_index_.end());
        host_index_.emplace_back(host, position);
      }
    }
  }
  const auto size = static_cast<Eigen::Index>(log_values_.size());
  const Eigen::Index before = log_covariance_.rows();
  log_covariance_.conservativeResize(size, size);
  log_covariance_.rightCols(size - before).setZero();
  log_covariance_.bottomRows(size - before).setZero();
  for (const auto& [row, from_row] : moves) {
    for (const auto& [column, from_column] : moves) {
      log_covariance_(row, column) = calibration.log_covariance(from_row, from_column);
    }
  }
}

std::optional<CalibratedRange::BatchRange> Predictor::calibrated_batches() const {
  if (!cluster_.calibration) return std::nullopt;
  const auto& ranges = cluster_.calibration->range.local_batch;
  const auto it = ranges.find(WorkloadScope(workload_.name, device_));
  if (it == ranges.end()) return std::nullopt;
  return it->second;
}

Predictor::Active Predictor::ActiveParameters(const Plan& plan) const {
  Active active{};
  for (int i = 0; i < kHostOffset; ++i) {
    active.log_values[static_cast<std::size_t>(i)] = log_values_[static_cast<std::size_t>(i)];
    active.index[static_cast<std::size_t>(i)] = i;
  }
  // The slowest of the named hosts holds all of them back.
  bool first = true;
  for (const std::string& host : plan.hosts) {
    bool unknown = true;
    for (const auto& [known, position] : host_index_) {
      if (known != host) continue;
      unknown = false;
      const double link = log_values_[static_cast<std::size_t>(position)];
      if (first || link < active.log_values[kLinkBandwidth]) {
        active.log_values[kLinkBandwidth] = link;
        active.index[kLinkBandwidth] = position;
        first = false;
      }
    }
    // A host of which nothing is known has the cluster's link.
    if (unknown && (first || log_values_[kLinkBandwidth] < active.log_values[kLinkBandwidth])) {
      active.log_values[kLinkBandwidth] = log_values_[kLinkBandwidth];
      active.index[kLinkBandwidth] = kLinkBandwidth;
      first = false;
    }
  }
  return active;
}

StepFacts Predictor::Facts(const Plan& plan) const {
  auto buckets =
      plan.bucket
          ? std::make_shared<const std::vector<Bucket>>(MakeBuckets(workload_, *plan.bucket))
          : default_buckets_;
  return MakeStepFacts(cluster_, plan, workload_.gradient_bytes, std::move(buckets));
}

void Predictor::CheckPlan(const Plan& plan) const {
  if (plan.placement.empty()) {
    throw InputError({"", 0, "placement"}, "", "is empty", "devices used on each node, like 4-4-2");
  }
  for (const int devices : plan.placement) CheckRange("placement", devices, 1, kMostCount);
  CheckRange("local-batch", plan.local_batch, 1, kMostBatch);
  CheckRange("accumulation", plan.accumulation_steps, 1, kMostCount);
  if (UsesServers(plan.strategy)) {
    if (plan.servers == 0) {
      throw InputError({"", 0, "servers"}, "",
                       fmt::format("are required with strategy {}", StrategyName(plan.strategy)),
                       "--servers 1 or more");
    }
    CheckRange("servers", plan.servers, 1, kMostCount);
  } else if (plan.servers != 0) {
    throw InputError({"", 0, "servers"}, std::to_string(plan.servers),
                     fmt::format("with strategy {}", StrategyName(plan.strategy)),
                     "0, or strategy ps-sync or ps-async");
  }
  for (const LinkFacts* link : {&plan.link, &plan.server_link}) {
    const auto refuse = [](const char* key, double value, const char* allowed) {
      throw InputError({"", 0, key}, fmt::format("{}", value), "is out of range", allowed);
    };
    if (link->bandwidth && !(link->bandwidth->si() > 0)) {
      refuse("bandwidth", link->bandwidth->si(), "more than 0 B/s");
    }
    if (link->rtt && !(link->rtt->si() >= 0)) refuse("rtt", link->rtt->si(), "at least 0 s");
    if (link->loss && !(*link->loss >= 0 && *link->loss < 1)) {
      refuse("loss", *link->loss, "at least 0 and below 1");
    }
  }
  if (plan.bucket &&
      !(*plan.bucket * static_cast<double>(kMostBuckets) >= workload_.gradient_bytes)) {
    throw InputError({"", 0, "bucket"}, fmt::format("{} B", plan.bucket->in(kBytes)),
                     fmt::format("cuts the gradients into more than {} buckets", kMostBuckets),
                     "a larger cap");
  }
  if (!plan.hosts.empty() && static_cast<int>(plan.hosts.size()) != plan.nodes()) {
    throw InputError({"", 0, "hosts"}, fmt::format("{}", fmt::join(plan.hosts, "+")),
                     fmt::format("names {} hosts", plan.hosts.size()),
                     fmt::format("{}, one for each node of the placement", plan.nodes()));
  }
}

StepTime<double> Predictor::PredictStep(const Plan& plan) const {
  CheckPlan(plan);
  return Evaluate(Facts(plan), ActiveParameters(plan).log_values.data());
}

NetworkRates<double> Predictor::Network(const Plan& plan) const {
  CheckPlan(plan);
  return EvaluateNetwork(Facts(plan), ClusterValues(ActiveParameters(plan).log_values.data()));
}

Prediction Predictor::Predict(const Plan& plan) const {
  CheckPlan(plan);
  Prediction prediction;
  const StepFacts facts = Facts(plan);
  Active active = ActiveParameters(plan);
  prediction.breakdown = Evaluate(facts, active.log_values.data());
  prediction.step_time = prediction.breakdown.total();
  const double log_step = std::log(prediction.step_time.in(kSeconds));

  Eigen::Matrix<double, kHostOffset, 1> gradient;
  for (int i = 0; i < kHostOffset; ++i) {
    double& value = active.log_values[static_cast<std::size_t>(i)];
    const double kept = value;
    value += kDerivativeStep;
    const double moved = Evaluate(facts, active.log_values.data()).total().in(kSeconds);
    gradient[i] = (std::log(moved) - log_step) / kDerivativeStep;
    value = kept;
  }
  double variance = scatter_ * scatter_;
  for (int i = 0; i < kHostOffset; ++i) {
    for (int j = 0; j < kHostOffset; ++j) {
      variance += gradient[i] * gradient[j] *
                  log_covariance_(active.index[static_cast<std::size_t>(i)],
                                  active.index[static_cast<std::size_t>(j)]);
    }
  }
  prediction.log_sd = std::sqrt(variance);
  const double factor = std::exp(kNinetyPercent * prediction.log_sd);
  prediction.low = prediction.step_time / factor;
  prediction.high = prediction.step_time * factor;
  prediction.throughput = Samples(plan.global_batch()) / prediction.step_time;
  prediction.traffic = CountTraffic(plan, workload_.gradient_bytes);
  prediction.memory = CountMemory(workload_, kept_activations_, plan, device_memory_);
  prediction.compute_source = compute_source_;
  AddFlags(plan, facts, &prediction);
  return prediction;
}

void Predictor::AddFlags(const Plan& plan, const StepFacts& facts, Prediction* prediction) const {
  std::vector<std::string>& flags = prediction->flags;
  if (prediction->memory.verdict == MemoryVerdict::kOutOfMemory) {
    flags.push_back(fmt::format("out of memory: needs about {:.1f} GiB, the device has {:.1f} GiB",
                                prediction->memory.total.in(kGibibytes),
                                prediction->memory.available->in(kGibibytes)));
  }
  if (!cluster_.calibration) {
    flags.emplace_back("cluster not calibrated: network and overlap are priors");
  }
  if (compute_source_ == ComputeSource::kDataSheet) {
    flags.push_back(
        fmt::format("{} was not measured on {}: compute is a data-sheet roofline, good "
                    "to a factor of three",
                    workload_.name, device_));
  }
  if (cluster_.calibration) {
    const CalibratedRange& range = cluster_.calibration->range;
    const auto beyond = [&](int value, int most, const char* what) {
      if (value > most) {
        flags.push_back(
            fmt::format("outside the calibrated range: {} {}, fitted to {}", value, what, most));
      }
    };
    beyond(plan.workers(), range.max_workers, "workers");
    beyond(plan.nodes(), range.max_nodes, "nodes");
    beyond(DevicesOnFullestNode(plan.placement), range.max_devices_per_node, "devices per node");
    if (const auto batches = calibrated_batches();
        batches && (plan.local_batch < batches->min || plan.local_batch > batches->max)) {
      flags.push_back(
          fmt::format("outside the calibrated range: local batch {}, fitted from {} to "
                      "{}",
                      plan.local_batch, batches->min, batches->max));
    }
  }
  if (plan.nodes() > cluster_.nodes) {
    flags.push_back(fmt::format("the plan uses {} nodes, {} has {}", plan.nodes(), cluster_.name,
                                cluster_.nodes));
  }
  if (DevicesOnFullestNode(plan.placement) > cluster_.devices_per_node) {
    flags.push_back(fmt::format("the plan uses {} devices on a node, {} has {}",
                                DevicesOnFullestNode(plan.placement), cluster_.name,
                                cluster_.devices_per_node));
  }
  const bool communicates =
      plan.strategy != Strategy::kNone && (plan.nodes() > 1 || UsesServers(plan.strategy));
  if (communicates && !plan.link.bandwidth && !host_index_.empty()) {
    if (plan.hosts.empty()) {
      flags.push_back(fmt::format(
          "hosts have links of their own and none is named: {:.3g} Gbit/s "
          "assumed",
          BytesPerSecond(std::exp(log_values_[kLinkBandwidth])).in(kGigabitsPerSecond)));
    }
    for (const std::string& host : plan.hosts) {
      if (std::none_of(host_index_.begin(), host_index_.end(),
                       [&](const auto& known) { return known.first == host; })) {
        flags.push_back(fmt::format("no run has shown the link of host {}", host));
      }
    }
  }
  for (const std::string& host : plan.hosts) {
    if (!cluster_.hosts.empty() &&
        std::none_of(cluster_.hosts.begin(), cluster_.hosts.end(),
                     [&](const Host& known) { return known.name == host; })) {
      flags.push_back(fmt::format("{} has no host {}", cluster_.name, host));
    }
  }
  const double loss = std::max(facts.link.loss.value_or(0), facts.server_link.loss.value_or(0));
  if (communicates && loss > 0 && prediction->breakdown.limiter == Limiter::kTransport) {
    flags.push_back(
        fmt::format("packet loss limits the rate: timeouts{} and bursts of loss are left "
                    "out, real steps take up to twice as long",
                    loss >= kTimeoutLoss ? ", which dominate at this loss," : ""));
  }
  if (communicates && loss > 0 && !Overlay(facts.link, facts.server_link).rtt) {
    flags.push_back(fmt::format("loss without a round trip: {:.3g} us assumed",
                                2e6 * std::exp(log_values_[kLinkLatency])));
  }
}

Binding FindBinding(const Prediction& prediction) {
  const StepTime<double>& step = prediction.breakdown;
  const double total = step.total().in(kSeconds);
  struct Part {
    const char* name;
    const char* subject;
    double seconds;
  };
  const auto transfer = [&]() -> Part {
    const double seconds = step.exposed_transfer.in(kSeconds);
    switch (step.limiter) {
      case Limiter::kFlow:
        return {"flow", "What the flows to one peer carry", seconds};
      case Limiter::kTransport:
        return {"transport", "TCP (window or packet loss)", seconds};
      case Limiter::kHost:
        return {"host", "The exchange within the node", seconds};
      case Limiter::kServerLink:
        return {"server_link", "The links of the parameter servers", seconds};
      default:
        return {"link", "The network links of the nodes", seconds};
    }
  };
  const Part parts[] = {
      {"compute", "Compute", step.compute().in(kSeconds)},
      transfer(),
      {"latency", "Latency (messages and fixed costs)", step.exposed_latency.in(kSeconds)},
      {"stragglers", "Waiting for the slowest worker", step.straggler_wait.in(kSeconds)},
  };
  const Part* most =
      std::max_element(std::begin(parts), std::end(parts),
                       [](const Part& a, const Part& b) { return a.seconds < b.seconds; });
  const double share = most->seconds / total;
  return {most->name, share,
          fmt::format("{} {}: {:.0f} % of the step.", most->subject,
                      std::string(most->name) == "server_link" || std::string(most->name) == "link"
                          ? "bind"
                          : "binds",
                      100 * share)};
}

}  // namespace stepcast
