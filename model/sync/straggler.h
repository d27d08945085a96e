// A synchronous step waits for the slowest of w workers, or for the slowest but k where the last k
// are not waited for (backup workers).
//
//   normal spread      wait = sigma t sqrt(a) max(0, Phi^-1( (w - k - 3/8) / (w + 1/4) ))
//   exponential tail   wait = theta max(0, H_w - H_k - 1)
//   a quantile q of the step, + from q = 1/2 on:
//                      ln Q = ln L(x_50) +- sqrt( ln^2( L(x_q) / L(x_50) ) + (s z_q)^2 )
//                      L(x) = c + d x;  where a normal x is below 0, c exp(d x / c)
//
//   t      compute time of one micro-step                                            [s]
//   sigma  its spread between workers (standard deviation), as a share of t           [1]
//   a      micro-steps between synchronisations; their spreads add up as independent ones do
//   w, k   workers, backup workers among them, 0 <= k < w; only w - k gradients count
//   theta  mean of an exponential delay of a worker, once a step                      [s]
//   H_n    1 + 1/2 + ... + 1/n
//   c      the step without the wait                                                  [s]
//   d      sigma t sqrt(a), or theta                                                  [s]
//   s      standard deviation of ln(step) that all workers of a step share            [1]
//   x_q    q-quantile of the largest but k of w standard values; z_q of one normal;
//          exponential ones are counted from their mean, which c contains: theta <= c
//   Phi    distribution function of the standard normal
//
// The wait is the expected order statistic; both rules answer in bounded time for any w. Blom's
// approximation is 4.5 % above the exact largest at w = 2, within 1 % from w = 7 on (0.4 % below it
// at 1000). The exponential form is exact. A tail that is exponential makes the wait grow with ln
// w, a normal one with sqrt(2 ln w).
//
// The quantile is exact where only one of the two scatters is there (s = 0, d = 0, or w so large
// that the slowest hardly varies); where both are, their distances from the median in ln(step) add
// as independent errors do. Against the convolution, for q from 0.5 to 0.99: within 3 % for d/c
// up to 0.3 and s up to 0.2, within 11 % for d/c up to 1 and s up to 0.5, the worst with one
// worker. The exponential below a normal median keeps every step positive, whatever d; low
// quantiles of few workers are right to first order in d/c (q = 0.05, one worker, d/c = 0.3: 21 %
// too long).
//
// Hold for spreads that are independent between workers and between steps; a host that is always
// slow is not a straggler but another device. The quantiles are those of one step, not of a mean
// over many.
//
// Note that one worker waits exactly zero, that no wait is negative, that the wait and the
// quantiles never fall with w at fixed k nor rise with k, that p50 <= p95 <= p99, and that k = 0 is
// the plain rule bit for bit. The median of one worker's step is c where the spread is normal.
//
// Sources: Blom, "Statistical Estimates and Transformed Beta-Variables", 1958. Chen, Pan, Monga,
// Bengio, Jozefowicz, "Revisiting Distributed Synchronous SGD", 2016 (backup workers). Renyi, Acta
// Mathematica Hungarica 4 (1953) (exponential order statistics).
#ifndef STEPCAST_MODEL_SYNC_STRAGGLER_H_
#define STEPCAST_MODEL_SYNC_STRAGGLER_H_

#include <cmath>

#include "data/units/quantity.h"
#include "model/statistics/normal.h"

namespace stepcast {

// The expected largest but `backup` of `count` standard normal values; never below 0, and exactly 0
// for one.
double ExpectedSlowest(int count, int backup);

// The same for exponential values with mean 1, counted from that mean.
double ExpectedSlowestExponential(int count, int backup);

template <class T>
Duration<T> StragglerWait(const Duration<T>& micro_step, const T& spread, int accumulation_steps,
                          int workers, int backup_workers = 0) {
  return micro_step * (spread * (std::sqrt(static_cast<double>(accumulation_steps)) *
                                 ExpectedSlowest(workers, backup_workers)));
}

template <class T>
Duration<T> ExponentialStragglerWait(const Duration<T>& delay, int workers,
                                     int backup_workers = 0) {
  return delay * ExpectedSlowestExponential(workers, backup_workers);
}

// How the workers of one step differ.
enum class Spread {
  kNormal,       // their times scatter evenly around the mean
  kExponential,  // most are alike and some are late
};

// Who takes part in a step, and how they differ.
struct StepScatter {
  Spread spread = Spread::kNormal;
  int workers = 1;
  int backup_workers = 0;
};

// x_q of the header; 0 < q < 1.
double SlowestQuantile(const StepScatter& scatter, double q);

namespace internal {

// L(x) / c.
template <class T>
T SlowestOverMean(const T& share, Spread spread, double x) {
  using std::exp;
  const bool below = spread == Spread::kNormal && x < 0;
  return below ? T(exp(share * x)) : T(1.0) + share * x;
}

// sqrt(a^2 + b^2), with derivative 0 where both are 0.
template <class T>
T RootOfSquares(const T& a, const T& b) {
  using std::sqrt;
  const T square = a * a + b * b;
  return square > T(0.0) ? sqrt(square) : T(0.0);
}

}  // namespace internal

// The quantiles of one synchronous step. `without_wait` is the step but for the wait, c;
// `worker_spread` is d, and `log_sd` is s.
template <class T>
class StepQuantiles {
 public:
  StepQuantiles(const Duration<T>& without_wait, const Duration<T>& worker_spread, const T& log_sd,
                const StepScatter& scatter)
      : without_wait_(without_wait),
        share_(worker_spread / without_wait),
        log_sd_(log_sd),
        scatter_(scatter),
        median_(SlowestOverMean(0.5)) {}

  Duration<T> median() const { return without_wait_ * median_; }

  // The quantile q, 0 < q < 1.
  Duration<T> At(double q) const {
    using std::exp;
    using std::log;
    const T distance = internal::RootOfSquares(T(log(SlowestOverMean(q) / median_)),
                                               T(log_sd_ * NormalQuantile(q)));
    return without_wait_ * (median_ * exp(q < 0.5 ? T(-distance) : distance));
  }

 private:
  T SlowestOverMean(double q) const {
    return internal::SlowestOverMean(share_, scatter_.spread, SlowestQuantile(scatter_, q));
  }

  Duration<T> without_wait_;
  T share_;
  T log_sd_;
  StepScatter scatter_;
  T median_;  // as a multiple of c
};

// The share of the steps of one worker that end before `time`: At() of the quantiles of the normal
// spread, inverted.
double ShareOfStepsBefore(Duration<> time, Duration<> without_wait, Duration<> worker_spread,
                          double log_sd);

// One quantile.
template <class T>
Duration<T> StepQuantile(const Duration<T>& without_wait, const Duration<T>& worker_spread,
                         const T& log_sd, const StepScatter& scatter, double q) {
  return StepQuantiles<T>(without_wait, worker_spread, log_sd, scatter).At(q);
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_SYNC_STRAGGLER_H_
