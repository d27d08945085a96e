// Where scaling ends, in closed form.
//
//   parameter server, weak scaling
//     ceiling           X_max = a b n B_s / (2 m)         samples per second, however many workers
//     half of it at     w_1/2 = a t n B_s / (2 m)         where transfer equals compute as well
//   ring, strong scaling of a fixed work C
//     best workers      w     = sqrt( C / (2 alpha) )     more workers only add messages
//   accumulation for a wanted share e of the time spent computing
//     smallest interval a     = ceil( e / (1 - e)  x / t )
//
//   a      micro-steps between synchronisations
//   b, t   local batch [samples] and compute time [s] of one micro-step
//   n, B_s servers and the bandwidth of one server's link [B/s]
//   m      gradient bytes [B]
//   C      compute time of the whole step on one worker [s]
//   alpha  one-way cost of a message [s]
//   x      exposed synchronisation of a step [s]
//
// Hold where the named term is the only one that grows: the ceiling for synchronous servers whose
// links bind (asynchronous ones, whose pushes meet pulls on links that carry both at once, reach
// twice X_max), the ring for per-worker work C/w and a bandwidth term that w hardly moves.
//
// Source: the derivatives of the formulas in model/collective; docs/explanation.
#ifndef STEPCAST_MODEL_LIMITS_LIMITS_H_
#define STEPCAST_MODEL_LIMITS_LIMITS_H_

#include <cmath>

#include "data/units/quantity.h"

namespace stepcast {

inline SampleRate<> ServerCeiling(SampleCount<> samples_per_step, double servers,
                                  DataRate<> server_bandwidth, DataSize<> gradient) {
  return samples_per_step * (server_bandwidth * servers / (gradient * 2.0));
}

inline double ServerHalfCeilingWorkers(Duration<> compute, double servers,
                                       DataRate<> server_bandwidth, DataSize<> gradient) {
  return compute * (server_bandwidth * servers / (gradient * 2.0));
}

inline double RingBestWorkers(Duration<> work, Duration<> alpha) {
  return std::sqrt(work / (alpha * 2.0));
}

// At least 1; `efficiency` lies strictly between 0 and 1.
inline double AccumulationForEfficiency(double efficiency, Duration<> exposed,
                                        Duration<> micro_step) {
  // Less rounding: 0.9 / (1 - 0.9) is a little more than 9.
  constexpr double kWhole = 1 - 1e-12;
  return std::fmax(1.0, std::ceil(kWhole * efficiency / (1 - efficiency) * (exposed / micro_step)));
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_LIMITS_LIMITS_H_
