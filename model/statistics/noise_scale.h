// The worth of a sample: the batch decides how far a step takes the training.
//
//   steps to a target      S = S_min (1 + B_noise / B)
//   samples to it          E = E_min (1 + B / B_noise) = S B,   E_min = S_min B_noise
//   critical batch         B_crit = E_min / S_min = B_noise:    twice S_min, twice E_min
//   efficiency             (phi + m0) / (phi + m),              phi = B_noise
//   gain of a step         r = (m / m0) (phi + m0) / (phi + m)
//   goodput                throughput x efficiency
//   time to the target     S x T(B)
//   best batch             B* = sqrt( B_noise c0 / c1 )         for T(B) = c0 + c1 B
//
//   B, m     global batch of a step: all workers, all micro-steps                [samples]
//   B_noise  gradient noise scale: trace of the covariance of one sample's gradient over the
//            squared norm of the true gradient                                   [samples]
//   S_min    steps to the target with an endless batch                           [1]
//   E_min    samples to it with the smallest batch                               [samples]
//   m0       the batch for which learning rate and epochs are known              [samples]
//   r        steps of batch m0 that one step of batch m replaces, at most m/m0   [1]
//   T, c0    time of a step; its part that no batch changes (exposed exchange)   [s]
//   c1       time of a further sample of the global batch: a worker's over w     [s/sample]
//
// From the second-order expansion of the loss along the gradient step: a step of the best rate
// gains in proportion to 1 / (1 + B_noise / B). Goodput and time to target have the same optimum:
// (c0 + c1 B)(1 + B_noise / B) has its only minimum at B*, so within limits the nearest one is
// best.
//
// Two batch sizes measure the noise scale without any covariance: the squared norm of a batch's
// gradient is |G|^2 + tr(Sigma) / B in the mean. Workers' own gradients are the small batch, their
// mean is the big one. Both estimates are unbiased and either may come out negative; average
// |G|^2 and tr(Sigma) over steps before dividing.
//
// Holds for synchronous steps of stochastic gradient descent with a rate adapted to the batch, and
// for one noise scale: in truth it grows as the loss falls, so a target far away needs the sum over
// stretches. It says nothing of generalisation, and nothing of staleness: asynchronous updates
// count here as if each were fresh, which is the most that they can be worth.
//
// Note that S never rises with B and E never falls; S >= S_min, E >= E_min; the efficiency at m0 is
// exactly 1, above it less; r m0 / m is the efficiency.
//
// Sources: McCandlish, Kaplan, Amodei et al., "An Empirical Model of Large-Batch Training", 2018
// (steps, samples, estimator: appendix A.1). Qiao et al., Pollux, OSDI 2021 (efficiency, goodput).
// Johnson, Agrawal, Gu, Guestrin, AdaScale, ICML 2020 (gain).
#ifndef STEPCAST_MODEL_STATISTICS_NOISE_SCALE_H_
#define STEPCAST_MODEL_STATISTICS_NOISE_SCALE_H_

#include <cmath>

#include "data/units/quantity.h"

namespace stepcast {

template <class T>
T StepsToTarget(const T& least_steps, const SampleCount<T>& noise_scale,
                const SampleCount<T>& batch) {
  return least_steps * (T(1.0) + noise_scale / batch);
}

template <class T>
SampleCount<T> SamplesToTarget(const SampleCount<T>& least_samples,
                               const SampleCount<T>& noise_scale, const SampleCount<T>& batch) {
  return least_samples * (T(1.0) + batch / noise_scale);
}

template <class T>
SampleCount<T> CriticalBatch(const SampleCount<T>& least_samples, const T& least_steps) {
  return least_samples / least_steps;
}

// Estimates from two batches' gradients, in units of the gradient; the noise scale has none of it.
template <class T>
struct GradientNoise {
  T squared_gradient;         // |G|^2
  SampleCount<T> covariance;  // tr(Sigma)

  // Whether scale() means anything: noise may leave either estimate negative.
  bool IsUsable() const {
    return squared_gradient > T(0.0) && covariance > SampleCount<T>::FromSi(T(0.0));
  }
  SampleCount<T> scale() const { return covariance / squared_gradient; }
};

// From the mean squared norms of gradients over batches of two sizes, small < big.
template <class T>
GradientNoise<T> EstimateGradientNoise(const T& small_squared_norm, const SampleCount<T>& small,
                                       const T& big_squared_norm, const SampleCount<T>& big) {
  const SampleCount<T> apart = big - small;
  return {(big * big_squared_norm - small * small_squared_norm) / apart,
          (small * (big / apart)) * (small_squared_norm - big_squared_norm)};
}

template <class T>
T StatisticalEfficiency(const SampleCount<T>& noise_scale, const SampleCount<T>& known_batch,
                        const SampleCount<T>& batch) {
  return (noise_scale + known_batch) / (noise_scale + batch);
}

template <class T>
T StepGain(const SampleCount<T>& noise_scale, const SampleCount<T>& known_batch,
           const SampleCount<T>& batch) {
  return (batch / known_batch) * StatisticalEfficiency(noise_scale, known_batch, batch);
}

template <class T>
SampleRate<T> Goodput(const SampleRate<T>& throughput, const SampleCount<T>& noise_scale,
                      const SampleCount<T>& known_batch, const SampleCount<T>& batch) {
  return throughput * StatisticalEfficiency(noise_scale, known_batch, batch);
}

template <class T>
Duration<T> TimeToTarget(const Duration<T>& step, const T& least_steps,
                         const SampleCount<T>& noise_scale, const SampleCount<T>& batch) {
  return step * StepsToTarget(least_steps, noise_scale, batch);
}

template <class T>
SampleCount<T> BestBatch(const SampleCount<T>& noise_scale, const Duration<T>& fixed,
                         const DurationPerSample<T>& per_sample) {
  using std::sqrt;
  return noise_scale * sqrt(fixed / (per_sample * noise_scale));
}

// The best within [least, most].
template <class T>
SampleCount<T> BestBatch(const SampleCount<T>& noise_scale, const Duration<T>& fixed,
                         const DurationPerSample<T>& per_sample, const SampleCount<T>& least,
                         const SampleCount<T>& most) {
  return Max(least, Min(most, BestBatch(noise_scale, fixed, per_sample)));
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STATISTICS_NOISE_SCALE_H_
