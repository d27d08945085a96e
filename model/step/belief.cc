#include "model/step/belief.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "data/record/input_error.h"
#include "data/record/within.h"
#include "data/values/workload_scope.h"
#include "model/compute/profiled_compute.h"
#include "model/compute/sheet_compute.h"
#include "model/statistics/scatter.h"
#include "model/step/answer.h"
#include "model/step/parameter_specs.h"
#include "model/step/priors.h"

namespace stepcast {
namespace {

// How far a workload that is faster than others on one device is so on another: the speedups of
// five networks from a K80 to a P100 lie within 5 % (tensorflow/docs, performance benchmarks of
// 2017); three times that for devices of other kinds.
constexpr double kTransferLogSd = 0.15;
// Launches and input depend on the host, spreads on the data.
constexpr double kFixedTransferLogSd = 0.7;
constexpr double kSpreadTransferLogSd = 0.3;
// How far the data sheet is off with what another way of training changes: over 228 pairs of public
// training speeds with 32 bits (or TF32) and with 16, of one network on one device, the logarithm
// of the ratio is off by 0.31 (root mean square). An optimizer, fused attention or recomputation
// changes less. Where no sheet tells, 16 bits may halve the time or leave it.
constexpr double kPrecisionTransferLogSd = 0.3;
constexpr double kTrainingTransferLogSd = 0.15;
constexpr double kBlindTransferLogSd = 0.7;

InputPlace PlaceOf(const ParameterEstimate& e) {
  return {"", 0, "calibration of " + e.scope + ", " + e.name};
}

constexpr std::array<ParameterSpec, 2> kSpecsOfHosts = {kClusterParameterSpecs[kLinkBandwidth],
                                                        kComputeSlowdownSpec};

// The parameters that may be of the scope of `e`.
std::span<const ParameterSpec> SpecsOf(const ParameterEstimate& e) {
  if (e.scope == kClusterScope) return kClusterParameterSpecs;
  if (e.scope.starts_with(kHostsScopePrefix)) return kSpecsOfHosts;
  if (e.scope.starts_with(kDeviceScopePrefix)) return {&kDeviceSpeedSpec, 1};
  if (e.scope.starts_with(kWorkloadScopePrefix)) return kWorkloadParameterSpecs;
  throw InputError(PlaceOf(e), e.scope, "is no scope of a parameter",
                   "cluster, hosts ..., device ..., workload ... on ...");
}

std::size_t FindSpec(const ParameterEstimate& e, std::span<const ParameterSpec> specs) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (e.name == specs[i].name) return i;
  }
  throw InputError(PlaceOf(e), e.name, "is not a parameter of this version", "a new calibration");
}

void Check(const ParameterEstimate& e, const ParameterSpec& spec) {
  if (e.unit != spec.unit) {
    throw InputError(PlaceOf(e), e.unit, "is not its unit",
                     spec.unit.empty() ? "a plain number" : std::string(spec.unit));
  }
  RequireInRange(spec, e.value * spec.si_per_unit, PlaceOf(e));
}

Origin OriginOf(const ParameterEstimate& e) {
  switch (e.decided_by) {
    case DecidedBy::kPrior:
      return Origin::kFittedPrior;
    case DecidedBy::kStated:
      return Origin::kStated;
    default:
      return Origin::kFitted;
  }
}

using HostPositions = std::vector<std::pair<std::string, int>>;

// The position of each of `hosts` among those that are known. Few are sought among them one by one.
std::vector<std::optional<int>> PositionsOf(std::span<const std::string> hosts,
                                            const HostPositions& known) {
  std::vector<std::optional<int>> positions(hosts.size());
  constexpr std::size_t kFew = 16;
  std::unordered_map<std::string_view, int> at;
  if (hosts.size() > kFew) at.insert(known.begin(), known.end());
  for (std::size_t i = 0; i < hosts.size() && !known.empty(); ++i) {
    if (hosts.size() > kFew) {
      const auto found = at.find(hosts[i]);
      if (found != at.end()) positions[i] = found->second;
      continue;
    }
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const auto& entry) { return entry.first == hosts[i]; });
    if (found != known.end()) positions[i] = found->second;
  }
  return positions;
}

// What is learnt of hosts replaces what was believed of them, and comes behind it.
class HostsLearnt {
 public:
  explicit HostsLearnt(HostPositions* known) : known_(known) {
    for (std::size_t i = 0; i < known->size(); ++i) at_[(*known)[i].first] = i;
  }
  void Set(const std::string& host, int position) {
    const auto [it, is_new] = at_.try_emplace(host, known_->size());
    if (!is_new) (*known_)[std::exchange(it->second, known_->size())].second = kReplaced;
    known_->emplace_back(host, position);
  }
  void Finish() {
    std::erase_if(*known_, [](const auto& entry) { return entry.second == kReplaced; });
  }

 private:
  static constexpr int kReplaced = -1;
  HostPositions* known_;
  std::unordered_map<std::string, std::size_t> at_;
};

}  // namespace

Belief::Belief(const Cluster& cluster, const Workload& workload, const std::optional<Device>& facts,
               const std::string& device, const ProfiledCompute* profile)
    : workload_(DescribeWorkload(workload) + " on " + device),
      scope_(WorkloadScope(workload, device)),
      compute_(profile != nullptr              ? ComputeBelief::kProfile
               : HasSheetTime(workload, facts) ? ComputeBelief::kDataSheet
                                               : ComputeBelief::kPrior),
      total_scatter_(kUncalibratedScatter) {
  std::vector<double> sds;
  const auto add = [&](const Prior& prior) {
    log_values_.push_back(std::log(prior.si));
    sds.push_back(prior.log_sd);
  };
  for (const Prior& prior : MakeClusterPriors(cluster, facts)) add(prior);
  for (const Prior& prior : MakeWorkloadPriors(workload, facts, profile)) add(prior);
  for (const Host& host : cluster.hosts) {
    if (!host.link.bandwidth) continue;
    host_links_.emplace_back(host.name, static_cast<int>(log_values_.size()));
    add(HostLinkPrior(cluster, facts, host.link));
  }
  log_covariance_ = Eigen::Map<const Eigen::VectorXd>(sds.data(), static_cast<long>(sds.size()))
                        .array()
                        .square()
                        .matrix()
                        .asDiagonal();
  origins_.assign(log_values_.size(), Origin::kPrior);
  if (cluster.calibration) {
    Within(cluster.name, [&] { TakeCalibration(*cluster.calibration, workload, facts, device); });
    TakeRange(cluster.calibration->range);
    const auto is_fitted = [&](int position) { return origin(position) == Origin::kFitted; };
    const bool is_same_for_all =
        std::none_of(cluster.hosts.begin(), cluster.hosts.end(),
                     [](const Host& host) { return host.link.bandwidth.has_value(); });
    if (cluster.link.bandwidth && is_same_for_all &&
        (is_fitted(kLinkBandwidth) ||
         std::any_of(host_links_.begin(), host_links_.end(),
                     [&](const auto& entry) { return is_fitted(entry.second); }))) {
      log_tested_rate_ = std::log(cluster.link.bandwidth->si());
    }
  }
  if (compute_ == ComputeBelief::kDataSheet) {
    least_of_a_sample_ = SheetCompute(workload, *facts).LeastOfASample();
  }
  values_ = PlanParameters::FromLogs(log_values_.data(), &log_values_[kWorkloadOffset], nullptr);
}

Duration<> Belief::LeastCompute(const StepFacts& facts) const {
  if (!facts.has_compute) return {};
  return least_of_a_sample_ * (facts.batch * facts.accumulation_steps);
}

Belief Belief::After(Eigen::MatrixXd log_covariance, const CalibratedRange& range) const {
  Belief after = *this;
  after.log_covariance_ = std::move(log_covariance);
  after.TakeRange(range);
  if (range.BatchesOf(scope_)) {
    after.compute_ = ComputeBelief::kFitted;
    after.least_of_a_sample_ = {};
  }
  return after;
}

double Belief::ScatterOf(const StepFacts& facts, double sync_share) const {
  return std::hypot(ScatterAt(sync_share), internal::LossScatter(facts) * sync_share);
}

double Belief::StatedShareLogSd(const LinkFacts& link, const LinkFacts& server_link,
                                int position) const {
  double log_sd = 0;
  for (const LinkFacts* stated : {&link, &server_link}) {
    if (!stated->bandwidth) continue;
    if (!rates_) return kStatedLinkLogSd;
    const double above = std::log2(*stated->bandwidth / rates_->max);
    const double below = std::log2(rates_->min / *stated->bandwidth);
    log_sd = std::max({log_sd, kShareLogSdPerDoubling * above, kShareLogSdPerHalving * below});
  }
  if (link.bandwidth && log_tested_rate_) {
    const double off = log_value(position) - *log_tested_rate_;
    log_sd = std::sqrt(log_sd * log_sd + off * off + log_covariance_(position, position));
  }
  return std::min(log_sd, kStatedLinkLogSd);
}

double Belief::StatedShareLogSd(const StepFacts& facts, int position) const {
  static constexpr LinkFacts kNone;
  return StatedShareLogSd(
      facts.link, facts.server.HasOwnLink(facts.servers) ? facts.server_link : kNone, position);
}

const ParameterSpec& Belief::SpecOf(int position) const {
  const auto at = static_cast<std::size_t>(position);
  if (position < kWorkloadOffset) return kClusterParameterSpecs[at];
  if (position < kHostOffset) return kWorkloadParameterSpecs[at - kWorkloadOffset];
  const bool slows = std::any_of(host_slowdowns_.begin(), host_slowdowns_.end(),
                                 [&](const auto& entry) { return entry.second == position; });
  return slows ? kComputeSlowdownSpec : kClusterParameterSpecs[kLinkBandwidth];
}

std::string Belief::HostsOf(int position) const {
  std::string hosts;
  for (const auto* known : {&host_links_, &host_slowdowns_}) {
    for (const auto& [host, at] : *known) {
      if (at == position) hosts += (hosts.empty() ? "" : "+") + host;
    }
  }
  return hosts;
}

std::string Belief::NameOf(int position) const {
  const std::string name(SpecOf(position).name);
  if (position < kWorkloadOffset) return name;
  if (position < kHostOffset) return name + " of " + workload_;
  return name + " of " + HostsOf(position);
}

int Belief::SlowestLink(const std::vector<std::string>& hosts) const {
  if (hosts.empty() || host_links_.empty()) return kLinkBandwidth;
  std::vector<int> links;
  for (const std::optional<int>& own : PositionsOf(hosts, host_links_)) {
    links.push_back(own.value_or(kLinkBandwidth));
  }
  const auto slowest =
      stepcast::SlowestLink(links.size(), [&](std::size_t i) { return log_value(links[i]); });
  return slowest ? links[*slowest] : int{kLinkBandwidth};
}

int Belief::AtHosts::Position(int column) const {
  if (column == kLinkColumn) return link;
  return column == kSlowdownColumn ? slowdown.value_or(link) : column;
}

Eigen::VectorXd Belief::ByPosition(std::span<const double> by_column, const AtHosts& hosts) const {
  Eigen::VectorXd by_position = Eigen::VectorXd::Zero(static_cast<long>(log_values_.size()));
  std::copy_n(by_column.begin(), kLinkColumn, by_position.begin());
  by_position[hosts.link] += by_column[kLinkColumn];
  if (hosts.slowdown) by_position[*hosts.slowdown] += by_column[kSlowdownColumn];
  return by_position;
}

PlanParameters Belief::ParametersAt(const AtHosts& hosts) const {
  PlanParameters values = values_;
  values.cluster.node_link_si = hosts.link == kLinkBandwidth ? values.cluster.si[kLinkBandwidth]
                                                             : std::exp(log_value(hosts.link));
  if (hosts.slowdown) values.cluster.node_slowdown = std::exp(log_value(*hosts.slowdown));
  return values;
}

std::optional<int> Belief::SlowdownOf(const std::string& host) const {
  for (const auto& [known, position] : host_slowdowns_) {
    if (known == host) return position;
  }
  return std::nullopt;
}

std::optional<int> Belief::SlowestCompute(std::span<const std::string> hosts) const {
  if (hosts.empty() || host_slowdowns_.empty()) return std::nullopt;
  std::vector<int> factors;
  bool others = false;
  for (const std::optional<int>& factor : PositionsOf(hosts, host_slowdowns_)) {
    if (factor) {
      factors.push_back(*factor);
    } else {
      others = true;
    }
  }
  const auto slowest = stepcast::SlowestCompute(
      factors.size(), others, [&](std::size_t i) { return log_value(factors[i]); });
  return slowest ? std::optional(factors[*slowest]) : std::nullopt;
}

void Belief::TakeEstimate(const ParameterEstimate& e, int index, const ParameterSpec& spec,
                          int position) {
  Check(e, spec);
  log_values_[static_cast<std::size_t>(position)] = std::log(e.value * spec.si_per_unit);
  origins_[static_cast<std::size_t>(position)] = OriginOf(e);
  sources_.push_back({position, {{index, 1.0}}, 0});
}

void Belief::TakeCalibration(const Calibration& calibration, const Workload& workload,
                             const std::optional<Device>& facts, const std::string& device) {
  scope_ = FittedScope(calibration, workload, device);
  const std::string& scope = scope_;
  total_scatter_ = calibration.residual_log_sd;
  sync_jitter_ = calibration.sync_jitter.value_or(0);
  scatter_ = calibration.ScatterOf(scope);
  HostsLearnt links(&host_links_);
  HostsLearnt slowdowns(&host_slowdowns_);
  for (std::size_t i = 0; i < calibration.parameters.size(); ++i) {
    const ParameterEstimate& e = calibration.parameters[i];
    const int index = static_cast<int>(i);
    const std::span<const ParameterSpec> specs = SpecsOf(e);
    if (e.scope == kClusterScope) {
      const std::size_t at = FindSpec(e, specs);
      TakeEstimate(e, index, specs[at], static_cast<int>(at));
    } else if (e.scope == scope) {
      const std::size_t at = FindSpec(e, specs);
      TakeEstimate(e, index, specs[at], kWorkloadOffset + static_cast<int>(at));
      compute_ = ComputeBelief::kFitted;
    } else if (e.scope.starts_with(kHostsScopePrefix)) {
      const int position = static_cast<int>(log_values_.size());
      log_values_.push_back(0);
      origins_.push_back(Origin::kFitted);
      const std::size_t at = FindSpec(e, specs);
      const bool slows = specs[at].name == kComputeSlowdownSpec.name;
      TakeEstimate(e, index, specs[at], position);
      for (const std::string& host : HostsOfScope(e.scope)) {
        (slows ? slowdowns : links).Set(host, position);
      }
    } else if (e.scope.starts_with(kDeviceScopePrefix)) {
      FindSpec(e, specs);
    }
  }
  links.Finish();
  slowdowns.Finish();
  if (compute_ == ComputeBelief::kDataSheet || compute_ == ComputeBelief::kPrior) {
    TransferTraining(calibration, workload, facts, device);
  }
  if (compute_ == ComputeBelief::kDataSheet) {
    Transfer(calibration, workload, facts, device);
  }
  TakeCovariance(calibration);
  TakeAlternatives(calibration);
}

void Belief::SetTransferred(int parameter, double log_value, Source source) {
  source.position = kWorkloadOffset + parameter;
  log_values_[static_cast<std::size_t>(source.position)] = log_value;
  origins_[static_cast<std::size_t>(source.position)] = Origin::kTransferred;
  sources_.push_back(std::move(source));
}

void Belief::TransferTraining(const Calibration& calibration, const Workload& workload,
                              const std::optional<Device>& facts, const std::string& device) {
  const std::vector<Workload> trainings = FittedTrainings(calibration, workload.name, device);
  if (trainings.empty()) return;
  // The nearest: precision tells most.
  const auto distance = [&](const Workload& training) {
    const Workload fitted = WithWhatDiffers(workload, training);
    int differing = fitted.precision == workload.precision ? 0 : kTrainingFactCount;
    for (const TrainingFact& fact : TrainingFacts()) {
      differing += fact.get(fitted) == fact.get(workload) ? 0 : 1;
    }
    return differing;
  };
  const Workload& fitted = *std::min_element(
      trainings.begin(), trainings.end(),
      [&](const Workload& a, const Workload& b) { return distance(a) < distance(b); });
  const bool by_sheet = HasSheetTime(workload, facts);
  const double sd = !by_sheet                                ? kBlindTransferLogSd
                    : fitted.precision == workload.precision ? kTrainingTransferLogSd
                                                             : kPrecisionTransferLogSd;
  compute_ = ComputeBelief::kFromOtherTraining;
  other_training_ = {WithWhatDiffers(workload, fitted), by_sheet, sd};
  Workload as_fitted = workload;
  for (const TrainingFact& fact : TrainingFacts()) fact.set(fact.get(fitted), &as_fitted);
  const WorkloadPriors asked = MakeWorkloadPriors(workload, facts);
  const WorkloadPriors there = MakeWorkloadPriors(as_fitted, facts);
  const std::string scope = WorkloadScope(fitted, device);
  for (int i = 0; i < kWorkloadParameterCount; ++i) {
    const ParameterSpec& spec = kWorkloadParameterSpecs[static_cast<std::size_t>(i)];
    const std::optional<int> index = calibration.Find(scope, spec.name);
    if (!index) continue;
    const ParameterEstimate& e = calibration.parameters[static_cast<std::size_t>(*index)];
    Check(e, spec);
    double log_value = std::log(e.value * spec.si_per_unit);
    if (i != kFixedTime) {
      log_value += std::log(asked[static_cast<std::size_t>(i)].si) -
                   std::log(there[static_cast<std::size_t>(i)].si);
    }
    SetTransferred(i, log_value, {0, {{*index, 1.0}}, sd * sd});
  }
}

void Belief::Transfer(const Calibration& calibration, const Workload& workload,
                      const std::optional<Device>& facts, const std::string& device) {
  const auto estimate = [&](int index) -> const ParameterEstimate& {
    return calibration.parameters[static_cast<std::size_t>(index)];
  };
  const auto speed_of = [&](const std::string& name) {
    const std::optional<int> index =
        calibration.Find(kDeviceScopePrefix + name, kDeviceSpeedSpec.name);
    if (index) Check(estimate(*index), kDeviceSpeedSpec);
    return index;
  };
  const WorkloadPriors priors = MakeWorkloadPriors(workload, facts);
  const std::optional<int> own_speed = speed_of(device);

  // Another device on which the workload was fitted, and whose data sheet was known then.
  const std::string prefix = FittedScope(calibration, workload, "");
  std::string other;
  std::optional<int> other_speed;
  for (const ParameterEstimate& e : calibration.parameters) {
    if (!e.scope.starts_with(prefix) || other_speed) continue;
    other = e.scope.substr(prefix.size());
    other_speed = speed_of(other);
  }
  if (!other_speed) {
    if (!own_speed) return;
    compute_ = ComputeBelief::kFromDevice;
    const double log_value =
        std::log(priors[kSampleTime].si) - std::log(estimate(*own_speed).value);
    SetTransferred(kSampleTime, log_value,
                   {0, {{*own_speed, -1.0}}, kWorkloadSpeedLogSd * kWorkloadSpeedLogSd});
    return;
  }
  compute_ = ComputeBelief::kFromOtherDevice;
  const std::string scope = prefix + other;
  for (int i = 0; i < kWorkloadParameterCount; ++i) {
    const ParameterSpec& spec = kWorkloadParameterSpecs[static_cast<std::size_t>(i)];
    const std::optional<int> index = calibration.Find(scope, spec.name);
    if (!index) continue;
    const ParameterEstimate& e = estimate(*index);
    if (!e.prior_source.empty()) continue;  // its prior was stated by hand, for that device
    Check(e, spec);
    const double there = std::log(e.value * spec.si_per_unit);
    if (i == kFixedTime || i == kStragglerSpread) {
      const double sd = i == kFixedTime ? kFixedTransferLogSd : kSpreadTransferLogSd;
      SetTransferred(i, there, {0, {{*index, 1.0}}, sd * sd});
      continue;
    }
    // The prior there was what the other device's data sheet let expect.
    double log_value = there + std::log(priors[static_cast<std::size_t>(i)].si) -
                       std::log(e.prior_value * spec.si_per_unit);
    Source source{0, {{*index, 1.0}}, kTransferLogSd * kTransferLogSd};
    if (own_speed) {
      log_value += std::log(estimate(*other_speed).value / estimate(*own_speed).value);
      source.terms.emplace_back(*other_speed, 1.0);
      source.terms.emplace_back(*own_speed, -1.0);
    } else {
      source.variance += std::pow(kDeviceSpeedSpec.prior_log_sd, 2);
    }
    SetTransferred(i, log_value, std::move(source));
  }
}

Eigen::MatrixXd Belief::CovarianceWith(const Calibration& calibration) const {
  const Eigen::MatrixXd& fitted = calibration.log_covariance;
  Eigen::MatrixXd covariance =
      Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(log_values_.size()), fitted.cols());
  for (const Source& source : sources_) {
    for (const auto& [i, a] : source.terms) covariance.row(source.position) += a * fitted.row(i);
  }
  return covariance;
}

void Belief::TakeCovariance(const Calibration& calibration) {
  const auto size = static_cast<Eigen::Index>(log_values_.size());
  log_covariance_.conservativeResizeLike(Eigen::MatrixXd::Zero(size, size));
  for (const Source& column : sources_) {  // outside, because columns lie together
    for (const Source& row : sources_) {
      double covariance = 0;
      for (const auto& [i, a] : row.terms) {
        for (const auto& [j, b] : column.terms) {
          covariance += a * b * calibration.log_covariance(i, j);
        }
      }
      log_covariance_(row.position, column.position) = covariance;
    }
    log_covariance_(column.position, column.position) += column.variance;
  }
}

void Belief::TakeAlternatives(const Calibration& calibration) {
  constexpr double kAlike = 1e-3;  // in ln(value): a alternative about other workloads
  const auto size = static_cast<Eigen::Index>(log_values_.size());
  const auto believed = Eigen::VectorXd::Map(log_values_.data(), size);
  log_alternatives_.resize(size, 0);
  for (Eigen::Index k = 0; k < calibration.alternatives.rows(); ++k) {
    Eigen::VectorXd alternative = believed;
    for (const Source& source : sources_) {
      double& value = alternative[source.position];
      for (const auto& [i, a] : source.terms) value += a * calibration.alternatives(k, i);
      const ParameterSpec& spec = SpecOf(source.position);
      value = std::clamp(value, spec.log_low(), spec.log_high());
    }
    if ((alternative - believed).cwiseAbs().maxCoeff() < kAlike) continue;
    log_alternatives_.conservativeResize(size, log_alternatives_.cols() + 1);
    log_alternatives_.col(log_alternatives_.cols() - 1) = alternative;
  }
}

void Belief::TakeRange(const CalibratedRange& range) {
  rates_ = range.bandwidth;
  fitted_nodes_ = range.max_nodes;
  fitted_devices_per_node_ = range.max_devices_per_node;
  fitted_exchanges_ = range.exchanges;
}

Cluster WithUsableCalibration(Cluster cluster, const std::string& file) {
  if (!cluster.calibration) return cluster;
  for (const ParameterEstimate& e : cluster.calibration->parameters) {
    try {
      const std::span<const ParameterSpec> specs = SpecsOf(e);
      Check(e, specs[FindSpec(e, specs)]);
    } catch (const InputError& error) {
      throw error.At({file, e.line, error.place().key});
    }
  }
  return cluster;
}

std::string DeviceName(const Cluster& cluster, const std::optional<Device>& facts,
                       const std::string& device) {
  if (!device.empty()) return device;
  return facts ? facts->name : cluster.device;
}

}  // namespace stepcast
