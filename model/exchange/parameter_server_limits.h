// How the cost of synchronous parameter servers grows with the workers w, in the form of
// model/exchange/growth.h, and how many servers suffice.
//
//                      per_call(w)                         per_byte(w)
//   servers            2 A + 2 c_x max(n, w)               2 max(g/B, w q) + s u
//     aggregation      push: c_x n for c_x max(n, w)       push: max(g/B, q)
//     multicast        pull: c_x n for c_x max(n, w)       pull: max(g/B, q)
//     colocated        2 A + 2 c_x w                       2 g/B (1 - g/w)                  w >= g
//
//   servers that suffice   n = min( n_b, max( w, sqrt(w m / (J c_x B_s)) ), 1 / q_1 ),
//                          n_b = w B / (g B_s)
//
//   B, B_s, g    bandwidth of a node's link and of a server's [B/s]; workers of a node
//   n, s, P, u   servers, largest share of the bytes on one of them, the rate at which it handles
//                bytes [B/s] and its time to update one [s/B]; q = s max(1/B_s, 1/P)
//   A, c_x       alpha with its further round trips, and processor time to start a transfer [s]
//   m, J, q_1    gradient bytes [B]; calls; share of the largest tensor, which one server holds
//
// Where a bucket is pulled while later ones are pushed, less of the phases is seen:
//
//   pipelined servers  (phase that grows) + q (other phase)                apart from the workers
//
//   q            share of the message in its largest bucket, 1/J of the calls; where both phases
//                grow alike, one of them counts once and the other q times (a flow shop of two
//                machines). Colocated servers have one link for both phases and gain nothing.
//
// Holds where w fills its nodes (colocated servers, one on each node), which are taken to handle
// and update bytes as fast as links bring them.
//
// Sources: those of model/exchange/parameter_server.h, whose costs these are; docs/explanation/
// limits.md.
#ifndef STEPCAST_MODEL_EXCHANGE_PARAMETER_SERVER_LIMITS_H_
#define STEPCAST_MODEL_EXCHANGE_PARAMETER_SERVER_LIMITS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "data/record/plan.h"
#include "data/units/quantity.h"
#include "model/exchange/growth.h"
#include "model/exchange/parameter_server.h"

namespace stepcast {

// Servers as the laws take them, which know them on nodes of their own or on every node.
template <class T>
ServerPaths<T> PathsOfLaws(ServerPaths<T> paths) {
  if (paths.colocated) paths.server_bandwidth = paths.worker.bandwidth;
  return paths;
}

namespace internal {

// A byte of the model at the fullest server, for each time that it comes or goes.
template <class T>
DurationPerByte<T> ServerPerByte(const ServerPaths<T>& p) {
  return Max(p.share() / p.server_bandwidth, p.share() / p.server_rate);
}

}  // namespace internal

// Growth of the cost of servers on nodes of their own; `p.workers` is not read. `seen` is q for
// calls and for bytes where a bucket is pulled while later ones are pushed; 1 where the phases take
// turns.
template <class T>
CostGrowth<T> ServerGrowth(const ServerPaths<T>& p, double seen_calls = 1, double seen_bytes = 1) {
  const double n = p.servers;
  const DurationPerByte<T> at_worker =
      Max(static_cast<double>(p.workers_per_node) / p.worker.bandwidth, p.connection * p.share());
  const DurationPerByte<T> at_server = internal::ServerPerByte(p);
  const std::array<bool, 2> merged = {p.in_network_aggregation, p.multicast};  // push, pull
  const std::size_t other = merged[0] && !merged[1] ? 0 : 1;  // the phase of which q is seen
  CostGrowth<T> growth;
  growth.per_call.fixed = PhaseLatency(p) * (1 + seen_calls);
  growth.per_byte.fixed = p.update * p.share();
  for (std::size_t phase = 0; phase < 2; ++phase) {
    const Duration<T> call = p.initiation * (phase == other ? seen_calls : 1.0);
    const double bytes = phase == other ? seen_bytes : 1.0;
    if (merged[phase]) {
      growth.per_call.fixed += call * n;
      growth.per_byte.fixed += Max(at_worker, at_server) * bytes;
    } else {
      growth.per_call.hinges[phase] = {call * n, call};
      growth.per_byte.hinges[phase] = {at_worker * bytes, at_server * bytes};
    }
  }
  return growth;
}

// Growth of the cost of one server on each of the workers' nodes; the numbers of servers, workers
// and nodes are not read. Merging in the network saves transfers at the server and no byte: a
// worker still sends and receives all.
template <class T>
CostGrowth<T> ColocatedServerGrowth(const ServerPaths<T>& p) {
  const double g = p.workers_per_node;
  const double transfers =  // for each worker, of both phases
      (p.in_network_aggregation ? 1 / g : 1.0) + (p.multicast ? 1 / g : 1.0);
  CostGrowth<T> growth;
  growth.least = std::max(2.0, g);
  growth.per_call.fixed = PhaseLatency(p) * 2.0;
  growth.per_call.slope = p.initiation * transfers;
  growth.per_byte.fixed = (2 * g) / p.worker.bandwidth;
  growth.per_byte.saved = (2 * g * g) / p.worker.bandwidth;
  return growth;
}

// From here on more servers do not make a synchronous step shorter: the workers' links bind
// (UsefulServers), or starting further transfers costs what it saves, or the largest tensor, which
// one server holds, does (`largest_tensor`, share of the bytes; 0 where tensors are cut). Servers
// are on nodes of their own, hold equal shares and have no help of the network; `p.servers` is not
// read. Left out is the update of the model, which every further server shortens.
template <class T>
T ServersThatSuffice(const ServerPaths<T>& p, const std::type_identity_t<DataSize<T>>& bytes,
                     const std::type_identity_t<T>& calls = T(1.0), double largest_tensor = 0) {
  using std::sqrt;
  const double w = p.workers;
  T servers = UsefulServers(p, 0.0);
  const Duration<T> initiation = p.initiation * calls;
  if (T(w) < servers && Duration<T>() < initiation) {
    // Beyond w servers it is the worker that starts one transfer for each.
    const Duration<T> one = bytes * Max(1.0 / p.server_bandwidth, 1.0 / p.server_rate);
    const T balanced = internal::AtLeast(w, T(sqrt(one * w / initiation)));
    if (balanced < servers) servers = balanced;
  }
  if (largest_tensor > 0 && T(1 / largest_tensor) < servers) servers = T(1 / largest_tensor);
  return internal::AtLeast(1, servers);
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_PARAMETER_SERVER_LIMITS_H_
