// Other explanations of the fitted runs, which the interval of a step has to hold.
//
// Where two causes explain the fitted runs nearly alike (the link or what one connection carries,
// time by the sample or by the batch), the cost has two minima, or one with a bend, and the
// covariance at the believed values tells of one of them. A fit hands on where the 90 % range of a
// parameter ends, if this is far from where the covariance puts it (calibrate/profile.h). The step
// is evaluated there, and the part of its interval that parameters make reaches as far:
//
//   V_h = max( V_e, max_k ( ln+(s_k / s) / q )^2 )
//   V_l = max( V,   max_k ( ln+(s / s_k) / q )^2 )
//
//   V, V_e    variance of ln(step): by derivatives, and with slow ends (slow_ends.h)       [1]
//   V_h, V_l  the same for the upper and the lower end of the interval                     [1]
//   s, s_k    the step as believed, and by the k-th alternative; ln+ is 0 below 1          [s]
//   q         standard deviations from the centre to an end: 1.645
//
// An alternative is a point of the region in which the cost is no more than q^2/2 above its least,
// so that its step is within the 90 % profile-likelihood interval of the step (Venzon, Moolgavkar,
// Applied Statistics 37, 1988). The forecast itself is of the believed values. Plans of the fitted
// runs take about as long by all of them, and have intervals as before.
//
// Note that of several hosts the one that is believed to be the slowest holds a plan back with each
// alternative too.
#ifndef STEPCAST_MODEL_STEP_ALTERNATIVES_H_
#define STEPCAST_MODEL_STEP_ALTERNATIVES_H_

#include <vector>

#include "data/units/quantity.h"
#include "model/step/belief.h"
#include "model/step/step_time.h"

namespace stepcast {

// How far alternatives are from what is believed of a time.
class AlternativeReach {
 public:
  void Include(Duration<> believed, Duration<> alternative);
  // V_h and V_l, from what derivatives make of them.
  double VarianceAbove(double variance) const;
  double VarianceBelow(double variance) const;

 private:
  double above_ = 0;  // standard deviations of ln(time)
  double below_ = 0;
};

struct AlternativeReaches {
  AlternativeReach step;
  AlternativeReach compute;

  void Include(Duration<> believed_step, Duration<> believed_compute,
               const StepTime<double>& alternative);
};

// The parameters of a plan that these positions hold back, by each alternative.
std::vector<PlanParameters> AlternativesOf(const Belief& belief, const Belief::AtHosts& hosts);

// Of a plan that these positions hold back, of which this is believed.
AlternativeReaches ReachesOf(const Belief& belief, const Belief::AtHosts& hosts,
                             const StepFacts& facts, const StepTime<double>& step);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_ALTERNATIVES_H_
