// Parameter servers: n servers hold the model, w workers push gradients and pull parameters.
//
// Synchronous, for each of the two phases (push, then pull):
//
//   T = alpha + c_x max(n, w) + m max( g / B, w / (n B_s) )
//
//   alpha  one-way cost of a message                                          [s]
//   c_x    processor time to initiate one transfer; a worker starts n of them, a server serves w,
//          one after another, so the busier of the two is waited for           [s]
//   m      gradient bytes; each server holds m/n                              [B]
//   B      bandwidth of a node's link, shared by the g workers of the node     [B/s]
//   B_s    bandwidth of a server's link, crossed by w messages of m/n          [B/s]
//
// Asynchronous: every worker cycles by itself through compute, push and pull, and the server links
// are the queues where workers meet. A closed queueing network with w customers, think time
// Z = t + 2 (alpha + c_x n) + 2 m max(0, g/B - 1/(n B_s)) and two stations (into and out of the
// servers) of demand D = m / (n B_s) each, solved exactly by mean value analysis:
//
//   R_k = 2 D (1 + Q_{k-1}/2),  X_k = k / (Z + R_k),  Q_k = X_k R_k
//
// The time between two updates of one worker is w / X_w.
//
// Hold for parameters spread evenly over the servers, which run on nodes of their own, and for a
// switch that does not block. The two synchronous phases do not overlap within one message; across
// buckets they are counted one after another.
//
// Note that a lone worker of the asynchronous case meets no queue, so that its cycle is compute,
// push and pull; that more servers never slow a step as long as n <= w; and that the asynchronous
// rate never exceeds 1/D.
//
// Sources: Li et al., OSDI 2014 (architecture); Chang et al., "Network Evolution for DNNs"
// (n w transfers a phase, 2 m w bytes); Reiser & Lavenberg, JACM 27 (1980) (mean value analysis).
#ifndef STEPCAST_MODEL_COLLECTIVE_PARAMETER_SERVER_H_
#define STEPCAST_MODEL_COLLECTIVE_PARAMETER_SERVER_H_

#include <algorithm>

#include "model/collective/cost.h"

namespace stepcast {

template <class T>
struct ServerPaths {
  int workers = 1;
  int servers = 1;
  int workers_per_node = 1;  // on the fullest node
  Hop<T> worker;             // bandwidth of the node's link
  DataRate<T> server_bandwidth;
  Duration<T> initiation;
};

// Push and pull of one message by all workers.
template <class T>
SyncCost<T> ServerSynchronisation(const ServerPaths<T>& p) {
  const double n = p.servers;
  const double w = p.workers;
  const auto at_worker = static_cast<double>(p.workers_per_node) / p.worker.bandwidth;
  const auto at_server = (w / n) / p.server_bandwidth;
  return {(p.worker.alpha + p.initiation * std::max(n, w)) * 2.0, Max(at_worker, at_server) * 2.0};
}

// The mean time from one update of a worker to its next.
template <class T>
Duration<T> AsyncServerCycle(const ServerPaths<T>& p, const Duration<T>& compute,
                             DataSize<> message) {
  const double n = p.servers;
  const auto at_worker = static_cast<double>(p.workers_per_node) / p.worker.bandwidth;
  const auto at_server = (1.0 / n) / p.server_bandwidth;
  const Duration<T> demand = message * at_server * 2.0;
  Duration<T> think = compute + (p.worker.alpha + p.initiation * n) * 2.0;
  if (at_server < at_worker) think += message * (at_worker - at_server) * 2.0;
  T queue(0.0);
  Duration<T> residence = demand;
  for (int k = 1; k <= p.workers; ++k) {
    residence = demand * (1.0 + queue / 2.0);
    queue = static_cast<double>(k) * (residence / (think + residence));
  }
  return think + residence;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_COLLECTIVE_PARAMETER_SERVER_H_
