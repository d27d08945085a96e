// The answer to one plan.
#ifndef STEPCAST_PREDICTOR_PREDICTION_H_
#define STEPCAST_PREDICTOR_PREDICTION_H_

#include <optional>
#include <string>
#include <vector>

#include "data/record/plan.h"
#include "data/units/quantity.h"
#include "model/exchange/server_outcomes.h"
#include "model/exchange/traffic.h"
#include "model/memory/memory_need.h"
#include "model/step/step_time.h"

namespace stepcast {

// Where the compute time comes from: runs of the workload on the device; its layers one by one on
// it; its data sheet; runs of other workloads on the device, of the workload on another one or in
// another precision, say, beside data sheets; kNone for a bare message; kPrior where nothing tells.
enum class ComputeSource {
  kFitted,
  kProfile,
  kDataSheet,
  kFromDevice,
  kFromOtherDevice,
  kNone,
  kPrior,
  kFromOtherTraining
};

// How fast each device does the products of its model, three times those of the forward pass for
// each sample that counts: not what is computed again, nor what the rest of the step computes.
struct ModelWork {
  WorkRate<> rate;                // in the mean of all devices and of the whole step
  std::optional<double> of_peak;  // of the data sheet at the precision of training (MFU)
};

struct Prediction {
  Duration<> step_time;
  // 90 % prediction interval of one measured step: as far below as above in ln(step), unless no
  // run told a pace (model/step/slow_ends.h), and never below that of the compute alone, nor below
  // what the products of dense layers take at the peak of the data sheet, where that alone tells of
  // compute and it is in 16 bits or fewer.
  Duration<> low;
  Duration<> high;
  double log_sd = 0;  // of ln(measured / predicted), of all that follows together
  // Its parts: parameters, one measured step, and the formulas beyond the calibrated range.
  double parameter_log_sd = 0;
  double scatter_log_sd = 0;
  double discrepancy_log_sd = 0;
  // Half, 95 and 99 in 100 steps take at most so long, where the prediction is right.
  Duration<> p50;
  Duration<> p95;
  Duration<> p99;
  SampleRate<> throughput;        // of all workers
  std::optional<ModelWork> work;  // of a workload whose layers are known
  // The parts add up to step_time. For ps-async all times are one worker's, and synchronisation is
  // the part of it that shows: what is hidden is not known apart.
  StepTime<double> breakdown;
  // What Limiter::kHost is of this plan: the way from a device to its node's network card, and not
  // an exchange between the devices of a node.
  bool host_leads_out = false;
  Traffic traffic;  // bytes of all buckets, transfers of each
  int buckets = 1;  // that the gradients are sent in
  MemoryNeed memory;
  // The evaluated algorithm: what a library takes for allreduce, what auto chose; and the reason.
  Strategy algorithm = Strategy::kAllreduce;
  std::string algorithm_reason;
  std::optional<ServerTimes<double>> server_times;    // ps-sync, ps-async, unless workers are alone
  std::optional<PhaseBenefit<double>> server_phases;  // ps-sync; as if overlapped by buckets
  std::optional<AsyncServers<double>> async_servers;  // ps-async
  ComputeSource compute_source = ComputeSource::kFitted;
  // Caveats to know before trusting the number, a sentence each: extrapolations, guesses.
  std::vector<std::string> flags;

  // Share of the step in which the device does no work of its own.
  double idle_ratio() const;
};

// What is to be said of a need that the count takes for more than there is; nothing of another.
std::optional<std::string> MemoryFlag(const MemoryNeed& memory);

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_PREDICTION_H_
