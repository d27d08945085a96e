#include "predictor/compiled/exchange.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "predictor/compiled/compiled.h"

namespace stepcast::internal {

bool CompiledState::SetExchange(const PlanQuery& query, Exchange* exchange) const {
  if (SlowBatch(query)) return false;
  const StepFacts f = FactsOf(query);
  exchange->count = 0;
  exchange->all_s = exchange->wait = 0;
  exchange->arrival_s = 0;
  if (f.input_rate) {
    StepFacts of_one = f;
    of_one.batch = of_one.accumulation_steps = 1;
    exchange->arrival_s = ArrivalOf(of_one).si();
  }
  const double slowdown = SlowdownOf(f, cluster).value_or(1);
  exchange->sharing = Crowded(f, cluster.host_contention()) * slowdown;
  const bool servers = UsesServers(f.strategy);
  const bool alone = Alone(f);
  const bool updates = f.has_compute && (!servers || alone);
  // All of it: who shares the state of the optimizer out is not answered by lines.
  exchange->overhead_s = updates ? workload.update_time().si() * slowdown : 0;
  if (alone) return true;
  const bool slow_start = ExchangeLink(f)->rtt && LeavesNode(f);
  const bool whole = f.shard == Shard::kNone && f.local_steps == 1;  // once a step, behind one pass
  if (TraitsOf(f.strategy).asynchronous() || f.server.pipelined || slow_start || !whole) {
    return false;
  }

  const KnownParts<double> parts = PartsOf(query);
  const StepInputs<double> inputs = MakeStepInputs<double>(f, cluster, workload, parts, nullptr);
  exchange->overhead_s += (inputs.overhead + CodingOf(f)).si();
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

// The step of one of them, its overlap known when this is compiled.
template <Overlap kOverlap>
double StepOf(const Joints& of, std::size_t i, double contention) {
  JoinInputs<double> in;
  in.micro_steps = of.steps[i];
  in.micro = Seconds(of.micro_s[i]);
  in.backward = in.beside = in.micro * of.share[i];
  in.all = Seconds(of.all_s[i]);
  in.end = Seconds(of.end_s[i]);
  in.contention = contention;
  in.overhead = Seconds(of.overhead_s[i]);
  in.wait = of.wait[i] * std::sqrt(of.steps[i]);
  in.arrival = Seconds(of.arrival_s[i]);
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

STEPCAST_WIDE STEPCAST_FLATTEN void CompiledState::JoinAll(const Joints& of,
                                                           double* step_times_s) const {
  const double contention = cluster.overlap_contention();
  alignas(32) double step[Joints::kAtOnce];  // an array of its own, which no other overlaps
  OfKind(facts.overlap, [&](const auto overlap) {
    for (std::size_t i = 0; i < of.size; ++i) {
      step[i] = StepOf<overlap()>(of, i, contention);
    }
  });
  std::copy_n(step, of.size, step_times_s);
}

STEPCAST_WIDE STEPCAST_FLATTEN void CompiledState::StepTimes(const Exchange& exchange,
                                                             const int* local_batches,
                                                             const int* accumulation_steps,
                                                             std::size_t count,
                                                             double* step_times_s) const {
  // Loops of one kind of arithmetic, in which the compiler takes several batches at once.
  Joints joints;
  const bool recomputes = recomputation.exists();
  // Batches whose micro-step is looked up here, rather than by a call for each.
  const std::size_t tabled = facts.has_compute && !profile ? curve.size() : 0;
  for (std::size_t first = 0; first < count; first += Joints::kAtOnce) {
    const std::size_t n = joints.size = std::min(Joints::kAtOnce, count - first);
    for (std::size_t i = 0; i < n; ++i) {
      const int local_batch = local_batches[first + i];
      const auto at = static_cast<std::size_t>(local_batch);
      joints.micro_s[i] = std::numeric_limits<double>::quiet_NaN();
      if (IsBatch(local_batch, accumulation_steps[first + i])) {
        joints.micro_s[i] =
            at < tabled ? curve[at].si() * exchange.sharing : MicroStepIn(exchange, local_batch);
      }
    }
    std::fill_n(joints.share, n, cluster.overlap_share());
    for (std::size_t i = 0; recomputes && i < n; ++i) {
      joints.share[i] = BackwardShareAt(std::max(local_batches[first + i], 1));
    }
    for (std::size_t i = 0; i < n; ++i) joints.steps[i] = accumulation_steps[first + i];
    for (std::size_t i = 0; i < n; ++i) {
      joints.arrival_s[i] = exchange.arrival_s * local_batches[first + i] * joints.steps[i];
    }
    std::fill_n(joints.end_s, n, 0.0);
    std::fill_n(joints.all_s, n, exchange.all_s);
    std::fill_n(joints.overhead_s, n, exchange.overhead_s);
    std::fill_n(joints.wait, n, exchange.wait);
    for (std::size_t k = 0; k < exchange.count; ++k) {
      const Exchange::Line line = exchange.lines[k];
      for (std::size_t i = 0; i < n; ++i) {
        joints.end_s[i] = std::max(joints.end_s[i], line.At(joints.micro_s[i] * joints.share[i]));
      }
    }
    JoinAll(joints, step_times_s + first);
  }
}

}  // namespace stepcast::internal
