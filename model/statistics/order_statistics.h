// The r-th smallest of n equal and independent random values: its mean, and its quantiles. Ranks
// count from 1, so that rank n is the largest.
//
//   normal, mean          E[X_(r:n)]   = Phi^-1( (r - 3/8) / (n + 1/4) )           (Blom)
//   exponential, mean     E[Y_(n-k:n)] = H_n - H_k                                 (Renyi)
//   any, quantile         F^-1( u ),   u = q-quantile of Beta(n - k, k + 1)
//                         k = 0:       u = q^(1/n)
//
//   n, r     how many values; which of them, from the smallest                     [1]
//   k        how many of them are larger: r = n - k                                [1]
//   H_n      1 + 1/2 + ... + 1/n
//   Phi, F   distribution function of the standard normal; of the values
//   q        probability that the r-th smallest is at most the quantile, 0 < q < 1
//
// All answer in bounded time, however many values there are. The exponential mean is exact to
// rounding. Blom's normal mean is 4.5 % above the exact largest at n = 2, within 1 % from n = 7 on,
// and better for inner ranks. The quantile of a rank comes from its upper tail 1 - u:
//   k = 0                exact, as is rank 1
//   up to 32 from an end the binomial sum P(at most k of n exceed u) = q, solved by Newton
//                        from Wise's and Wilson and Hilferty's start
//   further inside       Carter's expansion of the beta quantile (Abramowitz and Stegun 26.5.22),
//                        right to 1e-4 standard deviations of the values for q within [0.01, 0.99]
//
// Note that the mean and every quantile never fall with n at fixed k, never rise with k, that a
// quantile never falls with q, and that rank r of n is the mirror image of rank n + 1 - r for the
// normal distribution.
//
// Sources: Blom, "Statistical Estimates and Transformed Beta-Variables", 1958. Renyi, Acta
// Mathematica Hungarica 4 (1953). David and Nagaraja, "Order Statistics", 3rd edition, 2003. Wise,
// Biometrika 37 (1950). Wilson and Hilferty, PNAS 17 (1931). Abramowitz and Stegun, "Handbook of
// Mathematical Functions", 1964.
#ifndef STEPCAST_MODEL_STATISTICS_ORDER_STATISTICS_H_
#define STEPCAST_MODEL_STATISTICS_ORDER_STATISTICS_H_

namespace stepcast {

// H_n, n >= 0: summed up to 32, by Euler and Maclaurin's series beyond, where it is right to
// rounding.
double HarmonicNumber(int n);

// The expected r-th smallest of n standard normal values, 1 <= r <= n; exactly 0 for n = 1. Numbers
// beyond those of an int are counted as well.
double ExpectedNormalRank(double rank, double count);

// The expected value of the largest but k of n exponential ones with mean 1, 0 <= k < n.
double ExpectedExponential(int count, int larger);

// The q-quantile of the largest but k of n standard normal values, and of exponential ones with
// mean 1; 0 <= k < n.
double NormalRankQuantile(double q, int count, int larger);
double ExponentialRankQuantile(double q, int count, int larger);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STATISTICS_ORDER_STATISTICS_H_
