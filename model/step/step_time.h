// The parts of a step's time (model/step/step.h).
#ifndef STEPCAST_MODEL_STEP_STEP_TIME_H_
#define STEPCAST_MODEL_STEP_STEP_TIME_H_

#include "data/units/quantity.h"
#include "model/network/limiter.h"

namespace stepcast {

template <class T>
struct StepTime {
  Duration<T> forward;           // of all micro-steps, with what the curve holds fixed
  Duration<T> backward;          // of all micro-steps, with the contention of what they hide
  Duration<T> update;            // the optimizer's, on the worker
  Duration<T> exposed_latency;   // synchronisation that compute does not hide: messages, calls
  Duration<T> exposed_transfer;  // and bytes
  Duration<T> straggler_wait;
  Duration<T> synchronisation;  // whole, hidden or not
  Duration<T> coding;           // of gradients that are compressed, which nothing hides
  Duration<T> input_wait;       // for samples that have not arrived
  Limiter limiter = Limiter::kNothing;

  Duration<T> compute() const { return forward + backward + update; }
  Duration<T> exposed() const { return exposed_latency + exposed_transfer + coding; }
  // The step if all samples were there.
  Duration<T> supplied() const { return compute() + exposed() + straggler_wait; }
  Duration<T> total() const { return supplied() + input_wait; }
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_STEP_TIME_H_
