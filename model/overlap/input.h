// Samples that arrive no faster than storage and loaders deliver them.
//
//   T    = max( R, A )
//   A    = g b a / r
//   wait = max( 0, A - R )
//
//   T      the step                                                          [s]
//   R      the step without the wait: compute, what shows of the exchange, and the wait for the
//          slowest worker                                                    [s]
//   A      time in which the samples of a step arrive at the fullest node    [s]
//   g      workers of that node                                              [1]
//   b, a   samples of a micro-step on one device, micro-steps of a step      [samples], [1]
//   r      samples that a node gets                                          [samples/s]
//
// Loaders work ahead while the devices compute and exchange, so that the two times do not add up:
// whichever is longer sets the pace, without a smooth passage between them, as of any two machines
// in a row with room between them. Holds in the mean of many steps, once what was loaded ahead of
// the first is used up, and for nodes that are served alike; a prefetch of nothing (loading begins
// when the step ends) would take R + A. A server's asynchronous workers cycle no faster either.
//
// Note that T never falls with g, b or a and never rises with r; that it is R, to the bit, where
// no rate is stated; that where A is the longer, neither links nor batches change samples per
// second, which are r for each node; and that it begins to bind at r = g b a / R.
//
// Sources: Johnson, Naval Research Logistics Quarterly 1 (1954) (machines in a row); Mohan et al.,
// "Analyzing and Mitigating Data Stalls in DNN Training", VLDB 2021 (stalls as the difference of
// the two rates).
#ifndef STEPCAST_MODEL_OVERLAP_INPUT_H_
#define STEPCAST_MODEL_OVERLAP_INPUT_H_

#include "data/units/quantity.h"

namespace stepcast {

// A, of a node that takes `samples` a step.
template <class T>
Duration<T> ArrivalTime(const SampleCount<T>& samples, const SampleRate<T>& rate) {
  return samples / rate;
}

// What the devices wait for it; `rest` is R.
template <class T, class A>
Duration<T> InputWait(const Duration<T>& rest, const Duration<A>& arrival) {
  return Max(arrival - rest, Duration<T>());
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_OVERLAP_INPUT_H_
