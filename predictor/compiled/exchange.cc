#include "predictor/compiled/exchange.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "predictor/compiled/compiled.h"

namespace stepcast::internal {

bool CompiledState::MakeExchange(const PlanQuery& query, Exchange* exchange) const {
  const StepFacts f = FactsOf(query);
  exchange->count = 0;
  exchange->all_s = exchange->wait = 0;
  const double slowdown = cluster.node_slowdown.value_or(1);
  exchange->sharing = (1 + cluster.host_contention() * OthersBeside(f)) * slowdown;
  const bool servers = UsesServers(f.strategy);
  const bool alone = Alone(f);
  const bool updates = f.has_compute && (!servers || alone);
  exchange->overhead_s = updates ? workload.update_time().si() * UpdateShare(f) * slowdown : 0;
  if (alone) return true;
  const bool slow_start = ExchangeLink(f).rtt && LeavesNode(f);
  const bool whole = f.shard == Shard::kNone && f.local_steps == 1;  // once a step, behind one pass
  if (TraitsOf(f.strategy).asynchronous() || f.server.pipelined || slow_start || !whole) {
    return false;
  }

  const KnownParts<double> parts = PartsOf(query);
  const StepInputs<double> inputs = MakeStepInputs<double>(f, cluster, workload, parts, nullptr);
  exchange->overhead_s += inputs.overhead.si();
  exchange->wait = inputs.straggler_spread * parts.Slowest(f);
  if (!servers) {
    const CallCost<double> call = CollectiveCost(f, inputs.hops);
    Duration<> rest;
    for (const Bucket& bucket : *f.buckets) rest += call.Time(bucket.bytes);
    exchange->all_s = rest.si();
    for (const Bucket& bucket : *f.buckets) {
      if (!exchange->Add({bucket.ready, rest.si()})) return false;
      rest -= call.Time(bucket.bytes);
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
  // The lines of the worker and those of the fullest server, in the order in which they rise.
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

namespace {

// Values that are the same for all batches on one placement.
struct Joint {
  double overhead_s;  // with the update of a worker
  double all_s;
  double wait;
  double share;       // of the backward pass in a micro-step
  double contention;  // kappa
};

Joint JointOf(const Exchange& exchange, const ClusterParameters<double>& cluster) {
  return {exchange.overhead_s, exchange.all_s, exchange.wait, cluster.overlap_share(),
          cluster.overlap_contention()};
}

// The step, its overlap known when this is compiled. `end_s` is that of the exchange, and `root`
// the square root of the micro-steps.
template <Overlap kOverlap>
double StepOf(const Joint& joint, double micro_s, double end_s, double steps, double root) {
  const Duration<> micro = Seconds(micro_s);
  JoinInputs<double> in;
  in.micro_steps = steps;
  in.micro = micro;
  in.backward = in.beside = micro * joint.share;
  in.all = Seconds(joint.all_s);
  in.end = Seconds(end_s);
  in.contention = joint.contention;
  in.overhead = Seconds(joint.overhead_s);
  in.wait = joint.wait * root;
  return Join(kOverlap, in).total().si();
}

// Calls with(x), where x() is `overlap` as a constant.
template <class With>
auto OfKind(Overlap overlap, const With& with) {
  switch (overlap) {
    case Overlap::kNone:
      return with(std::integral_constant<Overlap, Overlap::kNone>());
    case Overlap::kPNorm:
      return with(std::integral_constant<Overlap, Overlap::kPNorm>());
    default:
      return with(std::integral_constant<Overlap, Overlap::kBuckets>());
  }
}

}  // namespace

double CompiledState::MicroStepIn(const Exchange& exchange, int local_batch) const {
  if (!facts.has_compute) return 0;
  return CurveTimeIn(curve, local_batch, workload).si() * (exchange.sharing * ShapeAt(local_batch));
}

double CompiledState::StepTime(const Exchange& exchange, int local_batch,
                               int accumulation_steps) const {
  const Joint joint = JointOf(exchange, cluster);
  const double micro_s = MicroStepIn(exchange, local_batch);
  const double steps = accumulation_steps;
  const double backward_s = micro_s * joint.share;
  double end_s = 0;
  for (std::size_t k = 0; k < exchange.count; ++k) {
    end_s = std::max(end_s, exchange.lines[k].At(backward_s));
  }
  const double root = accumulation_steps == 1 ? 1 : std::sqrt(steps);
  return OfKind(facts.overlap, [&](const auto overlap) {
    return StepOf<overlap()>(joint, micro_s, end_s, steps, root);
  });
}

void CompiledState::StepTimes(const Exchange& exchange, const int* local_batches,
                              const int* accumulation_steps, std::size_t count,
                              double* step_times_s) const {
  // Loops of one kind of arithmetic, in which the compiler takes several batches at once.
  constexpr std::size_t kAtOnce = 64;
  double micro[kAtOnce];
  double end[kAtOnce];
  double steps[kAtOnce];
  double root[kAtOnce];
  const Joint joint = JointOf(exchange, cluster);
  // Batches whose micro-step is looked up here, rather than by a call for each.
  const std::size_t tabled = facts.has_compute && !profile ? curve.size() : 0;
  for (std::size_t first = 0; first < count; first += kAtOnce) {
    const std::size_t n = std::min(kAtOnce, count - first);
    double* const step = step_times_s + first;
    for (std::size_t i = 0; i < n; ++i) {
      const int local_batch = local_batches[first + i];
      const int a = accumulation_steps[first + i];
      const auto at = static_cast<std::size_t>(local_batch);
      micro[i] = std::numeric_limits<double>::quiet_NaN();
      if (IsBatch(local_batch, a)) {
        micro[i] =
            at < tabled ? curve[at].si() * exchange.sharing : MicroStepIn(exchange, local_batch);
      }
      root[i] = a == 1 ? 1 : std::sqrt(static_cast<double>(a));
    }
    for (std::size_t i = 0; i < n; ++i) steps[i] = accumulation_steps[first + i];
    std::fill_n(end, n, 0.0);
    for (std::size_t k = 0; k < exchange.count; ++k) {
      const Exchange::Line line = exchange.lines[k];
      for (std::size_t i = 0; i < n; ++i) {
        end[i] = std::max(end[i], line.At(micro[i] * joint.share));
      }
    }
    OfKind(facts.overlap, [&](const auto overlap) {
      for (std::size_t i = 0; i < n; ++i) {
        step[i] = StepOf<overlap()>(joint, micro[i], end[i], steps[i], root[i]);
      }
    });
  }
}

}  // namespace stepcast::internal
