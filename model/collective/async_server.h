// Asynchronous parameter servers: every worker cycles by itself through pull, forward and backward
// pass and push, and workers meet only in queues for the servers and for their node's link. A
// closed queueing network of w customers, with three stations that an update visits once each:
//
//   inbound    D   = max( m s / B_s, m s / P + c_x )      a server's link, and what takes in
//   update     D_u = m s u                                a server's processor
//   outbound   D                                          its link, and what copies out
//
// and the rest of the cycle as think time: t_f and, each way, what messages cost before their bytes
// and what the worker's own link or connection takes longer than a server,
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
// What of C is not spent at the stations is the think time Z = C - sum R. Mean value analysis adds
// one worker after the other, k = 1..w:
//
//   R_i(k) = D_i ( 1 + Q_i(k-1) ),   X(k) = k / (Z + sum R(k)),   Q_i(k) = X(k) R_i(k)
//
//   m, s, u, P, B, B_s, g, f, c, c_x, alpha, rho, n   as in model/collective/parameter_server.h, as
//          k in A; where servers are colocated, a server's link carries the pulls of its node's
//          workers too
//   r_k    moment at which bucket k is ready, from the start of the backward pass   [s]
//   C      a worker's time from one update to its next                              [s]
//   X      updates per second of all workers                                        [1/s]
//   Q_i    updates that wait or are served at station i                             [1]
//
// and where a part of the push hides, Z is the one at which the R of all w workers leave as much.
// This is exact for exponential service without overlap. Beyond kExactCustomers = 32 workers the
// queue that one more worker finds is taken from the chord between 32 and w,
//
//   Q_i(w-1) = Q_i(w) (1 - 1/h) + Q_i(32) / h,   h = w - 32,
//
// which leaves one equation in X. Queues grow ever faster with w, so that the chord lies above: C
// is an upper estimate. It is the exact recursion at h = 1 and has the exact limit, X = 1 / max D;
// in between, where servers begin to saturate, it is at most 1.7 per cent too long, and 2.9 per
// cent where updates alone fill the servers (the tests compare with the recursion up to 20000
// workers). A million workers take as long as 33.
//
// Staleness is the number of updates by others during one cycle of a worker. With equal workers
// everybody updates once a cycle, so that its mean is w - 1 whatever the queues do. Its spread
// comes from what is a worker's own in a cycle, its compute and its services; a queue is shared,
// and first come first served keeps the order of those in it:
//
//   sd = c sqrt( (w-1) + (w-1)^2 ),   c^2 C^2 = (sigma t)^2 + sum_i D_i^2
//
//   sigma  spread of a micro-step between workers, as a share of t = t_f + t_b      [1]
//
// since each other worker's count varies by c^2, and a long cycle of one's own counts more updates
// of all. Exact where compute is exponential and nobody queues (a geometric number), and where
// nothing varies (none). Within 25 per cent of an event simulation where the spread is an update or
// more and compute varies; an upper estimate where the servers saturate and compute is steady.
//
// Holds for transfers that vary as much as an exponential; real ones vary less, so queues are an
// upper estimate until the servers saturate. Servers are taken as one station with the load of the
// fullest: the fork and join over n of them is left out.
//
// Note that a lone worker meets no queue and takes as long as one worker of the synchronous case
// with pipelining off; that X never exceeds 1 / max D; that X never falls and C never falls with w.
//
// Sources: Reiser & Lavenberg, JACM 27 (1980) (mean value analysis); Schweitzer, Proc. Int. Conf.
// on Stochastic Control (1979) (queues of large populations); Li et al., OSDI 2014 (asynchronous
// servers); Ho et al., NIPS 2013 (bounded staleness).
#ifndef STEPCAST_MODEL_COLLECTIVE_ASYNC_SERVER_H_
#define STEPCAST_MODEL_COLLECTIVE_ASYNC_SERVER_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "model/collective/parameter_server.h"
#include "model/numeric/dual.h"

namespace stepcast {

inline constexpr int kExactCustomers = 32;

namespace internal {
struct OverlapLines;
}  // namespace internal

// What one worker does between two updates, besides exchanging the message.
template <class T>
struct AsyncWork {
  Duration<T> forward;
  Duration<T> backward;
  T spread = T(0.0);  // sigma
  // Buckets of the message that leave during the backward pass; without any, all leaves after it.
  const std::vector<Bucket>* buckets = nullptr;
  // What they come to, where somebody has worked it out before (internal::MakeOverlapLines).
  const internal::OverlapLines* lines = nullptr;
};

// What more workers would queue for, or what the cycle is made of while they do not.
enum class AsyncLimiter { kCompute, kWorkerLink, kServerLink, kServerRate, kServerUpdate };

template <class T>
struct AsyncServers {
  Duration<T> cycle;                   // C: a worker's time from one update to its next
  Duration<T> alone;                   // the same without other workers
  Quantity<RateDimension, T> updates;  // per second, of all workers
  // Busy shares, of the fullest server and of one worker's exchanges; links and the processor work
  // as long in one direction as in the other.
  T server_link = T(0.0);
  T server_processor = T(0.0);  // that takes in, or copies out
  T server_update = T(0.0);     // that updates
  T worker_link = T(0.0);
  double mean_staleness = 0;  // updates by others in one cycle
  T staleness_sd = T(0.0);
  AsyncLimiter limiter = AsyncLimiter::kCompute;
  ServerLimiter exchange = ServerLimiter::kWorkerLink;  // what the bytes of a lone worker wait for

  Duration<T> queueing() const { return cycle - alone; }
};

namespace internal {

enum AsyncStation { kInbound, kUpdateStation, kOutbound, kAsyncStations };

// max( t, r_k + q_k x ) as the lines that matter: the upper envelope, from the line that rises most
// to the one that starts highest. Of an envelope with more than kCapacity lines that one is left
// out whose absence lowers it least, again and again, which leaves a lower estimate (by less than a
// thousandth for ten thousand buckets that all matter; tests). What is left out depends on no time,
// so that the estimate keeps its trends.
struct OverlapLines {
  static constexpr std::size_t kCapacity = 32;
  struct Line {
    double ready = 1.0;   // r_k, as a share of the backward pass
    double suffix = 1.0;  // q_k, of the message
    double lost = 0.0;    // by which lines left out beside it may have been higher
  };

  const Line* begin() const { return lines.data(); }
  const Line* end() const { return lines.data() + count; }

  // Lines rise less and start higher along the list.
  void Add(Line line) {
    if (count > 0 && line.ready <= lines[count - 1].ready) return;
    while (count > 0 && Covered(count - 1, line)) --count;
    if (count == kCapacity) LeaveOneOut(&line);
    lines[count++] = line;
  }

  std::array<Line, kCapacity> lines;
  std::size_t count = 0;

 private:
  // Whether line i is nowhere above both the one before and `next`, but for rounding.
  bool Covered(std::size_t i, const Line& next) const {
    constexpr double kRounding = 1e-14;
    if (lines[i].suffix <= next.suffix) return true;
    return i > 0 && Loss(i, next) <= kRounding;
  }
  // What the envelope loses without line i: at most this, where its neighbours cross.
  double Loss(std::size_t i, const Line& next) const {
    const Line& before = lines[i - 1];
    const double crossing = (next.ready - before.ready) / (before.suffix - next.suffix);
    return lines[i].ready - before.ready + (lines[i].suffix - before.suffix) * crossing;
  }
  void LeaveOneOut(Line* next) {
    std::size_t least = count - 1;
    double cost = lines[least].lost + Loss(least, *next);
    for (std::size_t i = 1; i + 1 < count; ++i) {
      const double other = lines[i].lost + Loss(i, lines[i + 1]);
      if (other < cost) {
        least = i;
        cost = other;
      }
    }
    Line& after = least + 1 < count ? lines[least + 1] : *next;
    after.lost = std::max(after.lost, cost);
    lines[least - 1].lost = std::max(lines[least - 1].lost, cost);
    std::copy(lines.data() + least + 1, lines.data() + count, lines.data() + least);
    --count;
  }
};

inline OverlapLines MakeOverlapLines(const std::vector<Bucket>* buckets) {
  OverlapLines lines;
  if (buckets == nullptr || buckets->empty()) {
    lines.Add({});
    return lines;
  }
  DataSize<> total;
  for (const Bucket& bucket : *buckets) total += bucket.bytes;
  DataSize<> left = total;
  for (const Bucket& bucket : *buckets) {
    lines.Add({bucket.ready, left / total, 0.0});
    left -= bucket.bytes;
  }
  lines.Add({1.0, 0.0, 0.0});
  return lines;
}

// A root that was found in values, with the derivatives that it has as a function of what the
// equation contains: those of one step of Newton's from it. `residual` is the equation's left side
// at the root, `slope` its derivative by the unknown.
template <class T>
T ImplicitRoot(double root, const T& residual, double slope) {
  return root - (residual - ValueOf(residual)) / slope;
}

template <class T>
using AsyncTimes = std::array<Duration<T>, kAsyncStations>;

// A closed network in the plain sense: what is not spent at a station is think time. Demands may be
// of another scalar than the think time, where derivatives are by that alone.
template <class T, class D = T>
struct ClosedNetwork {
  AsyncTimes<D> demand;
  Duration<T> think;

  Duration<T> Cycle(const AsyncTimes<T>& residence) const {
    Duration<T> cycle = think;
    for (const Duration<T>& time : residence) cycle += time;
    return cycle;
  }
  Duration<D> Bottleneck() const {
    return Max(Max(demand[kInbound], demand[kUpdateStation]), demand[kOutbound]);
  }
};

template <class T>
struct AsyncNetwork {
  AsyncTimes<T> demand;
  Duration<T> forward;
  Duration<T> backward;
  Duration<T> push_rest;  // a: of a push beside the stations
  Duration<T> pull_rest;
  Duration<T> alone;        // the cycle of a worker without others
  Duration<T> at_own_link;  // with those of its node only; zero where it has the link for itself
  OverlapLines lines;

  // C of the times at the stations.
  template <class U>
  Duration<U> Cycle(const AsyncTimes<U>& residence) const {
    const Duration<U> push = push_rest + residence[kInbound] + residence[kUpdateStation];
    Duration<U> end = backward;
    for (const OverlapLines::Line& line : lines) {
      end = Max(end, backward * line.ready + push * line.suffix);
    }
    return Max(forward + end + pull_rest + residence[kOutbound], at_own_link);
  }
  // What of it is not spent at the stations: never negative, for the first bucket's line holds the
  // whole push, and never more with longer times.
  template <class U>
  Duration<U> Think(const AsyncTimes<U>& residence) const {
    return Cycle(residence) - ClosedNetwork<U>{}.Cycle(residence);
  }
  // The least that Think can be.
  Duration<T> LeastThink() const {
    return forward + backward * lines.lines.front().ready + push_rest + pull_rest;
  }
  ClosedNetwork<T> WithoutQueues() const { return {demand, Think(demand)}; }
};

template <class T>
AsyncNetwork<double> ValuesOf(const AsyncNetwork<T>& network) {
  AsyncNetwork<double> values;
  for (std::size_t i = 0; i < kAsyncStations; ++i) values.demand[i] = ValueOf(network.demand[i]);
  values.forward = ValueOf(network.forward);
  values.backward = ValueOf(network.backward);
  values.push_rest = ValueOf(network.push_rest);
  values.pull_rest = ValueOf(network.pull_rest);
  values.at_own_link = ValueOf(network.at_own_link);
  values.lines = network.lines;
  return values;
}

// What mean value analysis keeps from one number of workers to the next.
template <class T>
struct AsyncState {
  std::array<T, kAsyncStations> queue = {T(0.0), T(0.0), T(0.0)};  // at w
  AsyncTimes<T> residence;  // D (1 + what the last of w workers to arrive finds)
  Duration<T> cycle;
};

// From k - 1 customers to k.
template <class T, class D>
void OneMore(const ClosedNetwork<T, D>& network, int k, AsyncState<T>* state) {
  for (std::size_t i = 0; i < kAsyncStations; ++i) {
    state->residence[i] = network.demand[i] * (1.0 + state->queue[i]);
  }
  state->cycle = network.Cycle(state->residence);
  const auto updates = static_cast<double>(k) / state->cycle;
  for (std::size_t i = 0; i < kAsyncStations; ++i) {
    state->queue[i] = updates * state->residence[i];
  }
}

template <class T, class D>
AsyncState<T> ExactAnalysis(const ClosedNetwork<T, D>& network, int workers) {
  AsyncState<T> state;
  for (int k = 1; k <= workers; ++k) OneMore(network, k, &state);
  return state;
}

// The chord from kExactCustomers to `workers`, h = w - kExactCustomers. With D the largest demand,
// s_i = D_i / D and y = 1 - (1 - 1/h) X D it leaves
//
//   R_i(y) = D_i ( 1 + Q_i(kExactCustomers) / h ) / ( (1 - s_i) + s_i y ),
//   1 - y  = w (1 - 1/h) D / C( R(y) ),      1/h <= y <= 1
//
// y rather than X, since a full station has y near 0 and R near D/y, which keeps all digits.
template <class T, class D>
AsyncState<T> ChordAnalysis(const ClosedNetwork<T, D>& network, int workers) {
  using std::sqrt;
  AsyncState<T> state = ExactAnalysis(network, kExactCustomers);
  const double w = workers;
  const double part = 1.0 / (w - kExactCustomers);
  const double load = w * (1.0 - part);
  const Duration<D> bottleneck = network.Bottleneck();
  if (!(bottleneck.si() > 0.0)) return state;
  std::array<D, kAsyncStations> share{};
  std::array<D, kAsyncStations> rest{};
  std::array<T, kAsyncStations> weight{};
  for (std::size_t i = 0; i < kAsyncStations; ++i) {
    share[i] = network.demand[i] / bottleneck;
    rest[i] = (bottleneck - network.demand[i]) / bottleneck;
    weight[i] = share[i] * (1.0 + state.queue[i] * part);
  }
  const T think = network.think / bottleneck;
  // In values. 1/C is concave in y (the parallel sum of straight lines), so that the left side of
  // 1 - y - load D / C = 0 falls ever less: from the second step on Newton's method comes up to the
  // root and never passes it.
  double slope = 0.0;
  const auto newton = [&](double y) {
    double cycle = ValueOf(think);
    double falls = 0.0;
    for (std::size_t i = 0; i < kAsyncStations; ++i) {
      const double inverse = 1.0 / (ValueOf(rest[i]) + ValueOf(share[i]) * y);
      const double time = ValueOf(weight[i]) * inverse;
      cycle += time;
      falls += time * ValueOf(share[i]) * inverse;
    }
    const double rate = load / cycle;
    slope = -1.0 - rate * falls / cycle;
    return std::max(part, y - (1.0 - y - rate) / slope);
  };
  // It starts from the root that the equation has, a quadratic one, when each station counts as
  // full for its s_i and as think time for the rest.
  double full = 0.0;
  double other = ValueOf(think);
  for (std::size_t i = 0; i < kAsyncStations; ++i) {
    full += ValueOf(weight[i]) * ValueOf(share[i]);
    other += ValueOf(weight[i]) * ValueOf(rest[i]);
  }
  const double linear = load + full - other;
  const double root = sqrt(linear * linear + 4.0 * other * full);
  double value = linear > 0.0 ? 2.0 * full / (linear + root) : (root - linear) / (2.0 * other);
  value = newton(std::clamp(value, part, 1.0));
  constexpr int kSteps = 40;
  for (int step = 0; step < kSteps; ++step) {
    const double next = newton(value);
    if (!(next > value * (1.0 + 1e-15))) break;
    value = next;
  }

  const auto residence = [&](const T& y) {
    for (std::size_t i = 0; i < kAsyncStations; ++i) {
      state.residence[i] = bottleneck * (weight[i] / (rest[i] + share[i] * y));
    }
    return network.Cycle(state.residence);
  };
  T y(value);
  if constexpr (!std::is_same_v<T, double>) {
    // Held at 1/h the servers are full, and no derivative moves it.
    if (value > part) {
      y = ImplicitRoot(value, T(1.0 - y - load * (bottleneck / residence(y))), slope);
    }
  }
  const Duration<T> cycle = residence(y);
  state.cycle = Max(cycle, bottleneck * w);
  for (std::size_t i = 0; i < kAsyncStations; ++i) {
    state.queue[i] = w * (state.residence[i] / state.cycle);
  }
  return state;
}

template <class T, class D>
AsyncState<T> Analyse(const ClosedNetwork<T, D>& network, int workers) {
  return workers <= kExactCustomers ? ExactAnalysis(network, workers)
                                    : ChordAnalysis(network, workers);
}

// The think time at which the network's own queues leave as much of the cycle.
template <class T>
AsyncState<T> Analyse(const AsyncNetwork<T>& network, int workers) {
  ClosedNetwork<T> closed = network.WithoutQueues();
  // Where nothing hides behind the backward pass or another wait, or nobody queues, it is as without
  // queues.
  const bool hides = network.lines.count > 1 || network.at_own_link.si() > 0.0;
  if (workers == 1 || !hides) return Analyse(closed, workers);
  const AsyncNetwork<double> values = ValuesOf(network);
  ClosedNetwork<Dual, double> by_think{values.demand, {}};
  // Falls in the think time, by at most as much: queues take less, and hide less.
  const auto excess = [&](double think) {
    by_think.think = Duration<Dual>::FromSi(Dual(think, 1.0));
    return (values.Think(Analyse(by_think, workers).residence) - by_think.think).si();
  };
  double low = values.LeastThink().si();
  double high = ValueOf(closed.think.si());
  if (!(low < high)) return Analyse(closed, workers);
  Dual at = excess(high);
  if (!(at < 0.0)) return Analyse(closed, workers);
  // Newton's method between bounds. The maximum over the buckets has corners: where a step leaves
  // the bounds, or the one before has not halved the excess, the middle is next.
  constexpr int kSteps = 100;
  // An error of the think time changes the cycle by no more.
  const double tolerance = 1e-14 * values.Cycle(values.demand).si();
  double think = high;
  double before = std::numeric_limits<double>::infinity();
  for (int step = 0; step < kSteps && std::abs(at.value) > tolerance; ++step) {
    double next = think - at.value / at.slope;
    const bool slow = std::abs(at.value) > 0.5 * before;
    if (slow || !(next > low && next < high)) next = low + 0.5 * (high - low);
    if (!(next > low && next < high)) break;
    before = std::abs(at.value);
    think = next;
    at = excess(think);
    (at < 0.0 ? high : low) = think;
  }
  closed.think = Duration<T>::FromSi(T(think));
  if constexpr (!std::is_same_v<T, double>) {
    const T residual = network.Think(Analyse(closed, workers).residence).si() - think;
    closed.think = Duration<T>::FromSi(ImplicitRoot(think, residual, std::min(at.slope, -1e-9)));
  }
  return Analyse(closed, workers);
}

// What each update costs the fullest server and the worker's link.
template <class T>
struct AsyncDemands {
  Duration<T> server_link;  // each way
  Duration<T> processor;    // each way, with the initiation
  Duration<T> update;
  Duration<T> own_link;    // of the worker that exchanges, each way, alone on its node
  Duration<T> connection;  // each way
};

template <class T, class S>
AsyncDemands<T> MakeAsyncDemands(const ServerPaths<T>& p, const DataSize<S>& message) {
  const double s = p.share();
  // A colocated server's link carries the pulls of its node's workers as well.
  const double own = p.colocated ? p.worker_passes() / p.workers : 0.0;
  const double passes = p.link_share() * p.remote_workers() / p.workers + own;
  return {message * (passes / p.server_link()), message * (s / p.server_rate) + p.initiation,
          message * p.update * s,
          message * (p.worker_passes() / p.workers_per_node / p.worker.bandwidth),
          message * (p.connection * s)};
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
    const T rest = beside.si();
    const T sum = rest + d * (others + 1.0 + line.suffix);
    const auto cycle = Duration<T>::FromSi(0.5 * (sum + sqrt(sum * sum - 4.0 * others * d * rest)));
    if (shared.cycle < cycle) shared = {cycle, beside, line.suffix};
  }
  return shared;
}

template <class T>
AsyncNetwork<T> MakeAsyncNetwork(const ServerPaths<T>& p, const AsyncDemands<T>& demands,
                                 const AsyncWork<T>& work) {
  AsyncNetwork<T> network;
  const Duration<T> station = Max(demands.server_link, demands.processor);
  network.demand = {station, demands.update, station};
  network.forward = work.forward;
  network.backward = work.backward;
  const Duration<T> calls = AsyncCalls(p);
  network.lines = work.lines != nullptr ? *work.lines : MakeOverlapLines(work.buckets);
  const Duration<T> slowest = Max(demands.own_link, demands.connection);
  network.push_rest = network.pull_rest = calls + Max(slowest - station, Duration<T>());
  network.alone = network.Cycle(network.demand);
  network.at_own_link = ShareOwnLink(p, demands, network).cycle;
  return network;
}

// What the bytes of one exchange wait for where nobody else is there.
template <class T>
ServerLimiter WhatOneWaitsFor(const AsyncDemands<T>& d) {
  if (Max(d.own_link, Max(d.server_link, d.processor)) < d.connection) {
    return ServerLimiter::kConnection;
  }
  if (!(d.own_link < Max(d.server_link, d.processor))) return ServerLimiter::kWorkerLink;
  return d.processor < d.server_link ? ServerLimiter::kServerLink : ServerLimiter::kServerRate;
}

template <class T>
AsyncLimiter WhatLimits(const AsyncDemands<T>& demands, const AsyncNetwork<T>& network,
                        const Duration<T>& alone, double workers) {
  const Duration<T> station = Max(demands.server_link, demands.processor);
  const Duration<T> bottleneck = Max(station, demands.update);
  // Left of the knee the cycle is the worker's own.
  if (bottleneck * workers < alone) {
    const Duration<T> exchange = Max(demands.own_link, station) * 2.0 + demands.update;
    if (exchange < network.forward + network.backward) return AsyncLimiter::kCompute;
    if (!(demands.own_link < bottleneck)) return AsyncLimiter::kWorkerLink;
  }
  if (!(demands.update < bottleneck)) return AsyncLimiter::kServerUpdate;
  return demands.processor < demands.server_link ? AsyncLimiter::kServerLink
                                                 : AsyncLimiter::kServerRate;
}

}  // namespace internal

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
  const internal::AsyncState<T> state = internal::Analyse(network, p.workers);
  result.cycle = state.cycle;
  result.alone = network.alone;
  result.updates = w / state.cycle;
  result.server_link = result.updates * demands.server_link;
  result.server_processor = result.updates * demands.processor;
  result.server_update = result.updates * demands.update;
  result.worker_link = demands.own_link * static_cast<double>(p.workers_per_node) / state.cycle;
  result.mean_staleness = w - 1;
  const Duration<T> jitter = (work.forward + work.backward) * work.spread;
  auto variance = jitter * jitter;
  for (const Duration<T>& demand : network.demand) variance = variance + demand * demand;
  const T relative = variance / (state.cycle * state.cycle);
  if (relative > 0.0) result.staleness_sd = sqrt(relative * (w * (w - 1)));
  result.limiter = internal::WhatLimits(demands, network, result.alone, w);
  result.exchange = internal::WhatOneWaitsFor(demands);
  return result;
}

// Stale synchronous parallel: a worker that is more than s steps ahead of the slowest waits.
//
//   wait = W^2 / ( W + s t )
//
//   W      wait of a synchronous step for the slowest of w workers             [s]
//   t      a step without any wait                                             [s]
//   s      staleness bound in steps; 0 is synchronous, none never waits
//
// Between two limits: s = 0 is the synchronous barrier; with a long lead s t workers diffuse apart,
// and the pace they lose is their variance over the lead, of the order of W^2 / (s t). An upper
// estimate in most cases: in a simulation of workers whose steps vary by 3 to 30 per cent the wait
// is 0.4 to 1.25 times that from 8 workers on, and 0.25 to 1.5 times with two. A worker that is
// always slower is no spread: with any bound all end up at its pace.
//
// Source: Ho et al., NIPS 2013 (the bound); the formula is an interpolation of our own.
template <class T>
Duration<T> BoundedStalenessWait(const Duration<T>& synchronous_wait, const Duration<T>& step,
                                 std::optional<int> bound) {
  if (!bound || !(synchronous_wait.si() > 0.0)) return {};
  return synchronous_wait *
         (synchronous_wait / (synchronous_wait + step * static_cast<double>(*bound)));
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
  T staleness = T(0.0);  // mean updates by others in a cycle of this class
};

// Cycles of workers of several kinds that share the servers; `p.workers` is not read.
//
//   R_i of the network of equal workers whose cycle is C* at R, C_c: cycle of class c with that R,
//   w / C* = sum_c w_c / C_c
//
// Every class meets the same queues: that of a network of as many equal workers whose compute time
// gives the same rate of updates, found by iteration. Exact for one class and for a lone worker,
// the right limits when nobody queues and when the servers saturate; against an exact analysis of
// two classes of up to 6 workers at most 9 per cent off (tests). With a staleness bound all classes
// move at the pace of the slowest.
//
// Note that staleness is uneven: a class's mean is X C_c - 1, so the slow ones see the most.
//
// Source: Bard, "Some extensions to multiclass queueing network analysis" (1979), for approximate
// analysis by classes.
template <class T>
std::vector<ClassOutcome<T>> AsynchronousClasses(ServerPaths<T> p,
                                                 const std::vector<WorkerClass<T>>& classes,
                                                 DataSize<> message) {
  constexpr int kRounds = 40;
  p.workers = 0;
  for (const WorkerClass<T>& c : classes) p.workers += c.workers;
  const internal::AsyncDemands<T> demands = internal::MakeAsyncDemands(p, message);
  std::vector<internal::AsyncNetwork<T>> networks;
  for (const WorkerClass<T>& c : classes) {
    networks.push_back(internal::MakeAsyncNetwork(p, demands, c.work));
  }
  // The equal workers: no overlap, and a think time Z to be found.
  internal::AsyncNetwork<T> equal = networks.front();
  equal.lines = internal::MakeOverlapLines(nullptr);
  equal.backward = equal.push_rest = equal.pull_rest = equal.at_own_link = {};
  const auto rate = [&](const internal::AsyncTimes<T>& residence) {
    Quantity<RateDimension, T> sum;
    for (std::size_t c = 0; c < classes.size(); ++c) {
      sum += static_cast<double>(classes[c].workers) / networks[c].Cycle(residence);
    }
    return sum;
  };
  const double w = p.workers;
  auto residence = equal.demand;
  for (int round = 0; round < kRounds; ++round) {
    Duration<T> at_stations;
    for (const Duration<T>& time : residence) at_stations += time;
    equal.forward = Max(w / rate(residence) - at_stations, Duration<T>());
    residence = internal::Analyse(equal, p.workers).residence;
  }
  const Quantity<RateDimension, T> updates = rate(residence);
  std::vector<ClassOutcome<T>> outcome;
  for (const internal::AsyncNetwork<T>& network : networks) {
    const Duration<T> cycle = network.Cycle(residence);
    outcome.push_back({cycle, updates * cycle - 1.0});
  }
  return outcome;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_COLLECTIVE_ASYNC_SERVER_H_
