// The tail of the F distribution: whether a mean of n squares is larger than one of m should let it
// be.
//
//   P(F > f) = Phi(-((1 - b) f^(1/3) - (1 - a)) / sqrt(b f^(2/3) + a)),  a = 2 / 9n, b = 2 / 9m
//
// Symbols: f the ratio of the two means, above 0; n and m their degrees of freedom. The cube roots
// of both means are nearly normal (Wilson and Hilferty). Holds to 5 % of the probability from 10
// degrees below on and to 20 % from 4 on, between 1 and 5 %; not for fewer than 4.
//
// Source: Paulson, An approximate normalization of the analysis of variance distribution, Annals of
// Mathematical Statistics 13 (1942).
#ifndef STEPCAST_MODEL_STATISTICS_F_DISTRIBUTION_H_
#define STEPCAST_MODEL_STATISTICS_F_DISTRIBUTION_H_

namespace stepcast {

// P(F > f). Note that it falls as f grows.
double TailOfF(double f, double n, double m);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STATISTICS_F_DISTRIBUTION_H_
