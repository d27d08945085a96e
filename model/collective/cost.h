// The cost of one synchronisation: what every call costs, and what every byte costs.
//
// Every collective and the parameter server are affine in the message, T(m) = per_call + per_byte
// m, so that a bucket schedule needs these two numbers and nothing else.
#ifndef STEPCAST_MODEL_COLLECTIVE_COST_H_
#define STEPCAST_MODEL_COLLECTIVE_COST_H_

#include "data/units/quantity.h"

namespace stepcast {

template <class T>
using DurationPerByte = Quantity<DimensionQuotient<TimeDimension, ByteDimension>, T>;

template <class T>
struct SyncCost {
  Duration<T> per_call;
  DurationPerByte<T> per_byte;

  Duration<T> Time(DataSize<> message) const { return per_call + per_byte * message; }
};

// One hop between neighbours: the one-way cost of a message, and the rate at which bytes follow.
template <class T>
struct Hop {
  Duration<T> alpha;
  DataRate<T> bandwidth;
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_COLLECTIVE_COST_H_
