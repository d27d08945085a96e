// How the cost of one synchronisation grows with the workers: the form in which limits are closed.
//
// Every exchange, taken as a function of a real number w of workers, is
//
//   S(w) = s_0 + s_1 f(w) - s_r / w + sum_k max(u_k, v_k w),     f(w) = w or log2 w
//
//   s_0   what does not depend on w                                            [s]
//   s_1   what each worker (f = w) or each doubling of them (f = log2) adds    [s]
//   s_r   what small numbers save: a ring moves (w-1)/w of its bytes           [s]
//   u, v  one side of a phase costs u whatever w, the other v for each worker, and the slower one
//         is waited for (servers only)                                         [s]
//
// and it is affine in the message: J calls with m bytes in all cost J per_call(w) + m per_byte(w),
// each part of the form above. The laws stand with their exchanges: allreduce_limits.h,
// parameter_server_limits.h, byteps_limits.h; those of asynchronous servers, which have no S(w), in
// async_server_limits.h.
//
// Nothing is said below `least`.
//
// Note that S never falls with w from `least` on, so that "where S reaches y" has one answer.
//
// Sources: those of the exchanges, whose costs these are (the tests compare them);
// docs/explanation/limits.md.
#ifndef STEPCAST_MODEL_EXCHANGE_GROWTH_H_
#define STEPCAST_MODEL_EXCHANGE_GROWTH_H_

#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "data/units/quantity.h"
#include "model/exchange/cost.h"

namespace stepcast {

// f(w) of the header.
enum class GrowthShape { kLinear, kLogarithmic };

// max(flat, per_worker w)
template <class Q>
struct GrowthHinge {
  Q flat;
  Q per_worker;
};

// One quantity as a function of w. Hinges go with kLinear only.
template <class Q, std::size_t kHinges>
struct Growth {
  using T = typename Q::Scalar;

  Q fixed;
  Q slope;
  Q saved;
  std::array<GrowthHinge<Q>, kHinges> hinges = {};

  Q At(GrowthShape shape, const T& workers) const {
    using std::log2;
    Q value = fixed + slope * (shape == GrowthShape::kLinear ? workers : T(log2(workers))) -
              saved / workers;
    for (const GrowthHinge<Q>& hinge : hinges) {
      value += Max(hinge.flat, hinge.per_worker * workers);
    }
    return value;
  }
};

// S(w) for given messages.
template <class T>
struct SyncGrowth {
  GrowthShape shape = GrowthShape::kLinear;
  double least = 1;  // workers from which on it holds
  Growth<Duration<T>, 4> time;

  Duration<T> Time(const std::type_identity_t<T>& workers) const { return time.At(shape, workers); }

  // S(w) of `times` as much.
  SyncGrowth Times(double times) const {
    SyncGrowth growth = *this;
    growth.time.fixed = time.fixed * times;
    growth.time.slope = time.slope * times;
    growth.time.saved = time.saved * times;
    for (GrowthHinge<Duration<T>>& hinge : growth.time.hinges) {
      hinge = {hinge.flat * times, hinge.per_worker * times};
    }
    return growth;
  }
};

// SyncCost as a function of w.
template <class T>
struct CostGrowth {
  GrowthShape shape = GrowthShape::kLinear;
  double least = 1;
  Growth<Duration<T>, 2> per_call;
  Growth<DurationPerByte<T>, 2> per_byte;

  SyncCost<T> At(const std::type_identity_t<T>& workers) const {
    return {per_call.At(shape, workers), per_byte.At(shape, workers)};
  }

  // S(w) of `calls` messages with `bytes` in all.
  SyncGrowth<T> Of(const std::type_identity_t<DataSize<T>>& bytes,
                   const std::type_identity_t<T>& calls = T(1.0)) const {
    SyncGrowth<T> growth;
    growth.shape = shape;
    growth.least = least;
    growth.time.fixed = per_call.fixed * calls + per_byte.fixed * bytes;
    growth.time.slope = per_call.slope * calls + per_byte.slope * bytes;
    growth.time.saved = per_call.saved * calls + per_byte.saved * bytes;
    for (std::size_t i = 0; i < 2; ++i) {
      growth.time.hinges[i] = {per_call.hinges[i].flat * calls,
                               per_call.hinges[i].per_worker * calls};
      growth.time.hinges[i + 2] = {per_byte.hinges[i].flat * bytes,
                                   per_byte.hinges[i].per_worker * bytes};
    }
    return growth;
  }
};

namespace internal {

// One of the two parts of OverNodes.
template <class Q>
void CountWorkers(GrowthShape shape, double devices, Growth<Q, 2>* growth) {
  if (shape == GrowthShape::kLinear) {
    growth->slope = growth->slope / devices;
  } else {
    growth->fixed -= growth->slope * std::log2(devices);
  }
  growth->saved = growth->saved * devices;
  for (GrowthHinge<Q>& hinge : growth->hinges) hinge.per_worker = hinge.per_worker / devices;
}

// A square root that stays defined, with no slope, below zero.
template <class T>
T SqrtOrZero(const T& x) {
  using std::sqrt;
  return x > T(0.0) ? T(sqrt(x)) : T(0.0);
}

template <class T>
T AtLeast(double least, const T& x) {
  return x < T(least) ? T(least) : x;
}

}  // namespace internal

// A law of the nodes as a law of the workers, `devices` on each.
template <class T>
CostGrowth<T> OverNodes(CostGrowth<T> growth, double devices) {
  growth.least *= devices;
  internal::CountWorkers(growth.shape, devices, &growth.per_call);
  internal::CountWorkers(growth.shape, devices, &growth.per_byte);
  return growth;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_GROWTH_H_
