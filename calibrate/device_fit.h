// Learning the curve of operations (model/compute/operation_curve.h) from tables of their times.
//
//   ln(measured) = ln(t) + error,  error: soft-L1 beyond kOutlier
//   t = t_curve                          in a loop that never lets the device wait
//   t = || u_k H, t_curve ||_j           one call by itself: the host's time of a call shows
//
//   H    the host's time of a call on that machine: the shortest sum of its table           [s]
//   u_k  how many times as long a call of the kind takes, j how the two join: learnt beside the
//        curve, and no part of it
//
// The curve's parameters are log-normal around their priors. What a table's single calls draw above
// the power limit before the clock falls, `burst`, is learnt too.
#ifndef STEPCAST_CALIBRATE_DEVICE_FIT_H_
#define STEPCAST_CALIBRATE_DEVICE_FIT_H_

#include <array>
#include <string>
#include <vector>

#include "model/compute/operation_curve.h"

namespace stepcast {

// What a table's times hold besides the curve.
enum TableParameter {
  kProductCall,  // of a product
  kLinearCall,   // of a layer with a product
  kConvolutionCall,
  kElementCall,
  kSoftmaxCall,
  kNormCall,
  kLoopConvolution,  // [s] added by each call in a loop, beside the curve's kernel start
  kLoopRecurrent,    // [s]
  kCallSharpness,
  kBurst,  // [s]
  kTableParameterCount
};

// Recurrent layers of DeepBench have no input product, and cells that operation.h does not know.
struct MeasuredRecurrence {
  double gates = 1;
  double positions = 1;
  double hidden = 1;
};

struct MeasuredOperation {
  std::string device;
  DeviceSheet sheet;
  Operation operation;  // or
  std::optional<MeasuredRecurrence> recurrence;
  CurvePass pass = CurvePass::kForward;
  double batch = 1;
  double host_call = 0;                // H; 0: timed in a loop
  TableParameter call = kProductCall;  // u of this kind
  double seconds = 0;
};

struct DeviceFit {
  CurveParameters<double> curve;
  std::array<double, kTableParameterCount> table{};
  bool converged = false;

  // What the row's table would say, by this fit.
  double Predict(const MeasuredOperation& row) const;
};

DeviceFit FitDevices(const std::vector<MeasuredOperation>& rows);

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_DEVICE_FIT_H_
