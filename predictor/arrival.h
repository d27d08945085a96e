// The forecast of a step that waits for its samples, from the forecast of the same step with all of
// them there (model/overlap/input.h).
//
//   step = max(R, A),   low = max(R_low, A / f),   high = max(R_high, A f),   f = e^(1.645 s)
//
//   R      the step with all samples, and its interval                          [s]
//   A      arrival of its samples, a fact that is taken as it is stated          [s]
//   s      scatter of a step that is no network's                                [1]
//
// A maximum never falls with either side, so that the bounds of the larger are the larger bounds.
#ifndef STEPCAST_PREDICTOR_ARRIVAL_H_
#define STEPCAST_PREDICTOR_ARRIVAL_H_

#include <cmath>

#include "data/units/quantity.h"
#include "model/statistics/normal.h"
#include "model/step/step_facts.h"
#include "model/step/step_time.h"

namespace stepcast {

// Samples a second that a node must get so that a step does not wait for them: those of the fullest
// node, in the step with all samples there.
inline SampleRate<> InputNeeded(const StepFacts& facts, const StepTime<double>& step) {
  return internal::SamplesOfNode(facts) / step.supplied();
}

// A Forecast or a Prediction.
template <class Answer>
void LengthenBy(Duration<> arrival, double scatter, Answer* answer) {
  const double factor = NinetyPercentFactor(scatter);
  // The interval may reach further up than by the standard deviation.
  const Duration<> by_log_sd = answer->step_time * NinetyPercentFactor(answer->log_sd);
  answer->low = Max(answer->low, arrival / factor);
  answer->high = Max(answer->high, arrival * factor);
  if (answer->step_time >= arrival && by_log_sd >= arrival * factor) return;
  answer->step_time = Max(answer->step_time, arrival);
  answer->log_sd = std::log(Max(by_log_sd, arrival * factor) / answer->step_time) / kNinetyPercent;
}

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_ARRIVAL_H_
