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
// What of C is not spent at the stations is the think time Z = C - sum R. The last of w workers to
// arrive finds the queues of w - 1, and those of k workers have product form:
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
// This is exact for exponential service without overlap. Beyond kExactCustomers = 32 workers the
// queue that one more worker finds is taken from the chord between 32 and w,
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
// Sources: Gordon & Newell, Operations Research 15 (1967) (product form); Buzen, CACM 16 (1973)
// (normalising constants); Reiser & Lavenberg, JACM 27 (1980) (mean value analysis); Schweitzer,
// Proc. Int. Conf. on Stochastic Control (1979) (queues of large populations); Li et al., OSDI 2014
// (asynchronous servers); Ho et al., NIPS 2013 (bounded staleness).
#ifndef STEPCAST_MODEL_EXCHANGE_ASYNC_SERVER_H_
#define STEPCAST_MODEL_EXCHANGE_ASYNC_SERVER_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "model/exchange/parameter_server.h"
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

    template <class T, class U>
    auto At(const T& backward, const U& push) const {
      return backward * ready + push * suffix;
    }
  };

  OverlapLines() = default;
  // Only what is there: a copy of all places takes as long as a step's time.
  OverlapLines(const OverlapLines& other) { *this = other; }
  OverlapLines& operator=(const OverlapLines& other) {
    if (this != &other) std::copy(other.begin(), other.end(), lines.begin());
    count = other.count;
    return *this;
  }
  ~OverlapLines() = default;

  const Line* begin() const { return lines.data(); }
  const Line* end() const { return lines.data() + count; }

  // The highest: of an envelope, the one that is higher than its neighbours. Sought from `line` on.
  const Line* Highest(Duration<> backward, Duration<> push, const Line* line) const {
    const auto rises = [&](const Line* to, const Line* from) {
      return from->At(backward, push) < to->At(backward, push);
    };
    while (line + 1 < end() && rises(line + 1, line)) ++line;
    while (line > begin() && rises(line - 1, line)) --line;
    return line;
  }

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

template <class T>
Duration<T> AtStations(const AsyncTimes<T>& residence) {
  return residence[kInbound] + residence[kUpdateStation] + residence[kOutbound];
}

// A closed network in the plain sense: what is not spent at a station is think time.
template <class T>
struct ClosedNetwork {
  AsyncTimes<T> demand;
  Duration<T> think;

  Duration<T> Bottleneck() const { return Max(demand[kInbound], demand[kUpdateStation]); }
};

template <class T>
struct AsyncNetwork {
  AsyncTimes<T> demand;  // that of the outbound station is that of the inbound one
  Duration<T> forward;
  Duration<T> backward;
  Duration<T> push_rest;  // a: of a push beside the stations
  Duration<T> pull_rest;
  Duration<T> alone;        // the cycle of a worker without others
  Duration<T> at_own_link;  // with those of its node only; zero where it has the link for itself
  OverlapLines lines;

  template <class U>
  Duration<U> Push(const AsyncTimes<U>& residence) const {
    return push_rest + residence[kInbound] + residence[kUpdateStation];
  }
  // C of the times at the stations where the bucket of this line ends last.
  template <class U>
  Duration<U> Along(const OverlapLines::Line& line, const AsyncTimes<U>& residence) const {
    return forward + line.At(backward, Push(residence)) + pull_rest + residence[kOutbound];
  }
  template <class U>
  Duration<U> Cycle(const AsyncTimes<U>& residence) const {
    const OverlapLines::Line* last =
        lines.Highest(ValueOf(backward), ValueOf(Push(residence)), lines.begin());
    return Max(Along(*last, residence), Duration<U>(at_own_link));
  }
  // What of it is not spent at the stations: never negative, for the first bucket's line holds the
  // whole push, and never more with longer times.
  template <class U>
  Duration<U> Think(const AsyncTimes<U>& residence) const {
    return Cycle(residence) - AtStations(residence);
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
  values.alone = ValueOf(network.alone);
  values.at_own_link = ValueOf(network.at_own_link);
  values.lines = network.lines;
  return values;
}

// The others that a worker finds, in the symbols of the header: exactly, or by the chord.
struct Others {
  explicit Others(int workers)
      : exact(std::min(workers - 1, kExactCustomers)),
        part(1.0 / std::max(workers - kExactCustomers, 1)),
        load(workers * (1.0 - part)) {}

  int exact;    // of whom the queues are known
  double part;  // 1/h
  double load;  // w (1 - 1/h); zero where all are known
};

// G and U from 0 customers on, but for a factor that all share, for demands of at most 1.
class NormalisingConstants {
 public:
  NormalisingConstants() {
    std::fill_n(g_, kBefore, 0.0);
    std::fill_n(u_, kBefore, 0.0);
  }
  // Up to `customers`. With one more station of demand d, G(n) is G(n) + d G(n-1).
  void Set(double link, double update, double think, int customers) {
    double power = 0x1p-990;  // Z^n / n!, from where neither 1 nor 1e18^32 is out of range
    double in = 0.0;
    double out = 0.0;
    double g = 0.0;
    double u = 0.0;
    for (int n = 0; n <= customers; ++n) {
      in = power + link * in;
      out = in + link * out;
      g = out + update * g;
      u = g + update * u;
      g_[kBefore + n] = g;
      u_[kBefore + n] = u;
      power *= think * kInverses[n];
    }
  }
  // Zero for less than no customers.
  double g(int customers) const { return g_[kBefore + customers]; }
  double u(int customers) const { return u_[kBefore + customers]; }

 private:
  static constexpr int kBefore = 6;  // of which a series asks for five
  static constexpr int kRoom = kExactCustomers + 1;
  // 1 / (n+1): divisions would stand one behind the other.
  static constexpr std::array<double, kRoom> kInverses = [] {
    std::array<double, kRoom> inverses{};
    for (std::size_t n = 0; n < kRoom; ++n) inverses[n] = 1.0 / static_cast<double>(n + 1);
    return inverses;
  }();

  double g_[kBefore + kRoom];
  double u_[kBefore + kRoom];
};

// The queues of so many customers by their think time, for demands of at most 1: from X and Q_u as
// power series around a think time nearby.
class QueueSeries {
 public:
  struct Queues {
    double link = 0.0;  // at each of the two
    double update = 0.0;
    double link_slope = 0.0;  // by the think time
    double update_slope = 0.0;
  };

  QueueSeries(double link, double update, int customers)
      : link_(link), update_(update), customers_(customers) {}

  // Where the last expansion reaches, from that.
  Queues At(double think) {
    const double step = think - centre_;
    constexpr double kReach = 1e-3;  // its power of kDegree + 1 is rounding
    if (!(std::abs(step) * coefficients_[0][0] <= kReach)) return Expand(think);
    Two value = coefficients_[kDegree];
    Two slope = {0.0, 0.0};
    for (int j = kDegree - 1; j >= 0; --j) {
      slope = slope * step + value;
      value = value * step + coefficients_[j];
    }
    return Make(think, value, slope);
  }

 private:
  using Two = Lanes<2>::Two;
  static constexpr int kDegree = 4;
  static constexpr double kInverseFactorials[] = {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24};

  // X G = dG/dZ and Q_u G = D_u U, as power series.
  Queues Expand(double think) {
    centre_ = think;
    constants_.Set(link_, update_, think, customers_);
    const double inverse = 1.0 / constants_.g(customers_);
    double g[kDegree + 1];
    for (int j = 0; j <= kDegree; ++j) {
      const double factor = inverse * kInverseFactorials[j];
      const int left = customers_ - 1 - j;
      g[j] = constants_.g(left + 1) * factor;
      coefficients_[j] = Two{constants_.g(left), update_ * constants_.u(left)} * factor;
      for (int i = 0; i < j; ++i) coefficients_[j] -= coefficients_[i] * g[j - i];
    }
    return Make(think, coefficients_[0], coefficients_[1]);
  }
  // Who neither thinks nor waits for an update is at a link.
  Queues Make(double think, const Two& value, const Two& slope) const {
    return {0.5 * (customers_ - think * value[0] - value[1]), value[1],
            -0.5 * (value[0] + think * slope[0] + slope[1]), slope[1]};
  }

  double link_;
  double update_;
  int customers_;
  double centre_ = 0.0;
  Two coefficients_[kDegree + 1] = {{std::numeric_limits<double>::infinity(), 0.0}};
  NormalisingConstants constants_;
};

template <class T>
struct AsyncState {
  AsyncTimes<T> residence;  // D (1 + what the last of w workers to arrive finds)
  Duration<T> cycle;
};

// A station beside the fullest, by its s = D_i / D: R = D_i (1 + Q/h) / ((1 - s) + s y).
template <class T>
struct StationShare {
  StationShare(const Duration<T>& station, const Duration<T>& fullest)
      : demand(station.si()), share(station / fullest), rest((fullest - station) / fullest) {}

  T demand;
  T share;
  T rest;
};

// max D, or so little of the think time that nobody queues: 1e18^32 is still a number.
template <class T>
Duration<T> FullDemand(const AsyncTimes<T>& demand, Duration<> think) {
  constexpr double kNothing = 1e-18;
  const Duration<> least = think * kNothing + Seconds(std::numeric_limits<double>::min());
  return Max(Max(demand[kInbound], demand[kUpdateStation]), Duration<T>(least));
}

// Where y is held at 1/h the servers are full.
template <class T>
Duration<T> AtLeastFull(const AsyncNetwork<T>& network, int workers, const Duration<T>& cycle) {
  if (!(Others(workers).load > 0.0)) return cycle;
  return Max(cycle, Max(network.demand[kInbound], network.demand[kUpdateStation]) *
                        static_cast<double>(workers));
}

// Where queues and cycle agree, in values.
struct AsyncBalance {
  AsyncState<double> state;
  double think = 0.0;  // Z
  double idle = 1.0;   // y; 1 without a chord
};

inline AsyncBalance Balance(const AsyncNetwork<double>& network, int workers) {
  const double w = workers;
  double low = network.LeastThink().si();
  double high = std::max(low, network.Think(network.demand).si());
  if (workers == 1) return {{network.demand, network.Cycle(network.demand)}, high, 1.0};
  const Others others(workers);
  const double full = FullDemand(network.demand, Seconds(high)).si();
  const double unit = 1.0 / full;
  const StationShare<double> link(network.demand[kInbound], Seconds(full));
  const StationShare<double> update(network.demand[kUpdateStation], Seconds(full));
  AsyncBalance balance;
  double& z = balance.think;
  double& y = balance.idle;

  AsyncTimes<double>& residence = balance.state.residence;
  const auto meet = [&](double at_link, double at_update) {
    residence = {Seconds(at_link), Seconds(at_update), Seconds(at_link)};
  };
  const OverlapLines::Line* line = network.lines.begin();
  double cycle = 0.0;
  bool own_link = false;  // the cycle is at_own_link, otherwise that of `line`
  const auto follow = [&] {
    line = network.lines.Highest(network.backward, network.Push(residence), line);
    cycle = network.Along(*line, residence).si();
    own_link = cycle < network.at_own_link.si();
    if (own_link) cycle = network.at_own_link.si();
  };

  // It starts from the queues that workers find who are as fast as a lone one, or as the fullest
  // station lets them be: those of Schweitzer's estimate Q(w-1) = Q(w) (1 - 1/w).
  const double fastest = std::max({network.alone.si(), network.at_own_link.si(), w * full});
  const double busy = 1.0 - std::max(1.0 - (w - 1.0) * full / fastest, 1.0 / w);
  meet(link.demand / (1.0 - busy * link.share), update.demand / (1.0 - busy * update.share));
  follow();
  z = std::clamp(cycle - AtStations(residence).si(), low, high);
  y = std::clamp(1.0 - others.load * full / cycle, others.part, 1.0);

  // gap = C(R) - sum R - Z falls in Z. Newton's method between bounds: where a step leaves them, or
  // has not halved the gap, since another bucket ends last there, the middle is next.
  QueueSeries queues(link.share, update.share, others.exact);
  constexpr double kTolerance = 3e-14;
  constexpr int kSteps = 100;
  double before = std::numeric_limits<double>::infinity();
  for (int step = 0; step < kSteps; ++step) {
    const QueueSeries::Queues q = queues.At(z * unit);
    const double link_weight = link.demand * (1.0 + q.link * others.part);
    const double update_weight = update.demand * (1.0 + q.update * others.part);
    double free_link = 1.0;
    double free_update = 1.0;
    double closed = 0.0;
    double rate = 0.0;
    double link_by_y = 0.0;
    double update_by_y = 0.0;
    double lag_by_y = -1.0;
    bool held = false;
    // 1 - y - w (1 - 1/h) max D / (Z + sum R) falls ever less in y, 1/C being the parallel sum of
    // straight lines: from the second step on Newton's method comes up to the root.
    for (int inner = 0; inner < kSteps; ++inner) {
      free_link = 1.0 / (link.rest + link.share * y);
      free_update = 1.0 / (update.rest + update.share * y);
      meet(link_weight * free_link, update_weight * free_update);
      closed = z + AtStations(residence).si();
      if (others.load == 0.0) break;
      rate = others.load * full / closed;
      link_by_y = -residence[kInbound].si() * link.share * free_link;
      update_by_y = -residence[kUpdateStation].si() * update.share * free_update;
      lag_by_y = rate / closed * (2.0 * link_by_y + update_by_y) - 1.0;
      const double next = y - (1.0 - y - rate) / lag_by_y;
      held = !(next > others.part);
      const double last = y;
      y = std::clamp(next, others.part, 1.0);
      if (!(std::abs(y - last) > kTolerance * y)) break;
    }
    follow();
    const double gap = cycle - closed;
    if (!(std::abs(gap) > kTolerance * closed)) break;
    // How gap moves with the time at the update, and with that at both links.
    const double of_update = own_link ? -1.0 : line->suffix - 1.0;
    const double of_link = own_link ? -2.0 : of_update;
    const double link_by_z = link.share * others.part * q.link_slope * free_link;
    const double update_by_z = update.share * others.part * q.update_slope * free_update;
    const double lag_by_z = rate / closed * (1.0 + 2.0 * link_by_z + update_by_z);
    const double y_by_z = held ? 0.0 : -lag_by_z / lag_by_y;
    const double slope = of_link * (link_by_z + link_by_y * y_by_z) +
                         of_update * (update_by_z + update_by_y * y_by_z) - 1.0;
    (gap < 0.0 ? high : low) = z;
    double next = std::clamp(z - gap / slope, low, high);
    if (next == z || std::abs(gap) > 0.5 * before) next = low + 0.5 * (high - low);
    if (next == z) break;
    before = std::abs(gap);
    y = std::clamp(y + y_by_z * (next - z), others.part, 1.0);
    z = next;
  }
  balance.state.cycle = AtLeastFull(network, workers, Seconds(cycle));
  return balance;
}

// The times at the stations by D, D_u and Z.
inline AsyncTimes<DualOf<4>> ResidenceBy(const AsyncNetwork<double>& network, int workers,
                                         const AsyncBalance& balance) {
  using T = DualOf<4>;
  enum Lane { kLink, kUpdate, kThink, kIdle };
  const auto seeded = [](double value, Lane lane) {
    T dual(value);
    dual.slope.Set(lane, 1.0);
    return dual;
  };
  const auto link_demand = Duration<T>::FromSi(seeded(network.demand[kInbound].si(), kLink));
  const auto update_demand =
      Duration<T>::FromSi(seeded(network.demand[kUpdateStation].si(), kUpdate));
  const auto think = Duration<T>::FromSi(seeded(balance.think, kThink));
  const T y = seeded(balance.idle, kIdle);
  const Duration<T> full =
      FullDemand<T>({link_demand, update_demand, link_demand}, Seconds(balance.think));
  const StationShare<T> link(link_demand, full);
  const StationShare<T> update(update_demand, full);

  // The product form's derivatives: by Z a customer less, by a demand its station once more.
  const Others others(workers);
  const int k = others.exact;
  const double s = link.share.value;
  const double s_u = update.share.value;
  NormalisingConstants constants;
  constants.Set(s, s_u, ValueOf(think / full), k);
  double in = 0.0;
  double in_twice = 0.0;
  double both = 0.0;
  double update_twice = 0.0;
  for (int n = 0; n < k - 1; ++n) {
    in = constants.g(n) + s * in;
    in_twice = in + s * in_twice;
    both = constants.u(n) + s * both;
    update_twice = constants.u(n) + s_u * update_twice;
  }
  const double g = 1.0 / constants.g(k);
  const double by_link = 2.0 * g * (constants.g(k - 1) + s * in);  // of ln G
  const double by_update = g * constants.u(k - 1);
  const double by_think = g * constants.g(k - 1);
  const double q_link = s * 0.5 * by_link;
  const double q_update = s_u * by_update;
  const double unit = 1.0 / full.si().value;
  const auto queue = [unit](double value, double a, double b, double c) {
    T dual(value);
    dual.slope.Set(kLink, a * unit);
    dual.slope.Set(kUpdate, b * unit);
    dual.slope.Set(kThink, c * unit);
    return dual;
  };
  const T at_link = queue(q_link, 0.5 * by_link + g * 3.0 * s * in_twice - q_link * by_link,
                          g * s * both - q_link * by_update, g * s * in - q_link * by_think);
  const T at_update = queue(q_update, g * s_u * 2.0 * both - q_update * by_link,
                            by_update + g * 2.0 * s_u * update_twice - q_update * by_update,
                            g * s_u * constants.u(k - 2) - q_update * by_think);

  const auto time = [&](const StationShare<T>& station, const T& found) {
    return Duration<T>::FromSi(station.demand * (1.0 + found * others.part) /
                               (station.rest + station.share * y));
  };
  AsyncTimes<T> residence = {time(link, at_link), time(update, at_update), time(link, at_link)};
  // y goes with them, unless it is held.
  if (others.load > 0.0 && balance.idle > others.part) {
    const T lag = 1.0 - y - full / (think + AtStations(residence)) * others.load;
    for (Duration<T>& at : residence) {
      T moved = at.si();
      moved.slope = moved.slope - lag.slope * (moved.slope[kIdle] / lag.slope[kIdle]);
      at = Duration<T>::FromSi(moved);
    }
  }
  return residence;
}

// The derivatives are those of the equations at their root.
template <class T>
AsyncState<T> Analyse(const AsyncNetwork<T>& network, int workers) {
  if constexpr (std::is_same_v<T, double>) {
    return Balance(network, workers).state;
  } else {
    const AsyncNetwork<double> values = ValuesOf(network);
    const AsyncBalance balance = Balance(values, workers);
    const AsyncTimes<DualOf<4>> by = ResidenceBy(values, workers, balance);
    const auto change = [](const Duration<T>& x) { return x.si() - ValueOf(x.si()); };
    const T link = change(network.demand[kInbound]);
    const T update = change(network.demand[kUpdateStation]);
    const auto residence = [&](const T& think) {
      AsyncTimes<T> times;
      for (std::size_t i = 0; i < kAsyncStations; ++i) {
        const auto& slope = by[i].si().slope;
        times[i] = Duration<T>::FromSi(by[i].si().value + link * slope[0] + update * slope[1] +
                                       (think - balance.think) * slope[2]);
      }
      return times;
    };
    AsyncTimes<Dual> by_think;
    for (std::size_t i = 0; i < kAsyncStations; ++i) {
      by_think[i] = Duration<Dual>::FromSi({by[i].si().value, by[i].si().slope[2]});
    }
    const double slope = values.Think(by_think).si().slope - 1.0;
    const T gap = network.Think(residence(T(balance.think))).si() - balance.think;
    AsyncState<T> state;
    state.residence = residence(ImplicitRoot(balance.think, gap, std::min(slope, -1e-9)));
    state.cycle = AtLeastFull(network, workers, network.Cycle(state.residence));
    return state;
  }
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
  network.forward = work.forward;
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

#endif  // STEPCAST_MODEL_EXCHANGE_ASYNC_SERVER_H_
