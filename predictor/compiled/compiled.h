// The inside of a CompiledPlan: what it keeps, and how it answers.
#ifndef STEPCAST_PREDICTOR_COMPILED_COMPILED_H_
#define STEPCAST_PREDICTOR_COMPILED_COMPILED_H_

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "data/plan/limits.h"
#include "data/record/link_path.h"
#include "model/compute/profiled_compute.h"
#include "model/exchange/library_choice.h"
#include "model/memory/memory.h"
#include "model/step/belief.h"
#include "model/step/job_spread.h"
#include "model/step/recomputation.h"
#include "model/step/step.h"
#include "predictor/compiled/exchange.h"
#include "predictor/compiled/interval.h"
#include "predictor/compiled/known_parts.h"
#include "predictor/compiled_plan.h"

namespace stepcast::internal {

// What queries look up that depends on the parameters.
struct CompiledValues {
  ClusterParameters<double> cluster;
  WorkloadParameters<double> workload;
  // By local batch.
  std::vector<Duration<>> curve;
  // Rates of the paths whose link is the compiled one and loses nothing, by their peers: those of
  // nodes and of servers.
  Rates<double> rates;
};

struct CompiledState : CompiledValues {
  CompiledState(const Predictor& predictor, const Plan& compiled_plan, const CompileOptions& given);

  Plan plan;
  CompileOptions options;
  PlanQuery own;
  std::vector<int> own_slow_workers;  // of the plan's placement, by slow nodes
  Belief belief;

  // Facts that no query changes.
  StepFacts facts;
  bool library_may_choose = false;  // another algorithm for some queries
  std::shared_ptr<const std::vector<Bucket>> buckets;
  std::vector<BucketLine> lines;
  OverlapLines async_lines;
  std::vector<Shards> shards;  // by number of servers

  std::shared_ptr<const CountTables> counts;

  // Where there is a profile, by local batch: its factor on the curve, and how much worse it knows.
  std::shared_ptr<const ProfiledCompute> profile;
  std::vector<double> shape;
  std::vector<double> profile_log_sd;
  // What recomputed activations add, by local batch where there are any.
  Recomputation recomputation;
  std::vector<Recomputing> recomputing;

  std::shared_ptr<const IntervalTables> intervals;
  CalibratedRange range;
  std::optional<CalibratedRange::BatchRange> batches;
  OtherJobs other_jobs;

  ModelMemory model_memory;
  std::optional<DataSize<>> memory_available;
  Activations activations;
  bool counts_activations = false;
  int most_batch = kMostBatch;  // that the profile knows to fit

  static bool IsBatch(int local_batch, int accumulation_steps) {
    return local_batch >= 1 && local_batch <= kMostBatch && accumulation_steps >= 1 &&
           accumulation_steps <= kMostCount;
  }
  QueryStatus Check(const PlanQuery& query) const;
  // Not all where the slow ones take other samples than the rest.
  int MostSlowNodes(const PlanQuery& query) const {
    return query.nodes - (plan.slow_local_batch ? 1 : 0);
  }
  std::optional<QueryProblem> ProblemOf(const PlanQuery& query) const;
  // What does not grow with the samples.
  MemoryNeed MemoryBesideSamples(const PlanQuery& query) const;
  // The functions below take a query that Check has found right.
  MemoryVerdict Memory(const PlanQuery& query) const;
  StepFacts FactsOf(const PlanQuery& query) const;
  // The plan's, unless a library takes another algorithm between two nodes.
  Strategy StrategyOf(const PlanQuery& query) const {
    return library_may_choose ? LibraryAllreduce(query.nodes, query.devices_per_node, true)
                              : facts.strategy;
  }
  // Workers on slow nodes, and the samples that are stated of them.
  int SlowWorkers(const PlanQuery& query) const;
  std::optional<int> SlowBatch(const PlanQuery& query) const {
    return query.slow_nodes.value_or(plan.slow_nodes) > 0 ? plan.slow_local_batch : std::nullopt;
  }
  KnownParts<double> PartsOf(const PlanQuery& query) const { return PartsOf(query, curve, rates); }
  template <class Rate, class Curve>
  KnownParts<Rate, Curve> PartsOf(const PlanQuery& query,
                                  const std::vector<Duration<Curve>>& of_curve,
                                  const Rates<Rate>& of_rates) const;
  double ShapeAt(int batch) const {
    if (!profile) return 1;
    const auto at = static_cast<std::size_t>(batch);
    return at < shape.size() ? shape[at] : profile->ShapeAt(batch);
  }
  Recomputing RecomputingAt(int batch) const {
    if (!recomputation.exists()) return {};
    const auto at = static_cast<std::size_t>(batch);
    return at < recomputing.size() ? recomputing[at] : recomputation.At(batch);
  }
  double BackwardShareAt(int batch) const {
    return stepcast::BackwardShare(RecomputingAt(batch), cluster.overlap_share());
  }
  Duration<> StepTime(const PlanQuery& query) const {
    return StepTimeAt(*this, query, FactsOf(query));
  }
  // What StepFacts LaterSide is at these values.
  StepFacts LaterSideAt(const CompiledValues& at, const PlanQuery& query, const StepFacts& f) const;
  // At other values than those that are believed.
  Duration<> StepTimeAt(const CompiledValues& at, const PlanQuery& query, const StepFacts& f) const;
  stepcast::StepTime<double> StepAt(const CompiledValues& at, const PlanQuery& query,
                                    const StepFacts& f) const;
  // False where lines do not tell: asynchronous or pipelined servers, flows that start slowly, what
  // is sharded or rare, slow nodes with other samples.
  bool MakeExchange(const PlanQuery& query, Exchange* exchange) const {
    if (!SetExchange(query, exchange)) return false;
    exchange->Close();
    return true;
  }
  bool SetExchange(const PlanQuery& query, Exchange* exchange) const;  // all but its Close
  // Adds one step to those that are not full; its batch is one that IsBatch accepts.
  void Put(const Exchange& exchange, int local_batch, int accumulation_steps, Joints* to) const {
    const std::size_t i = to->size++;
    const double micro = MicroStepIn(exchange, local_batch);
    to->micro_s[i] = micro;
    to->steps[i] = accumulation_steps;
    to->share[i] = BackwardShareAt(local_batch);
    to->end_s[i] = exchange.EndOf(micro * to->share[i]);
    to->all_s[i] = exchange.all_s;
    to->overhead_s[i] = exchange.overhead_s;
    to->wait[i] = exchange.wait;
    to->arrival_s[i] = exchange.arrival_s * local_batch * accumulation_steps;
  }
  // Their step times.
  void JoinAll(const Joints& of, double* step_times_s) const;
  // Those of one exchange; NaN for what IsBatch refuses.
  void StepTimes(const Exchange& exchange, const int* local_batches, const int* accumulation_steps,
                 std::size_t count, double* step_times_s) const;
  double MicroStepIn(const Exchange& exchange, int local_batch) const {  // [s]
    if (!facts.has_compute) return 0;
    return CurveTimeIn(curve, local_batch, workload).si() *
           (exchange.sharing * ShapeAt(local_batch));
  }
  double ProfileLogSd(int batch) const;
  // The rates of the paths that queries on the plan's own links take, into a table of their scalar.
  template <class T>
  void RecordRates(const ClusterParameters<T>& of_cluster, const WorkloadParameters<T>& of_workload,
                   Rates<T>* recorded) const;
  void SetShards(const Workload& network);
  void SetMemory(const Predictor& predictor);
  void SetTables();
};

template <class Rate, class Curve>
KnownParts<Rate, Curve> CompiledState::PartsOf(const PlanQuery& q,
                                               const std::vector<Duration<Curve>>& of_curve,
                                               const Rates<Rate>& of_rates) const {
  // The helpers' link counts where there are helpers.
  const bool own_link =
      q.link.empty() && q.server_link.empty() && StrategyOf(q) == facts.strategy &&
      (!TraitsOf(facts.strategy).helpers || (q.servers > 0) == (facts.servers > 0));
  KnownParts<Rate, Curve> parts;
  parts.curve = &of_curve;
  parts.rates = own_link ? &of_rates : nullptr;
  parts.counts = counts.get();
  parts.lines = &lines;
  if (!shards.empty()) parts.held = &shards[static_cast<std::size_t>(q.servers)].lines;
  parts.async_lines = &async_lines;
  return parts;
}

template <class T>
void CompiledState::RecordRates(const ClusterParameters<T>& of_cluster,
                                const WorkloadParameters<T>& of_workload,
                                Rates<T>* recorded) const {
  // Peers up to which there is a table; beyond, the same formulas are evaluated.
  constexpr int kTabledPeers = 256;
  // Where packets are lost, or the core of the network has its part, a rate depends on more than
  // the peers.
  const auto depends = [](const LinkFacts& link) {
    return link.loss.value_or(0) > 0 || IsOversubscribed(link);
  };
  if (depends(facts.link) || depends(facts.server_link)) return;
  if (!TraitsOf(facts.strategy).exchanges) return;
  RecordedParts<T> parts;
  parts.rates = recorded;
  StepFacts tried = facts;
  tried.server_share = 1;
  tried.devices_per_node = 1;
  const bool servers = UsesServers(facts.strategy);
  const auto record = [&](int workers, int of_servers) {
    tried.workers = tried.nodes = workers;
    tried.servers = of_servers;
    if (servers) {
      MakeServerRoutes<T>(tried, of_cluster, of_workload, parts, nullptr);
    } else {
      MakeCollectiveHops<T>(tried, of_cluster, parts, nullptr);
    }
  };
  for (int w = 1; w <= kTabledPeers; ++w) record(w, std::min(facts.servers, 1));  // fewest peers
  for (int n = 2; servers && n <= options.most_servers; ++n) record(1, n);
}

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_COMPILED_COMPILED_H_
