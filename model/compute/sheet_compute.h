// Compute time of a workload from a data sheet, for a device that nobody has measured: the sum of
// its operations by the curve of model/compute/operation_curve.h, at the batch that is asked.
//
//   D(b)   = sum over layers of forward and backward                         on the device  [s]
//   host   = o (2 L + R)                                                                    [s]
//   u      = update of all parameters at once                                               [s]
//
//   L, o   as in model/compute/profiled_compute.h, of a GPU, as the curve is; before the first
//          layer with parameters nothing has a backward pass
//   R      layers that are recomputed (data/record/blocks.h): their forward pass is part of their
//          backward pass once more
//
// Layers are those that run: attention that is fused is one of them.
//
// A layer whose operation is not stated is work and bytes; its backward pass has two gradients
// where it multiplies (convolution, dense, recurrent, attention) and one elsewhere.
//
// Note that times never fall with b and never rise with a peak or a bandwidth.
#ifndef STEPCAST_MODEL_COMPUTE_SHEET_COMPUTE_H_
#define STEPCAST_MODEL_COMPUTE_SHEET_COMPUTE_H_

#include <optional>
#include <vector>

#include "data/record/fused_attention.h"
#include "data/record/machine.h"
#include "data/record/workload.h"
#include "data/units/quantity.h"
#include "model/compute/device_sheet.h"
#include "model/compute/fitted_curve.h"

namespace stepcast {

struct SheetTime {
  Duration<> forward;  // on the device
  Duration<> backward;
  Duration<> update;
  Duration<> host;  // of forward and backward
};

// Whether the workload has layers with work and the device a peak and a memory bandwidth.
bool HasSheetTime(const Workload& workload, const std::optional<Device>& device);

class SheetCompute {
 public:
  // Requires HasSheetTime. At the workload's precision, with its optimizer.
  SheetCompute(const Workload& workload, const Device& device);

  SheetTime At(double batch) const;
  // Forward and backward as the step model's curve, as near as it comes to all batches of
  // kCurveBatches.
  FittedCurve<double> Curve() const;
  // What the products of dense layers take of a sample, forward and backward, at the device's peak:
  // the least, at any batch. 0 but in 16 bits or fewer by units for matrices: other units may have
  // a faster one beside them, which runs take whose precision was not told.
  Duration<> LeastOfASample() const;
  // Seconds of each layer's backward pass, in forward order; those of fused attention are its last
  // layer's.
  std::vector<double> BackwardSeconds(double batch) const;

 private:
  // As they run.
  struct Layers {
    std::vector<double> forward;
    std::vector<double> backward;
  };
  Layers Evaluate(double batch) const;

  const Workload& workload_;
  std::vector<LayerAsRun> layers_;
  std::vector<bool> recomputed_;  // of the workload's layers
  DeviceSheet sheet_;
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_COMPUTE_SHEET_COMPUTE_H_
