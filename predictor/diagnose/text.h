// The words of a diagnosis.
#ifndef STEPCAST_PREDICTOR_DIAGNOSE_TEXT_H_
#define STEPCAST_PREDICTOR_DIAGNOSE_TEXT_H_

#include <string>

#include "predictor/diagnose/diagnose.h"
#include "predictor/diagnose/hypotheses.h"

namespace stepcast::internal {

// The unit of a hypothesis's size: its SI value and its name; 1 and "" where it has no degrees.
double UnitOf(const Hypothesis& hypothesis);
std::string UnitNameOf(const Hypothesis& hypothesis);

// "the links behave like ones of 640 Mbit/s, where 10 Gbit/s are known". Where nothing is wrong,
// what sets the pace: the size is of `sized`.
std::string SizeText(const Hypothesis& hypothesis, const Hypothesis& sized, const CauseSize& size,
                     const Forecaster& model, const Plan& plan, const StepTime<double>& parts);

// A measurement's value [SI], with its unit.
std::string ValueText(const Measurement& measurement, double value);

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_DIAGNOSE_TEXT_H_
