// The cycle of an asynchronous worker in the place of a step.
//
// The formulas are those of async_server.h.
#ifndef STEPCAST_MODEL_EXCHANGE_ASYNC_STEP_H_
#define STEPCAST_MODEL_EXCHANGE_ASYNC_STEP_H_

#include <cmath>

#include "data/units/quantity.h"
#include "model/exchange/async_server.h"
#include "model/exchange/server_step.h"
#include "model/step/step_terms.h"

namespace stepcast::internal {

template <class T>
struct StepInputs;

// Work of an asynchronous worker between two updates.
template <class T>
AsyncWork<T> WorkOf(const StepFacts& facts, const Duration<T>& micro, const Duration<T>& backward,
                    const Duration<T>& overhead, const T& spread, const Duration<T>& slowest,
                    const OverlapLines* lines = nullptr) {
  AsyncWork<T> work;
  work.forward = micro * static_cast<double>(facts.accumulation_steps) - backward;
  work.backward = backward;
  work.fixed = overhead;
  work.bound = facts.server.staleness_bound;
  work.arrival = ArrivalOf(facts);
  work.slowest = slowest;
  // The spreads of micro-steps add up as independent ones do.
  work.spread = spread / std::sqrt(static_cast<double>(facts.accumulation_steps));
  work.buckets = facts.overlap == Overlap::kNone ? nullptr : facts.buckets.get();
  work.lines = lines;
  return work;
}

// Whether nodes of two speeds move at a pace each; where a bound of staleness holds the fast ones
// back all move at that of the slow ones.
inline bool HasTwoPaces(const StepFacts& facts) {
  return facts.slow_workers > 0 && facts.slow_workers < facts.workers &&
         !facts.server.staleness_bound;
}

// The mean over updates of a worker's pace, in that of the slow ones.
template <class T>
T MeanPace(double fast_pace, const AsyncServers<T>& async) {
  return fast_pace + async.slow_updates * (1.0 - fast_pace);
}

// Asynchronous servers: a worker's cycle takes the place of a synchronisation.
template <class T, class Parts>
StepTime<T> JoinCycle(const StepFacts& facts, const StepInputs<T>& inputs,
                      const Duration<T>& backward, const T& wait, const Parts& parts,
                      StepTerms<T>* terms) {
  const ServerRoutes<T>& routes = inputs.servers;
  const ServerPaths<T>& paths = routes.paths;
  const auto work_at = [&](double pace) {
    return WorkOf<T>(facts, inputs.micro * pace, backward * pace, inputs.overhead,
                     inputs.straggler_spread, inputs.micro * wait, parts.AsyncLines(facts));
  };
  const AsyncWork<T> work = work_at(1.0);
  AsyncServers<T> async;
  T pace(1.0);  // the mean over updates
  if (HasTwoPaces(facts) && inputs.fast_pace < 1.0) {
    const WorkerClass<T> fast{facts.workers - facts.slow_workers, work_at(inputs.fast_pace)};
    async = UnequalServers(paths, fast, {facts.slow_workers, work}, facts.gradient,
                           terms != nullptr ? &terms->server_times : nullptr);
    pace = MeanPace(inputs.fast_pace, async);
  } else {
    async = AsynchronousServers(paths, work, facts.gradient);
    if (terms != nullptr) {
      terms->server_times = AsynchronousTimes(paths, work, facts.gradient, async.together);
    }
  }
  StepTime<T> step;
  step.forward = (inputs.micro - backward) * (pace * static_cast<double>(facts.accumulation_steps));
  step.backward = backward * (pace * static_cast<double>(facts.accumulation_steps));
  if (terms != nullptr) terms->async = async;
  step.limiter = routes.At(async);
  step.straggler_wait = async.wait;
  step.input_wait = async.input_wait;
  const Duration<T> cycle = async.cycle - async.input_wait;
  const Duration<T> exposed = Max(cycle - async.wait - step.compute() - inputs.overhead,
                                  Duration<T>());  // rounding must not make it negative
  step.exposed_latency =
      Min(exposed,
          (paths.worker.alpha + paths.initiation * static_cast<double>(facts.servers)) * 2.0) +
      inputs.overhead;
  step.exposed_transfer = exposed + inputs.overhead - step.exposed_latency;
  step.synchronisation = step.exposed();
  return step;
}

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_EXCHANGE_ASYNC_STEP_H_
