// Where asynchronous servers end, by operational analysis: each worker cycles alone, and nothing
// passes the busiest station faster than 1 / D_max.
//
//   ceiling s / D_max samples a second, knee (Z + D) / D_max workers
//
//   Z, D, D_max    what a worker does between its visits to the servers, what it needs of all of
//                  them, and of the busiest station [s]
//   s              samples of an update                                       [samples]
//
// Sources: Denning & Buzen, ACM Computing Surveys 10 (1978); docs/explanation/limits.md.
#ifndef STEPCAST_MODEL_EXCHANGE_ASYNC_SERVER_LIMITS_H_
#define STEPCAST_MODEL_EXCHANGE_ASYNC_SERVER_LIMITS_H_

#include <type_traits>

#include "data/units/quantity.h"
#include "model/exchange/async_server.h"
#include "model/exchange/growth.h"
#include "model/exchange/parameter_server.h"

namespace stepcast {

template <class T>
struct ServerQueues {
  Duration<T> think;    // of a cycle outside of the stations, without compute
  Duration<T> demand;   // of all stations
  Duration<T> largest;  // of the busiest
};

// The stations of model/exchange/async_server.h for servers on nodes of their own: into the
// servers, their update, and out of them. `p.workers` is not read.
template <class T>
ServerQueues<T> AsyncServerQueues(const ServerPaths<T>& p,
                                  const std::type_identity_t<DataSize<T>>& bytes) {
  ServerPaths<T> alone = p;
  if (!p.colocated) alone.workers_per_node = 1;  // what workers of a node wait is left out
  const internal::AsyncNetwork<T> network =
      internal::MakeAsyncNetwork(alone, internal::MakeAsyncDemands(alone, bytes), AsyncWork<T>());
  Duration<T> demand;
  for (const Duration<T>& station : network.demand) demand += station;
  return {network.LeastThink(), demand, internal::Bottleneck(network.demand)};
}

template <class T>
SampleRate<T> AsyncCeiling(const std::type_identity_t<SampleCount<T>>& per_update,
                           const ServerQueues<T>& queues) {
  return per_update / queues.largest;
}

// Where the ceiling meets the throughput of workers that never wait for each other: with fewer the
// stations idle, with more the workers queue. Half the ceiling is reached between half of this and
// this less one.
template <class T>
T AsyncKnee(const ServerQueues<T>& queues, const std::type_identity_t<Duration<T>>& compute) {
  return (compute + queues.think + queues.demand) / queues.largest;
}

// The workers from which on a cycle surely spends more time outside of compute than in it: t of
// think time and w D_max at the busiest station. Mean value analysis gets there with fewer, but not
// with fewer than (2 t - Z - D) / D_max + 1.
template <class T>
T AsyncCrossingWorkers(const ServerQueues<T>& queues,
                       const std::type_identity_t<Duration<T>>& compute) {
  if (compute < queues.think + queues.demand) return T(1.0);
  return internal::AtLeast(1, T(compute * 2.0 / queues.largest));
}

// The workers that finish `work` soonest when each update is computed on its share of it: those at
// the knee, w D_max = C/w + Z + D with Z less its compute. The cycle there is at most twice the
// best one.
template <class T>
T AsyncBestWorkers(const ServerQueues<T>& queues, const std::type_identity_t<Duration<T>>& work) {
  const T half = (queues.think + queues.demand) / queues.largest / 2.0;
  return internal::AtLeast(1, half + internal::SqrtOrZero(T(half * half + work / queues.largest)));
}

// The servers with which the knee is at `p.workers`: with fewer the workers queue, with more the
// links idle. For equal shares, whatever `p.servers`, and initiations and updates that are short
// beside compute.
template <class T>
T AsyncServersThatSuffice(const ServerPaths<T>& p, const std::type_identity_t<DataSize<T>>& bytes,
                          const std::type_identity_t<Duration<T>>& compute) {
  const double w = p.workers;
  // With D = m / (n B_s), w D = Z + 2 D, while a server's side of a transfer is the slower one ...
  const Duration<T> one = bytes * Max(1.0 / p.server_bandwidth, 1.0 / p.server_rate);
  const Duration<T> alone = compute + PhaseLatency(p) * 2.0;
  const T slow = one * (w - 2) / alone;
  // ... or else w D = t + 2 alpha + 2 m g / B.
  const Duration<T> at_worker =
      bytes * (static_cast<double>(p.workers_per_node) / p.worker.bandwidth);
  const T fast = one * w / (alone + at_worker * 2.0);
  return internal::AtLeast(1, at_worker * fast < one ? slow : fast);
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_ASYNC_SERVER_LIMITS_H_
