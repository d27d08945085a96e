// Where scaling ends, in closed form.
//
// With S(w) the synchronisation of model/exchange/growth.h, h its part that the backward pass hides
// and t the compute of a step, a step takes T(w) = t + max(0, S(w) - h). In a range of w where no
// maximum in S changes sides, S(w) = s_0 + s_1 f(w) - s_r / w.
//
//   weak scaling: every worker keeps its s samples a step
//     ceiling                 s / s_1 for f(w) = w, none for f(w) = log2 w or s_1 = 0; S as it is
//                             for many workers
//     half of it at           w = ( t' + sqrt(t'^2 - 4 s_1 s_r) ) / (2 s_1),  t' = t - h + s_0
//     S reaches y at          w = ( y' + sqrt(y'^2 + 4 s_1 s_r) ) / (2 s_1),  y' = y - s_0
//                             w = r / W( r e^(-y'/c) )  for f = log2, c = s_1 / ln 2, r = s_r / c;
//                             without s_r: w = 2^(y'/s_1)
//     exposed exceeds compute y = t + h
//     efficiency e            y = T_1 / e - t + h, T_1 the step of one worker
//
//   strong scaling: a fixed work C is shared out, a share p of compute hides synchronisation
//     best workers            w = sqrt( ((1-p) C - s_r) / s_1 )    for f(w) = w
//                             w = ((1-p) C - s_r) ln 2 / s_1       for f(w) = log2 w
//                             or, where it is larger, where S(w) = p C / w
//
//   others (for those of servers see model/exchange/*_server_limits.h)
//     accumulation            a = ceil( e / (1 - e)  x / t_micro )
//     buckets                 J = max( 1, sqrt(t_b / tau), (t_b - m beta) / tau )
//
//   W              Lambert's function, W e^W = x
//   e, x, t_micro  wanted share of the time spent computing; exposed synchronisation of a step and
//                  compute of a micro-step [s]
//   t_b, tau, beta backward pass [s], cost of a bucket [s], cost of a byte [s/B]
//   m              gradient bytes [B]
//
// So the ring ends at s/(2 alpha J) samples a second and sqrt(C/(2 alpha J)) workers when messages
// are short; halving-doubling and trees have no ceiling and C ln2/(2 alpha J) workers; servers end
// at s n B_s/(2m) and sqrt(C n B_s/(2m)) workers, whatever more workers would bring.
//
// Hold for equal workers without spread, each with the same share of a node's link, and for compute
// that is shared out evenly (no floor below which a device is no faster). Accumulation holds where
// x is the same for any a, which queues of asynchronous workers are not. Real numbers stand for
// whole ones: the best whole number is next to them.
//
// Note that a limit may not exist, which is a value (Limit::None) and not a large number; and that
// best counts of strong scaling are those of more than one worker: compare the step with C alone.
//
// Sources: derivatives of the formulas in model/exchange; docs/explanation/limits.md. Corless et
// al., Advances in Computational Mathematics 5 (1996) (Lambert's function).
#ifndef STEPCAST_MODEL_LIMITS_LIMITS_H_
#define STEPCAST_MODEL_LIMITS_LIMITS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <type_traits>
#include <vector>

#include "data/units/quantity.h"
#include "model/exchange/cost.h"
#include "model/exchange/growth.h"

namespace stepcast {

// A value at which something ends, or the statement that it does not end.
template <class Q>
class Limit {
 public:
  static Limit None() { return Limit(); }
  static Limit At(const Q& value) {
    Limit limit;
    limit.value_ = value;
    return limit;
  }

  bool exists() const { return value_.has_value(); }
  // The value of a limit that exists.
  const Q& value() const {
    if (!value_) std::abort();
    return *value_;
  }

 private:
  Limit() = default;

  std::optional<Q> value_;
};

namespace internal {

// Beyond e^700 a double counts no workers.
inline constexpr double kMostLogWorkers = 700;

// The v > 0 with v + ln v = x, which is Lambert's W(e^x): Newton's steps from the left, where they
// converge from any start; a fixed number, so that derivatives come along.
template <class T>
T SolvePlusLog(const T& x) {
  using std::exp;
  using std::log;
  constexpr int kSteps = 10;
  T v = x > T(1.0) ? T(1.0) : T(exp(x - 1.0));
  for (int i = 0; i < kSteps; ++i) v = v * (1.0 + x - log(v)) / (1.0 + v);
  return v;
}

// A range of workers in which every maximum of S has chosen its side.
template <class T>
struct GrowthPiece {
  T from = T(0.0);
  std::optional<T> to;
  Duration<T> fixed;
  Duration<T> slope;
};

template <class T>
struct GrowthPieces {
  std::array<GrowthPiece<T>, 5> piece;
  std::size_t count = 0;
};

template <class T>
GrowthPieces<T> SplitAtHinges(const SyncGrowth<T>& growth) {
  std::vector<T> knees;
  GrowthPiece<T> piece{T(0.0), std::nullopt, growth.time.fixed, growth.time.slope};
  for (const auto& hinge : growth.time.hinges) {
    piece.fixed += hinge.flat;
    if (Duration<T>() < hinge.per_worker) knees.push_back(hinge.flat / hinge.per_worker);
  }
  std::sort(knees.begin(), knees.end());
  GrowthPieces<T> pieces;
  for (const T& knee : knees) {
    piece.to = knee;
    pieces.piece[pieces.count++] = piece;
    piece = {knee, std::nullopt, growth.time.fixed, growth.time.slope};
    for (const auto& hinge : growth.time.hinges) {
      const bool steep =
          Duration<T>() < hinge.per_worker && !(knee < hinge.flat / hinge.per_worker);
      (steep ? piece.slope : piece.fixed) += steep ? hinge.per_worker : hinge.flat;
    }
  }
  pieces.piece[pieces.count++] = piece;
  return pieces;
}

// Where fixed + slope f(w) - saved / w = y.
template <class T>
Limit<T> PieceReaches(GrowthShape shape, const GrowthPiece<T>& piece, const Duration<T>& saved,
                      const Duration<T>& y) {
  using std::exp;
  using std::log;
  const Duration<T> rest = y - piece.fixed;
  const bool grows = Duration<T>() < piece.slope;
  if (!grows) {
    if (rest < Duration<T>()) return Limit<T>::At(-(saved / rest));
    return Limit<T>::None();
  }
  if (shape == GrowthShape::kLinear) {
    const T half = rest / piece.slope / 2.0;
    const T root = SqrtOrZero(T(half * half + saved / piece.slope));
    // Twice the same number; the first form cancels for a negative half.
    if (half < T(0.0)) return Limit<T>::At((saved / piece.slope) / (root - half));
    return Limit<T>::At(half + root);
  }
  const Duration<T> scale = piece.slope / std::log(2.0);
  const T exponent = rest / scale;
  if (exponent > T(internal::kMostLogWorkers)) return Limit<T>::None();
  if (!(Duration<T>() < saved)) return Limit<T>::At(exp(exponent));
  const T r = saved / scale;
  return Limit<T>::At(r / SolvePlusLog(T(log(r) - exponent)));
}

}  // namespace internal

// ---- Weak scaling.

// The throughput that many workers approach, none where more workers always bring more. No number
// of them passes it when the step of the fewest takes at least s_1 for each of them; a shorter step
// (compute below a ring's two messages) loses with every worker, and comes down to it.
template <class T>
Limit<SampleRate<T>> WeakScalingCeiling(const std::type_identity_t<SampleCount<T>>& per_worker,
                                        const SyncGrowth<T>& growth) {
  if (growth.shape == GrowthShape::kLogarithmic) return Limit<SampleRate<T>>::None();
  Duration<T> slope = growth.time.slope;
  for (const auto& hinge : growth.time.hinges) slope += hinge.per_worker;
  if (!(Duration<T>() < slope)) return Limit<SampleRate<T>>::None();
  return Limit<SampleRate<T>>::At(per_worker / slope);
}

// The workers from which on S takes `time` and more; none where it stays below.
template <class T>
Limit<T> WorkersWhereSyncTakes(const SyncGrowth<T>& growth,
                               const std::type_identity_t<Duration<T>>& time) {
  const internal::GrowthPieces<T> pieces = internal::SplitAtHinges(growth);
  for (std::size_t i = 0; i < pieces.count; ++i) {
    const internal::GrowthPiece<T>& piece = pieces.piece[i];
    const Limit<T> at = internal::PieceReaches(growth.shape, piece, growth.time.saved, time);
    if (!at.exists()) continue;
    if (piece.to && *piece.to < at.value()) continue;
    const T within = at.value() < piece.from ? piece.from : at.value();
    return Limit<T>::At(internal::AtLeast(growth.least, within));
  }
  return Limit<T>::None();
}

// The workers from which on the exposed synchronisation takes longer than compute.
template <class T>
Limit<T> CrossingWorkers(const SyncGrowth<T>& growth,
                         const std::type_identity_t<Duration<T>>& compute,
                         const std::type_identity_t<Duration<T>>& hidden = Duration<T>()) {
  return WorkersWhereSyncTakes(growth, compute + hidden);
}

// The workers from which on a worker does less than `efficiency` (0 to 1) of what it does when its
// step takes `single_step`.
template <class T>
Limit<T> WorkersAtEfficiency(const SyncGrowth<T>& growth, double efficiency,
                             const std::type_identity_t<Duration<T>>& single_step,
                             const std::type_identity_t<Duration<T>>& compute,
                             const std::type_identity_t<Duration<T>>& hidden = Duration<T>()) {
  return WorkersWhereSyncTakes(growth, single_step / efficiency - compute + hidden);
}

// The workers from which on throughput stays above half of its ceiling; none without a ceiling.
template <class T>
Limit<T> HalfCeilingWorkers(const SyncGrowth<T>& growth,
                            const std::type_identity_t<Duration<T>>& compute,
                            const std::type_identity_t<Duration<T>>& hidden = Duration<T>()) {
  const Limit<SampleRate<T>> ceiling = WeakScalingCeiling(Samples(T(1.0)), growth);
  if (!ceiling.exists()) return Limit<T>::None();
  const Duration<T> last_slope = Samples(1.0) / ceiling.value();
  const internal::GrowthPieces<T> pieces = internal::SplitAtHinges(growth);
  // The last w with 2 last_slope w = t - h + S(w), from the last piece down.
  T half = T(growth.least);
  for (std::size_t i = pieces.count; i-- > 0;) {
    const internal::GrowthPiece<T>& piece = pieces.piece[i];
    const Duration<T> rise = last_slope * 2.0 - piece.slope;
    const T middle = (compute - hidden + piece.fixed) / rise / 2.0;
    const T square = middle * middle - growth.time.saved / rise;
    if (square < T(0.0)) continue;
    const T root = middle + internal::SqrtOrZero(square);
    if (piece.from <= root) {
      half = root;
      break;
    }
  }
  // While all is hidden a step takes t.
  const T when_hidden = compute / last_slope / 2.0;
  if (half < when_hidden) half = when_hidden;
  return Limit<T>::At(internal::AtLeast(growth.least, half));
}

// ---- Strong scaling.

template <class T>
struct StrongScaling {
  Limit<T> workers = Limit<T>::None();  // none: every further worker helps
  Duration<T> step;                     // with them, or in the limit of infinitely many
};

// The workers that finish `work` (the compute of the step on one worker) soonest, among the numbers
// for which `growth` holds. `hiding_share` (0 to 1) of compute runs while gradients travel.
template <class T>
StrongScaling<T> BestStrongScaling(const SyncGrowth<T>& growth,
                                   const std::type_identity_t<Duration<T>>& work,
                                   const std::type_identity_t<T>& hiding_share = T(0.0)) {
  const Duration<T> exposed_work = work * (1.0 - hiding_share);
  const Duration<T> gain = exposed_work - growth.time.saved;
  const internal::GrowthPieces<T> pieces = internal::SplitAtHinges(growth);
  StrongScaling<T> best;
  // Work above what small numbers save: else the least number is the best.
  T stationary = T(growth.least);
  if (Duration<T>() < gain) {
    bool found = false;
    for (std::size_t i = 0; i < pieces.count && !found; ++i) {
      const internal::GrowthPiece<T>& piece = pieces.piece[i];
      if (!(Duration<T>() < piece.slope)) continue;
      const T at = growth.shape == GrowthShape::kLinear
                       ? internal::SqrtOrZero(T(gain / piece.slope))
                       : T(gain / piece.slope * std::log(2.0));
      if (piece.to && *piece.to < at) continue;
      stationary = at < piece.from ? piece.from : at;
      found = true;
    }
    if (!found) {
      best.step = pieces.piece[pieces.count - 1].fixed;
      return best;
    }
  }
  // Before S(w) = p C / w all of S is hidden, and more workers cost nothing.
  SyncGrowth<T> against_hidden = growth;
  against_hidden.time.saved += work * hiding_share;
  const Limit<T> hidden_until = WorkersWhereSyncTakes(against_hidden, Duration<T>());
  if (!hidden_until.exists()) return best;
  T workers = internal::AtLeast(growth.least, stationary);
  if (workers < hidden_until.value()) workers = hidden_until.value();
  best.workers = Limit<T>::At(workers);
  best.step = Max(work / workers, exposed_work / workers + growth.Time(workers));
  return best;
}

// ---- Accumulation and buckets.

// Before rounding; 0 when nothing is exposed.
template <class T>
T RealAccumulationForEfficiency(const std::type_identity_t<T>& efficiency,
                                const Duration<T>& exposed, const Duration<T>& micro_step) {
  return efficiency / (1.0 - efficiency) * (exposed / micro_step);
}

// At least 1; `efficiency` lies strictly between 0 and 1.
inline double AccumulationForEfficiency(double efficiency, Duration<> exposed,
                                        Duration<> micro_step) {
  // Less rounding: 0.9 / (1 - 0.9) is a little more than 9.
  constexpr double kWhole = 1 - 1e-12;
  return std::fmax(
      1.0, std::ceil(kWhole * RealAccumulationForEfficiency(efficiency, exposed, micro_step)));
}

// When the last of `count` equal buckets is synchronised, from the start of a backward pass in
// which they become ready at equal distances: the first and the last bucket decide
// (model/overlap/buckets.h, whose maximum is linear in k here).
template <class T>
Duration<T> EqualBucketsEnd(const std::type_identity_t<T>& count, const Duration<T>& backward,
                            const SyncCost<T>& cost,
                            const std::type_identity_t<DataSize<T>>& bytes) {
  const Duration<T> of_bytes = cost.per_byte * bytes;
  return Max(backward / count + cost.per_call * count + of_bytes,
             backward + cost.per_call + of_bytes / count);
}

// The number of equal buckets that ends soonest. More of them start sooner and leave less for the
// end, but each costs a call: sqrt(t_b / tau) when the network is the slower one; when the backward
// pass is, so many that the network just keeps up, (t_b - m beta) / tau. `cost` must have a
// per_call above 0.
template <class T>
T BestBucketCount(const Duration<T>& backward, const SyncCost<T>& cost,
                  const std::type_identity_t<DataSize<T>>& bytes) {
  const T bound_by_network = internal::SqrtOrZero(T(backward / cost.per_call));
  const T bound_by_compute = (backward - cost.per_byte * bytes) / cost.per_call;
  return internal::AtLeast(
      1, bound_by_network < bound_by_compute ? bound_by_compute : bound_by_network);
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_LIMITS_LIMITS_H_
