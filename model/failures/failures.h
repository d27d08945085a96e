// What failures cost, and how often to save against them.
//
//   a job's failures        1/M = N/M_node + w/M_device
//   Young's interval        tau = sqrt(2 d M)
//   Daly's interval         tau = sqrt(2 d M) (1 + sqrt(x)/3 + x/9) - d,  x = d / (2M) < 1;  else M
//   restart from the last   wall / useful = (M/tau) e^(R/M) (e^((tau + d)/M) - 1)
//   checkpoint              each failure costs about (tau + d)/2 + R
//   synchronous worker      wall / useful = 1 + (D + T/2) / M
//   asynchronous worker     wall / useful = 1 + D / M_w;  while l of w are gone, (w - l)/w remain
//
//   N, w        nodes; workers, one device each                                [1]
//   M_node      mean time between failures of one node                         [s]
//   M_device    of one device and its process                                  [s]
//   M, M_w      of the whole job: whatever stops it; of one worker             [s]
//   d           time to write a checkpoint, while training stands              [s]
//   tau         useful time between the end of one checkpoint and the next     [s]
//   R           restart: to notice, to start again and to read the checkpoint  [s]
//   D           recovery: from the loss of a worker to its replacement at work [s]
//   T           a step                                                         [s]
//
// Three failures differ in what is lost. A lost **chief** (the process that holds state nobody else
// has: an only copy of parameters or optimizer state, the rendezvous) takes all back to the last
// checkpoint: half an interval in the mean, and the restart. A lost **synchronous worker** leaves
// the state with the others, but all stand until it is replaced; lost are the recovery and half a
// step. A lost **asynchronous worker** stops nobody: the others go on with (w - l)/w of the
// throughput, or with more where servers, not workers, set the pace.
//
// Failures are independent, come at a constant rate (exponential times between them) and may hit a
// checkpoint or a restart; the wall time of the checkpoint rule is then exact. The worker rules
// count failures by time at work: none while all stand. Young's interval costs 0.5 % more wall time
// than the best one at d = M/10 and 5 % at M/2, Daly's less than 0.002 % up to M/2. From d = 2M on
// Daly takes tau = M, and hardly any work gets done.
//
// Note that wall / useful is never under 1, never rises with M and never falls with d, R, D, T;
// that without failures (M endless) it is 1 + d/tau, or 1; and that the same loss costs the
// synchronous job w times what it costs the asynchronous one, but for the half step.
//
// Sources: Young, CACM 17 (1974). Daly, Future Generation Computer Systems 22 (2006).
#ifndef STEPCAST_MODEL_FAILURES_FAILURES_H_
#define STEPCAST_MODEL_FAILURES_FAILURES_H_

#include <cmath>

#include "data/units/quantity.h"

namespace stepcast {

template <class T>
Duration<T> JobTimeBetweenFailures(const Duration<T>& node_mtbf, int nodes,
                                   const Duration<T>& device_mtbf, int workers) {
  return T(1.0) / (T(static_cast<double>(nodes)) / node_mtbf +
                   T(static_cast<double>(workers)) / device_mtbf);
}

template <class T>
Duration<T> YoungInterval(const Duration<T>& checkpoint, const Duration<T>& mtbf) {
  using std::sqrt;
  return mtbf * sqrt(checkpoint * 2.0 / mtbf);
}

template <class T>
Duration<T> DalyInterval(const Duration<T>& checkpoint, const Duration<T>& mtbf) {
  using std::sqrt;
  const T x = checkpoint / (mtbf * 2.0);
  if (x >= T(1.0)) return mtbf;
  const T root = sqrt(x);
  // sqrt(2 d M) is 2 M sqrt(x), and d is 2 M x.
  return mtbf * 2.0 * (root * (T(1.0) + root * (1.0 / 3) + x * (1.0 / 9)) - x);
}

// Wall time for each second of useful work, with a checkpoint after every `interval` of it; endless
// where an interval hardly ever passes without a failure.
template <class T>
T CheckpointSlowdown(const Duration<T>& interval, const Duration<T>& checkpoint,
                     const Duration<T>& restart, const Duration<T>& mtbf) {
  using std::exp;
  using std::expm1;
  return (mtbf / interval) * exp(restart / mtbf) * expm1((interval + checkpoint) / mtbf);
}

// What one loss of the chief costs, in the mean: the work since the last checkpoint, and the
// restart. Valid to first order in (interval + checkpoint) / mtbf.
template <class T>
Duration<T> ChiefLoss(const Duration<T>& interval, const Duration<T>& checkpoint,
                      const Duration<T>& restart) {
  return (interval + checkpoint) * 0.5 + restart;
}

template <class T>
T SynchronousLossSlowdown(const Duration<T>& step, const Duration<T>& recovery,
                          const Duration<T>& job_mtbf) {
  return T(1.0) + (recovery + step * 0.5) / job_mtbf;
}

template <class T>
T AsynchronousLossSlowdown(const Duration<T>& recovery, const Duration<T>& worker_mtbf) {
  return T(1.0) + recovery / worker_mtbf;
}

// What is left of the throughput while `lost` of `workers` asynchronous ones are gone, where none
// waits for a server.
inline double RemainingThroughput(int workers, int lost) {
  return static_cast<double>(workers - lost) / workers;
}

// Throughput over the wall clock, failures included.
template <class T>
SampleRate<T> EffectiveThroughput(const SampleRate<T>& throughput, const T& slowdown) {
  return throughput / slowdown;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_FAILURES_FAILURES_H_
