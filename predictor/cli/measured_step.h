// A measured step as options tell it, and networks of which such a step, or the size, is what is
// known.
#ifndef STEPCAST_PREDICTOR_CLI_MEASURED_STEP_H_
#define STEPCAST_PREDICTOR_CLI_MEASURED_STEP_H_

#include <string>

#include "predictor/cli/command.h"

namespace stepcast::cli {

inline constexpr const char* kOneWorker = "one-worker";

// "0.43 s", "0.43 s/it" or "2.3 it/s" as bars tell it, or "240 samples/s" of all workers of the
// plan.
Duration<> ReadStep(const std::string& raw, const InputPlace& place, const Plan& plan);

// One device by itself, at the plan's batch and accumulation.
Plan AloneOf(const Plan& plan);

// --parameters, which ReadTarget reads, and --one-worker, of commands that forecast.
void AddKnownOptions(po::options_description* options);

// The cluster, which has learnt the step of --one-worker where it is given: what compute takes is
// then known as calibrate would know it from that one run, beside all that its calibration knows.
Cluster WithKnownStep(const Arguments& arguments, const Target& target, const Cluster& cluster);
// The target with such a cluster. With --one-worker a device need not be told.
Target ReadKnownTarget(const Arguments& arguments);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_MEASURED_STEP_H_
