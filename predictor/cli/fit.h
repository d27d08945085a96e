// A fit to measured runs: how commands make it, and what they tell of it.
#ifndef STEPCAST_PREDICTOR_CLI_FIT_H_
#define STEPCAST_PREDICTOR_CLI_FIT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/calibrate.h"
#include "calibrate/identifiability.h"
#include "calibrate/suspects.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {

// One workload on a device, as the runs have it.
struct MeasuredWorkload {
  std::string workload;
  std::string device;
  CalibratedRange::BatchRange batches;
};

// The forecast of a plan that uses the whole cluster, with the smallest batch that was fitted.
struct WholeForecast {
  MeasuredWorkload of;
  Plan plan;
  Prediction prediction;
};

struct Fit {
  CalibrationProblem problem;
  CalibrationOutcome outcome;
  // All of these are empty where the outcome is not usable.
  std::vector<Suspect> suspects;
  std::vector<Ambiguity> ambiguities;
  std::vector<std::string> caveats;
  std::vector<MeasuredWorkload> workloads;
  std::vector<WholeForecast> whole_cluster;  // none of a cluster that is larger than a plan may be

  // What came out; the outcome has to be usable.
  const Calibration& calibration() const { return *outcome.cluster.calibration; }
};

// The cluster, the runs and what else is known: all that a fit is made of.
void AddFitOptions(po::options_description* options);
Fit MakeFit(const Arguments& arguments);
// What --fix and --prior state. Throws InputError where one cannot be, or is stated twice.
std::vector<ParameterStatement> ReadStatements(const Arguments& arguments);

// The plan uses all devices of the cluster, and names its hosts where all of them are known.
void UseWholeCluster(const Cluster& cluster, Plan* plan);

// ---- In words. All but FitJson are of a usable outcome.

// "5 Gbit/s".
std::string ValueText(double value, const std::string& unit);
std::string FitTitle(const Fit& fit);
// How closely the runs are met, and which of them say less than others.
std::vector<std::string> FitNotes(const Fit& fit);
// What an earlier calibration of the cluster means for this one: nothing.
std::vector<std::string> EarlierNotes(const Fit& fit);
std::string SuspectText(const Fit& fit, const Suspect& suspect);
std::string AmbiguityText(const Ambiguity& ambiguity);

// The fitted values beside their priors. Without `all`, those that stayed on them are counted in
// `hidden` instead.
Table ParameterTable(const Fit& fit, bool all, int* hidden);
// The parts of the interval of each forecast for the whole cluster.
Table WholeTable(const Fit& fit);

Json FitJson(const Fit& fit);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_FIT_H_
