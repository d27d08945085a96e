// The table's entries of all parameters, whosever they are.
#ifndef STEPCAST_MODEL_STEP_PARAMETER_SPECS_H_
#define STEPCAST_MODEL_STEP_PARAMETER_SPECS_H_

#include <array>
#include <string_view>

#include "model/step/parameters.h"

namespace stepcast {

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
