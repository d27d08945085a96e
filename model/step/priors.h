// Priors of the step model's parameters, before any run is measured.
#ifndef STEPCAST_MODEL_STEP_PRIORS_H_
#define STEPCAST_MODEL_STEP_PRIORS_H_

#include <array>
#include <optional>

#include "data/record/input_error.h"
#include "data/record/machine.h"
#include "data/record/workload.h"
#include "model/compute/profiled_compute.h"
#include "model/step/parameters.h"

namespace stepcast {

// ln(value) is normal around ln(si) with log_sd.
struct Prior {
  double si = 1;
  double log_sd = 1;
};

// Of ln(share of a stated line rate that is reached), beyond the share of the payload, wherever
// it is stated: in the cluster's file, for all hosts or one, where it is the width of a prior,
// or with the plan. Fitted on public networks of stated rate: 0.99 (the lab), 0.84 (UFRGS), 1.06
// (HKBU), 1.0 by NCCL and 0.53 or more by Gloo (tc_netem_collectives); together 0.99
// (docs/reference/sources.md). Ports that had negotiated a lower rate are no part of it.
inline constexpr double kStatedLinkLogSd = 0.35;
// The line rate of a card that nobody states, of nodes whose devices have links of their own by
// their data sheet: such boards stand in machines that are built for networks, whose cards grow
// with PCI Express as these links do. Of one device's links, each way, a card carries 0.02 (AWS
// p3.16xlarge: 25 Gbit/s), 0.04 (Google a2, AWS p4d, Polaris), 0.08 (AWS p3dn, Azure ND40rs v2,
// DGX-1 with V100, DGX A100), 0.11 (AWS p5, DGX H100) or 0.17 (LUMI).
inline constexpr double kCardToDeviceLink = 0.07;
inline constexpr double kCardToDeviceLinkLogSd = 1.1;
// What a rate tells of the share that is reached of another. A slower link than those of the runs
// is filled at least as well by what filled them; a faster one shows what had no need to be fast.
inline constexpr double kShareLogSdPerDoubling = 0.15;
inline constexpr double kShareLogSdPerHalving = 0.05;

// The data sheet's own fixed part is the device's, of layers that so small a batch does not fill;
// beside a fixed_time that runs tell it belongs to the floor, which is the device's time of one
// sample, as little known as the table's.
inline Prior FloorBesideSamples(double fixed_of_sheet, double sample) {
  return {fixed_of_sheet + sample, kWorkloadParameterSpecs[kFloorTime].prior_log_sd};
}
// What no batch changes of a micro-step is the host's, who launches each of those layers in either
// pass and hands samples over. Of 18 public networks on six GPUs (AdaptDL's, Sia's, TensorFlow's of
// 2017, RTX boards) it is 3.3 times the sheet's fixed part in the mean of the four, and 0.5 to 20
// times; of the step at the smallest batch it is 0.03 to 0.9, by the batch that was measured.
inline constexpr double kFixedToSheet = 3.3;
inline constexpr double kFixedToSheetLogSd = 1.2;
inline Prior FixedBesideSheet(double fixed_of_sheet) {
  return {kFixedToSheet * fixed_of_sheet, kFixedToSheetLogSd};
}
// Where no data sheet tells of the layers, it is a fifth of a micro-step of the smallest batch that
// was measured, within a factor of e: in milliseconds it differs by more from network to network.
inline constexpr double kFixedToSamples = 0.25;
inline constexpr double kFixedToSamplesLogSd = 1.0;

// straggler_spread comes in two kinds, by Workload::inputs_vary: workers whose samples all have one
// size differ by little, those whose samples vary by the samples themselves. Fitted to public jobs:
// 0.003 to 0.08 (images, text of one length), 0.09 to 0.6 (speech, detection at several sizes;
// docs/reference/sources.md). The table's is for networks of which nobody says.
inline constexpr double kSpreadOfAlike = 0.034;
inline constexpr double kSpreadOfAlikeLogSd = 1.17;
inline constexpr double kSpreadOfVarying = 0.09;
inline constexpr double kSpreadOfVaryingLogSd = 1.0;

// Of ln(time / forecast), for a network on a device that nobody measured: device_speed's is shared
// by all workloads of the device, and what is left is the workload's own. Public steps of a network
// on one device are 1 to 12 % off where P100, T4 and RTX boards compute in 32 bits on inputs of one
// length, and up to a factor of 1.9 in mixed precision, and where a host is slower than others
// (docs/explanation/compute.md). 427 steps of 23 devices that had no part in the curve have 0.26
// together; frameworks differ by 0.2 among themselves. Half as wide, fits take a measured step that
// is 2.4 times as fast as the sheet's for an outlier, as where nobody said that it ran in 16 bits.
inline constexpr double kWorkloadSpeedLogSd = 0.3;
inline constexpr double kSheetTimeLogSd = 0.46;
// What the data sheet lets expect of a batch that does not fill the device is less certain, since
// launches are the host's and the framework's: of 98 such steps of fewer than 16 samples 95 % are
// held with this spread, and of the 17 of 4 to 7 samples 88 %.
inline constexpr double kSheetFixedLogSd = 0.7;

using ClusterPriors = std::array<Prior, kClusterParameterCount>;
using WorkloadPriors = std::array<Prior, kWorkloadParameterCount>;

// The table's priors, centred on what the cluster file states: its link and its device link; where
// it states no device link, nodes of several devices begin with that of their data sheet, and where
// it states no link, with one that goes with it.
ClusterPriors MakeClusterPriors(const Cluster& cluster, const std::optional<Device>& device);

// The line rate of one host's link: its own statement, else the cluster's, else what its devices
// let expect.
Prior HostLinkPrior(const Cluster& cluster, const std::optional<Device>& device,
                    const LinkFacts& own);

// The table's prior, whatever is stated.
Prior PriorOf(const ParameterSpec& spec);

// The table's priors, centred on what the data sheet lets expect where there is one, and as wide as
// that is known to be. A profile of the device, where there is one, takes the sheet's place. Where
// there is neither, the update is momentum's, times how often the workload's optimizer passes over
// the memory against it.
WorkloadPriors MakeWorkloadPriors(const Workload& workload, const std::optional<Device>& device,
                                  const ProfiledCompute* profile = nullptr);

// Throws InputError at `place` for a value that the parameter cannot have.
void RequireInRange(const ParameterSpec& spec, double si, const InputPlace& place);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_PRIORS_H_
