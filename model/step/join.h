// The parts of a step, joined.
//
//   forward  = (t - t_b) a
//   backward = t_b a + kappa min(hidden, t_h)
//   exposed  = the part of S that the backward pass does not hide      (model/overlap/overlap.h)
//   wait     = sigma t
//   input    = what is left of A                                (model/overlap/input.h)
//   step     = forward + backward + u + exposed + o + wait + C + input
//
//   t, t_b   one micro-step; its backward pass                              [s]
//   t_h      compute that the exchange may hide behind: t_b, or t a where it is in all passes [s]
//   a        micro-steps of a step                                          [1]
//   u, o     the optimizer's update on a worker; fixed cost of a call       [s]
//   S, E_K   whole synchronisation; its end, from the start of backward     [s]
//   kappa    overlap contention                                             [1]
//   sigma    wait for the slowest worker, as a multiple of a micro-step     [1]
//   C        encoding and decoding of compressed gradients                  [s]
//   A        arrival of the step's samples                                  [s]
//
// Holds for synchronous steps, and with S, E_K, o and sigma of 0 for a worker that exchanges
// nothing. It is the one place where a step is joined: EvaluateStep, and the lines and derivatives
// of compiled plans, all call it.
//
// Note that the parts add up to the step exactly, and that only the last micro-step hides anything
// where gradients alone are exchanged.
#ifndef STEPCAST_MODEL_STEP_JOIN_H_
#define STEPCAST_MODEL_STEP_JOIN_H_

#include "data/record/plan.h"
#include "data/units/quantity.h"
#include "model/overlap/input.h"
#include "model/overlap/overlap.h"

namespace stepcast::internal {

// C is the scalar of those that are constants to who differentiates by the others.
template <class T, class C = T>
struct JoinInputs {
  double micro_steps = 1;
  Duration<T> micro;
  Duration<T> backward;
  Duration<T> beside;  // t_h
  Duration<T> all;
  Duration<T> end;
  Duration<C> update;
  Duration<C> overhead;
  C contention = C(0.0);
  C wait = C(0.0);
  Duration<> coding;
  Duration<> arrival;
};

template <class T>
struct JoinedStep {
  Duration<T> forward;
  Duration<T> backward;  // with the contention
  Duration<T> contention;
  Duration<T> update;
  Duration<T> hidden;
  Duration<T> exposed;
  Duration<T> overhead;
  Duration<T> wait;
  Duration<> coding;
  Duration<T> input;

  Duration<T> compute() const { return forward + backward + update; }
  // The part of the step that is not compute, if all samples are there.
  Duration<T> shown() const { return exposed + overhead + wait + coding; }
  Duration<T> supplied() const { return compute() + shown(); }
  Duration<T> total() const { return supplied() + input; }
};

template <class T, class C>
JoinedStep<T> Join(Overlap overlap, const JoinInputs<T, C>& in) {
  const OverlapSplit<T> split = SplitOverlap(overlap, in.backward, in.all, in.end);
  const Duration<T> contention = OverlapContention(split, in.beside, in.contention);
  JoinedStep<T> step{(in.micro - in.backward) * in.micro_steps,
                     in.backward * in.micro_steps + contention,
                     contention,
                     in.update,
                     split.hidden,
                     split.exposed,
                     in.overhead,
                     in.micro * in.wait,
                     in.coding,
                     {}};
  step.input = InputWait(step.supplied(), in.arrival);
  return step;
}

// The part of an exposed synchronisation that is bytes: it is shared out as the whole is made up.
template <class T>
Duration<T> ExposedTransfer(const Duration<T>& exposed, const Duration<T>& transfer,
                            const Duration<T>& all) {
  return all.si() > 0.0 ? exposed * (transfer / all) : Duration<T>();
}

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_STEP_JOIN_H_
