// The scatter of rows around what is predicted of them, from a quantile of their distances.
//
//   s = ( (n q^2 + n_0 s_0^2) / (n + n_0) )^(1/2),   q = quantile of |ln(measured / predicted)| over
//                                                        that of a standard normal law
//
//   n, n_0  rows; those that what is known beforehand counts for
//   s_0     scatter known beforehand
//
// As calibrate/scatter.h estimates it from the runs of a fit.
#ifndef STEPCAST_PREDICTOR_ONLINE_SCATTER_H_
#define STEPCAST_PREDICTOR_ONLINE_SCATTER_H_

#include <vector>

namespace stepcast::internal {

inline constexpr double kHalf = 0.5;        // of the scatter of most rows
inline constexpr double kNineTenths = 0.9;  // of that which intervals are made of

// A scatter of all but nothing is none that a row can be held to.
inline constexpr double kLeastScatter = 1e-3;

struct Deviation {
  double size = 0;
  double rows = 0;
};

double ScatterOf(std::vector<Deviation> deviations, double quantile, double before);

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_ONLINE_SCATTER_H_
