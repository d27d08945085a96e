// The templates of model/step/step.h.
#ifndef STEPCAST_MODEL_STEP_STEP_IMPL_H_
#define STEPCAST_MODEL_STEP_STEP_IMPL_H_

#include <vector>

#include "model/compute/fitted_curve.h"
#include "model/exchange/async_step.h"
#include "model/exchange/choice.h"
#include "model/exchange/collective_step.h"
#include "model/exchange/server_step.h"
#include "model/network/hop.h"
#include "model/network/transport.h"
#include "model/step/join.h"
#include "model/step/step.h"
#include "model/sync/straggler.h"

namespace stepcast::internal {

template <class T, class Parts>
Duration<T> MicroStep(const StepFacts& facts, const ClusterParameters<T>& cluster,
                      const WorkloadParameters<T>& workload, const Parts& parts) {
  if (!facts.has_compute) return {};
  const T sharing = Crowded(facts, cluster.host_contention());
  const Duration<T> micro =
      parts.CurveTime(facts.batch, workload) * (sharing * facts.compute_shape);
  const std::optional<T> slowdown = SlowdownOf(facts, cluster);
  return slowdown ? micro * *slowdown : micro;
}

// The parts of a step that few plans differ in: a curve's time of a batch, the rate of a path, a
// logarithm, an order statistic, the end of a schedule. Here each is computed anew; a compiled plan
// looks them up (predictor/compiled_plan.h).
struct ComputedParts {
  template <class T>
  Duration<T> CurveTime(double batch, const WorkloadParameters<T>& workload) const {
    const FittedCurve<T> curve{workload.fixed_time(), workload.floor_time(),
                               workload.sample_time()};
    return curve.Time(Samples(batch));
  }
  template <class T>
  PathRate<T> NodeRate(const LinkFacts& link, const ClusterParameters<T>& cluster,
                       const FlowShape& shape, const Barrier<T>& barrier,
                       PathTerms<T>* terms) const {
    const NodeLine line = LineOfSlowest(link, cluster, shape);
    FlowShape flows = shape;
    if (!line.crossed) flows.core = {};
    const DataRate<T> fitted = line.own ? cluster.node_link() : cluster.link_bandwidth();
    return DeliverTo(MakePath(link, fitted, cluster, flows), flows, FlowsOf(cluster), barrier,
                     terms);
  }
  // Rate of a server's link, or of a helper's.
  template <class T>
  PathRate<T> ServerRate(const LinkFacts& link, const ClusterParameters<T>& cluster,
                         const FlowShape& shape, const Barrier<T>& barrier,
                         PathTerms<T>* terms) const {
    return DeliverTo(MakePath(link, cluster.link_bandwidth(), cluster, shape), shape,
                     FlowsOf(cluster), barrier, terms);
  }
  // Limits of one connection between a worker and a server.
  template <class T>
  FlowLimits<T> ConnectionLimits(const LinkFacts& path, const ClusterParameters<T>& cluster,
                                 const Barrier<T>& barrier) const {
    return LimitsOfFlow(MakePath(path, cluster.link_bandwidth(), cluster), barrier);
  }
  // The slowest of a hop of each node, in standard deviations.
  double SlowestHop(int nodes) const { return ExpectedNormalRank(nodes, nodes); }
  // The slowest of a step's workers, in standard deviations.
  double Slowest(const StepFacts& facts) const {
    return ExpectedSlowest(facts.workers, facts.backup_workers);
  }
  template <class T>
  Duration<T> ServersEnd(const StepFacts& facts, const ServerPhases<T>& phases,
                         const Duration<T>& backward, const FirstBucketDelays<T>& late) const {
    return ScheduleServers(phases, *facts.buckets, *facts.held_buckets, backward,
                           facts.server.pipelined, late)
        .pulled;
  }
  const OverlapLines* AsyncLines(const StepFacts& /*facts*/) const { return nullptr; }
};

// Times that a step is joined from, beside the counts.
template <class T>
struct StepInputs {
  Duration<T> micro;  // one micro-step
  T backward_share = T(0.0);
  T overlap_contention = T(0.0);
  T straggler_spread = T(0.0);
  double fast_pace = 1.0;   // of `micro`, which is the slowest worker's (FastPace)
  Duration<T> update;       // the optimizer's, on a worker
  Duration<T> overhead;     // fixed cost of a synchronisation
  Duration<T> timeout;      // of a retransmission, after which silent flows start slowly
  CollectiveHops<T> hops;   // of a collective
  ServerRoutes<T> servers;  // of ps-sync and ps-async
};

template <class T, class Parts>
StepInputs<T> MakeStepInputs(const StepFacts& facts, const ClusterParameters<T>& cluster,
                             const WorkloadParameters<T>& workload, const Parts& parts,
                             StepTerms<T>* terms) {
  StepInputs<T> inputs;
  inputs.micro = MicroStep(facts, cluster, workload, parts);
  inputs.backward_share = BackwardShare(facts, cluster.overlap_share());
  inputs.overlap_contention = cluster.overlap_contention();
  inputs.straggler_spread = workload.straggler_spread();
  inputs.fast_pace = FastPace(facts, cluster);
  inputs.update = workload.update_time();
  if (const std::optional<T> slowdown = SlowdownOf(facts, cluster)) {
    inputs.update = inputs.update * *slowdown;
  }
  if (Alone(facts)) return inputs;
  const bool servers = UsesServers(facts.strategy);
  // The framework's, which a bare message has not.
  if (facts.has_compute) {
    inputs.overhead =
        (LeavesNode(facts) ? cluster.node_sync_overhead() : cluster.device_sync_overhead()) *
        (1.0 / facts.local_steps);
  }
  inputs.timeout = cluster.loss_timeout();
  if (servers) {
    inputs.servers = MakeServerRoutes(facts, cluster, workload, parts, terms);
  } else {
    inputs.hops = MakeCollectiveHops(facts, cluster, parts, terms);
  }
  return inputs;
}

// The step of these inputs.
template <class T, class Parts>
StepTime<T> JoinStep(const StepFacts& facts, const StepInputs<T>& inputs, const Parts& parts,
                     StepTerms<T>* terms) {
  const bool servers = UsesServers(facts.strategy);
  const bool alone = Alone(facts);
  const Duration<T> backward = inputs.micro * inputs.backward_share;
  if (terms != nullptr) {
    terms->micro = inputs.micro;
    terms->backward = backward;
    if (!alone) terms->overhead = inputs.overhead;
  }
  JoinInputs<T> in;
  in.micro_steps = facts.accumulation_steps;
  in.micro = inputs.micro;
  in.backward = backward;
  in.beside = Beside(facts, in.micro, backward);
  in.arrival = ArrivalOf(facts);
  if (facts.has_compute && (!servers || alone)) in.update = inputs.update * UpdateShare(facts);
  Synchronisation<T> sync;
  if (!alone) {
    in.wait = inputs.straggler_spread * (SpreadOfStep(facts) * parts.Slowest(facts));
    if (TraitsOf(facts.strategy).asynchronous()) {
      return JoinCycle(facts, inputs, backward, in.wait, parts, terms);
    }
    const Duration<T>& micro = inputs.micro;
    sync = servers
               ? Synchronise(facts, inputs.servers, micro, backward, inputs.timeout, parts, terms)
               : Synchronise(facts, inputs.hops, micro, backward, inputs.timeout);
    in.all = sync.All(facts);
    in.end = sync.end;
    in.contention = inputs.overlap_contention;
    in.overhead = inputs.overhead;
    in.coding = CodingOf(facts);
  }
  const JoinedStep<T> joined = Join(facts.overlap, in);

  StepTime<T> step;
  step.forward = joined.forward;
  step.backward = joined.backward;
  step.update = joined.update;
  step.input_wait = joined.input;
  if (alone) {
    if (terms != nullptr && TraitsOf(facts.strategy).exchanges) {
      terms->async.cycle = terms->async.alone = step.total();
      if (step.total().si() > 0.0) terms->async.updates = 1.0 / step.total();
    }
    return step;
  }
  step.coding = Duration<T>(joined.coding);
  step.synchronisation = in.all + joined.overhead + joined.coding;
  step.exposed_transfer = ExposedTransfer(joined.exposed, sync.Transfer(facts), in.all);
  step.exposed_latency = joined.exposed - step.exposed_transfer + joined.overhead;
  step.limiter = step.exposed_transfer < step.exposed_latency ? Limiter::kLatency : sync.limiter;
  step.straggler_wait = joined.wait;
  if (terms != nullptr) {
    terms->cost = sync.cost;
    terms->passes = sync.passes;
    terms->slow_start = sync.slow_start;
    terms->end = sync.end;
    terms->hidden = joined.hidden;
    terms->coding = joined.coding;
    terms->contention = joined.contention;
  }
  return step;
}

// The side of a step that ends later, which is the step; that of the other nodes where neither
// does. The facts as they are where all workers take the same samples.
template <class T, class Parts>
StepFacts LaterSide(const StepFacts& facts, const ClusterParameters<T>& cluster,
                    const WorkloadParameters<T>& workload, const Parts& parts) {
  if (!facts.slow_share) return facts;
  const auto step_of = [&](const StepFacts& side) {
    const StepInputs<T> inputs = MakeStepInputs<T>(side, cluster, workload, parts, nullptr);
    return ValueOf(JoinStep<T>(side, inputs, parts, nullptr).total());
  };
  StepFacts fast = FastSide(facts);
  StepFacts slow = SlowSide(facts);
  return step_of(fast) < step_of(slow) ? slow : fast;
}

}  // namespace stepcast::internal

namespace stepcast {

template <class T>
StepFacts LaterSide(const StepFacts& facts, const ClusterParameters<T>& cluster,
                    const WorkloadParameters<T>& workload) {
  return internal::LaterSide(facts, cluster, workload, internal::ComputedParts());
}

template <class T>
AllreduceChoice<T> EvaluateChoice(const StepFacts& facts, const ClusterParameters<T>& cluster) {
  std::vector<AllreduceCandidate<T>> candidates;
  StepFacts one = facts;
  for (const Strategy algorithm : AllreduceAlgorithms(internal::ShapeOf(facts))) {
    one.strategy = algorithm;
    const internal::CollectiveHops<T> hops =
        internal::MakeCollectiveHops<T>(one, cluster, internal::ComputedParts(), nullptr);
    candidates.push_back({algorithm, internal::CollectiveCost(one, hops)});
  }
  return ChooseAmong(candidates, facts.workers, internal::MeanBucket(facts));
}

template <class T>
PhaseBenefit<T> EvaluateServerPhases(const StepFacts& facts, const ClusterParameters<T>& cluster,
                                     const WorkloadParameters<T>& workload) {
  const internal::ServerRoutes<T> routes =
      internal::MakeServerRoutes<T>(facts, cluster, workload, internal::ComputedParts(), nullptr);
  const StepFacts later = LaterSide(facts, cluster, workload);
  const Duration<T> micro =
      internal::MicroStep(later, cluster, workload, internal::ComputedParts());
  return CompareNetworkServices(WithoutLatency(routes.paths), *facts.buckets, *facts.held_buckets,
                                micro * internal::BackwardShare(later, cluster.overlap_share()),
                                facts.server.pipelined);
}

template <class T>
StepTime<T> EvaluateStep(const StepFacts& facts, const ClusterParameters<T>& cluster,
                         const WorkloadParameters<T>& workload, StepTerms<T>* terms) {
  if (facts.slow_share) {
    const StepFacts later = LaterSide(facts, cluster, workload);
    const StepTime<T> step = EvaluateStep(later, cluster, workload, terms);
    if (terms != nullptr) terms->slow_is_later = later.slow_workers > 0;
    return step;
  }
  const internal::ComputedParts parts;
  if (terms != nullptr) *terms = {};
  return internal::JoinStep(facts, internal::MakeStepInputs(facts, cluster, workload, parts, terms),
                            parts, terms);
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_STEP_IMPL_H_
