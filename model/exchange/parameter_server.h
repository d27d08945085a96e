// Synchronous parameter servers: n servers hold the model, w workers push gradients and pull
// parameters. One message of m bytes takes, in each phase,
//
//   T = alpha (1 + 2 rho k) + c_x max(n, w) + m || max( g f / B, s v / B_s, s w / P ), s c ||_4
//         [ + m s u ]
//
//   alpha  one-way cost of a message; a round trip is two of them                  [s]
//   rho    round trips that a phase waits for with each tensor beyond the first     [1]
//   k      tensors of the message                                                   [1]
//   c_x    processor time to initiate one transfer; a worker starts n, a server serves w, one
//          after another, and the busier of the two is waited for                   [s]
//   m      gradient bytes of the message                                            [B]
//   s      share of the model on the fullest server (model/exchange/sharding.h)   [1]
//   B, B_s bandwidth of a node's link, of a server's link, each direction           [B/s]
//   P      rate at which a server takes in and adds up, or copies out               [B/s]
//   c      time per byte of one connection, of which every worker has one to every server; absent
//          without a round trip or loss                                             [s/B]
//   u      time in which a server updates a byte of the model; in the push only     [s/B]
//   g      workers of the fullest node, who share its link
//   f, v   share of a worker's bytes that leaves its node, and copies of its shard that cross a
//          server's link: 1 and w for servers on nodes of their own
//
// Colocated servers, on the N nodes of the workers: what a node's workers exchange with the node's
// own server stays there. f = (N-1)/N (1 where n < N, since a node without a server sends all) and
// v = w - g. In the push, a link carries the workers' g m f outwards and the server's s m v
// inwards, in the pull the other way round: apart they hide behind each other. When both phases run
// at the same time each direction carries both sums, (g f + s v) m, and full duplex gains nothing.
//
// Local aggregation: the devices of a node add up their gradients before one push and share one
// pull, as TensorFlow's replicas of one process and MXNet's devices do. The w are then the nodes
// and g is 1. What the devices move among themselves passes the host's end of the hop beside what
// leaves the node, where B counts it (model/network/hop.h). Nothing leaves a lone node with its
// servers on it, whose d devices add up, and share out, as in either half of a ring: f = (d-1)/d,
// and B is the rate of a hop between two of them. Both halves go the same way around. On such a
// node alpha is that of a hop within it, and no connection is held back.
//
// Multicast distribution: the network copies what a server sends, so the pull has v = w = 1 at the
// server. In-network aggregation: the network adds up what workers push, so the push has. Workers
// send and receive as before. It helps nobody where nothing crosses it, v = 0.
//
// Buckets that leave one after another while the backward pass runs, push and pull in step, are a
// flow shop of two machines:
//
//   E_push,k = max(r_k, E_push,k-1) + P_k,   E_pull,k = max(E_push,k, E_pull,k-1) + Q_k
//   E_pull,K = max over i <= j of ( r_i + sum_{i..j} P + sum_{j..K} Q )
//
// Serial phases put a barrier between: E = E_push,K + sum Q. Every server works through its own
// tensors by itself: the end is that of the fullest server's schedule, or that of the worker's
// link.
//
// Holds for messages of some kilobytes up and a switch that does not block; bytes are processed
// while others arrive. Buckets on their way at once wait for alpha together, and not in each phase.
//
// Note that a lone worker beside its own server costs exactly nothing; that devices which add up
// first push once, so that the server's part is the same for any number of them; that multicast,
// in-network aggregation, bandwidth and P never hurt; that more servers never slow a step while
// n <= w and shares are even, but for the one initiation more that a worker makes; and that serial
// phases are never faster than pipelined ones.
//
// Sources: Li et al., OSDI 2014 (architecture); Chang et al., "Network Evolution for DNNs" (n w
// transfers a phase, 2 m w bytes, multicast and in-network aggregation); Jiang et al., OSDI 2020
// (colocated servers); Johnson, Naval Research Logistics Quarterly 1 (1954) (two-machine flow
// shop).
#ifndef STEPCAST_MODEL_EXCHANGE_PARAMETER_SERVER_H_
#define STEPCAST_MODEL_EXCHANGE_PARAMETER_SERVER_H_

#include <algorithm>
#include <limits>
#include <vector>

#include "model/exchange/cost.h"
#include "model/exchange/server_outcomes.h"
#include "model/numeric/p_norm.h"
#include "model/overlap/buckets.h"

namespace stepcast {

template <class T>
struct ServerPaths {
  int workers = 1;
  int servers = 1;
  int workers_per_node = 1;      // on the fullest node
  Hop<T> worker;                 // bandwidth of the node's link
  DataRate<T> server_bandwidth;  // without meaning where servers are colocated
  Duration<T> initiation;
  int nodes = 1;  // of the workers; only colocated servers ask for it
  bool colocated = false;
  bool multicast = false;
  bool in_network_aggregation = false;
  // d: devices of a lone node that add up first; the rate of `worker` is then that between two of
  // them.
  int added_up = 1;
  double largest_share = 0;  // s; below 1/n it is 1/n
  double tensors = 0;        // k, that a phase waits for
  T rpc_rounds = T(0.0);
  DataRate<T> server_rate = DataRate<T>::FromSi(T(std::numeric_limits<double>::infinity()));
  DurationPerByte<T> update;
  // c: a byte on the one connection between a worker and a server, where a window or loss holds it
  // back; 0 where nothing does.
  DurationPerByte<T> connection = {};

  double share() const { return std::max(largest_share, 1.0 / servers); }
  // A worker and its own server in one place.
  bool alone() const { return workers == 1 && colocated && added_up == 1; }
  // g f: passes of the message over the link of the fullest node, or between its devices.
  double worker_passes() const {
    if (added_up > 1) return 1.0 - 1.0 / added_up;
    const bool server_everywhere = servers >= nodes;
    const double leaves = colocated && server_everywhere ? 1.0 - 1.0 / nodes : 1.0;
    return workers_per_node * leaves;
  }
  // v: copies of a shard that cross the link of its server.
  double remote_workers() const {
    return std::max(0.0, static_cast<double>(colocated ? workers - workers_per_node : workers));
  }
  // The same in one phase, and w there: what the server's processor handles. `merged`: the network
  // adds up, or copies, what crosses it.
  double copies(bool merged) const {
    return merged ? std::min(1.0, remote_workers()) : remote_workers();
  }
  double handled(bool merged) const { return merged && remote_workers() > 0 ? 1.0 : workers; }
  // s at a node's link, which several colocated servers may share.
  double link_share() const {
    return colocated ? std::max(share(), 1.0 / std::min(servers, nodes)) : share();
  }
  DataRate<T> server_link() const { return colocated ? worker.bandwidth : server_bandwidth; }
};

template <class T>
struct ServerPhases {
  SyncCost<T> push;  // of a message that all servers hold together
  SyncCost<T> pull;
  ServerLimiter push_limiter = ServerLimiter::kWorkerLink;
  ServerLimiter pull_limiter = ServerLimiter::kWorkerLink;
  // The same from each side, for schedules that follow the fullest server: a byte of the model over
  // the worker's link, and a byte of its own shard at the fullest server.
  SyncCost<T> worker_push;
  SyncCost<T> worker_pull;
  SyncCost<T> server_push;
  SyncCost<T> server_pull;
  // Both phases of a byte of the model over a link that they share; 0 where they do not.
  DurationPerByte<T> shared_link;
  double share = 1;  // of the model, on the fullest server

  // The limit of the phase whose bytes take longer; of the pull where both take as long.
  ServerLimiter limiter() const {
    return pull.per_byte < push.per_byte ? push_limiter : pull_limiter;
  }
};

// The wait of one phase whatever its bytes: a message, and round trips of its tensors.
template <class T>
Duration<T> PhaseLatency(const ServerPaths<T>& p) {
  return p.worker.alpha + p.worker.alpha * (p.rpc_rounds * (2.0 * p.tensors));
}

// The same paths for messages of which many are on their way at once: their latency is that of one
// phase and not of each (PhaseLatency), initiations are each message's own.
template <class T>
ServerPaths<T> WithoutLatency(ServerPaths<T> p) {
  p.worker.alpha = {};
  return p;
}

namespace internal {

// || bytes, connection ||_4; the bytes alone where no connection is held back.
template <class T>
DurationPerByte<T> BesideConnection(const DurationPerByte<T>& bytes,
                                    const DurationPerByte<T>& connection) {
  constexpr double kKnee = 4.0;
  return connection.si() > 0.0 ? PNorm(bytes, connection, kKnee) : bytes;
}

// Time per byte of the model: over the worker's link, and of one copy of the shard over the fullest
// server's link and through its processor.
template <class T>
struct ServerPaces {
  DurationPerByte<T> worker;
  DurationPerByte<T> link;
  DurationPerByte<T> processor;
};

// One phase, of `latency` whatever its bytes: `copies` of the shard cross the server's link and
// `handled` pass its processor.
template <class T>
void SetPhase(const ServerPaths<T>& p, const ServerPaces<T>& pace, const Duration<T>& latency,
              double copies, double handled, bool update, SyncCost<T>* whole, SyncCost<T>* worker,
              SyncCost<T>* server, ServerLimiter* limiter) {
  const double s = p.share();
  const DurationPerByte<T> updated = update ? p.update : DurationPerByte<T>();
  const DurationPerByte<T> link = pace.link * copies;
  const DurationPerByte<T> processor = pace.processor * handled;
  const DurationPerByte<T> at_server = Max(link, processor);
  const DurationPerByte<T> bytes = Max(pace.worker, at_server);
  const DurationPerByte<T> connection = p.connection * s;
  *whole = {latency + p.initiation * std::max<double>(p.servers, handled),
            BesideConnection(bytes, connection) + updated * s};
  *worker = {latency + p.initiation * static_cast<double>(p.servers),
             BesideConnection(pace.worker, connection)};
  *server = {latency + p.initiation * handled,
             BesideConnection(at_server, connection) / s + updated};
  *limiter = bytes < connection        ? ServerLimiter::kConnection
             : at_server < pace.worker ? ServerLimiter::kWorkerLink
             : link < processor        ? ServerLimiter::kServerRate
                                       : ServerLimiter::kServerLink;
}

}  // namespace internal

// Phases of `latency` whatever their bytes: none where many messages are on their way at once.
template <class T>
ServerPhases<T> SynchronousServers(const ServerPaths<T>& p, const Duration<T>& latency) {
  ServerPhases<T> phases;
  phases.share = p.share();
  if (p.alone()) return phases;
  const double in = p.copies(p.in_network_aggregation);
  const double out = p.copies(p.multicast);
  const internal::ServerPaces<T> pace{p.worker_passes() / p.worker.bandwidth,
                                      p.link_share() / p.server_link(),
                                      phases.share / p.server_rate};
  internal::SetPhase(p, pace, latency, in, p.handled(p.in_network_aggregation), true, &phases.push,
                     &phases.worker_push, &phases.server_push, &phases.push_limiter);
  internal::SetPhase(p, pace, latency, out, p.handled(p.multicast), false, &phases.pull,
                     &phases.worker_pull, &phases.server_pull, &phases.pull_limiter);
  if (p.colocated) {
    // Inwards: what its server receives and what its workers pull; outwards likewise. Devices add
    // up and share out over the same hops.
    const double beside = p.added_up > 1 ? p.worker_passes() : p.link_share() * std::max(in, out);
    phases.shared_link = (p.worker_passes() + beside) / p.worker.bandwidth;
  }
  return phases;
}

template <class T>
ServerPhases<T> SynchronousServers(const ServerPaths<T>& p) {
  return SynchronousServers(p, PhaseLatency(p));
}

// Push and pull of one message by all workers, one after the other.
template <class T>
SyncCost<T> ServerSynchronisation(const ServerPaths<T>& p) {
  const ServerPhases<T> phases = SynchronousServers(p);
  return phases.push + phases.pull;
}

// E_pull,K from the start of the backward pass; `push_of(bucket)` and `pull_of(bucket)` are P_k and
// Q_k.
template <class T, class PushOf, class PullOf>
Duration<T> PipelinedServerEnd(const std::vector<Bucket>& buckets, const Duration<T>& backward,
                               const PushOf& push_of, const PullOf& pull_of) {
  Duration<T> pushed;
  Duration<T> pulled;
  for (const Bucket& bucket : buckets) {
    pushed = Max(backward * bucket.ready, pushed) + push_of(bucket);
    pulled = Max(pushed, pulled) + pull_of(bucket);
  }
  return pulled;
}

// When the two phases of a step end, from the start of the backward pass.
template <class T>
struct ServerEnd {
  Duration<T> pushed;
  Duration<T> pulled;
};

// The time that the first bucket of each phase takes beyond its cost, at the worker and at the
// fullest server: flows start slowly.
template <class T>
struct FirstBucketDelays {
  Duration<T> worker_push;
  Duration<T> worker_pull;
  Duration<T> server_push;
  Duration<T> server_pull;
};

// `buckets` are those of the model; `held` are the parts of them on the fullest server
// (TensorShards::LastBuckets). `pipelined`: a bucket is pulled as soon as it has been pushed;
// otherwise nothing is pulled before all has been pushed. `late` is what the first bucket takes
// longer.
template <class T>
ServerEnd<T> ScheduleServers(const ServerPhases<T>& phases, const std::vector<Bucket>& buckets,
                             const std::vector<Bucket>& held, const Duration<T>& backward,
                             bool pipelined, const FirstBucketDelays<T>& late = {}) {
  const auto time_of = [](const SyncCost<T>& cost, const std::vector<Bucket>& all,
                          const Duration<T>& delay) {
    return [&cost, &delay, first = &all.front()](const Bucket& bucket) {
      const Duration<T> time = cost.Time(bucket.bytes);
      return &bucket == first ? time + delay : time;
    };
  };
  const auto worker_push = time_of(phases.worker_push, buckets, late.worker_push);
  const auto worker_pull = time_of(phases.worker_pull, buckets, late.worker_pull);
  const auto server_push = time_of(phases.server_push, held, late.server_push);
  const auto server_pull = time_of(phases.server_pull, held, late.server_pull);
  ServerEnd<T> end;
  end.pushed = Max(LastSynchronisationEnd(buckets, backward, worker_push),
                   LastSynchronisationEnd(held, backward, server_push));
  if (pipelined) {
    end.pulled = Max(PipelinedServerEnd(buckets, backward, worker_push, worker_pull),
                     PipelinedServerEnd(held, backward, server_push, server_pull));
    // A link that carries both phases is one machine.
    end.pulled =
        Max(end.pulled, LastSynchronisationEnd(buckets, backward, [&](const Bucket& bucket) {
              return phases.shared_link * bucket.bytes;
            }));
  } else {
    end.pulled = end.pushed + Max(LastSynchronisationEnd(buckets, Duration<T>(), worker_pull),
                                  LastSynchronisationEnd(held, Duration<T>(), server_pull));
  }
  return end;
}

// The same by the lines of the buckets, for phases one after the other.
template <class T>
ServerEnd<T> ScheduleServers(const ServerPhases<T>& phases, const std::vector<BucketLine>& lines,
                             const std::vector<BucketLine>& held, const Duration<T>& backward,
                             const FirstBucketDelays<T>& late) {
  const auto all = [](const BucketLine& whole, const SyncCost<T>& cost, const Duration<T>& first) {
    return cost.per_call * whole.count + cost.per_byte * whole.bytes + first;
  };
  const Duration<T> pushed =
      Max(LastSynchronisationEnd(lines, backward, phases.worker_push, late.worker_push),
          LastSynchronisationEnd(held, backward, phases.server_push, late.server_push));
  return {pushed, pushed + Max(all(lines.front(), phases.worker_pull, late.worker_pull),
                               all(held.front(), phases.server_pull, late.server_pull))};
}

template <class T>
PhaseBenefit<T> CompareNetworkServices(ServerPaths<T> paths, const std::vector<Bucket>& buckets,
                                       const std::vector<Bucket>& held, const Duration<T>& backward,
                                       bool pipelined = false) {
  const auto end = [&](bool multicast, bool aggregation) {
    paths.multicast = multicast;
    paths.in_network_aggregation = aggregation;
    ServerEnd<T> e = ScheduleServers(SynchronousServers(paths), buckets, held, backward, pipelined);
    e.pushed = Max(e.pushed, backward);
    e.pulled = Max(e.pulled, backward);
    return e;
  };
  const ServerEnd<T> plain = end(false, false);
  return {plain.pushed - backward, plain.pulled - plain.pushed,
          plain.pulled - end(true, false).pulled, plain.pulled - end(false, true).pulled,
          plain.pulled - end(true, true).pulled};
}

// Servers beyond which a synchronous step gains nothing: the workers' links are then as busy as the
// servers', or one tensor, of share `largest_tensor` (0 where tensors are cut), fills a server.
//
//   n* = min( w max(1/B_s, 1/P) B / g,  1 / largest tensor )
//
// Holds for servers on nodes of their own. Beyond w servers, initiations make a step slower.
template <class T>
T UsefulServers(const ServerPaths<T>& p, double largest_tensor) {
  const double w = p.workers;
  const DurationPerByte<T> at_server = Max(w / p.server_bandwidth, w / p.server_rate);
  const DurationPerByte<T> at_worker = static_cast<double>(p.workers_per_node) / p.worker.bandwidth;
  const T balanced = at_server / at_worker;
  return largest_tensor > 0 && balanced * largest_tensor > 1.0 ? T(1.0 / largest_tensor) : balanced;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_PARAMETER_SERVER_H_
