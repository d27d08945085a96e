// The closed network of asynchronous servers (model/exchange/async_server.h): its stations, the
// buckets that hide behind the backward pass, and where queues and cycle agree.
#ifndef STEPCAST_MODEL_EXCHANGE_ASYNC_QUEUES_H_
#define STEPCAST_MODEL_EXCHANGE_ASYNC_QUEUES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "data/units/quantity.h"
#include "model/numeric/dual.h"
#include "model/overlap/buckets.h"

namespace stepcast {

inline constexpr int kExactCustomers = 32;

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
  // The most that the envelope loses without line i, where its neighbours cross.
  double Loss(std::size_t i, const Line& next) const {
    const Line& before = lines[i - 1];
    const double crossing = (next.ready - before.ready) / (before.suffix - next.suffix);
    return lines[i].ready - before.ready + (lines[i].suffix - before.suffix) * crossing;
  }
  void LeaveOneOut(Line* next);
};

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

// The demand of the fullest station.
template <class T>
Duration<T> Bottleneck(const AsyncTimes<T>& demand) {
  return Max(demand[kInbound], demand[kUpdateStation]);
}

template <class T>
struct AsyncNetwork {
  using Scalar = T;

  AsyncTimes<T> demand;  // that of the outbound station is that of the inbound one
  Duration<T> forward;
  Duration<T> backward;
  Duration<T> push_rest;  // a: of a push beside the stations
  Duration<T> pull_rest;
  Duration<T> alone;        // the cycle of a worker without others
  Duration<T> at_own_link;  // with those of its node only; zero where it has the link for itself
  Duration<T> phase;        // A + P: a push or a pull, of all workers at once
  Duration<T> at_once;      // C_0: the cycle of workers who all push and pull at once
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
  // The same of the bucket that ends last.
  template <class U>
  Duration<U> AlongLast(const AsyncTimes<U>& residence) const {
    return Along(*lines.Highest(ValueOf(backward), ValueOf(Push(residence)), lines.begin()),
                 residence);
  }
  template <class U>
  Duration<U> Cycle(const AsyncTimes<U>& residence) const {
    return Max(AlongLast(residence), Duration<U>(at_own_link));
  }
  // C_0, with `updates` of the model by all of them.
  Duration<T> AtOnce(const Duration<T>& updates) const {
    const Duration<T> push = phase + updates;
    const OverlapLines::Line* last = lines.Highest(ValueOf(backward), ValueOf(push), lines.begin());
    return forward + last->At(backward, push) + phase;
  }
  // The part of the cycle that is not spent at the stations: never negative, for the first bucket's
  // line holds the whole push, and never more with longer times.
  template <class U>
  Duration<U> Think(const AsyncTimes<U>& residence) const {
    return Cycle(residence) - AtStations(residence);
  }
  // The least that Think can be.
  Duration<T> LeastThink() const {
    return forward + backward * lines.lines.front().ready + push_rest + pull_rest;
  }
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

// Workers of one kind, at the stations that all kinds share.
template <class T>
struct AsyncKind {
  AsyncNetwork<T> network;
  double workers = 0.0;
};

// All of them, as one network: its cycle is their mean, w / X.
template <class T, std::size_t kKinds>
struct AsyncKinds {
  using Scalar = T;

  AsyncTimes<T> demand;
  std::array<AsyncKind<T>, kKinds> kinds;

  template <class U>
  Duration<U> Cycle(const AsyncTimes<U>& residence) const {
    double all = 0.0;
    Quantity<RateDimension, U> updates;
    for (const AsyncKind<T>& kind : kinds) {
      all += kind.workers;
      updates += kind.workers / kind.network.Cycle(residence);
    }
    return all / updates;
  }
  template <class U>
  Duration<U> Think(const AsyncTimes<U>& residence) const {
    return Cycle(residence) - AtStations(residence);
  }
};

template <class T, std::size_t kKinds>
AsyncKinds<double, kKinds> ValuesOf(const AsyncKinds<T, kKinds>& all) {
  AsyncKinds<double, kKinds> values;
  for (std::size_t k = 0; k < kKinds; ++k) {
    values.kinds[k] = {ValuesOf(all.kinds[k].network), all.kinds[k].workers};
  }
  values.demand = values.kinds.front().network.demand;
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

template <class T>
struct AsyncState {
  AsyncTimes<T> residence;  // D (1 + what the last of w workers to arrive finds)
  Duration<T> cycle;
};

// Where y is held at 1/h the servers are full.
template <class T>
Duration<T> AtLeastFull(const AsyncTimes<T>& demand, int workers, const Duration<T>& cycle) {
  if (!(Others(workers).load > 0.0)) return cycle;
  return Max(cycle, Bottleneck(demand) * static_cast<double>(workers));
}

// Where queues and cycle agree, in values.
struct AsyncBalance {
  AsyncState<double> state;
  double think = 0.0;  // Z
  double idle = 1.0;   // y; 1 without a chord
};

}  // namespace internal

// Not internal, since templates that are installed call them in a shared library.
internal::OverlapLines MakeOverlapLines(const std::vector<Bucket>* buckets);
internal::AsyncBalance Balance(const internal::AsyncNetwork<double>& network, int workers);
// Of `workers` of all kinds together.
internal::AsyncBalance Balance(std::span<const internal::AsyncKind<double>> kinds, int workers);
template <std::size_t kKinds>
internal::AsyncBalance Balance(const internal::AsyncKinds<double, kKinds>& all, int workers) {
  return Balance(std::span<const internal::AsyncKind<double>>(all.kinds), workers);
}

// The times at the stations by D, D_u and Z.
internal::AsyncTimes<DualOf<4>> ResidenceBy(const internal::AsyncTimes<double>& demand, int workers,
                                            const internal::AsyncBalance& balance);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_ASYNC_QUEUES_H_
