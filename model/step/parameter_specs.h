// The table's entries of all parameters, whosever they are.
#ifndef STEPCAST_MODEL_STEP_PARAMETER_SPECS_H_
#define STEPCAST_MODEL_STEP_PARAMETER_SPECS_H_

#include <array>
#include <string_view>

#include "model/step/parameters.h"

namespace stepcast {

// How fast a device computes against what its data sheet lets expect; all workloads on it share it.
inline constexpr ParameterSpec kDeviceSpeedSpec = {
    "device_speed",
    "",
    1,
    1,
    0.35,
    0.02,
    50,
    "how fast the device computes against what its data sheet lets expect",
    "public step times of networks on K80, P100, T4 and RTX boards",
    "compute/fitted_curve"};

// Compute of one host against the others: all that its devices compute takes so many times as long.
// A host has this parameter only where runs show that it differs (calibrate/slow_hosts.h); the
// others compute like each other, which is exactly 1.
inline constexpr ParameterSpec kComputeSlowdownSpec = {
    "compute_slowdown",
    "",
    1,
    1,
    0.4,
    0.2,
    20,
    "how many times as long a host computes as the others do: throttled, shared or older devices",
    "devices of one kind differ by 8 per cent on average and by half at most within a cluster "
    "(Sinha et al., Not All GPUs Are Created Equal, SC 2022)",
    "compute/fitted_curve"};

// Every parameter: those of a cluster, of a workload, of a device, of a host.
inline constexpr auto kParameterSpecs = [] {
  std::array<const ParameterSpec*,
             kClusterParameterSpecs.size() + kWorkloadParameterSpecs.size() + 2>
      all{};
  auto* next = all.begin();
  for (const ParameterSpec& spec : kClusterParameterSpecs) *next++ = &spec;
  for (const ParameterSpec& spec : kWorkloadParameterSpecs) *next++ = &spec;
  *next++ = &kDeviceSpeedSpec;
  *next = &kComputeSlowdownSpec;
  return all;
}();

// The parameter of that name, if there is one.
constexpr const ParameterSpec* FindParameterSpec(std::string_view name) {
  for (const ParameterSpec* spec : kParameterSpecs) {
    if (spec->name == name) return spec;
  }
  return nullptr;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_PARAMETER_SPECS_H_
