// Compute time from a data sheet, layer by layer, for a device that nobody has measured.
//
//   forward of a layer   max( b F / P, (b (A_in + A_out) + 4 p) / B_m )
//   backward             the same with 2 F and twice the bytes, where the layer has parameters;
//                        as the forward pass where it has none
//   update               4 (3 + 2 s) p / B_m: reading gradients, and reading and writing parameters
//                        and s states
//   launches             one kernel for each pass of a layer, twice as many where it has parameters
//
//   b        local batch                                                   [samples]
//   F        forward work of the layer for one sample                      [FLOP]
//   P, B_m   peak rate and memory bandwidth of the device                  [FLOP/s], [B/s]
//   A_in/out activations in and out, for one sample                        [B]
//   p, s     parameters of the layer; optimizer states for each
//
// All but the launches is a lower bound that real kernels miss by an efficiency e, one number for a
// device and a workload, of which only a wide prior is known (kKernelEfficiency). Holds within a
// factor of two or three: a layer that a device runs badly (depthwise convolution, recurrence) is
// slower, tensor cores are faster than the 32-bit peak.
//
// Note that the time never falls with b and never rises with P or B_m.
//
// Source: Williams, Waterman, Patterson, CACM 52 (2009).
#ifndef STEPCAST_MODEL_COMPUTE_ROOFLINE_H_
#define STEPCAST_MODEL_COMPUTE_ROOFLINE_H_

#include <optional>

#include "data/record/machine.h"
#include "data/record/workload.h"
#include "data/units/quantity.h"
#include "model/compute/kernel_efficiency.h"

namespace stepcast {

template <class T>
struct FittedCurve;

// A framework's cost of starting one kernel: a few microseconds of driver time (CUDA C++ best
// practices guide).
inline constexpr Duration<> kKernelLaunch = Microseconds(5.0);

// At full efficiency.
struct RooflineTime {
  Duration<> forward;
  Duration<> backward;
  Duration<> update;
  Duration<> launches;  // a cost of their own, not subject to the efficiency
};

// Whether the workload has layers with work and the device a peak and a memory bandwidth.
bool HasRoofline(const Workload& workload, const std::optional<Device>& device);

RooflineTime EvaluateRoofline(const Workload& workload, const Device& device, double batch);

// Forward and backward of the roofline at kKernelEfficiency as a curve in the batch: its slope at
// large batches, its value at one sample as the floor, launches as the fixed part.
FittedCurve<double> RooflineCurve(const Workload& workload, const Device& device);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_COMPUTE_ROOFLINE_H_
