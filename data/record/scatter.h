// How one measured step scatters around the model, where the parameters are right.
#ifndef STEPCAST_DATA_RECORD_SCATTER_H_
#define STEPCAST_DATA_RECORD_SCATTER_H_

#include <cmath>

namespace stepcast {

// Compute and exposed synchronisation scatter independently, each in proportion to its length:
//
//   s^2 = (s_c (1 - x))^2 + (s_x x)^2
//
//   s    standard deviation of ln(measured / predicted)                            [1]
//   x    exposed synchronisation, with the wait for the slowest worker, as a share of the step [1]
struct Scatter {
  double compute = 0;  // s_c
  double sync = 0;     // s_x

  double At(double sync_share) const {
    return std::hypot(compute * (1 - sync_share), sync * sync_share);
  }
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_SCATTER_H_
