#include "model/step/priors.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "data/record/operation_counts.h"
#include "model/compute/sheet_compute.h"

namespace stepcast {
namespace {

// A port may have negotiated a lower rate than its switch offers (10, 100 or 1000 Mbit/s),
// unnoticed.
constexpr double kHostLinkLogSd = 1.0;
constexpr double kStatedDeviceLinkLogSd = 0.7;
// Of the way to a card of RDMA. Behind the device's own switch it is what a copy reaches, 0.76 to
// 0.8 of PCI Express or the card's whole line (NVIDIA/nccl, issue 1048; ZaidQureshi/bam, issue 54);
// by way of the host's memory 0.3 to 0.4 (NVIDIA/nccl, issues 243 and 465; NVIDIA/nccl-tests,
// issues 29 and 112), at worst 0.1 (NVIDIA/nccl, issue 595).
constexpr double kHostPciLogSd = 0.8;
// Overhead of an operation: it depends on the host's processor and on the framework.
constexpr double kHostLogSd = 0.5;
// Optimizers fuse their passes over memory, or do not.
constexpr double kProfiledUpdateLogSd = 0.2;

// How often an optimizer passes over the parameters, against momentum, whose update the table has.
double PassesBeside(Optimizer optimizer) {
  const auto passes = [](Optimizer of) {
    return CountOperation(UpdateOp{of, 1}, TrainingPass::kUpdate).elements;
  };
  return passes(optimizer) / passes(Optimizer::kMomentum);
}

// The line rate of links that nobody states.
Prior UnstatedLinkPrior(const Cluster& cluster, const std::optional<Device>& device) {
  if (device && device->device_link && cluster.devices_per_node > 1) {
    return {kCardToDeviceLink * device->device_link->si(), kCardToDeviceLinkLogSd};
  }
  return PriorOf(kClusterParameterSpecs[kLinkBandwidth]);
}

}  // namespace

Prior PriorOf(const ParameterSpec& spec) {
  return {spec.prior * spec.si_per_unit, spec.prior_log_sd};
}

ClusterPriors MakeClusterPriors(const Cluster& cluster, const std::optional<Device>& device) {
  ClusterPriors priors;
  for (std::size_t i = 0; i < priors.size(); ++i) priors[i] = PriorOf(kClusterParameterSpecs[i]);
  priors[kLinkBandwidth] = cluster.link.bandwidth
                               ? Prior{cluster.link.bandwidth->si(), kStatedLinkLogSd}
                               : UnstatedLinkPrior(cluster, device);
  std::optional<DataRate<>> device_link = cluster.device_link.bandwidth;
  if (!device_link && device && cluster.devices_per_node > 1) device_link = device->device_link;
  if (device_link) {
    priors[kHostBandwidth] = {device_link->si(), kStatedDeviceLinkLogSd};
  } else if (cluster.devices_per_node == 1 && cluster.link.rdma() && device && device->host_link) {
    // No exchange is within such a node, and no kernel copies: a card reads from the device,
    // through PCI Express. A line that no slot carries is that of several cards.
    const DataRate<> slot = *device->host_link;
    priors[kHostBandwidth] = {std::max(slot, cluster.link.bandwidth.value_or(slot)).si(),
                              kHostPciLogSd};
  }
  return priors;
}

Prior HostLinkPrior(const Cluster& cluster, const std::optional<Device>& device,
                    const LinkFacts& own) {
  if (own.bandwidth) return {own.bandwidth->si(), kStatedLinkLogSd};
  if (cluster.link.bandwidth) return {cluster.link.bandwidth->si(), kHostLinkLogSd};
  return UnstatedLinkPrior(cluster, device);
}

WorkloadPriors MakeWorkloadPriors(const Workload& workload, const std::optional<Device>& device,
                                  const ProfiledCompute* profile) {
  WorkloadPriors priors;
  for (std::size_t i = 0; i < priors.size(); ++i) priors[i] = PriorOf(kWorkloadParameterSpecs[i]);
  priors[kUpdateTime].si *= PassesBeside(workload.optimizer);
  if (workload.inputs_vary) {
    priors[kStragglerSpread] = *workload.inputs_vary
                                   ? Prior{kSpreadOfVarying, kSpreadOfVaryingLogSd}
                                   : Prior{kSpreadOfAlike, kSpreadOfAlikeLogSd};
  }
  if (profile != nullptr) {
    const FittedCurve<double> curve = profile->Curve();
    const double log_sd = profile->LogSd(profile->batches().back());
    // The fixed part is the host's, of which little is known, and what no layer's batch changes.
    const double host = profile->runs_ahead() ? 0 : profile->Host() / curve.fixed;
    priors[kFixedTime] = {curve.fixed.si(), std::hypot(kHostLogSd * host, log_sd * (1 - host))};
    priors[kFloorTime] = {curve.floor.si(), kHostLogSd};
    priors[kSampleTime] = {curve.per_sample.si(), log_sd};
    priors[kUpdateTime] = {profile->Update().si(), std::hypot(log_sd, kProfiledUpdateLogSd)};
  } else if (HasSheetTime(workload, device)) {
    const SheetCompute sheet(workload, *device);
    const FittedCurve<double> curve = sheet.Curve();
    const ParameterSpec& fixed = kWorkloadParameterSpecs[kFixedTime];
    priors[kFixedTime] = {std::max(curve.fixed.si(), fixed.low * fixed.si_per_unit),
                          kSheetFixedLogSd};
    priors[kFloorTime] = {curve.floor.si(), kSheetFixedLogSd};
    priors[kSampleTime] = {curve.per_sample.si(), kSheetTimeLogSd};
    priors[kUpdateTime] = {sheet.At(1).update.si(), kSheetTimeLogSd};
  }
  return priors;
}

void RequireInRange(const ParameterSpec& spec, double si, const InputPlace& place) {
  constexpr double kRounding = 1e-6;  // of files
  const double value = si / spec.si_per_unit;
  if (value >= spec.low * (1 - kRounding) && value <= spec.high * (1 + kRounding)) return;
  const std::string unit = (spec.unit.empty() ? "" : " ") + std::string(spec.unit);
  std::ostringstream text;
  std::ostringstream range;
  text << value << unit;
  range << spec.low << " to " << spec.high << unit;
  throw InputError(place, text.str(), "is out of range", range.str());
}

}  // namespace stepcast
