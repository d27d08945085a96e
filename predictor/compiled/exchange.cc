#include "predictor/compiled/exchange.h"

#include <cmath>

#include "predictor/compiled/compiled.h"

namespace stepcast::internal {

bool CompiledState::MakeExchange(const PlanQuery& query, Exchange* exchange) const {
  const StepFacts f = FactsOf(query);
  exchange->count = 0;
  exchange->all_s = exchange->wait = 0;
  exchange->sharing = 1 + cluster.host_contention() * static_cast<double>(f.devices_per_node - 1);
  const bool servers = UsesServers(f.strategy);
  const bool alone = Alone(f);
  exchange->overhead_s = f.has_compute && (!servers || alone) ? workload.update_time().si() : 0;
  if (alone) return true;
  const bool slow_start =
      (servers ? PathToServers(f) : NodeLink(f)).rtt && (servers || f.nodes > 1);
  if (f.strategy == Strategy::kPsAsync || f.server.pipelined || slow_start) return false;

  const KnownParts parts = PartsOf(query);
  const StepInputs<double> inputs = MakeStepInputs<double>(f, cluster, workload, parts, nullptr);
  exchange->overhead_s += inputs.overhead.si();
  exchange->wait = inputs.straggler_spread * parts.Slowest(f);
  if (!servers) {
    const PipelinedRing<double> ring = CollectiveCost(f, inputs.hops);
    Duration<> rest;
    for (const Bucket& bucket : *f.buckets) rest += ring.Time(bucket.bytes);
    exchange->all_s = rest.si();
    for (const Bucket& bucket : *f.buckets) {
      if (!exchange->Add({bucket.ready, rest.si()})) return false;
      rest -= ring.Time(bucket.bytes);
    }
    return true;
  }
  const ServerPaths<double>& paths = inputs.servers.paths;
  const ServerPhases<double> phases = SynchronousServers(paths, Duration<>());
  const Duration<> latency = PhaseLatency(paths) * 2.0;
  const SyncCost<double> cost = phases.push + phases.pull;
  exchange->all_s = (cost.per_call * static_cast<double>(f.buckets->size()) + latency +
                     cost.per_byte * f.gradient)
                        .si();
  const auto time_of = [](const BucketLine& line, const SyncCost<double>& of) {
    return of.per_call * line.count + of.per_byte * line.bytes;
  };
  const std::vector<BucketLine>& held = *parts.held;
  const Duration<> pulls =
      Max(time_of(lines.front(), phases.worker_pull), time_of(held.front(), phases.server_pull));
  // Those of the worker and those of the fullest server, in the order in which they rise.
  auto worker = lines.begin();
  auto server = held.begin();
  while (worker != lines.end() || server != held.end()) {
    const bool next_is_worker =
        server == held.end() || (worker != lines.end() && worker->ready <= server->ready);
    const BucketLine& line = next_is_worker ? *worker++ : *server++;
    const Duration<> pushes =
        time_of(line, next_is_worker ? phases.worker_push : phases.server_push);
    if (!exchange->Add({line.ready, (pushes + pulls + latency).si()})) return false;
  }
  return true;
}

// As JoinStep joins it.
double CompiledState::StepTime(const Exchange& exchange, int local_batch,
                               int accumulation_steps) const {
  const double a = accumulation_steps;
  Duration<> micro;
  if (facts.has_compute) {
    const Duration<> time = CurveTimeIn(curve, local_batch, workload);
    micro = time * (exchange.sharing * ShapeAt(local_batch));
  }
  const Duration<> fixed = micro * a + Seconds(exchange.overhead_s);
  if (exchange.count == 0) return fixed.si();
  const Duration<> backward = micro * cluster.overlap_share();
  Duration<> end;
  for (std::size_t k = 0; k < exchange.count; ++k) {
    end = Max(end, Seconds(exchange.lines[k].At(backward.si())));
  }
  const OverlapSplit<double> split =
      SplitOverlap(facts.overlap, backward, Seconds(exchange.all_s), end);
  return (fixed + split.exposed + OverlapContention(split, backward, cluster.overlap_contention()) +
          micro * (exchange.wait * (accumulation_steps == 1 ? 1.0 : std::sqrt(a))))
      .si();
}

}  // namespace stepcast::internal
