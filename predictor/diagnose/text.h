// The words of a diagnosis.
#ifndef STEPCAST_PREDICTOR_DIAGNOSE_TEXT_H_
#define STEPCAST_PREDICTOR_DIAGNOSE_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

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

// "0.31 GB/s": what devices of a host exchange at.
std::string DeviceRateText(DataRate<> rate);

// "the rate of 800 Mbit/s of 8 connections".
std::string MeasurementText(const Measurement& measurement);

// A clause: the measured rate is more than links of `links` carry.
std::string OverfillText(const Measurement& measurement, DataRate<> links);

// A clause that names those of `measured` measurements that are at odds: without one of them alone
// the rest is met, or all of them are far from what the likeliest cause makes of them.
std::string ContradictionText(const std::vector<std::string>& at_odds, std::size_t measured,
                              bool one_is_enough);

// A measurement's value [SI], with its unit.
std::string ValueText(const Measurement& measurement, double value);

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_DIAGNOSE_TEXT_H_
