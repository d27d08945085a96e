// What a CompiledPlan keeps, and how it answers.
#ifndef STEPCAST_PREDICTOR_COMPILED_COMPILED_H_
#define STEPCAST_PREDICTOR_COMPILED_COMPILED_H_

#include <memory>
#include <optional>
#include <vector>

#include "data/plan/limits.h"
#include "model/step/belief.h"
#include "model/step/step.h"
#include "predictor/compiled/exchange.h"
#include "predictor/compiled/known_parts.h"
#include "predictor/compiled/slopes.h"
#include "predictor/compiled_plan.h"

namespace stepcast::internal {

struct CompiledState {
  CompiledState(const Predictor& predictor, const Plan& compiled_plan, const CompileOptions& given);

  Plan plan;
  CompileOptions options;
  PlanQuery own;
  Belief belief;

  // What no query changes.
  StepFacts facts;
  std::shared_ptr<const std::vector<Bucket>> buckets;
  std::vector<BucketLine> lines;
  OverlapLines async_lines;
  std::vector<Shards> shards;  // by number of servers

  ClusterParameters<double> cluster;
  WorkloadParameters<double> workload;
  ClusterParameters<LinkDual> cluster_by_link;
  WorkloadParameters<LinkDual> workload_by_link;
  ClusterParameters<HopDual> cluster_by_hop;
  WorkloadParameters<HopDual> workload_by_hop;
  ClusterParameters<ComputeDual> cluster_by_compute;
  WorkloadParameters<ComputeDual> workload_by_compute;

  // By local batch.
  std::vector<Duration<>> curve;
  std::vector<Duration<ComputeDual>> curve_by_compute;
  // Of paths whose link is the compiled one and loses nothing, by their peers: nodes' and servers'.
  Rates<double> rates;
  Rates<LinkDual> rates_by_link;
  std::vector<double> doublings;  // by a count
  std::vector<double> slowest;    // by workers

  // Of a profile, by local batch: what it makes of the curve, and what it knows worse there.
  std::shared_ptr<const ProfiledCompute> profile;
  std::vector<double> shape;
  std::vector<double> profile_log_sd;

  QuadraticForm covariance;
  CalibratedRange range;
  std::optional<CalibratedRange::BatchRange> batches;

  // Memory that activations may take, [more than one worker][accumulation]; none: unknown.
  std::optional<DataSize<>> memory_left[2][2];
  DataSize<> memory_per_sample;
  int most_batch = kMostBatch;  // that the profile knows to fit

  static bool IsBatch(int local_batch, int accumulation_steps) {
    return local_batch >= 1 && local_batch <= kMostBatch && accumulation_steps >= 1 &&
           accumulation_steps <= kMostCount;
  }
  QueryStatus Check(const PlanQuery& query) const;
  // What follows is of a query that Check has found right.
  StepFacts FactsOf(const PlanQuery& query) const;
  KnownParts PartsOf(const PlanQuery& query) const;
  double ShapeAt(int batch) const {
    if (!profile) return 1;
    const auto at = static_cast<std::size_t>(batch);
    return at < shape.size() ? shape[at] : profile->ShapeAt(batch);
  }
  Duration<> StepTime(const PlanQuery& query) const;
  // False where lines do not tell: asynchronous or pipelined servers, flows that start slowly.
  bool MakeExchange(const PlanQuery& query, Exchange* exchange) const;
  double StepTime(const Exchange& exchange, int local_batch, int accumulation_steps) const;
  // The same of many; NaN for what IsBatch refuses.
  void StepTimes(const Exchange& exchange, const int* local_batches, const int* accumulation_steps,
                 std::size_t count, double* step_times_s) const;
  double MicroStepIn(const Exchange& exchange, int local_batch) const;  // [s]
  double ProfileLogSd(int batch) const;
  // Derivatives, stage by stage.
  template <bool kHeldBack>
  void ByCollective(const StepFacts& f, const KnownParts& parts, Duration<> backward,
                    Duration<> idle, SyncSlopes* slopes) const;
  template <bool kHeldBack>
  void ByServers(const StepFacts& f, const KnownParts& parts, Duration<> backward, Duration<> idle,
                 SyncSlopes* slopes) const;
  // Adds what a part of the step depends on through a synchronisation: `by` its lanes it has these
  // derivatives, and `by_end_and_all` is the sum of those by its end and by its length.
  void AddSynchronisation(const StepFacts& f, const SyncSlopes& sync, const Lanes<kHeldLanes>& by,
                          double by_end_and_all, Gradient* gradient) const;
  void Predict(const PlanQuery& query, const StepFacts& f, Forecast* forecast) const;
  void PredictAsynchronous(const PlanQuery& query, const StepFacts& f, Forecast* forecast) const;
  // `by_step()` and `by_compute()` are the gradients of the logarithms of the step and its compute;
  // `shown` is what of the step is not compute.
  template <class ByStep, class ByCompute>
  void SetInterval(const PlanQuery& query, const KnownParts& parts, Duration<> step,
                   Duration<> compute, const ByStep& by_step, const ByCompute& by_compute,
                   Duration<> shown, Forecast* forecast) const;
  void SetShards(const Workload& network);
  void SetParameters(int link);
  void SetMemory(const Predictor& predictor);
  void SetTables();
};

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_COMPILED_COMPILED_H_
