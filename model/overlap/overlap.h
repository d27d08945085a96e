// How much of a synchronisation the backward pass hides, and what hiding it costs.
//
//   buckets   exposed = max( t_b, E_K ) - t_b            E_K: model/overlap/buckets.h
//   none      exposed = S                                a framework that synchronises afterwards
//   p-norm    exposed = (t_b^q + S^q)^(1/q) - t_b        where nothing is known of the order
//   hidden    = S - exposed,   and the backward pass grows by kappa min( hidden, t_b )
//
//   t_b    backward time of the micro-step that synchronises   [s]
//   S      whole synchronisation, all buckets                  [s]   > 0
//   E_K    end of its last bucket, from the start of backward; below S where parts of it, such as
//          pushes and pulls, run beside each other             [s]
//   kappa  overlap contention: kernels of the exchange take processors and memory bandwidth from
//          those of the network                                [1]
//   q      sharpness of the p-norm: 1 hides nothing, infinity all that fits
//
// Holds for one synchronisation a step: with accumulation only the last micro-step synchronises,
// and only its backward pass can hide anything.
//
// Note that exposed and hidden are never negative and add up to S wherever E_K <= t_b + S; that
// what hides behind other parts of the synchronisation slows nobody down; that the step never falls
// with S or with t_b as long as kappa is at most 1.
//
// Sources: Li et al., VLDB 2020 (buckets); Qiao et al., OSDI 2021 (p-norm, fitted from 1 to 10).
#ifndef STEPCAST_MODEL_OVERLAP_OVERLAP_H_
#define STEPCAST_MODEL_OVERLAP_OVERLAP_H_

#include "data/record/plan.h"
#include "data/units/quantity.h"
#include "model/numeric/p_norm.h"

namespace stepcast {

// The geometric middle of the range in which Qiao et al. fit it.
inline constexpr double kOverlapSharpness = 3.0;

template <class T>
struct OverlapSplit {
  Duration<T> exposed;
  Duration<T> hidden;
};

// `total` is S; `end` is E_K, from the start of the backward pass.
template <class T>
OverlapSplit<T> BucketOverlap(const Duration<T>& backward, const Duration<T>& total,
                              const Duration<T>& end) {
  const Duration<T> exposed = Max(end, backward) - backward;
  return {exposed, Max(total - exposed, Duration<T>())};
}

template <class T>
OverlapSplit<T> PNormOverlap(const Duration<T>& backward, const Duration<T>& total) {
  const Duration<T> exposed =
      Max(PNorm(backward, total, kOverlapSharpness) - backward, Duration<T>());
  return {exposed, Max(total - exposed, Duration<T>())};
}

// Splits the synchronisation by a plan's kind of overlap.
template <class T>
OverlapSplit<T> SplitOverlap(Overlap overlap, const Duration<T>& backward, const Duration<T>& total,
                             const Duration<T>& end) {
  switch (overlap) {
    case Overlap::kNone:
      return {total, {}};
    case Overlap::kPNorm:
      return PNormOverlap(backward, total);
    default:
      return BucketOverlap(backward, total, end);
  }
}

// The time by which the compute that the exchange hides behind, the backward pass, gets longer.
template <class T, class C>
Duration<T> OverlapContention(const OverlapSplit<T>& split, const Duration<T>& beside,
                              const C& kappa) {
  return Min(split.hidden, beside) * kappa;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_OVERLAP_OVERLAP_H_
