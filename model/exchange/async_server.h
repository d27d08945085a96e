// Asynchronous parameter servers: every worker cycles by itself through pull, forward and backward
// pass and push, and workers meet only in queues for the servers and for their node's link. A
// closed queueing network of w customers, with three stations that an update visits once each:
//
//   inbound    D   = max( m s / B_s, m s / P + c_x )      a server's link, and what takes in
//   update     D_u = m s u                                a server's processor
//   outbound   D                                          its link, and what copies out
//
// and the rest of the cycle as think time: t_f, the fixed cost o of an exchange, which is in t_f
// below, and, each way, what messages cost before their bytes and what the worker's own link or
// connection takes longer than a server,
//
//   a = A + max(0, m f / B - D, m s c - D),   A = alpha (1 + 2 rho k) + (n-1) c_x
//
// Buckets leave during the backward pass, so that with R_i the time at a station
//
//   C = t_f + max_k ( r_k + q_k R_push ) + R_pull,   R_push = a + R_in + R_u,   R_pull = a + R_out,
//
// where q_k is the share of the message that bucket k and all later ones hold (r_0 = t_b, q_0 = 0
// for the backward pass itself; without overlap C = t_f + t_b + R_push + R_pull). Where g workers
// share a node's link, each finds it busy for d = m f / B of every cycle of each other one, and C
// is not less than the largest root, over all k, of
//
//   (C - t_f - r_k - A - q_k (A + D_u)) (C - (g-1) d) = (1 + q_k) d C
//
// The part of C that is not spent at the stations is the think time Z = C - sum R. The last of w
// workers to arrive finds the queues of w - 1, and those of k workers have product form:
//
//   R_i = D_i ( 1 + Q_i(w-1) )
//   X(k) = G(k-1) / G(k),   Q_u(k) = D_u U(k-1) / G(k),   k = Z X + Q_in + Q_u + Q_out
//
// with Q_in = Q_out and the normalising constants G(k) = sum_j Z^j / j! H(k-j), where H(i) is the
// sum of all products of i demands out of D, D_u and D, and U(k) the same with a second D_u. All
// terms are positive, and one station more is G(k) <- G(k) + D_i G(k-1). Since dG(k)/dZ = G(k-1),
// the last few G and U are the derivatives of X and Q_u as well, and make them power series in Z.
// Where a part of the push hides, Z is the one at which the R of all w workers leave as much.
// Mean value analysis, one worker after the other, gives the same numbers (tests).
//
//   m, s, u, P, B, B_s, g, f, c, c_x, alpha, rho, n   as in model/exchange/parameter_server.h, as
//          k in A; where servers are colocated, a server's link carries the pulls of its node's
//          workers too
//   r_k    moment at which bucket k is ready, from the start of the backward pass   [s]
//   C      a worker's time from one update to its next                              [s]
//   X      updates per second of all workers                                        [1/s]
//   Q_i    updates that wait or are served at station i                             [1]
//
// This is exact without overlap, whatever the service of shared links. Beyond kExactCustomers =
// 32 workers the queue that one more worker finds is taken from the chord between 32 and w,
//
//   Q_i(w-1) = Q_i(w) (1 - 1/h) + Q_i(32) / h,   h = w - 32,
//
// which leaves one equation more, in X. Queues grow ever faster with w, so that the chord lies
// above: C is an upper estimate. It is exact at h = 1 and has the exact limit, X = 1 / max D; in
// between, where servers begin to saturate, it is at most 1.7 per cent too long, and 2.9 per cent
// where updates alone fill the servers (the tests compare with the exact recursion up to 20000
// workers). A million workers take as long as 33. With s_i = D_i / max D and
// y = 1 - (1 - 1/h) X max D
//
//   R_i = D_i ( 1 + Q_i(32) / h ) / ( (1 - s_i) + s_i y ),
//   1 - y = w (1 - 1/h) max D / C,      1/h <= y <= 1
//
// y rather than X, since a full station has y near 0 and R near D/y, which keeps all digits.
//
// Staleness is the number of updates by others during one cycle of a worker. With equal workers
// everybody updates once a cycle, so that its mean is w - 1 whatever the queues do. Its spread
// comes from what is a worker's own in a cycle, its compute and its services; a queue is shared,
// and first come first served keeps the order of those in it:
//
//   sd = c sqrt( (w-1) + (w-1)^2 ),   c^2 C^2 = (sigma t)^2 + sum_i D_i^2
//
//   sigma  spread of a worker's compute, as a share of t = t_f + t_b                [1]
//
// since each other worker's count varies by c^2, and a long cycle of one's own counts more updates
// of all. Exact where compute is exponential and nobody queues (a geometric number), and where
// nothing varies (none). Within 25 per cent of an event simulation where the spread is an update or
// more and compute varies; an upper estimate where the servers saturate and compute is steady.
//
// No cycle is longer than that of workers who do all of it at the same time, since flows that share
// a link share it fairly, and none gets less than a w-th of it:
//
//   C_0 = t_f + max_k ( r_k + q_k (A + P + w D_u) ) + A + P,     C = min( C, C_0 )
//   P   = m max( s v / B_s, s w / P_s + w c_x / m, g f / B, s c )
//
//   P, P_s  one phase of all workers at once; the rate P of the first lines            [s], [B/s]
//
// It decides where the workers' own links are slower than a server's, and few workers are more than
// enough to be in each other's way by the formula above, but not in truth.
//
// Holds for transfers of any sizes over links that flows share as TCP does: such a station has
// product form whatever the service, fixed or exponential (Baskett et al.), as has the think time,
// whatever its spread. Against flows simulated one by one, with transfers of one size and compute
// that varies by 5 to 50 per cent, C is within 6 per cent where the servers set the pace, and up to
// 15 per cent too long where the workers' own links are 1.5 to 16 times slower than a server's. A
// server that updates one whole message after the other in a fixed time has shorter queues: where
// updates fill it, C is up to 60 per cent too long. Servers are taken as one station with the load
// of the fullest: the fork and join over n of them is left out.
//
// Note that a lone worker meets no queue and takes as long as one worker of the synchronous case
// with pipelining off; that X never exceeds 1 / max D; that X never falls and C never falls with w.
//
// With a staleness bound a worker that is more than s steps ahead of the slowest waits before it
// pulls (stale synchronous parallel). A share f of the cycles then ends as a synchronous step does:
// all wait for the slowest, and all push and all pull at the same time.
//
//   C_s = C + f (C_0 - C) + f W,     f = W / ( W + s C ),  1 for s = 0
//
//   W      wait of a synchronous step for the slowest of w workers             [s]
//   s      staleness bound in steps; 0 is synchronous, none never waits
//
// Between two limits: s = 0 is the synchronous step, but that each worker's message is applied
// by itself; with a long lead s C workers diffuse apart, and the pace they lose is their
// variance over the lead, of the order of W^2 / (s C). The wait alone is 0.8 to 2.2 times that
// of a simulation of workers whose steps vary by 3 to 30 per cent from 8 workers on, and 0.65 to
// 4.5 times with two; C_s is 0.9 to 1.2 times that of flows simulated one by one where compute
// varies by up to 10 per cent, and up to 1.4 times where it varies by 50: the first ones push
// while the slowest computes. A worker that is always slower is no spread: with any bound all
// end up at its pace. All that a cycle shows is mixed by the same f: in a synchronous step the
// order of updates is random, which gives the number of updates by others in a cycle a variance
// of (w^2 - 1) / 6.
//
// Where the samples of a cycle take longer to arrive than all this, the cycle is their arrival
// (model/overlap/input.h): what it was made of stays, queues included, which are shorter then, and
// the rest is the wait for samples.
//
// Note that X C_s = w whatever the bound, and that C_s never rises with s.
//
// Sources: Gordon & Newell, Operations Research 15 (1967) (product form); Buzen, CACM 16 (1973)
// (normalising constants); Baskett, Chandy, Muntz, Palacios, JACM 22 (1975) (shared links, any
// service); Reiser & Lavenberg, JACM 27 (1980) (mean value analysis); Schweitzer,
// Proc. Int. Conf. on Stochastic Control (1979) (queues of large populations); Li et al., OSDI 2014
// (asynchronous servers); Ho et al., NIPS 2013 (bounded staleness).
#ifndef STEPCAST_MODEL_EXCHANGE_ASYNC_SERVER_H_
#define STEPCAST_MODEL_EXCHANGE_ASYNC_SERVER_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <vector>

#include "model/exchange/async_queues.h"
#include "model/exchange/parameter_server.h"
#include "model/exchange/server_outcomes.h"
#include "model/numeric/dual.h"
#include "model/overlap/input.h"

namespace stepcast {

// Work of one worker between two updates, besides exchanging the message.
template <class T>
struct AsyncWork {
  Duration<T> forward;
  Duration<T> backward;
  T spread = T(0.0);  // sigma
  // Buckets of the message that leave during the backward pass; without any, all leaves after it.
  const std::vector<Bucket>* buckets = nullptr;
  // The lines that these come to, where the caller has made them before
  // (internal::MakeOverlapLines).
  const internal::OverlapLines* lines = nullptr;
  Duration<T> fixed = {};  // o
  // s, in steps; without one nobody waits.
  std::optional<int> bound = std::nullopt;
  Duration<T> slowest = {};  // W; needed with a bound only
  Duration<> arrival = {};   // of the samples of a cycle
};

namespace internal {

// The times at the stations near a balance, by demands and think time.
template <class T>
class TimesNearBalance {
 public:
  TimesNearBalance(const AsyncTimes<T>& demand, const AsyncTimes<DualOf<4>>& by, double think)
      : link_(Change(demand[kInbound])),
        update_(Change(demand[kUpdateStation])),
        by_(by),
        think_(think) {}

  AsyncTimes<T> At(const T& think) const {
    AsyncTimes<T> times;
    for (std::size_t i = 0; i < kAsyncStations; ++i) {
      const auto& slope = by_[i].si().slope;
      times[i] = Duration<T>::FromSi(by_[i].si().value + link_ * slope[0] + update_ * slope[1] +
                                     (think - think_) * slope[2]);
    }
    return times;
  }

 private:
  static T Change(const Duration<T>& x) { return x.si() - ValueOf(x.si()); }

  T link_;
  T update_;
  AsyncTimes<DualOf<4>> by_;
  double think_;
};

// The same with the derivative by the think time alone.
inline AsyncTimes<Dual> ByThink(const AsyncTimes<DualOf<4>>& by) {
  AsyncTimes<Dual> times;
  for (std::size_t i = 0; i < kAsyncStations; ++i) {
    times[i] = Duration<Dual>::FromSi({by[i].si().value, by[i].si().slope[2]});
  }
  return times;
}

// Of an AsyncNetwork, or of AsyncKinds. The derivatives are those of the equations at their root.
template <class Network>
AsyncState<typename Network::Scalar> Analyse(const Network& network, int workers) {
  using T = typename Network::Scalar;
  if constexpr (std::is_same_v<T, double>) {
    return Balance(network, workers).state;
  } else {
    const auto values = ValuesOf(network);
    const AsyncBalance balance = Balance(values, workers);
    const AsyncTimes<DualOf<4>> by = ResidenceBy(values.demand, workers, balance);
    const TimesNearBalance<T> near(network.demand, by, balance.think);
    const double slope = values.Think(ByThink(by)).si().slope - 1.0;
    const T gap = network.Think(near.At(T(balance.think))).si() - balance.think;
    AsyncState<T> state;
    state.residence = near.At(ImplicitRoot(balance.think, gap, std::min(slope, -1e-9)));
    state.cycle = AtLeastFull(network.demand, workers, network.Cycle(state.residence));
    return state;
  }
}

// Cost of each update to the fullest server and to the worker's link.
template <class T>
struct AsyncDemands {
  Duration<T> server_link;  // each way
  Duration<T> processor;    // each way, with the initiation
  Duration<T> update;
  Duration<T> own_link;    // of the worker that exchanges, each way, alone on its node
  Duration<T> connection;  // each way
  Duration<T> all;         // P: of all workers together, each way
};

template <class T, class S>
AsyncDemands<T> MakeAsyncDemands(const ServerPaths<T>& p, const DataSize<S>& message) {
  const double s = p.share();
  const double w = p.workers;
  // A colocated server's link carries the pulls of its node's workers as well.
  const double own = p.colocated ? p.worker_passes() / w : 0.0;
  const double pushed = p.link_share() * p.remote_workers();
  AsyncDemands<T> demands;
  demands.server_link = message * ((pushed / w + own) / p.server_link());
  demands.processor = message * (s / p.server_rate) + p.initiation;
  demands.update = message * p.update * s;
  demands.own_link = message * (p.worker_passes() / p.workers_per_node / p.worker.bandwidth);
  demands.connection = message * (p.connection * s);
  demands.all =
      Max(Max(message * (pushed / p.server_link()), demands.processor * w),
          Max(demands.own_link * static_cast<double>(p.workers_per_node), demands.connection));
  return demands;
}

// The cycle of the workers of one node, who share its link, and what it is made of.
template <class T>
struct SharedLink {
  Duration<T> cycle;   // zero where a worker has the link for itself
  Duration<T> beside;  // A: what it has beside its transfers
  double suffix = 0;   // q: share of the push that the backward pass does not hide
};

// The calls of one phase, whatever its bytes.
template <class T>
Duration<T> AsyncCalls(const ServerPaths<T>& p) {
  return PhaseLatency(p) + p.initiation * static_cast<double>(p.servers - 1);
}

// The others of the node find its link busy for D of each cycle C, each way: a transfer takes
// R = D / (1 - (g-1) D / C), so that a cycle of A beside 1 + q transfers is the larger root of
// (C - A) (C - (g-1) D) = (1 + q) D C. No cycle is shorter.
template <class T>
SharedLink<T> ShareOwnLink(const ServerPaths<T>& p, const AsyncDemands<T>& demands,
                           const AsyncNetwork<T>& network) {
  using std::sqrt;
  SharedLink<T> shared;
  const double others = p.workers_per_node - 1;
  if (!(others > 0 && demands.own_link.si() > 0.0)) return shared;
  const Duration<T> calls = AsyncCalls(p);
  const T d = demands.own_link.si();
  for (const OverlapLines::Line& line : network.lines) {
    const Duration<T> beside = network.forward + network.backward * line.ready +
                               calls * (1.0 + line.suffix) + demands.update * line.suffix;
    const auto cycle = [&](const auto& rest, const auto& transfer) {
      const auto sum = rest + transfer * (others + 1.0 + line.suffix);
      return 0.5 * (sum + sqrt(sum * sum - 4.0 * others * transfer * rest));
    };
    // Derivatives only of the largest.
    if (!(ValueOf(shared.cycle.si()) < cycle(ValueOf(beside.si()), ValueOf(d)))) continue;
    shared = {Duration<T>::FromSi(cycle(beside.si(), d)), beside, line.suffix};
  }
  return shared;
}

template <class T>
AsyncNetwork<T> MakeAsyncNetwork(const ServerPaths<T>& p, const AsyncDemands<T>& demands,
                                 const AsyncWork<T>& work) {
  AsyncNetwork<T> network;
  const Duration<T> station = Max(demands.server_link, demands.processor);
  network.demand = {station, demands.update, station};
  network.forward = work.forward + work.fixed;
  network.backward = work.backward;
  const Duration<T> calls = AsyncCalls(p);
  if (work.lines != nullptr) {
    network.lines = *work.lines;
  } else {
    network.lines = MakeOverlapLines(work.buckets);
  }
  const Duration<T> slowest = Max(demands.own_link, demands.connection);
  network.push_rest = network.pull_rest = calls + Max(slowest - station, Duration<T>());
  network.alone = network.Cycle(network.demand);
  network.at_own_link = ShareOwnLink(p, demands, network).cycle;
  network.phase = calls + demands.all;
  network.at_once = network.AtOnce(demands.update * static_cast<double>(p.workers));
  return network;
}

// The limit of the bytes of one exchange where nobody else is there.
template <class T>
ServerLimiter WhatOneWaitsFor(const AsyncDemands<T>& d) {
  if (Max(d.own_link, Max(d.server_link, d.processor)) < d.connection) {
    return ServerLimiter::kConnection;
  }
  if (!(d.own_link < Max(d.server_link, d.processor))) return ServerLimiter::kWorkerLink;
  return d.processor < d.server_link ? ServerLimiter::kServerLink : ServerLimiter::kServerRate;
}

template <class T>
AsyncLimiter WhatLimits(const AsyncDemands<T>& demands, const Duration<T>& compute,
                        const Duration<T>& alone, double workers) {
  const Duration<T> station = Max(demands.server_link, demands.processor);
  const Duration<T> bottleneck = Max(station, demands.update);
  // Left of the knee the cycle is the worker's own.
  if (bottleneck * workers < alone) {
    const Duration<T> exchange = Max(demands.own_link, station) * 2.0 + demands.update;
    if (exchange < compute) return AsyncLimiter::kCompute;
    if (!(demands.own_link < bottleneck)) return AsyncLimiter::kWorkerLink;
  }
  if (!(demands.update < bottleneck)) return AsyncLimiter::kServerUpdate;
  return demands.processor < demands.server_link ? AsyncLimiter::kServerLink
                                                 : AsyncLimiter::kServerRate;
}

// What workers of this mean cycle, and of this compute in it, make of servers and links.
template <class T>
void SetLoad(const ServerPaths<T>& p, const AsyncDemands<T>& demands, const Duration<T>& compute,
             AsyncServers<T>* servers) {
  const double w = p.workers;
  servers->updates = w / servers->cycle;
  servers->server_link = servers->updates * demands.server_link;
  servers->server_processor = servers->updates * demands.processor;
  servers->server_update = servers->updates * demands.update;
  servers->worker_link =
      demands.own_link * static_cast<double>(p.workers_per_node) / servers->cycle;
  servers->mean_staleness = w - 1;
  servers->limiter = WhatLimits(demands, compute, servers->alone, w);
  servers->exchange = WhatOneWaitsFor(demands);
}

// The phases of workers who push and pull all at once.
template <class T>
ServerTimes<T> TimesAtOnce(const ServerPaths<T>& p, const AsyncDemands<T>& demands,
                           const AsyncNetwork<T>& network) {
  return {network.phase, demands.update * static_cast<double>(p.workers), network.phase};
}

// The phases of a worker of this cycle who meets queues.
template <class T>
ServerTimes<T> TimesInQueues(const AsyncNetwork<T>& network, const Duration<T>& cycle,
                             const AsyncTimes<T>& residence) {
  // Workers of one node also wait for each other at its link, in both directions alike.
  const Duration<T> at_link = (cycle - network.AlongLast(residence)) * 0.5;
  return {network.push_rest + at_link + residence[kInbound], residence[kUpdateStation],
          network.pull_rest + at_link + residence[kOutbound]};
}

}  // namespace internal

// f: the share of the cycles that end as a synchronous step does.
template <class T>
T StalenessShare(const Duration<T>& synchronous_wait, const Duration<T>& cycle,
                 std::optional<int> bound) {
  if (!bound) return T(0.0);
  if (*bound == 0) return T(1.0);
  if (!(synchronous_wait.si() > 0.0)) return T(0.0);
  return synchronous_wait / (synchronous_wait + cycle * static_cast<double>(*bound));
}

// f W: what workers wait for the slowest.
template <class T>
Duration<T> BoundedStalenessWait(const Duration<T>& synchronous_wait, const Duration<T>& cycle,
                                 std::optional<int> bound) {
  return synchronous_wait * StalenessShare(synchronous_wait, cycle, bound);
}

template <class T>
AsyncServers<T> AsynchronousServers(const ServerPaths<T>& p, const AsyncWork<T>& work,
                                    DataSize<> message) {
  using std::sqrt;
  AsyncServers<T> result;
  const Duration<T> compute = work.forward + work.backward;
  if (p.alone()) {
    result.cycle = result.alone = compute;
    result.updates = 1.0 / compute;
    return result;
  }
  const double w = p.workers;
  const internal::AsyncDemands<T> demands = internal::MakeAsyncDemands(p, message);
  const internal::AsyncNetwork<T> network = internal::MakeAsyncNetwork(p, demands, work);
  result.alone = network.alone;
  const Duration<T> free = Min(internal::Analyse(network, p.workers).cycle, network.at_once);
  result.unbounded = result.cycle = free;
  if (work.bound) {
    result.together = StalenessShare(work.slowest, free, *work.bound);
    result.wait = work.slowest * result.together;
    result.cycle = free + (network.at_once - free) * result.together + result.wait;
  }
  result.input_wait = InputWait(result.cycle, work.arrival);
  result.cycle += result.input_wait;
  internal::SetLoad(p, demands, network.forward + network.backward, &result);
  const Duration<T> jitter = compute * work.spread;
  auto variance = jitter * jitter;
  for (const Duration<T>& demand : network.demand) variance = variance + demand * demand;
  const T of_free = variance / (free * free) * (w * (w - 1));
  const T of_all = of_free + ((w * w - 1) / 6 - of_free) * result.together;
  if (of_all > 0.0) result.staleness_sd = sqrt(of_all);
  return result;
}

// The phases of one cycle, `together` of which end as a synchronous step does.
template <class T>
ServerTimes<T> AsynchronousTimes(const ServerPaths<T>& p, const AsyncWork<T>& work,
                                 DataSize<> message, const T& together) {
  if (p.alone()) return {};
  const internal::AsyncDemands<T> demands = internal::MakeAsyncDemands(p, message);
  const internal::AsyncNetwork<T> network = internal::MakeAsyncNetwork(p, demands, work);
  const internal::AsyncState<T> free = internal::Analyse(network, p.workers);
  const ServerTimes<T> at_once = internal::TimesAtOnce(p, demands, network);
  if (network.at_once < free.cycle) return at_once;
  const ServerTimes<T> alone = internal::TimesInQueues(network, free.cycle, free.residence);
  const auto mean = [&](const Duration<T>& in_queues, const Duration<T>& of_all) {
    return in_queues + (of_all - in_queues) * together;
  };
  return {mean(alone.push, at_once.push), mean(alone.update, at_once.update),
          mean(alone.pull, at_once.pull)};
}

// ---- Workers of several kinds.

template <class T>
struct WorkerClass {
  int workers = 1;
  AsyncWork<T> work;
};

template <class T>
struct ClassOutcome {
  Duration<T> cycle;
  Duration<T> alone;     // the same without other workers
  T staleness = T(0.0);  // mean updates by others in a cycle of this class
  ServerTimes<T> times;
};

namespace internal {

template <class T, std::size_t kKinds>
std::array<ClassOutcome<T>, kKinds> AnalyseClasses(
    const ServerPaths<T>& p, const AsyncDemands<T>& demands,
    const std::array<WorkerClass<T>, kKinds>& classes) {
  AsyncKinds<T, kKinds> all;
  for (std::size_t c = 0; c < kKinds; ++c) {
    all.kinds[c] = {MakeAsyncNetwork(p, demands, classes[c].work), 1.0 * classes[c].workers};
  }
  all.demand = all.kinds.front().network.demand;
  const AsyncState<T> state = Analyse(all, p.workers);
  const AsyncTimes<T>& residence = state.residence;
  const T longer = state.cycle / all.Cycle(residence);
  std::array<ClassOutcome<T>, kKinds> outcome;
  Quantity<RateDimension, T> updates;
  for (std::size_t c = 0; c < kKinds; ++c) {
    const AsyncNetwork<T>& network = all.kinds[c].network;
    const Duration<T> free = network.Cycle(residence) * longer;
    outcome[c].cycle = Min(free, network.at_once);
    outcome[c].alone = network.alone;
    outcome[c].times = network.at_once < free ? TimesAtOnce(p, demands, network)
                                              : TimesInQueues(network, free, residence);
    updates += all.kinds[c].workers / outcome[c].cycle;
  }
  for (ClassOutcome<T>& of : outcome) of.staleness = updates * of.cycle - 1.0;
  return outcome;
}

}  // namespace internal

// Cycles of workers of several kinds that share the servers; `p.workers` is that of all together.
//
//   R_i of the network of equal workers whose cycle is C* at R, C_c: cycle of class c with that R,
//   w / C* = sum_c w_c / C_c
//
// Every class meets the same queues: that of a network of as many equal workers whose compute time
// gives the same rate of updates. Exact for one class and for a lone worker, the right limits when
// nobody queues and when the servers saturate; against an exact analysis of two classes of up to 6
// workers at most 9 per cent off (tests). With a staleness bound all classes move at the pace of
// the slowest, which is no case of this: they are equal workers then.
//
// Note that staleness is uneven: a class's mean is X C_c - 1, so the slow ones see the most.
//
// Source: Bard, "Some extensions to multiclass queueing network analysis" (1979), for approximate
// analysis by classes.
template <class T, std::size_t kKinds>
std::array<ClassOutcome<T>, kKinds> AsynchronousClasses(
    const ServerPaths<T>& p, const std::array<WorkerClass<T>, kKinds>& classes,
    DataSize<> message) {
  return internal::AnalyseClasses(p, internal::MakeAsyncDemands(p, message), classes);
}

// The servers of fast and of slow workers, none of whom waits for another. Its times are means over
// updates, of which a worker makes the more the shorter its cycle is, so that w / X is the mean
// cycle; mean staleness is w - 1 then, and what kinds differ in adds to its spread. `times` may be
// null.
template <class T>
AsyncServers<T> UnequalServers(const ServerPaths<T>& p, const WorkerClass<T>& fast,
                               const WorkerClass<T>& slow, DataSize<> message,
                               ServerTimes<T>* times) {
  using std::sqrt;
  const std::array<WorkerClass<T>, 2> classes = {fast, slow};
  const internal::AsyncDemands<T> demands = internal::MakeAsyncDemands(p, message);
  std::array<ClassOutcome<T>, 2> outcome = internal::AnalyseClasses(p, demands, classes);
  const double w = p.workers;
  std::array<Duration<T>, 2> waits;
  Quantity<RateDimension, T> updates;
  for (std::size_t c = 0; c < 2; ++c) {
    waits[c] = InputWait(outcome[c].cycle, classes[c].work.arrival);
    outcome[c].cycle += waits[c];
    updates += static_cast<double>(classes[c].workers) / outcome[c].cycle;
  }
  AsyncServers<T> result;
  result.fast_cycle = outcome[0].cycle;
  result.slow_cycle = outcome[1].cycle;
  result.slow_updates = static_cast<double>(slow.workers) / outcome[1].cycle / updates;
  const auto mean = [&](const auto& of_fast, const auto& of_slow) {
    return of_fast + (of_slow - of_fast) * result.slow_updates;
  };
  result.cycle = w / updates;
  result.input_wait = mean(waits[0], waits[1]);
  result.unbounded = result.cycle - result.input_wait;
  result.alone = mean(outcome[0].alone, outcome[1].alone);
  if (times != nullptr) {
    const ServerTimes<T>& a = outcome[0].times;
    const ServerTimes<T>& b = outcome[1].times;
    *times = {mean(a.push, b.push), mean(a.update, b.update), mean(a.pull, b.pull)};
  }
  const auto compute = [](const AsyncWork<T>& work) { return work.forward + work.backward; };
  const Duration<T> computing = mean(compute(fast.work), compute(slow.work));
  internal::SetLoad(p, demands, computing + fast.work.fixed, &result);

  const Duration<T> station = Max(demands.server_link, demands.processor);
  const Duration<T> jitter = computing * fast.work.spread;
  const T own = (jitter * jitter + station * station * 2.0 + demands.update * demands.update) /
                (result.cycle * result.cycle) * (w * (w - 1));
  const auto off = [&](const Duration<T>& cycle) { return updates * cycle - w; };
  const T between = mean(T(off(result.fast_cycle) * off(result.fast_cycle)),
                         T(off(result.slow_cycle) * off(result.slow_cycle)));
  if (own + between > 0.0) result.staleness_sd = sqrt(own + between);
  return result;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_ASYNC_SERVER_H_
