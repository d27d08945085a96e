// Compute time of one micro-step as a curve in the batch, for workloads known by their step times.
//
//   t(b) = t_fixed + (t_floor^q + (c b)^q)^(1/q)
//
//   t(b)     forward and backward time of one micro-step                       [s]
//   b        local batch                                                      [samples]
//   t_fixed  time that no batch changes: launches, input                      [s]      > 0
//   t_floor  the device's time while the batch is too small to fill it        [s]      > 0
//   c        time of one more sample once the device is full                  [s/sample] > 0
//   q        sharpness of the knee, fixed at kKneeSharpness
//
// Holds for one device and one workload, from the smallest to a few times the largest fitted batch;
// it does not know of the memory limit, nor of kernels that are chosen anew at another batch.
//
// Note that t never falls with b, tends to t_fixed + t_floor for b -> 0 and to t_fixed + c b for
// large b. The optimizer's update is no part of it (StepTime::update).
//
// Source: the p-norm of a latency and a throughput bound, as the throughput model of Pollux (Qiao
// et al., OSDI 2021) joins compute and communication; here it joins the two regimes of a roofline
// (Williams, Waterman, Patterson, CACM 2009).
#ifndef STEPCAST_MODEL_COMPUTE_FITTED_CURVE_H_
#define STEPCAST_MODEL_COMPUTE_FITTED_CURVE_H_

#include <vector>

#include "data/units/quantity.h"
#include "model/numeric/p_norm.h"

namespace stepcast {

template <class T>
struct FittedCurve {
  Duration<T> fixed;
  Duration<T> floor;
  DurationPerSample<T> per_sample;

  static constexpr double kKneeSharpness = 4.0;

  Duration<T> Time(SampleCount<> batch) const {
    return fixed + PNorm(floor, per_sample * batch, kKneeSharpness);
  }
};

// F + c b by least squares of relative errors, F not below zero, as a curve: `fixed` is what the
// host adds to F, `floor` what it sets below the device's time.
FittedCurve<double> CurveThrough(const std::vector<double>& batches,
                                 const std::vector<double>& seconds, const Duration<>& fixed,
                                 const Duration<>& floor);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_COMPUTE_FITTED_CURVE_H_
