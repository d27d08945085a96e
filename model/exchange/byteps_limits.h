// How the cost of BytePS grows with the workers w, in the form of model/exchange/growth.h.
//
//   per_call(w) = 2 alpha,   per_byte(w) = 2/((1+k) B) (1 - (1-d)/w),   w >= 2
//
//   alpha, B     one-way cost of a message [s] and bandwidth [B/s] between machines
//   k, d         helper machines for each worker, 0 to 1, and d = 2k/(1+k)
//
// The bytes are exact for k = 0 and k = 1 and at most 0.25 / (w (w-1)) of 2/B too many for other k
// (expansion in 1/w).
//
// Source: that of model/exchange/byteps.h, whose cost this is.
#ifndef STEPCAST_MODEL_EXCHANGE_BYTEPS_LIMITS_H_
#define STEPCAST_MODEL_EXCHANGE_BYTEPS_LIMITS_H_

#include "model/exchange/cost.h"
#include "model/exchange/growth.h"

namespace stepcast {

// `helpers_per_worker` of 0 to 1, with cards as fast as the workers'.
template <class T>
CostGrowth<T> BytePsGrowth(double helpers_per_worker, const Hop<T>& hop) {
  const double k = helpers_per_worker;
  CostGrowth<T> growth;
  growth.least = 2;
  growth.per_call.fixed = hop.alpha * 2.0;
  growth.per_byte.fixed = (2 / (1 + k)) / hop.bandwidth;
  growth.per_byte.saved = (2 / (1 + k) * (1 - 2 * k / (1 + k))) / hop.bandwidth;
  return growth;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_BYTEPS_LIMITS_H_
